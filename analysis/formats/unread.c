// SPDX-License-Identifier: Apache-2.0
// Files that are known and not read: the refusal says what to do instead.
#include <string.h>

#include "analysis/formats/impl.h"

// ---- Riegeli: the hash of the first block header, and the header of the signature chunk ----

static unsigned riegeli_sniff(xpl_bytes_t head) {
    static const uint8_t magic[] = {0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f};
    return xpl_bytes_begin(head, magic, sizeof magic) ? XPL_SURE : 0;
}

const struct xpl_format xpl_format_riegeli = {
    .name = "riegeli",
    .label = "a Riegeli file",
    .family = "xspace",
    .title = "XLA",
    .suffixes = (const char *const[]){".xplane.riegeli", NULL},
    .sniff = riegeli_sniff,
    .refusal = "Riegeli files are not read; write the profile as " XPL_FORMAT_SUFFIX,
};

// ---- Chrome's JSON, as XProf writes next to each profile ----

static unsigned trace_json_sniff(xpl_bytes_t head) {
    return head.len && memmem(head.ptr, head.len, "\"highres-ticks\"", 15) &&
                   memmem(head.ptr, head.len, "\"traceEvents\"", 13)
               ? XPL_SURE_LIKELY
               : 0;
}

const struct xpl_format xpl_format_trace_json = {
    .name = "trace.json",
    .label = "a JSON trace of Chrome's format",
    .family = "trace",
    .suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(".trace.json"), NULL},
    .is_unlisted = true,
    .sniff = trace_json_sniff,
    .refusal = "JSON traces, such as XProf's trace.json.gz, lack what profiles have; give the "
               "HOST" XPL_FORMAT_SUFFIX " of the same directory",
};

// ---- archives, also compressed ones ----

static unsigned tar_sniff(xpl_bytes_t head) {
    enum { MAGIC_AT = 257 };
    return head.len > MAGIC_AT &&
                   xpl_bytes_begin((xpl_bytes_t){head.ptr + MAGIC_AT, head.len - MAGIC_AT}, "ustar",
                                   5)
               ? XPL_SURE
               : 0;
}

const struct xpl_format xpl_format_tar = {
    .name = "tar",
    .label = "a tar archive",
    .family = "archive",
    .suffixes = (const char *const[]){XPL_FORMAT_SUFFIXES(".tar"), ".tgz", NULL},
    .is_unlisted = true,
    .sniff = tar_sniff,
    .refusal = "tar archives are not read; extract the profile (tar -xf)",
};

// ---- Nsight Systems ----

const struct xpl_format xpl_format_nsys = {
    .name = "nsys-rep",
    .label = "a report of Nsight Systems",
    .family = "nsys",
    .suffixes = (const char *const[]){".nsys-rep", ".qdrep", NULL},
    .is_unlisted = true,
    .refusal = "reports of Nsight Systems are not read; capture the program with xplaned-agent",
};

static unsigned sqlite_sniff(xpl_bytes_t head) {
    return xpl_bytes_begin(head, "SQLite format 3", 16) ? XPL_SURE : 0;
}

const struct xpl_format xpl_format_sqlite = {
    .name = "sqlite",
    .label = "an SQLite database",
    .family = "nsys",
    .suffixes = (const char *const[]){".sqlite", NULL},
    .is_unlisted = true,
    .sniff = sqlite_sniff,
    .refusal = "SQLite databases, such as exports of Nsight Systems, are not read; capture the "
               "program with xplaned-agent",
};
