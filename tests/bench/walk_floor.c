// SPDX-License-Identifier: Apache-2.0
// The lower bound for a conversion: every field of a profile down to XStat, read once and bounds
// checked, with nothing made of it.  A plain reader over the mapped file: one pass finds the
// planes' parts and cuts lines into chunks of as many events as the converter's, then an exec of
// WIDTH threads walks the pieces.
//
//   walk_floor FILE [WIDTH] [RUNS]
//
// Prints one line of JSON: best and median time in milliseconds and the sums, which show that every
// number was read.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/wire/wire.h"
#include "base/exec.h"

enum { CHUNK_EVENTS = 4096, MAX_RUNS = 1000 };

// What a message may hold: the sub-message behind each field number, 0 for values.
enum kind {
    VALUES,
    SPACE,
    PLANE,
    LINE,
    EVENT,
    STAT,
    EVENT_MD_ENTRY,
    EVENT_MD,
    STAT_MD_ENTRY,
    N_KINDS
};
static const uint8_t children[N_KINDS][16] = {
    [SPACE] = {[1] = PLANE},
    [PLANE] = {[3] = LINE, [4] = EVENT_MD_ENTRY, [5] = STAT_MD_ENTRY, [6] = STAT},
    [LINE] = {[4] = EVENT},
    [EVENT] = {[4] = STAT},
    [EVENT_MD_ENTRY] = {[2] = EVENT_MD},
    [EVENT_MD] = {[5] = STAT},
    [STAT_MD_ENTRY] = {[2] = VALUES},
};

struct piece { // fields of a message of that kind
    const uint8_t *p, *end;
    enum kind kind;
};

struct sums {
    uint64_t events, stats, values;
    bool broken;
};

struct slot { // of one piece; on a separate cache line, so that two threads do not share one
    _Alignas(64) struct sums s;
};

static struct piece *pieces;
static struct slot *slots;
static size_t n_pieces, max_pieces;

static void add_piece(const uint8_t *p, const uint8_t *end, enum kind kind) {
    if (n_pieces == max_pieces) {
        max_pieces = max_pieces ? max_pieces * 2 : 1024;
        pieces = realloc(pieces, max_pieces * sizeof *pieces);
        if (!pieces) abort();
    }
    pieces[n_pieces++] = (struct piece){p, end, kind};
}

// ---- the walk ----

// One field's tag and value; a length is left in *v.  NULL when malformed.
XPL_INLINE const uint8_t *read_field(const uint8_t *p, const uint8_t *end, uint64_t *tag,
                                     uint64_t *v) {
    const struct xpl_varint t = xpl_varint_read(p, end);
    if (XPL_UNLIKELY(!t.p)) return NULL;
    *tag = t.v;
    switch (t.v & 7) {
        case XPL_WIRE_VARINT: {
            const struct xpl_varint x = xpl_varint_wide(t.p, end);
            *v = x.v;
            return x.p;
        }
        case XPL_WIRE_LEN: {
            const struct xpl_varint n = xpl_varint_read(t.p, end);
            *v = n.v;
            return XPL_LIKELY(n.p) && XPL_LIKELY(n.v <= (uint64_t)(end - n.p)) ? n.p : NULL;
        }
        case XPL_WIRE_I64:
            if (end - t.p < 8) return NULL;
            memcpy(v, t.p, 8);
            return t.p + 8;
        case XPL_WIRE_I32:
            if (end - t.p < 4) return NULL;
            *v = 0;
            memcpy(v, t.p, 4);
            return t.p + 4;
        default: return NULL;
    }
}

XPL_INLINE void walk_flat(const uint8_t *p, const uint8_t *end, struct sums *s) {
    while (p != end) {
        uint64_t tag, v;
        if (!(p = read_field(p, end, &tag, &v))) {
            s->broken = true;
            return;
        }
        s->values += v;
        if ((tag & 7) == XPL_WIRE_LEN) p += v;
    }
}

// The two that nearly all bytes are in.
static void walk_event(const uint8_t *p, const uint8_t *end, struct sums *s) {
    s->events++;
    while (p != end) {
        uint64_t tag, v;
        if (!(p = read_field(p, end, &tag, &v))) {
            s->broken = true;
            return;
        }
        if ((tag & 7) != XPL_WIRE_LEN) {
            s->values += v;
            continue;
        }
        if (tag >> 3 == 4) {
            s->stats++;
            walk_flat(p, p + v, s);
        }
        p += v;
    }
}

// Depth is that of the schema.
static void walk(const uint8_t *p, const uint8_t *end, enum kind kind, struct sums *s) {
    while (p != end) {
        uint64_t tag, v;
        if (!(p = read_field(p, end, &tag, &v))) {
            s->broken = true;
            return;
        }
        s->values += v;
        if ((tag & 7) != XPL_WIRE_LEN) continue;
        const enum kind child = tag >> 3 < 16 ? (enum kind)children[kind][tag >> 3] : VALUES;
        if (child == EVENT)
            walk_event(p, p + v, s);
        else if (child != VALUES)
            walk(p, p + v, child, s);
        s->stats += child == STAT;
        p += v;
    }
}

// ---- cutting it up ----

// Cuts a line into chunks, without decoding its events.
static bool cut_line(const uint8_t *p, const uint8_t *end) {
    const uint8_t *begin = p;
    size_t n = 0;
    while (p != end) {
        uint64_t tag, v;
        const uint8_t *const at = p;
        if (!(p = read_field(p, end, &tag, &v))) return false;
        if ((tag & 7) == XPL_WIRE_LEN) p += v;
        if (tag == (4 << 3 | XPL_WIRE_LEN) && ++n % CHUNK_EVENTS == 0) {
            add_piece(begin, at, LINE);
            begin = at;
        }
    }
    add_piece(begin, end, LINE);
    return true;
}

// A piece for each run of fields between lines, and those of each line.
static bool cut(const uint8_t *p, const uint8_t *end, enum kind kind) {
    const uint8_t *begin = p;
    while (p != end) {
        uint64_t tag, v;
        const uint8_t *const at = p;
        if (!(p = read_field(p, end, &tag, &v))) return false;
        if ((tag & 7) != XPL_WIRE_LEN) continue;
        const enum kind child = tag >> 3 < 16 ? (enum kind)children[kind][tag >> 3] : VALUES;
        if (child == PLANE || child == LINE) {
            if (at != begin) add_piece(begin, at, kind);
            if (child == PLANE ? !cut(p, p + v, PLANE) : !cut_line(p, p + v)) return false;
            begin = p + v;
        }
        p += v;
    }
    if (begin != end) add_piece(begin, end, kind);
    return true;
}

static void run_piece(void *ctx, size_t i) {
    (void)ctx;
    struct sums s = {0};
    walk(pieces[i].p, pieces[i].end, pieces[i].kind, &s);
    slots[i].s = s;
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double run(struct xpl_exec *exec, const uint8_t *p, size_t n, struct sums *total) {
    const double begin = now_ms();
    n_pieces = 0;
    const bool ok = cut(p, p + n, SPACE);
    slots = aligned_alloc(_Alignof(struct slot), (n_pieces + 1) * sizeof *slots);
    if (!slots) abort();
    xpl_exec_run(exec, n_pieces, run_piece, NULL);
    *total = (struct sums){.broken = !ok};
    for (size_t i = 0; i < n_pieces; i++) {
        total->events += slots[i].s.events;
        total->stats += slots[i].s.stats;
        total->values += slots[i].s.values;
        total->broken |= slots[i].s.broken;
    }
    free(slots);
    return now_ms() - begin;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: walk_floor FILE [WIDTH] [RUNS]\n");
        return 2;
    }
    const unsigned width = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const int runs = argc > 3 ? atoi(argv[3]) : 7;
    const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (runs < 1 || runs > MAX_RUNS || fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        fprintf(stderr, "walk_floor: cannot read %s\n", argv[1]);
        return 2;
    }
    const size_t n = (size_t)st.st_size;
    const uint8_t *const p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(width);
    if (p == MAP_FAILED || !pool) return 1;
    double ms[MAX_RUNS];
    struct sums total = {0};
    for (int i = 0; i < runs; i++)
        ms[i] = run(xpl_exec_pool_get(pool), p, n, &total);
    qsort(ms, (size_t)runs, sizeof *ms, by_value);
    printf("{\"bytes\": %zu, \"width\": %u, \"runs\": %d, \"best_ms\": %.3f, \"median_ms\": %.3f, "
           "\"events\": %llu, \"stats\": %llu, \"sum\": %llu, \"broken\": %s}\n",
           n, width, runs, ms[0], ms[runs / 2], (unsigned long long)total.events,
           (unsigned long long)total.stats, (unsigned long long)total.values,
           total.broken ? "true" : "false");
    xpl_exec_pool_free(pool);
    free(pieces);
    return total.broken;
}
