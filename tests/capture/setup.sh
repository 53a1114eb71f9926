#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment whose programs are captured, from PyPI.  Prints the path of its python.
#   tests/capture/setup.sh           JAX for the CPU, in $XPL_CAPTURE_VENV or capture-venv
#   tests/capture/setup.sh slow      TensorFlow and Keras, in $XPL_CAPTURE_SLOW_VENV or capture-slow-venv
#   tests/capture/setup.sh libraries JAX's libraries and TensorFlow, in $XPL_CAPTURE_LIBRARIES_VENV or capture-libraries-venv
#   tests/capture/setup.sh hta       HolisticTraceAnalysis, in $XPL_CAPTURE_HTA_VENV or capture-hta-venv
#   tests/capture/setup.sh torch     PyTorch and PyTorch/XLA, in $XPL_CAPTURE_TORCH_VENV or capture-torch-venv
# below $XPL_BUILD (default build/).  Does nothing when it is there already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${XPL_BUILD:-$(cd "$here/../.." && pwd)/build}
case ${1:-} in
    slow)
        venv=${XPL_CAPTURE_SLOW_VENV:-$build/capture-slow-venv}
        wanted=$here/requirements-slow.txt
        ;;
    libraries)
        venv=${XPL_CAPTURE_LIBRARIES_VENV:-$build/capture-libraries-venv}
        wanted=$here/requirements-libraries.txt
        ;;
    hta)
        venv=${XPL_CAPTURE_HTA_VENV:-$build/capture-hta-venv}
        wanted=$here/requirements-hta.txt
        ;;
    torch)
        venv=${XPL_CAPTURE_TORCH_VENV:-$build/capture-torch-venv}
        wanted=$here/requirements-torch.txt
        ;;
    *)
        venv=${XPL_CAPTURE_VENV:-$build/capture-venv}
        wanted=$here/requirements.txt
        ;;
esac
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
