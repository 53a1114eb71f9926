// SPDX-License-Identifier: Apache-2.0
// The order of processes in the view of a pipeline whose stages run different programs (XProf:
// trace_events_to_json.h, of a release later than its public snapshot of 2.23): by the program that
// a process runs first, then by loop and layer.  These are read from names of XLA modules, such as
// "p24_loop_1_layer_24_24.prefill_step_32k(12345)" or "p0_stage0.step_4k_bucket_128k(1)".
#include <stdlib.h>
#include <string.h>

#include "analysis/trace/answer/impl.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

// Processes without a place follow the others, by pid.
#define UNRANKED (UINT32_C(1) << 30)

// ---- names ----

enum { LONGEST_NAME = 1024 }; // of a module, bytes

struct stage {
    xpl_str_t program;
    bool layered; // the name has a layer; else `layer` is the program's group
    int32_t loop, layer;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_word(char c) {
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// Reads digits at *at, at least one; larger numbers become INT32_MAX.  *ret_fits may be NULL.
static bool parse_number(xpl_str_t s, size_t *at, int32_t *ret, bool *ret_fits) {
    uint64_t v = 0;
    size_t i = *at;
    for (; i < s.len && is_digit(s.ptr[i]); i++)
        if (v <= INT32_MAX) v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    if (i == *at) return false;
    if (ret_fits) *ret_fits = v <= INT32_MAX;
    *ret = v <= INT32_MAX ? (int32_t)v : INT32_MAX;
    *at = i;
    return true;
}

static bool parse_text(xpl_str_t s, size_t *at, xpl_str_t text) {
    if (s.len - *at < text.len || memcmp(s.ptr + *at, text.ptr, text.len) != 0) return false;
    *at += text.len;
    return true;
}

// Where a word may begin: at the beginning, or behind an underscore.  *at: the first one to try.
static bool next_word(xpl_str_t s, size_t *at) {
    if (*at == 0) return true;
    for (; *at <= s.len; ++*at)
        if (s.ptr[*at - 1] == '_') return true;
    return false;
}

// "layer_<a>_<b>", "layer_<a>" or "stage<a>".
static bool parse_layer(xpl_str_t s, size_t *at, int32_t *ret) {
    size_t i = *at;
    int32_t other;
    if (parse_text(s, &i, XPL_STR("layer_")) && parse_number(s, &i, ret, NULL)) {
        size_t k = i;
        if (parse_text(s, &k, XPL_STR("_")) && parse_number(s, &k, &other, NULL)) {
            i = k;
            *ret = other < *ret ? other : *ret;
        }
        *at = i;
        return true;
    }
    i = *at;
    if (!parse_text(s, &i, XPL_STR("stage")) || !parse_number(s, &i, ret, NULL)) return false;
    *at = i;
    return true;
}

static bool find_layer(xpl_str_t s, size_t *ret_end, int32_t *ret) {
    for (size_t at = 0; next_word(s, &at); at++) {
        *ret_end = at;
        if (parse_layer(s, ret_end, ret)) return true;
    }
    return false;
}

static int32_t find_loop(xpl_str_t s) {
    for (size_t at = 0; next_word(s, &at); at++) {
        size_t i = at;
        int32_t loop;
        bool fits;
        if (parse_text(s, &i, XPL_STR("loop_")) && parse_number(s, &i, &loop, &fits))
            return fits ? loop : 0;
    }
    return 0;
}

// The program's name without "_bucket_<word>" at its end.
static xpl_str_t without_bucket(xpl_str_t s) {
    const xpl_str_t mark = XPL_STR("_bucket_");
    size_t begin = s.len;
    while (begin > 0 && is_word(s.ptr[begin - 1]))
        begin--;
    for (size_t i = begin; i + mark.len < s.len; i++)
        if (memcmp(s.ptr + i, mark.ptr, mark.len) == 0) return (xpl_str_t){s.ptr, i};
    return s;
}

// Splits "<descriptor>.<program>(" where the program, which has no dots, ends the name or is
// followed by a bracket.
static bool split_module(xpl_str_t s, xpl_str_t *ret_descriptor, xpl_str_t *ret_program) {
    size_t i = 0;
    while (i < s.len) {
        if (s.ptr[i] != '.') {
            if (!is_word(s.ptr[i]) && s.ptr[i] != '-') return false;
            i++;
            continue;
        }
        size_t begin = i, end;
        while (begin < s.len && s.ptr[begin] == '.')
            begin++;
        for (end = begin; end < s.len && s.ptr[end] != '.' && s.ptr[end] != '(';)
            end++;
        if (end > begin && (end == s.len || s.ptr[end] == '(')) {
            *ret_descriptor = (xpl_str_t){s.ptr, i};
            *ret_program = (xpl_str_t){s.ptr + begin, end - begin};
            return true;
        }
        i = begin;
    }
    return false;
}

// "p<group>_<descriptor>.<program>(".
static bool parse_module(xpl_str_t name, struct stage *ret, bool *ret_valid) {
    xpl_str_t descriptor, program;
    size_t at = 0, end;
    int32_t group;
    if (!parse_text(name, &at, XPL_STR("p")) || !parse_number(name, &at, &group, ret_valid) ||
        !parse_text(name, &at, XPL_STR("_")) ||
        !split_module((xpl_str_t){name.ptr + at, name.len - at}, &descriptor, &program))
        return false;
    *ret = (struct stage){.program = without_bucket(program), .loop = find_loop(descriptor)};
    ret->layered = find_layer(descriptor, &end, &ret->layer);
    if (!ret->layered) ret->layer = group;
    return true;
}

static bool parse_stage(xpl_str_t name, struct stage *ret) {
    bool valid;
    size_t end;
    if (name.len > LONGEST_NAME) return false; // it may have any number of rows
    if (parse_module(name, ret, &valid)) return valid;
    *ret = (struct stage){.layered = true, .program = {"", 0}};
    if (!find_layer(name, &end, &ret->layer)) return false;
    if (end >= name.len || name.ptr[end] != '.') return true;
    const size_t begin = ++end;
    while (end < name.len && name.ptr[end] != '(' && name.ptr[end] != ')')
        end++;
    if (end > begin) ret->program = without_bucket((xpl_str_t){name.ptr + begin, end - begin});
    return true;
}

// ---- programs of processes ----

struct use { // of a program by a process
    uint32_t pid;
    struct stage stage;
    uint64_t ts;         // when it first does
    uint64_t program_ts; // when any process first does
};

struct uses {
    struct xpl_arena *arena;
    XPL_VEC(struct use) v;
    XPL_VEC(uint64_t) modules; // rows of XLA modules: pid << 32 | id, in order
};

static int by_number(const void *pa, const void *pb) {
    const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

static bool find_modules(struct uses *u, const struct device_line *lines, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < lines[i].n_rows; k++) {
            const struct trc_resource *const r = &lines[i].rows[k];
            if (!xpl_str_eq(trc_str(lines[i].h->host->trace, r->name), XPL_STR("XLA Modules")))
                continue;
            uint64_t *const slot = xpl_vec_push(u->arena, &u->modules);
            if (!slot) return false;
            *slot = (uint64_t)lines[i].pid << 32 | r->id;
        }
    xpl_sort(u->modules.v, u->modules.n, sizeof *u->modules.v, by_number);
    return true;
}

static bool is_module_row(const struct uses *u, const struct shown_host *h, uint32_t track) {
    const struct trc_track *const t = &h->host->trace->tracks[track];
    const uint64_t row = (uint64_t)trc_pid(h, t->device) << 32 | (t->named ? 0 : t->id);
    return u->modules.n == 0 ||
           bsearch(&row, u->modules.v, u->modules.n, sizeof row, by_number) != NULL;
}

// Parses each name of each row once: position + 1 in u->v, 0 for names without a stage.
static bool find_uses(struct uses *u, const struct shown_host *h) {
    struct xpl_map seen = {0};
    for (size_t i = 0; i < h->shown.n; i++) {
        const struct trc_event *const e = &h->shown.events[i];
        bool added;
        uint64_t *const at = xpl_map_put(u->arena, &seen, e->track, e->name, &added);
        if (!at) return false;
        if (added) {
            struct use one = {.pid = trc_pid(h, h->host->trace->tracks[e->track].device),
                              .ts = e->ts};
            if (!is_module_row(u, h, e->track) ||
                !parse_stage(trc_str(h->host->trace, e->name), &one.stage))
                continue;
            struct use *const slot = xpl_vec_push(u->arena, &u->v);
            if (!slot) return false;
            *slot = one;
            *at = u->v.n;
        } else if (*at && e->ts < u->v.v[*at - 1].ts) {
            u->v.v[*at - 1].ts = e->ts;
        }
    }
    return true;
}

// ---- the order ----

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}
static int by_program(const void *pa, const void *pb) {
    const struct use *const a = pa, *const b = pb;
    const int c = xpl_str_cmp(a->stage.program, b->stage.program);
    return c ? c : compare(a->stage.layered, b->stage.layered);
}
static int by_process(const void *pa, const void *pb) {
    const struct use *const a = pa, *const b = pb;
    int c = compare(a->pid, b->pid);
    if (c == 0) c = compare(b->stage.layered, a->stage.layered);
    return c ? c : xpl_str_cmp(a->stage.program, b->stage.program);
}
static int by_place(const void *pa, const void *pb) {
    const struct use *const a = pa, *const b = pb;
    int c = compare(a->program_ts, b->program_ts);
    if (c == 0) c = xpl_str_cmp(a->stage.program, b->stage.program);
    if (c == 0) c = compare((uint32_t)a->stage.loop, (uint32_t)b->stage.loop);
    if (c == 0) c = compare((uint32_t)a->stage.layer, (uint32_t)b->stage.layer);
    return c ? c : compare(a->pid, b->pid);
}

static void find_program_starts(struct use *v, size_t n) {
    xpl_sort(v, n, sizeof *v, by_program);
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t ts = v[i].ts;
        for (end = i; end < n && by_program(&v[i], &v[end]) == 0; end++)
            ts = v[end].ts < ts ? v[end].ts : ts;
        for (size_t k = i; k < end; k++)
            v[k].program_ts = ts;
    }
}

// One use per process, of the program it runs first; a program with layers comes before any
// without. The stage of a program is the least of its names'.
static size_t select_first_uses(struct use *v, size_t n) {
    size_t out = 0;
    xpl_sort(v, n, sizeof *v, by_process);
    for (size_t i = 0, end; i < n; i = end) {
        struct use one = v[i];
        for (end = i + 1; end < n && by_process(&v[i], &v[end]) == 0; end++) {
            const struct stage *const s = &v[end].stage;
            one.ts = v[end].ts < one.ts ? v[end].ts : one.ts;
            if (s->loop < one.stage.loop ||
                (s->loop == one.stage.loop && s->layer < one.stage.layer))
                one.stage.loop = s->loop, one.stage.layer = s->layer;
        }
        struct use *const last = out ? &v[out - 1] : NULL;
        if (!last || last->pid != one.pid)
            v[out++] = one;
        else if (last->stage.layered == one.stage.layered && one.ts < last->ts)
            *last = one;
    }
    return out;
}

xpl_status_t trc_mpmd_order(const struct writer *w, struct device_line *lines, size_t n,
                            struct xpl_error *err) {
    struct uses u = {.arena = w->arena};
    if (!find_modules(&u, lines, n)) XPL_RETURN_OOM(err, "trace programs");
    for (size_t i = 0; i < w->n; i++)
        if (!find_uses(&u, &w->hosts[i])) XPL_RETURN_OOM(err, "trace programs");
    for (size_t i = 0; i < n; i++)
        lines[i].has_order = u.v.n != 0, lines[i].order = UNRANKED + lines[i].pid;
    if (u.v.n == 0) return XPL_OK;
    find_program_starts(u.v.v, u.v.n);
    const size_t ranked = select_first_uses(u.v.v, u.v.n);
    xpl_sort(u.v.v, ranked, sizeof *u.v.v, by_place);
    for (size_t i = 0; i < ranked; i++) {
        size_t lo = 0, hi = n; // lines are in order of pid
        while (lo < hi) {
            const size_t mid = lo + (hi - lo) / 2;
            if (lines[mid].pid < u.v.v[i].pid)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo < n && lines[lo].pid == u.v.v[i].pid) lines[lo].order = (uint32_t)i;
    }
    return XPL_OK;
}
