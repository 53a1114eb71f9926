// SPDX-License-Identifier: Apache-2.0
// A CUDA program that needs no GPU: program MODE [N]
//   steady       a little of everything, until it is killed
//   burst N      N kernels as fast as it can once it is traced, "done" on stdout, then nothing
//   leave N      N kernels once it is traced, then a regular exit
//   crash N      as leave, but killed
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/agent/fake/fake.h"

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void step(uint64_t i) {
    fake_range("step", true);
    fake_malloc(0x10000 + i * 4096, 1 << 20, false);
    fake_memcpy(13, 4096);
    fake_kernel("_ZN3toy6matmulIfEEvPT_S2_i", 0, 7);
    fake_kernel("saxpy", 1, 7);
    fake_memset(13, 512);
    fake_graph(7, 3);
    fake_sync(7);
    fake_page_fault();
    fake_malloc(0x10000 + i * 4096, 1 << 20, true);
    fake_range("step", false);
}

int main(int argc, char **argv) {
    const char *const mode = argc > 1 ? argv[1] : "steady";
    const long n = argc > 2 ? atol(argv[2]) : 0;
    if (cuInit(0) != 0) return 1;
    alarm(300);
    if (strcmp(mode, "steady") == 0)
        for (uint64_t i = 0;; i++, pause_ms(1))
            step(i);
    while (!fake_cuda_is_traced())
        pause_ms(1);
    for (long i = 0; i < n; i++)
        fake_kernel("saxpy", 0, 7);
    if (strcmp(mode, "leave") == 0) return 0;
    if (write(STDOUT_FILENO, "done\n", 5) != 5) return 1;
    if (strcmp(mode, "crash") == 0) {
        pause_ms(1500); // the agent has been given the full buffers
        kill(getpid(), SIGKILL);
    }
    for (;;)
        pause();
}
