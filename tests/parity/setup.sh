#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the virtual environment of the parity tests: the real XProf and gRPC's Python stubs, from PyPI.
#   tests/parity/setup.sh            prints the path of its python
# It is $XPL_PARITY_VENV, or parity-venv below $XPL_BUILD (default build/).  Does nothing when it is there already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${XPL_BUILD:-$(cd "$here/../.." && pwd)/build}
venv=${XPL_PARITY_VENV:-$build/parity-venv}
stamp=$venv/.xplaned-requirements
if ! [ -x "$venv/bin/python" ]; then
    mkdir -p "$(dirname "$venv")"
    python3 -m venv "$venv"
fi
if ! cmp -s "$here/requirements.txt" "$stamp"; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$stamp"
fi
echo "$venv/bin/python"
