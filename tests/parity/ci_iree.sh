#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_iree.sh PYTHON BUILD: reports on 100 bundles of IREE, made by chance, and on fresh captures of
# local-sync, against iree-profile.
set -eu
timeout 1200 "$(dirname "$0")/../iree/programs.py" "$2/cli/xplanectl" "$(dirname "$1")/iree-profile" \
    local-sync
exec timeout 1200 "$1" "$(dirname "$0")/../iree/live.py" "$2/cli/xplanectl" \
    "$(dirname "$1")/iree-profile" 100
