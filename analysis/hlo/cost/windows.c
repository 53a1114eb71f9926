// SPDX-License-Identifier: Apache-2.0
// Instructions with a window: reductions of it, scattering into it, and how often a convolution's
// kernel meets its input.
#include "analysis/hlo/cost/impl.h"

void xpl_cost_window_read(xpl_bytes_t dimension, struct cost_window *ret) {
    struct xpl_hlo_message d;
    xpl_hlo_message_read(dimension, &d);
    *ret = (struct cost_window){
        .size = xpl_hlo_int(&d, HLO_WINDOW_DIM_SIZE),
        .stride = xpl_hlo_int(&d, HLO_WINDOW_DIM_STRIDE),
        .padding_low = xpl_hlo_int(&d, HLO_WINDOW_DIM_PADDING_LOW),
        .padding_high = xpl_hlo_int(&d, HLO_WINDOW_DIM_PADDING_HIGH),
        .dilation = xpl_hlo_int(&d, HLO_WINDOW_DIM_DILATION),
        .base_dilation = xpl_hlo_int(&d, HLO_WINDOW_DIM_BASE_DILATION),
    };
}

// ---- reductions of windows ----

struct windows {
    int64_t elements; // of one window
    uint32_t n_wide, n_padded;
    uint32_t wide;             // the first dimension whose window is wider than 1
    struct cost_window window; // there
};

static void read_windows(struct cost_visit *v, struct windows *ret) {
    struct xpl_hlo_message window;
    xpl_hlo_message_read(xpl_hlo_bytes(xpl_cost_message(v), HLO_INSTR_WINDOW), &window);
    struct xpl_hlo_each dims = xpl_hlo_each_begin(&window, HLO_WINDOW_DIMENSIONS);
    xpl_bytes_t d;
    *ret = (struct windows){.elements = 1};
    for (uint32_t i = 0; xpl_hlo_each_next(&dims, &d); i++) {
        struct cost_window w;
        xpl_cost_window_read(d, &w);
        ret->elements = xpl_cost_times(ret->elements, w.size);
        if (w.size != 1 && ret->n_wide++ == 0) ret->wide = i, ret->window = w;
        ret->n_padded += w.padding_low != 0 || w.padding_high != 0;
    }
}

// A window over all preceding, or all preceding and following, elements makes a running sum, of
// which XLA knows a faster form; *ret is then its length.
static bool is_running_sum(struct cost_visit *v, const struct windows *w, int64_t *ret) {
    uint32_t n;
    const struct cost_window *const d = &w->window;
    if (w->n_wide != 1 || w->n_padded != 1 || xpl_cost_result(v)->type == HLO_TYPE_TUPLE)
        return false;
    if (d->padding_low <= 0 || d->padding_low != d->padding_high ||
        d->padding_low > INT64_MAX / 4 || d->size != 2 * d->padding_low + 1)
        return false;
    const int64_t *const dims = xpl_cost_dims(v->c, xpl_cost_result(v), &n);
    if (!dims || w->wide >= n || d->padding_low != xpl_cost_minus(dims[w->wide], 1)) return false;
    *ret = dims[w->wide];
    return true;
}

void xpl_cost_reduce_window(struct cost_visit *v) {
    struct windows w;
    struct cost_shape out;
    int64_t length;
    read_windows(v, &w);
    xpl_cost_shape_first(xpl_cost_result(v), &out);
    int64_t times = xpl_cost_times(xpl_cost_minus(w.elements, 1), out.elements);
    if (is_running_sum(v, &w, &length)) times = out.elements / length + (length - 1);
    v->n->flops = xpl_cost_combiner(v, 0, times);
}

// Elements of a window are compared to find the one to which a value is added.
void xpl_cost_select_and_scatter(struct cost_visit *v) {
    struct windows w;
    const int64_t source = xpl_cost_operand(v, 1)->elements;
    read_windows(v, &w);
    v->n->flops = xpl_cost_combiner(v, 0, xpl_cost_times(source, xpl_cost_minus(w.elements, 1)));
    v->n->flops += xpl_cost_combiner(v, 1, source);
}

// ---- positions of a convolution ----

// How many x in [0, n) have lo <= step * x + at <= hi and a multiple of `base` there.  All within
// 2^31 but lo, hi and at, within 2^62.
static int64_t count_positions(int64_t n, int64_t step, int64_t at, int64_t lo, int64_t hi,
                               int64_t base) {
    if (n <= 0 || hi < lo) return 0;
    if (step == 0) return at >= lo && at <= hi && at % base == 0 ? n : 0;
    // The multiples recur with a period in x; search the first.
    int64_t g = base, b = step, first = 0;
    while (b) {
        const int64_t rest = g % b;
        g = b, b = rest;
    }
    if (at % g != 0) return 0;
    const int64_t period = base / g;
    // step/g * x = -at/g (mod period), by the extended Euclidean algorithm.
    int64_t old_r = (step / g) % period, r = period, old_s = 1, s = 0;
    while (r) {
        const int64_t q = old_r / r, next_r = old_r - q * r, next_s = old_s - q * s;
        old_r = r, r = next_r, old_s = s, s = next_s;
    }
    if (period > 1) {
        const int64_t inverse = ((old_s % period) + period) % period;
        const int64_t rest = ((-(at / g)) % period + period) % period;
        first = inverse * rest % period;
    }
    // x from x_lo to x_hi.
    const int64_t below = lo - at, above = hi - at;
    int64_t x_lo = below <= 0 ? 0 : (below + step - 1) / step;
    int64_t x_hi = above < 0 ? -1 : above / step;
    if (x_hi > n - 1) x_hi = n - 1;
    if (x_lo < first)
        x_lo = first;
    else
        x_lo = first + (x_lo - first + period - 1) / period * period;
    return x_lo > x_hi ? 0 : (x_hi - x_lo) / period + 1;
}

enum { STEPS_PER_POSITION = 4 };

int64_t xpl_cost_valid_positions(struct xpl_hlo_costs *c, const struct cost_window *w,
                                 int64_t kernel, int64_t output, int64_t input) {
    const int64_t most = INT64_C(1) << 31, base = w->base_dilation > 1 ? w->base_dilation : 1;
    const int64_t all[] = {kernel, output, input, w->stride, w->dilation, base};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 0 || all[i] > most) return -1;
    if (w->padding_low < -most || w->padding_low > most) return -1;
    // One of the two is walked, the other counted: u = x * stride - padding + k * dilation.
    const bool walk_kernel = kernel <= output;
    const int64_t n = walk_kernel ? kernel : output, others = walk_kernel ? output : kernel;
    const int64_t step = walk_kernel ? w->dilation : w->stride;
    const int64_t other_step = walk_kernel ? w->stride : w->dilation;
    if (STEPS_PER_POSITION * (uint64_t)n >= c->work) {
        (void)xpl_cost_spend(c, c->work);
        return -1;
    }
    const int64_t last = input > 0 ? (input - 1) * base : -1;
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!xpl_cost_spend(c, STEPS_PER_POSITION)) return -1;
        total +=
            (uint64_t)count_positions(others, other_step, i * step - w->padding_low, 0, last, base);
    }
    return (int64_t)total;
}
