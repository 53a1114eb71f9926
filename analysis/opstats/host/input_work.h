// SPDX-License-Identifier: Apache-2.0
// Which work of a host tf.data does: ops there make input, and stand for no device.
// The rule is in docs/cpu-as-device.md; XProf has nothing like it.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_INPUT_WORK_H_
#define XPL_ANALYSIS_OPSTATS_HOST_INPUT_WORK_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/groups.h"
#include "analysis/opstats/steps/timespan.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

// What a plane has of it.  Zero-initialised: none.
struct xpl_input_work {
    bool any;                  // some thread, event or function is tf.data's
    struct xpl_map contexts;   // (type, id) that functions run by tf.data produce
    _Atomic uint8_t *consumes; // by position of metadata: some event of it runs for an executor
};

// An event of this name does input: all that it encloses on its line is tf.data's.
bool xpl_is_input_event(xpl_str_t name);
// A thread of tf.data's own: all of its events are.
bool xpl_is_input_line(const struct xpl_line *line);

// Finds the functions that tf.data runs, also those run by them, wherever their ops run: one pass
// over the plane when it has a name of tf.data.  What it holds lives in `arena`.
// RESOURCE_EXHAUSTED, DATA_LOSS, CANCELLED.
xpl_status_t xpl_input_work_find(const struct xpl_plane *plane, struct xpl_exec *exec,
                                 struct xpl_arena *arena, struct xpl_input_work *ret,
                                 struct xpl_error *err) XPL_NODISCARD;

// The same where the plane is grouped in between: what grouping shows is not read again.
struct xpl_input_search;
// *ret: NULL when the plane has no name of tf.data.  What the search finds lives in `arena`.
xpl_status_t xpl_input_search_new(const struct xpl_plane *plane, struct xpl_arena *arena,
                                  struct xpl_input_search **ret, struct xpl_error *err)
    XPL_NODISCARD;
// Who watches grouping, while the search lives; NULL accepted.
const struct xpl_event_watch *xpl_input_search_watch(struct xpl_input_search *s);
// Reads the lines that were not shown.  Once; NULL accepted.
xpl_status_t xpl_input_search_end(struct xpl_input_search *s, struct xpl_exec *exec,
                                  struct xpl_input_work *ret, struct xpl_error *err) XPL_NODISCARD;
// Accepts NULL.
void xpl_input_search_free(struct xpl_input_search *s);

// Where the statistics of an event say for whom it runs: each value from behind its id to the end.
struct xpl_input_consumer {
    struct xpl_input_value {
        const uint8_t *p, *end;
    } type, id;
};
// Whether an event of such metadata runs in one of the contexts, which is then to be read from its
// statistics; says yes rather than no.
bool xpl_input_work_may_consume(const struct xpl_input_work *w, const struct xpl_plane *plane,
                                uint32_t md, const struct xpl_input_consumer *of);

// Events of input that enclose what follows on a line.
struct xpl_input_stack {
    XPL_VEC(struct xpl_timespan) v;
};
// Takes the next event of a line, in the order of the file, that is input or asked about;
// `is_input`: by its name, or by the context that it consumes.  *ret: the event, or one around it,
// is input.  False at the arena's limit.
bool xpl_input_stack_next(struct xpl_input_stack *s, struct xpl_timespan span, bool is_input,
                          struct xpl_arena *arena, bool *ret) XPL_NODISCARD;

#endif
