// SPDX-License-Identifier: Apache-2.0
// Private to analysis/kineto/: a trace between reading and writing.
#ifndef XPL_ANALYSIS_KINETO_IMPL_H_
#define XPL_ANALYSIS_KINETO_IMPL_H_

#include "analysis/kineto/kineto.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// ---- texts ----

// Names of stats, and their values where they repeat, are numbered in one pool; these first.
#define XPL_KINETO_TEXTS(X)                                                                        \
    X(CORRELATION, "correlation")                                                                  \
    X(EXTERNAL_ID, "External id")                                                                  \
    X(STREAM, "stream")                                                                            \
    X(DEVICE, "device")                                                                            \
    X(BYTES, "bytes")                                                                              \
    X(GRID, "grid")                                                                                \
    X(BLOCK, "block")                                                                              \
    X(REGISTERS, "registers per thread")                                                           \
    X(SHARED, "shared memory")                                                                     \
    X(OCCUPANCY, "est. achieved occupancy %")                                                      \
    X(GRAPH_ID, "graph id")                                                                        \
    X(GRAPH_NODE_ID, "graph node id")                                                              \
    X(ADDR, "Addr")                                                                                \
    X(MEM_BYTES, "Bytes")                                                                          \
    X(TOTAL_ALLOCATED, "Total Allocated")                                                          \
    X(TOTAL_RESERVED, "Total Reserved")                                                            \
    X(DEVICE_TYPE, "Device Type")                                                                  \
    X(DEVICE_ID, "Device Id")                                                                      \
    X(NAME, "name")                                                                                \
    X(COLLECTIVE_NAME, "Collective name")                                                          \
    X(IN_NELEMS, "In msg nelems")                                                                  \
    X(OUT_NELEMS, "Out msg nelems")                                                                \
    X(GROUP_SIZE, "Group size")                                                                    \
    X(DTYPE, "dtype")                                                                              \
    X(TASK_TYPE, "Task Type")                                                                      \
    X(CONNECTION_ID, "connection_id")                                                              \
    X(LAST_KEY, "External Id")                                                                     \
    X(CORRELATION_ID, "correlation_id")                                                            \
    X(CATEGORY, "category")                                                                        \
    X(KERNEL_DETAILS, "kernel_details")                                                            \
    X(MEMCPY_DETAILS, "memcpy_details")                                                            \
    X(TF_OP, "tf_op")                                                                              \
    X(HLO_OP, "hlo_op")                                                                            \
    X(HLO_MODULE, "hlo_module")                                                                    \
    X(PYTORCH, "pytorch")                                                                          \
    X(IS_ROOT, "_r")                                                                               \
    X(STEP_NUM, "step_num")                                                                        \
    X(GRAPH_TYPE, "graph_type")                                                                    \
    X(PRODUCER_TYPE, "_pt")                                                                        \
    X(PRODUCER_ID, "_p")                                                                           \
    X(CONSUMER_TYPE, "_ct")                                                                        \
    X(CONSUMER_ID, "_c")                                                                           \
    X(PROFILER_STEP, "ProfilerStep")                                                               \
    X(ALLOCATOR, "allocator_name")                                                                 \
    X(BYTES_ALLOCATED, "bytes_allocated")                                                          \
    X(BYTES_RESERVED, "bytes_reserved")                                                            \
    X(BYTES_AVAILABLE, "bytes_available")                                                          \
    X(PEAK_BYTES, "peak_bytes_in_use")                                                             \
    X(ALLOCATION_BYTES, "allocation_bytes")                                                        \
    X(REQUESTED_BYTES, "requested_bytes")                                                          \
    X(ADDRESS, "addr")                                                                             \
    X(FRAGMENTATION, "fragmentation")                                                              \
    X(FLOW, "flow")                                                                                \
    X(CUDA_GRAPH_ID, "cuda_graph_id")                                                              \
    X(CUDA_GRAPH_NODE_ID, "cuda_graph_node_id")                                                    \
    X(GROUP_ID, "group_id")                                                                        \
    X(TF_OP_NAME, "tf_op_name")                                                                    \
    X(VALUE, "value")                                                                              \
    X(VENDOR, "device_vendor")                                                                     \
    X(GPU_NAME, "gpu_device_name")                                                                 \
    X(CORE_COUNT, "core_count")                                                                    \
    X(CLOCK_RATE, "clock_rate")                                                                    \
    X(MEMORY_SIZE, "memory_size")                                                                  \
    X(MEMORY_BANDWIDTH, "memory_bandwidth")                                                        \
    X(PEAK_TFLOPS, "peak_teraflops_per_second")                                                    \
    X(CAP_MAJOR, "compute_cap_major")                                                              \
    X(CAP_MINOR, "compute_cap_minor")                                                              \
    X(START_TIME, "profile_start_time")                                                            \
    X(FRAMEWORK, "framework")                                                                      \
    X(RANK, "rank")                                                                                \
    X(WORLD_SIZE, "world_size")                                                                    \
    X(INPUT_DIMS, "Input Dims")                                                                    \
    X(INPUT_TYPE, "Input type")                                                                    \
    X(CONCRETE_INPUTS, "Concrete Inputs")                                                          \
    X(SHAPE, "shape")                                                                              \
    X(CALL, "torch_call")                                                                          \
    X(RUN, "torch_run")

enum text {
    TEXT_NONE,
#define ROW(e, name) TEXT_##e,
    XPL_KINETO_TEXTS(ROW)
#undef ROW
        TEXT_COUNT
};

// ---- events ----

// Different values of args that are numbered, and different calls of ops: one of more than
// TEXT_BYTES counts as several.
enum { XPL_KINETO_MAX_TEXTS = 1 << 17, XPL_KINETO_TEXT_BYTES = 512 };

// Limits of what texts say, so that sums and differences of a few are numbers.
#define XPL_KINETO_LATEST_NS  (INT64_MAX / 4)
#define XPL_KINETO_MOST_BYTES (INT64_MAX / 4)
static inline int64_t xpl_kineto_bytes(int64_t v) {
    return v > XPL_KINETO_MOST_BYTES    ? XPL_KINETO_MOST_BYTES
           : v < -XPL_KINETO_MOST_BYTES ? -XPL_KINETO_MOST_BYTES
                                        : v;
}

enum category {
    CAT_OTHER,
    CAT_OP,
    CAT_ANNOTATION,
    CAT_DEVICE_ANNOTATION,
    CAT_PYTHON,
    CAT_RUNTIME,
    CAT_KERNEL,
    CAT_COPY,
    CAT_SET,
    CAT_SYNC,
    CAT_MARKER,
    CAT_MEMORY,
    CAT_OVERHEAD,
    CAT_SPAN,
    CAT_COUNTER,
    N_CATEGORIES
};
// Which kind of row events of a category are on.
enum row_kind { ROW_HOST, ROW_STREAM, ROW_SIDE, ROW_COUNTERS, N_ROW_KINDS };

struct event {
    int64_t begin, length; // ns, of the trace's own clock
    // Where its stats are in the store: a chunk's index plus 1, and the offset in it; 0: none.
    uint64_t chunk : 24, offset : 32;
    uint64_t category : 7;
    uint64_t is_step : 1; // an annotation that is one
    uint32_t name;        // in `names`
    // 1 and above: in `launches`, `device_ops` or `memory`; of ops the External id, and once they
    // are linked their longest device op, on CPUs in `cpu_ops`.
    uint32_t aux;
};
enum { XPL_KINETO_MAX_CHUNKS = (1 << 24) - 1 };

struct launch {
    uint64_t correlation;
    int64_t begin; // once threads are walked
    struct event *op;
    uint32_t path;  // of modules
    uint32_t step;  // in which it begins: index plus 1
    uint32_t order; // in the file
    bool is_graph;  // of many kernels, outside of ops
};

struct device_op {
    uint64_t correlation, external;
    int64_t length; // ns
    struct event *op;
    uint32_t name;  // in `names`
    uint32_t tf_op; // text
    uint32_t call;  // text; 0: the inputs of the op are unknown
    uint32_t step;  // in which it was launched: index plus 1
    bool is_run;    // the longest one of its op, or without an op
};

struct cpu_op { // texts: "PATH/NAME", and that with its type
    uint32_t hlo_op, tf_op;
};

struct memory {
    int64_t bytes, allocated, reserved; // the last two of what the device has then
    uint64_t address;
    int64_t begin; // once threads are walked
    struct event *op;
    uint32_t path;        // of modules
    uint32_t tf_op, call; // texts, of the op
    int32_t device_type, device_id;
    bool has_allocated, has_reserved;
    int64_t peak; // so far
};

struct row {
    xpl_str_t pid, tid;
    xpl_str_t name; // of metadata
    enum row_kind kind;
    int32_t device;       // of a stream's row; -1: unknown
    struct event *events; // in the order of the file, then of time
    uint64_t n, cap;
    XPL_VEC(uint32_t) begun; // those that have begun and not ended, the innermost last
    // Of stats: the chunk that has room, plus 1, how much of it is used, and how large all are.
    uint32_t chunk;
    size_t used, size, total;
};

// Of one time on a thread: more are not linked.
enum { XPL_KINETO_FLOWS = 64 };

struct flow {
    uint64_t id;
    int64_t at; // ns
    uint32_t row;
    bool ends;
    const struct event *op;
};

struct device_properties {
    int64_t id, memory, major, minor, cores;
    xpl_str_t name;
};

struct property { // of the file
    uint32_t key;
    xpl_str_t text;
};

struct step {
    int64_t begin, end, number;
    int64_t latest_end; // of this one and those before it
    uint32_t row, name;
};

// Losses.
struct losses {
    uint64_t damaged, first_damaged_at; // events; the offset of the first
    uint64_t untimed;                   // events without a time
    uint64_t cut_at;
    uint64_t reread;    // bytes, behind damaged events
    uint64_t calls;     // of ops, without a text
    uint64_t behind_at; // where more follows the trace; 0: nothing does
    bool cut, broken;   // broken: the source failed
};

struct chunk {
    uint8_t *p;
    size_t left; // events whose stats are here and not yet released
};

struct store { // of stats: each row has separate chunks, which are freed as its events are written
    struct chunk *chunks;
    size_t n, cap;
    uint8_t *open; // those of the event that is being read
    size_t used, room;
    uint32_t n_open;
};

// A stat as the store has it: a varint of name and kind, and the value, half as long as in an
// XSpace.
enum stat_kind { STAT_INT, STAT_UINT, STAT_REF, STAT_DOUBLE, STAT_STR };
struct stat {
    uint32_t name;
    enum stat_kind kind;
    uint64_t number;
    xpl_str_t text; // of STAT_STR; of STAT_DOUBLE its bytes
};
struct stats { // of an event
    const uint8_t *p;
    size_t size; // bytes that are left
    uint32_t n;
};

struct trace {
    struct xpl_json_reader *r;
    const struct xpl_kineto_options *options;
    struct xpl_error *err;
    struct xpl_arena_budget budget; // of all that is kept, and of the XSpace
    struct xpl_arena arena, links;  // links: what only linking needs
    struct xpl_intern *names, *texts, *categories;
    uint8_t *text_used;     // by text: bits of row kinds that use it
    uint32_t *text_next;    // by key of args: the key that followed it last
    uint32_t last_category; // text
    enum category last_category_is;
    size_t text_cap;
    uint32_t last_text;               // the highest number
    uint32_t values_left, calls_left; // how many more may be numbered
    size_t n_events;
    struct store store;
    struct xpl_buf scratch; // for texts with escapes
    XPL_VEC(struct row) rows;
    struct xpl_map row_of;          // texts of the row to its index plus 1
    uint32_t last_row[N_ROW_KINDS]; // plus 1
    XPL_VEC(struct launch) launches;
    XPL_VEC(struct device_op) device_ops;
    XPL_VEC(struct memory) memory;
    XPL_VEC(struct cpu_op) cpu_ops; // where the CPU is the device
    struct xpl_map cpu_op_of;       // by name, call and path
    struct xpl_map calls;           // by name and inputs of the op: texts
    XPL_VEC(struct flow) flows;
    XPL_VEC(struct device_properties) devices;
    XPL_VEC(struct property) properties;
    XPL_VEC(struct step) steps;
    XPL_VEC(xpl_str_t) log_warnings, log_errors;
    struct losses lost;
    int64_t base_ns;
    bool has_kineto, has_events, cancelled;
    int64_t rank, world_size; // -1: unknown
    xpl_str_t host_name;
    bool has_ops, has_stacks, has_shapes, has_amd, has_cuda, has_kernels, has_ranges;
    int64_t first_ns;
    uint32_t *op_text; // by name: of ops, "NAME:torch.TYPE"; 0: none yet
    uint32_t n_names;
    uint32_t allocation, deallocation; // names
    XPL_VEC(xpl_str_t) paths;          // of modules, from 1
    struct xpl_map path_of;
};

// What of an event's args is more than a stat.
struct args {
    uint64_t correlation, connection, external, address;
    int64_t stream, device, bytes, mem_bytes, allocated, reserved, device_type, device_id;
    int64_t registers, shared, graph_id, in_nelems, out_nelems, group_size;
    double occupancy;
    xpl_str_t grid, block, name, collective, dtype, task_type;
    uint64_t has; // bits of enum text up to TEXT_LAST_KEY
};
// Whether the trace has no device but the CPU.
static inline bool is_of_cpu(const struct trace *t) {
    return !t->device_ops.n;
}
static inline bool args_have(const struct args *a, enum text t) {
    return a->has >> t & 1;
}

// Whether a part of the trace cannot be read.
static inline bool is_damaged(const struct losses *l) {
    return l->damaged || l->cut || l->broken;
}

static inline bool has_losses(const struct losses *l) {
    return is_damaged(l) || l->behind_at;
}

// ---- read.c, event.c ----

xpl_status_t xpl_kineto_read(struct trace *t) XPL_NODISCARD;
// Reads the event whose opening brace was the last token.  False: after an error of the reader, or
// without memory, which *ret_oom says.
bool xpl_kineto_read_event(struct trace *t, bool *ret_oom);
// Ends an event that had only begun.
void xpl_kineto_end_event(struct trace *t, struct event *e, int64_t at);

// ---- store.c ----

// Before the first event: numbers the texts above.  False without memory.
bool xpl_kineto_init(struct trace *t);
// Counts bytes that the arena does not have against the budget; false when fewer are left.
bool xpl_kineto_take(struct trace *t, size_t n);
void xpl_kineto_give(struct trace *t, size_t n);
// Whether the caller has given up.
bool xpl_kineto_cancelled(struct trace *t);
// The same for long loops, which ask now and then: at their n-th event.
static inline bool xpl_kineto_cancelled_at(struct trace *t, uint64_t n) {
    return n % (1 << 14) == 0 && xpl_kineto_cancelled(t);
}
// The error after a function that says false: cancelled, or no memory.
xpl_status_t xpl_kineto_failure(struct trace *t);
// The number of a text, which often follows `before`, the number of another one; 0 without memory.
uint32_t xpl_kineto_text_after(struct trace *t, uint32_t before, xpl_str_t text);
// The number of a text; 0 without memory.
uint32_t xpl_kineto_text(struct trace *t, xpl_str_t text);
// The same of a text of which a trace may have very many: *left further ones become numbers, and
// *ret is 0 for a new one when none is left.  False without memory.
bool xpl_kineto_text_within(struct trace *t, uint32_t *left, xpl_str_t text, uint32_t *ret)
    XPL_NODISCARD;
xpl_str_t xpl_kineto_text_of(const struct trace *t, uint32_t text);
// Says that events of rows of that kind use the text.
static inline void use_text(struct trace *t, uint32_t text, enum row_kind kind) {
    t->text_used[text] |= (uint8_t)(1u << kind);
}
// Stats of an event are put between begin and end.  False without memory.
void xpl_kineto_begin_stats(struct trace *t);
bool xpl_kineto_put_number(struct trace *t, uint32_t name, enum stat_kind kind, uint64_t v);
bool xpl_kineto_put_int(struct trace *t, uint32_t name, int64_t v);
bool xpl_kineto_put_double(struct trace *t, uint32_t name, double v);
bool xpl_kineto_put_str(struct trace *t, uint32_t name, xpl_str_t v);
bool xpl_kineto_end_stats(struct trace *t, struct row *r, struct event *e);
// The same for an event that may have some already, as far as one may have so many.
bool xpl_kineto_add_stats(struct trace *t, struct row *r, struct event *e);
// Whether the open event has about as many stats as one may have: the rest of its args is left out.
bool xpl_kineto_is_full(const struct trace *t);
struct stats xpl_kineto_stats(const struct trace *t, const struct event *e);
bool xpl_kineto_next_stat(struct stats *s, struct stat *ret);
// The stats are not needed any more.  Once for each event.
void xpl_kineto_release_stats(struct trace *t, const struct event *e);
// A new last event of the row, uninitialised; NULL without memory.
struct event *xpl_kineto_push(struct trace *t, struct row *r);
void xpl_kineto_fini(struct trace *t);

// All events, row by row.
struct event_cursor {
    size_t row;
    uint64_t at, n;
};
// Asks whether to go on: also NULL when cancelled (t->cancelled).
static inline struct event *xpl_kineto_next_event(struct trace *t, struct event_cursor *c) {
    if (xpl_kineto_cancelled_at(t, c->n++)) return NULL;
    for (; c->row < t->rows.n; c->row++, c->at = 0)
        if (c->at < t->rows.v[c->row].n) return &t->rows.v[c->row].events[c->at++];
    return NULL;
}

// ---- ops.c: names of PyTorch ----

// Of the text of a category.
enum category xpl_kineto_category(xpl_str_t cat);
// Of an event of that category and name.
enum category xpl_kineto_category_of(enum category c, bool has_category, xpl_str_t name);
// Of an event without a category that torch_npu wrote: of a task of the device by its type, empty
// for calls of the host's runtime; CAT_OTHER for others.
enum category xpl_kineto_npu_category(xpl_str_t task_type, xpl_str_t name);
enum row_kind xpl_kineto_row_kind(enum category c);
// "GEMM" and so on, of an op's name.
const char *xpl_kineto_op_type(xpl_str_t op);
// The same of a kernel that no op launched.
const char *xpl_kineto_kernel_type(xpl_str_t kernel);
// Starts a graph of kernels: "cudaGraphLaunch".
bool xpl_kineto_is_graph_launch(xpl_str_t name);
// Collectives of CPUs, which are annotations: "gloo:all_reduce".
bool xpl_kineto_is_cpu_collective(xpl_str_t name);
bool xpl_kineto_is_step(xpl_str_t name, int64_t *ret_number);

// ---- call.c ----

// What the op was called with, as a text; *ret is 0 if the trace does not say so.  False without
// memory.
bool xpl_kineto_call(struct trace *t, const struct event *e, uint32_t *ret) XPL_NODISCARD;

// ---- devices.c ----

struct device_rates {
    int64_t khz, bytes_s; // of its memory, in a second
    double tflops;        // of 16-bit matrices; 0: as its cores and their clock say
};
// False: not known.
bool xpl_kineto_device_rates(const struct device_properties *d, struct device_rates *ret);

// ---- steps.c ----

// The name of an annotation without what differs between iterations: digits, and all in brackets.
// "execute_context_1(64)_generation_0(0)" is "execute_context_generation".
enum { XPL_KINETO_MAX_PATTERN = 256 };
xpl_str_t xpl_kineto_pattern(xpl_str_t name, char buf[XPL_KINETO_MAX_PATTERN]);
// Of sorted rows.  False without memory, or when cancelled.
bool xpl_kineto_find_steps(struct trace *t);

// ---- link.c ----

// Sorts the rows, and finds ops, modules and steps of launches.
xpl_status_t xpl_kineto_link(struct trace *t) XPL_NODISCARD;

// The step that an event at `at` is of: index plus 1, 0 for none.  *hint, 0 at first, makes it
// quick where times are in order.
uint32_t xpl_kineto_step_at(const struct trace *t, int64_t at, size_t *hint);

// ---- write.c ----

xpl_status_t xpl_kineto_write(struct trace *t, struct xpl_buf *out) XPL_NODISCARD;

#endif
