// SPDX-License-Identifier: Apache-2.0
// Every option of every tool through its values, over sessions that between them show what options
// do: an option that shapes answers changes one of them, and wherever two answers differ, so do the
// texts of the options, of which the keys of answers are made.  An option that shapes nothing
// changes nothing.
#include <stdio.h>
#include <stdlib.h>

#include "analysis/ireeprof/reader.h"
#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/barriers_fixture.h"
#include "tests/big_trace.h"
#include "tests/check.h"
#include "tests/counters_fixture.h"
#include "tests/data_file.h"
#include "tests/megascale_fixture.h"
#include "tests/unit/inference/serving_profile.h"
#include "tests/unit/tools/launches_render.h"
#include "tests/xspace_maker.h"

enum { MAX_HOSTS = 2, MAX_SESSIONS = 20, MAX_VALUES = 12, MAX_OPTIONS = 8 };
#define LIMIT ((size_t)1 << 28)

// ---- sessions ----

struct session {
    const char *name;
    struct xpl_buf bytes[MAX_HOSTS];
    size_t n;
    bool has_device;
    const char *only; // beginning of the names of the tools that it is for; NULL: all
};
static struct session g_sessions[MAX_SESSIONS];
static size_t g_n_sessions;

static struct session *add_session(const char *name) {
    CHECK(g_n_sessions < MAX_SESSIONS);
    struct session *const s = &g_sessions[g_n_sessions++];
    s->name = name;
    return s;
}

static void add_host(struct session *s, struct xpl_buf bytes) {
    struct xpl_error err = {0};
    bool device = false;
    CHECK(s->n < MAX_HOSTS);
    s->bytes[s->n++] = bytes;
    CHECK_OK(xpl_resolve_has_device((xpl_bytes_t){bytes.p, bytes.n}, &device, &err), &err);
    s->has_device |= device;
}

static struct xpl_buf recorded(const char *path) {
    char name[200];
    (void)snprintf(name, sizeof name, "logdir/%s.xplane.pb", path);
    return read_data_file(name);
}

// A GPU that ran kernels of no op: to XProf it takes part, to us it was idle.
static struct xpl_buf kernels_only(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(16, "Stream #16(Compute)");
    struct xpl_buf ev = mk_event(&p, "kernel", 1000, 4000000);
    mk_stat_str(&p, &ev, "kernel_details", "regs:16 grid:1,1,1 block:1,1,1");
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

// Two events that differ in nothing but their numbers, and one more.
static struct xpl_buf events(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "thread");
    for (int i = 0; i < 2; i++) {
        struct xpl_buf ev = mk_event(&p, "alpha", 1000000000, 500000000);
        mk_stat_int(&p, &ev, "number", i);
        mk_event_end(&line, &ev);
    }
    mk_plain(&p, &line, "beta", 3000000000, 500000000);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static struct xpl_buf many_events(void) {
    struct big_event *const v = big_events(UINT64_C(0x9e3779b97f4a7c15));
    const struct xpl_buf b = big_profile(v);
    free(v);
    return b;
}

// The header states that the bundle ends behind its first record.
static void end_bundle_early(struct xpl_buf *b) {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_cursor c = {.bundle = &bundle};
    struct xpl_iree_record r;
    CHECK_OK(xpl_iree_open((xpl_bytes_t){b->p, b->n}, false, &bundle, NULL), NULL);
    CHECK(xpl_iree_next(&c, &r));
    const uint64_t end = r.offset + r.record_length;
    memcpy(b->p + 16, &end, sizeof end);
}

static void make_sessions(void) {
    add_host(add_session("cpu"), recorded("cpu/plugins/profile/jax_matmul_nopy/vm"));
    add_host(add_session("memory"), recorded("cpu/plugins/profile/tf_bfc_memory/vm"));
    add_host(add_session("tpu"), recorded("accel/plugins/profile/tpu_inference_a/tpu_inference_a"));
    add_host(add_session("events"), events());
    add_host(add_session("launches"), launches_profile(0));
    struct session *s = add_session("one of two idle");
    add_host(s, recorded("cpu/plugins/profile/jax_matmul_nopy/vm"));
    add_host(s, recorded("cpu/plugins/profile/remote_idle_host/127.0.0.1_9103"));
    s = add_session("kernels without ops");
    add_host(s, recorded("accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm"));
    add_host(s, kernels_only());
    add_host(add_session("counters"), counters_fixture());
    add_host(add_session("megascale"), megascale_fixture(2, true));
    add_host(add_session("barriers"), barriers_fixture("h", 5, BR_STEP_PS / 5));
    s = add_session("devices that exchange");
    s->only = "collectives";
    add_host(s, recorded("cpu/plugins/profile/jax_8dev_shardmap/vm"));
    s = add_session("a model server");
    s->only = "inference_profile";
    add_host(s, serving_runs(70, "m"));
    s = add_session("a model server of two hosts");
    s->only = "inference_profile";
    add_host(s, serving_batches(3, 8, "m"));
    add_host(s, serving_batches(2, 16, "m"));
    s = add_session("a bundle of IREE");
    s->only = "iree_";
    add_host(s, read_data_file("iree/syn-everything.ireeprof"));
    s = add_session("a bundle of which most follows the end that it states");
    s->only = "iree_";
    add_host(s, read_data_file("iree/syn-everything.ireeprof"));
    end_bundle_early(&s->bytes[0]);
    s = add_session("more events than are shown at once");
    s->only = "trace_viewer@";
    add_host(s, many_events());
}

static void free_sessions(void) {
    for (size_t i = 0; i < g_n_sessions; i++)
        for (size_t k = 0; k < g_sessions[i].n; k++)
            xpl_buf_fini(&g_sessions[i].bytes[k]);
}

// ---- the requests ----

// Further options, "key", "value", ..., without which the tested one has no effect. The second
// column is for texts, because a test cannot know a profile's texts.
static const struct context {
    const char *tool, *options[MAX_OPTIONS];
} contexts[] = {
    {"trace_viewer@", {"event_name", "alpha", "start_time_ms", "1", "duration_ms", "0.5"}},
    {"trace_viewer@", {"search_prefix", "alpha"}},
    {"kernel_utilization", {"duration_us", "0.001"}},
    {"graph_viewer", {"program_id", "0", "type", "adj_nodes", "node_name", "none"}},
    {"graph_viewer", {"program_id", "0", "type", "long_txt"}},
    {"graph_viewer", {"program_id", "6", "type", "graph", "node_name", "ynn_fusion"}},
    {"memory_viewer", {"program_id", "12190760917235803885"}},
    {"memory_viewer", {"program_id", "12190760917235803885", "view", "ops"}},
};
static const struct text_values {
    const char *tool, *key, *values[MAX_VALUES];
} texts[] = {
    {"kernel_utilization", "device_id", {"", "0", "99"}},
    {"kernel_utilization", "duration_us", {"", "5", "x"}},
    {"kernel_utilization", "kernel", {"", "kernel", "none"}},
    {"kernel_utilization", "kernel_name", {"", "kernel", "none"}},
    {"event_time_fraction_analyzer", "event_name", {"", "barrier", "barrier-cores"}},
    {"events", "by_id", {"", "(.*)", "([a-z]+)"}},
    {"events", "match", {"", "a", "nothing"}},
    {"events", "max_events", {"auto", "all", "3"}},
    {"events", "min_duration", {"auto", "1us", "1s"}},
    {"events", "plane", {"", "host", "gpu"}},
    {"events", "prefix", {"auto", "a", ""}},
    {"trace_overlap", "tracks", {"", "99999"}},
    {"trace_search", "name", {"alpha", "beta", ""}},
    {"trace_search", "text", {"", "jit", "no such text"}},
    {"trace_search", "tracks", {"", "99999"}},
    {"trace_sums", "name", {"alpha", "beta", ""}},
    {"trace_sums", "tracks", {"", "99999"}},
    {"trace_viewer@", "event_name", {"alpha", "beta", ""}},
    {"trace_viewer@", "search_prefix", {"alpha", "beta", ""}},
    {"graph_viewer", "module_name", {"nothing", "jit_stage(0)"}},
    {"graph_viewer", "node_name", {"nothing", "copy"}},
    {"graph_viewer", "program_id", {"nothing", "0"}},
    {"graph_viewer", "type", {"short_txt", "long_txt", "pbtxt", "pb", "json"}},
    {"memory_viewer", "memory_space", {"0", "5", "x"}},
    {"memory_viewer", "module_name", {"nothing", "jit_f(12190760917235803885)"}},
    {"memory_viewer", "other", {"nothing", "jit_f(12190760917235803885)"}},
    {"memory_viewer", "program_id", {"nothing", "12190760917235803885"}},
    {"iree_command", "filter", {"nothing", "*"}},
    {"iree_counter", "filter", {"nothing", "*"}},
    {"iree_dispatch", "filter", {"nothing", "*"}},
    {"iree_executable", "filter", {"nothing", "*"}},
    {"iree_explain", "filter", {"nothing", "*"}},
    {"iree_functions", "filter", {"nothing", "*"}},
    {"iree_latency", "filter", {"nothing", "*"}},
    {"iree_memory", "filter", {"nothing", "*"}},
    {"iree_queue", "filter", {"nothing", "*"}},
    {"iree_self", "filter", {"nothing", "*"}},
    {"iree_att", "id", {"", "0", "1", "99999"}},
    {"iree_command", "id", {"", "0", "1", "99999"}},
    {"iree_counter", "id", {"", "0", "1", "99999"}},
    {"iree_dispatch", "id", {"", "0", "1", "99999"}},
    {"iree_executable", "id", {"", "0", "1", "99999"}},
    {"iree_explain", "id", {"", "0", "1", "99999"}},
    {"iree_memory", "id", {"", "0", "1", "99999"}},
    {"iree_queue", "id", {"", "0", "1", "99999"}},
};

struct values {
    char text[MAX_VALUES][64];
    size_t n;
};

static void add_value(struct values *v, const char *z, size_t n) {
    CHECK(v->n < MAX_VALUES && n < sizeof v->text[0]);
    memcpy(v->text[v->n], z, n);
    v->text[v->n++][n] = 0;
}

static struct values values_of(const struct xpl_tool *t, const struct xpl_tool_option *o) {
    static const char *const counts[] = {"0", "1", "8000"}, *const times[] = {"0", "0.5", "1", "2"};
    struct values v = {.n = 0};
    if (o->type == XPL_OPTION_BOOL || o->type == XPL_OPTION_CHOICE)
        for (const char *p = o->values; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
            add_value(&v, p, strcspn(p, "|"));
    for (size_t i = 0; o->type == XPL_OPTION_COUNT && i < 3; i++)
        add_value(&v, counts[i], strlen(counts[i]));
    for (size_t i = 0; o->type == XPL_OPTION_MILLISECONDS && i < 4; i++)
        add_value(&v, times[i], strlen(times[i]));
    for (size_t i = 0; o->type == XPL_OPTION_RATE && i < 4; i++)
        add_value(&v, times[i], strlen(times[i]));
    for (size_t i = 0; o->type == XPL_OPTION_TEXT && i < sizeof texts / sizeof *texts; i++)
        for (size_t k = 0; k < MAX_VALUES && texts[i].values[k]; k++)
            if (strcmp(texts[i].tool, t->name) == 0 && strcmp(texts[i].key, o->key) == 0)
                add_value(&v, texts[i].values[k], strlen(texts[i].values[k]));
    return v;
}

struct outcome {
    xpl_status_t status;
    struct xpl_buf answer, text;
};

static void ignore_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    (void)host;
    (void)text;
}

static xpl_status_t resolve(const struct session *s, const struct xpl_tool *t, const void *options,
                            struct xpl_buf *out, struct xpl_error *err) {
    static const char *const names[MAX_HOSTS] = {"a", "b"};
    struct xpl_resolve_host hosts[MAX_HOSTS];
    struct xpl_exec exec = xpl_exec_serial();
    for (size_t i = 0; i < s->n; i++)
        hosts[i] = (struct xpl_resolve_host){.name = xpl_str_from(names[i]),
                                             .path = names[i],
                                             .profile = {s->bytes[i].p, s->bytes[i].n}};
    const struct xpl_resolve r = {.tool = t,
                                  .options = options,
                                  .hosts = hosts,
                                  .n_hosts = t->hosts == XPL_HOSTS_ONE ? 1 : s->n,
                                  .session_has_device = s->has_device,
                                  .exec = &exec,
                                  .limit = LIMIT,
                                  .warn = ignore_warning};
    return xpl_resolve(&r, out, err);
}

static struct outcome ask(const struct session *s, const struct xpl_tool *t,
                          const struct context *c, const char *key, const char *value) {
    struct xpl_option list[MAX_OPTIONS];
    size_t n = 0;
    for (size_t i = 0; c && i + 1 < MAX_OPTIONS && c->options[i]; i += 2)
        list[n++] =
            (struct xpl_option){xpl_str_from(c->options[i]), xpl_str_from(c->options[i + 1])};
    list[n++] = (struct xpl_option){xpl_str_from(key), xpl_str_from(value)};
    struct outcome o = {0};
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *options;
    xpl_buf_init(&o.answer, LIMIT);
    xpl_buf_init(&o.text, 1 << 16);
    CHECK_OK(xpl_tool_options_parse(t, list, n, true, &arena, &options, &err), &err);
    xpl_tool_options_text(t, options, &o.text);
    CHECK(!o.text.failed);
    o.status = resolve(s, t, options, &o.answer, &err);
    if (o.status != XPL_OK) { // no session is broken; a tool may have no answer for one
        CHECK(o.status == XPL_NOT_FOUND || o.status == XPL_FAILED_PRECONDITION ||
              o.status == XPL_UNIMPLEMENTED);
        o.answer.n = 0;
    }
    return o;
}

static bool same_bytes(const struct xpl_buf *a, const struct xpl_buf *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

// Whether two of the values give two answers.
static bool compare_values(const struct session *s, const struct xpl_tool *t,
                           const struct context *c, const struct xpl_tool_option *o,
                           const struct values *v) {
    struct outcome got[MAX_VALUES];
    bool any = false;
    for (size_t i = 0; i < v->n; i++)
        got[i] = ask(s, t, c, o->key, v->text[i]);
    for (size_t i = 0; i < v->n; i++)
        for (size_t k = 0; k < i; k++) {
            const bool same =
                got[i].status == got[k].status && same_bytes(&got[i].answer, &got[k].answer);
            any |= !same;
            if (!same && same_bytes(&got[i].text, &got[k].text)) {
                fprintf(stderr, "%s of %s: %s=%s and %s share the text %.*s\n", t->name, s->name,
                        o->key, v->text[i], v->text[k], (int)got[i].text.n,
                        (const char *)got[i].text.p);
                FAIL_TEST("two answers under one key");
            }
        }
    for (size_t i = 0; i < v->n; i++) {
        xpl_buf_fini(&got[i].answer);
        xpl_buf_fini(&got[i].text);
    }
    return any;
}

// The same beside other options of the tool: none, those of `contexts`, and each value of each
// option that has a few.  `enough`: stops at the first two answers.
static bool compare_beside_others(const struct session *s, const struct xpl_tool *t,
                                  const struct xpl_tool_option *o, bool enough,
                                  const struct values *v) {
    bool any = compare_values(s, t, NULL, o, v);
    for (size_t c = 0; c < sizeof contexts / sizeof *contexts && !(any && enough); c++)
        if (strcmp(contexts[c].tool, t->name) == 0) any |= compare_values(s, t, &contexts[c], o, v);
    for (size_t i = 0; i < t->n_options && !(any && enough); i++) {
        const struct xpl_tool_option *const other = &t->options[i];
        if (other == o || (other->type != XPL_OPTION_CHOICE && other->type != XPL_OPTION_BOOL))
            continue;
        const struct values set = values_of(t, other);
        for (size_t k = 0; k < set.n && !(any && enough); k++) {
            const struct context c = {t->name, {other->key, set.text[k]}};
            any |= compare_values(s, t, &c, o, v);
        }
    }
    return any;
}

static void check_option(const struct xpl_tool *t, size_t index) {
    const struct xpl_tool_option *const o = xpl_tool_option_at(t, index);
    const bool shapes = xpl_tool_option_shapes(t, index);
    const struct values v = values_of(t, o);
    bool any = false;
    if (v.n < 2) fprintf(stderr, "%s of %s: no values to try; see `texts`\n", o->key, t->name);
    CHECK(v.n >= 2);
    for (size_t s = 0; s < g_n_sessions; s++) {
        const char *const only = g_sessions[s].only;
        if (only && strncmp(only, t->name, strlen(only)) != 0) continue;
        if (only && !shapes && strcmp(only, t->name) == 0) continue; // so large a session
        any |= compare_beside_others(&g_sessions[s], t, o, shapes, &v);
        if (any && shapes) break; // one session is enough
    }
    if (any != shapes)
        fprintf(stderr, "%s of %s %s\n", o->key, t->name,
                any ? "changes answers, and its row says that it does not"
                    : "changes no answer of these sessions");
    CHECK_EQ(any, shapes);
}

int main(void) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    make_sessions();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < xpl_tool_n_options(tools[i]); k++)
            if (!xpl_tool_option_at(tools[i], k)->internal) check_option(tools[i], k);
    free_sessions();
    return 0;
}
