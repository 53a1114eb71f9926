// SPDX-License-Identifier: Apache-2.0
// HOST.xplane.pb: an XSpace as it is.  The bytes of the file are the bytes of the profile.
#include "analysis/formats/impl.h"

xpl_status_t xpl_plain_open(xpl_bytes_t file, const struct xpl_format_limits *limits,
                            struct xpl_profile *ret, struct xpl_error *err) {
    (void)limits, (void)err;
    *ret = (struct xpl_profile){.bytes = file};
    return XPL_OK;
}
