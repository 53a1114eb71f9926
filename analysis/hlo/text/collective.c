// SPDX-License-Identifier: Apache-2.0
// Attributes of collectives: the participants.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/text/attributes_impl.h"

// {{0,1},{2,3}}: the groups of a list, field `num` of a message.
static void put_list(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t num) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(m, num);
    struct xpl_hlo_message group;
    bool first = true;
    TXT(t, "{");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &group);
        if (!first) TXT(t, ",");
        txt_set(t, &group, 1);
    }
    TXT(t, "}");
}

static void put_mesh_groups(struct hlo_text *t, xpl_bytes_t groups) {
    struct xpl_hlo_message m;
    txt_read(t, groups, &m);
    const xpl_bytes_t mesh = xpl_hlo_bytes(&m, 1);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 2);
    struct txt_axes axes;
    bool first = true;
    txt_axes_read(mesh, &axes);
    txt_mesh(t, mesh);
    TXT(t, " {");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        if (!first) TXT(t, ",");
        txt_axis(t, &axes, one);
    }
    TXT(t, "}");
}

// [groups,devices]<=[...]T(...)
static void put_iota_groups(struct hlo_text *t, const struct xpl_hlo_message *m) {
    TXT(t, "[");
    txt_int(t, xpl_hlo_int(m, 1));
    TXT(t, ",");
    txt_int(t, xpl_hlo_int(m, 2));
    TXT(t, "]<=");
    txt_iota(t, m, 3, 4);
}

static void put_groups(struct hlo_text *t, const struct xpl_hlo_message *in) {
    struct xpl_hlo_message m;
    TXT(t, ", replica_groups=");
    if (xpl_hlo_has(in, HLO_INSTR_MESH_GROUPS)) {
        put_mesh_groups(t, xpl_hlo_bytes(in, HLO_INSTR_MESH_GROUPS));
        return;
    }
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_IOTA_GROUPS), &m);
    if (xpl_hlo_int(&m, 1)) {
        put_iota_groups(t, &m);
        return;
    }
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_DEVICE_LIST), &m);
    if (xpl_hlo_has(&m, 1))
        put_list(t, &m, 1);
    else
        put_list(t, in, HLO_INSTR_REPLICA_GROUPS);
}

static void put_constrain_layout(struct hlo_text *t, const struct xpl_hlo_message *in) {
    if (xpl_hlo_bool(in, HLO_INSTR_CONSTRAIN_LAYOUT)) TXT(t, ", constrain_layout=true");
}
static void put_global_ids(struct hlo_text *t, const struct xpl_hlo_message *in) {
    if (xpl_hlo_bool(in, HLO_INSTR_GLOBAL_DEVICE_IDS)) TXT(t, ", use_global_device_ids=true");
}
static void put_dimensions(struct hlo_text *t, const struct xpl_hlo_message *in) {
    txt_put_set(t, XPL_STR(", dimensions="), in, HLO_INSTR_DIMENSIONS);
}

void txt_all_gather(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_groups(t, in);
    put_constrain_layout(t, in);
    put_dimensions(t, in);
    put_global_ids(t, in);
}

void txt_all_reduce(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_groups(t, in);
    put_constrain_layout(t, in);
    put_global_ids(t, in);
}

void txt_reduce_scatter(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    txt_all_reduce(t, index, in);
    put_dimensions(t, in);
}

void txt_all_to_all(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_groups(t, in);
    put_constrain_layout(t, in);
    if (xpl_hlo_ints_count(in, HLO_INSTR_DIMENSIONS)) put_dimensions(t, in);
}

static void put_dynamic_root(struct hlo_text *t, const struct xpl_hlo_message *in) {
    TXT(t, ", has_dynamic_root=");
    txt_str(t, xpl_hlo_bool(in, HLO_INSTR_DYNAMIC_ROOT) ? XPL_STR("true") : XPL_STR("false"));
}

void txt_collective_reduce(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    txt_all_reduce(t, index, in);
    put_dynamic_root(t, in);
}

void txt_collective_broadcast(struct hlo_text *t, uint32_t index,
                              const struct xpl_hlo_message *in) {
    (void)index;
    put_groups(t, in);
    put_dynamic_root(t, in);
}

void txt_ragged_all_to_all(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_groups(t, in);
}

// ---- permutations of slices ----

// Sizes of slices, of which a message has the numbers one behind the other.
struct slices {
    struct xpl_hlo_ints sizes;
    bool is_first;
};

// The sizes of `n` slices of a shape.
static void put_slices(struct hlo_text *t, struct slices *s, const struct xpl_hlo_shape *of,
                       uint32_t n) {
    for (uint32_t i = 0; i < n && !txt_stopped(t); i++, s->is_first = false) {
        struct xpl_hlo_ints dims = of->dims;
        bool first = true;
        if (!s->is_first) TXT(t, ",");
        TXT(t, "{");
        for (int64_t d, size; xpl_hlo_ints_next(&dims, &d); first = false) {
            if (!xpl_hlo_ints_next(&s->sizes, &size)) {
                txt_malformed(t);
                return;
            }
            if (!first) TXT(t, ",");
            txt_int(t, size);
        }
        TXT(t, "}");
    }
}

// Of each shape of the input, which is one or a tuple, a slice or several: as many as there are
// tuples of indices where it begins.
static void put_slices_of(struct hlo_text *t, struct slices *s, const struct xpl_hlo_shape *input,
                          const struct xpl_hlo_shape *indices) {
    struct xpl_hlo_each inputs = xpl_hlo_shape_parts(input), begins = xpl_hlo_shape_parts(indices);
    struct xpl_hlo_shape one, begin;
    xpl_bytes_t bytes;
    const bool any = xpl_hlo_each_next(&begins, &bytes);
    xpl_hlo_shape_read(any ? bytes : (xpl_bytes_t){0}, &begin);
    const bool several = begin.type == HLO_TYPE_TUPLE;
    if (input->type != HLO_TYPE_TUPLE) {
        put_slices(t, s, input, several ? indices->n_parts : 1);
        return;
    }
    while (!txt_stopped(t) && xpl_hlo_each_next(&inputs, &bytes)) {
        xpl_hlo_shape_read(bytes, &one);
        put_slices(t, s, &one, several ? begin.n_parts : 1);
        if (several && xpl_hlo_each_next(&begins, &bytes)) xpl_hlo_shape_read(bytes, &begin);
    }
}

// Operands: the input, the output, where slices of either begin.
static void put_slice_sizes(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    enum { INPUT, OUTPUT, INDICES, N };
    struct slices s = {xpl_hlo_ints_begin(in, HLO_INSTR_DYNAMIC_SLICE_SIZES), true};
    struct txt_uses u = txt_uses_begin(t, index, in, false);
    struct xpl_hlo_shape shapes[N];
    for (unsigned i = 0; i < N; i++) {
        uint32_t at;
        if (!txt_uses_next(t, &u, &at)) return;
        xpl_hlo_shape_read(xpl_hlo_shape_of(&t->m->instructions[at]), &shapes[i]);
    }
    TXT(t, ", slice_sizes={");
    put_slices_of(t, &s, &shapes[INPUT], &shapes[INDICES]);
    TXT(t, "}");
}

void txt_collective_permute(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(in, HLO_INSTR_SOURCE_TARGET_PAIRS);
    struct xpl_hlo_message pair;
    bool first = true;
    TXT(t, ", source_target_pairs={");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &pair);
        if (!first) TXT(t, ",");
        TXT(t, "{");
        txt_int(t, xpl_hlo_int(&pair, 1));
        TXT(t, ",");
        txt_int(t, xpl_hlo_int(&pair, 2));
        TXT(t, "}");
    }
    TXT(t, "}");
    if (xpl_hlo_ints_count(in, HLO_INSTR_DYNAMIC_SLICE_SIZES)) put_slice_sizes(t, index, in);
}

void txt_host_transfer(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    if (xpl_hlo_bool(in, HLO_INSTR_IS_HOST_TRANSFER)) TXT(t, ", is_host_transfer=true");
}
