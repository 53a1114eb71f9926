// SPDX-License-Identifier: Apache-2.0
// One statement: prepared, run, written as JSON.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text/near.h"
#include "base/text/utf8.h"
#include "sql/guard/guard.h"
#include "sql/heap.h"
#include "sql/metrics.h"
#include "sql/position.h"
#include "sql/tables.h"
#include "sql/words.h"

const struct xpl_sql_limits xpl_sql_default_limits = {
    .rows = 10000, .bytes = 16 << 20, .memory = 512 << 20, .time_ms = 30000};

struct running {
    const struct xpl_sql_request *q;
    struct xpl_sql_guard guard;
    struct xpl_sql_tables tables;
    sqlite3 *db;
    sqlite3_stmt *st;
    struct xpl_buf *out;
    struct xpl_error *err;
};

// ---- failures ----

static xpl_status_t status_of(int rc) {
    switch (rc & 0xff) {
        case SQLITE_NOMEM:
        case SQLITE_FULL:
        case SQLITE_TOOBIG: return XPL_RESOURCE_EXHAUSTED;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR: return XPL_UNAVAILABLE;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB: return XPL_DATA_LOSS;
        default: return XPL_INVALID_ARGUMENT;
    }
}

// Plain words for SQLite's messages about its limits and about errors without details.
static const char *plain(const char *words) {
    static const struct {
        const char *theirs, *ours;
    } known[] = {
        {"parser stack overflow",
         "it nests too deep: too many parentheses, CASEs or SELECTs in each other"},
        {"too many columns in result set", "more than 200 columns, of the answer or of a part"},
        {"too many columns", "more than 200 columns"},
        {"Expression tree is too large (maximum depth 100)",
         "an expression is too large: more than 100 AND, OR, + or the like in a row (IN (...) "
         "takes long lists)"},
        {"too many terms in compound SELECT",
         "more than 50 SELECTs or rows of VALUES joined by UNION, EXCEPT and INTERSECT"},
        {"string or blob too big", "a value has more than 64 KiB"},
        {"statement too long", "the statement has more than 100,000 bytes"},
        {"datatype mismatch", "LIMIT and OFFSET take whole numbers"},
        {"SQL logic error", "SQLite gives no reason; a name or a text may be too long"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(words, known[i].theirs) == 0) return known[i].ours;
    return words;
}

// Fails when the statement does more than to read, or wants to; `at`: where SQLite says the error
// is.
static xpl_status_t check_allowed(const struct running *r, size_t at) {
    const xpl_str_t statement = r->q->statement;
    struct xpl_sql_refusal why;
    if (!xpl_sql_guard_explain(&r->guard, statement, &why)) return XPL_OK;
    if (why.byte < statement.len) at = xpl_sql_character_at(statement, why.byte);
    if (at)
        XPL_RETURN_ERROR(r->err, XPL_PERMISSION_DENIED,
                         "character %zu: a statement reads tables: %s is not allowed", at,
                         why.what);
    XPL_RETURN_ERROR(r->err, XPL_PERMISSION_DENIED, "a statement reads tables: %s is not allowed",
                     why.what);
}

// Fails after the statement's deadline or its cancellation: SQLite then reports that memory is
// short, or that it was interrupted.
static xpl_status_t check_time(const struct running *r) {
    if (r->guard.is_late)
        XPL_RETURN_ERROR(r->err, XPL_DEADLINE_EXCEEDED,
                         "the statement took more than %" PRIu64 " ms", r->q->limits.time_ms);
    if (r->guard.is_stopped && r->tables.err.code == XPL_OK)
        XPL_RETURN_ERROR(r->err, XPL_CANCELLED, "cancelled");
    return XPL_OK;
}

static xpl_status_t failed(struct running *r, int rc) {
    struct xpl_error *const err = r->err;
    char hint[XPL_NEAR_TEXT];
    XPL_TRY(check_time(r));
    const size_t at = xpl_sql_error_position(r->db, r->q->statement);
    if (r->tables.err.code != XPL_OK) {
        if (err) *err = r->tables.err;
        return r->tables.err.code;
    }
    if ((rc & 0xff) == SQLITE_NOMEM)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the statement needs more memory than %" PRIu64 " MiB",
                         r->q->limits.memory >> 20);
    XPL_TRY(check_allowed(r, at));
    const char *const what = sqlite3_errmsg(r->db);
    const xpl_str_t table = xpl_sql_missing_table(what);
    struct xpl_near near = xpl_near_begin(table.len ? table : xpl_sql_missing_column(what));
    if (table.len)
        xpl_sql_guard_near(&near);
    else if (near.given.len)
        xpl_sql_near_columns(r->q->statement, &near);
    if (at)
        XPL_RETURN_ERROR(err, status_of(rc), "character %zu: %s%s", at, plain(what),
                         xpl_near_text(&near, hint));
    XPL_RETURN_ERROR(err, status_of(rc), "%s", plain(what));
}

// ---- the statement ----

static xpl_status_t inspect(struct running *r, xpl_str_t select) {
    if (sqlite3_stmt_isexplain(r->st)) return XPL_OK; // reads nothing
    const int rc = xpl_sql_guard_inspect(&r->guard, r->db, select);
    return rc == SQLITE_OK ? check_allowed(r, 0) : failed(r, rc);
}

static xpl_status_t prepare(struct running *r) {
    const xpl_str_t s = r->q->statement;
    const char *tail = s.ptr;
    sqlite3_stmt *more = NULL;
    const size_t text = xpl_utf8_valid_length(s);
    if (text < s.len)
        XPL_RETURN_ERROR(r->err, XPL_INVALID_ARGUMENT, "character %zu is not UTF-8",
                         xpl_sql_character_at(s, text));
    const char *const nul = memchr(s.ptr ? s.ptr : "", 0, s.len);
    if (nul)
        XPL_RETURN_ERROR(r->err, XPL_INVALID_ARGUMENT, "character %zu: NUL is not allowed",
                         xpl_sql_character_at(s, (size_t)(nul - s.ptr)));
    int rc = s.len > INT32_MAX
                 ? SQLITE_TOOBIG
                 : sqlite3_prepare_v2(r->db, s.len ? s.ptr : "", (int)s.len, &r->st, &tail);
    if (rc != SQLITE_OK) return failed(r, rc);
    struct xpl_sql_word first = {0};
    (void)xpl_sql_word_next(s, &first);
    if (!r->st)
        XPL_RETURN_ERROR(r->err, XPL_INVALID_ARGUMENT, "character %zu: a statement is missing",
                         xpl_sql_character_at(s, first.at));
    rc = sqlite3_prepare_v2(r->db, tail, (int)(s.ptr + s.len - tail), &more, NULL);
    const bool second = more || rc != SQLITE_OK;
    if ((rc & 0xff) == SQLITE_NOMEM) return failed(r, rc);
    (void)sqlite3_finalize(more);
    if (second)
        XPL_RETURN_ERROR(r->err, XPL_INVALID_ARGUMENT,
                         "character %zu: one statement at a time, please",
                         xpl_sql_character_at(s, (size_t)(tail - s.ptr)));
    if (sqlite3_stmt_readonly(r->st) && sqlite3_column_count(r->st))
        return inspect(r, xpl_str_sub(s, 0, (size_t)(tail - s.ptr)));
    const size_t at = xpl_sql_character_at(s, first.at);
    XPL_TRY(check_allowed(r, at));
    XPL_RETURN_ERROR(r->err, XPL_PERMISSION_DENIED,
                     "character %zu: only SELECT statements are allowed", at);
}

// ---- the answer ----

static void put_hex(struct xpl_buf *out, const uint8_t *p, int n) {
    static const char digits[] = "0123456789abcdef";
    xpl_buf_putc(out, '"');
    for (int i = 0; i < n; i++) {
        xpl_buf_putc(out, digits[p[i] >> 4]);
        xpl_buf_putc(out, digits[p[i] & 15]);
    }
    xpl_buf_putc(out, '"');
}

static bool put_value(struct xpl_buf *out, sqlite3_stmt *st, int i) {
    switch (sqlite3_column_type(st, i)) {
        case SQLITE_INTEGER: xpl_buf_printf(out, "%lld", sqlite3_column_int64(st, i)); return true;
        case SQLITE_FLOAT: {
            const double v = sqlite3_column_double(st, i);
            if (isfinite(v))
                xpl_json_proto_double(out, v);
            else
                xpl_buf_str(out, XPL_STR("null"));
            return true;
        }
        case SQLITE_TEXT: {
            const char *const p = (const char *)sqlite3_column_text(st, i);
            if (p) xpl_json_str(out, (xpl_str_t){p, (size_t)sqlite3_column_bytes(st, i)}, false);
            return p != NULL;
        }
        case SQLITE_BLOB: {
            const uint8_t *const p = sqlite3_column_blob(st, i);
            put_hex(out, p, p ? sqlite3_column_bytes(st, i) : 0);
            return true;
        }
        default: xpl_buf_str(out, XPL_STR("null")); return true;
    }
}

// SQLite's result code.
static int put_row(struct running *r) {
    struct xpl_buf *const out = r->out;
    const int n = sqlite3_column_count(r->st);
    xpl_buf_putc(out, '[');
    for (int i = 0; i < n; i++) {
        if (xpl_exec_cancelled(&r->guard.exec)) return SQLITE_INTERRUPT;
        if (i) xpl_buf_putc(out, ',');
        if (!put_value(out, r->st, i)) return SQLITE_NOMEM;
    }
    xpl_buf_putc(out, ']');
    return SQLITE_ROW;
}

static void put_columns(struct xpl_buf *out, sqlite3_stmt *st) {
    xpl_buf_str(out, XPL_STR("{\"columns\":["));
    for (int i = 0; i < sqlite3_column_count(st); i++) {
        const char *const name = sqlite3_column_name(st, i);
        if (i) xpl_buf_putc(out, ',');
        xpl_json_str(out, xpl_str_from(name ? name : ""), false);
    }
    xpl_buf_str(out, XPL_STR("],\"rows\":["));
}

static xpl_status_t put_rows(struct running *r) {
    const size_t begin = r->out->n;
    uint64_t rows = 0;
    int rc;
    put_columns(r->out, r->st);
    while ((rc = sqlite3_step(r->st)) == SQLITE_ROW) {
        if (rows == r->q->limits.rows || r->out->n - begin > r->q->limits.bytes) break;
        if (rows++) xpl_buf_putc(r->out, ',');
        if ((rc = put_row(r)) != SQLITE_ROW) break;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return failed(r, rc);
    xpl_buf_printf(r->out, "],\"cut\":%s}", rc == SQLITE_ROW ? "true" : "false");
    if (r->out->failed) XPL_RETURN_OOM(r->err, "the answer");
    return XPL_OK;
}

static xpl_status_t run_guarded(struct running *r) {
    struct xpl_error why = {0};
    const xpl_status_t st = xpl_sql_guard_open(r->q, &r->db, &why);
    if (st != XPL_OK) {
        XPL_TRY(check_time(r));
        if (r->err) *r->err = why;
        return st;
    }
    int rc = xpl_sql_declare(r->db, &r->tables);
    if (rc == SQLITE_OK) rc = xpl_sql_metrics_declare(r->db, &r->tables);
    if (rc == SQLITE_OK) rc = xpl_sql_guard_restrict(&r->guard, r->db);
    if (rc != SQLITE_OK) return failed(r, rc);
    XPL_TRY(prepare(r));
    if (r->guard.reads_store && r->q->before_store) r->q->before_store(r->q->before_arg);
    return put_rows(r);
}

xpl_status_t xpl_sql_run(const struct xpl_sql_request *q, struct xpl_buf *out,
                         struct xpl_error *err) {
    struct running r = {.q = q, .out = out, .err = err};
    struct xpl_sql_request guarded = *q;
    if (q->source.n > XPL_SQL_MAX_PROFILES)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "more than %d profiles",
                         XPL_SQL_MAX_PROFILES);
    xpl_sql_guard_init(&r.guard, q);
    guarded.exec = &r.guard.exec;
    r.tables.q = &guarded;
    xpl_arena_budget_init(&r.tables.cursors, q->limit);
    xpl_sql_heap_begin(q->limits.memory, &r.guard.exec);
    const xpl_status_t st = run_guarded(&r);
    (void)sqlite3_finalize(r.st);
    (void)sqlite3_close(r.db);
    xpl_sql_guard_fini(&r.guard);
    (void)xpl_sql_heap_end();
    return st;
}
