// SPDX-License-Identifier: Apache-2.0
// NAME.ireeperf.jsonl: what `iree-profile export --format=ireeperf-jsonl` and ours write of a
// bundle.  Opened, it is a bundle again, in memory.
#include "analysis/ireeprof/ireeperf/ireeperf.h"

#include "analysis/formats/impl.h"

// Rows are some three times as long as their records.
uint64_t xpl_jsonl_stated(xpl_bytes_t file) {
    return file.len;
}

xpl_status_t xpl_jsonl_decode(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                              struct xpl_profile *ret, struct xpl_error *err) {
    struct xpl_buf out;
    size_t n = 0;
    (void)head; // rows tell a format by themselves
    xpl_buf_init(&out, limits->max_bytes);
    const xpl_status_t st = xpl_ireeperf_bundle(file, limits->exec, &out, err);
    uint8_t *const bytes = st == XPL_OK ? xpl_buf_take(&out, &n) : NULL;
    xpl_buf_fini(&out);
    if (st != XPL_OK) return st;
    if (!bytes) XPL_RETURN_OOM(err, "bundle of rows");
    *ret = (struct xpl_profile){.bytes = {bytes, n}, .owned = bytes};
    return XPL_OK;
}
