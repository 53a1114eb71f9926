// SPDX-License-Identifier: Apache-2.0
// Rows for people: ops, kernels, steps and memory of a profile, written by arrays.
#include "storage/store/rows.h"

#include <assert.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include "storage/hash.h"
#include "storage/store/columns.h"
#include "storage/store/postgresql/impl.h"

enum { MAX_TEXT = 4096, AT_ONCE = 4096, ROW_BYTES = 192 };

// A text that rows refer to by its id, a hash.
struct name {
    int64_t id;
    xpl_str_t text;
};

struct writing {
    struct xpl_pg_store *s;
    uint64_t seed; // of names' ids: nobody can prepare two names with one
    int64_t profile;
    const struct xpl_rows *rows;
    struct xpl_rows_set sets[XPL_ROWS_TABLES];
    size_t n_rows;
    struct xpl_buf clean;
    struct xpl_arena arena; // names met so far
    struct xpl_map met;
    XPL_VEC(struct name) names;
};

// ---- names ----

// 0, which becomes NULL, for "" in a column that may be NULL.
static int64_t name_id(struct writing *w, xpl_str_t text, bool needed) {
    if (text.len == 0 && !needed) return 0;
    w->clean.n = 0;
    xpl_utf8_clean(&w->clean, text, MAX_TEXT);
    return (int64_t)xpl_digest64((xpl_bytes_t){w->clean.p, w->clean.n}, w->seed);
}

static bool is_name(const struct xpl_rows_column *c) {
    return c->type == XPL_COLUMN_NAME || c->type == XPL_COLUMN_NAME_NEEDED;
}

static int64_t id_of(struct writing *w, const struct xpl_rows_set *set, size_t i,
                     const struct xpl_rows_column *c) {
    return name_id(w, *(const xpl_str_t *)xpl_rows_member(set, i, c),
                   c->type == XPL_COLUMN_NAME_NEEDED);
}

static bool meet_column(struct writing *w, const struct xpl_rows_set *set,
                        const struct xpl_rows_column *c) {
    for (size_t i = 0; i < set->n; i++) {
        const int64_t id = id_of(w, set, i, c);
        if (!id) continue;
        uint64_t *const seen = xpl_map_put(&w->arena, &w->met, (uint64_t)id, ~(uint64_t)id, NULL);
        struct name *const name = seen && !*seen ? xpl_vec_push(&w->arena, &w->names) : NULL;
        if (!seen || w->clean.failed || (!*seen && !name)) return false;
        if (*seen) continue;
        *seen = 1;
        *name = (struct name){id, *(const xpl_str_t *)xpl_rows_member(set, i, c)};
    }
    return true;
}

static bool meet_all(struct writing *w) {
    bool ok = true;
    for (size_t t = 0; t < XPL_ROWS_TABLES; t++)
        for (size_t k = 0; ok && k < w->sets[t].n_columns; k++)
            if (is_name(&w->sets[t].columns[k]))
                ok = meet_column(w, &w->sets[t], &w->sets[t].columns[k]);
    return ok;
}

// In the order of ids, so that two writers wait for each other and not for themselves.
static enum xpl_pg_rc add_names(struct writing *w) {
    int64_t one = 0, wrong = 0;
    // Nobody sweeps names while rows that use them are on their way.
    enum xpl_pg_rc rc = xpl_pg_ask(
        w->s->w, "SELECT 1::bigint FROM settings WHERE name='names' FOR SHARE", NULL, &one);
    if (rc == XPL_PG_OK && !meet_all(w)) rc = XPL_PG_NOMEM;
    if (rc != XPL_PG_OK || !w->names.n) return rc;
    const struct xpl_pg_args *const a =
        XPL_PG_WITH(XPL_PG_COLUMN(I64, w->names.v, w->names.n, id),
                    XPL_PG_COLUMN(NAME, w->names.v, w->names.n, text));
    rc = xpl_pg_query(w->s->w,
                      "INSERT INTO names SELECT id, text FROM unnest($1,$2)"
                      " AS t(id, text) ORDER BY id ON CONFLICT DO NOTHING",
                      a, NULL);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_ask(w->s->w,
                        "SELECT count(*) FROM unnest($1,$2) AS t(id, text)"
                        " JOIN names n ON n.id=t.id WHERE n.text<>t.text",
                        a, &wrong);
    return rc == XPL_PG_OK && wrong ? XPL_PG_OTHER : rc; // two texts with one hash
}

// ---- rows ----

// Inserts rows from arrays, one for each column: $1 profile, $2 the first row's number.
static void put_sql(struct xpl_buf *b, const char *table, const struct xpl_rows_set *set) {
    xpl_buf_printf(b, "INSERT INTO %s SELECT $1,$2+i-1", table);
    for (size_t k = 0; k < set->n_columns; k++)
        xpl_buf_printf(b, set->columns[k].type == XPL_COLUMN_NAME ? ",NULLIF(c%zu,0)" : ",c%zu", k);
    for (size_t k = 0; k < set->n_columns; k++)
        xpl_buf_printf(b, k ? ",$%zu" : " FROM unnest($%zu", k + 3);
    for (size_t k = 0; k < set->n_columns; k++)
        xpl_buf_printf(b, k ? ",c%zu" : ") WITH ORDINALITY u(c%zu", k);
    xpl_buf_put(b, ",i)", sizeof ",i)");
}

// The ids of some rows' names, or NULL.
static int64_t *list_ids(struct writing *w, struct xpl_arena *arena, const struct xpl_rows_set *set,
                         const struct xpl_rows_column *c, size_t at, size_t n) {
    int64_t *const ids = xpl_arena_array(arena, n, sizeof *ids);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = id_of(w, set, at + i, c);
    return w->clean.failed ? NULL : ids;
}

#define ONE(...) +1
static_assert(2 XPL_OP_COLUMNS(ONE) <= XPL_PG_ARGS && 2 XPL_KERNEL_COLUMNS(ONE) <= XPL_PG_ARGS &&
                  2 XPL_STEP_COLUMNS(ONE) <= XPL_PG_ARGS &&
                  2 XPL_MEMORY_COLUMNS(ONE) <= XPL_PG_ARGS,
              "a statement has a parameter for each column");

static enum xpl_pg_rc insert_some(struct writing *w, const char *sql,
                                  const struct xpl_rows_set *set, size_t at, size_t n) {
    static const enum xpl_pg_type types[] = {
        [XPL_COLUMN_NAME] = XPL_PG_I64,        [XPL_COLUMN_NAME_NEEDED] = XPL_PG_I64,
        [XPL_COLUMN_ALLOCATOR] = XPL_PG_NAME,  [XPL_COLUMN_U64] = XPL_PG_U64,
        [XPL_COLUMN_REAL] = XPL_PG_REAL,       [XPL_COLUMN_FLAG] = XPL_PG_FLAG,
        [XPL_COLUMN_FLAG_NEEDED] = XPL_PG_FLAG};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct xpl_pg_arg v[XPL_PG_ARGS] = {xpl_pg_i64(w->profile), xpl_pg_u64(at)};
    for (size_t k = 0; k < set->n_columns; k++) {
        const struct xpl_rows_column *const c = &set->columns[k];
        const int64_t *const ids = is_name(c) ? list_ids(w, &arena, set, c, at, n) : NULL;
        if (is_name(c) && !ids) return XPL_PG_NOMEM;
        v[2 + k] = is_name(c) ? xpl_pg_array(XPL_PG_I64, ids, n, sizeof *ids)
                              : xpl_pg_array(types[c->type], xpl_rows_member(set, at, c), n,
                                             set->row_size);
    }
    return xpl_pg_query(w->s->w, sql, &(const struct xpl_pg_args){v, 2 + set->n_columns}, NULL);
}

static enum xpl_pg_rc insert_rows(struct writing *w, const char *table,
                                  const struct xpl_rows_set *set) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf sql = xpl_buf_of(4096);
    put_sql(&sql, table, set);
    enum xpl_pg_rc rc = sql.failed ? XPL_PG_NOMEM : XPL_PG_OK;
    for (size_t at = 0; rc == XPL_PG_OK && at < set->n; at += AT_ONCE)
        rc = insert_some(w, (const char *)sql.p, set, at,
                         set->n - at < AT_ONCE ? set->n - at : AT_ONCE);
    return rc;
}

static enum xpl_pg_rc insert_all(struct writing *w) {
    static const char *const tables[XPL_ROWS_TABLES] = {[XPL_ROWS_TABLE_OPS] = "op_rows",
                                                        [XPL_ROWS_TABLE_KERNELS] = "kernel_rows",
                                                        [XPL_ROWS_TABLE_STEPS] = "step_rows",
                                                        [XPL_ROWS_TABLE_MEMORY] = "memory_rows"};
    enum xpl_pg_rc rc = XPL_PG_OK;
    for (size_t t = 0; rc == XPL_PG_OK && t < XPL_ROWS_TABLES; t++)
        rc = insert_rows(w, tables[t], &w->sets[t]);
    return rc;
}

// ---- all rows of a profile ----

// The ops, kernels and steps of a profile, by which its size is estimated.
#define N_ROWS                                                                                     \
    "n_rows=(SELECT count(*) FROM op_rows WHERE profile_id=$1)"                                    \
    "+(SELECT count(*) FROM kernel_rows WHERE profile_id=$1)"                                      \
    "+(SELECT count(*) FROM step_rows WHERE profile_id=$1)"

static enum xpl_pg_rc mark_profile(struct writing *w, uint32_t version) {
    const struct xpl_pg_arg profile = xpl_pg_i64(w->profile), of = xpl_pg_i64(version),
                            now = xpl_pg_i64(xpl_pg_now_ms(w->s));
    if (w->rows->kind == XPL_ROWS_TIMES)
        return xpl_pg_query(
            w->s->w, "UPDATE profiles SET memory_version=$2, rows_at_ms=$3, " N_ROWS " WHERE id=$1",
            XPL_PG_WITH(profile, of, now), NULL);
    return xpl_pg_query(w->s->w,
                        "UPDATE profiles SET rows_version=$2, rows_at_ms=$3, device_type=$4,"
                        " device_cores=NULLIF($5::bigint, 0), " N_ROWS " WHERE id=$1",
                        XPL_PG_WITH(profile, of, now, xpl_pg_name(w->rows->device_type),
                                    xpl_pg_u64(w->rows->device_cores)),
                        NULL);
}

static enum xpl_pg_rc put_rows(struct writing *w, const struct xpl_profile_id *id,
                               uint32_t version) {
    const uint64_t bytes = w->n_rows * ROW_BYTES;
    enum xpl_pg_rc rc = xpl_pg_make_room(w->s, bytes);
    if (rc == XPL_PG_OK) rc = xpl_pg_exec(w->s->w, "SET LOCAL statement_timeout='60s'");
    if (rc == XPL_PG_OK) rc = xpl_pg_profile_row(w->s, id, &w->profile);
    if (rc == XPL_PG_OK) rc = xpl_pg_delete_rows_of(w->s, w->profile, w->rows->kind);
    if (rc == XPL_PG_OK) rc = add_names(w);
    if (rc == XPL_PG_OK) rc = insert_all(w);
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
    xpl_arena_init(&w.arena, (size_t)256 << 20);
    const enum xpl_pg_rc rc = put_rows(&w, profile, version);
    xpl_arena_fini(&w.arena);
    xpl_buf_fini(&w.clean);
    return xpl_pg_leave(s, own, rc, err);
}
