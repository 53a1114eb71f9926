// What matters in a plane when groups are looked for, and the rewriting of links that XProf's
// PreprocessXPlane does before it looks (xla/tsl/profiler/utils/preprocess_xplane.{h,cc}).
#include <string.h>

#include "analysis/grouping/impl.h"

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

// Classes that are read only on events of certain roles are left out where no event has the role:
// run_id alone, for one, is on a third of the events of a CPU profile.
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

bool xpl_grp_plan_init(struct plan *p, const struct xpl_plane *plane, struct xpl_arena *arena) {
    *p = (struct plan){.plane = plane};
    p->tpu = xpl_str_starts(plane->name, XPL_STR(XPL_PLANE_NAME_TPU_PREFIX));
    p->class_of = xpl_arena_zalloc(arena, plane->n_stat_md);
    p->role_of = xpl_arena_array(arena, plane->n_event_md, sizeof *p->role_of);
    if (!p->class_of || !p->role_of) return false;
    for (uint32_t i = 0; i < plane->n_event_md; i++) {
        p->role_of[i] = (uint16_t)role_of(&plane->event_md[i]);
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

// ---- stats of one event ----

static void take_stat(const struct plan *plan, enum stat_class c, xpl_bytes_t message,
                      struct scan_stats *st) {
    struct xpl_raw_stat raw;
    // Where upstream walks all stats the last of a type counts, where it asks for one the first.
    const bool last = c <= SC_IS_ASYNC;
    if (!last && (st->mask & SC_BIT(c))) return;
    if (!xpl_raw_stat_read(message, xpl_input_end(plan->plane), &raw)) return;
    st->mask |= SC_BIT(c);
    st->u[c] = raw.u;
    st->kind[c] = (uint8_t)raw.kind;
}

bool xpl_grp_read_stats(const struct plan *plan, const struct xpl_raw_event *raw,
                        struct scan_stats *st) {
    st->mask = 0;
    const uint8_t *p = raw->stats;
    for (;;) {
        xpl_bytes_t m;
        const enum xpl_wire_result r = xpl_next_message(&p, raw->end, XEVENT_STATS, &m);
        if (XPL_UNLIKELY(r != XPL_WIRE_FIELD)) return r == XPL_WIRE_END;
        uint32_t c;
        if (XPL_LIKELY(m.len > 1) && XPL_LIKELY(m.ptr[0] == XSTAT_MD_ID << 3) &&
            XPL_LIKELY(m.ptr[1] < 0x80)) {
            c = plan->by_id[m.ptr[1]];
        } else {
            struct xpl_raw_stat s;
            if (!xpl_raw_stat_read(m, xpl_input_end(plan->plane), &s)) return false;
            c = plan->class_of[xpl_stat_md_at(plan->plane, s.md_id)];
        }
        if (c != SC_NONE) take_stat(plan, (enum stat_class)c, m, st);
    }
}

bool xpl_grp_is_async(const struct plan *plan, const struct xpl_raw_event *raw) {
    struct scan_stats st;
    return xpl_grp_read_stats(plan, raw, &st) && (st.mask & SC_BIT(SC_IS_ASYNC)) &&
           st.kind[SC_IS_ASYNC] == XPL_VALUE_INT && st.u[SC_IS_ASYNC] != 0;
}

bool xpl_grp_stats_mask(const struct plan *plan, const struct xpl_raw_event *raw, uint32_t *ret) {
    const uint8_t *p = raw->stats;
    uint32_t mask = 0;
    for (;;) {
        xpl_bytes_t m;
        const enum xpl_wire_result r = xpl_next_message(&p, raw->end, XEVENT_STATS, &m);
        if (XPL_UNLIKELY(r != XPL_WIRE_FIELD)) {
            *ret = mask & ~SC_BIT(SC_NONE);
            return r == XPL_WIRE_END;
        }
        if (XPL_LIKELY(m.len > 1) && XPL_LIKELY(m.ptr[0] == XSTAT_MD_ID << 3) &&
            XPL_LIKELY(m.ptr[1] < 0x80)) {
            mask |= SC_BIT(plan->by_id[m.ptr[1]]);
        } else {
            struct xpl_raw_stat s;
            if (!xpl_raw_stat_read(m, xpl_input_end(plan->plane), &s)) return false;
            mask |= SC_BIT(plan->class_of[xpl_stat_md_at(plan->plane, s.md_id)]);
        }
    }
}

// ---- links ----

uint64_t xpl_grp_mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

// Keys of one type and process never collide; across types they do by chance alone, as upstream's
// hashed ids do.  Ids that are near to one another, as those that were counted up are, have keys
// that are, too: what is sorted by key is then read almost in order.  Unseeded: the order of hubs
// must not change from run to run, and who crafts collisions only links events of his own profile.
uint64_t xpl_grp_key(int32_t type, bool has_pid, int32_t pid, uint64_t id) {
    uint64_t c = xpl_grp_mix((uint64_t)(uint32_t)type + UINT64_C(0x9e3779b97f4a7c15));
    if (has_pid) c = xpl_grp_mix(c ^ ((uint64_t)(uint32_t)pid + UINT64_C(0x632be59bd9b4e019)));
    return id + c;
}

uint64_t xpl_grp_pair_key(uint32_t node) {
    return xpl_grp_mix(node ^ UINT64_C(0xc2b2ae3d27d4eb4f));
}

static uint64_t int_or_uint(const struct scan_stats *st, enum stat_class c) {
    return st->kind[c] == XPL_VALUE_UINT || st->kind[c] == XPL_VALUE_INT ? st->u[c] : 0;
}
static uint64_t int_only(const struct scan_stats *st, enum stat_class c) {
    return st->kind[c] == XPL_VALUE_INT ? st->u[c] : 0;
}
static bool has(const struct scan_stats *st, uint32_t bits) {
    return (st->mask & bits) == bits;
}

// An id made of several values [absl::HashOf of them].
static uint64_t hash_ids(uint64_t domain, const uint64_t *v, unsigned n) {
    uint64_t h = xpl_grp_mix(domain + UINT64_C(0x632be59bd9b4e019));
    for (unsigned i = 0; i < n; i++)
        h = xpl_grp_mix(h ^ v[i]) + UINT64_C(0x9e3779b97f4a7c15);
    return h;
}

uint64_t xpl_grp_executor_key(uint64_t step, uint64_t iteration) {
    const uint64_t v[] = {step, iteration};
    return hash_ids(4, v, 2);
}

// The id that links a program's launch, its execution and its completion.
static uint64_t launch_id(uint64_t device, uint64_t queue, uint64_t run, uint64_t core_type) {
    const uint64_t v[] = {device, queue, run, core_type};
    return hash_ids(1, v, 4);
}

// What the rewriting says of an event of that role; false when it leaves the event alone.
static bool rewritten_id(const struct scan_stats *st, uint32_t role, int32_t *type, uint64_t *id) {
    enum { RUN_ID_MASK = (1 << 27) - 1 }; // what of a run id reaches the device
    if (role & (ROLE_QUEUE_IN | ROLE_QUEUE_OUT)) {
        if (!has(st, SC_BIT(SC_REQUEST_ID) | SC_BIT(SC_QUEUE_ADDR))) return false;
        const uint64_t v[] = {int_or_uint(st, SC_REQUEST_ID), int_or_uint(st, SC_QUEUE_ADDR)};
        *type = XPL_CONTEXT_TPU_STREAM;
        *id = hash_ids(2, v, 2);
        return true;
    }
    if (role & (ROLE_LAUNCH | ROLE_LAUNCHED)) {
        if (!has(st, SC_BIT(SC_DEVICE_ORDINAL) | SC_BIT(SC_QUEUE_ID) | SC_BIT(SC_RUN_ID)))
            return false;
        *type = XPL_CONTEXT_TPU_LAUNCH;
        *id = launch_id(int_or_uint(st, SC_DEVICE_ORDINAL), int_or_uint(st, SC_QUEUE_ID),
                        int_or_uint(st, SC_RUN_ID) & RUN_ID_MASK,
                        has(st, SC_BIT(SC_CORE_TYPE)) ? int_or_uint(st, SC_CORE_TYPE) : 0);
        return true;
    }
    if (role & (ROLE_EXECUTOR | ROLE_TPU_EXECUTE)) {
        if (!has(st, SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM))) return false;
        const uint64_t v[] = {int_or_uint(st, SC_STEP_ID), int_or_uint(st, SC_ITER_NUM)};
        *type = XPL_CONTEXT_LEGACY;
        *id = hash_ids(3, v, 2);
        return true;
    }
    return false;
}

// Modules of a TensorCore consume what launched them [TpuModuleLineMutator].
static bool module_id(const struct plan *plan, const struct xpl_line *line,
                      const struct scan_stats *st, uint64_t *id) {
    const int64_t device = plan->plane->core_id;
    if (plan->plane->kind != XPL_PLANE_TPU_CORE || device < 0 ||
        !has(st, SC_BIT(SC_RUN_ID) | SC_BIT(SC_QUEUE_ID)) ||
        !xpl_str_eq(line->name, XPL_STR(XPL_LINE_XLA_MODULES)))
        return false;
    *id = launch_id((uint64_t)device, int_or_uint(st, SC_QUEUE_ID), int_or_uint(st, SC_RUN_ID),
                    has(st, SC_BIT(SC_CORE_TYPE)) ? int_or_uint(st, SC_CORE_TYPE) : 0);
    return true;
}

struct endpoint {
    bool typed, whole; // has a type; has an id as well
    bool named;        // has an id
    int32_t type;
    uint64_t id;
};

static struct endpoint own_endpoint(const struct scan_stats *st, enum stat_class type,
                                    enum stat_class id) {
    return (struct endpoint){has(st, SC_BIT(type)), has(st, SC_BIT(type) | SC_BIT(id)),
                             has(st, SC_BIT(id)), (int32_t)int_only(st, type), int_or_uint(st, id)};
}

// Both ends after the rewriting; true when an executor's was made by it.
static inline bool find_ends(const struct plan *plan, const struct xpl_line *line,
                             const struct scan_stats *st, uint32_t role, struct endpoint *producer,
                             struct endpoint *consumer) {
    struct endpoint rewritten = {true, true, true, 0, 0};
    bool executor = false;
    if (st->mask & SC_PRODUCER) *producer = own_endpoint(st, SC_PRODUCER_TYPE, SC_PRODUCER_ID);
    if (st->mask & SC_CONSUMER) *consumer = own_endpoint(st, SC_CONSUMER_TYPE, SC_CONSUMER_ID);
    if ((role & ~(uint32_t)(ROLE_KNOWN | ROLE_IMPLICIT)) &&
        rewritten_id(st, role, &rewritten.type, &rewritten.id)) {
        if (role & (ROLE_QUEUE_IN | ROLE_LAUNCH | ROLE_EXECUTOR))
            *producer = rewritten;
        else
            *consumer = rewritten;
        executor = role & ROLE_EXECUTOR;
    }
    if (plan->tpu && module_id(plan, line, st, &rewritten.id)) {
        rewritten.type = XPL_CONTEXT_TPU_LAUNCH;
        *consumer = rewritten;
    }
    return executor;
}

void xpl_grp_event_ends(const struct plan *plan, const struct xpl_line *line,
                        const struct scan_stats *st, uint32_t role, struct event_ends *ret) {
    struct endpoint producer = {0}, consumer = {0};
    (void)find_ends(plan, line, st, role, &producer, &consumer);
    *ret = (struct event_ends){producer.whole,          consumer.whole, (uint32_t)producer.type,
                               (uint32_t)consumer.type, producer.id,    consumer.id};
}

void xpl_grp_event_links(const struct plan *plan, const struct xpl_line *line,
                         const struct scan_stats *st, uint32_t role, struct event_links *ret) {
    struct endpoint producer = {0}, consumer = {0};
    // What an executor is rewritten to produce, only a TpuExecuteOp consumes.
    if (find_ends(plan, line, st, role, &producer, &consumer) && !plan->tpu_execute)
        producer.whole = false;
    // Launches link the device, which no process owns, so their process does not count; and what
    // produces is of the plane's process, whatever it consumes.  (Observed of XProf 2.24.2.)
    const bool launch = (producer.typed && producer.type == XPL_CONTEXT_TPU_LAUNCH) ||
                        (consumer.typed && consumer.type == XPL_CONTEXT_TPU_LAUNCH);
    const bool other = has(st, SC_BIT(SC_CONSUMER_PID)) && !(producer.named && plan->has_pid);
    const bool has_pid = !launch && (plan->has_pid || other);
    const int32_t pid = other ? (int32_t)int_only(st, SC_CONSUMER_PID) : plan->pid;
    ret->producer = producer.whole;
    ret->consumer = consumer.whole;
    if (producer.whole) ret->producer_key = xpl_grp_key(producer.type, has_pid, pid, producer.id);
    if (consumer.whole) ret->consumer_key = xpl_grp_key(consumer.type, has_pid, pid, consumer.id);
}

// ---- regions ----

bool xpl_grp_region_counts(const struct plan *plan, const struct xpl_raw_event *raw) {
    uint32_t mask;
    return xpl_grp_stats_mask(plan, raw, &mask) && (mask & SC_BIT(SC_CONSUMER_ID));
}

bool xpl_grp_region_starts(const struct plan *plan, const struct xpl_line *line,
                           const struct xpl_raw_event *raw) {
    return xpl_grp_region_counts(plan, raw) && span_of(line, raw->offset_ps, 0).begin != 0;
}

// Walks the StopRegions that belong to the StartRegion at `at`.
struct stops {
    const struct plan *plan;
    const uint8_t *p, *end;
    uint64_t start;
};

static bool begin_stops(struct stops *s, const struct plan *plan, const struct xpl_line *line,
                        uint64_t at) {
    const struct xpl_wire w = xpl_wire_begin(line->message);
    struct xpl_raw_event start;
    xpl_bytes_t message;
    *s = (struct stops){.plan = plan, .p = w.p + at, .end = w.end};
    if (xpl_next_message(&s->p, s->end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
        !xpl_raw_event_read(message, s->end, &start))
        return false; // whoever reads the line will report it
    s->start = start.offset_ps;
    return true;
}

static bool next_stop(struct stops *s, struct region *ret) {
    struct xpl_raw_event raw;
    xpl_bytes_t message;
    while (xpl_next_message(&s->p, s->end, XLINE_EVENTS, &message) == XPL_WIRE_FIELD) {
        if (!xpl_raw_event_head(message, s->end, &raw)) return false;
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        if (XPL_LIKELY(!(role & (ROLE_START_REGION | ROLE_STOP_REGION)))) continue;
        if (!xpl_raw_event_read(message, s->end, &raw)) return false;
        if (role & ROLE_STOP_REGION) {
            *ret = (struct region){s->start, raw.offset_ps - s->start};
            return true;
        }
        // A start without an id does not count, one at time 0 ends what came before it.
        if (xpl_grp_region_counts(s->plan, &raw)) return false;
    }
    return false;
}

static int longer_first(const void *pa, const void *pb) {
    const struct region *const a = pa, *const b = pb;
    return (a->duration < b->duration) - (a->duration > b->duration);
}

bool xpl_grp_regions_at(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                        struct xpl_arena *arena, struct region_list *ret) {
    struct stops s;
    struct region r;
    for (bool more = begin_stops(&s, plan, line, at); more && next_stop(&s, &r);) {
        struct region *const slot = xpl_vec_push(arena, &ret->v);
        if (!slot) return false;
        *slot = r;
    }
    xpl_grp_sort(ret->v.v, ret->v.n, sizeof *ret->v.v, longer_first);
    return true;
}

bool xpl_grp_longest_region(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                            struct region *ret) {
    struct stops s;
    struct region r;
    bool any = false;
    for (bool more = begin_stops(&s, plan, line, at); more && next_stop(&s, &r); any = true)
        if (!any || r.duration > ret->duration) *ret = r;
    return any;
}
