#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_hlo_text.sh PYTHON BUILD: texts and costs of HLO programs: those of tests/data, 400 random ones, and 100 for
# costs alone; a minute or so.
set -eu
exec timeout 180 "$1" "$(dirname "$0")/hlo_text.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-400}" --costs "${XPL_COSTS:-100}" --out "$2/differences"
