// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/counters/units.h"
#include "base/vec.h"

const char *const xpl_tpu_unit_measure_names[] = {
    [XPL_UNIT_INSTRUCTIONS] = "instructions",
    [XPL_UNIT_CYCLES] = "cycles",
    [XPL_UNIT_BYTES] = "bytes",
    [XPL_UNIT_PERCENT] = "percent",
};

static const double kGiB = 1024.0 * 1024.0 * 1024.0;
// Bytes per second of a link between chips, and the clock by which XProf tells its time.
static const double kIciBytesPerSecond = 294947368421.0526, kIciHertz = 1e9;

const struct xpl_tpu_unit_model *xpl_tpu_unit_model_find(xpl_str_t device_type) {
    static const struct xpl_tpu_unit_model models[] = {
        {"TPU v6 Lite", 1.75e9, 1525.5 * kGiB, &xpl_tpu_unit_rows_v6e},
        {"TPU v7x", 1.9e9, 3433.0 * kGiB, &xpl_tpu_unit_rows_v7x},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (xpl_str_eq(device_type, xpl_str_from(models[i].type))) return &models[i];
    return NULL;
}

// ---- readings ----

struct readings {
    const struct xpl_counter *const *v; // by id, then in the order of time
    size_t n;
    bool sum;
    uint64_t clock;
    bool clock_counts;
    uint32_t clocks[2]; // counters that count the cycles of a tensor core; 0: none
};

static int by_id(const void *a, const void *b) {
    const struct xpl_counter *const *const x = a, *const *const y = b;
    if ((*x)->id != (*y)->id) return (*x)->id < (*y)->id ? -1 : 1;
    if ((*x)->begin_ps != (*y)->begin_ps) return (*x)->begin_ps < (*y)->begin_ps ? -1 : 1;
    if ((*x)->duration_ps != (*y)->duration_ps)
        return (*x)->duration_ps > (*y)->duration_ps ? -1 : 1;
    return (*x > *y) - (*x < *y); // they are in one array
}

static uint64_t value_of(const struct xpl_counter *c) {
    if (!c->is_double) return c->u;
    if (!(c->d >= 0)) return 0;
    return c->d >= 0x1p64 ? UINT64_MAX : (uint64_t)c->d;
}

// 0 for a counter that was not read.
static uint64_t reading(const struct readings *r, uint32_t id) {
    size_t low = 0, high = r->n; // the first with a larger id is in [low, high]
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->v[middle]->id > id)
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t value = 0;
    for (size_t i = low; i && r->v[i - 1]->id == id; i--) {
        value += value_of(r->v[i - 1]);
        if (!r->sum) break;
    }
    return value;
}

static void find_clocks(const struct xpl_tpu_unit_rows *rows, struct readings *r) {
    for (size_t i = 0; i < rows->n; i++) {
        const struct xpl_tpu_unit_row *const row = &rows->v[i];
        if (row->when != XPL_UNIT_CYCLES_COUNTED || row->peak != XPL_PEAK_CYCLES) continue;
        if (!r->clocks[0] || r->clocks[0] == row->cycles)
            r->clocks[0] = row->cycles;
        else
            r->clocks[1] = row->cycles;
    }
}

static uint64_t cycles_of(const struct readings *r, uint32_t id) {
    const uint64_t v = reading(r, id);
    if (id != r->clocks[0] && id != r->clocks[1]) return v;
    return v && !r->clock_counts ? v : r->clock;
}

// ---- rows ----

// Runs with a weight of one half are averaged, in doubles; the others are integers.
static double achieved(const struct xpl_tpu_unit_rows *rows, const struct xpl_tpu_unit_row *row,
                       const struct readings *r) {
    uint64_t whole = 0, halves = 0;
    for (size_t i = 0; i < row->n_runs; i++) {
        const struct xpl_tpu_unit_run *const run = &rows->runs[row->first_run + i];
        for (uint32_t k = 0; k < run->n; k++) {
            const uint64_t v = reading(r, run->first + k * run->step);
            if (run->halves % 2)
                halves += run->halves * v;
            else
                whole += run->halves / 2 * v;
        }
    }
    return 0.5 * (double)halves + (double)whole;
}

static double peak_of(const struct xpl_tpu_unit_model *m, const struct xpl_tpu_unit_row *row,
                      uint64_t cycles, double whole) {
    switch ((enum xpl_tpu_unit_peak)row->peak) {
        case XPL_PEAK_CYCLES: return (double)(cycles * row->factor);
        case XPL_PEAK_SHARE: return (double)(cycles / row->factor);
        case XPL_PEAK_HBM: return m->hbm_bytes_per_second * ((double)cycles / m->hertz);
        case XPL_PEAK_ICI: return kIciBytesPerSecond * ((double)cycles / kIciHertz);
        case XPL_PEAK_WHOLE: return whole;
    }
    return 0;
}

static struct readings read_sample(const struct xpl_tpu_unit_rows *rows,
                                   const struct xpl_tpu_unit_sample *sample,
                                   const struct xpl_counter **order) {
    for (size_t i = 0; i < sample->n; i++)
        order[i] = &sample->v[i];
    xpl_sort(order, sample->n, sizeof *order, by_id);
    struct readings r = {.v = order,
                         .n = sample->n,
                         .sum = sample->sum,
                         .clock = sample->clock,
                         .clock_counts = sample->clock_counts};
    find_clocks(rows, &r);
    return r;
}

uint64_t xpl_tpu_units_clock(const struct xpl_tpu_unit_model *model,
                             const struct xpl_tpu_unit_sample *sample,
                             const struct xpl_counter **order) {
    const struct readings r = read_sample(model->rows, sample, order);
    const uint64_t a = reading(&r, r.clocks[0]), b = r.clocks[1] ? reading(&r, r.clocks[1]) : 0;
    return a > b ? a : b;
}

size_t xpl_tpu_units_compute(const struct xpl_tpu_unit_model *model,
                             const struct xpl_tpu_unit_sample *sample,
                             const struct xpl_counter **order,
                             struct xpl_tpu_unit ret[XPL_UNITS_MAX]) {
    const struct readings r = read_sample(model->rows, sample, order);
    const struct xpl_tpu_unit_rows *const rows = model->rows;
    double all[XPL_UNITS_MAX] = {0}; // the achieved rate of each row; 0 for those not shown
    size_t n_shown = 0;
    for (size_t i = 0; i < rows->n && i < XPL_UNITS_MAX; i++) {
        const struct xpl_tpu_unit_row *const row = &rows->v[i];
        const bool part = row->peak == XPL_PEAK_WHOLE;
        const uint64_t cycles = part ? 0 : cycles_of(&r, row->cycles);
        const double whole = part ? all[row->whole] : 0;
        if (row->when == XPL_UNIT_CYCLES_COUNTED && !cycles) continue;
        if (row->when == XPL_UNIT_TRAFFIC && !(whole > 0)) continue;
        all[i] = achieved(rows, row, &r);
        ret[n_shown++] = (struct xpl_tpu_unit){row, all[i], peak_of(model, row, cycles, whole)};
    }
    return n_shown;
}
