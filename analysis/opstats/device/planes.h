// SPDX-License-Identifier: Apache-2.0
// What the walks over device planes share.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_PLANES_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_PLANES_H_

#include <stdbool.h>

#include "analysis/opstats/opstats.h"
#include "base/status.h"

// The outcome of one piece of parallel work; the first failure in plane order is reported.
struct xpl_piece {
    xpl_status_t status;
    struct xpl_error error;
};

// What a plane says of its core; not present where it says nothing.
struct xpl_plane_details {
    bool present;
    struct xpl_core_details core;
};

#endif
