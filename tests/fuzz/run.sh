#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets of a build with libFuzzer.  tests/fuzz/run.sh BUILD SECONDS [TARGET...]
# All targets together take SECONDS, as many at a time as there are cores.  What they find new is
# kept below BUILD/found and used again; a crash's input is kept below BUILD/crashes, to be copied to
# tests/fuzz/corpus/TARGET when it is mended.  $XPL_SEED: the first random seed, default 1.
# $XPL_FUZZ_RUNS: so many executions of all targets together instead of SECONDS.
# One "passed|failed fuzz: TARGET" a line at the end of the output.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1 seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(cd tests/fuzz && for f in fuzz_*.c; do [ "$f" = fuzz_main.c ] || echo "$f"; done |
    sed 's/^fuzz_//; s/\.c$//')
jobs=$(nproc)
mkdir -p "$build/found" "$build/crashes"
each=$((seconds * jobs / $#))
[ "$each" -gt 0 ] || each=1
until=-max_total_time=$each
[ -z "${XPL_FUZZ_RUNS:-}" ] || until=-runs=$((XPL_FUZZ_RUNS / $# + 1))
run_target() {
    local target=$1 build=$2 until=$3
    mkdir -p "$build/found/$target" "$build/crashes/$target"
    if "$build/tests/fuzz/fuzz_$target" -seed="${XPL_SEED:-1}" "$until" -timeout=25 \
        -rss_limit_mb=2560 -max_len=65536 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$build/crashes/$target/" "$build/found/$target" "tests/fuzz/corpus/$target" \
        >"$build/crashes/$target.log" 2>&1; then
        echo "$target: $(sed -n 's/stat::number_of_executed_units: *//p' "$build/crashes/$target.log") runs"
    else
        tail -40 "$build/crashes/$target.log"
        echo "$target: the input is in $build/crashes/$target"
        touch "$build/crashes/$target.failed"
    fi
}
export -f run_target
rm -f "$build"/crashes/*.failed
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_target "$@"' run {} "$build" "$until"
for target in "$@"; do
    if [ -e "$build/crashes/$target.failed" ] || [ ! -s "$build/crashes/$target.log" ]; then
        echo "failed fuzz: $target"
    else
        echo "passed fuzz: $target"
    fi
done
