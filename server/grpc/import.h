// SPDX-License-Identifier: Apache-2.0
// Private to server/grpc.  What ImportSession and DeleteSession share.
#ifndef XPL_SERVER_GRPC_IMPORT_H_
#define XPL_SERVER_GRPC_IMPORT_H_

#include <limits.h>
#include <stdatomic.h>

#include "server/grpc/services.h"

struct xpl_svc_import {
    struct xpl_capture_jobs *captures;
    struct xpl_catalogue *catalogue;
    struct xpl_svc_import_options o;
    char dir[PATH_MAX];
    struct xpl_pool *pool; // these calls wait for disks
    atomic_uint open;
};

// DeleteSession; `service` is the struct xpl_svc_import.  On gRPC's thread; the removal itself is
// work of the pool.
void xpl_svc_delete_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service);

#endif
