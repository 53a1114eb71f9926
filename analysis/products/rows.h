// SPDX-License-Identifier: Apache-2.0
// The products, one line each: XPL_PRODUCT_ROW(name) stands for xpl_product_name in name.c.
// Included by products.c, which defines XPL_PRODUCT_ROW, and read by meson.build.
#ifndef XPL_PRODUCT_ROW
#define XPL_PRODUCT_ROW(name)
#endif
XPL_PRODUCT_ROW(devices)
XPL_PRODUCT_ROW(iree_bundle)
XPL_PRODUCT_ROW(memory_profile)
XPL_PRODUCT_ROW(module_list)
XPL_PRODUCT_ROW(op_stats)
XPL_PRODUCT_ROW(trace_index)
XPL_PRODUCT_ROW(trace_viewer)
