// SPDX-License-Identifier: Apache-2.0
// Results whose bytes follow from their key, so that a wrong one is noticed wherever it comes from.
#ifndef XPL_TESTS_UNIT_STORAGE_STORE_HELPERS_H_
#define XPL_TESTS_UNIT_STORAGE_STORE_HELPERS_H_

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "storage/store/store.h"
#include "tests/check.h"

static char store_dir[64];

// In memory where there is such a place: the tests sync a lot.
static inline void new_dir(void) {
    const bool shm = access("/dev/shm", W_OK) == 0;
    (void)snprintf(store_dir, sizeof store_dir, "%s/xpl-store-XXXXXX", shm ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(store_dir));
}

static inline void remove_dir(void) {
    char cmd[200];
    (void)snprintf(cmd, sizeof cmd, "chmod -R u+rwx %s; rm -rf %s", store_dir, store_dir);
    CHECK_EQ(system(cmd), 0);
}

static inline const char *in_dir(const char *file) {
    static char buf[4][192];
    static int turn;
    char *p = buf[turn++ & 3];
    (void)snprintf(p, sizeof buf[0], "%s/%s", store_dir, file);
    return p;
}

// Number of files in the directory whose names start so.
static inline int count_files(const char *prefix) {
    int n = 0;
    DIR *d = opendir(store_dir);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    CHECK_EQ(closedir(d), 0);
    return n;
}

static inline struct xpl_store_stats stats_of(struct xpl_store *s) {
    struct xpl_store_stats st;
    xpl_store_get_stats(s, &st);
    return st;
}

static inline struct xpl_store *open_store(uint64_t limit) {
    const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir, .limit_bytes = limit};
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_store_open(&o, &s, &err);
    if (st != XPL_OK) fprintf(stderr, "%s\n", err.msg);
    CHECK_OK(st, NULL);
    return s;
}

// For XPL_AUTO.
static inline void drop_store(struct xpl_store *const *s) {
    xpl_store_close(*s);
}

// The next notice must have this word in it.
static inline void expect_notice(struct xpl_store *s, const char *word) {
    char buf[400] = "(none)";
    const bool any = xpl_store_next_notice(s, buf, sizeof buf);
    if (!any || !strstr(buf, word)) fprintf(stderr, "notice: %s; expected: %s\n", buf, word);
    CHECK(any && strstr(buf, word));
}

static inline void expect_quiet(struct xpl_store *s) {
    char buf[400];
    const bool any = xpl_store_next_notice(s, buf, sizeof buf);
    if (any) fprintf(stderr, "unexpected notice: %s\n", buf);
    CHECK(!any);
}

// Key number i: one file, or several for every fifth.
struct test_key {
    struct xpl_store_key key;
    struct xpl_profile_id profiles[8];
    struct xpl_fingerprint files[8]; // in which they lie
    xpl_str_t hosts[8];
    char options[24];
};

static inline const struct xpl_store_key *key_of(uint64_t i, struct test_key *k) {
    *k = (struct test_key){.key = {.kind = i % 2 ? XPL_STORE_ANSWER : XPL_STORE_PRODUCT,
                                   .name = i % 2 ? XPL_STR("kernel_stats") : XPL_STR("op_stats"),
                                   .version = 7,
                                   .n_profiles = i % 5 ? 1 : 8}};
    for (size_t f = 0; f < k->key.n_profiles; f++) {
        const uint64_t id = i * 8 + f + 1;
        memcpy(k->profiles[f].bytes, &id, sizeof id);
        k->files[f] = (struct xpl_fingerprint){
            .dev = UINT64_MAX - 1, .ino = i * 8 + f + 1, .size = i, .mtime_ns = -5, .ctime_ns = 99};
        k->hosts[f] = XPL_STR("host");
    }
    (void)snprintf(k->options, sizeof k->options, "n=%llu", (unsigned long long)i);
    k->key.options = xpl_str_from(k->options);
    k->key.profiles = k->profiles;
    k->key.hosts = i % 5 ? NULL : k->hosts;
    return &k->key;
}

// What one writer thread does now and then; nothing has a current version.
static inline xpl_status_t maintain(struct xpl_store *s, int64_t gone_s, bool *ret_more) {
    const struct xpl_store_maintenance m = {.gone_s = gone_s};
    return xpl_store_maintain(s, &m, ret_more, NULL);
}

static inline uint8_t byte_of(uint64_t i, size_t at) {
    return (uint8_t)((i * 2654435761u + at * 40503u + (at >> 8)) >> 3);
}

static inline uint8_t *data_of(uint64_t i, size_t len) {
    uint8_t *p = malloc(len + 1);
    CHECK(p);
    for (size_t at = 0; at < len; at++)
        p[at] = byte_of(i, at);
    return p;
}

static inline xpl_status_t put_n(struct xpl_store *s, uint64_t i, size_t len,
                                 struct xpl_error *err) {
    struct test_key k;
    uint8_t *p = data_of(i, len);
    char meta[32];
    const int n = snprintf(meta, sizeof meta, "meta %llu", (unsigned long long)i);
    const xpl_bytes_t m = {(const uint8_t *)meta, i % 3 ? (size_t)n : 0};
    const xpl_status_t st = xpl_store_put(s, key_of(i, &k), (xpl_bytes_t){p, len}, m, err);
    free(p);
    return st;
}

// True when there; then its bytes must be right.
static inline bool get_n(struct xpl_store *s, uint64_t i, size_t len) {
    struct test_key k;
    struct xpl_store_value v = {0};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_store_get(s, key_of(i, &k), (size_t)1 << 30, &v, &err);
    if (st != XPL_OK) {
        CHECK(!v.data && !v.meta);
        CHECK_STATUS(st, XPL_NOT_FOUND, NULL);
        CHECK_OK(err.code, &err);
        return false;
    }
    CHECK_EQ(v.len, len);
    for (size_t at = 0; at < len; at++)
        CHECK_EQ(v.data[at], byte_of(i, at));
    char meta[32];
    const int n = snprintf(meta, sizeof meta, "meta %llu", (unsigned long long)i);
    CHECK_EQ(v.meta_len, i % 3 ? n : 0);
    CHECK(v.meta_len == 0 || memcmp(v.meta, meta, v.meta_len) == 0);
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
    return true;
}

#endif
