// SPDX-License-Identifier: Apache-2.0
// The OpStats of one host among several.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_HOST_OPSTATS_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_HOST_OPSTATS_H_

#include "analysis/opstats/opstats.h"

struct xpl_host_opstats {
    xpl_str_t host;                  // file's host name, for messages
    const struct xpl_opstats *stats; // NULL: broken, left out
    xpl_str_t problem;               // why it is NULL
};

#endif
