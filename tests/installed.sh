#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks an installation below DESTDIR (prefix /usr): what is there, that it runs, that the library
# exports what client.map says and the header and pkg-config file work.  Usage: installed.sh DESTDIR
set -eu
dest=$1
cd "$(dirname "$0")/.."
lib=$(dirname "$(find "$dest" -name 'libxplaned.so.0')")
export LD_LIBRARY_PATH="$lib"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for f in bin/xplaned bin/xplanectl include/xplaned.h share/man/man1/xplanectl.1 \
    share/man/man3/xplaned.3 share/man/man8/xplaned.8 lib/systemd/system/xplaned.service; do
    [ -e "$dest/usr/$f" ] || { echo "installed: usr/$f is missing" >&2; exit 1; }
done
"$dest/usr/bin/xplaned" --version
"$dest/usr/bin/xplanectl" --version
nm -D --defined-only "$lib/libxplaned.so.0" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort >"$work/have"
sed -n 's/^ *\(xpl_[a-z_]*\);$/\1/p' client/client.map | sort >"$work/want"
diff "$work/want" "$work/have" || { echo "installed: exports differ from client.map" >&2; exit 1; }
cat >"$work/use.c" <<'C'
#include <xplaned.h>
#include <stdio.h>
int main(void) { return puts(xpl_client_version()) < 0; }
C
PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dest" sh -c \
    "${CC:-cc} '$work/use.c' \$(pkg-config --cflags --libs xplaned) -o '$work/use'"
"$work/use"
XPL_BIN="$dest/usr/bin" deploy/demo.sh >"$work/demo" || { cat "$work/demo"; exit 1; }
for part in "Steps" "Device ops" "Host ops" "Memory" "overview_page"; do
    grep -q "$part" "$work/demo" || { echo "installed: the demonstration does not show $part" >&2; cat "$work/demo"; exit 1; }
done
