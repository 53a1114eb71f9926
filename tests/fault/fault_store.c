// SPDX-License-Identifier: Apache-2.0
// Every allocation of the storage layer, ours and SQLite's, fails once: each time the calls end
// cleanly, nothing wrong comes back, nothing is lost, and the next run finds the store working.
#include <sqlite3.h>

#include "analysis/formats/format.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/identity.h"
#include "storage/sessions/uploads.h"
#include "storage/store/files.h"
#include "storage/store/store.h"
#include "tests/fault/sqlite_faults.h"
#include "tests/unit/storage/store_helpers.h"

// --- The scenario ---

static char top[32], logdir[64], ranks[64], runs[64]; // ranks: two traces of one job
static unsigned failures;                             // calls that reported one

static bool ok(xpl_status_t st, const struct xpl_error *err) {
    if (st == XPL_OK || st == XPL_NOT_FOUND) return st == XPL_OK;
    failures++;
    // Nothing but memory is missing; without the store's writer, puts are refused.
    const bool expected = st == XPL_RESOURCE_EXHAUSTED || st == XPL_FAILED_PRECONDITION;
    if (!expected) fprintf(stderr, "%s: %s\n", xpl_status_name(st), err->msg);
    CHECK(expected);
    CHECK_EQ(err->code, st);
    CHECK(err->msg[0]);
    return false;
}

static void get(struct xpl_store *s, uint64_t i, size_t len) {
    struct test_key k;
    struct xpl_store_value v = {0};
    struct xpl_error err = {0};
    if (!ok(xpl_store_get(s, key_of(i, &k), 1 << 20, &v, &err), &err)) return;
    CHECK_EQ(v.len, len);
    for (size_t at = 0; at < len; at++)
        CHECK_EQ(v.data[at], byte_of(i, at));
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
}

static void put_some(struct xpl_store *s) {
    const struct xpl_op_row op = {.name = XPL_STR("add"), .module = XPL_STR("jit_f")};
    const struct xpl_kernel_row kernel = {.name = XPL_STR("gemm"), .op_name = XPL_STR("add")};
    const struct xpl_step_row step = {.name = XPL_STR("7"), .step_num = 7};
    const struct xpl_rows rows = {.ops = &op, .n_ops = 1, .kernels = &kernel, .n_kernels = 1};
    const struct xpl_memory_row use = {XPL_STR("bfc"), 5, 6};
    const struct xpl_rows times = {
        .kind = XPL_ROWS_TIMES, .steps = &step, .n_steps = 1, .memory = &use, .n_memory = 1};
    struct test_key k;
    struct xpl_error err = {0};
    if (!ok(xpl_store_begin(s, &err), &err)) return;
    (void)ok(put_n(s, 1, 20000, &err), &err);
    (void)ok(put_n(s, 5, 300, &err), &err);
    (void)key_of(1, &k);
    (void)ok(xpl_store_put_file(s, &k.files[0], &k.profiles[0], &err), &err);
    (void)ok(xpl_store_put_rows(s, &k.profiles[0], 7, &rows, &err), &err);
    (void)ok(xpl_store_put_rows(s, &k.profiles[0], 7, &times, &err), &err);
    (void)ok(xpl_store_commit(s, &err), &err);
}

static struct xpl_store *open_or_not(void) {
    const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir, .limit_bytes = 1 << 20};
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    return ok(xpl_store_open(&o, &s, &err), &err) ? s : NULL;
}

static void put_sessions(struct xpl_store *s, const struct xpl_snapshot *snap) {
    static uint64_t generation = 1000;
    struct xpl_session se[2] = {snap->sessions[0], snap->sessions[1]};
    struct xpl_snapshot other = *snap; // with something to write
    struct xpl_error err = {0};
    se[1].path = ++generation % 2 ? XPL_STR("here") : XPL_STR("there");
    se[1].changed = other.generation = other.removed = generation;
    other.sessions = se;
    (void)ok(xpl_store_put_catalogue(s, &other, NULL, &err), &err);
}

static bool is_file_1(void *arg, const struct xpl_fingerprint *file,
                      const struct xpl_profile_id *profile) {
    const struct test_key *const k = arg;
    if (xpl_fingerprint_eq(file, &k->files[0])) CHECK(xpl_profile_id_eq(profile, &k->profiles[0]));
    return true;
}

static void list_files(struct xpl_store *s) {
    struct test_key k;
    (void)key_of(1, &k);
    (void)xpl_store_list_files(s, 10, is_file_1, &k);
}

static void use_store(struct xpl_store *s, const struct xpl_snapshot *snap) {
    struct xpl_error err = {0};
    get(s, 1, 20000);
    put_some(s);
    get(s, 1, 20000);
    get(s, 5, 300);
    list_files(s);
    if (snap) put_sessions(s, snap);
    const struct xpl_store_version current = {XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 7};
    const struct xpl_store_maintenance m = {.current = &current, .n_current = 1, .gone_s = 3600};
    (void)ok(xpl_store_maintain(s, &m, NULL, &err), &err);
}

// A secret that could not be written is this process's: ids are right, and of no use to others.
static void use_identity(struct xpl_store *s, const struct xpl_snapshot *snap) {
    struct xpl_identity *id = NULL;
    struct xpl_source *src = NULL;
    struct xpl_profile_id first, again;
    struct xpl_error err = {0};
    bool known;
    if (!ok(xpl_identity_new(s, &id, &err), &err)) return;
    xpl_identity_preload(id);
    const struct xpl_host *const h = &xpl_snapshot_find(snap, XPL_STR("run"))->hosts[0];
    if (ok(xpl_snapshot_open(snap, h, 0, &src, &err), &err)) {
        if (ok(xpl_identity_hash(id, src, NULL, NULL, &first, &err), &err)) {
            xpl_identity_save(id);
            if (xpl_identity_lookup(id, &h->fingerprint, &again))
                CHECK(xpl_profile_id_eq(&first, &again));
        }
        (void)ok(xpl_identity_find(id, src, NULL, NULL, &known, &again, &err), &err);
        xpl_source_free(src);
    }
    xpl_identity_free(id);
}

static void use_uploads(void) {
    struct xpl_uploads *u = xpl_uploads_new(in_dir("incoming"), 10);
    struct xpl_error err = {0};
    int fd = -1;
    if (!u) return;
    if (ok(xpl_upload_open(u, 1, &fd, &err), &err)) {
        CHECK_EQ(close(fd), 0);
        (void)ok(xpl_upload_grow(u, 1, 5, &err), &err);
        xpl_upload_release(u, 1);
    }
    xpl_uploads_sweep(u, 100);
    xpl_uploads_free(u);
}

static void use_files(void) {
    struct xpl_store_files *f = NULL;
    struct xpl_source *src = NULL;
    struct xpl_error err = {0};
    const struct xpl_store_file_key key = {.profile = {{1}}, .kind = "trace", .version = 1};
    if (!ok(xpl_store_files_new(store_dir, 1000, &f, &err), &err)) return;
    if (ok(xpl_store_files_put(f, &key, (xpl_bytes_t){(const uint8_t *)"abc", 3}, &err), &err) &&
        ok(xpl_store_files_open(f, &key, &src, &err), &err))
        CHECK_EQ(xpl_source_bytes(src).len, 3);
    xpl_source_free(src);
    xpl_store_files_remove(f, &key);
    xpl_store_files_free(f);
}

static void use_source(const struct xpl_snapshot *snap) {
    struct xpl_source *src = NULL;
    struct xpl_error err = {0};
    const struct xpl_session *se = xpl_snapshot_find(snap, XPL_STR("run"));
    CHECK(se);
    CHECK_EQ(se->n_hosts, 2);
    if (!ok(xpl_snapshot_open(snap, &se->hosts[0], 0, &src, &err), &err)) return;
    CHECK_EQ(xpl_source_bytes(src).len, 1);
    CHECK_OK(xpl_source_verify(src, NULL), NULL);
    xpl_source_free(src);
}

static void use_inputs(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    char run[128];
    const char *paths[] = {run};
    struct xpl_inputs in = {0};
    struct xpl_error err = {0};
    (void)snprintf(run, sizeof run, "%s/plugins/profile/run", logdir);
    if (ok(xpl_inputs_from_paths(paths, 1, xpl_format_match, &a, &in, &err), &err))
        CHECK_EQ(in.n_hosts, 2);
    (void)snprintf(run, sizeof run, "%s", ranks);
    err = (struct xpl_error){0};
    if (ok(xpl_inputs_from_paths(paths, 1, xpl_format_match, &a, &in, &err), &err)) {
        CHECK_EQ(in.n_hosts, 2);
        CHECK_STR(in.hosts[1].name, "rank 1");
    }
}

static struct xpl_catalogue *use_catalogue(const char *dir) {
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = dir, .match = xpl_format_match};
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    if (!ok(xpl_catalogue_new(&o, &c, &err), &err)) return NULL;
    xpl_catalogue_mark(c, XPL_STR("plugins"));
    (void)ok(xpl_catalogue_scan(c, XPL_SCAN_MARKED, NULL, &err), &err);
    return c;
}

// --- The sweep: with a store that is opened each time, or one that stays open ---

static struct xpl_store *open_one;
static struct xpl_snapshot *open_snap;

// A file that is left out without memory is read by a later scan.
static void use_ranks(void) {
    struct xpl_catalogue *const c = use_catalogue(ranks);
    struct xpl_snapshot *const snap = c ? xpl_catalogue_get(c) : NULL;
    if (snap && !snap->is_partial) {
        CHECK_EQ(snap->n_sessions, 1);
        CHECK_EQ(snap->sessions[0].n_hosts, 2);
        CHECK_STR(snap->sessions[0].hosts[1].name, "rank 1");
    }
    xpl_snapshot_unref(snap);
    xpl_catalogue_free(c);
}

// A profile is a letter: it begins that many seconds after 1970, and the next one overlaps it.
static bool identify_run(xpl_bytes_t profile, struct xpl_profile_identity *ret) {
    const int64_t begin_ns = profile.ptr[0] * INT64_C(1000000000);
    *ret = (struct xpl_profile_identity){.rank = -1,
                                         .world_size = -1,
                                         .begin_ns = begin_ns,
                                         .written_ns = begin_ns + INT64_C(1500000000),
                                         .program = 1};
    return true;
}

static int64_t read_begin(xpl_bytes_t profile) {
    struct xpl_profile_identity id;
    return identify_run(profile, &id) ? id.begin_ns : 0;
}

// Runs are joined as with memory, or not at all.
static void use_joined(void) {
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = runs,
                                            .match = xpl_format_match,
                                            .captured_ns = read_begin,
                                            .identify_run = identify_run};
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    if (!ok(xpl_catalogue_new(&o, &c, &err), &err)) return;
    struct xpl_snapshot *snap = xpl_catalogue_get(c);
    if (!snap->is_partial) {
        const bool all_read = snap->n_sessions == 2;
        CHECK(all_read || snap->n_sessions == 3);
        CHECK_STR(snap->sessions[0].name, all_read ? "a+joined" : "a");
        CHECK_STR(snap->sessions[snap->n_sessions - 1].name, "z");
        failures += !all_read;
        const struct xpl_session *both = NULL;
        const xpl_status_t st = xpl_snapshot_find_all(&snap, XPL_STR("z,b"), &both, &err);
        CHECK(st != XPL_NOT_FOUND);
        if (ok(st, &err)) CHECK_EQ(both->n_hosts, 2);
    }
    xpl_snapshot_unref(snap);
    xpl_catalogue_free(c);
}

static void everything(void) {
    struct xpl_catalogue *c = use_catalogue(logdir);
    struct xpl_snapshot *snap = c ? xpl_catalogue_get(c) : NULL;
    if (snap) {
        CHECK_EQ(snap->n_sessions, 2);
        use_source(snap);
    }
    use_inputs();
    use_ranks();
    use_joined();
    use_files();
    use_uploads();
    struct xpl_store *s = open_or_not();
    if (s) use_store(s, snap);
    if (s && snap) use_identity(s, snap);
    xpl_store_close(s);
    xpl_snapshot_unref(snap);
    xpl_catalogue_free(c);
}

static void opening(void) {
    xpl_store_close(open_or_not());
}

static void opening_new(void) {
    (void)unlink(in_dir("cache.db"));
    opening();
}

static void using(void) {
    use_store(open_one, open_snap);
}

static void checking(void) {
    struct xpl_error err = {0};
    (void)ok(xpl_store_check(open_one, NULL, NULL, &err), &err);
}

// What a run must leave behind: `live` allocations, and no file set aside: lack of memory is not
// damage.
static void check_left(int64_t live) {
    if (!open_one) {
        CHECK_EQ(xpl_fault_live(), live);
        CHECK_EQ(sqlite3_memory_used(), 0);
    }
    CHECK_EQ(count_files("cache.db.broken"), 0);
}

// Runs `what` until each allocation of ours, or one of each stack of SQLite's, has failed.
static void sweep(const char *name, void (*what)(void), bool ours) {
    uint64_t failing = 0, quiet = 0;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    bool has_failed = true;
    for (int64_t from = 0, i = 0; has_failed; i++) {
        failures = 0;
        xpl_fault_reset();
        if (ours)
            xpl_fault_fail_on((uint64_t)i);
        else
            sqlite_fail_from(from);
        what();
        from = sqlite_failed() + 1;
        has_failed = ours ? xpl_fault_count() > (uint64_t)i : from > 0;
        xpl_fault_reset();
        failing += failures > 0;
        quiet += failures == 0;
        check_left(live);
        failures = 0;
        if (has_failed && i % 16 == 0) what(); // it works again
        CHECK_EQ(failures, 0);
    }
    fprintf(stderr, "%s, %s: %llu failures reported, %llu absorbed\n", name,
            ours ? "ours" : "SQLite's", (unsigned long long)failing, (unsigned long long)quiet);
    CHECK(failing > 0);
}

static void make_logdir(void) {
    char cmd[500];
    (void)snprintf(top, sizeof top, "%s", "/tmp/xpl-fault-logs-XXXXXX");
    CHECK(mkdtemp(top));
    (void)snprintf(logdir, sizeof logdir, "%s/logs", top);
    (void)snprintf(ranks, sizeof ranks, "%s/ranks", top);
    (void)snprintf(runs, sizeof runs, "%s/runs", top);
    (void)snprintf(
        cmd, sizeof cmd,
        "cd %s && mkdir ranks logs && for i in 0 1; do "
        "printf '{\"schemaVersion\":1,\"traceEvents\":[]}' > ranks/rank$i.json; done && "
        "for i in a b z; do mkdir -p runs/plugins/profile/$i && "
        "printf $i > runs/plugins/profile/$i/h$i.xplane.pb; done && "
        "cd logs && mkdir -p plugins/profile/run other && printf x > other/h.xplane.pb && "
        "printf x > plugins/profile/run/a.xplane.pb && "
        "ln -s a.xplane.pb plugins/profile/run/b.xplane.pb",
        top);
    CHECK_EQ(system(cmd), 0);
}

int main(void) {
    wrap_sqlite();
    new_dir();
    make_logdir();
    sweep("everything", everything, true);
    sweep("opening a new one", opening_new, false);
    sweep("opening", opening, false);
    struct xpl_catalogue *c = use_catalogue(logdir);
    open_snap = xpl_catalogue_get(c);
    open_one = open_or_not();
    CHECK(open_one);
    CHECK_EQ(xpl_store_role(open_one), XPL_STORE_WRITER);
    sweep("using", using, true);
    sweep("using", using, false);
    sweep("checking", checking, false);
    using();
    CHECK_EQ(failures, 0);
    CHECK_EQ(xpl_store_role(open_one), XPL_STORE_WRITER);
    xpl_store_close(open_one);
    xpl_snapshot_unref(open_snap);
    xpl_catalogue_free(c);
    CHECK_EQ(xpl_fault_live(), 0);
    CHECK_EQ(sqlite3_memory_used(), 0);
    char cmd[100];
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", top);
    CHECK_EQ(system(cmd), 0);
    remove_dir();
    return 0;
}
