// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "analysis/tools/findings/findings.h"
#include "analysis/xplane/tf_op.h"

struct xpl_finding *xpl_finding_add_fact(struct xpl_findings *f, enum xpl_finding_kind kind) {
    if (f->n == XPL_FINDINGS) return NULL;
    struct xpl_finding *const x = &f->v[f->n++];
    *x = (struct xpl_finding){.kind = kind};
    return x;
}

struct xpl_finding *xpl_finding_add(struct xpl_findings *f, enum xpl_finding_kind kind,
                                    double share, double saving) {
    struct xpl_finding *const x = share >= XPL_FINDING_LEAST ? xpl_finding_add_fact(f, kind) : NULL;
    if (!x) return NULL;
    x->share = share < 1 ? share : 1;
    x->saving = saving < 0 ? 0 : saving < x->share ? saving : x->share;
    return x;
}

// Where a value belongs among the greatest, or XPL_FINDING_EVIDENCE.  Makes room for it in a list
// of elements of `size`; *n is raised while there is some.
static size_t make_room(void *list, size_t size, size_t *n, const double *values, double value) {
    size_t at = *n;
    while (at && values[at - 1] < value)
        at--;
    if (at == XPL_FINDING_EVIDENCE) return at;
    if (*n < XPL_FINDING_EVIDENCE) ++*n;
    uint8_t *const p = list;
    memmove(p + (at + 1) * size, p + at * size, (*n - 1 - at) * size);
    return at;
}

void xpl_finding_add_host(struct xpl_finding *f, xpl_str_t name, double share) {
    double values[XPL_FINDING_EVIDENCE];
    for (size_t i = 0; i < f->n_hosts; i++)
        values[i] = f->hosts[i].share;
    const size_t at = make_room(f->hosts, sizeof *f->hosts, &f->n_hosts, values, share);
    if (at < XPL_FINDING_EVIDENCE) f->hosts[at] = (struct xpl_finding_host){name, share};
}

void xpl_finding_add_step(struct xpl_finding *f, const struct xpl_survey_step *step, double ps) {
    double values[XPL_FINDING_EVIDENCE];
    for (size_t i = 0; i < f->n_steps; i++)
        values[i] = f->steps[i].ps;
    const size_t at = make_room(f->steps, sizeof *f->steps, &f->n_steps, values, ps);
    if (at < XPL_FINDING_EVIDENCE)
        f->steps[at] = (struct xpl_finding_step){step->number, step->name, ps};
}

void xpl_finding_add_op(struct xpl_finding *f, xpl_str_t name, double ps) {
    double values[XPL_FINDING_EVIDENCE];
    for (size_t i = 0; i < f->n_ops; i++) // an op of several hosts is one
        if (xpl_str_eq(f->ops[i].name, name)) {
            f->ops[i].ps += ps;
            for (; i && f->ops[i - 1].ps < f->ops[i].ps; i--) {
                const struct xpl_finding_op less = f->ops[i - 1];
                f->ops[i - 1] = f->ops[i];
                f->ops[i] = less;
            }
            return;
        }
    for (size_t i = 0; i < f->n_ops; i++)
        values[i] = f->ops[i].ps;
    const size_t at = make_room(f->ops, sizeof *f->ops, &f->n_ops, values, ps);
    if (at < XPL_FINDING_EVIDENCE) f->ops[at] = (struct xpl_finding_op){name, ps};
}

// The text of an instruction says between which memories it copies.  Of PyTorch the kernel comes
// last: "Net_0/aten::copy_/Memcpy HtoD (Pageable -> Device)".
enum xpl_op_layer xpl_finding_layer_of(const struct xpl_op_metrics *m) {
    if (xpl_tf_op_parse(m->provenance).category == XPL_TF_OP_PYTORCH) {
        const char *const slash = memrchr(m->name.ptr, '/', m->name.len);
        return xpl_op_layer_of(
            slash ? xpl_str_sub(m->name, (size_t)(slash + 1 - m->name.ptr), SIZE_MAX) : m->name);
    }
    return xpl_op_layer_of(m->long_name.len ? m->long_name : m->name);
}

void xpl_finding_add_layer(struct xpl_finding *f, const struct xpl_survey *s,
                           enum xpl_op_layer layer) {
    const struct xpl_op_metrics_db *const db = &s->stats->device_op_metrics_db;
    for (size_t i = 0; i < db->metrics_db.n; i++)
        if (xpl_finding_layer_of(&db->metrics_db.v[i]) == layer)
            xpl_finding_add_op(f, db->metrics_db.v[i].name,
                               (double)db->metrics_db.v[i].self_time_ps);
}

void xpl_finding_set_window(struct xpl_finding *f, const struct xpl_survey *s,
                            enum xpl_time_cause cause) {
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct xpl_survey_host *const h = &s->hosts[s->devices[i].host];
        const struct xpl_time_device *const d = &h->b->devices.v[s->devices[i].index];
        if (d->longest_ps[cause] <= f->window_ps) continue;
        f->has_window = true;
        f->window_host = h->name;
        f->window_begin_ps = (int64_t)(h->b->base_ps + d->begin_ps[cause]);
        f->window_ps = d->longest_ps[cause];
    }
}
