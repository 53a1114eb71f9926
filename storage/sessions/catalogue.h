// SPDX-License-Identifier: Apache-2.0
// The catalogue: which profile sessions LOGDIR holds, and which hosts each has.
//
// A session is a directory with at least one profile, or a directory directly below
// **/plugins/profile (which may still be empty).  The caller decides which files are profiles, and
// of which hosts (xpl_profile_match_fn): storage knows no formats.  If a directory has several
// files of one host, the one of the best format counts, and the others are reported as problems.
// Names, in this order of priority:
//   PREFIX/plugins/profile/RUN   "PREFIX/RUN", or "RUN" without a prefix, as XProf names it
//   LOGDIR itself                the last part of its path
//   any other directory          its path relative to LOGDIR
//   LOGDIR that is a file        its host's name, with that one host
// If the files of a directory are of several captures (processes.h), the first is named as above,
// the k-th NAME#k, and one whose process has no other file there NAME/STEM.
// These rules hold for the first kind of profiles (xpl_profile_file.rank).  Of another kind, each
// file is a separate session, named by its path without the suffix; below plugins/profile, all
// files of a directory are one session, named like the directory, with the suffix appended if the
// directory has profiles of the first kind as well.
// If two directories claim one name, the later in that order (or the later path) is named "./" and
// its relative path instead.  In names that are not UTF-8, invalid bytes and '%' are written as
// %XX.  Files that start with '.' are not hosts (such as the ._x files of macOS).
//
// Symbolic links to files and directories below LOGDIR are followed; a link to a directory that we
// are inside of is a cycle and is not entered.  Links that lead out of LOGDIR are left out and
// reported as problems, unless `links_anywhere` is set.
// Clients give only names.  A name is looked up among the results of a scan, and never becomes part
// of a path that is opened.
//
// Threads: scans serialise among themselves; readers use snapshots, which never change, and never
// wait for a scan.
#ifndef XPL_STORAGE_SESSIONS_CATALOGUE_H_
#define XPL_STORAGE_SESSIONS_CATALOGUE_H_

#include "base/text/profile_file.h"
#include "storage/sessions/source.h"

struct xpl_arena;
struct xpl_cancel;
struct xpl_objects;
struct xpl_store;

enum { XPL_RANKS_OF_KIND = 64 };

struct xpl_host {
    // The file's name without its format's suffix, or that of its process (processes.h); valid
    // UTF-8.
    xpl_str_t name;
    xpl_str_t path;                     // relative to LOGDIR, bytes as on disk, NUL-terminated
    xpl_str_t version;                  // of an object, NUL-terminated; empty: a file
    struct xpl_fingerprint fingerprint; // at the time of the scan
};

// A requested host of a capture that gave no profile.  Both are valid UTF-8.
struct xpl_lost_host {
    xpl_str_t target, reason;
};

struct xpl_session {
    xpl_str_t name; // valid UTF-8
    // Path of its directory, relative to LOGDIR, bytes as on disk; "." is LOGDIR itself.  A session
    // of another kind that shares a directory has its file's path or "DIR/*.SUFFIX" instead,
    // one of several captures in a directory "DIR#2".
    xpl_str_t path;
    const struct xpl_host *hosts; // by name; 0 hosts only below plugins/profile
    size_t n_hosts;
    // Hosts whose only file is of a format that is not read: noticed, so that a request can be
    // refused by name.  They are not among `hosts`.
    const xpl_str_t *riegeli;
    size_t n_riegeli;
    uint64_t bytes;   // sum of the hosts' files
    int64_t mtime_ns; // of the newest host; 0 without hosts
    // When it was captured: the time in its first profile, else the time in its name, else the
    // modification time of its oldest file; 0 without hosts.
    int64_t captured_ns;
    const struct xpl_lost_host *lost; // by the notes of captures
    size_t n_lost;
    bool lacks_ranks;            // the last of `lost` is ranks of the job
    int64_t world_size, n_ranks; // of the job, and how many are here; -1 and 0: not said
    uint32_t n_runs;             // how many sessions it joins (joint.h); 0: it is one
    // The generation of the catalogue in which this session was last different.  Equal name and
    // equal `changed` mean: nothing changed as far as scans can see.
    uint64_t changed;
};

// A directory that a watcher should watch.
struct xpl_watch_dir {
    xpl_str_t path; // relative to LOGDIR, "." is LOGDIR itself; NUL-terminated
    bool poll;      // watching is not enough (links to files): every scan inspects it
};

struct xpl_snapshot_inner;

// Everything reachable from here lives as long as the snapshot.
struct xpl_snapshot {
    uint64_t generation; // grows with every change
    uint64_t removed;    // generation of the last change in which a session went away
    // The directory that all paths in here are relative to: LOGDIR as it was given, or, when LOGDIR
    // is a file, the directory of that file.  NUL-terminated.
    xpl_str_t base;
    bool in_bucket;                     // `base` is not a directory and cannot be watched
    bool unscanned;                     // no scan has finished yet: the contents are unknown
    const struct xpl_session *sessions; // by name
    size_t n_sessions;
    const struct xpl_watch_dir *dirs; // parents before children
    size_t n_dirs;
    // What the scan left out, and why ("a/b: Permission denied"): at most one sentence for each
    // directory and 32 in all; n_problems counts them all.
    const xpl_str_t *problems;
    size_t n_problems, n_problems_kept;
    bool is_partial; // sessions may exist that are not here: a directory cannot be read, or a limit
    struct xpl_snapshot_inner *inner;
};

struct xpl_catalogue_options {
    size_t size;        // sizeof(struct xpl_catalogue_options)
    const char *logdir; // directory or one profile
    xpl_profile_match_fn match;
    bool links_anywhere; // follow links that lead out of LOGDIR
    // Asked several times a second by the scan of xpl_catalogue_new, which then ends with
    // CANCELLED.  NULL: never.
    const struct xpl_cancel *cancel;
    // Reads the time of capture from the bytes of a profile of the best format: nanoseconds since
    // 1970, or 0.  The scan calls it once for each session and change.  NULL: the time is unknown.
    int64_t (*captured_ns)(xpl_bytes_t profile);
    // Sessions of one job's processes are joined (joint.h): their parts are found by name, and not
    // listed.  Reads from a profile of the best format when it began and ended (begin_ns,
    // written_ns), and its program; false: it does not say.  NULL: none are joined.
    bool (*identify_run)(xpl_bytes_t profile, struct xpl_profile_identity *ret);
    uint32_t
        max_dirs; // 0: 200,000, of a bucket 20,000; more are left out and reported as a problem
    uint32_t max_hosts; // 0: 1,000,000; likewise
    // LOGDIR is in this bucket, and `logdir` its URL; NULL: a directory.  The catalogue holds a
    // reference.  Listings replace checks of directories: each is renewed after `list_every_ns` (0:
    // 30 s), one without a new object after 20 times that (docs/objects.md).  Capture times then
    // come only from names and modification times.
    struct xpl_objects *objects;
    uint64_t list_every_ns;
    // The first snapshot is empty and says `unscanned`; the first scan replaces it.
    bool scan_later;
};

struct xpl_catalogue;

// Opens LOGDIR and scans it once, unless that is to be done later.  NOT_FOUND, PERMISSION_DENIED
// or INVALID_ARGUMENT with a sentence when LOGDIR cannot be used.
xpl_status_t xpl_catalogue_new(const struct xpl_catalogue_options *o, struct xpl_catalogue **ret,
                               struct xpl_error *err) XPL_NODISCARD;
// Snapshots that are still referenced stay valid.  NULL is fine.
void xpl_catalogue_free(struct xpl_catalogue *c);

enum xpl_scan {
    XPL_SCAN_MARKED, // directories marked, not watched, to be polled, or read too soon after a
                     // change
    XPL_SCAN_ALL     // every directory and host is checked; only changed directories are read
};
// Brings the catalogue up to date; *ret_changed (may be NULL) tells whether there is a new
// snapshot.  When LOGDIR itself cannot be read (unmounted, say) the last snapshot stays and the
// error says why.  Any thread; one scan at a time.
xpl_status_t xpl_catalogue_scan(struct xpl_catalogue *c, enum xpl_scan what, bool *ret_changed,
                                struct xpl_error *err) XPL_NODISCARD;
// Ends the scan under way within 64 entries of a directory; it and all later ones return CANCELLED,
// and the last snapshot stays.  Any thread.
void xpl_catalogue_stop(struct xpl_catalogue *c);
// The directory `path` of xpl_watch_dir saw an event: the next scan checks it.  Unknown paths
// are ignored.  Any thread.
void xpl_catalogue_mark(struct xpl_catalogue *c, xpl_str_t path);
// Another daemon knows session `name`, which is missing or different here: the next scan lists the
// directories on its path, when LOGDIR is a bucket.  Elsewhere scans see it anyway.  Any thread.
void xpl_catalogue_mark_session(struct xpl_catalogue *c, xpl_str_t name);
// Tells whether a watcher sees this directory; unwatched ones (how they all begin) are checked
// by every scan.  Any thread.
void xpl_catalogue_set_watched(struct xpl_catalogue *c, xpl_str_t path, bool watched);

// Lets daemons that share a store list a bucket for each other: one of them is the scanner, under a
// lease (storage/store/listings.h), and the others use its listings.  `may_scan`: this daemon may
// become the scanner.  `pull_every_ns`: how often it queries the store for changes.  Call it before
// the first scan; it does nothing for directories, and for a store that is not shared.  `store`
// outlives all scans.
void xpl_catalogue_share(struct xpl_catalogue *c, struct xpl_store *store, bool may_scan,
                         uint64_t pull_every_ns);

// The newest snapshot, referenced for the caller.  Any thread; waits for no scan.
struct xpl_snapshot *xpl_catalogue_get(struct xpl_catalogue *c);
struct xpl_snapshot *xpl_snapshot_ref(struct xpl_snapshot *s);
// NULL is fine.
void xpl_snapshot_unref(struct xpl_snapshot *s);

// O(1).  NULL when there is none of that name.
const struct xpl_session *xpl_snapshot_find(const struct xpl_snapshot *s, xpl_str_t name);
// UNAVAILABLE when nothing was listed yet: then a session may be there.
xpl_status_t xpl_snapshot_need_scan(const struct xpl_snapshot *s, struct xpl_error *err)
    XPL_NODISCARD;
// NOT_FOUND: `name` is unknown; proposes one whose name is near.  Else as
// xpl_snapshot_need_scan.
xpl_status_t xpl_snapshot_no_session(const struct xpl_snapshot *s, xpl_str_t name,
                                     struct xpl_error *err);
// Finds a session; and of several names, with commas between, the session that joins them: the
// caller's reference *s then becomes one to a copy of the snapshot, with which that session lives.
// INVALID_ARGUMENT: they are more than 256 names, 64 KiB of names or 65,536 hosts;
// RESOURCE_EXHAUSTED on OOM; else as xpl_snapshot_no_session.
xpl_status_t xpl_snapshot_find_all(struct xpl_snapshot **s, xpl_str_t names,
                                   const struct xpl_session **ret, struct xpl_error *err)
    XPL_NODISCARD;
// O(log n).  NULL when there is none of that name.
const struct xpl_host *xpl_session_find_host(const struct xpl_session *s, xpl_str_t name);
// Whether that host is there, but only in a format that is not read.
bool xpl_session_has_riegeli(const struct xpl_session *s, xpl_str_t name);
// Opens a host of this snapshot.  Errors are those of xpl_source_open(); the file is opened below
// the LOGDIR that was scanned.  An object is fetched, unless a copy is there: those of
// xpl_objects_get() then.  Any thread.
xpl_status_t xpl_snapshot_open(const struct xpl_snapshot *s, const struct xpl_host *h,
                               uint64_t max_bytes, struct xpl_source **ret, struct xpl_error *err)
    XPL_NODISCARD;

// --- Without a LOGDIR: the paths of `xplanectl analyze PATH...` ---

struct xpl_input {
    xpl_str_t name;   // of the host
    const char *path; // for xpl_source_open(AT_FDCWD, path, ...)
};
struct xpl_inputs {
    xpl_str_t session;             // name to show: the only directory's, or the first host's
    const struct xpl_input *hosts; // by name
    size_t n_hosts;
    // Files of the directory that do not count, because their host has one of a better format.
    const char *const *left_out;
    size_t n_left_out;
};
// Each path is a profile file (a host named by its file), a run directory, DIR#2 for the second of
// several captures in a directory, or a log directory with one run.  Equal names of hosts of
// different directories get the directory's name in front. INVALID_ARGUMENT is wrong usage: two
// equal host names, a log directory with several runs, a format that is not read.  NOT_FOUND: no
// such file, or a directory without profiles.  Everything in *ret lives in `arena`.
xpl_status_t xpl_inputs_from_paths(const char *const *paths, size_t n, xpl_profile_match_fn match,
                                   struct xpl_arena *arena, struct xpl_inputs *ret,
                                   struct xpl_error *err) XPL_NODISCARD;
// Whether such a path can be read: is it there?  Blocks.
bool xpl_inputs_are_there(const char *path);

#endif
