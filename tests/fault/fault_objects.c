// SPDX-License-Identifier: Apache-2.0
// Every allocation of reading a bucket fails once, ours and Expat's: the catalogue, local copies,
// a session that is written, a page of a listing, and what services say of credentials.  Each time
// the calls end cleanly, and the next run finds everything.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/arena.h"
#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/assertion.h"
#include "storage/objects/listing.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/outgoing.h"
#include "storage/sessions/removal.h"
#include "tests/unit/storage/fake_objects.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static size_t places;
static unsigned failures;

static bool ok(xpl_status_t st, const struct xpl_error *err) {
    if (st == XPL_OK) return true;
    failures++;
    CHECK(st == XPL_RESOURCE_EXHAUSTED && err->code == st && err->msg[0]);
    return false;
}

static bool match(xpl_str_t file, struct xpl_profile_file *ret) {
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - 1)};
    return file.len > 1;
}

static bool open_first(struct xpl_catalogue *c) {
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    struct xpl_source *source = NULL;
    struct xpl_error err = {0};
    CHECK(s->n_sessions == 1 && s->sessions[0].n_hosts == 2);
    const bool done = ok(xpl_snapshot_open(s, &s->sessions[0].hosts[0], 0, &source, &err), &err);
    CHECK(!done || xpl_source_bytes(source).len == 3);
    xpl_source_free(source);
    xpl_snapshot_unref(s);
    return done;
}

static void use_catalogue(void) {
    static const struct fake_object objects[] = {{"plugins/profile/run/a1", "\"1\"", "abc"},
                                                 {"plugins/profile/run/b1", "\"2\"", ""}};
    struct xpl_error err = {0};
    struct xpl_catalogue *c = NULL;
    const xpl_str_t place = {"places of tests, of which each run has its own, so that it fetches",
                             ++places % 60};
    memset(&fake, 0, sizeof fake);
    memcpy(fake.v, objects, sizeof objects);
    if (!ok(xpl_objects_init(&fake.base, &fake_ops, place, dir, 1 << 20, &err), &err)) return;
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = "gs://bucket",
                                            .match = match,
                                            .objects = &fake.base,
                                            .list_every_ns = 1};
    err = (struct xpl_error){0};
    if (ok(xpl_catalogue_new(&o, &c, &err), &err)) {
        (void)open_first(c);
        err = (struct xpl_error){0};
        if (ok(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), &err)) (void)open_first(c);
    }
    xpl_catalogue_free(c);
    xpl_objects_unref(&fake.base);
}

static bool on_object(void *arg, const struct xpl_listed_object *o) {
    CHECK_STR(o->key, "k");
    ++*(int *)arg;
    return true;
}

static bool on_folder(void *arg, xpl_str_t key) {
    (void)arg;
    (void)key;
    return true;
}

// A session that goes to a bucket: two files, the second of them sent at the end.
static void write_session(void) {
    struct xpl_error err = {0};
    struct xpl_outgoing *out = NULL;
    struct xpl_session_writer *s = NULL;
    char temp[XPL_SESSION_WRITER_TEMP_SIZE], name[XPL_SESSION_WRITER_NAME_SIZE] = "host";
    int fd;
    bool has = false;
    memset(&fake, 0, sizeof fake);
    if (!ok(xpl_objects_init(&fake.base, &fake_ops, XPL_STR("place"), dir, 1 << 20, &err), &err))
        return;
    err = (struct xpl_error){0};
    if (ok(xpl_outgoing_new(&fake.base, dir, 1000, &out, &err), &err)) {
        const struct xpl_session_writer_options o = {.size = sizeof o,
                                                     .name = XPL_STR("run"),
                                                     .unique = true,
                                                     .remote = xpl_outgoing_get_remote(out)};
        if (ok(xpl_session_writer_open(&o, &s, &err), &err) &&
            ok(xpl_session_writer_note(s, "note", ".json", (xpl_bytes_t){(const uint8_t *)"{}", 2},
                                       &err),
               &err) &&
            ok(xpl_session_writer_open_temp(s, temp, &fd, &err), &err)) {
            CHECK_EQ(close(fd), 0);
            if (ok(xpl_session_writer_publish(s, temp, name, ".pb", XPL_TAKEN_REFUSE, false, &err),
                   &err) &&
                ok(xpl_session_writer_has(s, "other", &has, &err), &err) &&
                ok(xpl_session_writer_sync(s, &err), &err))
                CHECK_EQ(fake.n_put, 2);
            xpl_session_writer_undo(s);
            err = (struct xpl_error){0};
            if (fake.n_put &&
                ok(xpl_session_remove_objects(&fake.base, "plugins/profile/run", match, NULL, &err),
                   &err))
                CHECK_EQ(fake.n_put, 0);
        }
        xpl_session_writer_close(s);
        CHECK(fake.n_put <= 1 && !has);
    }
    xpl_outgoing_free(out);
    xpl_objects_unref(&fake.base);
}

static void read_listing(void) {
    static const char page[] = "<ListBucketResult><Contents><Key>k</Key><Size>1</Size></Contents>"
                               "</ListBucketResult>";
    int n = 0;
    const struct xpl_listing_sink sink = {on_object, on_folder, &n};
    struct xpl_listing *l = NULL;
    struct xpl_error err = {0};
    xpl_str_t next = {0};
    if (!ok(xpl_listing_new(&sink, &l, &err), &err)) return;
    (void)xpl_listing_feed(l, (xpl_bytes_t){(const uint8_t *)page, sizeof page - 1});
    if (ok(xpl_listing_end(l, &next, &err), &err)) CHECK(n == 1 && !next.len);
    xpl_listing_free(l);
}

static void read_credentials(void) {
    static const char keys[] = "{\"AccessKeyId\": \"A\\u0042\", \"SecretAccessKey\": \"S\", "
                               "\"Expiration\": \"2030-01-02T03:04:05Z\"}",
                      bearer[] = "{\"access_token\": \"t\", \"expires_in\": 9}",
                      sts[] = "<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S"
                              "</SecretAccessKey><Expiration>2030-01-02T03:04:05Z</Expiration>"
                              "</Credentials></R>";
    static const char user[] = "{\"type\": \"authorized_user\", \"client_id\": \"c\", "
                               "\"client_secret\": \"s\", \"refresh_token\": \"r\"}";
    struct xpl_answer_google of;
    struct xpl_credential got;
    struct xpl_error err = {0};
    int64_t expires_ns;
    if (ok(xpl_answer_keys(xpl_str_from(keys), &got, &expires_ns, &err), &err))
        CHECK_STR(xpl_str_from(got.access), XPL_STR("AB"));
    err = (struct xpl_error){0};
    if (ok(xpl_answer_bearer(xpl_str_from(bearer), 1, &got, &expires_ns, &err), &err))
        CHECK_EQ(expires_ns, 9000000001);
    err = (struct xpl_error){0};
    if (ok(xpl_answer_sts(xpl_str_from(sts), &got, &expires_ns, &err), &err))
        CHECK_STR(xpl_str_from(got.secret), XPL_STR("S"));
    err = (struct xpl_error){0};
    if (ok(xpl_answer_google(xpl_str_from(user), &of, &err), &err))
        CHECK_STR(xpl_str_from(of.refresh), XPL_STR("r"));
}

// Of an account of Google: its file, and the token that its key signs.
static char key_file[4 << 10];

static void make_key_file(void) {
    EVP_PKEY *const key = EVP_RSA_gen(2048);
    BIO *const pem = BIO_new(BIO_s_mem());
    char line[80];
    int n = snprintf(key_file, sizeof key_file,
                     "{\"type\": \"service_account\", "
                     "\"client_email\": \"e\\u0040x\", \"private_key\": \"");
    CHECK(key && pem && PEM_write_bio_PKCS8PrivateKey(pem, key, NULL, NULL, 0, NULL, NULL) == 1);
    while (BIO_gets(pem, line, sizeof line) > 0)
        n += snprintf(key_file + n, sizeof key_file - (size_t)n, "%.*s\\n",
                      (int)strcspn(line, "\n"), line);
    (void)snprintf(key_file + n, sizeof key_file - (size_t)n, "\"}");
    BIO_free(pem);
    EVP_PKEY_free(key);
}

static void sign_key_file(void) {
    struct xpl_answer_google of;
    struct xpl_error err = {0};
    struct xpl_buf text;
    if (!ok(xpl_answer_google(xpl_str_from(key_file), &of, &err), &err)) return;
    CHECK_STR(xpl_str_from(of.client), XPL_STR("e@x"));
    const struct xpl_assertion a = {of.key, of.key_id, of.client, "aud", "scope", 1};
    xpl_buf_init(&text, 4 << 10);
    if (ok(xpl_assertion_put(&a, &text, &err), &err)) CHECK(text.n > 300 && !text.failed);
    xpl_buf_fini(&text);
}

static void fail_all(void (*run)(void)) {
    run();
    CHECK_EQ(failures, 0);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    run();
    const uint64_t n = xpl_fault_count();
    CHECK(n > 0);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        run();
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    CHECK(failures > 0);
    failures = 0;
    run();
    CHECK_EQ(failures, 0);
}

int main(void) {
    char cmd[100];
    CHECK(mkdtemp(dir));
    fail_all(use_catalogue);
    fail_all(write_session);
    fail_all(read_listing);
    fail_all(read_credentials);
    make_key_file();
    fail_all(sign_key_file);
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
