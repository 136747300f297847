"""Makes the wheel of the Python agent: make_agent_wheel.py PYTHON_FOLDER LIBRARY VERSION ARCH OUT [FOLDER_OF_LIBRARIES...].

The wheel holds the package, the library, and the libraries that it needs, except those that every
Linux has. Its tag says the oldest C library with which all of them work.
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

# With every Linux: the C library's own, and the C++ runtime, which the process may have loaded already.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so")
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
WHEEL = "Wheel-Version: 1.0\nGenerator: msdbg\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"


def readelf(option, path):
    return subprocess.run(
        ["readelf", option, "-W", str(path)],
        check=True,
        stdout=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C"),
        universal_newlines=True,
    ).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", path))


def find(name, folders):
    for folder in folders:
        path = pathlib.Path(folder, name)
        if path.exists():
            return path.resolve()
    raise SystemExit(f"make_agent_wheel: {name} is in none of {', '.join(map(str, folders))}")


def with_needs(library, folders):
    """{name: path} of the libraries that the library needs, each behind those that it needs itself."""
    found = {}

    def visit(path):
        for name in needed(path):
            if name not in found and not OF_THE_SYSTEM.match(name):
                place = find(name, folders)
                visit(place)
                found.setdefault(name, place)

    visit(library)
    return found


# The C++ runtime is the system's: the oldest C library of systems that have this one.
GLIBC_OF_GLIBCXX = (
    (28, (2, 31)),
    (29, (2, 34)),
    (30, (2, 35)),
    (32, (2, 38)),
    (33, (2, 39)),
    (34, (2, 42)),
)


def glibc(paths):
    """The oldest C library with which all symbols are there."""
    versions = {(2, 17)}
    for path in paths:
        text = readelf("-V", path)
        versions |= {(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", text)}
        for number in map(int, re.findall(r"GLIBCXX_3\.4\.(\d+)", text)):
            versions |= {version for newest, version in GLIBC_OF_GLIBCXX if number >= newest}
    return max(versions)


def main(python, library, version, arch, out, *folders):
    python, library = pathlib.Path(python), pathlib.Path(library)
    folders = folders or (f"/lib/{arch}-linux-gnu", f"/usr/lib/{arch}-linux-gnu")
    bundled = with_needs(library, folders)
    major, minor = glibc([library] + list(bundled.values()))
    tag = f"manylinux_{major}_{minor}_{arch}"
    wheel = pathlib.Path(out) / f"msdbg_agent-{version}-py3-none-{tag}.whl"
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
        for name, path in bundled.items():
            add_library(name, path)
        add_library("libmsdbg-agent.so", library)
        add("msdbg_agent/lib/order.txt", "".join(f"{name}\n" for name in bundled).encode())
        add(f"{info}/METADATA", METADATA.format(version=version).encode())
        add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
        add(f"{info}/LICENSE", (python.parent / "LICENSE").read_bytes())
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(record + [(f"{info}/RECORD", "", "")])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", when), text.getvalue())
    os.replace(str(wheel) + ".part", wheel)
    print(wheel)


main(*sys.argv[1:])
