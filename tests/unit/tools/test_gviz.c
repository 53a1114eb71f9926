// SPDX-License-Identifier: Apache-2.0
// analysis/tools/lib/gviz: the exact text of tables.
#include <math.h>
#include <string.h>

#include "analysis/tools/lib/gviz.h"
#include "base/arena.h"
#include "tests/check.h"

static void check_text(struct xpl_buf *b, const char *expected) {
    xpl_buf_putc(b, 0);
    CHECK(!b->failed);
    if (strcmp((const char *)b->p, expected) != 0) fprintf(stderr, "got %s\n", (const char *)b->p);
    CHECK_STR((const char *)b->p, expected);
    b->n = 0;
}

static void test_empty(struct xpl_buf *b, struct xpl_arena *a) {
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, b, NULL, 0);
    xpl_gviz_end(&g);
    check_text(b, "{\"cols\":[],\"rows\":[]}");
    xpl_gviz_begin(&g, b, NULL, 0);
    xpl_gviz_props_init(&p, a);
    xpl_gviz_put_props(&g, &p);
    xpl_gviz_end(&g);
    check_text(b, "{\"cols\":[],\"rows\":[]}");
}

static void test_table(struct xpl_buf *b, struct xpl_arena *a) {
    static const struct xpl_column columns[] = {
        XPL_COLUMN("other", "string", "Of other tables", NULL, 1),
        XPL_COLUMN("a", "number", "A \"quoted\"", "us", 2),
        {.id = "tip", .type = "string", .label = "tip", .role = "tooltip"},
        {0},
    };
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, b, columns, 2);
    xpl_gviz_props_init(&p, a);
    xpl_gviz_prop(&p, "zz", XPL_STR("last"));
    xpl_gviz_prop(&p, "aa", XPL_STR("first"));
    xpl_gviz_prop_printf(&p, "mm", "%d%%", 7);
    xpl_gviz_prop(&p, "aa", XPL_STR("overwritten"));
    xpl_gviz_put_props(&g, &p);
    xpl_gviz_row(&g);
    xpl_gviz_number(&g, 1);
    xpl_gviz_text(&g, XPL_STR("x\n"));
    xpl_gviz_row(&g);
    xpl_gviz_number(&g, NAN);
    xpl_gviz_bool(&g, true);
    xpl_gviz_bool(&g, false);
    xpl_gviz_row(&g);
    xpl_gviz_end(&g);
    check_text(b, "{\"cols\":[{\"id\":\"a\",\"label\":\"A \\\"quoted\\\"\",\"type\":\"number\"},"
                  "{\"id\":\"tip\",\"label\":\"tip\",\"p\":{\"role\":\"tooltip\"},"
                  "\"type\":\"string\"}],\"p\":{\"aa\":\"overwritten\",\"mm\":\"7%\","
                  "\"zz\":\"last\"},\"rows\":[{\"c\":[{\"v\":1.0},{\"v\":\"x\\n\"}]},"
                  "{\"c\":[{\"v\":null},{\"v\":true},{\"v\":false}]},{\"c\":[]}]}");
}

// A property that does not fit fails the whole table.
static void test_limit(struct xpl_buf *b) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena tiny = xpl_arena_of(16);
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, b, NULL, 0);
    xpl_gviz_props_init(&p, &tiny);
    xpl_gviz_prop(&p, "a", XPL_STR("b"));
    xpl_gviz_put_props(&g, &p);
    xpl_gviz_end(&g);
    CHECK(b->failed);
}

int main(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 20);
    test_empty(&b, &a);
    test_table(&b, &a);
    test_limit(&b);
    return 0;
}
