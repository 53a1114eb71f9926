// SPDX-License-Identifier: Apache-2.0
#include "base/text/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 40 }; // characters of a value in a sentence

static const struct unit {
    const char *name;
    enum xpl_unit_kind kind;
    double factor;
} units[] = {
    {"ms", XPL_UNIT_TIME, 1},       {"s", XPL_UNIT_TIME, 1000},     {"m", XPL_UNIT_TIME, 60000},
    {"min", XPL_UNIT_TIME, 60000},  {"h", XPL_UNIT_TIME, 3600000},  {"d", XPL_UNIT_TIME, 86400000},
    {"B", XPL_UNIT_SIZE, 1},        {"KiB", XPL_UNIT_SIZE, 0x1p10}, {"MiB", XPL_UNIT_SIZE, 0x1p20},
    {"GiB", XPL_UNIT_SIZE, 0x1p30}, {"TiB", XPL_UNIT_SIZE, 0x1p40}, {"K", XPL_UNIT_SIZE, 0x1p10},
    {"M", XPL_UNIT_SIZE, 0x1p20},   {"G", XPL_UNIT_SIZE, 0x1p30},   {"T", XPL_UNIT_SIZE, 0x1p40},
};

static double factor_of(const char *name, enum xpl_unit_kind kind) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].kind == kind && strcasecmp(units[i].name, name) == 0) return units[i].factor;
    return 0;
}

// One number with its unit; *text moves behind it.
static enum xpl_unit_result parse_one(const char **text, enum xpl_unit_kind kind, double *ret) {
    // strtod would take "1e3", "0x10", "inf" and a sign, too.
    const size_t n = strspn(*text, "0123456789.");
    char *end, name[8];
    errno = 0;
    const double v = n ? strtod(*text, &end) : 0;
    if (n == 0 || errno || end != *text + n) return XPL_UNIT_BAD;
    while (*end == ' ')
        end++;
    const size_t letters = strcspn(end, "0123456789. ");
    *text = end + letters;
    *ret = 0;
    if (letters == 0) return *end ? XPL_UNIT_BAD : v == 0 ? XPL_UNIT_OK : XPL_UNIT_MISSING;
    (void)snprintf(name, sizeof name, "%.*s", (int)letters, end);
    const double factor = letters < sizeof name ? factor_of(name, kind) : 0;
    if (factor == 0) return XPL_UNIT_BAD;
    *ret = v * factor;
    return v > 0 && *ret < 1 ? XPL_UNIT_SMALL : XPL_UNIT_OK; // not 0, which often means "no limit"
}

enum xpl_unit_result xpl_units_parse(const char *text, enum xpl_unit_kind kind, uint64_t *ret) {
    double sum = 0, one;
    do {
        const enum xpl_unit_result r = parse_one(&text, kind, &one);
        if (r != XPL_UNIT_OK) return r;
        sum += one;
    } while (*text && kind == XPL_UNIT_TIME); // "1h30m"
    if (*text || sum >= 0x1p63) return XPL_UNIT_BAD;
    *ret = (uint64_t)sum;
    return XPL_UNIT_OK;
}

const char *xpl_units_explain(const char *text, enum xpl_unit_kind kind, enum xpl_unit_result r,
                              char buf[XPL_UNITS_TEXT]) {
    const bool time = kind == XPL_UNIT_TIME;
    const int n = (int)strcspn(text, " ");
    const int shown = n < SHOWN ? n : SHOWN;
    if (r == XPL_UNIT_MISSING)
        (void)snprintf(buf, XPL_UNITS_TEXT, "a unit is missing; write %.*s%s or %.*s%s", shown,
                       text, time ? "s" : "GiB", shown, text, time ? "ms" : "B");
    else if (r == XPL_UNIT_SMALL)
        (void)snprintf(buf, XPL_UNITS_TEXT, "less than %s", time ? "1ms" : "1B");
    else
        (void)snprintf(buf, XPL_UNITS_TEXT, "no %s",
                       time ? "time; write 500ms, 2s, 10m, 1h30m or 7d"
                            : "size; write 64KiB, 256MiB or 10GiB");
    return buf;
}

const char *xpl_units_show(uint64_t v, enum xpl_unit_kind kind, char buf[XPL_UNITS_VALUE]) {
    const struct unit *best = NULL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].kind == kind && v % (uint64_t)units[i].factor == 0 &&
            (!best || units[i].factor > best->factor))
            best = &units[i];
    (void)snprintf(buf, XPL_UNITS_VALUE, v && best ? "%" PRIu64 "%s" : "%" PRIu64,
                   v && best ? v / (uint64_t)best->factor : v, v && best ? best->name : "");
    return buf;
}
