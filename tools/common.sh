# Shared by the tools: installs missing packages from tools/packages.txt. Source it, do not run it.

msdbg_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Prints the packages of tools/packages.txt that are not installed.
msdbg_missing_packages() {
  local package
  while read -r package; do
    case $package in ''|'#'*) continue ;; esac
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
  done < "$msdbg_root/tools/packages.txt"
}

# Installs them, as root or through sudo.
msdbg_install_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "tools: no dpkg here, so nothing is installed; the needed packages are listed in tools/packages.txt" >&2
    return 0
  fi
  local missing
  missing=$(msdbg_missing_packages)
  [ -n "$missing" ] || return 0
  local sudo=""
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "tools: these packages are missing, and neither root nor sudo is at hand: "$missing >&2
      return 1
    fi
    sudo=sudo
  fi
  echo "tools: installing" $missing >&2
  export DEBIAN_FRONTEND=noninteractive
  # Fresh machines have no package lists yet.
  $sudo apt-get -qq update >&2 || return 1
  # shellcheck disable=SC2086 # a list of words on purpose
  $sudo apt-get -qq install -y --no-install-recommends $missing >&2
}

# msdbg_build PRESET [TARGET...]: configures once, then builds.
msdbg_build() {
  local preset=$1; shift
  local launcher=()
  command -v ccache >/dev/null 2>&1 && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  (cd "$msdbg_root" && cmake --preset "$preset" "${launcher[@]}" && cmake --build --preset "$preset" ${1:+--target "$@"})
}
