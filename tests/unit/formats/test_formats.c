// SPDX-License-Identifier: Apache-2.0
// The table of formats: names, marks, opening, limits, truncated and corrupt files.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/heap.h"
#include "tests/cancelled.h"
#include "tests/check.h"

static const struct xpl_format_limits roomy = {.max_bytes = (size_t)1 << 30};

static struct xpl_buf gzip_of(const void *p, size_t n) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    z_stream z = {0};
    CHECK(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(xpl_buf_room(&b, deflateBound(&z, n)));
    z.next_in = (Bytef *)(uintptr_t)p, z.avail_in = (unsigned)n;
    z.next_out = b.p, z.avail_out = (unsigned)b.cap;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    b.n = z.total_out;
    deflateEnd(&z);
    return b;
}

static struct xpl_buf zstd_of(const void *p, size_t n) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    CHECK(xpl_buf_room(&b, ZSTD_compressBound(n)));
    b.n = ZSTD_compress(b.p, b.cap, p, n, 3);
    CHECK(!ZSTD_isError(b.n));
    return b;
}

// Bytes that compress to about a third.
static uint8_t *sample(size_t n) {
    uint8_t *const p = malloc(n + !n);
    uint32_t x = 1;
    CHECK(p);
    for (size_t i = 0; i < n; i++) {
        if (i % 3 == 0) x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> (i % 3 == 2 ? 24 : 30));
    }
    return p;
}

static xpl_bytes_t bytes_of(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

static void opens_as(const char *name, xpl_bytes_t file, const void *content, size_t n) {
    struct xpl_profile p = {0};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_profile_open(xpl_str_from(name), file, &roomy, &p, &err);
    if (st != XPL_OK) fprintf(stderr, "%s: %s\n", name, err.msg);
    CHECK_EQ(st, XPL_OK);
    CHECK_EQ(p.bytes.len, n);
    CHECK(p.bytes.ptr && (n == 0 || memcmp(p.bytes.ptr, content, n) == 0));
    xpl_profile_close(&p);
    CHECK(!p.owned && !p.bytes.ptr);
    xpl_profile_close(&p);
}

static struct xpl_error fails_with(const char *name, xpl_bytes_t file,
                                   const struct xpl_format_limits *limits, xpl_status_t code,
                                   const char *words) {
    struct xpl_profile p = {.owned = NULL, .bytes = {(const uint8_t *)"x", 7}};
    struct xpl_error err = {0};
    CHECK_EQ(xpl_profile_open(xpl_str_from(name), file, limits, &p, &err), code);
    if (!strstr(err.msg, words)) fprintf(stderr, "%s: %s\n", name, err.msg);
    CHECK(strstr(err.msg, words));
    CHECK(p.bytes.len == 7 && !p.owned);
    return err;
}

// ---- names ----

static void name_is(const char *file, const char *host, unsigned rank, bool refused) {
    struct xpl_profile_file got = {.rank = 99, .refusal = ""};
    const bool is = xpl_format_match(xpl_str_from(file), &got);
    CHECK(is == (host != NULL));
    CHECK(is == (xpl_format_of_name(xpl_str_from(file), NULL) != NULL));
    if (!is) return;
    CHECK(xpl_str_eq(got.host, xpl_str_from(host)));
    CHECK_EQ(got.rank, rank);
    CHECK((got.refusal != NULL) == refused);
    CHECK(got.is_doubtful == (strstr(file, ".json") && !strstr(file, ".pt.trace.json")));
}

static void test_names(void) {
    name_is("h.xplane.pb", "h", 0, false);
    name_is("h.xplane.pb.gz", "h", 1, false);
    name_is("h.xplane.pb.zst", "h", 2, false);
    name_is("h.xplane.pb.zstd", "h", 3, false);
    name_is("h.xplane.riegeli", "h", 8, true);
    name_is("/a/b.xplane.pb/h.1.xplane.pb.gz", "h.1", 1, false);
    name_is("h.xplane.pb.gz.xplane.pb", "h.xplane.pb.gz", 0, false);
    name_is(".xplane.pb", NULL, 0, false);
    name_is("d/.xplane.pb.gz", NULL, 0, false);
    name_is("h.xplane.pb.bak", NULL, 0, false);
    name_is("h.gz", NULL, 0, false);
    name_is("h.xplane.pb/", NULL, 0, false);
    name_is("b.ireeprof", "b", 64 + 16, false);
    name_is("b.ireeprof.zst", "b", 64 + 18, false);
    name_is("h.trace.json.gz", "h.trace", 24 + 5, false); // next to each profile of XProf, too
    name_is("h.1.pt.trace.json.gz", "h.1", 24 + 1, false);
    name_is("rank0.json", "rank0", 24 + 4, false);
    name_is(".json", NULL, 0, false);
    name_is("h.nsys-rep", NULL, 0, false);
    name_is("", NULL, 0, false);
    size_t n;
    const struct xpl_format *const *const f = xpl_formats(&n);
    CHECK(n >= 4);
    CHECK(strcmp(f[0]->suffixes[0], XPL_FORMAT_SUFFIX) == 0 && !f[0]->import);
    for (size_t i = 0; i < n; i++) {
        char version[XPL_FORMAT_VERSION_TEXT];
        CHECK(f[i]->name && f[i]->label && f[i]->family && f[i]->suffixes[0]);
        CHECK(f[i]->sniff || f[i]->refusal);
        CHECK_EQ(f[i]->import != NULL, f[i]->version != 0);
        CHECK_EQ(f[i]->import != NULL, f[i]->import_ratio != 0);
        CHECK_EQ(f[i]->import != NULL, f[i]->check != NULL);
        CHECK_EQ(xpl_format_version_text(f[i], version) != 0, f[i]->import != NULL);
    }
}

static void test_bundles(void) {
    // Bundles of IREE are known by name and by mark, and are their own bytes.
    const xpl_bytes_t bundle = {(const uint8_t *)"IRPF\1\0\6\0", 8}, none = {bundle.ptr, 3};
    xpl_str_t host;
    const struct xpl_format *const iree = xpl_format_of_name(XPL_STR("a/b.ireeprof"), &host);
    struct xpl_profile p = {0};
    struct xpl_error err = {0};
    CHECK(iree && xpl_str_eq(host, XPL_STR("b")));
    CHECK_OK(xpl_profile_open(XPL_STR("b.ireeprof"), bundle, &roomy, &p, &err), &err);
    CHECK(p.bytes.ptr == bundle.ptr && p.bytes.len == 8 && !p.owned);
    CHECK_OK(xpl_profile_check_name(&p, XPL_STR("b.ireeprof.gz"), &err), &err);
    CHECK_OK(xpl_profile_check_name(&p, XPL_STR("b"), &err), &err);
    CHECK_STATUS(xpl_profile_check_name(&p, XPL_STR("b.xplane.pb"), &err), XPL_DATA_LOSS, &err);
    CHECK(strstr(err.msg, "the file is a profile bundle of IREE: name it NAME.ireeprof"));
    static const uint8_t whole[24] = {'I', 'R', 'P', 'F', 1, 0, 6, 0, 24};
    CHECK_OK(iree->check((xpl_bytes_t){whole, sizeof whole}, &err), &err);
    CHECK_EQ(iree->check(bundle, &err), XPL_DATA_LOSS);
    CHECK_EQ(iree->check(none, &err), XPL_DATA_LOSS);
    CHECK(strcmp(iree->family, "iree") == 0 && iree->grouping);
}

// ---- content ----

static void recognized(const char *name, xpl_bytes_t file, const char *format, const char *suffix) {
    struct xpl_file_format is;
    struct xpl_error err = {0};
    CHECK_OK(xpl_file_recognize(xpl_str_from(name), file, NULL, &is, &err), &err);
    CHECK(strcmp(is.format->name, format) == 0 && strcmp(is.suffix, suffix) == 0);
}

// Content decides; the name does where content says little.
static void test_contents(void) {
    const xpl_bytes_t xspace = {(const uint8_t *)"\x22\1h", 3},
                      bundle = {(const uint8_t *)"IRPF\1\0\6\0", 8},
                      text = {(const uint8_t *)"hello", 5}, empty = {text.ptr, 0};
    struct xpl_buf g = gzip_of(bundle.ptr, bundle.len), z = zstd_of(xspace.ptr, xspace.len);
    static const char *const names[] = {"",       "profile",        "h.xplane.pb", "h.ireeprof",
                                        "d/h.gz", "h.ireeprof.zst", "h.trace.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool named = strstr(names[i], "ireeprof");
        recognized(names[i], bundle, "ireeprof", ".ireeprof");
        recognized(names[i], bytes_of(&g), "ireeprof", ".ireeprof.gz");
        if (!named && !strstr(names[i], "json"))
            recognized(names[i], bytes_of(&z), "xspace", ".xplane.pb.zst");
    }
    recognized("h.xplane.pb.gz", xspace, "xspace", ".xplane.pb");
    recognized("h.xplane.pb.zstd", bytes_of(&z), "xspace", ".xplane.pb.zstd");
    recognized("h.xplane.pb", empty, "xspace", ".xplane.pb"); // of an idle host
    recognized("h.xplane.pb", text, "xspace", ".xplane.pb");  // its reader reports the error
    recognized("h.ireeprof", xspace, "ireeprof", ".ireeprof");
    fails_with("profile", text, &roomy, XPL_DATA_LOSS, "not a profile of a known format");
    fails_with("profile", empty, &roomy, XPL_DATA_LOSS, "not a profile of a known format");
    xpl_buf_fini(&g), xpl_buf_fini(&z);
}

// A client may upload any bytes under the name of a PyTorch trace.
static void test_uploads(void) {
    static const char *const texts[] = {"\xfd\x37zXZ", "BZh9", "PK\3\4", "\x1f\x8b"};
    const struct xpl_format *const f = xpl_format_of_name(XPL_STR("h.pt.trace.json"), NULL);
    CHECK(f && f->check && f->import);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct xpl_error err = {0};
        struct xpl_profile p;
        const xpl_bytes_t bytes = {(const uint8_t *)texts[i], i ? strlen(texts[i]) : 6};
        CHECK_EQ(f->check(bytes, &err), XPL_DATA_LOSS);
        CHECK_EQ(f->import(bytes, &roomy, &p, &err), XPL_DATA_LOSS);
    }
}

// Known formats that we do not read are refused with advice.
static void test_unread(void) {
    static const struct {
        const char *name, *bytes, *words;
        size_t n;
    } rows[] = {
        {"h",
         "\xfd"
         "7zXZ\0",
         "xz -d", 6},
        {"h.xplane.pb", "BZh91AY", "bzip2 -d", 7},
        {"h.xplane.pb.lzma", "\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x05", "lzma files",
         15},
        {"h", "PK\3\4", "unzip", 4},
        {"h", "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "Riegeli files are not read", 8},
        {"h.json",
         " {\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},"
         "\"traceEvents\":[]}",
         "HOST.xplane.pb", 77},
        {"h.nsys-rep", "NVTX", "Nsight Systems", 4},
        {"d/h", "SQLite format 3", "Nsight Systems", 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        fails_with(rows[i].name, (xpl_bytes_t){(const uint8_t *)rows[i].bytes, rows[i].n}, &roomy,
                   XPL_FAILED_PRECONDITION, rows[i].words);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf g = gzip_of("{\"traceEvents\":[]}", 18);
    fails_with("h.trace.json.gz", bytes_of(&g), &roomy, XPL_FAILED_PRECONDITION, "trace.json.gz");
    // Archives are known by their content, also when they are compressed.
    char tar[512] = "h.xplane.pb";
    memcpy(tar + 257, "ustar", 5);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf tgz = gzip_of(tar, sizeof tar);
    static const char *const names[] = {"h.tar", "h.tgz", "h", "h.xplane.pb.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fails_with(names[i], (xpl_bytes_t){(const uint8_t *)tar, sizeof tar}, &roomy,
                   XPL_FAILED_PRECONDITION, "tar archives are not read");
        fails_with(names[i], bytes_of(&tgz), &roomy, XPL_FAILED_PRECONDITION,
                   "tar archives are not read");
    }
}

// ---- opening ----

static void test_plain(void) {
    static const uint8_t xspace[] = {0x22, 1, 'h'};
    const xpl_bytes_t file = {xspace, sizeof xspace};
    struct xpl_profile p = {0};
    // Nothing is copied, and no limit applies: the bytes are the file's.
    const struct xpl_format_limits none = {0};
    CHECK_EQ(xpl_profile_open(XPL_STR("h.xplane.pb"), file, &none, &p, NULL), XPL_OK);
    CHECK(p.bytes.ptr == xspace && p.bytes.len == sizeof xspace && !p.owned);
    xpl_profile_close(&p);
    opens_as("h.xplane.pb", (xpl_bytes_t){(const uint8_t *)"", 0}, "", 0);
    opens_as("whatever", file, xspace, sizeof xspace);
}

static void test_sizes(void) {
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 300000, 9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *const p = sample(sizes[i]);
        struct xpl_buf g = gzip_of(p, sizes[i]), z = zstd_of(p, sizes[i]);
        opens_as("h.xplane.pb.gz", bytes_of(&g), p, sizes[i]);
        opens_as("h.xplane.pb.zst", bytes_of(&z), p, sizes[i]);
        // Content says how a file is compressed.
        opens_as("h.xplane.pb", bytes_of(&g), p, sizes[i]);
        opens_as("h.xplane.pb.gz", bytes_of(&z), p, sizes[i]);
        // Several members or frames, one after the other.
        uint8_t *const twice = malloc(2 * sizes[i] + 1);
        CHECK(twice);
        memcpy(twice, p, sizes[i]);
        memcpy(twice + sizes[i], p, sizes[i]);
        xpl_buf_put(&g, g.p, 0);
        struct xpl_buf gg = gzip_of(p, sizes[i]), zz = zstd_of(p, sizes[i]);
        xpl_buf_put(&g, gg.p, gg.n);
        xpl_buf_put(&g, "\0\0\0\0\0", 5);                     // padding
        xpl_buf_put(&z, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11); // a skippable frame
        xpl_buf_put(&z, zz.p, zz.n);
        CHECK(!g.failed && !z.failed);
        opens_as("h.xplane.pb.gz", bytes_of(&g), twice, 2 * sizes[i]);
        opens_as("h.xplane.pb.zst", bytes_of(&z), twice, 2 * sizes[i]);
        xpl_buf_fini(&g), xpl_buf_fini(&z), xpl_buf_fini(&gg), xpl_buf_fini(&zz);
        free(twice);
        free(p);
    }
}

static size_t expected(const char *name, const struct xpl_buf *b, size_t n) {
    return xpl_profile_expect(XPL_FORM_XSPACE, xpl_str_from(name), (xpl_bytes_t){b->p, n});
}

// What a file states counts where it can be true, and never more than is ever decompressed.
static void test_expect(void) {
    enum { N = 300000 };
    uint8_t *const p = sample(N);
    struct xpl_buf g = gzip_of(p, N), z = zstd_of(p, N);
    CHECK_EQ(expected("h.xplane.pb.gz", &g, g.n), N);
    CHECK_EQ(expected("h.xplane.pb.zst", &z, z.n), N);
    CHECK_EQ(expected("h.xplane.pb", &z, z.n), N);
    CHECK_EQ(xpl_profile_expect(XPL_FORM_XSPACE, XPL_STR("h.xplane.pb"), (xpl_bytes_t){p, N}), 0);
    CHECK_EQ(xpl_profile_expect(XPL_FORM_XSPACE, XPL_STR("h.xplane.riegeli"), (xpl_bytes_t){p, N}),
             0);
    // A bundle is borrowed, as it is for its own tools; its view is not.
    CHECK_EQ(xpl_profile_expect(XPL_FORM_FILE, XPL_STR("h.ireeprof"), (xpl_bytes_t){p, N}), 0);
    CHECK_EQ(xpl_profile_expect(XPL_FORM_XSPACE, XPL_STR("h.ireeprof"), (xpl_bytes_t){p, N}),
             3 * N);
    CHECK_EQ(xpl_profile_expect(XPL_FORM_FILE, XPL_STR("h.ireeprof"), bytes_of(&g)), N);
    CHECK_EQ(xpl_profile_expect(XPL_FORM_XSPACE, XPL_STR("h.ireeprof"), bytes_of(&g)), N + 3 * N);
    // Less than the file's own length, nothing, or no frame at all: the usual ratio.
    memset(g.p + g.n - 4, 0, 4);
    CHECK_EQ(expected("h.xplane.pb.gz", &g, g.n), XPL_FORMAT_USUAL_RATIO * g.n);
    CHECK_EQ(expected("h.xplane.pb.gz", &g, 17), XPL_FORMAT_USUAL_RATIO * 17);
    CHECK_EQ(expected("h.xplane.pb.zst", &z, 5), XPL_FORMAT_USUAL_RATIO * 5);
    CHECK_EQ(expected("h.xplane.pb.zst", &z, 0), 0);
    // A larger size than any profile: the error comes before decompression.
    memset(g.p + g.n - 4, 0xff, 4);
    CHECK_EQ(expected("h.xplane.pb.gz", &g, g.n), XPL_FORMAT_MAX_RATIO * g.n);
    memset(g.p + 96, 0xff, 4);
    CHECK_EQ(expected("h.xplane.pb.gz", &g, 100), XPL_FORMAT_SMALL);
    xpl_buf_fini(&g), xpl_buf_fini(&z);
    free(p);
}

static void test_wrong_names(void) {
    uint8_t *const p = sample(1000);
    const xpl_bytes_t plain = {(const uint8_t *)"\x22\1h", 3};
    fails_with("h.xplane.pb.zst", (xpl_bytes_t){(const uint8_t *)"", 0}, &roomy, XPL_DATA_LOSS,
               "not zstd-compressed");
    fails_with("h.xplane.riegeli", plain, &roomy, XPL_FAILED_PRECONDITION,
               "Riegeli files are not read");
    // What IREE's tools say.
    fails_with("h.ireeprof", plain, &roomy, XPL_DATA_LOSS, "profile file is too small for header");
    fails_with("h.ireeprof", (xpl_bytes_t){p, 1000}, &roomy, XPL_DATA_LOSS,
               "invalid IREE HAL profile file magic");
    free(p);
}

// ---- limits ----

static void test_limits(void) {
    enum { N = 300000 };
    uint8_t *const p = sample(N);
    struct xpl_buf files[] = {gzip_of(p, N), zstd_of(p, N)};
    const char *const names[] = {"h.xplane.pb.gz", "h.xplane.pb.zst"};
    for (int i = 0; i < 2; i++) {
        struct xpl_profile out = {0};
        struct xpl_format_limits l = {.max_bytes = N};
        CHECK_EQ(xpl_profile_open(xpl_str_from(names[i]), bytes_of(&files[i]), &l, &out, NULL),
                 XPL_OK);
        CHECK_EQ(out.bytes.len, N);
        xpl_profile_close(&out);
        static const size_t less[] = {N - 1, N - 65536, 65536, 1, 0};
        for (size_t k = 0; k < sizeof less / sizeof *less; k++) {
            l.max_bytes = less[k];
            fails_with(names[i], bytes_of(&files[i]), &l, XPL_RESOURCE_EXHAUSTED,
                       "the limit of memory");
        }
        xpl_buf_fini(&files[i]);
    }
    free(p);
}

static long peak_kib(void) {
    struct rusage u;
    CHECK(getrusage(RUSAGE_SELF, &u) == 0);
    return u.ru_maxrss;
}

// Zeros compress a thousandfold and more: refused as soon as the ratio is passed.
static void test_bombs(void) {
    enum { N = 128 << 20, FILLS = 1 << 20 };
    static uint8_t zeros[FILLS];
    struct xpl_buf g, z;
    z_stream s = {0};
    xpl_buf_init(&g, 1 << 23);
    CHECK(xpl_buf_room(&g, 1 << 22));
    CHECK(deflateInit2(&s, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    s.next_out = g.p, s.avail_out = (unsigned)g.cap;
    ZSTD_CCtx *const c = ZSTD_createCCtx();
    xpl_buf_init(&z, 1 << 23);
    CHECK(c && xpl_buf_room(&z, 1 << 22));
    ZSTD_outBuffer o = {z.p, z.cap, 0};
    for (size_t done = 0; done < N; done += FILLS) {
        const bool last = done + FILLS == N;
        s.next_in = zeros, s.avail_in = FILLS;
        CHECK(deflate(&s, last ? Z_FINISH : Z_NO_FLUSH) == (last ? Z_STREAM_END : Z_OK));
        ZSTD_inBuffer i = {zeros, FILLS, 0};
        while (i.pos < i.size)
            CHECK(!ZSTD_isError(ZSTD_compressStream2(c, &o, &i, ZSTD_e_continue)));
        if (last) CHECK_EQ(ZSTD_compressStream2(c, &o, &(ZSTD_inBuffer){0}, ZSTD_e_end), 0);
    }
    g.n = s.total_out, z.n = o.pos;
    deflateEnd(&s);
    ZSTD_freeCCtx(c);
    CHECK(g.n < N / 900 && z.n < N / 9000);
    const long before = peak_kib();
    fails_with("h.xplane.pb.zst", bytes_of(&z), &roomy, XPL_DATA_LOSS,
               "more than 256 times as long");
    fails_with("h.xplane.pb.gz", bytes_of(&g), &roomy, XPL_DATA_LOSS,
               "more than 256 times as long");
    CHECK(peak_kib() - before < (long)(g.n * 256 / 1024) * 2 + 65536);
    const struct xpl_format_limits small = {.max_bytes = 1 << 20};
    fails_with("h.xplane.pb.gz", bytes_of(&g), &small, XPL_RESOURCE_EXHAUSTED,
               "more than 1048576 bytes");
    xpl_buf_fini(&g), xpl_buf_fini(&z);
}

// A small file may ask for a large window, which is not this program's to allocate.
static void test_windows_count(void) {
    enum { N = 2 << 20, MIB = 1 << 20 };
    uint8_t *const content = sample(N), *const out = malloc(2 * N);
    ZSTD_CCtx *const c = ZSTD_createCCtx();
    ZSTD_outBuffer o = {.dst = out, .size = 2 * N};
    ZSTD_inBuffer i = {.src = content, .size = N};
    CHECK(c && content && out);
    CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 27)));
    CHECK(!ZSTD_isError(ZSTD_compressStream2(c, &o, &i, ZSTD_e_continue)));
    CHECK_EQ(ZSTD_compressStream2(c, &o, &(ZSTD_inBuffer){0}, ZSTD_e_end), 0);
    ZSTD_freeCCtx(c);
    const size_t before = xpl_heap_in_use();
    const xpl_bytes_t file = {out, o.pos};
    xpl_heap_set_budget(before + (size_t)64 * MIB);
    fails_with("h.xplane.pb.zst", file, &roomy, XPL_RESOURCE_EXHAUSTED, "out of memory");
    CHECK_EQ(xpl_heap_in_use(), before);
    xpl_heap_set_budget(before + xpl_heap_resident() + (size_t)256 * MIB);
    struct xpl_profile p = {0};
    CHECK_OK(xpl_profile_open(XPL_STR("h.xplane.pb.zst"), file, &roomy, &p, NULL), NULL);
    CHECK_BYTES(p.bytes.ptr, p.bytes.len, content, N);
    xpl_profile_close(&p);
    CHECK_EQ(xpl_heap_in_use(), before);
    xpl_heap_set_budget(SIZE_MAX);
    free(out);
    free(content);
}

static void test_cancel(void) {
    uint8_t *const p = sample(1000);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf g = gzip_of(p, 1000);
    struct xpl_exec e = xpl_exec_serial();
    e.cancelled = always_cancelled;
    const struct xpl_format_limits l = {.max_bytes = 1 << 20, .exec = &e};
    fails_with("h.xplane.pb.gz", bytes_of(&g), &l, XPL_CANCELLED, "cancelled");
    free(p);
}

static unsigned g_calls, g_most; // cancelled after so many

static bool count_call(struct xpl_exec *e) {
    (void)e;
    return ++g_calls > g_most;
}

// Text of traces in which no event begins is read with a check now and then: an unknown list, and
// the rest behind a damaged event.
static void test_cancel_of_traces(void) {
    enum { N = 32 << 20, LEAST = 6 };
    static const char *const begins[] = {"{\"schemaVersion\":1,\"x\":[",
                                         "{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":x"};
    static const char *const parts[] = {"1,", "{\"phX"};
    const struct xpl_format *const f = xpl_format_of_name(XPL_STR("h.pt.trace.json"), NULL);
    char *const text = malloc(N);
    CHECK(f && text);
    struct xpl_exec e = xpl_exec_serial();
    e.cancelled = count_call;
    const struct xpl_format_limits l = {.max_bytes = (size_t)256 << 20, .exec = &e};
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(begins[i]), part = strlen(parts[i]);
        memcpy(text, begins[i], n);
        for (size_t at = n; at < N; at++)
            text[at] = parts[i][(at - n) % part];
        const xpl_bytes_t bytes = {(const uint8_t *)text, N};
        struct xpl_error err = {0};
        struct xpl_profile ret;
        g_calls = 0, g_most = UINT_MAX;
        CHECK_STATUS(f->import(bytes, &l, &ret, &err), XPL_DATA_LOSS, &err);
        CHECK(g_calls >= LEAST);
        g_calls = 0, g_most = LEAST - 1;
        CHECK_STATUS(f->import(bytes, &l, &ret, &err), XPL_CANCELLED, &err);
        CHECK_EQ(g_calls, LEAST);
    }
    free(text);
}

// ---- broken files ----

// Every proper prefix fails, and so does every single byte changed that checksums cover.
static void sweep(const char *name, struct xpl_buf *b, const uint8_t *content, size_t n) {
    for (size_t len = 0; len < b->n; len++) {
        uint8_t *const exact = malloc(len + !len);
        CHECK(exact);
        memcpy(exact, b->p, len);
        const struct xpl_error e =
            fails_with(name, (xpl_bytes_t){exact, len}, &roomy, XPL_DATA_LOSS, "truncated");
        CHECK(e.offset <= len);
        free(exact);
    }
    for (size_t at = 0; at < b->n; at++) {
        struct xpl_profile p = {0};
        struct xpl_error err = {0};
        b->p[at] ^= 0x10;
        const xpl_status_t st = xpl_profile_open(xpl_str_from(name), bytes_of(b), &roomy, &p, &err);
        b->p[at] ^= 0x10;
        // Undetected damage must not matter (gzip's time and flags of its writer).
        if (st == XPL_OK) CHECK(p.bytes.len == n && memcmp(p.bytes.ptr, content, n) == 0);
        if (st == XPL_DATA_LOSS) CHECK(err.offset <= b->n);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
        xpl_profile_close(&p);
    }
    xpl_buf_put(b, "x", 1);
    CHECK(!b->failed);
    const struct xpl_error e = fails_with(name, bytes_of(b), &roomy, XPL_DATA_LOSS, "");
    CHECK(e.offset <= b->n);
}

static struct xpl_buf zstd_with_checksum(const void *p, size_t n) {
    struct xpl_buf b = xpl_buf_of(1 << 20);
    ZSTD_CCtx *const c = ZSTD_createCCtx();
    CHECK(c && xpl_buf_room(&b, ZSTD_compressBound(n)));
    CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)));
    b.n = ZSTD_compress2(c, b.p, b.cap, p, n);
    CHECK(!ZSTD_isError(b.n));
    ZSTD_freeCCtx(c);
    return b;
}

static void test_broken(void) {
    enum { N = 2000 };
    uint8_t *const p = sample(N);
    struct xpl_buf g = gzip_of(p, N), z = zstd_with_checksum(p, N);
    sweep("h.xplane.pb.gz", &g, p, N);
    sweep("h.xplane.pb.zst", &z, p, N);
    xpl_buf_fini(&g), xpl_buf_fini(&z);
    free(p);
}

// A frame that asks for a window of 2 GiB.
static void test_window(void) {
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 1, 0, 0};
    fails_with("h.xplane.pb.zst", (xpl_bytes_t){frame, sizeof frame}, &roomy,
               XPL_RESOURCE_EXHAUSTED, "a window larger than 128 MiB");
}

int main(void) {
    test_names();
    test_bundles();
    test_contents();
    test_uploads();
    test_unread();
    test_plain();
    test_sizes();
    test_expect();
    test_wrong_names();
    test_limits();
    test_bombs();
    test_windows_count();
    test_cancel();
    test_cancel_of_traces();
    test_broken();
    test_window();
    return 0;
}
