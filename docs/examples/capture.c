// SPDX-License-Identifier: Apache-2.0
// Captures running programs for a second, and reads the overview of what came.
//   cc capture.c $(pkg-config --cflags --libs xplaned) -o capture
//   ./capture 127.0.0.1:50551 host1:9999 host2:9999      through a daemon
//   ./capture /data/logs host1:9999 host2:9999           without one, into a log directory
#include <stdio.h>
#include <string.h>
#include <xplaned.h>

static char session[256];

static void on_progress(void *arg, const xpl_capture_status *s) {
    (void)arg;
    for (size_t i = 0; i < s->n_hosts; i++)
        (void)fprintf(stderr, "%s: %s %s\n", s->hosts[i].target, s->hosts[i].state,
                      s->hosts[i].reason);
    (void)snprintf(session, sizeof session, "%s", s->session);
}

static int ask_overview(xpl_client *c, xpl_result *r) {
    const xpl_tool_request q = {.size = sizeof q, .session = session, .tool = "overview_page"};
    xpl_answer *a;
    if (xpl_client_tool(c, &q, &a, r) != 0) return r->code;
    size_t n;
    (void)xpl_answer_data(a, &n);
    (void)printf("%s: an overview of %zu bytes\n", session, n);
    xpl_answer_free(a);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: capture SERVER|LOGDIR TARGET...\n"), 2;
    const xpl_capture_request q = {.size = sizeof q,
                                   .targets = (const char *const *)argv + 2,
                                   .n_targets = (size_t)argc - 2,
                                   .duration_ms = 1000,
                                   .host_tracer_level = -1,
                                   .device_tracer_level = -1,
                                   .python_tracer_level = -1,
                                   .progress = on_progress};
    xpl_result r;
    xpl_client *c = NULL;
    int failed;
    if (strchr(argv[1], '/')) {
        failed = xpl_capture_direct(argv[1], NULL, &q, &r);
        if (!failed) (void)printf("%s\n", session);
    } else {
        failed = xpl_client_open(argv[1], NULL, &c, &r) || xpl_client_capture(c, &q, &r) ||
                 ask_overview(c, &r);
    }
    xpl_client_close(c);
    if (failed) (void)fprintf(stderr, "capture: %s\n", r.message);
    return failed != 0;
}
