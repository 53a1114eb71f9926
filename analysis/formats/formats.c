// SPDX-License-Identifier: Apache-2.0
// The table of formats: names, content, versions.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "analysis/formats/impl.h"
#include "base/arena.h"

#define XPL_FORMAT_ROW(id)        extern const struct xpl_format xpl_format_##id;
#define XPL_UNREAD_FORMAT_ROW(id) XPL_FORMAT_ROW(id)
#include "analysis/formats/rows.h"
#undef XPL_FORMAT_ROW
#undef XPL_UNREAD_FORMAT_ROW

static const struct xpl_format *const kFormats[] = {
#define XPL_FORMAT_ROW(id)        &xpl_format_##id,
#define XPL_UNREAD_FORMAT_ROW(id) XPL_FORMAT_ROW(id)
#include "analysis/formats/rows.h"
#undef XPL_FORMAT_ROW
#undef XPL_UNREAD_FORMAT_ROW
};
enum { N_FORMATS = sizeof kFormats / sizeof *kFormats };

const struct xpl_format *const *xpl_formats(size_t *ret_n) {
    *ret_n = N_FORMATS;
    return kFormats;
}

const char *xpl_fact_name(unsigned facts) {
    static const char *const names[] = {
        "a timeline", "device ops",   "kernels of GPUs",        "memory events",
        "steps",      "ops of XLA",   "HLO programs",           "hardware counters",
        "launches",   "collectives",  "transfers of MegaScale", "requests of a model server",
        NULL,         "costs of ops",
    };
    unsigned i = 0;
    while (i + 1 < XPL_N_FACTS && !(facts >> i & 1))
        i++;
    if (1u << i != XPL_FACT_BUNDLE) return names[i];
    for (i = 0; i + 1 < N_FORMATS && !(kFormats[i]->facts & XPL_FACT_BUNDLE);)
        i++;
    return kFormats[i]->label;
}

// ---- names ----

static xpl_str_t last_part(xpl_str_t path) {
    const char *const slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? xpl_str_sub(path, (size_t)(slash - path.ptr) + 1, SIZE_MAX) : path;
}

// A suffix that a name has after something.
struct suffix {
    const struct xpl_format *format; // NULL: none of a format
    const char *text;
    unsigned rank;
    bool is_doubtful;
};

static bool has_suffix(xpl_str_t file, const char *suffix) {
    return file.len > strlen(suffix) && xpl_str_ends(file, xpl_str_from(suffix));
}

static struct suffix find_suffix_of(xpl_str_t file, bool doubtful, bool unlisted) {
    for (unsigned i = 0; i < N_FORMATS; i++) {
        const struct xpl_format *const f = kFormats[i];
        const char *const *const list = doubtful ? f->doubtful_suffixes : f->suffixes;
        unsigned before = 0;
        while (doubtful && f->suffixes[before])
            before++;
        for (unsigned k = 0; list && f->is_unlisted <= unlisted && list[k]; k++) {
            const unsigned rank = i * XPL_FORMAT_RANKS_OF_FORMAT + before + k;
            assert(before + k < XPL_FORMAT_RANKS_OF_FORMAT);
            assert(rank < XPL_FORMAT_RANKS || f->is_unlisted); // files of which have no rank
            if (has_suffix(file, list[k])) return (struct suffix){f, list[k], rank, doubtful};
        }
    }
    return (struct suffix){0};
}

// One that is not doubtful, if there is one.
static struct suffix find_suffix(xpl_str_t file, bool unlisted) {
    const struct suffix s = find_suffix_of(file, false, unlisted);
    return s.format ? s : find_suffix_of(file, true, unlisted);
}

const struct xpl_format *xpl_format_of_name(xpl_str_t file, xpl_str_t *ret_host) {
    file = last_part(file);
    const struct suffix s = find_suffix(file, false);
    if (s.format && ret_host) *ret_host = xpl_str_sub(file, 0, file.len - strlen(s.text));
    return s.format;
}

bool xpl_format_match(xpl_str_t file, struct xpl_profile_file *ret) {
    file = last_part(file);
    const struct suffix s = find_suffix(file, false);
    if (!s.format) return false;
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - strlen(s.text)),
                                     .rank = s.format->grouping * XPL_FORMAT_RANKS + s.rank,
                                     .refusal = s.format->refusal,
                                     .is_doubtful = s.is_doubtful,
                                     .identify = s.format->identify};
    return true;
}

size_t xpl_format_version_text(const struct xpl_format *f, char *ret) {
    ret[0] = 0;
    if (!f || !f->version) return 0;
    const int n = snprintf(ret, XPL_FORMAT_VERSION_TEXT, "%s=%u", f->name, f->version);
    assert(n < XPL_FORMAT_VERSION_TEXT);
    return (size_t)n;
}

// ---- content ----

void xpl_profile_close(struct xpl_profile *p) {
    xpl_sys_free(p->owned);
    *p = (struct xpl_profile){0};
}

const struct xpl_decoder *xpl_decoder_named(xpl_str_t name) {
    size_t n;
    const struct xpl_decoder *const *const d = xpl_decoders(&n);
    for (size_t i = 0; i < n; i++)
        if (xpl_str_ends(name, xpl_str_from(d[i]->suffix)) ||
            (d[i]->also_suffix && xpl_str_ends(name, xpl_str_from(d[i]->also_suffix))))
            return d[i];
    return NULL;
}

// The format of which the content is most surely; the named one (may be NULL) unless another one is
// more likely.  NULL: neither says anything.
static const struct xpl_format *choose(xpl_bytes_t head, const struct xpl_format *named,
                                       unsigned *ret_score) {
    const struct xpl_format *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const struct xpl_format *const f = kFormats[i];
        const unsigned score = f->sniff ? f->sniff(head) : 0;
        if (score > most || (score && score == most && f == named)) best = f, most = score;
    }
    *ret_score = most;
    return named && most < XPL_SURE_LIKELY ? named : best;
}

static const struct xpl_format *format_called(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(kFormats[i]->name, name) == 0) return kFormats[i];
    return NULL;
}

// The format of content that is decoded, or refused.
static xpl_status_t recognize_head(xpl_str_t name, xpl_bytes_t head,
                                   const struct xpl_decoder *decoder, const struct xpl_format **ret,
                                   struct xpl_error *err) {
    unsigned score;
    const struct xpl_format *const named = find_suffix(name, true).format;
    const struct xpl_decoder *const promised = decoder ? NULL : xpl_decoder_named(name);
    const struct xpl_format *const f = choose(head, named, &score);
    if (promised && !score)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0,
                            "the file is not %s, as its name says it is: truncated?",
                            promised->label);
    if (!f)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0,
                            "the file is not a profile of a known format (XSpaces are named "
                            "HOST" XPL_FORMAT_SUFFIX ")");
    if (f->refusal) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s", f->refusal);
    *ret = f;
    return XPL_OK;
}

// The suffix that the name has, if it is right, else the format's for files encoded like this one.
static const char *suffix_of(xpl_str_t name, const struct xpl_format *f,
                             const struct xpl_decoder *d) {
    const struct suffix named = find_suffix(name, true);
    if (xpl_decoder_named(name) == d && named.format == f && !named.is_doubtful) return named.text;
    for (size_t k = 0; d && f->suffixes[k]; k++)
        if (xpl_str_ends(xpl_str_from(f->suffixes[k]), xpl_str_from(d->suffix)))
            return f->suffixes[k];
    return f->suffixes[0];
}

static xpl_status_t recognize(xpl_str_t name, xpl_bytes_t file, const struct xpl_decoder *d,
                              struct xpl_exec *exec, const struct xpl_format **ret,
                              struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = SIZE_MAX, .exec = exec};
    struct xpl_profile head = {.bytes = {file.ptr, file.len}};
    if (d && d->refusal) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s", d->refusal);
    if (d && d->yields) {
        *ret = format_called(d->yields);
        return XPL_OK;
    }
    // The beginning is enough for what the name promises, and decoding it takes less.
    enum { BEGINNING = 256 };
    if (d) XPL_TRY(d->decode(file, BEGINNING, &limits, &head, err));
    const struct xpl_format *const named = xpl_format_of_name(name, NULL);
    if (d && !(named && named->sniff && named->sniff(head.bytes) && !named->refusal)) {
        xpl_profile_close(&head);
        XPL_TRY(d->decode(file, XPL_FORMAT_HEAD, &limits, &head, err));
    }
    if (head.bytes.len > XPL_FORMAT_HEAD) head.bytes.len = XPL_FORMAT_HEAD;
    const xpl_status_t st = recognize_head(name, head.bytes, d, ret, err);
    xpl_profile_close(&head);
    return st;
}

xpl_status_t xpl_file_recognize(xpl_str_t name, xpl_bytes_t file, struct xpl_exec *exec,
                                struct xpl_file_format *ret, struct xpl_error *err) {
    struct xpl_file_format is = {.decoder = xpl_decoder_of(file)};
    XPL_TRY(recognize(last_part(name), file, is.decoder, exec, &is.format, err));
    is.suffix = suffix_of(last_part(name), is.format, is.decoder);
    *ret = is;
    return XPL_OK;
}

xpl_status_t xpl_profile_check_name(const struct xpl_profile *p, xpl_str_t name,
                                    struct xpl_error *err) {
    const struct xpl_format *const promised = xpl_format_of_name(name, NULL);
    if (!promised || promised == p->format) return XPL_OK;
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0, "the file is %s: name it NAME%s", p->format->label,
                        p->format->suffixes[0]);
}
