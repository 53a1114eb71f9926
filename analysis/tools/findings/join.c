// SPDX-License-Identifier: Apache-2.0
// Findings that are one thing: a device that is late explains why others wait, and its own idle
// time; steps that take longer do so for a cause that is a finding itself.
#include <stdio.h>

#include "analysis/tools/findings/findings.h"

// From this part of its time on, a finding is the late device's.
static const double kMostly = 0.7;

const struct xpl_time_evidence *xpl_survey_evidence(const struct xpl_survey_host *h,
                                                    enum xpl_time_cause c) {
    const struct xpl_time_evidence *most = NULL;
    for (size_t i = 0; i < h->b->evidence.n; i++) {
        const struct xpl_time_evidence *const e = &h->b->evidence.v[i];
        if (e->cause == c && (!most || e->ps > most->ps)) most = e;
    }
    return most;
}

static struct xpl_finding *find(struct xpl_findings *f, enum xpl_finding_kind kind) {
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].kind == kind) return &f->v[i];
    return NULL;
}

static void take_out(struct xpl_findings *f, const struct xpl_finding *x) {
    for (size_t i = (size_t)(x - f->v); i + 1 < f->n; i++)
        f->v[i] = f->v[i + 1];
    f->n--;
}

static void put_within(struct xpl_finding *f, const struct xpl_finding *other) {
    f->overlaps = true;
    f->within = other->kind;
    f->saving = 0;
}

// The finding about the devices that wait also explains the idle time of the late device.  Where
// several are late one after the other, that of the cause saves the waiting, too.
static void join_late(const struct xpl_survey *s, struct xpl_findings *f) {
    struct xpl_finding *const wait = find(f, XPL_FINDING_STRAGGLERS);
    if (!wait || !wait->has_late) return;
    const enum xpl_time_cause c = wait->late_cause;
    const enum xpl_finding_kind kind = xpl_finding_of_cause(c);
    const struct xpl_finding *const own = kind < XPL_FINDINGS ? find(f, kind) : NULL;
    if (!own) return;
    if (s->devices[wait->late].ps[c] > kMostly * s->ps[c])
        take_out(f, own);
    else if (own->saving > kMostly * wait->saving)
        put_within(wait, own);
}

static void join_outliers(struct xpl_findings *f) {
    struct xpl_finding *const x = find(f, XPL_FINDING_STEP_OUTLIERS);
    const enum xpl_finding_kind kind =
        x && x->has_cause ? xpl_finding_of_cause(x->cause) : XPL_FINDINGS;
    const struct xpl_finding *other = kind < XPL_FINDINGS ? find(f, kind) : NULL;
    if (kind == XPL_FINDING_COLLECTIVES && find(f, XPL_FINDING_STRAGGLERS))
        other = find(f, XPL_FINDING_STRAGGLERS);
    if (!other || other->saving < kMostly * x->saving) return;
    put_within(x, other);
}

void xpl_findings_join(const struct xpl_survey *s, struct xpl_findings *f) {
    join_outliers(f);
    join_late(s, f);
}
