// SPDX-License-Identifier: Apache-2.0
// Private to cli/runs: what a gate found, and its report.
#ifndef XPL_CLI_RUNS_GATE_H_
#define XPL_CLI_RUNS_GATE_H_

#include <jansson.h>
#include <stdio.h>

#include "cli/runs/verdict.h"

enum { XPL_GATE_THRESHOLDS = 2 };

struct xpl_gate {
    int status; // of all thresholds
    char sentences[XPL_GATE_THRESHOLDS][XPL_VERDICT_TEXT];
    size_t n_sentences;
    const json_t *comparison;
};

// Writes the report as Markdown, where every name from a profile is text (gate_report.c).  Returns
// true: it cannot fail.
bool xpl_gate_print(const void *gate, FILE *out);
// The same as JSON (docs/cli-json.md); NULL when out of memory.
json_t *xpl_gate_json(const struct xpl_gate *g);

#endif
