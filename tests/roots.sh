#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Proves each package set of deploy/setup-debian.sh by itself, in roots that have nothing but what
# Debian calls essential, and apt.   tests/roots.sh WORK DESTDIR [run|build|test]...
#   run    the programs installed below DESTDIR start and analyze a profile, and the daemon answers:
#          without libpq, libcurl and Expat, which it asks for when they are configured
#   build  deploy/demo.sh, the first command of the README, in a copy of this checkout; the compiler
#          has no warnings for a release without LTO
#   test   the set installs, and the static stage of tests/run.sh runs with it
# The roots, and the packages that were fetched, are kept below WORK until the next run.
# One "passed|failed|skipped NAME" a line at the end of the output; needs root and mmdebstrap.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
. tests/bare_root.sh
work=$1 dest=$2
shift 2
sets=("$@")
[ ${#sets[@]} -gt 0 ] || sets=(run build test)
results=()
result() { results+=("$1 roots: $2"); }
finish() { printf '%s\n' "${results[@]}"; exit 0; }
skip() {
    local set
    for set in "${sets[@]}"; do result skipped "$set ($1)"; done
    finish
}
why=$(why_no_roots)
[ -z "$why" ] || skip "$why"

try_run() {
    local profile
    profile=$(git ls-files 'tests/data/logdir/*.xplane.pb' | head -1)
    [ -n "$profile" ] && [ -d "$dest/usr" ] || { echo "roots: nothing is installed below $dest"; return 1; }
    cp -a "$dest/." "$work/run/"
    cp deploy/setup-debian.sh "$work/run/tmp/"
    cp "$profile" "$work/run/tmp/host.xplane.pb"
    # shellcheck disable=SC2016
    inside run sh -euc '
        /tmp/setup-debian.sh run >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        ldconfig
        xplaned --version
        xplaned --help >/dev/null
        xplanectl --version
        xplaned-agent --help >/dev/null
        xplanectl analyze overview_page /tmp/host.xplane.pb >/tmp/answer
        test -s /tmp/answer
        libs=$(ls /usr/lib/*/libpq.so.* /usr/lib/*/libcurl.so.* /usr/lib/*/libexpat.so.* 2>/dev/null || true)
        [ -z "$libs" ] || { echo "there: $libs"; exit 1; }
        mkdir -p /tmp/logs/plugins/profile/run
        cp /tmp/host.xplane.pb /tmp/logs/plugins/profile/run/
        for wants in "libpq5 --store=postgresql://nobody@/none --logdir=/tmp/logs" \
            "libcurl4 --object-anonymous --logdir=s3://bucket/logs"; do
            timeout 20 xplaned ${wants#* } --state-dir=/tmp/state --listen=unix:/tmp/sock >/tmp/refused 2>&1 && exit 1
            grep -q "install .*${wants%% *}" /tmp/refused || { cat /tmp/refused; exit 1; }
        done
        xplaned --logdir=/tmp/logs --state-dir=/tmp/state --listen=unix:/tmp/sock --http=off 2>/tmp/log &
        for i in $(seq 600); do grep -q "msg=listening" /tmp/log && break; sleep 0.1; done
        xplanectl --server unix:/tmp/sock tool overview_page run -o /tmp/served
        cmp /tmp/answer /tmp/served
        kill $!
        wait $!'
}
try_build() {
    copy_checkout "$work/build/src"
    inside build sh -euc '
        cd /src
        deploy/setup-debian.sh build >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        deploy/demo.sh >/tmp/demo.log 2>&1 || { tail -40 /tmp/demo.log; exit 1; }
        tail -3 /tmp/demo.log
        ! grep -A8 " warning: " /tmp/demo.log'
}
try_test() {
    copy_checkout "$work/test/src"
    inside test sh -euc '
        cd /src
        deploy/setup-debian.sh test >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        git init -q . && git add -A
        tests/run.sh static >/tmp/static.log 2>&1 || { tail -40 /tmp/static.log; exit 1; }
        tail -1 /tmp/static.log'
}

if ! make_base; then
    result failed "base"
    finish
fi
result passed "base"
for set in "${sets[@]}"; do
    began=$SECONDS
    if new_root "$set" && "try_$set"; then result passed "$set"; else result failed "$set"; fi
    echo "roots: $set took $((SECONDS - began)) s"
    [ "$set" != test ] || rm -rf "${work:?}/test" # gigabytes
done
finish
