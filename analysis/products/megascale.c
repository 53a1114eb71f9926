// SPDX-License-Identifier: Apache-2.0
// Product megascale: transfers between slices of TPUs, by rendezvous (XProf:
// convert/xspace_to_dcn_slack_analysis.cc).  The ops of the first TPU that send and receive through
// the host are joined by what the program says of them.

#include "analysis/hlo/hlo_map.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/types.h"
#include "analysis/products/arena_value.h"
#include "analysis/products/megascale_host.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { HLO_ATTRIBUTES_MAP = 1, MAP_KEY = 1, MAP_VALUE = 2, INFO_GROUPS = 2, INFO_ONE_TO_ONE = 3 };

// A program, read when an op of it is first met.
struct program {
    const struct xpl_hlo_program *from;
    xpl_str_t label; // "name(id)", as the events of modules are called
    struct xpl_hlo_module *module;
};

// A program ran.
struct run {
    int64_t begin_ps, end_ps;
    xpl_str_t label;
};

// A rendezvous: what the current round took, and the sums of those that ended.
struct state {
    struct xpl_megascale_transfer sum;
    xpl_str_t transfer_type, send_op;
    uint64_t begin_ns, stall_ns, others_ns; // others_ns: of r->all_ns when the send began
    int64_t send_ps, send_done_ps, recv_ps;
    uint64_t group; // endpoints; of the first send that says
    bool known_group, met;
};

struct reader {
    struct xpl_arena *arena, *scratch; // of the value; of this call
    struct xpl_exec *exec;
    struct xpl_intern *texts, *labels; // of the value; of programs
    struct program *programs;
    size_t n_programs;
    struct xpl_map by_label;  // number of a program
    XPL_VEC(struct run) runs; // of programs, by begin
    XPL_VEC(struct state) states;
    struct xpl_map by_name, by_channel; // number of a state
    uint64_t all_ns;                    // of all ops so far
};

// What the program says of an op.
struct instruction {
    uint32_t opcode;
    int64_t channel;
    xpl_str_t rendezvous, transfer_type;
    int64_t bytes; // of its result
};

// ---- programs ----

static int64_t array_bytes(const struct xpl_hlo_shape *s) {
    uint64_t n = xpl_hlo_element_bits(s->type) / 8;
    struct xpl_hlo_ints dims = s->dims;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);)
        n *= (uint64_t)d;
    return (int64_t)n;
}

static int64_t result_bytes(xpl_bytes_t shape) {
    struct xpl_hlo_shape s, part;
    xpl_hlo_shape_read(shape, &s);
    if (!s.n_parts) return array_bytes(&s);
    struct xpl_hlo_each parts = xpl_hlo_shape_parts(&s);
    uint64_t n = 0;
    for (xpl_bytes_t b; xpl_hlo_each_next(&parts, &b);) {
        xpl_hlo_shape_read(b, &part);
        if (!part.n_parts) n += (uint64_t)array_bytes(&part);
    }
    return (int64_t)n;
}

static void read_attributes(xpl_bytes_t attributes, struct instruction *ret) {
    struct xpl_hlo_message m, entry;
    xpl_hlo_message_read(attributes, &m);
    struct xpl_hlo_each each = xpl_hlo_each_begin(&m, HLO_ATTRIBUTES_MAP);
    for (xpl_bytes_t b; xpl_hlo_each_next(&each, &b);) {
        xpl_hlo_message_read(b, &entry);
        const xpl_str_t key = xpl_hlo_str(&entry, MAP_KEY), value = xpl_hlo_str(&entry, MAP_VALUE);
        if (xpl_str_eq(key, XPL_STR("_xla_host_transfer_rendezvous"))) ret->rendezvous = value;
        if (xpl_str_eq(key, XPL_STR("_xla_megascale_transfer_type"))) ret->transfer_type = value;
    }
}

static xpl_status_t read_program(struct reader *r, struct program *p, struct xpl_error *err) {
    struct xpl_hlo_message proto;
    if (p->module) return XPL_OK;
    xpl_hlo_message_read(p->from->proto, &proto);
    return xpl_hlo_module_read(xpl_hlo_bytes(&proto, HLO_PROTO_MODULE), r->scratch, &p->module,
                               err);
}

// *ret_found: the program that is called so has that instruction.
static xpl_status_t find_instruction(struct reader *r, xpl_str_t program, xpl_str_t name,
                                     struct instruction *ret, bool *ret_found,
                                     struct xpl_error *err) {
    xpl_strid_t label;
    *ret_found = false;
    if (!xpl_intern_put(r->labels, program, &label)) XPL_RETURN_OOM(err, "megascale");
    const uint64_t *const i = xpl_map_get(&r->by_label, label.v, 0);
    if (!i) return XPL_OK;
    XPL_TRY(read_program(r, &r->programs[*i], err));
    const struct xpl_hlo_module *const m = r->programs[*i].module;
    const uint32_t at = m->valid ? xpl_hlo_module_find(m, name) : UINT32_MAX;
    if (at == UINT32_MAX) return XPL_OK;
    const struct hlo_instruction *const in = &m->instructions[at];
    struct xpl_hlo_message message;
    xpl_hlo_message_read((xpl_bytes_t){in->p, in->len}, &message);
    *ret = (struct instruction){.opcode = in->opcode,
                                .channel = xpl_hlo_int(&message, HLO_INSTR_CHANNEL_ID),
                                .bytes = result_bytes(xpl_hlo_shape_of(in))};
    read_attributes(xpl_hlo_bytes(&message, HLO_INSTR_FRONTEND_ATTRIBUTES), ret);
    *ret_found = true;
    return XPL_OK;
}

static bool list_programs(struct reader *r, const struct xpl_hlo_map *map) {
    const struct xpl_hlo_program *const p = xpl_hlo_map_programs(map, &r->n_programs);
    r->programs = xpl_arena_array(r->scratch, r->n_programs, sizeof *r->programs);
    if (!r->programs) return false;
    for (size_t i = 0; i < r->n_programs; i++) {
        xpl_strid_t label;
        bool is_new;
        r->programs[i] = (struct program){.from = &p[i]};
        if (!xpl_arena_printf(r->scratch, &r->programs[i].label, "%.*s(%llu)",
                              XPL_STR_FMT(p[i].name), (unsigned long long)p[i].program_id))
            return false;
        if (!xpl_intern_put(r->labels, r->programs[i].label, &label)) return false;
        uint64_t *const at = xpl_map_put(r->scratch, &r->by_label, label.v, 0, &is_new);
        if (!at) return false;
        *at = i;
    }
    return true;
}

// ---- rendezvous ----

// The state of that name; NULL without memory.
static struct state *state_of(struct reader *r, xpl_str_t name) {
    xpl_strid_t id;
    bool is_new;
    if (!xpl_intern_put(r->texts, name, &id)) return NULL;
    uint64_t *const at = xpl_map_put(r->scratch, &r->by_name, id.v, 0, &is_new);
    if (!at) return NULL;
    if (is_new) {
        struct state *const s = xpl_vec_push(r->scratch, &r->states);
        if (!s) return NULL;
        *s = (struct state){.sum.rendezvous = xpl_intern_get(r->texts, id)};
        *at = r->states.n - 1;
    }
    return &r->states.v[*at];
}

// That of an op: by name, else by the channel on which a named one was met.  *ret: NULL: none.
static bool find_state(struct reader *r, const struct instruction *in, struct state **ret) {
    bool is_new;
    *ret = NULL;
    if (!in->rendezvous.ptr) {
        const uint64_t *const at = xpl_map_get(&r->by_channel, (uint64_t)in->channel, 0);
        if (at) *ret = &r->states.v[*at];
        return true;
    }
    if (!(*ret = state_of(r, in->rendezvous))) return false;
    uint64_t *const at = xpl_map_put(r->scratch, &r->by_channel, (uint64_t)in->channel, 0, &is_new);
    if (at) *at = (uint64_t)(*ret - r->states.v);
    return at != NULL;
}

// Endpoints of the first group; of one-to-one groups 1.
static uint64_t group_size(const struct xpl_line *l, const struct xpl_event *ev) {
    struct xpl_hlo_message info, group;
    struct xpl_stat s;
    xpl_bytes_t first;
    if (!xpl_stats_get(xpl_event_md_stats(l->plane, xpl_event_get_md(l, ev)),
                       XPL_STAT_DCN_COLLECTIVE_INFO, &s) ||
        s.kind != XPL_VALUE_BYTES)
        return 0;
    xpl_hlo_message_read((xpl_bytes_t){(const uint8_t *)s.str.ptr, s.str.len}, &info);
    if (info.malformed) return 0;
    if (xpl_hlo_has(&info, INFO_ONE_TO_ONE)) return 1;
    struct xpl_hlo_each groups = xpl_hlo_each_begin(&info, INFO_GROUPS);
    if (!xpl_hlo_each_next(&groups, &first)) return 0;
    xpl_hlo_message_read(first, &group);
    struct xpl_hlo_each endpoints = xpl_hlo_each_begin(&group, 1);
    uint64_t n = 0;
    for (xpl_bytes_t b; xpl_hlo_each_next(&endpoints, &b);)
        n++;
    return n;
}

// The bytes sent over the network, from the received ones.
static uint64_t sent_bytes(int64_t received, uint64_t group, xpl_str_t type) {
    const double g = (double)group, b = (double)received;
    double sent = 0;
    if (!group || received <= 0) return 0;
    if (xpl_str_eq(type, XPL_STR("ONE_TO_ONE"))) sent = g * b;
    if (xpl_str_eq(type, XPL_STR("ALL_GATHER"))) sent = (g - 1) * b / g;
    if (xpl_str_eq(type, XPL_STR("ALL_REDUCE"))) sent = 2 * ((g - 1) / g) * b;
    if (xpl_str_eq(type, XPL_STR("ALL_TO_ALL"))) sent = (g - 1) / g * b;
    if (xpl_str_eq(type, XPL_STR("REDUCE_SCATTER"))) sent = b * (g - 1);
    return sent < 0x1p64 ? (uint64_t)sent : UINT64_MAX;
}

// ---- ops ----

struct op {
    xpl_str_t name;
    int64_t begin_ps, end_ps, duration_ps;
    const struct xpl_line *line;
    const struct xpl_event *event;
};

static uint64_t ns(int64_t ps) {
    return ps > 0 ? (uint64_t)ps / 1000 : 0;
}
static uint64_t us(uint64_t n) {
    return n / 1000;
}
static uint64_t whole_us(int64_t ps) {
    return ps > 0 ? (uint64_t)ps / 1000000 : 0;
}

static void end_round(struct reader *r, struct state *s, const struct instruction *in,
                      const struct op *o) {
    struct xpl_megascale_transfer *const t = &s->sum;
    const uint64_t begin = ns(o->begin_ps), end = ns(o->end_ps);
    const uint64_t others = r->all_ns - s->others_ns, since = begin - s->begin_ns;
    const uint64_t took[XPL_MEGASCALE_TIMES] = {
        [XPL_MEGASCALE_SLACK] = begin > s->begin_ns && since > others ? us(since - others) : 0,
        [XPL_MEGASCALE_OBSERVED] = us(end) > us(s->begin_ns) ? us(end) - us(s->begin_ns) : 0,
        [XPL_MEGASCALE_STALL] = us(s->stall_ns),
        [XPL_MEGASCALE_SEND] = whole_us(s->send_ps),
        [XPL_MEGASCALE_SEND_DONE] = whole_us(s->send_done_ps),
        [XPL_MEGASCALE_RECV] = whole_us(s->recv_ps),
        [XPL_MEGASCALE_RECV_DONE] = whole_us(o->duration_ps),
    };
    t->occurrences++;
    for (size_t i = 0; i < XPL_MEGASCALE_TIMES; i++)
        t->mean_us[i] += took[i]; // divided at the end
    t->bytes = sent_bytes(in->bytes, s->group, s->transfer_type);
    t->transfer_type = s->transfer_type;
    t->send_op = s->send_op;
}

static bool begin_round(struct reader *r, struct state *s, const struct instruction *in,
                        const struct op *o) {
    s->begin_ns = ns(o->begin_ps);
    s->others_ns = r->all_ns;
    s->stall_ns = ns(o->duration_ps);
    s->send_ps = o->duration_ps;
    if (!s->known_group) s->group = group_size(o->line, o->event);
    s->known_group = true;
    xpl_strid_t name, type;
    if (!xpl_intern_put(r->texts, o->name, &name) ||
        !xpl_intern_put(r->texts, in->transfer_type, &type))
        return false;
    s->send_op = xpl_intern_get(r->texts, name);
    s->transfer_type = xpl_intern_get(r->texts, type);
    return true;
}

static bool visit(struct reader *r, const struct instruction *in, const struct op *o) {
    struct state *s;
    xpl_strid_t name;
    if (!find_state(r, in, &s)) return false;
    if (!s) return true;
    s->stall_ns += ns(o->duration_ps);
    switch (in->opcode) {
        case XPL_HLO_SEND:
            if (!begin_round(r, s, in, o)) return false;
            break;
        case XPL_HLO_RECV: s->recv_ps = o->duration_ps; break;
        case XPL_HLO_SEND_DONE: s->send_done_ps = o->duration_ps; break;
        case XPL_HLO_RECV_DONE:
            if (!s->begin_ns) break;
            if (!xpl_intern_put(r->texts, o->name, &name)) return false;
            s->sum.recv_op = xpl_intern_get(r->texts, name);
            end_round(r, s, in, o);
            break;
        default: break;
    }
    r->all_ns += ns(o->duration_ps);
    return true;
}

static int by_begin(const void *a, const void *b) {
    const struct run *const x = a, *const y = b;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

static xpl_status_t list_runs(struct reader *r, const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct run *const to = xpl_vec_push(r->scratch, &r->runs);
        if (!to) XPL_RETURN_OOM(err, "megascale");
        *to = (struct run){xpl_event_begin_ps(l, &ev), xpl_event_end_ps(l, &ev),
                           xpl_event_get_md(l, &ev)->name};
    }
    xpl_sort(r->runs.v, r->runs.n, sizeof *r->runs.v, by_begin);
    return got == XPL_WIRE_END ? XPL_OK : xpl_events_error(&c, err);
}

// The run of a program in which an op lies whole; NULL: none.
static const struct run *find_run(const struct reader *r, const struct op *o) {
    size_t low = 0, high = r->runs.n; // the first that begins later is in [low, high]
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->runs.v[middle].begin_ps > o->begin_ps)
            high = middle;
        else
            low = middle + 1;
    }
    return low && r->runs.v[low - 1].end_ps >= o->end_ps ? &r->runs.v[low - 1] : NULL;
}

static bool is_transfer(const struct xpl_line *l, const struct xpl_event *ev) {
    struct xpl_stat s;
    if (!xpl_stats_get(xpl_event_md_stats(l->plane, xpl_event_get_md(l, ev)), XPL_STAT_HLO_CATEGORY,
                       &s))
        return false;
    const xpl_str_t category = xpl_stat_str(&s);
    return xpl_str_has(category, XPL_STR("host send")) ||
           xpl_str_has(category, XPL_STR("host recv"));
}

static xpl_status_t visit_line(struct reader *r, const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct instruction in;
        bool found;
        if (ev.index % 4096 == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "megascale cancelled");
        if (!is_transfer(l, &ev)) continue;
        const struct op o = {xpl_event_get_md(l, &ev)->display_name,
                             xpl_event_begin_ps(l, &ev),
                             xpl_event_end_ps(l, &ev),
                             ev.duration_ps,
                             l,
                             &ev};
        const struct run *const run = find_run(r, &o);
        if (!run) continue;
        XPL_TRY(find_instruction(r, run->label, o.name, &in, &found, err));
        if (found && !visit(r, &in, &o)) XPL_RETURN_OOM(err, "megascale");
    }
    return got == XPL_WIRE_END ? XPL_OK : xpl_events_error(&c, err);
}

// ---- the product ----

static bool has_megascale(const struct xpl_xspace *xs) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    for (uint32_t i = 1; p && i < p->n_event_md; i++)
        if (xpl_str_starts(p->event_md[i].name, XPL_STR("MegaScale:"))) return true;
    return false;
}

static const struct xpl_line *line_named(const struct xpl_plane *p, const char *name) {
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (xpl_str_eq(p->lines[i].name, xpl_str_from(name))) return &p->lines[i];
    return NULL;
}

static xpl_status_t visit_plane(struct reader *r, const struct xpl_plane *p,
                                struct xpl_error *err) {
    const struct xpl_line *const modules = line_named(p, XPL_LINE_XLA_MODULES);
    if (modules) XPL_TRY(list_runs(r, modules, err));
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (xpl_str_eq(p->lines[i].name, XPL_STR(XPL_LINE_XLA_OPS)))
            XPL_TRY(visit_line(r, &p->lines[i], err));
    return XPL_OK;
}

// Rounds that ended, in the order of their first.
static bool list_transfers(struct reader *r, struct xpl_megascale_value *v) {
    v->v = xpl_arena_array(r->arena, r->states.n, sizeof *v->v);
    if (!v->v) return false;
    for (size_t i = 0; i < r->states.n; i++) {
        struct xpl_megascale_transfer *const t = &r->states.v[i].sum;
        const uint64_t n = t->occurrences;
        if (!n) continue;
        for (size_t k = 0; k < XPL_MEGASCALE_TIMES; k++)
            t->mean_us[k] /= n;
        v->v[v->n++] = *t;
    }
    return true;
}

static void free_map(struct xpl_hlo_map **m) {
    xpl_hlo_map_free(*m);
}

static xpl_status_t read_transfers(struct reader *r, const struct xpl_xspace *xs, size_t limit,
                                   struct xpl_megascale_value *v, struct xpl_error *err) {
    XPL_AUTO(free_map) struct xpl_hlo_map *map = NULL;
    const struct xpl_plane *const plane = xpl_xspace_plane(xs, XPL_STR("/device:TPU:0"));
    v->any = has_megascale(xs);
    if (!v->any || !plane) return XPL_OK;
    XPL_TRY(xpl_hlo_map_new(xs, limit, &map, err));
    r->texts = xpl_intern_new(r->arena, xpl_hash_seed());
    r->labels = xpl_intern_new(r->scratch, xpl_hash_seed());
    if (!r->texts || !r->labels || !list_programs(r, map)) XPL_RETURN_OOM(err, "megascale");
    XPL_TRY(visit_plane(r, plane, err));
    if (!list_transfers(r, v)) XPL_RETURN_OOM(err, "megascale");
    return xpl_megascale_read_host(xs, r->exec, limit, v->v, v->n, err);
}

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_megascale_value *const v = value;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    struct reader r = {.arena = &v->own.arena, .scratch = &scratch, .exec = in->exec};
    return read_transfers(&r, xs, in->limit, v, err);
}

static const struct xpl_arena_value_kind kKind = {
    .size = sizeof(struct xpl_megascale_value), .what = "megascale", .fill = fill};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

const struct xpl_product xpl_product_megascale = {
    .name = "megascale",
    .version = 2,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
