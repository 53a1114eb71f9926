// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/ireeperf/ireeperf.h"

#include <stdio.h>

#include "analysis/ireeprof/ireeperf/row.h"
#include "analysis/ireeprof/reports/export/export.h"
#include "analysis/ireeprof/reports/export/export_fields.h"

// What every row begins with; rows that others sorted have it elsewhere.
struct start {
    xpl_str_t record_type;
    uint64_t schema_version, index;
};

struct reader {
    xpl_bytes_t file;
    size_t at; // of the next line
    struct xpl_ireeperf_records records;
    struct xpl_iree_origin origin;
    uint16_t version_major, version_minor;
};

// The next line that is not blank, and where it begins.
static bool next_line(struct reader *r, xpl_str_t *ret, size_t *ret_at) {
    while (r->at < r->file.len) {
        const char *const p = (const char *)r->file.ptr + r->at;
        const char *const end = memchr(p, '\n', r->file.len - r->at);
        size_t n = end ? (size_t)(end - p) : r->file.len - r->at, blank = 0;
        *ret_at = r->at;
        r->at += n + (end != NULL);
        while (blank < n && (p[blank] == ' ' || p[blank] == '\t' || p[blank] == '\r'))
            blank++;
        *ret = (xpl_str_t){p, n};
        if (blank < n) return true;
    }
    return false;
}

static const char *read_start(xpl_str_t line, struct start *ret) {
    struct xpl_ireeperf_line l;
    struct xpl_ireeperf_token t;
    xpl_str_t name;
    unsigned seen = 0;
    *ret = (struct start){0};
    (void)xpl_ireeperf_line_begin(&l, line);
    while (seen != 7 && xpl_ireeperf_line_member(&l, &name, &t)) {
        bool ok = true;
        if (xpl_str_eq(name, XPL_STR("record_type"))) {
            ok = t.kind == XPL_IREEPERF_TOKEN_STRING;
            ret->record_type = t.text;
            seen |= 1;
        } else if (xpl_str_eq(name, XPL_STR("source_record_index"))) {
            ok = xpl_ireeperf_token_u64(&t, &ret->index);
            seen |= 2;
        } else if (xpl_str_eq(name, XPL_STR("schema_version"))) {
            ok = xpl_ireeperf_token_u64(&t, &ret->schema_version);
            seen |= 4;
        } else {
            xpl_ireeperf_line_skip(&l, &t);
        }
        if (!ok) return "the row's type, index or version is invalid";
    }
    if (l.bad) return l.bad;
    if (!(seen & 1)) return "the row has no type";
    return NULL;
}

static void note(struct reader *r, size_t at, const char *text) {
    struct xpl_iree_notes *const notes = &r->origin.notes;
    if (notes->n < XPL_IREE_NOTES_KEPT) {
        struct xpl_iree_note *const n = &notes->kept[notes->n];
        n->offset = at;
        (void)snprintf(n->text, sizeof n->text, "%s", text);
    }
    notes->n++;
}

// ---- the first row ----

bool xpl_ireeperf_sniff(xpl_bytes_t file) {
    enum { FIRST = 512 };
    const xpl_str_t mark = XPL_STR("\"ireeperf-jsonl\"");
    const size_t n = file.len < FIRST ? file.len : FIRST;
    return n && file.ptr[0] == '{' && memmem(file.ptr, n, mark.ptr, mark.len) != NULL;
}

static void read_version(xpl_str_t line, struct reader *r) {
    struct xpl_ireeperf_line l;
    struct xpl_ireeperf_token t;
    xpl_str_t name;
    (void)xpl_ireeperf_line_begin(&l, line);
    while (xpl_ireeperf_line_member(&l, &name, &t)) {
        uint64_t v = 0;
        const bool is = xpl_ireeperf_token_u64(&t, &v) && v <= UINT16_MAX;
        if (is && xpl_str_eq(name, XPL_STR("source_version_major"))) r->version_major = (uint16_t)v;
        if (is && xpl_str_eq(name, XPL_STR("source_version_minor"))) r->version_minor = (uint16_t)v;
        xpl_ireeperf_line_skip(&l, &t);
    }
}

static xpl_status_t read_schema(struct reader *r, struct xpl_error *err) {
    struct start start;
    xpl_str_t line;
    size_t at;
    const bool got = next_line(r, &line, &at);
    const char *const bad = got ? read_start(line, &start) : "the file is empty";
    if (bad || !xpl_str_eq(start.record_type, XPL_STR("schema")))
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0,
                            "no rows of ireeperf-jsonl: the first one is not the schema's%s%s",
                            bad ? ": " : "", bad ? bad : "");
    if (start.schema_version != XPL_IREE_EXPORT_SCHEMA)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "unsupported ireeperf-jsonl schema version %llu; expected %d",
                         (unsigned long long)start.schema_version, XPL_IREE_EXPORT_SCHEMA);
    r->version_major = 1;
    r->version_minor = 6;
    read_version(line, r);
    return XPL_OK;
}

xpl_status_t xpl_ireeperf_check(xpl_bytes_t file, struct xpl_error *err) {
    struct reader r = {.file = file};
    return read_schema(&r, err);
}

// ---- rows that are not typed records ----

struct other {
    xpl_str_t event, category, severity, content_type, message;
    uint64_t session_id, stream_id, event_id, status, dropped;
};

static const char *read_other(xpl_str_t line, struct other *ret) {
    const struct {
        const char *name;
        xpl_str_t *text;
        uint64_t *number;
    } members[] = {{"event", &ret->event, NULL},
                   {"category", &ret->category, NULL},
                   {"severity", &ret->severity, NULL},
                   {"content_type", &ret->content_type, NULL},
                   {"message", &ret->message, NULL},
                   {"session_id", NULL, &ret->session_id},
                   {"stream_id", NULL, &ret->stream_id},
                   {"event_id", NULL, &ret->event_id},
                   {"session_status_code", NULL, &ret->status},
                   {"dropped_records", NULL, &ret->dropped}};
    enum { N = sizeof members / sizeof *members };
    struct xpl_ireeperf_line l;
    struct xpl_ireeperf_token t;
    xpl_str_t name;
    *ret = (struct other){0};
    (void)xpl_ireeperf_line_begin(&l, line);
    while (xpl_ireeperf_line_member(&l, &name, &t)) {
        size_t i = 0;
        while (i < N && !xpl_str_eq(name, xpl_str_from(members[i].name)))
            i++;
        if (i < N && members[i].number && !xpl_ireeperf_token_u64(&t, members[i].number))
            return "a member is not a number";
        if (i < N && members[i].text) *members[i].text = t.text;
        xpl_ireeperf_line_skip(&l, &t);
    }
    if (!l.bad) xpl_ireeperf_line_end(&l);
    return l.bad;
}

static const char *put_session(struct reader *r, const struct other *o, uint64_t index) {
    const bool begin = xpl_str_eq(o->event, XPL_STR("begin"));
    if (!begin && !xpl_str_eq(o->event, XPL_STR("end"))) return "a session neither begins nor ends";
    if (o->status > UINT32_MAX) return "a status is too large";
    if (begin) r->records.session_id = o->session_id;
    const struct xpl_ireeperf_head head = {.index = index,
                                           .type =
                                               begin ? XPL_IREE_RECORD_BEGIN : XPL_IREE_RECORD_END,
                                           .chunk = XPL_IREE_NO_CHUNK,
                                           .device = XPL_IREE_NONE,
                                           .queue = XPL_IREE_NONE,
                                           .stream_id = o->stream_id,
                                           .session_id = o->session_id,
                                           .event_id = o->event_id,
                                           .status = (uint32_t)o->status};
    xpl_ireeperf_record(&r->records, &head);
    return NULL;
}

static enum xpl_iree_chunk chunk_of_type(xpl_str_t content_type) {
    const xpl_str_t prefix = XPL_IREE_CONTENT_TYPE;
    const xpl_str_t suffix = xpl_str_sub(content_type, prefix.len, SIZE_MAX);
    if (!xpl_str_starts(content_type, prefix)) return XPL_IREE_UNKNOWN_CHUNK;
    for (unsigned i = 0; i < XPL_IREE_N_CHUNK_TYPES; i++)
        if (xpl_str_eq(suffix, xpl_str_from(xpl_iree_chunk_types[i].suffix)))
            return (enum xpl_iree_chunk)i;
    return XPL_IREE_UNKNOWN_CHUNK;
}

// A diagnostic about a record makes it; one about the whole bundle, which our export writes for
// damage, is passed on.
static const char *put_diagnostic(struct reader *r, const struct other *o, uint64_t index,
                                  size_t at) {
    const bool truncated = xpl_str_eq(o->category, XPL_STR("truncated_chunk"));
    const bool is_record = xpl_str_eq(o->category, XPL_STR("unknown_record"));
    if (!truncated && !is_record && !xpl_str_eq(o->category, XPL_STR("unknown_chunk"))) {
        char text[sizeof r->origin.notes.kept[0].text];
        (void)snprintf(text, sizeof text, "%.*s", XPL_STR_FMT(xpl_str_sub(o->message, 0, 120)));
        if (xpl_str_eq(o->severity, XPL_STR("error"))) note(r, at, text);
        return NULL;
    }
    const struct xpl_ireeperf_head head = {.index = index,
                                           .type = is_record ? 0 : XPL_IREE_RECORD_CHUNK,
                                           .chunk = is_record ? XPL_IREE_NO_CHUNK
                                                              : chunk_of_type(o->content_type),
                                           .content_type = o->content_type,
                                           .device = XPL_IREE_NONE,
                                           .queue = XPL_IREE_NONE,
                                           .session_id = r->records.session_id,
                                           .flags = truncated ? XPL_IREE_CHUNK_TRUNCATED : 0,
                                           .dropped = o->dropped};
    xpl_ireeperf_record(&r->records, &head);
    return NULL;
}

// ---- all rows ----

static const char *put_event(struct reader *r, xpl_str_t line, const struct start *start) {
    struct xpl_ireeperf_row row;
    unsigned i = 0;
    while (i < XPL_IREE_N_CHUNK_TYPES &&
           (!xpl_iree_export_rows[i].record_type ||
            !xpl_str_eq(start->record_type, xpl_str_from(xpl_iree_export_rows[i].record_type))))
        i++;
    if (i == XPL_IREE_N_CHUNK_TYPES) return "a row of an unknown type";
    row = (struct xpl_ireeperf_row){
        .head = {.index = start->index,
                 .type = XPL_IREE_RECORD_CHUNK,
                 .chunk = (enum xpl_iree_chunk)i,
                 .device = XPL_IREE_NONE,
                 .queue = XPL_IREE_NONE,
                 .session_id = r->records.session_id,
                 .flags = i == XPL_IREE_TRACES ? XPL_IREE_CHUNK_LEFT_OUT : 0}};
    const char *const bad = xpl_ireeperf_row_read(line, &row);
    return bad ? bad : xpl_ireeperf_row_put(&row, &r->records);
}

static const char *put_row(struct reader *r, xpl_str_t line, size_t at) {
    struct start start;
    struct other other;
    if (line.len > XPL_IREEPERF_LINE_MAX) return "the row is too long";
    const char *const bad = read_start(line, &start);
    if (bad) return bad;
    if (xpl_str_eq(start.record_type, XPL_STR("schema"))) {
        r->at = r->file.len;
        return "the rows of another bundle follow, which are not read";
    }
    const bool session = xpl_str_eq(start.record_type, XPL_STR("session"));
    if (!session && !xpl_str_eq(start.record_type, XPL_STR("diagnostic")))
        return put_event(r, line, &start);
    const char *const wrong = read_other(line, &other);
    if (wrong) return wrong;
    return session ? put_session(r, &other, start.index)
                   : put_diagnostic(r, &other, start.index, at);
}

static void put_file_header(const struct reader *r, struct xpl_buf *out, uint64_t file_length) {
    const uint32_t header_length = XPL_IREE_FILE_HEADER + sizeof r->origin;
    uint8_t header[XPL_IREE_FILE_HEADER] = {'I', 'R', 'P', 'F'};
    memcpy(header + 4, &r->version_major, 2);
    memcpy(header + 6, &r->version_minor, 2);
    memcpy(header + 8, &header_length, sizeof header_length);
    memcpy(header + 16, &file_length, sizeof file_length);
    if (!file_length) { // room for it
        xpl_buf_put(out, header, sizeof header);
        xpl_buf_put(out, &r->origin, sizeof r->origin);
    } else if (!out->failed) {
        memcpy(out->p, header, sizeof header);
        memcpy(out->p + sizeof header, &r->origin, sizeof r->origin);
    }
}

static xpl_status_t put_rows(struct reader *r, struct xpl_exec *exec, struct xpl_error *err) {
    enum { ROWS = 1024 }; // between two times of asking whether to give up
    xpl_str_t line;
    size_t at;
    for (size_t n = 0; next_line(r, &line, &at) && !r->records.out->failed; n++) {
        const char *const bad = put_row(r, line, at);
        if (bad) note(r, at, bad);
        if (n % ROWS == 0 && exec && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    }
    xpl_ireeperf_record_end(&r->records);
    return XPL_OK;
}

xpl_status_t xpl_ireeperf_bundle(xpl_bytes_t file, struct xpl_exec *exec, struct xpl_buf *out,
                                 struct xpl_error *err) {
    struct reader r = {.file = file, .records = {.out = out}, .origin.mark = XPL_IREE_ORIGIN_MARK};
    XPL_TRY(read_schema(&r, err));
    put_file_header(&r, out, 0);
    XPL_TRY(put_rows(&r, exec, err));
    put_file_header(&r, out, out->n);
    if (out->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the bundle that the rows describe has more than %zu bytes, or there is "
                         "no memory",
                         out->max);
    return XPL_OK;
}
