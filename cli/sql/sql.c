// SPDX-License-Identifier: Apache-2.0
// `xplanectl sql RUN... 'SELECT ...'`: a statement over profiles, of files or by the daemon.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"
#include "analysis/xplane/captured.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/text/near.h"
#include "base/vec.h"
#include "cli/csv/cells.h"
#include "cli/document/document.h"
#include "cli/output.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "cli/runs/place.h"
#include "cli/runs/runs.h"
#include "cli/table.h"
#include "sql/heap.h"
#include "sql/sql.h"
#include "storage/sessions/about.h"
#include "storage/sessions/catalogue.h"

#define LIMIT ((size_t)64 << 30) // of memory: main.c sets that of the machine
enum { CELL_WIDTH = 60, KEPT_OPEN = 8 };

// ---- files ----

struct file {
    struct xpl_source *source;
    struct xpl_profile profile;
};

struct place { // of a profile
    const char *path;
    xpl_str_t host;
    bool told; // what the file lost
};

struct summary {
    bool asked; // for it before
    const struct xpl_run_summary *made;
};

struct files {
    struct xpl_arena arena;
    XPL_VEC(struct xpl_sql_profile) profiles;
    XPL_VEC(struct place) places; // of the profiles
    XPL_VEC(xpl_str_t) hosts;     // of the runs, also those that --host leaves out
    XPL_VEC(struct xpl_sql_session) runs;
    XPL_VEC(struct summary) summaries; // of the runs
    bool partial;                      // a bundle that was read is not whole
    const struct xpl_args *args;
    struct xpl_exec *exec;
};

static void close_file(void *arg) {
    struct file *const f = arg;
    xpl_profile_close(&f->profile);
    xpl_source_free(f->source);
    xpl_sys_free(f);
}

static xpl_status_t open_file(void *arg, size_t i, struct xpl_exec *exec, void **ret_file,
                              xpl_bytes_t *ret, struct xpl_error *err) {
    struct files *const all = arg;
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = exec};
    struct place *const place = &all->places.v[i];
    const char *const path = place->path;
    struct xpl_error why = {0};
    struct file *const f = xpl_sys_alloc(sizeof *f);
    if (!f) XPL_RETURN_OOM(err, path);
    *f = (struct file){0};
    xpl_status_t st = xpl_source_open(AT_FDCWD, path, 0, &f->source, err);
    if (st == XPL_OK) {
        st = xpl_profile_open_as(XPL_FORM_XSPACE, xpl_str_from(path), xpl_source_bytes(f->source),
                                 &limits, &f->profile, &why);
        if (st != XPL_OK)
            (void)xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", path, why.msg);
    }
    if (st != XPL_OK) {
        close_file(f);
        return st;
    }
    all->partial |= f->profile.partial;
    if (f->profile.partial && !place->told)
        xpl_warn_of_view(path, place->host, path, xpl_source_bytes(f->source), f->profile.bytes,
                         all->exec);
    place->told = true; // a join opens files again
    *ret_file = f;
    *ret = f->profile.bytes;
    return XPL_OK;
}

static bool is_intact(void *arg) {
    return !xpl_source_is_truncated(((struct file *)arg)->source);
}

// When the newest file of a run was written; 0 where none can be looked at.
static int64_t newest_of(const struct xpl_inputs *in) {
    int64_t newest = 0;
    struct stat s;
    for (size_t i = 0; i < in->n_hosts; i++) {
        if (stat(in->hosts[i].path, &s) != 0) continue;
        const int64_t ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
        if (ns > newest) newest = ns;
    }
    return newest;
}

// When the run was captured, by the rule of sessions (docs/api.md); 0 where nothing can be read.
static int64_t captured_of(const struct xpl_inputs *in) {
    struct xpl_source *source = NULL;
    int64_t ns = 0, oldest = 0;
    const xpl_str_t path = in->n_hosts ? xpl_str_from(in->hosts[0].path) : XPL_STR("");
    if (xpl_str_ends(path, XPL_STR(XPL_FORMAT_SUFFIX)) && // one that is compressed does not say
        xpl_source_open(AT_FDCWD, path.ptr, 0, &source, NULL) == XPL_OK) {
        ns = xpl_xspace_captured_ns(xpl_source_bytes(source));
        if (xpl_source_verify(source, NULL) != XPL_OK) ns = 0;
        xpl_source_free(source);
    }
    if (!ns) ns = xpl_about_time_of_name(in->session);
    for (size_t i = 0; !ns && i < in->n_hosts; i++) {
        struct stat s;
        if (stat(in->hosts[i].path, &s) != 0) continue;
        const int64_t at = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
        if (!oldest || at < oldest) oldest = at;
    }
    return ns ? ns : oldest;
}

static xpl_status_t add_run(struct files *f, const struct xpl_args *a, const char *run,
                            struct xpl_error *err) {
    struct xpl_inputs in;
    XPL_TRY(xpl_inputs_from_paths(&run, 1, xpl_format_match, &f->arena, &in, err));
    xpl_warn_left_out(&in);
    const int64_t mtime_ns = newest_of(&in), captured_ns = captured_of(&in);
    struct xpl_sql_session *const session = xpl_vec_push(&f->arena, &f->runs);
    struct summary *const summary = xpl_vec_push(&f->arena, &f->summaries);
    if (!session || !summary) XPL_RETURN_OOM(err, run);
    *summary = (struct summary){0};
    *session = (struct xpl_sql_session){in.session, mtime_ns, captured_ns};
    for (size_t i = 0; i < in.n_hosts; i++) {
        xpl_str_t *const host = xpl_vec_push(&f->arena, &f->hosts);
        if (!host) XPL_RETURN_OOM(err, run);
        *host = in.hosts[i].name;
        if (!xpl_args_name_host(a, in.hosts[i].name)) continue;
        struct xpl_sql_profile *const p = xpl_vec_push(&f->arena, &f->profiles);
        struct place *const place = p ? xpl_vec_push(&f->arena, &f->places) : NULL;
        if (!place) XPL_RETURN_OOM(err, run);
        *p = (struct xpl_sql_profile){.session = in.session,
                                      .host = in.hosts[i].name,
                                      .path = in.hosts[i].path,
                                      .key = xpl_str_from(in.hosts[i].path),
                                      .session_mtime_ns = mtime_ns,
                                      .session_captured_ns = captured_ns};
        *place = (struct place){.path = in.hosts[i].path, .host = in.hosts[i].name};
    }
    return XPL_OK;
}

// The runs are the statement's arguments, in their order. A missing summary is reported once, when
// it is found: a join asks again.
static xpl_status_t summarize(void *arg, size_t i, struct xpl_exec *exec, struct xpl_arena *arena,
                              const struct xpl_run_summary **ret, struct xpl_error *err) {
    struct files *const f = arg;
    struct summary *const s = &f->summaries.v[i];
    (void)exec, (void)arena; // others ask for it again
    if (!s->asked)
        f->partial |= xpl_runs_summarize(f->args, f->args->rest[1 + i], &f->arena, &s->made) ==
                      XPL_EXIT_PARTLY;
    s->asked = true;
    *ret = s->made;
    if (!*ret) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no summary");
    return XPL_OK;
}

// A host that no run has is a mistake, not an empty answer.
static xpl_status_t check_hosts(const struct files *f, const struct xpl_args *a,
                                struct xpl_error *err) {
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < a->n_hosts; i++) {
        struct xpl_near near = xpl_near_begin(xpl_str_from(a->hosts[i]));
        bool found = strcmp(a->hosts[i], "ALL_HOSTS") == 0;
        for (size_t k = 0; k < f->hosts.n && !found; k++) {
            found = xpl_str_eq(f->hosts.v[k], near.given);
            xpl_near_add(&near, f->hosts.v[k]);
        }
        if (!found)
            XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no host \"%.80s\" among the files%s", a->hosts[i],
                             xpl_near_text(&near, hint));
    }
    return XPL_OK;
}

static xpl_status_t ask_files(const struct xpl_args *a, struct xpl_exec *exec, struct xpl_buf *out,
                              bool *ret_partial, struct xpl_error *err) {
    struct files f = {.args = a, .exec = exec};
    xpl_arena_init(&f.arena, LIMIT);
    xpl_status_t st = XPL_OK;
    for (size_t i = 1; i + 1 < a->n_rest && st == XPL_OK; i++)
        st = add_run(&f, a, a->rest[i], err);
    if (st == XPL_OK) st = check_hosts(&f, a, err);
    struct xpl_sql_request q = {
        .statement = xpl_str_from(a->rest[a->n_rest - 1]),
        .source = {.profiles = f.profiles.v,
                   .n = f.profiles.n,
                   .open = open_file,
                   .close = close_file,
                   .is_intact = is_intact,
                   .arg = &f},
        .runs = {.v = f.runs.v, .n = f.runs.n, .summarize = summarize, .arg = &f},
        .limits = xpl_sql_default_limits,
        .exec = exec,
        .limit = LIMIT};
    q.limits.rows = UINT64_MAX; // it is this user's own machine
    q.limits.bytes = UINT64_MAX;
    q.limits.memory = (uint64_t)4 << 30;
    q.limits.time_ms = a->timeout_ms ? (uint64_t)a->timeout_ms : 300000;
    q.cache = xpl_sql_cache_new(KEPT_OPEN, (size_t)(KEPT_OPEN + 1) * LIMIT);
    if (st == XPL_OK) st = xpl_sql_run(&q, out, err);
    xpl_sql_cache_free(q.cache);
    xpl_arena_fini(&f.arena);
    *ret_partial = f.partial;
    return st;
}

static int of_files(const struct xpl_args *a, struct xpl_buf *out) {
    struct xpl_error err = {0};
    bool partial = false;
    (void)xpl_sql_heap_install();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new((unsigned)a->jobs);
    struct xpl_exec serial = xpl_exec_serial();
    xpl_progress_begin(a);
    const xpl_status_t st =
        ask_files(a, pool ? xpl_exec_pool_get(pool) : &serial, out, &partial, &err);
    xpl_progress_end();
    xpl_exec_pool_free(pool);
    if (st != XPL_OK) return xpl_failed(err.code, err.msg);
    return partial ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

// ---- sessions ----

static int of_daemon(const struct xpl_args *a, struct xpl_buf *out) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    XPL_AUTO(xpl_remote_drop) xpl_answer *answer = NULL;
    xpl_result r;
    if (!c) return XPL_EXIT_FAILED;
    const xpl_sql_statement q = {.size = sizeof q,
                                 .statement = a->rest[a->n_rest - 1],
                                 .sessions = a->rest + 1,
                                 .n_sessions = a->n_rest - 2};
    xpl_progress_begin(a);
    const bool answered = xpl_client_sql(c, &q, &answer, &r) == 0;
    xpl_progress_end();
    if (!answered) return xpl_remote_failed(&r);
    size_t n;
    const void *const p = xpl_answer_data(answer, &n);
    xpl_buf_str(out, (xpl_str_t){p, n});
    return XPL_EXIT_OK;
}

// ---- forms ----

static void put_cell(struct xpl_table *t, const json_t *v) {
    if (json_is_string(v))
        xpl_table_text(t, (xpl_str_t){json_string_value(v), json_string_length(v)}, CELL_WIDTH);
    else if (json_is_integer(v))
        xpl_table_printf(t, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        xpl_table_printf(t, "%.10g", json_real_value(v));
    else
        xpl_table_printf(t, "%s", "");
}

// A column is one of numbers when its first value that is not null is a number.
static bool is_number(const json_t *rows, size_t column) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const v = json_array_get(json_array_get(rows, i), column);
        if (!json_is_null(v)) return json_is_number(v);
    }
    return false;
}

static bool print_table(const json_t *columns, const json_t *rows, FILE *out) {
    const size_t n = json_array_size(columns);
    char(*const names)[CELL_WIDTH] = xpl_sys_alloc((n + 1) * CELL_WIDTH);
    const char **const list = xpl_sys_alloc((n + 1) * sizeof(const char *));
    bool ok = names && list;
    for (size_t i = 0; ok && i < n; i++) {
        const char *const name = json_string_value(json_array_get(columns, i));
        (void)snprintf(names[i], CELL_WIDTH, "%s%s", is_number(rows, i) ? ">" : "",
                       name ? name : "");
        list[i] = names[i];
    }
    struct xpl_table *const t = ok ? xpl_table_new(list, n) : NULL;
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (size_t k = 0; k < n; k++)
            put_cell(t, json_array_get(json_array_get(rows, i), k));
    ok = ok && t && xpl_table_print(t, out);
    xpl_table_free(t);
    xpl_sys_free(list);
    xpl_sys_free(names);
    return ok;
}

static void csv_row(const json_t *row, FILE *out) {
    for (size_t k = 0; k < json_array_size(row); k++) {
        if (k) (void)fputc(',', out);
        xpl_csv_value(out, json_array_get(row, k));
    }
    xpl_csv_end_line(out);
}

static bool print_csv(const json_t *columns, const json_t *rows, FILE *out) {
    csv_row(columns, out);
    for (size_t i = 0; i < json_array_size(rows); i++)
        csv_row(json_array_get(rows, i), out);
    return true;
}

static int show(const struct xpl_args *a, const struct xpl_buf *answer) {
    struct xpl_output o;
    json_t *const all = xpl_document_read(answer->p, answer->n);
    const json_t *const columns = json_object_get(all, "columns"), *const rows =
                                                                       json_object_get(all, "rows");
    bool ok = json_is_array(columns) && json_is_array(rows);
    if (all && !ok) (void)fputs("xplanectl: the answer has no rows\n", stderr);
    if (!ok || !xpl_output_open(&o, a->out)) {
        json_decref(all);
        return XPL_EXIT_FAILED;
    }
    if (a->json)
        ok = fwrite(answer->p, 1, answer->n, o.f) == answer->n && fputc('\n', o.f) != EOF;
    else
        ok = a->csv ? print_csv(columns, rows, o.f) : print_table(columns, rows, o.f);
    if (json_is_true(json_object_get(all, "cut")))
        (void)fprintf(stderr, "xplanectl: warning: only the first %zu rows\n",
                      json_array_size(rows));
    json_decref(all);
    if (ok || ferror(o.f)) return xpl_output_commit(&o) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    (void)fputs("xplanectl: the answer cannot be written\n", stderr);
    xpl_output_abort(&o);
    return XPL_EXIT_FAILED;
}

// ---- the command ----

int xpl_statement_run(const struct xpl_args *a) {
    size_t paths = 0;
    for (size_t i = 1; i + 1 < a->n_rest; i++)
        paths += xpl_run_place(a, a->rest[i]) == XPL_RUN_PATH;
    if (paths && paths != a->n_rest - 2) {
        (void)fputs("xplanectl: sql: either all runs are paths, or all are sessions\n", stderr);
        return XPL_EXIT_USAGE;
    }
    if (!paths && a->n_hosts) { // a daemon's statements have no such choice
        (void)fputs("xplanectl: sql: --host is of paths; of sessions write WHERE host = '...'\n",
                    stderr);
        return XPL_EXIT_USAGE;
    }
    struct xpl_buf answer = xpl_buf_of((size_t)1 << 34);
    int status = paths ? of_files(a, &answer) : of_daemon(a, &answer);
    if (xpl_is_answered(status)) status = xpl_both_answered(status, show(a, &answer));
    xpl_buf_fini(&answer);
    return status;
}
