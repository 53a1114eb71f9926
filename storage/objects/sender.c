// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "storage/objects/listing.h"

enum {
    MAX_PARTS = 10000,
    MAX_URL = 16 << 10,
    MAX_ANSWER = 64 << 10,
    MAX_LIST = 4 << 20,
    ID = 1024,
    COMPARED = 4 << 20 // at once: arrives within 5 s
};
#define ONLY_NEW "If-None-Match: *"
#define BYTES    "Content-Type: application/octet-stream"

struct sending { // of one object
    const struct xpl_sender *s;
    char key[XPL_KEY_MAX + 1], shown[80];
    int fd;
    uint64_t size;
    const struct xpl_cancel *cancel;
    char id[ID]; // of the upload in parts
};

static xpl_status_t begin_sending(const struct xpl_sender *s, xpl_str_t path, struct sending *ret,
                                  struct xpl_error *err) {
    const char *const end = path.ptr + (path.len > 70 ? path.len - 70 : 0);
    *ret = (struct sending){.s = s};
    (void)snprintf(ret->shown, sizeof ret->shown, "%.*s", (int)(path.ptr + path.len - end), end);
    if (!xpl_location_key(s->location, path, ret->key, sizeof ret->key))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "object store: no object's name");
    return XPL_OK;
}

// One request; `v` has all but the URL.
static xpl_status_t ask(const struct sending *k, const struct xpl_url_parameter *parameters,
                        size_t n, struct xpl_transfer *v, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf url, answer;
    xpl_buf_init(&url, MAX_URL);
    xpl_buf_init(&answer, MAX_ANSWER);
    xpl_location_url(k->s->location, xpl_str_from(k->key), parameters, n, &url);
    struct xpl_buf *const given = v->answer;
    v->url = (const char *)url.p;
    v->shown = k->shown;
    v->fd = -1;
    if (!given) v->answer = &answer;
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (url.failed)
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "object store: out of memory");
    else
        st = k->s->run(k->s->arg, v, 1, err);
    v->url = NULL;
    v->answer = given;
    return st;
}

// The error when If-None-Match fails.
static xpl_status_t exists(const struct sending *k, struct xpl_error *err) {
    *err = (struct xpl_error){0};
    XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "object store: %.80s is there already", k->shown);
}

// Whether the file has these bytes there.
static bool has_bytes(int fd, uint64_t at, xpl_bytes_t bytes) {
    uint8_t read[4096];
    while (bytes.len) {
        const size_t most = bytes.len < sizeof read ? bytes.len : sizeof read;
        const ssize_t n = pread(fd, read, most, (off_t)at);
        if (n <= 0 || memcmp(read, bytes.ptr, (size_t)n) != 0) return false;
        at += (uint64_t)n;
        bytes = (xpl_bytes_t){bytes.ptr + n, bytes.len - (size_t)n};
    }
    return true;
}

// Whether the object is as long as the file, and n bytes of it are the same.
static bool is_same_part(const struct sending *k, uint64_t at, uint64_t n) {
    char range[64];
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(COMPARED);
    (void)snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, at, at + n - 1);
    struct xpl_transfer v = {
        .headers = {range}, .n_headers = 1, .answer = &answer, .is_last = true};
    return ask(k, NULL, 0, &v, NULL) == XPL_OK && v.status == 206 && v.whole == k->size &&
           answer.n == n && has_bytes(k->fd, at, (xpl_bytes_t){answer.p, answer.n});
}

// Whether the object exists because an earlier try succeeded, but its answer was lost.  Comparing
// only the length would accept another writer's object of the same name, too.
static bool is_done(const struct sending *k, const struct xpl_transfer *tried) {
    bool same = tried->tries > 1 && k->size;
    for (uint64_t at = 0; same && at < k->size; at += COMPARED)
        same = is_same_part(k, at, k->size - at < COMPARED ? k->size - at : COMPARED);
    return same;
}

// ---- one request ----

// Whether the store does not know the condition.
static bool lacks_conditions(const struct xpl_transfer *v) {
    return v->status == 501 || strcmp(v->code, "NotImplemented") == 0;
}

static xpl_status_t put_whole(const struct sending *k, struct xpl_error *err) {
    struct xpl_transfer v = {.method = "PUT",
                             .headers = {BYTES, ONLY_NEW},
                             .n_headers = 2,
                             .from_fd = k->fd,
                             .from_n = k->size,
                             .cancel = k->cancel};
    struct xpl_error why = {0};
    xpl_status_t st = ask(k, NULL, 0, &v, &why);
    if (st != XPL_OK && lacks_conditions(&v)) {
        v.n_headers = 1;
        why = (struct xpl_error){0};
        st = ask(k, NULL, 0, &v, &why);
    }
    if (st == XPL_OK || (v.status == 412 && is_done(k, &v))) return XPL_OK;
    if (v.status == 412) return exists(k, err);
    XPL_RETURN_ERROR(err, st, "%s", why.msg);
}

// ---- parts ----

static xpl_status_t begin_parts(struct sending *k, struct xpl_error *err) {
    const struct xpl_url_parameter q[] = {{"uploads", XPL_STR("")}};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(MAX_ANSWER);
    struct xpl_transfer v = {.method = "POST",
                             .headers = {BYTES},
                             .n_headers = 1,
                             .answer = &answer,
                             .cancel = k->cancel};
    xpl_status_t st = ask(k, q, 1, &v, err);
    if (st == XPL_OK &&
        !xpl_listing_text((xpl_str_t){(char *)answer.p, answer.n}, "UploadId", k->id, sizeof k->id))
        st = xpl_error_set(err, XPL_UNAVAILABLE, __FILE__, __LINE__, UINT64_MAX,
                           "object store: %.80s: its upload has no ID", k->shown);
    return st;
}

static xpl_status_t drop_parts(const struct sending *k, struct xpl_error *err) {
    const struct xpl_url_parameter q[] = {{"uploadId", xpl_str_from(k->id)}};
    struct xpl_transfer v = {.method = "DELETE", .is_last = true};
    return ask(k, q, 1, &v, err);
}

static bool write_urls(const struct sending *k, struct xpl_buf *urls, struct xpl_transfer *v,
                       size_t n) {
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        char number[16];
        const int len = snprintf(number, sizeof number, "%zu", i + 1);
        const struct xpl_url_parameter q[] = {{"partNumber", {number, (size_t)len}},
                                              {"uploadId", xpl_str_from(k->id)}};
        xpl_buf_init(&urls[i], MAX_URL);
        xpl_location_url(k->s->location, xpl_str_from(k->key), q, 2, &urls[i]);
        v[i].url = (const char *)urls[i].p;
        ok = !urls[i].failed;
    }
    return ok;
}

static xpl_status_t send_parts(const struct sending *k, struct xpl_transfer *v, size_t n,
                               struct xpl_error *err) {
    struct xpl_buf *const urls = xpl_sys_alloc(n * sizeof *urls), answer;
    if (!urls) XPL_RETURN_OOM(err, "object store");
    memset(urls, 0, n * sizeof *urls);
    xpl_buf_init(&answer, MAX_ANSWER);
    for (size_t i = 0; i < n; i++)
        v[i].answer = &answer;
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (write_urls(k, urls, v, n))
        st = k->s->run(k->s->arg, v, n, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "object store: out of memory");
    for (size_t i = 0; i < n; i++)
        xpl_buf_fini(&urls[i]);
    xpl_buf_fini(&answer);
    xpl_sys_free(urls);
    return st;
}

static void put_text(struct xpl_buf *b, const char *text) {
    for (; *text; text++)
        if (*text == '&')
            xpl_buf_str(b, XPL_STR("&amp;"));
        else if (*text == '<')
            xpl_buf_str(b, XPL_STR("&lt;"));
        else if (*text == '>')
            xpl_buf_str(b, XPL_STR("&gt;"));
        else
            xpl_buf_putc(b, *text);
}

static xpl_status_t end_parts_with(const struct sending *k, struct xpl_buf *list, bool only_new,
                                   struct xpl_transfer *ret, struct xpl_error *err) {
    const struct xpl_url_parameter q[] = {{"uploadId", xpl_str_from(k->id)}};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(MAX_ANSWER);
    *ret = (struct xpl_transfer){.method = "POST",
                                 .headers = {"Content-Type: application/xml", ONLY_NEW},
                                 .n_headers = only_new ? 2 : 1,
                                 .from = (const char *)list->p,
                                 .from_n = list->n,
                                 .is_slow = true,
                                 .answer = &answer,
                                 .cancel = k->cancel};
    xpl_status_t st = ask(k, q, 1, ret, err);
    // It begins its answer with 200, and may fail then.
    char code[sizeof ret->code];
    xpl_listing_error_code((xpl_str_t){(char *)answer.p, answer.n}, code, sizeof code);
    if (st == XPL_OK && code[0])
        st = xpl_error_set(err, XPL_UNAVAILABLE, __FILE__, __LINE__, UINT64_MAX,
                           "object store: %.80s: answered %s", k->shown, code);
    if (code[0]) memcpy(ret->code, code, sizeof code);
    ret->answer = NULL;
    return st;
}

static xpl_status_t end_parts(const struct sending *k, const struct xpl_transfer *v, size_t n,
                              struct xpl_error *err) {
    struct xpl_buf list = xpl_buf_of(MAX_LIST);
    struct xpl_transfer last = {0};
    struct xpl_error why = {0};
    xpl_buf_str(&list, XPL_STR("<CompleteMultipartUpload>"));
    for (size_t i = 0; i < n; i++) {
        xpl_buf_printf(&list, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        put_text(&list, v[i].etag);
        xpl_buf_str(&list, XPL_STR("</ETag></Part>"));
    }
    xpl_buf_str(&list, XPL_STR("</CompleteMultipartUpload>"));
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (list.failed) {
        (void)xpl_error_set(&why, st, __FILE__, __LINE__, UINT64_MAX,
                            "object store: out of memory");
    } else {
        st = end_parts_with(k, &list, true, &last, &why);
        if (st != XPL_OK && lacks_conditions(&last)) {
            why = (struct xpl_error){0};
            st = end_parts_with(k, &list, false, &last, &why);
        }
    }
    xpl_buf_fini(&list);
    const bool refused = st != XPL_OK && !list.failed &&
                         (last.status == 412 || strcmp(last.code, "PreconditionFailed") == 0);
    if (st == XPL_OK || ((refused || st == XPL_NOT_FOUND) && is_done(k, &last))) return XPL_OK;
    if (refused) return exists(k, err);
    XPL_RETURN_ERROR(err, st, "%s", why.msg);
}

static xpl_status_t put_in_parts(struct sending *k, struct xpl_error *err) {
    uint64_t part = XPL_SENDER_PART;
    while (part * MAX_PARTS < k->size)
        part *= 2;
    const size_t n = (size_t)((k->size + part - 1) / part);
    struct xpl_transfer *const v = xpl_sys_alloc(n * sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "object store");
    for (size_t i = 0; i < n; i++)
        v[i] = (struct xpl_transfer){.shown = k->shown,
                                     .method = "PUT",
                                     .fd = -1,
                                     .from_fd = k->fd,
                                     .from_first = i * part,
                                     .from_n = i + 1 < n ? part : k->size - i * part,
                                     .cancel = k->cancel};
    xpl_status_t st = begin_parts(k, err);
    if (st == XPL_OK) {
        st = send_parts(k, v, n, err);
        if (st == XPL_OK) st = end_parts(k, v, n, err);
        // Otherwise the parts would stay, invisible, and cost money.
        if (st != XPL_OK) (void)!drop_parts(k, NULL);
    }
    xpl_sys_free(v);
    return st;
}

// ---- interface ----

xpl_status_t xpl_sender_put(const struct xpl_sender *s, xpl_str_t path, int fd, uint64_t size,
                            const struct xpl_cancel *cancel, struct xpl_error *err) {
    struct sending k;
    XPL_TRY(begin_sending(s, path, &k, err));
    k.fd = fd, k.size = size, k.cancel = cancel;
    return size > XPL_SENDER_PART ? put_in_parts(&k, err) : put_whole(&k, err);
}

xpl_status_t xpl_sender_remove(const struct xpl_sender *s, xpl_str_t path, struct xpl_error *err) {
    struct sending k;
    struct xpl_transfer v = {.method = "DELETE"};
    struct xpl_error why = {0};
    XPL_TRY(begin_sending(s, path, &k, err));
    xpl_status_t st = ask(&k, NULL, 0, &v, &why);
    if (st == XPL_CANCELLED) { // undoes the beginning even when this daemon stops
        v.is_last = true;
        why = (struct xpl_error){0};
        st = ask(&k, NULL, 0, &v, &why);
    }
    if (st == XPL_OK || st == XPL_NOT_FOUND) return XPL_OK;
    XPL_RETURN_ERROR(err, st, "%s", why.msg);
}
