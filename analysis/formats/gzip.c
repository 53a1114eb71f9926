// SPDX-License-Identifier: Apache-2.0
// HOST.xplane.pb.gz: one gzip member or several, one after the other (RFC 1952), as gzip, pigz and
// bgzip write them.  Checksums are checked.
#include "analysis/formats/impl.h"
#include "analysis/wire/zlib.h"
#include "base/arena.h"

enum { MAX_IN = 1 << 30 }; // what zlib is given at once; its counts are unsigned int

struct gzip {
    struct xpl_unpacker unpacker; // first
    z_stream z;
};

bool xpl_gzip_sniff(xpl_bytes_t file) {
    return file.len >= 2 && file.ptr[0] == 0x1f && file.ptr[1] == 0x8b;
}

// The last four bytes: the length of the last member, modulo 2^32.  Of a file that may well become
// longer than that they say nothing.
uint64_t xpl_gzip_stated(xpl_bytes_t file) {
    enum { SHORTEST = 18 }; // a member: header and trailer
    if (file.len < SHORTEST || file.len > UINT32_MAX / XPL_FORMAT_USUAL_RATIO) return 0;
    const uint8_t *const p = file.ptr + file.len - 4;
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static xpl_status_t gzip_step(struct xpl_unpacker *u, xpl_bytes_t *in, uint8_t *out, size_t room,
                              size_t *ret_n, bool *ret_end, struct xpl_error *err) {
    z_stream *const z = &((struct gzip *)u)->z;
    const size_t given = in->len < MAX_IN ? in->len : MAX_IN;
    z->next_in = (Bytef *)(uintptr_t)in->ptr; // only read
    z->avail_in = (unsigned)given;
    z->next_out = out;
    z->avail_out = (unsigned)room; // at most unpack.c's step
    const int r = inflate(z, Z_NO_FLUSH);
    const size_t used = given - z->avail_in;
    *in = (xpl_bytes_t){in->ptr + used, in->len - used};
    *ret_n = room - z->avail_out;
    if (r == Z_OK || r == Z_BUF_ERROR) return XPL_OK; // Z_BUF_ERROR: nothing left to read
    if (r == Z_MEM_ERROR) XPL_RETURN_OOM(err, "gzip");
    if (r != Z_STREAM_END)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, u->file.len - in->len, "corrupt gzip data: %s",
                            z->msg ? z->msg : "unknown");
    while (in->len && !*in->ptr) // padding of tapes and block devices
        *in = (xpl_bytes_t){in->ptr + 1, in->len - 1};
    *ret_end = in->len == 0;
    if (!*ret_end && inflateReset(z) != Z_OK) XPL_RETURN_ERROR(err, XPL_INTERNAL, "gzip");
    return XPL_OK;
}

struct xpl_unpacker *xpl_gzip_begin(xpl_bytes_t file) {
    struct gzip *const g = xpl_sys_alloc(sizeof *g);
    if (!g) return NULL;
    *g = (struct gzip){.unpacker = {.step = gzip_step, .file = file}, .z = xpl_zlib_stream()};
    if (inflateInit2(&g->z, MAX_WBITS + 16) == Z_OK) return &g->unpacker; // 16: gzip only
    xpl_sys_free(g);
    return NULL;
}

void xpl_gzip_end(struct xpl_unpacker *u) {
    struct gzip *const g = (struct gzip *)u;
    if (g) (void)inflateEnd(&g->z);
    xpl_sys_free(g);
}

xpl_status_t xpl_gzip_decode(xpl_bytes_t file, size_t head, const struct xpl_format_limits *limits,
                             struct xpl_profile *ret, struct xpl_error *err) {
    struct xpl_unpacker *const u = xpl_gzip_begin(file);
    if (!u) XPL_RETURN_OOM(err, "gzip");
    u->head = head;
    const xpl_status_t st = xpl_unpack(u, limits, ret, err);
    xpl_gzip_end(u);
    return st;
}
