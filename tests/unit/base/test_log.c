// SPDX-License-Identifier: Apache-2.0
// base/log: the text of lines, quoting, cutting, levels of topics, the log's own thread.
#include "base/log.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static char output[8 << 20];

// Runs `body` in a child with a pipe for stderr, whose text is then in `output`.  A child, because
// the log remembers for good what stderr is.  With `hold`, reads only once the child wrote to
// `ready`.
static int ready[2];
static const char *logged_by(void (*body)(void), bool hold) {
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(pipe(ready), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        body();
        _exit(0);
    }
    (void)close(fds[1]);
    (void)close(ready[1]);
    char byte;
    if (hold) CHECK_EQ(read(ready[0], &byte, 1), 1);
    size_t n = 0;
    for (ssize_t got; (got = read(fds[0], output + n, sizeof output - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = 0;
    (void)close(fds[0]);
    (void)close(ready[0]);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "%s", output);
        FAIL_TEST("the child failed");
    }
    return output;
}
static const char *logged(void (*body)(void)) {
    return logged_by(body, false);
}

// The rest of a line after "2026-01-31T12:00:00.123Z ".
static const char *after_time(const char *line) {
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; form[i]; i++)
        CHECK(form[i] == 'd' ? line[i] >= '0' && line[i] <= '9' : line[i] == form[i]);
    return line + sizeof form - 1;
}

// ---- the text of a line ----

static void say_plain(void) {
    xpl_log(XPL_LOG_INFO, "main", "started with %d", 3);
}
static void say_keys(void) {
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_WARN, "grpc", "slow");
    xpl_log_z(&l, "a", "simple");
    xpl_log_z(&l, "empty", "");
    xpl_log_z(&l, "blank", "two words");
    xpl_log_z(&l, "quote", "a\"b\\c");
    xpl_log_z(&l, "equals", "k=v");
    xpl_log_str(&l, "control", (xpl_str_t){"a\nb\0\x1f\x7f", 6});
    xpl_log_z(&l, "c1", "\xc2\x9b");
    xpl_log_z(&l, "bidi", "a\xe2\x80\xae");
    xpl_log_z(&l, "utf8", "\xc3\xa9");
    xpl_log_int(&l, "zero", 0);
    xpl_log_int(&l, "min", INT64_MIN);
    xpl_log_int(&l, "max", INT64_MAX);
    xpl_log_end(&l);
}
// A value's last character does not remove the blank before the next key.
static void say_angle(void) {
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_ERROR, "http", "list<int>");
    xpl_log_z(&l, "tool", "a>");
    xpl_log_z(&l, "status", "OK");
    xpl_log_end(&l);
}

static void test_text(void) {
    CHECK_STR(after_time(logged(say_plain)), "level=info topic=main msg=\"started with 3\"\n");
    CHECK_STR(after_time(logged(say_keys)),
              "level=warn topic=grpc msg=slow a=simple empty=\"\" blank=\"two words\" "
              "quote=\"a\\\"b\\\\c\" equals=\"k=v\" control=\"a\\x0ab\\x00\\x1f\\x7f\" "
              "c1=\"\\xc2\\x9b\" bidi=\"a\\xe2\\x80\\xae\" utf8=\"\xc3\xa9\" zero=0 "
              "min=-9223372036854775808 max=9223372036854775807\n");
    CHECK_STR(after_time(logged(say_angle)),
              "level=error topic=http msg=list<int> tool=a> status=OK\n");
}

// ---- lines that are too long ----

static size_t value_length;
static void say_long(void) {
    static char value[5000];
    memset(value, 'v', sizeof value);
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "t", "m");
    xpl_log_str(&l, "key", (xpl_str_t){value, value_length});
    xpl_log_z(&l, "more", "lost when cut");
    xpl_log_end(&l);
}
static void say_long_message(void) {
    static char text[5000];
    memset(text, 'w', sizeof text - 1);
    xpl_log(XPL_LOG_INFO, "t", "%.*s", (int)value_length, text);
}
static void say_long_quoted(void) {
    static char value[5000];
    memset(value, '\n', sizeof value);
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "t", "m");
    xpl_log_str(&l, "key", (xpl_str_t){value, sizeof value});
    xpl_log_end(&l);
}

static void check_one_line(const char *text, bool cut) {
    const size_t n = strlen(text);
    CHECK(n > 10 && n < sizeof((struct xpl_log_line *)NULL)->text);
    CHECK(strchr(text, '\n') == text + n - 1);
    CHECK_EQ(strcmp(text + n - 4, "...\n") == 0, cut);
}

static void test_long(void) {
    bool was_cut = false;
    size_t longest = 0;
    for (value_length = 1890; value_length < 1960; value_length++) {
        const char *const text = logged(say_long);
        const bool whole = strstr(text, "more=\"lost when cut\"\n") != NULL;
        CHECK(!(whole && was_cut)); // once too long, always too long
        was_cut = !whole;
        check_one_line(text, was_cut);
        if (strlen(text) > longest) longest = strlen(text);
    }
    CHECK(was_cut);
    CHECK_EQ(longest, sizeof((struct xpl_log_line *)NULL)->text - 1); // all but the NUL is used
    value_length = 5000;
    check_one_line(logged(say_long), true);
    check_one_line(logged(say_long_quoted), true);
    value_length = 1500;
    check_one_line(logged(say_long_message), false);
    CHECK_EQ(strlen(strchr(output, 'w')), 1501);
    value_length = 4000;
    check_one_line(logged(say_long_message), true);
}

// ---- JSON ----

static void say_keys_json(void) {
    xpl_log_set_json(true);
    say_keys();
}
static void say_keys_text_again(void) {
    xpl_log_set_json(true);
    xpl_log_set_json(false);
    say_angle();
}

// One string of the line at `p`, of bytes that JSON allows; returns the position after it.
static const char *skip_string(const char *p) {
    CHECK_EQ(*p++, '"');
    for (; *p != '"'; p++) {
        CHECK((unsigned char)*p >= 0x20);
        if (*p != '\\') continue;
        CHECK(strchr("\"\\bfnrtu", *++p));
        for (int i = 0; *p == 'u' && i < 4; i++)
            CHECK(p[1 + i] && strchr("0123456789abcdef", p[1 + i]));
    }
    return p + 1;
}

// A line is one object of strings, numbers and "cut":true.
static void check_object(const char *p, bool *ret_cut) {
    *ret_cut = false;
    CHECK_EQ(*p, '{');
    do {
        const char *const key = p + 1;
        p = skip_string(key);
        CHECK_EQ(*p++, ':');
        if (strncmp(key, "\"cut\":", 6) == 0) {
            CHECK_EQ(strncmp(p, "true", 4), 0);
            p += 4;
            *ret_cut = true;
        } else if (*p == '"') {
            p = skip_string(p);
        } else {
            const size_t n = strspn(p, "-0123456789");
            CHECK(n > 0);
            p += n;
        }
    } while (*p == ',');
    CHECK_STR(p, "}\n");
}

static uint32_t json_seed;
static size_t json_length;
static void say_bytes_json(void) {
    static char value[2500];
    uint32_t x = json_seed;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)((x = x * 1664525u + 1013904223u) >> 24);
    struct xpl_log_line l;
    xpl_log_set_json(true);
    xpl_log_begin(&l, XPL_LOG_INFO, "t", "m");
    xpl_log_str(&l, "value", (xpl_str_t){value, json_length});
    xpl_log_int(&l, "number", INT64_MIN);
    xpl_log_z(&l, "after", "x");
    xpl_log_end(&l);
}
// So many plain bytes that one more or less decides about the end.
static void say_plain_json(void) {
    char value[2100];
    memset(value, 'v', sizeof value);
    struct xpl_log_line l;
    xpl_log_set_json(true);
    xpl_log_begin(&l, XPL_LOG_INFO, "t", "m");
    xpl_log_str(&l, "value", (xpl_str_t){value, json_length});
    xpl_log_int(&l, "number", INT64_MIN);
    xpl_log_end(&l);
}

static void test_json(void) {
    const char *text = logged(say_keys_json);
    CHECK_EQ(strncmp(text, "{\"time\":\"", 9), 0);
    CHECK_EQ(text[32], 'Z');
    CHECK_STR(text + 33,
              "\",\"level\":\"warn\",\"topic\":\"grpc\",\"msg\":\"slow\",\"a\":\"simple\","
              "\"empty\":\"\",\"blank\":\"two words\",\"quote\":\"a\\\"b\\\\c\",\"equals\":\"k=v\","
              "\"control\":\"a\\nb\\u0000\\u001f\\u007f\","
              "\"c1\":\"\\u009b\",\"bidi\":\"a\\u202e\",\"utf8\":\"\xc3\xa9\",\"zero\":0,"
              "\"min\":-9223372036854775808,\"max\":9223372036854775807}\n");
    CHECK_STR(after_time(logged(say_keys_text_again)),
              "level=error topic=http msg=list<int> tool=a> status=OK\n");
    bool cut, was_cut = false;
    size_t longest = 0;
    for (json_length = 1830; json_length < 1960; json_length++) {
        check_object(logged(say_plain_json), &cut);
        CHECK(cut || !was_cut);
        CHECK_EQ(cut, strstr(output, "\"number\"") == NULL);
        was_cut = cut;
        if (strlen(output) > longest) longest = strlen(output);
    }
    CHECK(was_cut);
    CHECK(longest < sizeof((struct xpl_log_line *)NULL)->text);
    for (json_seed = 0; json_seed < 100; json_seed++) {
        json_length = json_seed * 25;
        check_object(logged(say_bytes_json), &cut);
        CHECK_EQ(cut, strstr(output, "\"after\":\"x\"") == NULL);
    }
}

// ---- levels ----

static void expect_levels(const char *topic, enum xpl_log_level most) {
    static const enum xpl_log_level all[] = {XPL_LOG_ERROR, XPL_LOG_WARN, XPL_LOG_INFO,
                                             XPL_LOG_DEBUG};
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(xpl_log_enabled(all[i], topic), all[i] <= most);
}

static void test_levels(void) {
    expect_levels("any", XPL_LOG_INFO); // before anything is set
    CHECK(xpl_log_configure("error"));
    expect_levels("any", XPL_LOG_ERROR);
    CHECK(xpl_log_configure("warn,grpc:debug,http:error"));
    expect_levels("any", XPL_LOG_WARN);
    expect_levels("grpc", XPL_LOG_DEBUG);
    expect_levels("grp", XPL_LOG_WARN);
    expect_levels("grpcs", XPL_LOG_WARN);
    expect_levels("http", XPL_LOG_ERROR);
    CHECK(xpl_log_configure("t:debug,t:warn"));
    expect_levels("t", XPL_LOG_WARN);
    expect_levels("any", XPL_LOG_INFO);
    CHECK(xpl_log_configure("debug,"));
    expect_levels("any", XPL_LOG_DEBUG);
    static const char *const bad[] = {
        ",",
        "loud",
        "Info",
        "info ",
        " info",
        "info,,warn",
        "grpc:",
        ":debug",
        "grpc:loud",
        "a:b:debug",
        "abcdefghijklmnop:info",
        "info;warn",
        "7",
        ("a:info,b:info,c:info,d:info,e:info,f:info,g:info,h:info,i:info,j:info,k:info,l:info,"
         "m:info,n:info,o:info,p:info,q:info"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (xpl_log_check(bad[i]) || xpl_log_configure(bad[i])) FAIL_TEST(bad[i]);
        expect_levels("any", XPL_LOG_DEBUG); // unchanged
    }
    CHECK(xpl_log_check("error,abcdefghijklmno:debug"));
    expect_levels("any", XPL_LOG_DEBUG); // only asked
    CHECK(xpl_log_configure("error,abcdefghijklmno:debug"));
    expect_levels("abcdefghijklmno", XPL_LOG_DEBUG);
    CHECK(xpl_log_configure("a:warn,b:warn,c:warn,d:warn,e:warn,f:warn,g:warn,h:warn,i:warn,j:warn,"
                            "k:warn,l:warn,m:warn,n:warn,o:warn,p:warn"));
    expect_levels("p", XPL_LOG_WARN);
    CHECK(xpl_log_configure(""));
    expect_levels("p", XPL_LOG_INFO);
}

static void say_disabled(void) {
    CHECK(xpl_log_configure("error,on:info"));
    xpl_log(XPL_LOG_INFO, "off", "unseen");
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_WARN, "off", "unseen");
    xpl_log_z(&l, "a", "b");
    xpl_log_int(&l, "c", 1);
    xpl_log_end(&l);
    xpl_log(XPL_LOG_INFO, "on", "seen");
    xpl_log(XPL_LOG_DEBUG, "on", "unseen");
}

static void test_disabled(void) {
    CHECK_STR(after_time(logged(say_disabled)), "level=info topic=on msg=seen\n");
}

// ---- journald ----

static bool same_stream;
static void say_to_journal(void) {
    struct stat st;
    CHECK_EQ(fstat(STDERR_FILENO, &st), 0);
    char name[64];
    (void)snprintf(name, sizeof name, "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino + !same_stream);
    CHECK_EQ(setenv("JOURNAL_STREAM", name, 1), 0);
    xpl_log(XPL_LOG_WARN, "t", "m");
    xpl_log(XPL_LOG_ERROR, "t", "m");
}
static void say_to_odd_journal(void) {
    CHECK_EQ(setenv("JOURNAL_STREAM", "", 1), 0);
    xpl_log(XPL_LOG_INFO, "t", "m");
}

static void test_journal(void) {
    same_stream = true;
    CHECK_STR(logged(say_to_journal),
              "<4>level=warn topic=t msg=m\n<3>level=error topic=t msg=m\n");
    same_stream = false; // stderr was redirected: the variable is inherited
    const char *const first = after_time(logged(say_to_journal));
    CHECK_STR(((xpl_str_t){first, 28}), "level=warn topic=t msg=m\n202");
    CHECK_STR(after_time(first + 25), "level=error topic=t msg=m\n");
    CHECK_STR(after_time(logged(say_to_odd_journal)), "level=info topic=t msg=m\n");
}

// ---- the thread ----

enum { THREADS = 4, LINES = 2000 };

static void *say_many(void *arg) {
    for (int i = 0; i < LINES; i++) {
        struct xpl_log_line l;
        xpl_log_begin(&l, XPL_LOG_INFO, "many", "m");
        xpl_log_int(&l, "thread", *(int *)arg);
        xpl_log_int(&l, "line", i);
        xpl_log_end(&l);
    }
    return NULL;
}
static void run_many(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_EQ(pthread_create(&threads[i], NULL, say_many, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}
static void say_many_started(void) {
    xpl_log_start();
    run_many();
    xpl_log_stop();
    xpl_log_stop(); // does nothing
    xpl_log(XPL_LOG_INFO, "after", "m");
    xpl_log_start(); // again
    xpl_log(XPL_LOG_INFO, "again", "m");
    xpl_log_stop();
}

// Every line of every thread once, whole and in its thread's order.
static void test_threads(void) {
    const char *at = logged(say_many_started);
    int next[THREADS] = {0};
    for (int i = 0; i < THREADS * LINES; i++) {
        int thread, line, n = 0;
        at = after_time(at);
        CHECK_EQ(sscanf(at, "level=info topic=many msg=m thread=%d line=%d%n", &thread, &line, &n),
                 2);
        CHECK(n > 0);
        CHECK_EQ(at[n], '\n');
        CHECK(thread >= 0 && thread < THREADS);
        CHECK_EQ(line, next[thread]++);
        at += n + 1;
    }
    static const char after[] = "level=info topic=after msg=m\n";
    at = after_time(at);
    CHECK_STR(((xpl_str_t){at, sizeof after - 1}), after);
    CHECK_STR(after_time(at + sizeof after - 1), "level=info topic=again msg=m\n");
}

// Errors do not wait for a batch, and are not lost when the process dies.
static void say_and_die(void) {
    xpl_log_start();
    xpl_log(XPL_LOG_ERROR, "t", "last words");
    _exit(0);
}
static void test_errors_at_once(void) {
    CHECK_STR(after_time(logged(say_and_die)), "level=error topic=t msg=\"last words\"\n");
}

enum { FLOOD = 60000 };

static void flood(void) {
    xpl_log_start();
    for (int i = 0; i < FLOOD; i++)
        xpl_log(XPL_LOG_INFO, "flood", "0123456789012345678901234567890123456789");
    CHECK_EQ(write(ready[1], "x", 1), 1);
    xpl_log_stop();
}

// A stderr without a reader does not block logging threads; dropped lines are counted.
static void test_dropped(void) {
    const char *at = logged_by(flood, true);
    long lines = 0, dropped = 0;
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        const char *const rest = after_time(at);
        long n;
        if (strncmp(rest, "level=info topic=flood ", 23) == 0) {
            lines++;
            continue;
        }
        CHECK_EQ(sscanf(rest, "level=warn topic=log msg=\"lines dropped\" count=%ld\n", &n), 1);
        dropped += n;
    }
    CHECK_EQ(*at, 0);
    CHECK(dropped > 0 && lines > 1000);
    CHECK_EQ(lines + dropped, FLOOD);
}

int main(void) {
    alarm(60);
    (void)unsetenv("JOURNAL_STREAM");
    test_text();
    test_long();
    test_json();
    test_disabled();
    test_journal();
    test_threads();
    test_errors_at_once();
    test_dropped();
    test_levels();
    return 0;
}
