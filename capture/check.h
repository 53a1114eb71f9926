// SPDX-License-Identifier: Apache-2.0
// Checks whether bytes that arrive in pieces are an XSpace, and counts its contents: a walk over
// planes, lines and events that stores nothing and skips the insides of events and metadata.
#ifndef XPL_CAPTURE_CHECK_H_
#define XPL_CAPTURE_CHECK_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "capture/walk.h"

struct xpl_check_counts {
    uint64_t bytes, planes, lines, events;
};

enum { XPL_CHECK_TEXT = 256 };

struct xpl_check {
    struct xpl_walk walk;
    struct xpl_check_counts counts;
    char hostname[XPL_CHECK_TEXT]; // the first of XSpace.hostnames, cut; "" when there is none
    char notice[XPL_CHECK_TEXT];   // likewise of XSpace.errors, else of XSpace.warnings
    char *taking;                  // which of the two is being read
    size_t taken;                  // bytes of it
    bool has_hostname, has_error, has_warning;
};

void xpl_check_init(struct xpl_check *c);
// DATA_LOSS with the offset of the first byte that violates the format; further pieces then fail,
// too.
xpl_status_t xpl_check_put(struct xpl_check *c, xpl_bytes_t piece, struct xpl_error *err)
    XPL_NODISCARD;
// After the last piece.  DATA_LOSS: cut off in the middle, or nothing at all.  An XSpace without
// events is fine here: counts tell.
xpl_status_t xpl_check_end(struct xpl_check *c, struct xpl_error *err) XPL_NODISCARD;

#endif
