// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/answer: declarations that JSON and protobuf answers share.
//
//   answer.c   the entry: selects the events of each host, then writes JSON or protobuf
//   json.c, pb.c   the two forms
//   common.c   devices, rows, names and arguments, for both
//   args.c     arguments of one event
//   mpmd.c     order of processes
#ifndef XPL_ANALYSIS_TRACE_ANSWER_IMPL_H_
#define XPL_ANALYSIS_TRACE_ANSWER_IMPL_H_

#include "analysis/trace/answer/args.h"
#include "analysis/trace/index/read.h"

// Processes of the first host are numbered from here on, those of the next from twice that.
enum { TRC_DEVICES_PER_HOST = 1000 };

// One host, and its part of the answer.
struct shown_host {
    const struct xpl_trace_host *host;
    struct trc_shown shown;
    uint32_t first_pid; // process id of device 0
    xpl_str_t *names;   // by string: JSON's `,"name":"..."`, made when first needed
    uint32_t *frames;   // by stack frame: its number in the answer
    struct trc_value *values;
    struct trc_frames by_text;
    struct trc_resource *rows; // by device
    size_t *row_ends;          // by device: the end of its rows
};

// Copies of the hosts, in `arena`: each trace is as much later as its profile began after the first
// one.  NULL without memory.
struct xpl_trace_host *trc_align(const struct xpl_trace_host *hosts, size_t n,
                                 struct xpl_arena *arena);

// The state of one answer.
struct writer {
    struct xpl_buf *out;
    struct xpl_arena *arena;
    const struct xpl_trace_options *o;
    struct xpl_exec *exec;
    struct shown_host *hosts;
    size_t n;
    bool first; // of a list
    uint64_t n_counters;
    uint32_t n_checks; // calls of trc_check_cancelled
};

// CANCELLED once the answer is not needed any more.  Called for each event.
xpl_status_t trc_check_cancelled(struct writer *w, struct xpl_error *err) XPL_NODISCARD;

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

// Reads the event's arguments into h->values.
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
