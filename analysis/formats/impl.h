// SPDX-License-Identifier: Apache-2.0
// Private to analysis/formats/: the functions of the rows, and what decoders share.
#ifndef XPL_ANALYSIS_FORMATS_IMPL_H_
#define XPL_ANALYSIS_FORMATS_IMPL_H_

#include <stdint.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/buf.h"

// Whether the file begins with the `n` bytes of `magic`.
static inline bool xpl_bytes_begin(xpl_bytes_t file, const void *magic, size_t n) {
    return file.len >= n && memcmp(file.ptr, magic, n) == 0;
}

// Moves the bytes written to *b into *ret, which owns them.  If `st`, the outcome of writing them,
// is a failure, frees them and returns it.  `what` names them if memory is missing.
xpl_status_t xpl_profile_take(struct xpl_buf *b, xpl_status_t st, const char *what,
                              struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;

// ---- decoders ----

const struct xpl_decoder *const *xpl_decoders(size_t *ret_n);
// The decoder of an encoded file; NULL: it is not encoded.
const struct xpl_decoder *xpl_decoder_of(xpl_bytes_t file);
// The decoder whose suffix the name has; NULL: none.
const struct xpl_decoder *xpl_decoder_named(xpl_str_t name);

bool xpl_gzip_sniff(xpl_bytes_t file);
xpl_status_t xpl_gzip_decode(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                             struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
uint64_t xpl_gzip_stated(xpl_bytes_t file);
struct xpl_unpacker *xpl_gzip_begin(xpl_bytes_t file);
void xpl_gzip_end(struct xpl_unpacker *u);
bool xpl_zstd_sniff(xpl_bytes_t file);
uint64_t xpl_zstd_stated(xpl_bytes_t file);
xpl_status_t xpl_zstd_decode(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                             struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;
struct xpl_unpacker *xpl_zstd_begin(xpl_bytes_t file);
void xpl_zstd_end(struct xpl_unpacker *u);
extern const struct xpl_decoder xpl_decoder_rows; // in the file of the format that it yields

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
    size_t head;      // as of xpl_decoder.decode
};
// Decompresses u->file within the limits.
xpl_status_t xpl_unpack(struct xpl_unpacker *u, const struct xpl_format_limits *limits,
                        struct xpl_profile *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
