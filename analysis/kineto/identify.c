// SPDX-License-Identifier: Apache-2.0
// Of which process a trace is, by its begin and its name.
#include <string.h>

#include "analysis/kineto/kineto.h"
#include "base/text/parse.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

// ---- the begin of the text ----

// The text behind a key and its colon; empty: the key is not there.
static xpl_str_t value_of(xpl_str_t s, const char *key) {
    const size_t at = xpl_str_find(s, xpl_str_from(key), 0);
    if (at == SIZE_MAX) return XPL_STR("");
    s = xpl_str_sub(s, at + strlen(key), SIZE_MAX);
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\n' || s.ptr[0] == ':'))
        s = xpl_str_sub(s, 1, SIZE_MAX);
    return s;
}

static int64_t number_at(xpl_str_t s, int64_t other) {
    int64_t v;
    size_t n = 0;
    while (n < s.len && is_digit(s.ptr[n]))
        n++;
    return n && n < s.len && xpl_parse_int(xpl_str_sub(s, 0, n), 0, INT64_MAX, &v) ? v : other;
}

// The members `rank` and `world_size` of the object at the begin of `s`, not those of objects in
// it.
static void read_distributed(xpl_str_t s, struct xpl_profile_identity *ret) {
    int depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"') {
            const xpl_str_t rest = xpl_str_sub(s, i, SIZE_MAX);
            in_text = !in_text;
            if (in_text && depth == 1 && xpl_str_starts(rest, XPL_STR("\"rank\"")))
                ret->rank = number_at(value_of(rest, "\"rank\""), -1);
            if (in_text && depth == 1 && xpl_str_starts(rest, XPL_STR("\"world_size\"")))
                ret->world_size = number_at(value_of(rest, "\"world_size\""), -1);
        } else if (!in_text && (c == '{' || c == '[')) {
            depth++;
        } else if (!in_text && (c == '}' || c == ']') && --depth == 0) {
            return;
        }
    }
}

// Microseconds with decimals, as whole nanoseconds; 0: none.
static int64_t time_at(xpl_str_t s) {
    if (s.len && s.ptr[0] == '"') s = xpl_str_sub(s, 1, SIZE_MAX);
    int64_t ns = number_at(s, 0);
    size_t at = 0, decimals = 0;
    while (at < s.len && is_digit(s.ptr[at]))
        at++;
    const bool has_decimals = at < s.len && s.ptr[at] == '.';
    for (; decimals < 3; decimals++) {
        const size_t i = at + 1 + decimals;
        const bool more = has_decimals && i < s.len && is_digit(s.ptr[i]);
        if (__builtin_mul_overflow(ns, 10, &ns) ||
            __builtin_add_overflow(ns, more ? s.ptr[i] - '0' : 0, &ns))
            return 0;
    }
    return ns;
}

static void read_head(xpl_str_t head, struct xpl_profile_identity *ret) {
    enum { LEAST_S = 946684800 }; // 2000: an earlier time counts from another instant
    const xpl_str_t info = value_of(head, "\"distributedInfo\"");
    if (info.len && info.ptr[0] == '{') read_distributed(info, ret);
    const int64_t base = number_at(value_of(head, "\"baseTimeNanoseconds\""), 0);
    const xpl_str_t events = value_of(head, "\"traceEvents\"");
    const int64_t first = time_at(value_of(events, "\"ts\""));
    int64_t at;
    if (!first || __builtin_add_overflow(base, first, &at)) at = base;
    ret->begin_ns = at / 1000000000 >= LEAST_S ? at : 0;
}

// ---- names ----

// The number behind the word, with at most one of "-_ " between; -1: there is none.
static int64_t number_behind(xpl_str_t s, const char *word, bool at_begin) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n < s.len; i++) {
        size_t k = 0;
        while (k < n && lower(s.ptr[i + k]) == word[k])
            k++;
        // "tp" within a word is another one's end.
        const bool begins = !i || !((lower(s.ptr[i - 1]) >= 'a' && lower(s.ptr[i - 1]) <= 'z'));
        if (k < n || (at_begin && !begins)) continue;
        k = i + n;
        if (s.ptr[k] == '-' || s.ptr[k] == '_' || s.ptr[k] == ' ') k++;
        size_t end = k;
        while (end < s.len && is_digit(s.ptr[end]))
            end++;
        int64_t v;
        if (end > k && xpl_parse_int(xpl_str_sub(s, k, end - k), 0, INT32_MAX, &v)) return v;
    }
    return -1;
}

// "rank_3", and "TP-3" of servers of models.
static int64_t rank_of_name(xpl_str_t s) {
    const int64_t rank = number_behind(s, "rank", false);
    return rank >= 0 ? rank : number_behind(s, "tp", true);
}

// WORKER.TIME, where TIME has s, ms, us or ns since 1970.
static void read_stem(xpl_str_t stem, struct xpl_profile_identity *ret) {
    int64_t scale = 1, v;
    ret->worker_len = stem.len;
    const char *const dot = stem.len ? memrchr(stem.ptr, '.', stem.len) : NULL;
    if (!dot || dot == stem.ptr) return;
    const xpl_str_t number = xpl_str_sub(stem, (size_t)(dot - stem.ptr) + 1, SIZE_MAX);
    if (number.len != 10 && number.len != 13 && number.len != 16 && number.len != 19) return;
    for (size_t i = number.len; i < 19; i++)
        scale *= 10;
    if (!xpl_parse_int(number, 1, INT64_MAX / scale, &v)) return;
    ret->written_ns = v * scale;
    ret->worker_len = (size_t)(dot - stem.ptr);
}

static xpl_str_t last_part(xpl_str_t path) {
    const char *const slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? xpl_str_sub(path, (size_t)(slash - path.ptr) + 1, SIZE_MAX) : path;
}

void xpl_kineto_identify(xpl_str_t dir, xpl_str_t stem, xpl_bytes_t head,
                         struct xpl_profile_identity *ret) {
    *ret = (struct xpl_profile_identity){.rank = -1, .world_size = -1};
    read_head((xpl_str_t){(const char *)head.ptr, head.len}, ret);
    read_stem(stem, ret);
    const xpl_str_t worker = xpl_str_sub(stem, 0, ret->worker_len);
    dir = last_part(dir);
    if (ret->rank < 0) ret->rank = rank_of_name(worker);
    if (ret->rank < 0) ret->rank = number_behind(dir, "rank", false);
    ret->is_part = xpl_str_eq(dir, XPL_STR("capture_traces")) ||
                   xpl_str_has(stem, XPL_STR("graph_capture")) ||
                   xpl_str_has(stem, XPL_STR("capture_trace"));
}

// ---- other texts ----

const char *xpl_kineto_refusal(xpl_bytes_t head) {
    static const struct {
        xpl_str_t begin;
        const char *text;
    } others[] = {
        {{"\x1f\x8b", 2}, "the trace was compressed twice: decompress it once (gzip -d)"},
        {{"\xff\xfe", 2}, "the file is UTF-16, and JSON is UTF-8: convert it (iconv -f UTF-16)"},
        {{"\xfe\xff", 2}, "the file is UTF-16, and JSON is UTF-8: convert it (iconv -f UTF-16)"},
        {{"{\0", 2}, "the file is UTF-16, and JSON is UTF-8: convert it (iconv -f UTF-16LE)"},
        {{"version https://git-lfs", 23},
         "the file is a pointer of Git LFS: fetch the trace (git lfs pull)"},
    };
    const xpl_str_t s = {(const char *)head.ptr, head.len};
    if (!s.len) return "the file is empty";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (xpl_str_starts(s, others[i].begin)) return others[i].text;
    return "the file is not a trace: JSON of torch.profiler begins with { and has the key "
           "traceEvents";
}
