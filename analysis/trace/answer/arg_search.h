// SPDX-License-Identifier: Apache-2.0
// For analysis/trace and its tests: which events have some words in their arguments.
#ifndef XPL_ANALYSIS_TRACE_ANSWER_ARG_SEARCH_H_
#define XPL_ANALYSIS_TRACE_ANSWER_ARG_SEARCH_H_

#include "analysis/trace/answer/args.h"

struct xpl_arena;

// Words that blanks part; a set of them is a mask.
enum { TRC_WORDS = 32 };
struct trc_words {
    xpl_str_t v[TRC_WORDS];
    unsigned n;
    uint32_t all;      // the mask of all of them
    uint32_t numerals; // of those that could be part of a whole number
};
// At most TRC_WORDS, views of `text`; INVALID_ARGUMENT for more, or for one of more than 1,024
// bytes.
xpl_status_t trc_words_read(xpl_str_t text, struct trc_words *ret, struct xpl_error *err)
    XPL_NODISCARD;
// Those that the text contains, whatever the case of ASCII letters.
uint32_t trc_words_in(const struct trc_words *w, xpl_str_t text);

// Searches the events of one index.  The arguments in the index are searched once, at the
// beginning, and so are texts that statistics refer to; an event's own texts and numbers are read
// from the profile.  One thread at a time.
struct trc_arg_search;
// The search lives in `arena` and refers to all that it is given but `exec`, which may cancel the
// search of metadata: CANCELLED; OUT_OF_MEMORY at the arena's limit.
xpl_status_t trc_arg_search_new(const struct xpl_trace *t, xpl_bytes_t profile,
                                const struct trc_words *words, struct xpl_exec *exec,
                                struct xpl_arena *arena, struct trc_arg_search **ret,
                                struct xpl_error *err) XPL_NODISCARD;
// The words that an argument of the event has (trc_read_args): texts, and whole numbers as their
// digits.  DATA_LOSS when the profile does not have the event.
xpl_status_t trc_arg_search_event(const struct trc_arg_search *s, const struct trc_event *e,
                                  uint32_t *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
