// SPDX-License-Identifier: Apache-2.0
// Writes small HLO programs for tests, as messages of xla/service/hlo.proto.
#ifndef XPL_TESTS_HLO_MAKER_H_
#define XPL_TESTS_HLO_MAKER_H_

#include "tests/xspace_maker.h"

struct mk_instr {
    int64_t id;
    const char *name, *opcode;
    int64_t operands[3], called; // ids; 0: none
    const char *fusion_kind, *op_name, *op_type, *source_file, *deduplicated;
    int source_line, frame;
    int element_type; // PrimitiveType; 0: F32
    bool no_shape, packed;
};
enum { MK_F32 = 11, MK_S8 = 2, MK_U32 = 8 };

static inline void mk_instr_ids(struct xpl_buf *in, uint32_t num, const int64_t *ids, int n,
                                bool packed) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf list = mk_open();
    for (int i = 0; i < n && ids[i]; i++) {
        if (packed)
            mk_varint(&list, (uint64_t)ids[i]);
        else
            mk_int(in, num, ids[i]);
    }
    if (list.n) mk_len(in, num, list.p, list.n);
}

static inline void mk_metadata(struct xpl_buf *in, const struct mk_instr *i) {
    struct xpl_buf md = mk_open();
    if (i->op_type) mk_text(&md, 1, i->op_type);
    if (i->op_name) mk_text(&md, 2, i->op_name);
    if (i->source_file) mk_text(&md, 3, i->source_file);
    if (i->source_line) mk_int(&md, 4, i->source_line);
    if (i->deduplicated) mk_text(&md, 12, i->deduplicated);
    if (i->frame) mk_int(&md, 15, i->frame);
    mk_close(in, 7, &md);
}

// Appends an instruction to a computation.
static inline void mk_hlo_instr(struct xpl_buf *computation, struct mk_instr i) {
    struct xpl_buf in = mk_open(), shape = mk_open();
    if (i.name) mk_text(&in, 1, i.name);
    if (i.opcode) mk_text(&in, 2, i.opcode);
    mk_int(&shape, 2, i.element_type ? i.element_type : MK_F32);
    if (i.no_shape)
        xpl_buf_fini(&shape);
    else
        mk_close(&in, 3, &shape);
    mk_metadata(&in, &i);
    if (i.fusion_kind) mk_text(&in, 11, i.fusion_kind);
    if (i.opcode && strcmp(i.opcode, "dot") == 0) mk_text(&in, 30, ""); // XLA insists on dimensions
    mk_int(&in, 35, i.id);
    mk_instr_ids(&in, 36, i.operands, 3, i.packed);
    mk_instr_ids(&in, 38, &i.called, 1, i.packed);
    mk_close(computation, 2, &in);
}

static inline struct xpl_buf mk_computation(const char *name, int64_t id, int64_t root) {
    struct xpl_buf c = mk_open();
    mk_text(&c, 1, name);
    mk_int(&c, 5, id);
    mk_int(&c, 6, root);
    return c;
}
static inline void mk_computation_end(struct xpl_buf *module, struct xpl_buf *c) {
    mk_close(module, 3, c);
}

static inline struct xpl_buf mk_module(const char *name, int64_t entry) {
    struct xpl_buf m = mk_open(), shape = mk_open();
    mk_text(&m, 1, name);
    mk_close(&m, 4, &shape);
    mk_int(&m, 6, entry);
    return m;
}

// The module as an entry of plane "/host:metadata", whose statistic 1 is "Hlo Proto".
static inline void mk_named_program(struct xpl_buf *plane, int64_t key, const char *name,
                                    struct xpl_buf *module) {
    struct xpl_buf proto = mk_open(), stat = mk_open(), md = mk_open(), entry = mk_open();
    mk_close(&proto, 1, module);
    mk_int(&stat, 1, 1);
    mk_close(&stat, 6, &proto);
    mk_int(&md, 1, key);
    mk_text(&md, 2, name);
    mk_close(&md, 5, &stat);
    mk_int(&entry, 1, key);
    mk_close(&entry, 2, &md);
    mk_close(plane, 4, &entry);
}
static inline void mk_program(struct xpl_buf *plane, int64_t program_id, struct xpl_buf *module) {
    mk_named_program(plane, program_id, "program", module);
}
static inline struct mk_plane mk_metadata_plane(void) {
    struct mk_plane p = mk_plane(99, "/host:metadata");
    CHECK(mk_name(p.stats, &p.n_stats, "Hlo Proto") == 1);
    return p;
}

// A small training step: "fusion.1" around a multiplication and an addition, "dot.2" of a gradient.
static inline struct xpl_buf mk_training_module(const char *name) {
    struct xpl_buf m = mk_module(name, 2);
    struct xpl_buf fused = mk_computation("fused", 1, 3), main = mk_computation("main", 2, 6);
    mk_hlo_instr(&fused, (struct mk_instr){.id = 1, .name = "p0", .opcode = "parameter"});
    mk_hlo_instr(&fused, (struct mk_instr){.id = 2,
                                           .name = "mul.1",
                                           .opcode = "multiply",
                                           .operands = {1, 1},
                                           .op_name = "jit(f)/layer/mul"});
    mk_hlo_instr(&fused, (struct mk_instr){.id = 3,
                                           .name = "add.1",
                                           .opcode = "add",
                                           .operands = {2, 1},
                                           .op_name = "jit(f)/layer/add"});
    mk_computation_end(&m, &fused);
    mk_hlo_instr(&main, (struct mk_instr){.id = 4, .name = "p", .opcode = "parameter"});
    mk_hlo_instr(&main, (struct mk_instr){.id = 5,
                                          .name = "fusion.1",
                                          .opcode = "fusion",
                                          .fusion_kind = "kLoop",
                                          .operands = {4},
                                          .called = 1,
                                          .op_name = "jit(f)/layer/add",
                                          .source_file = "model.py",
                                          .source_line = 31,
                                          .deduplicated = "fusion.0"});
    mk_hlo_instr(&main, (struct mk_instr){.id = 6,
                                          .name = "dot.2",
                                          .opcode = "dot",
                                          .operands = {5, 5},
                                          .op_name = "jit(f)/transpose(jvp(layer))/dot_general"});
    mk_computation_end(&m, &main);
    return m;
}

#endif
