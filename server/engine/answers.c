// One answer: from the store, or rendered from the hosts' products.
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/pipeline.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "rpc/message.h"
#include "server/engine/impl.h"
#include "server/engine/traces.h"
#include "server/engine/writer.h"

const char *const xpl_stage_names[XPL_N_STAGES] = {"queue", "open", "convert", "render", "store"};

// Field numbers of ToolData (proto/xplaned/v1/analysis.proto).
enum {
    TOOLDATA_CONTENT_TYPE = 1,
    TOOLDATA_SOURCE = 3,
    TOOLDATA_WARNINGS = 4,
    TOOLDATA_TOTAL = 5,
    TOOLDATA_DATA = 15,
    WARNING_HOST = 1,
    WARNING_TEXT = 2
};

static void answer_destroy(struct xpl_object *o) {
    struct xpl_tool_data *a = (struct xpl_tool_data *)o;
    xpl_rpc_blob_unref(a->blob);
    xpl_sys_free(a);
}

static struct xpl_tool_data *answer_with_head(const struct xpl_buf *head, xpl_bytes_t warnings) {
    struct xpl_tool_data *a = xpl_sys_alloc(sizeof *a + warnings.len + head->n);
    if (!a) return NULL;
    *a = (struct xpl_tool_data){.object = {.destroy = answer_destroy}};
    atomic_init(&a->object.refs, 1);
    if (warnings.len) memcpy(a->text, warnings.ptr, warnings.len);
    memcpy(a->text + warnings.len, head->p, head->n);
    a->warnings = (xpl_bytes_t){a->text, warnings.len};
    a->warm_head = (xpl_bytes_t){a->text + warnings.len, head->n};
    return a;
}

static const char *content_type_of(const struct xpl_request *q) {
    const bool pb = q->tool->product == XPL_PRODUCT_TRACE && q->opt.trace.pb;
    return pb ? "application/octet-stream" : q->tool->content_type;
}

struct xpl_tool_data *xpl_answer_new(uint8_t *b, size_t n, const char *content_type,
                                     xpl_bytes_t warnings) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf head;
    xpl_buf_init(&head, (size_t)64 << 20);
    xpl_rpc_put_text(&head, TOOLDATA_CONTENT_TYPE, xpl_str_from(content_type));
    xpl_rpc_put_uint(&head, TOOLDATA_SOURCE, XPL_FROM_MEMORY);
    xpl_buf_put(&head, warnings.ptr, warnings.len);
    xpl_rpc_put_uint(&head, TOOLDATA_TOTAL, n);
    if (n) xpl_rpc_put_len(&head, TOOLDATA_DATA, n);
    struct xpl_tool_data *a = head.failed ? NULL : answer_with_head(&head, warnings);
    struct xpl_rpc_blob *blob = a ? xpl_rpc_blob_take(b, n) : NULL;
    if (!blob) {
        xpl_sys_free(b);
        xpl_sys_free(a);
        return NULL;
    }
    a->blob = blob;
    a->content_type = content_type;
    a->object.bytes = sizeof *a + n + warnings.len + head.n;
    return a;
}

// Adds a field `warnings` of ToolData, whole or not at all: with thousands of broken hosts the
// first ones have to do.
void xpl_answer_warn(struct xpl_buf *w, xpl_str_t host, xpl_str_t text) {
    enum { HEAD = 16 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one;
    xpl_buf_init(&one, 1 << 16);
    xpl_rpc_put_text(&one, WARNING_HOST, host);
    xpl_rpc_put_text(&one, WARNING_TEXT, text);
    if (one.failed || w->max - w->n < one.n + HEAD) return;
    xpl_rpc_put_len(w, TOOLDATA_WARNINGS, one.n);
    xpl_buf_put(w, one.p, one.n);
}

// ---- store ----

xpl_str_t xpl_request_options_text(const struct xpl_request *q, struct xpl_arena *arena) {
    static const char *const groups[] = {"program", "category", "provenance"};
    // Whether the CPU counts as a device depends on all hosts of the session, chosen or not.
    uint64_t session = 0;
    for (size_t i = 0; q->opt.cpu_as_device && i < q->session->n_hosts; i++) {
        const struct xpl_fingerprint *p = &q->session->hosts[i].print;
        session = (session ^ p->dev ^ p->ino * 3 ^ p->size * 5 ^ (uint64_t)p->mtime_ns * 7) *
                  0x9e3779b97f4a7c15u;
    }
    xpl_str_t text;
    // A broken host that was asked for by name is an error, not left out: by_name.
    if (!xpl_arena_printf(
            arena, &text, "cpu_as_device=%d group_by=%s xprof_exact=%d by_name=%d session=%016llx",
            q->opt.cpu_as_device, groups[q->opt.group_by], q->opt.xprof_exact,
            q->by_name && q->n_hosts > 1, (unsigned long long)(q->all_hosts ? 0 : session)))
        return (xpl_str_t){0};
    return text;
}

// The store's key of the question, in `arena`; false when out of memory.
static bool answer_key(const struct xpl_request *q, struct xpl_arena *arena,
                       struct xpl_store_writer_key *ret) {
    *ret = (struct xpl_store_writer_key){.kind = XPL_STORE_ANSWER,
                                         .name = xpl_str_from(q->tool->name),
                                         .options = xpl_request_options_text(q, arena),
                                         .version = XPL_ANALYSIS_VERSION,
                                         .snapshot = q->snapshot,
                                         .hosts = q->hosts,
                                         .n_hosts = q->n_hosts,
                                         .names_shown = true};
    return ret->options.ptr != NULL;
}

static struct xpl_tool_data *from_store(struct xpl_engine *e, const struct xpl_request *q,
                                        const struct xpl_build_context *want,
                                        const struct xpl_store_writer_key *k,
                                        struct xpl_arena *arena) {
    struct xpl_profile_id *ids = xpl_arena_array(arena, q->n_hosts, sizeof *ids);
    xpl_str_t *hosts = xpl_arena_array(arena, q->n_hosts, sizeof *hosts);
    if (!ids || !hosts) return NULL;
    for (size_t i = 0; i < q->n_hosts; i++) {
        hosts[i] = q->hosts[i]->name;
        if (!xpl_product_profile_id(e, q->snapshot, q->hosts[i], want, &ids[i])) return NULL;
    }
    const struct xpl_store_key key = {.kind = k->kind,
                                      .name = k->name,
                                      .options = k->options,
                                      .version = k->version,
                                      .profiles = ids,
                                      .hosts = hosts,
                                      .n_profiles = q->n_hosts};
    struct xpl_store_value v;
    if (xpl_store_get(e->store, &key, atomic_load(&e->memory_limit), &v, NULL) != XPL_OK)
        return NULL;
    struct xpl_tool_data *a =
        xpl_answer_new(v.data, v.len, content_type_of(q), (xpl_bytes_t){v.meta, v.meta_len});
    xpl_sys_free(v.meta);
    return a;
}

// ---- products ----

// From so many hosts on they are kept packed: unpacked they are several times as large, and a
// session of hundreds would fill the memory.
enum { MANY_HOSTS = 9, BUSY_RETRY_MS = 500 };

struct gather { // one piece per host
    struct xpl_engine *e;
    const struct xpl_request *q;
    const struct xpl_build_context *want;
    unsigned variant;
    struct xpl_host_product **products;
    struct xpl_arena *arenas;         // of what was packed
    const struct xpl_opstats **stats; // of each host
    atomic_size_t unpacked;           // bytes
    xpl_status_t *status;
    struct xpl_error *errs;
    _Atomic uint64_t stage_us[XPL_N_STAGES];
    atomic_bool failed; // some host failed in a way that ends it all
};

static void gather_one(void *ctx, size_t i) {
    struct gather *g = ctx;
    if (atomic_load(&g->failed)) return;
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_build_context want = *g->want;
    want.packed = g->q->n_hosts >= MANY_HOSTS;
    // With many hosts the hosts are the pieces; cutting each up as well only adds hand-overs.
    if (g->q->n_hosts >= 2 * (size_t)want.exec->width) {
        serial.cancelled = NULL;
        want.exec = &serial;
    }
    g->status[i] = xpl_product_get(g->e, g->q->snapshot, g->q->hosts[i], g->variant, &want,
                                   g->stage_us, &g->products[i], &g->errs[i]);
    if (g->status[i] != XPL_OK) atomic_store(&g->failed, true);
}

static void unpack_one(void *ctx, size_t i) {
    struct gather *g = ctx;
    const struct xpl_host_product *const p = g->products[i];
    g->stats[i] = p->stats;
    if (!p->packed || atomic_load(&g->failed)) return;
    const size_t limit = atomic_load(&g->e->memory_limit);
    xpl_arena_init(&g->arenas[i], limit);
    xpl_status_t st = xpl_product_unpack(p, &g->arenas[i], &g->stats[i], &g->errs[i]);
    const size_t used = g->arenas[i].reserved;
    if (st == XPL_OK && atomic_fetch_add(&g->unpacked, used) + used > limit)
        st = xpl_error_set(&g->errs[i], XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "the hosts together are over --memory-limit; ask for fewer");
    g->status[i] = st;
    if (st != XPL_OK) atomic_store(&g->failed, true);
}

static void release_products(struct gather *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++) {
        if (g->products[i]) xpl_object_unref(&g->products[i]->object);
        xpl_arena_fini(&g->arenas[i]);
    }
}

// Hosts for the combination; broken ones are left out with a warning, unless that leaves nothing
// or they were asked for by name.
static xpl_status_t choose(const struct gather *g, struct xpl_host_opstats *hosts,
                           struct xpl_buf *w, struct xpl_error *err) {
    size_t sound = 0;
    for (size_t i = 0; i < g->q->n_hosts; i++) {
        const struct xpl_host_product *p = g->products[i];
        const xpl_str_t name = g->q->hosts[i]->name;
        hosts[i] = (struct xpl_host_opstats){.host = name, .stats = g->stats[i]};
        if (p->status != XPL_OK) {
            if (g->q->by_name || g->q->n_hosts == 1) {
                *err = p->err;
                return p->status;
            }
            hosts[i].stats = NULL;
            hosts[i].problem = xpl_str_from(p->err.msg);
            xpl_answer_warn(w, name, hosts[i].problem);
        } else {
            sound++;
            if (p->print.size == 0)
                xpl_answer_warn(w, name, XPL_STR("the profile is empty (0 bytes)"));
        }
    }
    if (sound) return XPL_OK;
    *err = g->products[0]->err;
    return g->products[0]->status;
}

static xpl_status_t render(const struct xpl_request *q, const struct xpl_host_opstats *hosts,
                           size_t limit, struct xpl_buf *out, struct xpl_error *err) {
    if (q->tool->render)
        return xpl_answer_render(q->tool, &q->opt, hosts, q->n_hosts, limit, out, err);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, limit);
    struct xpl_opstats *all;
    XPL_TRY(xpl_opstats_combine(hosts, q->n_hosts, q->opt.xprof_exact, &arena, &all, err));
    return xpl_opstats_encode(all, out, err);
}

static xpl_status_t gather_products(struct gather *g, struct xpl_arena *arena,
                                    struct xpl_error *err) {
    const size_t n = g->q->n_hosts;
    g->products = xpl_arena_zalloc(arena, n * sizeof *g->products);
    g->arenas = xpl_arena_zalloc(arena, n * sizeof *g->arenas);
    g->stats = xpl_arena_zalloc(arena, n * sizeof *g->stats);
    g->status = xpl_arena_zalloc(arena, n * sizeof *g->status);
    g->errs = xpl_arena_zalloc(arena, n * sizeof *g->errs);
    if (!g->products || !g->arenas || !g->stats || !g->status || !g->errs) {
        g->products = NULL;
        XPL_RETURN_OOM(err, "hosts");
    }
    xpl_exec_run(g->want->exec, n, gather_one, g);
    if (!atomic_load(&g->failed)) xpl_exec_run(g->want->exec, n, unpack_one, g);
    for (size_t i = 0; i < n; i++) {
        if (g->status[i] == XPL_OK) continue;
        *err = g->errs[i];
        return g->status[i];
    }
    return XPL_OK;
}

// True when every product was made from the bytes that the question's snapshot saw: else the answer
// must not be kept under the question's key.
static bool products_match(const struct gather *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        if (!g->products[i]->settled ||
            !xpl_fingerprint_eq(&g->products[i]->print, &g->q->hosts[i]->print))
            return false;
    return true;
}

static bool all_stored(const struct gather *g) {
    for (size_t i = 0; i < g->q->n_hosts; i++)
        if (!g->products[i]->stored) return false;
    return true;
}

struct making { // an answer on its way
    struct xpl_buf out, warnings;
    bool keep, stored;
};

static xpl_status_t from_products(struct xpl_engine *e, const struct xpl_request *q,
                                  const struct xpl_build_context *want, struct making *m,
                                  struct xpl_outcome *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, atomic_load(&e->memory_limit));
    struct gather g = {.e = e, .q = q, .want = want};
    if (q->opt.cpu_as_device && !xpl_product_session_has_device(e, q->snapshot, q->session))
        g.variant |= XPL_VARIANT_CPU;
    if (q->all_steps) g.variant |= XPL_VARIANT_ALL_STEPS;
    xpl_status_t st = gather_products(&g, &arena, &ret->err);
    struct xpl_host_opstats *hosts = xpl_arena_array(&arena, q->n_hosts, sizeof *hosts);
    if (st == XPL_OK && !hosts)
        st = xpl_error_set(&ret->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "out of memory");
    if (st == XPL_OK) st = choose(&g, hosts, &m->warnings, &ret->err);
    if (st == XPL_OK) {
        const uint64_t began = xpl_clock_ns();
        st = render(q, hosts, atomic_load(&e->memory_limit), &m->out, &ret->err);
        ret->stage_us[XPL_STAGE_RENDER] = (xpl_clock_ns() - began) / 1000 + 1;
        m->keep = products_match(&g);
        m->stored = all_stored(&g);
    }
    for (int i = 0; i < XPL_N_STAGES; i++)
        ret->stage_us[i] += atomic_load(&g.stage_us[i]);
    if (g.products) release_products(&g);
    return st;
}

static xpl_status_t answer_of_host(struct xpl_engine *e, const struct xpl_request *q,
                                   const struct xpl_build_context *want, struct making *m,
                                   struct xpl_outcome *ret) {
    _Atomic uint64_t stage_us[XPL_N_STAGES] = {0};
    struct xpl_fingerprint print = {0};
    bool settled = false;
    const xpl_status_t st = xpl_product_host_answer(e, q->tool, q->snapshot, q->hosts[0], want,
                                                    stage_us, &m->out, &print, &settled, &ret->err);
    for (int i = 0; i < XPL_N_STAGES; i++)
        ret->stage_us[i] += atomic_load(&stage_us[i]);
    m->keep = settled && xpl_fingerprint_eq(&print, &q->hosts[0]->print);
    return st;
}

// Keeps a finished answer: in memory, and by way of the writer in the store.
static void keep_answer(struct xpl_engine *e, const struct xpl_request *q,
                        const struct xpl_store_writer_key *k, struct xpl_tool_data *a, bool write) {
    xpl_cache_put(e->cache, q->key, &a->object);
    if (write)
        xpl_store_writer_put_bytes(e->writer, k, &a->object, xpl_rpc_blob_get(a->blob),
                                   a->warnings);
}

static void make(struct xpl_engine *e, const struct xpl_request *q,
                 const struct xpl_build_context *want, const struct xpl_store_writer_key *k,
                 struct xpl_outcome *ret) {
    struct making m = {0};
    struct xpl_traces_rest rest = {0};
    xpl_buf_init(&m.out, atomic_load(&e->memory_limit));
    xpl_buf_init(&m.warnings, XPL_STORE_MAX_META);
    if (q->tool->product == XPL_PRODUCT_OP_STATS)
        ret->code = from_products(e, q, want, &m, ret);
    else if (q->tool->product == XPL_PRODUCT_TRACE)
        ret->code = xpl_traces_answer(e, q, want, ret->stage_us, &m.out, &m.warnings, &m.keep,
                                      &m.stored, &rest, &ret->err);
    else
        ret->code = answer_of_host(e, q, want, &m, ret);
    if (ret->code == XPL_OK) {
        size_t n = 0;
        uint8_t *const bytes = xpl_buf_take(&m.out, &n);
        ret->answer = bytes ? xpl_answer_new(bytes, n, content_type_of(q),
                                             (xpl_bytes_t){m.warnings.p, m.warnings.n})
                            : NULL;
        ret->source = m.stored ? XPL_FROM_STORE : XPL_COMPUTED;
        if (!ret->answer)
            ret->code = xpl_error_set(&ret->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                      UINT64_MAX, "out of memory, or over --memory-limit");
        else if ((ret->kept = m.keep))
            keep_answer(e, q, k, ret->answer, q->tool->product != XPL_PRODUCT_TRACE);
    }
    xpl_buf_fini(&m.out);
    xpl_buf_fini(&m.warnings);
    if (!rest.held) return;
    want->deliver(want->arg, ret);
    xpl_traces_do_rest(e, want->exec, &rest);
}

void xpl_answer_make(struct xpl_engine *e, const struct xpl_request *q,
                     const struct xpl_build_context *want, struct xpl_outcome *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)256 << 20);
    struct xpl_store_writer_key k;
    if (!answer_key(q, &arena, &k)) {
        ret->code = xpl_error_set(&ret->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                                  "out of memory");
        return;
    }
    // Views of a trace are not stored: the index is.
    if (!want->fresh && q->tool->product != XPL_PRODUCT_TRACE) {
        const uint64_t began = xpl_clock_ns();
        ret->answer = from_store(e, q, want, &k, &arena);
        ret->stage_us[XPL_STAGE_STORE] = (xpl_clock_ns() - began) / 1000 + 1;
        if (ret->answer) {
            ret->code = XPL_OK;
            ret->source = XPL_FROM_STORE;
            ret->kept = true;
            keep_answer(e, q, &k, ret->answer, false);
            return;
        }
    }
    if (want->admit && !want->admit(want->arg)) {
        ret->retry_ms = BUSY_RETRY_MS;
        ret->code =
            xpl_error_set(&ret->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                          "the requests under way use all of --memory-total; try again soon");
        return;
    }
    make(e, q, want, &k, ret);
}
