// SPDX-License-Identifier: Apache-2.0
// Private to the tests of the engine: an engine over one profile, a tool that stops where a test
// inspects a job, and callers that record their answers.
#ifndef XPL_TESTS_UNIT_SERVER_ENGINE_FIXTURE_H_
#define XPL_TESTS_UNIT_SERVER_ENGINE_FIXTURE_H_

#include <glob.h>
#include <stddef.h>
#include <time.h>

#include "analysis/formats/format.h"
#include "base/clock.h"
#include "base/cond.h"
#include "server/engine/engine.h"
#include "server/engine/index_files.h"
#include "server/engine/pool.h"
#include "server/engine/writer.h"
#include "storage/sessions/identity.h"
#include "tests/data_file.h"
#include "tests/unit/storage/store_helpers.h"
#include "tests/xspace_maker.h"

#define MS          UINT64_C(1000000)
#define PATIENCE_NS (20000 * MS) // a test that waits for longer has failed
#define HOUR_NS     (UINT64_C(3600000) * MS)

// ---- a tool that stops at a barrier ----

// Protects all that follows, and the askers.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct {
    bool closed;                      // renders wait
    unsigned inside;                  // renders that wait
    unsigned makes, renders, stopped; // of products and answers; renders that found themselves
                                      // cancelled
    xpl_status_t make_status;         // of each make
    bool touches;                     // each make changes the file
} tool;

struct toy_options {
    struct xpl_common_options common;
    uint64_t number;
};

static void touch_profile(void);

static xpl_status_t make_toy(const struct xpl_product_input *in, void **ret,
                             struct xpl_error *err) {
    pthread_mutex_lock(&mu);
    tool.makes++;
    const xpl_status_t st = tool.make_status;
    const bool touches = tool.touches;
    pthread_mutex_unlock(&mu);
    if (touches) touch_profile();
    if (st != XPL_OK) XPL_RETURN_ERROR(err, st, "no toy");
    size_t *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "toy");
    *v = in->profile.len;
    *ret = v;
    return XPL_OK;
}

static size_t toy_size(const void *value) {
    return sizeof *(const size_t *)value;
}

static struct xpl_product product = {.name = "toy",
                                     .version = 1,
                                     .residency = XPL_RESIDENCY_MEMORY,
                                     .make = make_toy,
                                     .size = toy_size,
                                     .free = xpl_sys_free};

// A second product, of which nothing is shown.
static xpl_status_t make_more(const struct xpl_product_input *in, void **ret,
                              struct xpl_error *err) {
    (void)in;
    if (!(*ret = xpl_sys_alloc(sizeof(size_t)))) XPL_RETURN_OOM(err, "more");
    return XPL_OK;
}

static struct xpl_product more = {.name = "more",
                                  .version = 1,
                                  .residency = XPL_RESIDENCY_MEMORY,
                                  .make = make_more,
                                  .size = toy_size,
                                  .free = xpl_sys_free};

static xpl_status_t render_toy(const struct xpl_tool_input *in, struct xpl_buf *out,
                               struct xpl_error *err) {
    const struct toy_options *const o = in->options;
    bool cancelled = false;
    pthread_mutex_lock(&mu);
    tool.renders++;
    tool.inside++;
    pthread_cond_broadcast(&changed);
    while (tool.closed && !(cancelled = xpl_exec_cancelled(in->exec)))
        (void)xpl_cond_wait_until(&changed, &mu, xpl_clock_ns() + MS);
    tool.inside--;
    tool.stopped += cancelled;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    if (cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    xpl_buf_printf(out, "%zu bytes, number %" PRIu64, *(const size_t *)in->hosts[0].products[0],
                   o->number);
    return XPL_OK;
}

static const struct xpl_product *const toy_needs[] = {&product, &more, NULL};
static const struct xpl_tool_option number_option = {.key = "number",
                                                     .type = XPL_OPTION_COUNT,
                                                     .offset = offsetof(struct toy_options, number),
                                                     .values = "NUMBER",
                                                     .preset = "0",
                                                     .help = "told"};
static const struct xpl_tool toy = {.name = "toy",
                                    .version = 1,
                                    .needs = toy_needs,
                                    .options = &number_option,
                                    .n_options = 1,
                                    .options_size = sizeof(struct toy_options),
                                    .hosts = XPL_HOSTS_EACH,
                                    .content_type = "text/plain",
                                    .hidden = true,
                                    .render = render_toy};

// The same of other kinds: one that reads the profile, too, and one that asks for the devices.
static const struct xpl_tool reader = {.name = "reader",
                                       .version = 1,
                                       .needs = toy_needs,
                                       .options = &number_option,
                                       .n_options = 1,
                                       .options_size = sizeof(struct toy_options),
                                       .hosts = XPL_HOSTS_EACH,
                                       .content_type = "text/plain",
                                       .reads_profile = true,
                                       .hidden = true,
                                       .render = render_toy};
static unsigned no_variant(const void *options, size_t i, bool session_has_device) {
    (void)options, (void)i, (void)session_has_device;
    return 0;
}
static const struct xpl_tool asker_of_devices = {.name = "devices",
                                                 .version = 1,
                                                 .needs = toy_needs,
                                                 .options = &number_option,
                                                 .n_options = 1,
                                                 .options_size = sizeof(struct toy_options),
                                                 .hosts = XPL_HOSTS_EACH,
                                                 .content_type = "text/plain",
                                                 .hidden = true,
                                                 .variant = no_variant,
                                                 .asks_device = true,
                                                 .render = render_toy};

// Four tools of XSpaces, of a product each, that also work with bundles of IREE.
enum { N_VIEWERS = 4 };
#define VIEWED(n)                                                                                  \
    {                                                                                              \
        .name = "viewed" #n, .version = 1, .residency = XPL_RESIDENCY_MEMORY, .make = make_toy,    \
        .size = toy_size, .free = xpl_sys_free                                                     \
    }
static const struct xpl_product viewed[N_VIEWERS] = {VIEWED(0), VIEWED(1), VIEWED(2), VIEWED(3)};
static const struct xpl_product *const viewer_needs[N_VIEWERS][2] = {
    {&viewed[0]}, {&viewed[1]}, {&viewed[2]}, {&viewed[3]}};
#define VIEWER(n)                                                                                  \
    {                                                                                              \
        .name = "viewer" #n, .version = 1, .needs = viewer_needs[n], .options = &number_option,    \
        .n_options = 1, .options_size = sizeof(struct toy_options), .hosts = XPL_HOSTS_EACH,       \
        .content_type = "text/plain", .hidden = true, .render = render_toy                         \
    }
static const struct xpl_tool viewers[N_VIEWERS] = {VIEWER(0), VIEWER(1), VIEWER(2), VIEWER(3)};

// ---- an engine over one profile ----

struct fixture {
    struct xpl_engine_parts parts;
    struct xpl_engine *engine;
    size_t profile_bytes;
};
static const struct xpl_engine_options usual = {.memory_limit = (size_t)1 << 30,
                                                .memory_total = (size_t)4 << 30,
                                                .request_timeout_ns = HOUR_NS};

// Different times distinguish changes; entries younger than a clock's tick are not cached.
static void let_time_pass(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 20 * (long)MS}, NULL);
}

static size_t write_profile(const char *plane) {
    struct mk_plane p = mk_plane(1, plane);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    mk_plane_end(&p, &space);
    FILE *const f = fopen(in_dir("logs/h.xplane.pb"), "wb");
    CHECK(f);
    CHECK_EQ(fwrite(space.p, 1, space.n, f), space.n);
    CHECK_EQ(fclose(f), 0);
    const size_t n = space.n;
    let_time_pass();
    return n;
}

// One byte more, of which a reader of planes sees nothing.
static void touch_profile(void) {
    FILE *const f = fopen(in_dir("logs/h.xplane.pb"), "ab");
    CHECK(f && fputc(0, f) == 0 && fclose(f) == 0);
}

static const char *files_dir; // of products in files; NULL: they are in memory

static void start(struct fixture *f, unsigned workers, size_t max_queued,
                  const struct xpl_engine_options *o) {
    struct xpl_error err = {0};
    *f = (struct fixture){0};
    memset(&tool, 0, sizeof tool);
    new_dir();
    CHECK_EQ(mkdir(in_dir("logs"), 0700), 0);
    f->profile_bytes = write_profile("/host:CPU");
    const struct xpl_catalogue_options c = {
        .size = sizeof c, .logdir = in_dir("logs"), .match = xpl_format_match};
    CHECK_OK(xpl_catalogue_new(&c, &f->parts.catalogue, &err), &err);
    f->parts.store = open_store(0);
    CHECK_OK(xpl_identity_new(f->parts.store, &f->parts.identity, &err), &err);
    const struct xpl_store_writer_options w = {.store = f->parts.store,
                                               .identity = f->parts.identity};
    CHECK((f->parts.writer = xpl_store_writer_new(&w)));
    CHECK((f->parts.cache = xpl_cache_new((size_t)1 << 20)));
    CHECK((f->parts.files =
               xpl_index_files_new(files_dir ? in_dir(files_dir) : NULL, 0, f->parts.identity)));
    CHECK((f->parts.pool = xpl_pool_new(workers, max_queued)));
    CHECK((f->engine = xpl_engine_new(&f->parts, o)));
}

static struct xpl_engine_stats engine_stats(struct fixture *f) {
    struct xpl_engine_stats st;
    xpl_engine_get_stats(f->engine, &st);
    return st;
}

static void end(struct fixture *f) {
    xpl_pool_free(f->parts.pool);
    CHECK_EQ(engine_stats(f).in_flight_bytes, 0); // nothing stays reserved
    xpl_store_writer_free(f->parts.writer, 3000);
    xpl_engine_free(f->engine);
    xpl_index_files_free(f->parts.files);
    xpl_cache_free(f->parts.cache);
    xpl_identity_free(f->parts.identity);
    xpl_store_close(f->parts.store);
    xpl_catalogue_free(f->parts.catalogue);
    remove_dir();
}

// ---- asking ----

struct asker {
    unsigned calls; // of done
    xpl_status_t code;
    const char *source;
    int64_t retry_ms;
    char text[100]; // of the answer, or of the failure
    uint64_t stage_us[XPL_N_STAGES];
    bool holds; // done waits
    struct xpl_ticket *ticket;
};

static void done(void *arg, const struct xpl_outcome *o) {
    struct asker *const a = arg;
    pthread_mutex_lock(&mu);
    a->calls++;
    a->code = o->code;
    a->source = xpl_outcome_source(o);
    a->retry_ms = o->retry_ms;
    memcpy(a->stage_us, o->stage_us, sizeof a->stage_us);
    const xpl_bytes_t text = o->answer
                                 ? xpl_rpc_blob_get(o->answer->blob)
                                 : (xpl_bytes_t){(const uint8_t *)o->err.msg, strlen(o->err.msg)};
    (void)snprintf(a->text, sizeof a->text, "%.*s", (int)text.len, (const char *)text.ptr);
    pthread_cond_broadcast(&changed);
    while (a->holds)
        (void)xpl_cond_wait_until(&changed, &mu, xpl_clock_ns() + MS);
    pthread_mutex_unlock(&mu);
}

static struct xpl_request *request_of(struct fixture *f, const char *session,
                                      const struct xpl_tool *row, const char *number, bool saved) {
    const struct xpl_option options[] = {
        {XPL_STR("number"), xpl_str_from(number)},
        {XPL_STR("use_saved_result"), saved ? XPL_STR("true") : XPL_STR("false")}};
    const struct xpl_request_words words = {.session = xpl_str_from(session),
                                            .row = row,
                                            .options = options,
                                            .n_options = 2,
                                            .strict = true};
    struct xpl_request *q = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_engine_resolve(f->engine, &words, &q, &err), &err);
    return q;
}

static struct xpl_request *request(struct fixture *f, const char *number, bool saved) {
    return request_of(f, "logs", &toy, number, saved);
}

static void submit(struct fixture *f, struct xpl_request *q, struct asker *a) {
    *a = (struct asker){0};
    xpl_engine_submit(f->engine, q, done, a, &a->ticket);
    CHECK(a->ticket);
}

static void ask(struct fixture *f, const char *number, struct asker *a) {
    submit(f, request(f, number, true), a);
}

// Waits for the outcome; the ticket is given back.
static void wait_done(struct asker *a) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (!a->calls)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
    CHECK_EQ(a->calls, 1);
    xpl_ticket_unref(a->ticket);
    a->ticket = NULL;
}

static void check_answer(struct fixture *f, struct asker *a, const char *number,
                         const char *source) {
    char expected[100];
    wait_done(a);
    (void)snprintf(expected, sizeof expected, "%zu bytes, number %s", f->profile_bytes, number);
    CHECK_STR(a->text, expected);
    CHECK_OK(a->code, NULL);
    CHECK_STR(a->source, source);
}

static void check_failure(struct asker *a, xpl_status_t code, const char *part) {
    wait_done(a);
    CHECK_STATUS(a->code, code, NULL);
    CHECK_STR(a->source, "");
    if (!strstr(a->text, part)) fprintf(stderr, "%s\nlacks %s\n", a->text, part);
    CHECK(strstr(a->text, part));
}

static void wait_written(struct fixture *f) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    struct xpl_store_writer_stats st;
    do {
        xpl_store_writer_get_stats(f->parts.writer, &st);
        CHECK_EQ(st.dropped + st.failed, 0);
        CHECK(xpl_clock_ns() < until);
        (void)nanosleep(&(struct timespec){.tv_nsec = 2 * (long)MS}, NULL);
    } while (st.writes == 0 || st.queued > 0);
}

#endif
