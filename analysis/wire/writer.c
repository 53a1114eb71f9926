// SPDX-License-Identifier: Apache-2.0
#include "analysis/wire/writer.h"

#include <string.h>

#include "analysis/wire/wire.h"
#include "base/arena.h"

void xpl_writer_init(struct xpl_writer *w, struct xpl_buf *out) {
    *w = (struct xpl_writer){.out = out};
}

bool xpl_writer_measured(struct xpl_writer *w) {
    w->writing = true;
    if (w->n > SIZE_MAX || !xpl_buf_room(w->out, (size_t)w->n)) w->failed = true;
    return !w->failed;
}

bool xpl_writer_fini(struct xpl_writer *w) {
    // n: bytes that the measuring pass promised and the writing pass has not written yet.
    const bool ok = !w->failed && !w->out->failed && w->writing && w->n == 0;
    xpl_sys_free(w->sizes);
    *w = (struct xpl_writer){.out = w->out, .failed = true};
    return ok;
}

// Room for `n` bytes: counts them while measuring; NULL then, and after a failure.
static uint8_t *reserve(struct xpl_writer *w, uint64_t n) {
    if (!w->writing) {
        w->n += n;
        return NULL;
    }
    if (w->failed || n > w->n) {
        w->failed = true;
        return NULL;
    }
    w->n -= n;
    uint8_t *const p = w->out->p + w->out->n;
    w->out->n += (size_t)n;
    return p;
}

static uint64_t tag(uint32_t num, enum xpl_wire_type type) {
    return (uint64_t)num << 3 | type;
}

void xpl_writer_varint(struct xpl_writer *w, uint32_t num, uint64_t v) {
    const uint64_t t = tag(num, XPL_WIRE_VARINT);
    uint8_t *const p = reserve(w, xpl_varint_size(t) + xpl_varint_size(v));
    if (p) xpl_varint_put(xpl_varint_put(p, t), v);
}

void xpl_writer_fixed32(struct xpl_writer *w, uint32_t num, uint32_t v) {
    const uint64_t t = tag(num, XPL_WIRE_I32);
    uint8_t *const p = reserve(w, xpl_varint_size(t) + sizeof v);
    if (p) memcpy(xpl_varint_put(p, t), &v, sizeof v);
}

void xpl_writer_fixed64(struct xpl_writer *w, uint32_t num, uint64_t v) {
    const uint64_t t = tag(num, XPL_WIRE_I64);
    uint8_t *const p = reserve(w, xpl_varint_size(t) + sizeof v);
    if (p) memcpy(xpl_varint_put(p, t), &v, sizeof v);
}

void xpl_writer_bytes(struct xpl_writer *w, uint32_t num, const void *src, size_t n) {
    const uint64_t t = tag(num, XPL_WIRE_LEN);
    uint8_t *p = reserve(w, xpl_varint_size(t) + xpl_varint_size(n) + n);
    if (!p) return;
    p = xpl_varint_put(xpl_varint_put(p, t), n);
    if (n) memcpy(p, src, n);
}

void xpl_writer_raw32(struct xpl_writer *w, uint32_t v) {
    uint8_t *const p = reserve(w, sizeof v);
    if (p) memcpy(p, &v, sizeof v);
}

void xpl_writer_raw64(struct xpl_writer *w, uint64_t v) {
    uint8_t *const p = reserve(w, sizeof v);
    if (p) memcpy(p, &v, sizeof v);
}

void xpl_writer_raw_varint(struct xpl_writer *w, uint64_t v) {
    uint8_t *const p = reserve(w, xpl_varint_size(v));
    if (p) xpl_varint_put(p, v);
}

static bool push_size(struct xpl_writer *w) {
    if (w->n_sizes == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 64;
        uint64_t *const grown =
            cap > SIZE_MAX / sizeof *grown ? NULL : xpl_sys_realloc(w->sizes, cap * sizeof *grown);
        if (!grown) return false;
        w->sizes = grown;
        w->cap = cap;
    }
    w->sizes[w->n_sizes++] = 0;
    return true;
}

struct xpl_writer_mark xpl_writer_open(struct xpl_writer *w, uint32_t num) {
    const uint64_t t = tag(num, XPL_WIRE_LEN);
    if (!w->writing) {
        if (w->failed || !push_size(w)) w->failed = true;
        w->n += xpl_varint_size(t); // the length's own size is added when it is known
        return (struct xpl_writer_mark){w->n_sizes - 1, w->n};
    }
    const size_t index = w->next++;
    if (w->failed || index >= w->n_sizes) {
        w->failed = true;
        return (struct xpl_writer_mark){0};
    }
    const uint64_t size = w->sizes[index];
    uint8_t *const p = reserve(w, xpl_varint_size(t) + xpl_varint_size(size));
    if (p) xpl_varint_put(xpl_varint_put(p, t), size);
    return (struct xpl_writer_mark){index, w->n};
}

void xpl_writer_close(struct xpl_writer *w, struct xpl_writer_mark m) {
    if (w->failed) return;
    if (w->writing) {
        if (m.start - w->n != w->sizes[m.index]) w->failed = true;
        return;
    }
    w->sizes[m.index] = w->n - m.start;
    w->n += xpl_varint_size(w->n - m.start);
}

void xpl_writer_packed(struct xpl_writer *w, uint32_t num, const uint64_t *v, size_t n) {
    const struct xpl_writer_mark m = xpl_writer_open(w, num);
    for (size_t i = 0; i < n; i++)
        xpl_writer_raw_varint(w, v[i]);
    xpl_writer_close(w, m);
}
