// SPDX-License-Identifier: Apache-2.0
// What the file of an import lost, in the words of the product that inspects its format.
#include <stdio.h>

#include "analysis/formats/format.h"
#include "analysis/products/product.h"
#include "cli/args.h"
#include "cli/progress/progress.h"

#define LIMIT ((size_t)64 << 30) // of memory: the machine's own limit comes first

void xpl_warn_of_host(xpl_str_t host, xpl_str_t text) {
    xpl_progress_hide();
    xpl_say("warning: %.*s: %.*s", XPL_STR_FMT(host), XPL_STR_FMT(text));
}

void xpl_warn_of_view(xpl_str_t host, const char *path, xpl_bytes_t file, struct xpl_exec *exec) {
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = exec};
    struct xpl_profile whole = {0};
    struct xpl_error err = {0};
    void *made = NULL;
    size_t n = 0;
    if (xpl_profile_open(xpl_str_from(path), file, &limits, &whole, &err) == XPL_OK) {
        const struct xpl_product_input in = {.profile = whole.bytes, .exec = exec, .limit = LIMIT};
        const struct xpl_product *const p = xpl_product_inspecting(whole.format);
        if (p && p->make(&in, &made, &err) == XPL_OK) {
            const char *text;
            while ((text = p->warning(made, n)) && ++n)
                xpl_warn_of_host(host, xpl_str_from(text));
            p->free(made);
        }
        xpl_profile_close(&whole);
    }
    if (!n)
        xpl_warn_of_host(host, XPL_STR("the file is damaged: the answer covers its readable part"));
}
