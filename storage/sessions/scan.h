// SPDX-License-Identifier: Apache-2.0
// Between scan.c, which walks LOGDIR, and snapshot.c, which names the sessions.
#ifndef XPL_STORAGE_SESSIONS_SCAN_H_
#define XPL_STORAGE_SESSIONS_SCAN_H_

#include <stdatomic.h>

#include "base/arena.h"
#include "storage/sessions/about.h"
#include "storage/sessions/catalogue.h"

// LOGDIR as opened; shared by the catalogue and its snapshots, so that a host is opened in the
// directory that was scanned even when another took its place.
struct xpl_root {
    atomic_uint refs;
    int fd;                      // of the directory (that of the file when LOGDIR is one)
    char *links_root;            // real path to stay below, or NULL
    struct xpl_objects *objects; // LOGDIR is a bucket: fd is -1 then; or NULL
};
void xpl_root_unref(struct xpl_root *r);

struct xpl_dir_file {
    char *name;   // as on disk, with suffix
    size_t len;   // without suffix: the host's name
    bool riegeli; // of a format that is not read
    bool link;
    bool doubtful;  // its name says little
    uint8_t rank;   // of its format
    uint8_t kind;   // the same for all XSpaces: see XPL_RANKS_OF_KIND
    uint32_t group; // as struct xpl_process_file, and the next two
    bool is_twin, is_alone;
    uint32_t next; // of its group, if there are several: the index plus 1; 0: none
    char *version; // of an object, or NULL
    struct xpl_fingerprint fingerprint;
    // As struct xpl_profile_file; and its result, NULL: none.
    bool (*identify)(xpl_str_t path, xpl_bytes_t file, struct xpl_profile_identity *ret);
    struct xpl_profile_identity *identity;
};
void xpl_dir_file_fini(struct xpl_dir_file *f);
struct xpl_process_file;

struct xpl_dir {
    struct xpl_dir *parent, **children; // children by name
    size_t n_children;
    char *path; // relative to LOGDIR; "." is LOGDIR
    size_t path_len, name_at;
    struct xpl_dir_file *files; // by name
    size_t n_files, n_groups;
    uint32_t *groups; // the first file of each, as `next`; NULL: there is one group
    uint64_t dev, ino;
    int64_t mtime_ns, ctime_ns; // of a bucket: mtime_ns is that of its newest object that counts
    struct xpl_about *about;    // NULL: no notes
    int64_t captured_ns;        // of the first profile; 0: it does not say
    struct xpl_fingerprint captured_of;
    struct xpl_profile_identity run; // of the same; begin_ns is 0: it is not joined
    uint64_t list_at_ns;             // of a bucket: when it is listed again; xpl_clock_ns
    uint64_t
        listed_ns;    // when this daemon listed it beside a scanner; 0: that one's listing is newer
    bool pull;        // the scanner has another listing
    uint64_t changed; // generation in which its files, or its session's name, last changed
    bool known;       // was read at least once
    bool read_too_soon; // was read too soon after its last change to trust its times
    bool marked, watched, links;
    bool left_out;  // its profiles exceed the limit
    bool is_unread; // some of its contents are unknown
    char *problem;  // the first error in reading it, or NULL
    size_t n_problems;
};

enum { XPL_PROBLEMS_KEPT = 32 };

// Sorts the directory's files into sessions (processes.h).  False on OOM: all are of one.
bool xpl_dir_group(struct xpl_dir *d);
// What that made of a file.
struct xpl_process_file xpl_dir_file_process(const struct xpl_dir_file *f);

// Whether a file can be a profile, by its name; *ret has no host when it is none.
bool xpl_root_match(xpl_profile_match_fn match, const char *file, struct xpl_profile_file *ret);

struct xpl_snapshot_spec {
    struct xpl_root *root;
    struct xpl_dir *const *dirs; // parents before children
    size_t n_dirs;
    const char *base;      // see struct xpl_snapshot
    xpl_str_t logdir_name; // name of LOGDIR's own session
    uint64_t generation;
    const struct xpl_snapshot *before; // NULL for the first
    const char *const *limits;         // sentences about limits that cut something off
    size_t n_limits;
    bool unscanned, join;
};
// Names the sessions and copies everything.  Notes in dirs[i]->changed where a name came to mean
// another directory.  RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_snapshot_build(const struct xpl_snapshot_spec *spec, struct xpl_snapshot **ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
