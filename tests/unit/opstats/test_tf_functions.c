// SPDX-License-Identifier: Apache-2.0
// Calls of tf.functions: modes, compilers, tracing, and self time.
#include "analysis/opstats/host/tf_functions.h"

#include "base/arena.h"
#include "tests/check.h"

static struct xpl_arena arena;

static void call(struct xpl_tf_calls *c, const char *name, const char *mode, uint64_t at,
                 uint64_t ps, int64_t tracing) {
    struct xpl_tf_call *v = xpl_vec_push(&arena, &c->v);
    CHECK(v);
    *v = (struct xpl_tf_call){.name = xpl_str_from(name),
                              .mode = xpl_str_from(mode),
                              .span = {at, ps},
                              .tracing_count = tracing};
}

int main(void) {
    xpl_arena_init(&arena, 1 << 20);
    struct xpl_tf_calls a = {0}, b = {0}, none = {0};
    call(&a, "f", "traced-xla", 0, 100, 2);
    call(&a, "g", "eager", 10, 30, 0);
    call(&a, "f", "notTraced-nonXla", 200, 50, 1);
    call(&b, "g", "concrete", 0, 70, 0);
    call(&b, "h", "whatever", 100, 5, 9);
    CHECK(xpl_tf_calls_nest(&a, &arena) && xpl_tf_calls_nest(&b, &arena) &&
          xpl_tf_calls_nest(&none, &arena));
    struct xpl_tf_function_table t = {.result = &arena};
    CHECK(xpl_tf_functions_add(&t, &a) && xpl_tf_functions_add(&t, &b));
    xpl_tf_functions_finish(&t);
    CHECK_EQ(t.v.n, 3);
    const struct xpl_tf_function *f = &t.v.v[0], *g = &t.v.v[1], *h = &t.v.v[2];
    CHECK_STR(f->name, "f");
    CHECK_STR(h->name, "h");
    CHECK_EQ(f->metrics.n, 2); // by mode: traced 2, not traced 3
    CHECK_EQ(f->metrics.v[0].mode, 2);
    CHECK_EQ(f->metrics.v[0].self_time_ps, 70);
    CHECK_EQ(f->metrics.v[1].self_time_ps, 50);
    CHECK_EQ(f->compiler, 2); // mixed
    CHECK_EQ(f->total_tracing_count, 2);
    CHECK(f->expensive_call_percent > 58.3 && f->expensive_call_percent < 58.4);
    CHECK_EQ(g->metrics.n, 2);
    CHECK_EQ(g->compiler, 0);
    CHECK_EQ(h->metrics.v[0].mode, 0);
    CHECK_EQ(h->total_tracing_count, 9);
    // A second host with the same functions.
    struct xpl_tf_function_table two = {.result = &arena};
    CHECK(xpl_tf_functions_combine(&two, t.v.v, t.v.n));
    CHECK(xpl_tf_functions_combine(&two, t.v.v, t.v.n));
    xpl_tf_functions_finish(&two);
    CHECK_EQ(two.v.n, 3);
    CHECK_EQ(two.v.v[0].metrics.v[0].count, 2);
    CHECK_EQ(two.v.v[0].metrics.v[0].self_time_ps, 140);
    CHECK_EQ(two.v.v[0].total_tracing_count, 2);
    // Calls that overlap, and one that ends before it begins.
    struct xpl_tf_calls odd = {0};
    call(&odd, "", "eager", 0, 10, 0);
    call(&odd, "", "eager", 5, 10, 0);
    call(&odd, "", "eager", 50, (uint64_t)-20, 0);
    CHECK(xpl_tf_calls_nest(&odd, &arena));
    struct xpl_tf_function_table three = {.result = &arena};
    CHECK(xpl_tf_functions_add(&three, &odd));
    xpl_tf_functions_finish(&three);
    CHECK_EQ(three.v.n, 1);
    xpl_arena_fini(&arena);
    return 0;
}
