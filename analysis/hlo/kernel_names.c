// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/kernel_names.h"

#include "analysis/hlo/opcodes.h"

static char in_kernel(char c) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '$';
    return stays ? c : '_';
}

// FNV-1a of a name as a kernel has it, seeded.
static uint64_t hash_name(xpl_str_t name) {
    uint64_t h = xpl_hash_seed() ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)in_kernel(name.ptr[i])) * UINT64_C(0x100000001b3);
    return h;
}

static bool is_kernel_of(xpl_str_t name, xpl_str_t kernel) {
    if (name.len != kernel.len) return false;
    for (size_t i = 0; i < name.len; i++)
        if (in_kernel(name.ptr[i]) != kernel.ptr[i]) return false;
    return true;
}

bool xpl_hlo_kernel_names_read(const struct xpl_hlo_module *m, struct xpl_arena *a,
                               struct xpl_hlo_kernel_names *ret) {
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        if (m->instructions[i].opcode != XPL_HLO_FUSION) continue;
        bool is_new;
        uint64_t *const at =
            xpl_map_put(a, &ret->by_hash, hash_name(m->instructions[i].name), 0, &is_new);
        if (!at) return false;
        *at = is_new ? (uint64_t)i + 1 : UINT64_MAX;
    }
    return true;
}

uint32_t xpl_hlo_kernel_names_find(const struct xpl_hlo_kernel_names *k,
                                   const struct xpl_hlo_module *m, xpl_str_t kernel) {
    const uint64_t *const at = xpl_map_get(&k->by_hash, hash_name(kernel), 0);
    if (!at || *at == UINT64_MAX) return UINT32_MAX;
    const uint32_t i = (uint32_t)(*at - 1);
    return is_kernel_of(m->instructions[i].name, kernel) ? i : UINT32_MAX;
}
