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
#   browser    our pages and XProf's interface in chromium; screenshots in build/browser
#   hostile    attacks on real daemons, in short (tests/hostile)
# Without a STAGE: all of them, in this order.  Builds go below build/, or $XPL_BUILD.  Ends with
# the time of each stage; the last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
. tests/results.sh
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(static gcc analyzers asan tsan release roots packages fuzz parity capture browser hostile)
# suites STAGE DIR MESON_TEST_ARG...: builds, runs, and takes every test's result over.
suites() {
    local stage=$1 dir=$build/$2
    compile "$stage" "$2" || return
    shift 2
    meson test -C "$dir" --no-rebuild --print-errorlogs "$@" | tail -60
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
    check "static: headers alone" tests/headers.sh gcc
    check "static: the checks themselves" tests/test_checks.py
}
stage_gcc() {
    CC="ccache gcc" configure gcc -Dfaults=true && suites gcc gcc
    check "gcc: a tool is one file and one row" tests/toy_tool.sh
}
stage_analyzers() {
    [ -e "$build/gcc/proto/libxpl_proto.a" ] ||
        { CC="ccache gcc" configure gcc -Dfaults=true && compile analyzers gcc proto/libxpl_proto.a; } || return
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
    TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1" \
        suites tsan tsan --suite server --suite threads --timeout-multiplier 4
}
stage_release() {
    configure_release && compile release release $(release_targets) || { result failed "release"; return; }
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
    [ -e "$build/release/cli/xplanectl" ] || stage_release
    check "parity: environment" tests/parity/setup.sh
    local python=${XPL_PARITY_VENV:-$build/parity-venv}/bin/python
    local step
    for step in wire_compat run hlo_text hlo_memory hash_order differential aggregator stubs http exports iree; do
        [ -e "tests/parity/ci_$step.sh" ] || continue
        check "parity: $step" tests/parity/ci_$step.sh "$python" "$build/release"
    done
}

stage_capture() {
    [ -e "$build/release/tests/capture/fake_profiler" ] || stage_release
    check "capture: environment of XProf" tests/parity/setup.sh
    check "capture: environment of JAX" env XPL_BUILD="$build" tests/capture/setup.sh
    local log=$build/capture.log
    timeout 600 "${XPL_PARITY_VENV:-$build/parity-venv}/bin/python" tests/capture/run.py "$build/release" \
        "${XPL_CAPTURE_VENV:-$build/capture-venv}/bin/python" | tee "$log"
    sed -nE 's/^(passed|failed|skipped) +(.*)  \[.*/\1 capture: \2/p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "capture: the run ended early"
    timeout 600 "${XPL_PARITY_VENV:-$build/parity-venv}/bin/python" tests/programs/run_jax.py "$build/release" \
        "${XPL_CAPTURE_VENV:-$build/capture-venv}/bin/python" | tee "$log"
    sed -nE 's/^(passed|failed|skipped) +(.*)  \[.*/\1 programs: \2/p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "programs: the run ended early"
}

stage_browser() {
    [ -e "$build/gcc/server/xplaned" ] ||
        { CC="ccache gcc" configure gcc -Dfaults=true && compile browser gcc server/xplaned; } || return
    check "browser: environment" env XPL_BUILD="$build" tests/browser/setup.sh
    local log=$build/browser.log
    XPL_BUILD="$build" "${XPL_BROWSER_VENV:-$build/browser-venv}/bin/python" tests/browser/run.py "$build/gcc" | tee "$log"
    # Every test's result; the last line says that the run came to its end.
    sed -nE 's/^(passed|failed|skipped) +/\1 browser: /p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "browser: the run ended early"
}

stage_hostile() {
    local program
    for program in server/xplaned cli/xplanectl; do
        [ -e "$build/gcc/$program" ] ||
            { CC="ccache gcc" configure gcc -Dfaults=true && compile hostile gcc "$program"; } || return
    done
    hostile "$build/gcc" --short
}

deploy/setup-debian.sh test || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
run_all stage "${stages[@]}"
finish
