#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_iree.sh PYTHON BUILD: reports on 100 bundles of IREE, made by chance, against iree-profile.
set -eu
exec timeout 1200 "$1" "$(dirname "$0")/../iree/live.py" "$2/cli/xplanectl" \
    "$(dirname "$1")/iree-profile" 100
