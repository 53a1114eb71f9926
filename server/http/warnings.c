#include "server/http/warnings.h"

#include "analysis/wire/wire.h"

// Of ToolData and its Warning (proto/xplaned/v1/analysis.proto), as the engine serializes them.
enum { TOOLDATA_WARNINGS = 4, WARNING_HOST = 1, WARNING_TEXT = 2 };

static struct xpl_http_warning read_warning(xpl_bytes_t message) {
    struct xpl_http_warning warning = {0};
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        const xpl_str_t s = {(const char *)f.len.ptr, f.len.len};
        if (f.num == WARNING_HOST) warning.host = s;
        if (f.num == WARNING_TEXT) warning.text = s;
    }
    return warning;
}

size_t xpl_http_get_warnings(const struct xpl_tool_data *a, struct xpl_http_warning *ret,
                             size_t max) {
    struct xpl_wire w = xpl_wire_begin(a->warnings);
    struct xpl_field f;
    size_t n = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != TOOLDATA_WARNINGS || f.type != XPL_WIRE_LEN) continue;
        if (n < max) ret[n] = read_warning(f.len);
        n++;
    }
    return n;
}
