// SPDX-License-Identifier: Apache-2.0
// Results: reading and writing them.
//
// A result never changes: one that takes its place has another id.  So a row and its chunks, which
// two statements read, belong together, or the chunks are gone.
#include <string.h>

#include "base/arena.h"
#include "storage/hash.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

static xpl_bytes_t view(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

xpl_bytes_t xpl_pg_digest(xpl_bytes_t key, uint8_t ret[PG_DIGEST]) {
    const uint64_t h[2] = {xpl_digest64(key, 0), xpl_digest64(key, 0x9e3779b97f4a7c15u)};
    for (size_t i = 0; i < PG_DIGEST; i++)
        ret[i] = (uint8_t)(h[i / 8] >> (8 * (i % 8)));
    return (xpl_bytes_t){ret, PG_DIGEST};
}

// ---- reading ----

static void value_free(struct xpl_store_value *v) {
    xpl_sys_free(v->data);
    xpl_sys_free(v->meta);
    *v = (struct xpl_store_value){0};
}

struct fetch {
    struct xpl_pg_conn *c;
    xpl_bytes_t key;
    size_t max;
    int64_t id, week, checksum;
    bool in_chunks;
    struct xpl_store_value v;
};

static size_t chunk_len(size_t len, size_t at) {
    return len - at < PG_CHUNK ? len - at : PG_CHUNK;
}

static enum xpl_pg_rc read_meta(struct fetch *f, const PGresult *r, int column) {
    const xpl_bytes_t meta = xpl_pg_get_bytes(f->c, r, 0, column);
    if (meta.len == 0) return XPL_PG_OK;
    f->v.meta = xpl_sys_alloc(meta.len);
    if (!f->v.meta) return XPL_PG_NOMEM;
    memcpy(f->v.meta, meta.ptr, meta.len);
    f->v.meta_len = meta.len;
    return XPL_PG_OK;
}

// id, size_bytes, checksum, meta, week, small
static enum xpl_pg_rc read_row(struct fetch *f, const PGresult *r) {
    const int64_t size = xpl_pg_get_i64(f->c, r, 0, 1);
    f->id = xpl_pg_get_i64(f->c, r, 0, 0);
    f->checksum = xpl_pg_get_i64(f->c, r, 0, 2);
    f->in_chunks = !f->c->pq->getisnull(r, 0, 4);
    f->week = xpl_pg_get_i64(f->c, r, 0, 4);
    if (size < 0 || (uint64_t)size > XPL_STORE_MAX_RESULT) return XPL_PG_DAMAGE;
    if ((uint64_t)size > f->max) return XPL_PG_TOOBIG;
    f->v.len = (size_t)size;
    f->v.data = xpl_sys_alloc(f->v.len + !f->v.len);
    if (!f->v.data) return XPL_PG_NOMEM;
    if (!f->in_chunks && (f->v.len > PG_CHUNK ||
                          !xpl_pg_decompress(xpl_pg_get_bytes(f->c, r, 0, 5), f->v.data, f->v.len)))
        return XPL_PG_DAMAGE;
    return read_meta(f, r, 3);
}

// NONE: there are no chunks.
static enum xpl_pg_rc read_chunks(struct fetch *f) {
    PGresult *r = NULL;
    size_t at = 0;
    bool right = true;
    enum xpl_pg_rc rc = xpl_pg_send(
        f->c, "SELECT data FROM result_data WHERE week=$1 AND result_id=$2 ORDER BY seq",
        XPL_PG_WITH(xpl_pg_i64(f->week), xpl_pg_i64(f->id)));
    while (rc == XPL_PG_OK && (rc = xpl_pg_next_row(f->c, &r)) == XPL_PG_OK) {
        const size_t len = chunk_len(f->v.len, at);
        right =
            right && len && xpl_pg_decompress(xpl_pg_get_bytes(f->c, r, 0, 0), f->v.data + at, len);
        at += right ? len : 0;
        f->c->pq->clear(r);
    }
    if (rc != XPL_PG_NONE) return rc;
    if (!right || (at && at != f->v.len)) return XPL_PG_DAMAGE;
    return at == f->v.len ? XPL_PG_OK : XPL_PG_NONE;
}

static enum xpl_pg_rc fetch_row(struct fetch *f) {
    uint8_t digest[PG_DIGEST];
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(
        f->c,
        "SELECT id, size_bytes, checksum, meta, week, small"
        " FROM results WHERE digest=$1 AND key=$2",
        XPL_PG_WITH(xpl_pg_bytes(xpl_pg_digest(f->key, digest)), xpl_pg_bytes(f->key)), &r);
    if (rc != XPL_PG_OK) return rc;
    rc = f->c->pq->ntuples(r) ? read_row(f, r) : XPL_PG_NONE;
    f->c->pq->clear(r);
    return rc;
}

// A row without chunks was removed between the two statements, or is damaged when it stays so.
static enum xpl_pg_rc fetch(struct fetch *f) {
    for (int64_t before = 0;;) {
        enum xpl_pg_rc rc = fetch_row(f);
        if (rc == XPL_PG_OK && f->in_chunks) {
            rc = read_chunks(f);
            if (rc == XPL_PG_NONE && before != f->id) {
                before = f->id;
                value_free(&f->v);
                continue;
            }
            if (rc == XPL_PG_NONE) rc = XPL_PG_DAMAGE;
        }
        if (rc == XPL_PG_OK &&
            xpl_store_checksum(f->key, (xpl_bytes_t){f->v.data, f->v.len},
                               (xpl_bytes_t){f->v.meta, f->v.meta_len}) != f->checksum)
            rc = XPL_PG_DAMAGE;
        return rc;
    }
}

static xpl_status_t get_with(struct xpl_pg_store *s, struct fetch *f, struct xpl_error *err) {
    f->c = xpl_pg_reader(s);
    if (!f->c) return XPL_NOT_FOUND;
    const enum xpl_pg_rc rc = fetch(f);
    // One damaged result says nothing against the connection.
    if (rc == XPL_PG_DAMAGE) atomic_fetch_add(&s->read_errors, 1);
    xpl_pg_reader_done(s, f->c, rc == XPL_PG_DAMAGE || rc == XPL_PG_TOOBIG ? XPL_PG_OK : rc);
    if (rc == XPL_PG_OK) { // a collision forgets one
        atomic_store_explicit(&s->touched[(uint64_t)f->id % PG_TOUCHES], f->id,
                              memory_order_relaxed);
        return XPL_OK;
    }
    value_free(&f->v);
    if (rc == XPL_PG_DAMAGE && f->id)
        atomic_store(&s->damaged[(uint64_t)f->id % PG_DAMAGED], f->id);
    if (rc == XPL_PG_TOOBIG)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "stored result: larger than the limit of %zu bytes", f->max);
    if (rc == XPL_PG_NOMEM) XPL_RETURN_OOM(err, "stored result");
    return XPL_NOT_FOUND;
}

xpl_status_t xpl_pg_get(struct xpl_store *base, const struct xpl_store_key *key, size_t max_bytes,
                        struct xpl_store_value *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct fetch f = {.max = max_bytes};
    xpl_status_t st = XPL_NOT_FOUND;
    if (atomic_load(&s->role) != XPL_STORE_OFF) {
        struct xpl_buf b;
        if (xpl_store_key_bytes(key, &b)) {
            f.key = view(&b);
            st = get_with(s, &f, err);
        } else {
            st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "store: key too long or no memory");
        }
        xpl_buf_fini(&b);
    }
    atomic_fetch_add(st == XPL_OK ? &s->hits : &s->misses, 1);
    if (st == XPL_OK) *ret = f.v;
    return st;
}

// $1 digests, $2 keys
static enum xpl_pg_rc find_keys(struct xpl_pg_conn *c, const struct xpl_pg_args *a, size_t n,
                                bool *ret) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c,
                                     "SELECT u.i::bigint FROM unnest($1,$2) WITH ORDINALITY"
                                     " u(d,k,i) JOIN results r ON r.digest=u.d AND r.key=u.k",
                                     a, &r);
    for (int i = 0; rc == XPL_PG_OK && i < c->pq->ntuples(r); i++) {
        const int64_t at = xpl_pg_get_i64(c, r, i, 0);
        if (at < 1 || (uint64_t)at > n)
            rc = XPL_PG_DAMAGE;
        else
            ret[at - 1] = true;
    }
    if (r) c->pq->clear(r);
    return rc;
}

// What finds a result.
struct name {
    struct xpl_buf b; // has the key
    uint8_t digest[PG_DIGEST];
    xpl_bytes_t key;
};

static bool put_names(const struct xpl_store_key *keys, size_t n, struct name *ret) {
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = xpl_store_key_bytes(&keys[i], &ret[i].b);
        ret[i].key = view(&ret[i].b);
        (void)xpl_pg_digest(ret[i].key, ret[i].digest);
    }
    return ok;
}

void xpl_pg_has_many(struct xpl_store *base, const struct xpl_store_key *keys, size_t n,
                     bool *ret) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    memset(ret, 0, n * sizeof *ret);
    struct name *const names = xpl_sys_alloc(n * sizeof *names + 1);
    if (!names) return;
    memset(names, 0, n * sizeof *names);
    struct xpl_pg_conn *const c = n && put_names(keys, n, names) ? xpl_pg_reader(s) : NULL;
    if (c)
        xpl_pg_reader_done(s, c,
                           find_keys(c,
                                     XPL_PG_WITH(XPL_PG_COLUMN(ID, names, n, digest),
                                                 XPL_PG_COLUMN(BYTES, names, n, key)),
                                     n, ret));
    for (size_t i = 0; i < n; i++)
        xpl_buf_fini(&names[i].b);
    xpl_sys_free(names);
}

bool xpl_pg_has(struct xpl_store *base, const struct xpl_store_key *key) {
    bool has;
    xpl_pg_has_many(base, key, 1, &has);
    return has;
}

// ---- writing ----

struct put {
    struct xpl_pg_store *s;
    const struct xpl_store_key *key;
    xpl_bytes_t bytes, digest, data, meta;
    int64_t checksum, id;
    struct xpl_buf frame;
};

// Whether these very bytes are there already, as another daemon has put them.  Those in chunks are
// written anew: to compare them takes as long.
static enum xpl_pg_rc is_there(struct put *p, bool *ret) {
    int64_t one = 0;
    const enum xpl_pg_rc rc = xpl_pg_ask(
        p->s->w,
        "SELECT 1::bigint FROM results WHERE digest=$1 AND key=$2 AND checksum=$3 AND"
        " size_bytes=$4 AND small=$5 AND coalesce(meta,'')=$6 AND week IS NULL",
        XPL_PG_WITH(xpl_pg_bytes(p->digest), xpl_pg_bytes(p->bytes), xpl_pg_i64(p->checksum),
                    xpl_pg_u64(p->data.len), xpl_pg_bytes(view(&p->frame)), xpl_pg_bytes(p->meta)),
        &one);
    *ret = rc == XPL_PG_OK;
    return rc == XPL_PG_NONE ? XPL_PG_OK : rc;
}

static enum xpl_pg_rc delete_same(struct put *p) {
    int64_t n = 0;
    return xpl_pg_remove(p->s,
                         "SELECT id, week, size_bytes FROM results WHERE digest=$1 FOR UPDATE",
                         XPL_PG_WITH(xpl_pg_bytes(p->digest)), &n);
}

// *ret_id 0: another daemon was faster.
static enum xpl_pg_rc add_result(struct put *p, bool in_chunks) {
    const struct xpl_store_key *const key = p->key;
    const xpl_str_t kind = xpl_store_kind_name(key->kind);
    const struct xpl_pg_arg none = {.type = XPL_PG_BYTES, .is_null = true};
    const enum xpl_pg_rc rc = xpl_pg_ask(
        p->s->w,
        "INSERT INTO results(digest, key, kind, name, options, version, n_hosts,"
        " size_bytes, checksum, made_at_ms, used_at_ms, meta, week, small)"
        " VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$10,$11,$12,$13)"
        " ON CONFLICT(digest) DO NOTHING RETURNING id",
        XPL_PG_WITH(xpl_pg_bytes(p->digest), xpl_pg_bytes(p->bytes), xpl_pg_text(kind),
                    xpl_pg_name(key->name), xpl_pg_name(key->options), xpl_pg_i64(key->version),
                    xpl_pg_u64(key->n_profiles), xpl_pg_u64(p->data.len), xpl_pg_i64(p->checksum),
                    xpl_pg_i64(xpl_pg_now_ms(p->s)), p->meta.len ? xpl_pg_bytes(p->meta) : none,
                    xpl_pg_u64(in_chunks ? (uint64_t)p->s->week : UINT64_MAX),
                    in_chunks ? none : xpl_pg_bytes(view(&p->frame))),
        &p->id);
    return rc == XPL_PG_NONE ? XPL_PG_OK : rc;
}

static enum xpl_pg_rc add_chunks(struct put *p) {
    enum xpl_pg_rc rc = XPL_PG_OK;
    size_t at = 0;
    for (int64_t seq = 0; rc == XPL_PG_OK && at < p->data.len; seq++) {
        const xpl_bytes_t chunk = {p->data.ptr + at, chunk_len(p->data.len, at)};
        if (!xpl_pg_compress(chunk, &p->frame)) return XPL_PG_NOMEM;
        rc = xpl_pg_query(p->s->w, "INSERT INTO result_data VALUES($1,$2,$3,$4)",
                          XPL_PG_WITH(xpl_pg_i64(p->s->week), xpl_pg_i64(p->id), xpl_pg_i64(seq),
                                      xpl_pg_bytes(view(&p->frame))),
                          NULL);
        at += chunk.len;
    }
    return rc;
}

static enum xpl_pg_rc put_new(struct put *p, bool in_chunks) {
    struct xpl_pg_store *const s = p->s;
    const uint64_t need = p->data.len + PG_OVERHEAD;
    enum xpl_pg_rc rc = xpl_pg_make_room(s, need + p->meta.len + p->bytes.len);
    if (rc == XPL_PG_OK) rc = delete_same(p);
    if (rc == XPL_PG_OK) rc = add_result(p, in_chunks);
    if (rc != XPL_PG_OK || p->id == 0) return rc;
    if (p->id < s->tx_first_id) s->tx_first_id = p->id;
    s->tx_bytes += (int64_t)need;
    if (in_chunks) rc = add_chunks(p);
    return rc == XPL_PG_OK ? xpl_pg_add_profiles(s, p->id, p->key) : rc;
}

static enum xpl_pg_rc put_result(struct put *p) {
    bool there = false, in_chunks = p->data.len > PG_CHUNK;
    if (!in_chunks && !xpl_pg_compress(p->data, &p->frame)) return XPL_PG_NOMEM;
    in_chunks = in_chunks || p->frame.n > PG_INLINE;
    enum xpl_pg_rc rc = xpl_pg_remove_damaged(p->s);
    if (rc == XPL_PG_OK && !in_chunks) rc = is_there(p, &there);
    return rc == XPL_PG_OK && !there ? put_new(p, in_chunks) : rc;
}

xpl_status_t xpl_pg_put(struct xpl_store *base, const struct xpl_store_key *key, xpl_bytes_t data,
                        xpl_bytes_t meta, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    bool own;
    XPL_TRY(xpl_pg_enter(s, &own, err));
    enum xpl_pg_rc rc = XPL_PG_TOOBIG;
    if (data.len <= XPL_STORE_MAX_RESULT && meta.len <= XPL_STORE_MAX_META) {
        struct xpl_buf b;
        uint8_t digest[PG_DIGEST];
        rc = XPL_PG_NOMEM;
        if (xpl_store_key_bytes(key, &b)) {
            struct put p = {.s = s, .key = key, .bytes = view(&b), .data = data, .meta = meta};
            p.digest = xpl_pg_digest(p.bytes, digest);
            p.checksum = xpl_store_checksum(p.bytes, data, meta);
            xpl_buf_init(&p.frame, (size_t)2 << 20);
            rc = put_result(&p);
            xpl_buf_fini(&p.frame);
        }
        xpl_buf_fini(&b);
    }
    return xpl_pg_leave(s, own, rc, err);
}
