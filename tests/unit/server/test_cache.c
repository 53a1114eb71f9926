// SPDX-License-Identifier: Apache-2.0
// server/engine/cache: least recently used by bytes, references, and threads that get, put and drop
// at once.
#include "server/engine/cache.h"

#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"

struct thing {
    struct xpl_object object; // first: destroy casts
    uint64_t value, check;    // check is ~value while it lives
};

static atomic_long alive;
static struct xpl_cache *asked_at_end; // not NULL: objects ask it for something while they end

static void destroy(struct xpl_object *o) {
    struct thing *const t = (struct thing *)o;
    CHECK_EQ(t->check, ~t->value);
    t->check = t->value;
    if (asked_at_end) (void)xpl_cache_get_stats(asked_at_end);
    xpl_sys_free(t);
    atomic_fetch_sub(&alive, 1);
}

static struct xpl_object *new_thing(uint64_t value, size_t bytes) {
    struct thing *const t = xpl_sys_alloc(sizeof *t);
    CHECK(t);
    *t = (struct thing){
        .object = {.refs = 1, .bytes = bytes, .destroy = destroy}, .value = value, .check = ~value};
    atomic_fetch_add(&alive, 1);
    return &t->object;
}

static struct xpl_cache_key key_of(const uint64_t *k) {
    return (struct xpl_cache_key){XPL_CACHE_ANSWER, {(const uint8_t *)k, sizeof *k}};
}

static void put(struct xpl_cache *c, uint64_t k, uint64_t value, size_t bytes) {
    struct xpl_object *const o = new_thing(value, bytes);
    xpl_cache_put(c, key_of(&k), o);
    xpl_object_unref(o);
}

// The value of the key, or UINT64_MAX.
static uint64_t get(struct xpl_cache *c, uint64_t k) {
    struct xpl_object *const o = xpl_cache_get(c, key_of(&k));
    const uint64_t value = o ? ((struct thing *)o)->value : UINT64_MAX;
    xpl_object_unref(o);
    return value;
}

static const uint64_t NOTHING = UINT64_MAX;

// What an object of `bytes` under a key of 8 bytes counts.
static size_t cost_of(size_t bytes) {
    struct xpl_cache *const c = xpl_cache_new(SIZE_MAX);
    CHECK(c);
    put(c, 1, 1, bytes);
    const size_t cost = xpl_cache_get_stats(c).bytes;
    xpl_cache_free(c);
    return cost;
}

static void test_put_get_drop(void) {
    struct xpl_cache *const c = xpl_cache_new(1 << 20);
    CHECK(c);
    CHECK_EQ(get(c, 1), NOTHING);
    put(c, 1, 10, 100);
    put(c, 2, 20, 200);
    CHECK_EQ(get(c, 1), 10);
    CHECK_EQ(get(c, 2), 20);
    CHECK_EQ(get(c, 3), NOTHING);
    struct xpl_cache_stats s = xpl_cache_get_stats(c);
    CHECK_EQ(s.objects, 2);
    CHECK_EQ(s.limit, 1 << 20);
    CHECK_EQ(s.evicted, 0);
    CHECK_EQ(s.bytes, cost_of(100) + cost_of(200));
    CHECK(s.bytes > 300); // keys and entries count too
    put(c, 1, 11, 300);   // in place of the first
    CHECK_EQ(get(c, 1), 11);
    s = xpl_cache_get_stats(c);
    CHECK_EQ(s.objects, 2);
    CHECK_EQ(s.evicted, 0);
    CHECK_EQ(s.bytes, cost_of(300) + cost_of(200));
    CHECK_EQ(atomic_load(&alive), 2);
    const uint64_t one = 1, nine = 9;
    xpl_cache_drop(c, key_of(&one));
    xpl_cache_drop(c, key_of(&nine)); // not there
    CHECK_EQ(get(c, 1), NOTHING);
    CHECK_EQ(get(c, 2), 20);
    s = xpl_cache_get_stats(c);
    CHECK_EQ(s.objects, 1);
    CHECK_EQ(s.bytes, cost_of(200));
    CHECK_EQ(s.evicted, 0); // dropped is not evicted
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&alive), 0);
    xpl_cache_free(NULL);
}

// Whatever ends does so without the cache's lock: others are not kept waiting for it.  (With the
// lock this hangs.)
static void test_end_without_lock(void) {
    const size_t cost = cost_of(100);
    struct xpl_cache *const c = xpl_cache_new(2 * cost);
    CHECK(c);
    asked_at_end = c;
    for (uint64_t i = 0; i < 5; i++)
        put(c, i, i, 100); // evicts
    put(c, 4, 40, 100);    // replaces
    const uint64_t three = 3;
    xpl_cache_drop(c, key_of(&three));
    CHECK_EQ(get(c, 4), 40);
    xpl_cache_set_limit(c, 0);
    CHECK_EQ(atomic_load(&alive), 0);
    CHECK_EQ(xpl_cache_get_stats(c).evicted, 4);
    asked_at_end = NULL;
    xpl_cache_free(c);
}

// Keys are a kind and bytes: kinds, prefixes, NULs and lengths tell them apart.
static void test_keys(void) {
    static const struct {
        const char *p;
        size_t n;
        enum xpl_cache_kind kind;
    } keys[] = {{"", 0, 0},   {"a", 1, 0},    {"a\0", 2, 0}, {"a\0b", 3, 0},
                {"\0", 1, 0}, {"\0\0", 2, 0}, {"ab", 2, 0},  {"ab", 2, XPL_CACHE_PRODUCT}};
    enum { N = sizeof keys / sizeof *keys };
    struct xpl_cache *const c = xpl_cache_new(1 << 20);
    CHECK(c);
    for (size_t i = 0; i < N; i++) {
        struct xpl_object *const o = new_thing(i, 10);
        xpl_cache_put(
            c, (struct xpl_cache_key){keys[i].kind, {(const uint8_t *)keys[i].p, keys[i].n}}, o);
        xpl_object_unref(o);
    }
    CHECK_EQ(xpl_cache_get_stats(c).objects, N);
    for (size_t i = 0; i < N; i++) {
        struct xpl_object *const o = xpl_cache_get(
            c, (struct xpl_cache_key){keys[i].kind, {(const uint8_t *)keys[i].p, keys[i].n}});
        CHECK(o);
        CHECK_EQ(((struct thing *)o)->value, i);
        xpl_object_unref(o);
    }
    xpl_cache_free(c);
}

// Exactly the limit is kept; one byte more drops the one that was used least recently.
static void test_lru(void) {
    const size_t cost = cost_of(1000);
    struct xpl_cache *const c = xpl_cache_new(3 * cost);
    CHECK(c);
    put(c, 1, 1, 1000);
    put(c, 2, 2, 1000);
    put(c, 3, 3, 1000);
    CHECK_EQ(xpl_cache_get_stats(c).bytes, 3 * cost);
    CHECK_EQ(xpl_cache_get_stats(c).evicted, 0);
    CHECK_EQ(get(c, 1), 1); // now 2 is the oldest
    put(c, 4, 4, 1000);
    CHECK_EQ(xpl_cache_get_stats(c).evicted, 1);
    CHECK_EQ(get(c, 2), NOTHING);
    CHECK_EQ(get(c, 3), 3);
    CHECK_EQ(get(c, 1), 1);
    CHECK_EQ(get(c, 4), 4);
    put(c, 3, 33, 1000); // replacing is a use as well; oldest is 1
    put(c, 5, 5, 1001);  // one byte more than fits with two others: 1 and 4 go
    CHECK_EQ(xpl_cache_get_stats(c).objects, 2);
    CHECK_EQ(get(c, 1), NOTHING);
    CHECK_EQ(get(c, 4), NOTHING);
    CHECK_EQ(get(c, 3), 33);
    CHECK_EQ(get(c, 5), 5);
    CHECK_EQ(xpl_cache_get_stats(c).evicted, 3);
    CHECK_EQ(atomic_load(&alive), 2);
    xpl_cache_free(c);
}

// An object that is kept by itself and as a part of two others counts once, until the last goes.
static void test_parts(void) {
    const size_t big = 1000, cost = cost_of(big), small = cost_of(10);
    struct xpl_cache *const c = xpl_cache_new(cost + 2 * small);
    CHECK(c);
    struct xpl_object *const whole = new_thing(1, big);
    uint64_t keys[] = {1, 2, 3};
    xpl_cache_put(c, key_of(&keys[0]), whole);
    for (size_t i = 1; i < 3; i++) {
        struct xpl_object *const o = new_thing(i, 10);
        o->part = whole;
        xpl_cache_put(c, key_of(&keys[i]), o);
        xpl_object_unref(o);
    }
    CHECK_EQ(xpl_cache_get_stats(c).objects, 3);
    CHECK_EQ(xpl_cache_get_stats(c).bytes, cost + 2 * small);
    xpl_cache_drop(c, key_of(&keys[0])); // the others keep it
    CHECK_EQ(xpl_cache_get_stats(c).bytes, cost + 2 * small - cost_of(0));
    xpl_cache_drop(c, key_of(&keys[2]));
    CHECK_EQ(xpl_cache_get_stats(c).bytes, cost - cost_of(0) + small);
    put(c, 4, 4, big); // no room for both
    CHECK_EQ(get(c, 2), NOTHING);
    CHECK_EQ(xpl_cache_get_stats(c).bytes, cost);
    struct xpl_object *const o = new_thing(5, 2 * small + 1);
    o->part = whole;
    xpl_cache_put(c, key_of(&keys[1]), o); // with its part it exceeds the limit
    CHECK_EQ(get(c, 2), NOTHING);
    xpl_object_unref(o);
    xpl_object_unref(whole);
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&alive), 0);
}

// An object larger than the limit changes nothing, not even the entry of its key.
static void test_too_large(void) {
    const size_t cost = cost_of(1000);
    struct xpl_cache *const c = xpl_cache_new(cost);
    CHECK(c);
    put(c, 1, 1, 1000); // exactly
    CHECK_EQ(get(c, 1), 1);
    put(c, 1, 2, 1001);
    put(c, 2, 3, SIZE_MAX / 2);
    put(c, 3, 4, SIZE_MAX); // its cost wraps around
    put(c, 4, 5, SIZE_MAX - 130);
    CHECK_EQ(get(c, 1), 1);
    CHECK_EQ(get(c, 2), NOTHING);
    CHECK_EQ(get(c, 3), NOTHING);
    CHECK_EQ(get(c, 4), NOTHING);
    CHECK_EQ(xpl_cache_get_stats(c).objects, 1);
    CHECK_EQ(xpl_cache_get_stats(c).bytes, cost);
    CHECK_EQ(atomic_load(&alive), 1);
    xpl_cache_free(c);
    struct xpl_cache *const all = xpl_cache_new(SIZE_MAX);
    CHECK(all);
    put(all, 1, 1, SIZE_MAX);
    CHECK_EQ(xpl_cache_get_stats(all).objects, 0);
    xpl_cache_free(all);
    struct xpl_cache *const none = xpl_cache_new(0);
    CHECK(none);
    put(none, 1, 1, 0);
    CHECK_EQ(get(none, 1), NOTHING);
    xpl_cache_free(none);
    CHECK_EQ(atomic_load(&alive), 0);
}

static void test_set_limit(void) {
    const size_t cost = cost_of(10);
    struct xpl_cache *const c = xpl_cache_new(10 * cost);
    CHECK(c);
    for (uint64_t k = 0; k < 10; k++)
        put(c, k, k, 10);
    xpl_cache_set_limit(c, 4 * cost + 1);
    CHECK_EQ(xpl_cache_get_stats(c).objects, 4);
    CHECK_EQ(xpl_cache_get_stats(c).limit, 4 * cost + 1);
    CHECK_EQ(xpl_cache_get_stats(c).evicted, 6);
    CHECK_EQ(get(c, 5), NOTHING);
    CHECK_EQ(get(c, 6), 6);
    xpl_cache_set_limit(c, 0);
    CHECK_EQ(xpl_cache_get_stats(c).objects, 0);
    CHECK_EQ(xpl_cache_get_stats(c).bytes, 0);
    CHECK_EQ(atomic_load(&alive), 0);
    xpl_cache_set_limit(c, cost);
    put(c, 1, 1, 10); // works again
    CHECK_EQ(get(c, 1), 1);
    xpl_cache_free(c);
}

// A reference keeps its object, whatever happens to the cache.
static void test_references(void) {
    struct xpl_cache *const c = xpl_cache_new(1 << 20);
    CHECK(c);
    const uint64_t k = 7;
    put(c, k, 70, 10);
    struct xpl_object *const mine = xpl_cache_get(c, key_of(&k));
    CHECK(mine);
    xpl_cache_put(c, key_of(&k), mine); // itself in its own place
    CHECK_EQ(xpl_cache_get_stats(c).objects, 1);
    CHECK_EQ(atomic_load(&mine->refs), 2);
    put(c, k, 71, 10);
    CHECK_EQ(atomic_load(&mine->refs), 1);
    CHECK_EQ(((struct thing *)mine)->value, 70);
    CHECK_EQ(get(c, k), 71);
    xpl_cache_put(c, key_of(&k), mine);
    const uint64_t other = 8;
    xpl_cache_put(c, key_of(&other), mine); // under two keys
    CHECK_EQ(atomic_load(&mine->refs), 3);
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&mine->refs), 1);
    CHECK_EQ(atomic_load(&alive), 1);
    xpl_object_unref(mine);
    xpl_object_unref(NULL);
    CHECK_EQ(atomic_load(&alive), 0);
}

// More objects than buckets: chains.
static void test_many(void) {
    enum { N = 20000 };
    struct xpl_cache *const c = xpl_cache_new(SIZE_MAX);
    CHECK(c);
    for (uint64_t k = 0; k < N; k++)
        put(c, k, k * 3, 1);
    CHECK_EQ(xpl_cache_get_stats(c).objects, N);
    for (uint64_t k = 0; k < N; k += 2)
        xpl_cache_drop(c, key_of(&k));
    for (uint64_t k = 0; k < N; k++)
        CHECK_EQ(get(c, k), k % 2 ? k * 3 : NOTHING);
    xpl_cache_set_limit(c, 100 * cost_of(1)); // the last 100 that were found
    for (uint64_t k = 1; k < N; k += 2)
        CHECK_EQ(get(c, k), k >= N - 200 ? k * 3 : NOTHING);
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&alive), 0);
}

#if XPL_FAULTS
static void test_no_memory(void) {
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_cache_new(100));
    xpl_fault_reset();
    struct xpl_cache *const c = xpl_cache_new(1 << 20);
    CHECK(c);
    put(c, 1, 1, 10);
    struct xpl_object *const o = new_thing(2, 10);
    const uint64_t k = 1;
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    xpl_cache_put(c, key_of(&k), o); // does nothing
    xpl_fault_reset();
    CHECK_EQ(get(c, 1), 1);
    CHECK_EQ(atomic_load(&o->refs), 1);
    xpl_object_unref(o);
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&alive), 0);
}
#endif

enum { THREADS = 4, ROUNDS = 20000, KEYS = 64 };

struct user {
    struct xpl_cache *cache;
    uint32_t random;
    uint64_t hits;
};

// Every value under key k is k modulo KEYS, whoever put it.
static void *use(void *arg) {
    struct user *const u = arg;
    for (int i = 0; i < ROUNDS; i++) {
        u->random = u->random * 1664525 + 1013904223;
        const uint64_t k = u->random >> 8 & (KEYS - 1);
        const unsigned what = u->random >> 28;
        if (what < 8) {
            const uint64_t value = get(u->cache, k);
            CHECK(value == NOTHING || value % KEYS == k);
            u->hits += value != NOTHING;
        } else if (what < 14) {
            put(u->cache, k, k + KEYS * (uint64_t)i, u->random >> 16 & 1023);
        } else if (what == 14) {
            xpl_cache_drop(u->cache, key_of(&k));
        } else {
            const struct xpl_cache_stats s = xpl_cache_get_stats(u->cache);
            CHECK(s.bytes <= s.limit);
            if (i % 16 == 0) xpl_cache_set_limit(u->cache, 4000 + (u->random & 16383));
        }
    }
    return NULL;
}

static void test_threads(void) {
    struct user users[THREADS];
    pthread_t threads[THREADS];
    struct xpl_cache *const c = xpl_cache_new(16000);
    CHECK(c);
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){.cache = c, .random = i + 1};
        CHECK_EQ(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK(users[i].hits > 0);
    }
    const struct xpl_cache_stats s = xpl_cache_get_stats(c);
    CHECK_EQ(atomic_load(&alive), s.objects); // each counted object is there once
    CHECK(s.evicted > 0 && s.bytes <= s.limit);
    size_t found = 0;
    for (uint64_t k = 0; k < KEYS; k++)
        found += get(c, k) != NOTHING;
    CHECK_EQ(found, s.objects);
    xpl_cache_free(c);
    CHECK_EQ(atomic_load(&alive), 0);
}

int main(void) {
    alarm(60);
    test_put_get_drop();
    test_end_without_lock();
    test_keys();
    test_lru();
    test_too_large();
    test_parts();
    test_set_limit();
    test_references();
    test_many();
#if XPL_FAULTS
    test_no_memory();
#endif
    test_threads();
    return 0;
}
