// SPDX-License-Identifier: Apache-2.0
// The timeline as an XSpace: what other tools make of a profile is then made of a bundle, too.
//
// A device whose dispatches were timed by itself is a plane "/device:GPU:N"; everything that the
// host timed is on the plane "/host:CPU". Tracks are lines, called by their path, counters are
// events of a plane's line for counters. Times count from the first event, as those of XLA do;
// arguments have the machine's monotonic clock. A dispatch is an op: its function is the op's name,
// the module that the function's name begins with its component, and the text after the number of
// the dispatch is its type. A line of allocators has each allocation and its end once more, as
// XLA's allocators record them: memory_profile reads these.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/ireeprof/reports/usage.h"
#include "analysis/ireeprof/timeline/impl.h"
#include "analysis/xplane/writer.h"
#include "base/crc32.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/text/utf8.h"

enum { FIRST_LINE = 1, CANCEL_EVERY = 4096, FLOW_BITS = 56, SHOWN = 512, OP_MAX = 200 };
// Ids of lines without a track.
enum { LINE_COUNTERS = INT32_MAX, LINE_ALLOCATORS = INT32_MAX - 1 };
enum direction { FLOW_IN = 1, FLOW_OUT, FLOW_INOUT }; // as in a stat "flow"

// The plane and the line that a track is on.
struct place {
    uint32_t plane; // 0: the host's; devices from 1
    uint32_t line;
};

enum { KNOWN_STATS = 128, KNOWN_FIELDS = 512 };
struct known_stat { // of the open plane
    const char *name;
    int64_t id;
    char text[40];
};
struct known_field { // the same, for members by table
    const struct xpl_iree_field *field;
    struct xpl_xspace_stat stat;
};

struct xpl_iree_xspace {
    struct known_stat known_stats[KNOWN_STATS];
    struct known_field known_fields[KNOWN_FIELDS];
    struct xpl_xspace_writer w;
    struct place *places;     // by track
    struct xpl_arena arena;   // of what follows, which is a plane's
    struct xpl_intern *names; // of events: ids of metadata
    struct xpl_intern *stats;
    uint32_t n_names, n_stats;
    uint32_t *order;  // of the events, by line
    int64_t first_ns; // of the line
    int64_t next_ns;  // of the event behind the current one
    struct xpl_buf text;
    bool failed, open; // open: an event
};

static struct xpl_iree_xspace *state_of(const struct xpl_iree_sink *s) {
    return s->xspace;
}

// ---- names ----

static int64_t id_of(struct xpl_iree_xspace *x, struct xpl_intern *pool, uint32_t *n,
                     xpl_str_t name) {
    xpl_strid_t id = {0};
    if (!pool || !xpl_intern_put(pool, name, &id)) x->failed = true;
    if (id.v > *n) *n = id.v;
    return (int64_t)id.v + 1; // "" has the id 0, which means none
}

// Names of members are few and mostly literals: found by their addresses, then compared.
static int64_t stat_id(struct xpl_iree_xspace *x, const char *name) {
    struct known_stat *const k =
        &x->known_stats[((uintptr_t)name ^ (uintptr_t)name >> 6) % KNOWN_STATS];
    if (k->name == name && strcmp(k->text, name) == 0) return k->id;
    const xpl_str_t text = xpl_str_from(name);
    const int64_t id = id_of(x, x->stats, &x->n_stats, text);
    if (text.len < sizeof k->text) {
        *k = (struct known_stat){.name = name, .id = id};
        memcpy(k->text, name, text.len + 1);
    }
    return id;
}

static void begin_names(struct xpl_iree_xspace *x, size_t limit) {
    xpl_arena_fini(&x->arena);
    xpl_arena_init(&x->arena, limit);
    x->names = xpl_intern_new(&x->arena, 1);
    x->stats = xpl_intern_new(&x->arena, 2);
    x->n_names = x->n_stats = 0;
    memset(x->known_stats, 0, sizeof x->known_stats);
    memset(x->known_fields, 0, sizeof x->known_fields);
    x->failed |= !x->names || !x->stats;
}

// Bytes of names that are no UTF-8 are replaced: readers refuse them.
static xpl_str_t valid(struct xpl_iree_xspace *x, xpl_str_t s) {
    size_t plain = 0;
    while (plain < s.len && (uint8_t)s.ptr[plain] < 0x80)
        plain++;
    if (plain == s.len) return s;
    x->text.n = 0;
    while (s.len) {
        char out[XPL_JSON_CHAR_MAX];
        size_t used;
        const bool ascii = (uint8_t)s.ptr[0] < 0x80;
        const size_t n = xpl_json_char(s, out, &used);
        xpl_buf_put(&x->text, ascii ? s.ptr : out, ascii ? 1 : n);
        s = xpl_str_sub(s, used, SIZE_MAX);
    }
    x->failed |= x->text.failed;
    return (xpl_str_t){(const char *)x->text.p, x->text.n};
}

static void end_names(struct xpl_iree_xspace *x) {
    for (uint32_t i = 0; i <= x->n_names && x->names; i++) {
        const xpl_str_t name = xpl_intern_get(x->names, (xpl_strid_t){i});
        xpl_xspace_writer_begin_event_md(&x->w, (int64_t)i + 1, name, XPL_STR(""));
        xpl_xspace_writer_end_event_md(&x->w);
    }
    for (uint32_t i = 1; i <= x->n_stats && x->stats; i++)
        xpl_xspace_writer_stat_md(&x->w, (int64_t)i + 1, xpl_intern_get(x->stats, (xpl_strid_t){i}),
                                  XPL_STR(""));
}

// ---- ops ----

static void put_str_stat(struct xpl_iree_xspace *x, const char *name, xpl_str_t v) {
    xpl_xspace_writer_str(&x->w, stat_id(x, name), v);
}

// The component and the type of a function's name, COMPONENT_dispatch_N_TYPE_SHAPES; where it is
// called otherwise, the whole name and "dispatch".
static void split(xpl_str_t name, xpl_str_t *ret_component, xpl_str_t *ret_type) {
    const xpl_str_t mark = XPL_STR("_dispatch_");
    const size_t at = xpl_str_find(name, mark, 0);
    *ret_component = at == SIZE_MAX || at == 0 ? name : xpl_str_sub(name, 0, at);
    *ret_type = XPL_STR("dispatch");
    if (at == SIZE_MAX) return;
    xpl_str_t rest = xpl_str_sub(name, at + mark.len, SIZE_MAX);
    const size_t number = xpl_str_find(rest, XPL_STR("_"), 0);
    if (number == SIZE_MAX) return;
    rest = xpl_str_sub(rest, number + 1, SIZE_MAX);
    // Words up to the first that begins with a digit, which is a shape.
    size_t end = 0;
    while (end < rest.len && !(rest.ptr[end] >= '0' && rest.ptr[end] <= '9')) {
        const size_t next = xpl_str_find(rest, XPL_STR("_"), end);
        end = next == SIZE_MAX ? rest.len : next + 1;
    }
    if (end && end <= rest.len && rest.ptr[end - 1] == '_') end--;
    if (end) *ret_type = xpl_str_sub(rest, 0, end);
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// ":TYPE", in small letters, of the words that are of ASCII up to the first one that is not:
// readers take others for no type, and need names of ASCII where types have large letters.
static int put_type(char *ret, xpl_str_t type) {
    int n = 0;
    for (ret[n++] = ':'; type.len && is_word(type.ptr[0]); type = xpl_str_sub(type, 1, SIZE_MAX)) {
        const char c = type.ptr[0];
        ret[n++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    while (type.len && n > 1 && ret[n - 1] != '_')
        n--;
    while (n > 1 && ret[n - 1] == '_')
        n--;
    return n > 1 ? n : sprintf(ret, ":dispatch");
}

// A part of an op's name.
static int put_part(char *ret, xpl_str_t part) {
    for (size_t i = 0; i < part.len; i++) {
        const char c = part.ptr[i];
        const bool word = is_word(c) || c == '/' || c == '.' || c == '-' || (uint8_t)c >= 0x80;
        ret[i] = (char)(word ? c : '_');
    }
    return (int)part.len;
}

// A name that is too long ends with a sum of all of it: names that begin alike stay apart. The sum
// begins with a digit, as shapes do: it is not part of the type.
static xpl_str_t short_name(xpl_str_t name, char text[OP_MAX + 1]) {
    const size_t sum = sizeof "_1234567890" - 1;
    if (name.len <= OP_MAX) return name;
    const xpl_str_t front = xpl_utf8_cut(name, OP_MAX - sum);
    memcpy(text, front.ptr, front.len);
    (void)snprintf(text + front.len, sum + 1, "_%010" PRIu32,
                   xpl_crc32(0, (xpl_bytes_t){(const uint8_t *)name.ptr, name.len}));
    return (xpl_str_t){text, front.len + sum};
}

// What tools on ops ask of a dispatch: op, module, and COMPONENT/FUNCTION:TYPE.
static void put_op(struct xpl_iree_xspace *x, xpl_str_t name, bool timed) {
    char full[3 * OP_MAX + sizeof "/:dispatch"]; // component and type are parts of the name
    char text[OP_MAX + 1];
    xpl_str_t component, type;
    name = short_name(name, text);
    split(name, &component, &type);
    int n = put_part(full, component);
    full[n++] = '/';
    n += put_part(full + n, name);
    n += put_type(full + n, type);
    // On a device's plane an hlo_op would have to be one of an HLO module that is known.
    if (!timed) put_str_stat(x, "hlo_op", name);
    if (!timed) put_str_stat(x, "hlo_module", component);
    put_str_stat(x, "tf_op", (xpl_str_t){full, (size_t)n});
}

// Three numbers, and what stands before and between them.
enum { MOST_TRIPLE = 3 * XPL_IREE_DIGITS + 16 };
static uint8_t *put_triple(uint8_t *p, const char *before, const uint8_t *numbers,
                           const char *between) {
    for (size_t i = 0; i < 3; i++) {
        const char *const front = i ? between : before;
        const size_t length = strlen(front);
        uint32_t v;
        memcpy(&v, numbers + i * sizeof v, sizeof v);
        memcpy(p, front, length);
        p = xpl_iree_digits(p + length, v);
    }
    return p;
}

// What the table of kernels shows of a dispatch: how large it was.
static void put_kernel(struct xpl_iree_sink *s, const struct xpl_iree_event *e) {
    const uint8_t *const d = s->t->run->bundle->bytes.ptr + e->at;
    uint8_t text[2 * MOST_TRIPLE];
    const uint8_t *end = put_triple(
        text, "grid:", d + offsetof(struct xpl_iree_dispatch_event, workgroup_count), ",");
    end = put_triple(text + (end - text),
                     " block:", d + offsetof(struct xpl_iree_dispatch_event, workgroup_size), ",");
    put_str_stat(state_of(s), "kernel_details",
                 (xpl_str_t){(const char *)text, (size_t)(end - text)});
}

static bool is_dispatch(const struct xpl_iree_sink *s, const struct xpl_iree_event *e) {
    const uint32_t kind = xpl_iree_track_at(s->t, e->track)->key.kind;
    struct xpl_iree_host_event h;
    if (e->kind != XPL_IREE_EVENT_SLICE || kind != XPL_IREE_TRACK_HOST)
        return e->kind == XPL_IREE_EVENT_SLICE && kind == XPL_IREE_TRACK_DISPATCH;
    memcpy(&h, s->t->run->bundle->bytes.ptr + e->at, sizeof h);
    return h.type == XPL_IREE_OP_DISPATCH;
}

// ---- events ----

// Picoseconds from a to b, at most what an XSpace can say.
static int64_t ps_between(int64_t a, int64_t b) {
    int64_t ns, ps;
    if (b <= a) return 0;
    if (__builtin_sub_overflow(b, a, &ns) || __builtin_mul_overflow(ns, 1000, &ps))
        return INT64_MAX / 1000 * 1000;
    return ps;
}

// The name of an event that is not an op, without colons: readers take the text after a colon for
// an op's type.
static xpl_str_t plain(xpl_str_t name, char text[SHOWN]) {
    size_t n = 0;
    name = xpl_str_sub(name, 0, SHOWN);
    for (size_t i = 0; i < name.len; i++) {
        const bool colon = name.ptr[i] == ':', blank = i + 1 < name.len && name.ptr[i + 1] == ' ';
        if (!colon || !blank) text[n++] = colon ? ' ' : name.ptr[i];
    }
    return (xpl_str_t){text, n};
}

static void put_event(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns,
                      xpl_str_t name) {
    struct xpl_iree_xspace *const x = state_of(s);
    const struct xpl_iree_track *const t = xpl_iree_track_at(s->t, e->track);
    char text[SHOWN];
    // Slices of a track do not overlap: the next event is this one's end.
    const int64_t length = e->kind == XPL_IREE_EVENT_SLICE ? ps_between(e->ns, x->next_ns) : 0;
    const bool dispatch = is_dispatch(s, e);
    const xpl_str_t shown = valid(x, t->counter ? t->name : dispatch ? name : plain(name, text));
    const int64_t md = id_of(x, x->names, &x->n_names, shown);
    (void)ns;
    xpl_xspace_writer_begin_event(&x->w, md, ps_between(x->first_ns, e->ns), length);
    x->open = true;
    if (dispatch) put_op(x, shown, x->places[e->track].plane != 0);
    if (dispatch && x->places[e->track].plane) put_kernel(s, e);
}

static void put_flow(struct xpl_iree_sink *s, uint64_t id) {
    struct xpl_iree_xspace *const x = state_of(s);
    const enum direction d = s->event->kind == XPL_IREE_EVENT_QUEUE   ? FLOW_OUT
                             : s->event->kind == XPL_IREE_EVENT_READY ? FLOW_INOUT
                                                                      : FLOW_IN;
    const uint64_t bits = id & ((UINT64_C(1) << FLOW_BITS) - 1);
    xpl_xspace_writer_uint(&x->w, stat_id(x, "flow"), (uint64_t)d | bits << 2);
}

static void put_member(struct xpl_iree_sink *s, const char *name, const struct xpl_iree_member *m) {
    struct xpl_iree_xspace *const x = state_of(s);
    const int64_t md = stat_id(x, name);
    switch (m->kind) {
        case XPL_IREE_MEMBER_U64: xpl_xspace_writer_uint(&x->w, md, m->u64); break;
        case XPL_IREE_MEMBER_I64: xpl_xspace_writer_int(&x->w, md, m->i64); break;
        case XPL_IREE_MEMBER_BOOL: xpl_xspace_writer_int(&x->w, md, m->is); break;
        case XPL_IREE_MEMBER_DOUBLE: xpl_xspace_writer_double(&x->w, md, m->number); break;
        case XPL_IREE_MEMBER_TEXT: xpl_xspace_writer_str(&x->w, md, valid(x, m->text)); break;
        case XPL_IREE_MEMBER_NULL:
        case XPL_IREE_MEMBER_OPEN:
        case XPL_IREE_MEMBER_CLOSE: break;
    }
}

// Only the value of a counter: each argument would be a series.
static void put_argument(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    if (!xpl_iree_track_at(s->t, s->event->track)->counter) put_member(s, m->name, m);
}

// ---- members by table: most of most events ----

// NULL: the caller writes this member another way.
static const struct known_field *known_field(struct xpl_iree_xspace *x,
                                             const struct xpl_iree_field *f) {
    enum { OTHER, UINT, INT, STR, REF };
    static const uint8_t kinds[] = {
        [XPL_IREE_U32] = UINT, [XPL_IREE_U64] = UINT,  [XPL_IREE_I32] = INT,
        [XPL_IREE_I64] = INT,  [XPL_IREE_BIT] = INT,   [XPL_IREE_3U32] = STR,
        [XPL_IREE_ENUM] = REF, [XPL_IREE_CONST] = REF, // texts of ours are few
    };
    struct known_field *const k = &x->known_fields[(uintptr_t)f / sizeof *f % KNOWN_FIELDS];
    if (k->field == f) return k;
    if (f->kind >= sizeof kinds || kinds[f->kind] == OTHER) return NULL;
    k->field = f;
    xpl_xspace_stat_init(&k->stat, stat_id(x, f->name),
                         (enum xpl_xspace_stat_kind)(kinds[f->kind] - UINT));
    return k;
}

// The value of a member that is a number, also of a text: its name's.
static uint64_t number_of(struct xpl_iree_xspace *x, const struct xpl_iree_field *f,
                          const uint8_t *p) {
    uint64_t u64;
    uint32_t u32;
    if (f->kind == XPL_IREE_CONST) return (uint64_t)stat_id(x, f->text);
    if (f->kind == XPL_IREE_U64 || f->kind == XPL_IREE_I64) {
        memcpy(&u64, p, sizeof u64);
        return u64;
    }
    memcpy(&u32, p, sizeof u32);
    if (f->kind == XPL_IREE_ENUM) return (uint64_t)stat_id(x, xpl_iree_name(f->names, u32));
    if (f->kind == XPL_IREE_I32) return (uint64_t)(int32_t)u32;
    return f->kind == XPL_IREE_BIT ? (u32 & f->bit) != 0 : u32;
}

static uint8_t *put_list(const struct xpl_xspace_stat *stat, uint8_t *p, const uint8_t *numbers) {
    uint8_t list[MOST_TRIPLE];
    uint8_t *const end = put_triple(list, "[", numbers, ", ");
    *end = ']';
    return xpl_xspace_stat_text(stat, p, (xpl_str_t){(const char *)list, (size_t)(end + 1 - list)});
}

static size_t put_fields(struct xpl_iree_sink *s, const struct xpl_iree_field *fields, size_t n,
                         const uint8_t *record) {
    struct xpl_iree_xspace *const x = state_of(s);
    const struct known_field *k;
    size_t i = 0;
    if (xpl_iree_track_at(s->t, s->event->track)->counter) return n; // none is shown
    uint8_t *p = xpl_xspace_writer_stats_room(&x->w, n * XPL_XSPACE_STAT_ROOM);
    if (!p) return n;
    for (; i < n && (k = known_field(x, &fields[i])); i++) {
        const uint8_t *const value = record + fields[i].offset;
        p = fields[i].kind == XPL_IREE_3U32
                ? put_list(&k->stat, p, value)
                : xpl_xspace_stat_number(&k->stat, p, number_of(x, &fields[i], value));
    }
    xpl_xspace_writer_stats_end(&x->w, p);
    return i;
}

static void put_value(struct xpl_iree_sink *s, const struct xpl_iree_member *m) {
    put_member(s, "value", m);
}

static void end_event(struct xpl_iree_sink *s, uint64_t ns) {
    struct xpl_iree_xspace *const x = state_of(s);
    (void)ns;
    if (x->open) xpl_xspace_writer_end_event(&x->w);
    x->open = false;
}

static const struct xpl_iree_trace_writer xspace_writer = {
    .event = put_event,
    .flow = put_flow,
    .argument = put_argument,
    .fields = put_fields,
    .value = put_value,
    .event_end = end_event,
};

// ---- planes and lines ----

// Whether a device timed something itself.
static bool is_timed(const struct xpl_iree_track *t) {
    return t->key.kind == XPL_IREE_TRACK_DISPATCH || t->key.kind == XPL_IREE_TRACK_QUEUE_DEVICE ||
           t->key.kind == XPL_IREE_TRACK_COUNTER || t->key.kind == XPL_IREE_TRACK_RANGE ||
           t->key.kind == XPL_IREE_TRACK_METRIC;
}

#define DEVICE_MAX (UINT32_MAX - 2)

// The numbers of devices that sessions gave the ordinals of others: behind all ordinals.
struct numbered {
    uint64_t key[2]; // ordinal, variant
    uint32_t number;
};

static uint32_t ordinal_of(const struct xpl_iree_track *t) {
    return t->key.device < DEVICE_MAX ? t->key.device : DEVICE_MAX;
}

static uint32_t first_number(const struct xpl_iree_timeline *t) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->tracks.n; i++)
        if (ordinal_of(xpl_iree_track_at(t, i)) > last) last = ordinal_of(xpl_iree_track_at(t, i));
    return last < DEVICE_MAX ? last + 1 : DEVICE_MAX;
}

// False on OOM.
static bool number_device(struct xpl_iree_table *others, const struct xpl_iree_track *t,
                          uint32_t first, uint32_t *ret) {
    const uint64_t key[] = {t->key.device, t->key.variant & UINT16_MAX};
    bool is_new;
    *ret = ordinal_of(t);
    if (!key[1]) return true;
    struct numbered *const n = xpl_iree_table_put(others, key, &is_new);
    if (!n) return false;
    if (is_new) n->number = (uint32_t)others->n - 1;
    *ret = n->number < DEVICE_MAX - first ? first + n->number : DEVICE_MAX;
    return true;
}

static bool place_tracks(struct xpl_iree_timeline *t, struct xpl_iree_xspace *x) {
    struct xpl_iree_table others = {.row_size = sizeof(struct numbered), .key_size = 16};
    const uint32_t first = first_number(t);
    x->places = xpl_sys_alloc((t->tracks.n + 1) * sizeof *x->places);
    bool ok = x->places != NULL;
    for (uint32_t i = 0; ok && i < t->tracks.n; i++) {
        const struct xpl_iree_track *const k = xpl_iree_track_at(t, i);
        uint32_t device;
        ok = number_device(&others, k, first, &device);
        if (!ok) break;
        x->places[i].plane = is_timed(k) ? device + 1 : 0;
        x->places[i].line = FIRST_LINE + (k->counter ? (uint32_t)t->tracks.n : i); // behind all
    }
    xpl_iree_table_fini(&others);
    return ok;
}

static uint64_t place_key(const void *ctx, size_t i, unsigned key) {
    const struct xpl_iree_sink *const s = ctx;
    const struct xpl_iree_event *const events = s->t->events.v;
    const struct place p = state_of(s)->places[events[i].track];
    (void)key;
    return (uint64_t)p.plane << 32 | p.line;
}

// Brings the events of each line together, by time. Its memory in addition to the events counts for
// the limit.
static uint32_t *group(const struct xpl_iree_sink *s) {
    enum { EACH = 36 }; // bytes of an event in xpl_iree_timeline_order
    const size_t n = s->t->events.n, limit = s->t->run->limit;
    if (limit && n > limit / (EACH + sizeof(struct xpl_iree_event))) return NULL;
    return xpl_iree_timeline_order(n, 1, place_key, s);
}

// The names of a track and of those above it, devices and queues among them.
static xpl_str_t path_of(struct xpl_iree_xspace *x, const struct xpl_iree_timeline *t,
                         uint32_t track, char *text, size_t size) {
    const struct xpl_iree_track *parts[8];
    size_t n = 0, at = 0;
    for (uint32_t i = track + 1; i && n < 8; i = parts[n - 1]->parent_plus_1)
        parts[n++] = xpl_iree_track_at(t, i - 1);
    if (n > 1 && parts[n - 1]->key.kind == XPL_IREE_TRACK_ROOT) n--;
    while (n-- && at < size) {
        const xpl_str_t name = xpl_str_sub(parts[n]->name, 0, 120);
        at += (size_t)snprintf(text + at, size - at, "%.*s%s", XPL_STR_FMT(name), n ? " / " : "");
    }
    return valid(x, (xpl_str_t){text, at < size ? at : size - 1});
}

static void begin_line(struct xpl_iree_sink *s, const struct xpl_iree_event *e) {
    struct xpl_iree_xspace *const x = state_of(s);
    const bool counters = xpl_iree_track_at(s->t, e->track)->counter;
    char text[1024];
    int64_t begin;
    x->first_ns = e->ns;
    if (__builtin_sub_overflow(e->ns, s->base, &begin)) begin = INT64_MAX;
    const struct xpl_xspace_writer_line line = {
        .id = counters ? LINE_COUNTERS : (int64_t)x->places[e->track].line,
        .name = counters ? XPL_STR("_counters_") : path_of(x, s->t, e->track, text, sizeof text),
        .timestamp_ns = begin};
    xpl_xspace_writer_begin_line(&x->w, &line);
}

static void begin_plane(struct xpl_iree_sink *s, uint32_t plane) {
    struct xpl_iree_xspace *const x = state_of(s);
    char name[40] = "/host:CPU";
    if (plane) (void)snprintf(name, sizeof name, "/device:GPU:%" PRIu32, plane - 1);
    begin_names(x, s->t->run->limit ? s->t->run->limit : SIZE_MAX);
    xpl_xspace_writer_begin_plane(&x->w, (int64_t)plane + 1, xpl_str_from(name));
}

static xpl_status_t check(struct xpl_iree_sink *s, struct xpl_error *err) {
    const bool stopped = xpl_iree_stopped(s->t->run) || s->t->stopped;
    if (state_of(s)->failed || s->list.failed) XPL_RETURN_OOM(err, "timeline of the bundle");
    if (stopped && !s->t->run->rows->failed)
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the trace is not needed any more");
    return XPL_OK;
}

// ---- allocators ----

struct allocator {
    struct xpl_iree_usage usage;
    char name[64];
};

// What an allocator did and the state that this left it in.
static void put_allocator(struct xpl_iree_xspace *x, struct allocator *a,
                          const struct xpl_iree_memory_event *e, int64_t bytes) {
    const struct xpl_iree_usage *const u = &a->usage;
    const struct {
        const char *name;
        uint64_t value;
    } stats[] = {{"bytes_allocated", u->bytes},
                 {"peak_bytes_in_use", u->peak_bytes},
                 {"requested_bytes", e->length},
                 {"allocation_bytes", (uint64_t)(bytes < 0 ? -bytes : bytes)},
                 {"addr", e->allocation_id},
                 {"bytes_available", e->pool_bytes_free}}; // last: where a pool says so
    const xpl_str_t name = xpl_str_from(bytes < 0 ? "MemoryDeallocation" : "MemoryAllocation");
    if (!a->name[0])
        (void)snprintf(a->name, sizeof a->name, "device %" PRIu32 " %s",
                       u->key.physical_device_ordinal, xpl_iree_memory_kind_names[u->key.kind]);
    xpl_xspace_writer_begin_event(&x->w, id_of(x, x->names, &x->n_names, name),
                                  ps_between(x->first_ns, e->host_time_ns), 0);
    put_str_stat(x, "allocator_name", xpl_str_from(a->name));
    const size_t n_stats = sizeof stats / sizeof *stats - !(e->flags & XPL_IREE_MEMORY_POOL_STATS);
    // Readers of XLA's take only signed numbers.
    for (size_t i = 0; i < n_stats; i++)
        xpl_xspace_writer_int(&x->w, stat_id(x, stats[i].name),
                              stats[i].value < INT64_MAX ? (int64_t)stats[i].value : INT64_MAX);
    xpl_xspace_writer_end_event(&x->w);
}

static void begin_allocators(struct xpl_iree_sink *s, int64_t ns) {
    struct xpl_iree_xspace *const x = state_of(s);
    const struct xpl_xspace_writer_line line = {.id = LINE_ALLOCATORS,
                                                .name = XPL_STR("allocators"),
                                                .timestamp_ns = ps_between(s->base, ns) / 1000};
    x->first_ns = ns;
    xpl_xspace_writer_begin_line(&x->w, &line);
}

// Adds an event of memory to the line, which begins with the first; false on OOM.
static bool add_allocation(struct xpl_iree_sink *s, struct xpl_iree_usages *usages,
                           const struct xpl_iree_event *event, bool *begun) {
    struct xpl_iree_memory_event e;
    struct xpl_iree_usage *usage;
    int64_t bytes;
    memcpy(&e, s->t->run->bundle->bytes.ptr + event->at, sizeof e);
    if (!xpl_iree_usage_of(usages, &e, &usage)) return false;
    if (!usage) return true;
    if (!xpl_iree_usage_add(usages, usage, &e, event->session, &bytes)) return false;
    if (bytes == 0) return true;
    if (!*begun) begin_allocators(s, event->ns);
    *begun = true;
    put_allocator(state_of(s), (struct allocator *)usage, &e, bytes);
    return true;
}

static xpl_status_t put_allocators(struct xpl_iree_sink *s, struct xpl_error *err) {
    const struct xpl_iree_event *const events = s->t->events.v;
    struct xpl_iree_usages usages;
    xpl_status_t st = XPL_OK;
    bool begun = false;
    xpl_iree_usages_init(&usages, sizeof(struct allocator));
    for (size_t i = 0; st == XPL_OK && i < s->t->events.n; i++) {
        if (events[i].kind != XPL_IREE_EVENT_MEMORY) continue;
        if (!add_allocation(s, &usages, &events[i], &begun)) state_of(s)->failed = true;
        if (i % CANCEL_EVERY == 0 || state_of(s)->failed) st = check(s, err);
    }
    if (begun) xpl_xspace_writer_end_line(&state_of(s)->w);
    xpl_iree_usages_fini(&usages);
    return st;
}

static xpl_status_t end_plane(struct xpl_iree_sink *s, uint32_t plane, struct xpl_error *err) {
    struct xpl_iree_xspace *const x = state_of(s);
    xpl_xspace_writer_end_line(&x->w);
    const xpl_status_t st = plane == 0 ? put_allocators(s, err) : XPL_OK;
    end_names(x);
    xpl_xspace_writer_end_plane(&x->w);
    return st;
}

// The host's plane is there also where nothing is on it: a profile without it is empty, or one
// that lacks the host.
static void put_bare_host(struct xpl_iree_sink *s) {
    begin_plane(s, 0);
    end_names(state_of(s));
    xpl_xspace_writer_end_plane(&state_of(s)->w);
}

// Everything, in the order of planes and lines.
static xpl_status_t emit(struct xpl_iree_sink *s, struct xpl_error *err) {
    struct xpl_iree_xspace *const x = state_of(s);
    const struct xpl_iree_event *const events = s->t->events.v;
    const size_t n = s->t->events.n;
    const struct place *last = NULL;
    char text[320];
    for (size_t i = 0; xpl_iree_warning(s->t->run, i, text, sizeof text); i++)
        xpl_xspace_writer_warning(&x->w, xpl_str_from(text));
    if (!n || x->places[events[x->order[0]].track].plane) put_bare_host(s);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_iree_event *const e = &events[x->order[i]];
        const struct place *const at = &x->places[e->track];
        const bool new_plane = !last || last->plane != at->plane;
        const bool new_line = new_plane || last->line != at->line;
        if (last && new_plane)
            XPL_TRY(end_plane(s, last->plane, err));
        else if (last && new_line)
            xpl_xspace_writer_end_line(&x->w);
        if (new_plane) begin_plane(s, at->plane);
        if (new_line) begin_line(s, e);
        last = at;
        x->next_ns = i + 1 < n ? events[x->order[i + 1]].ns : e->ns;
        if (e->kind != XPL_IREE_EVENT_END) xpl_iree_timeline_put(s, e, (uint64_t)e->ns);
        if (i % CANCEL_EVERY == 0) XPL_TRY(check(s, err));
    }
    if (last) XPL_TRY(end_plane(s, last->plane, err));
    return check(s, err);
}

xpl_status_t xpl_iree_xspace_write(struct xpl_iree_sink *s, struct xpl_error *err) {
    struct xpl_iree_xspace x = {0};
    const struct xpl_iree_event *const events = s->t->events.v;
    struct xpl_buf *const out = s->t->run->rows->out;
    s->writer = &xspace_writer;
    s->xspace = &x;
    s->base = s->t->events.n ? events[0].ns : 0; // they are by time, still
    xpl_buf_init(&x.text, (size_t)1 << 30);
    xpl_xspace_writer_init_whole(&x.w, out);
    const bool placed = place_tracks(s->t, &x) && (x.order = group(s));
    const xpl_status_t st = placed ? emit(s, err) : XPL_OK;
    const bool written = xpl_xspace_writer_fini(&x.w) && placed;
    xpl_sys_free(x.order);
    xpl_sys_free(x.places);
    xpl_arena_fini(&x.arena);
    xpl_buf_fini(&x.text);
    if (st == XPL_OK && !written && !out->failed) XPL_RETURN_OOM(err, "timeline of the bundle");
    return st;
}
