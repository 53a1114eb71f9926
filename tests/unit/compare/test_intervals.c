// SPDX-License-Identifier: Apache-2.0
// Intervals of a difference over simulated runs of known variance, within and between them: how
// many of 10,000 cover the truth, how many alarms are false, and how many differences are missed
// (docs/compare.md).
#include <math.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "tests/check.h"

#define LIMIT ((size_t)1 << 24)

enum { DRAWS = 10000, FEW_DRAWS = 2000, STEPS = 8, MOST_RUNS = 12 };

// ---- quantiles ----

static void test_quantiles(void) {
    static const struct {
        double probability, freedom, t; // of printed tables
    } cases[] = {{0.975, 1, 12.7062047364},   {0.975, 2, 4.30265272970},
                 {0.975, 4, 2.77644510520},   {0.95, 10, 1.81246112281},
                 {0.9, 3, 1.63774435369},     {0.9995, 30, 3.64595863504},
                 {0.975, 1e6, 1.95996635682}, {0.5, 7, 0},
                 {0.999, 1, 318.308838986}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_REAL(xpl_compare_student(cases[i].probability, cases[i].freedom), cases[i].t,
                   1e-6 * (1 + cases[i].t));
    double last = 1e9; // not whole ones lie between
    for (double freedom = 1; freedom < 9; freedom += 0.25) {
        const double t = xpl_compare_student(0.975, freedom);
        CHECK(t < last);
        last = t;
    }
}

// ---- simulated runs ----

static double uniform(uint64_t *state) { // 0 to 1; SplitMix64
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *state) {
    const double u = uniform(state), v = uniform(state);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

struct kind { // of runs; standard deviations in percent of the mean
    double mean, between, within;
};

struct run {
    uint64_t steps[STEPS];
    struct xpl_run_summary summary;
};

// The first step compiles and the last one is cut short, which must not count.
static void draw_run(const struct kind *k, uint64_t *state, struct run *ret) {
    const double level = k->mean * (1 + k->between / 100 * normal(state));
    for (size_t i = 0; i < STEPS; i++)
        ret->steps[i] = (uint64_t)fmax(1, level + k->mean * k->within / 100 * normal(state));
    ret->steps[0] *= 20;
    ret->steps[STEPS - 1] /= 3;
    ret->summary = (struct xpl_run_summary){.units = STEPS};
    ret->summary.steps.v = ret->steps;
    ret->summary.steps.n = ret->summary.steps.cap = STEPS;
}

struct experiment {
    struct kind a, b;
    size_t n_a, n_b, n_history;
};

static struct xpl_compare_estimate draw(const struct experiment *x, const char *metric,
                                        struct xpl_arena *arena, uint64_t *state) {
    struct run a[MOST_RUNS], b[MOST_RUNS], old[MOST_RUNS];
    const struct xpl_run_summary *past[MOST_RUNS];
    struct xpl_run_group group_a = {0}, group_b = {0};
    const struct xpl_run_history h = {past, x->n_history, XPL_STR("nightly")};
    struct xpl_compare_estimate e;
    struct xpl_error err = {0};
    for (size_t i = 0; i < x->n_a; i++) {
        draw_run(&x->a, state, &a[i]);
        CHECK(xpl_run_group_add(&group_a, &a[i].summary, arena));
    }
    for (size_t i = 0; i < x->n_b; i++) {
        draw_run(&x->b, state, &b[i]);
        CHECK(xpl_run_group_add(&group_b, &b[i].summary, arena));
    }
    for (size_t i = 0; i < x->n_history; i++) {
        draw_run(&x->a, state, &old[i]);
        past[i] = &old[i].summary;
    }
    CHECK_OK(xpl_compare_groups(&group_a, &group_b, x->n_history ? &h : NULL, xpl_str_from(metric),
                                arena, &e, &err),
             &err);
    return e;
}

// What `compare --fail-if 'step_time>PERCENT%'` says of an estimate.
enum verdict { EQUAL, MET, CANNOT_TELL, VERDICTS };
static const double percents[] = {0, 5, 20};
enum { PERCENTS = sizeof percents / sizeof *percents };

static enum verdict verdict_of(const struct xpl_compare_estimate *e, double percent) {
    const double difference = e->b - e->a, limit = e->a * percent / 100;
    if (difference > e->half && difference > limit) return MET;
    return difference + e->half <= limit ? EQUAL : CANNOT_TELL;
}

struct outcome {
    size_t covered, verdicts[PERCENTS][VERDICTS];
};

static struct outcome repeat(const struct experiment *x, const char *metric, size_t draws) {
    struct outcome o = {0};
    struct xpl_arena arena;
    uint64_t state = 26;
    for (size_t i = 0; i < draws; i++) {
        xpl_arena_init(&arena, LIMIT);
        const struct xpl_compare_estimate e = draw(x, metric, &arena, &state);
        CHECK(e.known && e.has_interval);
        o.covered += fabs(e.b - e.a - (x->b.mean - x->a.mean)) <= e.half;
        for (size_t k = 0; k < PERCENTS; k++)
            o.verdicts[k][verdict_of(&e, percents[k])]++;
        xpl_arena_fini(&arena);
    }
    return o;
}

// ---- coverage ----

#define QUIET                                                                                      \
    { 1e9, 2, 5 }
#define NOISY                                                                                      \
    { 1e9, 8, 5 }
#define SPIKY                                                                                      \
    { 1e9, 1, 20 }
#define SLOWER                                                                                     \
    { 1.3e9, 2, 5 }
#define STEADY                                                                                     \
    { 1e9, 0, 5 }

static void expect_coverage(const struct experiment *x, size_t i, const char *metric) {
    const struct outcome o = repeat(x, metric, DRAWS);
    if (o.covered >= 93 * DRAWS / 100 && o.covered <= 97 * DRAWS / 100) return;
    (void)fprintf(stderr, "case %zu: %zu of %d intervals cover the truth\n", i, o.covered, DRAWS);
    FAIL_TEST(metric);
}

static void test_coverage(void) {
    static const struct experiment cases[] = {
        {QUIET, QUIET, 3, 3, 0},  {QUIET, QUIET, 5, 5, 0},  {QUIET, SLOWER, 3, 3, 0},
        {SPIKY, SPIKY, 4, 4, 0},  {QUIET, NOISY, 4, 4, 0},  {QUIET, NOISY, 5, 3, 0},
        {QUIET, QUIET, 4, 1, 0},  {QUIET, QUIET, 1, 1, 6},  {QUIET, SLOWER, 1, 1, 12},
        {QUIET, QUIET, 2, 2, 12}, {NOISY, NOISY, 3, 1, 12}, {STEADY, STEADY, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_coverage(&cases[i], i, "step_time");
    expect_coverage(&cases[1], 1, "median_step_time");
}

// One run a side, whose steps vary less than runs do: their interval is far too narrow.
static void test_single(void) {
    static const struct experiment one = {NOISY, NOISY, 1, 1, 0};
    CHECK(repeat(&one, "step_time", FEW_DRAWS).covered < FEW_DRAWS / 2);
}

// ---- alarms ----

// Equal programs: at most 5% alarms.  Programs that differ by 30%: at most 5% are called equal.
static void test_alarms(void) {
    static const struct kind kinds[] = {QUIET, NOISY, SPIKY};
    const size_t most = 5 * FEW_DRAWS / 100;
    for (size_t i = 0; i < 9; i++) {
        const struct kind k = kinds[i % 3], slow = {1.3 * k.mean, k.between, k.within};
        const size_t n = 3 + i / 3;
        const struct experiment equal = {k, k, n, n, 0}, different = {k, slow, n, n, 0};
        const struct outcome same = repeat(&equal, "step_time", FEW_DRAWS),
                             other = repeat(&different, "step_time", FEW_DRAWS);
        for (size_t p = 0; p < PERCENTS; p++) {
            if (same.verdicts[p][MET] <= most && other.verdicts[p][EQUAL] <= most) continue;
            (void)fprintf(stderr, "case %zu, %g%%: %zu false alarms, %zu misses of %d\n", i,
                          percents[p], same.verdicts[p][MET], other.verdicts[p][EQUAL], FEW_DRAWS);
            FAIL_TEST("alarms");
        }
        if (i % 3 == 0) CHECK(other.verdicts[1][MET] > 95 * FEW_DRAWS / 100); // and it is seen
    }
}

int main(void) {
    test_quantiles();
    test_coverage();
    test_single();
    test_alarms();
    return 0;
}
