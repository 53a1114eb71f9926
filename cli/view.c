// SPDX-License-Identifier: Apache-2.0
// What a bundle of IREE lost of which an XSpace was made, in the words of its reports.
#include <stdio.h>

#include "analysis/formats/format.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "cli/args.h"
#include "cli/progress/progress.h"

#define LIMIT ((size_t)64 << 30) // of memory: the machine's own limit comes first

void xpl_warn_of_host(xpl_str_t host, xpl_str_t text) {
    xpl_progress_hide();
    xpl_say("warning: %.*s: %.*s", XPL_STR_FMT(host), XPL_STR_FMT(text));
}

void xpl_warn_of_view(xpl_str_t host, const char *path, xpl_bytes_t file, struct xpl_exec *exec) {
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = exec};
    struct xpl_profile bundle = {0};
    struct xpl_error err = {0};
    void *made = NULL;
    size_t n = 0;
    if (xpl_profile_open(xpl_str_from(path), file, &limits, &bundle, &err) == XPL_OK) {
        const struct xpl_product_input in = {.profile = bundle.bytes, .exec = exec, .limit = LIMIT};
        const struct xpl_product *const p = &xpl_product_iree_bundle;
        if (p->make(&in, &made, &err) == XPL_OK) {
            const struct xpl_iree_bundle_value *const v = made;
            for (n = 0; n < v->n_warnings; n++)
                xpl_warn_of_host(host, xpl_str_from(v->warnings[n]));
            p->free(made);
        }
        xpl_profile_close(&bundle);
    }
    if (!n)
        xpl_warn_of_host(host, XPL_STR("the file is damaged: the answer covers its readable part"));
}
