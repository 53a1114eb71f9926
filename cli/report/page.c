// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

#include "cli/document/document.h"
#include "cli/report/parts.h"
#include "cli/table.h"

enum { NAME_LENGTH = 160, TEXT_LENGTH = 1000, MOST_ROWS = 50, MOST_STEPS = 100 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<style>\n"
    ":root{color-scheme:light dark;--text:#1a1f26;--muted:#57606a;--line:#d9dee4;--ground:#fff;"
    "--card:#f5f6f8}\n"
    "@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--muted:#9aa4af;--line:#363d46;"
    "--ground:#0f1318;--card:#181d24}}\n"
    "body{font:14px/1.5 system-ui,sans-serif;color:var(--text);background:var(--ground);"
    "max-width:1100px;margin:24px auto;padding:0 16px;overflow-wrap:anywhere}\n"
    "h1{font-size:22px;margin:0}h2{font-size:16px;margin:24px 0 8px}.muted{color:var(--muted)}"
    ".verdict{font-size:16px;font-weight:600}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px}.tile{background:var(--card);border:1px solid "
    "var(--line);border-radius:8px;padding:8px 14px;min-width:150px}.tile b{display:block;"
    "font-size:19px}\n"
    ".parts{display:flex;height:24px;border-radius:5px;overflow:hidden}.legend span{margin-right:"
    "16px;white-space:nowrap}.legend i{display:inline-block;width:11px;height:11px;border-radius:"
    "3px;margin-right:5px}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}th{text-align:"
    "left;color:var(--muted);font-size:12.5px}td,th{padding:3px 14px 3px 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}.n{text-align:right;white-space:nowrap}\n"
    "li{margin:0 0 12px}p{margin:0 0 4px}.window{width:100%;margin:6px 0;background:var(--card);"
    "border:1px solid var(--line);border-radius:6px}.window text{font-size:10px;fill:#14181d}"
    ".window .thread{fill:var(--muted)}summary{cursor:pointer}\n"
    ".c0{fill:#8ab4f8;background:#3a6fd8}.c1{fill:#f6b26b;background:#e08a2c}.c2{fill:#93c98a;"
    "background:#3f9b57}.c3{fill:#e79aa6;background:#c94f64}.c4{fill:#b7a1e8;background:#7c5cc4}"
    ".c5{fill:#74c7c9;background:#1f9aa0}.c6{fill:#d9c45f;background:#b39a1e}.c7{fill:#e59ccb;"
    "background:#c2549c}.c8{fill:#9fb4c8;background:#8793a1}\n"
    "</style>";

// ---- texts ----

static void put_member(struct xpl_buf *out, const json_t *o, const char *key) {
    xpl_report_text(out, xpl_document_text(o, key), TEXT_LENGTH);
}

static void put_time(struct xpl_buf *out, double ps) {
    char text[32];
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(ps), 1e19));
    xpl_buf_printf(out, "%s%s", ps < 0 ? "\xe2\x88\x92" : "", text);
}

// ---- head, verdict, figures ----

static double share_of(const json_t *times, const char *const *keys) {
    double sum = 0;
    for (; *keys; keys++)
        sum += xpl_document_real(times, *keys);
    return sum;
}

// docs/findings.md has the causes; the pages draw the same parts.
static const struct {
    const char *name;
    const char *const keys[3];
} parts[] = {{"Compute", {"compute_percent", "overlapped_collectives_percent"}},
             {"Collectives", {"exposed_collectives_percent"}},
             {"Copies", {"host_copies_percent", "device_copies_percent"}},
             {"Callbacks", {"callback_percent"}},
             {"Input", {"input_percent"}},
             {"Compile, checkpoint", {"compile_percent", "checkpoint_percent"}},
             {"Launch", {"launch_percent", "queued_percent"}},
             {"Host", {"host_percent"}},
             {"Idle, not known why", {"unknown_percent"}}};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void put_verdict(const struct xpl_report *r, struct xpl_buf *out) {
    xpl_buf_str(out, XPL_STR("<p class=\"verdict\">"));
    put_member(out, json_object_get(r->findings, "verdict"), "text");
    xpl_buf_str(out, XPL_STR(".</p>"));
}

static void put_step_tile(const json_t *steps, struct xpl_buf *out) {
    const size_t n = json_array_size(steps);
    double sum = 0, least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        const double ps = xpl_document_real(json_array_get(steps, i), "slowest_core_ps");
        sum += ps, least = fmin(least, ps), most = fmax(most, ps);
    }
    xpl_buf_str(out, XPL_STR("<div class=\"tile\">Step time<b>"));
    if (n)
        put_time(out, sum / (double)n);
    else
        xpl_buf_str(out, XPL_STR("\xe2\x80\x93"));
    xpl_buf_str(out, XPL_STR("</b><span class=\"muted\">"));
    if (n) {
        put_time(out, least);
        xpl_buf_str(out, XPL_STR(" to "));
        put_time(out, most);
        xpl_buf_printf(out, ", %zu step%s", n, n == 1 ? "" : "s");
    } else {
        xpl_buf_str(out, XPL_STR("no step markers"));
    }
    xpl_buf_str(out, XPL_STR("</span></div>"));
}

static void put_tiles(const struct xpl_report *r, struct xpl_buf *out) {
    const json_t *const device = json_object_get(r->summary, "device");
    xpl_buf_str(out, XPL_STR("<div class=\"tiles\">"));
    put_step_tile(json_object_get(r->summary, "steps"), out);
    xpl_buf_printf(out,
                   "<div class=\"tile\">Computing<b>%.1f%%</b><span class=\"muted\">of the "
                   "time of all devices</span></div><div class=\"tile\">Device<b>",
                   share_of(json_object_get(r->findings, "times"), parts[0].keys));
    put_member(out, device, "type");
    const bool is_cpu = json_is_integer(json_object_get(device, "recorded_threads"));
    xpl_buf_printf(out, "</b><span class=\"muted\">%.0f %s</span></div>",
                   xpl_document_real(device, is_cpu ? "recorded_threads" : "cores"),
                   is_cpu ? "recorded threads" : "cores");
    xpl_buf_printf(out, "<div class=\"tile\">Hosts<b>%zu</b></div></div>",
                   json_array_size(json_object_get(r->summary, "hosts")));
}

static void put_breakdown(const json_t *times, struct xpl_buf *out) {
    xpl_buf_str(out, XPL_STR("<h2>Where the time goes</h2><div class=\"parts\">"));
    for (size_t i = 0; i < N_PARTS; i++) {
        const double share = share_of(times, parts[i].keys);
        if (share > 0)
            xpl_buf_printf(out, "<div class=\"c%zu\" style=\"width:%.3f%%\"></div>", i, share);
    }
    xpl_buf_str(out, XPL_STR("</div><p class=\"legend\">"));
    for (size_t i = 0; i < N_PARTS; i++) {
        const double share = share_of(times, parts[i].keys);
        if (share > 0)
            xpl_buf_printf(out, "<span><i class=\"c%zu\"></i>%s %.1f%%</span> ", i, parts[i].name,
                           share);
    }
    xpl_buf_str(out, XPL_STR("</p>"));
}

// ---- findings ----

static void put_timed(const char *title, const json_t *list, const char *key, struct xpl_buf *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const o = json_array_get(list, i);
        xpl_buf_printf(out, "%s%s", i ? ", " : "<p><span class=\"muted\">", i ? "" : title);
        if (!i) xpl_buf_str(out, XPL_STR("</span> "));
        if (xpl_document_text(o, key).len)
            xpl_report_text(out, xpl_document_text(o, key), NAME_LENGTH);
        else
            xpl_buf_printf(out, "%.0f", xpl_document_real(o, "step"));
        xpl_buf_putc(out, ' ');
        put_time(out, xpl_document_real(o, "time_ps"));
    }
    if (json_array_size(list)) xpl_buf_str(out, XPL_STR("</p>"));
}

static void put_window(const json_t *f, const json_t *trace, struct xpl_buf *out) {
    const json_t *const w = json_object_get(f, "window");
    if (!trace) return;
    xpl_buf_str(out, XPL_STR("<p><span class=\"muted\">Trace of "));
    put_member(out, w, "host");
    xpl_buf_str(out, XPL_STR(", "));
    put_time(out, xpl_document_real(w, "duration_ps"));
    xpl_buf_str(out, XPL_STR(" from "));
    put_time(out, xpl_document_real(w, "begin_ps"));
    xpl_buf_str(out, XPL_STR(" on</span></p>"));
    xpl_report_window(trace, xpl_document_real(w, "begin_ps"), xpl_document_real(w, "duration_ps"),
                      out);
}

static void put_findings(const struct xpl_report *r, struct xpl_buf *out) {
    const json_t *const list = json_object_get(r->findings, "findings");
    xpl_buf_str(out, XPL_STR("<h2>Findings</h2><ol>"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const f = json_array_get(list, i);
        xpl_buf_str(out, XPL_STR("<li><p><b>"));
        put_member(out, f, "kind");
        xpl_buf_str(out, XPL_STR("</b>"));
        if (xpl_document_real(f, "saving_percent") > 0)
            xpl_buf_printf(out, " (could save %.1f%%)", xpl_document_real(f, "saving_percent"));
        xpl_buf_str(out, XPL_STR(": "));
        put_member(out, f, "text");
        xpl_buf_str(out, XPL_STR("</p>"));
        put_timed("Ops", json_object_get(f, "ops"), "name", out);
        put_timed("Steps", json_object_get(f, "steps"), "name", out);
        xpl_buf_str(out, XPL_STR("<p>"));
        put_member(out, f, "advice");
        xpl_buf_str(out, XPL_STR("</p>"));
        put_window(f, i < XPL_REPORT_WINDOWS ? r->windows[i] : NULL, out);
        xpl_buf_str(out, XPL_STR("</li>"));
    }
    xpl_buf_str(out, json_array_size(list) ? XPL_STR("</ol>")
                                           : XPL_STR("</ol><p>No cause takes 1% of the time.</p>"));
}

// ---- tables ----

enum form { TEXT, COUNT, TIME, NANOSECONDS, BYTES, PERCENT };

struct column {
    const char *title, *key;
    enum form form;
};

static void put_number(enum form form, double v, struct xpl_buf *out) {
    char change[32];
    if (form == PERCENT)
        xpl_show_change(change, v, 1);
    else
        (void)snprintf(change, sizeof change, "%.0f", v);
    xpl_buf_str(out, xpl_str_from(change));
}

static void put_cell(const struct column *c, const json_t *row, struct xpl_buf *out) {
    const json_t *const v = json_object_get(row, c->key);
    char bytes[32];
    xpl_buf_str(out, c->form == TEXT ? XPL_STR("<td>") : XPL_STR("<td class=\"n\">"));
    if (c->form == TEXT)
        xpl_report_text(out, xpl_document_text(row, c->key), NAME_LENGTH);
    else if (!json_is_number(v))
        xpl_buf_str(out, XPL_STR("\xe2\x80\x93"));
    else if (c->form == TIME || c->form == NANOSECONDS)
        put_time(out, json_number_value(v) * (c->form == TIME ? 1 : 1000));
    else if (c->form == BYTES)
        xpl_show_bytes(bytes, (uint64_t)fmax(0, fmin(json_number_value(v), 1e18))),
            xpl_buf_str(out, xpl_str_from(bytes));
    else
        put_number(c->form, json_number_value(v), out);
    xpl_buf_str(out, XPL_STR("</td>"));
}

// The first rows of a table, of which the caller has sorted the greatest first.  Nothing of one
// without rows.
static void put_table(const char *title, const json_t *rows, const struct column *columns,
                      size_t most, struct xpl_buf *out) {
    const size_t n = json_array_size(rows);
    if (!n) return;
    xpl_buf_printf(out, "<h2>%s</h2><table><thead><tr>", title);
    for (const struct column *c = columns; c->title; c++)
        xpl_buf_printf(out, "<th%s>%s</th>", c->form == TEXT ? "" : " class=\"n\"", c->title);
    xpl_buf_str(out, XPL_STR("</tr></thead><tbody>"));
    for (size_t i = 0; i < n && i < most; i++) {
        xpl_buf_str(out, XPL_STR("<tr>"));
        for (const struct column *c = columns; c->title; c++)
            put_cell(c, json_array_get(rows, i), out);
        xpl_buf_str(out, XPL_STR("</tr>\n"));
    }
    xpl_buf_str(out, XPL_STR("</tbody></table>"));
    if (n > most) xpl_buf_printf(out, "<p class=\"muted\">and %zu more</p>", n - most);
}

static void put_tables(const json_t *summary, struct xpl_buf *out) {
    static const struct column ops[] = {{"Op", "name", TEXT},
                                        {"Category", "category", TEXT},
                                        {"Count", "occurrences", COUNT},
                                        {"Self time", "self_time_ps", TIME},
                                        {"Time", "time_ps", TIME},
                                        {"Framework op", "framework_op", TEXT},
                                        {NULL, NULL, TEXT}};
    static const struct column kernels[] = {{"Kernel", "name", TEXT},
                                            {"Count", "occurrences", COUNT},
                                            {"Total", "total_ns", NANOSECONDS},
                                            {"Least", "min_ns", NANOSECONDS},
                                            {"Most", "max_ns", NANOSECONDS},
                                            {"Op", "op", TEXT},
                                            {NULL, NULL, TEXT}};
    static const struct column steps[] = {{"Step", "step", COUNT},
                                          {"Name", "name", TEXT},
                                          {"Mean of cores", "mean_of_cores_ps", TIME},
                                          {"Slowest core", "slowest_core_ps", TIME},
                                          {NULL, NULL, TEXT}};
    static const struct column memory[] = {{"Host", "host", TEXT},
                                           {"Memory", "allocator", TEXT},
                                           {"Peak", "peak_bytes", BYTES},
                                           {"Capacity", "capacity_bytes", BYTES},
                                           {NULL, NULL, TEXT}};
    put_table("Device ops", json_object_get(summary, "device_ops"), ops, MOST_ROWS, out);
    put_table("Kernels", json_object_get(summary, "kernels"), kernels, MOST_ROWS, out);
    put_table("Host ops", json_object_get(summary, "host_ops"), ops, MOST_ROWS, out);
    put_table("Steps", json_object_get(summary, "steps"), steps, MOST_STEPS, out);
    put_table("Memory", json_object_get(summary, "memory"), memory, MOST_ROWS, out);
}

// ---- the comparison ----

static void put_step_change(const json_t *compared, struct xpl_buf *out) {
    const json_t *const d = json_object_get(compared, "step_time");
    const json_t *const ends = json_object_get(d, "interval_ps");
    char change[32];
    if (!json_is_number(json_object_get(d, "difference_percent"))) {
        xpl_buf_str(out, XPL_STR("<p>The step times of one side are not known.</p>"));
        return;
    }
    xpl_buf_str(out, XPL_STR("<p>Step time: "));
    put_time(out, xpl_document_real(json_object_get(compared, "a"), "mean_step_ps"));
    xpl_buf_str(out, XPL_STR(" before, "));
    put_time(out, xpl_document_real(json_object_get(compared, "b"), "mean_step_ps"));
    xpl_show_change(change, xpl_document_real(d, "difference_percent"), 1);
    xpl_buf_printf(out, " now (%s", change);
    if (json_is_array(ends)) {
        xpl_buf_str(out, XPL_STR("; difference "));
        put_time(out, json_number_value(json_array_get(ends, 0)));
        xpl_buf_str(out, XPL_STR(" to "));
        put_time(out, json_number_value(json_array_get(ends, 1)));
        xpl_buf_str(out, XPL_STR(", 95%"));
    }
    xpl_buf_str(out, XPL_STR(")</p>"));
}

static void put_compared(const struct xpl_report *r, struct xpl_buf *out) {
    static const struct column times[] = {
        {"Time per step", "cause", TEXT},    {"Base", "a_ps", TIME},
        {"This run", "b_ps", TIME},          {"Difference", "difference_ps", TIME},
        {"", "difference_percent", PERCENT}, {NULL, NULL, TEXT}};
    static const struct column ops[] = {
        {"Op per step", "op", TEXT}, {"Category", "category", TEXT},
        {"", "state", TEXT},         {"Base", "a_ps", TIME},
        {"This run", "b_ps", TIME},  {"Difference", "difference_ps", TIME},
        {NULL, NULL, TEXT}};
    if (!r->compared) return;
    xpl_buf_str(out, XPL_STR("<h2>Against "));
    xpl_report_text(out, xpl_str_from(r->base), NAME_LENGTH);
    xpl_buf_str(out, XPL_STR("</h2>"));
    put_step_change(r->compared, out);
    put_table("Causes", json_object_get(r->compared, "times"), times, MOST_ROWS, out);
    put_table("Ops that differ", json_object_get(r->compared, "ops"), ops, MOST_ROWS, out);
}

void xpl_report_page(const struct xpl_report *r, struct xpl_buf *out) {
    const xpl_str_t session = xpl_document_text(r->summary, "session");
    xpl_buf_str(out, xpl_str_from(head));
    xpl_buf_str(out, XPL_STR("<title>"));
    xpl_report_text(out, session, NAME_LENGTH);
    xpl_buf_str(out, XPL_STR("</title></head><body><h1>"));
    xpl_report_text(out, session, NAME_LENGTH);
    xpl_buf_str(out, XPL_STR("</h1><p class=\"muted\">by xplanectl " XPL_VERSION "</p>"));
    put_verdict(r, out);
    put_tiles(r, out);
    if (json_object_get(r->findings, "times"))
        put_breakdown(json_object_get(r->findings, "times"), out);
    put_compared(r, out);
    put_findings(r, out);
    put_tables(r->summary, out);
    xpl_buf_str(out, XPL_STR("</body></html>\n"));
}
