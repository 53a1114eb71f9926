// SPDX-License-Identifier: Apache-2.0
// Texts of other programs inside the text: frontend attributes, configurations of backends, and
// metadata.

#include "analysis/hlo/fields.h"
#include "analysis/hlo/text/impl.h"
#include "base/text/utf8.h"
#include "base/vec.h"

// ---- dictionaries in braces ----

// Position after the string that begins at s[i]; SIZE_MAX when it does not end, or is no UTF-8.
static size_t skip_string(xpl_str_t s, size_t i) {
    for (i++; i < s.len && s.ptr[i] != '"';) {
        if (s.ptr[i] == '\\' && (++i == s.len || s.ptr[i] == '\n')) return SIZE_MAX;
        const size_t n = xpl_utf8_next(xpl_str_sub(s, i, SIZE_MAX));
        if (!n) return SIZE_MAX;
        i += n;
    }
    return i < s.len ? i + 1 : SIZE_MAX;
}

// Position after blanks and comments; SIZE_MAX at a comment without end.
static size_t skip_blanks(xpl_str_t s, size_t i) {
    for (; i < s.len; i++) {
        const xpl_str_t rest = xpl_str_sub(s, i, SIZE_MAX);
        if (xpl_str_starts(rest, XPL_STR("/*"))) {
            i = xpl_str_find(s, XPL_STR("*/"), i + 2);
            if (i == SIZE_MAX) return i;
            i++;
        } else if (xpl_str_starts(rest, XPL_STR("//"))) {
            i = xpl_str_find(s, XPL_STR("\n"), i);
            if (i == SIZE_MAX) return s.len;
        } else if (s.ptr[i] != ' ' && (s.ptr[i] < '\t' || s.ptr[i] > '\r')) {
            break;
        }
    }
    return i;
}

// XLA's lexer accepts as a dictionary any text with balanced braces outside of strings, and only
// blanks and comments around them: such texts are written without quotes.
static bool is_dictionary(xpl_str_t s) {
    size_t depth = 0, i = skip_blanks(s, 0);
    if (i >= s.len || s.ptr[i] != '{') return false;
    while (i < s.len) {
        if (s.ptr[i] == '"') {
            i = skip_string(s, i);
            if (i == SIZE_MAX) return false;
            continue;
        }
        depth += s.ptr[i] == '{';
        if (s.ptr[i++] == '}' && --depth == 0) return skip_blanks(s, i) == s.len;
    }
    return false;
}

static void put_dictionary(struct hlo_text *t, xpl_str_t s) {
    if (is_dictionary(s))
        txt_str(t, s);
    else
        txt_quoted(t, s);
}

// ---- configurations ----

// Steps over blanks and the character, if it is there.
static bool skip_char(xpl_str_t s, size_t *i, char c) {
    while (*i < s.len && (s.ptr[*i] == ' ' || (s.ptr[*i] >= '\t' && s.ptr[*i] <= '\r')))
        ++*i;
    if (*i == s.len || s.ptr[*i] != c) return false;
    ++*i;
    return true;
}

// XLA leaves an empty list of queues to wait for out of its text: "key":[], and the comma.  False
// when there is none from `from` on.
static bool find_empty_wait(xpl_str_t s, size_t from, size_t *ret_begin, size_t *ret_end) {
    const xpl_str_t key = XPL_STR("\"wait_on_operation_queues\"");
    for (size_t at; (at = xpl_str_find(s, key, from)) != SIZE_MAX; from = at + 1) {
        size_t i = at + key.len;
        if (!skip_char(s, &i, ':') || !skip_char(s, &i, '[') || !skip_char(s, &i, ']') ||
            !skip_char(s, &i, ','))
            continue;
        *ret_begin = at;
        *ret_end = i;
        return true;
    }
    return false;
}

void txt_backend_config(struct hlo_text *t, xpl_str_t config) {
    size_t begin, end;
    TXT(t, ", backend_config=");
    if (!find_empty_wait(config, 0, &begin, &end)) {
        put_dictionary(t, config);
        return;
    }
    char *const copy = xpl_sys_alloc(config.len);
    if (!copy) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    size_t n = 0, from = 0;
    do {
        memcpy(copy + n, config.ptr + from, begin - from);
        n += begin - from;
        from = end;
    } while (find_empty_wait(config, from, &begin, &end));
    memcpy(copy + n, config.ptr + from, config.len - from);
    put_dictionary(t, (xpl_str_t){copy, n + config.len - from});
    xpl_sys_free(copy);
}

void txt_plain_config(struct hlo_text *t, xpl_str_t config) {
    size_t begin, end, from = 0;
    for (; find_empty_wait(config, from, &begin, &end); from = end)
        txt_str(t, xpl_str_sub(config, from, begin - from));
    txt_str(t, xpl_str_sub(config, from, SIZE_MAX));
}

// ---- frontend attributes ----

struct attribute {
    xpl_str_t key, value;
    size_t order;
};

static int by_key(const void *pa, const void *pb) {
    const struct attribute *const a = pa, *const b = pb;
    const int c = xpl_str_cmp(a->key, b->key);
    return c ? c : (a->order > b->order) - (a->order < b->order);
}

static void put_attributes(struct hlo_text *t, const struct attribute *v, size_t n) {
    TXT(t, "{");
    for (size_t i = 0; i < n && !txt_stopped(t); i++) {
        // Of equal keys the last counts.
        if (i + 1 < n && xpl_str_eq(v[i].key, v[i + 1].key)) continue;
        txt_str(t, v[i].key);
        TXT(t, "=");
        put_dictionary(t, v[i].value);
        if (i + 1 < n) TXT(t, ",");
    }
    TXT(t, "}");
}

void txt_frontend_attributes(struct hlo_text *t, xpl_bytes_t attributes) {
    enum { FEW = 16 };
    struct attribute few[FEW], *v = few;
    struct xpl_hlo_message m, entry;
    txt_read(t, attributes, &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 1);
    size_t n = 0, cap = FEW;
    for (xpl_bytes_t one; xpl_hlo_each_next(&e, &one) && !txt_stopped(t);) {
        if (n == cap) {
            struct attribute *const more = xpl_sys_alloc(2 * cap * sizeof *v);
            if (more) memcpy(more, v, n * sizeof *v);
            if (v != few) xpl_sys_free(v);
            v = more ? more : few;
            if (!more) {
                t->no_memory = t->failed = t->cut = true;
                return;
            }
            cap *= 2;
        }
        txt_read(t, one, &entry);
        v[n] = (struct attribute){xpl_hlo_str(&entry, 1), xpl_hlo_str(&entry, 2), n};
        n++;
    }
    xpl_sort(v, n, sizeof *v, by_key);
    put_attributes(t, v, n);
    if (v != few) xpl_sys_free(v);
}

// ---- metadata ----

struct list {
    struct hlo_text *t;
    bool open; // the brace is written
};

static void next_item(struct list *l) {
    if (l->open)
        TXT(l->t, " ");
    else
        TXT(l->t, "{");
    l->open = true;
}
static void put_text(struct list *l, xpl_str_t key, xpl_str_t value) {
    if (!value.len) return;
    next_item(l);
    txt_str(l->t, key);
    txt_quoted(l->t, value);
}
static void put_number(struct list *l, xpl_str_t key, int64_t value) {
    if (!value) return;
    next_item(l);
    txt_str(l->t, key);
    txt_int(l->t, (int32_t)value);
}

static void put_profile_types(struct list *l, const struct xpl_hlo_message *m) {
    if (!xpl_hlo_ints_count(m, HLO_META_PROFILE_TYPE)) return;
    next_item(l);
    TXT(l->t, "profile_type=");
    txt_set(l->t, m, HLO_META_PROFILE_TYPE);
}

// Frames that instructions name are renumbered; those of shardings are shown unchanged.
static int64_t frame_id(const struct hlo_text *t, const struct xpl_hlo_message *m, bool own) {
    const int64_t frame = (int32_t)xpl_hlo_int(m, HLO_META_STACK_FRAME_ID);
    if (!own) return frame;
    return t->frame_ids && frame > 0 && frame <= t->m->n_frames ? t->frame_ids[frame] : 0;
}

// An instruction's metadata must have a name or a frame to be shown.
static bool is_shown(const struct hlo_text *t, const struct xpl_hlo_message *m) {
    return xpl_hlo_str(m, HLO_META_OP_TYPE).len || xpl_hlo_str(m, HLO_META_OP_NAME).len ||
           xpl_hlo_str(m, HLO_META_SOURCE_FILE).len ||
           xpl_hlo_str(m, HLO_META_SCHEDULING_NAME).len || frame_id(t, m, true);
}

static void put_raw_text(struct list *l, xpl_str_t key, xpl_str_t value) {
    if (!value.len) return;
    next_item(l);
    txt_str(l->t, key);
    TXT(l->t, "\"");
    txt_str(l->t, value);
    TXT(l->t, "\"");
}

bool txt_op_metadata(struct hlo_text *t, xpl_bytes_t metadata, bool own) {
    struct xpl_hlo_message m, payload;
    txt_read(t, metadata, &m);
    struct list l = {.t = t};
    if (own && !is_shown(t, &m)) return false;
    put_text(&l, XPL_STR("op_type="), xpl_hlo_str(&m, HLO_META_OP_TYPE));
    put_text(&l, XPL_STR("op_name="), xpl_hlo_str(&m, HLO_META_OP_NAME));
    put_text(&l, XPL_STR("source_file="), xpl_hlo_str(&m, HLO_META_SOURCE_FILE));
    put_number(&l, XPL_STR("source_line="), xpl_hlo_int(&m, HLO_META_SOURCE_LINE));
    put_number(&l, XPL_STR("source_end_line="), xpl_hlo_int(&m, HLO_META_SOURCE_END_LINE));
    put_number(&l, XPL_STR("source_column="), xpl_hlo_int(&m, HLO_META_SOURCE_COLUMN));
    put_number(&l, XPL_STR("source_end_column="), xpl_hlo_int(&m, HLO_META_SOURCE_END_COLUMN));
    put_profile_types(&l, &m);
    put_text(&l, XPL_STR("deduplicated_name="), xpl_hlo_str(&m, HLO_META_DEDUPLICATED_NAME));
    put_raw_text(&l, XPL_STR("scheduling_name="), xpl_hlo_str(&m, HLO_META_SCHEDULING_NAME));
    put_number(&l, XPL_STR("stack_frame_id="), frame_id(t, &m, own));
    if (xpl_hlo_has(&m, HLO_META_PAYLOAD)) {
        txt_read(t, xpl_hlo_bytes(&m, HLO_META_PAYLOAD), &payload);
        put_text(&l, XPL_STR("metadata_payload="), xpl_hlo_str(&payload, 1));
    }
    if (!l.open) TXT(t, "{");
    TXT(t, "}");
    return true;
}
