// SPDX-License-Identifier: Apache-2.0
// NAME.pt.trace.json: a trace of PyTorch's profiler, and any other Chrome trace.
#include <string.h>

#include "analysis/formats/impl.h"
#include "analysis/kineto/kineto.h"

// Of the XSpaces (analysis/kineto/).
enum { IMPORT_VERSION = 12 };

// ---- the text, piece by piece: cancellation is looked at between two ----

struct pieces {
    struct xpl_unpacker *unpacker; // NULL: the file is the text, and is read where it is
    xpl_bytes_t in;
    struct xpl_exec *exec; // may be NULL
    size_t left;           // of what the file may become
    bool end;
    xpl_status_t status; // of the step that gave the last bytes in front of damage
};

static xpl_status_t read_piece(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                               struct xpl_error *err) {
    struct pieces *const p = ctx;
    *ret_n = 0;
    if (p->status != XPL_OK) return p->status;
    while (!p->end && !*ret_n) {
        if (p->exec && xpl_exec_cancelled(p->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (!p->unpacker) return XPL_OK;
        p->status = p->unpacker->step(p->unpacker, &p->in, to, room, ret_n, &p->end, err);
        if (p->status != XPL_OK) break;
        if (!p->end && !*ret_n && p->in.len == 0)
            XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, p->unpacker->file.len,
                                "the compressed file is truncated after %zu bytes",
                                p->unpacker->file.len);
    }
    if (*ret_n > p->left)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "the file of %zu bytes becomes more than %d times as long when "
                         "decompressed: not a profile",
                         p->unpacker->file.len, XPL_FORMAT_MAX_RATIO);
    p->left -= *ret_n;
    return *ret_n ? XPL_OK : p->status;
}

// ---- the import ----

static xpl_status_t import(struct xpl_json_reader *r, const struct xpl_format_limits *limits,
                           struct xpl_profile *ret, struct xpl_error *err) {
    const struct xpl_kineto_options options = {.max_bytes = limits->max_bytes,
                                               .exec = limits->exec};
    struct xpl_buf out = xpl_buf_of(limits->max_bytes);
    bool partial = false;
    const xpl_status_t st = xpl_kineto_import(r, &options, &out, &partial, err);
    XPL_TRY(xpl_profile_take(&out, st, "XSpace of a trace", ret, err));
    ret->partial = partial;
    return XPL_OK;
}

// The decoder of a compressed trace; NULL for other files.
static const struct xpl_decoder *decoder_of(xpl_bytes_t file) {
    const struct xpl_decoder *const d = xpl_decoder_of(file);
    return d && d->begin ? d : NULL;
}

static xpl_status_t kineto_import(xpl_bytes_t file, const struct xpl_format_limits *limits,
                                  struct xpl_profile *ret, struct xpl_error *err) {
    const struct xpl_decoder *const d = decoder_of(file);
    struct pieces p = {.unpacker = d ? d->begin(file) : NULL,
                       .in = file,
                       .exec = limits->exec,
                       .left = xpl_unpack_bound(file.len)};
    struct xpl_json_source source = {.read = read_piece, .ctx = &p};
    struct xpl_error why = {0}; // the events before an error are the trace
    struct xpl_json_reader r = {0};
    if (d && !p.unpacker) XPL_RETURN_OOM(err, "XSpace of a trace");
    if (!d) source.here = (xpl_str_t){(const char *)file.ptr, file.len};
    xpl_status_t st = xpl_json_reader_open(&r, &source, XPL_JSON_LENIENT, &why);
    if (st == XPL_OK)
        st = import(&r, limits, ret, err);
    else
        st = xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "%s", why.msg);
    xpl_json_reader_fini(&r);
    if (d) d->end(p.unpacker);
    return st;
}

// An upload must begin as a trace; it may be cut.
static xpl_status_t kineto_check(xpl_bytes_t file, struct xpl_error *err) {
    const struct xpl_format_limits limits = {.max_bytes = SIZE_MAX};
    const struct xpl_decoder *const d = decoder_of(file);
    struct xpl_profile head = {.bytes = file};
    if (d) XPL_TRY(d->decode(file, XPL_KINETO_HEAD, &limits, &head, err));
    const bool is = xpl_kineto_sniff(head.bytes) != XPL_KINETO_NOT;
    const char *const why = xpl_kineto_refusal(head.bytes);
    xpl_profile_close(&head);
    if (!is) XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0, "%s", why);
    return XPL_OK;
}

static unsigned kineto_sniff(xpl_bytes_t head) {
    switch (xpl_kineto_sniff(head)) {
        case XPL_KINETO_SURE: return XPL_SURE;
        case XPL_KINETO_TRACE: return XPL_SURE_LIKELY - 1; // XProf's traces look alike
        case XPL_KINETO_NOT: break;
    }
    return 0;
}

// The path alone says enough where the name is one of torch.profiler's.
static bool kineto_identify(xpl_str_t path, xpl_bytes_t file, struct xpl_profile_identity *ret) {
    const struct xpl_format_limits limits = {.max_bytes = SIZE_MAX};
    const struct xpl_decoder *const d = decoder_of(file);
    struct xpl_profile head = {.bytes = file};
    struct xpl_profile_file name = {0};
    if (d && d->decode(file, XPL_KINETO_HEAD, &limits, &head, NULL) != XPL_OK) head.bytes.len = 0;
    if (head.bytes.len > XPL_KINETO_HEAD) head.bytes.len = XPL_KINETO_HEAD;
    const bool is = head.bytes.len && xpl_kineto_sniff(head.bytes) == XPL_KINETO_SURE;
    const bool can_be = xpl_format_match(path, &name) && (is || !name.is_doubtful);
    const size_t dir_len = can_be ? (size_t)(name.host.ptr - path.ptr) : 0;
    if (can_be)
        xpl_kineto_identify(xpl_str_sub(path, 0, dir_len ? dir_len - 1 : 0), name.host, head.bytes,
                            ret);
    xpl_profile_close(&head);
    return can_be;
}

const struct xpl_format xpl_format_kineto = {
    .name = "kineto",
    .label = "a trace of PyTorch's profiler",
    .family = "kineto",
    .title = "PyTorch",
    .version = IMPORT_VERSION,
    .suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(".pt.trace.json"), NULL},
    .doubtful_suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(".json"), NULL},
    .identify = kineto_identify,
    .facts = XPL_FACT_EVENTS | XPL_FACT_DEVICE_OPS | XPL_FACT_KERNELS | XPL_FACT_MEMORY |
             XPL_FACT_STEPS | XPL_FACT_LAUNCHES | XPL_FACT_COLLECTIVES | XPL_FACT_COSTS,
    .sniff = kineto_sniff,
    .import = kineto_import,
    .imports_encoded = true,
    .import_ratio = 1,
    .check = kineto_check,
};
