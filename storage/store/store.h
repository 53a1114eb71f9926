// SPDX-License-Identifier: Apache-2.0
// The store: what xplaned has made of profiles.  An interface; storage/store/sqlite implements it
// with the database DIR/cache.db, which one daemon writes, storage/store/postgresql with a database
// that many daemons write.  tests/unit/storage/test_store_conformance.c tests both.
//
// Everything in it can be made again, so the store never stands in the way: what cannot be read is
// a miss, what cannot be written is dropped and counted.  A result comes back only when it was
// committed whole, for exactly the key asked for, and with its checksum right.  No SQL leaves
// storage/.
//
// What is kept hangs on the ids of profiles, not on the files they lie in: a copy, another path or
// a remount find it again.
//
// Threads: xpl_store_get/has/find/list/stats/next_notice/check/secret may be called by any number
// of threads.  The functions that write are for one thread at a time (they serialise by themselves,
// and block each other for as long as a transaction lasts); between begin and commit they belong to
// one thread.  Errors: texts name the database.
#ifndef XPL_STORAGE_STORE_STORE_H_
#define XPL_STORAGE_STORE_STORE_H_

#include "storage/sessions/source.h"
#include "storage/store/profile_id.h"
#include "storage/store/rows.h"

struct xpl_captures_ops;
struct xpl_job_ops;
struct xpl_cancel;
struct xpl_snapshot;
struct xpl_store;

// A result is at most this long (SQLite's limit is 10^9 bytes with its record around it).
#define XPL_STORE_MAX_RESULT ((size_t)900 << 20)
// And what stands beside it (warnings, ...) at most this long.
#define XPL_STORE_MAX_META ((size_t)1 << 20)

enum xpl_store_role {
    XPL_STORE_OFF,    // no database: every get misses, every put is dropped
    XPL_STORE_READER, // another daemon writes it, or the file or directory cannot be written
    XPL_STORE_WRITER
};

struct xpl_store_options {
    size_t size;     // sizeof(struct xpl_store_options)
    const char *dir; // made, with its parents, when missing; not used with a `url`
    uint64_t
        limit_bytes;  // of the database's used pages; the least recently used results go; 0: none
    unsigned readers; // gets that run at once; 0: 4
    bool read_only;   // never write, even if nobody else does
    // postgresql://USER@HOST:PORT/DATABASE: there instead of in `dir`; NULL or "": in `dir`.
    const char *url;
};

// ---- types ----

// Products of one host, and answers of tools for one or more hosts.
enum xpl_store_kind { XPL_STORE_PRODUCT = 1, XPL_STORE_ANSWER = 2 };

// What a result was made from, of which kind it is, and how it was made.
struct xpl_store_key {
    enum xpl_store_kind kind;
    xpl_str_t name;                        // product or tool
    xpl_str_t options;                     // canonical text; equal options must give equal text
    uint32_t version;                      // of the product or tool
    const struct xpl_profile_id *profiles; // of the hosts, in the order used
    const xpl_str_t *hosts;                // their names, or NULL when the result shows none
    size_t n_profiles;
};

struct xpl_store_value {
    uint8_t *data; // from xpl_sys_alloc, the caller's (xpl_sys_free); not NULL even when len is 0
    size_t len;
    uint8_t *meta; // what was put beside it; NULL when meta_len is 0; the caller's as well
    size_t meta_len;
};

// The version in which the results of a product or tool are made now.
struct xpl_store_version {
    enum xpl_store_kind kind;
    xpl_str_t name;
    uint32_t version;
};

struct xpl_store_maintenance {
    // Results of these names in other versions are removed; those of other names stay.
    const struct xpl_store_version *current;
    size_t n_current;
    int64_t gone_s; // results and rows of profiles gone for longer than so many seconds go
    const struct xpl_cancel *cancel; // SQLite: a statement ends with it; NULL: none does
};

struct xpl_store_stats {
    enum xpl_store_role role;
    uint64_t hits, misses;            // of xpl_store_get
    uint64_t read_errors;             // misses because the database could not be read
    uint64_t puts;                    // writing calls whose work was committed
    uint64_t dropped;                 // those whose work was not
    uint64_t evicted;                 // results removed to stay under the limit
    uint64_t rebuilds;                // databases moved aside
    uint64_t statements;              // sent to a server; 0 of a file
    uint64_t used_bytes, limit_bytes; // pages in use, as of the last write or open
    bool catalogue_known; // the tables of sessions and hosts are what put_catalogue wrote last
};

enum { XPL_STORE_SECRET = 192 };

// One remembered file.  False ends the list.
typedef bool xpl_store_file_fn(void *arg, const struct xpl_fingerprint *file,
                               const struct xpl_profile_id *profile);

// An implementation.  Each function does what the one of its name says below.
struct xpl_store_ops {
    void (*close)(struct xpl_store *s);
    enum xpl_store_role (*role)(struct xpl_store *s);
    bool (*next_notice)(struct xpl_store *s, char *buf, size_t size);
    xpl_status_t (*get)(struct xpl_store *s, const struct xpl_store_key *key, size_t max_bytes,
                        struct xpl_store_value *ret, struct xpl_error *err);
    bool (*has)(struct xpl_store *s, const struct xpl_store_key *key);
    uint64_t (*get_secret)(struct xpl_store *s, uint8_t ret[XPL_STORE_SECRET]);
    uint64_t (*secret_generation)(struct xpl_store *s);
    bool (*find_file)(struct xpl_store *s, const struct xpl_fingerprint *file,
                      struct xpl_profile_id *ret);
    bool (*has_size)(struct xpl_store *s, uint64_t bytes);
    bool (*list_files)(struct xpl_store *s, size_t max, xpl_store_file_fn *each, void *arg);
    // Of many at once; NULL: they are asked for one by one.
    void (*has_many)(struct xpl_store *s, const struct xpl_store_key *keys, size_t n, bool *ret);
    void (*find_files)(struct xpl_store *s, const struct xpl_fingerprint *const *files, size_t n,
                       struct xpl_profile_id *ret, bool *known);
    xpl_status_t (*begin)(struct xpl_store *s, struct xpl_error *err);
    xpl_status_t (*commit)(struct xpl_store *s, struct xpl_error *err);
    void (*rollback)(struct xpl_store *s);
    xpl_status_t (*put)(struct xpl_store *s, const struct xpl_store_key *key, xpl_bytes_t data,
                        xpl_bytes_t meta, struct xpl_error *err);
    xpl_status_t (*put_file)(struct xpl_store *s, const struct xpl_fingerprint *file,
                             const struct xpl_profile_id *profile, struct xpl_error *err);
    xpl_status_t (*put_rows)(struct xpl_store *s, const struct xpl_profile_id *profile,
                             uint32_t version, const struct xpl_rows *rows, struct xpl_error *err);
    bool (*has_rows)(struct xpl_store *s, const struct xpl_profile_id *profile,
                     enum xpl_rows_kind kind, uint32_t version);
    xpl_status_t (*put_catalogue)(struct xpl_store *s, const struct xpl_snapshot *snap,
                                  const struct xpl_cancel *cancel, struct xpl_error *err);
    xpl_status_t (*maintain)(struct xpl_store *s, const struct xpl_store_maintenance *m,
                             bool *ret_more, struct xpl_error *err);
    bool (*was_unclean)(struct xpl_store *s);
    xpl_status_t (*check)(struct xpl_store *s, bool (*stop)(void *ctx), void *ctx,
                          struct xpl_error *err);
    void (*get_stats)(struct xpl_store *s, struct xpl_store_stats *ret);
    // storage/store/jobs.h, captures.h and listings.h; NULL: daemons do not share it.
    const struct xpl_job_ops *jobs;
    const struct xpl_captures_ops *captures;
    const struct xpl_listing_ops *listings;
};

// Its first member; implementations put theirs behind it.
struct xpl_store {
    const struct xpl_store_ops *ops;
};

// ---- life ----

// Opens or makes the database.  Fails only when going on would be wrong: FAILED_PRECONDITION when
// the database is of another program, INVALID_ARGUMENT, RESOURCE_EXHAUSTED.  All else gives a store
// that works less: see xpl_store_role() and the notices.  A broken database, or one of a newer
// xplaned, is renamed to cache.db.broken-<time> and a new one begun.
xpl_status_t xpl_store_open(const struct xpl_store_options *o, struct xpl_store **ret,
                            struct xpl_error *err) XPL_NODISCARD;
// Whether it begins as a URL of a database does.
static inline bool xpl_store_is_url(const char *url) {
    return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}
// Writes what is pending, checkpoints, closes, marks the stop as clean, frees.  No other call may
// be in progress.  NULL is fine.
static inline void xpl_store_close(struct xpl_store *s) {
    if (s) s->ops->close(s);
}

static inline enum xpl_store_role xpl_store_role(struct xpl_store *s) {
    return s->ops->role(s);
}

// Things the daemon should log once, oldest first ("cache.db was broken and is now
// cache.db.broken-1700000000: ...").  False when there is none left.
static inline bool xpl_store_next_notice(struct xpl_store *s, char *buf, size_t size) {
    return s->ops->next_notice(s, buf, size);
}

// ---- results ----

// Fetches a result, with one copy, into memory of the caller.  NOT_FOUND, leaving `err` alone, when
// it is not there or cannot be read; RESOURCE_EXHAUSTED when longer than max_bytes or without
// memory.  Waits while all reader connections are in use.
XPL_NODISCARD static inline xpl_status_t
xpl_store_get(struct xpl_store *s, const struct xpl_store_key *key, size_t max_bytes,
              struct xpl_store_value *ret, struct xpl_error *err) {
    return s->ops->get(s, key, max_bytes, ret, err);
}
// Whether there is such a result (its bytes are not read).
static inline bool xpl_store_has(struct xpl_store *s, const struct xpl_store_key *key) {
    return s->ops->has(s, key);
}
// Whether there are such results: ret[i] is keys[i]'s.  A store that daemons share is asked once.
static inline void xpl_store_has_many(struct xpl_store *s, const struct xpl_store_key *keys,
                                      size_t n, bool *ret) {
    for (size_t i = 0; !s->ops->has_many && i < n; i++)
        ret[i] = s->ops->has(s, &keys[i]);
    if (s->ops->has_many) s->ops->has_many(s, keys, n, ret);
}

// ---- profiles, and the files they lie in ----

// Key of the hash that profile ids are made with: random, made with the store and kept in it; of
// this process alone while there is no store.  Returns its generation, which changes when another
// secret takes its place.
static inline uint64_t xpl_store_get_secret(struct xpl_store *s, uint8_t ret[XPL_STORE_SECRET]) {
    return s->ops->get_secret(s, ret);
}
static inline uint64_t xpl_store_secret_generation(struct xpl_store *s) {
    return s->ops->secret_generation(s);
}
// The id of the profile that the file holds; false when nothing is remembered of it.
static inline bool xpl_store_find_file(struct xpl_store *s, const struct xpl_fingerprint *file,
                                       struct xpl_profile_id *ret) {
    return s->ops->find_file(s, file, ret);
}
// Of many files those that are not `known` yet: each that is found is known then, with ret[i] its
// id.  A store that daemons share is asked once.
static inline void xpl_store_find_files(struct xpl_store *s,
                                        const struct xpl_fingerprint *const *files, size_t n,
                                        struct xpl_profile_id *ret, bool *known) {
    for (size_t i = 0; !s->ops->find_files && i < n; i++)
        known[i] = known[i] || s->ops->find_file(s, files[i], &ret[i]);
    if (s->ops->find_files) s->ops->find_files(s, files, n, ret, known);
}
// Whether a profile of so many bytes is known.
static inline bool xpl_store_has_size(struct xpl_store *s, uint64_t bytes) {
    return s->ops->has_size(s, bytes);
}
// Tells `each` of the files that are remembered, those of the newest profiles first, at most `max`.
// False when not all of these could be read.  `each` may call xpl_store_secret_generation, and
// nothing else here.
static inline bool xpl_store_list_files(struct xpl_store *s, size_t max, xpl_store_file_fn *each,
                                        void *arg) {
    return s->ops->list_files(s, max, each, arg);
}

// ---- writing ----

// Everything between begin and commit becomes visible, and durable, together or not at all.  A put
// outside is a transaction of its own.  After a failure inside, the rest up to and including the
// commit is dropped and returns that failure.  Codes: FAILED_PRECONDITION (not the writer),
// RESOURCE_EXHAUSTED (disk full, no memory, result too long), UNAVAILABLE (I/O error or another
// program holds the database), DATA_LOSS (database broken: it was moved aside, and the next put
// goes into a new one).
XPL_NODISCARD static inline xpl_status_t xpl_store_begin(struct xpl_store *s,
                                                         struct xpl_error *err) {
    return s->ops->begin(s, err);
}
XPL_NODISCARD static inline xpl_status_t xpl_store_commit(struct xpl_store *s,
                                                          struct xpl_error *err) {
    return s->ops->commit(s, err);
}
// Gives up what was put since begin.
static inline void xpl_store_rollback(struct xpl_store *s) {
    s->ops->rollback(s);
}

// Stores a result, in place of an older one of the same key.  May first remove results that were
// not used for long, to stay under the limit.
XPL_NODISCARD static inline xpl_status_t xpl_store_put(struct xpl_store *s,
                                                       const struct xpl_store_key *key,
                                                       xpl_bytes_t data, xpl_bytes_t meta,
                                                       struct xpl_error *err) {
    return s->ops->put(s, key, data, meta, err);
}
// Remembers which profile a file holds.  Writes nothing when that is known.
XPL_NODISCARD static inline xpl_status_t xpl_store_put_file(struct xpl_store *s,
                                                            const struct xpl_fingerprint *file,
                                                            const struct xpl_profile_id *profile,
                                                            struct xpl_error *err) {
    return s->ops->put_file(s, file, profile, err);
}
// Replaces all rows of this profile that are of their kind.  `version` is that of the rows.
XPL_NODISCARD static inline xpl_status_t
xpl_store_put_rows(struct xpl_store *s, const struct xpl_profile_id *profile, uint32_t version,
                   const struct xpl_rows *rows, struct xpl_error *err) {
    return s->ops->put_rows(s, profile, version, rows, err);
}
// Whether rows of this kind and version are there for this profile.
static inline bool xpl_store_has_rows(struct xpl_store *s, const struct xpl_profile_id *profile,
                                      enum xpl_rows_kind kind, uint32_t version) {
    return s->ops->has_rows(s, profile, kind, version);
}
// Makes the tables of sessions and hosts equal to the snapshot (only what changed since the last
// call is written).  A profile none of whose remembered files belongs to a host any more is marked
// as gone by the next maintenance, unless a host's file of its size is still unknown.  When
// `cancel` (may be NULL) is set, it ends behind the session that it writes, and the next call
// writes the rest.
XPL_NODISCARD static inline xpl_status_t xpl_store_put_catalogue(struct xpl_store *s,
                                                                 const struct xpl_snapshot *snap,
                                                                 const struct xpl_cancel *cancel,
                                                                 struct xpl_error *err) {
    return s->ops->put_catalogue(s, snap, cancel, err);
}

// Housekeeping, for the writer thread when it has nothing else to do (every minute or so, and soon
// after a notice): moves a broken database aside, writes down which results were used, removes what
// `m` says, evicts, gives free space back, checkpoints.  *ret_more (may be NULL): there is more to
// do, call again.
XPL_NODISCARD static inline xpl_status_t xpl_store_maintain(struct xpl_store *s,
                                                            const struct xpl_store_maintenance *m,
                                                            bool *ret_more, struct xpl_error *err) {
    return s->ops->maintain(s, m, ret_more, err);
}

// ---- health ----

// Whether the last writer ended without xpl_store_close().
static inline bool xpl_store_was_unclean(struct xpl_store *s) {
    return s->ops->was_unclean(s);
}
// Reads the whole database and checks it: OK, CANCELLED (`stop` returned true; asked every few
// milliseconds; may be NULL), or DATA_LOSS; the next call of the writer then moves it aside.  For a
// thread of low priority.
XPL_NODISCARD static inline xpl_status_t
xpl_store_check(struct xpl_store *s, bool (*stop)(void *ctx), void *ctx, struct xpl_error *err) {
    return s->ops->check(s, stop, ctx, err);
}

static inline void xpl_store_get_stats(struct xpl_store *s, struct xpl_store_stats *ret) {
    s->ops->get_stats(s, ret);
}

#endif
