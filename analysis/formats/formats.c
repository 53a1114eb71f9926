// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "analysis/formats/impl.h"
#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "analysis/ireeprof/reader.h"
#include "base/arena.h"

static const char *const plain_tail[] = {XPL_FORMAT_SUFFIX, NULL};
static const char *const gzip_tail[] = {XPL_FORMAT_SUFFIX ".gz", NULL};
static const char *const zstd_tail[] = {XPL_FORMAT_SUFFIX ".zst", XPL_FORMAT_SUFFIX ".zstd", NULL};
static const char *const riegeli_tail[] = {".xplane.riegeli", NULL};
static const char *const ireeprof_tail[] = {".ireeprof", NULL};
static const char *const ireeperf_tail[] = {".ireeperf.jsonl", NULL};

// Of the view of bundles (analysis/ireeprof/timeline/), and of reading their rows.
enum { IREE_VIEW_VERSION = 1 };

static const struct xpl_format formats[] = {
    {.name = "an uncompressed XSpace", .tail = plain_tail, .open = xpl_plain_open},
    {.name = "gzip-compressed",
     .tail = gzip_tail,
     .sniff = xpl_gzip_sniff,
     .open = xpl_gzip_open,
     .stated = xpl_gzip_stated},
    {.name = "zstd-compressed",
     .tail = zstd_tail,
     .sniff = xpl_zstd_sniff,
     .open = xpl_zstd_open,
     .stated = xpl_zstd_stated},
    {.name = "Riegeli",
     .tail = riegeli_tail,
     .refusal = "Riegeli files are not read; write the profile as " XPL_FORMAT_SUFFIX},
    {.name = "a profile bundle of IREE",
     .tail = ireeprof_tail,
     .version = IREE_VIEW_VERSION,
     .sniff = xpl_iree_sniff,
     .open = xpl_plain_open,
     .view = xpl_ireeprof_view,
     .check = xpl_ireeprof_check,
     .length_at = XPL_IREE_FILE_LENGTH_AT,
     .length_end = XPL_IREE_FILE_LENGTH_AT + sizeof(uint64_t),
     .kind = XPL_KIND_IREE},
    {.name = "rows of a profile bundle of IREE (ireeperf-jsonl)",
     .tail = ireeperf_tail,
     .version = IREE_VIEW_VERSION,
     .sniff = xpl_ireeperf_sniff,
     .open = xpl_jsonl_open,
     .view = xpl_ireeprof_view,
     .stated = xpl_jsonl_stated,
     .check = xpl_ireeperf_check,
     .kind = XPL_KIND_IREE},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

const struct xpl_format *xpl_formats(size_t *ret_n) {
    *ret_n = N_FORMATS;
    return formats;
}

const char *xpl_kind_name(enum xpl_kind kind) {
    static const char *const names[XPL_N_KINDS] = {
        [XPL_KIND_XSPACE] = "xspace", [XPL_KIND_IREE] = "iree"};
    return names[kind];
}

// The length of the suffix of `f` that the name ends with, something before it; 0 without one.
static size_t tail_of(const struct xpl_format *f, xpl_str_t file) {
    for (const char *const *t = f->tail; *t; t++) {
        const xpl_str_t tail = xpl_str_from(*t);
        if (file.len > tail.len && xpl_str_ends(file, tail)) return tail.len;
    }
    return 0;
}

const struct xpl_format *xpl_format_of_name(xpl_str_t file, xpl_str_t *ret_host) {
    const char *const slash = file.len ? memrchr(file.ptr, '/', file.len) : NULL;
    if (slash) file = xpl_str_sub(file, (size_t)(slash - file.ptr) + 1, SIZE_MAX);
    for (size_t i = 0; i < N_FORMATS; i++) {
        const size_t tail = tail_of(&formats[i], file);
        if (!tail) continue;
        if (ret_host) *ret_host = xpl_str_sub(file, 0, file.len - tail);
        return &formats[i];
    }
    return NULL;
}

bool xpl_format_match(xpl_str_t file, xpl_str_t *ret_host, unsigned *ret_rank,
                      const char **ret_refusal) {
    const struct xpl_format *const f = xpl_format_of_name(file, ret_host);
    if (!f) return false;
    *ret_rank = (unsigned)(f - formats) + (unsigned)f->kind * XPL_FORMAT_RANKS_OF_KIND;
    *ret_refusal = f->open ? NULL : f->refusal;
    return true;
}

size_t xpl_format_version_text(const struct xpl_format *f, char *ret) {
    ret[0] = 0;
    if (!f || !f->version) return 0;
    const int n = snprintf(ret, XPL_FORMAT_VERSION_TEXT, "%s=%u", f->tail[0] + 1, f->version);
    assert(n < XPL_FORMAT_VERSION_TEXT);
    return (size_t)n;
}

const struct xpl_format *xpl_format_sniff(xpl_bytes_t file) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i].sniff && formats[i].sniff(file)) return &formats[i];
    return &formats[0];
}

// Says why a file is not what its name says: as its format's own check does, where it has one.
static xpl_status_t refuse(const struct xpl_format *f, const struct xpl_format *seen,
                           xpl_bytes_t file, struct xpl_error *err) {
    struct xpl_error why = {0};
    if (seen->sniff)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0, "the file is %s: name it HOST%s", seen->name,
                            seen->tail[0]);
    if (f->check && f->check(file, &why) != XPL_OK)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, why.offset, "%s", why.msg);
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0,
                        "the file is not %s, as its name says it is: truncated, or it should be "
                        "named HOST%s",
                        f->name, formats[0].tail[0]);
}

xpl_status_t xpl_format_open(const struct xpl_format *f, xpl_bytes_t file,
                             const struct xpl_format_limits *limits, struct xpl_profile *ret,
                             struct xpl_error *err) {
    if (!f->open) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s", f->refusal);
    const struct xpl_format *const seen = xpl_format_sniff(file);
    const bool confirmed = f->sniff ? f->sniff(file) : !seen->sniff;
    return confirmed ? f->open(file, limits, ret, err) : refuse(f, seen, file, err);
}

static const struct xpl_format *format_of(xpl_str_t name, xpl_bytes_t file) {
    const struct xpl_format *const f = xpl_format_of_name(name, NULL);
    return f ? f : xpl_format_sniff(file);
}

xpl_status_t xpl_profile_open(xpl_str_t name, xpl_bytes_t file,
                              const struct xpl_format_limits *limits, struct xpl_profile *ret,
                              struct xpl_error *err) {
    return xpl_format_open(format_of(name, file), file, limits, ret, err);
}

static bool is_view(const struct xpl_format *f, enum xpl_kind kind) {
    return f->view && f->kind != kind && kind == XPL_KIND_XSPACE;
}

bool xpl_profile_is_view(enum xpl_kind kind, xpl_str_t name) {
    const struct xpl_format *const f = xpl_format_of_name(name, NULL);
    return f && is_view(f, kind);
}

xpl_status_t xpl_profile_open_as(enum xpl_kind kind, xpl_str_t name, xpl_bytes_t file,
                                 const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                 struct xpl_error *err) {
    const struct xpl_format *const f = format_of(name, file);
    struct xpl_profile whole = {0};
    if (!is_view(f, kind)) return xpl_format_open(f, file, limits, ret, err);
    XPL_TRY(xpl_format_open(f, file, limits, &whole, err));
    const xpl_status_t st = f->view(whole.bytes, limits, ret, err);
    xpl_profile_close(&whole);
    return st;
}

xpl_status_t xpl_kind_view(enum xpl_kind kind, xpl_bytes_t profile,
                           const struct xpl_format_limits *limits, struct xpl_profile *ret,
                           struct xpl_error *err) {
    const struct xpl_format *f = formats;
    while (f < formats + N_FORMATS && (f->kind != kind || !f->view))
        f++;
    if (f == formats + N_FORMATS)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "profiles of this kind have no view");
    return f->view(profile, limits, ret, err);
}

static size_t expect_of(size_t len, uint64_t stated) {
    const size_t most = xpl_unpack_bound(len);
    // No profile is longer when it is compressed.
    const bool doubtful = stated < len;
    const uint64_t usual =
        len < UINT64_MAX / XPL_FORMAT_USUAL_RATIO ? (uint64_t)len * XPL_FORMAT_USUAL_RATIO : most;
    const uint64_t n = doubtful ? usual : stated;
    return n < most ? (size_t)n : most;
}

static size_t expect_as(enum xpl_kind kind, const struct xpl_format *f, size_t len,
                        uint64_t stated) {
    if (!f || !f->open) return 0;
    const size_t opened = f->open == xpl_plain_open ? 0 : expect_of(len, stated);
    if (!is_view(f, kind)) return opened;
    return len > (SIZE_MAX - opened) / XPL_FORMAT_VIEW_RATIO ? SIZE_MAX
                                                             : opened + len * XPL_FORMAT_VIEW_RATIO;
}

size_t xpl_profile_expect(enum xpl_kind kind, xpl_str_t name, xpl_bytes_t file) {
    const struct xpl_format *const f = format_of(name, file);
    return expect_as(kind, f, file.len, f->stated ? f->stated(file) : 0);
}

size_t xpl_profile_expect_unread(enum xpl_kind kind, xpl_str_t name, size_t len) {
    return expect_as(kind, xpl_format_of_name(name, NULL), len, 0);
}

void xpl_profile_close(struct xpl_profile *p) {
    xpl_sys_free(p->owned);
    *p = (struct xpl_profile){0};
}
