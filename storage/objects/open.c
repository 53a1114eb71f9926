// SPDX-License-Identifier: Apache-2.0
// Which implementation an object store has, and which places are in one.
#include "storage/objects/location.h"
#include "storage/objects/objects.h"
#if XPL_OBJECTS
#include "storage/objects/bucket.h"
#endif

bool xpl_objects_is_url(const char *logdir) {
    return xpl_location_is_url(logdir);
}

xpl_status_t xpl_objects_open(const struct xpl_objects_options *o, struct xpl_objects **ret,
                              struct xpl_error *err) {
#if XPL_OBJECTS
    return xpl_bucket_open(o, ret, err);
#else
    (void)o;
    (void)ret;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "--logdir: this xplaned was built without object stores (-Dobjects=enabled)");
#endif
}
