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

# msdbg_build PRESET [-DOPTION=VALUE...] [TARGET...]: configures, then builds.
msdbg_build() {
  local preset=$1; shift
  local launcher=()
  command -v ccache >/dev/null 2>&1 && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  # Steps done, all steps, percent, seconds since the start.
  export NINJA_STATUS="[%f/%t, %p, %es] "
  local option
  for option in "$@"; do
    case $option in -D*) launcher+=("$option"); shift ;; *) break ;; esac
  done
  (cd "$msdbg_root" && cmake --preset "$preset" ${launcher[@]+"${launcher[@]}"} && cmake --build --preset "$preset" ${1:+--target "$@"})
}

# The version in CMakeLists.txt.
msdbg_version() { sed -n 's/^project(msdbg VERSION \([0-9.]*\).*/\1/p' "$msdbg_root/CMakeLists.txt"; }

# msdbg_need PROGRAM PACKAGE: installs what only some tools use, as root or through sudo.
msdbg_need() {
  command -v "$1" >/dev/null 2>&1 && return 0
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "tools: installing $2" >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get -qq install -y --no-install-recommends "$2" >&2 && return 0
  echo "tools: $1 is missing; install the package $2" >&2
  return 1
}

# Lets the kernel start programs for AArch64 in QEMU, as Debian does where systemd runs. Tests start msdbg by its name.
msdbg_start_aarch64() {
  [ "$(uname -m)" != aarch64 ] || return 0
  msdbg_need qemu-aarch64-static qemu-user-static
  local kernel=/proc/sys/fs/binfmt_misc
  [ ! -e "$kernel/qemu-aarch64" ] || return 0
  [ -e "$kernel/register" ] || mount -t binfmt_misc none "$kernel" || true
  cat /usr/lib/binfmt.d/qemu-aarch64.conf > "$kernel/register" && return 0
  echo "tools: this kernel does not start programs for AArch64 in QEMU, and only root can let it:" \
    "cat /usr/lib/binfmt.d/qemu-aarch64.conf > $kernel/register" >&2
  return 1
}

# What the presets for AArch64 need on another processor.
msdbg_prepare_arm64() {
  msdbg_need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  msdbg_need qemu-aarch64-static qemu-user-static
  "$msdbg_root/tools/sysroot" "$msdbg_root/build/sysroot-arm64"
}

# Where this machine gets Debian's packages from.
msdbg_mirror() {
  # shellcheck disable=SC2016 # a format of apt-get
  apt-get indextargets --format '$(REPO_URI)' "Codename: bookworm" 'Component: main' | head -1
}

# msdbg_unpack_packages DIR ARCH SUITE PACKAGE...: unpacks packages and what they depend on into DIR, without root. DIR/.files says which
# package each file is from. SUITE is another release of Debian, or "" for the package sources of this machine.
msdbg_unpack_packages() {
  local dir=$1 arch=$2 suite=$3 state; shift 3
  state=$(mktemp -d)
  mkdir -p "$dir" "$state"/{lists,archives}/partial
  : > "$state/status"
  local apt=(apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::State="$state"
    -o Dir::State::status="$state/status" -o Dir::Cache="$state" -o APT::Install-Recommends=false -o Debug::NoLocking=1 -o APT::Sandbox::User=)
  if [ -n "$suite" ]; then
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(msdbg_mirror) $suite main" > "$state/sources.list"
    apt+=(-o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=-)
  fi
  "${apt[@]}" update >&2 && "${apt[@]}" install -y --download-only "$@" >&2 || return 1
  local package
  for package in "$state"/archives/*.deb; do
    dpkg-deb -x "$package" "$dir"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed "s|^\.|$(dpkg-deb -f "$package" Package) |" >> "$dir/.files"
  done
  rm -rf "$state"
}

# msdbg_unpack_sources DIR PACKAGE...: downloads the sources of Debian's packages and unpacks them, with Debian's patches, into DIR/NAME-VERSION.
msdbg_unpack_sources() {
  local dir=$1 state; shift
  state=$(mktemp -d)
  mkdir -p "$dir" "$state/lists/partial"
  # shellcheck disable=SC2016 # a format of apt-get
  apt-get indextargets --format 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) main' \
    'Created-By: Packages' 'Component: main' 'Origin: Debian' | sort -u > "$state/sources.list"
  local apt=(apt-get -qq -o Dir::State="$state" -o Dir::Cache="$state" -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=-
    -o Debug::NoLocking=1 -o APT::Sandbox::User=)
  "${apt[@]}" update >&2 && (cd "$dir" && "${apt[@]}" source "$@" >&2) || return 1
  rm -rf "$state"
}
