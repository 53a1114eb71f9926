// SPDX-License-Identifier: Apache-2.0
// The sessions of a bundle, and which of them a record is of, in a walk over its records.
//
// Ids of sessions are not unique: each device of the HAL numbers its own, and sessions of two
// devices are interleaved.  A typed record is of the open session that described its device last;
// where it names none, or one that no open session described, of the open session that wrote the
// record before, unless the chunk's header names another open one by id and name.
//
// Ids of executables, functions, command buffers, clocks, counters, metrics and submissions may
// begin anew with each session.  `scopes` finds the session whose description of an id counts: the
// own one, else the latest before it, else the first one.
//
// Threads: none is started; one thread at a time.
#ifndef XPL_ANALYSIS_IREEPROF_SESSIONS_H_
#define XPL_ANALYSIS_IREEPROF_SESSIONS_H_

#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/table.h"
#include "base/arena.h"

struct xpl_iree_sessions {
    struct xpl_iree_table rows, owners, alikes; // private to sessions.c
    struct xpl_arena arena;                     // of `names`
    struct xpl_intern *names;
    uint64_t newest_plus_1; // the open session that began last; 0: none
    uint64_t writer_plus_1; // the session that wrote last; 0: none
    uint32_t lately_device, lately_session;
    bool lately; // the device of `lately_device` is of `lately_session`
    bool has_named;
    uint64_t named_plus_1; // the session that the record's header names; 0: none
};
void xpl_iree_sessions_init(struct xpl_iree_sessions *s);
void xpl_iree_sessions_fini(struct xpl_iree_sessions *s);
// Follows the walk: begins, ends and descriptions of devices; other records are passed over.
// *ret_ended (may be NULL) is the session that the record ended, else XPL_IREE_NONE.  False on OOM.
bool xpl_iree_sessions_follow(struct xpl_iree_sessions *s, const struct xpl_iree_record *r,
                              uint32_t *ret_ended);
// The name of one of these; as long as the sessions.
xpl_str_t xpl_iree_sessions_name(const struct xpl_iree_sessions *s, uint32_t session);
// The open session that a record of this chunk and device is of; XPL_IREE_NONE: none is open.
// XPL_IREE_NONE as the device: it names none.
uint32_t xpl_iree_sessions_open(struct xpl_iree_sessions *s, const struct xpl_iree_record *r,
                                uint32_t device);
// The same, but between sessions the one that began last, and 0 before the first.
uint32_t xpl_iree_sessions_of(struct xpl_iree_sessions *s, const struct xpl_iree_record *r,
                              uint32_t device);
// The device that a typed record names: a member of it, else of its chunk's header.
uint32_t xpl_iree_device_of(const struct xpl_iree_record *r, const struct xpl_iree_item *item);

// ---- descriptions ----

enum xpl_iree_scope_kind {
    XPL_IREE_SCOPE_FUNCTION, // executable, ordinal
    XPL_IREE_SCOPE_BUFFER,
    XPL_IREE_SCOPE_CLOCK,      // device
    XPL_IREE_SCOPE_METRIC,     // source, metric
    XPL_IREE_SCOPE_OPERATIONS, // of a command buffer
    XPL_IREE_SCOPE_COUNTERS,   // of a set
    XPL_IREE_SCOPE_SOURCE,     // of metrics
    XPL_IREE_SCOPE_DEVICE,
};
struct xpl_iree_scope_key {
    uint64_t a, b;
    uint64_t kind;
};
struct xpl_iree_scopes {
    struct xpl_iree_table ids; // by key: the first session that describes it
    struct xpl_iree_scope *v;  // those of ids that several sessions describe
    size_t n, cap;
    bool sealed; // they are sorted
};
void xpl_iree_scopes_fini(struct xpl_iree_scopes *s);
// A session describes an id.  False on OOM.
bool xpl_iree_scopes_add(struct xpl_iree_scopes *s, struct xpl_iree_scope_key key,
                         uint32_t session);
// Whether a session has described it.
bool xpl_iree_scopes_has(const struct xpl_iree_scopes *s, struct xpl_iree_scope_key key);
// All is described: from now on ids are found.
void xpl_iree_scopes_seal(struct xpl_iree_scopes *s);
// The session whose description of the id counts for one session; that session itself when there is
// no description.  O(log n).
uint32_t xpl_iree_scopes_find(const struct xpl_iree_scopes *s, struct xpl_iree_scope_key key,
                              uint32_t session);

#endif
