// SPDX-License-Identifier: Apache-2.0
#include "cli/csv/cells.h"

#include <stdlib.h>
#include <string.h>

static void put_quoted(FILE *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"') (void)fputc('"', out);
        (void)fputc(text[i], out);
    }
}

void xpl_csv_text(FILE *out, const char *text, size_t n) {
    const bool formula = n && memchr("=+-@\t\r", text[0], 6);
    (void)fputs(formula ? "\"'" : "\"", out);
    put_quoted(out, text, n);
    (void)fputc('"', out);
}

// The shortest text that reads back the same.
static void put_real(FILE *out, double v) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) >= v && strtod(text, NULL) <= v) break;
    }
    (void)fputs(text, out);
}

static void put_bare(FILE *out, const json_t *v) {
    if (json_is_integer(v))
        (void)fprintf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        put_real(out, json_real_value(v));
    else if (json_is_boolean(v))
        (void)fputs(json_is_true(v) ? "true" : "false", out);
    else if (json_is_string(v))
        put_quoted(out, json_string_value(v), json_string_length(v));
}

// In quotes, and so no formula whatever its first member is: that is guarded like a text.
static void put_list(FILE *out, const json_t *list) {
    const json_t *const first = json_array_get(list, 0);
    const char *const text = json_is_string(first) ? json_string_value(first) : "";
    (void)fputs(*text && strchr("=+-@\t\r", *text) ? "\"'" : "\"", out);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i) (void)fputc(' ', out);
        put_bare(out, json_array_get(list, i));
    }
    (void)fputc('"', out);
}

void xpl_csv_value(FILE *out, const json_t *v) {
    if (json_is_string(v))
        xpl_csv_text(out, json_string_value(v), json_string_length(v));
    else if (json_is_array(v))
        put_list(out, v);
    else
        put_bare(out, v);
}

void xpl_csv_end_line(FILE *out) {
    (void)fputs("\r\n", out);
}
