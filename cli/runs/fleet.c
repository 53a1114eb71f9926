// SPDX-License-Identifier: Apache-2.0
// `xplanectl fleet`: the daemons that share a database, their work and their leases.
#include <stdio.h>
#include <string.h>

#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/remote.h"
#include "cli/runs/runs.h"
#include "cli/table.h"

static bool print_daemons(const json_t *all, FILE *out) {
    static const char *const columns[] = {"DAEMON", "ROLE", "VERSION", ">JOBS"};
    struct xpl_table *const t = xpl_table_new(columns, 4);
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(all, "daemons"), i, d) {
        xpl_table_text(t, xpl_document_text(d, "name"), 60);
        xpl_table_text(t, xpl_document_text(d, "role"), 10);
        xpl_table_text(t, xpl_document_text(d, "version"), 20);
        xpl_table_printf(t, "%.0f", xpl_document_real(d, "jobs"));
    }
    return xpl_table_finish(t, out);
}

static bool print_work(const json_t *all, FILE *out) {
    static const char *const columns[] = {"SESSION", "FIRST HOST", ">FILES",
                                          "DAEMON",  ">ATTEMPT",   ">QUEUED FOR"};
    struct xpl_table *const t = xpl_table_new(columns, 6);
    size_t i;
    json_t *w;
    json_array_foreach(json_object_get(all, "work"), i, w) {
        const bool aside = strcmp(xpl_document_chars(w, "state"), "set_aside") == 0;
        xpl_table_text(t, xpl_document_text(w, "session"), 40);
        xpl_table_text(t, xpl_document_text(w, "host"), 40);
        xpl_table_printf(t, "%.0f", xpl_document_real(w, "files"));
        xpl_table_text(t, aside ? XPL_STR("set aside") : xpl_document_text(w, "daemon"), 60);
        xpl_table_printf(t, "%.0f", xpl_document_real(w, "attempt"));
        xpl_table_printf(t, "%.1f s", xpl_document_real(w, "queued_ms") / 1e3);
    }
    return xpl_table_finish(t, out);
}

static bool print_leases(const json_t *all, FILE *out) {
    static const char *const columns[] = {"LEASE ON", "NAME", "DAEMON", ">EXPIRES IN"};
    struct xpl_table *const t = xpl_table_new(columns, 4);
    size_t i;
    json_t *l;
    json_array_foreach(json_object_get(all, "leases"), i, l) {
        const double ms = xpl_document_real(l, "expires_ms");
        xpl_table_text(t, xpl_document_text(l, "kind"), 20);
        xpl_table_text(t, xpl_document_text(l, "name"), 40);
        xpl_table_text(t, ms > 0 ? xpl_document_text(l, "daemon") : XPL_STR("nobody"), 60);
        if (ms > 0)
            xpl_table_printf(t, "%.1f s", ms / 1e3);
        else
            xpl_table_text(t, XPL_STR(""), 1);
    }
    return xpl_table_finish(t, out);
}

static bool print(const void *all, FILE *out) {
    const double workers = xpl_document_real(all, "workers");
    (void)fprintf(out, "jobs: %.0f queued, %.0f running, %.0f set aside; %.0f worker%s\n\n",
                  xpl_document_real(all, "queued"), xpl_document_real(all, "running"),
                  xpl_document_real(all, "set_aside"), workers, workers == 1 ? "" : "s");
    if (!print_daemons(all, out)) return false;
    if (json_array_size(json_object_get(all, "work"))) {
        (void)fputc('\n', out);
        if (!print_work(all, out)) return false;
    }
    if (!json_array_size(json_object_get(all, "leases"))) return true;
    (void)fputc('\n', out);
    return print_leases(all, out);
}

static int show(const struct xpl_args *a, const void *p, size_t n) {
    if (a->json) return xpl_write_line(a, p, n) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    json_auto_t *all = xpl_document_read(p, n);
    return !all     ? XPL_EXIT_FAILED
           : a->csv ? xpl_csv_show(a, all, "daemons")
                    : xpl_write_text(a, print, all);
}

int xpl_runs_fleet(const struct xpl_args *a) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    XPL_AUTO(xpl_remote_drop) xpl_answer *answer = NULL;
    xpl_result r;
    size_t n;
    if (!c) return XPL_EXIT_FAILED;
    if (xpl_client_fleet(c, &answer, &r) != 0) return xpl_remote_failed(&r);
    const void *const p = xpl_answer_data(answer, &n);
    return show(a, p, n);
}
