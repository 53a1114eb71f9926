// SPDX-License-Identifier: Apache-2.0
// Profiles in a bucket: S3, compatible stores, Google Cloud Storage.  Objects are listed one
// directory at a time, and read from local copies, which are fetched completely, kept in a bounded
// cache and never changed: another version of an object is another copy.
//
// An implementation is a table of functions, like that of stores.  Threads: any, at any time; calls
// wait for the network, so that the loop makes none.  Nothing is logged, and errors contain no
// secrets.
#ifndef XPL_STORAGE_OBJECTS_OBJECTS_H_
#define XPL_STORAGE_OBJECTS_OBJECTS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_copies;

struct xpl_stored_object {
    xpl_str_t path;    // below the prefix; of a listing's directory, its name in there
    xpl_str_t version; // ETag: objects of one path and version have equal bytes
    uint64_t size;
    int64_t mtime_ns; // since 1970; 0: unknown
};

// Receives a listing.  The texts are valid only during the call.
struct xpl_object_list {
    bool (*object)(void *arg, const struct xpl_stored_object *o); // false: out of memory
    bool (*folder)(void *arg, xpl_str_t name);                    // likewise
    void *arg;
    unsigned max_pages; // of 1,000 names each
    bool cut;           // set: there are more pages than that
    size_t n_refused;   // set: names that cannot be requested, such as "a//b"; left out
};

enum xpl_objects_stop { XPL_OBJECTS_STOP_LISTING = 1, XPL_OBJECTS_STOP_ALL };

// Kinds of requests to a store.
enum xpl_objects_call {
    XPL_OBJECTS_LIST,
    XPL_OBJECTS_FETCH,
    XPL_OBJECTS_PUT,
    XPL_OBJECTS_REMOVE,
    XPL_OBJECTS_N_CALLS
};

struct xpl_objects_stats { // since the place was opened
    // Calls, each with all its requests, pages and tries. `failed` includes cancelled calls, and
    // calls for deleted or replaced objects.
    uint64_t done[XPL_OBJECTS_N_CALLS], failed[XPL_OBJECTS_N_CALLS];
    uint64_t fetched_bytes, sent_bytes; // of whole objects
};

struct xpl_objects;
struct xpl_objects_ops {
    xpl_status_t (*list)(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                         struct xpl_error *err);
    // Writes the object to `fd`, which is empty.
    xpl_status_t (*fetch)(struct xpl_objects *o, const struct xpl_stored_object *of, int fd,
                          struct xpl_error *err);
    xpl_status_t (*put)(struct xpl_objects *o, xpl_str_t path, int fd, uint64_t size,
                        const struct xpl_cancel *cancel, struct xpl_error *err);
    xpl_status_t (*remove)(struct xpl_objects *o, xpl_str_t path, struct xpl_error *err);
    void (*stop)(struct xpl_objects *o, enum xpl_objects_stop what);
    void (*free)(struct xpl_objects *o);
};

// The common part of every implementation; filled by xpl_objects_init.
struct xpl_objects {
    const struct xpl_objects_ops *ops;
    atomic_uint refs;
    struct xpl_copies *cache;
    uint64_t place[2]; // endpoint, bucket and prefix, hashed
    // Directories of which a listing was found to be wrong, hashed, for the next scan.  When there
    // are more, some are only listed again when their time has come.
    _Atomic uint64_t stale[32];
    _Atomic uint64_t ended[XPL_OBJECTS_N_CALLS][2]; // done and failed; see xpl_objects_stats
    _Atomic uint64_t fetched_bytes, sent_bytes;
};

struct xpl_objects_options {
    size_t size;             // sizeof(struct xpl_objects_options)
    const char *url;         // s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
    const char *endpoint;    // "" for the service's own
    const char *region;      // ""
    bool anonymous;          // send no credentials
    const char *cache_dir;   // made when it is missing
    uint64_t cache_limit;    // bytes
    uint64_t first_retry_ns; // 0: 200 ms; doubled for each further one
    uint64_t patience_ns;    // a fetch is not tried again later than this; 0: five tries
    // Receives problems that have no visible effect yet; no secrets.  Any thread; NULL is fine.
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

// Whether LOGDIR is a bucket.
bool xpl_objects_is_url(const char *logdir);
// Makes no request yet.  INVALID_ARGUMENT; FAILED_PRECONDITION without the libraries or
// credentials.
xpl_status_t xpl_objects_open(const struct xpl_objects_options *o, struct xpl_objects **ret,
                              struct xpl_error *err) XPL_NODISCARD;
struct xpl_objects *xpl_objects_ref(struct xpl_objects *o);
// NULL is fine.
void xpl_objects_unref(struct xpl_objects *o);
// Ends running and later calls with CANCELLED: only listings, or all.
void xpl_objects_stop(struct xpl_objects *o, enum xpl_objects_stop what);
// NULL is fine: all 0.  Waits for nothing.
void xpl_objects_get_stats(struct xpl_objects *o, struct xpl_objects_stats *ret);

// The direct entries of `dir`, a path below the prefix; "." is the prefix itself.  A missing
// directory has no entries.  NOT_FOUND (no such bucket), PERMISSION_DENIED, UNAVAILABLE (after
// retries), DATA_LOSS (the answer is not a listing), CANCELLED.
xpl_status_t xpl_objects_list(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                              struct xpl_error *err) XPL_NODISCARD;
// A descriptor of a local copy of that version of the object, for the caller to close; as long as
// it is open the copy is not evicted.  Nobody changes the file.  ABORTED when the object was
// replaced, NOT_FOUND when it is gone: its directory is then stale; RESOURCE_EXHAUSTED when the
// cache has no room; else as xpl_objects_list.
xpl_status_t xpl_objects_get(struct xpl_objects *o, const struct xpl_stored_object *of, int *ret_fd,
                             struct xpl_error *err) XPL_NODISCARD;
// Writes the first `size` bytes of the file to an object of that path below the prefix, which
// becomes visible when it is complete. `cancel` may be NULL. ALREADY_EXISTS if there is one and the
// store detects it; PERMISSION_DENIED; UNAVAILABLE (after retries); CANCELLED.
xpl_status_t xpl_objects_put(struct xpl_objects *o, xpl_str_t path, int fd, uint64_t size,
                             const struct xpl_cancel *cancel, struct xpl_error *err) XPL_NODISCARD;
// Removes an object; one that is not there is fine.
xpl_status_t xpl_objects_remove(struct xpl_objects *o, xpl_str_t path, struct xpl_error *err)
    XPL_NODISCARD;
// The identity of an object's version on every machine: a hash of place, path and version.
void xpl_objects_identify(const struct xpl_objects *o, const struct xpl_stored_object *of,
                          uint64_t ret[2]);
// The same, only for the place.
void xpl_objects_place(const struct xpl_objects *o, uint8_t ret[16]);
// Half of that, in place of a directory's device number.  Never 0.
uint64_t xpl_objects_device(const struct xpl_objects *o);
// Whether a read found that the directory differs from its listing; true once.
bool xpl_objects_take_stale(struct xpl_objects *o, xpl_str_t dir);

// ---- for implementations ----

// `place`: identifies the bucket, as paths repeat in others.  RESOURCE_EXHAUSTED, and errors of the
// cache's directory.
xpl_status_t xpl_objects_init(struct xpl_objects *o, const struct xpl_objects_ops *ops,
                              xpl_str_t place, const char *cache_dir, uint64_t cache_limit,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
