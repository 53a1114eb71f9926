// SPDX-License-Identifier: Apache-2.0
// server/engine/engine: where an answer comes from; equal requests share a job, and different ones
// the products of a host; what is refused, cancelled and given up, and that each who asked is
// called back once.  The tool is one of the test: it stops where a test inspects a job.
#include "server/engine/engine.h"

#include <glob.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/clock.h"
#include "base/cond.h"
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

static void set_barrier(bool closed) {
    pthread_mutex_lock(&mu);
    tool.closed = closed;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
}

static void wait_inside(unsigned n) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (tool.inside != n)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
}

static void wait_stopped(unsigned n) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (tool.stopped != n)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
}

// ---- an engine over one profile ----

struct fixture {
    struct xpl_engine_parts parts;
    struct xpl_engine *engine;
    size_t profile_bytes;
};
static const struct xpl_engine_options usual = {.memory_limit = (size_t)1 << 30,
                                                .memory_total = (size_t)4 << 30,
                                                .request_timeout_ns = HOUR_NS};

// Changes are told apart by times that differ; what is younger than a clock's tick is not kept.
static void let_time_pass(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 20 * (long)MS}, NULL);
}

static size_t write_profile(const char *plane) {
    struct mk_plane p;
    struct xpl_buf space = mk_open();
    mk_plane_begin(&p, 1, plane);
    mk_plane_end(&p, &space);
    FILE *const f = fopen(in_dir("logs/h.xplane.pb"), "wb");
    CHECK(f);
    CHECK_EQ(fwrite(space.p, 1, space.n, f), space.n);
    CHECK_EQ(fclose(f), 0);
    const size_t n = space.n;
    xpl_buf_fini(&space);
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

// Whether the answer is in memory.
static bool in_memory(struct fixture *f, const char *number, bool saved) {
    struct xpl_request *const q = request(f, number, saved);
    struct xpl_tool_data *const d = xpl_engine_lookup(f->engine, q);
    xpl_request_free(q);
    if (d) xpl_object_unref(&d->object);
    return d != NULL;
}

// ---- where answers come from ----

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

static void test_sources(void) {
    struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    CHECK(!in_memory(&f, "1", true));
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    // The key says the options; a request that bypasses what is kept finds nothing.
    CHECK(in_memory(&f, "1", true) && !in_memory(&f, "2", true) && !in_memory(&f, "1", false));
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "memory");
    CHECK_EQ(tool.renders, 1);
    submit(&f, request(&f, "1", false), &a);
    check_answer(&f, &a, "1", "computed");
    CHECK_EQ(tool.renders, 2);
    CHECK_EQ(tool.makes, 2);
    // What memory has lost the store still has.
    wait_written(&f);
    xpl_cache_set_limit(f.parts.cache, 0);
    CHECK(!in_memory(&f, "1", true));
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "store");
    CHECK_EQ(tool.renders, 2);
    const struct xpl_engine_stats st = engine_stats(&f);
    CHECK_EQ(st.computed, 2);
    CHECK_EQ(st.from_store, 1);
    CHECK_EQ(st.from_memory, 2);
    end(&f);
}

// A stored answer is found only by the versions of all that it was made from: their sum is not
// enough.
static void test_versions(void) {
    struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    product.version = 15;
    more.version = 4;
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    wait_written(&f);
    xpl_cache_set_limit(f.parts.cache, 0);
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "store");
    product.version = 16;
    more.version = 3;
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    product.version = more.version = 1;
    end(&f);
}

// Another file under the same name: nothing that was made of the old one is given.
static void test_changed_file(void) {
    struct fixture f;
    struct asker a;
    struct xpl_error err = {0};
    bool is_new = false;
    start(&f, 1, 4, &usual);
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    f.profile_bytes = write_profile("/host:CPU and more");
    CHECK_OK(xpl_catalogue_scan(f.parts.catalogue, XPL_SCAN_ALL, &is_new, &err), &err);
    CHECK(is_new && !in_memory(&f, "1", true));
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    CHECK_EQ(tool.makes, 2);
    end(&f);
}

// A failure is told to who waits, and not kept.
static void test_failure(void) {
    struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    tool.make_status = XPL_RESOURCE_EXHAUSTED;
    ask(&f, "1", &a);
    check_failure(&a, XPL_RESOURCE_EXHAUSTED, "no toy");
    CHECK(!in_memory(&f, "1", true));
    tool.make_status = XPL_OK;
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    CHECK_EQ(engine_stats(&f).computed, 1);
    end(&f);
}

// A file that changes whenever it is read is read four times in all, whoever tries again.
static void test_changing_file(void) {
    const struct xpl_tool *const tools[] = {&toy, &reader};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        struct asker a;
        start(&f, 1, 4, &usual);
        tool.touches = true;
        submit(&f, request_of(&f, "logs", tools[i], "1", true), &a);
        check_failure(&a, XPL_ABORTED, "h.xplane.pb");
        CHECK_EQ(tool.makes, XPL_OPEN_ATTEMPTS);
        end(&f);
    }
}

// What is read to know whether the session has a device is part of the stages.
static void test_stages_of_devices(void) {
    struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    ask(&f, "1", &a); // its products are in memory then
    check_answer(&f, &a, "1", "computed");
    CHECK(a.stage_us[XPL_STAGE_OPEN] && a.stage_us[XPL_STAGE_CONVERT]);
    ask(&f, "2", &a);
    check_answer(&f, &a, "2", "computed");
    CHECK(!a.stage_us[XPL_STAGE_OPEN] && !a.stage_us[XPL_STAGE_CONVERT]);
    submit(&f, request_of(&f, "logs", &asker_of_devices, "1", true), &a);
    check_answer(&f, &a, "1", "computed");
    CHECK(a.stage_us[XPL_STAGE_OPEN] && a.stage_us[XPL_STAGE_CONVERT]);
    end(&f);
}

// ---- imports ----

// Session "b/x", of a bundle; another file each time.
static void write_bundle(struct fixture *f) {
    struct xpl_error err = {0};
    bool is_new = false;
    struct xpl_buf bundle = read_data_file("iree/syn-everything.ireeprof");
    if (access(in_dir("logs/b"), F_OK) != 0) CHECK_EQ(mkdir(in_dir("logs/b"), 0700), 0);
    FILE *const file = fopen(in_dir("logs/b/x.ireeprof"), "wb");
    CHECK(file && fwrite(bundle.p, 1, bundle.n, file) == bundle.n && fclose(file) == 0);
    xpl_buf_fini(&bundle);
    let_time_pass();
    CHECK_OK(xpl_catalogue_scan(f->parts.catalogue, XPL_SCAN_ALL, &is_new, &err), &err);
    CHECK(is_new);
}

static void view_bundle(struct fixture *f, size_t i) {
    struct asker a;
    submit(f, request_of(f, "b/x", &viewers[i], "1", true), &a);
    wait_done(&a);
    CHECK_OK(a.code, NULL);
}

// Tools that are asked for at the same time share one import of the bundle.
static void test_one_import(void) {
    struct fixture f;
    struct asker a[N_VIEWERS];
    start(&f, N_VIEWERS, 8, &usual);
    for (unsigned round = 1; round <= 20; round++) {
        char number[16]; // the store has the other rounds' answers
        (void)snprintf(number, sizeof number, "%u", round);
        write_bundle(&f);
        for (size_t i = 0; i < N_VIEWERS; i++)
            submit(&f, request_of(&f, "b/x", &viewers[i], number, true), &a[i]);
        for (size_t i = 0; i < N_VIEWERS; i++) {
            wait_done(&a[i]);
            CHECK_OK(a[i].code, NULL);
            CHECK_STR(a[i].text, a[0].text);
        }
        CHECK_EQ(engine_stats(&f).imports, round);
        CHECK_EQ(tool.makes, round * N_VIEWERS);
    }
    end(&f);
}

// The import stays in a file, and a file that is damaged is made anew.
static void test_kept_import(void) {
    struct fixture f;
    glob_t g;
    files_dir = "";
    start(&f, 1, 4, &usual);
    write_bundle(&f);
    view_bundle(&f, 0);
    xpl_index_files_drain(f.parts.files);
    xpl_cache_set_limit(f.parts.cache, 0);
    view_bundle(&f, 1);
    CHECK_EQ(engine_stats(&f).imports, 1);
    CHECK_EQ(glob(in_dir("traces/*.0.1-1.imported_xspace"), 0, NULL, &g), 0);
    FILE *const file = fopen(g.gl_pathv[0], "r+b");
    CHECK(file && fseek(file, 100, SEEK_SET) == 0 && fputc(255, file) == 255 && fclose(file) == 0);
    globfree(&g);
    view_bundle(&f, 2);
    CHECK_EQ(engine_stats(&f).imports, 2);
    end(&f);
    files_dir = NULL;
}

// ---- joining ----

// A reader that does not report that the import's file was cut leaves it in memory: the next one
// gets another.
static void test_cut_import(void) {
    struct fixture f;
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context ctx = {.exec = &serial};
    glob_t g;
    files_dir = "";
    start(&f, 1, 4, &usual);
    xpl_cache_set_limit(f.parts.cache, (size_t)16 << 20); // a mapped file counts as some MiB
    write_bundle(&f);
    view_bundle(&f, 0);
    xpl_index_files_drain(f.parts.files);
    CHECK_EQ(glob(in_dir("traces/*.0.1-1.imported_xspace"), 0, NULL, &g), 0);
    struct xpl_request *const q = request_of(&f, "b/x", &viewers[0], "1", true);
    const struct xpl_product_request r = {.snapshot = q->snapshot, .host = q->hosts[0]};
    struct xpl_product_manager *const products = xpl_engine_get_products(f.engine);
    for (int i = 0; i < 2; i++) {
        struct xpl_opened_profile o = {0};
        struct xpl_stage_times times = {0};
        struct xpl_error err = {0};
        CHECK_OK(xpl_product_open_profile(products, &r, XPL_FORM_XSPACE, &ctx, &times, &o, &err),
                 &err);
        CHECK(!xpl_opened_profile_is_truncated(&o));
        CHECK_EQ(engine_stats(&f).imports, i + 1);
        if (i == 0) {
            CHECK(o.import_file);
            CHECK_EQ(truncate(g.gl_pathv[0], 0), 0);
            CHECK_EQ(((const volatile uint8_t *)o.bytes.ptr)[o.bytes.len - 1], 0);
            CHECK(xpl_opened_profile_is_truncated(&o));
        }
        xpl_opened_profile_close(&o);
    }
    xpl_request_free(q);
    globfree(&g);
    end(&f);
    files_dir = NULL;
}

static void test_joining(void) {
    struct fixture f;
    struct asker first, equal[2], other, anew;
    start(&f, 1, 8, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &equal[0]);
    ask(&f, "1", &equal[1]);
    ask(&f, "2", &other);
    submit(&f, request(&f, "1", false), &anew);
    CHECK_EQ(xpl_pool_get_state(f.parts.pool).queued, 2); // the equal ones have no job
    set_barrier(false);
    check_answer(&f, &first, "1", "computed");
    check_answer(&f, &equal[0], "1", "joined");
    check_answer(&f, &equal[1], "1", "joined");
    check_answer(&f, &other, "2", "computed");
    check_answer(&f, &anew, "1", "computed");
    CHECK_EQ(tool.renders, 3);
    CHECK_EQ(tool.makes, 2); // `other` has the product of `first`; `anew` bypasses it
    CHECK_EQ(engine_stats(&f).joined, 2);
    end(&f);
}

// Once a job has an outcome nobody joins or cancels it, although its waiters are still called back.
static void test_delivered(void) {
    struct fixture f;
    struct asker first, last, later;
    start(&f, 2, 8, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &last); // the last one is called first
    last.holds = true;
    set_barrier(false);
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (!last.calls)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    CHECK_EQ(first.calls, 0);
    pthread_mutex_unlock(&mu);
    xpl_engine_cancel(first.ticket); // too late
    xpl_engine_cancel(last.ticket);
    ask(&f, "1", &later);
    check_answer(&f, &later, "1", "memory");
    pthread_mutex_lock(&mu);
    last.holds = false;
    pthread_mutex_unlock(&mu);
    check_answer(&f, &first, "1", "computed");
    check_answer(&f, &last, "1", "joined");
    CHECK_EQ(engine_stats(&f).cancelled, 0);
    CHECK_EQ(engine_stats(&f).joined, 1);
    end(&f);
}

// ---- refusing ----

static void test_full_queue(void) {
    struct fixture f;
    struct asker running, queued, equal, refused;
    start(&f, 1, 1, &usual);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    ask(&f, "2", &queued);
    ask(&f, "3", &refused);
    CHECK_EQ(refused.calls, 1); // at once
    CHECK(refused.retry_ms > 0);
    xpl_engine_cancel(refused.ticket); // it has its outcome
    check_failure(&refused, XPL_RESOURCE_EXHAUSTED, "--max-concurrent-requests");
    ask(&f, "2", &equal); // needs no place
    CHECK_EQ(equal.calls, 0);
    set_barrier(false);
    check_answer(&f, &running, "1", "computed");
    check_answer(&f, &queued, "2", "computed");
    check_answer(&f, &equal, "2", "joined");
    ask(&f, "3", &refused);
    check_answer(&f, &refused, "3", "computed");
    CHECK_EQ(engine_stats(&f).refused, 1);
    CHECK_EQ(engine_stats(&f).cancelled, 0);
    end(&f);
}

// --memory-total: one job may run whatever it needs, two only within the limit.
static void test_memory_total(void) {
    struct fixture f;
    struct asker running, refused;
    struct xpl_engine_options o = usual;
    o.memory_total = 1;
    start(&f, 2, 4, &o);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    CHECK(engine_stats(&f).in_flight_bytes > o.memory_total);
    ask(&f, "2", &refused);
    wait_done(&refused);
    CHECK_STATUS(refused.code, XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(refused.retry_ms > 0);
    xpl_engine_set_options(f.engine, &usual);
    ask(&f, "2", &refused);
    wait_inside(2);
    set_barrier(false);
    check_answer(&f, &running, "1", "computed");
    check_answer(&f, &refused, "2", "computed");
    CHECK_EQ(engine_stats(&f).refused, 1);
    end(&f);
}

// ---- giving up ----

static void cancel(struct asker *a) {
    xpl_engine_cancel(a->ticket);
    CHECK_EQ(a->calls, 1); // at once
    check_failure(a, XPL_CANCELLED, "cancelled");
}

static void test_cancel(void) {
    struct fixture f;
    struct asker running, queued, joined, again;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    ask(&f, "1", &joined);
    ask(&f, "2", &queued);
    cancel(&queued);
    cancel(&running); // somebody else still waits for the job
    CHECK_EQ(joined.calls, 0);
    cancel(&joined);
    ask(&f, "1", &again); // does not join what nobody waits for
    wait_stopped(1);
    wait_inside(1);
    set_barrier(false);
    check_answer(&f, &again, "1", "computed");
    CHECK_EQ(tool.renders, 2); // number 2 was never begun
    CHECK_EQ(engine_stats(&f).cancelled, 3);
    CHECK_EQ(engine_stats(&f).computed, 1);
    end(&f);
}

// One of two who share a job goes; the other one gets the answer.
static void test_cancel_one(void) {
    struct fixture f;
    struct asker first, second;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &second);
    cancel(&first);
    set_barrier(false);
    check_answer(&f, &second, "1", "joined");
    CHECK_EQ(tool.renders, 1);
    CHECK_EQ(tool.stopped, 0);
    end(&f);
}

// Each has a limit of his own, whoever began the job.  False when the machine was too slow to tell.
static bool check_deadlines(void) {
    struct fixture f;
    struct asker early, late;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &early);
    const uint64_t asked = xpl_clock_ns();
    wait_inside(1);
    xpl_engine_sweep(f.engine); // an hour is not over
    CHECK_EQ(early.calls, 0);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200 * (long)MS}, NULL);
    struct xpl_engine_options o = usual;
    const uint64_t began = xpl_clock_ns();
    ask(&f, "1", &late);
    o.request_timeout_ns = began - asked - 1;
    xpl_engine_set_options(f.engine, &o);
    xpl_engine_sweep(f.engine);
    const bool in_time = xpl_clock_ns() - began <= o.request_timeout_ns;
    CHECK_EQ(early.calls, 1);
    check_failure(&early, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    CHECK_EQ(engine_stats(&f).cancelled, 0);
    if (in_time) {
        CHECK_EQ(late.calls, 0);
        CHECK_EQ(engine_stats(&f).timed_out, 1);
        set_barrier(false);
        check_answer(&f, &late, "1", "joined");
    } else {
        set_barrier(false);
        wait_done(&late);
    }
    end(&f);
    return in_time;
}

static void test_deadline(void) {
    int tries = 1;
    while (!check_deadlines())
        CHECK(tries++ < 20);
    // With nobody left the work stops.
    struct fixture f;
    struct asker a;
    struct xpl_engine_options o = usual;
    o.request_timeout_ns = MS;
    start(&f, 1, 4, &o);
    set_barrier(true);
    ask(&f, "1", &a);
    wait_inside(1);
    let_time_pass();
    xpl_engine_sweep(f.engine);
    CHECK_EQ(a.calls, 1);
    wait_stopped(1);
    check_failure(&a, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    xpl_engine_sweep(f.engine); // the job is not there any more
    CHECK_EQ(engine_stats(&f).timed_out, 1);
    end(&f);
}

// A request that is a part of something counts from when that began.
static void test_earlier_beginning(void) {
    struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    struct xpl_request *const q = request(&f, "1", true);
    q->since_ns = xpl_clock_ns() > 2 * HOUR_NS ? xpl_clock_ns() - 2 * HOUR_NS : 1;
    struct xpl_engine_options o = usual;
    if (q->since_ns == 1) o.request_timeout_ns = 1; // a machine that was started just now
    xpl_engine_set_options(f.engine, &o);
    submit(&f, q, &a);
    wait_inside(1);
    xpl_engine_sweep(f.engine);
    check_failure(&a, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    set_barrier(false);
    end(&f);
}

// What is kept between jobs counts, and a job that has the daemon for itself runs all the same.
static void test_held_memory(void) {
    struct fixture f;
    struct asker a;
    struct xpl_engine_options o = usual;
    o.memory_total = 1000;
    start(&f, 1, 4, &o);
    CHECK(xpl_engine_hold(f.engine, 600));
    CHECK(!xpl_engine_hold(f.engine, 401));
    CHECK_EQ(engine_stats(&f).refused, 1);
    CHECK(xpl_engine_hold(f.engine, 400));
    CHECK_EQ(engine_stats(&f).in_flight_bytes, 1000);
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    while (engine_stats(&f).in_flight_bytes != 1000) // the job ends after its answer
        usleep(1000);
    xpl_engine_release(f.engine, 600);
    CHECK(xpl_engine_hold(f.engine, 599));
    xpl_engine_release(f.engine, 999);
    CHECK_EQ(engine_stats(&f).in_flight_bytes, 0);
    end(&f);
}

// ---- ahead of requests ----

static void test_prefetch(void) {
    struct fixture f;
    struct xpl_host_status st;
    start(&f, 1, 4, &usual);
    struct xpl_snapshot *const s = xpl_catalogue_get(f.parts.catalogue);
    const struct xpl_host *const h = &s->sessions[0].hosts[0];
    xpl_engine_host_status(f.engine, h, &st);
    CHECK_EQ(st.state, XPL_HOST_NEW);
    CHECK(!xpl_engine_knows(f.engine, h));
    CHECK(xpl_engine_prefetch(f.engine, s, &s->sessions[0], h));
    wait_written(&f);
    xpl_engine_host_status(f.engine, h, &st);
    CHECK_EQ(st.state, XPL_HOST_STORED);
    CHECK(xpl_engine_knows(f.engine, h));
    CHECK(!xpl_engine_prefetch(f.engine, s, &s->sessions[0], h)); // nothing to do
    CHECK_EQ(engine_stats(&f).prefetched, 1);
    CHECK_EQ(engine_stats(&f).conversions, 2); // statistics of ops, and the time breakdown
    xpl_snapshot_unref(s);
    end(&f);
}

static void test_stop_background(void) {
    struct fixture f;
    start(&f, 1, 4, &usual);
    struct xpl_snapshot *const s = xpl_catalogue_get(f.parts.catalogue);
    xpl_engine_stop_background(f.engine);
    CHECK(!xpl_engine_prefetch(f.engine, s, &s->sessions[0], &s->sessions[0].hosts[0]));
    CHECK_EQ(engine_stats(&f).prefetched, 0);
    xpl_snapshot_unref(s);
    end(&f);
}

int main(void) {
    xpl_cond_init(&changed);
    test_sources();
    test_versions();
    test_changed_file();
    test_failure();
    test_changing_file();
    test_stages_of_devices();
    test_one_import();
    test_kept_import();
    test_cut_import();
    test_joining();
    test_delivered();
    test_full_queue();
    test_memory_total();
    test_held_memory();
    test_earlier_beginning();
    test_cancel();
    test_cancel_one();
    test_deadline();
    test_prefetch();
    test_stop_background();
    return 0;
}
