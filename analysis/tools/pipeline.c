#include "analysis/tools/pipeline.h"

#include "analysis/tools/memory_profile/memory_profile.h"
#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/wire/wire.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/cleanup.h"

enum { XSPACE_PLANES = 1, XPLANE_NAME = 2 };

// The plane's name, the last one if the message has several; "" when there is none.
static xpl_str_t plane_name(xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    xpl_str_t name = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == XPLANE_NAME && f.type == XPL_WIRE_LEN)
            name = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
    return name;
}

bool xpl_bytes_have_device(xpl_bytes_t bytes) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != XSPACE_PLANES || f.type != XPL_WIRE_LEN) continue;
        const xpl_str_t name = plane_name(f.len);
        if (xpl_str_starts(name, XPL_STR("/device:TPU:")) ||
            xpl_str_starts(name, XPL_STR("/device:GPU:")))
            return true;
    }
    return false;
}

xpl_status_t xpl_bytes_op_stats(xpl_bytes_t bytes, const struct xpl_convert_options *opt,
                                struct xpl_exec *exec, size_t limit, struct xpl_arena *result,
                                struct xpl_opstats **ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    xpl_arena_init(&view, limit);
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open(bytes, &view, exec, &xs, err));
    return xpl_opstats_convert(xs, opt, exec, result, limit, ret, err);
}

xpl_status_t xpl_bytes_memory_profile(xpl_bytes_t bytes, struct xpl_exec *exec, size_t limit,
                                      struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    xpl_arena_init(&view, limit);
    struct xpl_xspace *xs;
    XPL_TRY(xpl_xspace_open(bytes, &view, exec, &xs, err));
    return xpl_memory_profile(xs, exec, limit, out, err);
}

xpl_status_t xpl_bytes_answer(const struct xpl_tool *tool, xpl_bytes_t bytes, struct xpl_exec *exec,
                              size_t limit, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, limit);
    if (tool->product == XPL_PRODUCT_MEMORY_PROFILE)
        return xpl_bytes_memory_profile(bytes, exec, limit, out, err);
    if (tool->product != XPL_PRODUCT_TRACE_VIEWER)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s is not made of one host's profile", tool->name);
    XPL_TRY(xpl_xspace_open(bytes, &view, exec, &xs, err));
    return xpl_trace_viewer(xs, XPL_TRACE_VIEWER_MAX_EVENTS, exec, limit, out, err);
}

xpl_status_t xpl_answer_render(const struct xpl_tool *tool, const struct xpl_tool_options *opt,
                               const struct xpl_host_opstats *hosts, size_t n, size_t limit,
                               struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init(&scratch, limit);
    struct xpl_opstats *all;
    XPL_TRY(xpl_opstats_combine(hosts, n, opt->xprof_exact, &scratch, &all, err));
    XPL_TRY(tool->render(all, opt, &scratch, out, err));
    if (out->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "%s: the answer is over the limit of %zu bytes", tool->name, limit);
    return XPL_OK;
}
