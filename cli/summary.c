// SPDX-License-Identifier: Apache-2.0
// `xplanectl summary`: what a person reads after a run.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"
#include "cli/remote.h"
#include "cli/summary_json.h"
#include "cli/table.h"

enum { TOP = 15, NAME_WIDTH = 60, MAX_STEPS = 12 };

static void title(const char *text) {
    (void)printf("\n%s\n", text);
}

static void print_or_say(struct xpl_table *t, const char *nothing) {
    if (xpl_table_rows(t) == 0)
        (void)printf("  %s\n", nothing);
    else if (!xpl_table_print(t, stdout))
        (void)fputs("xplanectl: out of memory\n", stderr);
    xpl_table_free(t);
}

// ---- ops ----

static int by_self_time(const void *a, const void *b) {
    const struct xpl_op_metrics *const *x = a, *const *y = b;
    if ((*x)->self_time_ps != (*y)->self_time_ps)
        return (*x)->self_time_ps < (*y)->self_time_ps ? 1 : -1;
    return xpl_str_cmp((*x)->name, (*y)->name);
}

static void op_row(struct xpl_table *t, const struct xpl_op_metrics *m, uint64_t total) {
    xpl_table_text(t, m->name, NAME_WIDTH);
    xpl_table_text(t, m->category, 30);
    xpl_table_printf(t, "%" PRIu32, m->occurrences);
    xpl_table_time_ps(t, m->self_time_ps);
    xpl_table_percent(t, total ? (double)m->self_time_ps / (double)total : 0);
    xpl_table_time_ps(t, m->occurrences ? m->time_ps / m->occurrences : 0);
    xpl_str_t from = m->provenance;
    if (from.len && from.ptr[from.len - 1] == ':') from.len--;
    xpl_table_text(t, from, NAME_WIDTH);
}

static void print_ops(const char *heading, const struct xpl_op_metrics_db *db) {
    static const char *const columns[] = {"OP",     "CATEGORY", ">COUNT",      ">SELF TIME",
                                          ">SHARE", ">AVERAGE", "FRAMEWORK OP"};
    title(heading);
    const struct xpl_op_metrics **order = xpl_sys_alloc((db->metrics_db.n + 1) * sizeof *order);
    if (!order) return;
    size_t n = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        if (xpl_op_metrics_is_idle(&db->metrics_db.v[i])) continue;
        order[n++] = &db->metrics_db.v[i];
        total += db->metrics_db.v[i].self_time_ps;
    }
    qsort(order, n, sizeof *order, by_self_time);
    struct xpl_table *t = xpl_table_new(columns, 7);
    for (size_t i = 0; i < n && i < TOP; i++)
        op_row(t, order[i], total);
    print_or_say(t, "none");
    if (n > TOP) (void)printf("  and %zu more\n", n - TOP);
    xpl_sys_free((void *)(uintptr_t)order);
}

// ---- kernels ----

static void print_kernels(const struct xpl_opstats *s) {
    static const char *const columns[] = {"KERNEL", ">COUNT", ">TOTAL",      ">AVERAGE",
                                          ">MIN",   ">MAX",   "TENSOR CORE", "OP"};
    title("Kernels");
    struct xpl_table *t = xpl_table_new(columns, 8);
    for (size_t i = 0; i < s->kernel_reports.n && i < TOP; i++) {
        const struct xpl_kernel_report *k = &s->kernel_reports.v[i];
        xpl_table_text(t, k->name, NAME_WIDTH);
        xpl_table_printf(t, "%" PRIu32, k->occurrences);
        xpl_table_time_ps(t, k->total_duration_ns * 1000);
        xpl_table_time_ps(t, k->occurrences ? k->total_duration_ns * 1000 / k->occurrences : 0);
        xpl_table_time_ps(t, k->min_duration_ns * 1000);
        xpl_table_time_ps(t, k->max_duration_ns * 1000);
        xpl_table_printf(t, "%s", k->is_kernel_using_tensor_core ? "yes" : "no");
        xpl_table_text(t, k->op_name, NAME_WIDTH);
    }
    print_or_say(t, "none (no GPU in this profile)");
    if (s->kernel_reports.n > TOP) (void)printf("  and %zu more\n", s->kernel_reports.n - TOP);
}

// ---- steps ----

struct step_sums {
    double mean_ps, slowest_ps;
    uint64_t least, most; // of the means
};

static void print_step_sums(const struct step_sums *sums, size_t n, bool several) {
    char average[32], slowest[32], low[32], high[32];
    xpl_show_time_ps(average, xpl_summary_ps(sums->mean_ps / (double)n));
    xpl_show_time_ps(slowest, xpl_summary_ps(sums->slowest_ps / (double)n));
    xpl_show_time_ps(low, sums->least);
    xpl_show_time_ps(high, sums->most);
    (void)printf("  %zu step%s, average %s, shortest %s, longest %s", n, n == 1 ? "" : "s", average,
                 low, high);
    if (several) (void)printf(" (means of the cores); average of the slowest core %s", slowest);
    (void)printf("\n");
}

static void print_steps(const struct xpl_opstats *s) {
    static const char *const columns[] = {">STEP", "NAME", ">MEAN OF CORES", ">SLOWEST CORE",
                                          ">CORES"};
    title("Steps");
    const size_t n = s->step_db.step_sequence.n;
    struct xpl_table *t = xpl_table_new(columns, 5);
    struct step_sums sums = {.least = UINT64_MAX};
    bool several = false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_per_core_step_info *p = &s->step_db.step_sequence.v[i];
        const struct xpl_summary_step time = xpl_summary_step(p);
        sums.mean_ps += (double)time.mean_ps;
        sums.slowest_ps += (double)time.slowest_ps;
        if (time.mean_ps > sums.most) sums.most = time.mean_ps;
        if (time.mean_ps < sums.least) sums.least = time.mean_ps;
        several |= p->step_info_per_core.n > 1;
        if (i >= MAX_STEPS) continue;
        xpl_table_printf(t, "%" PRId64, time.number);
        xpl_table_text(t, time.name, NAME_WIDTH);
        xpl_table_time_ps(t, time.mean_ps);
        xpl_table_time_ps(t, time.slowest_ps);
        xpl_table_printf(t, "%zu", p->step_info_per_core.n);
    }
    print_or_say(t, "none (no step markers in this profile)");
    if (n) print_step_sums(&sums, n, several);
}

// ---- memory ----

static uint64_t int_of(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key); // proto JSON writes 64-bit integers as strings
    return v && json_is_string(v) ? strtoull(json_string_value(v), NULL, 10) : 0;
}

static void memory_rows(struct xpl_table *t, const char *host, const json_t *answer) {
    json_t *const all = json_object_get(answer, "memoryProfilePerAllocator");
    const char *name;
    json_t *allocator;
    json_object_foreach(all, name, allocator) {
        const json_t *sum = json_object_get(allocator, "profileSummary");
        const json_t *peak = json_object_get(sum, "peakStats");
        xpl_table_text(t, xpl_str_from(host), 40);
        xpl_table_text(t, xpl_str_from(name), 40);
        xpl_table_bytes(t, int_of(peak, "peakBytesInUse"));
        xpl_table_bytes(t, int_of(sum, "memoryCapacity"));
        xpl_table_bytes(t, int_of(peak, "heapAllocatedBytes"));
        xpl_table_bytes(t, int_of(peak, "stackReservedBytes"));
        xpl_table_percent(t, json_number_value(json_object_get(peak, "fragmentation")));
    }
}

static json_t *memory_of_host(const struct xpl_args *a, xpl_client *c, const char *session,
                              const char *host) {
    xpl_tool_request q = xpl_remote_request(a, "memory_profile", session);
    q.hosts = &host;
    q.n_hosts = 1;
    q.n_options = 0;
    xpl_answer *answer = NULL;
    xpl_result r;
    if (xpl_client_tool(c, &q, &answer, &r) != 0) {
        (void)fprintf(stderr, "xplanectl: warning: %s: %s\n", host, r.message);
        return NULL;
    }
    size_t n;
    const char *const text = xpl_answer_data(answer, &n);
    json_t *const root = n ? json_loadb(text, n, 0, NULL) : NULL;
    xpl_answer_free(answer);
    return root;
}

static bool is_named(const struct xpl_args *a, const char *host) {
    bool named = a->n_hosts == 0;
    for (size_t h = 0; h < a->n_hosts; h++)
        named = named || strcmp(a->hosts[h], host) == 0;
    return named;
}

static void print_memory(const struct xpl_args *a, xpl_client *c, const xpl_session_info *s) {
    static const char *const columns[] = {"HOST",          "MEMORY",        ">PEAK",
                                          ">CAPACITY",     ">HEAP AT PEAK", ">STACK AT PEAK",
                                          ">FRAGMENTATION"};
    title("Memory");
    struct xpl_table *t = xpl_table_new(columns, 7);
    for (size_t i = 0; i < s->n_hosts; i++) {
        if (!is_named(a, s->hosts[i].name)) continue;
        json_t *const answer = memory_of_host(a, c, s->name, s->hosts[i].name);
        memory_rows(t, s->hosts[i].name, answer);
        json_decref(answer);
    }
    print_or_say(t, "no allocations in this profile");
}

// ---- all of it ----

static void print_hosts(const struct xpl_args *a, const xpl_session_info *s) {
    char size[32];
    if (a->n_hosts) { // what follows is of these alone
        (void)printf("Hosts    %zu of %zu:", a->n_hosts, s->n_hosts);
        for (size_t i = 0; i < a->n_hosts; i++)
            (void)printf(" %s", a->hosts[i]);
        (void)printf("\n");
        return;
    }
    xpl_show_bytes(size, s->bytes);
    (void)printf("Hosts    %zu (%s)\n", s->n_hosts, size);
}

static void print_head(const struct xpl_args *a, const xpl_session_info *s,
                       const struct xpl_opstats *st) {
    (void)printf("Session  %s\n", s->name);
    print_hosts(a, s);
    const struct xpl_run_environment *e = &st->run_environment;
    (void)printf("Device   %.*s, %d core%s%s\n", XPL_STR_FMT(e->device_type), e->device_core_count,
                 e->device_core_count == 1 ? "" : "s", e->is_training ? ", training" : "");
    for (size_t i = 0; i < st->diagnostics.warnings.n; i++)
        (void)printf("Warning  %.*s\n", XPL_STR_FMT(st->diagnostics.warnings.v[i]));
    for (size_t i = 0; i < st->diagnostics.errors.n; i++)
        (void)printf("Error    %.*s\n", XPL_STR_FMT(st->diagnostics.errors.v[i]));
}

static int print_all(const struct xpl_args *a, xpl_client *c, const xpl_session_info *s,
                     xpl_bytes_t bytes) {
    struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)16 << 30);
    struct xpl_opstats *st = NULL;
    struct xpl_error err = {0};
    int status = XPL_EXIT_OK;
    if (xpl_opstats_decode(bytes, &arena, &st, &err) != XPL_OK) {
        (void)fprintf(stderr, "xplanectl: the server's OpStats cannot be read: %s\n", err.msg);
        status = XPL_EXIT_FAILED;
    } else if (a->json) {
        json_t *const memory = json_object();
        for (size_t i = 0; i < s->n_hosts; i++)
            if (is_named(a, s->hosts[i].name))
                (void)json_object_set_new(memory, s->hosts[i].name,
                                          memory_of_host(a, c, s->name, s->hosts[i].name));
        status = xpl_summary_json(a, s, st, memory);
    } else {
        print_head(a, s, st);
        (void)xpl_findings_print_session(a, c, s->name);
        print_steps(st);
        print_ops("Device ops", &st->device_op_metrics_db);
        print_kernels(st);
        print_ops("Host ops", &st->host_op_metrics_db);
        print_memory(a, c, s);
    }
    xpl_arena_fini(&arena);
    return status;
}

int xpl_cmd_summary(const struct xpl_args *a) {
    xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_sessions *one = NULL;
    xpl_answer *answer = NULL;
    xpl_result r;
    const xpl_tool_request q = xpl_remote_request(a, NULL, a->rest[1]);
    int status = XPL_EXIT_FAILED;
    if (xpl_client_session(c, a->rest[1], &one, &r) != 0 ||
        xpl_client_op_stats(c, &q, &answer, &r) != 0) {
        status = xpl_remote_failed(&r);
        if (r.code == XPL_FAILED_PRECONDITION)
            (void)fprintf(stderr,
                          "xplanectl: `xplanectl tools %s` lists the tools that answer for it\n",
                          a->rest[1]);
    } else {
        for (size_t i = 0; xpl_answer_warning(answer, i); i++)
            (void)fprintf(stderr, "xplanectl: warning: %s\n", xpl_answer_warning(answer, i));
        size_t n;
        const void *const p = xpl_answer_data(answer, &n);
        status = print_all(a, c, xpl_sessions_get(one, 0), (xpl_bytes_t){p, n});
    }
    xpl_answer_free(answer);
    xpl_sessions_free(one);
    xpl_client_close(c);
    return status;
}
