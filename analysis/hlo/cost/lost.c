// SPDX-License-Identifier: Apache-2.0
// Instructions that XLA's analysis fails on, and with it that of their whole module: as XProf
// 2.24.2 was seen to lose costs (tests/parity/hlo_text.py compares).
#include "analysis/hlo/cost/impl.h"
#include "analysis/hlo/proto/json_check.h"

static bool names_devices(const struct xpl_hlo_message *in) {
    struct xpl_hlo_message list;
    if (xpl_hlo_has(in, HLO_INSTR_REPLICA_GROUPS)) return true;
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_DEVICE_LIST), &list);
    if (xpl_hlo_has(&list, 1)) return true; // replica_groups
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_IOTA_GROUPS), &list);
    if (xpl_hlo_int(&list, 2) > 0) return true; // num_devices_per_group
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_MESH_GROUPS), &list);
    return xpl_hlo_has(&list, 2); // axes
}

// Global ids count devices of all partitions, so they need a channel, and groups: an empty list
// does not mean all devices.
static bool is_lost_collective(const struct xpl_hlo_message *in) {
    return xpl_hlo_bool(in, HLO_INSTR_GLOBAL_DEVICE_IDS) &&
           (xpl_hlo_int(in, HLO_INSTR_CHANNEL_ID) <= 0 || !names_devices(in));
}

// A configuration that is not a GpuBackendConfig of XProf's XLA: newer compilers' have more fields.
static bool is_lost_gemm(const struct xpl_hlo_message *in) {
    const xpl_str_t config = xpl_hlo_str(in, HLO_INSTR_BACKEND_CONFIG);
    return xpl_cost_is_gemm(xpl_hlo_str(in, HLO_INSTR_CUSTOM_CALL_TARGET)) && config.len &&
           !xpl_hlo_json_is(config, xpl_hlo_proto_gpu_config);
}

static bool is_lost(const struct hlo_instruction *i) {
    struct xpl_hlo_message in;
    const xpl_bytes_t bytes = {i->p, i->len};
    switch ((int)i->opcode) {
        case XPL_HLO_ALL_REDUCE:
        case XPL_HLO_ALL_REDUCE_START:
        case XPL_HLO_ALL_GATHER:
        case XPL_HLO_ALL_GATHER_START:
        case XPL_HLO_REDUCE_SCATTER:
            xpl_hlo_message_read(bytes, &in);
            return is_lost_collective(&in);
        case XPL_HLO_CUSTOM_CALL: xpl_hlo_message_read(bytes, &in); return is_lost_gemm(&in);
        default: return false;
    }
}

static bool find_lost(struct xpl_hlo_costs *c) {
    const struct xpl_hlo_module *const m = c->m;
    for (uint32_t i = 0; i < m->n_instructions && !xpl_cost_stopped(c); i++)
        if (is_lost(&m->instructions[i]) && xpl_cost_reaches(c, i)) return true;
    return false;
}

xpl_status_t xpl_hlo_costs_lost(struct xpl_hlo_costs *c, struct xpl_exec *exec, bool *ret,
                                struct xpl_error *err) {
    c->exec = exec;
    if (!c->lost_known) c->lost = find_lost(c);
    c->lost_known = true;
    if (c->no_memory) XPL_RETURN_OOM(err, "HLO costs");
    if (c->cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "conversion cancelled");
    *ret = c->lost;
    return XPL_OK;
}
