// SPDX-License-Identifier: Apache-2.0
// Facts about a session from its directory other than its profiles: the time of its capture, and
// the hosts that captures requested without getting a profile.  The hosts are in the notes of
// captures (capture.json, capture_2.json, ...; capture/report.c writes them), which may have any
// contents by the time they are read: an invalid note is ignored.
//
// Threads: one at a time.  Errors: out of memory is treated as "no note".
#ifndef XPL_STORAGE_SESSIONS_ABOUT_H_
#define XPL_STORAGE_SESSIONS_ABOUT_H_

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

struct xpl_asked_host {
    xpl_str_t target, reason; // in valid UTF-8
    bool stored;
};

struct xpl_about {
    struct xpl_arena arena;
    XPL_VEC(struct xpl_asked_host) asked; // by all notes; at last, those that are lost
    size_t read;                          // bytes of the notes
};

// Whether the name is one that xpl_session_writer_note makes: "capture.json", "capture_2.json" and
// so on; not a user's file with a similar name.
bool xpl_about_is_note(xpl_str_t name);
// Adds a note's contents to *a, which is created when it is NULL.
void xpl_about_add(struct xpl_about **a, xpl_str_t note);
// Does that for the file `name` in the directory `fd`, which must be a regular file of at most 1
// MiB.
void xpl_about_add_file(struct xpl_about **a, int fd, const char *name);
// When all notes were added: only those hosts stay that gave a profile to no capture, each once.
// *a is freed, and NULL, when there are none, and when these exceed the budget that all directories
// share: then it returns false.
bool xpl_about_finish(struct xpl_about **a, struct xpl_arena_budget *budget);
// Of finished ones.
bool xpl_about_eq(const struct xpl_about *a, const struct xpl_about *b);
// NULL is fine, here and above.
void xpl_about_free(struct xpl_about *a);

// The time in a name as profilers give them to sessions ("2026_11_22_10_20_30", local time), in
// nanoseconds since 1970; 0 where the last part of `name` is none.
int64_t xpl_about_time_of_name(xpl_str_t name);

#endif
