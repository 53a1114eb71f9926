// SPDX-License-Identifier: Apache-2.0
// What the host is at by the names of its events, in profiles of which that is known.
#include "tests/unit/breakdown/broken_down.h"

// Names say what functions do.  An element of a dataset is input, unless the program starts work
// there: an array's element.
static void test_functions(void) {
    static const struct {
        const char *outer, *inner;
        enum xpl_time_cause cause;
    } cases[] = {
        {"$rows.py:7 __getitem__", "$time sleep", XPL_TIME_INPUT},
        {"$rows.py:7 __getitem__", "PjitFunction(dynamic_slice)", XPL_TIME_LAUNCH},
        {"$os.py:676 __getitem__", "$time sleep", XPL_TIME_HOST},
        {"$job.py:7 preprocess_batch", "$time sleep", XPL_TIME_INPUT},
        {"$job.py:7 sample_batch", "$time sleep", XPL_TIME_INPUT},
        {"$job.py:7 evaluate_batch_inputs", "$time sleep", XPL_TIME_HOST},
        {"$job.py:7 load_model_inputs", "$time sleep", XPL_TIME_INPUT},
        {"$job.py:7 build_model", "$time sleep", XPL_TIME_HOST},
        {"$module.py:9 apply", "$pjit.py:466 _trace_for_jit", XPL_TIME_LAUNCH},
        {"$_serialisation.py:9 tree_serialise_leaves", "$time sleep", XPL_TIME_CHECKPOINT},
        {"$job.py:7 load_weights", "$time sleep", XPL_TIME_CHECKPOINT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, cases[i].outer, k, 0, 5000);
            slow_host(&s, cases[i].inner, k, 0, 5000);
            slow_host(&s, "PjitFunction(step)", k, 5000, 100);
            slow_op(&s, "fusion.1", k, 5000, 5000);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(us_of(b, 0, cases[i].cause), SLOW_STEPS * 5000);
        done(&space, &arena);
    }
}

// What a loader puts on the device is a copy there, too.
static void test_copies_of_input(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int k = 0; k < SLOW_STEPS; k++) {
        slow_step(&s, k, SLOW_STEP_US);
        slow_host(&s, "$trainer.py:770 data", k, 0, 5000);
        slow_host(&s, "$api.py:2035 device_put", k, 1000, 3000);
        slow_host(&s, "$core.py:1896 typeof", k, 1000, 1000);
        slow_host(&s, "PjitFunction(step)", k, 5000, 100);
        slow_op(&s, "fusion.1", k, 5000, 5000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), SLOW_STEPS * 2000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST_COPIES), SLOW_STEPS * 3000);
    CHECK_STR(first_evidence(b, XPL_TIME_HOST_COPIES), "$api.py:2035 device_put");
    done(&space, &arena);
}

// TensorFlow builds the graph of a function anew, prepares it in the call and runs it.
static void test_retracing(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int k = 0; k < SLOW_STEPS; k++) {
        slow_step(&s, k, SLOW_STEP_US);
        slow_host(&s, "tf.function-graph_building", k, 0, 3000);
        slow_host(&s, "TFE_Py_ExecuteCancelable", k, 3000, 4500);
        slow_host(&s, "EagerLocalExecute: __inference_f_1", k, 3000, 4500);
        // The first call needs no preparation.
        slow_host(&s, "EagerKernelExecute", k, k ? 5000 : 3900, k ? 2500 : 3600);
        slow_op(&s, "fusion.1", k, 6000, 1000);
        slow_host(&s, "BlockUntilReady", k, 7500, 2500);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPILE), 3000 + 9 * 5000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 3500 + 9 * 1500);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 10 * (1000 + 2500)); // XLA waits for its ops
    CHECK_EQ(b->n_compiles, 10);
    done(&space, &arena);
}

// Of compilations the most telling events are counted.
static void test_kinds_of_compiles(void) {
    static const char *const names[] = {"tf.function-graph_building", "CpuCompiler::RunBackend",
                                        "XlaCompile", "backend_compile_and_load"};
    for (int most = 0; most < 4; most++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            for (int i = 0; i <= most && i <= k; i++) // the later in fewer steps
                slow_host(&s, names[i], k, 1000 * i, 500);
            slow_op(&s, "fusion.1", k, 8000, 1000);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(b->n_compiles, SLOW_STEPS - most);
        done(&space, &arena);
    }
}

// An op that TensorFlow starts by itself has no other event than the call that runs it.
static void test_eager(void) {
    static const struct {
        const char *name;
        uint64_t n_ops;
        enum xpl_time_cause cause;
    } cases[] = {{"EagerLocalExecute: Tanh", SLOW_STEPS + 1, XPL_TIME_COMPUTE},
                 {"EagerLocalExecute: __inference_f_1", 1, XPL_TIME_LAUNCH},
                 {"EagerLocalExecute: IteratorGetNext", 1, XPL_TIME_LAUNCH},
                 {"EagerLocalExecute: SaveV2", 1, XPL_TIME_CHECKPOINT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, cases[i].name, k, 0, 5000);
            slow_host(&s, "KernelAndDeviceFunc::Run", k, 1000, 3000);
            slow_host(&s, "PjitFunction(step)", k, 5000, 100);
        }
        slow_op(&s, "fusion.1", 9, 9000, 1000);
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(b->devices.v[0].n_ops, cases[i].n_ops);
        CHECK(us_of(b, 0, cases[i].cause) >= SLOW_STEPS * 3000);
        done(&space, &arena);
    }
}

int main(void) {
    test_functions();
    test_copies_of_input();
    test_retracing();
    test_kinds_of_compiles();
    test_eager();
    return 0;
}
