// SPDX-License-Identifier: Apache-2.0
#include "cli/iree/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/parse.h"
#include "cli/iree/modes.h"
#include "cli/iree/outlet.h"
#include "cli/iree/send.h"
#include "cli/program/program.h"

enum {
    // A file header, and the header of a record: a refused capture leaves only the former.
    LEAST_BYTES = 24 + 104,
    MAX_FLAGS = 8, // of ours, counters aside
};

static int usage(const char *text) {
    (void)fprintf(stderr,
                  "xplanectl: %s\nUsage: xplanectl iree capture [--mode MODE,...] [--counter NAME] "
                  "[--filter_function GLOB]\n           [--flush_interval TIME] [--session NAME] "
                  "[--repeat N] [--logdir DIR | -o FILE] -- PROGRAM ARGUMENT...\n",
                  text);
    return XPL_EXIT_USAGE;
}

// ---- the request ----

static bool check_number(const char *flag, const char *text, int64_t least) {
    int64_t v;
    if (!text || xpl_parse_int(xpl_str_from(text), least, INT32_MAX, &v)) return true;
    (void)fprintf(stderr, "xplanectl: --%s %s: not a number from %" PRId64 "\n", flag, text, least);
    return false;
}

static bool check_flags(const struct xpl_args *a) {
    const char *const *const argv = a->rest + 2;
    for (size_t i = 0; i < a->n_counters; i++)
        if (!a->counters[i][0]) return usage("--counter: an empty name"), false;
    if (a->filter_function && !a->filter_function[0])
        return usage("--filter_function: an empty pattern"), false;
    for (size_t i = 0; i + 2 < a->n_rest; i++)
        if (strncmp(argv[i], "--device_profiling_", 19) == 0)
            return usage("the program already has --device_profiling flags: give them to "
                         "`xplanectl iree capture`"),
                   false;
    return check_number("filter_command_buffer", a->filter_command_buffer, 1) &&
           check_number("filter_command_index", a->filter_command_index, 0) &&
           check_number("filter_physical_device", a->filter_physical_device, 0) &&
           check_number("filter_queue", a->filter_queue, 0);
}

// ---- the command line ----

struct command {
    struct xpl_arena arena;
    const char **argv; // NULL-terminated
    size_t n, output;  // output: which of them names the bundle
    bool failed;
};

static void add(struct command *c, const char *flag, const char *value) {
    xpl_str_t text;
    if (!value) return;
    if (xpl_arena_printf(&c->arena, &text, "--device_profiling_%s=%s", flag, value))
        c->argv[c->n++] = text.ptr;
    else
        c->failed = true;
}

// The program with IREE's flags behind its own.
static bool make_command(struct command *c, const struct xpl_args *a, const char *modes) {
    const size_t n = a->n_rest - 2;
    char interval[32];
    xpl_arena_init(&c->arena, (size_t)64 << 20);
    c->argv = xpl_arena_array(&c->arena, n + MAX_FLAGS + a->n_counters + 1, sizeof *c->argv);
    if (!c->argv) return false;
    memcpy(c->argv, a->rest + 2, n * sizeof *c->argv);
    c->n = n;
    (void)snprintf(interval, sizeof interval, "%ld", a->flush_interval_ms);
    add(c, "mode", modes);
    add(c, "filter_function", a->filter_function);
    add(c, "filter_command_buffer", a->filter_command_buffer);
    add(c, "filter_command_index", a->filter_command_index);
    add(c, "filter_physical_device", a->filter_physical_device);
    add(c, "filter_queue", a->filter_queue);
    add(c, "flush_interval_ms", a->flush_interval_ms ? interval : NULL);
    for (size_t i = 0; i < a->n_counters; i++)
        add(c, "counter", a->counters[i]);
    c->output = c->n;
    return !c->failed;
}

// ---- one run ----

struct run {
    struct xpl_outlet *outlet;
    struct xpl_send send;
};

// Publishes flushed data: by its name in a log directory, or by sending it.
static void on_tick(void *arg) {
    struct run *const run = arg;
    struct xpl_outlet *const p = run->outlet;
    if (p->shown || run->send.started || xpl_outlet_bytes(p) <= LEAST_BYTES) return;
    if (p->args->logdir)
        xpl_outlet_show(p);
    else if (p->args->flush_interval_ms && !p->args->out)
        xpl_send_start(&run->send, p);
}

static void say_end(const char *program, const struct xpl_program_end *end, bool kept) {
    const char *const rest =
        kept ? "its output until then is kept" : "it wrote nothing that could be kept";
    if (end->signal)
        (void)fprintf(stderr, "xplanectl: %s was ended by signal %d: %s\n", program, end->signal,
                      rest);
    else if (end->exit_code)
        (void)fprintf(stderr, "xplanectl: %s ended with status %d: %s\n", program, end->exit_code,
                      rest);
    else if (!kept)
        (void)fprintf(stderr, "xplanectl: %s ended without a profile\n", program);
}

static int run_in(struct command *c, struct xpl_outlet *p, bool *ret_interrupted) {
    struct xpl_program_end end;
    struct run run = {.outlet = p};
    c->n = c->output;
    add(c, "output", p->path);
    c->argv[c->n] = NULL;
    // Standard output has only our own lines.
    const bool ran = !c->failed && xpl_program_run(c->argv, STDERR_FILENO, on_tick, &run, &end);
    xpl_send_stop(&run.send);
    if (!ran) return XPL_EXIT_FAILED;
    const bool some = xpl_outlet_bytes(p) > LEAST_BYTES, whole = end.exit_code == 0;
    const bool kept = some && xpl_outlet_keep(p);
    *ret_interrupted = end.interrupted;
    if (!some || kept) say_end(c->argv[0], &end, kept);
    return !kept ? XPL_EXIT_FAILED : whole ? XPL_EXIT_OK : XPL_EXIT_PARTLY;
}

static int run_once(struct command *c, const struct xpl_args *a, const char *name,
                    bool *ret_interrupted) {
    struct xpl_outlet *const p = xpl_sys_alloc(sizeof *p); // it has paths
    int status = XPL_EXIT_FAILED;
    if (!p) return status;
    if (xpl_outlet_open(p, a, name)) status = run_in(c, p, ret_interrupted);
    xpl_outlet_close(p);
    xpl_sys_free(p);
    return status;
}

// ---- several ----

// Sessions NAME_1 and so on, so that `compare` takes them as the runs of one side.
static int run_all(struct command *c, const struct xpl_args *a) {
    char now[XPL_SESSION_WRITER_NAME_SIZE], name[XPL_SESSION_WRITER_NAME_SIZE + 32];
    const long n = a->repeat ? a->repeat : 1;
    bool interrupted = false;
    int status = XPL_EXIT_OK;
    xpl_session_writer_name(now, (int64_t)time(NULL));
    for (long i = 1; i <= n && !interrupted && status == XPL_EXIT_OK; i++) {
        (void)snprintf(name, sizeof name, "%s_%ld", a->session ? a->session : now, i);
        status = run_once(c, a, a->repeat ? name : a->session, &interrupted);
    }
    return status;
}

int xpl_iree_capture_program(const struct xpl_args *a) {
    if (a->n_rest < 3) return usage("no program");
    struct command c = {0};
    if (a->out && (a->logdir || a->repeat || a->session))
        return usage("-o FILE is for one bundle, without a session");
    if (!check_flags(a)) return XPL_EXIT_USAGE;
    const char *const modes = a->mode ? a->mode : xpl_modes_of(a->rest + 2, a->n_rest - 2);
    if (!modes || !xpl_modes_check(modes, a->n_counters != 0)) return XPL_EXIT_USAGE;
    const int status = make_command(&c, a, modes) ? run_all(&c, a) : XPL_EXIT_FAILED;
    xpl_arena_fini(&c.arena);
    return status;
}
