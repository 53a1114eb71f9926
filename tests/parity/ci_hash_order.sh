#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_hash_order.sh PYTHON BUILD: what hash order decides in XProf is excused, and nothing else; half a minute, or minutes on a busy machine.
set -eu
timeout 60 "$1" "$(dirname "$0")/trace_excuses.py"
timeout 300 "$1" "$(dirname "$0")/hash_order_cases.py" --build "$2"
exec timeout 900 "$1" "$(dirname "$0")/op_twice_cases.py" --build "$2"
