// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
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

static bool number(const char *name, const char *value, long *ret) {
    char *end;
    errno = 0;
    *ret = strtol(value, &end, 10);
    if (errno || end == value || *end || *ret < 0) return usage("not a number", name);
    return true;
}

// "500ms", "2s", "10m", "1h"; without a unit milliseconds.  Or "10GiB"; without a unit bytes.
static bool scaled(const char *name, const char *value, bool size, long *ret) {
    static const struct {
        const char *unit;
        bool size;
        double factor;
    } units[] = {{"", false, 1},         {"ms", false, 1},      {"s", false, 1000},
                 {"m", false, 60000},    {"min", false, 60000}, {"h", false, 3600000},
                 {"d", false, 86400000}, {"", true, 1},         {"B", true, 1},
                 {"KiB", true, 0x1p10},  {"MiB", true, 0x1p20}, {"GiB", true, 0x1p30},
                 {"TiB", true, 0x1p40}};
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    if (end != value && !errno && v >= 0)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (units[i].size != size || strcmp(end, units[i].unit) != 0) continue;
            if (v * units[i].factor >= 9e18) break;
            *ret = (long)(v * units[i].factor);
            return true;
        }
    return usage(size ? "not a size such as 10GiB" : "not a time such as 2s", name);
}

// The flags of captures and imports.  False: not one of them, or (*ret_known) wrong usage.
static bool assign_capture(struct xpl_args *a, const char *name, const char *value,
                           bool *ret_known) {
    const struct {
        const char *name;
        long *to;
        enum { TIME, SIZE, NUMBER } type;
    } numbers[] = {{"duration", &a->duration_ms, TIME},
                   {"delay", &a->delay_ms, TIME},
                   {"every", &a->every_ms, TIME},
                   {"keep-age", &a->keep_age_ms, TIME},
                   {"connect-timeout", &a->connect_timeout_ms, TIME},
                   {"answer-timeout", &a->answer_timeout_ms, TIME},
                   {"keep", &a->keep, NUMBER},
                   {"keep-bytes", &a->keep_bytes, SIZE},
                   {"retries", &a->retries, NUMBER},
                   {"host-tracer", &a->host_tracer, NUMBER},
                   {"device-tracer", &a->device_tracer, NUMBER},
                   {"python-tracer", &a->python_tracer, NUMBER}};
    *ret_known = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(numbers[i].name, name) != 0) continue;
        if (numbers[i].type == NUMBER) return number(name, value, numbers[i].to);
        if (!scaled(name, value, numbers[i].type == SIZE, numbers[i].to)) return false;
        // 0 is what stands for the usual duration.
        return *numbers[i].to > 0 || numbers[i].to != &a->duration_ms ||
               usage("not a time such as 2s", name);
    }
    if (strcmp(name, "advanced") == 0)
        return add_pair(a->advanced, &a->n_advanced, "--advanced wants key=value", value);
    *ret_known = false;
    return false;
}

static bool assign(struct xpl_args *a, const char *name, const char *value) {
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"server", &a->server},
                 {"token-file", &a->token_file},
                 {"tls-roots", &a->tls_roots},
                 {"tls-cert", &a->tls_cert},
                 {"tls-key", &a->tls_key},
                 {"tls-name", &a->tls_name},
                 {"output", &a->out},
                 {"logdir", &a->logdir},
                 {"session", &a->session},
                 {"host-names", &a->host_names},
                 {"remote-logdir", &a->remote_logdir}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].name, name) != 0) continue;
        *texts[i].to = value;
        return true;
    }
    if (strcmp(name, "host") == 0) {
        a->hosts[a->n_hosts++] = value;
        return true;
    }
    if (strcmp(name, "option") == 0)
        return add_pair(a->options, &a->n_options, "--option wants key=value", value);
    bool known;
    const bool ok = assign_capture(a, name, value, &known);
    if (known) return ok;
    if (strcmp(name, "jobs") == 0) return number("--jobs", value, &a->jobs);
    if (strcmp(name, "timeout-ms") == 0) return number("--timeout-ms", value, &a->timeout_ms);
    return usage("unknown option", name);
}

// Long name of a short flag with a value, or NULL.
static const char *short_name(char c) {
    return c == 'o' ? "output" : c == 'j' ? "jobs" : NULL;
}

static bool flag(struct xpl_args *a, int argc, char **argv, int *at) {
    const char *const arg = argv[(*at)++];
    char name[64];
    const char *value = NULL;
    if (arg[1] == '-') {
        if (strcmp(arg, "--json") == 0) return a->json = true;
        if (strcmp(arg, "--all") == 0) return a->all = true;
        if (strcmp(arg, "--direct") == 0) return a->direct = true;
        if (strcmp(arg, "--continuous") == 0) return a->continuous = true;
        if (strcmp(arg, "--detach") == 0) return a->detach = true;
        if (strcmp(arg, "--quiet") == 0) return a->quiet = true;
        if (strcmp(arg, "--help-man") == 0) return a->help_man = true;
        if (strcmp(arg, "--help") == 0) return a->help = true;
        if (strcmp(arg, "--version") == 0) return a->version = true;
        value = strchr(arg, '=');
        const size_t n = value ? (size_t)(value - arg) - 2 : strlen(arg) - 2;
        if (n >= sizeof name) return usage("unknown option", arg);
        memcpy(name, arg + 2, n);
        name[n] = 0;
        if (value) value++;
    } else {
        if (arg[1] == 'h' && !arg[2]) return a->help = true;
        const char *const full = short_name(arg[1]);
        if (!full) return usage("unknown option", arg);
        strcpy(name, full);
        if (arg[2]) value = arg + 2;
    }
    if (!value) {
        if (*at >= argc) return usage("option needs a value", arg);
        value = argv[(*at)++];
    }
    return assign(a, name, value);
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

bool xpl_write_out(const struct xpl_args *a, const void *p, size_t n) {
    const bool standard = !a->out || strcmp(a->out, "-") == 0;
    FILE *f = standard ? stdout : fopen(a->out, "wbe");
    bool ok = f && fwrite(p, 1, n, f) == n;
    if (f && fflush(f) != 0) ok = false;
    if (f && !standard && fclose(f) != 0) ok = false;
    if (!ok)
        (void)fprintf(stderr, "xplanectl: cannot write %s: %s\n", standard ? "output" : a->out,
                      strerror(errno));
    return ok;
}
