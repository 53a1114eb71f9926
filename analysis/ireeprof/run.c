// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"

enum { DONE_AT = 1 << 20 }; // bytes that are given back at once

static bool is_cancelled(const struct xpl_iree_run *run) {
    return run->exec && xpl_exec_cancelled(run->exec);
}

bool xpl_iree_stopped(const struct xpl_iree_run *run) {
    return run->rows->failed || is_cancelled(run);
}

static bool is_of(const struct xpl_iree_record *r, uint32_t types) {
    return r->chunk < XPL_IREE_N_CHUNK_TYPES && (types >> r->chunk & 1);
}

// Bytes that were passed over are given back when they are many.
static void pass(const struct xpl_iree_run *run, uint64_t at, uint64_t *done) {
    if (at - *done < DONE_AT) return;
    xpl_iree_done(run->bundle, run->bundle->bytes.ptr + *done, (size_t)(at - *done));
    *done = at;
}

static xpl_status_t check_cancelled(const struct xpl_iree_run *run, struct xpl_error *err) {
    if (is_cancelled(run))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the report is not needed any more");
    return XPL_OK;
}

// window: where events are read; NULL: in place.
static xpl_status_t walk_all(struct xpl_iree_run *run, uint32_t types,
                             struct xpl_iree_window *window, xpl_iree_visit_fn *visit, void *ctx,
                             struct xpl_error *err) {
    const struct xpl_iree_reading reading = {&run->damage, run->bundle, window};
    struct xpl_iree_cursor c = {.bundle = run->bundle, .reading = &reading};
    struct xpl_iree_record r;
    uint64_t done = 0;
    while (xpl_iree_next(&c, &r)) {
        if (run->rows->failed) break; // the rest would be lost: reported at the end
        if (!types || is_of(&r, types)) XPL_TRY(visit(ctx, &r, err));
        pass(run, c.at, &done);
        XPL_TRY(check_cancelled(run, err));
    }
    return XPL_OK;
}

// The same where the places of all chunks are known.
static xpl_status_t walk_places(struct xpl_iree_run *run, uint32_t types,
                                struct xpl_iree_window *window, xpl_iree_visit_fn *visit, void *ctx,
                                struct xpl_error *err) {
    const struct xpl_iree_bundle *const b = run->bundle;
    const struct xpl_iree_reading reading = {&run->damage, b, window};
    uint64_t done = 0;
    for (uint64_t i = 0; i < b->n_places && !run->rows->failed; i++) {
        const struct xpl_iree_chunk_at *const place = &b->places[i];
        struct xpl_iree_cursor c = {.bundle = b, .reading = &reading, .is_far = true};
        struct xpl_iree_record r;
        if (!(types >> place->chunk & 1)) continue;
        c.at = place->at, c.index = place->index;
        if (xpl_iree_next(&c, &r)) XPL_TRY(visit(ctx, &r, err));
        pass(run, c.at, &done);
        XPL_TRY(check_cancelled(run, err));
    }
    return XPL_OK;
}

static xpl_status_t walk(struct xpl_iree_run *run, uint32_t types, xpl_iree_visit_fn *visit,
                         void *ctx, struct xpl_error *err) {
    const struct xpl_iree_mapping *const m = run->bundle->mapping;
    struct xpl_iree_window window = {.bytes = m && m->read ? xpl_sys_alloc(XPL_IREE_WINDOW) : NULL};
    const bool in_places = types && run->bundle->n_places <= XPL_IREE_PLACES;
    // Without memory they are read where they are mapped.
    const xpl_status_t st = (in_places ? walk_places : walk_all)(
        run, types, window.bytes ? &window : NULL, visit, ctx, err);
    xpl_sys_free(window.bytes);
    return st;
}

xpl_status_t xpl_iree_walk(struct xpl_iree_run *run, xpl_iree_visit_fn *visit, void *ctx,
                           struct xpl_error *err) {
    return walk(run, 0, visit, ctx, err);
}

xpl_status_t xpl_iree_walk_in_place(struct xpl_iree_run *run, xpl_iree_visit_fn *visit, void *ctx,
                                    struct xpl_error *err) {
    return walk_all(run, 0, NULL, visit, ctx, err);
}

xpl_status_t xpl_iree_walk_chunks(struct xpl_iree_run *run, uint32_t types,
                                  xpl_iree_visit_fn *visit, void *ctx, struct xpl_error *err) {
    types &= run->bundle->has;
    return types ? walk(run, types, visit, ctx, err) : XPL_OK;
}

bool xpl_iree_glob(xpl_str_t text, xpl_str_t glob) {
    size_t t = 0, g = 0, star = SIZE_MAX, resume = 0; // after the last star; where it matched up to
    if (glob.len == 0) return true;
    text = xpl_str_sub(text, 0, XPL_IREE_GLOB_TEXT);
    while (t < text.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = ++g, resume = t;
            if (g == glob.len) return true;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == text.ptr[t])) {
            g++, t++;
        } else if (star != SIZE_MAX) {
            g = star, t = ++resume;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*')
        g++;
    return g == glob.len;
}

xpl_status_t xpl_iree_id_parse(xpl_str_t text, int64_t *ret, struct xpl_error *err) {
    const bool negative = text.len > 1 && text.ptr[0] == '-';
    int64_t v = 0;
    for (size_t i = negative; i < text.len; i++) {
        const int digit = text.ptr[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, digit, &v))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "no id: \"%.*s\"; ids are numbers up to %" PRId64,
                             XPL_STR_FMT(xpl_str_sub(text, 0, 40)), INT64_MAX);
    }
    *ret = negative || text.len == 0 ? -1 : v;
    return XPL_OK;
}

double xpl_iree_root(double v) {
    if (v <= 0) return 0;
    double root = v >= 1 ? v : 1;
    for (int i = 0; i < 32; i++)
        root = 0.5 * (root + v / root);
    return root;
}

// ---- warnings ----

static const char *const missing_texts[XPL_IREE_N_MISSING] = {
    [XPL_IREE_MISSING_FUNCTION] = "dispatches of functions that the bundle does not describe: they "
                                  "are named by their numbers",
    [XPL_IREE_MISSING_QUEUE] = "events of queues that the bundle does not describe",
    [XPL_IREE_MISSING_COMMAND_BUFFER] = "events of command buffers that the bundle does not "
                                        "describe (local-sync writes none)",
    [XPL_IREE_MISSING_COUNTER_SET] = "counter samples without a description of their counters",
    [XPL_IREE_MISSING_DESCRIPTOR] = "values of metrics that the bundle does not describe",
    [XPL_IREE_MISSING_EXECUTABLE_OF_FUNCTION] =
        "executable function references missing executable metadata",
    [XPL_IREE_MISSING_BUFFER_OF_OPERATION] =
        "command operation references missing command-buffer metadata",
    [XPL_IREE_MISSING_SET_OF_COUNTER] = "counter references missing counter-set metadata",
    [XPL_IREE_BAD_COUNTER_LAYOUT] =
        "counter sample value count does not match counter-set metadata",
};

// The i-th of these notes; *i counts down past them.
static bool note_warning(const struct xpl_iree_notes *notes, size_t *i, char *ret, size_t size) {
    const size_t kept = notes->n < XPL_IREE_NOTES_KEPT ? notes->n : XPL_IREE_NOTES_KEPT;
    if (*i < kept) {
        const struct xpl_iree_note *const n = &notes->kept[*i];
        (void)snprintf(ret, size, "offset %" PRIu64 ": %s", n->offset, n->text);
        return true;
    }
    *i -= kept;
    if (notes->n <= kept || (*i)-- != 0) return false;
    (void)snprintf(ret, size, "%zu more damaged places", notes->n - kept);
    return true;
}

// The i-th warning about the bundle itself; *i counts down past them.
static bool bundle_warning(const struct xpl_iree_bundle *b, size_t *i, char *ret, size_t size) {
    const struct {
        bool is;
        uint64_t n;
        const char *text;
    } more[] = {
        {!b->never_finished && b->bytes.len < b->header.file_length,
         b->header.file_length - b->bytes.len, "bytes at the end are lost"},
        {b->never_finished && b->bytes.len < b->file_bytes, b->file_bytes - b->bytes.len,
         "bytes at the end are lost"},
        {b->never_finished, b->bytes.len,
         "bytes of a capture that was not finished (file length 0): it is still being written, or "
         "the program died"},
        {b->unfinished_behind && b->bytes.len <= b->header.file_length,
         b->file_bytes - b->header.file_length,
         "bytes of a session that was never finished follow the end that the header states "
         "(--unfinished reads them)"}};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++)
        if (more[k].is && (*i)-- == 0) {
            (void)snprintf(ret, size, "%" PRIu64 " %s", more[k].n, more[k].text);
            return true;
        }
    return false;
}

// Data that a form cannot show is not damage.
static bool form_warning(const struct xpl_iree_bundle *b, size_t *i, char *ret, size_t size) {
    if (!b->from_rows || (*i)-- != 0) return false;
    (void)snprintf(ret, size,
                   "rows of ireeperf-jsonl have no names of sessions, no code objects and no bytes "
                   "of executable traces");
    return true;
}

bool xpl_iree_warning(const struct xpl_iree_run *run, size_t i, char *ret, size_t size) {
    if (note_warning(&run->bundle->notes, &i, ret, size) ||
        note_warning(&run->damage, &i, ret, size) || bundle_warning(run->bundle, &i, ret, size))
        return true;
    for (size_t k = 0; k < XPL_IREE_N_MISSING; k++)
        if (run->missing[k] && i-- == 0) {
            (void)snprintf(ret, size, "%" PRIu64 " %s", run->missing[k], missing_texts[k]);
            return true;
        }
    return form_warning(run->bundle, &i, ret, size);
}

bool xpl_iree_is_damaged(const struct xpl_iree_run *run) {
    bool damaged = run->bundle->notes.n || run->damage.n;
    for (size_t k = XPL_IREE_FIRST_DAMAGE; k < XPL_IREE_N_MISSING; k++)
        damaged |= run->missing[k] != 0;
    return damaged;
}

bool xpl_iree_is_partial(const struct xpl_iree_run *run) {
    return xpl_iree_is_damaged(run) || run->bundle->never_finished ||
           run->bundle->unfinished_behind;
}
