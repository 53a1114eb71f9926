// SPDX-License-Identifier: Apache-2.0
// Views are made for each statement: they join the store, runs' metrics and labels, which are in
// different databases, and views of a file must not do that.
#include "sql/views.h"

#include <strings.h>

#include "sql/metrics.h"

#define OF_SESSION "session, session_mtime_ns, session_captured_ns"
#define OF_METRIC  OF_SESSION ", metric, unit, value, better"

// Metrics from the store's rows.  Their steps are those of cores, while `history` uses those of
// time breakdowns: equal names would denote different numbers.
static const char kCore[] =
    "CREATE TEMP VIEW core_metrics AS WITH step AS (SELECT " OF_SESSION ","
    " max(duration_ps) AS ps FROM steps GROUP BY session, step_num, name),"
    " core AS (SELECT " OF_SESSION ", sum(duration_ps) AS ps, avg(duration_ps) AS mean_ps"
    " FROM steps GROUP BY session, host, core_id)"
    // Of the row with the greatest sum.
    " SELECT " OF_SESSION
    ", 'core_step_time' AS metric, 'ps' AS unit, mean_ps AS value, 'less' AS better"
    " FROM (SELECT *, max(ps) FROM core GROUP BY session)"
    " UNION ALL SELECT " OF_SESSION
    ", 'longest_core_step', 'ps', max(ps), 'less' FROM step GROUP BY session"
    " UNION ALL SELECT " OF_SESSION
    ", 'core_steps', 'count', count(*), '' FROM step GROUP BY session"
    " UNION ALL SELECT " OF_SESSION ", 'op_total:' || name, 'ps',"
    " sum(self_time_ps), 'less' FROM ops WHERE on_device GROUP BY session, name"
    " UNION ALL SELECT " OF_SESSION ", 'kernel_total:' || name, 'ps',"
    " 1000 * sum(total_ns), 'less' FROM kernels GROUP BY session, name;";

#define ALL_METRICS "SELECT " OF_METRIC " FROM " XPL_SQL_METRICS
static const char kMetrics[] = "CREATE TEMP VIEW session_metrics AS " ALL_METRICS ";";
static const char kMetricsOfStore[] = "CREATE TEMP VIEW session_metrics AS " ALL_METRICS
                                      " UNION ALL SELECT " OF_METRIC " FROM core_metrics;";

// Histories are of the sessions of labels, or of schedules.  They are joined before the union, and
// in this order (CROSS): so labels and schedules decide which sessions' metrics are loaded.
#define OF_LABELS "SELECT label, " OF_METRIC " FROM labels CROSS JOIN "
#define OF_SCHEDULES                                                                               \
    "SELECT schedule_id, " OF_METRIC                                                               \
    " FROM (SELECT schedule_id, name AS session FROM schedule_sessions) CROSS JOIN "
#define BY_SESSION " USING (session)"
static const char kJoined[] =
    "CREATE TEMP VIEW label_metrics AS " OF_LABELS XPL_SQL_METRICS BY_SESSION ";"
    "CREATE TEMP VIEW schedule_metrics AS " OF_SCHEDULES XPL_SQL_METRICS BY_SESSION ";";
static const char kJoinedOfStore[] =
    "CREATE TEMP VIEW label_metrics AS " OF_LABELS XPL_SQL_METRICS BY_SESSION
    " UNION ALL " OF_LABELS "core_metrics" BY_SESSION ";"
    "CREATE TEMP VIEW schedule_metrics AS " OF_SCHEDULES XPL_SQL_METRICS BY_SESSION
    " UNION ALL " OF_SCHEDULES "core_metrics" BY_SESSION ";";

// As analysis/compare/series.c orders and compares: by milliseconds, and only to values above 0.
#define HISTORY(view, metrics, key)                                                                \
    "CREATE TEMP VIEW " view " AS SELECT " key ", " OF_SESSION ", metric, unit, value,"            \
    " previous_value, CASE WHEN previous_value > 0 THEN"                                           \
    " 100.0 * (value - previous_value) / previous_value END AS change_percent, better,"            \
    " median_before, CASE WHEN median_before > 0 THEN"                                             \
    " 100.0 * (value - median_before) / median_before END AS median_change_percent"                \
    " FROM (SELECT " key ", " OF_METRIC ", lag(value) OVER same AS previous_value,"                \
    "  median(value) OVER (same ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"                 \
    "  AS median_before FROM " metrics " WINDOW same AS"                                           \
    "  (PARTITION BY " key ", metric ORDER BY session_captured_ns / 1000000, session));"
static const char kHistory[] = HISTORY("label_history", "label_metrics", "label")
    HISTORY("schedule_history", "schedule_metrics", "schedule_id");

// Each row has the positions of all level changes, and so the number of its level.  Windows
// instead of groups: SQLite passes conditions on the partition columns down to the metrics, and so
// limits the sessions whose metrics are loaded.  4096 is XPL_SERIES_MOST.
#define ALL_ROWS " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
#define CHANGES(view, metrics, key)                                                                \
    "CREATE TEMP VIEW " view " AS WITH placed AS (SELECT " key ", " OF_METRIC ","                  \
    "  row_number() OVER same AS place, count(*) OVER (same" ALL_ROWS " AS places,"                \
    "  level_starts(value) OVER (same" ALL_ROWS " AS starts FROM " metrics                         \
    "  WHERE value IS NOT NULL WINDOW same AS"                                                     \
    "  (PARTITION BY " key ", metric ORDER BY session_captured_ns / 1000000, session)),"           \
    " levelled AS (SELECT *,"                                                                      \
    "  (SELECT count(*) FROM json_each(starts) s WHERE s.value <= place) AS level"                 \
    "  FROM placed WHERE starts <> '[]' AND place > places - 4096),"                               \
    " levels AS (SELECT *, row_number() OVER same AS nth, count(*) OVER (same" ALL_ROWS            \
    "  AS sessions, avg(value) OVER (same" ALL_ROWS " AS mean FROM levelled"                       \
    "  WINDOW same AS (PARTITION BY " key ", metric, level ORDER BY place)),"                      \
    " compared AS (SELECT *, lag(sessions) OVER same AS sessions_before,"                          \
    "  lag(mean) OVER same AS before FROM levels WHERE nth = 1"                                    \
    "  WINDOW same AS (PARTITION BY " key ", metric ORDER BY level))"                              \
    " SELECT " key ", " OF_SESSION ", metric, unit, sessions_before, sessions AS sessions_after,"  \
    " before, mean AS after,"                                                                      \
    " CASE WHEN before > 0 THEN 100.0 * (mean - before) / before END AS difference_percent,"       \
    " CASE better WHEN 'less' THEN mean > before WHEN 'more' THEN mean < before ELSE 0 END"        \
    " AS regression FROM compared WHERE level > 0;"
static const char kChanges[] = CHANGES("label_changes", "label_metrics", "label")
    CHANGES("schedule_changes", "schedule_metrics", "schedule_id");

// A history that another daemon has, or that is not there, has neither labels nor schedules.
static int add_state(sqlite3 *db, const char *state) {
    int rc = SQLITE_CANTOPEN;
    char *const sql = state ? sqlite3_mprintf("ATTACH %Q AS state; SELECT 1 FROM state.labels;"
                                              "SELECT 1 FROM state.schedule_sessions",
                                              state)
                            : NULL;
    if (state && !sql) return SQLITE_NOMEM;
    if (sql) rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if ((rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM) return SQLITE_NOMEM;
    if (rc == SQLITE_OK) return rc;
    (void)sqlite3_exec(db, "DETACH state", NULL, NULL, NULL); // it may be there all the same
    return sqlite3_exec(db,
                        "CREATE TEMP TABLE labels(session TEXT, label TEXT, set_ms INTEGER);"
                        "CREATE TEMP TABLE schedule_sessions(schedule_id INTEGER, name TEXT)",
                        NULL, NULL, NULL);
}

static int run_all(sqlite3 *db, const char *const *sql) {
    int rc = SQLITE_OK;
    for (; *sql && rc == SQLITE_OK; sql++)
        rc = sqlite3_exec(db, *sql, NULL, NULL, NULL);
    return rc;
}

// Whether the word is somewhere in the text, in any case.
static bool has_word(xpl_str_t text, xpl_str_t word) {
    for (size_t i = 0; i + word.len <= text.len; i++)
        if (strncasecmp(text.ptr + i, word.ptr, word.len) == 0) return true;
    return false;
}

static bool may_name_views(xpl_str_t statement) {
    return has_word(statement, XPL_STR("_metrics")) || has_word(statement, XPL_STR("_history")) ||
           has_word(statement, XPL_STR("_changes"));
}

int xpl_sql_views_declare(sqlite3 *db, xpl_str_t statement, bool has_store, const char *state) {
    static const char *const of_store[] = {kCore,    kMetricsOfStore, kJoinedOfStore,
                                           kHistory, kChanges,        NULL};
    static const char *const of_state[] = {kMetrics, kJoined, kHistory, kChanges, NULL};
    static const char *const of_runs[] = {kMetrics, NULL};
    const bool has_state = has_store || state;
    const int rc = has_state ? add_state(db, state) : SQLITE_OK;
    if (rc != SQLITE_OK || !may_name_views(statement)) return rc;
    return run_all(db, has_store ? of_store : has_state ? of_state : of_runs);
}
