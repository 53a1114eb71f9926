// SPDX-License-Identifier: Apache-2.0
// Findings of profiles that are slow for a reason which is known.
#include <jansson.h>
#include <string.h>

#include "analysis/products/values.h"
#include "analysis/tools/findings/findings.h"
#include "tests/check.h"
#include "tests/hlo_maker.h"
#include "tests/processor_time.h"
#include "tests/unit/breakdown/findings_render.h"
#include "tests/unit/breakdown/slow_profiles.h"
#include "tests/unit/opstats/device_profiles.h"
#include "tests/wire_text.h"

// Takes over the profiles.
static json_t *answered(const char *tool, struct xpl_buf *spaces, size_t n) {
    struct xpl_buf out;
    struct xpl_error err = {0};
    CHECK_OK(answer_of(tool, spaces, n, &out, &err), &err);
    json_t *const all = json_loadb((const char *)out.p, out.n, JSON_REJECT_DUPLICATES, NULL);
    CHECK(all);
    xpl_buf_fini(&out);
    for (size_t i = 0; i < n; i++)
        xpl_buf_fini(&spaces[i]);
    return all;
}

static json_t *found(struct xpl_buf *spaces, size_t n) {
    return answered("findings", spaces, n);
}

static json_t *finding(json_t *all, const char *kind) {
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(all, "findings"), i, f) {
        if (strcmp(json_string_value(json_object_get(f, "kind")), kind) == 0) return f;
    }
    return NULL;
}

static const char *text_at(json_t *f, const char *list, size_t i, const char *key) {
    return json_string_value(json_object_get(json_array_get(json_object_get(f, list), i), key));
}

static double number(json_t *f, const char *key) {
    return json_number_value(json_object_get(f, key));
}

static const char *verdict_of(json_t *all, const char *key) {
    return json_string_value(json_object_get(json_object_get(all, "verdict"), key));
}

// The only finding above 5% is `kind` of `percent`; NULL: there is none.
static void check_only(json_t *all, const char *kind, double percent) {
    size_t i;
    json_t *f;
    double before = 100;
    json_array_foreach(json_object_get(all, "findings"), i, f) {
        const double share = number(f, "share_percent"), saving = number(f, "saving_percent");
        const char *const k = json_string_value(json_object_get(f, "kind"));
        CHECK(saving <= before && saving <= share + 1e-9);
        before = saving;
        // Of the kernels here, no program is in the profile.
        CHECK(share < 5 || strcmp(k, "missing_hlo") == 0 || (kind && strcmp(k, kind) == 0));
        CHECK(json_string_length(json_object_get(f, "advice")) > 20);
        CHECK(json_string_length(json_object_get(f, "link")) > 10);
        CHECK(json_string_length(json_object_get(f, "text")) > 10);
    }
    if (kind) CHECK(finding(all, kind));
    if (kind) CHECK_REAL(number(finding(all, kind), "share_percent"), percent, 0.01);
}

// Kinds that one cause of the time breakdown makes.
static void test_causes(void) {
    static const struct {
        const char *host, *op, *kind, *name;
    } cases[] = {
        {"load_batch", NULL, "input_wait", "load_batch"},
        {"save_checkpoint", NULL, "checkpoint", "save_checkpoint"},
        {"PjitFunction(other)", NULL, "launch_bound", "PjitFunction(other)"},
        {"$train.py:9 think", NULL, "host_bound", "$train.py:9 think"},
        {"DevicePut", NULL, "host_copies", "DevicePut"},
        {NULL, NULL, "idle_unknown", NULL},
        {NULL, "all-reduce.7", "exposed_collectives", "all-reduce.7"},
        {NULL, "pure_callback.1", "host_callback", "pure_callback.1"},
        {NULL, "transpose.4", "layout_copies", "transpose.4"},
        {"backend_compile_and_load", NULL, "recompilation", "backend_compile_and_load"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = slow_profile(cases[i].host, cases[i].op, 6000);
        json_t *const all = found(&space, 1), *const f = finding(all, cases[i].kind);
        const bool launch = strcmp(cases[i].kind, "launch_bound") == 0;
        check_only(all, cases[i].kind, launch ? 61 : 60);
        if (cases[i].name) CHECK_STR(text_at(f, "ops", 0, "name"), cases[i].name);
        CHECK_STR(json_string_value(json_object_get(all, "framework")), "jax");
        CHECK_EQ(json_integer_value(json_object_get(all, "steps")), SLOW_STEPS);
        json_decref(all);
    }
}

static void test_evidence(void) {
    struct xpl_buf space = slow_profile("load_batch", NULL, 6000);
    json_t *const all = found(&space, 1), *const f = finding(all, "input_wait");
    json_t *const window = json_object_get(f, "window");
    CHECK_STR(text_at(f, "hosts", 0, "host"), "h0");
    CHECK_EQ(json_array_size(json_object_get(f, "steps")), 5);
    CHECK_EQ(json_integer_value(json_object_get(f, "time_ps")), 60000 * kUs);
    CHECK_EQ(json_integer_value(json_object_get(window, "duration_ps")), 6000 * kUs);
    CHECK_EQ(json_integer_value(json_object_get(window, "begin_ps")), 0);
    CHECK_STR(json_string_value(json_object_get(window, "host")), "h0");
    // Advice is that of the framework.
    const char *const advice = json_string_value(json_object_get(f, "advice"));
    CHECK(!strstr(advice, "tf.data") && strstr(advice, "Grain"));
    json_decref(all);
}

static bool advises(json_t *all, const char *kind, const char *what) {
    return strstr(json_string_value(json_object_get(finding(all, kind), "advice")), what);
}

// An unknown cause that remains with the Python tracer on gets no advice to turn it on.
static void test_advice_with_python(void) {
    for (int python = 0; python < 2; python++) {
        struct slow_cpu s;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            slow_host(&s, "PjitFunction(step)", i, 6000, 100);
            slow_host(&s, python ? "$train.py:3 step" : "step", i, 7000, 100);
            slow_op(&s, "fusion.1", i, 6000, 4000);
        }
        struct xpl_buf space = slow_end(&s);
        json_t *const all = found(&space, 1);
        check_only(all, "idle_unknown", 60);
        CHECK_EQ(advises(all, "idle_unknown", "python_tracer_level"), !python);
        json_decref(all);
    }
}

// Of copies to the device only, and of results.
static void test_advice_of_copies(void) {
    static const char *const names[] = {"DevicePut", "CopyToHostAsync"};
    for (int i = 0; i < 2; i++) {
        struct xpl_buf space = slow_profile(names[i], NULL, 6000);
        json_t *const all = found(&space, 1);
        CHECK_EQ(advises(all, "host_copies", "float()"), i);
        json_decref(all);
    }
}

// No advice to load on another thread where the loader already does.
static void test_advice_of_queues(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "$queue.py:154 get", i, 0, 6000);
        slow_host(&s, "PjitFunction(step)", i, 6000, 100);
        slow_op(&s, "fusion.1", i, 6000, 4000);
        mk_plain(&s.p, &s.other, "$job.py:4 read_shard", slow_at(i, 0), 8000 * kUs);
        mk_plain(&s.p, &s.other, "$queue.py:122 put", slow_at(i, 8100), 100 * kUs);
    }
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1);
    check_only(all, "input_wait", 60);
    CHECK_STR(text_at(finding(all, "input_wait"), "ops", 0, "name"), "$job.py:4 read_shard");
    CHECK(advises(all, "input_wait", "The thread that fills the queue is too slow"));
    json_decref(all);
}

static void test_idle_devices(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    struct xpl_buf ev = mk_event(&s.host, "train", 0, 100 * kUs);
    mk_stat_int(&s.host, &ev, "_r", 1);
    mk_stat_int(&s.host, &ev, "step_num", 1);
    mk_event_end(&s.python, &ev);
    slow_kernel(&s, &s.compute, "gemm", 5, 10, 50);
    struct xpl_buf space = slow_gpu_end(&s);
    // One runs something after the step, one also a little in it, one nothing.
    for (int i = 1; i < 4; i++) {
        struct mk_plane p;
        struct xpl_buf stream = mk_line(14, "Stream #14(Compute)");
        mk_plane_begin(&p, 3 + i,
                       i == 1   ? "/device:GPU:1"
                       : i == 2 ? "/device:GPU:2"
                                : "/device:GPU:3");
        if (i == 1) mk_plain(&p, &stream, "gemm", 20 * kUs, kUs / 4);
        if (i < 3) mk_plain(&p, &stream, "gemm", 500 * kUs, 10 * kUs);
        mk_line_end(&p, &stream);
        mk_plane_end(&p, &space);
    }
    json_t *const all = found(&space, 1), *const f = finding(all, "idle_devices");
    CHECK(f && number(f, "share_percent") <= 0 && number(f, "saving_percent") <= 0);
    CHECK_STR(json_string_value(json_object_get(f, "text")),
              "2 of 3 devices do nothing, or hardly anything");
    json_decref(all);
}

// Fusions are named after their ops: on a CPU those that change a layout count.
static void test_layouts(void) {
    static const struct {
        const char *op, *called;
        int64_t us;
        bool is_layout;
    } cases[] = {
        {"transpose_copy_fusion", NULL, 6000, true},
        {"copy_transpose_fusion.2", NULL, 6000, true},
        {"loop_transpose_fusion", NULL, 6000, true},
        {"wrapped_pad", NULL, 6000, true},
        {"bitcast-convert.1", NULL, 6000, true},
        {"pad_bitcast_fusion", NULL, 6000, true},
        {"transpose_add_fusion", NULL, 6000, false},
        {"copy_bitcast_fusion", NULL, 6000, false},
        {"copy_bitcast_fusion", "jit(step)/transpose:", 6000, true},
        {"copy_bitcast_fusion", "jit(step)/transpose(jvp())/add", 6000, false},
        {"bitcast_fusion", NULL, 6000, false},
        {"transposed.1", NULL, 6000, false},
        {"wrapped_copy.3", NULL, 6000, false},
        {"copy-done.1", NULL, 6000, false},
        {"wrapped_pad", NULL, 1500, false}, // as in any model
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, "PjitFunction(step)", k, 0, 10);
            slow_called_op(&s, cases[i].op, cases[i].called, k, 0, cases[i].us);
            slow_op(&s, "fusion.1", k, cases[i].us, SLOW_STEP_US - cases[i].us);
        }
        struct xpl_buf space = slow_end(&s);
        json_t *const all = found(&space, 1), *const f = finding(all, "layout_copies");
        CHECK_EQ(f != NULL, cases[i].is_layout);
        if (f) CHECK_REAL(number(f, "share_percent"), 60, 0.7);
        json_decref(all);
    }
}

// Also with a loop that copies its carried values.
static void test_healthy(void) {
    struct xpl_buf spaces[] = {slow_profile(NULL, NULL, 0), slow_profile(NULL, "copy.3", 1000)};
    for (size_t i = 0; i < 2; i++) {
        json_t *const all = found(&spaces[i], 1);
        check_only(all, NULL, 0);
        json_decref(all);
    }
}

// One step of ten is a compilation: that is how programs begin.
static void test_compile_at_start(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "PjitFunction(step)", i, 0, i ? 10 : 8000);
        if (i == 0) slow_host(&s, "backend_compile_and_load", i, 0, 8000);
        slow_op(&s, "fusion.1", i, i ? 0 : 8000, i ? SLOW_STEP_US : 2000);
    }
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1);
    check_only(all, "compile_at_start", 8);
    json_decref(all);
}

// Two of ten steps take four times as long, for they compute more.
static void test_outliers(void) {
    static const int begins[] = {0, 1, 2, 3, 4, 8, 9, 10, 14, 15, 16};
    struct slow_cpu s;
    for (int more = 0; more < 2; more++) { // whether these steps run more ops
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            const int64_t us = (begins[i + 1] - begins[i]) * SLOW_STEP_US;
            const int64_t each = more ? SLOW_STEP_US : us;
            slow_step(&s, begins[i], us);
            slow_host(&s, "PjitFunction(step)", begins[i], 0, 10);
            for (int64_t at = 0; at < us; at += each)
                slow_op(&s, "fusion.1", begins[i], at, each);
        }
        struct xpl_buf space = slow_end(&s);
        json_t *const all = found(&space, 1);
        json_t *const f = finding(all, more ? "step_outliers" : "busy_machine");
        check_only(all, more ? "step_outliers" : NULL, 100.0 * 6 / 16);
        CHECK(f);
        CHECK(strstr(json_string_value(json_object_get(f, "text")), "2 of 10"));
        if (more) {
            CHECK(strstr(json_string_value(json_object_get(f, "text")), "is mostly compute"));
            CHECK(strstr(verdict_of(all, "text"),
                         "37.5% of the time is lost to long steps: 2 of 10"));
            CHECK_EQ(json_array_size(json_object_get(f, "steps")), 2);
        }
        json_decref(all);
    }
}

// The host takes 6 ms in one step, and 0.1 in the others: another process may have its core, or a
// loop that runs ahead begins.  A cause that most steps have could be saved.
static void test_once(void) {
    static const struct {
        int which, n_steps;
        const char *event;
        double saving; // ms
    } cases[] = {{4, 10, "$train.py:9 main", 1.0},      {4, 9, "$train.py:9 main", 6.8},
                 {0, 4, "$train.py:9 main", 0.4},       {0, 3, "$train.py:9 main", 6.2},
                 {4, 10, "PjitFunction(step)", 1.0},    {4, 10, "TransferToDevice", 1.0},
                 {4, 10, "$train.py:9 load_data", 6.9}, {-1, 10, "$train.py:9 main", 60}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        slow_begin(&s);
        for (int k = 0; k < cases[i].n_steps; k++) {
            const int64_t us = cases[i].which < 0 || k == cases[i].which ? 6000 : 100;
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, cases[i].event, k, 0, us);
            slow_host(&s, "PjitFunction(step)", k, us, 10);
            slow_op(&s, "fusion.1", k, us, SLOW_STEP_US - us);
        }
        struct xpl_buf space = slow_end(&s);
        json_t *const all = found(&space, 1), *const f = json_array_get(
                                                  json_object_get(all, "findings"), 0);
        CHECK_REAL(number(f, "saving_ps") / 1e9, cases[i].saving, 1e-6);
        json_decref(all);
    }
}

// Four hosts; the third one computes 5 of 10 ms, the others 2, and all-reduce ends for all at once.
static void test_stragglers(void) {
    struct xpl_buf spaces[4];
    for (int h = 0; h < 4; h++) {
        struct slow_cpu s;
        const int64_t work = h == 2 ? 5000 : 2000;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            slow_host(&s, "PjitFunction(step)", i, 0, 10);
            slow_op(&s, "fusion.1", i, 0, work);
            slow_op(&s, "all-reduce.1", i, work, 6000 - work);
            slow_op(&s, "fusion.2", i, 6000, 4000);
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 4), *const f = finding(all, "stragglers");
    CHECK(f);
    CHECK_REAL(number(f, "share_percent"), 100 * 3 * 3.0 / 40, 0.01); // three wait 3 of 10 ms
    CHECK_REAL(number(f, "saving_percent"), 100 * 3 / 10.0, 0.01);    // 3 of 10 ms
    CHECK_STR(text_at(f, "hosts", 0, "host"), "h2");
    CHECK(strstr(json_string_value(json_object_get(f, "text")), "CPU of h2 in 10 of 10 steps"));
    // What the last one spends is communication: 1 ms of each.
    CHECK_REAL(number(finding(all, "exposed_collectives"), "share_percent"), 10, 0.01);
    json_decref(all);
}

// The second of two hosts is late because its host works 3 of 10 ms first: the finding of the other
// one's wait says so, and it is not a separate finding. One step of the first host takes longer, as
// it waits longer: the saving counts once.
static void test_late_host(void) {
    struct xpl_buf spaces[2];
    for (int h = 0; h < 2; h++) {
        struct slow_cpu s;
        const int64_t idle = h ? 3000 : 0;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            if (idle) slow_host(&s, "$train.py:31 log_metrics", i, 0, idle);
            slow_host(&s, "PjitFunction(step)", i, idle, 10);
            slow_op(&s, "fusion.1", i, idle, 2000);
            slow_op(&s, "all-reduce.1", i, idle + 2000, 4000 - idle);
            slow_op(&s, "fusion.2", i, 6000, 4000);
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 2), *const f = finding(all, "stragglers");
    CHECK(f && !finding(all, "host_bound"));
    CHECK(strstr(json_string_value(json_object_get(f, "text")),
                 "CPU of h1 in 10 of 10 steps: its host does something else ($train.py:31"));
    CHECK_STR(json_string_value(json_object_get(f, "title")), "Waiting for the last device");
    CHECK_STR(verdict_of(all, "text"),
              "Each step waits 1.50 ms of 10.0 ms for the last device in collectives: h1, as its "
              "host does something else ($train.py:31 log_metrics)");
    json_decref(all);
}

// Two hosts take turns in loading for 3 of 10 ms: half of their time, but each step waits for one
// of them. Without it all of that is saved, the waiting, too.
static void test_late_in_turns(void) {
    struct xpl_buf spaces[2];
    for (int h = 0; h < 2; h++) {
        struct slow_cpu s;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            const int64_t loads = i % 2 == h ? 3000 : 0;
            slow_step(&s, i, SLOW_STEP_US);
            if (loads) slow_host(&s, "load_batch", i, 0, loads);
            slow_host(&s, "PjitFunction(step)", i, loads, 10);
            slow_op(&s, "fusion.1", i, loads, 2000);
            slow_op(&s, "all-reduce.1", i, loads + 2000, 4000 - loads);
            slow_op(&s, "fusion.2", i, 6000, 4000);
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 2), *const wait = finding(all, "stragglers"),
                  *const own = finding(all, "input_wait");
    CHECK_REAL(number(own, "share_percent"), 15, 0.01);
    CHECK_REAL(number(own, "saving_percent"), 30, 0.01);
    CHECK_REAL(number(wait, "share_percent"), 15, 0.01);
    CHECK_REAL(number(wait, "saving_percent"), 0, 0);
    CHECK_STR(json_string_value(json_object_get(wait, "within")), "input_wait");
    json_decref(all);
}

// The first of two hosts loads for 2 ms while the other one computes longer: no step waits for it.
static void test_not_the_last(void) {
    struct xpl_buf spaces[2];
    for (int h = 0; h < 2; h++) {
        struct slow_cpu s;
        const int64_t loads = h ? 0 : 2000, computes = h ? 5000 : 1000;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            if (loads) slow_host(&s, "load_batch", i, 0, loads);
            slow_host(&s, "PjitFunction(step)", i, loads, 10);
            slow_op(&s, "fusion.1", i, loads, computes);
            slow_op(&s, "all-reduce.1", i, loads + computes, 6000 - loads - computes);
            slow_op(&s, "fusion.2", i, 6000, 4000);
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 2), *const own = finding(all, "input_wait");
    CHECK_REAL(number(own, "share_percent"), 10, 0.01);
    CHECK_REAL(number(own, "saving_percent"), 0, 1e-9);
    CHECK(strstr(json_string_value(json_object_get(finding(all, "stragglers"), "text")),
                 "CPU of h1 in 10 of 10 steps: it computes longer"));
    json_decref(all);
}

// Each of two hosts takes 10 and 20 ms by turns, and ends when the other one does: the time of the
// loop by its steps is 15 ms.
static void test_slowest_host(void) {
    struct xpl_buf spaces[2];
    for (int h = 0; h < 2; h++) {
        struct slow_cpu s;
        slow_begin(&s);
        for (int i = 0, at = 0; i < SLOW_STEPS; i++) {
            const int n = i % 2 == h ? 2 : 1;
            slow_numbered_step(&s, i, at, n * SLOW_STEP_US);
            slow_host(&s, "PjitFunction(step)", at, 0, 10);
            slow_op(&s, "fusion.1", at, 0, n * SLOW_STEP_US);
            at += n;
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 2);
    CHECK_REAL(number(json_object_get(all, "verdict"), "step_ps") / 1e9, 15, 1e-9);
    json_decref(all);
}

// Steps that take longer because they wait for input save nothing in addition to the wait.
static void test_overlap(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0, at = 0; i < SLOW_STEPS; i++) {
        const int n = i == 4 ? 3 : 1;
        slow_step(&s, at, n * SLOW_STEP_US);
        slow_host(&s, "load_batch", at, 0, (n - 1) * SLOW_STEP_US + 2000);
        slow_host(&s, "PjitFunction(step)", at, (n - 1) * SLOW_STEP_US + 2000, 10);
        slow_op(&s, "fusion.1", at, (n - 1) * SLOW_STEP_US + 2000, 8000);
        at += n;
    }
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1), *const f = finding(all, "step_outliers");
    CHECK(f && finding(all, "input_wait"));
    CHECK_STR(json_string_value(json_object_get(f, "within")), "input_wait");
    CHECK_REAL(number(f, "share_percent"), 100 * 2 / 12.0, 0.01);
    CHECK_REAL(number(f, "saving_percent"), 0, 0);
    CHECK_STR(json_string_value(json_object_get(finding(all, "input_wait"), "within")), "");
    json_decref(all);
}

// Also if a part of what they take longer has another cause.
static void test_mostly_within(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0, at = 0; i < SLOW_STEPS; i++) {
        const int n = i == 4 ? 3 : 1;
        const int64_t loads = i == 4 ? 18000 : 0;
        slow_step(&s, at, n * SLOW_STEP_US);
        if (loads) slow_host(&s, "load_batch", at, 0, loads);
        slow_host(&s, "PjitFunction(step)", at, loads, 10);
        slow_op(&s, "fusion.1", at, loads, n * SLOW_STEP_US - loads);
        at += n;
    }
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1), *const f = finding(all, "step_outliers");
    CHECK_STR(json_string_value(json_object_get(f, "within")), "input_wait");
    CHECK_REAL(number(f, "share_percent"), 100 * 20 / 120.0, 0.01);
    CHECK_REAL(number(finding(all, "input_wait"), "saving_percent"), 15, 0.01);
    json_decref(all);
}

static void test_outside(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, 9000);
        slow_host(&s, "PjitFunction(step)", i, 0, 10);
        slow_op(&s, "fusion.1", i, 0, 8000);
        slow_op(&s, "fusion.2", i, SLOW_STEP_US * SLOW_STEPS, 2000); // after the last step
    }
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1);
    CHECK_REAL(number(all, "outside_steps_percent"), 20, 0.01);
    CHECK(strstr(json_string_value(json_object_get(json_object_get(all, "verdict"), "text")),
                 "% of the ops' time is outside of steps"));
    json_decref(all);
}

// Steps that wait 1 ms for input, and are idle at their ends.
static struct xpl_buf slow_and_silent(void) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int k = 0; k < SLOW_STEPS; k++) {
        slow_step(&s, k, SLOW_STEP_US);
        slow_host(&s, "load_batch", k, 0, 1000);
        slow_op(&s, "fusion.1", k, 1000, 6000);
    }
    return slow_end(&s);
}

static const char kDropped[] = "Detected GPU events dropped on vm: Profiler has collected 1000 "
                               "driver events and 900 device events.";

static void test_verdicts(void) {
    struct slow_cpu only;
    slow_begin(&only);
    slow_host(&only, "backend_compile_and_load", 0, 0, 2500000);
    struct xpl_buf broken = mk_open();
    mk_text(&broken, 2, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    struct xpl_buf lost = mk_open(), healthy = slow_profile(NULL, NULL, 0);
    struct xpl_buf cut = mk_open(); // Kineto's own losses are errors
    mk_text(&cut, 2, "the trace ends at byte 371 within a value: the rest is lost");
    struct xpl_buf both = mk_open(), partial = slow_profile(NULL, NULL, 0);
    mk_text(&lost, 3, kDropped);
    mk_text(&healthy, 3, kDropped);
    mk_text(&both, 2, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    mk_text(&both, 3, kDropped);
    mk_text(&partial, 3, "The last batch is partial and was dropped"); // the program's
    const struct {
        struct xpl_buf space;
        const char *text, *cannot_tell;
    } cases[] = {
        {slow_profile("load_batch", NULL, 6000),
         "Each step waits 6.00 ms of 10.0 ms for input (load_batch)", NULL},
        {slow_profile(NULL, NULL, 0),
         "The device computes 99.0% of the time; nothing much to gain outside of the ops; a step "
         "takes 10.0 ms",
         NULL},
        {slow_and_silent(),
         "Each step waits 1.00 ms of 10.0 ms for input (load_batch); for 30.0% of the time devices "
         "are idle, and the profile does not show why",
         NULL},
        {slow_profile(NULL, NULL, 6000),
         "The device computes 39.0% of the time, and is idle for 60.0% of it: the profile does not "
         "show why; a step takes 10.0 ms",
         NULL},
        {slow_end(&only),
         "The host compiled while the profile was taken, and no device did anything", "compiling"},
        {broken, "The profile has no events of a device, because the profiler failed",
         "profiler_error"},
        {lost, "The profile has no events of a device: the profiler dropped events, or was stopped",
         "truncated"},
        {cut, "The profile has no events of a device: the profiler dropped events, or was stopped",
         "truncated"},
        {both, "The profile has no events of a device, because the profiler failed",
         "profiler_error"},
        {partial,
         "The device computes 99.0% of the time; nothing much to gain outside of the ops; a step "
         "takes 10.0 ms",
         NULL},
        {healthy,
         "The device computes 99.0% of the time; nothing much to gain outside of the ops; a step "
         "takes 10.0 ms; the profile lacks events, which may change this",
         "truncated"},
        {mk_open(),
         "The profile has no events of a device, so that it does not show what limits the program",
         "no_device_events"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = cases[i].space;
        json_t *const all = found(&space, 1);
        CHECK_STR(verdict_of(all, "text"), cases[i].text);
        const char *const cannot = verdict_of(all, "cannot_tell");
        CHECK(cases[i].cannot_tell ? cannot && strcmp(cannot, cases[i].cannot_tell) == 0 : !cannot);
        json_decref(all);
    }
}

// Loops of training and of evaluation number their steps alike: they are different series.
static void test_same_numbers(void) {
    struct xpl_buf spaces[2];
    for (int h = 0; h < 2; h++) {
        struct slow_cpu s;
        const int64_t work = h ? 5000 : 2000;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            struct xpl_buf ev = mk_event(&s.p, i % 2 ? "eval" : "train", slow_at(i, 0),
                                         (int64_t)SLOW_STEP_US * kUs);
            mk_stat_int(&s.p, &ev, "_r", 1);
            mk_stat_int(&s.p, &ev, "step_num", i / 2);
            mk_event_end(&s.python, &ev);
            slow_op(&s, "fusion.1", i, 0, work);
            slow_op(&s, "all-reduce.1", i, work, 6000 - work);
            slow_op(&s, "fusion.2", i, 6000, 4000);
        }
        spaces[h] = slow_end(&s);
    }
    json_t *const all = found(spaces, 2), *const f = finding(all, "stragglers");
    CHECK_EQ(json_integer_value(json_object_get(all, "steps")), SLOW_STEPS);
    CHECK(f && strstr(json_string_value(json_object_get(f, "text")), "of h1 in 10 of 10 steps"));
    json_decref(all);
}

// A GPU with gaps between its kernels, copies that nothing overlaps, and full memory.
static void test_gpu(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    for (int i = 0; i < 50; i++) {
        slow_kernel(&s, &s.compute, "gemm", 100 * i, 100 * i + 5, 45); // ends at 50
        slow_kernel(&s, &s.comm, "MemcpyH2D", 100 * i + 10, 100 * i + 50, 20);
    }
    struct xpl_buf ev = mk_event(&s.host, "MemoryAllocation", 0, 0);
    mk_stat_str(&s.host, &ev, "allocator_name", "GPU_0_bfc");
    mk_stat_int(&s.host, &ev, "peak_bytes_in_use", 95);
    mk_stat_int(&s.host, &ev, "bytes_allocated", 90);
    mk_stat_int(&s.host, &ev, "bytes_available", 10);
    mk_event_end(&s.python, &ev);
    struct xpl_buf space = slow_gpu_end(&s);
    json_t *const all = found(&space, 1);
    const double wall = 5000 - 30 - 5;
    CHECK_REAL(number(finding(all, "host_copies"), "share_percent"), 100 * 1000 / wall, 0.01);
    CHECK(number(finding(all, "launch_bound"), "share_percent") > 4);
    json_t *const memory = finding(all, "memory_near_capacity");
    CHECK(strstr(json_string_value(json_object_get(memory, "text")), "GPU_0_bfc was filled to 95"));
    CHECK_REAL(number(memory, "share_percent"), 0, 0);
    json_decref(all);
}

// One launch of 20 kernels of 2 us, each 1 us after the one before, in each of ten graphs.
static void test_graph_gaps(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    for (int i = 0; i < 10; i++) {
        struct xpl_buf ev = mk_event(&s.host, "cuGraphLaunch", (60 * i + 1) * kUs, 2 * kUs);
        mk_stat_int(&s.host, &ev, "correlation_id", i + 1);
        mk_event_end(&s.python, &ev);
        for (int k = 0; k < 20; k++) {
            ev = mk_event(&s.gpu, "add", (10 + 60 * i + 3 * k) * kUs, 2 * kUs);
            mk_stat_int(&s.gpu, &ev, "correlation_id", i + 1);
            mk_event_end(&s.compute, &ev);
        }
    }
    struct xpl_buf space = slow_gpu_end(&s);
    json_t *const all = found(&space, 1);
    check_only(all, "graph_gaps", 100 * 190 / 599.0);
    CHECK_REAL(number(finding(all, "launch_bound"), "share_percent"), 100 * 9 / 599.0, 0.01);
    CHECK(advises(all, "graph_gaps", "fewer, larger kernels"));
    json_decref(all);
}

// Half of the time goes to an op that runs as `kernel`.
static struct xpl_buf half_of(const char *kernel, const char *op) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    for (int i = 0; i < 10; i++) {
        slow_kernel(&s, &s.compute, "gemm", 0, 100 * i, 50);
        struct xpl_buf ev = mk_event(&s.gpu, kernel, (100 * i + 50) * kUs, 50 * kUs);
        if (op) mk_stat_ref(&s.gpu, &ev, "hlo_op", op);
        mk_event_end(&s.comm, &ev);
    }
    return slow_gpu_end(&s);
}

// The op says whether it communicates, before the kernel's name.
static void test_kernels_of_collectives(void) {
    static const struct {
        const char *kernel, *op, *kind;
    } cases[] = {
        {"void stream_executor::gpu::AllReduceKernelImpl<float>", "all-reduce-start.1",
         "exposed_collectives"},
        {"MemcpyP2P", "all-gather-start.1", "exposed_collectives"},
        {"ncclDevKernel_AllReduce", NULL, "exposed_collectives"},
        {"void vllm::cross_device_reduce_1stage<half, 2>(...)", NULL, "exposed_collectives"},
        {"void (anonymous namespace)::multimem_all_reduce_kernel<float>", NULL,
         "exposed_collectives"},
        {"MemcpyP2P", NULL, "device_copies"},
        {"MemcpyD2D", "dynamic-slice.3", "device_copies"},
        {"loop_add_fusion", "add.3", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = half_of(cases[i].kernel, cases[i].op);
        json_t *const all = found(&space, 1);
        check_only(all, cases[i].kind, 50);
        json_decref(all);
    }
}

// Twenty kernels one right after the other, of which every other takes `thin` of 100 us and fills
// `occupancy` percent of the device.
static struct xpl_buf occupied_by(const char *name, int64_t thin, const char *occupancy) {
    char details[64];
    struct slow_gpu s;
    slow_gpu_begin(&s);
    (void)snprintf(details, sizeof details, "regs:16 grid:1,1,1 block:32,1,1 occ_pct:%s",
                   occupancy);
    for (int i = 0; i < 10; i++) {
        const struct mk_kernel_event thick = {"gemm", 100 * i * kUs, (100 - thin) * kUs,
                                              NULL,   NULL,          "block:512,1,1 occ_pct:75"};
        const struct mk_kernel_event low = {
            name, (100 * (i + 1) - thin) * kUs, thin * kUs, NULL, NULL, details};
        mk_kernel(&s.gpu, &s.compute, thick);
        mk_kernel(&s.gpu, &s.compute, low);
    }
    return slow_gpu_end(&s);
}

static struct xpl_buf occupied(int64_t thin, const char *occupancy) {
    return occupied_by("scan", thin, occupancy);
}

// Kernels of matrix units fill the device with few warps.
static void test_matrix_kernels(void) {
    struct xpl_buf space = occupied_by("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", 30, "18.75");
    json_t *const all = found(&space, 1);
    check_only(all, NULL, 0);
    CHECK(!finding(all, "low_occupancy"));
    json_decref(all);
}

static void test_occupancy(void) {
    struct xpl_buf spaces[] = {occupied(30, "10"), occupied(30, "25"), occupied(4, "10")};
    json_t *all = found(&spaces[0], 1);
    check_only(all, "low_occupancy", 30);
    json_t *const f = finding(all, "low_occupancy");
    CHECK_REAL(number(f, "saving_percent"), 27, 0.01);
    CHECK_STR(text_at(f, "ops", 0, "name"), "scan");
    CHECK_EQ(json_array_size(json_object_get(f, "ops")), 1);
    json_decref(all);
    all = found(&spaces[1], 1); // full enough
    check_only(all, NULL, 0);
    CHECK(!finding(all, "low_occupancy"));
    json_decref(all);
    all = found(&spaces[2], 1); // of little weight
    check_only(all, NULL, 0);
    json_decref(all);
}

// A TPU of 200 TFLOP/s and 1,000 GB/s that is never idle: ten times a fusion of 30 us, one of 10 us
// and, of 5 us, `last`, which has next to no bytes.
static struct xpl_buf computing(int64_t flops, int64_t bytes, const char *last,
                                const char *category) {
    struct xpl_buf space = mk_open(), ops = mk_line(2, "XLA Ops"),
                   modules = mk_line(1, "XLA Modules");
    struct mk_plane p;
    mk_plane_begin(&p, 3, "/device:TPU:0");
    mk_stat_text(&p, &p.body, MK_PLANE_STATS, "device_type_string", 5, "TPU v5", 6);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_teraflops_per_second", 200);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_hbm_bw_gigabytes_per_second", 1000);
    // Half of what the device could do.
    mk_tpu_md(&p, (struct mk_op){.id = 1000,
                                 .name = "%fusion.1 = f32[8] fusion()",
                                 .display = "fusion.1",
                                 .program = 7,
                                 .symbol = 1,
                                 .flops = INT64_C(3000000000),
                                 .category = "convolution fusion"});
    mk_tpu_md(&p, (struct mk_op){.id = 1001,
                                 .name = "%fusion.2 = f32[8] fusion()",
                                 .display = "fusion.2",
                                 .program = 7,
                                 .symbol = 2,
                                 .flops = flops,
                                 .bytes = bytes,
                                 .category = "loop fusion"});
    mk_tpu_md(&p, (struct mk_op){.id = 1002,
                                 .name = last,
                                 .display = last,
                                 .bytes = 100,
                                 .program = 7,
                                 .symbol = 3,
                                 .category = category});
    mk_tpu_md(&p, (struct mk_op){.id = 1003, .name = "jit_step(7)"});
    mk_op_run(&modules, 1003, 0, 450 * kUs);
    for (int i = 0; i < 10; i++) {
        mk_op_run(&ops, 1000, 45 * i * kUs, 30 * kUs);
        mk_op_run(&ops, 1001, (45 * i + 30) * kUs, 10 * kUs);
        mk_op_run(&ops, 1002, (45 * i + 40) * kUs, 5 * kUs);
    }
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, &space);
    return space;
}

// Cores of which the profile has no details are in pod_viewer, with the causes of the breakdown.
static void test_pod_of_tpus(void) {
    struct xpl_buf spaces[2];
    for (size_t h = 0; h < 2; h++) {
        struct xpl_buf space = mk_open(), ops = mk_line(2, "XLA Ops"),
                       modules = mk_line(1, "XLA Modules");
        struct mk_plane p;
        mk_plane_begin(&p, 3, "/device:TPU:0");
        for (unsigned i = 0; i < 3; i++) {
            mk_plain(&p, &modules, "jit_step(7)", 100 * i * kUs, 100 * kUs);
            mk_plain(&p, &ops, "%fusion.1 = f32[8] fusion()", 100 * i * kUs, 70 * kUs);
            mk_plain(&p, &ops, "%all-reduce.1 = f32[8] all-reduce()", (100 * i + 70) * kUs,
                     30 * kUs);
        }
        mk_line_end(&p, &modules);
        mk_line_end(&p, &ops);
        mk_plane_end(&p, &space);
        struct xpl_buf steps = mk_line(1, "Sparse Core Steps"),
                       sparse = mk_line(2, "Sparse Core Ops");
        mk_plane_begin(&p, 4, "/device:TPU:0 SparseCore 0");
        for (unsigned i = 0; i < 3; i++) {
            mk_plain(&p, &steps, "jit_step(7)", 100 * i * kUs, 100 * kUs);
            mk_plain(&p, &sparse, "%fusion.2 = f32[8] fusion()", 100 * i * kUs, 50 * kUs);
        }
        mk_line_end(&p, &steps);
        mk_line_end(&p, &sparse);
        mk_plane_end(&p, &space);
        spaces[h] = space;
    }
    json_t *const pod = answered("pod_viewer", spaces, 2);
    json_t *const steps = json_object_get(json_object_get(pod, "podStatsSequence"), "podStatsMap");
    CHECK_EQ(json_array_size(steps), 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t h = 0; h < 2; h++) {
            json_t *const cores = json_object_get(json_array_get(steps, i), "podStatsPerCore");
            json_t *const core = json_object_get(cores, h ? "1003" : "3");
            CHECK_STR(json_string_value(json_object_get(core, "hostName")), h ? "h1" : "h0");
            json_t *const times = json_object_get(core, "stepBreakdownUs");
            CHECK_REAL(number(times, "1"), 70, 1e-6);
            CHECK_REAL(number(times, "3"), 30, 1e-6);
        }
    json_decref(pod);
}

// What XLA knows nothing of is not judged, whatever its bytes.
static void test_unknown_cost(void) {
    struct xpl_buf space = computing(100000000, 0, "custom-call.3", "custom-call");
    json_t *const all = found(&space, 1), *const f = finding(all, "unknown_cost");
    CHECK_REAL(number(f, "share_percent"), 100 * 5 / 45.0, 0.01);
    CHECK_REAL(number(f, "saving_percent"), 0, 0);
    CHECK_STR(text_at(f, "ops", 0, "name"), "custom-call.3");
    json_t *const far = finding(all, "far_from_roofline");
    CHECK_REAL(number(far, "share_percent"), 100 * 10 / 45.0, 0.01);
    CHECK_EQ(json_array_size(json_object_get(far, "ops")), 1);
    json_decref(all);
}

// The peak is that of the slowest operand.
static void test_peaks(void) {
    static const struct {
        const char *device, *text;
        double tflops;
    } cases[] = {
        {"Nvidia GPU (Hopper)", "%d = f64[8]{0} dot(f64[8,8]{1,0} %a, f64[8]{0} %b)", 62.5},
        {"Nvidia GPU (Hopper)", "%d = f32[8] fusion(f32[8] %a), algorithm=dot_tf32_tf32_f32", 500},
        {"Nvidia GPU (Hopper)", "%d = f32[8] fusion(f32[8] %a)", 62.5},
        {"Nvidia GPU (Hopper)", "%d = f32[8] dot(bf16[8,8] %a, bf16[8] %b)", 1000},
        {"Nvidia GPU (Hopper)", "%d = f32[8] dot(f8e4m3fn[8,8] %a, f8e5m2[8] %b)", 2000},
        {"Nvidia GPU (Hopper)", "%d = bf16[8] fusion(bf16[8] %a, f32[] %scale)", 1000},
        {"Nvidia GPU (Hopper)", "%d = (f32[8]{0:T(8)}, s8[4]) custom-call(bf16[8] %a)", 1000},
        {"Nvidia GPU (Hopper)", "%d = f32[8] fusion(%p.1), kind=kLoop", 62.5},
        {"Nvidia GPU (Hopper)", "%d = s32[8] fusion(s32[8] %a)", 0},
        {"Nvidia GPU (Hopper)", "gemm", 0},
        {"Nvidia GPU (Hopper)", "%d = ((", 0},
        {"Nvidia GPU", "%d = f32[8] dot(f32[8] %a)", 0},
        {"Nvidia GPU (Ampere)", "%d = f8e4m3[8] dot(f8e4m3[8] %a)", 0},
        {"AMD GPU - gfx942", "%d = f64[8] dot(f64[8] %a)", 125},
        {"TPU v5", "%d = f32[8] dot(f32[8] %a)", 1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_opstats s = {0};
        s.perf_env.peak_tera_flops_per_second = 1000;
        s.run_environment.device_type = xpl_str_from(cases[i].device);
        CHECK_REAL(xpl_finding_peak_tflops(&s, xpl_str_from(cases[i].text)), cases[i].tflops, 1e-9);
    }
}

static void test_roofline(void) {
    // What takes 10 us needs 0.5 us for its operations, or 0.9 us for its bytes, or 1.5 us.
    struct xpl_buf spaces[] = {computing(100000000, 0, "copy-done.3", "copy-done"),
                               computing(0, 900000, "op.3", "data formatting"),
                               computing(0, 1500000, "copy-start.3", "copy-start")};
    json_t *all = found(&spaces[0], 1), *f = finding(all, "far_from_roofline");
    CHECK_REAL(number(f, "share_percent"), 100 * 10 / 45.0, 0.01);
    CHECK_REAL(number(f, "saving_percent"), 100 * 9.5 / 45, 0.01);
    CHECK_STR(text_at(f, "ops", 0, "name"), "fusion.2");
    json_decref(all);
    all = found(&spaces[1], 1);
    f = finding(all, "far_from_roofline");
    CHECK_REAL(number(f, "saving_percent"), 100 * 9.1 / 45, 0.01);
    f = finding(all, "layout_copies");
    CHECK_REAL(number(f, "share_percent"), 100 * 5 / 45.0, 0.01);
    CHECK_STR(text_at(f, "ops", 0, "name"), "op.3");
    json_decref(all);
    f = finding(all = found(&spaces[2], 1), "device_copies");
    check_only(all, "device_copies", 100 * 5 / 45.0);
    CHECK_STR(text_at(f, "ops", 0, "name"), "copy-start.3");
    json_decref(all);
}

// A CPU whose profile has the program of its ops: `op`, which JAX calls `op_name`, reads or writes
// a thousand bytes in each of its runs, which are as many in each ten milliseconds.
static struct xpl_buf computing_on_cpu(const char *op, const char *op_name, int runs, int64_t us) {
    struct slow_cpu s;
    char text[512];
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        for (int k = 0; k < runs; k++)
            slow_op(&s, op, i, k * us, us);
        slow_op(&s, "dot.2", i, runs * us, SLOW_STEP_US - runs * us);
    }
    struct xpl_buf space = slow_end(&s);
    struct mk_plane p = mk_metadata_plane();
    struct xpl_buf module = wt_message("1:\"jit_step\" 4:{} 6:1");
    (void)snprintf(text, sizeof text,
                   "1:\"main\" 5:1 6:2 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:11 3:[125]}} "
                   "2:{1:\"%s\" 2:\"negate\" 35:2 36:[1] 3:{2:11 3:[125]} 7:{2:\"%s\"}}",
                   op, op_name);
    struct xpl_buf computation = wt_message(text);
    mk_close(&module, 3, &computation);
    mk_program(&p.body, 6, &module);
    mk_plane_end(&p, &space);
    return space;
}

// What gathers and scatters by name moves 0.25 MB/s.  What else is slow on a CPU may have to be.
static void test_irregular(void) {
    static const struct {
        const char *op, *op_name;
        bool far;
    } cases[] = {
        {"gather_bitcast_fusion", "jit(f)/sub", true},
        {"loop_gather_fusion.2", "", true},
        {"fusion.1", "jit(f)/gather", true},
        {"fusion.1", "jit(f)/scatter-add", true},
        {"fusion.1", "model/GatherV2", true},
        {"fusion.1", "jit(gather)/sort", false},
        {"sort.1", "jit(f)/sort", false},
        {"forgather.1", "jit(f)/mul", false},
        {"all-gather.1", "jit(f)/all_gather", false},
        {"wrapped_scatter", "jit(f)/transpose(jvp())/select_and_scatter", false},
        {"select-and-scatter.1", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = computing_on_cpu(cases[i].op, cases[i].op_name, 1, 4000);
        json_t *const all = found(&space, 1), *const f = finding(all, "far_from_roofline");
        CHECK_EQ(f != NULL, cases[i].far);
        if (f) {
            CHECK_REAL(number(f, "share_percent"), 40, 0.01);
            CHECK_REAL(number(f, "saving_percent"), 40, 0.01);
            CHECK_STR(text_at(f, "ops", 0, "name"), cases[i].op);
        }
        json_decref(all);
    }
}

// A run of some microseconds is the call's, whatever it moves: a token's row in a small net.
static void test_irregular_and_small(void) {
    for (int far = 0; far < 2; far++) {
        struct xpl_buf space =
            computing_on_cpu("gather.1", "jit(f)/gather", far ? 100 : 1000, far ? 40 : 4);
        json_t *const all = found(&space, 1);
        CHECK_EQ(finding(all, "far_from_roofline") != NULL, far);
        json_decref(all);
    }
}

// Of forty kernels one has an impossible time: the others are judged, and a warning reports it.
static void test_impossible(void) {
    static const int64_t durations[] = {-5, INT64_MIN, INT64_MAX, INT64_C(1) << 62};
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        struct slow_gpu s;
        slow_gpu_begin(&s);
        for (int k = 0; k < 40; k++)
            slow_kernel(&s, &s.compute, "gemm", 50 * k, 50 * k + 10, 40);
        mk_plain(&s.gpu, &s.compute, "broken", 100 * kUs, durations[i]);
        struct xpl_buf space = slow_gpu_end(&s);
        json_t *const all = found(&space, 1), *const f = finding(all, "impossible_times");
        CHECK(f && strstr(json_string_value(json_object_get(f, "text")), "1 event of impossible"));
        CHECK_EQ(json_integer_value(json_object_get(all, "wall_ps")), 1990 * kUs);
        CHECK_REAL(number(json_object_get(all, "times"), "compute_percent"), 100 * 1600 / 1990.0,
                   0.01);
        json_decref(all);
    }
}

// The profile has the HLO of a copy; events name the op of half of the other kernels.
static void test_missing_hlo(void) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    for (int i = 0; i < 20; i++) {
        const int64_t at = 50 * i * kUs;
        const struct mk_kernel_event known = {"copy",   at,   kUs,
                                              "copy.1", NULL, "block:32,1,1 occ_pct:75"};
        const struct mk_kernel_event other = {"gemm",   at + kUs,
                                              49 * kUs, i % 2 ? "custom-call.9" : NULL,
                                              NULL,     "block:512,1,1 occ_pct:75"};
        mk_kernel(&s.gpu, &s.compute, known);
        mk_kernel(&s.gpu, &s.compute, other);
    }
    struct xpl_buf space = slow_gpu_end(&s), module = wt_message("1:\"jit_step\" 4:{} 6:1"),
                   computation = wt_message(
                       "1:\"main\" 5:1 6:2 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:11 3:[8]}} "
                       "2:{1:\"copy.1\" 2:\"copy\" 35:2 36:[1] 3:{2:11 3:[8]}}");
    struct mk_plane p = mk_metadata_plane();
    mk_close(&module, 3, &computation);
    mk_program(&p.body, 7, &module);
    mk_plane_end(&p, &space);
    json_t *const all = found(&space, 1), *const f = finding(all, "missing_hlo");
    CHECK_REAL(number(f, "share_percent"), 98, 0.01);
    CHECK(strstr(json_string_value(json_object_get(f, "text")), "98.0% of kernel time"));
    // Not all of the time, though the copy is all that the ops are.
    CHECK_REAL(number(finding(all, "layout_copies"), "share_percent"), 2, 0.01);
    json_decref(all);
}

// What the profiler itself could not do, also where no device did anything.
static void test_problems(void) {
    static const struct {
        uint32_t field; // of XSpace
        const char *says, *text, *advice;
    } cases[] = {
        {2, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "an error: CUPTI", "NVreg_Restrict"},
        {3, "dropped 7 events", "a warning: dropped 7", "profile again"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct xpl_buf space = mk_open();
        mk_text(&space, cases[i].field, cases[i].says);
        json_t *const all = found(&space, 1), *const f = finding(all, "profile_problems");
        CHECK(f && strstr(json_string_value(json_object_get(f, "text")), cases[i].text));
        CHECK(advises(all, "profile_problems", cases[i].advice));
        CHECK_EQ(json_array_size(json_object_get(all, "findings")), 1);
        json_decref(all);
    }
}

// The capture ended before the program began.
static void test_only_compiling(void) {
    struct slow_cpu s;
    slow_begin(&s);
    slow_host(&s, "backend_compile_and_load", 0, 0, 2500000);
    struct xpl_buf space = slow_end(&s);
    json_t *const all = found(&space, 1), *const f = finding(all, "compile_at_start");
    CHECK_STR(json_string_value(json_object_get(f, "text")),
              "no device did anything: the host compiled for 2.5 s");
    json_decref(all);
}

// Nobody knows what could be saved of a time in which nothing is recorded, or a device of which
// nothing is recorded is waited for.
static void test_unknown(void) {
    static const char *const names[] = {NULL, "$array.py:1 block_until_ready"};
    for (size_t i = 0; i < 2; i++) {
        struct xpl_buf space = slow_profile(names[i], NULL, 6000);
        json_t *const all = found(&space, 1);
        check_only(all, "idle_unknown", 60);
        CHECK_REAL(number(finding(all, "idle_unknown"), "saving_percent"), 0, 0);
        json_decref(all);
    }
}

static void test_empty(void) {
    struct xpl_buf space = mk_open();
    json_t *const all = found(&space, 1);
    CHECK_EQ(json_array_size(json_object_get(all, "findings")), 0);
    CHECK_EQ(json_integer_value(json_object_get(all, "devices")), 0);
    CHECK_EQ(json_integer_value(json_object_get(all, "wall_ps")), 0);
    json_decref(all);
}

// Steps of which each has its own name: a look at all steps for each name would take minutes.
static void test_many_series(void) {
    enum { STEPS = 200000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 30);
    struct xpl_time_breakdown b = {0};
    const struct xpl_time_breakdown_value value = {.breakdown = &b};
    const void *const products[] = {&value};
    const struct xpl_tool_host host = {.name = XPL_STR("a"), .products = products};
    const struct xpl_tool_input in = {.hosts = &host, .n_hosts = 1};
    const struct xpl_opstats stats = {0};
    const struct xpl_findings none = {0};
    struct xpl_survey s;
    struct xpl_verdict v;
    struct xpl_error err = {0};
    struct xpl_time_device *const device = xpl_vec_push(&arena, &b.devices);
    CHECK(device);
    *device = (struct xpl_time_device){.kind = XPL_DEVICE_GPU};
    for (uint32_t i = 0; i < STEPS; i++) {
        struct xpl_time_step *const step = xpl_vec_push(&arena, &b.steps);
        struct xpl_time_row *const row = xpl_vec_push(&arena, &b.rows);
        CHECK(step && row);
        *step = (struct xpl_time_step){.number = i, .begin_ps = 2 * i, .end_ps = 2 * i + 2};
        *row = (struct xpl_time_row){.step = i, .wall_ps = 2, .ps = {[XPL_TIME_COMPUTE] = 2}};
        CHECK(xpl_arena_printf(&arena, &step->name, "%s%u", i < 3 ? "train " : "train", i));
    }
    const double begin = processor_s();
    CHECK_OK(xpl_survey_make(&in, &stats, &arena, &s, &err), &err);
    xpl_verdict_make(&s, &none, &v);
    CHECK(is_within(begin, 4));
    CHECK_EQ(s.steps.n, STEPS);
    CHECK_STR(v.series, "train");
    CHECK(v.step_ps > 1.9 && v.step_ps < 2.1);
}

int main(void) {
    test_causes();
    test_evidence();
    test_layouts();
    test_healthy();
    test_advice_with_python();
    test_advice_of_copies();
    test_advice_of_queues();
    test_idle_devices();
    test_pod_of_tpus();
    test_compile_at_start();
    test_outliers();
    test_once();
    test_stragglers();
    test_late_host();
    test_late_in_turns();
    test_not_the_last();
    test_slowest_host();
    test_overlap();
    test_mostly_within();
    test_outside();
    test_verdicts();
    test_same_numbers();
    test_gpu();
    test_graph_gaps();
    test_kernels_of_collectives();
    test_occupancy();
    test_matrix_kernels();
    test_roofline();
    test_unknown_cost();
    test_peaks();
    test_irregular();
    test_irregular_and_small();
    test_impossible();
    test_missing_hlo();
    test_problems();
    test_only_compiling();
    test_unknown();
    test_empty();
    test_many_series();
    return 0;
}
