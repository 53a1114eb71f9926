// SPDX-License-Identifier: Apache-2.0
#include "base/std_sort.h"

#include "tests/check.h"

struct record {
    int64_t key;
    uint64_t id;
};

static bool is_less(const void *ctx, const void *a, const void *b) {
    const struct record *const x = a, *const y = b;
    (void)ctx;
    return x->key < y->key;
}

static uint64_t next(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

enum { N_KINDS = 6, MAX_N = 5000 };

static int64_t key_of(unsigned kind, size_t i, size_t n, uint64_t *s) {
    switch (kind) {
        case 0: return (int64_t)(next(s) % 7);
        case 1: return (int64_t)(i / 3);
        case 2: return -(int64_t)(i / 2);
        case 3: return (int64_t)(i % 5);
        case 4: return (int64_t)(next(s) % 1000) - 500;
        default: // makes the median of three a bad guess, again and again
            return (int64_t)(i < n / 2 ? (i % 2 ? n / 2 + i : i + 1) : 2 * (i - n / 2) + 2) / 3;
    }
}

static void make(struct record *r, size_t n, unsigned kind) {
    uint64_t s = n * 31 + kind;
    for (size_t i = 0; i < n; i++)
        r[i] = (struct record){key_of(kind, i, n, &s), i};
}

static uint64_t digest(const struct record *r, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ r[i].id) * UINT64_C(0x100000001b3);
    return h;
}

// The order in which std::sort and std::partial_sort (of n / 3 + 1) of GNU's library leave these
// records, as digests of their ids; made with g++ 12.
static const struct {
    size_t n;
    uint64_t sorted[N_KINDS], partial[N_KINDS];
} golden[] = {
    {2,
     {0x082f2207b4e88cc4, 0x08328707b4eb6e3a, 0x08328707b4eb6e3a, 0x08328707b4eb6e3a,
      0x082f2207b4e88cc4, 0x08328707b4eb6e3a},
     {0x082f2207b4e88cc4, 0x08328707b4eb6e3a, 0x08328707b4eb6e3a, 0x08328707b4eb6e3a,
      0x082f2207b4e88cc4, 0x08328707b4eb6e3a}},
    {16,
     {0xb1d8eae6f316fc71, 0x7c84dc9477851775, 0x5bc1302345f53865, 0xfce94eefcd442895,
      0xab3df9acb560a5c3, 0x1ac161f424b6f629},
     {0x66f51af829ea57d5, 0x841a124fddd00e1f, 0x057dd856bcbd9253, 0x5e4e652cad1e8007,
      0x8c97922ddf0259a9, 0x94f1cbb39cce9a9b}},
    {17,
     {0x7086af901582dbf3, 0x0aba6ff2caefa985, 0xc89b71169ab6849b, 0xd7240deb79379f0b,
      0x9b7c4ad3021ea1cf, 0x02b1d221edc264b9},
     {0x1143741f6a88a893, 0x485b2cb5e887e37d, 0x68f56340d29cbffd, 0x5db601ea2ad3a715,
      0xbff499f81d652a7d, 0xe577ad3373109a31}},
    {40,
     {0x4258e163dcd24479, 0x66b9ef54e45c6453, 0xd9f01ba07242fdbd, 0x0e26d15fb012701f,
      0xbd4e69b320c6f5a3, 0x29a209615e6272b1},
     {0x9b9d125265512e0d, 0x8a58ada45806f1b9, 0xdf2bbc987e250d5f, 0xf22a801c8f220b11,
      0x4c9a362f3efa9025, 0x083f0c5d4bcb5e4d}},
    {100,
     {0x84d3fb1314900ff9, 0x9e6723252729189f, 0x9a21efa2d7777111, 0x54a34f727a7e06a9,
      0x9509ce7f4a8bad0b, 0x48a3e2b48f52d089},
     {0x4d0f1e3b6f508f93, 0x7fcbd6683e39d031, 0x75cd41f2dcc3e653, 0x93a7cd416313db29,
      0xea92ece3c5d3f439, 0x93152886bc926d95}},
    {1000,
     {0x1137a3408460a66d, 0x6eb693ac9c468671, 0xb5d3c79d59bbd29d, 0x572e7eeb7e150b89,
      0xfc5918b962a506e7, 0xfc072f2a45a7bd55},
     {0xf93a92ff8f08445f, 0x83ffa01a06bf90df, 0xdf8aa4a823f80769, 0x44d9fa9a2a0c4d43,
      0xab47dc2990573463, 0x3655e61e7533655d}},
    {5000,
     {0xa072f4d3c76738a1, 0xc254d294042128e3, 0x7da140568ef7a641, 0xbc4bdf74e26b6171,
      0x196ac7ed84e97397, 0x477bb85bd4cb4955},
     {0x278875166c858953, 0xb0769f4986a0d265, 0x4b9f0d22531e2c63, 0xebd3e0f406841365,
      0x88e865917ec4f969, 0xd0fa3e18ae597eef}},
};

static void test_golden(void) {
    static struct record r[MAX_N];
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const size_t n = golden[i].n;
        for (unsigned kind = 0; kind < N_KINDS; kind++) {
            make(r, n, kind);
            xpl_std_sort(r, n, sizeof *r, is_less, NULL);
            CHECK_EQ(digest(r, n), golden[i].sorted[kind]);
            for (size_t k = 1; k < n; k++)
                CHECK(r[k - 1].key <= r[k].key);
            make(r, n, kind);
            xpl_std_partial_sort(r, n / 3 + 1, n, sizeof *r, is_less, NULL);
            CHECK_EQ(digest(r, n), golden[i].partial[kind]);
            for (size_t k = 1; k < n; k++)
                CHECK(k <= n / 3 ? r[k - 1].key <= r[k].key : r[n / 3].key <= r[k].key);
        }
    }
}

static void test_edges(void) {
    struct record r[1] = {{1, 0}};
    xpl_std_sort(r, 0, sizeof *r, is_less, NULL);
    xpl_std_sort(r, 1, sizeof *r, is_less, NULL);
    xpl_std_partial_sort(r, 0, 1, sizeof *r, is_less, NULL);
    xpl_std_partial_sort(r, 1, 1, sizeof *r, is_less, NULL);
    CHECK_EQ(r[0].key, 1);
}

// A comparison that contradicts itself, as with NaN: any order, but the same elements.
static bool is_never_sure(const void *ctx, const void *a, const void *b) {
    (void)ctx;
    return ((const struct record *)a)->id % 3 != ((const struct record *)b)->id % 2;
}

static void test_nonsense(void) {
    static struct record r[1000];
    make(r, 1000, 0);
    xpl_std_partial_sort(r, 400, 1000, sizeof *r, is_never_sure, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < 1000; i++)
        sum += r[i].id;
    CHECK_EQ(sum, 999 * 1000 / 2);
}

int main(void) {
    test_golden();
    test_edges();
    test_nonsense();
    return 0;
}
