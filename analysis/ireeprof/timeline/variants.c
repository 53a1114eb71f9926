// SPDX-License-Identifier: Apache-2.0
// What sessions of a bundle gave one id, told apart: devices of other UUIDs, counters and metrics
// of other names.
#include "analysis/ireeprof/timeline/impl.h"
#include "base/intern.h"
#include "base/map.h"

void xpl_iree_timeline_take_device(struct xpl_iree_timeline *t, uint32_t device, uint32_t session) {
    const struct xpl_iree_device_key key = {xpl_iree_device_or_first(device), session};
    const struct xpl_iree_timeline_device *const d = xpl_iree_table_get(&t->devices, &key);
    t->variant = d ? (uint16_t)d->variant : 0;
}

void xpl_iree_timeline_enter(struct xpl_iree_timeline *t, uint32_t session, uint32_t device) {
    struct xpl_iree_model *const m = &t->x.model;
    if (!m->by_session) return;
    device = xpl_iree_device_or_first(device);
    m->session = session;
    xpl_iree_timeline_take_device(t, device,
                                  xpl_iree_model_scope(m, XPL_IREE_SCOPE_DEVICE, device, 0));
}

bool xpl_iree_timeline_variant(struct xpl_iree_timeline *t, enum xpl_iree_track_kind kind,
                               uint64_t a, uint64_t b, xpl_str_t name, xpl_str_t more,
                               uint16_t *ret) {
    xpl_strid_t ids[2], both;
    bool is_new;
    *ret = 0;
    if (!t->x.model.by_session) return true;
    if (!t->texts) t->texts = xpl_intern_new(&t->arena, xpl_hash_seed());
    if (!t->texts || !xpl_intern_put(t->texts, name, &ids[0]) ||
        !xpl_intern_put(t->texts, more, &ids[1]) ||
        !xpl_intern_put(t->texts, (xpl_str_t){(const char *)ids, sizeof ids}, &both))
        return false;
    const struct xpl_iree_name_key all = {a, b, (uint32_t)kind, UINT32_MAX};
    const struct xpl_iree_name_key key = {a, b, (uint32_t)kind, both.v};
    struct xpl_iree_timeline_name *row = xpl_iree_table_put(&t->names, &key, &is_new);
    if (!row) return false;
    if (is_new) {
        struct xpl_iree_timeline_name *const count = xpl_iree_table_put(&t->names, &all, &is_new);
        if (!count) return false;
        const uint64_t number = count->number++;
        row = xpl_iree_table_get(&t->names, &key); // rows move when one is added
        row->number = number;
    }
    *ret = row->number < UINT16_MAX ? (uint16_t)row->number : UINT16_MAX;
    return true;
}
