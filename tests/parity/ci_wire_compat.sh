#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_wire_compat.sh PYTHON BUILD: our .proto files against the descriptors in the PyPI packages.
set -eu
here=$(dirname "$0")
exec timeout 120 "$1" "$here/wire_compat.py" --profiles "$here/../data"
