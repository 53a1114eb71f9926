// SPDX-License-Identifier: Apache-2.0
// Settings: defaults, file, environment and flags in their order of strength, values and bounds,
// reloading.
#include "server/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"

enum { MAX_ARGS = 12 };

static char file[64]; // the configuration file of $XPLANED_CONFIG

static void write_config(const char *text) {
    FILE *const f = fopen(file, "w");
    CHECK(f && fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

// Loads with "xplaned --logdir /logs" and the arguments, up to NULL.
static enum xpl_config_result load(const char *const *more, struct xpl_config *ret) {
    const char *argv[MAX_ARGS] = {"xplaned", "--logdir", "/logs"};
    int n = 3;
    for (; more && *more; more++)
        argv[n++] = *more;
    return xpl_config_load(n, (char **)(uintptr_t)argv, ret);
}

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_usage(const char *const *more) {
    struct xpl_config c;
    if (load(more, &c) != XPL_CONFIG_USAGE) {
        fprintf(stderr, "accepted: %s %s\n", more ? more[0] : "", more && more[0] ? more[1] : "");
        abort();
    }
    xpl_config_fini(&c);
}

static void check_defaults(void) {
    struct xpl_config c;
    CHECK_EQ(load(NULL, &c), XPL_CONFIG_RUN);
    CHECK(strcmp(c.logdir, "/logs") == 0);
    CHECK(strcmp(c.listen, "127.0.0.1:50551") == 0);
    CHECK(strcmp(c.http, "127.0.0.1:8795") == 0);
    CHECK(c.state_dir[0] == 0 && c.tls_cert[0] == 0 && c.token_file[0] == 0);
    CHECK(c.prefetch && c.capture && !c.insecure && !c.allow_delete);
    CHECK_EQ(c.workers, 0);
    CHECK_EQ(c.memory_limit, 2LL << 30);
    CHECK_EQ(c.memory_total, 4LL << 30);
    CHECK_EQ(c.answer_cache, 256 << 20);
    CHECK_EQ(c.max_concurrent_requests, 256);
    CHECK_EQ(c.request_timeout_ms, 300000);
    CHECK_EQ(c.grace_ms, 10000);
    CHECK_EQ(c.scan_interval_ms, 1000);
    xpl_config_fini(&c);
    CHECK(!c.logdir); // and once more is fine
    xpl_config_fini(&c);
}

static void check_retention(void) {
    struct xpl_config c;
    CHECK_EQ(load(ARGUMENTS("--retain=90d", "--allow-delete"), &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.retain_ms, INT64_C(90) * 86400000);
    xpl_config_fini(&c);
    CHECK_EQ(load(ARGUMENTS("--retain=90d"), &c), XPL_CONFIG_USAGE);
    xpl_config_fini(&c);
    CHECK_EQ(load(ARGUMENTS("--retain=0"), &c), XPL_CONFIG_RUN); // off, as by default
    CHECK_EQ(c.retain_ms, 0);
    xpl_config_fini(&c);
}

// Sessions and the part of their hosts, of role convert only.
static void check_conversion(void) {
    static const char *const role = "--role=convert", *const store = "--store=postgresql://u@h/d";
    static const char *const bad[] = {"3/3", "-1/2", "1", "x/2", "1/x", "0/0", ""};
    struct xpl_config c;
    CHECK_EQ(load(ARGUMENTS(role, "a", store, "--shard", "2/3", "b"), &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.n_runs, 2);
    CHECK(strcmp(c.runs[0], "a") == 0 && strcmp(c.runs[1], "b") == 0);
    CHECK_EQ(c.shard_index, 2);
    CHECK_EQ(c.n_shards, 3);
    xpl_config_fini(&c);
    CHECK_EQ(load(ARGUMENTS(role, store, "a"), &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.shard_index, 0);
    CHECK_EQ(c.n_shards, 1);
    xpl_config_fini(&c);
    expect_usage(ARGUMENTS(role, store));
    expect_usage(ARGUMENTS(role, "a"));
    expect_usage(ARGUMENTS("--role=front", store, "a"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_usage(ARGUMENTS(role, store, "a", "--shard", bad[i]));
}

static void check_required(void) {
    struct xpl_config c;
    const char *argv[] = {"xplaned"};
    CHECK_EQ(xpl_config_load(1, (char **)(uintptr_t)argv, &c), XPL_CONFIG_USAGE);
    xpl_config_fini(&c);
    expect_usage(ARGUMENTS("--tls-cert", "/c"));
    expect_usage(ARGUMENTS("--tls-key", "/k"));
    CHECK_EQ(load(ARGUMENTS("--tls-cert", "/c", "--tls-key=/k"), &c), XPL_CONFIG_RUN);
    CHECK(strcmp(c.tls_cert, "/c") == 0 && strcmp(c.tls_key, "/k") == 0);
    xpl_config_fini(&c);
}

// Flags win over the environment, that over the file, that over the default.
static void check_strength(void) {
    struct xpl_config c;
    write_config("# comment\n\n  grace = 1s \nworkers=3\nhttp-host = a b\nprefetch = no\n");
    CHECK_EQ(load(NULL, &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.grace_ms, 1000);
    CHECK_EQ(c.workers, 3);
    CHECK(strcmp(c.http_host, "a b") == 0);
    CHECK(!c.prefetch);
    xpl_config_fini(&c);
    CHECK_EQ(setenv("XPLANED_GRACE", "2s", 1), 0);
    CHECK_EQ(setenv("XPLANED_HTTP_HOST", "", 1), 0); // set, though empty
    CHECK_EQ(load(NULL, &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.grace_ms, 2000);
    CHECK_EQ(c.workers, 3);
    CHECK(strcmp(c.http_host, "") == 0);
    xpl_config_fini(&c);
    CHECK_EQ(load(ARGUMENTS("--grace", "3s", "--prefetch", "--grace=4s"), &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.grace_ms, 4000); // the last one of equal flags
    CHECK(c.prefetch);
    xpl_config_fini(&c);
    CHECK_EQ(setenv("XPLANED_GRACE", "soon", 1), 0);
    expect_usage(NULL);
    expect_usage(ARGUMENTS("--grace", "3s")); // a wrong value is wrong even where a flag wins
    CHECK_EQ(unsetenv("XPLANED_GRACE"), 0);
    CHECK_EQ(unsetenv("XPLANED_HTTP_HOST"), 0);
    write_config("");
}

static void check_file(void) {
    struct xpl_config c;
    static const char *const bad[] = {
        "grace\n",           // no value
        "no-such = 1\n",     // no such setting
        "config = /other\n", // a file names no file
        "insecure = maybe\n",
        "workers = 1 # comment\n",
        "\nworkers = -1\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_config(bad[i]);
        expect_usage(NULL);
    }
    char line[5000];
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "log = ", 6);
    line[sizeof line - 1] = 0;
    write_config(line);
    expect_usage(NULL);
    write_config("grace = 7s"); // the last line needs no newline
    CHECK_EQ(load(NULL, &c), XPL_CONFIG_RUN);
    CHECK_EQ(c.grace_ms, 7000);
    xpl_config_fini(&c);
    write_config("");
    expect_usage(ARGUMENTS("--config", "/nonexistent/file"));
    expect_usage(ARGUMENTS("--config=/")); // a directory
    CHECK_EQ(load(ARGUMENTS("--config", "/dev/null"), &c), XPL_CONFIG_RUN);
    CHECK(strcmp(c.config, "/dev/null") == 0);
    xpl_config_fini(&c);
}

static void check_flags(void) {
    struct xpl_config c;
    CHECK_EQ(load(ARGUMENTS("--no-prefetch", "--insecure=on", "--capture=0"), &c), XPL_CONFIG_RUN);
    CHECK(!c.prefetch && c.insecure && !c.capture);
    xpl_config_fini(&c);
    expect_usage(ARGUMENTS("--no-log")); // no switch
    expect_usage(ARGUMENTS("--no-prefetch=true"));
    expect_usage(ARGUMENTS("--prefetch=2"));
    expect_usage(ARGUMENTS("--nothing"));
    expect_usage(ARGUMENTS("logs"));
    expect_usage(ARGUMENTS("--grace")); // without its value
    expect_usage(ARGUMENTS("-h"));
    expect_usage(ARGUMENTS("--log", "loud"));
    expect_usage(ARGUMENTS("--log", "info,daemon:never"));
    expect_usage(ARGUMENTS("--log-format", "xml"));
    expect_usage(ARGUMENTS("--log-format", ""));
    CHECK_EQ(load(ARGUMENTS("--log-format=json"), &c), XPL_CONFIG_RUN);
    CHECK_STR(c.log_format, "json");
    xpl_config_fini(&c);
}

static void check_numbers(void) {
    static const struct {
        const char *flag, *value;
        uint64_t expected;
    } good[] = {
        {"--answer-cache", "0", 0},
        {"--answer-cache", "7B", 7},
        {"--answer-cache", "2 KiB", 2048},
        {"--answer-cache", "1.5k", 1536},
        {"--answer-cache", "3MiB", 3 << 20},
        {"--answer-cache", "1G", 1 << 30},
        {"--answer-cache", "1TiB", (uint64_t)1 << 40}, // the bound itself
    };
    static const struct {
        const char *value;
        uint64_t expected;
    } times[] = {{"5ms", 5},      {"2s", 2000}, {"1.5m", 90000},  {"2min", 120000},
                 {"1H", 3600000}, {"0s", 0},    {"24h", 86400000}};
    struct xpl_config c;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_EQ(load(ARGUMENTS(good[i].flag, good[i].value), &c), XPL_CONFIG_RUN);
        CHECK_EQ(c.answer_cache, good[i].expected);
        xpl_config_fini(&c);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CHECK_EQ(load(ARGUMENTS("--grace", times[i].value), &c), XPL_CONFIG_RUN);
        CHECK_EQ(c.grace_ms, times[i].expected);
        xpl_config_fini(&c);
    }
    static const char *const bad[][2] = {
        {"--answer-cache", ""},
        {"--answer-cache", "1TiB1"},
        {"--answer-cache", "1025G"},
        {"--answer-cache", "-1"},
        {"--answer-cache", " 1"},
        {"--answer-cache", "0x10"},
        {"--answer-cache", "1e999"},
        {"--answer-cache", "nan"},
        {"--answer-cache", "inf"},
        {"--answer-cache", "1 parsec"},
        {"--answer-cache", "1s"},
        {"--memory-limit", "1048575"},
        {"--memory-limit", "2TiB"},
        {"--grace", "25h"},
        {"--grace", "1KiB"},
        {"--grace", "5"},
        {"--answer-cache", "7"}, // bytes?
        {"--scan-interval", "49ms"},
        {"--request-timeout", "0ms"},
        {"--workers", "1025"},
        {"--workers", "1.5"},
        {"--workers", "1e2"},
        {"--workers", "+1"},
        {"--workers", ""},
        {"--http-connections", "0"},
        {"--http-connections", "60001"},
        {"--workers", "99999999999999999999999"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_usage(ARGUMENTS(bad[i][0], bad[i][1]));
}

// The error for refused arguments.
static void usage_text(const char *const *more, char *said, size_t size) {
    struct xpl_config c;
    FILE *const f = tmpfile();
    const int saved = dup(STDERR_FILENO);
    CHECK(f && saved >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    const enum xpl_config_result r = load(more, &c);
    CHECK(dup2(saved, STDERR_FILENO) >= 0 && close(saved) == 0);
    xpl_config_fini(&c);
    rewind(f);
    said[fread(said, 1, size - 1, f)] = 0;
    CHECK_EQ(fclose(f), 0);
    CHECK_EQ(r, XPL_CONFIG_USAGE);
}

// A URL with a password is refused where every user can read it, without being shown; one that is
// read from the file or the environment is taken.
static void check_store(void) {
    static const char *const bad[] = {
        "postgresql://u:sesame@h/d",
        "postgresql://u:sesame@h:5432,i/d?sslmode=require",
        "postgres://u:sesame@[::1]:5432/d",
        "postgresql://h/d?user=u&password=sesame",
        "postgresql://h/d?p%61ssword=sesame",
        "postgresql://h?sslpassword=sesame",
        "host=h password=sesame",
    };
    static const char *const good[] = {
        "postgresql://u@h/d",
        "postgresql://u@h:5432/d",
        "postgres://[::1]:5432/d?user=u",
        "postgresql:///d?host=/run/postgresql&passfile=/etc/xplaned/pgpass",
        "postgresql://h/d?application_name=a@b:c",
    };
    char said[512], text[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        usage_text(ARGUMENTS("--store", bad[i]), said, sizeof said);
        CHECK(strstr(said, "--store") && !strstr(said, "sesame"));
        (void)snprintf(text, sizeof text, "--store=%s", bad[i]);
        usage_text(ARGUMENTS(text), said, sizeof said);
        CHECK(strstr(said, "--store") && !strstr(said, "sesame"));
        (void)snprintf(text, sizeof text, "--stor=%s", bad[i]);
        usage_text(ARGUMENTS(text), said, sizeof said);
        CHECK(!strstr(said, "sesame"));
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct xpl_config c;
        CHECK_EQ(load(ARGUMENTS("--store", good[i]), &c), XPL_CONFIG_RUN);
        CHECK_STR(c.store, good[i]);
        xpl_config_fini(&c);
    }
    struct xpl_config c;
    write_config("store = postgresql://u:sesame@h/d\n");
    CHECK_EQ(load(NULL, &c), XPL_CONFIG_RUN);
    CHECK_STR(c.store, "postgresql://u:sesame@h/d");
    xpl_config_fini(&c);
    write_config("store = u:sesame@h/d\n");
    usage_text(NULL, said, sizeof said);
    CHECK(strstr(said, "not a URL") && !strstr(said, "sesame"));
    write_config("");
}

// The error says what to write instead.
static void check_texts(void) {
    static const struct {
        const char *flag, *value, *line, *expected; // value, or line of the file
    } rows[] = {
        {"--grace", "5", NULL, "--grace 5: a unit is missing; write 5s or 5ms"},
        {"--grace=5", NULL, NULL, "xplaned: --grace 5: a unit is missing; write 5s or 5ms\n"},
        {"--workers=x", NULL, NULL, "xplaned: --workers: bad value \"x\" for workers"},
        {"--store-limit", "4", NULL, "--store-limit 4: a unit is missing; write 4GiB or 4B"},
        {NULL, NULL, "request-timeout = 300\n", ":1: request-timeout 300: a unit is missing"},
        {NULL, NULL, "memory-limt = 3GiB\n",
         "unknown setting \"memory-limt\"; did you mean "
         "\"memory-limit\"?"},
        {"--log", "info,grcp:debug", NULL,
         "log: no topic \"grcp\"; topics: agent, audit, capture, "},
        {"--memory-limit", "1B", NULL, "for memory-limit (a size from 1MiB to 1TiB)"},
        {"--grace", "3d", NULL, "for grace (a time from 0 to 1d)"},
        {"--workers", "1025", NULL, "for workers (a number from 0 to 1024)"},
        {"--log-format", "jsn", NULL, "for log-format; did you mean \"json\"? (text or json)"},
        {"--loggdir", "x", NULL, "unknown option \"--loggdir\"; did you mean \"--logdir\"?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char said[512];
        write_config(rows[i].line ? rows[i].line : "");
        usage_text(rows[i].flag ? ARGUMENTS(rows[i].flag, rows[i].value) : NULL, said, sizeof said);
        if (!strstr(said, rows[i].expected)) CHECK_STR(said, rows[i].expected);
    }
    write_config("");
    XPL_AUTO(xpl_config_fini) struct xpl_config c;
    CHECK_EQ(load(ARGUMENTS("--log", "warn,grpc:debug,capture:info,"), &c), XPL_CONFIG_RUN);
}

static void check_reload(void) {
    XPL_AUTO(xpl_config_fini) struct xpl_config c;
    struct xpl_config_reloaded left;
    struct xpl_error err = {0};
    const char *argv[] = {"xplaned", "--logdir", "/logs", "--grace", "9s"};
    char **const args = (char **)(uintptr_t)argv;
    CHECK_EQ(xpl_config_load(5, args, &c), XPL_CONFIG_RUN);
    write_config("log = debug\nmemory-limit = 3GiB\nprefetch = off\ngrace = 1s\nworkers = 5\n"
                 "listen = 127.0.0.1:1\ninsecure = true\n");
    CHECK_EQ(xpl_config_reload(&c, 5, args, &left, &err), XPL_OK);
    CHECK(strcmp(c.log, "debug") == 0);
    CHECK_EQ(c.memory_limit, 3LL << 30);
    CHECK(!c.prefetch);
    CHECK_EQ(c.grace_ms, 9000); // the flag still wins
    CHECK_EQ(c.workers, 0);     // not while running
    CHECK(strcmp(c.listen, "127.0.0.1:50551") == 0 && !c.insecure);
    CHECK(strcmp(left.restart, "--listen, --insecure, --workers") == 0);
    // An error leaves everything as it is, also the lines before it.
    write_config("log = warn\nmemory-limit = 5GiB\nanswer-cache = much\n");
    CHECK_EQ(xpl_config_reload(&c, 5, args, &left, &err), XPL_INVALID_ARGUMENT);
    CHECK(strstr(err.msg, "answer-cache") && strstr(err.msg, ":3"));
    CHECK(strcmp(c.log, "debug") == 0);
    CHECK_EQ(c.memory_limit, 3LL << 30);
    // What the file says no longer has its default again.
    write_config("");
    CHECK_EQ(xpl_config_reload(&c, 5, args, &left, &err), XPL_OK);
    CHECK(strcmp(c.log, "info") == 0 && c.prefetch);
    CHECK_EQ(c.memory_limit, 2LL << 30);
    CHECK(strcmp(left.restart, "") == 0);
    // A value that the daemon lowered to the machine's limit is not a change.
    c.grpc_connections = 77;
    write_config("token-file = /other\nhttp-idle = 5s\n");
    CHECK_EQ(xpl_config_reload(&c, 5, args, &left, &err), XPL_OK);
    CHECK(strcmp(left.restart, "--http-idle, --token-file") == 0);
    CHECK(strcmp(c.token_file, "") == 0);
}

// What a stream prints, up to `size` bytes.
static void print(void (*write)(FILE *), char *ret, size_t size) {
    FILE *const f = fmemopen(ret, size, "w");
    CHECK(f);
    write(f);
    CHECK_EQ(fclose(f), 0);
}

static void check_help(void) {
    static char man[1 << 16];
    print(xpl_config_print_man, man, sizeof man);
    CHECK(strstr(man, ".B \\-\\-logdir DIR\n"));
    CHECK(strstr(man, ".B \\-\\-[no-]prefetch\n"));
    CHECK(strstr(man, "Default: 2GiB. May change on SIGHUP.\n"));
    struct xpl_config c;
    CHECK(freopen("/dev/null", "w", stdout));
    static const char *const flags[] = {"--help", "--version", "--help-man"};
    for (size_t i = 0; i < 3; i++) { // whatever else is wrong
        CHECK_EQ(load(ARGUMENTS("--nothing", flags[i]), &c), XPL_CONFIG_HELP);
        xpl_config_fini(&c);
    }
}

#if XPL_FAULTS
// Every allocation fails once: the daemon does not start, or a reload changes nothing.
static void check_faults(void) {
    for (uint64_t nth = 0;; nth++) {
        struct xpl_config c;
        xpl_fault_reset();
        xpl_fault_fail_on(nth);
        const enum xpl_config_result r = load(ARGUMENTS("--grace", "1s"), &c);
        const bool failed = xpl_fault_count() > nth;
        xpl_fault_fail_on(UINT64_MAX);
        CHECK_EQ(r, failed ? XPL_CONFIG_USAGE : XPL_CONFIG_RUN);
        xpl_config_fini(&c);
        if (!failed) return;
    }
}
#endif

int main(void) {
    extern char **environ;
    for (char **e = environ; *e;) { // the settings of the test's user
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
        if (strncmp(name, "XPLANED_", 8) == 0 && unsetenv(name) == 0)
            e = environ;
        else
            e++;
    }
    (void)snprintf(file, sizeof file, "/tmp/xplaned-config-%ld", (long)getpid());
    write_config("");
    CHECK_EQ(setenv("XPLANED_CONFIG", file, 1), 0);
#if XPL_FAULTS
    const int64_t live = xpl_fault_live();
#endif
    check_defaults();
    check_required();
    check_retention();
    check_conversion();
    check_strength();
    check_file();
    check_flags();
    check_numbers();
    check_texts();
    check_store();
    check_reload();
    check_help();
#if XPL_FAULTS
    check_faults();
    CHECK_EQ(xpl_fault_live(), live);
#endif
    (void)unlink(file);
    return 0;
}
