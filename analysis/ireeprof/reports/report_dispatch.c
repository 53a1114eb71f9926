// SPDX-License-Identifier: Apache-2.0
// Reports dispatch and executable: the time of functions.
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/rows_dispatch.h"
#include "base/arena.h"

static void write_groups(const struct xpl_iree_dispatches *d, bool host) {
    const struct xpl_iree_table *const groups = host ? &d->host.groups : &d->device.groups;
    for (size_t i = 0; i < groups->n; i++)
        xpl_iree_row_group(d, xpl_iree_table_at(groups, i), host, false);
}

static xpl_status_t write_dispatch(struct xpl_iree_dispatches *d, struct xpl_error *err) {
    (void)err;
    xpl_iree_row_dispatch_summary(d);
    write_groups(d, false);
    write_groups(d, true);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_dispatch(struct xpl_iree_run *run, struct xpl_error *err) {
    return xpl_iree_projection(run, XPL_IREE_BY_EVENT, write_dispatch, err);
}

// ---- executable ----

// Groups of a function, chained: groups of several devices may be of one function.
struct chain {
    struct xpl_iree_function_key key;
    uint32_t first_plus_1[2], last_plus_1[2]; // of devices, of hosts
};
struct chains {
    struct xpl_iree_table by_function; // struct chain
    uint32_t *next_plus_1[2];          // by the group's index
};

static bool chain_groups(struct chains *c, const struct xpl_iree_table *groups, int host) {
    uint32_t *const next = xpl_sys_alloc((groups->n + 1) * sizeof *next);
    c->next_plus_1[host] = next;
    if (!next) return false;
    for (uint32_t i = 0; i < groups->n; i++) {
        const struct xpl_iree_group *const g = xpl_iree_table_at(groups, i);
        const struct xpl_iree_function_key key = {g->key.executable_id, g->key.function_ordinal, 0};
        bool is_new;
        struct chain *const chain = xpl_iree_table_put(&c->by_function, &key, &is_new);
        if (!chain) return false;
        next[i] = 0;
        if (chain->last_plus_1[host])
            next[chain->last_plus_1[host] - 1] = i + 1;
        else
            chain->first_plus_1[host] = i + 1;
        chain->last_plus_1[host] = i + 1;
    }
    return true;
}

static void write_chain(const struct xpl_iree_dispatches *d, const struct chains *c,
                        const struct xpl_iree_function_key *key) {
    const struct chain *const chain = xpl_iree_table_get(&c->by_function, key);
    for (int host = 0; chain && host < 2; host++) {
        const struct xpl_iree_table *const groups = host ? &d->host.groups : &d->device.groups;
        for (uint32_t i = chain->first_plus_1[host]; i; i = c->next_plus_1[host][i - 1])
            xpl_iree_row_group(d, xpl_iree_table_at(groups, i - 1), host, true);
    }
}

static void write_function(const struct xpl_iree_dispatches *d, const struct chains *c,
                           const struct xpl_iree_function_row *f) {
    struct xpl_iree_key_text text;
    const xpl_str_t key = xpl_iree_key(f, XPL_IREE_NONE, f->key, &text);
    struct xpl_iree_rows *const r = d->run->rows;
    if (!xpl_iree_glob(key, d->run->options.filter)) return;
    xpl_row_begin(r, "type", "executable_function");
    xpl_row_u64(r, "executable_id", f->key.executable_id);
    xpl_row_u64(r, "function_ordinal", f->key.function_ordinal);
    xpl_row_u64(r, "flags", f->record.flags);
    xpl_row_str(r, "key", key);
    // constant_count to function_hash_present
    xpl_iree_row_members(r, XPL_IREE_FUNCTIONS, 3, 5, &f->record);
    xpl_row_hash(r, "function_hash", f->record.function_hash, f->record.flags & XPL_IREE_HAS_HASH);
    xpl_row_end(r);
    write_chain(d, c, &f->key);
}

static void write_executables(const struct xpl_iree_dispatches *d, const struct chains *c) {
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_begin(r, "type", "executable_summary");
    xpl_row_str(r, "filter", d->run->options.filter);
    xpl_row_u64(r, "executables", d->model->executables.n);
    xpl_row_u64(r, "functions", d->model->functions.n);
    xpl_iree_row_sides(d);
    xpl_row_end(r);
    for (size_t i = 0; i < d->model->executables.n; i++) {
        const struct xpl_iree_executable_row *const e =
            xpl_iree_table_at(&d->model->executables, i);
        if (!xpl_iree_id_is(d->run, e->executable_id)) continue;
        const bool hash = (e->record.flags & XPL_IREE_HAS_HASH) != 0;
        xpl_row_begin(r, "type", "executable");
        xpl_row_u64(r, "executable_id", e->executable_id);
        xpl_row_u64(r, "flags", e->record.flags);
        xpl_row_u64(r, "function_count", e->record.function_count);
        xpl_row_bool(r, "code_object_hash_present", hash);
        xpl_row_hash(r, "code_object_hash", e->record.code_object_hash, hash);
        xpl_row_end(r);
        for (uint32_t at = e->first_plus_1; at;) {
            const struct xpl_iree_function_row *const f =
                xpl_iree_table_at(&d->model->functions, at - 1);
            write_function(d, c, f);
            at = f->next_plus_1;
        }
    }
}

static xpl_status_t write_executable(struct xpl_iree_dispatches *d, struct xpl_error *err) {
    struct chains c = {.by_function = {.row_size = sizeof(struct chain),
                                       .key_size = sizeof(struct xpl_iree_function_key)}};
    const bool ok = chain_groups(&c, &d->device.groups, 0) && chain_groups(&c, &d->host.groups, 1);
    if (ok) write_executables(d, &c);
    xpl_iree_table_fini(&c.by_function);
    xpl_sys_free(c.next_plus_1[0]);
    xpl_sys_free(c.next_plus_1[1]);
    if (!ok) XPL_RETURN_OOM(err, "functions of the bundle");
    return XPL_OK;
}

xpl_status_t xpl_iree_report_executable(struct xpl_iree_run *run, struct xpl_error *err) {
    return xpl_iree_projection(run, XPL_IREE_BY_EXECUTABLE, write_executable, err);
}
