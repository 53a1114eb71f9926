// SPDX-License-Identifier: Apache-2.0
// What a listing has, as bytes that daemons hand to each other: names, versions, sizes and times.
#ifndef XPL_STORAGE_STORE_LISTING_BODY_H_
#define XPL_STORAGE_STORE_LISTING_BODY_H_

#include <stdbool.h>

#include "base/str.h"

struct xpl_buf;
struct xpl_object_list;
struct xpl_stored_object;

// Append; the end is to be the last.  Names have 65,535 bytes at most.
void xpl_listing_body_put_object(struct xpl_buf *b, const struct xpl_stored_object *o);
void xpl_listing_body_put_folder(struct xpl_buf *b, xpl_str_t name);
void xpl_listing_body_end(struct xpl_buf *b, const struct xpl_object_list *list);
// Decodes it to `object` and `folder`, and sets `cut` and `n_refused`.  False: it is invalid, or a
// callback returned false; the caller then drops earlier output.  Each name is one part of a path,
// and each version is valid in a header, whatever daemon wrote the body.
bool xpl_listing_body_read(xpl_bytes_t body, struct xpl_object_list *list);

#endif
