#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_serving.sh PYTHON BUILD: inference_profile on 100 random model servers; a minute or so.
set -eu
exec timeout 300 "$1" "$(dirname "$0")/serving.py" --build "$2" --seed "${XPL_SEED:-1}" --count "${XPL_COUNT:-100}" --out "$2/differences"
