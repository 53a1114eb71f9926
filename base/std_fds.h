// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error of programs that were started without one of them.
#ifndef XPL_BASE_STD_FDS_H_
#define XPL_BASE_STD_FDS_H_

#include <fcntl.h>
#include <unistd.h>

// Opens /dev/null for each of the descriptors 0 to 2 that is closed: the next file that is opened
// would get its number, and then what is printed, such as the log.  First thing in main().
static inline void xpl_std_fds_open(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) (void)close(fd);
}

#endif
