// SPDX-License-Identifier: Apache-2.0
// NAME.ireeprof: a profile bundle of IREE.  Its own tools read the bytes (analysis/ireeprof),
// whether the bundle is complete or not; the others read its import.
#include "analysis/formats/impl.h"
#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/timeline/timeline.h"

// Of the XSpaces (analysis/ireeprof/timeline/), and of reading rows.
enum { IMPORT_VERSION = 3 };

static unsigned ireeprof_sniff(xpl_bytes_t head) {
    return xpl_iree_sniff(head) ? XPL_SURE : 0;
}

// A bundle may be cut, but must begin as one.
static xpl_status_t ireeprof_check(xpl_bytes_t file, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    return xpl_iree_open(file, false, &bundle, err);
}

static xpl_status_t write_xspace(const struct xpl_iree_bundle *bundle,
                                 const struct xpl_format_limits *limits, struct xpl_buf *out,
                                 bool *ret_partial, struct xpl_error *err) {
    struct xpl_iree_rows rows = {.format = XPL_IREE_JSONL, .out = out};
    struct xpl_iree_run run = {.bundle = bundle,
                               .options = {.id = -1, .trace = XPL_IREE_XSPACE},
                               .rows = &rows,
                               .exec = limits->exec,
                               .limit = limits->max_bytes};
    XPL_TRY(xpl_iree_timeline_write(&run, err));
    if (out->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the bundle as an XSpace has more than %zu bytes", limits->max_bytes);
    *ret_partial = xpl_iree_is_partial(&run);
    return XPL_OK;
}

static xpl_status_t ireeprof_import(xpl_bytes_t file, const struct xpl_format_limits *limits,
                                    struct xpl_profile *ret, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    struct xpl_buf out = xpl_buf_of(limits->max_bytes);
    bool partial = false;
    const xpl_status_t opened = xpl_iree_open(file, false, &bundle, err);
    // A header that is wrong is the file's fault, not the request's.
    if (opened == XPL_INVALID_ARGUMENT && err) err->code = XPL_DATA_LOSS;
    if (opened != XPL_OK) return opened == XPL_INVALID_ARGUMENT ? XPL_DATA_LOSS : opened;
    xpl_buf_expect(&out, file.len / 10 * 13); // the smallest that was measured: growing takes time
    const xpl_status_t st = write_xspace(&bundle, limits, &out, &partial, err);
    XPL_TRY(xpl_profile_take(&out, st, "XSpace of a bundle", ret, err));
    ret->partial = partial;
    return XPL_OK;
}

const struct xpl_format xpl_format_ireeprof = {
    .name = "ireeprof",
    .label = "a profile bundle of IREE",
    .family = "iree",
    .title = "IREE",
    .version = IMPORT_VERSION,
    .suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(".ireeprof"), ".ireeperf.jsonl", NULL},
    .grouping = 1,
    .facts = XPL_FACT_EVENTS | XPL_FACT_DEVICE_OPS | XPL_FACT_KERNELS | XPL_FACT_MEMORY |
             XPL_FACT_BUNDLE,
    .instead = "iree_explain",
    .sniff = ireeprof_sniff,
    .import = ireeprof_import,
    .import_ratio = 3, // 1.2 to 1.7 were measured, 2.3 of programs that were killed
    .check = ireeprof_check,
    .length_at = XPL_IREE_FILE_LENGTH_AT,
    .length_end = XPL_IREE_FILE_LENGTH_AT + sizeof(uint64_t),
};

// ---- NAME.ireeperf.jsonl: the rows that `export` writes of a bundle; opened, it is one again ----

// Rows are some three times as long as their records.
static uint64_t rows_stated(xpl_bytes_t file) {
    return file.len;
}

static xpl_status_t rows_decode(xpl_bytes_t file, size_t head,
                                const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                struct xpl_error *err) {
    struct xpl_buf out = xpl_buf_of(limits->max_bytes);
    (void)head; // rows tell a format by themselves
    const xpl_status_t st = xpl_ireeperf_bundle(file, limits->exec, &out, err);
    return xpl_profile_take(&out, st, "bundle of rows", ret, err);
}

const struct xpl_decoder xpl_decoder_rows = {
    .label = "rows of a profile bundle of IREE (ireeperf-jsonl)",
    .suffix = ".ireeperf.jsonl",
    .yields = "ireeprof",
    .sniff = xpl_ireeperf_sniff,
    .decode = rows_decode,
    .stated = rows_stated};
