// SPDX-License-Identifier: Apache-2.0
// Directories of sessions whose labels are tested: how they are made, and a catalogue of one.
#ifndef XPL_TESTS_UNIT_SERVER_LABELS_FIXTURE_H_
#define XPL_TESTS_UNIT_SERVER_LABELS_FIXTURE_H_

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/formats/format.h"
#include "storage/sessions/catalogue.h"
#include "tests/check.h"

// Runs a command that must not fail.
__attribute__((format(printf, 1, 2))) static inline void shell(const char *format, ...) {
    char command[300];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    CHECK_EQ(system(command), 0);
}

// The sessions below TOP/log.
// Which has so many hosts at most (0: no limit to speak of).
static inline struct xpl_catalogue *open_catalogue(const char *top, uint32_t max_hosts) {
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    char logdir[64];
    (void)snprintf(logdir, sizeof logdir, "%s/log", top);
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = logdir, .match = xpl_format_match, .max_hosts = max_hosts};
    CHECK_EQ(xpl_catalogue_new(&o, &c, &err), XPL_OK);
    return c;
}

#endif
