// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/bucket.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "storage/hash.h"
#include "storage/objects/credentials.h"
#include "storage/objects/listing.h"
#include "storage/objects/location.h"
#include "storage/objects/sender.h"
#include "storage/objects/transfer.h"

// PIECE: of an object, one request.  MAX_PAGE: bytes of a listing.  PAGE_NAMES: of a page, as the
// interface has it.
enum {
    PARALLEL = 8,
    PIECE = 8 << 20,
    MAX_PAGE = 8 << 20,
    MAX_URL = 16 << 10,
    MAX_VERSION = 200,
    PAGE_NAMES = 1000,
};

struct bucket {
    struct xpl_objects base;
    struct xpl_location location;
    struct xpl_credentials *credentials;
    struct xpl_transfers *transfers;
    uint64_t patience_ns; // of fetches
};

static struct bucket *bucket_of(struct xpl_objects *o) {
    return (struct bucket *)(void *)((char *)o - offsetof(struct bucket, base));
}

// Answers of stores for a token that has expired since the request was made, or since the last one.
static bool has_expired(const struct xpl_transfer *v, size_t n) {
    static const char *const codes[] = {"ExpiredToken", "RequestExpired", "TokenRefreshRequired"};
    bool expired = false;
    for (size_t i = 0; !expired && i < n; i++) {
        expired = v[i].status == 401;
        for (size_t c = 0; !expired && c < sizeof codes / sizeof *codes; c++)
            expired = strcmp(v[i].code, codes[c]) == 0;
    }
    return expired;
}

static bool is_renewed(struct bucket *r, const struct xpl_credential *was,
                       struct xpl_credential *ret) {
    return xpl_credentials_get(r->credentials, ret, NULL) == XPL_OK &&
           (strcmp(ret->access, was->access) != 0 || strcmp(ret->token, was->token) != 0);
}

// Once more with credentials that are newer, where the store says that those expired.
static xpl_status_t run_transfers(struct bucket *r, struct xpl_transfer *v, size_t n,
                                  struct xpl_error *err) {
    struct xpl_credential credential, newer;
    struct xpl_error why = {0};
    for (size_t i = 0; i < n; i++)
        v[i].direct = r->location.direct;
    XPL_TRY(xpl_credentials_get(r->credentials, &credential, err));
    xpl_status_t st = xpl_transfers_run(r->transfers, &credential, v, n, &why);
    if (st != XPL_OK && has_expired(v, n)) {
        if (is_renewed(r, &credential, &newer)) {
            why = (struct xpl_error){0};
            st = xpl_transfers_run(r->transfers, &newer, v, n, &why);
        }
        explicit_bzero(&newer, sizeof newer);
    }
    explicit_bzero(&credential, sizeof credential);
    if (st == XPL_OK) return XPL_OK;
    XPL_RETURN_ERROR(err, st, "%s", why.msg);
}

// ---- listing ----

struct page { // reads one into a list
    struct bucket *r;
    struct xpl_object_list *list;
    xpl_str_t prefix; // of the directory's keys
    uint64_t n_names;
};

// The name in the directory; false when it cannot be requested, or exceeds the limit: for a server
// that ignores the page size, only its bytes limit a page.
static bool name_in(struct page *p, xpl_str_t key, xpl_str_t *ret) {
    p->list->cut |= p->n_names++ >= (uint64_t)p->list->max_pages * PAGE_NAMES;
    if (p->list->cut) return false;
    if (xpl_str_eq(key, p->prefix)) return false; // the entry of the directory itself
    *ret = xpl_str_sub(key, p->prefix.len, SIZE_MAX);
    if (xpl_str_starts(key, p->prefix) && xpl_location_is_key(key) &&
        !xpl_str_has(*ret, XPL_STR("/")))
        return true;
    p->list->n_refused++;
    return false;
}

// Whether it may be the value of a header.
static bool is_version(xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~') return false;
    return s.len && s.len <= MAX_VERSION;
}

// If-Match compares weak ones as different from all: then the answer's own version is what counts.
static bool is_weak(xpl_str_t version) {
    return xpl_str_starts(version, XPL_STR("W/"));
}

static bool on_object(void *arg, const struct xpl_listed_object *o) {
    struct page *const p = arg;
    xpl_str_t name;
    if (!name_in(p, o->key, &name)) return true;
    const struct xpl_stored_object object = {
        .path = name, .version = o->etag, .size = o->size, .mtime_ns = o->mtime_ns};
    if (is_version(object.version)) return p->list->object(p->list->arg, &object);
    p->list->n_refused++;
    return true;
}

static bool on_folder(void *arg, xpl_str_t key) {
    struct page *const p = arg;
    xpl_str_t name;
    if (key.len && key.ptr[key.len - 1] == '/') key.len--;
    return !name_in(p, key, &name) || p->list->folder(p->list->arg, name);
}

// Reads one page, from *token on, which becomes where the next one begins; empty: there is none.
static xpl_status_t read_page(struct page *p, xpl_bytes_t body, struct xpl_buf *token,
                              struct xpl_error *err) {
    const struct xpl_listing_sink sink = {on_object, on_folder, p};
    struct xpl_listing *l = NULL;
    xpl_str_t next = {0};
    XPL_TRY(xpl_listing_new(&sink, &l, err));
    (void)xpl_listing_feed(l, body);
    const xpl_status_t st = xpl_listing_end(l, &next, err);
    token->n = 0;
    xpl_buf_str(token, next);
    xpl_listing_free(l);
    if (st == XPL_OK && token->failed) XPL_RETURN_OOM(err, "listing");
    return st;
}

static xpl_status_t ask_page(struct page *p, xpl_str_t token, const char *shown,
                             struct xpl_buf *answer, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf url = xpl_buf_of(MAX_URL);
    const struct xpl_url_parameter parameters[] = {{"continuation-token", token},
                                                   {"delimiter", XPL_STR("/")},
                                                   {"list-type", XPL_STR("2")},
                                                   {"prefix", p->prefix}};
    const size_t first = token.len ? 0 : 1;
    xpl_location_url(&p->r->location, (xpl_str_t){0}, parameters + first,
                     sizeof parameters / sizeof *parameters - first, &url);
    struct xpl_transfer v = {
        .url = (const char *)url.p, .shown = shown, .fd = -1, .answer = answer, .ends_early = true};
    return url.failed ? xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                                      "listing: out of memory")
                      : run_transfers(p->r, &v, 1, err);
}

static xpl_status_t list_pages(struct page *p, const char *shown, struct xpl_buf *token,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(MAX_PAGE);
    xpl_status_t st = XPL_OK;
    uint64_t known = 0; // token, hashed, of a page before
    for (unsigned n = 0; st == XPL_OK && (n == 0 || token->n); n++) {
        p->list->cut |= n == p->list->max_pages;
        if (p->list->cut) break;
        st = ask_page(p, (xpl_str_t){(char *)token->p, token->n}, shown, &answer, err);
        if (st == XPL_OK) st = read_page(p, (xpl_bytes_t){answer.p, answer.n}, token, err);
        const uint64_t next = xpl_digest64((xpl_bytes_t){token->p, token->n}, 0);
        if (st == XPL_OK && token->n && n && next == known)
            st = xpl_error_set(err, XPL_DATA_LOSS, __FILE__, __LINE__, UINT64_MAX,
                               "object store: %.80s: its pages repeat", shown);
        // Remembered at powers of two, which finds circles of any length.
        if ((n & (n + 1)) == 0) known = next;
    }
    return st;
}

static xpl_status_t bucket_list(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                                struct xpl_error *err) {
    char prefix[XPL_KEY_MAX + 2], shown[80];
    struct bucket *const r = bucket_of(o);
    const bool top = xpl_str_eq(dir, XPL_STR("."));
    if (top)
        (void)snprintf(prefix, sizeof prefix, "%s", r->location.prefix);
    else if (!xpl_location_key(&r->location, dir, prefix, sizeof prefix - 1))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "object store: no directory's name");
    if (prefix[0]) (void)strcat(prefix, "/");
    (void)snprintf(shown, sizeof shown, "listing %.70s", prefix[0] ? prefix : r->location.bucket);
    struct page p = {.r = r, .list = list, .prefix = xpl_str_from(prefix)};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf token = xpl_buf_of(MAX_URL);
    return list_pages(&p, shown, &token, err);
}

// ---- reading ----

static xpl_status_t fetch_pieces(struct bucket *r, const struct xpl_transfer *first, uint64_t size,
                                 struct xpl_error *err) {
    const uint64_t n = (size + PIECE - 1) / PIECE;
    struct xpl_transfer *const v = n <= SIZE_MAX / sizeof *v ? xpl_sys_alloc(n * sizeof *v) : NULL;
    if (!v) XPL_RETURN_OOM(err, "object store");
    for (uint64_t i = 0; i < n; i++) {
        v[i] = *first;
        v[i].first = i * PIECE;
        v[i].n = i + 1 < n ? PIECE : size - i * PIECE;
    }
    const xpl_status_t st = run_transfers(r, v, n, err);
    xpl_sys_free(v);
    return st;
}

static xpl_status_t bucket_fetch(struct xpl_objects *o, const struct xpl_stored_object *of, int fd,
                                 struct xpl_error *err) {
    char key[XPL_KEY_MAX + 1], shown[80], version[MAX_VERSION + 1], match[MAX_VERSION + 40];
    struct bucket *const r = bucket_of(o);
    if (!of->size) return XPL_OK;
    if (!xpl_location_key(&r->location, of->path, key, sizeof key) || !is_version(of->version))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "object store: no object's name");
    (void)snprintf(version, sizeof version, "%.*s", XPL_STR_FMT(of->version));
    (void)snprintf(match, sizeof match, "If-Match: %s", version);
    const char *const end = of->path.ptr + (of->path.len > 70 ? of->path.len - 70 : 0);
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(of->path.ptr + of->path.len - end), end);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf url = xpl_buf_of(MAX_URL);
    xpl_location_url(&r->location, xpl_str_from(key), NULL, 0, &url);
    // Google unpacks it for clients that do not accept gzip: then it has another length.
    const struct xpl_transfer v = {.url = (const char *)url.p,
                                   .shown = shown,
                                   .headers = {match},
                                   .n_headers = is_weak(of->version) ? 0 : 1,
                                   .whole = of->size,
                                   .version = version,
                                   .patience_ns = r->patience_ns,
                                   .packed = r->location.service == XPL_OBJECTS_GCS,
                                   .fd = fd};
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (url.failed)
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "object store: out of memory");
    else
        st = fetch_pieces(r, &v, of->size, err);
    return st;
}

// ---- writing ----

static xpl_status_t run_for(void *arg, struct xpl_transfer *v, size_t n, struct xpl_error *err) {
    return run_transfers(arg, v, n, err);
}

static xpl_status_t bucket_put(struct xpl_objects *o, xpl_str_t path, int fd, uint64_t size,
                               const struct xpl_cancel *cancel, struct xpl_error *err) {
    struct bucket *const r = bucket_of(o);
    const struct xpl_sender s = {.location = &r->location, .run = run_for, .arg = r};
    return xpl_sender_put(&s, path, fd, size, cancel, err);
}

static xpl_status_t bucket_remove(struct xpl_objects *o, xpl_str_t path, struct xpl_error *err) {
    struct bucket *const r = bucket_of(o);
    const struct xpl_sender s = {.location = &r->location, .run = run_for, .arg = r};
    return xpl_sender_remove(&s, path, err);
}

// ---- life ----

static void bucket_stop(struct xpl_objects *o, enum xpl_objects_stop what) {
    xpl_transfers_stop(bucket_of(o)->transfers, what == XPL_OBJECTS_STOP_ALL);
}

static void bucket_free(struct xpl_objects *o) {
    struct bucket *const r = bucket_of(o);
    xpl_credentials_free(r->credentials);
    xpl_transfers_free(r->transfers);
    xpl_sys_free(r);
}

static const struct xpl_objects_ops ops = {.list = bucket_list,
                                           .fetch = bucket_fetch,
                                           .put = bucket_put,
                                           .remove = bucket_remove,
                                           .stop = bucket_stop,
                                           .free = bucket_free};

static xpl_status_t open_parts(struct bucket *r, const struct xpl_objects_options *o,
                               struct xpl_error *err) {
    char place[sizeof r->location];
    r->patience_ns = o->patience_ns;
    XPL_TRY(xpl_location_parse(o->url, o->endpoint, o->region, &r->location, err));
    const struct xpl_transfers_options t = {.parallel = PARALLEL,
                                            .first_retry_ns =
                                                o->first_retry_ns ? o->first_retry_ns : 200000000,
                                            .region = r->location.region};
    XPL_TRY(xpl_transfers_new(&t, &r->transfers, err));
    const struct xpl_credentials_options c = {.service = r->location.service,
                                              .anonymous = o->anonymous,
                                              .region = r->location.region,
                                              .transfers = r->transfers,
                                              .warn = o->warn,
                                              .arg = o->warn_arg};
    XPL_TRY(xpl_credentials_new(&c, &r->credentials, err));
    (void)snprintf(place, sizeof place, "%s/%s/%s", r->location.endpoint, r->location.bucket,
                   r->location.prefix);
    return xpl_objects_init(&r->base, &ops, xpl_str_from(place), o->cache_dir, o->cache_limit, err);
}

xpl_status_t xpl_bucket_open(const struct xpl_objects_options *o, struct xpl_objects **ret,
                             struct xpl_error *err) {
    struct bucket *const r = xpl_sys_alloc(sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "object store");
    memset(r, 0, sizeof *r);
    const xpl_status_t st = open_parts(r, o, err);
    if (st != XPL_OK) {
        bucket_free(&r->base);
        return st;
    }
    *ret = &r->base;
    return XPL_OK;
}
