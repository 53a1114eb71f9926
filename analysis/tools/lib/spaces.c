// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/spaces.h"

static void warn_of(const struct xpl_tool_input *in, size_t i, const struct xpl_error *why) {
    struct xpl_error said = {0};
    if (!in->warn || xpl_error_of_profile(why, in->hosts[i].path, &said) == XPL_OK) return;
    in->warn(in->warn_arg, in->hosts[i].name, xpl_str_from(said.msg));
}

xpl_status_t xpl_spaces_open(const struct xpl_tool_input *in, struct xpl_arena *arena,
                             const struct xpl_xspace **spaces, struct xpl_error *err) {
    size_t opened = 0, damaged = SIZE_MAX;
    struct xpl_error first = {0};
    for (size_t i = 0; i < in->n_hosts; i++) {
        struct xpl_xspace *space = NULL;
        struct xpl_error why = {0};
        spaces[i] = NULL;
        if (!in->hosts[i].products) continue; // it cannot be read
        const xpl_status_t st =
            xpl_xspace_open(in->hosts[i].profile, arena, in->exec, &space, &why);
        if (st != XPL_OK && (in->by_name || st != XPL_DATA_LOSS))
            return xpl_error_of_profile(&why, in->hosts[i].path, err);
        if (st != XPL_OK && damaged == SIZE_MAX) damaged = i, first = why;
        if (st != XPL_OK) warn_of(in, i, &why);
        if (st == XPL_OK) spaces[i] = space, opened++;
    }
    if (opened || damaged == SIZE_MAX) return XPL_OK;
    return xpl_error_of_profile(&first, in->hosts[damaged].path, err);
}

xpl_status_t xpl_spaces_leave_out(const struct xpl_tool_input *in, const struct xpl_xspace **spaces,
                                  size_t host, const struct xpl_error *why, struct xpl_error *err) {
    size_t left = 0;
    for (size_t i = 0; i < in->n_hosts; i++)
        left += spaces[i] != NULL;
    if (in->by_name || why->code != XPL_DATA_LOSS || left < 2)
        return xpl_error_of_profile(why, in->hosts[host].path, err);
    warn_of(in, host, why);
    spaces[host] = NULL;
    return XPL_OK;
}
