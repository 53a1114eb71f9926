// SPDX-License-Identifier: Apache-2.0
// HOST.xplane.pb: an XSpace.  The bytes of the file are those of the profile.
#include "analysis/formats/format.h"

// An XSpace begins with one of its fields, all of which are length-delimited.
static unsigned xspace_sniff(xpl_bytes_t head) {
    enum { FIRST_TAG = 1 << 3 | 2, LAST_TAG = 4 << 3 | 2, LENGTH_MAX = 10 };
    if (head.len < 2 || head.ptr[0] < FIRST_TAG || head.ptr[0] > LAST_TAG || (head.ptr[0] & 7) != 2)
        return 0;
    for (size_t i = 1; i < head.len && i <= LENGTH_MAX; i++)
        if (head.ptr[i] < 0x80) return XPL_SURE_WEAK;
    return 0;
}

const struct xpl_format xpl_format_xspace = {
    .name = "xspace",
    .label = "an XSpace",
    .family = "xspace",
    .title = "XLA",
    .suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(XPL_FORMAT_SUFFIX), NULL},
    .facts = (1 << XPL_N_FACTS) - 1 - XPL_FACT_BUNDLE,
    .sniff = xspace_sniff,
};
