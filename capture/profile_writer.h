// SPDX-License-Identifier: Apache-2.0
// How bytes become a host's file of a session: LOGDIR/plugins/profile/SESSION/HOST.xplane.pb.
// Captures and imports both come through here.
//
// The bytes are checked on their way (capture/check.h) into a file of the session
// (storage/sessions/session_writer.h), which appears complete or not at all.
//
// A session and its writers belong to one thread at a time.
#ifndef XPL_CAPTURE_PROFILE_WRITER_H_
#define XPL_CAPTURE_PROFILE_WRITER_H_

#include <stdint.h>

#include "analysis/formats/format.h"
#include "base/status.h"
#include "base/str.h"
#include "capture/check.h"
#include "storage/sessions/session_writer.h"

// Of the files that are written.
#define XPL_PROFILE_WRITER_SUFFIX XPL_FORMAT_SUFFIX

// ---- one host's file ----

struct xpl_profile_writer;

enum xpl_profile_writer_flags {
    // A host of that name in the session leads to another name ("_2" appended, and so on); without
    // it to ALREADY_EXISTS.
    XPL_PROFILE_WRITER_UNIQUE = 1,
    // Takes a profile without a single event.
    XPL_PROFILE_WRITER_ALLOW_IDLE = 2,
    // Commit does not wait for the disk: xpl_session_writer_sync does, when all is there.
    XPL_PROFILE_WRITER_SYNC_LATER = 4,
    // The file's format has a separate check, which the caller runs.
    XPL_PROFILE_WRITER_NO_XSPACE = 8,
    // The file replaces the host's file of the same format.
    XPL_PROFILE_WRITER_REPLACE = 16,
};

struct xpl_profile_writer_options {
    size_t size;        // sizeof this
    xpl_str_t host;     // whatever the host calls itself: made safe here
    unsigned flags;     // enum xpl_profile_writer_flags
    uint64_t max_bytes; // 0: no limit; more is RESOURCE_EXHAUSTED
    // NULL: XPL_PROFILE_WRITER_SUFFIX.  Otherwise the file is of another format, with this suffix
    // (a constant): its bytes are written unchecked, and xpl_profile_writer_check gets the XSpace
    // in it.
    const char *suffix;
};

xpl_status_t xpl_profile_writer_begin(struct xpl_session_writer *s,
                                      const struct xpl_profile_writer_options *opt,
                                      struct xpl_profile_writer **ret, struct xpl_error *err)
    XPL_NODISCARD;
// The next bytes of the XSpace, in pieces of any size.  After a failure (DATA_LOSS: no XSpace;
// RESOURCE_EXHAUSTED: too large, full disk) only abort is left.
xpl_status_t xpl_profile_writer_put(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                    struct xpl_error *err) XPL_NODISCARD;
// The next bytes of the XSpace that a file of another format holds, in pieces of any size.
xpl_status_t xpl_profile_writer_check(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                      struct xpl_error *err) XPL_NODISCARD;

struct xpl_profile_writer_file {
    char name[XPL_SESSION_WRITER_NAME_SIZE]; // of the host, as its file says it
    const char *suffix;                      // of the file
    struct xpl_check_counts counts;
    char hostname[XPL_CHECK_TEXT]; // the host's name in the XSpace, unchanged; "": the XSpace has
                                   // none
};
// The profiler's own complaint in the XSpace read so far, unchanged; "" without one.
const char *xpl_profile_writer_get_notice(const struct xpl_profile_writer *in);
// Checks the complete file, syncs it, and gives it its name.  DATA_LOSS: truncated, or not an
// XSpace; FAILED_PRECONDITION: no events; ALREADY_EXISTS.  Frees the writer in any case; on failure
// nothing remains.  `ret` may be NULL.
xpl_status_t xpl_profile_writer_commit(struct xpl_profile_writer *in,
                                       struct xpl_profile_writer_file *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Gives up and frees.  NULL is fine.
void xpl_profile_writer_abort(struct xpl_profile_writer *in);

// Reads an open file from its position to its end into the writer.
xpl_status_t xpl_profile_writer_put_fd(struct xpl_profile_writer *in, int fd, struct xpl_error *err)
    XPL_NODISCARD;

#endif
