// SPDX-License-Identifier: Apache-2.0
#include "cli/iree/sides.h"

#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "cli/document/document.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/runs/place.h"
#include "storage/sessions/catalogue.h"

enum { PS_PER_NS = 1000, MAX_GEOMETRY = 128 };

// ---- what a run is ----

static bool is_path_of_bundles(const char *path) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_inputs in;
    struct xpl_error err = {0};
    xpl_arena_init(&arena, (size_t)64 << 20);
    if (xpl_inputs_from_paths(&path, 1, xpl_format_match, &arena, &in, &err) != XPL_OK ||
        in.n_hosts == 0)
        return false; // what is wrong is said by who opens it
    const struct xpl_format *const f = xpl_format_of_name(xpl_str_from(in.hosts[0].path), NULL);
    return f && f->kind == XPL_KIND_IREE;
}

bool xpl_sides_is_bundle(const struct xpl_args *a, const char *run) {
    xpl_sessions *list = NULL;
    xpl_result r;
    if (xpl_run_place(a, run) == XPL_RUN_PATH) return is_path_of_bundles(run);
    xpl_client *const c = xpl_remote_open(a);
    if (!c) return false;
    const bool known = xpl_client_session(c, run, &list, &r) == 0 && xpl_sessions_count(list) == 1;
    const bool is =
        known && strcmp(xpl_sessions_get(list, 0)->kind, xpl_kind_name(XPL_KIND_IREE)) == 0;
    xpl_sessions_free(list);
    xpl_client_close(c);
    return is;
}

// ---- its rows ----

struct filling {
    struct xpl_arena *arena;
    struct xpl_run_summary *s;
};
typedef bool add_row(struct filling *f, const json_t *row);

static bool add_rows(struct filling *f, const void *p, size_t n, add_row *add) {
    const char *at = p, *const end = at + n;
    bool ok = true;
    while (ok && at < end) {
        const char *const eol = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((eol ? eol : end) - at);
        json_t *const row = json_loadb(at, length, 0, NULL);
        ok = row && add(f, row);
        json_decref(row);
        at += length + 1;
    }
    return ok;
}

// "4x2x1 of 64x1x1": workgroups, and the invocations of each.
static void write_geometry(const json_t *row, char ret[MAX_GEOMETRY]) {
    long long v[6] = {0};
    const json_t *const count = json_object_get(row, "workgroup_count"), *const size =
                                                                             json_object_get(
                                                                                 row,
                                                                                 "workgroup_size");
    for (size_t i = 0; i < 3; i++) {
        v[i] = json_integer_value(json_array_get(count, i));
        v[3 + i] = json_integer_value(json_array_get(size, i));
    }
    (void)snprintf(ret, MAX_GEOMETRY, "%lldx%lldx%lld of %lldx%lldx%lld", v[0], v[1], v[2], v[3],
                   v[4], v[5]);
}

static uint64_t count_of(const json_t *row, const char *key) {
    const double v = xpl_document_real(row, key);
    return v > 0 && v < 1e15 ? (uint64_t)v : 0;
}

// Ticks of a device without a clock have no length: such functions count, and take no time.
static bool add_function(struct filling *f, const json_t *row) {
    char geometry[MAX_GEOMETRY];
    if (strcmp(xpl_document_chars(row, "type"), "function") != 0) return true;
    struct xpl_run_row *const r = xpl_vec_push(f->arena, &f->s->ops);
    if (!r) return false;
    write_geometry(row, geometry);
    *r = (struct xpl_run_row){.ps = (uint64_t)(xpl_document_real(row, "total_ns") * PS_PER_NS),
                              .count = count_of(row, "dispatches")};
    return xpl_arena_str(f->arena, xpl_document_text(row, "key"), &r->text[XPL_RUN_OP]) &&
           xpl_arena_str(f->arena, xpl_document_text(row, "timing_source"),
                         &r->text[XPL_RUN_CATEGORY]) &&
           xpl_arena_str(f->arena, xpl_str_from(geometry), &r->text[XPL_RUN_SHAPE]);
}

static bool add_iteration(struct filling *f, const json_t *row) {
    if (strcmp(xpl_document_chars(row, "type"), "iterations") == 0) {
        f->s->n_devices++;
        f->s->units += count_of(row, "iterations");
    }
    if (strcmp(xpl_document_chars(row, "type"), "iteration") != 0 ||
        !json_is_true(json_object_get(row, "interval_available")))
        return true;
    uint64_t *const step = xpl_vec_push(f->arena, &f->s->steps);
    if (step) *step = count_of(row, "interval_ns") * PS_PER_NS;
    return step;
}

static bool ask(const struct xpl_args *a, const char *tool, const char *run, add_row *add,
                struct filling *f) {
    struct xpl_run_answer answer;
    const int status = xpl_run_answer(a, tool, run, &answer);
    const bool got = xpl_is_answered(status);
    const bool ok = got && add_rows(f, answer.p, answer.n, add);
    if (got && !ok) (void)fprintf(stderr, "xplanectl: the rows of %s cannot be read\n", run);
    xpl_run_answer_fini(&answer);
    return ok;
}

struct xpl_run_summary *xpl_sides_summary(const struct xpl_args *a, const char *run,
                                          struct xpl_arena *arena) {
    struct filling f = {arena, xpl_arena_zalloc(arena, sizeof *f.s)};
    if (!f.s || !ask(a, "iree_functions", run, add_function, &f) ||
        !ask(a, "iree_iterations", run, add_iteration, &f))
        return NULL;
    f.s->n_hosts = 1;
    if (!f.s->units) f.s->units = 1; // nothing repeats: the run is the unit
    return f.s;
}
