#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asks the real XProf (PyPI, see tests/parity/setup.sh) for the expected answers again, all or those of
# the named cases, and records them in versions.txt, which refuses an answer that changed while the
# versions stayed.  Read the diff before committing it.   tests/golden/update.sh [CASE...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../parity/setup.sh")
"$python" "$here/../parity/make_golden.py" "$@"
exec "$here/versions.py" --update
