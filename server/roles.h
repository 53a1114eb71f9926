// SPDX-License-Identifier: Apache-2.0
// Which role a client's token needs (rpc/credentials.h): one table for gRPC's methods, and for the
// routes of HTTP that do the same.
#ifndef XPL_SERVER_ROLES_H_
#define XPL_SERVER_ROLES_H_

#include <stddef.h>

#include "rpc/credentials.h"

#define XPL_METHOD_CAPTURE "/xplaned.v1.CaptureService/Capture"
#define XPL_METHOD_LABEL   "/xplaned.v1.SessionService/LabelSession"

enum { XPL_ROLE_METHODS = 24 }; // of all services but those that need no token

// For a method as it is called, "/xplaned.v1.AnalysisService/GetToolData".  One that is not in the
// table needs an admin.
enum xpl_rpc_role xpl_role_of_method(const char *method);
// The i-th method of the table.
const char *xpl_role_get_method(size_t i);

#endif
