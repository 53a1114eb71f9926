// What the files of a running capture share.
#ifndef XPL_CAPTURE_IMPL_H_
#define XPL_CAPTURE_IMPL_H_

#include "capture/capture.h"
#include "capture/message.h"
#include "rpc/calls.h"

// How far a host was when something went wrong: it decides what is advised.
enum xpl_capture_phase { XPL_CAPTURE_AT_CONNECT, XPL_CAPTURE_AT_CALL };

// Writes into h->reason, in words that say what to do, what the server or gRPC said (`err`).
// `busy` comes back true when another profile is in the way.
void xpl_capture_explain(struct xpl_capture_host *h, const struct xpl_capture_plan *plan,
                         enum xpl_capture_phase phase, const struct xpl_error *err);
// Whether the host refuses because another profile is being taken.
bool xpl_capture_is_busy(xpl_status_t code, const char *message);

// Checks an address: "host:port", "[::1]:port", "unix:/path".
xpl_status_t xpl_capture_check_target(const char *target, struct xpl_error *err) XPL_NODISCARD;
// The name of its file as XProf has it: "host_port".
void xpl_capture_target_name(char out[XPL_PROFILE_WRITER_NAME_SIZE], const char *target);

// A profile that a server wrote itself, below the hidden directory `hidden` of the session, into
// `in`.  NOT_FOUND when there is none.
xpl_status_t xpl_capture_shared_take(struct xpl_session_writer *s, const char *hidden,
                                     struct xpl_profile_writer *in, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the hidden directory and what is in it, if it is there.
void xpl_capture_shared_remove(struct xpl_session_writer *s, const char *hidden);

#endif
