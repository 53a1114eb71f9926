// SPDX-License-Identifier: Apache-2.0
// `xplanectl` without a command: the verdict on the newest session of the daemon.
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "base/text/terminal.h"
#include "cli/document/document.h"
#include "cli/remote.h"
#include "cli/summary_json.h"
#include "cli/table.h"

enum { FIRST = 3, NAME_WIDTH = 80, TEXT_WIDTH = 400 };

struct newest {
    const xpl_session_info *session;
    const char *instead;    // the tool to propose in place of findings; NULL: findings
    const json_t *findings; // NULL: no answer
    size_t n_sessions;
};

static void print_text(const char *head, xpl_str_t text, FILE *out) {
    (void)fputs(head, out);
    xpl_terminal_text(text, TEXT_WIDTH, out);
    (void)fputc('\n', out);
}

static void print_verdict(const json_t *all, FILE *out) {
    const json_t *const list = json_object_get(all, "findings");
    print_text("Verdict  ", xpl_document_text(json_object_get(all, "verdict"), "text"), out);
    for (size_t i = 0; i < json_array_size(list) && i < FIRST; i++) {
        char head[16];
        (void)snprintf(head, sizeof head, "%7zu. ", i + 1);
        print_text(head, xpl_document_text(json_array_get(list, i), "text"), out);
    }
}

static bool print_newest(const void *what, FILE *out) {
    const struct newest *const n = what;
    char when[32];
    xpl_show_when(when, n->session->captured_unix_ms);
    print_text("Session  ", xpl_str_from(n->session->name), out);
    (void)fprintf(out, "Captured %s; %zu session%s in all\n", when, n->n_sessions,
                  n->n_sessions == 1 ? "" : "s");
    if (n->findings) print_verdict(n->findings, out);
    (void)fprintf(out, "\nNext: xplanectl %s%s ", n->instead ? "tool " : "",
                  n->instead ? n->instead : "summary");
    xpl_terminal_text(xpl_str_from(n->session->name), NAME_WIDTH, out);
    (void)fputs(", xplanectl sessions, xplanectl --help\n", out);
    return true;
}

static const char *find_instead(const char *kind) {
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(formats[i]->family, kind) == 0) return formats[i]->instead;
    return NULL;
}

static int show(const struct xpl_args *a, const xpl_sessions *list) {
    struct newest n = {.n_sessions = xpl_sessions_count(list)};
    if (n.n_sessions == 0) {
        xpl_say("the daemon has no session yet; `xplanectl capture --help` describes how to record "
                "one, `xplanectl import --help` how to store profiles");
        return XPL_EXIT_OK;
    }
    n.session = xpl_sessions_get(list, 0);
    n.instead = find_instead(n.session->kind);
    json_auto_t *findings = n.instead ? NULL : xpl_summary_findings(a, n.session->name);
    n.findings = findings;
    return xpl_write_text(a, print_newest, &n);
}

int xpl_cmd_newest(const struct xpl_args *a) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_library_is_there() ? xpl_remote_open(a) : NULL;
    xpl_sessions *list = NULL;
    xpl_result r;
    if (!c) return XPL_EXIT_USAGE;
    const bool listed = xpl_client_sessions(c, &list, &r) == 0;
    int status = listed ? show(a, list) : XPL_EXIT_USAGE;
    if (!listed && r.code != XPL_UNAVAILABLE) status = xpl_remote_failed(&r);
    xpl_sessions_free(list);
    return status;
}
