#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program of the wheel on PATH: starts the native one of this name. Python would take ten times as long to do so.
# pip puts this into bin/ next to the environment's lib/; where it does not, Python knows where the wheel is.
self=$0
[ ! -L "$self" ] || self=$(readlink -f "$self")
name=${self##*/}
for place in "${self%/*}"/../lib*/*/*-packages "${self%/*}/.."; do
    [ ! -x "$place/xplaned_programs/bin/$name" ] || exec "$place/xplaned_programs/bin/$name" "$@"
done
exec "$(python3 -m xplaned_programs "$name")" "$@"
