// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools: the parts of memory_viewer's answers.
#ifndef XPL_ANALYSIS_TOOLS_MEMORY_VIEWER_IMPL_H_
#define XPL_ANALYSIS_TOOLS_MEMORY_VIEWER_IMPL_H_

#include "analysis/hlo/memory/memory.h"
#include "analysis/hlo/text/text.h"
#include "analysis/tools/lib/gviz.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/exec.h"

// Colors of buffers, 0xRRGGBB, in the order in which XProf gives them.
enum { MEMVIEW_COLORS = 209 };
extern const uint32_t xpl_memview_colors[MEMVIEW_COLORS];

// The picture of a heap is a square of so many points, time to the right, addresses up.
#define MEMVIEW_POINTS 4096.0

// A rectangle of the picture: an allocation, or a buffer while it lives.
struct memview_block {
    uint32_t allocation;
    uint32_t buffer;   // UINT32_MAX: the allocation itself
    int64_t offset;    // bytes, below everything
    int64_t size;      // bytes
    uint32_t from, to; // steps
    uint32_t color;    // 0xRRGGBB
    bool drawn;        // it is at least a point wide and high
};
struct memview_blocks {
    struct memview_block *v;
    uint32_t n;
    uint32_t steps; // 0: there is nothing to show
    int64_t bytes;
};

// The text of a number that was written lately.
enum { MEMVIEW_NUMBER_BITS = 8 };
struct memview_number {
    uint64_t bits;
    uint8_t length; // 0: none
    char text[31];
};

struct memview {
    const struct xpl_hlo_memory *m;
    xpl_bytes_t module; // bytes of the HloModuleProto
    struct memview_blocks blocks;
    struct xpl_hlo_text_cache *cache;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_buf scratch; // texts before they are escaped
    struct xpl_buf *out;
    struct memview_number numbers[1 << MEMVIEW_NUMBER_BITS];
};

// The allocations of the memory space that have a trace, one above the other, each followed by its
// buffers.  DATA_LOSS when they have more than 2^63 bytes together; RESOURCE_EXHAUSTED.
xpl_status_t xpl_memview_blocks(const struct xpl_hlo_memory *m, struct xpl_arena *a,
                                struct memview_blocks *ret, struct xpl_error *err) XPL_NODISCARD;

// The largest amount of scoped memory that an instruction says it uses (backend configurations of
// TPUs: used_scoped_memory_configs of memory space 1), and its name; 0 when none does.
xpl_status_t xpl_memview_scoped(xpl_bytes_t module, struct xpl_exec *exec, size_t limit,
                                int64_t *ret_bytes, xpl_str_t *ret_name, struct xpl_error *err)
    XPL_NODISCARD;

// XProf's answer.
xpl_status_t xpl_memview_json(struct memview *v, struct xpl_error *err) XPL_NODISCARD;
// The picture, as a page without scripts.
xpl_status_t xpl_memview_timeline(struct memview *v, struct xpl_error *err) XPL_NODISCARD;

// A DataTable of ours: the holders of the memory at the peak, by source line, or by op, shape and
// line; with `other`, which may be NULL, next to that of another program.
extern const struct xpl_column xpl_holder_columns[];
xpl_status_t xpl_memview_holders(struct memview *v, const struct xpl_hlo_memory *other, bool by_op,
                                 struct xpl_error *err) XPL_NODISCARD;

// Appends "name{1,0}" to `out`: the instruction, and the buffer's part of its value.
void xpl_memview_name(const struct hlo_buffer *b, struct xpl_buf *out);
// "Parameter", "Temporary", ...
xpl_str_t xpl_memview_category(const struct hlo_allocation *a);

#endif
