// SPDX-License-Identifier: Apache-2.0
// Tools of IREE's bundles: ids, bytes after the stated end, the bytes of executable traces, and
// warnings for an incomplete bundle.
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

// With n options.  The caller frees *out; *type is the answer's, where it is not NULL.
static xpl_status_t ask_with(const char *tool, const struct xpl_buf *bundle,
                             const struct xpl_option *o, size_t n, const char **type,
                             struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(tool));
    const struct xpl_resolve_host host = {
        .name = XPL_STR("h"), .path = "h", .profile = {bundle->p, bundle->n}};
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *options;
    CHECK(t);
    xpl_buf_init(out, 1 << 24);
    CHECK_OK(xpl_tool_options_parse(t, o, n, true, &arena, &options, err), err);
    if (type) *type = t->content_type_of(options);
    const struct xpl_resolve r = {.tool = t,
                                  .options = options,
                                  .hosts = &host,
                                  .n_hosts = 1,
                                  .exec = &exec,
                                  .limit = 1 << 24,
                                  .warn = ignore_warning};
    return xpl_resolve(&r, out, err);
}

// `key` may be NULL: no option.
static xpl_status_t ask(const char *tool, const struct xpl_buf *bundle, const char *key,
                        const char *value, struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_option option = {xpl_str_from(key ? key : ""), xpl_str_from(value)};
    return ask_with(tool, bundle, &option, key != NULL, NULL, out, err);
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

// A long one would cost its length at each event.
static void test_long_filter(struct xpl_buf *bundle) {
    enum { MOST = 1024 };
    char text[MOST + 2];
    for (size_t n = MOST; n <= MOST + 1; n++) {
        struct xpl_error err = {0};
        struct xpl_buf out;
        memset(text, '*', n);
        text[n] = 0;
        CHECK_EQ(ask("iree_memory", bundle, "filter", text, &out, &err),
                 n > MOST ? XPL_INVALID_ARGUMENT : XPL_OK);
        CHECK(n == MOST || strstr(err.msg, "filter: more than 1024 bytes"));
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

// The bytes of the trace that an id names, and no row.
static void test_raw(const struct xpl_buf *bundle) {
    const struct xpl_option raw[] = {{XPL_STR("id"), XPL_STR("900")},
                                     {XPL_STR("raw"), XPL_STR("true")}};
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    const char *type;
    CHECK_OK(ask_with("iree_att", bundle, raw, 2, &type, &out, &err), &err);
    CHECK_EQ(out.n, 512);
    CHECK(memmem(bundle->p, bundle->n, out.p, out.n)); // as the bundle has them
    CHECK_STR(xpl_str_from(type), "application/octet-stream");
}

// Each report is a tool: rows of JSON, each a line, or a text that has none.
static void test_reports(const struct xpl_buf *bundle) {
    static const char *const tools[] = {
        "iree_att",        "iree_cat",        "iree_command",   "iree_counter", "iree_dispatch",
        "iree_explain",    "iree_executable", "iree_functions", "iree_latency", "iree_memory",
        "iree_iterations", "iree_queue",      "iree_self",      "iree_usage",   "iree_sessions",
        "iree_summary",    "iree_statistics"};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        for (int text = 0; text < 2; text++) {
            const struct xpl_option o = {XPL_STR("format"),
                                         text ? XPL_STR("text") : XPL_STR("jsonl")};
            struct xpl_error err = {0};
            struct xpl_buf out;
            const char *type;
            CHECK_OK(ask_with(tools[i], bundle, &o, 1, &type, &out, &err), &err);
            const size_t rows = count(&out, "\n{\"") + (out.n && out.p[0] == '{');
            CHECK_EQ(rows, text ? 0 : count(&out, "\n"));
            CHECK(text ? out.n > 0 : rows > 0);
            CHECK_STR(xpl_str_from(type),
                      text ? "text/plain; charset=utf-8" : "application/x-ndjson");
            xpl_buf_fini(&out);
        }
}

// What an export is, by its format; begins as files of it do.
static void test_exports(const struct xpl_buf *bundle) {
    static const struct {
        const char *format, *type, *begin;
    } rows[] = {{"ireeperf-jsonl", "application/x-ndjson", "{\"schema_version\":"},
                {"perfetto", "application/octet-stream", "\x0a"}, // Trace.packet
                {"xspace", "application/octet-stream", "\x0a"},   // XSpace.planes
                {"chrome", "application/json", "{\"displayTimeUnit\":\"ns\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct xpl_option o = {XPL_STR("format"), xpl_str_from(rows[i].format)};
        struct xpl_error err = {0};
        struct xpl_buf out;
        const char *type;
        CHECK_OK(ask_with("iree_export", bundle, &o, 1, &type, &out, &err), &err);
        CHECK_STR(xpl_str_from(type), rows[i].type);
        CHECK(xpl_str_starts((xpl_str_t){(const char *)out.p, out.n}, xpl_str_from(rows[i].begin)));
        xpl_buf_fini(&out);
    }
}

// Bytes after the stated end are reported, and read on request; the warning of an export is a row
// of its schema.
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
    CHECK(xpl_format_of_name(name, NULL)->import);
    CHECK(!xpl_format_of_name(XPL_STR("h.xplane.pb"), NULL)->import);
    CHECK_OK(xpl_profile_open_as(XPL_FORM_FILE, name, file, &roomy, &p, &err), &err);
    CHECK(p.bytes.ptr == bundle->p && !p.owned); // as it is
    xpl_profile_close(&p);
    CHECK_OK(xpl_profile_open_as(XPL_FORM_XSPACE, name, file, &roomy, &p, &err), &err);
    CHECK(p.owned && p.bytes.len > 1000);
    CHECK_EQ(xpl_profile_open_as(XPL_FORM_XSPACE, name, file, &tight, &q, &err),
             XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(xpl_profile_open_as(XPL_FORM_XSPACE, name, none, &roomy, &q, &err), XPL_DATA_LOSS);
    CHECK(!q.owned);
    const struct xpl_buf view = {.p = (uint8_t *)p.owned, .n = p.bytes.len};
    CHECK_OK(ask("op_profile", &view, NULL, "", &out, &err), &err);
    CHECK(count(&out, "dispatch") >= 1);
    xpl_buf_fini(&out);
    xpl_profile_close(&p);
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file("iree/syn-everything.ireeprof");
    test_view(&b);
    test_ids(&b);
    test_long_filter(&b);
    test_traces(&b);
    test_raw(&b);
    test_reports(&b);
    test_exports(&b);
    test_unfinished(&b);
    return 0;
}
