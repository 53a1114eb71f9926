#!/bin/sh
# Compiles every header of ours alone.  Usage: tests/headers.sh COMPILER...
cd "$(dirname "$0")/.." || exit 2
bad=0
for h in $(git ls-files 'base/*.h' 'analysis/*.h' 'storage/*.h' 'rpc/*.h' 'capture/*.h' 'agent/*.h' 'server/*.h' 'client/*.h' 'cli/*.h'); do
    printf '#include "%s"\nextern int xpl_alone;\n' "$h" |
        "$@" -x c -std=gnu17 -D_GNU_SOURCE -DXPL_FAULTS=1 -I. $(pkg-config --cflags grpc libuv libprotobuf-c sqlite3) \
            -Wall -Wextra -Werror -fsyntax-only - || { echo "headers: $h does not compile alone" >&2; bad=1; }
done
exit $bad
