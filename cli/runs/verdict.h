// SPDX-License-Identifier: Apache-2.0
// Thresholds of a comparison: --fail-if 'step_time>5%' (docs/compare.md).
#ifndef XPL_CLI_RUNS_VERDICT_H_
#define XPL_CLI_RUNS_VERDICT_H_

#include <jansson.h>
#include <stdbool.h>

#include "cli/args.h"

struct xpl_threshold {
    const char *flag; // its name
    char metric[64];
    char sign; // '<' or '>'; 0: none was given
    double percent;
    bool possible; // --fail-if-possible: met if the interval has any of it
};
// Without a text the sign is 0.  Says on stderr where the text is wrong; returns
// XPL_EXIT_OK or XPL_EXIT_USAGE.
int xpl_threshold_parse(const char *flag, const char *text, struct xpl_threshold *ret);

enum { XPL_VERDICT_TEXT = 512 };
// Judges a comparison (docs/cli-json.md) by a threshold, and writes the verdict as a sentence.
// Returns XPL_EXIT_OK: not met, XPL_EXIT_THRESHOLD, XPL_EXIT_UNKNOWN: cannot be told, or
// XPL_EXIT_FAILED: the runs do not have the metric.
int xpl_threshold_judge(const json_t *all, const struct xpl_threshold *t, bool allow_single,
                        char out[XPL_VERDICT_TEXT]);
// Of two exit statuses the one that counts: a failure, then a threshold that is met, then one that
// cannot be told, then a partial answer.
int xpl_worse_verdict(int a, int b);

#endif
