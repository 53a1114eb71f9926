// SPDX-License-Identifier: Apache-2.0
// Listings of a bucket that one daemon makes for all that share a store.
//
// The scanner lists as it would without others, and puts each listing into the store.  The other
// daemons list only directories that were reported as changed.  Each daemon queries now and then
// which directories have new listings, and takes those; it requests the listing of a new directory
// by its name.  When the store does not answer, or without a scanner, each daemon lists by itself.
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "storage/sessions/catalogue_impl.h"

// LEASE_MS: of the scanner, which claims it again each CLAIM_MS, also between two listings.
enum { LEASE_MS = 15000, CLAIM_MS = 5000, MAX_CHANGED_BYTES = 16 << 20 };

static uint64_t ms(uint64_t n) {
    return n * 1000000;
}

static const struct xpl_listing_ops *ops_of(const struct xpl_scan_share *s) {
    return xpl_store_listings(s->store);
}

// ---- the scanner ----

static void claim(struct xpl_scan_share *s) {
    const uint64_t now = xpl_clock_ns();
    enum xpl_scanner scanner = XPL_SCANNER_NOBODY;
    if (now < s->claim_at_ns) return;
    const xpl_status_t st =
        ops_of(s)->claim(s->store, &s->place, s->may_scan, LEASE_MS, &scanner, NULL);
    s->claim_at_ns = now + ms(CLAIM_MS);
    s->scanner = st == XPL_OK ? scanner : XPL_SCANNER_NOBODY;
    s->until_ns = now + ms(LEASE_MS);
}

static void find_changed(struct xpl_catalogue *c) {
    struct xpl_scan_share *const s = &c->share;
    struct xpl_changed_listings changed;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_CHANGED_BYTES);
    const xpl_status_t st =
        ops_of(s)->find_changed(s->store, &s->place, s->generation, &arena, &changed, NULL);
    for (size_t i = 0; st == XPL_OK && i < changed.n; i++) {
        struct xpl_dir *const d = xpl_scan_find(c->top, changed.dirs[i]);
        if (d) d->pull = true;
    }
    const bool all = st == XPL_OK && changed.n < XPL_LISTING_MAX_CHANGED;
    if (st == XPL_OK) s->generation = changed.generation;
    if (st != XPL_OK && st != XPL_RESOURCE_EXHAUSTED) s->scanner = XPL_SCANNER_NOBODY;
    s->pull_at_ns = xpl_clock_ns() + (all ? s->pull_every_ns : 0);
}

void xpl_scan_share_begin(struct xpl_catalogue *c) {
    if (!c->share.store) return;
    claim(&c->share);
    if (c->share.scanner == XPL_SCANNER_OTHER && xpl_clock_ns() >= c->share.pull_at_ns)
        find_changed(c);
}

// ---- directories ----

// Whether this daemon's listing is newer.  After two rounds of the scanner's it never is.
static bool is_ours_newer(const struct xpl_catalogue *c, struct xpl_dir *d, int64_t age_ms) {
    const uint64_t since = d->listed_ns ? xpl_clock_between(d->listed_ns, xpl_clock_ns()) : 0;
    return d->listed_ns && since < 2 * c->o.list_every_ns + ms(LEASE_MS) &&
           ms((uint64_t)(age_ms > 0 ? age_ms : 0)) > since;
}

// The scanner has not listed it: a moment after it listed the directory above.  False: this daemon
// waits no longer.
static bool await(const struct xpl_catalogue *c, struct xpl_dir *d) {
    if (!c->scanned) return false;
    if (!d->list_at_ns) d->list_at_ns = xpl_clock_ns() + ms(LEASE_MS);
    return xpl_clock_ns() < d->list_at_ns;
}

static bool pull(struct xpl_catalogue *c, struct xpl_dir *d,
                 bool (*replay)(struct xpl_catalogue *c, struct xpl_dir *d, xpl_bytes_t body)) {
    struct xpl_scan_share *const s = &c->share;
    struct xpl_shared_listing got = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(4 * XPL_LISTING_MAX_BYTES);
    const xpl_status_t st =
        ops_of(s)->get(s->store, &s->place, (xpl_str_t){d->path, d->path_len}, &arena, &got, NULL);
    bool done = false, replayed = false;
    if (st == XPL_NOT_FOUND)
        done = d->known || await(c, d);
    else if (st == XPL_OK && is_ours_newer(c, d, got.age_ms))
        done = true;
    else if (st == XPL_OK && got.body.len)
        done = replayed = replay(c, d, got.body);
    else if (st == XPL_UNAVAILABLE || st == XPL_FAILED_PRECONDITION)
        s->scanner = XPL_SCANNER_NOBODY;
    if (done || st == XPL_NOT_FOUND) d->pull = false;
    if (replayed) d->listed_ns = 0;
    return done;
}

bool xpl_scan_pull(struct xpl_catalogue *c, struct xpl_dir *d,
                   bool (*replay)(struct xpl_catalogue *c, struct xpl_dir *d, xpl_bytes_t body)) {
    struct xpl_scan_share *const s = &c->share;
    if (!s->store) return false;
    claim(s); // walks may be long
    if (s->scanner != XPL_SCANNER_OTHER) return false;
    // The scanner need not know a directory yet that this daemon found.
    if (!d->known && d->parent && d->parent->listed_ns) return false;
    const bool due = xpl_clock_ns() >= d->list_at_ns;
    if (!d->known || d->pull || (d->listed_ns && due)) return pull(c, d, replay);
    // So that not all are due when this daemon becomes the scanner.
    if (due) d->list_at_ns = xpl_clock_ns() + c->o.list_every_ns;
    return true;
}

void xpl_scan_offer(struct xpl_catalogue *c, struct xpl_dir *d, const struct xpl_buf *body,
                    uint64_t began_ns) {
    struct xpl_scan_share *const s = &c->share;
    const uint64_t now = xpl_clock_ns();
    d->pull = false;
    d->listed_ns = s->store && s->scanner == XPL_SCANNER_OTHER ? began_ns : 0;
    if (!body || s->scanner != XPL_SCANNER_THIS || now >= s->until_ns) return;
    const xpl_bytes_t whole = {body->p, body->failed ? XPL_LISTING_MAX_BYTES + 1 : body->n};
    // Otherwise the next listing informs the others, or the scanner of that time does.
    (void)!ops_of(s)->put(s->store, &s->place, (xpl_str_t){d->path, d->path_len}, whole,
                          (int64_t)(xpl_clock_between(began_ns, now) / 1000000), NULL);
}
