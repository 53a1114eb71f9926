// SPDX-License-Identifier: Apache-2.0
// Sessions and hosts of the catalogue.  Daemons that share a database serve the same LOGDIR, and
// one of them, the holder of a lease, keeps its tables.
#include "storage/sessions/catalogue.h"
#include "base/cleanup.h"
#include "base/exec.h"

#include "base/arena.h"
#include "base/clock.h"
#include "storage/sessions/path.h"
#include "storage/store/encoding.h"
#include "storage/store/postgresql/impl.h"

enum { ASK_AGAIN_S = 5 };

// Only the database's clock counts.  The fence grows when the lease changes hands.
enum xpl_pg_rc xpl_pg_lease_catalogue(struct xpl_pg_store *s, int64_t *ret_fence) {
    return xpl_pg_ask(s->w,
                      "INSERT INTO leases AS l VALUES('catalogue',$1,1,clock_timestamp()+"
                      "interval '90 s') ON CONFLICT(name) DO UPDATE SET owner=excluded.owner,"
                      " fence=l.fence+(l.owner<>excluded.owner)::int,"
                      " expires_at=excluded.expires_at"
                      " WHERE l.owner=excluded.owner OR l.expires_at<clock_timestamp()"
                      " RETURNING fence",
                      XPL_PG_WITH(xpl_pg_owner(s)), ret_fence);
}

void xpl_pg_leave_catalogue(struct xpl_pg_store *s) {
    atomic_store(&s->lease_at_ns, xpl_clock_ns() + (uint64_t)ASK_AGAIN_S * 1000000000u);
}

struct print { // of a host's file
    uint8_t fingerprint[XPL_STORE_FINGERPRINT];
    xpl_bytes_t bytes; // of it
};

static enum xpl_pg_rc add_hosts(struct xpl_pg_store *s, const struct xpl_session *se, int64_t id) {
    const size_t n = se->n_hosts;
    struct print *const prints = xpl_sys_alloc(n * sizeof *prints + 1);
    if (!prints) return XPL_PG_NOMEM;
    for (size_t i = 0; i < n; i++) {
        xpl_store_fingerprint_bytes(&se->hosts[i].fingerprint, prints[i].fingerprint);
        prints[i].bytes = (xpl_bytes_t){prints[i].fingerprint, sizeof prints[i].fingerprint};
    }
    const enum xpl_pg_rc rc =
        xpl_pg_query(s->w, "INSERT INTO hosts SELECT $1,* FROM unnest($2,$3,$4,$5)",
                     XPL_PG_WITH(xpl_pg_i64(id), XPL_PG_COLUMN(TEXT, se->hosts, n, name),
                                 XPL_PG_COLUMN(BYTES, prints, n, bytes),
                                 XPL_PG_COLUMN(U64, se->hosts, n, fingerprint.size),
                                 XPL_PG_COLUMN(I64, se->hosts, n, fingerprint.mtime_ns)),
                     NULL);
    xpl_sys_free(prints);
    return rc;
}

static enum xpl_pg_rc write_session(struct xpl_pg_store *s, const struct xpl_session *se,
                                    xpl_str_t path) {
    int64_t id = 0;
    enum xpl_pg_rc rc = xpl_pg_ask(
        s->w,
        "INSERT INTO sessions AS s(name, path, mtime_ns, size_bytes, n_hosts, digest,"
        " captured_ns) VALUES($1,$2,$3,$4,$5,$6,$7) ON CONFLICT(name) DO UPDATE SET path=$2,"
        " mtime_ns=$3, size_bytes=$4, n_hosts=$5, digest=$6, captured_ns=$7"
        " WHERE s.digest<>$6 RETURNING id",
        XPL_PG_WITH(xpl_pg_text(se->name), xpl_pg_text(path),
                    xpl_pg_u64(se->n_hosts ? (uint64_t)se->mtime_ns : UINT64_MAX),
                    xpl_pg_u64(se->bytes), xpl_pg_u64(se->n_hosts),
                    xpl_pg_i64(xpl_store_session_digest(se)), xpl_pg_i64(se->captured_ns)),
        &id);
    if (rc == XPL_PG_NONE) return XPL_PG_OK; // as it was
    if (rc != XPL_PG_OK) return rc;
    rc = xpl_pg_query(s->w, "DELETE FROM hosts WHERE session_id=$1", XPL_PG_WITH(xpl_pg_i64(id)),
                      NULL);
    return rc == XPL_PG_OK ? add_hosts(s, se, id) : rc;
}

static enum xpl_pg_rc put_session(struct xpl_pg_store *s, const struct xpl_session *se) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    xpl_str_t path;
    const enum xpl_pg_rc rc =
        xpl_name_escape(&a, se->path, &path) ? write_session(s, se, path) : XPL_PG_NOMEM;
    return rc;
}

static enum xpl_pg_rc delete_removed(struct xpl_pg_store *s, const struct xpl_snapshot *snap) {
    return xpl_pg_query(s->w,
                        "WITH gone AS (DELETE FROM sessions s WHERE NOT EXISTS (SELECT 1 FROM"
                        " unnest($1) AS t(name) WHERE t.name=s.name) RETURNING id)"
                        " DELETE FROM hosts WHERE session_id IN (SELECT id FROM gone)",
                        XPL_PG_WITH(XPL_PG_COLUMN(TEXT, snap->sessions, snap->n_sessions, name)),
                        NULL);
}

static enum xpl_pg_rc write_catalogue(struct xpl_pg_store *s, const struct xpl_snapshot *snap,
                                      const struct xpl_cancel *cancel) {
    bool cancelled = false;
    int64_t fence = 0;
    enum xpl_pg_rc rc = xpl_pg_lease_catalogue(s, &fence);
    if (rc == XPL_PG_NONE) { // another daemon writes it
        atomic_store(&s->tx.catalogue_known, false);
        xpl_pg_leave_catalogue(s);
        return XPL_PG_OK;
    }
    const bool all = !atomic_load(&s->tx.catalogue_known) || fence != s->fence;
    for (size_t i = 0; rc == XPL_PG_OK && !cancelled && i < snap->n_sessions; i++)
        if (all || snap->sessions[i].changed > s->tx.catalogue_at) {
            rc = put_session(s, &snap->sessions[i]);
            cancelled = xpl_cancel_is_set(cancel);
        }
    if (rc == XPL_PG_OK && !cancelled && (all || snap->removed > s->tx.catalogue_at))
        rc = delete_removed(s, snap);
    if (rc == XPL_PG_OK && !cancelled) {
        s->tx.has_catalogue = true;
        s->tx_fence = fence;
        s->tx.catalogue_new = snap->generation;
    }
    return rc;
}

xpl_status_t xpl_pg_put_catalogue(struct xpl_store *base, const struct xpl_snapshot *snap,
                                  const struct xpl_cancel *cancel, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    bool own;
    if (xpl_clock_ns() < atomic_load(&s->lease_at_ns)) return XPL_OK; // another daemon writes it
    XPL_TRY(xpl_pg_enter(s, &own, err));
    return xpl_pg_leave(s, own, write_catalogue(s, snap, cancel), err);
}
