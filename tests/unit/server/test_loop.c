// SPDX-License-Identifier: Apache-2.0
// server/loop: posts run once, on the loop's thread, in the order in which they came; closing.
#include "server/loop.h"

#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"

struct log {
    struct xpl_loop *loop;
    pthread_t thread; // the loop's
    int order[16];
    int n;
};

struct note {
    struct log *log;
    int number;
};

static void write_note(void *arg) {
    const struct note *const note = arg;
    CHECK(pthread_equal(pthread_self(), note->log->thread));
    CHECK(note->log->n < 16);
    note->log->order[note->log->n++] = note->number;
}
static void close_loop(void *arg) {
    struct log *const l = arg;
    xpl_loop_close(l->loop);
}

static struct log begin(void) {
    struct log l = {.loop = xpl_loop_new(), .thread = pthread_self()};
    CHECK(l.loop);
    CHECK(xpl_loop_uv(l.loop) != NULL);
    return l;
}

static void test_order(void) {
    struct log l = begin();
    struct note notes[10];
    for (int i = 0; i < 10; i++) {
        notes[i] = (struct note){&l, i};
        CHECK(xpl_loop_post(l.loop, write_note, &notes[i]));
    }
    CHECK_EQ(l.n, 0); // not before the loop runs
    CHECK(xpl_loop_post(l.loop, close_loop, &l));
    CHECK_EQ(uv_run(xpl_loop_uv(l.loop), UV_RUN_DEFAULT), 0); // nothing is left open
    CHECK_EQ(l.n, 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(l.order[i], i);
    xpl_loop_free(l.loop);
}

// Closing runs earlier posts in order, and refuses later ones.
static void test_close(void) {
    struct log l = begin();
    struct note a = {&l, 1}, b = {&l, 2};
    CHECK(xpl_loop_post(l.loop, write_note, &a));
    xpl_loop_close(l.loop);
    CHECK_EQ(l.n, 1);
    CHECK(!xpl_loop_post(l.loop, write_note, &b));
    CHECK_EQ(uv_run(xpl_loop_uv(l.loop), UV_RUN_DEFAULT), 0);
    CHECK_EQ(l.n, 1);
    xpl_loop_free(l.loop);
}

static struct note later_notes[2];
static void post_and_close(void *arg) {
    struct log *const l = arg;
    CHECK(xpl_loop_post(l->loop, write_note, &later_notes[1]));
    xpl_loop_close(l->loop);
    CHECK(!xpl_loop_post(l->loop, write_note, &later_notes[1]));
}

// A post that closes: the one posted behind it runs before the one that it posts itself.
static void test_close_within(void) {
    struct log l = begin();
    later_notes[0] = (struct note){&l, 1};
    later_notes[1] = (struct note){&l, 2};
    CHECK(xpl_loop_post(l.loop, post_and_close, &l));
    CHECK(xpl_loop_post(l.loop, write_note, &later_notes[0]));
    CHECK_EQ(uv_run(xpl_loop_uv(l.loop), UV_RUN_DEFAULT), 0);
    CHECK_EQ(l.n, 2);
    CHECK_EQ(l.order[0], 1);
    CHECK_EQ(l.order[1], 2);
    xpl_loop_free(l.loop);
}

struct countdown {
    struct xpl_loop *loop;
    int left, ran;
};
static void post_again(void *arg) {
    struct countdown *const c = arg;
    c->ran++;
    if (c->left-- > 0)
        CHECK(xpl_loop_post(c->loop, post_again, c));
    else
        xpl_loop_close(c->loop);
}
static void on_timer(uv_timer_t *t) {
    *(int *)t->data = 1;
    uv_close((uv_handle_t *)t, NULL);
}

// A post that posts again lets the loop's other handles have their turn.
static void test_repost(void) {
    struct countdown c = {.loop = xpl_loop_new(), .left = 100};
    CHECK(c.loop);
    int fired = 0;
    uv_timer_t timer = {.data = &fired};
    CHECK_EQ(uv_timer_init(xpl_loop_uv(c.loop), &timer), 0);
    CHECK_EQ(uv_timer_start(&timer, on_timer, 0, 0), 0);
    CHECK(xpl_loop_post(c.loop, post_again, &c));
    (void)uv_run(xpl_loop_uv(c.loop), UV_RUN_ONCE);
    CHECK(c.ran < 100);
    CHECK_EQ(uv_run(xpl_loop_uv(c.loop), UV_RUN_DEFAULT), 0);
    CHECK_EQ(c.ran, 101);
    CHECK_EQ(fired, 1);
    xpl_loop_free(c.loop);
}

// ---- threads ----

enum { THREADS = 4, EACH = 3000 };

struct sender {
    struct xpl_loop *loop;
    int sent, seen; // posts that were taken; posts that ran
    struct turn {
        struct sender *of;
        int number;
    } turns[EACH];
};

static void take_turn(void *arg) {
    const struct turn *const t = arg;
    CHECK_EQ(t->of->seen, t->number); // in the order of its thread
    t->of->seen++;
}
static void *send_turns(void *arg) {
    struct sender *const s = arg;
    for (int i = 0; i < EACH; i++) {
        s->turns[i] = (struct turn){s, i};
        if (!xpl_loop_post(s->loop, take_turn, &s->turns[i])) break;
        s->sent++;
    }
    return NULL;
}

static struct sender senders[THREADS];
static pthread_t threads[THREADS];

static void on_check(uv_timer_t *t) {
    int seen = 0;
    for (int i = 0; i < THREADS; i++)
        seen += senders[i].seen;
    if (seen < *(int *)t->data) return;
    uv_close((uv_handle_t *)t, NULL);
    xpl_loop_close(senders[0].loop);
}

// Posts from threads until `enough` ran, then closes while they may still post: whatever was taken
// runs, whatever was refused does not.
static void run_threads(int enough) {
    struct xpl_loop *const loop = xpl_loop_new();
    CHECK(loop);
    uv_timer_t timer = {.data = &enough};
    CHECK_EQ(uv_timer_init(xpl_loop_uv(loop), &timer), 0);
    CHECK_EQ(uv_timer_start(&timer, on_check, 0, 1), 0);
    memset(senders, 0, sizeof senders);
    for (int i = 0; i < THREADS; i++) {
        senders[i].loop = loop;
        CHECK_EQ(pthread_create(&threads[i], NULL, send_turns, &senders[i]), 0);
    }
    CHECK_EQ(uv_run(xpl_loop_uv(loop), UV_RUN_DEFAULT), 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(senders[i].seen, senders[i].sent);
    }
    xpl_loop_free(loop);
}

#if XPL_FAULTS
static void test_no_memory(void) {
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_loop_new());
    xpl_fault_reset();
    struct log l = begin();
    struct note note = {&l, 1};
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_loop_post(l.loop, write_note, &note));
    xpl_fault_reset();
    CHECK(xpl_loop_post(l.loop, write_note, &note));
    xpl_loop_close(l.loop);
    CHECK_EQ(uv_run(xpl_loop_uv(l.loop), UV_RUN_DEFAULT), 0);
    CHECK_EQ(l.n, 1);
    xpl_loop_free(l.loop);
    CHECK_EQ(xpl_fault_live(), live);
}
#endif

int main(void) {
    alarm(60);
    test_order();
    test_close();
    test_close_within();
    test_repost();
    run_threads(THREADS * EACH);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(senders[i].seen, EACH);
    run_threads(0);
    run_threads(EACH / 2);
#if XPL_FAULTS
    test_no_memory();
#endif
    return 0;
}
