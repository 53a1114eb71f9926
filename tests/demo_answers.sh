#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what deploy/demo.sh printed: bytes of every tool, the summary's tables, the end.
# Usage: demo_answers.sh OUTPUT
set -eu
out=$1
fail() { cat "$out" >&2; echo "demonstration: $*" >&2; exit 1; }
for tool in overview_page input_pipeline_analyzer op_profile framework_op_stats kernel_stats memory_profile trace_viewer; do
    grep -Eq "^$tool@? +[1-9][0-9]* bytes " "$out" || fail "no answer of $tool"
done
for part in "Steps" "Device ops" "Host ops" "Memory"; do
    grep -q "$part" "$out" || fail "the summary does not show $part"
done
[ "$(tail -1 "$out")" = "done" ] || fail "it did not come to its end"
