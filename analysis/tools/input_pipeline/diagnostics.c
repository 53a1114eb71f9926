// SPDX-License-Identifier: Apache-2.0
// The diagnostics table of several tools.  Texts: XProf's utils/diagnostics.cc.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/tools/input_pipeline/input_pipeline.h"

static void put_message(struct xpl_gviz *g, const char *severity, xpl_str_t message) {
    xpl_gviz_row(g);
    xpl_gviz_text(g, xpl_str_from(severity));
    xpl_gviz_text(g, message);
}

static void put_step_warnings(struct xpl_gviz *g, const struct xpl_step_db *steps) {
    if (steps->use_incomplete_step) {
        put_message(g, "WARNING",
                    XPL_STR("Incomplete step observed and hence the step time is unknown.Instead, "
                            "we use the trace duration as the step time. This may happen if your "
                            "profiling duration is shorter than the step time. In this case, you "
                            "may try to profile longer."));
    } else if (!steps->step_sequence.n && steps->empty_intersect) {
        put_message(g, "WARNING",
                    XPL_STR("Although there are steps observed on some host(s), the intersection "
                            "of the steps over all hosts is empty (because the differences among "
                            "individual host's step sequences are too big). Consequently, the "
                            "overall step time is unknown."));
    } else if (!steps->step_sequence.n) {
        put_message(g, "WARNING",
                    XPL_STR("No step marker observed and hence the step time is unknown. This may "
                            "happen if (1) training steps are not instrumented (e.g., if you are "
                            "not using Keras) or (2) the profiling duration is shorter than the "
                            "step time. For (1), you need to add step instrumentation; for (2), "
                            "you may try to profile longer."));
    }
    if (steps->num_steps_dropped) {
        char text[200];
        const int n =
            snprintf(text, sizeof text,
                     "%" PRIu32 " steps dropped. This might happen when you profile many hosts "
                     "and/or many steps. You could try to profile shorter or reduce the "
                     "number of hosts you profile.",
                     steps->num_steps_dropped);
        put_message(g, "WARNING", (xpl_str_t){text, (size_t)n});
    }
}

void xpl_diagnostics_table(const struct xpl_step_db *steps, const xpl_str_t *warnings,
                           size_t n_warnings, const xpl_str_t *errors, size_t n_errors,
                           struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out);
    xpl_gviz_column(&g, "severity", "string", "Severity");
    xpl_gviz_column(&g, "message", "string", "Message");
    for (size_t i = 0; i < n_warnings; i++)
        put_message(&g, "WARNING", warnings[i]);
    put_step_warnings(&g, steps);
    for (size_t i = 0; i < n_errors; i++)
        put_message(&g, "ERROR", errors[i]);
    xpl_gviz_end(&g);
}
