// SPDX-License-Identifier: Apache-2.0
// What every file of the store needs: notices, the meaning of failures.
#include <stdarg.h>
#include <time.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"

enum { SAME_MS = 1000 };

static int64_t clock_ms(clockid_t id) {
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum xpl_pg_rc xpl_pg_read_clock(struct xpl_pg_store *s, struct xpl_pg_conn *c) {
    int64_t theirs = 0;
    const int64_t before = clock_ms(CLOCK_BOOTTIME);
    const enum xpl_pg_rc rc =
        xpl_pg_ask(c, "SELECT (extract(epoch FROM clock_timestamp())*1000)::bigint", NULL, &theirs);
    const int64_t after = clock_ms(CLOCK_BOOTTIME);
    if (rc == XPL_PG_OK) atomic_store(&s->since_boot_ms, theirs - (before + after) / 2);
    return rc;
}

// Times that daemons share are the database's, as clocks of machines may be hours apart: what is
// added to our wall clock for that, milliseconds.  0 up to a second, so that it does not change
// all the time; it follows a clock that is set.
static int64_t pg_shift_ms(struct xpl_pg_store *s) {
    const int64_t since_boot = atomic_load(&s->since_boot_ms);
    const int64_t held = atomic_load(&s->shift_ms);
    if (!since_boot) return held; // it was never there
    const int64_t now = since_boot + clock_ms(CLOCK_BOOTTIME) - clock_ms(CLOCK_REALTIME);
    if (now >= held - SAME_MS && now <= held + SAME_MS) return held;
    atomic_store(&s->shift_ms, now);
    return now;
}

int64_t xpl_pg_shared_ms(struct xpl_pg_store *s, int64_t ours_ms) {
    return ours_ms ? ours_ms + pg_shift_ms(s) : 0;
}

int64_t xpl_pg_our_ms(struct xpl_pg_store *s, int64_t shared_ms) {
    return shared_ms ? shared_ms - pg_shift_ms(s) : 0;
}

int64_t xpl_pg_now_ms(struct xpl_pg_store *s) {
    return clock_ms(CLOCK_REALTIME) + pg_shift_ms(s);
}

void xpl_pg_notice(struct xpl_pg_store *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    xpl_notices_add(&s->notices, fmt, ap);
    va_end(ap);
}

bool xpl_pg_next_notice(struct xpl_store *base, char *buf, size_t size) {
    return xpl_notices_next(&xpl_pg_of(base)->notices, buf, size);
}

static xpl_status_t status_of(enum xpl_pg_rc rc) {
    static const xpl_status_t of[] = {
        [XPL_PG_OK] = XPL_OK,
        [XPL_PG_NONE] = XPL_NOT_FOUND,
        [XPL_PG_AWAY] = XPL_UNAVAILABLE,
        [XPL_PG_BUSY] = XPL_UNAVAILABLE,
        [XPL_PG_FULL] = XPL_RESOURCE_EXHAUSTED,
        [XPL_PG_TOOBIG] = XPL_RESOURCE_EXHAUSTED,
        [XPL_PG_NOMEM] = XPL_RESOURCE_EXHAUSTED,
        [XPL_PG_DAMAGE] = XPL_DATA_LOSS,
        [XPL_PG_READONLY] = XPL_FAILED_PRECONDITION,
        [XPL_PG_DENIED] = XPL_FAILED_PRECONDITION,
        [XPL_PG_SCHEMA] = XPL_UNAVAILABLE,
        [XPL_PG_TAKEN] = XPL_UNAVAILABLE,
        [XPL_PG_OTHER] = XPL_UNAVAILABLE,
    };
    return of[rc];
}

xpl_status_t xpl_pg_fail(const struct xpl_pg_store *s, enum xpl_pg_rc rc, const char *why,
                         struct xpl_error *err) {
    if (rc == XPL_PG_NOMEM) XPL_RETURN_OOM(err, "store");
    if (rc == XPL_PG_TOOBIG)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: too large for the store", s->name);
    XPL_RETURN_ERROR(err, status_of(rc), "%s: %s", s->name, why && why[0] ? why : "failed");
}

bool xpl_pg_read_text(struct xpl_pg_conn *c, const PGresult *r, int row, int column,
                      struct xpl_arena *arena, xpl_str_t *ret) {
    const xpl_bytes_t text = xpl_pg_get_bytes(c, r, row, column);
    return xpl_arena_str(arena, (xpl_str_t){(const char *)text.ptr, text.len}, ret);
}

enum xpl_pg_rc xpl_pg_read_used(struct xpl_pg_store *s, struct xpl_pg_conn *c) {
    int64_t used = 0;
    const enum xpl_pg_rc rc = xpl_pg_ask(c, "SELECT " XPL_PG_USED, NULL, &used);
    if (rc == XPL_PG_OK) atomic_store(&s->used_bytes, used);
    return rc;
}
