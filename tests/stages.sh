# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The stages of tests/run.sh and tests/slow.sh: one function each, and a row of tests/stages.txt. Sourced after
# results.sh. Stages with a short and a long form run the long one when $whole is set, which slow.sh does.
every_change=(setup static+environments build_gcc gcc+build_asan asan+build_tsan tsan+smoke roots+hostile)
release=(setup static environments build_gcc gcc long asan sanitizers tsan analyzers release roots packages stranger fuzz parity
    capture python site browser hostile differential oracle metamorphic iree tensorflow programs coverage store cluster smoke bench chance)
whole=${whole:-}
corpus=()
[ -z "${XPL_CORPUS:-}" ] || corpus=(--corpus "$XPL_CORPUS")
# Environments of Python, made by stage_environments or by the stage that needs one.
parity_venv=${XPL_PARITY_VENV:-$build/parity-venv}
capture_venv=${XPL_CAPTURE_VENV:-$build/capture-venv}
browser_venv=${XPL_BROWSER_VENV:-$build/browser-venv}
export XPL_BUILD=$build

# ---- what stages share ----

# suites STAGE DIR MESON_TEST_ARG...: runs the tests of a build, a result each. Many tests wait most of their time, so
# three times as many as processors run at once. With $shuffle they run in random order, 50 at a time.
suites() {
    local stage=$1 dir=$build/$2 some=()
    shift 2
    if [ -z "${shuffle:-}" ]; then
        run_tests "$stage" "$dir" "$@"
        return
    fi
    meson test -C "$dir" --no-rebuild --list "$@" 2>/dev/null | sed -n 's,.* / ,,p' | shuf >"$dir/order"
    while mapfile -t -n 50 some && [ ${#some[@]} -gt 0 ]; do
        run_tests "$stage" "$dir" "$@" "${some[@]}"
    done <"$dir/order"
    [ -s "$dir/order" ] || result failed "$stage: no list of tests"
}
run_tests() {
    local stage=$1 dir=$2 status
    shift 2
    rm -f "$dir/meson-logs/testlog.json"
    meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes $((3 * $(nproc))) "$@" </dev/null | tail -60
    status=${PIPESTATUS[0]}
    take_over "$stage" "$status" "$(python3 tests/meson_results.py "$stage" "$dir/meson-logs/testlog.json")"
}
suites_asan() {
    local stage=$1
    shift
    ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        suites "$stage" asan --timeout-multiplier 4 "$@"
}
suites_tsan() {
    local stage=$1
    shift
    LD_PRELOAD=$build/tsan_connect.so TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1" \
        suites "$stage" tsan --timeout-multiplier 4 "$@"
}
# build_KIND STAGE [TARGET...]: of the sources as they are now, whatever ran before. Other stages drive the programs of
# build_gcc, too.
build_gcc() {
    CC="ccache gcc" configure gcc -Dc_args=-g1 -Dfaults=true && compile "$1" gcc "${@:2}"
}
build_asan() {
    CC="ccache clang" configure asan -Dc_args=-g1 -Dfaults=true -Db_lundef=false -Db_sanitize=address,undefined && compile "$1" asan
}
build_tsan() {
    CC="ccache gcc" configure tsan -Dc_args=-g1 -Db_sanitize=thread && compile "$1" tsan tests_threads &&
        gcc -O2 -Wall -Wextra -Werror -shared -fPIC tests/tsan_connect.c -o "$build/tsan_connect.so"
}
# Only what is installed and TARGETs: to build all tests with LTO takes longer than everything else.
build_release() {
    CC="ccache gcc" configure release -Dbuildtype=release -Db_lto=true --prefix=/usr &&
        compile "$1" release $(installed_targets) "${@:2}"
}
make_environments() {
    tests/parity/setup.sh && tests/capture/setup.sh && tests/python/setup.sh newest && tests/browser/setup.sh
} >/dev/null
# run_and_collect STAGE SECONDS COMMAND...: a program that prints lines "passed|failed|skipped NAME  [SECONDS]" and ends
# with their counts.
run_and_collect() {
    local stage=$1 seconds=$2 log=$build/$1.log status
    shift 2
    timeout "$seconds" "$@" | tee "$log"
    status=${PIPESTATUS[0]}
    take_over "$stage" "$status" \
        "$(sed -nE "s/  \[[0-9.]+ s\]//; s/: [0-9.]+ s$//; s/^(passed|failed|skipped) +/\1 $stage: /p" "$log")"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "$stage: the run ended early"
}
# needs_xprof STAGE [TARGET...]: a release build, and the real XProf.
needs_xprof() {
    build_release "$@" && check "$1: environment of XProf" tests/parity/setup.sh
}

# ---- every change ----

stage_setup() {
    deploy/setup-debian.sh test >"$build/setup-debian.log" 2>&1 && return
    tail -20 "$build/setup-debian.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
stage_static() {
    check "static: clang-format" bash -o pipefail -c \
        'git ls-files "*.c" "*.h" | xargs clang-format-14 --dry-run -Werror'
    check "static: layers" tests/check_layers.sh
    local part
    for part in folders names unused prefixes parameters paths waits topics words macros readmes doc-paths links markdown wraps; do
        check "static: $part" tests/check_structure.py --only "$part"
    done
    check "static: licences" tests/check_spdx.py
    check_or_skip "static: messages of commits" tests/check_commits.py
    check "static: versions of answers" tests/golden/versions.py
    check "static: what must hold has tests" tests/hardening_docs.py
    check "static: differences have tests" tests/difference_docs.py
    check "static: headers alone" tests/headers.sh gcc
    check "static: the checks themselves" tests/test_checks.py
}
# What smoke needs, and the checks of deploy/, which are skipped without theirs.
stage_environments() {
    check "environments: smoke" make_environments
    check "environments: cluster" tests/cluster/setup.sh "$build/cluster-venv"
}
stage_build_gcc() {
    build_gcc build_gcc
}
stage_gcc() {
    [ ! -d "$build/cluster-venv" ] || export XPL_CLUSTER_VENV=$build/cluster-venv
    build_gcc gcc || return
    suites gcc gcc --no-suite long
    check "gcc: a tool is one file and one row" tests/toy_tool.sh
    check "gcc: a format is one file and one row" tests/toy_format.sh
}
stage_build_asan() {
    build_asan build_asan
}
stage_asan() {
    build_asan asan || return
    suites_asan asan --no-suite long --suite unit --suite fault --suite fuzz --suite server
}
stage_build_tsan() {
    build_tsan build_tsan
}
stage_tsan() {
    build_tsan tsan && suites_tsan tsan --no-suite long --suite threads
}
# One of each kind that `stage_gcc` has not: its full suite is a stage of the release.
stage_smoke() {
    build_gcc smoke || return
    check "smoke: environments" make_environments
    run_and_collect smoke 300 "$parity_venv/bin/python" tests/capture/run.py "$build/gcc" "$capture_venv/bin/python" \
        "daemon: one_host" "daemon: equal_in_xprof"
    run_and_collect smoke 300 "$build/python-venv/bin/python" tests/python/run.py "$build/gcc"
    run_and_collect smoke 300 "$browser_venv/bin/python" tests/browser/run.py "$build/gcc" --smoke
    run_and_collect smoke 120 "$parity_venv/bin/python" tests/metamorphic/run.py "$build/gcc" --quick \
        --python "$build/python-venv/bin/python"
    check "smoke: 20 random profiles against XProf" env XPL_COUNT=20 tests/parity/ci_differential.sh \
        "$parity_venv/bin/python" "$build/gcc"
}
stage_roots() {
    local sets=(build)
    if [ -n "$whole" ]; then
        [ -e "$build/dest/usr/bin/xplaned" ] || stage_release
        sets=(run build test)
    fi
    timeout 1200 tests/roots.sh "$build/roots" "$build/dest" "${sets[@]}" | tee "$build/roots.log"
    collect "$build/roots.log" roots 's/^(passed|failed|skipped) roots: /&/p'
}
# The whole form takes hours (tests/hostile/README.md has its parameters).
stage_hostile() {
    local form=(--quick) dir=gcc
    [ -z "$whole" ] || form=() dir=release
    if [ -n "$whole" ]; then build_release hostile tests/capture/fake_profiler; else build_gcc hostile; fi || return
    run_and_collect hostile 86400 tests/hostile/run.py --build "$build/$dir" ${form[@]+"${form[@]}"}
}

# ---- release ----

stage_long() {
    [ ! -d "$build/cluster-venv" ] || export XPL_CLUSTER_VENV=$build/cluster-venv
    build_gcc long && suites long gcc --suite long
}
# The suites that `stage_asan` and `stage_tsan` leave out, and the long tests.
stage_sanitizers() {
    build_asan sanitizers && {
        suites_asan sanitizers --no-suite unit --no-suite fault --no-suite fuzz --no-suite server --no-suite long
        suites_asan sanitizers --suite long
    }
    build_tsan sanitizers && compile sanitizers tsan && suites_tsan sanitizers --suite server --suite long
}
stage_analyzers() {
    [ -e "$build/gcc/proto/libxpl_proto.a" ] || build_gcc analyzers proto/libxpl_proto.a || return
    tests/analyze.py "$build/gcc" ${whole:+--deep} | tee "$build/analyzers.log"
    collect "$build/analyzers.log" analyzers 's/^(passed|failed) analyzers: /&/p'
}
stage_release() {
    build_release release || return
    rm -rf "$build/dest"
    check "release: install" sh -c "DESTDIR='$build/dest' meson install -C '$build/release' --no-rebuild >/dev/null"
    check "release: installed programs" tests/installed.sh "$build/dest"
    check "release: the Dockerfile" tests/image.py "$build/dest"
}
stage_packages() {
    local log=$build/packages.log parts=(user wheel deb)
    [ -z "$whole" ] || parts=()
    deploy/setup-debian.sh package >"$log" 2>&1 || { tail -20 "$log"; result failed "packages: set-up"; return; }
    timeout 3600 tests/packages.sh "$build/packages" ${parts[@]+"${parts[@]}"} | tee "$log"
    collect "$log" packages 's/^(passed|failed|skipped) packages: /&/p'
}
# From the wheel to verdicts in every place where people work, and a gate that fails; the wheel is that of packages, if there is one.
stage_stranger() {
    local wheel log=$build/stranger.log
    wheel=$(find "$build/packages/wheel" -maxdepth 1 -name "xplaned-*.whl" 2>/dev/null | head -1)
    [ -n "$wheel" ] || { deploy/setup-debian.sh package && wheel=$(deploy/wheel/build.sh "$build/stranger-wheel" | tail -1); } >"$log" 2>&1
    timeout 1800 python3 tests/stranger.py "$wheel" "$build/stranger" | tee "$log"
    collect "$log" stranger 's/^(passed|failed) stranger: /&/p'
}
# libFuzzer with AddressSanitizer on every parser, $XPL_FUZZ_SECONDS in all (default 60); the long form: an hour, then
# $XPL_FUZZ_RUNS executions (default 100,000,000).
stage_fuzz() {
    local seconds=60
    [ -z "$whole" ] || seconds=3600
    CC="ccache clang" configure fuzz -Db_sanitize=address -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link \
        -Dfuzz_link_args=-fsanitize=fuzzer && compile fuzz fuzz fuzz_targets || return
    run_fuzz "${XPL_FUZZ_SECONDS:-$seconds}"
    [ -z "$whole" ] || XPL_FUZZ_RUNS=${XPL_FUZZ_RUNS:-100000000} run_fuzz 0
}
run_fuzz() {
    tests/fuzz/run.sh "$build/fuzz" "$1" | tee "$build/fuzz.log"
    collect "$build/fuzz.log" fuzz 's/^(passed|failed) fuzz: /&/p'
}
# The real XProf on the profiles of tests/data, its aggregator, Python stubs, and a short differential run.
stage_parity() {
    build_gcc parity || return
    check "parity: environment" tests/parity/setup.sh
    local step
    # The longest first. Each step has one thread most of the time, so two run at once.
    for step in http run differential hlo_text counters aggregator iree hlo_memory hlo_graph serving stubs tool_lists exports hash_order wire_compat; do
        [ "$(jobs -pr | wc -l)" -lt 2 ] || wait -n
        check_apart "parity: $step" tests/parity/ci_$step.sh "$parity_venv/bin/python" "$build/gcc" &
    done
    wait
}
# Real profiler servers (JAX, PyPI), captured: sessions, outcomes, XProf's answers; programs of JAX with a known cause.
stage_capture() {
    build_gcc capture || return
    check "capture: environment of XProf" tests/parity/setup.sh
    check "capture: environment of JAX" tests/capture/setup.sh
    run_and_collect capture 600 "$parity_venv/bin/python" tests/capture/run.py "$build/gcc" "$capture_venv/bin/python"
    run_and_collect capture 600 "$parity_venv/bin/python" tests/programs/run_jax.py "$build/gcc" "$capture_venv/bin/python"
}
# The Python client with the newest and the oldest packages, its types, the notebook.
stage_python() {
    build_gcc python || return
    check "python: wheel and environments" tests/python/setup.sh
    run_and_collect python 600 "$build/python-venv/bin/python" tests/python/run.py "$build/gcc"
    run_and_collect python 600 "$build/python-oldest-venv/bin/python" tests/python/run.py "$build/gcc"
}
# The documents as a site, whose links lead somewhere and which loads nothing from elsewhere.
stage_site() {
    check "site: environment" deploy/site/build.sh "$build/site"
    check "site: without network" unshare -rn deploy/site/build.sh "$build/site"
    check "site: loads its own files alone" bash -c '! grep -rnE "(src=|<link [^>]*href=|@import |url\()[\"'"'"']?(https?:)?//" '"$build/site"' --include="*.html" --include="*.css"'
}
# Our pages and XProf's interface in chromium; screenshots in build/browser.
stage_browser() {
    build_gcc browser || return
    check "browser: environment" tests/browser/setup.sh
    run_and_collect browser 3600 "$browser_venv/bin/python" tests/browser/run.py "$build/gcc"
    run_and_collect pictures 900 "$browser_venv/bin/python" tests/browser/pictures.py "$build/gcc"
}
stage_differential() {
    needs_xprof differential tests/parity/hlo_text || return
    local python=$parity_venv/bin/python options=(--build "$build/release" --seed "${XPL_SEED:-1}" --out "$build/release/differences")
    check "differential: 2,000 profiles" timeout 5400 "$python" tests/parity/differential.py "${options[@]}" --count 2000
    check "differential: graphs of 1,000 HLO programs" timeout 3600 "$python" tests/parity/hlo_graph.py \
        "${options[@]}" --count 1000 "${corpus[@]}"
    check "differential: text of 2,000 HLO programs" timeout 3600 "$python" tests/parity/hlo_text.py \
        "${options[@]}" --count 2000 "${corpus[@]}"
}
# CPU profiles against a recount by brute force; $XPL_CORPUS: more profiles.
stage_oracle() {
    needs_xprof oracle tests/parity/convert_opstats || return
    check "oracle: HTA" timeout 900 "$(tests/capture/setup.sh hta)" -W ignore tests/parity/peer_hta.py "$build/release"
    check "oracle: profiles" timeout 3600 "$parity_venv/bin/python" tests/parity/run.py --build "$build/release" --oracle \
        "${corpus[@]}"
}
# 2,000 random bundles of IREE, and fresh captures of programs on three drivers, against iree-profile.
stage_iree() {
    needs_xprof iree || return
    local python=$parity_venv/bin/python profile=$parity_venv/bin/iree-profile ctl=$build/release/cli/xplanectl driver
    check "iree: 2,000 bundles" timeout 18000 "$python" tests/iree/live.py "$ctl" "$profile" 2000 "${XPL_SEED:-1}"
    check "iree: 500 changed bundles" timeout 7200 "$python" tests/iree/live.py "$ctl" "$profile" changed 500 "${XPL_SEED:-1}"
    check "iree: compiler" "$python" -m pip install --quiet --disable-pip-version-check iree-base-compiler==3.13.0
    for driver in local-sync local-task vulkan; do
        check "iree: programs on $driver" timeout 3600 "$python" tests/iree/programs.py "$ctl" "$profile" "$driver"
    done
    [ ! -d "${XPL_CORPUS:-}/iree" ] || check "iree: recorded bundles" timeout 3600 "$python" \
        tests/iree/compare.py "$ctl" "$XPL_CORPUS/iree"
}
stage_tensorflow() {
    build_release tensorflow || return
    run_and_collect tensorflow 3600 tests/capture/run_slow.sh "$build/release"
    run_and_collect tensorflow 3600 tests/capture/run_slow.sh "$build/release" pytorch
}
# Every tool and view of profiles that are changed without changing their meaning.
stage_metamorphic() {
    build_gcc metamorphic || return
    check "metamorphic: environment of XProf" tests/parity/setup.sh
    check "metamorphic: environment of the client" tests/python/setup.sh newest
    run_and_collect metamorphic 3600 "$parity_venv/bin/python" tests/metamorphic/run.py "$build/gcc" \
        --python "$build/python-venv/bin/python" "${corpus[@]}"
}
stage_programs() {
    build_release programs || return
    check "programs: environment of JAX" tests/capture/setup.sh
    run_and_collect programs 1800 tests/programs/drift.py "$build/release" "$capture_venv/bin/python"
    run_and_collect programs 3600 tests/programs/run_slow.sh "$build/release"
    local libraries
    libraries=$(tests/capture/setup.sh libraries) || libraries=-
    run_and_collect programs 3600 "$parity_venv/bin/python" tests/programs/battery.py "$build/release" \
        "$capture_venv/bin/python" "$libraries"
}
stage_coverage() {
    check "coverage: analysis/" timeout 7200 tests/coverage.sh 0
}
# The store's test with threads, 200 times, four at once and under load.
stage_store() {
    build_asan store || return
    local log=$build/store.log i
    with_load sh -c 'seq 200 | xargs -P 4 -I{} sh -c "if \"\$1\" store_threads >\"\$2.\$3\" 2>&1; then
        echo \"run \$3 passed\"; else cat \"\$2.\$3\"; fi; rm -f \"\$2.\$3\"" run "$1" "$2" {}' \
        store "$build/asan/tests/unit/unit_storage" "$log" | tee "$log"
    i=$(grep -c '^run [0-9]* passed$' "$log")
    check "store: threads, $i of 200 runs passed" [ "$i" -eq 200 ]
}
# The demonstration of a fleet with 256 hosts; workers killed, frozen and ended at 200 random moments ($XPL_SEED);
# 10,000 hosts simulated; $XPL_SEEDS of the protocol's simulation; SeaweedFS timed beside curl, of which 10,000 keys
# are listed.
stage_cluster() {
    tests/cluster/setup.sh "$build/cluster-venv" && export XPL_CLUSTER_VENV=$build/cluster-venv
    build_release cluster || return
    mkdir -p "$build/cluster-bin"
    ln -sf "$build/release/server/xplaned" "$build/release/cli/xplanectl" "$build/cluster-bin/"
    check "cluster: the demonstration" env XPL_BIN="$build/cluster-bin" deploy/cluster-demo.sh 256
    check "cluster: object stores, timed" timeout 600 tests/cluster/measure_objects.py --build "$build/release"
    check "cluster: simulation of 10,000 hosts" python3 tests/cluster/simulate.py --check --hosts 10000
    build_gcc "cluster: moments" || return
    check "cluster: simulated protocol, ${XPL_SEEDS:-1000000} seeds" timeout 3600 \
        "$build/gcc/tests/simulation/simulation" seeds "${XPL_SEEDS:-1000000}"
    check "cluster: 200 random moments" timeout 3600 env -C "$build/gcc" XPLANED="$build/gcc/server/xplaned" \
        XPL_TEST_DATA="$PWD/tests/data" XPL_MOMENTS="${XPL_MOMENTS:-200}" tests/cluster/cluster_fronts random
}
# Figures against XProf and xprof-rs; $XPL_CORPUS: large profiles.
stage_bench() {
    check "bench: it runs" timeout 3600 tests/bench/run.py --build "$build/bench" "${corpus[@]}"
    build_release bench && compile bench release &&
        check "bench: programs" meson test -C "$build/release" --no-rebuild --benchmark
}
# The stages of every change but builds, ten times in random order. Those of the build with gcc run beside the others,
# so that each has a load on all processors.
stage_chance() {
    build_gcc chance && build_asan chance && build_tsan chance && make_environments || return
    local whole='' shuffle=1 round
    for round in $(seq "${XPL_ROUNDS:-10}"); do
        in_random_order "chance: round $round" gcc smoke hostile >"$build/beside.chance" 2>&1 </dev/null &
        in_random_order "chance: round $round" static asan tsan
        wait $! || result failed "chance: round $round ended early"
        cat "$build/beside.chance"
    done
}
in_random_order() {
    local stage
    for stage in $(shuf -e "${@:2}"); do
        note "$1, $stage"
        "stage_$stage"
    done
    return 0
}
# with_load COMMAND...: beside a busy loop on each processor.
with_load() {
    local load=() i status
    for i in $(seq "$(nproc)"); do
        while :; do :; done &
        load+=($!)
    done
    "$@"
    status=$?
    kill "${load[@]}" && wait "${load[@]}" 2>/dev/null
    return "$status"
}
