// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/text/text.h"

#include <assert.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/impl.h"
#include "base/cleanup.h"
#include "base/vec.h"

static const struct hlo_form forms[XPL_HLO_N_TEXT_FORMS] = {
    [XPL_HLO_TEXT_SHORT] = {.backend_config = true, .feed_config = true},
    [XPL_HLO_TEXT_LONG] = {.percent = true,
                           .program_shape = true,
                           .operand_numbers = true,
                           .backend_config = true,
                           .feed_config = true,
                           .control = true,
                           .large_constants = true},
    [XPL_HLO_TEXT_LONG_METADATA] = {.percent = true,
                                    .program_shape = true,
                                    .operand_numbers = true,
                                    .backend_config = true,
                                    .feed_config = true,
                                    .metadata = true,
                                    .control = true,
                                    .large_constants = true},
    [XPL_HLO_TEXT_EXPRESSION] = {.percent = true,
                                 .operand_shapes = true,
                                 .operand_numbers = true,
                                 .control = true},
};

// Only attributes, as in the nodes of graphs; the metadata is that of shardings.
static const struct hlo_form attributes_form = {
    .percent = true, .metadata = true, .control = true, .no_calls = true};

static const struct hlo_form literal_form = {.lines = true};

static struct hlo_text begin_text(const struct xpl_hlo_module *m, enum xpl_hlo_text_form form,
                                  struct xpl_hlo_text_cache *cache, struct xpl_buf *out) {
    return (struct hlo_text){
        .b = out, .end = SIZE_MAX, .form = &forms[form], .m = m, .cache = cache};
}

static xpl_status_t outcome(const struct hlo_text *t, struct xpl_error *err) {
    if (!t->failed) return XPL_OK;
    if (t->too_deep)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "HLO module nested deeper than %d messages",
                         XPL_HLO_TEXT_DEPTH);
    if (t->cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "HLO text cancelled");
    if (t->malformed) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "malformed HLO module");
    XPL_RETURN_OOM(err, "HLO text");
}

// ---- computations ----

struct parameter {
    int64_t number;
    uint32_t index;
};

static int by_number(const void *pa, const void *pb) {
    const struct parameter *const a = pa, *const b = pb;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int64_t parameter_number(const struct hlo_instruction *i) {
    struct xpl_hlo_message in;
    if (!i->has_more) return i->parameter;
    xpl_hlo_message_read((xpl_bytes_t){i->p, i->len}, &in);
    return xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER);
}

// (p: f32[8], q: f32[8]) -> f32[8]
static void put_signature(struct hlo_text *t, const struct hlo_computation *c,
                          struct xpl_arena *scratch) {
    XPL_VEC(struct parameter) v = {0};
    const struct hlo_instruction *const list = t->m->instructions;
    bool sorted = true;
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        if (list[i].opcode != XPL_HLO_PARAMETER) continue;
        struct parameter *const slot = xpl_vec_push(scratch, &v);
        if (!slot) {
            t->no_memory = t->failed = t->cut = true;
            return;
        }
        *slot = (struct parameter){parameter_number(&list[i]), i};
        sorted &= v.n < 2 || by_number(&slot[-1], slot) < 0;
    }
    if (!sorted) xpl_sort(v.v, v.n, sizeof *v.v, by_number);
    TXT(t, "(");
    for (size_t i = 0; i < v.n && !txt_stopped(t); i++) {
        if (i) TXT(t, ", ");
        txt_str(t, list[v.v[i].index].name);
        TXT(t, ": ");
        txt_shape_without_layout(t, xpl_hlo_shape_of(&list[v.v[i].index]));
    }
    TXT(t, ") -> ");
    txt_shape_without_layout(t, xpl_hlo_shape_of(&list[c->root]));
    TXT(t, " ");
}

static void put_computation_tail(struct hlo_text *t, const struct hlo_computation *c) {
    if (!c->has_more) return;
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){c->p, c->len});
    struct xpl_field f;
    xpl_str_t thread = {"", 0}, config = {"", 0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == HLO_COMPUTATION_THREAD && f.type == XPL_WIRE_LEN) thread = xpl_wire_str(&f);
        if (f.num == HLO_COMPUTATION_BACKEND_CONFIG && f.type == XPL_WIRE_LEN)
            config = xpl_wire_str(&f);
    }
    if (thread.len && !xpl_str_eq(thread, XPL_STR("main"))) {
        TXT(t, ", execution_thread=\"");
        txt_str(t, thread);
        TXT(t, "\"");
    }
    if (t->form->backend_config && config.len) txt_backend_config(t, config);
}

static void put_computation(struct hlo_text *t, uint32_t index, const struct xpl_hlo_ints *schedule,
                            struct xpl_arena *scratch) {
    const struct hlo_computation *const c = &t->m->computations[index];
    uint32_t n = 0;
    const uint32_t *const order = txt_instruction_order(t, c, schedule, scratch, &n);
    if (!order) {
        t->no_memory = t->failed = t->cut = true;
        return;
    }
    if (index == t->m->entry) TXT(t, "ENTRY ");
    txt_name(t, c->name);
    TXT(t, " ");
    if (t->form->program_shape) put_signature(t, c, scratch);
    TXT(t, "{\n");
    for (uint32_t i = 0; i < n && !txt_stopped(t); i++) {
        txt_tick(t);
        TXT(t, "  ");
        if (order[i] == c->root) TXT(t, "ROOT ");
        txt_instruction(t, order[i]);
        TXT(t, "\n");
    }
    TXT(t, "}");
    put_computation_tail(t, c);
    TXT(t, "\n\n");
}

// ---- modules ----

// By computation: the ids of its sequence, if the schedule has one that is not empty.
static struct xpl_hlo_ints **read_schedules(struct hlo_text *t, struct xpl_arena *scratch) {
    const struct xpl_hlo_module *const m = t->m;
    struct xpl_hlo_ints **const v = xpl_arena_zalloc(scratch, m->n_computations * sizeof(void *));
    if (!v) return NULL;
    struct xpl_hlo_message module, entry, sequence;
    txt_read(t, m->bytes, &module);
    txt_read(t, xpl_hlo_bytes(&module, HLO_MODULE_SCHEDULE), &entry);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&entry, 1);
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one);) {
        struct xpl_hlo_message at;
        txt_read(t, one, &at);
        const uint64_t *const c =
            xpl_map_get(&m->computation_ids, (uint64_t)xpl_hlo_int(&at, 1), 0);
        txt_read(t, xpl_hlo_bytes(&at, 2), &sequence);
        if (!c || !xpl_hlo_ints_count(&sequence, 1)) continue;
        if (!v[*c]) v[*c] = xpl_arena_alloc(scratch, sizeof **v);
        if (!v[*c]) return NULL;
        *v[*c] = xpl_hlo_ints_begin(&sequence, 1);
    }
    return v;
}

// Computations that async ops show as a single instruction have no separate text.
static bool *find_hidden(struct hlo_text *t, struct xpl_arena *scratch) {
    const struct xpl_hlo_module *const m = t->m;
    bool *const hidden = xpl_arena_zalloc(scratch, m->n_computations);
    for (size_t i = 0; hidden && i < m->calls.n; i++) {
        const uint32_t opcode = m->instructions[m->calls.v[i].instruction].opcode;
        const bool async = opcode == XPL_HLO_ASYNC_START || opcode == XPL_HLO_ASYNC_UPDATE ||
                           opcode == XPL_HLO_ASYNC_DONE;
        if (async && txt_wrapped(m, m->calls.v[i].computation) != UINT32_MAX)
            hidden[m->calls.v[i].computation] = true;
    }
    return hidden;
}

xpl_status_t xpl_hlo_text_module(const struct xpl_hlo_module *m, enum xpl_hlo_text_form form,
                                 struct xpl_exec *exec, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) {
    if (!m->valid) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "XLA would refuse this HLO module");
    assert(m->edges);
    struct xpl_hlo_text_cache *const cache = xpl_hlo_text_cache_new(scratch);
    if (!cache) XPL_RETURN_OOM(err, "HLO text");
    struct hlo_text t = begin_text(m, form, cache, out);
    t.exec = exec;
    txt_header(&t, scratch);
    uint32_t n = 0;
    const uint32_t *const order = txt_computation_order(m, scratch, &n);
    struct xpl_hlo_ints *const *const schedules = read_schedules(&t, scratch);
    const bool *const hidden = find_hidden(&t, scratch);
    if (!order || !schedules || !hidden) XPL_RETURN_OOM(err, "HLO text");
    for (uint32_t i = 0; i < n && !txt_stopped(&t); i++)
        if (!hidden[order[i]]) put_computation(&t, order[i], schedules[order[i]], scratch);
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_instruction(const struct xpl_hlo_module *m, uint32_t index,
                                      enum xpl_hlo_text_form form, struct xpl_hlo_text_cache *cache,
                                      struct xpl_buf *out, struct xpl_error *err) {
    struct hlo_text t = begin_text(m, form, cache, out);
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_instruction(&t, index);
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_attributes(const struct xpl_hlo_module *m, uint32_t index,
                                     struct xpl_hlo_text_cache *cache, struct xpl_buf *out,
                                     struct xpl_hlo_text_parts *ret_parts, struct xpl_error *err) {
    struct hlo_text t = begin_text(m, XPL_HLO_TEXT_LONG, cache, out);
    struct xpl_hlo_message space;
    const size_t begin_at = out->n;
    ret_parts->n = 0;
    t.parts = ret_parts;
    t.form = &attributes_form;
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_attributes(&t, index, txt_message_of(&t, index, &space));
    for (unsigned k = 0; k < ret_parts->n; k++)
        ret_parts->at[k] -= begin_at;
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_config(const struct xpl_hlo_module *m, uint32_t index,
                                 struct xpl_buf *out, struct xpl_error *err) {
    struct hlo_text t = begin_text(m, XPL_HLO_TEXT_LONG, NULL, out);
    const struct hlo_instruction *const i = &m->instructions[index];
    struct xpl_hlo_message in;
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_read(&t, (xpl_bytes_t){i->p, i->len}, &in);
    txt_plain_config(&t, txt_find_config(&t, &in));
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_shape(xpl_bytes_t shape, struct xpl_hlo_text_cache *cache,
                                struct xpl_buf *out, struct xpl_error *err) {
    struct hlo_text t = begin_text(NULL, XPL_HLO_TEXT_SHORT, cache, out);
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_shape(&t, shape);
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_plain_shape(xpl_bytes_t shape, struct xpl_hlo_text_cache *cache,
                                      struct xpl_buf *out, struct xpl_error *err) {
    struct hlo_text t = begin_text(NULL, XPL_HLO_TEXT_SHORT, cache, out);
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_shape_without_layout(&t, shape);
    return outcome(&t, err);
}

xpl_status_t xpl_hlo_text_literal(xpl_bytes_t literal, struct xpl_hlo_text_cache *cache,
                                  struct xpl_buf *out, struct xpl_error *err) {
    struct hlo_text t = begin_text(NULL, XPL_HLO_TEXT_LONG, cache, out);
    t.form = &literal_form;
    t.end = out->n + XPL_HLO_TEXT_CUT;
    txt_literal(&t, literal, true);
    return outcome(&t, err);
}

bool xpl_hlo_expression(const struct xpl_hlo_instruction *in, struct xpl_hlo_text_cache **cache,
                        struct xpl_arena *a, xpl_str_t *ret) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(XPL_HLO_TEXT_CUT);
    if (!*cache) *cache = xpl_hlo_text_cache_new(a);
    if (!*cache) return false;
    const xpl_status_t st = xpl_hlo_text_instruction(in->module, in->index, XPL_HLO_TEXT_EXPRESSION,
                                                     *cache, &out, NULL);
    if (st == XPL_RESOURCE_EXHAUSTED) return false;
    *ret = (xpl_str_t){"", 0};
    return st != XPL_OK || xpl_arena_str(a, (xpl_str_t){(const char *)out.p, out.n}, ret);
}
