#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Follows docs/adding-a-format.md in a copy of the tree (HEAD): one file and one line make a format
# that every list knows and the tools that fit read; the static checks ask for nothing else.
# Usage: tests/toy_format.sh [FOLDER], which is kept; else a temporary one.
set -eu
cd "$(dirname "$0")/.."
page=docs/adding-a-format.md
work=${1:-}
if [ -z "$work" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
fail() {
    echo "toy_format: $*" >&2
    exit 1
}
# block TITLE: the code of the page that stands below the comment "toy: TITLE".
block() {
    awk -v mark="<!-- toy: $1 -->" '
        $0 == mark { wanted = 1; next }
        wanted && /^```/ { if (inside) exit; inside = 1; next }
        wanted && inside' "$page"
}

rm -rf "$work/tree"
mkdir -p "$work/tree"
git archive HEAD | tar -x -C "$work/tree"
cp "$page" "$work/tree/$page"
cd "$work/tree"
file=analysis/formats/spans.c rows=analysis/formats/rows.h
block "$file" >"$file"
line=$(block "line of $rows")
[ -s "$file" ] && [ -n "$line" ] || fail "$page has no $file"
awk -v line="$line" '/^\/\/ Those that directories/ { print line } { print }' "$rows" >rows.new
mv rows.new "$rows"

CCACHE_BASEDIR=$(pwd) CCACHE_NOHASHDIR=1 CC=${CC:-$(command -v ccache || true) gcc}
export CCACHE_BASEDIR CCACHE_NOHASHDIR CC
meson setup build/gcc --buildtype=plain -Dwerror=true -Dfaults=true >setup.log 2>&1 ||
    { tail -20 setup.log >&2; fail "meson"; }
ninja -C build/gcc cli/xplanectl tests/unit/unit_formats tests/unit/unit_tools >build.log 2>&1 ||
    { grep -A5 -E 'error|FAILED' build.log >&2; fail "the build"; }
git -c init.defaultBranch=main init -q . # the page's commands run in a clone
block commands >../commands.sh
sh -eu ../commands.sh >commands.log 2>&1 || { cat commands.log >&2; fail "the page's commands"; }
grep -q '^trace_viewer@' commands.log || fail "tools"
grep -q '"compute"' commands.log || fail "no answer names an event"
grep -q 'overview_page needs steps, which a file of spans does not have' commands.log ||
    fail "the refusal"
xplanectl=build/gcc/cli/xplanectl
printf 'spans 1\nload 0\n' >broken.spans
if "$xplanectl" analyze events broken.spans 2>broken.log; then fail "a broken file"; fi
grep -q 'malformed line' broken.log || fail "the words of a broken file"
"$xplanectl" tools --all --json | grep -q '"name":"spans","version":1' || fail "the formats"
python3 tests/golden/versions.py --program "$xplanectl" || fail "versions"
if command -v clang-format-14 >/dev/null; then
    clang-format-14 --dry-run -Werror "$file" "$rows" || fail "the format"
fi
python3 tests/check_structure.py || fail "the structure"
tests/check_layers.sh || fail "the layers"
python3 tests/check_spdx.py || fail "the licences"
build/gcc/tests/unit/unit_formats formats || fail "the test formats"
build/gcc/tests/unit/unit_tools tool || fail "the test tool"
echo "toy_format: one file, one line"
