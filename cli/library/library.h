// SPDX-License-Identifier: Apache-2.0
// libxplaned, loaded when a command first calls it.  It brings gRPC, and with it 50 libraries and
// 20 MiB: ten times what a command that reads files takes to start.
//
// Whoever includes this calls the functions of client/xplaned.h as they are.  Any thread.
#ifndef XPL_CLI_LIBRARY_LIBRARY_H_
#define XPL_CLI_LIBRARY_LIBRARY_H_

#include <stdbool.h>

#include "client/xplaned.h"

typedef void xpl_library_function(void);
// A function of the library.  Ends the program where the library is missing, or too old.
xpl_library_function *xpl_library_find(const char *name);
// Whether there is a library.
bool xpl_library_is_there(void);
#define XPL_LIBRARY_FIND(name) ((__typeof__(&(name)))xpl_library_find(#name))

#define xpl_answer_content_type   XPL_LIBRARY_FIND(xpl_answer_content_type)
#define xpl_answer_data           XPL_LIBRARY_FIND(xpl_answer_data)
#define xpl_answer_free           XPL_LIBRARY_FIND(xpl_answer_free)
#define xpl_answer_source         XPL_LIBRARY_FIND(xpl_answer_source)
#define xpl_answer_warning        XPL_LIBRARY_FIND(xpl_answer_warning)
#define xpl_capture_direct        XPL_LIBRARY_FIND(xpl_capture_direct)
#define xpl_captures_free         XPL_LIBRARY_FIND(xpl_captures_free)
#define xpl_captures_get          XPL_LIBRARY_FIND(xpl_captures_get)
#define xpl_captures_schedule     XPL_LIBRARY_FIND(xpl_captures_schedule)
#define xpl_client_cancel_capture XPL_LIBRARY_FIND(xpl_client_cancel_capture)
#define xpl_client_capture        XPL_LIBRARY_FIND(xpl_client_capture)
#define xpl_client_captures       XPL_LIBRARY_FIND(xpl_client_captures)
#define xpl_client_close          XPL_LIBRARY_FIND(xpl_client_close)
#define xpl_client_compare        XPL_LIBRARY_FIND(xpl_client_compare)
#define xpl_client_delete_session XPL_LIBRARY_FIND(xpl_client_delete_session)
#define xpl_client_fleet          XPL_LIBRARY_FIND(xpl_client_fleet)
#define xpl_client_history        XPL_LIBRARY_FIND(xpl_client_history)
#define xpl_client_import         XPL_LIBRARY_FIND(xpl_client_import)
#define xpl_client_label          XPL_LIBRARY_FIND(xpl_client_label)
#define xpl_client_op_stats       XPL_LIBRARY_FIND(xpl_client_op_stats)
#define xpl_client_open           XPL_LIBRARY_FIND(xpl_client_open)
#define xpl_client_schedule       XPL_LIBRARY_FIND(xpl_client_schedule)
#define xpl_client_session        XPL_LIBRARY_FIND(xpl_client_session)
#define xpl_client_sessions       XPL_LIBRARY_FIND(xpl_client_sessions)
#define xpl_client_sql            XPL_LIBRARY_FIND(xpl_client_sql)
#define xpl_client_tool           XPL_LIBRARY_FIND(xpl_client_tool)
#define xpl_client_unschedule     XPL_LIBRARY_FIND(xpl_client_unschedule)
#define xpl_client_version        XPL_LIBRARY_FIND(xpl_client_version)
#define xpl_sessions_count        XPL_LIBRARY_FIND(xpl_sessions_count)
#define xpl_sessions_free         XPL_LIBRARY_FIND(xpl_sessions_free)
#define xpl_sessions_get          XPL_LIBRARY_FIND(xpl_sessions_get)

#endif
