// SPDX-License-Identifier: Apache-2.0
// Virtual tables over a scan.  A table is a row of columns, which decide the constraints that
// SQLite may push down into the scan.
#include "sql/metrics.h"

#include <string.h>

#include "base/text/near.h"
#include "sql/vtab.h"

// ---- the tables ----

static const struct column_row {
    const char *name, *type;
} columns[] = {
    [SESSION] = {"session", "TEXT"},
    [HOST] = {"host", "TEXT"},
    [PLANE] = {"plane", "TEXT"},
    [LINE] = {"line", "TEXT"},
    [NAME] = {"name", "TEXT"},
    [START] = {"start_ps", "INTEGER"},
    [DURATION] = {"duration_ps", "INTEGER"},
    [END] = {"end_ps", "INTEGER"},
    [ID] = {"event_id", "INTEGER"},
    [EVENT] = {"event", "TEXT"},
    [VALUE] = {"value", ""},
    [INHERITED] = {"inherited", "INTEGER"},
    [LINES] = {"lines", "INTEGER"},
    [EVENTS] = {"events", "INTEGER"},
    [PLANE_ID] = {"plane_id", "INTEGER"},
    [LINE_ID] = {"line_id", "INTEGER"},
    [DISPLAY] = {"display_name", "TEXT"},
    [TIMESTAMP] = {"timestamp_ns", "INTEGER"},
    [MODULE] = {"module", "TEXT"},
    [OPCODE] = {"opcode", "TEXT"},
    [SESSION_MTIME] = {"session_mtime_ns", "INTEGER"},
    [SESSION_CAPTURED] = {"session_captured_ns", "INTEGER"},
    [PROGRAM_ID] = {"program_id", "INTEGER"},
    [COMPUTATION] = {"computation", "TEXT"},
    [SHAPE] = {"shape", "TEXT"},
    [CATEGORY] = {"category", "TEXT"},
    [FRAMEWORK_OP] = {"framework_op", "TEXT"},
    [SOURCE] = {"source", "TEXT"},
    [OCCURRENCES] = {"occurrences", "INTEGER"},
    [TIME] = {"time_ps", "INTEGER"},
    [SELF_TIME] = {"self_time_ps", "INTEGER"},
    [FLOPS] = {"flops", "INTEGER"},
    [BYTES] = {"bytes_accessed", "INTEGER"},
    [GFLOPS_RATE] = {"gflops_per_s", "REAL"},
    [GIB_RATE] = {"gib_per_s", "REAL"},
    [INTENSITY] = {"flops_per_byte", "REAL"},
    [PEAK] = {"peak_bytes", "INTEGER"},
    [CAPACITY] = {"capacity_bytes", "INTEGER"},
};

enum { MOST_COLUMNS = 24 };
static const struct table {
    const char *name;
    enum xpl_sql_level level;
    int n;
    enum xpl_sql_column columns[MOST_COLUMNS];
} tables[] = {
    {"planes", XPL_SQL_PLANES, 5, {SESSION, HOST, PLANE, PLANE_ID, LINES}},
    {"lines", XPL_SQL_LINES, 8, {SESSION, HOST, PLANE, LINE, LINE_ID, DISPLAY, TIMESTAMP, EVENTS}},
    {"events", XPL_SQL_EVENTS, 9, {SESSION, HOST, PLANE, LINE, NAME, START, DURATION, END, ID}},
    {"stats", XPL_SQL_STATS, 9, {SESSION, HOST, PLANE, LINE, EVENT, ID, NAME, VALUE, INHERITED}},
    {"hlo_instructions",
     XPL_SQL_INSTRUCTIONS,
     21,
     {SESSION,   SESSION_MTIME, HOST,     MODULE,       PROGRAM_ID, NAME,        COMPUTATION,
      OPCODE,    SHAPE,         CATEGORY, FRAMEWORK_OP, SOURCE,     OCCURRENCES, TIME,
      SELF_TIME, FLOPS,         BYTES,    GFLOPS_RATE,  GIB_RATE,   INTENSITY,   SESSION_CAPTURED}},
    {"memory",
     XPL_SQL_MEMORY,
     7,
     {SESSION, SESSION_MTIME, HOST, NAME, PEAK, CAPACITY, SESSION_CAPTURED}},
};
enum { N_TABLES = sizeof tables / sizeof *tables };

struct vtab { // SQLite's first
    sqlite3_vtab base;
    const struct table *table;
    struct xpl_sql_tables *run;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct xpl_sql_scan scan;
    struct xpl_arena arena; // of the filter's texts
    bool began;
    bool by_counts; // rows are those of `counts`
    struct xpl_sql_counts counts;
    size_t count_at;
    uint64_t repeated;
    sqlite3_int64 row;
};

static const struct table *table_of(const sqlite3_vtab *v) {
    return ((const struct vtab *)v)->table;
}

// ---- plans ----

// The kinds of xFilter's arguments.  idxStr has two letters for each: 'A' + column, and its
// operator.
enum { OP_EQ = '=', OP_FROM = '>', OP_TO = '<' };
enum { PLAN_SCAN, PLAN_COUNTS };

static int op_of(unsigned char op) {
    switch (op) {
        case SQLITE_INDEX_CONSTRAINT_EQ: return OP_EQ;
        case SQLITE_INDEX_CONSTRAINT_GT:
        case SQLITE_INDEX_CONSTRAINT_GE: return OP_FROM;
        case SQLITE_INDEX_CONSTRAINT_LT:
        case SQLITE_INDEX_CONSTRAINT_LE: return OP_TO;
        default: return 0;
    }
}

static bool is_text_column(enum xpl_sql_column c) {
    return (int)c < (int)XPL_SQL_TEXTS;
}

// SQLite checks each constraint again, so a window may keep a row too many, and never one too few.
static bool can_use(sqlite3_index_info *info, int i, enum xpl_sql_column c, int op) {
    if (!info->aConstraint[i].usable || !op) return false;
    if (is_text_column(c))
        return op == OP_EQ && sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
    return c == START || (c == ID && op == OP_EQ) || (c == END && op != OP_TO);
}

static double cost_factor(const struct table *t, enum xpl_sql_column c, int op) {
    if (c == ID) return 1e-6;
    if (c == NAME && t->level == XPL_SQL_INSTRUCTIONS) return 1e-3; // they are sorted by it
    if (is_text_column(c)) return .1;
    return op == OP_EQ ? .001 : .2;
}

// Whether the statement only needs the names in their order, and columns that are equal in all
// rows: then counts suffice.
static bool can_count(const struct table *t, const sqlite3_index_info *info, unsigned fixed) {
    if (t->level != XPL_SQL_EVENTS || info->nOrderBy != 1 || info->aOrderBy[0].desc) return false;
    const int by = info->aOrderBy[0].iColumn;
    if (by < 0 || t->columns[by] != NAME) return false;
    for (int i = 0; i < t->n; i++) {
        const bool is_used = info->colUsed >> i & 1;
        if (is_used && t->columns[i] != NAME && !(fixed >> t->columns[i] & 1)) return false;
    }
    return true;
}

// Whether the column's value is known, and a text: a number equals several texts.
static bool is_text(sqlite3_index_info *info, int i) {
    sqlite3_value *v = NULL;
    return sqlite3_vtab_rhs_value(info, i, &v) == SQLITE_OK && v &&
           sqlite3_value_type(v) == SQLITE_TEXT;
}

static int best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
    const struct table *const t = table_of(v);
    static const double rows[] = {1e3, 1e5, 1e7, 1e8, 1e5, 1e3};
    char plan[64];
    int n = 0;
    unsigned fixed = 0;
    info->estimatedCost = rows[t->level];
    for (int i = 0; i < info->nConstraint && n + 3 < (int)sizeof plan; i++) {
        const int at = info->aConstraint[i].iColumn;
        if (at < 0) continue; // the row's number
        const enum xpl_sql_column c = t->columns[at];
        const int op = op_of(info->aConstraint[i].op);
        if (!can_use(info, i, c, op)) continue;
        info->aConstraintUsage[i].argvIndex = n / 2 + 1;
        plan[n++] = (char)('A' + (int)c);
        plan[n++] = (char)op;
        if (c < NAME && is_text(info, i)) fixed |= 1u << c;
        info->estimatedCost *= cost_factor(t, c, op);
    }
    plan[n] = 0;
    info->estimatedRows = (sqlite3_int64)info->estimatedCost + 1;
    info->idxStr = sqlite3_mprintf("%s", plan);
    if (!info->idxStr) return SQLITE_NOMEM;
    info->needToFreeIdxStr = 1;
    info->idxNum = PLAN_SCAN;
    if (can_count(t, info, fixed)) {
        info->idxNum = PLAN_COUNTS;
        info->orderByConsumed = 1;
    }
    return SQLITE_OK;
}

// ---- filters ----

static bool keep_text(struct cursor *c, enum xpl_sql_column which, sqlite3_value *v) {
    const char *const p = (const char *)sqlite3_value_text(v);
    const xpl_str_t text = {p ? p : "", p ? (size_t)sqlite3_value_bytes(v) : 0};
    return xpl_arena_str(&c->arena, text, &c->scan.filter.texts[which]);
}

// A bound that is not an integer is ignored here; SQLite compares it itself.
static void keep_bound(struct xpl_sql_filter *f, enum xpl_sql_column which, int op,
                       sqlite3_value *v) {
    if (sqlite3_value_type(v) != SQLITE_INTEGER) return;
    const int64_t n = sqlite3_value_int64(v);
    if (which == ID) {
        f->id = n >= 0 ? n : INT64_MAX;
        return;
    }
    f->has_window = true;
    if (which == END) {
        if (n > f->end_from) f->end_from = n;
        return;
    }
    if (op != OP_TO && n > f->from) f->from = n;
    if (op != OP_FROM && n < f->to) f->to = n;
}

static bool keep_filter(struct cursor *c, const char *plan, int n, sqlite3_value **v) {
    c->scan.filter = (struct xpl_sql_filter){
        .from = INT64_MIN, .to = INT64_MAX, .end_from = INT64_MIN, .id = -1};
    for (int i = 0; i < n && plan[2 * i]; i++) {
        const enum xpl_sql_column which = (enum xpl_sql_column)(plan[2 * i] - 'A');
        if (!is_text_column(which))
            keep_bound(&c->scan.filter, which, plan[2 * i + 1], v[i]);
        else if (sqlite3_value_type(v[i]) == SQLITE_TEXT && !keep_text(c, which, v[i]))
            return false;
    }
    return true;
}

static int fail_cursor(struct cursor *c, xpl_status_t st) {
    return xpl_sql_cursor_fail(&c->base, st, &((const struct vtab *)c->base.pVtab)->run->err);
}

static void end_scan(struct cursor *c) {
    if (!c->began) return;
    xpl_sql_scan_end(&c->scan);
    if (c->by_counts) xpl_arena_fini(&c->counts.arena);
    xpl_arena_fini(&c->arena);
    c->began = false;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int n, sqlite3_value **v) {
    struct cursor *const c = (struct cursor *)base;
    const struct vtab *const t = (const struct vtab *)base->pVtab;
    end_scan(c);
    c->scan = (struct xpl_sql_scan){
        .q = t->run->q, .level = t->table->level, .budget = &t->run->cursors, .err = &t->run->err};
    xpl_arena_init_part(&c->arena, &t->run->cursors);
    c->counts = (struct xpl_sql_counts){0};
    c->by_counts = false;
    c->began = true;
    c->row = 0;
    if (!keep_filter(c, text ? text : "", n, v)) return SQLITE_NOMEM;
    xpl_status_t st = xpl_sql_scan_begin(&c->scan);
    if (st == XPL_OK && plan == PLAN_COUNTS) {
        c->by_counts = true;
        c->count_at = 0;
        c->repeated = 0;
        st = xpl_sql_count_names(&c->scan, &c->counts);
    }
    return st == XPL_OK ? SQLITE_OK : fail_cursor(c, st);
}

// ---- rows ----

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *const c = (struct cursor *)base;
    c->row++;
    if (c->by_counts) {
        if (++c->repeated == c->counts.v[c->count_at].n) c->count_at++, c->repeated = 0;
        return SQLITE_OK;
    }
    const xpl_status_t st = xpl_sql_scan_next(&c->scan);
    return st == XPL_OK ? SQLITE_OK : fail_cursor(c, st);
}

static int is_end(sqlite3_vtab_cursor *base) {
    const struct cursor *const c = (const struct cursor *)base;
    return c->by_counts ? c->count_at == c->counts.n : c->scan.is_over;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *x, int i) {
    const struct cursor *const c = (const struct cursor *)base;
    const enum xpl_sql_column which = table_of(base->pVtab)->columns[i];
    if (!c->by_counts)
        xpl_sql_put_column(x, &c->scan, which);
    else if (which == NAME)
        xpl_sql_put_text(x, c->counts.v[c->count_at].name);
    else if (which < NAME)
        xpl_sql_put_text(x, c->scan.filter.texts[which]);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret) {
    *ret = ((const struct cursor *)base)->row;
    return SQLITE_OK;
}

// ---- life ----

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                   char **why) {
    struct xpl_sql_tables *const run = aux;
    char text[1024] = "CREATE TABLE x(";
    const struct table *t = NULL;
    (void)why;
    for (size_t i = 0; i < N_TABLES && argc > 0; i++)
        if (strcmp(tables[i].name, argv[0]) == 0) t = &tables[i];
    if (!t) return SQLITE_ERROR;
    size_t n = strlen(text);
    for (int i = 0; i < t->n; i++) {
        const struct column_row *const c = &columns[t->columns[i]];
        sqlite3_snprintf((int)(sizeof text - n), text + n, "%s%s %s", i ? "," : "", c->name,
                         c->type);
        n += strlen(text + n);
    }
    sqlite3_snprintf((int)(sizeof text - n), text + n, ")");
    const int rc = sqlite3_declare_vtab(db, text);
    if (rc != SQLITE_OK) return rc;
    struct vtab *const v = sqlite3_malloc(sizeof *v);
    if (!v) return SQLITE_NOMEM;
    *v = (struct vtab){.table = t, .run = run};
    *ret = &v->base;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **ret) {
    (void)v;
    return xpl_sql_cursor_new(sizeof(struct cursor), ret);
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    end_scan((struct cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

// A table exists by its name, without CREATE.
static const sqlite3_module module = {
    .xCreate = connect,
    .xConnect = connect,
    .xDestroy = xpl_sql_vtab_free,
    .xBestIndex = best_index,
    .xDisconnect = xpl_sql_vtab_free,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = is_end,
    .xColumn = column,
    .xRowid = rowid,
};

void xpl_sql_near_columns(xpl_str_t statement, struct xpl_near *near) {
    for (size_t i = 0; i < N_TABLES; i++) {
        if (!xpl_str_has(statement, xpl_str_from(tables[i].name))) continue;
        for (int k = 0; k < tables[i].n; k++)
            xpl_near_add(near, xpl_str_from(columns[tables[i].columns[k]].name));
    }
}

bool xpl_sql_is_declared(const char *name) {
    if (sqlite3_stricmp(XPL_SQL_METRICS, name) == 0) return true;
    for (size_t i = 0; i < N_TABLES; i++)
        if (sqlite3_stricmp(tables[i].name, name) == 0) return true;
    return false;
}

int xpl_sql_declare(sqlite3 *db, struct xpl_sql_tables *run) {
    int rc = SQLITE_OK;
    for (size_t i = 0; i < N_TABLES && rc == SQLITE_OK; i++)
        rc = sqlite3_create_module(db, tables[i].name, &module, run);
    if (rc != SQLITE_OK) return rc;
    // The store has a view of this name, which hides main.hlo_instructions: tables in a file
    // precede those of modules, and temporary ones precede all.  Its view of memory has all rows,
    // so the module's table serves profiles only without a store.
    return sqlite3_exec(db, "CREATE VIRTUAL TABLE temp.hlo_instructions USING hlo_instructions",
                        NULL, NULL, NULL);
}
