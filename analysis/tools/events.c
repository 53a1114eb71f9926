// SPDX-License-Identifier: Apache-2.0
// Tool events: how often events of each name came and how long they took, nested ones once; by our
// rules or by those of ejKernel's profiler.  Ours; XProf has none.  docs/events.md has its answer.
#include "analysis/events/events.h"

#include <inttypes.h>
#include <math.h>

#include "analysis/tools/lib/spaces.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/text/regex.h"

struct events_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t by_id, match, max_events, min_duration, plane, prefix;
    int by, rules;
};
enum { BY_NAME, BY_ID };
enum { OWN, EJKERNEL };
#define MEMBER(name) offsetof(struct events_options, name)

static const struct xpl_tool_option kOptions[] = {
    {.key = "by",
     .type = XPL_OPTION_CHOICE,
     .offset = MEMBER(by),
     .values = "name|id",
     .preset = "name",
     .help = "group rows by name, or by NAME(PROGRAM-SCOPE)"},
    {.key = "by_id",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(by_id),
     .values = "REGEX",
     .help = "additionally group timings by the first capture group, matched in a row's name"},
    {.key = "match",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(match),
     .values = "REGEX",
     .help = "only names that match REGEX; with rules=ejkernel, the children to sum up"},
    {.key = "max_events",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(max_events),
     .values = "NUMBER|all|auto",
     .preset = "auto",
     .help = "only the first N events of each profile; auto: all, with ejkernel 10000"},
    {.key = "min_duration",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(min_duration),
     .values = "TIME|auto",
     .preset = "auto",
     .help = "only events at least this long, such as 1us; auto: 0, with ejkernel 1us"},
    {.key = "plane",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(plane),
     .values = "TEXT",
     .help = "only planes whose names contain TEXT, ignoring case (gpu); ejkernel: the first one"},
    {.key = "prefix",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(prefix),
     .values = "TEXT|auto",
     .preset = "auto",
     .help = "only names that begin with TEXT; auto: all, with ejkernel jit_"},
    {.key = "rules",
     .type = XPL_OPTION_CHOICE,
     .offset = MEMBER(rules),
     .values = "own|ejkernel",
     .preset = "own",
     .help = "ejkernel: count exactly as ejKernel's profiler does"},
};

static const struct xpl_product *const kNeeds[] = {&xpl_product_devices, NULL};

// ---- options ----

static bool is_auto(xpl_str_t s) {
    return xpl_str_eq(s, XPL_STR("auto"));
}

static xpl_status_t read_time(xpl_str_t s, uint64_t *ret, struct xpl_error *err) {
    static const struct {
        const char *name;
        double ps;
    } units[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
    double v = 0, digit = 1;
    size_t at = 0, digits = 0;
    bool fraction = false;
    for (; at < s.len; at++) {
        const char c = s.ptr[at];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        digits++;
        if (fraction)
            v += (digit /= 10) * (c - '0');
        else
            v = 10 * v + (c - '0');
    }
    const xpl_str_t unit = xpl_str_sub(s, at, s.len - at);
    if (digits && !unit.len && !(v > 0)) { // 0 is 0 in all units
        *ret = 0;
        return XPL_OK;
    }
    for (size_t i = 0; digits && i < sizeof units / sizeof *units; i++) {
        if (!xpl_str_eq(unit, xpl_str_from(units[i].name)) || v * units[i].ps >= 9e18) continue;
        *ret = (uint64_t)llround(v * units[i].ps);
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "min_duration: character %zu of \"%.*s\": write a number and ps, ns, us, ms "
                     "or s, as 1us",
                     at + 1, (int)(s.len < 40 ? s.len : 40), s.len ? s.ptr : "");
}

static xpl_status_t read_rules(const struct events_options *o, struct xpl_timings_rules *ret,
                               struct xpl_error *err) {
    const bool theirs = o->rules == EJKERNEL;
    int64_t n;
    *ret = (struct xpl_timings_rules){.plane = o->plane,
                                      .prefix = !is_auto(o->prefix) ? o->prefix
                                                : theirs            ? XPL_STR("jit_")
                                                                    : XPL_STR(""),
                                      .min_ps = theirs ? 1000000 : 0,
                                      .max_events = theirs ? 10000 : UINT64_MAX,
                                      .by_id = o->by == BY_ID};
    if (!is_auto(o->min_duration)) XPL_TRY(read_time(o->min_duration, &ret->min_ps, err));
    if (xpl_str_eq(o->max_events, XPL_STR("all"))) {
        ret->max_events = UINT64_MAX;
    } else if (!is_auto(o->max_events)) {
        if (!xpl_parse_int(o->max_events, 0, INT64_MAX, &n))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "max_events: \"%.*s\" is not a number, all or auto",
                             (int)(o->max_events.len < 40 ? o->max_events.len : 40),
                             o->max_events.len ? o->max_events.ptr : "");
        ret->max_events = (uint64_t)n;
    }
    return XPL_OK;
}

// ---- the answer ----

static void put_real(struct xpl_buf *out, const char *key, double v) {
    xpl_buf_printf(out, ",\"%s\":", key);
    xpl_json_proto_double(out, v);
}

// ejKernel has one time of each name.
static void put_row(struct xpl_buf *out, const struct xpl_timings_row *r, bool theirs) {
    xpl_buf_str(out, XPL_STR("{\"name\":"));
    xpl_json_str(out, r->name, false);
    if (theirs) {
        xpl_buf_printf(out, ",\"total_ps\":%" PRIu64 "}", r->total_ps);
        return;
    }
    xpl_buf_printf(out, ",\"count\":%" PRIu64 ",\"total_ps\":%" PRIu64 ",\"self_ps\":%" PRIu64,
                   r->count, r->total_ps, r->self_ps);
    put_real(out, "mean_ps", r->mean_ps);
    put_real(out, "std_ps", r->std_ps);
    xpl_buf_printf(out, ",\"min_ps\":%" PRIu64 ",\"p50_ps\":%" PRIu64 ",\"p99_ps\":%" PRIu64 "}",
                   r->min_ps, r->p50_ps, r->p99_ps);
}

static void put_rows(struct xpl_buf *out, const struct xpl_timings_rows *rows, bool theirs) {
    xpl_buf_printf(out, "\"events\":%" PRIu64 ",\"cut\":%s,\"planes\":[", rows->n_events,
                   rows->is_cut ? "true" : "false");
    for (size_t i = 0; i < rows->n_planes; i++) {
        if (i) xpl_buf_putc(out, ',');
        xpl_json_str(out, rows->planes[i], false);
    }
    xpl_buf_str(out, XPL_STR("],\"rows\":["));
    for (size_t i = 0; i < rows->n; i++) {
        if (i) xpl_buf_putc(out, ',');
        put_row(out, &rows->v[i], theirs);
    }
    xpl_buf_putc(out, ']');
}

static void put_ids(struct xpl_buf *out, const struct xpl_timings_ids *ids) {
    bool first = true;
    xpl_buf_str(out, XPL_STR(",\"ids\":["));
    for (size_t i = 0; i < ids->n; i++) {
        const struct xpl_timings_id *const id = &ids->v[i];
        if (!id->n) continue;
        xpl_buf_str(out, first ? XPL_STR("{\"id\":") : XPL_STR(",{\"id\":"));
        first = false;
        xpl_json_str(out, id->id, false);
        xpl_buf_printf(out, ",\"count\":%zu,\"times_ps\":[", id->n);
        for (size_t k = 0; k < id->n; k++) {
            if (k) xpl_buf_putc(out, ',');
            xpl_json_proto_double(out, id->times[k]);
        }
        xpl_buf_putc(out, ']');
        const struct xpl_timings_trimmed t = xpl_timings_trim(id->times, id->n);
        put_real(out, "mean_ps", t.mean);
        put_real(out, "std_ps", t.std);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_putc(out, ']');
}

// ---- profiles ----

struct work {
    const struct xpl_tool_input *in;
    const struct events_options *o;
    struct xpl_timings_rules rules;
    struct xpl_regex *by_id;
    struct xpl_arena arena;
    const struct xpl_xspace **spaces; // NULL: the host has no profile
    struct xpl_timings_ids ids;
    struct xpl_buf *out;
};

static xpl_status_t open_all(struct work *w, struct xpl_error *err) {
    w->spaces = xpl_arena_zalloc(&w->arena, (w->in->n_hosts + 1) * sizeof(struct xpl_xspace *));
    if (!w->spaces) XPL_RETURN_OOM(err, "hosts");
    return xpl_spaces_open(w->in, &w->arena, w->spaces, err);
}

// The host whose profile it is.
static size_t host_of(const struct work *w, const struct xpl_xspace *space) {
    size_t i = 0;
    while (w->spaces[i] != space)
        i++;
    return i;
}

// Those of hosts that have one.
static xpl_status_t list_spaces(struct work *w, const struct xpl_xspace *const **ret, size_t *ret_n,
                                struct xpl_error *err) {
    const struct xpl_xspace **const list =
        xpl_arena_array(&w->arena, w->in->n_hosts, sizeof(struct xpl_xspace *));
    *ret = list, *ret_n = 0;
    if (!list) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < w->in->n_hosts; i++)
        if (w->spaces[i]) list[(*ret_n)++] = w->spaces[i];
    return XPL_OK;
}

// Sums up the hosts that are not left out; those that turn out to be damaged then are, and it
// returns no rows.
static xpl_status_t try_sum_up(struct work *w, struct xpl_timings_rows *rows,
                               struct xpl_error *err) {
    const struct xpl_xspace *const *read;
    struct xpl_error why = {0};
    size_t n;
    XPL_TRY(list_spaces(w, &read, &n, err));
    const xpl_status_t st =
        xpl_timings_sum_up(read, n, &w->rules, w->in->exec, &w->arena, rows, &why);
    if (st != XPL_OK && !rows->n_broken) {
        if (err) *err = why;
        return st;
    }
    for (size_t i = 0; i < rows->n_broken; i++) {
        const struct xpl_timings_broken *const b = &rows->broken[i];
        XPL_TRY(xpl_spaces_leave_out(w->in, w->spaces, host_of(w, b->space), &b->why, err));
    }
    return XPL_OK;
}

static xpl_status_t sum_up(struct work *w, struct xpl_error *err) {
    struct xpl_timings_rows rows;
    do
        XPL_TRY(try_sum_up(w, &rows, err));
    while (rows.n_broken);
    xpl_buf_str(w->out, XPL_STR("{\"rules\":\"own\","));
    put_rows(w->out, &rows, false);
    return w->by_id ? xpl_timings_add_ids(&rows, false, w->by_id, &w->arena, &w->ids, err) : XPL_OK;
}

// No host has such a plane: says which planes all of them have.
static xpl_status_t no_plane(struct work *w, struct xpl_error *err) {
    const struct xpl_xspace *const *read;
    const struct xpl_plane **planes;
    size_t n, n_planes;
    XPL_TRY(list_spaces(w, &read, &n, err));
    return xpl_timings_planes(read, n, w->rules.plane, &w->arena, &planes, &n_planes, err);
}

// A host without such a plane is left out, where another has one.
static xpl_status_t by_ejkernel(struct work *w, struct xpl_error *err) {
    size_t shown = 0, without = 0;
    xpl_buf_str(w->out, XPL_STR("{\"rules\":\"ejkernel\",\"hosts\":["));
    for (size_t i = 0; i < w->in->n_hosts; i++) {
        struct xpl_timings_rows rows;
        struct xpl_error why = {0};
        if (!w->spaces[i]) continue;
        const xpl_status_t st =
            xpl_timings_by_ejkernel(w->spaces[i], &w->rules, w->in->exec, &w->arena, &rows, &why);
        if (st == XPL_NOT_FOUND) {
            without++;
            continue;
        }
        if (st != XPL_OK) {
            XPL_TRY(xpl_spaces_leave_out(w->in, w->spaces, i, &why, err));
            continue;
        }
        xpl_buf_str(w->out, shown++ ? XPL_STR(",{\"host\":") : XPL_STR("{\"host\":"));
        xpl_json_str(w->out, w->in->hosts[i].name, false);
        xpl_buf_putc(w->out, ',');
        put_rows(w->out, &rows, true);
        xpl_buf_putc(w->out, '}');
        if (w->by_id) XPL_TRY(xpl_timings_add_ids(&rows, true, w->by_id, &w->arena, &w->ids, err));
    }
    if (!shown && without) return no_plane(w, err);
    xpl_buf_putc(w->out, ']');
    return XPL_OK;
}

static xpl_status_t answer(struct work *w, struct xpl_error *err) {
    XPL_TRY(read_rules(w->o, &w->rules, err));
    struct xpl_exec *const exec = w->in->exec;
    if (w->o->match.len) XPL_TRY(xpl_regex_new(w->o->match, "match", exec, &w->rules.match, err));
    if (w->o->by_id.len) XPL_TRY(xpl_regex_new(w->o->by_id, "by_id", exec, &w->by_id, err));
    XPL_TRY(open_all(w, err));
    XPL_TRY(w->o->rules == EJKERNEL ? by_ejkernel(w, err) : sum_up(w, err));
    if (w->by_id) put_ids(w->out, &w->ids);
    xpl_buf_putc(w->out, '}');
    if (w->out->failed) XPL_RETURN_OOM(err, "events");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    struct work w = {.in = in, .o = in->options, .out = out};
    xpl_arena_init(&w.arena, in->limit);
    const xpl_status_t st = answer(&w, err);
    xpl_regex_free(w.rules.match);
    xpl_regex_free(w.by_id);
    xpl_arena_fini(&w.arena);
    return st;
}

const struct xpl_tool xpl_tool_events = {
    .name = "events",
    .version = 4,
    .needs = kNeeds,
    .facts = XPL_FACT_EVENTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct events_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .reads_profile = true,
    .render = render,
};
