// The HLO programs of a profile: plane "/host:metadata" holds one HloProto for each compiled
// program, and device events name instructions in them by (program id, instruction name).
// Rules: XProf's utils/{hlo_proto_map,hlo_module_map,hlo_module_utils}.cc and the parts of XLA that
// they call (HloInstruction::ToCategory, HloModule::get_stack_frame).
//
// Building finds the programs and skips what is inside; a program is read when it is first asked
// for, and then only a position per instruction is kept: details are decoded for the instructions
// that events refer to.  Strings alias the input (see xspace.h): copy what must last.
#ifndef XPL_ANALYSIS_HLO_HLO_MAP_H_
#define XPL_ANALYSIS_HLO_HLO_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_hlo_map;
struct xpl_hlo_module;

// Finds the programs of a space.  Free with xpl_hlo_map_free; what is read later goes to memory of
// the map's own, at most `limit` bytes.  An HloProto that cannot be read is left out, as XProf
// does.
xpl_status_t xpl_hlo_map_new(const struct xpl_xspace *xs, size_t limit, struct xpl_hlo_map **ret,
                             struct xpl_error *err) XPL_NODISCARD;
// NULL is fine.
void xpl_hlo_map_free(struct xpl_hlo_map *m);

struct xpl_hlo_program {
    uint64_t program_id;
    xpl_str_t name; // of the module, aliases the input
};
// All programs, by program id, each id once.
const struct xpl_hlo_program *xpl_hlo_map_programs(const struct xpl_hlo_map *m, size_t *ret_n);

// ---- instructions ----

// One instruction.  A small value: its strings alias the input or are constants.
struct xpl_hlo_instruction {
    const struct xpl_hlo_module *module;
    uint32_t index;     // position among the module's instructions
    xpl_str_t name;     // without '%'
    xpl_str_t opcode;   // "fusion", "custom-call", ...
    xpl_str_t category; // HloInstruction::ToCategory: "loop fusion", "data formatting", ...
    // OpMetadata
    xpl_str_t op_type, op_name, source_file, deduplicated_name;
    int32_t source_line, stack_frame_id;
    bool has_children; // a fusion whose instructions xpl_hlo_children_next yields
};

// Looks an instruction up by name.  *ret_found is false when the program is unknown, when XLA would
// refuse its proto (no program shape, duplicate or missing names, ...), or when it has no such
// instruction.  Any thread; programs are read under a lock.  RESOURCE_EXHAUSTED at the map's limit.
xpl_status_t xpl_hlo_map_find(struct xpl_hlo_map *m, uint64_t program_id, xpl_str_t name,
                              struct xpl_hlo_instruction *ret, bool *ret_found,
                              struct xpl_error *err) XPL_NODISCARD;

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
enum { XPL_HLO_MAX_FRAMES = 4096 };
bool xpl_hlo_source(const struct xpl_hlo_instruction *in, struct xpl_arena *a,
                    struct xpl_hlo_source *ret) XPL_NODISCARD;

// The instructions of a fusion's computation, by instruction id.  Nested fusions have children of
// their own; a fused computation stands before its caller in a module, so nesting ends.
struct xpl_hlo_children {
    const struct xpl_hlo_module *module;
    uint32_t next, end;
};
void xpl_hlo_children_begin(struct xpl_hlo_children *c, const struct xpl_hlo_instruction *fusion);
bool xpl_hlo_children_next(struct xpl_hlo_children *c, struct xpl_hlo_instruction *ret);

// ---- whole programs ----

// True when an instruction of any readable program belongs to the computation of gradients
// (XProf: convert/model_tracker.cc): a TensorFlow scope "gradients..." or "gradient_tape", or a JAX
// scope "transpose(...".  Scans programs in parallel without keeping anything.
xpl_status_t xpl_hlo_map_is_training(struct xpl_hlo_map *m, struct xpl_exec *exec, bool *ret,
                                     struct xpl_error *err) XPL_NODISCARD;
// The rule itself, for one op.
bool xpl_hlo_is_gradient_op(xpl_str_t op_name, xpl_str_t op_type);

#endif
