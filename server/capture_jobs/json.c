// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/json.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/capture_jobs/schedules.h"

enum { NEWEST = 100, MOST_LOST = 5, ARENA_BYTES = 64 << 20 };

// By XPL_HISTORY_*, which are xpl_captured and two more; as xplaned.h names them.
static const char *const kStates[] = {"",       "running",   "done",       "partial",
                                      "failed", "cancelled", "interrupted"};

static void put_text(struct xpl_buf *b, const char *key, xpl_str_t text) {
    xpl_buf_printf(b, ",\"%s\":", key);
    xpl_json_str(b, text, false);
}

// The hosts of a finished capture without a profile, as the list of sessions has them.
static void put_lost(struct xpl_buf *b, const struct xpl_history_capture *c) {
    size_t n = 0;
    xpl_buf_str(b, XPL_STR(",\"lost\":["));
    for (size_t i = 0; c->state != XPL_HISTORY_RUNNING && i < c->n_hosts; i++) {
        const struct xpl_history_host *const h = &c->hosts[i];
        if (h->state == XPLANED__V1__HOST_STATE__HOST_STATE_STORED || n++ >= MOST_LOST) continue;
        xpl_buf_str(b, n > 1 ? XPL_STR(",{\"target\":") : XPL_STR("{\"target\":"));
        xpl_json_str(b, h->target, false);
        put_text(b, "reason", h->reason);
        xpl_buf_putc(b, '}');
    }
    xpl_buf_printf(b, "],\"lost_hosts\":%zu", n);
}

static void put_capture(struct xpl_buf *b, const struct xpl_history_capture *c) {
    const bool known = c->state > 0 && (size_t)c->state < sizeof kStates / sizeof *kStates;
    xpl_buf_printf(b,
                   "{\"id\":%llu,\"begin_unix_ms\":%lld,\"end_unix_ms\":%lld,\"state\":\"%s\","
                   "\"schedule_id\":%llu,\"hosts\":%zu",
                   (unsigned long long)c->id, (long long)c->begin_ms, (long long)c->end_ms,
                   known ? kStates[c->state] : "", (unsigned long long)c->schedule_id, c->n_hosts);
    put_text(b, "session", c->session);
    put_text(b, "message", c->message);
    put_lost(b, c);
    xpl_buf_putc(b, '}');
}

static void put_schedule(struct xpl_buf *b, const Xplaned__V1__Schedule *s) {
    const Xplaned__V1__CaptureRequest *const of = s->request ? s->request->capture : NULL;
    xpl_buf_printf(
        b,
        "{\"id\":%llu,\"every_ms\":%llu,\"continuous\":%s,\"next_unix_ms\":%lld,"
        "\"last_capture_id\":%llu,\"sessions\":%u,\"bytes\":%llu,\"targets\":[",
        (unsigned long long)s->id, (unsigned long long)(s->request ? s->request->every_ms : 0),
        s->request && s->request->continuous ? "true" : "false", (long long)s->next_unix_ms,
        (unsigned long long)s->last_capture_id, s->sessions, (unsigned long long)s->bytes);
    for (size_t i = 0; of && i < of->n_targets; i++) {
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, xpl_str_from(of->targets[i]), false);
    }
    xpl_buf_str(b, XPL_STR("]}"));
}

xpl_status_t xpl_capture_jobs_put_json(struct xpl_capture_jobs *c, struct xpl_history *h,
                                       struct xpl_schedules *s, struct xpl_buf *out,
                                       struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(ARENA_BYTES);
    Xplaned__V1__ListSchedulesResponse schedules;
    struct xpl_history_capture *list;
    size_t n;
    XPL_TRY(xpl_history_list(h, 0, NEWEST, &arena, &list, &n, err));
    XPL_TRY(xpl_schedules_list(s, 0, &arena, &schedules, err));
    xpl_buf_printf(out, "{\"enabled\":%s,\"captures\":[",
                   xpl_capture_jobs_enabled(c) ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        if (i) xpl_buf_putc(out, ',');
        if (list[i].state == XPL_HISTORY_RUNNING && !xpl_capture_jobs_show(c, &arena, &list[i]))
            XPL_RETURN_OOM(err, "captures");
        put_capture(out, &list[i]);
    }
    xpl_buf_str(out, XPL_STR("],\"schedules\":["));
    for (size_t i = 0; i < schedules.n_schedules; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_schedule(out, schedules.schedules[i]);
    }
    xpl_buf_str(out, XPL_STR("]}"));
    if (out->failed) XPL_RETURN_OOM(err, "captures");
    return XPL_OK;
}
