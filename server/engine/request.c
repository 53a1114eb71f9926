// SPDX-License-Identifier: Apache-2.0
#include "server/engine/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/formats/format.h"
#include "base/cleanup.h"
#include "base/text/near.h"
#include "server/traceparent.h"

enum {
    MAX_COMPARED = 4096, // names to which a wrong one is compared
    MAX_SHOWN = 100,     // bytes of a name in a sentence
};
#define MAX_REQUEST_BYTES ((size_t)64 << 20)

void xpl_request_free(struct xpl_request *q) {
    if (!q) return;
    xpl_snapshot_unref(q->snapshot);
    xpl_arena_fini(&q->arena);
    xpl_sys_free(q);
}

// ---- hosts ----

static xpl_status_t no_such_host(const struct xpl_session *s, xpl_str_t host,
                                 struct xpl_error *err) {
    if (xpl_session_has_riegeli(s, host))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "host %.*s of %.*s is a Riegeli file, which xplaned does not read; "
                         "convert it to " XPL_FORMAT_SUFFIX,
                         XPL_STR_FMT(host), XPL_STR_FMT(s->name));
    struct xpl_near near = xpl_near_begin(host);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < s->n_hosts && i < MAX_COMPARED; i++)
        xpl_near_add(&near, s->hosts[i].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "session %.*s has no host \"%.*s\"%s",
                     XPL_STR_FMT(xpl_str_sub(s->name, 0, MAX_SHOWN)),
                     XPL_STR_FMT(xpl_str_sub(host, 0, MAX_SHOWN)), xpl_near_text(&near, hint));
}

static int compare_names(const void *a, const void *b) {
    const struct xpl_host *const *x = a, *const *y = b;
    return xpl_str_cmp((*x)->name, (*y)->name);
}

static bool feeds_tool(const struct xpl_host *h, const struct xpl_tool *tool) {
    return xpl_tool_fits(tool, xpl_format_of_name(h->path, NULL));
}

const struct xpl_format *xpl_request_session_format(const struct xpl_session *s) {
    const struct xpl_format *const f =
        s->n_hosts ? xpl_format_of_name(s->hosts[0].path, NULL) : NULL;
    return f ? f : xpl_formats(&(size_t){0})[0];
}

bool xpl_request_session_feeds(const struct xpl_session *s, const struct xpl_tool *tool) {
    for (size_t i = 0; i < s->n_hosts; i++)
        if (feeds_tool(&s->hosts[i], tool)) return true;
    return false;
}

// Of all hosts only those stay whose files can have what the tool needs.
static xpl_status_t drop_unfit_hosts(struct xpl_request *q, const struct xpl_host **list,
                                     struct xpl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < q->n_hosts; i++)
        if (feeds_tool(list[i], q->tool)) list[n++] = list[i];
    if (n == 0 || (q->by_name && n < q->n_hosts))
        return xpl_tool_refuse(q->tool, xpl_format_of_name(q->hosts[n]->path, NULL),
                               q->hosts[n]->path, err);
    q->n_hosts = n;
    return XPL_OK;
}

// Fills q->hosts: all of them, or those named, each once, by name.
static xpl_status_t choose_hosts(struct xpl_request *q, const struct xpl_request_words *w,
                                 struct xpl_error *err) {
    const struct xpl_session *s = q->session;
    q->all_hosts =
        w->n_hosts == 0 || (w->n_hosts == 1 && xpl_str_eq(w->hosts[0], XPL_STR("ALL_HOSTS")));
    q->by_name = !q->all_hosts;
    const size_t room = q->all_hosts ? s->n_hosts : w->n_hosts;
    const struct xpl_host **list = xpl_arena_array(&q->arena, room, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "request");
    for (size_t i = 0; i < room; i++) {
        list[i] = q->all_hosts ? &s->hosts[i] : xpl_session_find_host(s, w->hosts[i]);
        if (!list[i]) return no_such_host(s, w->hosts[i], err);
    }
    if (!q->all_hosts) qsort(list, room, sizeof *list, compare_names);
    for (size_t i = 0; i < room; i++)
        if (i == 0 || list[i] != list[i - 1]) list[q->n_hosts++] = list[i];
    q->hosts = list;
    if (q->n_hosts == s->n_hosts) q->all_hosts = true;
    if (q->n_hosts) return drop_unfit_hosts(q, list, err);
    if (s->n_riegeli) return no_such_host(s, s->riegeli[0], err);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                     "session %.*s has no profile (HOST" XPL_FORMAT_SUFFIX ") yet",
                     XPL_STR_FMT(s->name));
}

// Names the session's hosts in a sentence, as far as they fit.
static xpl_status_t refuse_several_hosts(const struct xpl_request *q, struct xpl_error *err) {
    char names[120] = "";
    size_t at = 0;
    for (size_t i = 0; i < q->n_hosts && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%.*s", i ? ", " : "",
                               XPL_STR_FMT(q->hosts[i]->name));
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "%s answers for one host at a time; ask for one of: %s", q->tool->name, names);
}

// ---- keys ----

static void put_part(struct xpl_buf *b, xpl_str_t s) {
    const uint64_t len = s.len;
    xpl_buf_put(b, &len, sizeof len);
    xpl_buf_str(b, s);
}

// Session and generation identify the files: a change of any file is a new generation.
static xpl_status_t make_key(struct xpl_request *q, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REQUEST_BYTES);
    xpl_buf_put(&b, &q->session->changed, sizeof q->session->changed);
    put_part(&b, xpl_str_from(q->tool->name));
    put_part(&b, q->session->name);
    xpl_tool_options_text(q->tool, q->options, &b);
    xpl_buf_putc(&b, 0);
    for (size_t i = 0; !q->all_hosts && i < q->n_hosts; i++)
        put_part(&b, q->hosts[i]->name);
    xpl_buf_putc(&b, (char)q->by_name);
    xpl_str_t key;
    if (b.failed || !xpl_arena_str(&q->arena, (xpl_str_t){(char *)b.p, b.n}, &key))
        XPL_RETURN_OOM(err, "request");
    q->key = (xpl_bytes_t){(const uint8_t *)key.ptr, key.len};
    return XPL_OK;
}

// Versions of the tool, its products and, once each, the formats of the hosts' files.
static void put_versions(const struct xpl_request *q, struct xpl_buf *b) {
    char text[XPL_FORMAT_VERSION_TEXT];
    size_t n_formats;
    const struct xpl_format *const *const formats = xpl_formats(&n_formats);
    uint64_t seen = 0;
    for (size_t i = 0; i < q->n_hosts; i++) {
        const struct xpl_format *const f = xpl_format_of_name(q->hosts[i]->path, NULL);
        for (size_t k = 0; k < n_formats; k++)
            seen |= (uint64_t)(f == formats[k]) << k;
    }
    xpl_buf_putc(b, ' ');
    xpl_tool_put_versions(q->tool, b);
    for (size_t i = 0; i < n_formats; i++)
        if (seen >> i & 1 && xpl_format_version_text(formats[i], text))
            xpl_buf_printf(b, " %s", text);
}

xpl_str_t xpl_request_store_text(const struct xpl_request *q, bool session_has_device,
                                 struct xpl_arena *arena) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REQUEST_BYTES);
    xpl_str_t text = {0};
    xpl_tool_options_text(q->tool, q->options, &b);
    xpl_buf_printf(&b, " by_name=%d", q->by_name && q->n_hosts > 1);
    const struct xpl_common_options *const o = q->options;
    if (!q->all_hosts && q->tool->asks_device && o->cpu_as_device)
        xpl_buf_printf(&b, " session_has_device=%d", session_has_device);
    put_versions(q, &b);
    if (b.failed || !xpl_arena_str(arena, (xpl_str_t){(char *)b.p, b.n}, &text))
        return (xpl_str_t){0};
    return text;
}

// ---- resolving ----

static xpl_status_t find_tool(struct xpl_request *q, const struct xpl_request_words *w,
                              struct xpl_error *err) {
    const struct xpl_session *const s = q->session;
    const struct xpl_tool *const t = w->row ? w->row : xpl_tool_find(w->tool);
    if (!t) return xpl_tool_unknown(w->tool, err);
    q->tool = s->n_hosts ? xpl_tool_for(t, xpl_format_of_name(s->hosts[0].path, NULL)) : t;
    return XPL_OK;
}

static xpl_status_t parse_options(struct xpl_request *q, const struct xpl_request_words *w,
                                  struct xpl_error *err) {
    void *options = NULL;
    XPL_TRY(xpl_tool_options_parse(q->tool, w->options, w->n_options, w->strict, &q->arena,
                                   &options, err));
    q->options = options;
    q->bypass_cache = !((const struct xpl_common_options *)options)->use_saved_result;
    return XPL_OK;
}

static xpl_status_t copy_traceparent(struct xpl_request *q, xpl_str_t text, struct xpl_error *err) {
    char clean[XPL_TRACEPARENT_TEXT];
    xpl_traceparent_clean(text, clean);
    if (!clean[0]) return XPL_OK;
    if (!xpl_arena_str(&q->arena, xpl_str_from(clean), &q->traceparent))
        XPL_RETURN_OOM(err, "request");
    return XPL_OK;
}

static xpl_status_t resolve(struct xpl_request *q, const struct xpl_request_words *w,
                            struct xpl_error *err) {
    XPL_TRY(xpl_snapshot_find_all(&q->snapshot, w->session, &q->session, err));
    XPL_TRY(find_tool(q, w, err));
    XPL_TRY(parse_options(q, w, err));
    XPL_TRY(choose_hosts(q, w, err));
    XPL_TRY(copy_traceparent(q, w->traceparent, err));
    if (q->tool->hosts == XPL_HOSTS_ONE && q->n_hosts > 1) return refuse_several_hosts(q, err);
    return make_key(q, err);
}

xpl_status_t xpl_request_resolve(struct xpl_catalogue *catalogue,
                                 const struct xpl_request_words *words, struct xpl_request **ret,
                                 struct xpl_error *err) {
    struct xpl_request *q = xpl_sys_alloc(sizeof *q);
    if (!q) XPL_RETURN_OOM(err, "request");
    *q = (struct xpl_request){0};
    xpl_arena_init(&q->arena, MAX_REQUEST_BYTES);
    q->snapshot = xpl_catalogue_get(catalogue);
    const xpl_status_t st = resolve(q, words, err);
    if (st == XPL_OK)
        *ret = q;
    else
        xpl_request_free(q);
    return st;
}
