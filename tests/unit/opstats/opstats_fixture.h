// SPDX-License-Identifier: Apache-2.0
// Small OpStats by hand, for tests of tools.
#ifndef XPL_TESTS_UNIT_OPSTATS_OPSTATS_FIXTURE_H_
#define XPL_TESTS_UNIT_OPSTATS_OPSTATS_FIXTURE_H_

#include <string.h>

#include "analysis/opstats/opstats.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"
#include "tests/render.h"

static const uint64_t kMs = 1000000000; // ps

// What xpl_vec_push returned, which must not be NULL, all zeros; `size` is the element's.
static inline void *zeroed(void *slot, size_t size) {
    CHECK(slot);
    return memset(slot, 0, size);
}

static inline struct xpl_step_info *add_core(struct xpl_arena *a, struct xpl_per_core_step_info *s,
                                             uint32_t core, uint64_t duration_ps,
                                             enum xpl_breakdown breakdown) {
    struct xpl_step_info *const info =
        zeroed(xpl_vec_push(a, &s->step_info_per_core), sizeof *info);
    info->core_id = core;
    info->step_num = s->step_num;
    info->duration_ps = duration_ps;
    info->breakdown = breakdown;
    return info;
}

static inline struct xpl_per_core_step_info *add_step(struct xpl_arena *a, struct xpl_opstats *s,
                                                      uint32_t number) {
    struct xpl_per_core_step_info *const step =
        zeroed(xpl_vec_push(a, &s->step_db.step_sequence), sizeof *step);
    step->step_num = number;
    return step;
}

static inline void add_type(struct xpl_arena *a, struct xpl_step_info *info, int32_t type,
                            uint64_t ps) {
    struct xpl_type_ps *const added = xpl_vec_push(a, &info->type_ps);
    CHECK(added);
    *added = (struct xpl_type_ps){type, ps};
}

static inline void add_category(struct xpl_arena *a, struct xpl_step_info *info, const char *name,
                                uint64_t ps) {
    struct xpl_category_ps *const added = xpl_vec_push(a, &info->category_ps);
    CHECK(added);
    *added = (struct xpl_category_ps){xpl_str_from(name), ps};
}

static inline struct xpl_op_metrics *add_op(struct xpl_arena *a, struct xpl_op_metrics_db *db,
                                            const char *name, const char *category,
                                            uint64_t self_ps) {
    struct xpl_op_metrics *const m = zeroed(xpl_vec_push(a, &db->metrics_db), sizeof *m);
    m->name = xpl_str_from(name);
    m->category = xpl_str_from(category);
    m->occurrences = 2;
    m->time_ps = m->self_time_ps = self_ps;
    db->total_op_time_ps += self_ps;
    db->total_time_ps += self_ps;
    return m;
}

static inline void add_text(struct xpl_arena *a, struct xpl_str_list *list, const char *text) {
    xpl_str_t *const added = xpl_vec_push(a, list);
    CHECK(added);
    *added = xpl_str_from(text);
}

static inline void add_core_details(struct xpl_arena *a, struct xpl_opstats *s,
                                    struct xpl_core_details details) {
    struct xpl_core_details *const added = xpl_vec_push(a, &s->core_id_to_details);
    CHECK(added);
    *added = details;
}

static inline struct xpl_kernel_report *add_kernel(struct xpl_arena *a, struct xpl_opstats *s) {
    struct xpl_kernel_report *const k = xpl_vec_push(a, &s->kernel_reports);
    return zeroed(k, sizeof *k);
}

// Of one core, with one of all zeros.
static inline struct xpl_all_reduce_info *
add_all_reduce(struct xpl_arena *a, struct xpl_per_core_step_info *step, uint32_t core) {
    struct xpl_all_reduce_db *const db =
        zeroed(xpl_vec_push(a, &step->all_reduce_db_per_core), sizeof *db);
    db->core_id = core;
    struct xpl_all_reduce_info *const info =
        zeroed(xpl_vec_push(a, &db->all_reduce_info), sizeof *info);
    return info;
}

// The answer, NUL-terminated, in a buffer that the next call overwrites.
static inline const char *render(const char *tool, const struct xpl_opstats *s,
                                 struct xpl_buf *out) {
    struct xpl_error err = {0};
    out->n = 0;
    CHECK_OK(render_op_stats(named_tool(tool), s, NULL, 8 << 20, out, &err), &err);
    xpl_buf_putc(out, 0);
    CHECK(!out->failed);
    return (const char *)out->p;
}

#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        const char *const text_ = (text);                                                          \
        if (!strstr(text_, (part))) fprintf(stderr, "%s\nlacks %s\n", text_, (part));              \
        CHECK(strstr(text_, (part)));                                                              \
    } while (0)
#define CHECK_LACKS(text, part) CHECK(!strstr((text), (part)))

#endif
