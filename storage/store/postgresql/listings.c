// SPDX-License-Identifier: Apache-2.0
// Listings of buckets (storage/store/listings.h): single statements on readers' connections.
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "storage/store/postgresql/impl.h"

static struct xpl_pg_arg place_arg(const struct xpl_listing_place *place) {
    return xpl_pg_bytes((xpl_bytes_t){place->bytes, sizeof place->bytes});
}

// A directory's path may have any bytes: a text may not.
static struct xpl_pg_arg dir_arg(xpl_str_t dir) {
    return xpl_pg_bytes((xpl_bytes_t){(const uint8_t *)dir.ptr, dir.len});
}

// Of its lease.
static xpl_str_t name_of(const struct xpl_listing_place *place, char ret[48]) {
    int n = snprintf(ret, 48, "listings:");
    for (size_t i = 0; i < sizeof place->bytes; i++)
        n += snprintf(ret + n, 48 - (size_t)n, "%02x", place->bytes[i]);
    return xpl_str_from(ret);
}

// ---- the scanner ----

// The row is seen as it was before the statement: one that another daemon has just made is seen by
// the next claim.
static xpl_status_t claim(struct xpl_store *base, const struct xpl_listing_place *place, bool may,
                          uint64_t lease_ms, enum xpl_scanner *ret, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    int64_t is_ours = -1;
    char name[48];
    XPL_TRY(xpl_pg_select_number(
        s,
        "WITH mine AS (INSERT INTO leases AS l SELECT $1,$2,1,clock_timestamp()+$3*interval '1 ms'"
        " WHERE $4<>0 ON CONFLICT(name) DO UPDATE SET owner=excluded.owner,"
        " fence=l.fence+(l.owner<>excluded.owner)::int, expires_at=excluded.expires_at"
        " WHERE l.owner=excluded.owner OR l.expires_at<clock_timestamp() RETURNING 1)"
        " SELECT 1::bigint FROM mine UNION ALL"
        " SELECT 0::bigint FROM leases WHERE name=$1 AND owner<>$2 AND"
        " expires_at>=clock_timestamp() AND NOT EXISTS (SELECT 1 FROM mine)",
        XPL_PG_WITH(xpl_pg_text(name_of(place, name)), xpl_pg_owner(s), xpl_pg_u64(lease_ms),
                    xpl_pg_i64(may)),
        &is_ours, err));
    *ret = is_ours < 0 ? XPL_SCANNER_NOBODY : is_ours ? XPL_SCANNER_THIS : XPL_SCANNER_OTHER;
    return XPL_OK;
}

// A listing that is as it was is noted as new, and its body is not written again.
//
// What of directories that are gone was listed a day ago goes with the topmost one's listing: all
// are looked through for it.  The newest generation stays, as others count on from there.
static xpl_status_t put(struct xpl_store *base, const struct xpl_listing_place *place,
                        xpl_str_t dir, xpl_bytes_t body, int64_t age_ms, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf packed = xpl_buf_of(2 * XPL_LISTING_MAX_BYTES);
    char name[48];
    const bool fits = body.len <= XPL_LISTING_MAX_BYTES;
    if (fits && !xpl_pg_compress(body, &packed)) return xpl_pg_fail(s, XPL_PG_NOMEM, "", err);
    return xpl_pg_change(
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
        XPL_PG_WITH(xpl_pg_text(name_of(place, name)), xpl_pg_owner(s), place_arg(place),
                    dir_arg(dir), xpl_pg_i64(age_ms), xpl_pg_u64(fits ? body.len : 0),
                    xpl_pg_bytes((xpl_bytes_t){packed.p, packed.n})),
        err);
}

// ---- the others ----

struct row {
    int64_t age_ms, size;
    xpl_bytes_t packed;
};
static const struct xpl_pg_member row_members[] = {XPL_PG_MEMBER(I64, struct row, age_ms),
                                                   XPL_PG_MEMBER(I64, struct row, size),
                                                   XPL_PG_MEMBER(BYTES, struct row, packed)};
static const struct xpl_pg_shape row_shape = XPL_PG_SHAPE(row_members, struct row);

static xpl_status_t get(struct xpl_store *base, const struct xpl_listing_place *place,
                        xpl_str_t dir, struct xpl_arena *arena, struct xpl_shared_listing *ret,
                        struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    struct row row = {.size = -1};
    XPL_TRY(xpl_pg_select(
        s,
        "SELECT (1000*extract(epoch FROM clock_timestamp()-listed_at))::bigint, size_bytes, body"
        " FROM listings WHERE place=$1 AND dir=$2",
        XPL_PG_WITH(place_arg(place), dir_arg(dir)), XPL_PG_INTO(&row_shape, arena, &row, NULL),
        err));
    if (row.size < 0) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no listing is stored");
    const size_t n = (size_t)row.size;
    uint8_t *const body = n <= XPL_LISTING_MAX_BYTES ? xpl_arena_alloc(arena, n) : NULL;
    if (n <= XPL_LISTING_MAX_BYTES && !body) XPL_RETURN_OOM(err, "a listing");
    if (!body || (n && !xpl_pg_decompress(row.packed, body, n)))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "%s: a listing is damaged", s->name);
    *ret = (struct xpl_shared_listing){.body = {body, n}, .age_ms = row.age_ms};
    return XPL_OK;
}

struct changed {
    xpl_str_t dir;
    int64_t generation;
};
static const struct xpl_pg_member changed_members[] = {
    XPL_PG_MEMBER(TEXT, struct changed, dir), XPL_PG_MEMBER(I64, struct changed, generation)};
static const struct xpl_pg_shape changed_shape = XPL_PG_SHAPE(changed_members, struct changed);

static xpl_status_t find_changed(struct xpl_store *base, const struct xpl_listing_place *place,
                                 int64_t since, struct xpl_arena *arena,
                                 struct xpl_changed_listings *ret, struct xpl_error *err) {
    struct changed *list;
    size_t n;
    XPL_TRY(xpl_pg_select(
        xpl_pg_of(base),
        "SELECT dir, generation FROM listings WHERE place=$1 AND"
        " generation>=$2 ORDER BY generation LIMIT $3",
        XPL_PG_WITH(place_arg(place), xpl_pg_i64(since), xpl_pg_i64(XPL_LISTING_MAX_CHANGED)),
        XPL_PG_INTO(&changed_shape, arena, &list, &n), err));
    *ret = (struct xpl_changed_listings){.dirs = xpl_arena_array(arena, n, sizeof *ret->dirs),
                                         .n = n,
                                         .generation = n ? list[n - 1].generation : since};
    if (!ret->dirs) XPL_RETURN_OOM(err, "listings");
    for (size_t i = 0; i < n; i++)
        ret->dirs[i] = list[i].dir;
    return XPL_OK;
}

const struct xpl_listing_ops xpl_pg_listings = {
    .claim = claim, .put = put, .get = get, .find_changed = find_changed};
