// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/cost: the analysis.  Its functions return nothing; the first failure is
// noted and ends the work early.  Properties are floats, rounded after each addition, because
// XLA's are.
#ifndef XPL_ANALYSIS_HLO_COST_IMPL_H_
#define XPL_ANALYSIS_HLO_COST_IMPL_H_

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/opcodes.h"
#include "base/map.h"
#include "base/vec.h"

// ---- numbers ----

// Sizes of a broken or hostile program may be any: where C has no result, these wrap.
static inline int64_t xpl_cost_times(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static inline int64_t xpl_cost_plus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t xpl_cost_minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
// Truncates towards zero; saturates at the limits of int64_t; 0 for NaN.
static inline int64_t xpl_cost_truncated(float v) {
    if (v >= 0x1p63F) return INT64_MAX;
    return v >= -0x1p63F ? (int64_t)v : v < 0 ? INT64_MIN : 0;
}

// ---- shapes ----

enum { COST_DEPTH = 100 }; // of nested shapes; deeper ones do not count

// The sizes in a shape.  Products wrap.
struct cost_shape {
    xpl_bytes_t bytes;     // its message
    uint32_t type;         // enum xpl_hlo_type
    uint32_t n_parts;      // of a tuple
    int64_t elements;      // 0 for a shape that is not an array
    int64_t size;          // bytes; 8 for each part of a tuple
    int64_t leaf_size;     // bytes of all arrays in it
    float leaf_bytes;      // the same, rounded after each array
    int64_t leaf_elements; // tokens count as one
    uint64_t memory_space;
    const int64_t *dims; // sizes of dimensions; NULL until xpl_cost_dims
    uint32_t n_dims;
};
void xpl_cost_shape_read(xpl_bytes_t bytes, struct cost_shape *ret);
struct xpl_hlo_costs;
// Takes the steps that reading a shape's message again is worth.
bool xpl_cost_spend_shape(struct xpl_hlo_costs *c, const struct cost_shape *s);
static inline bool xpl_cost_is_array(const struct cost_shape *s) {
    return s->type != HLO_TYPE_TUPLE && s->type != HLO_TYPE_TOKEN && s->type != HLO_TYPE_OPAQUE;
}
// Part k of a tuple; one without bytes where there is none.
void xpl_cost_shape_part(const struct cost_shape *s, uint32_t k, struct cost_shape *ret);
// The first part of a tuple that has any, else the shape itself.
void xpl_cost_shape_first(const struct cost_shape *s, struct cost_shape *ret);

// A part of a shape that has no parts, and where it is: index[0..depth-1].
struct cost_leaf {
    const struct cost_shape *shape;
    const uint32_t *index;
    uint32_t depth, path; // UINT32_MAX: no property is known of that path
};
typedef void cost_leaf_fn(void *ctx, const struct cost_leaf *leaf);
// Calls `fn` for each; `make`: paths that were not seen before are made.
void xpl_cost_each_leaf(struct xpl_hlo_costs *c, const struct cost_shape *s, bool make,
                        cost_leaf_fn *fn, void *ctx);

// ---- properties ----

// Which bytes or which utilization: of the output or of an operand, and of which part of its shape.
enum cost_kind { COST_OUTPUT = 0, COST_OPERAND = 1, COST_UTILIZATION = 2 };
static inline uint64_t xpl_cost_key(enum cost_kind kind, uint32_t operand, uint32_t path) {
    return (uint64_t)kind << 62 | (uint64_t)(operand & 0x3fffffff) << 32 | path;
}
struct cost_entry {
    uint64_t key;
    float v;
    uint32_t order; // while they are sorted
};
// Properties of a computation, or of a call of one: entries by key, without zeros.
struct cost_sums {
    float flops, bytes;
    struct cost_entry *entries;
    uint32_t n;
    bool has_entries; // they were added up, too
};

struct cost_node { // an instruction
    struct cost_shape shape;
    bool visited;
    bool elementwise; // a fusion of only elementwise instructions
    bool is_call;     // its bytes and utilizations are those of the called computation, in `more`
    uint32_t n_operands;
    float flops, bytes, output;
    float *operand;               // bytes, by operand
    float *utilization;           // by operand: how much of it is used
    const struct cost_sums *more; // parts of tuples, or all there is of a call; NULL: nothing
    bool starts_again;            // an async op that starts code which another op started before
};

struct cost_computation {
    uint8_t extent;  // enum cost_extent: how much of it is needed
    bool is_summed;  // an instruction that calls it needs its sums
    uint32_t *order; // post order of one that is fused; NULL until it is needed
    struct cost_sums sums;
    struct cost_sums *started; // of one that an op starts, from 0 on; NULL: not known
};

#define COST_NO_MOVER UINT32_MAX

struct xpl_hlo_costs {
    const struct xpl_hlo_module *m;
    struct xpl_arena *a;
    struct cost_node **nodes;               // by instruction; NULL until seen
    struct cost_computation **computations; // likewise
    struct cost_reach *reach;   // instructions that XLA's analysis reaches; NULL until requested
    uint32_t *movers;           // by computation: its first gather or scatter plus 1,
                                // COST_NO_MOVER, or 0 until asked
    struct xpl_hlo_cost *found; // by instruction; NULL until asked
    struct xpl_map paths;       // (path, position) to the path of that part
    uint64_t work;              // steps left
    struct xpl_exec *exec;
    bool lost, lost_known; // XLA fails on it
    bool is_cpu;
    bool more_calls; // xpl_hlo_costs_of_more_calls
    bool no_memory, cancelled;
};

enum { COST_BYTES_PER_STEP = 8 }; // of a message that may be read again

// Nothing more is to be done.
static inline bool xpl_cost_stopped(const struct xpl_hlo_costs *c) {
    return c->no_memory || c->cancelled || c->work == 0;
}
// Takes steps from the remaining ones, and checks now and then whether the work is cancelled; false
// when too few remain or it is.
bool xpl_cost_spend(struct xpl_hlo_costs *c, uint64_t steps);
// Memory, or NULL and the failure is noted.
void *xpl_cost_alloc(struct xpl_hlo_costs *c, size_t n, size_t size);

// The path of part `i` of the part with that path; 0 is the whole shape.  `make`: one that was not
// seen before is made, else it is UINT32_MAX.
uint32_t xpl_cost_path(struct xpl_hlo_costs *c, uint32_t parent, uint32_t i, bool make);

// The node of an instruction, with its shape.  NULL at the arena's limit.
struct cost_node *xpl_cost_node_of(struct xpl_hlo_costs *c, uint32_t index);
// The cached facts of a computation that a visited instruction calls; NULL at the arena's limit.
struct cost_computation *xpl_cost_computation_of(struct xpl_hlo_costs *c, uint32_t computation);
// The nth computation that an instruction calls; UINT32_MAX: none.
uint32_t xpl_cost_called(const struct xpl_hlo_costs *c, uint32_t index, uint32_t nth);
// Which of an instruction's computations are looked into.
enum cost_extent { COST_EXTENT_NONE, COST_EXTENT_FLOPS, COST_EXTENT_ALL };
enum cost_extent xpl_cost_extent(const struct xpl_hlo_costs *c, uint32_t index);

// Whether XLA's analysis reaches an instruction: the instructions of computations that the entry
// computation needs and, of code that async ops start, those that its root needs.
bool xpl_cost_reaches(struct xpl_hlo_costs *c, uint32_t index);

// How to treat code that only one async op starts, and that starts at most code of the same kind:
// walk it; walk it and call cost_way.end after it; or skip it, as its sums are known.
enum cost_step { COST_STEP_GO, COST_STEP_GO_AND_TELL, COST_STEP_KNOWN };

// XLA's walk of a computation: at an async op, first the code that it starts, unless visited
// before.
struct cost_way {
    enum cost_step (*step)(void *ctx, uint32_t computation);
    void (*end)(void *ctx, uint32_t computation);
    void *ctx;
    // Set by xpl_cost_way_begin.
    struct xpl_hlo_costs *c;
    uint32_t depth, stamp;
    bool starts_again; // the instruction that came last is such an async op
};
void xpl_cost_way_begin(struct cost_way *w, struct xpl_hlo_costs *c, uint32_t computation);
// The next instruction; UINT32_MAX: no more.  One way at a time.
uint32_t xpl_cost_way_next(struct cost_way *w);

// A property of an instruction that was visited.
float xpl_cost_get(const struct cost_node *n, enum cost_kind kind, uint32_t operand, uint32_t path);
float xpl_cost_utilization(const struct cost_node *n, uint32_t operand);
// Adds up the properties of a computation whose instructions were visited; `entries`: all of them.
void xpl_cost_sum(struct xpl_hlo_costs *c, uint32_t computation, bool entries);
// As a loop adds and a branch chooses: the larger of each that `b` has.
void xpl_cost_sums_add(struct xpl_hlo_costs *c, struct cost_sums *to, const struct cost_sums *b);
void xpl_cost_sums_max(struct xpl_hlo_costs *c, struct cost_sums *to, const struct cost_sums *b);
// Entries in any order, of which the first of each key counts, become a node's further properties.
typedef XPL_VEC(struct cost_entry) cost_entry_vec;
void xpl_cost_note_more(struct xpl_hlo_costs *c, struct cost_node *n, cost_entry_vec *v);
void xpl_cost_push(struct xpl_hlo_costs *c, cost_entry_vec *v, uint64_t key, float value);

// ---- visiting ----

// An instruction whose rule runs.
struct cost_visit {
    struct xpl_hlo_costs *c;
    uint32_t index;           // the instruction
    struct cost_node *n;      // where its properties go
    const uint32_t *operands; // of the instruction; NULL: it has none
    uint32_t n_operands;
    cost_entry_vec beyond; // properties of operands that `n` does not have
    bool decoded;
    struct xpl_hlo_message in; // read by xpl_cost_message
};
const struct xpl_hlo_message *xpl_cost_message(struct cost_visit *v);
// Shapes of the instruction's result, and of its operands: k < n_operands.
struct cost_shape *xpl_cost_result(const struct cost_visit *v);
struct cost_shape *xpl_cost_operand(const struct cost_visit *v, uint32_t k);

// Changes the defaults, which are the bytes of the result and of all operands, each used once: for
// the rule of an instruction.
void xpl_cost_set_operand(struct cost_visit *v, uint32_t k, float bytes);
void xpl_cost_set_utilization(struct cost_visit *v, uint32_t k, float u);
void xpl_cost_nothing(struct cost_visit *v); // neither reads nor writes
// Visits an instruction, after its operands' shapes and its computations are known.
void xpl_cost_visit_instruction(struct xpl_hlo_costs *c, uint32_t index);
// The sizes of a shape's dimensions; *ret_n of them.  They are read once and kept in the shape.
// NULL and 0 of them when the work is stopped.
const int64_t *xpl_cost_dims(struct xpl_hlo_costs *c, struct cost_shape *s, uint32_t *ret_n);

// Floating-point operations for one element of a type, by opcode.
int64_t xpl_cost_cycles(const struct xpl_hlo_costs *c, enum xpl_hlo_op op, uint32_t type);

// Rules, in movement.c, contraction.c, windows.c, collective.c and fusion.c.
void xpl_cost_dot(struct cost_visit *v);
void xpl_cost_ragged_dot(struct cost_visit *v);
void xpl_cost_convolution(struct cost_visit *v);
void xpl_cost_custom_call(struct cost_visit *v);
void xpl_cost_reduce_window(struct cost_visit *v);
void xpl_cost_select_and_scatter(struct cost_visit *v);
void xpl_cost_all_reduce(struct cost_visit *v);
void xpl_cost_all_reduce_start(struct cost_visit *v);
void xpl_cost_all_gather_start(struct cost_visit *v);
void xpl_cost_infeed(struct cost_visit *v);
void xpl_cost_outfeed(struct cost_visit *v);
void xpl_cost_all_gather(struct cost_visit *v);
void xpl_cost_reduce_scatter(struct cost_visit *v);
void xpl_cost_fusion(struct cost_visit *v);
void xpl_cost_slice(struct cost_visit *v);
void xpl_cost_dynamic_slice(struct cost_visit *v);
void xpl_cost_dynamic_update_slice(struct cost_visit *v);
void xpl_cost_transpose(struct cost_visit *v);
void xpl_cost_concatenate(struct cost_visit *v);
void xpl_cost_gather(struct cost_visit *v);
void xpl_cost_scatter(struct cost_visit *v);
void xpl_cost_reduce(struct cost_visit *v);
// The gather or scatter whose cost counts for a whole custom fusion; UINT32_MAX: none, or the work
// is stopped.
uint32_t xpl_cost_mover(struct xpl_hlo_costs *c, uint32_t fusion);
// flops of the nth computation called, for each of `times` runs of it.
float xpl_cost_combiner(struct cost_visit *v, uint32_t nth, int64_t times);
// Pairs of a kernel's and an output's position, in one dimension, that meet an element of the
// input; -1: too many to count.
struct cost_window {
    int64_t size, stride, padding_low, padding_high, dilation, base_dilation;
};
int64_t xpl_cost_valid_positions(struct xpl_hlo_costs *c, const struct cost_window *w,
                                 int64_t kernel, int64_t output, int64_t input);
void xpl_cost_window_read(xpl_bytes_t dimension, struct cost_window *ret);

// A custom call of that target is a product of matrices by cuBLAS.
bool xpl_cost_is_gemm(xpl_str_t target);
// The contracting dimensions of a cuBLAS call, from its configuration (JSON): numbers written to
// `ret`, at most `max`; how many there are.
uint32_t xpl_cost_gemm_contracting(xpl_str_t config, int64_t *ret, uint32_t max);

#endif
