// SPDX-License-Identifier: Apache-2.0
// How long hosts hold transfers between slices up, by the plane in which MegaScale records what it
// does on the host.  A rule of our own: XProf has the column and does not fill it.
#ifndef XPL_ANALYSIS_PRODUCTS_MEGASCALE_HOST_H_
#define XPL_ANALYSIS_PRODUCTS_MEGASCALE_HOST_H_

#include "analysis/products/values.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_xspace;

// Sets executions and host_stall_ps of each of the `n` transfers. An execution is an event of plane
// "/device:CUSTOM:Megascale Trace" that is called device_N_gid_RENDEZVOUS. Held up it is while no
// action of its graph runs: neither a copy from or to the device nor one over the network. Copies
// run from their START to their END, sends and receives as long as their END says. Temporaries take
// up to `limit` bytes. DATA_LOSS, RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_megascale_read_host(const struct xpl_xspace *xs, struct xpl_exec *exec,
                                     size_t limit, struct xpl_megascale_transfer *v, size_t n,
                                     struct xpl_error *err) XPL_NODISCARD;

#endif
