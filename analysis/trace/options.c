#include "analysis/trace/options.h"

#include <math.h>
#include <stdlib.h>

#include "base/parse.h"

const char *const xpl_trace_option_keys[] = {
    "duration_ms",   "end_time_ms",        "event_name", "format",
    "full_dma",      "mpmd_pipeline_view", "resolution", "search_metadata",
    "search_prefix", "start_time_ms",      "unique_id",  NULL};

void xpl_trace_options_init(struct xpl_trace_options *o) {
    *o = (struct xpl_trace_options){.resolution = 8000};
}

static bool is(xpl_str_t key, const char *name) {
    return xpl_str_eq(key, xpl_str_from(name));
}

const char *xpl_trace_option_values(xpl_str_t key) {
    if (is(key, "full_dma") || is(key, "search_metadata") || is(key, "mpmd_pipeline_view"))
        return "true|false";
    if (is(key, "format")) return "json|pb";
    if (is(key, "event_name") || is(key, "search_prefix")) return "TEXT";
    if (is(key, "resolution") || is(key, "unique_id")) return "NUMBER";
    if (is(key, "duration_ms") || is(key, "end_time_ms") || is(key, "start_time_ms"))
        return "MILLISECONDS";
    return NULL;
}

// A decimal number, blanks around it allowed; no NaN.  Empty: false.
static bool parse_double(xpl_str_t v, double *ret) {
    char text[64];
    v = xpl_str_strip(v);
    if (v.len == 0 || v.len >= sizeof text) return false;
    memcpy(text, v.ptr, v.len);
    text[v.len] = '\0';
    for (size_t i = 0; i < v.len; i++)
        if (!strchr("0123456789+-.eE", text[i])) return false;
    char *end;
    const double d = strtod(text, &end);
    if (end != text + v.len || !isfinite(d)) return false;
    *ret = d;
    return true;
}

// A whole number, or what is left of another one.
static bool parse_count(xpl_str_t v, uint64_t *ret) {
    int64_t n;
    double d;
    if (xpl_parse_int(v, 0, INT64_MAX, &n)) {
        *ret = (uint64_t)n;
        return true;
    }
    if (!parse_double(v, &d)) return false;
    *ret = d >= 1 && d < 18446744073709551616.0 ? (uint64_t)d : 0;
    return true;
}

static bool parse_bool(xpl_str_t v, bool *ret) {
    const bool yes = is(v, "true") || is(v, "True") || is(v, "1");
    if (!yes && !is(v, "false") && !is(v, "False") && !is(v, "0")) return false;
    *ret = yes;
    return true;
}

static bool set_format(struct xpl_trace_options *o, xpl_str_t value) {
    if (!is(value, "json") && !is(value, "pb")) return false;
    o->pb = is(value, "pb");
    return true;
}

bool xpl_trace_option_set(struct xpl_trace_options *o, xpl_str_t key, xpl_str_t value,
                          bool *ret_valid) {
    bool ok = true;
    if (is(key, "resolution"))
        ok = parse_count(value, &o->resolution);
    else if (is(key, "unique_id"))
        ok = parse_count(value, &o->unique_id);
    else if (is(key, "start_time_ms")) // nothing given is as good as no option
        ok = value.len == 0 || parse_double(value, &o->start_time_ms);
    else if (is(key, "end_time_ms"))
        ok = value.len == 0 || parse_double(value, &o->end_time_ms);
    else if (is(key, "duration_ms"))
        ok = value.len == 0 || parse_double(value, &o->duration_ms);
    else if (is(key, "event_name"))
        o->event_name = value;
    else if (is(key, "search_prefix"))
        o->search_prefix = value;
    else if (is(key, "search_metadata"))
        ok = parse_bool(value, &o->search_metadata);
    else if (is(key, "full_dma"))
        ok = parse_bool(value, &o->full_dma);
    else if (is(key, "mpmd_pipeline_view"))
        ok = parse_bool(value, &o->mpmd_pipeline_view);
    else if (is(key, "format"))
        ok = set_format(o, value);
    else
        return false;
    *ret_valid = ok;
    return true;
}
