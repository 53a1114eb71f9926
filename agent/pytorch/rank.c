// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/rank.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/parse.h"

enum { MAX_ENVIRONMENT = 1 << 20, MAX_RANK = 1 << 24 };

int xpl_pytorch_rank_in(xpl_str_t environment) {
    static const char *const names[] = {"RANK=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK="};
    enum { N = sizeof names / sizeof *names };
    size_t best = N;
    int64_t rank = -1;
    for (size_t at = 0, len; at < environment.len; at += len + 1) {
        len = strnlen(environment.ptr + at, environment.len - at);
        const xpl_str_t one = xpl_str_sub(environment, at, len);
        for (size_t i = 0; i < best; i++) {
            const xpl_str_t name = xpl_str_from(names[i]);
            if (xpl_str_starts(one, name) &&
                xpl_parse_int(xpl_str_sub(one, name.len, len), 0, MAX_RANK, &rank))
                best = i;
        }
    }
    return (int)rank;
}

int xpl_pytorch_rank(pid_t pid) {
    char path[48];
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *const bytes = fd >= 0 ? xpl_sys_alloc(MAX_ENVIRONMENT) : NULL;
    size_t n = 0;
    for (ssize_t got = 1; bytes && got > 0 && n<MAX_ENVIRONMENT; n += got> 0 ? (size_t)got : 0)
        got = read(fd, bytes + n, MAX_ENVIRONMENT - n);
    const int rank = bytes ? xpl_pytorch_rank_in((xpl_str_t){bytes, n}) : -1;
    xpl_sys_free(bytes);
    if (fd >= 0) (void)close(fd);
    return rank;
}
