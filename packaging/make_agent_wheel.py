"""Makes the wheel of the Python agent: make_agent_wheel.py PYTHON_FOLDER LIBRARY VERSION ARCH OUT.

The wheel holds the package and the library, which needs nothing that a Linux of its tag does not have.
The tag says the oldest C library that has the symbols which the library needs.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

# With every Linux. The C++ library is not among them: that of an old Linux is too old.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s))\.so")
# Where users of MindSpore and PyTorch are: openEuler 20.03, RHEL 8 and all that is younger.
YOUNGEST = (2, 28)
# What is inside the library, by Debian's names.
INSIDE = ("libgrpc-dev", "libprotobuf-dev", "libabsl-dev", "libc-ares-dev", "zlib1g-dev")
INSIDE += ("libsqlite3-dev", "libfmt-dev", "gcc-12-base")
METADATA = """\
Metadata-Version: 2.1
Name: msdbg-agent
Version: {version}
Summary: Lets msdbg hold, step and watch a PyTorch or MindSpore training
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

With this package, `ENABLE_MS_DEBUGGER=1 python train.py` is held, stepped and watched by `msdbg listen`, although the program is not changed.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: msdbg\nRoot-Is-Purelib: false\n"


def readelf(option, path):
    return subprocess.run(
        ["readelf", option, "-W", str(path)],
        check=True,
        stdout=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C"),
        universal_newlines=True,
    ).stdout


def refuse(reason):
    raise SystemExit(f"make_agent_wheel: {reason}")


def oldest_glibc(library):
    """The oldest C library with which the library works. One that needs too much makes no wheel."""
    for name in re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", library)):
        if not OF_THE_SYSTEM.match(name):
            refuse(
                f"{library} needs {name}, which not every Linux has; pass that of build/*/lib/portable"
            )
    needs = re.findall(
        r"(\w+)@(GLIBC|GCC)_([0-9.]+) \(\d+\)$", readelf("--dyn-syms", library), re.M
    )
    oldest = (2, 17)  # of manylinux2014; before it, no processor but x86
    for symbol, kind, text in needs:
        version = tuple(map(int, text.split(".")))
        if kind == "GCC" and version > (4, 8):
            refuse(f"{library}: {symbol} needs GCC_{text}, which RHEL 7 does not have")
        if kind == "GLIBC":
            if version > YOUNGEST:
                refuse(
                    f"{library}: {symbol} needs GLIBC_{text}; add it to src/agent/portable/old_glibc.cpp"
                )
            oldest = max(oldest, version[:2])
    if not needs:
        refuse(f"{library} names no symbols of the C library")
    return oldest


def main(python, library, version, arch, out):
    python, library = pathlib.Path(python), pathlib.Path(library)
    major, minor = oldest_glibc(library)
    tags = [f"manylinux_{major}_{minor}_{arch}"]
    if (major, minor) == (2, 17):
        tags.append(f"manylinux2014_{arch}")  # its name for pip before 20.3
    wheel = pathlib.Path(out) / f"msdbg_agent-{version}-py3-none-{'.'.join(tags)}.whl"
    info = f"msdbg_agent-{version}.dist-info"
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", library.stat().st_mtime))
    when = time.gmtime(max(seconds, 315532800))[:6]  # zip knows no time before 1980
    record = []
    strip = (
        shutil.which("strip")
        if arch == os.uname().machine
        else shutil.which(f"{arch}-linux-gnu-strip")
    )

    with (
        tempfile.TemporaryDirectory() as stage,
        zipfile.ZipFile(
            str(wheel) + ".part", "w", zipfile.ZIP_DEFLATED, compresslevel=9
        ) as archive,
    ):

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            )
            record.append((name, f"sha256={digest}", len(content)))

        def add_library(name, path):
            copy = pathlib.Path(stage, name)
            shutil.copy(path, copy)
            if strip:
                subprocess.run([strip, "--strip-unneeded", str(copy)], check=True)
            add(f"msdbg_agent/lib/{name}", copy.read_bytes(), 0o755)

        for path in sorted((python / "msdbg_agent").rglob("*.py")):
            add(path.relative_to(python).as_posix(), path.read_bytes())
        add("msdbg_agent.pth", (python / "msdbg_agent.pth").read_bytes())
        add_library("libmsdbg-agent.so", library)
        add(f"{info}/METADATA", METADATA.format(version=version).encode())
        add(f"{info}/WHEEL", (WHEEL + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)).encode())
        add(f"{info}/LICENSE", (python.parent / "LICENSE").read_bytes())
        for package in INSIDE:
            text = pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()
            add(f"{info}/licenses/{package}", text)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(record + [(f"{info}/RECORD", "", "")])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", when), text.getvalue())
    os.replace(str(wheel) + ".part", wheel)
    print(wheel)


main(*sys.argv[1:])
