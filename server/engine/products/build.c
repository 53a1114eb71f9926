// SPDX-License-Identifier: Apache-2.0
// Builds: products that are being made, and their states.
#include "server/engine/products/impl.h"

#include <assert.h>

#include "base/arena.h"
#include "base/cond.h"

void xpl_product_build_set_state(struct xpl_product_manager *m, struct xpl_product_build *b,
                                 enum build_state state) {
    xpl_assert_held(&m->mu);
    assert(b->state == BUILD_MAKING || (b->state == BUILD_PARTIAL && state >= BUILD_READY));
    assert(state > b->state);
    b->state = state;
    pthread_cond_broadcast(&m->changed);
}

bool xpl_product_build_is_done(const struct xpl_product_build *b) {
    return b->state >= BUILD_READY;
}

void xpl_product_build_list(struct xpl_product_manager *m, struct xpl_product_build *b) {
    xpl_assert_held(&m->mu);
    assert(!b->listed);
    b->next = m->builds;
    m->builds = b;
    b->listed = true;
}

void xpl_product_build_unlist(struct xpl_product_manager *m, struct xpl_product_build *b) {
    xpl_assert_held(&m->mu);
    struct xpl_product_build **at = &m->builds;
    while (b->listed && *at != b)
        at = &(*at)->next;
    if (b->listed) *at = b->next;
    b->listed = false;
}

void xpl_product_build_unref(struct xpl_product_build *b) {
    assert(b->refs > 0);
    atomic_store(&b->others, --b->refs > 1);
    if (b->refs) return;
    if (b->handle) xpl_object_unref(&b->handle->object);
    xpl_sys_free(b);
}

static bool build_is_for(const struct xpl_product_build *b, const struct xpl_product *product,
                         unsigned variant, const struct xpl_fingerprint *fingerprint) {
    return b->product == product && b->variant == variant &&
           xpl_fingerprint_eq(&b->fingerprint, fingerprint);
}

// A build that a prefetch makes counts only with `prefetches`.
struct xpl_product_build *xpl_product_build_find(struct xpl_product_manager *m,
                                                 const struct xpl_product *product,
                                                 unsigned variant,
                                                 const struct xpl_fingerprint *fingerprint,
                                                 bool prefetches) {
    xpl_assert_held(&m->mu);
    struct xpl_product_build *b = m->builds;
    while (b && (!build_is_for(b, product, variant, fingerprint) || (b->prefetch && !prefetches)))
        b = b->next;
    return b;
}
