// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/text/utf8.h"
#include "base/vec.h"

enum { MAX_COLUMNS = 64, MAX_CELL = 400 };

struct cell {
    xpl_str_t text;
    size_t width; // code points
};

struct xpl_table {
    struct xpl_arena arena;
    size_t n_columns;
    bool right[MAX_COLUMNS];
    bool failed;
    XPL_VEC(struct cell) cells; // the first row is the headings
};

static size_t code_points(xpl_str_t s) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += !xpl_utf8_inside(s.ptr[i]);
    return n;
}

static void add(struct xpl_table *t, xpl_str_t s) {
    struct cell *c = xpl_vec_push(&t->arena, &t->cells);
    if (!c || !xpl_arena_str(&t->arena, s, &c->text)) {
        t->failed = true;
        return;
    }
    c->width = code_points(s);
}

struct xpl_table *xpl_table_new(const char *const *columns, size_t n) {
    struct xpl_table *t = n <= MAX_COLUMNS ? xpl_sys_alloc(sizeof *t) : NULL;
    if (!t) return NULL;
    *t = (struct xpl_table){.n_columns = n};
    xpl_arena_init(&t->arena, (size_t)16 << 30);
    for (size_t i = 0; i < n; i++) {
        t->right[i] = columns[i][0] == '>';
        xpl_table_text(t, xpl_str_from(columns[i] + t->right[i]), SIZE_MAX);
    }
    return t;
}

void xpl_table_free(struct xpl_table *t) {
    if (!t) return;
    xpl_arena_fini(&t->arena);
    xpl_sys_free(t);
}

void xpl_table_text(struct xpl_table *t, xpl_str_t s, size_t max) {
    if (!t) return;
    char out[MAX_CELL];
    size_t n = 0, seen = 0, i = 0;
    for (size_t used; i < s.len && seen < max && n + 8 < sizeof out; i += used, seen++) {
        const xpl_str_t c = xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used);
        memcpy(out + n, c.ptr, c.len);
        n += c.len;
    }
    if (i < s.len) {
        memcpy(out + n, "\xe2\x80\xa6", 3);
        n += 3;
    }
    add(t, (xpl_str_t){out, n});
}

void xpl_table_printf(struct xpl_table *t, const char *fmt, ...) {
    if (!t) return;
    char out[MAX_CELL];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(out, sizeof out, fmt, ap);
    va_end(ap);
    xpl_table_text(t, xpl_str_from(out), SIZE_MAX);
}

// v with three significant digits, without an exponent.
static void three_digits(char *out, size_t size, double v, const char *unit) {
    const int decimals = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
    (void)snprintf(out, size, "%.*f %s", decimals, v, unit);
}

void xpl_show_change(char out[32], double percent, int digits) {
    const double times = 1 + percent / 100;
    if (times >= 1e9)
        (void)snprintf(out, 32, "\xc3\x97%.3g", times);
    else if (percent > 300)
        (void)snprintf(out, 32, "\xc3\x97%.*f", times < 100 ? 1 : 0, times);
    else
        (void)snprintf(out, 32, "%+.*f%%", digits, percent);
}

void xpl_show_time_ps(char out[32], uint64_t ps) {
    static const struct {
        double ps;
        const char *unit;
    } units[] = {{1e12, "s"}, {1e9, "ms"}, {1e6, "\xc2\xb5s"}, {1e3, "ns"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if ((double)ps < units[i].ps * 0.9995) continue;
        three_digits(out, 32, (double)ps / units[i].ps, units[i].unit);
        return;
    }
    (void)snprintf(out, 32, "%" PRIu64 " ps", ps);
}

void xpl_show_bytes(char out[32], uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes;
    if (bytes < 1024) {
        (void)snprintf(out, 32, "%" PRIu64 " B", bytes);
        return;
    }
    size_t i = 0;
    for (v /= 1024; v >= 1023.5 && i + 1 < sizeof units / sizeof *units; i++)
        v /= 1024;
    three_digits(out, 32, v, units[i]);
}

void xpl_table_time_ps(struct xpl_table *t, uint64_t ps) {
    char out[32];
    xpl_show_time_ps(out, ps);
    xpl_table_printf(t, "%s", out);
}

void xpl_show_when(char out[32], int64_t unix_ms) {
    const time_t at = (time_t)(unix_ms / 1000);
    struct tm tm;
    if (!unix_ms || !localtime_r(&at, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S %z", &tm))
        strcpy(out, "?");
}

void xpl_table_when(struct xpl_table *t, int64_t unix_ms) {
    char out[32];
    xpl_show_when(out, unix_ms);
    xpl_table_printf(t, "%s", out);
}

void xpl_table_bytes(struct xpl_table *t, uint64_t bytes) {
    char out[32];
    xpl_show_bytes(out, bytes);
    xpl_table_printf(t, "%s", out);
}

void xpl_table_percent(struct xpl_table *t, double fraction) {
    xpl_table_printf(t, "%.1f%%", fraction * 100);
}

void xpl_table_unknown(struct xpl_table *t) {
    xpl_table_printf(t, "\xe2\x80\x93");
}

static void add_rate(struct xpl_table *t, double v, const char *unit) {
    char out[32];
    three_digits(out, sizeof out, v, unit);
    if (v > 0)
        xpl_table_printf(t, "%s", out);
    else
        xpl_table_unknown(t);
}

void xpl_table_flop_rate(struct xpl_table *t, double giga_per_second) {
    static const char *const units[] = {"GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"};
    double v = giga_per_second;
    size_t i = 0;
    for (; v >= 999.5 && i + 1 < sizeof units / sizeof *units; i++)
        v /= 1e3;
    add_rate(t, v, units[i]);
}

void xpl_table_byte_rate(struct xpl_table *t, double gibi_per_second) {
    static const char *const units[] = {"MiB/s", "GiB/s", "TiB/s", "PiB/s", "EiB/s"};
    double v = gibi_per_second * 1024;
    size_t i = 0;
    for (; v >= 1023.5 && i + 1 < sizeof units / sizeof *units; i++)
        v /= 1024;
    add_rate(t, v, units[i]);
}

size_t xpl_table_rows(const struct xpl_table *t) {
    return t ? t->cells.n / t->n_columns - 1 : 0;
}

static void pad(FILE *out, size_t n) {
    while (n--)
        (void)fputc(' ', out);
}

bool xpl_table_print(const struct xpl_table *t, FILE *out) {
    if (!t || t->failed) return false;
    size_t width[MAX_COLUMNS] = {0};
    for (size_t i = 0; i < t->cells.n; i++) {
        size_t *const w = &width[i % t->n_columns];
        if (t->cells.v[i].width > *w) *w = t->cells.v[i].width;
    }
    size_t blanks = 0; // before the next text: lines do not end with any
    for (size_t i = 0; i < t->cells.n; i++) {
        const size_t col = i % t->n_columns, gap = width[col] - t->cells.v[i].width;
        if (t->right[col]) blanks += gap;
        if (t->cells.v[i].text.len) {
            pad(out, blanks);
            blanks = 0;
            (void)fwrite(t->cells.v[i].text.ptr, 1, t->cells.v[i].text.len, out);
        }
        if (!t->right[col]) blanks += gap;
        blanks += 2;
        if (col + 1 < t->n_columns) continue;
        blanks = 0;
        (void)fputc('\n', out);
    }
    return true;
}

bool xpl_table_finish(struct xpl_table *t, FILE *out) {
    const bool ok = xpl_table_print(t, out);
    xpl_table_free(t);
    return ok;
}
