// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL server of the test's own: Debian's binaries, a data directory below the current one,
// a socket below /tmp, no TCP unless a test says so.  It ends with the test, whatever way that
// ends.  Where XPL_PG_POOLER is set pg_url leads to a PgBouncer in front of it, in transaction
// mode.
#ifndef XPL_TESTS_CLUSTER_PG_SERVER_H_
#define XPL_TESTS_CLUSTER_PG_SERVER_H_

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

static struct pg_server {
    char bin[128];
    char data[4096], socket[64];
    pid_t pid, owner; // of the server; of who started it
    pid_t pooler;     // PgBouncer, 0 without
    int clients;      // that it takes, 0: 100
    int connections;  // of the server, 0: 60; three are those of superusers
    uid_t uid;        // servers refuse to run as root
    gid_t gid;
    const char *address; // on which it listens, too; NULL: none
    int netns;           // the network namespace that has it; 0: ours
} pg;

static inline void pg_pause_ms(long ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

enum { PG_POOL = 3 }; // connections of PgBouncer to a database: fewer than one daemon has to it
#define PG_POOLER "/usr/sbin/pgbouncer"

// The child of fork: becomes the server's user and the program.
static inline void pg_exec(const char *const argv[], pid_t parent) {
    char path[300];
    const int log = open("/dev/null", O_RDWR);
    const bool found = argv[0][0] == '/';
    (void)snprintf(path, sizeof path, "%s%s%s", found ? "" : pg.bin, found ? "" : "/", argv[0]);
    if (pg.netns && setns(pg.netns, CLONE_NEWNET) != 0) _exit(96);
    if (pg.uid != geteuid() && (setgroups(0, NULL) || setgid(pg.gid) || setuid(pg.uid))) _exit(99);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent || dup2(log, 0) < 0) _exit(98);
    if (!getenv("XPL_PG_LOG") && (dup2(log, 1) < 0 || dup2(log, 2) < 0)) _exit(98);
    if (chdir("/") != 0) _exit(98);
    (void)execv(path, (char *const *)(uintptr_t)argv);
    _exit(97);
}

static inline pid_t pg_spawn(const char *const argv[]) {
    const pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) pg_exec(argv, parent);
    return pid;
}

static inline int pg_run(const char *const argv[]) {
    int status = 0;
    const pid_t pid = pg_spawn(argv);
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static inline const char *pg_url(const char *database) {
    static _Thread_local char url[256];
    (void)snprintf(url, sizeof url, "postgresql://postgres@/%s?host=%s%s", database, pg.socket,
                   pg.pooler ? "/pooler" : "");
    return url;
}

// Runs statements in a database.
static inline int pg_try(const char *database, const char *sql) {
    return pg_run((const char *const[]){"psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", pg.socket,
                                        "-U", "postgres", "-d", database, "-c", sql, NULL});
}

static inline void pg_sql(const char *database, const char *sql) {
    const int rc = pg_try(database, sql);
    if (rc) fprintf(stderr, "psql: %d: %s\n", rc, sql);
    CHECK_EQ(rc, 0);
}

static inline void pg_start(void) {
    char listen[80], connections[40];
    (void)snprintf(listen, sizeof listen, "listen_addresses=%s", pg.address ? pg.address : "");
    (void)snprintf(connections, sizeof connections, "max_connections=%d",
                   pg.connections ? pg.connections : 60);
    pg.pid = pg_spawn((const char *const[]){"postgres", "-D", pg.data, "-k", pg.socket, "-c",
                                            listen, "-c", "fsync=off", "-c", "shared_buffers=32MB",
                                            "-c", connections, "-c", "log_min_messages=fatal", "-c",
                                            "max_prepared_transactions=4", NULL});
    for (int i = 0; pg_try("postgres", "SELECT 1") != 0; i++) {
        CHECK(i < 1200 && waitpid(pg.pid, NULL, WNOHANG) == 0);
        pg_pause_ms(50);
    }
}

// From the next start on it listens on an address of a network namespace, for one client.
static inline void pg_listen(int netns, const char *address, const char *client) {
    char path[4200];
    (void)snprintf(path, sizeof path, "%s/pg_hba.conf", pg.data);
    FILE *const f = fopen(path, "a");
    CHECK(f && fprintf(f, "host all all %s/32 trust\n", client) > 0 && fclose(f) == 0);
    pg.netns = netns;
    pg.address = address;
}

// SIGQUIT: as a crash; SIGINT: connections are ended.
static inline void pg_stop(int sig) {
    if (pg.pid <= 0) return;
    CHECK(kill(pg.pid, sig) == 0 && waitpid(pg.pid, NULL, 0) == pg.pid);
    pg.pid = 0;
}

static inline void pg_remove(void) {
    char cmd[4400];
    if (getpid() != pg.owner) return; // a child that was forked
    if (pg.pooler > 0) (void)kill(pg.pooler, SIGTERM), (void)waitpid(pg.pooler, NULL, 0);
    if (pg.pid > 0) (void)kill(pg.pid, SIGQUIT), (void)waitpid(pg.pid, NULL, 0);
    (void)snprintf(cmd, sizeof cmd, "rm -rf '%s' '%s'", pg.data, pg.socket);
    if (system(cmd) != 0) fprintf(stderr, "%s failed\n", cmd);
}

static inline void pg_aborted(int sig) {
    (void)sig;
    pg_remove();
}

static inline bool pg_find(void) {
    glob_t g;
    bool found = false;
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &g) != 0) return false;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        if (atoi(g.gl_pathv[i] + strlen("/usr/lib/postgresql/")) < 15) continue;
        (void)snprintf(pg.bin, sizeof pg.bin, "%.*s", (int)(strlen(g.gl_pathv[i]) - 7),
                       g.gl_pathv[i]);
        found = true;
    }
    globfree(&g);
    return found;
}

static inline void pg_make_dirs(void) {
    char cwd[3900];
    CHECK(getcwd(cwd, sizeof cwd));
    (void)snprintf(pg.data, sizeof pg.data, "%s/pg-data-XXXXXX", cwd);
    (void)snprintf(pg.socket, sizeof pg.socket, "/tmp/xpl-pg-XXXXXX");
    CHECK(mkdtemp(pg.data) && mkdtemp(pg.socket));
    CHECK(chown(pg.data, pg.uid, pg.gid) == 0 && chown(pg.socket, pg.uid, pg.gid) == 0);
    CHECK(chmod(pg.socket, 0755) == 0);
}

// ---- PgBouncer ----

// It takes no setting of a session but those that libpq always sends, and asks a server that was
// lost again after a second instead of 15.
static inline void pg_write_pooler(const char *dir, const char *path) {
    FILE *const f = fopen(path, "w");
    CHECK(f && fprintf(f,
                       "[databases]\n* = host=%s user=postgres\n[pgbouncer]\n"
                       "unix_socket_dir=%s\nlisten_port=5432\nauth_type=any\n"
                       "pool_mode=transaction\ndefault_pool_size=%d\nserver_login_retry=1\n"
                       "max_client_conn=%d\n",
                       pg.socket, dir, (int)PG_POOL, pg.clients ? pg.clients : 100) > 0);
    CHECK_EQ(fclose(f), 0);
}

// NULL, or why there is none.
static inline const char *pg_start_pooler(void) {
    char dir[80], path[100], at[120];
    struct stat st;
    if (access(PG_POOLER, X_OK) != 0) return "no " PG_POOLER;
    (void)snprintf(dir, sizeof dir, "%s/pooler", pg.socket);
    (void)snprintf(path, sizeof path, "%s/pgbouncer.ini", dir);
    (void)snprintf(at, sizeof at, "%s/.s.PGSQL.5432", dir);
    CHECK(mkdir(dir, 0755) == 0 && chown(dir, pg.uid, pg.gid) == 0);
    pg_write_pooler(dir, path);
    pg.pooler = pg_spawn((const char *const[]){PG_POOLER, path, NULL});
    for (int i = 0; stat(at, &st) != 0; i++) {
        CHECK(i < 200 && waitpid(pg.pooler, NULL, WNOHANG) == 0);
        pg_pause_ms(50);
    }
    return NULL;
}

// From now on it takes `n` clients.
static inline void pg_set_clients(int n) {
    char dir[80], path[100];
    (void)snprintf(dir, sizeof dir, "%s/pooler", pg.socket);
    (void)snprintf(path, sizeof path, "%s/pgbouncer.ini", dir);
    pg.clients = n;
    pg_write_pooler(dir, path);
    CHECK_EQ(kill(pg.pooler, SIGHUP), 0);
}

static inline void pg_end_pooler(void) {
    CHECK(kill(pg.pooler, SIGTERM) == 0 && waitpid(pg.pooler, NULL, 0) == pg.pooler);
    pg.pooler = 0;
}

// Makes and starts it.  NULL, or why there is none.
static inline const char *pg_begin(void) {
    const struct passwd *const user =
        geteuid() == 0 ? getpwnam("postgres") ? getpwnam("postgres") : getpwnam("nobody") : NULL;
    if (!pg_find()) return "no server of PostgreSQL 15 or later in /usr/lib/postgresql";
    if (geteuid() == 0 && !user) return "no user but root, as whom it does not run";
    pg.uid = user ? user->pw_uid : geteuid();
    pg.gid = user ? user->pw_gid : getegid();
    pg.owner = getpid();
    pg_make_dirs();
    if (atexit(pg_remove) != 0 || signal(SIGABRT, pg_aborted) == SIG_ERR) return "atexit";
    const int rc = pg_run((const char *const[]){"initdb", "-D", pg.data, "-U", "postgres", "-N",
                                                "-A", "trust", "-E", "UTF8", "--locale=C", NULL});
    if (rc != 0) return "initdb cannot use this directory";
    pg_start();
    return getenv("XPL_PG_POOLER") ? pg_start_pooler() : NULL;
}

#endif
