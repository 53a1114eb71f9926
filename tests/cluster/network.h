// SPDX-License-Identifier: Apache-2.0
// Two network namespaces with a link between them (veth, by `ip` of Debian's iproute2): the
// database's and a worker's. They have no names: the kernel removes them and the link once the test
// and its children have ended, in whatever way.
#ifndef XPL_TESTS_CLUSTER_NETWORK_H_
#define XPL_TESTS_CLUSTER_NETWORK_H_

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

// Addresses for documentation (RFC 5737): no other network has them.
#define DATABASE_ADDRESS "192.0.2.1"
#define WORKER_ADDRESS   "192.0.2.2"

static struct network {
    int own, database, worker; // namespaces; no child inherits them
} net;

static inline void skip_network(const char *why, int os) {
    fprintf(stderr, "SKIPPED: %s%s%s\n", why, os ? ": " : "", os ? strerror(os) : "");
    exit(77);
}

static inline int open_netns(void) {
    const int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

// What this thread starts from here on is in this namespace.
static inline void enter_netns(int ns) {
    CHECK_EQ(setns(ns, CLONE_NEWNET), 0);
}

static inline int make_netns(void) {
    if (unshare(CLONE_NEWNET) != 0) skip_network("no namespace of networks", errno);
    const int fd = open_netns();
    enter_netns(net.own);
    return fd;
}

// `ip` with these arguments, in a namespace.
static inline int try_ip(int ns, const char *arguments) {
    char cmd[300];
    int status = 0;
    (void)snprintf(cmd, sizeof cmd, "PATH=$PATH:/usr/sbin:/sbin; exec ip %s", arguments);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (setns(ns, CLONE_NEWNET) == 0) (void)execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
        _exit(126);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline void run_ip(int ns, const char *arguments) {
    const int rc = try_ip(ns, arguments);
    if (rc) fprintf(stderr, "ip %s: %d\n", arguments, rc);
    CHECK_EQ(rc, 0);
}

// Makes them.  Ends the test as skipped, with the reason, where that cannot be.
static inline void make_network(void) {
    char veth[160];
    if (geteuid() != 0) skip_network("network namespaces need root", 0);
    net.own = open_netns();
    if (try_ip(net.own, "-V >/dev/null") != 0) skip_network("no ip: Debian's package iproute2", 0);
    net.database = make_netns();
    net.worker = make_netns();
    (void)snprintf(veth, sizeof veth,
                   "link add database type veth peer name worker netns /proc/%d/fd/%d",
                   (int)getpid(), net.worker);
    if (try_ip(net.database, veth) != 0) skip_network("no link of the kind veth", 0);
    run_ip(net.database, "address add " DATABASE_ADDRESS "/30 dev database");
    run_ip(net.worker, "address add " WORKER_ADDRESS "/30 dev worker");
    run_ip(net.worker, "link set lo up"); // daemons listen on it
    run_ip(net.database, "link set database up");
    run_ip(net.worker, "link set worker up");
}

#endif
