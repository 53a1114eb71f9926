// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"

void xpl_buf_init(struct xpl_buf *b, size_t max) {
    *b = (struct xpl_buf){.max = max};
}

void xpl_buf_fini(struct xpl_buf *b) {
    xpl_sys_free(b->p);
    *b = (struct xpl_buf){0};
}

uint8_t *xpl_buf_take(struct xpl_buf *b, size_t *ret_len) {
    if (b->failed) return NULL;
    uint8_t *p = b->p ? b->p : xpl_sys_alloc(1);
    if (!p) return NULL;
    *ret_len = b->n;
    *b = (struct xpl_buf){.max = b->max};
    return p;
}

static bool set_capacity(struct xpl_buf *b, size_t cap) {
    // One more for the NUL that ends the text of xpl_buf_printf.
    uint8_t *p = cap < SIZE_MAX ? xpl_sys_realloc(b->p, cap + 1) : NULL;
    if (!p) return false;
    b->p = p;
    b->cap = cap;
    return true;
}

void xpl_buf_expect(struct xpl_buf *b, size_t n) {
    if (!b->failed && n > b->cap && n <= b->max) (void)set_capacity(b, n);
}

bool xpl_buf_room(struct xpl_buf *b, size_t n) {
    if (b->failed) return false;
    if (b->cap - b->n >= n) return true;
    if (n > b->max - b->n) {
        b->failed = true;
        return false;
    }
    size_t cap = b->cap < 256 ? 256 : b->cap;
    while (cap - b->n < n)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    if (cap > b->max) cap = b->max;
    b->failed = !set_capacity(b, cap);
    return !b->failed;
}

void xpl_buf_printf(struct xpl_buf *b, const char *fmt, ...) {
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < sizeof small) {
        xpl_buf_put(b, small, (size_t)n);
    } else if (xpl_buf_room(b, (size_t)n)) {
        va_start(ap, fmt);
        (void)vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
        va_end(ap);
        b->n += (size_t)n;
    }
}
