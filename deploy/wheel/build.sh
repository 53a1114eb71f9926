#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel: builds, bundles the libraries that are not on every Linux, and their licences.
# Usage: deploy/wheel/build.sh OUT [BUILD]     prints the wheel's path
# BUILD is a build directory of meson to take; without it one is made below OUT.  Needs
# `deploy/setup-debian.sh package` and PyPI.  The wheel's dates are debian/changelog's.
# Of a build for another machine (aarch64.sh) $XPL_WHEEL_ROOT has its libraries, and
# $XPL_WHEEL_PLATFORM is its platform.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ -z "${2:-}" ] || XPL_WHEEL_BUILD=$(cd "$2" && pwd)
export XPL_WHEEL_BUILD="${XPL_WHEEL_BUILD:-}"
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' "$here/../../debian/changelog" | head -1)" +%s)
export SOURCE_DATE_EPOCH
if ! cmp -s "$here/requirements.txt" "$out/venv/.requirements"; then
    python3 -m venv "$out/venv"
    "$out/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$out/venv/.requirements"
fi
rm -rf "$out/plain" "$out/repaired" "$out"/*.whl
(cd "$here" && "$out/venv/bin/python" -m hatchling build -t wheel -d "$out/plain" >&2)
root=${XPL_WHEEL_ROOT:+--ldpaths=$(printf '%s:' "$XPL_WHEEL_ROOT"/lib/*-linux-gnu "$XPL_WHEEL_ROOT"/usr/lib/*-linux-gnu)}
PATH=$out/venv/bin:$PATH "$out/venv/bin/python" -m auditwheel repair ${root:+"$root"} --only-plat -w "$out/repaired" "$out"/plain/*.whl >&2
"$out/venv/bin/python" "$here/licences.py" "$out"/plain/*.whl "$out"/repaired/*.whl "$out"
