// SPDX-License-Identifier: Apache-2.0
// Writes files into a session's directory, LOGDIR/plugins/profile/SESSION, atomically.
//
// A file is written under a hidden name, synced (or later, see below), and renamed; the rename
// replaces an existing file only on request.  An aborted write leaves nothing, not even an empty
// session directory.
//
// A session writer belongs to one thread at a time.  Any number of threads and processes may feed
// one directory.
#ifndef XPL_STORAGE_SESSIONS_SESSION_WRITER_H_
#define XPL_STORAGE_SESSIONS_SESSION_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

enum {
    XPL_PROFILE_WRITER_MAX_NAME = 128, // of a session or host, without terminator and suffix
    XPL_SESSION_WRITER_NAME_SIZE =
        XPL_PROFILE_WRITER_MAX_NAME + 16, // room for a suffix that makes a name unique
};

// Makes a name of letters, digits, '.', '_', '-', '+', '=' and '@' that does not begin with a dot:
// other characters become '_', long names are cut, an empty name becomes "host".  "ALL_HOSTS",
// which XProf reads as all hosts together, gets an underscore.  Returns the length.
size_t xpl_session_writer_safe_name(char out[XPL_SESSION_WRITER_NAME_SIZE], xpl_str_t given);
// Whether `name` can name a session or a host's file as it is; INVALID_ARGUMENT with a sentence
// about `what` ("a session") otherwise.
xpl_status_t xpl_session_writer_check_name(const char *what, xpl_str_t name, struct xpl_error *err)
    XPL_NODISCARD;
// The name that XProf gives a session of this moment: "2026_11_21_14_05_09", local time.
void xpl_session_writer_name(char out[XPL_SESSION_WRITER_NAME_SIZE], int64_t unix_s);

// ---- a session's directory ----

struct xpl_session_writer;

// A destination of sessions other than a directory: files are written below `dir`, then sent, and
// appear there atomically.  Any thread; the calls block.
struct xpl_session_remote {
    const char *dir; // exists; absolute
    uint64_t device; // distinguishes it from other destinations; not 0
    // Whether session `name` has that file at the destination; an empty `file`: any file.
    xpl_status_t (*has)(struct xpl_session_remote *r, const char *name, xpl_str_t file, bool *ret,
                        struct xpl_error *err);
    // Sends an open file.  ALREADY_EXISTS; CANCELLED; `cancel` may be NULL.
    xpl_status_t (*send)(struct xpl_session_remote *r, const char *name, const char *file, int fd,
                         const struct xpl_cancel *cancel, struct xpl_error *err);
    // Removes a file that was sent.  Errors are ignored: the caller cannot handle them.
    void (*remove)(struct xpl_session_remote *r, const char *name, const char *file);
    // take_room reserves space before bytes are written below `dir`: RESOURCE_EXHAUSTED above the
    // limit. give_room releases it once they are removed.
    xpl_status_t (*take_room)(struct xpl_session_remote *r, uint64_t bytes, struct xpl_error *err);
    void (*give_room)(struct xpl_session_remote *r, uint64_t bytes);
};

struct xpl_session_writer_options {
    size_t size;        // sizeof this
    const char *logdir; // exists; relative paths are taken from the working directory
    xpl_str_t name;     // empty: xpl_session_writer_name of now
    // False: files are added to a session of that name if there is one.  True: a session of that
    // name leads to another name ("_2" appended, and so on).
    bool unique;
    // Called with the absolute path of a session's directory before it is created: a process that
    // cleans up after a killed one has to know it by then.  NULL: none.
    void (*making)(void *arg, const char *path);
    void *making_arg;
    // Where the session goes; files are sent when they would be synced otherwise.  `logdir` is not
    // read then.  Outlives the session writer.  NULL: it stays in `logdir`.
    struct xpl_session_remote *remote;
    const struct xpl_cancel *cancel; // of sending; borrowed; may be NULL
};

// Opens the session's directory, and makes it and plugins/profile when they are missing.
// INVALID_ARGUMENT, NOT_FOUND (no such LOGDIR), PERMISSION_DENIED, RESOURCE_EXHAUSTED (full disk).
xpl_status_t xpl_session_writer_open(const struct xpl_session_writer_options *opt,
                                     struct xpl_session_writer **ret, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the directories that open made if they are empty.  All its profile writers must have
// finished.  NULL is fine.
void xpl_session_writer_close(struct xpl_session_writer *s);
// Waits until all committed files are on the disk.  On failure the caller decides which of them to
// keep (xpl_session_writer_undo).
xpl_status_t xpl_session_writer_sync(struct xpl_session_writer *s, struct xpl_error *err)
    XPL_NODISCARD;
// Removes the files that were committed through `s`, and its notes: for a capture that is
// cancelled.
void xpl_session_writer_undo(struct xpl_session_writer *s);
const char *xpl_session_writer_get_name(const struct xpl_session_writer *s);
// Its absolute path; of a session with another destination, that of its files until they are sent.
const char *xpl_session_writer_get_path(const struct xpl_session_writer *s);
// Whether the session has that file, whichever process wrote it.
xpl_status_t xpl_session_writer_has(const struct xpl_session_writer *s, const char *file, bool *ret,
                                    struct xpl_error *err) XPL_NODISCARD;
// Writes a small file next to the profiles (capture.json), atomically; never replaces: an existing
// file leads to "capture_2.json".
xpl_status_t xpl_session_writer_note(struct xpl_session_writer *s, const char *stem,
                                     const char *suffix, xpl_bytes_t bytes, struct xpl_error *err)
    XPL_NODISCARD;

// ---- one file ----

enum { XPL_SESSION_WRITER_TEMP_SIZE = 40 };

// Opens a new hidden file for writing; `temp` gets its name.
xpl_status_t xpl_session_writer_open_temp(struct xpl_session_writer *s,
                                          char temp[XPL_SESSION_WRITER_TEMP_SIZE], int *ret_fd,
                                          struct xpl_error *err) XPL_NODISCARD;
// Makes a hidden file of the file `path`: a link to it, which takes no room, or a copy, if that is
// on another file system or may not be linked.  `temp` gets its name.
xpl_status_t xpl_session_writer_add_file(struct xpl_session_writer *s, const char *path,
                                         char temp[XPL_SESSION_WRITER_TEMP_SIZE],
                                         struct xpl_error *err) XPL_NODISCARD;
// Writes all of it.
xpl_status_t xpl_session_writer_write(struct xpl_session_writer *s, int fd, xpl_bytes_t bytes,
                                      struct xpl_error *err) XPL_NODISCARD;
// How publish treats an existing file of the name.
enum xpl_session_writer_taken {
    XPL_TAKEN_REFUSE,  // ALREADY_EXISTS
    XPL_TAKEN_NUMBER,  // stem_2 + suffix is taken instead, and so on
    XPL_TAKEN_REPLACE, // it is replaced; not in a session with another destination
};
// Gives a hidden file its name: stem + suffix.  `name` (XPL_SESSION_WRITER_NAME_SIZE) is the stem,
// and becomes the one that was free.  `synced`: the file is on the disk.
xpl_status_t xpl_session_writer_publish(struct xpl_session_writer *s, const char *temp, char *name,
                                        const char *suffix, enum xpl_session_writer_taken taken,
                                        bool synced, struct xpl_error *err) XPL_NODISCARD;
// Opens a file of the session's directory for reading, never a link; -1 with errno.
int xpl_session_writer_open_file(const struct xpl_session_writer *s, const char *file);
// Locks the session's directory against other holders, in this process or another: ABORTED when
// there is one.  Where directories cannot be locked (NFS) it does nothing.
xpl_status_t xpl_session_writer_hold(struct xpl_session_writer *s, struct xpl_error *err)
    XPL_NODISCARD;
// Unlocks it, as xpl_session_writer_close does.
void xpl_session_writer_let_go(struct xpl_session_writer *s);
// Removes a hidden file.
void xpl_session_writer_drop_temp(struct xpl_session_writer *s, const char *temp);
// Removes a file that was published: name + suffix.
void xpl_session_writer_remove(struct xpl_session_writer *s, const char *name, const char *suffix);
// Translates an errno into a status, with the session's path; `what`: "writing to", "reading for".
xpl_status_t xpl_session_writer_fail(const struct xpl_session_writer *s, int errnum,
                                     const char *what, struct xpl_error *err);

// ---- hidden directories ----

// Opens the directory in which a host on the same disk left its files; -1 without one.
int xpl_session_writer_open_hidden(struct xpl_session_writer *s, const char *hidden);
// Removes it with its files.
void xpl_session_writer_remove_hidden(struct xpl_session_writer *s, const char *hidden);

#endif
