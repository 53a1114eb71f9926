// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/ireeperf/records.h"

#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "analysis/ireeprof/ireeperf/line.h"

// Offsets in a record's header.
enum {
    RECORD_LENGTH = 0,
    PAYLOAD_LENGTH = 8,
    SESSION_ID = 16,
    STREAM_ID = 24,
    EVENT_ID = 32,
    HEADER_LENGTH = 56,
    CONTENT_TYPE_LENGTH = 60,
    DEVICE = 68,
    QUEUE = 72,
    CHUNK_FLAGS = 80,
    DROPPED = 88,
    STATUS = 96,
    TYPE = 100,
};

static void put_content_type(const struct xpl_ireeperf_head *h, struct xpl_buf *out) {
    const bool is_session = h->type == XPL_IREE_RECORD_BEGIN || h->type == XPL_IREE_RECORD_END;
    if (h->chunk < XPL_IREE_N_CHUNK_TYPES || is_session) {
        xpl_buf_str(out, XPL_IREE_CONTENT_TYPE);
        xpl_buf_str(out,
                    xpl_str_from(is_session ? "session" : xpl_iree_chunk_types[h->chunk].suffix));
        return;
    }
    const size_t n = out->n;
    if (!xpl_ireeperf_token_text(h->content_type, out)) out->n = n; // it stays without one
}

static void patch(const struct xpl_ireeperf_records *w, size_t offset, const void *p, size_t n) {
    if (!w->out->failed) memcpy(w->out->p + w->at + offset, p, n);
}

static void patch_place(const struct xpl_ireeperf_records *w) {
    const struct xpl_ireeperf_head *const h = &w->head;
    patch(w, STREAM_ID, &h->stream_id, sizeof h->stream_id);
    patch(w, DEVICE, &h->device, sizeof h->device);
    patch(w, QUEUE, &h->queue, sizeof h->queue);
}

static void begin(struct xpl_ireeperf_records *w, const struct xpl_ireeperf_head *head) {
    static const uint8_t zeros[XPL_IREE_RECORD_HEADER];
    const uint32_t header = sizeof zeros;
    w->head = *head;
    w->at = w->out->n;
    xpl_buf_put(w->out, zeros, sizeof zeros);
    put_content_type(head, w->out);
    w->payload = w->out->n;
    if (w->out->failed) return;
    const uint32_t content_type = (uint32_t)(w->payload - w->at - header);
    patch(w, SESSION_ID, &head->session_id, sizeof head->session_id);
    patch(w, EVENT_ID, &head->event_id, sizeof head->event_id);
    patch(w, HEADER_LENGTH, &header, sizeof header);
    patch(w, CONTENT_TYPE_LENGTH, &content_type, sizeof content_type);
    patch(w, CHUNK_FLAGS, &head->flags, sizeof head->flags);
    patch(w, DROPPED, &head->dropped, sizeof head->dropped);
    patch(w, STATUS, &head->status, sizeof head->status);
    patch(w, TYPE, &head->type, sizeof head->type);
    patch_place(w);
    if (head->index >= w->next) w->next = head->index + (head->index != UINT64_MAX);
}

void xpl_ireeperf_record_end(struct xpl_ireeperf_records *w) {
    const uint64_t length = w->out->n - w->at, payload = w->out->n - w->payload;
    if (!w->at) return;
    patch(w, RECORD_LENGTH, &length, sizeof length);
    patch(w, PAYLOAD_LENGTH, &payload, sizeof payload);
    w->at = 0;
}

static bool is_same(const struct xpl_ireeperf_records *w, const struct xpl_ireeperf_head *head) {
    const struct xpl_ireeperf_head *const h = &w->head;
    const bool chunk = head->type == XPL_IREE_RECORD_CHUNK;
    if (!w->at || !chunk || h->type != head->type || h->index != head->index ||
        h->chunk != head->chunk)
        return false;
    if (h->chunk >= XPL_IREE_N_CHUNK_TYPES) return xpl_str_eq(h->content_type, head->content_type);
    if (w->out->n == w->payload) return true;
    // Of traces a record has one.
    return h->chunk != XPL_IREE_TRACES && h->device == head->device && h->queue == head->queue &&
           h->stream_id == head->stream_id;
}

// Numbers that no row has are of records without rows: empty chunks.
static void fill(struct xpl_ireeperf_records *w, uint64_t index) {
    const uint64_t n = index > w->next ? index - w->next : 0;
    if (n > XPL_IREEPERF_GAPS_MAX - w->gaps) return;
    w->gaps += n;
    for (uint64_t i = 0; i < n && !w->out->failed; i++) {
        const struct xpl_ireeperf_head empty = {.index = w->next,
                                                .type = XPL_IREE_RECORD_CHUNK,
                                                .chunk = XPL_IREE_DISPATCH_EVENTS,
                                                .device = XPL_IREE_NONE,
                                                .queue = XPL_IREE_NONE,
                                                .session_id = w->session_id};
        begin(w, &empty);
        xpl_ireeperf_record_end(w);
    }
}

void xpl_ireeperf_record(struct xpl_ireeperf_records *w, const struct xpl_ireeperf_head *head) {
    if (is_same(w, head)) {
        const uint64_t flags = w->head.flags | head->flags;
        w->head.device = head->device, w->head.queue = head->queue;
        w->head.stream_id = head->stream_id, w->head.flags = flags;
        patch(w, CHUNK_FLAGS, &flags, sizeof flags);
        patch_place(w);
        return;
    }
    xpl_ireeperf_record_end(w);
    fill(w, head->index);
    begin(w, head);
}
