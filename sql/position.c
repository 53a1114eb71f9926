// SPDX-License-Identifier: Apache-2.0
#include "sql/position.h"

#include <string.h>
#include <strings.h>

#include "base/text/utf8.h"

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

// The end of the text or comment that begins at `at`; `at` when neither does.
static size_t skip_aside(xpl_str_t s, size_t at) {
    const char *end = NULL;
    size_t length = 1;
    const xpl_str_t rest = {s.ptr + at, s.len - at};
    if (rest.ptr[0] == '\'') {
        end = memchr(rest.ptr + 1, '\'', rest.len - 1);
    } else if (rest.len > 1 && memcmp(rest.ptr, "--", 2) == 0) {
        end = memchr(rest.ptr, '\n', rest.len);
    } else if (rest.len > 1 && memcmp(rest.ptr, "/*", 2) == 0) {
        end = memmem(rest.ptr + 2, rest.len - 2, "*/", 2);
        length = 2;
    } else {
        return at;
    }
    return end ? (size_t)(end - s.ptr) + length : s.len;
}

// The first word of the statement that is `name`, in any case of letters; its length: none is.
static size_t find_name(xpl_str_t s, xpl_str_t name) {
    for (size_t at = 0; at < s.len;) {
        const size_t end = skip_aside(s, at);
        size_t n = 0;
        if (end > at) {
            at = end;
            continue;
        }
        while (at + n < s.len && is_name_byte(s.ptr[at + n]))
            n++;
        const bool qualifies = at + n < s.len && s.ptr[at + n] == '.'; // a column of that table
        if (n && n == name.len && !qualifies && strncasecmp(s.ptr + at, name.ptr, n) == 0)
            return at;
        at += n ? n : 1;
    }
    return s.len;
}

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

size_t xpl_sql_error_position(sqlite3 *db, xpl_str_t statement) {
    const int at = sqlite3_error_offset(db);
    const char *const message = sqlite3_errmsg(db);
    const xpl_str_t table = xpl_sql_missing_table(message);
    size_t byte = statement.len;
    if (at >= 0)
        byte = (size_t)at;
    else if (table.len && statement.len)
        byte = find_name(statement, table);
    if (byte < statement.len || strcmp(message, "incomplete input") == 0)
        return xpl_sql_character_at(statement, byte);
    return 0;
}
