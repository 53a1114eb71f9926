// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/fractions.h"
#include "base/vec.h"

static int by_name(const void *a, const void *b) {
    const struct xpl_fractions *const x = a, *const y = b;
    const int names = xpl_str_cmp(x->name, y->name);
    return names ? names : (x->host > y->host) - (x->host < y->host);
}

bool xpl_fractions_collect(const struct xpl_event_fractions *const *hosts, const xpl_str_t *names,
                           size_t n, struct xpl_arena *arena, struct xpl_session_fractions *ret) {
    size_t n_planes = 0;
    for (size_t i = 0; i < n; i++)
        n_planes += hosts[i] ? hosts[i]->n_planes : 0;
    *ret = (struct xpl_session_fractions){.planes =
                                              xpl_arena_array(arena, n_planes, sizeof *ret->planes),
                                          .hosts = xpl_arena_array(arena, n, sizeof *ret->hosts)};
    if (!ret->planes || !ret->hosts) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_event_fractions *const f = hosts[i];
        if (!f) continue;
        for (size_t k = 0; k < f->n_planes; k++)
            ret->planes[ret->n_planes++] =
                (struct xpl_fractions){f->planes[k].name, i, f->planes[k].v, f->planes[k].n};
        ret->hosts[ret->n_hosts++] =
            (struct xpl_fractions){f->hostname.len ? f->hostname : names[i], i, f->host, f->n_host};
    }
    // A host's planes have different names.
    xpl_sort(ret->planes, ret->n_planes, sizeof *ret->planes, by_name);
    xpl_sort(ret->hosts, ret->n_hosts, sizeof *ret->hosts, by_name);
    return true;
}
