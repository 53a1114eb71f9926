// SPDX-License-Identifier: Apache-2.0
// The host's side of a conversion, and the steps of each kind of hardware.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "tests/hlo_maker.h"
#include "tests/unit/opstats/host_profiles.h"
#include "tests/wire_text.h"

static struct xpl_opstats *convert(const struct xpl_buf *space, bool cpu, struct xpl_exec *exec,
                                   struct xpl_arena *arena) {
    const struct xpl_convert_options opt = {.cpu_as_device = cpu};
    struct xpl_xspace *xs = NULL;
    struct xpl_opstats *s = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, exec, arena, 1 << 28, &s, &err), &err);
    return s;
}

static const struct xpl_op_metrics *find(const struct xpl_op_metrics_db *db, uint64_t module,
                                         const char *name) {
    for (size_t i = 0; i < db->metrics_db.n; i++)
        if (db->metrics_db.v[i].hlo_module_id == module &&
            xpl_str_eq(db->metrics_db.v[i].name, xpl_str_from(name)))
            return &db->metrics_db.v[i];
    return NULL;
}

static uint64_t time_of(const struct xpl_opstats *s, size_t step, int32_t type) {
    const struct xpl_step_info *info = &s->step_db.step_sequence.v[step].step_info_per_core.v[0];
    for (size_t i = 0; i < info->type_ps.n; i++)
        if (info->type_ps.v[i].type == type) return info->type_ps.v[i].ps;
    return 0;
}

static uint64_t category_of(const struct xpl_step_info *info, const char *category) {
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (xpl_str_eq(info->category_ps.v[i].category, xpl_str_from(category)))
            return info->category_ps.v[i].ps;
    return 0;
}

static void check_cpu(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_cpu_profile(3, 0);
    // As XProf sees it: host time only, and no device ops.
    const struct xpl_opstats *s = convert(&space, false, &exec, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    CHECK_EQ(s->step_db.step_sequence.v[1].step_info_per_core.v[0].duration_ps, 900 * MK_NS);
    CHECK_EQ(time_of(s, 1, 10), (200 + 50 + 500) * MK_NS);
    CHECK_EQ(time_of(s, 1, 0), 150 * MK_NS);
    CHECK_EQ(s->device_op_metrics_db.metrics_db.n, 0);
    const struct xpl_op_metrics *m = find(&s->host_op_metrics_db, 0, "a/MatMul");
    CHECK(m);
    CHECK_EQ(m->occurrences, 3);
    CHECK_EQ(m->self_time_ps, 3 * 15 * MK_NS);
    // As a device.
    s = convert(&space, true, &exec, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    CHECK_EQ(time_of(s, 1, 140), (400 + 50 + 15) * MK_NS);
    CHECK_EQ(time_of(s, 1, 10), (750 - 465) * MK_NS);
    CHECK_EQ(s->device_op_metrics_db.compute_32bit_ps, 3 * 465 * MK_NS);
    m = find(&s->device_op_metrics_db, 6, "while");
    CHECK(m);
    CHECK_EQ(m->occurrences, 3);
    CHECK_EQ(m->time_ps, 3 * 400 * MK_NS);
    CHECK_EQ(m->self_time_ps, 3 * 270 * MK_NS);
    m = find(&s->device_op_metrics_db, 6, "dot");
    CHECK(m);
    CHECK_EQ(m->occurrences, 6);
    CHECK_EQ(m->self_time_ps, 3 * 150 * MK_NS);
    CHECK_EQ(m->min_time_ps, 50 * MK_NS);
    m = find(&s->device_op_metrics_db, 0, "a/MatMul");
    CHECK(m);
    CHECK_STR(m->provenance, "a/MatMul:MatMul");
    CHECK_EQ(m->self_time_ps, 3 * 10 * MK_NS);
    CHECK_EQ(s->run_environment.device_core_count, 1);
    CHECK_EQ(s->device_op_metrics_db.total_time_ps, (2000 + 795 - 310) * MK_NS);
    CHECK_EQ(s->device_op_metrics_db.total_op_time_ps, 3 * 465 * MK_NS);
    CHECK_EQ(s->program_id_to_name_map.n, 2); // program 6, and one known only by its name
}

static void check_gpu(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_gpu_profile(7);
    const struct xpl_opstats *s = convert(&space, true, &exec, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 7);
    CHECK_EQ(s->step_db.step_sequence.v[1].step_num, 1);
    CHECK_EQ(time_of(s, 1, 80), 100);
    CHECK_EQ(time_of(s, 1, 140), 250);
    CHECK_EQ(time_of(s, 1, 150), 200);
    CHECK_EQ(time_of(s, 1, 100), 100);
    CHECK_EQ(time_of(s, 1, 130), 50);
    CHECK_EQ(time_of(s, 1, 0), 300);
    CHECK_EQ(s->device_op_metrics_db.compute_16bit_ps, 7 * 200);
    const struct xpl_per_core_step_info *step = &s->step_db.step_sequence.v[1];
    CHECK_EQ(step->device_memory_transfers.n, 3);
    CHECK_EQ(step->device_memory_transfers.v[0].bytes_transferred, 64);
    CHECK_EQ(step->all_reduce_db_per_core.n, 1);
    CHECK_EQ(step->all_reduce_db_per_core.v[0].core_id, 3);
}

static void check_tpu(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_tpu_profile(7, 2);
    const struct xpl_opstats *s = convert(&space, true, &exec, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 7);
    const struct xpl_per_core_step_info *step = &s->step_db.step_sequence.v[3];
    CHECK_EQ(step->step_info_per_core.n, 2);
    CHECK_EQ(step->step_info_per_core.v[1].core_id, 5);
    CHECK_EQ(step->step_info_per_core.v[1].duration_ps, 1000);
    // The ops have no key and are not counted, so all is idle; the host spent 100 of it on input.
    CHECK_EQ(category_of(&step->step_info_per_core.v[0], "infeed"), 100);
    CHECK_EQ(category_of(&step->step_info_per_core.v[0], "IDLE"), 900);
    CHECK_EQ(step->all_reduce_db_per_core.n, 2);
    CHECK_EQ(step->all_reduce_db_per_core.v[1].all_reduce_info.n, 2);
    CHECK(s->has_hlo_metrics_db_complete_steps_only);
}

// Long lines are cut into pieces where there are threads: that shows nowhere.
static void check_pieces(void) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *pool = xpl_exec_pool_new(4);
    CHECK(pool);
    struct xpl_buf space = mk_cpu_profile(2500, 40), bytes[2];
    for (int k = 0; k < 2; k++) {
        struct xpl_arena arena = xpl_arena_of(1 << 29);
        struct xpl_error err = {0};
        xpl_buf_init(&bytes[k], 1 << 28);
        const struct xpl_opstats *s =
            convert(&space, true, k ? xpl_exec_pool_get(pool) : &serial, &arena);
        CHECK_EQ(s->step_db.step_sequence.n, 2500);
        CHECK_OK(xpl_opstats_encode(s, &bytes[k], &err), &err);
        xpl_arena_fini(&arena);
    }
    CHECK_EQ(bytes[0].n, bytes[1].n);
    CHECK_BYTES(bytes[0].p, bytes[0].n, bytes[1].p, bytes[0].n);
    xpl_buf_fini(&bytes[0]);
    xpl_buf_fini(&bytes[1]);
    xpl_buf_fini(&space);
    xpl_exec_pool_free(pool);
}

// The program with id 0 is one like others: its collectives are none of the step's computing.
static void check_program_0(void) {
    struct xpl_arena arena = xpl_arena_of(1 << 28);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf space = mk_open(), python = mk_line(1, "python"),
                   worker = mk_line(2, "tf_XLAEigen/7"),
                   module = wt_message("1:\"jit_step\" 4:{} 6:1"),
                   computation = wt_message(
                       "1:\"main\" 5:1 6:2 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:11 3:[8]}} "
                       "2:{1:\"all-reduce.2\" 2:\"all-reduce\" 35:2 36:[1] 3:{2:11 3:[8]}}");
    struct mk_plane p, metadata;
    mk_plane_begin(&p, 0, "/host:CPU");
    struct xpl_buf step = mk_event(&p, "step", 0, 900 * MK_NS);
    mk_stat_int(&p, &step, "_r", 1);
    mk_stat_int(&p, &step, "step_num", 1);
    mk_event_end(&python, &step);
    mk_plain(&p, &python, "dispatch", 10 * MK_NS, 50 * MK_NS);
    struct xpl_buf op = mk_event(&p, "all-reduce.2", 100 * MK_NS, 500 * MK_NS);
    mk_stat_ref(&p, &op, "hlo_op", "all-reduce.2");
    mk_stat_ref(&p, &op, "hlo_module", "jit_step");
    mk_stat_int(&p, &op, "program_id", 0);
    mk_event_end(&worker, &op);
    mk_line_end(&p, &python);
    mk_line_end(&p, &worker);
    mk_plane_end(&p, &space);
    metadata = mk_metadata_plane();
    mk_close(&module, 3, &computation);
    mk_named_program(&metadata.body, 0, "jit_step(0)", &module);
    mk_plane_end(&metadata, &space);
    const struct xpl_opstats *const s = convert(&space, true, &exec, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 1);
    CHECK_EQ(time_of(s, 0, 100), 500 * MK_NS);
    xpl_arena_fini(&arena);
    xpl_buf_fini(&space);
}

int main(void) {
    check_program_0();
    check_cpu();
    check_gpu();
    check_tpu();
    check_pieces();
    return 0;
}
