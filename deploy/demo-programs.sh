# SPDX-License-Identifier: Apache-2.0
# Builds what demo.sh and cluster-demo.sh show, which source this in the root of the checkout: $bin is
# a directory with xplaned and xplanectl then.
deploy/setup-debian.sh build
[ -e build/demo/build.ninja ] || meson setup build/demo -Dbuildtype=release
ninja -C build/demo
bin=build/bin
mkdir -p "$bin"
ln -sf ../demo/server/xplaned ../demo/cli/xplanectl "$bin/"
