// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/json.h"
#include "base/text/utf8.h"

enum { MAX_TOPICS = 16, TOPIC_LEN = 16 };

struct levels {
    int all;
    int n;
    struct {
        char topic[TOPIC_LEN];
        int level;
    } topics[MAX_TOPICS];
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct levels levels = {.all = XPL_LOG_INFO};
// Decides without levels of topics, which is usual; otherwise INT_MIN.
static atomic_int plain = XPL_LOG_INFO;
static atomic_bool json_lines;

void xpl_log_set_json(bool json) {
    atomic_store(&json_lines, json);
}

static bool parse_level(xpl_str_t s, int *ret) {
    static const struct {
        xpl_str_t name;
        int level;
    } known[] = {{{"error", 5}, XPL_LOG_ERROR},
                 {{"warn", 4}, XPL_LOG_WARN},
                 {{"info", 4}, XPL_LOG_INFO},
                 {{"debug", 5}, XPL_LOG_DEBUG}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!xpl_str_eq(known[i].name, s)) continue;
        *ret = known[i].level;
        return true;
    }
    return false;
}

static bool parse_part(struct levels *l, xpl_str_t part) {
    const size_t colon = xpl_str_find(part, XPL_STR(":"), 0);
    if (colon == SIZE_MAX) return parse_level(part, &l->all);
    if (colon == 0 || colon >= TOPIC_LEN || l->n == MAX_TOPICS) return false;
    memcpy(l->topics[l->n].topic, part.ptr, colon);
    l->topics[l->n].topic[colon] = 0;
    return parse_level(xpl_str_sub(part, colon + 1, SIZE_MAX), &l->topics[l->n++].level);
}

static bool parse_spec(const char *spec, struct levels *ret) {
    struct levels next = {.all = XPL_LOG_INFO};
    const xpl_str_t s = xpl_str_from(spec);
    for (size_t at = 0; at < s.len;) {
        size_t comma = xpl_str_find(s, XPL_STR(","), at);
        if (comma == SIZE_MAX) comma = s.len;
        if (!parse_part(&next, xpl_str_sub(s, at, comma - at))) return false;
        at = comma + 1;
    }
    *ret = next;
    return true;
}

bool xpl_log_check(const char *spec) {
    struct levels unused;
    return parse_spec(spec, &unused);
}

// tests/check_structure.py compares it with the lines that are logged.
const char *const xpl_log_topics[] = {"agent",    "audit",    "capture", "catalogue", "daemon",
                                      "grpc",     "http",     "import",  "jobs",      "log",
                                      "prefetch", "products", "request", "store",     NULL};

static bool is_topic(xpl_str_t name) {
    for (size_t i = 0; xpl_log_topics[i]; i++)
        if (xpl_str_eq(xpl_str_from(xpl_log_topics[i]), name)) return true;
    return false;
}

xpl_str_t xpl_log_unknown_topic(const char *spec) {
    const xpl_str_t s = xpl_str_from(spec);
    for (size_t at = 0; at < s.len;) {
        size_t comma = xpl_str_find(s, XPL_STR(","), at);
        if (comma == SIZE_MAX) comma = s.len;
        const xpl_str_t part = xpl_str_sub(s, at, comma - at);
        const size_t colon = xpl_str_find(part, XPL_STR(":"), 0);
        const xpl_str_t topic = xpl_str_sub(part, 0, colon);
        if (colon != SIZE_MAX && !is_topic(topic)) return topic;
        at = comma + 1;
    }
    return (xpl_str_t){0};
}

bool xpl_log_configure(const char *spec) {
    struct levels next;
    if (!parse_spec(spec, &next)) return false;
    pthread_rwlock_wrlock(&lock);
    levels = next;
    pthread_rwlock_unlock(&lock);
    atomic_store(&plain, next.n ? INT_MIN : next.all);
    return true;
}

bool xpl_log_enabled(enum xpl_log_level level, const char *topic) {
    const int only = atomic_load_explicit(&plain, memory_order_relaxed);
    if (only != INT_MIN) return (int)level <= only;
    pthread_rwlock_rdlock(&lock);
    int limit = levels.all;
    for (int i = 0; i < levels.n; i++)
        if (strcmp(levels.topics[i].topic, topic) == 0) limit = levels.topics[i].level;
    pthread_rwlock_unlock(&lock);
    return (int)level <= limit;
}

// How a cut line ends.
static const char kCutText[] = "...\n", kCutJson[] = ",\"cut\":true}\n";

// The room for further text.  The end and the NUL have room beyond it, and so has the quote that
// closes a JSON string: after that one it is 0.
static size_t room_of(const struct xpl_log_line *l) {
    const size_t most = sizeof l->text - (l->json ? sizeof kCutJson + 1 : sizeof kCutText);
    return l->n < most ? most - l->n : 0;
}

static void append_bytes(struct xpl_log_line *l, const char *p, size_t n) {
    const size_t room = room_of(l);
    if (n > room) n = room, l->cut = true;
    memcpy(l->text + l->n, p, n);
    l->n += n;
}

static void add_text(struct xpl_log_line *l, const char *z) {
    append_bytes(l, z, strlen(z));
}

// Writes the text with quotes and backslashes escaped, and the bytes that terminals must not get
// (xpl_utf8_shown).
static void quoted(struct xpl_log_line *l, xpl_str_t s) {
    add_text(l, "\"");
    for (size_t i = 0, used; i < s.len; i += used) {
        const bool is_shown = xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used).ptr == s.ptr + i;
        if (s.ptr[i] == '"' || s.ptr[i] == '\\') add_text(l, "\\");
        if (is_shown) append_bytes(l, s.ptr + i, used);
        for (size_t k = i; !is_shown && k < i + used; k++) {
            char escape[8];
            (void)snprintf(escape, sizeof escape, "\\x%02x", (uint8_t)s.ptr[k]);
            add_text(l, escape);
        }
    }
    add_text(l, "\"");
}

// One character in JSON.  Characters that terminals must not get are escaped, though JSON need not.
static size_t json_char(xpl_str_t s, char out[XPL_JSON_CHAR_MAX], size_t *ret_used) {
    const bool is_shown = xpl_utf8_shown(s, ret_used).ptr == s.ptr;
    const size_t n = xpl_json_char(s, out, ret_used), len = xpl_utf8_next(s);
    if (is_shown || !len || out[0] == '\\') return n;
    char escape[XPL_JSON_CHAR_MAX + 1];
    (void)snprintf(escape, sizeof escape, "\\u%04x", xpl_utf8_code_point(s, len) & 0xffff);
    memcpy(out, escape, XPL_JSON_CHAR_MAX);
    return XPL_JSON_CHAR_MAX;
}

// A JSON string of whole characters, as many as there is room for.
static void quoted_json(struct xpl_log_line *l, xpl_str_t s) {
    append_bytes(l, "\"", 1);
    while (s.len && !l->cut) {
        char piece[XPL_JSON_CHAR_MAX];
        size_t used;
        const size_t n = json_char(s, piece, &used);
        l->cut = n > room_of(l);
        if (!l->cut) append_bytes(l, piece, n);
        s = xpl_str_sub(s, used, SIZE_MAX);
    }
    l->text[l->n++] = '"'; // room_of leaves it
}

// Whether stderr is the stream whose device and inode systemd put into the environment.  The
// variable is not sufficient: children with another stderr inherit it.
static bool stderr_is_journal(void) {
    const char *const named = getenv("JOURNAL_STREAM");
    struct stat st;
    if (!named || fstat(STDERR_FILENO, &st) != 0) return false;
    char *end;
    const unsigned long long dev = strtoull(named, &end, 10);
    return *end == ':' && dev == st.st_dev && strtoull(end + 1, &end, 10) == st.st_ino && !*end;
}

// The priority for journald, which stamps the time itself.  True when stderr leads there.
static bool put_priority(struct xpl_log_line *l, enum xpl_log_level level) {
    static atomic_int journal; // 0 unknown, 1 no, 2 yes
    int j = atomic_load_explicit(&journal, memory_order_relaxed);
    if (!j) {
        j = stderr_is_journal() ? 2 : 1;
        atomic_store(&journal, j);
    }
    const char head[] = {'<', (char)('0' + level), '>'};
    if (j == 2) append_bytes(l, head, sizeof head);
    return j == 2;
}

// "2026-01-31T12:00:00.123Z".  Each thread caches the text of its last second: a busy one logs
// thousands of lines in it.
static void put_time(struct xpl_log_line *l) {
    static _Thread_local time_t second;
    static _Thread_local char text[32];
    static _Thread_local size_t len;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second || !len) {
        struct tm tm;
        gmtime_r(&now.tv_sec, &tm);
        len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
        second = now.tv_sec;
    }
    const long ms = now.tv_nsec / 1000000;
    const char tail[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
                         (char)('0' + ms % 10), 'Z'};
    append_bytes(l, text, len);
    append_bytes(l, tail, sizeof tail);
}

void xpl_log_begin(struct xpl_log_line *l, enum xpl_log_level level, const char *topic,
                   const char *message) {
    static const char *const names[] = {[XPL_LOG_ERROR] = "error",
                                        [XPL_LOG_WARN] = "warn",
                                        [XPL_LOG_INFO] = "info",
                                        [XPL_LOG_DEBUG] = "debug"};
    l->n = 0;
    l->cut = false;
    l->level = level;
    l->off = !xpl_log_enabled(level, topic);
    l->json = atomic_load_explicit(&json_lines, memory_order_relaxed);
    if (l->off) return;
    const bool stamped = put_priority(l, level);
    if (l->json) {
        add_text(l, "{\"time\":\"");
        put_time(l);
        add_text(l, "\",\"level\":\"");
        add_text(l, names[level]);
        add_text(l, "\"");
    } else {
        if (!stamped) put_time(l);
        add_text(l, stamped ? "level=" : " level=");
        add_text(l, names[level]);
    }
    xpl_log_z(l, "topic", topic);
    xpl_log_str(l, "msg", xpl_str_from(message));
}

enum { LEAST = 32 }; // room for a value in JSON and the punctuation of its key: any number fits

// Writes the key and its separator.  False when the line has no room for a value.
static bool put_key(struct xpl_log_line *l, const char *key) {
    if (l->off || (l->json && l->cut)) return false;
    const size_t n = strlen(key), room = room_of(l);
    if (l->json && room < n + LEAST) {
        l->cut = true;
        return false;
    }
    if (!l->json && room >= n + 2) { // the usual line, of which each request has a dozen
        char *const p = l->text + l->n;
        p[0] = ' ';
        memcpy(p + 1, key, n);
        p[1 + n] = '=';
        l->n += n + 2;
        return true;
    }
    append_bytes(l, l->json ? ",\"" : " ", l->json ? 2 : 1);
    append_bytes(l, key, n);
    append_bytes(l, l->json ? "\":" : "=", l->json ? 2 : 1);
    return true;
}

// Whether a byte needs no quotes: printable ASCII but for ", = and backslash.  A bit for each.
static bool is_plain(unsigned char c) {
    static const uint64_t plain_bytes[2] = {~(uint64_t)0 << 33 & ~((uint64_t)1 << '"') &
                                                ~((uint64_t)1 << '='),
                                            ~(uint64_t)0 >> 1 & ~((uint64_t)1 << ('\\' - 64))};
    return c < 128 && (plain_bytes[c >> 6] >> (c & 63) & 1);
}

void xpl_log_str(struct xpl_log_line *l, const char *key, xpl_str_t v) {
    bool simple = v.len > 0;
    if (!put_key(l, key)) return;
    for (size_t i = 0; i < v.len && simple && !l->json; i++)
        simple = is_plain((unsigned char)v.ptr[i]);
    if (l->json)
        quoted_json(l, v);
    else if (simple)
        append_bytes(l, v.ptr, v.len);
    else
        quoted(l, v);
}

void xpl_log_z(struct xpl_log_line *l, const char *key, const char *value) {
    xpl_log_str(l, key, xpl_str_from(value));
}

void xpl_log_int(struct xpl_log_line *l, const char *key, int64_t value) {
    char num[24];
    size_t at = sizeof num;
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        num[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    if (value < 0) num[--at] = '-';
    if (put_key(l, key)) append_bytes(l, num + at, sizeof num - at);
}

// ---- writing ----

enum { BATCH = 1 << 20, BATCH_MS = 20, WRITE_WAIT_MS = 200 };

static struct {
    pthread_mutex_t mu;
    pthread_cond_t work;
    pthread_t thread;
    bool running, waiting, stop;
    uint64_t dropped; // not reported yet
    uint64_t dropped_ever;
    size_t n;
    char lines[BATCH], spare[BATCH];
} queue = {.mu = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

// Waits for room in a pipe whose other end made it non-blocking.  False after WRITE_WAIT_MS.
static bool wait_writable(void) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, WRITE_WAIT_MS) > 0;
}

// A log that cannot be written must not stop the daemon.
static void write_out(const char *p, size_t n) {
    while (n) {
        const ssize_t done = write(STDERR_FILENO, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EAGAIN && wait_writable()) continue;
        if (done <= 0) return;
        p += done;
        n -= (size_t)done;
    }
}

// Ends the text, for which xpl_log_begin and add leave room.
static void finish_line(struct xpl_log_line *l) {
    const char *const end = l->json ? l->cut ? kCutJson : "}\n" : l->cut ? kCutText : "\n";
    memcpy(l->text + l->n, end, strlen(end));
    l->n += strlen(end);
}

static void write_dropped(uint64_t dropped) {
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_WARN, "log", "lines dropped");
    if (l.off) return;
    xpl_log_int(&l, "count", (int64_t)dropped);
    finish_line(&l);
    write_out(l.text, l.n);
}

// Writes the queued lines; the mutex is released meanwhile.
static void flush(void) {
    xpl_assert_held(&queue.mu);
    const size_t n = queue.n;
    const uint64_t dropped = queue.dropped;
    memcpy(queue.spare, queue.lines, n);
    queue.n = 0;
    queue.dropped = 0;
    pthread_mutex_unlock(&queue.mu);
    write_out(queue.spare, n);
    if (dropped) write_dropped(dropped);
    pthread_mutex_lock(&queue.mu);
}

static void *writer(void *arg) {
    (void)arg;
    pthread_mutex_lock(&queue.mu);
    while (!queue.stop) {
        if (queue.n == 0) {
            queue.waiting = true;
            pthread_cond_wait(&queue.work, &queue.mu);
            queue.waiting = false;
        }
        if (!queue.stop) { // more lines join the batch
            pthread_mutex_unlock(&queue.mu);
            const struct timespec pause = {.tv_nsec = BATCH_MS * 1000000L};
            (void)nanosleep(&pause, NULL);
            pthread_mutex_lock(&queue.mu);
        }
        flush();
    }
    pthread_mutex_unlock(&queue.mu);
    return NULL;
}

void xpl_log_start(void) {
    pthread_mutex_lock(&queue.mu); // others may log already
    queue.stop = false;
    queue.running = pthread_create(&queue.thread, NULL, writer, NULL) == 0;
    pthread_mutex_unlock(&queue.mu);
}

void xpl_log_stop(void) {
    if (!queue.running) return;
    pthread_mutex_lock(&queue.mu);
    queue.stop = true;
    pthread_cond_signal(&queue.work);
    pthread_mutex_unlock(&queue.mu);
    pthread_join(queue.thread, NULL);
    pthread_mutex_lock(&queue.mu);
    queue.running = false;
    flush();
    pthread_mutex_unlock(&queue.mu);
}

static void enqueue(const char *p, size_t n) {
    if (queue.n + n > BATCH) {
        queue.dropped++;
        queue.dropped_ever++;
        return;
    }
    memcpy(queue.lines + queue.n, p, n);
    queue.n += n;
    if (queue.waiting) pthread_cond_signal(&queue.work);
}

uint64_t xpl_log_dropped(void) {
    pthread_mutex_lock(&queue.mu);
    const uint64_t n = queue.dropped_ever;
    pthread_mutex_unlock(&queue.mu);
    return n;
}

void xpl_log_end(struct xpl_log_line *l) {
    if (l->off) return;
    finish_line(l);
    pthread_mutex_lock(&queue.mu);
    const bool later = queue.running && l->level != XPL_LOG_ERROR;
    if (later) enqueue(l->text, l->n);
    pthread_mutex_unlock(&queue.mu);
    if (!later) write_out(l->text, l->n);
}

void xpl_log(enum xpl_log_level level, const char *topic, const char *fmt, ...) {
    if (!xpl_log_enabled(level, topic)) return;
    char msg[sizeof((struct xpl_log_line *)NULL)->text]; // as long as a line: cut there, if at all
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    struct xpl_log_line l;
    xpl_log_begin(&l, level, topic, msg);
    xpl_log_end(&l);
}
