// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/texts.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

enum { CHECK_BYTES = 1 << 18, LEFT = 1, RIGHT = 2 };

// Whether the call may go on to compare n bytes more.
static bool may_compare(struct xpl_sql_texts *t, size_t n) {
    t->unseen += n;
    if (t->unseen < CHECK_BYTES) return true;
    t->unseen = 0;
    return !xpl_exec_cancelled(t->exec);
}

static void stop(sqlite3_context *x) {
    sqlite3_result_error_code(x, SQLITE_INTERRUPT);
}

static bool get_text(sqlite3_value *v, xpl_str_t *ret) {
    ret->ptr = (const char *)sqlite3_value_text(v);
    ret->len = ret->ptr ? (size_t)sqlite3_value_bytes(v) : 0;
    return ret->ptr;
}

static bool is_inside(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

// Bytes of the first character; SQLite splits invalid UTF-8 in the same way.  `s` is not empty.
static size_t first_character(xpl_str_t s) {
    size_t n = 1;
    if ((unsigned char)s.ptr[0] >= 0xc0)
        while (n < s.len && is_inside(s.ptr[n]))
            n++;
    return n;
}

// ---- trim ----

// Bytes of the first character of `set` that the text begins with, or ends with; 0: of none.
// False: the deadline has passed.
static bool find_end(struct xpl_sql_texts *t, xpl_str_t text, xpl_str_t set, int side,
                     size_t *ret) {
    *ret = 0;
    while (set.len) {
        const size_t n = first_character(set);
        if (!may_compare(t, n + 1)) return false;
        const size_t at = side == LEFT || n > text.len ? 0 : text.len - n;
        if (n <= text.len && memcmp(text.ptr + at, set.ptr, n) == 0) {
            *ret = n;
            return true;
        }
        set = xpl_str_sub(set, n, set.len);
    }
    return true;
}

static void trim(sqlite3_context *x, int n, sqlite3_value **v, int sides) {
    xpl_str_t text, set = XPL_STR(" ");
    size_t k;
    if (!get_text(v[0], &text) || (n == 2 && !get_text(v[1], &set))) return;
    set.len = strnlen(set.ptr, set.len);
    for (int side = LEFT; side <= RIGHT; side++) {
        do {
            if (!(sides & side) || !text.len) break;
            if (!find_end(sqlite3_user_data(x), text, set, side, &k)) {
                stop(x);
                return;
            }
            text =
                side == LEFT ? xpl_str_sub(text, k, text.len) : xpl_str_sub(text, 0, text.len - k);
        } while (k);
    }
    sqlite3_result_text(x, text.ptr, (int)text.len, SQLITE_TRANSIENT);
}

static void trim_both(sqlite3_context *x, int n, sqlite3_value **v) {
    trim(x, n, v, LEFT | RIGHT);
}

static void trim_left(sqlite3_context *x, int n, sqlite3_value **v) {
    trim(x, n, v, LEFT);
}

static void trim_right(sqlite3_context *x, int n, sqlite3_value **v) {
    trim(x, n, v, RIGHT);
}

// ---- instr and replace ----

// The first position of the needle from `at` on, or the text's length.  False: the deadline has
// passed.
static bool find_text(struct xpl_sql_texts *t, xpl_str_t text, xpl_str_t needle, size_t *at) {
    for (; *at + needle.len <= text.len; ++*at) {
        const bool is_candidate = text.ptr[*at] == needle.ptr[0];
        if (!may_compare(t, is_candidate ? needle.len : 1)) return false;
        if (is_candidate && memcmp(text.ptr + *at, needle.ptr, needle.len) == 0) return true;
    }
    *at = text.len;
    return true;
}

// The number of the character, or byte, where the needle is; 0: nowhere.
static void put_place(sqlite3_context *x, xpl_str_t text, xpl_str_t needle, bool has_characters) {
    size_t at = 0, counted = 0;
    int number = 1;
    for (;; at++) { // a needle within a character is not found
        if (!find_text(sqlite3_user_data(x), text, needle, &at)) {
            stop(x);
            return;
        }
        if (!has_characters || !at || at == text.len || !is_inside(text.ptr[at])) break;
    }
    for (; at < text.len && counted < at; counted++)
        number += !has_characters || !is_inside(text.ptr[counted + 1]);
    sqlite3_result_int(x, at < text.len ? number : 0);
}

static void put_instr(sqlite3_context *x, sqlite3_value *in, sqlite3_value *of, bool is_blob) {
    xpl_str_t text, needle;
    if (!is_blob && (!get_text(in, &text) || !get_text(of, &needle))) {
        sqlite3_result_error_nomem(x);
        return;
    }
    if (is_blob) {
        text = (xpl_str_t){sqlite3_value_blob(in), (size_t)sqlite3_value_bytes(in)};
        needle = (xpl_str_t){sqlite3_value_blob(of), (size_t)sqlite3_value_bytes(of)};
    }
    if (needle.len)
        put_place(x, text, needle, !is_blob);
    else
        sqlite3_result_int(x, 1);
}

static void instr(sqlite3_context *x, int n, sqlite3_value **v) {
    const int in = sqlite3_value_type(v[0]), of = sqlite3_value_type(v[1]);
    (void)n;
    if (in == SQLITE_NULL || of == SQLITE_NULL) return;
    if ((in == SQLITE_BLOB) == (of == SQLITE_BLOB)) {
        put_instr(x, v[0], v[1], in == SQLITE_BLOB);
        return;
    }
    // One is a blob, and stays one for the rest of the statement.
    sqlite3_value *const a = sqlite3_value_dup(v[0]), *const b = sqlite3_value_dup(v[1]);
    if (a && b)
        put_instr(x, a, b, false);
    else
        sqlite3_result_error_nomem(x);
    sqlite3_value_free(a);
    sqlite3_value_free(b);
}

static bool put_replaced(struct xpl_sql_texts *t, sqlite3_str *out, xpl_str_t text, xpl_str_t what,
                         xpl_str_t by) {
    for (size_t at = 0, from = 0; from < text.len; at = from = at + what.len) {
        if (!find_text(t, text, what, &at)) return false;
        sqlite3_str_append(out, text.ptr + from, (int)(at - from));
        if (at == text.len) break;
        sqlite3_str_append(out, by.ptr, (int)by.len);
    }
    return true;
}

static void replace(sqlite3_context *x, int n, sqlite3_value **v) {
    xpl_str_t text, what, by;
    (void)n;
    if (!get_text(v[0], &text) || !get_text(v[1], &what)) return;
    if (!what.len || !what.ptr[0]) {
        sqlite3_result_value(x, v[0]);
        return;
    }
    if (!get_text(v[2], &by)) return;
    sqlite3_str *const out = sqlite3_str_new(sqlite3_context_db_handle(x));
    const bool in_time = put_replaced(sqlite3_user_data(x), out, text, what, by);
    const int rc = in_time ? sqlite3_str_errcode(out) : SQLITE_INTERRUPT,
              len = sqlite3_str_length(out);
    char *const answer = sqlite3_str_finish(out);
    if (rc != SQLITE_OK) {
        sqlite3_free(answer);
        sqlite3_result_error_code(x, rc);
    } else if (answer) {
        sqlite3_result_text(x, answer, len, sqlite3_free);
    } else {
        sqlite3_result_text(x, "", 0, SQLITE_STATIC);
    }
}

// ---- LIKE and GLOB ----

// The operands of LIKE or GLOB; their patterns are short, so that one call takes milliseconds at
// most.  False: the function has already returned its result.
static bool get_pattern(sqlite3_context *x, sqlite3_value **v, xpl_str_t *pattern,
                        xpl_str_t *text) {
    const int most =
        sqlite3_limit(sqlite3_context_db_handle(x), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1);
    if (sqlite3_value_type(v[0]) == SQLITE_BLOB || sqlite3_value_type(v[1]) == SQLITE_BLOB) {
        sqlite3_result_int(x, 0);
        return false;
    }
    if (sqlite3_value_bytes(v[0]) > most) {
        sqlite3_result_error(x, "LIKE or GLOB pattern too complex", -1);
        return false;
    }
    if (!get_text(v[0], pattern) || !get_text(v[1], text)) return false;
    if (may_compare(sqlite3_user_data(x), (pattern->len + 1) * text->len)) return true;
    stop(x);
    return false;
}

static void glob(sqlite3_context *x, int n, sqlite3_value **v) {
    xpl_str_t pattern, text;
    (void)n;
    if (get_pattern(x, v, &pattern, &text))
        sqlite3_result_int(x, sqlite3_strglob(pattern.ptr, text.ptr) == 0);
}

// A wildcard as the escape would be one only of the two.
static bool get_escape(sqlite3_context *x, sqlite3_value *v, unsigned *ret) {
    xpl_str_t s;
    if (!get_text(v, &s)) return false;
    *ret = s.len == 1 ? (unsigned char)s.ptr[0] : 0;
    if (*ret && *ret < 0x80 && *ret != '%' && *ret != '_') return true;
    sqlite3_result_error(x, "ESCAPE expression must be one ASCII character, and not % or _", -1);
    return false;
}

static void like(sqlite3_context *x, int n, sqlite3_value **v) {
    xpl_str_t pattern, text;
    unsigned escape = 0;
    if (!get_pattern(x, v, &pattern, &text)) return;
    if (n == 3 && !get_escape(x, v[2], &escape)) return;
    sqlite3_result_int(x, sqlite3_strlike(pattern.ptr, text.ptr, escape) == 0);
}

int xpl_sql_texts_declare(struct xpl_sql_texts *t, sqlite3 *db) {
    static const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } all[] = {{"glob", 2, glob},       {"instr", 2, instr},      {"like", 2, like},
               {"like", 3, like},       {"ltrim", 1, trim_left},  {"ltrim", 2, trim_left},
               {"replace", 3, replace}, {"rtrim", 1, trim_right}, {"rtrim", 2, trim_right},
               {"trim", 1, trim_both},  {"trim", 2, trim_both}};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = sqlite3_create_function(db, all[i].name, all[i].n,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, t,
                                     all[i].call, NULL, NULL);
    return rc;
}
