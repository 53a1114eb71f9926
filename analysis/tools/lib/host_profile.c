// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/host_profile.h"

xpl_status_t xpl_host_profile_failed(const struct xpl_tool_input *in, size_t host,
                                     const struct xpl_error *why, struct xpl_error *err) {
    if (why->code == XPL_DATA_LOSS)
        XPL_RETURN_ERROR_AT(err, why->code, why->offset, "%s: %s", in->hosts[host].path, why->msg);
    if (err) *err = *why;
    return why->code;
}

xpl_status_t xpl_host_profile_open(const struct xpl_tool_input *in, size_t host,
                                   struct xpl_arena *arena, struct xpl_xspace **ret,
                                   struct xpl_error *err) {
    struct xpl_error why = {0};
    if (xpl_xspace_open(in->hosts[host].profile, arena, in->exec, ret, &why) == XPL_OK)
        return XPL_OK;
    return xpl_host_profile_failed(in, host, &why, err);
}
