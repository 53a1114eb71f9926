// SPDX-License-Identifier: Apache-2.0
#include "sql/series.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/compare/series.h"
#include "base/arena.h"

// The values of a window, in its order; those that are no numbers are left out.
struct values {
    double *v, *sorted; // `sorted` for the median alone
    size_t n, cap;
    char *answer; // of level_starts while the values stay the same, as each row asks for it
};

// ---- values ----

static bool make_room(struct values *s) {
    if (s->n < s->cap) return true;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    double *const v = sqlite3_realloc64(s->v, cap * sizeof *v);
    if (v) s->v = v;
    double *const sorted = sqlite3_realloc64(s->sorted, cap * sizeof *sorted);
    if (sorted) s->sorted = sorted;
    if (!v || !sorted) return false;
    s->cap = cap;
    return true;
}

// Where v stands among the sorted values, or would.
static size_t place_of(const struct values *s, double v) {
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->sorted[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void forget_answer(struct values *s) {
    sqlite3_free(s->answer);
    s->answer = NULL;
}

static void step(sqlite3_context *x, int n, sqlite3_value **arg) {
    struct values *const s = sqlite3_aggregate_context(x, sizeof *s);
    const int type = sqlite3_value_numeric_type(arg[0]);
    (void)n;
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
    if (!s || !make_room(s)) {
        sqlite3_result_error_nomem(x);
        return;
    }
    const double v = sqlite3_value_double(arg[0]);
    const size_t at = place_of(s, v);
    memmove(&s->sorted[at + 1], &s->sorted[at], (s->n - at) * sizeof v);
    s->sorted[at] = v;
    s->v[s->n++] = v;
    forget_answer(s);
}

// The first value leaves the window.
static void inverse(sqlite3_context *x, int n, sqlite3_value **arg) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    const int type = sqlite3_value_numeric_type(arg[0]);
    (void)n;
    if (!s || !s->n || (type != SQLITE_INTEGER && type != SQLITE_FLOAT)) return;
    const size_t at = place_of(s, s->v[0]);
    s->n--;
    memmove(&s->sorted[at], &s->sorted[at + 1], (s->n - at) * sizeof *s->v);
    memmove(s->v, s->v + 1, s->n * sizeof *s->v);
    forget_answer(s);
}

static void end(sqlite3_context *x) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s) return;
    sqlite3_free(s->v);
    sqlite3_free(s->sorted);
    forget_answer(s);
    *s = (struct values){0};
}

// ---- the median ----

static void median(sqlite3_context *x) {
    const struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s || !s->n) return; // NULL
    const double *const v = s->sorted;
    const size_t n = s->n;
    sqlite3_result_double(x, n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2);
}

static void last_median(sqlite3_context *x) {
    median(x);
    end(x);
}

// ---- levels ----

static char *write_starts(const size_t *starts, size_t n) {
    sqlite3_str *const text = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(text, 1, '[');
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(text, i ? ",%llu" : "%llu", (unsigned long long)starts[i] + 1);
    sqlite3_str_appendchar(text, 1, ']');
    return sqlite3_str_finish(text);
}

static bool find_starts(struct values *s) {
    size_t n = 0;
    size_t *const starts = sqlite3_malloc64((s->n + 1) * sizeof *starts);
    if (starts && xpl_series_changes(s->v, s->n, starts, &n, NULL) == XPL_OK)
        s->answer = write_starts(starts, n);
    sqlite3_free(starts);
    return s->answer;
}

static void starts(sqlite3_context *x) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s || !s->n)
        sqlite3_result_text(x, "[]", 2, SQLITE_STATIC);
    else if (s->n > XPL_SERIES_MOST)
        sqlite3_result_error(x, "level_starts: more than 4096 values", -1);
    else if (s->answer || find_starts(s))
        sqlite3_result_text(x, s->answer, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(x);
}

static void last_starts(sqlite3_context *x) {
    starts(x);
    end(x);
}

int xpl_sql_series_declare(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int rc = sqlite3_create_window_function(db, "median", 1, flags, NULL, step, last_median,
                                                  median, inverse, NULL);
    return rc != SQLITE_OK
               ? rc
               : sqlite3_create_window_function(db, "level_starts", 1, flags, NULL, step,
                                                last_starts, starts, inverse, NULL);
}
