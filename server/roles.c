// SPDX-License-Identifier: Apache-2.0
#include "server/roles.h"

#include <string.h>

#define ANALYSIS "/xplaned.v1.AnalysisService/"
#define SESSIONS "/xplaned.v1.SessionService/"
#define CAPTURES "/xplaned.v1.CaptureService/"
#define SERVER   "/xplaned.v1.ServerService/"
#define ANCIENT  "/tensorflow.ProfileAnalysis/"

static const struct {
    const char *method;
    enum xpl_rpc_role role;
} rows[] = {
    {ANALYSIS "GetToolData", XPL_RPC_ROLE_READ},
    {ANALYSIS "StreamToolData", XPL_RPC_ROLE_READ},
    {ANALYSIS "GetOpStats", XPL_RPC_ROLE_READ},
    {ANALYSIS "ListTools", XPL_RPC_ROLE_READ},
    {ANALYSIS "CompareSessions", XPL_RPC_ROLE_READ},
    {ANALYSIS "GetHistory", XPL_RPC_ROLE_READ},
    {ANALYSIS "RunStatement", XPL_RPC_ROLE_READ},
    {SESSIONS "ListSessions", XPL_RPC_ROLE_READ},
    {SESSIONS "GetSession", XPL_RPC_ROLE_READ},
    {SESSIONS "WatchSessions", XPL_RPC_ROLE_READ},
    {SESSIONS "ImportSession", XPL_RPC_ROLE_CAPTURE},
    {XPL_METHOD_LABEL, XPL_RPC_ROLE_CAPTURE},
    {SESSIONS "DeleteSession", XPL_RPC_ROLE_ADMIN},
    {XPL_METHOD_CAPTURE, XPL_RPC_ROLE_CAPTURE},
    {CAPTURES "CancelCapture", XPL_RPC_ROLE_CAPTURE},
    {CAPTURES "ListCaptures", XPL_RPC_ROLE_READ},
    {CAPTURES "ListSchedules", XPL_RPC_ROLE_READ},
    // Schedules go on without a client, and remove sessions of theirs.
    {CAPTURES "CreateSchedule", XPL_RPC_ROLE_ADMIN},
    {CAPTURES "DeleteSchedule", XPL_RPC_ROLE_ADMIN},
    {SERVER "GetServerStats", XPL_RPC_ROLE_READ},
    {SERVER "GetFleet", XPL_RPC_ROLE_READ},
    {ANCIENT "NewSession", XPL_RPC_ROLE_CAPTURE},
    {ANCIENT "EnumSessions", XPL_RPC_ROLE_READ},
    {ANCIENT "GetSessionToolData", XPL_RPC_ROLE_READ},
};
_Static_assert(sizeof rows / sizeof *rows == XPL_ROLE_METHODS, "each method has a row");

enum xpl_rpc_role xpl_role_of_method(const char *method) {
    for (size_t i = 0; i < XPL_ROLE_METHODS; i++)
        if (strcmp(rows[i].method, method) == 0) return rows[i].role;
    return XPL_RPC_ROLE_ADMIN;
}

const char *xpl_role_get_method(size_t i) {
    return rows[i].method;
}
