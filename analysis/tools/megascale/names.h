// SPDX-License-Identifier: Apache-2.0
// The parts of names in MegaScale's traces.  Texts may be of any form; none of these allocates, and
// each takes time linear in the text.
#ifndef XPL_ANALYSIS_TOOLS_MEGASCALE_NAMES_H_
#define XPL_ANALYSIS_TOOLS_MEGASCALE_NAMES_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum xpl_mgtrace_op {
    XPL_MGTRACE_OP_OTHER,
    XPL_MGTRACE_OP_SEND,
    XPL_MGTRACE_OP_SEND_DONE,
    XPL_MGTRACE_OP_RECV,
    XPL_MGTRACE_OP_RECV_DONE,
};
// "send", "recv-done.3", "send7".
enum xpl_mgtrace_op xpl_mgtrace_op_of(xpl_str_t name);
// 3 of "recv-done.3"; 0 where the name has no number behind a dot.
int64_t xpl_mgtrace_op_number(xpl_str_t name);

// The rendezvous that an op's long name has among its attributes; empty: none.
xpl_str_t xpl_mgtrace_attribute(xpl_str_t long_name);

// Of "device_200005_gid_NAME_1", the form of a graph's name:
struct xpl_mgtrace_graph {
    xpl_str_t device;     // digits
    xpl_str_t rendezvous; // NAME_1
};
// The first part of the text that has the form; false: there is none.
bool xpl_mgtrace_graph_in(xpl_str_t text, struct xpl_mgtrace_graph *ret);
// The text as a whole has it.
bool xpl_mgtrace_is_graph(xpl_str_t text, struct xpl_mgtrace_graph *ret);

// That of "/device:TPU:7"; false: of more than 63 bits.
bool xpl_mgtrace_tpu_number(xpl_str_t plane, int64_t *ret);
// The number of the device that the key of a graph names; false: none, or no number of 63 bits.
bool xpl_mgtrace_key_device(xpl_str_t key, int64_t *ret);
// Where a track stands among those of its device, from a key "device_N_gid_NAME$...^iITERATION...".
// Keys of another form come first.
struct xpl_mgtrace_place {
    xpl_str_t name;
    int64_t device, iteration;
};
struct xpl_mgtrace_place xpl_mgtrace_key_place(xpl_str_t key);

// The next "s1->0d|$c0=4096" of a list: source, destination and bytes.  Advances *at past it.
// False at the end, or if a number does not fit 63 bits.
struct xpl_mgtrace_buffer {
    int64_t from, to, bytes;
};
bool xpl_mgtrace_next_buffer(xpl_str_t list, size_t *at, struct xpl_mgtrace_buffer *ret);

#endif
