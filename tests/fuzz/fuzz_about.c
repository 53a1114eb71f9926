// SPDX-License-Identifier: Apache-2.0
// Notes of captures (storage/sessions/about.h): whatever they hold, the reader keeps only text, and
// each host once.
#include "base/text/utf8.h"
#include "storage/sessions/about.h"

#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_text(xpl_str_t s) {
    for (size_t n; s.len; s = xpl_str_sub(s, n, SIZE_MAX))
        if (!(n = xpl_utf8_next(s))) return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_about *a = NULL;
    const xpl_str_t all = {(const char *)data, size};
    xpl_about_add(&a, all);
    xpl_about_add(&a, xpl_str_sub(all, size / 2, SIZE_MAX));
    struct xpl_arena_budget budget;
    xpl_arena_budget_init(&budget, SIZE_MAX);
    CHECK(xpl_about_finish(&a, &budget));
    for (size_t i = 0; a && i < a->asked.n; i++) {
        const struct xpl_asked_host *const h = &a->asked.v[i];
        CHECK(h->target.len && is_text(h->target) && is_text(h->reason) && !h->stored);
        for (size_t k = 0; k < i; k++)
            CHECK(!xpl_str_eq(h->target, a->asked.v[k].target));
    }
    xpl_about_free(a);
    (void)xpl_about_time_of_name(all);
    return 0;
}
