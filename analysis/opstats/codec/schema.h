// SPDX-License-Identifier: Apache-2.0
// The OpStats message as tables: which field number lands where in struct xpl_opstats.  One
// description drives both directions of codec.c, so that they cannot disagree.
// Numbers: the descriptors inside the released package (op_stats.proto and what it imports).
#ifndef XPL_ANALYSIS_OPSTATS_CODEC_SCHEMA_H_
#define XPL_ANALYSIS_OPSTATS_CODEC_SCHEMA_H_

#include <stdbool.h>
#include <stdint.h>

enum xpl_codec_kind {
    XPL_CODEC_NONE, // no such field, or one that is skipped
    XPL_CODEC_U64,
    XPL_CODEC_I64,
    XPL_CODEC_U32,
    XPL_CODEC_I32, // enums too
    XPL_CODEC_BOOL,
    XPL_CODEC_DOUBLE,
    XPL_CODEC_FLOAT,
    XPL_CODEC_STR,    // xpl_str_t
    XPL_CODEC_BYTES,  // xpl_bytes_t: a submessage kept as it is
    XPL_CODEC_MSG,    // submessage inside the struct at `off`
    XPL_CODEC_PTR,    // pointer to a struct of `size` bytes
    XPL_CODEC_REP,    // XPL_VEC of structs of `size` bytes
    XPL_CODEC_MAP,    // the same, kept sorted by `cmp`, of equal keys the last
    XPL_CODEC_STRS,   // XPL_VEC(xpl_str_t)
    XPL_CODEC_BLOBS,  // XPL_VEC(xpl_bytes_t)
    XPL_CODEC_PACKED, // XPL_VEC(double)
    XPL_CODEC_DIM3,   // uint32_t[3] with its count, a uint8_t, at `has`
    XPL_CODEC_ANY,    // StepInfoResult.step_breakdown
    XPL_CODEC_TRUE,   // the value of a map used as a set
};

struct xpl_codec_message;

struct xpl_codec_field {
    uint8_t kind;
    bool always; // written even when it is the default: keys and values of maps
    bool nests;  // the field that makes the message recursive
    uint16_t off;
    uint16_t has; // offset of the flag that says it is present; 0: present unless default
    uint16_t size;
    const struct xpl_codec_message *sub;
    int (*cmp)(const void *a, const void *b);
};

struct xpl_codec_message {
    const struct xpl_codec_field *fields; // by field number
    uint32_t n;
    bool repeats; // has a repeated field, so that counting ahead pays
};

enum { XPL_CODEC_MAX_FIELDS = 33 };

extern const struct xpl_codec_message xpl_codec_opstats, xpl_codec_generic_breakdown,
    xpl_codec_tpu_breakdown, xpl_codec_sparse_core_breakdown;

#endif
