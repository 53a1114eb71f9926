// SPDX-License-Identifier: Apache-2.0
// Words in the arguments of events, against the arguments as an answer shows them, of every event
// of real profiles; the fields of matches; bounds.
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/trace/answer/arg_search.h"
#include "analysis/trace/sums.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/cancelled.h"
#include "tests/data_file.h"
#include "tests/processor_time.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 28 };

struct fixture {
    struct xpl_buf profile;
    struct xpl_arena arena;
    struct xpl_trace_memory memory;
    struct xpl_trace_host host;
};

static void make(struct fixture *f, struct xpl_buf profile) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    f->profile = profile;
    xpl_arena_init(&f->arena, LIMIT);
    const xpl_bytes_t bytes = {f->profile.p, f->profile.n};
    CHECK_OK(xpl_trace_memory_init(&f->memory, bytes, NULL, &exec, LIMIT, &f->arena, &err), &err);
    f->host = (struct xpl_trace_host){XPL_STR("h"), f->memory.trace, bytes};
}

static void end(struct fixture *f) {
    xpl_trace_memory_fini(&f->memory);
    xpl_arena_fini(&f->arena);
    xpl_buf_fini(&f->profile);
}

// ---- what an answer shows ----

static bool contains(const char *text, size_t n, xpl_str_t word) {
    for (size_t i = 0; i + word.len <= n; i++) {
        size_t k = 0;
        while (k < word.len &&
               tolower((unsigned char)text[i + k]) == tolower((unsigned char)word.ptr[k]))
            k++;
        if (k == word.len) return true;
    }
    return false;
}

static bool value_has(const struct trc_value *v, xpl_str_t word) {
    char digits[32];
    if (v->kind == TRC_ARG_STR) return contains(v->text.ptr, v->text.len, word);
    if (v->kind == TRC_ARG_DOUBLE) return false;
    (void)snprintf(digits, sizeof digits, v->kind == TRC_ARG_INT ? "%" PRId64 : "%" PRIu64,
                   v->bits);
    return contains(digits, strlen(digits), word);
}

static uint32_t shown(const struct fixture *f, const struct trc_event *e,
                      const struct trc_words *w) {
    static struct trc_value values[TRC_MAX_ARGS];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    uint32_t mask = 0;
    size_t n;
    struct trc_frames frames = {.arena = &arena};
    CHECK_OK(trc_read_args(f->memory.trace, f->host.profile, e, &frames, values, &n, &err), &err);
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < w->n; k++)
            if (value_has(&values[i], w->v[k])) mask |= UINT32_C(1) << k;
    return mask;
}

// How many events have all words; of each, with `compares`, the words that an answer shows.
static uint64_t count_all(const struct fixture *f, const char *text, bool compares) {
    const struct xpl_trace *const t = f->memory.trace;
    struct trc_words w;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    uint64_t n = 0;
    CHECK_OK(trc_words_read(xpl_str_from(text), &w, &err), &err);
    struct xpl_exec exec = xpl_exec_serial();
    struct trc_arg_search *s;
    CHECK_OK(trc_arg_search_new(t, f->host.profile, &w, &exec, &arena, &s, &err), &err);
    for (uint64_t b = 0; b < t->n[TRC_BLOCKS]; b++) {
        struct trc_view v;
        CHECK_OK(trc_view_block(t, b, &v, &err), &err);
        for (uint32_t i = 0; i < v.n; i++) {
            struct trc_event e;
            uint32_t got;
            CHECK_OK(trc_get_event(t, &v, i, &e, &err), &err);
            CHECK_OK(trc_arg_search_event(s, &e, &got, &err), &err);
            const uint32_t expected = compares ? shown(f, &e, &w) : got;
            // It ends as soon as all words were found, and not before.
            CHECK_EQ(got == w.all, expected == w.all);
            if (expected != w.all) CHECK_EQ(got, expected);
            n += expected == w.all && !t->tracks[e.track].named;
        }
    }
    return n;
}

static struct xpl_trace_sums sum_up(const struct fixture *f, const struct xpl_trace_sums_options *o,
                                    struct xpl_arena *arena) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_sums s;
    CHECK_OK(xpl_trace_sum_up(&f->host, 1, o, &exec, arena, &s, &err), &err);
    return s;
}

static void real_profiles(void) {
    static const char *const files[] = {
        "logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb",
        "logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb",
        "logdir/accel/plugins/profile/gpu_multi_worker/gpu_multi_worker.xplane.pb",
        "logdir/cpu/plugins/profile/tf_xla_jit/vm.xplane.pb",
        "logdir/cpu/plugins/profile/jax_8dev_shardmap/vm.xplane.pb"};
    static const char *const words[] = {"fusion", "JIT",   "jit_ fusion",         "1", "0 f", "-1",
                                        "f32[",   "train", "no such words at all"};
    uint64_t found = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct fixture f;
        make(&f, read_data_file(files[i]));
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            struct xpl_arena arena = xpl_arena_of(LIMIT);
            const struct xpl_trace_sums_options o = {.arguments = xpl_str_from(words[k]),
                                                     .most = 5};
            const struct xpl_trace_sums s = sum_up(&f, &o, &arena);
            CHECK_EQ(s.count, count_all(&f, words[k], true));
            CHECK_EQ(s.n_found, s.count < 5 ? s.count : 5);
            for (size_t e = 1; e < s.n_found; e++)
                CHECK(s.found[e - 1].ts <= s.found[e].ts);
            found += s.count;
            xpl_arena_fini(&arena);
        }
        end(&f);
    }
    CHECK(found > 1000);
}

// ---- a profile whose every event is known ----

enum { EVENTS = 3000 };

static struct xpl_buf make_profile(void) {
    struct xpl_buf space = mk_open(), line = mk_line(1, "a");
    struct mk_plane p = mk_plane(0, "/host:CPU");
    for (int i = 0; i < EVENTS; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "Tensor %d of %s", i, i % 10 ? "many" : "TWELVE");
        struct xpl_buf ev = mk_event(&p, i % 2 ? "odd" : "even", (int64_t)i * 1000000, 500000);
        mk_stat_str(&p, &ev, "what", text);
        mk_stat_int(&p, &ev, "size", 100000 + i);
        mk_stat_ref(&p, &ev, "kind", i % 3 ? "host" : "device");
        mk_event_end(&line, &ev);
    }
    // Fields in another order than writers have them.
    struct xpl_buf ev = mk_open();
    mk_stat_str(&p, &ev, "what", "backwards");
    mk_int(&ev, 3, 500000);
    mk_int(&ev, 2, (int64_t)EVENTS * 1000000);
    mk_int(&ev, 1, mk_name(p.events, &p.n_events, "last"));
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static void known(void) {
    XPL_AUTO(end) struct fixture f;
    struct xpl_arena arena;
    make(&f, make_profile());
    CHECK_EQ(count_all(&f, "backwards", true), 1);
    static const struct {
        const char *arguments, *name;
        uint64_t count;
    } cases[] = {{"ten", "", EVENTS},
                 {"of twelve", "", EVENTS / 10},
                 {"DEVICE", "", EVENTS / 3},
                 {"device", "odd", EVENTS / 6},
                 {"102999", "", 1},
                 {"2999 tensor", "odd", 1},
                 {"2999 tensor", "even", 0},
                 {"what", "", 0},
                 {"size", "", 0},
                 {"10", "ODD", EVENTS / 2},
                 {"BACK", "", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct xpl_trace_sums_options o = {.arguments = xpl_str_from(cases[i].arguments),
                                                 .name = xpl_str_from(cases[i].name),
                                                 .most = 3};
        xpl_arena_init(&arena, LIMIT);
        const struct xpl_trace_sums s = sum_up(&f, &o, &arena);
        CHECK_EQ(s.count, cases[i].count);
        CHECK_EQ(s.total_ps, cases[i].count * 500000);
        CHECK_EQ(s.n_found, cases[i].count < 3 ? cases[i].count : 3);
        xpl_arena_fini(&arena);
    }
    // In a window, and where the first of them are.
    struct xpl_trace_sums_options o = {
        .arguments = XPL_STR("tensor device"), .start_time_ms = 1, .end_time_ms = 2, .most = 2};
    xpl_arena_init(&arena, LIMIT);
    struct xpl_trace_sums s = sum_up(&f, &o, &arena);
    CHECK_EQ(s.count, 333);
    CHECK_EQ(s.n_found, 2);
    CHECK_EQ(s.found[0].ts, UINT64_C(1002) * 1000000);
    CHECK_EQ(s.found[1].ts, UINT64_C(1005) * 1000000);
    CHECK_STR(s.found[0].name, "even");
    CHECK_EQ(s.found[0].dur, 500000);
    // The earliest of any name, without arguments.
    o = (struct xpl_trace_sums_options){.name = XPL_STR("odd"), .most = 1};
    s = sum_up(&f, &o, &arena);
    CHECK_EQ(s.count, EVENTS / 2);
    CHECK_EQ(s.found[0].ts, 1000000);
    xpl_arena_fini(&arena);
}

// ---- bounds ----

static void fails(const struct fixture *f, const struct xpl_trace_sums_options *o,
                  struct xpl_exec *exec, size_t limit, xpl_status_t code) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    struct xpl_error err = {0};
    struct xpl_trace_sums s;
    CHECK_STATUS(xpl_trace_sum_up(&f->host, 1, o, exec, &arena, &s, &err), code, &err);
}

static void bounds(void) {
    XPL_AUTO(end) struct fixture f;
    struct xpl_exec exec = xpl_exec_serial();
    char words[TRC_WORDS * 2 + 4];
    make(&f, make_profile());
    struct xpl_trace_sums_options o = {.arguments = XPL_STR("ten"), .most = 1000};
    fails(&f, &o, &exec, 5000, XPL_RESOURCE_EXHAUSTED);
    exec.cancelled = always_cancelled;
    fails(&f, &o, &exec, LIMIT, XPL_CANCELLED);
    exec = xpl_exec_serial();
    for (int i = 0; i <= TRC_WORDS; i++)
        words[2 * i] = 'a', words[2 * i + 1] = ' ';
    o.arguments = (xpl_str_t){words, TRC_WORDS * 2 + 1};
    fails(&f, &o, &exec, LIMIT, XPL_INVALID_ARGUMENT);
    // Another profile than the index is of: none, half of it, and other bytes.
    o.arguments = XPL_STR("none");
    const xpl_bytes_t all = f.host.profile;
    f.host.profile = (xpl_bytes_t){0};
    fails(&f, &o, &exec, LIMIT, XPL_DATA_LOSS);
    f.host.profile = (xpl_bytes_t){all.ptr, all.len / 2};
    fails(&f, &o, &exec, LIMIT, XPL_DATA_LOSS);
    memset(f.profile.p + all.len / 2, 0xff, 4000);
    f.host.profile = all;
    fails(&f, &o, &exec, LIMIT, XPL_DATA_LOSS);
}

// Words are found wherever they begin in a long text, in linear time.
static void long_texts(void) {
    enum { N = 16 << 20, MOST = 1024, FROM = 7000, TO = 8300 };
    char *const text = malloc(N), word[MOST + 2];
    struct trc_words w;
    struct xpl_error err = {0};
    CHECK(text);
    memset(text, 'A', N);
    memset(word, 'a', sizeof word);
    word[MOST - 1] = 'b';
    CHECK_OK(trc_words_read((xpl_str_t){word, MOST}, &w, &err), &err);
    for (size_t at = FROM; at < TO; at += 13) {
        text[at] = 'B';
        CHECK_EQ(trc_words_in(&w, (xpl_str_t){text, TO}), at + 1 >= MOST);
        CHECK_EQ(trc_words_in(&w, (xpl_str_t){text, at}), 0);
        text[at] = 'A';
    }
    const double begin = processor_s();
    CHECK_EQ(trc_words_in(&w, (xpl_str_t){text, N}), 0);
    CHECK(is_within(begin, 3)); // all starts with all of the word take 20 s
    CHECK_STATUS(trc_words_read((xpl_str_t){word, MOST + 1}, &w, &err), XPL_INVALID_ARGUMENT, &err);
    free(text);
}

// One text of 1 MB, to which 40,000 events refer as the name of their step: the index and the
// search read it once, where 80 GB would take a minute.
static void shared_texts(void) {
    enum { N = 1 << 20, COUNT = 40000 };
    char *const text = malloc(N + 1);
    struct xpl_buf space = mk_open(), line = mk_line(1, "thread");
    struct mk_plane p;
    struct fixture f;
    CHECK(text);
    memset(text, 'a', N);
    text[N] = 0;
    mk_plane_begin(&p, 0, "/host:CPU");
    struct xpl_buf ev = mk_event(&p, "event", 1000, 1000);
    mk_stat_ref(&p, &ev, "step_name", text);
    mk_stat_ref(&p, &ev, "note", text);
    for (size_t i = 0; i < COUNT; i++)
        mk_len(&line, 4, ev.p, ev.n);
    xpl_buf_fini(&ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    const double begin = processor_s();
    make(&f, space);
    CHECK_EQ(count_all(&f, "b", false), 0);
    CHECK(is_within(begin, 5));
    end(&f);
    free(text);
}

int main(void) {
    real_profiles();
    known();
    bounds();
    long_texts();
    shared_texts();
    return 0;
}
