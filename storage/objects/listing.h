// SPDX-License-Identifier: Apache-2.0
// A page of a bucket's listing (list type 2 of S3, which Google's XML interface has as well), read
// while it arrives.  Unknown elements are skipped; a document type is refused, and with it all
// custom entities.
#ifndef XPL_STORAGE_OBJECTS_LISTING_H_
#define XPL_STORAGE_OBJECTS_LISTING_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_listed_object {
    xpl_str_t key;
    xpl_str_t etag; // with its quotation marks; may be empty
    uint64_t size;
    int64_t mtime_ns; // since 1970; 0: it does not say
};

// Callbacks while a page is read; the texts are invalid after the call.  False ends reading: out of
// memory.
struct xpl_listing_sink {
    bool (*object)(void *arg, const struct xpl_listed_object *o);
    bool (*folder)(void *arg, xpl_str_t key); // with the delimiter at its end
    void *arg;
};

struct xpl_listing;

// `sink` outlives it.  One thread.  FAILED_PRECONDITION without Expat.
xpl_status_t xpl_listing_new(const struct xpl_listing_sink *sink, struct xpl_listing **ret,
                             struct xpl_error *err) XPL_NODISCARD;
void xpl_listing_free(struct xpl_listing *l);
// The next bytes of the page.  False: it is not needed any further, and xpl_listing_end says why.
bool xpl_listing_feed(struct xpl_listing *l, xpl_bytes_t piece);
// After the last byte: where the next page begins, empty at the end of the listing; borrowed.
// DATA_LOSS if the page is not a listing, or truncated; RESOURCE_EXHAUSTED.
xpl_status_t xpl_listing_end(struct xpl_listing *l, xpl_str_t *ret_next, struct xpl_error *err)
    XPL_NODISCARD;

// "2026-11-23T19:13:15.123Z", since 1970; 0 when it is none.
int64_t xpl_listing_time(xpl_str_t s);

// The <Code> of an error answer, letters only, in ret[0..size); "" if there is none.  Its message
// is ignored, because it may repeat sent data.
void xpl_listing_error_code(xpl_str_t body, char *ret, size_t size);

// The text of the first element of that name in a small answer, as it is, in ret[0..size); false
// when there is none, or one that is too long, or has other characters than IDs have.
bool xpl_listing_text(xpl_str_t body, const char *element, char *ret, size_t size);

#endif
