#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_counters.sh PYTHON BUILD: the tables of TPU units as XProf has them now, the tools of hardware counters on 60 random profiles, megascale_stats, smart_suggestion.
set -eu
here=$(dirname "$0")
timeout 300 "$1" "$here/counter_units.py"
timeout 100 "$1" "$here/megascale.py" --build "$2"
timeout 400 "$1" "$here/megascale_perfetto.py" --build "$2" --seed "${XPL_SEED:-1}"
timeout 200 "$1" "$here/suggestions.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-120}"
exec timeout 600 "$1" "$here/counters.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-60}" --out "$2/differences"
