// How bytes become a host's file of a session: LOGDIR/plugins/profile/SESSION/HOST.xplane.pb.
// Captures and imports both come through here.
//
// A file appears complete or not at all: the bytes go to a hidden temporary file in the session's
// directory, are checked on their way (capture/check.h), synced (or later, see below), and renamed
// without ever replacing anything.  Whatever is given up leaves nothing, not even an empty session
// directory.
//
// A session and its intakes belong to one thread at a time.  Any number of threads and processes
// may feed one directory.
#ifndef XPL_CAPTURE_PROFILE_WRITER_H_
#define XPL_CAPTURE_PROFILE_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/formats/format.h"
#include "base/status.h"
#include "base/str.h"
#include "capture/check.h"

// Of the files that are written.
#define XPL_PROFILE_WRITER_SUFFIX XPL_FORMAT_SUFFIX

enum {
    XPL_PROFILE_WRITER_MAX_NAME = 128, // of a session or host, without terminator and suffix
    XPL_PROFILE_WRITER_NAME_SIZE =
        XPL_PROFILE_WRITER_MAX_NAME + 16, // room for what makes a name unique
};

// A name made of letters, digits, '.', '_', '-', '+', '=' and '@' that does not begin with a dot:
// everything else becomes '_', what is too long is cut, nothing becomes "host".  "ALL_HOSTS", which
// XProf reads as all hosts together, gets an underscore.  Returns the length.
size_t xpl_profile_writer_safe_name(char out[XPL_PROFILE_WRITER_NAME_SIZE], xpl_str_t given);
// Whether `name` can name a session as it is; INVALID_ARGUMENT with a sentence otherwise.
xpl_status_t xpl_profile_writer_check_session(xpl_str_t name, struct xpl_error *err) XPL_NODISCARD;
// The name that XProf gives a session of this moment: "2026_11_21_14_05_09", local time.
void xpl_session_writer_name(char out[XPL_PROFILE_WRITER_NAME_SIZE], int64_t unix_s);

// ---- a session's directory ----

struct xpl_session_writer;

struct xpl_session_writer_options {
    size_t size;        // sizeof this
    const char *logdir; // exists; relative paths are taken from the working directory
    xpl_str_t name;     // empty: xpl_session_writer_name of now
    // False: files are added to a session of that name if there is one.  True: a session of that
    // name leads to another name ("_2" appended, and so on).
    bool fresh;
};

// Opens the session's directory, and makes it and plugins/profile when they are missing.
// INVALID_ARGUMENT, NOT_FOUND (no such LOGDIR), PERMISSION_DENIED, RESOURCE_EXHAUSTED (full disk).
xpl_status_t xpl_session_writer_open(const struct xpl_session_writer_options *opt,
                                     struct xpl_session_writer **ret, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the directories that open made if they are empty.  All its intakes must be over.  NULL is
// fine.
void xpl_session_writer_close(struct xpl_session_writer *s);
// Waits until everything that was committed is on the disk.  On failure the caller decides what of
// it to keep (xpl_session_writer_undo).
xpl_status_t xpl_session_writer_sync(struct xpl_session_writer *s, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the files that were committed through `s`, and its notes: for a capture that is
// cancelled.
void xpl_session_writer_undo(struct xpl_session_writer *s);
const char *xpl_session_writer_get_name(const struct xpl_session_writer *s);
// Its absolute path.
const char *xpl_session_writer_get_path(const struct xpl_session_writer *s);
// The open directory; stays the session's.
int xpl_session_writer_get_fd(const struct xpl_session_writer *s);
// A small file beside the profiles (capture.json), atomically; never replaces: an existing file
// leads to "capture_2.json".
xpl_status_t xpl_profile_writer_note(struct xpl_session_writer *s, const char *stem,
                                     const char *suffix, xpl_bytes_t bytes, struct xpl_error *err)
    XPL_NODISCARD;

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
};

struct xpl_profile_writer_options {
    size_t size;        // sizeof this
    xpl_str_t host;     // whatever the host calls itself: made safe here
    unsigned flags;     // enum xpl_profile_writer_flags
    uint64_t max_bytes; // 0: no limit; more is RESOURCE_EXHAUSTED
};

xpl_status_t xpl_profile_writer_begin(struct xpl_session_writer *s,
                                      const struct xpl_profile_writer_options *opt,
                                      struct xpl_profile_writer **ret, struct xpl_error *err)
    XPL_NODISCARD;
// The next bytes of the XSpace, in pieces of any size.  After a failure (DATA_LOSS: no XSpace;
// RESOURCE_EXHAUSTED: too large, full disk) only abort is left.
xpl_status_t xpl_profile_writer_put(struct xpl_profile_writer *in, xpl_bytes_t piece,
                                    struct xpl_error *err) XPL_NODISCARD;
// Bytes put so far.
uint64_t xpl_profile_writer_get_bytes(const struct xpl_profile_writer *in);

struct xpl_profile_writer_file {
    char name[XPL_PROFILE_WRITER_NAME_SIZE]; // of the host, as its file says it
    struct xpl_check_counts counts;
    char hostname[256]; // what the XSpace calls its host, as it is; "" when it does not say
};
// Checks the whole, syncs it, gives it its name.  DATA_LOSS: truncated or no XSpace;
// FAILED_PRECONDITION: no events; ALREADY_EXISTS.  Frees the intake in any case; on failure nothing
// is left.  `ret` may be NULL.
xpl_status_t xpl_profile_writer_commit(struct xpl_profile_writer *in,
                                       struct xpl_profile_writer_file *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Gives up and frees.  NULL is fine.
void xpl_profile_writer_abort(struct xpl_profile_writer *in);

// Reads an open file from its position to its end into the intake.
xpl_status_t xpl_profile_writer_put_fd(struct xpl_profile_writer *in, int fd, struct xpl_error *err)
    XPL_NODISCARD;

#endif
