// SPDX-License-Identifier: Apache-2.0
// Captures, schedules and their sessions: those of state.db, or those of all daemons that share a
// store.
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "storage/store/sqlite/history_impl.h"

enum { MOVE_BYTES = 256 << 20 };

void xpl_history_share(struct xpl_history *h, struct xpl_store *store) {
    h->ops = xpl_store_captures(store);
    h->shared = h->ops ? store : NULL;
}

// ---- the list ----

// Numbers of this daemon's own come first: the others' are lower.
static xpl_status_t list_all(struct xpl_history *h, uint64_t before, size_t limit,
                             struct xpl_arena *arena, struct xpl_history_capture **ret,
                             size_t *ret_n, struct xpl_error *err) {
    struct xpl_history_capture *own = NULL, *theirs = NULL, *all;
    size_t n_own = 0, n_theirs = 0;
    if (!before || before > XPL_HISTORY_OWN)
        XPL_TRY(xpl_hist_list(h, before, limit, arena, &own, &n_own, err));
    while (n_own && own[n_own - 1].id < XPL_HISTORY_OWN)
        n_own--; // of before it shared captures, and not moved yet
    if (n_own < limit && xpl_store_role(h->shared) != XPL_STORE_OFF)
        XPL_TRY(h->ops->list(h->shared, before, limit - n_own, arena, &theirs, &n_theirs, err));
    if (!(all = xpl_arena_array(arena, n_own + n_theirs, sizeof *all)))
        XPL_RETURN_OOM(err, "history");
    if (n_own) memcpy(all, own, n_own * sizeof *all);
    if (n_theirs) memcpy(all + n_own, theirs, n_theirs * sizeof *all);
    *ret = all;
    *ret_n = n_own + n_theirs;
    return XPL_OK;
}

xpl_status_t xpl_history_list(struct xpl_history *h, uint64_t before, size_t limit,
                              struct xpl_arena *arena, struct xpl_history_capture **ret,
                              size_t *ret_n, struct xpl_error *err) {
    return h->shared ? list_all(h, before, limit, arena, ret, ret_n, err)
                     : xpl_hist_list(h, before, limit, arena, ret, ret_n, err);
}

// ---- schedules and their sessions ----

xpl_status_t xpl_history_add_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      uint64_t *ret_id, struct xpl_error *err) {
    return h->shared ? h->ops->add_schedule(h->shared, s, 0, ret_id, err)
                     : xpl_hist_add_schedule(h, s, ret_id, err);
}

xpl_status_t xpl_history_set_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      struct xpl_error *err) {
    return h->shared ? h->ops->set_schedule(h->shared, s, err) : xpl_hist_set_schedule(h, s, err);
}

xpl_status_t xpl_history_delete_schedule(struct xpl_history *h, uint64_t id,
                                         struct xpl_error *err) {
    return h->shared ? h->ops->delete_schedule(h->shared, id, err)
                     : xpl_hist_delete_schedule(h, id, err);
}

xpl_status_t xpl_history_schedules(struct xpl_history *h, struct xpl_arena *arena,
                                   struct xpl_history_schedule **ret, size_t *ret_n,
                                   struct xpl_error *err) {
    return h->shared ? h->ops->schedules(h->shared, arena, ret, ret_n, err)
                     : xpl_hist_schedules(h, arena, ret, ret_n, err);
}

xpl_status_t xpl_history_add_session(struct xpl_history *h, uint64_t schedule_id,
                                     const struct xpl_history_session *s, struct xpl_error *err) {
    return h->shared ? h->ops->add_session(h->shared, schedule_id, s, err)
                     : xpl_hist_add_session(h, schedule_id, s, err);
}

xpl_status_t xpl_history_sessions(struct xpl_history *h, uint64_t schedule_id,
                                  struct xpl_arena *arena, struct xpl_history_session **ret,
                                  size_t *ret_n, struct xpl_error *err) {
    return h->shared ? h->ops->sessions(h->shared, schedule_id, arena, ret, ret_n, err)
                     : xpl_hist_sessions(h, schedule_id, arena, ret, ret_n, err);
}

xpl_status_t xpl_history_forget_session(struct xpl_history *h, uint64_t schedule_id, xpl_str_t name,
                                        struct xpl_error *err) {
    return h->shared ? h->ops->forget_session(h->shared, schedule_id, name, err)
                     : xpl_hist_forget_session(h, schedule_id, name, err);
}

// ---- moving ----

// A schedule has another number there: what its captures say of it is lost, its sessions are not.
static xpl_status_t move_schedules(struct xpl_history *h, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MOVE_BYTES);
    struct xpl_history_schedule *list;
    struct xpl_history_session *sessions;
    size_t n, n_sessions;
    XPL_TRY(xpl_hist_schedules(h, &arena, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        XPL_TRY(xpl_hist_sessions(h, list[i].id, &arena, &sessions, &n_sessions, err));
        XPL_TRY(h->ops->adopt_schedule(h->shared, &list[i], sessions, n_sessions, err));
        XPL_TRY(xpl_hist_delete_schedule(h, list[i].id, err));
    }
    return XPL_OK;
}

// The oldest first, so that they have their numbers in the order in which they began.
static xpl_status_t move_captures(struct xpl_history *h, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MOVE_BYTES);
    struct xpl_history_capture *list;
    size_t n;
    XPL_TRY(xpl_hist_list(h, 0, XPL_HISTORY_CAPTURES, &arena, &list, &n, err));
    for (size_t i = n; i > 0; i--) {
        struct xpl_history_capture one = list[i - 1];
        if (one.state == XPL_HISTORY_RUNNING) continue;
        if (one.id < XPL_HISTORY_OWN) one.schedule_id = 0; // it has another number there
        XPL_TRY(h->ops->adopt(h->shared, &one, err));
        XPL_TRY(xpl_hist_delete_capture(h, list[i - 1].id, err));
    }
    return XPL_OK;
}

xpl_status_t xpl_history_move(struct xpl_history *h, struct xpl_error *err) {
    XPL_TRY(move_schedules(h, err));
    return move_captures(h, err);
}
