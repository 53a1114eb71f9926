// SPDX-License-Identifier: Apache-2.0
// Plans and addresses.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/parse.h"
#include "capture/driver.h"
#include "capture/impl.h"

enum { KEYS_BYTES = 16 << 20 }; // of all targets, at most

static const char *const state_names[] = {
    [XPL_CAPTURE_CONNECTING] = "connecting", [XPL_CAPTURE_READY] = "ready",
    [XPL_CAPTURE_COLLECTING] = "collecting", [XPL_CAPTURE_WAITING] = "waiting",
    [XPL_CAPTURE_RECEIVING] = "receiving",   [XPL_CAPTURE_PAUSING] = "pausing",
    [XPL_CAPTURE_STORED] = "stored",         [XPL_CAPTURE_IDLE] = "idle",
    [XPL_CAPTURE_FAILED] = "failed",         [XPL_CAPTURE_CANCELLED] = "cancelled",
};

const char *xpl_capture_state_name(enum xpl_capture_state s) {
    return (unsigned)s < sizeof state_names / sizeof *state_names ? state_names[s] : "unknown";
}

// Checks an address: "host:port", "[::1]:port", "unix:/path".
static xpl_status_t capture_check_target(const char *given, struct xpl_error *err) {
    struct xpl_capture_address address;
    int64_t port;
    if (strlen(given) > XPL_CAPTURE_MAX_TARGET) given = "";
    xpl_capture_address(&address, given);
    const char *const target = address.text;
    const xpl_str_t t = xpl_str_from(target);
    if (t.len == 0)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "a target is HOST:PORT of up to %d characters",
                         XPL_CAPTURE_MAX_TARGET);
    for (size_t i = 0; i < t.len; i++)
        if (t.ptr[i] <= ' ' || t.ptr[i] > '~')
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "a target has printable ASCII characters only, and no spaces");
    if (xpl_str_starts(t, XPL_STR("unix:/")) && t.len > 6) return XPL_OK;
    if (xpl_str_has(t, XPL_STR("://")))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.100s: write HOST:PORT, without \"%.*s\"",
                         target, (int)xpl_str_find(t, XPL_STR("://"), 0) + 3, target);
    const char *const colon = strrchr(target, ':');
    const bool bracketed = target[0] == '[';
    const size_t host = colon ? (size_t)(colon - target) : 0;
    if (!colon || host == 0 || (bracketed && (host < 3 || colon[-1] != ']')))
        XPL_RETURN_ERROR(
            err, XPL_INVALID_ARGUMENT,
            "%.100s: a target is HOST:PORT, with the port that the program gave its profiler "
            "server",
            target);
    if (!bracketed && memchr(target, ':', host))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%.100s: write IPv6 addresses as [ADDRESS]:PORT", target);
    if (memchr(target, '/', t.len) || memchr(target, '%', t.len))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.100s: a target is HOST:PORT, without a path",
                         target);
    if (!xpl_parse_int(xpl_str_from(colon + 1), 1, 65535, &port) || colon[1] < '0' ||
        colon[1] > '9')
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%.100s: the port is a number from 1 to 65535",
                         target);
    return XPL_OK;
}

static xpl_str_t host_of(xpl_str_t t, size_t port) {
    const xpl_str_t host = xpl_str_sub(t, 0, port);
    static const char *const here[] = {"localhost", "[::1]", "[0:0:0:0:0:0:0:1]"};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (host.len == strlen(here[i]) && strncasecmp(host.ptr, here[i], host.len) == 0)
            return XPL_STR("127.0.0.1");
    return host;
}

static size_t port_at(xpl_str_t t) {
    size_t i = t.len;
    while (i > 0 && t.ptr[i - 1] != ':')
        i--;
    return i;
}

// CUDA programs and PyTorch's processes of one agent are one target: CUPTI serves one profiler.
void xpl_capture_target_key(char out[XPL_CAPTURE_KEY_SIZE], const char *target,
                            const char *machine) {
    struct xpl_capture_address address;
    xpl_capture_address(&address, target);
    const xpl_str_t t = xpl_str_from(address.text);
    const size_t port = port_at(t);
    if (xpl_str_starts(t, XPL_STR("unix:")) || port == 0) {
        (void)snprintf(out, XPL_CAPTURE_KEY_SIZE, "%.*s %.64s", XPL_STR_FMT(t), machine);
        return;
    }
    const xpl_str_t host = host_of(t, port - 1);
    const bool is_here = xpl_str_eq(host, XPL_STR("127.0.0.1"));
    (void)snprintf(out, XPL_CAPTURE_KEY_SIZE, "%.*s:%d%s%.64s", XPL_STR_FMT(host),
                   atoi(t.ptr + port), is_here ? " " : "", is_here ? machine : "");
    for (char *c = out; *c && *c != ' '; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
}

void xpl_capture_target_name(char out[XPL_SESSION_WRITER_NAME_SIZE], const char *target) {
    struct xpl_capture_address address;
    xpl_capture_address(&address, target);
    xpl_str_t t = xpl_str_from(address.text);
    if (xpl_str_starts(t, XPL_STR("unix:"))) {
        const char *const last = strrchr(address.text, '/');
        t = xpl_str_from(last && last[1] ? last + 1 : address.text);
    }
    if (t.len && t.ptr[0] == '[') t = xpl_str_sub(t, 1, t.len - 1);
    // The port's digits make the names of one machine's processes differ: cut before them.
    char whole[XPL_CAPTURE_MAX_TARGET + 1];
    size_t n = 0;
    for (size_t i = 0; i < t.len && n < sizeof whole - 1; i++)
        if (t.ptr[i] != ']') whole[n++] = t.ptr[i];
    const size_t cut = n > XPL_PROFILE_WRITER_MAX_NAME ? n - XPL_PROFILE_WRITER_MAX_NAME : 0;
    (void)xpl_session_writer_safe_name(out, (xpl_str_t){whole + cut, n - cut});
}

xpl_status_t xpl_capture_target_keys(const struct xpl_capture_plan *p, const char *machine,
                                     struct xpl_arena *arena, struct xpl_intern **ret,
                                     struct xpl_error *err) {
    struct xpl_intern *const keys = xpl_intern_new(arena, xpl_hash_seed());
    char key[XPL_CAPTURE_KEY_SIZE];
    xpl_strid_t id = {0};
    for (size_t i = 0; i < p->n_targets; i++) {
        xpl_capture_target_key(key, p->targets[i], machine);
        if (!keys || !xpl_intern_put(keys, xpl_str_from(key), &id)) XPL_RETURN_OOM(err, "capture");
        if (id.v <= i)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "%.100s is given twice: a program gives one profile at a time",
                             p->targets[i]);
    }
    *ret = keys;
    return XPL_OK;
}

static xpl_status_t check_distinct(const struct xpl_capture_plan *p, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(KEYS_BYTES);
    struct xpl_intern *keys;
    return xpl_capture_target_keys(p, "", &arena, &keys, err);
}

static xpl_status_t check_targets(const struct xpl_capture_plan *p, struct xpl_error *err) {
    if (p->n_targets == 0 || p->n_targets > XPL_CAPTURE_MAX_TARGETS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "a capture has 1 to %d targets, not %zu",
                         XPL_CAPTURE_MAX_TARGETS, p->n_targets);
    for (size_t i = 0; i < p->n_targets; i++) {
        XPL_TRY(capture_check_target(p->targets[i], err));
        const char *const name = p->host_names ? p->host_names[i] : NULL;
        if (name && name[0])
            XPL_TRY(xpl_session_writer_check_name("a host", xpl_str_from(name), err));
    }
    return check_distinct(p, err);
}

static xpl_status_t check_advanced(const struct xpl_capture_plan *p, struct xpl_error *err) {
    if (p->n_advanced > XPL_CAPTURE_MAX_ADVANCED)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "at most %d advanced options, not %zu",
                         XPL_CAPTURE_MAX_ADVANCED, p->n_advanced);
    for (size_t i = 0; i < p->n_advanced; i++)
        if (!p->advanced[i].key || !p->advanced[i].key[0] ||
            (p->advanced[i].type == XPL_CAPTURE_TEXT && !p->advanced[i].text))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "an advanced option has a key and a value");
    return XPL_OK;
}

xpl_status_t xpl_capture_check(const struct xpl_capture_plan *p, struct xpl_error *err) {
    if (p->size != sizeof *p)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "capture: plan of another version");
    XPL_TRY(check_targets(p, err));
    XPL_TRY(check_advanced(p, err));
    if (p->session.len) XPL_TRY(xpl_session_writer_check_name("a session", p->session, err));
    const bool timed = p->call == XPL_CAPTURE_PROFILE;
    if (timed && (p->duration_ms < 1 || p->duration_ms > XPL_CAPTURE_MAX_DURATION_MS))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "a capture takes 1 ms to 1 hour, not %" PRId64 " ms", p->duration_ms);
    if (p->delay_ms < 0 || p->delay_ms > XPL_CAPTURE_MAX_DURATION_MS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "the delay is 0 to 1 hour, not %" PRId64 " ms",
                         p->delay_ms);
    if (p->retries > XPL_CAPTURE_MAX_RETRIES)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "at most %d retries, not %u",
                         XPL_CAPTURE_MAX_RETRIES, p->retries);
    if (p->connect_timeout_ms < 0 || p->answer_timeout_ms < 0 ||
        p->connect_timeout_ms > 24 * (int64_t)XPL_CAPTURE_MAX_DURATION_MS ||
        p->answer_timeout_ms > 24 * (int64_t)XPL_CAPTURE_MAX_DURATION_MS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "a time limit is 0 to 24 hours");
    if (p->max_host_bytes > XPL_CAPTURE_MAX_BYTES)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "a profile over the wire has at most %" PRIu64
                         " bytes: capture for a shorter time",
                         XPL_CAPTURE_MAX_BYTES);
    return XPL_OK;
}

const struct xpl_capture_driver *xpl_capture_driver_of(const struct xpl_capture_plan *plan) {
    return plan->driver ? plan->driver : &xpl_capture_tensorflow;
}
