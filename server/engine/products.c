// Hosts' OpStats: memory, store, conversion; each host is converted by one thread at a time, and
// everybody who wants it waits for that and shares its outcome.
#include <string.h>
#include <time.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/pipeline.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "server/engine/impl.h"
#include "server/engine/opstats_rows.h"
#include "server/engine/writer.h"
#include "storage/sessions/identity.h"

enum { ATTEMPTS = 4 }; // one, and three more when the file changed meanwhile

struct xpl_conversion { // one that is under way, or whose outcome somebody still reads
    struct xpl_conversion *next;
    struct xpl_fingerprint print;
    unsigned variant;
    bool prefetch;
    unsigned refs;        // the maker's and one for each who waits; under the engine's mutex
    atomic_bool others;   // somebody waits: readable without it
    atomic_bool give_way; // a request wants what a prefetch is making
    bool done, made;      // made: from the profile, not from memory or the store
    xpl_status_t status;  // when done, as what follows
    struct xpl_error err;
    struct xpl_host_product *product;
};

struct key {
    char kind; // 'P' product, 'D' device flag
    uint8_t variant;
    char pad[6];
    struct xpl_fingerprint print;
};

static struct key make_key(char kind, const struct xpl_fingerprint *print, unsigned variant) {
    struct key k;
    memset(&k, 0, sizeof k); // compared as bytes
    k.kind = kind;
    k.variant = (uint8_t)variant;
    k.print = *print;
    return k;
}

static xpl_bytes_t key_bytes(const struct key *k) {
    return (xpl_bytes_t){(const uint8_t *)k, sizeof *k};
}

static void product_destroy(struct xpl_object *o) {
    struct xpl_host_product *p = (struct xpl_host_product *)o;
    xpl_arena_fini(&p->arena);
    xpl_sys_free(p->packed);
    xpl_sys_free(p);
}

static struct xpl_host_product *product_new(size_t limit) {
    struct xpl_host_product *p = xpl_sys_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (struct xpl_host_product){.object = {.destroy = product_destroy}};
    atomic_init(&p->object.refs, 1);
    xpl_arena_init(&p->arena, limit);
    return p;
}

struct xpl_host_product *xpl_product_peek(struct xpl_engine *e, const struct xpl_fingerprint *print,
                                          unsigned variant) {
    const struct key k = make_key('P', print, variant);
    return (struct xpl_host_product *)xpl_cache_get(e->cache, key_bytes(&k));
}

static void keep(struct xpl_engine *e, struct xpl_host_product *p, unsigned variant) {
    const struct key k = make_key('P', &p->print, variant);
    p->object.bytes = p->arena.reserved + p->packed_len + sizeof *p;
    xpl_cache_put(e->cache, key_bytes(&k), &p->object);
}

static void add_us(_Atomic uint64_t *stage_us, enum xpl_stage stage, uint64_t since_ns) {
    const uint64_t us = (xpl_clock_ns() - since_ns) / 1000;
    atomic_fetch_add(&stage_us[stage], us ? us : 1);
}

// ---- store ----

static void source_free(struct xpl_source **s) {
    xpl_source_free(*s);
}

bool xpl_product_profile_id(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *h, const struct xpl_build_context *want,
                            struct xpl_profile_id *ret) {
    if (xpl_identity_lookup(e->identity, &h->print, ret)) return true;
    if (!xpl_identity_must_hash_first(e->identity, h->print.size)) return false;
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    if (xpl_snapshot_open(snapshot, h, 0, &src, NULL) != XPL_OK || !xpl_source_is_stable(src) ||
        !xpl_fingerprint_eq(xpl_source_fingerprint(src), &h->print) ||
        xpl_identity_hash(e->identity, src, want->cancelled, want->arg, ret, NULL) != XPL_OK)
        return false;
    xpl_store_writer_wake(e->writer);
    return true;
}

static struct xpl_store_key store_key(const struct xpl_profile_id *profile, unsigned variant) {
    static const char *const options[XPL_N_VARIANTS] = {"", "cpu_as_device", "all_steps",
                                                        "cpu_as_device all_steps"};
    return (struct xpl_store_key){
        .kind = XPL_STORE_PRODUCT,
        .name = XPL_STR("op_stats"),
        .options = xpl_str_from(options[variant]),
        .version = XPL_ANALYSIS_VERSION,
        .profiles = profile,
        .n_profiles = 1,
    };
}

// ---- packing ----

xpl_status_t xpl_product_unpack(const struct xpl_host_product *p, struct xpl_arena *arena,
                                const struct xpl_opstats **ret, struct xpl_error *err) {
    struct xpl_opstats *stats = NULL;
    XPL_TRY(xpl_opstats_decode((xpl_bytes_t){p->packed, p->packed_len}, arena, &stats, err));
    *ret = stats;
    return XPL_OK;
}

// Makes a product small, when there is memory for that.  Nobody else may have it yet.
static void pack(struct xpl_host_product *p) {
    struct xpl_buf b;
    xpl_buf_init(&b, XPL_STORE_MAX_RESULT);
    if (p->stats && xpl_opstats_encode(p->stats, &b, NULL) == XPL_OK)
        p->packed = xpl_buf_take(&b, &p->packed_len);
    if (p->packed) {
        p->stats = NULL;
        xpl_arena_fini(&p->arena);
    }
    xpl_buf_fini(&b);
}

// *at, unpacked: a new one, in memory in its place.  False, and NULL, when it cannot be had.
static bool unpacked(struct xpl_engine *e, unsigned variant, struct xpl_host_product **at) {
    struct xpl_host_product *const old = *at;
    if (!old->packed) return true;
    struct xpl_host_product *p = product_new(atomic_load(&e->memory_limit));
    if (p && xpl_product_unpack(old, &p->arena, &p->stats, NULL) != XPL_OK) {
        xpl_object_unref(&p->object);
        p = NULL;
    }
    if (p) {
        p->print = old->print;
        p->stored = old->stored;
        p->settled = old->settled;
        if (p->settled) keep(e, p, variant);
    }
    xpl_object_unref(&old->object);
    *at = p;
    return p != NULL;
}

// The stored product, decoded unless a packed one will do; NULL when there is none.
static struct xpl_host_product *
from_store(struct xpl_engine *e, const struct xpl_snapshot *snapshot, const struct xpl_host *h,
           unsigned variant, const struct xpl_build_context *want, _Atomic uint64_t *stage_us) {
    const uint64_t began = xpl_clock_ns();
    struct xpl_profile_id id;
    if (!xpl_product_profile_id(e, snapshot, h, want, &id)) return NULL;
    const struct xpl_store_key k = store_key(&id, variant);
    struct xpl_store_value v;
    if (xpl_store_get(e->store, &k, atomic_load(&e->memory_limit), &v, NULL) != XPL_OK) return NULL;
    struct xpl_host_product *p = product_new(atomic_load(&e->memory_limit));
    struct xpl_opstats *stats = NULL;
    const xpl_bytes_t bytes = {v.data, v.len};
    if (p && want->packed) {
        p->packed = v.data;
        p->packed_len = v.len;
        v.data = NULL;
    } else if (p && xpl_opstats_decode(bytes, &p->arena, &stats, NULL) != XPL_OK) {
        xpl_object_unref(&p->object);
        p = NULL;
    }
    xpl_sys_free(v.data);
    xpl_sys_free(v.meta);
    if (!p) return NULL;
    p->stats = stats;
    p->print = h->print;
    p->stored = true;
    p->settled = true;
    add_us(stage_us, XPL_STAGE_STORE, began);
    return p;
}

// The rows that people query are those of the answers that they see by default.
static bool wants_rows(const struct xpl_opstats *stats, unsigned variant) {
    const bool cpu_only = stats->run_environment.hardware_type == XPL_HW_CPU_ONLY;
    return !(variant & XPL_VARIANT_ALL_STEPS) && (variant & XPL_VARIANT_CPU || !cpu_only);
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_opstats_encode(value, out, err);
}

// `rows`: the product's are wanted.
static void to_store(struct xpl_engine *e, struct xpl_snapshot *snapshot, const struct xpl_host *h,
                     struct xpl_host_product *p, unsigned variant, bool rows) {
    const struct xpl_store_key k = store_key(NULL, variant);
    const struct xpl_store_writer_key w = {.kind = k.kind,
                                           .name = k.name,
                                           .options = k.options,
                                           .version = k.version,
                                           .snapshot = snapshot,
                                           .hosts = &h,
                                           .files = &p->print,
                                           .n_hosts = 1};
    const struct xpl_store_writer_product product = {.owner = &p->object,
                                                     .value = p->stats,
                                                     .encoded = {p->packed, p->packed_len},
                                                     .encode = encode,
                                                     .rows = rows ? xpl_rows_from_product : NULL};
    struct xpl_profile_id id;
    if (!p->stored)
        xpl_store_writer_put_product(e->writer, &w, &product);
    else if (rows && xpl_identity_lookup(e->identity, &p->print, &id) &&
             !xpl_store_has_rows(e->store, &id, XPL_ANALYSIS_VERSION))
        xpl_store_writer_put_rows(e->writer, &w, &product);
}

bool xpl_product_is_stored(struct xpl_engine *e, const struct xpl_fingerprint *print) {
    struct xpl_profile_id id;
    if (!xpl_identity_lookup(e->identity, print, &id)) return false;
    const struct xpl_store_key device = store_key(&id, 0);
    const struct xpl_store_key cpu = store_key(&id, XPL_VARIANT_CPU);
    return xpl_store_has(e->store, &cpu) || xpl_store_has(e->store, &device);
}

// ---- converting ----

struct nobody { // decides for one conversion whether anyone still wants it
    const struct xpl_build_context *want;
    struct xpl_conversion *conversion;
    const struct xpl_source *source;
};

struct guarded_exec {
    struct xpl_exec exec;
    struct xpl_exec *inner;
    struct nobody nobody;
};

static bool guarded_cancelled(struct xpl_exec *x) {
    const struct nobody *n = &((struct guarded_exec *)x)->nobody;
    if (xpl_source_is_truncated(n->source)) return true; // whatever comes out is worth nothing
    if (n->conversion && atomic_load(&n->conversion->give_way)) return true;
    if (n->conversion && atomic_load(&n->conversion->others)) return false;
    return n->want->cancelled && n->want->cancelled(n->want->arg);
}

static void guarded_run(struct xpl_exec *x, size_t n, xpl_exec_fn fn, void *ctx) {
    xpl_exec_run(((struct guarded_exec *)x)->inner, n, fn, ctx);
}

static struct guarded_exec guard(const struct xpl_build_context *want, struct xpl_conversion *c,
                                 const struct xpl_source *s) {
    return (struct guarded_exec){
        .exec = {.run = guarded_run, .cancelled = guarded_cancelled, .width = want->exec->width},
        .inner = want->exec,
        .nobody = {want, c, s},
    };
}

// One attempt.  *ret may carry DATA_LOSS; ABORTED when the file changed meanwhile.
static xpl_status_t convert_once(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                                 const struct xpl_host *h, unsigned variant,
                                 const struct xpl_build_context *want, struct xpl_conversion *c,
                                 _Atomic uint64_t *stage_us, struct xpl_host_product **ret,
                                 struct xpl_error *err) {
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    uint64_t began = xpl_clock_ns();
    XPL_TRY(xpl_snapshot_open(snapshot, h, 0, &src, err));
    add_us(stage_us, XPL_STAGE_OPEN, began);
    began = xpl_clock_ns();
    const size_t limit = atomic_load(&e->memory_limit);
    struct xpl_host_product *p = product_new(limit);
    if (!p) XPL_RETURN_OOM(err, "conversion");
    struct guarded_exec exec = guard(want, c, src);
    struct xpl_opstats *stats = NULL;
    struct xpl_error why = {0};
    const struct xpl_convert_options opt = {.cpu_as_device = variant & XPL_VARIANT_CPU,
                                            .keep_incomplete_steps =
                                                variant & XPL_VARIANT_ALL_STEPS};
    const xpl_status_t st =
        xpl_bytes_op_stats(xpl_source_bytes(src), &opt, &exec.exec, limit, &p->arena, &stats, &why);
    add_us(stage_us, XPL_STAGE_CONVERT, began);
    const xpl_status_t same = xpl_source_verify(src, err);
    if (same != XPL_OK) {
        xpl_object_unref(&p->object);
        return same;
    }
    if (st != XPL_OK && st != XPL_DATA_LOSS) {
        xpl_object_unref(&p->object);
        return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", h->path.ptr,
                             why.msg);
    }
    p->status = st;
    if (st == XPL_DATA_LOSS) {
        xpl_arena_fini(&p->arena);
        xpl_error_set(&p->err, st, __FILE__, __LINE__, why.offset, "%s: %s", h->path.ptr, why.msg);
    }
    p->stats = stats;
    p->print = *xpl_source_fingerprint(src);
    p->settled = xpl_source_is_stable(src);
    atomic_fetch_add(&e->bytes_converted, p->print.size);
    *ret = p;
    return XPL_OK;
}

static xpl_status_t convert(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *h, unsigned variant,
                            const struct xpl_build_context *want, struct xpl_conversion *c,
                            _Atomic uint64_t *stage_us, struct xpl_host_product **ret,
                            struct xpl_error *err) {
    struct xpl_error last = {0};
    struct xpl_host_product *p = NULL;
    xpl_status_t st = XPL_ABORTED;
    for (int i = 0; i < ATTEMPTS && st == XPL_ABORTED; i++) {
        last = (struct xpl_error){0};
        st = convert_once(e, snapshot, h, variant, want, c, stage_us, &p, &last);
    }
    const bool sound = p && p->status == XPL_OK;
    if (st != XPL_CANCELLED) atomic_fetch_add(sound ? &e->converted_ok : &e->conversions_failed, 1);
    if (st == XPL_NOT_FOUND || st == XPL_PERMISSION_DENIED || st == XPL_FAILED_PRECONDITION) {
        // A file that cannot be opened is left out of a combination as a broken one is.
        p = product_new(0);
        if (p) {
            p->status = st;
            p->err = last;
            p->print = h->print;
            st = XPL_OK;
        }
    }
    if (st != XPL_OK && err) *err = last;
    if (st == XPL_OK) *ret = p;
    return st;
}

// ---- one conversion at a time for each host ----

// One that a prefetch makes counts only when `prefetches`.
static struct xpl_conversion *find_running(struct xpl_engine *e,
                                           const struct xpl_fingerprint *print, unsigned variant,
                                           bool prefetches) {
    struct xpl_conversion *c = e->conversions;
    while (c && (c->variant != variant || !xpl_fingerprint_eq(&c->print, print) ||
                 (c->prefetch && !prefetches)))
        c = c->next;
    return c;
}

static void drop(struct xpl_engine *e, struct xpl_conversion *c) {
    pthread_mutex_lock(&e->mu);
    const unsigned left = --c->refs;
    atomic_store(&c->others, left > 1);
    pthread_mutex_unlock(&e->mu);
    if (left) return;
    if (c->product) xpl_object_unref(&c->product->object);
    xpl_sys_free(c);
}

// Waits until c is done, or this asker gave up.  The mutex is held.
static void wait_done(struct xpl_engine *e, struct xpl_conversion *c,
                      const struct xpl_build_context *want) {
    while (!c->done && !(want->cancelled && want->cancelled(want->arg))) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000; // to notice our own cancellation
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&e->converted, &e->mu, &until);
    }
}

// Begins a conversion (*ret_mine), or waits for the one under way.  *ret is dropped by the caller.
// CANCELLED when this asker gave up while waiting.
static xpl_status_t claim(struct xpl_engine *e, const struct xpl_fingerprint *print,
                          unsigned variant, const struct xpl_build_context *want,
                          struct xpl_conversion **ret, bool *ret_mine, struct xpl_error *err) {
    struct xpl_conversion *mine = xpl_sys_alloc(sizeof *mine);
    if (!mine) XPL_RETURN_OOM(err, "conversion");
    *mine = (struct xpl_conversion){
        .print = *print, .variant = variant, .prefetch = want->prefetch, .refs = 1};
    pthread_mutex_lock(&e->mu);
    struct xpl_conversion *c = find_running(e, print, variant, want->prefetch);
    // A prefetch runs at the lowest priority and may hardly get on: it is not waited for.
    struct xpl_conversion *const slow = c ? NULL : find_running(e, print, variant, true);
    if (slow) atomic_store(&slow->give_way, true);
    *ret_mine = !c;
    if (!c) {
        mine->next = e->conversions;
        e->conversions = mine;
        *ret = mine;
    } else if (!want->prefetch) {
        c->refs++;
        atomic_store(&c->others, true);
        wait_done(e, c, want);
        *ret = c;
    }
    const bool done = !c || (!want->prefetch && c->done);
    pthread_mutex_unlock(&e->mu);
    if (c) xpl_sys_free(mine);
    if (done) return XPL_OK;
    if (!want->prefetch) drop(e, c);
    XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
}

static void finish(struct xpl_engine *e, struct xpl_conversion *mine) {
    pthread_mutex_lock(&e->mu);
    for (struct xpl_conversion **at = &e->conversions; *at; at = &(*at)->next) {
        if (*at != mine) continue;
        *at = mine->next;
        break;
    }
    mine->done = true;
    pthread_cond_broadcast(&e->converted);
    pthread_mutex_unlock(&e->mu);
}

bool xpl_product_running(struct xpl_engine *e, const struct xpl_fingerprint *print) {
    pthread_mutex_lock(&e->mu);
    const bool running =
        find_running(e, print, XPL_VARIANT_CPU, true) || find_running(e, print, 0, true);
    pthread_mutex_unlock(&e->mu);
    return running;
}

// Makes what `c` was begun for.
static void make(struct xpl_engine *e, struct xpl_snapshot *snapshot, const struct xpl_host *h,
                 const struct xpl_build_context *want, struct xpl_conversion *c,
                 _Atomic uint64_t *stage_us) {
    if (!want->fresh) c->product = xpl_product_peek(e, &h->print, c->variant);
    const bool known = c->product != NULL;
    if (!known && !want->fresh) c->product = from_store(e, snapshot, h, c->variant, want, stage_us);
    c->made = !c->product;
    if (c->made)
        c->status = convert(e, snapshot, h, c->variant, want, c, stage_us, &c->product, &c->err);
    const bool settled = c->status == XPL_OK && c->product->settled;
    const bool sound = c->status == XPL_OK && c->product->status == XPL_OK;
    // Rows that a crash lost are made when the product is read unpacked.
    const bool rows = sound && c->product->stats && wants_rows(c->product->stats, c->variant);
    if (sound && !known && want->packed) pack(c->product);
    if (settled && !(sound && want->prefetch)) keep(e, c->product, c->variant);
    finish(e, c);
    if (sound && settled && !known) to_store(e, snapshot, h, c->product, c->variant, rows);
}

xpl_status_t xpl_product_get(struct xpl_engine *e, struct xpl_snapshot *snapshot,
                             const struct xpl_host *h, unsigned variant,
                             const struct xpl_build_context *want, _Atomic uint64_t *stage_us,
                             struct xpl_host_product **ret, struct xpl_error *err) {
    struct xpl_build_context w = *want;
    *ret = w.fresh ? NULL : xpl_product_peek(e, &h->print, variant);
    // Packed bytes that cannot be used are as good as none.
    if (*ret && !w.packed && !unpacked(e, variant, ret)) w.fresh = true;
    while (!*ret) {
        struct xpl_conversion *c = NULL;
        bool mine;
        XPL_TRY(claim(e, &h->print, variant, &w, &c, &mine, err));
        if (mine) make(e, snapshot, h, &w, c, stage_us);
        // An outcome of another's is ours too, unless its makers gave up or it is not new enough.
        const bool ours = mine || (c->status != XPL_CANCELLED && (c->made || !w.fresh));
        const xpl_status_t st = c->status;
        if (ours && st == XPL_OK) {
            xpl_object_ref(&c->product->object);
            *ret = c->product;
        } else if (ours && err) {
            *err = c->err;
        }
        drop(e, c);
        if (ours && st != XPL_OK) return st;
    }
    if (w.packed || unpacked(e, variant, ret)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%s: no memory for its OpStats (--memory-limit)",
                     h->path.ptr);
}

xpl_status_t xpl_product_host_answer(struct xpl_engine *e, const struct xpl_tool *tool,
                                     const struct xpl_snapshot *snapshot, const struct xpl_host *h,
                                     const struct xpl_build_context *want,
                                     _Atomic uint64_t *stage_us, struct xpl_buf *out,
                                     struct xpl_fingerprint *ret_print, bool *ret_settled,
                                     struct xpl_error *err) {
    struct xpl_error last = {0};
    xpl_status_t st = XPL_ABORTED;
    for (int i = 0; i < ATTEMPTS && st == XPL_ABORTED; i++) {
        XPL_AUTO(source_free) struct xpl_source *src = NULL;
        last = (struct xpl_error){0};
        out->n = 0;
        uint64_t began = xpl_clock_ns();
        XPL_TRY(xpl_snapshot_open(snapshot, h, 0, &src, err));
        add_us(stage_us, XPL_STAGE_OPEN, began);
        began = xpl_clock_ns();
        struct guarded_exec exec = guard(want, NULL, src);
        struct xpl_error why = {0};
        st = xpl_bytes_answer(tool, xpl_source_bytes(src), &exec.exec,
                              atomic_load(&e->memory_limit), out, &why);
        add_us(stage_us, XPL_STAGE_CONVERT, began);
        if (st != XPL_OK)
            xpl_error_set(&last, st, __FILE__, __LINE__, why.offset, "%s: %s", h->path.ptr,
                          why.msg);
        struct xpl_error changed = {0};
        const xpl_status_t same = xpl_source_verify(src, &changed);
        if (same != XPL_OK) {
            st = same;
            last = changed;
        }
        *ret_print = *xpl_source_fingerprint(src);
        *ret_settled = xpl_source_is_stable(src);
    }
    if (st != XPL_OK && err) *err = last;
    return st;
}

// ---- devices ----

struct device_flag {
    struct xpl_object object;
    bool has;
};

static void flag_destroy(struct xpl_object *o) {
    xpl_sys_free(o);
}

static bool host_has_device(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                            const struct xpl_host *h) {
    const struct key k = make_key('D', &h->print, 0);
    struct device_flag *f = (struct device_flag *)xpl_cache_get(e->cache, key_bytes(&k));
    if (f) {
        const bool has = f->has;
        xpl_object_unref(&f->object);
        return has;
    }
    struct xpl_source *src = NULL;
    if (xpl_snapshot_open(snapshot, h, 0, &src, NULL) != XPL_OK) return false;
    const bool has = xpl_bytes_have_device(xpl_source_bytes(src));
    const bool same = xpl_source_verify(src, NULL) == XPL_OK;
    xpl_source_free(src);
    f = same ? xpl_sys_alloc(sizeof *f) : NULL;
    if (f) {
        *f = (struct device_flag){.object = {.bytes = sizeof *f, .destroy = flag_destroy},
                                  .has = has};
        atomic_init(&f->object.refs, 1);
        xpl_cache_put(e->cache, key_bytes(&k), &f->object);
        xpl_object_unref(&f->object);
    }
    return has;
}

bool xpl_product_session_has_device(struct xpl_engine *e, const struct xpl_snapshot *snapshot,
                                    const struct xpl_session *s) {
    for (size_t i = 0; i < s->n_hosts; i++)
        if (host_has_device(e, snapshot, &s->hosts[i])) return true;
    return false;
}
