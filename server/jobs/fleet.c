// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/fleet.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "storage/store/jobs.h"

enum { LIMIT = 64 << 20 };

static size_t count_jobs(const struct xpl_job_fleet *f, xpl_str_t id) {
    size_t n = 0;
    for (size_t i = 0; i < f->n_work; i++)
        n += !f->work[i].set_aside && xpl_str_eq(f->work[i].owner, id);
    return n;
}

// Empty: no owner, or the owner no longer reports.
static xpl_str_t name_of(const struct xpl_job_fleet *f, xpl_str_t owner) {
    for (size_t i = 0; owner.len && i < f->n_members; i++)
        if (xpl_str_eq(f->members[i].id, owner)) return f->members[i].name;
    return XPL_STR("");
}

static void put_text(struct xpl_buf *b, const char *key, xpl_str_t text) {
    xpl_json_field(b, key, text);
    xpl_buf_putc(b, ',');
}

static void put_members(struct xpl_buf *b, const struct xpl_job_fleet *f) {
    for (size_t i = 0; i < f->n_members; i++) {
        const struct xpl_job_member *const m = &f->members[i];
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "name", m->name);
        put_text(b, "role", m->role);
        put_text(b, "version", m->version);
        xpl_buf_printf(b, "\"jobs\":%zu,\"expires_ms\":%" PRId64 "}", count_jobs(f, m->id),
                       m->expires_ms);
    }
}

static void put_work(struct xpl_buf *b, const struct xpl_job_fleet *f) {
    for (size_t i = 0; i < f->n_work; i++) {
        const struct xpl_job_work *const w = &f->work[i];
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "state", w->set_aside ? XPL_STR("set_aside") : XPL_STR("running"));
        put_text(b, "daemon", w->set_aside ? XPL_STR("") : name_of(f, w->owner));
        put_text(b, "session", w->session);
        put_text(b, "host", w->host);
        xpl_buf_printf(b,
                       "\"files\":%" PRId64 ",\"attempt\":%" PRId64 ",\"queued_ms\":%" PRId64 "}",
                       w->n_files, w->attempt, w->queued_ms);
    }
}

static void put_leases(struct xpl_buf *b, const struct xpl_job_fleet *f) {
    for (size_t i = 0; i < f->n_leases; i++) {
        const struct xpl_job_lease *const l = &f->leases[i];
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        put_text(b, "kind", l->kind);
        put_text(b, "name", l->name);
        put_text(b, "daemon", name_of(f, l->owner));
        xpl_buf_printf(b, "\"expires_ms\":%" PRId64 "}", l->expires_ms);
    }
}

xpl_status_t xpl_fleet_put_json(struct xpl_store *s, struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_job_fleet f;
    if (!xpl_store_jobs(s))
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "this daemon shares no database: a fleet consists of daemons with the same "
            "--store postgresql://...");
    if (xpl_store_role(s) == XPL_STORE_OFF)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the database that daemons share is away");
    XPL_TRY(xpl_store_jobs(s)->list(s, &arena, &f, err));
    xpl_buf_printf(out,
                   "{\"queued\":%" PRId64 ",\"running\":%" PRId64 ",\"set_aside\":%" PRId64
                   ",\"workers\":%" PRId64 ",\"daemons\":[",
                   f.stats.queued, f.stats.running, f.stats.set_aside, f.stats.workers);
    put_members(out, &f);
    xpl_buf_str(out, XPL_STR("],\"work\":["));
    put_work(out, &f);
    xpl_buf_str(out, XPL_STR("],\"leases\":["));
    put_leases(out, &f);
    xpl_buf_str(out, XPL_STR("]}"));
    if (out->failed) XPL_RETURN_OOM(err, "fleet");
    return XPL_OK;
}
