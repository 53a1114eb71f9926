// SPDX-License-Identifier: Apache-2.0
#include "cli/iree/outlet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/remote.h"
#include "storage/objects/objects.h"
#include "storage/places.h"

#define SUFFIX ".ireeprof"

static bool refuse(const struct xpl_error *err) {
    xpl_say("%s", err->msg);
    return false;
}

static void name_host(struct xpl_outlet *p) {
    char host[256] = "";
    if (!p->args->host_names) {
        (void)gethostname(host, sizeof host - 1);
        host[strcspn(host, ".")] = 0;
    }
    const char *const given = p->args->host_names ? p->args->host_names : host;
    (void)xpl_session_writer_safe_name(p->host, xpl_str_from(given));
}

// The bundle of a daemon is written below the directory for temporary files, as below a log
// directory.
static bool open_session(struct xpl_outlet *p) {
    const char *const tmp = getenv("TMPDIR");
    if (p->args->logdir && xpl_objects_is_url(p->args->logdir)) {
        (void)fputs("xplanectl: a program's bundle goes to a directory or to a daemon, not to an "
                    "object store: leave --logdir out\n",
                    stderr);
        return false;
    }
    const struct xpl_session_writer_options o = {.size = sizeof o,
                                                 .logdir = p->args->logdir ? p->args->logdir
                                                           : tmp && *tmp   ? tmp
                                                                           : "/tmp",
                                                 .name = xpl_str_from(p->name),
                                                 .unique = true};
    struct xpl_error err = {0};
    int fd;
    if (xpl_session_writer_open(&o, &p->writer, &err) != XPL_OK ||
        xpl_session_writer_open_temp(p->writer, p->temp, &fd, &err) != XPL_OK)
        return refuse(&err);
    (void)close(fd); // the program opens it by its name
    return xpl_place_join(xpl_session_writer_get_path(p->writer), xpl_str_from(p->temp), p->path,
                          sizeof p->path);
}

bool xpl_outlet_open(struct xpl_outlet *p, const struct xpl_args *args, const char *name) {
    struct xpl_error err = {0};
    *p = (struct xpl_outlet){.args = args};
    name_host(p);
    if (name && xpl_session_writer_check_name("a session", xpl_str_from(name), &err) != XPL_OK)
        return refuse(&err);
    (void)snprintf(p->name, sizeof p->name, "%s", name ? name : "");
    if (!args->out) return open_session(p);
    (void)snprintf(p->path, sizeof p->path, "%s", args->out);
    return strlen(args->out) < sizeof p->path;
}

uint64_t xpl_outlet_bytes(const struct xpl_outlet *p) {
    struct stat st;
    return stat(p->path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

// The writer continues to write the file: only its name changes.
static bool publish(struct xpl_outlet *p) {
    struct xpl_error err = {0};
    char file[XPL_SESSION_WRITER_NAME_SIZE + sizeof SUFFIX];
    if (p->shown || p->failed) return p->shown;
    p->shown = xpl_session_writer_publish(p->writer, p->temp, p->host, SUFFIX, XPL_TAKEN_NUMBER,
                                          false, &err) == XPL_OK;
    p->failed = !p->shown;
    if (p->failed) return refuse(&err);
    (void)snprintf(file, sizeof file, "%s" SUFFIX, p->host);
    return xpl_place_join(xpl_session_writer_get_path(p->writer), xpl_str_from(file), p->path,
                          sizeof p->path);
}

void xpl_outlet_show(struct xpl_outlet *p) {
    if (p->args->logdir && !p->shown) (void)publish(p);
}

static bool keep_in_logdir(struct xpl_outlet *p) {
    struct xpl_error err = {0};
    if (xpl_session_writer_sync(p->writer, &err) != XPL_OK) return refuse(&err);
    return puts(xpl_session_writer_get_name(p->writer)) >= 0;
}

// The session's name is known once the daemon has given it: later data belongs there.
int xpl_outlet_send(struct xpl_outlet *p, unsigned retries, xpl_result *ret) {
    const xpl_import_file file = {.path = p->path, .host = p->host};
    const xpl_import_request q = {.size = sizeof q,
                                  .files = &file,
                                  .n_files = 1,
                                  .session = p->session[0] ? p->session
                                             : p->name[0]  ? p->name
                                                           : NULL,
                                  .retries = retries,
                                  .grows = p->args->flush_interval_ms && !p->at_end};
    char session[sizeof p->session];
    const int code = xpl_client_import(p->client, &q, session, sizeof session, ret);
    if (code == 0) memcpy(p->session, session, sizeof session);
    return code;
}

static bool keep_in_daemon(struct xpl_outlet *p) {
    xpl_result r;
    if (!p->client) p->client = xpl_remote_open(p->args);
    const bool ok = p->client && xpl_outlet_send(p, 3, &r) == 0;
    if (p->client && !ok) (void)xpl_remote_failed(&r);
    if (ok)
        xpl_session_writer_undo(p->writer);
    else // people may import it later
        xpl_say("the bundle stays in %s", p->path);
    if (!ok && p->session[0]) xpl_say("session %s has the data sent so far", p->session);
    return ok && puts(p->session) >= 0;
}

bool xpl_outlet_keep(struct xpl_outlet *p) {
    if (p->args->out) return true;
    if (!publish(p)) return false;
    return p->args->logdir ? keep_in_logdir(p) : keep_in_daemon(p);
}

void xpl_outlet_close(struct xpl_outlet *p) {
    if (p->writer && p->temp[0] && !p->shown) xpl_session_writer_drop_temp(p->writer, p->temp);
    xpl_session_writer_close(p->writer);
    if (p->client) xpl_client_close(p->client);
}
