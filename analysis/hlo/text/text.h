// SPDX-License-Identifier: Apache-2.0
// The text of HLO programs, byte for byte as XProf 2.24.2 shows it: whole modules as its
// graph_viewer does, and single instructions as its op tables do.
// Rules: XLA's HloModule::ToString and HloInstruction::ToString by their observed output; cases
// that no profile has come from XProf's answers (tests/parity/hlo_text.py).
#ifndef XPL_ANALYSIS_HLO_TEXT_TEXT_H_
#define XPL_ANALYSIS_HLO_TEXT_TEXT_H_

#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/instruction.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"

enum xpl_hlo_text_form {
    XPL_HLO_TEXT_SHORT,         // short_txt: no '%', no large constants
    XPL_HLO_TEXT_LONG,          // long_txt
    XPL_HLO_TEXT_LONG_METADATA, // long_txt with show_metadata: where ops come from, and stack
                                // frames
    XPL_HLO_TEXT_EXPRESSION, // the text of an op in a table: shapes of operands, no configuration
    XPL_HLO_N_TEXT_FORMS,
};

// A cache that several texts share: texts of shapes.  It uses an arena, of which it takes at most 1
// MiB or so; one thread at a time.  Modules and their bytes must outlive it.
struct xpl_hlo_text_cache;
// NULL at the arena's limit.
struct xpl_hlo_text_cache *xpl_hlo_text_cache_new(struct xpl_arena *a);

// Appends the text of a module, read in full, to `out`.  Scratch memory comes from the arena.
// DATA_LOSS when XLA would refuse the module, or when it is nested deeper than XPL_HLO_TEXT_DEPTH
// messages; RESOURCE_EXHAUSTED at the limit of the arena or of `out`, whose contents are then
// incomplete; CANCELLED by `exec`, which is polled every thousand instructions or elements.
enum { XPL_HLO_TEXT_DEPTH = 100 };
xpl_status_t xpl_hlo_text_module(const struct xpl_hlo_module *m, enum xpl_hlo_text_form form,
                                 struct xpl_exec *exec, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Appends the text of instruction `index`, in any form, without the indentation and the "ROOT " of
// a module's text, cut after XPL_HLO_TEXT_CUT bytes as XProf cuts it.  Errors as above.
enum { XPL_HLO_TEXT_CUT = 1 << 20 };
xpl_status_t xpl_hlo_text_instruction(const struct xpl_hlo_module *m, uint32_t index,
                                      enum xpl_hlo_text_form form, struct xpl_hlo_text_cache *cache,
                                      struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Appends the text of a shape (bytes of a ShapeProto) with its layout, cut likewise.  Errors as
// above.
xpl_status_t xpl_hlo_text_shape(xpl_bytes_t shape, struct xpl_hlo_text_cache *cache,
                                struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Appends the attributes of instruction `index` as XProf's graphs show them: each after ", ",
// without called computations, configuration and metadata.  *ret_parts: the offsets, from the
// beginning of the appended text, of attributes that may contain any text; each ends where the next
// begins.  Before the first, texts are quoted.  Cut and errors as above.
enum { XPL_HLO_TEXT_PARTS = 16 };
struct xpl_hlo_text_parts {
    unsigned n;
    size_t at[XPL_HLO_TEXT_PARTS];
};
xpl_status_t xpl_hlo_text_attributes(const struct xpl_hlo_module *m, uint32_t index,
                                     struct xpl_hlo_text_cache *cache, struct xpl_buf *out,
                                     struct xpl_hlo_text_parts *ret_parts, struct xpl_error *err)
    XPL_NODISCARD;

// Appends the backend's configuration of an instruction as it is, but for empty lists of queues to
// wait for, which XLA leaves out; nothing when there is none.  Cut and errors as above.
xpl_status_t xpl_hlo_text_config(const struct xpl_hlo_module *m, uint32_t index,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// Appends the text of a shape without its layout, or of a literal (bytes of a LiteralProto) with
// all of its elements, a line for each row of a matrix, cut likewise.  Errors as above.
xpl_status_t xpl_hlo_text_plain_shape(xpl_bytes_t shape, struct xpl_hlo_text_cache *cache,
                                      struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_hlo_text_literal(xpl_bytes_t literal, struct xpl_hlo_text_cache *cache,
                                  struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// The expression of an instruction, in `a`, for tables of ops.  *cache is made in `a` when it is
// NULL, for the caller's next texts.  "" when XLA would refuse the instruction.  False at the
// arena's limit.
bool xpl_hlo_expression(const struct xpl_hlo_instruction *in, struct xpl_hlo_text_cache **cache,
                        struct xpl_arena *a, xpl_str_t *ret) XPL_NODISCARD;

#endif
