// SPDX-License-Identifier: Apache-2.0
// GetFleet of ServerService: the daemons that share a database.
#include "server/jobs/fleet.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "server/grpc/services.h"

enum { MAX_ANSWER = 64 << 20 };

static void answer(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(MAX_ANSWER);
    const struct xpl_svc_fleet *const s = service;
    struct xpl_error err = {0};
    (void)request;
    if (xpl_fleet_put_json(s->store, &out, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    Xplaned__V1__GetFleetResponse r;
    xplaned__v1__get_fleet_response__init(&r);
    r.json.data = out.p;
    r.json.len = out.n;
    xpl_rpc_finish_message(c, &r.base);
}

static void get_fleet(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_fleet *const s = service;
    xpl_svc_later(s->pool, c, request, answer, s, "too many requests wait: try again later");
}

void xpl_svc_fleet_methods(struct xpl_svc_fleet *s,
                           struct xpl_rpc_method ret[XPL_SVC_FLEET_METHODS]) {
    ret[0] = (struct xpl_rpc_method){
        .path = "/xplaned.v1.ServerService/GetFleet", .on_request = get_fleet, .service = s};
}
