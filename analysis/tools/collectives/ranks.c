// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/collectives/ranks.h"

#include <string.h>

#include "analysis/breakdown/names.h"
#include "analysis/xplane/plane_kind.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/text/parse.h"
#include "base/vec.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum {
    CANCEL_EVERY = 8192,
    MAX_WORD = 64,   // bytes of a type's name or a number that are read
    LONG_TEXT = 256, // bytes from which on a text is only read once
};

bool xpl_ranks_init(struct xpl_ranks *r, struct xpl_arena *arena, struct xpl_exec *exec) {
    *r = (struct xpl_ranks){
        .arena = arena, .exec = exec, .groups = xpl_intern_new(arena, xpl_hash_seed())};
    return r->groups != NULL;
}

// ---- what a call is ----

static const struct {
    const char *part, *kind;
} kKinds[] = {
    {"allreduce", "all-reduce"},
    {"all_reduce", "all-reduce"},
    {"cross_device_reduce", "all-reduce"},
    {"allgather", "all-gather"},
    {"all_gather", "all-gather"},
    {"reducescatter", "reduce-scatter"},
    {"reduce_scatter", "reduce-scatter"},
    {"alltoall", "all-to-all"},
    {"all_to_all", "all-to-all"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send-recv"},
    {"send", "send-recv"},
    {"recv", "send-recv"},
    {"barrier", "barrier"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"reduce", "reduce"},
};

static const char *kind_of(xpl_str_t name) {
    char low[128];
    size_t n = 0;
    for (; n < name.len && n + 1 < sizeof low; n++)
        low[n] = name.ptr[n] >= 'A' && name.ptr[n] <= 'Z' ? (char)(name.ptr[n] + 32) : name.ptr[n];
    low[n] = 0;
    for (size_t i = 0; i < COUNT(kKinds); i++)
        if (strstr(low, kKinds[i].part)) return kKinds[i].kind;
    return "unknown";
}

// Bytes of an element, by the names of torch, of C++ and of numpy; 0: not known.
static uint64_t bytes_of_type(xpl_str_t text) {
    const xpl_str_t type = xpl_str_sub(text, 0, MAX_WORD);
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {
        {"Double", 8},      {"Long", 8},          {"ComplexFloat", 8}, {"Float", 4},
        {"Int", 4},         {"Half", 2},          {"BFloat16", 2},     {"Short", 2},
        {"Byte", 1},        {"Char", 1},          {"Bool", 1},         {"double", 8},
        {"long", 8},        {"long int", 8},      {"float", 4},        {"int", 4},
        {"c10::Half", 2},   {"c10::BFloat16", 2}, {"short", 2},        {"unsigned char", 1},
        {"signed char", 1}, {"bool", 1},
    };
    for (size_t i = 0; i < COUNT(types); i++)
        if (xpl_str_eq(type, xpl_str_from(types[i].name))) return types[i].bytes;
    return xpl_str_has(type, XPL_STR("loat8")) ? 1 : 0;
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t v;
    return __builtin_mul_overflow(a, b, &v) ? 0 : v;
}

// The bytes of tensors, of "[[2, 3], [4]]" and '["float", "float"]'; 0: not known.
static uint64_t bytes_of_tensors(xpl_str_t dims, xpl_str_t types) {
    uint64_t sum = 0, n = 1, v = 0;
    bool in_number = false, any = false;
    size_t type = 0;
    int depth = 0;
    for (size_t i = 0; i < dims.len; i++) {
        const char c = dims.ptr[i];
        const bool is_digit = c >= '0' && c <= '9';
        if (is_digit) v = times(v, 10) + (uint64_t)(c - '0'), in_number = any = true;
        if (!is_digit && in_number) n = times(n, v), v = 0, in_number = false;
        depth += (c == '[') - (c == ']');
        if (depth != 1 || c != ']') continue;
        const size_t from = xpl_str_find(types, XPL_STR("\""), type),
                     to = from == SIZE_MAX ? from : xpl_str_find(types, XPL_STR("\""), from + 1);
        if (to == SIZE_MAX) return 0;
        if (any) sum += times(n, bytes_of_type(xpl_str_sub(types, from + 1, to - from - 1)));
        type = to + 1;
        n = 1, any = false;
    }
    return sum;
}

static int64_t number_of(const struct xpl_stat *s, int64_t other) {
    if (s->kind == XPL_VALUE_INT || s->kind == XPL_VALUE_UINT)
        return (int64_t)xpl_stat_int_or_uint(s);
    int64_t v;
    return xpl_parse_int(xpl_str_sub(xpl_stat_str(s), 0, MAX_WORD), INT64_MIN, INT64_MAX, &v)
               ? v
               : other;
}

static uint64_t count_of(const struct xpl_stat *s) {
    const int64_t n = number_of(s, 0);
    return n > 0 ? (uint64_t)n : 0;
}

enum { NAME, GROUP_SIZE, IN, OUT, SPLIT, DTYPE, GROUP, MEMBERS, SEQ, STEP, DIMS, TYPES, N_STATS };
static const enum xpl_stat_type kStats[N_STATS] = {
    [NAME] = XPL_STAT_COLLECTIVE_NAME,      [GROUP_SIZE] = XPL_STAT_COLLECTIVE_GROUP_SIZE,
    [IN] = XPL_STAT_COLLECTIVE_IN_NELEMS,   [OUT] = XPL_STAT_COLLECTIVE_OUT_NELEMS,
    [SPLIT] = XPL_STAT_COLLECTIVE_IN_SPLIT, [DTYPE] = XPL_STAT_COLLECTIVE_DTYPE,
    [GROUP] = XPL_STAT_PROCESS_GROUP_NAME,  [MEMBERS] = XPL_STAT_PROCESS_GROUP_RANKS,
    [SEQ] = XPL_STAT_COLLECTIVE_SEQ,        [STEP] = XPL_STAT_GROUP_ID,
    [DIMS] = XPL_STAT_INPUT_DIMS,           [TYPES] = XPL_STAT_INPUT_TYPE,
};

// Where the result of two texts belongs.  That of long ones stays in the map, by their addresses,
// as any number of calls may refer to the same text.  *ret_new: it is to be found.  NULL without
// memory.
static uint64_t *result_of(struct xpl_ranks *r, struct xpl_map *map, xpl_str_t a, xpl_str_t b,
                           uint64_t *room, bool *ret_new) {
    *ret_new = true;
    if (a.len < LONG_TEXT && b.len < LONG_TEXT) return room;
    return xpl_map_put(r->arena, map, (uintptr_t)a.ptr, (uintptr_t)b.ptr, ret_new);
}

// A group of processes is known by name and members; without both, calls of one stream belong
// together.
static bool read_group(struct xpl_ranks *r, const struct xpl_stat *v, unsigned has,
                       xpl_str_t stream, uint32_t *ret) {
    const xpl_str_t name = has >> GROUP & 1 ? xpl_stat_str(&v[GROUP]) : stream,
                    members = has >> MEMBERS & 1 ? xpl_stat_str(&v[MEMBERS]) : XPL_STR("");
    xpl_str_t text;
    xpl_strid_t id;
    uint64_t room;
    bool is_new;
    uint64_t *const group = result_of(r, &r->long_groups, name, members, &room, &is_new);
    if (!group) return false;
    if (is_new) {
        if (!xpl_arena_printf(r->arena, &text, "%.*s%s%.*s", XPL_STR_FMT(name),
                              name.len && members.len ? " " : "", XPL_STR_FMT(members)) ||
            !xpl_intern_put(r->groups, text, &id))
            return false;
        *group = id.v;
    }
    *ret = (uint32_t)*group;
    return true;
}

static bool read_tensors(struct xpl_ranks *r, xpl_str_t dims, xpl_str_t types, uint64_t *ret) {
    uint64_t room;
    bool is_new;
    uint64_t *const bytes = result_of(r, &r->long_sizes, dims, types, &room, &is_new);
    if (!bytes) return false;
    if (is_new) *bytes = bytes_of_tensors(dims, types);
    *ret = *bytes;
    return true;
}

static bool read_size(struct xpl_ranks *r, const struct xpl_stat *v, unsigned has,
                      struct xpl_rank_call *c) {
    const int of = strcmp(c->kind, "all-gather") == 0 ? OUT : IN;
    const xpl_str_t splits = has >> SPLIT & 1 ? xpl_stat_str(&v[SPLIT]) : XPL_STR("");
    c->group_size = has >> GROUP_SIZE & 1 ? count_of(&v[GROUP_SIZE]) : 0;
    c->is_uneven = splits.len > 2; // "[]": even
    if (has >> of & 1 && has >> DTYPE & 1)
        c->bytes = times(count_of(&v[of]), bytes_of_type(xpl_stat_str(&v[DTYPE])));
    else if (has >> DIMS & 1 && has >> TYPES & 1)
        return read_tensors(r, xpl_stat_str(&v[DIMS]), xpl_stat_str(&v[TYPES]), &c->bytes);
    return true;
}

static bool add_call(struct xpl_ranks *r, const struct xpl_line *line, const struct xpl_event *ev,
                     xpl_str_t name) {
    struct xpl_stat v[N_STATS];
    const unsigned has = xpl_stats_find(ev->stats, kStats, N_STATS, v);
    struct xpl_rank_call *const c = xpl_vec_push(r->arena, &r->calls);
    if (!c) return false;
    *c = (struct xpl_rank_call){
        .host = (uint32_t)r->hosts.n - 1,
        .kind = kind_of(has >> NAME & 1 ? xpl_stat_str(&v[NAME]) : name),
        .seq = has >> SEQ & 1 ? number_of(&v[SEQ], -1) : -1,
        .step =
            r->hosts.v[r->hosts.n - 1].has_steps && has >> STEP & 1 ? number_of(&v[STEP], -1) : -1,
        .begin = (uint64_t)xpl_event_begin_ps(line, ev),
        .end = (uint64_t)xpl_event_end_ps(line, ev),
    };
    return read_size(r, v, has, c) &&
           read_group(r, v, has, line->plane->kind == XPL_PLANE_GPU ? line->name : XPL_STR(""),
                      &c->group);
}

// ---- a host ----

// A collective of a CPU's backend, as torch annotates it.
static bool is_host_collective(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR("gloo:")) || xpl_str_starts(name, XPL_STR("mpi:"));
}

static xpl_status_t read_line(struct xpl_ranks *r, const struct xpl_line *line,
                              const bool *is_collective, struct xpl_error *err) {
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result at;
    xpl_events_begin(&cur, line);
    while ((at = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "collectives: cancelled");
        if (!is_collective[ev.md] || ev.has_occurrences || ev.duration_ps < 0) continue;
        if (!add_call(r, line, &ev, xpl_event_get_md(line, &ev)->name))
            XPL_RETURN_OOM(err, "collectives");
    }
    return at == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

static xpl_status_t read_plane(struct xpl_ranks *r, const struct xpl_plane *p,
                               struct xpl_error *err) {
    bool *const is_collective = xpl_arena_array(r->arena, p->n_event_md, sizeof *is_collective);
    const bool gpu = p->kind == XPL_PLANE_GPU;
    bool any = false;
    if (!is_collective) XPL_RETURN_OOM(err, "collectives");
    for (uint32_t i = 0; i < p->n_event_md; i++) {
        const xpl_str_t name = p->event_md[i].name;
        is_collective[i] = gpu ? xpl_op_is_collective(name) : is_host_collective(name);
        any |= is_collective[i];
    }
    for (uint32_t i = 0; any && i < p->n_lines; i++)
        if (!gpu || xpl_line_is_stream(&p->lines[i]))
            XPL_TRY(read_line(r, &p->lines[i], is_collective, err));
    return XPL_OK;
}

// Iterations that were found by their names are numbered from the profile's begin.
static bool has_program_steps(const struct xpl_xspace *xs) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    for (uint32_t i = 0; p && i < p->n_event_md; i++)
        if (xpl_str_starts(p->event_md[i].name, XPL_STR("ProfilerStep#"))) return true;
    return false;
}

xpl_status_t xpl_ranks_add(struct xpl_ranks *r, xpl_str_t host, const struct xpl_xspace *xs,
                           struct xpl_error *err) {
    struct xpl_rank_host *const h = xpl_vec_push(r->arena, &r->hosts);
    const size_t before = r->calls.n;
    bool gpu = false;
    xpl_status_t st = XPL_OK;
    r->long_groups = r->long_sizes = (struct xpl_map){0}; // the profile before may be closed
    if (!h) XPL_RETURN_OOM(err, "collectives");
    *h = (struct xpl_rank_host){
        .name = host, .start_ns = xs->start_ns, .has_steps = has_program_steps(xs)};
    for (uint32_t i = 0; i < xs->n_planes; i++)
        gpu |= xs->planes[i].kind == XPL_PLANE_GPU;
    for (uint32_t i = 0; st == XPL_OK && i < xs->n_planes; i++) {
        const struct xpl_plane *const p = &xs->planes[i];
        if (gpu ? p->kind == XPL_PLANE_GPU
                : xpl_str_eq(p->name, XPL_STR(XPL_PLANE_NAME_HOST_THREADS)))
            st = read_plane(r, p, err);
    }
    if (st != XPL_OK) r->calls.n = before, r->hosts.n--;
    return st;
}

// ---- which calls are one ----

static int cmp_i64(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

// The place of a call in its group: by the program's count, else by step.
static int by_place(const struct xpl_rank_call *a, const struct xpl_rank_call *b) {
    int c = cmp_i64(a->group, b->group);
    if (!c) c = cmp_i64(a->seq, b->seq);
    return !c && a->seq < 0 ? cmp_i64(a->step, b->step) : c;
}

static int by_host(const void *pa, const void *pb) {
    const struct xpl_rank_call *const a = pa, *const b = pb;
    int c = by_place(a, b);
    if (!c) c = cmp_i64(a->host, b->host);
    return c ? c : cmp_i64((int64_t)(a->begin - b->begin), 0);
}

static int by_match(const void *pa, const void *pb) {
    const struct xpl_rank_call *const a = pa, *const b = pb;
    int c = by_place(a, b);
    if (!c) c = cmp_i64(a->order, b->order);
    return c ? c : cmp_i64(a->host, b->host);
}

// The calls from `first` on that are one collective.  *ret_agree: all hosts have the same kind.
static size_t count_match(const struct xpl_ranks *r, size_t first, bool *ret_agree) {
    const struct xpl_rank_call *const c = &r->calls.v[first];
    size_t n = 1;
    *ret_agree = true;
    for (; first + n < r->calls.n; n++) {
        const struct xpl_rank_call *const next = &r->calls.v[first + n];
        if (by_place(c, next) != 0 || c->order != next->order) break;
        *ret_agree &= strcmp(c->kind, next->kind) == 0;
    }
    return n;
}

// Calls of a host in one place, by time.
struct run {
    struct xpl_rank_call *v;
    size_t n;
};

// Calls of others that a call is compared with, on average: honest hosts need 8.
enum { WORK_PER_CALL = 64 };

struct matcher {
    struct xpl_ranks *r;
    size_t *work;                      // the rest; at 0 hosts match no others
    const struct xpl_rank_call **text; // room for all calls, as in the next ones
    size_t *z;
    uint32_t *votes;
};

static bool is_alike(const struct xpl_rank_call *a, const struct xpl_rank_call *b) {
    return strcmp(a->kind, b->kind) == 0 && a->is_uneven == b->is_uneven &&
           (a->is_uneven || a->bytes == b->bytes);
}

// Call i of `b` may be call i + shift of `a`: how many pairs that makes; 0: some are not alike.
static size_t count_pairs(struct run a, struct run b, int64_t shift) {
    size_t n = 0;
    for (size_t i = shift < 0 ? (size_t)-shift : 0; i < b.n; i++, n++) {
        const size_t k = (size_t)((int64_t)i + shift);
        if (k >= a.n) break;
        if (!is_alike(&a.v[k], &b.v[i])) return 0;
    }
    return n;
}

static uint64_t shorter(const struct xpl_rank_call *a, const struct xpl_rank_call *b) {
    const uint64_t x = a->end - a->begin, y = b->end - b->begin;
    return x < y ? x : y;
}

// The call of `a` that is alike and overlaps `c` most: its index plus 1; 0: none overlaps at least
// half of the shorter one.  *at: none before it ends later than `c` begins.
static size_t find_overlapping(struct run a, const struct xpl_rank_call *c, size_t *at) {
    enum { MOST = 8 }; // of several streams or threads
    int64_t most = 0;
    size_t found = 0;
    while (*at < a.n && (int64_t)(a.v[*at].end - c->begin) <= 0)
        ++*at;
    for (size_t i = *at; i < a.n && i < *at + MOST; i++) {
        const struct xpl_rank_call *const o = &a.v[i];
        const uint64_t begin = (int64_t)(o->begin - c->begin) > 0 ? o->begin : c->begin,
                       end = (int64_t)(o->end - c->end) < 0 ? o->end : c->end;
        const int64_t both = (int64_t)(end - begin);
        if (both <= most || (uint64_t)both < shorter(o, c) / 2 || !is_alike(o, c)) continue;
        most = both;
        found = i + 1;
    }
    return found;
}

// A collective is at work in all hosts at one time: most calls must overlap their match.
static bool shift_by_time(const struct matcher *m, struct run a, struct run b, int64_t *ret) {
    const struct xpl_rank_host *const hosts = m->r->hosts.v;
    size_t at = 0, best = 0;
    if (!hosts[a.v->host].start_ns != !hosts[b.v->host].start_ns) return false;
    memset(m->votes, 0, (a.n + b.n) * sizeof *m->votes);
    for (size_t i = 0; i < b.n; i++) {
        const size_t found = find_overlapping(a, &b.v[i], &at);
        if (!found) continue;
        const size_t k = found - 1 + b.n - i;
        if (++m->votes[k] > m->votes[best]) best = k;
    }
    *ret = (int64_t)best - (int64_t)b.n;
    if (!m->votes[best]) return false;
    const size_t pairs = count_pairs(a, b, *ret);
    return pairs && m->votes[best] >= (pairs + 1) / 2;
}

// How many shifts make the begin of `b` equal to what `a` has from there on, over at least half of
// the shorter one; the last of them is *ret.  (The Z algorithm: z[i] is how long the text from i on
// is equal to its begin.)
static size_t count_shifts(const struct matcher *m, struct run a, struct run b, size_t first,
                           size_t *ret) {
    const size_t n = a.n + b.n, least = ((a.n < b.n ? a.n : b.n) + 1) / 2;
    size_t left = 0, right = 0, found = 0;
    for (size_t i = 0; i < n; i++)
        m->text[i] = i < b.n ? &b.v[i] : &a.v[i - b.n];
    for (size_t i = 1; i < n; i++) {
        size_t z = i < right ? (m->z[i - left] < right - i ? m->z[i - left] : right - i) : 0;
        while (i + z < n && is_alike(m->text[z], m->text[i + z]))
            z++;
        m->z[i] = z;
        if (i + z > right) left = i, right = i + z;
    }
    for (size_t k = first; k < a.n; k++) {
        const size_t needed = a.n - k < b.n ? a.n - k : b.n;
        if (needed < least || m->z[b.n + k] < needed) continue;
        found++;
        *ret = k;
    }
    return found;
}

static bool is_before(struct run a, struct run b) {
    return (int64_t)(a.v[a.n - 1].end - b.v[0].begin) <= 0;
}

// Where clocks differ: if kinds and sizes fit in one way only.
static bool shift_by_kinds(const struct matcher *m, struct run a, struct run b, int64_t *ret) {
    size_t later = 0, earlier = 0;
    if (m->r->hosts.v[a.v->host].start_ns && m->r->hosts.v[b.v->host].start_ns &&
        (is_before(a, b) || is_before(b, a)))
        return false;
    const size_t n = count_shifts(m, a, b, 0, &later),
                 n_earlier = count_shifts(m, b, a, 1, &earlier);
    *ret = n ? (int64_t)later : -(int64_t)earlier;
    return n + n_earlier == 1;
}

static bool find_shift(const struct matcher *m, struct run a, struct run b, int64_t *ret) {
    *ret = 0;
    if (a.v->seq >= 0) return true;
    if (*m->work < a.n + b.n) return false;
    *m->work -= a.n + b.n;
    if (a.v->step >= 0 && a.n == b.n && count_pairs(a, b, 0)) return true;
    return shift_by_time(m, a, b, ret) || shift_by_kinds(m, a, b, ret);
}

// Numbers the calls of one place: those of a host as those of the first one before it that says
// which they are.
static void number_place(const struct matcher *m, struct xpl_rank_call *v, size_t n) {
    enum { MOST = 4 }; // hosts that others are compared with
    struct {
        struct run run;
        bool has_other;
    } of[MOST];
    unsigned n_of = 0;
    struct run b;
    for (size_t i = 0; i < n && !xpl_exec_cancelled(m->r->exec); i += b.n) {
        int64_t shift = 0;
        unsigned k = 0;
        b = (struct run){&v[i], 1};
        while (i + b.n < n && v[i + b.n].host == v[i].host)
            b.n++;
        while (k < n_of && !find_shift(m, of[k].run, b, &shift))
            k++;
        if (k < n_of) {
            of[k].has_other = true;
        } else {
            shift = 0;
            if (k < MOST)
                of[n_of].has_other = b.n == n, of[n_of++].run = b;
            else
                m->r->hosts.v[v[i].host].n_unclear += b.n;
        }
        // Hosts without a match get separate numbers.
        const int64_t base = (int64_t)(k < MOST ? k : MOST + v[i].host) << 40;
        for (size_t j = 0; j < b.n; j++)
            b.v[j].order = base + (int64_t)j + shift;
    }
    for (unsigned k = 0; k < n_of; k++)
        if (!of[k].has_other) m->r->hosts.v[of[k].run.v->host].n_unclear += of[k].run.n;
}

// One clock, as far as hosts say when their profiles begin.
static void share_clock(struct xpl_ranks *r) {
    const int64_t farthest = INT64_C(30) * 24 * 3600 * 1000000000; // else it is damaged
    int64_t latest = 0, first;
    for (size_t i = 0; i < r->hosts.n; i++)
        if (r->hosts.v[i].start_ns > latest) latest = r->hosts.v[i].start_ns;
    first = latest;
    for (size_t i = 0; i < r->hosts.n; i++) {
        int64_t *const start = &r->hosts.v[i].start_ns;
        if (latest - *start > farthest) *start = 0;
        if (*start && *start < first) first = *start;
    }
    for (size_t i = 0; i < r->calls.n; i++) {
        struct xpl_rank_call *const c = &r->calls.v[i];
        const int64_t start = r->hosts.v[c->host].start_ns;
        if (!start) continue;
        c->begin += (uint64_t)(start - first) * 1000;
        c->end += (uint64_t)(start - first) * 1000;
    }
}

static bool number(struct xpl_ranks *r) {
    struct xpl_rank_call *const v = r->calls.v;
    size_t work = WORK_PER_CALL * r->calls.n;
    const struct matcher m = {
        .r = r,
        .work = &work,
        .text = xpl_arena_array(r->arena, r->calls.n, sizeof *m.text),
        .z = xpl_arena_array(r->arena, r->calls.n, sizeof *m.z),
        .votes = xpl_arena_array(r->arena, r->calls.n, sizeof *m.votes),
    };
    if (!m.text || !m.z || !m.votes) return false;
    if (!r->calls.n) return true;
    xpl_sort(v, r->calls.n, sizeof *v, by_host);
    for (size_t i = 0, n; i < r->calls.n && !xpl_exec_cancelled(r->exec); i += n) {
        for (n = 1; i + n < r->calls.n && by_place(&v[i], &v[i + n]) == 0;)
            n++;
        number_place(&m, &v[i], n);
    }
    xpl_sort(v, r->calls.n, sizeof *v, by_match);
    return true;
}

// ---- clocks ----

// Collectives that end for all hosts together, after the last one has begun.
static bool ends_together(const char *kind) {
    return strcmp(kind, "all-reduce") == 0 || strcmp(kind, "all-gather") == 0 ||
           strcmp(kind, "reduce-scatter") == 0 || strcmp(kind, "all-to-all") == 0 ||
           strcmp(kind, "barrier") == 0;
}

static int by_value(const void *pa, const void *pb) {
    return cmp_i64(*(const int64_t *)pa, *(const int64_t *)pb);
}

static int64_t magnitude(int64_t v) {
    return v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v;
}

// What the collectives of a host and its partner, the first host before it with which it has any,
// say of its clock.
struct clock {
    uint32_t partner;
    bool overlaps; // some of them do: then it is the collectives that differ
    size_t n;
    int64_t *ends; // differences
};

static void compare_ends(struct clock *k, const struct xpl_rank_call *a,
                         const struct xpl_rank_call *b) {
    const int64_t x = (int64_t)(a->end - a->begin), y = (int64_t)(b->end - b->begin);
    k->overlaps |= magnitude((int64_t)(b->begin - a->begin)) <= (x > y ? x : y);
    k->ends[k->n++] = (int64_t)(b->end - a->end);
}

typedef void (*pair_fn)(struct clock *clocks, const struct xpl_rank_call *first,
                        const struct xpl_rank_call *c, const struct xpl_rank_call *partner);

// Calls `fn` for each call of a collective of several hosts; `at`: of each host its latest call.
static void each_pair(const struct xpl_ranks *r, struct clock *clocks, size_t *at, pair_fn fn) {
    bool agree;
    for (size_t i = 0, n; i < r->calls.n && !xpl_exec_cancelled(r->exec); i += n) {
        const struct xpl_rank_call *const first = &r->calls.v[i];
        n = count_match(r, i, &agree);
        if (n < 2 || !agree || !ends_together(first->kind)) continue;
        for (size_t k = i; k < i + n; k++)
            at[r->calls.v[k].host] = k;
        for (size_t k = i; k < i + n; k++) {
            const struct xpl_rank_call *const c = &r->calls.v[k];
            const size_t p = at[clocks[c->host].partner];
            const bool has = p >= i && p < i + n && r->calls.v[p].host != c->host;
            fn(clocks, first, c, has ? &r->calls.v[p] : NULL);
        }
    }
}

static void find_partner(struct clock *clocks, const struct xpl_rank_call *first,
                         const struct xpl_rank_call *c, const struct xpl_rank_call *partner) {
    (void)partner;
    if (first->host < clocks[c->host].partner) clocks[c->host].partner = first->host;
}

static void add_ends(struct clock *clocks, const struct xpl_rank_call *first,
                     const struct xpl_rank_call *c, const struct xpl_rank_call *partner) {
    (void)first;
    if (partner) compare_ends(&clocks[c->host], partner, c);
}

static struct clock *read_clocks(const struct xpl_ranks *r) {
    struct clock *const v = xpl_arena_zalloc(r->arena, r->hosts.n * sizeof *v);
    size_t *const at = xpl_arena_zalloc(r->arena, r->hosts.n * sizeof *at);
    int64_t *ends = xpl_arena_array(r->arena, r->calls.n, sizeof *ends);
    if (!v || !at || !ends) return NULL;
    for (size_t i = 0; i < r->calls.n; i++)
        v[r->calls.v[i].host].n++;
    for (uint32_t h = 0; h < r->hosts.n; h++) {
        v[h].partner = h;
        v[h].ends = ends;
        ends += v[h].n;
        v[h].n = 0;
    }
    each_pair(r, v, at, find_partner);
    each_pair(r, v, at, add_ends);
    return v;
}

static bool align(struct xpl_ranks *r) {
    struct clock *const clocks = read_clocks(r);
    if (!clocks) return false;
    for (uint32_t h = 0; h < r->hosts.n && !xpl_exec_cancelled(r->exec); h++) {
        const struct clock *const k = &clocks[h];
        if (!k->n) continue;
        xpl_sort(k->ends, k->n, sizeof *k->ends, by_value);
        const int64_t ahead = k->overlaps ? 0 : k->ends[k->n / 2];
        r->hosts.v[h].offset_ps =
            (int64_t)((uint64_t)r->hosts.v[k->partner].offset_ps + (uint64_t)ahead);
    }
    for (size_t i = 0; i < r->calls.n; i++) {
        struct xpl_rank_call *const c = &r->calls.v[i];
        c->begin -= (uint64_t)r->hosts.v[c->host].offset_ps;
        c->end -= (uint64_t)r->hosts.v[c->host].offset_ps;
    }
    return true;
}

// ---- rows ----

// A profile may have a row for each of its collectives, of different sizes.
enum { BUCKETS = 1 << 14 };

// `buckets`: of each the last row, from 1.
static struct xpl_rank_row *row_of(struct xpl_ranks *r, size_t *buckets,
                                   const struct xpl_rank_call *c, uint64_t bytes, size_t n_hosts) {
    const uint64_t key[] = {bytes, c->group, n_hosts};
    const xpl_str_t all = {(const char *)key, sizeof key};
    size_t *const bucket = &buckets[xpl_hash_str(xpl_hash_seed(), all) % BUCKETS];
    for (size_t i = *bucket; i; i = r->rows.v[i - 1].next) {
        struct xpl_rank_row *const row = &r->rows.v[i - 1];
        if (row->kind == c->kind && row->bytes == bytes && row->group == c->group &&
            row->n_hosts == n_hosts)
            return row;
    }
    struct xpl_rank_row *const row = xpl_vec_push(r->arena, &r->rows);
    if (!row) return NULL;
    *row = (struct xpl_rank_row){.kind = c->kind,
                                 .bytes = bytes,
                                 .group_size = c->group_size,
                                 .group = c->group,
                                 .n_hosts = n_hosts,
                                 .next = *bucket,
                                 .n_last =
                                     xpl_arena_zalloc(r->arena, r->hosts.n * sizeof *row->n_last)};
    *bucket = r->rows.n;
    return row->n_last ? row : NULL;
}

// Adds a collective of the `n` calls from `c` on.
static bool add_match(struct xpl_ranks *r, size_t *buckets, const struct xpl_rank_call *c,
                      size_t n) {
    uint64_t bytes = 0;
    size_t last = 0, first = 0, fastest = 0;
    for (size_t i = 0; i < n; i++) {
        if (c[i].bytes > bytes) bytes = c[i].bytes;
        if ((int64_t)(c[i].begin - c[last].begin) > 0) last = i;
        if ((int64_t)(c[i].begin - c[first].begin) < 0) first = i;
        if (c[i].end - c[i].begin < c[fastest].end - c[fastest].begin) fastest = i;
    }
    struct xpl_rank_row *const row = row_of(r, buckets, c, bytes, n);
    if (!row) return false;
    const double least = (double)(c[fastest].end - c[fastest].begin),
                 skew = (double)(c[last].begin - c[first].begin);
    row->n++;
    row->n_last[c[last].host] += skew > 0;
    row->fastest_ps += least;
    row->communication_ps += least * (double)n;
    row->skew_ps += skew;
    if (skew > row->max_skew_ps) row->max_skew_ps = skew;
    r->hosts.v[c[last].host].n_last += skew > 0;
    for (size_t i = 0; i < n; i++) {
        struct xpl_rank_host *const h = &r->hosts.v[c[i].host];
        const double ps = (double)(c[i].end - c[i].begin);
        row->total_ps += ps;
        row->is_uneven |= c[i].is_uneven;
        h->n++;
        h->total_ps += ps;
        h->waiting_ps += (double)(c[last].begin - c[i].begin);
    }
    return true;
}

static int by_time(const void *pa, const void *pb) {
    const struct xpl_rank_row *const a = pa, *const b = pb;
    if (a->total_ps != b->total_ps) return a->total_ps < b->total_ps ? 1 : -1;
    const int c = strcmp(a->kind, b->kind);
    if (c) return c;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : cmp_i64(a->group, b->group);
}

bool xpl_ranks_match(struct xpl_ranks *r) {
    size_t *const buckets = xpl_arena_zalloc(r->arena, BUCKETS * sizeof *buckets);
    bool agree;
    share_clock(r);
    if (!buckets || !number(r) || !align(r)) return false;
    for (size_t i = 0, n; i < r->calls.n && !xpl_exec_cancelled(r->exec); i += n) {
        n = count_match(r, i, &agree);
        if (n > 1 && agree && !add_match(r, buckets, &r->calls.v[i], n)) return false;
    }
    xpl_sort(r->rows.v, r->rows.n, sizeof *r->rows.v, by_time);
    return true;
}
