#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Captures of programs that take long to install: TensorFlow's server, or PyTorch's processes.
# Usage: tests/capture/run_slow.sh [BUILD [pytorch]]
# BUILD is a build directory of xplaned (default build/release).  The last line is "N passed, N failed, N skipped".
set -eu
cd "$(dirname "$0")/../.."
python=$(tests/parity/setup.sh)
if [ "${2:-}" = pytorch ]; then
    torch=$(tests/capture/setup.sh torch)
    exec timeout 900 "$python" tests/capture/pytorch.py "${1:-${XPL_BUILD:-build}/release}" "$torch"
fi
slow=$(tests/capture/setup.sh slow)
exec timeout 600 "$python" tests/capture/slow.py "${1:-${XPL_BUILD:-build}/release}" "$slow"
