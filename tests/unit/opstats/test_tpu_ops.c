// SPDX-License-Identifier: Apache-2.0
// Building op metrics from TPU op events: which events are one op, and what each run adds.
#include "analysis/opstats/device/duty.h"
#include "analysis/opstats/device/tpu_ops.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/processor_time.h"
#include "tests/unit/opstats/device_profiles.h"

struct profile {
    struct xpl_arena arena;
    struct xpl_buf bytes;
    struct xpl_xspace *xs;
    struct xpl_tpu_plane tp;
};
static struct mk_plane begin(void) {
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    mk_tpu_ops(&p);
    return p;
}
static void end(struct profile *f, struct mk_plane *p, struct xpl_buf *line) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    mk_line_end(p, line);
    f->bytes = mk_open();
    mk_plane_end(p, &f->bytes);
    xpl_arena_init(&f->arena, (size_t)1 << 29);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){f->bytes.p, f->bytes.n}, &f->arena, &exec, &f->xs, &err),
             &err);
    CHECK(xpl_tpu_plane_init(&f->tp, &f->xs->planes[0], &f->arena));
}
static void drop(struct profile *f) {
    xpl_arena_fini(&f->arena);
    xpl_buf_fini(&f->bytes);
}

// All events of the plane's line, as if none enclosed another.
static struct xpl_op_metrics_db build(struct profile *f, enum xpl_tpu_ops_kind kind) {
    struct xpl_tpu_ops ops;
    struct xpl_op_metrics_db db = {0};
    struct xpl_event_cursor cursor;
    struct xpl_event ev;
    xpl_tpu_ops_begin(&ops, &f->tp, kind, &f->arena);
    xpl_events_begin(&cursor, &f->xs->planes[0].lines[0]);
    while (xpl_events_next(&cursor, &ev) == XPL_WIRE_FIELD)
        CHECK(xpl_tpu_ops_add(&ops, &ev, (uint64_t)ev.duration_ps, 1, NULL));
    CHECK(xpl_tpu_ops_finish(&ops, &f->arena, &db));
    return db;
}

static void runs_add_up(void) {
    struct mk_plane p = begin();
    struct xpl_buf line = mk_line(1, "XLA Ops");
    mk_op_run(&line, MK_FUSION, 0, 100);
    struct xpl_buf ev = mk_op_event(MK_FUSION, 200, 50);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "min_duration_ps", 4, 7);
    mk_stat_number(&p, &ev, MK_EVENT_STATS, "dma_stall_duration_ps", 4, 9);
    mk_stat_double(&p, &ev, MK_EVENT_STATS, "vdd_energy_j", 0.5);
    mk_stat_double(&p, &ev, MK_EVENT_STATS, "Time Scale Multiplier", 2);
    mk_int(&ev, 5, 3); // num_occurrences
    mk_event_end(&line, &ev);
    mk_op_run(&line, MK_NAMELESS, 300, 5);
    mk_op_run(&line, MK_WHILE, 300, 0);
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    const struct xpl_op_metrics_db db = build(&f, XPL_TPU_OPS_TENSOR);
    CHECK_EQ(db.metrics_db.n, 2);
    const struct xpl_op_metrics *const m = &db.metrics_db.v[0];
    CHECK_EQ(m->occurrences, 4);
    CHECK_EQ(m->time_ps, 150);
    CHECK_EQ(m->self_time_ps, 148);
    CHECK_EQ(m->min_time_ps, 7);
    CHECK_EQ(m->dma_stall_ps, 9);
    CHECK_EQ(m->flops, 4000);
    CHECK_EQ(m->bytes_accessed, 256);
    CHECK_EQ(m->hlo_module_id, 7);
    CHECK(m->has_vdd_energy_j);
    CHECK_REAL(m->vdd_energy_j, 0.5, 0);
    CHECK_EQ(m->core_type, XPL_CORE_TENSOR);
    CHECK(m->normalized_time_ps > 0);
    CHECK_EQ(m->num_cores, 1);
    CHECK_EQ(db.metrics_db.v[1].time_ps, 0);
    CHECK_EQ(db.metrics_db.v[1].occurrences, 1);
}

// Two names of one (program, symbol) are one op, named after the first.
static void keys(void) {
    struct mk_plane p = begin();
    mk_tpu_md(&p, (struct mk_op){.id = 2000, .name = "alias", .program = 7, .symbol = 1});
    mk_tpu_md(&p, (struct mk_op){.id = 2001, .name = "other", .program = 8, .symbol = 1});
    struct xpl_buf line = mk_line(1, "XLA Ops");
    mk_op_run(&line, MK_FUSION, 0, 100);
    mk_op_run(&line, 2000, 0, 100);
    mk_op_run(&line, 2001, 0, 100);
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    const struct xpl_op_metrics_db db = build(&f, XPL_TPU_OPS_TENSOR);
    CHECK_EQ(db.metrics_db.n, 2);
    CHECK_STR(db.metrics_db.v[0].name, "fusion.1");
    CHECK_EQ(db.metrics_db.v[0].time_ps, 200);
    CHECK_EQ(db.metrics_db.v[1].hlo_module_id, 8);
}

// Steps relabel ops that wait, and do not say on which kind of core they ran.
static void kinds(void) {
    struct mk_plane p = begin();
    mk_tpu_md(
        &p, (struct mk_op){
                .id = 2000, .name = "Sync Wait: x", .program = 7, .symbol = 9, .category = "copy"});
    struct xpl_buf line = mk_line(1, "XLA Ops");
    mk_op_run(&line, 2000, 0, 100);
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    struct xpl_op_metrics_db db = build(&f, XPL_TPU_OPS_STEP);
    CHECK_STR(db.metrics_db.v[0].category, "async-done");
    CHECK_EQ(db.metrics_db.v[0].core_type, XPL_CORE_UNKNOWN);
    db = build(&f, XPL_TPU_OPS_SPARSE);
    CHECK_STR(db.metrics_db.v[0].category, "copy");
    CHECK_EQ(db.metrics_db.v[0].core_type, XPL_CORE_SPARSE);
}

// Sources and breakdowns as text and bytes that may be anything.
static void odd_metadata(void) {
    static const struct {
        const char *source, *file;
        int line;
    } sources[] = {
        {"a.py:12", "a.py", 12},  {"a.py", "", 0}, {"a:b:3", "", 0},  {"", "", 0},
        {"f:99999999999", "", 0}, {":5", "", 5},   {"f: 7 ", "f", 7},
    };
    enum { N = sizeof sources / sizeof *sources };
    struct mk_plane p = begin();
    struct xpl_buf line = mk_line(1, "XLA Ops");
    for (int i = 0; i < N; i++) {
        mk_tpu_md(&p, (struct mk_op){.id = 3000 + i,
                                     .name = "op",
                                     .program = 1,
                                     .symbol = i + 1,
                                     .source = sources[i].source});
        mk_op_run(&line, 3000 + i, i, 1);
    }
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    for (int i = 0; i < N; i++) {
        struct xpl_tpu_ops ops;
        struct xpl_op_metrics_db db = {0};
        struct xpl_event_cursor cursor;
        struct xpl_event ev;
        xpl_tpu_ops_begin(&ops, &f.tp, XPL_TPU_OPS_SPARSE, &f.arena);
        xpl_events_begin(&cursor, &f.xs->planes[0].lines[0]);
        for (int k = 0; k <= i; k++)
            CHECK_EQ(xpl_events_next(&cursor, &ev), XPL_WIRE_FIELD);
        CHECK(xpl_tpu_ops_add(&ops, &ev, 1, 0, NULL));
        CHECK(xpl_tpu_ops_finish(&ops, &f.arena, &db));
        const struct xpl_op_metrics *const m = &db.metrics_db.v[0];
        CHECK(m->has_source_info);
        CHECK_EQ(m->source_info.line_number, sources[i].line);
        CHECK_STR(m->source_info.file_name, sources[i].file);
    }
}

static size_t count_below(const struct xpl_op_metrics *m) {
    size_t n = 0;
    for (size_t i = 0; m->children && i < m->children->metrics_db.n; i++)
        n += 1 + count_below(&m->children->metrics_db.v[i]);
    return n;
}

// An op that claims to be both of its children: the tree ends.
static void children_without_end(void) {
    struct mk_plane p = begin();
    struct xpl_buf md = mk_open(), entry = mk_open(), line = mk_line(1, "XLA Ops");
    mk_int(&md, 1, 2000);
    mk_text(&md, 2, "twins");
    mk_stat_number(&p, &md, MK_MD_STATS, "program_id", 4, 7);
    mk_stat_number(&p, &md, MK_MD_STATS, "symbol_id", 4, 1);
    mk_int(&md, 6, 2000);
    mk_int(&md, 6, 2000);
    mk_int(&entry, 1, 2000);
    mk_close(&entry, 2, &md);
    mk_close(&p.body, 4, &entry);
    mk_op_run(&line, 2000, 0, 100);
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    const struct xpl_op_metrics_db db = build(&f, XPL_TPU_OPS_TENSOR);
    CHECK_EQ(db.metrics_db.n, 1);
    CHECK_EQ(count_below(&db.metrics_db.v[0]), 65536);
}

// Ops with long metadata: one is the child of many, the other runs often.  Each is read once.
static void long_metadata(void) {
    enum { OPS = 20000, LONG = 2000, RUN, PARENTS, JUNK = 1 << 19 };
    struct mk_plane p = begin();
    struct xpl_buf line = mk_line(1, "XLA Ops");
    for (int64_t id = LONG; id <= RUN; id++) {
        struct xpl_buf md = mk_open(), entry = mk_open();
        mk_int(&md, 1, id);
        mk_text(&md, 2, "long");
        mk_stat_number(&p, &md, MK_MD_STATS, "program_id", 4, 7);
        mk_stat_number(&p, &md, MK_MD_STATS, "symbol_id", 4, (uint64_t)id);
        mk_stat_text(&p, &md, MK_MD_STATS, "hlo_category", 5, "custom-call", 11);
        for (int i = 0; i < JUNK; i++)
            mk_int(&md, 9, 1);
        mk_stat_number(&p, &md, MK_MD_STATS, "uses_ici", 4, id == RUN);
        mk_int(&entry, 1, id);
        mk_close(&entry, 2, &md);
        mk_close(&p.body, 4, &entry);
    }
    for (int64_t i = 0; i < OPS; i++) {
        mk_tpu_md(&p, (struct mk_op){.id = PARENTS + i,
                                     .name = "parent",
                                     .program = 7,
                                     .symbol = PARENTS + i,
                                     .child = LONG});
        mk_op_run(&line, PARENTS + i, 2 * i, 1);
        mk_op_run(&line, RUN, 2 * i + 1, 1);
    }
    XPL_AUTO(drop) struct profile f;
    end(&f, &p, &line);
    const double started = processor_s();
    const struct xpl_op_metrics_db db = build(&f, XPL_TPU_OPS_TENSOR);
    CHECK_EQ(db.metrics_db.n, OPS + 1);
    const struct xpl_op_metrics_db *const children = db.metrics_db.v[OPS].children;
    CHECK(children && children->metrics_db.n == 1);
    CHECK_EQ(children->metrics_db.v[0].occurrences, 1);
    CHECK_STR(children->metrics_db.v[0].category, "custom-call");
    struct xpl_event_cursor cursor;
    struct xpl_event ev;
    xpl_events_begin(&cursor, &f.xs->planes[0].lines[0]);
    while (xpl_events_next(&cursor, &ev) == XPL_WIRE_FIELD) {
        struct xpl_duty_op op;
        xpl_duty_classify(&f.tp, &f.xs->planes[0].lines[0], &ev, false, &op);
        CHECK(op.confident);
    }
    CHECK(is_within(started, 2));
}

int main(void) {
    runs_add_up();
    children_without_end();
    keys();
    kinds();
    odd_metadata();
    long_metadata();
    return 0;
}
