// SPDX-License-Identifier: Apache-2.0
// Tool inference_profile: requests and batches of a model server, by model.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "analysis/inference/combine.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/inference_tool.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct inference_options {
    struct xpl_common_options common;
    int request_column, batch_column;
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "request_column",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct inference_options, request_column),
     .values = XPL_INFER_REQUEST_COLUMNS,
     .preset = "Latency",
     .help = "column that sorts requests before a sample is chosen"},
    {.key = "batch_column",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct inference_options, batch_column),
     .values = XPL_INFER_BATCH_COLUMNS,
     .preset = "Latency",
     .help = "column that sorts batches before a sample is chosen"},
};

// A table of one model being written.
struct table {
    struct xpl_gviz g;
    const struct xpl_inferences *all;
    const struct xpl_infer_model_stats *m;
    struct xpl_arena *scratch;
    bool failed;
};

static void put_printf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_printf(struct table *t, const char *fmt, ...) {
    char text[64];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    xpl_gviz_text(&t->g, (xpl_str_t){text, n > 0 && n < (int)sizeof text ? (size_t)n : 0});
}

static void put_ms(struct table *t, uint64_t ps) {
    xpl_gviz_number(&t->g, (double)ps / 1e9);
}

static void prop_rates(struct table *t, struct xpl_gviz_props *p, double throughput,
                       double latency_us) {
    xpl_gviz_props_init(p, t->scratch);
    xpl_gviz_prop_printf(p, "throughput", "%.1f", throughput);
    xpl_gviz_prop_printf(p, "averageLatencyMs", "%.3f", latency_us / 1000.0);
}

// A rate of a part of `n` of them.
static double share(double count, double throughput, size_t n) {
    return count * throughput / (double)n;
}

// ---- requests ----

enum { WITH_BATCHES = 1 }; // columns
static const struct xpl_column kRequestColumns[] = {
    XPL_TEXTS("percentile", "Percentile"),
    XPL_TEXTS("request_id", "Request ID"),
    XPL_NUMBERS("latency_ms", "Latency", "ms"),
    XPL_COLUMN("batching_request_size", "number", "Request size", NULL, WITH_BATCHES),
    XPL_COLUMN("host_batch_formation", "number", "Host batch formation", "ms", WITH_BATCHES),
    XPL_COLUMN("throughput", "string", "Throughput", NULL, WITH_BATCHES),
    XPL_NUMBERS("host_preprocessing", "Host preprocess", "ms"),
    XPL_NUMBERS("host_runtime", "Host runtime", "ms"),
    XPL_NUMBERS("data_transfer_h2d", "Data transfer H2D", "ms"),
    XPL_NUMBERS("data_transfer_d2h", "Data transfer D2H", "ms"),
    XPL_NUMBERS("device_compute", "Device compute", "ms"),
    XPL_NUMBERS("host_postprocess", "Host postprocess", "ms"),
    XPL_NUMBERS("idle time", "Idle time", "ms"),
    XPL_TEXTS("trace_viewer_url", "Trace Viewer URL"),
    {0},
};

static void begin_requests(struct table *t, struct xpl_buf *out) {
    struct xpl_gviz *const g = &t->g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(g, out, kRequestColumns, t->all->has_batches ? WITH_BATCHES : 0);
    prop_rates(t, &p, t->m->request_throughput, t->m->request_latency_us);
    xpl_gviz_put_props(g, &p);
}

// XProf shows the delay where it says "Host batch formation", and no link.
static void put_request(struct table *t, const struct xpl_infer_request *r, const double *rate) {
    put_ms(t, r->end_ps - r->begin_ps);
    if (t->all->has_batches) {
        xpl_gviz_number(&t->g, r->size);
        put_ms(t, r->delay_ps);
        if (rate)
            put_printf(t, "%.1f", *rate);
        else
            xpl_gviz_text(&t->g, XPL_STR("N/A"));
    }
    put_ms(t, r->preprocess_ps);
    put_ms(t, r->runtime_ps);
    put_ms(t, r->h2d_ps);
    put_ms(t, r->d2h_ps);
    put_ms(t, r->device_ps);
    put_ms(t, r->postprocess_ps);
    put_ms(t, r->idle_ps);
    xpl_gviz_text(&t->g, XPL_STR(""));
}

static void put_requests(struct table *t, struct xpl_buf *out) {
    const struct xpl_infer_model_stats *const m = t->m;
    struct xpl_infer_sample samples[XPL_INFER_SAMPLES];
    const size_t n = xpl_infer_sample(m->requests.n, samples);
    begin_requests(t, out);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_infer_request *const r = m->requests.v[samples[i].at].r;
        xpl_gviz_row(&t->g);
        put_printf(t, "%.3f", samples[i].percentile);
        put_printf(t, "%" PRId64, r->id);
        put_request(t, r, NULL);
    }
    for (size_t i = 0; i < m->sizes.n; i++) {
        const struct xpl_infer_summary *const s = &m->sizes.v[i].sums;
        const double rate = share((double)s->n_requests, m->request_throughput, m->requests.n);
        xpl_gviz_row(&t->g);
        put_printf(t, "Batch size %" PRId32, m->sizes.v[i].size);
        xpl_gviz_text(&t->g, XPL_STR("N/A"));
        struct xpl_infer_request mean = s->request;
        mean.device_ps = s->batch.device_ps; // XProf shows the batches' there
        put_request(t, &mean, &rate);
    }
    xpl_gviz_row(&t->g);
    xpl_gviz_text(&t->g, XPL_STR("Average"));
    xpl_gviz_text(&t->g, XPL_STR("N/A"));
    put_request(t, &m->all.request, &m->request_throughput);
    xpl_gviz_end(&t->g);
}

// ---- batches ----

static void prop_params(const struct xpl_infer_model *m, struct xpl_gviz_props *p) {
    xpl_gviz_prop(p, "hasBatchingParam", m ? XPL_STR("true") : XPL_STR("false"));
    if (!m) return;
    xpl_gviz_prop_printf(p, "batchingParamNumBatchThreads", "%" PRId64, m->batch_threads);
    xpl_gviz_prop_printf(p, "batchingParamMaxBatchSize", "%" PRId64, m->max_batch_size);
    xpl_gviz_prop_printf(p, "batchingParamBatchTimeoutMicros", "%" PRId64, m->timeout_us);
    xpl_gviz_prop_printf(p, "batchingParamMaxEnqueuedBatches", "%" PRId64, m->max_enqueued);
    xpl_gviz_prop(p, "batchingParamAllowedBatchSizes", m->allowed_sizes);
}

static const struct xpl_column kBatchColumns[] = {
    XPL_TEXTS("percentile", "Percentile"),
    XPL_TEXTS("batch_id", "Batch ID"),
    XPL_NUMBERS("latency", "Latency", "ms"),
    XPL_NUMBERS("padding_amount", "Padding amount", NULL),
    XPL_NUMBERS("batch_size_after_padding", "Batch size after padding", NULL),
    XPL_NUMBERS("batching_efficiency", "Batching efficiency", XPL_FRACTION),
    XPL_NUMBERS("batching_delay_us", "Batching delay", "ms"),
    XPL_TEXTS("throughput", "Throughput"),
    XPL_NUMBERS("device_compute", "Device compute", "ms"),
    XPL_TEXTS("program_id", "Program ID(s)"),
    XPL_TEXTS("trace_viewer_url", "Trace Viewer URL"),
    {0},
};

static void begin_batches(struct table *t, struct xpl_buf *out) {
    struct xpl_gviz *const g = &t->g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(g, out, kBatchColumns, 0);
    prop_rates(t, &p, t->m->batch_throughput, t->m->batch_latency_us);
    prop_params(t->m->params, &p);
    xpl_gviz_put_props(g, &p);
}

static void put_programs(struct table *t, const uint64_t *v, size_t n) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        xpl_buf_printf(&text, i ? ", %" PRIu64 : "%" PRIu64, v[i]);
    t->failed |= text.failed;
    xpl_gviz_text(&t->g, n ? (xpl_str_t){(const char *)text.p, text.n} : XPL_STR("N/A"));
}

static void put_batch(struct table *t, const struct xpl_infer_batch *b, double efficiency,
                      const double *rate) {
    put_ms(t, b->end_ps - b->begin_ps);
    xpl_gviz_number(&t->g, b->padding);
    xpl_gviz_number(&t->g, b->size);
    xpl_gviz_number(&t->g, efficiency);
    put_ms(t, b->delay_ps);
    if (rate)
        put_printf(t, "%.1f", *rate);
    else
        xpl_gviz_text(&t->g, XPL_STR("N/A"));
    put_ms(t, b->device_ps);
}

static void put_batch_summary(struct table *t, const struct xpl_infer_summary *s, double rate,
                              bool programs) {
    xpl_gviz_text(&t->g, XPL_STR("N/A"));
    put_batch(t, &s->batch, s->efficiency, &rate);
    put_programs(t, s->programs.v, programs ? s->programs.n : 0);
    xpl_gviz_text(&t->g, programs ? XPL_STR("") : XPL_STR("N/A"));
}

static void put_batches(struct table *t, struct xpl_buf *out) {
    const struct xpl_infer_model_stats *const m = t->m;
    struct xpl_infer_sample samples[XPL_INFER_SAMPLES];
    const size_t n = xpl_infer_sample(m->batches.n, samples);
    begin_batches(t, out);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_infer_batch_at *const at = &m->batches.v[samples[i].at];
        const struct xpl_infer_batch *const b = at->b;
        xpl_gviz_row(&t->g);
        put_printf(t, "%.3f", samples[i].percentile);
        put_printf(t, "%" PRId64, b->id);
        put_batch(t, b, xpl_infer_efficiency(b->size, b->padding), NULL);
        put_programs(t,
                     b->n_programs ? &t->all->hosts[at->host]->programs.v[b->first_program] : NULL,
                     b->n_programs);
        xpl_gviz_text(&t->g, XPL_STR(""));
    }
    for (size_t i = 0; i < m->sizes.n; i++) {
        const struct xpl_infer_summary *const s = &m->sizes.v[i].sums;
        xpl_gviz_row(&t->g);
        put_printf(t, "Batch size %" PRId32, m->sizes.v[i].size);
        put_batch_summary(t, s, share((double)s->n_batches, m->batch_throughput, m->batches.n),
                          true);
    }
    xpl_gviz_row(&t->g);
    xpl_gviz_text(&t->g, XPL_STR("Aggregated"));
    put_batch_summary(t, &m->all, m->batch_throughput, false);
    xpl_gviz_end(&t->g);
}

// ---- tensors ----

static void put_percentiles(struct table *t, const struct xpl_infer_time *v, size_t n) {
    static const double kPercents[] = {50, 75, 90, 95, 99, 99.9};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(SIZE_MAX);
    for (size_t i = 0; i < sizeof kPercents / sizeof *kPercents; i++) {
        const size_t at = (size_t)(kPercents[i] / 100.0 * (double)n);
        xpl_buf_printf(&text, "%s%.2f%%: %fms", i ? "<br>" : "", kPercents[i],
                       (double)v[at].ps / 1e9);
    }
    t->failed |= text.failed;
    xpl_gviz_text(&t->g, (xpl_str_t){(const char *)text.p, text.n});
}

static const struct xpl_column kTensorColumns[] = {
    XPL_NUMBERS("id", "ID", NULL),
    XPL_TEXTS("tensor_pattern", "Tensor Pattern"),
    XPL_NUMBERS("count", "Number of Occurrence", NULL),
    XPL_TEXTS("percentile", "Linearize/Delinearize latency"),
    {0},
};

static void put_tensors(struct table *t, struct xpl_buf *out) {
    const struct xpl_infer_model_stats *const m = t->m;
    struct xpl_gviz *const g = &t->g;
    size_t row = 0;
    xpl_gviz_begin(g, out, kTensorColumns, 0);
    for (size_t i = 0, end; i < m->times.n; i = end) {
        const uint32_t pattern = m->times.v[i].pattern;
        for (end = i + 1; end < m->times.n && m->times.v[end].pattern == pattern;)
            end++;
        xpl_gviz_row(g);
        xpl_gviz_number(g, (double)row++);
        xpl_gviz_text(g, t->all->patterns.v[pattern]);
        xpl_gviz_number(g, (double)(end - i));
        put_percentiles(t, &m->times.v[i], end - i);
    }
    xpl_gviz_end(g);
}

// ---- answer ----

static int by_name(const void *a, const void *b) {
    const struct xpl_infer_model_stats *const *const x = a, *const *const y = b;
    return xpl_str_cmp((*x)->name, (*y)->name);
}

static const struct xpl_column kModelColumns[] = {
    XPL_TEXTS("model_name", "Model Name"),
    {0},
};

// (XProf always reports no pattern, also where a table of them follows.)
static void put_models(const struct xpl_inferences *all,
                       struct xpl_infer_model_stats *const *models, struct xpl_arena *scratch,
                       struct xpl_buf *out) {
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, out, kModelColumns, 0);
    xpl_gviz_props_init(&p, scratch);
    xpl_gviz_prop(&p, "hasBatching", all->has_batches ? XPL_STR("true") : XPL_STR("false"));
    xpl_gviz_prop(&p, "hasTensorPattern", XPL_STR("false"));
    xpl_gviz_put_props(&g, &p);
    for (size_t i = 0; i < all->models.n; i++) {
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, models[i]->name);
    }
    xpl_gviz_end(&g);
}

static bool write_answer(const struct xpl_inferences *all, const struct inference_options *o,
                         struct xpl_arena *scratch, struct xpl_buf *out) {
    struct xpl_infer_model_stats **const models =
        xpl_arena_array(scratch, all->models.n, sizeof *models);
    if (!models) return false;
    for (size_t i = 0; i < all->models.n; i++)
        models[i] = &all->models.v[i];
    xpl_sort(models, all->models.n, sizeof *models, by_name);
    xpl_buf_putc(out, '[');
    put_models(all, models, scratch, out);
    bool ok = true;
    for (size_t i = 0; i < all->models.n && ok; i++) {
        struct table t = {.all = all, .m = models[i], .scratch = scratch};
        xpl_infer_sort_requests(models[i], (enum xpl_infer_request_column)o->request_column);
        xpl_infer_sort_batches(models[i], (enum xpl_infer_batch_column)o->batch_column);
        xpl_buf_putc(out, ',');
        put_requests(&t, out);
        if (all->has_batches) {
            xpl_buf_putc(out, ',');
            put_batches(&t, out);
        }
        if (all->patterns.n) {
            xpl_buf_putc(out, ',');
            put_tensors(&t, out);
        }
        ok = !t.failed && !out->failed;
    }
    xpl_buf_putc(out, ']');
    return ok && !out->failed;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    struct xpl_inferences *all;
    XPL_TRY(xpl_inference_of_hosts(in, 0, &scratch, &all, err));
    if (!write_answer(all, in->options, &scratch, out)) XPL_RETURN_OOM(err, "inference_profile");
    return XPL_OK;
}

static const struct xpl_product *const kNeeds[] = {&xpl_product_inference, NULL};

const struct xpl_tool xpl_tool_inference_profile = {
    .name = "inference_profile",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_REQUESTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct inference_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_UNLISTED,
    .content_type = "application/json",
    .columns = {kRequestColumns, kBatchColumns},
    .render = render,
};
