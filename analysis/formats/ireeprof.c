// SPDX-License-Identifier: Apache-2.0
// NAME.ireeprof: a profile bundle of IREE, as it is.  No XSpace is made of it: tools of its own
// read the bytes (analysis/ireeprof), whether the bundle is whole or not.
#include "analysis/formats/impl.h"
#include "analysis/ireeprof/reader.h"

// A bundle may be cut, but must begin as one.
xpl_status_t xpl_ireeprof_check(xpl_bytes_t file, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    return xpl_iree_open(file, false, &bundle, err);
}
