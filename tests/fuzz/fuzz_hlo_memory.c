// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an HloProto: the memory of the program is read or refused, in every memory
// space, and the values are within its tables. All answers of memory_viewer end, keep to their
// limit, and are the same twice.
#include <stdlib.h>
#include <string.h>

#include "analysis/hlo/memory/memory.h"
#include "tests/memory_viewer_fixture.h"

enum { LIMIT = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static bool is_expected(xpl_status_t st) {
    return st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED;
}

static void check_tables(const struct xpl_hlo_memory *m, struct xpl_arena *a) {
    for (uint32_t i = 0; i < m->n_buffers; i++) {
        const struct hlo_buffer *const b = &m->buffers[i];
        struct xpl_hlo_buffer_source s;
        if (b->allocation == UINT32_MAX) continue;
        require(b->allocation < m->n_allocations && b->size >= 0 && b->unpadded >= 0);
        require(!b->lives || (b->first <= b->last && b->last + 1 < m->n_steps));
        require(i >= 16 || xpl_hlo_buffer_source(m, b, a, &s) || a->reserved);
    }
    for (uint32_t i = 0; i < m->n_allocations; i++) {
        const struct hlo_allocation *const p = &m->allocations[i];
        require(i == 0 || m->allocations[i - 1].index < p->index);
        require(p->n <= m->n_assigned && p->first <= m->n_assigned - p->n);
        require(p->trace == UINT32_MAX || p->trace < m->n_traces);
    }
    for (uint32_t i = 0; i < m->n_held; i++)
        require(m->held[i] < m->n_buffers && m->buffers[m->held[i]].allocation != UINT32_MAX);
    for (uint32_t i = 0; i < m->n_steps; i++)
        require(m->heap[i] >= 0 && m->heap[i] <= m->peak);
}

static void check_answers(xpl_bytes_t proto, const char *space, const char *key,
                          const char *value) {
    const char *const options[] = {"memory_space", space, key, value, "other", "m(1)", NULL};
    struct xpl_buf a, b;
    const xpl_status_t x = ask_memory_viewer(proto, options, LIMIT, &a, NULL);
    const xpl_status_t y = ask_memory_viewer(proto, options, LIMIT, &b, NULL);
    require(is_expected(x) && x == y && a.n <= LIMIT);
    require(a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
    xpl_buf_fini(&a);
    xpl_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_bytes_t proto = {data, size};
    struct xpl_exec exec = xpl_exec_serial();
    for (int64_t color = 0; color < 2; color++) {
        struct xpl_hlo_memory *m;
        struct xpl_arena a = xpl_arena_of(64 << 20);
        const xpl_status_t st = xpl_hlo_memory_read(proto, color, &exec, &a, &m, NULL);
        require(is_expected(st));
        if (st == XPL_OK) check_tables(m, &a);
        xpl_arena_fini(&a);
        check_answers(proto, color ? "1" : "0", "view", "xprof");
    }
    check_answers(proto, "0", "view_memory_allocation_timeline", "true");
    check_answers(proto, "0", "view", "lines");
    check_answers(proto, "1", "view", "ops");
    return 0;
}
