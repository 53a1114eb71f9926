// SPDX-License-Identifier: Apache-2.0
// Steps of GPUs and TPUs: from one step's begin to the next one's, as of a host that counts as a
// device; and executions of a program where nothing marks steps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/processor_time.h"
#include "tests/xspace_maker.h"

static const int64_t kUs = 1000000; // ps

enum { MOST = 8 };
struct mark { // an annotation, in microseconds, as all that follows
    const char *name;
    int64_t number, begin, end;
};
struct kernel {
    const char *op, *module;
    int64_t launched, begin, end; // launched: of the host, in an annotation or not
};
struct expected {
    const char *name;
    int64_t begin, end;
};
struct loop {
    const char *what;
    int64_t clock_ns; // of the device: begin of its line
    struct mark marks[MOST];
    struct kernel kernels[MOST];
    struct expected steps[MOST]; // of the host's clock, which begins at 10 ms
};
enum { HOST_BEGIN_NS = 10000000 };

static struct xpl_buf make(const struct loop *l) {
    struct xpl_buf space = mk_open();
    struct mk_plane gpu, host;
    mk_plane_begin(&gpu, 0, "/device:GPU:0");
    mk_plane_begin(&host, 1, "/host:CPU");
    struct xpl_buf stream = mk_line(20, "Stream #20(Compute)"), python = mk_line(1, "python");
    mk_int(&stream, 3, l->clock_ns);
    mk_int(&python, 3, HOST_BEGIN_NS);
    for (int i = 0; i < MOST && l->marks[i].name; i++) {
        const struct mark *const m = &l->marks[i];
        struct xpl_buf ev = mk_event(&host, m->name, m->begin * kUs, (m->end - m->begin) * kUs);
        mk_stat_int(&host, &ev, "_r", 1);
        mk_stat_int(&host, &ev, "step_num", m->number);
        mk_event_end(&python, &ev);
        for (int k = 0; k < MOST && l->kernels[k].op; k++) {
            const struct kernel *const e = &l->kernels[k];
            if (e->launched < m->begin || e->launched >= m->end) continue;
            ev = mk_event(&host, "cuLaunchKernel", e->launched * kUs, kUs);
            mk_stat_int(&host, &ev, "correlation_id", k + 1);
            mk_event_end(&python, &ev);
        }
    }
    for (int k = 0; k < MOST && l->kernels[k].op; k++) {
        const struct kernel *const e = &l->kernels[k];
        const int64_t ps = e->end == INT64_MAX ? INT64_MAX : (e->end - e->begin) * kUs;
        struct xpl_buf ev = mk_event(&gpu, "loop_fusion", e->begin * kUs, ps);
        mk_stat_int(&gpu, &ev, "correlation_id", k + 1);
        mk_stat_ref(&gpu, &ev, "hlo_op", e->op);
        mk_stat_ref(&gpu, &ev, "hlo_module", e->module);
        mk_stat_str(&gpu, &ev, "kernel_details", "regs:32 grid:1,1,1 block:256,1,1 occ_pct:100");
        mk_event_end(&stream, &ev);
    }
    mk_line_end(&gpu, &stream);
    mk_line_end(&host, &python);
    mk_plane_end(&gpu, &space);
    mk_plane_end(&host, &space);
    return space;
}

static const struct loop kLoops[] = {
    {"waits",
     HOST_BEGIN_NS,
     {{"train", 3, 0, 90}, {"train", 4, 100, 190}, {"train", 5, 200, 290}},
     {{"a", "f", 10, 20, 80}, {"a", "f", 110, 120, 180}, {"a", "f", 210, 220, 280}},
     {{"train 3", 0, 100}, {"train 4", 100, 200}, {"train 5", 200, 290}}},
    {"runs ahead",
     HOST_BEGIN_NS,
     {{"train", 0, 0, 20}, {"train", 1, 20, 40}, {"eval", 0, 40, 60}},
     {{"a", "f", 0, 10, 100}, {"a", "f", 20, 105, 200}, {"a", "g", 40, 205, 300}},
     {{"train 0", 0, 105}, {"train 1", 105, 205}, {"eval 0", 205, 300}}},
    {"compiles first",
     HOST_BEGIN_NS,
     {{"train", 0, 0, 500}, {"train", 1, 500, 510}},
     {{"a", "f", 480, 490, 600}, {"a", "f", 502, 610, 700}},
     {{"train 0", 0, 610}, {"train 1", 610, 700}}},
    {"has a device whose clock is early, before the profile's origin",
     -50000,
     {{"train", 0, 0, 20}, {"train", 1, 20, 40}, {"train", 2, 40, 60}},
     {{"a", "f", 0, 0, 40}, {"a", "f", 20, 50, 100}, {"a", "f", 40, 100, 150}},
     {{"train 0", -10050, -10000}, {"train 1", -10000, -9950}, {"train 2", -9950, -9900}}},
    {"has a device whose clock is an hour late",
     INT64_C(3600000000000),
     {{"train", 0, 0, 20}, {"train", 1, 20, 40}},
     {{"a", "f", 0, 10, 100}, {"a", "f", 20, 105, 200}},
     {{"train 0", 3599990010, 3599990105}, {"train 1", 3599990105, 3599990200}}},
    {"has a kernel whose end was lost",
     HOST_BEGIN_NS,
     {{"train", 0, 0, 90}, {"train", 1, 100, 190}, {"train", 2, 200, 290}},
     {{"a", "f", 10, 20, 80},
      {"a", "f", 110, 120, INT64_MAX},
      {"b", "f", 112, 130, 180},
      {"a", "f", 210, 220, 280}},
     {{"train 0", 0, 100}, {"train 1", 100, 200}, {"train 2", 200, 290}}},
    {"nothing marks: the program that takes most time, not the one that runs more often",
     HOST_BEGIN_NS,
     {{NULL, 0, 0, 0}},
     {{"c", "jit_small", 0, 0, 5},
      {"a", "jit_big", 0, 10, 40},
      {"b", "jit_big", 0, 45, 60},
      {"c", "jit_small", 0, 70, 75},
      {"a", "jit_big", 0, 80, 110},
      {"b", "jit_big", 0, 112, 120},
      {"a", "jit_big", 0, 130, 160}},
     {{"execution of jit_big 0", 10, 80},
      {"execution of jit_big 1", 80, 130},
      {"execution of jit_big 2", 130, 160}}},
    {"nothing marks, and no program runs twice",
     HOST_BEGIN_NS,
     {{NULL, 0, 0, 0}},
     {{"a", "jit_one", 0, 0, 5}, {"b", "jit_one", 0, 5, 9}, {"a", "jit_two", 0, 10, 15}},
     {{NULL, 0, 0}}},
};

static struct xpl_opstats *convert(const struct xpl_buf *space, bool exact,
                                   struct xpl_arena *arena) {
    const struct xpl_convert_options opt = {.xprof_exact = exact};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_xspace *xs;
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, arena, (size_t)1 << 28, &s, &err), &err);
    return s;
}

static void check_steps(const struct xpl_opstats *s, const struct expected *steps,
                        const char *what) {
    size_t n = 0;
    while (n < MOST && steps[n].name)
        n++;
    if (s->step_db.step_sequence.n != n) (void)fprintf(stderr, "a loop that %s:\n", what);
    CHECK_EQ(s->step_db.step_sequence.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_per_core_step_info *const p = &s->step_db.step_sequence.v[i];
        const struct xpl_step_info *const c = p->step_info_per_core.v;
        const int64_t begin = (steps[i].begin + HOST_BEGIN_NS / 1000) * kUs;
        if (c->begin_ps != (uint64_t)begin) (void)fprintf(stderr, "%s, step %zu:\n", what, i);
        CHECK_STR(c->step_name, steps[i].name);
        CHECK_EQ((int64_t)c->begin_ps, begin);
        CHECK_EQ(c->duration_ps, (steps[i].end - steps[i].begin) * kUs);
    }
}

static void check_loop(const struct loop *l) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = make(l);
    const struct xpl_opstats *const s = convert(&space, false, &arena);
    check_steps(s, l->steps, l->what);
    for (size_t i = 0; i < s->kernel_reports.n; i++) // none of a lost end
        CHECK(s->kernel_reports.v[i].max_duration_ns < 1000 * 1000);
}

// XProf's steps: from the first op to the last one, without names; none where nothing marks any.
static void check_exact(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    struct xpl_buf space = make(&kLoops[1]), unmarked = make(&kLoops[6]);
    const struct xpl_opstats *s = convert(&space, true, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    const struct xpl_step_info *const c = s->step_db.step_sequence.v[1].step_info_per_core.v;
    CHECK_EQ(c->duration_ps, 95 * kUs);
    CHECK_STR(c->step_name, "");
    CHECK_EQ(convert(&unmarked, true, &arena)->step_db.step_sequence.n, 0);
    xpl_buf_fini(&space);
    xpl_buf_fini(&unmarked);
}

// Two cores run a program; nothing marks its executions, between which they wait.
static void check_tpu(void) {
    static const struct expected steps[] = {{"execution of jit_train_step 0", 0, 150},
                                            {"execution of jit_train_step 1", 150, 300},
                                            {"execution of jit_train_step 2", 300, 400},
                                            {NULL, 0, 0}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    for (int core = 0; core < 2; core++) {
        struct mk_plane p = mk_plane(core, core ? "/device:TPU:1" : "/device:TPU:0");
        struct xpl_buf modules = mk_line(1, "XLA Modules"), ops = mk_line(2, "XLA Ops");
        mk_int(&modules, 3, HOST_BEGIN_NS);
        mk_int(&ops, 3, HOST_BEGIN_NS);
        for (int i = 0; i < 3; i++) {
            mk_plain(&p, &modules, "jit_train_step(77)", 150 * i * kUs, 100 * kUs);
            mk_plain(&p, &modules, "jit_metrics(78)", (150 * i + 110) * kUs, 10 * kUs);
            mk_plain(&p, &ops, "fusion", 150 * i * kUs, 100 * kUs);
        }
        mk_line_end(&p, &modules);
        mk_line_end(&p, &ops);
        mk_plane_end(&p, &space);
    }
    const struct xpl_opstats *const s = convert(&space, false, &arena);
    check_steps(s, steps, "runs on TPUs");
    CHECK_EQ(s->step_db.step_sequence.v[0].step_info_per_core.n, 2);
}

enum tpu_steps { NO_STEPS, STEPS_WITHOUT_NAMES, NUMBERED_STEPS, TPU_STEPS };

static void mk_core(struct xpl_buf *space, int core, enum tpu_steps kind) {
    static const int64_t begins[] = {5, 105, 205, 505};
    struct mk_plane p;
    mk_plane_begin(&p, core, core ? "/device:TPU:1" : "/device:TPU:0");
    struct xpl_buf modules = mk_line(1, "XLA Modules"), ops = mk_line(2, "XLA Ops"),
                   steps = mk_line(3, "Steps");
    mk_int(&modules, 3, HOST_BEGIN_NS);
    mk_int(&ops, 3, HOST_BEGIN_NS);
    mk_int(&steps, 3, HOST_BEGIN_NS);
    for (int i = 0; i < 3; i++) {
        const int64_t at = begins[i] * kUs, ps = (begins[i + 1] - begins[i] - 1) * kUs;
        struct xpl_buf ev = mk_event(&p, i < 2 ? "jit_train(77)" : "jit_eval(78)", at, ps);
        mk_stat_int(&p, &ev, "run_id", 1 + i);
        mk_stat_int(&p, &ev, "queue_id", 0);
        mk_stat_int(&p, &ev, "core_type", 0);
        mk_event_end(&modules, &ev);
        mk_plain(&p, &ops, "fusion", at, ps);
        ev = mk_event(&p, "0", at, ps);
        if (kind == NUMBERED_STEPS) mk_stat_ref(&p, &ev, "step_name", "0");
        mk_event_end(&steps, &ev);
    }
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    if (kind != NO_STEPS)
        mk_line_end(&p, &steps);
    else
        xpl_buf_fini(&steps);
    mk_plane_end(&p, space);
}

// Two cores run what a loop launches ahead of them: its annotations are the steps, and name them,
// whether the cores' planes have steps or not.
static void check_marked_tpu(enum tpu_steps kind) {
    static const struct expected steps[] = {
        {"train 7", 0, 105}, {"train 8", 105, 205}, {"eval 7", 205, 504}, {NULL, 0, 0}};
    struct xpl_arena arena;
    struct xpl_buf space = mk_open(), python = mk_line(1, "python");
    struct mk_plane host;
    xpl_arena_init(&arena, 1 << 24);
    for (int core = 0; core < 2; core++)
        mk_core(&space, core, kind);
    mk_plane_begin(&host, 2, "/host:CPU");
    mk_int(&python, 3, HOST_BEGIN_NS);
    for (int i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(&host, i < 2 ? "train" : "eval", i * 10 * kUs, 9 * kUs);
        mk_stat_int(&host, &ev, "_r", 1);
        mk_stat_int(&host, &ev, "step_num", i < 2 ? 7 + i : 7);
        mk_event_end(&python, &ev);
        for (int core = 0; core < 2; core++) {
            ev = mk_event(&host, "DoEnqueueProgram", (i * 10 + 1 + core) * kUs, kUs);
            mk_stat_int(&host, &ev, "run_id", 1 + i);
            mk_stat_int(&host, &ev, "queue_id", 0);
            mk_stat_int(&host, &ev, "core_type", 0);
            mk_stat_int(&host, &ev, "device_ordinal", core);
            mk_event_end(&python, &ev);
        }
    }
    mk_line_end(&host, &python);
    mk_plane_end(&host, &space);
    const struct xpl_opstats *const s = convert(&space, false, &arena);
    check_steps(s, steps, "runs ahead of TPUs");
    CHECK_EQ(s->step_db.step_sequence.v[0].step_info_per_core.n, 2);
    CHECK_EQ(convert(&space, true, &arena)->step_db.step_sequence.n, kind == NO_STEPS ? 0 : 3);
    xpl_arena_fini(&arena);
    xpl_buf_fini(&space);
}

// A device with as many streams as names: no stream makes a table of all names.
static void check_many_streams(void) {
    enum { MANY = 20000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_buf space = mk_open();
    struct mk_plane gpu, host;
    char name[16];
    mk_plane_begin(&gpu, 0, "/device:GPU:0");
    for (int64_t i = 0; i < MANY; i++) {
        struct xpl_buf entry = mk_open(), metadata = mk_open(), line = mk_line(i, "Stream");
        (void)snprintf(name, sizeof name, "kernel%d", (int)i);
        mk_int(&metadata, 1, 1000 + i);
        mk_text(&metadata, 2, name);
        mk_int(&entry, 1, 1000 + i);
        mk_close(&entry, 2, &metadata);
        mk_close(&gpu.body, 4, &entry);
        struct xpl_buf ev = mk_open();
        mk_int(&ev, 1, 1000 + i);
        mk_int(&ev, 2, i * kUs);
        mk_int(&ev, 3, kUs);
        mk_event_end(&line, &ev);
        mk_line_end(&gpu, &line);
    }
    struct xpl_buf steps = mk_line(MANY, "Steps"), mark = mk_event(&gpu, "1", 0, MANY * kUs);
    mk_stat_int(&gpu, &mark, "group_id", 1);
    mk_event_end(&steps, &mark);
    mk_line_end(&gpu, &steps);
    mk_plane_end(&gpu, &space);
    mk_plane_begin(&host, 1, "/host:CPU");
    struct xpl_buf python = mk_line(1, "python"), step = mk_event(&host, "train", 0, MANY * kUs);
    mk_stat_int(&host, &step, "_r", 1);
    mk_stat_int(&host, &step, "step_num", 1);
    mk_event_end(&python, &step);
    mk_line_end(&host, &python);
    mk_plane_end(&host, &space);
    const double begin = processor_s();
    CHECK(convert(&space, false, &arena));
    CHECK(is_within(begin, 5));
    xpl_buf_fini(&space);
}

// Many events refer to one long text, where nothing marks steps: the text is read once, also where
// names of so many executions exceed the limit.
static void check_shared_text(bool is_tpu) {
    enum { EVENTS = 20000, LONG = 2000000 };
    const struct xpl_convert_options opt = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_opstats *s;
    struct xpl_buf space = mk_open(), line = mk_line(1, is_tpu ? "XLA Modules" : "Stream #1");
    struct mk_plane p = mk_plane(0, is_tpu ? "/device:TPU:0" : "/device:GPU:0");
    char *const text = malloc(LONG + 1);
    CHECK(text != NULL);
    memset(text, 'm', LONG);
    text[LONG] = 0;
    struct xpl_buf ev = mk_event(&p, is_tpu ? text : "kernel", 0, kUs);
    if (!is_tpu) mk_stat_ref(&p, &ev, "hlo_module", text);
    for (int i = 0; i < EVENTS; i++)
        mk_len(&line, 4, ev.p, ev.n);
    xpl_buf_fini(&ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    const double begin = processor_s();
    CHECK_STATUS(xpl_opstats_convert(xs, &opt, &exec, &arena, (size_t)1 << 28, &s, &err),
                 is_tpu ? XPL_RESOURCE_EXHAUSTED : XPL_OK, &err);
    CHECK(is_within(begin, 6));
    xpl_buf_fini(&space);
    free(text);
}

// Marked steps of a GPU; each event has its own program, and refers to one long text.
static void check_long_text(const char *name, const char *stat, bool marks) {
    enum { EVENTS = 20000, LONG = 4000000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_buf space = mk_open(), line = mk_line(1, "Stream #1"), steps = mk_line(2, "Steps");
    struct mk_plane p = mk_plane(0, "/device:GPU:0");
    char *const text = malloc(LONG + 1);
    CHECK(text != NULL);
    memset(text, 'm', LONG);
    text[LONG] = 0;
    for (int i = 0; i < EVENTS; i++) {
        struct xpl_buf ev = mk_event(&p, name, i * kUs, kUs);
        mk_stat_ref(&p, &ev, stat, text);
        mk_stat_int(&p, &ev, "group_id", 1);
        mk_stat_int(&p, &ev, "correlation_id", i);
        if (!marks) mk_stat_ref(&p, &ev, "hlo_module", "m");
        if (!marks) mk_stat_int(&p, &ev, "program_id", i + 1);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    struct xpl_buf mark = mk_event(&p, "1", 0, EVENTS * kUs);
    mk_stat_int(&p, &mark, "group_id", 1);
    mk_event_end(&steps, &mark);
    mk_line_end(&p, &steps);
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    const struct xpl_opstats *const s = convert(&space, false, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 1);
    CHECK(is_within(begin, 2));
    xpl_buf_fini(&space);
    free(text);
}

// Each step lists its cores: more devices than any host has are refused.
static void check_many_devices(void) {
    const struct xpl_convert_options opt = {0};
    for (int over = 0; over < 2; over++) {
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
        struct xpl_exec exec = xpl_exec_serial();
        struct xpl_error err = {0};
        struct xpl_xspace *xs;
        struct xpl_opstats *s;
        struct xpl_buf space = mk_open();
        for (int i = 0; i < 1024 + over; i++) {
            struct xpl_buf line = mk_line(1, "Stream #1"), steps = mk_line(2, "Steps");
            struct mk_plane p = mk_plane(i, "/device:GPU:0");
            for (int k = 0; k < 2; k++) {
                struct xpl_buf ev = mk_event(&p, k ? "1" : "kernel", 0, kUs);
                mk_stat_int(&p, &ev, "group_id", 1);
                if (!k) mk_stat_int(&p, &ev, "correlation_id", 1);
                mk_event_end(k ? &steps : &line, &ev);
            }
            mk_line_end(&p, &line);
            mk_line_end(&p, &steps);
            mk_plane_end(&p, &space);
        }
        CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
        CHECK_STATUS(xpl_opstats_convert(xs, &opt, &exec, &arena, (size_t)1 << 28, &s, &err),
                     over ? XPL_RESOURCE_EXHAUSTED : XPL_OK, &err);
        xpl_buf_fini(&space);
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof kLoops / sizeof *kLoops; i++)
        check_loop(&kLoops[i]);
    check_exact();
    check_tpu();
    check_many_streams();
    check_shared_text(false);
    check_shared_text(true);
    check_long_text("kernel", "hlo_op", false);
    check_long_text("MemcpyH2D", "memcpy_details", true);
    check_many_devices();
    for (int kind = NO_STEPS; kind < TPU_STEPS; kind++)
        check_marked_tpu((enum tpu_steps)kind);
    return 0;
}
