// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib, gzip and PNG have it, over bytes that come in pieces.
#ifndef XPL_BASE_CRC32_H_
#define XPL_BASE_CRC32_H_

#include <stdint.h>

#include "base/str.h"

// Begin with `crc` 0, then give the last result.
uint32_t xpl_crc32(uint32_t crc, xpl_bytes_t bytes);

#endif
