// SPDX-License-Identifier: Apache-2.0
// xplanectl agents: installs the skill where AI agents look for skills, and prints the
// configuration of the MCP server.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/agents/skill.h"
#include "cli/args.h"
#include "cli/output.h"
#include "storage/make_dirs.h"
#include "storage/places.h"

// Below the home directory, or a project's: ~/.claude of Claude Code; ~/.agents of Codex, OpenCode,
// Pi and others.
static const char *const kPlaces[] = {".claude/skills/xplaned", ".agents/skills/xplaned"};
enum { PLACES = sizeof kPlaces / sizeof *kPlaces };

// A file with this line is ours.
static const char kMark[] = "<!-- xplanectl agents install writes this file, and replaces it. -->";

enum outcome { WRITTEN, CURRENT, FOREIGN, FAILED };

static enum outcome compare_file(const char *path) {
    FILE *const f = fopen(path, "re");
    if (!f) return errno == ENOENT || errno == ENOTDIR ? WRITTEN : FAILED;
    char text[64 << 10];
    const size_t n = fread(text, 1, sizeof text - 1, f);
    const bool read = !ferror(f);
    (void)fclose(f);
    text[n] = 0;
    if (!read) return FAILED;
    if (n == xpl_skill_len && memcmp(text, xpl_skill, n) == 0) return CURRENT;
    return strstr(text, kMark) ? WRITTEN : FOREIGN;
}

static bool print_skill(const void *unused, FILE *out) {
    (void)unused;
    (void)fwrite(xpl_skill, 1, xpl_skill_len, out);
    return true;
}

// Writes the skill, unless the file is up to date or was written by another program.
static enum outcome install(const char *dir, const char *path, bool dry_run) {
    enum outcome outcome = compare_file(path);
    if (outcome == WRITTEN && !dry_run) {
        if (!xpl_make_dirs(dir, 0777))
            outcome = FAILED;
        else if (!xpl_output_print(path, print_skill, NULL))
            return FAILED; // has said why
    }
    if (outcome == FAILED)
        (void)fprintf(stderr, "xplanectl: %s: %s\n", path, strerror(errno));
    else if (outcome == FOREIGN)
        (void)fprintf(stderr, "xplanectl: %s was not written by xplanectl and is left unchanged\n",
                      path);
    return outcome;
}

struct report {
    const struct xpl_args *a;
    enum outcome outcomes[PLACES];
    char paths[PLACES][PATH_MAX];
};

// As the client chooses it.
static const char *address(const struct xpl_args *a) {
    const char *const set = getenv("XPLANED_SERVER");
    return a->server ? a->server : set && *set ? set : "127.0.0.1:50551";
}

static bool print_report(const void *report, FILE *out) {
    static const char *const kSaid[] = {[WRITTEN] = "wrote ", [CURRENT] = "already current: "};
    const struct report *const r = report;
    for (size_t i = 0; i < PLACES; i++) {
        const enum outcome o = r->outcomes[i];
        if (o != WRITTEN && o != CURRENT) continue;
        const bool would = o == WRITTEN && r->a->dry_run;
        (void)fprintf(out, "%s%s\n", would ? "would write " : kSaid[o], r->paths[i]);
    }
    json_t *const server = json_string(address(r->a)); // NULL: not UTF-8
    char *const quoted = server ? json_dumps(server, JSON_ENCODE_ANY) : NULL;
    (void)fprintf(
        out,
        "\nMCP server (pip install 'xplaned[mcp]'), for the configuration of an agent, such "
        "as .mcp.json:\n\n"
        "{\"mcpServers\": {\"xplaned\": {\"command\": \"xplaned-mcp\", \"args\": "
        "[\"--server\", %s]}}}\n\n"
        "Agents that only read AGENTS.md: xplanectl --agents-md >>AGENTS.md\n",
        quoted ? quoted : "\"ADDRESS\"");
    free(quoted);
    json_decref(server);
    return true;
}

int xpl_agents_run(const struct xpl_args *a) {
    const char *const home = a->n_rest > 2 ? a->rest[2] : getenv("HOME");
    if (strcmp(a->rest[1], "install") != 0 || !home || !*home) {
        (void)fputs("Usage: xplanectl agents install [DIR]\n", stderr);
        return XPL_EXIT_USAGE;
    }
    static struct report r;
    int status = XPL_EXIT_OK;
    r.a = a;
    for (size_t i = 0; i < PLACES; i++) {
        char dir[PATH_MAX];
        if (!xpl_place_join(home, xpl_str_from(kPlaces[i]), dir, sizeof dir) ||
            !xpl_place_join(dir, XPL_STR("SKILL.md"), r.paths[i], sizeof r.paths[i]))
            return xpl_failed(XPL_INVALID_ARGUMENT, "the name of the directory is too long");
        r.outcomes[i] = install(dir, r.paths[i], a->dry_run);
        if (r.outcomes[i] == FOREIGN || r.outcomes[i] == FAILED) status = XPL_EXIT_FAILED;
    }
    const int said = xpl_write_text(a, print_report, &r);
    return said == XPL_EXIT_OK ? status : said;
}
