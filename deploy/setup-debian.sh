#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what xplaned needs from Debian 12.  Usage: deploy/setup-debian.sh [run|build|test|package]
#   run    libraries of a finished build
#   build  compilers, meson and headers (default)
#   test   also sanitizers, clang and its checkers, Python, chromium, mmdebstrap, promtool, zsh,
#          fish, libfaketime, iproute2, HAProxy, PgBouncer and a server of PostgreSQL (which are not
#          started) for the tests
#   package  build, and what makes the wheels, the Debian packages and the container image
#   headers  installs nothing: prints the packages with headers, for a root of another machine
# Does nothing, quickly, where everything is there already.
set -eu
run="libgrpc29 libprotobuf-c1 libuv1 libsqlite3-0 zlib1g libjansson4 libmicrohttpd12 libgnutls30 libdeflate0 libzstd1 libxxhash0 libpcre2-8-0"
headers="libstdc++-12-dev libgrpc-dev libprotobuf-c-dev libuv1-dev libsqlite3-dev zlib1g-dev libjansson-dev libmicrohttpd-dev libgnutls28-dev libdeflate-dev libzstd-dev libxxhash-dev libpcre2-dev libpq-dev libcurl4-openssl-dev libssl-dev libexpat1-dev"
build="gcc meson ninja-build pkg-config protobuf-c-compiler protobuf-compiler $headers python3"
test="clang clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm ccache sqlite3 python3-venv xz-utils git man-db gcovr chromium fonts-dejavu-core openssl mmdebstrap wrk curl prometheus postgresql-15 pgbouncer haproxy zsh fish faketime iproute2"
package="debhelper dpkg-dev lintian python3-venv buildah mmdebstrap gcc-aarch64-linux-gnu qemu-user-static"
case ${1:-build} in
    run) packages=$run ;;
    build) packages=$build ;;
    test) packages="$build $test" ;;
    package) packages="$build $package" ;;
    headers) echo "$headers"; exit ;;
    *) echo "usage: $0 [run|build|test|package|headers]" >&2; exit 2 ;;
esac
missing=
for p in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "$0: needs root to install:$missing" >&2; exit 1; }
    exec sudo "$0" "$@"
fi
export DEBIAN_FRONTEND=noninteractive
case $missing in
    *prometheus*) # for promtool: the server that comes with it is not to be started
        mkdir -p /etc/systemd/system
        [ -e /etc/systemd/system/prometheus.service ] || ln -s /dev/null /etc/systemd/system/prometheus.service ;;
esac
case $missing in
    *haproxy*) # it reads deploy/haproxy.cfg, and is not started
        mkdir -p /etc/systemd/system
        [ -e /etc/systemd/system/haproxy.service ] || ln -s /dev/null /etc/systemd/system/haproxy.service ;;
esac
case $missing in
    *postgresql*) # tests start their own
        mkdir -p /etc/systemd/system
        [ -e /etc/systemd/system/postgresql.service ] || ln -s /dev/null /etc/systemd/system/postgresql.service ;;
esac
case $missing in
    *pgbouncer*) # tests start their own
        mkdir -p /etc/systemd/system
        [ -e /etc/systemd/system/pgbouncer.service ] || ln -s /dev/null /etc/systemd/system/pgbouncer.service ;;
esac
apt-get update -q
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing
