// SPDX-License-Identifier: Apache-2.0
// Log lines on stderr: one line each, key=value, after the time, or after the <N> priority prefix
// when stderr goes to journald ($JOURNAL_STREAM names it), which stamps the time itself; or one
// JSON object a line, with "time", "level", "topic", "msg" and the keys (valid JSON whatever bytes
// the values have: ill-formed UTF-8 becomes U+FFFD), after the same prefix.  Topics have levels:
// XPLANED_LOG=info,grpc:debug.  Any thread may log.  Between xpl_log_start and
// xpl_log_stop a thread of the log's own writes, in batches, so that a busy server does not pay a
// system call per line; errors are written at once.
#ifndef XPL_BASE_LOG_H_
#define XPL_BASE_LOG_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum xpl_log_level { XPL_LOG_ERROR = 3, XPL_LOG_WARN = 4, XPL_LOG_INFO = 6, XPL_LOG_DEBUG = 7 };

// Applies a list of LEVEL and TOPIC:LEVEL, with LEVEL of error, warn, info, debug and commas
// between (one at the end does no harm).  The last of a kind wins; without a LEVEL it is info.  At
// most 16 topics of at most 15 bytes.  False, and nothing changed, for any other text.  Safe while
// others log.
bool xpl_log_configure(const char *spec);
// Whether xpl_log_configure would apply it.
bool xpl_log_check(const char *spec);
// JSON objects from now on, or the text form, which is the default.  Any thread.
void xpl_log_set_json(bool json);
// The first topic of a good `spec` that no line of ours has; empty when all are known.
xpl_str_t xpl_log_unknown_topic(const char *spec);
// All topics, sorted; the last is NULL.
extern const char *const xpl_log_topics[];
bool xpl_log_enabled(enum xpl_log_level level, const char *topic);

// Start and end the log's thread; call both from one thread.  Without it every line is written by
// the logging thread.  If lines come faster than stderr accepts them, those beyond 1 MiB are
// dropped, and a separate line reports their number.
void xpl_log_start(void);
void xpl_log_stop(void);
// How many lines were dropped so far.
uint64_t xpl_log_dropped(void);

// A line being built on the stack.  Overlong lines are cut and end in "...", or with "cut":true.
struct xpl_log_line {
    char text[2000];
    size_t n;
    enum xpl_log_level level;
    bool off, cut, json;
};
// Starts a line: level, topic and message.  The message is a fixed sentence, not user data.
void xpl_log_begin(struct xpl_log_line *l, enum xpl_log_level level, const char *topic,
                   const char *message);
void xpl_log_str(struct xpl_log_line *l, const char *key, xpl_str_t value); // quoted when needed
void xpl_log_z(struct xpl_log_line *l, const char *key, const char *value);
// As JSON a number.
void xpl_log_int(struct xpl_log_line *l, const char *key, int64_t value);
void xpl_log_end(struct xpl_log_line *l);

// A line with a formatted message and no further keys.
void xpl_log(enum xpl_log_level level, const char *topic, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
