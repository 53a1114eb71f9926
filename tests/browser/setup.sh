#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environment that drives the browser.  Usage: tests/browser/setup.sh
# Playwright comes from PyPI without a browser of its own: Debian's chromium is used (deploy/setup-debian.sh test).
# The environment is $XPL_BROWSER_VENV, or browser-venv below $XPL_BUILD (default build/).
set -eu
cd "$(dirname "$0")/../.."
venv=${XPL_BROWSER_VENV:-${XPL_BUILD:-$PWD/build}/browser-venv}
needed="playwright==1.65.2 axe-playwright-python==0.1.8 pillow==13.0.0"
[ "$(cat "$venv/.made" 2>/dev/null)" = "$needed" ] && exit 0
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check $needed # several words
echo "$needed" >"$venv/.made"
