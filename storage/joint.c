// SPDX-License-Identifier: Apache-2.0
#include "storage/joint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "storage/processes.h"

enum { LAST_ROUND = 6 }; // of giving other names to those that are equal

// ---- names ----

bool xpl_joining_add_number(struct xpl_arena *a, xpl_str_t name, unsigned round, size_t i,
                            size_t first, xpl_str_t *ret) {
    return round < LAST_ROUND
               ? xpl_arena_printf(a, ret, "%.*s~%zu", XPL_STR_FMT(name), i - first + 1)
               : xpl_arena_printf(a, ret, "%.*s//%zu", XPL_STR_FMT(name), i);
}

static int host_by_name(const void *pa, const void *pb) {
    const struct xpl_host *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->name, b->name);
    return c ? c : strcmp(a->path.ptr, b->path.ptr);
}

bool xpl_joining_make_unique(struct xpl_arena *a, struct xpl_host *h, size_t n) {
    bool clash = true;
    for (unsigned round = 0; clash; round++) {
        clash = false;
        if (n) qsort(h, n, sizeof *h, host_by_name);
        for (size_t i = 1, first = 0; i < n; i++) {
            // h[first] keeps the name.
            if (!xpl_str_eq(h[i].name, h[first].name)) {
                first = i;
                continue;
            }
            xpl_str_t next;
            if (!xpl_joining_add_number(a, h[i].name, round, i, first, &next)) return false;
            h[i].name = next;
            clash = true;
        }
    }
    return true;
}

// ---- one session of several ----

struct part_host {
    struct xpl_host host;
    const struct xpl_session *part;
};

static int part_host_by_name(const void *pa, const void *pb) {
    const struct part_host *a = pa, *b = pb;
    return host_by_name(&a->host, &b->host);
}

// PART_HOST; a part's name may have slashes, a host's has none.
static bool add_part_name(struct part_host *h, struct xpl_arena *a) {
    xpl_str_t name;
    if (!xpl_arena_printf(a, &name, "%.*s_%.*s", XPL_STR_FMT(h->part->name),
                          XPL_STR_FMT(h->host.name)))
        return false;
    char *const text = xpl_arena_alloc(a, name.len + 1);
    if (!text) return false;
    for (size_t i = 0; i <= name.len; i++)
        text[i] = (char)(i < name.len && name.ptr[i] == '/' ? '_' : name.ptr[i]);
    h->host.name = (xpl_str_t){text, name.len};
    return true;
}

static bool join_hosts(const struct xpl_session *const *parts, size_t n, struct xpl_arena *a,
                       struct xpl_session *s) {
    struct part_host *const v = xpl_arena_array(a, s->n_hosts, sizeof *v);
    struct xpl_host *const hosts = xpl_arena_array(a, s->n_hosts, sizeof *hosts);
    size_t at = 0;
    if (!v || !hosts) return false;
    for (size_t i = 0; i < n; i++)
        for (size_t h = 0; h < parts[i]->n_hosts; h++)
            v[at++] = (struct part_host){parts[i]->hosts[h], parts[i]};
    if (at) qsort(v, at, sizeof *v, part_host_by_name);
    for (size_t i = 0, end; i < at; i = end) {
        const xpl_str_t name = v[i].host.name;
        for (end = i + 1; end < at && xpl_str_eq(v[end].host.name, name);)
            end++;
        for (size_t k = i; k < end && end - i > 1; k++)
            if (!add_part_name(&v[k], a)) return false;
    }
    for (size_t i = 0; i < at; i++)
        hosts[i] = v[i].host;
    s->hosts = hosts;
    return xpl_joining_make_unique(a, hosts, at);
}

bool xpl_joining_add_lost_ranks(struct xpl_session *s, struct xpl_lost_host *lost,
                                struct xpl_arena *a) {
    const int64_t missing = s->n_ranks ? s->world_size - s->n_ranks : 0;
    if (missing <= 0) return true;
    struct xpl_lost_host *const h = &lost[s->n_lost++];
    s->lacks_ranks = true;
    return xpl_arena_printf(a, &h->target, "%" PRId64 " of %" PRId64 " ranks", missing,
                            s->world_size) &&
           xpl_arena_str(a, XPL_STR("their files are not here"), &h->reason);
}

// Lost hosts of the parts, but for ranks: those of the whole job are counted again.
static bool join_lost(const struct xpl_session *const *parts, size_t n, size_t room,
                      struct xpl_arena *a, struct xpl_session *s) {
    struct xpl_lost_host *const lost = xpl_arena_array(a, room + 1, sizeof *lost);
    if (!lost) return false;
    s->lost = lost;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < parts[i]->n_lost - parts[i]->lacks_ranks; k++)
            lost[s->n_lost++] = parts[i]->lost[k];
    return xpl_joining_add_lost_ranks(s, lost, a);
}

bool xpl_joining_make(const struct xpl_session *const *parts, size_t n, struct xpl_arena *a,
                      struct xpl_session *ret) {
    struct xpl_session s = {.name = ret->name, .path = ret->path, .n_runs = (uint32_t)n};
    size_t n_lost = 0;
    s.world_size = -1;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_session *const p = parts[i];
        s.n_hosts += p->n_hosts;
        s.bytes += p->bytes;
        s.n_ranks += p->n_ranks;
        n_lost += p->n_lost;
        if (p->world_size > s.world_size) s.world_size = p->world_size;
        if (p->mtime_ns > s.mtime_ns) s.mtime_ns = p->mtime_ns;
        if (p->changed > s.changed) s.changed = p->changed;
        if (p->captured_ns && (!s.captured_ns || p->captured_ns < s.captured_ns))
            s.captured_ns = p->captured_ns;
    }
    if (!join_hosts(parts, n, a, &s) || !join_lost(parts, n, n_lost, a, &s)) return false;
    *ret = s;
    return true;
}

// ---- which are one ----

struct member {
    const struct xpl_session *session;
    uint32_t group;
    bool is_own;
};

static int by_group(const void *pa, const void *pb) {
    const struct member *a = pa, *b = pb;
    if (a->is_own != b->is_own) return a->is_own - b->is_own;
    if (a->group != b->group) return (a->group > b->group) - (a->group < b->group);
    return xpl_str_cmp(a->session->name, b->session->name);
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_run *const a = *(struct xpl_run *const *)pa, *const b =
                                                                      *(struct xpl_run *const *)pb;
    const int64_t x = a->identity->begin_ns, y = b->identity->begin_ns;
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

// Of copies of an XSpace, which begin in one nanosecond, only the first is joined.  False on OOM.
static bool drop_copies(struct xpl_run *runs, size_t n, struct xpl_arena *scratch) {
    struct xpl_run **const v = xpl_arena_array(scratch, n, sizeof *v);
    size_t k = 0;
    for (size_t i = 0; v && i < n; i++)
        if (runs[i].identity && !runs[i].is_own) v[k++] = &runs[i];
    if (k) qsort(v, k, sizeof(struct xpl_run *), by_begin);
    for (size_t i = k; i-- > 1;)
        if (v[i]->identity->begin_ns == v[i - 1]->identity->begin_ns) v[i]->identity = NULL;
    return v != NULL;
}

// Sorts the runs that can be joined into groups: what files say of themselves apart from the rest.
static bool group_runs(const struct xpl_session *sessions, const struct xpl_run *runs, size_t n,
                       bool is_own, struct xpl_arena *scratch, struct member *ret, size_t *ret_n) {
    struct xpl_process_file *const v = xpl_arena_array(scratch, n, sizeof *v);
    struct member *const members = ret + *ret_n;
    size_t k = 0;
    if (!v) return false;
    for (size_t i = 0; i < n; i++) {
        if (!runs[i].identity || runs[i].is_own != is_own) continue;
        members[k] = (struct member){.session = &sessions[i], .is_own = is_own};
        v[k++] = (struct xpl_process_file){.identity = runs[i].identity, .name = runs[i].process};
    }
    if (!xpl_processes_group(v, k)) return false;
    for (size_t i = 0; i < k; i++)
        members[i].group = v[i].group;
    *ret_n += k;
    return true;
}

static bool add_joint(const struct member *members, size_t n, struct xpl_arena *a,
                      struct xpl_arena *scratch, struct xpl_session *ret) {
    const struct xpl_session **const parts = xpl_arena_array(scratch, n, sizeof *parts);
    const struct xpl_session *const first = members[0].session;
    if (!parts) return false;
    for (size_t i = 0; i < n; i++)
        parts[i] = members[i].session;
    *ret = (struct xpl_session){0};
    return xpl_arena_printf(a, &ret->name, "%.*s+joined", XPL_STR_FMT(first->name)) &&
           xpl_arena_printf(a, &ret->path, "%.*s+joined", XPL_STR_FMT(first->path)) &&
           xpl_joining_make(parts, n, a, ret);
}

static int session_by_name(const void *pa, const void *pb) {
    const struct xpl_session *a = pa, *b = pb;
    return xpl_str_cmp(a->name, b->name);
}

static bool has_name(const struct xpl_session *sessions, size_t n, xpl_str_t name) {
    const struct xpl_session key = {.name = name};
    return n && bsearch(&key, sessions, n, sizeof key, session_by_name);
}

bool xpl_joining_group(const struct xpl_session *sessions, struct xpl_run *runs, size_t n,
                       struct xpl_arena *a, struct xpl_arena *scratch,
                       struct xpl_sessions_joined *ret) {
    struct xpl_session *const all = xpl_arena_array(a, n + n / 2 + 1, sizeof *all);
    struct member *const members = xpl_arena_array(scratch, n, sizeof *members);
    bool *const is_part = xpl_arena_zalloc(scratch, n + 1);
    size_t n_members = 0, listed = 0;
    if (!all || !members || !is_part || !drop_copies(runs, n, scratch) ||
        !group_runs(sessions, runs, n, false, scratch, members, &n_members) ||
        !group_runs(sessions, runs, n, true, scratch, members, &n_members))
        return false;
    if (n_members) qsort(members, n_members, sizeof *members, by_group);
    for (size_t i = 0, end; i < n_members; i = end) {
        for (end = i + 1; end < n_members && members[end].is_own == members[i].is_own &&
                          members[end].group == members[i].group;)
            end++;
        if (end - i < 2) continue;
        if (!add_joint(&members[i], end - i, a, scratch, &all[listed])) return false;
        if (has_name(sessions, n, all[listed].name)) continue; // a directory is called so
        listed++;
        for (size_t k = i; k < end; k++)
            is_part[members[k].session - sessions] = true;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_part[i]) all[listed++] = sessions[i];
    if (listed) qsort(all, listed, sizeof *all, session_by_name);
    *ret = (struct xpl_sessions_joined){.v = all, .n = listed, .n_listed = listed};
    for (size_t i = 0; i < n; i++)
        if (is_part[i]) all[ret->n++] = sessions[i];
    return true;
}
