// SPDX-License-Identifier: Apache-2.0
// Limits of calls: their number, and the time in which their clients may neither send nor read.
// One of the group `calls` (impl.h).
//
// A list of the queue's thread has all calls of a server; the thread sees their begin and their
// end.  If there is room, a client has a minute; otherwise a new call ends one that has made no
// progress for a second.  On a server with a token, calls with and without it have separate limits:
// strangers, however many and however fast, take no room from authorized clients.
#include "base/clock.h"
#include "rpc/impl.h"

enum {
    REQUEST_MS = 30000, // for a request to arrive
    IDLE_MS = 60000,    // between the messages of a stream that needs no token
    SLOW_MS = 60000,    // for a message to be read, and a millisecond for each so many bytes:
    SLOW_BYTES_PER_MS = 32,
    CROWDED_MS = 1000, // when the server has no room
    SEARCH_MS = 20,    // between two searches for a call that could make room
    GUEST_PART = 8,    // guests of each kind get this part of all calls
    LEAVING = 64,      // further guests that were ended and have not left yet
};

static int64_t ms(int64_t n) {
    return n * 1000000;
}

void xpl_rpc_limits_begin(struct xpl_rpc_call *c) {
    struct xpl_rpc_server *const s = c->entry->server;
    c->is_open = true;
    c->active_ns = c->start_ns;
    c->prev_open = s->last_open;
    *(s->last_open ? &s->last_open->next_open : &s->first_open) = c;
    s->last_open = c;
}

void xpl_rpc_limits_end(struct xpl_rpc_call *c) {
    struct xpl_rpc_server *const s = c->entry->server;
    if (!c->is_open) return;
    c->is_open = false;
    *(c->prev_open ? &c->prev_open->next_open : &s->first_open) = c->next_open;
    *(c->next_open ? &c->next_open->prev_open : &s->last_open) = c->prev_open;
    s->strangers -= c->stranger;
    if (c->guest) s->guests[c->guest]--;
}

// ---- time ----

static bool is_idle_stream(const struct xpl_rpc_call *c) {
    const unsigned both = XPL_RPC_NO_AUTH | XPL_RPC_CLIENT_STREAM;
    return (c->entry->m.flags & both) == both && !atomic_load(&c->finished);
}

static bool waits_for_request(const struct xpl_rpc_call *c) {
    return c->entry->late && !c->handled && !(c->entry->m.flags & XPL_RPC_CLIENT_STREAM) &&
           !atomic_load(&c->finished);
}

// Returns for how long the pending output has made no progress.
static int64_t note_progress(struct xpl_rpc_call *c, int64_t now, size_t *ret_bytes) {
    pthread_mutex_lock(&c->mu);
    const bool writing = c->sending || c->final_sent;
    if (!writing)
        c->stuck_ns = 0;
    else if (!c->stuck_ns || c->sent_seen != c->sent)
        c->stuck_ns = now, c->sent_seen = c->sent;
    const int64_t stuck = c->stuck_ns ? now - c->stuck_ns : 0;
    *ret_bytes = c->writing;
    pthread_mutex_unlock(&c->mu);
    return stuck;
}

// Drops an answer that its client does not read, and cancels the call.
static void end_writing(struct xpl_rpc_call *c) {
    c->ended = true;
    atomic_fetch_add(&c->entry->server->slow, 1);
    (void)grpc_call_cancel(c->call, NULL);
}

// A client may not read the status either: then end_writing ends the call.
static void end_waiting(struct xpl_rpc_call *c, xpl_status_t code, const char *text) {
    atomic_fetch_add(&c->entry->server->slow, 1);
    xpl_rpc_finish_status(c, code, text);
}

static void check_call(struct xpl_rpc_call *c, int64_t now) {
    size_t bytes;
    const int64_t stuck = note_progress(c, now, &bytes);
    if (c->ended) return;
    if (stuck > ms(SLOW_MS + (int64_t)(bytes / SLOW_BYTES_PER_MS)))
        end_writing(c);
    else if (waits_for_request(c) && now - c->start_ns > ms(REQUEST_MS))
        end_waiting(c, XPL_DEADLINE_EXCEEDED, "the request did not arrive in time");
    else if (is_idle_stream(c) && now - c->active_ns > ms(IDLE_MS))
        end_waiting(c, XPL_DEADLINE_EXCEEDED, "no message arrived for a minute");
}

void xpl_rpc_server_sweep(struct xpl_rpc_server *s) {
    const int64_t now = (int64_t)xpl_clock_ns();
    for (struct xpl_rpc_call *c = s->first_open; c; c = c->next_open)
        check_call(c, now);
}

// ---- number ----

static bool is_stuck(const struct xpl_rpc_call *c, int64_t now) {
    return c->stuck_ns && now - c->stuck_ns > ms(CROWDED_MS);
}

// A stream that only waits for news, such as a watch of health: its client reconnects.
static bool is_guests_watch(const struct xpl_rpc_call *c) {
    return c->guest && c->handled && c->entry->m.flags & XPL_RPC_STAYS &&
           !atomic_load(&c->finished);
}

static bool may_go(const struct xpl_rpc_call *c, int64_t now, int64_t patience) {
    return is_stuck(c, now) || (is_idle_stream(c) && now - c->active_ns > patience) ||
           ((waits_for_request(c) || is_guests_watch(c)) && now - c->start_ns > patience);
}

// The oldest call without progress.  Callers without a token end only calls without one; callers
// with a token need no room of the others.  guest: of this kind, or of any kind.
static struct xpl_rpc_call *find_one(const struct xpl_rpc_call *newcomer,
                                     enum xpl_rpc_guest guest) {
    const int64_t now = newcomer->start_ns;
    // The message of a call arrives with its header, or soon after it: a client hardly misses the
    // oldest of so many calls.
    const int64_t patience = guest == XPL_RPC_GUEST_CALL ? 0 : ms(CROWDED_MS);
    for (struct xpl_rpc_call *c = newcomer->entry->server->first_open; c; c = c->next_open)
        if (c->authorized == newcomer->authorized && !c->ended && (!guest || c->guest == guest) &&
            may_go(c, now, patience))
            return c;
    return NULL;
}

// The service still lists the watch: it handles the end like a cancellation.
static void end_watch(struct xpl_rpc_call *c) {
    const struct xpl_rpc_method *const m = &c->entry->m;
    const bool referenced = m->on_cancel && xpl_rpc_call_try_hold(c);
    end_waiting(c, XPL_RESOURCE_EXHAUSTED, "others need the room");
    if (!referenced) return;
    m->on_cancel(c, m->service);
    xpl_rpc_call_unref(c);
}

// Ends a call to make room: for a guest one of the same kind, for others any call.
static bool make_room(const struct xpl_rpc_call *newcomer, enum xpl_rpc_guest guest) {
    struct xpl_rpc_server *const s = newcomer->entry->server;
    const int64_t now = newcomer->start_ns;
    int64_t *const searched_ns =
        &s->searched_ns[newcomer->authorized ? XPL_RPC_GUEST_KINDS : (unsigned)guest];
    if (now - *searched_ns < ms(SEARCH_MS)) return false;
    struct xpl_rpc_call *const c = find_one(newcomer, guest);
    if (!c) {
        *searched_ns = now;
        return false;
    }
    if (is_stuck(c, now))
        end_writing(c);
    else if (is_guests_watch(c))
        end_watch(c);
    else
        end_waiting(c, XPL_RESOURCE_EXHAUSTED, "no message arrived, and others need the room");
    return true;
}

void xpl_rpc_limits_identify(struct xpl_rpc_call *c) {
    struct xpl_rpc_server *const s = c->entry->server;
    c->stranger = s->has_token && !c->authorized;
    s->strangers += c->stranger;
}

// On a server with a token, a guest is any call that needs none, since its message may never
// arrive; on a server without a token, a call without an end.
static enum xpl_rpc_guest kind_of(const struct xpl_rpc_call *c) {
    const unsigned flags = c->entry->m.flags;
    if (!(flags & XPL_RPC_NO_AUTH) || c->authorized) return XPL_RPC_GUEST_NONE;
    if (flags & (XPL_RPC_CLIENT_STREAM | XPL_RPC_STAYS)) return XPL_RPC_GUEST_STREAM;
    return c->stranger ? XPL_RPC_GUEST_CALL : XPL_RPC_GUEST_NONE;
}

static bool admit_guest(struct xpl_rpc_call *c, enum xpl_rpc_guest kind) {
    struct xpl_rpc_server *const s = c->entry->server;
    const unsigned room = s->max_calls / GUEST_PART, there = s->guests[kind];
    const bool made = there > room && make_room(c, kind);
    if (there > room && (!made || there > room + LEAVING)) return false;
    c->guest = kind;
    s->guests[kind]++;
    return true;
}

bool xpl_rpc_limits_admit(struct xpl_rpc_call *c, unsigned open) {
    struct xpl_rpc_server *const s = c->entry->server;
    const enum xpl_rpc_guest kind = kind_of(c);
    if (kind && !admit_guest(c, kind)) return false;
    if (c->stranger) return true; // a guest: other calls without the token do not get here
    // A call stops being a stranger before it stops being open, so `open` is at least `strangers`.
    return open - s->strangers < s->max_calls || make_room(c, XPL_RPC_GUEST_NONE);
}
