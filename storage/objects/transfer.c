// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/transfer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "storage/hash.h"
#include "storage/objects/libs.h"
#include "storage/objects/listing.h"

enum {
    MAX_PARALLEL = 16,
    TRIES = 5,
    MAX_WAIT_S = 30, // of a Retry-After
    ERROR_BODY = 2048,
    KEPT_LANES = 8,
    POLL_MS = 100, // how soon a stop is noticed
    CONNECT_MS = 5000,
    STALLED_S = 30, // below MIN_SPEED: a server that sends a byte now and then cannot block callers
    MIN_SPEED = 4096,
    TRY_S = 600,
    LAST_S = 5,       // requests that clean up; and the check whether something is stored
    CLEAN_S = 10,     // all requests that clean up, after a stop
    MAX_HEADER = 256, // bytes of one that is read
};
#define SECOND_NS UINT64_C(1000000000)

// Handles of one call at a time; their connections stay open.
struct lane {
    struct lane *next;
    CURLM *multi;
    CURL *easy[MAX_PARALLEL];
};

struct xpl_transfers {
    const struct xpl_curl *curl;
    unsigned parallel;
    uint64_t first_retry_ns;
    long stalled_s, try_s, max_wait_s;
    char provider[96]; // of signatures
    atomic_bool stopping, stopping_all;
    atomic_bool gave_up;             // requests that clean up do not reach the store any more
    atomic_uint_fast64_t stopped_ns; // when all was stopped; 0: it was not
    uint64_t clean_ns;
    pthread_mutex_t mu;
    struct lane *idle;
    unsigned n_idle;
};

// ---- lanes ----

static void lane_free(struct xpl_transfers *t, struct lane *l) {
    for (size_t i = 0; i < MAX_PARALLEL; i++)
        if (l->easy[i]) t->curl->easy_cleanup(l->easy[i]);
    if (l->multi) (void)t->curl->multi_cleanup(l->multi);
    xpl_sys_free(l);
}

static struct lane *lane_new(struct xpl_transfers *t) {
    struct lane *const l = xpl_sys_alloc(sizeof *l);
    if (!l) return NULL;
    *l = (struct lane){.multi = t->curl->multi_init()};
    bool ok = l->multi != NULL;
    for (unsigned i = 0; ok && i < t->parallel; i++)
        ok = (l->easy[i] = t->curl->easy_init()) != NULL;
    if (ok) return l;
    lane_free(t, l);
    return NULL;
}

static struct lane *lane_get(struct xpl_transfers *t) {
    pthread_mutex_lock(&t->mu);
    struct lane *const l = t->idle;
    if (l) t->idle = l->next, t->n_idle--;
    pthread_mutex_unlock(&t->mu);
    return l ? l : lane_new(t);
}

static void lane_put(struct xpl_transfers *t, struct lane *l) {
    pthread_mutex_lock(&t->mu);
    const bool kept = t->n_idle < KEPT_LANES;
    if (kept) l->next = t->idle, t->idle = l, t->n_idle++;
    pthread_mutex_unlock(&t->mu);
    if (!kept) lane_free(t, l);
}

xpl_status_t xpl_transfers_new(const struct xpl_transfers_options *o, struct xpl_transfers **ret,
                               struct xpl_error *err) {
    const struct xpl_curl *curl;
    XPL_TRY(xpl_curl_load(&curl, err));
    struct xpl_transfers *const t = xpl_sys_alloc(sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "transfers");
    *t = (struct xpl_transfers){.curl = curl,
                                .parallel = o->parallel < MAX_PARALLEL ? o->parallel : MAX_PARALLEL,
                                .first_retry_ns = o->first_retry_ns,
                                .stalled_s = o->stalled_s ? (long)o->stalled_s : STALLED_S,
                                .try_s = o->try_s ? (long)o->try_s : TRY_S,
                                .max_wait_s = o->max_wait_s ? (long)o->max_wait_s : MAX_WAIT_S,
                                .clean_ns = (o->clean_s ? o->clean_s : CLEAN_S) * SECOND_NS};
    (void)snprintf(t->provider, sizeof t->provider, "aws:amz:%.64s:s3", o->region);
    pthread_mutex_init(&t->mu, NULL);
    *ret = t;
    return XPL_OK;
}

void xpl_transfers_free(struct xpl_transfers *t) {
    if (!t) return;
    while (t->idle) {
        struct lane *const l = t->idle;
        t->idle = l->next;
        lane_free(t, l);
    }
    pthread_mutex_destroy(&t->mu);
    xpl_sys_free(t);
}

void xpl_transfers_stop(struct xpl_transfers *t, bool all) {
    uint_fast64_t not_yet = 0;
    atomic_store(&t->stopping, true);
    if (all) (void)atomic_compare_exchange_strong(&t->stopped_ns, &not_yet, xpl_clock_ns());
    if (all) atomic_store(&t->stopping_all, true);
}

// ---- one request ----

struct request {
    struct xpl_transfers *t;
    struct xpl_transfer *v;
    CURL *easy; // while it runs
    struct curl_slist *headers;
    uint64_t got;      // bytes of it that were written
    uint64_t sent;     // by this try
    uint64_t from;     // in the object, where this try began
    uint64_t due_ns;   // when it may begin
    uint64_t began_ns; // the first try
    unsigned tries;    // by this call
    int os;            // error of the file system
    bool done, no_memory;
    bool other;    // the answer is of another object
    bool no_range; // it is not the range that was requested
    bool checked;  // the answer's head was
    char range[MAX_HEADER];
    size_t n_error;
    char error[ERROR_BODY];
};

// ---- heads of answers ----

bool xpl_transfer_is_version(xpl_str_t a, xpl_str_t b) {
    xpl_str_t *const both[] = {&a, &b};
    for (size_t i = 0; i < 2; i++) {
        xpl_str_t *const s = both[i];
        if (xpl_str_starts(*s, XPL_STR("W/"))) *s = xpl_str_sub(*s, 2, SIZE_MAX);
        if (s->len >= 2 && s->ptr[0] == '"' && s->ptr[s->len - 1] == '"')
            *s = xpl_str_sub(*s, 1, s->len - 2);
    }
    return a.len && xpl_str_eq(a, b);
}

// The value of the header `name`, which is in small letters; false when it is another one.
static bool take_header(xpl_str_t line, const char *name, char ret[MAX_HEADER]) {
    const size_t n = strlen(name);
    if (line.len <= n || line.ptr[n] != ':' || strncasecmp(line.ptr, name, n) != 0) return false;
    xpl_str_t value = xpl_str_sub(line, n + 1, SIZE_MAX);
    while (value.len && (value.ptr[0] == ' ' || value.ptr[0] == '\t'))
        value = xpl_str_sub(value, 1, SIZE_MAX);
    while (value.len && (unsigned char)value.ptr[value.len - 1] <= ' ')
        value.len--;
    (void)snprintf(ret, MAX_HEADER, "%.*s", XPL_STR_FMT(xpl_str_sub(value, 0, MAX_HEADER - 1)));
    return true;
}

// libcurl's, for each line.
static size_t on_header(char *p, size_t size, size_t n, void *arg) {
    struct request *const r = arg;
    const xpl_str_t line = {p, size * n};
    if (xpl_str_starts(line, XPL_STR("HTTP/"))) r->v->etag[0] = r->range[0] = 0; // of one before it
    if (!take_header(line, "etag", r->v->etag)) (void)take_header(line, "content-range", r->range);
    return line.len;
}

// Reads "bytes FIRST-LAST/WHOLE"; the length may be "*", which is UINT64_MAX.
static bool parse_range(const char *text, uint64_t *ret_first, uint64_t *ret_last,
                        uint64_t *ret_whole) {
    unsigned long long v[3] = {0, 0, UINT64_MAX};
    int n = 0;
    const bool some = sscanf(text, "bytes %18llu-%18llu/%n", &v[0], &v[1], &n) == 2 && n;
    const char *const rest = text + n;
    int m = 0;
    if (!some || (strcmp(rest, "*") != 0 && (sscanf(rest, "%18llu%n", &v[2], &m) != 1 || rest[m])))
        return false;
    *ret_first = v[0], *ret_last = v[1], *ret_whole = v[2];
    return v[0] <= v[1] && v[1] < v[2];
}

// Whether the answer is for the requested data: a server, or a proxy, may answer with another
// version, or with other bytes of it.
static bool check_head(struct request *r) {
    const struct xpl_transfer *const v = r->v;
    uint64_t first, last, whole;
    const xpl_str_t version = xpl_str_from(v->version);
    r->checked = true;
    // If-Match knows no weak versions, so the answer must say which one it is.
    r->other = r->v->etag[0] ? !xpl_transfer_is_version(xpl_str_from(r->v->etag), version)
                             : xpl_str_starts(version, XPL_STR("W/"));
    if (v->status == 206 && !parse_range(r->range, &first, &last, &whole))
        r->no_range = true;
    else if (v->status == 206) {
        r->other |= whole != UINT64_MAX && whole != v->whole;
        r->no_range = first != r->from || last >= v->first + v->n;
    } else { // the whole of it
        r->no_range = r->from != 0 || v->n != v->whole;
    }
    return !r->other && !r->no_range;
}

// ---- bodies ----

static bool put_range(struct request *r, xpl_bytes_t piece) {
    const struct xpl_transfer *const v = r->v;
    if (!r->checked && !check_head(r)) return false;
    if (piece.len > v->n - r->got) {
        r->other = true;
        return false;
    }
    while (piece.len) {
        const ssize_t n = pwrite(v->fd, piece.ptr, piece.len, (off_t)(v->first + r->got));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            r->os = n < 0 ? errno : ENOSPC;
            return false;
        }
        r->got += (size_t)n;
        piece.ptr += n;
        piece.len -= (size_t)n;
    }
    return true;
}

// libcurl's: anything but the length ends the transfer.
static size_t on_body(char *p, size_t size, size_t n, void *arg) {
    struct request *const r = arg;
    const size_t len = size * n;
    const xpl_bytes_t piece = {(const uint8_t *)p, len};
    (void)r->t->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->v->status);
    if (r->v->status < 200 || r->v->status > 299) {
        const size_t room = sizeof r->error - r->n_error;
        memcpy(r->error + r->n_error, p, len < room ? len : room);
        r->n_error += len < room ? len : room;
        return len;
    }
    if (r->v->n) return put_range(r, piece) ? len : 0;
    xpl_buf_put(r->v->answer, p, len);
    r->no_memory = r->v->answer->failed;
    return r->no_memory ? 0 : len;
}

// libcurl's callback: the next bytes of the body to send.
static size_t on_send(char *p, size_t size, size_t n, void *arg) {
    struct request *const r = arg;
    const struct xpl_transfer *const v = r->v;
    const uint64_t left = v->from_n - r->sent;
    const size_t len = size * n < left ? size * n : (size_t)left;
    if (v->from) {
        memcpy(p, v->from + r->sent, len);
        r->sent += len;
        return len;
    }
    ssize_t got = 0;
    while (len && (got = pread(v->from_fd, p, len, (off_t)(v->from_first + r->sent))) < 0)
        if (errno != EINTR) break;
    if (len && got <= 0) {
        r->os = got < 0 ? errno : EIO; // it became shorter
        return CURL_READFUNC_ABORT;
    }
    r->sent += (uint64_t)got;
    return (size_t)got;
}

// libcurl's: a connection that was kept was closed by the server, and another one is used.
static int on_rewind(void *arg, curl_off_t offset, int origin) {
    struct request *const r = arg;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > r->v->from_n)
        return CURL_SEEKFUNC_FAIL;
    r->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static bool add_header(struct request *r, const char *header) {
    struct curl_slist *const longer = r->t->curl->slist_append(r->headers, header);
    if (longer) r->headers = longer;
    return longer != NULL;
}

#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static bool set_headers(struct request *r, const struct xpl_credential *credential) {
    char token[sizeof credential->token + 32];
    const bool keys = credential->kind == XPL_CREDENTIAL_KEYS;
    bool ok = true;
    for (size_t i = 0; ok && i < r->v->n_headers; i++)
        ok = add_header(r, r->v->headers[i]);
    if (ok && keys)
        ok = add_header(r, r->v->from_n ? "x-amz-content-sha256: UNSIGNED-PAYLOAD"
                                        : "x-amz-content-sha256: " SHA256_OF_NOTHING);
    if (ok && credential->token[0]) {
        (void)snprintf(token, sizeof token, "%s%s",
                       keys ? "x-amz-security-token: " : "Authorization: Bearer ",
                       credential->token);
        ok = add_header(r, token);
        explicit_bzero(token, sizeof token);
    }
    return ok;
}

static bool set_method(struct request *r) {
    const struct xpl_curl *const c = r->t->curl;
    const struct xpl_transfer *const v = r->v;
    if (!v->method) return true;
    bool ok = c->easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, v->method) == CURLE_OK;
    if (strcmp(v->method, "DELETE") == 0) return ok;
    ok = ok && c->easy_setopt(r->easy, CURLOPT_UPLOAD, 1L) == CURLE_OK;
    (void)c->easy_setopt(r->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)v->from_n);
    (void)c->easy_setopt(r->easy, CURLOPT_READFUNCTION, on_send);
    (void)c->easy_setopt(r->easy, CURLOPT_READDATA, r);
    (void)c->easy_setopt(r->easy, CURLOPT_SEEKFUNCTION, on_rewind);
    (void)c->easy_setopt(r->easy, CURLOPT_SEEKDATA, r);
    return ok;
}

static bool set_options(struct request *r, const struct xpl_credential *credential) {
    const struct xpl_curl *const c = r->t->curl;
    const struct xpl_transfer *const v = r->v;
    char range[64];
    c->easy_reset(r->easy);
    bool ok = c->easy_setopt(r->easy, CURLOPT_URL, v->url) == CURLE_OK &&
              c->easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
              c->easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers) == CURLE_OK &&
              (!v->direct || c->easy_setopt(r->easy, CURLOPT_NOPROXY, "*") == CURLE_OK) &&
              set_method(r);
    (void)c->easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
    (void)c->easy_setopt(r->easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)c->easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)c->easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)c->easy_setopt(r->easy, CURLOPT_LOW_SPEED_LIMIT, (long)MIN_SPEED);
    const long seconds = v->is_last ? (long)LAST_S : r->t->try_s;
    (void)c->easy_setopt(r->easy, CURLOPT_LOW_SPEED_TIME, v->is_slow ? 0L : r->t->stalled_s);
    (void)c->easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (v->max_s ? (long)v->max_s : seconds) * 1000);
    (void)c->easy_setopt(r->easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)c->easy_setopt(r->easy, CURLOPT_HEADERDATA, r);
    (void)c->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)c->easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
    (void)c->easy_setopt(r->easy, CURLOPT_PRIVATE, r);
    // Not among the headers: those are signed, and Google changes this one on its way.
    if (ok && v->packed)
        ok = c->easy_setopt(r->easy, CURLOPT_ACCEPT_ENCODING, "gzip") == CURLE_OK &&
             c->easy_setopt(r->easy, CURLOPT_HTTP_CONTENT_DECODING, 0L) == CURLE_OK;
    if (ok && v->n) { // only the missing part
        (void)snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)r->from,
                       (unsigned long long)(v->first + v->n - 1));
        ok = c->easy_setopt(r->easy, CURLOPT_RANGE, range) == CURLE_OK;
    }
    if (ok && credential->kind == XPL_CREDENTIAL_KEYS)
        ok = c->easy_setopt(r->easy, CURLOPT_AWS_SIGV4, r->t->provider) == CURLE_OK &&
             c->easy_setopt(r->easy, CURLOPT_USERNAME, credential->access) == CURLE_OK &&
             c->easy_setopt(r->easy, CURLOPT_PASSWORD, credential->secret) == CURLE_OK;
    return ok;
}

// ---- outcomes ----

static bool may_pass(CURLcode rc) {
    return rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_RESOLVE_PROXY ||
           rc == CURLE_COULDNT_CONNECT || rc == CURLE_OPERATION_TIMEDOUT ||
           rc == CURLE_PARTIAL_FILE || rc == CURLE_GOT_NOTHING || rc == CURLE_SEND_ERROR ||
           rc == CURLE_RECV_ERROR || rc == CURLE_SSL_CONNECT_ERROR || rc == CURLE_SEND_FAIL_REWIND;
}

static bool may_try_again(const struct request *r, CURLcode rc) {
    const long status = r->v->status;
    const unsigned most = r->v->max_tries ? r->v->max_tries : TRIES;
    if (r->tries >= most || r->v->is_last) return false;
    if (rc != CURLE_OK) return may_pass(rc);
    if (status == 409 && r->v->from_n) return true; // another one writes the object just now
    if (status == 408 || status == 429 || (status >= 500 && status != 501)) return true;
    return status >= 200 && status < 300 && r->got < r->v->n; // a short body
}

// False: that would be later than anybody waits.
static bool plan_retry(struct request *r) {
    static atomic_ulong drawn;
    curl_off_t after_s = 0;
    (void)r->t->curl->easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &after_s);
    const uint64_t now = xpl_clock_ns(), seed = atomic_fetch_add(&drawn, 1) ^ now;
    uint64_t wait = r->t->first_retry_ns << (r->tries - 1);
    wait = wait / 2 + xpl_digest64((xpl_bytes_t){(const uint8_t *)"", 0}, seed) % (wait / 2 + 1);
    const curl_off_t max_s = r->t->max_wait_s;
    if (after_s > 0) wait += (uint64_t)(after_s < max_s ? after_s : max_s) * 1000000000u;
    r->due_ns = now + wait;
    return !r->v->patience_ns || r->due_ns - r->began_ns <= r->v->patience_ns;
}

static xpl_status_t status_of(const struct xpl_transfer *v) {
    if (v->status == 404) return XPL_NOT_FOUND;
    if (v->status == 401 || v->status == 403) return XPL_PERMISSION_DENIED;
    if (v->status == 412 || v->status == 416) return XPL_ABORTED;
    if (v->status >= 300 && v->status < 500 && v->status != 408 && v->status != 429)
        return XPL_FAILED_PRECONDITION;
    return XPL_UNAVAILABLE;
}

static xpl_status_t report(const struct request *r, CURLcode rc, struct xpl_error *err) {
    const struct xpl_transfer *const v = r->v;
    char why[96];
    if (r->no_memory || rc == CURLE_OUT_OF_MEMORY) XPL_RETURN_OOM(err, "object store");
    if (r->os && v->from_n)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                         "object store: cannot read the file being uploaded: %s",
                         strerror_r(r->os, why, sizeof why));
    if (r->os)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "the cache of objects: cannot be written: %s",
                         strerror_r(r->os, why, sizeof why));
    if (r->other)
        XPL_RETURN_ERROR(err, XPL_ABORTED, "object store: %.80s: changed while it was read",
                         v->shown);
    if (r->no_range)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                         "object store: %.80s: answered with another range than was requested",
                         v->shown);
    if (rc == CURLE_OK && v->status >= 200 && v->status < 300)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                         "object store: %.80s: the response is shorter than requested", v->shown);
    if (rc != CURLE_OK)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "object store: %.80s: %.80s", v->shown,
                         r->t->curl->easy_strerror(rc));
    const xpl_status_t st = status_of(v);
    XPL_RETURN_ERROR(err, st, "object store: %.80s: %s%s%ld%s%s%s", v->shown,
                     st == XPL_ABORTED ? "changed since it was listed" : "", //
                     st == XPL_ABORTED ? " (" : "answered ", v->status, v->code[0] ? " " : "",
                     v->code, st == XPL_ABORTED ? ")" : "");
}

// ---- all requests of a call ----

struct call {
    struct xpl_transfers *t;
    const struct xpl_credential *credential;
    struct lane *lane;
    struct request *requests;
    size_t n, left;
    uint64_t told_ns;        // time of the request to end; 0: none
    bool busy[MAX_PARALLEL]; // handles of the lane
};

static xpl_status_t start_request(struct call *k, struct request *r, unsigned handle,
                                  struct xpl_error *err) {
    r->easy = k->lane->easy[handle];
    if (!r->tries) r->began_ns = xpl_clock_ns();
    r->tries++, r->v->tries++;
    r->n_error = 0;
    r->checked = r->no_range = false;
    r->v->etag[0] = r->range[0] = 0;
    r->from = r->v->first + r->got;
    r->sent = 0;
    r->v->status = 0;
    r->v->code[0] = 0;
    if (!r->v->n) r->v->answer->n = 0;
    if ((!r->headers && !set_headers(r, k->credential)) || !set_options(r, k->credential) ||
        k->t->curl->multi_add_handle(k->lane->multi, r->easy) != CURLM_OK) {
        r->easy = NULL;
        XPL_RETURN_OOM(err, "object store");
    }
    k->busy[handle] = true;
    return XPL_OK;
}

static void detach(struct call *k, struct request *r) {
    if (!r->easy) return;
    (void)k->t->curl->multi_remove_handle(k->lane->multi, r->easy);
    for (unsigned i = 0; i < k->t->parallel; i++)
        if (k->lane->easy[i] == r->easy) k->busy[i] = false;
    // A handle keeps parts of a request, which have secrets in them.
    k->t->curl->easy_reset(r->easy);
    r->easy = NULL;
}

// Starts the requests that are due; *ret_wait_ms: until the next one is due.
static xpl_status_t start_due(struct call *k, int *ret_wait_ms, struct xpl_error *err) {
    const uint64_t now = xpl_clock_ns();
    unsigned handle = 0;
    *ret_wait_ms = POLL_MS;
    for (size_t i = 0; i < k->n; i++) {
        struct request *const r = &k->requests[i];
        if (r->done || r->easy) continue;
        if (r->due_ns > now) {
            const uint64_t ms = (r->due_ns - now) / 1000000 + 1;
            if (ms < (uint64_t)*ret_wait_ms) *ret_wait_ms = (int)ms;
            continue;
        }
        while (handle < k->t->parallel && k->busy[handle])
            handle++;
        if (handle == k->t->parallel) break;
        XPL_TRY(start_request(k, r, handle, err));
    }
    return XPL_OK;
}

static xpl_status_t finish_request(struct call *k, struct request *r, CURLcode rc,
                                   struct xpl_error *err) {
    (void)k->t->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->v->status);
    xpl_listing_error_code((xpl_str_t){r->error, r->n_error}, r->v->code, sizeof r->v->code);
    const bool good = rc == CURLE_OK && r->v->status >= 200 && r->v->status < 300;
    uint64_t unused;
    if (!r->v->n && !parse_range(r->range, &unused, &unused, &r->v->whole)) r->v->whole = 0;
    if (good && r->got == r->v->n) {
        detach(k, r);
        r->done = true;
        k->left--;
        return XPL_OK;
    }
    if (!may_try_again(r, rc) || !plan_retry(r)) return report(r, rc, err);
    detach(k, r);
    return XPL_OK;
}

static xpl_status_t finish_done(struct call *k, struct xpl_error *err) {
    const struct xpl_curl *const c = k->t->curl;
    int queued;
    for (CURLMsg *m; (m = c->multi_info_read(k->lane->multi, &queued));) {
        struct request *r = NULL;
        if (m->msg != CURLMSG_DONE) continue;
        const CURLcode rc = m->data.result; // gone when the handle is removed
        (void)c->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
        XPL_TRY(finish_request(k, r, rc, err));
    }
    return XPL_OK;
}

// Whether something was sent whole: it may be stored, and the answer that says so is to come.
static bool is_answer_due(const struct call *k) {
    const struct request *const r = k->requests;
    return k->n == 1 && !r->v->ends_early && r->easy && r->v->from_n && r->sent == r->v->from_n;
}

// Requests that clean up may continue after a stop, but only for a limited time.
static bool is_cleaning_over(const struct xpl_transfers *t) {
    const uint64_t stopped_ns = atomic_load(&t->stopped_ns);
    return atomic_load(&t->gave_up) || (stopped_ns && xpl_clock_ns() - stopped_ns > t->clean_ns);
}

static xpl_status_t check_stopped(struct call *k, struct xpl_error *err) {
    const struct xpl_transfer *const v = k->requests->v;
    const bool cancelled = xpl_cancel_is_set(v->cancel);
    const bool stopped = v->is_last
                             ? is_cleaning_over(k->t)
                             : atomic_load(v->ends_early ? &k->t->stopping : &k->t->stopping_all);
    if (!cancelled && !stopped) return XPL_OK;
    if (!k->told_ns) k->told_ns = xpl_clock_ns();
    if (is_answer_due(k) && xpl_clock_ns() - k->told_ns < LAST_S * SECOND_NS) return XPL_OK;
    if (cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "object store: %.80s: cancelled", v->shown);
    XPL_RETURN_ERROR(err, XPL_CANCELLED, "object store: this daemon ends");
}

static xpl_status_t run_call(struct call *k, struct xpl_error *err) {
    const struct xpl_curl *const c = k->t->curl;
    while (k->left) {
        int running, wait_ms;
        XPL_TRY(check_stopped(k, err));
        XPL_TRY(start_due(k, &wait_ms, err));
        if (c->multi_perform(k->lane->multi, &running) != CURLM_OK)
            XPL_RETURN_OOM(err, "object store");
        const size_t left = k->left;
        XPL_TRY(finish_done(k, err));
        if (k->left == left && c->multi_poll(k->lane->multi, NULL, 0, wait_ms, NULL) != CURLM_OK)
            XPL_RETURN_OOM(err, "object store");
    }
    return XPL_OK;
}

xpl_status_t xpl_transfers_run(struct xpl_transfers *t, const struct xpl_credential *credential,
                               struct xpl_transfer *v, size_t n, struct xpl_error *err) {
    struct call k = {.t = t, .credential = credential, .n = n, .left = n};
    if (!n) return XPL_OK;
    k.requests = xpl_sys_alloc(n * sizeof *k.requests);
    k.lane = k.requests ? lane_get(t) : NULL;
    if (!k.lane) {
        xpl_sys_free(k.requests);
        XPL_RETURN_OOM(err, "object store");
    }
    memset(k.requests, 0, n * sizeof *k.requests);
    for (size_t i = 0; i < n; i++)
        k.requests[i].t = t, k.requests[i].v = &v[i];
    const xpl_status_t st = run_call(&k, err);
    if (v->is_last && st == XPL_UNAVAILABLE && atomic_load(&t->stopping_all))
        atomic_store(&t->gave_up, true);
    for (size_t i = 0; i < n; i++) {
        detach(&k, &k.requests[i]);
        t->curl->slist_free_all(k.requests[i].headers);
    }
    lane_put(t, k.lane);
    xpl_sys_free(k.requests);
    return st;
}
