// SPDX-License-Identifier: Apache-2.0
#include "sql/words.h"

#include <string.h>
#include <strings.h>

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// The end of a quoted text; a doubled quote inside is part of it, but for ']'.  The statement's
// length when it does not end.
static size_t quoted_end(xpl_str_t s, size_t at, char quote) {
    for (at++; at < s.len; at++) {
        if (s.ptr[at] != quote) continue;
        if (quote == ']' || at + 1 == s.len || s.ptr[at + 1] != quote) return at + 1;
        at++;
    }
    return s.len;
}

// Behind blanks, texts and comments.
static size_t skip_aside(xpl_str_t s, size_t at) {
    while (at < s.len) {
        const xpl_str_t rest = {s.ptr + at, s.len - at};
        const char *end = NULL;
        if (is_blank(rest.ptr[0])) {
            at++;
        } else if (rest.ptr[0] == '\'') {
            at = quoted_end(s, at, '\'');
        } else if (xpl_str_starts(rest, XPL_STR("--"))) {
            end = memchr(rest.ptr, '\n', rest.len);
            at = end ? (size_t)(end - s.ptr) + 1 : s.len;
        } else if (xpl_str_starts(rest, XPL_STR("/*"))) {
            end = memmem(rest.ptr + 2, rest.len - 2, "*/", 2);
            at = end ? (size_t)(end - s.ptr) + 2 : s.len;
        } else {
            break;
        }
    }
    return at;
}

bool xpl_sql_word_next(xpl_str_t s, struct xpl_sql_word *w) {
    unsigned depth = w->depth;
    if (w->text.len == 1 && w->text.ptr[0] == ')' && !w->is_quoted) depth--;
    const size_t at = skip_aside(s, w->end);
    *w = (struct xpl_sql_word){.at = at, .end = at, .depth = depth};
    if (at == s.len) return false;
    const char c = s.ptr[at];
    while (w->end < s.len && is_name_byte(s.ptr[w->end]))
        w->end++;
    if (c == '"' || c == '`' || c == '[') {
        w->is_quoted = true;
        w->end = quoted_end(s, at, c == '[' ? ']' : c);
        w->text = xpl_str_sub(s, at + 1, w->end > at + 1 ? w->end - at - 2 : 0);
        return true;
    }
    if (w->end == at) w->end++;
    w->text = xpl_str_sub(s, at, w->end - at);
    // An unmatched closing parenthesis is a separate error.
    if (c == '(' || (c == ')' && !depth)) w->depth++;
    return true;
}

static bool is_same(xpl_str_t a, xpl_str_t b) {
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

bool xpl_sql_word_is(const struct xpl_sql_word *w, const char *keyword) {
    return !w->is_quoted && is_same(w->text, xpl_str_from(keyword));
}

static bool is_one_of(const struct xpl_sql_word *w, const char *const *keywords) {
    for (; *keywords; keywords++)
        if (xpl_sql_word_is(w, *keywords)) return true;
    return false;
}

// Whether tables are named from here on, or no more; `now`: whether they were before.
static bool names_tables(const struct xpl_sql_word *w, bool now) {
    static const char *const begin[] = {"FROM", "JOIN", NULL};
    static const char *const end[] = {"SELECT", "WHERE", "ON",     "USING", "GROUP",
                                      "ORDER",  "LIMIT", "HAVING", ")",     NULL};
    return is_one_of(w, begin) || (now && !is_one_of(w, end));
}

size_t xpl_sql_word_find(xpl_str_t s, xpl_str_t name, enum xpl_sql_which which) {
    enum { TABLE, OTHER, QUALIFYING, KINDS };
    size_t found[KINDS] = {s.len, s.len, s.len}, n = 0;
    struct xpl_sql_word w = {0};
    bool of_tables = false;
    while (name.len && xpl_sql_word_next(s, &w)) {
        of_tables = names_tables(&w, of_tables);
        if (!is_same(w.text, name)) continue;
        const bool qualifies = w.end < s.len && s.ptr[w.end] == '.';
        const int kind = qualifies                             ? QUALIFYING
                         : of_tables && which == XPL_SQL_TABLE ? TABLE
                                                               : OTHER;
        if (found[kind] == s.len) found[kind] = w.at;
        n++;
    }
    if (which == XPL_SQL_SOLE && n > 1) return s.len;
    for (int kind = 0; kind < KINDS; kind++)
        if (found[kind] < s.len) return found[kind];
    return s.len;
}

bool xpl_sql_verb(xpl_str_t s, struct xpl_sql_word *ret) {
    static const char *const behind_with[] = {"SELECT", "VALUES", "INSERT", "REPLACE",
                                              "UPDATE", "DELETE", NULL};
    *ret = (struct xpl_sql_word){0};
    if (!xpl_sql_word_next(s, ret)) return false;
    if (xpl_sql_word_is(ret, "EXPLAIN") && !xpl_sql_word_next(s, ret)) return false;
    if (xpl_sql_word_is(ret, "QUERY") && xpl_sql_word_next(s, ret) &&
        xpl_sql_word_is(ret, "PLAN") && !xpl_sql_word_next(s, ret))
        return false;
    if (!xpl_sql_word_is(ret, "WITH")) return true;
    // Each of its tables ends with a parenthesis; names of tables may be such words, too.
    for (bool ended = false; xpl_sql_word_next(s, ret);) {
        if (ended && is_one_of(ret, behind_with)) return true;
        ended = !ret->is_quoted && ret->depth == 1 && xpl_sql_word_is(ret, ")");
    }
    return false;
}
