// SPDX-License-Identifier: Apache-2.0
// What a client asks for, resolved against the newest snapshot of the catalogue: session, hosts,
// tool, options, and the key under which equal requests share an answer.
#ifndef XPL_SERVER_ENGINE_REQUEST_H_
#define XPL_SERVER_ENGINE_REQUEST_H_

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "storage/sessions/catalogue.h"

// A request in a client's words.  Everything is borrowed.
struct xpl_request_words {
    xpl_str_t session;
    const xpl_str_t *hosts; // none, or "ALL_HOSTS" alone: all together
    size_t n_hosts;
    xpl_str_t tool;             // by name or alias
    const struct xpl_tool *row; // instead of a name: a hidden tool
    const struct xpl_option *options;
    size_t n_options;
    bool strict;           // unknown options are refused, else ignored
    xpl_str_t traceparent; // as the client sent it (server/traceparent.h); or empty
};

struct xpl_request {
    struct xpl_arena arena; // holds all below
    struct xpl_snapshot *snapshot;
    const struct xpl_session *session;
    const struct xpl_host *const *hosts; // chosen ones, by name
    size_t n_hosts;
    bool all_hosts; // no choice was made, or all were chosen
    bool by_name;   // hosts were asked for by name: a broken one is an error
    const struct xpl_tool *tool;
    const void *options;   // the tool's option struct
    bool bypass_cache;     // use_saved_result=false
    bool background;       // not for a request: xpl_engine_stop_background ends it
    uint64_t since_ns;     // when who asks began to wait (xpl_clock_ns); 0: when it is submitted
    xpl_str_t traceparent; // of version 00, or empty
    xpl_bytes_t key;       // equal requests for equal files have equal keys
};

// NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION with a sentence.  *ret is freed by
// xpl_request_free or handed to xpl_engine_submit.  Any thread.
xpl_status_t xpl_request_resolve(struct xpl_catalogue *catalogue,
                                 const struct xpl_request_words *words, struct xpl_request **ret,
                                 struct xpl_error *err) XPL_NODISCARD;
// The format of the session's profiles, or of the first host's where hosts differ; that of XSpaces
// for a session without hosts.  Never NULL.
const struct xpl_format *xpl_request_session_format(const struct xpl_session *s);
// Whether the tool reads the files of some host of the session: profiles differ in what they have.
bool xpl_request_session_feeds(const struct xpl_session *s, const struct xpl_tool *tool);
// NULL is fine.
void xpl_request_free(struct xpl_request *q);

// What of a request, beside tool and files, tells stored answers apart, versions included; in
// `arena`.
// `session_has_device` counts only with cpu_as_device, and where not all hosts were chosen: else
// the files tell it. Empty without memory.
xpl_str_t xpl_request_store_text(const struct xpl_request *q, bool session_has_device,
                                 struct xpl_arena *arena);

#endif
