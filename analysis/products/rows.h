// SPDX-License-Identifier: Apache-2.0
// The products, one line each: XPL_PRODUCT_ROW(name) stands for xpl_product_name in name.c.  Behind
// it: the type of the product's values (values.h).  Included by product.h and products.c, which
// define XPL_PRODUCT_ROW, and read by meson.build.
#ifndef XPL_PRODUCT_ROW
#define XPL_PRODUCT_ROW(name)
#endif
XPL_PRODUCT_ROW(barriers)        // struct xpl_barriers_value
XPL_PRODUCT_ROW(devices)         // struct xpl_devices_value
XPL_PRODUCT_ROW(hlo_modules)     // struct xpl_hlo_modules_value
XPL_PRODUCT_ROW(imported_xspace) // struct xpl_imported_xspace_value
XPL_PRODUCT_ROW(inference)       // struct xpl_inference_value
XPL_PRODUCT_ROW(iree_bundle)     // struct xpl_iree_bundle_value
XPL_PRODUCT_ROW(megascale)       // struct xpl_megascale_value
XPL_PRODUCT_ROW(memory_profile)  // struct xpl_buf: JSON
XPL_PRODUCT_ROW(op_stats)        // struct xpl_op_stats_value
XPL_PRODUCT_ROW(perf_counters)   // struct xpl_perf_counters_value
XPL_PRODUCT_ROW(time_breakdown)  // struct xpl_time_breakdown_value
XPL_PRODUCT_ROW(trace_index)     // struct xpl_trace_index_value
XPL_PRODUCT_ROW(trace_viewer)    // struct xpl_buf: JSON
