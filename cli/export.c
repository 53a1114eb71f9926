// SPDX-License-Identifier: Apache-2.0
// `xplanectl export`: a session's trace for other viewers, straight from files.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/trace/export/export.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/near.h"
#include "cli/args.h"
#include "cli/logdir.h"
#include "cli/output.h"
#include "cli/progress/progress.h"

#define LIMIT ((size_t)64 << 30) // of memory: main.c sets that of the machine

struct output {
    struct xpl_output file;
    bool begun;     // `file` is open, and has the text before the first host
    int error;      // errno of the first write that failed
    uint64_t bytes; // written
    bool said;      // stderr has the reason why the file cannot be written
};

static bool write_out(void *ctx, const void *bytes, size_t n) {
    struct output *const o = ctx;
    xpl_progress_bytes(o->bytes += n, 0);
    if (fwrite(bytes, 1, n, o->file.f) == n) return true;
    o->error = errno;
    return false;
}

static void source_free(struct xpl_source **src) {
    xpl_source_free(*src);
}

struct job {
    const struct xpl_args *args;
    struct xpl_export e;
    struct output *out;
    struct xpl_exec *exec;
    size_t n;     // hosts written
    bool partial; // a bundle lacks what its file lost
};

// Opens the output once the first file is known to be a profile: an earlier failure leaves nothing,
// neither a file nor the beginning of a document on standard output.
static xpl_status_t begin_output(struct job *j, struct xpl_error *err) {
    struct output *const o = j->out;
    if (o->begun) return XPL_OK;
    o->begun = xpl_output_open(&o->file, j->args->out);
    o->said = !o->begun;
    if (!o->begun) XPL_RETURN_ERROR(err, XPL_ABORTED, "the output cannot be opened");
    return xpl_export_begin(&j->e, err);
}

static void warn_of_early(const char *path, xpl_str_t host, uint64_t n) {
    char text[96];
    (void)snprintf(text, sizeof text, "%" PRIu64 " events begin before 0 and are shown from 0 on",
                   n);
    if (n) xpl_warn_of_host(path, host, xpl_str_from(text));
}

static xpl_status_t export_source(struct job *j, xpl_str_t name, const char *path,
                                  struct xpl_source *src, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_profile_close) struct xpl_profile profile = {0};
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = j->exec};
    struct xpl_xspace *xs;
    struct xpl_error why = {0};
    const uint64_t early = j->e.n_early;
    xpl_status_t st = xpl_profile_open_as(XPL_FORM_XSPACE, xpl_str_from(path),
                                          xpl_source_bytes(src), &limits, &profile, &why);
    if (st == XPL_OK) st = xpl_xspace_open(profile.bytes, &arena, j->exec, &xs, &why);
    if (st == XPL_OK) st = begin_output(j, &why);
    if (st == XPL_OK) st = xpl_export_host(&j->e, xs, name, j->exec, LIMIT, &why);
    j->n++;
    warn_of_early(path, name, j->e.n_early - early);
    XPL_TRY(xpl_source_verify(src, err));
    if (profile.partial)
        xpl_warn_of_view(path, name, path, xpl_source_bytes(src), profile.bytes, j->exec);
    j->partial |= profile.partial;
    if (st == XPL_OK) return st;
    return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", path, why.msg);
}

// Files, or the directory of one run.
static xpl_status_t export_paths(struct job *j, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_inputs in;
    XPL_TRY(xpl_inputs_from_paths(j->args->rest + 2, j->args->n_rest - 2, xpl_format_match, &arena,
                                  &in, err));
    xpl_warn_left_out(&in);
    j->e.several = in.n_hosts > 1;
    for (size_t i = 0; i < in.n_hosts; i++) {
        XPL_AUTO(source_free) struct xpl_source *src = NULL;
        if (!xpl_args_name_host(j->args, in.hosts[i].name)) continue;
        xpl_progress_hosts(i + 1, in.n_hosts);
        XPL_TRY(xpl_source_open(AT_FDCWD, in.hosts[i].path, 0, &src, err));
        XPL_TRY(export_source(j, in.hosts[i].name, in.hosts[i].path, src, err));
    }
    return XPL_OK;
}

static xpl_status_t export_hosts(struct job *j, const struct xpl_logdir *l, struct xpl_error *err) {
    const struct xpl_session *const s = l->session;
    j->e.several = s->n_hosts > 1;
    for (size_t i = 0; i < s->n_hosts; i++) {
        XPL_AUTO(source_free) struct xpl_source *src = NULL;
        if (!xpl_args_name_host(j->args, s->hosts[i].name)) continue;
        xpl_progress_hosts(i + 1, s->n_hosts);
        XPL_TRY(xpl_snapshot_open(l->snapshot, &s->hosts[i], 0, &src, err));
        XPL_TRY(export_source(j, s->hosts[i].name, s->hosts[i].path.ptr, src, err));
    }
    return XPL_OK;
}

// A session of a log directory, by the name that a server on it gives it.
static xpl_status_t export_session(struct job *j, struct xpl_error *err) {
    struct xpl_logdir l;
    if (j->args->n_rest != 3)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "with --logdir, name one session");
    XPL_TRY(xpl_logdir_open(j->args->logdir, j->args->rest[2], &l, err));
    const xpl_status_t st = export_hosts(j, &l, err);
    xpl_logdir_close(&l);
    return st;
}

// An argument that is not a path may mean a session, which other commands request from a daemon.
static xpl_status_t export_named(struct job *j, struct xpl_error *err) {
    struct xpl_error why = {0};
    if (j->args->logdir) return export_session(j, err);
    const xpl_status_t st = export_paths(j, &why);
    const bool asks = xpl_str_ends(xpl_str_from(why.msg), XPL_STR("?"));
    if (st == XPL_NOT_FOUND)
        XPL_RETURN_ERROR(err, st, "%s%s a session, name its --logdir, too", why.msg,
                         asks ? " For" : "; for");
    if (st != XPL_OK && err) *err = why;
    return st;
}

static xpl_status_t export_all(struct job *j, struct xpl_error *err) {
    XPL_TRY(export_named(j, err));
    if (j->n == 0) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no host of that name");
    return xpl_export_end(&j->e, err);
}

static int finish(const struct job *j, xpl_status_t st, const struct xpl_error *err) {
    struct output *const o = j->out;
    const int done = j->partial ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
    if (st == XPL_OK) return xpl_output_commit(&o->file) ? done : XPL_EXIT_FAILED;
    const char *const path = o->file.path;
    if (o->begun) xpl_output_abort(&o->file);
    if (o->error)
        (void)fprintf(stderr, "xplanectl: cannot write %s: %s\n", path, strerror(o->error));
    else if (!o->said)
        return xpl_failed(st, err->msg);
    return XPL_EXIT_FAILED;
}

static int run(const struct xpl_args *args, enum xpl_export_format format) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool =
        args->jobs == 1 ? NULL : xpl_exec_pool_new((unsigned)args->jobs);
    struct xpl_error err = {0};
    struct output o = {0};
    struct job j = {.args = args,
                    .out = &o,
                    .e = {.format = format, .sink = {write_out, &o}},
                    .exec = pool ? xpl_exec_pool_get(pool) : &serial};
    xpl_progress_begin(args);
    const xpl_status_t st = export_all(&j, &err);
    xpl_progress_end();
    xpl_exec_pool_free(pool);
    return finish(&j, st, &err);
}

int xpl_cmd_export(const struct xpl_args *args) {
    const char *const format = args->rest[1];
    char hint[XPL_NEAR_TEXT];
    const bool perfetto = strcmp(format, "perfetto") == 0;
    if (perfetto || strcmp(format, "chrome") == 0)
        return run(args, perfetto ? XPL_EXPORT_PERFETTO : XPL_EXPORT_CHROME);
    (void)fprintf(stderr, "xplanectl: no export format \"%s\"%s\nFormats: perfetto, chrome\n",
                  format, xpl_near_of(format, "perfetto|chrome", hint));
    return XPL_EXIT_USAGE;
}
