// SPDX-License-Identifier: Apache-2.0
// Private to analysis/formats/: the openers of the rows, and what compressed ones share.
#ifndef XPL_ANALYSIS_FORMATS_IMPL_H_
#define XPL_ANALYSIS_FORMATS_IMPL_H_

#include <stdint.h>

#include "analysis/formats/format.h"

// One file for each format: whether bytes begin as it does, and the row's `open`.
bool xpl_gzip_sniff(xpl_bytes_t file);
xpl_status_t xpl_gzip_open(xpl_bytes_t file, const struct xpl_format_limits *limits,
                           struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
uint64_t xpl_gzip_stated(xpl_bytes_t file);
bool xpl_zstd_sniff(xpl_bytes_t file);
uint64_t xpl_zstd_stated(xpl_bytes_t file);
xpl_status_t xpl_zstd_open(xpl_bytes_t file, const struct xpl_format_limits *limits,
                           struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
// Opened as a plain file: the bytes are the profile.
xpl_status_t xpl_ireeprof_check(xpl_bytes_t file, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_ireeprof_view(xpl_bytes_t file, const struct xpl_format_limits *limits,
                               struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
// Rows become a bundle.
xpl_status_t xpl_jsonl_open(xpl_bytes_t file, const struct xpl_format_limits *limits,
                            struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
uint64_t xpl_jsonl_stated(xpl_bytes_t file);
xpl_status_t xpl_plain_open(xpl_bytes_t file, const struct xpl_format_limits *limits,
                            struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;

// The most that a file of this length may become.
size_t xpl_unpack_bound(size_t file);

// A decompressor as the shared loop sees it.
struct xpl_unpacker {
    // Reads from the front of *in, which it shortens, and writes at most `room` bytes.  *ret_end:
    // the input ends here, and does so where the format allows it.  Returns when the room is full,
    // the input is used up or a piece of it is done; makes progress unless the input is used up.
    xpl_status_t (*step)(struct xpl_unpacker *u, xpl_bytes_t *in, uint8_t *out, size_t room,
                         size_t *ret_n, bool *ret_end, struct xpl_error *err);
    xpl_bytes_t file; // for offsets of errors
};
// Decompresses the whole of u->file within the limits.
xpl_status_t xpl_unpack(struct xpl_unpacker *u, const struct xpl_format_limits *limits,
                        struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
