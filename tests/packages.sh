#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds what users install, and checks it.   tests/packages.sh WORK [PART]...
#   user        README's build below a prefix of its own: at most 60 s of 2 cores; runs as it is
#   wheel       the wheel: its tag, its libraries, its licences
#   wheel-aarch64  the wheel for aarch64, cross-built; its programs run under qemu with a bare C library
#   deb         the Debian packages: contents, versions, lintian
#   wheel-root  pip install in a bare root with python3-venv alone; the demonstration
#   deb-root    apt install in a bare root; the demonstration by the unit's user; purge keeps profiles
#   image       the image of the Dockerfile, made by buildah without a registry; the demonstration
# Without a PART: all of them.  wheel-root needs wheel, deb-root deb.  Builds, roots and packages
# are kept below WORK until the next run.
# One "passed|failed|skipped packages: NAME" a line at the end of the output.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
. tests/bare_root.sh
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(user wheel wheel-aarch64 deb wheel-root deb-root image)
results=()
result() { results+=("$1 packages: $2"); }
fail() { echo "packages: $*" >&2; return 1; }
version=$(sed -n "s/^project(.* version: '\([0-9.]*\)'.*/\1/p" meson.build)

# ---- what is built ----
user_build() {
    CCACHE_DISABLE=1 CC=gcc meson setup "$work/user/build" --prefix="$work/user/prefix" -Dbuildtype=release &&
        CCACHE_DISABLE=1 ninja -C "$work/user/build" install
}
# A program of one shape for all times, whose compilation is the unit of what a build may cost: its
# ratio is that of any machine, however busy.
unit_source() {
    awk 'BEGIN {
        print "unsigned long sink;"
        for (i = 0; i < 400; i++) {
            printf "static unsigned f%d(unsigned *a, unsigned n) {\n", i
            printf "    unsigned s = %d;\n    for (unsigned k = 0; k < n; k++) {\n", i
            printf "        switch ((a[k] + s) %% %d) {\n", 5 + i % 7
            for (j = 0; j < 5; j++) printf "        case %d: s += a[k %% %d] * %du; break;\n", j, 3 + j, i + j
            printf "        default: a[k] ^= s >> %d;\n        }\n    }\n    return s;\n}\n", 1 + i % 13
        }
        print "unsigned long all(unsigned *a, unsigned n) {"
        for (i = 0; i < 400; i++) printf "    sink += f%d(a, n);\n", i
        print "    return sink;\n}"
    }'
}
# As many compilations at once as the build has.
compile_unit() {
    gcc -O3 -c "$work/user/unit.c" -o /dev/null & gcc -O3 -c "$work/user/unit.c" -o /dev/null & wait
}
# processor_seconds COMMAND...: what it takes of all processors, user and system, times 100.
processor_seconds() {
    local TIMEFORMAT='%U %S'
    { time "$@" >>"$work/user/log" 2>&1; } 2>"$work/user/cpu" || return
    awk 'END {printf "%d\n", ($1 + $2) * 100}' "$work/user/cpu"
}
try_user() {
    rm -rf "$work/user" && mkdir -p "$work/user"
    unit_source >"$work/user/unit.c"
    local before cost after
    before=$(processor_seconds compile_unit) && cost=$(processor_seconds user_build) &&
        after=$(processor_seconds compile_unit) || { tail -40 "$work/user/log"; return 1; }
    local units=$((cost * 200 / (before + after)))
    echo "packages: set-up, build and installation take $((cost / 200)) s of 2 cores; that costs $units" \
        "hundredths of two compilations of the unit"
    # 2000 are a build of 60 s of 2 cores where the unit takes 3 s.
    [ "$units" -le 2000 ] || fail "a build for users costs $units, more than the goal of 2000" || return
    # Not in one pipe: grep ends at its first match, and ninja's end by a signal would count.
    ninja -C "$work/user/build" -t targets all >"$work/user/targets" || return
    ! grep '^tests/' "$work/user/targets" || fail "a user's build has tests" || return
    tests/installed.sh "" "$work/user/prefix" || return
    # Programs find the library wherever the prefix is.
    rm -rf "$work/user/moved"
    mv "$work/user/prefix" "$work/user/moved" || return
    local program moved=0
    for program in xplanectl xplaned; do
        "$work/user/moved/bin/$program" --version || moved=1
    done
    "$work/user/moved/bin/xplaned-agent" --help >/dev/null || moved=1
    mv "$work/user/moved" "$work/user/prefix" && return "$moved"
}
# The libraries of the wheel's programs come from the wheel, but for those that every Linux has.
check_libraries() {
    local file
    for file in "$1"/xplaned_programs/bin/* "$1"/xplaned.libs/*; do
        ldd "$file" | awk -v file="$file" -v own="$1/" '
            $2 == "=>" && index($3, own) != 1 && $1 !~ /^lib(c|m|gcc_s|stdc\+\+|z|pthread|dl|rt)\.so/ {
                print "packages: " file " takes " $1 " from the system"; bad = 1 }
            END { exit bad }' || return 1
    done
}
# The Python client with the wheel's own daemon.  Arguments: a log directory, a state directory.
ask_client='
import sys, xplaned
with xplaned.start(sys.argv[1], args=["--state-dir", sys.argv[2]]) as client:
    assert client.session("cpu/jax_matmul_nopy").ops()
'
try_wheel() {
    local wheel venv=$work/wheel/try tag licences
    wheel=$(deploy/wheel/build.sh "$work/wheel" | tail -1) && [ -e "$wheel" ] || return
    tag=$(basename "$wheel" .whl)
    tag=${tag#"xplaned-$version-py3-none-manylinux_2_"}
    # Debian 12 has glibc 2.36: nothing built here runs on what is older than it needs.
    [ "${tag%%_*}" -le 36 ] || fail "$wheel: not xplaned $version for manylinux_2_36 or older" || return
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "$wheel" || return
    local site
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    check_libraries "$site" || return
    licences=$site/xplaned-$version.dist-info/licenses
    [ "$(grep -c '^lib.*: .* built from ' "$licences/bundled.txt")" -eq "$(find "$site/xplaned.libs" -type f | wc -l)" ] ||
        fail "licences are missing" || return
    "$venv/bin/python" -c "$ask_client" tests/data/logdir "$work/wheel/state" || return
    # Without Python, and by a link from elsewhere.
    ln -sf "$venv/bin/xplaned" "$work/wheel/xplaned" && env -i PATH=/usr/bin:/bin "$work/wheel/xplaned" --version &&
        [ -e "$("$venv/bin/xplaned" --docs)" ] && env -i PATH=/none "$venv/bin/xplanectl" --version && "$venv/bin/xplaned-agent" --help >/dev/null &&
        [ -e "$("$venv/bin/python" -m xplaned_programs libxplaned-agent.so)" ] &&
        [ -d "$("$venv/bin/python" -m xplaned_programs proto)" ] &&
        man -M "$venv/share/man" xplanectl >/dev/null || return
    # A launcher starts its own version, not an older one of another Python, and says where there is none.
    local old=$venv/lib/python3.0/site-packages alone=$work/wheel/alone/bin said
    mkdir -p "$old/xplaned_programs/bin" "$old/xplaned-0.0.1.dist-info" "$alone" && cp "$venv/bin/xplaned" "$alone/" &&
        printf '#!/bin/sh\nexit 9\n' >"$old/xplaned_programs/bin/xplaned" && chmod +x "$old/xplaned_programs/bin/xplaned" &&
        env -i PATH=/none "$venv/bin/xplaned" --version || return
    said=$(env -i PATH=/none "$alone/xplaned" --version 2>&1)
    [ $? -eq 127 ] && [[ $said == "xplaned: xplaned $version is not "* ]] || fail "a launcher without programs: $said"
}
# Nothing is below its root but what every Linux has: the other libraries come from the wheel.
try_wheel_aarch64() {
    local dir=$work/wheel-aarch64 wheel name root=$work/wheel-aarch64/root run
    wheel=$(deploy/wheel/aarch64.sh "$dir" | tail -1) && [ -e "$wheel" ] || return
    [[ $wheel == *"/xplaned-$version-py3-none-manylinux_2_"*_aarch64.whl ]] || fail "$wheel: its name" || return
    rm -rf "$dir/try" "$dir/bare"
    mkdir -p "$dir/bare/lib" && python3 -m zipfile -e "$wheel" "$dir/try" && chmod +x "$dir"/try/xplaned_programs/bin/* || return
    for name in ld-linux-aarch64 libc libm libgcc_s libstdc++ libz libpthread libdl librt libresolv; do
        cp -L "$(find "$root/lib" "$root/usr/lib" -name "$name.so.[0-9]" | head -1)" "$dir/bare/lib/" || return
    done
    run=(qemu-aarch64-static -L "$dir/bare")
    [ "$("${run[@]}" "$dir/try/xplaned_programs/bin/xplaned" --version)" = "xplaned $version" ] || return
    # grep reads to the end, or the program would end by a signal.
    "${run[@]}" "$dir/try/xplaned_programs/bin/xplanectl" summary \
        tests/data/logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb | grep "^Hosts    1 " || return
    "${run[@]}" "$dir/try/xplaned_programs/bin/xplaned-agent" --help >/dev/null
}
try_deb() {
    local name cache=()
    # debhelper takes $HOME away, and with it the place of the compiler's cache.
    ! command -v ccache >/dev/null || cache=("CCACHE_DIR=$(ccache --get-config cache_dir)")
    rm -rf "$work/deb" && mkdir -p "$work/deb"
    copy_checkout "$work/deb/xplaned"
    (cd "$work/deb/xplaned" && env "${cache[@]}" DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc) >"$work/deb/log" 2>&1 ||
        { tail -40 "$work/deb/log"; return 1; }
    rm -rf "$work/deb/xplaned"
    for name in xplaned libxplaned0 libxplaned-dev xplaned-agent; do
        [ -e "$work/deb/${name}_${version}_$(dpkg --print-architecture).deb" ] ||
            fail "no package $name of version $version: debian/changelog and meson.build differ?" || return
    done
    dpkg-deb --fsys-tarfile "$work"/deb/xplaned_*.deb | tar -xO ./lib/systemd/system/xplaned.service |
        grep -qx 'ExecStart=/usr/bin/xplaned' || fail "the unit does not start /usr/bin/xplaned" || return
    lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$work"/deb/*.changes
}

# ---- installed where nothing else is ----
# What the demonstration needs, as /src of a root.
copy_demo() {
    copy_checkout "$1" deploy/demo.sh tests/data/logdir
}
try_wheel_root() {
    cp "$work"/wheel/*.whl "$work/wheel-root/tmp/" && copy_demo "$work/wheel-root/src" || return
    # shellcheck disable=SC2016
    inside wheel-root sh -euc '
        { apt-get update && apt-get install -y --no-install-recommends python3-venv; } >/tmp/apt.log 2>&1 ||
            { tail -20 /tmp/apt.log; exit 1; }
        python3 -m venv /opt/venv
        /opt/venv/bin/pip install --quiet /tmp/xplaned-*.whl
        if ldconfig -p | grep libgrpc; then exit 1; fi # -e takes no notice of a status behind "!"
        XPL_BIN=/opt/venv/bin /src/deploy/demo.sh >/tmp/demo
        /opt/venv/bin/python -c "$1" /src/tests/data/logdir /tmp/state
        /opt/venv/bin/xplaned-agent --help >/dev/null' sh "$ask_client" &&
        tests/demo_answers.sh "$work/wheel-root/tmp/demo"
}
# What systemd does with the unit: its user, its directories, its command.
# shellcheck disable=SC2016
run_unit='
    unit=/lib/systemd/system/xplaned.service
    user=$(sed -n "s/^User=//p" $unit)
    install -d -m 0700 -o "$user" /var/cache/xplaned
    : >/tmp/log # read below before the daemon has begun it
    runuser -u "$user" -- env STATE_DIRECTORY=/var/lib/xplaned CACHE_DIRECTORY=/var/cache/xplaned \
        XPLANED_LISTEN=127.0.0.1:0 XPLANED_HTTP=off $(sed -n "s/^ExecStart=//p" $unit) 2>/tmp/log &
    for i in $(seq 600); do
        XPL_SERVER=$(sed -n "s/.*msg=listening service=grpc address=\([^ ]*\).*/\1/p" /tmp/log)
        [ -z "$XPL_SERVER" ] || break
        sleep 0.1
    done
    [ -n "$XPL_SERVER" ] || { cat /tmp/log; exit 1; }
    export XPL_SERVER'
try_deb_root() {
    cp "$work"/deb/*.deb "$work/deb-root/tmp/" && copy_demo "$work/deb-root/src" || return
    # The daemon ends with the name space of its process id.
    inside deb-root sh -euc '
        cd /tmp
        { apt-get update && apt-get install -y --no-install-recommends ./xplaned_*.deb ./libxplaned0_*.deb \
            ./xplaned-agent_*.deb; } >/tmp/apt.log 2>&1 || { tail -20 /tmp/apt.log; exit 1; }
        cp -r /src/tests/data/logdir/* /var/lib/xplaned/profiles/
        '"$run_unit"'
        XPL_BIN=/usr/bin /src/deploy/demo.sh >/tmp/demo
        xplaned-agent --help >/dev/null
        test -e /var/lib/xplaned/state.db -a -e /var/cache/xplaned/cache.db' &&
        tests/demo_answers.sh "$work/deb-root/tmp/demo" || return
    inside deb-root sh -euc '
        apt-get purge -y xplaned >>/tmp/apt.log 2>&1
        test ! -e /var/lib/xplaned/state.db -a ! -e /var/cache/xplaned -a ! -e /etc/xplaned -a ! -e /usr/bin/xplaned
        diff -r /src/tests/data/logdir /var/lib/xplaned/profiles' || fail "purge removed too much, or too little"
}

# ---- the image ----
storage() { buildah --root "$work/image/storage" --runroot "$work/image/run" --storage-driver vfs "$@"; }
# The Dockerfile's images come from no registry: they are the base root under their names.
make_image_base() {
    local container
    container=$(storage from scratch) &&
        storage add --quiet "$container" "$work/base" / >/dev/null &&
        storage commit --quiet "$container" docker.io/library/debian:12 >/dev/null &&
        storage tag docker.io/library/debian:12 docker.io/library/debian:12-slim &&
        storage rm "$container" >/dev/null
}
# ask_image CONTAINER COMMAND...: the daemon by the image's command, and the demonstration beside it.
# In a network name space of its own, as the image's ports are fixed; the daemon ends with it.
ask_image() {
    local container=$1 demo=$work/image/demo
    shift
    # 0x8914 is SIOCSIFFLAGS, 1 IFF_UP.
    python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 1))'
    storage run --isolation chroot -v "$demo/tests/data/logdir:/profiles:ro" "$container" -- "$@" 2>"$demo/log" &
    for _ in $(seq 600); do
        ! grep -qs "msg=listening service=grpc" "$demo/log" || break
        sleep 0.1
    done
    storage run --isolation chroot -v "$demo:/src:ro" "$container" -- \
        env XPL_BIN=/usr/bin XPL_SERVER=127.0.0.1:50551 /src/deploy/demo.sh >"$demo/out" || { cat "$demo/log"; return 1; }
}
try_image() {
    local container config
    copy_checkout "$work/image/src" && copy_demo "$work/image/demo" && make_image_base || return
    storage build --isolation chroot --pull-never --network host -t xplaned "$work/image/src" \
        >"$work/image/log" 2>&1 || { tail -40 "$work/image/log"; return 1; }
    container=$(storage from --pull-never xplaned) || return
    mapfile -t config < <(storage inspect --type image --format \
        '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}{{range .OCIv1.Config.Cmd}}{{println .}}{{end}}' xplaned | grep .)
    export work
    export -f storage ask_image
    unshare --net --pid --fork --mount-proc bash -c 'ask_image "$@"' bash "$container" "${config[@]}" || return
    tests/demo_answers.sh "$work/image/demo/out"
}

# prepare PART: what it needs beside the parts before it; prints why it is skipped.
base_made=
prepare() {
    case $1 in *-root | image) ;; *) return 0 ;; esac
    local why
    why=$(why_no_roots)
    [ "$1" != image ] || command -v buildah >/dev/null || why="no buildah"
    [ -z "$why" ] || { result skipped "$1 ($why)"; return 1; }
    if [ -z "$base_made" ]; then
        make_base || { result failed "base"; return 1; }
        base_made=1
    fi
    rm -rf "${work:?}/$1"
    if [ "$1" = image ]; then mkdir -p "$work/image"; else new_root "$1"; fi
}
for part in "${parts[@]}"; do
    began=$SECONDS
    prepare "$part" || continue
    if "try_${part//-/_}"; then result passed "$part"; else result failed "$part"; fi
    echo "packages: $part took $((SECONDS - began)) s"
    case $part in *-root | image) rm -rf "${work:?}/$part" ;; esac
done
rm -rf "${work:?}/base" "${work:?}/debs"
printf '%s\n' "${results[@]}"
