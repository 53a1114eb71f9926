#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documents as a site.  Usage: deploy/site/build.sh OUT
# The first time it installs mkdocs-material from PyPI to $XPL_BUILD/site-venv (default build/); the build itself, and
# the pages, need no network.  A link or an anchor that leads nowhere fails it.
set -eu
cd "$(dirname "$0")/../.."
[ $# = 1 ] || { sed -n 's/^# //p' "$0" | sed -n 2,4p >&2; exit 2; }
venv=${XPL_BUILD:-$PWD/build}/site-venv needed="mkdocs-material==9.8.2 mkdocs==1.6.1"
if [ "$(cat "$venv/.made" 2>/dev/null)" != "$needed" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check $needed # several words
    echo "$needed" >"$venv/.made"
fi
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
exec env DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=true "$venv/bin/mkdocs" build --quiet --strict --config-file deploy/site/mkdocs.yml --site-dir "$out"
