// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/verdict.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/breakdown/breakdown.h"
#include "base/text/near.h"
#include "cli/document/document.h"
#include "cli/table.h"

// ---- reading a threshold ----

static int bad_threshold(const struct xpl_threshold *t, const char *text, size_t at,
                         const char *what) {
    (void)fprintf(stderr, "xplanectl: --%s \"%s\", character %zu: %s, as in step_time>5%%\n",
                  t->flag, text, at + 1, what);
    return XPL_EXIT_USAGE;
}

// Metrics that are not causes.
static const char *const step_metrics[] = {"step_time", "median_step_time"};
enum { STEP_METRICS = sizeof step_metrics / sizeof *step_metrics };

static bool is_metric(const char *text, size_t n) {
    const xpl_str_t metric = {text, n};
    for (size_t i = 0; i < STEP_METRICS; i++)
        if (xpl_str_eq(metric, xpl_str_from(step_metrics[i]))) return true;
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        if (xpl_str_eq(metric, xpl_str_from(xpl_time_cause_names[i]))) return true;
    return false;
}

static int unknown_metric(const struct xpl_threshold *t, const char *text, size_t n) {
    struct xpl_near near = xpl_near_begin((xpl_str_t){text, n});
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < STEP_METRICS; i++)
        xpl_near_add(&near, xpl_str_from(step_metrics[i]));
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        xpl_near_add(&near, xpl_str_from(xpl_time_cause_names[i]));
    (void)fprintf(stderr, "xplanectl: --%s \"%.40s\", character 1: unknown metric \"%.*s\"%s\n",
                  t->flag, text, (int)(n < 40 ? n : 40), text, xpl_near_text(&near, hint));
    if (near.best.len) return XPL_EXIT_USAGE;
    (void)fputs("Metrics: step_time, median_step_time", stderr);
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        (void)fprintf(stderr, ", %s", xpl_time_cause_names[i]);
    (void)fputc('\n', stderr);
    return XPL_EXIT_USAGE;
}

// Of the name at the text's begin, which may be no metric's.
static size_t name_length(const char *text) {
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' || (text[n] & 0x80))
        n++;
    return n;
}

// Reads the number at text[at]; *ret_end is behind it, or at the character that is none.  Of what
// strtod reads neither "inf" and "nan" nor hexadecimal digits.
static bool read_number(const char *text, size_t at, double *ret, size_t *ret_end) {
    const size_t n = strspn(text + at, "+-.0123456789eE");
    size_t first = at + (text[at] == '-' || text[at] == '+');
    char *end;
    first += text[first] == '.';
    *ret_end = first;
    if (!isdigit((unsigned char)text[first])) return false;
    *ret = strtod(text + at, &end);
    *ret_end = end > text + at + n ? at + n : (size_t)(end - text);
    return true;
}

int xpl_threshold_parse(const char *flag, const char *text, struct xpl_threshold *t) {
    size_t end;
    *t = (struct xpl_threshold){.flag = flag};
    if (!text) return XPL_EXIT_OK;
    const size_t n = name_length(text);
    if (!n) return bad_threshold(t, text, 0, "a metric is missing");
    if (!is_metric(text, n)) return unknown_metric(t, text, n);
    if (text[n] != '<' && text[n] != '>') return bad_threshold(t, text, n, "> or < is missing");
    memcpy(t->metric, text, n);
    t->sign = text[n];
    if (!read_number(text, n + 1, &t->percent, &end))
        return bad_threshold(t, text, end, "a number is missing");
    if (!isfinite(t->percent)) return bad_threshold(t, text, n + 1, "the number is too large");
    if (text[end] != '%') return bad_threshold(t, text, end, "% is missing");
    if (text[end + 1]) return bad_threshold(t, text, end + 1, "unexpected text after %");
    return XPL_EXIT_OK;
}

// ---- judging ----

// The metric's member of the comparison; NULL: such runs have no such cause.
static const json_t *find_metric(const json_t *all, const char *metric) {
    size_t i;
    json_t *t;
    for (i = 0; i < STEP_METRICS; i++)
        if (strcmp(metric, step_metrics[i]) == 0) return json_object_get(all, metric);
    json_array_foreach(json_object_get(all, "times"), i, t) {
        if (strcmp(metric, xpl_document_chars(t, "cause")) == 0) return t;
    }
    return NULL;
}

// A difference and its interval, in ps; of "<" all with the other sign, so that more is worse.
struct difference {
    double a, v, low, high, limit;
    bool has_interval, is_single; // one run a side, and no history
};

static double end_of(const json_t *m, size_t i) {
    return json_number_value(json_array_get(json_object_get(m, "interval_ps"), i));
}

static struct difference difference_of(const json_t *all, const json_t *m,
                                       const struct xpl_threshold *t) {
    const double sign = t->sign == '>' ? 1 : -1;
    const char *const noise = xpl_document_chars(m, "noise");
    struct difference d = {.a = xpl_document_real(m, "a_ps"),
                           .v = sign * xpl_document_real(m, "difference_ps"),
                           .has_interval = json_is_array(json_object_get(m, "interval_ps"))};
    d.is_single = xpl_document_real(json_object_get(all, "a"), "runs") < 2 &&
                  xpl_document_real(json_object_get(all, "b"), "runs") < 2 &&
                  strcmp(noise, "history") != 0;
    d.low = d.high = d.v;
    if (d.has_interval) {
        d.low = sign * end_of(m, sign > 0 ? 0 : 1);
        d.high = sign * end_of(m, sign > 0 ? 1 : 0);
    }
    d.limit = sign * d.a * t->percent / 100;
    return d;
}

// Met: a difference is certain, and the estimate is above the limit; of a limit below 0 all of the
// interval is.  Not met: all of the interval is at most the limit.  `possible`: met if any of the
// interval is above the limit.
static int judge(const struct difference *d, bool possible) {
    if (possible) return d->high > d->limit ? XPL_EXIT_THRESHOLD : XPL_EXIT_OK;
    if (d->v > d->limit && d->low > fmin(0, d->limit)) return XPL_EXIT_THRESHOLD;
    return d->high <= d->limit ? XPL_EXIT_OK : XPL_EXIT_UNKNOWN;
}

// "+8.10%"; "from 0" if A is 0.
static void show_percent(char out[32], double ps, double a) {
    if (a > 0)
        xpl_show_change(out, 100 * ps / a, 2);
    else
        (void)snprintf(out, 32, "%s", ps > 0 ? "from 0" : "+0.00%");
}

// "step_time differs by +5.00% (95%: +1.00% to +9.00%)".
static int put_difference(char *out, size_t size, const json_t *m, const struct difference *d,
                          const struct xpl_threshold *t) {
    char text[3][32];
    const double sign = t->sign == '>' ? 1 : -1;
    show_percent(text[0], sign * d->v, d->a);
    if (!d->has_interval || !(d->a > 0))
        return snprintf(out, size, "%s differs by %s", t->metric, text[0]);
    show_percent(text[1], end_of(m, 0), d->a);
    show_percent(text[2], end_of(m, 1), d->a);
    return snprintf(out, size, "%s differs by %s (95%%: %s to %s)", t->metric, text[0], text[1],
                    text[2]);
}

enum { MOST_RUNS = 100 };

// How many runs a side would show a difference of the limit, from what so many show: the error of a
// mean falls with the root of their number.
static void put_advice(char *out, size_t size, const json_t *all, const json_t *m,
                       const struct difference *d) {
    const double runs = fmin(xpl_document_real(json_object_get(all, "a"), "runs"),
                             xpl_document_real(json_object_get(all, "b"), "runs"));
    const double ratio = xpl_document_real(m, "detectable_ps") / fabs(d->limit);
    const double need = ceil(runs * ratio * ratio);
    *out = 0;
    if (!(fabs(d->limit) > 0) || !(need > runs)) return;
    if (need <= MOST_RUNS)
        (void)snprintf(out, size, "; about %.0f runs a side would show it", need);
    else
        (void)snprintf(out, size, "; over %d runs a side would be needed", MOST_RUNS);
}

static int cannot_tell(const char *why, char out[XPL_VERDICT_TEXT]) {
    (void)snprintf(out, XPL_VERDICT_TEXT, "%s", why);
    return XPL_EXIT_UNKNOWN;
}

int xpl_threshold_judge(const json_t *all, const struct xpl_threshold *t, bool allow_single,
                        char out[XPL_VERDICT_TEXT]) {
    const json_t *const m = find_metric(all, t->metric);
    char advice[80] = "";
    if (!m) {
        (void)snprintf(out, XPL_VERDICT_TEXT, "--%s: of these runs no %s is known", t->flag,
                       t->metric);
        return XPL_EXIT_FAILED;
    }
    if (!json_is_number(json_object_get(m, "difference_ps"))) {
        (void)snprintf(out, XPL_VERDICT_TEXT, "--%s: a run has no steps, and therefore no %s",
                       t->flag, t->metric);
        return XPL_EXIT_FAILED;
    }
    const struct difference d = difference_of(all, m, t);
    if (d.is_single && !allow_single)
        return cannot_tell("one run a side cannot tell noise from change: give several runs of "
                           "each side, as in A1,A2,A3 B1,B2,B3, or label earlier sessions of the "
                           "program, or use --allow-single",
                           out);
    if (!d.has_interval && !d.is_single)
        return cannot_tell("the noise between the runs is not known: too few of them have a value",
                           out);
    const int status = judge(&d, t->possible);
    int n = put_difference(out, XPL_VERDICT_TEXT, m, &d, t);
    if (status == XPL_EXIT_UNKNOWN) put_advice(advice, sizeof advice, all, m, &d);
    (void)snprintf(out + n, XPL_VERDICT_TEXT - (size_t)n, ": %s%c%g%% %s%s", t->metric, t->sign,
                   t->percent,
                   status == XPL_EXIT_OK          ? "is not met"
                   : status == XPL_EXIT_THRESHOLD ? (t->possible ? "is possible" : "is met")
                                                  : "cannot be told from noise",
                   advice);
    return status;
}

int xpl_worse_verdict(int a, int b) {
    static const int order[] = {XPL_EXIT_OK,        XPL_EXIT_PARTLY, XPL_EXIT_UNKNOWN,
                                XPL_EXIT_THRESHOLD, XPL_EXIT_USAGE,  XPL_EXIT_FAILED};
    size_t i = sizeof order / sizeof *order;
    while (i-- > 0)
        if (order[i] == a || order[i] == b) return order[i];
    return a;
}
