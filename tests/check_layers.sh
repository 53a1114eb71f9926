#!/bin/sh
# Fails when a file includes a layer it must not know (DESIGN order; see ARCHITECTURE.md).
# Usage: tests/check_layers.sh [ROOT]
cd "${1:-$(dirname "$0")/..}" || exit 2
bad=0
# allow DIR LAYER...: files in DIR include only DIR itself and the LAYERs, "like/this.h".
allow() {
    dir=$1
    shift
    [ -d "$dir" ] || return 0
    pattern="$dir/"
    for layer in "$@"; do pattern="$pattern|$layer"; done
    if grep -rnE '^#include "' "$dir" --include='*.[ch]' | grep -vE "\"($pattern)"; then
        echo "check_layers: $dir may include only itself and: $*" >&2
        bad=1
    fi
}
allow base
allow analysis/wire base/
allow analysis/xplane analysis/wire/ base/
allow analysis/formats analysis/xplane/ analysis/wire/ base/
allow analysis/grouping analysis/xplane/ analysis/wire/ base/
allow analysis/hlo analysis/grouping/ analysis/xplane/ analysis/wire/ base/
allow analysis/trace analysis/hlo/ analysis/grouping/ analysis/xplane/ analysis/wire/ base/
allow analysis/opstats analysis/hlo/ analysis/grouping/ analysis/xplane/ analysis/wire/ base/
# Some products are made by code in their tool's folder, or for the options of a tool; of the tools
# themselves products know nothing.
allow analysis/products analysis/tools/memory_profile/memory_profile.h \
    analysis/tools/trace_viewer/trace_viewer.h analysis/tools/trace_viewer/options.h \
    analysis/trace/ analysis/opstats/ analysis/hlo/ analysis/grouping/ analysis/xplane/ analysis/wire/ base/
allow analysis/tools analysis/products/ analysis/trace/ analysis/opstats/ analysis/hlo/ analysis/grouping/ analysis/xplane/ analysis/wire/ base/
allow storage base/
allow rpc base/ proto/
allow capture analysis/formats/format.h analysis/wire/ base/ rpc/ proto/
allow agent analysis/formats/format.h analysis/xplane/writer.h analysis/wire/ base/ rpc/ proto/
allow agent/inject agent/record.h
allow server base/ analysis/ storage/ rpc/ proto/ capture/
allow client base/ rpc/ capture/ proto/
allow cli base/ analysis/ storage/ rpc/ proto/ client/ capture/
# What analysis/ must not touch: sockets, SQL, logging, threads of its own.
if grep -rnE '(#include <(sys/socket|netinet|sqlite3|uv|grpc)|pthread_create)' analysis --include='*.[ch]' ||
    grep -rnE '#include "base/log.h"' analysis storage --include='*.[ch]'; then
    echo "check_layers: analysis/ has no sockets, SQL, threads or logging; storage/ does not log" >&2
    bad=1
fi
exit $bad
