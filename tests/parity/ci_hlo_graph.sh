#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_hlo_graph.sh PYTHON BUILD: graphs of the HLO programs of tests/data and of 100 random ones; a minute or so.
set -eu
exec timeout 300 "$1" "$(dirname "$0")/hlo_graph.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-100}" --nodes 1 --out "$2/differences"
