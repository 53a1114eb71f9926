// SPDX-License-Identifier: Apache-2.0
#include "analysis/perfetto/packet.h"

#include <string.h>

enum {
    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    FLAG_CLEARED = 1,
    FLAG_NEEDED = 2,
};

void xpl_packet_init(struct xpl_packet *p, struct xpl_buf *out, uint32_t sequence, size_t limit) {
    struct xpl_buf *const bufs[] = {&p->packet, &p->body, &p->part, &p->interned};
    *p = (struct xpl_packet){.out = out, .sequence = sequence};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        xpl_buf_init(bufs[i], limit);
}

void xpl_packet_fini(struct xpl_packet *p) {
    struct xpl_buf *const bufs[] = {&p->packet, &p->body, &p->part, &p->interned};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        xpl_buf_fini(bufs[i]);
}

static void put_varint(struct xpl_buf *b, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    xpl_buf_put(b, bytes, n);
}

void xpl_pf_uint(struct xpl_buf *b, uint32_t field, uint64_t v) {
    put_varint(b, field << 3);
    put_varint(b, v);
}

void xpl_pf_fixed(struct xpl_buf *b, uint32_t field, uint64_t v) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    put_varint(b, field << 3 | 1);
    xpl_buf_put(b, bytes, sizeof bytes);
}

void xpl_pf_double(struct xpl_buf *b, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    xpl_pf_fixed(b, field, bits);
}

void xpl_pf_str(struct xpl_buf *b, uint32_t field, xpl_str_t s) {
    put_varint(b, field << 3 | 2);
    put_varint(b, s.len);
    xpl_buf_str(b, s);
}

void xpl_pf_part(struct xpl_buf *b, uint32_t field, struct xpl_buf *part) {
    xpl_pf_str(b, field, (xpl_str_t){(const char *)part->p, part->n});
    b->failed |= part->failed;
    part->n = 0;
}

static bool finish_packet(struct xpl_packet *p, uint32_t flags) {
    xpl_pf_uint(&p->packet, PACKET_SEQUENCE, p->sequence);
    xpl_pf_uint(&p->packet, PACKET_FLAGS, p->begins ? flags | FLAG_CLEARED : flags);
    p->begins = false;
    xpl_pf_part(p->out, TRACE_PACKET, &p->packet);
    return !p->out->failed;
}

bool xpl_packet_clear(struct xpl_packet *p) {
    return finish_packet(p, FLAG_CLEARED);
}

bool xpl_packet_track(struct xpl_packet *p) {
    xpl_pf_part(&p->packet, PACKET_TRACK, &p->body);
    return finish_packet(p, FLAG_NEEDED);
}

bool xpl_packet_event(struct xpl_packet *p, uint64_t ns) {
    xpl_pf_uint(&p->packet, PACKET_TIMESTAMP, ns);
    if (p->interned.n || p->interned.failed) xpl_pf_part(&p->packet, PACKET_INTERNED, &p->interned);
    xpl_pf_part(&p->packet, PACKET_EVENT, &p->body);
    return finish_packet(p, FLAG_NEEDED);
}

uint64_t xpl_pf_mix(uint64_t h, uint64_t v) {
    __extension__ typedef unsigned __int128 u128;
    const u128 m = (u128)(h ^ v ^ UINT64_C(0xa0761d6478bd642f)) * UINT64_C(0xe7037ed1a0b428db);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}
