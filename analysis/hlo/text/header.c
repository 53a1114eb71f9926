// SPDX-License-Identifier: Apache-2.0
// The text before the computations: the line that begins with HloModule, and the stack frames that
// instructions name, renumbered.

#include "analysis/hlo/fields.h"
#include "analysis/hlo/text/impl.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

// ---- the line ----

static void put_alias(struct hlo_text *t, xpl_bytes_t alias) {
    struct xpl_hlo_message m, entry;
    txt_read(t, alias, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 1);
    bool first = true;
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &entry);
        txt_str(t, first ? XPL_STR(", input_output_alias={ {") : XPL_STR(", {"));
        txt_ints(t, xpl_hlo_ints_begin(&entry, 1), XPL_STR(", "));
        TXT(t, "}: (");
        txt_int(t, xpl_hlo_int(&entry, 2));
        TXT(t, ", {");
        txt_ints(t, xpl_hlo_ints_begin(&entry, 3), XPL_STR(", "));
        TXT(t, "}, ");
        txt_str(t, xpl_hlo_int(&entry, 4) == 1 ? XPL_STR("may-alias") : XPL_STR("must-alias"));
        TXT(t, ")");
    }
    if (!first) TXT(t, " }");
}

struct donor {
    int64_t parameter;
    xpl_bytes_t bytes;
};

static int by_place(const void *pa, const void *pb) {
    const struct donor *const a = pa, *const b = pb;
    if (a->parameter != b->parameter) return a->parameter < b->parameter ? -1 : 1;
    struct xpl_hlo_message m, n;
    xpl_hlo_message_read(a->bytes, &m);
    xpl_hlo_message_read(b->bytes, &n);
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&m, 2), w = xpl_hlo_ints_begin(&n, 2);
    for (int64_t x, y;;) {
        const bool more = xpl_hlo_ints_next(&v, &x), other = xpl_hlo_ints_next(&w, &y);
        if (!more || !other) return (int)more - (int)other;
        if (x != y) return x < y ? -1 : 1;
    }
}

static void put_donors(struct hlo_text *t, xpl_bytes_t bytes, struct xpl_arena *scratch) {
    struct xpl_hlo_message m, entry;
    XPL_VEC(struct donor) v = {0};
    txt_read(t, bytes, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 1);
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one);) {
        struct donor *const slot = xpl_vec_push(scratch, &v);
        if (!slot) {
            t->no_memory = t->failed = t->cut = true;
            return;
        }
        txt_read(t, one, &entry);
        *slot = (struct donor){xpl_hlo_int(&entry, 1), one};
    }
    xpl_sort(v.v, v.n, sizeof *v.v, by_place);
    for (size_t i = 0; i < v.n && !txt_stopped(t); i++) {
        txt_read(t, v.v[i].bytes, &entry);
        txt_str(t, i ? XPL_STR(", (") : XPL_STR(", buffer_donor={ ("));
        txt_int(t, v.v[i].parameter);
        TXT(t, ", {");
        txt_ints(t, xpl_hlo_ints_begin(&entry, 2), XPL_STR(", "));
        TXT(t, "})");
    }
    if (v.n) TXT(t, " }");
}

static void put_program_shape(struct hlo_text *t, xpl_bytes_t shape) {
    struct xpl_hlo_message m;
    txt_read(t, shape, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, HLO_PROGRAM_SHAPE_PARAMETERS);
    uint32_t i = 0;
    TXT(t, ", entry_computation_layout={(");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); i++) {
        if (i) TXT(t, ", ");
        if (i && i % 5 == 0) {
            TXT(t, "/*index=");
            txt_uint(t, i);
            TXT(t, "*/");
        }
        txt_shape(t, one);
    }
    TXT(t, ")->");
    txt_shape(t, xpl_hlo_bytes(&m, HLO_PROGRAM_SHAPE_RESULT));
    TXT(t, "}");
}

static void put_module_line(struct hlo_text *t, const struct xpl_hlo_message *m,
                            struct xpl_arena *scratch) {
    struct xpl_hlo_message schedule;
    TXT(t, "HloModule ");
    txt_str(t, xpl_hlo_str(m, HLO_MODULE_NAME));
    txt_read(t, xpl_hlo_bytes(m, HLO_MODULE_SCHEDULE), &schedule);
    if (xpl_hlo_has(&schedule, 1)) TXT(t, ", is_scheduled=true");
    put_alias(t, xpl_hlo_bytes(m, HLO_MODULE_ALIAS));
    put_donors(t, xpl_hlo_bytes(m, HLO_MODULE_DONOR), scratch);
    put_program_shape(t, xpl_hlo_bytes(m, HLO_MODULE_PROGRAM_SHAPE));
    const xpl_bytes_t frontend = xpl_hlo_bytes(m, HLO_MODULE_FRONTEND_ATTRIBUTES);
    if (frontend.len) {
        TXT(t, ", frontend_attributes=");
        txt_frontend_attributes(t, frontend);
    }
    const xpl_str_t config = xpl_hlo_str(m, HLO_MODULE_BACKEND_CONFIG);
    if (t->form->backend_config && config.len) txt_backend_config(t, config);
    TXT(t, "\n\n");
}

// ---- stack frames ----

// The entries in use, in the order of their first use; equal entries are one.
struct frame_table {
    struct xpl_arena *arena;
    const struct xpl_hlo_module *m;
    struct xpl_map file_ids, function_ids;          // by number in the program
    struct xpl_map place_ids, place_ends, frame_of; // of the entries of these numbers
    XPL_VEC(xpl_str_t) files;
    XPL_VEC(xpl_str_t) functions;
    XPL_VEC(struct hlo_location) locations; // of new numbers
    XPL_VEC(struct hlo_frame) frames;
    uint32_t *ids;   // by old frame: the new number; 0: none yet
    uint32_t *names; // hash table of texts: position in `texts` + 1
};

typedef XPL_VEC(xpl_str_t) str_vec;

// The number of a text among `v`, from 1, by its number in the program; 0: no memory.
static uint32_t text_id(struct frame_table *f, struct xpl_map *known, str_vec *v, xpl_str_t text,
                        int32_t old) {
    bool is_new;
    uint64_t *const at = xpl_map_put(f->arena, known, (uint64_t)(int64_t)old, 0, &is_new);
    if (!at) return 0;
    if (!is_new) return (uint32_t)*at;
    // Texts that repeat under other numbers are rare: their hash leads to the first of them.
    bool first;
    const uint64_t hash = xpl_hash_str(xpl_hash_seed(), text);
    for (uint64_t probe = 1;; probe++) {
        uint64_t *const same = xpl_map_put(f->arena, known, hash, probe, &first);
        if (!same) return 0;
        if (first) {
            xpl_str_t *const slot = xpl_vec_push(f->arena, v);
            if (!slot) return 0;
            *slot = text;
            *same = v->n;
        } else if (!xpl_str_eq(v->v[*same - 1], text)) {
            continue;
        }
        const uint32_t id = (uint32_t)*same;
        uint64_t *const again = xpl_map_get(known, (uint64_t)(int64_t)old, 0);
        if (again) *again = id;
        return id;
    }
}

static xpl_str_t text_of(const xpl_str_t *v, uint32_t n, int32_t id) {
    return id >= 1 && (uint32_t)id <= n ? v[id - 1] : (xpl_str_t){"", 0};
}

// A number for a pair, from 1, in the order of first meeting; *ret_new when it is new.
static uint64_t pair_id(struct frame_table *f, struct xpl_map *known, uint64_t a, uint64_t b,
                        bool *ret_new) {
    uint64_t *const at = xpl_map_put(f->arena, known, a, b, ret_new);
    if (!at) return 0;
    if (*ret_new) *at = known->n;
    return *at;
}

static uint32_t location_id(struct frame_table *f, const struct hlo_location *old) {
    const struct xpl_hlo_module *const m = f->m;
    const uint32_t file = text_id(f, &f->file_ids, (str_vec *)&f->files,
                                  text_of(m->files, m->n_files, old->file), old->file);
    const uint32_t function =
        text_id(f, &f->function_ids, (str_vec *)&f->functions,
                text_of(m->functions, m->n_functions, old->function), old->function);
    bool is_new;
    if (!file || !function) return 0;
    const uint64_t names = (uint64_t)file << 32 | function;
    const uint64_t start = (uint64_t)(uint32_t)old->line << 32 | (uint32_t)old->column;
    const uint64_t end = (uint64_t)(uint32_t)old->end_line << 32 | (uint32_t)old->end_column;
    const uint64_t place = pair_id(f, &f->place_ids, names, start, &is_new);
    const uint64_t id = place ? pair_id(f, &f->place_ends, place, end, &is_new) : 0;
    if (!id || !is_new) return (uint32_t)id;
    struct hlo_location *const slot = xpl_vec_push(f->arena, &f->locations);
    if (!slot) return 0;
    *slot = *old;
    slot->file = (int32_t)file;
    slot->function = (int32_t)function;
    return (uint32_t)id;
}

static const struct hlo_frame *frame_at(const struct xpl_hlo_module *m, int32_t id) {
    if (id < 1 || (uint32_t)id > m->n_frames) return NULL;
    const struct hlo_frame *const f = &m->frames[id - 1];
    return f->location >= 1 && (uint32_t)f->location <= m->n_locations ? f : NULL;
}

// Enters one frame whose parents are entered.
static bool enter_frame(struct frame_table *f, int32_t id) {
    const struct hlo_frame *const old = frame_at(f->m, id);
    if (!old || f->ids[id]) return true;
    const uint32_t parent = frame_at(f->m, old->parent) ? f->ids[old->parent] : 0;
    const uint32_t location = location_id(f, &f->m->locations[old->location - 1]);
    bool is_new;
    const uint64_t at = location ? pair_id(f, &f->frame_of, location, parent, &is_new) : 0;
    if (!at) return false;
    f->ids[id] = (uint32_t)at;
    if (!is_new) return true;
    struct hlo_frame *const slot = xpl_vec_push(f->arena, &f->frames);
    if (slot) *slot = (struct hlo_frame){(int32_t)location, (int32_t)parent};
    return slot != NULL;
}

// Enters a frame and its parents, outermost first.  Frames of a hostile file form rings: a chain
// that is longer than there are frames ends.
static bool enter_chain(struct frame_table *f, int32_t id, int32_t *chain) {
    uint32_t n = 0;
    for (const struct hlo_frame *at; n < f->m->n_frames && (at = frame_at(f->m, id)) != NULL;
         id = at->parent) {
        if (f->ids[id]) break;
        chain[n++] = id;
    }
    while (n)
        if (!enter_frame(f, chain[--n])) return false;
    return true;
}

static int32_t frame_of_instruction(const struct hlo_text *t, uint32_t index) {
    struct xpl_wire w = xpl_wire_begin(txt_metadata_of(t, index));
    const uint8_t *const all = t->m->bytes.ptr + t->m->bytes.len;
    struct xpl_field f;
    int32_t id = 0;
    while (xpl_hlo_next_within(&w, all, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_META_STACK_FRAME_ID && f.type == XPL_WIRE_VARINT) id = (int32_t)f.u;
    return id;
}

static void put_names(struct hlo_text *t, const xpl_str_t *v, size_t n) {
    for (size_t i = 0; i < n && !txt_stopped(t); i++) {
        txt_uint(t, i + 1);
        TXT(t, " ");
        txt_quoted(t, v[i]);
        TXT(t, "\n");
    }
}

static void put_key(struct hlo_text *t, const char *key, int64_t v) {
    txt_str(t, xpl_str_from(key));
    txt_int(t, v);
}

static void put_frames(struct hlo_text *t, const struct frame_table *f) {
    TXT(t, "FileNames\n");
    put_names(t, f->files.v, f->files.n);
    TXT(t, "\nFunctionNames\n");
    put_names(t, f->functions.v, f->functions.n);
    TXT(t, "\nFileLocations\n");
    for (size_t i = 0; i < f->locations.n && !txt_stopped(t); i++) {
        const struct hlo_location *const l = &f->locations.v[i];
        txt_uint(t, i + 1);
        put_key(t, " {file_name_id=", l->file);
        put_key(t, " function_name_id=", l->function);
        put_key(t, " line=", l->line);
        put_key(t, " end_line=", l->end_line);
        put_key(t, " column=", l->column);
        put_key(t, " end_column=", l->end_column);
        TXT(t, "}\n");
    }
    TXT(t, "\nStackFrames\n");
    for (size_t i = 0; i < f->frames.n && !txt_stopped(t); i++) {
        txt_uint(t, i + 1);
        put_key(t, " {file_location_id=", f->frames.v[i].location);
        // XLA adds one more than it should, so that a frame without a parent seems to have the
        // first.
        put_key(t, " parent_frame_id=", (int64_t)f->frames.v[i].parent + 1);
        TXT(t, "}\n");
    }
    TXT(t, "\n\n");
}

static void put_stack_frames(struct hlo_text *t, struct xpl_arena *scratch) {
    const struct xpl_hlo_module *const m = t->m;
    if (m->n_frames == 0) return;
    struct frame_table f = {.arena = scratch, .m = m};
    f.ids = xpl_arena_zalloc(scratch, ((size_t)m->n_frames + 1) * sizeof *f.ids);
    int32_t *const chain = xpl_arena_array(scratch, m->n_frames, sizeof *chain);
    bool ok = f.ids && chain;
    for (uint32_t i = 0; ok && i < m->n_instructions; i++) {
        const int32_t id = frame_of_instruction(t, i);
        if (id) ok = enter_chain(&f, id, chain);
    }
    if (!ok) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    t->frame_ids = f.ids;
    if (f.frames.n) put_frames(t, &f);
}

void txt_header(struct hlo_text *t, struct xpl_arena *scratch) {
    struct xpl_hlo_message m;
    txt_read(t, t->m->bytes, &m);
    put_module_line(t, &m, scratch);
    if (t->form->metadata) put_stack_frames(t, scratch);
}
