// SPDX-License-Identifier: Apache-2.0
// A finished answer: its bytes, shared by the cache and all replies, and what must be told with it.
#ifndef XPL_SERVER_ENGINE_TOOL_DATA_H_
#define XPL_SERVER_ENGINE_TOOL_DATA_H_

#include "base/buf.h"
#include "rpc/bytes.h"
#include "server/engine/cache.h"

// What is left out of an answer, and why.
struct xpl_warning {
    xpl_str_t host, text;
};

struct xpl_tool_data {
    struct xpl_object object;
    struct xpl_rpc_blob *blob;
    const char *content_type; // a tool's: it lives as long as the program
    const struct xpl_warning *warnings;
    size_t n_warnings;
    uint8_t storage[]; // warnings, and their texts
};

// Warnings of an answer on its way.  Those that do not fit are left out: with thousands of broken
// hosts the first ones have to do.
struct xpl_warnings {
    struct xpl_buf bytes; // as they are stored beside an answer: xpl_tool_data_new reads them
};
void xpl_warnings_init(struct xpl_warnings *w);
void xpl_warnings_fini(struct xpl_warnings *w);
void xpl_warnings_clear(struct xpl_warnings *w);
void xpl_warnings_add(struct xpl_warnings *w, xpl_str_t host, xpl_str_t text);
static inline xpl_bytes_t xpl_warnings_bytes(const struct xpl_warnings *w) {
    return (xpl_bytes_t){w->bytes.p, w->bytes.n};
}

// Takes `b` (xpl_sys_alloc) over in every case; copies the warnings, which may be any bytes: what
// is no warning ends them.  NULL when out of memory.
struct xpl_tool_data *xpl_tool_data_new(uint8_t *b, size_t n, const char *content_type,
                                        xpl_bytes_t warnings);

#endif
