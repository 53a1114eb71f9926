// SPDX-License-Identifier: Apache-2.0
// Profiles with readings of hardware counters.
#ifndef XPL_TESTS_COUNTERS_FIXTURE_H_
#define XPL_TESTS_COUNTERS_FIXTURE_H_

#include "tests/xspace_maker.h"

// Ids of counters of a TPU v6 Lite: cycles, matrix units both busy, scalar instructions, and beats
// that were written to memory.
enum { CT_UNNAMED = 77 };
static const int64_t kCtCycles = 3257466888, kCtBusy = 3257467416, kCtScalar = 3257466968,
                     kCtWritten = 3019980824;

static inline void ct_stat_double(struct mk_plane *p, struct xpl_buf *ev, const char *name,
                                  double v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    xpl_buf_putc(&s, 2 << 3 | 1);
    xpl_buf_put(&s, &v, sizeof v);
    mk_close(ev, 4, &s);
}

static inline void ct_plane_text(struct mk_plane *p, const char *name, const char *v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_text(&s, 5, v);
    mk_close(&p->body, 6, &s);
}
static inline void ct_plane_int(struct mk_plane *p, const char *name, int64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, 4, v);
    mk_close(&p->body, 6, &s);
}

static inline void ct_read(struct mk_plane *p, struct xpl_buf *line, const char *name, int64_t id,
                           int64_t value) {
    struct xpl_buf ev = mk_event(p, name, 0, 0);
    mk_stat_int(p, &ev, "counter_value", value);
    if (id) mk_stat_int(p, &ev, "performance_counter_id", id);
    mk_stat_str(p, &ev, "performance_counter_description", "what it counts");
    mk_stat_ref(p, &ev, "performance_counter_sets", "a set");
    mk_event_end(line, &ev);
}

// A TPU with two samples, of which the second has a fraction, and one without.
static inline struct xpl_buf counters_fixture(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    ct_plane_text(&p, "device_type_string", "TPU v6 Lite");
    ct_plane_int(&p, "device_id", 3);
    ct_plane_int(&p, "global_chip_id", 9);
    struct xpl_buf line = mk_line(42, "jit_f(1)");
    ct_read(&p, &line, "CYCLES", kCtCycles, 1750000);
    ct_read(&p, &line, "Busy_2", kCtBusy, 437500);
    ct_read(&p, &line, "Scalar", kCtScalar, 7);
    ct_read(&p, &line, "Written", kCtWritten, 1000);
    mk_line_end(&p, &line);
    line = mk_line(43, "jit_g(2)");
    struct xpl_buf ev = mk_event(&p, "Fraction", 0, 5000000);
    ct_stat_double(&p, &ev, "counter_value", 2.5);
    mk_stat_int(&p, &ev, "performance_counter_id", kCtScalar);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/device:TPU:1");
    ct_plane_text(&p, "device_type_string", "TPU v7x");
    mk_plane_end(&p, &space);
    return space;
}

#endif
