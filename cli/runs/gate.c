// SPDX-License-Identifier: Apache-2.0
// `xplanectl gate`: runs against a baseline, for CI.
#include "cli/runs/gate.h"

#include <string.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/document/document.h"
#include "cli/remote.h"
#include "cli/runs/compare.h"
#include "cli/runs/directory.h"
#include "cli/runs/place.h"
#include "storage/sessions/catalogue.h"

#define PRESET "step_time>5%"
enum { LAST = 10 };

// ---- which runs ----

struct names {
    struct xpl_arena *arena;
    XPL_VEC(const char *) v;
};

static bool add(struct names *n, const char *run) {
    const char **const slot = xpl_vec_push(n->arena, &n->v);
    if (slot) *slot = run;
    if (!slot) (void)fputs("xplanectl: out of memory\n", stderr);
    return slot;
}

static size_t last_of(const struct xpl_args *a) {
    return a->last ? (size_t)a->last : LAST;
}

// Whether the path is a directory without profiles directly in it, such as a log directory.
static bool has_runs(const char *path) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct xpl_inputs in;
    struct xpl_error err = {0};
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return false;
    return xpl_inputs_from_paths(&path, 1, xpl_format_match, &arena, &in, &err) != XPL_OK;
}

static int add_run(const struct xpl_args *a, const char *run, struct names *n) {
    struct xpl_run_below *below;
    size_t n_below;
    if (xpl_run_place(a, run) != XPL_RUN_PATH || !has_runs(run))
        return add(n, run) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    const int status = xpl_runs_below("", run, 0, last_of(a), n->arena, &below, &n_below);
    if (status != XPL_EXIT_OK) return status;
    for (size_t i = n_below; i-- > 0;) // in order of time
        if (!add(n, below[i].path)) return XPL_EXIT_FAILED;
    return XPL_EXIT_OK;
}

static bool is_among(const char *run, const struct names *n) {
    for (size_t i = 0; i < n->v.n; i++)
        if (strcmp(n->v.v[i], run) == 0) return true;
    return false;
}

// The label's newest sessions, without those that are judged or that cannot be read.
static int add_sessions(const struct xpl_args *a, const json_t *all, const struct names *judged,
                        struct names *n) {
    const json_t *const list = json_object_get(all, "sessions");
    for (size_t i = json_array_size(list); i-- > 0 && n->v.n < last_of(a);) {
        const json_t *const session = json_array_get(list, i);
        const xpl_str_t name = xpl_document_text(session, "session");
        xpl_str_t copy;
        if (xpl_document_text(session, "error").len) continue;
        if (!xpl_arena_printf(n->arena, &copy, "%.*s%c", XPL_STR_FMT(name), 0))
            return XPL_EXIT_FAILED;
        if (!is_among(copy.ptr, judged) && !add(n, copy.ptr)) return XPL_EXIT_FAILED;
    }
    if (n->v.n) return XPL_EXIT_OK;
    (void)fprintf(stderr, "xplanectl: --label %s: no other session has the label\n", a->label);
    return XPL_EXIT_FAILED;
}

static int add_label(const struct xpl_args *a, const struct names *judged, struct names *n) {
    const xpl_history_request q = {
        .size = sizeof q, .label = a->label, .last = (uint32_t)(last_of(a) + judged->v.n)};
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    XPL_AUTO(xpl_remote_drop) xpl_answer *answer = NULL;
    xpl_result r;
    size_t size;
    if (!c) return XPL_EXIT_FAILED;
    if (xpl_client_history(c, &q, &answer, &r) != 0) return xpl_remote_failed(&r);
    const void *const p = xpl_answer_data(answer, &size);
    json_auto_t *all = xpl_document_read(p, size);
    return all ? add_sessions(a, all, judged, n) : XPL_EXIT_FAILED;
}

static int add_base(const struct xpl_args *a, const struct names *judged, struct names *n) {
    struct xpl_run_names given = {0};
    int status = XPL_EXIT_OK;
    if (!a->base) return add_label(a, judged, n);
    if (!xpl_run_names_parse(a->base, &given)) status = XPL_EXIT_USAGE;
    for (size_t i = 0; i < given.n && status == XPL_EXIT_OK; i++) {
        xpl_str_t copy;
        if (!xpl_arena_printf(n->arena, &copy, "%s%c", given.runs[i], 0)) status = XPL_EXIT_FAILED;
        if (status == XPL_EXIT_OK) status = add_run(a, copy.ptr, n);
    }
    xpl_run_names_fini(&given);
    return status;
}

// ---- the judgement ----

static void judge(struct xpl_gate *g, const struct xpl_threshold *t, bool allow_single) {
    if (!t->sign) return;
    char *const text = g->sentences[g->n_sentences++];
    const int status = xpl_threshold_judge(g->comparison, t, allow_single, text);
    if (status != XPL_EXIT_OK) (void)fprintf(stderr, "xplanectl: %s\n", text);
    g->status = xpl_worse_verdict(g->status, status);
}

static int write_json(const struct xpl_args *a, const struct xpl_gate *g) {
    json_auto_t *doc = xpl_gate_json(g);
    return doc ? xpl_document_write(a, doc) : XPL_EXIT_FAILED;
}

static int report(const struct xpl_args *a, const struct xpl_threshold *t, const json_t *all,
                  int status) {
    struct xpl_gate g = {.status = status, .comparison = all};
    for (size_t i = 0; i < XPL_GATE_THRESHOLDS; i++)
        judge(&g, &t[i], a->allow_single);
    const int written = a->json ? write_json(a, &g) : xpl_write_text(a, xpl_gate_print, &g);
    return xpl_worse_verdict(g.status, written);
}

static int gate(const struct xpl_args *a, const struct xpl_threshold *t, struct xpl_arena *arena) {
    struct names judged = {.arena = arena}, base = {.arena = arena};
    json_auto_t *all = NULL;
    int status = XPL_EXIT_OK;
    for (size_t i = 1; i < a->n_rest && status == XPL_EXIT_OK; i++)
        status = add_run(a, a->rest[i], &judged);
    if (status == XPL_EXIT_OK) status = add_base(a, &judged, &base);
    if (status != XPL_EXIT_OK) return status;
    const struct xpl_run_names sides[2] = {{NULL, base.v.v, base.v.n},
                                           {NULL, judged.v.v, judged.v.n}};
    status = xpl_runs_make_comparison(a, sides, &all);
    if (xpl_is_answered(status)) status = report(a, t, all, status);
    return status;
}

int xpl_runs_gate(const struct xpl_args *a) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct xpl_threshold t[XPL_GATE_THRESHOLDS];
    const char *const preset = a->fail_if_possible ? NULL : PRESET;
    if (!a->base == !a->label) {
        (void)fputs("xplanectl: gate: the baseline is either --base or --label\n", stderr);
        return XPL_EXIT_USAGE;
    }
    int status = xpl_threshold_parse("fail-if", a->fail_if ? a->fail_if : preset, &t[0]);
    if (status == XPL_EXIT_OK)
        status = xpl_threshold_parse("fail-if-possible", a->fail_if_possible, &t[1]);
    if (status != XPL_EXIT_OK) return status;
    t[1].possible = true;
    return gate(a, t, &arena);
}
