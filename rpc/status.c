// SPDX-License-Identifier: Apache-2.0
#include "rpc/status.h"

#include <string.h>

#include "base/text/utf8.h"
#include "rpc/field.h"
#include "rpc/message.h"

#define RETRY_TYPE XPL_STR("type.googleapis.com/google.rpc.RetryInfo")
#define ERROR_TYPE XPL_STR("type.googleapis.com/google.rpc.ErrorInfo")
#define DOMAIN     XPL_STR("xplaned")

size_t xpl_rpc_status_text(char *buf, size_t size, xpl_str_t text) {
    size_t n = 0;
    for (size_t i = 0, step; i < text.len; i += step) {
        const size_t len = xpl_utf8_next(xpl_str_sub(text, i, SIZE_MAX));
        const bool valid = len && text.ptr[i] != '\0';
        step = valid ? len : 1;
        if (n + step >= size) break;
        if (valid)
            memcpy(buf + n, text.ptr + i, len);
        else
            buf[n] = '?';
        n += step;
    }
    buf[n] = '\0';
    return n;
}

// Status.details: an Any around `value`.
static void put_detail(struct xpl_buf *b, xpl_str_t type, const struct xpl_buf *value) {
    uint8_t sizes[32];
    struct xpl_buf head = {.p = sizes, .cap = sizeof sizes, .max = sizeof sizes};
    xpl_rpc_put_len(&head, 2, value->n); // how long the length before the value is
    xpl_rpc_put_len(b, 3, 2 + type.len + head.n + value->n);
    xpl_rpc_put_text(b, 1, type);
    xpl_buf_put(b, head.p, head.n);
    xpl_buf_put(b, value->p, value->n);
}

static void put_map_entry(struct xpl_buf *b, uint32_t field, xpl_str_t key, xpl_str_t value) {
    char k[64], v[512];
    const xpl_str_t ks = {k, xpl_rpc_status_text(k, sizeof k, key)};
    const xpl_str_t vs = {v, xpl_rpc_status_text(v, sizeof v, value)};
    uint8_t bytes[sizeof k + sizeof v + 8];
    struct xpl_buf entry = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    xpl_rpc_put_text(&entry, 1, ks);
    xpl_rpc_put_text(&entry, 2, vs);
    xpl_rpc_put_len(b, field, entry.n);
    xpl_buf_put(b, entry.p, entry.n);
}

static void put_error_info(struct xpl_buf *b, const struct xpl_rpc_failure *f) {
    uint8_t bytes[XPL_RPC_MAX_ERROR_INFO];
    struct xpl_buf info = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    xpl_rpc_put_text(&info, 1, xpl_str_from(f->reason));
    xpl_rpc_put_text(&info, 2, DOMAIN);
    size_t whole = info.n;
    for (size_t i = 0; i < f->n_metadata && !info.failed; i++) {
        put_map_entry(&info, 3, f->metadata[i][0], f->metadata[i][1]);
        if (!info.failed) whole = info.n; // an entry that no longer fits is left out
    }
    info.n = whole;
    put_detail(b, ERROR_TYPE, &info);
}

static void put_retry_info(struct xpl_buf *b, int64_t ms) {
    uint8_t bytes[64], span[32];
    struct xpl_buf info = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    struct xpl_buf d = {.p = span, .cap = sizeof span, .max = sizeof span};
    xpl_rpc_put_uint(&d, 1, (uint64_t)(ms / 1000));
    xpl_rpc_put_uint(&d, 2, (uint64_t)(ms % 1000) * 1000000);
    xpl_rpc_put_len(&info, 1, d.n);
    xpl_buf_put(&info, d.p, d.n);
    put_detail(b, RETRY_TYPE, &info);
}

void xpl_rpc_status_encode(struct xpl_buf *b, const struct xpl_rpc_failure *f) {
    char text[XPL_RPC_MAX_MESSAGE];
    const xpl_str_t message = {text, xpl_rpc_status_text(text, sizeof text, f->message)};
    xpl_rpc_put_uint(b, 1, (uint64_t)f->code);
    xpl_rpc_put_text(b, 2, message);
    if (f->reason) put_error_info(b, f);
    if (f->retry_ms >= 0) put_retry_info(b, f->retry_ms);
}

// ---- reading ----

static bool read_retry(xpl_bytes_t info, struct xpl_rpc_details *ret) {
    struct xpl_rpc_reader r = xpl_rpc_reader(xpl_rpc_field_find(info, 1));
    struct xpl_rpc_field f;
    uint64_t seconds = 0, nanos = 0;
    int got;
    while ((got = xpl_rpc_field_next(&r, &f)) == 1) {
        if (f.num == 1 && f.wire == 0) seconds = f.u;
        if (f.num == 2 && f.wire == 0) nanos = f.u;
    }
    if (got < 0) return false;
    // Negative or absurd delays say nothing.
    if (seconds <= INT32_MAX && nanos < 1000000000)
        ret->retry_ms = (int64_t)(seconds * 1000 + nanos / 1000000);
    return true;
}

static bool read_detail(xpl_bytes_t any, struct xpl_rpc_details *ret) {
    const xpl_bytes_t type = xpl_rpc_field_find(any, 1), value = xpl_rpc_field_find(any, 2);
    const xpl_str_t name = {(const char *)type.ptr, type.len};
    if (xpl_str_eq(name, RETRY_TYPE)) return read_retry(value, ret);
    if (!xpl_str_eq(name, ERROR_TYPE)) return true;
    const xpl_bytes_t reason = xpl_rpc_field_find(value, 1), domain = xpl_rpc_field_find(value, 2);
    ret->reason = (xpl_str_t){(const char *)reason.ptr, reason.len};
    ret->domain = (xpl_str_t){(const char *)domain.ptr, domain.len};
    return true;
}

bool xpl_rpc_status_decode(xpl_bytes_t bytes, struct xpl_rpc_details *ret) {
    struct xpl_rpc_reader r = xpl_rpc_reader(bytes);
    struct xpl_rpc_field f;
    struct xpl_rpc_details d = {.retry_ms = -1};
    int got;
    while ((got = xpl_rpc_field_next(&r, &f)) == 1)
        if (f.num == 3 && f.wire == 2 && !read_detail(f.bytes, &d)) return false;
    if (got < 0) return false;
    *ret = d;
    return true;
}
