// SPDX-License-Identifier: Apache-2.0
// server/engine/engine: where an answer comes from, and how often a file is imported for it.
#include "tests/unit/server/engine_fixture.h"

// ---- where answers come from ----

// Whether the answer is in memory.
static bool in_memory(struct fixture *f, const char *number, bool saved) {
    struct xpl_request *const q = request(f, number, saved);
    struct xpl_tool_data *const d = xpl_engine_lookup(f->engine, q);
    xpl_request_free(q);
    if (d) xpl_object_unref(&d->object);
    return d != NULL;
}

static void test_sources(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    CHECK(!in_memory(&f, "1", true));
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    // The key contains the options; a request that bypasses the cache finds nothing.
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
}

// A stored answer is found only by the versions of all that it was made from: their sum is not
// enough.
static void test_versions(void) {
    XPL_AUTO(end) struct fixture f;
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
}

// Another file under the same name: nothing that was made of the old one is given.
static void test_changed_file(void) {
    XPL_AUTO(end) struct fixture f;
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
}

// Waiters get a failure, which is not cached.
static void test_failure(void) {
    XPL_AUTO(end) struct fixture f;
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

// The stages include reading the profile to learn whether it has a device.
static void test_stages_of_devices(void) {
    XPL_AUTO(end) struct fixture f;
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

// Simultaneous requests for tools share one import of the bundle.
static void test_one_import(void) {
    XPL_AUTO(end) struct fixture f;
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
    CHECK_EQ(glob(in_dir("traces/*.0.2-*.imported_xspace"), 0, NULL, &g), 0);
    FILE *const file = fopen(g.gl_pathv[0], "r+b");
    CHECK(file && fseek(file, 100, SEEK_SET) == 0 && fputc(255, file) == 255 && fclose(file) == 0);
    globfree(&g);
    view_bundle(&f, 2);
    CHECK_EQ(engine_stats(&f).imports, 2);
    end(&f);
    files_dir = NULL;
}

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
    CHECK_EQ(glob(in_dir("traces/*.0.2-*.imported_xspace"), 0, NULL, &g), 0);
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
    return 0;
}
