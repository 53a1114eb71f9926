// SPDX-License-Identifier: Apache-2.0
// `xplanectl summary`: what a person reads after a run.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_db.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/lib/op_record.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/terminal.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"
#include "cli/runs/runs.h"
#include "cli/summary_json.h"
#include "cli/table.h"

enum {
    TOP = 15,
    TOP_ALLOCATIONS = 5,
    NAME_WIDTH = 60,
    MAX_STEPS = 12,
    LONGEST_STEPS = 4,
    MAX_SERIES = 8
};

static void title(const char *text, FILE *out) {
    (void)fprintf(out, "\n%s\n", text);
}

// Text of the profile or of a name, between texts of ours.
static void foreign_text(const char *before, xpl_str_t text, const char *behind, FILE *out) {
    (void)fputs(before, out);
    xpl_terminal_text(text, SIZE_MAX, out);
    (void)fputs(behind, out);
}

// Prints a section, whose table is freed; nothing of one without rows.
static bool print_section(const char *heading, struct xpl_table *t, FILE *out) {
    if (!t || xpl_table_rows(t)) {
        title(heading, out);
        return xpl_table_finish(t, out);
    }
    xpl_table_free(t);
    return true;
}

// ---- ops ----

static int by_self_time(const void *a, const void *b) {
    const struct xpl_op_metrics *const *x = a, *const *y = b;
    if ((*x)->self_time_ps != (*y)->self_time_ps)
        return (*x)->self_time_ps < (*y)->self_time_ps ? 1 : -1;
    return xpl_str_cmp((*x)->name, (*y)->name);
}

// Columns of only device ops, of which the profile may have costs.
static void rate_cells(struct xpl_table *t, const struct xpl_opstats *s,
                       const struct xpl_op_metrics *m) {
    struct xpl_op_record r;
    xpl_op_record_make(m, &s->perf_env, s->run_environment.hardware_type, &r);
    const bool known = !xpl_op_record_doubt(m, &s->perf_env, s->run_environment.hardware_type, &r);
    xpl_table_flop_rate(t, known ? r.flop_rate : 0);
    xpl_table_byte_rate(t, known ? r.bandwidth : 0);
    xpl_table_text(t, r.bound_by, NAME_WIDTH);
}

static void op_row(struct xpl_table *t, const struct xpl_op_metrics *m, uint64_t total) {
    xpl_table_text(t, m->name, NAME_WIDTH);
    xpl_table_text(t, m->category, 30);
    xpl_table_printf(t, "%" PRIu32, m->occurrences);
    xpl_table_time_ps(t, m->self_time_ps);
    xpl_table_percent(t, total ? (double)m->self_time_ps / (double)total : 0);
    xpl_table_time_ps(t, m->occurrences ? m->time_ps / m->occurrences : 0);
}

static void source_cell(struct xpl_table *t, const struct xpl_op_metrics *m) {
    xpl_str_t from = m->provenance;
    if (from.len && from.ptr[from.len - 1] == ':') from.len--;
    xpl_table_text(t, from, NAME_WIDTH);
}

// `of`: the OpStats whose device ops these are; NULL for ops of the host, which have no rates.
static bool print_ops(const char *heading, const struct xpl_op_metrics_db *db,
                      const struct xpl_opstats *of, FILE *out) {
    static const char *const host_columns[] = {"OP",     "CATEGORY", ">COUNT",      ">SELF TIME",
                                               ">SHARE", ">AVERAGE", "FRAMEWORK OP"};
    static const char *const device_columns[] = {
        "OP",       "CATEGORY",   ">COUNT",     ">SELF TIME", ">SHARE",
        ">AVERAGE", ">FLOP RATE", ">BANDWIDTH", "BOUND BY",   "FRAMEWORK OP"};
    const struct xpl_op_metrics **order = xpl_sys_alloc((db->metrics_db.n + 1) * sizeof *order);
    if (!order) return false;
    size_t n = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        if (xpl_op_metrics_is_idle(&db->metrics_db.v[i])) continue;
        order[n++] = &db->metrics_db.v[i];
        total += db->metrics_db.v[i].self_time_ps;
    }
    qsort(order, n, sizeof *order, by_self_time);
    struct xpl_table *t = of ? xpl_table_new(device_columns, 10) : xpl_table_new(host_columns, 7);
    for (size_t i = 0; i < n && i < TOP; i++) {
        op_row(t, order[i], total);
        if (of) rate_cells(t, of, order[i]);
        source_cell(t, order[i]);
    }
    const bool ok = print_section(heading, t, out);
    if (n > TOP) (void)fprintf(out, "  and %zu more\n", n - TOP);
    xpl_sys_free((void *)(uintptr_t)order);
    return ok;
}

// ---- kernels ----

// "256x1x1"; nothing where the profile does not say.
static void extent_cell(struct xpl_table *t, const uint32_t dim[3], unsigned n) {
    if (n == 3)
        xpl_table_printf(t, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, dim[0], dim[1], dim[2]);
    else
        xpl_table_printf(t, "%s", "");
}

static void kernel_row(struct xpl_table *t, const struct xpl_kernel_report *k) {
    const uint64_t shared = (uint64_t)k->static_shmem_bytes + k->dynamic_shmem_bytes;
    xpl_table_text(t, k->name, NAME_WIDTH);
    xpl_table_printf(t, "%" PRIu32, k->occurrences);
    xpl_table_time_ps(t, k->total_duration_ns * 1000);
    xpl_table_time_ps(t, k->occurrences ? k->total_duration_ns * 1000 / k->occurrences : 0);
    xpl_table_time_ps(t, k->min_duration_ns * 1000);
    xpl_table_time_ps(t, k->max_duration_ns * 1000);
    extent_cell(t, k->grid_dim, k->n_grid_dim);
    extent_cell(t, k->block_dim, k->n_block_dim);
    // No kernel runs without registers or occupies nothing: the profile does not say.
    if (k->registers_per_thread)
        xpl_table_printf(t, "%" PRIu32, k->registers_per_thread);
    else
        xpl_table_unknown(t);
    xpl_table_bytes(t, shared);
    if (k->occupancy_pct > 0)
        xpl_table_percent(t, (double)k->occupancy_pct / 100);
    else
        xpl_table_unknown(t);
    xpl_table_printf(t, "%s", xpl_kernel_uses_matrix_unit(k) ? "yes" : "no");
    xpl_table_text(t, k->op_name, NAME_WIDTH);
}

static bool print_kernels(const struct xpl_opstats *s, FILE *out) {
    static const char *const columns[] = {
        "KERNEL", ">COUNT",     ">TOTAL",         ">AVERAGE",   ">MIN",        ">MAX", ">GRID",
        ">BLOCK", ">REGISTERS", ">SHARED MEMORY", ">OCCUPANCY", "MATRIX UNIT", "OP"};
    struct xpl_table *t = xpl_table_new(columns, 13);
    for (size_t i = 0; i < s->kernel_reports.n && i < TOP; i++)
        kernel_row(t, &s->kernel_reports.v[i]);
    const bool ok = print_section("Kernels", t, out);
    if (s->kernel_reports.n > TOP)
        (void)fprintf(out, "  and %zu more\n", s->kernel_reports.n - TOP);
    return ok;
}

// ---- steps ----

struct step_sums {
    double mean_ps, slowest_ps; // the latter on the core that is the slowest in total
    uint64_t least, most;       // of the means
    size_t n, n_all; // n_all: with those that are left out as they may be cut off; 0: not known
};

static void print_step_sums(const struct step_sums *sums, bool several, FILE *out) {
    const size_t n = sums->n;
    char average[32], slowest[32], low[32], high[32];
    xpl_show_time_ps(average, xpl_summary_ps(sums->mean_ps / (double)n));
    xpl_show_time_ps(slowest, xpl_summary_ps(sums->slowest_ps / (double)n));
    xpl_show_time_ps(low, sums->least);
    xpl_show_time_ps(high, sums->most);
    (void)fprintf(out, "  %zu step%s, average %s, shortest %s, longest %s", n, n == 1 ? "" : "s",
                  average, low, high);
    if (several)
        (void)fprintf(out, " (means of the cores); average of the slowest core %s", slowest);
    if (n + 2 == sums->n_all)
        (void)fprintf(out, "; of %zu steps the first and the last are left out", sums->n_all);
    (void)fprintf(out, "\n");
}

// `of`: the hosts that have them, where the others have none; else NULL.
static void print_whose(const json_t *of, FILE *out) {
    const json_t *name;
    size_t i;
    if (!of) return;
    (void)fprintf(out, "  of");
    json_array_foreach(of, i, name)
        foreign_text(" ", xpl_str_from(json_string_value(name)), "", out);
    (void)fprintf(out, "; the other hosts have no steps\n");
}

static void add_step(struct step_sums *sums, const struct xpl_summary_step *time) {
    sums->n++;
    sums->mean_ps += (double)time->mean_ps;
    if (time->mean_ps > sums->most) sums->most = time->mean_ps;
    if (time->mean_ps < sums->least || sums->n == 1) sums->least = time->mean_ps;
}

// Steps of several series, such as training and evaluation: each has a separate average; that of
// all steps would be the time of none.  *ret_any: whether there are several.
static bool print_series(const struct xpl_step_db *db, FILE *out, bool *ret_any) {
    static const char *const columns[] = {"SERIES", ">STEPS", ">AVERAGE", ">SHORTEST", ">LONGEST"};
    struct series {
        xpl_str_t name;
        struct step_sums sums;
    } v[MAX_SERIES] = {0};
    size_t n = 0, at;
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        const struct xpl_summary_step time = xpl_summary_step(&db->step_sequence.v[i]);
        const xpl_str_t name = xpl_step_series(time.name);
        for (at = 0; at < n && !xpl_str_eq(v[at].name, name);)
            at++;
        if (at == MAX_SERIES) continue;
        if (at == n) v[n++].name = name;
        add_step(&v[at].sums, &time);
    }
    *ret_any = n > 1;
    if (n < 2) return true;
    struct xpl_table *const t = xpl_table_new(columns, 5);
    for (size_t i = 0; i < n; i++) {
        xpl_table_text(t, v[i].name, NAME_WIDTH);
        xpl_table_printf(t, "%zu", v[i].sums.n);
        xpl_table_time_ps(t, xpl_summary_ps(v[i].sums.mean_ps / (double)v[i].sums.n));
        xpl_table_time_ps(t, v[i].sums.least);
        xpl_table_time_ps(t, v[i].sums.most);
    }
    return xpl_table_finish(t, out);
}

// Longer than this are at most LONGEST_STEPS steps.
static uint64_t long_step(const struct xpl_step_db *db) {
    uint64_t most[LONGEST_STEPS + 1] = {0}; // greatest first
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        const uint64_t ps = xpl_summary_step(&db->step_sequence.v[i]).mean_ps;
        size_t at = LONGEST_STEPS + 1;
        for (; at && most[at - 1] < ps; at--)
            if (at <= LONGEST_STEPS) most[at] = most[at - 1];
        if (at <= LONGEST_STEPS) most[at] = ps;
    }
    return most[LONGEST_STEPS];
}

static bool print_steps(const struct xpl_opstats *s, const json_t *of, size_t n_all, FILE *out) {
    static const char *const columns[] = {">STEP", "NAME", ">MEAN OF CORES", ">SLOWEST CORE",
                                          ">CORES"};
    const struct xpl_step_db *const db = &s->step_db;
    if (db->step_sequence.n == 0) return true;
    title("Steps", out);
    print_whose(of, out);
    const size_t n = db->step_sequence.n, n_first = n > MAX_STEPS ? MAX_STEPS - LONGEST_STEPS : n;
    struct xpl_table *t = xpl_table_new(columns, 5);
    struct step_sums sums = {.n_all = n_all};
    bool several = false;
    size_t shown = 0;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of((size_t)1 << 30);
    uint32_t slowest;
    if (!xpl_steps_slowest_core(db, &scratch, &slowest)) return false;
    const uint64_t least_long = long_step(db);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_per_core_step_info *p = &db->step_sequence.v[i];
        const struct xpl_summary_step time = xpl_summary_step(p);
        add_step(&sums, &time);
        sums.slowest_ps += (double)xpl_step_ps_on(p, slowest);
        several |= p->step_info_per_core.n > 1;
        if (i >= n_first && time.mean_ps <= least_long) continue;
        shown++;
        xpl_table_printf(t, "%" PRId64, time.number);
        xpl_table_text(t, time.name, NAME_WIDTH);
        xpl_table_time_ps(t, time.mean_ps);
        xpl_table_time_ps(t, time.slowest_ps);
        xpl_table_printf(t, "%zu", p->step_info_per_core.n);
    }
    bool ok = xpl_table_finish(t, out);
    if (n > shown)
        (void)fprintf(out, "  and %zu more, none of them among the %d longest\n", n - shown,
                      LONGEST_STEPS);
    if (n && xpl_step_is_execution(xpl_summary_step(&db->step_sequence.v[0]).name))
        (void)fprintf(out, "  nothing marks steps in this profile: executions of the program that "
                           "takes most time are the steps\n");
    bool has_series;
    ok &= print_series(db, out, &has_series);
    if (n && !has_series) print_step_sums(&sums, several, out);
    return ok;
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
        const uint64_t used = int_of(peak, "peakBytesInUse"),
                       capacity = int_of(sum, "memoryCapacity");
        xpl_table_bytes(t, used);
        if (capacity > used) // else the profile has no free memory, as PyTorch's of CPUs
            xpl_table_bytes(t, capacity);
        else
            xpl_table_unknown(t);
        xpl_table_bytes(t, int_of(peak, "heapAllocatedBytes"));
        xpl_table_bytes(t, int_of(peak, "stackReservedBytes"));
        xpl_table_percent(t, json_number_value(json_object_get(peak, "fragmentation")));
    }
}

// The allocation of an entry of activeAllocations: the event that allocated it, or a part without
// one, such as the stack.
static const json_t *allocation_of(const json_t *allocator, const json_t *active) {
    const json_t *const special = json_object_get(allocator, "specialAllocations");
    const json_t *const events = json_object_get(allocator, "memoryProfileSnapshots");
    const char *const at = json_string_value(json_object_get(active, "specialIndex"));
    if (at && at[0] != '-') return json_array_get(special, int_of(active, "specialIndex"));
    return json_object_get(json_array_get(events, int_of(active, "snapshotIndex")),
                           "activityMetadata");
}

struct held {
    const json_t *allocation, *active;
    uint64_t bytes;
    size_t at;
};

static int by_bytes(const void *a, const void *b) {
    const struct held *const x = a, *const y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static void held_row(struct xpl_table *t, const char *host, const char *memory,
                     const struct held *h) {
    const uint64_t count = int_of(h->active, "numOccurrences");
    const xpl_str_t type = xpl_document_text(h->allocation, "dataType");
    xpl_table_text(t, xpl_str_from(host), 40);
    xpl_table_text(t, xpl_str_from(memory), 40);
    xpl_table_bytes(t, h->bytes);
    xpl_table_printf(t, "%" PRIu64, count ? count : 1);
    xpl_table_text(t, xpl_document_text(h->allocation, "tfOpName"), NAME_WIDTH);
    xpl_table_text(t, xpl_document_text(h->allocation, "regionType"), 30);
    xpl_table_text(t, xpl_str_eq(type, XPL_STR("INVALID")) ? XPL_STR("") : type, 30);
    xpl_table_text(t, xpl_document_text(h->allocation, "tensorShape"), 40);
}

// What each memory holds at its peak, the greatest first.
static void held_rows(struct xpl_table *t, const char *host, const json_t *answer) {
    const char *name;
    json_t *allocator;
    json_object_foreach(json_object_get(answer, "memoryProfilePerAllocator"), name, allocator) {
        const json_t *const active = json_object_get(allocator, "activeAllocations");
        const size_t n = json_array_size(active);
        struct held *const list = xpl_sys_alloc((n + 1) * sizeof *list);
        for (size_t i = 0; list && i < n; i++) {
            const json_t *const a = json_array_get(active, i);
            const json_t *const of = allocation_of(allocator, a);
            const uint64_t each = int_of(of, "allocationBytes"), k = int_of(a, "numOccurrences");
            uint64_t all;
            if (__builtin_mul_overflow(each, k ? k : 1, &all)) all = UINT64_MAX;
            list[i] = (struct held){of, a, all, i};
        }
        if (list && n) qsort(list, n, sizeof *list, by_bytes);
        for (size_t i = 0; list && i < n && i < TOP_ALLOCATIONS; i++)
            held_row(t, host, name, &list[i]);
        xpl_sys_free(list);
    }
}

static json_t *memory_of_host(const struct xpl_args *args, const char *host) {
    struct xpl_run_answer answer;
    struct xpl_args a = *args;
    a.hosts = &host;
    a.n_hosts = 1;
    a.n_options = 0;
    const int status = xpl_run_answer(&a, "memory_profile", args->rest[1], &answer);
    json_t *const root =
        xpl_is_answered(status) && answer.n ? xpl_document_read(answer.p, answer.n) : NULL;
    xpl_run_answer_fini(&answer);
    return root;
}

static bool is_named(const struct xpl_args *a, const char *host) {
    bool named = a->n_hosts == 0;
    for (size_t h = 0; h < a->n_hosts; h++)
        named = named || strcmp(a->hosts[h], host) == 0;
    return named;
}

static bool print_memory(const struct xpl_args *a, const xpl_session_info *s, FILE *out) {
    static const char *const columns[] = {"HOST",          "MEMORY",        ">PEAK",
                                          ">CAPACITY",     ">HEAP AT PEAK", ">STACK AT PEAK",
                                          ">FRAGMENTATION"};
    static const char *const held_columns[] = {"HOST", "MEMORY", ">SIZE", ">COUNT",
                                               "OP",   "REGION", "TYPE",  "SHAPE"};
    struct xpl_table *t = xpl_table_new(columns, 7), *held = xpl_table_new(held_columns, 8);
    for (size_t i = 0; i < s->n_hosts; i++) {
        if (!is_named(a, s->hosts[i].name)) continue;
        json_t *const answer = memory_of_host(a, s->hosts[i].name);
        memory_rows(t, s->hosts[i].name, answer);
        held_rows(held, s->hosts[i].name, answer);
        json_decref(answer);
    }
    const bool ok = print_section("Memory", t, out);
    return print_section("Greatest allocations at the peak", held, out) && ok;
}

// Takes `answer`, of one host: into an object as it is, into a list as rows of its allocators.
static void add_memory(json_t *memory, const char *host, json_t *answer) {
    const char *name;
    json_t *allocator;
    if (json_is_object(memory)) {
        (void)json_object_set_new(memory, host, answer);
        return;
    }
    json_object_foreach(json_object_get(answer, "memoryProfilePerAllocator"), name, allocator) {
        const json_t *const sum = json_object_get(allocator, "profileSummary");
        const json_t *const peak = json_object_get(sum, "peakStats");
        const double fragmentation = json_number_value(json_object_get(peak, "fragmentation"));
        (void)json_array_append_new(
            memory, json_pack("{ss ss sI sI sI sI sf}", "host", host, "allocator", name,
                              "peak_bytes", (json_int_t)int_of(peak, "peakBytesInUse"),
                              "capacity_bytes", (json_int_t)int_of(sum, "memoryCapacity"),
                              "heap_bytes", (json_int_t)int_of(peak, "heapAllocatedBytes"),
                              "stack_bytes", (json_int_t)int_of(peak, "stackReservedBytes"),
                              "fragmentation_percent", fragmentation * 100));
    }
    json_decref(answer);
}

// ---- all of it ----

static void print_hosts(const struct xpl_args *a, const xpl_session_info *s, FILE *out) {
    char size[32];
    if (a->n_hosts) { // the rest is only of these
        (void)fprintf(out, "Hosts    %zu of %zu:", a->n_hosts, s->n_hosts);
        for (size_t i = 0; i < a->n_hosts; i++)
            foreign_text(" ", xpl_str_from(a->hosts[i]), "", out);
        (void)fprintf(out, "\n");
        return;
    }
    xpl_show_bytes(size, s->bytes);
    (void)fprintf(out, "Hosts    %zu (%s)\n", s->n_hosts, size);
}

// What the profile counts: not the cores of a machine's processors.
static const char *core_word(enum xpl_hardware hardware) {
    return hardware == XPL_HW_GPU        ? "recorded GPU"
           : hardware == XPL_HW_CPU_ONLY ? "recorded thread"
                                         : "core";
}

static void print_head(const struct xpl_args *a, const xpl_session_info *s,
                       const struct xpl_opstats *st, FILE *out) {
    foreign_text("Session  ", xpl_str_from(s->name), "\n", out);
    print_hosts(a, s, out);
    const struct xpl_run_environment *e = &st->run_environment;
    foreign_text("Device   ", e->device_type, "", out);
    if (e->device_core_count > 0) // 0: not known
        (void)fprintf(out, ", %d %s%s", e->device_core_count, core_word(e->hardware_type),
                      e->device_core_count == 1 ? "" : "s");
    (void)fprintf(out, "%s\n", e->is_training ? ", training" : "");
    for (size_t i = 0; i < st->diagnostics.warnings.n; i++)
        foreign_text("Warning  ", st->diagnostics.warnings.v[i], "\n", out);
    for (size_t i = 0; i < st->diagnostics.errors.n; i++)
        foreign_text("Error    ", st->diagnostics.errors.v[i], "\n", out);
}

// What the text is made of.
struct summary {
    const struct xpl_args *args;
    const xpl_session_info *session;
    const struct xpl_opstats *stats;
    const json_t *steps_of; // the hosts that have the steps, where others have none; else NULL
    size_t n_steps_of;      // how many these have, with those that are left out
};

// The sections that are left out because they have no row.
static void print_missing(const struct xpl_opstats *s, FILE *out) {
    const struct {
        const char *name;
        size_t n;
    } sections[] = {{"steps (it has no step markers)", s->step_db.step_sequence.n},
                    {"device ops", s->device_op_metrics_db.metrics_db.n},
                    {"kernels", s->kernel_reports.n},
                    {"host ops", s->host_op_metrics_db.metrics_db.n}};
    bool any = false;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (sections[i].n) continue;
        (void)fprintf(out, "%s%s", any ? ", " : "\nNot in this profile: ", sections[i].name);
        any = true;
    }
    if (any) (void)fputc('\n', out);
}

static bool print_text(const void *what, FILE *out) {
    const struct summary *const s = what;
    print_head(s->args, s->session, s->stats, out);
    json_t *const findings = xpl_summary_findings(s->args, s->args->rest[1]);
    if (findings) xpl_summary_print_findings(findings, out);
    const size_t n_steps = s->steps_of
                               ? s->n_steps_of
                               : (size_t)json_integer_value(json_object_get(findings, "steps"));
    json_decref(findings);
    const bool ok = print_steps(s->stats, s->steps_of, n_steps, out) &&
                    print_ops("Device ops", &s->stats->device_op_metrics_db, s->stats, out) &&
                    print_kernels(s->stats, out) &&
                    print_ops("Host ops", &s->stats->host_op_metrics_db, NULL, out) &&
                    print_memory(s->args, s->session, out);
    print_missing(s->stats, out);
    return ok;
}

static int write_json(const struct xpl_args *a, json_t *all) {
    const int status = !all     ? XPL_EXIT_FAILED
                       : a->csv ? xpl_csv_show(a, all, NULL)
                                : xpl_document_write(a, all);
    json_decref(all);
    return status;
}

static json_t *document(const struct xpl_args *a, const xpl_session_info *s,
                        const struct xpl_opstats *st, json_t *findings, json_t *memory) {
    for (size_t i = 0; i < s->n_hosts; i++)
        if (is_named(a, s->hosts[i].name))
            add_memory(memory, s->hosts[i].name, memory_of_host(a, s->hosts[i].name));
    return xpl_summary_json(a, s, st, findings, memory);
}

static int print_as_asked(const struct xpl_args *a, const struct summary *s, json_t **unused) {
    (void)unused;
    if (!a->json && !a->csv) return xpl_write_text(a, print_text, s);
    return write_json(a, document(a, s->session, s->stats, xpl_summary_findings(a, a->rest[1]),
                                  a->csv ? json_array() : json_object()));
}

static int by_time(const void *pa, const void *pb) {
    const double a = xpl_document_real(*(json_t *const *)pa, "self_time_ps"),
                 b = xpl_document_real(*(json_t *const *)pb, "self_time_ps");
    return (a < b) - (a > b);
}

static void sort_ops(json_t *list) {
    const size_t n = json_array_size(list);
    json_t **const order = xpl_sys_alloc((n + 1) * sizeof(json_t *));
    for (size_t i = 0; order && i < n; i++)
        order[i] = json_incref(json_array_get(list, i));
    if (order && n) qsort(order, n, sizeof *order, by_time);
    if (order) (void)json_array_clear(list);
    for (size_t i = 0; order && i < n; i++)
        (void)json_array_append_new(list, order[i]);
    xpl_sys_free(order);
}

static int make_document(const struct xpl_args *a, const struct summary *s, json_t **ret) {
    *ret = document(a, s->session, s->stats, NULL, json_array());
    sort_ops(json_object_get(*ret, "device_ops"));
    sort_ops(json_object_get(*ret, "host_ops"));
    return *ret ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

static int use_answer(const struct xpl_args *a, const xpl_session_info *s, xpl_bytes_t bytes,
                      int (*use)(const struct xpl_args *a, const struct summary *s, json_t **ret),
                      json_t **ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 30);
    struct xpl_opstats *st = NULL;
    struct xpl_error err = {0};
    int status = XPL_EXIT_FAILED;
    size_t n = 0;
    const bool read = xpl_opstats_decode(bytes, &arena, &st, &err) == XPL_OK;
    json_auto_t *of = read ? xpl_summary_steps_of(a, s, &arena, st, &n) : NULL;
    if (!read)
        xpl_say("the OpStats cannot be read: %s", err.msg);
    else
        status = use(a, &(struct summary){a, s, st, of, n}, ret);
    return status;
}

static int use_run(const struct xpl_args *a,
                   int (*use)(const struct xpl_args *a, const struct summary *s, json_t **ret),
                   json_t **ret) {
    struct xpl_run_about about;
    XPL_AUTO(xpl_run_answer_fini) struct xpl_run_answer answer = {0};
    int status = xpl_run_about(a, a->rest[1], &about);
    if (status == XPL_EXIT_OK) status = xpl_run_answer(a, NULL, a->rest[1], &answer);
    if (xpl_is_answered(status))
        status = xpl_both_answered(
            status, use_answer(a, about.info, (xpl_bytes_t){answer.p, answer.n}, use, ret));
    xpl_run_about_fini(&about);
    return status;
}

int xpl_summary_document(const struct xpl_args *a, json_t **ret) {
    *ret = NULL;
    return use_run(a, make_document, ret);
}

int xpl_cmd_summary(const struct xpl_args *a) {
    return use_run(a, print_as_asked, NULL);
}
