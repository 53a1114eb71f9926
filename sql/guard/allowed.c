// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/allowed.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Sorted, as are the tables.  Each takes milliseconds at most for texts of XPL_SQL_LENGTH, or looks
// at the clock: json_patch, which compares all names of one text with all of the other, does
// neither.  SQLite's MATCH is an error by itself, with a position.
static const char *const kFunctions[] = {"->",
                                         "->>",
                                         "abs",
                                         "acos",
                                         "acosh",
                                         "asin",
                                         "asinh",
                                         "atan",
                                         "atan2",
                                         "atanh",
                                         "avg",
                                         "ceil",
                                         "ceiling",
                                         "char",
                                         "coalesce",
                                         "cos",
                                         "cosh",
                                         "count",
                                         "cume_dist",
                                         "current_date",
                                         "current_time",
                                         "current_timestamp",
                                         "date",
                                         "datetime",
                                         "degrees",
                                         "dense_rank",
                                         "exp",
                                         "first_value",
                                         "floor",
                                         "format",
                                         "glob",
                                         "group_concat",
                                         "hex",
                                         "ifnull",
                                         "iif",
                                         "instr",
                                         "json",
                                         "json_array",
                                         "json_array_length",
                                         "json_extract",
                                         "json_group_array",
                                         "json_group_object",
                                         "json_insert",
                                         "json_object",
                                         "json_quote",
                                         "json_remove",
                                         "json_replace",
                                         "json_set",
                                         "json_type",
                                         "json_valid",
                                         "julianday",
                                         "lag",
                                         "last_value",
                                         "lead",
                                         "length",
                                         "level_starts",
                                         "like",
                                         "likelihood",
                                         "likely",
                                         "ln",
                                         "log",
                                         "log10",
                                         "log2",
                                         "lower",
                                         "ltrim",
                                         "match",
                                         "max",
                                         "median",
                                         "min",
                                         "mod",
                                         "nth_value",
                                         "ntile",
                                         "nullif",
                                         "percent_rank",
                                         "pi",
                                         "pow",
                                         "power",
                                         "printf",
                                         "quote",
                                         "radians",
                                         "random",
                                         "randomblob",
                                         "rank",
                                         "regexp",
                                         "replace",
                                         "round",
                                         "row_number",
                                         "rtrim",
                                         "sign",
                                         "sin",
                                         "sinh",
                                         "soundex",
                                         "sqrt",
                                         "strftime",
                                         "substr",
                                         "substring",
                                         "sum",
                                         "tan",
                                         "tanh",
                                         "time",
                                         "total",
                                         "trim",
                                         "trunc",
                                         "typeof",
                                         "unicode",
                                         "unixepoch",
                                         "unlikely",
                                         "upper",
                                         "zeroblob"};

// Of the store (storage/store/sqlite/schema.c).  Others are the secret of profile ids, and bytes
// that mean nothing here.
static const char *const kTables[] = {
    "hlo_instructions", "hosts",    "kernel_rows", "kernels",   "memory",
    "memory_rows",      "names",    "op_rows",     "ops",       "ops_with_idle",
    "profile_files",    "profiles", "sessions",    "step_rows", "steps"};

static int compare(const void *name, const void *entry) {
    return sqlite3_stricmp(name, *(const char *const *)entry);
}

static bool is_listed(const char *const *list, size_t n, const char *name) {
    return bsearch(name, list, n, sizeof *list, compare);
}

bool xpl_sql_allows_function(const char *name) {
    return is_listed(kFunctions, sizeof kFunctions / sizeof *kFunctions, name);
}

// Of the history's database, labels are visible, and the first two columns of sessions of schedules
// (storage/store/sqlite/history.c): the others have paths, addresses and requests.
int xpl_sql_shown_columns(const char *table, const char *database) {
    if (strcmp(database, "state") != 0)
        return is_listed(kTables, sizeof kTables / sizeof *kTables, table) ? XPL_SQL_SHOW_ALL : 0;
    if (sqlite3_stricmp(table, "schedule_sessions") == 0) return 2;
    return sqlite3_stricmp(table, "labels") == 0 ? XPL_SQL_SHOW_ALL : 0;
}
