// SPDX-License-Identifier: Apache-2.0
// Private: how files of the store are written.
#ifndef XPL_STORAGE_STORE_WRITE_FILE_H_
#define XPL_STORAGE_STORE_WRITE_FILE_H_

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/str.h"

// Writes all of it; false with errno.
static inline bool xpl_write_file(int fd, xpl_bytes_t b) {
    while (b.len) {
        const ssize_t n = write(fd, b.ptr, b.len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        b.ptr += n;
        b.len -= (size_t)n;
    }
    return true;
}

#endif
