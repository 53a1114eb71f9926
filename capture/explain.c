// SPDX-License-Identifier: Apache-2.0
#include "capture/explain.h"

#include <stdio.h>
#include <string.h>

static bool has_part(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

bool xpl_capture_is_busy(xpl_status_t code, const char *message) {
    if (code == XPL_ALREADY_EXISTS) return true; // a second StartContinuousProfiling
    return code == XPL_INTERNAL &&
           (has_part(message, "nother profil") || has_part(message, "already active") ||
            has_part(message, "nly one profil"));
}

// gRPC's sentences of 1.51, which begin with the generic and end with the cause.
static const char *why_unreachable(const struct xpl_capture_plan *plan, const char *m) {
    if (has_part(m, "Connection refused"))
        return "connection refused: nothing listens there; is the program running, did it start "
               "its "
               "profiler server (jax.profiler.start_server(PORT)), is this its port?";
    if (has_part(m, "DNS resolution") || has_part(m, "Domain name not found") ||
        has_part(m, "C-ares"))
        return "the host's name cannot be resolved: check its spelling, or give its IP address";
    if (has_part(m, "http1") || has_part(m, "HTTP/1") || has_part(m, "parsing HTTP/2"))
        return "a web server answers there, not a profiler server: check the port";
    if (plan->tls && (has_part(m, "andshake") || has_part(m, "SSL") || has_part(m, "ertificate") ||
                      has_part(m, "ocket closed")))
        return "no TLS connection: profiler servers speak plain text unless a proxy is before "
               "them; "
               "leave the TLS options out, or check the certificates";
    if (has_part(m, "o route to host") || has_part(m, "etwork is unreachable"))
        return "no route to the host: check the address and the network";
    if (has_part(m, "imed out") || has_part(m, "imeout"))
        return "no response: check the address, and whether a firewall blocks the port";
    if (has_part(m, "ocket closed") || has_part(m, "onnection reset") || has_part(m, "closed"))
        return "the connection was closed at once: the port belongs to another service, or needs "
               "TLS";
    return NULL;
}

// The meaning of a call's status; NULL if only the server's message explains it.
static const char *why_refused(xpl_status_t code, const char *m) {
    if (xpl_capture_is_busy(code, m))
        return "another profile of this program is being taken: try again when it has "
               "finished, or allow retries";
    if (has_part(m, "http2 header with status"))
        return "a web server answers there, not a profiler server: check the port";
    switch ((int)code) {
        case XPL_UNAVAILABLE:
            return "the connection broke during the capture: the program ended, or the network "
                   "failed";
        case XPL_UNIMPLEMENTED:
            return "the server there is not a profiler server, or does not support this call: "
                   "check the port";
        case XPL_RESOURCE_EXHAUSTED:
            return has_part(m, "larger than max") || has_part(m, "Buffers full")
                       ? "the profile is larger than one answer may be: capture for a shorter "
                         "time, or with lower tracer levels"
                       : NULL;
        case XPL_UNAUTHENTICATED:
        case XPL_PERMISSION_DENIED: return "the server refuses us: check the token or certificate";
        case XPL_NOT_FOUND:
            return "the program is not being profiled continuously: start that first";
        case XPL_CANCELLED: return "the server cancelled the capture";
        default: return NULL;
    }
}

void xpl_capture_explain(char reason[XPL_CAPTURE_REASON_SIZE], const struct xpl_capture_plan *plan,
                         enum xpl_capture_phase phase, const struct xpl_error *err) {
    const bool connecting = phase == XPL_CAPTURE_AT_CONNECT;
    const char *const m = err->msg;
    const char *const why = connecting ? why_unreachable(plan, m) : why_refused(err->code, m);
    if (why && connecting)
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "%s", why);
    else if (why)
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "%s (%s)", why, m);
    else if (connecting)
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "cannot be reached: %s", m);
    else
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "the program's profiler failed: %s", m);
}

void xpl_capture_explain_idle(char reason[XPL_CAPTURE_REASON_SIZE],
                              const struct xpl_capture_plan *plan, const char *what,
                              const char *notice) {
    const bool no_host = plan->host_tracer_level == 0, no_device = plan->device_tracer_level == 0;
    const char *why = "the program did nothing that is traced; is it working? Capture for longer, "
                      "or allow retries";
    if (no_host && no_device)
        why = "the host tracer and the device tracer are off (level 0), so that nothing is "
              "recorded: leave one of them on";
    else if (no_host)
        why = "the host tracer is off (level 0), and no device did anything; it also records the "
              "ops of CPUs: capture with level 1 or more, unless the devices are idle";
    else if (no_device)
        why = "the device tracer is off (level 0), and the host did nothing that is traced: "
              "capture with level 1, or for longer";
    if (notice[0])
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "%s: its profiler says: %s", what, notice);
    else
        (void)snprintf(reason, XPL_CAPTURE_REASON_SIZE, "%s: %s", what, why);
}
