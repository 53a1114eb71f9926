// SPDX-License-Identifier: Apache-2.0
#include "server/engine/tool_data.h"

#include <string.h>

#include "base/arena.h"
#include "storage/store/store.h"

// ---- warnings: each as the lengths of host and text, 4 bytes little-endian, and their bytes ----

enum { LENGTH_BYTES = 4, MAX_TEXT = 1 << 16 };

void xpl_warnings_init(struct xpl_warnings *w) {
    xpl_buf_init(&w->bytes, XPL_STORE_MAX_META);
}

void xpl_warnings_fini(struct xpl_warnings *w) {
    xpl_buf_fini(&w->bytes);
}

void xpl_warnings_clear(struct xpl_warnings *w) {
    w->bytes.n = 0;
}

static void put_length(struct xpl_buf *b, size_t n) {
    for (int i = 0; i < LENGTH_BYTES; i++)
        xpl_buf_putc(b, (char)(uint8_t)(n >> (8 * i)));
}

void xpl_warnings_add(struct xpl_warnings *w, xpl_str_t host, xpl_str_t text) {
    struct xpl_buf *const b = &w->bytes;
    if (host.len > MAX_TEXT || text.len > MAX_TEXT) return;
    if (b->max - b->n < 2 * LENGTH_BYTES + host.len + text.len) return;
    put_length(b, host.len);
    put_length(b, text.len);
    xpl_buf_str(b, host);
    xpl_buf_str(b, text);
}

static size_t length_at(const uint8_t *p) {
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

// Takes the next warning off `b`; false when there is none.
static bool next_warning(xpl_bytes_t *b, struct xpl_warning *ret) {
    if (b->len < 2 * LENGTH_BYTES) return false;
    const size_t host = length_at(b->ptr), text = length_at(b->ptr + LENGTH_BYTES);
    const char *const at = (const char *)b->ptr + 2 * LENGTH_BYTES;
    const size_t left = b->len - 2 * LENGTH_BYTES;
    if (host > left || text > left - host) return false;
    *ret = (struct xpl_warning){{at, host}, {at + host, text}};
    b->ptr += 2 * LENGTH_BYTES + host + text;
    b->len = left - host - text;
    return true;
}

// ---- answers ----

static void tool_data_destroy(struct xpl_object *o) {
    struct xpl_tool_data *a = (struct xpl_tool_data *)o;
    xpl_rpc_blob_unref(a->blob);
    xpl_sys_free(a);
}

struct xpl_tool_data *xpl_tool_data_new(uint8_t *b, size_t n, const char *content_type,
                                        xpl_bytes_t warnings) {
    size_t n_warnings = 0;
    struct xpl_warning one;
    for (xpl_bytes_t rest = warnings; next_warning(&rest, &one);)
        n_warnings++;
    const size_t size = sizeof(struct xpl_tool_data) + n_warnings * sizeof one + warnings.len;
    struct xpl_tool_data *const a = xpl_sys_alloc(size);
    struct xpl_rpc_blob *const blob = a ? xpl_rpc_blob_take(b, n) : NULL;
    if (!blob) {
        xpl_sys_free(b);
        xpl_sys_free(a);
        return NULL;
    }
    *a = (struct xpl_tool_data){.object = {.bytes = size + n, .destroy = tool_data_destroy},
                                .blob = blob,
                                .content_type = content_type,
                                .n_warnings = n_warnings};
    atomic_init(&a->object.refs, 1);
    struct xpl_warning *const list = (struct xpl_warning *)(void *)a->storage;
    uint8_t *const texts = a->storage + n_warnings * sizeof one;
    if (warnings.len) memcpy(texts, warnings.ptr, warnings.len);
    xpl_bytes_t rest = {texts, warnings.len};
    for (size_t i = 0; i < n_warnings; i++)
        (void)next_warning(&rest, &list[i]);
    a->warnings = list;
    return a;
}
