// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/text/near.h"
#include "storage/hash.h"
#include "storage/joint.h"
#include "storage/objects/objects.h"
#include "storage/processes.h"
#include "storage/sessions/path.h"
#include "storage/sessions/scan.h"

enum {
    NAMES_COMPARED = 4096, // to which a wrong one is compared
    NAME_SHOWN = 100,      // bytes of a name in a sentence
};
// Of a session that a request joins: bytes of its names, how many are joined, and their hosts. Each
// such request pays for sorting the hosts.
enum { MAX_NAMES = 1 << 16, MAX_PARTS = 256, MAX_JOINED_HOSTS = 1 << 16 };
#define MAX_JOINT_BYTES ((size_t)64 << 20)

struct xpl_snapshot_inner {
    atomic_uint refs;
    struct xpl_snapshot *base; // of a copy with a joined session: the original
    struct xpl_session joint;
    struct xpl_arena arena;
    struct xpl_root *root;
    uint32_t *table; // index into sessions + 1, open addressing by name
    size_t table_cap;
    size_t n_all;             // of snap.sessions: parts of joined ones follow those that are listed
    struct xpl_snapshot snap; // the public part
};

static struct xpl_root *root_ref(struct xpl_root *r) {
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void xpl_root_unref(struct xpl_root *r) {
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1) return;
    if (r->fd >= 0) (void)close(r->fd);
    xpl_objects_unref(r->objects);
    xpl_sys_free(r->links_root);
    xpl_sys_free(r);
}

struct xpl_snapshot *xpl_snapshot_ref(struct xpl_snapshot *s) {
    atomic_fetch_add(&s->inner->refs, 1);
    return s;
}

void xpl_snapshot_unref(struct xpl_snapshot *s) {
    if (!s || atomic_fetch_sub(&s->inner->refs, 1) != 1) return;
    struct xpl_snapshot_inner *in = s->inner;
    xpl_root_unref(in->root);
    xpl_snapshot_unref(in->base);
    xpl_arena_fini(&in->arena);
    xpl_sys_free(in);
}

bool xpl_root_match(xpl_profile_match_fn match, const char *file, struct xpl_profile_file *ret) {
    *ret = (struct xpl_profile_file){.host = {file, 0}};
    return file[0] != '.' && match(xpl_str_from(file), ret);
}

// --- Names ---

enum claim { CLAIM_PLUGIN, CLAIM_LOGDIR, CLAIM_PATH };

struct draft {
    struct xpl_dir *dir;
    unsigned kind;                   // of its profiles
    const struct xpl_dir_file *file; // not NULL: only that file
    uint32_t group;                  // of the files of kind 0
    xpl_str_t path;                  // see struct xpl_session
    xpl_str_t name;
    enum claim claim;
    bool renamed;
};

// Whether the file is the session's.
static bool is_of(const struct draft *d, const struct xpl_dir_file *f) {
    return f->kind == d->kind && (f->kind != 0 || f->group == d->group);
}

// The session's files are those at the indexes first_file(d), next_file(d, i) and so on, below
// n_files.  Where a directory has many sessions, none goes through the files of the others.
static size_t first_file(const struct draft *d) {
    const struct xpl_dir *const dir = d->dir;
    if (d->file) return (size_t)(d->file - dir->files);
    if (d->kind == 0 && dir->groups)
        return dir->groups[d->group] ? dir->groups[d->group] - 1 : dir->n_files;
    size_t i = 0;
    while (i < dir->n_files && !is_of(d, &dir->files[i]))
        i++;
    return i;
}

static size_t next_file(const struct draft *d, size_t i) {
    const struct xpl_dir *const dir = d->dir;
    if (d->file) return dir->n_files;
    if (d->kind == 0 && dir->groups)
        return dir->files[i].next ? dir->files[i].next - 1 : dir->n_files;
    do
        i++;
    while (i < dir->n_files && !is_of(d, &dir->files[i]));
    return i;
}

// "PREFIX/plugins/profile/RUN" -> "PREFIX/RUN".  False when the path is of another form.
static bool plugin_name(struct xpl_arena *a, xpl_str_t path, xpl_str_t *ret, bool *ret_oom) {
    xpl_str_t prefix, name;
    if (!xpl_path_is_run(path, &prefix, &name)) return false;
    *ret_oom = prefix.len
                   ? !xpl_arena_printf(a, ret, "%.*s%.*s", XPL_STR_FMT(prefix), XPL_STR_FMT(name))
                   : !xpl_arena_str(a, name, ret);
    return true;
}

static size_t count_kind(const struct xpl_dir *d, unsigned kind) {
    size_t n = 0;
    for (size_t i = 0; i < d->n_files; i++)
        n += d->files[i].kind == kind;
    return n;
}

// *ret_is: whether the directory is a session at all; only then it gets a name.
static bool draft_name(const struct xpl_snapshot_spec *spec, struct xpl_dir *d, struct xpl_arena *a,
                       struct xpl_arena *scratch, struct draft *ret, bool *ret_is) {
    const xpl_str_t path = {d->path, d->path_len};
    bool oom = false;
    xpl_str_t raw = path;
    *ret = (struct draft){.dir = d, .path = path, .claim = CLAIM_PATH};
    if (!d->parent) {
        ret->claim = CLAIM_LOGDIR;
        raw = spec->logdir_name;
    } else if (plugin_name(scratch, path, &raw, &oom)) {
        ret->claim = CLAIM_PLUGIN;
    }
    const size_t first = count_kind(d, 0);
    *ret_is = !d->left_out && (first > 0 || (ret->claim == CLAIM_PLUGIN && d->n_files == 0));
    return !oom && (!*ret_is || xpl_name_escape(a, raw, &ret->name));
}

// The suffix of a profile's name.
static const char *suffix_of(const struct xpl_dir_file *f) {
    return f->name + f->len;
}

// A file that is a separate session.
static bool draft_file(struct xpl_dir *d, const struct xpl_dir_file *f, struct xpl_arena *a,
                       struct xpl_arena *scratch, struct draft *ret) {
    xpl_str_t stem;
    const bool top = !d->parent;
    *ret = (struct draft){.dir = d, .kind = f->kind, .file = f, .claim = CLAIM_PATH};
    return xpl_arena_printf(scratch, &ret->path, "%s%s%s", top ? "" : d->path, top ? "" : "/",
                            f->name) &&
           xpl_arena_printf(scratch, &stem, "%s%s%.*s", top ? "" : d->path, top ? "" : "/",
                            (int)f->len, f->name) &&
           xpl_name_escape(a, stem, &ret->name);
}

// One of several sessions of a directory's files of the first kind: DIR, DIR#2 and so on in the
// order of time, or DIR/STEM where a process has only that file.
static bool draft_group(struct xpl_dir *d, uint32_t group, const struct draft *whole,
                        struct xpl_arena *a, struct xpl_arena *scratch, struct draft *ret) {
    xpl_str_t stem;
    *ret = *whole;
    ret->group = group;
    const size_t i = first_file(ret);
    const bool one = i < d->n_files && next_file(ret, i) == d->n_files;
    const struct xpl_dir_file *const first = &d->files[i];
    if (one && first->is_alone) {
        const bool ok = draft_file(d, first, a, scratch, ret) &&
                        xpl_name_escape(scratch, (xpl_str_t){first->name, first->len}, &stem);
        ret->group = group;
        return ok && (!d->parent || xpl_arena_printf(a, &ret->name, "%.*s/%.*s",
                                                     XPL_STR_FMT(whole->name), XPL_STR_FMT(stem)));
    }
    return xpl_arena_printf(scratch, &ret->path, "%s#%u", d->path, group + 1) &&
           (!group ||
            xpl_arena_printf(a, &ret->name, "%.*s#%u", XPL_STR_FMT(whole->name), group + 1));
}

// Replaces the draft of a directory by one for each session of its files.
static bool draft_groups(struct xpl_dir *d, struct xpl_arena *a, struct xpl_arena *scratch,
                         struct draft *drafts, size_t *n) {
    if (d->n_groups < 2) return true;
    const struct draft whole = drafts[--*n];
    for (uint32_t i = 0; i < d->n_groups; i++)
        if (!draft_group(d, i, &whole, a, scratch, &drafts[(*n)++])) return false;
    return true;
}

// The files of another kind in a run's directory, by the first of them.
static bool draft_run(struct xpl_dir *d, const struct xpl_dir_file *f, xpl_str_t run,
                      struct xpl_arena *a, struct xpl_arena *scratch, struct draft *ret) {
    const bool alone = count_kind(d, f->kind) == d->n_files;
    xpl_str_t name;
    *ret = (struct draft){
        .dir = d, .kind = f->kind, .path = {d->path, d->path_len}, .claim = CLAIM_PLUGIN};
    return xpl_arena_printf(scratch, &name, "%.*s%s", XPL_STR_FMT(run),
                            alone ? "" : suffix_of(f)) &&
           (alone || xpl_arena_printf(scratch, &ret->path, "%s/*%s", d->path, suffix_of(f))) &&
           xpl_name_escape(a, name, &ret->name);
}

// Drafts of the kinds behind the first; *n counts them.
static bool draft_others(struct xpl_dir *d, struct xpl_arena *a, struct xpl_arena *scratch,
                         struct draft *drafts, size_t *n) {
    xpl_str_t run = {0};
    bool oom = false, seen[UINT8_MAX + 1] = {false}; // kinds
    const bool plugin =
        d->parent && plugin_name(scratch, (xpl_str_t){d->path, d->path_len}, &run, &oom);
    if (oom) return false;
    for (size_t i = 0; i < d->n_files && !d->left_out; i++) {
        const struct xpl_dir_file *const f = &d->files[i];
        if (f->kind == 0 || (plugin && seen[f->kind])) continue;
        seen[f->kind] = true;
        if (!(plugin ? draft_run(d, f, run, a, scratch, &drafts[*n])
                     : draft_file(d, f, a, scratch, &drafts[*n])))
            return false;
        ++*n;
    }
    return true;
}

static int by_name(const void *pa, const void *pb) {
    const struct draft *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->name, b->name);
    if (c) return c;
    if (a->renamed != b->renamed) return a->renamed - b->renamed;
    if (a->claim != b->claim) return (a->claim > b->claim) - (a->claim < b->claim);
    return xpl_str_cmp(a->path, b->path);
}

static bool rename_draft(struct xpl_arena *a, struct draft *d, unsigned round, size_t i,
                         size_t first) {
    xpl_str_t next, path;
    if (d->renamed) {
        if (!xpl_joining_add_number(a, d->name, round, i, first, &next)) return false;
    } else {
        if (!xpl_name_escape(a, d->path, &path) ||
            !xpl_arena_printf(a, &next, "./%.*s", XPL_STR_FMT(path)))
            return false;
    }
    d->name = next;
    d->renamed = true;
    return true;
}

// Gives every draft a unique name.  The first round resolves the usual case (a directory that is
// named like a run); more are only needed for names built to collide.
static bool make_names_unique(struct xpl_arena *a, struct draft *d, size_t n) {
    bool clash = true;
    for (unsigned round = 0; clash; round++) {
        clash = false;
        qsort(d, n, sizeof *d, by_name);
        for (size_t i = 1, first = 0; i < n; i++) {
            // d[first] has the better claim and keeps the name, which its followers lose.
            if (!xpl_str_eq(d[i].name, d[first].name)) {
                first = i;
                continue;
            }
            if (!rename_draft(a, &d[i], round, i, first)) return false;
            clash = true;
        }
    }
    return true;
}

// --- Building ---

static bool host_path(struct xpl_arena *a, const struct xpl_dir *d, const char *file,
                      xpl_str_t *ret) {
    return d->parent ? xpl_arena_printf(a, ret, "%s/%s", d->path, file)
                     : xpl_arena_str(a, xpl_str_from(file), ret);
}

static bool fill_lost(struct xpl_arena *a, const struct xpl_about *about, struct xpl_session *s) {
    const size_t asked = about ? about->asked.n : 0;
    struct xpl_lost_host *const lost = xpl_arena_array(a, asked + 1, sizeof *lost);
    s->lost = lost;
    for (size_t i = 0; lost && i < asked; i++, s->n_lost++)
        if (!xpl_arena_str(a, about->asked.v[i].target, &lost[i].target) ||
            !xpl_arena_str(a, about->asked.v[i].reason, &lost[i].reason))
            return false;
    return lost && xpl_joining_add_lost_ranks(s, lost, a);
}

static void fill_time(const struct draft *d, struct xpl_session *s) {
    s->captured_ns = d->kind == 0 && s->n_hosts ? d->dir->captured_ns : 0;
    const bool known = s->captured_ns != 0;
    for (size_t i = first_file(d); !known && i < d->dir->n_files; i = next_file(d, i)) {
        const struct xpl_dir_file *const f = &d->dir->files[i];
        const int64_t ns = f->identity ? f->identity->begin_ns : 0;
        if (ns && (!s->captured_ns || ns < s->captured_ns)) s->captured_ns = ns;
    }
    if (!s->captured_ns && s->n_hosts) s->captured_ns = xpl_about_time_of_name(s->name);
    for (size_t i = 0, named = s->captured_ns != 0; !named && i < s->n_hosts; i++)
        if (!s->captured_ns || s->hosts[i].fingerprint.mtime_ns < s->captured_ns)
            s->captured_ns = s->hosts[i].fingerprint.mtime_ns;
}

// `v` has room for the processes of all files of the directory.
static bool fill_session(struct xpl_arena *a, struct xpl_process_file *v, const struct draft *d,
                         struct xpl_session *s) {
    const struct xpl_dir *dir = d->dir;
    const struct xpl_dir_file *const files = dir->files;
    size_t n = 0, n_riegeli = 0;
    for (size_t i = first_file(d); i < dir->n_files; i = next_file(d, i)) {
        v[n++] = xpl_dir_file_process(&files[i]);
        n_riegeli += files[i].riegeli;
    }
    struct xpl_host *hosts = xpl_arena_array(a, n - n_riegeli, sizeof *hosts);
    xpl_str_t *riegeli = xpl_arena_array(a, n_riegeli, sizeof *riegeli);
    *s = (struct xpl_session){
        .name = d->name, .changed = dir->changed, .hosts = hosts, .riegeli = riegeli};
    if (!hosts || !riegeli || !xpl_arena_str(a, d->path, &s->path)) return false;
    const struct xpl_process_group g = xpl_processes_of_group(v, n, d->group);
    size_t k = 0;
    for (size_t i = first_file(d); i < dir->n_files; i = next_file(d, i), k++) {
        const struct xpl_dir_file *f = &files[i];
        const xpl_str_t raw = {f->name, f->len};
        if (f->riegeli) {
            if (!xpl_name_escape(a, raw, &riegeli[s->n_riegeli++])) return false;
            continue;
        }
        struct xpl_host *h = &hosts[s->n_hosts++];
        h->fingerprint = f->fingerprint;
        if (!xpl_process_host(&v[k], &g, raw, a, &h->name) ||
            !host_path(a, dir, f->name, &h->path) ||
            (f->version && !xpl_arena_str(a, xpl_str_from(f->version), &h->version)))
            return false;
        s->bytes += f->fingerprint.size;
        if (s->n_hosts == 1 || f->fingerprint.mtime_ns > s->mtime_ns)
            s->mtime_ns = f->fingerprint.mtime_ns;
    }
    fill_time(d, s);
    s->world_size = d->kind == 0 ? g.world_size : -1;
    s->n_ranks = d->kind == 0 ? g.n_ranks : 0;
    return xpl_joining_make_unique(a, hosts, s->n_hosts) &&
           (d->kind != 0 || fill_lost(a, dir->about, s));
}

static uint64_t name_hash(xpl_str_t name) {
    return xpl_digest64((xpl_bytes_t){(const uint8_t *)name.ptr, name.len}, xpl_hash_seed());
}

static bool index_names(struct xpl_snapshot_inner *in) {
    size_t cap = 16;
    while (cap < in->n_all * 2)
        cap *= 2;
    in->table = xpl_arena_array(&in->arena, cap, sizeof *in->table);
    if (!in->table) return false;
    memset(in->table, 0, cap * sizeof *in->table);
    in->table_cap = cap;
    for (size_t i = 0; i < in->n_all; i++) {
        size_t at = name_hash(in->snap.sessions[i].name) & (cap - 1);
        while (in->table[at])
            at = (at + 1) & (cap - 1);
        in->table[at] = (uint32_t)i + 1;
    }
    return true;
}

// What decides whether the session is joined to others. A capture with notes is complete by itself.
static bool describe_run(const struct draft *d, const struct xpl_session *s,
                         struct xpl_arena *scratch, struct xpl_run *ret) {
    const size_t first = first_file(d);
    const xpl_str_t path = {d->dir->path, d->dir->path_len};
    xpl_str_t prefix = path, run, process;
    *ret = (struct xpl_run){0};
    if (d->kind != 0 || !s->n_hosts || d->dir->about || first >= d->dir->n_files) return true;
    const struct xpl_dir_file *const f = &d->dir->files[first];
    const struct xpl_profile_identity *const own = f->identity;
    (void)xpl_path_is_run(path, &prefix, &run);
    const size_t worker = own && own->worker_len ? own->worker_len : f->len;
    struct xpl_profile_identity *const id = xpl_arena_alloc(scratch, sizeof *id);
    if (!id || !xpl_arena_printf(scratch, &process, "%.*s/%.*s", XPL_STR_FMT(prefix), (int)worker,
                                 f->name))
        return false;
    *id = own ? *own : d->dir->run;
    id->worker_len = process.len;
    if (id->begin_ns || (own && id->written_ns))
        *ret = (struct xpl_run){.identity = id, .is_own = own != NULL, .process = process.ptr};
    return true;
}

// Whether the session was listed before, and joined the same files if it joins any.
static bool is_same_session(const struct xpl_snapshot *before, const struct xpl_session *was,
                            const struct xpl_session *now) {
    bool same = was < before->sessions + before->n_sessions && was->n_runs == now->n_runs;
    if (now->n_runs) same = same && was->n_hosts == now->n_hosts;
    for (size_t i = 0; same && now->n_runs && i < now->n_hosts; i++)
        same = xpl_str_eq(was->hosts[i].path, now->hosts[i].path);
    return same;
}

// A session also changes when it loses a part, and a part when it is listed again.
static void note_changed_parts(const struct xpl_snapshot_spec *spec,
                               const struct xpl_sessions_joined *all) {
    for (size_t i = 0; spec->before && i < all->n_listed; i++) {
        struct xpl_session *const s = &all->v[i];
        const struct xpl_session *const was = xpl_snapshot_find(spec->before, s->name);
        if (!was || !is_same_session(spec->before, was, s))
            s->changed = spec->generation;
        else if (was->changed > s->changed)
            s->changed = was->changed;
    }
}

static bool join_sessions(struct xpl_snapshot_inner *in, const struct xpl_snapshot_spec *spec,
                          const struct draft *drafts, struct xpl_arena *scratch) {
    const size_t n = in->snap.n_sessions;
    struct xpl_run *const runs = xpl_arena_array(scratch, n, sizeof *runs);
    struct xpl_sessions_joined all;
    bool ok = runs != NULL;
    for (size_t i = 0; ok && i < n; i++)
        ok = describe_run(&drafts[i], &in->snap.sessions[i], scratch, &runs[i]);
    ok = ok && xpl_joining_group(in->snap.sessions, runs, n, &in->arena, scratch, &all);
    if (!ok) return false;
    note_changed_parts(spec, &all);
    in->snap.sessions = all.v;
    in->snap.n_sessions = all.n_listed;
    in->n_all = all.n;
    return true;
}

static bool build_sessions(struct xpl_snapshot_inner *in, const struct xpl_snapshot_spec *spec,
                           struct xpl_arena *scratch) {
    struct xpl_arena *a = &in->arena;
    size_t n = 0, room = spec->n_dirs, most_files = 0;
    for (size_t i = 0; i < spec->n_dirs; i++) {
        const struct xpl_dir *const d = spec->dirs[i];
        room += d->n_files - count_kind(d, 0) + d->n_groups;
        if (d->n_files > most_files) most_files = d->n_files;
    }
    struct draft *drafts = xpl_arena_array(scratch, room, sizeof *drafts);
    if (!drafts) return false;
    for (size_t i = 0; i < spec->n_dirs; i++) {
        bool is;
        if (!draft_name(spec, spec->dirs[i], a, scratch, &drafts[n], &is)) return false;
        n += is;
        if (is && !draft_groups(spec->dirs[i], a, scratch, drafts, &n)) return false;
        if (!draft_others(spec->dirs[i], a, scratch, drafts, &n)) return false;
    }
    if (!make_names_unique(a, drafts, n)) return false;
    struct xpl_session *sessions = xpl_arena_array(a, n, sizeof *sessions);
    struct xpl_process_file *const v = xpl_arena_array(scratch, most_files, sizeof *v);
    if (!sessions || !v) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_session *was =
            spec->before ? xpl_snapshot_find(spec->before, drafts[i].name) : NULL;
        if (!was || !xpl_str_eq(was->path, drafts[i].path))
            drafts[i].dir->changed = spec->generation;
        if (!fill_session(a, v, &drafts[i], &sessions[i])) return false;
    }
    in->snap.sessions = sessions;
    in->snap.n_sessions = in->n_all = n;
    return (!spec->join || join_sessions(in, spec, drafts, scratch)) && index_names(in);
}

// The generation of the last change in which a session went away.
static uint64_t last_removal(const struct xpl_snapshot *now, const struct xpl_snapshot_spec *spec) {
    const struct xpl_snapshot *const before = spec->before;
    for (size_t i = 0; before && i < before->n_sessions; i++)
        if (!xpl_snapshot_find(now, before->sessions[i].name)) return spec->generation;
    return before ? before->removed : 0;
}

static bool add_problem(struct xpl_arena *a, struct xpl_snapshot *snap, xpl_str_t *kept,
                        const char *text) {
    return snap->n_problems_kept == XPL_PROBLEMS_KEPT ||
           xpl_arena_str(a, xpl_str_from(text), &kept[snap->n_problems_kept++]);
}

static bool build_problems(struct xpl_snapshot_inner *in, const struct xpl_snapshot_spec *spec) {
    xpl_str_t *kept = xpl_arena_array(&in->arena, XPL_PROBLEMS_KEPT, sizeof *kept);
    if (!kept) return false;
    in->snap.problems = kept;
    in->snap.n_problems = spec->n_limits;
    in->snap.is_partial = spec->n_limits > 0;
    for (size_t i = 0; i < spec->n_limits; i++)
        if (!add_problem(&in->arena, &in->snap, kept, spec->limits[i])) return false;
    for (size_t i = 0; i < spec->n_dirs; i++) {
        const struct xpl_dir *d = spec->dirs[i];
        in->snap.n_problems += d->n_problems;
        in->snap.is_partial |= d->is_unread;
        if (d->problem && !add_problem(&in->arena, &in->snap, kept, d->problem)) return false;
    }
    return true;
}

static bool build_dirs(struct xpl_snapshot_inner *in, const struct xpl_snapshot_spec *spec) {
    struct xpl_arena *a = &in->arena;
    if (!xpl_arena_str(a, xpl_str_from(spec->base), &in->snap.base)) return false;
    struct xpl_watch_dir *dirs = xpl_arena_array(a, spec->n_dirs, sizeof *dirs);
    if (!dirs) return false;
    for (size_t i = 0; i < spec->n_dirs; i++) {
        const struct xpl_dir *d = spec->dirs[i];
        dirs[i].poll = d->links;
        if (!xpl_arena_str(a, (xpl_str_t){d->path, d->path_len}, &dirs[i].path)) return false;
    }
    in->snap.dirs = dirs;
    in->snap.n_dirs = spec->n_dirs;
    return build_problems(in, spec);
}

xpl_status_t xpl_snapshot_build(const struct xpl_snapshot_spec *spec, struct xpl_snapshot **ret,
                                struct xpl_error *err) {
    struct xpl_snapshot_inner *in = xpl_sys_alloc(sizeof *in);
    if (!in) XPL_RETURN_OOM(err, "catalogue");
    *in = (struct xpl_snapshot_inner){.root = root_ref(spec->root)};
    atomic_init(&in->refs, 1);
    xpl_arena_init(&in->arena, (size_t)4 << 30);
    in->snap.inner = in;
    in->snap.generation = spec->generation;
    in->snap.in_bucket = spec->root->objects != NULL;
    in->snap.unscanned = spec->unscanned;
    struct xpl_arena scratch = xpl_arena_of((size_t)1 << 30);
    const bool ok = build_sessions(in, spec, &scratch) && build_dirs(in, spec);
    xpl_arena_fini(&scratch);
    if (!ok) {
        xpl_snapshot_unref(&in->snap);
        XPL_RETURN_OOM(err, "catalogue");
    }
    in->snap.removed = last_removal(&in->snap, spec);
    *ret = &in->snap;
    return XPL_OK;
}

// --- Looking up ---

static const struct xpl_session *bisect(const struct xpl_snapshot *s, xpl_str_t name) {
    size_t lo = 0, hi = s->n_sessions;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = xpl_str_cmp(s->sessions[mid].name, name);
        if (c == 0) return &s->sessions[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const struct xpl_session *xpl_snapshot_find(const struct xpl_snapshot *s, xpl_str_t name) {
    const struct xpl_snapshot_inner *in = s->inner;
    if (!in) return bisect(s, name); // made by hand
    for (size_t at = name_hash(name) & (in->table_cap - 1); in->table[at];
         at = (at + 1) & (in->table_cap - 1)) {
        const struct xpl_session *found = &s->sessions[in->table[at] - 1];
        if (xpl_str_eq(found->name, name)) return found;
    }
    return NULL;
}

xpl_status_t xpl_snapshot_need_scan(const struct xpl_snapshot *s, struct xpl_error *err) {
    if (!s->unscanned) return XPL_OK;
    XPL_RETURN_ERROR(
        err, XPL_UNAVAILABLE,
        "the log directory is still being listed for the first time, or cannot be (the "
        "daemon's log says why); try again soon");
}

xpl_status_t xpl_snapshot_no_session(const struct xpl_snapshot *s, xpl_str_t name,
                                     struct xpl_error *err) {
    XPL_TRY(xpl_snapshot_need_scan(s, err));
    struct xpl_near near = xpl_near_begin(name);
    char hint[XPL_NEAR_TEXT];
    // From the end: names of captures are times, and the newest are the likeliest.
    for (size_t i = 0; i < s->n_sessions && i < NAMES_COMPARED; i++)
        xpl_near_add(&near, s->sessions[s->n_sessions - 1 - i].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session \"%.*s\"%s",
                     XPL_STR_FMT(xpl_str_sub(name, 0, NAME_SHOWN)), xpl_near_text(&near, hint));
}

// Finds the sessions that `names` lists; NOT_FOUND unless each is there, once and not joined.
static xpl_status_t find_parts(const struct xpl_snapshot *s, xpl_str_t names,
                               const struct xpl_session *parts[MAX_PARTS], size_t *ret_n,
                               struct xpl_error *err) {
    size_t n = 0, n_hosts = 0;
    for (size_t at = 0; at <= names.len; n++) {
        const size_t comma = xpl_str_find(names, XPL_STR(","), at);
        const size_t end = comma == SIZE_MAX ? names.len : comma;
        if (n == MAX_PARTS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "more than %d sessions in one request",
                             MAX_PARTS);
        const struct xpl_session *const one =
            xpl_snapshot_find(s, xpl_str_sub(names, at, end - at));
        if (!one || one->n_runs) return xpl_snapshot_no_session(s, names, err);
        for (size_t k = 0; k < n; k++)
            if (parts[k] == one) return xpl_snapshot_no_session(s, names, err);
        if ((n_hosts += one->n_hosts) > MAX_JOINED_HOSTS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "the sessions have more than %d hosts, the limit of one request",
                             MAX_JOINED_HOSTS);
        parts[n] = one;
        at = end + 1;
    }
    *ret_n = n;
    return XPL_OK;
}

static bool make_joint(struct xpl_snapshot_inner *in, xpl_str_t names,
                       const struct xpl_session *const *parts, size_t n) {
    if (!xpl_arena_str(&in->arena, names, &in->joint.name)) return false;
    in->joint.path = in->joint.name;
    return xpl_joining_make(parts, n, &in->arena, &in->joint);
}

static xpl_status_t join_parts(struct xpl_snapshot **s, xpl_str_t names,
                               const struct xpl_session *const *parts, size_t n,
                               const struct xpl_session **ret, struct xpl_error *err) {
    const struct xpl_snapshot_inner *const of = (*s)->inner;
    struct xpl_snapshot_inner *const in = xpl_sys_alloc(sizeof *in);
    if (!in) XPL_RETURN_OOM(err, "joined session");
    *in = (struct xpl_snapshot_inner){.base = xpl_snapshot_ref(*s),
                                      .arena = xpl_arena_of(MAX_JOINT_BYTES),
                                      .root = root_ref(of->root),
                                      .table = of->table,
                                      .table_cap = of->table_cap,
                                      .n_all = of->n_all,
                                      .snap = of->snap};
    atomic_init(&in->refs, 1);
    in->snap.inner = in;
    if (!make_joint(in, names, parts, n)) {
        xpl_snapshot_unref(&in->snap);
        XPL_RETURN_OOM(err, "joined session");
    }
    xpl_snapshot_unref(*s);
    *s = &in->snap;
    *ret = &in->joint;
    return XPL_OK;
}

xpl_status_t xpl_snapshot_find_all(struct xpl_snapshot **s, xpl_str_t names,
                                   const struct xpl_session **ret, struct xpl_error *err) {
    const struct xpl_session *const found = xpl_snapshot_find(*s, names), *parts[MAX_PARTS];
    size_t n = 0;
    if (found) {
        *ret = found;
        return XPL_OK;
    }
    if (!(*s)->inner || !memchr(names.ptr, ',', names.len))
        return xpl_snapshot_no_session(*s, names, err);
    if (names.len > MAX_NAMES)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "the names of sessions have more than %d bytes, the limit of one request",
                         MAX_NAMES);
    XPL_TRY(find_parts(*s, names, parts, &n, err));
    return join_parts(s, names, parts, n, ret, err);
}

const struct xpl_host *xpl_session_find_host(const struct xpl_session *s, xpl_str_t name) {
    size_t lo = 0, hi = s->n_hosts;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = xpl_str_cmp(s->hosts[mid].name, name);
        if (c == 0) return &s->hosts[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

bool xpl_session_has_riegeli(const struct xpl_session *s, xpl_str_t name) {
    for (size_t i = 0; i < s->n_riegeli; i++)
        if (xpl_str_eq(s->riegeli[i], name)) return true;
    return false;
}

static xpl_status_t open_object(struct xpl_objects *objects, const struct xpl_host *h,
                                uint64_t max_bytes, struct xpl_source **ret,
                                struct xpl_error *err) {
    const struct xpl_stored_object of = {
        .path = h->path, .version = h->version, .size = h->fingerprint.size};
    int fd = -1;
    if (max_bytes && of.size > max_bytes)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: %llu bytes, more than the limit of %llu",
                         xpl_path_shown(h->path.ptr, &(struct xpl_path_text){0}),
                         (unsigned long long)of.size, (unsigned long long)max_bytes);
    XPL_TRY(xpl_objects_get(objects, &of, &fd, err));
    return xpl_source_open_copy(fd, h->path.ptr, &h->fingerprint, ret, err);
}

xpl_status_t xpl_snapshot_open(const struct xpl_snapshot *s, const struct xpl_host *h,
                               uint64_t max_bytes, struct xpl_source **ret, struct xpl_error *err) {
    const struct xpl_root *root = s->inner->root;
    if (root->objects) return open_object(root->objects, h, max_bytes, ret, err);
    return xpl_source_open_inside(root->fd, h->path.ptr, root->links_root, max_bytes, ret, err);
}
