// SPDX-License-Identifier: Apache-2.0
// What the file of an import lost, in the words of the product that inspects its format, or of the
// XSpace that was made of it.

#include "analysis/formats/format.h"
#include "analysis/products/product.h"
#include "analysis/wire/wire.h"
#include "analysis/xplane/fields.h"
#include "base/hash.h"
#include "cli/args.h"
#include "cli/progress/progress.h"

#define LIMIT ((size_t)64 << 30) // of memory: main.c sets that of the machine

// Whether the command has printed the warning already: `summary` makes several answers of one
// run.  Beyond 64 warnings each is printed.
static bool is_repeated(const char *run, xpl_str_t host, xpl_str_t text) {
    static uint64_t printed[64];
    static size_t n;
    const uint32_t of = xpl_hash_str(1, xpl_str_from(run));
    const uint64_t hash = (uint64_t)xpl_hash_str(of, host) << 32 | xpl_hash_str(of, text);
    for (size_t i = 0; i < n; i++)
        if (printed[i] == hash) return true;
    if (n < sizeof printed / sizeof *printed) printed[n++] = hash;
    return false;
}

void xpl_warn_of_host(const char *run, xpl_str_t host, xpl_str_t text) {
    if (is_repeated(run, host, text)) return;
    xpl_progress_hide();
    xpl_say("warning: %.*s: %.*s", XPL_STR_FMT(host), XPL_STR_FMT(text));
}

static size_t warn_of_errors(const char *run, xpl_str_t host, xpl_bytes_t xspace) {
    struct xpl_wire w = xpl_wire_begin(xspace);
    struct xpl_field f;
    size_t n = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != XSPACE_ERRORS || f.type != XPL_WIRE_LEN) continue;
        xpl_warn_of_host(run, host, (xpl_str_t){(const char *)f.len.ptr, f.len.len});
        n++;
    }
    return n;
}

void xpl_warn_of_view(const char *run, xpl_str_t host, const char *path, xpl_bytes_t file,
                      xpl_bytes_t xspace, struct xpl_exec *exec) {
    const struct xpl_format_limits limits = {.max_bytes = LIMIT, .exec = exec};
    struct xpl_profile whole = {0};
    struct xpl_error err = {0};
    void *made = NULL;
    size_t n = 0;
    if (xpl_profile_open(xpl_str_from(path), file, &limits, &whole, &err) == XPL_OK) {
        const struct xpl_product_input in = {.profile = whole.bytes, .exec = exec, .limit = LIMIT};
        const struct xpl_product *const p = xpl_products_inspecting(whole.format);
        if (p && p->make(&in, &made, &err) == XPL_OK) {
            const char *text;
            while ((text = p->warning(made, n)) && ++n)
                xpl_warn_of_host(run, host, xpl_str_from(text));
            p->free(made);
        }
        xpl_profile_close(&whole);
    }
    if (!n) n = warn_of_errors(run, host, xspace);
    if (!n)
        xpl_warn_of_host(run, host,
                         XPL_STR("the file is damaged: the answer covers its readable part"));
}
