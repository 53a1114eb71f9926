// SPDX-License-Identifier: Apache-2.0
// The picture of the heap over time as a page: rectangles and labels where XProf's are, drawn by us
// as SVG.  XProf sends a graph's description and a program from elsewhere that lays it out.
#include <inttypes.h>

#include "analysis/tools/memory_viewer/impl.h"
#include "base/text/utf8.h"

// ---- texts ----

// Appends a text as HTML.  Characters that a page cannot have become blanks.
static void put_html(struct xpl_buf *out, xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        switch (c) {
            case '&': xpl_buf_str(out, XPL_STR("&amp;")); break;
            case '<': xpl_buf_str(out, XPL_STR("&lt;")); break;
            case '>': xpl_buf_str(out, XPL_STR("&gt;")); break;
            case '"': xpl_buf_str(out, XPL_STR("&quot;")); break;
            default:
                xpl_buf_putc(out, ((uint8_t)c < ' ' && c != '\n') || c == 0x7f ? ' ' : c);
                break;
        }
    }
}

// How much of a label fits a rectangle, as XProf cuts it: by bytes, but never inside a character.
// *ret_dots: three dots follow.
static size_t fitting(xpl_str_t s, double width, double height, double font, bool *ret_dots) {
    const double margin = 2 * 0.02 * 72;
    *ret_dots = false;
    if (height - margin < 1.2 * font || width - margin < 0.55 * font) return 0;
    const double room = (width - margin) / (0.55 * font);
    const size_t most = room < 1e6 ? (size_t)room : 1000000;
    if (s.len <= most) return s.len;
    if (most < 4) return 0;
    *ret_dots = true;
    return xpl_utf8_cut(s, most - 3).len;
}

// ---- rectangles ----

static xpl_status_t put_tip(struct memview *v, const struct memview_block *k,
                            struct xpl_error *err) {
    const struct xpl_hlo_memory *const m = v->m;
    const struct hlo_allocation *const a = &m->allocations[k->allocation];
    struct xpl_buf *const s = &v->scratch;
    s->n = 0;
    if (k->buffer == UINT32_MAX) {
        xpl_buf_printf(s, "buffer_allocation_id:%" PRId64 "\nsize:%" PRId64 "\nbuffer_counts:%u\n",
                       a->index, a->size, a->n);
    } else {
        const struct hlo_buffer *const b = &m->buffers[k->buffer];
        xpl_buf_printf(s, "buffer_id:%" PRId64 "\nhlo_op:", b->id);
        xpl_buf_str(s, b->op.name);
        xpl_buf_str(s, XPL_STR("\nshape:"));
        XPL_TRY(xpl_hlo_text_shape(b->shape, v->cache, s, err));
        xpl_buf_printf(s,
                       "\nsize:%" PRId64 "\nunpadded_size:%" PRId64 "\noffset:%" PRId64
                       "\nspan:(%" PRIu32 ",%" PRIu32 ")",
                       b->size, b->unpadded, b->offset, b->first, b->last);
    }
    xpl_buf_str(v->out, XPL_STR("<title>"));
    put_html(v->out, (xpl_str_t){(const char *)s->p, s->n});
    xpl_buf_str(v->out, XPL_STR("</title>"));
    return XPL_OK;
}

static xpl_status_t put_block(struct memview *v, const struct memview_block *k,
                              struct xpl_error *err) {
    const double scale_x = MEMVIEW_POINTS / v->blocks.steps;
    const double scale_y = MEMVIEW_POINTS / (double)v->blocks.bytes;
    const double x = k->from * scale_x, width = (k->to - k->from) * scale_x;
    const double height = (double)k->size * scale_y;
    const double y = MEMVIEW_POINTS - (double)k->offset * scale_y - height; // addresses go up
    struct xpl_buf *const out = v->out;
    xpl_buf_printf(out,
                   "<g><rect x=\"%.3f\" y=\"%.3f\" width=\"%.3f\" height=\"%.3f\" fill=\"#%06x\"/>",
                   x, y, width, height, k->color);
    XPL_TRY(put_tip(v, k, err));
    if (k->buffer != UINT32_MAX) {
        const xpl_str_t name = v->m->buffers[k->buffer].op.name;
        const double wanted = height * 0.6, font = wanted < 8 ? 8 : wanted > 14 ? 14 : wanted;
        bool dots;
        const size_t n = fitting(name, width, height, font, &dots);
        if (n || dots) {
            xpl_buf_printf(out, "<text x=\"%.3f\" y=\"%.3f\" font-size=\"%.1f\">", x + width / 2,
                           y + height / 2, font);
            put_html(out, xpl_str_sub(name, 0, n));
            xpl_buf_str(out, dots ? XPL_STR("...</text>") : XPL_STR("</text>"));
        }
    }
    xpl_buf_str(out, XPL_STR("</g>\n"));
    return XPL_OK;
}

// ---- the page ----

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Memory over "
    "time</title>\n"
    "<style>body{margin:0;font-family:Arial,sans-serif}p{margin:8px}svg{width:100%;height:auto}"
    "input:checked~svg{width:4096px}\n"
    "rect{stroke:#000;stroke-width:1}text{text-anchor:middle;dominant-baseline:central;"
    "pointer-events:none}</style></head><body>\n<p>";

static xpl_status_t end_page(struct memview *v, struct xpl_error *err) {
    xpl_buf_str(v->out, XPL_STR("</body></html>\n"));
    if (v->out->failed || v->scratch.failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    return XPL_OK;
}

xpl_status_t xpl_memview_timeline(struct memview *v, struct xpl_error *err) {
    struct xpl_buf *const out = v->out;
    uint32_t n_small = 0;
    for (uint32_t i = 0; i < v->blocks.n; i++)
        n_small += !v->blocks.v[i].drawn;
    xpl_buf_put(out, page_head, sizeof page_head - 1);
    put_html(out, v->m->module);
    if (!v->blocks.n) {
        xpl_buf_printf(out, ": no allocation of memory space %" PRId64 " has a timeline.</p>\n",
                       v->m->color);
        return end_page(v, err);
    }
    xpl_buf_printf(out,
                   ", memory space %" PRId64 ": %" PRId64
                   " bytes of heap from address 0 below, over "
                   "%" PRIu32 " events from left to right.",
                   v->m->color, v->blocks.bytes, v->blocks.steps);
    if (n_small) xpl_buf_printf(out, " %" PRIu32 " are too small to be drawn.", n_small);
    xpl_buf_printf(
        out,
        "</p>\n<input type=\"checkbox\" id=\"full\"><label for=\"full\">full size</label>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n",
        (int)MEMVIEW_POINTS, (int)MEMVIEW_POINTS);
    for (uint32_t i = 0; i < v->blocks.n; i++) {
        if (!v->blocks.v[i].drawn) continue;
        if (xpl_exec_cancelled(v->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        XPL_TRY(put_block(v, &v->blocks.v[i], err));
        if (out->failed) XPL_RETURN_OOM(err, "memory of an HLO module");
    }
    xpl_buf_str(out, XPL_STR("</svg>\n"));
    return end_page(v, err);
}
