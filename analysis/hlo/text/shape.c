// SPDX-License-Identifier: Apache-2.0
// Shapes and their layouts.  A program repeats few shapes many times, so that texts of shapes are
// kept by the bytes they were made of.
#include "analysis/hlo/module/shape.h"

#include "analysis/hlo/text/impl.h"
#include "analysis/hlo/types.h"
#include "base/hash.h"
#include "base/map.h"

// ---- the cache ----

enum {
    LONGEST_KEY = 512, // bytes of a message that is kept,
    LONGEST_TEXT = 512 // and of its text: at most 1 MiB in all, with the slots
};

struct xpl_hlo_text_cache *xpl_hlo_text_cache_new(struct xpl_arena *a) {
    struct xpl_hlo_text_cache *const c = xpl_arena_zalloc(a, sizeof *c);
    if (!c) return NULL;
    c->arena = a;
    c->seed = xpl_hash_seed();
    return c;
}

// ---- layouts ----

static void put_shape(struct hlo_text *t, xpl_bytes_t shape, bool with_layout);

static void put_tiles(struct hlo_text *t, const struct xpl_hlo_message *layout) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(layout, HLO_LAYOUT_TILES);
    bool first = true;
    for (xpl_bytes_t tile; !txt_stopped(t) && xpl_hlo_each_next(&e, &tile); first = false) {
        struct xpl_hlo_message m;
        txt_read(t, tile, &m);
        if (first) TXT(t, "T");
        TXT(t, "(");
        struct xpl_hlo_ints v = xpl_hlo_ints_begin(&m, 1);
        int64_t x;
        for (bool second = false; xpl_hlo_ints_next(&v, &x); second = true) {
            if (second) TXT(t, ",");
            if (x == INT64_MIN)
                TXT(t, "*"); // the dimension is combined with the next
            else
                txt_int(t, x);
        }
        TXT(t, ")");
    }
}

static void put_splits(struct hlo_text *t, const struct xpl_hlo_message *layout) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(layout, HLO_LAYOUT_SPLIT_CONFIGS);
    bool first = true;
    for (xpl_bytes_t split; !txt_stopped(t) && xpl_hlo_each_next(&e, &split); first = false) {
        struct xpl_hlo_message m;
        txt_read(t, split, &m);
        if (first) TXT(t, "SC");
        TXT(t, "(");
        txt_int(t, xpl_hlo_int(&m, 1));
        TXT(t, ":");
        txt_ints(t, xpl_hlo_ints_begin(&m, 2), XPL_STR(","));
        TXT(t, ")");
    }
}

static void put_number(struct hlo_text *t, const char *key, int64_t v) {
    txt_str(t, xpl_str_from(key));
    TXT(t, "(");
    txt_int(t, v);
    TXT(t, ")");
}

static void put_type(struct hlo_text *t, const char *key, int64_t type) {
    txt_str(t, xpl_str_from(key));
    TXT(t, "(");
    txt_str(t, xpl_hlo_type_info((uint64_t)type)->name);
    TXT(t, ")");
}

// The properties after the colon.
static void put_properties(struct hlo_text *t, const struct xpl_hlo_message *m) {
    put_tiles(t, m);
    const int64_t tail = xpl_hlo_int(m, HLO_LAYOUT_TAIL_PADDING);
    const int64_t index = xpl_hlo_int(m, HLO_LAYOUT_INDEX_TYPE);
    const int64_t pointer = xpl_hlo_int(m, HLO_LAYOUT_POINTER_TYPE);
    const int64_t bits = xpl_hlo_int(m, HLO_LAYOUT_ELEMENT_BITS);
    const int64_t space = xpl_hlo_int(m, HLO_LAYOUT_MEMORY_SPACE);
    const int64_t prefix = xpl_hlo_int(m, HLO_LAYOUT_DYNAMIC_PREFIX);
    if (tail != 0 && tail != 1) put_number(t, "L", tail);
    if (index) put_type(t, "#", index);
    if (pointer) put_type(t, "*", pointer);
    if (bits) put_number(t, "E", bits);
    if (space) put_number(t, "S", space);
    put_splits(t, m);
    if (xpl_hlo_has(m, HLO_LAYOUT_PHYSICAL_SHAPE)) {
        TXT(t, "P(");
        put_shape(t, xpl_hlo_bytes(m, HLO_LAYOUT_PHYSICAL_SHAPE), true);
        TXT(t, ")");
    }
    if (prefix) put_number(t, "M", prefix);
}

// Whether anything follows the colon.
static bool has_properties(const struct xpl_hlo_message *m) {
    static const uint8_t numbers[] = {HLO_LAYOUT_INDEX_TYPE, HLO_LAYOUT_POINTER_TYPE,
                                      HLO_LAYOUT_ELEMENT_BITS, HLO_LAYOUT_MEMORY_SPACE,
                                      HLO_LAYOUT_DYNAMIC_PREFIX};
    const int64_t tail = xpl_hlo_int(m, HLO_LAYOUT_TAIL_PADDING);
    if ((tail != 0 && tail != 1) || xpl_hlo_has(m, HLO_LAYOUT_TILES) ||
        xpl_hlo_has(m, HLO_LAYOUT_SPLIT_CONFIGS) || xpl_hlo_has(m, HLO_LAYOUT_PHYSICAL_SHAPE))
        return true;
    for (size_t i = 0; i < sizeof numbers; i++)
        if (xpl_hlo_int(m, numbers[i])) return true;
    return false;
}

static void put_layout(struct hlo_text *t, xpl_bytes_t layout, bool has_dims) {
    struct xpl_hlo_message m;
    if (!txt_enter(t)) return;
    txt_read(t, layout, &m);
    const bool more = has_properties(&m);
    if (has_dims || more || xpl_hlo_ints_count(&m, HLO_LAYOUT_MINOR_TO_MAJOR)) {
        TXT(t, "{");
        txt_ints(t, xpl_hlo_ints_begin(&m, HLO_LAYOUT_MINOR_TO_MAJOR), XPL_STR(","));
        if (more) {
            TXT(t, ":");
            put_properties(t, &m);
        }
        TXT(t, "}");
    }
    txt_leave(t);
}

// ---- shapes ----

static void put_dimensions(struct hlo_text *t, const struct xpl_hlo_shape *s) {
    struct xpl_hlo_ints dims = s->dims, dynamic = s->is_dynamic;
    int64_t x, is_dynamic;
    TXT(t, "[");
    for (bool first = true; !txt_stopped(t) && xpl_hlo_ints_next(&dims, &x); first = false) {
        if (!first) TXT(t, ",");
        if (!xpl_hlo_ints_next(&dynamic, &is_dynamic)) is_dynamic = 0;
        if (is_dynamic && x == INT64_MIN) {
            TXT(t, "?");
            continue;
        }
        if (is_dynamic) TXT(t, "<=");
        txt_int(t, x);
    }
    TXT(t, "]");
}

static void put_parts(struct hlo_text *t, const struct xpl_hlo_shape *s, bool with_layout) {
    const bool numbered = s->type == HLO_TYPE_TUPLE;
    struct xpl_hlo_each e = xpl_hlo_shape_parts(s);
    uint32_t i = 0;
    TXT(t, "(");
    for (xpl_bytes_t part; !txt_stopped(t) && xpl_hlo_each_next(&e, &part); i++) {
        if (i) TXT(t, ", ");
        if (i && numbered && i % 5 == 0) {
            TXT(t, "/*index=");
            txt_uint(t, i);
            TXT(t, "*/");
        }
        put_shape(t, part, with_layout);
    }
    TXT(t, ")");
}

static void put_shape(struct hlo_text *t, xpl_bytes_t shape, bool with_layout) {
    struct xpl_hlo_shape s;
    if (!txt_enter(t)) return;
    xpl_hlo_shape_read(shape, &s);
    if (s.malformed) txt_malformed(t);
    if (s.type == HLO_TYPE_BUFFER) TXT(t, "b");
    if (s.type == HLO_TYPE_TUPLE || s.type == HLO_TYPE_BUFFER) {
        put_parts(t, &s, with_layout);
    } else {
        txt_str(t, xpl_hlo_type_info(s.type)->name);
        put_dimensions(t, &s);
        if (with_layout && s.has_layout && s.type != HLO_TYPE_OPAQUE && s.type != HLO_TYPE_TOKEN) {
            struct xpl_hlo_ints dims = s.dims;
            int64_t x;
            put_layout(t, s.layout, xpl_hlo_ints_next(&dims, &x));
        }
    }
    txt_leave(t);
}

// Eight bytes at a time, the last ones again.  Collisions that a program provokes only cause its
// own shapes to be printed again.
static size_t slot_of(uint64_t seed, xpl_str_t key) {
    uint64_t h = seed ^ key.len, x = 0;
    if (key.len < sizeof x) {
        memcpy(&x, key.ptr, key.len);
        h = (h ^ x) * 0x9e3779b97f4a7c15u;
    } else {
        for (size_t i = 0; i < key.len; i += sizeof x) {
            const size_t last = key.len - sizeof x;
            memcpy(&x, key.ptr + (i < last ? i : last), sizeof x);
            h = (h ^ x) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
    }
    return (h >> 20) & (TXT_SHAPE_SLOTS - 1);
}

// The slot that has the text, else an empty one, else NULL.
static struct txt_shape_slot *find_slot(const struct xpl_hlo_text_cache *c, xpl_str_t key,
                                        bool layout) {
    const size_t at = slot_of(c->seed, key);
    for (unsigned probe = 0; probe < 4; probe++) {
        struct txt_shape_slot *const slot = &c->shapes[layout][at ^ probe];
        if (!slot->text.len || xpl_str_eq_short(slot->key, key)) return slot;
    }
    return NULL;
}

xpl_str_t txt_kept_shape(const struct hlo_text *t, xpl_bytes_t shape) {
    const struct xpl_hlo_text_cache *const c = t->cache;
    if (!c || shape.len > LONGEST_KEY || shape.len == 0 || !c->shapes[true])
        return (xpl_str_t){"", 0};
    const struct txt_shape_slot *const slot =
        find_slot(c, (xpl_str_t){(const char *)shape.ptr, shape.len}, true);
    return slot ? slot->text : (xpl_str_t){"", 0};
}

static bool make_slots(struct xpl_hlo_text_cache *c, bool layout) {
    if (!c->shapes[layout])
        c->shapes[layout] = xpl_arena_zalloc(c->arena, TXT_SHAPE_SLOTS * sizeof **c->shapes);
    return c->shapes[layout] != NULL;
}

static void put_kept_shape(struct hlo_text *t, xpl_bytes_t shape, bool with_layout) {
    struct xpl_hlo_text_cache *const c = t->cache;
    if (!c || shape.len > LONGEST_KEY || shape.len == 0) {
        put_shape(t, shape, with_layout);
        return;
    }
    if (!make_slots(c, with_layout)) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    const xpl_str_t key = {(const char *)shape.ptr, shape.len};
    struct txt_shape_slot *const slot = find_slot(c, key, with_layout);
    if (slot && slot->text.len) {
        txt_str(t, slot->text);
        return;
    }
    const size_t from = t->b->n;
    put_shape(t, shape, with_layout);
    const size_t n = t->b->n - from;
    if (t->cut || !slot || n == 0 || n > LONGEST_TEXT) return;
    if (xpl_arena_str(c->arena, (xpl_str_t){(const char *)t->b->p + from, n}, &slot->text))
        slot->key = key;
    else
        t->no_memory = t->failed = t->cut = true;
}

void txt_shape_without_layout(struct hlo_text *t, xpl_bytes_t shape) {
    put_kept_shape(t, shape, false);
}

void txt_shape(struct hlo_text *t, xpl_bytes_t shape) {
    put_kept_shape(t, shape, true);
}
