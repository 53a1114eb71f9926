// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/credentials/answers.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/json_value.h"
#include "base/text/parse.h"
#include "storage/objects/libs.h"
#include "storage/objects/listing.h"

enum { MAX_ARENA = 1 << 20, MAX_TEXT = sizeof((struct xpl_credential *)NULL)->token };

bool xpl_answer_copy(xpl_str_t s, char *ret, size_t size) {
    if (!s.len || s.len >= size) return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~') return false;
    memcpy(ret, s.ptr, s.len);
    ret[s.len] = 0;
    return true;
}

static xpl_status_t set_keys(xpl_str_t access, xpl_str_t secret, xpl_str_t token,
                             struct xpl_credential *ret, struct xpl_error *err) {
    ret->kind = XPL_CREDENTIAL_KEYS;
    if (xpl_answer_copy(access, ret->access, sizeof ret->access) &&
        xpl_answer_copy(secret, ret->secret, sizeof ret->secret) &&
        (!token.len || xpl_answer_copy(token, ret->token, sizeof ret->token)))
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the keys are missing or invalid");
}

static xpl_status_t set_expiry(xpl_str_t text, int64_t *ret, struct xpl_error *err) {
    *ret = xpl_listing_time(text);
    if (*ret) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the response has no expiry time for the keys");
}

// ---- JSON ----

static xpl_status_t read_json(xpl_str_t text, struct xpl_arena *arena, struct xpl_json_value *ret,
                              struct xpl_error *err) {
    const enum xpl_json_result r = xpl_json_value_parse(text, arena, ret);
    if (r == XPL_JSON_OOM) XPL_RETURN_OOM(err, "credentials");
    if (r == XPL_JSON_OK && ret->type == XPL_JSON_OBJECT) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "its content is not a JSON object");
}

// Empty when it is not there, or no string.
static xpl_str_t text_of(const struct xpl_json_value *object, const char *key) {
    const struct xpl_json_value *const v = xpl_json_value_member(object, xpl_str_from(key));
    return v && v->type == XPL_JSON_STRING ? v->text : (xpl_str_t){0};
}

static xpl_status_t read_keys(xpl_str_t text, struct xpl_arena *arena, struct xpl_credential *ret,
                              int64_t *ret_expires_ns, struct xpl_error *err) {
    struct xpl_json_value v;
    XPL_TRY(read_json(text, arena, &v, err));
    const xpl_str_t code = text_of(&v, "Code");
    if (code.len && !xpl_str_eq(code, XPL_STR("Success")))
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "it has none at the moment");
    XPL_TRY(set_keys(text_of(&v, "AccessKeyId"), text_of(&v, "SecretAccessKey"),
                     text_of(&v, "Token"), ret, err));
    return set_expiry(text_of(&v, "Expiration"), ret_expires_ns, err);
}

xpl_status_t xpl_answer_keys(xpl_str_t text, struct xpl_credential *ret, int64_t *ret_expires_ns,
                             struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_ARENA);
    const xpl_status_t st = read_keys(text, &arena, ret, ret_expires_ns, err);
    xpl_arena_wipe(&arena);
    return st;
}

static xpl_status_t read_bearer(xpl_str_t text, struct xpl_arena *arena, int64_t now_ns,
                                struct xpl_credential *ret, int64_t *ret_expires_ns,
                                struct xpl_error *err) {
    struct xpl_json_value v;
    int64_t seconds = 0;
    XPL_TRY(read_json(text, arena, &v, err));
    const struct xpl_json_value *const expires = xpl_json_value_member(&v, XPL_STR("expires_in"));
    ret->kind = XPL_CREDENTIAL_BEARER;
    if (!xpl_answer_copy(text_of(&v, "access_token"), ret->token, sizeof ret->token))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the token is missing or invalid");
    if (!expires || expires->type != XPL_JSON_INT ||
        !xpl_parse_int(expires->text, 1, 86400 * 365, &seconds))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "it is not said when the token expires");
    *ret_expires_ns = now_ns + seconds * 1000000000;
    return XPL_OK;
}

xpl_status_t xpl_answer_bearer(xpl_str_t text, int64_t now_ns, struct xpl_credential *ret,
                               int64_t *ret_expires_ns, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_ARENA);
    const xpl_status_t st = read_bearer(text, &arena, now_ns, ret, ret_expires_ns, err);
    xpl_arena_wipe(&arena);
    return st;
}

// ---- files of Google's tools ----

static xpl_status_t read_user(const struct xpl_json_value *v, struct xpl_answer_google *ret,
                              struct xpl_error *err) {
    ret->type = XPL_ANSWER_USER;
    if (xpl_answer_copy(text_of(v, "client_id"), ret->client, sizeof ret->client) &&
        xpl_answer_copy(text_of(v, "client_secret"), ret->secret, sizeof ret->secret) &&
        xpl_answer_copy(text_of(v, "refresh_token"), ret->refresh, sizeof ret->refresh))
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "client_id, client_secret or refresh_token is invalid");
}

// As xpl_answer_copy, of lines.
static bool copy_lines(xpl_str_t s, char *ret, size_t size) {
    if (!s.len || s.len >= size) return false;
    for (size_t i = 0; i < s.len; i++)
        if ((s.ptr[i] < ' ' || s.ptr[i] > '~') && !strchr("\r\n", s.ptr[i])) return false;
    memcpy(ret, s.ptr, s.len);
    ret[s.len] = 0;
    return !memchr(ret, 0, s.len);
}

static xpl_status_t read_key_file(const struct xpl_json_value *v, struct xpl_answer_google *ret,
                                  struct xpl_error *err) {
    const xpl_str_t id = text_of(v, "private_key_id");
    ret->type = XPL_ANSWER_KEY;
    if (!xpl_answer_copy(text_of(v, "client_email"), ret->client, sizeof ret->client) ||
        (id.len && !xpl_answer_copy(id, ret->key_id, sizeof ret->key_id)))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "client_email or private_key_id is invalid");
    if (copy_lines(text_of(v, "private_key"), ret->key, sizeof ret->key)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "private_key is invalid");
}

static xpl_status_t read_google(xpl_str_t text, struct xpl_arena *arena,
                                struct xpl_answer_google *ret, struct xpl_error *err) {
    static const struct {
        const char *type;
        xpl_status_t (*read)(const struct xpl_json_value *v, struct xpl_answer_google *ret,
                             struct xpl_error *err);
    } types[] = {{"authorized_user", read_user}, {"service_account", read_key_file}};
    struct xpl_json_value v;
    XPL_TRY(read_json(text, arena, &v, err));
    const xpl_str_t type = text_of(&v, "type"), uri = text_of(&v, "token_uri");
    if (uri.len && !xpl_answer_copy(uri, ret->token_uri, sizeof ret->token_uri))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "token_uri is invalid");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (xpl_str_eq(type, xpl_str_from(types[i].type))) return types[i].read(&v, ret, err);
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "type is neither authorized_user nor service_account: others are not read");
}

xpl_status_t xpl_answer_google(xpl_str_t text, struct xpl_answer_google *ret,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_ARENA);
    memset(ret, 0, sizeof *ret);
    const xpl_status_t st = read_google(text, &arena, ret, err);
    xpl_arena_wipe(&arena);
    return st;
}

// ---- XML ----

struct text {
    size_t n;
    char v[MAX_TEXT];
};

struct sts {
    const struct xpl_expat *x;
    XML_Parser parser;
    bool refused;
    unsigned depth, inside; // the depth of Credentials; 0: not within
    struct text *field;
    struct text access, secret, token, expires;
};

static void refuse_sts(struct sts *s) {
    s->refused = true;
    (void)s->x->StopParser(s->parser, XML_FALSE);
}

static struct text *field_of(struct sts *s, const char *name) {
    if (strcmp(name, "AccessKeyId") == 0) return &s->access;
    if (strcmp(name, "SecretAccessKey") == 0) return &s->secret;
    if (strcmp(name, "SessionToken") == 0) return &s->token;
    return strcmp(name, "Expiration") == 0 ? &s->expires : NULL;
}

static void on_start(void *arg, const char *name, const char **attributes) {
    struct sts *const s = arg;
    (void)attributes;
    s->depth++;
    s->field = s->inside && s->depth == s->inside + 1 ? field_of(s, name) : NULL;
    if (s->field && s->field->n) refuse_sts(s); // a duplicate
    if (!s->inside && strcmp(name, "Credentials") == 0) s->inside = s->depth;
}

static void on_end(void *arg, const char *name) {
    struct sts *const s = arg;
    (void)name;
    s->field = NULL;
    if (s->depth-- == s->inside) s->inside = 0;
}

static void on_text(void *arg, const char *p, int len) {
    struct sts *const s = arg;
    const size_t n = (size_t)len;
    if (!s->field) return;
    if (n > MAX_TEXT - s->field->n) {
        refuse_sts(s);
        return;
    }
    memcpy(s->field->v + s->field->n, p, n);
    s->field->n += n;
}

static void on_doctype(void *arg, const char *name, const char *system_id, const char *public_id,
                       int has_subset) {
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    refuse_sts(arg);
}

static xpl_str_t view(const struct text *t) {
    return (xpl_str_t){t->v, t->n};
}

static xpl_status_t read_sts(struct sts *s, xpl_str_t text, struct xpl_credential *ret,
                             int64_t *ret_expires_ns, struct xpl_error *err) {
    if (!(s->parser = s->x->ParserCreate_MM(NULL, &xpl_expat_memory, NULL)))
        XPL_RETURN_OOM(err, "credentials");
    s->x->SetUserData(s->parser, s);
    s->x->SetElementHandler(s->parser, on_start, on_end);
    s->x->SetCharacterDataHandler(s->parser, on_text);
    s->x->SetStartDoctypeDeclHandler(s->parser, on_doctype);
    const bool good = text.len <= INT32_MAX &&
                      s->x->Parse(s->parser, text.ptr, (int)text.len, 1) == XML_STATUS_OK;
    if (!good && s->x->GetErrorCode(s->parser) == XML_ERROR_NO_MEMORY)
        XPL_RETURN_OOM(err, "credentials");
    if (!good || s->refused)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "its content is not valid XML of credentials");
    XPL_TRY(set_keys(view(&s->access), view(&s->secret), view(&s->token), ret, err));
    return set_expiry(view(&s->expires), ret_expires_ns, err);
}

xpl_status_t xpl_answer_sts(xpl_str_t text, struct xpl_credential *ret, int64_t *ret_expires_ns,
                            struct xpl_error *err) {
    const struct xpl_expat *x;
    XPL_TRY(xpl_expat_load(&x, err));
    struct sts *const s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "credentials");
    memset(s, 0, sizeof *s);
    s->x = x;
    const xpl_status_t st = read_sts(s, text, ret, ret_expires_ns, err);
    if (s->parser) x->ParserFree(s->parser);
    explicit_bzero(s, sizeof *s);
    xpl_sys_free(s);
    return st;
}

// ---- shared files ----

struct profile {
    bool found, here;
    xpl_str_t access, secret, token;
};

static void read_line(struct profile *p, xpl_str_t line, xpl_str_t wanted) {
    // Indented lines belong to a nested setting.
    const bool indented = line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t');
    line = xpl_str_strip(line);
    if (!line.len || indented || line.ptr[0] == '#' || line.ptr[0] == ';') return;
    if (line.ptr[0] == '[') {
        const size_t end = xpl_str_find(line, XPL_STR("]"), 0);
        p->here =
            end != SIZE_MAX && xpl_str_eq(xpl_str_strip(xpl_str_sub(line, 1, end - 1)), wanted);
        p->found |= p->here;
        return;
    }
    const size_t eq = xpl_str_find(line, XPL_STR("="), 0);
    if (!p->here || eq == SIZE_MAX) return;
    const xpl_str_t name = xpl_str_strip(xpl_str_sub(line, 0, eq));
    const xpl_str_t value = xpl_str_strip(xpl_str_sub(line, eq + 1, SIZE_MAX));
    if (xpl_str_eq(name, XPL_STR("aws_access_key_id"))) p->access = value;
    if (xpl_str_eq(name, XPL_STR("aws_secret_access_key"))) p->secret = value;
    if (xpl_str_eq(name, XPL_STR("aws_session_token"))) p->token = value;
}

xpl_status_t xpl_answer_profile(xpl_str_t text, xpl_str_t profile, struct xpl_credential *ret,
                                struct xpl_error *err) {
    struct profile p = {.found = false};
    for (size_t at = 0, end; at < text.len; at = end + 1) {
        end = xpl_str_find(text, XPL_STR("\n"), at);
        if (end == SIZE_MAX) end = text.len;
        read_line(&p, xpl_str_sub(text, at, end - at), profile);
    }
    if (!p.found) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "it has no such profile");
    return set_keys(p.access, p.secret, p.token, ret, err);
}
