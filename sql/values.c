// SPDX-License-Identifier: Apache-2.0
// The values of a scan's rows in each column, for SQLite.
#include "sql/tables.h"

// Copies of ours live until the profile is closed, which rows of a join may outlast.
void xpl_sql_put_text(sqlite3_context *x, xpl_str_t s) {
    const size_t n = s.len < XPL_SQL_TEXT_MAX ? s.len : XPL_SQL_TEXT_MAX;
    sqlite3_result_text(x, n ? s.ptr : "", (int)n, SQLITE_TRANSIENT);
}

// Above 2^63-1 as the text of its digits.
static void put_uint(sqlite3_context *x, uint64_t v) {
    if (v <= INT64_MAX) {
        sqlite3_result_int64(x, (sqlite3_int64)v);
        return;
    }
    char *const text = sqlite3_mprintf("%llu", (unsigned long long)v);
    if (text)
        sqlite3_result_text(x, text, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(x);
}

static void put_value(sqlite3_context *x, const struct xpl_stat *s) {
    switch (s->kind) {
        case XPL_VALUE_DOUBLE: sqlite3_result_double(x, s->d); return;
        case XPL_VALUE_INT: sqlite3_result_int64(x, s->i); return;
        case XPL_VALUE_UINT: put_uint(x, s->u); return;
        case XPL_VALUE_STR:
        case XPL_VALUE_REF: xpl_sql_put_text(x, s->str); return;
        case XPL_VALUE_BYTES: {
            const size_t n = s->str.len < XPL_SQL_TEXT_MAX ? s->str.len : XPL_SQL_TEXT_MAX;
            sqlite3_result_blob(x, n ? s->str.ptr : "", (int)n, SQLITE_TRANSIENT);
            return;
        }
        case XPL_VALUE_NONE: break;
    }
    sqlite3_result_null(x);
}

// An event that aggregates several has no begin.
static void put_time(sqlite3_context *x, const struct xpl_sql_scan *s, int64_t ps) {
    if (s->event.has_occurrences)
        sqlite3_result_null(x);
    else
        sqlite3_result_int64(x, ps);
}

static void put_known(sqlite3_context *x, xpl_str_t s) {
    if (s.ptr)
        xpl_sql_put_text(x, s);
    else
        sqlite3_result_null(x);
}

// As the store's view has it: NULL where either is nothing.
static void put_ratio(sqlite3_context *x, double factor, uint64_t a, uint64_t b) {
    if (a && b)
        sqlite3_result_double(x, factor * (double)a / (double)b);
    else
        sqlite3_result_null(x);
}

static void put_instruction(sqlite3_context *x, const struct xpl_sql_instruction *i,
                            enum xpl_sql_column which) {
    switch ((int)which) { // each level has its own
        case NAME: xpl_sql_put_text(x, i->name); return;
        case MODULE: xpl_sql_put_text(x, i->module); return;
        case PROGRAM_ID: put_uint(x, i->program_id); return;
        case COMPUTATION: put_known(x, i->computation); return;
        case OPCODE: put_known(x, i->opcode); return;
        case SHAPE: put_known(x, i->shape); return;
        case CATEGORY: put_known(x, i->category); return;
        case FRAMEWORK_OP: put_known(x, i->framework_op); return;
        case SOURCE: put_known(x, i->source); return;
        case OCCURRENCES: put_uint(x, i->occurrences); return;
        case TIME: put_uint(x, i->time_ps); return;
        case SELF_TIME: put_uint(x, i->self_time_ps); return;
        case FLOPS: put_uint(x, i->flops); return;
        case BYTES: put_uint(x, i->bytes_accessed); return;
        case GFLOPS_RATE: put_ratio(x, 1e3, i->flops, i->time_ps); return;
        case GIB_RATE: put_ratio(x, 1e12 / 1073741824, i->bytes_accessed, i->time_ps); return;
        case INTENSITY: put_ratio(x, 1, i->flops, i->bytes_accessed); return;
        default: sqlite3_result_null(x);
    }
}

static void put_allocator(sqlite3_context *x, const struct xpl_sql_allocator *a,
                          enum xpl_sql_column which) {
    if (which == NAME)
        xpl_sql_put_text(x, a->name);
    else
        put_uint(x, which == PEAK ? a->peak_bytes : a->capacity_bytes);
}

void xpl_sql_put_column(sqlite3_context *x, const struct xpl_sql_scan *s,
                        enum xpl_sql_column which) {
    const struct xpl_sql_profile *const p = &s->q->source.profiles[s->profile];
    const bool of_session = which <= HOST || which == SESSION_MTIME || which == SESSION_CAPTURED;
    if (s->level == XPL_SQL_INSTRUCTIONS && !of_session) {
        put_instruction(x, s->instruction, which);
        return;
    }
    if (s->level == XPL_SQL_MEMORY && !of_session) {
        put_allocator(x, s->allocator, which);
        return;
    }
    switch ((int)which) { // each level has its own
        case SESSION_MTIME: sqlite3_result_int64(x, p->session_mtime_ns); return;
        case SESSION_CAPTURED: sqlite3_result_int64(x, p->session_captured_ns); return;
        case SESSION: xpl_sql_put_text(x, p->session); return;
        case HOST: xpl_sql_put_text(x, p->host); return;
        case PLANE: xpl_sql_put_text(x, s->plane->name); return;
        case LINE: xpl_sql_put_text(x, s->line->name); return;
        case NAME:
            xpl_sql_put_text(x, s->level == XPL_SQL_STATS ? s->stat.md->name
                                                          : s->plane->names[s->event.md]);
            return;
        case EVENT: xpl_sql_put_text(x, s->plane->names[s->event.md]); return;
        case START: put_time(x, s, s->begin); return;
        case DURATION: sqlite3_result_int64(x, s->event.duration_ps); return;
        case END: put_time(x, s, s->end); return;
        case ID: sqlite3_result_int64(x, xpl_sql_event_id(s)); return;
        case VALUE: put_value(x, &s->stat); return;
        case INHERITED: sqlite3_result_int(x, s->of_metadata); return;
        case LINES: sqlite3_result_int64(x, s->plane->plane->n_lines); return;
        case EVENTS: sqlite3_result_int64(x, (sqlite3_int64)s->line->line->n_events); return;
        case PLANE_ID: sqlite3_result_int64(x, s->plane->plane->id); return;
        case LINE_ID: sqlite3_result_int64(x, s->line->line->id); return;
        case DISPLAY: xpl_sql_put_text(x, s->line->line->display_name); return;
        case TIMESTAMP: sqlite3_result_int64(x, s->line->line->absolute_ns); return;
        default: sqlite3_result_null(x);
    }
}
