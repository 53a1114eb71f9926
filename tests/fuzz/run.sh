#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets of a build with libFuzzer.  tests/fuzz/run.sh BUILD SECONDS [TARGET...]
# All targets together take SECONDS, as many at a time as there are cores.  What they find new is
# kept below BUILD/found and used again; a crash's input is kept below BUILD/crashes, to be copied to
# tests/fuzz/corpus/TARGET when it is mended.  $XPL_SEED: the first random seed, default 1.
# $XPL_FUZZ_RUNS: so many executions of all targets together instead of SECONDS, in rounds of up to a
# minute for each target, of which the last ends early.  The slowest execute a thousandth of the
# fastest: half of the time is for all alike, half for the fastest quarter.  BUILD/crashes/TARGET.runs
# has the count of each.
# One "passed|failed fuzz: TARGET" a line at the end of the output.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1 seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(cd tests/fuzz && for f in fuzz_*.c; do [ "$f" = fuzz_main.c ] || echo "$f"; done |
    sed 's/^fuzz_//; s/\.c$//')
jobs=$(nproc)
mkdir -p "$build/found" "$build/crashes"
sum() { cat "$build"/crashes/*.runs 2>/dev/null | awk '{ n += $1 } END { printf "%d\n", n }'; }
# enough: no more executions are asked for.
enough() { [ -n "${XPL_FUZZ_RUNS:-}" ] && [ "$(sum)" -ge "$XPL_FUZZ_RUNS" ]; }
run_target() {
    local target=$1 build=$2 seconds=$3 seed=$4 runs
    # Each target runs once at least.
    enough && [ -e "$build/crashes/$target.runs" ] && return
    mkdir -p "$build/found/$target" "$build/crashes/$target"
    if "$build/tests/fuzz/fuzz_$target" -seed="$seed" -max_total_time="$seconds" -timeout=25 \
        -rss_limit_mb=2560 -max_len=65536 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$build/crashes/$target/" "$build/found/$target" "tests/fuzz/corpus/$target" \
        >"$build/crashes/$target.log" 2>&1; then
        runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$build/crashes/$target.log")
        echo $(($(cat "$build/crashes/$target.runs" 2>/dev/null || echo 0) + ${runs:-0})) >"$build/crashes/$target.new"
        mv "$build/crashes/$target.new" "$build/crashes/$target.runs"
    else
        tail -40 "$build/crashes/$target.log"
        echo "$target: the input is in $build/crashes/$target"
        touch "$build/crashes/$target.failed"
    fi
}
export -f sum enough run_target
# round SECONDS SEED TARGET...: so long for each.
round() {
    local seconds=$1 seed=$2
    shift 2
    printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_target "$@"' run {} "$build" "$seconds" "$seed"
}
# fastest N: the targets that executed most.
fastest() {
    (cd "$build/crashes" && grep -H . -- *.runs) | sort -t : -k 2 -nr | head -n "$1" | sed 's/\.runs:.*//'
}

rm -f "$build"/crashes/*.failed "$build"/crashes/*.runs
seed=${XPL_SEED:-1}
each=$((seconds * jobs / $#))
[ "$each" -gt 0 ] || each=1
if [ -z "${XPL_FUZZ_RUNS:-}" ]; then
    round "$each" "$seed" "$@"
else
    each=1 quarter=$((($# + 3) / 4))
    while ! enough && ! ls "$build"/crashes/*.failed >/dev/null 2>&1; do
        round "$each" "$seed" "$@"
        round $((each * $# / quarter)) "$((seed + 1))" $(fastest "$quarter")
        echo "round of $each s each with seeds $seed and $((seed + 1)): $(sum) runs"
        seed=$((seed + 2)) each=$((each * 2 < 60 ? each * 2 : 60))
    done
fi
for target in "$@"; do
    echo "$target: $(cat "$build/crashes/$target.runs" 2>/dev/null || echo 0) runs"
done
for target in "$@"; do
    if [ -e "$build/crashes/$target.failed" ] || [ ! -s "$build/crashes/$target.log" ]; then
        echo "failed fuzz: $target"
    else
        echo "passed fuzz: $target"
    fi
done
