// SPDX-License-Identifier: Apache-2.0
// What a directory says of its session beside its profiles: when it was captured, and which hosts
// were asked for and gave none.  The latter stands in the notes of captures (capture.json,
// capture_2.json, ...; capture/report.c writes them), which may hold anything by the time they are
// read: what is no note says nothing.
//
// Threads: one at a time.  Errors: no memory is as good as no note.
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
};

// "capture.json", or "capture_2.json" and so on: what xpl_session_writer_note makes, and no file of
// somebody's own with a name like those.
bool xpl_about_is_note(xpl_str_t name);
// Adds what a note says to *a, which is made when it is NULL.
void xpl_about_add(struct xpl_about **a, xpl_str_t note);
// The same of the file `name` in the directory `fd`; it must be a regular one of at most 1 MiB.
void xpl_about_add_file(struct xpl_about **a, int fd, const char *name);
// When all notes were added: only those hosts stay that gave a profile to no capture, each once.
// *a is freed, and NULL, when there are none.
void xpl_about_finish(struct xpl_about **a);
// Of finished ones.
bool xpl_about_eq(const struct xpl_about *a, const struct xpl_about *b);
// NULL is fine, here and above.
void xpl_about_free(struct xpl_about *a);

// The time in a name as profilers give them to sessions ("2026_11_22_10_20_30", local time), in
// nanoseconds since 1970; 0 where the last part of `name` is none.
int64_t xpl_about_time_of_name(xpl_str_t name);

#endif
