// SPDX-License-Identifier: Apache-2.0
// Files of tests/data, whole in memory.
#ifndef XPL_TESTS_DATA_FILE_H_
#define XPL_TESTS_DATA_FILE_H_

#include <stdio.h>

#include "base/buf.h"
#include "tests/check.h"

// The file's bytes; free with xpl_buf_fini.
static inline struct xpl_buf read_data_file(const char *name) {
    char path[1024];
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    (void)snprintf(path, sizeof path, "%s/%s", XPL_TEST_DATA, name);
    FILE *const f = fopen(path, "rb");
    if (!f) perror(path);
    CHECK(f);
    for (size_t got = 1; got; b.n += got) {
        CHECK(xpl_buf_room(&b, 1 << 16));
        got = fread(b.p + b.n, 1, 1 << 16, f);
    }
    CHECK(!ferror(f));
    fclose(f);
    return b;
}

#endif
