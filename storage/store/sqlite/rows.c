// SPDX-License-Identifier: Apache-2.0
// Rows for people: ops, kernels, steps and memory of a profile; sessions and hosts of the
// catalogue.
#include "storage/store/rows.h"
#include "base/clock.h"
#include "base/text/utf8.h"

#include <math.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "storage/hash.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/path.h"
#include "storage/store/columns.h"
#include "storage/store/sqlite/impl.h"

enum { MAX_TEXT = 4096, ROW_BYTES = 192 };

// --- Names ---

// Texts met in one call, so that each is looked up in the database once.
struct names {
    struct xpl_sqlite_store *s;
    struct xpl_arena arena;
    struct xpl_map ids;
    struct xpl_buf clean;
};

static int name_in_db(struct names *n, xpl_str_t text, int64_t *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(n->s->w, XPL_SQL_NAME_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_text(st, 1, text);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, ret);
    if (rc != SQLITE_OK || *ret >= 0) return rc;
    st = xpl_db_stmt(n->s->w, XPL_SQL_NAME_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_text(st, 1, text);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    if (rc == SQLITE_OK) *ret = sqlite3_last_insert_rowid(n->s->w->h);
    return rc;
}

// The id of `text`; -1 for "" unless it is `needed`.
static int name_id(struct names *n, xpl_str_t text, bool needed, int64_t *ret) {
    *ret = -1;
    if (text.len == 0 && !needed) return SQLITE_OK;
    n->clean.n = 0;
    xpl_utf8_clean(&n->clean, text, MAX_TEXT);
    if (n->clean.failed) return SQLITE_NOMEM;
    const xpl_bytes_t bytes = {n->clean.p, n->clean.n};
    const uint64_t seed = xpl_hash_seed();
    uint64_t *id = xpl_map_put(&n->arena, &n->ids, xpl_digest64(bytes, seed),
                               xpl_digest64(bytes, ~seed), NULL);
    if (!id) return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    int64_t found = (int64_t)*id - 1; // 0 is new
    if (found < 0) rc = name_in_db(n, (xpl_str_t){(const char *)bytes.ptr, bytes.len}, &found);
    if (rc == SQLITE_OK) *id = (uint64_t)found + 1, *ret = found;
    return rc;
}

// --- Ops, kernels, steps, memory ---

static int bind_name(struct names *n, sqlite3_stmt *st, int at, xpl_str_t text, bool needed) {
    int64_t id;
    const int rc = name_id(n, text, needed, &id);
    if (rc != SQLITE_OK) return rc;
    return id < 0 ? sqlite3_bind_null(st, at) : sqlite3_bind_int64(st, at, id);
}

static int bind_column(struct names *n, sqlite3_stmt *st, int at, const struct xpl_rows_column *c,
                       const void *member) {
    switch (c->type) {
        case XPL_COLUMN_NAME: return bind_name(n, st, at, *(const xpl_str_t *)member, false);
        case XPL_COLUMN_NAME_NEEDED:
        case XPL_COLUMN_ALLOCATOR: return bind_name(n, st, at, *(const xpl_str_t *)member, true);
        case XPL_COLUMN_U64: return xpl_db_bind_u64(st, at, *(const uint64_t *)member);
        case XPL_COLUMN_REAL:
            return isfinite(*(const double *)member)
                       ? sqlite3_bind_double(st, at, *(const double *)member)
                       : sqlite3_bind_null(st, at);
        case XPL_COLUMN_FLAG:
        case XPL_COLUMN_FLAG_NEEDED: return sqlite3_bind_int(st, at, *(const bool *)member);
    }
    return SQLITE_MISUSE;
}

static int add_row(struct names *n, enum xpl_sql sql, int64_t profile,
                   const struct xpl_rows_set *set, size_t i) {
    int rc = SQLITE_OK;
    sqlite3_stmt *const st = xpl_db_stmt(n->s->w, sql, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, (int64_t)i);
    for (size_t k = 0; rc == SQLITE_OK && k < set->n_columns; k++) {
        const struct xpl_rows_column *const c = &set->columns[k];
        rc = bind_column(n, st, (int)k + 3, c, xpl_rows_member(set, i, c));
    }
    return rc ? rc : xpl_db_run(st);
}

static int add_rows(struct names *n, int64_t profile, const struct xpl_rows_set *sets) {
    static const enum xpl_sql add[XPL_ROWS_TABLES] = {
        [XPL_ROWS_TABLE_OPS] = XPL_SQL_OP_ADD,
        [XPL_ROWS_TABLE_KERNELS] = XPL_SQL_KERNEL_ADD,
        [XPL_ROWS_TABLE_STEPS] = XPL_SQL_STEP_ADD,
        [XPL_ROWS_TABLE_MEMORY] = XPL_SQL_MEMORY_ADD,
    };
    int rc = SQLITE_OK;
    for (size_t t = 0; t < XPL_ROWS_TABLES; t++)
        for (size_t i = 0; rc == SQLITE_OK && i < sets[t].n; i++)
            rc = add_row(n, add[t], profile, &sets[t], i);
    return rc;
}

static int mark_times(struct xpl_sqlite_store *s, int64_t profile, uint32_t version) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_MEMORY, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : sqlite3_bind_int64(st, 2, version);
    rc = rc ? rc : sqlite3_bind_int64(st, 3, xpl_unix_ms());
    return rc ? rc : xpl_db_run(st);
}

static int mark_profile(struct xpl_sqlite_store *s, int64_t profile, uint32_t version,
                        const struct xpl_rows *rows, struct names *n) {
    if (rows->kind == XPL_ROWS_TIMES) return mark_times(s, profile, version);
    n->clean.n = 0;
    xpl_utf8_clean(&n->clean, rows->device_type, MAX_TEXT);
    if (n->clean.failed) return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_ROWS, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, profile);
    rc = rc ? rc : xpl_db_bind_text(st, 2, (xpl_str_t){(const char *)n->clean.p, n->clean.n});
    rc = rc ? rc : xpl_db_bind_u64(st, 3, rows->device_cores);
    rc = rc ? rc : sqlite3_bind_int64(st, 4, version);
    rc = rc ? rc : sqlite3_bind_int64(st, 5, xpl_unix_ms());
    rc = rc ? rc : xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static int put_rows(struct xpl_sqlite_store *s, const struct xpl_profile_id *id, uint32_t version,
                    const struct xpl_rows *rows, struct names *n) {
    struct xpl_rows_set sets[XPL_ROWS_TABLES];
    const size_t n_rows = xpl_rows_sets(rows, sets);
    int64_t profile = 0;
    int rc = xpl_sqlite_profile_row(s, id, &profile);
    rc = rc ? rc : xpl_sqlite_delete_rows_of(s, profile, rows->kind);
    rc = rc ? rc : xpl_sqlite_make_room(s, n_rows * ROW_BYTES);
    rc = rc ? rc : add_rows(n, profile, sets);
    return rc ? rc : mark_profile(s, profile, version, rows, n);
}

xpl_status_t xpl_sqlite_put_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                                 uint32_t version, const struct xpl_rows *rows,
                                 struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool own;
    XPL_TRY(xpl_tx_enter(&s->tx, &own, err));
    struct names n = {.s = s};
    xpl_arena_init(&n.arena, (size_t)256 << 20);
    xpl_buf_init(&n.clean, MAX_TEXT);
    const int rc = put_rows(s, profile, version, rows, &n);
    xpl_buf_fini(&n.clean);
    xpl_arena_fini(&n.arena);
    return xpl_tx_leave(&s->tx, own, rc, err);
}
