// SPDX-License-Identifier: Apache-2.0
// Other daemons that make products for this one: what the engine asks, and server/jobs/ answers.
#ifndef XPL_SERVER_ENGINE_FRONT_H_
#define XPL_SERVER_ENGINE_FRONT_H_

#include "server/engine/products.h"

struct xpl_request;

// Products of each host of a request.  Everything is borrowed.
struct xpl_front_request {
    struct xpl_store *store; // one that has jobs
    struct xpl_product_manager *products;
    const struct xpl_request *q;
    const unsigned *variants; // of its tool's needs
    struct xpl_work_owner owner;
    size_t limit; // bytes
};

struct xpl_front {
    // Waits until workers have published what the store and memory have not got, or have left it to
    // this daemon: the caller then gets every product as usual, and makes the others.  The same
    // applies to products that were never begun if no worker runs, and to all if the database is
    // away.  ret_aside[i]: not host i's, which workers were lost with; explain_aside says so.  On
    // the calling thread.  CANCELLED, RESOURCE_EXHAUSTED.
    xpl_status_t (*wait)(const struct xpl_front_request *f, bool *ret_aside, struct xpl_error *err);
    // Why a host is set aside: an error about its file.
    xpl_status_t (*explain_aside)(const char *path, struct xpl_error *ret);
};

#endif
