#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_hlo_memory.sh PYTHON BUILD: memory_viewer on the HLO programs of tests/data and 200 random ones; a minute or so.
set -eu
exec timeout 300 "$1" "$(dirname "$0")/hlo_memory.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-200}" --out "$2/differences"
