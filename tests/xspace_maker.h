// SPDX-License-Identifier: Apache-2.0
// Writes small XSpaces for tests: planes with named metadata, lines, events and statistics.
#ifndef XPL_TESTS_XSPACE_MAKER_H_
#define XPL_TESTS_XSPACE_MAKER_H_

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "tests/check.h"

enum { MK_MAX_NAMES = 256, MK_MAX_BYTES = 1 << 28 };

struct mk_plane {
    struct xpl_buf body;
    const char *events[MK_MAX_NAMES], *stats[MK_MAX_NAMES]; // by id - 1
    int n_events, n_stats;
};

static inline void mk_varint(struct xpl_buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        xpl_buf_putc(b, (char)(v | 0x80));
    xpl_buf_putc(b, (char)v);
}
static inline void mk_int(struct xpl_buf *b, uint32_t num, int64_t v) {
    mk_varint(b, num << 3);
    mk_varint(b, (uint64_t)v);
}
static inline void mk_len(struct xpl_buf *b, uint32_t num, const void *p, size_t n) {
    mk_varint(b, num << 3 | 2);
    mk_varint(b, n);
    xpl_buf_put(b, p, n);
}
static inline void mk_text(struct xpl_buf *b, uint32_t num, const char *s) {
    mk_len(b, num, s, strlen(s));
}
// Appends `inner` as a submessage and frees it.
static inline void mk_close(struct xpl_buf *outer, uint32_t num, struct xpl_buf *inner) {
    CHECK(!inner->failed);
    mk_len(outer, num, inner->p, inner->n);
    xpl_buf_fini(inner);
}
static inline struct xpl_buf mk_open(void) {
    struct xpl_buf b = xpl_buf_of(MK_MAX_BYTES);
    return b;
}

// The id of a name.  A long one that many events have is given by one pointer, and not read.
static inline int mk_name(const char **names, int *n, const char *name) {
    for (int i = 0; i < *n; i++)
        if (names[i] == name || strcmp(names[i], name) == 0) return i + 1;
    CHECK(*n < MK_MAX_NAMES);
    names[(*n)++] = name;
    return *n;
}

static inline void mk_plane_begin(struct mk_plane *p, int64_t id, const char *name) {
    *p = (struct mk_plane){.body = mk_open()};
    mk_int(&p->body, 1, id);
    mk_text(&p->body, 2, name);
}
static inline struct mk_plane mk_plane(int64_t id, const char *name) {
    struct mk_plane p;
    mk_plane_begin(&p, id, name);
    return p;
}
// Writes the names that were used, and the plane into the space.
static inline void mk_plane_end(struct mk_plane *p, struct xpl_buf *space) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < (k ? p->n_stats : p->n_events); i++) {
            struct xpl_buf entry = mk_open(), md = mk_open();
            mk_int(&entry, 1, i + 1);
            mk_int(&md, 1, i + 1);
            mk_text(&md, 2, k ? p->stats[i] : p->events[i]);
            mk_close(&entry, 2, &md);
            mk_close(&p->body, k ? 5 : 4, &entry);
        }
    mk_close(space, 1, &p->body);
}

static inline struct xpl_buf mk_line(int64_t id, const char *name) {
    struct xpl_buf line = mk_open();
    mk_int(&line, 1, id);
    mk_text(&line, 2, name);
    return line;
}
static inline void mk_line_end(struct mk_plane *p, struct xpl_buf *line) {
    mk_close(&p->body, 3, line);
}

// An event; statistics follow, then mk_event_end.
static inline struct xpl_buf mk_event(struct mk_plane *p, const char *name, int64_t offset_ps,
                                      int64_t duration_ps) {
    struct xpl_buf ev = mk_open();
    mk_int(&ev, 1, mk_name(p->events, &p->n_events, name));
    mk_int(&ev, 2, offset_ps);
    mk_int(&ev, 3, duration_ps);
    return ev;
}
static inline void mk_stat_int(struct mk_plane *p, struct xpl_buf *ev, const char *name,
                               int64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, 4, v);
    mk_close(ev, 4, &s);
}
static inline void mk_stat_str(struct mk_plane *p, struct xpl_buf *ev, const char *name,
                               const char *v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_text(&s, 5, v);
    mk_close(ev, 4, &s);
}
// A reference: the text stands among the names of statistics.
static inline void mk_stat_ref(struct mk_plane *p, struct xpl_buf *ev, const char *name,
                               const char *v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, 7, mk_name(p->stats, &p->n_stats, v));
    mk_close(ev, 4, &s);
}
static inline void mk_event_end(struct xpl_buf *line, struct xpl_buf *ev) {
    mk_close(line, 4, ev);
}
// An event without statistics.
static inline void mk_plain(struct mk_plane *p, struct xpl_buf *line, const char *name,
                            int64_t offset_ps, int64_t duration_ps) {
    struct xpl_buf ev = mk_event(p, name, offset_ps, duration_ps);
    mk_event_end(line, &ev);
}

// A plane that says when the profile began.
static inline void mk_start(struct xpl_buf *space, int64_t ns) {
    struct mk_plane p;
    mk_plane_begin(&p, 1000, "Task Environment");
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p.stats, &p.n_stats, "profile_start_time"));
    mk_int(&s, 3, ns);
    mk_close(&p.body, 6, &s);
    mk_plane_end(&p, space);
}
// A host's thread with an event of 2 us at each of `us`, from `ns` on.
static inline struct xpl_buf mk_thread(int64_t ns, const int64_t *us, size_t n) {
    struct xpl_buf space = mk_open(), line = mk_line(1, "thread");
    struct mk_plane p;
    mk_plane_begin(&p, 1, "/host:CPU");
    mk_int(&line, 3, ns);
    for (size_t i = 0; i < n; i++)
        mk_plain(&p, &line, "event", us[i] * 1000000, 2000000);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

#endif
