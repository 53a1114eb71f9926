// SPDX-License-Identifier: Apache-2.0
// Requests and batches of model servers of which all is known; several hosts; the encoding.
#include <math.h>
#include <string.h>
#include <time.h>

#include "analysis/inference/combine.h"
#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"
#include "tests/processor_time.h"
#include "tests/unit/inference/serving_profile.h"

#define LIMIT ((size_t)1 << 26)

static const uint64_t kMs = (uint64_t)SERVING_MS;

static xpl_status_t try_make(const struct xpl_buf *space, struct xpl_arena *arena,
                             struct xpl_inference **ret, struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_xspace *xs;
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, err), err);
    return xpl_inference_make(xs, &exec, arena, LIMIT, ret, err);
}

// Frees the profile: the value does not refer to it.
static const struct xpl_inference *made(struct xpl_buf space, struct xpl_arena *arena) {
    struct xpl_error err = {0};
    struct xpl_inference *v = NULL;
    CHECK(xpl_inference_possible((xpl_bytes_t){space.p, space.n}));
    CHECK_OK(try_make(&space, arena, &v, &err), &err);
    xpl_buf_fini(&space);
    return v;
}

// ---- one host ----

static void test_batches(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const v = made(serving_batches(3, 8, "m:1"), &arena);
    CHECK_EQ(v->requests.n, 6);
    CHECK_EQ(v->batches.n, 3);
    for (size_t i = 0; i < 6; i++) {
        // The later request of each batch is the shorter one: all end with their batch.
        const struct xpl_infer_request *const r = &v->requests.v[i];
        const bool later = i < 3;
        CHECK_EQ(r->end_ps - r->begin_ps, (later ? 27 : 32) * kMs);
        CHECK_EQ(r->delay_ps, (later ? 7 : 12) * kMs);
        CHECK_EQ(r->size, later ? 4 : 3);
        CHECK_EQ(r->model, 0);
        CHECK_EQ(r->n_batches, 1);
        CHECK_EQ(r->formation_ps, (later ? 7 : 12) * kMs);
        CHECK_EQ(r->preprocess_ps, (later ? 4 : 4) * kMs);
        CHECK_EQ(r->runtime_ps, kMs);
        CHECK_EQ(r->device_ps, 4 * kMs);
        CHECK_EQ(r->postprocess_ps, 10 * kMs);
        CHECK_EQ(r->idle_ps, kMs);
        CHECK_EQ(r->pattern, -1); // tensors belong to the batch
    }
    for (size_t i = 0; i < 3; i++) {
        const struct xpl_infer_batch *const b = &v->batches.v[i];
        CHECK_EQ(b->end_ps - b->begin_ps, 20 * kMs);
        CHECK_EQ(b->padding, 1 + (int)i);
        CHECK_EQ(b->size, 8);
        CHECK_EQ(b->delay_ps, 12 * kMs);
        CHECK_EQ(b->device_ps, 4 * kMs);
        CHECK_EQ(b->tensor_ps, (2 + i) * kMs);
        CHECK_EQ(b->n_programs, 1);
        CHECK_EQ(v->programs.v[b->first_program], 7);
    }
    CHECK_EQ(v->patterns.n, 1);
    CHECK(
        xpl_str_eq(v->patterns.v[0], XPL_STR("Delinearize [2,3] {1,0}<br>Linearize [2,3] {1,0}")));
    CHECK_EQ(v->models.n, 1);
    CHECK(xpl_str_eq(v->models.v[0].name, XPL_STR("m:1")));
    CHECK(v->models.v[0].has_params);
    CHECK_EQ(v->models.v[0].max_batch_size, 8); // of the second snapshot
    CHECK(xpl_str_eq(v->models.v[0].allowed_sizes, XPL_STR("4,8")));
}

static void test_runs(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const v = made(serving_runs(4, NULL), &arena);
    CHECK_EQ(v->requests.n, 4);
    CHECK_EQ(v->batches.n, 0);
    CHECK_EQ(v->models.n, 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(v->requests.v[i].end_ps - v->requests.v[i].begin_ps, (10 + i) * kMs);
        CHECK_EQ(v->requests.v[i].h2d_ps, (1 + i) * kMs / 8);
        CHECK_EQ(v->requests.v[i].d2h_ps, (1 + i) * kMs / 8);
        CHECK_EQ(v->requests.v[i].model, -1);
    }
}

// Whether a profile of one event, which has a text of `padding` bytes and then says that it is a
// root of that level, may be a server's.
static bool possible_with(size_t padding, int64_t level) {
    static const char text[] = "xxxxxxxxxxxxxxxx";
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "main");
    struct xpl_buf ev = mk_event(&p, "e", 1, 1);
    for (; padding >= 16; padding -= 16)
        mk_stat_str(&p, &ev, "text", text + 8);
    mk_stat_str(&p, &ev, "text", text + padding);
    mk_stat_int(&p, &ev, "_r", level);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return xpl_inference_possible((xpl_bytes_t){space.p, space.n});
}

// Nine bytes of 255 are found wherever they lie; fewer are none.
static void test_own_roots(void) {
    for (size_t padding = 0; padding < 2200; padding++) {
        CHECK(possible_with(padding, -1));
        CHECK(!possible_with(padding, INT64_MAX)); // eight
    }
}

// The names of events tell profiles without a server.
static void test_possible(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "main"), ev = serving_root(&p, "train", 1, 1, 1, 0);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    CHECK(!xpl_inference_possible((xpl_bytes_t){space.p, space.n}));
    xpl_buf_fini(&space);
    CHECK(!xpl_inference_possible((xpl_bytes_t){NULL, 0}));
    CHECK(xpl_inference_possible((xpl_bytes_t){(const uint8_t *)"\x0a\x05", 2})); // broken
    // One that declares its roots itself is a server.
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    space = mk_open();
    mk_plane_begin(&p, 1, "/host:CPU");
    line = mk_line(1, "main");
    ev = serving_root(&p, "anything", 1, 5, -1, -1);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    const struct xpl_inference *const v = made(space, &arena);
    CHECK_EQ(v->requests.n, 1);
    CHECK_EQ(v->requests.v[0].end_ps - v->requests.v[0].begin_ps, 5 * kMs);
}

// ---- hosts together ----

static struct xpl_inferences *combined(const struct xpl_inference *const *hosts, size_t n,
                                       bool exact, struct xpl_arena *arena) {
    struct xpl_inferences *all = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_inferences_combine(hosts, n, exact, arena, &all, &err), &err);
    return all;
}

// Each host numbers its models itself.
static void test_hosts(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const hosts[] = {made(serving_runs(5, "b"), &arena), NULL,
                                                 made(serving_batches(2, 8, "a"), &arena)};
    const struct xpl_inferences *const all = combined(hosts, 3, false, &arena);
    CHECK_EQ(all->models.n, 2);
    CHECK(all->has_batches);
    const struct xpl_infer_model_stats *const b = &all->models.v[0], *const a = &all->models.v[1];
    CHECK(xpl_str_eq(b->name, XPL_STR("b")));
    CHECK(xpl_str_eq(a->name, XPL_STR("a")));
    CHECK_EQ(b->requests.n, 5);
    CHECK_EQ(b->batches.n, 0);
    CHECK_EQ(a->requests.n, 4);
    CHECK_EQ(a->batches.n, 2);
    CHECK_EQ(a->times.n, 2);
    CHECK_EQ(b->all.request.end_ps, 12 * kMs);
    CHECK(fabs(b->request_throughput - 5 / 4.014) < 1e-9);
    CHECK(fabs(b->request_latency_us - 12000) < 1e-9);
    CHECK_EQ(a->sizes.n, 1);
    CHECK_EQ(a->sizes.v[0].size, 8);
    CHECK_EQ(a->sizes.v[0].sums.n_requests, 4);
    CHECK_EQ(a->sizes.v[0].sums.n_batches, 2);
    CHECK_EQ(a->sizes.v[0].sums.programs.n, 1);
    CHECK(a->sizes.v[0].sums.efficiency == 13.0 / 16);
    CHECK_EQ(a->sizes.v[0].sums.batch.padding, 1); // 3 / 2
}

// To XProf a batch of one host is that of the same id on another.
static void test_mixed_up(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const first = made(serving_batches(1, 8, "a"), &arena);
    const struct xpl_inference *const longer = made(serving_batches(1, 8, "a"), &arena);
    longer->batches.v[0].end_ps += 1;
    longer->batches.v[0].size = 16;
    const struct xpl_inference *const hosts[] = {first, longer};
    const struct xpl_inferences *const all = combined(hosts, 2, false, &arena);
    CHECK_EQ(all->models.v[0].sizes.n, 2);
    CHECK_EQ(all->models.v[0].sizes.v[0].sums.n_requests, 2);
    CHECK_EQ(all->models.v[0].sizes.v[1].sums.n_requests, 2);
    const struct xpl_inferences *const exact = combined(hosts, 2, true, &arena);
    CHECK_EQ(exact->models.v[0].sizes.v[0].sums.n_requests, 0);
    CHECK_EQ(exact->models.v[0].sizes.v[1].sums.n_requests, 4);
}

// ---- what XProf has in the order of a hash table: the least id ----

// A request that gives to two batches, of models "c" and "b", and another at the same time.
static struct xpl_buf shared_request(void) {
    static const char *const models[] = {"c", "b", "a"};
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    for (int i = 0; i < 2; i++) {
        struct xpl_buf line = mk_line(1 + i, "requests");
        struct xpl_buf run = serving_root(&p, "BatchingSessionRun", 1, 9, 1, i);
        mk_event_end(&line, &run);
        for (int k = 0; k < 2; k++) {
            struct xpl_buf give =
                serving_link(&p, "ScheduleWithoutSplit", 2 + k, 1, false, i ? 2 : k);
            mk_event_end(&line, &give);
        }
        mk_line_end(&p, &line);
    }
    for (int i = 0; i < 3; i++) {
        struct xpl_buf line = mk_line(3 + i, "batches");
        struct xpl_buf batch = serving_link(&p, "ProcessBatch", 5, 3, true, i);
        mk_stat_int(&p, &batch, "_r", 2);
        mk_event_end(&line, &batch);
        struct xpl_buf run = mk_event(&p, "SessionRun", 5 * SERVING_MS + 1, SERVING_MS / 2);
        mk_stat_str(&p, &run, "model_id", models[i]);
        mk_event_end(&line, &run);
        serving_tensor(&p, &line, i == 1 ? "Delinearize" : "Linearize", 6, 1);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    return space;
}

static void check_order(const struct xpl_infer_model_stats *m) {
    for (size_t i = 1; i < m->requests.n; i++) {
        const struct xpl_infer_request_at *const r = &m->requests.v[i];
        CHECK(r[-1].host < r->host || (r[-1].host == r->host && r[-1].r->id < r->r->id));
    }
    for (size_t i = 1; i < m->batches.n; i++) {
        const struct xpl_infer_batch_at *const b = &m->batches.v[i];
        CHECK(b[-1].host < b->host || (b[-1].host == b->host && b[-1].b->id < b->b->id));
    }
}

static void test_ties(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const v = made(shared_request(), &arena);
    CHECK(v->requests.n == 2 && v->batches.n == 3);
    CHECK(v->requests.v[0].id < v->requests.v[1].id);
    CHECK(v->batches.v[0].id < v->batches.v[1].id && v->batches.v[1].id < v->batches.v[2].id);
    const struct xpl_infer_request *const r = &v->requests.v[0];
    CHECK_EQ(r->n_batches, 2);
    CHECK(v->batch_ids.v[r->first_batch] < v->batch_ids.v[r->first_batch + 1]);
    CHECK_EQ(v->batches.v[0].id, v->batch_ids.v[r->first_batch]);
    CHECK(xpl_str_eq(v->models.v[r->model].name, XPL_STR("c"))); // that of the first batch
    CHECK_EQ(v->patterns.n, 2);                                  // in the order of the groups
    CHECK(xpl_str_eq(v->patterns.v[0], XPL_STR("Linearize [2,3] {1,0}")));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(v->batches.v[i].pattern, i == 1);
    const struct xpl_inference *const hosts[] = {made(serving_batches(2, 8, "a"), &arena),
                                                 made(serving_batches(2, 8, "a"), &arena)};
    for (size_t h = 0; h < 2; h++) {
        for (size_t i = 0; i < hosts[h]->requests.n; i++) {
            struct xpl_infer_request *const q = &hosts[h]->requests.v[i];
            q->begin_ps = 0, q->end_ps = kMs, q->id = 100 - (int64_t)i;
        }
        for (size_t i = 0; i < hosts[h]->batches.n; i++) {
            struct xpl_infer_batch *const b = &hosts[h]->batches.v[i];
            b->begin_ps = 0, b->end_ps = kMs, b->id = 100 - (int64_t)i;
        }
    }
    const struct xpl_infer_model_stats *const m = combined(hosts, 2, true, &arena)->models.v;
    CHECK(m->requests.n == 8 && m->batches.n == 4);
    check_order(m);
}

// ---- the answer ----

static void test_samples(void) {
    struct xpl_infer_sample s[XPL_INFER_SAMPLES];
    CHECK_EQ(xpl_infer_sample(0, s), 0);
    CHECK_EQ(xpl_infer_sample(4, s), 4);
    CHECK(s[3].at == 3 && s[3].percentile == 75);
    CHECK_EQ(xpl_infer_sample(60, s), 60);
    CHECK_EQ(xpl_infer_sample(70, s), 3);
    CHECK_EQ(s[0].at, 35);
    CHECK_EQ(s[1].at, 53);
    CHECK_EQ(s[2].at, 63);
    CHECK_EQ(xpl_infer_sample(1000000, s), 60);
    CHECK_EQ(s[59].at, 999909);
}

static void test_sorting(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    const struct xpl_inference *const hosts[] = {made(serving_runs(9, NULL), &arena)};
    struct xpl_infer_model_stats *const m = combined(hosts, 1, true, &arena)->models.v;
    CHECK(xpl_str_eq(m->name, XPL_STR("ALL")));
    xpl_infer_sort_requests(m, XPL_INFER_BY_D2H);
    for (size_t i = 1; i < 9; i++)
        CHECK(m->requests.v[i - 1].r->d2h_ps <= m->requests.v[i].r->d2h_ps);
    xpl_infer_sort_requests(m, XPL_INFER_BY_LATENCY);
    for (size_t i = 0; i < 9; i++)
        CHECK_EQ(m->requests.v[i].r->end_ps - m->requests.v[i].r->begin_ps, (10 + i) * kMs);
    CHECK(xpl_infer_efficiency(8, 2) == 0.75);
    CHECK(xpl_infer_efficiency(0, 2) == 0);
}

static void test_latencies(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_infer_latency rows[XPL_INFER_LATENCIES];
    bool any = true;
    CHECK_OK(xpl_infer_latencies(combined(NULL, 0, false, &arena), &arena, rows, &any, &err), &err);
    CHECK(!any);
    const struct xpl_inference *const hosts[] = {made(serving_runs(4, NULL), &arena)};
    CHECK_OK(xpl_infer_latencies(combined(hosts, 1, false, &arena), &arena, rows, &any, &err),
             &err);
    CHECK(any);
    CHECK(rows[0].total == 11500 && rows[0].device == 0 && rows[0].communication == 625);
    CHECK(rows[0].host == 11500 - 625);
    CHECK(rows[1].total == 12000 && rows[2].total == 13000 && rows[5].total == 13000);
}

// ---- bad input ----

// Groups that reach each other in a ring, times and numbers of any size: an answer.
static void test_absurd(void) {
    static const int64_t kOdd[] = {0, -1, INT64_MIN, INT64_MAX, 1};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "requests");
    for (int i = 0; i < 25; i++) {
        struct xpl_buf ev =
            mk_event(&p, i % 2 ? "ProcessBatch" : "BatchingSessionRun", kOdd[i % 5], kOdd[i / 5]);
        mk_stat_int(&p, &ev, "_r", i % 3);
        mk_stat_int(&p, &ev, "_pt", 8);
        mk_stat_int(&p, &ev, "_p", i % 4);
        if (i % 7) mk_stat_int(&p, &ev, "_ct", 8); // those without stand outside of the ring
        if (i % 7) mk_stat_int(&p, &ev, "_c", (i + 1) % 4);
        mk_stat_int(&p, &ev, "model_id", kOdd[i % 5]);
        mk_event_end(&line, &ev);
        ev = mk_event(&p, "ConcatInputTensors", kOdd[i % 5], kOdd[i / 5]);
        mk_stat_int(&p, &ev, "padding_amount", kOdd[i % 5]);
        mk_stat_int(&p, &ev, "batch_size_after_padding", kOdd[i / 5]);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    const struct xpl_inference *const hosts[] = {made(space, &arena)};
    CHECK(hosts[0]->requests.n + hosts[0]->batches.n > 0);
    struct xpl_inferences *const all = combined(hosts, 1, false, &arena);
    for (size_t i = 0; i < all->models.n; i++)
        xpl_infer_sort_batches(&all->models.v[i], XPL_INFER_BATCH_BY_EFFICIENCY);
}

// Many requests that share a batch of many programs have an end: an error.
static void test_shared(void) {
    enum { REQUESTS = 3000, PROGRAMS = 3000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_error err = {0};
    struct xpl_inference *v = NULL;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "requests"), batch = mk_line(2, "batch");
    for (int i = 0; i < REQUESTS; i++) {
        struct xpl_buf run = serving_root(&p, "BatchingSessionRun", 10 * i, 5, 1, i);
        mk_event_end(&line, &run);
        struct xpl_buf give = serving_link(&p, "ScheduleWithoutSplit", 10 * i + 1, 1, false, 1);
        mk_event_end(&line, &give);
    }
    struct xpl_buf ev = serving_link(&p, "ProcessBatch", 1, 1000, true, 1);
    mk_stat_int(&p, &ev, "_r", 2);
    mk_event_end(&batch, &ev);
    for (int i = 0; i < PROGRAMS; i++)
        mk_plain(&p, &batch, "WriteHbm", 2 * SERVING_MS + i, 1);
    mk_line_end(&p, &line);
    mk_line_end(&p, &batch);
    mk_plane_end(&p, &space);
    CHECK_EQ(try_make(&space, &arena, &v, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.msg, "share more than 8388608 spans"));
}

// ---- encoding ----

static void test_encoding(void) {
    struct xpl_arena arena, copy;
    struct xpl_error err = {0};
    struct xpl_inference *again = NULL;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf once, twice;
    xpl_arena_init(&arena, LIMIT);
    xpl_buf_init(&once, LIMIT);
    xpl_buf_init(&twice, LIMIT);
    CHECK_OK(xpl_inference_encode(made(serving_batches(3, 8, "m:1"), &arena), &once, &err), &err);
    CHECK_OK(xpl_inference_decode((xpl_bytes_t){once.p, once.n}, &arena, &again, &err), &err);
    CHECK_EQ(again->requests.n, 6);
    CHECK_EQ(again->batches.n, 3);
    CHECK_EQ(again->requests.v[0].delay_ps, 7 * kMs);
    CHECK_EQ(again->models.v[0].max_batch_size, 8);
    CHECK_OK(xpl_inference_encode(again, &twice, &err), &err);
    CHECK_BYTES(twice.p, twice.n, once.p, once.n);
    size_t good = 0;
    for (size_t n = 0; n < once.n; n++) { // a prefix is good only where a part ends
        xpl_arena_init(&copy, LIMIT);
        again = NULL;
        if (xpl_inference_decode((xpl_bytes_t){once.p, n}, &copy, &again, &err) == XPL_OK)
            good++;
        else
            CHECK(!again);
        xpl_arena_fini(&copy);
    }
    CHECK_EQ(good, 1 + 1 + 6 + 3); // of that many parts, and before the first
    xpl_arena_fini(&arena);
}

// Every request names a separate model, and a counter mentions all of them as often.
static void test_many_models(void) {
    enum { N = 20000 };
    struct mk_plane p, counters;
    struct xpl_buf space = mk_open(), line = mk_line(1, "t");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    const clock_t begin = clock();
    mk_plane_begin(&p, 1, "/host:CPU");
    for (int i = 0; i < N; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "m:%d", i);
        struct xpl_buf ev = serving_root(&p, "SessionRun", 2 * i, 1, 1, -1);
        mk_stat_str(&p, &ev, "model_id", name);
        mk_event_end(&line, &ev);
    }
    mk_close(&p.body, 3, &line);
    mk_plane_end(&p, &space);
    mk_plane_begin(&counters, 2, "/host:tfstreamz");
    line = mk_line(1, "t");
    for (int k = 0; k < 2; k++) {
        struct xpl_buf ev = mk_event(&counters, "counters", k, 0);
        for (int i = 0; i < N; i++)
            mk_stat_int(&counters, &ev, "/tensorflow/serving/batching/max_batch_size{model_name=m}",
                        i);
        mk_event_end(&line, &ev);
    }
    mk_close(&counters.body, 3, &line);
    mk_plane_end(&counters, &space);
    xpl_arena_init(&arena, LIMIT);
    const struct xpl_inference *const v = made(space, &arena);
    CHECK_EQ(v->models.n, N);
    for (size_t i = 0; i < N; i++) {
        CHECK(v->models.v[i].has_params);
        CHECK_EQ(v->models.v[i].max_batch_size, N - 1);
    }
    // Requests without batches stay so.
    struct xpl_error err = {0};
    struct xpl_inference *again = NULL;
    struct xpl_buf bytes = xpl_buf_of(LIMIT);
    CHECK_OK(xpl_inference_encode(v, &bytes, &err), &err);
    CHECK_OK(xpl_inference_decode((xpl_bytes_t){bytes.p, bytes.n}, &arena, &again, &err), &err);
    CHECK_EQ(again->requests.n, N);
    CHECK_EQ(again->requests.v[0].n_batches, 0);
    xpl_buf_fini(&bytes);
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 20);
}

// Tensors that all refer to one long text.
static void test_long_tensors(void) {
    enum { N = 64, LONG = 1 << 22 };
    static char text[LONG];
    struct mk_plane p = mk_plane(1, "/host:CPU");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open(), line = mk_line(1, "t");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_error err = {0};
    struct xpl_inference *v;
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < N; i++) {
        struct xpl_buf ev = serving_root(&p, "SessionRun", 4 * i, 3, 1, -1);
        mk_event_end(&line, &ev);
        ev = mk_event(&p, "Linearize", (4 * i + 1) * SERVING_MS, SERVING_MS);
        mk_stat_ref(&p, &ev, "shape", text);
        mk_stat_str(&p, &ev, "layout", "{}");
        mk_event_end(&line, &ev);
    }
    mk_close(&p.body, 3, &line);
    mk_plane_end(&p, &space);
    xpl_arena_init(&arena, LIMIT);
    CHECK_EQ(try_make(&space, &arena, &v, &err), XPL_RESOURCE_EXHAUSTED);
}

// Requests that all refer to one long name of a model: it is read once, and no copies are kept.
static void test_long_models(void) {
    enum { N = 20000, LONG = 1 << 21 };
    static char text[LONG];
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf space = mk_open(), line = mk_line(1, "t");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < N; i++) {
        struct xpl_buf ev = serving_root(&p, "SessionRun", 4 * i, 3, 1, -1);
        mk_stat_ref(&p, &ev, "model_id", text);
        mk_event_end(&line, &ev);
    }
    mk_close(&p.body, 3, &line);
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    const struct xpl_inference *const v = made(space, &arena);
    CHECK_EQ(v->models.n, 1);
    CHECK_EQ(v->requests.n, N);
    CHECK(is_within(begin, 2));
}

int main(void) {
    test_batches();
    test_runs();
    test_possible();
    test_own_roots();
    test_hosts();
    test_mixed_up();
    test_ties();
    test_samples();
    test_sorting();
    test_latencies();
    test_absurd();
    test_shared();
    test_encoding();
    test_many_models();
    test_long_tensors();
    test_long_models();
    return 0;
}
