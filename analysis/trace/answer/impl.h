// Private to analysis/trace: what JSON and protobuf answers share.
#ifndef XPL_ANALYSIS_TRACE_ANSWER_IMPL_H_
#define XPL_ANALYSIS_TRACE_ANSWER_IMPL_H_

#include "analysis/trace/index/read.h"

struct shown_host {
    const struct xpl_trace_host *host;
    struct trc_shown shown;
    uint32_t first_pid; // what device ids are counted from
    xpl_str_t *names;   // of strings, as the writer needs them
    uint32_t *frames;   // numbers of its stack frames among all hosts'
    struct trc_value *values;
    struct trc_frames by_text;
};

struct writer {
    struct xpl_buf *out;
    struct xpl_arena *arena;
    const struct xpl_trace_options *o;
    struct xpl_exec *exec;
    struct shown_host *hosts;
    size_t n;
    bool first; // of a list
    uint64_t n_counters;
    uint32_t asked; // how often it came by the question below
};

// CANCELLED once nobody wants the answer; to be called for each event.
xpl_status_t trc_still_wanted(struct writer *w, struct xpl_error *err) XPL_NODISCARD;

// A process of the answer, and its rows by id.
struct device_line {
    const struct shown_host *h;
    const struct trc_device *d;
    uint32_t index, pid;
    struct trc_resource *rows;
    size_t n_rows;
    bool has_order;
    uint32_t order; // among processes, where has_order
};
static inline uint32_t trc_pid(const struct shown_host *h, uint32_t device) {
    return h->first_pid + h->host->trace->devices[device].id;
}
xpl_status_t trc_device_lines(struct writer *w, struct device_line **ret, size_t *ret_n,
                              struct xpl_error *err) XPL_NODISCARD;
// Orders processes by the layers of a model that they run (mpmd.c).
xpl_status_t trc_mpmd_order(const struct writer *w, struct device_line *lines, size_t n,
                            struct xpl_error *err) XPL_NODISCARD;
// "<host> <device>"; false when out of memory.
bool trc_device_name(struct writer *w, const struct device_line *l, xpl_str_t *ret);

// The event's arguments, into values of the host.
xpl_status_t trc_event_values(struct writer *w, struct shown_host *h, const struct trc_event *e,
                              size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;
const char *trc_category_name(unsigned category);

// Switches of the viewer's menu; at most TRC_MAX_DETAILS.
enum { TRC_MAX_DETAILS = 3 };
struct trc_detail {
    const char *name;
    bool value;
};
size_t trc_details(const struct writer *w, struct trc_detail *ret);

// Begin and end of the whole trace; false when no host has any.
bool trc_full_span(const struct writer *w, uint64_t *ret_min, uint64_t *ret_max);

xpl_status_t trc_put_json(struct writer *w, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t trc_put_pb(struct writer *w, struct xpl_error *err) XPL_NODISCARD;

#endif
