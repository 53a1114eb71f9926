// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools: the graphs of graph_viewer.  A graph is found once (facts, filter,
// label, build) and then written: as DOT, or laid out and drawn.
// Rules: XLA's HloGraphDumper, by its observed output; rules that no profile shows come from
// XProf's answers (tests/parity/hlo_graph.py).
#ifndef XPL_ANALYSIS_TOOLS_GRAPH_VIEWER_IMPL_H_
#define XPL_ANALYSIS_TOOLS_GRAPH_VIEWER_IMPL_H_

#include "analysis/hlo/fields.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/text.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/vec.h"

#define GRAPH_NONE UINT32_MAX

// How an instruction is shown.
enum graph_shown {
    GRAPH_HIDDEN,
    GRAPH_SHOWN,
    GRAPH_START,         // the neighbourhood is its own
    GRAPH_SOME_OPERANDS, // the others are not shown,
    GRAPH_NO_OPERANDS,   // none is, though it has some,
    GRAPH_NOT_ALL_USERS, // there are too many
};

enum graph_color {
    GRAPH_WHITE,
    GRAPH_BROWN,
    GRAPH_DARK_BLUE,
    GRAPH_DARK_GREEN,
    GRAPH_DARK_ORANGE,
    GRAPH_DARK_RED,
    GRAPH_GRAY,
    GRAPH_GREEN,
    GRAPH_ORANGE,
    GRAPH_PURPLE,
    GRAPH_YELLOW,
    GRAPH_DASHED,
    GRAPH_HEAT, // by a statistic: 0, and ten more from less than 10 to 90 and more
    GRAPH_N_COLORS = GRAPH_HEAT + 11,
};
struct graph_scheme {
    const char *fill, *border, *text;
};
extern const struct graph_scheme xpl_graph_schemes[GRAPH_N_COLORS];

struct graph_span { // of graph.text
    size_t at, n;
};

// ---- the contents of a graph ----

struct graph_node {
    uint32_t instruction;
    uint32_t cluster; // GRAPH_NONE: the graph's own
    uint8_t color;
    uint8_t shown;
    struct graph_span label; // lines with <br/> between them; <b> and <i>; < > " escaped
    struct graph_span tip;   // plain
};
static inline bool graph_dashed(const struct graph_node *n) {
    return n->shown == GRAPH_SOME_OPERANDS || n->shown == GRAPH_NO_OPERANDS ||
           n->shown == GRAPH_NOT_ALL_USERS;
}
struct graph_cluster {
    uint32_t computation, caller; // caller: an instruction
    uint32_t parent;              // another cluster; GRAPH_NONE
    bool fusion, start;
    uint8_t color; // of a statistic; GRAPH_WHITE: none
    struct graph_span label;
};
static inline const char *graph_cluster_fill(const struct graph_cluster *c) {
    return c->start                  ? "#ffcdd2"
           : c->color == GRAPH_WHITE ? "#f5f5f5"
                                     : xpl_graph_schemes[c->color].fill;
}
enum graph_edge_kind { GRAPH_OPERAND, GRAPH_CONTROL, GRAPH_CALL, GRAPH_ROOT };
struct graph_edge {
    uint32_t from, to; // instructions; to: GRAPH_NONE of GRAPH_ROOT
    uint32_t operand;  // its number; GRAPH_NONE: there is only one
    uint32_t cluster;  // GRAPH_CALL: the computation that it leaves
    uint8_t kind;
    bool small; // little data
};
enum graph_item_kind { GRAPH_NODE, GRAPH_OPEN, GRAPH_CLOSE };
struct graph_item { // in the order of the text
    uint8_t kind;
    uint32_t index; // of a node or cluster
};

struct graph_callers { // of a computation
    bool any;          // something uses it,
    uint32_t first, n; // and these call instructions
};

struct graph {
    const struct xpl_hlo_module *m;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_hlo_text_cache *cache;
    bool merge_fusion; // fusions are nodes
    bool show_config;
    uint32_t width;                // of a neighbourhood
    uint32_t top;                  // computation
    uint32_t start;                // instruction; GRAPH_NONE: the whole computation is shown
    uint64_t work;                 // steps taken
    struct xpl_buf text;           // contains the text of spans
    struct xpl_buf scratch;        // a text before it is escaped
    const uint8_t *shown;          // of the instructions of `top`: enum graph_shown; NULL: all
    uint32_t *users_at, *users;    // of instruction i: users[users_at[i]] to users[users_at[i + 1]]
    struct graph_callers *callers; // by computation
    uint8_t *known;                // by instruction: cached facts, see facts.c
    uint8_t *c_known;              // by computation, likewise
    uint32_t *node_of;             // by instruction: node + 1; 0: none
    uint32_t *cluster_of;          // by computation, likewise
    struct graph_span title;
    XPL_VEC(struct graph_node) nodes;
    XPL_VEC(struct graph_cluster) clusters;
    XPL_VEC(struct graph_edge) edges;
    XPL_VEC(struct graph_item) items;
};

// A step of work: an instruction or edge visited.  A program of a million instructions has a few
// million; shapes of graphs that need more are refused.
#define GRAPH_WORK (UINT64_C(1) << 27)
static inline bool graph_spend(struct graph *g, uint64_t n) {
    g->work += n;
    return g->work <= GRAPH_WORK;
}

static inline const struct hlo_instruction *graph_at(const struct graph *g, uint32_t i) {
    return &g->m->instructions[i];
}
static inline void graph_read(const struct graph *g, uint32_t i, struct xpl_hlo_message *ret) {
    xpl_hlo_message_read((xpl_bytes_t){graph_at(g, i)->p, graph_at(g, i)->len}, ret);
}
// An instruction's operands, then its control predecessors.
static inline const uint32_t *graph_uses(const struct graph *g, uint32_t i) {
    static const uint32_t none = GRAPH_NONE;
    return g->m->operands.n ? g->m->operands.v + g->m->edges[i].first : &none;
}
// An operand; GRAPH_NONE: there are not as many.
static inline uint32_t graph_operand(const struct graph *g, uint32_t i, uint64_t n) {
    return n < g->m->edges[i].n_operands ? graph_uses(g, i)[n] : GRAPH_NONE;
}
static inline bool graph_fused(const struct graph *g, uint32_t i) {
    return g->m->computations[graph_at(g, i)->computation].fusion != UINT32_MAX;
}
static inline bool graph_is_root(const struct graph *g, uint32_t i) {
    return g->m->computations[graph_at(g, i)->computation].root == i;
}
// The calls of instruction i: m->calls.v[*ret_end] is the first that is not its own.
size_t xpl_graph_calls(const struct graph *g, uint32_t i, size_t *ret_end);

// ---- facts.c: facts about instructions for the rules ----

// The error for work that is spent, a request that is cancelled, or memory that is used up.
xpl_status_t xpl_graph_check(struct graph *g, struct xpl_error *err) XPL_NODISCARD;
// Appends with &lt; &gt; &quot;.
void xpl_graph_put_escaped(struct xpl_buf *b, xpl_str_t s);

bool xpl_graph_facts(struct graph *g) XPL_NODISCARD;
enum graph_shown xpl_graph_shown(const struct graph *g, uint32_t i);
// Its shape has fewer than 4096 elements, or holds no data; some array of it has several
// dimensions.
bool xpl_graph_small(struct graph *g, uint32_t i);
bool xpl_graph_has_layout(struct graph *g, uint32_t i);
// A broadcast of a scalar constant inside a fusion.
bool xpl_graph_plain_broadcast(const struct graph *g, uint32_t i);
// The constant that a fusion's parameter is; GRAPH_NONE.
uint32_t xpl_graph_bound_constant(const struct graph *g, uint32_t i);
// It has no node: its users say it themselves.
bool xpl_graph_merged(struct graph *g, uint32_t i);
// The computation is drawn as a cluster.
bool xpl_graph_shows_inside(struct graph *g, uint32_t computation);
// Likewise that of a fusion.
bool xpl_graph_opened(struct graph *g, uint32_t i);
// "add", "min", "less-or-equal": the name of a computation of one scalar operation; NULL for
// others.
const char *xpl_graph_trivial(struct graph *g, uint32_t computation);

// ---- filter.c ----

// Finds the instructions to show around g->start.
xpl_status_t xpl_graph_filter(struct graph *g, struct xpl_error *err) XPL_NODISCARD;

// ---- label.c, operands.c, library.c, colors.c: the appearance of nodes ----

// The color of the statistic that an instruction is to show, in percent; GRAPH_WHITE: it has none.
enum graph_color xpl_graph_heat(const struct graph *g, uint32_t i);
enum graph_color xpl_graph_color(struct graph *g, uint32_t i);
xpl_status_t xpl_graph_node_label(struct graph *g, uint32_t i, struct graph_span *ret,
                                  struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_graph_cluster_label(struct graph *g, const struct graph_cluster *c,
                                     struct graph_span *ret, struct xpl_error *err) XPL_NODISCARD;
void xpl_graph_tip(struct graph *g, uint32_t i, struct graph_span *ret);
// Appends lines, each after "<br/>": operands without a node, and the configuration of a library
// call.
xpl_status_t xpl_graph_put_operands(struct graph *g, uint32_t i, struct xpl_error *err)
    XPL_NODISCARD;
xpl_status_t xpl_graph_put_config(struct graph *g, uint32_t i, struct xpl_error *err) XPL_NODISCARD;
// Likewise where an argument of a called computation comes from.
void xpl_graph_put_origin(struct graph *g, uint32_t i);

// ---- build.c ----

// Finds the graph of `top`, or around `start`.  The caller has set m, arena, exec, options and one
// of the two, and frees with fini whatever the outcome.
xpl_status_t xpl_graph_build(struct graph *g, size_t limit, struct xpl_error *err) XPL_NODISCARD;
void xpl_graph_fini(struct graph *g);

// ---- dot.c ----

xpl_status_t xpl_graph_dot(const struct graph *g, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

#endif
