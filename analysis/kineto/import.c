// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "analysis/kineto/impl.h"

static bool is_blank(uint8_t c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

enum xpl_kineto_sniffed xpl_kineto_sniff(xpl_bytes_t head) {
    static const xpl_str_t keys[] = {{"\"schemaVersion\"", 15},       {"\"deviceProperties\"", 18},
                                     {"\"baseTimeNanoseconds\"", 21}, {"\"cpu_op\"", 8},
                                     {"\"distributedInfo\"", 17},     {"\"user_annotation\"", 17},
                                     {"\"python_function\"", 17},     {"\"cuda_runtime\"", 14}};
    xpl_str_t s = {(const char *)head.ptr, head.len < XPL_KINETO_HEAD ? head.len : XPL_KINETO_HEAD};
    if (xpl_str_starts(s, XPL_STR("\xef\xbb\xbf"))) s = xpl_str_sub(s, 3, SIZE_MAX);
    while (s.len && is_blank((uint8_t)s.ptr[0]))
        s = xpl_str_sub(s, 1, SIZE_MAX);
    if (!s.len || (s.ptr[0] != '{' && s.ptr[0] != '[')) return XPL_KINETO_NOT;
    const bool events = s.ptr[0] == '[' ? xpl_str_has(s, XPL_STR("\"ph\""))
                                        : xpl_str_has(s, XPL_STR("\"traceEvents\""));
    const size_t n = s.ptr[0] == '{' ? sizeof keys / sizeof *keys : 0;
    bool version = false; // which other JSON has as well
    for (size_t i = 0; i < n; i++) {
        if ((!events && i > 1) || !xpl_str_has(s, keys[i])) continue;
        if (events || i) return XPL_KINETO_SURE;
        version = true;
    }
    return events || version ? XPL_KINETO_TRACE : XPL_KINETO_NOT;
}

static xpl_status_t import(struct trace *t, struct xpl_buf *out) {
    if (!xpl_kineto_init(t)) return xpl_kineto_failure(t);
    XPL_TRY(xpl_kineto_read(t));
    if (t->scratch.failed) XPL_RETURN_OOM(t->err, "PyTorch trace"); // some text is not whole
    if (is_damaged(&t->lost) && !t->n_events)
        XPL_RETURN_ERROR_AT(t->err, XPL_DATA_LOSS,
                            t->lost.damaged ? t->lost.first_damaged_at : t->lost.cut_at,
                            "the trace is damaged before its first event");
    XPL_TRY(xpl_kineto_link(t));
    return xpl_kineto_write(t, out);
}

xpl_status_t xpl_kineto_import(struct xpl_json_reader *reader,
                               const struct xpl_kineto_options *options, struct xpl_buf *out,
                               bool *ret_partial, struct xpl_error *err) {
    struct trace t = {.r = reader, .options = options, .err = err, .rank = -1, .world_size = -1};
    const xpl_status_t st = import(&t, out);
    *ret_partial = st == XPL_OK && has_losses(&t.lost);
    xpl_kineto_fini(&t);
    return st;
}
