// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/index/pieces.h"

#include <string.h>

void trc_piece_begin(struct piece_sums *s) {
    s->piece = (struct trc_piece){.first_ts = UINT64_MAX, .counted = 1};
    s->n = 0;
    memset(s->slots, 0, sizeof s->slots);
}

// The row of a name and a track; NULL when there are too many.
static struct trc_piece_sum *row_of(struct piece_sums *s, uint32_t name, uint16_t track) {
    uint64_t h = ((uint64_t)track << 32 | name) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = h >> 40;; at++) {
        uint16_t *const slot = &s->slots[at % PIECE_SLOTS];
        if (*slot) {
            struct trc_piece_sum *const row = &s->v[*slot - 1];
            if (row->name == name && row->track == track) return row;
            continue;
        }
        if (s->n == TRC_PIECE_SUMS) return NULL;
        s->v[s->n] = (struct trc_piece_sum){.name = name, .track = track, .min_ps = UINT64_MAX};
        *slot = (uint16_t)++s->n;
        return &s->v[s->n - 1];
    }
}

void trc_piece_add(struct piece_sums *s, uint64_t name, uint64_t track, uint64_t ts, uint64_t dur) {
    const uint64_t end = trc_piece_end_of(ts, dur);
    if (ts < s->piece.first_ts) s->piece.first_ts = ts;
    if (end > s->piece.end) s->piece.end = end;
    // A time that wraps around is cut by windows, which a sum could not be.
    struct trc_piece_sum *const row = s->piece.counted && ts + dur >= ts && track <= UINT16_MAX
                                          ? row_of(s, (uint32_t)name, (uint16_t)track)
                                          : NULL;
    if (!row) {
        s->piece.counted = 0;
        return;
    }
    row->count++;
    row->total_ps = row->total_ps + dur < dur ? UINT64_MAX : row->total_ps + dur;
    if (dur < row->min_ps) row->min_ps = dur;
    if (dur > row->max_ps) row->max_ps = dur;
}

void trc_piece_end(struct piece_sums *s, uint64_t offset) {
    if (!s->piece.counted) s->n = 0;
    s->piece.offset = offset;
    s->piece.n_sums = s->n;
    s->piece.sum = trc_sum(s->v, s->n * sizeof *s->v);
}
