// SPDX-License-Identifier: Apache-2.0
// Metrics of sessions; each session's summary is loaded when a statement reaches it.
#include "sql/metrics.h"

#include "analysis/compare/series.h"
#include "sql/heap.h"
#include "sql/vtab.h"

enum column { SESSION_NAME, MTIME, CAPTURED, METRIC, UNIT, METRIC_VALUE, BETTER };
enum { BY_SESSION = 1, BY_METRIC = 2 }; // plans: the constraints that a scan uses

struct vtab { // SQLite's first
    sqlite3_vtab base;
    struct xpl_sql_tables *run;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct xpl_arena asked;    // of the filter's texts
    xpl_str_t session, metric; // the requested ones; NULL pointers: all
    struct xpl_arena arena;    // of the current session
    size_t at;                 // the session
    struct xpl_series_metric *v;
    size_t n, row;
    sqlite3_int64 rows;
};

static struct xpl_sql_tables *run_of(const struct cursor *c) {
    return ((const struct vtab *)c->base.pVtab)->run;
}

static const struct xpl_sql_request *request_of(const struct cursor *c) {
    return run_of(c)->q;
}

// ---- plans ----

static int best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
    int n = 0;
    (void)v;
    info->estimatedCost = 1e15; // all sessions may have to be converted: any other plan is better
    info->estimatedRows = 1000000;
    for (int pass = 0; pass < 2; pass++) { // the session's argument comes first
        const int column = pass ? METRIC : SESSION_NAME;
        for (int i = 0; i < info->nConstraint; i++) {
            if (info->aConstraint[i].iColumn != column || !info->aConstraint[i].usable ||
                info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ ||
                sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
                continue;
            info->aConstraintUsage[i].argvIndex = ++n;
            info->idxNum |= pass ? BY_METRIC : BY_SESSION;
            info->estimatedCost /= pass ? 10 : 1e12;
            info->estimatedRows /= pass ? 100 : 1000;
            break;
        }
    }
    return SQLITE_OK;
}

// ---- sessions ----

// Whether the error concerns only this session's summary, rather than time or memory of the
// statement.
static bool is_of_session(xpl_status_t st) {
    return st == XPL_NOT_FOUND || st == XPL_INVALID_ARGUMENT || st == XPL_DATA_LOSS ||
           st == XPL_FAILED_PRECONDITION || st == XPL_ABORTED || st == XPL_UNIMPLEMENTED;
}

static xpl_status_t list_metrics(struct cursor *c, const struct xpl_run_summary *run,
                                 struct xpl_error *err) {
    if (!c->metric.ptr) return xpl_series_all(run, &c->arena, &c->v, &c->n, err);
    struct xpl_series_value value;
    if (!xpl_series_get(run, c->metric, &value)) return XPL_OK;
    c->v = xpl_arena_alloc(&c->arena, sizeof *c->v);
    if (!c->v) XPL_RETURN_OOM(err, "metrics");
    *c->v = (struct xpl_series_metric){c->metric, value};
    c->n = 1;
    return XPL_OK;
}

static xpl_status_t read_session(struct cursor *c, struct xpl_error *err) {
    const struct xpl_sql_request *const q = request_of(c);
    const struct xpl_run_summary *run = NULL;
    if (xpl_exec_cancelled(q->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    xpl_arena_fini(&c->arena);
    xpl_arena_init_part(&c->arena, &run_of(c)->cursors);
    c->v = NULL;
    c->n = c->row = 0;
    // SQLite's allocations in the callback do not count for the statement.
    const int64_t budget = xpl_sql_heap_pause();
    const xpl_status_t st = q->runs.summarize(q->runs.arg, c->at, q->exec, &c->arena, &run, err);
    xpl_sql_heap_resume(budget);
    return st == XPL_OK ? list_metrics(c, run, err) : st;
}

// Goes to the first metric of the next session that has one, from c->at on.
static int enter_session(struct cursor *c) {
    const struct xpl_sql_request *const q = request_of(c);
    struct xpl_error *const all = &run_of(c)->err;
    for (; c->at < q->runs.n; c->at++) {
        struct xpl_error err = {0};
        if (c->session.ptr && !xpl_str_eq(c->session, q->runs.v[c->at].name)) continue;
        const xpl_status_t st = read_session(c, &err);
        if (st == XPL_OK && c->n) return SQLITE_OK;
        if (st == XPL_OK || is_of_session(st)) continue;
        *all = err;
        return xpl_sql_cursor_fail(&c->base, st, all);
    }
    return SQLITE_OK;
}

// ---- rows ----

// A number is equal to several texts: SQLite compares it by itself.  *ret_none: nothing is equal.
static bool keep_text(struct cursor *c, sqlite3_value *v, xpl_str_t *ret, bool *ret_none) {
    const int type = sqlite3_value_type(v);
    *ret_none |= type == SQLITE_NULL || type == SQLITE_BLOB;
    if (type != SQLITE_TEXT) return true;
    const char *const p = (const char *)sqlite3_value_text(v);
    return p && xpl_arena_str(&c->asked, (xpl_str_t){p, (size_t)sqlite3_value_bytes(v)}, ret);
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int n, sqlite3_value **v) {
    struct cursor *const c = (struct cursor *)base;
    int at = 0;
    bool none = false;
    (void)text;
    (void)n;
    xpl_arena_fini(&c->asked);
    xpl_arena_init_part(&c->asked, &run_of(c)->cursors);
    c->session = c->metric = (xpl_str_t){0};
    c->at = 0;
    c->rows = 0;
    if (plan & BY_SESSION && !keep_text(c, v[at++], &c->session, &none)) return SQLITE_NOMEM;
    if (plan & BY_METRIC && !keep_text(c, v[at], &c->metric, &none)) return SQLITE_NOMEM;
    if (none) c->at = request_of(c)->runs.n;
    return enter_session(c);
}

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *const c = (struct cursor *)base;
    c->rows++;
    if (++c->row < c->n) return SQLITE_OK;
    c->at++;
    return enter_session(c);
}

static int is_end(sqlite3_vtab_cursor *base) {
    const struct cursor *const c = (const struct cursor *)base;
    return c->at >= request_of(c)->runs.n;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *x, int i) {
    const struct cursor *const c = (const struct cursor *)base;
    const struct xpl_sql_session *const s = &request_of(c)->runs.v[c->at];
    const struct xpl_series_value *const v = &c->v[c->row].value;
    switch ((enum column)i) {
        case SESSION_NAME: xpl_sql_put_text(x, s->name); break;
        case MTIME: sqlite3_result_int64(x, s->mtime_ns); break;
        case CAPTURED: sqlite3_result_int64(x, s->captured_ns); break;
        case METRIC: xpl_sql_put_text(x, c->v[c->row].name); break;
        case UNIT: sqlite3_result_text(x, xpl_series_units[v->kind], -1, SQLITE_STATIC); break;
        case METRIC_VALUE: sqlite3_result_double(x, v->v); break;
        case BETTER:
            sqlite3_result_text(x, xpl_series_better(v->kind, v->more_is_better), -1,
                                SQLITE_STATIC);
            break;
    }
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret) {
    *ret = ((const struct cursor *)base)->rows;
    return SQLITE_OK;
}

// ---- life ----

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                   char **why) {
    (void)argc, (void)argv, (void)why;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(session TEXT, session_mtime_ns INTEGER,"
                                      " session_captured_ns INTEGER, metric TEXT, unit TEXT,"
                                      " value REAL, better TEXT)");
    if (rc == SQLITE_OK) rc = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    if (rc != SQLITE_OK) return rc;
    struct vtab *const v = sqlite3_malloc(sizeof *v);
    if (!v) return SQLITE_NOMEM;
    *v = (struct vtab){.run = aux};
    *ret = &v->base;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **ret) {
    (void)v;
    return xpl_sql_cursor_new(sizeof(struct cursor), ret);
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    struct cursor *const c = (struct cursor *)base;
    xpl_arena_fini(&c->asked);
    xpl_arena_fini(&c->arena);
    sqlite3_free(c);
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xCreate = connect,
    .xConnect = connect,
    .xBestIndex = best_index,
    .xDisconnect = xpl_sql_vtab_free,
    .xDestroy = xpl_sql_vtab_free,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = is_end,
    .xColumn = column,
    .xRowid = rowid,
};

int xpl_sql_metrics_declare(sqlite3 *db, struct xpl_sql_tables *run) {
    const int rc = sqlite3_create_module(db, XPL_SQL_METRICS, &module, run);
    if (rc != SQLITE_OK) return rc;
    // As a table in the main database it would belong to the store: a statement would read the
    // store as of its begin, while the summaries that it creates are written there, and the log
    // would grow by all of them.
    return sqlite3_exec(db, "CREATE VIRTUAL TABLE temp." XPL_SQL_METRICS " USING " XPL_SQL_METRICS,
                        NULL, NULL, NULL);
}
