// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/clock.h"

__extension__ typedef unsigned __int128 u128;

void xpl_iree_clock_add(struct xpl_iree_clock *c, const struct xpl_iree_clock_correlation *s) {
    if (s->flags & XPL_IREE_CLOCK_UNALIGNED) c->unaligned++;
    if (c->samples++ == 0) c->first = *s;
    c->last = *s;
    if (!(s->flags & XPL_IREE_CLOCK_HOST_BRACKET) || s->host_time_end_ns < s->host_time_begin_ns)
        return;
    // One that is too long for a number is a negative one, as IREE has it.
    const int64_t ns = (int64_t)((uint64_t)s->host_time_end_ns - (uint64_t)s->host_time_begin_ns);
    if (c->bracketed == 0 || ns < c->min_uncertainty_ns) c->min_uncertainty_ns = ns;
    if (ns > c->max_uncertainty_ns) c->max_uncertainty_ns = ns;
    c->bracketed++;
}

static bool time_of(const struct xpl_iree_clock_correlation *s, enum xpl_iree_time_domain domain,
                    int64_t *ret) {
    if (domain == XPL_IREE_TIME_HOST_CPU) {
        *ret = (int64_t)s->host_cpu_timestamp_ns;
        return (s->flags & XPL_IREE_CLOCK_HOST_CPU) && s->host_cpu_timestamp_ns <= INT64_MAX;
    }
    if (!(s->flags & XPL_IREE_CLOCK_HOST_BRACKET) ||
        !xpl_iree_host_valid(s->host_time_begin_ns, s->host_time_end_ns))
        return false;
    *ret = s->host_time_begin_ns + (s->host_time_end_ns - s->host_time_begin_ns) / 2;
    return true;
}

struct xpl_iree_fit xpl_iree_clock_fit(const struct xpl_iree_clock *c,
                                       enum xpl_iree_time_domain domain) {
    struct xpl_iree_fit f = {0};
    int64_t first, last;
    if (!c || c->samples < 2 || c->unaligned) return f;
    if (!(c->first.flags & c->last.flags & XPL_IREE_CLOCK_DEVICE_TICK)) return f;
    if (!time_of(&c->first, domain, &first) || !time_of(&c->last, domain, &last)) return f;
    if (c->last.device_tick <= c->first.device_tick || last <= first) return f;
    return (struct xpl_iree_fit){.valid = true,
                                 .first_tick = c->first.device_tick,
                                 .per_ticks = c->last.device_tick - c->first.device_tick,
                                 .ns = (uint64_t)(last - first),
                                 .first_ns = first,
                                 .first_sample_id = c->first.sample_id,
                                 .last_sample_id = c->last.sample_id};
}

bool xpl_iree_fit_ticks(const struct xpl_iree_fit *f, uint64_t ticks, int64_t *ret_ns) {
    *ret_ns = 0;
    if (!f->valid) return false;
    const u128 ns = ((u128)ticks * f->ns + f->per_ticks / 2) / f->per_ticks;
    if (ns > INT64_MAX) return false;
    *ret_ns = (int64_t)ns;
    return true;
}

bool xpl_iree_fit_time(const struct xpl_iree_fit *f, uint64_t tick, int64_t *ret_ns) {
    int64_t delta;
    const bool after = tick >= f->first_tick;
    *ret_ns = 0;
    if (!xpl_iree_fit_ticks(f, after ? tick - f->first_tick : f->first_tick - tick, &delta))
        return false;
    return after ? !__builtin_add_overflow(f->first_ns, delta, ret_ns)
                 : !__builtin_sub_overflow(f->first_ns, delta, ret_ns);
}

double xpl_iree_fit_ns_per_tick(const struct xpl_iree_fit *f) {
    return f->valid ? (double)f->ns / (double)f->per_ticks : 0;
}

double xpl_iree_fit_hz(const struct xpl_iree_fit *f) {
    return f->valid ? 1e9 / xpl_iree_fit_ns_per_tick(f) : 0;
}
