// SPDX-License-Identifier: Apache-2.0
// Two runs beside each other: what is compared, and how.  docs/compare.md has the definitions.
#ifndef XPL_CLI_COMPARE_H_
#define XPL_CLI_COMPARE_H_

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/args.h"

enum { XPL_COMPARE_MAX_CAUSES = 32 };

// A run, or several that count as one.
struct xpl_compare_side {
    double *steps; // their times in ps
    size_t n_steps, n_devices;
    double units; // steps times devices, at least the devices: what sums are divided by
    const char *causes[XPL_COMPARE_MAX_CAUSES]; // aliases the answers
    double times[XPL_COMPARE_MAX_CAUSES];       // ps of all devices
    size_t n_causes;
    json_t *ops;     // identity to {"identity": {...}, "ps", "count"}
    json_t *answers; // what was read
};

// Adds the time breakdown and the ops of a run.  Both are taken over.  False when they do not have
// the members that they should have.
bool xpl_compare_add(struct xpl_compare_side *s, json_t *breakdown, json_t *ops);
void xpl_compare_fini(struct xpl_compare_side *s);

double xpl_compare_mean(const double *v, size_t n);
enum { XPL_COMPARE_LEAST_STEPS = 5 };
// A 95% interval of the difference of means, B less A, by a bootstrap; the same for the same steps.
// False when one side has fewer than five steps.
bool xpl_compare_interval(const struct xpl_compare_side *a, const struct xpl_compare_side *b,
                          double ret[2]);

// The comparison as JSON (docs/cli-json.md).  NULL when out of memory.
json_t *xpl_compare_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b);

#endif
