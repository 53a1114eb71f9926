// SPDX-License-Identifier: Apache-2.0
// The table of decoders.  A file that none of them recognizes is not encoded.

#include "analysis/formats/impl.h"

static bool xz_sniff(xpl_bytes_t file) {
    return xpl_bytes_begin(file, "\xfd\x37zXZ", 6);
}

static bool bzip2_sniff(xpl_bytes_t file) {
    return xpl_bytes_begin(file, "BZh", 3) && file.len > 3 && file.ptr[3] >= '1' &&
           file.ptr[3] <= '9';
}

// LZMA has no magic number: its usual properties, a dictionary of whole 64 KiB, and a size that is
// unknown or below a terabyte.
static bool lzma_sniff(xpl_bytes_t file) {
    return xpl_bytes_begin(file, "\x5d\0\0", 3) && file.len > 13 &&
           (file.ptr[12] == 0 || file.ptr[12] == 0xff);
}

static bool zip_sniff(xpl_bytes_t file) {
    return xpl_bytes_begin(file, "PK\3\4", 4);
}

static const struct xpl_decoder *const decoders[] = {
    &(const struct xpl_decoder){.label = "gzip-compressed",
                                .suffix = ".gz",
                                .sniff = xpl_gzip_sniff,
                                .decode = xpl_gzip_decode,
                                .begin = xpl_gzip_begin,
                                .end = xpl_gzip_end,
                                .stated = xpl_gzip_stated},
    &(const struct xpl_decoder){.label = "zstd-compressed",
                                .suffix = ".zst",
                                .also_suffix = ".zstd",
                                .sniff = xpl_zstd_sniff,
                                .decode = xpl_zstd_decode,
                                .begin = xpl_zstd_begin,
                                .end = xpl_zstd_end,
                                .stated = xpl_zstd_stated},
    &xpl_decoder_rows,
    &(const struct xpl_decoder){
        .label = "xz-compressed",
        .suffix = ".xz",
        .sniff = xz_sniff,
        .refusal = "xz files are not read; decompress it (xz -d), or compress it with gzip or "
                   "zstd"},
    &(const struct xpl_decoder){
        .label = "lzma-compressed",
        .suffix = ".lzma",
        .sniff = lzma_sniff,
        .refusal = "lzma files are not read; decompress it (xz -d), or compress it with gzip or "
                   "zstd"},
    &(const struct xpl_decoder){
        .label = "bzip2-compressed",
        .suffix = ".bz2",
        .sniff = bzip2_sniff,
        .refusal = "bzip2 files are not read; decompress it (bzip2 -d), or compress it with gzip "
                   "or zstd"},
    &(const struct xpl_decoder){.label = "a zip archive",
                                .suffix = ".zip",
                                .sniff = zip_sniff,
                                .refusal =
                                    "zip archives are not read; extract the profile (unzip)"},
};

const struct xpl_decoder *const *xpl_decoders(size_t *ret_n) {
    *ret_n = sizeof decoders / sizeof *decoders;
    return decoders;
}

const struct xpl_decoder *xpl_decoder_of(xpl_bytes_t file) {
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (decoders[i]->sniff(file)) return decoders[i];
    return NULL;
}
