// SPDX-License-Identifier: Apache-2.0
// `xplanectl join`: one session of several runs, in a log directory.  Its files are links.
#include <fcntl.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/args.h"
#include "cli/commands/commands.h"
#include "cli/logdir.h"
#include "storage/sessions/session_writer.h"

struct joining {
    struct xpl_arena arena;
    XPL_VEC(const char *) paths; // of runs: files and directories
};

static xpl_status_t add_path(struct joining *j, const char *path, struct xpl_error *err) {
    const char **const slot = xpl_vec_push(&j->arena, &j->paths);
    if (!slot) XPL_RETURN_OOM(err, "list of profiles");
    *slot = path;
    return XPL_OK;
}

// The files of a session of the log directory; a run that is a path is that.
static xpl_status_t add_run(struct joining *j, const char *logdir, const char *run,
                            struct xpl_error *err) {
    struct xpl_logdir l;
    if (xpl_inputs_are_there(run)) return add_path(j, run, err);
    XPL_TRY(xpl_logdir_open(logdir, run, &l, err));
    xpl_status_t st = XPL_OK;
    for (size_t i = 0; st == XPL_OK && i < l.session->n_hosts; i++) {
        char path[PATH_MAX];
        xpl_str_t copy;
        const bool ok =
            xpl_logdir_path(&l, i, path) && xpl_arena_str(&j->arena, xpl_str_from(path), &copy);
        st = ok ? add_path(j, copy.ptr, err)
                : xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                                "list of profiles: out of memory");
    }
    xpl_logdir_close(&l);
    return st;
}

// The suffix under which directories list such a file.
static xpl_status_t find_suffix(const char *path, const char **ret, struct xpl_error *err) {
    struct xpl_source *source = NULL;
    struct xpl_file_format is;
    XPL_TRY(xpl_source_open(AT_FDCWD, path, 0, &source, err));
    const xpl_status_t st =
        xpl_file_recognize(xpl_str_from(path), xpl_source_bytes(source), NULL, &is, err);
    xpl_source_free(source);
    if (st == XPL_OK) *ret = is.suffix;
    return st;
}

static xpl_status_t add_file(struct xpl_session_writer *w, const struct xpl_input *in,
                             struct xpl_error *err) {
    char name[XPL_SESSION_WRITER_NAME_SIZE], temp[XPL_SESSION_WRITER_TEMP_SIZE];
    const char *suffix;
    XPL_TRY(find_suffix(in->path, &suffix, err));
    (void)xpl_session_writer_safe_name(name, in->name);
    XPL_TRY(xpl_session_writer_add_file(w, in->path, temp, err));
    const xpl_status_t st =
        xpl_session_writer_publish(w, temp, name, suffix, XPL_TAKEN_NUMBER, false, err);
    if (st != XPL_OK) xpl_session_writer_drop_temp(w, temp);
    return st;
}

// Either all files appear or none.
static xpl_status_t write_session(const struct xpl_args *a, const struct xpl_inputs *in,
                                  struct xpl_arena *arena, xpl_str_t *ret, struct xpl_error *err) {
    const struct xpl_session_writer_options o = {.size = sizeof o,
                                                 .logdir = a->logdir,
                                                 .name = a->session ? xpl_str_from(a->session)
                                                                    : XPL_STR(""),
                                                 .unique = true};
    struct xpl_session_writer *w;
    XPL_TRY(xpl_session_writer_open(&o, &w, err));
    xpl_status_t st = XPL_OK;
    for (size_t i = 0; st == XPL_OK && i < in->n_hosts; i++)
        st = add_file(w, &in->hosts[i], err);
    if (st == XPL_OK) st = xpl_session_writer_sync(w, err);
    if (st == XPL_OK && !xpl_arena_str(arena, xpl_str_from(xpl_session_writer_get_name(w)), ret))
        st = XPL_RESOURCE_EXHAUSTED;
    if (st != XPL_OK) xpl_session_writer_undo(w);
    xpl_session_writer_close(w);
    return st;
}

static xpl_status_t join(const struct xpl_args *a, struct joining *j, xpl_str_t *ret,
                         struct xpl_error *err) {
    struct xpl_inputs in;
    for (size_t i = 1; i < a->n_rest; i++)
        XPL_TRY(add_run(j, a->logdir, a->rest[i], err));
    XPL_TRY(xpl_inputs_from_paths(j->paths.v, j->paths.n, xpl_format_match, &j->arena, &in, err));
    xpl_warn_left_out(&in);
    return write_session(a, &in, &j->arena, ret, err);
}

int xpl_runs_join(const struct xpl_args *a) {
    struct joining j = {.arena = xpl_arena_of((size_t)64 << 20)};
    struct xpl_error err = {0};
    xpl_str_t name;
    if (!a->logdir) {
        xpl_say("join needs --logdir DIR, where the session is made");
        return XPL_EXIT_USAGE;
    }
    const xpl_status_t st = join(a, &j, &name, &err);
    const int status = st != XPL_OK                            ? xpl_failed(st, err.msg)
                       : xpl_write_line(a, name.ptr, name.len) ? XPL_EXIT_OK
                                                               : XPL_EXIT_FAILED;
    xpl_arena_fini(&j.arena);
    return status;
}
