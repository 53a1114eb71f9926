// One pass over the events of all host threads.  It finds what three parts of the conversion need:
// host ops (with calls of tf.functions), the steps of the host, and, with cpu_as_device, the ops
// that stand for a device.  Decoding an event costs more than anything done with it, so nobody
// decodes it twice.
//
// What an event can mean is decided once per metadata entry (host_plan.c); statistics are only read
// where the plane has metadata for one that matters (host_read.c).  Lines are scanned in parallel,
// the longest first, and long ones in pieces where nothing asks for the order of a whole line;
// results are joined in file order and do not depend on timing.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_HOST_SCAN_H_
#define XPL_ANALYSIS_OPSTATS_HOST_HOST_SCAN_H_

#include "analysis/opstats/convert.h"
#include "analysis/opstats/host/cpu_line.h"
#include "analysis/opstats/host/host_ops.h"
#include "analysis/opstats/host/tf_functions.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/arena.h"

// What a line, or a piece of one, gave; NULL where there was nothing.
struct xpl_host_piece {
    uint32_t line;              // position in the plane
    uint32_t chunk, end_chunk;  // of the line's chunks; all of them for a whole line
    struct xpl_op_line *ops;    // whole lines only
    struct xpl_tf_calls *calls; // whole lines only
    struct xpl_cpu_line *cpu;
    struct xpl_step loose;
};

struct xpl_host_scan {
    bool done;
    const struct xpl_plane *plane; // "/host:CPU", NULL when the space has none
    struct xpl_host_piece *pieces; // of all lines with events, in file order
    size_t n_pieces;
    // Steps of all lines, when asked for: of a CPU-only profile in full, of a TPU's host only their
    // input_ps; none beside a GPU.
    struct xpl_steps steps;
    // Ops that count as a device's but are in no group: most of them, as XProf groups nothing that
    // runs on a thread pool of XLA.  A step of no id; its spans overlap nothing of the same line.
    struct xpl_step loose;
    struct xpl_arena arena;
    struct xpl_arena *shards; // one per piece of parallel work
    unsigned n_shards;
};

// Makes the pass unless it was made.  Results live in arenas of the scan.  RESOURCE_EXHAUSTED at a
// limit, DATA_LOSS where an event is broken, CANCELLED.
xpl_status_t xpl_host_scan_run(const struct xpl_convert *c, struct xpl_host_scan *scan,
                               struct xpl_error *err) XPL_NODISCARD;
// Accepts a zero-initialised scan.
void xpl_host_scan_fini(struct xpl_host_scan *scan);

// ---- private to the pass: what each metadata entry means (host_plan.c) ----

// Which statistics of events have to be read.
enum {
    XPL_HOST_STAGE_ID = 1 << 0,
    XPL_HOST_STAGE_NAME = 1 << 1,
    XPL_HOST_TF_OP = 1 << 2,
    XPL_HOST_TF_CALL = 1 << 3,
    XPL_HOST_HLO_OP = 1 << 4,
};

enum {
    XPL_HOST_MARKER = 1 << 0,      // an explicit marker of a step
    XPL_HOST_NOT_COMPUTE = 1 << 1, // the eager runtime itself
    XPL_HOST_FRAMEWORK = 1 << 2,   // "name:Type", an op that counts as a device's
};

// What a statistic is to an event, by its id alone.  Most carry none of these.
enum {
    XPL_HOST_ID_HELPS = 1 << 0,   // is read when the event is looked at
    XPL_HOST_ID_DECIDES = 1 << 1, // makes that the event is looked at
    XPL_HOST_ID_HLO_OP = 1 << 2,  // decides, too; see read_key in host_read.c
    XPL_HOST_ID_MODULE = 1 << 3,
    XPL_HOST_ID_PROGRAM = 1 << 4,
    XPL_HOST_ID_KEY = XPL_HOST_ID_HLO_OP | XPL_HOST_ID_MODULE | XPL_HOST_ID_PROGRAM,
    XPL_HOST_ID_EAGER = 1 << 5, // is_eager, which grouping tells of
};

struct xpl_host_md {
    uint32_t op; // index + 1 into ops; 0: not an op
    uint8_t flags;
    uint8_t span; // enum xpl_span_type
    bool plain;   // an event of it is host work like any other, unless its statistics matter
};

struct xpl_host_plan {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_host_md *md; // by position in plane->event_md
    XPL_VEC(struct xpl_host_op) ops;
    unsigned stats; // XPL_HOST_...
    // XPL_HOST_ID_... by id of a statistic, up to n_wanted.
    uint8_t *wanted;
    uint32_t n_wanted;
    bool steps, inputs_only;        // steps wanted; only their input_ps
    bool any_ops, groups, cpu;      // some metadata is an op; run group cursors; count as device
    bool whole_lines;               // some of this takes the order of a whole line
    struct xpl_map op_of_id;        // with STAGE_ID: stage or metadata id to index + 1 into ops
    struct xpl_map async_producers; // with STAGE_NAME: (type, id) of events that produce
};

xpl_status_t xpl_host_plan_make(const struct xpl_convert *c, const struct xpl_plane *plane,
                                struct xpl_arena *arena, struct xpl_host_plan *ret,
                                struct xpl_error *err) XPL_NODISCARD;

// ---- private to the pass: reading events (host_read.c) ----

// Reads a piece; what it gives lives in `arena`, which must be the same for all pieces that share
// `memory`.  The innermost ops that count as a device's stay
// open at the end of a piece that others of its line follow.
xpl_status_t xpl_host_piece_read(const struct xpl_host_plan *plan, struct xpl_host_piece *piece,
                                 struct xpl_cpu_memory *memory, struct xpl_arena *arena,
                                 struct xpl_steps *ret_steps, struct xpl_error *err) XPL_NODISCARD;
// Tells the ops that earlier pieces of the line left open what of this piece runs inside them.
xpl_status_t xpl_host_piece_pass(const struct xpl_host_plan *plan,
                                 const struct xpl_host_piece *piece, struct xpl_cpu_carry *carry,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
