#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a file includes a layer that it must not know (see ARCHITECTURE.md).
# Usage: tests/check_layers.sh [ROOT]
#        tests/check_layers.sh --users FOLDER...   prints the folders that may include files of the FOLDERs
here=$(cd "$(dirname "$0")" && pwd)
users=
if [ "${1:-}" = --users ]; then
    shift
    users=$*
    cd "$here/.." || exit 2
else
    cd "${1:-$here/..}" || exit 2
fi
bad=0
# includes DIR: the lines of files in DIR that include something of ours.
includes() {
    [ ! -d "$1" ] || grep -rnE '^#include "' "$1" --include='*.[ch]'
}
# allow DIR LAYER...: files in DIR include only DIR itself and the LAYERs, "like/this.h".
allow() {
    dir=$1
    shift
    if [ -n "$users" ]; then
        for layer in "$@"; do may_include="$may_include $dir:$layer"; done
        return
    fi
    pattern="$dir/"
    for layer in "$@"; do pattern="$pattern|$layer"; done
    if includes "$dir" | grep -vE "\"($pattern)"; then
        echo "check_layers: $dir may include only itself and: $*" >&2
        bad=1
    fi
}
# deny DIR LAYER...: files in DIR include none of these.
deny() {
    [ -z "$users" ] || return
    dir=$1
    shift
    pattern=
    for layer in "$@"; do pattern="$pattern${pattern:+|}$layer"; done
    if includes "$dir" | grep -E "\"($pattern)"; then
        echo "check_layers: $dir must not include: $*" >&2
        bad=1
    fi
}
may_include=
allow base

xplane='analysis/xplane/ analysis/wire/ base/'
allow analysis/wire base/
allow analysis/xplane analysis/wire/ base/
allow analysis/perfetto base/
allow analysis/ireeprof analysis/perfetto/ analysis/xplane/writer.h base/
allow analysis/kineto $xplane
allow analysis/formats analysis/ireeprof/reader.h analysis/ireeprof/ireeperf/ireeperf.h analysis/ireeprof/timeline/timeline.h analysis/kineto/kineto.h $xplane
allow analysis/events $xplane
allow analysis/grouping $xplane
allow analysis/hlo analysis/grouping/ $xplane
allow analysis/trace analysis/perfetto/ analysis/hlo/ analysis/grouping/ $xplane
deny analysis/trace/derived analysis/trace/index/ analysis/trace/answer/ analysis/trace/export/
deny analysis/trace/index analysis/trace/answer/ analysis/trace/export/
deny analysis/trace/answer analysis/trace/export/
deny analysis/trace/export analysis/trace/answer/
allow analysis/opstats analysis/hlo/ analysis/grouping/ $xplane
deny analysis/opstats/metrics analysis/opstats/device/ analysis/opstats/host/ analysis/opstats/steps/ analysis/opstats/combine/ analysis/opstats/codec/
deny analysis/opstats/codec analysis/opstats/device/ analysis/opstats/host/ analysis/opstats/steps/ analysis/opstats/combine/
deny analysis/opstats/device analysis/opstats/combine/ analysis/opstats/codec/
deny analysis/opstats/host analysis/opstats/combine/ analysis/opstats/codec/
deny analysis/opstats/steps analysis/opstats/combine/ analysis/opstats/codec/
allow analysis/breakdown analysis/opstats/ analysis/hlo/ analysis/grouping/ $xplane
allow analysis/compare analysis/wire/ base/
allow analysis/inference analysis/opstats/ analysis/hlo/ analysis/grouping/ $xplane
allow analysis/tools analysis/perfetto/ analysis/products/ analysis/compare/ analysis/events/ analysis/breakdown/ analysis/inference/ analysis/formats/ analysis/ireeprof/ analysis/trace/ analysis/opstats/ analysis/hlo/ analysis/grouping/ $xplane
deny analysis/tools/lib analysis/tools/input_pipeline/ analysis/tools/memory_profile/ analysis/tools/trace_viewer/ analysis/trace/
deny analysis/tools/input_pipeline analysis/tools/memory_profile/ analysis/tools/trace_viewer/ analysis/trace/
deny analysis/tools/memory_profile analysis/tools/input_pipeline/ analysis/tools/trace_viewer/ analysis/trace/
deny analysis/tools/trace_viewer analysis/tools/input_pipeline/ analysis/tools/memory_profile/
# Some products are made by code in their tool's folder, or for the options of a tool; of the tools
# themselves products know nothing.
allow analysis/products analysis/tools/memory_profile/memory_profile.h \
    analysis/tools/trace_viewer/trace_viewer.h analysis/tools/trace_viewer/options.h \
    analysis/formats/facts.h analysis/formats/format.h analysis/ireeprof/ analysis/trace/ analysis/breakdown/ analysis/inference/ analysis/opstats/ analysis/hlo/ analysis/grouping/ $xplane

allow storage base/
deny storage/sessions storage/store/rows.h storage/store/history.h storage/store/files.h
# Statements over profiles: tables of events and instructions, beside the store's file, which is
# opened read-only and of which nothing else is known here.
allow sql analysis/compare/ analysis/breakdown/ analysis/opstats/ analysis/hlo/ analysis/xplane/ analysis/wire/ base/
allow rpc base/ proto/
allow capture analysis/formats/format.h analysis/wire/ base/ rpc/ proto/ storage/sessions/session_writer.h storage/sessions/layout.h
allow agent analysis/formats/format.h analysis/xplane/writer.h analysis/wire/ base/ rpc/ proto/
allow agent/inject agent/record.h

allow server base/ analysis/ storage/ sql/ rpc/ proto/ capture/
allow server/web
deny server/engine server/grpc/ server/http/ server/web/ server/capture_jobs/ server/jobs/ capture/
deny server/labels server/engine/
deny server/capture_jobs server/http/ server/web/
deny server/grpc server/http/ server/web/
allow client base/ rpc/ capture/ proto/
allow cli base/ analysis/ storage/ sql/ rpc/ proto/ client/ capture/

if [ -n "$users" ]; then
    # Until nothing is added: a folder uses what contains its layer, or what its layer contains.
    # shellcheck disable=SC2086
    printf '%s\n' $may_include | awk -F : -v changed="$users" '
        function inside(a, b) { return index(a "/", b "/") == 1 }
        { dir[NR] = $1; layer[NR] = $2; sub(/\/$/, "", layer[NR]) }
        END {
            n = split(changed, list, " ")
            do {
                added = 0
                for (i = 1; i <= NR; i++) {
                    for (k = 1; k <= n && !(dir[i] in seen); k++) {
                        if (inside(list[k], layer[i]) || inside(layer[i], list[k])) {
                            seen[dir[i]] = added = 1
                            list[++n] = dir[i]
                            print dir[i]
                        }
                    }
                }
            } while (added)
        }'
    exit
fi

# What analysis/ must not touch: sockets, SQL, logging, threads of its own.
if grep -rnE '(#include <(sys/socket|netinet|sqlite3|uv|grpc)|pthread_create)' analysis --include='*.[ch]'; then
    echo "check_layers: analysis/ has no sockets, SQL or threads of its own" >&2
    bad=1
fi
for dir in analysis storage; do
    if includes $dir | grep -F '"base/log.h"'; then
        echo "check_layers: $dir/ does not log" >&2
        bad=1
    fi
done
# SQLite is known to the store's folder and to sql/, and what is above them knows their interfaces.
for dir in base analysis rpc capture agent server client cli; do
    if grep -rn '#include <sqlite3' "$dir" --include='*.[ch]' 2>/dev/null; then
        echo "check_layers: only storage/store/sqlite/ and sql/ include sqlite3.h" >&2
        bad=1
    fi
done
for dir in analysis sql rpc capture agent server client cli; do
    if includes "$dir" | grep '"storage/store/sqlite/' | grep -v '/hash.h"'; then
        echo "check_layers: $dir/ must include the store's interface, not its implementation" >&2
        bad=1
    fi
done
# Suffixes of profiles stand in the table of formats alone.
if grep -rnE '"[^"]*\.xplane\.' agent analysis base capture cli client rpc server sql storage \
    --include='*.[ch]' | grep -v '^analysis/formats/'; then
    echo "check_layers: ask analysis/formats/format.h which files are profiles" >&2
    bad=1
fi
# A format with tools of its own, IREE, is named by its rows and the files of its rows alone.
if grep -rliE 'iree' agent analysis base capture cli client rpc server sql storage --include='*.[ch]' |
    grep -vE '^(analysis/ireeprof|cli/iree)/|/iree\w*\.c$|^analysis/(formats|products|tools)/rows\.h$|^cli/commands/commands\.c$'; then
    echo "check_layers: only rows of tables name a format" >&2
    bad=1
fi
# Waits use the monotonic clock.
if grep -rnE 'pthread_cond_timedwait|sem_timedwait' base analysis sql storage rpc capture agent server client cli \
    --include='*.[ch]' | grep -v '^base/cond.c'; then
    echo "check_layers: wait by base/cond.h, or sem_clockwait" >&2
    bad=1
fi
# What stands in a message is gRPC's business: HTTP parses and writes none.
deny server/http server/grpc/
if grep -rnE '#include "(analysis/wire/|proto/|rpc/message)|#include .*protobuf|\.pb-c\.h|xpl_rpc_put_|Protobuf' \
    server/http server/web server/engine server/monitor --include='*.[ch]' | grep .; then
    echo "check_layers: HTTP, engine and monitor know structs, not messages" >&2
    bad=1
fi
# Circles between files, and headers that say they are private.
"$here/check_structure.py" . --only circles --only includes --only private || bad=1
exit $bad
