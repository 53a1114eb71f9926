# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests/run.sh and tests/slow.sh share: build directories below $build, and results.  Sourced.
build=${XPL_BUILD:-$PWD/build}
mkdir -p "$build"
results=$build/$(basename "$0" .sh)-results.txt # one "passed|failed|skipped NAME" a line
: >"$results"
times=()

note() { printf '\n==> %s\n' "$*"; }
result() { echo "$1 $2" >>"$results"; [ "$1" = failed ] && echo "FAILED: $2"; return 0; }
# check NAME COMMAND...: one result.
check() {
    local name=$1
    shift
    if "$@"; then result passed "$name"; else result failed "$name"; fi
}
# check_apart NAME COMMAND...: like check, for commands beside each other: the output comes in one
# piece, with the seconds it took.
check_apart() {
    local name=$1 log began=$SECONDS
    log=$(mktemp "$build/apart.XXXXXX")
    check "$@" >"$log" 2>&1
    cat "$log"
    echo "$name: $((SECONDS - began)) s"
    rm -f "$log"
}
# collect LOG NAME PATTERN: the results that a program printed into LOG, as lines which sed -E's
# PATTERN turns into "passed|failed|skipped NAME"; one at least.
collect() {
    local lines
    lines=$(sed -nE "$3" "$1")
    if [ -n "$lines" ]; then echo "$lines" >>"$results"; else result failed "$2: the run ended early"; fi
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
# compile STAGE DIR [TARGET...]: one result.
compile() {
    local stage=$1 dir=$build/$2
    shift 2
    if ninja -C "$dir" "$@" >"$dir/build.log" 2>&1; then
        result passed "$stage: build"
    else
        tail -40 "$dir/build.log"
        result failed "$stage: build"
        return 1
    fi
}
configure_release() {
    CC=gcc configure release -Dbuildtype=release -Db_lto=true --prefix=/usr
}
# What is installed: tests themselves are built with LTO by the benchmarks alone, as that takes longer
# than all the rest.
installed_targets() {
    meson introspect --targets "$build/release" | python3 -c '
import json, os, sys
for t in json.load(sys.stdin):
    if t["installed"]:
        print(*(os.path.relpath(f, sys.argv[1]) for f in t["filename"]), sep="\n")
' "$build/release"
}
configure_fuzz() {
    CC="ccache clang" configure fuzz -Db_sanitize=address -Db_lundef=false \
        -Dc_args=-fsanitize=fuzzer-no-link -Dfuzz_link_args=-fsanitize=fuzzer
}
# fuzz SECONDS: all targets, so long in all.
fuzz() {
    configure_fuzz && compile fuzz fuzz fuzz_targets || { result failed "fuzz: configure or build"; return; }
    tests/fuzz/run.sh "$build/fuzz" "$1" | tee "$build/fuzz.log"
    collect "$build/fuzz.log" fuzz 's/^(passed|failed) fuzz: /&/p'
}
# analyzers [--deep]: over the sources of the build gcc.
analyzers() {
    tests/analyze.py "$build/gcc" "$@" | tee "$build/analyzers.log"
    collect "$build/analyzers.log" analyzers 's/^(passed|failed) analyzers: /&/p'
}
# hostile DIR [--short]: tests/hostile on the daemon of that build.
hostile() {
    tests/hostile/run.py --build "$@" | tee "$build/hostile.log"
    sed -nE 's/^(passed|failed|skipped) +(.*)  \[.*/\1 hostile: \2/p' "$build/hostile.log" >>"$results"
    tail -1 "$build/hostile.log" | grep -q ' passed, .* failed, .* skipped$' || result failed "hostile: the run ended early"
}
# packages PART...: what users install, of tests/packages.sh.
packages() {
    local log=$build/packages.log
    deploy/setup-debian.sh package >"$log" 2>&1 || { tail -20 "$log"; result failed "packages: set-up"; return; }
    timeout 3600 tests/packages.sh "$build/packages" "$@" | tee "$log"
    collect "$log" packages 's/^(passed|failed|skipped) packages: /&/p'
}
# run_all PREFIX NAME...: calls PREFIX_NAME for each, and measures it.  The parts of A+B go beside each
# other: their outputs follow when all have ended.
run_all() {
    local prefix=$1 name part began
    shift
    for name in "$@"; do
        note "$name"
        began=$SECONDS
        if [ "${name#*+}" = "$name" ]; then
            "${prefix}_$name" || result failed "$name"
        else
            for part in ${name//+/ }; do
                { "${prefix}_$part" || result failed "$part"; } >"$build/beside.$part" 2>&1 </dev/null &
            done
            wait
            for part in ${name//+/ }; do cat "$build/beside.$part"; done
        fi
        times+=("$(in_minutes "$name" $((SECONDS - began)))")
    done
}
in_minutes() { printf '%-16s %3d min %02d s' "$1" $(($2 / 60)) $(($2 % 60)); }
# finish: times, what failed, and the line with the counts; its status is the script's.
finish() {
    local passed failed skipped
    note "times"
    printf '%s\n' "${times[@]}" "$(in_minutes total $SECONDS)"
    passed=$(grep -c ^passed "$results") failed=$(grep -c ^failed "$results") skipped=$(grep -c ^skipped "$results")
    if [ "$skipped" -gt 0 ]; then
        note "skipped"
        grep ^skipped "$results"
    fi
    if [ "$failed" -gt 0 ]; then
        note "failed"
        grep ^failed "$results"
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
