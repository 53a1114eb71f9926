// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

#include "base/exec.h"
#include "base/vec.h"

static xpl_status_t number_nodes(struct graph *gr) {
    uint64_t n = 0;
    for (size_t i = 0; i < gr->n_scans; i++) {
        gr->scans[i].base = (uint32_t)n;
        n += gr->scans[i].nodes.n;
        if (n >= MAX_NODES) XPL_RETURN_OOM(gr->err, "event groups: nodes");
    }
    gr->g->n_nodes = (uint32_t)n;
    return XPL_OK;
}

static uint32_t *rebase(struct xpl_arena *a, const uint32_t *scopes, size_t n, uint32_t base) {
    uint32_t *const v = xpl_arena_array(a, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = scopes[i] ? scopes[i] + base : 0;
    return v;
}

// Copies a line's data from the scan's memory.
static bool merge_line(struct xpl_groups *g, const struct scan *s, struct line_groups *lg) {
    lg->first_node += s->base;
    if (lg->chunk_tops) {
        lg->chunk_tops = rebase(g->arena, lg->chunk_tops, lg->line->n_chunks, s->base);
        if (!lg->chunk_tops) return false;
    }
    if (lg->kind == LINE_EXPLICIT) {
        const struct explicit_region *const r = lg->regions;
        lg->explicit_scope = rebase(g->arena, lg->explicit_scope, lg->line->n_events, s->base);
        lg->regions = xpl_arena_array(g->arena, lg->n_regions, sizeof *lg->regions);
        if (!lg->explicit_scope || !lg->regions) return false;
        for (uint32_t i = 0; i < lg->n_regions; i++) {
            lg->regions[i] = r[i];
            if (r[i].scope) lg->regions[i].scope += s->base;
        }
    }
    if (lg->n_nodes) g->scanned[g->n_scanned++] = lg;
    return true;
}

// Makes room for all nodes, and for the data of lines.
static xpl_status_t merge_lines(struct graph *gr) {
    struct xpl_groups *const g = gr->g;
    size_t n_lines = 0;
    for (size_t i = 0; i < gr->n_scans; i++)
        n_lines += gr->scans[i].n_lines;
    g->nodes = xpl_arena_array(g->arena, g->n_nodes, sizeof *g->nodes);
    g->scanned = xpl_arena_array(g->arena, n_lines, sizeof(struct line_groups *));
    if (!g->nodes || !g->scanned) return xpl_grp_no_memory(gr);
    for (size_t i = 0; i < gr->n_scans; i++)
        for (uint32_t k = 0; k < gr->scans[i].n_lines; k++)
            if (!merge_line(g, &gr->scans[i], &gr->scans[i].lines[k])) return xpl_grp_no_memory(gr);
    return XPL_OK;
}

static void copy_nodes(struct graph *gr, struct scan *s) {
    struct node *const v = gr->g->nodes + s->base;
    xpl_grp_seg_copy(&s->nodes, v);
    for (size_t k = 0; k < s->nodes.n; k++) {
        if (v[k].parent) v[k].parent += s->base;
        s->flags |= v[k].flags;
    }
}

// ---- launches of kernels ----

// Of launches with the same id the last counts, in the order of the file.
static xpl_status_t size_launches(struct graph *gr) {
    struct xpl_groups *const g = gr->g;
    uint64_t least = UINT64_MAX, most = 0, n = 0;
    for (size_t i = 0; i < gr->n_scans; i++)
        for (struct seg *s = gr->scans[i].launches.first; s; s = s->next) {
            const struct launch *const l = seg_at(s);
            for (uint32_t k = 0; k < s->n; k++) {
                least = l[k].correlation < least ? l[k].correlation : least;
                most = l[k].correlation > most ? l[k].correlation : most;
            }
            n += s->n;
        }
    if (n == 0) return XPL_OK;
    if (most - least >= n * 8 + 1024) return XPL_OK;
    g->launch_min = least;
    g->n_launch_scopes = most - least + 1;
    g->launch_scopes = xpl_arena_zalloc(g->arena, g->n_launch_scopes * sizeof(uint32_t));
    return g->launch_scopes ? XPL_OK : xpl_grp_no_memory(gr);
}

static bool copy_launches(struct xpl_groups *g, const struct scan *scan) {
    for (struct seg *s = scan->launches.first; s; s = s->next) {
        const struct launch *const l = seg_at(s);
        for (uint32_t k = 0; k < s->n; k++) {
            const uint32_t scope = l[k].scope ? l[k].scope + scan->base : 0;
            if (g->launch_scopes) {
                g->launch_scopes[l[k].correlation - g->launch_min] = scope;
                continue;
            }
            uint64_t *const at = xpl_map_put(g->arena, &g->launches, l[k].correlation, 0, NULL);
            if (!at) return false;
            *at = scope;
        }
    }
    return true;
}

// ---- lists ----

static int id_cmp(const void *pa, const void *pb) {
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static xpl_status_t alloc_lists(struct graph *gr) {
    for (size_t i = 0; i < gr->n_scans; i++) {
        struct scan *const s = &gr->scans[i];
        s->producers_at = gr->n_producers, gr->n_producers += s->producers.n;
        s->consumers_at = gr->n_consumers, gr->n_consumers += s->consumers.n;
        s->executors_at = gr->n_executors, gr->n_executors += s->executors.n;
        s->roots_at = gr->n_roots, gr->n_roots += s->roots.n;
        s->pairs_at = gr->n_pairs, gr->n_pairs += s->pairs.n;
        s->ids_at = gr->n_tf_data_ids, gr->n_tf_data_ids += s->tf_data_ids.n;
    }
    // Producers go to the result: in the end they have the label that each key passes on.
    gr->producers = xpl_arena_array(gr->g->arena, gr->n_producers, sizeof *gr->producers);
    gr->consumers = xpl_arena_array(&gr->temp, gr->n_consumers, sizeof *gr->consumers);
    gr->executors = xpl_arena_array(&gr->temp, gr->n_executors, sizeof *gr->executors);
    gr->roots = xpl_arena_array(&gr->temp, gr->n_roots, sizeof *gr->roots);
    gr->pairs = xpl_arena_array(&gr->temp, gr->n_pairs, sizeof *gr->pairs);
    gr->tf_data_ids = xpl_arena_array(&gr->temp, gr->n_tf_data_ids, sizeof *gr->tf_data_ids);
    if (!gr->producers || !gr->consumers || !gr->executors || !gr->roots || !gr->pairs ||
        !gr->tf_data_ids)
        return xpl_grp_no_memory(gr);
    return XPL_OK;
}

static void copy_links(const struct seg_list *from, struct link *to, uint32_t add) {
    xpl_grp_seg_copy(from, to);
    for (size_t i = 0; i < from->n; i++)
        to[i].end += add;
}

// Copies one scan's results to their places, and releases its memory.
static void run_copy(void *ctx, size_t i) {
    struct graph *const gr = ctx;
    struct scan *const s = &gr->scans[i];
    struct root *const roots = gr->roots + s->roots_at;
    struct pair *const pairs = gr->pairs + s->pairs_at;
    copy_nodes(gr, s);
    xpl_arena_fini(&s->nodes_arena);
    copy_links(&s->producers, gr->producers + s->producers_at, s->base << LINK_NODE_SHIFT);
    copy_links(&s->consumers, gr->consumers + s->consumers_at, s->base << LINK_NODE_SHIFT);
    copy_links(&s->executors, gr->executors + s->executors_at, s->base);
    xpl_grp_seg_copy(&s->roots, roots);
    for (size_t k = 0; k < s->roots.n; k++)
        roots[k].node += s->base;
    xpl_grp_seg_copy(&s->pairs, pairs);
    for (size_t k = 0; k < s->pairs.n; k++)
        pairs[k].node += s->base;
    xpl_grp_seg_copy(&s->tf_data_ids, gr->tf_data_ids + s->ids_at);
    xpl_arena_fini(&s->links_arena);
}

static void run_sort(void *ctx, size_t i) {
    struct graph *const gr = ctx;
    if (i == 0) xpl_grp_sort_links(gr->producers, gr->n_producers);
    if (i == 1) xpl_grp_sort_links(gr->consumers, gr->n_consumers);
    if (i == 2) xpl_sort(gr->tf_data_ids, gr->n_tf_data_ids, sizeof *gr->tf_data_ids, id_cmp);
}

// The scans' memory goes one by one, so that things are held twice for a few of them at a time.
static xpl_status_t merge_lists(struct graph *gr) {
    XPL_TRY(size_launches(gr));
    XPL_TRY(alloc_lists(gr));
    for (size_t i = 0; i < gr->n_scans; i++) // in order: of equal ids the last counts
        if (!copy_launches(gr->g, &gr->scans[i])) return xpl_grp_no_memory(gr);
    xpl_exec_run(gr->g->exec, gr->n_scans, run_copy, gr);
    for (size_t i = 0; i < gr->n_scans; i++)
        gr->ctx_flags |= gr->scans[i].flags;
    xpl_exec_run(gr->g->exec, 3, run_sort, gr);
    return XPL_OK;
}

xpl_status_t xpl_grp_merge_scans(struct graph *gr) {
    XPL_TRY(number_nodes(gr));
    XPL_TRY(merge_lines(gr));
    return merge_lists(gr);
}
