// SPDX-License-Identifier: Apache-2.0
// Steps of a host that counts as a device: from one step's begin to the next one's, whatever the
// loop waits for.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/convert.h"
#include "analysis/opstats/steps/step_number.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/xspace_maker.h"

static const int64_t kUs = 1000000; // ps

// What a loop does, in its order.  Times in microseconds.
struct mark {
    const char *name; // of the annotation; NULL: none
    int64_t number, begin, end;
};
struct launch {
    const char *function;
    int64_t at; // of the thread; below 0: no event
    int64_t id, begin, end;
    // NAMES: says which execution it launches; TRACES: the call compiles, which calls another one;
    // AHEAD: of a program that is compiled ahead of time, which no event calls; CUT: the profile
    // has one of its two ops; LONG: it has three.
    enum { PLAIN, NAMES, TRACES, AHEAD, CUT, LONG } kind;
};
static const struct {
    const char *name, *call, *module;
    int id;
} kFunctions[] = {{"f", "PjitFunction(f)", "jit_f", 6},
                  {"g", "PjitFunction(g)", "jit_g", 7},
                  {"<lambda>", "PjitFunction(<lambda>)", "jit__lambda", 8},
                  {"other", "PjitFunction(call)", "jit_other", 9}};

static size_t function_of(const struct launch *l) {
    size_t i = 0;
    while (strcmp(l->function, kFunctions[i].name) != 0)
        i++;
    return i;
}

static void add_launch(struct mk_plane *p, struct xpl_buf *line, const struct launch *l) {
    if (l->kind != AHEAD) mk_plain(p, line, kFunctions[function_of(l)].call, l->at * kUs, 5 * kUs);
    if (l->kind == TRACES) mk_plain(p, line, "PjitFunction(add)", l->at * kUs + 1, 1);
    if (l->kind != NAMES) {
        mk_plain(p, line, "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice",
                 (l->at + 1) * kUs, 3 * kUs);
        return;
    }
    struct xpl_buf ev =
        mk_event(p, "CommonPjRtLoadedExecutable::Execute (jit)", (l->at + 1) * kUs, 3 * kUs);
    mk_stat_int(p, &ev, "run_id", l->id);
    mk_event_end(line, &ev);
}

static void add_ops(struct mk_plane *p, struct xpl_buf *line, const struct launch *l) {
    const size_t f = function_of(l);
    const int64_t n = l->kind == CUT    ? 1
                      : l->kind == LONG ? 3
                                        : 2,
                  each = (l->end - l->begin) * kUs / n;
    for (int64_t i = 0; i < n; i++) {
        struct xpl_buf ev = mk_event(p, "dot.1", l->begin * kUs + i * each, each);
        mk_stat_ref(p, &ev, "hlo_op", "dot.1");
        mk_stat_ref(p, &ev, "hlo_module", kFunctions[f].module);
        mk_stat_int(p, &ev, "program_id", kFunctions[f].id);
        mk_stat_int(p, &ev, "run_id", l->id);
        mk_event_end(line, &ev);
    }
}

struct expected {
    const char *name;
    int64_t begin, end;
};
enum { MOST = 8 };
struct loop {
    const char *what;
    struct mark marks[MOST];
    struct launch launches[MOST];
    struct expected steps[MOST];
};

// The innermost annotation around `at`, which comes last.
static int mark_of(const struct loop *l, int64_t at) {
    int found = -1;
    for (int i = 0; i < MOST && l->marks[i].name; i++)
        if (at >= l->marks[i].begin && at < l->marks[i].end) found = i;
    return found;
}

static struct xpl_buf make(const struct loop *l) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf python = mk_line(1, "python"), pool = mk_line(2, "tf_XLAEigen/7");
    for (int i = 0; i < MOST && l->marks[i].name; i++) {
        const struct mark *const m = &l->marks[i];
        struct xpl_buf ev = mk_event(&p, m->name, m->begin * kUs, (m->end - m->begin) * kUs);
        mk_stat_int(&p, &ev, "_r", 1);
        mk_stat_int(&p, &ev, "step_num", m->number);
        mk_event_end(&python, &ev);
        for (int k = 0; k < MOST && l->launches[k].function; k++)
            if (mark_of(l, l->launches[k].at) == i) add_launch(&p, &python, &l->launches[k]);
    }
    for (int k = 0; k < MOST && l->launches[k].function; k++)
        if (l->launches[k].end) add_ops(&p, &pool, &l->launches[k]);
    mk_line_end(&p, &python);
    mk_line_end(&p, &pool);
    mk_plane_end(&p, &space);
    return space;
}

static const struct loop kLoops[] = {
    {"waits",
     {{"train", 0, 0, 90}, {"train", 1, 100, 190}, {"train", 2, 200, 290}},
     {{"f", 10, 7, 20, 80, PLAIN}, {"f", 110, 8, 120, 180, PLAIN}, {"f", 210, 9, 220, 280, PLAIN}},
     {{"train 0", 0, 100}, {"train 1", 100, 200}, {"train 2", 200, 290}}},
    {"runs ahead",
     {{"train", 0, 0, 20}, {"train", 1, 20, 40}, {"train", 2, 40, 60}},
     {{"f", 0, 7, 10, 100, PLAIN}, {"f", 20, 8, 105, 200, PLAIN}, {"f", 40, 9, 205, 300, PLAIN}},
     {{"train 0", 0, 105}, {"train 1", 105, 205}, {"train 2", 205, 300}}},
    {"fetches every second step",
     {{"train", 0, 0, 20}, {"train", 1, 20, 210}, {"train", 2, 220, 240}},
     {{"f", 0, 7, 10, 100, PLAIN}, {"f", 20, 8, 105, 200, PLAIN}, {"f", 220, 9, 230, 300, PLAIN}},
     {{"train 0", 0, 105}, {"train 1", 105, 220}, {"train 2", 220, 300}}},
    {"the first call compiles",
     {{"train", 0, 0, 500}, {"train", 1, 500, 510}},
     {{"f", 480, 7, 490, 600, PLAIN}, {"f", 502, 8, 610, 700, PLAIN}},
     {{"train 0", 0, 610}, {"train 1", 610, 700}}},
    {"a call in its middle compiles",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}},
     {{"f", 0, 7, 5, 100, PLAIN}, {"f", 10, 8, 110, 200, TRACES}, {"f", 20, 9, 210, 300, PLAIN}},
     {{"train 0", 0, 110}, {"train 1", 110, 210}, {"train 2", 210, 300}}},
    {"an execution is launched before the profile begins",
     {{"train", 4, 10, 20}, {"train", 5, 30, 40}},
     {{"f", -1, 6, 0, 50, PLAIN}, {"f", 12, 7, 60, 100, PLAIN}, {"f", 32, 8, 110, 150, PLAIN}},
     {{"train 4", 60, 110}, {"train 5", 110, 150}}},
    {"an execution is launched, and begins, before the profile begins",
     {{"train", 4, 0, 20}, {"train", 5, 30, 40}, {"train", 6, 50, 60}},
     {{"f", -1, 6, 10, 50, CUT},
      {"f", 2, 7, 60, 100, PLAIN},
      {"f", 32, 8, 110, 150, PLAIN},
      {"f", 52, 9, 160, 200, PLAIN}},
     {{"train 4", 60, 110}, {"train 5", 110, 160}, {"train 6", 160, 200}}},
    {"a loop in the program gets longer, and shorter",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}, {"train", 3, 30, 40}},
     {{"f", 0, 7, 5, 100, CUT},
      {"f", 10, 8, 110, 200, PLAIN},
      {"f", 20, 9, 210, 300, LONG},
      {"f", 30, 10, 310, 400, CUT}},
     {{"train 0", 0, 110}, {"train 1", 110, 210}, {"train 2", 210, 310}, {"train 3", 310, 400}}},
    {"the profile ends before the last steps begin",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}, {"train", 3, 30, 40}},
     {{"f", 0, 7, 5, 100, PLAIN},
      {"f", 10, 8, 110, 200, PLAIN},
      {"f", 20, 9, 0, 0, PLAIN},
      {"f", 30, 10, 0, 0, PLAIN}},
     {{"train 0", 0, 110}, {"train 1", 110, 200}}},
    {"the profile ends within the last step",
     {{"train", 0, 0, 10},
      {"train", 1, 10, 20},
      {"train", 2, 20, 30},
      {"train", 3, 30, 40},
      {"train", 4, 40, 50}},
     {{"f", 0, 7, 5, 100, PLAIN},
      {"f", 10, 8, 110, 200, PLAIN},
      {"f", 20, 9, 210, 300, PLAIN},
      {"f", 30, 10, 310, 400, PLAIN},
      {"f", 40, 11, 410, 420, CUT}},
     {{"train 0", 0, 110}, {"train 1", 110, 210}, {"train 2", 210, 310}, {"train 3", 310, 400}}},
    {"the last execution is cut off",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 300}},
     {{"f", 0, 7, 5, 100, PLAIN}, {"f", 10, 8, 110, 200, PLAIN}, {"f", 20, 9, 0, 0, PLAIN}},
     {{"train 0", 0, 110}, {"train 1", 110, 200}, {"train 2", 200, 300}}},
    {"several devices: a launch names its execution",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}},
     {{"f", 10, 7, 110, 200, NAMES}, {"f", 0, 8, 5, 100, NAMES}},
     {{"train 0", 0, 110}, {"train 1", 110, 200}}},
    {"two loops, each with a program that counts for itself",
     {{"train", 0, 0, 10}, {"eval", 0, 10, 20}, {"train", 1, 20, 30}},
     {{"f", 0, 7, 5, 100, PLAIN}, {"g", 10, 3, 105, 400, PLAIN}, {"f", 20, 8, 410, 500, PLAIN}},
     {{"train 0", 0, 105}, {"eval 0", 105, 410}, {"train 1", 410, 500}}},
    {"calls a function without a name, of whose module JAX cuts the end",
     {{"train", 0, 0, 20}, {"train", 1, 20, 40}},
     {{"<lambda>", 0, 7, 10, 100, PLAIN}, {"<lambda>", 20, 8, 105, 200, PLAIN}},
     {{"train 0", 0, 105}, {"train 1", 105, 200}}},
    {"runs a program compiled ahead of time beside a function",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}},
     {{"g", 0, 7, 5, 100, AHEAD}, {"f", 10, 8, 110, 200, PLAIN}, {"g", 20, 9, 210, 300, AHEAD}},
     {{"train 0", 0, 110}, {"train 1", 110, 210}, {"train 2", 210, 300}}},
    {"calls a program by another name",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}},
     {{"other", 0, 7, 5, 100, PLAIN}, {"other", 10, 8, 110, 200, PLAIN}},
     {{"train 0", 0, 110}, {"train 1", 110, 200}}},
    {"steps whose ops come out of order last a moment",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}},
     {{"f", 0, 7, 5, 100, NAMES}, {"f", 10, 8, 110, 200, NAMES}, {"g", 20, 9, 50, 150, NAMES}},
     {{"train 0", 0, 110}, {"train 1", 110, 110}, {"train 2", 110, 200}}},
    {"steps without ops last a moment while earlier ones run",
     {{"train", 0, 0, 10}, {"train", 1, 10, 20}, {"train", 2, 20, 30}, {"train", 3, 30, 40}},
     {{"f", 0, 7, 5, 100, PLAIN}, {"f", 30, 8, 110, 200, PLAIN}},
     {{"train 0", 0, 100}, {"train 1", 100, 100}, {"train 2", 100, 110}, {"train 3", 110, 200}}},
    {"steps within steps are part of them",
     {{"train", 0, 0, 90}, {"micro", 0, 5, 80}, {"train", 1, 100, 190}, {"micro", 1, 105, 180}},
     {{"f", 10, 7, 20, 75, PLAIN}, {"f", 110, 8, 120, 175, PLAIN}},
     {{"train 0", 0, 100}, {"train 1", 100, 190}}},
};

// A step lasts a picosecond at least.
static bool is_near(uint64_t a, uint64_t b) {
    return a > b ? a - b < MOST : b - a < MOST;
}

static void check_loop(const struct loop *l) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = make(l);
    struct xpl_xspace *xs;
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    size_t n = 0;
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, &arena, 1 << 24, &s, &err), &err);
    while (n < MOST && l->steps[n].name)
        n++;
    if (s->step_db.step_sequence.n != n) (void)fprintf(stderr, "a loop that %s:\n", l->what);
    CHECK_EQ(s->step_db.step_sequence.n, n);
    const uint64_t base = s->step_db.step_sequence.v[0].step_info_per_core.v[0].begin_ps;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_step_info *const c = s->step_db.step_sequence.v[i].step_info_per_core.v;
        const struct expected *const e = &l->steps[i];
        const uint64_t begin = (uint64_t)((e->begin - l->steps[0].begin) * kUs);
        const uint64_t duration = (uint64_t)((e->end - e->begin) * kUs);
        if (!is_near(c->begin_ps - base, begin) || !is_near(c->duration_ps, duration))
            (void)fprintf(stderr, "a loop that %s, step %zu:\n", l->what, i);
        CHECK_STR(c->step_name, e->name);
        CHECK(is_near(c->begin_ps - base, begin));
        CHECK(is_near(c->duration_ps, duration));
    }
}

// TensorFlow does not number executions: where nothing marks steps, calls of the function that
// takes most time are.
static void check_functions(void) {
    static const struct {
        const char *function;
        int64_t begin, end;
    } calls[] = {{"train_step", 0, 40}, {"log", 42, 44},          {"train_step", 50, 90},
                 {"log", 92, 94},       {"train_step", 100, 140}, {"build", 150, 400}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_xspace *xs;
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    struct xpl_buf python = mk_line(1, "python"), pool = mk_line(2, "tf_Compute/7");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int64_t ps = (calls[i].end - calls[i].begin) * kUs;
        struct xpl_buf ev = mk_event(&p, calls[i].function, calls[i].begin * kUs, ps);
        mk_stat_str(&p, &ev, "tf_function_call", "notTraced-nonXla");
        mk_event_end(&python, &ev);
        mk_plain(&p, &pool, "dense/MatMul:MatMul", (calls[i].begin + 1) * kUs, ps - 2 * kUs);
    }
    mk_line_end(&p, &python);
    mk_line_end(&p, &pool);
    mk_plane_end(&p, &space);
    xpl_arena_init(&arena, 1 << 24);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, &arena, 1 << 24, &s, &err), &err);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct xpl_step_info *const c = s->step_db.step_sequence.v[i].step_info_per_core.v;
        char name[64];
        (void)snprintf(name, sizeof name, "execution of train_step %zu", i);
        CHECK_STR(c->step_name, name);
        CHECK(is_near(c->duration_ps, (uint64_t)((i < 2 ? 50 : 40) * kUs)));
    }
}

// A loop that runs ahead, whose calls have many events each.
static struct xpl_buf make_long(void) {
    enum { STEPS = 1500, EVENTS = 60 };
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/host:CPU");
    struct xpl_buf python = mk_line(1, "python"), pool = mk_line(2, "tf_XLAEigen/7");
    for (int i = 0; i < STEPS; i++) {
        const struct launch l = {"f", 100 * i, i, 200 * i + 110, 200 * i + 300, PLAIN};
        struct xpl_buf ev = mk_event(&p, "train", l.at * kUs, 100 * kUs);
        mk_stat_int(&p, &ev, "_r", 1);
        mk_stat_int(&p, &ev, "step_num", i);
        mk_event_end(&python, &ev);
        mk_plain(&p, &python, "PjitFunction(f)", l.at * kUs, 90 * kUs);
        for (int k = 0; k < EVENTS; k++)
            mk_plain(&p, &python, "work", (l.at + 1 + k) * kUs, kUs);
        mk_plain(&p, &python, "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice",
                 (l.at + 80) * kUs, kUs);
        add_ops(&p, &pool, &l);
    }
    mk_line_end(&p, &python);
    mk_line_end(&p, &pool);
    mk_plane_end(&p, &space);
    return space;
}

// Threads read pieces of a long line, which begin anywhere.
static void check_pieces(void) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(4);
    struct xpl_buf space = make_long(), bytes[2];
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    CHECK(pool);
    for (int k = 0; k < 2; k++) {
        struct xpl_exec *const exec = k ? xpl_exec_pool_get(pool) : &serial;
        struct xpl_arena arena = xpl_arena_of(1 << 28);
        struct xpl_xspace *xs;
        struct xpl_opstats *s;
        struct xpl_error err = {0};
        xpl_buf_init(&bytes[k], 1 << 28);
        CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, exec, &xs, &err), &err);
        CHECK_OK(xpl_opstats_convert(xs, &opt, exec, &arena, 1 << 28, &s, &err), &err);
        CHECK_EQ(s->step_db.step_sequence.n, 1500);
        CHECK_EQ(s->step_db.step_sequence.v[700].step_info_per_core.v[0].duration_ps, 200 * kUs);
        CHECK_OK(xpl_opstats_encode(s, &bytes[k], &err), &err);
        xpl_arena_fini(&arena);
    }
    CHECK_BYTES(bytes[0].p, bytes[0].n, bytes[1].p, bytes[1].n);
    xpl_buf_fini(&bytes[0]);
    xpl_buf_fini(&bytes[1]);
    xpl_buf_fini(&space);
    xpl_exec_pool_free(pool);
}

static void check_names(void) {
    static const struct {
        const char *name, *series;
        int64_t number;
    } cases[] = {
        {"train 17", "train", 17},
        {"train -2", "train", -2},
        {"Profiled batch 5", "Profiled batch", 5},
        {"train-3", "train-3", 99},
        {"17", "", 17},
        {"-1", "", -1},
        {"train", "train", 99},
        {"", "", 99},
        {"a 1 -", "a 1 -", 99},
        {"x 1234567890123456789", "x 1234567890123456789", 99},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(xpl_step_number(xpl_str_from(cases[i].name), 99), cases[i].number);
        CHECK_STR(xpl_step_series(xpl_str_from(cases[i].name)), cases[i].series);
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof kLoops / sizeof *kLoops; i++)
        check_loop(&kLoops[i]);
    check_functions();
    check_pieces();
    check_names();
    return 0;
}
