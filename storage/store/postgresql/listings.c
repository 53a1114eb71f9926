// SPDX-License-Identifier: Apache-2.0
// Listings of buckets (storage/store/listings.h): single statements on readers' connections.
#include <stdio.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

static xpl_bytes_t bytes_of(const struct xpl_listing_place *place) {
    return (xpl_bytes_t){place->bytes, sizeof place->bytes};
}

// Of its lease.
static const char *name_of(const struct xpl_listing_place *place, char ret[48]) {
    int n = snprintf(ret, 48, "listings:");
    for (size_t i = 0; i < sizeof place->bytes; i++)
        n += snprintf(ret + n, 48 - (size_t)n, "%02x", place->bytes[i]);
    return ret;
}

// ---- the scanner ----

static enum xpl_pg_rc read_scanner(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    enum xpl_scanner *const ret = arg;
    *ret = XPL_SCANNER_NOBODY;
    if (c->pq->ntuples(r) > 0)
        *ret = xpl_pg_get_i64(c, r, 0, 0) ? XPL_SCANNER_THIS : XPL_SCANNER_OTHER;
    return XPL_PG_OK;
}

// The row is seen as it was before the statement: one that another daemon has just made is seen by
// the next claim.
static xpl_status_t claim(struct xpl_store *base, const struct xpl_listing_place *place, bool may,
                          uint64_t lease_ms, enum xpl_scanner *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    char name[48];
    xpl_pg_arg_text(&a, xpl_str_from(name_of(place, name)));
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_i64(&a, (int64_t)lease_ms);
    xpl_pg_arg_i64(&a, may);
    return xpl_pg_job_query(
        s,
        "WITH mine AS (INSERT INTO leases AS l SELECT $1,$2,1,clock_timestamp()+$3*interval '1 ms'"
        " WHERE $4<>0 ON CONFLICT(name) DO UPDATE SET owner=excluded.owner,"
        " fence=l.fence+(l.owner<>excluded.owner)::int, expires_at=excluded.expires_at"
        " WHERE l.owner=excluded.owner OR l.expires_at<clock_timestamp() RETURNING 1)"
        " SELECT 1::bigint FROM mine UNION ALL"
        " SELECT 0::bigint FROM leases WHERE name=$1 AND owner<>$2 AND"
        " expires_at>=clock_timestamp() AND NOT EXISTS (SELECT 1 FROM mine)",
        &a, read_scanner, ret, err);
}

// A listing that is as it was is noted as new, and its body is not written again.
//
// What of directories that are gone was listed a day ago goes with the topmost one's listing: all
// are looked through for it.  The newest generation stays, as others count on from there.
static xpl_status_t put(struct xpl_store *base, const struct xpl_listing_place *place,
                        xpl_str_t dir, xpl_bytes_t body, int64_t age_ms, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct xpl_pg_args a = {0};
    struct xpl_buf packed = xpl_buf_of(2 * XPL_LISTING_MAX_BYTES);
    char name[48];
    const bool fits = body.len <= XPL_LISTING_MAX_BYTES;
    if (fits && !xpl_pg_compress(body, &packed)) {
        xpl_buf_fini(&packed);
        return xpl_pg_fail(s, XPL_PG_NOMEM, "", err);
    }
    xpl_pg_arg_text(&a, xpl_str_from(name_of(place, name)));
    xpl_pg_arg_text(&a, xpl_str_from(s->owner));
    xpl_pg_arg_bytes(&a, bytes_of(place));
    xpl_pg_arg_bytes(&a, (xpl_bytes_t){(const uint8_t *)dir.ptr, dir.len});
    xpl_pg_arg_i64(&a, age_ms);
    xpl_pg_arg_i64(&a, fits ? (int64_t)body.len : 0);
    xpl_pg_arg_bytes(&a, (xpl_bytes_t){fits ? packed.p : (const uint8_t *)"", fits ? packed.n : 0});
    const xpl_status_t st = xpl_pg_job_query(
        s,
        "WITH l AS (SELECT 1 FROM leases WHERE name=$1 AND owner=$2 AND"
        " expires_at>=clock_timestamp() FOR SHARE),"
        " old AS (DELETE FROM listings WHERE $4='.'::bytea AND place=$3 AND dir<>$4 AND"
        " listed_at<clock_timestamp()-interval '1 day' AND generation<(SELECT max(generation)"
        " FROM listings WHERE place=$3) AND EXISTS (SELECT 1 FROM l)),"
        " same AS (UPDATE listings SET listed_at=clock_timestamp()-$5*interval '1 ms'"
        " WHERE place=$3 AND dir=$4 AND size_bytes=$6 AND body=$7 AND EXISTS (SELECT 1 FROM l)"
        " RETURNING 1)"
        " INSERT INTO listings AS t(place, dir, generation, listed_at, size_bytes, body)"
        " SELECT $3,$4,(SELECT coalesce(max(generation),0)+1 FROM listings WHERE place=$3),"
        " clock_timestamp()-$5*interval '1 ms',$6,$7 FROM l WHERE NOT EXISTS (SELECT 1 FROM same)"
        " ON CONFLICT(place, dir) DO UPDATE SET listed_at=excluded.listed_at,"
        " generation=excluded.generation, size_bytes=excluded.size_bytes, body=excluded.body",
        &a, NULL, NULL, err);
    xpl_buf_fini(&packed);
    return st;
}

// ---- the others ----

struct reading {
    struct xpl_arena *arena;
    struct xpl_shared_listing *listing;
    struct xpl_changed_listings *changed;
    bool found, damaged;
};

static enum xpl_pg_rc read_listing(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct reading *const to = arg;
    if (c->pq->ntuples(r) == 0) return XPL_PG_OK;
    const int64_t n = xpl_pg_get_i64(c, r, 0, 1);
    to->found = true;
    to->listing->age_ms = xpl_pg_get_i64(c, r, 0, 0);
    if (n < 0 || n > XPL_LISTING_MAX_BYTES) {
        to->damaged = true;
        return XPL_PG_OK;
    }
    uint8_t *const body = xpl_arena_alloc(to->arena, (size_t)n);
    if (!body) return XPL_PG_NOMEM;
    to->damaged = n && !xpl_pg_decompress(xpl_pg_get_bytes(c, r, 0, 2), body, (size_t)n);
    to->listing->body = (xpl_bytes_t){body, (size_t)n};
    return XPL_PG_OK;
}

static xpl_status_t get(struct xpl_store *base, const struct xpl_listing_place *place,
                        xpl_str_t dir, struct xpl_arena *arena, struct xpl_shared_listing *ret,
                        struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct reading to = {.arena = arena, .listing = ret};
    struct xpl_pg_args a = {0};
    xpl_pg_arg_bytes(&a, bytes_of(place));
    xpl_pg_arg_bytes(&a, (xpl_bytes_t){(const uint8_t *)dir.ptr, dir.len});
    XPL_TRY(xpl_pg_job_query(
        s,
        "SELECT (1000*extract(epoch FROM clock_timestamp()-listed_at))::bigint, size_bytes, body"
        " FROM listings WHERE place=$1 AND dir=$2",
        &a, read_listing, &to, err));
    if (!to.found) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no listing is stored");
    if (to.damaged) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "%s: a listing is damaged", s->name);
    return XPL_OK;
}

static enum xpl_pg_rc read_changed(struct xpl_pg_conn *c, const PGresult *r, void *arg) {
    struct reading *const to = arg;
    const size_t n = (size_t)c->pq->ntuples(r);
    xpl_str_t *const dirs = xpl_arena_array(to->arena, n + 1, sizeof *dirs);
    if (!dirs) return XPL_PG_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const xpl_bytes_t dir = xpl_pg_get_bytes(c, r, (int)i, 0);
        if (!xpl_arena_str(to->arena, (xpl_str_t){(const char *)dir.ptr, dir.len}, &dirs[i]))
            return XPL_PG_NOMEM;
        to->changed->generation = xpl_pg_get_i64(c, r, (int)i, 1);
    }
    to->changed->dirs = dirs;
    to->changed->n = n;
    return XPL_PG_OK;
}

static xpl_status_t find_changed(struct xpl_store *base, const struct xpl_listing_place *place,
                                 int64_t since, struct xpl_arena *arena,
                                 struct xpl_changed_listings *ret, struct xpl_error *err) {
    struct reading to = {.arena = arena, .changed = ret};
    struct xpl_pg_args a = {0};
    *ret = (struct xpl_changed_listings){.generation = since};
    xpl_pg_arg_bytes(&a, bytes_of(place));
    xpl_pg_arg_i64(&a, since);
    xpl_pg_arg_i64(&a, XPL_LISTING_MAX_CHANGED);
    return xpl_pg_job_query(xpl_pg_of(base),
                            "SELECT dir, generation FROM listings WHERE place=$1 AND"
                            " generation>=$2 ORDER BY generation LIMIT $3",
                            &a, read_changed, &to, err);
}

const struct xpl_listing_ops xpl_pg_listings = {
    .claim = claim, .put = put, .get = get, .find_changed = find_changed};
