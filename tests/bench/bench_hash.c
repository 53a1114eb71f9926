// SPDX-License-Identifier: Apache-2.0
// Hashing a profile for its id, compared with the bare library on the same bytes: GB/s, and their
// quotient. Usage: bench_hash FILE [ROUNDS]
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>
#if XPL_XXH_DISPATCH
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#endif

#include "storage/sessions/identity.h"
#include "storage/store/store.h"

static uint8_t secret[XPL_STORE_SECRET];

// Of this thread: other load on the machine counts less.
static uint64_t cpu_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t bare_ns(xpl_bytes_t b, XXH128_hash_t *ret) {
    const uint64_t began = cpu_ns();
    *ret = XXH3_128bits_withSecret(b.ptr, b.len, secret, sizeof secret);
    return cpu_ns() - began;
}

// With the widest instructions of this processor, where the library can choose them.
static uint64_t widest_ns(xpl_bytes_t b, XXH128_hash_t *ret) {
    const uint64_t began = cpu_ns();
#if XPL_XXH_DISPATCH
    *ret = XXH3_128bits_withSecret_dispatch(b.ptr, b.len, secret, sizeof secret);
#else
    *ret = XXH3_128bits_withSecret(b.ptr, b.len, secret, sizeof secret);
#endif
    return cpu_ns() - began;
}

// Mapped, hashed, verified and unmapped, as the daemon does it.
static uint64_t ours_ns(struct xpl_identity *i, const char *path, struct xpl_profile_id *ret) {
    struct xpl_source *src = NULL;
    const uint64_t began = cpu_ns();
    if (xpl_source_open(AT_FDCWD, path, 0, &src, NULL) != XPL_OK ||
        xpl_identity_hash(i, src, NULL, NULL, ret, NULL) != XPL_OK)
        abort();
    xpl_source_free(src);
    return cpu_ns() - began;
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Median.
static double gb_per_s(uint64_t *ns, size_t n, uint64_t bytes) {
    qsort(ns, n, sizeof *ns, by_value);
    return (double)bytes / (double)ns[n / 2];
}

int main(int argc, char **argv) {
    enum { MAX = 1001 };
    static uint64_t bare[MAX], widest[MAX], ours[MAX];
    char dir[] = "/tmp/xpl-bench-hash-XXXXXX";
    const size_t n = argc > 2 ? (size_t)atoi(argv[2]) : 21;
    if (argc < 2 || n < 1 || n > MAX || !mkdtemp(dir)) return 2;
    const struct xpl_store_options o = {.size = sizeof o, .dir = dir};
    struct xpl_store *s = NULL;
    struct xpl_identity *i = NULL;
    struct xpl_source *src = NULL;
    struct xpl_error err = {0};
    if (xpl_store_open(&o, &s, &err) != XPL_OK || xpl_identity_new(s, &i, &err) != XPL_OK ||
        xpl_source_open(AT_FDCWD, argv[1], 0, &src, &err) != XPL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    (void)xpl_store_get_secret(s, secret);
    const xpl_bytes_t bytes = xpl_source_bytes(src);
    XXH128_canonical_t expected;
    struct xpl_profile_id id;
    for (size_t k = 0; k < n; k++) { // in turns, so that other load hits both
        XXH128_hash_t h;
        widest[k] = widest_ns(bytes, &h);
        bare[k] = bare_ns(bytes, &h);
        ours[k] = ours_ns(i, argv[1], &id);
        XXH128_canonicalFromHash(&expected, h);
        if (memcmp(expected.digest, id.bytes, sizeof id.bytes) != 0) abort();
    }
    const double b = gb_per_s(bare, n, bytes.len), w = gb_per_s(widest, n, bytes.len),
                 u = gb_per_s(ours, n, bytes.len);
    printf("%zu bytes: the library %.2f GB/s, with the widest instructions %.2f, both on mapped "
           "pages; file to id %.2f GB/s: %.2f and %.2f of it\n",
           bytes.len, b, w, u, u / b, u / w);
    xpl_source_free(src);
    xpl_identity_free(i);
    xpl_store_close(s);
    char cmd[64];
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd) != 0;
}
