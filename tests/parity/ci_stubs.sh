#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ci_stubs.sh PYTHON BUILD: clients made of generated stubs (README.md's among them), and of server reflection alone.
set -eu
here=$(dirname "$0")
timeout 300 "$1" "$here/stub_client.py" --build "$2"
timeout 300 "$1" "$here/readme_client.py" --build "$2"
exec timeout 300 "$1" "$here/reflection_client.py" --build "$2"
