#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The long forms of what CI runs in short, and what takes too long for CI.  Run before a release.
# Usage: tests/slow.sh [SUITE...]
#   fuzz          libFuzzer on every parser, $XPL_FUZZ_SECONDS in all (default 3600)
#   differential  2,000 random profiles against the real XProf
#   oracle        CPU profiles against a recount by brute force; $XPL_CORPUS: more profiles
#   iree          2,000 bundles of IREE made by chance, and fresh captures of programs on three drivers,
#                 against iree-profile; $XPL_CORPUS: recorded ones
#   tensorflow    captures of TensorFlow's profiler server
#   programs      programs of TensorFlow, Keras and PyTorch/XLA that know why they are slow, and what we say of them
#   coverage      lines of analysis/ that unit, golden, fault and fuzz tests reach: 97% at least
#   store         the store's test with threads, 200 times, four at once and under load
#   cluster       the demonstration of a fleet with 256 hosts; workers killed, frozen and ended at 200
#                 random moments ($XPL_SEED); 10,000 hosts simulated; SeaweedFS timed beside curl, of
#                 which 10,000 keys are listed
#   hostile       attacks on real daemons, whole: hours (tests/hostile/README.md has the parameters);
#                 $XPL_FUZZ_RUNS executions of the fuzz targets (default 100,000,000)
#   packages      wheel, Debian packages and container image: built, installed in bare roots, and asked
#   analyzers     what CI runs, and clang's own analyzer
#   bench         figures against XProf and xprof-rs; $XPL_CORPUS: large profiles
# Without a SUITE: all of them, in this order.  Builds go below build/, or $XPL_BUILD.  Ends with
# the time of each suite; the last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/results.sh
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(fuzz differential oracle iree tensorflow programs coverage store cluster packages hostile analyzers bench)
corpus=()
[ -z "${XPL_CORPUS:-}" ] || corpus=(--corpus "$XPL_CORPUS")

# needs_xprof SUITE: a release build, and the real XProf, whose python is $python then.
needs_xprof() {
    configure_release && compile "$1" release || return
    check "$1: environment of XProf" tests/parity/setup.sh
    python=${XPL_PARITY_VENV:-$build/parity-venv}/bin/python
}

suite_fuzz() {
    fuzz "${XPL_FUZZ_SECONDS:-3600}"
}
suite_differential() {
    needs_xprof differential || return
    check "differential: 2,000 profiles" timeout 5400 "$python" tests/parity/differential.py \
        --build "$build/release" --seed "${XPL_SEED:-1}" --count 2000 --out "$build/release/differences"
    check "differential: graphs of 1,000 HLO programs" timeout 3600 "$python" tests/parity/hlo_graph.py \
        --build "$build/release" --seed "${XPL_SEED:-1}" --count 1000 --out "$build/release/differences" "${corpus[@]}"
    check "differential: text of 2,000 HLO programs" timeout 3600 "$python" tests/parity/hlo_text.py \
        --build "$build/release" --seed "${XPL_SEED:-1}" --count 2000 --out "$build/release/differences" "${corpus[@]}"
}
suite_oracle() {
    needs_xprof oracle || return
    check "oracle: profiles" timeout 3600 "$python" tests/parity/run.py --build "$build/release" --oracle \
        "${corpus[@]}"
}
suite_iree() {
    needs_xprof iree || return
    check "iree: 2,000 bundles" timeout 18000 "$python" tests/iree/live.py "$build/release/cli/xplanectl" \
        "$(dirname "$python")/iree-profile" 2000 "${XPL_SEED:-1}"
    check "iree: 500 changed bundles" timeout 7200 "$python" tests/iree/live.py \
        "$build/release/cli/xplanectl" "$(dirname "$python")/iree-profile" changed 500 "${XPL_SEED:-1}"
    check "iree: compiler" "$python" -m pip install --quiet --disable-pip-version-check \
        iree-base-compiler==3.13.0
    local driver
    for driver in local-sync local-task vulkan; do
        check "iree: programs on $driver" timeout 3600 "$python" tests/iree/programs.py \
            "$build/release/cli/xplanectl" "$(dirname "$python")/iree-profile" "$driver"
    done
    [ ! -d "${XPL_CORPUS:-}/iree" ] || check "iree: recorded bundles" timeout 3600 "$python" \
        tests/iree/compare.py "$build/release/cli/xplanectl" "$XPL_CORPUS/iree"
}
suite_tensorflow() {
    configure_release && compile tensorflow release || return
    local log=$build/tensorflow.log
    XPL_BUILD="$build" tests/capture/run_slow.sh "$build/release" | tee "$log"
    collect "$log" tensorflow 's/^(passed|failed|skipped) +(.*)  \[.*/\1 tensorflow: \2/p'
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "tensorflow: the run ended early"
}
suite_programs() {
    configure_release && compile programs release || return
    local log=$build/programs.log
    XPL_BUILD="$build" tests/programs/run_slow.sh "$build/release" | tee "$log"
    collect "$log" programs 's/^(passed|failed|skipped) +(.*)  \[.*/\1 programs: \2/p'
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "programs: the run ended early"
}
suite_coverage() {
    check "coverage: analysis/" timeout 7200 tests/coverage.sh 0
}
suite_store() {
    CC="ccache clang" configure asan -Dfaults=true -Db_lundef=false -Db_sanitize=address,undefined &&
        compile store asan tests/unit/unit_store_threads || return
    local log=$build/store.log load=() i
    for i in $(seq "$(nproc)"); do
        while :; do :; done &
        load+=($!)
    done
    seq 200 | xargs -P 4 -I{} sh -c 'if "$1" >"$2.$3" 2>&1; then echo "run $3 passed"; else cat "$2.$3"; fi; rm -f "$2.$3"' \
        run "$build/asan/tests/unit/unit_store_threads" "$log" {} | tee "$log"
    kill "${load[@]}" && wait "${load[@]}" 2>/dev/null
    i=$(grep -c '^run [0-9]* passed$' "$log")
    check "store: threads, $i of 200 runs passed" [ "$i" -eq 200 ]
}
suite_cluster() {
    tests/cluster/setup.sh "$build/cluster-venv" && export XPL_CLUSTER_VENV=$build/cluster-venv
    configure_release && compile cluster release || return
    mkdir -p "$build/cluster-bin"
    ln -sf "$build/release/server/xplaned" "$build/release/cli/xplanectl" "$build/cluster-bin/"
    check "cluster: the demonstration" env XPL_BIN="$build/cluster-bin" deploy/cluster-demo.sh 256
    check "cluster: object stores, timed" timeout 600 tests/cluster/measure_objects.py --build "$build/release"
    check "cluster: simulation of 10,000 hosts" python3 tests/cluster/simulate.py --check --hosts 10000
    CC="ccache gcc" configure gcc -Dfaults=true &&
        compile "cluster: moments" gcc server/xplaned tests/cluster/cluster_fronts || return
    check "cluster: 200 random moments" timeout 3600 env -C "$build/gcc" XPLANED="$build/gcc/server/xplaned" \
        XPL_TEST_DATA="$PWD/tests/data" XPL_MOMENTS="${XPL_MOMENTS:-200}" tests/cluster/cluster_fronts random
    check "cluster: behind a pooler, and without connections" meson test -C "$build/gcc" --suite long
}
suite_hostile() {
    configure_release && compile hostile release && hostile "$build/release"
    XPL_FUZZ_RUNS=${XPL_FUZZ_RUNS:-100000000} fuzz 0
}
suite_packages() {
    packages
}
suite_analyzers() {
    CC="ccache gcc" configure gcc -Dfaults=true && compile analyzers gcc || return
    analyzers --deep
}
suite_bench() {
    check "bench: it runs" timeout 3600 tests/bench/run.py --build "$build/bench" "${corpus[@]}"
    configure_release && compile bench release &&
        check "bench: programs" meson test -C "$build/release" --no-rebuild --benchmark
}

deploy/setup-debian.sh test || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
run_all suite "${suites[@]}"
finish
