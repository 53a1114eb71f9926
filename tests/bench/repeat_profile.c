// SPDX-License-Identifier: Apache-2.0
// Makes a large profile from a real one: every line's events follow again and again, shifted in
// time by the span of the whole profile, and the ids that link events (correlation_id, run_id,
// producer and consumer ids, step numbers, ...) are made fresh for each repetition.
// usage: repeat_profile IN OUT BYTES, or repeat_profile --events IN OUT EVENTS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"
#include "base/buf.h"

enum {
    XSPACE_PLANES = 1,
    PLANE_LINES = 3,
    PLANE_STAT_MD = 5,
    LINE_EVENTS = 4,
    EVENT_OFFSET = 2,
    EVENT_DURATION = 3,
    EVENT_STATS = 4,
    EVENT_OCCURRENCES = 5,
    STAT_ID = 1,
    MD_NAME = 2,
    MAP_KEY = 1,
    MAP_VALUE = 2,
    MAX_LINKING = 64
};

// Not iter_num: an executor's iterations other than 0 would turn every step into a loop; with its
// step's id ("id") the pair is fresh anyway.
static const char *const linking[] = {
    "correlation_id",      "run_id", "_p",       "_c",        "group_id",
    "request_id",          "id",     "step_num", "launch_id", "context_id",
    "tc_offload_start_id", "flow",
};
// What does not fit 32 bits is a hash or an address, and distinct after any small shift.
static const uint64_t max_counter = UINT32_MAX;

struct job {
    uint64_t repeats;
    int64_t span_ps;
    uint64_t stride;               // from one repetition's linking ids to the next's
    uint64_t linking[MAX_LINKING]; // stat metadata ids of the current plane
    size_t n_linking;
};

static void die(const char *what) {
    fprintf(stderr, "repeat_profile: %s\n", what);
    exit(1);
}

static bool next(struct xpl_wire *w, struct xpl_field *f) {
    const enum xpl_wire_result r = xpl_wire_next(w, f);
    if (r == XPL_WIRE_MALFORMED) die("malformed profile");
    return r == XPL_WIRE_FIELD;
}

static void put(struct xpl_writer *w, const struct xpl_field *f) {
    switch (f->type) {
        case XPL_WIRE_VARINT: xpl_writer_varint(w, f->num, f->u); break;
        case XPL_WIRE_I64: xpl_writer_fixed64(w, f->num, f->u); break;
        case XPL_WIRE_I32: xpl_writer_fixed32(w, f->num, (uint32_t)f->u); break;
        default: xpl_writer_bytes(w, f->num, f->len.ptr, f->len.len);
    }
}

static bool is_linking_name(xpl_bytes_t md) {
    struct xpl_wire w = xpl_wire_begin(md);
    struct xpl_field f;
    bool yes = false;
    while (next(&w, &f)) {
        if (f.num != MD_NAME || f.type != XPL_WIRE_LEN) continue;
        for (size_t i = 0; i < sizeof linking / sizeof *linking; i++)
            yes = yes || (strlen(linking[i]) == f.len.len &&
                          memcmp(linking[i], f.len.ptr, f.len.len) == 0);
    }
    return yes;
}

// Fills job->linking from the plane's stat metadata.
static void find_linking(struct job *j, xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f, e;
    j->n_linking = 0;
    while (next(&w, &f)) {
        if (f.num != PLANE_STAT_MD || f.type != XPL_WIRE_LEN) continue;
        struct xpl_wire entry = xpl_wire_begin(f.len);
        uint64_t key = 0;
        bool links = false;
        while (next(&entry, &e)) {
            if (e.num == MAP_KEY) key = e.u;
            if (e.num == MAP_VALUE && e.type == XPL_WIRE_LEN) links = is_linking_name(e.len);
        }
        if (links && j->n_linking < MAX_LINKING) j->linking[j->n_linking++] = key;
    }
}

static bool is_linking(const struct job *j, uint64_t stat_md) {
    for (size_t k = 0; k < j->n_linking; k++)
        if (j->linking[k] == stat_md) return true;
    return false;
}

static void put_stat(const struct job *j, struct xpl_writer *out, xpl_bytes_t stat, uint64_t i) {
    struct xpl_wire w = xpl_wire_begin(stat);
    struct xpl_field f;
    bool links = false;
    const struct xpl_writer_mark m = xpl_writer_open(out, EVENT_STATS);
    while (next(&w, &f)) {
        if (f.num == STAT_ID)
            links = is_linking(j, f.u);
        else if (links && f.type == XPL_WIRE_VARINT)
            f.u += i * j->stride;
        put(out, &f);
    }
    xpl_writer_close(out, m);
}

static uint64_t shift_of(const struct job *j, uint64_t i) {
    return i * (uint64_t)j->span_ps;
}

static void put_event(const struct job *j, struct xpl_writer *out, xpl_bytes_t event, uint64_t i) {
    struct xpl_wire w = xpl_wire_begin(event);
    struct xpl_field f;
    bool shifted = shift_of(j, i) == 0, at_a_time = true; // sums of many runs have no time
    const uint64_t shift = shift_of(j, i);
    const struct xpl_writer_mark m = xpl_writer_open(out, LINE_EVENTS);
    while (next(&w, &f)) {
        if (f.num == EVENT_OFFSET && f.type == XPL_WIRE_VARINT) {
            f.u += shift;
            shifted = true;
        }
        at_a_time &= f.num != EVENT_OCCURRENCES;
        if (f.num == EVENT_STATS && f.type == XPL_WIRE_LEN && i)
            put_stat(j, out, f.len, i);
        else
            put(out, &f);
    }
    if (!shifted && at_a_time) xpl_writer_varint(out, EVENT_OFFSET, shift);
    xpl_writer_close(out, m);
}

static void put_line(const struct job *j, struct xpl_writer *out, xpl_bytes_t line) {
    const struct xpl_writer_mark m = xpl_writer_open(out, PLANE_LINES);
    for (uint64_t i = 0; i < j->repeats; i++) {
        struct xpl_wire w = xpl_wire_begin(line);
        struct xpl_field f;
        while (next(&w, &f)) {
            if (f.num == LINE_EVENTS && f.type == XPL_WIRE_LEN)
                put_event(j, out, f.len, i);
            else if (i == 0)
                put(out, &f);
        }
    }
    xpl_writer_close(out, m);
}

static void put_space(struct job *j, struct xpl_writer *out, xpl_bytes_t in) {
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f, p;
    while (next(&w, &f)) {
        if (f.num != XSPACE_PLANES || f.type != XPL_WIRE_LEN) {
            put(out, &f);
            continue;
        }
        find_linking(j, f.len);
        const struct xpl_writer_mark m = xpl_writer_open(out, XSPACE_PLANES);
        struct xpl_wire plane = xpl_wire_begin(f.len);
        while (next(&plane, &p)) {
            if (p.num == PLANE_LINES && p.type == XPL_WIRE_LEN)
                put_line(j, out, p.len);
            else
                put(out, &p);
        }
        xpl_writer_close(out, m);
    }
}

// No two repetitions may share an id.
static void measure_stat(struct job *j, xpl_bytes_t stat) {
    struct xpl_wire w = xpl_wire_begin(stat);
    struct xpl_field f;
    bool links = false;
    while (next(&w, &f)) {
        if (f.num == STAT_ID)
            links = is_linking(j, f.u);
        else if (links && f.type == XPL_WIRE_VARINT && f.u < max_counter && f.u >= j->stride)
            j->stride = f.u + 1;
    }
}

static void measure_event(struct job *j, xpl_bytes_t event) {
    struct xpl_wire w = xpl_wire_begin(event);
    struct xpl_field f;
    int64_t end = 0;
    while (next(&w, &f)) {
        if (f.type == XPL_WIRE_VARINT && (f.num == EVENT_OFFSET || f.num == EVENT_DURATION))
            end += (int64_t)f.u;
        if (f.type == XPL_WIRE_LEN && f.num == EVENT_STATS) measure_stat(j, f.len);
    }
    if (end > j->span_ps) j->span_ps = end;
}

// Largest end of an event, relative to its line; largest id; number and bytes of all events.
static void measure(struct job *j, xpl_bytes_t in, uint64_t *n_events, uint64_t *event_bytes) {
    struct xpl_wire w = xpl_wire_begin(in);
    struct xpl_field f, p, l;
    j->stride = 1;
    while (next(&w, &f)) {
        if (f.num != XSPACE_PLANES || f.type != XPL_WIRE_LEN) continue;
        find_linking(j, f.len);
        struct xpl_wire plane = xpl_wire_begin(f.len);
        while (next(&plane, &p)) {
            if (p.num != PLANE_LINES || p.type != XPL_WIRE_LEN) continue;
            struct xpl_wire line = xpl_wire_begin(p.len);
            while (next(&line, &l)) {
                if (l.num != LINE_EVENTS || l.type != XPL_WIRE_LEN) continue;
                *event_bytes += l.len.len + 2;
                ++*n_events;
                measure_event(j, l.len);
            }
        }
    }
}

static xpl_bytes_t read_all(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) die("cannot read the input");
    const long n = ftell(f);
    uint8_t *p = n >= 0 ? malloc((size_t)n + 1) : NULL;
    rewind(f);
    if (!p || fread(p, 1, (size_t)n, f) != (size_t)n) die("cannot read the input");
    (void)fclose(f);
    return (xpl_bytes_t){p, (size_t)n};
}

// As many repetitions as fit in `expected` bytes, or as make at least `expected` events.
static uint64_t repeats_of(uint64_t expected, bool events, uint64_t n_events, uint64_t event_bytes,
                           uint64_t in_bytes) {
    const uint64_t fixed = in_bytes - event_bytes;
    uint64_t n = 1;
    if (events && n_events)
        n = (expected + n_events - 1) / n_events;
    else if (!events && event_bytes && expected > fixed)
        n = (expected - fixed) / event_bytes;
    return n ? n : 1;
}

int main(int argc, char **argv) {
    const bool events = argc == 5 && strcmp(argv[1], "--events") == 0;
    if (argc != 4 && !events) die("usage: repeat_profile IN OUT BYTES | --events IN OUT EVENTS");
    argv += events;
    const xpl_bytes_t in = read_all(argv[1]);
    struct job j = {0};
    uint64_t n_events = 0, event_bytes = 0;
    measure(&j, in, &n_events, &event_bytes);
    j.span_ps += 1000000; // a microsecond between repetitions
    j.repeats = repeats_of(strtoull(argv[3], NULL, 10), events, n_events, event_bytes, in.len);
    struct xpl_buf out = xpl_buf_of((size_t)2 << 30);
    struct xpl_writer w;
    xpl_writer_init(&w, &out);
    put_space(&j, &w, in);
    if (xpl_writer_measured(&w)) put_space(&j, &w, in);
    if (!xpl_writer_fini(&w)) die("the result is over 2 GiB, or out of memory");
    FILE *f = fopen(argv[2], "wb");
    if (!f || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0) die("cannot write the output");
    printf("%s: %zu bytes, %llu events, %llu repetitions\n", argv[2], out.n,
           (unsigned long long)(j.repeats * n_events), (unsigned long long)j.repeats);
    xpl_buf_fini(&out);
    free((void *)(uintptr_t)in.ptr);
    return 0;
}
