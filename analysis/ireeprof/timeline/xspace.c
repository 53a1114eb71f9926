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

#include "analysis/ireeprof/fields.h"
#include "analysis/ireeprof/reports/usage.h"
#include "analysis/ireeprof/timeline/impl.h"
#include "analysis/xplane/writer.h"
#include "base/crc32.h"
#include "base/hash.h"
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

// Caches of the open plane: by address of a name, by member of a table, by name of an event.
enum { KNOWN_STATS = 128, KNOWN_FIELDS = 256, KNOWN_NAMES = 64, KNOWN_VALUES = 16 };
enum { MOST_TRIPLE = 3 * XPL_IREE_DIGITS + 16 }; // bytes of a text of three numbers
struct known_stat {
    const char *name;
    int64_t id;
    int kind; // of the values that `stat` is for; -1: none yet
    struct xpl_xspace_stat stat;
    char text[40];
};
struct known_field {
    const struct xpl_iree_field *field;
    struct xpl_xspace_stat stat;
    union {
        uint32_t ids[KNOWN_VALUES]; // of the names of numbers; 0: not known
        struct {                    // the last list
            uint8_t numbers[12], length;
            char text[MOST_TRIPLE];
        };
    };
};
// How the name of an event is written; ops run on the host or are timed by a device.
enum name_kind { NAME_UNKNOWN, NAME_AS_IT_IS, NAME_PLAIN, NAME_OP, NAME_TIMED_OP };
struct known_name {
    enum name_kind kind;
    uint8_t length, n_stats;
    int64_t md;
    uint8_t stats[3 * 14 + XPL_VARINT_ROOM]; // of an op: they follow from its name
    char text[120];
};

struct xpl_iree_xspace {
    struct known_stat known_stats[KNOWN_STATS];
    struct known_field known_fields[KNOWN_FIELDS];
    struct known_name known_names[KNOWN_NAMES];
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
static struct known_stat *known_stat(struct xpl_iree_xspace *x, const char *name) {
    struct known_stat *const k =
        &x->known_stats[((uintptr_t)name ^ (uintptr_t)name >> 6) % KNOWN_STATS];
    if (k->name == name && strcmp(k->text, name) == 0) return k;
    const xpl_str_t text = xpl_str_from(name);
    *k = (struct known_stat){.id = id_of(x, x->stats, &x->n_stats, text), .kind = -1};
    if (text.len < sizeof k->text) memcpy(k->text, name, text.len + 1), k->name = name;
    return k;
}

static int64_t stat_id(struct xpl_iree_xspace *x, const char *name) {
    return known_stat(x, name)->id;
}

static const struct xpl_xspace_stat *stat_of(struct xpl_iree_xspace *x, const char *name,
                                             enum xpl_xspace_stat_kind kind) {
    struct known_stat *const k = known_stat(x, name);
    if (k->kind != (int)kind) xpl_xspace_stat_init(&k->stat, k->id, kind);
    k->kind = (int)kind;
    return &k->stat;
}

static void put_number(struct xpl_iree_xspace *x, const char *name, enum xpl_xspace_stat_kind kind,
                       uint64_t v) {
    const struct xpl_xspace_stat *const stat = stat_of(x, name, kind);
    uint8_t *const p = xpl_xspace_writer_stats_room(&x->w, XPL_XSPACE_STAT_ROOM);
    if (p) xpl_xspace_writer_stats_end(&x->w, xpl_xspace_stat_number(stat, p, v));
}

// A text of which many events have the same: its id.
static uint64_t ref_to(struct xpl_iree_xspace *x, xpl_str_t text) {
    return (uint64_t)id_of(x, x->stats, &x->n_stats, text);
}

static void begin_names(struct xpl_iree_xspace *x, size_t limit) {
    xpl_arena_fini(&x->arena);
    xpl_arena_init(&x->arena, limit);
    x->names = xpl_intern_new(&x->arena, 1);
    x->stats = xpl_intern_new(&x->arena, 2);
    x->n_names = x->n_stats = 0;
    memset(x->known_stats, 0, sizeof x->known_stats);
    memset(x->known_fields, 0, sizeof x->known_fields);
    memset(x->known_names, 0, sizeof x->known_names);
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
static void add_op_stats(struct xpl_iree_xspace *x, xpl_str_t name, struct known_name *ret) {
    char full[3 * OP_MAX + sizeof "/:dispatch"]; // component and type are parts of the name
    char text[OP_MAX + 1];
    xpl_str_t component, type;
    name = short_name(name, text);
    split(name, &component, &type);
    int n = put_part(full, component);
    full[n++] = '/';
    n += put_part(full + n, name);
    n += put_type(full + n, type);
    const struct {
        const char *name;
        xpl_str_t text;
    } stats[] = {{"hlo_op", name}, {"hlo_module", component}, {"tf_op", {full, (size_t)n}}};
    uint8_t *p = ret->stats;
    // On a device's plane an hlo_op would have to be one of an HLO module that is known.
    for (size_t i = ret->kind == NAME_TIMED_OP ? 2 : 0; i < 3; i++)
        p = xpl_xspace_stat_number(stat_of(x, stats[i].name, XPL_XSPACE_STAT_REF), p,
                                   ref_to(x, stats[i].text));
    ret->n_stats = (uint8_t)(p - ret->stats);
}

// Three numbers, with texts before and between them.
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
    xpl_xspace_writer_str(&state_of(s)->w, stat_id(state_of(s), "kernel_details"),
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

// The metadata and the stats that a name stands for; valid until the next call.
static const struct known_name *name_of(struct xpl_iree_xspace *x, xpl_str_t name,
                                        enum name_kind kind) {
    struct known_name *const k = &x->known_names[xpl_hash_str(kind, name) % KNOWN_NAMES];
    char text[SHOWN];
    if (k->kind == kind && k->length == name.len &&
        (name.len == 0 || memcmp(k->text, name.ptr, name.len) == 0))
        return k;
    const xpl_str_t shown = valid(x, kind == NAME_PLAIN ? plain(name, text) : name);
    *k = (struct known_name){.kind = kind, .md = id_of(x, x->names, &x->n_names, shown)};
    if (kind >= NAME_OP) add_op_stats(x, shown, k);
    if (name.len > sizeof k->text) {
        k->kind = NAME_UNKNOWN;
    } else if (name.len) {
        memcpy(k->text, name.ptr, name.len);
        k->length = (uint8_t)name.len;
    }
    return k;
}

static void put_event(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns,
                      xpl_str_t name) {
    struct xpl_iree_xspace *const x = state_of(s);
    const struct xpl_iree_track *const t = xpl_iree_track_at(s->t, e->track);
    const bool timed = x->places[e->track].plane != 0, dispatch = is_dispatch(s, e);
    const enum name_kind kind = t->counter  ? NAME_AS_IT_IS
                                : !dispatch ? NAME_PLAIN
                                : timed     ? NAME_TIMED_OP
                                            : NAME_OP;
    // Slices of a track do not overlap: the next event is this one's end.
    const int64_t length = e->kind == XPL_IREE_EVENT_SLICE ? ps_between(e->ns, x->next_ns) : 0;
    const struct known_name *const n = name_of(x, t->counter ? t->name : name, kind);
    (void)ns;
    xpl_xspace_writer_begin_event(&x->w, n->md, ps_between(x->first_ns, e->ns), length);
    x->open = true;
    uint8_t *const p = xpl_xspace_writer_stats_room(&x->w, sizeof n->stats);
    if (!p) return;
    memcpy(p, n->stats, sizeof n->stats);
    xpl_xspace_writer_stats_end(&x->w, p + n->n_stats);
    if (dispatch && timed) put_kernel(s, e);
}

static void put_flow(struct xpl_iree_sink *s, uint64_t id) {
    struct xpl_iree_xspace *const x = state_of(s);
    const enum direction d = s->event->kind == XPL_IREE_EVENT_QUEUE   ? FLOW_OUT
                             : s->event->kind == XPL_IREE_EVENT_READY ? FLOW_INOUT
                                                                      : FLOW_IN;
    const uint64_t bits = id & ((UINT64_C(1) << FLOW_BITS) - 1);
    put_number(x, "flow", XPL_XSPACE_STAT_UINT, (uint64_t)d | bits << 2);
}

static void put_member(struct xpl_iree_sink *s, const char *name, const struct xpl_iree_member *m) {
    struct xpl_iree_xspace *const x = state_of(s);
    switch (m->kind) {
        case XPL_IREE_MEMBER_U64: put_number(x, name, XPL_XSPACE_STAT_UINT, m->u64); break;
        case XPL_IREE_MEMBER_I64: put_number(x, name, XPL_XSPACE_STAT_INT, (uint64_t)m->i64); break;
        case XPL_IREE_MEMBER_BOOL: put_number(x, name, XPL_XSPACE_STAT_INT, m->is); break;
        case XPL_IREE_MEMBER_DOUBLE:
            xpl_xspace_writer_double(&x->w, stat_id(x, name), m->number);
            break;
        case XPL_IREE_MEMBER_TEXT:
            xpl_xspace_writer_str(&x->w, stat_id(x, name), valid(x, m->text));
            break;
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

// Fills the cache's entry for a member; false: the member is written by put_argument.
static bool learn_field(struct xpl_iree_xspace *x, const struct xpl_iree_field *f,
                        struct known_field *ret) {
    enum { OTHER, UINT, INT, STR, REF };
    static const uint8_t kinds[] = {
        [XPL_IREE_U32] = UINT, [XPL_IREE_U64] = UINT,    [XPL_IREE_I32] = INT,
        [XPL_IREE_I64] = INT,  [XPL_IREE_BIT] = INT,     [XPL_IREE_3U32] = STR,
        [XPL_IREE_ENUM] = REF, [XPL_IREE_CONST] = REF, // texts of ours are few
        [XPL_IREE_SPAN] = INT, [XPL_IREE_IS_SPAN] = INT,
    };
    if (kinds[f->kind] == OTHER) return false;
    *ret = (struct known_field){.field = f};
    xpl_xspace_stat_init(&ret->stat, stat_id(x, f->name),
                         (enum xpl_xspace_stat_kind)(kinds[f->kind] - UINT));
    if (f->kind == XPL_IREE_CONST) ret->ids[0] = (uint32_t)stat_id(x, f->text);
    return true;
}

static uint64_t id_of_number(struct xpl_iree_xspace *x, struct known_field *k, uint32_t v) {
    if (v < KNOWN_VALUES && k->ids[v]) return k->ids[v];
    const uint64_t id = (uint64_t)stat_id(x, xpl_iree_name(k->field->names, v));
    if (v < KNOWN_VALUES) k->ids[v] = (uint32_t)id;
    return id;
}

// Most lists are like the one before.
static uint8_t *put_list(struct known_field *k, uint8_t *p, const uint8_t *numbers) {
    if (!k->length || memcmp(k->numbers, numbers, sizeof k->numbers) != 0) {
        uint8_t *const text = (uint8_t *)k->text, *const end = put_triple(text, "[", numbers, ", ");
        *end = ']';
        k->length = (uint8_t)(end + 1 - text);
        memcpy(k->numbers, numbers, sizeof k->numbers);
    }
    return xpl_xspace_stat_text(&k->stat, p, (xpl_str_t){k->text, k->length});
}

// Writes a member; the value of a text of ours is its name's id.
static inline uint8_t *put_known(struct xpl_iree_xspace *x, struct known_field *k, uint8_t *p,
                                 const uint8_t *value) {
    uint64_t v = 0;
    uint32_t u32 = 0;
    switch (k->field->kind) {
        case XPL_IREE_U64:
        case XPL_IREE_I64: memcpy(&v, value, sizeof v); break;
        case XPL_IREE_U32:
            memcpy(&u32, value, sizeof u32);
            v = u32;
            break;
        case XPL_IREE_I32:
            memcpy(&u32, value, sizeof u32);
            v = (uint64_t)(int32_t)u32;
            break;
        case XPL_IREE_BIT:
            memcpy(&u32, value, sizeof u32);
            v = (u32 & k->field->bit) != 0;
            break;
        case XPL_IREE_ENUM:
            memcpy(&u32, value, sizeof u32);
            v = id_of_number(x, k, u32);
            break;
        case XPL_IREE_CONST: v = k->ids[0]; break;
        case XPL_IREE_SPAN:
            v = xpl_iree_span_at(value) > 0 ? (uint64_t)xpl_iree_span_at(value) : 0;
            break;
        case XPL_IREE_IS_SPAN: v = xpl_iree_span_at(value) >= 0; break;
        case XPL_IREE_3U32: return put_list(k, p, value);
        case XPL_IREE_8U32:
        case XPL_IREE_OBJECT:
        case XPL_IREE_END: break; // not learned
    }
    return xpl_xspace_stat_number(&k->stat, p, v);
}

// Writes members from the first on; returns how many.
static size_t put_members(struct xpl_iree_xspace *x, const struct xpl_iree_field *fields, size_t n,
                          const uint8_t *record) {
    struct known_field *const known = x->known_fields, *const end = known + KNOWN_FIELDS;
    struct known_field *k = known + (uintptr_t)fields / sizeof *fields % KNOWN_FIELDS;
    uint8_t *p = xpl_xspace_writer_stats_room(&x->w, n * XPL_XSPACE_STAT_ROOM);
    size_t i = 0;
    for (; p && i < n; i++, k = k + 1 == end ? known : k + 1) {
        if (k->field != &fields[i] && !learn_field(x, &fields[i], k)) break;
        p = put_known(x, k, p, record + fields[i].offset);
    }
    if (p) xpl_xspace_writer_stats_end(&x->w, p);
    return p ? i : n;
}

static size_t put_fields(struct xpl_iree_sink *s, const struct xpl_iree_field *fields, size_t n,
                         const uint8_t *record) {
    if (xpl_iree_track_at(s->t, s->event->track)->counter) return n; // none is shown
    return put_members(state_of(s), fields, n, record);
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

// Lines, and within them by time.
enum { PLACE_KEYS = 3 };
static uint64_t place_key(const void *ctx, size_t i, unsigned key) {
    const struct xpl_iree_sink *const s = ctx;
    const struct xpl_iree_event *const e = (const struct xpl_iree_event *)s->t->events.v + i;
    const struct place p = state_of(s)->places[e->track];
    if (key) return key == 1 ? xpl_iree_order_of(e->ns) : e->kind;
    return (uint64_t)p.plane << 32 | p.line;
}

// Returns the order of events by line and time. The events are not moved, as those of a line mostly
// follow one another. The order's memory counts for the limit.
static uint32_t *group(const struct xpl_iree_sink *s) {
    enum { EACH = 36 }; // bytes of an event in xpl_iree_timeline_order
    const size_t n = s->t->events.n, limit = s->t->run->limit;
    if (limit && n > limit / (EACH + sizeof(struct xpl_iree_event))) return NULL;
    return xpl_iree_timeline_order(n, PLACE_KEYS, place_key, s);
}

static int64_t first_ns(const struct xpl_iree_timeline *t) {
    const struct xpl_iree_event *const events = t->events.v;
    int64_t first = t->events.n ? INT64_MAX : 0;
    for (size_t i = 0; i < t->events.n; i++)
        if (events[i].ns < first) first = events[i].ns;
    return first;
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

// An allocation or its end, and the state of the allocator after it.  Readers of XLA's take only
// signed numbers.
struct xpl_iree_allocator_state {
    int64_t bytes_allocated, peak_bytes_in_use, requested_bytes, allocation_bytes, addr,
        bytes_available;
};
static const struct xpl_iree_field allocation_stats[] = {
    XPL_F(I64, allocator_state, bytes_allocated),
    XPL_F(I64, allocator_state, peak_bytes_in_use),
    XPL_F(I64, allocator_state, requested_bytes),
    XPL_F(I64, allocator_state, allocation_bytes),
    XPL_F(I64, allocator_state, addr),
    XPL_F(I64, allocator_state, bytes_available)}; // where a pool says so

static int64_t as_signed(uint64_t v) {
    return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

static void put_allocator(struct xpl_iree_xspace *x, struct allocator *a,
                          const struct xpl_iree_memory_event *e, int64_t bytes) {
    const struct xpl_iree_usage *const u = &a->usage;
    const struct xpl_iree_allocator_state state = {
        as_signed(u->bytes),        as_signed(u->peak_bytes),    as_signed(e->length),
        bytes < 0 ? -bytes : bytes, as_signed(e->allocation_id), as_signed(e->pool_bytes_free)};
    const size_t n = sizeof allocation_stats / sizeof *allocation_stats;
    const xpl_str_t name = xpl_str_from(bytes < 0 ? "MemoryDeallocation" : "MemoryAllocation");
    if (!a->name[0])
        (void)snprintf(a->name, sizeof a->name, "device %" PRIu32 " %s",
                       u->key.physical_device_ordinal, xpl_iree_memory_kind_names[u->key.kind]);
    xpl_xspace_writer_begin_event(&x->w, name_of(x, name, NAME_AS_IT_IS)->md,
                                  ps_between(x->first_ns, e->host_time_ns), 0);
    put_number(x, "allocator_name", XPL_XSPACE_STAT_REF, ref_to(x, xpl_str_from(a->name)));
    (void)put_members(x, allocation_stats, n - !(e->flags & XPL_IREE_MEMORY_POOL_STATS),
                      (const uint8_t *)&state);
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
                           const struct xpl_iree_memory_place *event, bool *begun) {
    struct xpl_iree_memory_event e;
    struct xpl_iree_usage *usage;
    int64_t bytes;
    memcpy(&e, s->t->run->bundle->bytes.ptr + event->place.at, sizeof e);
    if (!xpl_iree_usage_of(usages, &e, &usage)) return false;
    if (!usage) return true;
    if (!xpl_iree_usage_add(usages, usage, &e, event->place.session, &bytes)) return false;
    if (bytes == 0) return true;
    if (!*begun) begin_allocators(s, event->ns);
    *begun = true;
    put_allocator(state_of(s), (struct allocator *)usage, &e, bytes);
    return true;
}

static xpl_status_t put_allocators(struct xpl_iree_sink *s, struct xpl_error *err) {
    const struct xpl_iree_timeline *const t = s->t;
    struct xpl_iree_usages usages;
    xpl_status_t st = XPL_OK;
    bool begun = false;
    xpl_iree_usages_init(&usages, sizeof(struct allocator));
    for (size_t i = 0; st == XPL_OK && i < t->n_memory; i++) {
        if (!add_allocation(s, &usages, &t->memory[t->memory_order[i]], &begun))
            state_of(s)->failed = true;
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
    struct xpl_buf *const out = s->t->run->rows->out;
    s->writer = &xspace_writer;
    s->xspace = &x;
    s->base = first_ns(s->t);
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
