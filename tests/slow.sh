#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the suites of a release: everything, in its long form.  Takes most of a day.
# Usage: tests/slow.sh [STAGE...]
# tests/stages.txt lists the stages, with their budgets; tests/stages.sh has their code, and the variables that they
# read. Builds go below build/, or $XPL_BUILD. Prints a table of stages; a stage that takes over 1.5 times its budget is
# a failure. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
whole=1
. tests/results.sh
. tests/stages.sh
stages=(setup "$@")
[ $# -gt 0 ] || stages=("${release[@]}")
run_all "${stages[@]}"
enforce_budgets
finish
