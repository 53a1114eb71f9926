// SPDX-License-Identifier: Apache-2.0
// Where keys of S3 come from, as Amazon's own clients take them.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/issuer.h"

enum { MAX_HEADER = 8 << 10, MAX_URL = 1024 };

// ---- the shared file ----

static bool shared_path(char ret[PATH_MAX]) {
    const char *const named = xpl_issuer_variable("AWS_SHARED_CREDENTIALS_FILE");
    const char *const home = xpl_issuer_variable("HOME");
    if (!named && !home) return false;
    const int n = named ? snprintf(ret, PATH_MAX, "%s", named)
                        : snprintf(ret, PATH_MAX, "%s/.aws/credentials", home);
    return n < PATH_MAX;
}

static xpl_status_t shared_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                 int64_t *ret_expires_ns, struct xpl_error *err) {
    char path[PATH_MAX];
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0};
    const char *const profile = xpl_issuer_variable("AWS_PROFILE");
    (void)c;
    if (!shared_path(path)) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "its path is too long");
    XPL_TRY(xpl_issuer_text_init(&text, err));
    XPL_TRY(xpl_issuer_read_file(path, "it", &text, err));
    *ret_expires_ns = xpl_unix_ns() + XPL_ISSUER_FILE_NS;
    return xpl_answer_profile((xpl_str_t){(char *)text.p, text.n},
                              xpl_str_from(profile ? profile : "default"), ret, err);
}

// One that is named must do; the usual one, where it has keys.
static bool shared_is_set(void) {
    struct xpl_credential unused;
    struct xpl_error err;
    int64_t expires_ns;
    if (xpl_issuer_variable("AWS_SHARED_CREDENTIALS_FILE") || xpl_issuer_variable("AWS_PROFILE"))
        return true;
    const bool is = shared_fetch(NULL, &unused, &expires_ns, &err) == XPL_OK;
    explicit_bzero(&unused, sizeof unused);
    return is;
}

// ---- web identity ----

static bool web_is_set(void) {
    return xpl_issuer_variable("AWS_WEB_IDENTITY_TOKEN_FILE") &&
           xpl_issuer_variable("AWS_ROLE_ARN");
}

static xpl_status_t sts_url(const struct xpl_issuer_context *c, char ret[MAX_URL], bool *ret_direct,
                            struct xpl_error *err) {
    const char *const own = xpl_issuer_variable("AWS_ENDPOINT_URL_STS");
    const int n = own ? snprintf(ret, MAX_URL, "%s", own)
                      : snprintf(ret, MAX_URL, "https://sts.%s.%s/", c->region,
                                 xpl_location_amazon(c->region));
    if (n < MAX_URL && xpl_issuer_is_safe_url(ret, NULL, ret_direct)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "AWS_ENDPOINT_URL_STS: write https://HOST:PORT, or http:// for loopback");
}

static xpl_status_t web_form(struct xpl_buf *token, struct xpl_buf *ret, struct xpl_error *err) {
    const char *const name = xpl_issuer_variable("AWS_ROLE_SESSION_NAME");
    XPL_TRY(xpl_issuer_read_file(xpl_issuer_variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
                                 "AWS_WEB_IDENTITY_TOKEN_FILE", token, err));
    xpl_issuer_put_form(ret, "Action", XPL_STR("AssumeRoleWithWebIdentity"));
    xpl_issuer_put_form(ret, "Version", XPL_STR("2011-06-15"));
    xpl_issuer_put_form(ret, "RoleArn", xpl_str_from(xpl_issuer_variable("AWS_ROLE_ARN")));
    xpl_issuer_put_form(ret, "RoleSessionName", xpl_str_from(name ? name : "xplaned"));
    xpl_issuer_put_form(ret, "WebIdentityToken",
                        xpl_str_strip((xpl_str_t){(char *)token->p, token->n}));
    if (!ret->failed) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "AWS_WEB_IDENTITY_TOKEN_FILE is too long");
}

// `token` becomes the answer.
static xpl_status_t web_ask(const struct xpl_issuer_context *c, struct xpl_buf *token,
                            struct xpl_buf *form, struct xpl_error *err) {
    char url[MAX_URL];
    bool direct = false;
    XPL_TRY(sts_url(c, url, &direct, err));
    XPL_TRY(web_form(token, form, err));
    return xpl_issuer_post(c, url, "STS", direct, form, token, err);
}

static xpl_status_t web_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                              int64_t *ret_expires_ns, struct xpl_error *err) {
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0}, form = {0};
    XPL_TRY(xpl_issuer_text_init(&text, err));
    XPL_TRY(xpl_issuer_text_init(&form, err));
    XPL_TRY(web_ask(c, &text, &form, err));
    return xpl_answer_sts((xpl_str_t){(char *)text.p, text.n}, ret, ret_expires_ns, err);
}

// ---- containers: ECS, EKS Pod Identity ----

static bool container_is_set(void) {
    return xpl_issuer_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
           xpl_issuer_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

static xpl_status_t container_url(char ret[MAX_URL], bool *ret_direct, struct xpl_error *err) {
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", NULL};
    const char *const relative = xpl_issuer_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const int n = relative ? snprintf(ret, MAX_URL, "http://169.254.170.2%s%s",
                                      relative[0] == '/' ? "" : "/", relative)
                           : snprintf(ret, MAX_URL, "%s",
                                      xpl_issuer_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
    if (n < MAX_URL && xpl_issuer_is_safe_url(ret, hosts, ret_direct)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI: it must be https://, or of loopback, "
                     "169.254.170.2, 169.254.170.23 or [fd00:ec2::23]");
}

// The header with the token, if there is one; `text` is room for its file.
static xpl_status_t container_header(struct xpl_buf *text, char ret[MAX_HEADER],
                                     struct xpl_error *err) {
    const char *const file = xpl_issuer_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *const value = xpl_issuer_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    xpl_str_t token = value ? xpl_str_from(value) : (xpl_str_t){0};
    ret[0] = 0;
    if (file) {
        XPL_TRY(xpl_issuer_read_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", text, err));
        token = (xpl_str_t){(char *)text->p, text->n};
    }
    token = xpl_str_strip(token);
    if (!token.len && !file) return XPL_OK;
    const int n = snprintf(ret, MAX_HEADER, "Authorization: ");
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] < ' ' || token.ptr[i] > '~') token.len = 0;
    if (token.len && token.len < (size_t)(MAX_HEADER - n)) {
        memcpy(ret + n, token.ptr, token.len);
        ret[(size_t)n + token.len] = 0;
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "the container's token is empty, too long, or has control characters");
}

static xpl_status_t container_ask(const struct xpl_issuer_context *c, struct xpl_buf *text,
                                  char header[MAX_HEADER], struct xpl_error *err) {
    char url[MAX_URL];
    bool direct = false;
    XPL_TRY(container_url(url, &direct, err));
    XPL_TRY(container_header(text, header, err));
    struct xpl_transfer v = {.url = url,
                             .shown = "the container's service",
                             .headers = {header},
                             .n_headers = header[0] ? 1 : 0,
                             .direct = direct,
                             .max_tries = 3,
                             .max_s = 5};
    return xpl_issuer_ask(c, &v, text, err);
}

static xpl_status_t container_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                    int64_t *ret_expires_ns, struct xpl_error *err) {
    char header[MAX_HEADER] = "";
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0};
    XPL_TRY(xpl_issuer_text_init(&text, err));
    const xpl_status_t st = container_ask(c, &text, header, err);
    explicit_bzero(header, sizeof header);
    if (st != XPL_OK) return st;
    return xpl_answer_keys((xpl_str_t){(char *)text.p, text.n}, ret, ret_expires_ns, err);
}

// ---- metadata of instances (IMDSv2) ----

static bool instance_is_set(void) {
    const char *const off = xpl_issuer_variable("AWS_EC2_METADATA_DISABLED");
    return !off || strcasecmp(off, "true") != 0;
}

struct instance {
    const struct xpl_issuer_context *c;
    struct xpl_buf *text; // the last answer
    char endpoint[MAX_URL / 2];
    char header[MAX_HEADER]; // with the token
    bool direct;
};

static xpl_status_t instance_ask(struct instance *s, const char *path, const char *header,
                                 const char *method, struct xpl_error *err) {
    char url[MAX_URL];
    (void)snprintf(url, sizeof url, "%s%s", s->endpoint, path);
    struct xpl_transfer v = {.url = url,
                             .shown = "the instance's metadata",
                             .headers = {header},
                             .n_headers = 1,
                             .method = method,
                             .direct = s->direct,
                             .max_tries = 2,
                             .max_s = 2};
    return xpl_issuer_ask(s->c, &v, s->text, err);
}

// Their first line, as a header or a name of a role may have it.
static bool take_line(const struct xpl_buf *text, char *ret, size_t size) {
    const xpl_str_t all = {(char *)text->p, text->n};
    return xpl_answer_copy(xpl_str_strip(xpl_str_sub(all, 0, xpl_str_find(all, XPL_STR("\n"), 0))),
                           ret, size);
}

static xpl_status_t instance_talk(struct instance *s, struct xpl_error *err) {
    static const char path[] = "/latest/meta-data/iam/security-credentials/", //
        name[] = "X-aws-ec2-metadata-token: ";
    char role[129], role_path[sizeof path + sizeof role];
    XPL_TRY(instance_ask(s, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 300", "PUT",
                         err));
    (void)strcpy(s->header, name);
    if (!take_line(s->text, s->header + sizeof name - 1, sizeof s->header - sizeof name))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the instance's metadata: invalid token");
    XPL_TRY(instance_ask(s, path, s->header, NULL, err));
    if (!take_line(s->text, role, sizeof role) || strpbrk(role, "/?#%\\"))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "the instance's metadata: no name of a role");
    (void)snprintf(role_path, sizeof role_path, "%s%s", path, role);
    return instance_ask(s, role_path, s->header, NULL, err);
}

static xpl_status_t instance_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                   int64_t *ret_expires_ns, struct xpl_error *err) {
    static const char *const hosts[] = {"169.254.169.254", "[fd00:ec2::254]", NULL};
    const char *const own = xpl_issuer_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0};
    struct instance s = {.c = c, .text = &text};
    int n = snprintf(s.endpoint, sizeof s.endpoint, "%s", own ? own : "http://169.254.169.254");
    if (n >= (int)sizeof s.endpoint || !xpl_issuer_is_safe_url(s.endpoint, hosts, &s.direct))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "AWS_EC2_METADATA_SERVICE_ENDPOINT: it must be https://, or of loopback, "
                         "169.254.169.254 or [fd00:ec2::254]");
    if (s.endpoint[n - 1] == '/') s.endpoint[n - 1] = 0;
    XPL_TRY(xpl_issuer_text_init(&text, err));
    const xpl_status_t st = instance_talk(&s, err);
    explicit_bzero(&s, sizeof s);
    if (st != XPL_OK) return st;
    return xpl_answer_keys((xpl_str_t){(char *)text.p, text.n}, ret, ret_expires_ns, err);
}

const struct xpl_credential_issuer xpl_issuers_aws[] = {
    {"the environment", xpl_issuer_env_is_set, xpl_issuer_env_fetch_session},
    {"web identity", web_is_set, web_fetch},
    {"the shared file", shared_is_set, shared_fetch},
    {"the container", container_is_set, container_fetch},
    {"the instance", instance_is_set, instance_fetch},
};
const size_t xpl_n_issuers_aws = sizeof xpl_issuers_aws / sizeof *xpl_issuers_aws;
