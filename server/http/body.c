// SPDX-License-Identifier: Apache-2.0
#include "server/http/body.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "server/web/web.h"
#include "storage/hash.h"

// What XProf sends, as its interface loads a chart library and fonts from Google, and who may show
// it in a frame: its own pages do, others could lead clicks there.
#define XPROF_CSP                                                                                  \
    "default-src 'self';"                                                                          \
    "script-src 'self' 'unsafe-eval' 'unsafe-inline' https://www.gstatic.com;"                     \
    "object-src 'none';"                                                                           \
    "style-src 'self' 'unsafe-inline' https://fonts.googleapis.com https://www.gstatic.com;"       \
    "font-src 'self' https://fonts.googleapis.com https://fonts.gstatic.com data:;"                \
    "connect-src 'self' data: www.gstatic.com;"                                                    \
    "img-src 'self' blob: data:;"                                                                  \
    "frame-src 'self' https://ui.perfetto.dev;"                                                    \
    "script-src-elem 'self' 'unsafe-inline' https://cdn.jsdelivr.net/npm/ "                        \
    "https://www.gstatic.com;"                                                                     \
    "frame-ancestors 'self'"

bool xpl_http_add_policy(struct MHD_Response *r, enum xpl_http_policy p) {
    static const char *const csp[XPL_N_POLICIES] = {
        [XPL_POLICY_XPROF] = XPROF_CSP,
        [XPL_POLICY_WEB] = XPL_WEB_CSP,
        [XPL_POLICY_API] = "default-src 'none'; frame-ancestors 'none'",
    };
    return MHD_add_response_header(r, "Content-Security-Policy", csp[p]) == MHD_YES &&
           MHD_add_response_header(r, "X-Content-Type-Options", "nosniff") == MHD_YES &&
           MHD_add_response_header(r, "X-Frame-Options",
                                   p == XPL_POLICY_XPROF ? "SAMEORIGIN" : "DENY") == MHD_YES &&
           MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding") == MHD_YES;
}

// ---- compression ----

enum { FAST = 1, THOROUGH = 7 };

// The gzip form; NULL when out of memory.
static struct xpl_rpc_blob *compress(struct xpl_rpc_blob *plain, int level) {
    const xpl_bytes_t in = xpl_rpc_blob_get(plain);
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    if (!c) return NULL;
    const size_t room = libdeflate_gzip_compress_bound(c, in.len);
    uint8_t *out = xpl_sys_alloc(room);
    const size_t n = out ? libdeflate_gzip_compress(c, in.ptr, in.len, out, room) : 0;
    libdeflate_free_compressor(c);
    uint8_t *const fit = n ? xpl_sys_realloc(out, n) : NULL;
    if (fit) out = fit;
    struct xpl_rpc_blob *b = n ? xpl_rpc_blob_take(out, n) : NULL;
    if (!b) xpl_sys_free(out);
    return b;
}

// ---- responses ----

static void drop_blob(void *arg) {
    xpl_rpc_blob_unref(arg);
}

struct MHD_Response *xpl_http_blob_response(struct xpl_rpc_blob *blob, uint64_t from,
                                            uint64_t len) {
    struct MHD_Response *m = MHD_create_response_from_buffer_with_free_callback_cls(
        len, (void *)(uintptr_t)(xpl_rpc_blob_get(blob).ptr + from), drop_blob, blob);
    if (m) (void)xpl_rpc_blob_ref(blob); // the response drops it
    return m;
}

static bool add_headers(struct MHD_Response *m, const struct xpl_http_body *b, int encoding,
                        const struct xpl_http_body_options *o) {
    bool ok = xpl_http_add_policy(m, o->policy) &&
              MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, o->type);
    if (encoding == XPL_HTTP_GZIP)
        ok = ok && MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (o->validators)
        ok = ok && MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, b->etag[encoding]) &&
             MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache") &&
             MHD_add_response_header(m, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    for (size_t i = 0; ok && i < o->n_headers; i++) {
        char value[2048];
        (void)snprintf(value, sizeof value, "%.*s", XPL_STR_FMT(o->headers[i].value));
        ok = MHD_add_response_header(m, o->headers[i].name, value);
    }
    return ok;
}

static struct MHD_Response *make_response(struct xpl_http_body *b, int encoding,
                                          const struct xpl_http_body_options *o) {
    struct xpl_rpc_blob *const blob = b->bytes[encoding];
    struct MHD_Response *m = xpl_http_blob_response(blob, 0, xpl_rpc_blob_get(blob).len);
    if (!m) return NULL;
    if (add_headers(m, b, encoding, o)) return m;
    MHD_destroy_response(m);
    return NULL;
}

// ---- bodies ----

static void body_destroy(struct xpl_object *o) {
    struct xpl_http_body *b = (struct xpl_http_body *)o;
    for (int i = 0; i < XPL_HTTP_ENCODINGS; i++) {
        if (b->response[i]) MHD_destroy_response(b->response[i]);
        xpl_rpc_blob_unref(b->bytes[i]);
    }
    xpl_object_unref(b->object.part);
    xpl_sys_free(b);
}

static xpl_str_t append(char *text, size_t *at, xpl_str_t s) {
    if (s.len) memcpy(text + *at, s.ptr, s.len);
    *at += s.len;
    return (xpl_str_t){text + *at - s.len, s.len};
}

static struct xpl_http_body *body_alloc(const struct xpl_http_body_options *o) {
    struct xpl_http_body *b = xpl_sys_alloc(sizeof *b + o->tool.len + o->session.len + o->host.len);
    if (!b) return NULL;
    *b = (struct xpl_http_body){.object = {.destroy = body_destroy},
                                .status = o->status ? o->status : 200,
                                .policy = o->policy,
                                .type = o->type,
                                .is_answer = o->tool.len != 0,
                                .n_hosts = o->n_hosts};
    atomic_init(&b->object.refs, 1);
    size_t at = 0;
    b->tool = append(b->text, &at, o->tool);
    b->session = append(b->text, &at, o->session);
    b->host = append(b->text, &at, o->host);
    return b;
}

struct xpl_http_body *xpl_http_body_new(struct xpl_rpc_blob *bytes,
                                        const struct xpl_http_body_options *o) {
    struct xpl_http_body *b = body_alloc(o);
    if (!b) return NULL;
    b->bytes[XPL_HTTP_PLAIN] = xpl_rpc_blob_ref(bytes);
    const xpl_bytes_t plain = xpl_rpc_blob_get(bytes);
    if (o->like) {
        memcpy(b->etag, o->like->etag, sizeof b->etag);
        if (o->like->bytes[XPL_HTTP_GZIP])
            b->bytes[XPL_HTTP_GZIP] = xpl_rpc_blob_ref(o->like->bytes[XPL_HTTP_GZIP]);
    } else if (o->validators) {
        const uint64_t digest = xpl_digest64(plain, plain.len);
        (void)snprintf(b->etag[0], sizeof b->etag[0], "\"%016llx\"", (unsigned long long)digest);
        (void)snprintf(b->etag[1], sizeof b->etag[1], "\"%016llx-g\"", (unsigned long long)digest);
    }
    if (o->gzip && !o->like)
        b->bytes[XPL_HTTP_GZIP] = compress(bytes, o->thorough ? THOROUGH : FAST);
    b->object.bytes = sizeof *b + 2048;
    if (o->answer) {
        b->object.part = &o->answer->object;
        xpl_object_ref(b->object.part);
    }
    for (int i = 0; i < XPL_HTTP_ENCODINGS; i++) {
        if (!b->bytes[i]) continue;
        if (i != XPL_HTTP_PLAIN || !o->answer) b->object.bytes += xpl_rpc_blob_get(b->bytes[i]).len;
        if ((b->response[i] = make_response(b, i, o))) continue;
        xpl_object_unref(&b->object);
        return NULL;
    }
    return b;
}

struct xpl_http_body *xpl_http_body_from_buf(struct xpl_buf *buf,
                                             const struct xpl_http_body_options *o) {
    size_t n = 0;
    if (buf->failed) return NULL;
    uint8_t *p = xpl_buf_take(buf, &n);
    if (!p && !(p = xpl_sys_alloc(1))) return NULL; // an empty buffer has no bytes to take
    struct xpl_rpc_blob *blob = xpl_rpc_blob_take(p, n);
    if (!blob) {
        xpl_sys_free(p);
        return NULL;
    }
    struct xpl_http_body *b = xpl_http_body_new(blob, o);
    xpl_rpc_blob_unref(blob);
    return b;
}

// ---- warnings ----

// All headers of a reply should fit into 4 KiB: proxies take no more.
enum { MAX_WARNINGS = XPL_HTTP_WARNINGS - 1, WARNING_BYTES = 240 };

// Percent-encoded where it is not plain ASCII, and commas: they separate warnings where a client
// joins them. Ends with a whole character.
static void put_encoded(struct xpl_buf *b, xpl_str_t s) {
    enum { CHARACTER = 4 * 3 };
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (!xpl_utf8_inside(s.ptr[i]) && b->n + CHARACTER > WARNING_BYTES) break;
        if (c >= 0x20 && c < 0x7f && c != '%' && c != ',')
            xpl_buf_putc(b, (char)c);
        else
            xpl_buf_printf(b, "%%%02X", c);
    }
}

static bool put_warning(struct xpl_arena *arena, const struct xpl_warning *w, xpl_str_t *ret) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)WARNING_BYTES + 64);
    put_encoded(&b, w->host);
    xpl_buf_str(&b, XPL_STR(": "));
    put_encoded(&b, w->text);
    return !b.failed && xpl_arena_str(arena, (xpl_str_t){(char *)b.p, b.n}, ret);
}

size_t xpl_http_warnings(struct xpl_arena *arena, const struct xpl_tool_data *a,
                         struct xpl_http_header ret[XPL_HTTP_WARNINGS]) {
    const size_t all = a->n_warnings;
    size_t n = 0;
    xpl_str_t text;
    for (size_t i = 0; i < all && i < MAX_WARNINGS; i++)
        if (put_warning(arena, &a->warnings[i], &text))
            ret[n++] = (struct xpl_http_header){"Xplaned-Warning", text};
    if (all > MAX_WARNINGS &&
        xpl_arena_printf(arena, &text, "and %zu more warnings", all - MAX_WARNINGS))
        ret[n++] = (struct xpl_http_header){"Xplaned-Warning", text};
    return n;
}
