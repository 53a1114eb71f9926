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

static const char *missing_steps(const struct xpl_step_db *steps) {
    if (steps->use_incomplete_step)
        return "Incomplete step observed and hence the step time is unknown.Instead, we use the "
               "trace duration as the step time. This may happen if your profiling duration is "
               "shorter than the step time. In this case, you may try to profile longer.";
    if (steps->step_sequence.n) return NULL;
    if (steps->empty_intersect)
        return "Although there are steps observed on some host(s), the intersection of the steps "
               "over all hosts is empty (because the differences among individual host's step "
               "sequences are too big). Consequently, the overall step time is unknown.";
    return "No step marker observed and hence the step time is unknown. This may happen if (1) "
           "training steps are not instrumented (e.g., if you are not using Keras) or (2) the "
           "profiling duration is shorter than the step time. For (1), you need to add step "
           "instrumentation; for (2), you may try to profile longer.";
}

void xpl_input_pipeline_warn(const struct xpl_step_db *steps,
                             struct xpl_input_pipeline_warnings *ret) {
    const char *const missing = missing_steps(steps);
    ret->n = 0;
    if (missing) ret->v[ret->n++] = xpl_str_from(missing);
    if (!steps->num_steps_dropped) return;
    const int n = snprintf(ret->dropped, sizeof ret->dropped,
                           "%" PRIu32 " steps dropped. This might happen when you profile many "
                           "hosts and/or many steps. You could try to profile shorter or reduce "
                           "the number of hosts you profile.",
                           steps->num_steps_dropped);
    ret->v[ret->n++] = (xpl_str_t){ret->dropped, (size_t)n};
}

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("severity", "Severity"),
    XPL_TEXTS("message", "Message"),
    {0},
};

void xpl_diagnostics_table(const struct xpl_step_db *steps, const xpl_str_t *warnings,
                           size_t n_warnings, const xpl_str_t *errors, size_t n_errors,
                           struct xpl_buf *out) {
    struct xpl_gviz g;
    struct xpl_input_pipeline_warnings w;
    xpl_gviz_begin(&g, out, kColumns, 0);
    for (size_t i = 0; i < n_warnings; i++)
        put_message(&g, "WARNING", warnings[i]);
    xpl_input_pipeline_warn(steps, &w);
    for (size_t i = 0; i < w.n; i++)
        put_message(&g, "WARNING", w.v[i]);
    for (size_t i = 0; i < n_errors; i++)
        put_message(&g, "ERROR", errors[i]);
    xpl_gviz_end(&g);
}
