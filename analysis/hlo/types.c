// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/types.h"

static const struct xpl_hlo_type_info types[HLO_N_TYPES] = {
    [HLO_TYPE_PRED] = {{"pred", 4}, 8, HLO_KIND_PRED},
    [HLO_TYPE_S8] = {{"s8", 2}, 8, HLO_KIND_SIGNED},
    [HLO_TYPE_S16] = {{"s16", 3}, 16, HLO_KIND_SIGNED},
    [HLO_TYPE_S32] = {{"s32", 3}, 32, HLO_KIND_SIGNED},
    [HLO_TYPE_S64] = {{"s64", 3}, 64, HLO_KIND_SIGNED},
    [HLO_TYPE_U8] = {{"u8", 2}, 8, HLO_KIND_UNSIGNED},
    [HLO_TYPE_U16] = {{"u16", 3}, 16, HLO_KIND_UNSIGNED},
    [HLO_TYPE_U32] = {{"u32", 3}, 32, HLO_KIND_UNSIGNED},
    [HLO_TYPE_U64] = {{"u64", 3}, 64, HLO_KIND_UNSIGNED},
    [HLO_TYPE_F16] = {{"f16", 3}, 16, HLO_KIND_FLOAT},
    [HLO_TYPE_F32] = {{"f32", 3}, 32, HLO_KIND_FLOAT},
    [HLO_TYPE_F64] = {{"f64", 3}, 64, HLO_KIND_FLOAT},
    [HLO_TYPE_TUPLE] = {{"tuple", 5}, 0, HLO_KIND_OTHER},
    [HLO_TYPE_OPAQUE] = {{"opaque", 6}, 0, HLO_KIND_OTHER},
    [HLO_TYPE_C64] = {{"c64", 3}, 64, HLO_KIND_COMPLEX},
    [HLO_TYPE_BF16] = {{"bf16", 4}, 16, HLO_KIND_FLOAT},
    [HLO_TYPE_TOKEN] = {{"token", 5}, 0, HLO_KIND_OTHER},
    [HLO_TYPE_C128] = {{"c128", 4}, 128, HLO_KIND_COMPLEX},
    [HLO_TYPE_F8E5M2] = {{"f8e5m2", 6}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_F8E4M3FN] = {{"f8e4m3fn", 8}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_S4] = {{"s4", 2}, 4, HLO_KIND_SIGNED},
    [HLO_TYPE_U4] = {{"u4", 2}, 4, HLO_KIND_UNSIGNED},
    [HLO_TYPE_F8E4M3B11FNUZ] = {{"f8e4m3b11fnuz", 13}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_F8E5M2FNUZ] = {{"f8e5m2fnuz", 10}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_F8E4M3FNUZ] = {{"f8e4m3fnuz", 10}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_S2] = {{"s2", 2}, 2, HLO_KIND_SIGNED},
    [HLO_TYPE_U2] = {{"u2", 2}, 2, HLO_KIND_UNSIGNED},
    [HLO_TYPE_F8E4M3] = {{"f8e4m3", 6}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_F8E3M4] = {{"f8e3m4", 6}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_S1] = {{"s1", 2}, 1, HLO_KIND_SIGNED},
    [HLO_TYPE_U1] = {{"u1", 2}, 1, HLO_KIND_UNSIGNED},
    [HLO_TYPE_F4E2M1FN] = {{"f4e2m1fn", 8}, 4, HLO_KIND_FLOAT},
    [HLO_TYPE_F8E8M0FNU] = {{"f8e8m0fnu", 9}, 8, HLO_KIND_FLOAT},
    [HLO_TYPE_BUFFER] = {{"buffer", 6}, 0, HLO_KIND_OTHER},
    [HLO_TYPE_F6E3M2FN] = {{"f6e3m2fn", 8}, 6, HLO_KIND_FLOAT},
    [HLO_TYPE_F6E2M3FN] = {{"f6e2m3fn", 8}, 6, HLO_KIND_FLOAT},
};

const struct xpl_hlo_type_info *xpl_hlo_type_info(uint64_t primitive_type) {
    static const struct xpl_hlo_type_info none = {{"", 0}, 0, HLO_KIND_OTHER};
    return primitive_type < HLO_N_TYPES && types[primitive_type].name.len ? &types[primitive_type]
                                                                          : &none;
}

bool xpl_hlo_is_type_name(xpl_str_t s) {
    if (s.len == 0 || !strchr("psufbcot", s.ptr[0])) return false; // as for most names
    for (unsigned i = 0; i < HLO_N_TYPES; i++)
        if (i != HLO_TYPE_TUPLE && types[i].name.len && xpl_str_eq(s, types[i].name)) return true;
    return false;
}
