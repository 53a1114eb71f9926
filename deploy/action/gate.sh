#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The step of the action: runs `xplanectl gate`, writes its report to the summary of the step and
# to a comment, and ends with its status.  The action passes its inputs as GATE_*; no input becomes
# part of a command line but as one argument.
set -u

report="${RUNNER_TEMP:-/tmp}/xplaned-gate-${GITHUB_RUN_ID:-0}.md"
errors="$report.err"
trap 'rm -f "$errors"' EXIT
args=(gate -o "$report" --last "${GATE_LAST:-10}")

# One per line; empty lines do not count.  A job may have variables of these names, too.
runs=()
base=
while IFS= read -r run; do
    [ -z "$run" ] || runs+=("$run")
done <<< "${GATE_RUNS:-}"
while IFS= read -r run; do
    [ -z "$run" ] || base="${base:+$base,}$run"
done <<< "${GATE_BASE:-}"
[ -z "$base" ] || args+=(--base "$base")
[ -z "${GATE_LABEL:-}" ] || args+=(--label "$GATE_LABEL")
[ -z "${GATE_SERVER:-}" ] || args+=(--server "$GATE_SERVER")
if [ -n "${GATE_FAIL_IF_POSSIBLE:-}" ]; then
    args+=(--fail-if-possible "$GATE_FAIL_IF_POSSIBLE")
elif [ -n "${GATE_FAIL_IF:-}" ]; then
    args+=(--fail-if "$GATE_FAIL_IF")
fi
[ "${GATE_ALLOW_SINGLE:-false}" != true ] || args+=(--allow-single)

rm -f "$report"
"${GATE_XPLANECTL:-xplanectl}" "${args[@]}" -- "${runs[@]:-}" 2> "$errors"
status=$?
cat "$errors" >&2

# Text of a workflow command: what would end it is encoded.
encoded() {
    local text
    text=$(tail -n 1 "$errors")
    text=${text//'%'/%25}
    printf '%s' "${text//$'\r'/%0D}"
}

{
    echo "status=$status"
    echo "report=$report"
} >> "${GITHUB_OUTPUT:-/dev/null}"
if [ -f "$report" ]; then
    cat "$report" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
    if [ "${GATE_COMMENT:-false}" = true ]; then
        python3 "$(dirname "$0")/comment.py" "$report" || echo "::warning::the report could not be written as a comment"
    fi
fi
case $status in
    0) ;;
    5) if [ "${GATE_CANNOT_TELL:-fail}" = warn ]; then
           echo "::warning title=Performance gate::$(encoded)"
           exit 0
       fi
       echo "::error title=Performance gate::$(encoded)" ;;
    *) echo "::error title=Performance gate::$(encoded)" ;;
esac
exit "$status"
