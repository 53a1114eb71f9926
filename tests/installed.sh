#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks an installation below DESTDIR and PREFIX: what is there, that it runs, that the library
# exports what client.map says, that header, pkg-config file and manual pages work, that the unit
# names the program.  Usage: installed.sh DESTDIR [PREFIX]
# PREFIX is /usr unless said.  Nothing tells the loader where the library is, but for the program
# that uses the library from below a DESTDIR.
set -eu
dest=$1 prefix=${2:-/usr}
cd "$(dirname "$0")/.."
root=$dest$prefix
lib=$(dirname "$(find "$root" -name 'libxplaned.so.0')")
unset LD_LIBRARY_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "installed: $*" >&2; exit 1; }
for f in bin/xplaned bin/xplanectl bin/xplaned-agent include/xplaned.h share/man/man1/xplanectl.1 \
    share/man/man1/xplaned-agent.1 share/man/man3/xplaned.3 share/man/man3/libxplaned.3 \
    share/man/man8/xplaned.8 share/bash-completion/completions/xplanectl \
    share/fish/vendor_completions.d/xplanectl.fish lib/systemd/system/xplaned.service lib/sysusers.d/xplaned.conf \
    lib/systemd/system/xplaned-worker@.service lib/tmpfiles.d/xplaned.conf; do
    [ -e "$root/$f" ] || fail "$f is missing"
done
[ -e "$lib/xplaned/libxplaned-agent.so" ] || fail "libxplaned-agent.so is missing"
"$root/bin/xplaned" --version
"$root/bin/xplanectl" --version
"$root/bin/xplaned-agent" --help >/dev/null
grep -q '^# docs/$' "$("$root/bin/xplaned" --docs)" || fail "the documents"
# What is loaded when it is configured is not needed to start.
readelf -d "$root/bin/xplaned" | grep NEEDED | grep -E 'lib(pq|curl|expat)\.' && fail "xplaned needs these to start"
bash -c '. "$1" && complete -p xplanectl' - "$root/share/bash-completion/completions/xplanectl" >/dev/null ||
    fail "the completion of bash"
grep -qx "ExecStart=$prefix/bin/xplaned" "$root/lib/systemd/system/xplaned.service" ||
    fail "the unit does not start $prefix/bin/xplaned"
for page in xplanectl xplaned xplaned-agent libxplaned; do
    man -M "$root/share/man" "$page" >"$work/page" 2>&1 || fail "man $page: $(cat "$work/page")"
    grep -q "$("$root/bin/xplaned" --version | awk '{print $2}')" "$work/page" ||
        fail "man $page does not name the version"
done
nm -D --defined-only "$lib/libxplaned.so.0" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort >"$work/have"
sed -n 's/^ *\(xpl_[a-z_]*\);$/\1/p' client/client.map | sort >"$work/expected"
diff "$work/expected" "$work/have" || fail "exports differ from client.map"
cat >"$work/use.c" <<'C'
#include <stdio.h>
#include <xplaned.h>
/* Asks a server that is not there: the answer is an error with a text. */
int main(int argc, char **argv) {
    xpl_client *c = NULL;
    xpl_sessions *s = NULL;
    xpl_result r = {0};
    const xpl_client_options o = {.size = sizeof o, .timeout_ms = 2000};
    const int code = argc == 2 && xpl_client_open(argv[1], &o, &c, &r) == 0 ? xpl_client_sessions(c, &s, &r) : 0;
    printf("libxplaned %s: %s\n", xpl_client_version(), r.message);
    xpl_client_close(c);
    return code == 0 || r.message[0] == 0;
}
C
[ -z "$dest" ] || export PKG_CONFIG_SYSROOT_DIR="$dest"
PKG_CONFIG_PATH="$lib/pkgconfig" sh -c \
    "${CC:-cc} '$work/use.c' \$(pkg-config --cflags --libs xplaned) -o '$work/use'"
env ${dest:+"LD_LIBRARY_PATH=$lib"} "$work/use" "unix:$work/none" || fail "the program that uses the library"
XPL_BIN="$root/bin" deploy/demo.sh >"$work/demo" || { cat "$work/demo"; exit 1; }
tests/demo_answers.sh "$work/demo"
