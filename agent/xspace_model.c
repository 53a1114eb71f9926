// SPDX-License-Identifier: Apache-2.0
#include "agent/xspace_model.h"

static const char *const STAT_NAMES[STATS] = {
    [STAT_DEVICE_ID] = "device_id",
    [STAT_CORRELATION_ID] = "correlation_id",
    [STAT_CONTEXT_ID] = "context_id",
    [STAT_GRAPH_ID] = "cuda_graph_id",
    [STAT_GRAPH_EXEC_ID] = "cuda_graph_exec_id",
    [STAT_GRAPH_NODE_ID] = "cuda_graph_node_id",
    [STAT_OCCUPANCY] = "theoretical_occupancy_pct",
    [STAT_OCCUPANCY_GRID] = "occupancy_min_grid_size",
    [STAT_OCCUPANCY_BLOCK] = "occupancy_suggested_block_size",
    [STAT_KERNEL_DETAILS] = "kernel_details",
    [STAT_MEMCPY_DETAILS] = "memcpy_details",
    [STAT_MEMSET_DETAILS] = "Memset_details",
    [STAT_VALUE] = "value",
    [STAT_ALLOCATOR] = "allocator_name",
    [STAT_ALLOCATED] = "bytes_allocated",
    [STAT_AVAILABLE] = "bytes_available",
    [STAT_RESERVED] = "bytes_reserved",
    [STAT_PEAK] = "peak_bytes_in_use",
    [STAT_REQUESTED] = "requested_bytes",
    [STAT_ALLOCATION] = "allocation_bytes",
    [STAT_ADDRESS] = "addr",
    [STAT_FRAGMENTATION] = "fragmentation",
    [STAT_VENDOR] = "device_vendor",
    [STAT_GPU_NAME] = "gpu_device_name",
    [STAT_CLOCK] = "clock_rate",
    [STAT_CORES] = "core_count",
    [STAT_BANDWIDTH] = "memory_bandwidth",
    [STAT_MEMORY_SIZE] = "memory_size",
    [STAT_MAJOR] = "compute_cap_major",
    [STAT_MINOR] = "compute_cap_minor",
};

uint32_t xpl_agent_plane(struct builder *b, xpl_str_t name) {
    xpl_strid_t id;
    if (!xpl_intern_put(b->in, name, &id)) return 0;
    for (size_t i = 0; i < b->planes.n; i++)
        if (b->planes.v[i].name.v == id.v) return (uint32_t)i + 1;
    struct plane *const p = xpl_vec_push(b->a, &b->planes);
    if (!p) return 0;
    *p = (struct plane){.name = id, .id = (int64_t)b->planes.n + 1000, .next_line = 1 << 30};
    return (uint32_t)b->planes.n;
}

uint32_t xpl_agent_event_name(struct builder *b, uint32_t plane, xpl_strid_t name) {
    struct plane *const p = &b->planes.v[plane];
    bool is_new;
    uint64_t *const slot = xpl_map_put(b->a, &p->event_ids, name.v, 0, &is_new);
    if (!slot) return 0;
    if (is_new) {
        xpl_strid_t *const e = xpl_vec_push(b->a, &p->events);
        if (!e) return 0;
        *e = name;
        *slot = p->events.n;
    }
    return (uint32_t)*slot;
}

uint32_t xpl_agent_stat_name(struct builder *b, uint32_t plane, xpl_str_t name) {
    struct plane *const p = &b->planes.v[plane];
    xpl_strid_t id;
    bool is_new;
    if (!xpl_intern_put(b->in, name, &id)) return 0;
    uint64_t *const slot = xpl_map_put(b->a, &p->stat_ids, id.v, 0, &is_new);
    if (!slot) return 0;
    if (is_new) {
        xpl_strid_t *const e = xpl_vec_push(b->a, &p->stats);
        if (!e) return 0;
        *e = id;
        *slot = p->stats.n;
    }
    return (uint32_t)*slot;
}

bool xpl_agent_use_stat(struct builder *b, uint32_t plane, enum stat s) {
    if (!b->planes.v[plane].fixed[s])
        b->planes.v[plane].fixed[s] = xpl_agent_stat_name(b, plane, xpl_str_from(STAT_NAMES[s]));
    return b->planes.v[plane].fixed[s] != 0;
}

// A line keeps its stream's number as its id when no other process has one of that number there.
uint32_t xpl_agent_line(struct builder *b, uint32_t plane, uint32_t process, uint32_t stream) {
    struct plane *const p = &b->planes.v[plane];
    bool is_new;
    uint64_t *const slot = xpl_map_put(b->a, &p->lines, process, stream, &is_new);
    if (!slot || !is_new) return slot ? (uint32_t)*slot : 0;
    struct line *const l = xpl_vec_push(b->a, &b->lines);
    if (!l) return 0;
    *slot = b->lines.n;
    *(p->last_line ? &b->lines.v[p->last_line - 1].next : &p->first_line) = (uint32_t)b->lines.n;
    p->last_line = (uint32_t)b->lines.n;
    int64_t id = stream;
    for (;; id = p->next_line++) {
        uint64_t *const used = xpl_map_put(b->a, &p->line_ids, (uint64_t)id, 0, &is_new);
        if (!used) return 0;
        if (is_new) break;
    }
    *l = (struct line){.id = id, .plane = plane, .process = process, .stream = stream};
    return (uint32_t)b->lines.n;
}

bool xpl_agent_use_stats(struct builder *b, uint32_t plane, uint32_t bits) {
    for (int s = 0; s < STATS; s++)
        if (bits & xpl_stat_bit((enum stat)s) && !xpl_agent_use_stat(b, plane, (enum stat)s))
            return false;
    return true;
}
