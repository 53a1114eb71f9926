// SPDX-License-Identifier: Apache-2.0
// Statements on readers' connections, which a pooler may have: each is a separate transaction.
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

// ---- rows ----

static bool read_value(struct xpl_pg_store *s, xpl_bytes_t v, enum xpl_pg_type type,
                       struct xpl_arena *arena, void *to) {
    int64_t number = 0; // also for NULL
    if (v.len == sizeof number) memcpy(&number, v.ptr, sizeof number);
    number = (int64_t)be64toh((uint64_t)number);
    switch (type) {
        case XPL_PG_TEXT:
        case XPL_PG_BYTES: // the same struct
            return xpl_arena_str(arena, (xpl_str_t){(const char *)v.ptr, v.len}, to);
        case XPL_PG_MS: number = xpl_pg_our_ms(s, number); break;
        case XPL_PG_INT: *(int *)to = (int)number; return true;
        case XPL_PG_BOOL: *(bool *)to = number != 0; return true;
        case XPL_PG_I64: break;
        case XPL_PG_NAME:
        case XPL_PG_U32:
        case XPL_PG_U64:
        case XPL_PG_FLAG:
        case XPL_PG_REAL:
        case XPL_PG_ID: assert(false); return false; // only parameters
    }
    memcpy(to, &number, sizeof number);
    return true;
}

bool xpl_pg_read_row(struct xpl_pg_store *s, const PGresult *r, int row, int column,
                     const struct xpl_pg_shape *shape, struct xpl_arena *arena, void *to) {
    bool ok = true;
    memset(to, 0, shape->size);
    for (size_t k = 0; ok && k < shape->n; k++, column++) {
        const xpl_bytes_t v = {(const uint8_t *)s->pq->getvalue(r, row, column),
                               (size_t)s->pq->getlength(r, row, column)};
        ok = read_value(s, v, shape->members[k].type, arena, (char *)to + shape->members[k].at);
    }
    return ok;
}

struct reading {
    struct xpl_pg_store *s;
    const struct xpl_pg_into *to;
};

static enum xpl_pg_rc read_rows(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    const struct reading *const q = arg;
    const struct xpl_pg_into *const to = q->to;
    const int n = c->pq->ntuples(r), most = to->n ? n : n > 0;
    char *const rows =
        to->n ? xpl_arena_array(to->arena, (size_t)n + 1, to->shape->size) : (char *)to->ret;
    bool ok = rows != NULL;
    for (int i = 0; ok && i < most; i++)
        ok = xpl_pg_read_row(q->s, r, i, 0, to->shape, to->arena,
                             rows + (size_t)i * to->shape->size);
    if (!ok) return XPL_PG_NOMEM;
    if (!to->n) return XPL_PG_OK;
    memcpy(to->ret, &rows, sizeof rows);
    *to->n = (size_t)n;
    return XPL_PG_OK;
}

// ---- statements ----

static enum xpl_pg_rc query_rows(struct xpl_pg_conn *c, const char *sql,
                                 const struct xpl_pg_args *a, xpl_pg_rows_fn *read, void *arg) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc = xpl_pg_query(c, sql, a, &r);
    if (rc == XPL_PG_OK && read) rc = read(c, r, arg);
    if (r) c->pq->clear(r);
    return rc;
}

// The commit follows the rows: the server rolls back if this process stopped waiting for them.
static enum xpl_pg_rc query_in_tx(struct xpl_pg_conn *c, const char *begin, const char *sql,
                                  const struct xpl_pg_args *a) {
    enum xpl_pg_rc rc = xpl_pg_exec(c, begin);
    if (rc == XPL_PG_OK) rc = query_rows(c, sql, a, NULL, NULL);
    if (rc == XPL_PG_OK) return xpl_pg_exec(c, "COMMIT");
    return rc == XPL_PG_AWAY || xpl_pg_exec(c, "ROLLBACK") == XPL_PG_OK ? rc : XPL_PG_AWAY;
}

static xpl_status_t query(struct xpl_pg_store *s, const char *begin, const char *sql,
                          const struct xpl_pg_args *a, xpl_pg_rows_fn *read, void *arg,
                          struct xpl_error *err) {
    if (atomic_load(&s->role) != XPL_STORE_WRITER)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not written by this process now",
                         s->name);
    struct xpl_pg_conn *const c = xpl_pg_reader(s);
    if (!c) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: no connection", s->name);
    const enum xpl_pg_rc rc =
        begin ? query_in_tx(c, begin, sql, a) : query_rows(c, sql, a, read, arg);
    const xpl_status_t st = rc == XPL_PG_OK ? XPL_OK : xpl_pg_fail(s, rc, c->why, err);
    xpl_pg_reader_done(s, c, rc);
    return st;
}

xpl_status_t xpl_pg_read(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                         xpl_pg_rows_fn *read, void *arg, struct xpl_error *err) {
    return query(s, NULL, sql, a, read, arg, err);
}

xpl_status_t xpl_pg_change(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                           struct xpl_error *err) {
    return query(s, NULL, sql, a, NULL, NULL, err);
}

xpl_status_t xpl_pg_change_in_tx(struct xpl_pg_store *s, const char *begin, const char *sql,
                                 const struct xpl_pg_args *a, struct xpl_error *err) {
    return query(s, begin, sql, a, NULL, NULL, err);
}

xpl_status_t xpl_pg_select(struct xpl_pg_store *s, const char *sql, const struct xpl_pg_args *a,
                           const struct xpl_pg_into *to, struct xpl_error *err) {
    struct reading q = {s, to};
    return query(s, NULL, sql, a, read_rows, &q, err);
}

xpl_status_t xpl_pg_select_number(struct xpl_pg_store *s, const char *sql,
                                  const struct xpl_pg_args *a, int64_t *ret,
                                  struct xpl_error *err) {
    static const struct xpl_pg_member number = {XPL_PG_I64, 0};
    static const struct xpl_pg_shape shape = {&number, 1, sizeof(int64_t)};
    return xpl_pg_select(s, sql, a, XPL_PG_INTO(&shape, NULL, ret, NULL), err);
}
