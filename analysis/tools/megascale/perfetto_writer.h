// SPDX-License-Identifier: Apache-2.0
// Packets of the Perfetto trace, with names and texts interned from 1 on.  Arguments are collected
// until the event that they belong to begins, flows until it begins or ends.  False: out of memory.
#ifndef XPL_ANALYSIS_TOOLS_MEGASCALE_PERFETTO_WRITER_H_
#define XPL_ANALYSIS_TOOLS_MEGASCALE_PERFETTO_WRITER_H_

#include "analysis/perfetto/packet.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { XPL_PERFETTO_POOLS = 3 };

struct xpl_perfetto_argument {
    uint64_t key; // interned
    size_t order; // among the event's
    uint32_t field;
    uint64_t bits; // of the value
};

struct xpl_perfetto_writer {
    struct xpl_arena *arena;
    struct xpl_packet packet;
    struct xpl_buf nested;
    size_t limit;
    struct xpl_intern *texts;
    struct xpl_map known[XPL_PERFETTO_POOLS]; // iids of a pool's entries, by text
    uint64_t last[XPL_PERFETTO_POOLS];
    XPL_VEC(struct xpl_perfetto_argument) arguments;
    XPL_VEC(uint64_t) flows;
};

bool xpl_perfetto_writer_init(struct xpl_perfetto_writer *w, struct xpl_buf *out,
                              struct xpl_arena *arena, size_t limit);
void xpl_perfetto_writer_fini(struct xpl_perfetto_writer *w);

bool xpl_perfetto_track(struct xpl_perfetto_writer *w, uint64_t uuid, uint64_t parent,
                        xpl_str_t name);
// A track of numbers; those of one `scale` are drawn alike.
bool xpl_perfetto_counter(struct xpl_perfetto_writer *w, uint64_t uuid, uint64_t parent,
                          xpl_str_t name, xpl_str_t unit, xpl_str_t scale);
bool xpl_perfetto_text(struct xpl_perfetto_writer *w, xpl_str_t key, xpl_str_t value);
bool xpl_perfetto_int(struct xpl_perfetto_writer *w, xpl_str_t key, int64_t value);
// Those of the statistics that XProf shows; bytes as an empty text.
bool xpl_perfetto_stats(struct xpl_perfetto_writer *w, struct xpl_stats stats);
// An arrow that ends where the next event begins, or begins where it ends.
bool xpl_perfetto_flow(struct xpl_perfetto_writer *w, uint64_t id);
// Takes the arguments; several of one key become an array.
bool xpl_perfetto_begin(struct xpl_perfetto_writer *w, uint64_t track, xpl_str_t name, uint64_t ns,
                        bool instant);
bool xpl_perfetto_end(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns);
bool xpl_perfetto_count(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns, int64_t value);
bool xpl_perfetto_rate(struct xpl_perfetto_writer *w, uint64_t track, uint64_t ns, double value);

#endif
