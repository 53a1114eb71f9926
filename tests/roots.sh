#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Proves each package set of deploy/setup-debian.sh by itself, in roots that have nothing but what
# Debian calls essential, and apt.   tests/roots.sh WORK DESTDIR [run|build|test]...
#   run    the programs installed below DESTDIR start and analyze a profile
#   build  deploy/demo.sh, the first command of the README, in a copy of this checkout
#   test   the set installs, and the static stage of tests/run.sh runs with it
# The roots inherit this machine's apt sources, keys and configuration, its pip configuration and
# certificates.  They, and the packages that were fetched, are kept below WORK until the next run.
# One "passed|failed|skipped NAME" a line at the end of the output; needs root and mmdebstrap.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
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
[ "$(id -u)" -eq 0 ] || skip "not root"
command -v mmdebstrap >/dev/null || skip "no mmdebstrap"
unshare --mount true 2>/dev/null || skip "no mount namespaces here"
mkdir -p "$work/debs/partial"

# The root all sets start from, as a tree below $work/base.
make_base() {
    local sources=() options=() f
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$f" ] || sources+=("$f")
    done
    for f in /etc/apt/apt.conf.d/*; do options+=("--aptopt=$f"); done
    rm -rf "$work/base"
    mmdebstrap --mode=root --variant=minbase "${options[@]}" "${VERSION_CODENAME:?}" "$work/base" \
        "${sources[@]}" 2>&1 | tail -20 || return 1
    # What mmdebstrap does not take over.  Its own copy of the options names every file of them.
    local inherited=()
    for f in etc/apt/auth.conf.d etc/apt/keyrings etc/apt/preferences.d etc/apt/trusted.gpg \
        etc/apt/trusted.gpg.d usr/share/keyrings etc/pip.conf etc/ssl/certs/ca-certificates.crt \
        etc/resolv.conf etc/hosts; do
        [ ! -e "/$f" ] || inherited+=("$f")
    done
    tar -ch -C / "${inherited[@]}" | tar -x -C "$work/base"
}
# new_root NAME: a copy of the base.
new_root() {
    rm -rf "$work/$1"
    cp -a "$work/base" "$work/$1"
}
# inside NAME COMMAND...: runs it in the root.  Mounts are of a name space that ends with it.
inside() {
    local root=$work/$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --fork --pid sh -c 'set -e
        mount --make-rprivate /
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount --bind "$2" "$1/var/cache/apt/archives"
        root=$1
        shift 2
        exec chroot "$root" env -u XPL_BUILD -u XPL_PARITY_VENV "$@"' sh "$root" "$work/debs" "$@"
}
# copy_checkout NAME: what git knows or would add, as /src.
copy_checkout() {
    mkdir -p "$work/$1/src"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
        tar -c --null -T - | tar -x -C "$work/$1/src"
}

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
        test -s /tmp/answer'
}
try_build() {
    copy_checkout build
    inside build sh -euc '
        cd /src
        deploy/setup-debian.sh build >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        deploy/demo.sh >/tmp/demo.log 2>&1 || { tail -40 /tmp/demo.log; exit 1; }
        tail -3 /tmp/demo.log'
}
try_test() {
    copy_checkout test
    inside test sh -euc '
        cd /src
        deploy/setup-debian.sh test >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        git init -q . && git add -A
        tests/run.sh static >/tmp/static.log 2>&1 || { tail -40 /tmp/static.log; exit 1; }
        tail -1 /tmp/static.log'
}

VERSION_CODENAME=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
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
