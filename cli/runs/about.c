// SPDX-License-Identifier: Apache-2.0
// What a run has: as the daemon says of a session, or as its files are.
#include <stdio.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"
#include "analysis/tools/tool.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/runs/place.h"
#include "storage/sessions/catalogue.h"

#define LIMIT ((size_t)1 << 30) // of memory for a list of files

static bool add_hosts(struct xpl_arena *arena, const struct xpl_inputs *in, xpl_session_info *s) {
    xpl_host_info *const hosts = xpl_arena_zalloc(arena, (in->n_hosts + 1) * sizeof *hosts);
    for (size_t i = 0; hosts && i < in->n_hosts; i++) {
        struct stat file;
        // Nothing is stored of a file.
        hosts[i] = (xpl_host_info){.name = in->hosts[i].name.ptr, .state = "new", .error = ""};
        if (stat(in->hosts[i].path, &file) != 0) continue; // opening it reports the error
        hosts[i].bytes = (uint64_t)file.st_size;
        hosts[i].modified_unix_ms =
            (int64_t)file.st_mtim.tv_sec * 1000 + file.st_mtim.tv_nsec / 1000000;
        s->bytes += hosts[i].bytes;
        if (hosts[i].modified_unix_ms > s->modified_unix_ms)
            s->modified_unix_ms = hosts[i].modified_unix_ms;
    }
    s->hosts = hosts;
    s->n_hosts = in->n_hosts;
    return hosts;
}

// Those that work with one of the files.
static bool add_tools(struct xpl_arena *arena, const struct xpl_inputs *in, xpl_session_info *s) {
    size_t n;
    const struct xpl_tool *const *const all = xpl_tools(&n);
    const char **const tools = xpl_arena_array(arena, n, sizeof *tools);
    for (size_t i = 0; tools && i < n; i++) {
        bool fits = false;
        for (size_t h = 0; h < in->n_hosts; h++)
            fits |= xpl_tool_fits(all[i], xpl_run_format(in->hosts[h].path));
        if (fits) tools[s->n_tools++] = all[i]->name;
    }
    s->tools = tools;
    return tools;
}

static int of_path(const struct xpl_args *a, const char *path, struct xpl_run_about *ret) {
    size_t n;
    const char *const *const paths = xpl_run_paths(a, &path, &n);
    struct xpl_inputs in;
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_inputs_from_paths(paths, n, xpl_format_match, &ret->arena, &in, &err);
    if (st != XPL_OK) return xpl_failed(st, err.msg);
    xpl_warn_left_out(&in);
    xpl_session_info *const s = xpl_arena_zalloc(&ret->arena, sizeof *s);
    xpl_str_t name;
    if (!s || !xpl_arena_str(&ret->arena, in.session, &name) || !add_hosts(&ret->arena, &in, s) ||
        !add_tools(&ret->arena, &in, s)) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    s->name = name.ptr;
    const struct xpl_format *const f = xpl_run_format(in.hosts[0].path);
    s->kind = f ? f->family : xpl_formats(&(size_t){0})[0]->family;
    s->state = "new";
    ret->info = s;
    return XPL_EXIT_OK;
}

static int of_session(const struct xpl_args *a, const char *session, struct xpl_run_about *ret) {
    xpl_client *const c = xpl_remote_open(a);
    xpl_result r;
    if (!c) return XPL_EXIT_FAILED;
    xpl_progress_begin(a);
    bool known = xpl_client_session(c, session, &ret->got, &r) == 0;
    const char *const whole =
        !known && r.code == XPL_NOT_FOUND ? xpl_run_beginning(c, session) : NULL;
    if (whole) known = xpl_client_session(c, whole, &ret->got, &r) == 0;
    xpl_progress_end();
    xpl_client_close(c);
    if (!known) {
        const int status = xpl_remote_failed(&r);
        if (r.code == XPL_NOT_FOUND) xpl_run_no_session(session);
        return status;
    }
    ret->info = xpl_sessions_get(ret->got, 0);
    return XPL_EXIT_OK;
}

int xpl_run_about(const struct xpl_args *a, const char *run, struct xpl_run_about *ret) {
    *ret = (struct xpl_run_about){0};
    xpl_arena_init(&ret->arena, LIMIT);
    return xpl_run_place(a, run) == XPL_RUN_PATH ? of_path(a, run, ret) : of_session(a, run, ret);
}

void xpl_run_about_fini(struct xpl_run_about *r) {
    if (r->got) xpl_sessions_free(r->got);
    xpl_arena_fini(&r->arena);
}
