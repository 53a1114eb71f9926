// SPDX-License-Identifier: Apache-2.0
// How long memory_viewer takes for one program: bench_hlo_memory HLO_PROTO ROUNDS, which prints the
// microseconds of the processor of the fastest round, and the bytes of the answer.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/memory_viewer_fixture.h"

static double processor_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    FILE *const f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    struct xpl_buf file, out;
    double best = 1e18;
    size_t size = 0;
    xpl_buf_init(&file, (size_t)1 << 30);
    for (size_t n = 1; f && n && xpl_buf_room(&file, 1 << 16); file.n += n)
        n = fread(file.p + file.n, 1, 1 << 16, f);
    for (int i = 0; file.n && i < atoi(argv[2]); i++) {
        const double began = processor_us();
        struct xpl_error err = {0};
        if (ask_memory_viewer((xpl_bytes_t){file.p, file.n}, NULL, (size_t)1 << 30, &out, &err) !=
            XPL_OK) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        const double took = processor_us() - began;
        size = out.n;
        if (took < best) best = took;
        xpl_buf_fini(&out);
    }
    if (!size) {
        fprintf(stderr, "usage: bench_hlo_memory HLO_PROTO ROUNDS\n");
        return 2;
    }
    printf("%.0f %zu\n", best, size);
    xpl_buf_fini(&file);
    return 0;
}
