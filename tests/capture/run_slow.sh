#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Captures of servers that take long to install: TensorFlow's.  Usage: tests/capture/run_slow.sh [BUILD]
# BUILD is a build directory of xplaned (default build/release).  The last line is "N passed, N failed, N skipped".
set -eu
cd "$(dirname "$0")/../.."
python=$(tests/parity/setup.sh)
slow=$(tests/capture/setup.sh slow)
exec timeout 600 "$python" tests/capture/slow.py "${1:-${XPL_BUILD:-build}/release}" "$slow"
