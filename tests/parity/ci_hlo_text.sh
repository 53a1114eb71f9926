#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_hlo_text.sh PYTHON BUILD: the text of HLO programs: those of tests/data and 400 random ones; a minute or so.
set -eu
exec timeout 180 "$1" "$(dirname "$0")/hlo_text.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-400}" --out "$2/differences"
