#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds to a wheel that auditwheel repaired the licences of what it bundled: what Debian's packages
say, which package each library is of, and from which source it was built.

usage: licences.py PLAIN REPAIRED OUT     prints the path of the wheel in OUT
A library whose licence is not found is an error.  $XPL_WHEEL_ROOT is the root with the libraries of
a wheel for another machine.
"""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ROOT = os.environ.get("XPL_WHEEL_ROOT", "")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def loaded(path):
    """Path of each library that the loader finds for an ELF file."""
    if not ROOT:
        return re.findall(r"=> (/\S+) \(0x", run("ldd", path))
    loader = next(pathlib.Path(ROOT).glob("lib/ld-linux-*"))
    machine = loader.name.removeprefix("ld-linux-").split(".")[0]
    return re.findall(r"=> (/\S+) \(0x", run(f"qemu-{machine}-static", "-L", ROOT, str(loader), "--list", path))


def libraries_here(plain):
    """File name → path, of all libraries that the loader finds for the wheel's ELF files."""
    found = {}
    with tempfile.TemporaryDirectory() as work:
        with zipfile.ZipFile(plain) as z:
            z.extractall(work)
        for path in pathlib.Path(work).rglob("*"):
            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
                for target in loaded(str(path)):
                    found[os.path.basename(os.path.realpath(ROOT + target))] = target
                    found[os.path.basename(target)] = target
    return found


def package_of(path):
    """(binary package, its version, source package, its version)"""
    # Where /lib is a link, dpkg knows a file by one of its two names.
    real = os.path.realpath(ROOT + path).removeprefix(os.path.realpath(ROOT) if ROOT else "")
    for name in (real, path, real.removeprefix("/usr"), f"/usr{path}"):
        owner = subprocess.run(["dpkg-query", f"--root={ROOT or '/'}", "-S", name], capture_output=True, text=True).stdout
        if owner:
            break
    else:
        sys.exit(f"licences: {path} is of no Debian package")
    package = owner.split(": ")[0]
    form = "${Package}|${Version}|${source:Package}|${source:Version}"
    return tuple(run("dpkg-query", f"--root={ROOT or '/'}", "-W", "-f", form, package).split("|"))


def licence_files(plain, bundled):
    """Name below dist-info/licenses → bytes."""
    here = libraries_here(plain)
    files = {"LICENSE": (SOURCE / "LICENSE").read_bytes()}
    rows = []
    for name in sorted(bundled):
        original = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", name)
        if original not in here:
            sys.exit(f"licences: where {name} came from is not known")
        package, version, source, source_version = package_of(here[original])
        files[f"bundled/{package}.txt"] = pathlib.Path(f"{ROOT}/usr/share/doc/{package}/copyright").read_bytes()
        rows.append(f"{name}: {package} {version}, built from {source} {source_version}\n")
    text = ("The libraries of this wheel are Debian's, unchanged but for their names and run paths. Each line\n"
            "has the library, the binary package, whose licence is bundled/PACKAGE.txt, and the source\n"
            "package, which the Debian archive and its archive of snapshots have.\n\n")
    files["bundled.txt"] = (text + "".join(rows)).encode()
    # The copyright files name these and do not repeat them.
    common = pathlib.Path("/usr/share/common-licenses")
    texts = b"".join(v for k, v in files.items() if k.startswith("bundled/"))
    for name in set(re.findall(rb"/usr/share/common-licenses/([A-Za-z0-9.+-]*[A-Za-z0-9])", texts)):
        files[f"common-licenses/{name.decode()}"] = (common / name.decode()).read_bytes()
    return files


def record_row(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", str(len(data))]


def main():
    plain, repaired, out = sys.argv[1:]
    target = os.path.join(out, os.path.basename(repaired))
    with zipfile.ZipFile(repaired) as z, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(n for n in z.namelist() if n.endswith(".dist-info/RECORD"))
        bundled = [os.path.basename(n) for n in z.namelist() if re.match(r"xplaned\.libs/.+\.so", n)]
        if not bundled:
            sys.exit("licences: nothing was bundled")
        rows = [r for r in csv.reader(io.StringIO(z.read(record).decode())) if r and r[0] != record]
        for info in z.infolist():
            if info.filename != record:
                new.writestr(info, z.read(info), zipfile.ZIP_DEFLATED)
        date = z.getinfo(record).date_time
        for name, data in sorted(licence_files(plain, bundled).items()):
            info = zipfile.ZipInfo(os.path.dirname(record) + "/licenses/" + name, date)
            info.external_attr = 0o100644 << 16
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
            rows.append(record_row(info.filename, data))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows + [[record, "", ""]])
        info = zipfile.ZipInfo(record, date)
        info.external_attr = 0o100644 << 16
        new.writestr(info, text.getvalue(), zipfile.ZIP_DEFLATED)
    print(target)


main()
