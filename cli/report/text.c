// SPDX-License-Identifier: Apache-2.0
#include "base/text/utf8.h"
#include "cli/report/parts.h"

void xpl_report_text(struct xpl_buf *out, xpl_str_t s, size_t max) {
    static const struct {
        char c;
        const char *entity;
    } special[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    size_t i = 0, used;
    for (; i < s.len && max; i += used, max--) {
        const xpl_str_t c = xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used);
        size_t k = 0;
        while (k < sizeof special / sizeof *special && (c.len != 1 || special[k].c != c.ptr[0]))
            k++;
        xpl_buf_str(out,
                    k < sizeof special / sizeof *special ? xpl_str_from(special[k].entity) : c);
    }
    if (i < s.len) xpl_buf_str(out, XPL_STR("\xe2\x80\xa6"));
}
