// SPDX-License-Identifier: Apache-2.0
// Opening files: recognize, decode, import; and the memory that takes.

#include "analysis/formats/impl.h"

// Says, as the format's reader does, why content is not what only the name says that it is.
static xpl_status_t check_named(const struct xpl_format *f, xpl_bytes_t decoded,
                                struct xpl_error *err) {
    struct xpl_error why = {0};
    if (!f->check || f->sniff(decoded) || f->check(decoded, &why) == XPL_OK) return XPL_OK;
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, why.offset, "%s", why.msg);
}

xpl_status_t xpl_profile_open(xpl_str_t name, xpl_bytes_t file,
                              const struct xpl_format_limits *limits, struct xpl_profile *ret,
                              struct xpl_error *err) {
    struct xpl_file_format is;
    struct xpl_profile p = {.bytes = file};
    XPL_TRY(xpl_file_recognize(name, file, limits->exec, &is, err));
    if (is.decoder && !is.format->imports_encoded)
        XPL_TRY(is.decoder->decode(file, 0, limits, &p, err));
    p.format = is.format;
    const xpl_status_t st = check_named(is.format, p.bytes, err);
    if (st == XPL_OK)
        *ret = p;
    else
        xpl_profile_close(&p);
    return st;
}

xpl_status_t xpl_profile_import(const struct xpl_format *f, xpl_bytes_t decoded,
                                const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                struct xpl_error *err) {
    XPL_TRY(f->import(decoded, limits, ret, err));
    ret->format = f;
    return XPL_OK;
}

xpl_status_t xpl_profile_open_as(enum xpl_form form, xpl_str_t name, xpl_bytes_t file,
                                 const struct xpl_format_limits *limits, struct xpl_profile *ret,
                                 struct xpl_error *err) {
    struct xpl_profile p = {0};
    XPL_TRY(xpl_profile_open(name, file, limits, &p, err));
    if (form == XPL_FORM_FILE || !p.format->import) {
        *ret = p;
        return XPL_OK;
    }
    const xpl_status_t st = xpl_profile_import(p.format, p.bytes, limits, ret, err);
    xpl_profile_close(&p);
    return st;
}

// ---- memory ----

static size_t expect_decoded(size_t len, uint64_t stated) {
    const size_t most = xpl_unpack_bound(len);
    // No profile is longer when it is compressed.
    const bool doubtful = stated < len;
    const uint64_t usual =
        len < UINT64_MAX / XPL_FORMAT_USUAL_RATIO ? (uint64_t)len * XPL_FORMAT_USUAL_RATIO : most;
    const uint64_t n = doubtful ? usual : stated;
    return n < most ? (size_t)n : most;
}

// `decoded`: bytes of memory that decoding takes, 0: none.
static size_t expect(enum xpl_form form, const struct xpl_format *f, size_t len, size_t decoded) {
    if (!f || f->refusal) return 0;
    if (form == XPL_FORM_FILE || !f->import) return decoded;
    const size_t of = decoded ? decoded : len, kept = f->imports_encoded ? 0 : decoded;
    return of > (SIZE_MAX - kept) / f->import_ratio ? SIZE_MAX : kept + of * f->import_ratio;
}

size_t xpl_profile_expect(enum xpl_form form, xpl_str_t name, xpl_bytes_t file) {
    const struct xpl_format *f = xpl_format_of_name(name, NULL);
    struct xpl_file_format is = {.decoder = xpl_decoder_of(file)};
    if (!f && xpl_file_recognize(name, file, NULL, &is, NULL) == XPL_OK) f = is.format;
    const bool decodes = is.decoder && is.decoder->decode;
    return expect(form, f, file.len,
                  decodes ? expect_decoded(file.len, is.decoder->stated(file)) : 0);
}

size_t xpl_profile_expect_unread(enum xpl_form form, xpl_str_t name, size_t len) {
    const struct xpl_format *const f = xpl_format_of_name(name, NULL);
    return expect(form, f, len, xpl_decoder_named(name) ? expect_decoded(len, 0) : 0);
}
