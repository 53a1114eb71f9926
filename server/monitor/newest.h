// SPDX-License-Identifier: Apache-2.0
// Figures of the newest session of each label, for monitoring.
//
// They are made of the sessions' run_summary, when somebody reads the figures and a session is
// newer: a reader gets what is known, and waits for nothing.
#ifndef XPL_SERVER_MONITOR_NEWEST_H_
#define XPL_SERVER_MONITOR_NEWEST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xpl_arena;
struct xpl_catalogue;
struct xpl_engine;
struct xpl_labels;
struct xpl_newest;

enum {
    XPL_NEWEST_LABELS = 64, // told: those whose newest session is the newest
    XPL_NEWEST_CAUSES = 16,
    XPL_NEWEST_CAUSE = 24, // bytes of a cause's name, with its end
};

struct xpl_newest_row {
    const char *label; // in the reader's arena; of a label's characters, so that nothing is escaped
    uint64_t n_sessions;
    int64_t captured_ms; // of the newest one
    bool is_known;       // the figures that follow
    double step_s;       // these three: negative where the profile does not say
    double peak_bytes;
    double utilization; // 0 to 1
    struct {
        char cause[XPL_NEWEST_CAUSE];
        double s; // for each device and step
    } times[XPL_NEWEST_CAUSES];
    size_t n_times;
};

// Everything is borrowed.  NULL when out of memory.
struct xpl_newest *xpl_newest_new(struct xpl_engine *engine, struct xpl_catalogue *catalogue,
                                  struct xpl_labels *labels);
// What is under way is given up, and nothing is begun any more.  NULL is fine.
void xpl_newest_stop(struct xpl_newest *n);
// After the engine's threads have ended.  NULL is fine.
void xpl_newest_free(struct xpl_newest *n);
// The rows by label, in `arena`; begins to make what is not known.  No rows when out of memory, or
// of NULL.  On the loop's thread.
const struct xpl_newest_row *xpl_newest_read(struct xpl_newest *n, struct xpl_arena *arena,
                                             size_t *ret_n);

#endif
