// SPDX-License-Identifier: Apache-2.0
// Grouping of events of TensorFlow, GPUs and TPUs, and of profiles that contain groups. Expected
// values come from XProf 2.24.2 where its sources leave room.
#include "tests/unit/grouping/groups_fixture.h"

// ---- TensorFlow ----

static void test_executors(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 100, "_r=1");
    event(&s, "ExecutorState::Process", 10, 20, "id=1 iter_num=0");
    event(&s, "ExecutorState::Process", 30, 40, "id=2 iter_num=0");
    end_line(&s);
    begin_line(&s, 2, "other");
    event(&s, "ExecutorState::Process", 10, 20, "id=2 iter_num=0"); // the last one counts
    end_line(&s);
    begin_line(&s, 3, "input");
    event(&s, "IteratorGetNextOp::DoCompute", 10, 20, "id=1 iter_num=0");
    event(&s, "in", 11, 12, "");
    event(&s, "IteratorGetNextAsOptionalOp::DoCompute", 30, 40, "id=2 iter_num=0");
    event(&s, "IteratorGetNextOp::DoCompute", 50, 60, "id=1");
    event(&s, "IteratorGetNextOp::DoCompute", 70, 80, "id=1 iter_num=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 2, "0 0 - - -");
}

static void test_tf_data_steps(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "InstantiatedCapturedFunction::Run", 0, 5, "id=9");
    event(&s, "FunctionRun", 10, 20, "_r=1 id=9"); // tf.data's own
    event(&s, "FunctionRun", 30, 40, "_r=1 id=8");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "- - 0");
}

static void test_loops(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 5, "_r=1"); // loops replace other roots
    event(&s, "InstantiatedCapturedFunction::RunAsync", 6, 7, "id=3");
    event(&s, "ExecutorState::Process", 30, 39, "id=1 iter_num=1");
    event(&s, "ExecutorState::Process", 10, 19, "id=1 iter_num=0");
    event(&s, "ExecutorState::Process", 40, 49,
          "id=1 iter_num=1"); // with the first of its iteration
    event(&s, "in", 41, 42, "");
    event(&s, "ExecutorState::Process", 50, 59, "id=2 iter_num=0"); // no loop
    event(&s, "ExecutorState::Process", 60, 69, "id=3 iter_num=4"); // tf.data's
    event(&s, "ExecutorState::Process", 70, 79, "id=4 iter_num=5"); // a loop of one iteration
    struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "- - 1 0 1 1 - - 2");
    CHECK_STR(xpl_groups_name(b.groups, 2), "5");
    close_it(&b);
    begin(&s); // loop ops forbid all grouping
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 5, "_r=1");
    event(&s, "WhileOp-StartBody", 1, 2, "");
    end_line(&s);
    end_plane(&s);
    b = build(&s);
    CHECK(xpl_groups_empty(b.groups));
    expect_line(&b, 0, 0, "- -");
    close_it(&b);
}

static void test_eager(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "EagerExecute", 0, 9, "is_func=0");
    event(&s, "a:MatMul", 1, 2, "");
    event(&s, "launch", 3, 4, "correlation_id=1");
    event(&s, "p", 5, 6, "_pt=2 _p=1");
    event(&s, "EagerExecute", 10, 19, "is_func=1");
    event(&s, "a:MatMul", 11, 12, "");
    event(&s, "launch", 13, 14, "correlation_id=2");
    event(&s, "EagerExecute", 20, 29, "");
    event(&s, "a:MatMul", 21, 22, "");
    event(&s, "a:MatMul", 30, 31, "");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "c", 50, 60, "_ct=2 _c=1");
    event(&s, "b:Add", 51, 52, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 1, "stream");
    event(&s, "k", 0, 9, "correlation_id=1");
    event(&s, "k", 10, 19, "correlation_id=2");
    event(&s, "k", 20, 29, "correlation_id=3");
    event(&s, "m", 30, 39, "");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 0, "- -e - - - -c - - -c -c");
    expect_line(&b, 0, 1, "- -e");
    expect_line(&b, 1, 0, "-e -c -c -");
}

// The events of an iteration are children of its first one, which may run eagerly.
static void test_eager_loop(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "EagerExecute", 0, 90, "is_func=0");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "ExecutorState::Process", 10, 20, "id=1 iter_num=2 _ct=2 _c=1");
    end_line(&s);
    begin_line(&s, 3, "pool");
    event(&s, "ExecutorState::Process", 10, 30, "id=1 iter_num=2");
    event(&s, "a:MatMul", 11, 12, "");
    event(&s, "ExecutorState::Process", 40, 50, "id=1 iter_num=3");
    event(&s, "a:MatMul", 41, 42, "");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 0, 2, "0 0e 1 1c");
}

// What a kernel says of itself is overwritten, unless nothing at all is grouped.
static void test_eager_kernels(void) {
    for (int loop_op = 0; loop_op < 2; loop_op++) {
        struct space s;
        begin_with_line(&s, "/device:GPU:0", 1, "stream");
        event(&s, "k", 0, 9, "correlation_id=1 is_eager=1");
        event(&s, "k", 10, 19, "is_eager=1");
        event(&s, "a:Op", 20, 29, "correlation_id=2 is_eager=1");
        end_line(&s);
        end_plane(&s);
        begin_plane(&s, "/host:CPU");
        begin_line(&s, 1, "main");
        event(&s, loop_op ? "WhileOp-StartBody" : "x", 0, 1, "");
        struct built b = end_and_build(&s);
        expect_line(&b, 0, 0, loop_op ? "-e -e -e" : "-c -e -c");
        close_it(&b);
    }
}

// ---- GPU ----

static void gpu_host(struct space *s) {
    begin_plane(s, "/host:CPU");
    begin_line(s, 1, "main");
    event(s, "train", 0, 50, "_r=1 step_num=0");
    event(s, "launch", 1, 2, "correlation_id=1");
    event(s, "launch", 3, 4, "correlation_id=2");
    event(s, "train", 60, 90, "_r=1 step_num=1");
    event(s, "launch", 61, 62, "correlation_id=3");
    event(s, "launch", 63, 64, "correlation_id=2"); // of equal ids the last counts
    event(s, "a:Op", 65, 66, "correlation_id=5");   // an op of TensorFlow launches nothing
    event(s, "launch", 95, 96, "correlation_id=4");
    end_line(s);
    end_plane(s);
}

static void test_gpu(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream 10");
    event(&s, "first", 100, 101, "");
    event(&s, "k", 110, 120, "correlation_id=1");
    event(&s, "in", 111, 112, "");
    event(&s, "copy", 130, 131, ""); // gets the group of its predecessor
    event(&s, "k", 150, 160, "correlation_id=3");
    event(&s, "k", 170, 180, "correlation_id=1"); // a third run
    end_line(&s);
    begin_line(&s, 11, "stream 11");
    event(&s, "k", 105, 106, "correlation_id=4"); // launched outside of all steps
    event(&s, "k", 125, 128, "correlation_id=2");
    event(&s, "k", 129, 149, "correlation_id=5");
    event(&s, "k", 200, 210, "correlation_id=77");
    end_line(&s);
    begin_line(&s, -559038737, "Steps"); // derived before: keeps its events
    event(&s, "old", 5, 6, "");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 1, 0, "- 0c 0 1 1c 0c");
    expect_line(&b, 1, 1, "-c 1c 1c 0c");
    expect_steps(&b, 1, "old[5+1]:-1 0[110+10]train 0:0 1[125+35]train 1:1 0[170+40]train 0:0");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[2]));
    CHECK(!xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[0]));
    expect_steps(&b, 0, "");
}

static void test_gpu_unsorted(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream");
    event(&s, "k", 150, 160, "correlation_id=3");
    event(&s, "k", 110, 120, "correlation_id=1");
    event(&s, "copy", 170, 171, "");
    event(&s, "copy", 130, 131, "");
    end_line(&s);
    begin_line(&s, 11, "equal times"); // the shorter comes first
    event(&s, "k", 300, 310, "correlation_id=1");
    end_line(&s);
    begin_line(&s, 12, "equal times");
    event(&s, "k", 300, 305, "correlation_id=3");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 1, 0, "1c 0c 1 0");
    expect_steps(&b, 1, "0[110+21]train 0:0 1[150+155]train 1:1 0[300+10]train 0:0");
}

// Kernels that enclose what passes a group on.
static void test_gpu_nodes(void) {
    struct space s;
    begin(&s);
    gpu_host(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 10, "stream");
    event(&s, "k", 110, 140, "correlation_id=3");
    event(&s, "k", 115, 130, "correlation_id=1");
    event(&s, "p", 120, 121, "_pt=2 _p=1");
    event(&s, "k root", 150, 160, "correlation_id=77 _r=1");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/host:other");
    begin_line(&s, 1, "main");
    event(&s, "c", 200, 210, "_ct=2 _c=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_line(&b, 1, 0, "1c 0c 0 2*k root 2c");
    expect_line(&b, 2, 0, "0");
}

// ---- TPU ----

static void tpu_core(struct space *s, const char *name, bool steps) {
    begin_plane(s, name);
    if (steps) {
        begin_line(s, 1, "Steps");
        event(s, "0", 0, 100, "step_idle_time_ps=10");
        event(s, "1", 110, 200, "step_idle_time_ps=5 device_offset_ps=7u device_duration_ps=9u");
        event(s, "2", 200, 300, "");
        end_line(s);
    }
    begin_line(s, 2, "XLA Modules");
    event(s, "jit_f(1)", 0, 90, "run_id=1 queue_id=0");
    event(s, "jit_f(1)", 110, 190, "run_id=2 queue_id=0");
    event(s, "jit_f(1)", 200, 290, "run_id=3 queue_id=0");
    end_line(s);
    begin_line(s, 3, "XLA Ops");
    event(s, "op", 0, 10, "");
    event(s, "op", 90, 91, "");
    event(s, "op", 101, 102, ""); // between steps
    event(s, "op", 120, 130, "");
    event(s, "op", 195, 205, "");
    event(s, "op", 250, 260, "");
    event(s, "op", 400, 410, "");
    end_line(s);
    end_plane(s);
}

// No host step: the cores count on their own, in lock step.
static void test_tpu_lock_step(void) {
    struct space s;
    begin(&s);
    tpu_core(&s, "/device:TPU:0", true);
    tpu_core(&s, "/device:TPU:1", false);
    tpu_core(&s, "/device:TPU:0 SparseCore 1", true);
    tpu_core(&s, "/device:TPU:x", true); // no core
    XPL_AUTO(close_it) struct built b = build(&s);
    expect_steps(&b, 0, "0[0+100]0:0 1[110+90]1:1 2[200+100]2:2");
    expect_line(&b, 0, 1, "0 1 1"); // module 3 touches the end of step 1, which was scanned last
    expect_line(&b, 0, 2, "0 0 - 1 1 2 -");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[0].lines[0]));
    CHECK(!xpl_groups_replaces_line(b.groups, &b.xs->planes[0].lines[1]));
    expect_line(&b, 1, 0, "0 1 2");
    expect_line(&b, 1, 1, "0 0 - 1 2 2 -");
    expect_steps(&b, 1, "");
    expect_steps(&b, 2, "0[0+100]:-1 1[110+90]:-1 2[200+100]:-1"); // sparse cores do not count
    expect_line(&b, 2, 1, "- - -");
    expect_steps(&b, 3, "0[0+100]:-1 1[110+90]:-1 2[200+100]:-1");
}

// The host's launches group modules, and through them the steps that enclose them.
static void test_tpu_host_steps(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU");
    set_pid(&s, 5);
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 step_num=10");
    event(&s, "DoEnqueueProgram", 1, 2, "device_ordinal=0 queue_id=0 run_id=134217729"); // 27 bits
    event(&s, "DoEnqueueProgram", 3, 4, "device_ordinal=0 queue_id=0 run_id=2");
    event(&s, "DoEnqueueProgram", 5, 6, "device_ordinal=1 queue_id=0 run_id=3");
    event(&s, "EnqueueRequestLocked", 7, 8, "request_id=4 queue_addr=5");
    end_line(&s);
    begin_line(&s, 2, "callbacks");
    event(&s, "CompleteCallbacks", 60, 70, "device_ordinal=0 queue_id=0 run_id=1 core_type=0");
    event(&s, "in", 61, 62, "");
    event(&s, "TransferH2DRequest", 80, 81, "request_id=4 queue_addr=5");
    event(&s, "TransferH2DRequest", 82, 83, "request_id=4");
    end_line(&s);
    end_plane(&s);
    tpu_core(&s, "/device:TPU:0", true);
    XPL_AUTO(close_it) struct built b = build(&s);
    expect_line(&b, 0, 1, "0 0 0 -");
    // Steps 0 and 1 merge; step 2 has no group and goes.
    expect_steps(&b, 1, "0[0+200]train 10:0");
    size_t n;
    const struct xpl_step_event *const step = xpl_groups_steps(b.groups, &b.xs->planes[1], &n);
    CHECK(step->has_idle_time);
    CHECK_EQ(step->step_idle_time_ps, 15);
    CHECK(!step->has_device_time);
    CHECK(step->line == &b.xs->planes[1].lines[0]);
    CHECK_EQ(step->ev.index, 0);
    expect_line(&b, 1, 1, "0 0 0"); // the third touches the merged step
    expect_line(&b, 1, 2, "0 0 0 0 0 - -");
}

static void test_tpu_merge(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 10, "_r=1 step_num=4");
    event(&s, "p", 1, 2, "_pt=2 _p=1");
    event(&s, "train", 20, 30, "_r=1 step_num=5");
    event(&s, "p", 21, 22, "_pt=2 _p=2");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:TPU:0");
    begin_line(&s, 1, "Steps");
    event(&s, "a", 0, 10, "_ct=2 _c=1 device_offset_ps=100 device_duration_ps=10");
    event(&s, "b", 20, 30, "_ct=2 _c=1 device_offset_ps=90u device_duration_ps=40u");
    event(&s, "gone", 40, 50, "");
    event(&s, "c", 60, 70, "_ct=2 _c=1 step_idle_time_ps=3"); // not a neighbour any more
    event(&s, "d", 80, 90, "_ct=2 _c=2 step_name='own'");
    end_line(&s);
    begin_line(&s, 3, "XLA Ops");          // credits its links to the step around it
    event(&s, "op", 62, 63, "_ct=2 _c=2"); // the step has the earlier group already
    event(&s, "op", 95, 96, "_ct=2 _c=1"); // in no step
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    expect_steps(&b, 1, "a[0+30]train 4:0 c[60+10]train 4:0 d[80+10]own:1");
    size_t n;
    const struct xpl_step_event *const v = xpl_groups_steps(b.groups, &b.xs->planes[1], &n);
    CHECK(v[0].has_device_time);
    CHECK_EQ(v[0].device_offset_ps, 90);
    CHECK_EQ(v[0].device_duration_ps, 40);
    CHECK_EQ(v[0].step_idle_time_ps, 0);
    CHECK_EQ(v[1].step_idle_time_ps, 3);
    CHECK_EQ(v[2].step_idle_time_ps, 3); // carried over, as upstream does
    expect_line(&b, 1, 1, "0 -");
}

// ---- profiles that bring groups ----

static void test_own_groups(void) {
    struct space s;
    begin(&s);
    begin_plane(&s, "/host:CPU"); // not grouped: a device plane knows no groups
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 group_id=9");
    event(&s, "x", 60, 61, "group_id=8 step_name='mine' is_eager=1");
    event(&s, "y", 70, 71, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    end_plane(&s);
    struct built b = build(&s);
    expect_line(&b, 0, 0, "0*train 0 8*minee -");
    close_it(&b);
    begin(&s); // grouped: left as it is
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "train", 0, 50, "_r=1 group_id=9");
    event(&s, "x", 1, 2, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:TPU:0");
    begin_line(&s, 1, "Steps");
    event(&s, "1", 0, 50, "group_id=3 step_name='three'");
    event(&s, "2", 50, 60, "");
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "Task Environment"); // neither host nor device
    end_plane(&s);
    b = build(&s);
    expect_line(&b, 0, 0, "9 -");
    expect_steps(&b, 1, "1[0+50]three:3 2[50+10]:-1");
    CHECK(xpl_groups_replaces_line(b.groups, &b.xs->planes[1].lines[0]));
    close_it(&b);
}

int main(void) {
    test_executors();
    test_tf_data_steps();
    test_loops();
    test_eager();
    test_eager_loop();
    test_eager_kernels();
    test_gpu();
    test_gpu_unsorted();
    test_gpu_nodes();
    test_tpu_lock_step();
    test_tpu_host_steps();
    test_tpu_merge();
    test_own_groups();
    return 0;
}
