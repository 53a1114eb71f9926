// SPDX-License-Identifier: Apache-2.0
// The OpStats of one host among several.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_HOST_OPSTATS_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_HOST_OPSTATS_H_

#include "analysis/opstats/combine/outline.h"

// With neither OpStats nor an outline a host is broken, and left out.
struct xpl_host_opstats {
    xpl_str_t host;                         // file's host name, for messages
    const struct xpl_opstats *stats;        // NULL: they are got when it is the host's turn
    const struct xpl_host_outline *outline; // NULL: made of `stats`
    xpl_str_t problem;                      // why it is broken
};

static inline bool xpl_host_is_broken(const struct xpl_host_opstats *h) {
    return !h->stats && !h->outline;
}

#endif
