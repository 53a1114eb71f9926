#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of TensorFlow, Keras and PyTorch/XLA whose answer is known.  Usage: tests/programs/run_slow.sh [BUILD]
# BUILD is a build directory of xplaned (default build/release).  The last line is "N passed, N failed, N skipped".
set -eu
cd "$(dirname "$0")/../.."
python=$(tests/parity/setup.sh)
slow=$(tests/capture/setup.sh slow)
torch=$(tests/capture/setup.sh torch) || torch=-
exec timeout 1800 "$python" tests/programs/run.py "${1:-${XPL_BUILD:-build}/release}" "$slow" "$torch"
