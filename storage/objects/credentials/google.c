// SPDX-License-Identifier: Apache-2.0
// Where credentials of Google Cloud Storage come from.
#include <stdio.h>
#include <strings.h>

#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/issuer.h"

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
    {"the machine", machine_is_set, machine_fetch},
};
const size_t xpl_n_issuers_google = sizeof xpl_issuers_google / sizeof *xpl_issuers_google;
