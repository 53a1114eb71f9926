#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_aggregator.sh PYTHON BUILD: the real XProf server with xplaned as its worker.
set -eu
exec timeout 600 "$1" "$(dirname "$0")/aggregator.py" --build "$2"
