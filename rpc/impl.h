// SPDX-License-Identifier: Apache-2.0
// Private to rpc: declarations that its files share, with gRPC's types.
//
// Group calls: answer.c call.c limits.c
//
// These refer to each other: they are one state machine under one mutex.  An arriving message may
// be answered at once, a message that was sent lets the next one be read, and a limit ends a call
// whose message does not arrive, or whose answer the client does not read.
#ifndef XPL_RPC_IMPL_H_
#define XPL_RPC_IMPL_H_

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/str.h"
#include "rpc/call.h"
#include "rpc/server.h"

// gRPC is up from start to stop; calls nest.  Start leaves this thread with all signals blocked,
// for threads that it makes now: the caller restores *ret_old.  The last stop waits for gRPC's
// threads; never call it from one of them.
void xpl_rpc_library_start(sigset_t *ret_old);
void xpl_rpc_library_stop(void);

// A completion queue's event: fn is called when it completes, on the queue's thread.
struct xpl_rpc_tag {
    void (*fn)(struct xpl_rpc_tag *tag, bool ok);
};
#define XPL_RPC_OWNER(tag, type, member) ((type *)(void *)((char *)(tag)-offsetof(type, member)))

// The thread that gets a tag back from gRPC sees all writes before the tag was given away: gRPC's
// completion queue orders them.  ThreadSanitizer cannot see into the packaged library, so these two
// functions, called before a tag is given away and after it came back, declare that order to it.
#if defined(__SANITIZE_THREAD__)
#define XPL_RPC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define XPL_RPC_TSAN 1
#endif
#endif
#ifdef XPL_RPC_TSAN
#include <sanitizer/tsan_interface.h>
static inline void xpl_rpc_tag_release(struct xpl_rpc_tag *tag) {
    __tsan_release(tag);
}
static inline void xpl_rpc_tag_acquire(struct xpl_rpc_tag *tag) {
    __tsan_acquire(tag);
}
#else
static inline void xpl_rpc_tag_release(struct xpl_rpc_tag *tag) {
    (void)tag;
}
static inline void xpl_rpc_tag_acquire(struct xpl_rpc_tag *tag) {
    (void)tag;
}
#endif

// A client's channel.
struct xpl_rpc_channel {
    grpc_channel *channel;
    grpc_resource_quota *quota; // NULL unless the channel is bounded
    char *bearer;               // "Bearer TOKEN", NULL without
    bool is_unix;               // the target is a Unix socket
};
// Sets how much of an answer a bounded channel may hold, bytes; others stay as they are.
void xpl_rpc_channel_bound(struct xpl_rpc_channel *ch, uint64_t bytes);
// The status of a call as ours, with the server's message.
xpl_status_t xpl_rpc_status_of(grpc_status_code code, grpc_slice message, struct xpl_error *err);

grpc_completion_queue *xpl_rpc_queue_get_cq(struct xpl_rpc_queue *q);
// A server of the queue, whose calls are swept on the queue's thread until it is removed.
void xpl_rpc_queue_add(struct xpl_rpc_queue *q, struct xpl_rpc_server *s);
void xpl_rpc_queue_remove(struct xpl_rpc_queue *q, const struct xpl_rpc_server *s);

// gRPC's object that takes accepted sockets for TLS (external.c), and the argument of a server by
// which it is left in *slot.
struct xpl_rpc_handler;
grpc_arg xpl_rpc_external_arg(struct xpl_rpc_handler **slot);

// Credentials for a listener; the caller releases them.
grpc_server_credentials *xpl_rpc_tls_make(struct xpl_rpc_tls *t);

// The blob's bytes as a slice with a separate reference.
grpc_slice xpl_rpc_blob_slice(const struct xpl_rpc_blob *b);

// True when bb is one slice: *ret is that slice, with a reference.
bool xpl_rpc_only_slice(grpc_byte_buffer *bb, grpc_slice *ret);
// Copies all slices to `to`, which has room for grpc_byte_buffer_length; returns the bytes copied.
size_t xpl_rpc_gather(grpc_byte_buffer *bb, uint8_t *to);

// A method of the server's table.
struct xpl_rpc_entry {
    struct xpl_rpc_method m;
    struct xpl_rpc_server *server;
    void *handle; // gRPC's; NULL for the entry that answers unknown methods
    bool late;    // the body comes after the metadata
    atomic_ullong answered[XPL_RPC_CODES]; // calls, by their status
};

// One queued piece of a stream: a message, or a body to be cut into messages.
struct xpl_rpc_out {
    struct xpl_rpc_out *next;
    grpc_slice head, body;
    size_t at, chunk; // chunk 0: one message, as it is
    uint32_t field;
    bool started;
};

// Calls of clients without authentication.  Each kind has a separate limit.
enum xpl_rpc_guest {
    XPL_RPC_GUEST_NONE,
    XPL_RPC_GUEST_CALL,   // one message, one answer: it stays as long as its message does not come
    XPL_RPC_GUEST_STREAM, // may stay as long as it likes
    XPL_RPC_GUEST_KINDS
};

// A call has two counts.  `holders` may still answer it: the handler while it runs, the read of a
// next message, and every xpl_rpc_call_ref.  When the last holder goes without an answer, the call
// is finished with INTERNAL.  `refs` own the memory: one for all holders, and one for each batch
// that gRPC works on.
struct xpl_rpc_call {
    struct xpl_rpc_tag on_new, on_close, on_recv, on_sent, on_final;
    struct xpl_rpc_entry *entry;
    grpc_call *call;
    grpc_metadata_array metadata;
    grpc_call_details details; // unknown methods only
    gpr_timespec deadline;
    int64_t start_ns;
    grpc_byte_buffer *payload;
    uint8_t *joined; // a request that came in several slices, put together
    grpc_slice request;
    bool has_request;
    bool spare;    // reused for the next call: no memory was left to arm another
    bool paused;   // queue's thread only: no message is being read; counted in holders
    int peer_gone; // gRPC's answer to RECV_CLOSE
    atomic_bool cancelled, finished;
    atomic_uint holders, refs;
    void *user;
    void (*release_user)(void *);

    // Of the queue's thread: all calls of the server whose end gRPC has not reported, oldest first.
    struct xpl_rpc_call *next_open, *prev_open;
    bool is_open, ended; // ended: cancelled by a limit
    bool authorized;     // by one of the server's tokens
    struct xpl_rpc_identity identity;
    bool stranger;            // counted in the server's `strangers`
    enum xpl_rpc_guest guest; // counted in the server's `guests`
    int64_t active_ns;        // of a stream that needs no token: when its last message came

    pthread_mutex_t mu; // the members below, and gRPC's rule of one batch started at a time
    bool close_armed;   // RECV_CLOSE is under way
    bool metadata_sent, sending; // a batch with a message or the status is under way
    bool final_sent;
    bool handled;             // the handler was called: it is notified of a cancellation
    unsigned sent, sent_seen; // messages written; when the last sweep looked
    int64_t stuck_ns;         // time since sweeps have seen no progress of a write; 0: none
    size_t writing;           // bytes of the message that is written
    unsigned queued;
    struct xpl_rpc_out *head, **tail;
    grpc_byte_buffer *final_message;
    grpc_status_code code;
    grpc_slice text, detail;
    bool has_text, has_detail;
};

void xpl_rpc_call_drop(struct xpl_rpc_call *c); // one of `refs`
// Adds a holder, unless there is none left.  For callbacks that no holder causes.
bool xpl_rpc_call_try_hold(struct xpl_rpc_call *c);
// Continues to read a client's stream that waited until all queued messages were written.
void xpl_rpc_call_resume(struct xpl_rpc_call *c);
// Starts a batch; the caller holds c->mu.
void xpl_rpc_call_start(struct xpl_rpc_call *c, const grpc_op *ops, size_t n,
                        struct xpl_rpc_tag *tag);
// Adds RECV_CLOSE, unless it is under way; the caller holds c->mu.  Returns the number of
// operations.
size_t xpl_rpc_call_op_close(struct xpl_rpc_call *c, grpc_op *op);
void xpl_rpc_call_on_sent(struct xpl_rpc_tag *tag, bool ok);
void xpl_rpc_call_on_final(struct xpl_rpc_tag *tag, bool ok);

// Registers an empty call for the next request of this method.  `spare` (may be NULL) is memory to
// use; else it is allocated, and false means OOM.
bool xpl_rpc_call_arm(struct xpl_rpc_entry *e, struct xpl_rpc_call *spare);

struct xpl_rpc_server {
    grpc_server *server;
    struct xpl_rpc_queue *queue;
    struct xpl_rpc_server *next_server; // of the queue, under its mutex
    grpc_completion_queue *cq;
    struct xpl_rpc_entry *entries; // n_entries, then the one for unknown methods
    size_t n_entries;
    struct xpl_rpc_handler *tls; // NULL without TLS
    uint32_t max_calls;
    bool has_token; // constant after new
    bool started;
    pthread_mutex_t mu; // tokens, stopping against adopt
    struct xpl_rpc_tokens *tokens;
    atomic_bool stopping;
    atomic_uint records; // calls in memory, armed ones included, and one until the shutdown tag
    struct xpl_rpc_call *first_open, *last_open; // queue's thread only
    // Queue's thread only. strangers: open calls without the token of a server that has one;
    // guests: those admitted without authentication (limits.c).
    unsigned strangers, guests[XPL_RPC_GUEST_KINDS];
    // When no call was found that could make room for a guest, for one with the token, and for one
    // without.
    int64_t searched_ns[XPL_RPC_GUEST_KINDS + 1];
    struct xpl_rpc_tag on_down;
    void (*done)(void *);
    void *done_arg;
    atomic_uint open;
    atomic_ullong calls, cancelled, unauthenticated, denied, unimplemented, refused, slow;
};

// Whether a value of the metadata "authorization" carries one of the server's tokens, and whose
// (token.c).
bool xpl_rpc_server_identify(struct xpl_rpc_server *s, xpl_str_t header,
                             struct xpl_rpc_identity *ret);
// Subtracts one of `records`.  The last one calls the owner, which may free the server.
static inline void xpl_rpc_server_drop_record(struct xpl_rpc_server *s) {
    if (atomic_fetch_sub(&s->records, 1) == 1) s->done(s->done_arg);
}

// Adds one of `records`, unless there is none left.
static inline bool xpl_rpc_server_try_hold(struct xpl_rpc_server *s) {
    unsigned n = atomic_load(&s->records);
    while (n)
        if (atomic_compare_exchange_weak(&s->records, &n, n + 1)) return true;
    return false;
}

// ---- limits of time and number (limits.c); all on the queue's thread ----

// A call has begun, or gRPC has reported its end.
void xpl_rpc_limits_begin(struct xpl_rpc_call *c);
// The caller has been authenticated.
void xpl_rpc_limits_identify(struct xpl_rpc_call *c);
void xpl_rpc_limits_end(struct xpl_rpc_call *c);
// Whether the server has room for the call, besides `open` others.  May end an older one for it.
bool xpl_rpc_limits_admit(struct xpl_rpc_call *c, unsigned open);
// Ends calls whose clients neither send nor read.
void xpl_rpc_server_sweep(struct xpl_rpc_server *s);

#endif
