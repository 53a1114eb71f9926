// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/opens.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAIN, TEMP, STATE }; // as SQLite numbers databases
enum { SCHEMA_PAGE = 1, CURSORS = 2048 };

// ---- hidden tables ----

static int add_tree(struct xpl_sql_trees *t, int database, int page, int shown, const char *table) {
    if (shown == XPL_SQL_SHOW_ALL) return SQLITE_OK;
    if (t->n == sizeof t->v / sizeof *t->v) return SQLITE_FULL;
    struct xpl_sql_tree *const tree = &t->v[t->n++];
    *tree = (struct xpl_sql_tree){.database = database, .page = page, .shown = shown};
    (void)snprintf(tree->table, sizeof tree->table, "%s", table);
    return SQLITE_OK;
}

// An index has its columns in a different order.
static int list_tree(struct xpl_sql_trees *t, int database, sqlite3_stmt *st, int shown) {
    const bool is_table = sqlite3_column_int(st, 1);
    if (!is_table && shown != XPL_SQL_SHOW_ALL) shown = 0;
    return add_tree(t, database, sqlite3_column_int(st, 0), shown,
                    (const char *)sqlite3_column_text(st, 2));
}

static int list_database(struct xpl_sql_trees *t, sqlite3 *db, int database, const char *name,
                         xpl_sql_shown_fn *shown) {
    char sql[120];
    sqlite3_stmt *st = NULL;
    (void)snprintf(sql, sizeof sql,
                   "SELECT rootpage, type = 'table', tbl_name FROM %s.sqlite_schema"
                   " WHERE rootpage > 0",
                   name);
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *const table = (const char *)sqlite3_column_text(st, 2);
        rc = table ? list_tree(t, database, st, shown(table, name)) : SQLITE_NOMEM;
    }
    (void)sqlite3_finalize(st);
    if (rc == SQLITE_DONE) rc = SQLITE_OK;
    return rc == SQLITE_OK ? add_tree(t, database, SCHEMA_PAGE, 0, "sqlite_schema") : rc;
}

int xpl_sql_trees_list(struct xpl_sql_trees *t, sqlite3 *db, xpl_sql_shown_fn *shown) {
    *t = (struct xpl_sql_trees){0};
    int rc = add_tree(t, TEMP, SCHEMA_PAGE, 0, "sqlite_temp_schema");
    if (rc == SQLITE_OK) rc = list_database(t, db, MAIN, "main", shown);
    if (rc == SQLITE_OK && sqlite3_db_filename(db, "state"))
        rc = list_database(t, db, STATE, "state", shown);
    return rc;
}

// ---- accesses ----

struct reading {
    const struct xpl_sql_trees *t;
    uint8_t of_cursor[CURSORS]; // 1 + the tree that is shown in part
};

static const struct xpl_sql_tree *find_tree(const struct xpl_sql_trees *t, int database, int page) {
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].database == database && t->v[i].page == page) return &t->v[i];
    return NULL;
}

// The hidden table that one instruction reads.
static const struct xpl_sql_tree *read_by(struct reading *r, const char *op, int p1, int p2,
                                          int p3) {
    const bool opens =
        strcmp(op, "OpenRead") == 0 || strcmp(op, "ReopenIdx") == 0 || strcmp(op, "OpenWrite") == 0;
    const bool is_known = p1 >= 0 && p1 < CURSORS;
    if (opens) {
        const struct xpl_sql_tree *const tree = find_tree(r->t, p3, p2);
        if (tree && (!tree->shown || !is_known)) return tree;
        if (is_known) r->of_cursor[p1] = tree ? (uint8_t)(tree - r->t->v + 1) : 0;
    } else if (is_known && r->of_cursor[p1] && strcmp(op, "Column") == 0) {
        const struct xpl_sql_tree *const tree = &r->t->v[r->of_cursor[p1] - 1];
        if (p2 >= tree->shown) return tree;
    }
    return NULL;
}

static int compare(const void *name, const void *entry) {
    return strcmp(name, *(const char *const *)entry);
}

// In a list that is sorted.
static bool is_listed(const char *const *list, size_t n, const char *name) {
    return bsearch(name, list, n, sizeof *list, compare);
}

// SQLite checks the clock where a program jumps back.  Until then it runs each instruction once at
// most; these take some 0.1 ms for a text of 64 KiB, and most others next to nothing.  Allocations
// check the clock themselves (sql/heap.h).
static bool is_slow(const char *op, const char *before) {
    static const char *const values[] = {"Blob", "Int64", "Integer", "Null", "Real", "String8"};
    static const char *const slow[] = {
        "Add",       "Affinity",  "AggInverse", "AggStep", "AggStep1", "And",    "BitAnd",
        "BitNot",    "BitOr",     "Cast",       "Compare", "Concat",   "Divide", "Eq",
        "Function",  "Ge",        "Gt",         "If",      "IfNot",    "IsTrue", "Le",
        "Lt",        "Multiply",  "MustBeInt",  "Ne",      "Not",      "Or",     "PureFunc",
        "Remainder", "ShiftLeft", "ShiftRight", "Subtract"};
    // IN (...) makes a record of each value; those of the statement are short.
    if (strcmp(op, "MakeRecord") == 0)
        return !is_listed(values, sizeof values / sizeof *values, before);
    return is_listed(slow, sizeof slow / sizeof *slow, op);
}

static int read_all(const struct xpl_sql_trees *t, sqlite3 *db, const char *explain,
                    struct xpl_sql_program *ret) {
    struct reading r = {.t = t};
    sqlite3_stmt *st = NULL;
    char before[24] = "";
    int rc = sqlite3_prepare_v2(db, explain, -1, &st, NULL);
    while (rc == SQLITE_OK && !ret->read && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *const op = (const char *)sqlite3_column_text(st, 1);
        rc = op ? SQLITE_OK : SQLITE_NOMEM;
        if (!op) break;
        ret->read = read_by(&r, op, sqlite3_column_int(st, 2), sqlite3_column_int(st, 3),
                            sqlite3_column_int(st, 4));
        ret->slow += is_slow(op, before);
        (void)snprintf(before, sizeof before, "%s", op);
    }
    (void)sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int xpl_sql_program_read(const struct xpl_sql_trees *t, sqlite3 *db, xpl_str_t select,
                         struct xpl_sql_program *ret) {
    *ret = (struct xpl_sql_program){0};
    // A statement may have its full length.
    const int most = sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, -1);
    char *const explain = sqlite3_mprintf("EXPLAIN %.*s", (int)select.len, select.ptr);
    if (!explain) return SQLITE_NOMEM;
    (void)sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, (int)strlen(explain) + 1);
    const int rc = read_all(t, db, explain, ret);
    (void)sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, most);
    sqlite3_free(explain);
    return rc;
}
