// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/kind.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/text/units.h"
#include "capture/capture.h"
#include "cli/data_table.h"
#include "cli/output.h"
#include "storage/sessions/catalogue.h"

static bool usage(const char *what, const char *arg) {
    (void)fprintf(stderr, "xplanectl: %s%s%s\nTry: xplanectl --help\n", what, arg ? ": " : "",
                  arg ? arg : "");
    return false;
}

static bool add_pair(const char **list, size_t *n, const char *name, const char *kv) {
    const char *const eq = strchr(kv, '=');
    if (!eq || eq == kv) return usage(name, kv);
    char *key = xpl_sys_alloc(strlen(kv) + 1);
    if (!key) return usage("out of memory", NULL);
    strcpy(key, kv);
    key[eq - kv] = 0;
    list[2 * *n] = key;
    list[2 * *n + 1] = key + (eq - kv) + 1;
    ++*n;
    return true;
}

// ---- flags ----

enum kind {
    SWITCH,
    TEXT,
    NUMBER,
    TIME,
    SIZE,
    HOST,     // may be given several times
    OPTION,   // key=value, may be given several times
    ADVANCED, // likewise
};

#define DAY_MS    86400000L
#define AT(field) offsetof(struct xpl_args, field)

static const struct row {
    const char *name;
    enum kind kind;
    size_t offset; // of its member; of what may be given several times nothing
    long min, max; // of NUMBER, TIME, SIZE
} rows[] = {
    {"json", SWITCH, AT(json), 0, 0},
    {"table", SWITCH, AT(table), 0, 0},
    {"all", SWITCH, AT(all), 0, 0},
    {"direct", SWITCH, AT(direct), 0, 0},
    {"continuous", SWITCH, AT(continuous), 0, 0},
    {"detach", SWITCH, AT(detach), 0, 0},
    {"quiet", SWITCH, AT(quiet), 0, 0},
    {"dispatch_events", SWITCH, AT(dispatch_events), 0, 0},
    {"counter_samples", SWITCH, AT(counter_samples), 0, 0},
    {"unfinished", SWITCH, AT(unfinished), 0, 0},
    {"help", SWITCH, AT(help), 0, 0},
    {"help-man", SWITCH, AT(help_man), 0, 0},
    {"version", SWITCH, AT(version), 0, 0},
    {"server", TEXT, AT(server), 0, 0},
    {"token-file", TEXT, AT(token_file), 0, 0},
    {"tls-roots", TEXT, AT(tls_roots), 0, 0},
    {"tls-cert", TEXT, AT(tls_cert), 0, 0},
    {"tls-key", TEXT, AT(tls_key), 0, 0},
    {"tls-name", TEXT, AT(tls_name), 0, 0},
    {"output", TEXT, AT(out), 0, 0},
    {"logdir", TEXT, AT(logdir), 0, 0},
    {"format", TEXT, AT(format), 0, 0},
    {"filter", TEXT, AT(filter), 0, 0},
    {"id", TEXT, AT(id), 0, 0},
    {"rocm_library_path", TEXT, AT(rocm_library_path), 0, 0},
    {"text", TEXT, AT(text), 0, 0},
    {"fail-if", TEXT, AT(fail_if), 0, 0},
    {"memory", TEXT, AT(memory), 0, 0},
    {"other", TEXT, AT(other), 0, 0},
    {"session", TEXT, AT(session), 0, 0},
    {"host-names", TEXT, AT(host_names), 0, 0},
    {"remote-logdir", TEXT, AT(remote_logdir), 0, 0},
    {"jobs", NUMBER, AT(jobs), 0, 1024},
    {"timeout-ms", NUMBER, AT(timeout_ms), 0, DAY_MS},
    {"keep", NUMBER, AT(keep), 0, 1000000},
    {"retries", NUMBER, AT(retries), 0, XPL_CAPTURE_MAX_RETRIES},
    {"host-tracer", NUMBER, AT(host_tracer), 0, 1000},
    {"device-tracer", NUMBER, AT(device_tracer), 0, 1000},
    {"python-tracer", NUMBER, AT(python_tracer), 0, 1000},
    {"duration", TIME, AT(duration_ms), 1, XPL_CAPTURE_MAX_DURATION_MS},
    {"delay", TIME, AT(delay_ms), 0, XPL_CAPTURE_MAX_DURATION_MS},
    {"every", TIME, AT(every_ms), 1000, 366 * DAY_MS},
    {"keep-age", TIME, AT(keep_age_ms), 0, 3660 * DAY_MS},
    {"connect-timeout", TIME, AT(connect_timeout_ms), 0, DAY_MS},
    {"answer-timeout", TIME, AT(answer_timeout_ms), 0, DAY_MS},
    {"keep-bytes", SIZE, AT(keep_bytes), 0, 1L << 60},
    {"host", HOST, 0, 0, 0},
    {"option", OPTION, 0, 0, 0},
    {"advanced", ADVANCED, 0, 0, 0},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool unknown(const char *arg, const char *name) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, "help-man") != 0) xpl_near_add(&near, xpl_str_from(rows[i].name));
    (void)fprintf(stderr, "xplanectl: unknown option \"%s\"%s\nTry: xplanectl --help\n", arg,
                  xpl_near_flag(&near, hint));
    return false;
}

static bool refuse(const struct row *row, const char *value, const char *why) {
    (void)fprintf(stderr, "xplanectl: --%s %s: %s\nTry: xplanectl --help\n", row->name, value, why);
    return false;
}

static bool number(const struct row *row, const char *value, long *ret) {
    char why[64];
    int64_t v;
    if (xpl_parse_int(xpl_str_from(value), row->min, row->max, &v)) {
        *ret = (long)v;
        return true;
    }
    (void)snprintf(why, sizeof why, "not a number from %ld to %ld", row->min, row->max);
    return refuse(row, value, why);
}

// A time or a size, with its unit.
static bool scaled(const struct row *row, const char *value, enum xpl_unit_kind kind, long *ret) {
    uint64_t v;
    const enum xpl_unit_result r = xpl_units_parse(value, kind, &v);
    char why[XPL_UNITS_TEXT], min[XPL_UNITS_VALUE], max[XPL_UNITS_VALUE];
    if (r != XPL_UNIT_OK) return refuse(row, value, xpl_units_explain(value, kind, r, why));
    if (v >= (uint64_t)row->min && v <= (uint64_t)row->max) {
        *ret = (long)v;
        return true;
    }
    (void)snprintf(why, sizeof why, "not from %s to %s",
                   xpl_units_show((uint64_t)row->min, kind, min),
                   xpl_units_show((uint64_t)row->max, kind, max));
    return refuse(row, value, why);
}

static bool assign(struct xpl_args *a, const struct row *row, const char *value) {
    void *const to = (char *)a + row->offset;
    switch (row->kind) {
        case TEXT: *(const char **)to = value; return true;
        case NUMBER: return number(row, value, to);
        case TIME: return scaled(row, value, XPL_UNIT_TIME, to);
        case SIZE: return scaled(row, value, XPL_UNIT_SIZE, to);
        case HOST: a->hosts[a->n_hosts++] = value; return true;
        case OPTION: return add_pair(a->options, &a->n_options, "--option needs key=value", value);
        case ADVANCED:
            return add_pair(a->advanced, &a->n_advanced, "--advanced needs key=value", value);
        case SWITCH: break;
    }
    return false;
}

static const struct row *find_row(const char *name, size_t len) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0) return &rows[i];
    return NULL;
}

// The long name of "-o", "-j", "-h", or "".
static const char *long_name(char c) {
    return c == 'o' ? "output" : c == 'j' ? "jobs" : c == 'h' ? "help" : "";
}

static bool flag(struct xpl_args *a, int argc, char **argv, int *at) {
    const char *const arg = argv[(*at)++];
    const bool is_long = arg[1] == '-';
    const char *const name = is_long ? arg + 2 : long_name(arg[1]);
    const char *const eq = is_long ? strchr(name, '=') : NULL;
    const struct row *const row = find_row(name, eq ? (size_t)(eq - name) : strlen(name));
    const char *value = eq ? eq + 1 : !is_long && arg[2] ? arg + 2 : NULL;
    if (!row) return unknown(arg, name);
    if (row->kind == SWITCH) {
        if (value) return usage("option takes no value", arg);
        *(bool *)((char *)a + row->offset) = true;
        return true;
    }
    if (!value) {
        if (*at >= argc) return usage("option needs a value", arg);
        value = argv[(*at)++];
    }
    return assign(a, row, value);
}

bool xpl_args_parse(struct xpl_args *a, int argc, char **argv) {
    *a = (struct xpl_args){.host_tracer = -1, .device_tracer = -1, .python_tracer = -1};
    const size_t n = (size_t)argc + 1;
    a->hosts = xpl_sys_alloc(n * sizeof *a->hosts);
    a->options = xpl_sys_alloc(2 * n * sizeof *a->options);
    a->advanced = xpl_sys_alloc(2 * n * sizeof *a->advanced);
    a->rest = xpl_sys_alloc(n * sizeof *a->rest);
    if (!a->hosts || !a->options || !a->advanced || !a->rest) return usage("out of memory", NULL);
    bool flags = true;
    for (int at = 1; at < argc;) {
        const char *const arg = argv[at];
        if (flags && strcmp(arg, "--") == 0) {
            flags = false;
            at++;
        } else if (flags && arg[0] == '-' && arg[1]) {
            if (!flag(a, argc, argv, &at)) return false;
        } else {
            a->rest[a->n_rest++] = argv[at++];
        }
    }
    return true;
}

static void free_list(const char **list) {
    xpl_sys_free((void *)(uintptr_t)list);
}

void xpl_args_fini(struct xpl_args *a) {
    for (size_t i = 0; i < a->n_options; i++)
        xpl_sys_free((void *)(uintptr_t)a->options[2 * i]);
    for (size_t i = 0; i < a->n_advanced; i++)
        xpl_sys_free((void *)(uintptr_t)a->advanced[2 * i]);
    free_list(a->options);
    free_list(a->advanced);
    free_list(a->hosts);
    free_list(a->rest);
    *a = (struct xpl_args){0};
}

void xpl_warn_left_out(const struct xpl_inputs *in) {
    for (size_t i = 0; i < in->n_left_out; i++)
        (void)fprintf(stderr,
                      "xplanectl: warning: %s is left out: its host has another file there\n",
                      in->left_out[i]);
}

int xpl_answered(const char *tool, bool warned) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(tool));
    return warned && t && !xpl_tool_fits(t, XPL_KIND_XSPACE) ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

// The tables of an answer as text, in memory of malloc; NULL after saying why on stderr.
static char *table_text(const void *p, size_t n, size_t *ret_n) {
    char *text = NULL;
    FILE *const f = open_memstream(&text, ret_n);
    const bool printed = f && xpl_data_table_print(p, n, f);
    if (f && fclose(f) == 0 && printed) return text;
    (void)fputs("xplanectl: --table: the answer has no tables\n", stderr);
    free(text);
    return NULL;
}

bool xpl_write_out(const struct xpl_args *a, const void *p, size_t n) {
    struct xpl_output o;
    char *const text = a->table ? table_text(p, n, &n) : NULL;
    if (a->table && !text) return false;
    bool ok = xpl_output_open(&o, a->out);
    if (ok && fwrite(text ? text : p, 1, n, o.f) != n) {
        (void)fprintf(stderr, "xplanectl: cannot write %s: %s\n", o.path, strerror(errno));
        xpl_output_abort(&o);
        ok = false;
    } else if (ok) {
        ok = xpl_output_commit(&o);
    }
    free(text);
    return ok;
}

bool xpl_args_name_host(const struct xpl_args *a, xpl_str_t host) {
    for (size_t i = 0; i < a->n_hosts; i++)
        if (xpl_str_eq(host, xpl_str_from(a->hosts[i])) || strcmp(a->hosts[i], "ALL_HOSTS") == 0)
            return true;
    return a->n_hosts == 0;
}
