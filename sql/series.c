// SPDX-License-Identifier: Apache-2.0
#include "sql/series.h"

#include <string.h>

#include "analysis/compare/series.h"

// The values of a window, in its order; values that are not numbers are left out.
struct values {
    double *v; // `n` from `first` on
    size_t first, n, cap;
    double *sorted; // the first n_sorted of them, only for the median
    size_t n_sorted, cap_sorted;
    char *answer; // of level_starts while the values stay the same, as SQLite calls it for each row
};

// INSERTED: above this number of insertions, sorting anew is cheaper than moving the sorted values.
enum { INSERTED = 128, CHECK_EVERY = 65536 };

// SQLite checks the clock only between the calls of some rows.
static bool is_late(sqlite3_context *x) {
    if (!xpl_exec_cancelled(sqlite3_user_data(x))) return false;
    sqlite3_result_error_code(x, SQLITE_INTERRUPT);
    return true;
}

// ---- values ----

static bool make_room(struct values *s) {
    if (s->first + s->n < s->cap) return true;
    if (s->first > s->n) {
        memmove(s->v, s->v + s->first, s->n * sizeof *s->v);
        s->first = 0;
        return true;
    }
    const size_t cap = s->cap ? 2 * s->cap : 64;
    double *const v = sqlite3_realloc64(s->v, cap * sizeof *v);
    if (!v) return false;
    s->v = v;
    s->cap = cap;
    return true;
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
    s->v[s->first + s->n++] = sqlite3_value_double(arg[0]);
    forget_answer(s);
}

// Where v stands among the sorted values, or would.
static size_t place_of(const struct values *s, double v) {
    size_t lo = 0, hi = s->n_sorted;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->sorted[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// The first value leaves the window.
static void inverse(sqlite3_context *x, int n, sqlite3_value **arg) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    const int type = sqlite3_value_numeric_type(arg[0]);
    (void)n;
    if (!s || !s->n || (type != SQLITE_INTEGER && type != SQLITE_FLOAT)) return;
    if (s->n_sorted) {
        const size_t at = place_of(s, s->v[s->first]);
        s->n_sorted--;
        memmove(&s->sorted[at], &s->sorted[at + 1], (s->n_sorted - at) * sizeof *s->v);
    }
    s->first++;
    s->n--;
    forget_answer(s);
}

static void series_end(sqlite3_context *x) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s) return;
    sqlite3_free(s->v);
    sqlite3_free(s->sorted);
    forget_answer(s);
    *s = (struct values){0};
}

// ---- sorting ----

static void sift(double *v, size_t i, size_t n) {
    const double moved = v[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && v[child] < v[child + 1]) child++;
        if (v[child] <= moved) break;
        v[i] = v[child];
    }
    v[i] = moved;
}

// In place: qsort allocates memory that the budget does not count.  False: the deadline has passed.
static bool sort(sqlite3_context *x, double *v, size_t n) {
    for (size_t i = n / 2; i-- > 0;)
        sift(v, i, n);
    for (size_t left = n; left-- > 1;) {
        const double most = v[0];
        if (left % CHECK_EVERY == 0 && is_late(x)) return false;
        v[0] = v[left];
        v[left] = most;
        sift(v, 0, left);
    }
    return true;
}

static bool make_room_to_sort(struct values *s) {
    if (s->n <= s->cap_sorted) return true;
    double *const sorted = sqlite3_realloc64(s->sorted, s->cap * sizeof *sorted);
    if (!sorted) return false;
    s->sorted = sorted;
    s->cap_sorted = s->cap;
    return true;
}

// Few values that came since the last time are put among the others, which a window that moves
// does at each row; many are sorted at once.
static bool sort_all(sqlite3_context *x, struct values *s) {
    if (!make_room_to_sort(s)) {
        sqlite3_result_error_nomem(x);
        return false;
    }
    const double *const v = s->v + s->first;
    if (s->n - s->n_sorted > INSERTED) {
        memcpy(s->sorted, v, s->n * sizeof *v);
        s->n_sorted = 0; // until they are
        if (!sort(x, s->sorted, s->n)) return false;
        s->n_sorted = s->n;
    }
    while (s->n_sorted < s->n) {
        const double one = v[s->n_sorted];
        const size_t at = place_of(s, one);
        memmove(&s->sorted[at + 1], &s->sorted[at], (s->n_sorted++ - at) * sizeof one);
        s->sorted[at] = one;
    }
    return true;
}

// ---- the median ----

static void median(sqlite3_context *x) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s || !s->n || is_late(x) || !sort_all(x, s)) return; // NULL where there is none
    const double *const v = s->sorted;
    const size_t n = s->n;
    sqlite3_result_double(x, n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2);
}

static void last_median(sqlite3_context *x) {
    median(x);
    series_end(x);
}

// ---- levels ----

static char *write_starts(const size_t *starts, size_t n, size_t skipped) {
    sqlite3_str *const text = sqlite3_str_new(NULL);
    sqlite3_str_appendchar(text, 1, '[');
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(text, i ? ",%llu" : "%llu",
                            (unsigned long long)(skipped + starts[i] + 1));
    sqlite3_str_appendchar(text, 1, ']');
    return sqlite3_str_finish(text);
}

// Of too many values the last ones count.
static bool find_starts(struct values *s) {
    const size_t most = XPL_SERIES_MOST, skipped = s->n > most ? s->n - most : 0;
    size_t n = 0;
    size_t *const starts = sqlite3_malloc64((s->n - skipped + 1) * sizeof *starts);
    if (starts &&
        xpl_series_changes(s->v + s->first + skipped, s->n - skipped, starts, &n, NULL) == XPL_OK)
        s->answer = write_starts(starts, n, skipped);
    sqlite3_free(starts);
    return s->answer;
}

static void starts(sqlite3_context *x) {
    struct values *const s = sqlite3_aggregate_context(x, 0);
    if (!s || !s->n)
        sqlite3_result_text(x, "[]", 2, SQLITE_STATIC);
    else if (!s->answer && is_late(x))
        return;
    else if (s->answer || find_starts(s))
        sqlite3_result_text(x, s->answer, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(x);
}

static void last_starts(sqlite3_context *x) {
    starts(x);
    series_end(x);
}

int xpl_sql_series_declare(sqlite3 *db, struct xpl_exec *exec) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int rc = sqlite3_create_window_function(db, "median", 1, flags, exec, step, last_median,
                                                  median, inverse, NULL);
    return rc != SQLITE_OK
               ? rc
               : sqlite3_create_window_function(db, "level_starts", 1, flags, exec, step,
                                                last_starts, starts, inverse, NULL);
}
