// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"
#include "tests/check.h"
#include "tests/simulation/world.h"

enum { BYTES = 24, MAX_SESSIONS = 8 };

// ---- products ----

static const struct xpl_product first = {.name = "first",
                                         .version = 3,
                                         .residency = XPL_RESIDENCY_STORE},
                                second = {.name = "second",
                                          .version = 5,
                                          .residency = XPL_RESIDENCY_STORE};
static const struct xpl_product *const all[] = {&first, &second, NULL};
const struct xpl_tool sim_products_tool = {.name = "toy", .needs = all};

const struct xpl_product *const *__wrap_xpl_products(size_t *ret_n);
const struct xpl_product *const *__wrap_xpl_products(size_t *ret_n) {
    *ret_n = 2;
    return all;
}

// What a product of a file is.
static void make_bytes(const struct xpl_product *p, uint64_t size, char ret[BYTES]) {
    memset(ret, 0, BYTES);
    (void)snprintf(ret, BYTES, "%s %llu", p->name, (unsigned long long)size);
}

static int file_of(const struct xpl_host *h) {
    return atoi(h->name.ptr + 1);
}

// Equal bytes have equal ids.
static struct xpl_profile_id id_of(const struct xpl_host *h) {
    struct xpl_profile_id ret = {0};
    memcpy(ret.bytes, &h->fingerprint.size, sizeof h->fingerprint.size);
    return ret;
}

static void handle_destroy(struct xpl_object *o) {
    struct xpl_product_handle *const h = (struct xpl_product_handle *)o;
    xpl_sys_free(h->packed);
    xpl_sys_free(h);
}

xpl_status_t __wrap_xpl_product_get(struct xpl_product_manager *m,
                                    const struct xpl_product_request *r,
                                    const struct xpl_build_context *ctx,
                                    struct xpl_stage_times *times, struct xpl_product_handle **ret,
                                    struct xpl_error *err);
xpl_status_t __wrap_xpl_product_get(struct xpl_product_manager *m,
                                    const struct xpl_product_request *r,
                                    const struct xpl_build_context *ctx,
                                    struct xpl_stage_times *times, struct xpl_product_handle **ret,
                                    struct xpl_error *err) {
    bool cancelled = false;
    (void)m, (void)times;
    const bool good =
        sim_world_read(file_of(r->host), ctx->owner.is_cancelled, ctx->owner.arg, &cancelled);
    if (cancelled) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    struct xpl_product_handle *const h = xpl_sys_alloc(sizeof *h);
    CHECK(h);
    *h = (struct xpl_product_handle){.object = {.refs = 1, .destroy = handle_destroy},
                                     .product = r->product,
                                     .variant = r->variant,
                                     .status = good ? XPL_OK : XPL_DATA_LOSS,
                                     .packed = xpl_sys_alloc(BYTES),
                                     .packed_len = BYTES,
                                     .fingerprint = r->host->fingerprint,
                                     .stable = true};
    CHECK(h->packed);
    make_bytes(r->product, r->host->fingerprint.size, (char *)h->packed);
    *ret = h;
    return XPL_OK;
}

// ---- ids ----

struct xpl_product_handle *__wrap_xpl_product_lookup(struct xpl_product_manager *m,
                                                     const struct xpl_product *product,
                                                     unsigned variant,
                                                     const struct xpl_fingerprint *fingerprint);
struct xpl_product_handle *__wrap_xpl_product_lookup(struct xpl_product_manager *m,
                                                     const struct xpl_product *product,
                                                     unsigned variant,
                                                     const struct xpl_fingerprint *fingerprint) {
    (void)m, (void)product, (void)variant, (void)fingerprint;
    return NULL;
}

xpl_status_t __wrap_xpl_product_identify(struct xpl_product_manager *m,
                                         struct xpl_product_publication *p,
                                         struct xpl_work_owner owner, struct xpl_error *err);
xpl_status_t __wrap_xpl_product_identify(struct xpl_product_manager *m,
                                         struct xpl_product_publication *p,
                                         struct xpl_work_owner owner, struct xpl_error *err) {
    (void)m, (void)owner, (void)err;
    p->id = id_of(p->request.host);
    return XPL_OK;
}

void __wrap_xpl_product_hash_file(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                                  const struct xpl_host *host, struct xpl_work_owner owner);
void __wrap_xpl_product_hash_file(struct xpl_product_manager *m, struct xpl_snapshot *snapshot,
                                  const struct xpl_host *host, struct xpl_work_owner owner) {
    (void)m, (void)snapshot, (void)host, (void)owner;
}

xpl_status_t __real_xpl_product_publish(struct xpl_product_manager *m,
                                        const struct xpl_product_publication *p, size_t n,
                                        const struct xpl_job_end *end, struct xpl_error *err);
xpl_status_t __wrap_xpl_product_publish(struct xpl_product_manager *m,
                                        const struct xpl_product_publication *p, size_t n,
                                        const struct xpl_job_end *end, struct xpl_error *err);
xpl_status_t __wrap_xpl_product_publish(struct xpl_product_manager *m,
                                        const struct xpl_product_publication *p, size_t n,
                                        const struct xpl_job_end *end, struct xpl_error *err) {
    const xpl_status_t st = __real_xpl_product_publish(m, p, n, end, err);
    if (st == XPL_OK && end) sim_world_acknowledged(end->claim.id);
    return st;
}

// ---- sessions ----

static struct {
    struct sim_toy_session sessions[MAX_SESSIONS];
    struct xpl_host hosts[SIM_MAX_FILES];
    char names[SIM_MAX_FILES][16], paths[SIM_MAX_FILES][32], session_names[MAX_SESSIONS][16];
    int n;
    struct xpl_snapshot snapshot;
} toys;

void sim_products_reset(void) {
    toys.n = 0;
}

const struct sim_toy_session *sim_products_session(int number, int first_file, size_t n) {
    struct sim_toy_session *const s = &toys.sessions[number];
    CHECK(number == toys.n && number < MAX_SESSIONS);
    toys.n++;
    (void)snprintf(toys.session_names[number], sizeof toys.session_names[number], "s%d", number);
    for (size_t i = 0; i < n; i++) {
        const int f = first_file + (int)i;
        (void)snprintf(toys.names[f], sizeof toys.names[f], "h%d", f);
        (void)snprintf(toys.paths[f], sizeof toys.paths[f], "h%d.xplane.pb", f);
        toys.hosts[f] = (struct xpl_host){
            .name = xpl_str_from(toys.names[f]),
            .path = xpl_str_from(toys.paths[f]),
            .fingerprint = {1, (uint64_t)f + 1, sim_world_size(f), 1000 + f, 1000 + f}};
        s->hosts[i] = &toys.hosts[f];
        s->files[i] = f;
    }
    s->session = (struct xpl_session){.name = xpl_str_from(toys.session_names[number]),
                                      .hosts = &toys.hosts[first_file],
                                      .n_hosts = n};
    return s;
}

struct xpl_snapshot *__wrap_xpl_catalogue_get(struct xpl_catalogue *c);
struct xpl_snapshot *__wrap_xpl_catalogue_get(struct xpl_catalogue *c) {
    (void)c;
    return &toys.snapshot;
}

void __wrap_xpl_snapshot_unref(struct xpl_snapshot *s);
void __wrap_xpl_snapshot_unref(struct xpl_snapshot *s) {
    (void)s;
}

void __wrap_xpl_catalogue_mark_session(struct xpl_catalogue *c, xpl_str_t name);
void __wrap_xpl_catalogue_mark_session(struct xpl_catalogue *c, xpl_str_t name) {
    (void)c, (void)name;
}

xpl_status_t __wrap_xpl_snapshot_find_all(struct xpl_snapshot **s, xpl_str_t names,
                                          const struct xpl_session **ret, struct xpl_error *err);
xpl_status_t __wrap_xpl_snapshot_find_all(struct xpl_snapshot **s, xpl_str_t names,
                                          const struct xpl_session **ret, struct xpl_error *err) {
    (void)s;
    for (int i = 0; i < toys.n; i++) {
        if (!xpl_str_eq(toys.sessions[i].session.name, names)) continue;
        *ret = &toys.sessions[i].session;
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no such session");
}

const struct xpl_host *__wrap_xpl_session_find_host(const struct xpl_session *s, xpl_str_t name);
const struct xpl_host *__wrap_xpl_session_find_host(const struct xpl_session *s, xpl_str_t name) {
    for (size_t i = 0; i < s->n_hosts; i++)
        if (xpl_str_eq(s->hosts[i].name, name))
            return sim_world_has(file_of(&s->hosts[i])) ? &s->hosts[i] : NULL;
    return NULL;
}

// ---- answers ----

enum sim_answer sim_products_answer(struct xpl_store *s, const struct xpl_host *h, int file) {
    const struct xpl_profile_id id = id_of(h);
    for (size_t k = 0; all[k]; k++) {
        struct xpl_store_value v = {0};
        char right[BYTES];
        const struct xpl_store_key key = {.kind = XPL_STORE_PRODUCT,
                                          .name = xpl_str_from(all[k]->name),
                                          .options = XPL_STR(""),
                                          .version = all[k]->version,
                                          .profiles = &id,
                                          .n_profiles = 1};
        bool cancelled;
        make_bytes(all[k], h->fingerprint.size, right);
        if (xpl_store_get(s, &key, 1 << 20, &v, NULL) != XPL_OK) {
            if (!sim_world_read(file, NULL, NULL, &cancelled)) return SIM_ANSWER_BROKEN;
            continue; // made here
        }
        const bool is_right = v.len == BYTES && memcmp(v.data, right, BYTES) == 0;
        xpl_sys_free(v.data);
        if (!is_right) return SIM_ANSWER_WRONG;
    }
    return SIM_ANSWER_RIGHT;
}
