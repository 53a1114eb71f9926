// SPDX-License-Identifier: Apache-2.0
// The plan of a plane.  The roles are those of XProf's group_events.cc and of the rewriting that
// its PreprocessXPlane does before it groups (xla/tsl/profiler/utils/preprocess_xplane.{h,cc}).
#include "analysis/grouping/plan/plan.h"

#include "analysis/xplane/schema.h"

enum xpl_batch_name xpl_grp_batch_name(xpl_str_t name) {
    const xpl_str_t begin = XPL_STR("Profiled batch");
    if (xpl_str_eq(name, begin)) return XPL_BATCH_PLAIN;
    if (!xpl_str_starts(name, begin) || name.len < begin.len + 2 || name.ptr[begin.len] != ' ')
        return XPL_BATCH_NONE;
    for (size_t i = begin.len + 1; i < name.len; i++)
        if (name.ptr[i] < '0' || name.ptr[i] > '9') return XPL_BATCH_NONE;
    return XPL_BATCH_NUMBERED;
}

static uint32_t role_of(const struct xpl_event_md *md) {
    const uint32_t known = md->type == XPL_EVENT_UNKNOWN ? 0 : ROLE_KNOWN;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (md->type) { // most types play no part
        case XPL_EVENT_EXECUTOR_STATE_PROCESS: return known | ROLE_EXECUTOR | ROLE_IMPLICIT;
        case XPL_EVENT_ITERATOR_GET_NEXT_OP:
        case XPL_EVENT_ITERATOR_GET_NEXT_AS_OPTIONAL_OP: return known | ROLE_ITERATOR;
        case XPL_EVENT_EAGER_KERNEL_EXECUTE: return known | ROLE_EAGER;
        case XPL_EVENT_TRACE_CONTEXT: return known | ROLE_TRACE_CONTEXT;
        case XPL_EVENT_FUNCTION_RUN:
        case XPL_EVENT_SESSION_RUN:
        case XPL_EVENT_RUN_GRAPH: return known | ROLE_IMPLICIT;
        case XPL_EVENT_BATCHING_SESSION_RUN: return known | ROLE_ROOT_1;
        case XPL_EVENT_PROCESS_BATCH:
        case XPL_EVENT_ORBAX_PROCESS_BATCH: return known | ROLE_ROOT_2;
        case XPL_EVENT_TF_DATA_CAPTURED_FUNCTION_RUN:
        case XPL_EVENT_TF_DATA_CAPTURED_FUNCTION_RUN_ASYNC:
        case XPL_EVENT_TF_DATA_CAPTURED_FUNCTION_RUN_INSTANTIATED:
        case XPL_EVENT_TF_DATA_CAPTURED_FUNCTION_RUN_WITH_BORROWED_ARGS:
            return known | ROLE_TF_DATA;
        case XPL_EVENT_ENQUEUE_REQUEST_LOCKED: return known | ROLE_QUEUE_IN;
        case XPL_EVENT_RUN_PROGRAM_REQUEST:
        case XPL_EVENT_HOST_CALLBACK_REQUEST:
        case XPL_EVENT_TRANSFER_H2D_REQUEST:
        case XPL_EVENT_TRANSFER_PREPROCESSED_H2D_REQUEST:
        case XPL_EVENT_TRANSFER_D2H_REQUEST:
        case XPL_EVENT_ON_DEVICE_SEND_REQUEST:
        case XPL_EVENT_ON_DEVICE_RECV_REQUEST:
        case XPL_EVENT_ON_DEVICE_SEND_RECV_LOCAL_REQUEST:
        case XPL_EVENT_CUSTOM_WAIT:
        case XPL_EVENT_ON_DEVICE_SEND_REQUEST_MULTI:
        case XPL_EVENT_ON_DEVICE_RECV_REQUEST_MULTI:
        case XPL_EVENT_PJRT_ASYNC_WAIT: return known | ROLE_QUEUE_OUT;
        case XPL_EVENT_DO_ENQUEUE_PROGRAM: return known | ROLE_LAUNCH;
        case XPL_EVENT_COMPLETE_CALLBACKS: return known | ROLE_LAUNCHED;
        case XPL_EVENT_TPU_EXECUTE_OP: return known | ROLE_TPU_EXECUTE;
        default: break;
    }
#pragma GCC diagnostic pop
    if (xpl_str_eq(md->name, XPL_STR("ThreadpoolListener::StartRegion")))
        return known | ROLE_START_REGION;
    if (xpl_str_eq(md->name, XPL_STR("ThreadpoolListener::StopRegion")))
        return known | ROLE_STOP_REGION;
    return known;
}

static enum stat_class class_of(enum xpl_stat_type type) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (type) {
        case XPL_STAT_PRODUCER_TYPE: return SC_PRODUCER_TYPE;
        case XPL_STAT_PRODUCER_ID: return SC_PRODUCER_ID;
        case XPL_STAT_CONSUMER_TYPE: return SC_CONSUMER_TYPE;
        case XPL_STAT_CONSUMER_ID: return SC_CONSUMER_ID;
        case XPL_STAT_CONSUMER_PID: return SC_CONSUMER_PID;
        case XPL_STAT_IS_ROOT: return SC_IS_ROOT;
        case XPL_STAT_IS_ASYNC: return SC_IS_ASYNC;
        case XPL_STAT_ITER_NUM: return SC_ITER_NUM;
        case XPL_STAT_STEP_NUM: return SC_STEP_NUM;
        case XPL_STAT_GRAPH_TYPE: return SC_GRAPH_TYPE;
        case XPL_STAT_CORRELATION_ID: return SC_CORRELATION;
        case XPL_STAT_STEP_ID: return SC_STEP_ID;
        case XPL_STAT_REQUEST_ID: return SC_REQUEST_ID;
        case XPL_STAT_QUEUE_ADDR: return SC_QUEUE_ADDR;
        case XPL_STAT_DEVICE_ORDINAL: return SC_DEVICE_ORDINAL;
        case XPL_STAT_QUEUE_ID: return SC_QUEUE_ID;
        case XPL_STAT_RUN_ID: return SC_RUN_ID;
        case XPL_STAT_CORE_TYPE: return SC_CORE_TYPE;
        default: return SC_NONE;
    }
#pragma GCC diagnostic pop
}

// Classes that are read only on events of certain roles are left out if no event has the role:
// run_id, for example, is on a third of the events of a CPU profile.
static uint32_t used_classes(const struct plan *p) {
    uint32_t used = SC_PRODUCER | SC_CONSUMER | SC_CONTEXT | SC_BIT(SC_CONSUMER_PID) |
                    SC_BIT(SC_IS_ROOT) | SC_BIT(SC_IS_ASYNC) | SC_BIT(SC_CORRELATION);
    if (p->roles & (ROLE_EXECUTOR | ROLE_ITERATOR | ROLE_TF_DATA | ROLE_TPU_EXECUTE))
        used |= SC_BIT(SC_STEP_ID);
    if (p->roles & (ROLE_QUEUE_IN | ROLE_QUEUE_OUT))
        used |= SC_BIT(SC_REQUEST_ID) | SC_BIT(SC_QUEUE_ADDR);
    if ((p->roles & (ROLE_LAUNCH | ROLE_LAUNCHED)) || p->plane->kind == XPL_PLANE_TPU_CORE)
        used |= SC_BIT(SC_DEVICE_ORDINAL) | SC_BIT(SC_QUEUE_ID) | SC_BIT(SC_RUN_ID) |
                SC_BIT(SC_CORE_TYPE);
    return used;
}

// Whether scanning its lines can find anything that starts or passes on a group.
static bool wants_scan(const struct plan *p) {
    const uint32_t roles = ROLE_EXECUTOR | ROLE_ITERATOR | ROLE_EAGER | ROLE_TRACE_CONTEXT |
                           ROLE_ROOT_1 | ROLE_ROOT_2 | ROLE_TF_DATA;
    return (p->roles & roles) || (p->classes & SC_BIT(SC_IS_ROOT)) ||
           (p->classes & SC_PRODUCER) == SC_PRODUCER || (p->classes & SC_CONSUMER) == SC_CONSUMER ||
           ((p->classes & SC_BIT(SC_REQUEST_ID)) &&
            (p->roles & (ROLE_QUEUE_IN | ROLE_QUEUE_OUT))) ||
           ((p->classes & SC_BIT(SC_RUN_ID)) && (p->roles & (ROLE_LAUNCH | ROLE_LAUNCHED))) ||
           (p->plane->kind == XPL_PLANE_HOST_THREADS && (p->classes & SC_BIT(SC_CORRELATION)));
}

static void read_pid(struct plan *p) {
    struct xpl_stat s;
    p->has_pid = xpl_stats_get(p->plane->stats, XPL_STAT_PROCESS_ID, &s);
    if (p->has_pid) p->pid = (int32_t)xpl_stat_int(&s);
}

#define LONGEST_PS (UINT64_C(1) << 60) // 13 days
#define EARLY_PS   (-(UINT64_C(1) << 62))

bool xpl_grp_plan_init(struct plan *p, const struct xpl_plane *plane, bool own,
                       struct xpl_arena *arena) {
    const bool batches = own && plane->kind == XPL_PLANE_HOST_THREADS;
    *p = (struct plan){.plane = plane, .longest_ps = own ? LONGEST_PS : UINT64_MAX};
    for (uint32_t i = 0; own && plane->kind == XPL_PLANE_GPU && i < plane->n_lines; i++)
        if (plane->lines[i].timestamp_ns < 0) p->origin_ps = EARLY_PS;
    p->tpu = xpl_str_starts(plane->name, XPL_STR(XPL_PLANE_NAME_TPU_PREFIX));
    p->class_of = xpl_arena_zalloc(arena, plane->n_stat_md);
    p->role_of = xpl_arena_array(arena, plane->n_event_md, sizeof *p->role_of);
    if (!p->class_of || !p->role_of) return false;
    for (uint32_t i = 0; i < plane->n_event_md; i++) {
        p->role_of[i] = role_of(&plane->event_md[i]);
        if (batches && xpl_grp_batch_name(plane->event_md[i].name) != XPL_BATCH_NONE)
            p->role_of[i] |= ROLE_TRACE_CONTEXT;
        p->roles |= p->role_of[i];
    }
    p->has_regions = (p->roles & ROLE_START_REGION) && (p->roles & ROLE_STOP_REGION);
    const uint32_t used = used_classes(p);
    for (uint32_t i = 1; i < plane->n_stat_md; i++) {
        const struct xpl_stat_md *const md = &plane->stat_md[i];
        const enum stat_class c = class_of(md->type);
        p->own_groups |= md->type == XPL_STAT_GROUP_ID;
        p->own_step_names |= md->type == XPL_STAT_STEP_NAME;
        p->own_eager |= md->type == XPL_STAT_IS_EAGER;
        if (c == SC_NONE || !(used & SC_BIT(c))) continue;
        p->class_of[i] = (uint8_t)c;
        p->classes |= SC_BIT(c);
        if ((uint64_t)md->id < sizeof p->by_id) p->by_id[md->id] = (uint8_t)c;
    }
    read_pid(p);
    p->scan = wants_scan(p);
    p->consumes = (p->classes & SC_CONSUMER) == SC_CONSUMER ||
                  (p->roles & (ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE));
    p->kernels = plane->kind != XPL_PLANE_HOST_THREADS && (p->classes & SC_BIT(SC_CORRELATION));
    return true;
}
