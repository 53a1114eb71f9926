// SPDX-License-Identifier: Apache-2.0
// Which requests and batches are shown, and the latencies of all.
#include "analysis/inference/combine.h"
#include "base/arena.h"
#include "base/std_sort.h"

// ---- order ----

static uint64_t request_key(const struct xpl_infer_request *r, enum xpl_infer_request_column by) {
    switch (by) {
        case XPL_INFER_BY_LATENCY: break;
        case XPL_INFER_BY_DELAY: return r->delay_ps;
        case XPL_INFER_BY_SIZE: return (uint64_t)((int64_t)r->size - INT32_MIN);
        case XPL_INFER_BY_PREPROCESS: return r->preprocess_ps;
        case XPL_INFER_BY_FORMATION: return r->formation_ps;
        case XPL_INFER_BY_RUNTIME: return r->runtime_ps;
        case XPL_INFER_BY_H2D: return r->h2d_ps;
        case XPL_INFER_BY_D2H: return r->d2h_ps;
        case XPL_INFER_BY_DEVICE: return r->device_ps;
        case XPL_INFER_BY_POSTPROCESS: return r->postprocess_ps;
        case XPL_INFER_BY_IDLE: return r->idle_ps;
    }
    return r->end_ps - r->begin_ps;
}

static bool request_less(const void *ctx, const void *a, const void *b) {
    const struct xpl_infer_request_at *const x = a, *const y = b;
    const enum xpl_infer_request_column by = *(const enum xpl_infer_request_column *)ctx;
    return request_key(x->r, by) < request_key(y->r, by);
}

static bool batch_less(const void *ctx, const void *a, const void *b) {
    const struct xpl_infer_batch *const x = ((const struct xpl_infer_batch_at *)a)->b;
    const struct xpl_infer_batch *const y = ((const struct xpl_infer_batch_at *)b)->b;
    switch (*(const enum xpl_infer_batch_column *)ctx) {
        case XPL_INFER_BATCH_BY_LATENCY: break;
        case XPL_INFER_BATCH_BY_DELAY: return x->delay_ps < y->delay_ps;
        case XPL_INFER_BATCH_BY_PADDING: return x->padding < y->padding;
        case XPL_INFER_BATCH_BY_SIZE: return x->size < y->size;
        case XPL_INFER_BATCH_BY_EFFICIENCY:
            return xpl_infer_efficiency(x->size, x->padding) <
                   xpl_infer_efficiency(y->size, y->padding);
    }
    return x->end_ps - x->begin_ps < y->end_ps - y->begin_ps;
}

void xpl_infer_sort_requests(struct xpl_infer_model_stats *m, enum xpl_infer_request_column by) {
    xpl_std_sort(m->requests.v, m->requests.n, sizeof *m->requests.v, request_less, &by);
}

void xpl_infer_sort_batches(struct xpl_infer_model_stats *m, enum xpl_infer_batch_column by) {
    xpl_std_sort(m->batches.v, m->batches.n, sizeof *m->batches.v, batch_less, &by);
}

// ---- samples ----

size_t xpl_infer_sample(size_t n, struct xpl_infer_sample ret[XPL_INFER_SAMPLES]) {
    static const struct {
        double from, width;
    } kWanted[] = {{50, 1}, {75, 1}, {90, 1}, {99, 0.5}, {99.9, 0.05}, {99.99, 0.005}};
    enum { WANTED = sizeof kWanted / sizeof *kWanted, OF_EACH = XPL_INFER_SAMPLES / WANTED };
    size_t got = 0, next = 0;
    if (n <= XPL_INFER_SAMPLES) {
        for (; got < n; got++)
            ret[got] = (struct xpl_infer_sample){got, 100.0 * (double)got / (double)n};
        return got;
    }
    for (size_t w = 0; w < WANTED; w++) {
        size_t taken = 0;
        for (size_t i = next; i < n; i++) {
            const double percentile = 100.0 * (double)i / (double)n;
            if (percentile >= kWanted[w].from + kWanted[w].width) {
                next = i;
                break;
            }
            if (percentile < kWanted[w].from || taken == OF_EACH) continue;
            ret[got++] = (struct xpl_infer_sample){i, percentile};
            taken++;
        }
    }
    return got;
}

// ---- latencies ----

static bool latency_less(const void *ctx, const void *a, const void *b) {
    const struct xpl_infer_latency *const x = a, *const y = b;
    (void)ctx;
    return x->total < y->total;
}

static struct xpl_infer_latency latency_of(const struct xpl_infer_request *r) {
    struct xpl_infer_latency l = {.total = (double)(r->end_ps - r->begin_ps) / 1e6,
                                  .device = (double)r->device_ps / 1e6,
                                  .communication = (double)(r->d2h_ps + r->h2d_ps) / 1e6};
    l.host = l.total - l.device - l.communication;
    return l;
}

static double mean(double sum, size_t n) {
    return sum > -1e-20 && sum < 1e-20 ? 0 : sum / (double)n;
}

xpl_status_t xpl_infer_latencies(const struct xpl_inferences *all, struct xpl_arena *scratch,
                                 struct xpl_infer_latency ret[XPL_INFER_LATENCIES], bool *ret_any,
                                 struct xpl_error *err) {
    static const double kPercents[XPL_INFER_LATENCIES] = {0, 50, 75, 90, 99, 99.9};
    struct xpl_infer_latency sum = {0};
    size_t n = 0;
    *ret_any = false;
    for (size_t i = 0; i < all->models.n; i++)
        n += all->models.v[i].requests.n;
    if (!n) return XPL_OK;
    struct xpl_infer_latency *const v = xpl_arena_array(scratch, n, sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "inference");
    n = 0;
    for (size_t i = 0; i < all->models.n; i++)
        for (size_t k = 0; k < all->models.v[i].requests.n; k++) {
            const struct xpl_infer_latency l = latency_of(all->models.v[i].requests.v[k].r);
            v[n++] = l;
            sum.total += l.total, sum.device += l.device;
            sum.communication += l.communication, sum.host += l.host;
        }
    xpl_std_sort(v, n, sizeof *v, latency_less, NULL);
    ret[0] = (struct xpl_infer_latency){mean(sum.host, n), mean(sum.device, n),
                                        mean(sum.communication, n), mean(sum.total, n)};
    for (size_t i = 1; i < XPL_INFER_LATENCIES; i++)
        ret[i] = v[(size_t)(kPercents[i] / 100.0 * (double)n)];
    *ret_any = true;
    return XPL_OK;
}
