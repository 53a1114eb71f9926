# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Build directories below $build, and results of tests/run.sh and tests/slow.sh. Sourced.
build=${XPL_BUILD:-$PWD/build}
mkdir -p "$build"
results=$build/$(basename "$0" .sh)-results.txt # one "passed|failed|skipped NAME" a line
: >"$results"
times=$build/$(basename "$0" .sh)-times.txt # one "STAGE SECONDS" a line
: >"$times"

note() { printf '\n==> %s\n' "$*"; }
result() { echo "$1 $2" >>"$results"; [ "$1" = failed ] && echo "FAILED: $2"; return 0; }
# check NAME COMMAND...: one result.
check() {
    local name=$1
    shift
    if "$@"; then result passed "$name"; else result failed "$name"; fi
}
# check_or_skip NAME COMMAND...: like check; status 77 means that the command, which says why, had nothing to check.
check_or_skip() {
    local name=$1 status=0
    shift
    "$@" || status=$?
    case $status in
        0) result passed "$name" ;;
        77) result skipped "$name" ;;
        *) result failed "$name" ;;
    esac
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
# take_over STAGE STATUS LINES: the results of a program that exited with STATUS, which is not 0 when one failed.
take_over() {
    local stage=$1 status=$2 lines=$3
    if [ -n "$lines" ]; then echo "$lines" >>"$results"; else result failed "$stage: no test results"; fi
    [ "$status" -eq 0 ] || grep -q '^failed ' <<<"$lines" || result failed "$stage: ended early, with status $status"
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
    meson setup "$dir" "$@" >"$build/setup.log" && return
    cat "$build/setup.log"
    result failed "configure ${dir##*/}"
    return 1
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
installed_targets() {
    meson introspect --targets "$build/release" | python3 -c '
import json, os, sys
for t in json.load(sys.stdin):
    if t["installed"]:
        print(*(os.path.relpath(f, sys.argv[1]) for f in t["filename"]), sep="\n")
' "$build/release"
}
# run_all STAGE...: runs and times each. The parts of A+B run at the same time; their output follows when both have
# ended.
run_all() {
    local name part pids
    for name in "$@"; do
        note "$name"
        if [ "${name#*+}" = "$name" ]; then
            run_stage "$name"
        else
            pids=()
            for part in ${name//+/ }; do
                run_stage "$part" >"$build/beside.$part" 2>&1 </dev/null &
                pids+=($!)
            done
            for part in ${name//+/ }; do
                wait "${pids[0]}" || result failed "$part: ended early"
                pids=("${pids[@]:1}")
            done
            for part in ${name//+/ }; do cat "$build/beside.$part"; done
        fi
    done
}
run_stage() {
    local began=$SECONDS
    "stage_$1" || result failed "$1"
    echo "$1 $((SECONDS - began))" >>"$times"
}
# enforce_budgets: a result for each stage: that it took at most 1.5 times its budget.
enforce_budgets() {
    local stage seconds budget
    while read -r stage seconds; do
        budget=$(budget_of "$stage")
        check "budget: $stage took $seconds s of $budget s" [ $((2 * seconds)) -le $((3 * budget)) ]
    done <"$times"
}
# budget_of STAGE: the second of "SHORT/LONG" when $whole is set.
budget_of() { sed -nE "s,^$1 ([0-9]+)(/([0-9]+))?( .*|$),\1 \3,p" tests/stages.txt | awk -v whole="${whole:-}" '{ print $(whole && NF > 1 ? 2 : 1) }'; }
# print_times: the table of stages, seconds, tests and budgets.
print_times() {
    local stage seconds
    printf '| stage | seconds | budget | passed | failed | skipped |\n| --- | ---: | ---: | ---: | ---: | ---: |\n'
    while read -r stage seconds; do
        printf '| %s | %d | %s | %d | %d | %d |\n' "$stage" "$seconds" "$(budget_of "$stage")" \
            "$(count passed "$stage: ")" "$(count failed "$stage")" "$(count skipped "$stage: ")"
    done <"$times"
    printf '| together | %d | | %d | %d | %d |\n' $SECONDS "$(count passed)" "$(count failed)" "$(count skipped)"
}
# count OUTCOME [NAME]: the results whose names begin with NAME.
count() { grep -c "^$1 ${2:-}" "$results"; }
# finish: the table, what failed, and the line with the counts; its status is the script's.
finish() {
    local passed failed skipped
    note "times"
    print_times
    passed=$(count passed) failed=$(count failed) skipped=$(count skipped)
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
