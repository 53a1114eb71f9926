// SPDX-License-Identifier: Apache-2.0
// server/engine/opened: what memory opening a profile takes is known before it is admitted, so
// asking for it fetches no object.
#include "server/engine/opened.h"

#include <stdlib.h>

#include "tests/unit/storage/fake_objects.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";

static const struct fake_object RUN[] = {
    {"plugins/profile/run/a.xplane.pb.gz", "\"1\"", "these are twenty-six bytes"},
    {"plugins/profile/run/b.xplane.pb", "\"2\"", "plain"}};

static size_t expect(const struct xpl_snapshot *s, const char *name) {
    const struct xpl_host *const h = xpl_session_find_host(&s->sessions[0], xpl_str_from(name));
    CHECK(h);
    return xpl_opened_profile_expect(s, h, XPL_FORM_XSPACE);
}

static void test_expect(void) {
    struct xpl_error err = {0};
    struct xpl_catalogue *c = NULL;
    memcpy(fake.v, RUN, sizeof RUN);
    CHECK_OK(xpl_objects_init(&fake.base, &fake_ops, XPL_STR("place"), dir, 1 << 20, &err), &err);
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = "s3://bucket",
                                            .match = xpl_format_match,
                                            .objects = &fake.base};
    CHECK_OK(xpl_catalogue_new(&o, &c, &err), &err);
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    CHECK_EQ(s->n_sessions, 1);
    CHECK_EQ(expect(s, "a"), 26 * XPL_FORMAT_USUAL_RATIO);
    CHECK_EQ(expect(s, "b"), 0);
    CHECK_EQ(fake.fetches, 0);
    xpl_snapshot_unref(s);
    xpl_catalogue_free(c);
    xpl_objects_unref(&fake.base);
}

// A length that is not true must not wrap around.
static void test_lengths(void) {
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_XSPACE, XPL_STR("x/h.xplane.pb.gz"), 0), 0);
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_XSPACE, XPL_STR("h.xplane.pb.gz"), SIZE_MAX),
             SIZE_MAX);
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_XSPACE, XPL_STR("h.xplane.pb"), 1000), 0);
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_XSPACE, XPL_STR("readme"), 1000), 0);
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_FILE, XPL_STR("b.ireeprof"), SIZE_MAX), 0);
    CHECK_EQ(xpl_profile_expect_unread(XPL_FORM_XSPACE, XPL_STR("b.ireeprof"), SIZE_MAX), SIZE_MAX);
}

int main(void) {
    char cmd[100];
    CHECK(mkdtemp(dir));
    test_expect();
    test_lengths();
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
