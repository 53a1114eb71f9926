// SPDX-License-Identifier: Apache-2.0
#include "cli/iree/modes.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/text/near.h"

static const struct mode {
    const char *name;
    bool counters; // needs counters to be named
} modes[] = {
    {"queue-events", false},
    {"host-execution", false},
    {"device-queue-events", false},
    {"dispatch-events", false},
    {"memory-events", false},
    {"device-metrics", false},
    {"command-region-events", false},
    {"counters", true},
    {"pmc", true}, // IREE's other names of the two
    {"counter-ranges", true},
    {"pmc-ranges", true},
    {"executable-metadata", false},
    {"executable-traces", false},
};
enum { N_MODES = sizeof modes / sizeof *modes };

// What drivers of the wheel write, without what changes the times of others.
static const struct {
    const char *driver, *modes;
} defaults[] = {
    {"local-task",
     "queue-events,host-execution,memory-events,command-region-events,executable-metadata"},
    {"local-sync", "queue-events,host-execution,memory-events,executable-metadata"},
    {"vulkan",
     "queue-events,device-queue-events,dispatch-events,memory-events,executable-metadata"},
    {"amdgpu",
     "queue-events,device-queue-events,dispatch-events,memory-events,executable-metadata"},
};
enum { N_DEFAULTS = sizeof defaults / sizeof *defaults };

static const struct mode *find(xpl_str_t name) {
    for (size_t i = 0; i < N_MODES; i++)
        if (xpl_str_eq(name, xpl_str_from(modes[i].name))) return &modes[i];
    return NULL;
}

static bool unknown(xpl_str_t name) {
    struct xpl_near near = xpl_near_begin(name);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < N_MODES; i++)
        xpl_near_add(&near, xpl_str_from(modes[i].name));
    (void)fprintf(stderr, "xplanectl: --mode: no mode \"%.*s\"%s\nModes:", XPL_STR_FMT(name),
                  xpl_near_text(&near, hint));
    for (size_t i = 0; i < N_MODES; i++)
        (void)fprintf(stderr, " %s", modes[i].name);
    (void)fputc('\n', stderr);
    return false;
}

bool xpl_modes_check(const char *list, bool counters) {
    bool wants_counters = false;
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        const xpl_str_t name = {p, n};
        const struct mode *const m = find(name);
        if (n == 0) {
            (void)fputs("xplanectl: --mode: an empty name in the list\n", stderr);
            return false;
        }
        if (!m) return unknown(name);
        wants_counters |= m->counters;
        p += n;
        if (!*p) break;
    }
    if (wants_counters == counters) return true;
    (void)fputs(counters ? "xplanectl: --counter needs --mode counters or counter-ranges\n"
                         : "xplanectl: --mode counters and counter-ranges need a --counter NAME\n",
                stderr);
    return false;
}

// The value of the first --device; NULL: none.
static const char *device_of(const char *const *argv, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (strncmp(argv[i], "--device=", 9) == 0) return argv[i] + 9;
        if (strcmp(argv[i], "--device") == 0 && i + 1 < n) return argv[i + 1];
    }
    return NULL;
}

const char *xpl_modes_of(const char *const *argv, size_t n_args) {
    const char *const device = device_of(argv, n_args);
    const size_t n = device ? strcspn(device, ":") : 0;
    for (size_t i = 0; device && i < N_DEFAULTS; i++)
        if (strlen(defaults[i].driver) == n && memcmp(defaults[i].driver, device, n) == 0)
            return defaults[i].modes;
    (void)fprintf(stderr, "xplanectl: --mode is needed: %s\n",
                  device ? "the modes of this driver are not known"
                         : "the program has no --device=URI that names a driver");
    return NULL;
}
