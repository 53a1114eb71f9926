// SPDX-License-Identifier: Apache-2.0
// Listings of a bucket's directories that one daemon makes for all that share a store.  Part of the
// store's interface, only in stores that many daemons write.
//
//   scanner: claim ── put, put … (again and again)
//   others:  claim (is somebody the scanner?) ── find_changed ── get …
//
// The scanner has a lease, and its fence: a put after another daemon has taken the lease is not
// stored.  A daemon that finds no scanner lists itself.  Generations grow with each listing that
// differs from the previous one.
//
// Only the store's clock counts: ages are differences.  Threads: any; each call is one statement.
// Errors: UNAVAILABLE (away or busy), FAILED_PRECONDITION (not written by this process now),
// RESOURCE_EXHAUSTED.
#ifndef XPL_STORAGE_STORE_LISTINGS_H_
#define XPL_STORAGE_STORE_LISTINGS_H_

#include "storage/store/store.h"

struct xpl_arena;

enum { XPL_LISTING_MAX_BYTES = 1 << 20, XPL_LISTING_MAX_CHANGED = 5000 };

enum xpl_scanner {
    XPL_SCANNER_NOBODY,
    XPL_SCANNER_OTHER, // another daemon
    XPL_SCANNER_THIS
};

// Which bucket: xpl_objects_place.
struct xpl_listing_place {
    uint8_t bytes[16];
};

struct xpl_shared_listing {
    xpl_bytes_t body; // empty: it is longer than XPL_LISTING_MAX_BYTES
    int64_t age_ms;   // since it began to be made
};

// Directories that were listed anew, as paths, in the order in which they were.
struct xpl_changed_listings {
    xpl_str_t *dirs;
    size_t n;           // XPL_LISTING_MAX_CHANGED: there may be more
    int64_t generation; // where to go on
};

struct xpl_listing_ops {
    // Finds the scanner of the bucket. `may`: this daemon takes a free lease; a lease that it has
    // is renewed for `lease_ms` from now.
    xpl_status_t (*claim)(struct xpl_store *s, const struct xpl_listing_place *place, bool may,
                          uint64_t lease_ms, enum xpl_scanner *ret, struct xpl_error *err);
    // Of the scanner; stores nothing when that is another one.  A body that is too long is noted.
    xpl_status_t (*put)(struct xpl_store *s, const struct xpl_listing_place *place, xpl_str_t dir,
                        xpl_bytes_t body, int64_t age_ms, struct xpl_error *err);
    // NOT_FOUND: it was not listed yet; DATA_LOSS.  `arena` holds it.
    xpl_status_t (*get)(struct xpl_store *s, const struct xpl_listing_place *place, xpl_str_t dir,
                        struct xpl_arena *arena, struct xpl_shared_listing *ret,
                        struct xpl_error *err);
    // Since a generation, that one included; 0: all.  `arena` holds it.
    xpl_status_t (*find_changed)(struct xpl_store *s, const struct xpl_listing_place *place,
                                 int64_t since, struct xpl_arena *arena,
                                 struct xpl_changed_listings *ret, struct xpl_error *err);
};

// NULL: daemons do not share this store.
static inline const struct xpl_listing_ops *xpl_store_listings(const struct xpl_store *s) {
    return s->ops->listings;
}

#endif
