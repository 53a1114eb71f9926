#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_exports.sh PYTHON BUILD: exported traces as Perfetto's own code reads them.
set -eu
here=$(dirname "$0")
exec timeout 600 "$1" "$here/check_export.py" "$2/cli/xplanectl" \
    "$here"/../golden/cases/trace_*/host.xplane.pb "$here"/../golden/cases/gen_tpu_steps/*.xplane.pb \
    "$here"/../data/logdir/accel/plugins/profile/*/*.xplane.pb
