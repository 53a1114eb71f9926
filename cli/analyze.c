// SPDX-License-Identifier: Apache-2.0
// `xplanectl analyze`: a tool's answer straight from files, by the code that the daemon runs.
#include <fcntl.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/text/near.h"
#include "cli/args.h"
#include "cli/progress/progress.h"
#include "cli/runs/place.h"
#include "storage/sessions/catalogue.h"

#define LIMIT ((size_t)64 << 30) // of memory: main.c sets that of the machine

struct file { // of a host
    struct xpl_source *source;
    struct xpl_profile profile; // of the source's bytes
    struct xpl_error broken;    // why there is none
};

struct analysis {
    const struct xpl_args *args;
    const struct xpl_tool *tool;
    const char *const *paths;
    size_t n_paths;
    void *options; // the tool's, in `arena`
    struct xpl_arena arena;
    struct xpl_resolve_host *hosts;
    struct file *files; // of `hosts`
    size_t n;
    bool has_device;      // some host among the files
    bool warned, partial; // partial: a view lacks what its file lost
    struct xpl_exec *exec;
    struct xpl_buf out;
};

static xpl_status_t parse_options(struct analysis *a, struct xpl_error *err) {
    const struct xpl_args *const args = a->args;
    struct xpl_option *list = xpl_arena_array(&a->arena, args->n_options, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "options");
    for (size_t i = 0; i < args->n_options; i++)
        list[i] = (struct xpl_option){xpl_str_from(args->options[2 * i]),
                                      xpl_str_from(args->options[2 * i + 1])};
    return xpl_tool_options_parse(a->tool, list, args->n_options, true, &a->arena, &a->options,
                                  err);
}

static xpl_status_t no_host(const struct xpl_inputs *in, const char *name, struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < in->n_hosts; i++)
        xpl_near_add(&near, in->hosts[i].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no host \"%.80s\" among the files%s", name,
                     xpl_near_text(&near, hint));
}

static xpl_status_t check_hosts(const struct xpl_args *args, const struct xpl_inputs *in,
                                struct xpl_error *err) {
    for (size_t i = 0; i < args->n_hosts; i++) {
        bool found = strcmp(args->hosts[i], "ALL_HOSTS") == 0;
        for (size_t h = 0; h < in->n_hosts && !found; h++)
            found = xpl_str_eq(in->hosts[h].name, xpl_str_from(args->hosts[i]));
        if (!found) return no_host(in, args->hosts[i], err);
    }
    return XPL_OK;
}

static void close_file(struct file *f) {
    xpl_profile_close(&f->profile);
    xpl_source_free(f->source);
}

// A file that cannot be opened counts as broken.  Without memory it may still be good.
static xpl_status_t leave_or_fail(const struct file *f, xpl_status_t st, struct xpl_error *err) {
    if (st != XPL_RESOURCE_EXHAUSTED && xpl_resolve_is_of_file(st)) return XPL_OK;
    *err = f->broken;
    return st;
}

// A file that is broken is noted in *f: others may answer without it.
static xpl_status_t open_file(const struct analysis *a, const char *path, struct file *f,
                              struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = a->exec};
    struct xpl_error why = {0};
    *f = (struct file){0};
    const xpl_status_t opened = xpl_source_open(AT_FDCWD, path, 0, &f->source, &f->broken);
    if (opened != XPL_OK) return leave_or_fail(f, opened, err);
    const xpl_status_t st =
        xpl_profile_open_as(xpl_tool_form(a->tool), xpl_str_from(path), xpl_source_bytes(f->source),
                            &limits, &f->profile, &why);
    if (st == XPL_OK) return XPL_OK;
    xpl_status_t now = xpl_source_verify(f->source, err);
    (void)xpl_error_set(&f->broken, st, __FILE__, __LINE__, why.offset, "%s: %s", path, why.msg);
    if (now == XPL_OK && st == XPL_DATA_LOSS) return XPL_OK;
    if (now == XPL_OK) {
        *err = f->broken;
        now = st;
    }
    close_file(f);
    return now;
}

static void warn(void *arg, xpl_str_t host, xpl_str_t text) {
    struct analysis *const a = arg;
    a->warned = true;
    xpl_warn_of_host(a->paths[0], host, text);
}

// Opens a host and adds it to those that answer, when it was named.
static xpl_status_t add_host(struct analysis *a, const struct xpl_input *in,
                             struct xpl_error *err) {
    struct file *const f = &a->files[a->n];
    const bool named = xpl_args_name_host(a->args, in->name);
    bool device = false;
    const struct xpl_format *const format = xpl_run_format(in->path);
    if (!xpl_tool_fits(a->tool, format))
        return xpl_tool_refuse(a->tool, format, xpl_str_from(in->path), err);
    if (!named && !a->tool->asks_device) return XPL_OK;
    XPL_TRY(open_file(a, in->path, f, err));
    const bool readable = f->broken.code == XPL_OK;
    const xpl_status_t st =
        readable ? xpl_resolve_has_device(f->profile.bytes, &device, err) : XPL_OK;
    a->has_device |= device;
    // Of thousands of files the pages that were read so far would add up.
    const xpl_bytes_t bytes = f->source ? xpl_source_bytes(f->source) : (xpl_bytes_t){0};
    xpl_source_release(bytes.ptr, bytes.len);
    if (st != XPL_OK || !named) {
        close_file(f);
        return st;
    }
    a->partial |= f->profile.partial;
    if (f->profile.partial)
        xpl_warn_of_view(a->paths[0], in->name, in->path, xpl_source_bytes(f->source),
                         f->profile.bytes, a->exec);
    a->hosts[a->n++] = (struct xpl_resolve_host){.name = in->name,
                                                 .path = in->path,
                                                 .profile = f->profile.bytes,
                                                 .broken = readable ? NULL : &f->broken};
    return XPL_OK;
}

// Opens the hosts that were named; the devices of all decide what cpu_as_device means.
static xpl_status_t open_hosts(struct analysis *a, struct xpl_error *err) {
    struct xpl_inputs in;
    const struct xpl_args *const args = a->args;
    XPL_TRY(xpl_inputs_from_paths(a->paths, a->n_paths, xpl_format_match, &a->arena, &in, err));
    XPL_TRY(check_hosts(args, &in, err));
    a->hosts = xpl_arena_array(&a->arena, in.n_hosts, sizeof *a->hosts);
    a->files = xpl_arena_array(&a->arena, in.n_hosts, sizeof *a->files);
    if (!a->hosts || !a->files) XPL_RETURN_OOM(err, "hosts");
    xpl_warn_left_out(&in);
    const struct xpl_tool *const tool = xpl_tool_for(a->tool, xpl_run_format(in.hosts[0].path));
    if (tool != a->tool) {
        a->tool = tool;
        XPL_TRY(parse_options(a, err));
    }
    for (size_t i = 0; i < in.n_hosts; i++)
        XPL_TRY(add_host(a, &in.hosts[i], err));
    return XPL_OK;
}

// Whether hosts were chosen: ALL_HOSTS is not a choice.
static bool by_name(const struct xpl_args *args) {
    for (size_t i = 0; i < args->n_hosts; i++)
        if (strcmp(args->hosts[i], "ALL_HOSTS") != 0) return true;
    return false;
}

static xpl_status_t verify(void *arg, size_t host, struct xpl_error *err) {
    const struct xpl_source *const s = ((const struct analysis *)arg)->files[host].source;
    return s ? xpl_source_verify(s, err) : XPL_OK;
}

// A tool that clients may ask for, or the OpStats, which the summary is made of.
static xpl_status_t find_tool(const char *name, const struct xpl_tool **ret,
                              struct xpl_error *err) {
    const bool is_hidden = name == xpl_tool_op_stats.name;
    *ret = is_hidden ? &xpl_tool_op_stats : xpl_tool_find(xpl_str_from(name));
    return *ret ? XPL_OK : xpl_tool_unknown(xpl_str_from(name), err);
}

static xpl_status_t run(struct analysis *a, const char *tool, struct xpl_error *err) {
    XPL_TRY(find_tool(tool, &a->tool, err));
    XPL_TRY(parse_options(a, err));
    XPL_TRY(open_hosts(a, err));
    if (a->tool->hosts == XPL_HOSTS_ONE && a->n > 1)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%s answers for one host at a time: choose one with --host",
                         a->tool->name);
    const struct xpl_resolve r = {.tool = a->tool,
                                  .options = a->options,
                                  .hosts = a->hosts,
                                  .n_hosts = a->n,
                                  .by_name = by_name(a->args),
                                  .session_has_device = a->has_device,
                                  .exec = a->exec,
                                  .limit = LIMIT,
                                  .release = xpl_source_release,
                                  .verify = verify,
                                  .warn = warn,
                                  .arg = a};
    return xpl_resolve(&r, &a->out, err);
}

int xpl_analyze(const struct xpl_args *args, const char *tool, const char *const *paths,
                size_t n_paths, struct xpl_buf *out) {
    struct analysis a = {.args = args, .paths = paths, .n_paths = n_paths};
    xpl_arena_init(&a.arena, LIMIT);
    xpl_buf_init(&a.out, LIMIT);
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *pool = args->jobs == 1 ? NULL : xpl_exec_pool_new((unsigned)args->jobs);
    a.exec = pool ? xpl_exec_pool_get(pool) : &serial;
    struct xpl_error err = {0};
    xpl_progress_begin(args);
    const xpl_status_t st = run(&a, tool, &err);
    xpl_progress_end();
    for (size_t i = 0; i < a.n; i++)
        close_file(&a.files[i]);
    xpl_exec_pool_free(pool);
    xpl_arena_fini(&a.arena);
    *out = a.out;
    if (st != XPL_OK) return xpl_failed(st, err.msg);
    if (args->strict && (a.warned || a.partial)) return xpl_refuse_partial();
    return a.partial ? XPL_EXIT_PARTLY : xpl_answered(a.tool->name, a.warned);
}

int xpl_cmd_analyze(const struct xpl_args *args) {
    struct xpl_buf out;
    int status = xpl_analyze(args, args->rest[1], args->rest + 2, args->n_rest - 2, &out);
    if (xpl_is_answered(status) && !xpl_write_answer(args, args->rest[1], out.p, out.n))
        status = XPL_EXIT_FAILED;
    xpl_buf_fini(&out);
    return status;
}
