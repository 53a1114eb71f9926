// SPDX-License-Identifier: Apache-2.0
// Tools of IREE's bundles: ids, what follows the stated end, the bytes of executable traces, and
// what is said of a bundle that is not whole.
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/ireeprof/reader.h"
#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/data_file.h"

static void ignore_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg, (void)host, (void)text;
}

// `key` may be NULL: no option.  The caller frees *out.
static xpl_status_t ask(const char *tool, const struct xpl_buf *bundle, const char *key,
                        const char *value, struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(tool));
    const struct xpl_option option = {xpl_str_from(key ? key : ""), xpl_str_from(value)};
    const struct xpl_resolve_host host = {
        .name = XPL_STR("h"), .path = "h", .profile = {bundle->p, bundle->n}};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena arena;
    void *options;
    CHECK(t);
    xpl_arena_init(&arena, 1 << 20);
    xpl_buf_init(out, 1 << 24);
    CHECK_OK(xpl_tool_options_parse(t, &option, key != NULL, true, &arena, &options, err), err);
    const struct xpl_resolve r = {.tool = t,
                                  .options = options,
                                  .hosts = &host,
                                  .n_hosts = 1,
                                  .exec = &exec,
                                  .limit = 1 << 24,
                                  .warn = ignore_warning};
    const xpl_status_t st = xpl_resolve(&r, out, err);
    xpl_arena_fini(&arena);
    return st;
}

static size_t count(const struct xpl_buf *b, const char *what) {
    size_t n = 0;
    const char *at = (const char *)b->p, *const end = at + b->n;
    while (at && (at = memmem(at, (size_t)(end - at), what, strlen(what))))
        n++, at++;
    return n;
}

static void test_ids(struct xpl_buf *bundle) {
    static const struct {
        const char *id;
        size_t rows; // of memory events
    } rows[] = {{"", 15}, {"-1", 15}, {"0", 0}, {"31", 5}, {"600", 1}, {"9223372036854775807", 0}};
    static const char *const refused[] = {"9223372036854775808", "18446744073709551615", "1x", "x"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xpl_error err = {0};
        struct xpl_buf out;
        CHECK_OK(ask("iree_memory", bundle, "id", rows[i].id, &out, &err), &err);
        CHECK_EQ(count(&out, "\"type\":\"memory_event\""), rows[i].rows);
        xpl_buf_fini(&out);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct xpl_error err = {0};
        struct xpl_buf out;
        CHECK_EQ(ask("iree_memory", bundle, "id", refused[i], &out, &err), XPL_INVALID_ARGUMENT);
        CHECK(strstr(err.msg, "no id: "));
        xpl_buf_fini(&out);
    }
}

static void test_traces(struct xpl_buf *bundle) {
    struct xpl_error err = {0};
    struct xpl_buf out;
    const struct xpl_tool *const t = xpl_tool_find(XPL_STR("iree_att"));
    CHECK_OK(ask("iree_att", bundle, "id", "900", &out, &err), &err);
    CHECK_EQ(count(&out, "\"raw_bytes\":512,"), 1);
    xpl_buf_fini(&out);
    CHECK_EQ(ask("iree_att", bundle, "raw", "true", &out, &err), XPL_NOT_FOUND); // of which one?
    xpl_buf_fini(&out);
    CHECK(strcmp(t->content_type, "application/x-ndjson") == 0);
}

// Bytes behind the stated end are named, and read when they are asked for; the warning of an export
// is a row of its schema.
static void test_unfinished(struct xpl_buf *bundle) {
    static const char *const tools[] = {"iree_cat", "iree_export"};
    static const char *const rows[] = {"\"type\":\"warning\"", "\"record_type\":\"diagnostic\""};
    struct xpl_iree_bundle whole;
    struct xpl_iree_cursor c = {.bundle = &whole};
    struct xpl_iree_record r;
    struct xpl_error err = {0};
    struct xpl_buf out;
    CHECK_OK(xpl_iree_open((xpl_bytes_t){bundle->p, bundle->n}, false, &whole, &err), &err);
    CHECK(xpl_iree_next(&c, &r));
    const uint64_t end = r.offset + r.record_length;
    memcpy(bundle->p + 16, &end, sizeof end);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(ask(tools[i], bundle, "unfinished", "false", &out, &err), &err);
        CHECK_EQ(count(&out, "\n"), 3); // the file or schema, one record, the warning
        CHECK_EQ(count(&out, rows[i]), 1);
        CHECK_EQ(count(&out, "(--unfinished reads them)"), 1);
        xpl_buf_fini(&out);
        CHECK_OK(ask(tools[i], bundle, "unfinished", "true", &out, &err), &err);
        CHECK(count(&out, "\n") > 20);
        CHECK_EQ(count(&out, "(--unfinished reads them)"), 0);
        xpl_buf_fini(&out);
    }
}

// A bundle as other tools see it: an XSpace, within the limit, of which they make their answers.
static void test_view(const struct xpl_buf *bundle) {
    const xpl_str_t name = XPL_STR("b.ireeprof");
    const xpl_bytes_t file = {bundle->p, bundle->n}, none = {bundle->p, 10};
    const struct xpl_format_limits roomy = {.max_bytes = 1 << 24}, tight = {.max_bytes = 1000};
    struct xpl_profile p = {0}, q = {0};
    struct xpl_error err = {0};
    struct xpl_buf out;
    CHECK(xpl_profile_is_view(XPL_KIND_XSPACE, name));
    CHECK(!xpl_profile_is_view(XPL_KIND_IREE, name));
    CHECK(!xpl_profile_is_view(XPL_KIND_XSPACE, XPL_STR("h.xplane.pb")));
    CHECK_OK(xpl_profile_open_as(XPL_KIND_IREE, name, file, &roomy, &p, &err), &err);
    CHECK(p.bytes.ptr == bundle->p && !p.owned); // as it is
    xpl_profile_close(&p);
    CHECK_OK(xpl_profile_open_as(XPL_KIND_XSPACE, name, file, &roomy, &p, &err), &err);
    CHECK(p.owned && p.bytes.len > 1000);
    CHECK_EQ(xpl_profile_open_as(XPL_KIND_XSPACE, name, file, &tight, &q, &err),
             XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(xpl_profile_open_as(XPL_KIND_XSPACE, name, none, &roomy, &q, &err), XPL_DATA_LOSS);
    CHECK(!q.owned);
    const struct xpl_buf view = {.p = (uint8_t *)p.owned, .n = p.bytes.len};
    CHECK_OK(ask("op_profile", &view, NULL, "", &out, &err), &err);
    CHECK(count(&out, "dispatch") >= 1);
    xpl_buf_fini(&out);
    xpl_profile_close(&p);
}

int main(void) {
    struct xpl_buf b = read_data_file("iree/syn-everything.ireeprof");
    test_view(&b);
    test_ids(&b);
    test_traces(&b);
    test_unfinished(&b);
    xpl_buf_fini(&b);
    return 0;
}
