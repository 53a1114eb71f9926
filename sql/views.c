// SPDX-License-Identifier: Apache-2.0
// Views are made for each statement: they join the store, runs' metrics and labels, which lie in
// different places, and views of a file may not do that.
#include "sql/views.h"

#include "sql/metrics.h"

#define OF_SESSION "session, session_mtime_ns, session_captured_ns"
#define OF_METRIC  OF_SESSION ", metric, unit, value, better"

// What the store's rows come to.  Its steps are those of cores, and those of `history` of time
// breakdowns: equal names would stand for different numbers.
static const char kCore[] =
    "CREATE TEMP VIEW core_metrics AS WITH step AS (SELECT " OF_SESSION ","
    " max(duration_ps) AS ps FROM steps GROUP BY session, step_num, name)"
    " SELECT " OF_SESSION
    ", 'core_step_time' AS metric, 'ps' AS unit, avg(ps) AS value, 'less' AS better"
    " FROM step GROUP BY session"
    " UNION ALL SELECT " OF_SESSION
    ", 'longest_core_step', 'ps', max(ps), 'less' FROM step GROUP BY session"
    " UNION ALL SELECT " OF_SESSION
    ", 'core_steps', 'count', count(*), '' FROM step GROUP BY session"
    " UNION ALL SELECT " OF_SESSION ", 'op_total:' || name, 'ps',"
    " sum(self_time_ps), 'less' FROM ops WHERE on_device GROUP BY session, name"
    " UNION ALL SELECT " OF_SESSION ", 'kernel_total:' || name, 'ps',"
    " 1000 * sum(total_ns), 'less' FROM kernels GROUP BY session, name;";

#define ALL_METRICS   "SELECT " OF_METRIC " FROM " XPL_SQL_METRICS
#define LABEL_METRICS "SELECT label, " OF_METRIC " FROM labels CROSS JOIN " XPL_SQL_METRICS
// Joined before they are united, and in this order (CROSS): so the labels decide which sessions are
// asked for their metrics.
static const char kMetrics[] = "CREATE TEMP VIEW session_metrics AS " ALL_METRICS ";";
static const char kLabels[] =
    "CREATE TEMP VIEW label_metrics AS " LABEL_METRICS " USING (session);";
static const char kMetricsOfStore[] = "CREATE TEMP VIEW session_metrics AS " ALL_METRICS
                                      " UNION ALL SELECT " OF_METRIC " FROM core_metrics;";
static const char kLabelsOfStore[] =
    "CREATE TEMP VIEW label_metrics AS " LABEL_METRICS " USING (session)"
    " UNION ALL SELECT label, " OF_METRIC " FROM labels JOIN core_metrics USING (session);";

// As analysis/compare/series.c orders and compares: by milliseconds, and against what is above 0.
#define ORDERED "PARTITION BY label, metric ORDER BY session_captured_ns / 1000000, session"
static const char kHistory[] =
    "CREATE TEMP VIEW label_history AS SELECT label, " OF_SESSION ", metric, unit, value,"
    " previous_value, CASE WHEN previous_value > 0 THEN"
    " 100.0 * (value - previous_value) / previous_value END AS change_percent, better,"
    " median_before, CASE WHEN median_before > 0 THEN"
    " 100.0 * (value - median_before) / median_before END AS median_change_percent"
    " FROM (SELECT label, " OF_METRIC ", lag(value) OVER same AS previous_value,"
    "  median(value) OVER (" ORDERED
    "   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS median_before"
    "  FROM label_metrics WINDOW same AS (" ORDERED "));";

// Each row has all places where levels begin, and so the number of its own level.
static const char kChanges[] =
    "CREATE TEMP VIEW label_changes AS WITH placed AS (SELECT label, " OF_METRIC ","
    "  row_number() OVER (" ORDERED ") AS place, level_starts(value) OVER (" ORDERED
    "   ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS starts"
    "  FROM label_metrics),"
    " levelled AS (SELECT *, (SELECT count(*) FROM json_each(starts) s WHERE s.value <= place)"
    "  AS level FROM placed WHERE starts <> '[]'),"
    " levels AS (SELECT label, metric, unit, better, level, min(place) AS place, " OF_SESSION ","
    "  count(*) AS sessions, avg(value) AS mean FROM levelled GROUP BY label, metric, level),"
    " compared AS (SELECT *, lag(sessions) OVER same AS sessions_before,"
    "  lag(mean) OVER same AS before FROM levels"
    "  WINDOW same AS (PARTITION BY label, metric ORDER BY level))"
    " SELECT label, " OF_SESSION ", metric, unit, sessions_before, sessions AS sessions_after,"
    " before, mean AS after,"
    " CASE WHEN before > 0 THEN 100.0 * (mean - before) / before END AS difference_percent,"
    " CASE better WHEN 'less' THEN mean > before WHEN 'more' THEN mean < before ELSE 0 END"
    " AS regression FROM compared WHERE level > 0;";

// A history that another daemon has, or that is not there, has no labels.
static int add_labels(sqlite3 *db, const char *state) {
    int rc = SQLITE_CANTOPEN;
    char *const sql =
        state ? sqlite3_mprintf("ATTACH %Q AS state; SELECT 1 FROM state.labels", state) : NULL;
    if (state && !sql) return SQLITE_NOMEM;
    if (sql) rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if ((rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM) return SQLITE_NOMEM;
    return rc == SQLITE_OK
               ? rc
               : sqlite3_exec(db,
                              "CREATE TEMP TABLE labels(session TEXT, label TEXT, set_ms INTEGER)",
                              NULL, NULL, NULL);
}

static int run_all(sqlite3 *db, const char *const *sql) {
    int rc = SQLITE_OK;
    for (; *sql && rc == SQLITE_OK; sql++)
        rc = sqlite3_exec(db, *sql, NULL, NULL, NULL);
    return rc;
}

int xpl_sql_views_declare(sqlite3 *db, bool has_store, const char *state) {
    static const char *const of_store[] = {kCore,    kMetricsOfStore, kLabelsOfStore,
                                           kHistory, kChanges,        NULL};
    static const char *const of_labels[] = {kMetrics, kLabels, kHistory, kChanges, NULL};
    static const char *const of_runs[] = {kMetrics, NULL};
    if (!has_store && !state) return run_all(db, of_runs);
    const int rc = add_labels(db, state);
    return rc == SQLITE_OK ? run_all(db, has_store ? of_store : of_labels) : rc;
}
