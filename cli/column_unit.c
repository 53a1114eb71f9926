// SPDX-License-Identifier: Apache-2.0
#include "cli/column_unit.h"

#include <stddef.h>
#include <string.h>

static bool ends(const char *text, const char *tail) {
    const size_t n = strlen(text), m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

static bool is_listed(const char *id, const char *const *list) {
    for (; *list; list++)
        if (strcmp(id, *list) == 0) return true;
    return false;
}

static enum xpl_column_unit share_of(const char *id, bool of_steps) {
    static const char *const fractions[] = {"device_total_self_time_percent",
                                            "device_cumulative_total_self_time_percent",
                                            "host_total_self_time_percent",
                                            "Host_cumulative_total_self_time_percent",
                                            "gpu_tensorcore_utilization",
                                            "selfTimePercent",
                                            "cumulativeTimePercent",
                                            "total_time_in_percentage",
                                            "roofline_efficiency",
                                            "compute_efficiency",
                                            "max_mem_bw_utilization",
                                            NULL};
    static const char *const percents[] = {"infeedPercentAverage", "infeedPercentMin",
                                           "infeedPercentMax", "occupancy_pct", NULL};
    static const char *const either[] = {"total_self_time_percent",
                                         "cumulative_total_self_time_percent", NULL};
    if (is_listed(id, fractions)) return XPL_COLUMN_FRACTION;
    if (is_listed(id, percents)) return XPL_COLUMN_PERCENT;
    if (!is_listed(id, either)) return XPL_COLUMN_NUMBER;
    return of_steps ? XPL_COLUMN_FRACTION : XPL_COLUMN_PERCENT;
}

enum xpl_column_unit xpl_column_unit_of(const char *id, const char *label, bool of_steps) {
    if (strstr(label, "(us)") || strstr(label, "(\xce\xbcs)") || ends(id, "_us"))
        return XPL_COLUMN_US;
    if (strstr(label, "(in ms)") || strstr(label, "(ms)") || ends(id, "TimeMs"))
        return XPL_COLUMN_MS;
    if (ends(id, "_bytes")) return XPL_COLUMN_BYTES;
    return share_of(id, of_steps);
}
