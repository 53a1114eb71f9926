// SPDX-License-Identifier: Apache-2.0
// server/engine/writer: results are kept under the ids of the files that they were made from, after
// those were hashed; of a file that is another one by now nothing is kept; what a start takes over
// of the store needs no lookup.
#include "server/engine/writer.h"

#include <time.h>

#include "analysis/formats/format.h"
#include "base/buf.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"
#include "tests/unit/storage/store_helpers.h"

static const char answer[] = "an answer";

struct fixture {
    struct xpl_store *store;
    struct xpl_identity *identity;
    struct xpl_catalogue *catalogue;
    struct xpl_snapshot *snapshot;
    const struct xpl_host *host;
    struct xpl_store_writer *writer;
    struct xpl_object owner; // of the answer's bytes
    bool busy;
};

static void owner_ended(struct xpl_object *o) {
    (void)o;
    FAIL_TEST("the owner's own reference was given back");
}

static void write_profile(size_t n, char fill) {
    FILE *f = fopen(in_dir("logs/h.xplane.pb"), "wb");
    CHECK(f);
    for (size_t i = 0; i < n; i++)
        CHECK(fputc(fill, f) == fill);
    CHECK_EQ(fclose(f), 0);
}

// The daemon's start, over a directory with one profile.
static void start(struct fixture *f) {
    struct xpl_error err = {0};
    *f = (struct fixture){.owner = {.refs = 1, .destroy = owner_ended}};
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = in_dir("logs"), .match = xpl_format_match};
    CHECK_OK(xpl_catalogue_new(&o, &f->catalogue, &err), &err);
    f->snapshot = xpl_catalogue_get(f->catalogue);
    CHECK_EQ(f->snapshot->n_sessions, 1);
    f->host = &f->snapshot->sessions[0].hosts[0];
    f->store = open_store(0);
    CHECK_OK(xpl_identity_new(f->store, &f->identity, &err), &err);
    const struct xpl_store_writer_options w = {.store = f->store, .identity = f->identity};
    CHECK((f->writer = xpl_store_writer_new(&w)));
}

static struct xpl_store_writer_stats stop_writer(struct fixture *f) {
    struct xpl_store_writer_stats st = {0};
    for (int i = 0; i < 12000; i++) {
        xpl_store_writer_get_stats(f->writer, &st);
        if (st.writes + st.dropped + st.failed > 0) break;
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    xpl_store_writer_free(f->writer, 3000);
    f->writer = NULL;
    return st;
}

static void end(struct fixture *f) {
    xpl_store_writer_free(f->writer, 3000);
    CHECK_EQ(atomic_load(&f->owner.refs), 1); // the writer holds nothing any more
    xpl_identity_free(f->identity);
    xpl_store_close(f->store);
    xpl_snapshot_unref(f->snapshot);
    xpl_catalogue_free(f->catalogue);
}

static void put_answer(struct fixture *f) {
    const struct xpl_store_writer_key key = {.kind = XPL_STORE_ANSWER,
                                             .name = XPL_STR("tool"),
                                             .options = XPL_STR("o=1"),
                                             .version = 1,
                                             .snapshot = f->snapshot,
                                             .hosts = &f->host,
                                             .n_hosts = 1};
    xpl_store_writer_put_bytes(f->writer, &key, &f->owner,
                               (xpl_bytes_t){(const uint8_t *)answer, sizeof answer},
                               (xpl_bytes_t){0});
}

static bool has_answer(const struct fixture *f, const struct xpl_profile_id *id) {
    const struct xpl_store_key key = {.kind = XPL_STORE_ANSWER,
                                      .name = XPL_STR("tool"),
                                      .options = XPL_STR("o=1"),
                                      .version = 1,
                                      .profiles = id,
                                      .n_profiles = 1};
    struct xpl_store_value v;
    if (xpl_store_get(f->store, &key, 1000, &v, NULL) != XPL_OK) return false;
    CHECK_BYTES(v.data, v.len, answer, sizeof answer);
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
    return true;
}

// Different times distinguish changes.
static void let_time_pass(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void begin_dir(void) {
    new_dir();
    CHECK_EQ(mkdir(in_dir("logs"), 0700), 0);
    write_profile(5000, 'a');
    let_time_pass();
}

static void test_kept(void) {
    struct fixture f;
    struct xpl_profile_id id;
    begin_dir();
    start(&f);
    CHECK(!xpl_identity_lookup(f.identity, &f.host->fingerprint, &id)); // not hashed before
    put_answer(&f);
    const struct xpl_store_writer_stats st = stop_writer(&f);
    CHECK_EQ(st.writes, 1);
    CHECK_EQ(st.hashed_bytes, 5000);
    CHECK(xpl_identity_lookup(f.identity, &f.host->fingerprint, &id) && has_answer(&f, &id));
    end(&f);
    // The next start knows the file and its products without hashing.
    start(&f);
    put_answer(&f);
    CHECK_EQ(stop_writer(&f).hashed_bytes, 0);
    CHECK(xpl_identity_lookup(f.identity, &f.host->fingerprint, &id) && has_answer(&f, &id));
    end(&f);
    remove_dir();
}

static const struct xpl_store_ops *whole_ops;
static int n_lost; // so many still come

static xpl_status_t lose(struct xpl_store *s, const struct xpl_store_key *key, xpl_bytes_t data,
                         xpl_bytes_t meta, struct xpl_error *err) {
    if (n_lost-- <= 0) return whole_ops->put(s, key, data, meta, err);
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the connection is closed");
}

static xpl_status_t put_files(struct xpl_store *s, const struct xpl_job_put *puts, size_t n,
                              struct xpl_error *err) {
    for (size_t i = 0; i < n; i++)
        XPL_TRY(xpl_store_put_file(s, puts[i].file, puts[i].key.profiles, err));
    return XPL_OK;
}

// A shared store loses its connection and has another one at once: it then writes the pending rows;
// not for ever.
static void test_lost(int lost, bool is_kept) {
    static const struct xpl_job_ops shared = {.put = put_files};
    struct fixture f;
    struct xpl_profile_id id;
    begin_dir();
    start(&f);
    xpl_store_writer_free(f.writer, 3000);
    whole_ops = f.store->ops;
    struct xpl_store_ops lossy = *whole_ops;
    lossy.put = lose;
    lossy.jobs = &shared;
    n_lost = lost;
    f.store->ops = &lossy;
    const struct xpl_store_writer_options w = {.store = f.store, .identity = f.identity};
    CHECK((f.writer = xpl_store_writer_new(&w)));
    put_answer(&f);
    const struct xpl_store_writer_stats st = stop_writer(&f);
    CHECK_EQ(st.writes, is_kept);
    CHECK_EQ(st.failed, !is_kept);
    f.store->ops = whole_ops;
    CHECK(xpl_identity_lookup(f.identity, &f.host->fingerprint, &id));
    CHECK_EQ(has_answer(&f, &id), is_kept);
    end(&f);
    remove_dir();
}

// The file was replaced between the answer and the hash: it would be kept for other bytes.
static void test_changed(void) {
    struct fixture f;
    struct xpl_profile_id id;
    begin_dir();
    start(&f);
    write_profile(5000, 'b');
    let_time_pass();
    put_answer(&f);
    const struct xpl_store_writer_stats st = stop_writer(&f);
    CHECK_EQ(st.writes, 0);
    CHECK_EQ(st.dropped, 1);
    CHECK(!xpl_identity_lookup(f.identity, &f.host->fingerprint, &id));
    CHECK(!xpl_store_has_size(f.store, 5000));
    end(&f);
    remove_dir();
}

static bool is_busy(void *arg) {
    return *(const bool *)arg;
}

// Requests come first: the file is hashed in a quiet moment, and after a second in any.
static void test_waits_for_quiet(void) {
    struct fixture f;
    struct timespec before, after;
    begin_dir();
    start(&f);
    f.busy = true;
    xpl_store_writer_set_busy(f.writer, is_busy, &f.busy);
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &before), 0);
    put_answer(&f);
    CHECK_EQ(stop_writer(&f).writes, 1);
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &after), 0);
    const int64_t ms =
        (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    CHECK(ms >= 900);
    end(&f);
    remove_dir();
}

// ---- rows ----

static void write_host(const char *path, char fill) {
    FILE *f = fopen(in_dir(path), "wb");
    CHECK(f);
    CHECK(fprintf(f, "profile %c", fill) > 0);
    CHECK_EQ(fclose(f), 0);
}

struct rows_of {
    struct fixture *f;
    const struct xpl_host *before; // whose rows were put before; NULL: none
    bool parted;                   // those are to be read, and these are not there yet
};

static xpl_status_t make_rows(const void *value, xpl_bytes_t encoded, struct xpl_arena *arena,
                              struct xpl_rows *ret, struct xpl_error *err) {
    struct rows_of *const r = (struct rows_of *)(uintptr_t)value;
    struct xpl_profile_id id;
    (void)encoded, (void)arena, (void)err;
    *ret = (struct xpl_rows){.device_type = XPL_STR("toy")};
    if (r->before && xpl_identity_lookup(r->f->identity, &r->before->fingerprint, &id))
        r->parted = xpl_store_has_rows(r->f->store, &id, XPL_ROWS_OPS, 0);
    return XPL_OK;
}

static void put_rows(struct fixture *f, const struct xpl_host *h, struct rows_of *r) {
    const struct xpl_store_writer_key key = {.kind = XPL_STORE_PRODUCT,
                                             .name = XPL_STR("toy"),
                                             .version = 1,
                                             .snapshot = f->snapshot,
                                             .hosts = &h,
                                             .n_hosts = 1};
    const struct xpl_store_writer_product p = {.owner = &f->owner, .value = r, .rows = make_rows};
    xpl_store_writer_put_rows(f->writer, &key, &p);
}

// A host whose file has changed does not part the rows of the others.
static void test_rows_together(void) {
    struct fixture f;
    struct xpl_profile_id id;
    begin_dir();
    write_host("logs/a.xplane.pb", 'a');
    write_host("logs/b.xplane.pb", 'b');
    let_time_pass();
    start(&f);
    const struct xpl_host *const hosts = f.snapshot->sessions[0].hosts;
    CHECK_EQ(f.snapshot->sessions[0].n_hosts, 3);
    f.busy = true;
    xpl_store_writer_set_busy(f.writer, is_busy, &f.busy);
    write_host("logs/b.xplane.pb", 'c');
    let_time_pass();
    struct rows_of rows[3] = {{.f = &f}, {.f = &f}, {.f = &f, .before = &hosts[0]}};
    for (int i = 0; i < 3; i++)
        put_rows(&f, &hosts[i], &rows[i]);
    xpl_store_writer_set_busy(f.writer, NULL, NULL);
    struct xpl_store_writer_stats st = {0};
    for (int i = 0; i < 4000 && st.writes + st.dropped < 3; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        xpl_store_writer_get_stats(f.writer, &st);
    }
    CHECK_EQ(st.writes, 2);
    CHECK_EQ(st.dropped, 1);
    CHECK(!rows[2].parted);
    for (int i = 0; i < 3; i += 2)
        CHECK(xpl_identity_lookup(f.identity, &hosts[i].fingerprint, &id) &&
              xpl_store_has_rows(f.store, &id, XPL_ROWS_OPS, 0));
    end(&f);
    remove_dir();
}

static xpl_status_t encode_toy(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    (void)value, (void)err;
    CHECK(xpl_buf_room(out, 1));
    out->p[out->n++] = 1;
    return XPL_OK;
}

static bool has_rows(const struct fixture *f, const struct xpl_host *h) {
    struct xpl_profile_id id;
    return xpl_identity_lookup(f->identity, &h->fingerprint, &id) &&
           xpl_store_has_rows(f->store, &id, XPL_ROWS_OPS, 0);
}

// After a flush earlier puts can be read, though a request runs all the time: neither hashes nor
// rows wait for an idle moment then. No flush waits for later puts, or for nothing.
static void test_flush(void) {
    enum { LONG_MS = 8000 }; // less than rows wait without it
    struct fixture f;
    begin_dir();
    write_host("logs/a.xplane.pb", 'a');
    let_time_pass();
    start(&f);
    const struct xpl_host *const hosts = f.snapshot->sessions[0].hosts;
    f.busy = true;
    xpl_store_writer_set_busy(f.writer, is_busy, &f.busy);
    xpl_store_writer_flush(f.writer, LONG_MS);
    struct rows_of rows = {.f = &f};
    const struct xpl_host *const host = &hosts[0];
    const struct xpl_store_writer_key key = {.kind = XPL_STORE_PRODUCT,
                                             .name = XPL_STR("toy"),
                                             .version = 1,
                                             .snapshot = f.snapshot,
                                             .hosts = &host,
                                             .n_hosts = 1};
    const struct xpl_store_writer_product p = {
        .owner = &f.owner, .value = &rows, .encode = encode_toy, .rows = make_rows};
    xpl_store_writer_put_product(f.writer, &key, &p);
    put_rows(&f, &hosts[1], &rows);
    xpl_store_writer_flush(f.writer, LONG_MS);
    CHECK(has_rows(&f, &hosts[0]) && has_rows(&f, &hosts[1]));
    struct xpl_store_writer_stats st;
    xpl_store_writer_get_stats(f.writer, &st);
    CHECK_EQ(st.queued, 0);
    xpl_store_writer_set_busy(f.writer, NULL, NULL);
    end(&f);
    remove_dir();
}

int main(void) {
    test_kept();
    test_lost(1, true);
    test_lost(2, false);
    test_flush();
    test_changed();
    test_waits_for_quiet();
    test_rows_together();
    return 0;
}
