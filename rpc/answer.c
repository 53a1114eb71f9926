// SPDX-License-Identifier: Apache-2.0
// Calls: outgoing data.
// One of the group `calls` (impl.h).
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "rpc/impl.h"
#include "rpc/message.h"

static const uint8_t EMPTY[1];

// ---- sending; the caller holds c->mu ----

void xpl_rpc_call_start(struct xpl_rpc_call *c, const grpc_op *ops, size_t n,
                        struct xpl_rpc_tag *tag) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    xpl_rpc_tag_release(tag);
    const grpc_call_error e = grpc_call_start_batch(c->call, ops, n, tag, NULL);
    // Only a mistake of ours in the order of operations is refused.
    if (e != GRPC_CALL_OK) abort();
}

size_t xpl_rpc_call_op_close(struct xpl_rpc_call *c, grpc_op *op) {
    if (c->close_armed) return 0;
    c->close_armed = true;
    op->op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    op->data.recv_close_on_server.cancelled = &c->peer_gone;
    return 1;
}

static size_t op_metadata(struct xpl_rpc_call *c, grpc_op *op) {
    if (c->metadata_sent) return 0;
    c->metadata_sent = true;
    op->op = GRPC_OP_SEND_INITIAL_METADATA;
    return 1;
}

// Sends all that is left in one batch.  A call that its handler answers needs no other batch, and
// so one trip through the completion queue.
static void send_final(struct xpl_rpc_call *c) {
    grpc_op ops[4] = {0};
    grpc_metadata trailer = {0};
    size_t n = op_metadata(c, ops);
    if (c->final_message) {
        c->writing = grpc_byte_buffer_length(c->final_message);
        ops[n].op = GRPC_OP_SEND_MESSAGE;
        ops[n++].data.send_message.send_message = c->final_message;
    }
    ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    ops[n].data.send_status_from_server.status = c->code;
    ops[n].data.send_status_from_server.status_details = c->has_text ? &c->text : NULL;
    if (c->has_detail) {
        trailer.key = grpc_slice_from_static_string("grpc-status-details-bin");
        trailer.value = c->detail;
        ops[n].data.send_status_from_server.trailing_metadata_count = 1;
        ops[n].data.send_status_from_server.trailing_metadata = &trailer;
    }
    n++;
    n += xpl_rpc_call_op_close(c, ops + n);
    c->final_sent = true;
    xpl_rpc_call_start(c, ops, n, &c->on_final);
}

static size_t put_chunk_head(uint8_t *p, uint32_t field, size_t len) {
    struct xpl_buf b = {.p = p, .cap = 16, .max = 16};
    xpl_rpc_put_len(&b, field, len);
    return b.n;
}

// The next message of a queued piece.
static grpc_byte_buffer *next_message(struct xpl_rpc_out *o) {
    grpc_slice parts[3] = {o->head, grpc_empty_slice(), o->body};
    size_t n = 3;
    if (!o->chunk) {
        parts[1] = o->body, n = 2;
    } else {
        const size_t left = GRPC_SLICE_LENGTH(o->body) - o->at;
        const size_t len = left < o->chunk ? left : o->chunk;
        uint8_t key[16];
        parts[0] = o->started ? grpc_empty_slice() : grpc_slice_ref(o->head);
        if (len)
            parts[1] =
                grpc_slice_from_copied_buffer((char *)key, put_chunk_head(key, o->field, len));
        parts[2] = grpc_slice_sub(o->body, o->at, o->at + len);
        o->at += len;
    }
    grpc_byte_buffer *const bb = grpc_raw_byte_buffer_create(parts, n);
    for (size_t i = 0; o->chunk && i < n; i++)
        grpc_slice_unref(parts[i]);
    o->started = true;
    return bb;
}

static void send_next(struct xpl_rpc_call *c) {
    grpc_op ops[2] = {0};
    size_t n = op_metadata(c, ops);
    grpc_byte_buffer *const bb = next_message(c->head);
    ops[n].op = GRPC_OP_SEND_MESSAGE;
    ops[n++].data.send_message.send_message = bb;
    c->sending = true;
    c->writing = grpc_byte_buffer_length(bb);
    xpl_rpc_call_start(c, ops, n, &c->on_sent);
    grpc_byte_buffer_destroy(bb); // gRPC has moved its slices
}

static void send_pending(struct xpl_rpc_call *c) {
    if (c->sending || c->final_sent) return;
    if (c->head)
        send_next(c);
    else if (atomic_load_explicit(&c->finished, memory_order_relaxed))
        send_final(c);
}

// Removes the first piece from the queue when all of it was sent; else NULL.
static struct xpl_rpc_out *pop_sent(struct xpl_rpc_call *c) {
    struct xpl_rpc_out *const o = c->head;
    if (o->chunk && o->at < GRPC_SLICE_LENGTH(o->body) && !atomic_load(&c->cancelled)) return NULL;
    c->head = o->next;
    if (!c->head) c->tail = &c->head;
    c->queued--;
    return o;
}

void xpl_rpc_call_on_sent(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_call, on_sent);
    const struct xpl_rpc_method *const m = &c->entry->m;
    pthread_mutex_lock(&c->mu);
    c->sending = false;
    c->sent++;
    struct xpl_rpc_out *const o = pop_sent(c);
    const bool empty = !c->head, drained = ok && empty && !atomic_load(&c->finished);
    send_pending(c);
    pthread_mutex_unlock(&c->mu);
    if (o) {
        grpc_slice_unref(o->head);
        grpc_slice_unref(o->body);
        xpl_sys_free(o);
    }
    if (empty) xpl_rpc_call_resume(c);
    if (drained && m->on_drained && xpl_rpc_call_try_hold(c)) {
        m->on_drained(c, m->service);
        xpl_rpc_call_unref(c);
    }
    xpl_rpc_call_drop(c);
}

void xpl_rpc_call_on_final(struct xpl_rpc_tag *tag, bool ok) {
    (void)ok; // a peer that is gone shows in RECV_CLOSE
    struct xpl_rpc_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_call, on_final);
    xpl_rpc_limits_end(c);
    xpl_rpc_call_drop(c);
}

// ---- answers ----

// True for the first caller, who then holds c->mu and sends the answer.
static bool claim_finish(struct xpl_rpc_call *c, xpl_status_t code) {
    const unsigned k = (unsigned)code < XPL_RPC_CODES ? (unsigned)code : XPL_UNKNOWN;
    pthread_mutex_lock(&c->mu);
    if (!atomic_load_explicit(&c->finished, memory_order_relaxed)) {
        atomic_store(&c->finished, true);
        atomic_fetch_add_explicit(&c->entry->answered[k], 1, memory_order_relaxed);
        return true;
    }
    pthread_mutex_unlock(&c->mu);
    return false;
}

static grpc_byte_buffer *make_message(xpl_bytes_t head, struct xpl_rpc_blob *body) {
    grpc_slice parts[2];
    size_t n = 0;
    if (head.len || !body)
        parts[n++] = grpc_slice_from_copied_buffer((const char *)head.ptr, head.len);
    if (body) parts[n++] = xpl_rpc_blob_slice(body);
    grpc_byte_buffer *const bb = grpc_raw_byte_buffer_create(parts, n);
    for (size_t i = 0; i < n; i++)
        grpc_slice_unref(parts[i]);
    return bb;
}

void xpl_rpc_finish(struct xpl_rpc_call *c, xpl_bytes_t head, struct xpl_rpc_blob *body) {
    grpc_byte_buffer *const bb = make_message(head, body);
    if (!claim_finish(c, XPL_OK)) {
        grpc_byte_buffer_destroy(bb);
        return;
    }
    c->final_message = bb;
    send_pending(c);
    pthread_mutex_unlock(&c->mu);
}

void xpl_rpc_finish_ok(struct xpl_rpc_call *c) {
    if (!claim_finish(c, XPL_OK)) return;
    send_pending(c);
    pthread_mutex_unlock(&c->mu);
}

static void finish_with_error(struct xpl_rpc_call *c, xpl_status_t code, xpl_str_t text,
                              xpl_bytes_t detail) {
    char buf[XPL_RPC_MAX_MESSAGE];
    const size_t n = xpl_rpc_status_text(buf, sizeof buf, text);
    if (!claim_finish(c, code)) return;
    c->code = (grpc_status_code)code;
    c->text = grpc_slice_from_copied_buffer(buf, n);
    c->has_text = true;
    if (detail.len) {
        c->detail = grpc_slice_from_copied_buffer((const char *)detail.ptr, detail.len);
        c->has_detail = true;
    }
    send_pending(c);
    pthread_mutex_unlock(&c->mu);
}

void xpl_rpc_finish_status(struct xpl_rpc_call *c, xpl_status_t code, const char *message) {
    finish_with_error(c, code, xpl_str_from(message), (xpl_bytes_t){0});
}

void xpl_rpc_finish_failure(struct xpl_rpc_call *c, const struct xpl_rpc_failure *f) {
    uint8_t bytes[XPL_RPC_MAX_MESSAGE + XPL_RPC_MAX_ERROR_INFO + 512];
    struct xpl_buf b = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    xpl_rpc_status_encode(&b, f);
    finish_with_error(c, f->code, f->message,
                      b.failed ? (xpl_bytes_t){0} : (xpl_bytes_t){b.p, b.n});
}

void xpl_rpc_finish_error(struct xpl_rpc_call *c, const struct xpl_error *err) {
    char number[24];
    struct xpl_rpc_failure f = {.code = err->code ? err->code : XPL_UNKNOWN,
                                .message = xpl_str_from(err->msg),
                                .retry_ms = -1};
    xpl_str_t pair[1][2] = {{XPL_STR("offset"), {number, 0}}};
    if (err->offset != UINT64_MAX && err->code == XPL_DATA_LOSS) {
        struct xpl_buf b = {.p = (uint8_t *)number, .cap = sizeof number, .max = sizeof number};
        xpl_buf_printf(&b, "%" PRIu64, err->offset);
        pair[0][1].len = b.n;
        f.reason = xpl_status_name(f.code);
        f.n_metadata = 1;
        f.metadata = (const xpl_str_t(*)[2])pair;
    }
    xpl_rpc_finish_failure(c, &f);
}

// A packed message as a blob; NULL on OOM.
static struct xpl_rpc_blob *pack_message(const ProtobufCMessage *m) {
    const size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *const bytes = xpl_sys_alloc(n ? n : 1);
    if (!bytes) return NULL;
    protobuf_c_message_pack(m, bytes);
    struct xpl_rpc_blob *const b = xpl_rpc_blob_take(bytes, n);
    if (!b) xpl_sys_free(bytes);
    return b;
}

void xpl_rpc_finish_message(struct xpl_rpc_call *c, const ProtobufCMessage *m) {
    struct xpl_rpc_blob *const b = pack_message(m);
    if (!b) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for the answer");
        return;
    }
    xpl_rpc_finish(c, (xpl_bytes_t){EMPTY, 0}, b);
    xpl_rpc_blob_unref(b);
}

xpl_status_t xpl_rpc_send_chunks(struct xpl_rpc_call *c, xpl_bytes_t head, uint32_t field,
                                 struct xpl_rpc_blob *body, size_t chunk) {
    struct xpl_rpc_out *const o = xpl_sys_alloc(sizeof *o);
    if (!o) return XPL_RESOURCE_EXHAUSTED;
    *o = (struct xpl_rpc_out){.field = field, .chunk = chunk};
    o->head = grpc_slice_from_copied_buffer((const char *)head.ptr, head.len);
    o->body = body ? xpl_rpc_blob_slice(body) : grpc_empty_slice();
    pthread_mutex_lock(&c->mu);
    const bool over = atomic_load(&c->finished) || atomic_load(&c->cancelled);
    if (!over) {
        *c->tail = o, c->tail = &o->next;
        c->queued++;
        send_pending(c);
    }
    pthread_mutex_unlock(&c->mu);
    if (!over) return XPL_OK;
    grpc_slice_unref(o->head);
    grpc_slice_unref(o->body);
    xpl_sys_free(o);
    return XPL_CANCELLED;
}

xpl_status_t xpl_rpc_send(struct xpl_rpc_call *c, xpl_bytes_t head, struct xpl_rpc_blob *body) {
    return xpl_rpc_send_chunks(c, head, 0, body, 0);
}

xpl_status_t xpl_rpc_send_message(struct xpl_rpc_call *c, const ProtobufCMessage *m) {
    struct xpl_rpc_blob *const b = pack_message(m);
    if (!b) return XPL_RESOURCE_EXHAUSTED;
    const xpl_status_t st = xpl_rpc_send(c, (xpl_bytes_t){EMPTY, 0}, b);
    xpl_rpc_blob_unref(b);
    return st;
}

unsigned xpl_rpc_call_queued(struct xpl_rpc_call *c) {
    pthread_mutex_lock(&c->mu);
    const unsigned n = c->queued;
    pthread_mutex_unlock(&c->mu);
    return n;
}
