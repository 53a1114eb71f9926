// SPDX-License-Identifier: Apache-2.0
// The HLO programs of a session, for the tools that show one of them: those of all its hosts, found
// by exact name or program id.
#ifndef XPL_ANALYSIS_TOOLS_LIB_HLO_LOOKUP_H_
#define XPL_ANALYSIS_TOOLS_LIB_HLO_LOOKUP_H_

#include "analysis/hlo/hlo_module.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"

// What such a tool needs: the hosts' programs; its row says reads_profile, too.
extern const struct xpl_product *const xpl_programs_needs[];

// Walks the programs of all hosts that have any, by host and then by label.  A program that several
// hosts ran comes once for each.
struct xpl_programs {
    const struct xpl_tool_input *in;
    size_t host, next;
    const struct xpl_module_entry *entry; // the one at hand
    const struct xpl_tool_host *from;     // its host
    xpl_bytes_t proto;                    // its HloProto
};
static inline struct xpl_programs xpl_programs_begin(const struct xpl_tool_input *in) {
    return (struct xpl_programs){.in = in};
}
bool xpl_programs_next(struct xpl_programs *w);

// The program with that label ("name(program id)"), or, when there is no label, with that program
// id in decimal; the first host's.  NOT_FOUND, with the label that is near.
xpl_status_t xpl_programs_find(const struct xpl_tool_input *in, xpl_str_t label,
                               xpl_str_t program_id, struct xpl_programs *ret,
                               struct xpl_error *err) XPL_NODISCARD;

// Reads the program of an HloProto in full.  DATA_LOSS when XLA would refuse it.
xpl_status_t xpl_programs_read(xpl_bytes_t proto, struct xpl_arena *a, struct xpl_hlo_module **ret,
                               struct xpl_error *err) XPL_NODISCARD;

#endif
