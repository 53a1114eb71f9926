// SPDX-License-Identifier: Apache-2.0
// Credentials of each source: good, renewed, and of services that fail; no error has a secret.
#include "storage/objects/credentials.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "storage/objects/credentials/issuer.h"
#include "storage/objects/transfer.h"
#include "tests/unit/objects/credential_server.h"

#define SECRET "sEcReT+of/tests="
#define TOKEN  "tOkEn/of+tests=="

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static struct xpl_transfers *transfers;
static char warned[400];

// The clock by which credentials expire, ahead of the services'.
static atomic_int ahead_s;

int clock_gettime(clockid_t clock, struct timespec *ret) {
    const int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_REALTIME) ret->tv_sec += atomic_load(&ahead_s);
    return rc;
}

static const char *path_of(const char *name) {
    static char path[100];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put_file(const char *name, const char *text) {
    FILE *const f = fopen(path_of(name), "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void set(const char *name, const char *value) {
    CHECK_EQ(setenv(name, value, 1), 0);
}

// SCHEME, the service, and PATH.
static void set_url(const char *name, const char *scheme, const char *path) {
    char url[200];
    (void)snprintf(url, sizeof url, "%s127.0.0.1:%d%s", scheme, service.port, path);
    set(name, url);
}

// Clears the settings of earlier tests and of the environment.
static void clear(void) {
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_PROFILE",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "AWS_ROLE_SESSION_NAME",
                                        "AWS_ENDPOINT_URL_STS",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                        "GCE_METADATA_HOST",
                                        "GOOGLE_APPLICATION_CREDENTIALS",
                                        "CLOUDSDK_CONFIG",
                                        "http_proxy",
                                        "https_proxy",
                                        "all_proxy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_EQ(unsetenv(names[i]), 0);
    set("AWS_EC2_METADATA_DISABLED", "true");
    set("NO_GCE_CHECK", "true");
    set("HOME", dir);
    clear_service();
    warned[0] = 0;
}

static void warn(void *arg, const char *text) {
    CHECK(arg == &transfers);
    CHECK(!strstr(text, SECRET) && !strstr(text, TOKEN));
    (void)snprintf(warned, sizeof warned, "%s", text);
}

static xpl_status_t make(enum xpl_object_service of, struct xpl_credentials **ret,
                         struct xpl_error *err) {
    const struct xpl_credentials_options o = {.service = of,
                                              .region = "eu-west-1",
                                              .transfers = transfers,
                                              .warn = warn,
                                              .arg = &transfers,
                                              .retry_ns = 1};
    return xpl_credentials_new(&o, ret, err);
}

static struct xpl_credentials *made(enum xpl_object_service of) {
    struct xpl_credentials *c = NULL;
    struct xpl_error err = {0};
    CHECK_OK(make(of, &c, &err), &err);
    return c;
}

static void check_keys(struct xpl_credentials *c, const char *access, const char *token) {
    struct xpl_credential got = {.kind = XPL_CREDENTIAL_NONE};
    struct xpl_error err = {0};
    CHECK_OK(xpl_credentials_get(c, &got, &err), &err);
    CHECK_EQ(got.kind, XPL_CREDENTIAL_KEYS);
    CHECK_STR(xpl_str_from(got.access), xpl_str_from(access));
    CHECK_STR(xpl_str_from(got.secret), XPL_STR(SECRET));
    CHECK_STR(xpl_str_from(got.token), xpl_str_from(token));
}

// Fails, and says that and nothing secret.
static void check_failure(struct xpl_credentials *c, xpl_status_t code, const char *why) {
    struct xpl_credential got;
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_credentials_get(c, &got, &err), code, &err);
    if (!strstr(err.msg, why)) (void)fprintf(stderr, "%s\n", err.msg);
    CHECK(strstr(err.msg, why) && strstr(err.msg, "credentials by "));
    CHECK(!strstr(err.msg, SECRET) && !strstr(err.msg, TOKEN));
}

static void check_once(enum xpl_object_service of, xpl_status_t code, const char *why) {
    struct xpl_credentials *const c = made(of);
    check_failure(c, code, why);
    xpl_credentials_free(c);
}

// ---- the environment, and nothing ----

static void test_environment(void) {
    struct xpl_credentials *c = NULL;
    struct xpl_error err = {0};
    clear();
    CHECK_STATUS(make(XPL_OBJECTS_S3, &c, &err), XPL_FAILED_PRECONDITION, &err);
    CHECK(strstr(err.msg, "AWS_ACCESS_KEY_ID"));
    set("AWS_ACCESS_KEY_ID", "AKID");
    set("AWS_SECRET_ACCESS_KEY", SECRET);
    set("AWS_SESSION_TOKEN", TOKEN);
    check_keys(c = made(XPL_OBJECTS_S3), "AKID", TOKEN);
    xpl_credentials_free(c);
    check_keys(c = made(XPL_OBJECTS_GCS), "AKID", "");
    xpl_credentials_free(c);
    set("AWS_SECRET_ACCESS_KEY", SECRET "\r\nX: y");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "AWS_SECRET_ACCESS_KEY");
}

// ---- the shared file ----

static void test_shared_file(void) {
    struct xpl_credentials *c = NULL;
    struct xpl_error err = {0};
    clear();
    put_file("keys", "# keys\r\n[default]\r\naws_access_key_id = ONE\r\n"
                     "aws_secret_access_key=" SECRET "\r\ns3 =\n  aws_access_key_id = NO\n\n"
                     "[ other ]\naws_access_key_id=TWO\naws_session_token = " TOKEN
                     "\naws_secret_access_key = " SECRET "\n[half]\naws_access_key_id = X\n");
    set("AWS_SHARED_CREDENTIALS_FILE", path_of("keys"));
    check_keys(c = made(XPL_OBJECTS_S3), "ONE", "");
    xpl_credentials_free(c);
    set("AWS_PROFILE", "other");
    check_keys(c = made(XPL_OBJECTS_S3), "TWO", TOKEN);
    xpl_credentials_free(c);
    set("AWS_PROFILE", "half");
    check_once(XPL_OBJECTS_S3, XPL_DATA_LOSS, "by the shared file: the keys are missing");
    set("AWS_PROFILE", "none");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "no such profile");
    set("AWS_SHARED_CREDENTIALS_FILE", dir);
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "not a regular file");
    set("AWS_SHARED_CREDENTIALS_FILE", path_of("nowhere"));
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "cannot be read");
    // The usual place, which need not be there.
    clear();
    CHECK_STATUS(make(XPL_OBJECTS_S3, &c, &err), XPL_FAILED_PRECONDITION, &err);
    CHECK_EQ(mkdir(path_of(".aws"), 0700), 0);
    put_file(".aws/credentials", "[default]\naws_access_key_id = HOME\n"
                                 "aws_secret_access_key = " SECRET);
    check_keys(c = made(XPL_OBJECTS_S3), "HOME", "");
    xpl_credentials_free(c);
    CHECK_EQ(unlink(path_of(".aws/credentials")), 0);
}

// ---- services ----

static void answer_json(size_t i, const char *begin, const char *access, int seconds) {
    char text[600], at[32];
    (void)snprintf(text, sizeof text,
                   "{\"Code\": \"Success\", \"AccessKeyId\": \"%s\", \"SecretAccessKey\": "
                   "\"" SECRET "\", \"Token\": \"tOkEn\\/of+tests==\", \"Expiration\": \"%s\"}",
                   access, time_in(seconds, at));
    set_answer(i, begin, text);
}

static void answer_sts(const char *access, int seconds) {
    char text[800], at[32];
    (void)snprintf(text, sizeof text,
                   "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/\"><"
                   "AssumeRoleWithWebIdentityResult><AssumedRoleUser><Arn>a</Arn></"
                   "AssumedRoleUser><Credentials><SessionToken>" TOKEN "</SessionToken>"
                   "<SecretAccessKey>" SECRET "</SecretAccessKey><Expiration>%s</Expiration>"
                   "<AccessKeyId>%s</AccessKeyId></Credentials></"
                   "AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
                   time_in(seconds, at), access);
    set_answer(0, "POST /", text);
}

static void answer_web(const char *access, int seconds) {
    put_file("identity", "eyJ.web-" TOKEN "\n");
    set("AWS_WEB_IDENTITY_TOKEN_FILE", path_of("identity"));
    set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
    set_url("AWS_ENDPOINT_URL_STS", "http://", "");
    answer_sts(access, seconds);
}

static void answer_container(const char *access, int seconds) {
    set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://", "/v1/credentials?a=b");
    answer_json(0, "GET /v1/credentials?a=b ", access, seconds);
}

static void answer_instance(const char *access, int seconds) {
    set("AWS_EC2_METADATA_DISABLED", "false");
    set_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://", "/");
    set_answer(0, "PUT /latest/api/token ", "ToKeN-of-IMDS==");
    set_answer(1, "GET /latest/meta-data/iam/security-credentials/ ", "the-role\n");
    answer_json(2, "GET /latest/meta-data/iam/security-credentials/the-role ", access, seconds);
}

static void test_web_identity(void) {
    struct xpl_credentials *c = NULL;
    clear();
    answer_web("WEB", 3600);
    check_keys(c = made(XPL_OBJECTS_S3), "WEB", TOKEN);
    CHECK(has_seen("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%"
                   "3A1%3Arole%2Fr&RoleSessionName=xplaned&WebIdentityToken="
                   "eyJ.web-tOkEn%2Fof%2Btests%3D%3D"));
    check_keys(c, "WEB", TOKEN);
    CHECK_EQ(atomic_load(&service.requests), 1);
    xpl_credentials_free(c);
    set_mode(STATUS, 403);
    set_answer(0, "POST /", "<Error><Code>InvalidIdentityToken</Code>" SECRET "</Error>");
    check_once(XPL_OBJECTS_S3, XPL_PERMISSION_DENIED, "STS: answered 403 InvalidIdentityToken");
    set("AWS_ENDPOINT_URL_STS", "http://192.0.2.1/");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "AWS_ENDPOINT_URL_STS");
    set("AWS_WEB_IDENTITY_TOKEN_FILE", path_of("nowhere"));
    set_url("AWS_ENDPOINT_URL_STS", "http://", "");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "AWS_WEB_IDENTITY_TOKEN_FILE");
}

static void test_container(void) {
    static const char *const refused[] = {"http://192.0.2.1/",
                                          "http://169.254.170.2@evil.example/",
                                          "http://169.254.170.2.evil.example/",
                                          "http://127.0.0.1.evil.example/",
                                          "http://evil.example\\@127.0.0.1/",
                                          "http://127.0.0.1?@evil.example/",
                                          "http://169.254.170.2\r\nX: y",
                                          "ftp://127.0.0.1/",
                                          "file:///etc/passwd",
                                          "127.0.0.1",
                                          "http:///x"};
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", NULL};
    struct xpl_credentials *c = NULL;
    bool direct;
    clear();
    answer_container("BOX", 3600);
    set("http_proxy", "http://127.0.0.1:1"); // is not before it
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic YTpi");
    check_keys(c = made(XPL_OBJECTS_S3), "BOX", TOKEN);
    CHECK(has_seen("\r\nAuthorization: Basic YTpi\r\n"));
    xpl_credentials_free(c);
    put_file("token", "of-a-file\n");
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path_of("token"));
    check_keys(c = made(XPL_OBJECTS_S3), "BOX", TOKEN);
    CHECK(has_seen("\r\nAuthorization: of-a-file\r\n"));
    xpl_credentials_free(c);
    put_file("token", "two\r\nX: lines\n");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "the container's token");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK(!xpl_issuer_is_safe_url(refused[i], hosts, &direct));
        set("AWS_CONTAINER_CREDENTIALS_FULL_URI", refused[i]);
        check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    }
    CHECK(xpl_issuer_is_safe_url("http://169.254.170.23/v1/credentials", hosts, &direct) && direct);
    CHECK(xpl_issuer_is_safe_url("http://[fd00:ec2::23]/v1/credentials", hosts, &direct) && direct);
    CHECK(xpl_issuer_is_safe_url("https://example.org/x", hosts, &direct) && !direct);
}

static void test_instance(void) {
    struct xpl_credentials *c = NULL;
    clear();
    answer_instance("VM", 3600);
    check_keys(c = made(XPL_OBJECTS_S3), "VM", TOKEN);
    CHECK(has_seen("X-aws-ec2-metadata-token-ttl-seconds: ") &&
          has_seen("\r\nX-aws-ec2-metadata-token: ToKeN-of-IMDS==\r\n"));
    CHECK_EQ(atomic_load(&service.requests), 3);
    xpl_credentials_free(c);
    set_answer(2, "GET /latest/meta-data/iam/security-credentials/the-role ",
               "{\"Code\": \"AssumeRoleUnauthorizedAccess\"}");
    check_once(XPL_OBJECTS_S3, XPL_UNAVAILABLE, "none at the moment");
    set_answer(1, "GET /latest/meta-data/iam/security-credentials/ ", "../x?y\n");
    check_once(XPL_OBJECTS_S3, XPL_DATA_LOSS, "no name of a role");
    set_answer(1, "nothing", "");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "by the instance: ");
    set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://192.0.2.1");
    check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

static void test_order(void) {
    struct xpl_credentials *c = NULL;
    clear();
    answer_instance("VM", 3600);
    set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://", "/v1");
    answer_json(3, "GET /v1 ", "BOX", 3600);
    check_keys(c = made(XPL_OBJECTS_S3), "BOX", TOKEN);
    xpl_credentials_free(c);
    put_file("keys", "[p]\naws_access_key_id = FILE\naws_secret_access_key=" SECRET);
    set("AWS_SHARED_CREDENTIALS_FILE", path_of("keys"));
    set("AWS_PROFILE", "p");
    check_keys(c = made(XPL_OBJECTS_S3), "FILE", "");
    xpl_credentials_free(c);
    answer_web("WEB", 3600);
    check_keys(c = made(XPL_OBJECTS_S3), "WEB", TOKEN);
    xpl_credentials_free(c);
    set("AWS_ACCESS_KEY_ID", "ENV");
    set("AWS_SECRET_ACCESS_KEY", SECRET);
    check_keys(c = made(XPL_OBJECTS_S3), "ENV", "");
    xpl_credentials_free(c);
}

static void test_machine(void) {
    struct xpl_credential got;
    struct xpl_error err = {0};
    struct xpl_credentials *c = NULL;
    clear();
    CHECK_STATUS(make(XPL_OBJECTS_GCS, &c, &err), XPL_FAILED_PRECONDITION, &err);
    set("NO_GCE_CHECK", "false");
    set_url("GCE_METADATA_HOST", "", "");
    set_answer(0, "GET /computeMetadata/v1/instance/service-accounts/default/token ",
               "{\"access_token\": \"" TOKEN
               "\", \"expires_in\": 3599, \"token_type\": \"Bearer\"}");
    c = made(XPL_OBJECTS_GCS);
    CHECK_OK(xpl_credentials_get(c, &got, &err), &err);
    CHECK(got.kind == XPL_CREDENTIAL_BEARER && strcmp(got.token, TOKEN) == 0);
    CHECK(has_seen("\r\nMetadata-Flavor: Google\r\n"));
    xpl_credentials_free(c);
    set("GCE_METADATA_HOST", "host/path?x@y");
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION, "GCE_METADATA_HOST");
}

static void put_user(const char *type, const char *scheme) {
    char text[600];
    (void)snprintf(text, sizeof text,
                   "{\"type\": \"%s\", \"client_id\": \"id\", \"client_secret\": \"" SECRET
                   "\", \"refresh_token\": \"" TOKEN "\", \"token_uri\": \"%s127.0.0.1:%d/t\"}",
                   type, scheme, service.port);
    put_file("application_default_credentials.json", text);
}

static void test_user(void) {
    struct xpl_credential got;
    struct xpl_error err = {0};
    struct xpl_credentials *c = NULL;
    clear();
    put_user("authorized_user", "http://");
    set("CLOUDSDK_CONFIG", dir);
    set_answer(0, "POST /t ", "{\"access_token\": \"ya29." TOKEN "\", \"expires_in\": 3599}");
    c = made(XPL_OBJECTS_GCS);
    CHECK_OK(xpl_credentials_get(c, &got, &err), &err);
    CHECK(got.kind == XPL_CREDENTIAL_BEARER && strcmp(got.token, "ya29." TOKEN) == 0);
    CHECK(has_seen("grant_type=refresh_token&client_id=id&client_secret=sEcReT%2Bof%2Ftests%3D&"
                   "refresh_token=tOkEn%2Fof%2Btests%3D%3D"));
    xpl_credentials_free(c);
    set_answer(0, "POST /t ", "{\"access_token\": \"ya29." TOKEN "\"}");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, "when the token expires");
    set_mode(STATUS, 400);
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION, "token service: answered 400");
    set_mode(HUGE_TEXT, 0);
    check_once(XPL_OBJECTS_GCS, XPL_UNAVAILABLE, "more than 64 KiB");
    put_user("authorized_user", "http://192.0.2.1/");
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION, "token_uri");
    put_user("external_account", "http://");
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION,
               "by Google's file: application_default_credentials.json: type is neither");
    CHECK_EQ(unlink(path_of("application_default_credentials.json")), 0);
    set("GOOGLE_APPLICATION_CREDENTIALS", path_of("application_default_credentials.json"));
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION,
               "by Google's file: the file of GOOGLE_APPLICATION_CREDENTIALS cannot be read");
}

// ---- accounts of Google, whose files have keys ----

// `pem` as a file of an account has it.
static void put_key_file(const char *pem, const char *more) {
    static char text[16 << 10];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{\"type\": \"service_account\", \"client_email\": "
                                "\"xplaned@project.iam.gserviceaccount.com\", "
                                "\"token_uri\": \"http://127.0.0.1:%d/t\", %s \"private_key\": \"",
                                service.port, more);
    for (; *pem; pem++) {
        CHECK(n + 8 < sizeof text);
        if (*pem == '\n') text[n++] = '\\';
        text[n++] = *pem == '\n' ? 'n' : *pem;
    }
    (void)snprintf(text + n, 8, "\"}");
    put_file("key.json", text);
    set("GOOGLE_APPLICATION_CREDENTIALS", path_of("key.json"));
}

// The key as PEM, which is locked by a password where there is one.
static const char *pem_of(EVP_PKEY *key, const char *password) {
    static char pem[8 << 10];
    BIO *const text = BIO_new(BIO_s_mem());
    CHECK(key && text);
    CHECK_EQ(PEM_write_bio_PKCS8PrivateKey(text, key, password ? EVP_aes_128_cbc() : NULL, password,
                                           password ? (int)strlen(password) : 0, NULL, NULL),
             1);
    const int n = BIO_read(text, pem, sizeof pem - 1);
    CHECK(n > 0);
    pem[n] = 0;
    BIO_free(text);
    return pem;
}

// Bytes of base64 as URLs have it, up to the end of the text or to another character.
static size_t decode(const char *text, uint8_t *ret, size_t size) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = 0;
    unsigned v = 0, bits = 0;
    for (const char *at; *text && (at = strchr(letters, *text)); text++) {
        v = v << 6 | (unsigned)(at - letters);
        if ((bits += 6) < 8) continue;
        bits -= 8;
        CHECK(n < size);
        ret[n++] = (uint8_t)(v >> bits);
    }
    return n;
}

// The sent assertion, up to the end of the form.
static const char *assertion_seen(void) {
    static char text[8 << 10];
    pthread_mutex_lock(&service.mu);
    const char *const at = strstr(service.seen, "&assertion=");
    CHECK(at);
    (void)snprintf(text, sizeof text, "%s", at + strlen("&assertion="));
    pthread_mutex_unlock(&service.mu);
    return text;
}

static void check_signature(EVP_PKEY *key, const char *jwt, const char *dot) {
    uint8_t signature[1024];
    const size_t n = decode(dot + 1, signature, sizeof signature);
    EVP_MD_CTX *const with = EVP_MD_CTX_new();
    CHECK_EQ(EVP_DigestVerifyInit(with, NULL, EVP_sha256(), NULL, key), 1);
    CHECK_EQ(EVP_DigestVerify(with, signature, n, (const uint8_t *)jwt, (size_t)(dot - jwt)), 1);
    EVP_MD_CTX_free(with);
}

// Head and claims, in the order in which they are written.
static void check_claims(const char *jwt, const char *head) {
    char text[2000];
    long long iat = 0, exp = 0;
    text[decode(jwt, (uint8_t *)text, sizeof text - 1)] = 0;
    CHECK_STR(xpl_str_from(text), xpl_str_from(head));
    text[decode(strchr(jwt, '.') + 1, (uint8_t *)text, sizeof text - 1)] = 0;
    CHECK(strstr(text, "{\"iss\":\"xplaned@project.iam.gserviceaccount.com\",\"scope\":"
                       "\"https://www.googleapis.com/auth/devstorage.read_write\",\"aud\":"
                       "\"http://127.0.0.1:") == text);
    const char *const times = strstr(text, "/t\",\"iat\":");
    CHECK(times && sscanf(times, "/t\",\"iat\":%lld,\"exp\":%lld}", &iat, &exp) == 2);
    CHECK_EQ(exp, iat + 3600);
    const long long now = (long long)time(NULL);
    CHECK(iat <= now && iat > now - 60);
}

static void check_key_file(EVP_PKEY *key, const char *more, const char *head) {
    struct xpl_credential got;
    struct xpl_error err = {0};
    clear();
    put_key_file(pem_of(key, NULL), more);
    set_answer(0, "POST /t ", "{\"access_token\": \"ya29." TOKEN "\", \"expires_in\": 3599}");
    struct xpl_credentials *const c = made(XPL_OBJECTS_GCS);
    CHECK_OK(xpl_credentials_get(c, &got, &err), &err);
    CHECK(got.kind == XPL_CREDENTIAL_BEARER && strcmp(got.token, "ya29." TOKEN) == 0);
    CHECK(has_seen("\r\n\r\ngrant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&"));
    const char *const jwt = assertion_seen();
    CHECK(strrchr(jwt, '.') > strchr(jwt, '.'));
    check_claims(jwt, head);
    check_signature(key, jwt, strrchr(jwt, '.'));
    xpl_credentials_free(c);
}

// Files that are not key files, and their errors.
static void check_bad_key_files(EVP_PKEY *key) {
#define FILE_IS "the file of GOOGLE_APPLICATION_CREDENTIALS: "
#define NO_KEY  FILE_IS "private_key is not an RSA key"
    char half[8 << 10];
    EVP_PKEY *const small = EVP_RSA_gen(1024), *const curve = EVP_EC_gen("P-256");
    clear();
    (void)snprintf(half, sizeof half, "%.900s", pem_of(key, NULL));
    put_key_file(half, "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file("no PEM " SECRET, "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file(pem_of(key, "password"), "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file(pem_of(small, NULL), "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file(pem_of(curve, NULL), "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, NO_KEY);
    put_key_file("", "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, FILE_IS "private_key is invalid");
    put_key_file(SECRET "\\u0007", "");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, FILE_IS "private_key is invalid");
    put_key_file(pem_of(key, NULL), "\"private_key_id\": \"two words\",");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, FILE_IS "client_email or private_key_id is invalid");
    CHECK_EQ(atomic_load(&service.requests), 0); // no request was made
    put_file("key.json", "{\"type\": \"service_account\", \"private_key\": \"" SECRET "\"}");
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, FILE_IS "client_email or private_key_id is invalid");
    put_file("key.json", "{\"type\": \"service_account\", \"token_uri\": \"http://192.0.2.1/\","
                         "\"client_email\": \"e\", \"private_key\": \"" SECRET "\"}");
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION, FILE_IS "token_uri must be https://");
    put_file("key.json", SECRET);
    check_once(XPL_OBJECTS_GCS, XPL_DATA_LOSS, FILE_IS "its content is not a JSON object");
    EVP_PKEY_free(small);
    EVP_PKEY_free(curve);
}

static void test_key_file(void) {
    EVP_PKEY *const key = EVP_RSA_gen(2048);
    CHECK(key);
    check_key_file(key, "", "{\"alg\":\"RS256\",\"typ\":\"JWT\"}");
    check_key_file(key, "\"universe_domain\": \"googleapis.com\", \"private_key_id\": \"0a1b\",",
                   "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"0a1b\"}");
    set_mode(STATUS, 400);
    check_once(XPL_OBJECTS_GCS, XPL_FAILED_PRECONDITION, "token service: answered 400");
    check_bad_key_files(key);
    EVP_PKEY_free(key);
}

// What services do that are there and do not work, of all of them.
static void test_bad_services(void) {
    static const struct {
        void (*set)(const char *access, int seconds);
        const char *name;
    } sources[] = {{answer_web, "by web identity: "},
                   {answer_container, "by the container: "},
                   {answer_instance, "by the instance: "}};
    static const struct {
        enum service_mode mode;
        int status, seconds;
        xpl_status_t code;
    } ways[] = {{STATUS, 400, 3600, XPL_FAILED_PRECONDITION},
                {STATUS, 404, 3600, XPL_FAILED_PRECONDITION},
                {STATUS, 302, 3600, XPL_FAILED_PRECONDITION},
                {STATUS, 500, 3600, XPL_UNAVAILABLE},
                {CUT, 200, 3600, XPL_DATA_LOSS},
                {NO_TEXT, 200, 3600, XPL_DATA_LOSS},
                {HUGE_TEXT, 200, 3600, XPL_UNAVAILABLE},
                {GOOD, 200, -5, XPL_UNAVAILABLE}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            clear();
            sources[i].set("X", ways[k].seconds);
            set_mode(ways[k].mode, ways[k].status);
            // Half a token, or half a name, is one.
            if (ways[k].mode == CUT && sources[i].set == answer_instance)
                check_once(XPL_OBJECTS_S3, XPL_FAILED_PRECONDITION, sources[i].name);
            else
                check_once(XPL_OBJECTS_S3, ways[k].code, sources[i].name);
        }
    clear();
    answer_instance("X", 3600);
    set_mode(SILENT, 0);
    const uint64_t begin = xpl_clock_ns();
    check_once(XPL_OBJECTS_S3, XPL_UNAVAILABLE, "by the instance: ");
    CHECK(xpl_clock_between(begin, xpl_clock_ns()) < (uint64_t)60 * 1000000000);
}

// ---- renewal ----

static void test_renewal(void) {
    struct xpl_credentials *c = NULL;
    clear();
    answer_container("ONE", 400);
    check_keys(c = made(XPL_OBJECTS_S3), "ONE", TOKEN);
    check_keys(c, "ONE", TOKEN);
    CHECK_EQ(atomic_load(&service.requests), 1);
    // After half of their time they are renewed; where that fails they are used to their end.
    atomic_store(&ahead_s, 250);
    set_mode(STATUS, 400);
    check_keys(c, "ONE", TOKEN);
    CHECK_EQ(atomic_load(&service.requests), 2);
    CHECK(strstr(warned, "by the container: ") && strstr(warned, "400") &&
          strstr(warned, "expire in"));
    atomic_store(&ahead_s, 500);
    check_failure(c, XPL_FAILED_PRECONDITION, "by the container: ");
    set_mode(GOOD, 0);
    answer_container("TWO", 3600);
    check_keys(c, "TWO", TOKEN);
    atomic_store(&ahead_s, 0);
    xpl_credentials_free(c);
}

static void *get_in_thread(void *arg) {
    check_keys(arg, "ONE", TOKEN);
    return NULL;
}

// Many that need them at once: one asks.
static void test_threads(void) {
    pthread_t threads[8];
    clear();
    answer_container("ONE", 3600);
    service.pause_ms = 200;
    struct xpl_credentials *const c = made(XPL_OBJECTS_S3);
    for (size_t i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, get_in_thread, c), 0);
    for (size_t i = 0; i < 8; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&service.requests), 1);
    xpl_credentials_free(c);
}

int main(void) {
    char cmd[100];
    const struct xpl_transfers_options o = {
        .parallel = 2, .first_retry_ns = 1000000, .region = "eu-west-1"};
    struct xpl_error err = {0};
    CHECK(mkdtemp(dir));
    CHECK_OK(xpl_transfers_new(&o, &transfers, &err), &err);
    start_service();
    test_environment();
    test_shared_file();
    test_web_identity();
    test_container();
    test_instance();
    test_order();
    test_machine();
    test_user();
    test_key_file();
    test_bad_services();
    test_renewal();
    test_threads();
    end_service();
    xpl_transfers_free(transfers);
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
