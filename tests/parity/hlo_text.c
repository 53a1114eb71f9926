// SPDX-License-Identifier: Apache-2.0
// Texts of HLO programs, for comparison with the real XProf.  A worker: each request on standard
// input is a line "FORM LENGTH" and LENGTH bytes of an HloProto, where FORM is short, long,
// metadata, ops (the text of every instruction), costs (what each costs on a GPU), xprof_costs (the
// same as XProf has it), pbtxt, json, or neighbours (the bytes begin with the name of an
// instruction and a newline); each answer on standard output is a line "STATUS LENGTH" and LENGTH
// bytes.  Of ops these are name, tab, text, newline; of costs name, model flops, device flops,
// bytes, bytes read and written, with tabs.
//   hlo_text --time FORM FILE [N]    time of the processor that a text of one program takes, that
//   of
//                                    reading it, and that of copying it: the best of N
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/fields.h"
#include "analysis/hlo/graph/adjacent.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/proto/print.h"
#include "analysis/hlo/text/text.h"

static const size_t limit = (size_t)4 << 30;
static const char *const names[] = {"short", "long", "metadata",   "ops",        "costs",
                                    "pbtxt", "json", "neighbours", "xprof_costs"};
enum { SHORT, LONG, METADATA, OPS, COSTS, PBTXT, JSON, NEIGHBOURS, XPROF_COSTS };

static xpl_status_t put_ops(const struct xpl_hlo_module *m, struct xpl_arena *a,
                            struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_hlo_text_cache *const cache = xpl_hlo_text_cache_new(a);
    if (!m->valid) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "XLA would refuse this HLO module");
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        xpl_buf_str(out, m->instructions[i].name);
        xpl_buf_putc(out, '\t');
        XPL_TRY(xpl_hlo_text_instruction(m, i, XPL_HLO_TEXT_EXPRESSION, cache, out, err));
        xpl_buf_putc(out, '\n');
    }
    return XPL_OK;
}

static xpl_status_t put_costs(const struct xpl_hlo_module *m, bool as_xprof, struct xpl_arena *a,
                              struct xpl_buf *out, struct xpl_error *err) {
    bool lost = false;
    if (!m->valid) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "XLA would refuse this HLO module");
    struct xpl_hlo_costs *const costs = xpl_hlo_costs_new(m, a);
    if (!costs) XPL_RETURN_OOM(err, "HLO costs");
    if (as_xprof) XPL_TRY(xpl_hlo_costs_lost(costs, NULL, &lost, err));
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        struct xpl_hlo_cost c = {0};
        if (!lost) XPL_TRY(xpl_hlo_cost(costs, i, NULL, &c, err));
        xpl_buf_str(out, m->instructions[i].name);
        xpl_buf_printf(out, "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n",
                       c.model_flops, c.device_flops, c.bytes, c.hbm_read_bytes,
                       c.hbm_written_bytes);
    }
    return XPL_OK;
}

static xpl_status_t put_program(const struct xpl_hlo_module *m, unsigned form, xpl_str_t node,
                                struct xpl_arena *a, struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    if (form == OPS) return put_ops(m, a, out, err);
    if (form == COSTS || form == XPROF_COSTS) return put_costs(m, form == XPROF_COSTS, a, out, err);
    if (form != NEIGHBOURS)
        return xpl_hlo_text_module(m, (enum xpl_hlo_text_form)form, &exec, a, out, err);
    const uint32_t at = m->valid ? xpl_hlo_find_node(m, node) : UINT32_MAX;
    if (at == UINT32_MAX) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no such instruction");
    return xpl_hlo_adjacent(m, at, &exec, a, out, err);
}

static xpl_status_t make_text(xpl_bytes_t proto, unsigned form, struct xpl_buf *out,
                              struct xpl_error *err) {
    struct xpl_hlo_message p;
    struct xpl_hlo_module *m = NULL;
    struct xpl_arena a = xpl_arena_of(limit);
    struct xpl_exec exec = xpl_exec_serial();
    xpl_str_t node = {"", 0};
    if (form == PBTXT || form == JSON) {
        const xpl_status_t st = xpl_hlo_proto_print(
            proto, form == JSON ? XPL_HLO_PROTO_JSON : XPL_HLO_PROTO_PBTXT, &exec, &a, out, err);
        xpl_arena_fini(&a);
        return st;
    }
    if (form == NEIGHBOURS) {
        const uint8_t *const end = memchr(proto.ptr, '\n', proto.len);
        if (!end) exit(2);
        node = (xpl_str_t){(const char *)proto.ptr, (size_t)(end - proto.ptr)};
        proto = (xpl_bytes_t){end + 1, proto.len - node.len - 1};
    }
    xpl_hlo_message_read(proto, &p);
    xpl_status_t st = xpl_hlo_module_read_full(xpl_hlo_bytes(&p, HLO_PROTO_MODULE), &a, &m, err);
    if (st == XPL_OK) st = put_program(m, form, node, &a, out, err);
    xpl_arena_fini(&a);
    return st;
}

static unsigned find_form(const char *name) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return i;
    fprintf(stderr, "hlo_text: no form %s\n", name);
    exit(2);
}

static void serve(void) {
    char form[16];
    size_t n;
    while (scanf("%15s %zu", form, &n) == 2 && getchar() == '\n') {
        uint8_t *const bytes = malloc(n + 1);
        struct xpl_buf out = xpl_buf_of(limit);
        struct xpl_error err = {0};
        if (!bytes || fread(bytes, 1, n, stdin) != n) exit(1);
        const xpl_status_t st = make_text((xpl_bytes_t){bytes, n}, find_form(form), &out, &err);
        if (st != XPL_OK) {
            out.n = 0;
            xpl_buf_str(&out, xpl_str_from(err.msg));
        }
        printf("%s %zu\n", st == XPL_OK ? "OK" : xpl_status_name(st), out.n);
        (void)fwrite(out.p, 1, out.n, stdout);
        (void)fflush(stdout);
        xpl_buf_fini(&out);
        free(bytes);
    }
}

// ---- measuring ----

// Seconds of the processor: others use the machine, too.
static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { WHOLE, READING, COPYING, N_MEASURED };

static void note_best(double begin, double *best) {
    const double took = now() - begin;
    if (took < *best) *best = took;
}

static void read_alone(xpl_bytes_t proto, double *best) {
    struct xpl_hlo_message p;
    struct xpl_hlo_module *m = NULL;
    struct xpl_arena a = xpl_arena_of(limit);
    struct xpl_error err;
    const double begin = now();
    xpl_hlo_message_read(proto, &p);
    if (xpl_hlo_module_read_full(xpl_hlo_bytes(&p, HLO_PROTO_MODULE), &a, &m, &err) != XPL_OK)
        exit(1);
    xpl_arena_fini(&a);
    note_best(begin, best);
}

static void copy_alone(const struct xpl_buf *text, double *best) {
    const double begin = now();
    uint8_t *const other = malloc(text->n);
    if (!other) exit(1);
    memcpy(other, text->p, text->n);
    __asm__ volatile("" : : "r"(other) : "memory");
    free(other);
    note_best(begin, best);
}

// Each text goes into a fresh buffer of the right size, and so does each copy: pages of large
// buffers go back to the system, so that both take as many anew.
static int measure(const char *form, const char *path, int rounds) {
    FILE *const f = fopen(path, "rb");
    struct xpl_buf file, out;
    struct xpl_error err = {0};
    const unsigned which = find_form(form);
    double best[N_MEASURED] = {1e9, 1e9, 1e9};
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 17);
    xpl_buf_init(&file, limit);
    for (size_t n = 1; f && n && xpl_buf_room(&file, 1 << 16); file.n += n)
        n = fread(file.p + file.n, 1, 1 << 16, f);
    const xpl_bytes_t proto = {file.p, file.n};
    size_t size = 1 << 16;
    for (int i = 0; i <= rounds; i++) {
        const double begin = now();
        xpl_buf_init(&out, limit);
        if (!xpl_buf_room(&out, size) || make_text(proto, which, &out, &err) != XPL_OK) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        if (i) note_best(begin, &best[WHOLE]);
        size = out.n;
        if (which != PBTXT && which != JSON) read_alone(proto, &best[READING]);
        copy_alone(&out, &best[COPYING]);
        xpl_buf_fini(&out);
    }
    if (best[READING] >= best[WHOLE]) best[READING] = 0; // no module is read, or nothing else done
    printf("%zu bytes of text from %zu: %.0f us, of which %.0f to read; copy %.0f us; ratio %.3f, "
           "of the text alone %.3f\n",
           size, file.n, best[WHOLE] * 1e6, best[READING] * 1e6, best[COPYING] * 1e6,
           best[COPYING] / best[WHOLE], best[COPYING] / (best[WHOLE] - best[READING]));
    xpl_buf_fini(&file);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 4 && strcmp(argv[1], "--time") == 0)
        return measure(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 100);
    serve();
    return 0;
}
