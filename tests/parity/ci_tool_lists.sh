#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_tool_lists.sh PYTHON BUILD: which tools the sessions of tests/data have, here and in XProf, and that each answers.
set -eu
exec timeout 300 "$1" "$(dirname "$0")/tool_lists.py" --build "$2"
