// SPDX-License-Identifier: Apache-2.0
// Names of a plane's events, and texts of statistics, each interned once.
#include <string.h>

#include "analysis/trace/derived/impl.h"
#include "analysis/xplane/tf_op.h"
#include "base/hash.h"
#include "base/text/utf8.h"

static xpl_str_t name_of(const struct xpl_dplane *p, uint32_t md) {
    const uint32_t n = p->plane->n_event_md;
    return md < n ? p->plane->event_md[md].name : p->md.v[md - n].name;
}

// The slot of a name: its metadata, or 0 where it is new.  Equal hashes of other names are
// skipped.  NULL: out of memory.
static uint64_t *slot_of(struct xpl_dplane *p, xpl_str_t name) {
    uint64_t h = xpl_hash_str(xpl_hash_seed(), name);
    for (bool is_new;; h++) {
        uint64_t *const slot = xpl_map_put(&p->temp, &p->md_by_name, h, name.len, &is_new);
        if (!slot || is_new || *slot == 0 || xpl_str_eq(name_of(p, (uint32_t)*slot), name))
            return slot;
    }
}

// Of several entries with one name the first counts; nameless ones are not found by name.
static bool read_names(struct xpl_dplane *p) {
    p->names_read = true;
    for (uint32_t i = 1; i < p->plane->n_event_md; i++) {
        if (p->plane->event_md[i].name.len == 0) continue;
        uint64_t *const slot = slot_of(p, p->plane->event_md[i].name);
        if (!slot) return false;
        if (*slot == 0) *slot = i;
    }
    return true;
}

static uint32_t add_md(struct xpl_dplane *p, xpl_str_t name, xpl_str_t display) {
    struct xpl_derived_md *const md = xpl_vec_push(&p->temp, &p->md);
    if (!md || p->md.n > UINT32_MAX - 1 - p->plane->n_event_md) return 0;
    *md = (struct xpl_derived_md){.name = name, .display_name = display};
    md->type = xpl_event_type_find(name);
    return p->plane->n_event_md + (uint32_t)(p->md.n - 1);
}

uint32_t xpl_dplane_md(struct xpl_dplane *p, xpl_str_t name) {
    xpl_str_t copy;
    if (!p->names_read && !read_names(p)) return 0;
    uint64_t *const slot = slot_of(p, name);
    if (!slot) return 0;
    if (*slot == 0 && xpl_arena_str(&p->temp, name, &copy))
        *slot = add_md(p, copy, (xpl_str_t){"", 0});
    return (uint32_t)*slot;
}

uint32_t xpl_dplane_md_of_text(struct xpl_dplane *p, uint32_t text) {
    while (p->md_of_text.n <= text) {
        uint32_t *const slot = xpl_vec_push(&p->temp, &p->md_of_text);
        if (!slot) return 0;
        *slot = 0;
    }
    if (p->md_of_text.v[text] == 0)
        p->md_of_text.v[text] = xpl_dplane_md(p, xpl_intern_get(p->texts, (xpl_strid_t){text}));
    return p->md_of_text.v[text];
}

uint32_t xpl_dplane_nameless_md(struct xpl_dplane *p, xpl_str_t display) {
    return add_md(p, (xpl_str_t){"", 0}, display);
}

bool xpl_dplane_set_display(struct xpl_dplane *p, uint32_t md, xpl_str_t display) {
    const uint32_t n = p->plane->n_event_md;
    if (md >= n) {
        struct xpl_derived_md *const m = &p->md.v[md - n];
        return m->display_name.len || xpl_arena_str(&p->temp, display, &m->display_name);
    }
    if (p->plane->event_md[md].display_name.len) return true;
    if (!p->display) p->display = xpl_arena_zalloc(&p->temp, n * sizeof *p->display);
    if (!p->display) return false;
    return p->display[md].len || xpl_arena_str(&p->temp, display, &p->display[md]);
}

// ---- texts ----

// Any number of events may have one text, each with other programs: longer ones are cut.
enum { LONGEST_TEXT = 16 << 10 };

static bool intern(struct xpl_dplane *p, xpl_str_t s, uint32_t *ret) {
    xpl_strid_t id;
    if (!p->texts) p->texts = xpl_intern_new(&p->temp, xpl_hash_seed());
    if (!p->texts || !xpl_intern_put(p->texts, xpl_utf8_cut(s, LONGEST_TEXT), &id)) return false;
    *ret = id.v;
    return true;
}

bool xpl_dplane_text(struct xpl_dplane *p, const struct xpl_stat *s, uint32_t *ret) {
    if (s->kind != XPL_VALUE_REF) return intern(p, xpl_stat_str(s), ret);
    const uint32_t md = xpl_plane_stat_md(p->plane, s->u);
    if (!p->text_of_md) {
        p->text_of_md = xpl_arena_zalloc(&p->temp, p->plane->n_stat_md * sizeof *p->text_of_md);
        if (!p->text_of_md) return false;
    }
    if (p->text_of_md[md] == 0) {
        if (!intern(p, s->str, ret)) return false;
        p->text_of_md[md] = *ret + 1;
    }
    *ret = p->text_of_md[md] - 1;
    return true;
}

// Metadata of the name scopes, behind one another in p->lists.
static bool add_scopes(struct xpl_dplane *p, xpl_str_t name, struct xpl_dop *op) {
    xpl_str_t scope;
    op->first_scope = (uint32_t)p->lists.n;
    for (size_t pos = 0;
         op->n_scopes < XPL_DERIVED_LEVELS && xpl_tf_op_next_scope(name, &pos, &scope);) {
        const uint32_t md = xpl_dplane_md(p, scope);
        uint32_t *const slot = md ? xpl_vec_push(&p->temp, &p->lists) : NULL;
        if (!slot) return false;
        *slot = md;
        op->n_scopes++;
    }
    return true;
}

static bool new_op(struct xpl_dplane *p, uint32_t text, struct xpl_dop *op) {
    const xpl_str_t full = xpl_intern_get(p->texts, (xpl_strid_t){text});
    const struct xpl_tf_op parsed = xpl_tf_op_parse(full);
    xpl_str_t display;
    if ((parsed.category == XPL_TF_OP_TENSORFLOW || parsed.category == XPL_TF_OP_JAX) &&
        !add_scopes(p, parsed.name, op))
        return false;
    op->md = xpl_dplane_md(p, full);
    return op->md && xpl_tf_op_event_name(&p->temp, &parsed, &display) &&
           xpl_dplane_set_display(p, op->md, display);
}

bool xpl_dplane_op(struct xpl_dplane *p, uint32_t text, uint32_t *ret) {
    while (p->op_of_text.n <= text) {
        uint32_t *const slot = xpl_vec_push(&p->temp, &p->op_of_text);
        if (!slot) return false;
        *slot = 0;
    }
    if (p->op_of_text.v[text] == 0) {
        struct xpl_dop op = {0};
        if (!new_op(p, text, &op)) return false;
        struct xpl_dop *const slot = xpl_vec_push(&p->temp, &p->ops);
        if (!slot) return false;
        *slot = op;
        p->op_of_text.v[text] = (uint32_t)p->ops.n;
    }
    *ret = p->op_of_text.v[text] - 1;
    return true;
}

uint32_t xpl_dplane_extra(struct xpl_dplane *p, enum xpl_extra_kind kind) {
    if (p->extras.n == 0) { // position 0 is none
        struct xpl_extra *const none = xpl_vec_push(&p->temp, &p->extras);
        if (!none) return 0;
        *none = (struct xpl_extra){.kind = XPL_EXTRA_NONE};
    }
    struct xpl_extra *const e = xpl_vec_push(&p->temp, &p->extras);
    if (!e || p->extras.n > UINT32_MAX / 2) return 0;
    *e = (struct xpl_extra){.kind = (uint8_t)kind};
    return (uint32_t)(p->extras.n - 1);
}
