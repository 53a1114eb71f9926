// SPDX-License-Identifier: Apache-2.0
// Tool kernel_utilization: utilization_viewer's units of each sample, which XProf calls a kernel,
// in percent and all nodes together, as JSON for programs.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tools/counters/units.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/vec.h"

struct kernel_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t device_id, kernel, kernel_name, duration_us;
    bool force_duration;
};
#define MEMBER(name) offsetof(struct kernel_options, name)

static const struct xpl_tool_option kOptions[] = {
    {.key = "device_id",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(device_id),
     .values = "NUMBER",
     .help = "only this device_id; all devices if negative or not a number"},
    {.key = "kernel",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(kernel),
     .values = "TEXT",
     .help = "only kernels whose name contains TEXT; the name is default_kernel for all"},
    {.key = "kernel_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(kernel_name),
     .values = "TEXT",
     .help = "the same, if `kernel` is empty"},
    {.key = "duration_us",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(duration_us),
     .values = "MICROSECONDS",
     .help = "duration of each kernel, from which cycles of cores without a counter are computed; "
             "default: as in the profile"},
    {.key = "force_duration",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(force_duration),
     .values = "true|false",
     .preset = "false",
     .help = "compute the cycles of cores from the kernel's duration instead of their counters"},
};

// The selection by the options.
struct selection {
    int64_t device;  // -1: all
    bool no_kernels; // none has the name
    double us;       // 0: as recorded
    bool force;
};

// A unit of all nodes together.
struct sum {
    const char *name;
    double achieved, peak;
};

static void put_literal(struct xpl_buf *b, const char *z) {
    xpl_buf_str(b, xpl_str_from(z));
}

// `part` of `whole`, to two decimals.
static double percent(double part, double whole) {
    return whole > 0 ? round(part / whole * 10000) / 100 : 0;
}

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

// ---- options ----

// Copies a text for strtoll and strtod; false if it is empty, too long, or contains a NUL.
static bool copy_number(xpl_str_t text, char *to, size_t size) {
    if (!text.len || text.len >= size) return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = 0;
    return strlen(to) == text.len;
}

static bool is_end(const char *begin, const char *end) {
    return end != begin && end[strspn(end, " \t\n\v\f\r")] == 0;
}

static int64_t device_of(xpl_str_t text) {
    char z[64], *end;
    if (!copy_number(text, z, sizeof z)) return -1;
    errno = 0;
    const long long n = strtoll(z, &end, 10);
    return errno || n < 0 || !is_end(z, end) ? -1 : (int64_t)n;
}

// Infinity, and values too large to distinguish from it, are valid durations.
static double duration_of(xpl_str_t text) {
    char z[512], *end;
    if (!copy_number(text, z, sizeof z)) return 0;
    const double us = strtod(z, &end);
    return is_end(z, end) && us > 0 ? us : 0;
}

static struct selection read_options(const struct kernel_options *o) {
    const xpl_str_t name = o->kernel.len ? o->kernel : o->kernel_name;
    return (struct selection){.device = device_of(o->device_id),
                              .no_kernels = !xpl_str_has(XPL_STR("default_kernel"), name),
                              .us = duration_of(o->duration_us),
                              .force = o->force_duration};
}

// ---- units ----

static int by_name(const void *a, const void *b) {
    const struct sum *const x = a, *const y = b;
    return strcmp(x->name, y->name);
}

static void add_unit(struct sum *sums, size_t *n, const char *name, const struct xpl_tpu_unit *u) {
    size_t i = 0;
    while (i < *n && sums[i].name != name && strcmp(sums[i].name, name) != 0)
        i++;
    if (i == *n) sums[(*n)++] = (struct sum){.name = name};
    sums[i].achieved += u->achieved;
    sums[i].peak += u->peak;
}

// By name; leaves out units whose peak is 0.
static size_t sum_up(const struct xpl_tpu_unit *units, size_t n, struct sum sums[XPL_UNITS_MAX]) {
    size_t n_sums = 0;
    for (size_t i = 0; i < n; i++) {
        const char *const name = units[i].row->name;
        if (!(units[i].peak > 0)) continue;
        add_unit(sums, &n_sums, begins(name, "HBM Rd+Wr") ? "HBM Bandwidth Utilization" : name,
                 &units[i]);
    }
    xpl_sort(sums, n_sums, sizeof *sums, by_name);
    return n_sums;
}

static const struct sum *find_sum(const struct sum *sums, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(sums[i].name, name) == 0) return &sums[i];
    return NULL;
}

// ---- number formats of the matrix unit ----

static const struct format {
    const char *shown, *unit;
} formats[] = {
    {"BF16", "MXU BF16"},
    {"FP8", "MXU E4M3 + E5M2"},
    {"Int4", "MXU I4"},
    {"Int8", "MXU I8"},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static bool is_format(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].unit, name) == 0) return true;
    return false;
}

static void put_formats(struct xpl_buf *b, const struct sum *sums, size_t n) {
    double all = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const struct sum *const s = find_sum(sums, n, formats[i].unit);
        all += s ? s->achieved : 0;
    }
    for (size_t i = 0; i < N_FORMATS; i++) {
        const struct sum *const s = find_sum(sums, n, formats[i].unit);
        xpl_buf_printf(b, "%s\n            \"%s\": ", i ? "," : "", formats[i].shown);
        xpl_json_gviz_number(b, s ? percent(s->achieved, all) : 0);
    }
}

// ---- kernels ----

static void put_others(struct xpl_buf *b, const struct sum *sums, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (is_format(sums[i].name) || strcmp(sums[i].name, "Avg MXU Busy") == 0) continue;
        xpl_buf_printf(b, "%s\n            \"%s\": ", any ? "," : "", sums[i].name);
        any = true;
        xpl_json_gviz_number(b, fmin(100, percent(sums[i].achieved, sums[i].peak)));
    }
    put_literal(b, any ? "\n          }" : "}");
}

// The length of the sample's events or, if they take no time, of the device's first op or step; 0:
// unknown.
static double recorded_us(const struct xpl_counter_device *d, const struct xpl_counter_sample *s) {
    const int64_t ps = s->longest_ps > 0 ? s->longest_ps : d->first_ps;
    return ps > 0 ? (double)ps / 1e3 / 1e3 : 0;
}

static void put_kernel(struct xpl_buf *b, double us, const struct sum *sums, size_t n) {
    const struct sum *const busy = find_sum(sums, n, "Avg MXU Busy");
    const double mxu = busy ? percent(busy->achieved, busy->peak) : 0;
    put_literal(b, "\n        {\n          \"duration_us\": ");
    xpl_json_gviz_number(b, us);
    put_literal(
        b,
        ",\n          \"kernel_name\": \"default_kernel\",\n          \"mxu_cycles_breakdown\": {");
    put_formats(b, sums, n);
    put_literal(b, "\n          },\n          \"mxu_is_anomaly\": ");
    put_literal(b, mxu > 100 ? "true" : "false");
    put_literal(b, ",\n          \"mxu_utilization\": ");
    xpl_json_gviz_number(b, mxu);
    put_literal(b, ",\n          \"other_metrics\": {");
    put_others(b, sums, n);
    put_literal(b, "\n        }");
}

static void put_kernels(struct xpl_buf *b, const struct xpl_perf_counters_value *v,
                        const struct xpl_counter_device *d, const struct xpl_tpu_unit_model *model,
                        const struct selection *asked, struct xpl_exec *exec,
                        const struct xpl_counter **order) {
    struct xpl_tpu_unit units[XPL_UNITS_MAX];
    struct sum sums[XPL_UNITS_MAX];
    const size_t n_kernels = asked->no_kernels ? 0 : d->n;
    for (size_t k = 0; k < n_kernels && !b->failed && !xpl_exec_cancelled(exec); k++) {
        const struct xpl_counter_sample *const s = &v->samples[d->first + k];
        struct xpl_tpu_unit_sample sample = {.v = &v->counters[s->first], .n = s->n, .sum = true};
        const double mhz = model->hertz / 1e6;
        const double recorded = asked->us > 0 ? asked->us : recorded_us(d, s);
        const double us =
            recorded > 0 ? recorded : (double)xpl_tpu_units_clock(model, &sample, order) / mhz;
        sample.clock_counts = asked->force;
        sample.clock = us * mhz < 0x1p64 ? (uint64_t)(us * mhz) : UINT64_MAX;
        const size_t n = xpl_tpu_units_compute(model, &sample, order, units);
        if (k) xpl_buf_putc(b, ',');
        put_kernel(b, us, sums, sum_up(units, n, sums));
    }
    put_literal(b, n_kernels ? "\n      ]" : "]");
}

static xpl_status_t put_devices(const struct xpl_perf_counters_value *v,
                                const struct selection *asked, struct xpl_exec *exec,
                                const struct xpl_counter **order, struct xpl_buf *b,
                                struct xpl_error *err) {
    bool any = false;
    for (size_t i = 0; i < v->n_devices; i++) {
        const struct xpl_counter_device *const d = &v->devices[i];
        const struct xpl_tpu_unit_model *const model = xpl_tpu_unit_model_find(d->type);
        const int64_t id = d->device != -1 ? d->device : d->number;
        if (!d->tpu || id == -1 || !model) continue;
        if (asked->device != -1 && asked->device != id) continue;
        xpl_buf_printf(b,
                       "%s\n    {\n      \"device_id\": %" PRId64
                       ",\n      \"device_type\": \"%s\",\n      \"kernels\": [",
                       any ? "," : "", id, model->type);
        any = true;
        put_kernels(b, v, d, model, asked, exec, order);
        if (xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "kernel_utilization cancelled");
        put_literal(b, "\n    }");
    }
    put_literal(b, any ? "\n  ]" : "]");
    return XPL_OK;
}

static xpl_status_t kernel_utilization_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    const struct xpl_perf_counters_value *const v = in->hosts[0].products[0];
    xpl_arena_init(&scratch, in->limit);
    const struct xpl_counter **const order =
        xpl_arena_array(&scratch, v->n_counters, sizeof(const struct xpl_counter *));
    if (!order) XPL_RETURN_OOM(err, "kernel_utilization");
    put_literal(out, "{\n  \"devices\": [");
    const struct selection asked = read_options(in->options);
    XPL_TRY(put_devices(v, &asked, in->exec, order, out, err));
    put_literal(out, ",\n  \"status\": \"SUCCESS\"\n}");
    if (out->failed) XPL_RETURN_OOM(err, "kernel_utilization");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_perf_counters, NULL};

const struct xpl_tool xpl_tool_kernel_utilization = {
    .name = "kernel_utilization",
    .version = 3,
    .needs = kNeeds,
    .facts = XPL_FACT_COUNTERS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct kernel_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_ONE,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 17,
    .content_type = "application/json",
    .render = kernel_utilization_render,
};
