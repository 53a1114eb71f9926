// SPDX-License-Identifier: Apache-2.0
// The products of many files, put with as many statements as those of one.
#include <string.h>

#include "base/arena.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_ARRAY = 64 << 20, MAX_FRAME = 2 << 20 };

// Columns of rows, as arrays.
enum {
    FINGERPRINTS, // of files
    CONTENTS,
    FILE_SIZES,
    DIGESTS, // of results
    KEYS,
    NAMES,
    OPTIONS,
    VERSIONS,
    SIZES,
    CHECKSUMS,
    FRAMES,
    RESULT_IDS, // of what refers to profiles
    RESULT_CONTENTS,
    N_COLUMNS
};

static const enum xpl_pg_array types[N_COLUMNS] = {
    [FINGERPRINTS] = XPL_PG_BYTEAS,   [CONTENTS] = XPL_PG_BYTEAS, [FILE_SIZES] = XPL_PG_INT8S,
    [DIGESTS] = XPL_PG_BYTEAS,        [KEYS] = XPL_PG_BYTEAS,     [NAMES] = XPL_PG_TEXTS,
    [OPTIONS] = XPL_PG_TEXTS,         [VERSIONS] = XPL_PG_INT8S,  [SIZES] = XPL_PG_INT8S,
    [CHECKSUMS] = XPL_PG_INT8S,       [FRAMES] = XPL_PG_BYTEAS,   [RESULT_IDS] = XPL_PG_INT8S,
    [RESULT_CONTENTS] = XPL_PG_BYTEAS};

struct batch {
    struct xpl_pg_store *s;
    const struct xpl_job_put *puts;
    size_t n;
    uint8_t (*digests)[PG_DIGEST]; // of each
    bool *inlined, *added;         // it is one of the rows; it was not there
    size_t n_inlined;
    uint64_t bytes;
    struct xpl_buf columns[N_COLUMNS];
};

static xpl_bytes_t text_bytes(xpl_str_t s) {
    return (xpl_bytes_t){(const uint8_t *)s.ptr, s.len};
}

static xpl_bytes_t content(const struct xpl_job_put *p) {
    return (xpl_bytes_t){p->key.profiles[0].bytes, sizeof p->key.profiles[0].bytes};
}

static void begin_columns(struct batch *b, int first, int end, size_t n) {
    for (int k = first; k < end; k++)
        xpl_pg_array_begin(&b->columns[k], types[k], n);
}

static void put_args(const struct batch *b, int first, int end, struct xpl_pg_args *a) {
    for (int k = first; k < end; k++)
        xpl_pg_arg_array(a, types[k], &b->columns[k]);
}

static bool has_failed(const struct batch *b) {
    bool failed = false;
    for (int k = 0; k < N_COLUMNS; k++)
        failed |= b->columns[k].failed;
    return failed;
}

static bool is_first_of_file(const struct batch *b, size_t i) {
    return i == 0 || !xpl_fingerprint_eq(b->puts[i].file, b->puts[i - 1].file);
}

// ---- files ----

// Rows of profiles are locked until the transaction ends, in the order of their ids: a profile that
// results are made of is not removed meanwhile.  Two files may have the same bytes.
static enum xpl_pg_rc put_files(struct batch *b) {
    struct xpl_pg_args profiles = {0}, files = {0};
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += is_first_of_file(b, i);
    begin_columns(b, FINGERPRINTS, FILE_SIZES + 1, n);
    for (size_t i = 0; i < b->n; i++) {
        uint8_t bytes[XPL_STORE_FINGERPRINT];
        if (!is_first_of_file(b, i)) continue;
        xpl_store_fingerprint_bytes(b->puts[i].file, bytes);
        xpl_pg_array_bytes(&b->columns[FINGERPRINTS], (xpl_bytes_t){bytes, sizeof bytes});
        xpl_pg_array_bytes(&b->columns[CONTENTS], content(&b->puts[i]));
        xpl_pg_array_i64(&b->columns[FILE_SIZES], (int64_t)b->puts[i].file->size);
    }
    if (has_failed(b)) return XPL_PG_NOMEM;
    put_args(b, CONTENTS, FILE_SIZES + 1, &profiles);
    put_args(b, FINGERPRINTS, CONTENTS + 1, &files);
    const enum xpl_pg_rc rc =
        xpl_pg_query(b->s->w,
                     "INSERT INTO profiles(content_id, size_bytes) SELECT DISTINCT ON (c) c, b"
                     " FROM unnest($1,$2) u(c,b) ORDER BY c ON CONFLICT(content_id) DO UPDATE SET"
                     " size_bytes=excluded.size_bytes WHERE profiles.size_bytes IS DISTINCT FROM"
                     " excluded.size_bytes",
                     &profiles, NULL);
    if (rc != XPL_PG_OK) return rc;
    return xpl_pg_query(
        b->s->w,
        "INSERT INTO profile_files(fingerprint, profile_id) SELECT DISTINCT ON (f)"
        " f, p.id FROM unnest($1,$2) u(f,c) JOIN profiles p ON p.content_id=c"
        " ORDER BY f ON CONFLICT(fingerprint) DO UPDATE SET"
        " profile_id=excluded.profile_id, gone_at=NULL WHERE profile_files.profile_id"
        "<>excluded.profile_id OR profile_files.gone_at IS NOT NULL",
        &files, NULL);
}

// ---- results ----

static bool fill_row(struct batch *b, size_t i, struct xpl_buf *frame) {
    const struct xpl_job_put *const p = &b->puts[i];
    struct xpl_buf key;
    const bool ok = xpl_store_key_bytes(&p->key, &key);
    if (ok) {
        const xpl_bytes_t bytes = {key.p, key.n};
        xpl_pg_array_bytes(&b->columns[DIGESTS], xpl_pg_digest(bytes, b->digests[i]));
        xpl_pg_array_bytes(&b->columns[KEYS], bytes);
        xpl_pg_array_bytes(&b->columns[NAMES], text_bytes(p->key.name));
        xpl_pg_array_bytes(&b->columns[OPTIONS], text_bytes(p->key.options));
        xpl_pg_array_i64(&b->columns[VERSIONS], p->key.version);
        xpl_pg_array_i64(&b->columns[SIZES], (int64_t)p->data.len);
        xpl_pg_array_i64(&b->columns[CHECKSUMS],
                         xpl_store_checksum(bytes, p->data, (xpl_bytes_t){0}));
        xpl_pg_array_bytes(&b->columns[FRAMES], (xpl_bytes_t){frame->p, frame->n});
        b->bytes += p->data.len + PG_OVERHEAD;
    }
    xpl_buf_fini(&key);
    return ok;
}

// Those that are small when compressed.  The number of rows precedes them, so that they are
// compressed twice where not all are.
static enum xpl_pg_rc fill_rows(struct batch *b) {
    struct xpl_buf frame = xpl_buf_of(MAX_FRAME);
    bool ok = true;
    for (size_t i = 0; i < b->n && ok; i++) {
        const bool small = !b->puts[i].is_stored && b->puts[i].data.len <= PG_CHUNK;
        ok = !small || xpl_pg_compress(b->puts[i].data, &frame);
        b->inlined[i] = small && ok && frame.n <= PG_INLINE;
        b->n_inlined += b->inlined[i];
    }
    begin_columns(b, DIGESTS, FRAMES + 1, b->n_inlined);
    for (size_t i = 0; i < b->n && ok; i++)
        if (b->inlined[i]) ok = xpl_pg_compress(b->puts[i].data, &frame) && fill_row(b, i, &frame);
    xpl_buf_fini(&frame);
    return ok && !has_failed(b) ? XPL_PG_OK : XPL_PG_NOMEM;
}

// Which results were added, for their references to profiles.
static enum xpl_pg_rc read_added(struct batch *b, const PGresult *r) {
    const int n = b->s->pq->ntuples(r);
    begin_columns(b, RESULT_IDS, RESULT_CONTENTS + 1, (size_t)n);
    for (int row = 0; row < n; row++) {
        const int64_t id = xpl_pg_get_i64(b->s->w, r, row, 0);
        const xpl_bytes_t digest = xpl_pg_get_bytes(b->s->w, r, row, 1);
        size_t i = 0;
        while (i < b->n && (!b->inlined[i] || digest.len != PG_DIGEST ||
                            memcmp(b->digests[i], digest.ptr, PG_DIGEST) != 0))
            i++;
        if (i == b->n) return XPL_PG_OTHER;
        b->added[i] = true;
        if (id < b->s->tx_first_id) b->s->tx_first_id = id;
        b->s->tx_bytes += (int64_t)(b->puts[i].data.len + PG_OVERHEAD);
        xpl_pg_array_i64(&b->columns[RESULT_IDS], id);
        xpl_pg_array_bytes(&b->columns[RESULT_CONTENTS], content(&b->puts[i]));
    }
    return has_failed(b) ? XPL_PG_NOMEM : XPL_PG_OK;
}

static enum xpl_pg_rc add_results(struct batch *b) {
    struct xpl_pg_args a = {0};
    PGresult *r = NULL;
    put_args(b, DIGESTS, FRAMES + 1, &a);
    xpl_pg_arg_text(&a, xpl_store_kind_name(XPL_STORE_PRODUCT));
    xpl_pg_arg_i64(&a, xpl_pg_now_ms(b->s));
    enum xpl_pg_rc rc = xpl_pg_make_room(b->s, b->bytes);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(b->s->w,
                          "INSERT INTO results(digest, key, name, options, version, size_bytes,"
                          " checksum, small, kind, n_hosts, made_at_ms, used_at_ms)"
                          " SELECT d,k,n,o,v,s,c,f,$9,1,$10,$10"
                          " FROM unnest($1,$2,$3,$4,$5,$6,$7,$8) u(d,k,n,o,v,s,c,f) ORDER BY d"
                          " ON CONFLICT(digest) DO NOTHING RETURNING id, digest",
                          &a, &r);
    if (rc == XPL_PG_OK) rc = read_added(b, r);
    if (r) b->s->pq->clear(r);
    return rc;
}

static enum xpl_pg_rc add_references(struct batch *b) {
    struct xpl_pg_args a = {0};
    put_args(b, RESULT_IDS, RESULT_CONTENTS + 1, &a);
    return xpl_pg_query(b->s->w,
                        "INSERT INTO result_profiles(profile_id, result_id) SELECT p.id, r"
                        " FROM unnest($1,$2) u(r,c) JOIN profiles p ON p.content_id=c"
                        " ON CONFLICT DO NOTHING",
                        &a, NULL);
}

static enum xpl_pg_rc put_rows(struct batch *b) {
    enum xpl_pg_rc rc = put_files(b);
    if (rc == XPL_PG_OK) rc = fill_rows(b);
    if (rc == XPL_PG_OK && b->n_inlined) rc = add_results(b);
    if (rc == XPL_PG_OK && b->n_inlined) rc = add_references(b);
    return rc;
}

static bool make_room(struct batch *b) {
    b->digests = xpl_sys_alloc(b->n * sizeof *b->digests);
    b->inlined = xpl_sys_alloc(b->n * sizeof *b->inlined);
    b->added = xpl_sys_alloc(b->n * sizeof *b->added);
    if (!b->digests || !b->inlined || !b->added) return false;
    memset(b->added, 0, b->n * sizeof *b->added);
    return true;
}

// Large ones, and those whose row exists and may be damaged, one by one.
xpl_status_t xpl_pg_put_jobs(struct xpl_store *base, const struct xpl_job_put *puts, size_t n,
                             struct xpl_error *err) {
    struct batch b = {.s = xpl_pg_of(base), .puts = puts, .n = n};
    bool own;
    if (!n) return XPL_OK;
    XPL_TRY(xpl_pg_enter(b.s, &own, err));
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_init(&b.columns[k], MAX_ARRAY);
    const enum xpl_pg_rc rc = make_room(&b) ? put_rows(&b) : XPL_PG_NOMEM;
    xpl_status_t st = xpl_pg_leave(b.s, own, rc, err);
    for (size_t i = 0; i < n && st == XPL_OK; i++)
        if (!b.added[i] && !puts[i].is_stored)
            st = xpl_pg_put(base, &puts[i].key, puts[i].data, (xpl_bytes_t){0}, err);
    for (int k = 0; k < N_COLUMNS; k++)
        xpl_buf_fini(&b.columns[k]);
    xpl_sys_free(b.digests);
    xpl_sys_free(b.inlined);
    xpl_sys_free(b.added);
    return st;
}
