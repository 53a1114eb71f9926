// SPDX-License-Identifier: Apache-2.0
// The statistics of a host event that matter to the scan.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_EVENT_STATS_H_
#define XPL_ANALYSIS_OPSTATS_HOST_EVENT_STATS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/opstats/host/cpu_line.h"
#include "analysis/opstats/host/plan.h"
#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/xspace.h"

// Statistics of an event that the scan uses.  Where upstream takes the first of several equal
// ones, so do we; elsewhere the last.
struct host_event_stats {
    unsigned has; // XPL_HOST_...
    bool has_consumer_type, has_consumer_id, has_run_id;
    int64_t stage_id, tracing_count;
    uint64_t consumer_type, consumer_id;
    xpl_str_t stage_name, call;
    struct xpl_stat tf_op;
    struct xpl_cpu_event cpu;
    int64_t run_id; // when has_run_id; of a keyed op it is in `run`, as it is written
    xpl_bytes_t run;
    // All there is is an op of an XLA program, and this says which; nothing else was read yet.
    bool keyed;
    struct xpl_cpu_key key;
};

// Decodes them, from the first that matters on; `first` is that one or one before it.  Not the
// run_id of a keyed op.
void xpl_host_read_stats(const struct xpl_host_plan *p, const struct xpl_event *ev,
                         const uint8_t *first, struct host_event_stats *w);

// What the statistic at the head of the list is, by its id alone, which writers put first:
// XPL_HOST_ID_...; DECIDES when in doubt.  *ret_len is the length of its message and what is around
// it, *ret_value where the field after the id begins.
XPL_INLINE unsigned xpl_host_stat_role(const struct xpl_host_plan *p, const uint8_t *at,
                                       const uint8_t *end, uint8_t tag, size_t *ret_len,
                                       const uint8_t **ret_value) {
    struct xpl_fast_stat s;
    if (XPL_UNLIKELY(!xpl_fast_stat_head(at, end, tag, &s))) {
        *ret_len = (size_t)(end - at);
        return XPL_HOST_ID_DECIDES;
    }
    *ret_len = s.len;
    *ret_value = s.value;
    return XPL_LIKELY(s.id < p->n_wanted) ? p->wanted[s.id] : XPL_HOST_ID_DECIDES;
}

enum { TAG_UINT = XSTAT_UINT << 3, TAG_INT = XSTAT_INT << 3, TAG_REF = XSTAT_REF << 3 };

// Stores the one value of a statistic in the key.  False when it is not of the kind that writers
// use there, or not the first.
XPL_INLINE bool xpl_host_store_key(unsigned what, const uint8_t *at, const uint8_t *end,
                                   struct xpl_cpu_key *key) {
    uint64_t *const slot = what & XPL_HOST_ID_HLO_OP   ? &key->hlo_op
                           : what & XPL_HOST_ID_MODULE ? &key->module
                                                       : &key->program_id;
    if (XPL_UNLIKELY(at == end) || XPL_UNLIKELY(*slot != UINT64_MAX)) return false;
    const uint8_t tag = *at;
    if (what & XPL_HOST_ID_PROGRAM ? tag != TAG_INT && tag != TAG_UINT : tag != TAG_REF)
        return false;
    const struct xpl_varint v = xpl_varint_read(at + 1, end);
    *slot = v.v;
    return v.p == end;
}

// Notes where a value is that says for whom an event runs; the first counts.
XPL_INLINE void xpl_host_note_context(unsigned what, const uint8_t *at, const uint8_t *end,
                                      struct xpl_input_consumer *of) {
    struct xpl_input_value *const v = what & XPL_HOST_ID_CONTEXT_TYPE ? &of->type : &of->id;
    if (!v->p) *v = (struct xpl_input_value){at, end};
}

// Reads a run id, which is not empty.  False when it is not written as an integer, as writers do.
XPL_INLINE bool xpl_host_read_run(xpl_bytes_t run, int64_t *ret) {
    const uint8_t *const end = run.ptr + run.len;
    if (*run.ptr != TAG_INT && *run.ptr != TAG_UINT) return false;
    const struct xpl_varint v = xpl_varint_read(run.ptr + 1, end);
    *ret = (int64_t)v.v;
    return v.p == end;
}

enum host_interest { NOT_OF_INTEREST, KEYED_OP, OF_INTEREST };

// What the statistics of an event are to the scan.
struct host_stats_head {
    enum host_interest interest;
    bool eager;             // may carry is_eager
    struct xpl_cpu_key key; // of a KEYED_OP
    xpl_bytes_t run;        // the value of a KEYED_OP's run_id, as it is written; empty: none
    const uint8_t *first;   // of those that matter; NULL: none does
    const uint8_t *unread;  // the bytes before it are well-formed; nothing after it was read
};

// Whether an event may carry a statistic that matters; KEYED_OP when all that does is in the key.
// [at, end) are its statistics.  What is not of interest is well-formed, too.
XPL_INLINE void xpl_host_read_head(const struct xpl_host_plan *p, const uint8_t *at,
                                   const uint8_t *end, uint32_t md, struct host_stats_head *ret) {
    struct xpl_input_consumer of;
    const uint8_t *value;
    bool simple = true;
    unsigned seen = 0;
    size_t len;
    ret->key = (struct xpl_cpu_key){UINT64_MAX, UINT64_MAX, UINT64_MAX, md};
    ret->interest = OF_INTEREST, ret->eager = true, ret->first = NULL;
    ret->run.len = 0;
    of.type.p = of.id.p = NULL;
    for (; at != end; at += len) {
        const unsigned what = xpl_host_stat_role(p, at, end, XPL_TAG_FIELD4_LEN, &len, &value);
        if (XPL_LIKELY(!what)) continue;
        if (!ret->first) ret->first = at;
        if (XPL_UNLIKELY(what & XPL_HOST_ID_DECIDES)) {
            ret->unread = at;
            return;
        }
        if (what & XPL_HOST_ID_KEY)
            simple &= xpl_host_store_key(what, value, at + len, &ret->key);
        else if (what & XPL_HOST_ID_RUN)
            ret->run = (xpl_bytes_t){value, (size_t)(at + len - value)};
        else if (what & XPL_HOST_ID_CONTEXT)
            xpl_host_note_context(what, value, at + len, &of);
        seen |= what;
    }
    ret->unread = end;
    if (XPL_UNLIKELY((seen & XPL_HOST_ID_CONTEXT) == XPL_HOST_ID_CONTEXT) &&
        xpl_input_work_may_consume(&p->input, p->plane, md, &of))
        return;
    ret->eager = seen & XPL_HOST_ID_EAGER;
    if (simple) ret->interest = ret->key.hlo_op == UINT64_MAX ? NOT_OF_INTEREST : KEYED_OP;
}

#endif
