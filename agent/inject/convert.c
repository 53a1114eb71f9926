// SPDX-License-Identifier: Apache-2.0
#include "agent/inject/inject.h"

static void put_kernel(struct out *o, const struct cu_kernel *k) {
    struct xpl_record_kernel r = {
        .start_ns = k->start,
        .end_ns = k->end,
        .device = k->device,
        .context = k->context,
        .stream = k->stream,
        .correlation = k->correlation,
        .registers = k->registers,
        .grid = {(uint32_t)k->grid[0], (uint32_t)k->grid[1], (uint32_t)k->grid[2]},
        .block = {(uint32_t)k->block[0], (uint32_t)k->block[1], (uint32_t)k->block[2]},
        .static_shared = (uint32_t)k->static_shared,
        .dynamic_shared = (uint32_t)k->dynamic_shared,
        .graph = k->graph,
        .graph_node = k->graph_node,
    };
    r.name = inject_out_name(o, k->name);
    inject_out_record(o, XPL_RECORD_KERNEL, &r, sizeof r, NULL, 0);
}

static void put_memcpy(struct out *o, const struct cu_memcpy *m) {
    struct xpl_record_memcpy r = {
        .start_ns = m->start,
        .end_ns = m->end,
        .bytes = m->bytes,
        .device = m->device,
        .context = m->context,
        .stream = m->stream,
        .correlation = m->correlation,
        .destination = m->device,
        .graph = m->graph,
        .graph_node = m->graph_node,
        .copy_kind = m->copy_kind,
        .source_kind = m->source_kind,
        .destination_kind = m->destination_kind,
        .async = m->flags & 1,
    };
    inject_out_record(o, XPL_RECORD_MEMCPY, &r, sizeof r, NULL, 0);
}

static void put_memcpy_peer(struct out *o, const struct cu_memcpy_peer *m) {
    struct xpl_record_memcpy r = {
        .start_ns = m->start,
        .end_ns = m->end,
        .bytes = m->bytes,
        .device = m->source_device,
        .context = m->context,
        .stream = m->stream,
        .correlation = m->correlation,
        .destination = m->destination_device,
        .graph = m->graph,
        .graph_node = m->graph_node,
        .copy_kind = 10, // peer to peer
        .source_kind = m->source_kind,
        .destination_kind = m->destination_kind,
        .async = m->flags & 1,
    };
    inject_out_record(o, XPL_RECORD_MEMCPY, &r, sizeof r, NULL, 0);
}

static void put_memset(struct out *o, const struct cu_memset *m) {
    struct xpl_record_memset r = {
        .start_ns = m->start,
        .end_ns = m->end,
        .bytes = m->bytes,
        .device = m->device,
        .context = m->context,
        .stream = m->stream,
        .correlation = m->correlation,
        .graph = m->graph,
        .memory_kind = m->memory_kind,
        .async = m->flags & 1,
        .graph_node = m->graph_node,
    };
    inject_out_record(o, XPL_RECORD_MEMSET, &r, sizeof r, NULL, 0);
}

// Queries CUPTI once for each function, not for each call.
static uint32_t api_name(struct out *o, const struct cu_functions *cu, uint16_t domain,
                         uint32_t callback) {
    uint32_t *const known = callback < API_NAMES ? &o->api_names[domain - 1][callback] : NULL;
    if (known && *known) return *known;
    const char *name = NULL;
    if (cu->cuptiGetCallbackName(domain, callback, &name) != CU_OK) return 0;
    const uint32_t id = inject_out_name(o, name);
    if (known) *known = id;
    return id;
}

static void put_api(struct out *o, const struct cu_functions *cu, const struct cu_api *a) {
    const uint16_t domain = a->kind == CU_DRIVER ? CU_DOMAIN_DRIVER : CU_DOMAIN_RUNTIME;
    struct xpl_record_api r = {
        .start_ns = a->start,
        .end_ns = a->end,
        .thread = a->thread,
        .correlation = a->correlation,
        .domain = domain,
        .name = api_name(o, cu, domain, a->callback),
    };
    inject_out_record(o, XPL_RECORD_API, &r, sizeof r, NULL, 0);
}

static void put_sync(struct out *o, const struct cu_sync *s) {
    struct xpl_record_sync r = {
        .start_ns = s->start,
        .end_ns = s->end,
        .type = s->type,
        .correlation = s->correlation,
        .context = s->context,
        .stream = s->stream,
    };
    inject_out_record(o, XPL_RECORD_SYNC, &r, sizeof r, NULL, 0);
}

static void put_graph(struct out *o, const struct cu_graph *g) {
    struct xpl_record_graph r = {
        .start_ns = g->start,
        .end_ns = g->end,
        .device = g->device,
        .context = g->context,
        .stream = g->stream,
        .correlation = g->correlation,
        .graph = g->graph,
    };
    inject_out_record(o, XPL_RECORD_GRAPH, &r, sizeof r, NULL, 0);
}

static void put_unified(struct out *o, const struct cu_unified *u) {
    struct xpl_record_unified r = {
        .start_ns = u->start,
        .end_ns = u->end,
        .value = u->value,
        .address = u->address,
        .counter = u->counter,
        .source = u->source,
        .destination = u->destination,
        .flags = u->flags,
    };
    inject_out_record(o, XPL_RECORD_UNIFIED, &r, sizeof r, NULL, 0);
}

static void put_marker(struct out *o, const struct cu_marker *m) {
    struct xpl_record_marker r = {
        .time_ns = m->time,
        .id = m->id,
        .flags = m->flags,
        .object_kind = m->object_kind,
        .thread = m->object.b,
    };
    r.name = inject_out_name(o, m->name);
    r.domain = inject_out_name(o, m->domain);
    inject_out_record(o, XPL_RECORD_MARKER, &r, sizeof r, NULL, 0);
}

static void put_memory(struct out *o, const struct cu_memory *m) {
    struct xpl_record_memory r = {
        .time_ns = m->time,
        .address = m->address,
        .bytes = m->bytes,
        .operation = m->operation,
        .memory_kind = m->memory_kind,
        .device = m->device,
        .context = m->context,
        .stream = m->stream,
        .correlation = m->correlation,
    };
    inject_out_record(o, XPL_RECORD_MEMORY, &r, sizeof r, NULL, 0);
}

// The object is a thread (a process has one too), or a device and perhaps a stream of it.
static void put_overhead(struct out *o, const struct cu_overhead *h) {
    const bool thread = h->object_kind == 1 || h->object_kind == 2;
    struct xpl_record_overhead r = {
        .start_ns = h->start,
        .end_ns = h->end,
        .overhead = h->overhead,
        .object_kind = h->object_kind,
        .thread = thread ? h->object.b : 0,
        .device = thread ? 0 : h->object.a,
        .stream = thread ? 0 : h->object.c,
    };
    inject_out_record(o, XPL_RECORD_OVERHEAD, &r, sizeof r, NULL, 0);
}

void inject_convert_record(struct out *o, const struct cu_functions *cu, const void *record) {
    switch (*(const uint32_t *)record) {
        case CU_KERNEL:
        case CU_CONCURRENT_KERNEL: put_kernel(o, record); break;
        case CU_MEMCPY: put_memcpy(o, record); break;
        case CU_MEMCPY2: put_memcpy_peer(o, record); break;
        case CU_MEMSET: put_memset(o, record); break;
        case CU_DRIVER:
        case CU_RUNTIME: put_api(o, cu, record); break;
        case CU_SYNC: put_sync(o, record); break;
        case CU_GRAPH_TRACE: put_graph(o, record); break;
        case CU_UNIFIED: put_unified(o, record); break;
        case CU_MARKER: put_marker(o, record); break;
        case CU_MEMORY2: put_memory(o, record); break;
        case CU_OVERHEAD: put_overhead(o, record); break;
        default: break; // requested by another subscriber
    }
}
