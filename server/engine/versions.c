#include "server/engine/versions.h"

#include <assert.h>

#include "base/arena.h"

// The tool's version in the last three decimal digits, its products' in front: 1002 is version 2 of
// a tool of version 1 of its product.
enum { STEP = 1000 };

uint32_t xpl_answer_version(const struct xpl_tool *tool) {
    uint32_t version = 0;
    for (size_t i = 0; tool->needs[i]; i++) {
        assert(tool->needs[i]->version < STEP);
        version += tool->needs[i]->version;
    }
    assert(tool->version < STEP);
    return version * STEP + tool->version;
}

static struct xpl_store_version answer_of(const struct xpl_tool *t) {
    return (struct xpl_store_version){XPL_STORE_ANSWER, xpl_str_from(t->name),
                                      xpl_answer_version(t)};
}

struct xpl_store_version *xpl_versions_new(size_t *ret_n) {
    size_t n_products, n_tools, n = 0;
    const struct xpl_product *const *const products = xpl_products(&n_products);
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    const struct xpl_tool *const hidden[] = {&xpl_tool_op_stats, &xpl_tool_worker_op_stats};
    enum { N_HIDDEN = sizeof hidden / sizeof *hidden };
    struct xpl_store_version *const v =
        xpl_sys_alloc((n_products + n_tools + N_HIDDEN) * sizeof *v);
    if (!v) return NULL;
    for (size_t i = 0; i < n_products; i++)
        v[n++] = (struct xpl_store_version){XPL_STORE_PRODUCT, xpl_str_from(products[i]->name),
                                            products[i]->version};
    for (size_t i = 0; i < n_tools; i++)
        v[n++] = answer_of(tools[i]);
    for (size_t i = 0; i < N_HIDDEN; i++)
        v[n++] = answer_of(hidden[i]);
    *ret_n = n;
    return v;
}
