// SPDX-License-Identifier: Apache-2.0
// Profiles of a model server, with the expected values of each request and batch.
#ifndef XPL_TESTS_UNIT_INFERENCE_SERVING_PROFILE_H_
#define XPL_TESTS_UNIT_INFERENCE_SERVING_PROFILE_H_

#include "tests/xspace_maker.h"

#define SERVING_MS INT64_C(1000000000)

static inline struct xpl_buf serving_root(struct mk_plane *p, const char *name, int64_t ms,
                                          int64_t length, int64_t level, int64_t step) {
    struct xpl_buf ev = mk_event(p, name, ms * SERVING_MS, length * SERVING_MS);
    mk_stat_int(p, &ev, "_r", level);
    if (step >= 0) mk_stat_int(p, &ev, "step_num", step);
    return ev;
}

// An event that hands something to a batch, or takes it.
static inline struct xpl_buf serving_link(struct mk_plane *p, const char *name, int64_t ms,
                                          int64_t length, bool takes, int64_t context) {
    struct xpl_buf ev = mk_event(p, name, ms * SERVING_MS, length * SERVING_MS);
    mk_stat_int(p, &ev, takes ? "_ct" : "_pt", 8);
    mk_stat_int(p, &ev, takes ? "_c" : "_p", context);
    return ev;
}

static inline void serving_tensor(struct mk_plane *p, struct xpl_buf *line, const char *name,
                                  int64_t ms, int64_t length) {
    struct xpl_buf ev = mk_event(p, name, ms * SERVING_MS, length * SERVING_MS);
    mk_stat_str(p, &ev, "shape", "[2,3]");
    mk_stat_str(p, &ev, "layout", "{1,0}");
    mk_event_end(line, &ev);
}

static inline void serving_launch(struct mk_plane *p, struct xpl_buf *line, int64_t ms,
                                  int64_t run) {
    struct xpl_buf ev = mk_event(p, "DoEnqueueProgram", ms * SERVING_MS, SERVING_MS / 4);
    mk_stat_int(p, &ev, "run_id", run);
    mk_stat_int(p, &ev, "queue_id", 0);
    mk_stat_int(p, &ev, "device_ordinal", 0);
    mk_event_end(line, &ev);
}

static inline void serving_module(struct mk_plane *p, struct xpl_buf *line, const char *name,
                                  int64_t ms, int64_t length, int64_t run) {
    struct xpl_buf ev = mk_event(p, name, ms * SERVING_MS, length * SERVING_MS);
    mk_stat_int(p, &ev, "run_id", run);
    mk_stat_int(p, &ev, "queue_id", 0);
    mk_event_end(line, &ev);
}

// What the server says of its batches, of which the second time counts.
static inline void serving_counters(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(9, "/host:tfstreamz");
    struct xpl_buf line = mk_line(1, "");
    for (int i = 0; i < 2; i++) {
        struct xpl_buf ev = mk_event(&p, "counters", i, 0);
        mk_stat_int(&p, &ev, "/tensorflow/serving/batching/max_batch_size{model_name=m}", 8 * i);
        mk_stat_str(&p, &ev,
                    "/tensorflow/serving/batching/allowed_batch_sizes{op_name=x, model_name=m}",
                    "4,8");
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

// `n` batches of `size` of two requests each, 50 ms apart; request k of batch i begins at 50 i + 5
// k + 1 ms and has the size 3 + k, and its batch runs from 50 i + 13 ms on for 20 ms.  There a
// program is run for 4 ms, after 1 ms of runtime, and 1 + i rows are padding.
static inline struct xpl_buf serving_batches(int n, int size, const char *model) {
    struct xpl_buf space = mk_open();
    struct mk_plane p, d;
    mk_plane_begin(&p, 1, "/host:CPU");
    mk_plane_begin(&d, 2, "/device:TPU:0");
    struct xpl_buf requests = mk_line(1, "requests"), batches = mk_line(2, "batches"),
                   modules = mk_line(1, "XLA Modules");
    for (int i = 0; i < n; i++) {
        const int64_t t = 50 * i + 1;
        for (int k = 0; k < 2; k++) {
            struct xpl_buf run = serving_root(&p, "BatchingSessionRun", t + 5 * k, 4, 1, 2 * i + k);
            mk_event_end(&requests, &run);
            struct xpl_buf give =
                serving_link(&p, "ScheduleWithoutSplit", t + 5 * k + 1, 1, false, i);
            mk_stat_int(&p, &give, "batching_input_task_size", 3 + k);
            mk_event_end(&requests, &give);
        }
        struct xpl_buf batch = serving_link(&p, "ProcessBatch", t + 12, 20, true, i);
        mk_stat_int(&p, &batch, "_r", 2);
        mk_event_end(&batches, &batch);
        struct xpl_buf concat =
            mk_event(&p, "ConcatInputTensors", (t + 13) * SERVING_MS, SERVING_MS);
        mk_stat_int(&p, &concat, "padding_amount", 1 + i);
        mk_stat_int(&p, &concat, "batch_size_after_padding", size);
        mk_event_end(&batches, &concat);
        struct xpl_buf run = mk_event(&p, "SessionRun", (t + 15) * SERVING_MS, 16 * SERVING_MS);
        if (model) mk_stat_str(&p, &run, "model_id", model);
        mk_event_end(&batches, &run);
        mk_plain(&p, &batches, "tpu::System::Execute", (t + 16) * SERVING_MS, SERVING_MS / 2);
        serving_launch(&p, &batches, t + 17, i);
        serving_module(&d, &modules, "jit_f(7)", t + 18, 4, i);
        serving_tensor(&p, &batches, "Linearize", t + 23, 1);
        serving_tensor(&p, &batches, "Delinearize", t + 25, 1 + i);
    }
    mk_line_end(&p, &requests);
    mk_line_end(&p, &batches);
    mk_line_end(&d, &modules);
    mk_plane_end(&p, &space);
    mk_plane_end(&d, &space);
    serving_counters(&space);
    return space;
}

// `n` requests without batches, 1000 ms apart; request i lasts 10 + i ms, and `model` or no model
// runs them.  Each reads for 1 + i % 7 ms from the device and writes for 1 + i % 5 ms.
static inline struct xpl_buf serving_runs(int n, const char *model) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "requests");
    for (int i = 0; i < n; i++) {
        const int64_t t = 1000 * i + 1;
        struct xpl_buf run = serving_root(&p, "SessionRun", t, 10 + i, 1, i);
        if (model) mk_stat_str(&p, &run, "model_id", model);
        mk_event_end(&line, &run);
        mk_plain(&p, &line, "WriteHbm", t * SERVING_MS, (1 + i % 5) * SERVING_MS / 8);
        mk_plain(&p, &line, "ReadHbm", (t + 5) * SERVING_MS, (1 + i % 7) * SERVING_MS / 8);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

#endif
