// SPDX-License-Identifier: Apache-2.0
// A profile with transfers between slices of TPUs.
#ifndef XPL_TESTS_MEGASCALE_FIXTURE_H_
#define XPL_TESTS_MEGASCALE_FIXTURE_H_

#include "tests/hlo_maker.h"

enum { MG_US = 1000000, MG_TUPLE = 13, MG_KIND = 100, MG_INPUT = 9 };
static const char *const kMgOps[] = {"send.1", "recv.1", "send-done.1", "recv-done.1"};
static const char *const kMgOpcodes[] = {"send", "recv", "send-done", "recv-done"};

static inline void mg_attribute(struct xpl_buf *attributes, const char *key, const char *value) {
    struct xpl_buf entry = mk_open();
    mk_text(&entry, 1, key);
    mk_text(&entry, 2, value);
    mk_close(attributes, 1, &entry);
}

// One of the four ops; its result is (f32[256,4]).  Done ops have no name of a rendezvous.
static inline void mg_instruction(struct xpl_buf *computation, int k) {
    struct xpl_buf in = mk_open(), shape = mk_open(), part = mk_open(), attributes = mk_open();
    mk_text(&in, 1, kMgOps[k]);
    mk_text(&in, 2, kMgOpcodes[k]);
    mk_int(&part, 2, MK_F32);
    mk_int(&part, 3, 256);
    mk_int(&part, 3, 4);
    mk_int(&shape, 2, MG_TUPLE);
    mk_close(&shape, 4, &part);
    mk_close(&in, 3, &shape);
    mk_int(&in, 26, 11 + k % 2);
    mk_int(&in, 35, k + 1);
    mk_int(&in, 36, k < 2 ? MG_INPUT : k - 1);
    if (k == 0) mk_int(&in, 36, MG_INPUT);
    mg_attribute(&attributes, "_xla_host_transfer_rendezvous", "rdv_1");
    mg_attribute(&attributes, "_xla_megascale_transfer_type", "ALL_REDUCE");
    if (k < 2)
        mk_close(&in, 68, &attributes);
    else
        xpl_buf_fini(&attributes);
    mk_close(computation, 2, &in);
}

static inline void mg_program(struct xpl_buf *space) {
    struct xpl_buf module = mk_module("jit_f", 1), main = mk_computation("main", 1, 4);
    struct mk_plane p = mk_metadata_plane();
    mk_hlo_instr(&main, (struct mk_instr){.id = MG_INPUT, .name = "p", .opcode = "parameter"});
    for (int k = 0; k < 4; k++)
        mg_instruction(&main, k);
    mk_computation_end(&module, &main);
    mk_program(&p.body, 77, &module);
    mk_plane_end(&p, space);
}

// The kind of event of one of the four ops: four endpoints take part.
static inline void mg_kind(struct mk_plane *p, int k) {
    struct xpl_buf entry = mk_open(), md = mk_open(), category = mk_open(), dcn = mk_open();
    struct xpl_buf info = mk_open(), group = mk_open();
    char text[80];
    (void)snprintf(text, sizeof text, "host %s", kMgOpcodes[k]);
    mk_int(&category, 1, mk_name(p->stats, &p->n_stats, "hlo_category"));
    mk_text(&category, 5, text);
    for (int i = 0; i < 4; i++)
        mk_text(&group, 1, "");
    mk_close(&info, 2, &group);
    mk_int(&dcn, 1, mk_name(p->stats, &p->n_stats, "dcn_collective_info"));
    mk_close(&dcn, 6, &info);
    mk_int(&entry, 1, MG_KIND + k);
    mk_int(&md, 1, MG_KIND + k);
    (void)snprintf(text, sizeof text, "%%%s, _xla_host_transfer_rendezvous=\"rdv_1\"", kMgOps[k]);
    mk_text(&md, 2, text);
    mk_text(&md, 4, kMgOps[k]);
    mk_close(&md, 5, &category);
    mk_close(&md, 5, &dcn);
    mk_close(&entry, 2, &md);
    mk_close(&p->body, 4, &entry);
}

static inline void mg_op(struct xpl_buf *line, int k, int64_t begin_us, int64_t duration_us) {
    struct xpl_buf ev = mk_open();
    mk_int(&ev, 1, MG_KIND + k);
    mk_int(&ev, 2, begin_us * MG_US);
    mk_int(&ev, 3, duration_us * MG_US);
    mk_event_end(line, &ev);
}

// What MegaScale records: an execution of 150 us, in which copies and the network take 2 + 6 and,
// of 20 + 20 us over the network, 30 that do not overlap.
static inline void mg_action(struct mk_plane *p, struct xpl_buf *line, const char *name,
                             int64_t begin_us, const char *stat, int64_t value) {
    struct xpl_buf ev = mk_event(p, name, begin_us * MG_US, name[0] == 'd' ? 150LL * MG_US : MG_US);
    mk_stat_str(p, &ev, "graph_key", "device_200005_gid_rdv_1$x^i0");
    mk_stat_int(p, &ev, stat, value);
    mk_event_end(line, &ev);
}
// What the network did, and for how long: a latency has no sign.
static inline void mg_transfer(struct mk_plane *p, struct xpl_buf *line, const char *name,
                               int64_t begin_us, uint32_t field, const char *stat, int64_t value) {
    struct xpl_buf ev = mk_event(p, name, begin_us * MG_US, MG_US), s = mk_open();
    mk_stat_str(p, &ev, "graph_key", "device_200005_gid_rdv_1$x^i0");
    mk_stat_str(p, &ev, "buffer_sizes", "s1->0d|$c0=4096,s0->0d|$c1=7,s0->1d|$c2=4");
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, stat));
    mk_int(&s, field, value);
    mk_close(&ev, 4, &s);
    mk_event_end(line, &ev);
}
static inline void mg_trace(struct xpl_buf *space, int rounds) {
    struct mk_plane p = mk_plane(50, "/device:CUSTOM:Megascale Trace");
    struct xpl_buf line = mk_line(1, "m");
    for (int i = 0; i < rounds; i++) {
        const int64_t at = (i + 1) * 1000;
        mg_action(&p, &line, "device_200005_gid_rdv_1", at + 12, "input_size", 4096);
        mg_action(&p, &line, "device_200005_gid_other_1", at + 12, "input_size", 4096);
        mg_action(&p, &line, "DeviceToHost START", at + 13, "action_index", 0);
        mg_action(&p, &line, "DeviceToHost END", at + 14, "action_index", 0);
        mg_transfer(&p, &line, "NetworkSend END", at + 60, 4, "action_duration_ns", 20000);
        mg_transfer(&p, &line, "NetworkReceive END", at + 70, 3, "network_transport_latency_us",
                    20);
        mg_action(&p, &line, "HostToDevice START", at + 100, "action_index", 0);
        mg_action(&p, &line, "HostToDevice END", at + 105, "action_index", 0);
    }
    if (rounds > 2) { // a copy that takes longer than 64 bits with a sign say
        mg_action(&p, &line, "DeviceToHost START", -9000000000000, "action_index", 7);
        mg_action(&p, &line, "DeviceToHost END", 9000000000000, "action_index", 7);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

// `rounds` transfers; without kinds of MegaScale's events a host has none.
static inline struct xpl_buf megascale_fixture(int rounds, bool megascale) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    if (megascale) mk_name(p.events, &p.n_events, "MegaScale: Communication Transport Receive");
    mk_plane_end(&p, &space);
    mg_program(&space);
    mk_plane_begin(&p, 10, "/device:TPU:0");
    struct xpl_buf modules = mk_line(2, "XLA Modules"), ops = mk_line(3, "XLA Ops");
    for (int k = 0; k < 4; k++)
        mg_kind(&p, k);
    for (int i = 0; i < rounds; i++) {
        const int64_t at = (i + 1) * 1000;
        mk_plain(&p, &modules, "jit_f(77)", at * MG_US, 900LL * MG_US);
        mg_op(&ops, 0, at + 10, 5);
        mg_op(&ops, 1, at + 20, 3);
        mk_plain(&p, &ops, "tiny.1", (at + 130) * MG_US, 100);
        mk_plain(&p, &ops, "tiny.2", (at + 130) * MG_US + 200, 100);
        mg_op(&ops, 2, at + 140, 7);
        mg_op(&ops, 3, at + 200, 50);
    }
    mk_line_end(&p, &modules);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, &space);
    if (rounds > 1) mg_trace(&space, rounds);
    return space;
}

#endif
