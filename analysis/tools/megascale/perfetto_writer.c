// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/megascale/perfetto_writer.h"
#include "base/vec.h"

#include <string.h>

enum { SEQUENCE = 1, IID = 1, TEXT = 2, ARGUMENT_ARRAY = 12, COUNTER_UNIT = 6, COUNTER_SCALE = 7 };
enum pool { NAMES, KEYS, STRINGS };

bool xpl_perfetto_writer_init(struct xpl_perfetto_writer *w, struct xpl_buf *out,
                              struct xpl_arena *arena, size_t limit) {
    *w = (struct xpl_perfetto_writer){.arena = arena, .limit = limit};
    xpl_packet_init(&w->packet, out, SEQUENCE, limit);
    w->packet.begins = true;
    xpl_buf_init(&w->nested, limit);
    w->texts = xpl_intern_new(arena, xpl_hash_seed());
    return w->texts != NULL;
}

void xpl_perfetto_writer_fini(struct xpl_perfetto_writer *w) {
    xpl_packet_fini(&w->packet);
    xpl_buf_fini(&w->nested);
}

// The iid of a text in a pool; a new one goes with the next packet.
static bool intern(struct xpl_perfetto_writer *w, enum pool pool, xpl_str_t text, uint64_t *ret) {
    static const uint32_t fields[] = {XPL_PF_INTERNED_EVENT_NAMES, XPL_PF_INTERNED_ARGUMENT_NAMES,
                                      XPL_PF_INTERNED_STRINGS};
    xpl_strid_t id;
    bool is_new;
    if (!xpl_intern_put(w->texts, text, &id)) return false;
    uint64_t *const at = xpl_map_put(w->arena, &w->known[pool], id.v, 0, &is_new);
    if (!at) return false;
    if (is_new) {
        *at = ++w->last[pool];
        xpl_pf_uint(&w->nested, IID, *at);
        xpl_pf_str(&w->nested, TEXT, xpl_intern_get(w->texts, id));
        xpl_pf_part(&w->packet.interned, fields[pool], &w->nested);
    }
    *ret = *at;
    return true;
}

static void put_track(struct xpl_perfetto_writer *w, uint64_t uuid, uint64_t parent,
                      xpl_str_t name) {
    struct xpl_buf *const b = &w->packet.body;
    xpl_pf_uint(b, XPL_PF_TRACK_UUID, uuid);
    xpl_pf_str(b, XPL_PF_TRACK_NAME, name);
    if (parent) xpl_pf_uint(b, XPL_PF_TRACK_PARENT, parent);
}

bool xpl_perfetto_track(struct xpl_perfetto_writer *w, uint64_t uuid, uint64_t parent,
                        xpl_str_t name) {
    put_track(w, uuid, parent, name);
    return xpl_packet_track(&w->packet);
}

bool xpl_perfetto_counter(struct xpl_perfetto_writer *w, uint64_t uuid, uint64_t parent,
                          xpl_str_t name, xpl_str_t unit, xpl_str_t scale) {
    put_track(w, uuid, parent, name);
    xpl_pf_str(&w->nested, COUNTER_UNIT, unit);
    xpl_pf_str(&w->nested, COUNTER_SCALE, scale);
    xpl_pf_part(&w->packet.body, XPL_PF_TRACK_COUNTER, &w->nested);
    return xpl_packet_track(&w->packet);
}

// ---- arguments ----

static bool add_argument(struct xpl_perfetto_writer *w, xpl_str_t key, uint32_t field,
                         uint64_t bits) {
    uint64_t iid;
    if (!intern(w, KEYS, key, &iid)) return false;
    struct xpl_perfetto_argument *const a = xpl_vec_push(w->arena, &w->arguments);
    if (a) *a = (struct xpl_perfetto_argument){iid, w->arguments.n, field, bits};
    return a != NULL;
}

bool xpl_perfetto_text(struct xpl_perfetto_writer *w, xpl_str_t key, xpl_str_t value) {
    uint64_t iid;
    return intern(w, STRINGS, value, &iid) && add_argument(w, key, XPL_PF_ARGUMENT_STRING_IID, iid);
}

bool xpl_perfetto_int(struct xpl_perfetto_writer *w, xpl_str_t key, int64_t value) {
    return add_argument(w, key, XPL_PF_ARGUMENT_INT, (uint64_t)value);
}

static bool is_hidden(xpl_str_t name) {
    static const char *const names[] = {"_c",
                                        "_ct",
                                        "_p",
                                        "_pt",
                                        "_r",
                                        "_a",
                                        "flow",
                                        "flops",
                                        "program_id",
                                        "symbol_id",
                                        "source",
                                        "source_stack",
                                        "kernel_details"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xpl_str_eq(name, xpl_str_from(names[i]))) return true;
    return false;
}

bool xpl_perfetto_stats(struct xpl_perfetto_writer *w, struct xpl_stats stats) {
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        const xpl_str_t key = s.md->name;
        bool ok = true;
        if (is_hidden(key)) continue;
        switch (s.kind) {
            case XPL_VALUE_NONE: break;
            case XPL_VALUE_INT:
                ok = add_argument(w, key, XPL_PF_ARGUMENT_INT, (uint64_t)s.i);
                break;
            case XPL_VALUE_UINT: ok = add_argument(w, key, XPL_PF_ARGUMENT_UINT, s.u); break;
            case XPL_VALUE_DOUBLE: {
                uint64_t bits;
                memcpy(&bits, &s.d, sizeof bits);
                ok = add_argument(w, key, XPL_PF_ARGUMENT_DOUBLE, bits);
                break;
            }
            case XPL_VALUE_STR:
            case XPL_VALUE_REF: ok = xpl_perfetto_text(w, key, s.str); break;
            case XPL_VALUE_BYTES: ok = xpl_perfetto_text(w, key, XPL_STR("")); break;
        }
        if (!ok) return false;
    }
    return true;
}

static int by_key(const void *a, const void *b) {
    const struct xpl_perfetto_argument *const x = a, *const y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void put_value(struct xpl_buf *b, const struct xpl_perfetto_argument *a) {
    if (a->field == XPL_PF_ARGUMENT_DOUBLE)
        xpl_pf_fixed(b, a->field, a->bits);
    else
        xpl_pf_uint(b, a->field, a->bits);
}

static void put_arguments(struct xpl_perfetto_writer *w) {
    const struct xpl_perfetto_argument *const v = w->arguments.v;
    const size_t n = w->arguments.n;
    xpl_sort(w->arguments.v, n, sizeof *w->arguments.v, by_key);
    for (size_t i = 0, end; i < n; i = end) {
        struct xpl_buf *const part = &w->packet.part;
        for (end = i + 1; end < n && v[end].key == v[i].key;)
            end++;
        xpl_pf_uint(part, XPL_PF_ARGUMENT_NAME_IID, v[i].key);
        if (end == i + 1) put_value(part, &v[i]);
        for (size_t k = i; end > i + 1 && k < end; k++) {
            put_value(&w->nested, &v[k]);
            xpl_pf_part(part, ARGUMENT_ARRAY, &w->nested);
        }
        xpl_pf_part(&w->packet.body, XPL_PF_EVENT_ARGUMENT, part);
    }
    w->arguments.n = 0;
}

// ---- events ----

bool xpl_perfetto_flow(struct xpl_perfetto_writer *w, uint64_t id) {
    uint64_t *const to = xpl_vec_push(w->arena, &w->flows);
    if (to) *to = id;
    return to != NULL;
}

static bool put_event(struct xpl_perfetto_writer *w, uint64_t ns) {
    for (size_t i = 0; i < w->flows.n; i++)
        xpl_pf_fixed(&w->packet.body, XPL_PF_EVENT_FLOW, w->flows.v[i]);
    w->flows.n = 0;
    return xpl_packet_event(&w->packet, ns);
}

static void begin_event(struct xpl_perfetto_writer *w, uint64_t type, uint64_t track) {
    xpl_pf_uint(&w->packet.body, XPL_PF_EVENT_TYPE, type);
    xpl_pf_uint(&w->packet.body, XPL_PF_EVENT_TRACK, track);
}

bool xpl_perfetto_begin(struct xpl_perfetto_writer *w, uint64_t track, xpl_str_t name, uint64_t ns,
                        bool instant) {
    uint64_t iid;
    if (!intern(w, NAMES, name, &iid)) return false;
    begin_event(w, instant ? XPL_PF_TYPE_INSTANT : XPL_PF_TYPE_BEGIN, track);
    xpl_pf_uint(&w->packet.body, XPL_PF_EVENT_NAME_IID, iid);
    put_arguments(w);
    return put_event(w, ns);
}

bool xpl_perfetto_end(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns) {
    begin_event(w, XPL_PF_TYPE_END, track);
    return put_event(w, ns);
}

bool xpl_perfetto_count(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns, int64_t value) {
    begin_event(w, XPL_PF_TYPE_COUNTER, track);
    xpl_pf_uint(&w->packet.body, XPL_PF_EVENT_COUNTER, (uint64_t)value);
    return put_event(w, ns);
}

bool xpl_perfetto_rate(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns, double value) {
    begin_event(w, XPL_PF_TYPE_COUNTER, track);
    xpl_pf_double(&w->packet.body, XPL_PF_EVENT_DOUBLE_COUNTER, value);
    return put_event(w, ns);
}
