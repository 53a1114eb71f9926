// SPDX-License-Identifier: Apache-2.0
// Static files: our pages, which are part of the program, and XProf's, from --ui-dir.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/http/gateway.h"
#include "server/http/known.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/web/web.h"
#include "storage/places.h"

// ---- our pages ----

static struct xpl_http_body *web_body(const struct xpl_web_file *f) {
    const struct xpl_http_body_options o = {.policy = XPL_POLICY_WEB,
                                            .type = f->type,
                                            .gzip = true,
                                            .thorough = true,
                                            .validators = true};
    struct xpl_rpc_blob *blob = xpl_rpc_blob_copy((xpl_bytes_t){f->data, f->size});
    if (!blob) return NULL;
    struct xpl_http_body *b = xpl_http_body_new(blob, &o);
    xpl_rpc_blob_unref(blob);
    return b;
}

enum MHD_Result xpl_http_route_web(struct xpl_http_request *r) {
    const xpl_str_t path = xpl_str_sub(r->path, 4, SIZE_MAX); // behind "/ui/"
    const struct xpl_web_file *const f = xpl_web_find(path.ptr, path.len);
    if (!f)
        return xpl_http_reply_text(r, 404, "no page \"%.*s\" exists; begin at /ui/",
                                   XPL_STR_FMT(xpl_str_sub(path, 0, 100)));
    if (r->post) return xpl_http_reply_text(r, 405, "pages are read with GET");
    struct xpl_http_body *b = web_body(f);
    if (!b) return xpl_http_busy(r);
    struct xpl_snapshot *s = xpl_catalogue_get(r->http->parts.catalogue);
    b->generation = s->generation;
    xpl_snapshot_unref(s);
    if (!r->n_args) xpl_http_remember(r, b);
    return xpl_http_reply_body(r, b);
}

// ---- XProf's files ----

static const struct {
    const char *name, *type;
} ui_files[] = {
    {"index.html", "text/html"},
    {"index.js", "application/javascript"},
    {"bundle.js", "application/javascript"},
    {"styles.css", "text/css"},
    {"materialicons.woff2", "application/octet-stream"},
    {"material_symbols_outlined.woff2", "application/octet-stream"},
    {"trace_viewer_index.html", "text/html"},
    {"trace_viewer_index.js", "application/javascript"},
    {"trace_viewer_v2.js", "application/javascript"},
    {"trace_viewer_v2.wasm", "application/wasm"},
    {"zone.js", "application/javascript"},
    {"runtime.js", "application/javascript"},
};
enum { N_UI_FILES = sizeof ui_files / sizeof *ui_files, MAX_FILE = 256 << 20 };
_Static_assert((int)N_UI_FILES <= (int)XPL_HTTP_UI_FILES, "room for all files");

struct reading { // r->data
    int index;
    struct xpl_http_file_state state;
};

static int find_file(const char *name) {
    for (int i = 0; i < N_UI_FILES; i++)
        if (strcmp(ui_files[i].name, name) == 0) return i;
    return -1;
}

bool xpl_http_is_ui_file(const char *name) {
    return find_file(name) >= 0;
}

static bool file_path(const struct xpl_http *h, int i, char *ret, size_t size) {
    return xpl_place_join(h->options.ui_dir, xpl_str_from(ui_files[i].name), ret, size);
}

static bool state_of(int i, const struct stat *st, struct reading *ret) {
    ret->index = i;
    ret->state = (struct xpl_http_file_state){.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                                          st->st_mtim.tv_nsec,
                                              .size = (uint64_t)st->st_size,
                                              .ino = st->st_ino};
    return S_ISREG(st->st_mode) && st->st_size >= 0 && st->st_size <= MAX_FILE;
}

static uint8_t *read_all(int fd, size_t size) {
    uint8_t *p = xpl_sys_alloc(size + 1);
    size_t n = 0;
    while (p && n < size) {
        const ssize_t got = read(fd, p + n, size - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (p && n == size) return p;
    xpl_sys_free(p);
    return NULL;
}

// On a worker: reads and compresses the file.
static void read_file(struct xpl_http_request *r) {
    struct reading *w = r->data;
    char path[4096];
    struct stat st;
    if (!file_path(r->http, w->index, path, sizeof path)) return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    uint8_t *p =
        fstat(fd, &st) == 0 && state_of(w->index, &st, w) ? read_all(fd, (size_t)st.st_size) : NULL;
    (void)close(fd);
    struct xpl_rpc_blob *blob = p ? xpl_rpc_blob_take(p, (size_t)st.st_size) : NULL;
    if (p && !blob) xpl_sys_free(p);
    const struct xpl_http_body_options o = {.policy = XPL_POLICY_XPROF,
                                            .type = ui_files[w->index].type,
                                            .gzip = true,
                                            .thorough = true,
                                            .validators = true};
    if (blob) r->body = xpl_http_body_new(blob, &o);
    xpl_rpc_blob_unref(blob);
}

static enum MHD_Result no_file(struct xpl_http_request *r, const char *name) {
    return xpl_http_reply_text(r, 404,
                               "Fail to read the files. (%s is not in --ui-dir; "
                               "fetch-xprof-ui.sh gets XProf's files)",
                               name);
}

static enum MHD_Result file_read(struct xpl_http_request *r) {
    struct xpl_http *h = r->http;
    const struct reading *w = r->data;
    if (!r->body) return no_file(r, ui_files[w->index].name);
    if (h->files[w->index]) xpl_object_unref(&h->files[w->index]->object);
    xpl_object_ref(&r->body->object);
    h->files[w->index] = r->body;
    h->file_states[w->index] = w->state;
    return xpl_http_result(r);
}

enum MHD_Result xpl_http_reply_ui(struct xpl_http_request *r, const char *name) {
    struct xpl_http *h = r->http;
    const int i = find_file(name);
    char path[4096];
    struct stat st;
    struct reading now;
    if (i < 0 || !h->options.ui_dir[0] || !file_path(h, i, path, sizeof path) ||
        stat(path, &st) != 0 || !state_of(i, &st, &now))
        return no_file(r, name);
    const struct xpl_http_file_state *const was = &h->file_states[i];
    if (h->files[i] && was->mtime_ns == now.state.mtime_ns && was->size == now.state.size &&
        was->ino == now.state.ino) {
        xpl_object_ref(&h->files[i]->object);
        return xpl_http_reply_body(r, h->files[i]);
    }
    struct reading *w = r->data = xpl_arena_alloc(&r->arena, sizeof *w);
    if (!w) return xpl_http_busy(r);
    *w = now;
    return xpl_http_defer(r, read_file, file_read) ? MHD_YES : xpl_http_busy(r);
}
