// SPDX-License-Identifier: Apache-2.0
// A fast 64-bit hash of bytes: for finding keys, and for noticing that stored bytes are not what
// was stored.  Not cryptographic: whoever relies on it against malice compares the bytes as well,
// or seeds it with xpl_hash_seed() and has UTF-8: eight bytes that equal a constant of hash.c make
// it forget those before, and no UTF-8 has them.  Stable for ever, as it is written into databases.
#ifndef XPL_STORAGE_HASH_H_
#define XPL_STORAGE_HASH_H_

#include <stdint.h>

#include "base/str.h"

uint64_t xpl_digest64(xpl_bytes_t bytes, uint64_t seed);

#endif
