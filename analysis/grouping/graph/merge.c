#include "analysis/grouping/graph/merge.h"

#include "analysis/grouping/graph/link_sort.h"
#include "analysis/grouping/plan/sort.h"
#include "base/exec.h"

static xpl_status_t number_nodes(struct forest *f) {
    uint64_t n = 0;
    for (size_t i = 0; i < f->n_scans; i++) {
        f->scans[i].base = (uint32_t)n;
        n += f->scans[i].nodes.n;
        if (n >= MAX_NODES) XPL_RETURN_OOM(f->err, "event groups: nodes");
    }
    f->g->n_nodes = (uint32_t)n;
    return XPL_OK;
}

static uint32_t *rebase(struct xpl_arena *a, const uint32_t *scopes, size_t n, uint32_t base) {
    uint32_t *const v = xpl_arena_array(a, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = scopes[i] ? scopes[i] + base : 0;
    return v;
}

// Brings what a line holds over from the scan's memory.
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

// Room for all nodes, and what lines hold.
static xpl_status_t merge_lines(struct forest *f) {
    struct xpl_groups *const g = f->g;
    size_t n_lines = 0;
    for (size_t i = 0; i < f->n_scans; i++)
        n_lines += f->scans[i].n_lines;
    g->nodes = xpl_arena_array(g->arena, g->n_nodes, sizeof *g->nodes);
    g->scanned = xpl_arena_array(g->arena, n_lines, sizeof(struct line_groups *));
    if (!g->nodes || !g->scanned) return xpl_grp_no_memory(f);
    for (size_t i = 0; i < f->n_scans; i++)
        for (uint32_t k = 0; k < f->scans[i].n_lines; k++)
            if (!merge_line(g, &f->scans[i], &f->scans[i].lines[k])) return xpl_grp_no_memory(f);
    return XPL_OK;
}

static void take_nodes(struct forest *f, struct scan *s) {
    struct node *const v = f->g->nodes + s->base;
    xpl_grp_seg_copy(&s->nodes, v);
    for (size_t k = 0; k < s->nodes.n; k++) {
        if (v[k].parent) v[k].parent += s->base;
        s->flags |= v[k].flags;
    }
}

// ---- launches of kernels ----

// Of launches with the same id the last counts, in the order of the file.
static xpl_status_t size_launches(struct forest *f) {
    struct xpl_groups *const g = f->g;
    uint64_t least = UINT64_MAX, most = 0, n = 0;
    for (size_t i = 0; i < f->n_scans; i++)
        for (struct seg *s = f->scans[i].launches.first; s; s = s->next) {
            const struct launch *const l = seg_at(s);
            for (uint32_t k = 0; k < s->n; k++) {
                least = l[k].correlation < least ? l[k].correlation : least;
                most = l[k].correlation > most ? l[k].correlation : most;
            }
            n += s->n;
        }
    if (n == 0) return XPL_OK;
    if (most - least < n * 8 + 1024) {
        g->launch_min = least;
        g->n_launch_scopes = most - least + 1;
        g->launch_scopes = xpl_arena_zalloc(g->arena, g->n_launch_scopes * sizeof(uint32_t));
        return g->launch_scopes ? XPL_OK : xpl_grp_no_memory(f);
    }
    for (g->n_launch_scopes = 16; g->n_launch_scopes < n * 2; g->n_launch_scopes *= 2)
        continue;
    g->launch_table = xpl_arena_array(g->arena, g->n_launch_scopes, sizeof *g->launch_table);
    if (!g->launch_table) return xpl_grp_no_memory(f);
    for (uint64_t i = 0; i < g->n_launch_scopes; i++)
        g->launch_table[i] = (struct launch){0, UINT32_MAX};
    return XPL_OK;
}

static void take_launches(struct xpl_groups *g, const struct scan *scan) {
    for (struct seg *s = scan->launches.first; s; s = s->next) {
        const struct launch *const l = seg_at(s);
        for (uint32_t k = 0; k < s->n; k++) {
            const uint32_t scope = l[k].scope ? l[k].scope + scan->base : 0;
            if (g->launch_scopes)
                g->launch_scopes[l[k].correlation - g->launch_min] = scope;
            else
                *xpl_grp_launch_slot(g, l[k].correlation) =
                    (struct launch){l[k].correlation, scope};
        }
    }
}

// ---- lists ----

static int id_cmp(const void *pa, const void *pb) {
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static xpl_status_t alloc_lists(struct forest *f) {
    for (size_t i = 0; i < f->n_scans; i++) {
        struct scan *const s = &f->scans[i];
        s->producers_at = f->n_producers, f->n_producers += s->producers.n;
        s->consumers_at = f->n_consumers, f->n_consumers += s->consumers.n;
        s->executors_at = f->n_executors, f->n_executors += s->executors.n;
        s->roots_at = f->n_roots, f->n_roots += s->roots.n;
        s->pairs_at = f->n_pairs, f->n_pairs += s->pairs.n;
        s->ids_at = f->n_tf_data_ids, f->n_tf_data_ids += s->tf_data_ids.n;
    }
    // Producers go to the result: in the end they say what each key passes on.
    f->producers = xpl_arena_array(f->g->arena, f->n_producers, sizeof *f->producers);
    f->consumers = xpl_arena_array(&f->temp, f->n_consumers, sizeof *f->consumers);
    f->executors = xpl_arena_array(&f->temp, f->n_executors, sizeof *f->executors);
    f->roots = xpl_arena_array(&f->temp, f->n_roots, sizeof *f->roots);
    f->pairs = xpl_arena_array(&f->temp, f->n_pairs, sizeof *f->pairs);
    f->tf_data_ids = xpl_arena_array(&f->temp, f->n_tf_data_ids, sizeof *f->tf_data_ids);
    if (!f->producers || !f->consumers || !f->executors || !f->roots || !f->pairs ||
        !f->tf_data_ids)
        return xpl_grp_no_memory(f);
    return XPL_OK;
}

static void take_links(const struct seg_list *from, struct link *to, uint32_t add) {
    xpl_grp_seg_copy(from, to);
    for (size_t i = 0; i < from->n; i++)
        to[i].end += add;
}

// Copies what one scan found to its places, and gives its memory back.
static void run_take(void *ctx, size_t i) {
    struct forest *const f = ctx;
    struct scan *const s = &f->scans[i];
    struct root *const roots = f->roots + s->roots_at;
    struct pair *const pairs = f->pairs + s->pairs_at;
    take_nodes(f, s);
    xpl_arena_fini(&s->nodes_arena);
    take_links(&s->producers, f->producers + s->producers_at, s->base << LINK_NODE_SHIFT);
    take_links(&s->consumers, f->consumers + s->consumers_at, s->base << LINK_NODE_SHIFT);
    take_links(&s->executors, f->executors + s->executors_at, s->base);
    xpl_grp_seg_copy(&s->roots, roots);
    for (size_t k = 0; k < s->roots.n; k++)
        roots[k].node += s->base;
    xpl_grp_seg_copy(&s->pairs, pairs);
    for (size_t k = 0; k < s->pairs.n; k++)
        pairs[k].node += s->base;
    xpl_grp_seg_copy(&s->tf_data_ids, f->tf_data_ids + s->ids_at);
    xpl_arena_fini(&s->links_arena);
}

static void run_sort(void *ctx, size_t i) {
    struct forest *const f = ctx;
    if (i == 0) xpl_grp_sort_links(f->producers, f->n_producers);
    if (i == 1) xpl_grp_sort_links(f->consumers, f->n_consumers);
    if (i == 2) xpl_grp_sort(f->tf_data_ids, f->n_tf_data_ids, sizeof *f->tf_data_ids, id_cmp);
}

// The scans' memory goes one by one, so that things are held twice for a few of them at a time.
static xpl_status_t merge_lists(struct forest *f) {
    XPL_TRY(size_launches(f));
    XPL_TRY(alloc_lists(f));
    for (size_t i = 0; i < f->n_scans; i++) // in order: of equal ids the last counts
        take_launches(f->g, &f->scans[i]);
    xpl_exec_run(f->g->exec, f->n_scans, run_take, f);
    for (size_t i = 0; i < f->n_scans; i++)
        f->ctx_flags |= f->scans[i].flags;
    xpl_exec_run(f->g->exec, 3, run_sort, f);
    return XPL_OK;
}

xpl_status_t xpl_grp_merge_scans(struct forest *f) {
    XPL_TRY(number_nodes(f));
    XPL_TRY(merge_lines(f));
    return merge_lists(f);
}
