// SPDX-License-Identifier: Apache-2.0
// A gate's report, for the summary of a job of GitHub or GitLab.
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/document/document.h"
#include "cli/runs/gate.h"
#include "cli/table.h"

enum { MOST_OPS = 10, MOST_NAME = 80 };

static const char *outcome_of(int status) {
    return status == XPL_EXIT_THRESHOLD                         ? "failed"
           : status == XPL_EXIT_UNKNOWN                         ? "cannot tell"
           : status == XPL_EXIT_OK || status == XPL_EXIT_PARTLY ? "passed"
                                                                : "error";
}

// Names come from profiles.  Within <code> a name mentions no user; punctuation as character
// references has no meaning in Markdown, nor in HTML.  Control characters, and those that change
// the direction of text, are shown as "?".
static void put_name(FILE *out, xpl_str_t name) {
    size_t i = 0, used;
    (void)fputs("<code>", out);
    for (int n = 0; i < name.len && n < MOST_NAME; i += used, n++) {
        const xpl_str_t shown = xpl_utf8_shown(xpl_str_sub(name, i, SIZE_MAX), &used);
        for (size_t k = 0; k < shown.len; k++) {
            const unsigned char c = (unsigned char)shown.ptr[k];
            if (isalnum(c) || c >= 0x80 || c == '/' || c == '.' || c == ' ')
                (void)fputc(c, out);
            else
                (void)fprintf(out, "&#%u;", c);
        }
    }
    (void)fputs(i < name.len ? "\xe2\x80\xa6</code>" : "</code>", out);
}

static void put_time(FILE *out, double ps, bool sign) {
    char text[32];
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(ps), 1e19));
    (void)fprintf(out, "%s%s", !sign ? "" : ps < 0 ? "-" : "+", text);
}

static void put_percent(FILE *out, const json_t *v) {
    char text[32] = "";
    if (json_is_number(v)) xpl_show_change(text, json_number_value(v), 2);
    (void)fputs(text, out);
}

// Cells of a metric behind its name.
static void put_cells(FILE *out, const json_t *m) {
    const json_t *const ends = json_object_get(m, "interval_percent");
    (void)fputs(" | ", out);
    put_time(out, xpl_document_real(m, "a_ps"), false);
    (void)fputs(" | ", out);
    put_time(out, xpl_document_real(m, "b_ps"), false);
    (void)fputs(" | ", out);
    put_percent(out, json_object_get(m, "difference_percent"));
    (void)fputs(" | ", out);
    if (json_is_array(ends)) {
        put_percent(out, json_array_get(ends, 0));
        (void)fputs(" to ", out);
        put_percent(out, json_array_get(ends, 1));
    }
    (void)fputs(" |\n", out);
}

static void put_table(FILE *out, const json_t *all) {
    const json_t *const a = json_object_get(all, "a"), *const b = json_object_get(all, "b");
    static const struct {
        const char *key, *name;
    } metrics[] = {{"step_time", "step time"}, {"median_step_time", "median step"}};
    size_t i;
    json_t *t;
    (void)fprintf(out,
                  "\n| | baseline | this run | difference | 95%% interval |\n"
                  "| --- | ---: | ---: | ---: | ---: |\n| runs | %.0f | %.0f | | |\n"
                  "| steps | %.0f | %.0f | | |\n",
                  xpl_document_real(a, "runs"), xpl_document_real(b, "runs"),
                  xpl_document_real(a, "steps"), xpl_document_real(b, "steps"));
    for (i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *const m = json_object_get(all, metrics[i].key);
        if (!json_is_number(json_object_get(m, "difference_ps"))) continue;
        (void)fprintf(out, "| **%s**", metrics[i].name);
        put_cells(out, m);
    }
    json_array_foreach(json_object_get(all, "times"), i, t) {
        if (!(xpl_document_real(t, "a_ps") > 0) && !(xpl_document_real(t, "b_ps") > 0)) continue;
        (void)fputs("| ", out);
        put_name(out, xpl_document_text(t, "cause"));
        put_cells(out, t);
    }
}

static void put_noise(FILE *out, const json_t *all) {
    const json_t *const d = json_object_get(all, "step_time");
    const json_t *const history = json_object_get(all, "history");
    const char *const noise = xpl_document_chars(d, "noise");
    if (strcmp(noise, "steps") == 0)
        (void)fputs("\nOne run a side: the intervals have no noise between runs.\n", out);
    if (strcmp(noise, "runs") != 0 && strcmp(noise, "history") != 0) return;
    (void)fputs("\nNoise between ", out);
    if (strcmp(noise, "history") == 0) {
        (void)fprintf(out, "%.0f sessions labelled ", xpl_document_real(history, "sessions"));
        put_name(out, xpl_document_text(history, "label"));
    } else {
        (void)fputs("the runs", out);
    }
    (void)fputs(": a difference of ", out);
    put_time(out, xpl_document_real(d, "detectable_ps"), false);
    (void)fprintf(out, " (%.1f%%) would have been seen.\n",
                  xpl_document_real(d, "detectable_percent"));
}

static void put_ops(FILE *out, const json_t *all) {
    const json_t *const ops = json_object_get(all, "ops");
    if (!json_array_size(ops)) return;
    (void)fputs("\n<details><summary>Ops that differ most, for each device and step</summary>\n\n"
                "| op | baseline | this run | difference | |\n"
                "| --- | ---: | ---: | ---: | --- |\n",
                out);
    for (size_t i = 0; i < json_array_size(ops) && i < MOST_OPS; i++) {
        const json_t *const o = json_array_get(ops, i);
        const char *const state = xpl_document_chars(o, "state");
        (void)fputs("| ", out);
        put_name(out, xpl_document_text(o, "op"));
        (void)fputs(" | ", out);
        put_time(out, xpl_document_real(o, "a_ps"), false);
        (void)fputs(" | ", out);
        put_time(out, xpl_document_real(o, "b_ps"), false);
        (void)fputs(" | ", out);
        put_time(out, xpl_document_real(o, "difference_ps"), true);
        (void)fprintf(out, " | %s |\n", strcmp(state, "both") == 0 ? "" : state);
    }
    (void)fputs("\n</details>\n", out);
}

bool xpl_gate_print(const void *gate, FILE *out) {
    const struct xpl_gate *const g = gate;
    (void)fprintf(out, "### Performance gate: %s\n", outcome_of(g->status));
    for (size_t i = 0; i < g->n_sentences; i++)
        (void)fprintf(out, "\n%s.\n", g->sentences[i]);
    put_table(out, g->comparison);
    put_noise(out, g->comparison);
    put_ops(out, g->comparison);
    return true;
}

json_t *xpl_gate_json(const struct xpl_gate *g) {
    json_t *const doc = json_object(), *const list = json_array();
    for (size_t i = 0; i < g->n_sentences; i++)
        (void)json_array_append_new(list, json_string(g->sentences[i]));
    (void)json_object_set_new(doc, "exit_status", json_integer(g->status));
    (void)json_object_set_new(doc, "outcome", json_string(outcome_of(g->status)));
    (void)json_object_set_new(doc, "verdicts", list);
    (void)json_object_set_new(doc, "comparison", json_deep_copy(g->comparison));
    return doc;
}
