// SPDX-License-Identifier: Apache-2.0
// The memory that an HLO program needs while it runs, as its compiler assigned it: the buffers in
// each allocation, their lifetimes, and the buffers that are live at the peak.
//
// Everything is taken from the HloProto: its BufferAssignmentProto has logical buffers (a value of
// an instruction, or a part of one), allocations that hold them, and traces of the compiler's heap
// simulator.  Nothing is simulated anew but the events of one trace.  A memory space is a color:
// 0 is the device's main memory.
// Rules: XProf 2.24.2 as seen from outside (tests/parity/hlo_memory.py), where its source
// (convert/hlo_proto_to_memory_visualization_utils.cc) is of another release.
#ifndef XPL_ANALYSIS_HLO_MEMORY_MEMORY_H_
#define XPL_ANALYSIS_HLO_MEMORY_MEMORY_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/module/message.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

// A buffer below this size is not shown by itself.
enum { XPL_HLO_MEMORY_SMALL = 16384 };

// The instruction that a buffer is a value of.  Strings alias the input.
struct hlo_buffer_op {
    xpl_str_t name, opcode, op_name, source_file;
    int32_t source_line, frame;
};

struct hlo_buffer {
    int64_t id, size, color;
    int64_t instruction; // id
    xpl_bytes_t index;   // its LogicalBufferProto.Location: which part of the value
    uint32_t allocation; // that holds it; UINT32_MAX: none, and the rest says nothing
    int64_t offset;      // there
    struct hlo_buffer_op op;
    xpl_bytes_t shape; // that is shown for it: a ShapeProto
    int64_t unpadded;  // bytes of that, without the padding of layouts
    bool lives;        // in the trace of this memory space, from its event `first` to `last`
    uint32_t first, last;
    int32_t number; // among those that are shown at the peak; -1: it is not
};
// Walks the numbers that lead to its part of the value: an element of the tuple, of that one, ...
static inline struct xpl_hlo_ints xpl_hlo_buffer_index(const struct hlo_buffer *b) {
    return (struct xpl_hlo_ints){.w = xpl_wire_begin(b->index), .num = HLO_LOCATION_SHAPE_INDEX};
}

// An allocation holds a buffer.
struct hlo_assigned {
    int64_t id, size;
    uint32_t buffer; // UINT32_MAX: the id is unknown
};

struct hlo_allocation {
    int64_t index, size, color;
    bool local; // to a thread
    bool tuple, parameter, constant, live_out;
    uint32_t first, n; // assigned
    uint32_t trace;    // whose first event is about one of its buffers; UINT32_MAX: none
};
// Whether it lasts for the whole run, so that no trace is about it.
static inline bool xpl_hlo_allocation_lasts(const struct hlo_allocation *a) {
    return a->parameter || a->constant || a->live_out;
}

struct xpl_hlo_memory {
    int64_t color; // the memory space of this analysis
    xpl_str_t module, entry;
    struct hlo_buffer *buffers;         // each id once, in the order of the file
    struct hlo_allocation *allocations; // by index
    struct hlo_assigned *assigned;
    uint32_t *trace_events; // by trace: how many
    uint32_t n_buffers, n_allocations, n_assigned, n_traces;
    struct xpl_hlo_module frames; // only its tables of stack frames
    // The trace of the memory space: before each event and after the last.  None: empty.
    uint32_t n_steps;
    int64_t *heap, *unpadded_heap; // bytes
    xpl_str_t *names;              // of instructions; the last is empty
    int64_t peak, unpadded_peak;   // bytes
    uint32_t peak_step;
    // At the peak.
    int64_t lasting; // bytes of allocations that last
    uint32_t *held;  // buffers: those of lasting allocations, then the others by time
    uint32_t n_held;
    uint32_t first_shown; // XProf leaves out lasting ones of other spaces than the main memory
    int64_t small;        // bytes of those that are shown and below XPL_HLO_MEMORY_SMALL
};

// Reads the memory of a program (bytes of an HloProto) in one memory space.  Strings alias the
// input.  DATA_LOSS for an assignment that cannot be: a buffer of no instruction, negative sizes,
// sums beyond 64 bits, two allocations of one index, a buffer freed twice, one that shares its
// memory with itself.  RESOURCE_EXHAUSTED at the arena's limit, or after 2^26 steps from buffers to
// those with which they share; CANCELLED when the exec says so.
xpl_status_t xpl_hlo_memory_read(xpl_bytes_t proto, int64_t color, struct xpl_exec *exec,
                                 struct xpl_arena *a, struct xpl_hlo_memory **ret,
                                 struct xpl_error *err) XPL_NODISCARD;

// The source of a buffer's instruction, as XProf tells it of buffers.
struct xpl_hlo_buffer_source {
    xpl_str_t file;  // "" when unknown
    int32_t line;    // -1 when unknown
    xpl_str_t stack; // "file:line:column" for each frame, newlines between, innermost first
};
// The stack is in `a`, the file may be part of it.  False at the arena's limit.  Frames beyond
// XPL_HLO_MAX_FRAMES are left out: they may form a ring.
bool xpl_hlo_buffer_source(const struct xpl_hlo_memory *m, const struct hlo_buffer *b,
                           struct xpl_arena *a, struct xpl_hlo_buffer_source *ret) XPL_NODISCARD;

// Walks the instructions of a module (bytes of an HloModuleProto), of all computations.  Ends early
// where the module is malformed, and says so.
struct xpl_hlo_instruction_walk {
    struct xpl_wire module, computation;
    bool malformed;
};
struct xpl_hlo_instruction_walk xpl_hlo_instruction_walk_begin(xpl_bytes_t module);
bool xpl_hlo_instruction_walk_next(struct xpl_hlo_instruction_walk *w, xpl_bytes_t *ret);

#endif
