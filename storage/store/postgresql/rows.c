// SPDX-License-Identifier: Apache-2.0
// Rows for people: ops, kernels, steps and memory of a profile, written by COPY.
#include "storage/store/rows.h"
#include "base/cleanup.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/text/utf8.h"
#include "storage/hash.h"
#include "storage/store/columns.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_TEXT = 4096, FLUSH = 256 << 10, MAX_NAMES_BYTES = 256 << 20, ROW_BYTES = 192 };

struct writing {
    struct xpl_pg_store *s;
    uint64_t seed; // of names' ids: nobody can prepare two names with one
    int64_t profile;
    const struct xpl_rows *rows;
    struct xpl_rows_set sets[XPL_ROWS_TABLES];
    size_t n_rows;
    struct xpl_buf clean, out;
    struct xpl_arena arena; // names met so far
    struct xpl_map met;
    struct xpl_buf ids, texts;
    size_t n_names;
};

// ---- names ----

static xpl_bytes_t clean_text(struct writing *w, xpl_str_t text) {
    w->clean.n = 0;
    xpl_utf8_clean(&w->clean, text, MAX_TEXT);
    return (xpl_bytes_t){w->clean.p, w->clean.n};
}

static int64_t name_id(struct writing *w, xpl_str_t text) {
    return (int64_t)xpl_digest64(clean_text(w, text), w->seed);
}

static bool meet(struct writing *w, xpl_str_t text, bool needed) {
    if (text.len == 0 && !needed) return true;
    const int64_t id = name_id(w, text);
    uint64_t *const seen = xpl_map_put(&w->arena, &w->met, (uint64_t)id, ~(uint64_t)id, NULL);
    if (!seen || w->clean.failed) return false;
    if (*seen) return true;
    *seen = 1;
    w->n_names++;
    xpl_pg_array_i64(&w->ids, id);
    xpl_pg_array_bytes(&w->texts, (xpl_bytes_t){w->clean.p, w->clean.n});
    return true;
}

static bool meet_column(struct writing *w, const struct xpl_rows_set *set,
                        const struct xpl_rows_column *c) {
    bool ok = true;
    if (c->type != XPL_COLUMN_NAME && c->type != XPL_COLUMN_NAME_NEEDED) return true;
    for (size_t i = 0; ok && i < set->n; i++)
        ok = meet(w, *(const xpl_str_t *)xpl_rows_member(set, i, c),
                  c->type == XPL_COLUMN_NAME_NEEDED);
    return ok;
}

static bool meet_all(struct writing *w) {
    bool ok = true;
    for (size_t t = 0; t < XPL_ROWS_TABLES; t++)
        for (size_t k = 0; ok && k < w->sets[t].n_columns; k++)
            ok = meet_column(w, &w->sets[t], &w->sets[t].columns[k]);
    return ok && !w->ids.failed && !w->texts.failed;
}

// The head of an array, then its elements.
static bool make_array(struct xpl_buf *b, enum xpl_pg_array type, const struct xpl_buf *elements,
                       size_t n) {
    xpl_buf_init(b, MAX_NAMES_BYTES + 64);
    xpl_pg_array_begin(b, type, n);
    xpl_buf_put(b, elements->p, elements->n);
    return !b->failed;
}

// In the order of ids, so that two writers wait for each other and not for themselves.
static enum xpl_pg_rc insert_names(struct xpl_pg_store *s, const struct xpl_pg_args *a) {
    int64_t wrong = 0;
    enum xpl_pg_rc rc = xpl_pg_query(s->w,
                                     "INSERT INTO names SELECT id, text FROM unnest($1,$2)"
                                     " AS t(id, text) ORDER BY id ON CONFLICT DO NOTHING",
                                     a, NULL);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_ask(s->w,
                        "SELECT count(*) FROM unnest($1,$2) AS t(id, text)"
                        " JOIN names n ON n.id=t.id WHERE n.text<>t.text",
                        a, &wrong);
    return rc == XPL_PG_OK && wrong ? XPL_PG_OTHER : rc; // two texts with one hash
}

static enum xpl_pg_rc add_names(struct writing *w) {
    struct xpl_pg_args a = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf ids = {0}, texts = {0};
    int64_t one = 0;
    xpl_buf_init(&w->ids, MAX_NAMES_BYTES);
    xpl_buf_init(&w->texts, MAX_NAMES_BYTES);
    // Nobody sweeps names while rows that use them are on their way.
    enum xpl_pg_rc rc = xpl_pg_ask(
        w->s->w, "SELECT 1::bigint FROM settings WHERE name='names' FOR SHARE", NULL, &one);
    if (rc == XPL_PG_OK && !meet_all(w)) rc = XPL_PG_NOMEM;
    if (rc == XPL_PG_OK && w->n_names) {
        const bool made = make_array(&ids, XPL_PG_INT8S, &w->ids, w->n_names) &&
                          make_array(&texts, XPL_PG_TEXTS, &w->texts, w->n_names);
        if (made) {
            xpl_pg_arg_array(&a, XPL_PG_INT8S, &ids);
            xpl_pg_arg_array(&a, XPL_PG_TEXTS, &texts);
        }
        rc = made ? insert_names(w->s, &a) : XPL_PG_NOMEM;
    }
    xpl_buf_fini(&w->ids);
    xpl_buf_fini(&w->texts);
    return rc;
}

// ---- fields of COPY's binary format ----

static void put_field(struct writing *w, const void *p, uint32_t len) {
    const uint32_t be = htobe32(len);
    xpl_buf_put(&w->out, &be, sizeof be);
    xpl_buf_put(&w->out, p, len);
}

static void put_null(struct writing *w) {
    const uint32_t be = htobe32(UINT32_MAX);
    xpl_buf_put(&w->out, &be, sizeof be);
}

static void put_u64(struct writing *w, uint64_t v) { // NULL above INT64_MAX
    const uint64_t be = htobe64(v);
    if (v <= INT64_MAX)
        put_field(w, &be, sizeof be);
    else
        put_null(w);
}

static void put_name(struct writing *w, xpl_str_t text, bool needed) {
    const uint64_t be = htobe64((uint64_t)name_id(w, text));
    if (text.len || needed)
        put_field(w, &be, sizeof be);
    else
        put_null(w);
}

static void put_bool(struct writing *w, bool v) {
    const uint8_t byte = v;
    put_field(w, &byte, 1);
}

static void put_double(struct writing *w, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = htobe64(bits);
    if (isfinite(v))
        put_field(w, &bits, sizeof bits);
    else
        put_null(w);
}

static void put_text(struct writing *w, xpl_str_t text) {
    const xpl_bytes_t clean = clean_text(w, text);
    put_field(w, clean.ptr, (uint32_t)clean.len);
}

static void put_column(struct writing *w, const struct xpl_rows_column *c, const void *member) {
    switch (c->type) {
        case XPL_COLUMN_NAME:
        case XPL_COLUMN_NAME_NEEDED:
            put_name(w, *(const xpl_str_t *)member, c->type == XPL_COLUMN_NAME_NEEDED);
            break;
        case XPL_COLUMN_ALLOCATOR: put_text(w, *(const xpl_str_t *)member); break;
        case XPL_COLUMN_U64: put_u64(w, *(const uint64_t *)member); break;
        case XPL_COLUMN_REAL: put_double(w, *(const double *)member); break;
        case XPL_COLUMN_FLAG:
        case XPL_COLUMN_FLAG_NEEDED: put_bool(w, *(const bool *)member); break;
    }
}

static void put_row(struct writing *w, const struct xpl_rows_set *set, size_t i) {
    const uint16_t fields = htobe16((uint16_t)(set->n_columns + 2));
    xpl_buf_put(&w->out, &fields, sizeof fields);
    put_u64(w, (uint64_t)w->profile);
    put_u64(w, i);
    for (size_t k = 0; k < set->n_columns; k++)
        put_column(w, &set->columns[k], xpl_rows_member(set, i, &set->columns[k]));
}

static enum xpl_pg_rc flush(struct writing *w, bool all) {
    if (w->out.failed || w->clean.failed) return XPL_PG_NOMEM;
    if (!w->out.n || (!all && w->out.n < FLUSH)) return XPL_PG_OK;
    const enum xpl_pg_rc rc = xpl_pg_copy_data(w->s->w, (xpl_bytes_t){w->out.p, w->out.n});
    w->out.n = 0;
    return rc;
}

static enum xpl_pg_rc copy(struct writing *w, const char *sql, const struct xpl_rows_set *set) {
    static const uint8_t head[19] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0", end[2] = {0xff, 0xff};
    if (set->n == 0) return XPL_PG_OK;
    enum xpl_pg_rc rc = xpl_pg_copy_begin(w->s->w, sql);
    if (rc != XPL_PG_OK) return rc;
    w->out.n = 0;
    xpl_buf_put(&w->out, head, sizeof head);
    for (size_t i = 0; rc == XPL_PG_OK && i < set->n; i++) {
        put_row(w, set, i);
        rc = flush(w, false);
    }
    xpl_buf_put(&w->out, end, sizeof end);
    if (rc == XPL_PG_OK) rc = flush(w, true);
    if (rc == XPL_PG_NOMEM) (void)xpl_pg_copy_cancel(w->s->w);
    return rc == XPL_PG_OK ? xpl_pg_copy_end(w->s->w) : rc;
}

static enum xpl_pg_rc copy_all(struct writing *w) {
    static const char *const sql[XPL_ROWS_TABLES] = {
        [XPL_ROWS_TABLE_OPS] = "COPY op_rows FROM STDIN (FORMAT binary)",
        [XPL_ROWS_TABLE_KERNELS] = "COPY kernel_rows FROM STDIN (FORMAT binary)",
        [XPL_ROWS_TABLE_STEPS] = "COPY step_rows FROM STDIN (FORMAT binary)",
        [XPL_ROWS_TABLE_MEMORY] = "COPY memory_rows FROM STDIN (FORMAT binary)",
    };
    enum xpl_pg_rc rc = XPL_PG_OK;
    for (size_t t = 0; rc == XPL_PG_OK && t < XPL_ROWS_TABLES; t++)
        rc = copy(w, sql[t], &w->sets[t]);
    return rc;
}

// ---- all rows of a profile ----

// The ops, kernels and steps of a profile, by which its size is estimated.
#define N_ROWS                                                                                     \
    "n_rows=(SELECT count(*) FROM op_rows WHERE profile_id=$1)"                                    \
    "+(SELECT count(*) FROM kernel_rows WHERE profile_id=$1)"                                      \
    "+(SELECT count(*) FROM step_rows WHERE profile_id=$1)"

static enum xpl_pg_rc mark_times(struct writing *w, uint32_t version) {
    struct xpl_pg_args a = {0};
    xpl_pg_arg_i64(&a, w->profile);
    xpl_pg_arg_i64(&a, version);
    xpl_pg_arg_i64(&a, xpl_pg_now_ms(w->s));
    return xpl_pg_query(
        w->s->w, "UPDATE profiles SET memory_version=$2, rows_at_ms=$3, " N_ROWS " WHERE id=$1", &a,
        NULL);
}

static enum xpl_pg_rc mark_profile(struct writing *w, uint32_t version) {
    struct xpl_pg_args a = {0};
    if (w->rows->kind == XPL_ROWS_TIMES) return mark_times(w, version);
    const xpl_bytes_t type = clean_text(w, w->rows->device_type);
    if (w->clean.failed) return XPL_PG_NOMEM;
    xpl_pg_arg_i64(&a, w->profile);
    xpl_pg_arg_text(&a, (xpl_str_t){(const char *)type.ptr, type.len});
    xpl_pg_arg_u64(&a, w->rows->device_cores);
    xpl_pg_arg_i64(&a, version);
    xpl_pg_arg_i64(&a, xpl_pg_now_ms(w->s));
    return xpl_pg_query(w->s->w,
                        "UPDATE profiles SET device_type=$2, device_cores=NULLIF($3::bigint, 0),"
                        " rows_version=$4, rows_at_ms=$5, " N_ROWS " WHERE id=$1",
                        &a, NULL);
}

static enum xpl_pg_rc put_rows(struct writing *w, const struct xpl_profile_id *id,
                               uint32_t version) {
    const uint64_t bytes = w->n_rows * ROW_BYTES;
    enum xpl_pg_rc rc = xpl_pg_make_room(w->s, bytes);
    if (rc == XPL_PG_OK) rc = xpl_pg_exec(w->s->w, "SET LOCAL statement_timeout='60s'");
    if (rc == XPL_PG_OK) rc = xpl_pg_profile_row(w->s, id, &w->profile);
    if (rc == XPL_PG_OK) rc = xpl_pg_delete_rows_of(w->s, w->profile, w->rows->kind);
    if (rc == XPL_PG_OK) rc = add_names(w);
    if (rc == XPL_PG_OK) rc = copy_all(w);
    w->s->tx_bytes += (int64_t)bytes;
    return rc == XPL_PG_OK ? mark_profile(w, version) : rc;
}

xpl_status_t xpl_pg_put_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                             uint32_t version, const struct xpl_rows *rows, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    bool own;
    uint8_t secret[XPL_STORE_SECRET];
    XPL_TRY(xpl_pg_enter(s, &own, err));
    (void)xpl_pg_get_secret(base, secret);
    struct writing w = {
        .s = s, .seed = xpl_digest64((xpl_bytes_t){secret, sizeof secret}, 1), .rows = rows};
    w.n_rows = xpl_rows_sets(rows, w.sets);
    xpl_buf_init(&w.clean, MAX_TEXT);
    xpl_buf_init(&w.out, 2 * (size_t)FLUSH);
    xpl_arena_init(&w.arena, (size_t)256 << 20);
    const enum xpl_pg_rc rc = put_rows(&w, profile, version);
    xpl_arena_fini(&w.arena);
    xpl_buf_fini(&w.out);
    xpl_buf_fini(&w.clean);
    return xpl_pg_leave(s, own, rc, err);
}
