// SPDX-License-Identifier: Apache-2.0
// The table of tools: what is shown of products.
//
// A tool is one file with one row (struct xpl_tool) and one line in rows.h.  From the row follow
// the lists of tools, the parsing, copying and naming of options, the keys under which answers are
// kept, help, documents, and what XProf's pages and workers are told.  A tool is a pure function:
// equal products and options, equal bytes.
#ifndef XPL_ANALYSIS_TOOLS_TOOL_H_
#define XPL_ANALYSIS_TOOLS_TOOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/products/product.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_column;

// --- Options ---

// An option as a client gives it.
struct xpl_option {
    xpl_str_t key, value;
};

enum xpl_option_type {       // type of the member in the tool's option struct
    XPL_OPTION_BOOL,         // bool
    XPL_OPTION_CHOICE,       // int: position among the values
    XPL_OPTION_COUNT,        // uint64_t; of a fraction the whole part
    XPL_OPTION_MILLISECONDS, // double
    XPL_OPTION_RATE,         // double, at least 0
    XPL_OPTION_TEXT,         // xpl_str_t
};

enum xpl_option_shapes {
    XPL_SHAPES_ANSWER,  // two values may give two answers
    XPL_SHAPES_PRODUCT, // two values may also need two variants of a product
    XPL_SHAPES_NOTHING, // how to come by the answer (use_saved_result)
};

struct xpl_tool_option {
    const char *key;
    enum xpl_option_type type;
    enum xpl_option_shapes shapes;
    size_t offset;      // of the member in the tool's option struct
    const char *values; // CHOICE: "a|b|c"; others: what a person is told ("true|false", "NUMBER")
    const char *preset; // the default, as text that a client could give; NULL: zero
    bool ours;          // XProf's clients do not know it: it keeps its lenient default for them
    const char *lenient_preset; // their default where it is another (cpu_as_device); NULL: `preset`
    bool internal;              // no client may set it
    const char *help;           // one line
};

// Begins every tool's option struct.
struct xpl_common_options {
    bool cpu_as_device;
    bool xprof_exact;
    bool use_saved_result;
};
// For the tables of tools: the options that every tool takes.
extern const struct xpl_tool_option xpl_common_option_rows[];
enum { XPL_N_COMMON_OPTIONS = 3 };
// Bits of xpl_tool.ignores.
enum { XPL_IGNORES_CPU_AS_DEVICE = 1, XPL_IGNORES_XPROF_EXACT = 2 };

// --- Tools ---

struct xpl_tool_host {
    xpl_str_t name;
    // Values of the tool's needs, in their order; NULL: left out, `problem` says why.  One that is
    // NULL itself is got by the input's turns; what is there of it is its outline.
    const void *const *products;
    const void *const *outlines; // of the needs; NULL where the value is there
    xpl_str_t problem;
    xpl_bytes_t profile; // of a tool that reads profiles, of its kind
    const char *path;    // of its file, for errors
};

// Values of hosts too many to be in memory at once (xpl_tool_takes_turns): each is got for as long
// as it is used.
struct xpl_tool_turns {
    // Gets the value of need `need` of host `host`.  ABORTED when the host's profile changed.  For
    // different hosts any thread of the input's exec may call it.
    xpl_status_t (*get)(void *arg, size_t host, size_t need, const void **ret,
                        struct xpl_error *err);
    // What was got is not used any more.  What is not released lasts as long as the answer is made.
    void (*release)(void *arg, size_t host, size_t need);
    void *arg;
};

struct xpl_tool_input {
    const struct xpl_tool_host *hosts; // by name
    size_t n_hosts;
    bool by_name;                       // hosts were named: none of them may be left out
    const struct xpl_tool_turns *turns; // NULL: all values are there
    const void *options;                // the tool's option struct
    struct xpl_exec *exec;
    size_t limit; // bytes of each arena and buffer
    // Says of a host what its answer had to do without, beside the answer.  NULL: nobody listens.
    void (*warn)(void *arg, xpl_str_t host, xpl_str_t text);
    void *warn_arg;
};

// For which hosts a tool answers, and what XProf's page offers.
enum xpl_tool_hosts {
    XPL_HOSTS_ONE,         // one at a time; more are refused
    XPL_HOSTS_EACH,        // any choice; the page offers each
    XPL_HOSTS_EACH_OR_ALL, // any choice; the page offers each, and all together
    XPL_HOSTS_ALL,         // any choice; the page offers all together alone
};

// When XProf's page shows a tool.
enum xpl_tool_shown {
    XPL_SHOWN_NEVER,             // no tool of XProf's pages
    XPL_SHOWN_UNLISTED,          // XProf answers it, but its lists leave it out
    XPL_SHOWN_ALWAYS,            // when the profile has the facts that the tool needs
    XPL_SHOWN_WITHOUT_STREAMING, // when there is no trace_viewer@
};

enum { XPL_TOOL_MAX_TABLES = 4 };

struct xpl_tool {
    const char *name;
    const char *const *aliases; // XProf's other names, NULL-terminated; NULL: none
    // Changes whenever an answer could differ from what an earlier build gave for the same
    // products.
    uint32_t version;
    const struct xpl_product *const *needs; // NULL-terminated, at most XPL_TOOL_MAX_NEEDS
    unsigned facts;                         // XPL_FACT_… that profiles must have
    // The tool for whose name this one answers where profiles lack that one's facts; NULL: none.
    const char *replaces;
    const struct xpl_tool_option *options; // besides the common ones
    size_t n_options;
    size_t options_size; // bytes of the option struct, which begins with struct xpl_common_options;
                         // 0: it is that one
    unsigned ignores;    // common options that it takes and does not see: they keep their default
    enum xpl_tool_hosts hosts;
    enum xpl_tool_shown shown;
    unsigned list_position; // in XProf's list of tools, from 1; 0: in none
    const char *content_type;
    // For tools whose content type depends on options; NULL: content_type.
    const char *(*content_type_of)(const void *options);
    // Columns of its tables that have units; an id has one unit in all of them.
    const struct xpl_column *columns[XPL_TOOL_MAX_TABLES];
    const char *const *titles; // of its tables, in order, NULL-terminated; NULL: it has one
    // An XProf aggregator gets this tool's OpStats from us; of a tool of other products its answer.
    bool worker_served;
    // Bit k: render gets needs[k] by the input's turns as well, though it has no outline.
    unsigned in_turn;
    bool reads_profile;   // render is given the hosts' profiles as well
    bool keeps_no_answer; // answers are not stored: the product is, and views of it are many
    bool whole_session;   // XProf's clients get all hosts' answer, whatever host they name
    bool hidden;          // no client's tool (GetOpStats and the worker ask for it)
    // The variant of needs[i] for these options.  NULL: 0.
    unsigned (*variant)(const void *options, size_t i, bool session_has_device);
    // Whether `variant` asks whether the session has a device.
    bool asks_device;
    // Appends the answer to `out`.  DATA_LOSS, NOT_FOUND, RESOURCE_EXHAUSTED, CANCELLED.
    xpl_status_t (*render)(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err);
};
enum { XPL_TOOL_MAX_NEEDS = 4 };

// At least as many as there are tools, which the compiler checks: for tables with a place for each.
enum { XPL_TOOLS_MAX = 64 };

// All tools but the hidden ones, by name; *ret_n of them.
const struct xpl_tool *const *xpl_tools(size_t *ret_n);
// By name or alias; NULL when there is none.  Finds no hidden tool.
const struct xpl_tool *xpl_tool_find(xpl_str_t name);
// By name alone: XProf's pages and aggregators know no aliases.  NULL when there is none.
const struct xpl_tool *xpl_tool_find_named(xpl_str_t name);
// Whether profiles of that format can have what the tool needs; of NULL (a name that promises no
// format): yes.
bool xpl_tool_fits(const struct xpl_tool *tool, const struct xpl_format *format);
// The tool itself if it fits, else the one that replaces it for that format, if there is one.
const struct xpl_tool *xpl_tool_for(const struct xpl_tool *tool, const struct xpl_format *format);
// FAILED_PRECONDITION: the tool does not fit; says what is missing in the file, and which tool to
// use.
xpl_status_t xpl_tool_refuse(const struct xpl_tool *tool, const struct xpl_format *format,
                             xpl_str_t file, struct xpl_error *err);
// The unit of a column of its tables (analysis/tools/lib/gviz.h), NULL: none.  `tool` may be NULL.
const char *xpl_tool_unit(const struct xpl_tool *tool, xpl_str_t column);
// What its products are made from.
enum xpl_form xpl_tool_form(const struct xpl_tool *tool);
// The OpStats themselves, for GetOpStats; and for XProf aggregators, with no step dropped.
extern const struct xpl_tool xpl_tool_op_stats, xpl_tool_worker_op_stats;
// In XProf's order: the tool of XProf's list behind `t`, the first one for NULL; NULL at the end.
const struct xpl_tool *xpl_tool_next_listed(const struct xpl_tool *t);
// The need whose product that of needs[k] uses, which is best got before; XPL_TOOL_MAX_NEEDS: none.
size_t xpl_tool_need_used(const struct xpl_tool *tool, size_t k);
// Whether need `k` is got by the input's turns where hosts are many.
bool xpl_tool_takes_turns(const struct xpl_tool *tool, size_t k);
// Orders the versions of a tool's stored answers, so that older ones can be removed: it rises with
// the tool's version and with those of its products.  Different versions can have equal numbers.
uint32_t xpl_tool_answer_version(const struct xpl_tool *tool);
// Appends the versions themselves, as keys of answers spell them: "findings=10 time_breakdown=13
// op_stats=15".
void xpl_tool_put_versions(const struct xpl_tool *tool, struct xpl_buf *out);
// INVALID_ARGUMENT: there is no tool `name`; proposes the one whose name is near, or
// begins to list them.
xpl_status_t xpl_tool_unknown(xpl_str_t name, struct xpl_error *err);

// The options of a tool, its own first: xpl_tool_option_at(t, i) for i < xpl_tool_n_options(t).
size_t xpl_tool_n_options(const struct xpl_tool *tool);
const struct xpl_tool_option *xpl_tool_option_at(const struct xpl_tool *tool, size_t i);

// Whether two values of that option may give two answers.
bool xpl_tool_option_shapes(const struct xpl_tool *tool, size_t i);

// Reads options into a new option struct of the tool, in `arena`, texts copied; of a key given
// twice the last one counts, absent ones have their defaults. strict (our own clients): an unknown
// key or value is INVALID_ARGUMENT, and the message lists what is valid.  Not strict (XProf's
// clients): unknown keys and values are passed over as XProf does, and options that are ours keep
// their lenient defaults, so that the answer is XProf's.
xpl_status_t xpl_tool_options_parse(const struct xpl_tool *tool, const struct xpl_option *options,
                                    size_t n, bool strict, struct xpl_arena *arena, void **ret,
                                    struct xpl_error *err) XPL_NODISCARD;
// Appends what tells answers apart: every option that shapes an answer or a product, as
// "key=value" separated by blanks, in the order of the rows; texts quoted so that two different
// option structs never give the same bytes.
void xpl_tool_options_text(const struct xpl_tool *tool, const void *options, struct xpl_buf *out);

static inline const char *xpl_tool_content_type(const struct xpl_tool *t, const void *options) {
    return t->content_type_of ? t->content_type_of(options) : t->content_type;
}

#endif
