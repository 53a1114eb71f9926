// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/place.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/status.h"
#include "cli/commands/command.h"
#include "cli/logdir.h"
#include "cli/remote.h"
#include "storage/sessions/catalogue.h"

enum { PATIENCE_MS = 2000 }; // for a daemon that gets a request for a path

// Earlier results, for commands that ask about a run several times.
struct known {
    struct known *next;
    const char *run; // of the command line
    enum xpl_run_place place;
    bool has_session; // the daemon says so
};
static struct {
    struct known *first;
    bool no_daemon; // nothing answers there
} asked;

// No session has such a name: names are relative to the log directory.
static bool is_only_path(const char *run) {
    const size_t n = strlen(run);
    return run[0] == '/' || strcmp(run, ".") == 0 || strcmp(run, "..") == 0 ||
           strncmp(run, "./", 2) == 0 || strncmp(run, "../", 3) == 0 || (n && run[n - 1] == '/');
}

static bool is_there(const char *run) {
    return access(run, F_OK) == 0 || xpl_inputs_are_there(run);
}

static enum xpl_run_place place_of_failure(const char *run, const xpl_result *r) {
    const bool is_away = r->code == XPL_UNAVAILABLE, there = is_there(run);
    asked.no_daemon |= is_away;
    if (!there && !is_away) return XPL_RUN_SESSION; // another request reports the error
    if (r->code == XPL_NOT_FOUND || (there && is_away)) return XPL_RUN_PATH;
    xpl_say("warning: %s is taken for a path: %s", run, r->message);
    return XPL_RUN_PATH;
}

static enum xpl_run_place ask_daemon(const struct xpl_args *args, const char *run,
                                     bool *has_session) {
    struct xpl_args a = *args;
    xpl_sessions *one = NULL;
    xpl_result r;
    if (!a.timeout_ms || a.timeout_ms > PATIENCE_MS) a.timeout_ms = PATIENCE_MS;
    if (asked.no_daemon || !xpl_library_is_there()) return XPL_RUN_PATH;
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(&a);
    if (!c) return is_there(run) ? XPL_RUN_PATH : XPL_RUN_SESSION;
    *has_session = xpl_client_session(c, run, &one, &r) == 0;
    xpl_sessions_free(one);
    return *has_session ? XPL_RUN_SESSION : place_of_failure(run, &r);
}

static void note(const char *run, enum xpl_run_place place, bool has_session) {
    struct known *const k = xpl_sys_alloc(sizeof *k);
    if (!k) return; // the next call asks again
    *k = (struct known){asked.first, run, place, has_session};
    asked.first = k;
}

static const struct known *find_note(const char *run) {
    for (const struct known *k = asked.first; k; k = k->next)
        if (strcmp(k->run, run) == 0) return k;
    return NULL;
}

const char *const *xpl_run_paths(const struct xpl_args *a, const char *const *run, size_t *ret_n) {
    const bool all = a->command && a->command->joins;
    *ret_n = all ? a->n_rest - 1 : 1;
    return all ? a->rest + 1 : run;
}

enum xpl_run_place xpl_run_place(const struct xpl_args *a, const char *run) {
    if (is_only_path(run)) return XPL_RUN_PATH;
    if (!is_there(run) && !strchr(run, '/')) return XPL_RUN_SESSION;
    const struct known *const k = find_note(run);
    if (k) return k->place;
    bool has_session = false;
    const enum xpl_run_place place = ask_daemon(a, run, &has_session);
    note(run, place, has_session);
    return place;
}

// Names that live as long as the program.
static struct kept_name {
    struct kept_name *next;
    char text[];
} * g_names;

static const char *keep_name(const char *text) {
    struct kept_name *const k = xpl_sys_alloc(sizeof *k + strlen(text) + 1);
    if (!k) return NULL;
    k->next = g_names;
    strcpy(k->text, text);
    g_names = k;
    return k->text;
}

// ---- several runs that are one ----

// The names with commas between.
static bool join_sessions(struct xpl_args *a) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 20);
    for (size_t i = 1; i < a->n_rest; i++)
        xpl_buf_printf(&b, "%s%s", i > 1 ? "," : "", a->rest[i]);
    xpl_buf_putc(&b, 0);
    const char *const name = b.failed ? NULL : keep_name((const char *)b.p);
    if (!name) return false;
    a->rest[1] = name;
    a->n_rest = 2;
    return true;
}

// Replaces the last argument, a directory, by the files of its newest session.
static bool join_files(struct xpl_args *a) {
    static struct xpl_logdir l; // its session's names are used until the program ends
    struct xpl_error err = {0};
    const char *const dir = a->rest[a->n_rest - 1];
    if (xpl_logdir_open_newest(dir, &l, &err) != XPL_OK) {
        xpl_say("%s", err.msg);
        return false;
    }
    const size_t n = l.session->n_hosts, before = a->n_rest - 1;
    const char **const rest = xpl_sys_realloc(a->rest, (before + n) * sizeof *rest);
    if (!rest) return false;
    a->rest = rest;
    a->n_rest = before;
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX];
        rest[a->n_rest] = xpl_logdir_path(&l, i, path) ? keep_name(path) : NULL;
        if (!rest[a->n_rest++]) return false;
    }
    return true;
}

bool xpl_run_join(struct xpl_args *a) {
    size_t n_sessions = 0, first = 1;
    if (a->join) return join_files(a);
    if (!a->command->joins || a->n_rest < 3) return true;
    for (size_t i = 1; i < a->n_rest; i++) {
        const bool is = xpl_run_place(a, a->rest[i]) == XPL_RUN_SESSION;
        n_sessions += is;
        if (is) first = i;
    }
    if (n_sessions == a->n_rest - 1) return join_sessions(a);
    if (!n_sessions) return true;
    xpl_say("%s is not a file: give only paths or only sessions", a->rest[first]);
    return false;
}

// How a session's name fits to a typed one, best first.
enum fit { IS_NAME, BEGINS_NAME, IS_LAST_PART, BEGINS_LAST_PART, N_FITS };

// N_FITS: not at all.
static enum fit fit_of(const char *name, const char *run) {
    const size_t length = strlen(run);
    const char *const slash = strrchr(name, '/'), *const last = slash ? slash + 1 : name;
    if (strncmp(name, run, length) == 0) return name[length] ? BEGINS_NAME : IS_NAME;
    if (strncmp(last, run, length) == 0) return last[length] ? BEGINS_LAST_PART : IS_LAST_PART;
    return N_FITS;
}

const char *xpl_run_beginning(xpl_client *c, const char *run) {
    static const char *const says[N_FITS] = {"", "begin with", "have the last part",
                                             "have a last part that begins with"};
    xpl_sessions *list = NULL;
    xpl_result r;
    const char *found[N_FITS + 1] = {NULL}, *name = NULL;
    size_t n[N_FITS + 1] = {0}, best = 0;
    if (!*run || xpl_client_sessions(c, &list, &r) != 0) return NULL;
    for (size_t i = 0; i < xpl_sessions_count(list); i++) {
        const char *const s = xpl_sessions_get(list, i)->name;
        const enum fit fit = fit_of(s, run);
        if (!n[fit]++) found[fit] = s;
    }
    while (best < N_FITS && !n[best])
        best++;
    // A session with this name only misses a host, a plane or a program.
    if (best != IS_NAME && best != N_FITS) {
        if (n[best] == 1)
            name = keep_name(found[best]);
        else
            xpl_say("%zu sessions %s %s, such as %s", n[best], says[best], run, found[best]);
    }
    xpl_sessions_free(list);
    return name;
}

void xpl_run_no_session(const char *run) {
    const struct known *const k = find_note(run);
    if (k && k->has_session) return; // the missing part is a host, a plane or a program of it
    if (!is_there(run) && (strchr(run, '/') || xpl_format_of_name(xpl_str_from(run), NULL)))
        xpl_say("no file %s exists: it was taken for a session", run);
}

const struct xpl_format *xpl_run_format(const char *path) {
    struct xpl_source *source = NULL;
    struct xpl_file_format is;
    const bool known =
        xpl_source_open(AT_FDCWD, path, 0, &source, NULL) == XPL_OK &&
        xpl_file_recognize(xpl_str_from(path), xpl_source_bytes(source), NULL, &is, NULL) == XPL_OK;
    xpl_source_free(source);
    return known ? is.format : xpl_format_of_name(xpl_str_from(path), NULL);
}
