// SPDX-License-Identifier: Apache-2.0
// Profile ids: the same bytes are the same profile, under whatever path, after a restart, a copy or
// a link; other bytes never are.
#include "storage/sessions/identity.h"

#include <fcntl.h>
#include <time.h>

#include "storage/sessions/source.h"
#include "tests/unit/storage/store_helpers.h"

static void write_file(const char *name, size_t n, uint8_t salt) {
    FILE *f = fopen(in_dir(name), "wb");
    CHECK(f);
    for (size_t i = 0; i < n; i++)
        CHECK(fputc((int)(uint8_t)(i * 31 + (i >> 8) + salt), f) != EOF);
    CHECK_EQ(fclose(f), 0);
}

static struct xpl_source *open_file(const char *name) {
    struct xpl_source *src = NULL;
    CHECK_OK(xpl_source_open(AT_FDCWD, in_dir(name), 0, &src, NULL), NULL);
    return src;
}

static struct xpl_identity *new_identity(struct xpl_store *s) {
    struct xpl_identity *i = NULL;
    CHECK_OK(xpl_identity_new(s, &i, NULL), NULL);
    return i;
}

static struct xpl_profile_id hash_file(struct xpl_identity *i, const char *name) {
    struct xpl_source *src = open_file(name);
    struct xpl_profile_id id;
    CHECK_OK(xpl_identity_hash(i, src, NULL, NULL, &id, NULL), NULL);
    xpl_source_free(src);
    return id;
}

// What a daemon does with a file before it answers.
static bool find(struct xpl_identity *i, const char *name, struct xpl_profile_id *ret) {
    struct xpl_source *src = open_file(name);
    bool known = false;
    CHECK_OK(xpl_identity_find(i, src, NULL, NULL, &known, ret, NULL), NULL);
    xpl_source_free(src);
    return known;
}

static void test_content(void) {
    static const size_t sizes[] = {0, 1, 3, 16, 17, 128, 129, 240, 241, 1024, 70000, 5 << 20};
    enum { N = sizeof sizes / sizeof *sizes };
    struct xpl_profile_id ids[N];
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    for (size_t k = 0; k < N; k++) {
        write_file("a", sizes[k], 0);
        write_file("b", sizes[k], 0);
        write_file("c", sizes[k], 1);
        ids[k] = hash_file(i, "a");
        const struct xpl_profile_id same = hash_file(i, "b"), other = hash_file(i, "c");
        CHECK(xpl_profile_id_eq(&ids[k], &same));
        CHECK(sizes[k] == 0 || !xpl_profile_id_eq(&ids[k], &other));
        for (size_t j = 0; j < k; j++)
            CHECK(!xpl_profile_id_eq(&ids[j], &ids[k]));
    }
    xpl_identity_free(i);
}

// Products stored for one path are found for another, and after a restart, without a conversion.
static void test_other_path(void) {
    struct xpl_profile_id id, found;
    struct test_key k;
    char cmd[300];
    struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    write_file("first.xplane.pb", 5000, 3);
    CHECK(!find(i, "first.xplane.pb", &id)); // nothing of that size is known: not hashed
    id = hash_file(i, "first.xplane.pb");
    CHECK(find(i, "first.xplane.pb", &found) && xpl_profile_id_eq(&id, &found));
    CHECK(xpl_identity_is_unsaved(i));
    xpl_identity_save(i);
    CHECK(!xpl_identity_is_unsaved(i));
    (void)key_of(2, &k);
    k.profiles[0] = id;
    CHECK_OK(
        xpl_store_put(s, &k.key, (xpl_bytes_t){(const uint8_t *)"abc", 3}, (xpl_bytes_t){0}, NULL),
        NULL);
    xpl_identity_free(i);
    xpl_store_close(s);
    s = open_store(0);
    i = new_identity(s);
    struct xpl_source *src = open_file("first.xplane.pb");
    CHECK(xpl_identity_lookup(i, xpl_source_fingerprint(src), &found)); // from the store
    CHECK(xpl_profile_id_eq(&id, &found));
    xpl_source_free(src);
    (void)snprintf(cmd, sizeof cmd, "cp %s %s && rm %s", in_dir("first.xplane.pb"),
                   in_dir("copy.xplane.pb"), in_dir("first.xplane.pb"));
    CHECK_EQ(system(cmd), 0);
    src = open_file("copy.xplane.pb");
    CHECK(!xpl_identity_lookup(i, xpl_source_fingerprint(src), &found));
    CHECK(xpl_identity_must_hash_first(i, xpl_source_fingerprint(src)->size));
    xpl_source_free(src);
    CHECK(find(i, "copy.xplane.pb", &found) && xpl_profile_id_eq(&id, &found));
    k.profiles[0] = found;
    struct xpl_store_value v;
    CHECK_OK(xpl_store_get(s, &k.key, 100, &v, NULL), NULL);
    CHECK_BYTES(v.data, v.len, "abc", 3);
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
    // Other bytes of the same size are another profile.
    write_file("other.xplane.pb", 5000, 4);
    CHECK(find(i, "other.xplane.pb", &found) && !xpl_profile_id_eq(&id, &found));
    k.profiles[0] = found;
    CHECK(!xpl_store_has(s, &k.key));
    xpl_identity_free(i);
    xpl_store_close(s);
}

// A file that is written in place has another id at once.
static void test_changed(void) {
    struct xpl_profile_id id, found;
    struct xpl_error err = {0};
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    write_file("f", 3000, 0);
    id = hash_file(i, "f");
    struct xpl_source *before = open_file("f");
    const struct timespec tick = {.tv_nsec = 20000000};
    (void)nanosleep(&tick, NULL);
    const int fd = open(in_dir("f"), O_WRONLY);
    CHECK_EQ(pwrite(fd, "x", 1, 1000), 1);
    CHECK_EQ(close(fd), 0);
    CHECK_STATUS(xpl_identity_hash(i, before, NULL, NULL, &found, &err), XPL_ABORTED, &err);
    CHECK(strstr(err.msg, "changed"));
    xpl_source_free(before);
    xpl_identity_save(i);
    CHECK(find(i, "f", &found) && !xpl_profile_id_eq(&id, &found));
    // Truncated while it is hashed: the zeros get no id.
    before = open_file("f");
    CHECK_EQ(truncate(in_dir("f"), 10), 0);
    CHECK_STATUS(xpl_identity_hash(i, before, NULL, NULL, &found, NULL), XPL_ABORTED, NULL);
    xpl_source_free(before);
    xpl_identity_free(i);
}

// Every part of a fingerprint counts.
static void test_fingerprints(void) {
    struct xpl_profile_id id;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    struct xpl_fingerprint fingerprint = {.ino = 7};
    xpl_identity_remember(i, &fingerprint, &(struct xpl_profile_id){{9}});
    CHECK(xpl_identity_lookup(i, &fingerprint, &id));
    CHECK_EQ(id.bytes[0], 9);
    for (int part = 0; part < 5; part++) {
        struct xpl_fingerprint other = fingerprint;
        other.dev += part == 0, other.ino += part == 1, other.size += part == 2;
        other.mtime_ns += part == 3, other.ctime_ns += part == 4;
        CHECK(!xpl_identity_lookup(i, &other, &id));
    }
    xpl_identity_free(i);
}

static bool at_once(void *arg) {
    ++*(int *)arg;
    return true;
}

static void test_cancelled(void) {
    int asked = 0;
    struct xpl_profile_id id;
    struct xpl_error err = {0};
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    write_file("f", 9 << 20, 0);
    struct xpl_source *src = open_file("f");
    CHECK_STATUS(xpl_identity_hash(i, src, at_once, &asked, &id, &err), XPL_CANCELLED, &err);
    CHECK_EQ(asked, 1);
    CHECK(!xpl_identity_lookup(i, xpl_source_fingerprint(src), &id));
    xpl_source_free(src);
    xpl_identity_free(i);
}

// Without a database the process has its own ids.
static void test_no_store(void) {
    struct xpl_profile_id id, found;
    CHECK_EQ(mkdir(in_dir("cache.db"), 0700), 0);
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    struct xpl_identity *i = new_identity(s);
    write_file("f", 100, 0);
    write_file("g", 100, 0);
    id = hash_file(i, "f");
    CHECK(find(i, "f", &found) && xpl_profile_id_eq(&id, &found));
    found = hash_file(i, "g");
    CHECK(xpl_profile_id_eq(&id, &found));
    xpl_identity_save(i); // nowhere to go
    CHECK(find(i, "f", &found));
    xpl_identity_free(i);
}

// Another secret takes the place of ours: ids made with ours are forgotten.
static void test_other_secret(void) {
    struct xpl_profile_id id, found;
    char cmd[300];
    write_file("f", 100, 0);
    struct xpl_store *s = open_store(0), *r = open_store(0);
    struct xpl_identity *i = new_identity(r);
    CHECK(!get_n(r, 1, 1)); // reads the secret
    id = hash_file(i, "f");
    CHECK(find(i, "f", &found));
    xpl_store_close(s);
    (void)snprintf(cmd, sizeof cmd, "rm %s/cache.db*", store_dir);
    CHECK_EQ(system(cmd), 0);
    s = open_store(0);
    CHECK(!get_n(r, 1, 1));
    CHECK(!find(i, "f", &found));
    found = hash_file(i, "f");
    CHECK(!xpl_profile_id_eq(&id, &found));
    struct xpl_identity *w = new_identity(s);
    id = hash_file(w, "f");
    CHECK(xpl_profile_id_eq(&id, &found));
    xpl_identity_free(w);
    xpl_identity_free(i);
    xpl_store_close(r);
    xpl_store_close(s);
}

// ---- what a start takes over ----

// A store that counts the lookups of files, and may lose its secret while it is read.
struct counting_store {
    struct xpl_store base;
    struct xpl_store_ops ops;
    struct xpl_store *real;
    int n_found;
    size_t n_listed,
        lost_after; // files told before another secret takes the place of this one; 0: never
    bool lost;
    xpl_store_file_fn *each;
    void *arg;
};

static struct counting_store *counting(struct xpl_store *s) {
    return (struct counting_store *)s; // its first member
}

static uint64_t count_generation(struct xpl_store *s) {
    return xpl_store_secret_generation(counting(s)->real) + counting(s)->lost;
}

static bool count_find(struct xpl_store *s, const struct xpl_fingerprint *file,
                       struct xpl_profile_id *ret) {
    counting(s)->n_found++;
    return xpl_store_find_file(counting(s)->real, file, ret);
}

static bool count_file(void *arg, const struct xpl_fingerprint *file,
                       const struct xpl_profile_id *profile) {
    struct counting_store *const c = arg;
    if (c->lost_after && c->n_listed == c->lost_after) c->lost = true;
    c->n_listed++;
    return c->each(c->arg, file, profile);
}

static bool count_list(struct xpl_store *s, size_t max, xpl_store_file_fn *each, void *arg) {
    struct counting_store *const c = counting(s);
    c->each = each;
    c->arg = arg;
    return xpl_store_list_files(c->real, max, count_file, c);
}

static struct counting_store counting_new(struct xpl_store *real) {
    return (struct counting_store){.real = real,
                                   .ops = {.secret_generation = count_generation,
                                           .find_file = count_find,
                                           .list_files = count_list}};
}

static struct xpl_fingerprint nth_file(uint64_t n) {
    return (struct xpl_fingerprint){.dev = UINT64_MAX, .ino = n, .size = n, .mtime_ns = -5};
}

static struct xpl_profile_id nth_id(uint64_t n) {
    struct xpl_profile_id id = {{1}};
    memcpy(id.bytes + 8, &n, sizeof n);
    return id;
}

static void remember_files(struct xpl_store *s, uint64_t n) {
    struct xpl_identity *i = new_identity(s);
    for (uint64_t k = 0; k < n; k++) {
        const struct xpl_fingerprint file = nth_file(k);
        const struct xpl_profile_id id = nth_id(k);
        xpl_identity_remember(i, &file, &id);
        if (k % 4000 == 0) xpl_identity_save(i);
    }
    xpl_identity_save(i);
    xpl_identity_free(i);
}

// After a start the store need not be read; and the learned ids stay.
static void test_preload(void) {
    enum { N = 1000 };
    struct xpl_profile_id id;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct counting_store c = counting_new(s);
    c.base.ops = &c.ops;
    remember_files(s, N);
    struct xpl_identity *i = new_identity(&c.base);
    const struct xpl_fingerprint third = nth_file(3);
    const struct xpl_profile_id other = nth_id(77);
    xpl_identity_remember(i, &third, &other);
    xpl_identity_preload(i);
    for (uint64_t k = 0; k < N; k++) {
        const struct xpl_fingerprint file = nth_file(k);
        const struct xpl_profile_id expected = k == 3 ? other : nth_id(k);
        CHECK(xpl_identity_lookup(i, &file, &id));
        CHECK_BYTES(id.bytes, sizeof id.bytes, expected.bytes, sizeof expected.bytes);
    }
    CHECK_EQ(c.n_found, 0);
    CHECK_EQ(c.n_listed, N);
    const struct xpl_fingerprint unknown = nth_file(N);
    CHECK(!xpl_identity_lookup(i, &unknown, &id));
    CHECK_EQ(c.n_found, 1);
    xpl_identity_free(i);
}

// Ids of a secret that is lost while they are read are not kept.
static void test_preload_other_secret(void) {
    enum { N = 1000 };
    struct xpl_profile_id id;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    remember_files(s, N);
    for (size_t lost_after = 1; lost_after < N; lost_after += 111) {
        struct counting_store c = counting_new(s);
        c.base.ops = &c.ops;
        c.lost_after = lost_after;
        struct xpl_identity *i = new_identity(&c.base);
        xpl_identity_preload(i);
        CHECK(c.lost && c.n_listed < lost_after + 100); // it stops soon
        for (uint64_t k = 0; k < N; k += 50) {
            const struct xpl_fingerprint file = nth_file(k);
            (void)xpl_identity_lookup(i, &file, &id);
        }
        CHECK_EQ(c.n_found, N / 50); // none was in memory
        xpl_identity_free(i);
    }
}

// The newest are taken over where memory cannot have all, and there is room for new ones.  (They
// are saved in batches of 4000.)
static void test_preload_many(void) {
    enum { MANY = 70000, NEWEST = 57000 };
    struct xpl_profile_id id;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct counting_store c = counting_new(s);
    c.base.ops = &c.ops;
    remember_files(s, MANY);
    struct xpl_identity *i = new_identity(&c.base);
    xpl_identity_preload(i);
    for (uint64_t k = MANY; k < MANY + 2000; k++) {
        const struct xpl_fingerprint file = nth_file(k);
        const struct xpl_profile_id new_id = nth_id(k);
        xpl_identity_remember(i, &file, &new_id);
    }
    for (uint64_t k = MANY - NEWEST; k < MANY; k += 97) {
        const struct xpl_fingerprint file = nth_file(k);
        CHECK(xpl_identity_lookup(i, &file, &id));
    }
    CHECK_EQ(c.n_found, 0);
    xpl_identity_free(i);
}

// More files than memory remembers; the store has them all.
static void test_many(void) {
    enum { MANY = 70000 };
    struct xpl_profile_id id;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    struct xpl_identity *i = new_identity(s);
    for (uint64_t n = 0; n < MANY; n++) {
        const struct xpl_fingerprint fingerprint = {
            .ino = n, .size = n, .mtime_ns = (int64_t)(n * n)};
        memset(&id, 0, sizeof id);
        memcpy(id.bytes, &n, sizeof n);
        xpl_identity_remember(i, &fingerprint, &id);
        if (n % 4000 == 0) xpl_identity_save(i);
    }
    xpl_identity_save(i);
    for (uint64_t n = 0; n < MANY; n += 997) {
        const struct xpl_fingerprint fingerprint = {
            .ino = n, .size = n, .mtime_ns = (int64_t)(n * n)};
        CHECK(xpl_identity_lookup(i, &fingerprint, &id));
        CHECK_BYTES(id.bytes, sizeof n, &n, sizeof n);
    }
    xpl_identity_free(i);
}

int main(void) {
    static void (*const tests[])(void) = {
        test_content,      test_other_path, test_changed,
        test_fingerprints, test_cancelled,  test_no_store,
        test_other_secret, test_preload,    test_preload_other_secret,
        test_preload_many, test_many};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        new_dir();
        tests[i]();
        remove_dir();
    }
    return 0;
}
