// SPDX-License-Identifier: Apache-2.0
// What a front asks the database about a session of thousands of hosts: which profiles their files
// hold, which of their products are stored, jobs for those that are not, and what became of these.
// The database has 200,000 other results, half of the hosts' products, and all of their files.
// Usage: bench_lookup [N]; without N, 4096 hosts of two products.

#include "base/arena.h"
#include "base/clock.h"
#include "storage/store/jobs.h"
#include "tests/cluster/pg_server.h"

enum { ROUNDS = 7 };

static struct xpl_store *store;
static struct xpl_fingerprint *files;
static const struct xpl_fingerprint **file_list;
static struct xpl_profile_id *ids;
static struct xpl_store_key *keys;
static struct xpl_job_file *job_files;
static bool *known, *has;
static char (*names)[32];
static size_t n_hosts;

static const char *const products[] = {"op_stats", "devices"};

static void *make(size_t n, size_t size) {
    void *const p = calloc(n, size);
    CHECK(p);
    return p;
}

static void make_hosts(void) {
    files = make(n_hosts, sizeof *files);
    file_list = make(n_hosts, sizeof *file_list);
    ids = make(n_hosts, sizeof *ids);
    names = make(n_hosts, sizeof *names);
    known = make(n_hosts, sizeof *known);
    keys = make(2 * n_hosts, sizeof *keys);
    job_files = make(n_hosts, sizeof *job_files);
    has = make(2 * n_hosts, sizeof *has);
    for (size_t i = 0; i < n_hosts; i++) {
        files[i] = (struct xpl_fingerprint){.dev = 1, .ino = i + 1, .size = 500000, .mtime_ns = 7};
        file_list[i] = &files[i];
        memcpy(ids[i].bytes, &files[i].ino, sizeof files[i].ino);
        (void)snprintf(names[i], sizeof names[i], "host%05zu", i);
        job_files[i] = (struct xpl_job_file){xpl_str_from(names[i]), 500000, 7};
        for (size_t k = 0; k < 2; k++) {
            keys[2 * i + k] = (struct xpl_store_key){.kind = XPL_STORE_PRODUCT,
                                                     .name = xpl_str_from(products[k]),
                                                     .version = 7,
                                                     .profiles = &ids[i],
                                                     .n_profiles = 1};
        }
    }
}

static void fill(void) {
    struct xpl_error err = {0};
    CHECK_OK(xpl_store_begin(store, &err), &err);
    for (size_t i = 0; i < n_hosts; i++) {
        CHECK_OK(xpl_store_put_file(store, &files[i], &ids[i], &err), &err);
        CHECK_OK(xpl_store_put(store, &keys[2 * i], (xpl_bytes_t){(const uint8_t *)"x", 1},
                               (xpl_bytes_t){0}, &err),
                 &err);
    }
    CHECK_OK(xpl_store_commit(store, &err), &err);
    pg_sql("postgres",
           "INSERT INTO results(digest, key, kind, name, options, version, n_hosts,"
           " size_bytes, checksum, made_at_ms, used_at_ms) SELECT"
           " decode(md5(i::text),'hex'), decode(md5(i::text),'hex'), 'product', 'other',"
           " '', 1, 1, 100, 1, 1, 1 FROM generate_series(1,200000) i; ANALYZE");
}

static double since_ms(uint64_t began) {
    return (double)(xpl_clock_ns() - began) / 1e6;
}

static void measure(double best[4]) {
    struct xpl_error err = {0};
    const struct xpl_job_ops *const jobs = xpl_store_jobs(store);
    memset(known, 0, n_hosts * sizeof *known);
    uint64_t began = xpl_clock_ns();
    xpl_store_find_files(store, file_list, n_hosts, ids, known);
    const double files_ms = since_ms(began);
    began = xpl_clock_ns();
    xpl_store_has_many(store, keys, 2 * n_hosts, has);
    const double has_ms = since_ms(began);
    for (size_t i = 0; i < n_hosts; i++)
        CHECK(known[i] && has[2 * i] && !has[2 * i + 1]);
    const struct xpl_job_product product = {xpl_str_from(products[1]), 7, 0};
    static size_t ends[1 << 16];
    struct xpl_job_request r = {.session = XPL_STR("session"),
                                .products = &product,
                                .files = job_files,
                                .ends = ends,
                                .n_products = 1,
                                .n_files = n_hosts};
    struct xpl_job_progress p;
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    for (size_t at = 0; at < n_hosts;) {
        at = at + XPL_JOB_MAX_FILES < n_hosts ? at + XPL_JOB_MAX_FILES : n_hosts;
        ends[r.n_batches++] = at;
    }
    began = xpl_clock_ns();
    CHECK_OK(jobs->enqueue(store, &r, &err), &err);
    const double enqueue_ms = since_ms(began);
    began = xpl_clock_ns();
    CHECK_OK(jobs->inspect(store, &r.digest, &arena, &p, &err), &err);
    const double inspect_ms = since_ms(began);
    CHECK_EQ(p.n_unclaimed, (int64_t)r.n_batches);
    xpl_arena_fini(&arena);
    const double now[4] = {files_ms, has_ms, enqueue_ms, inspect_ms};
    for (int i = 0; i < 4; i++)
        if (best[i] <= 0 || now[i] < best[i]) best[i] = now[i];
    printf("%zu hosts: files %.1f ms, products %.1f ms, queued %.1f ms, together %.1f ms;"
           " inspected %.1f ms\n",
           n_hosts, files_ms, has_ms, enqueue_ms, files_ms + has_ms + enqueue_ms, inspect_ms);
    CHECK_OK(jobs->withdraw(store, &r.digest, &err), &err);
}

int main(int argc, char **argv) {
    struct xpl_error err = {0};
    double best[4] = {0};
    n_hosts = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 4096;
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url("postgres")};
    CHECK_OK(xpl_store_open(&o, &store, &err), &err);
    make_hosts();
    fill();
    for (int i = 0; i < ROUNDS; i++)
        measure(best);
    printf("least: files %.1f, products %.1f, queued %.1f, together %.1f; inspected %.1f ms\n",
           best[0], best[1], best[2], best[0] + best[1] + best[2], best[3]);
    xpl_store_close(store);
    return 0;
}
