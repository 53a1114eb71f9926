#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gets the static files of XProf's interface from PyPI for `xplaned --ui-dir DIR`.
# Usage: deploy/fetch-xprof-ui.sh DIR
# Needs python3 with pip; the wheel is checked by its hash.  Where DIR has the files of this version
# already, nothing is done.
set -eu
version=2.24.2
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
dir=$1
[ "$(cat "$dir/VERSION" 2>/dev/null)" != "$version" ] || exit 0
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One wheel, whatever this machine is: the static files are for browsers.
echo "xprof==$version --hash=sha256:14342674c53cede2a4c17c4e2327a9e749f3971795c24754e0e1b2a638935e55" >"$work/requirements.txt"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --platform manylinux_2_27_x86_64 --dest "$work" -r "$work/requirements.txt"
"$python" - "$work" "$dir" "$version" <<'PY'
import glob, os, sys, zipfile
work, target, version = sys.argv[1:]
[wheel] = glob.glob(os.path.join(work, "xprof-*.whl"))
os.makedirs(target, exist_ok=True)
with zipfile.ZipFile(wheel) as z:
    names = [n for n in z.namelist() if n.startswith("xprof/static/") and not n.endswith("/")]
    if "xprof/static/index.html" not in names:
        sys.exit("the wheel has no static files")
    for n in names:
        path = os.path.join(target, os.path.basename(n))
        with open(path + ".new", "wb") as f:
            f.write(z.read(n))
        os.replace(path + ".new", path)
with open(os.path.join(target, "VERSION"), "w") as f:
    f.write(version + "\n")
print(f"{len(names)} files in {target}")
PY
