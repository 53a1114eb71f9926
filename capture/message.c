// SPDX-License-Identifier: Apache-2.0
#include "capture/message.h"

#include <string.h>

#include "analysis/wire/wire.h"
#include "proto/tensorflow/profiler_request.pb-c.h"
#include "rpc/message.h"

typedef Tensorflow__ProfileOptions__AdvancedConfigurationEntry entry_msg;
typedef Tensorflow__ProfileOptions__AdvancedConfigValue value_msg;

const char *xpl_capture_path(enum xpl_capture_call call) {
    switch (call) {
        case XPL_CAPTURE_SNAPSHOT: return "/tensorflow.ProfilerService/GetSnapshot";
        case XPL_CAPTURE_CONTINUOUS: return "/tensorflow.ProfilerService/StartContinuousProfiling";
        case XPL_CAPTURE_STOP: return "/tensorflow.ProfilerService/StopContinuousProfiling";
        case XPL_CAPTURE_PROFILE:
        default: return "/tensorflow.ProfilerService/Profile";
    }
}

// ---- the request ----

static char *text(const char *s) {
    return (char *)(uintptr_t)s; // protobuf-c's structs are not const; packing only reads
}

static uint32_t level(int given, uint32_t usual) {
    return given < 0 ? usual : (uint32_t)given;
}

static void set_options(Tensorflow__ProfileOptions *o, const struct xpl_capture_plan *plan,
                        const struct xpl_capture_query *q) {
    o->version = 1;
    o->include_dataset_ops = 1;
    o->host_tracer_level = level(plan->host_tracer_level, 2);
    o->device_tracer_level = level(plan->device_tracer_level, 1);
    o->python_tracer_level = level(plan->python_tracer_level, 0);
    o->enable_hlo_proto = 1;
    o->start_timestamp_ns = q->start_ns;
    o->duration_ms = (uint64_t)plan->duration_ms;
    o->repository_path = text(q->root);
    o->session_id = text(q->session_id);
}

static void put_profile(const struct xpl_capture_plan *plan, const struct xpl_capture_query *q,
                        struct xpl_buf *b) {
    entry_msg entries[XPL_CAPTURE_MAX_ADVANCED], *list[XPL_CAPTURE_MAX_ADVANCED];
    value_msg values[XPL_CAPTURE_MAX_ADVANCED];
    Tensorflow__ProfileOptions o;
    Tensorflow__ProfileRequest r;
    tensorflow__profile_options__init(&o);
    tensorflow__profile_request__init(&r);
    set_options(&o, plan, q);
    for (size_t i = 0; i < plan->n_advanced; i++) {
        const struct xpl_capture_advanced *const a = &plan->advanced[i];
        tensorflow__profile_options__advanced_configuration_entry__init(&entries[i]);
        tensorflow__profile_options__advanced_config_value__init(&values[i]);
        entries[i].key = text(a->key);
        entries[i].value = &values[i];
        list[i] = &entries[i];
        if (a->type == XPL_CAPTURE_TEXT) {
            values[i].value_case =
                TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_STRING_VALUE;
            values[i].string_value = text(a->text);
        } else if (a->type == XPL_CAPTURE_BOOL) {
            values[i].value_case =
                TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_BOOL_VALUE;
            values[i].bool_value = a->number != 0;
        } else {
            values[i].value_case =
                TENSORFLOW__PROFILE_OPTIONS__ADVANCED_CONFIG_VALUE__VALUE_INT64_VALUE;
            values[i].int64_value = a->number;
        }
    }
    o.n_advanced_configuration = plan->n_advanced;
    o.advanced_configuration = list;
    r.opts = &o;
    r.duration_ms = o.duration_ms;
    r.max_events = 1000000; // ignored by today's servers; as XProf's client does
    r.repository_root = text(q->root);
    r.session_id = text(q->session_id);
    r.host_name = text(q->host_name);
    r.emit_xspace = 1;
    char *tool = text(q->tool);
    r.tools = &tool;
    r.n_tools = tool ? 1 : 0;
    xpl_rpc_message_put(b, &r.base);
}

void xpl_capture_encode(const struct xpl_capture_plan *plan, const struct xpl_capture_query *q,
                        struct xpl_buf *b) {
    if (plan->call == XPL_CAPTURE_PROFILE || plan->call == XPL_CAPTURE_CONTINUOUS)
        put_profile(plan, q, b);
    // The others' requests are empty: servers know one continuous session only.
}

// ---- the answer ----

// proto/tensorflow/profiler_service.proto
enum { RESPONSE_TOOL_DATA = 6, RESPONSE_EMPTY_TRACE = 7, RESPONSE_XSPACE = 8 };
enum { TOOL_NAME = 1, TOOL_BYTES = 2 };

static xpl_str_t tool_of(const struct xpl_capture_reply *r) {
    return (xpl_str_t){r->tool_name, r->tool_name_len};
}

static bool is_xspace_tool(const struct xpl_capture_reply *r) {
    // The file that XProf's client saves as HOST.xplane.pb.
    return xpl_str_eq(tool_of(r), XPL_STR("xplane.pb"));
}

static bool is_trace(const struct xpl_capture_reply *r) {
    return r->on_trace && xpl_str_ends(tool_of(r), XPL_STR(XPL_CAPTURE_TRACE_SUFFIX));
}

static bool is_notes(const struct xpl_capture_reply *r) {
    return xpl_str_eq(tool_of(r), XPL_STR("notes"));
}

static enum xpl_walk_way on_field(void *ctx, const struct xpl_walk_field *f) {
    struct xpl_capture_reply *const r = ctx;
    r->field = f->num;
    r->depth = f->depth;
    if (f->depth == 0) {
        if (f->num == RESPONSE_EMPTY_TRACE && f->type == XPL_WIRE_VARINT)
            r->empty_trace = f->u != 0;
        if (f->num == RESPONSE_XSPACE) return XPL_WALK_TAKE;
        r->tool_name_len = 0;
        return f->num == RESPONSE_TOOL_DATA ? XPL_WALK_ENTER : XPL_WALK_SKIP;
    }
    if (f->num == TOOL_NAME) {
        r->tool_name_len = 0;
        return XPL_WALK_TAKE;
    }
    r->begun = false;
    const bool taken = is_xspace_tool(r) || is_trace(r) || is_notes(r);
    return f->num == TOOL_BYTES && taken ? XPL_WALK_TAKE : XPL_WALK_SKIP;
}

static bool on_bytes(void *ctx, xpl_bytes_t piece, bool last) {
    struct xpl_capture_reply *const r = ctx;
    (void)last;
    if (r->depth == 1 && r->field == TOOL_NAME) {
        const size_t room = sizeof r->tool_name - r->tool_name_len;
        const size_t n = piece.len < room ? piece.len : room;
        if (n) memcpy(r->tool_name + r->tool_name_len, piece.ptr, n);
        r->tool_name_len += n;
        return true;
    }
    if (r->depth == 1 && is_notes(r)) {
        for (size_t i = 0; i < piece.len && r->notes_len < sizeof r->notes - 1; i++)
            r->notes[r->notes_len++] =
                piece.ptr[i] >= ' ' && piece.ptr[i] <= '~' ? (char)piece.ptr[i] : '?';
        return true;
    }
    if (r->depth == 1 && is_trace(r) && !r->begun) {
        r->begun = true;
        if (!r->on_trace(r->ctx, tool_of(r))) return false;
    }
    r->xspace_bytes += piece.len;
    return piece.len == 0 || r->on_xspace(r->ctx, piece);
}

void xpl_capture_reply_init(struct xpl_capture_reply *r,
                            bool (*on_xspace)(void *ctx, xpl_bytes_t piece), void *ctx) {
    *r = (struct xpl_capture_reply){.on_xspace = on_xspace, .ctx = ctx};
    xpl_walk_init(&r->walk);
    r->walk.on_field = on_field;
    r->walk.on_bytes = on_bytes;
}

bool xpl_capture_reply_put(struct xpl_capture_reply *r, xpl_bytes_t piece) {
    r->walk.ctx = r;
    return xpl_walk_put(&r->walk, piece);
}

bool xpl_capture_reply_end(const struct xpl_capture_reply *r) {
    return xpl_walk_complete(&r->walk);
}
