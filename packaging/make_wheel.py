"""Makes a wheel of an unpacked bundle: make_wheel.py BUNDLE VERSION ARCH OUT."""
import base64
import csv
import hashlib
import io
import os
import pathlib
import sys
import time
import zipfile

# manylinux_2_17, also called manylinux2014, is the oldest tag that pip knows for both processors. The host's C library does not matter: the
# bundle brings its own. That one needs Linux 3.2 (3.7 on ARM), and systems with this tag have 3.10 or later. Systems with musl run it, too.
TAGS = ("manylinux_2_17_{0}", "manylinux2014_{0}", "musllinux_1_1_{0}")
METADATA = """\
Metadata-Version: 2.1
Name: msdbg
Version: {version}
Summary: Scriptable debugger for MindSpore training
License: Apache-2.0
Requires-Python: >=3.8
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Description-Content-Type: text/markdown

msdbg finds the first operator that went wrong in a training: in the dumps that it wrote, or while it runs. This package holds the program;
`msdbg demo` shows it at work.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: msdbg\nRoot-Is-Purelib: false\n"


def main(bundle, version, arch, out):
    bundle, here = pathlib.Path(bundle), pathlib.Path(__file__).parent
    platform = ".".join(tag.format(arch) for tag in TAGS)
    info, data = f"msdbg-{version}.dist-info", f"msdbg-{version}.data"
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", bundle.stat().st_mtime))
    when = time.gmtime(max(seconds, 315532800))[:6]  # zip knows no time before 1980
    wheel = pathlib.Path(out) / f"msdbg-{version}-py3-none-{platform}.whl"
    record = []

    with zipfile.ZipFile(str(wheel) + ".part", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append((name, f"sha256={digest}", len(content)))

        add("msdbg/__init__.py", b"")
        add("msdbg/__main__.py", (here / "wheel_main.py").read_bytes())
        for path in sorted(path for path in bundle.rglob("*") if path.is_file()):
            name = path.relative_to(bundle).as_posix()
            # The launcher looks for ../lib/msdbg: pip puts scripts into PREFIX/bin and data into PREFIX.
            place = f"{data}/scripts/{path.name}" if name.startswith("bin/") else f"{data}/data/{name}"
            add(place, path.read_bytes(), path.stat().st_mode & 0o777)
        add(f"{info}/METADATA", METADATA.format(version=version).encode())
        add(f"{info}/WHEEL", (WHEEL + "".join(f"Tag: py3-none-{tag.format(arch)}\n" for tag in TAGS)).encode())
        add(f"{info}/LICENSE", (bundle / "share/doc/msdbg/LICENSE").read_bytes())
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(record + [(f"{info}/RECORD", "", "")])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", when), text.getvalue())
    os.replace(str(wheel) + ".part", wheel)
    print(wheel)


main(*sys.argv[1:])
