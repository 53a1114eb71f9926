// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/text/units.h"
#include "server/monitor/text.h"
#include "storage/store/store.h"

enum type { TEXT, FLAG, COUNT, SIZE, TIME };
// FITTED: the daemon may lower it to what the machine allows.
enum { RELOADABLE = 1, FITTED = 2 };

struct setting {
    const char *name;
    enum type type;
    unsigned flags;
    size_t offset;
    const char *fallback;
    uint64_t min, max;
    const char *argument, *help;
};

#define AT(field) offsetof(struct xpl_config, field)
#define KIB       ((uint64_t)1 << 10)
#define MIB       ((uint64_t)1 << 20)
#define TIB       ((uint64_t)1 << 40)
#define DAY_MS    ((uint64_t)86400000)

static const struct setting settings[] = {
    {"logdir", TEXT, 0, AT(logdir), "", 0, 0, "DIR",
     "directory with profile sessions (required), created if missing; or a bucket: "
     "s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"},
    {"object-endpoint", TEXT, 0, AT(object_endpoint), "", 0, 0, "URL",
     "http(s)://HOST:PORT of the object store, if --logdir is in one other than Amazon's or "
     "Google's"},
    {"object-region", TEXT, 0, AT(object_region), "", 0, 0, "REGION",
     "region of the bucket (default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1)"},
    {"object-anonymous", FLAG, 0, AT(object_anonymous), "false", 0, 0, NULL,
     "send no credentials to the object store, for public buckets"},
    {"object-cache", SIZE, 0, AT(object_cache), "10GiB", MIB, TIB, "SIZE",
     "size of local copies of objects, next to cache.db; the least recently used are evicted"},
    {"object-interval", TIME, 0, AT(object_interval_ms), "30s", 100, DAY_MS, "TIME",
     "how often directories of a bucket are listed; directories without a profile in the last hour "
     "are listed 20 times less often"},
    {"host-patience", TIME, 0, AT(host_patience_ms), "30s", 100, DAY_MS, "TIME",
     "how long fetching a host's object is tried again, five times at most, before an answer does "
     "without the host, with a warning"},
    {"listen", TEXT, 0, AT(listen), "127.0.0.1:50551", 0, 0, "ADDR[,ADDR]",
     "gRPC listeners: HOST:PORT or unix:/PATH; port 0 picks a free one"},
    {"xprof-worker", TEXT, 0, AT(xprof_worker), "", 0, 0, "ADDR",
     "listener for XProf aggregators: unix:/PATH, loopback, or any with --insecure"},
    {"worker-dir", TEXT, 0, AT(worker_dir), "", 0, 0, "DIR",
     "directory of the files for XProf aggregators (default: in the runtime directory)"},
    {"worker-group", TEXT, 0, AT(worker_group), "", 0, 0, "GROUP",
     "group that may read files in --worker-dir"},
    {"worker-fallback", TEXT, 0, AT(worker_fallback), "", 0, 0, "ADDR",
     "real XProf worker for requests that xplaned does not support"},
    {"http", TEXT, 0, AT(http), "127.0.0.1:8795", 0, 0, "ADDR[,ADDR]",
     "HTTP listeners: HOST:PORT; port 0 picks a free one; off for none"},
    {"http-host", TEXT, 0, AT(http_host), "", 0, 0, "NAME[,NAME]",
     "additional host names that HTTP accepts, such as a proxy's"},
    {"http-prefix", TEXT, 0, AT(http_prefix), "", 0, 0, "PATH",
     "path under which a proxy serves this daemon, such as /xprof"},
    {"http-connections", COUNT, FITTED, AT(http_connections), "1024", 1, 60000, "N",
     "maximum number of HTTP connections; further ones get 503"},
    {"grpc-connections", COUNT, FITTED, AT(grpc_connections), "1024", 1, 60000, "N",
     "maximum number of gRPC connections over TCP; further ones are closed"},
    {"connections-per-address", COUNT, 0, AT(connections_per_address), "256", 0, 60000, "N",
     "maximum per client address, for HTTP and for gRPC; loopback is exempt; 0 = no limit"},
    {"http-idle", TIME, 0, AT(http_idle_ms), "60s", 100, DAY_MS, "TIME",
     "how long a connection may take to send its next request"},
    {"ui-dir", TEXT, 0, AT(ui_dir), "", 0, 0, "DIR",
     "directory of XProf's static files, from fetch-xprof-ui.sh; its interface is served at /"},
    {"src-prefix", TEXT, 0, AT(src_prefix), "", 0, 0, "URL",
     "prefix of links to source files in XProf's interface"},
    {"state-dir", TEXT, 0, AT(state_dir), "", 0, 0, "DIR",
     "directory of cache.db and state.db (default: the user's cache and state directories)"},
    {"store", TEXT, 0, AT(store), "", 0, 0, "URL",
     "postgresql://USER@HOST:PORT/DATABASE: store results there, shared with other daemons, "
     "instead "
     "of in cache.db; put a password into the configuration file, XPLANED_STORE or ~/.pgpass"},
    {"role", TEXT, 0, AT(role), "all", 0, 0, "ROLE",
     "all: answer and convert; front: answer, and let workers convert; worker: convert for fronts "
     "through --store, and listen only on addresses that are set explicitly; convert RUN...: store "
     "the products of these sessions in --store, print the hosts that are left, and exit"},
    {"shard", TEXT, 0, AT(shard), "0/1", 0, 0, "I/N",
     "with --role convert: only the I-th of N parts of the hosts, from 0"},
    {"job-lease", TIME, 0, AT(job_lease_ms), "30s", 500, DAY_MS, "TIME",
     "lease time of a worker's jobs and a daemon's schedules without a heartbeat"},
    {"config", TEXT, 0, AT(config), "", 0, 0, "FILE",
     "configuration file of `key = value` lines (default: /etc/xplaned/xplaned.conf if it exists)"},
    {"tls-cert", TEXT, 0, AT(tls_cert), "", 0, 0, "FILE", "PEM certificate chain: serve TLS"},
    {"tls-key", TEXT, 0, AT(tls_key), "", 0, 0, "FILE", "PEM key of --tls-cert"},
    {"tls-client-ca", TEXT, 0, AT(tls_client_ca), "", 0, 0, "FILE",
     "PEM roots: require client certificates signed by one of them"},
    {"token-file", TEXT, 0, AT(token_file), "", 0, 0, "FILE",
     "file of bearer tokens, one of which clients must send: TOKEN [read|capture|admin [NAME]] a "
     "line; reread on SIGHUP"},
    {"insecure", FLAG, 0, AT(insecure), "false", 0, 0, NULL,
     "allow non-loopback listeners without TLS"},
    {"prefetch", FLAG, RELOADABLE, AT(prefetch), "true", 0, 0, NULL,
     "convert new sessions ahead of the first request when idle"},
    {"capture", FLAG, 0, AT(capture), "true", 0, 0, NULL,
     "capture profiles for clients, and run schedules"},
    {"allow-delete", FLAG, 0, AT(allow_delete), "false", 0, 0, NULL,
     "allow clients to delete sessions"},
    {"retain", TIME, 0, AT(retain_ms), "0", 0, 36500 * DAY_MS, "TIME",
     "remove sessions without labels whose newest file is older, such as 90d; needs "
     "--allow-delete; 0 = off"},
    {"import-idle", TIME, 0, AT(import_idle_ms), "60s", 100, DAY_MS, "TIME",
     "cancel an import that sends less than 64 KiB in this time"},
    {"import-limit", SIZE, 0, AT(import_limit), "64GiB", MIB, TIB, "SIZE",
     "maximum size of incomplete imports; the oldest interrupted ones are removed first"},
    {"join", FLAG, 0, AT(join), "false", 0, 0, NULL,
     "show runs of one job, whose processes wrote into separate directories, as one session"},
    {"links-anywhere", FLAG, 0, AT(links_anywhere), "false", 0, 0, NULL,
     "follow links that lead out of --logdir"},
    {"log", TEXT, RELOADABLE, AT(log), "info", 0, 0, "LEVEL[,TOPIC:LEVEL]",
     "log levels: error, warn, info, debug"},
    {"log-format", TEXT, RELOADABLE, AT(log_format), "text", 0, 0, "FORMAT",
     "log lines as text (key=value) or json (one object per line)"},
    {"slow-request", TIME, RELOADABLE, AT(slow_request_ms), "0", 0, DAY_MS, "TIME",
     "log requests that take at least this long as warnings, with slow=1; 0 = off"},
    {"workers", COUNT, 0, AT(workers), "0", 0, 1024, "N",
     "conversion threads; 0 = one per processor, or 32 with --role front, where they only wait"},
    {"memory-limit", SIZE, RELOADABLE, AT(memory_limit), "2GiB", MIB, TIB, "SIZE",
     "memory limit of one request"},
    {"memory-total", SIZE, RELOADABLE, AT(memory_total), "4GiB", MIB, TIB, "SIZE",
     "memory limit of all requests together"},
    {"answer-cache", SIZE, RELOADABLE, AT(answer_cache), "256MiB", 0, TIB, "SIZE",
     "size of the memory cache of answers and products"},
    {"store-limit", SIZE, 0, AT(store_limit), "4GiB", MIB, TIB, "SIZE",
     "maximum size of cache.db; the least recently used entries are evicted"},
    {"max-concurrent-requests", COUNT, RELOADABLE, AT(max_concurrent_requests), "256", 1, 1000000,
     "N", "maximum number of waiting requests; further ones get RESOURCE_EXHAUSTED"},
    {"request-timeout", TIME, RELOADABLE, AT(request_timeout_ms), "5m", 1, DAY_MS, "TIME",
     "maximum duration of a request, whatever its client's deadline"},
    {"grace", TIME, RELOADABLE, AT(grace_ms), "10s", 0, DAY_MS, "TIME",
     "how long running requests may continue after SIGTERM"},
    {"scan-interval", TIME, 0, AT(scan_interval_ms), "1s", 50, DAY_MS, "TIME",
     "how often files are checked for changes without a notification"},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };
_Static_assert(sizeof settings / sizeof *settings <= 64, "xpl_config.given has a bit for each");

static char *copy_text(const char *z, size_t n) {
    char *p = xpl_sys_alloc(n + 1);
    if (!p) return NULL;
    memcpy(p, z, n);
    p[n] = 0;
    return p;
}

// Digits and nothing else: not "1.5", "1e3" or "0x10".
static bool parse_count(const char *z, uint64_t *ret) {
    int64_t n;
    if (strspn(z, "0123456789") != strlen(z) || !xpl_parse_int(xpl_str_from(z), 0, INT64_MAX, &n))
        return false;
    *ret = (uint64_t)n;
    return true;
}

// Sets *ret_units to the error in the unit of a time or size.
static bool parse_number(const struct setting *s, const char *z, uint64_t *ret,
                         enum xpl_unit_result *ret_units) {
    uint64_t v = 0;
    if (s->type == COUNT && !parse_count(z, &v)) return false;
    if (s->type != COUNT)
        *ret_units = xpl_units_parse(z, s->type == SIZE ? XPL_UNIT_SIZE : XPL_UNIT_TIME, &v);
    if (*ret_units != XPL_UNIT_OK || v < s->min || v > s->max) return false;
    *ret = v;
    return true;
}

static bool parse_flag(const char *z, bool *ret) {
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no",
                                                                                "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(z, yes[i]) == 0) return *ret = true, true;
        if (strcasecmp(z, no[i]) == 0) return *ret = false, true;
    }
    return false;
}

// What a setting takes, with its bounds.
enum { WANTED = 96 };
static const char *describe(const struct setting *s, char buf[WANTED]) {
    char min[XPL_UNITS_VALUE], max[XPL_UNITS_VALUE];
    const enum xpl_unit_kind kind = s->type == SIZE ? XPL_UNIT_SIZE : XPL_UNIT_TIME;
    if (s->type == FLAG)
        (void)snprintf(buf, WANTED, "true or false");
    else if (s->type == COUNT)
        (void)snprintf(buf, WANTED, "a number from %" PRIu64 " to %" PRIu64, s->min, s->max);
    else
        (void)snprintf(buf, WANTED, "a %s from %s to %s", s->type == SIZE ? "size" : "time",
                       xpl_units_show(s->min, kind, min), xpl_units_show(s->max, kind, max));
    return buf;
}

static xpl_status_t set_value(struct xpl_config *c, const struct setting *s, const char *value,
                              size_t len, const char *where, struct xpl_error *err) {
    char *z = copy_text(value, len);
    if (!z) XPL_RETURN_OOM(err, "settings");
    void *const field = (char *)c + s->offset;
    bool ok = true;
    c->given |= (uint64_t)1 << (s - settings);
    if (s->type == TEXT) {
        char **const text = field;
        xpl_sys_free(*text);
        *text = z;
        return XPL_OK;
    }
    enum xpl_unit_result units = XPL_UNIT_OK;
    char missing[XPL_UNITS_TEXT] = "";
    ok = s->type == FLAG ? parse_flag(z, field) : parse_number(s, z, field, &units);
    if (units == XPL_UNIT_MISSING || units == XPL_UNIT_SMALL)
        (void)xpl_units_explain(z, s->type == SIZE ? XPL_UNIT_SIZE : XPL_UNIT_TIME, units, missing);
    xpl_sys_free(z);
    if (ok) return XPL_OK;
    const bool flag = strncmp(where, "--", 2) == 0;
    if (missing[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s%s%s %.*s: %s", flag ? "" : where,
                         flag ? "--" : ": ", s->name, (int)len, value, missing);
    char wanted[WANTED];
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: bad value \"%.*s\" for %s (%s)", where,
                     (int)len, value, s->name, describe(s, wanted));
}

static const struct setting *find_setting(const char *name, size_t len) {
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strlen(settings[i].name) == len && memcmp(settings[i].name, name, len) == 0)
            return &settings[i];
    return NULL;
}

// The setting that is nearest to a name that is not a setting.
static struct xpl_near near_setting(xpl_str_t name) {
    struct xpl_near near = xpl_near_begin(name);
    for (size_t i = 0; i < N_SETTINGS; i++)
        xpl_near_add(&near, xpl_str_from(settings[i].name));
    return near;
}

static xpl_str_t trim(xpl_str_t s) {
    while (s.len && isspace((unsigned char)s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static xpl_status_t read_line(struct xpl_config *c, xpl_str_t line, const char *where,
                              struct xpl_error *err) {
    line = trim(line);
    if (!line.len || line.ptr[0] == '#') return XPL_OK;
    const size_t eq = xpl_str_find(line, XPL_STR("="), 0);
    if (eq == SIZE_MAX)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: expected `key = value`", where);
    const xpl_str_t key = trim(xpl_str_sub(line, 0, eq));
    const xpl_str_t value = trim(xpl_str_sub(line, eq + 1, SIZE_MAX));
    const struct setting *s = find_setting(key.ptr, key.len);
    if (!s || s->offset == AT(config)) {
        const struct xpl_near near = near_setting(key);
        char hint[XPL_NEAR_TEXT];
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: unknown setting \"%.*s\"%s", where,
                         XPL_STR_FMT(key), s ? "" : xpl_near_text(&near, hint));
    }
    return set_value(c, s, value.ptr, value.len, where, err);
}

static xpl_status_t read_file(struct xpl_config *c, const char *path, bool required,
                              struct xpl_error *err) {
    FILE *f = fopen(path, "re");
    if (!f) {
        if (!required && errno == ENOENT) return XPL_OK;
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
    }
    char line[4096], where[512];
    xpl_status_t st = XPL_OK;
    for (int n = 1; st == XPL_OK && fgets(line, sizeof line, f); n++) {
        (void)snprintf(where, sizeof where, "%s:%d", path, n);
        if (!strchr(line, '\n') && !feof(f))
            st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                               "%s: the line is too long", where);
        else
            st = read_line(c, xpl_str_from(line), where, err);
    }
    if (st == XPL_OK && ferror(f)) // a directory, for one
        st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX, "%s: %s",
                           path, strerror(errno));
    (void)fclose(f);
    return st;
}

static xpl_status_t read_environment(struct xpl_config *c, struct xpl_error *err) {
    for (size_t i = 0; i < N_SETTINGS; i++) {
        char name[64] = "XPLANED_";
        size_t n = strlen(name);
        for (const char *p = settings[i].name; *p && n < sizeof name - 1; p++)
            name[n++] = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
        name[n] = 0;
        const char *const v = getenv(name);
        if (v) XPL_TRY(set_value(c, &settings[i], v, strlen(v), name, err));
    }
    return XPL_OK;
}

// Whether a URL has a password: behind the user's name, or as a parameter, whose name may be
// %-encoded.
static bool has_password(const char *url) {
    const char *const rest = strstr(url, "://");
    if (!rest) return strstr(url, "password") != NULL;
    const char *const user = rest + 3, *const end = user + strcspn(user, "/?");
    const char *at = end, *c;
    while (at > user && *at != '@')
        at--;
    const char *const colon = memchr(user, ':', (size_t)(at - user));
    if (colon && colon + 1 < at) return true;
    for (const char *p = strchr(user, '?'); p; p = strpbrk(p + 1, "&")) {
        static const char word[] = "password";
        size_t n = 0;
        for (c = p + 1; *c && *c != '=' && *c != '&'; c++) {
            unsigned char v = (unsigned char)*c;
            if (v == '%' && isxdigit((unsigned char)c[1]) && isxdigit((unsigned char)c[2])) {
                v = (unsigned char)strtoul((const char[]){c[1], c[2], 0}, NULL, 16);
                c += 2;
            }
            n = v == (unsigned char)word[n] ? n + 1 : v == 'p';
            if (n == sizeof word - 1) return true;
        }
    }
    return false;
}

// Everybody on the machine can read the arguments of a process.
static xpl_status_t set_flag_value(struct xpl_config *c, const struct setting *s, const char *value,
                                   const char *arg, struct xpl_error *err) {
    if (s->offset == AT(store) && has_password(value))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--store: every user of this machine can read a password here; write the "
                         "URL into the configuration file or XPLANED_STORE, or the password into "
                         "~/.pgpass");
    return set_value(c, s, value, strlen(value), arg, err);
}

// An argument without a flag: a session to convert, else apply_role refuses it.
static xpl_status_t add_run(struct xpl_config *c, int argc, const char *arg,
                            struct xpl_error *err) {
    if (!c->runs) c->runs = xpl_sys_alloc((size_t)argc * sizeof *c->runs);
    if (!c->runs) XPL_RETURN_OOM(err, "settings");
    c->runs[c->n_runs++] = arg;
    return XPL_OK;
}

// One flag: --name=value, --name value, --flag, --no-flag.  *at moves past the used arguments.
static xpl_status_t read_flag(struct xpl_config *c, int argc, char **argv, int *at,
                              struct xpl_error *err) {
    const char *const arg = argv[(*at)++];
    if (strncmp(arg, "--", 2) != 0) return add_run(c, argc, arg, err);
    const char *const name = arg + 2, *const eq = strchr(name, '=');
    const size_t len = eq ? (size_t)(eq - name) : strlen(name);
    const struct setting *s = find_setting(name, len);
    if (!s && !eq && strncmp(name, "no-", 3) == 0 && (s = find_setting(name + 3, len - 3)) != NULL)
        return s->type == FLAG ? set_value(c, s, "false", 5, arg, err)
                               : xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__,
                                               UINT64_MAX, "%s is not a switch", arg);
    if (!s) {
        const struct xpl_near near = near_setting((xpl_str_t){name, len});
        char hint[XPL_NEAR_TEXT];
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unknown option \"--%.*s\"%s", (int)len, name,
                         xpl_near_flag(&near, hint));
    }
    if (eq) {
        char flag[64];
        (void)snprintf(flag, sizeof flag, "--%s", s->name);
        return set_flag_value(c, s, eq + 1, flag, err);
    }
    if (s->type == FLAG) return set_value(c, s, "true", 4, arg, err);
    if (*at >= argc)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "option \"%s\" needs a value", arg);
    return set_flag_value(c, s, argv[(*at)++], arg, err);
}

static const char *config_path(int argc, char **argv, bool *required) {
    const char *path = getenv("XPLANED_CONFIG");
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) path = argv[i] + 9;
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) path = argv[i + 1];
    }
    *required = path != NULL;
    return path ? path : "/etc/xplaned/xplaned.conf";
}

static xpl_status_t check_topics(const char *spec, struct xpl_error *err) {
    const xpl_str_t unknown = xpl_log_unknown_topic(spec);
    if (!unknown.len) return XPL_OK;
    char names[128] = "";
    for (size_t i = 0, n = 0; xpl_log_topics[i] && n < sizeof names; i++)
        n +=
            (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", xpl_log_topics[i]);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "log: no topic \"%.*s\"; topics: %s",
                     XPL_STR_FMT(unknown), names);
}

bool xpl_config_has_role(const struct xpl_config *c, const char *role) {
    return strcmp(c->role, role) == 0;
}

static bool is_given(const struct xpl_config *c, const char *name) {
    return c->given >> (find_setting(name, strlen(name)) - settings) & 1;
}

// "I/N", with I below N.
static xpl_status_t read_shard(struct xpl_config *c, struct xpl_error *err) {
    const xpl_str_t text = xpl_str_from(c->shard);
    const size_t slash = xpl_str_find(text, XPL_STR("/"), 0);
    int64_t i, n;
    if (slash == SIZE_MAX ||
        !xpl_parse_int(xpl_str_sub(text, slash + 1, SIZE_MAX), 1, INT64_MAX, &n) ||
        !xpl_parse_int(xpl_str_sub(text, 0, slash), 0, n - 1, &i))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "bad value \"%.40s\" for shard (I/N, as in 0/8: I is less than N)",
                         c->shard);
    c->shard_index = (uint64_t)i;
    c->n_shards = (uint64_t)n;
    return XPL_OK;
}

// A worker listens only where the configuration says.
static xpl_status_t apply_role(struct xpl_config *c, struct xpl_error *err) {
    static const char *const off[][2] = {{"listen", ""}, {"http", "off"}};
    const bool worker = xpl_config_has_role(c, "worker"),
               converts = xpl_config_has_role(c, "convert");
    if (c->n_runs && !converts)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unexpected argument \"%s\"", c->runs[0]);
    if (xpl_config_has_role(c, "all")) return XPL_OK;
    if (!worker && !converts && !xpl_config_has_role(c, "front")) {
        char hint[XPL_NEAR_TEXT];
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "bad value \"%s\" for role%s (all, front, worker or convert)", c->role,
                         xpl_near_of(c->role, "all|front|worker|convert", hint));
    }
    if (!c->store[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--role %s needs --store postgresql://USER@HOST:PORT/DATABASE: daemons "
                         "share their work there",
                         c->role);
    if (converts && !c->n_runs)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--role convert needs a session: RUN...");
    for (size_t i = 0; worker && i < sizeof off / sizeof *off; i++)
        if (!is_given(c, off[i][0]))
            XPL_TRY(set_value(c, find_setting(off[i][0], strlen(off[i][0])), off[i][1],
                              strlen(off[i][1]), "default", err));
    return read_shard(c, err);
}

static xpl_status_t load_settings(int argc, char **argv, struct xpl_config *c,
                                  struct xpl_error *err) {
    for (size_t i = 0; i < N_SETTINGS; i++)
        XPL_TRY(set_value(c, &settings[i], settings[i].fallback, strlen(settings[i].fallback),
                          "default", err));
    c->given = 0;
    bool required;
    const char *const path = config_path(argc, argv, &required);
    XPL_TRY(read_file(c, path, required, err));
    XPL_TRY(read_environment(c, err));
    for (int at = 1; at < argc;)
        XPL_TRY(read_flag(c, argc, argv, &at, err));
    if (!c->logdir[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--logdir DIR is required: where the profiles are");
    if (!c->tls_cert[0] != !c->tls_key[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--tls-cert and --tls-key belong together");
    if (c->store[0] && !xpl_store_is_url(c->store)) // not shown: it may be a secret
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--store: not a URL; write postgresql://USER@HOST:PORT/DATABASE");
    XPL_TRY(apply_role(c, err));
    if (c->retain_ms && !c->allow_delete)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--retain removes sessions: it needs --allow-delete, too");
    if (!xpl_log_check(c->log))
        XPL_RETURN_ERROR(
            err, XPL_INVALID_ARGUMENT,
            "bad value \"%s\" for log (LEVEL or TOPIC:LEVEL, separated by commas; levels: "
            "error, warn, info, debug)",
            c->log);
    const bool json = strcmp(c->log_format, "json") == 0;
    if (!json && strcmp(c->log_format, "text") != 0) {
        char hint[XPL_NEAR_TEXT];
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "bad value \"%s\" for log-format%s (text or json)", c->log_format,
                         xpl_near_of(c->log_format, "text|json", hint));
    }
    return check_topics(c->log, err);
}

static void print_help(FILE *out) {
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    (void)fputs("Usage: xplaned --logdir DIR [options]\n\nServes profiles (", out);
    for (size_t i = 0; i < n; i++)
        if (!formats[i]->refusal && !formats[i]->is_unlisted)
            (void)fprintf(out, "%s*%s", i ? ", " : "", formats[i]->suffixes[0]);
    (void)fputs(") below DIR over gRPC and HTTP.\n\nOptions:\n", out);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char left[80];
        (void)snprintf(left, sizeof left, "--%s%s%s", s->type == FLAG ? "[no-]" : "", s->name, "");
        (void)fprintf(out, "  %s%s%s\n        %s%s%s%s\n", left, s->argument ? " " : "",
                      s->argument ? s->argument : "", s->help, s->fallback[0] ? " [" : "",
                      s->fallback, s->fallback[0] ? "]" : "");
    }
    (void)fputs("  --docs\n        print where the documents are\n  --help\n  --version\n", out);
}

// Without the last part of the path, and the slash before it.
static size_t length_of_parent(const char *path, size_t length) {
    while (length && path[--length] != '/') {
    }
    return length;
}

// The first page of the documents: XPL_DOCS, which may be relative to this program's directory.
static bool print_docs(void) {
    const char *docs = XPL_DOCS;
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof XPL_DOCS);
    size_t end = n > 0 ? length_of_parent(path, (size_t)n) : 0;
    for (; strncmp(docs, "../", 3) == 0; docs += 3)
        end = length_of_parent(path, end);
    if (docs[0] == '/')
        end = 0;
    else
        path[end++] = '/';
    memcpy(path + end, docs, strlen(docs) + 1);
    const bool found = n > 0 && access(path, R_OK) == 0;
    if (found)
        (void)puts(path);
    else
        (void)fputs("xplaned: the documents are not installed\n", stderr);
    return found;
}

enum xpl_config_result xpl_config_load(int argc, char **argv, struct xpl_config *ret) {
    *ret = (struct xpl_config){0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help(stdout);
            return XPL_CONFIG_HELP;
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void)puts("xplaned " XPL_VERSION);
            return XPL_CONFIG_HELP;
        }
        if (strcmp(argv[i], "--docs") == 0)
            return print_docs() ? XPL_CONFIG_HELP : XPL_CONFIG_USAGE;
        if (strcmp(argv[i], "--help-metrics") == 0) { // for docs/operation.md
            xpl_metrics_print_table(stdout);
            return XPL_CONFIG_HELP;
        }
        if (strcmp(argv[i], "--help-man") == 0) {
            xpl_config_print_man(stdout);
            return XPL_CONFIG_HELP;
        }
    }
    struct xpl_error err = {0};
    if (load_settings(argc, argv, ret, &err) == XPL_OK) return XPL_CONFIG_RUN;
    (void)fprintf(stderr, "xplaned: %s\nTry: xplaned --help\n", err.msg);
    return XPL_CONFIG_USAGE;
}

static bool same_value(const struct setting *s, const void *a, const void *b) {
    if (s->type == FLAG) return *(const bool *)a == *(const bool *)b;
    if (s->type == TEXT) return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

static void swap_values(const struct setting *s, void *a, void *b) {
    const size_t size = s->type == FLAG   ? sizeof(bool)
                        : s->type == TEXT ? sizeof(char *)
                                          : sizeof(uint64_t);
    char tmp[sizeof(uint64_t)];
    memcpy(tmp, a, size);
    memcpy(a, b, size);
    memcpy(b, tmp, size);
}

xpl_status_t xpl_config_reload(struct xpl_config *c, int argc, char **argv,
                               struct xpl_config_reloaded *ret, struct xpl_error *err) {
    struct xpl_config next = {0};
    ret->restart[0] = 0;
    const xpl_status_t st = load_settings(argc, argv, &next, err);
    for (size_t i = 0; st == XPL_OK && i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];
        void *const to = (char *)c + s->offset, *const from = (char *)&next + s->offset;
        if (s->flags & RELOADABLE) { // swapped, so that a text's old value is freed with `next`
            swap_values(s, to, from);
        } else if (!(s->flags & FITTED) && !same_value(s, to, from)) {
            const size_t n = strlen(ret->restart);
            (void)snprintf(ret->restart + n, sizeof ret->restart - n, "%s--%s", n ? ", " : "",
                           s->name);
        }
    }
    xpl_config_fini(&next);
    return st;
}

void xpl_config_fini(struct xpl_config *c) {
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (settings[i].type != TEXT) continue;
        char **const text = (char **)(void *)((char *)c + settings[i].offset);
        xpl_sys_free(*text);
        *text = NULL;
    }
    xpl_sys_free(c->runs);
    c->runs = NULL;
}

void xpl_config_print_man(FILE *out) {
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting *s = &settings[i];
        (void)fprintf(out, ".TP\n.B \\-\\-%s%s", s->type == FLAG ? "[no-]" : "", s->name);
        (void)fprintf(out, "%s%s\n%s.", s->argument ? " " : "", s->argument ? s->argument : "",
                      s->help);
        if (s->fallback[0]) (void)fprintf(out, " Default: %s.", s->fallback);
        (void)fprintf(out, "%s\n", s->flags & RELOADABLE ? " May change on SIGHUP." : "");
    }
}
