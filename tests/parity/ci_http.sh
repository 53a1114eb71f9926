#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_http.sh PYTHON BUILD: XProf's HTTP routes on the real server and on ours.
set -eu
exec timeout 600 "$1" "$(dirname "$0")/http_routes.py" --build "$2"
