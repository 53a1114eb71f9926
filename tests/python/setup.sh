#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Python client's wheel and installs it twice, with the newest packages and with the oldest
# that it allows: python-venv and python-oldest-venv below $XPL_BUILD (default build/).
# Usage: tests/python/setup.sh [newest], which leaves out the second, and JAX and Keras.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${XPL_BUILD:-$(cd "$root" && pwd)/build}
mkdir -p "$build"
rm -rf "$build/python-wheel"
# A copy of what a checkout has: what pip builds in place would lie among the sources.
"${PYTHON:-python3}" -m venv "$build/python-build-venv"
"$build/python-build-venv/bin/python" -m pip --quiet --disable-pip-version-check wheel --no-deps \
    -w "$build/python-wheel" "$root/client/python"
kinds="newest oldest"
[ $# -eq 0 ] || kinds=$1
for kind in $kinds; do
    case $kind in newest) kind= ;; *) kind=-$kind ;; esac
    venv=$build/python$kind-venv
    wanted=$here/requirements$kind.txt
    if ! cmp -s "$wanted" "$venv/.xplaned-requirements"; then
        rm -rf "$venv"
        "${PYTHON:-python3}" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"
        cp "$wanted" "$venv/.xplaned-requirements"
    fi
    [ $# -ne 0 ] || [ -n "$kind" ] ||
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements-programs.txt"
    # With its dependencies: what is pinned satisfies them, or this fails.
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --force-reinstall --no-deps \
        "$build"/python-wheel/*.whl
    "$venv/bin/python" -m pip check
done
