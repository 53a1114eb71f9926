// SPDX-License-Identifier: Apache-2.0
// Declarations that the files of a running capture share.
#ifndef XPL_CAPTURE_IMPL_H_
#define XPL_CAPTURE_IMPL_H_

#include "capture/capture.h"

// What a target's text says.
struct xpl_capture_address {
    bool of_pytorch;                       // "pytorch:" was in front
    char text[XPL_CAPTURE_MAX_TARGET + 8]; // "host:port" and the like
};
void xpl_capture_address(struct xpl_capture_address *ret, const char *target);

// The name of its file as XProf has it: "host_port".
void xpl_capture_target_name(char out[XPL_SESSION_WRITER_NAME_SIZE], const char *target);

// Copies a profile that a server wrote itself, below the hidden directory `hidden` of the session,
// to `w`.  NOT_FOUND when there is none.
xpl_status_t xpl_capture_shared_copy(struct xpl_session_writer *s, const char *hidden,
                                     struct xpl_profile_writer *w, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the hidden directory and its contents, if it exists.
void xpl_capture_shared_remove(struct xpl_session_writer *s, const char *hidden);

#endif
