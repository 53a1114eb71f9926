// SPDX-License-Identifier: Apache-2.0
// Limits of calls: how many, and how long their clients may neither send nor read.
// One of the group `calls` (impl.h).
//
// All calls of a server are in a list of the queue's thread, which sees their begin and their end.
// Where there is room, a client has a minute; where there is none, a call that has made no progress
// for a second is ended for the one that comes.
#include "base/clock.h"
#include "rpc/impl.h"

enum {
    REQUEST_MS = 30000, // for a request to arrive
    IDLE_MS = 60000,    // between the messages of a stream that needs no token
    SLOW_MS = 60000,    // for a message to be read, and a millisecond for each so many bytes:
    SLOW_BYTES_PER_MS = 32,
    CROWDED_MS = 1000, // when there is no room
    SEARCH_MS = 20,    // between two searches for a call that could make room
    STAYING_PART = 8,  // streams that need no token get this part of all calls
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
    if (c->stays) s->staying--;
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

// Notes whether what is written makes progress; returns for how long it has not.
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

// The answer that nobody reads is dropped, and the client told so as far as it listens.
static void end_writing(struct xpl_rpc_call *c) {
    c->ended = true;
    atomic_fetch_add(&c->entry->server->slow, 1);
    (void)grpc_call_cancel(c->call, NULL);
}

// The status may find a client that does not read: then the call is one that end_writing ends.
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
        end_waiting(c, XPL_DEADLINE_EXCEEDED, "no message came for a minute");
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

static bool may_go(const struct xpl_rpc_call *c, int64_t now) {
    return is_stuck(c, now) || (is_idle_stream(c) && now - c->active_ns > ms(CROWDED_MS)) ||
           (waits_for_request(c) && now - c->start_ns > ms(CROWDED_MS));
}

// The oldest call that makes no progress, of a client without the token where there is one: who has
// none ends nobody's who has it.
static struct xpl_rpc_call *find_one(const struct xpl_rpc_call *newcomer, bool staying) {
    const int64_t now = newcomer->start_ns;
    struct xpl_rpc_call *found = NULL;
    for (struct xpl_rpc_call *c = newcomer->entry->server->first_open; c; c = c->next_open) {
        if (c->authorized && (found || !newcomer->authorized)) continue;
        if (c->ended || (staying && !c->stays) || !may_go(c, now)) continue;
        found = c;
        if (!c->authorized) break;
    }
    return found;
}

// Ends a call for another one.  `staying`: one of the streams that need no token.
static bool make_room(const struct xpl_rpc_call *newcomer, bool staying) {
    const int64_t now = newcomer->start_ns;
    int64_t *const searched_ns =
        &newcomer->entry->server->searched_ns[staying ? 2 : newcomer->authorized];
    if (now - *searched_ns < ms(SEARCH_MS)) return false;
    struct xpl_rpc_call *const c = find_one(newcomer, staying);
    if (!c) {
        *searched_ns = now;
        return false;
    }
    if (is_stuck(c, now))
        end_writing(c);
    else
        end_waiting(c, XPL_RESOURCE_EXHAUSTED, "no message came, and others need the room");
    return true;
}

bool xpl_rpc_limits_admit(struct xpl_rpc_call *c, unsigned open) {
    struct xpl_rpc_server *const s = c->entry->server;
    const unsigned flags = c->entry->m.flags;
    if (flags & XPL_RPC_NO_AUTH && flags & (XPL_RPC_CLIENT_STREAM | XPL_RPC_STAYS)) {
        if (s->staying > s->max_calls / STAYING_PART && !make_room(c, true)) return false;
        c->stays = true;
        s->staying++;
    }
    return open < s->max_calls || make_room(c, false);
}
