// SPDX-License-Identifier: Apache-2.0
#include "base/text/base64.h"

static void put_encoded(struct xpl_buf *b, xpl_bytes_t s, const char *last, bool filled) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < s.len && !b->failed; i += 3) {
        const size_t n = s.len - i < 3 ? s.len - i : 3;
        uint32_t v = (uint32_t)s.ptr[i] << 16;
        if (n > 1) v |= (uint32_t)s.ptr[i + 1] << 8;
        if (n > 2) v |= s.ptr[i + 2];
        char four[4] = {'=', '=', '=', '='};
        for (size_t k = 0; k <= n; k++) {
            const uint32_t digit = v >> (18 - 6 * k) & 63;
            four[k] = digit < 62 ? letters[digit] : last[digit - 62];
        }
        xpl_buf_put(b, four, filled ? sizeof four : n + 1);
    }
}

void xpl_base64_put(struct xpl_buf *b, xpl_bytes_t s) {
    put_encoded(b, s, "+/", true);
}

void xpl_base64_put_url(struct xpl_buf *b, xpl_bytes_t s) {
    put_encoded(b, s, "-_", false);
}
