// SPDX-License-Identifier: Apache-2.0
// An instruction of an HLO program.  Strings alias the input (see xspace.h): copy those that must
// last.
#ifndef XPL_ANALYSIS_HLO_INSTRUCTION_H_
#define XPL_ANALYSIS_HLO_INSTRUCTION_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/hlo_module.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

// One instruction.  A small value: its strings alias the input or are constants.
struct xpl_hlo_instruction {
    const struct xpl_hlo_module *module;
    size_t program;     // of a map that found it; only the map can interpret it
    uint32_t index;     // position among the module's instructions
    xpl_str_t name;     // without '%'
    xpl_str_t opcode;   // "fusion", "custom-call", ...
    xpl_str_t category; // HloInstruction::ToCategory: "loop fusion", "data formatting", ...
    // OpMetadata
    xpl_str_t op_type, op_name, source_file, deduplicated_name;
    int32_t source_line, stack_frame_id;
    // Of a fusion: whose instructions xpl_hlo_children_next yields; NULL: none.
    const struct hlo_computation *fused;
};

// Decodes those of a module whose messages are long, so that xpl_hlo_module_get only copies them.
// False at the arena's limit.
bool xpl_hlo_module_decode_long(struct xpl_hlo_module *m, struct xpl_arena *a) XPL_NODISCARD;
// Decodes instruction `index` of a module.
void xpl_hlo_module_get(const struct xpl_hlo_module *m, uint32_t index,
                        struct xpl_hlo_instruction *ret);

// "op_name:op_type" as TfOpFullname gives it: "" without both; for XLA_Args and XLA_Retvals the
// type is the name.  False at the arena's limit.
bool xpl_hlo_tf_op_name(const struct xpl_hlo_instruction *in, struct xpl_arena *a, xpl_str_t *ret)
    XPL_NODISCARD;
// "op_name:op_type" always (TraceMeOp), as XProf labels the instructions inside fusions.
bool xpl_hlo_op_full_name(const struct xpl_hlo_instruction *in, struct xpl_arena *a, xpl_str_t *ret)
    XPL_NODISCARD;

// Where in the user's program an instruction came from (GetSourceInfo).
struct xpl_hlo_source {
    xpl_str_t file;  // "" when unknown
    int32_t line;    // -1 when unknown
    xpl_str_t stack; // "file:line:column\n" for each frame, innermost first; "" when unknown
};
// Strings are copied into `a`.  Frames beyond XPL_HLO_MAX_FRAMES are left out.
enum { XPL_HLO_MAX_FRAMES = 256 };
bool xpl_hlo_source(const struct xpl_hlo_instruction *in, struct xpl_arena *a,
                    struct xpl_hlo_source *ret) XPL_NODISCARD;

// The instructions of a fusion's computation, by instruction id.  Nested fusions have further
// children; a fused computation precedes its caller in a module, so nesting is finite.
struct xpl_hlo_children {
    const struct xpl_hlo_module *module;
    uint32_t next, end;
};
void xpl_hlo_children_begin(struct xpl_hlo_children *c, const struct xpl_hlo_instruction *fusion);
bool xpl_hlo_children_next(struct xpl_hlo_children *c, struct xpl_hlo_instruction *ret);

#endif
