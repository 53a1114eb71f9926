// SPDX-License-Identifier: Apache-2.0
// Sessions that are made one: of processes of a job that wrote into separate directories.
//
// Which belong together is decided by the rule for files of one directory (storage/processes.h): a
// run counts as a file, whose process is its directory's (above plugins/profile, where each capture
// has a directory) and its first host's.  Captured together means: the profiles overlap in time,
// or, if they do not say when they ended, began within the distances of that rule.
#ifndef XPL_STORAGE_JOINT_H_
#define XPL_STORAGE_JOINT_H_

#include "storage/sessions/catalogue.h"

// "NAME~2" for the i-th of equal names, of which `first` keeps its name.  After the last round a
// name that no path can have, so that names that are built to collide end there.
bool xpl_joining_add_number(struct xpl_arena *a, xpl_str_t name, unsigned round, size_t i,
                            size_t first, xpl_str_t *ret);
// Sorts the hosts by name, and gives the later of equal names a number.  False on OOM.
bool xpl_joining_make_unique(struct xpl_arena *a, struct xpl_host *h, size_t n);

// Counts the ranks that are missing among the lost hosts, of which there is room for one more.
bool xpl_joining_add_lost_ranks(struct xpl_session *s, struct xpl_lost_host *lost,
                                struct xpl_arena *a);
// The session that has the hosts of all parts; those of equal names get their part's name in front.
// `ret` needs its name and path set, and shares the parts' texts.  False on OOM.
bool xpl_joining_make(const struct xpl_session *const *parts, size_t n, struct xpl_arena *a,
                      struct xpl_session *ret);

// A session with what decides whether others are joined to it.
struct xpl_run {
    const struct xpl_profile_identity *identity; // NULL: it is not joined
    bool is_own;                                 // `identity` is what a file says of itself
    const char *process;                         // NUL-terminated; as worker_len of the identity
};
// Sessions, those that are listed first, by name.
struct xpl_sessions_joined {
    struct xpl_session *v;
    size_t n, n_listed;
};
// Joins sessions, whose runs are `runs`, in groups: each gets a session "NAME+joined", by the
// first name.  *ret has all sessions, and last the parts, which are not listed.
// Copies of a profile lose their identity.  False on OOM.
bool xpl_joining_group(const struct xpl_session *sessions, struct xpl_run *runs, size_t n,
                       struct xpl_arena *a, struct xpl_arena *scratch,
                       struct xpl_sessions_joined *ret);

#endif
