#!/bin/sh
# ci_differential.sh PYTHON BUILD: a short differential run, of a seed without a known open difference (tests/golden/open); differential.py alone
# does 2,000 profiles.
set -eu
exec timeout 900 "$1" "$(dirname "$0")/differential.py" --build "$2" --seed "${XPL_SEED:-2}" --count "${XPL_COUNT:-40}" --out "$2/differences"
