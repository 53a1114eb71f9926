// SPDX-License-Identifier: Apache-2.0
// Where the time goes, of profiles of which that is known; and its encoding.
#include <string.h>

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/convert.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"
#include "tests/data_file.h"
#include "tests/unit/breakdown/broken_down.h"
#include "tests/unit/opstats/host_profiles.h"

// Each cause takes 6 of 10 ms, by a name that frameworks or people give.
static void test_causes(void) {
    static const struct {
        const char *host, *op;
        enum xpl_time_cause cause;
    } cases[] = {
        {"load_batch", NULL, XPL_TIME_INPUT},
        {"DataLoader", NULL, XPL_TIME_INPUT},
        {"$loader.py:12 __next__", NULL, XPL_TIME_INPUT},
        {"$corpus.py:12 __next__", NULL, XPL_TIME_INPUT}, // what a loop iterates over
        {"$pool.py:873 next", NULL, XPL_TIME_INPUT},
        {"$queues.py:103 get", NULL, XPL_TIME_INPUT},
        {"$connection.py:250 recv", NULL, XPL_TIME_INPUT},
        {"$tree.py:12 next", NULL, XPL_TIME_HOST},
        {"$train.py:12 read_shard", NULL, XPL_TIME_INPUT},
        {"$train.py:12 load_images", NULL, XPL_TIME_INPUT},
        {"$train.py:12 make_images", NULL, XPL_TIME_HOST},
        {"$data.py:12 shuffle", NULL, XPL_TIME_INPUT}, // of a module of data
        {"$input_pipeline.py:12 tokenize", NULL, XPL_TIME_INPUT},
        {"$metadata.py:12 tokenize", NULL, XPL_TIME_HOST},
        {"$py_dataset_adapter.py:257 _finite_generator", NULL, XPL_TIME_INPUT},
        {"$train.py:12 batch_generator", NULL, XPL_TIME_INPUT},
        {"$train.py:12 text_generator", NULL, XPL_TIME_HOST},
        {"IteratorGetNext:IteratorGetNext", NULL, XPL_TIME_INPUT},
        {"save_checkpoint", NULL, XPL_TIME_CHECKPOINT},
        {"backend_compile_and_load", NULL, XPL_TIME_COMPILE},
        {"PjRtCpuClient::Compile", NULL, XPL_TIME_COMPILE},
        {"PjitFunction(other)", NULL, XPL_TIME_LAUNCH},
        {"$train.py:9 think", NULL, XPL_TIME_HOST},
        {"DevicePutWithSharding", NULL, XPL_TIME_HOST_COPIES},
        {"$api.py:2035 device_put", NULL, XPL_TIME_HOST_COPIES},
        {"TransferLiteralFromDevice", NULL, XPL_TIME_HOST_COPIES},
        {"CopyToHost", NULL, XPL_TIME_HOST_COPIES},
        // These wait: on a CPU a reader shares the array's memory.
        {"np.asarray(jax.Array)", NULL, XPL_TIME_UNKNOWN},
        {"$api.py:2277 device_get", NULL, XPL_TIME_UNKNOWN},
        {"$array.py:615 _value", NULL, XPL_TIME_UNKNOWN},
        {"$array.py:409 __array__", NULL, XPL_TIME_UNKNOWN},
        {"$table.py:409 __array__", NULL, XPL_TIME_HOST}, // another's
        {"Handle inputs", NULL, XPL_TIME_HOST},
        {"load_checkpoint", NULL, XPL_TIME_CHECKPOINT},
        {NULL, NULL, XPL_TIME_UNKNOWN},
        {NULL, "all-reduce.7", XPL_TIME_COLLECTIVES},
        {NULL, "ppermute.3", XPL_TIME_COLLECTIVES}, // as JAX calls a collective-permute
        {NULL, "pure_callback.1", XPL_TIME_CALLBACK},
        {NULL, "debug_print.58", XPL_TIME_CALLBACK},
        {NULL, "debug_printer.5", XPL_TIME_COMPUTE}, // a function's name
        {"$callback.py:815 _wrapped_callback", NULL, XPL_TIME_CALLBACK},
        {"$debugging.py:84 debug_callback_impl", NULL, XPL_TIME_CALLBACK},
        {"$train.py:12 on_callback", NULL, XPL_TIME_HOST},
        {NULL, "call.2", XPL_TIME_COMPUTE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = slow_profile(cases[i].host, cases[i].op, 6000);
        struct xpl_arena arena;
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(b->steps.n, SLOW_STEPS);
        CHECK_EQ(b->steps.v[3].number, 103);
        CHECK_EQ(b->devices.n, 1);
        CHECK_EQ(b->end_ps - b->begin_ps, (uint64_t)SLOW_STEPS * SLOW_STEP_US * (uint64_t)kUs);
        const uint64_t computed = us_of(b, 0, XPL_TIME_COMPUTE),
                       launched = us_of(b, 0, XPL_TIME_LAUNCH);
        CHECK_EQ(computed, cases[i].cause == XPL_TIME_COMPUTE ? 99000 : 39000);
        CHECK_EQ(launched, cases[i].cause == XPL_TIME_LAUNCH ? 61000 : 1000);
        if (cases[i].cause != XPL_TIME_COMPUTE && cases[i].cause != XPL_TIME_LAUNCH)
            CHECK_EQ(us_of(b, 0, cases[i].cause), 60000);
        CHECK_EQ(b->compile_ps, cases[i].cause == XPL_TIME_COMPILE ? 60000 * (uint64_t)kUs : 0);
        done(&space, &arena);
    }
}

static void test_evidence(void) {
    struct xpl_buf space = slow_profile("load_batch", NULL, 6000);
    struct xpl_arena arena;
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->framework, XPL_FRAMEWORK_JAX);
    CHECK_EQ(b->evidence.n, 2);
    CHECK_EQ(b->evidence.v[0].cause, XPL_TIME_INPUT);
    CHECK_STR(b->evidence.v[0].name, "load_batch");
    CHECK_EQ(b->evidence.v[0].ps, 60000 * (uint64_t)kUs);
    CHECK_EQ(b->evidence.v[0].count, 10);
    CHECK_EQ(b->devices.v[0].longest_ps[XPL_TIME_INPUT], 6000 * (uint64_t)kUs);
    CHECK_EQ(b->devices.v[0].begin_ps[XPL_TIME_INPUT], b->begin_ps);
    done(&space, &arena);
}

// Batches 4 to 14 of a model that Keras fits under its TensorBoard callback.
static void test_keras(void) {
    struct xpl_buf space = read_data_file("logdir/cpu/plugins/profile/tf_keras_tensorboard/"
                                          "vm.xplane.pb");
    struct xpl_arena arena;
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->steps.n, 11);
    for (size_t i = 0; i < b->steps.n; i++)
        CHECK_EQ(b->steps.v[i].number, 4 + (int64_t)i);
    CHECK_STR(b->steps.v[1].name, "Profiled batch 5");
    CHECK_EQ(b->steps.v[1].end_ps - b->steps.v[1].begin_ps, 4676741000);
    done(&space, &arena);
}

// A loader on a separate thread counts while the program waits for it, and not while it works.
static void test_loader_apart(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        mk_plain(&s.p, &s.other, "load_batch", slow_at(i, 0), 9000 * kUs);
        slow_host(&s, "$queue.py:154 get", i, 0, 3000);
        slow_host(&s, "$model.py:5 prepare", i, 3000, 2000);
        slow_host(&s, "PjitFunction(step)", i, 5000, 100);
        slow_op(&s, "fusion.1", i, 5000, 5000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 30000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), 20000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 50000);
    done(&space, &arena);
}

// Keras' step, a function, asks for its input on a thread of tf.data, while the program's own
// thread runs the function; the other work of those threads is ahead of the step.
static void test_keras_input(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin_with(&s, "tf_data_iterator_get_next/77");
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "TFE_Py_ExecuteCancelable", i, 0, SLOW_STEP_US);
        mk_plain(&s.p, &s.other, "IteratorGetNextOp::DoCompute", slow_at(i, 1000), 5000 * kUs);
        mk_plain(&s.p, &s.other, "Iterator::Root::Prefetch", slow_at(i, 6000), 1000 * kUs);
        slow_op(&s, "fusion.1", i, 7000, 3000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 50000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 20000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 30000);
    done(&space, &arena);
}

// An event between launches: its begin, relative to the launch's, and its inner event.
struct between {
    const char *name;
    int64_t from_us, us;
    const char *inside;
    const char *host; // the device's main wait; NULL: it waits for launches
};

// Steps of launches, `apart_us` from one to the next, each with a short op, and a longer op at the
// end. NULL: no event between them.
enum { LAUNCH_US = 40, OP_US = 10 };
static struct xpl_buf launching(int launches, int64_t apart_us, const struct between *c) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "$train.py:9 one", i, 0, 9000);
        for (int k = 0; k < launches; k++) {
            const int64_t us = k * apart_us;
            slow_host(&s, "PjitFunction(step)", i, us, LAUNCH_US);
            slow_op(&s, "fusion.1", i, us + LAUNCH_US, OP_US);
            if (c) slow_host(&s, c->name, i, us + c->from_us, c->us);
            if (c && c->inside) slow_host(&s, c->inside, i, us + c->from_us + 10, c->us - 20);
        }
        slow_op(&s, "fusion.2", i, 9000, 1000);
    }
    return slow_end(&s);
}

// What the host does between launches is part of starting work where they come one after the other:
// 20 of 40 us, 100 us apart, of which Python takes most.  After that, and where there are fewer, it
// is the host's.
static void check_dispatch(int launches, int64_t apart_us, int64_t launch_us, int64_t host_us) {
    struct xpl_arena arena;
    struct xpl_buf space = launching(launches, apart_us, NULL);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), launch_us);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), host_us);
    CHECK_STR(b->evidence.v[0].name, "PjitFunction(step)");
    done(&space, &arena);
}

static void test_dispatch(void) {
    check_dispatch(20, 100, 10 * (19 * 90 + 40), 10 * (9000 - 1940 - 10));
    check_dispatch(15, 100, 10 * 15 * 40, 10 * (9000 - 15 * 50)); // too few
    check_dispatch(7, 1100, 10 * 7 * 40, 10 * (9000 - 7 * 50));   // too far apart
}

static void check_between(const struct between *c) {
    enum { LAUNCHES = 20, APART_US = 400 };
    struct xpl_arena arena;
    struct xpl_buf space = launching(LAUNCHES, APART_US, c);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    const int64_t own = c->host ? (LAUNCHES - 1) * c->us : 0,
                  rest = 9000 - (LAUNCHES - 1) * APART_US - LAUNCH_US - OP_US,
                  all = 9000 - LAUNCHES * OP_US;
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), SLOW_STEPS * (own + rest));
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), SLOW_STEPS * (all - own - rest));
    if (c->host) CHECK_STR(first_evidence(b, XPL_TIME_HOST), c->host);
    done(&space, &arena);
}

// Of that, work that the program has named is its own: no launch waits there for another.
static void test_own_work(void) {
    static const struct between cases[] = {
        {"augment", 60, 300, NULL, "augment"},
        {"augment", 60, 300, "rotate", "rotate"},
        {"augment", 60, 300, "$job.py:7 rotate", "$job.py:7 rotate"},
        {"cuMemAlloc_v2", 60, 300, NULL, "cuMemAlloc_v2"}, // a driver's call is named like that
        {"augment", 60, 99, NULL, NULL},                   // as short as events of the runtimes
        {"augment", 390, 380, NULL, NULL},                 // holds the next launch
        {"$job.py:7 rotate", 60, 300, NULL, NULL},         // may be what the launch needs
        {"Client::Prepare", 60, 300, NULL, NULL},          // the runtime's
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_between(&cases[i]);
}

// A fetch waits for the ops first: only where it ends before the next one begins does it copy.
// A fetch that says when the device has the result waits until then.  Copies on other threads count
// while the main one waits.
static void test_copies(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "PjitFunction(step)", i, 0, 100);
        slow_host(&s, "CopyToHostAsync", i, 100, 5900); // to 6000
        slow_op(&s, "fusion.1", i, 100, 1900);          // idle: 2000 to 3000
        slow_op(&s, "fusion.2", i, 3000, 1000);         // copies: 4500 to 6000
        slow_host(&s, "CommonPjRtBuffer::Await", i, 4400, 100);
        slow_host(&s, "$array.py:300 block_until_ready", i, 6000, 3000);
        mk_plain(&s.p, &s.other, "H2D Dispatch", slow_at(i, 7000), 1000 * kUs);
        slow_op(&s, "fusion.3", i, 9000, 1000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 1000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), 0);
    CHECK_EQ(us_of(b, 0, XPL_TIME_UNKNOWN), 10 * (1500 + 2000)); // the host waits for the device
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST_COPIES), 10 * (1500 + 1000));
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 39000);
    done(&space, &arena);
}

// What the program gives to a library's module of input is named, not the module.
static void test_input_adapter(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "$py_dataset_adapter.py:257 _finite_generator", i, 0, 6000);
        slow_host(&s, "$train.py:21 __getitem__", i, 1000, 4000);
        slow_host(&s, "$rows.py:3 parse", i, 1000, 3000);
        slow_host(&s, "PjitFunction(step)", i, 6000, 100);
        slow_op(&s, "fusion.1", i, 6000, 4000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 60000);
    CHECK_STR(b->evidence.v[0].name, "$train.py:21 __getitem__");
    done(&space, &arena);
}

// A thread that waits for the device has started its work: a loader that runs at the same time is
// early, and delays nothing.
static void test_early_loader(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        mk_plain(&s.p, &s.other, "load_batch", slow_at(i, 0), SLOW_STEP_US * kUs);
        slow_host(&s, "PjitFunction(step)", i, 0, 100);
        slow_host(&s, "$array.py:300 block_until_ready", i, 100, 8900);
        slow_op(&s, "fusion.1", i, 100, 1900);
        slow_op(&s, "fusion.2", i, 4000, 5000);
        slow_host(&s, "$queue.py:154 get", i, 9000, 1000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_UNKNOWN), 20000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 10000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 69000);
    done(&space, &arena);
}

// XLA waits on one of its threads for ops that it gave to a pool, which does not record all of
// them: the CPU is not idle then, whatever the program's own thread prepares meanwhile, unless a
// callback runs.
static void test_unrecorded_ops(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "PjitFunction(step)", i, 0, 1000);
        slow_op(&s, "ynn_fusion.1", i, 1000, 1000);
        mk_plain(&s.p, &s.pool, "ThunkExecutor::Execute (wait for completion)", slow_at(i, 2000),
                 6000 * kUs);
        slow_host(&s, "load_batch", i, 3000, 1000);
        mk_plain(&s.p, &s.other, "python_cpu_callback", slow_at(i, 5000), 2000 * kUs);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 10000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 50000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_CALLBACK), 20000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 0);
    CHECK_EQ(us_of(b, 0, XPL_TIME_UNKNOWN), 20000);
    done(&space, &arena);
}

// tf.data makes input on many threads, and its ops are not a device's: the step's wait for the
// iterator counts, 600 of 900 ns.
static void test_tf_data(void) {
    struct xpl_buf space = mk_input_profile(SLOW_STEPS);
    struct xpl_arena arena;
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->steps.n, SLOW_STEPS);
    for (size_t i = 0; i < SLOW_STEPS; i++) {
        const struct xpl_time_row *const r = &b->rows.v[i];
        // The next step begins after 1,000 ns, and the last one ends with its annotation.
        CHECK_EQ(r->wall_ps, (i + 1 < SLOW_STEPS ? 1000 : 900) * 1000);
        // The model's MatMul begins 100 ns before the iterator has ended, and does not hide that.
        CHECK_EQ(r->ps[XPL_TIME_INPUT], 600 * 1000);
        CHECK_EQ(r->ps[XPL_TIME_COMPUTE], (140 + 10) * 1000);
    }
    done(&space, &arena);
}

// Compilations count where they begin, once for each function.
static void test_compiles(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "PjitFunction(step)", i, 0, 8000);
        slow_host(&s, "lower_sharding_computation", i, 0, 1000);
        slow_host(&s, "backend_compile_and_load", i, 1000, 6000);
        mk_plain(&s.p, &s.other, "PjRtCpuClient::Compile", slow_at(i, 1500), 5000 * kUs);
        slow_op(&s, "fusion.1", i, 8000, 2000);
    }
    slow_host(&s, "backend_compile_and_load", SLOW_STEPS + 1, 0, 2000); // after the last step
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPILE), 70000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 10000);
    CHECK_EQ(b->n_compiles, 10);
    CHECK_EQ(b->all_compiles, 11);
    CHECK_EQ(b->compile_ps, 72000 * (uint64_t)kUs);
    CHECK_EQ(b->steps.v[4].n_compiles, 1);
    CHECK_STR(b->evidence.v[0].name, "PjitFunction(step)");
    done(&space, &arena);
}

// A step includes the time until the next one begins.
static void test_between_steps(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, 8000);
        slow_host(&s, "PjitFunction(step)", i, 0, 100);
        slow_op(&s, "fusion.1", i, 0, 8000);
        if (i + 1 < SLOW_STEPS) slow_host(&s, "next_batch", i, 8000, 2000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    for (size_t i = 0; i + 1 < SLOW_STEPS; i++) {
        CHECK_EQ(b->rows.v[i].step, i);
        CHECK_EQ(b->rows.v[i].ps[XPL_TIME_INPUT], 2000 * (uint64_t)kUs);
        CHECK_EQ(b->rows.v[i].wall_ps, 10000 * (uint64_t)kUs);
    }
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 18000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 80000);
    done(&space, &arena);
}

// A GPU: gaps before work that was launched too late, and before work that was there already.
static void test_gpu(void) {
    struct slow_gpu s;
    struct xpl_arena arena;
    slow_gpu_begin(&s);
    slow_kernel(&s, &s.compute, "gemm", 0, 10, 90);    // 10..100
    slow_kernel(&s, &s.compute, "gemm", 20, 130, 70);  // queued: 100..130; ..200
    slow_kernel(&s, &s.compute, "gemm", 250, 260, 40); // late: 200..250, launch 250..260; ..300
    slow_kernel(&s, &s.comm, "ncclAllReduce", 30, 280,
                70);                                    // overlapped: 280..300, exposed: 300..350
    slow_kernel(&s, &s.comm, "MemcpyH2D", 40, 350, 50); // 350..400
    slow_kernel(&s, &s.comm, "MemcpyD2D", 41, 400, 20); // 400..420
    mk_plain(&s.host, &s.python, "next_batch", 205 * kUs, 40 * kUs);
    struct xpl_buf space = slow_gpu_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    static const uint64_t expected[XPL_TIME_CAUSES] = {
        [XPL_TIME_COMPUTE] = 90 + 70 + 20,
        [XPL_TIME_OVERLAPPED] = 20,
        [XPL_TIME_COLLECTIVES] = 50,
        [XPL_TIME_HOST_COPIES] = 50,
        [XPL_TIME_DEVICE_COPIES] = 20,
        [XPL_TIME_INPUT] = 40,
        [XPL_TIME_LAUNCH] = 10,
        [XPL_TIME_QUEUED] = 30,
        [XPL_TIME_UNKNOWN] = 10,
    };
    CHECK_EQ(b->devices.n, 1);
    CHECK_EQ(b->devices.v[0].n_ops, 6);
    CHECK_STR(b->devices.v[0].name, "/device:GPU:0");
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
        CHECK_EQ(us_of(b, 0, (enum xpl_time_cause)c), expected[c]);
    done(&space, &arena);
}

// A TPU: loops around ops, collectives on the line of asynchronous ones, infeed.
static void test_tpu(void) {
    struct xpl_arena arena;
    struct mk_plane p;
    struct xpl_buf space = mk_open();
    mk_plane_begin(&p, 2, "/device:TPU:0");
    struct xpl_buf ops = mk_line(3, "XLA Ops"), async = mk_line(4, "Async XLA Ops"),
                   modules = mk_line(2, "XLA Modules");
    mk_plain(&p, &modules, "jit_f(1)", 0, 200 * kUs);
    mk_plain(&p, &ops, "%while.1 = (s32[]) while(s32[] %x)", 0, 100 * kUs);
    mk_plain(&p, &ops, "%fusion.2 = f32[8] fusion(f32[8] %x)", 10 * kUs, 50 * kUs);
    mk_plain(&p, &ops, "%all-reduce.1 = f32[8] all-reduce(f32[8] %x)", 60 * kUs, 30 * kUs);
    mk_plain(&p, &ops, "%infeed.1 = (f32[8]) infeed(token[] %t)", 100 * kUs, 20 * kUs);
    mk_plain(&p, &ops, "%copy-done.1 = f32[8]{0:S(5)} copy-done((f32[8]) %x)", 120 * kUs, 5 * kUs);
    mk_plain(&p, &ops, "%copy-done.2 = f32[8]{0} copy-done((f32[8]) %x)", 125 * kUs, 5 * kUs);
    mk_plain(&p, &async, "%all-gather-start.1 = f32[8] all-gather-start(f32[2] %x)", 20 * kUs,
             10 * kUs);
    mk_plain(&p, &async, "%copy-start.1 = f32[8] copy-start(f32[8] %x)", 0, 130 * kUs);
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    mk_line_end(&p, &async);
    mk_plane_end(&p, &space);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->devices.n, 1);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), 40 + 10 + 10);
    CHECK_EQ(us_of(b, 0, XPL_TIME_OVERLAPPED), 10);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COLLECTIVES), 30);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 20);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST_COPIES), 5);
    CHECK_EQ(us_of(b, 0, XPL_TIME_DEVICE_COPIES), 5);
    done(&space, &arena);
}

static void test_memory(void) {
    struct xpl_arena arena;
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(&s.p, "MemoryAllocation", slow_at(0, i), 0);
        mk_stat_str(&s.p, &ev, "allocator_name", i == 2 ? "other" : "GPU_0_bfc");
        mk_stat_int(&s.p, &ev, "peak_bytes_in_use", 900 + 50 * i);
        mk_stat_int(&s.p, &ev, "bytes_allocated", 900 + 10 * i);
        mk_stat_int(&s.p, &ev, "bytes_available", 100 - 10 * i);
        mk_event_end(&s.python, &ev);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->memory.n, 2);
    CHECK_STR(b->memory.v[0].name, "GPU_0_bfc");
    CHECK_EQ(b->memory.v[0].peak_bytes, 950);
    CHECK_EQ(b->memory.v[0].capacity_bytes, 1000);
    done(&space, &arena);
}

// ---- hostile input ----

// Times that are negative, very long, far away, out of order, or overlap in odd ways.
static void test_hostile(void) {
    struct xpl_arena arena;
    struct slow_cpu s;
    uint64_t random = 7;
    slow_begin(&s);
    static const int64_t odd[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1000000007, -5000};
    static const char *const names[] = {"load_batch",      "PjitFunction(f)", "",
                                        "IteratorGetNext", "$queue.py:1 get", "XlaCompile"};
    for (int i = 0; i < 4000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const unsigned r = (unsigned)(random >> 33);
        const int64_t at = r % 3 ? (int64_t)(r % 100000) * kUs : odd[r / 8 % 8],
                      n = r % 5 ? (int64_t)(r / 64 % 1000) * kUs : odd[r / 16 % 8];
        struct xpl_buf ev = mk_event(&s.p, names[r % 6], at, n);
        if (r % 7 == 0) mk_stat_int(&s.p, &ev, "step_num", odd[r / 32 % 8]);
        if (r % 7 == 0) mk_stat_int(&s.p, &ev, "_r", 1);
        if (r % 4 == 0) mk_stat_str(&s.p, &ev, "hlo_op", r % 8 ? "fusion" : "all-reduce");
        mk_event_end(r % 2 ? &s.python : r % 11 ? &s.pool : &s.other, &ev);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK(b->rows.n > 0);
    uint64_t wall = 0;
    for (size_t i = 0; i < b->rows.n; i++)
        wall += b->rows.v[i].wall_ps;
    CHECK_EQ(wall, b->end_ps - b->begin_ps);
    done(&space, &arena);
}

// An irrelevant plane, whose times begin elsewhere, comes first.
static void test_other_clock(void) {
    struct xpl_buf space = mk_open(), slow = slow_profile("load_batch", NULL, 6000);
    struct xpl_buf line = mk_line(1, "w");
    struct xpl_arena arena;
    struct mk_plane p;
    mk_int(&line, 3, INT64_C(1700000000000000));
    mk_plane_begin(&p, 7, "/device:CUSTOM:power");
    mk_plain(&p, &line, "watt", 0, 5);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    xpl_buf_put(&space, slow.p, slow.n);
    xpl_buf_fini(&slow);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->devices.n, 1);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), SLOW_STEPS * 6000);
    done(&space, &arena);
}

static void test_many_devices(void) {
    struct xpl_arena arena;
    struct xpl_buf space = mk_open();
    enum { N = XPL_TIME_MAX_DEVICES + 5 };
    for (int i = 0; i < N; i++) {
        struct mk_plane p;
        char name[32];
        (void)snprintf(name, sizeof name, "/device:GPU:%d", i);
        mk_plane_begin(&p, i, name);
        struct xpl_buf line = mk_line(1, "Stream #1");
        mk_plain(&p, &line, "gemm", i * kUs, kUs);
        mk_line_end(&p, &line);
        mk_plane_end(&p, &space);
    }
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->devices.n, XPL_TIME_MAX_DEVICES);
    CHECK_EQ(b->devices_left_out, 5);
    CHECK_EQ(us_of(b, 9, XPL_TIME_COMPUTE), 1);
    CHECK_EQ(us_of(b, 9, XPL_TIME_UNKNOWN), XPL_TIME_MAX_DEVICES - 1);
    done(&space, &arena);
}

static void test_empty(void) {
    struct xpl_arena arena;
    struct xpl_buf space = mk_open();
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->devices.n + b->rows.n + b->steps.n + b->evidence.n, 0);
    CHECK_EQ(b->begin_ps, b->end_ps);
    CHECK_EQ(b->base_ps + b->begin_ps, 0);
    done(&space, &arena);
}

// ---- the encoding ----

// Names of programs tell the framework where no event does.
static void test_framework_of_programs(void) {
    static const struct {
        const char *program, *event;
        enum xpl_framework framework;
    } cases[] = {
        {"jit_step(4)", NULL, XPL_FRAMEWORK_JAX},
        {"pjit_step(4)", NULL, XPL_FRAMEWORK_JAX},
        {"pmap_step(4)", NULL, XPL_FRAMEWORK_JAX},
        {"SyncTensorsGraph.9(4)", NULL, XPL_FRAMEWORK_PYTORCH_XLA},
        {"jitter(4)", NULL, XPL_FRAMEWORK_UNKNOWN},
        {"a_inference_f_33(4)", NULL, XPL_FRAMEWORK_UNKNOWN},
        {"jit_step(4)", "EagerExecute: f", XPL_FRAMEWORK_TENSORFLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf space = mk_open();
        struct mk_plane programs, host;
        mk_plane_begin(&programs, 1, "/host:metadata");
        (void)mk_name(programs.events, &programs.n_events, cases[i].program);
        mk_plane_end(&programs, &space);
        mk_plane_begin(&host, 2, "/host:CPU");
        if (cases[i].event) (void)mk_name(host.events, &host.n_events, cases[i].event);
        mk_plane_end(&host, &space);
        struct xpl_arena arena;
        CHECK_EQ(broken_down(&space, &arena)->framework, cases[i].framework);
        done(&space, &arena);
    }
}

static void test_codec(void) {
    struct xpl_buf space = slow_profile("load_batch", "all-reduce.1", 3000);
    struct xpl_arena arena, other;
    struct xpl_error err = {0};
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    struct xpl_time_breakdown *copy = NULL;
    struct xpl_buf once = encoded(b);
    xpl_arena_init(&other, LIMIT);
    CHECK_OK(xpl_time_breakdown_decode((xpl_bytes_t){once.p, once.n}, &other, &copy, &err), &err);
    struct xpl_buf twice = encoded(copy);
    CHECK_BYTES(twice.p, twice.n, once.p, once.n);
    CHECK_EQ(copy->rows.v[5].wall_ps, b->rows.v[5].wall_ps);
    CHECK_STR(copy->steps.v[9].name, "train 109");
    // Cut, or with a byte turned, it is refused, or a value that can be encoded.
    for (size_t i = 0; i < 2 * once.n; i++) {
        struct xpl_time_breakdown *got = NULL;
        const bool cut = i < once.n;
        xpl_arena_fini(&other);
        xpl_arena_init(&other, LIMIT);
        if (!cut) once.p[i - once.n] ^= 0x41;
        const xpl_status_t st =
            xpl_time_breakdown_decode((xpl_bytes_t){once.p, cut ? i : once.n}, &other, &got, &err);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        CHECK_EQ(st == XPL_OK, got != NULL);
        if (got) {
            struct xpl_buf again = encoded(got);
            xpl_buf_fini(&again);
        }
        if (!cut) once.p[i - once.n] ^= 0x41;
    }
    xpl_buf_fini(&twice);
    xpl_buf_fini(&once);
    xpl_arena_fini(&other);
    done(&space, &arena);
}

static void render(const struct xpl_time_breakdown *b, const char *view, struct xpl_buf *out) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("time_breakdown"));
    const struct xpl_time_breakdown_value value = {.breakdown =
                                                       (struct xpl_time_breakdown *)(uintptr_t)b};
    const void *const products[] = {&value};
    const struct xpl_tool_host host = {.name = XPL_STR("h"), .products = products};
    const struct xpl_option option = {XPL_STR("view"), xpl_str_from(view)};
    struct xpl_arena arena;
    struct xpl_error err = {0};
    void *options;
    xpl_arena_init(&arena, LIMIT);
    CHECK_OK(xpl_tool_options_parse(tool, &option, 1, true, &arena, &options, &err), &err);
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .options = options, .limit = LIMIT};
    xpl_buf_init(out, LIMIT);
    CHECK_OK(tool->render(&in, out, &err), &err);
    xpl_buf_putc(out, '\0');
    xpl_arena_fini(&arena);
}

// The short view of the tool has the devices' sums, and the steps once, as columns.
static void test_views(void) {
    struct xpl_buf space = slow_profile("load_batch", NULL, 6000), full, steps;
    struct xpl_arena arena;
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    render(b, "full", &full);
    render(b, "steps", &steps);
    CHECK(strstr((const char *)full.p, "\"steps\":[{\"step\":100,\"name\":\""));
    CHECK(!strstr((const char *)full.p, "\"wall_ps\":["));
    CHECK(strstr((const char *)steps.p, "\"steps\":{\"step\":[100,101,102,103,104,105,106,107,108,"
                                        "109],\"name\":[\""));
    CHECK(strstr((const char *)steps.p, "\"wall_ps\":[10000000000,10000000000,"));
    CHECK(strstr((const char *)steps.p, "\"input_ps\":60000000000"));
    CHECK(strstr((const char *)steps.p, ",\"input_ps\":[6000000000,6000000000,"));
    CHECK(!strstr((const char *)steps.p, "\"host_copies_ps\":["));
    xpl_buf_fini(&full);
    xpl_buf_fini(&steps);
    done(&space, &arena);
}

// Another thread puts into the queue from which the main line takes; without one the reason of the
// wait is unknown.
static void test_queue(void) {
    for (int fed = 0; fed < 2; fed++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            slow_host(&s, "$queue.py:154 get", i, 0, 6000);
            slow_host(&s, "$threading.py:295 wait", i, 100, 5800);
            slow_host(&s, "PjitFunction(step)", i, 6000, 100);
            slow_op(&s, "fusion.1", i, 6000, 4000);
            mk_plain(&s.p, &s.other, "$threading.py:971 run", slow_at(i, 0), 9000 * kUs);
            mk_plain(&s.p, &s.other, "$job.py:4 build_part", slow_at(i, 0), 8000 * kUs);
            if (fed) mk_plain(&s.p, &s.other, "$queue.py:122 put", slow_at(i, 8100), 100 * kUs);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), fed ? 60000 : 0);
        CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), fed ? 0 : 60000);
        CHECK_EQ(b->queue_ps, fed ? 60000 * kUs : 0);
        if (fed) CHECK_STR(first_evidence(b, XPL_TIME_INPUT), "$job.py:4 build_part");
        done(&space, &arena);
    }
}

// So does one whose loop began before the profile, which has no function of the program then.
static void test_queue_of_running_thread(void) {
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int i = 0; i < SLOW_STEPS; i++) {
            slow_step(&s, i, SLOW_STEP_US);
            slow_host(&s, "$queue.py:154 get", i, 0, 6000);
            slow_host(&s, "PjitFunction(step)", i, 6000, 100);
            slow_op(&s, "fusion.1", i, 6000, 4000);
            if (sleeps) mk_plain(&s.p, &s.other, "$time sleep", slow_at(i, 0), 5900 * kUs);
            mk_plain(&s.p, &s.other, "$queue.py:122 put", slow_at(i, 5900), 3000 * kUs);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), 60000);
        CHECK_STR(first_evidence(b, XPL_TIME_INPUT), sleeps ? "$time sleep" : "$queue.py:122 put");
        done(&space, &arena);
    }
}

// What a module that writes checkpoints calls is part of that, whatever it is called.
static void test_checkpoint_modules(void) {
    static const struct {
        const char *outer;
        enum xpl_time_cause cause;
    } cases[] = {
        {"$checkpoint_manager.py:1334 save", XPL_TIME_CHECKPOINT},
        {"$checkpointer.py:221 save", XPL_TIME_CHECKPOINT},
        {"$base_pytree_checkpoint_handler.py:601 async_save", XPL_TIME_CHECKPOINT},
        {"$orbax_layer.py:1 sync", XPL_TIME_CHECKPOINT},
        {"$saving_lib.py:75 write", XPL_TIME_CHECKPOINT},
        {"$train.py:9 save_params", XPL_TIME_CHECKPOINT},
        {"$train.py:9 save_picture", XPL_TIME_INPUT},
        {"$train_checkpoint_demo.py:1 main", XPL_TIME_INPUT},
        {"$train.py:1 main", XPL_TIME_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, cases[i].outer, k, 0, 6000);
            slow_host(&s, "$array.py:116 data", k, 0, 5999);
            slow_host(&s, "PjitFunction(step)", k, 6000, 100);
            slow_op(&s, "fusion.1", k, 6000, 4000);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK(us_of(b, 0, cases[i].cause) >= 59990);
        done(&space, &arena);
    }
}

// A call that compiles traces first, which is compiling; then it launches.
static void test_tracing(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        slow_host(&s, "PjitFunction(step)", i, 0, 6000);
        slow_host(&s, "$train.py:3 loss", i, 500, 1500);
        slow_host(&s, "PjitFunction(inner)", i, 600, 100);
        slow_host(&s, "backend_compile_and_load", i, 2000, 3000);
        slow_op(&s, "fusion.1", i, 6000, 2000);
        slow_host(&s, "PjitFunction(other)", i, 8000, 1000);
        slow_op(&s, "fusion.1", i, 9000, 1000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPILE), 50000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), 20000);
    CHECK_STR(first_evidence(b, XPL_TIME_COMPILE), "PjitFunction(step)");
    done(&space, &arena);
}

// What waits, and what the interpreter does, is named by the program's function that calls it.
static void test_witness(void) {
    static const struct {
        const char *outer, *inner, *name;
    } cases[] = {
        {"$train.py:9 finish", "$threading.py:1087 join", "$train.py:9 finish"},
        {"$train.py:9 finish", "$time sleep", "$train.py:9 finish"},
        {"$train.py:9 finish", "$<unknown> poll", "$train.py:9 finish"},
        {"$train.py:9 finish", "$metrics.py:2 write", "$metrics.py:2 write"},
        {"evaluate", "$time sleep", "evaluate"},
        {NULL, "$threading.py:1087 join", "$threading.py:1087 join"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            if (cases[i].outer) slow_host(&s, cases[i].outer, k, 0, 6000);
            slow_host(&s, cases[i].inner, k, 10, 5980);
            slow_host(&s, "PjitFunction(step)", k, 6000, 100);
            slow_op(&s, "fusion.1", k, 6000, 4000);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK(us_of(b, 0, XPL_TIME_HOST) >= 59000);
        CHECK_STR(first_evidence(b, XPL_TIME_HOST), cases[i].name);
        done(&space, &arena);
    }
}

// The method of an array that waits for the device is no function of Python: of it the profile has
// two short events of the runtime.
static void test_await(void) {
    static const struct {
        const char *between;
        uint64_t unknown_us, host_us;
    } cases[] = {{NULL, 3980, 2020}, {"$metrics.py:2 write", 0, 6000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_cpu s;
        struct xpl_arena arena;
        slow_begin(&s);
        for (int k = 0; k < SLOW_STEPS; k++) {
            slow_step(&s, k, SLOW_STEP_US);
            slow_host(&s, "$train.py:9 main", k, 0, SLOW_STEP_US);
            slow_host(&s, "PjitFunction(step)", k, 0, 10);
            slow_op(&s, "fusion.1", k, 0, 4000);
            slow_host(&s, "CommonPjRtBuffer::Await", k, 10, 10);
            if (cases[i].between) slow_host(&s, cases[i].between, k, 100, 100);
            slow_host(&s, "CommonPjRtBuffer::Await", k, 7980, 10);
        }
        struct xpl_buf space = slow_end(&s);
        const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
        CHECK_EQ(us_of(b, 0, XPL_TIME_UNKNOWN), SLOW_STEPS * cases[i].unknown_us);
        CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), SLOW_STEPS * cases[i].host_us);
        done(&space, &arena);
    }
}

// A program may be one module with a loader's name: what starts work is no input.
static void test_modules(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int k = 0; k < SLOW_STEPS; k++) {
        slow_step(&s, k, SLOW_STEP_US);
        slow_host(&s, "$my_loader.py:40 main", k, 0, SLOW_STEP_US);
        slow_host(&s, "$my_loader.py:9 shuffle", k, 0, 3000);
        slow_host(&s, "PjitFunction(step)", k, 3000, 1000);
        slow_op(&s, "fusion.1", k, 4000, 5000);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_INPUT), SLOW_STEPS * 3000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_LAUNCH), SLOW_STEPS * 1000);
    CHECK_EQ(us_of(b, 0, XPL_TIME_HOST), SLOW_STEPS * 1000);
    done(&space, &arena);
}

// A cause that ops of the device and idle time have is seen where most of it is.
static void test_window(void) {
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    for (int k = 0; k < SLOW_STEPS; k++) {
        slow_step(&s, k, SLOW_STEP_US);
        if (k == 0) slow_host(&s, "TransferToDevice", k, 0, 5000);
        slow_host(&s, "PjitFunction(step)", k, 5000, 100);
        slow_op(&s, "outfeed.1", k, 5100, 3000 + 10 * k);
        slow_op(&s, "fusion.1", k, 8200, 1800);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = broken_down(&space, &arena);
    CHECK_EQ(b->devices.v[0].longest_ps[XPL_TIME_HOST_COPIES], (uint64_t)(3090 * kUs));
    CHECK_EQ(b->devices.v[0].begin_ps[XPL_TIME_HOST_COPIES] - b->begin_ps,
             (uint64_t)slow_at(9, 5100));
    done(&space, &arena);
}

int main(void) {
    test_causes();
    test_evidence();
    test_keras();
    test_loader_apart();
    test_keras_input();
    test_dispatch();
    test_own_work();
    test_copies();
    test_input_adapter();
    test_queue();
    test_queue_of_running_thread();
    test_tracing();
    test_witness();
    test_await();
    test_window();
    test_modules();
    test_checkpoint_modules();
    test_early_loader();
    test_unrecorded_ops();
    test_tf_data();
    test_compiles();
    test_between_steps();
    test_gpu();
    test_tpu();
    test_memory();
    test_hostile();
    test_other_clock();
    test_many_devices();
    test_empty();
    test_framework_of_programs();
    test_codec();
    test_views();
    return 0;
}
