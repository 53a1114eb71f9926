// SPDX-License-Identifier: Apache-2.0
// For the writer of an index: the sums of a piece (format.h), made while its blocks are encoded.
#ifndef XPL_ANALYSIS_TRACE_INDEX_PIECES_H_
#define XPL_ANALYSIS_TRACE_INDEX_PIECES_H_

#include "analysis/trace/index/format.h"

enum { PIECE_SLOTS = 4 * TRC_PIECE_SUMS };

struct piece_sums {
    struct trc_piece piece;
    uint32_t n;
    uint16_t slots[PIECE_SLOTS]; // position in v + 1
    struct trc_piece_sum v[TRC_PIECE_SUMS];
};

void trc_piece_begin(struct piece_sums *s);
// Of events in any order, but for the first, which is the earliest.
void trc_piece_add(struct piece_sums *s, uint64_t name, uint64_t track, uint64_t ts, uint64_t dur);
// Fills in the piece, whose n_sums rows of v the caller writes at `offset` of the file.
void trc_piece_end(struct piece_sums *s, uint64_t offset);

#endif
