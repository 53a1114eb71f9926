#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_certs.sh STAMP OPENSSL: beside STAMP, a CA and certificates of it for "localhost" (two, to
# change between) and for a client.
set -eu
stamp=$1 openssl=$2
dir=$(dirname "$stamp")

"$openssl" req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
  -subj "/CN=xplaned test CA" -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
for name in first second client; do
  "$openssl" req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" \
    -keyout "$dir/$name.key" -out "$dir/$name.csr" 2>/dev/null
  printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$dir/$name.ext"
  "$openssl" x509 -req -in "$dir/$name.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" \
    -CAcreateserial -days 2 -extfile "$dir/$name.ext" -out "$dir/$name.pem" 2>/dev/null
done
: >"$stamp"
