// SPDX-License-Identifier: Apache-2.0
// Tool event_time_fraction_analyzer: which part of each step events of some names take, as a
// serialized tensorflow.profiler.EventTimeFractionAnalyzerResults.  XProf's aggregators ask their
// workers for it, of one host at a time, to make smart_suggestion.
#include <string.h>

#include "analysis/products/event_fractions.h"
#include "analysis/tools/lib/fractions.h"
#include "analysis/tools/tool.h"
#include "analysis/wire/writer.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"

enum {
    RESULTS =
        1,      // EventTimeFractionAnalyzerResults: map of names to EventTimeFractionAnalyzerResult
    PLANES = 1, // maps of it
    HOSTS = 2,
    MAP_KEY = 1,
    MAP_VALUE = 2,
    NAME = 1, // of a plane's, or a host's, value
    FRACTIONS = 2,
};

struct fractions_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t event_name;
};

static const struct xpl_tool_option kOptions[] = {
    {.key = "event_name",
     .type = XPL_OPTION_TEXT,
     .offset = offsetof(struct fractions_options, event_name),
     .values = "NAME[,NAME]...",
     .help = "texts; only events whose names contain one of them count"},
};

static void put_list(struct xpl_writer *w, uint32_t map, const struct xpl_fractions *v, size_t n) {
    struct xpl_writer_mark entry = xpl_writer_open(w, map), value, packed;
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += v[i].n;
    xpl_writer_bytes(w, MAP_KEY, v->name.ptr, v->name.len);
    value = xpl_writer_open(w, MAP_VALUE);
    if (v->name.len) xpl_writer_bytes(w, NAME, v->name.ptr, v->name.len);
    if (count) {
        packed = xpl_writer_open(w, FRACTIONS);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < v[i].n; k++) {
                uint32_t bits;
                memcpy(&bits, &v[i].v[k], sizeof bits);
                xpl_writer_raw32(w, bits);
            }
        xpl_writer_close(w, packed);
    }
    xpl_writer_close(w, value);
    xpl_writer_close(w, entry);
}

static void put_lists(struct xpl_writer *w, uint32_t map, const struct xpl_fractions *v, size_t n) {
    for (size_t i = 0, end; i < n; i = end) {
        end = xpl_fractions_end(v, n, i);
        put_list(w, map, &v[i], end - i);
    }
}

static void put_result(struct xpl_writer *w, xpl_str_t word,
                       const struct xpl_session_fractions *f) {
    const struct xpl_writer_mark entry = xpl_writer_open(w, RESULTS);
    xpl_writer_bytes(w, MAP_KEY, word.ptr, word.len);
    const struct xpl_writer_mark value = xpl_writer_open(w, MAP_VALUE);
    put_lists(w, PLANES, f->planes, f->n_planes);
    put_lists(w, HOSTS, f->hosts, f->n_hosts);
    xpl_writer_close(w, value);
    xpl_writer_close(w, entry);
}

static xpl_status_t read_host(const struct xpl_tool_input *in, size_t host, xpl_str_t word,
                              struct xpl_arena *arena, struct xpl_event_fractions *ret,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view = xpl_arena_of(in->limit);
    struct xpl_xspace *xs;
    struct xpl_error why = {0};
    xpl_status_t st = xpl_xspace_open(in->hosts[host].profile, &view, in->exec, &xs, &why);
    if (st == XPL_OK)
        st = xpl_event_fractions_make(xs, word, in->exec, arena, in->limit, ret, &why);
    return st == XPL_OK ? st : xpl_error_of_profile(&why, in->hosts[host].path, err);
}

// Appends the sentence for one name.
static xpl_status_t write_word(const struct xpl_tool_input *in, xpl_str_t word, struct xpl_buf *out,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct xpl_event_fractions *const values = xpl_arena_array(&arena, in->n_hosts, sizeof *values);
    const struct xpl_event_fractions **const hosts =
        xpl_arena_array(&arena, in->n_hosts, sizeof(const struct xpl_event_fractions *));
    xpl_str_t *const names = xpl_arena_array(&arena, in->n_hosts, sizeof *names);
    struct xpl_session_fractions f;
    struct xpl_writer w;
    if (!values || !hosts || !names) XPL_RETURN_OOM(err, "parts of steps");
    for (size_t i = 0; i < in->n_hosts; i++) {
        names[i] = in->hosts[i].name;
        hosts[i] = in->hosts[i].products ? &values[i] : NULL;
        if (hosts[i]) XPL_TRY(read_host(in, i, word, &arena, &values[i], err));
    }
    if (!xpl_fractions_collect(hosts, names, in->n_hosts, &arena, &f))
        XPL_RETURN_OOM(err, "parts of steps");
    xpl_writer_init(&w, out);
    put_result(&w, word, &f);
    if (xpl_writer_measured(&w)) put_result(&w, word, &f);
    if (!xpl_writer_fini(&w)) XPL_RETURN_OOM(err, "parts of steps");
    return XPL_OK;
}

// A word counts once, wherever it stands again.
static bool stands_before(xpl_str_t words, size_t at, xpl_str_t word) {
    for (size_t i = 0; i < at;) {
        const size_t comma = xpl_str_find(words, XPL_STR(","), i);
        if (xpl_str_eq(xpl_str_sub(words, i, comma - i), word)) return true;
        i = comma + 1;
    }
    return false;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    const xpl_str_t words = ((const struct fractions_options *)in->options)->event_name;
    enum { MAX_WORDS = 64 }; // a profile is read for each
    size_t n = 0;
    for (size_t at = 0; at <= words.len;) {
        const size_t comma = xpl_str_find(words, XPL_STR(","), at);
        const size_t end = comma == SIZE_MAX ? words.len : comma;
        const xpl_str_t word = xpl_str_sub(words, at, end - at);
        if (++n > MAX_WORDS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "event_name: more than %d names",
                             MAX_WORDS);
        if (!stands_before(words, at, word)) XPL_TRY(write_word(in, word, out, err));
        at = end + 1;
    }
    return XPL_OK;
}

// The tool requests devices because it has to request a product: it reads the profiles by itself.
static const struct xpl_product *const kNeeds[] = {&xpl_product_devices, NULL};

const struct xpl_tool xpl_tool_event_time_fraction_analyzer = {
    .name = "event_time_fraction_analyzer",
    .version = 5,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct fractions_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/octet-stream",
    .worker_served = true,
    .reads_profile = true,
    .render = render,
};
