#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_run.sh PYTHON BUILD: every profile of tests/data live against the real XProf.
set -eu
exec timeout 900 "$1" "$(dirname "$0")/run.py" --build "$2"
