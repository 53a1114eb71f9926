// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/columns.h"

#include <stddef.h>

static bool is_listed(xpl_str_t id, const char *const *list) {
    for (; *list; list++)
        if (xpl_str_eq(id, xpl_str_from(*list))) return true;
    return false;
}

bool xpl_column_is_fraction(xpl_str_t id, bool of_steps) {
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
                                            "timeInPercent",
                                            "selfTimeInPercent",
                                            NULL};
    static const char *const either[] = {"total_self_time_percent",
                                         "cumulative_total_self_time_percent", NULL};
    return is_listed(id, fractions) || (of_steps && is_listed(id, either));
}
