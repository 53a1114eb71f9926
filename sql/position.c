// SPDX-License-Identifier: Apache-2.0
#include "sql/position.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "sql/words.h"

static xpl_str_t missing(const char *message, const char *begin) {
    const size_t n = strlen(begin);
    if (strncmp(message, begin, n) != 0) return (xpl_str_t){"", 0};
    const char *const name = message + n, *const dot = strrchr(name, '.');
    return xpl_str_from(dot ? dot + 1 : name);
}

xpl_str_t xpl_sql_missing_table(const char *message) {
    return missing(message, "no such table: ");
}

xpl_str_t xpl_sql_missing_column(const char *message) {
    return missing(message, "no such column: ");
}

size_t xpl_sql_character_at(xpl_str_t statement, size_t byte) {
    size_t n = 1;
    for (size_t i = 0; i < byte && i < statement.len; i++)
        n += !xpl_utf8_inside(statement.ptr[i]);
    return n;
}

// ---- errors without a position ----

// The word that a message of SQLite is about: between `before` and `after`, or `word`.
static const struct said {
    const char *before, *after, *word;
    enum xpl_sql_which which;
} said[] = {
    {"no such table: ", NULL, NULL, XPL_SQL_TABLE},
    {"no such index: ", NULL, NULL, XPL_SQL_FIRST},
    {"no such window: ", NULL, NULL, XPL_SQL_FIRST},
    {"circular reference: ", NULL, NULL, XPL_SQL_FIRST},
    {"table ", " has ", NULL, XPL_SQL_FIRST}, // of WITH
    {"too many arguments on ", "() ", NULL, XPL_SQL_TABLE},
    {"cannot join using column ", " - ", NULL, XPL_SQL_SOLE},
    {"ambiguous column name: ", NULL, NULL, XPL_SQL_SOLE},
    {"a JOIN clause is required before ", NULL, NULL, XPL_SQL_SOLE},
    {"SELECTs to the left and right of ", " ", NULL, XPL_SQL_SOLE}, // UNION, also of UNION ALL
    {"unable to use function ", " ", NULL, XPL_SQL_SOLE},
    {"RAISE() ", NULL, "RAISE", XPL_SQL_SOLE},
    {"ESCAPE expression ", NULL, "ESCAPE", XPL_SQL_SOLE},
    {"DISTINCT aggregates ", NULL, "DISTINCT", XPL_SQL_SOLE},
    {"all VALUES must ", NULL, "VALUES", XPL_SQL_SOLE},
    {"datatype mismatch", NULL, "LIMIT", XPL_SQL_SOLE},
    {"no tables specified", NULL, "*", XPL_SQL_SOLE},
};

static xpl_str_t between(const char *begin, const char *after) {
    const char *const end = after ? strstr(begin, after) : NULL;
    const xpl_str_t name = {begin, end ? (size_t)(end - begin) : strlen(begin)};
    const char *const dot = memrchr(name.ptr, '.', name.len); // of its database or table
    return dot ? xpl_str_sub(name, (size_t)(dot - name.ptr) + 1, SIZE_MAX) : name;
}

static size_t find_said(xpl_str_t statement, const char *message) {
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const struct said *const e = &said[i];
        const size_t n = strlen(e->before);
        if (strncmp(message, e->before, n) != 0) continue;
        return xpl_sql_word_find(
            statement, e->word ? xpl_str_from(e->word) : between(message + n, e->after), e->which);
    }
    return statement.len;
}

// "2nd ORDER BY term out of range ...": the term, where there is one such clause.
static size_t find_term(xpl_str_t statement, const char *message) {
    struct xpl_sql_word w = {0};
    char *clause;
    unsigned long term = strtoul(message, &clause, 10);
    clause += strcspn(clause, " ");
    if (!term || !strstr(clause, " BY term out of range")) return statement.len;
    const bool group = strncmp(clause, " GROUP", 6) == 0;
    const size_t at =
        xpl_sql_word_find(statement, group ? XPL_STR("GROUP") : XPL_STR("ORDER"), XPL_SQL_SOLE);
    while (w.at < at && xpl_sql_word_next(statement, &w))
        ;
    const unsigned depth = w.depth;
    (void)xpl_sql_word_next(statement, &w); // BY
    while (term > 1 && xpl_sql_word_next(statement, &w))
        term -= w.depth == depth && xpl_sql_word_is(&w, ",");
    return xpl_sql_word_next(statement, &w) ? w.at : statement.len;
}

// A SELECT within another one, where there is one.
static size_t find_inner(xpl_str_t statement, const char *message) {
    struct xpl_sql_word w = {0};
    size_t found = statement.len, n = 0;
    if (strncmp(message, "sub-select returns ", 19) != 0) return found;
    while (xpl_sql_word_next(statement, &w)) {
        if (!w.depth || !xpl_sql_word_is(&w, "SELECT")) continue;
        found = w.at;
        n++;
    }
    return n == 1 ? found : statement.len;
}

size_t xpl_sql_error_position(sqlite3 *db, xpl_str_t statement) {
    const int at = sqlite3_error_offset(db);
    const char *const message = sqlite3_errmsg(db);
    size_t byte = at >= 0 ? (size_t)at : find_said(statement, message);
    if (strcmp(message, "statement too long") == 0)
        byte = (size_t)sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, -1);
    if (byte >= statement.len) byte = find_term(statement, message);
    if (byte >= statement.len) byte = find_inner(statement, message);
    if (byte < statement.len || strcmp(message, "incomplete input") == 0)
        return xpl_sql_character_at(statement, byte);
    return 0;
}
