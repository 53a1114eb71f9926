// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/module/frames.h"

#include "analysis/hlo/fields.h"

static void read_numbers(xpl_bytes_t bytes, int32_t v[6]) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.type == XPL_WIRE_VARINT && f.num >= 1 && f.num <= 6) v[f.num - 1] = (int32_t)f.u;
}

xpl_status_t xpl_hlo_frames_read(xpl_bytes_t bytes, struct xpl_arena *a, struct xpl_hlo_module *m) {
    uint32_t n[5] = {0}, at[5] = {0};
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.type == XPL_WIRE_LEN && f.num <= HLO_FRAMES_FRAMES) n[f.num]++;
    if (res == XPL_WIRE_MALFORMED) return XPL_DATA_LOSS;
    m->files = xpl_arena_array(a, n[HLO_FRAMES_FILE_NAMES], sizeof *m->files);
    m->functions = xpl_arena_array(a, n[HLO_FRAMES_FUNCTION_NAMES], sizeof *m->functions);
    m->locations = xpl_arena_array(a, n[HLO_FRAMES_LOCATIONS], sizeof *m->locations);
    m->frames = xpl_arena_array(a, n[HLO_FRAMES_FRAMES], sizeof *m->frames);
    if (!m->files || !m->functions || !m->locations || !m->frames) return XPL_RESOURCE_EXHAUSTED;
    w = xpl_wire_begin(bytes);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN || f.num > HLO_FRAMES_FRAMES || at[f.num] == n[f.num]) continue;
        const uint32_t i = at[f.num]++;
        int32_t v[6] = {0};
        if (f.num >= HLO_FRAMES_LOCATIONS) read_numbers(f.len, v);
        if (f.num == HLO_FRAMES_FILE_NAMES) m->files[i] = xpl_wire_str(&f);
        if (f.num == HLO_FRAMES_FUNCTION_NAMES) m->functions[i] = xpl_wire_str(&f);
        if (f.num == HLO_FRAMES_LOCATIONS)
            m->locations[i] = (struct hlo_location){v[0], v[1], v[2], v[3], v[4], v[5]};
        if (f.num == HLO_FRAMES_FRAMES) m->frames[i] = (struct hlo_frame){v[0], v[1]};
    }
    m->n_files = at[HLO_FRAMES_FILE_NAMES], m->n_functions = at[HLO_FRAMES_FUNCTION_NAMES];
    m->n_locations = at[HLO_FRAMES_LOCATIONS], m->n_frames = at[HLO_FRAMES_FRAMES];
    return XPL_OK;
}
