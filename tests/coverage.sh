#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of analysis/ by the unit, golden and fuzz suites, and by a differential run where Python and
# the real XProf are there.   tests/coverage.sh [COUNT of generated profiles, 150]
# Needs gcovr (Debian package).  The last line is the percentage; below 97 it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${XPL_BUILD:-$PWD/build}/coverage
count=${1:-150}
if [ -e "$dir/build.ninja" ]; then
    meson configure "$dir" -Db_coverage=true -Dfaults=true >/dev/null
else
    # Several threads count the same lines.
    meson setup "$dir" -Db_coverage=true -Dfaults=true -Dbuildtype=debug \
        -Dc_args=-fprofile-update=atomic >/dev/null
fi
ninja -C "$dir" >/dev/null
find "$dir" -name '*.gcda' -delete
meson test -C "$dir" --no-rebuild --suite unit --suite golden --suite fault --suite fuzz --timeout-multiplier 4 | tail -12 || true
if [ "$count" -gt 0 ]; then
    python=$(tests/parity/setup.sh)
    "$python" tests/parity/differential.py --build "$dir" --count "$count" --shrink 0 --out "$dir/differences" || true
fi
gcovr --root . --object-directory "$dir" --filter 'analysis/' --exclude-unreachable-branches \
    --txt "$dir/coverage.txt" --json-summary "$dir/coverage.json" "$dir" >/dev/null
grep -E '^(analysis|TOTAL)' "$dir/coverage.txt" || true
python3 - "$dir/coverage.json" <<'PYTHON'
import json
import sys
with open(sys.argv[1]) as f:
    percent = json.load(f)["line_percent"]
print(f"line coverage of analysis/: {percent}%")
sys.exit(percent < 97)
PYTHON
