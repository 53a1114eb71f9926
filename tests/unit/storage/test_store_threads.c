// SPDX-License-Identifier: Apache-2.0
// One writer, many readers, a checker, and damage in the middle: no race, no wrong byte, no hang.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "storage/store/store.h"
#include "tests/unit/storage/store_helpers.h"

enum { KEYS = 64, READERS = 6, ROUNDS = 250, LIMIT = 4 << 20 };

static struct xpl_store *store;
static atomic_bool stop;
static atomic_uint_fast64_t hits;

static size_t len_of(uint64_t i) {
    return (size_t)(i * 1543 % 40000);
}

static void *reader(void *arg) {
    uint64_t i = (uintptr_t)arg, found = 0;
    while (!atomic_load(&stop)) {
        i = (i * 1103515245u + 12345u) % 1000003u;
        struct test_key k;
        found += get_n(store, i % KEYS, len_of(i % KEYS));
        (void)xpl_store_has(store, key_of(i % KEYS, &k));
        (void)xpl_store_has_rows(store, &k.profiles[0], XPL_ROWS_OPS, 7);
        if (i % 16 == 0) {
            struct xpl_store_stats st;
            char text[400];
            xpl_store_get_stats(store, &st);
            CHECK(st.used_bytes <= LIMIT);
            (void)xpl_store_next_notice(store, text, sizeof text);
        }
    }
    atomic_fetch_add(&hits, found);
    return NULL;
}

static bool give_up(void *ctx) {
    (void)ctx;
    return atomic_load(&stop);
}

static void *checker(void *arg) {
    (void)arg;
    while (!atomic_load(&stop)) {
        struct xpl_error err = {0};
        const xpl_status_t st = xpl_store_check(store, give_up, NULL, &err);
        CHECK(st == XPL_OK || st == XPL_CANCELLED || st == XPL_DATA_LOSS || st == XPL_UNAVAILABLE ||
              st == XPL_FAILED_PRECONDITION || st == XPL_INTERNAL);
    }
    return NULL;
}

static void damage(void) {
    const int fd = open(in_dir("cache.db"), O_WRONLY);
    CHECK(fd >= 0);
    char junk[8192];
    memset(junk, 0x5a, sizeof junk);
    for (off_t page = 1; page < 40; page++)
        CHECK(pwrite(fd, junk, sizeof junk, page * (off_t)sizeof junk) == (ssize_t)sizeof junk);
    CHECK(close(fd) == 0);
}

static void any(xpl_status_t st) {
    (void)st;
}

static void *other_writer(void *arg) { // writers take turns by themselves
    (void)arg;
    while (!atomic_load(&stop)) {
        any(put_n(store, 1, len_of(1), NULL));
        any(maintain(store, 0, NULL));
        const struct timespec pause = {.tv_nsec = 3000000};
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static void write_all(void) {
    const struct xpl_op_row op = {.name = XPL_STR("op")};
    const struct xpl_rows rows = {.ops = &op, .n_ops = 1};
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct test_key k;
        struct xpl_error err = {0};
        if (round == ROUNDS / 3) damage();
        if (xpl_store_begin(store, &err) != XPL_OK) continue;
        for (uint64_t j = 0; j < 4; j++)
            any(put_n(store, (round * 4 + j) % KEYS, len_of((round * 4 + j) % KEYS), NULL));
        (void)key_of(round % KEYS, &k);
        any(xpl_store_put_rows(store, &k.profiles[0], 7, &rows, NULL));
        if (round % 10 == 9)
            xpl_store_rollback(store);
        else
            any(xpl_store_commit(store, NULL));
    }
}

// The store works to the end: a write that failed under load succeeds soon.
static void write_at_last(void) {
    struct xpl_error err = {0};
    for (int waited_ms = 0; put_n(store, 1, len_of(1), &err) != XPL_OK; waited_ms += 10) {
        fprintf(stderr, "after %d ms: %s\n", waited_ms, err.msg);
        CHECK(waited_ms < 30000);
        err = (struct xpl_error){0};
        const struct timespec pause = {.tv_nsec = 10000000};
        (void)nanosleep(&pause, NULL);
    }
}

int main(void) {
    pthread_t t[READERS + 2];
    new_dir();
    store = open_store(LIMIT);
    for (uintptr_t i = 0; i < READERS; i++)
        CHECK(pthread_create(&t[i], NULL, reader, (void *)i) == 0);
    CHECK(pthread_create(&t[READERS], NULL, checker, NULL) == 0);
    CHECK(pthread_create(&t[READERS + 1], NULL, other_writer, NULL) == 0);
    write_all();
    write_at_last();
    atomic_store(&stop, true);
    for (int i = 0; i < READERS + 2; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK(get_n(store, 1, len_of(1)));
    struct xpl_store_stats st;
    xpl_store_get_stats(store, &st);
    CHECK(st.rebuilds >= 1);
    fprintf(stderr, "%llu hits, %llu rebuilds, %llu read errors\n",
            (unsigned long long)atomic_load(&hits), (unsigned long long)st.rebuilds,
            (unsigned long long)st.read_errors);
    CHECK(atomic_load(&hits) > 0);
    xpl_store_close(store);
    remove_dir();
    return 0;
}
