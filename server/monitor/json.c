// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/json.h"

#include "base/json.h"

// ---- members of an object ----

struct object {
    struct xpl_buf *b;
    bool more; // than the first member
};

static struct object begin(struct xpl_buf *b) {
    xpl_buf_putc(b, '{');
    return (struct object){b, false};
}

static void end(struct object *o) {
    xpl_buf_putc(o->b, '}');
}

static void put_name(struct object *o, const char *name) {
    xpl_buf_printf(o->b, "%s\"%s\":", o->more ? "," : "", name);
    o->more = true;
}

static void put_uint(struct object *o, const char *name, uint64_t v) {
    put_name(o, name);
    xpl_buf_printf(o->b, "%llu", (unsigned long long)v);
}

static void put_bool(struct object *o, const char *name, bool v) {
    put_name(o, name);
    xpl_buf_str(o->b, v ? XPL_STR("true") : XPL_STR("false"));
}

static void put_text(struct object *o, const char *name, const char *v) {
    put_name(o, name);
    xpl_json_str(o->b, xpl_str_from(v), false);
}

static struct object begin_member(struct object *o, const char *name) {
    put_name(o, name);
    return begin(o->b);
}

// ---- the objects ----

static void put_requests(struct object *top, const struct xpl_server_stats *s) {
    struct object o = begin_member(top, "requests");
    put_uint(&o, "total", xpl_server_stats_total(s));
    put_name(&o, "outcomes");
    xpl_buf_putc(o.b, '[');
    for (size_t i = 0; i < s->n_outcomes; i++) {
        if (i) xpl_buf_putc(o.b, ',');
        struct object row = begin(o.b);
        put_text(&row, "tool", s->outcomes[i].tool);
        put_text(&row, "code", s->outcomes[i].code);
        put_uint(&row, "count", s->outcomes[i].count);
        put_uint(&row, "micros", s->outcomes[i].micros);
        end(&row);
    }
    xpl_buf_putc(o.b, ']');
    end(&o);
}

static void put_cache(struct object *top, const struct xpl_server_stats *s) {
    struct object o = begin_member(top, "cache");
    put_uint(&o, "from_memory", s->engine.from_memory);
    put_uint(&o, "from_store", s->engine.from_store);
    put_uint(&o, "computed", s->engine.computed);
    put_uint(&o, "joined", s->engine.joined);
    put_uint(&o, "prefetched", s->engine.prefetched);
    put_uint(&o, "evicted", s->cache.evicted);
    end(&o);
}

static void put_queue(struct object *top, const struct xpl_server_stats *s) {
    struct object o = begin_member(top, "queue");
    put_uint(&o, "workers", s->pool.workers);
    put_uint(&o, "workers_busy", s->pool.busy);
    put_uint(&o, "queued", s->pool.queued);
    put_uint(&o, "queue_limit", s->pool.max_queued);
    put_uint(&o, "refused", s->engine.refused);
    put_uint(&o, "cancelled", s->engine.cancelled);
    put_uint(&o, "timed_out", s->engine.timed_out);
    put_uint(&o, "conversions", s->engine.conversions);
    put_uint(&o, "conversions_failed", s->engine.conversions_failed);
    put_uint(&o, "bytes_converted", s->engine.bytes_converted);
    end(&o);
}

static void put_memory(struct object *top, const struct xpl_server_stats *s) {
    struct object o = begin_member(top, "memory");
    put_uint(&o, "resident_bytes", s->process.resident_bytes);
    put_uint(&o, "anonymous_bytes", s->process.anonymous_bytes);
    put_uint(&o, "answers_bytes", s->cache.bytes);
    put_uint(&o, "answers_limit_bytes", s->cache.limit);
    put_uint(&o, "in_flight_bytes", s->engine.in_flight_bytes);
    put_uint(&o, "in_flight_limit_bytes", s->engine.memory_total);
    end(&o);
}

static void put_store(struct object *top, const struct xpl_server_stats *s) {
    struct object o = begin_member(top, "store");
    put_bool(&o, "read_only", s->store.role != XPL_STORE_WRITER);
    put_bool(&o, "rebuilt", s->store.rebuilds != 0);
    put_uint(&o, "bytes", s->store.used_bytes);
    put_uint(&o, "limit_bytes", s->store.limit_bytes);
    put_uint(&o, "hits", s->store.hits);
    put_uint(&o, "misses", s->store.misses);
    put_uint(&o, "writes", s->store.puts);
    put_uint(&o, "writes_dropped", s->store.dropped + s->writer.dropped);
    put_uint(&o, "write_queue", s->writer.queued);
    put_text(&o, "error", s->writer.error);
    end(&o);
}

static void put_rpc(struct object *top, const struct xpl_rpc_server_stats *r) {
    struct object o = begin_member(top, "rpc");
    put_uint(&o, "calls", r->calls);
    put_uint(&o, "calls_open", r->open);
    put_uint(&o, "calls_cancelled", r->cancelled);
    put_uint(&o, "calls_unauthenticated", r->unauthenticated);
    put_uint(&o, "calls_refused", r->refused);
    end(&o);
}

void xpl_server_stats_put_json(struct xpl_buf *b, const struct xpl_server_stats *s) {
    struct object top = begin(b);
    put_text(&top, "version", s->version);
    put_name(&top, "started_unix_ns");
    xpl_buf_printf(b, "%lld", (long long)s->started_unix_ns);
    put_uint(&top, "uptime_ms", s->uptime_ms);
    put_requests(&top, s);
    put_cache(&top, s);
    put_queue(&top, s);
    put_memory(&top, s);
    put_store(&top, s);
    struct object o = begin_member(&top, "catalogue");
    put_uint(&o, "sessions", s->catalogue.sessions);
    put_uint(&o, "hosts", s->catalogue.hosts);
    put_uint(&o, "bytes", s->catalogue.bytes);
    end(&o);
    put_rpc(&top, &s->rpc);
    o = begin_member(&top, "history");
    put_bool(&o, "off", s->history_off);
    put_bool(&o, "replaced", s->history_replaced);
    end(&o);
    end(&top);
}
