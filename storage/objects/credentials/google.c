// SPDX-License-Identifier: Apache-2.0
// Where credentials of Google Cloud Storage come from.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/issuer.h"

// ---- users of Google's tools ----

static bool user_path(char ret[PATH_MAX]) {
    static const char name[] = "application_default_credentials.json";
    const char *const named = xpl_issuer_variable("GOOGLE_APPLICATION_CREDENTIALS");
    const char *const folder = xpl_issuer_variable("CLOUDSDK_CONFIG");
    const char *const home = xpl_issuer_variable("HOME");
    if (!named && !folder && !home) return false;
    const int n = named    ? snprintf(ret, PATH_MAX, "%s", named)
                  : folder ? snprintf(ret, PATH_MAX, "%s/%s", folder, name)
                           : snprintf(ret, PATH_MAX, "%s/.config/gcloud/%s", home, name);
    return n < PATH_MAX;
}

// One that is named must do; the usual one, where it is there.
static bool user_is_set(void) {
    char path[PATH_MAX];
    return xpl_issuer_variable("GOOGLE_APPLICATION_CREDENTIALS") ||
           (user_path(path) && access(path, R_OK) == 0);
}

// `text` becomes the answer.
static xpl_status_t user_ask(const struct xpl_issuer_context *c, const struct xpl_answer_user *user,
                             struct xpl_buf *form, struct xpl_buf *text, struct xpl_error *err) {
    const char *const url =
        user->token_uri[0] ? user->token_uri : "https://oauth2.googleapis.com/token";
    bool direct = false;
    if (!xpl_issuer_is_safe_url(url, NULL, &direct))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "its token_uri must be https://, or http:// of loopback");
    xpl_issuer_put_form(form, "grant_type", XPL_STR("refresh_token"));
    xpl_issuer_put_form(form, "client_id", xpl_str_from(user->client));
    xpl_issuer_put_form(form, "client_secret", xpl_str_from(user->secret));
    xpl_issuer_put_form(form, "refresh_token", xpl_str_from(user->refresh));
    struct xpl_transfer v = {.url = url,
                             .shown = "Google's token service",
                             .headers = {"Content-Type: application/x-www-form-urlencoded"},
                             .n_headers = 1,
                             .method = "POST",
                             .from = (char *)form->p,
                             .from_n = form->n,
                             .direct = direct,
                             .max_tries = 3,
                             .max_s = 10};
    return xpl_issuer_ask(c, &v, text, err);
}

static xpl_status_t user_talk(const struct xpl_issuer_context *c, struct xpl_buf *form,
                              struct xpl_buf *text, struct xpl_error *err) {
    char path[PATH_MAX];
    struct xpl_answer_user user;
    if (!user_path(path)) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "its path is too long");
    XPL_TRY(xpl_issuer_read_file(path, "it", text, err));
    xpl_status_t st = xpl_answer_user((xpl_str_t){(char *)text->p, text->n}, &user, err);
    if (st == XPL_OK) st = user_ask(c, &user, form, text, err);
    explicit_bzero(&user, sizeof user);
    return st;
}

static xpl_status_t user_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                               int64_t *ret_expires_ns, struct xpl_error *err) {
    struct xpl_buf text, form;
    const int64_t now = xpl_issuer_now_ns();
    XPL_TRY(xpl_issuer_text_init(&text, err));
    xpl_status_t st = xpl_issuer_text_init(&form, err);
    if (st == XPL_OK) {
        st = user_talk(c, &form, &text, err);
        xpl_issuer_text_fini(&form);
    }
    if (st == XPL_OK)
        st = xpl_answer_bearer((xpl_str_t){(char *)text.p, text.n}, now, ret, ret_expires_ns, err);
    xpl_issuer_text_fini(&text);
    return st;
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
    struct xpl_buf text;
    XPL_TRY(xpl_issuer_text_init(&text, err));
    const int64_t now = xpl_issuer_now_ns();
    xpl_status_t st = machine_ask(c, &text, err);
    if (st == XPL_OK)
        st = xpl_answer_bearer((xpl_str_t){(char *)text.p, text.n}, now, ret, ret_expires_ns, err);
    xpl_issuer_text_fini(&text);
    return st;
}

const struct xpl_credential_issuer xpl_issuers_google[] = {
    {"the environment", xpl_issuer_env_is_set, xpl_issuer_env_fetch},
    {"Google's file", user_is_set, user_fetch},
    {"the machine", machine_is_set, machine_fetch},
};
const size_t xpl_n_issuers_google = sizeof xpl_issuers_google / sizeof *xpl_issuers_google;
