// SPDX-License-Identifier: Apache-2.0
#include "storage/store/listing_body.h"

#include <string.h>

#include "base/buf.h"
#include "storage/objects/objects.h"

enum { FORMAT = 1 };

static void put_le(struct xpl_buf *b, uint64_t v, size_t n) {
    for (; n; n--, v >>= 8)
        xpl_buf_putc(b, (char)(v & 255));
}

static void put_begin(struct xpl_buf *b, char what, xpl_str_t name) {
    if (!b->n) put_le(b, FORMAT, 1);
    xpl_buf_putc(b, what);
    put_le(b, name.len, 2);
    xpl_buf_str(b, name);
}

void xpl_listing_body_put_object(struct xpl_buf *b, const struct xpl_stored_object *o) {
    put_begin(b, 'o', o->path);
    put_le(b, o->version.len, 2);
    xpl_buf_str(b, o->version);
    put_le(b, o->size, 8);
    put_le(b, (uint64_t)o->mtime_ns, 8);
}

void xpl_listing_body_put_folder(struct xpl_buf *b, xpl_str_t name) {
    put_begin(b, 'f', name);
}

void xpl_listing_body_end(struct xpl_buf *b, const struct xpl_object_list *list) {
    put_begin(b, 'e', (xpl_str_t){0});
    put_le(b, list->cut, 1);
    put_le(b, list->n_refused, 8);
}

static bool take_le(xpl_bytes_t *rest, size_t n, uint64_t *ret) {
    if (rest->len < n) return false;
    *ret = 0;
    for (size_t i = n; i; i--)
        *ret = *ret << 8 | rest->ptr[i - 1];
    *rest = (xpl_bytes_t){rest->ptr + n, rest->len - n};
    return true;
}

// A text of one byte at least.
static bool take_text(xpl_bytes_t *rest, xpl_str_t *ret) {
    uint64_t n;
    if (!take_le(rest, 2, &n) || n > rest->len) return false;
    *ret = (xpl_str_t){(const char *)rest->ptr, (size_t)n};
    *rest = (xpl_bytes_t){rest->ptr + n, rest->len - (size_t)n};
    return true;
}

// As name_in of objects/bucket.c has them: nothing else becomes part of a path.
static bool is_name(xpl_str_t s) {
    return s.len && !memchr(s.ptr, '/', s.len) && !memchr(s.ptr, 0, s.len) &&
           !xpl_str_eq(s, XPL_STR(".")) && !xpl_str_eq(s, XPL_STR(".."));
}

static bool read_object(xpl_bytes_t *rest, xpl_str_t name, struct xpl_object_list *list) {
    struct xpl_stored_object o = {.path = name};
    uint64_t mtime_ns;
    if (!take_text(rest, &o.version) || !take_le(rest, 8, &o.size) ||
        !take_le(rest, 8, &mtime_ns) || !o.version.len || o.size > INT64_MAX ||
        mtime_ns > INT64_MAX)
        return false;
    for (size_t i = 0; i < o.version.len; i++)
        if (o.version.ptr[i] <= ' ' || o.version.ptr[i] > '~') return false;
    o.mtime_ns = (int64_t)mtime_ns;
    return list->object(list->arg, &o);
}

bool xpl_listing_body_read(xpl_bytes_t body, struct xpl_object_list *list) {
    uint64_t format, what, cut = 0, n_refused = 0;
    if (!take_le(&body, 1, &format) || format != FORMAT) return false;
    for (;;) {
        xpl_str_t name;
        if (!take_le(&body, 1, &what) || !take_text(&body, &name)) return false;
        if (what == 'e' && !name.len) break;
        if (!is_name(name) || (what != 'o' && what != 'f')) return false;
        if (!(what == 'o' ? read_object(&body, name, list) : list->folder(list->arg, name)))
            return false;
    }
    if (!take_le(&body, 1, &cut) || !take_le(&body, 8, &n_refused)) return false;
    list->cut = cut != 0;
    list->n_refused = (size_t)n_refused;
    return !body.len;
}
