// Merges what the scans found into one graph of nodes and hubs.
// Counterpart of EventForest::ConnectEvents in xla/tsl/profiler/utils/group_events.cc.
#include <stdatomic.h>
#include <string.h>

#include "analysis/grouping/impl.h"
#include "base/map.h"

// A hub with that many producers and that many consumers links nothing [ConnectContextGroups].
enum { HUB_LIMIT = 64 };

static xpl_status_t no_memory(struct forest *f) {
    XPL_RETURN_OOM(f->err, "event groups");
}

// ---- sorting links by key ----

static bool link_less(const struct link *a, const struct link *b) {
    const uint64_t ka = link_key(a), kb = link_key(b);
    return ka != kb ? ka < kb : a->end < b->end;
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

// Radix of a link at depth 0..11: the bytes of the key, then those of its end.
static unsigned digit(const struct link *l, unsigned depth) {
    const uint32_t w = depth < 4 ? l->key_hi : depth < 8 ? l->key_lo : l->end;
    return w >> (24 - 8 * (depth & 3)) & 0xff;
}

// The first depth from `depth` on at which not all have the same radix; 12 when they are sorted.
static unsigned next_depth(const struct link *v, size_t n, unsigned depth) {
    uint32_t differ[3] = {0};
    bool sorted = true;
    for (size_t i = 1; i < n; i++) {
        differ[0] |= v[i].key_hi ^ v[i - 1].key_hi;
        differ[1] |= v[i].key_lo ^ v[i - 1].key_lo;
        differ[2] |= v[i].end ^ v[i - 1].end;
        sorted &= !link_less(&v[i], &v[i - 1]);
    }
    if (sorted) return 12;
    while (!(differ[depth / 4] >> (24 - 8 * (depth & 3)) & 0xff))
        depth++;
    return depth;
}

// In place, most significant byte first; at most 12 levels deep.
static void sort_links(struct link *v, size_t n, unsigned depth) {
    if (n < 48) {
        insertion_sort(v, n);
        return;
    }
    depth = next_depth(v, n, depth);
    if (depth == 12) return;
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
    if (!g->nodes || !g->scanned) return no_memory(f);
    for (size_t i = 0; i < f->n_scans; i++)
        for (uint32_t k = 0; k < f->scans[i].n_lines; k++)
            if (!merge_line(g, &f->scans[i], &f->scans[i].lines[k])) return no_memory(f);
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
    uint64_t i = xpl_grp_mix(correlation) & (g->n_launch_scopes - 1);
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
        return no_memory(f);
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
    if (i == 0) sort_links(f->producers, f->n_producers, 0);
    if (i == 1) sort_links(f->consumers, f->n_consumers, 0);
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

// ---- links that are no producers and consumers ----

struct extra_links {
    XPL_VEC(struct link) v;
};

static bool add_edge(struct forest *f, struct extra_links *x, uint64_t hub, uint32_t parent,
                     uint32_t child) {
    struct link *l = xpl_vec_push(&f->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)hub, (uint32_t)(hub >> 32), parent << LINK_NODE_SHIFT};
    l = xpl_vec_push(&f->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)hub, (uint32_t)(hub >> 32),
                       LINK_CONSUMER | child << LINK_NODE_SHIFT};
    f->g->nodes[child].flags |= NODE_CONSUMES;
    return true;
}

// An executor event's step and iteration.
static bool executor_ids(const struct xpl_groups *g, uint32_t node, struct xpl_stat *step,
                         struct xpl_stat *iter) {
    return (g->nodes[node].flags & NODE_EXECUTOR) &&
           xpl_grp_node_stat(g, node, XPL_STAT_STEP_ID, step) &&
           xpl_grp_node_stat(g, node, XPL_STAT_ITER_NUM, iter);
}

// The last executor + 1 of each key that an iterator asks for.
static bool find_executors(struct forest *f, struct xpl_map *ret) {
    for (size_t i = 0; i < f->n_pairs; i++)
        if (f->pairs[i].kind == PAIR_ITERATOR &&
            !xpl_map_put(&f->temp, ret, f->pairs[i].key, 0, NULL))
            return false;
    for (size_t i = 0; ret->n && i < f->n_executors; i++) {
        uint64_t *const v = xpl_map_get(ret, link_key(&f->executors[i]), 0);
        if (v) *v = f->executors[i].end + 1;
    }
    return true;
}

// Launch to kernel, and executor to iterator: of several parents the last counts.
static bool add_pair_edges(struct forest *f, struct extra_links *x) {
    struct xpl_map executors = {0};
    if (!find_executors(f, &executors)) return false;
    for (size_t i = 0; i < f->n_pairs; i++) {
        const struct pair *const p = &f->pairs[i];
        const uint64_t *const v =
            p->kind == PAIR_ITERATOR ? xpl_map_get(&executors, p->key, 0) : NULL;
        const uint32_t parent = p->kind == PAIR_KERNEL ? xpl_grp_launch_scope(f->g, p->key)
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
        if (link_node(l) - s->base < s->nodes.n) xpl_grp_count_key(&job->k, link_key(l));
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

// The graph needs the consumers that are nodes, and of the producers those of the same keys, by key
// and the producers first.  Returns how many that are; writes them to `to` unless it is NULL.
static size_t join_links(const struct forest *f, struct link *to) {
    const struct link *const c = f->consumers, *const p = f->producers;
    size_t at = 0, next = 0;
    for (size_t i = 0, end; i < f->n_consumers; i = end) {
        const uint64_t key = link_key(&c[i]);
        for (end = i + 1; end < f->n_consumers && link_key(&c[end]) == key;)
            end++;
        while (next < f->n_producers && link_key(&p[next]) < key)
            next++;
        for (; next < f->n_producers && link_key(&p[next]) == key; next++, at++)
            if (to) to[at] = p[next];
        if (to) memcpy(to + at, c + i, (end - i) * sizeof *c);
        at += end - i;
    }
    return at;
}

// Merges `extra` into the n links before it, from the end on.
static void add_sorted(struct link *v, size_t n, const struct link *extra, size_t n_extra) {
    for (size_t to = n + n_extra; n_extra > 0;) {
        const bool from_v = n > 0 && link_less(&extra[n_extra - 1], &v[n - 1]);
        v[--to] = from_v ? v[--n] : extra[--n_extra];
    }
}

static xpl_status_t merge_links(struct forest *f, const struct extra_links *x) {
    const size_t joined = join_links(f, NULL), total = joined + x->v.n;
    if (total >= MAX_LINKS) XPL_RETURN_OOM(f->err, "event groups: links");
    f->links = xpl_arena_array(&f->temp, total, sizeof *f->links);
    if (!f->links) return no_memory(f);
    join_links(f, f->links);
    sort_links(x->v.v, x->v.n, 0);
    add_sorted(f->links, joined, x->v.v, x->v.n);
    f->n_links = (uint32_t)total;
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
        const bool linked = !link_consumes(&v[i]) && link_consumes(&v[end - 1]);
        for (uint32_t k = i; k < end; k++)
            v[k].key_lo = linked ? i : NO_HUB;
    }
    for (uint32_t i = f->n_links; i-- > 0;) { // each node's links in ascending order
        struct node *const n = &f->g->nodes[link_node(&v[i])];
        if (v[i].key_lo == NO_HUB) continue;
        v[i].key_hi = n->links;
        n->links = i + 1;
    }
}

// ---- what keys pass on ----

// Of several producers the group that came first counts, and the first that runs eagerly or not.
static void make_labels(struct forest *f) {
    struct link *const v = f->producers;
    struct xpl_groups *const g = f->g;
    size_t kept = 0;
    for (size_t i = 0; i < f->n_producers; i++) {
        const uint32_t label = xpl_grp_node_label(&f->g->nodes[link_node(&v[i])]);
        if (label == LABEL_NO_GROUP) continue;
        if (kept && link_key(&v[kept - 1]) == link_key(&v[i])) {
            uint32_t *const have = &v[kept - 1].end;
            const uint32_t flags = *have & LABEL_IN_EAGER ? *have : label;
            const uint32_t group = (label & LABEL_GROUP) < (*have & LABEL_GROUP) ? label : *have;
            *have = (flags & ~LABEL_GROUP) | (group & LABEL_GROUP);
            continue;
        }
        v[kept] = v[i];
        v[kept++].end = label;
    }
    g->labels = v;
    g->n_labels = (uint32_t)kept;
}

uint32_t xpl_grp_label(const struct xpl_groups *g, uint64_t key, uint32_t *hint) {
    const struct link *const v = g->labels;
    uint32_t lo = *hint, hi = g->n_labels; // once found: v[lo].key <= key < v[hi].key
    if (hi == 0) return LABEL_NO_GROUP;
    if (link_key(&v[lo]) <= key) {
        for (uint32_t step = 1; hi - lo > step; step *= 2) {
            if (link_key(&v[lo + step]) > key) {
                hi = lo + step;
                break;
            }
            lo += step;
        }
    } else {
        hi = lo;
        for (uint32_t step = 1; hi > 0; step *= 2) {
            lo = hi > step ? hi - step : 0;
            if (link_key(&v[lo]) <= key) break;
            hi = lo;
        }
    }
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (link_key(&v[mid]) <= key)
            lo = mid;
        else
            hi = mid;
    }
    *hint = lo;
    return link_key(&v[lo]) == key ? v[lo].end : LABEL_NO_GROUP;
}

static xpl_status_t build(struct forest *f, bool want_groups) {
    struct extra_links extra = {0};
    XPL_TRY(number_nodes(f));
    XPL_TRY(merge_lines(f));
    XPL_TRY(merge_lists(f));
    if (!add_loops(f, &extra) || !add_pair_edges(f, &extra)) return no_memory(f);
    XPL_TRY(drop_crowded(f));
    XPL_TRY(merge_links(f, &extra));
    make_hubs(f);
    XPL_TRY(xpl_grp_propagate(f, want_groups));
    make_labels(f);
    return XPL_OK;
}

xpl_status_t xpl_grp_build_graph(struct xpl_groups *g, struct scan *scans, size_t n_scans,
                                 bool want_groups, struct xpl_error *err) {
    struct forest f = {.g = g, .scans = scans, .n_scans = n_scans, .err = err};
    xpl_arena_init(&f.temp, g->arena->limit);
    const xpl_status_t status = build(&f, want_groups);
    xpl_arena_fini(&f.temp);
    return status;
}
