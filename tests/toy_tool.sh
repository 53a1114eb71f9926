#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Follows docs/adding-a-tool.md in a copy of the tree (HEAD): one file and one line make a tool that
# every list has, or a product; the static checks ask for nothing else.
# Usage: tests/toy_tool.sh [FOLDER], which is kept; else a temporary one.
set -eu
cd "$(dirname "$0")/.."
page=docs/adding-a-tool.md
work=${1:-}
if [ -z "$work" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
fail() {
    echo "toy_tool: $*" >&2
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
before=$(find . -type f | wc -l)
# add FILE TABLE KIND: the page's file, and its line of the table, by name: before the first row that
# comes later.
add() {
    block "$1" >"$1"
    line=$(block "line of $2")
    [ -s "$1" ] && [ -n "$line" ] || fail "$page has no $1"
    awk -v line="$line" -v row="^XPL_$3_ROW" '
        function name(row) { sub(/\).*/, "", row); sub(/.*[(, ]/, "", row); return row }
        !done && $0 ~ row && name($0) > name(line) { print line; done = 1 } { print }' "$2" >rows.new
    mv rows.new "$2"
}
add analysis/tools/slowest_ops.c analysis/tools/rows.h TOOL
add analysis/products/plane_count.c analysis/products/rows.h PRODUCT
[ "$(find . -type f | wc -l)" = $((before + 2)) ] || fail "more than a file for each was added"

# Objects are found again by ccache although the folder is another one each time.
CCACHE_BASEDIR=$(pwd) CCACHE_NOHASHDIR=1 CC=${CC:-$(command -v ccache || true) gcc}
export CCACHE_BASEDIR CCACHE_NOHASHDIR CC
meson setup build/gcc --buildtype=plain -Dwerror=true -Dfaults=true >setup.log 2>&1 ||
    { tail -20 setup.log >&2; fail "meson"; }
ninja -C build/gcc cli/xplanectl server/xplaned docs/xplanectl.1 tests/unit/unit_tools \
    tests/unit/unit_products >build.log 2>&1 ||
    { grep -A5 -E 'error|FAILED' build.log >&2; fail "the build"; }
git -c init.defaultBranch=main init -q . # the page's commands run in a clone
block commands >../commands.sh
sh -eu ../commands.sh >commands.log 2>&1 || { cat commands.log >&2; fail "the page's commands"; }
grep -q '"self_time_ps":' commands.log || fail "analyze gave no ops"
xplanectl=build/gcc/cli/xplanectl

"$xplanectl" tools --all | grep -q 'side=device|host  *whose ops \[host\]' || fail "tools --all"
"$xplanectl" help tool-options | grep -q '^  slowest_ops$' || fail "--help"
grep -q '^\.B slowest_ops$' build/gcc/docs/xplanectl.1 || fail "xplanectl(1)"
grep -q '^| slowest_ops |' docs/api.md || fail "docs/api.md"
"$xplanectl" tools --all --json | grep -q '"name":"plane_count","version":1' || fail "the products"
python3 tests/tool_docs.py "$xplanectl" || fail "tool_docs"
python3 tests/golden/versions.py --program "$xplanectl" || fail "versions"
# What the static stage would say, where the page says that nothing else is edited.
if command -v clang-format-14 >/dev/null; then
    clang-format-14 --dry-run -Werror analysis/tools/slowest_ops.c analysis/products/plane_count.c \
        analysis/*/rows.h || fail "the format"
fi
python3 tests/check_structure.py || fail "the structure"
tests/check_layers.sh || fail "the layers"
python3 tests/check_spdx.py || fail "the licences"
for test in tool options option_effects; do
    build/gcc/tests/unit/unit_tools "$test" || fail "the test $test"
done
build/gcc/tests/unit/unit_products products || fail "the test products"
python3 - "$xplanectl" <<'PY' || fail "a daemon's lists"
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, "tests/parity")
import tool_table

NAME, program = "slowest_ops", sys.argv[1]
assert NAME in tool_table.names(program) and NAME in tool_table.of_op_stats(program)
assert NAME in tool_table.for_workers(program)
assert tool_table.choices(program, NAME) == [{"side": "device"}, {"side": "host"}]
with tempfile.TemporaryDirectory() as state, open(f"{state}/log", "wb") as log:
    daemon = subprocess.Popen(
        ["build/gcc/server/xplaned", "--logdir", "tests/data/logdir/cpu", "--state-dir", state, "--listen",
         "127.0.0.1:0", "--http", "127.0.0.1:0"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        at = {}
        for _ in range(600):
            with open(f"{state}/log", encoding="utf-8", errors="replace") as f:
                at = dict(re.findall(r"service=(grpc|http) address=(\S+)", f.read()))
            if len(at) == 2 or daemon.poll() is not None:
                break
            time.sleep(0.05)
        assert len(at) == 2, "the daemon did not start"

        def get(path):
            with urllib.request.urlopen(f"http://{at['http']}{path}", timeout=30) as reply:
                return json.load(reply)

        run = "jax_4hosts"
        assert NAME in [t["name"] for t in get("/api/v1/tools")["tools"]], "/api/v1/tools"
        assert get(f"/run_tools?run={run}")[-1] == NAME, "/run_tools"
        assert {"hostname": "ALL_HOSTS"} in get(f"/hosts?run={run}&tag={NAME}"), "/hosts"
        page = get(f"/data?run={run}&tag={NAME}&host=ALL_HOSTS")
        assert page and len(page) <= 10 and page[0]["self_time_ps"], "/data"
        listed = subprocess.run([program, "--server", at["grpc"], "tools", run], check=True, capture_output=True, text=True)
        assert NAME in listed.stdout.split(), "ListTools"
        answer = [program, "--server", at["grpc"], "tool", NAME, run]
        for side in ("host", "device", "host"):
            got = subprocess.run([*answer, "--option", f"side={side}"], check=True, capture_output=True).stdout
            assert (json.loads(got) == page) == (side == "host"), side
        wrong = subprocess.run([*answer, "--option", "side=left"], capture_output=True, text=True)
        assert wrong.returncode != 0 and "device|host" in wrong.stderr, "a wrong value"
    finally:
        daemon.terminate()
        daemon.wait(30)
PY
echo "toy_tool: one file, one line, twice"
