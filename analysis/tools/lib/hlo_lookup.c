// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/hlo_lookup.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/message.h"
#include "base/text/near.h"

const struct xpl_product *const xpl_programs_needs[] = {&xpl_product_hlo_modules, NULL};

bool xpl_programs_next(struct xpl_programs *w) {
    for (; w->host < w->in->n_hosts; w->host++, w->next = 0) {
        w->from = &w->in->hosts[w->host];
        if (!w->from->products) continue;
        const struct xpl_hlo_modules_value *const v = w->from->products[0];
        while (w->next < v->n) {
            w->entry = &v->v[w->next++];
            // The remaining part of a truncated file is shown.
            if (w->entry->offset > w->from->profile.len ||
                w->entry->length > w->from->profile.len - w->entry->offset)
                continue;
            w->proto = (xpl_bytes_t){w->from->profile.ptr + w->entry->offset, w->entry->length};
            return true;
        }
    }
    return false;
}

// People leave out the program id, which is in parentheses.
static void add_near(struct xpl_near *near, xpl_str_t label) {
    size_t open = label.len;
    while (open && label.ptr[open - 1] != '(')
        open--;
    xpl_near_add(near, label);
    if (open) xpl_near_add_part(near, label, xpl_str_sub(label, 0, open - 1));
}

static xpl_status_t not_found(const struct xpl_tool_input *in, xpl_str_t label,
                              xpl_str_t program_id, struct xpl_error *err) {
    char hint[XPL_NEAR_TEXT];
    if (!label.len && !program_id.len)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                         "which HLO module: module_name=NAME(ID) or program_id=ID is missing");
    if (!label.len)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no HLO module has the program id %.*s",
                         XPL_STR_FMT(xpl_str_sub(program_id, 0, 60)));
    struct xpl_near near = xpl_near_begin(label);
    struct xpl_programs w = xpl_programs_begin(in);
    while (xpl_programs_next(&w))
        add_near(&near, w.entry->label);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no HLO module \"%.*s\"%s",
                     XPL_STR_FMT(xpl_str_sub(label, 0, 80)), xpl_near_text(&near, hint));
}

xpl_status_t xpl_programs_find(const struct xpl_tool_input *in, xpl_str_t label,
                               xpl_str_t program_id, struct xpl_programs *ret,
                               struct xpl_error *err) {
    *ret = xpl_programs_begin(in);
    while (xpl_programs_next(ret)) {
        char id[24];
        (void)snprintf(id, sizeof id, "%" PRIu64, ret->entry->program_id);
        if (label.len ? xpl_str_eq(label, ret->entry->label)
                      : xpl_str_eq(program_id, xpl_str_from(id)))
            return XPL_OK;
    }
    return not_found(in, label, program_id, err);
}

xpl_status_t xpl_programs_read(xpl_bytes_t proto, struct xpl_arena *a, struct xpl_hlo_module **ret,
                               struct xpl_error *err) {
    struct xpl_hlo_message p;
    xpl_hlo_message_read(proto, &p);
    const xpl_bytes_t module = xpl_hlo_bytes(&p, HLO_PROTO_MODULE);
    XPL_TRY(xpl_hlo_module_read_full(module, a, ret, err));
    if (!(*ret)->valid) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "XLA would refuse this HLO module");
    return XPL_OK;
}
