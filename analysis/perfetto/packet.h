// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format, written by hand: messages are small, and lengths come before contents.
// Field numbers: protos/perfetto/trace/{trace_packet,track_event/*,interned_data/*}.proto.
//
// A packet is built in private buffers, from the inside out: `part` is a small message of `body`,
// which is the event or the descriptor of a track.  Finishing appends the packet to `out` and
// empties the buffers.  Without memory the packet fails when it is finished.  One thread.
#ifndef XPL_ANALYSIS_PERFETTO_PACKET_H_
#define XPL_ANALYSIS_PERFETTO_PACKET_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum {
    XPL_PF_INTERNED_EVENT_NAMES = 2,
    XPL_PF_INTERNED_ARGUMENT_NAMES = 3,
    XPL_PF_INTERNED_STRINGS = 29,

    XPL_PF_EVENT_ARGUMENT = 4,
    XPL_PF_EVENT_TYPE = 9,
    XPL_PF_EVENT_NAME_IID = 10,
    XPL_PF_EVENT_TRACK = 11,
    XPL_PF_EVENT_NAME = 23,
    XPL_PF_EVENT_COUNTER = 30,
    XPL_PF_EVENT_DOUBLE_COUNTER = 44,
    XPL_PF_EVENT_FLOW = 47,
    XPL_PF_TYPE_BEGIN = 1,
    XPL_PF_TYPE_END = 2,
    XPL_PF_TYPE_INSTANT = 3,
    XPL_PF_TYPE_COUNTER = 4,

    XPL_PF_ARGUMENT_NAME_IID = 1,
    XPL_PF_ARGUMENT_BOOL = 2,
    XPL_PF_ARGUMENT_UINT = 3,
    XPL_PF_ARGUMENT_INT = 4,
    XPL_PF_ARGUMENT_DOUBLE = 5,
    XPL_PF_ARGUMENT_STRING = 6,
    XPL_PF_ARGUMENT_NAME = 10,
    XPL_PF_ARGUMENT_STRING_IID = 17,

    XPL_PF_TRACK_UUID = 1,
    XPL_PF_TRACK_NAME = 2,
    XPL_PF_TRACK_PROCESS = 3,
    XPL_PF_TRACK_THREAD = 4,
    XPL_PF_TRACK_PARENT = 5,
    XPL_PF_TRACK_COUNTER = 8,
    XPL_PF_TRACK_CHILD_ORDERING = 11,
    XPL_PF_TRACK_RANK = 12,
    XPL_PF_EXPLICIT = 3, // a track's children are in the order of their ranks
};

struct xpl_packet {
    struct xpl_buf *out;
    uint32_t sequence;
    bool begins; // the next packet also says that nothing is interned yet
    struct xpl_buf packet, body, part, interned;
};
// Each buffer grows to at most `limit` bytes.  Does not write: see xpl_packet_clear.
void xpl_packet_init(struct xpl_packet *p, struct xpl_buf *out, uint32_t sequence, size_t limit);
void xpl_packet_fini(struct xpl_packet *p);

// Fields, appended to one of the buffers.
void xpl_pf_uint(struct xpl_buf *b, uint32_t field, uint64_t v);
void xpl_pf_fixed(struct xpl_buf *b, uint32_t field, uint64_t v); // 64 bits
void xpl_pf_double(struct xpl_buf *b, uint32_t field, double v);
void xpl_pf_str(struct xpl_buf *b, uint32_t field, xpl_str_t s);
// Appends the contents of `part`, and empties it.
void xpl_pf_part(struct xpl_buf *b, uint32_t field, struct xpl_buf *part);

// Packets.  False: out of memory, or over the limit.
// The first of a sequence: nothing is interned yet.
bool xpl_packet_clear(struct xpl_packet *p);
// The descriptor of a track, whose fields are in `body`.
bool xpl_packet_track(struct xpl_packet *p);
// The event whose fields are in `body`, with the texts that it interned.
bool xpl_packet_event(struct xpl_packet *p, uint64_t ns);

// For uuids of tracks and ids of flows, which are hashes of their keys.
uint64_t xpl_pf_mix(uint64_t h, uint64_t v);

#endif
