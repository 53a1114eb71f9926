// SPDX-License-Identifier: Apache-2.0
#include "server/engine/answers.h"

#include "analysis/formats/format.h"
#include "base/cleanup.h"
#include "server/engine/gather.h"
#include "server/engine/writer.h"

enum { BUSY_RETRY_MS = 500 };

const char *const xpl_stage_names[XPL_N_STAGES] = {"queue", "open", "convert", "render", "store"};

void xpl_outcome_fail(struct xpl_outcome *o, xpl_status_t code, int64_t retry_ms,
                      const char *text) {
    o->err = (struct xpl_error){0};
    o->code = xpl_error_set(&o->err, code, __FILE__, __LINE__, UINT64_MAX, "%s", text);
    o->retry_ms = retry_ms;
}

// An answer on its way.
struct making {
    const struct xpl_answer_parts *parts;
    const struct xpl_request *q;
    const struct xpl_answer_context *ctx;
    struct xpl_arena *arena;
    struct xpl_store_writer_key key;
    xpl_str_t left_out_options; // in place of key.options where a host is left out
    struct xpl_buf out;
    struct xpl_warnings warnings;
    struct xpl_stage_times times;
    bool keep, from_store;
    bool left_out; // some host has no say, and the answer names its file
    bool device_known;
    struct xpl_session_devices devices; // of the session, where the request asks for it
    struct xpl_product_handle *partial; // not NULL: it is finished once the answer has left
    struct xpl_opened_profile partial_profile;
};

// ---- store ----

// Whether the session has a device, asked once, of tools that ask for it.  CANCELLED; another
// failure leaves it open, and nothing may be kept then.
static xpl_status_t find_device(struct making *m, struct xpl_error *err) {
    const struct xpl_common_options *const o = m->q->options;
    if (m->device_known || !m->q->tool->asks_device || !o->cpu_as_device) return XPL_OK;
    const struct xpl_build_context ctx = {.exec = m->ctx->exec, .owner = m->ctx->owner};
    const struct xpl_session *const s = m->q->session;
    m->devices.files = xpl_arena_zalloc(m->arena, s->n_hosts * sizeof *m->devices.files);
    if (!m->devices.files) XPL_RETURN_OOM(err, "hosts");
    const xpl_status_t st = xpl_product_session_has_device(m->parts->products, m->q->snapshot, s,
                                                           &ctx, &m->times, &m->devices, err);
    m->device_known = st == XPL_OK;
    return st == XPL_CANCELLED ? st : XPL_OK;
}

static bool device_is_open(const struct making *m) {
    const struct xpl_common_options *const o = m->q->options;
    return m->q->tool->asks_device && o->cpu_as_device && !m->device_known;
}

// The store's key of the request, in `arena`.
static xpl_status_t make_store_key(struct making *m, struct xpl_arena *arena,
                                   struct xpl_error *err) {
    const struct xpl_request *const q = m->q;
    if (!q->all_hosts) XPL_TRY(find_device(m, err));
    m->key =
        (struct xpl_store_writer_key){.kind = XPL_STORE_ANSWER,
                                      .name = xpl_str_from(q->tool->name),
                                      .options = xpl_request_store_text(q, m->devices.any, arena),
                                      .version = xpl_tool_answer_version(q->tool),
                                      .snapshot = q->snapshot,
                                      .hosts = q->hosts,
                                      .n_hosts = q->n_hosts,
                                      .names_shown = true};
    // Such an answer names the file of that host, which another session has elsewhere.
    if (!m->key.options.ptr ||
        !xpl_arena_printf(arena, &m->left_out_options, "%.*s session=%.*s",
                          XPL_STR_FMT(m->key.options), XPL_STR_FMT(q->session->path)))
        XPL_RETURN_OOM(err, "request");
    return XPL_OK;
}

static struct xpl_tool_data *new_answer(const struct making *m, uint8_t *bytes, size_t n,
                                        xpl_bytes_t warnings) {
    return xpl_tool_data_new(bytes, n, xpl_tool_content_type(m->q->tool, m->q->options), warnings);
}

static struct xpl_tool_data *read_stored(const struct making *m, xpl_str_t options,
                                         struct xpl_arena *arena) {
    const struct xpl_request *const q = m->q;
    struct xpl_profile_id *ids = xpl_arena_array(arena, q->n_hosts, sizeof *ids);
    xpl_str_t *hosts = xpl_arena_array(arena, q->n_hosts, sizeof *hosts);
    if (!ids || !hosts) return NULL;
    for (size_t i = 0; i < q->n_hosts; i++) {
        hosts[i] = q->hosts[i]->name;
        if (!xpl_product_profile_id(m->parts->products, q->snapshot, q->hosts[i], m->ctx->owner,
                                    &ids[i]))
            return NULL;
    }
    const struct xpl_store_key key = {.kind = m->key.kind,
                                      .name = m->key.name,
                                      .options = options,
                                      .version = m->key.version,
                                      .profiles = ids,
                                      .hosts = hosts,
                                      .n_profiles = q->n_hosts};
    struct xpl_store_value v;
    if (xpl_store_get(m->parts->store, &key, m->ctx->limit, &v, NULL) != XPL_OK) return NULL;
    struct xpl_tool_data *const a = new_answer(m, v.data, v.len, (xpl_bytes_t){v.meta, v.meta_len});
    xpl_sys_free(v.meta);
    return a;
}

// Keeps a finished answer: in memory, and by way of the writer in the store.
static void keep_answer(const struct making *m, struct xpl_tool_data *a, bool write) {
    xpl_cache_put(m->parts->cache, (struct xpl_cache_key){XPL_CACHE_ANSWER, m->q->key}, &a->object);
    struct xpl_store_writer_key key = m->key;
    if (m->left_out) key.options = m->left_out_options;
    if (write)
        xpl_store_writer_put_bytes(m->parts->writer, &key, &a->object, xpl_rpc_blob_get(a->blob),
                                   xpl_warnings_bytes(&m->warnings));
}

// ---- rendering ----

// One attempt: what the resolver calls.
struct attempt {
    struct making *m;
    struct xpl_gathering *g;
    xpl_status_t rendered, verified;
};

static xpl_status_t get_host(void *arg, size_t i, const unsigned *variants, struct xpl_exec *exec,
                             struct xpl_resolved_host *ret, struct xpl_error *err) {
    return xpl_gather_host(((struct attempt *)arg)->g, i, variants, exec, ret, err);
}

static xpl_status_t unpack_host(void *arg, size_t i, struct xpl_resolved_host *host,
                                struct xpl_error *err) {
    return xpl_gather_unpack(((struct attempt *)arg)->g, i, host, err);
}

static xpl_status_t render(void *arg, const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    struct attempt *const a = arg;
    const uint64_t began = xpl_clock_ns();
    struct xpl_guarded_exec exec;
    xpl_guarded_exec_init(&exec, in->exec, a->m->ctx->owner, NULL);
    struct xpl_tool_input guarded = *in;
    guarded.exec = &exec.exec;
    a->rendered = a->m->q->tool->render(&guarded, out, err);
    xpl_stage_add(&a->m->times, XPL_STAGE_RENDER, began);
    return a->rendered;
}

static xpl_status_t verify(void *arg, struct xpl_error *err) {
    struct attempt *const a = arg;
    return a->verified = xpl_gather_verify(a->g, err);
}

static void add_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    xpl_warnings_add(&((struct attempt *)arg)->m->warnings, host, text);
}

// *ret_damaged: a mapped product is damaged.
static xpl_status_t resolve_once(struct making *m, struct xpl_gathering *g, bool *ret_damaged,
                                 struct xpl_error *err) {
    const struct xpl_request *const q = m->q;
    struct attempt a = {.m = m, .g = g};
    const struct xpl_resolving r = {
        .tool = q->tool,
        .options = q->options,
        .hosts = g->results,
        .n_hosts = q->n_hosts,
        .by_name = q->by_name,
        // Of mapped products one at a time: each build may use all the memory.
        .one_by_one = q->tool->reads_profile,
        .session_has_device = m->devices.any,
        .exec = m->ctx->exec,
        .limit = m->ctx->limit,
        .source = {.get = get_host,
                   .turns = xpl_gather_turns(g),
                   .unpack = unpack_host,
                   .render = render,
                   .verify = verify,
                   .warn = add_warning,
                   .arg = &a}};
    const xpl_status_t st = xpl_resolve_from(&r, &m->out, err);
    if (a.rendered == XPL_DATA_LOSS || a.verified == XPL_DATA_LOSS)
        *ret_damaged = xpl_gather_report_damage(g);
    return st;
}

// Has workers make missing products. A tool that reads profiles opens them here anyway.
static xpl_status_t ask_workers(struct making *m, struct xpl_gathering *g, struct xpl_arena *arena,
                                struct xpl_error *err) {
    const struct xpl_tool *const tool = m->q->tool;
    unsigned variants[XPL_TOOL_MAX_NEEDS] = {0};
    if (!m->parts->front || m->q->bypass_cache || tool->reads_profile) return XPL_OK;
    const uint64_t began = xpl_clock_ns();
    bool *const aside = xpl_arena_array(arena, m->q->n_hosts, sizeof *aside);
    if (!aside) XPL_RETURN_OOM(err, "hosts");
    for (size_t k = 0; tool->variant && tool->needs[k]; k++)
        variants[k] = tool->variant(m->q->options, k, m->devices.any);
    const struct xpl_front_request f = {.store = m->parts->store,
                                        .products = m->parts->products,
                                        .q = m->q,
                                        .variants = variants,
                                        .owner = m->ctx->owner,
                                        .limit = m->ctx->limit};
    const xpl_status_t st = m->parts->front->wait(&f, aside, err);
    xpl_stage_add(&m->times, XPL_STAGE_CONVERT, began);
    g->front = m->parts->front;
    g->aside = aside;
    return st;
}

static void add_times(struct xpl_stage_times *to, const struct xpl_stage_times *from) {
    for (int i = 0; i < XPL_N_STAGES; i++)
        atomic_fetch_add(&to->us[i], atomic_load(&from->us[i]));
}

static xpl_status_t make_from_products(struct making *m, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(m->ctx->limit);
    struct xpl_gathering g;
    XPL_TRY(xpl_gather_init(&g, m->parts, m->q, m->ctx, &arena, err));
    XPL_TRY(find_device(m, err));
    XPL_TRY(ask_workers(m, &g, &arena, err));
    xpl_status_t st = XPL_OK;
    bool again = true;
    struct xpl_error last = {0};
    for (int i = 0; i < XPL_OPEN_ATTEMPTS && again; i++) {
        bool damaged = false;
        last = (struct xpl_error){0};
        m->out.n = 0;
        xpl_warnings_clear(&m->warnings);
        if (i > 0) XPL_TRY(find_device(m, err));
        g.devices_of = m->devices.files;
        st = resolve_once(m, &g, &damaged, &last);
        m->device_known &= st != XPL_ABORTED; // files changed
        m->keep = xpl_gather_is_current(&g) && !device_is_open(m);
        m->left_out = xpl_gather_left_out(&g);
        m->from_store = xpl_gather_is_from_store(&g);
        // The products are useful even if the answer did not fit.
        if (st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED)
            (void)xpl_gather_take_partial(&g, &m->partial, &m->partial_profile);
        xpl_gather_release(&g);
        // A stored product may be damaged; once it is made anew it is not.
        again = !m->partial && (damaged || (st == XPL_ABORTED && xpl_gather_may_retry(&g)));
    }
    add_times(&m->times, &g.times);
    if (st != XPL_OK) *err = last;
    return st;
}

// The product is made only for this answer: render takes its bytes.
static xpl_status_t make_from_one_product(struct making *m, struct xpl_error *err) {
    const struct xpl_product *const p = m->q->tool->needs[0];
    const struct xpl_product_request r = {
        .product = p, .snapshot = m->q->snapshot, .host = m->q->hosts[0]};
    const struct xpl_build_context ctx = {.exec = m->ctx->exec, .owner = m->ctx->owner};
    struct xpl_made_product made;
    XPL_TRY(xpl_product_make(m->parts->products, &r, &ctx, &m->times, &made, err));
    const void *const products[] = {made.value};
    const struct xpl_tool_host host = {.name = m->q->hosts[0]->name, .products = products};
    const struct xpl_tool_input in = {.hosts = &host,
                                      .n_hosts = 1,
                                      .options = m->q->options,
                                      .exec = m->ctx->exec,
                                      .limit = m->ctx->limit};
    const xpl_status_t st = m->q->tool->render(&in, &m->out, err);
    p->free(made.value);
    m->keep = made.stable && xpl_fingerprint_eq(&made.fingerprint, &m->q->hosts[0]->fingerprint);
    return st;
}

// A tool answers for the import of a damaged file from its readable part: the warnings say what is
// lost, and where.
static void warn_of_import(struct making *m, const struct xpl_host *host) {
    const struct xpl_format *const f = xpl_format_of_name(host->path, NULL);
    const struct xpl_product *const p = xpl_products_inspecting(f);
    const struct xpl_product_request r = {.product = p, .snapshot = m->q->snapshot, .host = host};
    const struct xpl_build_context ctx = {.exec = m->ctx->exec, .owner = m->ctx->owner};
    struct xpl_product_handle *h = NULL;
    struct xpl_error err = {0};
    if (!p || xpl_product_get(m->parts->products, &r, &ctx, &m->times, &h, &err) != XPL_OK) return;
    const char *text;
    for (size_t i = 0; h->status == XPL_OK && (text = p->warning(h->value, i)); i++)
        xpl_warnings_add(&m->warnings, host->name, xpl_str_from(text));
    xpl_object_unref(&h->object);
}

static void warn_of_imports(struct making *m) {
    const bool imports = xpl_tool_form(m->q->tool) == XPL_FORM_XSPACE;
    for (size_t i = 0; imports && i < m->q->n_hosts; i++)
        warn_of_import(m, m->q->hosts[i]);
}

// ---- the whole ----

// From m->out, if all went well.
static void finish_outcome(struct making *m, struct xpl_outcome *ret) {
    if (ret->code != XPL_OK) return;
    size_t n = 0;
    uint8_t *const bytes = xpl_buf_take(&m->out, &n);
    ret->answer = bytes ? new_answer(m, bytes, n, xpl_warnings_bytes(&m->warnings)) : NULL;
    ret->source = m->from_store ? XPL_FROM_STORE : XPL_COMPUTED;
    if (!ret->answer) {
        xpl_outcome_fail(ret, XPL_RESOURCE_EXHAUSTED, -1, "out of memory, or over --memory-limit");
        return;
    }
    ret->kept = m->keep;
    if (m->keep) keep_answer(m, ret->answer, !m->q->tool->keeps_no_answer);
}

static void copy_times(const struct making *m, struct xpl_outcome *ret) {
    for (int i = 0; i < XPL_N_STAGES; i++)
        ret->stage_us[i] += atomic_load(&m->times.us[i]);
}

static void make_anew(struct making *m, struct xpl_outcome *ret) {
    xpl_buf_init(&m->out, m->ctx->limit);
    xpl_warnings_init(&m->warnings);
    const bool one = m->q->tool->needs[0]->residency == XPL_RESIDENCY_NONE;
    ret->code = one ? make_from_one_product(m, &ret->err) : make_from_products(m, &ret->err);
    if (ret->code == XPL_OK) warn_of_imports(m);
    copy_times(m, ret);
    finish_outcome(m, ret);
    xpl_buf_fini(&m->out);
    xpl_warnings_fini(&m->warnings);
    if (!m->partial) return;
    m->ctx->deliver(m->ctx->arg, ret);
    const struct xpl_build_context rest = {.exec = m->ctx->exec, .owner = m->ctx->rest_owner};
    xpl_product_finish(m->parts->products, m->partial, &m->partial_profile, &rest);
    xpl_opened_profile_close(&m->partial_profile);
}

// True when the store had the answer.
static bool answer_from_store(struct making *m, struct xpl_arena *arena, struct xpl_outcome *ret) {
    const uint64_t began = xpl_clock_ns();
    ret->answer = read_stored(m, m->key.options, arena);
    if (!ret->answer && m->q->n_hosts > 1 && !m->q->by_name)
        ret->answer = read_stored(m, m->left_out_options, arena);
    ret->stage_us[XPL_STAGE_STORE] = (xpl_clock_ns() - began) / 1000 + 1;
    if (!ret->answer) return false;
    ret->code = XPL_OK;
    ret->source = XPL_FROM_STORE;
    copy_times(m, ret);
    ret->kept = true;
    keep_answer(m, ret->answer, false);
    return true;
}

void xpl_request_make_answer(const struct xpl_answer_parts *parts, const struct xpl_request *q,
                             const struct xpl_answer_context *ctx, struct xpl_outcome *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)256 << 20);
    struct making m = {.parts = parts, .q = q, .ctx = ctx, .arena = &arena};
    ret->code = make_store_key(&m, &arena, &ret->err);
    if (ret->code != XPL_OK) return;
    const bool has_key = q->all_hosts || !device_is_open(&m);
    if (has_key && !q->bypass_cache && !q->tool->keeps_no_answer &&
        answer_from_store(&m, &arena, ret))
        return;
    if (ctx->admit && !ctx->admit(ctx->arg)) {
        xpl_outcome_fail(ret, XPL_RESOURCE_EXHAUSTED, BUSY_RETRY_MS,
                         "the requests under way use all of --memory-total; try again soon");
        return;
    }
    make_anew(&m, ret);
}
