// SPDX-License-Identifier: Apache-2.0
// Private: objects over HTTP, by the interface of S3, which Google's XML interface shares.
#ifndef XPL_STORAGE_OBJECTS_BUCKET_H_
#define XPL_STORAGE_OBJECTS_BUCKET_H_

#include "storage/objects/objects.h"

// See xpl_objects_open.
xpl_status_t xpl_bucket_open(const struct xpl_objects_options *o, struct xpl_objects **ret,
                             struct xpl_error *err) XPL_NODISCARD;

#endif
