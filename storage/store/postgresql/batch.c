// SPDX-License-Identifier: Apache-2.0
// The products of many files, put with as many statements as those of one.
#include <string.h>

#include "base/arena.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_BYTES = 256 << 20, MAX_FRAME = 2 << 20 };

struct file {
    uint8_t fingerprint[XPL_STORE_FINGERPRINT];
    xpl_bytes_t bytes; // of it
    struct xpl_profile_id content;
    uint64_t size;
};

struct result { // a small one, which is put as a row
    size_t at;  // of puts
    uint8_t digest[PG_DIGEST];
    xpl_bytes_t key, frame;
    xpl_str_t name, options;
    uint64_t size;
    int64_t checksum;
    uint32_t version;
};

struct reference { // of a result, to its profile
    int64_t id;
    struct xpl_profile_id content;
};

struct batch {
    struct xpl_pg_store *s;
    const struct xpl_job_put *puts;
    size_t n;
    struct xpl_arena arena;
    struct file *files;
    struct result *results;
    struct reference *references;
    size_t n_files, n_results, n_references;
    bool *added; // which puts
    uint64_t bytes;
};

// ---- files ----

// Two files may have the same bytes.
static void fill_files(struct batch *b) {
    for (size_t i = 0; i < b->n; i++) {
        const struct xpl_job_put *const p = &b->puts[i];
        if (i && xpl_fingerprint_eq(p->file, b->puts[i - 1].file)) continue;
        struct file *const f = &b->files[b->n_files++];
        *f = (struct file){.bytes = {f->fingerprint, sizeof f->fingerprint},
                           .content = p->key.profiles[0],
                           .size = p->file->size};
        xpl_store_fingerprint_bytes(p->file, f->fingerprint);
    }
}

// Rows of profiles are locked until the transaction ends, in the order of their ids: a profile that
// results are made of is not removed meanwhile.
static enum xpl_pg_rc put_files(struct batch *b) {
    fill_files(b);
    const struct xpl_pg_arg contents = XPL_PG_COLUMN(ID, b->files, b->n_files, content);
    const enum xpl_pg_rc rc =
        xpl_pg_query(b->s->w,
                     "INSERT INTO profiles(content_id, size_bytes) SELECT DISTINCT ON (c) c, b"
                     " FROM unnest($1,$2) u(c,b) ORDER BY c ON CONFLICT(content_id) DO UPDATE SET"
                     " size_bytes=excluded.size_bytes WHERE profiles.size_bytes IS DISTINCT FROM"
                     " excluded.size_bytes",
                     XPL_PG_WITH(contents, XPL_PG_COLUMN(U64, b->files, b->n_files, size)), NULL);
    if (rc != XPL_PG_OK) return rc;
    return xpl_pg_query(
        b->s->w,
        "INSERT INTO profile_files(fingerprint, profile_id) SELECT DISTINCT ON (f)"
        " f, p.id FROM unnest($1,$2) u(f,c) JOIN profiles p ON p.content_id=c"
        " ORDER BY f ON CONFLICT(fingerprint) DO UPDATE SET"
        " profile_id=excluded.profile_id, gone_at=NULL WHERE profile_files.profile_id"
        "<>excluded.profile_id OR profile_files.gone_at IS NOT NULL",
        XPL_PG_WITH(XPL_PG_COLUMN(BYTES, b->files, b->n_files, bytes), contents), NULL);
}

// ---- results ----

static bool copy_bytes(struct batch *b, const struct xpl_buf *from, xpl_bytes_t *ret) {
    uint8_t *const p = xpl_arena_alloc(&b->arena, from->n);
    if (p && from->n) memcpy(p, from->p, from->n);
    *ret = (xpl_bytes_t){p, from->n};
    return p != NULL;
}

static bool add_row(struct batch *b, size_t i, const struct xpl_buf *frame) {
    const struct xpl_job_put *const p = &b->puts[i];
    struct result *const r = &b->results[b->n_results++];
    struct xpl_buf key;
    *r = (struct result){.at = i,
                         .name = p->key.name,
                         .options = p->key.options,
                         .size = p->data.len,
                         .version = p->key.version};
    const bool ok = xpl_store_key_bytes(&p->key, &key) && copy_bytes(b, &key, &r->key) &&
                    copy_bytes(b, frame, &r->frame);
    xpl_buf_fini(&key);
    if (!ok) return false;
    (void)xpl_pg_digest(r->key, r->digest);
    r->checksum = xpl_store_checksum(r->key, p->data, (xpl_bytes_t){0});
    b->bytes += p->data.len + PG_OVERHEAD;
    return true;
}

// Those that are small when compressed.
static bool fill_rows(struct batch *b) {
    struct xpl_buf frame = xpl_buf_of(MAX_FRAME);
    bool ok = true;
    for (size_t i = 0; i < b->n && ok; i++) {
        const struct xpl_job_put *const p = &b->puts[i];
        if (p->is_stored || p->data.len > PG_CHUNK) continue;
        ok = xpl_pg_compress(p->data, &frame);
        if (ok && frame.n <= PG_INLINE) ok = add_row(b, i, &frame);
    }
    xpl_buf_fini(&frame);
    return ok;
}

// Which results were added, for their references to profiles.
static enum xpl_pg_rc read_added(struct batch *b, const PGresult *r) {
    for (int row = 0; row < b->s->pq->ntuples(r); row++) {
        const int64_t id = xpl_pg_get_i64(b->s->w, r, row, 0);
        const xpl_bytes_t digest = xpl_pg_get_bytes(b->s->w, r, row, 1);
        size_t i = 0;
        while (i < b->n_results && (digest.len != PG_DIGEST ||
                                    memcmp(b->results[i].digest, digest.ptr, PG_DIGEST) != 0))
            i++;
        if (i == b->n_results || b->n_references == b->n_results) return XPL_PG_OTHER;
        const struct xpl_job_put *const p = &b->puts[b->results[i].at];
        b->added[b->results[i].at] = true;
        if (id < b->s->tx_first_id) b->s->tx_first_id = id;
        b->s->tx_bytes += (int64_t)(p->data.len + PG_OVERHEAD);
        b->references[b->n_references++] = (struct reference){id, p->key.profiles[0]};
    }
    return XPL_PG_OK;
}

static enum xpl_pg_rc add_results(struct batch *b) {
    const size_t n = b->n_results;
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_make_room(b->s, b->bytes);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(b->s->w,
                          "INSERT INTO results(digest, key, name, options, version, size_bytes,"
                          " checksum, small, kind, n_hosts, made_at_ms, used_at_ms)"
                          " SELECT d,k,n,o,v,s,c,f,$9,1,$10,$10"
                          " FROM unnest($1,$2,$3,$4,$5,$6,$7,$8) u(d,k,n,o,v,s,c,f) ORDER BY d"
                          " ON CONFLICT(digest) DO NOTHING RETURNING id, digest",
                          XPL_PG_WITH(XPL_PG_COLUMN(ID, b->results, n, digest),
                                      XPL_PG_COLUMN(BYTES, b->results, n, key),
                                      XPL_PG_COLUMN(NAME, b->results, n, name),
                                      XPL_PG_COLUMN(NAME, b->results, n, options),
                                      XPL_PG_COLUMN(U32, b->results, n, version),
                                      XPL_PG_COLUMN(U64, b->results, n, size),
                                      XPL_PG_COLUMN(I64, b->results, n, checksum),
                                      XPL_PG_COLUMN(BYTES, b->results, n, frame),
                                      xpl_pg_text(xpl_store_kind_name(XPL_STORE_PRODUCT)),
                                      xpl_pg_i64(xpl_pg_now_ms(b->s))),
                          &r);
    if (rc == XPL_PG_OK) rc = read_added(b, r);
    if (r) b->s->pq->clear(r);
    return rc;
}

static enum xpl_pg_rc add_references(struct batch *b) {
    return xpl_pg_query(b->s->w,
                        "INSERT INTO result_profiles(profile_id, result_id) SELECT p.id, r"
                        " FROM unnest($1,$2) u(r,c) JOIN profiles p ON p.content_id=c"
                        " ON CONFLICT DO NOTHING",
                        XPL_PG_WITH(XPL_PG_COLUMN(I64, b->references, b->n_references, id),
                                    XPL_PG_COLUMN(ID, b->references, b->n_references, content)),
                        NULL);
}

static enum xpl_pg_rc put_rows(struct batch *b) {
    b->files = xpl_arena_array(&b->arena, b->n, sizeof *b->files);
    b->results = xpl_arena_array(&b->arena, b->n, sizeof *b->results);
    b->references = xpl_arena_array(&b->arena, b->n, sizeof *b->references);
    b->added = xpl_arena_zalloc(&b->arena, b->n * sizeof *b->added);
    if (!b->files || !b->results || !b->references || !b->added || !fill_rows(b))
        return XPL_PG_NOMEM;
    enum xpl_pg_rc rc = put_files(b);
    if (rc == XPL_PG_OK && b->n_results) rc = add_results(b);
    if (rc == XPL_PG_OK && b->n_results) rc = add_references(b);
    return rc;
}

// Large ones, and those whose row exists and may be damaged, one by one.
xpl_status_t xpl_pg_put_jobs(struct xpl_store *base, const struct xpl_job_put *puts, size_t n,
                             struct xpl_error *err) {
    struct batch b = {.s = xpl_pg_of(base), .puts = puts, .n = n};
    bool own;
    if (!n) return XPL_OK;
    XPL_TRY(xpl_pg_enter(b.s, &own, err));
    xpl_arena_init(&b.arena, MAX_BYTES);
    const enum xpl_pg_rc rc = put_rows(&b);
    xpl_status_t st = xpl_pg_leave(b.s, own, rc, err);
    for (size_t i = 0; i < n && st == XPL_OK; i++)
        if (!b.added[i] && !puts[i].is_stored)
            st = xpl_pg_put(base, &puts[i].key, puts[i].data, (xpl_bytes_t){0}, err);
    xpl_arena_fini(&b.arena);
    return st;
}
