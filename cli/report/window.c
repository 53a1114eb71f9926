// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/document/document.h"
#include "cli/report/parts.h"
#include "cli/table.h"

enum { WIDTH = 1000, LEFT = 190, LINE = 15, MOST_THREADS = 16, MOST_DEPTH = 6, MOST_EVENTS = 600 };
enum { LETTER = 6, LEAST_TEXT = 30, NAME_LENGTH = 200, COLOURS = 9 };

struct thread {
    json_int_t pid, tid;
    xpl_str_t name;
    double ends[MOST_DEPTH]; // of the events that are open at each depth
    int depth, y;            // depth: lines that it takes
};

struct drawing {
    struct thread threads[MOST_THREADS];
    size_t n, n_events, n_left_out;
    double begin_us, us; // of the window
    struct xpl_buf *out;
};

static bool is_event(const json_t *e) {
    return xpl_str_eq(xpl_document_text(e, "ph"), XPL_STR("X"));
}

static struct thread *find(struct drawing *d, const json_t *e) {
    const json_int_t pid = json_integer_value(json_object_get(e, "pid")),
                     tid = json_integer_value(json_object_get(e, "tid"));
    for (size_t i = 0; i < d->n; i++)
        if (d->threads[i].pid == pid && d->threads[i].tid == tid) return &d->threads[i];
    if (d->n == MOST_THREADS) return NULL;
    struct thread *const t = &d->threads[d->n++];
    *t = (struct thread){.pid = pid, .tid = tid};
    return t;
}

static bool is_in_window(const struct drawing *d, const json_t *e) {
    const double ts = xpl_document_real(e, "ts"), dur = xpl_document_real(e, "dur");
    return ts < d->begin_us + d->us && ts + dur > d->begin_us;
}

// The depth of an event below those that are open; events of a thread come by their starts.
static int nest(struct thread *t, double ts, double end) {
    int depth = 0;
    while (depth < MOST_DEPTH && t->ends[depth] > ts)
        depth++;
    if (depth == MOST_DEPTH) return -1;
    t->ends[depth] = end;
    for (int i = depth + 1; i < MOST_DEPTH; i++)
        t->ends[i] = 0;
    if (depth + 1 > t->depth) t->depth = depth + 1;
    return depth;
}

// One of a few colours by the name.
static unsigned colour_of(xpl_str_t name) {
    unsigned hash = 2166136261u;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619u;
    return hash % COLOURS;
}

static void draw_event(struct drawing *d, const struct thread *t, const json_t *e, int depth) {
    const double scale = (WIDTH - LEFT) / d->us, ts = xpl_document_real(e, "ts");
    double x = (ts - d->begin_us) * scale, end = x + xpl_document_real(e, "dur") * scale;
    const xpl_str_t name = xpl_document_text(e, "name");
    char time[32];
    if (x < 0) x = 0;
    if (end > WIDTH - LEFT) end = WIDTH - LEFT;
    const double width = end - x < 0.6 ? 0.6 : end - x;
    const int y = t->y + depth * LINE;
    xpl_show_time_ps(time, (uint64_t)fmin(fmax(xpl_document_real(e, "dur") * 1e6 + 0.5, 0), 1e19));
    xpl_buf_printf(d->out, "<g><title>");
    xpl_report_text(d->out, name, NAME_LENGTH);
    xpl_buf_printf(d->out,
                   " %s</title><rect class=\"c%u\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                   "height=\"%d\"/>",
                   time, colour_of(name), LEFT + x, y, width, LINE - 1);
    if (width > LEAST_TEXT) {
        xpl_buf_printf(d->out, "<text x=\"%.1f\" y=\"%d\">", LEFT + x + 2, y + LINE - 4);
        xpl_report_text(d->out, name, (size_t)(width / LETTER));
        xpl_buf_str(d->out, XPL_STR("</text>"));
    }
    xpl_buf_str(d->out, XPL_STR("</g>"));
}

// Calls draw_event for the events of the window, or only measures the threads.
static void each_event(struct drawing *d, const json_t *events, bool draws) {
    size_t i;
    const json_t *e;
    for (size_t k = 0; k < d->n; k++)
        memset(d->threads[k].ends, 0, sizeof d->threads[k].ends);
    json_array_foreach(events, i, e) {
        if (!is_event(e) || !is_in_window(d, e)) continue;
        struct thread *const t = find(d, e);
        const double ts = xpl_document_real(e, "ts");
        const int depth = t ? nest(t, ts, ts + xpl_document_real(e, "dur")) : -1;
        if (depth < 0 || (draws && d->n_events == MOST_EVENTS)) {
            d->n_left_out += draws;
            continue;
        }
        d->n_events += draws;
        if (draws) draw_event(d, t, e, depth);
    }
}

// Names of threads; returns the height of all.
static int place_threads(struct drawing *d, const json_t *events) {
    size_t i;
    const json_t *e;
    int y = 4;
    json_array_foreach(events, i, e) {
        if (!xpl_str_eq(xpl_document_text(e, "name"), XPL_STR("thread_name"))) continue;
        for (size_t k = 0; k < d->n; k++)
            if (d->threads[k].pid == json_integer_value(json_object_get(e, "pid")) &&
                d->threads[k].tid == json_integer_value(json_object_get(e, "tid")))
                d->threads[k].name = xpl_document_text(json_object_get(e, "args"), "name");
    }
    for (size_t k = 0; k < d->n; k++) {
        d->threads[k].y = y;
        y += d->threads[k].depth * LINE + 5;
    }
    return y;
}

void xpl_report_window(const json_t *trace, double begin_ps, double duration_ps,
                       struct xpl_buf *out) {
    const json_t *const events = json_object_get(trace, "traceEvents");
    struct drawing d = {.begin_us = begin_ps / 1e6, .us = duration_ps / 1e6, .out = out};
    char time[32];
    if (!(d.us > 0) || !json_array_size(events)) return;
    each_event(&d, events, false);
    if (!d.n) return;
    const int height = place_threads(&d, events);
    xpl_show_time_ps(time, (uint64_t)fmin(duration_ps, 1e19));
    xpl_buf_printf(out,
                   "<svg class=\"window\" viewBox=\"0 0 %d %d\" role=\"img\" "
                   "aria-label=\"%s of the trace\">",
                   WIDTH, height, time);
    for (size_t k = 0; k < d.n; k++) {
        xpl_buf_printf(out, "<text class=\"thread\" x=\"0\" y=\"%d\">", d.threads[k].y + LINE - 4);
        xpl_report_text(out, d.threads[k].name, LEFT / LETTER - 1);
        xpl_buf_str(out, XPL_STR("</text>"));
    }
    each_event(&d, events, true);
    xpl_buf_str(out, XPL_STR("</svg>"));
    if (d.n_left_out)
        xpl_buf_printf(out, "<p class=\"muted\">and %zu more events in this window</p>",
                       d.n_left_out);
}
