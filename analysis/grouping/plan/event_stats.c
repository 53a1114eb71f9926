// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/event_stats.h"

#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"

// The class of a stat.  False when it is malformed.
XPL_INLINE bool read_class(const struct plan *plan, xpl_bytes_t m, uint32_t *ret) {
    uint32_t id;
    if (XPL_LIKELY(xpl_fast_stat_id(m, &id)) && XPL_LIKELY(id < sizeof plan->by_id)) {
        *ret = plan->by_id[id];
        return true;
    }
    struct xpl_raw_stat s;
    if (!xpl_raw_stat_read(m, xpl_input_end(plan->plane), &s)) return false;
    *ret = plan->class_of[xpl_stat_md_at(plan->plane, s.md_id)];
    return true;
}

static bool counts_last(enum stat_class c) {
    return c <= SC_IS_ASYNC;
}

static void store_stat(const struct plan *plan, enum stat_class c, xpl_bytes_t message,
                       struct scan_stats *st) {
    struct xpl_raw_stat raw;
    // Where upstream walks all stats the last of a type counts, where it asks for one the first.
    if (!counts_last(c) && (st->mask & SC_BIT(c))) return;
    if (!xpl_raw_stat_read(message, xpl_input_end(plan->plane), &raw)) return;
    st->mask |= SC_BIT(c);
    st->u[c] = raw.u;
    st->kind[c] = (uint8_t)raw.kind;
}

// A stat that is an integer and written as usual, whose value begins at `at`; false for others.
XPL_INLINE bool store_integer(const struct plan *plan, enum stat_class c, const uint8_t *at,
                              const uint8_t *end, struct scan_stats *st) {
    if (XPL_UNLIKELY(end - at < 2)) return false;
    const uint8_t tag = *at;
    if (tag != (XSTAT_INT << 3 | XPL_WIRE_VARINT) && tag != (XSTAT_UINT << 3 | XPL_WIRE_VARINT))
        return false;
    const struct xpl_varint v = at[1] < 0x80 ? (struct xpl_varint){at + 2, at[1]}
                                             : xpl_varint_wide(at + 1, xpl_input_end(plan->plane));
    if (XPL_UNLIKELY(v.p != end)) return false;
    if (!counts_last(c) && (st->mask & SC_BIT(c))) return true;
    st->mask |= SC_BIT(c);
    st->u[c] = v.v;
    st->kind[c] = xpl_kind_of_tag[tag];
    return true;
}

bool xpl_grp_read_stats(const struct plan *plan, const struct xpl_raw_event *raw,
                        struct scan_stats *st) {
    st->mask = 0;
    const uint8_t *p = raw->stats;
    for (;;) {
        struct xpl_fast_stat s;
        if (XPL_LIKELY(xpl_fast_stat_head(p, raw->end, XPL_TAG_FIELD4_LEN, &s)) &&
            XPL_LIKELY(s.id < sizeof plan->by_id)) {
            const enum stat_class known = (enum stat_class)plan->by_id[s.id];
            if (known == SC_NONE || store_integer(plan, known, s.value, p + s.len, st)) {
                p += s.len;
                continue;
            }
        }
        xpl_bytes_t m;
        const enum xpl_wire_result r = xpl_next_message(&p, raw->end, XEVENT_STATS, &m);
        if (XPL_UNLIKELY(r != XPL_WIRE_FIELD)) return r == XPL_WIRE_END;
        uint32_t c;
        if (XPL_UNLIKELY(!read_class(plan, m, &c))) return false;
        if (c != SC_NONE) store_stat(plan, (enum stat_class)c, m, st);
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
        uint32_t c;
        if (XPL_UNLIKELY(!read_class(plan, m, &c))) return false;
        mask |= SC_BIT(c);
    }
}

bool xpl_grp_runs_eagerly(struct xpl_stats stats) {
    struct xpl_stat is_func;
    return xpl_stats_get(stats, XPL_STAT_IS_FUNC, &is_func) && xpl_stat_int(&is_func) == 0;
}
