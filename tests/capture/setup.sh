#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment whose programs are captured, from PyPI.  Prints the path of its python.
#   tests/capture/setup.sh           JAX for the CPU, in $XPL_CAPTURE_VENV or capture-venv
#   tests/capture/setup.sh slow      TensorFlow, in $XPL_CAPTURE_SLOW_VENV or capture-slow-venv
# below $XPL_BUILD (default build/).  Does nothing when it is there already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${XPL_BUILD:-$(cd "$here/../.." && pwd)/build}
if [ "${1:-}" = slow ]; then
    venv=${XPL_CAPTURE_SLOW_VENV:-$build/capture-slow-venv}
    wanted=$here/requirements-slow.txt
else
    venv=${XPL_CAPTURE_VENV:-$build/capture-venv}
    wanted=$here/requirements.txt
fi
stamp=$venv/.xplaned-requirements
if ! [ -x "$venv/bin/python" ]; then
    mkdir -p "$(dirname "$venv")"
    python3 -m venv "$venv"
fi
if ! cmp -s "$wanted" "$stamp"; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >&2
    cp "$wanted" "$stamp"
fi
echo "$venv/bin/python"
