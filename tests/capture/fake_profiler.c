// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/fake_profiler.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "proto/tensorflow/profiler_request.pb-c.h"
#include "rpc/message.h"
#include "rpc/server.h"
#include "tests/check.h"
#include "tests/xspace_maker.h"

enum { MAX_FAKES = 128, MAX_PENDING = 256, MAX_WAIT_NS = 50000000 };

struct fake {
    struct fake_set *set;
    struct fake_options o;
    struct xpl_rpc_server *server;
    struct xpl_rpc_method methods[4];
    struct xpl_rpc_blob *xspace;
    char address[32];
    atomic_uint calls, cancels;
    atomic_llong wanted, began;
    atomic_bool continuous, held;
};

struct pending {
    struct fake *fake;
    struct xpl_rpc_call *call;
    int64_t start, due; // Unix time
    bool begun;
    char file[600]; // what an old server writes
};

struct fake_set {
    struct xpl_rpc_queue *queue;
    struct fake fakes[MAX_FAKES];
    int n;
    pthread_t clock;
    pthread_mutex_t mu;
    pthread_cond_t cv;
    struct pending pending[MAX_PENDING];
    size_t n_pending;
    bool stop;
    sem_t down;
};

static const char *const mode_names[FAKE_MODES] = {
    "ok",        "idle", "metadata",  "blind",     "busy",      "busy_once",
    "idle_once", "hang", "die",       "garbage",   "truncated", "nonsense",
    "hostile",   "old",  "elsewhere", "tool_data", "trickle",   "unimplemented"};

enum fake_mode fake_mode_of(const char *name) {
    int i = 0;
    while (i < FAKE_MODES && strcmp(mode_names[i], name) != 0)
        i++;
    return (enum fake_mode)i;
}

static int64_t unix_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---- an XSpace ----

static void put_plane(struct xpl_buf *b, int n_events) {
    struct xpl_buf plane = mk_open(), line = mk_open(), entry = mk_open(), meta = mk_open();
    mk_int(&line, 1, 1);
    mk_text(&line, 2, "main");
    mk_int(&line, 3, 1700000000000000000);
    for (int i = 0; i < n_events; i++) {
        struct xpl_buf e = mk_open();
        mk_int(&e, 1, 1);
        mk_int(&e, 2, (int64_t)i * 20000000);
        mk_int(&e, 3, 15000000 + i % 100 * 1000);
        mk_close(&line, 4, &e);
    }
    mk_int(&meta, 1, 1);
    mk_text(&meta, 2, "work");
    mk_int(&entry, 1, 1);
    mk_close(&entry, 2, &meta);
    mk_int(&plane, 1, 1);
    mk_text(&plane, 2, "/host:CPU");
    mk_close(&plane, 3, &line);
    mk_close(&plane, 4, &entry);
    mk_close(b, 1, &plane);
}

void fake_xspace(struct xpl_buf *b, uint64_t bytes, const char *hostname) {
    struct xpl_buf one = mk_open();
    put_plane(&one, bytes > 100000 ? 50000 : 10);
    do
        xpl_buf_put(b, one.p, one.n);
    while (b->n < bytes);
    xpl_buf_fini(&one);
    mk_text(b, 4, hostname);
    CHECK(!b->failed);
}

static void read_xspace(struct xpl_buf *b, const char *path) {
    static uint8_t part[64 << 10];
    FILE *const f = fopen(path, "re");
    CHECK(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        xpl_buf_put(b, part, n);
    CHECK(!b->failed && !ferror(f));
    CHECK_EQ(fclose(f), 0);
}

static struct xpl_rpc_blob *make_xspace(const struct fake_options *o) {
    struct xpl_buf b = xpl_buf_of((size_t)3 << 30);
    size_t n;
    switch ((int)o->mode) {
        case FAKE_GARBAGE: xpl_buf_printf(&b, "garbage, not an XSpace at all"); break;
        case FAKE_METADATA: put_plane(&b, 0); break;
        case FAKE_BLIND:
            put_plane(&b, 0);
            mk_text(&b, 3, "a warning");
            mk_text(&b, 2, "libcupti is not there");
            mk_text(&b, 2, "a second error");
            break;
        case FAKE_HOSTILE: fake_xspace(&b, o->bytes, "../../../etc/passwd\n\x01\"<b>"); break;
        default:
            if (o->file)
                read_xspace(&b, o->file);
            else
                fake_xspace(&b, o->bytes, "a-host");
            break;
    }
    if (o->mode == FAKE_TRUNCATED) b.n -= 12;
    uint8_t *const p = xpl_buf_take(&b, &n);
    struct xpl_rpc_blob *const blob = xpl_rpc_blob_take(p, n);
    CHECK(blob);
    return blob;
}

// ---- answers ----

static void finish_xspace(struct fake *f, struct xpl_rpc_call *c, bool empty) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf head = xpl_buf_of(100);
    if (empty) mk_int(&head, 7, 1);
    xpl_rpc_put_len(&head, 8, xpl_rpc_blob_get(f->xspace).len);
    xpl_rpc_finish(c, (xpl_bytes_t){head.p, head.n}, f->xspace);
}

static void finish_bytes(struct xpl_rpc_call *c, const struct xpl_buf *b) {
    xpl_rpc_finish(c, (xpl_bytes_t){b->p, b->n}, NULL);
}

static void finish_tool_data(struct fake *f, struct xpl_rpc_call *c) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = mk_open(), tool = mk_open();
    const xpl_bytes_t x = xpl_rpc_blob_get(f->xspace);
    mk_text(&tool, 1, "trace.json.gz");
    mk_text(&tool, 2, "not this one");
    mk_close(&b, 6, &tool);
    tool = mk_open();
    mk_text(&tool, 1, "xplane.pb");
    mk_len(&tool, 2, x.ptr, x.len);
    mk_close(&b, 6, &tool);
    finish_bytes(c, &b);
}

static void write_file(const struct pending *p) {
    const xpl_bytes_t x = xpl_rpc_blob_get(p->fake->xspace);
    FILE *const f = fopen(p->file, "we");
    CHECK(f);
    CHECK_EQ(fwrite(x.ptr, 1, x.len, f), x.len);
    CHECK_EQ(fclose(f), 0);
}

static void answer(struct pending *p) {
    struct fake *const f = p->fake;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = mk_open();
    const bool first = atomic_load(&f->calls) == 1;
    mk_int(&b, 7, 1); // empty_trace
    switch ((int)f->o.mode) {
        case FAKE_IDLE: finish_bytes(p->call, &b); break;
        case FAKE_METADATA:
        case FAKE_BLIND: finish_xspace(f, p->call, true); break;
        case FAKE_IDLE_ONCE:
            if (first)
                finish_bytes(p->call, &b);
            else
                finish_xspace(f, p->call, false);
            break;
        case FAKE_NONSENSE:
            xpl_rpc_finish(p->call, (xpl_bytes_t){(const uint8_t *)"\xff\xff\xff", 3}, NULL);
            break;
        case FAKE_OLD:
            write_file(p);
            xpl_rpc_finish(p->call, (xpl_bytes_t){0}, NULL);
            break;
        case FAKE_ELSEWHERE: xpl_rpc_finish(p->call, (xpl_bytes_t){0}, NULL); break;
        case FAKE_TOOL_DATA: finish_tool_data(f, p->call); break;
        default: finish_xspace(f, p->call, false); break;
    }
}

// Sends what is due; returns when the next message is. s->mu is held.
static int64_t sweep(struct fake_set *s) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->n_pending;) {
        struct pending *const p = &s->pending[i];
        const int64_t t = unix_ns();
        if (!p->begun && t >= p->start) {
            p->begun = true;
            atomic_store(&p->fake->began, t);
            if (p->fake->o.mode == FAKE_DIE) _exit(9);
        }
        const bool held = atomic_load(&p->fake->held);
        if ((t >= p->due && !held) || s->stop || xpl_rpc_call_cancelled(p->call)) {
            struct pending done = *p;
            *p = s->pending[--s->n_pending];
            if (!s->stop && t >= done.due && !held) answer(&done);
            xpl_rpc_call_unref(done.call);
            continue;
        }
        const int64_t then = !p->begun ? p->start : held ? t + MAX_WAIT_NS : p->due;
        if (then < next) next = then;
        i++;
    }
    return next;
}

static void *tick(void *arg) {
    struct fake_set *const s = arg;
    pthread_mutex_lock(&s->mu);
    while (!s->stop || s->n_pending) {
        int64_t wait = sweep(s) - unix_ns();
        if (wait > MAX_WAIT_NS) wait = MAX_WAIT_NS;
        if (!s->stop && wait > 0)
            (void)xpl_cond_wait_until(&s->cv, &s->mu, xpl_clock_ns() + (uint64_t)wait);
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

// ---- the service ----

static void make_dirs(char *path) {
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        CHECK(mkdir(path, 0777) == 0 || errno == EEXIST);
        *p = '/';
    }
}

static void wait_for_end(struct fake *f, struct xpl_rpc_call *c,
                         const Tensorflow__ProfileRequest *q) {
    struct fake_set *const s = f->set;
    const int64_t start = q->opts ? (int64_t)q->opts->start_timestamp_ns : 0;
    const int64_t t = unix_ns(), begin = start > t ? start : t;
    const int64_t length = q->opts ? (int64_t)q->opts->duration_ms * 1000000 : 0;
    struct pending p = {.fake = f, .call = c, .start = begin};
    p.due = begin + length + (int64_t)f->o.extra_ms * 1000000;
    if (f->o.mode == FAKE_HANG || f->o.mode == FAKE_TRICKLE) p.due = INT64_MAX;
    // A first message, and never an end.
    if (f->o.mode == FAKE_TRICKLE) (void)xpl_rpc_send(c, (xpl_bytes_t){0}, f->xspace);
    if (f->o.mode == FAKE_OLD) {
        CHECK(snprintf(p.file, sizeof p.file, "%s/%s/%s.xplane.pb", q->repository_root,
                       q->session_id, q->host_name) < (int)sizeof p.file);
        make_dirs(p.file);
    }
    atomic_store(&f->wanted, start);
    xpl_rpc_call_ref(c);
    pthread_mutex_lock(&s->mu);
    CHECK(s->n_pending < MAX_PENDING);
    s->pending[s->n_pending++] = p;
    pthread_cond_signal(&s->cv);
    pthread_mutex_unlock(&s->mu);
}

static void on_profile(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fake *const f = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    ProtobufCMessage *m = NULL;
    const bool first = atomic_fetch_add(&f->calls, 1) == 0;
    CHECK_OK(
        xpl_rpc_message_unpack(&tensorflow__profile_request__descriptor, request, &a, &m, NULL),
        NULL);
    const Tensorflow__ProfileRequest *const q = (const Tensorflow__ProfileRequest *)m;
    CHECK(q->emit_xspace && q->session_id[0] && q->host_name[0]);
    if (f->o.mode == FAKE_BUSY || (f->o.mode == FAKE_BUSY_ONCE && first) ||
        atomic_load(&f->continuous))
        xpl_rpc_finish_status(c, XPL_INTERNAL, "Another profiling session active.");
    else if (f->o.mode == FAKE_UNIMPLEMENTED)
        xpl_rpc_finish_status(c, XPL_UNIMPLEMENTED, "no such method");
    else
        wait_for_end(f, c, q);
}

static void on_cancel(struct xpl_rpc_call *c, void *service) {
    struct fake *const f = service;
    (void)c;
    atomic_fetch_add(&f->cancels, 1);
}

static void on_start(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fake *const f = service;
    (void)request;
    if (atomic_exchange(&f->continuous, true))
        xpl_rpc_finish_status(c, XPL_ALREADY_EXISTS, "already profiling continuously");
    else
        xpl_rpc_finish(c, (xpl_bytes_t){0}, NULL);
}
static void on_stop(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fake *const f = service;
    (void)request;
    if (!atomic_exchange(&f->continuous, false))
        xpl_rpc_finish_status(c, XPL_NOT_FOUND, "no continuous profiling");
    else
        xpl_rpc_finish(c, (xpl_bytes_t){0}, NULL);
}
static void on_snapshot(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fake *const f = service;
    (void)request;
    if (!atomic_load(&f->continuous))
        xpl_rpc_finish_status(c, XPL_NOT_FOUND, "no continuous profiling");
    else
        finish_xspace(f, c, false);
}

// ---- life ----

struct fake_set *fake_set_new(void) {
    struct fake_set *const s = xpl_sys_alloc(sizeof *s);
    CHECK(s);
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->mu, NULL);
    xpl_cond_init(&s->cv);
    sem_init(&s->down, 0, 0);
    CHECK_OK(xpl_rpc_queue_new(&s->queue, NULL), NULL);
    CHECK_EQ(pthread_create(&s->clock, NULL, tick, s), 0);
    return s;
}

int fake_add(struct fake_set *s, const struct fake_options *o) {
    CHECK(s->n < MAX_FAKES);
    struct fake *const f = &s->fakes[s->n];
    const struct xpl_rpc_server_options so = {
        .size = sizeof so, .tokens = o->token ? xpl_str_from(o->token) : (xpl_str_t){0}};
    char address[32];
    int port;
    f->set = s;
    f->o = *o;
    f->xspace = make_xspace(o);
    const struct xpl_rpc_method m[4] = {
        {.path = "/tensorflow.ProfilerService/Profile",
         .on_request = on_profile,
         .on_cancel = on_cancel,
         .service = f},
        {.path = "/tensorflow.ProfilerService/StartContinuousProfiling",
         .on_request = on_start,
         .service = f},
        {.path = "/tensorflow.ProfilerService/StopContinuousProfiling",
         .on_request = on_stop,
         .service = f},
        {.path = "/tensorflow.ProfilerService/GetSnapshot",
         .on_request = on_snapshot,
         .service = f}};
    memcpy(f->methods, m, sizeof m);
    CHECK_OK(xpl_rpc_server_new(s->queue, f->methods, 4, &so, &f->server, NULL), NULL);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", o->port);
    CHECK_OK(xpl_rpc_server_listen(f->server, address, NULL, &port, NULL), NULL);
    CHECK_OK(xpl_rpc_server_start(f->server, NULL), NULL);
    (void)snprintf(f->address, sizeof f->address, "127.0.0.1:%d", port);
    return s->n++;
}

static void on_down(void *arg) {
    sem_post(arg);
}

void fake_set_free(struct fake_set *s) {
    pthread_mutex_lock(&s->mu);
    s->stop = true;
    pthread_cond_signal(&s->cv);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->clock, NULL);
    for (int i = 0; i < s->n; i++)
        xpl_rpc_server_shutdown(s->fakes[i].server, on_down, &s->down);
    for (int i = 0; i < s->n; i++)
        xpl_rpc_server_cancel_all(s->fakes[i].server);
    for (int i = 0; i < s->n; i++)
        while (sem_wait(&s->down) != 0)
            continue;
    for (int i = 0; i < s->n; i++) {
        xpl_rpc_server_free(s->fakes[i].server);
        xpl_rpc_blob_unref(s->fakes[i].xspace);
    }
    xpl_rpc_queue_free(s->queue);
    sem_destroy(&s->down);
    pthread_cond_destroy(&s->cv);
    pthread_mutex_destroy(&s->mu);
    xpl_sys_free(s);
}

const char *fake_address(const struct fake_set *s, int i) {
    return s->fakes[i].address;
}
unsigned fake_calls(const struct fake_set *s, int i) {
    return atomic_load(&s->fakes[i].calls);
}
unsigned fake_cancels(const struct fake_set *s, int i) {
    return atomic_load(&s->fakes[i].cancels);
}
void fake_hold(struct fake_set *s, int i, bool hold) {
    atomic_store(&s->fakes[i].held, hold);
}
bool fake_records(const struct fake_set *s, int i) {
    return atomic_load(&s->fakes[i].continuous);
}
int64_t fake_wanted_ns(const struct fake_set *s, int i) {
    return atomic_load(&s->fakes[i].wanted);
}
int64_t fake_began_ns(const struct fake_set *s, int i) {
    return atomic_load(&s->fakes[i].began);
}
