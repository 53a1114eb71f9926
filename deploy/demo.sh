#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, and shows the main job on the profiles in this repository: starts the daemon,
# asks every tool, prints a summary, stops.  Usage: deploy/demo.sh [SESSION]
# With $XPL_BIN (a directory with xplaned and xplanectl) nothing is built.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${XPL_BIN:-}
if [ -z "$bin" ]; then
    deploy/setup-debian.sh build
    [ -e build/demo/build.ninja ] || meson setup build/demo -Dbuildtype=release
    ninja -C build/demo
    bin=build/bin
    mkdir -p "$bin"
    ln -sf ../demo/server/xplaned ../demo/cli/xplanectl "$bin/"
fi
work=$(mktemp -d)
daemon=
cleanup() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || true; }
    rm -rf "$work"
}
trap cleanup EXIT
ctl() { "$bin/xplanectl" --server "$address" "$@"; }

echo "==> xplaned --logdir tests/data/logdir"
"$bin/xplaned" --logdir tests/data/logdir --state-dir "$work/state" --listen 127.0.0.1:0 --http off 2>"$work/log" &
daemon=$!
for _ in $(seq 100); do
    address=$(sed -n 's/.*msg=listening service=grpc address=\([^ ]*\).*/\1/p' "$work/log")
    [ -z "$address" ] || break
    kill -0 "$daemon" 2>/dev/null || { cat "$work/log"; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "the daemon does not listen:"; cat "$work/log"; exit 1; }

echo "==> xplanectl sessions"
ctl sessions
session=${1:-$(ctl sessions --json | python3 -c '
import json, sys
sessions = json.load(sys.stdin)
print(max(sessions, key=lambda s: (s["hosts"] == 1, s["bytes"]))["name"])')}
echo
echo "==> every tool on $session"
for tool in $(ctl tools "$session"); do
    began=$(date +%s%N)
    ctl tool "$tool" "$session" -o "$work/answer"
    printf '%-26s %9d bytes  %4d ms\n' "$tool" "$(stat -c %s "$work/answer")" \
        $((($(date +%s%N) - began) / 1000000))
done
echo
echo "==> xplanectl summary $session"
ctl summary "$session"
echo
echo "==> stopping"
kill "$daemon"
wait "$daemon"
daemon=
echo "done"
