#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs what every change must pass; at most 25 minutes on two cores.
# Usage: tests/run.sh [STAGE...]
#        tests/run.sh --changed [COMMIT]   the stages that cover what changed since COMMIT (default: the upstream branch)
# tests/stages.txt lists the stages, with their budgets; tests/stages.sh has their code. STAGE+STAGE runs two at the same
# time. Builds go below build/, or $XPL_BUILD. Prints a table of stages; the last line is
# "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/results.sh
. tests/stages.sh
stages=("$@")
if [ "${1:-}" = --changed ]; then
    mapfile -t stages < <(tests/changed_stages.py "${@:2}" "${every_change[@]}")
    [ ${#stages[@]} -gt 0 ] || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
elif [ $# -eq 0 ]; then
    stages=("${every_change[@]}")
else
    stages=(setup "$@")
fi
run_all "${stages[@]}"
finish
