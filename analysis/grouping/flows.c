// SPDX-License-Identifier: Apache-2.0
// Flows between events.  Rules: AddFlowsToXplane (xla tsl/profiler/utils/xplane_utils.cc) after the
// rewriting of producers and consumers that PreprocessXPlane does (plan/event_links.c).
#include "analysis/grouping/flows.h"

#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/planes.h"

static uint64_t mix(uint64_t h) {
    const __uint128_t m =
        (__uint128_t)(h ^ UINT64_C(0xa0761d6478bd642f)) * UINT64_C(0xe7037ed1a0b428db);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

// Upstream takes a fingerprint of the first host name, so that hosts shown together do not mix.
uint64_t xpl_grp_flow_salt(const struct xpl_xspace *xs) {
    uint64_t h = 0;
    for (size_t i = 0; xs->n_hostnames && i < xs->hostnames[0].len; i++)
        h = (h ^ (uint8_t)xs->hostnames[0].ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

void xpl_flow_reader_init(struct xpl_flow_reader *r, const struct xpl_groups *g,
                          const struct xpl_line *line) {
    const struct plan *const p = &g->planes[line->plane->index].plan;
    const uint32_t roles = ROLE_QUEUE_IN | ROLE_QUEUE_OUT | ROLE_LAUNCH | ROLE_LAUNCHED |
                           ROLE_EXECUTOR | ROLE_TPU_EXECUTE;
    *r = (struct xpl_flow_reader){.groups = g, .line = line};
    r->any = !g->grouped &&
             ((p->classes & SC_BIT(SC_CORRELATION)) || (p->classes & SC_PRODUCER) == SC_PRODUCER ||
              (p->classes & SC_CONSUMER) == SC_CONSUMER || (p->roles & roles) ||
              (p->tpu && p->plane->kind == XPL_PLANE_TPU_CORE));
    r->device = xpl_grp_is_device_plane(line->plane);
    r->salt = g->flow_salt;
}

static void set_flow(struct xpl_flow *f, uint64_t salt, uint64_t type, uint64_t id,
                     enum xpl_flow_direction direction) {
    enum { N_CATEGORIES = XPL_CONTEXT_SC_OFFLOAD + 1 };
    const uint64_t category = type < N_CATEGORIES ? type : XPL_CONTEXT_GENERIC;
    *f = (struct xpl_flow){.id = mix(mix(salt + category) ^ id) >> 8,
                           .direction = (uint8_t)direction,
                           .category = (uint8_t)category};
}

unsigned xpl_flows_of_event(const struct xpl_flow_reader *r, const struct xpl_event *ev,
                            struct xpl_flow ret[XPL_MAX_FLOWS]) {
    const struct plan *const p = &r->groups->planes[r->line->plane->index].plan;
    const struct xpl_raw_event raw = {.stats = ev->stats.p, .end = ev->stats.end};
    const uint32_t role = p->role_of[ev->md];
    struct scan_stats ss;
    struct event_ends ends;
    uint32_t mask;
    unsigned n = 0;
    if (!r->any || (!xpl_grp_quick_mask(p, &raw, &mask) && !xpl_grp_stats_mask(p, &raw, &mask)) ||
        !mask || !xpl_grp_read_stats(p, &raw, &ss))
        return 0;
    // The quick mask knows only the class of a malformed statistic, not its value.
    if (ss.mask & SC_BIT(SC_CORRELATION)) {
        const uint64_t id = ss.kind[SC_CORRELATION] == XPL_VALUE_UINT ? ss.u[SC_CORRELATION] : 0;
        set_flow(&ret[n++], r->salt, XPL_CONTEXT_GPU_LAUNCH, id,
                 r->device ? XPL_FLOW_IN : XPL_FLOW_OUT);
        ret[0].of_kernel = true;
    }
    xpl_grp_event_ends(p, r->line, &ss, role, &ends);
    if (ends.produces)
        set_flow(&ret[n++], r->salt, ends.producer_type, ends.producer_id, XPL_FLOW_OUT);
    if (ends.consumes)
        set_flow(&ret[n++], r->salt, ends.consumer_type, ends.consumer_id, XPL_FLOW_IN);
    return n;
}
