// Merges what the scans found into one graph of nodes and hubs.
// Counterpart of EventForest::ConnectEvents in xla/tsl/profiler/utils/group_events.cc.
#include <stdatomic.h>
#include <string.h>

#include "analysis/xplane/groups_impl.h"
#include "base/map.h"

// A hub with that many producers and that many consumers links nothing [ConnectContextGroups].
enum { HUB_LIMIT = 64 };

static xpl_status_t no_memory(struct forest *f) {
    XPL_FAIL_OOM(f->err, "event groups");
}

// ---- sorting links by key ----

static bool link_less(const struct link *a, const struct link *b) {
    const uint64_t ka = link_key(a), kb = link_key(b);
    return ka != kb ? ka < kb : a->node < b->node;
}

static void insertion_sort(struct link *v, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const struct link x = v[i];
        size_t k = i;
        for (; k > 0 && link_less(&x, &v[k - 1]); k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

// Radix of a link at depth 0..11: the bytes of the key, then those of the node.
static unsigned digit(const struct link *l, unsigned depth) {
    const uint32_t w = depth < 4 ? l->key_hi : depth < 8 ? l->key_lo : l->node;
    return w >> (24 - 8 * (depth & 3)) & 0xff;
}

// In place, most significant byte first; at most 12 levels deep.
static void sort_links(struct link *v, size_t n, unsigned depth) {
    if (n < 48 || depth == 12) {
        insertion_sort(v, depth == 12 ? 0 : n);
        return;
    }
    size_t head[256] = {0}, tail[256];
    for (size_t i = 0; i < n; i++)
        head[digit(&v[i], depth)]++;
    for (size_t d = 0, sum = 0; d < 256; d++) {
        const size_t count = head[d];
        head[d] = sum;
        tail[d] = sum += count;
    }
    for (unsigned d = 0; d < 256; d++)
        while (head[d] < tail[d]) {
            struct link x = v[head[d]];
            for (unsigned to; (to = digit(&x, depth)) != d;) {
                const struct link y = v[head[to]];
                v[head[to]++] = x;
                x = y;
            }
            v[head[d]++] = x;
        }
    for (size_t d = 0, begin = 0; d < 256; begin = tail[d++])
        if (tail[d] - begin > 1) sort_links(v + begin, tail[d] - begin, depth + 1);
}

// ---- merging ----

static xpl_status_t number_nodes(struct forest *f) {
    uint64_t n = 0;
    for (size_t i = 0; i < f->n_scans; i++) {
        f->scans[i].base = (uint32_t)n;
        n += f->scans[i].nodes.n;
        if (n >= MAX_NODES) XPL_FAIL_OOM(f->err, "event groups: nodes");
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

static xpl_status_t merge_nodes(struct forest *f) {
    struct xpl_groups *const g = f->g;
    size_t n_lines = 0;
    for (size_t i = 0; i < f->n_scans; i++)
        n_lines += f->scans[i].n_lines;
    g->nodes = xpl_arena_array(g->arena, g->n_nodes, sizeof *g->nodes);
    g->scanned = xpl_arena_array(g->arena, n_lines, sizeof(struct line_groups *));
    if (!g->nodes || !g->scanned) return no_memory(f);
    for (size_t i = 0; i < f->n_scans; i++) {
        struct scan *const s = &f->scans[i];
        struct node *const v = g->nodes + s->base;
        xpl_grp_seg_copy(&s->nodes, v);
        for (size_t k = 0; k < s->nodes.n; k++) {
            if (v[k].parent) v[k].parent += s->base;
            f->ctx_flags |= v[k].flags;
        }
        for (uint32_t k = 0; k < s->n_lines; k++)
            if (!merge_line(g, s, &s->lines[k])) return no_memory(f);
        xpl_arena_fini(&s->nodes_arena);
    }
    return XPL_OK;
}

const struct line_groups *xpl_grp_find_line(const struct plane_groups *pg,
                                            const struct xpl_line *line) {
    uint32_t lo = 0, hi = pg->n_lines;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (pg->lines[mid].line == line) return &pg->lines[mid];
        if (pg->lines[mid].line->index < line->index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const struct line_groups *xpl_grp_line_of(const struct xpl_groups *g, uint32_t node) {
    uint32_t lo = 0, hi = g->n_scanned;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (g->scanned[mid]->first_node <= node)
            lo = mid;
        else
            hi = mid;
    }
    return g->scanned[lo];
}

bool xpl_grp_node_event(const struct xpl_groups *g, uint32_t node, const struct line_groups **lg,
                        struct xpl_raw_event *ret) {
    const struct node *const n = &g->nodes[node];
    *lg = xpl_grp_line_of(g, node);
    return xpl_raw_event_at((*lg)->line, node_at(n), ret);
}

bool xpl_grp_node_stat(const struct xpl_groups *g, uint32_t node, enum xpl_stat_type type,
                       struct xpl_stat *ret) {
    const struct line_groups *lg;
    struct xpl_raw_event raw;
    if (!xpl_grp_node_event(g, node, &lg, &raw)) return false;
    return xpl_stats_get((struct xpl_stats){lg->line->plane, raw.stats, raw.end, XEVENT_STATS},
                         type, ret);
}

// ---- launches of kernels ----

static struct launch *launch_slot(const struct xpl_groups *g, uint64_t correlation) {
    uint64_t i = xpl_grp_key(0, false, 0, correlation) & (g->n_launch_scopes - 1);
    while (g->launch_table[i].scope != UINT32_MAX && g->launch_table[i].correlation != correlation)
        i = (i + 1) & (g->n_launch_scopes - 1);
    return &g->launch_table[i];
}

uint32_t xpl_grp_launch_scope(const struct xpl_groups *g, uint64_t correlation) {
    if (g->launch_scopes) {
        const uint64_t i = correlation - g->launch_min;
        return i < g->n_launch_scopes ? g->launch_scopes[i] : 0;
    }
    if (!g->launch_table) return 0;
    const struct launch *const l = launch_slot(g, correlation);
    return l->scope == UINT32_MAX ? 0 : l->scope;
}

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
        return g->launch_scopes ? XPL_OK : no_memory(f);
    }
    for (g->n_launch_scopes = 16; g->n_launch_scopes < n * 2; g->n_launch_scopes *= 2)
        continue;
    g->launch_table = xpl_arena_array(g->arena, g->n_launch_scopes, sizeof *g->launch_table);
    if (!g->launch_table) return no_memory(f);
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
                *launch_slot(g, l[k].correlation) = (struct launch){l[k].correlation, scope};
        }
    }
}

// ---- merging of lists ----

static int id_cmp(const void *pa, const void *pb) {
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static xpl_status_t alloc_lists(struct forest *f) {
    size_t producers = 0, consumers = 0, roots = 0, pairs = 0, ids = 0;
    for (size_t i = 0; i < f->n_scans; i++) {
        const struct scan *const s = &f->scans[i];
        producers += s->producers.n;
        consumers += s->consumers.n;
        roots += s->roots.n;
        pairs += s->pairs.n;
        ids += s->tf_data_ids.n;
    }
    // Producers go to the result: in the end they say what each key passes on.
    f->producers = xpl_arena_array(f->g->arena, producers, sizeof *f->producers);
    f->consumers = xpl_arena_array(&f->temp, consumers, sizeof *f->consumers);
    f->roots = xpl_arena_array(&f->temp, roots, sizeof *f->roots);
    f->pairs = xpl_arena_array(&f->temp, pairs, sizeof *f->pairs);
    f->tf_data_ids = xpl_arena_array(&f->temp, ids, sizeof *f->tf_data_ids);
    if (!f->producers || !f->consumers || !f->roots || !f->pairs || !f->tf_data_ids)
        return no_memory(f);
    return XPL_OK;
}

// Copies the lists of one scan behind those of the scans before it.
static void take_lists(struct forest *f, const struct scan *s) {
    xpl_grp_seg_copy(&s->producers, f->producers + f->n_producers);
    for (size_t k = 0; k < s->producers.n; k++)
        f->producers[f->n_producers++].node += s->base;
    xpl_grp_seg_copy(&s->consumers, f->consumers + f->n_consumers);
    for (size_t k = 0; k < s->consumers.n; k++)
        f->consumers[f->n_consumers++].node += s->base;
    xpl_grp_seg_copy(&s->roots, f->roots + f->n_roots);
    for (size_t k = 0; k < s->roots.n; k++)
        f->roots[f->n_roots++].node += s->base;
    xpl_grp_seg_copy(&s->pairs, f->pairs + f->n_pairs);
    for (size_t k = 0; k < s->pairs.n; k++)
        f->pairs[f->n_pairs++].node += s->base;
    xpl_grp_seg_copy(&s->tf_data_ids, f->tf_data_ids + f->n_tf_data_ids);
    f->n_tf_data_ids += s->tf_data_ids.n;
}

// The scans' memory goes one by one, so that things are held twice for one of them at a time.
static xpl_status_t merge_lists(struct forest *f) {
    XPL_TRY(size_launches(f));
    XPL_TRY(alloc_lists(f));
    for (size_t i = 0; i < f->n_scans; i++) {
        take_launches(f->g, &f->scans[i]);
        take_lists(f, &f->scans[i]);
        xpl_arena_fini(&f->scans[i].links_arena);
    }
    sort_links(f->producers, f->n_producers, 0);
    sort_links(f->consumers, f->n_consumers, 0);
    if (f->n_tf_data_ids)
        xpl_grp_sort(f->tf_data_ids, f->n_tf_data_ids, sizeof *f->tf_data_ids, id_cmp);
    return XPL_OK;
}

// ---- links that are no producers and consumers ----

struct extra_links {
    XPL_VEC(struct link) v;
};

static bool add_edge(struct forest *f, struct extra_links *x, uint64_t hub, uint32_t parent,
                     uint32_t child) {
    struct link *l = xpl_vec_push(&f->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)hub, (uint32_t)(hub >> 32), parent};
    l = xpl_vec_push(&f->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)hub, (uint32_t)(hub >> 32), LINK_CONSUMER | child};
    return true;
}

// An executor event's step and iteration.
static bool executor_ids(const struct xpl_groups *g, uint32_t node, struct xpl_stat *step,
                         struct xpl_stat *iter) {
    return (g->nodes[node].flags & NODE_EXECUTOR) &&
           xpl_grp_node_stat(g, node, XPL_STAT_STEP_ID, step) &&
           xpl_grp_node_stat(g, node, XPL_STAT_ITER_NUM, iter);
}

// Launch to kernel, and executor to iterator: of several parents the last counts.
static bool add_pair_edges(struct forest *f, struct extra_links *x) {
    struct xpl_map wanted = {0}; // (step, iteration) of iterators: last executor + 1
    for (size_t i = 0; i < f->n_pairs; i++)
        if (f->pairs[i].kind == PAIR_ITERATOR &&
            !xpl_map_put(&f->temp, &wanted, f->pairs[i].a, f->pairs[i].b, NULL))
            return false;
    for (uint32_t i = 0; wanted.n && i < f->g->n_nodes; i++) {
        struct xpl_stat step, iter;
        if (!executor_ids(f->g, i, &step, &iter)) continue;
        uint64_t *const v =
            xpl_map_get(&wanted, xpl_stat_int_or_uint(&step), xpl_stat_int_or_uint(&iter));
        if (v) *v = i + 1;
    }
    for (size_t i = 0; i < f->n_pairs; i++) {
        const struct pair *const p = &f->pairs[i];
        const uint64_t *const v =
            p->kind == PAIR_ITERATOR ? xpl_map_get(&wanted, p->a, p->b) : NULL;
        const uint32_t parent = p->kind == PAIR_KERNEL ? xpl_grp_launch_scope(f->g, p->a)
                                : v                    ? (uint32_t)*v
                                                       : 0;
        if (parent && !add_edge(f, x, xpl_grp_pair_key(p->node), parent - 1, p->node)) return false;
    }
    return true;
}

// ---- loops of TensorFlow [ProcessTensorFlowLoop] ----

struct iteration_event {
    int64_t step, iter;
    uint64_t begin;
    uint32_t node;
    bool loop; // its step iterates
};

static int iteration_cmp(const void *pa, const void *pb) {
    const struct iteration_event *const a = pa, *const b = pb;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->iter != b->iter) return a->iter < b->iter ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

struct iterations {
    XPL_VEC(struct iteration_event) v;
};

static bool gather_iterations(struct forest *f, struct iterations *ret) {
    for (uint32_t i = 0; i < f->g->n_nodes; i++) {
        struct xpl_stat step, iter;
        const struct line_groups *lg;
        struct xpl_raw_event raw;
        if (!executor_ids(f->g, i, &step, &iter) || !xpl_grp_node_event(f->g, i, &lg, &raw) ||
            xpl_grp_is_tf_data(f, xpl_stat_int(&step)))
            continue;
        struct iteration_event *const e = xpl_vec_push(&f->temp, &ret->v);
        if (!e) return false;
        *e = (struct iteration_event){xpl_stat_int(&step), xpl_stat_int(&iter),
                                      span_of(lg->line, raw.offset_ps, 0).begin, i, false};
    }
    return true;
}

// A step iterates unless its only iteration is 0.
static void mark_loops(struct iteration_event *v, size_t n) {
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && v[end].step == v[i].step;)
            end++;
        const bool loop = v[i].iter != 0 || v[end - 1].iter != 0;
        for (size_t k = i; k < end; k++)
            v[k].loop = loop;
    }
}

// The first event of each iteration becomes a root and the parent of the others; these roots
// replace all others.
static bool add_loops(struct forest *f, struct extra_links *x) {
    struct iterations all = {0};
    bool any = false;
    for (size_t i = 0; i < f->n_scans; i++)
        any |= f->scans[i].has_loops;
    if (!any) return true;
    if (!gather_iterations(f, &all)) return false;
    if (all.v.n) xpl_grp_sort(all.v.v, all.v.n, sizeof *all.v.v, iteration_cmp);
    mark_loops(all.v.v, all.v.n);
    const struct iteration_event *first = NULL;
    for (size_t i = 0; i < all.v.n; i++) {
        const struct iteration_event *const e = &all.v.v[i];
        if (!e->loop) continue;
        if (first && first->step == e->step && first->iter == e->iter) {
            if (!add_edge(f, x, xpl_grp_pair_key(LINK_CONSUMER | first->node), first->node,
                          e->node))
                return false;
            continue;
        }
        first = e;
        struct root *const r = xpl_vec_push(&f->temp, &f->loop_roots);
        if (!r) return false;
        *r = (struct root){.node = e->node, .begin = e->begin};
    }
    return true;
}

// ---- crowded keys ----

struct count_job {
    struct forest *f;
    struct key_counts k;
};

static void run_count(void *ctx, size_t i) {
    struct count_job *const job = ctx;
    const struct scan *const s = &job->f->scans[i];
    if (!s->plan->tpu) {
        xpl_grp_count_consumers(s, &job->k);
        return;
    }
    // Those of TPU planes are all credited to grouping events, one link each.
    for (size_t k = 0; k < job->f->n_consumers; k++) {
        const struct link *const l = &job->f->consumers[k];
        if ((l->node & LINK_NODE) - s->base < s->nodes.n) xpl_grp_count_key(&job->k, link_key(l));
    }
}

// Drops the producers of keys that have too many producers and too many consumers.  (Producers that
// nothing of interest encloses are not stored and not counted.)
static xpl_status_t drop_crowded(struct forest *f) {
    struct link *const v = f->producers;
    XPL_VEC(uint64_t) keys = {0};
    for (size_t i = 0, end; i < f->n_producers; i = end) {
        for (end = i + 1; end < f->n_producers && link_key(&v[end]) == link_key(&v[i]);)
            end++;
        if (end - i < HUB_LIMIT) continue;
        uint64_t *const k = xpl_vec_push(&f->temp, &keys);
        if (!k) return no_memory(f);
        *k = link_key(&v[i]);
    }
    if (keys.n == 0) return XPL_OK;
    struct count_job job = {
        f, {keys.v, keys.n, xpl_arena_zalloc(&f->temp, keys.n * sizeof(_Atomic uint32_t))}};
    if (!job.k.counts) return no_memory(f);
    xpl_exec_run(f->g->exec, f->n_scans, run_count, &job);
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < f->n_producers; i++) {
        while (next < keys.n && keys.v[next] < link_key(&v[i]))
            next++;
        const bool crowded =
            next < keys.n && keys.v[next] == link_key(&v[i]) && job.k.counts[next] >= HUB_LIMIT;
        if (!crowded) v[kept++] = v[i];
    }
    f->n_producers = kept;
    return XPL_OK;
}

// ---- hubs ----

// The graph needs the consumers that are nodes, and of the producers those of the same keys.
static xpl_status_t merge_links(struct forest *f, const struct extra_links *x) {
    const struct link *const c = f->consumers;
    const size_t n = f->n_consumers;
    size_t at = n;
    size_t total = n + x->v.n, producers = 0;
    for (unsigned fill = 0; fill < 2; fill++) {
        at = n;
        for (size_t i = 0, k = 0; i < f->n_producers && k < n; i++) {
            while (k < n && link_key(&c[k]) < link_key(&f->producers[i]))
                k++;
            if (k == n || link_key(&c[k]) != link_key(&f->producers[i])) continue;
            if (fill) f->links[at] = f->producers[i];
            at++;
        }
        if (fill) break;
        producers = at - n;
        total += producers;
        if (total >= MAX_LINKS) XPL_FAIL_OOM(f->err, "event groups: links");
        f->links = xpl_arena_array(&f->temp, total, sizeof *f->links);
        if (!f->links) return no_memory(f);
    }
    if (n) memcpy(f->links, c, n * sizeof *c);
    if (x->v.n) memcpy(f->links + n + producers, x->v.v, x->v.n * sizeof *c);
    f->n_links = (uint32_t)total;
    sort_links(f->links, total, 0);
    return XPL_OK;
}

// Turns runs of equal keys into hubs.
static void make_hubs(struct forest *f) {
    struct link *const v = f->links;
    for (uint32_t i = 0, end; i < f->n_links; i = end) {
        const uint64_t key = link_key(&v[i]);
        for (end = i + 1; end < f->n_links && link_key(&v[end]) == key;)
            end++;
        // Producers come first; without any there is nothing to link.
        const bool linked = !(v[i].node & LINK_CONSUMER) && (v[end - 1].node & LINK_CONSUMER);
        for (uint32_t k = i; k < end; k++)
            v[k].key_lo = linked ? i : NO_HUB;
    }
    for (uint32_t i = f->n_links; i-- > 0;) { // each node's links in ascending order
        struct node *const n = &f->g->nodes[v[i].node & LINK_NODE];
        if (v[i].key_lo == NO_HUB) continue;
        v[i].key_hi = n->links;
        n->links = i + 1;
    }
}

// ---- what keys pass on ----

// Of several producers the group that came first counts, and the first that runs eagerly or not.
static bool make_labels(struct forest *f) {
    struct link *const v = f->producers;
    struct xpl_groups *const g = f->g;
    size_t kept = 0;
    for (size_t i = 0; i < f->n_producers; i++) {
        const uint32_t label = xpl_grp_node_label(&f->g->nodes[v[i].node & LINK_NODE]);
        if (label == LABEL_NO_GROUP) continue;
        if (kept && link_key(&v[kept - 1]) == link_key(&v[i])) {
            uint32_t *const have = &v[kept - 1].node;
            const uint32_t flags = *have & LABEL_IN_EAGER ? *have : label;
            const uint32_t group = (label & LABEL_GROUP) < (*have & LABEL_GROUP) ? label : *have;
            *have = (flags & ~LABEL_GROUP) | (group & LABEL_GROUP);
            continue;
        }
        v[kept] = v[i];
        v[kept++].node = label;
    }
    g->labels = v;
    g->n_labels = kept;
    unsigned bits = 10; // most keys that are asked for have no label
    while (bits < 40 && (size_t)1 << bits < kept * 16)
        bits++;
    g->label_shift = 64 - bits;
    g->label_bits = xpl_arena_zalloc(g->arena, (size_t)1 << bits >> 3);
    if (!g->label_bits) return false;
    for (size_t i = 0; i < kept; i++) {
        const uint64_t bit = link_key(&v[i]) >> g->label_shift;
        g->label_bits[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
    return true;
}

uint32_t xpl_grp_label(const struct xpl_groups *g, uint64_t key) {
    if (g->n_labels == 0) return LABEL_NO_GROUP;
    const uint64_t bit = key >> g->label_shift;
    if (!(g->label_bits[bit / 64] >> (bit % 64) & 1)) return LABEL_NO_GROUP;
    size_t lo = 0, hi = g->n_labels;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (link_key(&g->labels[mid]) <= key)
            lo = mid;
        else
            hi = mid;
    }
    return link_key(&g->labels[lo]) == key ? g->labels[lo].node : LABEL_NO_GROUP;
}

static xpl_status_t build(struct forest *f, bool want_groups) {
    struct extra_links extra = {0};
    XPL_TRY(number_nodes(f));
    XPL_TRY(merge_nodes(f));
    XPL_TRY(merge_lists(f));
    if (!add_loops(f, &extra) || !add_pair_edges(f, &extra)) return no_memory(f);
    XPL_TRY(drop_crowded(f));
    XPL_TRY(merge_links(f, &extra));
    make_hubs(f);
    XPL_TRY(xpl_grp_spread(f, want_groups));
    return make_labels(f) ? XPL_OK : no_memory(f);
}

xpl_status_t xpl_grp_build_forest(struct xpl_groups *g, struct scan *scans, size_t n_scans,
                                  bool want_groups, struct xpl_error *err) {
    struct forest f = {.g = g, .scans = scans, .n_scans = n_scans, .err = err};
    xpl_arena_init(&f.temp, g->arena->limit);
    const xpl_status_t status = build(&f, want_groups);
    xpl_arena_fini(&f.temp);
    return status;
}
