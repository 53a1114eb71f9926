#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and runs the tests.  Usage: tests/run.sh [STAGE...]
#   static     formatting, layers, circles, names, sizes of folders, headers, documents
#   gcc        gcc, -Werror, allocation faults on, every suite
#   analyzers  clang-tidy and gcc's -fanalyzer
#   asan       clang, AddressSanitizer and UndefinedBehaviorSanitizer, every suite
#   tsan       gcc, ThreadSanitizer: server and storage
#   release    release build with LTO: install, run what was installed, exported symbols, and
#              whether the Dockerfile fits
#   roots      each package set by itself in a root with nothing else: the README's first command,
#              the installed programs, the static stage (needs root and mmdebstrap)
#   packages   a user's build below a prefix of its own, the wheel, the Debian packages
#   fuzz       libFuzzer with AddressSanitizer on every parser, 60 s in all
#   parity     the real XProf (PyPI) on the profiles of tests/data, its aggregator, Python stubs,
#              and a short differential run
#   capture    real profiler servers (JAX, PyPI), captured: sessions, outcomes, XProf's answers
#   python     the Python client: built, installed with the newest and the oldest packages, its types,
#              the notebook
#   browser    our pages and XProf's interface in chromium; screenshots in build/browser
#   hostile    attacks on real daemons, in short (tests/hostile)
# STAGE+STAGE runs the two beside each other.  Without a STAGE: all of them, in this order, those two
# beside each other of which one computes while the other waits.  Builds go below build/, or
# $XPL_BUILD.  Ends with the time of each stage; the last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/results.sh
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(static gcc analyzers asan tsan release roots packages+browser fuzz parity capture python hostile)
# suites STAGE DIR MESON_TEST_ARG...: builds what the tests need, runs them but the long ones, and takes
# every result over. Many tests wait most of their time, so twice as many as processors run at a time.
suites() {
    local stage=$1 dir=$build/$2
    shift 2
    rm -f "$dir/meson-logs/testlog.json"
    meson test -C "$dir" --print-errorlogs --no-suite long --num-processes $((2 * $(nproc))) "$@" | tail -60
    python3 tests/meson_results.py "$stage" "$dir/meson-logs/testlog.json" >>"$results" ||
        result failed "$stage: no test results"
}

stage_static() {
    check "static: clang-format" sh -c \
        'git ls-files "*.c" "*.h" | xargs clang-format-14 --dry-run -Werror'
    check "static: layers" tests/check_layers.sh
    local part
    for part in folders names prefixes parameters paths waits topics words macros readmes doc-paths markdown wraps; do
        check "static: $part" tests/check_structure.py --only "$part"
    done
    check "static: licences" tests/check_spdx.py
    check "static: messages of commits" tests/check_commits.py
    check "static: versions of answers" tests/golden/versions.py
    check "static: what must hold has tests" tests/hardening_docs.py
    check "static: differences have tests" tests/difference_docs.py
    check "static: headers alone" tests/headers.sh gcc
    check "static: the checks themselves" tests/test_checks.py
}
# build_gcc STAGE [TARGET...]: the build whose programs other stages drive, too: of the sources as they are
# now, whatever ran before.
build_gcc() {
    CC="ccache gcc" configure gcc -Dfaults=true && compile "$1" gcc "${@:2}"
}
stage_gcc() {
    # Without it the checks of deploy/ that need it are skipped, and say so.
    tests/cluster/setup.sh "$build/cluster-venv" && export XPL_CLUSTER_VENV=$build/cluster-venv
    build_gcc gcc && suites gcc gcc
    check "gcc: a tool is one file and one row" tests/toy_tool.sh
}
stage_analyzers() {
    [ -e "$build/gcc/proto/libxpl_proto.a" ] || build_gcc analyzers proto/libxpl_proto.a || return
    analyzers
}
stage_asan() {
    CC="ccache clang" configure asan -Dfaults=true -Db_lundef=false \
        -Db_sanitize=address,undefined || { result failed "asan: configure"; return; }
    ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        suites asan asan --timeout-multiplier 4
}
stage_tsan() {
    CC="ccache gcc" configure tsan -Db_sanitize=thread || { result failed "tsan: configure"; return; }
    gcc -O2 -Wall -Wextra -Werror -shared -fPIC tests/tsan_connect.c -o "$build/tsan_connect.so" ||
        { result failed "tsan: connect"; return; }
    LD_PRELOAD=$build/tsan_connect.so TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1" \
        suites tsan tsan --suite server --suite threads --timeout-multiplier 4
}
stage_release() {
    configure_release && compile release release $(installed_targets) || { result failed "release"; return; }
    rm -rf "$build/dest"
    check "release: install" sh -c "DESTDIR='$build/dest' meson install -C '$build/release' --no-rebuild >/dev/null"
    check "release: installed programs" tests/installed.sh "$build/dest"
    check "release: the Dockerfile" tests/image.py "$build/dest"
}
stage_roots() {
    [ -e "$build/dest/usr/bin/xplaned" ] || stage_release
    local log=$build/roots.log
    timeout 1200 tests/roots.sh "$build/roots" "$build/dest" | tee "$log"
    collect "$log" roots 's/^(passed|failed|skipped) roots: /&/p'
}
stage_packages() {
    packages user wheel deb
}
stage_fuzz() {
    fuzz 60
}
stage_parity() {
    build_gcc parity || return
    check "parity: environment" tests/parity/setup.sh
    local python=${XPL_PARITY_VENV:-$build/parity-venv}/bin/python
    local step
    # The longest first. Each step has one thread most of the time, so two go side by side.
    for step in http run differential hlo_text counters aggregator iree hlo_memory hlo_graph serving stubs tool_lists exports hash_order wire_compat; do
        [ "$(jobs -pr | wc -l)" -lt 2 ] || wait -n
        check_apart "parity: $step" tests/parity/ci_$step.sh "$python" "$build/gcc" &
    done
    wait
}

stage_capture() {
    build_gcc capture || return
    check "capture: environment of XProf" tests/parity/setup.sh
    check "capture: environment of JAX" env XPL_BUILD="$build" tests/capture/setup.sh
    local log=$build/capture.log
    timeout 600 "${XPL_PARITY_VENV:-$build/parity-venv}/bin/python" tests/capture/run.py "$build/gcc" \
        "${XPL_CAPTURE_VENV:-$build/capture-venv}/bin/python" | tee "$log"
    sed -nE 's/^(passed|failed|skipped) +(.*)  \[.*/\1 capture: \2/p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "capture: the run ended early"
    timeout 600 "${XPL_PARITY_VENV:-$build/parity-venv}/bin/python" tests/programs/run_jax.py "$build/gcc" \
        "${XPL_CAPTURE_VENV:-$build/capture-venv}/bin/python" | tee "$log"
    sed -nE 's/^(passed|failed|skipped) +(.*)  \[.*/\1 programs: \2/p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "programs: the run ended early"
}

stage_python() {
    build_gcc python || return
    check "python: wheel and environments" env XPL_BUILD="$build" tests/python/setup.sh
    local kind log=$build/python.log
    for kind in python python-oldest; do
        timeout 600 "$build/$kind-venv/bin/python" tests/python/run.py "$build/gcc" | tee "$log"
        collect "$log" "$kind" "s/^(passed|failed|skipped) +(.*)  \\[.*/\\1 $kind: \\2/p"
        tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "$kind: the run ended early"
    done
}

stage_browser() {
    build_gcc browser || return
    check "browser: environment" env XPL_BUILD="$build" tests/browser/setup.sh
    local log=$build/browser.log
    XPL_BUILD="$build" timeout 3600 "${XPL_BROWSER_VENV:-$build/browser-venv}/bin/python" tests/browser/run.py "$build/gcc" |
        tee "$log"
    # Every test's result; the last line says that the run came to its end.
    sed -nE 's/^(passed|failed|skipped) +/\1 browser: /p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "browser: the run ended early"
}

stage_hostile() {
    build_gcc hostile || return
    hostile "$build/gcc" --short
}

deploy/setup-debian.sh test || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
run_all stage "${stages[@]}"
finish
