// SPDX-License-Identifier: Apache-2.0
#include "server/labels/labels.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/text/near.h"
#include "base/vec.h"
#include "server/audit.h"
#include "storage/sessions/catalogue.h"

#define MEMORY ((size_t)64 << 20)

struct xpl_labels {
    struct xpl_history *history;
    pthread_mutex_t writing; // held while state.db is written
    pthread_mutex_t mu;      // protects the rest
    bool is_loaded;
    struct xpl_arena arena; // of the list
    struct xpl_history_label *v;
    size_t n;
};

// ---- syntax ----

static bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

xpl_status_t xpl_label_check(xpl_str_t label, struct xpl_error *err) {
    if (!label.len) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "a label is empty");
    for (size_t i = 0; i < label.len && i < XPL_LABEL_LENGTH; i++) {
        const char c = label.ptr[i];
        if (is_alphanumeric(c) || (i && c && strchr("._-+=@:/", c))) continue;
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "label \"%.*s\", character %zu: %s",
                         XPL_STR_FMT(xpl_str_sub(label, 0, XPL_LABEL_LENGTH)), i + 1,
                         i ? "only letters, digits and . _ - + = @ : / are allowed"
                           : "a label begins with a letter or a digit");
    }
    if (label.len > XPL_LABEL_LENGTH)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "label \"%.*s...\", character %d: a label has at most %d characters",
                         XPL_LABEL_LENGTH, label.ptr, XPL_LABEL_LENGTH + 1, XPL_LABEL_LENGTH);
    return XPL_OK;
}

// ---- the list in memory ----

struct list { // as state.db has it
    struct xpl_arena arena;
    struct xpl_history_label *v;
    size_t n;
    bool is_on;
};

static xpl_status_t read_list(struct xpl_labels *l, struct list *ret, struct xpl_error *err) {
    ret->is_on = xpl_history_is_on(l->history); // asked first: it may be on a moment later
    xpl_arena_init(&ret->arena, MEMORY);
    const xpl_status_t st = xpl_history_labels(l->history, &ret->arena, &ret->v, &ret->n, err);
    if (st != XPL_OK) xpl_arena_fini(&ret->arena);
    return st;
}

static void take_list(struct xpl_labels *l, const struct list *from) {
    xpl_assert_held(&l->mu);
    xpl_arena_fini(&l->arena);
    l->arena = from->arena;
    l->v = from->v;
    l->n = from->n;
    l->is_loaded = from->is_on;
}

// A list that cannot be read now is read by a later call.
static void load_once(struct xpl_labels *l) {
    xpl_assert_held(&l->mu);
    struct xpl_error err = {0};
    struct list list;
    if (l->is_loaded || !xpl_history_is_on(l->history)) return;
    if (read_list(l, &list, &err) == XPL_OK)
        take_list(l, &list);
    else
        xpl_log(XPL_LOG_DEBUG, "catalogue", "%s", err.msg);
}

struct xpl_labels *xpl_labels_new(struct xpl_history *history) {
    struct xpl_labels *const l = xpl_sys_alloc(sizeof *l);
    if (!l) return NULL;
    *l = (struct xpl_labels){.history = history};
    pthread_mutex_init(&l->writing, NULL);
    pthread_mutex_init(&l->mu, NULL);
    xpl_arena_init(&l->arena, MEMORY);
    pthread_mutex_lock(&l->mu);
    load_once(l);
    pthread_mutex_unlock(&l->mu);
    return l;
}

void xpl_labels_free(struct xpl_labels *l) {
    if (!l) return;
    xpl_arena_fini(&l->arena);
    pthread_mutex_destroy(&l->mu);
    pthread_mutex_destroy(&l->writing);
    xpl_sys_free(l);
}

bool xpl_labels_are_known(struct xpl_labels *l) {
    pthread_mutex_lock(&l->mu);
    load_once(l);
    const bool known = l->is_loaded;
    pthread_mutex_unlock(&l->mu);
    return known;
}

// Where the session's labels begin, or would.
static size_t first_of(struct xpl_labels *l, xpl_str_t session) {
    xpl_assert_held(&l->mu);
    size_t from = 0, to = l->n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (xpl_str_cmp(l->v[middle].session, session) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool copy_all(const struct xpl_labels *l, struct xpl_arena *arena,
                     struct xpl_history_label **ret) {
    *ret = xpl_arena_array(arena, l->n, sizeof **ret);
    for (size_t i = 0; *ret && i < l->n; i++) {
        (*ret)[i].set_ms = l->v[i].set_ms;
        if (!xpl_arena_str(arena, l->v[i].session, &(*ret)[i].session) ||
            !xpl_arena_str(arena, l->v[i].label, &(*ret)[i].label))
            return false;
    }
    return *ret;
}

bool xpl_labels_all(struct xpl_labels *l, struct xpl_arena *arena, struct xpl_history_label **ret,
                    size_t *ret_n) {
    *ret = NULL;
    *ret_n = 0;
    if (!l) return true;
    pthread_mutex_lock(&l->mu);
    load_once(l);
    const bool ok = copy_all(l, arena, ret);
    if (ok) *ret_n = l->n;
    pthread_mutex_unlock(&l->mu);
    return ok;
}

bool xpl_labels_of(struct xpl_labels *l, xpl_str_t session, struct xpl_arena *arena,
                   xpl_str_t **ret, size_t *ret_n) {
    *ret = NULL;
    *ret_n = 0;
    if (!l) return true;
    pthread_mutex_lock(&l->mu);
    load_once(l);
    bool ok = true;
    const size_t from = first_of(l, session);
    size_t to = from;
    while (to < l->n && xpl_str_eq(l->v[to].session, session))
        to++;
    if (to > from) ok = (*ret = xpl_arena_array(arena, to - from, sizeof **ret)) != NULL;
    for (size_t i = from; ok && i < to; i++)
        ok = xpl_arena_str(arena, l->v[i].label, &(*ret)[i - from]);
    if (ok) *ret_n = to - from;
    pthread_mutex_unlock(&l->mu);
    return ok;
}

// ---- changes ----

// Writes, and reads all of it again, while others read the list as it was.
static xpl_status_t write_labels(struct xpl_labels *l, const struct xpl_history_label *add,
                                 size_t n_add, const struct xpl_history_label *remove,
                                 size_t n_remove, struct xpl_error *err) {
    xpl_assert_held(&l->writing);
    struct list list;
    XPL_TRY(xpl_history_set_labels(l->history, add, n_add, remove, n_remove, err));
    const xpl_status_t st = read_list(l, &list, err);
    pthread_mutex_lock(&l->mu);
    if (st == XPL_OK)
        take_list(l, &list);
    else
        l->is_loaded = false;
    pthread_mutex_unlock(&l->mu);
    return st;
}

static bool has(const xpl_str_t *v, size_t n, xpl_str_t label) {
    for (size_t i = 0; i < n; i++)
        if (xpl_str_eq(v[i], label)) return true;
    return false;
}

// Before lists are compared with each other, which takes time that grows with their product.
static xpl_status_t check_numbers(const struct xpl_labels_change *c, struct xpl_error *err) {
    if (c->n_add <= XPL_LABELS_OF_SESSION && c->n_remove <= XPL_LABELS_OF_SESSION) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "a session has at most %d labels",
                     XPL_LABELS_OF_SESSION);
}

// One that is removed has to be there; of a name with a slip the message proposes the right one.
static xpl_status_t check_removals(const struct xpl_labels_change *c, const xpl_str_t *old,
                                   size_t n_old, struct xpl_error *err) {
    for (size_t i = 0; i < c->n_remove; i++) {
        XPL_TRY(xpl_label_check(c->remove[i], err));
        if (has(old, n_old, c->remove[i])) continue;
        struct xpl_near near = xpl_near_begin(c->remove[i]);
        char hint[XPL_NEAR_TEXT];
        for (size_t k = 0; k < n_old; k++)
            xpl_near_add(&near, old[k]);
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "the session has no label \"%.*s\"%s",
                         XPL_STR_FMT(c->remove[i]), xpl_near_text(&near, hint));
    }
    return XPL_OK;
}

static xpl_status_t check_additions(const struct xpl_labels *l, const struct xpl_labels_change *c,
                                    const xpl_str_t *old, size_t n_old, struct xpl_error *err) {
    size_t added = 0, removed = 0;
    for (size_t i = 0; i < c->n_add; i++) {
        XPL_TRY(xpl_label_check(c->add[i], err));
        if (has(c->remove, c->n_remove, c->add[i]))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "label \"%.*s\" is to be added and to be removed",
                             XPL_STR_FMT(c->add[i]));
        added += !has(old, n_old, c->add[i]) && !has(c->add, i, c->add[i]);
    }
    for (size_t i = 0; i < c->n_remove; i++)
        removed += !has(c->remove, i, c->remove[i]);
    if (n_old + added - removed > XPL_LABELS_OF_SESSION)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "a session has at most %d labels",
                         XPL_LABELS_OF_SESSION);
    if (added > removed && l->n + added - removed > XPL_LABELS_MOST)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "all sessions together have at most %d labels: remove some first",
                         XPL_LABELS_MOST);
    return XPL_OK;
}

static xpl_status_t make_rows(xpl_str_t session, const xpl_str_t *labels, size_t n,
                              struct xpl_arena *arena, struct xpl_history_label **ret,
                              struct xpl_error *err) {
    *ret = xpl_arena_array(arena, n, sizeof **ret);
    if (!*ret) XPL_RETURN_OOM(err, "labels");
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = (struct xpl_history_label){session, labels[i], xpl_unix_ms()};
    return XPL_OK;
}

// With `writing` held, the list does not change.
static xpl_status_t set(struct xpl_labels *l, const struct xpl_labels_change *c,
                        struct xpl_error *err) {
    xpl_assert_held(&l->writing);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MEMORY);
    struct xpl_history_label *add, *remove;
    xpl_str_t *old;
    size_t n_old;
    XPL_TRY(check_numbers(c, err));
    if (!xpl_labels_of(l, c->session, &arena, &old, &n_old)) XPL_RETURN_OOM(err, "labels");
    XPL_TRY(check_removals(c, old, n_old, err));
    XPL_TRY(check_additions(l, c, old, n_old, err));
    XPL_TRY(make_rows(c->session, c->add, c->n_add, &arena, &add, err));
    XPL_TRY(make_rows(c->session, c->remove, c->n_remove, &arena, &remove, err));
    return write_labels(l, add, c->n_add, remove, c->n_remove, err);
}

xpl_status_t xpl_labels_set(struct xpl_labels *l, const struct xpl_snapshot *snap,
                            const struct xpl_labels_change *c, struct xpl_error *err) {
    const struct xpl_session *const one = xpl_snapshot_find(snap, c->session);
    if (!one) return xpl_snapshot_no_session(snap, c->session, err);
    // Its name ends with the first of its runs, and the label with the name.
    if (one->n_runs && c->n_add)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "the session joins %u runs: label each by its own name", one->n_runs);
    pthread_mutex_lock(&l->writing);
    const xpl_status_t st = set(l, c, err);
    pthread_mutex_unlock(&l->writing);
    return st;
}

// ---- what goes with a session ----

static bool find_gone(struct xpl_labels *l, const struct xpl_snapshot *snap,
                      struct xpl_arena *arena, struct xpl_history_label **ret, size_t *ret_n) {
    struct xpl_history_label *all;
    size_t n;
    *ret_n = 0;
    if (!xpl_labels_all(l, arena, &all, &n)) return false;
    for (size_t i = 0; i < n; i++)
        if (!xpl_snapshot_find(snap, all[i].session)) all[(*ret_n)++] = all[i];
    *ret = all;
    return true;
}

// The caller holds `writing`.
static void forget_gone(struct xpl_labels *l, const struct xpl_snapshot *snap) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MEMORY);
    struct xpl_history_label *gone;
    struct xpl_error err = {0};
    size_t n;
    if (!snap->n_sessions || snap->is_partial || !find_gone(l, snap, &arena, &gone, &n) || !n)
        return;
    if (write_labels(l, NULL, 0, gone, n, &err) != XPL_OK)
        xpl_log(XPL_LOG_WARN, "catalogue", "labels of sessions that are gone stay: %s", err.msg);
}

// "a,b": labels have no commas.  One that is refused may have any bytes, which the log escapes.
static void log_labels(struct xpl_log_line *l, const char *key, const xpl_str_t *v, size_t n) {
    char text[XPL_LABELS_OF_SESSION * (XPL_LABEL_LENGTH + 1) + 1] = "";
    size_t len = 0;
    for (size_t i = 0; i < n && len + 1 < sizeof text; i++) {
        const size_t room = sizeof text - len;
        const int k = snprintf(text + len, room, "%s%.*s", i ? "," : "",
                               XPL_STR_FMT(xpl_str_sub(v[i], 0, XPL_LABEL_LENGTH)));
        len += k < 0 ? 0 : (size_t)k < room ? (size_t)k : room - 1;
    }
    if (n) xpl_log_z(l, key, text);
}

void xpl_labels_audit(const struct xpl_audit_client *client, const struct xpl_labels_change *c,
                      xpl_status_t code, const struct xpl_error *err) {
    struct xpl_log_line l;
    xpl_audit_begin(&l, "labels changed", client, code, err);
    xpl_log_str(&l, "session", c->session);
    log_labels(&l, "add", c->add, c->n_add);
    log_labels(&l, "remove", c->remove, c->n_remove);
    xpl_log_end(&l);
}

void xpl_labels_sweep(struct xpl_labels *l, struct xpl_catalogue *catalogue) {
    if (!l) return;
    pthread_mutex_lock(&l->writing);
    // Only now: a session that came while we waited may have got its labels meanwhile.
    struct xpl_snapshot *const snap = xpl_catalogue_get(catalogue);
    forget_gone(l, snap);
    xpl_snapshot_unref(snap);
    pthread_mutex_unlock(&l->writing);
}
