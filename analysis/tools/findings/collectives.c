// SPDX-License-Identifier: Apache-2.0
// Exposed collectives, in two: communicating, and waiting for the last device to arrive.
//
// In a step of all devices, the one with the least time in exposed collectives is the last to
// arrive: it waits for no other, so its time is communication. The others' time beyond that is
// waiting.
#include <stdio.h>
#include <string.h>

#include "analysis/tools/findings/findings.h"
#include "base/arena.h"

struct waiting {
    double waited_ps; // sum over devices and steps
    double saved_ps;  // of one device: if the last one of each step were as the others
    double *late_ps;  // by device: how much longer its own work is than that of the others
    uint32_t *n_last; // by device: steps in which it is the last
    size_t n_steps;
};

static void add_step(const struct xpl_survey *s, const struct xpl_survey_step *step,
                     struct waiting *w) {
    const double n = (double)step->n_devices;
    if (step->n_devices != s->n_devices) return; // of this step not all is known
    const double all = step->ps[XPL_TIME_COLLECTIVES] * n,
                 others = (step->own_ps - step->most_own_ps) / (n - 1);
    w->n_steps++;
    w->waited_ps += all - n * step->least_collectives_ps;
    w->saved_ps += step->most_own_ps - others;
    w->late_ps[step->last] += step->most_own_ps - others;
    w->n_last[step->last]++;
}

void xpl_survey_say_why(const struct xpl_survey_host *h, enum xpl_time_cause c, char *ret,
                        size_t n) {
    static const char *const words[XPL_TIME_CAUSES] = {
        [XPL_TIME_COMPUTE] = "it computes longer",
        [XPL_TIME_HOST_COPIES] = "it copies from and to the host",
        [XPL_TIME_DEVICE_COPIES] = "it copies longer",
        [XPL_TIME_CALLBACK] = "it waits for a function of its host",
        [XPL_TIME_INPUT] = "it waits for input",
        [XPL_TIME_CHECKPOINT] = "it waits for a checkpoint",
        [XPL_TIME_COMPILE] = "its host compiles",
        [XPL_TIME_LAUNCH] = "its host starts work slowly",
        [XPL_TIME_QUEUED] = "its work waits in a queue",
        [XPL_TIME_HOST] = "its host does something else",
        [XPL_TIME_UNKNOWN] = "it is idle, the profile does not show why",
    };
    const struct xpl_time_evidence *const most = xpl_survey_evidence(h, c);
    (void)snprintf(ret, n, "%s", words[c] ? words[c] : "it is late");
    const size_t at = strlen(ret);
    if (most) (void)snprintf(ret + at, n - at, " (%.*s)", XPL_FINDING_TEXT(most->name));
}

static void say_who(const struct xpl_survey *s, const struct waiting *w, struct xpl_finding *f) {
    size_t worst = 0;
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct xpl_survey_device *const d = &s->devices[i];
        if (w->late_ps[i] > w->late_ps[worst]) worst = i;
        if (w->late_ps[i] > 0)
            xpl_finding_add_host(f, s->hosts[d->host].name, w->late_ps[i] / d->wall_ps);
    }
    const struct xpl_survey_device *const d = &s->devices[worst];
    const struct xpl_survey_host *const h = &s->hosts[d->host];
    const xpl_str_t device = h->b->devices.v[d->index].name;
    char why[128];
    f->has_late = true;
    f->late = worst;
    f->late_cause = xpl_survey_late_cause(s);
    xpl_survey_say_why(h, f->late_cause, why, sizeof why);
    (void)snprintf(f->text, sizeof f->text,
                   "%.1f%% of the time devices wait in collectives for the last one to arrive, "
                   "which is %.*s of %.*s in %u of %zu steps: %s",
                   100 * f->share, XPL_FINDING_TEXT(device), XPL_FINDING_TEXT(h->name),
                   w->n_last[worst], w->n_steps, why);
}

static void add_evidence(const struct xpl_survey *s, struct xpl_finding *f) {
    xpl_finding_add_layer(f, s, XPL_LAYER_COLLECTIVE);
    for (size_t i = 0; i < s->steps.n; i++)
        if (s->steps.v[i].ps[XPL_TIME_COLLECTIVES] > 0)
            xpl_finding_add_step(f, &s->steps.v[i], s->steps.v[i].ps[XPL_TIME_COLLECTIVES]);
    xpl_finding_set_window(f, s, XPL_TIME_COLLECTIVES);
}

static bool find_waiting(const struct xpl_survey *s, struct waiting *w) {
    w->late_ps = xpl_arena_zalloc(s->arena, s->n_devices * sizeof *w->late_ps);
    w->n_last = xpl_arena_zalloc(s->arena, s->n_devices * sizeof *w->n_last);
    if (!w->late_ps || !w->n_last) return false;
    for (size_t i = 0; s->n_devices > 1 && i < s->steps.n; i++)
        add_step(s, &s->steps.v[i], w);
    return true;
}

bool xpl_findings_of_collectives(const struct xpl_survey *s, struct xpl_findings *out) {
    struct waiting w = {0};
    if (!find_waiting(s, &w)) return false;
    const double wait = w.waited_ps / s->wall_ps,
                 share = s->ps[XPL_TIME_COLLECTIVES] / s->wall_ps - wait;
    struct xpl_finding *f = xpl_finding_add(out, XPL_FINDING_COLLECTIVES, share, share);
    if (f) {
        (void)snprintf(f->text, sizeof f->text,
                       "%.1f%% of the time devices communicate and compute nothing", 100 * share);
        add_evidence(s, f);
    }
    f = xpl_finding_add(out, XPL_FINDING_STRAGGLERS, wait, 0);
    if (f) {
        // All devices would be done earlier, the last one, too, which does not wait.
        const double saving = w.saved_ps * (double)s->n_devices / s->wall_ps;
        f->saving = saving < 1 ? saving : 1;
        say_who(s, &w, f);
        add_evidence(s, f);
    }
    return true;
}
