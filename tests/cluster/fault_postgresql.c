// SPDX-License-Identifier: Apache-2.0
// Every allocation of the store on PostgreSQL fails once (ours; libpq has its own): each time the
// calls end cleanly, nothing wrong comes back, nothing is lost, and the next run finds it working.
#include "storage/sessions/catalogue.h"
#include "storage/store/captures.h"
#include "storage/store/jobs.h"
#include "storage/store/listings.h"
#include "tests/cluster/pg_server.h"
#include "tests/unit/storage/store_helpers.h"

enum { LARGE = 2500000 };

static unsigned failures; // calls that reported one

static bool ok(xpl_status_t st, const struct xpl_error *err) {
    if (st == XPL_OK) return true;
    failures++;
    // Without a connection puts are refused.
    const bool expected = st == XPL_RESOURCE_EXHAUSTED || st == XPL_FAILED_PRECONDITION;
    if (!expected) fprintf(stderr, "%s: %s\n", xpl_status_name(st), err->msg);
    CHECK(expected && err->code == st && err->msg[0]);
    return false;
}

// Right, or a miss, or no memory.
static void get(struct xpl_store *s, uint64_t i, size_t len) {
    struct test_key k;
    struct xpl_store_value v = {0};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_store_get(s, key_of(i, &k), LARGE, &v, &err);
    failures += st != XPL_OK;
    if (st != XPL_OK) return;
    CHECK_EQ(v.len, len);
    CHECK(v.data[0] == byte_of(i, 0) && v.data[len - 1] == byte_of(i, len - 1));
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
}

static bool is_known(void *arg, const struct xpl_fingerprint *file,
                     const struct xpl_profile_id *profile) {
    (void)arg;
    (void)profile;
    return file->ino != 0;
}

static void put_all(struct xpl_store *s) {
    const struct xpl_op_row op = {.name = XPL_STR("op"), .module = XPL_STR("m")};
    const struct xpl_kernel_row kernel = {.name = XPL_STR("k")};
    const struct xpl_step_row step = {.name = XPL_STR("7")};
    const struct xpl_rows rows = {.ops = &op,
                                  .n_ops = 1,
                                  .kernels = &kernel,
                                  .n_kernels = 1,
                                  .device_type = XPL_STR("TPU"),
                                  .device_cores = 4};
    const struct xpl_rows times = {.kind = XPL_ROWS_TIMES, .steps = &step, .n_steps = 1};
    struct test_key k;
    struct xpl_error err = {0};
    (void)key_of(5, &k);
    if (ok(xpl_store_begin(s, &err), &err)) {
        err = (struct xpl_error){0};
        (void)ok(xpl_store_put_file(s, &k.files[0], &k.profiles[0], &err), &err);
        (void)ok(xpl_store_put_rows(s, &k.profiles[0], 7, &rows, &err), &err);
        (void)ok(xpl_store_put_rows(s, &k.profiles[0], 7, &times, &err), &err);
        (void)ok(xpl_store_commit(s, &err), &err);
    }
    for (uint64_t i = 5; i < 7; i++) { // of eight profiles, and of one; in chunks, and inline
        err = (struct xpl_error){0};
        (void)ok(put_n(s, i, i == 5 ? LARGE : 300, &err), &err);
    }
}

static void use_catalogue(struct xpl_store *s) {
    struct test_key k;
    struct xpl_error err = {0};
    static uint64_t changed;
    (void)key_of(5, &k);
    const struct xpl_host host = {
        .name = XPL_STR("h"), .path = XPL_STR("p"), .fingerprint = k.files[0]};
    const struct xpl_session se = {.name = XPL_STR("run"),
                                   .path = XPL_STR("run"),
                                   .hosts = &host,
                                   .n_hosts = 1,
                                   .changed = ++changed};
    const struct xpl_snapshot snap = {
        .sessions = &se, .n_sessions = 1, .generation = changed, .removed = changed};
    (void)ok(xpl_store_put_catalogue(s, &snap, NULL, &err), &err);
    err = (struct xpl_error){0};
    const struct xpl_store_version current = {XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 7};
    const struct xpl_store_maintenance m = {.current = &current, .n_current = 1, .gone_s = 3600};
    (void)ok(xpl_store_maintain(s, &m, NULL, &err), &err);
}

// A job from its beginning to its end, of a separate host each time.
static void use_jobs(struct xpl_store *s) {
    static const struct xpl_store_version makes = {XPL_STORE_PRODUCT, {"op_stats", 8}, 7};
    static int n_used;
    char host[16];
    (void)snprintf(host, sizeof host, "h%d", n_used++);
    const struct xpl_job_ops *const ops = xpl_store_jobs(s);
    const struct xpl_job_product product = {makes.name, 7, 0};
    const struct xpl_job_file file = {.host = xpl_str_from(host)};
    const size_t end = 1;
    struct xpl_job_request request = {.session = XPL_STR("run"),
                                      .products = &product,
                                      .files = &file,
                                      .ends = &end,
                                      .n_products = 1,
                                      .n_files = 1,
                                      .n_batches = 1};
    const struct xpl_job_offer offer = {&makes, 1, true, 60000};
    const struct xpl_job_daemon me = {XPL_STR("m"), XPL_STR("worker"), XPL_STR("1"), 0, 1};
    struct xpl_job_progress progress;
    struct xpl_job_stats stats;
    struct xpl_job_fleet fleet;
    struct xpl_job *job = NULL;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    bool kept;
    memcpy(request.digest.bytes, host, sizeof host);
    failures += ops->enqueue(s, &request, NULL) != XPL_OK;
    // Those that a failure left over, too.
    while (ops->claim(s, &offer, &arena, &job, NULL) == XPL_OK && job) {
        const struct xpl_job_end done = {.claim = job->claim};
        failures += ops->renew(s, &job->claim, 1, &kept, NULL) != XPL_OK;
        failures += ops->conclude(s, &done, NULL) != XPL_OK;
    }
    failures += ops->inspect(s, &request.digest, &arena, &progress, NULL) != XPL_OK;
    failures += ops->find_aside(s, request.session, &arena, &progress, NULL) != XPL_OK;
    failures += ops->withdraw(s, &request.digest, NULL) != XPL_OK;
    failures += ops->report(s, &me, 1000, NULL) != XPL_OK;
    failures += ops->get_stats(s, &stats, NULL) != XPL_OK;
    failures += ops->list(s, &arena, &fleet, NULL) != XPL_OK;
}

// A schedule, a turn of it with its target and its session, and the end of both.
static void use_captures(struct xpl_store *s) {
    const struct xpl_captures_ops *const ops = xpl_store_captures(s);
    const struct xpl_history_host host = {.target = XPL_STR("a:1"), .state = 1};
    const struct xpl_history_session made = {.name = XPL_STR("run"), .ino = 5};
    const struct xpl_history_schedule one = {.request = {(const uint8_t *)"r", 1}};
    const xpl_str_t target = XPL_STR("a:1");
    struct xpl_history_capture c = {.state = 1, .hosts = &host, .n_hosts = 1}, *list;
    struct xpl_history_schedule *schedules = NULL;
    struct xpl_history_session *sessions;
    struct xpl_kept_leases kept;
    struct xpl_schedule_state *states;
    struct xpl_capture_lost *lost;
    struct xpl_target_holder holder;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    uint64_t id = 0;
    size_t n = 0, n_sessions;
    bool any;
    failures += ops->add_schedule(s, &one, 0, &id, NULL) != XPL_OK;
    failures += ops->claim(s, 9, 60000, &arena, &schedules, &n, NULL) != XPL_OK;
    for (size_t i = 0; i < n; i++) { // those that a failure left over, too
        const struct xpl_schedule_claim claim = {schedules[i].id, schedules[i].fence};
        const struct xpl_target_taker who = {1, claim.id, true, 60000};
        c.schedule_id = claim.id;
        c.state = XPL_HISTORY_RUNNING;
        c.made = NULL;
        failures += ops->claim_targets(s, &who, &target, 1, &arena, &holder, NULL) != XPL_OK;
        if (ops->begin(s, &c, &claim, 60000, &c.id, NULL) != XPL_OK) {
            failures++;
            continue;
        }
        c.state = 2;
        c.made = &made;
        failures += ops->put(s, &c, true, NULL) != XPL_OK;
        failures += ops->sessions(s, claim.id, &arena, &sessions, &n_sessions, NULL) != XPL_OK;
        failures += ops->set_schedule(s, &schedules[i], NULL) != XPL_OK;
        failures += ops->give_back(s, &claim, 1, NULL) != XPL_OK;
        failures += ops->delete_schedule(s, claim.id, NULL) != XPL_OK;
    }
    failures += ops->adopt(s, &c, NULL) != XPL_OK;
    failures += ops->list(s, 0, 9, &arena, &list, &n, NULL) != XPL_OK;
    failures += ops->renew(s, 60000, &arena, &kept, NULL) != XPL_OK;
    failures += ops->inspect(s, &arena, &states, &n, &any, NULL) != XPL_OK;
    failures += ops->reap(s, &arena, &lost, &n, NULL) != XPL_OK;
}

static void use_listings(struct xpl_store *s) {
    const struct xpl_listing_ops *const ops = xpl_store_listings(s);
    const struct xpl_listing_place place = {{1}};
    const xpl_bytes_t body = {(const uint8_t *)"body", 4};
    enum xpl_scanner who = XPL_SCANNER_NOBODY;
    struct xpl_shared_listing got;
    struct xpl_changed_listings changed;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    failures += ops->claim(s, &place, true, 60000, &who, NULL) != XPL_OK;
    failures += ops->put(s, &place, XPL_STR("dir"), body, 1, NULL) != XPL_OK;
    const xpl_status_t st = ops->get(s, &place, XPL_STR("dir"), &arena, &got, NULL);
    failures += st != XPL_OK;
    CHECK(st != XPL_OK || (got.body.len == 4 && memcmp(got.body.ptr, "body", 4) == 0));
    failures += ops->find_changed(s, &place, 0, &arena, &changed, NULL) != XPL_OK;
}

// Whatever fails, a missing entry is never reported as present.
static void use_many(struct xpl_store *s) {
    struct test_key k[2];
    const struct xpl_store_key keys[] = {*key_of(6, &k[0]), *key_of(77777, &k[1])};
    const struct xpl_fingerprint *const files[] = {&k[0].files[0], &k[1].files[0]};
    struct xpl_profile_id ids[2];
    bool has[2], known[2] = {false, false};
    xpl_store_has_many(s, keys, 2, has);
    xpl_store_find_files(s, files, 2, ids, known);
    failures += !has[0];
    CHECK(!has[1] && !known[1]);
}

static void use(struct xpl_store *s) {
    struct test_key k;
    struct xpl_profile_id id;
    put_all(s);
    get(s, 5, LARGE);
    get(s, 6, 300);
    use_catalogue(s);
    use_jobs(s);
    use_captures(s);
    use_listings(s);
    failures += !xpl_store_has(s, key_of(6, &k));
    (void)xpl_store_find_file(s, &k.files[0], &id);
    use_many(s);
    failures += !xpl_store_list_files(s, 10, is_known, NULL);
}

static void everything(void) {
    const struct xpl_store_options o = {
        .size = sizeof o, .dir = "", .limit_bytes = 6 << 20, .url = pg_url("postgres")};
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    if (ok(xpl_store_open(&o, &s, &err), &err)) use(s);
    xpl_store_close(s);
}

int main(void) {
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    uint64_t failing = 0, absorbed = 0;
    everything();
    CHECK_EQ(failures, 0);
    for (uint64_t i = 0;; i++) {
        failures = 0;
        const int64_t live = xpl_fault_live();
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        everything();
        const uint64_t count = xpl_fault_count();
        xpl_fault_reset();
        // Blocks are counted for each thread: connections come from another one, at most five.
        CHECK(xpl_fault_live() <= live && xpl_fault_live() >= live - 5);
        *(failures ? &failing : &absorbed) += 1;
        if (count <= i) break; // none was left to fail
        failures = 0;
        if (i % 8 == 0) everything(); // it works again
        CHECK_EQ(failures, 0);
    }
    fprintf(stderr, "%llu failures reported, %llu absorbed\n", (unsigned long long)failing,
            (unsigned long long)absorbed);
    CHECK(failing > 20);
    return 0;
}
