// SPDX-License-Identifier: Apache-2.0
// Collectives: a device's work and traffic depend on the number of participants.
#include "analysis/hlo/cost/impl.h"

// ---- how many take part ----

static int64_t most_ids(const struct xpl_hlo_message *m, uint32_t num) {
    struct xpl_hlo_each groups = xpl_hlo_each_begin(m, num);
    xpl_bytes_t bytes;
    int64_t most = 0;
    while (xpl_hlo_each_next(&groups, &bytes)) {
        struct xpl_hlo_message group;
        xpl_hlo_message_read(bytes, &group);
        const int64_t n = (int64_t)xpl_hlo_ints_count(&group, 1);
        if (n > most) most = n;
    }
    return most;
}

// A mesh is MeshProto {axes 1 {size 2}}, an axis AxisRefProto {mesh_axis_index 1, sub_axis_info 2
// {pre_size 1, size 2}}.  The mesh is read again for each axis.
static int64_t axis_size(struct xpl_hlo_costs *c, const struct xpl_hlo_message *mesh,
                         const struct xpl_hlo_message *axis) {
    struct xpl_hlo_message part;
    xpl_bytes_t bytes;
    xpl_hlo_message_read(xpl_hlo_bytes(axis, 2), &part);
    if (xpl_hlo_int(&part, 2)) return xpl_hlo_int(&part, 2);
    if (!xpl_cost_spend(c, 1 + mesh->bytes.len / COST_BYTES_PER_STEP)) return 1;
    struct xpl_hlo_each axes = xpl_hlo_each_begin(mesh, 1);
    for (uint64_t at = (uint64_t)xpl_hlo_int(axis, 1); xpl_hlo_each_next(&axes, &bytes); at--) {
        if (at != 0) continue;
        xpl_hlo_message_read(bytes, &part);
        return xpl_hlo_int(&part, 2);
    }
    return 1;
}

// MeshAxesReplicaGroupListProto {mesh 1, axes 2}; 0: there are none.
static int64_t mesh_ranks(struct xpl_hlo_costs *c, const struct xpl_hlo_message *list) {
    struct xpl_hlo_each axes = xpl_hlo_each_begin(list, 2);
    struct xpl_hlo_message mesh, axis;
    xpl_bytes_t bytes;
    int64_t n = 0;
    xpl_hlo_message_read(xpl_hlo_bytes(list, 1), &mesh);
    while (!xpl_cost_stopped(c) && xpl_hlo_each_next(&axes, &bytes)) {
        xpl_hlo_message_read(bytes, &axis);
        n = xpl_cost_times(n ? n : 1, axis_size(c, &mesh, &axis));
    }
    return n;
}

// CollectiveDeviceListProto {replica_groups 1}, IotaReplicaGroupListProto {num_replica_groups 1,
// num_devices_per_group 2}.
static int64_t ranks(struct cost_visit *v) {
    const struct xpl_hlo_message *const in = xpl_cost_message(v);
    struct xpl_hlo_message list;
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_DEVICE_LIST), &list);
    int64_t n = most_ids(&list, 1);
    if (n < 1) n = most_ids(in, HLO_INSTR_REPLICA_GROUPS);
    if (n > 0) return n;
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_IOTA_GROUPS), &list);
    if (xpl_hlo_int(&list, 2) > 0) return xpl_hlo_int(&list, 2);
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_MESH_GROUPS), &list);
    n = mesh_ranks(v->c, &list);
    return n > 0 ? n : 1;
}

// ---- rules ----

// Each element is combined once.
static float combined(struct cost_visit *v) {
    const uint32_t k = xpl_cost_called(v->c, v->index, 0);
    if (k == UINT32_MAX) return 0;
    const struct xpl_hlo_module *const m = v->c->m;
    const enum xpl_hlo_op op = (enum xpl_hlo_op)m->instructions[m->computations[k].root].opcode;
    const struct cost_shape *const s = xpl_cost_result(v);
    return (float)xpl_cost_times(xpl_cost_cycles(v->c, op, s->type), s->leaf_elements);
}

static int64_t operand_bytes(const struct cost_visit *v, bool leaves) {
    int64_t bytes = 0;
    for (uint32_t k = 0; k < v->n_operands; k++)
        bytes = xpl_cost_plus(bytes, leaves ? xpl_cost_operand(v, k)->leaf_size
                                            : xpl_cost_operand(v, k)->size);
    return bytes;
}

void xpl_cost_all_reduce(struct cost_visit *v) {
    const int64_t out = xpl_cost_result(v)->leaf_size;
    v->n->output = (float)out;
    v->n->bytes = (float)xpl_cost_plus(out, operand_bytes(v, false));
    v->n->flops = combined(v);
}

// XLA counts only the result of the instruction that starts an all-reduce.
void xpl_cost_all_reduce_start(struct cost_visit *v) {
    v->n->bytes = (float)xpl_cost_result(v)->leaf_size;
    v->n->flops = combined(v);
}

// A ring of n ranks passes each rank's piece on n - 1 times: written n times, read and written
// 2n - 1 times.
static float ring_bytes(int64_t all, int64_t n) {
    const uint64_t piece = (uint64_t)(all / n), ranks_ = (uint64_t)n;
    return (float)(int64_t)(piece * ranks_ + piece * (2 * ranks_ - 1));
}

void xpl_cost_reduce_scatter(struct cost_visit *v) {
    v->n->bytes = ring_bytes(operand_bytes(v, true), ranks(v));
    v->n->flops = combined(v);
}

void xpl_cost_all_gather(struct cost_visit *v) {
    v->n->bytes = ring_bytes(xpl_cost_result(v)->leaf_size, ranks(v));
}

// The result has the operands and, second, the gathered data.
void xpl_cost_all_gather_start(struct cost_visit *v) {
    struct cost_shape gathered = *xpl_cost_result(v);
    if (gathered.n_parts > 1) xpl_cost_shape_part(xpl_cost_result(v), 1, &gathered);
    v->n->bytes = ring_bytes(gathered.leaf_size, ranks(v));
}
