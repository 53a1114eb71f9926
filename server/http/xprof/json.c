// SPDX-License-Identifier: Apache-2.0
// What XProf's routes answer with: JSON as Python's json.dumps writes it.
#include "server/http/reply.h"
#include "server/http/xprof/xprof.h"

void xpl_http_put_py_str(struct xpl_buf *b, xpl_str_t s) {
    xpl_buf_putc(b, '"');
    for (size_t i = 0; i < s.len;) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\') {
            xpl_buf_printf(b, "\\%c", c);
        } else if (c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f') {
            xpl_buf_printf(b, "\\%c",
                           c == '\n'   ? 'n'
                           : c == '\r' ? 'r'
                           : c == '\t' ? 't'
                           : c == '\b' ? 'b'
                                       : 'f');
        } else if (c < 0x20 || c == 0x7f) {
            xpl_buf_printf(b, "\\u%04x", c);
        } else if (c < 0x80) {
            xpl_buf_putc(b, (char)c);
        } else { // names are valid UTF-8
            const size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            uint32_t u = c & (0xffu >> (n + 1));
            for (size_t k = 1; k < n && i + k < s.len; k++)
                u = u << 6 | ((unsigned char)s.ptr[i + k] & 0x3f);
            if (u >= 0x10000)
                xpl_buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((u - 0x10000) >> 10),
                               0xdc00 + ((u - 0x10000) & 0x3ff));
            else
                xpl_buf_printf(b, "\\u%04x", u);
            i += n - 1;
        }
        i++;
    }
    xpl_buf_putc(b, '"');
}

void xpl_http_xprof_body(struct xpl_http_request *r, struct xpl_buf *b, const char *type) {
    const struct xpl_http_body_options o = {
        .policy = XPL_POLICY_XPROF, .type = type, .gzip = r->gzip, .validators = true};
    r->body = xpl_http_body_from_buf(b, &o);
}

enum MHD_Result xpl_http_reply_py_json(struct xpl_http_request *r, struct xpl_buf *b) {
    xpl_http_xprof_body(r, b, "application/json");
    return xpl_http_result(r);
}
