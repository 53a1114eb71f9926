#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many machines, shown on one: PostgreSQL, a front and four workers convert a session of 256 hosts.
# One worker is killed in the middle.  Prints who made what, and compares the answer with that of a
# single daemon.  Usage: deploy/cluster-demo.sh [HOSTS]
# Needs PostgreSQL's server of Debian (deploy/setup-debian.sh test), which it starts for itself below
# a temporary directory.  With $XPL_BIN (a directory with xplaned and xplanectl) nothing is built.
set -euo pipefail
cd "$(dirname "$0")/.."
hosts=${1:-256}
workers=4
bin=${XPL_BIN:-}
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1) || true
[ -n "$pg" ] || { echo "no server of PostgreSQL: apt-get install postgresql-15" >&2; exit 1; }
[ -n "$bin" ] || . deploy/demo-programs.sh
work=$(mktemp -d)
declare -A pids=()
cleanup() {
    local p
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT

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
for _ in $(seq 100); do
    sql 'SELECT 1' >/dev/null 2>&1 && break
    sleep 0.1
done
export XPLANED_STORE="postgresql://postgres@/postgres?host=$work/pg"

# ---- the session: hosts of other bytes each, as a shared file system has them ----
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

# ---- a front, four workers ----
start() { # NAME FLAG...
    local name=$1
    shift
    "$bin/xplaned" --logdir "$work/logs" --state-dir "$work/$name" "$@" 2>"$work/$name.log" &
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
for w in $(seq $workers); do start "worker$w" --role worker --workers 1 --job-lease 2s; done
start front --role front --listen 127.0.0.1:0 --http off
front=$(address_of front)
for _ in $(seq 200); do
    [ "$(sql "SELECT count(*) FROM daemons WHERE role='worker'")" = $workers ] && break
    sleep 0.1
done

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
kill -9 "${pids[worker1]}"
echo "==> worker1 is killed, with $(sql "SELECT count(*) FROM jobs") jobs left"
wait "${pids[worker1]}" 2>/dev/null || true
unset 'pids[worker1]'
wait $asking
echo "    answered after $((($(date +%s%N) - began) / 1000000)) ms, $(stat -c %s "$work/answer") bytes"

echo "==> who made what"
printf '%-10s %10s %14s\n' worker products 'of these lost'
for w in $(seq $workers); do
    log=$work/worker$w.log
    printf '%-10s %10d %14d%s\n' "worker$w" "$(grep -c 'msg=published' "$log" || true)" \
        "$(grep 'msg=published' "$log" | grep -vc 'attempt=1\b' || true)" \
        "$([ "$w" != 1 ] || echo '   killed')"
done
echo "products: $(sql "SELECT count(*) FROM results WHERE kind='product'"), jobs left:" \
    "$(sql "SELECT count(*) FROM jobs")"

echo "before: $(grep -c '"worker"' "$work/fleet.csv") workers and $(grep -c '"front"' "$work/fleet.csv") front"
echo "==> the same from a single daemon"
unset XPLANED_STORE
start single --no-prefetch --listen 127.0.0.1:0 --http off
"$bin/xplanectl" --server "$(address_of single)" tool overview_page run -o "$work/expected"
cmp "$work/answer" "$work/expected"
echo "equal, byte for byte"
