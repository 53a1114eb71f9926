// SPDX-License-Identifier: Apache-2.0
#include "capture/check.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/wire/wire.h"

// proto/xprof/xplane.proto
enum {
    XSPACE_PLANES = 1,
    XSPACE_ERRORS = 2,
    XSPACE_WARNINGS = 3,
    XSPACE_HOSTNAMES = 4,
    XPLANE_LINES = 3,
    XLINE_EVENTS = 4
};

static enum xpl_walk_way take_text(struct xpl_check *c, char *text, bool *ret_has) {
    *ret_has = true;
    c->taking = text;
    c->taken = 0;
    text[0] = '\0';
    return XPL_WALK_TAKE;
}

// A field of the XSpace itself.
static enum xpl_walk_way on_top(struct xpl_check *c, uint32_t num) {
    if (num == XSPACE_HOSTNAMES && !c->has_hostname)
        return take_text(c, c->hostname, &c->has_hostname);
    if (num == XSPACE_ERRORS && !c->has_error) return take_text(c, c->notice, &c->has_error);
    if (num == XSPACE_WARNINGS && !c->has_error && !c->has_warning)
        return take_text(c, c->notice, &c->has_warning);
    if (num != XSPACE_PLANES) return XPL_WALK_SKIP;
    c->counts.planes++;
    return XPL_WALK_ENTER;
}

static enum xpl_walk_way on_field(void *ctx, const struct xpl_walk_field *f) {
    struct xpl_check *const c = ctx;
    if (f->type != XPL_WIRE_LEN) return XPL_WALK_SKIP;
    switch (f->depth) {
        case 0: return on_top(c, f->num);
        case 1:
            if (f->num != XPLANE_LINES) return XPL_WALK_SKIP;
            c->counts.lines++;
            return XPL_WALK_ENTER;
        default: c->counts.events += f->num == XLINE_EVENTS; return XPL_WALK_SKIP;
    }
}

static bool on_bytes(void *ctx, xpl_bytes_t piece, bool last) {
    struct xpl_check *const c = ctx;
    const size_t room = XPL_CHECK_TEXT - 1 - c->taken;
    const size_t n = piece.len < room ? piece.len : room;
    (void)last;
    if (n) memcpy(c->taking + c->taken, piece.ptr, n);
    c->taken += n;
    c->taking[c->taken] = '\0';
    return true;
}

void xpl_check_init(struct xpl_check *c) {
    *c = (struct xpl_check){0};
    xpl_walk_init(&c->walk);
    c->walk.on_field = on_field;
    c->walk.on_bytes = on_bytes;
    c->walk.count_num = XLINE_EVENTS;
    c->walk.count_depth = 2;
}

xpl_status_t xpl_check_put(struct xpl_check *c, xpl_bytes_t piece, struct xpl_error *err) {
    c->walk.ctx = c; // here and not in init: a check may have been moved since
    c->counts.bytes += piece.len;
    const bool ok = xpl_walk_put(&c->walk, piece);
    c->counts.events += c->walk.counted;
    c->walk.counted = 0;
    if (!ok)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, c->walk.at,
                            "not an XSpace: malformed at byte %" PRIu64, c->walk.at);
    return XPL_OK;
}

xpl_status_t xpl_check_end(struct xpl_check *c, struct xpl_error *err) {
    if (c->counts.bytes == 0)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0, "empty: not a single byte");
    if (!xpl_walk_complete(&c->walk))
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, c->walk.at, "cut off after %" PRIu64 " bytes",
                            c->counts.bytes);
    return XPL_OK;
}
