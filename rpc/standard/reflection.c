// SPDX-License-Identifier: Apache-2.0
#include "rpc/standard/reflection.h"

#include <string.h>

#include "base/arena.h"
#include "proto/grpc/reflection/v1/reflection.pb-c.h"
#include "rpc/field.h"
#include "rpc/message.h"

enum { MAX_ARENA = 4 << 20, MAX_FILES = 256, MAX_NESTING = 16, MAX_ANSWER = 8 << 20 };
enum { MAX_REQUEST = 4096 };
// Field numbers of ServerReflectionRequest (its oneof) and ServerReflectionResponse.
enum { BY_FILENAME = 3, BY_SYMBOL = 4, BY_EXTENSION = 5, EXTENSIONS_OF = 6, LIST_SERVICES = 7 };
enum { VALID_HOST = 1, ORIGINAL = 2, FILES = 4, EXTENSION_NUMBERS = 5, SERVICES = 6, ERROR = 7 };

enum kind { MESSAGE, ENUM, SERVICE, LEAF };

struct file {
    xpl_bytes_t bytes; // FileDescriptorProto
    xpl_str_t name, package;
    uint16_t *needs; // itself first, then all it imports, each once
    size_t n_needs;
};

struct symbol {
    xpl_str_t name; // full
    uint16_t file;
    enum kind kind;
    bool offered; // a service that the server has methods of
};

struct xpl_rpc_reflection {
    struct xpl_arena arena;
    struct file *files;
    struct symbol *symbols;
    size_t n_files, n_symbols, cap_symbols;
};

// ---- indexing the descriptor set ----

static bool add_symbol(struct xpl_rpc_reflection *r, xpl_str_t name, size_t file, enum kind kind) {
    if (r->n_symbols == r->cap_symbols) {
        const size_t cap = r->cap_symbols ? r->cap_symbols * 2 : 256;
        struct symbol *const grown = xpl_arena_array(&r->arena, cap, sizeof *grown);
        if (!grown) return false;
        if (r->n_symbols) memcpy(grown, r->symbols, r->n_symbols * sizeof *grown);
        r->symbols = grown, r->cap_symbols = cap;
    }
    r->symbols[r->n_symbols++] =
        (struct symbol){.name = name, .file = (uint16_t)file, .kind = kind};
    return true;
}

static bool full_name(struct xpl_rpc_reflection *r, xpl_str_t scope, xpl_str_t name,
                      xpl_str_t *ret) {
    if (scope.len == 0) return xpl_arena_str(&r->arena, name, ret);
    return xpl_arena_printf(&r->arena, ret, "%.*s.%.*s", XPL_STR_FMT(scope), XPL_STR_FMT(name));
}

// The kind that a field of a DescriptorProto, EnumDescriptorProto or ServiceDescriptorProto
// declares; false when it declares no name.
static bool declares(enum kind in, uint32_t field, enum kind *ret) {
    if (in == MESSAGE && (field == 2 || field == 6))
        *ret = LEAF; // field, extension
    else if (in == MESSAGE && field == 3)
        *ret = MESSAGE;
    else if (in == MESSAGE && field == 4)
        *ret = ENUM;
    else if (in == ENUM && field == 2)
        *ret = LEAF;
    else if (in == SERVICE && field == 2)
        *ret = LEAF;
    else
        return false;
    return true;
}

static xpl_status_t index_one(struct xpl_rpc_reflection *r, size_t file, xpl_str_t scope,
                              xpl_bytes_t bytes, enum kind kind, unsigned depth,
                              struct xpl_error *err) {
    const xpl_bytes_t short_name = xpl_rpc_field_find(bytes, 1);
    xpl_str_t name;
    if (depth > MAX_NESTING)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "descriptors: nested too deep");
    if (!full_name(r, scope, (xpl_str_t){(const char *)short_name.ptr, short_name.len}, &name) ||
        !add_symbol(r, name, file, kind))
        XPL_RETURN_OOM(err, "descriptors");
    struct xpl_rpc_reader reader = xpl_rpc_reader(bytes);
    struct xpl_rpc_field f;
    enum kind in;
    while (xpl_rpc_field_next(&reader, &f) == 1)
        if (f.wire == 2 &&
            declares(kind, f.num, &in)) // values of an enum belong to the scope around the enum
            XPL_TRY(index_one(r, file, kind == ENUM ? scope : name, f.bytes, in, depth + 1, err));
    return XPL_OK;
}

static xpl_status_t index_file(struct xpl_rpc_reflection *r, size_t i, struct xpl_error *err) {
    static const enum kind top[] = {MESSAGE, ENUM, SERVICE, LEAF}; // fields 4 to 7
    struct xpl_rpc_reader reader = xpl_rpc_reader(r->files[i].bytes);
    struct xpl_rpc_field f;
    int got;
    while ((got = xpl_rpc_field_next(&reader, &f)) == 1)
        if (f.wire == 2 && f.num >= 4 && f.num <= 7)
            XPL_TRY(index_one(r, i, r->files[i].package, f.bytes, top[f.num - 4], 0, err));
    if (got < 0) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "descriptors: malformed");
    return XPL_OK;
}

static size_t find_file(const struct xpl_rpc_reflection *r, xpl_str_t name) {
    for (size_t i = 0; i < r->n_files; i++)
        if (xpl_str_eq(r->files[i].name, name)) return i;
    return SIZE_MAX;
}

// Breadth first over the imports.
static xpl_status_t collect_needs(struct xpl_rpc_reflection *r, size_t i, struct xpl_error *err) {
    struct file *const file = &r->files[i];
    bool seen[MAX_FILES] = {0};
    file->needs = xpl_arena_array(&r->arena, r->n_files, sizeof *file->needs);
    if (!file->needs) XPL_RETURN_OOM(err, "descriptors");
    file->needs[file->n_needs++] = (uint16_t)i;
    seen[i] = true;
    for (size_t at = 0; at < file->n_needs; at++) {
        struct xpl_rpc_reader reader = xpl_rpc_reader(r->files[file->needs[at]].bytes);
        struct xpl_rpc_field f;
        while (xpl_rpc_field_next(&reader, &f) == 1) {
            if (f.wire != 2 || f.num != 3) continue; // dependency
            const size_t k = find_file(r, xpl_rpc_field_text(&f));
            if (k == SIZE_MAX)
                XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                                 "descriptors: %.*s imports %.*s, which is absent",
                                 XPL_STR_FMT(file->name), XPL_STR_FMT(xpl_rpc_field_text(&f)));
            if (!seen[k]) file->needs[file->n_needs++] = (uint16_t)k;
            seen[k] = true;
        }
    }
    return XPL_OK;
}

static xpl_status_t index_set(struct xpl_rpc_reflection *r, xpl_bytes_t set,
                              struct xpl_error *err) {
    struct xpl_rpc_reader reader = xpl_rpc_reader(set);
    struct xpl_rpc_field f;
    int got;
    r->files = xpl_arena_array(&r->arena, MAX_FILES, sizeof *r->files);
    if (!r->files) XPL_RETURN_OOM(err, "descriptors");
    while ((got = xpl_rpc_field_next(&reader, &f)) == 1) {
        if (f.num != 1 || f.wire != 2) continue;
        if (r->n_files == MAX_FILES)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "descriptors: too many");
        const xpl_bytes_t name = xpl_rpc_field_find(f.bytes, 1);
        const xpl_bytes_t package = xpl_rpc_field_find(f.bytes, 2);
        r->files[r->n_files++] = (struct file){.bytes = f.bytes,
                                               .name = {(const char *)name.ptr, name.len},
                                               .package = {(const char *)package.ptr, package.len}};
    }
    if (got < 0) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "descriptors: malformed");
    for (size_t i = 0; i < r->n_files; i++) {
        XPL_TRY(index_file(r, i, err));
        XPL_TRY(collect_needs(r, i, err));
    }
    return XPL_OK;
}

static void offer(struct xpl_rpc_reflection *r, const char *path) {
    const char *const name = path + (*path == '/');
    const char *const end = strchr(name, '/');
    const xpl_str_t service = {name, end ? (size_t)(end - name) : strlen(name)};
    for (size_t i = 0; i < r->n_symbols; i++)
        if (r->symbols[i].kind == SERVICE && xpl_str_eq(r->symbols[i].name, service))
            r->symbols[i].offered = true;
}

xpl_status_t xpl_rpc_reflection_new(xpl_bytes_t set, const struct xpl_rpc_method *methods, size_t n,
                                    struct xpl_rpc_reflection **ret, struct xpl_error *err) {
    struct xpl_rpc_method own[XPL_RPC_REFLECTION_METHODS];
    struct xpl_rpc_reflection *const r = xpl_sys_alloc(sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "reflection");
    *r = (struct xpl_rpc_reflection){0};
    xpl_arena_init(&r->arena, MAX_ARENA);
    const xpl_status_t st = index_set(r, set, err);
    if (st != XPL_OK) {
        xpl_rpc_reflection_free(r);
        return st;
    }
    for (size_t i = 0; i < n; i++)
        offer(r, methods[i].path);
    xpl_rpc_reflection_get_methods(r, own);
    for (size_t i = 0; i < XPL_RPC_REFLECTION_METHODS; i++)
        offer(r, own[i].path);
    *ret = r;
    return XPL_OK;
}

void xpl_rpc_reflection_free(struct xpl_rpc_reflection *r) {
    if (!r) return;
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
}

// ---- answering ----

static void put_bytes(struct xpl_buf *b, uint32_t field, xpl_bytes_t v) {
    xpl_rpc_put_len(b, field, v.len);
    xpl_buf_put(b, v.ptr, v.len);
}

static void put_error(struct xpl_buf *b, xpl_status_t code, xpl_str_t text) {
    uint8_t bytes[128];
    struct xpl_buf e = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    xpl_rpc_put_uint(&e, 1, (uint64_t)code);
    xpl_rpc_put_text(&e, 2, text);
    put_bytes(b, ERROR, (xpl_bytes_t){e.p, e.n});
}

// A message is put together in `inner`, because its length goes before it.
static void put_files(struct xpl_buf *b, const struct xpl_rpc_reflection *r, size_t file,
                      struct xpl_buf *inner) {
    const struct file *const f = &r->files[file];
    for (size_t i = 0; i < f->n_needs; i++)
        put_bytes(inner, 1, r->files[f->needs[i]].bytes);
    put_bytes(b, FILES, (xpl_bytes_t){inner->p, inner->n});
}

static void put_services(struct xpl_buf *b, const struct xpl_rpc_reflection *r,
                         struct xpl_buf *inner) {
    for (size_t i = 0; i < r->n_symbols; i++) {
        const struct symbol *const s = &r->symbols[i];
        uint8_t key[24];
        struct xpl_buf k = {.p = key, .cap = sizeof key, .max = sizeof key};
        if (!s->offered) continue;
        xpl_rpc_put_len(&k, 1, s->name.len);
        xpl_rpc_put_len(inner, 1, k.n + s->name.len);
        xpl_buf_put(inner, k.p, k.n);
        xpl_buf_str(inner, s->name);
    }
    put_bytes(b, SERVICES, (xpl_bytes_t){inner->p, inner->n});
}

static const struct symbol *find_symbol(const struct xpl_rpc_reflection *r, xpl_str_t name) {
    if (name.len && name.ptr[0] == '.') name = xpl_str_sub(name, 1, SIZE_MAX);
    for (size_t i = 0; i < r->n_symbols; i++)
        if (xpl_str_eq(r->symbols[i].name, name)) return &r->symbols[i];
    return NULL;
}

static void put_answer(struct xpl_buf *b, const struct xpl_rpc_reflection *r, uint32_t kind,
                       xpl_str_t text, struct xpl_buf *inner) {
    const struct symbol *const s =
        kind == BY_SYMBOL || kind == EXTENSIONS_OF ? find_symbol(r, text) : NULL;
    const size_t file = kind == BY_FILENAME      ? find_file(r, text)
                        : kind == BY_SYMBOL && s ? s->file
                                                 : SIZE_MAX;
    if (file != SIZE_MAX) {
        put_files(b, r, file, inner);
    } else if (kind == LIST_SERVICES) {
        put_services(b, r, inner);
    } else if (kind == EXTENSIONS_OF && s && s->kind == MESSAGE) { // proto3: it has none
        xpl_rpc_put_text(inner, 1, s->name);
        put_bytes(b, EXTENSION_NUMBERS, (xpl_bytes_t){inner->p, inner->n});
    } else if (kind == 0) {
        put_error(b, XPL_INVALID_ARGUMENT, XPL_STR("the request asks nothing"));
    } else {
        put_error(b, XPL_NOT_FOUND, XPL_STR("not found"));
    }
}

xpl_status_t xpl_rpc_reflection_answer(const struct xpl_rpc_reflection *r, xpl_bytes_t request,
                                       struct xpl_buf *ret, struct xpl_error *err) {
    XPL_TRY(xpl_rpc_message_scan(&grpc__reflection__v1__server_reflection_request__descriptor,
                                 request, err));
    struct xpl_rpc_reader reader = xpl_rpc_reader(request);
    struct xpl_rpc_field f;
    uint32_t kind = 0;
    xpl_str_t text = {0}, host = {0};
    while (xpl_rpc_field_next(&reader, &f) == 1) {
        if (f.wire != 2) continue;
        if (f.num == 1) host = xpl_rpc_field_text(&f);
        if (f.num < BY_FILENAME || f.num > LIST_SERVICES) continue;
        kind = f.num, text = xpl_rpc_field_text(&f); // of a oneof the last one counts
    }
    struct xpl_buf inner = xpl_buf_of(MAX_ANSWER);
    xpl_rpc_put_text(ret, VALID_HOST, host);
    put_bytes(ret, ORIGINAL, request);
    put_answer(ret, r, kind, text, &inner);
    const bool failed = inner.failed || ret->failed;
    xpl_buf_fini(&inner);
    if (failed) XPL_RETURN_OOM(err, "reflection");
    return XPL_OK;
}

// ---- serving ----

static void on_message(struct xpl_rpc_call *c, xpl_bytes_t message, void *service) {
    struct xpl_error err = {0};
    struct xpl_buf answer;
    size_t n;
    if (!message.ptr) {
        xpl_rpc_finish_ok(c);
        return;
    }
    if (message.len > MAX_REQUEST) { // each is echoed in its answer
        xpl_rpc_finish_status(c, XPL_INVALID_ARGUMENT, "a name longer than any");
        return;
    }
    xpl_buf_init(&answer, MAX_ANSWER);
    xpl_status_t st = xpl_rpc_reflection_answer(service, message, &answer, &err);
    uint8_t *const bytes = st == XPL_OK ? xpl_buf_take(&answer, &n) : NULL;
    xpl_buf_fini(&answer);
    struct xpl_rpc_blob *const blob = bytes ? xpl_rpc_blob_take(bytes, n) : NULL;
    if (bytes && !blob) xpl_sys_free(bytes);
    if (blob) st = xpl_rpc_send(c, (xpl_bytes_t){0}, blob);
    xpl_rpc_blob_unref(blob);
    if (err.code != XPL_OK)
        xpl_rpc_finish_error(c, &err);
    else if (!blob || st == XPL_RESOURCE_EXHAUSTED)
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for the answer");
}

void xpl_rpc_reflection_get_methods(struct xpl_rpc_reflection *r,
                                    struct xpl_rpc_method ret[XPL_RPC_REFLECTION_METHODS]) {
    static const char *const paths[XPL_RPC_REFLECTION_METHODS] = {
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
    for (size_t i = 0; i < XPL_RPC_REFLECTION_METHODS; i++)
        ret[i] = (struct xpl_rpc_method){.path = paths[i],
                                         .flags = XPL_RPC_NO_AUTH | XPL_RPC_CLIENT_STREAM,
                                         .on_message = on_message,
                                         .service = r};
}
