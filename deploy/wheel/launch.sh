#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of the wheel on PATH: starts the native one of this name. Python would take ten times as long to do so.
# pip puts this into bin/ next to the environment's lib/; where it does not, Python knows where the wheel is. An older
# wheel, for another Python, may be below the same lib/.
version=@VERSION@
self=$0
[ ! -L "$self" ] || self=$(readlink -f "$self")
name=${self##*/}
# PLACE ARGUMENT...: does nothing where this version is not.
start_from() {
    program=$1/xplaned_programs/bin/$name
    [ -x "$program" ] && [ -d "$1/xplaned-$version.dist-info" ] || return
    shift
    exec "$program" "$@"
}
for place in "${self%/*}"/../lib*/*/*-packages "${self%/*}/.."; do
    start_from "$place" "$@"
done
root=$(python3 -c 'import xplaned_programs; print(xplaned_programs.ROOT)' 2>/dev/null)
start_from "${root%/*}" "$@"
echo "$name: xplaned $version is not where this launcher looks, nor where python3 does: install its wheel again" >&2
exit 127
