// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/line_index.h"

#include <stdatomic.h>

#include "analysis/xplane/fields.h"
#include "base/cleanup.h"

// Events between two marks of the chunk index: small enough to share a line among many threads,
// large enough that the index is negligible compared with the events.
enum { CHUNK_EVENTS = 4096 };

// Marks of a line while they are made; as many as its length allows for.
struct chunk_list {
    struct xpl_event_chunk *v;
    size_t n, cap;
};

static void add_chunk(struct chunk_list *l, const uint8_t *p, uint64_t first) {
    if (l->n < l->cap) l->v[l->n++] = (struct xpl_event_chunk){p, first};
}

// The events from w->p on, while they are one after another.
static void index_run(struct xpl_wire *w, uint64_t *n_events, struct chunk_list *chunks) {
    const uint8_t *p = w->p, *const end = w->end;
    uint64_t n = *n_events;
    while (p != end && *p == XPL_TAG_FIELD4_LEN) {
        const struct xpl_varint len = end - p > 1 && p[1] < 0x80 ? (struct xpl_varint){p + 2, p[1]}
                                                                 : xpl_varint_slow(p + 1, end);
        if (XPL_UNLIKELY(!len.p) || XPL_UNLIKELY(len.v > (uint64_t)(end - len.p))) break;
        if (XPL_UNLIKELY(n % CHUNK_EVENTS == 0) && n > 0) add_chunk(chunks, p, n);
        n++;
        p = len.p + len.v;
    }
    *n_events = n;
    w->p = p;
}

static void set_line_field(struct xpl_line *line, const struct xpl_field *f) {
    if (f->type == XPL_WIRE_VARINT) {
        switch (f->num) {
            case XLINE_ID: line->id = (int64_t)f->u; break;
            case XLINE_TIMESTAMP_NS: line->timestamp_ns = line->absolute_ns = (int64_t)f->u; break;
            case XLINE_DURATION_PS: line->duration_ps = (int64_t)f->u; break;
            case XLINE_DISPLAY_ID: line->display_id = (int64_t)f->u; break;
            default: break;
        }
    } else if (f->type == XPL_WIRE_LEN) {
        if (f->num == XLINE_NAME) line->name = xpl_wire_str(f);
        if (f->num == XLINE_DISPLAY_NAME) line->display_name = xpl_wire_str(f);
    }
}

// One pass over the line: its own fields, and the framing of its events.  Where it is broken, or
// NULL.  line->chunks has room for max_chunks.
static const uint8_t *index_line(struct xpl_line *line, size_t max_chunks,
                                 struct xpl_event_chunk *v) {
    struct xpl_wire w = xpl_wire_begin(line->message);
    struct chunk_list chunks = {.v = v, .cap = max_chunks};
    add_chunk(&chunks, w.p, 0); // the first chunk begins with the message
    for (;;) {
        index_run(&w, &line->n_events, &chunks);
        struct xpl_field f;
        const enum xpl_wire_result r = xpl_wire_next(&w, &f);
        if (r == XPL_WIRE_END) break;
        if (r == XPL_WIRE_MALFORMED) return w.p;
        set_line_field(line, &f);
        // A tag of more bytes than needed; rare enough to have no place in the chunk index.
        if (f.num == XLINE_EVENTS && f.type == XPL_WIRE_LEN) line->n_events++;
    }
    if (line->display_id == 0) line->display_id = line->id;
    line->chunks = v;
    line->n_chunks = line->n_events == 0 ? 0 : chunks.n > 1 ? (uint32_t)chunks.n : 1;
    return NULL;
}

// An event takes two bytes at least.  Short lines are not cut.
static size_t max_chunks(const struct xpl_line *line) {
    return line->message.len > CHUNK_EVENTS * 2 ? line->message.len / 2 / CHUNK_EVENTS + 1 : 0;
}

struct line_job {
    struct xpl_line *const *lines;
    size_t n;
    struct xpl_exec *exec;
    struct xpl_event_chunk **chunks; // by line
    const uint8_t **bad;             // by line: where it is broken
    atomic_size_t next;
};

static void index_lines_here(void *ctx, size_t shard) {
    struct line_job *const job = ctx;
    (void)shard;
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->n || (job->exec && xpl_exec_cancelled(job->exec))) return;
        job->bad[i] = index_line(job->lines[i], max_chunks(job->lines[i]), job->chunks[i]);
    }
}

// Below so many bytes another thread is not worth waking.
enum { PARALLEL_BYTES = 1 << 20 };

xpl_status_t xpl_line_index_make(struct xpl_line *const *lines, size_t n, struct xpl_arena *arena,
                                 struct xpl_exec *exec, const uint8_t **ret_broken,
                                 struct xpl_error *err) {
    struct line_job job = {.lines = lines, .n = n, .exec = exec};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena temp = xpl_arena_of(arena->limit);
    job.chunks = xpl_arena_array(&temp, n, sizeof *job.chunks);
    job.bad = xpl_arena_zalloc(&temp, n * sizeof *job.bad);
    if (!job.chunks || !job.bad) XPL_RETURN_OOM(err, "profile index");
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t most = max_chunks(lines[i]);
        job.chunks[i] = most ? xpl_arena_array(arena, most, sizeof **job.chunks) : NULL;
        if (most && !job.chunks[i]) XPL_RETURN_OOM(err, "profile index");
        bytes += lines[i]->message.len;
    }
    atomic_init(&job.next, 0);
    if (exec && bytes > PARALLEL_BYTES)
        xpl_exec_run(exec, exec->width < n ? exec->width : n, index_lines_here, &job);
    else
        index_lines_here(&job, 0);
    if (exec && xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    *ret_broken = NULL;
    for (size_t i = 0; i < n && !*ret_broken; i++)
        *ret_broken = job.bad[i];
    return XPL_OK;
}
