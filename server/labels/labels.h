// SPDX-License-Identifier: Apache-2.0
// Labels of sessions: what people call them, kept in state.db (docs/history.md).
//
// Any thread may call anything at any time.  Reading waits for no disk, but for the first time
// after state.db could be used; what changes labels waits for it.
#ifndef XPL_SERVER_LABELS_LABELS_H_
#define XPL_SERVER_LABELS_LABELS_H_

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "storage/store/history.h"

struct xpl_arena;
struct xpl_catalogue;
struct xpl_labels;
struct xpl_snapshot;

enum {
    XPL_LABEL_LENGTH = 64,      // bytes
    XPL_LABELS_OF_SESSION = 16, // at most
    XPL_LABELS_MOST = 10000     // of all sessions together
};

// INVALID_ARGUMENT with the position unless it is a letter or digit and then up to 63 more of
// letters, digits and . _ - + = @ : / (ASCII).
xpl_status_t xpl_label_check(xpl_str_t label, struct xpl_error *err) XPL_NODISCARD;

// The history is borrowed.  NULL when out of memory.
struct xpl_labels *xpl_labels_new(struct xpl_history *history);
// NULL is fine, here and below: there are no labels then.
void xpl_labels_free(struct xpl_labels *l);

// What one call changes.
struct xpl_labels_change {
    xpl_str_t session;
    const xpl_str_t *add, *remove;
    size_t n_add, n_remove;
};
// All of it or nothing.  NOT_FOUND without such a session in the snapshot, or when it does not have
// a label that is removed; INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION (no state.db).
xpl_status_t xpl_labels_set(struct xpl_labels *l, const struct xpl_snapshot *snap,
                            const struct xpl_labels_change *c, struct xpl_error *err) XPL_NODISCARD;
// The audit's line for a change and its result.
struct xpl_audit_client;
void xpl_labels_audit(const struct xpl_audit_client *client, const struct xpl_labels_change *c,
                      xpl_status_t code, const struct xpl_error *err);
// Forgets the labels of sessions that the catalogue does not have, unless it has none at all, or
// could not read all that there is: a directory may be closed for a while.
void xpl_labels_sweep(struct xpl_labels *l, struct xpl_catalogue *catalogue);

// Whether the labels of state.db were read: otherwise no session seems to have any.
bool xpl_labels_are_known(struct xpl_labels *l);
// By bytes, in `arena`.  False when out of memory.
bool xpl_labels_of(struct xpl_labels *l, xpl_str_t session, struct xpl_arena *arena,
                   xpl_str_t **ret, size_t *ret_n) XPL_NODISCARD;
// Of all sessions, by session and label, also of those that are not there.
bool xpl_labels_all(struct xpl_labels *l, struct xpl_arena *arena, struct xpl_history_label **ret,
                    size_t *ret_n) XPL_NODISCARD;

#endif
