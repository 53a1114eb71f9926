// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen/guard.h"

#include <string.h>

#include "base/arena.h"

enum { PREFIX = 5, OVERSIZE = 4 };

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Budgets: far above what clients need.  A client that gives up thousands of calls at once, and one
// that measures its bandwidth by pings (gRPC's do, for each batch of data they receive), stay
// within.
static const struct xpl_rpc_rate RESETS = {4096, 1000}, ALL_RESETS = {4096, 2000},
                                 CHANGES = {64, 10}, OTHERS = {20000, 10000},
                                 WINDOWS = {200000, 200000};

const char *xpl_rpc_guard_explain(enum xpl_rpc_guard_verdict v) {
    static const char *const texts[XPL_RPC_GUARD_VERDICTS] = {
        [XPL_RPC_GUARD_FINE] = "fine",
        [XPL_RPC_GUARD_PREFACE] = "no HTTP/2",
        [XPL_RPC_GUARD_HEADERS] = "header block too large",
        [XPL_RPC_GUARD_UNKNOWN] = "frames of no stream of a client",
        [XPL_RPC_GUARD_OPEN] = "too many calls at once",
        [XPL_RPC_GUARD_HELD] = "too much of unfinished messages",
        [XPL_RPC_GUARD_MESSAGE] = "message too large",
        [XPL_RPC_GUARD_RESETS] = "too many resets of streams",
        [XPL_RPC_GUARD_SETTINGS] = "too many changes of settings",
        [XPL_RPC_GUARD_CONTROL] = "too many frames without use",
        [XPL_RPC_GUARD_MEMORY] = "no memory",
    };
    return texts[v];
}

void xpl_rpc_guard_init(struct xpl_rpc_guard *g, size_t max_message) {
    *g = (struct xpl_rpc_guard){.max_message = max_message > UINT32_MAX / 8 ? UINT32_MAX / 8
                                                                            : (uint32_t)max_message,
                                .fd = -1};
    pthread_mutex_init(&g->mu, NULL);
}

// ---- guards by their bytes of incomplete messages ----

static void enlist(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared, bool listed) {
    pthread_mutex_lock(&shared->mu);
    if (listed) {
        g->prev = NULL;
        g->next = shared->holders;
        if (g->next) g->next->prev = g;
        shared->holders = g;
    } else {
        *(g->prev ? &g->prev->next : &shared->holders) = g->next;
        if (g->next) g->next->prev = g->prev;
    }
    g->listed = listed;
    pthread_mutex_unlock(&shared->mu);
}

// Call it after the held bytes have changed.
static void note_held(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared) {
    uint64_t since = UINT64_MAX;
    for (size_t i = 0; i < g->n_calls; i++)
        if (g->calls[i].held && g->calls[i].since_ns < since) since = g->calls[i].since_ns;
    atomic_store(&g->since_ns, since);
    if ((g->held != 0) != g->listed) enlist(g, shared, g->held != 0);
}

// The holder whose message began first, `g` itself or one that can be ended.
static struct xpl_rpc_guard *find_oldest(struct xpl_rpc_guard *g,
                                         const struct xpl_rpc_guard_shared *shared) {
    struct xpl_rpc_guard *found = g;
    for (struct xpl_rpc_guard *o = shared->end ? shared->holders : NULL; o; o = o->next)
        if (o->fd >= 0 && !atomic_load(&o->ended) &&
            atomic_load(&o->since_ns) < atomic_load(&found->since_ns))
            found = o;
    return found;
}

// Ends the oldest holders until the others have no more than is allowed; false when `g` is one.
static bool make_room(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared) {
    bool stays = true;
    pthread_mutex_lock(&shared->mu);
    while (atomic_load(&shared->held) >
           atomic_load(&shared->leaving) + XPL_RPC_GUARD_CROWDED_BYTES) {
        struct xpl_rpc_guard *const oldest = find_oldest(g, shared);
        stays = oldest != g;
        if (!stays) break;
        atomic_store(&oldest->ended, true);
        oldest->leaving = atomic_load(&oldest->held);
        atomic_fetch_add(&shared->leaving, oldest->leaving);
        shared->end(oldest);
    }
    pthread_mutex_unlock(&shared->mu);
    return stays;
}

void xpl_rpc_guard_fini(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared) {
    if (g->listed) enlist(g, shared, false);
    atomic_fetch_sub(&shared->calls, g->n_calls);
    atomic_fetch_sub(&shared->held, g->held);
    atomic_fetch_sub(&shared->leaving, g->leaving);
    xpl_sys_free(g->calls);
    pthread_mutex_destroy(&g->mu);
}

// ---- calls, sorted by the ids of their streams ----

static size_t position_of(const struct xpl_rpc_guard *g, uint32_t id) {
    size_t from = 0, to = g->n_calls;
    while (from < to) {
        const size_t mid = (from + to) / 2;
        if (g->calls[mid].id < id)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static struct xpl_rpc_guard_call *find_call(struct xpl_rpc_guard *g, uint32_t id) {
    const size_t at = position_of(g, id);
    return at < g->n_calls && g->calls[at].id == id ? &g->calls[at] : NULL;
}

// gRPC holds the received bytes of the current message until it is complete, or its call has ended.
static void count_held(struct xpl_rpc_guard *g, size_t n, struct xpl_rpc_guard_shared *shared) {
    atomic_fetch_add(&g->held, n);
    atomic_fetch_add(&shared->held, n);
}

static void drop_held(struct xpl_rpc_guard *g, size_t n, struct xpl_rpc_guard_shared *shared) {
    atomic_fetch_sub(&g->held, n);
    atomic_fetch_sub(&shared->held, n);
}

// A call waits for the rest of its first message.
static bool is_unfinished(const struct xpl_rpc_guard_call *c) {
    return !c->asked && !c->second;
}

static void set_asked(struct xpl_rpc_guard *g, struct xpl_rpc_guard_call *c) {
    g->n_asking -= is_unfinished(c);
    c->asked = true;
}

static void set_second(struct xpl_rpc_guard *g, struct xpl_rpc_guard_call *c) {
    g->n_asking -= is_unfinished(c);
    c->second = true;
}

static void note_use(struct xpl_rpc_guard *g) {
    atomic_store_explicit(&g->use,
                          !g->last_stream             ? XPL_RPC_GUARD_UNUSED
                          : !g->n_calls               ? XPL_RPC_GUARD_IDLE
                          : g->n_asking == g->n_calls ? XPL_RPC_GUARD_UNFINISHED
                                                      : XPL_RPC_GUARD_BUSY,
                          memory_order_relaxed);
}

// False when it was over already.
static bool remove_call(struct xpl_rpc_guard *g, uint32_t id, struct xpl_rpc_guard_shared *shared) {
    const size_t at = position_of(g, id);
    if (at >= g->n_calls || g->calls[at].id != id) return false;
    const size_t held = g->calls[at].held;
    g->n_asking -= is_unfinished(&g->calls[at]);
    memmove(g->calls + at, g->calls + at + 1, (--g->n_calls - at) * sizeof *g->calls);
    if (held) {
        drop_held(g, held, shared);
        note_held(g, shared);
    }
    atomic_fetch_sub(&shared->calls, 1);
    return true;
}

static bool grow_table(struct xpl_rpc_guard *g) {
    if (g->n_calls < g->cap_calls) return true;
    const size_t cap = g->cap_calls ? 2 * g->cap_calls : 8;
    void *const p = xpl_sys_realloc(g->calls, cap * sizeof *g->calls);
    if (p) g->calls = p, g->cap_calls = cap;
    return p != NULL;
}

static enum xpl_rpc_guard_verdict add_call(struct xpl_rpc_guard *g, uint32_t id,
                                           struct xpl_rpc_guard_shared *shared) {
    // RFC 9113, 5.1.1: streams of clients are odd.  gRPC drops others and does not count them, so
    // that calls of lower ids would be taken for trailers here.
    if (id % 2 == 0) return XPL_RPC_GUARD_UNKNOWN;
    if (id <= g->last_stream) return XPL_RPC_GUARD_FINE; // trailers; or an error that gRPC reports
    g->last_stream = id;
    if (g->n_calls == XPL_RPC_GUARD_CALLS) return XPL_RPC_GUARD_OPEN;
    if (!grow_table(g)) return XPL_RPC_GUARD_MEMORY;
    g->calls[g->n_calls++] = (struct xpl_rpc_guard_call){.id = id};
    g->n_asking++;
    const size_t all = atomic_fetch_add(&shared->calls, 1) + 1;
    return all > XPL_RPC_GUARD_ALL_CALLS && g->n_calls > XPL_RPC_GUARD_FEW_CALLS
               ? XPL_RPC_GUARD_OPEN
               : XPL_RPC_GUARD_FINE;
}

// ---- messages ----

// The prefix of a message is complete; its last bytes are the `n` at p.
static enum xpl_rpc_guard_verdict check_length(struct xpl_rpc_guard *g,
                                               struct xpl_rpc_guard_call *s, uint8_t *p, size_t n) {
    s->left = s->length;
    if (s->length <= g->max_message) return XPL_RPC_GUARD_FINE;
    if (s->length > OVERSIZE * g->max_message && g->flags_at && !s->second) {
        *g->flags_at |= XPL_RPC_FRAME_END_STREAM;
        s->refused = true;
        return XPL_RPC_GUARD_FINE;
    }
    if (n < PREFIX - 1) return XPL_RPC_GUARD_MESSAGE; // gRPC has the length's first bytes already
    const uint32_t length = g->max_message + 1;
    for (size_t i = 0; i < 4; i++)
        p[n - 4 + i] = (uint8_t)(length >> (24 - 8 * i));
    return XPL_RPC_GUARD_FINE;
}

static enum xpl_rpc_guard_verdict check_held(struct xpl_rpc_guard *g,
                                             struct xpl_rpc_guard_shared *shared) {
    note_held(g, shared);
    if (g->held <= XPL_RPC_GUARD_FEW_BYTES) return XPL_RPC_GUARD_FINE;
    const size_t all = atomic_load(&shared->held), leaving = atomic_load(&shared->leaving);
    if (all > leaving + XPL_RPC_GUARD_ALL_BYTES && g->held > XPL_RPC_GUARD_MANY_BYTES)
        return XPL_RPC_GUARD_HELD;
    // Connections closed for the bytes of all make room, too: the next one finds it.
    if (all > leaving + XPL_RPC_GUARD_CROWDED_BYTES && !make_room(g, shared))
        return XPL_RPC_GUARD_HELD;
    return all > XPL_RPC_GUARD_FULL_BYTES ? XPL_RPC_GUARD_HELD : XPL_RPC_GUARD_FINE;
}

// The next bytes of the current message.
static void take_message(struct xpl_rpc_guard *g, struct xpl_rpc_guard_call *s, size_t n,
                         struct xpl_rpc_guard_shared *shared) {
    if (!s->held) s->since_ns = g->now_ns;
    s->left -= (uint32_t)n;
    s->held += (uint32_t)n;
    count_held(g, n, shared);
    if (s->left) return;
    drop_held(g, s->held, shared);
    s->held = 0;
}

// Bytes of a stream's data.
static enum xpl_rpc_guard_verdict follow_messages(struct xpl_rpc_guard *g,
                                                  struct xpl_rpc_guard_call *s, uint8_t *p,
                                                  size_t n, struct xpl_rpc_guard_shared *shared) {
    size_t at = 0, from = 0; // from: where the prefix begins in this piece
    while (at < n && !s->refused) {
        if (s->prefix == PREFIX && s->left) {
            const size_t part = n - at < s->left ? n - at : s->left;
            take_message(g, s, part, shared);
            at += part;
            continue;
        }
        if (s->prefix == PREFIX) s->prefix = 0, set_second(g, s);
        if (s->prefix == 0) s->length = 0, from = at;
        if (s->prefix++) s->length = s->length << 8 | p[at];
        at++;
        if (s->prefix != PREFIX) continue;
        const enum xpl_rpc_guard_verdict v = check_length(g, s, p + from, at - from);
        if (v != XPL_RPC_GUARD_FINE) return v;
    }
    return check_held(g, shared);
}

// ---- frames ----

static enum xpl_rpc_guard_verdict count_headers(struct xpl_rpc_guard *g) {
    g->header_bytes +=
        g->payload < XPL_RPC_GUARD_HEADER_BYTES ? g->payload : XPL_RPC_GUARD_HEADER_BYTES + 1;
    g->header_frames++;
    return g->header_bytes > XPL_RPC_GUARD_HEADER_BYTES ||
                   g->header_frames > XPL_RPC_GUARD_HEADER_FRAMES
               ? XPL_RPC_GUARD_HEADERS
               : XPL_RPC_GUARD_FINE;
}

static enum xpl_rpc_guard_verdict begin_headers(struct xpl_rpc_guard *g,
                                                struct xpl_rpc_guard_shared *shared) {
    g->header_bytes = g->header_frames = 0;
    enum xpl_rpc_guard_verdict v = add_call(g, g->stream, shared);
    if (v == XPL_RPC_GUARD_FINE) v = count_headers(g);
    struct xpl_rpc_guard_call *const c =
        g->flags & XPL_RPC_FRAME_END_STREAM ? find_call(g, g->stream) : NULL;
    if (c) set_asked(g, c); // no data comes
    return v;
}

// gRPC drops data of a call that has ended: the client did not know of the end.
static enum xpl_rpc_guard_verdict begin_data(struct xpl_rpc_guard *g, uint64_t now_ns) {
    const struct xpl_rpc_guard_call *const c = find_call(g, g->stream);
    if (g->payload && (c ? c->asked : g->stream > g->last_stream)) return XPL_RPC_GUARD_UNKNOWN;
    return g->payload || g->flags & XPL_RPC_FRAME_END_STREAM ||
                   xpl_rpc_spend(&g->control, &OTHERS, now_ns)
               ? XPL_RPC_GUARD_FINE
               : XPL_RPC_GUARD_CONTROL;
}

static enum xpl_rpc_guard_verdict count_reset(struct xpl_rpc_guard *g, uint64_t now_ns,
                                              struct xpl_rpc_guard_shared *shared) {
    const bool fine = xpl_rpc_spend(&g->resets, &RESETS, now_ns);
    pthread_mutex_lock(&shared->mu);
    const bool all_fine = xpl_rpc_spend(&shared->resets, &ALL_RESETS, now_ns);
    pthread_mutex_unlock(&shared->mu);
    // If all connections together exhaust the shared budget, a connection with few resets is not at
    // fault.
    const bool few = RESETS.burst - g->resets.left <= XPL_RPC_GUARD_FEW_RESETS;
    return fine && (all_fine || few) ? XPL_RPC_GUARD_FINE : XPL_RPC_GUARD_RESETS;
}

// A frame's head is complete.
static enum xpl_rpc_guard_verdict begin_frame(struct xpl_rpc_guard *g, uint64_t now_ns,
                                              struct xpl_rpc_guard_shared *shared) {
    g->payload = xpl_rpc_frame_payload(&g->head), g->stream = xpl_rpc_frame_stream(&g->head);
    g->type = xpl_rpc_frame_type(&g->head), g->flags = xpl_rpc_frame_flags(&g->head);
    g->left = g->payload;
    g->padding = xpl_rpc_frame_padding(&g->head);
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    switch (g->type) {
        case XPL_RPC_FRAME_DATA: return begin_data(g, now_ns);
        case XPL_RPC_FRAME_HEADERS: return begin_headers(g, shared);
        case XPL_RPC_FRAME_CONTINUATION: return count_headers(g);
        case XPL_RPC_FRAME_RESET:
            (void)remove_call(g, g->stream, shared);
            return count_reset(g, now_ns, shared);
        case XPL_RPC_FRAME_SETTINGS:
            if (g->flags & XPL_RPC_FRAME_ACK) break;
            return xpl_rpc_spend(&g->settings, &CHANGES, now_ns) ? v : XPL_RPC_GUARD_SETTINGS;
        case XPL_RPC_FRAME_GOAWAY: // gRPC makes and logs an error of each
            return xpl_rpc_spend(&g->settings, &CHANGES, now_ns) ? v : XPL_RPC_GUARD_CONTROL;
        case XPL_RPC_FRAME_WINDOW:
            return xpl_rpc_spend(&g->windows, &WINDOWS, now_ns) ? v : XPL_RPC_GUARD_CONTROL;
        default: break;
    }
    return xpl_rpc_spend(&g->control, &OTHERS, now_ns) ? v : XPL_RPC_GUARD_CONTROL;
}

static void end_frame(struct xpl_rpc_guard *g) {
    struct xpl_rpc_guard_call *const c =
        g->type == XPL_RPC_FRAME_DATA && g->flags & XPL_RPC_FRAME_END_STREAM
            ? find_call(g, g->stream)
            : NULL;
    if (c) set_asked(g, c);
    g->head.n = 0;
}

// Bytes of the current frame's payload, all of this frame.
static enum xpl_rpc_guard_verdict follow_payload(struct xpl_rpc_guard *g, uint8_t *p, size_t n,
                                                 struct xpl_rpc_guard_shared *shared) {
    g->left -= (uint32_t)n;
    if (g->type != XPL_RPC_FRAME_DATA || !n) return XPL_RPC_GUARD_FINE;
    const size_t from = xpl_rpc_frame_data(&g->padding, g->left, p, &n);
    struct xpl_rpc_guard_call *const s = find_call(g, g->stream);
    if (!s || !n) return XPL_RPC_GUARD_FINE;
    return follow_messages(g, s, p + from, n, shared);
}

static enum xpl_rpc_guard_verdict follow_bytes(struct xpl_rpc_guard *g, uint8_t *p, size_t n,
                                               uint64_t now_ns,
                                               struct xpl_rpc_guard_shared *shared) {
    g->flags_at = NULL; // that was in other bytes
    for (size_t at = 0; at < n;) {
        if (g->preface < sizeof PREFACE - 1) {
            if (p[at++] != (uint8_t)PREFACE[g->preface++]) return XPL_RPC_GUARD_PREFACE;
            continue;
        }
        enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
        if (!xpl_rpc_frame_whole(&g->head)) {
            enum { FLAGS = XPL_RPC_FRAME_FLAGS_AT };
            const size_t before = g->head.n, part = xpl_rpc_frame_take(&g->head, p + at, n - at);
            if (before <= FLAGS && g->head.n > FLAGS) g->flags_at = p + at + FLAGS - before;
            at += part;
            if (!xpl_rpc_frame_whole(&g->head)) continue;
            v = begin_frame(g, now_ns, shared);
        } else {
            const size_t part = n - at < g->left ? n - at : g->left;
            v = follow_payload(g, p + at, part, shared);
            at += part;
        }
        if (v != XPL_RPC_GUARD_FINE) return v;
        if (!g->left) end_frame(g);
    }
    return XPL_RPC_GUARD_FINE;
}

enum xpl_rpc_guard_verdict xpl_rpc_guard_feed(struct xpl_rpc_guard *g, uint8_t *p, size_t n,
                                              uint64_t now_ns,
                                              struct xpl_rpc_guard_shared *shared) {
    pthread_mutex_lock(&g->mu);
    g->now_ns = now_ns;
    if (g->verdict == XPL_RPC_GUARD_FINE && atomic_load(&g->ended)) g->verdict = XPL_RPC_GUARD_HELD;
    if (g->verdict == XPL_RPC_GUARD_FINE) g->verdict = follow_bytes(g, p, n, now_ns, shared);
    const enum xpl_rpc_guard_verdict v = g->verdict;
    note_use(g);
    pthread_mutex_unlock(&g->mu);
    return v;
}

// ---- data from the server ----

// A reset of a call that was not ended before is for an error of the client.
static void note_end(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared) {
    const uint8_t type = xpl_rpc_frame_type(&g->sent_head);
    const bool ends = (type == XPL_RPC_FRAME_HEADERS || type == XPL_RPC_FRAME_DATA) &&
                      xpl_rpc_frame_flags(&g->sent_head) & XPL_RPC_FRAME_END_STREAM;
    if (!ends && type != XPL_RPC_FRAME_RESET) return;
    pthread_mutex_lock(&g->mu);
    const bool was_open = remove_call(g, xpl_rpc_frame_stream(&g->sent_head), shared);
    if (was_open && !ends && g->verdict == XPL_RPC_GUARD_FINE)
        g->verdict = count_reset(g, g->now_ns, shared);
    note_use(g);
    pthread_mutex_unlock(&g->mu);
}

void xpl_rpc_guard_sent(struct xpl_rpc_guard *g, const uint8_t *p, size_t n,
                        struct xpl_rpc_guard_shared *shared) {
    struct xpl_rpc_frame_head *const h = &g->sent_head;
    for (size_t at = 0; at < n;) {
        if (!xpl_rpc_frame_whole(h)) {
            at += xpl_rpc_frame_take(h, p + at, n - at);
            if (!xpl_rpc_frame_whole(h)) continue;
            note_end(g, shared);
            g->sent_left = xpl_rpc_frame_payload(h);
        } else {
            const size_t part = n - at < g->sent_left ? n - at : g->sent_left;
            g->sent_left -= (uint32_t)part;
            at += part;
        }
        if (!g->sent_left) h->n = 0;
    }
}
