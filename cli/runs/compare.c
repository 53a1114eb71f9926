// SPDX-License-Identifier: Apache-2.0
// `xplanectl compare`: two runs, or groups of runs, beside each other.  The tools time_breakdown
// and op_list answer for each, through a daemon or without one.
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/text/near.h"
#include "cli/remote.h"
#include "cli/table.h"

// ---- thresholds: --fail-if 'step_time>5%' ----

struct threshold {
    char metric[64];
    char sign; // '<' or '>'; 0: none was given
    double percent;
};

static int bad_threshold(const char *text, size_t at, const char *what) {
    (void)fprintf(stderr, "xplanectl: --fail-if \"%s\", character %zu: %s, as in step_time>5%%\n",
                  text, at + 1, what);
    return XPL_EXIT_USAGE;
}

static int parse_threshold(const char *text, struct threshold *t) {
    *t = (struct threshold){0};
    if (!text) return XPL_EXIT_OK;
    const size_t n = strcspn(text, "<>");
    if (!n || n >= sizeof t->metric) return bad_threshold(text, 0, "a metric is missing");
    if (!text[n]) return bad_threshold(text, n, "> or < is missing");
    memcpy(t->metric, text, n);
    t->sign = text[n];
    char *end;
    t->percent = strtod(text + n + 1, &end);
    if (end == text + n + 1 || !isfinite(t->percent))
        return bad_threshold(text, n + 1, "a number is missing");
    if (strcmp(end, "%") != 0)
        return bad_threshold(text, (size_t)(end - text), "% and the end are missing");
    return XPL_EXIT_OK;
}

// The metric's member of the comparison; NULL: there is none of that name.
static const json_t *find_metric(const json_t *all, const char *metric) {
    size_t i;
    json_t *t;
    if (strcmp(metric, "step_time") == 0) return json_object_get(all, "step_time");
    json_array_foreach(json_object_get(all, "times"), i,
                       t) if (strcmp(json_string_value(json_object_get(t, "cause")), metric) ==
                              0) return t;
    return NULL;
}

static int unknown_metric(const json_t *all, const char *metric) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(metric));
    char hint[XPL_NEAR_TEXT];
    size_t i;
    json_t *t;
    xpl_near_add(&near, XPL_STR("step_time"));
    json_array_foreach(json_object_get(all, "times"), i, t)
        xpl_near_add(&near, xpl_str_from(json_string_value(json_object_get(t, "cause"))));
    (void)fprintf(stderr, "xplanectl: --fail-if: unknown metric \"%s\"%s\n", metric,
                  xpl_near_text(&near, hint));
    return XPL_EXIT_USAGE;
}

static int judge(const json_t *all, const struct threshold *t) {
    if (!t->sign) return XPL_EXIT_OK;
    const json_t *const m = find_metric(all, t->metric);
    if (!m) return unknown_metric(all, t->metric);
    const json_t *const percent = json_object_get(m, "difference_percent");
    double v = json_number_value(percent);
    if (json_is_null(percent)) { // of nothing everything is infinitely much more
        const bool more = json_real_value(json_object_get(m, "difference_ps")) > 0;
        if (strcmp(t->metric, "step_time") == 0) {
            (void)fputs("xplanectl: --fail-if: a run has no steps, so that there is no step_time\n",
                        stderr);
            return XPL_EXIT_FAILED;
        }
        v = more ? (double)INFINITY : 0;
    }
    const bool met = t->sign == '>' ? v > t->percent : v < t->percent;
    if (met)
        (void)fprintf(stderr, "xplanectl: %s differs by %+.2f%%: %s%c%g%% is met\n", t->metric, v,
                      t->metric, t->sign, t->percent);
    return met ? XPL_EXIT_THRESHOLD : XPL_EXIT_OK;
}

// ---- runs ----

static json_t *parse(const void *p, size_t n) {
    json_error_t why;
    json_t *const j = json_loadb(p, n, 0, &why);
    if (!j) (void)fprintf(stderr, "xplanectl: an answer cannot be read: %s\n", why.text);
    return j;
}

static json_t *of_path(const struct xpl_args *args, const char *tool, const char *path) {
    const char *rest[] = {"analyze", tool, path};
    struct xpl_args a = *args;
    struct xpl_buf out;
    a.rest = rest;
    a.n_rest = 3;
    json_t *const j = xpl_analyze(&a, &out) == XPL_EXIT_OK ? parse(out.p, out.n) : NULL;
    xpl_buf_fini(&out);
    return j;
}

static json_t *of_session(const struct xpl_args *a, const char *tool, const char *session) {
    xpl_client *const c = xpl_remote_open(a);
    const xpl_tool_request q = xpl_remote_request(a, tool, session);
    xpl_answer *answer = NULL;
    xpl_result r;
    json_t *j = NULL;
    if (!c) return NULL;
    if (xpl_client_tool(c, &q, &answer, &r) != 0) {
        (void)xpl_remote_failed(&r);
    } else {
        size_t n;
        const void *const p = xpl_answer_data(answer, &n);
        for (size_t i = 0; xpl_answer_warning(answer, i); i++)
            (void)fprintf(stderr, "xplanectl: warning: %s\n", xpl_answer_warning(answer, i));
        j = parse(p, n);
    }
    xpl_answer_free(answer);
    xpl_client_close(c);
    return j;
}

static bool add_run(const struct xpl_args *a, const char *run, struct xpl_compare_side *s) {
    json_t *(*const ask)(const struct xpl_args *, const char *, const char *) =
        access(run, F_OK) == 0 ? of_path : of_session;
    json_t *const breakdown = ask(a, "time_breakdown", run), *const ops =
                                                                 breakdown ? ask(a, "op_list", run)
                                                                           : NULL;
    if (!ops) {
        json_decref(breakdown);
        return false;
    }
    if (xpl_compare_add(s, breakdown, ops)) return true;
    (void)fprintf(stderr, "xplanectl: the times of %s cannot be read\n", run);
    return false;
}

// "A1,A2": several runs, unless there is such a path.
static bool add_runs(const struct xpl_args *a, const char *operand, struct xpl_compare_side *s) {
    if (access(operand, F_OK) == 0 || !strchr(operand, ',')) return add_run(a, operand, s);
    char *const list = strdup(operand);
    bool ok = list;
    for (char *rest = list, *run; ok && (run = strsep(&rest, ","));)
        ok = add_run(a, run, s);
    free(list);
    return ok;
}

// ---- text ----

enum { TOP = 20, NAME_WIDTH = 50 };

static xpl_str_t text_of(const json_t *o, const char *key) {
    const char *const t = json_string_value(json_object_get(o, key));
    return xpl_str_from(t ? t : "");
}

static double real_of(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static void put_time(struct xpl_table *t, double ps) {
    char text[32];
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(ps), 1e19));
    xpl_table_printf(t, "%s", text);
}

static void put_difference(struct xpl_table *t, const json_t *o) {
    char text[32];
    const double ps = real_of(o, "difference_ps");
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(ps), 1e19));
    xpl_table_printf(t, "%s%s", ps < 0 ? "-" : "+", text);
}

static void print_steps(const json_t *all) {
    const json_t *const d = json_object_get(all, "step_time"), *const ends = json_object_get(
                                                                   d, "interval_ps");
    char a[32], b[32];
    xpl_show_time_ps(a, (uint64_t)real_of(json_object_get(all, "a"), "mean_step_ps"));
    xpl_show_time_ps(b, (uint64_t)real_of(json_object_get(all, "b"), "mean_step_ps"));
    (void)printf("Step time  %s (%.0f steps) -> %s (%.0f steps)", a,
                 real_of(json_object_get(all, "a"), "steps"), b,
                 real_of(json_object_get(all, "b"), "steps"));
    if (json_is_number(json_object_get(d, "difference_percent")))
        (void)printf(", %+.2f%%", real_of(d, "difference_percent"));
    if (json_is_array(ends))
        (void)printf(", difference %+.3f to %+.3f ms (95%%)\n",
                     json_real_value(json_array_get(ends, 0)) / 1e9,
                     json_real_value(json_array_get(ends, 1)) / 1e9);
    else
        (void)printf(", too few steps for an interval (%d are needed)\n", XPL_COMPARE_LEAST_STEPS);
}

static void print_table(struct xpl_table *t) {
    if (!xpl_table_print(t, stdout)) (void)fputs("xplanectl: out of memory\n", stderr);
    xpl_table_free(t);
}

static void print_times(const json_t *all) {
    static const char *const columns[] = {"TIME PER STEP", ">A", ">B", ">DIFFERENCE"};
    struct xpl_table *const t = xpl_table_new(columns, 4);
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(all, "times"), i, c) {
        if (!(real_of(c, "a_ps") > 0) && !(real_of(c, "b_ps") > 0)) continue;
        xpl_table_text(t, text_of(c, "cause"), NAME_WIDTH);
        put_time(t, real_of(c, "a_ps"));
        put_time(t, real_of(c, "b_ps"));
        put_difference(t, c);
    }
    (void)printf("\n");
    print_table(t);
}

static void print_ops(const json_t *all) {
    static const char *const columns[] = {"OP PER STEP", "CATEGORY", "SHAPE",      "",
                                          ">A",          ">B",       ">DIFFERENCE"};
    struct xpl_table *const t = xpl_table_new(columns, 7);
    const json_t *const ops = json_object_get(all, "ops");
    double others = 0;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *const o = json_array_get(ops, i);
        const xpl_str_t state = text_of(o, "state");
        if (i >= TOP) {
            others += real_of(o, "difference_ps");
            continue;
        }
        xpl_table_text(t, text_of(o, "op"), NAME_WIDTH);
        xpl_table_text(t, text_of(o, "category"), 20);
        xpl_table_text(t, text_of(o, "shape"), 20);
        xpl_table_text(t, xpl_str_eq(state, XPL_STR("both")) ? XPL_STR("") : state, 10);
        put_time(t, real_of(o, "a_ps"));
        put_time(t, real_of(o, "b_ps"));
        put_difference(t, o);
    }
    (void)printf("\n");
    print_table(t);
    if (json_array_size(ops) > TOP)
        (void)printf("  and %zu others, together %+.3f us\n", json_array_size(ops) - TOP,
                     others / 1e6);
}

// ---- the command ----

static int show(const struct xpl_args *args, bool json, const json_t *all) {
    if (!json) {
        print_steps(all);
        print_times(all);
        print_ops(all);
        return XPL_EXIT_OK;
    }
    char *const text = json_dumps(all, JSON_INDENT(1));
    struct xpl_buf line;
    if (!text) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    xpl_buf_init(&line, strlen(text) + 2);
    xpl_buf_str(&line, xpl_str_from(text));
    xpl_buf_putc(&line, '\n');
    const bool written = !line.failed && xpl_write_out(args, line.p, line.n);
    xpl_buf_fini(&line);
    free(text);
    return written ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

static int compare(const struct xpl_args *args, bool json, const struct threshold *t) {
    struct xpl_compare_side a = {0}, b = {0};
    json_t *all = NULL;
    int status = XPL_EXIT_FAILED;
    if (add_runs(args, args->rest[1], &a) && add_runs(args, args->rest[2], &b)) {
        all = xpl_compare_json(&a, &b);
        if (!all) (void)fputs("xplanectl: out of memory\n", stderr);
    }
    if (all) status = show(args, json, all);
    if (status == XPL_EXIT_OK) status = judge(all, t);
    json_decref(all);
    xpl_compare_fini(&a);
    xpl_compare_fini(&b);
    return status;
}

int xpl_cmd_compare(const struct xpl_args *args) {
    const bool json = args->json || (args->format && strcmp(args->format, "json") == 0);
    struct threshold t;
    if (args->format && !json && strcmp(args->format, "table") != 0) {
        (void)fprintf(stderr, "xplanectl: --format of compare is table or json, not %s\n",
                      args->format);
        return XPL_EXIT_USAGE;
    }
    const int status = parse_threshold(args->fail_if, &t);
    return status == XPL_EXIT_OK ? compare(args, json, &t) : status;
}
