#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, and shows the main job on the profiles in this repository: starts the daemon,
# asks every tool, prints a summary, stops.  Usage: deploy/demo.sh [SESSION]
# With $XPL_BIN (a directory with xplaned and xplanectl) nothing is built; with $XPL_SERVER as well
# (the address of a daemon on these profiles) none is started.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${XPL_BIN:-}
[ -n "$bin" ] || . deploy/demo-programs.sh
work=$(mktemp -d)
address=${XPL_SERVER:-}
daemon=
cleanup() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || true; }
    rm -rf "$work"
}
trap cleanup EXIT
ctl() { "$bin/xplanectl" --server "$address" "$@"; }

start() {
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
}
[ -n "$address" ] || start

echo "==> xplanectl sessions"
ctl sessions
session=${1:-accel/mi300_jax_attention} # it has what every tool shows
echo
echo "==> every tool on $session"
module=$(ctl tool hlo_modules "$session" | sed -nE '1s/.*"program_id":"([0-9]+)".*/\1/p')
for tool in $(ctl tools "$session"); do
    choice=()
    if [ "$tool" = graph_viewer ] || [ "$tool" = memory_viewer ]; then # of one HLO program
        [ -n "$module" ] || continue
        choice=(--option "program_id=$module")
    fi
    began=$(date +%s%N)
    ctl tool "$tool" "$session" ${choice[@]+"${choice[@]}"} -o "$work/answer"
    printf '%-26s %9d bytes  %4d ms\n' "$tool" "$(stat -c %s "$work/answer")" \
        $((($(date +%s%N) - began) / 1000000))
done
echo
echo "==> xplanectl summary $session"
ctl summary "$session"
if [ -n "$daemon" ]; then
    echo
    echo "==> stopping"
    kill "$daemon"
    wait "$daemon"
    daemon=
fi
echo "done"
