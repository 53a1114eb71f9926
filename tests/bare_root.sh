# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Bare roots, with nothing but what Debian calls essential, and apt.  Sourced by roots.sh and
# packages.sh.  All is below $work: trees by name, and the packages that were fetched.  The roots
# inherit this machine's apt sources, keys and configuration, its pip configuration and certificates.
# shellcheck disable=SC1091
VERSION_CODENAME=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# why_no_roots: says why roots cannot be made here; nothing when they can.
why_no_roots() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "not root"
    elif ! command -v mmdebstrap >/dev/null; then
        echo "no mmdebstrap"
    elif ! unshare --mount true 2>/dev/null; then
        echo "no mount namespaces here"
    fi
}
# make_base: the root that all others are copies of, as a tree below $work/base.
make_base() {
    local sources=() options=() f
    mkdir -p "${work:?}/debs/partial"
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
    # Under a name of its own as well: the package ca-certificates, which python3-venv brings, writes
    # that file anew, without the authorities of this machine.
    [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/machine.crt"
}
# new_root NAME: a copy of the base.
new_root() {
    rm -rf "${work:?}/$1"
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
        mount --rbind /sys "$1/sys" # malloc asks it for the number of processors
        mount --bind "$2" "$1/var/cache/apt/archives"
        root=$1
        shift 2
        [ ! -e "$root/etc/ssl/machine.crt" ] || export PIP_CERT=/etc/ssl/machine.crt REQUESTS_CA_BUNDLE=/etc/ssl/machine.crt
        exec chroot "$root" env -u XPL_BUILD -u XPL_PARITY_VENV "$@"' sh "$root" "$work/debs" "$@"
}
# copy_checkout DIR [PATH...]: what git knows or would add.
copy_checkout() {
    local dir=$1
    shift
    mkdir -p "$dir"
    git ls-files -z --cached --others --exclude-standard -- "$@" |
        while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
        tar -c --null -T - | tar -x -C "$dir"
}
