// SPDX-License-Identifier: Apache-2.0
// XSpaces with memory events, by hand.
#ifndef XPL_TESTS_UNIT_TOOLS_MEMORY_FIXTURE_H_
#define XPL_TESTS_UNIT_TOOLS_MEMORY_FIXTURE_H_

#include "base/buf.h"
#include "tests/check.h"

// Metadata ids of the plane that memory_plane makes.
enum { EV_ALLOC = 1, EV_FREE = 2, EV_OTHER = 3 };
enum { ST_NAME = 1, ST_USED = 2, ST_BYTES = 3, ST_ADDRESS = 4, ST_OP = 5, ST_STEP = 6 };

static inline void put_varint(struct xpl_buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        xpl_buf_putc(b, (char)(v | 0x80));
    xpl_buf_putc(b, (char)v);
}
static inline void put_int(struct xpl_buf *b, unsigned num, uint64_t v) {
    put_varint(b, num << 3);
    put_varint(b, v);
}
static inline void put_len(struct xpl_buf *b, unsigned num, const void *p, size_t n) {
    put_varint(b, num << 3 | 2);
    put_varint(b, n);
    xpl_buf_put(b, p, n);
}
// `child` becomes a field of `b` and is freed.
static inline void put_child(struct xpl_buf *b, unsigned num, struct xpl_buf *child) {
    CHECK(!child->failed);
    put_len(b, num, child->p, child->n);
    xpl_buf_fini(child);
}
static inline struct xpl_buf new_message(void) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    return b;
}

static inline void put_int_stat(struct xpl_buf *event, unsigned id, uint64_t v) {
    struct xpl_buf s = new_message();
    put_int(&s, 1, id);
    put_int(&s, 4, v);
    put_child(event, 4, &s);
}
static inline void put_text_stat(struct xpl_buf *event, unsigned id, const char *text) {
    struct xpl_buf s = new_message();
    put_int(&s, 1, id);
    put_len(&s, 5, text, strlen(text));
    put_child(event, 4, &s);
}

// An event without stats; finish it with put_child(line, 4, &event).
static inline struct xpl_buf new_event(unsigned metadata, uint64_t offset_ps) {
    struct xpl_buf e = new_message();
    put_int(&e, 1, metadata);
    put_int(&e, 2, offset_ps);
    put_int(&e, 3, 0);
    return e;
}

static inline void put_metadata(struct xpl_buf *plane, unsigned map, unsigned id,
                                const char *name) {
    struct xpl_buf m = new_message(), entry = new_message();
    put_int(&m, 1, id);
    put_len(&m, 2, name, strlen(name));
    put_int(&entry, 1, id);
    put_child(&entry, 2, &m);
    put_child(plane, map, &entry);
}

static inline struct xpl_buf new_line(unsigned id) {
    struct xpl_buf l = new_message();
    put_int(&l, 1, id);
    put_len(&l, 2, "thread", 6);
    return l;
}

// An XSpace with the host plane that has these lines; they are freed.
static inline struct xpl_buf memory_space(struct xpl_buf *lines, size_t n) {
    static const char *const events[] = {"MemoryAllocation", "MemoryDeallocation", "Other"};
    static const char *const stats[] = {"allocator_name", "bytes_allocated", "allocation_bytes",
                                        "addr",           "tf_op",           "group_id"};
    struct xpl_buf plane = new_message(), space = new_message();
    put_len(&plane, 2, "/host:CPU", 9);
    for (size_t i = 0; i < n; i++)
        put_child(&plane, 3, &lines[i]);
    for (unsigned i = 0; i < 3; i++)
        put_metadata(&plane, 4, i + 1, events[i]);
    for (unsigned i = 0; i < 6; i++)
        put_metadata(&plane, 5, i + 1, stats[i]);
    put_child(&space, 1, &plane);
    return space;
}

#endif
