// SPDX-License-Identifier: Apache-2.0
// The sessions that a request names, and the route that lists them.
#include <string.h>

#include "base/cleanup.h"
#include "server/http/gateway.h"
#include "server/http/xprof/xprof.h"

// Where below LOGDIR an absolute path leads; false when it leads elsewhere.
static bool below_logdir(const struct xpl_http *h, xpl_str_t path, struct xpl_arena *arena,
                         xpl_str_t *ret) {
    char *text = xpl_arena_alloc(arena, path.len + 2);
    size_t n = 0;
    if (!text || !xpl_str_starts(path, XPL_STR("/"))) return false;
    while (path.len) { // without empty parts and "."; with ".." it is refused
        path = xpl_str_sub(path, 1, SIZE_MAX);
        const size_t slash = xpl_str_find(path, XPL_STR("/"), 0);
        const xpl_str_t part = xpl_str_sub(path, 0, slash);
        path = slash == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(path, slash, SIZE_MAX);
        if (xpl_str_eq(part, XPL_STR(".."))) return false;
        if (!part.len || xpl_str_eq(part, XPL_STR("."))) continue;
        text[n++] = '/';
        memcpy(text + n, part.ptr, part.len);
        n += part.len;
    }
    for (int i = 0; i < 2; i++) {
        xpl_str_t base = xpl_str_from(h->base[i]);
        while (base.len > 1 && base.ptr[base.len - 1] == '/')
            base.len--;
        if (!xpl_str_starts(base, XPL_STR("/")) || !xpl_str_starts((xpl_str_t){text, n}, base))
            continue;
        if (n == base.len)
            *ret = XPL_STR(".");
        else if (text[base.len] == '/')
            *ret = (xpl_str_t){text + base.len + 1, n - base.len - 1};
        else
            continue;
        return true;
    }
    return false;
}

xpl_str_t xpl_http_last_part(xpl_str_t path) {
    for (size_t i = path.len; i > 0; i--)
        if (path.ptr[i - 1] == '/') return xpl_str_sub(path, i, SIZE_MAX);
    return path;
}

// Which of the catalogue's sessions a request is about: all, the one of session_path, or those
// directly below run_path.
struct scope {
    enum { EVERYTHING, ONE_SESSION, CHILDREN } kind;
    bool inside; // the path leads below LOGDIR
    xpl_str_t path;
};

static struct scope scope_of(struct xpl_http_request *r) {
    struct scope s = {.kind = EVERYTHING};
    xpl_str_t path = xpl_http_arg(r, "session_path");
    s.kind = path.len ? ONE_SESSION : EVERYTHING;
    if (!path.len && (path = xpl_http_arg(r, "run_path")).len) s.kind = CHILDREN;
    s.inside = s.kind != EVERYTHING && below_logdir(r->http, path, &r->arena, &s.path);
    return s;
}

static bool in_scope(const struct scope *s, const struct xpl_session *one) {
    if (s->kind == EVERYTHING) return true;
    if (!s->inside || !one->n_hosts) return false;
    if (s->kind == ONE_SESSION) return xpl_str_eq(one->path, s->path);
    const xpl_str_t name = xpl_http_last_part(one->path);
    if (name.len == one->path.len) return xpl_str_eq(s->path, XPL_STR("."));
    return xpl_str_eq(xpl_str_sub(one->path, 0, one->path.len - name.len - 1), s->path);
}

static xpl_str_t name_in(const struct scope *s, const struct xpl_session *one) {
    return s->kind == EVERYTHING ? one->name : xpl_http_last_part(one->path);
}

const struct xpl_session *xpl_http_find_run(struct xpl_http_request *r,
                                            const struct xpl_snapshot *snap) {
    xpl_str_t run = xpl_http_arg(r, "run");
    while (run.len && run.ptr[run.len - 1] == '/')
        run.len--;
    const struct scope s = scope_of(r);
    if (s.kind == EVERYTHING) return xpl_snapshot_find(snap, run);
    for (size_t i = 0; i < snap->n_sessions; i++) {
        const struct xpl_session *const one = &snap->sessions[i];
        if (in_scope(&s, one) && xpl_str_eq(name_in(&s, one), run)) return one;
    }
    return NULL;
}

const struct xpl_session *xpl_http_find_session(struct xpl_http_request *r,
                                                const struct xpl_snapshot *snap,
                                                xpl_str_t *ret_name) {
    const struct scope s = scope_of(r);
    for (size_t i = 0; s.kind == ONE_SESSION && i < snap->n_sessions; i++) {
        if (!in_scope(&s, &snap->sessions[i])) continue;
        *ret_name = name_in(&s, &snap->sessions[i]);
        return &snap->sessions[i];
    }
    return NULL;
}

enum MHD_Result xpl_http_runs(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(XPL_HTTP_XPROF_MAX_REPLY);
    struct xpl_snapshot *snap = xpl_catalogue_get(r->http->parts.catalogue);
    const struct scope s = scope_of(r);
    bool first = true;
    xpl_buf_putc(&b, '[');
    for (size_t i = snap->n_sessions; i > 0; i--) { // sorted downwards
        const struct xpl_session *const one = &snap->sessions[i - 1];
        if (!in_scope(&s, one)) continue;
        if (!first) xpl_buf_str(&b, XPL_STR(", "));
        xpl_http_put_py_str(&b, name_in(&s, one));
        first = false;
    }
    xpl_buf_putc(&b, ']');
    xpl_snapshot_unref(snap);
    return xpl_http_reply_py_json(r, &b);
}
