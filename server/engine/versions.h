// Versions of what is stored: each product's own, and each tool's together with its products'.
#ifndef XPL_SERVER_ENGINE_VERSIONS_H_
#define XPL_SERVER_ENGINE_VERSIONS_H_

#include "analysis/tools/tool.h"
#include "storage/store/store.h"

// Version of a tool's stored answers: it changes with the tool's and with those of its products.
uint32_t xpl_answer_version(const struct xpl_tool *tool);
// The versions in which results are made now, of all products and tools; freed by xpl_sys_free.
// NULL when out of memory.
struct xpl_store_version *xpl_versions_new(size_t *ret_n);

#endif
