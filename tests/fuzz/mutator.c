// SPDX-License-Identifier: Apache-2.0
// libFuzzer's mutations along the structure of protobuf wire data: a field somewhere deep is
// changed, doubled, removed or swapped with its neighbour, and the lengths around it are put right,
// so that the change arrives where it was made instead of breaking the outermost message.  Every
// second input is changed as libFuzzer does by itself.  Linked where there is a fuzzer.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MAX_DEPTH = 12, MAX_FIELDS = 4096 };

struct field {
    size_t at, value, end; // key, value and what follows, as offsets
    unsigned type;
};

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static bool read_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *ret) {
    *ret = 0;
    for (unsigned shift = 0; *at < n && shift < 64; shift += 7) {
        const uint8_t c = p[(*at)++];
        *ret |= (uint64_t)(c & 127) << shift;
        if (c < 128) return true;
    }
    return false;
}

static size_t write_varint(uint8_t *to, uint64_t v) {
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    return n;
}

static bool read_field(const uint8_t *p, size_t n, size_t at, struct field *ret) {
    uint64_t key, v = 0;
    ret->at = at;
    if (!read_varint(p, n, &at, &key) || key >> 3 == 0) return false;
    ret->type = key & 7;
    ret->value = at;
    if (ret->type == 0 && !read_varint(p, n, &at, &v)) return false;
    if (ret->type == 2 && !read_varint(p, n, &at, &v)) return false;
    if (ret->type == 2) ret->value = at;
    const uint64_t more = ret->type == 1 ? 8 : ret->type == 5 ? 4 : ret->type == 2 ? v : 0;
    if ((ret->type > 2 && ret->type != 5) || more > n - at) return false;
    ret->end = at + (size_t)more;
    return true;
}

// One of the message's fields by chance, each alike; false if it is not a message.
static bool choose_field(const uint8_t *p, size_t n, uint32_t *random, struct field *ret) {
    struct field f;
    size_t seen = 0;
    for (size_t at = 0; at < n; at = f.end) {
        if (!read_field(p, n, at, &f) || seen == MAX_FIELDS) return false;
        if (next_random(random) % ++seen == 0) *ret = f;
    }
    return seen > 0;
}

// The value of a number: an extreme one, or a bit of it flipped.
static size_t change_number(const uint8_t *p, const struct field *f, uint32_t *random,
                            uint8_t *to) {
    static const uint64_t extremes[] = {0,          1,         127,        128,        INT32_MAX,
                                        UINT32_MAX, INT64_MAX, UINT64_MAX, 1ull << 63, 1ull << 32};
    enum { N = sizeof extremes / sizeof *extremes };
    const uint32_t r = next_random(random);
    if (f->type == 0) {
        uint64_t v = 0;
        size_t at = f->value;
        (void)read_varint(p, f->end, &at, &v);
        return write_varint(to, r % 2 ? extremes[r / 2 % N] : v ^ (uint64_t)1 << (r / 2 % 64));
    }
    const size_t n = f->end - f->value;
    memcpy(to, p + f->value, n);
    to[r % n] ^= (uint8_t)(1u << (r / 16 % 8));
    return n;
}

// `old` bytes at `at` become `p[0..n)`. Returns the new size, or 0 without room.
static size_t replace(uint8_t *data, size_t size, size_t max, size_t at, size_t old,
                      const uint8_t *p, size_t n) {
    if (size - old + n > max) return 0;
    memmove(data + at + n, data + at + old, size - at - old);
    memcpy(data + at, p, n);
    return size - old + n;
}

static size_t change_message(uint8_t *data, size_t size, size_t max, uint32_t *random, int depth);

// The bytes of a field, by chance as a message within; then its length is written anew.
static size_t change_bytes(uint8_t *data, size_t size, size_t max, const struct field *f,
                           uint32_t *random, int depth) {
    const size_t n = f->end - f->value, room = max - size + n + 1;
    uint8_t *const value = malloc(room + 10), head[20];
    if (!value) return 0;
    memcpy(value, data + f->value, n);
    size_t now = next_random(random) % 4 && depth < MAX_DEPTH
                     ? change_message(value, n, room, random, depth + 1)
                     : 0;
    if (!now) {
        memcpy(value, data + f->value, n);
        now = LLVMFuzzerMutate(value, n, room);
    }
    uint64_t key = 0;
    size_t at = f->at;
    (void)read_varint(data, size, &at, &key);
    size_t n_head = write_varint(head, key);
    n_head += write_varint(head + n_head, now);
    const size_t old = f->end - f->at;
    size_t ret = 0;
    if (size - old + n_head + now <= max) {
        ret = replace(data, size, max, f->at, old, head, n_head);
        ret = replace(data, ret, max, f->at + n_head, 0, value, now);
    }
    free(value);
    return ret;
}

static size_t copy_field(uint8_t *data, size_t size, size_t max, const struct field *f) {
    const size_t n = f->end - f->at;
    uint8_t *const copy = malloc(n);
    if (!copy) return 0;
    memcpy(copy, data + f->at, n);
    const size_t ret = replace(data, size, max, f->end, 0, copy, n);
    free(copy);
    return ret;
}

// One change of one field.  0: no message, or no room; `data` may then be anything.
static size_t change_message(uint8_t *data, size_t size, size_t max, uint32_t *random, int depth) {
    struct field f;
    uint8_t number[16];
    if (!choose_field(data, size, random, &f)) return 0;
    switch (next_random(random) % 8) {
        case 0: return copy_field(data, size, max, &f);
        case 1: return replace(data, size, max, f.at, f.end - f.at, number, 0);
        case 2: // another field's number, or type
            data[f.at] ^= (uint8_t)(1u << next_random(random) % 7);
            return size;
        default: break;
    }
    if (f.type == 2) return change_bytes(data, size, max, &f, random, depth);
    const size_t n = change_number(data, &f, random, number);
    return replace(data, size, max, f.value, f.end - f.value, number, n);
}

// Some targets take a byte or two before the message: which reader is meant.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint32_t random = seed;
    uint8_t *const copy = size ? malloc(max_size) : NULL;
    size_t n = 0;
    for (size_t skip = 0; copy && !n && skip < 3 && skip < size && next_random(&random) % 2;
         skip++) {
        memcpy(copy, data + skip, size - skip);
        n = change_message(copy, size - skip, max_size - skip, &random, 0);
        if (n) memcpy(data + skip, copy, n);
        if (n) n += skip;
    }
    free(copy);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
