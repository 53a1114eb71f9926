// `xplanectl analyze`: a tool's answer straight from files, by the code that the daemon runs.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/tools/pipeline.h"
#include "base/arena.h"
#include "base/buf.h"
#include "cli/args.h"
#include "storage/sessions/catalogue.h"

#define LIMIT ((size_t)64 << 30) // of memory: the machine's own limit comes first

struct host {
    xpl_str_t name;
    const char *path;
    struct xpl_source *source;
    struct xpl_profile profile; // of the source's bytes
    struct xpl_arena arena;
    struct xpl_opstats *stats;
    struct xpl_trace_memory trace;
    struct xpl_error err;
    xpl_status_t status;
};

struct analysis {
    const struct xpl_args *args;
    const struct xpl_tool *tool;
    struct xpl_tool_options opt;
    struct xpl_arena arena;
    struct host *hosts;
    size_t n;
    struct xpl_exec *exec;
    struct xpl_buf out;
};

static xpl_status_t unknown_tool(const char *name, struct xpl_error *err) {
    char names[160] = "";
    size_t n, at = 0;
    const struct xpl_tool *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", tools[i].name);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unknown tool \"%.40s\"; tools: %s", name, names);
}

static int fail(xpl_status_t code, const struct xpl_error *err) {
    (void)fprintf(stderr, "xplanectl: %s: %s\n", xpl_status_name(code), err->msg);
    return code == XPL_INVALID_ARGUMENT ? XPL_EXIT_USAGE : XPL_EXIT_FAILED;
}

static xpl_status_t parse_options(struct analysis *a, struct xpl_error *err) {
    const struct xpl_args *const args = a->args;
    struct xpl_option *list = xpl_arena_array(&a->arena, args->n_options, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "options");
    for (size_t i = 0; i < args->n_options; i++)
        list[i] = (struct xpl_option){xpl_str_from(args->options[2 * i]),
                                      xpl_str_from(args->options[2 * i + 1])};
    return xpl_tool_options_parse(a->tool, list, args->n_options, true, &a->opt, err);
}

static bool chosen(const struct xpl_args *args, xpl_str_t host) {
    for (size_t i = 0; i < args->n_hosts; i++)
        if (xpl_str_eq(host, xpl_str_from(args->hosts[i])) ||
            strcmp(args->hosts[i], "ALL_HOSTS") == 0)
            return true;
    return args->n_hosts == 0;
}

static xpl_status_t check_hosts(const struct xpl_args *args, const struct xpl_inputs *in,
                                struct xpl_error *err) {
    for (size_t i = 0; i < args->n_hosts; i++) {
        bool found = strcmp(args->hosts[i], "ALL_HOSTS") == 0;
        for (size_t h = 0; h < in->n_hosts && !found; h++)
            found = xpl_str_eq(in->hosts[h].name, xpl_str_from(args->hosts[i]));
        if (!found)
            XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no host \"%s\" among the files", args->hosts[i]);
    }
    return XPL_OK;
}

// Records a failure of the analysis with the file it is about.
static xpl_status_t about(const struct host *h, xpl_status_t code, const struct xpl_error *why,
                          struct xpl_error *err) {
    return xpl_error_set(err, code, __FILE__, __LINE__, why->offset, "%s: %s", h->path, why->msg);
}

static void close_host(struct host *h) {
    xpl_trace_memory_fini(&h->trace);
    xpl_arena_fini(&h->arena);
    xpl_profile_close(&h->profile);
    xpl_source_free(h->source);
}

// Opens a host's file.  One that is broken is noted in h->status: others may answer without it.
static xpl_status_t open_host(const struct analysis *a, struct host *h, struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = a->exec};
    struct xpl_error why = {0};
    xpl_arena_init(&h->arena, LIMIT);
    XPL_TRY(xpl_source_open(AT_FDCWD, h->path, 0, &h->source, err));
    h->status = xpl_profile_open(xpl_str_from(h->path), xpl_source_bytes(h->source), &limits,
                                 &h->profile, &why);
    if (h->status == XPL_OK) return XPL_OK;
    XPL_TRY(xpl_source_verify(h->source, err));
    (void)about(h, h->status, &why, &h->err);
    if (h->status == XPL_DATA_LOSS) return XPL_OK;
    *err = h->err;
    return h->status;
}

static xpl_status_t check_tool(const struct analysis *a, const char *path, struct xpl_error *err) {
    const struct xpl_format *const f = xpl_format_of_name(xpl_str_from(path), NULL);
    if (!f || xpl_format_has_tool(f, xpl_str_from(a->tool->name))) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "%.120s: %s does not work with files of this kind", path, a->tool->name);
}

// Opens the hosts that were asked for; the device planes of all decide cpu_as_device.
static xpl_status_t open_hosts(struct analysis *a, bool *ret_device, struct xpl_error *err) {
    struct xpl_inputs in;
    const struct xpl_args *const args = a->args;
    XPL_TRY(xpl_inputs_from_paths(args->rest + 2, args->n_rest - 2, xpl_format_match, &a->arena,
                                  &in, err));
    XPL_TRY(check_hosts(args, &in, err));
    a->hosts = xpl_arena_zalloc(&a->arena, in.n_hosts * sizeof *a->hosts);
    if (!a->hosts) XPL_RETURN_OOM(err, "hosts");
    *ret_device = false;
    xpl_warn_left_out(&in);
    for (size_t i = 0; i < in.n_hosts; i++) {
        struct host *const h = &a->hosts[a->n];
        const bool answers = chosen(args, in.hosts[i].name);
        *h = (struct host){.name = in.hosts[i].name, .path = in.hosts[i].path};
        a->n++;
        XPL_TRY(check_tool(a, h->path, err));
        XPL_TRY(open_host(a, h, err));
        if (h->profile.bytes.ptr && xpl_bytes_have_device(h->profile.bytes)) *ret_device = true;
        if (answers) continue;
        close_host(h);
        a->n--;
    }
    return XPL_OK;
}

// Whether hosts were chosen: ALL_HOSTS is no choice.
static bool by_name(const struct xpl_args *args) {
    for (size_t i = 0; i < args->n_hosts; i++)
        if (strcmp(args->hosts[i], "ALL_HOSTS") != 0) return true;
    return false;
}

static xpl_status_t answer_of_host(struct analysis *a, struct xpl_error *err) {
    if (a->n > 1)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%s answers for one host at a time: choose one with --host",
                         a->tool->name);
    const struct host *h = &a->hosts[0];
    struct xpl_error why = {0};
    if (h->status != XPL_OK) {
        *err = h->err;
        return h->status;
    }
    const xpl_status_t st =
        xpl_bytes_answer(a->tool, h->profile.bytes, a->exec, LIMIT, &a->out, &why);
    XPL_TRY(xpl_source_verify(h->source, err));
    return st == XPL_OK ? XPL_OK : about(h, st, &why, err);
}

static xpl_status_t convert(struct analysis *a, bool cpu, struct xpl_error *err) {
    const struct xpl_convert_options opt = {.cpu_as_device = cpu};
    for (size_t i = 0; i < a->n; i++) {
        struct host *h = &a->hosts[i];
        struct xpl_error why = {0};
        if (h->status != XPL_OK) continue;
        h->status =
            xpl_bytes_op_stats(h->profile.bytes, &opt, a->exec, LIMIT, &h->arena, &h->stats, &why);
        XPL_TRY(xpl_source_verify(h->source, err));
        if (h->status != XPL_OK) (void)about(h, h->status, &why, &h->err);
        if (h->status == XPL_OK && h->profile.bytes.len == 0)
            (void)fprintf(stderr, "xplanectl: warning: %.*s: the profile is empty (0 bytes)\n",
                          XPL_STR_FMT(h->name));
        if (h->status != XPL_OK && h->status != XPL_DATA_LOSS) {
            *err = h->err;
            return h->status;
        }
    }
    return XPL_OK;
}

// Leaves broken hosts out, unless that leaves none or they were asked for by name.
static xpl_status_t render(struct analysis *a, struct xpl_error *err) {
    struct xpl_host_opstats *list = xpl_arena_array(&a->arena, a->n, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    size_t valid = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct host *h = &a->hosts[i];
        list[i] = (struct xpl_host_opstats){.host = h->name, .stats = h->stats};
        valid += h->status == XPL_OK;
        if (h->status == XPL_OK) continue;
        list[i].stats = NULL;
        list[i].problem = xpl_str_from(h->err.msg);
        if (by_name(a->args) || a->n == 1) {
            *err = h->err;
            return h->status;
        }
        (void)fprintf(stderr, "xplanectl: warning: %.*s: %s\n", XPL_STR_FMT(h->name), h->err.msg);
    }
    if (!valid) {
        *err = a->hosts[0].err;
        return XPL_DATA_LOSS;
    }
    return xpl_answer_render(a->tool, &a->opt, list, a->n, LIMIT, &a->out, err);
}

static xpl_status_t index_traces(struct analysis *a, struct xpl_error *err) {
    for (size_t i = 0; i < a->n; i++) {
        struct host *h = &a->hosts[i];
        struct xpl_error why = {0};
        if (h->status == XPL_OK) {
            h->status = xpl_trace_memory_init(&h->trace, h->profile.bytes, &a->opt.trace, a->exec,
                                              LIMIT, &h->arena, &why);
            XPL_TRY(xpl_source_verify(h->source, err));
            if (h->status != XPL_OK) (void)about(h, h->status, &why, &h->err);
        }
        if (h->status == XPL_OK || (h->status == XPL_DATA_LOSS && !by_name(a->args) && a->n > 1))
            continue;
        *err = h->err;
        return h->status;
    }
    return XPL_OK;
}

// The traces of all valid hosts, side by side.
static xpl_status_t trace(struct analysis *a, struct xpl_error *err) {
    struct xpl_trace_host *list = xpl_arena_array(&a->arena, a->n, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    XPL_TRY(index_traces(a, err));
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct host *h = &a->hosts[i];
        if (h->status == XPL_OK)
            list[n++] = (struct xpl_trace_host){h->name, h->trace.trace, h->profile.bytes};
        else
            (void)fprintf(stderr, "xplanectl: warning: %.*s: %s\n", XPL_STR_FMT(h->name),
                          h->err.msg);
    }
    struct xpl_exec exec = xpl_exec_serial();
    if (n) return xpl_trace_answer(list, n, &a->opt.trace, &exec, LIMIT, &a->out, err);
    *err = a->hosts[0].err;
    return XPL_DATA_LOSS;
}

static xpl_status_t run(struct analysis *a, struct xpl_error *err) {
    bool device = false;
    a->tool = xpl_tool_find(xpl_str_from(a->args->rest[1]));
    if (!a->tool) return unknown_tool(a->args->rest[1], err);
    XPL_TRY(parse_options(a, err));
    XPL_TRY(open_hosts(a, &device, err));
    if (a->tool->product == XPL_PRODUCT_TRACE) return trace(a, err);
    if (a->tool->product != XPL_PRODUCT_OP_STATS) return answer_of_host(a, err);
    XPL_TRY(convert(a, a->opt.cpu_as_device && !device, err));
    return render(a, err);
}

int xpl_cmd_analyze(const struct xpl_args *args) {
    struct analysis a = {.args = args};
    xpl_arena_init(&a.arena, LIMIT);
    xpl_buf_init(&a.out, LIMIT);
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *pool = args->jobs == 1 ? NULL : xpl_exec_pool_new((unsigned)args->jobs);
    a.exec = pool ? xpl_exec_pool_get(pool) : &serial;
    struct xpl_error err = {0};
    const xpl_status_t st = run(&a, &err);
    int status = XPL_EXIT_OK;
    if (st != XPL_OK)
        status = fail(st, &err);
    else if (!xpl_write_out(args, a.out.p, a.out.n))
        status = XPL_EXIT_FAILED;
    for (size_t i = 0; i < a.n; i++)
        close_host(&a.hosts[i]);
    xpl_exec_pool_free(pool);
    xpl_buf_fini(&a.out);
    xpl_arena_fini(&a.arena);
    return status;
}
