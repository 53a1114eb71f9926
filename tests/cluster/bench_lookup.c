// SPDX-License-Identifier: Apache-2.0
// What a front asks the database about a session of thousands of hosts: which profiles their files
// hold, which of their products are stored, jobs for those that are not, and what became of these.
// The database has 200,000 other results, half of the hosts' products, and all of their files.
// Usage: bench_lookup [N]; without N, 4096 hosts of two products.
#include <inttypes.h>

#include "base/clock.h"
#include "storage/store/jobs.h"
#include "tests/cluster/pg_server.h"

enum { ROUNDS = 7 };

static struct xpl_store *store;
static struct xpl_fingerprint *files;
static const struct xpl_fingerprint **file_list;
static struct xpl_profile_id *ids;
static struct xpl_store_key *keys;
static struct xpl_job_spec *specs;
static struct xpl_job_digest *digests;
static enum xpl_job_state *states;
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
    specs = make(2 * n_hosts, sizeof *specs);
    digests = make(2 * n_hosts, sizeof *digests);
    states = make(2 * n_hosts, sizeof *states);
    has = make(2 * n_hosts, sizeof *has);
    for (size_t i = 0; i < n_hosts; i++) {
        files[i] = (struct xpl_fingerprint){.dev = 1, .ino = i + 1, .size = 500000, .mtime_ns = 7};
        file_list[i] = &files[i];
        memcpy(ids[i].bytes, &files[i].ino, sizeof files[i].ino);
        (void)snprintf(names[i], sizeof names[i], "host%05zu", i);
        for (size_t k = 0; k < 2; k++) {
            keys[2 * i + k] = (struct xpl_store_key){.kind = XPL_STORE_PRODUCT,
                                                     .name = xpl_str_from(products[k]),
                                                     .version = 7,
                                                     .profiles = &ids[i],
                                                     .n_profiles = 1};
            specs[2 * i + k] = (struct xpl_job_spec){.session = XPL_STR("session"),
                                                     .host = xpl_str_from(names[i]),
                                                     .size_bytes = 500000,
                                                     .mtime_ns = 7,
                                                     .product = xpl_str_from(products[k]),
                                                     .version = 7};
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
    size_t n_missing = 0;
    memset(known, 0, n_hosts * sizeof *known);
    uint64_t began = xpl_clock_ns();
    xpl_store_find_files(store, file_list, n_hosts, ids, known);
    const double files_ms = since_ms(began);
    began = xpl_clock_ns();
    xpl_store_has_many(store, keys, 2 * n_hosts, has);
    const double has_ms = since_ms(began);
    for (size_t i = 0; i < n_hosts; i++)
        CHECK(known[i] && has[2 * i] && !has[2 * i + 1]);
    static struct xpl_job_spec *missing;
    if (!missing) missing = make(n_hosts, sizeof *missing);
    for (size_t i = 0; i < 2 * n_hosts; i++)
        if (!has[i]) missing[n_missing++] = specs[i];
    began = xpl_clock_ns();
    CHECK_OK(jobs->enqueue(store, missing, n_missing, digests, &err), &err);
    const double enqueue_ms = since_ms(began);
    began = xpl_clock_ns();
    CHECK_OK(jobs->inspect(store, digests, n_missing, states, &err), &err);
    const double inspect_ms = since_ms(began);
    for (size_t i = 0; i < n_missing; i++)
        CHECK_EQ(states[i], XPL_JOB_QUEUED);
    const double now[4] = {files_ms, has_ms, enqueue_ms, inspect_ms};
    for (int i = 0; i < 4; i++)
        if (best[i] <= 0 || now[i] < best[i]) best[i] = now[i];
    printf("%zu hosts: files %.1f ms, products %.1f ms, queued %.1f ms, together %.1f ms;"
           " inspected %.1f ms\n",
           n_hosts, files_ms, has_ms, enqueue_ms, files_ms + has_ms + enqueue_ms, inspect_ms);
    CHECK_OK(jobs->withdraw(store, digests, n_missing, &err), &err);
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
