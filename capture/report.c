// SPDX-License-Identifier: Apache-2.0
// capture.json: the plan and the outcome of a capture.
#include <inttypes.h>

#include "base/json.h"
#include "capture/impl.h"

static void text(struct xpl_buf *b, const char *key, const char *value) {
    xpl_buf_printf(b, "\"%s\": ", key);
    xpl_json_str(b, xpl_str_from(value), false);
}

static const char *call_name(enum xpl_capture_call call) {
    switch (call) {
        case XPL_CAPTURE_SNAPSHOT: return "snapshot";
        case XPL_CAPTURE_CONTINUOUS: return "continuous";
        case XPL_CAPTURE_STOP: return "stop";
        case XPL_CAPTURE_PROFILE:
        default: return "profile";
    }
}

static void put_advanced(const struct xpl_capture_plan *p, struct xpl_buf *b) {
    xpl_buf_printf(b, ", \"advanced\": {");
    for (size_t i = 0; i < p->n_advanced; i++) {
        const struct xpl_capture_advanced *const a = &p->advanced[i];
        if (i) xpl_buf_printf(b, ", ");
        xpl_json_str(b, xpl_str_from(a->key), false);
        xpl_buf_printf(b, ": ");
        if (a->type == XPL_CAPTURE_TEXT)
            xpl_json_str(b, xpl_str_from(a->text), false);
        else if (a->type == XPL_CAPTURE_BOOL)
            xpl_buf_printf(b, "%s", a->number ? "true" : "false");
        else
            xpl_buf_printf(b, "%" PRId64, a->number);
    }
    xpl_buf_putc(b, '}');
}

static void put_level(struct xpl_buf *b, const char *key, int level) {
    if (level >= 0) xpl_buf_printf(b, ", \"%s\": %d", key, level);
}

static void put_options(const struct xpl_capture_plan *p, struct xpl_buf *b) {
    xpl_buf_printf(b,
                   "\"options\": {\"call\": \"%s\", \"duration_ms\": %" PRId64
                   ", \"delay_ms\": %" PRId64 ", \"retries\": %u",
                   call_name(p->call), p->duration_ms, p->delay_ms, p->retries);
    put_level(b, "host_tracer_level", p->host_tracer_level);
    put_level(b, "device_tracer_level", p->device_tracer_level);
    put_level(b, "python_tracer_level", p->python_tracer_level);
    put_advanced(p, b);
    xpl_buf_putc(b, '}');
}

static void put_host(const struct xpl_capture_host *h, struct xpl_buf *b) {
    xpl_buf_printf(b, "    {");
    text(b, "target", h->target);
    xpl_buf_printf(b, ", ");
    text(b, "state", xpl_capture_state_name(h->state));
    xpl_buf_printf(b, ", \"attempts\": %u", h->attempts);
    if (h->start_ns) xpl_buf_printf(b, ", \"start_unix_ns\": %" PRId64, h->start_ns);
    if (h->answered_ns) xpl_buf_printf(b, ", \"answered_unix_ns\": %" PRId64, h->answered_ns);
    if (h->file.name[0]) {
        const struct xpl_check_counts *const c = &h->file.counts;
        xpl_buf_printf(b, ", ");
        text(b, "host", h->file.name);
        xpl_buf_printf(b, ", ");
        text(b, "hostname", h->file.hostname);
        xpl_buf_printf(b,
                       ", \"bytes\": %" PRIu64 ", \"planes\": %" PRIu64 ", \"lines\": %" PRIu64
                       ", \"events\": %" PRIu64 ", \"shared_dir\": %s",
                       c->bytes, c->planes, c->lines, c->events, h->shared_dir ? "true" : "false");
    }
    if (h->state == XPL_CAPTURE_STORED && h->reason[0]) {
        xpl_buf_printf(b, ", ");
        text(b, "notice", h->reason);
    }
    if (h->code != XPL_OK) {
        xpl_buf_printf(b, ", \"code\": \"%s\", ", xpl_status_name(h->code));
        text(b, "reason", h->reason);
    }
    xpl_buf_putc(b, '}');
}

void xpl_capture_json(const struct xpl_capture_plan *plan, const struct xpl_capture_outcome *o,
                      struct xpl_buf *b) {
    xpl_buf_printf(b, "{\n  \"version\": 1,\n  ");
    text(b, "session", o->session);
    xpl_buf_printf(b, ",\n  ");
    text(b, "path", o->path ? o->path : "");
    xpl_buf_printf(b, ",\n  ");
    put_options(plan, b);
    xpl_buf_printf(b,
                   ",\n  \"begin_unix_ns\": %" PRId64 ",\n  \"end_unix_ns\": %" PRId64
                   ",\n  \"hosts\": [\n",
                   o->begin_ns, o->end_ns);
    for (size_t i = 0; i < o->n_hosts; i++) {
        put_host(&o->hosts[i], b);
        xpl_buf_printf(b, "%s\n", i + 1 < o->n_hosts ? "," : "");
    }
    xpl_buf_printf(b, "  ]\n}\n");
}
