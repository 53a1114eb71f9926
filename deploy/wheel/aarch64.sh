#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel for aarch64 on x86-64: builds with Debian's cross compiler against Debian's arm64
# libraries.  Usage: deploy/wheel/aarch64.sh OUT     prints the wheel's path
# Needs `deploy/setup-debian.sh package`, PyPI, and root, because mmdebstrap makes the libraries' root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
root=$out/root

# The headers and libraries of a build, of the release that this machine has.  No program of a root
# that is only extracted runs: the packages stay, so that dpkg's database can be made of them.
make_root() {
    local sources=() options=() f
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$f" ] || sources+=("$f")
    done
    for f in /etc/apt/apt.conf.d/*; do options+=("--aptopt=$f"); done
    rm -rf "$root"
    # shellcheck disable=SC1091
    mmdebstrap --mode=root --variant=extract --architectures=arm64 --skip=cleanup/apt/cache "${options[@]}" \
        --include="$("$here/../setup-debian.sh" headers | tr ' ' ',')" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
        "$root" "${sources[@]}"
    for f in "$root"/var/cache/apt/archives/*.deb; do
        { dpkg-deb -f "$f"; printf 'Status: install ok installed\n\n'; } >>"$root/var/lib/dpkg/status"
        # "Multi-Arch: same" has the architecture in the list's name.
        local name
        name=$(dpkg-deb -f "$f" Package)
        [ "$(dpkg-deb -f "$f" Multi-Arch)" != same ] || name+=:arm64
        dpkg-deb --fsys-tarfile "$f" | tar -t | sed 's,^\.,,; s,/$,,; /^$/d' >"$root/var/lib/dpkg/info/$name.list"
    done
    echo 1 >"$root/var/lib/dpkg/info/format"
    # The linker follows libm.so and libz.so, links from / on, out of the root, and would take the static libraries.
    find "$root"/lib "$root"/usr/lib -type l -lname '/*' | while read -r f; do ln -sfnr "$root$(readlink "$f")" "$f"; done
    rm -f "$root"/var/cache/apt/archives/*.deb
}
# gcc 12.2 for aarch64 fails with an internal error where it vectorizes a loop of graph_viewer.  It does not look for
# libstdc++.so where Debian's native compiler has it.
write_cross_file() {
    cat <<END
[constants]
root = '$root'
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'aarch64-linux-gnu-gcc', '--sysroot=' + root]
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', root]
[properties]
sys_root = root
pkg_config_libdir = root + '/usr/lib/aarch64-linux-gnu/pkgconfig:' + root + '/usr/share/pkgconfig'
[built-in options]
c_args = ['-fno-tree-vectorize']
c_link_args = ['-fno-tree-vectorize', '-L$(echo "$root"/usr/lib/gcc/aarch64-linux-gnu/*)']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
}
{
    [ -e "$root/var/lib/dpkg/info/format" ] || make_root
    write_cross_file >"$out/cross.txt"
    [ -e "$out/build/build.ninja" ] ||
        meson setup "$out/build" "$here/../.." --cross-file "$out/cross.txt" -Dbuildtype=release -Db_lto=true --prefix=/ --libdir=lib
    ninja -C "$out/build"
} >&2
XPL_WHEEL_ROOT=$root XPL_WHEEL_PLATFORM=linux-aarch64 "$here/build.sh" "$out" "$out/build"
