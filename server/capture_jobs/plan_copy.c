// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/plan_copy.h"

static const char *copy_text(struct xpl_arena *a, const char *z, bool *ok) {
    xpl_str_t s = {0};
    if (!z) return NULL;
    if (!xpl_arena_str(a, xpl_str_from(z), &s)) *ok = false;
    return s.ptr;
}

static const char *const *copy_list(struct xpl_arena *a, const char *const *list, size_t n,
                                    bool *ok) {
    if (!list) return NULL;
    const char **const all = xpl_arena_array(a, n, sizeof *all);
    *ok = *ok && all;
    for (size_t i = 0; *ok && i < n; i++)
        all[i] = copy_text(a, list[i], ok);
    return all;
}

bool xpl_capture_plan_copy(const struct xpl_capture_plan *from, struct xpl_arena *a,
                           struct xpl_capture_plan *p) {
    bool ok = true;
    *p = *from;
    p->may_ask = NULL;
    p->targets = copy_list(a, from->targets, from->n_targets, &ok);
    p->host_names = copy_list(a, from->host_names, from->n_targets, &ok);
    p->remote_logdir = copy_text(a, from->remote_logdir, &ok);
    ok = ok && xpl_arena_str(a, from->session, &p->session);
    struct xpl_capture_advanced *const more = xpl_arena_array(a, from->n_advanced, sizeof *more);
    ok = ok && more;
    for (size_t i = 0; ok && i < from->n_advanced; i++) {
        more[i] = from->advanced[i];
        more[i].key = copy_text(a, from->advanced[i].key, &ok);
        more[i].text = copy_text(a, from->advanced[i].text, &ok);
    }
    p->advanced = more;
    p->ca_path = copy_text(a, from->ca_path, &ok);
    p->cert_path = copy_text(a, from->cert_path, &ok);
    p->key_path = copy_text(a, from->key_path, &ok);
    p->server_name = copy_text(a, from->server_name, &ok);
    return ok && xpl_arena_str(a, from->token, &p->token);
}
