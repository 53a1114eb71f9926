// SPDX-License-Identifier: Apache-2.0
// Where credentials of Google Cloud Storage come from.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/assertion.h"
#include "storage/objects/credentials/issuer.h"

// ---- files of Google's tools ----

#define VARIABLE "GOOGLE_APPLICATION_CREDENTIALS"
#define FILENAME "application_default_credentials.json"

// For sentences, which have no paths.
static const char *file_name(void) {
    return xpl_issuer_variable(VARIABLE) ? "the file of " VARIABLE : FILENAME;
}

static bool file_path(char ret[PATH_MAX]) {
    const char *const named = xpl_issuer_variable(VARIABLE);
    const char *const folder = xpl_issuer_variable("CLOUDSDK_CONFIG");
    const char *const home = xpl_issuer_variable("HOME");
    if (!named && !folder && !home) return false;
    const int n = named    ? snprintf(ret, PATH_MAX, "%s", named)
                  : folder ? snprintf(ret, PATH_MAX, "%s/" FILENAME, folder)
                           : snprintf(ret, PATH_MAX, "%s/.config/gcloud/" FILENAME, home);
    return n < PATH_MAX;
}

// One that is named must do; the usual one, where it is there.
static bool file_is_set(void) {
    char path[PATH_MAX];
    return xpl_issuer_variable(VARIABLE) || (file_path(path) && access(path, R_OK) == 0);
}

static void put_user(const struct xpl_answer_google *of, struct xpl_buf *form) {
    xpl_issuer_put_form(form, "grant_type", XPL_STR("refresh_token"));
    xpl_issuer_put_form(form, "client_id", xpl_str_from(of->client));
    xpl_issuer_put_form(form, "client_secret", xpl_str_from(of->secret));
    xpl_issuer_put_form(form, "refresh_token", xpl_str_from(of->refresh));
}

static xpl_status_t put_assertion(const struct xpl_answer_google *of, const char *url,
                                  struct xpl_buf *form, struct xpl_error *err) {
    const struct xpl_assertion a = {.key = of->key,
                                    .key_id = of->key_id,
                                    .issuer = of->client,
                                    .audience = url,
                                    .scope =
                                        "https://www.googleapis.com/auth/devstorage.read_write",
                                    .now_s = xpl_unix_ns() / 1000000000};
    struct xpl_buf text;
    XPL_TRY(xpl_issuer_text_init(&text, err));
    const xpl_status_t st = xpl_assertion_put(&a, &text, err);
    xpl_issuer_put_form(form, "grant_type", XPL_STR("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    xpl_issuer_put_form(form, "assertion", (xpl_str_t){(char *)text.p, text.n});
    xpl_issuer_text_fini(&text);
    return st;
}

// `text` becomes the answer.
static xpl_status_t file_ask(const struct xpl_issuer_context *c, const struct xpl_answer_google *of,
                             struct xpl_buf *form, struct xpl_buf *text, struct xpl_error *err) {
    const char *const url =
        of->token_uri[0] ? of->token_uri : "https://oauth2.googleapis.com/token";
    bool direct = false;
    if (!xpl_issuer_is_safe_url(url, NULL, &direct))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "token_uri must be https://, or http:// of loopback");
    if (of->type == XPL_ANSWER_KEY)
        XPL_TRY(put_assertion(of, url, form, err));
    else
        put_user(of, form);
    return xpl_issuer_post(c, url, "Google's token service", direct, form, text, err);
}

static xpl_status_t file_talk(const struct xpl_issuer_context *c, struct xpl_buf *form,
                              struct xpl_buf *text, struct xpl_error *err) {
    char path[PATH_MAX];
    struct xpl_answer_google of;
    struct xpl_error why = {0};
    if (!file_path(path)) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "its path is too long");
    XPL_TRY(xpl_issuer_read_file(path, file_name(), text, err));
    xpl_status_t st = xpl_answer_google((xpl_str_t){(char *)text->p, text->n}, &of, &why);
    if (st == XPL_OK) st = file_ask(c, &of, form, text, &why);
    explicit_bzero(&of, sizeof of);
    if (st == XPL_OK) return XPL_OK;
    XPL_RETURN_ERROR(err, st, "%s: %s", file_name(), why.msg);
}

static xpl_status_t file_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                               int64_t *ret_expires_ns, struct xpl_error *err) {
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0}, form = {0};
    const int64_t now = xpl_unix_ns();
    XPL_TRY(xpl_issuer_text_init(&text, err));
    XPL_TRY(xpl_issuer_text_init(&form, err));
    XPL_TRY(file_talk(c, &form, &text, err));
    return xpl_answer_bearer((xpl_str_t){(char *)text.p, text.n}, now, ret, ret_expires_ns, err);
}

// ---- metadata of machines ----

static bool machine_is_set(void) {
    const char *const off = xpl_issuer_variable("NO_GCE_CHECK");
    return !off || strcasecmp(off, "true") != 0;
}

static xpl_status_t machine_ask(const struct xpl_issuer_context *c, struct xpl_buf *answer,
                                struct xpl_error *err) {
    char url[512];
    bool direct = false;
    const char *const own = xpl_issuer_variable("GCE_METADATA_HOST");
    const char *const hosts[] = {own ? own : "metadata.google.internal", NULL};
    const int n =
        snprintf(url, sizeof url,
                 "http://%s/computeMetadata/v1/instance/service-accounts/default/token", hosts[0]);
    if (n >= (int)sizeof url || !xpl_issuer_is_safe_url(url, hosts, &direct))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "GCE_METADATA_HOST: write HOST:PORT");
    struct xpl_transfer v = {.url = url,
                             .shown = "the machine's metadata",
                             .headers = {"Metadata-Flavor: Google"},
                             .n_headers = 1,
                             .direct = true,
                             .max_tries = 3,
                             .max_s = 3};
    return xpl_issuer_ask(c, &v, answer, err);
}

static xpl_status_t machine_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                  int64_t *ret_expires_ns, struct xpl_error *err) {
    XPL_AUTO(xpl_issuer_text_fini) struct xpl_buf text = {0};
    XPL_TRY(xpl_issuer_text_init(&text, err));
    const int64_t now = xpl_unix_ns();
    XPL_TRY(machine_ask(c, &text, err));
    return xpl_answer_bearer((xpl_str_t){(char *)text.p, text.n}, now, ret, ret_expires_ns, err);
}

const struct xpl_credential_issuer xpl_issuers_google[] = {
    {"the environment", xpl_issuer_env_is_set, xpl_issuer_env_fetch},
    {"Google's file", file_is_set, file_fetch},
    {"the machine", machine_is_set, machine_fetch},
};
const size_t xpl_n_issuers_google = sizeof xpl_issuers_google / sizeof *xpl_issuers_google;
