// What the files of rpc/ share.  Not for anybody else: it shows gRPC's types.
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

// What a completion queue gives back: the event runs itself, on the queue's thread.
struct xpl_rpc_tag {
    void (*fn)(struct xpl_rpc_tag *tag, bool ok);
};
#define XPL_RPC_OWNER(tag, type, member) ((type *)(void *)((char *)(tag)-offsetof(type, member)))

// What is written before a tag is given to gRPC is seen by the thread that gets it back: gRPC's
// completion queue orders them.  ThreadSanitizer cannot see into the packaged library, so it is
// told.
#if defined(__SANITIZE_THREAD__)
#define XPL_RPC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define XPL_RPC_TSAN 1
#endif
#endif
#ifdef XPL_RPC_TSAN
#include <sanitizer/tsan_interface.h>
#define XPL_RPC_HAND_OVER(tag) __tsan_release(tag)
#define XPL_RPC_TAKE_OVER(tag) __tsan_acquire(tag)
#else
#define XPL_RPC_HAND_OVER(tag) ((void)(tag))
#define XPL_RPC_TAKE_OVER(tag) ((void)(tag))
#endif

// A client's channel.
struct xpl_rpc_channel {
    grpc_channel *channel;
    char *bearer; // "Bearer TOKEN", NULL without
};
// The status of a call as ours, with the server's message.
xpl_status_t xpl_rpc_status_of(grpc_status_code code, grpc_slice message, struct xpl_error *err);

grpc_completion_queue *xpl_rpc_queue_get_cq(struct xpl_rpc_queue *q);

// Credentials for a listener; the caller releases them.
grpc_server_credentials *xpl_rpc_tls_make(struct xpl_rpc_tls *t);

// The blob's bytes as a slice with a reference of its own.
grpc_slice xpl_rpc_blob_slice(const struct xpl_rpc_blob *b);

// What came in: true, with a reference, when it is one slice.
bool xpl_rpc_only_slice(grpc_byte_buffer *bb, grpc_slice *ret);
// Copies all slices to `to`, which has room for grpc_byte_buffer_length; returns how much.
size_t xpl_rpc_gather(grpc_byte_buffer *bb, uint8_t *to);

// A method as the server keeps it.
struct xpl_rpc_entry {
    struct xpl_rpc_method m;
    struct xpl_rpc_server *server;
    void *handle; // gRPC's; NULL for the entry that answers unknown methods
    bool late;    // the body comes after the metadata
};

// One queued piece of a stream: a message, or a body to be cut into messages.
struct xpl_rpc_out {
    struct xpl_rpc_out *next;
    grpc_slice head, body;
    size_t at, chunk; // chunk 0: one message, as it is
    uint32_t field;
    bool started;
};

// Two counts keep a call.  `holders` are those who may still answer it: the handler while it runs,
// the read of a next message, and every xpl_rpc_call_ref.  When they are gone without an answer,
// the call is finished for them.  `refs` keep the memory: the holders together, and each batch that
// gRPC works on.
struct xpl_rpc_call {
    struct xpl_rpc_tag on_new, on_close, on_recv, on_sent, on_final;
    struct xpl_rpc_entry *entry;
    grpc_call *call;
    grpc_metadata_array metadata;
    grpc_call_details details; // unknown methods only
    gpr_timespec deadline;
    int64_t deadline_ns, start_ns;
    grpc_byte_buffer *payload;
    uint8_t *joined; // a request that came in several slices, put together
    grpc_slice request;
    bool has_request;
    bool spare;    // serves again: there was no memory to arm another
    bool paused;   // queue's thread: the next message is not asked for, and a hold is kept
    int peer_gone; // gRPC's answer to RECV_CLOSE
    atomic_bool cancelled, finished;
    atomic_uint holders, refs;
    void *user;
    void (*release_user)(void *);

    pthread_mutex_t mu;          // what is below, and gRPC's rule of one batch started at a time
    bool close_armed;            // RECV_CLOSE is under way
    bool metadata_sent, sending; // a batch with a message or the status is under way
    bool final_sent;
    bool handled; // the handler was called, so it hears of a cancellation
    unsigned queued;
    struct xpl_rpc_out *head, **tail;
    grpc_byte_buffer *final_message;
    grpc_status_code code;
    grpc_slice text, detail;
    bool has_text, has_detail;
};

void xpl_rpc_call_drop(struct xpl_rpc_call *c); // one of `refs`
// For callbacks that come on their own, when nobody may hold the call any more.
bool xpl_rpc_call_try_hold(struct xpl_rpc_call *c);
// All queued messages are written: read on, if that was waiting for it.
void xpl_rpc_call_resume(struct xpl_rpc_call *c);
// Starts a batch; c->mu is held.
void xpl_rpc_call_start(struct xpl_rpc_call *c, const grpc_op *ops, size_t n,
                        struct xpl_rpc_tag *tag);
// Adds RECV_CLOSE, unless it is under way; c->mu is held.  Returns the number of operations.
size_t xpl_rpc_call_op_close(struct xpl_rpc_call *c, grpc_op *op);
void xpl_rpc_call_on_sent(struct xpl_rpc_tag *tag, bool ok);
void xpl_rpc_call_on_final(struct xpl_rpc_tag *tag, bool ok);

// Puts one empty call up for the next request of this method.  `spare` (may be NULL) is memory to
// use; else it is allocated, and false means OOM.
bool xpl_rpc_call_arm(struct xpl_rpc_entry *e, struct xpl_rpc_call *spare);

struct xpl_rpc_server {
    grpc_server *server;
    struct xpl_rpc_queue *queue;
    grpc_completion_queue *cq;
    struct xpl_rpc_entry *entries; // n_entries, then the one for unknown methods
    size_t n_entries;
    uint32_t max_calls;
    bool has_token; // constant after new
    bool started;
    pthread_mutex_t mu; // token, n_token, stopping against adopt
    char *token;
    size_t n_token;
    atomic_bool stopping;
    atomic_uint records; // calls in memory, armed ones included, and one until the shutdown tag
    struct xpl_rpc_tag on_down;
    void (*done)(void *);
    void *done_arg;
    atomic_uint open;
    atomic_ullong calls, cancelled, unauthenticated, unimplemented, refused;
};

bool xpl_rpc_server_authorized(struct xpl_rpc_server *s, xpl_str_t header);
// One of `records` is gone; the last one tells the owner, who may free the server.
void xpl_rpc_server_dropped(struct xpl_rpc_server *s);

#endif
