// SPDX-License-Identifier: Apache-2.0
// A capture through the test's driver: the run knows no protocol.
#include "capture/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/heap.h"
#include "capture/budget.h"
#include "tests/check.h"
#include "tests/processor_time.h"
#include "tests/xspace_maker.h"

// ---- the driver: hosts are named after their behaviour ----

struct xpl_capture_connection {
    struct xpl_capture_connections *set;
    struct xpl_capture_connection *next;
    const char *target;
    void *user;
    enum xpl_capture_event_kind pending; // NONE: nothing
    unsigned attempts;
    bool receives;
};

struct xpl_capture_connections {
    struct xpl_capture_connection *first;
    unsigned receiving, most_receiving;
};
static unsigned connecting, most_connecting;
static bool started_early; // while a host still had to connect

static struct xpl_buf xspace; // what hosts send
static unsigned opened, closed, most_receiving;

static xpl_status_t toy_open(const struct xpl_capture_plan *plan,
                             struct xpl_capture_connections **ret, struct xpl_error *err) {
    (void)plan;
    if (!(*ret = xpl_sys_alloc(sizeof **ret))) XPL_RETURN_OOM(err, "toy");
    **ret = (struct xpl_capture_connections){0};
    opened++;
    return XPL_OK;
}

static void toy_close(struct xpl_capture_connections *set) {
    if (!set) return;
    most_receiving = set->most_receiving;
    while (set->first) {
        struct xpl_capture_connection *const c = set->first;
        set->first = c->next;
        xpl_sys_free(c);
    }
    xpl_sys_free(set);
    closed++;
}

static xpl_status_t toy_add(struct xpl_capture_connections *set, const char *target, void *user,
                            struct xpl_capture_connection **ret, struct xpl_error *err) {
    struct xpl_capture_connection *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "toy");
    *c = (struct xpl_capture_connection){set, set->first, target, user, 0, 0, false};
    *ret = set->first = c;
    return XPL_OK;
}

static bool is(const struct xpl_capture_connection *c, const char *what) {
    return strncmp(c->target, what, strlen(what)) == 0;
}

static xpl_status_t toy_connect(struct xpl_capture_connection *c, struct xpl_error *err) {
    (void)err;
    if (++connecting > most_connecting) most_connecting = connecting;
    c->pending = is(c, "absent") ? XPL_CAPTURE_EVENT_UNREACHABLE : XPL_CAPTURE_EVENT_CONNECTED;
    return XPL_OK;
}

static xpl_status_t toy_start(struct xpl_capture_connection *c, const struct xpl_capture_query *q,
                              struct xpl_error *err) {
    CHECK(q->host_name[0] && q->session_id[0] && q->root[0]);
    started_early = started_early || connecting > 0;
    if (is(c, "refusing")) XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "the toy refuses");
    c->attempts++;
    const bool busy = is(c, "busy") && c->attempts == 1;
    c->pending = busy ? XPL_CAPTURE_EVENT_ANSWERED : XPL_CAPTURE_EVENT_ANSWERING;
    return XPL_OK;
}

static uint64_t announced = UINT64_MAX;  // of all answers
static unsigned silent_for;              // so many times it is not known yet
static unsigned stored_others;           // answers read of hosts that are not silent
static uint64_t least_room = UINT64_MAX; // that an answer got

static uint64_t toy_announced(const struct xpl_capture_connection *c) {
    if (is(c, "silent")) return stored_others >= 2 ? 500 : 0;
    if (is(c, "late")) return c->receives ? 5000 : UINT64_MAX;
    if (!silent_for) return announced;
    silent_for--;
    return 0;
}

static void toy_receive(struct xpl_capture_connection *c, uint64_t max_bytes) {
    least_room = max_bytes < least_room ? max_bytes : least_room;
    c->receives = true;
    c->pending = is(c, "late") ? XPL_CAPTURE_EVENT_NONE : XPL_CAPTURE_EVENT_ANSWERED;
    if (++c->set->receiving > c->set->most_receiving) c->set->most_receiving = c->set->receiving;
}

// Traces of PyTorch's processes, in pieces; "odd": the second is not compressed.
static xpl_status_t read_traces(const struct xpl_capture_connection *c,
                                const struct xpl_capture_sink *sink, struct xpl_error *err) {
    static const uint8_t good[] = {0x1f, 0x8b, 8, 1, 2}, bad[] = {0x1f, '{', '}', 1, 2};
    for (int i = 0; i < 2; i++) {
        const bool odd = i && is(c, "odd");
        const xpl_str_t name = i && !is(c, "twins") ? XPL_STR("b/../c.pt.trace.json.gz")
                                                    : XPL_STR("a.pt.trace.json.gz");
        if (!sink->begin_trace(sink->ctx, name)) return XPL_CANCELLED;
        for (size_t k = 0; k < sizeof good; k++)
            if (!sink->put(sink->ctx, (xpl_bytes_t){(odd ? bad : good) + k, 1}))
                return XPL_CANCELLED;
    }
    if (is(c, "broken")) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no toy");
    return XPL_OK;
}

static xpl_status_t toy_read(struct xpl_capture_connection *c, const struct xpl_capture_sink *sink,
                             struct xpl_capture_answer *ret, struct xpl_error *err) {
    *ret = (struct xpl_capture_answer){.idle = is(c, "idle")};
    (void)strcpy(ret->reason, "the toy keeps it");
    c->set->receiving--;
    if (is(c, "idle") || is(c, "keeping")) return XPL_OK;
    if (is(c, "garbage")) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no toy");
    if (is(c, "traces")) (void)strcpy(ret->notes, "process 7 is missing");
    if (is(c, "traces") || is(c, "twins") || is(c, "odd") || is(c, "broken"))
        return read_traces(c, sink, err);
    if (!is(c, "silent")) stored_others++;
    for (size_t i = 0; i < xspace.n; i++)
        if (!sink->put(sink->ctx, (xpl_bytes_t){xspace.p + i, 1})) return XPL_CANCELLED;
    return XPL_OK;
}

static void toy_cancel(struct xpl_capture_connection *c) {
    c->pending = XPL_CAPTURE_EVENT_NONE;
}

// The next connection with a message; answers are complete when no connection has another.
static struct xpl_capture_connection *toy_next(struct xpl_capture_connections *set) {
    struct xpl_capture_connection *answered = NULL;
    for (struct xpl_capture_connection *c = set->first; c; c = c->next) {
        if (c->pending == XPL_CAPTURE_EVENT_ANSWERED)
            answered = c;
        else if (c->pending)
            return c;
    }
    return answered;
}

static void toy_next_event(struct xpl_capture_connections *set, int wait_ms,
                           struct xpl_capture_event *ret) {
    struct xpl_capture_connection *const c = toy_next(set);
    *ret = (struct xpl_capture_event){0};
    if (!c) {
        (void)usleep(1000 * (unsigned)(wait_ms < 5 ? wait_ms : 5));
        return;
    }
    ret->kind = c->pending;
    ret->user = c->user;
    c->pending = XPL_CAPTURE_EVENT_NONE;
    connecting -=
        ret->kind == XPL_CAPTURE_EVENT_UNREACHABLE || ret->kind == XPL_CAPTURE_EVENT_CONNECTED;
    const bool busy = is(c, "busy") && c->attempts == 1;
    if (ret->kind != XPL_CAPTURE_EVENT_UNREACHABLE &&
        (ret->kind != XPL_CAPTURE_EVENT_ANSWERED || !busy))
        return;
    ret->code = XPL_UNAVAILABLE;
    ret->again = true;
    (void)strcpy(ret->reason, busy ? "the toy is busy" : "no toy there");
}

static const struct xpl_capture_driver toy = {
    .name = "toy",
    .open = toy_open,
    .close = toy_close,
    .add = toy_add,
    .connect = toy_connect,
    .start = toy_start,
    .announced = toy_announced,
    .receive = toy_receive,
    .read = toy_read,
    .cancel = toy_cancel,
    .next_event = toy_next_event,
};

// ---- captures ----

static char logdir[] = "/tmp/xpl_capture_driver_XXXXXX";

static const struct xpl_capture_host *host(const struct xpl_capture_outcome *o, const char *what) {
    for (size_t i = 0; i < o->n_hosts; i++)
        if (strncmp(o->hosts[i].target, what, strlen(what)) == 0) return &o->hosts[i];
    FAIL_TEST(what);
}

static void test_run(void) {
    static const char *const targets[] = {"good:1",     "fine:1", "busy:1",    "absent:1",
                                          "refusing:1", "idle:1", "garbage:1", "keeping:1"};
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .driver = &toy,
                                          .targets = targets,
                                          .n_targets = sizeof targets / sizeof *targets,
                                          .duration_ms = 1,
                                          .host_tracer_level = -1,
                                          .device_tracer_level = -1,
                                          .python_tracer_level = -1,
                                          .retries = 1,
                                          .receive_at_once = 1};
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err);
    if (st != XPL_OK) fprintf(stderr, "%s\n", err.msg);
    CHECK_EQ(st, XPL_OK);
    CHECK_EQ(o.n_stored, 3);
    CHECK(host(&o, "good")->state == XPL_CAPTURE_STORED && host(&o, "good")->attempts == 1);
    CHECK(host(&o, "fine")->file.counts.bytes == xspace.n);
    CHECK(host(&o, "busy")->state == XPL_CAPTURE_STORED && host(&o, "busy")->attempts == 2);
    CHECK(host(&o, "absent")->code == XPL_UNAVAILABLE);
    CHECK(strcmp(host(&o, "absent")->reason, "no toy there") == 0);
    CHECK(host(&o, "refusing")->code == XPL_UNIMPLEMENTED);
    CHECK(host(&o, "idle")->state == XPL_CAPTURE_IDLE && host(&o, "idle")->attempts == 2);
    CHECK(host(&o, "garbage")->code == XPL_DATA_LOSS);
    CHECK(strcmp(host(&o, "garbage")->reason, "no toy") == 0);
    CHECK(host(&o, "keeping")->code == XPL_FAILED_PRECONDITION);
    CHECK(strcmp(host(&o, "keeping")->reason, "the toy keeps it") == 0);
    CHECK(opened == 1 && closed == 1 && most_receiving == 1);
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/good_1.xplane.pb", o.path);
    CHECK(access(path, R_OK) == 0);
    (void)snprintf(path, sizeof path, "rm -rf %s", o.path);
    CHECK(system(path) == 0);
    xpl_capture_outcome_fini(&o);
}

static bool has_file(const struct xpl_capture_outcome *o, const char *name) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", o->path, name);
    return access(path, R_OK) == 0;
}

// One host with the traces of several processes; an answer counts as a whole.
static void test_traces(void) {
    const char *targets[] = {"traces:1", "odd:1", "broken:1"};
    struct xpl_capture_plan plan = {.size = sizeof plan,
                                    .driver = &toy,
                                    .targets = targets,
                                    .n_targets = 3,
                                    .duration_ms = 1,
                                    .session = XPL_STR("traces"),
                                    .host_tracer_level = -1,
                                    .device_tracer_level = -1,
                                    .python_tracer_level = -1};
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
    CHECK_EQ(o.n_stored, 1);
    CHECK_EQ(o.n_files, 2);
    CHECK_EQ(host(&o, "traces")->n_files, 2);
    CHECK_EQ(host(&o, "traces")->file.counts.bytes, 10);
    CHECK_STR(host(&o, "traces")->file.name, "a");
    CHECK_STR(host(&o, "traces")->reason, "2 processes; process 7 is missing");
    CHECK_EQ(host(&o, "odd")->code, XPL_DATA_LOSS);
    CHECK(strstr(host(&o, "odd")->reason, "not compressed by gzip"));
    CHECK_STR(host(&o, "broken")->reason, "no toy");
    CHECK(has_file(&o, "a.pt.trace.json.gz") && has_file(&o, "b_.._c.pt.trace.json.gz"));
    CHECK(!has_file(&o, "a_2.pt.trace.json.gz") && !has_file(&o, "b_.._c_2.pt.trace.json.gz"));
    xpl_capture_outcome_fini(&o);
    targets[0] = "twins:1";
    plan.n_targets = 1;
    plan.session = XPL_STR("twins");
    CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
    CHECK(has_file(&o, "a.pt.trace.json.gz") && has_file(&o, "a_2.pt.trace.json.gz"));
    CHECK_STR(host(&o, "twins")->reason, "2 processes");
    xpl_capture_outcome_fini(&o);
}

// Answers in memory at once, with a budget of so many; reservations are released.
static unsigned most_with_budget(uint64_t limit) {
    static const char *const targets[] = {"a:1", "b:1", "c:1", "d:1", "busy:1", "garbage:1"};
    struct xpl_capture_budget budget = {0};
    atomic_store(&budget.limit, limit);
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .driver = &toy,
                                          .targets = targets,
                                          .n_targets = sizeof targets / sizeof *targets,
                                          .duration_ms = 1,
                                          .host_tracer_level = -1,
                                          .device_tracer_level = -1,
                                          .python_tracer_level = -1,
                                          .max_host_bytes = 1000,
                                          .budget = &budget,
                                          .retries = 1};
    XPL_AUTO(xpl_capture_outcome_fini) struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
    CHECK_EQ(o.n_stored, 5);
    CHECK_EQ(atomic_load(&budget.used), 0);
    return most_receiving;
}

static void test_budget(void) {
    CHECK_EQ(most_with_budget(0), 4); // none: the plan's number
    CHECK_EQ(most_with_budget(3999), 3);
    CHECK_EQ(most_with_budget(2000), 2);
    CHECK_EQ(most_with_budget(1), 1); // a single one may
    announced = 500; // each takes its announced size, which is known a little later
    silent_for = 3;
    CHECK_EQ(most_with_budget(1999), 3);
    CHECK_EQ(silent_for, 0);
    CHECK_EQ(most_with_budget(2000), 4);
    announced = UINT64_MAX;
    struct xpl_capture_budget b = {0};
    atomic_store(&b.limit, 10);
    CHECK(xpl_capture_budget_take(&b, 11, false)); // several captures share it
    CHECK(!xpl_capture_budget_take(&b, 1, true));
    xpl_capture_budget_give(&b, 11);
    CHECK(xpl_capture_budget_take(&b, 5, false) && xpl_capture_budget_take(&b, 5, false));
    CHECK(!xpl_capture_budget_take(&b, 1, false));
    xpl_capture_budget_give(&b, 10);
}

// An answer that says that it is larger than one may be is refused before it comes, also when it
// says so late; one that does not say it gets no more room than it has taken.
static void test_too_large(void) {
    static const char *const targets[] = {"a:1", "late:1"};
    struct xpl_capture_plan plan = {.size = sizeof plan,
                                    .driver = &toy,
                                    .targets = targets,
                                    .n_targets = 1,
                                    .duration_ms = 1,
                                    .host_tracer_level = -1,
                                    .device_tracer_level = -1,
                                    .python_tracer_level = -1,
                                    .max_host_bytes = 1000};
    static const uint64_t sizes[] = {1001, 0xfffffff0};
    struct xpl_capture_budget budget = {0};
    atomic_store(&budget.limit, 10000);
    for (size_t i = 0; i < 4; i++) {
        struct xpl_capture_outcome o;
        struct xpl_error err = {0};
        announced = sizes[i % 2];
        plan.budget = i < 2 ? &budget : NULL;
        least_room = UINT64_MAX;
        CHECK_STATUS(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err),
                     XPL_RESOURCE_EXHAUSTED, &err);
        CHECK(strstr(host(&o, "a")->reason, "one answer may have 1000"));
        CHECK_EQ(least_room, UINT64_MAX); // nothing was received
        CHECK_EQ(atomic_load(&budget.used), 0);
        xpl_capture_outcome_fini(&o);
    }
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    plan.targets = targets + 1;
    CHECK_STATUS(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), XPL_RESOURCE_EXHAUSTED,
                 &err);
    CHECK(strstr(host(&o, "late")->reason, "one answer may have 1000"));
    CHECK_EQ(least_room, 1000);
    xpl_capture_outcome_fini(&o);
    announced = 500;
    plan.targets = targets, plan.budget = &budget;
    CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
    CHECK_EQ(least_room, 500);
    xpl_capture_outcome_fini(&o);
    announced = UINT64_MAX;
}

// An answer whose length arrives late does not delay those of other hosts: here it arrives after
// they are stored, before its timeout.
static void test_length_that_is_slow(void) {
    static const char *const targets[] = {"silent:1", "a:1", "b:1"};
    struct xpl_capture_budget budget = {0};
    atomic_store(&budget.limit, 600);
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .driver = &toy,
                                          .targets = targets,
                                          .n_targets = sizeof targets / sizeof *targets,
                                          .duration_ms = 1,
                                          .host_tracer_level = -1,
                                          .device_tracer_level = -1,
                                          .python_tracer_level = -1,
                                          .max_host_bytes = 700,
                                          .budget = &budget};
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    announced = 500; // one at a time
    stored_others = 0;
    CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
    CHECK_EQ(o.n_stored, 3);
    CHECK(host(&o, "silent")->answered_ns >= host(&o, "a")->answered_ns);
    CHECK(host(&o, "silent")->answered_ns >= host(&o, "b")->answered_ns);
    CHECK_EQ(most_receiving, 1);
    xpl_capture_outcome_fini(&o);
    announced = UINT64_MAX;
}

// What answers may take is taken from what all of the process may have, before they come.
static void test_shared_budget(void) {
    enum { MIB = 1 << 20 };
    const size_t before = xpl_heap_in_use();
    struct xpl_capture_budget b = {0};
    atomic_store(&b.limit, 100 * MIB);
    xpl_heap_set_budget(before + xpl_heap_resident() + (size_t)300 * MIB);
    CHECK(xpl_capture_budget_take(&b, 60 * MIB, false));
    CHECK_EQ(xpl_heap_in_use(), before + 60 * MIB);
    void *const large = xpl_sys_alloc((size_t)150 * MIB);
    CHECK(large); // never touched
    xpl_capture_budget_give(&b, 60 * MIB);
    const size_t others = xpl_heap_in_use();
    xpl_heap_set_budget(before + (size_t)200 * MIB);
    CHECK(!xpl_capture_budget_take(&b, 60 * MIB, false)); // others have it
    CHECK_EQ(xpl_heap_in_use(), others);
    CHECK_EQ(atomic_load(&b.used), 0);
    CHECK(xpl_capture_budget_take(&b, 60 * MIB, true));  // a waiter that has become the only one
    CHECK(!xpl_capture_budget_take(&b, 30 * MIB, true)); // not the only one
    xpl_capture_budget_give(&b, 60 * MIB);
    xpl_sys_free(large);
    xpl_heap_set_budget(SIZE_MAX);
    CHECK_EQ(xpl_heap_in_use(), before);
}

// As many targets as a capture may have: a part of them connects at once, and they begin when the
// last one is there.
static void test_many(void) {
    enum { N = XPL_CAPTURE_MAX_TARGETS };
    static char names[N][16];
    static const char *targets[N + 1];
    size_t n_absent = 0, n_idle = 0;
    for (size_t i = 0; i < N; i++) {
        const bool absent = i % 100 == 0, idle = !absent && i % 16; // files take their time
        (void)snprintf(names[i], sizeof names[i], "%s%zu:1",
                       absent ? "absent"
                       : idle ? "idle"
                              : "h",
                       i);
        targets[i] = names[i];
        n_absent += absent;
        n_idle += idle;
    }
    targets[N] = "more:1";
    struct xpl_capture_plan plan = {.size = sizeof plan,
                                    .driver = &toy,
                                    .targets = targets,
                                    .n_targets = N,
                                    .duration_ms = 1,
                                    .host_tracer_level = -1,
                                    .device_tracer_level = -1,
                                    .python_tracer_level = -1};
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    struct rlimit old, few = {.rlim_cur = 1024};
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    few.rlim_max = old.rlim_max;
    if (old.rlim_max >= 2 * N) { // else it is refused, as below
        const struct rlimit enough = {.rlim_cur = 2 * N, .rlim_max = old.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &enough) == 0);
        connecting = most_connecting = 0;
        started_early = false;
        CHECK_OK(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), &err);
        CHECK_EQ(o.n_stored, N - n_absent - n_idle);
        CHECK_EQ(o.n_idle, n_idle);
        CHECK_EQ(o.n_failed, n_absent);
        CHECK_EQ(most_connecting, 256);
        CHECK(!started_early);
        xpl_capture_outcome_fini(&o);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_capture_run(&plan, logdir, NULL, NULL, NULL, &o, &err), XPL_RESOURCE_EXHAUSTED,
                 &err);
    CHECK(strstr(err.msg, "4096 targets need 4160 open descriptors"));
    xpl_capture_outcome_fini(&o);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    plan.n_targets = N + 1;
    CHECK_STATUS(xpl_capture_check(&plan, &err), XPL_INVALID_ARGUMENT, &err);
}

// Long addresses, of which the last one may be the first one again.
static void test_many_long_targets(void) {
    enum { N = XPL_CAPTURE_MAX_TARGETS, TIMES = 8, SECONDS = 12 };
    static char texts[N][XPL_CAPTURE_MAX_TARGET + 1];
    static const char *targets[N];
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .targets = targets,
                                          .n_targets = N,
                                          .duration_ms = 1,
                                          .host_tracer_level = -1,
                                          .device_tracer_level = -1,
                                          .python_tracer_level = -1};
    for (size_t i = 0; i < N; i++) {
        memset(texts[i], 'a', 240);
        (void)snprintf(texts[i] + 240, 15, "%04zu:7777", i);
        targets[i] = texts[i];
    }
    const double begin = processor_s();
    for (int i = 0; i < TIMES; i++)
        CHECK_OK(xpl_capture_check(&plan, NULL), NULL);
    CHECK(is_within(begin, SECONDS));
    memcpy(texts[N - 1], texts[0], sizeof texts[0]);
    texts[N - 1][0] = 'A';
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_capture_check(&plan, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK(strstr(err.msg, "twice"));
}

static void test_default(void) {
    const struct xpl_capture_plan plan = {.size = sizeof plan}, other = {.driver = &toy};
    CHECK(xpl_capture_driver_of(&plan) == &xpl_capture_tensorflow);
    CHECK(xpl_capture_driver_of(&other) == &toy);
}

int main(void) {
    struct mk_plane p = mk_plane(1, "p");
    xspace = mk_open();
    struct xpl_buf line = mk_open();
    mk_text(&line, 2, "l");
    mk_len(&line, 4, "\x08\x01", 2);
    mk_close(&p.body, 3, &line);
    mk_close(&xspace, 1, &p.body);
    CHECK(mkdtemp(logdir));
    test_default();
    test_many_long_targets();
    test_run();
    test_traces();
    test_budget();
    test_too_large();
    test_length_that_is_slow();
    test_shared_budget();
    test_many();
    char command[4200];
    (void)snprintf(command, sizeof command, "rm -rf %s", logdir);
    CHECK(system(command) == 0);
    xpl_buf_fini(&xspace);
    return 0;
}
