// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/event_links.h"

#include "analysis/xplane/schema.h"

// A bijection that leaves no pattern.
static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

// Keys of one type and process never collide; across types they collide only by chance, as
// upstream's hashed ids do.  Consecutive ids have neighbouring keys: data sorted by key is then
// read almost in order.  Unseeded: the order of joins must not change from run to run, and a
// crafted collision only links events of the same profile.
static uint64_t grp_key(int32_t type, bool has_pid, int32_t pid, uint64_t id) {
    uint64_t c = mix((uint64_t)(uint32_t)type + UINT64_C(0x9e3779b97f4a7c15));
    if (has_pid) c = mix(c ^ ((uint64_t)(uint32_t)pid + UINT64_C(0x632be59bd9b4e019)));
    return id + c;
}

uint64_t xpl_grp_pair_key(uint32_t node) {
    return mix(node ^ UINT64_C(0xc2b2ae3d27d4eb4f));
}

// An id made of several values [absl::HashOf of them].
static uint64_t hash_ids(uint64_t domain, const uint64_t *v, unsigned n) {
    uint64_t h = mix(domain + UINT64_C(0x632be59bd9b4e019));
    for (unsigned i = 0; i < n; i++)
        h = mix(h ^ v[i]) + UINT64_C(0x9e3779b97f4a7c15);
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

// The rewritten id of an event of that role; false when the rewriting does not apply.
static bool rewritten_id(const struct scan_stats *st, uint32_t role, int32_t *type, uint64_t *id) {
    enum { RUN_ID_MASK = (1 << 27) - 1 }; // the part of a run id that reaches the device
    if (role & (ROLE_QUEUE_IN | ROLE_QUEUE_OUT)) {
        if (!stats_have(st, SC_BIT(SC_REQUEST_ID) | SC_BIT(SC_QUEUE_ADDR))) return false;
        const uint64_t v[] = {stats_int_or_uint(st, SC_REQUEST_ID),
                              stats_int_or_uint(st, SC_QUEUE_ADDR)};
        *type = XPL_CONTEXT_TPU_STREAM;
        *id = hash_ids(2, v, 2);
        return true;
    }
    if (role & (ROLE_LAUNCH | ROLE_LAUNCHED)) {
        if (!stats_have(st, SC_BIT(SC_DEVICE_ORDINAL) | SC_BIT(SC_QUEUE_ID) | SC_BIT(SC_RUN_ID)))
            return false;
        *type = XPL_CONTEXT_TPU_LAUNCH;
        *id = launch_id(
            stats_int_or_uint(st, SC_DEVICE_ORDINAL), stats_int_or_uint(st, SC_QUEUE_ID),
            stats_int_or_uint(st, SC_RUN_ID) & RUN_ID_MASK,
            stats_have(st, SC_BIT(SC_CORE_TYPE)) ? stats_int_or_uint(st, SC_CORE_TYPE) : 0);
        return true;
    }
    if (role & (ROLE_EXECUTOR | ROLE_TPU_EXECUTE)) {
        if (!stats_have(st, SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM))) return false;
        const uint64_t v[] = {stats_int_or_uint(st, SC_STEP_ID),
                              stats_int_or_uint(st, SC_ITER_NUM)};
        *type = XPL_CONTEXT_LEGACY;
        *id = hash_ids(3, v, 2);
        return true;
    }
    return false;
}

// Modules of a TensorCore consume their launch [TpuModuleLineMutator].
static bool module_id(const struct plan *plan, const struct xpl_line *line,
                      const struct scan_stats *st, uint64_t *id) {
    const int64_t device = plan->plane->core_id;
    if (plan->plane->kind != XPL_PLANE_TPU_CORE || device < 0 ||
        !stats_have(st, SC_BIT(SC_RUN_ID) | SC_BIT(SC_QUEUE_ID)) ||
        !xpl_str_eq(line->name, XPL_STR(XPL_LINE_XLA_MODULES)))
        return false;
    *id = launch_id((uint64_t)device, stats_int_or_uint(st, SC_QUEUE_ID),
                    stats_int_or_uint(st, SC_RUN_ID),
                    stats_have(st, SC_BIT(SC_CORE_TYPE)) ? stats_int_or_uint(st, SC_CORE_TYPE) : 0);
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
    return (struct endpoint){stats_have(st, SC_BIT(type)),
                             stats_have(st, SC_BIT(type) | SC_BIT(id)), stats_have(st, SC_BIT(id)),
                             (int32_t)stats_int(st, type), stats_int_or_uint(st, id)};
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
    // Only a TpuExecuteOp consumes the rewritten product of an executor.
    if (find_ends(plan, line, st, role, &producer, &consumer) && !plan->tpu_execute)
        producer.whole = false;
    // Launches link the device, which no process owns, so their process does not count; and a
    // producer belongs to the plane's process, whatever it consumes.  (Observed of XProf 2.24.2.)
    const bool launch = (producer.typed && producer.type == XPL_CONTEXT_TPU_LAUNCH) ||
                        (consumer.typed && consumer.type == XPL_CONTEXT_TPU_LAUNCH);
    const bool other =
        stats_have(st, SC_BIT(SC_CONSUMER_PID)) && !(producer.named && plan->has_pid);
    const bool has_pid = !launch && (plan->has_pid || other);
    const int32_t pid = other ? (int32_t)stats_int(st, SC_CONSUMER_PID) : plan->pid;
    ret->producer = producer.whole;
    ret->consumer = consumer.whole;
    if (producer.whole) ret->producer_key = grp_key(producer.type, has_pid, pid, producer.id);
    if (consumer.whole) ret->consumer_key = grp_key(consumer.type, has_pid, pid, consumer.id);
}
