// SPDX-License-Identifier: Apache-2.0
// The longest kernels of all hosts.

#include "analysis/opstats/combine/merge.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { MAX_KERNEL_REPORTS = 1000 }; // the longest are kept

static int cmp_u32(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int cmp_kernel(const struct xpl_kernel_report *a, const struct xpl_kernel_report *b) {
    if (a->total_duration_ns != b->total_duration_ns)
        return a->total_duration_ns > b->total_duration_ns ? -1 : 1;
    int c = xpl_str_cmp(a->name, b->name);
    for (int i = 0; !c && i < 3; i++)
        c = cmp_u32(a->grid_dim[i], b->grid_dim[i]);
    for (int i = 0; !c && i < 3; i++)
        c = cmp_u32(a->block_dim[i], b->block_dim[i]);
    if (!c) c = cmp_u32(a->registers_per_thread, b->registers_per_thread);
    if (!c) c = cmp_u32(a->static_shmem_bytes, b->static_shmem_bytes);
    if (!c) c = cmp_u32(a->dynamic_shmem_bytes, b->dynamic_shmem_bytes);
    if (!c) c = cmp_u32(a->is_kernel_using_tensor_core, b->is_kernel_using_tensor_core);
    if (!c) c = cmp_u32(a->is_op_tensor_core_eligible, b->is_op_tensor_core_eligible);
    return c ? c : xpl_str_cmp(a->op_name, b->op_name);
}

struct candidate {
    const struct xpl_kernel_report *report;
    size_t at; // among all: earlier hosts, and of one host earlier reports, come first
    bool kept; // its texts are the result's
};

static int by_duration(const void *pa, const void *pb) {
    const struct candidate *const a = pa, *const b = pb;
    const int c = cmp_kernel(a->report, b->report);
    return c ? c : (a->at > b->at) - (a->at < b->at);
}

// Those kept so far, and those of `s` that come before the last of them.
static size_t list_candidates(const struct xpl_merge *m, const struct xpl_opstats *s,
                              struct candidate *v) {
    const struct xpl_kernel_report *const kept = m->out->kernel_reports.v;
    const size_t n_kept = m->out->kernel_reports.n;
    size_t n = 0;
    for (size_t i = 0; i < n_kept; i++, n++)
        v[n] = (struct candidate){&kept[i], n, true};
    for (size_t i = 0; i < s->kernel_reports.n; i++) {
        const struct xpl_kernel_report *const r = &s->kernel_reports.v[i];
        if (n_kept == MAX_KERNEL_REPORTS && cmp_kernel(r, &kept[n_kept - 1]) >= 0) continue;
        v[n] = (struct candidate){r, n, false};
        n++;
    }
    return n;
}

bool xpl_merge_kernels_add(struct xpl_merge *m, const struct xpl_opstats *s) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(m->scratch->limit);
    const size_t n_kept = m->out->kernel_reports.n;
    if (!s->kernel_reports.n) return true;
    struct candidate *const v = xpl_arena_array(&scratch, n_kept + s->kernel_reports.n, sizeof *v);
    struct xpl_kernel_report *const longest =
        xpl_arena_array(&scratch, MAX_KERNEL_REPORTS, sizeof *longest);
    if (!v || !longest) return false;
    size_t n = list_candidates(m, s, v);
    if (n == n_kept) return true;
    xpl_sort(v, n, sizeof *v, by_duration);
    if (n > MAX_KERNEL_REPORTS) n = MAX_KERNEL_REPORTS;
    for (size_t i = 0; i < n; i++) {
        longest[i] = *v[i].report;
        if (!v[i].kept &&
            (!xpl_merge_text(m, &longest[i].name) || !xpl_merge_text(m, &longest[i].op_name)))
            return false;
    }
    m->out->kernel_reports.n = 0;
    if (!xpl_vec_reserve(m->result, &m->out->kernel_reports, n)) return false;
    for (size_t i = 0; i < n; i++)
        m->out->kernel_reports.v[m->out->kernel_reports.n++] = longest[i];
    return true;
}
