// SPDX-License-Identifier: Apache-2.0
// Kinds of profiles: what the bytes of an opened one are.  A format makes profiles of one kind, and
// may have a view as an XSpace; a product is made of one kind, and a tool works with profiles of
// the kind of its products.
#ifndef XPL_ANALYSIS_FORMATS_KIND_H_
#define XPL_ANALYSIS_FORMATS_KIND_H_

enum xpl_kind {
    XPL_KIND_XSPACE, // an XSpace
    XPL_KIND_IREE,   // a profile bundle of IREE
    XPL_N_KINDS
};
// As listings and the API call it: "xspace", "iree".
const char *xpl_kind_name(enum xpl_kind kind);

#endif
