// SPDX-License-Identifier: Apache-2.0
// Growable output buffer on the heap, with a hard maximum.  The first failure sticks: later writes
// do nothing, and the owner checks `failed` once at the end.
#ifndef XPL_BASE_BUF_H_
#define XPL_BASE_BUF_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct xpl_buf {
    uint8_t *p;
    size_t n, cap, max;
    bool failed; // OOM or over max; contents are then incomplete
};

// Prepares an empty buffer that will never hold more than `max` bytes.
void xpl_buf_init(struct xpl_buf *b, size_t max);
// The same, for a declaration.
static inline struct xpl_buf xpl_buf_of(size_t max) {
    struct xpl_buf b;
    xpl_buf_init(&b, max);
    return b;
}
// Frees.  Accepts a zero-initialised buffer.
void xpl_buf_fini(struct xpl_buf *b);
// Hands the bytes over (free with xpl_sys_free) and leaves the buffer empty; NULL, with *ret_len
// untouched, if it failed or, when it is empty, on OOM.
uint8_t *xpl_buf_take(struct xpl_buf *b, size_t *ret_len);
// Takes memory for exactly n bytes in all, unless n is more than the maximum or memory is short;
// more bytes double it, as they do from 256 on without this call.
void xpl_buf_expect(struct xpl_buf *b, size_t n);
// Room for n bytes at b->p + b->n; the caller then advances b->n.  False once failed.
bool xpl_buf_room(struct xpl_buf *b, size_t n);
static inline void xpl_buf_put(struct xpl_buf *b, const void *p, size_t n) {
    if (!n || ((b->failed || b->cap - b->n < n) && !xpl_buf_room(b, n))) return;
    memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void xpl_buf_putc(struct xpl_buf *b, char c) {
    if ((b->failed || b->cap == b->n) && !xpl_buf_room(b, 1)) return;
    b->p[b->n++] = (uint8_t)c;
}
static inline void xpl_buf_str(struct xpl_buf *b, xpl_str_t s) {
    xpl_buf_put(b, s.ptr, s.len);
}
void xpl_buf_printf(struct xpl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
