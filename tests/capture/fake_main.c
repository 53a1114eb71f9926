// SPDX-License-Identifier: Apache-2.0
// fake_profiler MODE [BYTES [EXTRA_MS [PORT]]]: prints its address and serves until standard input
// ends, half an hour at most.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/capture/fake_profiler.h"

int main(int argc, char **argv) {
    struct fake_options o = {.mode = argc > 1 ? fake_mode_of(argv[1]) : FAKE_MODES};
    if (o.mode == FAKE_MODES) {
        (void)fprintf(stderr, "usage: fake_profiler MODE [BYTES [EXTRA_MS [PORT]]]\n");
        return 2;
    }
    if (argc > 2) o.bytes = strtoull(argv[2], NULL, 10);
    if (argc > 3) o.extra_ms = atoi(argv[3]);
    if (argc > 4) o.port = atoi(argv[4]);
    (void)alarm(1800);
    struct fake_set *const s = fake_set_new();
    const int i = fake_add(s, &o);
    (void)printf("%s\n", fake_address(s, i));
    (void)fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    fake_set_free(s);
    return 0;
}
