// SPDX-License-Identifier: Apache-2.0
// SessionService: what the catalogue holds and how far each host is.
#include <pthread.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cond.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "server/engine/pool.h"
#include "server/engine/request.h"
#include "server/grpc/services.h"
#include "server/labels/labels.h"

enum {
    DEFAULT_PAGE = 200,
    MAX_PAGE = 1000,
    MAX_WATCHERS = 256,
    MAX_BACKLOG = 10000,  // events that wait to be read: of one watch,
    MAX_EVENTS = 1 << 18, // and of all, each with a few hundred bytes
    WATCH_PAGE = 64,      // sessions that a watch gets before others have their turn
    MAX_LISTINGS = 512
};

typedef Xplaned__V1__Session session_msg;
typedef Xplaned__V1__Host host_msg;

struct watch { // a call's user data
    struct watch *next;
    struct xpl_svc_session *svc;
    struct xpl_rpc_call *call;
    bool listed, only_changes;
    bool waits;    // until LOGDIR was listed for the first time: sessions found then are old
    bool presents; // existing sessions are sent, by name: those up to `cursor` were
    bool drains;   // they continue when the client has read
    char *cursor;  // NULL: none was sent
    size_t cursor_len;
    char prefix[]; // NUL-terminated
};

struct xpl_svc_session {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;
    struct xpl_pool *listing; // one thread: states of hundreds of hosts are many lookups
    pthread_mutex_t mu;       // protects the rest
    struct watch *watches;    // each holds a reference to its call
    unsigned n_watches;
    bool stopping;
};

struct xpl_svc_session *xpl_svc_session_new(struct xpl_engine *engine,
                                            struct xpl_catalogue *catalogue,
                                            struct xpl_labels *labels) {
    struct xpl_svc_session *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    *s = (struct xpl_svc_session){.engine = engine, .catalogue = catalogue, .labels = labels};
    if (!(s->listing = xpl_pool_new(1, MAX_LISTINGS))) {
        xpl_sys_free(s);
        return NULL;
    }
    pthread_mutex_init(&s->mu, NULL);
    return s;
}

void xpl_svc_session_free(struct xpl_svc_session *s) {
    if (!s) return;
    xpl_pool_free(s->listing);
    pthread_mutex_destroy(&s->mu);
    xpl_sys_free(s);
}

// ---- messages ----

static char *text(struct xpl_arena *arena, xpl_str_t s) {
    xpl_str_t copy;
    return xpl_arena_str(arena, s, &copy) ? xpl_svc_field(copy.ptr) : NULL;
}

static bool add_tools(struct xpl_arena *arena, const struct xpl_session *s, session_msg *m) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    m->tools = xpl_arena_array(arena, n, sizeof *m->tools);
    for (size_t i = 0; m->tools && i < n; i++)
        if (xpl_request_session_feeds(s, tools[i]))
            m->tools[m->n_tools++] = xpl_svc_field(tools[i]->name);
    return m->tools != NULL;
}

static host_msg *make_host(struct xpl_arena *arena, const struct xpl_host *h,
                           const struct xpl_host_status *st) {
    host_msg *m = xpl_arena_alloc(arena, sizeof *m);
    if (!m) return NULL;
    xplaned__v1__host__init(m);
    m->name = text(arena, h->name);
    m->bytes = h->fingerprint.size;
    m->modified_unix_ns = h->fingerprint.mtime_ns;
    m->state = (Xplaned__V1__State)st->state;
    m->error = text(arena, xpl_str_from(st->error));
    return m->name && m->error ? m : NULL;
}

struct progress { // over the hosts of a session
    uint64_t done_bytes, all_bytes;
    size_t broken, converting, stored;
    int64_t oldest_ns;
    const char *error;
};

static void count_host(struct xpl_arena *arena, const struct xpl_host *h,
                       const struct xpl_host_status *st, struct progress *p) {
    p->all_bytes += h->fingerprint.size;
    if (st->state == XPL_HOST_STORED || st->state == XPL_HOST_BROKEN)
        p->done_bytes += h->fingerprint.size;
    p->broken += st->state == XPL_HOST_BROKEN;
    p->converting += st->state == XPL_HOST_CONVERTING;
    p->stored += st->state == XPL_HOST_STORED;
    if (!p->oldest_ns || h->fingerprint.mtime_ns < p->oldest_ns)
        p->oldest_ns = h->fingerprint.mtime_ns;
    if (st->state == XPL_HOST_BROKEN && !p->error) p->error = text(arena, xpl_str_from(st->error));
}

static Xplaned__V1__State state_of(const struct progress *p, size_t n_hosts, size_t n_lost) {
    if (n_hosts && p->broken == n_hosts) return XPLANED__V1__STATE__STATE_BROKEN;
    if (p->converting) return XPLANED__V1__STATE__STATE_CONVERTING;
    if (n_lost) return XPLANED__V1__STATE__STATE_PARTIAL;
    if (p->stored && p->stored + p->broken == n_hosts) return XPLANED__V1__STATE__STATE_STORED;
    return XPLANED__V1__STATE__STATE_NEW;
}

static bool add_lost(struct xpl_arena *arena, const struct xpl_session *s, session_msg *m) {
    if (!s->n_lost) return true;
    m->lost = xpl_arena_array(arena, s->n_lost, sizeof *m->lost);
    for (size_t i = 0; m->lost && i < s->n_lost; i++) {
        Xplaned__V1__LostHost *const h = xpl_arena_alloc(arena, sizeof *h);
        if (!h) return false;
        xplaned__v1__lost_host__init(h);
        h->target = text(arena, s->lost[i].target);
        h->reason = text(arena, s->lost[i].reason);
        if (!h->target || !h->reason) return false;
        m->lost[m->n_lost++] = h;
    }
    return m->lost != NULL;
}

static bool add_labels(struct xpl_svc_session *s, struct xpl_arena *arena,
                       const struct xpl_session *in, session_msg *m) {
    xpl_str_t *labels;
    size_t n;
    if (!xpl_labels_of(s->labels, in->name, arena, &labels, &n)) return false;
    if (!n) return true;
    m->labels = xpl_arena_array(arena, n, sizeof *m->labels);
    for (size_t i = 0; m->labels && i < n; i++)
        m->labels[m->n_labels++] = xpl_svc_field(labels[i].ptr);
    return m->labels != NULL;
}

// NULL when out of memory.
static session_msg *make_session(struct xpl_svc_session *s, struct xpl_arena *arena,
                                 const struct xpl_session *in, bool with_hosts) {
    session_msg *m = xpl_arena_alloc(arena, sizeof *m);
    if (!m) return NULL;
    xplaned__v1__session__init(m);
    if (with_hosts) m->hosts = xpl_arena_array(arena, in->n_hosts, sizeof *m->hosts);
    if (with_hosts && (!m->hosts || !add_tools(arena, in, m))) return NULL;
    struct progress p = {0};
    for (size_t i = 0; i < in->n_hosts; i++) {
        struct xpl_host_status st;
        xpl_engine_host_status(s->engine, &in->hosts[i], &st);
        count_host(arena, &in->hosts[i], &st, &p);
        if (!with_hosts) continue;
        if (!(m->hosts[i] = make_host(arena, &in->hosts[i], &st))) return NULL;
        m->n_hosts++;
    }
    m->name = text(arena, in->name);
    m->state = state_of(&p, in->n_hosts, in->n_lost);
    m->progress = p.all_bytes ? (double)p.done_bytes / (double)p.all_bytes : 0;
    m->created_unix_ns = p.oldest_ns;
    m->modified_unix_ns = in->mtime_ns;
    m->captured_unix_ns = in->captured_ns;
    m->bytes = in->bytes;
    m->host_count = (uint32_t)in->n_hosts;
    m->kind = xpl_svc_field(xpl_request_session_format(in)->family);
    if (p.error) m->error = xpl_svc_field(p.error);
    return m->name && add_lost(arena, in, m) && add_labels(s, arena, in, m) ? m : NULL;
}

// ---- List, Get ----

static bool has_prefix(xpl_str_t name, const char *prefix) {
    return xpl_str_starts(name, xpl_str_from(prefix));
}

static void list_sessions(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_session *s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)256 << 20);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__list_sessions_request__descriptor, request, &arena, &msg))
        return;
    const Xplaned__V1__ListSessionsRequest *q = (const Xplaned__V1__ListSessionsRequest *)msg;
    const size_t page = q->page_size == 0         ? DEFAULT_PAGE
                        : q->page_size > MAX_PAGE ? MAX_PAGE
                                                  : q->page_size;
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    struct xpl_error err = {0};
    if (xpl_snapshot_need_scan(snap, &err) != XPL_OK) {
        xpl_snapshot_unref(snap);
        xpl_rpc_finish_error(c, &err);
        return;
    }
    Xplaned__V1__ListSessionsResponse r;
    xplaned__v1__list_sessions_response__init(&r);
    r.sessions = xpl_arena_array(&arena, page, sizeof *r.sessions);
    bool ok = r.sessions != NULL;
    // The token is the last name sent: pages stay right when sessions come and go between them.
    const xpl_str_t after = xpl_str_from(q->page_token);
    for (size_t i = 0; ok && i < snap->n_sessions; i++) {
        const struct xpl_session *one = &snap->sessions[i];
        if (!has_prefix(one->name, q->prefix)) continue;
        if (after.len && xpl_str_cmp(one->name, after) <= 0) continue;
        if (r.n_sessions == page) {
            r.next_page_token = r.sessions[page - 1]->name;
            break;
        }
        session_msg *m = make_session(s, &arena, one, q->with_hosts);
        ok = m != NULL;
        if (ok) r.sessions[r.n_sessions++] = m;
    }
    xpl_snapshot_unref(snap);
    if (ok)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory; ask for smaller pages");
}

static void get_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_session *s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)256 << 20);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__get_session_request__descriptor, request, &arena, &msg))
        return;
    const xpl_str_t name = xpl_str_from(((Xplaned__V1__GetSessionRequest *)msg)->session);
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    const struct xpl_session *one = NULL;
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_snapshot_find_all(&snap, name, &one, &err);
    session_msg *m = st == XPL_OK ? make_session(s, &arena, one, true) : NULL;
    if (m)
        xpl_rpc_finish_message(c, &m->base);
    else if (st == XPL_OK)
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    else
        xpl_rpc_finish_error(c, &err);
    xpl_snapshot_unref(snap);
}

// Lists and sessions are answered on a separate thread, in the order of requests: gRPC's has others
// to serve.
static void listing_later(struct xpl_svc_session *s, struct xpl_rpc_call *c, xpl_bytes_t request,
                          xpl_svc_answer_fn answer) {
    xpl_svc_later(s->listing, c, request, answer, s, "too many listings at once; try again soon");
}

static void on_list(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    listing_later(service, c, request, list_sessions);
}

static void on_get(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    listing_later(service, c, request, get_session);
}

// ---- Watch ----

// A watch that reads too slowly is ended.
static void send_event(struct watch *w, Xplaned__V1__SessionEvent__Kind kind, session_msg *m) {
    Xplaned__V1__SessionEvent ev;
    const unsigned part = MAX_EVENTS / (w->svc->n_watches + 1);
    xpl_assert_held(&w->svc->mu);
    xplaned__v1__session_event__init(&ev);
    ev.kind = kind;
    ev.session = m;
    if (xpl_rpc_call_queued(w->call) > (part < MAX_BACKLOG ? part : MAX_BACKLOG)) {
        xpl_rpc_finish_status(w->call, XPL_RESOURCE_EXHAUSTED, "events are read too slowly");
        return;
    }
    (void)xpl_rpc_send_message(w->call, &ev.base);
}

static void send_session(struct watch *w, Xplaned__V1__SessionEvent__Kind kind,
                         const struct xpl_session *one) {
    if (!has_prefix(one->name, w->prefix) || xpl_rpc_call_finished(w->call)) return;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    session_msg gone;
    xplaned__v1__session__init(&gone);
    session_msg *m = &gone;
    if (kind == XPLANED__V1__SESSION_EVENT__KIND__KIND_REMOVED)
        gone.name = text(&arena, one->name);
    else
        m = make_session(w->svc, &arena, one, false);
    if (m && m->name) send_event(w, kind, m);
}

static void watch_release(void *user) {
    struct watch *const w = user;
    xpl_sys_free(w->cursor);
    xpl_sys_free(w);
}

// Removes w from the list; true when it was there, and the caller now owns the list's reference.
static bool remove_watch(struct xpl_svc_session *s, struct watch *w) {
    xpl_assert_held(&s->mu);
    const bool was = w->listed;
    for (struct watch **at = &s->watches; was && *at; at = &(*at)->next) {
        if (*at != w) continue;
        *at = w->next;
        s->n_watches--;
        break;
    }
    w->listed = false;
    return was;
}

// A watch that was ended, for reading too slowly or without memory, gets no on_cancel.  w goes with
// its call, unless the caller holds that.
static void drop_if_finished(struct watch *w) {
    struct xpl_rpc_call *const c = w->call;
    xpl_assert_held(&w->svc->mu);
    if (xpl_rpc_call_finished(c) && remove_watch(w->svc, w)) xpl_rpc_call_unref(c);
}

// ---- existing sessions, for a new watch ----

static xpl_str_t cursor_of(const struct watch *w) {
    return (xpl_str_t){w->cursor, w->cursor_len};
}

static bool set_cursor(struct watch *w, xpl_str_t name) {
    char *const p = xpl_sys_realloc(w->cursor, name.len + 1);
    if (!p) return false;
    memcpy(p, name.ptr, name.len);
    w->cursor = p;
    w->cursor_len = name.len;
    return true;
}

// The first session behind the cursor.
static const struct xpl_session *next_session(const struct watch *w,
                                              const struct xpl_snapshot *snap) {
    size_t lo = 0, hi = w->cursor ? snap->n_sessions : 0;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (xpl_str_cmp(snap->sessions[mid].name, cursor_of(w)) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < snap->n_sessions ? &snap->sessions[lo] : NULL;
}

// Sends one, of the newest snapshot: changes behind the cursor are not sent.  False at the end.
static bool present_next(struct watch *w) {
    struct xpl_svc_session *const s = w->svc;
    pthread_mutex_lock(&s->mu);
    struct xpl_snapshot *const snap = xpl_catalogue_get(s->catalogue);
    const struct xpl_session *const one = next_session(w, snap);
    if (!one) {
        w->presents = false;
        send_event(w, XPLANED__V1__SESSION_EVENT__KIND__KIND_SYNCED, NULL);
    } else if (set_cursor(w, one->name)) {
        send_session(w, XPLANED__V1__SESSION_EVENT__KIND__KIND_PRESENT, one);
    } else {
        xpl_rpc_finish_status(w->call, XPL_RESOURCE_EXHAUSTED, "out of memory");
    }
    xpl_snapshot_unref(snap);
    drop_if_finished(w);
    pthread_mutex_unlock(&s->mu);
    return one && !xpl_rpc_call_finished(w->call) && !xpl_rpc_call_cancelled(w->call);
}

static void present(struct watch *w);

static void present_drained(struct watch *w) {
    xpl_assert_held(&w->svc->mu);
    if (!w->drains) return;
    w->drains = false;
    present(w);
}

// On the listings' thread.  Unread events take memory: a client gets the next page when it has read
// this one.
static void present_page(void *arg) {
    struct watch *const w = arg;
    bool more = true;
    for (int i = 0; more && i < WATCH_PAGE; i++)
        more = present_next(w);
    pthread_mutex_lock(&w->svc->mu);
    w->drains = more;
    if (!xpl_rpc_call_queued(w->call)) present_drained(w);
    pthread_mutex_unlock(&w->svc->mu);
    xpl_rpc_call_unref(w->call);
}

// w may be gone afterwards, unless the caller holds its call.
static void present(struct watch *w) {
    xpl_assert_held(&w->svc->mu);
    xpl_rpc_call_ref(w->call);
    if (xpl_pool_submit(w->svc->listing, present_page, w)) return;
    xpl_rpc_finish_status(w->call, XPL_RESOURCE_EXHAUSTED,
                          "too many listings at once; try again soon");
    struct xpl_rpc_call *const c = w->call;
    drop_if_finished(w);
    xpl_rpc_call_unref(c);
}

static void watch_drained(struct xpl_rpc_call *c, void *service) {
    struct xpl_svc_session *const s = service;
    struct watch *const w = xpl_rpc_call_get_user(c);
    if (!w) return;
    pthread_mutex_lock(&s->mu);
    present_drained(w);
    pthread_mutex_unlock(&s->mu);
}

// LOGDIR has been listed.  w may be gone afterwards, as with present.
static void begin_events(struct watch *w) {
    w->waits = false;
    w->presents = !w->only_changes;
    if (w->presents) {
        present(w);
    } else {
        send_event(w, XPLANED__V1__SESSION_EVENT__KIND__KIND_SYNCED, NULL);
        drop_if_finished(w);
    }
}

// Lists w: changes are sent from now on.
static bool add_watch(struct xpl_svc_session *s, struct watch *w) {
    pthread_mutex_lock(&s->mu);
    const bool room = !s->stopping && s->n_watches < MAX_WATCHERS;
    if (room) {
        struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
        w->waits = snap->unscanned;
        xpl_snapshot_unref(snap);
        w->next = s->watches;
        s->watches = w;
        s->n_watches++;
        w->listed = true;
        xpl_rpc_call_ref(w->call);
        if (!w->waits) begin_events(w);
    }
    pthread_mutex_unlock(&s->mu);
    return room;
}

static void watch_sessions(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_session *s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__watch_sessions_request__descriptor, request, &arena, &msg))
        return;
    const Xplaned__V1__WatchSessionsRequest *q = (const Xplaned__V1__WatchSessionsRequest *)msg;
    const size_t len = strlen(q->prefix);
    struct watch *w = xpl_sys_alloc(sizeof *w + len + 1);
    if (!w) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *w = (struct watch){.svc = s, .call = c, .only_changes = q->only_changes};
    memcpy(w->prefix, q->prefix, len + 1);
    xpl_rpc_call_set_user(c, w, watch_release);
    if (!add_watch(s, w))
        xpl_rpc_finish_status(c, XPL_UNAVAILABLE, "stopping, or too many watches");
}

static void watch_cancelled(struct xpl_rpc_call *c, void *service) {
    struct xpl_svc_session *s = service;
    struct watch *w = xpl_rpc_call_get_user(c);
    if (!w) return;
    pthread_mutex_lock(&s->mu);
    const bool was = remove_watch(s, w);
    pthread_mutex_unlock(&s->mu);
    if (was) xpl_rpc_call_unref(c);
}

// ---- changes ----

static bool gets_change(const struct watch *w, const struct xpl_session *one) {
    if (w->waits) return false;
    return !w->presents || (w->cursor && xpl_str_cmp(one->name, cursor_of(w)) <= 0);
}

static void send_to_watches(struct xpl_svc_session *s, Xplaned__V1__SessionEvent__Kind kind,
                            const struct xpl_session *one) {
    pthread_mutex_lock(&s->mu);
    for (struct watch *w = s->watches, *next; w; w = next) {
        next = w->next;
        if (gets_change(w, one)) send_session(w, kind, one);
        drop_if_finished(w);
    }
    pthread_mutex_unlock(&s->mu);
}

// LOGDIR was listed for the first time: its sessions are sent like those that a watch finds.
static void end_waits(struct xpl_svc_session *s) {
    pthread_mutex_lock(&s->mu);
    for (struct watch *w = s->watches, *next; w; w = next) {
        next = w->next;
        if (w->waits && !xpl_rpc_call_finished(w->call)) begin_events(w);
    }
    pthread_mutex_unlock(&s->mu);
}

void xpl_svc_session_changed(struct xpl_svc_session *s, const struct xpl_snapshot *before,
                             const struct xpl_snapshot *after) {
    pthread_mutex_lock(&s->mu);
    const bool anybody = s->watches != NULL;
    pthread_mutex_unlock(&s->mu);
    if (!anybody) return;
    size_t i = 0, k = 0; // both are sorted by name
    while (i < before->n_sessions || k < after->n_sessions) {
        const struct xpl_session *a = i < before->n_sessions ? &before->sessions[i] : NULL;
        const struct xpl_session *b = k < after->n_sessions ? &after->sessions[k] : NULL;
        const int order = !a ? 1 : !b ? -1 : xpl_str_cmp(a->name, b->name);
        if (order < 0)
            send_to_watches(s, XPLANED__V1__SESSION_EVENT__KIND__KIND_REMOVED, a);
        else if (order > 0)
            send_to_watches(s, XPLANED__V1__SESSION_EVENT__KIND__KIND_ADDED, b);
        else if (a->changed != b->changed)
            send_to_watches(s, XPLANED__V1__SESSION_EVENT__KIND__KIND_CHANGED, b);
        i += order <= 0;
        k += order >= 0;
    }
    if (!after->unscanned) end_waits(s);
}

void xpl_svc_session_stop(struct xpl_svc_session *s) {
    pthread_mutex_lock(&s->mu);
    s->stopping = true;
    struct watch *list = s->watches;
    s->watches = NULL;
    s->n_watches = 0;
    for (struct watch *w = list; w; w = w->next)
        w->listed = false;
    pthread_mutex_unlock(&s->mu);
    while (list) {
        struct watch *const w = list;
        list = w->next; // w goes with its call
        struct xpl_rpc_call *const c = w->call;
        xpl_rpc_finish_status(c, XPL_UNAVAILABLE, "the daemon is stopping");
        xpl_rpc_call_unref(c);
    }
}

void xpl_svc_session_methods(struct xpl_svc_session *s,
                             struct xpl_rpc_method ret[XPL_SVC_SESSION_METHODS]) {
    ret[0] = (struct xpl_rpc_method){
        .path = "/xplaned.v1.SessionService/ListSessions", .on_request = on_list, .service = s};
    ret[1] = (struct xpl_rpc_method){
        .path = "/xplaned.v1.SessionService/GetSession", .on_request = on_get, .service = s};
    ret[2] = (struct xpl_rpc_method){.path = "/xplaned.v1.SessionService/WatchSessions",
                                     .on_request = watch_sessions,
                                     .on_cancel = watch_cancelled,
                                     .on_drained = watch_drained,
                                     .service = s};
}
