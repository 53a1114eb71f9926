// SPDX-License-Identifier: Apache-2.0
// What the files of `xplanectl summary` share.
#ifndef XPL_CLI_SUMMARY_JSON_H_
#define XPL_CLI_SUMMARY_JSON_H_

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/opstats/opstats.h"
#include "cli/args.h"
#include "cli/library/library.h"

// How long a step takes: the mean of its cores, on all hosts; and the slowest of them, which the
// others wait for.
struct xpl_summary_step {
    uint64_t mean_ps, slowest_ps;
    xpl_str_t name; // of the step; aliases *p
    int64_t number; // that the program gave, which ends the name ("train 37"); else XProf's index
};
// `ps` as a whole number, at most 2^64 - 1: absurd durations add up to more.
uint64_t xpl_summary_ps(double ps);
struct xpl_summary_step xpl_summary_step(const struct xpl_per_core_step_info *p);

// Where `st`, the OpStats of the hosts together, has no steps, though some of the hosts do: gives
// it theirs, in `arena`, and returns the names of these hosts, which are the caller's to free, and
// how many steps there are with those that are left out; else NULL.
json_t *xpl_summary_steps_of(const struct xpl_args *a, const xpl_session_info *s,
                             struct xpl_arena *arena, struct xpl_opstats *st, size_t *ret_n_all);

// What the tool findings answers for a run; NULL after saying on stderr why there is nothing.
json_t *xpl_summary_findings(const struct xpl_args *a, const char *run);
// Prints them as text.
void xpl_summary_print_findings(const json_t *all, FILE *out);

// The summary as one JSON document: `findings` as above, and `memory`, memory_profile's answers by
// host, or rows; both are taken over.  NULL after saying on stderr that memory ran out.
json_t *xpl_summary_json(const struct xpl_args *a, const xpl_session_info *s,
                         const struct xpl_opstats *st, json_t *findings, json_t *memory);
// The summary of the run that the command names first, without findings, memory as rows; device
// and host ops are sorted by self time.  Returns the exit status; *ret is the caller's to free.
int xpl_summary_document(const struct xpl_args *a, json_t **ret);

#endif
