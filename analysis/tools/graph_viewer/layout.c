// SPDX-License-Identifier: Apache-2.0
// The positions of nodes and clusters: ranks from top to bottom, operands above their users.  A
// cluster is laid out by itself, innermost first, and is one box to the nodes around it.  All steps
// are linear except sorting, so that a graph of 5,000 nodes takes milliseconds.
#include "analysis/tools/graph_viewer/layout.h"
#include "base/vec.h"

#include <math.h>

// Points of the drawing.
enum { CHARACTER = 7, LINE = 15, PADDING = 12, RANK_GAP = 44, NODE_GAP = 18, SWEEPS = 7 };

// ---- boxes ----

// The contents of one container (a cluster, or the graph): nodes are boxes 0 to n_nodes - 1, then
// clusters.
struct link {
    uint32_t from, to; // boxes of one container
};
struct layout {
    struct graph *g;
    struct graph_layout *out;
    uint32_t n_boxes, n_containers;
    uint32_t *container; // by box; the graph itself is the last one
    uint32_t *depth;     // of containers
    uint32_t *members, *members_at;
    struct link *links;
    uint32_t *links_at;
    uint32_t *rank, *order_of, *degree, *queue; // by box
    double *target;                             // by box: where it would stand best
    struct slot {
        double key;
        uint32_t box;
    } * slots;
    double *sum, *weight; // blocks of a rank that move as one
    uint32_t *count;
};

struct graph_extent xpl_graph_extent(const struct graph *g, struct graph_span label) {
    const char *const s = (const char *)g->text.p + label.at;
    struct graph_extent e = {.lines = 1};
    size_t line = 0;
    for (size_t i = 0; i < label.n; i++) {
        if (s[i] == '<') {
            const xpl_str_t rest = {s + i, label.n - i};
            const bool br = xpl_str_starts(rest, XPL_STR("<br/>"));
            const size_t tag =
                br                                     ? 5
                : xpl_str_starts(rest, XPL_STR("<b>")) ? 3
                : xpl_str_starts(rest, XPL_STR("<i>")) ? 3
                : xpl_str_starts(rest, XPL_STR("</b>")) || xpl_str_starts(rest, XPL_STR("</i>"))
                    ? 4
                    : 0;
            if (br) e.lines++;
            if (br) line = 0;
            if (tag) {
                i += tag - 1;
                continue;
            }
        }
        if (s[i] == '&') // an entity is one character
            for (size_t k = i + 1; k < label.n && k < i + 7; k++)
                if (s[k] == ';') {
                    i = k;
                    break;
                }
        line += ((unsigned char)s[i] & 0xc0) != 0x80;
        if (line > e.longest) e.longest = line;
    }
    return e;
}

static void measure(struct layout *l) {
    const struct graph *const g = l->g;
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        const struct graph_node *const n = &g->nodes.v[i];
        const struct graph_extent e = xpl_graph_extent(g, n->label);
        const bool wide = n->shown == GRAPH_START ||
                          graph_at(g, n->instruction)->opcode == XPL_HLO_WHILE; // not a rectangle
        struct graph_box *const b = &l->out->nodes[i];
        b->w = (double)(e.longest * CHARACTER + PADDING + 4) * (wide ? 1.4 : 1);
        b->h = (double)(e.lines * LINE + PADDING) * (wide ? 1.4 : 1);
    }
}

static struct graph_box *box_of(const struct layout *l, uint32_t box) {
    const uint32_t n = (uint32_t)l->g->nodes.n;
    return box < n ? &l->out->nodes[box] : &l->out->clusters[box - n];
}

// ---- the members of each container ----

static uint32_t parent_of(const struct layout *l, uint32_t container) {
    const uint32_t p = l->g->clusters.v[container].parent;
    return p == GRAPH_NONE ? l->n_containers - 1 : p;
}

static void find_containers(struct layout *l) {
    const struct graph *const g = l->g;
    const uint32_t n = (uint32_t)g->nodes.n, top = l->n_containers - 1;
    for (uint32_t i = 0; i < n; i++)
        l->container[i] = g->nodes.v[i].cluster == GRAPH_NONE ? top : g->nodes.v[i].cluster;
    l->depth[top] = 0;
    for (uint32_t c = 0; c < top; c++) { // a parent comes first
        l->container[n + c] = parent_of(l, c);
        l->depth[c] = l->depth[l->container[n + c]] + 1;
    }
    for (uint32_t i = 0; i < l->n_boxes; i++)
        l->members_at[l->container[i] + 1]++;
    for (uint32_t c = 0; c < l->n_containers; c++)
        l->members_at[c + 1] += l->members_at[c];
    for (uint32_t i = 0; i < l->n_boxes; i++)
        l->members[l->members_at[l->container[i]]++] = i;
    for (uint32_t c = l->n_containers; c > 0; c--)
        l->members_at[c] = l->members_at[c - 1];
    l->members_at[0] = 0;
}

// The boxes of one container between which an edge runs; false when it runs within a box.
static bool find_link(struct layout *l, const struct graph_edge *e, struct link *ret) {
    const struct graph *const g = l->g;
    const uint32_t n = (uint32_t)g->nodes.n;
    if (e->to == GRAPH_NONE || !g->node_of[e->from] || !g->node_of[e->to]) return false;
    uint32_t a = g->node_of[e->from] - 1, b = g->node_of[e->to] - 1;
    while (l->container[a] != l->container[b] && graph_spend(l->g, 1)) {
        const uint32_t x = l->depth[l->container[a]], y = l->depth[l->container[b]];
        if (x >= y) a = n + l->container[a];
        if (y >= x) b = n + l->container[b];
    }
    *ret = (struct link){a, b};
    return a != b && l->container[a] == l->container[b];
}

static void find_links(struct layout *l) {
    const struct graph *const g = l->g;
    struct link k;
    for (size_t i = 0; i < g->edges.n; i++)
        if (find_link(l, &g->edges.v[i], &k)) l->links_at[l->container[k.from] + 1]++;
    for (uint32_t c = 0; c < l->n_containers; c++)
        l->links_at[c + 1] += l->links_at[c];
    for (size_t i = 0; i < g->edges.n; i++)
        if (find_link(l, &g->edges.v[i], &k)) l->links[l->links_at[l->container[k.from]]++] = k;
    for (uint32_t c = l->n_containers; c > 0; c--)
        l->links_at[c] = l->links_at[c - 1];
    l->links_at[0] = 0;
}

// ---- ranks ----

struct part { // of the tables: one container
    const uint32_t *members;
    uint32_t n;
    struct link *links;
    uint32_t n_links;
};

static int by_source(const void *pa, const void *pb) {
    const struct link *const a = pa, *const b = pb;
    return (a->from > b->from) - (a->from < b->from);
}

static uint32_t first_link(const struct part *p, uint32_t box) {
    uint32_t low = 0, high = p->n_links;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->links[middle].from < box)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Each box below all that it uses.  Where computations that several call make a ring, the first
// box in it starts.
static void find_ranks(struct layout *l, const struct part *p) {
    uint32_t n = 0, next = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        l->rank[p->members[i]] = 0;
        l->degree[p->members[i]] = 0;
    }
    for (uint32_t k = 0; k < p->n_links; k++)
        l->degree[p->links[k].to]++;
    for (uint32_t i = 0; i < p->n; i++)
        if (!l->degree[p->members[i]]) l->queue[n++] = p->members[i];
    for (uint32_t at = 0; at < p->n; at++) {
        while (at == n) { // a ring
            const uint32_t box = p->members[next++];
            if (!l->degree[box] || l->degree[box] == GRAPH_NONE) continue;
            l->degree[box] = 0;
            l->queue[n++] = box;
        }
        const uint32_t box = l->queue[at];
        l->degree[box] = GRAPH_NONE; // done
        for (uint32_t k = first_link(p, box); k < p->n_links && p->links[k].from == box; k++) {
            const uint32_t to = p->links[k].to;
            if (l->degree[to] == GRAPH_NONE || !l->degree[to]) continue;
            if (l->rank[to] <= l->rank[box]) l->rank[to] = l->rank[box] + 1;
            if (!--l->degree[to]) l->queue[n++] = to;
        }
    }
}

// An instruction without operands is placed right above its first user, not at the top.
static void pull_sources_down(struct layout *l, const struct part *p) {
    for (uint32_t k = 0; k < p->n_links; k++)
        l->degree[p->links[k].to] = 0; // has a source
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t box = p->members[i];
        uint32_t least = GRAPH_NONE;
        if (!l->degree[box]) continue;
        for (uint32_t k = first_link(p, box); k < p->n_links && p->links[k].from == box; k++)
            if (l->rank[p->links[k].to] < least) least = l->rank[p->links[k].to];
        if (least != GRAPH_NONE && least) l->rank[box] = least - 1;
    }
}

// ---- places in a rank ----

static int by_key(const void *pa, const void *pb) {
    const struct slot *const a = pa, *const b = pb;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->box > b->box) - (a->box < b->box);
}

// Puts the boxes of a rank, in their order, as near to their targets as they fit: neighbours that
// would overlap become a block, which stands at the mean of its targets.
static void place_rank(struct layout *l, const struct slot *v, uint32_t n) {
    uint32_t blocks = 0;
    double offset = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double w = box_of(l, v[i].box)->w;
        l->sum[blocks] = v[i].key - offset - w / 2;
        l->weight[blocks] = 1;
        l->count[blocks++] = 1;
        offset += w + NODE_GAP;
        while (blocks > 1 && l->sum[blocks - 2] / l->weight[blocks - 2] >
                                 l->sum[blocks - 1] / l->weight[blocks - 1]) {
            l->sum[blocks - 2] += l->sum[blocks - 1];
            l->weight[blocks - 2] += l->weight[blocks - 1];
            l->count[blocks - 2] += l->count[blocks - 1];
            blocks--;
        }
    }
    offset = 0;
    for (uint32_t b = 0, i = 0; b < blocks; b++)
        for (uint32_t k = 0; k < l->count[b]; k++, i++) {
            struct graph_box *const box = box_of(l, v[i].box);
            box->x = l->sum[b] / l->weight[b] + offset;
            offset += box->w + NODE_GAP;
        }
}

// ---- a container ----

static int by_rank(const void *pa, const void *pb, void *arg) {
    const uint32_t *const rank = arg, a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    if (rank[a] != rank[b]) return rank[a] < rank[b] ? -1 : 1;
    return (a > b) - (a < b);
}

static uint32_t rank_end(const struct layout *l, uint32_t n, uint32_t from) {
    uint32_t end = from;
    while (end < n && l->rank[l->order_of[end]] == l->rank[l->order_of[from]])
        end++;
    return end;
}

static uint32_t rank_begin(const struct layout *l, uint32_t end) {
    uint32_t begin = end - 1;
    while (begin && l->rank[l->order_of[begin - 1]] == l->rank[l->order_of[end - 1]])
        begin--;
    return begin;
}

static double middle(const struct layout *l, uint32_t box) {
    const struct graph_box *const b = box_of(l, box);
    return b->x + b->w / 2;
}

static void add_target(struct layout *l, uint32_t box, double x) {
    l->target[box] += x;
    l->degree[box]++;
}

// Orders a rank by where its boxes would stand best: at the mean of those above them that they are
// linked to (down), or below.
static void arrange_rank(struct layout *l, const struct part *p, uint32_t from, uint32_t end,
                         bool down) {
    for (uint32_t i = from; i < end; i++) {
        const uint32_t box = l->order_of[i];
        for (uint32_t k = first_link(p, box); !down && k < p->n_links && p->links[k].from == box;
             k++)
            add_target(l, box, middle(l, p->links[k].to));
        const double key = l->degree[box] ? l->target[box] / l->degree[box] : middle(l, box);
        l->slots[i] = (struct slot){key, box};
    }
    xpl_sort(l->slots + from, end - from, sizeof *l->slots, by_key);
    place_rank(l, l->slots + from, end - from);
    for (uint32_t i = from; i < end; i++) {
        const uint32_t box = l->order_of[i] = l->slots[i].box;
        for (uint32_t k = first_link(p, box); down && k < p->n_links && p->links[k].from == box;
             k++)
            add_target(l, p->links[k].to, middle(l, box));
    }
}

static void sweep(struct layout *l, const struct part *p, bool down) {
    for (uint32_t i = 0; i < p->n; i++) {
        l->target[p->members[i]] = 0;
        l->degree[p->members[i]] = 0;
    }
    for (uint32_t from = 0, end; down && from < p->n; from = end) {
        end = rank_end(l, p->n, from);
        arrange_rank(l, p, from, end, true);
    }
    for (uint32_t end = p->n, from; !down && end; end = from) {
        from = rank_begin(l, end);
        arrange_rank(l, p, from, end, false);
    }
}

// Moves all to x and y from 0, and gives the extent.
static void finish_container(struct layout *l, const struct part *p, double head,
                             struct graph_box *ret) {
    double left = INFINITY, right = 0, y = head;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct graph_box *const b = box_of(l, p->members[i]);
        if (b->x < left) left = b->x;
    }
    for (uint32_t from = 0, end; from < p->n; from = end) {
        double height = 0;
        end = rank_end(l, p->n, from);
        for (uint32_t i = from; i < end; i++)
            height = fmax(height, box_of(l, l->order_of[i])->h);
        for (uint32_t i = from; i < end; i++) {
            struct graph_box *const b = box_of(l, l->order_of[i]);
            b->x += PADDING - left;
            b->y = y + (height - b->h) / 2;
            right = fmax(right, b->x + b->w);
        }
        y += height + RANK_GAP;
    }
    ret->w = fmax(ret->w, right + PADDING);
    ret->h = (p->n ? y - RANK_GAP : head) + PADDING;
}

static xpl_status_t lay_out(struct layout *l, uint32_t c, struct xpl_error *err) {
    const uint32_t at = l->members_at[c];
    const struct part p = {l->members + at, l->members_at[c + 1] - at, l->links + l->links_at[c],
                           l->links_at[c + 1] - l->links_at[c]};
    struct graph_span label = l->g->title;
    struct graph_box *box = &l->out->all;
    if (c + 1 < l->n_containers) {
        label = l->g->clusters.v[c].label;
        box = &l->out->clusters[c];
    }
    const struct graph_extent e = xpl_graph_extent(l->g, label);
    box->w = (double)(e.longest * CHARACTER + 2 * PADDING);
    xpl_sort(p.links, p.n_links, sizeof *p.links, by_source);
    find_ranks(l, &p);
    pull_sources_down(l, &p);
    for (uint32_t i = 0; i < p.n; i++) {
        l->order_of[i] = p.members[i];
        box_of(l, p.members[i])->x = 0;
    }
    xpl_sort_r(l->order_of, p.n, sizeof *l->order_of, by_rank, l->rank);
    for (unsigned k = 0; k < SWEEPS; k++) {
        XPL_TRY(xpl_graph_check(l->g, err));
        sweep(l, &p, k % 2 == 0);
    }
    finish_container(l, &p, (double)((e.lines + 1) * LINE + PADDING), box);
    return XPL_OK;
}

// ---- the whole ----

static bool prepare(struct layout *l) {
    struct xpl_arena *const a = l->g->arena;
    const size_t n = l->n_boxes + (size_t)1, c = l->n_containers + (size_t)1;
    l->container = xpl_arena_array(a, n, sizeof *l->container);
    l->depth = xpl_arena_zalloc(a, c * sizeof *l->depth);
    l->members = xpl_arena_array(a, n, sizeof *l->members);
    l->members_at = xpl_arena_zalloc(a, c * sizeof *l->members_at);
    l->links = xpl_arena_array(a, l->g->edges.n + 1, sizeof *l->links);
    l->links_at = xpl_arena_zalloc(a, c * sizeof *l->links_at);
    l->rank = xpl_arena_array(a, n, sizeof *l->rank);
    l->order_of = xpl_arena_array(a, n, sizeof *l->order_of);
    l->degree = xpl_arena_array(a, n, sizeof *l->degree);
    l->queue = xpl_arena_array(a, n, sizeof *l->queue);
    l->target = xpl_arena_array(a, n, sizeof *l->target);
    l->slots = xpl_arena_array(a, n, sizeof *l->slots);
    l->sum = xpl_arena_array(a, n, sizeof *l->sum);
    l->weight = xpl_arena_array(a, n, sizeof *l->weight);
    l->count = xpl_arena_array(a, n, sizeof *l->count);
    l->out->nodes = xpl_arena_zalloc(a, n * sizeof *l->out->nodes);
    l->out->clusters = xpl_arena_zalloc(a, c * sizeof *l->out->clusters);
    return l->container && l->depth && l->members && l->members_at && l->links && l->links_at &&
           l->rank && l->order_of && l->degree && l->queue && l->target && l->slots && l->sum &&
           l->weight && l->count && l->out->nodes && l->out->clusters;
}

xpl_status_t xpl_graph_layout(struct graph *g, struct graph_layout *ret, struct xpl_error *err) {
    struct layout l = {.g = g, .out = ret};
    l.n_containers = (uint32_t)g->clusters.n + 1;
    l.n_boxes = (uint32_t)(g->nodes.n + g->clusters.n);
    *ret = (struct graph_layout){0};
    if (!prepare(&l)) XPL_RETURN_OOM(err, "layout of a graph");
    measure(&l);
    find_containers(&l);
    find_links(&l);
    XPL_TRY(xpl_graph_check(g, err)); // else links may be lacking that were counted
    for (uint32_t c = 0; c < l.n_containers - 1; c++)
        XPL_TRY(lay_out(&l, l.n_containers - 2 - c, err)); // inner clusters have greater numbers
    XPL_TRY(lay_out(&l, l.n_containers - 1, err));
    // Places within a cluster become places in the graph, from the outside in.
    for (uint32_t c = 0; c < l.n_containers - 1; c++) {
        const uint32_t box = (uint32_t)g->nodes.n + c;
        if (l.container[box] == l.n_containers - 1) continue;
        ret->clusters[c].x += ret->clusters[l.container[box]].x;
        ret->clusters[c].y += ret->clusters[l.container[box]].y;
    }
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        if (l.container[i] == l.n_containers - 1) continue;
        ret->nodes[i].x += ret->clusters[l.container[i]].x;
        ret->nodes[i].y += ret->clusters[l.container[i]].y;
    }
    return XPL_OK;
}
