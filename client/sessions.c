// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "client/impl.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"

enum { PAGE = 500 };
#define MAX_LISTING ((size_t)1 << 30)

typedef Xplaned__V1__Session session_msg;

struct xpl_sessions {
    struct xpl_arena arena; // all strings and lists
    XPL_VEC(xpl_session_info) list;
};

static const char *state_name(Xplaned__V1__State s) {
    switch (s) {
        case XPLANED__V1__STATE__STATE_NEW: return "new";
        case XPLANED__V1__STATE__STATE_CONVERTING: return "converting";
        case XPLANED__V1__STATE__STATE_STORED: return "stored";
        case XPLANED__V1__STATE__STATE_BROKEN: return "broken";
        case XPLANED__V1__STATE__STATE_PARTIAL: return "partial";
        case XPLANED__V1__STATE__STATE_UNSPECIFIED:
        case _XPLANED__V1__STATE_IS_INT_SIZE:
        default: return "unknown";
    }
}

// Decoded messages are in the arena of the list, so their strings can be used without copying.
static bool add_hosts(xpl_sessions *s, const session_msg *m, xpl_session_info *info) {
    xpl_host_info *hosts = xpl_arena_array(&s->arena, m->n_hosts, sizeof *hosts);
    if (!hosts) return false;
    for (size_t i = 0; i < m->n_hosts; i++)
        hosts[i] = (xpl_host_info){
            .name = m->hosts[i]->name,
            .bytes = m->hosts[i]->bytes,
            .modified_unix_ms = m->hosts[i]->modified_unix_ns / 1000000,
            .state = state_name(m->hosts[i]->state),
            .error = m->hosts[i]->error,
        };
    info->hosts = hosts;
    return true;
}

static bool add_lost(xpl_sessions *s, const session_msg *m, xpl_session_info *info) {
    if (!m->n_lost) return true;
    xpl_lost_info *const lost = xpl_arena_array(&s->arena, m->n_lost, sizeof *lost);
    info->lost = lost;
    for (size_t i = 0; lost && i < m->n_lost; i++, info->n_lost++)
        lost[i] = (xpl_lost_info){m->lost[i]->target, m->lost[i]->reason};
    return lost != NULL;
}

static bool append_session(xpl_sessions *s, const session_msg *m, bool with_hosts) {
    xpl_session_info *info = xpl_vec_push(&s->arena, &s->list);
    if (!info) return false;
    *info = (xpl_session_info){
        .name = m->name,
        .bytes = m->bytes,
        .modified_unix_ms = m->modified_unix_ns / 1000000,
        .state = state_name(m->state),
        .progress = m->progress,
        .n_hosts = m->host_count,
        .n_tools = m->n_tools,
        .tools = (const char *const *)m->tools,
        .kind = m->kind,
        // Daemons of before say nothing.
        .captured_unix_ms =
            (m->captured_unix_ns ? m->captured_unix_ns : m->modified_unix_ns) / 1000000,
        .n_labels = m->n_labels,
        .labels = (const char *const *)m->labels,
    };
    return add_lost(s, m, info) && (!with_hosts || add_hosts(s, m, info));
}

static xpl_sessions *new_list(void) {
    xpl_sessions *s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    xpl_arena_init(&s->arena, MAX_LISTING);
    return s;
}

void xpl_sessions_free(xpl_sessions *s) {
    if (!s) return;
    xpl_arena_fini(&s->arena);
    xpl_sys_free(s);
}

size_t xpl_sessions_count(const xpl_sessions *s) {
    return s ? s->list.n : 0;
}

const xpl_session_info *xpl_sessions_get(const xpl_sessions *s, size_t i) {
    return s && i < s->list.n ? &s->list.v[i] : NULL;
}

static int newest_first(const void *a, const void *b) {
    const xpl_session_info *x = a, *y = b;
    if (x->captured_unix_ms != y->captured_unix_ms)
        return x->captured_unix_ms < y->captured_unix_ms ? 1 : -1;
    return strcmp(x->name, y->name);
}

// One page into `s`; *ret_token is where the next begins, "" after the last.
static int list_page(xpl_client *c, xpl_sessions *s, const char **token, xpl_result *r) {
    Xplaned__V1__ListSessionsRequest q;
    xplaned__v1__list_sessions_request__init(&q);
    q.page_size = PAGE;
    q.page_token = (char *)(uintptr_t)*token;
    struct xpl_rpc_reply reply = {0};
    xpl_status_t st =
        xpl_client_call(c, "/xplaned.v1.SessionService/ListSessions", &q.base, &reply, r);
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    if (st == XPL_OK) {
        st = xpl_rpc_message_unpack(&xplaned__v1__list_sessions_response__descriptor, reply.bytes,
                                    &s->arena, &msg, &err);
        (void)xpl_client_result(r, st, &err, 0);
    }
    xpl_rpc_reply_fini(&reply);
    if (st != XPL_OK) return (int)st;
    const Xplaned__V1__ListSessionsResponse *page = (const Xplaned__V1__ListSessionsResponse *)msg;
    for (size_t i = 0; i < page->n_sessions; i++)
        if (!append_session(s, page->sessions[i], false))
            return xpl_client_result(r, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    *token = page->next_page_token;
    if (page->n_sessions || !*token[0]) return 0;
    st = xpl_error_set(&err, XPL_INTERNAL, __FILE__, __LINE__, UINT64_MAX,
                       "the server lists nothing, and says that more follows");
    return xpl_client_result(r, st, &err, 0);
}

int xpl_client_sessions(xpl_client *c, xpl_sessions **ret, xpl_result *result) {
    xpl_sessions *s = new_list();
    if (!s) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    const char *token = "";
    int code;
    do
        code = list_page(c, s, &token, result);
    while (code == 0 && token[0]);
    if (code) {
        xpl_sessions_free(s);
        return code;
    }
    if (s->list.n) qsort(s->list.v, s->list.n, sizeof *s->list.v, newest_first);
    *ret = s;
    return 0;
}

int xpl_client_session(xpl_client *c, const char *session, xpl_sessions **ret, xpl_result *result) {
    xpl_sessions *s = new_list();
    if (!s) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    Xplaned__V1__GetSessionRequest q;
    xplaned__v1__get_session_request__init(&q);
    q.session = (char *)(uintptr_t)session;
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    xpl_status_t st =
        xpl_client_call(c, "/xplaned.v1.SessionService/GetSession", &q.base, &reply, result);
    if (st == XPL_OK) {
        st = xpl_rpc_message_unpack(&xplaned__v1__session__descriptor, reply.bytes, &s->arena, &msg,
                                    &err);
        if (st == XPL_OK && !append_session(s, (const session_msg *)msg, true))
            st = XPL_RESOURCE_EXHAUSTED;
        (void)xpl_client_result(result, st, err.code ? &err : NULL, 0);
    }
    xpl_rpc_reply_fini(&reply);
    if (st == XPL_OK)
        *ret = s;
    else
        xpl_sessions_free(s);
    return (int)st;
}

int xpl_client_label(xpl_client *c, const xpl_labeling *given, xpl_result *result) {
    xpl_labeling l = {0};
    Xplaned__V1__LabelSessionRequest q;
    struct xpl_rpc_reply reply = {0};
    memcpy(&l, given, given->size < sizeof l ? given->size : sizeof l);
    xplaned__v1__label_session_request__init(&q);
    q.session = (char *)(uintptr_t)l.session;
    q.add = (char **)(uintptr_t)l.add;
    q.n_add = l.n_add;
    q.remove = (char **)(uintptr_t)l.remove;
    q.n_remove = l.n_remove;
    const xpl_status_t st =
        xpl_client_call(c, "/xplaned.v1.SessionService/LabelSession", &q.base, &reply, result);
    xpl_rpc_reply_fini(&reply);
    return (int)st;
}
