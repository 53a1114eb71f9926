// SPDX-License-Identifier: Apache-2.0
// Walks over the rows of the tables: from profile to plane to line to event to statistic, or from
// profile to instruction or allocator.  Skips data that the statement's constraints exclude.
// Private to this folder; independent of SQLite.
#ifndef XPL_SQL_SCAN_H_
#define XPL_SQL_SCAN_H_

#include "sql/opened.h"

// Texts are cut off here, also where they are compared: functions of SQLite take time that grows
// with the square of a text's length.
enum { XPL_SQL_TEXT_MAX = 60000 };

enum xpl_sql_level {
    XPL_SQL_PLANES,
    XPL_SQL_LINES,
    XPL_SQL_EVENTS,
    XPL_SQL_STATS,
    XPL_SQL_INSTRUCTIONS, // below profiles, next to planes
    XPL_SQL_MEMORY,       // likewise
};

// Constraints of a statement.  A text without a constraint has a NULL pointer.
enum xpl_sql_text {
    XPL_SQL_SESSION,
    XPL_SQL_HOST,
    XPL_SQL_PLANE,
    XPL_SQL_LINE,
    XPL_SQL_NAME,
    XPL_SQL_MODULE,
    XPL_SQL_OPCODE,
    XPL_SQL_TEXTS,
};
struct xpl_sql_filter {
    xpl_str_t texts[XPL_SQL_TEXTS];
    int64_t from, to; // start_ps within, both included
    int64_t end_from; // end_ps at least
    int64_t id;       // one event; -1: all
    bool has_window;  // from, to or end_from say something
};

struct xpl_sql_scan {
    const struct xpl_sql_request *q;
    enum xpl_sql_level level;
    struct xpl_sql_filter filter;
    struct xpl_arena_budget *budget; // of all scans of the statement
    struct xpl_arena arena;          // of `wanted`; reset with each plane
    struct xpl_error *err;

    size_t profile; // the current one
    struct xpl_sql_opened *opened;
    uint32_t plane_at, line_at, chunk_at;
    const struct xpl_sql_plane *plane;
    struct xpl_sql_line *line;
    const struct xpl_sql_mark *marks; // of the line; NULL: all of it is read
    uint8_t *wanted;                  // by event metadata: has the name; NULL: all have
    struct xpl_event_cursor cursor;
    struct xpl_event event;
    int64_t begin, end; // of the event, from the profile's begin
    struct xpl_stats stats;
    struct xpl_stat stat;
    bool of_metadata;                                // the statistic is of the event's metadata
    const struct xpl_sql_instructions *instructions; // of the profile
    uint32_t instruction_at;                         // in them, or in their by_name
    const struct xpl_sql_instruction *instruction;   // the current one
    const struct xpl_sql_memory *memory;             // of the profile
    uint32_t allocator_at;                           // in it
    const struct xpl_sql_allocator *allocator;       // the current one
    size_t inspected; // 1 + first profile of the session whose accelerators are known; 0: none
    bool has_device;  // that session has one
    bool is_over;
};

// An event's id: the profile's number and the event's offset in its bytes.
enum { XPL_SQL_ID_SHIFT = 44 };
int64_t xpl_sql_event_id(const struct xpl_sql_scan *s);

// Goes to the first row.  `s` is zero but for q, level, filter, budget and err; xpl_sql_scan_end
// ends it in any case.
xpl_status_t xpl_sql_scan_begin(struct xpl_sql_scan *s) XPL_NODISCARD;
// Goes to the next one; s->is_over when there is none.
xpl_status_t xpl_sql_scan_next(struct xpl_sql_scan *s) XPL_NODISCARD;
void xpl_sql_scan_end(struct xpl_sql_scan *s);

#endif
