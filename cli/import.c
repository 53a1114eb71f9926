// SPDX-License-Identifier: Apache-2.0
// What changes a daemon's LOGDIR: import, delete.
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "storage/sessions/catalogue.h"

static void on_progress(void *arg, uint64_t sent, uint64_t all) {
    (void)arg;
    xpl_progress_bytes(sent, all);
}

int xpl_cmd_import(const struct xpl_args *a) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct xpl_inputs in;
    struct xpl_error err = {0};
    // The hosts of one session: files, or the files of one directory.
    if (xpl_inputs_from_paths(a->rest + 1, a->n_rest - 1, xpl_format_match, &arena, &in, &err) !=
        XPL_OK)
        return xpl_failed(err.code, err.msg);
    xpl_warn_left_out(&in);
    xpl_import_file *files = xpl_arena_array(&arena, in.n_hosts, sizeof *files);
    if (!files) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    for (size_t i = 0; i < in.n_hosts; i++) {
        xpl_str_t name;
        if (!xpl_arena_printf(&arena, &name, "%.*s", XPL_STR_FMT(in.hosts[i].name)))
            return XPL_EXIT_FAILED;
        // A format's suffix tells the daemon what the file should be; it removes the suffix.
        const bool has_suffix = xpl_format_of_name(xpl_str_from(in.hosts[i].path), NULL) != NULL;
        files[i] =
            (xpl_import_file){.path = in.hosts[i].path, .host = has_suffix ? NULL : name.ptr};
    }
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    const xpl_import_request q = {.size = sizeof q,
                                  .files = files,
                                  .n_files = in.n_hosts,
                                  .session = a->session,
                                  .progress = on_progress,
                                  .retries = a->retries ? (unsigned)a->retries : 3};
    char session[512];
    xpl_result r;
    int status = XPL_EXIT_OK;
    xpl_progress_begin(a);
    const bool stored = xpl_client_import(c, &q, session, sizeof session, &r) == 0;
    xpl_progress_end();
    if (!stored)
        status = xpl_remote_failed(&r);
    else if (!xpl_write_line(a, session, strlen(session)))
        status = XPL_EXIT_FAILED;
    return status;
}

int xpl_cmd_delete(const struct xpl_args *a) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_result r;
    return xpl_client_delete_session(c, a->rest[1], &r) == 0 ? XPL_EXIT_OK : xpl_remote_failed(&r);
}
