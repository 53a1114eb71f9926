#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every header of ours alone, the tests' too.  Usage: tests/headers.sh [COMPILER...]
set -u
cd "$(dirname "$0")/.." || exit 2
[ $# -gt 0 ] || set -- "${CC:-gcc}"
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
mkdir "$generated/proto"
# shellcheck disable=SC2046
(cd proto && protoc-c -I. --c_out="$generated/proto" $(git ls-files '*.proto')) || exit 1
alone() {
    local header=$1
    shift
    # What the build defines for tests.
    printf '#define XPL_TEST_DATA "."\n#include "%s"\nextern int xpl_alone;\n' "$header" |
        "$@" -x c -std=gnu17 -D_GNU_SOURCE -DXPL_FAULTS=1 -I. -I"$generated" -I"$generated/proto" \
            $flags -Wall -Wextra -Werror -fsyntax-only - ||
        { echo "headers: $header does not compile alone" >&2; return 1; }
}
flags=$(pkg-config --cflags grpc libuv libprotobuf-c sqlite3 libmicrohttpd libpq libcurl expat | sed 's/-std=[^ ]*//')
export -f alone
export generated flags
git ls-files --cached --others --exclude-standard 'base/*.h' 'analysis/*.h' 'sql/*.h' 'storage/*.h' 'rpc/*.h' \
    'capture/*.h' 'agent/*.h' 'server/*.h' 'client/*.h' 'cli/*.h' 'tests/*.h' |
    while IFS= read -r header; do [ ! -e "$header" ] || echo "$header"; done |
    xargs -P "$(nproc)" -I{} bash -c 'alone "$@"' alone {} "$@"
