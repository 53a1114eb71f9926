// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/text/near.h"
#include "base/text/regex.h"
#include "sql/guard/allowed.h"
#include "sql/guard/scratch.h"
#include "sql/metrics.h"
#include "sql/series.h"
#include "sql/views.h"
#include "sql/words.h"

enum {
    BUSY_MS = 500,
    OPS_BETWEEN_CHECKS = 100,
    STATEMENT_MAX = 100000,
    MOST_FUNCTIONS = 300,
    MOST_SLOW = 2000
};

// ---- time ----

static bool is_cancelled(struct xpl_exec *e) {
    struct xpl_sql_guard *const g = (struct xpl_sql_guard *)e;
    if (xpl_clock_ns() > g->deadline_ns) g->is_late = true;
    if (!g->is_stopped && xpl_exec_cancelled(g->inner)) g->is_stopped = true;
    return g->is_late || g->is_stopped;
}

static void run_inner(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    xpl_exec_run(((struct xpl_sql_guard *)e)->inner, n, fn, ctx);
}

void xpl_sql_guard_init(struct xpl_sql_guard *g, const struct xpl_sql_request *q) {
    const uint64_t ms = q->limits.time_ms < 86400000 ? q->limits.time_ms : 86400000;
    *g = (struct xpl_sql_guard){
        .exec = {.run = run_inner, .cancelled = is_cancelled, .width = q->exec->width},
        .inner = q->exec,
        .deadline_ns = xpl_clock_ns() + ms * 1000000};
}

static int on_progress(void *arg) {
    return is_cancelled(&((struct xpl_sql_guard *)arg)->exec);
}

// ---- access ----

// Tables that are declared before access is restricted.  SQLite has more, such as dbstat and
// pragma_*: these it cannot declare afterwards.
static const char *const kOwn[] = {"planes",           "lines",  "events",        "stats",
                                   "hlo_instructions", "memory", XPL_SQL_METRICS, "json_each",
                                   "json_tree"};

void xpl_sql_guard_near(struct xpl_near *near) {
    for (size_t i = 0; i < sizeof kOwn / sizeof *kOwn; i++)
        xpl_near_add(near, xpl_str_from(kOwn[i]));
}

static bool is_hidden(const struct xpl_sql_guard *g, const char *name, const char *column,
                      const char *database) {
    if (sqlite3_stricmp(name, "schedule_sessions") == 0)
        return column[0] && sqlite3_stricmp(column, "schedule_id") != 0 &&
               sqlite3_stricmp(column, "name") != 0;
    if (database && strcmp(database, "state") == 0) return !xpl_sql_shown_columns(name, database);
    // SQLite does not always say of which database a table is.
    for (unsigned i = 0; i < g->hidden.n; i++)
        if (sqlite3_stricmp(g->hidden.v[i].table, name) == 0) return true;
    return false;
}

static int refuse_access(struct xpl_sql_guard *g, const char *what, const char *name) {
    if (g->refused[0]) return SQLITE_DENY;
    (void)snprintf(g->refused_name, sizeof g->refused_name, "%.60s", name ? name : "");
    (void)snprintf(g->refused, sizeof g->refused, "%s%s%s", what, name ? " " : "", g->refused_name);
    return SQLITE_DENY;
}

static int authorize(void *arg, int action, const char *a, const char *b, const char *database,
                     const char *by) {
    struct xpl_sql_guard *const g = arg;
    (void)by;
    switch (action) {
        case SQLITE_SELECT:
        case SQLITE_RECURSIVE: return SQLITE_OK;
        case SQLITE_READ: // the names of common tables come here, too
            if (strncmp(a, "sqlite_", 7) == 0 || is_hidden(g, a, b, database))
                return refuse_access(g, "reading the table", a);
            // Tables of modules belong to the database, as far as SQLite says.
            if (database && strcmp(database, "main") == 0 && !xpl_sql_is_declared(a))
                g->reads_store = true;
            return SQLITE_OK;
        case SQLITE_FUNCTION:
            // SQLite looks at the clock where it jumps: not between the calls of one row.
            if (++g->functions > MOST_FUNCTIONS)
                return refuse_access(g, "more than 300 calls of functions", NULL);
            return xpl_sql_allows_function(b) ? SQLITE_OK : refuse_access(g, "the function", b);
        default: return refuse_access(g, "anything but SELECT", NULL);
    }
}

// ---- the refused access ----

// Tables of SQLite's own modules, which it declares by something other than a SELECT, without their
// name.
static bool is_of_module(const struct xpl_sql_word *w) {
    static const char *const names[] = {"dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode",
                                        "tables_used"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xpl_sql_word_is(w, names[i])) return true;
    return w->text.len > 7 && strncasecmp(w->text.ptr, "pragma_", 7) == 0;
}

static void find_module(xpl_str_t statement, struct xpl_sql_refusal *ret) {
    struct xpl_sql_word w = {0};
    while (xpl_sql_word_next(statement, &w)) {
        if (!is_of_module(&w)) continue;
        ret->byte = w.at;
        (void)snprintf(ret->what, sizeof ret->what, "reading the table %.*s",
                       XPL_STR_FMT(xpl_str_sub(w.text, 0, 60)));
        return;
    }
}

// SQLite says "master" for a table that it also calls "schema".
static size_t find_table(xpl_str_t statement, xpl_str_t name) {
    const xpl_str_t same = xpl_str_eq(name, XPL_STR("sqlite_master")) ? XPL_STR("sqlite_schema")
                           : xpl_str_eq(name, XPL_STR("sqlite_temp_master"))
                               ? XPL_STR("sqlite_temp_schema")
                               : XPL_STR("");
    const size_t at = xpl_sql_word_find(statement, name, XPL_SQL_TABLE);
    return at < statement.len ? at : xpl_sql_word_find(statement, same, XPL_SQL_TABLE);
}

bool xpl_sql_guard_explain(const struct xpl_sql_guard *g, xpl_str_t statement,
                           struct xpl_sql_refusal *ret) {
    static const char *const writing[] = {"ALTER",    "ANALYZE",   "ATTACH",  "BEGIN",   "COMMIT",
                                          "CREATE",   "DELETE",    "DETACH",  "DROP",    "END",
                                          "INSERT",   "PRAGMA",    "REINDEX", "RELEASE", "REPLACE",
                                          "ROLLBACK", "SAVEPOINT", "UPDATE",  "VACUUM"};
    struct xpl_sql_word verb;
    const bool any = xpl_sql_verb(statement, &verb);
    *ret = (struct xpl_sql_refusal){.byte = statement.len};
    for (size_t i = 0; any && i < sizeof writing / sizeof *writing; i++) {
        if (!xpl_sql_word_is(&verb, writing[i])) continue;
        ret->byte = verb.at;
        (void)snprintf(ret->what, sizeof ret->what, "%s", writing[i]);
        return true;
    }
    (void)snprintf(ret->what, sizeof ret->what, "%s", g->refused);
    if (g->refused_name[0])
        ret->byte = find_table(statement, xpl_str_from(g->refused_name));
    else if (g->refused[0])
        find_module(statement, ret);
    return g->refused[0];
}

// ---- regexp ----

static void free_regex(void *r) {
    xpl_regex_free(r);
}

// X REGEXP Y is regexp(Y, X).
static void regexp(sqlite3_context *x, int n, sqlite3_value **v) {
    struct xpl_error err = {0};
    struct xpl_regex *made = NULL, *r = sqlite3_get_auxdata(x, 0);
    struct xpl_exec *const exec = sqlite3_user_data(x);
    bool found = false;
    (void)n;
    if (is_cancelled(exec)) { // compiling an expression may take as long as thousands of steps
        sqlite3_result_error_code(x, SQLITE_INTERRUPT);
        return;
    }
    if (sqlite3_value_type(v[0]) == SQLITE_NULL || sqlite3_value_type(v[1]) == SQLITE_NULL) return;
    const char *const pattern = (const char *)sqlite3_value_text(v[0]);
    const char *const text = (const char *)sqlite3_value_text(v[1]);
    if (!pattern || !text) {
        sqlite3_result_error_nomem(x);
        return;
    }
    xpl_status_t st = XPL_OK;
    if (!r) {
        st = xpl_regex_new((xpl_str_t){pattern, (size_t)sqlite3_value_bytes(v[0])}, "regexp", exec,
                           &made, &err);
        r = made;
    }
    if (st == XPL_OK)
        st =
            xpl_regex_search(r, (xpl_str_t){text, (size_t)sqlite3_value_bytes(v[1])}, &found, &err);
    if (st == XPL_OK)
        sqlite3_result_int(x, found);
    else if (st == XPL_CANCELLED)
        sqlite3_result_error_code(x, SQLITE_INTERRUPT);
    else if (st == XPL_RESOURCE_EXHAUSTED)
        sqlite3_result_error_nomem(x);
    else
        sqlite3_result_error(x, err.msg, -1);
    if (made) sqlite3_set_auxdata(x, 0, made, free_regex); // may free it at once
}

// ---- the connection ----

static void set_limits(sqlite3 *db) {
    static const struct {
        int which, value;
    } limits[] = {{SQLITE_LIMIT_LENGTH, XPL_SQL_LENGTH},
                  {SQLITE_LIMIT_SQL_LENGTH, STATEMENT_MAX},
                  {SQLITE_LIMIT_COLUMN, 200},
                  {SQLITE_LIMIT_EXPR_DEPTH, 100},
                  {SQLITE_LIMIT_COMPOUND_SELECT, 50},
                  {SQLITE_LIMIT_VDBE_OP, 250000},
                  {SQLITE_LIMIT_FUNCTION_ARG, 32},
                  {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200},
                  {SQLITE_LIMIT_VARIABLE_NUMBER, 10},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                  {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        (void)sqlite3_limit(db, limits[i].which, limits[i].value);
}

static int configure(sqlite3 *db) {
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return sqlite3_exec(db, "PRAGMA temp_store=FILE", NULL, NULL, NULL); // of scratch.c
}

xpl_status_t xpl_sql_guard_open(const struct xpl_sql_request *q, sqlite3 **ret,
                                struct xpl_error *err) {
    // SQLite opens attached databases in the same way.
    const char *const files = xpl_sql_scratch_name();
    int rc = files ? sqlite3_open_v2(q->store ? q->store : ":memory:", ret,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, files)
                   : SQLITE_NOMEM;
    if (rc == SQLITE_OK) rc = configure(*ret);
    if (rc == SQLITE_OK) rc = xpl_sql_views_declare(*ret, q->statement, q->store, q->state);
    if (rc == SQLITE_OK) {
        set_limits(*ret);
        return XPL_OK;
    }
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "SQL");
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the store cannot be read: %s", sqlite3_errstr(rc));
}

// SQLite declares a table when it first comes up, by a statement that would be refused.
static int declare_own(sqlite3 *db) {
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof kOwn / sizeof *kOwn && rc == SQLITE_OK; i++) {
        char text[64];
        sqlite3_stmt *st = NULL;
        (void)snprintf(text, sizeof text, "SELECT 1 FROM %s", kOwn[i]);
        rc = sqlite3_prepare_v2(db, text, -1, &st, NULL);
        (void)sqlite3_finalize(st);
    }
    return rc;
}

int xpl_sql_guard_restrict(struct xpl_sql_guard *g, sqlite3 *db) {
    int rc = sqlite3_exec(db, "PRAGMA query_only=1", NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = declare_own(db);
    if (rc == SQLITE_OK) rc = xpl_sql_trees_list(&g->hidden, db, xpl_sql_shown_columns);
    if (rc == SQLITE_OK) rc = xpl_sql_series_declare(db, &g->exec);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(db, "regexp", 2,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, g,
                                     regexp, NULL, NULL);
    if (rc == SQLITE_OK) rc = xpl_sql_format_declare(&g->format, db);
    g->texts.exec = &g->exec;
    if (rc == SQLITE_OK) rc = xpl_sql_texts_declare(&g->texts, db);
    if (rc != SQLITE_OK) return rc;
    sqlite3_progress_handler(db, OPS_BETWEEN_CHECKS, on_progress, g);
    return sqlite3_set_authorizer(db, authorize, g);
}

int xpl_sql_guard_inspect(struct xpl_sql_guard *g, sqlite3 *db, xpl_str_t select) {
    struct xpl_sql_program program;
    g->functions = 0; // they are counted again
    const int rc = xpl_sql_program_read(&g->hidden, db, select, &program);
    if (program.read)
        (void)refuse_access(g, "reading the table", program.read->table);
    else if (program.slow > MOST_SLOW)
        (void)refuse_access(g, "more than 2000 operations on values", NULL);
    return rc;
}

void xpl_sql_guard_fini(struct xpl_sql_guard *g) {
    xpl_sql_format_fini(&g->format);
}
