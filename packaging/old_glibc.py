"""Makes stubs of an old C library to link with: old_glibc.py RELEASE FOLDER_OF_LIBC OUT [CC].

A library needs, of each function, the version that was the newest in the C library that it was linked
with; the compiler adds nothing to that. The C library of today keeps the versions of former releases,
so it tells what the C library of RELEASE, such as 2.17, held. A function that is younger is not in
the stubs: linking fails, and src/agent/portable/old_glibc.cpp needs to have it.
"""

import os
import pathlib
import re
import subprocess
import sys

# Until 2.34 the C library was several files, and the loader of these releases finds a function only in
# the file that held it. What a file held has got one more version when it moved.
FILES = {
    "libpthread.so.0": re.compile(r"_*pthread_|sem_"),
    "libdl.so.2": re.compile(r"dl"),
    "librt.so.1": re.compile(r"_*mq_|aio_|lio_|shm_|timer_"),
}
MOVED = (2, 29)
KINDS = {"FUNC": "function", "IFUNC": "function", "OBJECT": "object"}
SYMBOL = re.compile(
    r"^ *\d+: [0-9a-f]+ +(\w+) (\w+) +\w+ +\w+ +(?!UND|ABS)\w+ (\w+)@@?GLIBC_([0-9.]+)$", re.M
)


def number(version):
    return tuple(map(int, version.split(".")))


def symbols(path):
    """{name: {version: (kind, size)}}"""
    text = subprocess.run(
        ["readelf", "--dyn-syms", "-W", str(path)],
        check=True,
        stdout=subprocess.PIPE,
        env=dict(os.environ, LC_ALL="C"),
        universal_newlines=True,
    ).stdout
    found = {}
    for size, kind, name, version in SYMBOL.findall(text):
        if kind in KINDS:
            found.setdefault(name, {})[number(version)] = (KINDS[kind], int(size, 0))
    return found


def of_release(release, folder):
    """{file: {version: [(name, kind, size)]}} of a C library of that release."""
    files = {name: {} for name in ("libc.so.6", "libm.so.6", *FILES)}
    for library in ("libc.so.6", "libm.so.6"):
        for name, versions in sorted(symbols(pathlib.Path(folder, library)).items()):
            old = [version for version in versions if version <= release]
            if not old:
                continue
            home = library
            if library == "libc.so.6" and max(versions) >= MOVED:
                homes = [file for file, names in FILES.items() if names.match(name)]
                if not homes:
                    continue  # the address resolver, terminals, logins: nobody asks for them
                home = homes[0]
            files[home].setdefault(max(old), []).append((name, *versions[max(old)]))
    return files


def make(file, versions, out, compiler):
    source, script = out / f"{file}.s", out / f"{file}.map"
    lines = ['.section .note.GNU-stack,"",%progbits', ".data"]
    nodes = ""
    for version, entries in sorted(versions.items()):
        nodes += f"GLIBC_{'.'.join(map(str, version))} {{ "
        for name, kind, size in entries:
            nodes += name + "; "
            # Only the size of data matters to the linker.
            size = max(size, 1) if kind == "object" else 1
            lines.append(
                f".globl {name}\n.type {name},%{kind}\n.size {name},{size}\n{name}: .skip {size}"
            )
        nodes += "};\n"
    source.write_text("\n".join(lines) + "\n")
    script.write_text(nodes)
    subprocess.run(
        [compiler, "-shared", "-nostdlib", f"-Wl,-soname,{file}", f"-Wl,--version-script,{script}"]
        + ["-o", str(out / file), str(source)],
        check=True,
    )


def main(release, folder, out, compiler="cc"):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for file, versions in of_release(number(release), folder).items():
        if not versions:
            raise SystemExit(
                f"old_glibc: {folder} has nothing that {file} of {release} held; name the folder of libc.so.6"
            )
        make(file, versions, out, compiler)


main(*sys.argv[1:])
