#!/bin/bash
# Sets up, builds and runs the tests.  Usage: tests/run.sh [STAGE...]
#   static   formatting, layers, headers
#   gcc      gcc, -Werror, allocation faults on, every suite
#   asan     clang, AddressSanitizer and UndefinedBehaviorSanitizer, every suite
#   tsan     gcc, ThreadSanitizer: server and storage
#   release  release build with LTO: install, run what was installed, exported symbols
#   roots    each package set by itself in a root with nothing else: the README's first command,
#            the installed programs, the static stage (needs root and mmdebstrap)
#   parity   the real XProf (PyPI) on the profiles of tests/data, its aggregator, Python stubs,
#            and a short differential run
#   capture  real profiler servers (JAX, PyPI), captured: sessions, outcomes, XProf's answers on them
#   browser  our pages and XProf's interface in chromium; screenshots in build/browser
# Without a STAGE: all of them, in this order.  Builds go below build/, or $XPL_BUILD.  Ends with
# the time of each stage; the last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
build=${XPL_BUILD:-$PWD/build}
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(static gcc asan tsan release roots parity capture browser)
mkdir -p "$build"
results=$build/results.txt # one "passed|failed|skipped NAME" a line
: >"$results"

note() { printf '\n==> %s\n' "$*"; }
result() { echo "$1 $2" >>"$results"; [ "$1" = failed ] && echo "FAILED: $2"; return 0; }
# check NAME COMMAND...: one result.
check() {
    local name=$1
    shift
    if "$@"; then result passed "$name"; else result failed "$name"; fi
}
# configure DIR OPTION...: a meson build directory with tests and -Werror, made anew when it cannot
# be reused.
configure() {
    local dir=$build/$1
    shift
    set -- -Dwerror=true -Dtests=enabled "$@"
    if [ -e "$dir/build.ninja" ]; then
        meson configure "$dir" "$@" >/dev/null && return 0
        rm -rf "$dir"
    fi
    meson setup "$dir" "$@" >"$build/setup.log" || { cat "$build/setup.log"; return 1; }
}
# suites STAGE DIR MESON_TEST_ARG...: builds, runs, and takes every test's result over.
suites() {
    local stage=$1 dir=$build/$2
    shift 2
    if ! ninja -C "$dir" >"$dir/build.log" 2>&1; then
        tail -40 "$dir/build.log"
        result failed "$stage: build"
        return
    fi
    result passed "$stage: build"
    meson test -C "$dir" --no-rebuild --print-errorlogs "$@" | tail -60
    python3 tests/meson_results.py "$stage" "$dir/meson-logs/testlog.json" >>"$results" ||
        result failed "$stage: no test results"
}

stage_static() {
    check "static: clang-format" sh -c \
        'git ls-files "*.c" "*.h" | xargs clang-format-14 --dry-run -Werror'
    check "static: layers" tests/check_layers.sh
}
stage_gcc() {
    CC="ccache gcc" configure gcc -Dfaults=true && suites gcc gcc
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
    CC=gcc configure release -Dbuildtype=release -Db_lto=true --prefix=/usr &&
        ninja -C "$build/release" >"$build/release/build.log" 2>&1 || {
        tail -40 "$build/release/build.log"
        result failed "release: build"
        return
    }
    result passed "release: build"
    rm -rf "$build/dest"
    check "release: install" sh -c "DESTDIR='$build/dest' meson install -C '$build/release' --no-rebuild >/dev/null"
    check "release: installed programs" tests/installed.sh "$build/dest"
}
stage_roots() {
    [ -e "$build/dest/usr/bin/xplaned" ] || stage_release
    local log=$build/roots.log
    timeout 1200 tests/roots.sh "$build/roots" "$build/dest" | tee "$log"
    grep -E '^(passed|failed|skipped) roots: ' "$log" >>"$results" ||
        result failed "roots: the run ended early"
}
stage_parity() {
    [ -e "$build/release/cli/xplanectl" ] || stage_release
    check "parity: environment" tests/parity/setup.sh
    local python=${XPL_PARITY_VENV:-$build/parity-venv}/bin/python
    local step
    for step in wire_compat run differential aggregator stubs http exports; do
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
}

stage_browser() {
    [ -e "$build/gcc/server/xplaned" ] ||
        { CC="ccache gcc" configure gcc -Dfaults=true && ninja -C "$build/gcc" server/xplaned >"$build/gcc/build.log" 2>&1; } || {
        tail -40 "$build/gcc/build.log"
        result failed "browser: build"
        return
    }
    check "browser: environment" env XPL_BUILD="$build" tests/browser/setup.sh
    local log=$build/browser.log
    XPL_BUILD="$build" "${XPL_BROWSER_VENV:-$build/browser-venv}/bin/python" tests/browser/run.py "$build/gcc" | tee "$log"
    # Every test's result; the last line says that the run came to its end.
    sed -nE 's/^(passed|failed|skipped) +/\1 browser: /p' "$log" >>"$results"
    tail -1 "$log" | grep -q ' passed, .* failed, .* skipped$' || result failed "browser: the run ended early"
}

deploy/setup-debian.sh test || { echo "0 passed, 1 failed"; exit 1; }
times=()
for stage in "${stages[@]}"; do
    note "$stage"
    began=$SECONDS
    "stage_$stage" || result failed "$stage"
    times+=("$(printf '%-10s %3d min %02d s' "$stage" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)))")
done
note "times"
printf '%s\n' "${times[@]}" "$(printf '%-10s %3d min %02d s' total $((SECONDS / 60)) $((SECONDS % 60)))"
passed=$(grep -c ^passed "$results") failed=$(grep -c ^failed "$results") skipped=$(grep -c ^skipped "$results")
if [ "$failed" -gt 0 ]; then
    note "failed"
    grep ^failed "$results"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
