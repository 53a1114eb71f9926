// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/traceparent.h"

// Tools by registry position, then op_stats, then all others.
enum { N_ROWS = XPL_METRICS_TOOLS, N_CODES = XPL_METRICS_CODES };

// Steps of 1, 2.5, 5 from a warm answer (10 us) to --request-timeout.
const uint64_t xpl_metrics_bounds_us[XPL_METRICS_BOUNDS] = {
    10,      25,      50,       100,      250,      500,      1000,   2500,
    5000,    10000,   25000,    50000,    100000,   250000,   500000, 1000000,
    2500000, 5000000, 10000000, 30000000, 60000000, 300000000};

struct histogram {
    atomic_ullong buckets[XPL_METRICS_BOUNDS + 1];
};

struct xpl_metrics {
    atomic_ullong slow_us; // from which on requests are slow; ULLONG_MAX: none is
    struct {
        atomic_ullong count, micros;
    } at[N_ROWS][N_CODES];
    struct histogram whole[N_ROWS]; // their sums are those of `at`
    struct {
        struct histogram histogram;
        atomic_ullong micros;
    } stages[XPL_N_STAGES][N_ROWS];
};

struct xpl_metrics *xpl_metrics_new(void) {
    struct xpl_metrics *t = xpl_sys_alloc(sizeof *t);
    if (t) memset(t, 0, sizeof *t);
    if (t) xpl_metrics_set_slow(t, 0);
    return t;
}

void xpl_metrics_set_slow(struct xpl_metrics *t, uint64_t micros) {
    atomic_store(&t->slow_us, micros ? micros : ULLONG_MAX);
}

void xpl_metrics_free(struct xpl_metrics *t) {
    xpl_sys_free(t);
}

static const char *name_of(size_t row) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    if (row >= XPL_TOOLS_MAX) return row == XPL_TOOLS_MAX ? "op_stats" : "other";
    return row < n ? tools[row]->name : "";
}

static size_t find_row(xpl_str_t tool) {
    const struct xpl_tool *const found = xpl_tool_find(tool);
    size_t n;
    const struct xpl_tool *const *const all = xpl_tools(&n);
    for (size_t i = 0; found && i < n; i++)
        if (all[i] == found) return i;
    return xpl_str_eq(tool, XPL_STR("op_stats")) ? XPL_TOOLS_MAX : XPL_TOOLS_MAX + 1;
}

// Who asks again mostly asks for the same tool.
static size_t row_of(xpl_str_t tool) {
    static _Thread_local size_t last;
    if (!xpl_str_eq(tool, xpl_str_from(name_of(last)))) last = find_row(tool);
    return last;
}

static void add(atomic_ullong *to, uint64_t n) {
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void observe(struct histogram *h, uint64_t micros) {
    size_t i = 0;
    while (i < XPL_METRICS_BOUNDS && micros > xpl_metrics_bounds_us[i])
        i++;
    add(&h->buckets[i], 1);
}

static bool is_slow(const struct xpl_metrics *t, const struct xpl_request_line *r) {
    return r->micros >= atomic_load_explicit(&t->slow_us, memory_order_relaxed);
}

static enum xpl_log_level level_of(const struct xpl_metrics *t, const struct xpl_request_line *r) {
    const bool fine = r->code == XPL_OK || r->code == XPL_CANCELLED;
    return r->code == XPL_INTERNAL  ? XPL_LOG_ERROR
           : fine && !is_slow(t, r) ? XPL_LOG_INFO
                                    : XPL_LOG_WARN;
}

static const char *count_text(size_t n, char text[24]) {
    (void)snprintf(text, 24, "%zu", n);
    return text;
}

static void log_line(const struct xpl_metrics *t, const struct xpl_request_line *r) {
    struct xpl_log_line l;
    char count[24];
    xpl_log_begin(&l, level_of(t, r), "request", "request");
    xpl_log_z(&l, "service", r->service);
    xpl_log_str(&l, "tool", r->tool);
    xpl_log_str(&l, "session", r->session);
    if (r->n_hosts == 1)
        xpl_log_str(&l, "hosts", r->host);
    else if (r->n_hosts) // a text in JSON, too: the key has one type
        xpl_log_z(&l, "hosts", count_text(r->n_hosts, count));
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
    if (is_slow(t, r)) xpl_log_int(&l, "slow", 1);
    if (r->error) xpl_log_z(&l, "error", r->error);
    xpl_traceparent_log(r->traceparent, &l);
    xpl_log_end(&l);
}

void xpl_metrics_request(struct xpl_metrics *t, const struct xpl_request_line *l) {
    const size_t row = row_of(l->tool);
    const unsigned code = (unsigned)l->code < N_CODES ? (unsigned)l->code : XPL_UNKNOWN;
    add(&t->at[row][code].count, 1);
    add(&t->at[row][code].micros, l->micros);
    observe(&t->whole[row], l->micros);
    for (int i = 0; l->stage_us && i < XPL_N_STAGES; i++) {
        if (!l->stage_us[i]) continue; // the request did not get there
        observe(&t->stages[i][row].histogram, l->stage_us[i]);
        add(&t->stages[i][row].micros, l->stage_us[i]);
    }
    if (xpl_log_enabled(level_of(t, l), "request")) log_line(t, l);
}

size_t xpl_metrics_rows(struct xpl_metrics *t, struct xpl_metrics_row *ret, size_t max) {
    size_t n = 0;
    for (size_t row = 0; row < N_ROWS; row++) {
        for (unsigned code = 0; code < N_CODES && n < max; code++) {
            const uint64_t count = atomic_load(&t->at[row][code].count);
            if (!count) continue;
            ret[n++] = (struct xpl_metrics_row){
                .tool = name_of(row),
                .code = xpl_status_name((xpl_status_t)code),
                .count = count,
                .micros = atomic_load(&t->at[row][code].micros),
            };
        }
    }
    return n;
}

// Whether there is any count.
static bool read_buckets(struct histogram *from, struct xpl_metrics_histogram *ret) {
    uint64_t sum = 0;
    for (size_t i = 0; i <= XPL_METRICS_BOUNDS; i++)
        sum += ret->buckets[i] = atomic_load(&from->buckets[i]);
    return sum != 0;
}

size_t xpl_metrics_histograms(struct xpl_metrics *t, int stage, struct xpl_metrics_histogram *ret,
                              size_t max) {
    size_t n = 0;
    for (size_t row = 0; row < N_ROWS && n < max; row++) {
        struct xpl_metrics_histogram *const h = &ret[n];
        *h = (struct xpl_metrics_histogram){.tool = name_of(row)};
        if (stage >= 0) h->stage = xpl_stage_names[stage];
        if (!read_buckets(stage < 0 ? &t->whole[row] : &t->stages[stage][row].histogram, h))
            continue;
        if (stage >= 0) h->micros = atomic_load(&t->stages[stage][row].micros);
        for (unsigned code = 0; stage < 0 && code < N_CODES; code++)
            h->micros += atomic_load(&t->at[row][code].micros);
        n++;
    }
    return n;
}
