// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <stdatomic.h>
#include <string.h>

#include "base/log.h"

enum { MAX_TOOLS = 32, N_CODES = 17 };

struct xpl_metrics {
    struct {
        atomic_ullong count, micros;
    } at[MAX_TOOLS + 2][N_CODES]; // tools by registry position, then op_stats, then all others
};

struct xpl_metrics *xpl_metrics_new(void) {
    struct xpl_metrics *t = xpl_sys_alloc(sizeof *t);
    if (t) memset(t, 0, sizeof *t);
    return t;
}

void xpl_metrics_free(struct xpl_metrics *t) {
    xpl_sys_free(t);
}

static size_t row_of(xpl_str_t tool) {
    const struct xpl_tool *const found = xpl_tool_find(tool);
    size_t n;
    const struct xpl_tool *const *const all = xpl_tools(&n);
    for (size_t i = 0; found && i < n && i < MAX_TOOLS; i++)
        if (all[i] == found) return i;
    return xpl_str_eq(tool, XPL_STR("op_stats")) ? MAX_TOOLS : MAX_TOOLS + 1;
}

static enum xpl_log_level level_of(xpl_status_t code) {
    return code == XPL_OK || code == XPL_CANCELLED ? XPL_LOG_INFO
           : code == XPL_INTERNAL                  ? XPL_LOG_ERROR
                                                   : XPL_LOG_WARN;
}

static void log_line(const struct xpl_request_line *r) {
    struct xpl_log_line l;
    xpl_log_begin(&l, level_of(r->code), "request", "request");
    xpl_log_z(&l, "service", r->service);
    xpl_log_str(&l, "tool", r->tool);
    xpl_log_str(&l, "session", r->session);
    if (r->n_hosts == 1)
        xpl_log_str(&l, "hosts", r->host);
    else if (r->n_hosts)
        xpl_log_int(&l, "hosts", (int64_t)r->n_hosts);
    else
        xpl_log_z(&l, "hosts", "ALL_HOSTS");
    xpl_log_z(&l, "status", xpl_status_name(r->code));
    if (r->source && r->source[0]) xpl_log_z(&l, "source", r->source);
    xpl_log_int(&l, "bytes", (int64_t)r->bytes);
    xpl_log_int(&l, "us", (int64_t)r->micros);
    for (int i = 0; r->stage_us && i < XPL_N_STAGES; i++) {
        char key[24] = "us_";
        if (!r->stage_us[i]) continue;
        (void)strncat(key, xpl_stage_names[i], sizeof key - 4);
        xpl_log_int(&l, key, (int64_t)r->stage_us[i]);
    }
    if (r->error) xpl_log_z(&l, "error", r->error);
    xpl_log_end(&l);
}

void xpl_metrics_request(struct xpl_metrics *t, const struct xpl_request_line *l) {
    const size_t row = row_of(l->tool);
    const unsigned code = (unsigned)l->code < N_CODES ? (unsigned)l->code : XPL_UNKNOWN;
    atomic_fetch_add_explicit(&t->at[row][code].count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->at[row][code].micros, l->micros, memory_order_relaxed);
    if (xpl_log_enabled(level_of(l->code), "request")) log_line(l);
}

size_t xpl_metrics_rows(struct xpl_metrics *t, struct xpl_metrics_row *ret, size_t max) {
    size_t n_tools, n = 0;
    // Those beyond MAX_TOOLS are in "other".
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t row = 0; row < MAX_TOOLS + 2; row++) {
        for (unsigned code = 0; code < N_CODES && n < max; code++) {
            const uint64_t count = atomic_load(&t->at[row][code].count);
            if (!count) continue;
            ret[n++] = (struct xpl_metrics_row){
                .tool = row < MAX_TOOLS    ? tools[row]->name
                        : row == MAX_TOOLS ? "op_stats"
                                           : "other",
                .code = xpl_status_name((xpl_status_t)code),
                .count = count,
                .micros = atomic_load(&t->at[row][code].micros),
            };
        }
    }
    return n;
}
