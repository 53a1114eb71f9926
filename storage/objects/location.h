// SPDX-License-Identifier: Apache-2.0
// Where objects are: a bucket and a prefix at an endpoint; and the one place that writes URLs.
//
// Signatures cover the URL as the server understands it, and libraries differ in how they get
// there.  So URLs are canonical from the start: every byte but the unreserved ones of RFC 3986 is
// %XX, and parameters are in order.
#ifndef XPL_STORAGE_OBJECTS_LOCATION_H_
#define XPL_STORAGE_OBJECTS_LOCATION_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_buf;

enum { XPL_KEY_MAX = 1024 }; // bytes of an object's key

enum xpl_object_service {
    XPL_OBJECTS_S3,  // and compatible stores
    XPL_OBJECTS_GCS, // by its XML interface
};

struct xpl_location {
    enum xpl_object_service service;
    bool path_style;          // the bucket is in the path, not in the host's name
    bool direct;              // the endpoint is this machine: no proxy is before it
    char endpoint[264];       // scheme and authority, without a slash at its end
    char bucket[224];         //
    char prefix[XPL_KEY_MAX]; // without slashes at its ends; may be empty
    char region[64];          // of the signature
};

// Whether LOGDIR is s3:// or gs://.
bool xpl_location_is_url(const char *logdir);
// `url`: s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, both literally, without decoding. `endpoint`:
// http(s)://HOST[:PORT], "" for the service's own. `region`: "" for us-east-1 (S3) or auto.
// INVALID_ARGUMENT with the fault.
xpl_status_t xpl_location_parse(const char *url, const char *endpoint, const char *region,
                                struct xpl_location *ret, struct xpl_error *err) XPL_NODISCARD;

// The domain of Amazon's services of that region.
const char *xpl_location_amazon(const char *region);

// A key that can be requested: 1 to XPL_KEY_MAX bytes, no control characters, no empty part, and no
// part "." or "..", which clients of HTTP remove.
bool xpl_location_is_key(xpl_str_t key);
// PREFIX/PATH into ret[0..size), NUL-terminated; false if that is not a valid key.
bool xpl_location_key(const struct xpl_location *l, xpl_str_t path, char *ret, size_t size);

struct xpl_url_parameter {
    const char *name;
    xpl_str_t value;
};
// The URL of an object, or with an empty key that of the bucket.  `parameters` are sorted by name.
// NUL-terminated in `ret`, which is empty before; its `failed` says when memory ran out.
void xpl_location_url(const struct xpl_location *l, xpl_str_t key,
                      const struct xpl_url_parameter *parameters, size_t n, struct xpl_buf *ret);
// Appends every byte but letters, digits and -._~ (and "/", with `slashes`) as %XX.
void xpl_location_encode(struct xpl_buf *b, xpl_str_t s, bool slashes);

// Whether that is the host of HOST[:PORT]; whether it is this machine, by a name that says so.
bool xpl_location_is_host(xpl_str_t authority, const char *host);
bool xpl_location_is_loopback(xpl_str_t authority);

#endif
