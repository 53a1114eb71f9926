// SPDX-License-Identifier: Apache-2.0
// HOST.xplane.pb.zst: one Zstandard frame or several, skippable ones among them (RFC 8878).
// Windows are limited to 128 MiB, which every level of compression keeps to; only --long asks for
// more.
#include <zstd.h>
#include <zstd_errors.h>

#include "analysis/formats/impl.h"
#include "base/arena.h"
#include "base/heap.h"

enum {
    MAX_WINDOW_LOG = 27,
    MAX_IN = 4 << 20, // bytes given at once: blocks may be empty, and the caller has to ask
};

struct zstd {
    struct xpl_unpacker unpacker; // first
    ZSTD_DStream *z;
    size_t taken; // bytes of its memory, of which the window is nearly all, in the heap's budget
};

bool xpl_zstd_sniff(xpl_bytes_t file) {
    if (file.len < 4) return false;
    const uint8_t *const p = file.ptr;
    const bool skippable = (p[0] & 0xf0) == 0x50 && p[1] == 0x2a && p[2] == 0x4d && p[3] == 0x18;
    return skippable || (p[0] == 0x28 && p[1] == 0xb5 && p[2] == 0x2f && p[3] == 0xfd);
}

// In the header of the first frame, if whoever wrote it knew.
uint64_t xpl_zstd_stated(xpl_bytes_t file) {
    const unsigned long long n = ZSTD_getFrameContentSize(file.ptr, file.len);
    return n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR ? 0 : n;
}

static xpl_status_t fail_zstd(size_t code, size_t offset, struct xpl_error *err) {
    const ZSTD_ErrorCode e = ZSTD_getErrorCode(code);
    if (e == ZSTD_error_memory_allocation) XPL_RETURN_OOM(err, "zstd");
    if (e == ZSTD_error_frameParameter_windowTooLarge)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the zstd file needs a window larger than 128 MiB: compress it without "
                         "--long");
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, offset, "corrupt zstd data: %s",
                        ZSTD_getErrorName(code));
}

// The window is allocated when a frame begins, and filled as it is decoded.
static bool take_memory(struct zstd *s) {
    const size_t now = ZSTD_sizeof_DStream(s->z);
    if (now <= s->taken) return true;
    if (!xpl_heap_take(now - s->taken)) return false;
    s->taken = now;
    return true;
}

static xpl_status_t zstd_step(struct xpl_unpacker *u, xpl_bytes_t *in, uint8_t *out, size_t room,
                              size_t *ret_n, bool *ret_end, struct xpl_error *err) {
    ZSTD_DStream *const z = ((struct zstd *)u)->z;
    ZSTD_inBuffer i = {.src = in->ptr, .size = in->len < MAX_IN ? in->len : MAX_IN};
    ZSTD_outBuffer o = {.dst = out, .size = room};
    const size_t r = ZSTD_decompressStream(z, &o, &i);
    *in = (xpl_bytes_t){in->ptr + i.pos, in->len - i.pos};
    *ret_n = o.pos;
    if (ZSTD_isError(r)) return fail_zstd(r, u->file.len - in->len, err);
    if (!take_memory((struct zstd *)u)) XPL_RETURN_OOM(err, "zstd");
    *ret_end = r == 0 && in->len == 0; // 0: a frame has ended, and all of it written
    return XPL_OK;
}

struct xpl_unpacker *xpl_zstd_begin(xpl_bytes_t file) {
    struct zstd *const s = xpl_sys_alloc(sizeof *s);
    if (!s) return NULL;
    *s = (struct zstd){.unpacker = {.step = zstd_step, .file = file}, .z = ZSTD_createDStream()};
    if (s->z && !ZSTD_isError(ZSTD_DCtx_setParameter(s->z, ZSTD_d_windowLogMax, MAX_WINDOW_LOG)))
        return &s->unpacker;
    xpl_zstd_end(&s->unpacker);
    return NULL;
}

void xpl_zstd_end(struct xpl_unpacker *u) {
    struct zstd *const s = (struct zstd *)u;
    if (s) (void)ZSTD_freeDStream(s->z);
    if (s) xpl_heap_give(s->taken);
    xpl_sys_free(s);
}

xpl_status_t xpl_zstd_decode(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                             struct xpl_profile *ret, struct xpl_error *err) {
    struct xpl_unpacker *const u = xpl_zstd_begin(file);
    if (!u) XPL_RETURN_OOM(err, "zstd");
    u->head = head;
    const xpl_status_t st = xpl_unpack(u, limits, ret, err);
    xpl_zstd_end(u);
    return st;
}
