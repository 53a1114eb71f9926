// SPDX-License-Identifier: Apache-2.0
// Which files of a directory are one session, and what their hosts are called.
#include "storage/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/processor_time.h"

enum { MAX_FILES = 12 };
static const int64_t kStart = 1700000000000000000, kSecond = 1000000000;

struct files {
    struct xpl_process_file v[MAX_FILES];
    struct xpl_profile_identity ids[MAX_FILES];
    size_t n;
};

// A file WORKER[.TIME]; times are seconds since the start, -1: not known.
static void add(struct files *f, const char *worker, int rank, int world, double begin,
                double written) {
    struct xpl_profile_identity *const id = &f->ids[f->n];
    *id = (struct xpl_profile_identity){
        .rank = rank, .world_size = world, .worker_len = strlen(worker)};
    if (begin >= 0) id->begin_ns = kStart + (int64_t)(begin * (double)kSecond);
    if (written >= 0) id->written_ns = kStart + (int64_t)(written * (double)kSecond);
    f->v[f->n] = (struct xpl_process_file){.identity = id, .name = worker};
    f->n++;
}

// "0 0 1": the files' groups; then the hosts of each.
static void check_groups(struct files *f, const char *groups, const char *hosts) {
    char got[256] = "", names[512] = "";
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 16);
    const size_t n = xpl_processes_group(f->v, f->n);
    for (size_t i = 0; i < f->n; i++) {
        const struct xpl_process_group g = xpl_processes_of_group(f->v, f->n, f->v[i].group);
        xpl_str_t name;
        CHECK(f->v[i].group < n);
        CHECK(xpl_process_host(&f->v[i], &g, xpl_str_from(f->v[i].name), &a, &name));
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u", i ? " " : "",
                       f->v[i].group);
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.*s", i ? "," : "",
                       XPL_STR_FMT(name));
    }
    CHECK_STR(xpl_str_from(got), groups);
    CHECK_STR(xpl_str_from(names), hosts);
}

static void test_ranks(void) {
    struct files f = {0};
    add(&f, "b", 1, 8, 3, -1);
    add(&f, "a", 0, 8, 0, -1);
    add(&f, "c", 7, 8, 599, -1);
    check_groups(&f, "0 0 0", "rank 1,rank 0,rank 7");
    // The names of ranks have the width of the job's size, or of the greatest.
    f = (struct files){0};
    add(&f, "a", 0, 128, 0, -1);
    add(&f, "b", 1, -1, 0, -1);
    check_groups(&f, "0 0", "rank 000,rank 001");
    CHECK_EQ(xpl_processes_of_group(f.v, f.n, 0).n_ranks, 2);
    CHECK_EQ(xpl_processes_of_group(f.v, f.n, 0).world_size, 128);
    f = (struct files){0};
    add(&f, "a", 3, -1, -1, -1);
    add(&f, "b", 12, -1, -1, -1);
    check_groups(&f, "0 0", "rank 03,rank 12");
    // Processes of different programs.
    f = (struct files){0};
    add(&f, "a", -1, -1, 0, 5);
    add(&f, "b", -1, -1, 1, 6);
    add(&f, "c", -1, -1, 2, 7);
    f.ids[1].program = 1, f.ids[2].program = 2;
    check_groups(&f, "0 0 1", "a,b,c");
    // Jobs of different sizes.
    f = (struct files){0};
    add(&f, "a", 0, 2, 0, -1);
    add(&f, "b", 1, 4, 0, -1);
    check_groups(&f, "0 1", "rank 0,rank 1");
}

static void test_captures(void) {
    struct files f = {0};
    // Two ranks, captured three times; one has no file of the second time.
    add(&f, "w1", 1, 2, 0.1, 2);
    add(&f, "w0", 0, 2, 0, 2);
    add(&f, "w1", 1, 2, 100, 102);
    add(&f, "w0", 0, 2, 200, 202);
    add(&f, "w1", 1, 2, 199.9, 202);
    check_groups(&f, "0 0 1 2 2", "rank 1,rank 0,rank 1,rank 0,rank 1");
    // Without times the captures are in the order of names.
    f = (struct files){0};
    add(&f, "s5_r1", 1, 2, -1, -1);
    add(&f, "s5_r0", 0, 2, -1, -1);
    add(&f, "s9_r1", 1, 2, -1, -1);
    add(&f, "s9_r0", 0, 2, -1, -1);
    check_groups(&f, "0 0 1 1", "rank 1,rank 0,rank 1,rank 0");
    // One worker without a rank.
    f = (struct files){0};
    add(&f, "w", -1, -1, 0, 5);
    add(&f, "w", -1, -1, 30, 35);
    check_groups(&f, "0 1", "w,w");
    CHECK(!f.v[0].is_alone && !f.v[1].is_alone);
}

static void test_workers(void) {
    struct files f = {0};
    // Workers at the same time are one session, programs one after the other are not.
    add(&f, "w0", -1, -1, 0, 8);
    add(&f, "w1", -1, -1, 7, 15);
    add(&f, "later", -1, -1, 16, 20);
    check_groups(&f, "0 0 1", "w0,w1,later");
    CHECK(f.v[0].is_alone && f.v[2].is_alone);
    f = (struct files){0};
    add(&f, "before", -1, -1, -1, -1);
    add(&f, "after", -1, -1, -1, -1);
    check_groups(&f, "1 0", "before,after");
    // Servers of a model have jobs of their own, each with a rank 0.
    f = (struct files){0};
    add(&f, "h_10", 0, 1, 0, 5);
    add(&f, "h_11", 0, 1, 0.5, 5);
    add(&f, "h_10", 0, 1, 60, 65);
    check_groups(&f, "0 0 1", "h_10,h_11,rank 0");
}

static void test_unknown(void) {
    struct files f = {0};
    check_groups(&f, "", "");
    add(&f, "a", 0, 2, 0, -1);
    f.v[f.n++] = (struct xpl_process_file){.name = "xspace"};
    add(&f, "b", 0, 2, 5, -1);
    check_groups(&f, "0 0 1", "rank 0,xspace,rank 0");
}

// A directory full of copies of one file: 2^16 files are not each compared with 2^16 others.
static void test_copies(void) {
    enum { FILES = 1 << 16 };
    struct xpl_process_file *const v = calloc(FILES, sizeof *v);
    char(*const names)[16] = calloc(FILES, sizeof *names);
    struct xpl_profile_identity *const ids = calloc(FILES, sizeof *ids);
    CHECK(v && names && ids);
    for (size_t i = 0; i < FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu.json", i);
        ids[i] = (struct xpl_profile_identity){
            .rank = 0, .begin_ns = kStart, .written_ns = kStart, .worker_len = strlen(names[i])};
        v[i] = (struct xpl_process_file){.identity = &ids[i], .name = names[i]};
    }
    const double begin = processor_s();
    CHECK_EQ(xpl_processes_group(v, FILES), FILES / 256);
    CHECK(is_within(begin, 5));
    free(v);
    free(names);
    free(ids);
}

int main(void) {
    test_ranks();
    test_captures();
    test_workers();
    test_unknown();
    test_copies();
    return 0;
}
