// SPDX-License-Identifier: Apache-2.0
// Fronts and workers: answers are those of a single daemon, whatever becomes of the workers.
#include <stdatomic.h>

#include "base/clock.h"
#include "tests/cluster/clocks.h"
#include "tests/cluster/network.h"
#include "tests/cluster/roles.h"
#include "tests/cluster/small_disk.h"

static const char *const tools[] = {"overview_page",           "framework_op_stats", "op_profile",
                                    "input_pipeline_analyzer", "hlo_stats",          "pod_viewer"};
enum { N_TOOLS = sizeof tools / sizeof *tools };

static struct daemon_proc start_front(const char *dir) {
    const char *const flags[] = {"--role=front", store_flag(), NULL};
    return start_daemon(dir, make_dir(), flags);
}

static xpl_answer *ask(xpl_client *c, const char *run, const char *tool) {
    xpl_answer *a = NULL;
    xpl_result r;
    const int code = ask_tool(c, run, tool, NULL, &a, &r);
    if (code) fprintf(stderr, "%s: %s\n", tool, r.message);
    CHECK_EQ(code, 0);
    return a;
}

// Two daemons' answers about all hosts of a session, byte for byte.
static void compare_answers(xpl_client *c, xpl_client *d, const char *run) {
    for (size_t i = 0; i < N_TOOLS; i++) {
        size_t n[2];
        xpl_answer *const a = ask(c, run, tools[i]), *const b = ask(d, run, tools[i]);
        const void *const x = xpl_answer_data(a, &n[0]), *const y = xpl_answer_data(b, &n[1]);
        CHECK(n[0] > 0 && n[0] == n[1] && memcmp(x, y, n[0]) == 0);
        xpl_answer_free(a);
        xpl_answer_free(b);
    }
}

// The front's answers about a session are a single daemon's.
static void expect_right(const char *dir, struct daemon_proc *front, const char *run) {
    struct daemon_proc single = start_daemon(dir, make_dir(), no_prefetch);
    xpl_client *const c = open_client(front, 60000), *const d = open_client(&single, 60000);
    compare_answers(c, d, run);
    xpl_client_close(c);
    xpl_client_close(d);
    CHECK_EQ(stop_daemon(&single), 0);
}

// Requests for tools on a separate thread.
struct asking {
    struct daemon_proc *front;
    const char *run;
    pthread_t thread;
    atomic_bool done;
    uint64_t ms;
    char warning[400]; // the first one
};

static void *ask_one(void *arg) {
    struct asking *const q = arg;
    const uint64_t began = xpl_clock_ns();
    xpl_client *const c = open_client(q->front, 60000);
    xpl_answer *const a = ask(c, q->run, "overview_page");
    const char *const w = xpl_answer_warning(a, 0);
    (void)snprintf(q->warning, sizeof q->warning, "%s", w ? w : "");
    q->ms = (xpl_clock_ns() - began) / 1000000;
    xpl_answer_free(a);
    xpl_client_close(c);
    atomic_store(&q->done, true);
    return NULL;
}

static void begin_asking(struct asking *q, struct daemon_proc *front, const char *run) {
    *q = (struct asking){.front = front, .run = run};
    CHECK_EQ(pthread_create(&q->thread, NULL, ask_one, q), 0);
}

static void end_asking(struct asking *q) {
    CHECK_EQ(pthread_join(q->thread, NULL), 0);
}

// Workers make the products, and the front none.
static void scenario_shares(void) {
    const char *const dir = make_dir();
    add_hosts(dir, "run", HOSTS);
    struct daemon_proc a = start_worker(dir, NULL), b = start_worker(dir, NULL);
    struct daemon_proc front = start_front(dir);
    wait_for("SELECT count(*)=2 FROM daemons WHERE role='worker'");
    xpl_client *const c = open_client(&front, 60000);
    xpl_answer *const first = ask(c, "run", "overview_page");
    CHECK_STR(xpl_answer_source(first), "store"); // it read the products
    xpl_answer_free(first);
    xpl_client_close(c);
    expect_right(dir, &front, "run");
    expect_now("SELECT count(*)=0 FROM jobs");
    // Either may be quick enough for all.
    for (int waited = 0; !log_says(&a, "published") && !log_says(&b, "published"); waited += 50) {
        CHECK(waited < PATIENCE_MS);
        pg_pause_ms(50);
    }
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&a), 0);
    CHECK_EQ(stop_daemon(&b), 0);
}

// ---- traces of requests ----

static void make_trace(int n, char header[120], char line[120]) {
    (void)snprintf(line, 120, "trace_id=0af7651916cd43dd8448eb211c8031%02d", n);
    (void)snprintf(header, 120,
                   "traceparent: 00-0af7651916cd43dd8448eb211c8031%02d-b7ad6b7169203331-01", n);
}

static size_t put_field(char *to, int number, const char *bytes, size_t n) {
    CHECK(n < 16384);
    to[0] = (char)(number << 3 | 2);
    to[1] = (char)(n | 0x80);
    to[2] = (char)(n >> 7);
    memcpy(to + 3, bytes, n);
    return n + 3;
}

// As an XProf aggregator asks its worker, but with a header, which our clients cannot send.
static void ask_as_aggregator(const char *address, const char *path, const char *header) {
    char request[5000], message[5100] = {0}, file[4200], cmd[9000];
    size_t n = put_field(request, 1, path, strlen(path));
    n += put_field(request + n, 2, "overview_page", strlen("overview_page"));
    n = put_field(message + 5, 1, request, n); // behind the head of a message of gRPC
    message[3] = (char)(n >> 8), message[4] = (char)n;
    (void)snprintf(file, sizeof file, "%s/request", make_dir());
    FILE *const f = fopen(file, "wb");
    CHECK(f && fwrite(message, 1, n + 5, f) == n + 5 && fclose(f) == 0);
    (void)snprintf(
        cmd, sizeof cmd,
        "curl -sS --http2-prior-knowledge --max-time 60 -H 'content-type: application/grpc'"
        " -H 'te: trailers' -H '%s' --data-binary '@%s' -o /dev/null 'http://%s/"
        "xprof.pywrap.XprofAnalysisWorkerService/GetProfileData'",
        header, file, address);
    CHECK_EQ(system(cmd), 0);
}

// The log of workers has the trace of each request, whatever it is for.
static void scenario_traced(void) {
    static const char *const routes[] = {
        "/api/v1/tool?session=one&tool=overview_page", "/api/v1/compare?a=two&b=one",
        "/api/v1/history?last=9" // finds the third
    };
    enum { ROUTES = sizeof routes / sizeof *routes };
    const char *const dir = make_dir();
    const char *const flags[] = {"--role=front",   store_flag(),  "--http",        "127.0.0.1:0",
                                 "--xprof-worker", "127.0.0.1:0", "--no-prefetch", NULL};
    char header[120], line[120], with_end[130], path[4200];
    static const char *const names[] = {"one", "two", "three", "four"};
    for (size_t i = 0; i < 3; i++)
        add_hosts(dir, names[i], 1);
    struct daemon_proc w = start_worker(dir, NULL);
    struct daemon_proc front = start_daemon(dir, make_dir(), flags);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    for (int i = 0; i < ROUTES; i++) {
        make_trace(i, header, line);
        (void)snprintf(with_end, sizeof with_end, "%s\r\n", header);
        struct reply r = http_ask(front.http_address, "GET", routes[i], with_end);
        CHECK_EQ(r.status, 200);
        reply_free(&r);
        if (!log_has(&w, line)) fprintf(stderr, "%s\n", routes[i]);
        CHECK(log_has(&w, line));
    }
    add_hosts(dir, names[3], 1);
    make_trace(ROUTES, header, line);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/four/vm0.xplane.pb", dir);
    for (int i = 0; i < 20 && !log_has(&w, line); i++) { // until the front has found it
        ask_as_aggregator(front.worker_address, path, header);
        pg_pause_ms(250);
    }
    CHECK(log_has(&w, line));
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&w), 0);
}

// A front behind a pooler in transaction mode.  Workers need connections without it: one that has
// none takes no jobs, and is not counted.
static void scenario_pooled(void) {
    const char *const dir = make_dir();
    char direct[300];
    add_hosts(dir, "run", HOSTS);
    (void)snprintf(direct, sizeof direct, "--store=postgresql://postgres@/postgres?host=%s",
                   pg.socket);
    struct daemon_proc pooled = start_worker(dir, NULL);
    for (int i = 0; !log_has(&pooled, "without a pooler"); i++) {
        CHECK(i < 200);
        pg_pause_ms(50);
    }
    struct daemon_proc a = start_worker_at(dir, make_dir(), NULL, direct),
                       b = start_worker_at(dir, make_dir(), NULL, direct);
    struct daemon_proc front = start_front(dir);
    wait_for("SELECT count(*)=2 FROM daemons WHERE role='worker'");
    xpl_client *const c = open_client(&front, 60000);
    xpl_answer *const first = ask(c, "run", "overview_page");
    CHECK_STR(xpl_answer_source(first), "store"); // workers made the products
    xpl_answer_free(first);
    xpl_client_close(c);
    expect_right(dir, &front, "run");
    expect_now("SELECT count(*)=0 FROM jobs");
    expect_metric(&pooled, "xplaned_job_attempts_total 0");
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&pooled), 0);
    CHECK_EQ(stop_daemon(&a), 0);
    CHECK_EQ(stop_daemon(&b), 0);
    expect_now("SELECT count(*)=0 FROM daemons WHERE expires_at>clock_timestamp()");
}

// One of two workers is killed with jobs: the answer takes the lease longer, and is right.
static void scenario_loses(void) {
    const char *const dir = make_dir();
    struct asking q;
    add_hosts(dir, "run", HOSTS);
    struct daemon_proc a = start_worker(dir, "delay_ms=60000");
    struct daemon_proc front = start_front(dir);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    begin_asking(&q, &front, "run");
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    struct daemon_proc b = start_worker(dir, NULL);
    wait_for("SELECT count(*)=2 FROM jobs");
    CHECK(!atomic_load(&q.done));
    kill_daemon(&a, SIGKILL);
    end_asking(&q);
    CHECK_STR(q.warning, "");
    expect_now("SELECT count(*)=0 FROM jobs");
    expect_right(dir, &front, "run");
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&b), 0);
}

// A file that kills workers is named in the warnings, and the others are answered.  Nobody reads it
// again, the front neither.
static void scenario_warns(void) {
    const char *const dir = make_dir();
    struct asking q;
    int status;
    add_hosts(dir, "run", HOSTS);
    struct daemon_proc front = start_front(dir);
    struct daemon_proc w = start_worker(dir, "kill=vm1");
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    begin_asking(&q, &front, "run");
    for (int kills = 0; kills < 3; kills++) {
        CHECK(waitpid(w.pid, &status, 0) == w.pid && WIFSIGNALED(status));
        w = start_killable(dir);
    }
    end_asking(&q);
    CHECK(strstr(q.warning, "vm1"));
    CHECK(strstr(q.warning, "set aside"));
    CHECK_EQ(stop_daemon(&w), 0); // and no worker at all
    begin_asking(&q, &front, "run");
    end_asking(&q);
    CHECK(strstr(q.warning, "set aside"));
    CHECK_EQ(stop_daemon(&front), 0);
}

// A session of one host does not wait for a large one.
static void scenario_fair(void) {
    const char *const dir = make_dir();
    struct asking large, small;
    add_hosts(dir, "large", 24);
    add_hosts(dir, "small", 1);
    struct daemon_proc w = start_worker(dir, "delay_ms=500");
    struct daemon_proc front = start_front(dir);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    begin_asking(&large, &front, "large");
    wait_for("SELECT count(*)>=10 FROM jobs");
    begin_asking(&small, &front, "small");
    end_asking(&small);
    CHECK(!atomic_load(&large.done));
    end_asking(&large);
    fprintf(stderr, "24 hosts %llu ms, 1 host %llu ms\n", (unsigned long long)large.ms,
            (unsigned long long)small.ms);
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&w), 0);
}

// Any daemon tells who is there, and who works on what; one that shares nothing says so.
static void scenario_fleet(void) {
    const char *const dir = make_dir();
    struct asking q;
    size_t n;
    xpl_answer *a = NULL;
    xpl_result r;
    add_hosts(dir, "run", 3);
    struct daemon_proc w = start_worker(dir, "delay_ms=60000"), front = start_front(dir);
    struct daemon_proc single = start_daemon(dir, make_dir(), no_prefetch);
    wait_for("SELECT count(*)=2 FROM daemons");
    wait_for("SELECT count(*)=1 FROM leases WHERE name='catalogue'");
    begin_asking(&q, &front, "run");
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    xpl_client *const c = open_client(&front, 20000), *const d = open_client(&single, 20000);
    CHECK_EQ(xpl_client_fleet(c, &a, &r), 0);
    const char *const text = xpl_answer_data(a, &n);
    const xpl_str_t json = {text, n};
    fprintf(stderr, "%.*s\n", (int)n, text);
    CHECK(xpl_str_has(json, XPL_STR("\"running\":2,\"set_aside\":0,\"workers\":1,")));
    CHECK(xpl_str_has(json, XPL_STR("\"role\":\"front\",\"version\":\"")));
    CHECK(xpl_str_has(json, XPL_STR("\"role\":\"worker\",\"version\":\"")));
    CHECK(xpl_str_has(json, XPL_STR("\"jobs\":0,")) && xpl_str_has(json, XPL_STR("\"jobs\":2,")));
    CHECK(xpl_str_has(json, XPL_STR("\"state\":\"running\",\"daemon\":\"")));
    CHECK(xpl_str_has(json, XPL_STR("\"session\":\"run\",\"host\":\"vm0\",\"files\":1,")));
    CHECK(xpl_str_has(json, XPL_STR("\"leases\":[{\"kind\":\"catalogue\",\"name\":\"catalogue\","
                                    "\"daemon\":\"")));
    xpl_answer_free(a);
    CHECK(xpl_client_fleet(d, &a, &r) != 0 && strstr(r.message, "--store postgresql://"));
    pg_stop(SIGQUIT);
    CHECK(xpl_client_fleet(c, &a, &r) != 0 && r.message[0]);
    pg_start();
    end_asking(&q); // the front made the products itself
    xpl_client_close(c);
    xpl_client_close(d);
    CHECK_EQ(stop_daemon(&single), 0);
    CHECK_EQ(stop_daemon(&front), 0);
    kill_daemon(&w, SIGKILL);
}

static void expect_no_metric(const struct daemon_proc *d, const char *text) {
    struct reply r = http_get(d->http_address, "/metrics");
    if (strstr(r.body, text)) fprintf(stderr, "%s in\n%s", text, r.body);
    CHECK(!strstr(r.body, text));
    reply_free(&r);
}

// What /metrics says of jobs while they run, when they are done, and of a lease that was lost.
static void scenario_counts(void) {
    const char *const dir = make_dir();
    const char *const http[] = {"--role=worker", store_flag(), "--job-lease=2s", "--grace=20s",
                                "--workers=2",   "--http",     "127.0.0.1:0",    NULL};
    const char *const flags[] = {"--role=front", store_flag(), "--http", "127.0.0.1:0", NULL};
    struct asking q;
    add_hosts(dir, "run", 4);
    add_hosts(dir, "more", 1);
    // Daemons count all jobs every 5 s, which must find two that run and two that wait.
    CHECK_EQ(setenv("XPLANED_FAULT_JOBS", "delay_ms=5000", 1), 0); // two products each
    struct daemon_proc w = start_daemon(dir, make_dir(), http);
    CHECK_EQ(unsetenv("XPLANED_FAULT_JOBS"), 0);
    struct daemon_proc front = start_daemon(dir, make_dir(), flags);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    begin_asking(&q, &front, "run");
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    expect_metric(&w, "xplaned_job_leases 2");
    expect_metric(&front, "xplaned_fleet_jobs{state=\"running\"} 2");
    expect_metric(&front, "xplaned_fleet_jobs{state=\"queued\"} 2");
    expect_metric(&front, "xplaned_fleet_workers 1");
    expect_no_metric(&front, "\nxplaned_fleet_oldest_job_seconds 0\n");
    end_asking(&q);
    expect_metric(&front, "xplaned_fleet_oldest_job_seconds 0");
    expect_no_metric(&w, "\nxplaned_job_seconds_total{stage=\"claim\"} 0\n");
    expect_no_metric(&w, "\nxplaned_job_seconds_total{stage=\"publish\"} 0\n");
    expect_metric(&w, "xplaned_job_leases 0");
    expect_metric(&w, "xplaned_job_attempts_total 4");
    expect_metric(&w, "xplaned_job_attempts_ended_total{outcome=\"published\"} 4");
    expect_metric(&front, "xplaned_fleet_jobs{state=\"running\"} 0");
    begin_asking(&q, &front, "more");
    wait_for("SELECT count(*)=1 FROM jobs WHERE attempts<>'{}'");
    pg_sql("postgres", "DELETE FROM jobs");
    expect_metric(&w, "xplaned_job_attempts_ended_total{outcome=\"lease_lost\"} 1");
    end_asking(&q);
    expect_metric(&w, "xplaned_fleet_leases{on=\"catalogue\"} 1");
    // The database is away: the answer does not mention others.
    pg_stop(SIGQUIT);
    expect_metric(&front, "xplaned_store_writable 0");
    expect_no_metric(&front, "\nxplaned_fleet_");
    expect_ready(&front, 200, "ready, degraded: the store takes nothing\n");
    expect_metric(&w, "xplaned_store_writable 0");
    expect_no_metric(&w, "\nxplaned_fleet_");
    pg_start();
    expect_metric(&front, "xplaned_fleet_workers 1");
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&w), 0);
}

// Without workers, and without the database, the front makes the products itself.
static void scenario_alone(void) {
    const char *const dir = make_dir();
    struct asking q;
    add_hosts(dir, "first", 2);
    add_hosts(dir, "second", 2);
    add_hosts(dir, "third", 2);
    struct daemon_proc front = start_front(dir);
    expect_right(dir, &front, "first");
    struct daemon_proc w = start_worker(dir, "delay_ms=60000");
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()");
    begin_asking(&q, &front, "second");
    wait_for("SELECT count(*)=2 FROM jobs WHERE session='second' AND cardinality(attempts)=1");
    pg_stop(SIGQUIT); // while it waits
    end_asking(&q);
    expect_right(dir, &front, "third");
    pg_start();
    CHECK_EQ(stop_daemon(&front), 0);
    kill_daemon(&w, SIGKILL);
}

// The disk of the database is full when workers publish: no file is blamed, and the answer is
// complete. When there is room again workers make the products.
static void scenario_full(void) {
    const char *const dir = make_dir();
    struct asking q;
    add_hosts(dir, "first", 1);
    add_hosts(dir, "second", 1);
    struct daemon_proc front = start_front(dir), w = start_worker(dir, "delay_ms=2000");
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    begin_asking(&q, &front, "first");
    wait_for("SELECT count(*)=1 FROM jobs WHERE attempts<>'{}'");
    small_disk_fill();
    end_asking(&q);
    CHECK_STR(q.warning, "");
    CHECK(log_has(&w, "No space left on device"));
    expect_right(dir, &front, "first");
    expect_now("SELECT count(*)=0 FROM results WHERE kind='product'");
    small_disk_empty();
    begin_asking(&q, &front, "second");
    end_asking(&q);
    CHECK_STR(q.warning, "");
    wait_for("SELECT count(*)>=1 FROM results WHERE kind='product' AND name='op_stats'");
    CHECK(log_has(&w, "msg=published session=second"));
    expect_right(dir, &front, "second");
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&w), 0);
}

// A client that leaves is not waited for.
static void scenario_cancels(void) {
    const char *const dir = make_dir();
    xpl_result r;
    add_hosts(dir, "run", 2);
    struct daemon_proc w = start_worker(dir, "delay_ms=60000");
    struct daemon_proc front = start_front(dir);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker'");
    xpl_client *const c = open_client(&front, 1500);
    const uint64_t began = xpl_clock_ns();
    CHECK(ask_tool(c, "run", "overview_page", NULL, NULL, &r) != 0);
    CHECK(xpl_clock_ns() - began < (uint64_t)30000 * 1000000u); // half of what its jobs take
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&front), 0); // nothing is under way
    kill_daemon(&w, SIGKILL);
}

static struct daemon_proc start_shifted_worker(const char *dir, const char *state_dir,
                                               const char *fault, int hours) {
    shift_clock(hours);
    const struct daemon_proc w = start_worker_in(dir, state_dir, fault);
    shift_clock(0);
    expect_clock(&w, hours);
    return w;
}

// As add_hosts, but written just now.
static void add_new_hosts(const char *dir, const char *run, int n) {
    char path[PATH_MAX];
    add_hosts(dir, run, n);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm%d.xplane.pb", dir, run, i);
        CHECK_EQ(utimensat(AT_FDCWD, path, NULL, 0), 0);
    }
}

// A worker so many hours ahead has jobs until it is killed, one as far behind makes the rest, and
// the front is wrong, too: a renewed lease is not stolen, and an expired one is taken.
static void lose_shifted(const char *dir, const char *const state_dirs[2], const char *run,
                         int hours) {
    struct asking q;
    add_new_hosts(dir, run, HOSTS);
    struct daemon_proc a = start_shifted_worker(dir, state_dirs[0], "delay_ms=60000", hours);
    shift_clock(2 * hours);
    struct daemon_proc front = start_front(dir);
    shift_clock(0);
    expect_clock(&front, 2 * hours);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()");
    begin_asking(&q, &front, run);
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    struct daemon_proc b = start_shifted_worker(dir, state_dirs[1], NULL, -hours);
    wait_for("SELECT count(*)=2 FROM jobs"); // unclaimed jobs
    pg_pause_ms(3000);                       // longer than the lease
    expect_now("SELECT count(*)=2 FROM jobs WHERE cardinality(attempts)=1");
    CHECK(!atomic_load(&q.done));
    kill_daemon(&a, SIGKILL);
    const uint64_t killed = xpl_clock_ns();
    end_asking(&q);
    CHECK_STR(q.warning, "");
    CHECK(xpl_clock_ns() - killed < (uint64_t)30000 * 1000000u);
    expect_now("SELECT count(*)=0 FROM jobs");
    expect_right(dir, &front, run);
    CHECK_EQ(stop_daemon(&front), 0);
    CHECK_EQ(stop_daemon(&b), 0);
}

static void scenario_clocks(void) {
    need_clocks();
    const char *const dir = make_dir(), *const state_dirs[2] = {make_dir(), make_dir()};
    lose_shifted(dir, state_dirs, "behind", -3);
    expect_now("SELECT count(*)=6 FROM results WHERE name='op_stats' AND options='cpu_as_device'");
    lose_shifted(dir, state_dirs, "ahead", 3);
    expect_now("SELECT count(*)=12 FROM results WHERE name='op_stats' AND options='cpu_as_device'");
}

// A worker that has a link to the database, and nothing else.
static struct daemon_proc start_remote_worker(const char *dir, const char *fault) {
    static const char store[] = "--store=postgresql://postgres@" DATABASE_ADDRESS "/postgres";
    make_network();
    pg_stop(SIGINT);
    pg_listen(net.database, DATABASE_ADDRESS, WORKER_ADDRESS);
    pg_start();
    enter_netns(net.worker);
    const struct daemon_proc w = start_worker_at(dir, make_dir(), fault, store);
    enter_netns(net.own);
    wait_for("SELECT count(*)>0 FROM pg_stat_activity WHERE client_addr='" WORKER_ADDRESS "'");
    return w;
}

// The link goes down while the worker has jobs: another one does them when the lease has expired.
// When the link is back, results of the first one are rejected, and it works again.
static void cut_link(const int *ns, const char *down, const char *up) {
    const char *const dir = make_dir();
    struct asking q;
    add_hosts(dir, "run", HOSTS);
    add_hosts(dir, "again", 1);
    // Longer than the link is down: a result that finds no database for seconds is given up.
    struct daemon_proc a = start_remote_worker(dir, "delay_ms=20000"), front = start_front(dir);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()");
    begin_asking(&q, &front, "run");
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    run_ip(*ns, down);
    struct daemon_proc b = start_worker(dir, NULL);
    end_asking(&q);
    CHECK_STR(q.warning, "");
    expect_now("SELECT count(*)=0 FROM jobs");
    expect_right(dir, &front, "run");
    CHECK_EQ(stop_daemon(&b), 0);
    expect_now("SELECT count(*)=6 FROM results WHERE name='op_stats' AND options='cpu_as_device'");
    run_ip(*ns, up);
    enter_netns(net.worker);
    expect_metric(&a, "xplaned_job_attempts_ended_total{outcome=\"lease_lost\"} 2");
    expect_metric(&a, "xplaned_job_attempts_ended_total{outcome=\"published\"} 0");
    enter_netns(net.own);
    expect_now("SELECT count(*)=6 FROM results WHERE name='op_stats' AND options='cpu_as_device'");
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker' AND expires_at>clock_timestamp()");
    begin_asking(&q, &front, "again");
    end_asking(&q);
    enter_netns(net.worker);
    expect_metric(&a, "xplaned_job_attempts_ended_total{outcome=\"published\"} 1");
    enter_netns(net.own);
    CHECK_EQ(stop_daemon(&a), 0); // it is slow
    expect_right(dir, &front, "again");
    CHECK_EQ(stop_daemon(&front), 0);
}

// At the worker's end its machine knows; at the other one packets vanish.
static void scenario_cut_near(void) {
    cut_link(&net.worker, "link set worker down", "link set worker up");
}
static void scenario_cut_far(void) {
    cut_link(&net.database, "link set database down", "link set database up");
}

// Workers are killed, frozen and ended at random moments, and begin again. $XPL_MOMENTS: how many
// moments there are, each with a separate session and its part of the total time.
enum { MOMENTS = 10, N_WORKERS = 3, SECONDS_BESIDE = 120, SECONDS_EACH = 12 };

static unsigned seed;

static long random_below(long n) {
    return rand_r(&seed) % n;
}

static void disturb(const char *dir, struct daemon_proc *w, const char *state_dir) {
    static const int signals[] = {SIGKILL, SIGTERM, SIGSTOP};
    const int sig = signals[random_below(3)];
    const long ms = random_below(900);
    fprintf(stderr, ", signal %d after %ld ms\n", sig, ms);
    pg_pause_ms(ms);
    if (sig == SIGSTOP) { // for longer than the lease
        CHECK_EQ(kill(w->pid, SIGSTOP), 0);
        pg_pause_ms(2500);
        CHECK_EQ(kill(w->pid, SIGCONT), 0);
        return;
    }
    if (sig == SIGTERM) CHECK_EQ(stop_daemon(w), 0);
    if (sig == SIGKILL) kill_daemon(w, SIGKILL);
    *w = start_worker_in(dir, state_dir, "delay_ms=100");
}

static const char *nth_run(int i) {
    static char run[16];
    (void)snprintf(run, sizeof run, "r%d", i);
    return run;
}

static void disturb_often(const char *dir, struct daemon_proc *front, int moments) {
    const char *state_dirs[N_WORKERS];
    struct daemon_proc w[N_WORKERS];
    for (int i = 0; i < N_WORKERS; i++)
        w[i] = start_worker_in(dir, state_dirs[i] = make_dir(), "delay_ms=100");
    for (int i = 0; i < moments; i++) {
        struct asking q;
        begin_asking(&q, front, nth_run(i));
        const long k = random_below(N_WORKERS);
        fprintf(stderr, "moment %d: worker %ld", i + 1, k);
        disturb(dir, &w[k], state_dirs[k]);
        end_asking(&q);
        CHECK_STR(q.warning, "");
    }
    wait_for("SELECT count(*)=0 FROM jobs");
    for (int i = 0; i < N_WORKERS; i++)
        CHECK_EQ(stop_daemon(&w[i]), 0);
}

static int number_of(const char *variable, int by_default) {
    const char *const text = getenv(variable);
    return text ? atoi(text) : by_default;
}

static void scenario_random(void) {
    const char *const dir = make_dir();
    const int moments = number_of("XPL_MOMENTS", MOMENTS);
    char sql[120];
    seed = (unsigned)number_of("XPL_SEED", getpid());
    fprintf(stderr, "XPL_SEED=%u XPL_MOMENTS=%d\n", seed, moments);
    CHECK(moments > 0);
    (void)alarm((unsigned)(SECONDS_BESIDE + SECONDS_EACH * moments)); // 240 s for ten, as all have
    for (int i = 0; i < moments; i++)
        add_hosts(dir, nth_run(i), HOSTS);
    struct daemon_proc front = start_front(dir);
    disturb_often(dir, &front, moments);
    // Of each host once, whoever made it.
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*)=%d FROM results WHERE kind='product' AND name='op_stats'",
                   moments * HOSTS);
    wait_for(sql);
    struct daemon_proc single = start_daemon(dir, make_dir(), no_prefetch);
    xpl_client *const c = open_client(&front, 60000), *const d = open_client(&single, 60000);
    for (int i = 0; i < moments; i++)
        compare_answers(c, d, nth_run(i));
    xpl_client_close(c);
    xpl_client_close(d);
    CHECK_EQ(stop_daemon(&single), 0);
    CHECK_EQ(stop_daemon(&front), 0);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"shares", scenario_shares},   {"loses", scenario_loses},   {"warns", scenario_warns},
        {"fair", scenario_fair},       {"alone", scenario_alone},   {"cancels", scenario_cancels},
        {"random", scenario_random},   {"traced", scenario_traced}, {"fleet", scenario_fleet},
        {"counts", scenario_counts},   {"clocks", scenario_clocks}, {"cut_near", scenario_cut_near},
        {"cut_far", scenario_cut_far}, {"pooled", scenario_pooled}, {"full", scenario_full},
    };
    const bool full = argc > 1 && strcmp(argv[1], "full") == 0;
    const char *why = full ? small_disk_begin() : NULL;
    if (!why) why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    return run_scenario(all, sizeof all / sizeof *all, argc, argv);
}
