// SPDX-License-Identifier: Apache-2.0
// Private to server/grpc.  What ImportSession and DeleteSession share.
#ifndef XPL_SERVER_GRPC_IMPORT_H_
#define XPL_SERVER_GRPC_IMPORT_H_

#include <pthread.h>
#include <stdatomic.h>

#include "server/grpc/services.h"
#include "storage/sessions/uploads.h"

struct import;

struct xpl_svc_import {
    struct xpl_capture_jobs *captures;
    struct xpl_catalogue *catalogue;
    struct xpl_svc_import_options o;
    struct xpl_uploads *uploads;
    struct xpl_pool *pool; // these calls wait for disks
    atomic_uint open;
    pthread_mutex_t
        decompressing; // a compressed profile is decompressed to be checked: one at a time
    pthread_mutex_t mu;
    struct import *imports; // those open, newest first
};

// DeleteSession; `service` is the struct xpl_svc_import.  On gRPC's thread; the removal itself is
// work of the pool.
void xpl_svc_delete_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service);

#endif
