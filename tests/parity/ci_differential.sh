#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_differential.sh PYTHON BUILD: the first 200 of the 2,000 profiles that differential.py compares; a minute or so.
set -eu
exec timeout 900 "$1" "$(dirname "$0")/differential.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-200}" --out "$2/differences"
