// SPDX-License-Identifier: Apache-2.0
// What the two forms of `xplanectl summary` share.
#ifndef XPL_CLI_SUMMARY_JSON_H_
#define XPL_CLI_SUMMARY_JSON_H_

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/opstats/opstats.h"
#include "cli/args.h"
#include "cli/library/library.h"

// How long a step takes: the mean of its cores, on all hosts; and the slowest of them, which the
// others wait for.  The latter is what overview_page averages (steptime_ms_average).
struct xpl_summary_step {
    uint64_t mean_ps, slowest_ps;
    xpl_str_t name; // of the step; aliases *p
    int64_t number; // that the program gave, which ends the name ("train 37"); else XProf's index
};
// `ps` as a whole number, at most 2^64 - 1: absurd durations add up to more.
uint64_t xpl_summary_ps(double ps);
struct xpl_summary_step xpl_summary_step(const struct xpl_per_core_step_info *p);

// What the tool findings answers for a run; NULL after saying on stderr why there is nothing.
json_t *xpl_summary_findings(const struct xpl_args *a, const char *run);
// Prints them as text.
void xpl_summary_print_findings(const json_t *all, FILE *out);

// Writes the summary as one JSON document, or a table of it as CSV: `findings` as above, and
// `memory`, memory_profile's answers by host (for CSV the rows); both are taken over.  Returns the
// program's exit status.
int xpl_summary_json(const struct xpl_args *a, const xpl_session_info *s,
                     const struct xpl_opstats *st, json_t *findings, json_t *memory);

#endif
