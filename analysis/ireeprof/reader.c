// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reader.h"

#include <stddef.h>
#include <stdio.h>

enum {
    DONE_AT = 1 << 20, // bytes that are given back at once
    HEAD = XPL_IREE_HEAD,
    // Behind a record of so many bytes the next header is read from the file: to map the pages
    // around it takes longer.
    FAR = 1 << 15,
};

static uint16_t u16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint32_t u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint64_t u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// ---- records ----

// The type of a chunk by its content type.
static enum xpl_iree_chunk chunk_of(xpl_str_t content_type, bool *ret_old) {
    const xpl_str_t prefix = XPL_IREE_CONTENT_TYPE;
    *ret_old = false;
    if (!xpl_str_starts(content_type, prefix)) return XPL_IREE_UNKNOWN_CHUNK;
    const xpl_str_t suffix = xpl_str_sub(content_type, prefix.len, SIZE_MAX);
    for (unsigned i = 0; i < XPL_IREE_N_CHUNK_TYPES; i++) {
        const struct xpl_iree_chunk_type *const t = &xpl_iree_chunk_types[i];
        *ret_old = t->old_suffix && xpl_str_eq(suffix, xpl_str_from(t->old_suffix));
        if (*ret_old || xpl_str_eq(suffix, xpl_str_from(t->suffix))) return (enum xpl_iree_chunk)i;
    }
    return XPL_IREE_UNKNOWN_CHUNK;
}

static void read_header(const uint8_t *p, struct xpl_iree_record *r) {
    r->record_length = u64(p);
    r->payload_length = u64(p + 8);
    r->session_id = u64(p + 16);
    r->stream_id = u64(p + 24);
    r->event_id = u64(p + 32);
    r->executable_id = u64(p + 40);
    r->command_buffer_id = u64(p + 48);
    r->physical_device_ordinal = u32(p + 68);
    r->queue_ordinal = u32(p + 72); // bytes 76 to 79 are whatever the writer's stack held
    r->chunk_flags = u64(p + 80);
    r->dropped_record_count = u64(p + 88);
    r->session_status_code = u32(p + 96);
    r->record_type = u16(p + 100);
}

// The first bytes at `at`, of which `n` are there: from the file, into `head` (NULL: not), where
// the mapping can do that.
static const uint8_t *head_of(const struct xpl_iree_bundle *b, uint64_t at, uint64_t n,
                              uint8_t *head) {
    const struct xpl_iree_mapping *const m = b->mapping;
    if (!head || !m || !m->read || n < HEAD || !m->read(m->ctx, at, head, HEAD))
        return b->bytes.ptr + at;
    return head;
}

// Reads the record at `at` of the bundle's bytes.  head: HEAD bytes for its beginning, where no
// page near it was read; else NULL.  Returns NULL, or why there is none.
static const char *read_record(const struct xpl_iree_bundle *b, uint64_t at, uint8_t *head,
                               struct xpl_iree_record *r) {
    const xpl_bytes_t bytes = b->bytes;
    const uint64_t left = bytes.len - at;
    if (left < XPL_IREE_RECORD_HEADER) return "profile record is too small for header";
    const uint8_t *const mapped = bytes.ptr + at;
    const uint8_t *const p = head_of(b, at, left, head);
    read_header(p, r);
    const uint32_t header = u32(p + 56), type = u32(p + 60), name = u32(p + 64);
    if (r->record_length > left) return "profile record extends past file end";
    if (header < XPL_IREE_RECORD_HEADER || header > r->record_length)
        return "profile record header length is invalid";
    if (u16(p + 102) != 0) return "profile record reserved flags must be zero";
    // The three lengths of 32 bits cannot overflow, the fourth is compared with the rest.
    const uint64_t front = (uint64_t)header + type + name;
    if (front > r->record_length || r->payload_length != r->record_length - front)
        return "profile record data lengths do not match";
    r->offset = at;
    r->reading = NULL;
    const char *const names = (const char *)(front <= HEAD ? p : mapped) + header;
    r->content_type = (xpl_str_t){names, type};
    r->name = (xpl_str_t){names + type, name};
    r->payload = (xpl_bytes_t){mapped + front, (size_t)r->payload_length};
    r->old_name = false;
    r->chunk = r->record_type == XPL_IREE_RECORD_CHUNK ? chunk_of(r->content_type, &r->old_name)
                                                       : XPL_IREE_NO_CHUNK;
    return NULL;
}

bool xpl_iree_next(struct xpl_iree_cursor *c, struct xpl_iree_record *ret) {
    if (c->at == 0) c->at = c->bundle->header.header_length;
    if (c->at >= c->bundle->bytes.len ||
        read_record(c->bundle, c->at, c->is_far ? c->head : NULL, ret))
        return false;
    ret->index = c->index++;
    ret->reading = c->reading;
    c->at += ret->record_length;
    c->is_far = ret->record_length >= FAR;
    return true;
}

// ---- typed records ----

// Reads the rest, or as much of it as the window holds.
static bool fill_window(struct xpl_iree_items *it) {
    const struct xpl_iree_bundle *const b = it->reading->bundle;
    struct xpl_iree_window *const w = it->reading->window;
    const uint64_t at = (uint64_t)(it->end - it->left - b->bytes.ptr);
    const size_t n = it->left < XPL_IREE_WINDOW ? it->left : XPL_IREE_WINDOW;
    // Reports that look at a chunk twice find it there.
    if (w->at != at || w->n < n) {
        w->n = 0;
        if (!b->mapping->read(b->mapping->ctx, at, w->bytes, n)) return false;
        w->at = at, w->n = n;
    }
    it->p = w->bytes;
    it->stop = it->left - n + it->type->size - 1;
    return true;
}

// Where the fast way pauses next: before the last record, which may be cut, before the end of the
// window, and after bytes that are many enough to be given back.
static void set_stop(struct xpl_iree_items *it) {
    const size_t whole = it->type->size - 1;
    it->in_window = it->in_file && fill_window(it);
    if (it->in_window) return;
    it->in_file = false;
    it->p = it->end - it->left;
    it->stop = it->left > DONE_AT + whole ? it->left - DONE_AT : whole;
}

// Whether the events of a chunk are read from the file: they are many, and all of one length.
static bool is_in_file(const struct xpl_iree_record *r) {
    const struct xpl_iree_chunk_type *const t = &xpl_iree_chunk_types[r->chunk];
    const struct xpl_iree_mapping *const m = r->reading ? r->reading->bundle->mapping : NULL;
    return m && m->read && r->reading->window && t->events && t->tail == XPL_IREE_TAIL_ANY &&
           r->payload.len >= FAR;
}

struct xpl_iree_items xpl_iree_items_of(const struct xpl_iree_record *r) {
    if (r->chunk >= XPL_IREE_N_CHUNK_TYPES) return (struct xpl_iree_items){0};
    const struct xpl_iree_chunk_type *const t = &xpl_iree_chunk_types[r->chunk];
    struct xpl_iree_items it = {.type = t,
                                .p = r->payload.ptr,
                                .left = r->payload.len,
                                .end = r->payload.ptr + r->payload.len,
                                .in_file = is_in_file(r),
                                .stop = SIZE_MAX,
                                .left_out = (r->chunk_flags & XPL_IREE_CHUNK_LEFT_OUT) != 0,
                                .fixed = t->tail == XPL_IREE_TAIL_ANY ? t->size : UINT64_MAX,
                                .reading = r->reading};
    if (!it.in_file) set_stop(&it); // otherwise when the first one is read
    return it;
}

struct xpl_iree_items xpl_iree_items_by_size(const struct xpl_iree_record *r) {
    struct xpl_iree_items it = xpl_iree_items_of(r);
    it.by_size = it.type && it.type->tail == XPL_IREE_TAIL_ANY && it.left % it.type->size == 0;
    return it;
}

// The bytes that the length members of a typed record say follow it.
static uint64_t stated_tail(const struct xpl_iree_chunk_type *t, const uint8_t *p) {
    if (t->length_scale == 0) return u64(p + t->lengths[0]);
    uint64_t n = 0;
    for (size_t i = 0; i < 3 && t->lengths[i]; i++)
        n += (uint64_t)u32(p + t->lengths[i]) * t->length_scale;
    return n;
}

// The one record of a chunk of traces, whose bytes follow it.
static const char *trace_tail(struct xpl_iree_items *it, uint32_t length,
                              struct xpl_iree_item *ret) {
    if (length != it->type->size)
        return "profile executable trace chunk record length must exclude raw trace bytes";
    const bool left_out = it->left_out && it->left == length;
    const uint64_t data = left_out ? 0 : u64(it->p + offsetof(struct xpl_iree_trace, data_length));
    if (data != it->left - length)
        return "profile executable trace chunk data length is inconsistent with payload length";
    *ret = (struct xpl_iree_item){it->p, {it->p + length, (size_t)data}};
    it->p += it->left, it->left = 0;
    return NULL;
}

static const char *read_item(struct xpl_iree_items *it, struct xpl_iree_item *ret) {
    const struct xpl_iree_chunk_type *const t = it->type;
    if (it->left < t->size) return "profile chunk has a truncated typed record";
    const uint32_t length = it->by_size ? t->size : u32(it->p);
    if (length < t->size || length > it->left)
        return "profile chunk has invalid typed record length";
    if (t->tail == XPL_IREE_TAIL_AFTER) return trace_tail(it, length, ret);
    if (t->tail == XPL_IREE_TAIL_BYTES && !it->any_tail &&
        stated_tail(t, it->p) != length - t->size)
        return t->mismatch;
    *ret = (struct xpl_iree_item){it->p, {it->p + t->size, length - t->size}};
    it->p += length, it->left -= length;
    return NULL;
}

// Whether the next one is as long as its struct, which the window holds.
static bool is_fixed(const struct xpl_iree_items *it) {
    return it->in_window && it->left >= it->type->size &&
           (it->by_size || u32(it->p) == it->type->size);
}

// The rest of the chunk is read where it is mapped: another length may be larger than the window.
static void leave_window(struct xpl_iree_items *it) {
    it->in_file = false;
    set_stop(it);
}

static void note(struct xpl_iree_notes *notes, uint64_t offset, const char *text) {
    if (notes->n < XPL_IREE_NOTES_KEPT) {
        struct xpl_iree_note *const n = &notes->kept[notes->n];
        n->offset = offset;
        (void)snprintf(n->text, sizeof n->text, "%s", text);
    }
    notes->n++;
}

// Events may be read more than once; of a place that was noted nothing is noted again.
static void note_event(struct xpl_iree_notes *notes, uint64_t offset, const char *text) {
    for (size_t i = 0; i < notes->n && i < XPL_IREE_NOTES_KEPT; i++)
        if (notes->kept[i].offset == offset) return;
    // Beyond those that are kept, passes over the file cannot be told apart: one is enough.
    if (notes->n <= XPL_IREE_NOTES_KEPT) note(notes, offset, text);
}

bool xpl_iree_item_slow(struct xpl_iree_items *it, struct xpl_iree_item *ret,
                        const char **ret_reason) {
    const struct xpl_iree_reading *const reading = it->reading;
    const bool more = it->left != 0;
    if (more && it->left <= it->stop && it->left >= it->type->size) {
        if (reading && !it->in_file) xpl_iree_done(reading->bundle, it->p - DONE_AT, DONE_AT);
        set_stop(it);
    }
    if (more && it->in_file && !is_fixed(it)) leave_window(it);
    const char *const reason = more ? read_item(it, ret) : NULL;
    if (ret_reason) *ret_reason = reason;
    if (reason) {
        if (reading && reading->damage && it->type->events)
            note_event(reading->damage, (uint64_t)(it->end - it->left - reading->bundle->bytes.ptr),
                       reason);
        it->left = 0;
    }
    return more && !reason;
}

// ---- opening ----

bool xpl_iree_sniff(xpl_bytes_t file) {
    return file.len >= 4 && memcmp(file.ptr, "IRPF", 4) == 0;
}

static xpl_status_t read_file_header(xpl_bytes_t file, struct xpl_iree_header *h,
                                     struct xpl_error *err) {
    if (file.len < XPL_IREE_FILE_HEADER)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 0, "profile file is too small for header");
    if (!xpl_iree_sniff(file))
        XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, 0, "invalid IREE HAL profile file magic");
    *h = (struct xpl_iree_header){.version_major = u16(file.ptr + 4),
                                  .version_minor = u16(file.ptr + 6),
                                  .header_length = u32(file.ptr + 8),
                                  .flags = u32(file.ptr + 12),
                                  .file_length = u64(file.ptr + XPL_IREE_FILE_LENGTH_AT)};
    if (h->version_major != 1)
        XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, 4,
                            "unsupported IREE HAL profile file version %u.%u", h->version_major,
                            h->version_minor);
    if (h->header_length < XPL_IREE_FILE_HEADER)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 8, "profile file header length is too small");
    if (h->header_length > file.len)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 8, "profile file header extends past file end");
    if (h->flags != 0)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 12, "profile file reserved flags must be zero");
    if (h->file_length != 0 && h->file_length < h->header_length)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 16,
                            "profile file length is before the first record");
    return XPL_OK;
}

// IREE's rule for the coordinates of a command operation; NULL: kept.
static const char *check_operation(const uint8_t *p) {
    struct xpl_iree_command_operation op;
    memcpy(&op, p, sizeof op);
    if (op.flags & XPL_IREE_COMMAND_BLOCK_STRUCTURE)
        return op.block_ordinal == XPL_IREE_NONE || op.block_command_ordinal == XPL_IREE_NONE
                   ? "command operation declares block structure without block coordinates"
                   : NULL;
    return op.block_ordinal != XPL_IREE_NONE || op.block_command_ordinal != XPL_IREE_NONE ||
                   op.target_block_ordinal != XPL_IREE_NONE ||
                   op.alternate_block_ordinal != XPL_IREE_NONE
               ? "command operation carries block coordinates without the block structure flag"
               : NULL;
}

// Notes where the typed records of a chunk of metadata are damaged.
static void check_chunk(struct xpl_iree_bundle *b, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item = {0};
    const char *reason;
    if (!items.type || items.type->events) return;
    while (xpl_iree_item_next(&items, &item, &reason))
        if (r->chunk == XPL_IREE_COMMAND_OPERATIONS && (reason = check_operation(item.p)))
            note(&b->notes, (uint64_t)(item.p - b->bytes.ptr), reason);
    if (reason) note(&b->notes, (uint64_t)(items.p - b->bytes.ptr), reason);
}

static void note_chunk(struct xpl_iree_bundle *b, const struct xpl_iree_record *r) {
    if (r->chunk >= XPL_IREE_N_CHUNK_TYPES) return;
    b->has |= 1u << r->chunk;
    if (b->n_places < XPL_IREE_PLACES) // so that the number fits, too: records take 104 bytes
        b->places[b->n_places] =
            (struct xpl_iree_chunk_at){r->offset, (uint32_t)b->n_records, r->chunk};
    b->n_places++;
}

// Walks the records up to the end of the file or of the intact part, which becomes the bundle's
// end.
static void find_end(struct xpl_iree_bundle *b) {
    struct xpl_iree_record r;
    uint8_t head[HEAD];
    const char *reason = NULL;
    bool is_far = false;
    uint64_t at = b->header.header_length, from = 0;
    while (at < b->bytes.len && !(reason = read_record(b, at, is_far ? head : NULL, &r))) {
        check_chunk(b, &r);
        note_chunk(b, &r);
        at += r.record_length;
        is_far = r.record_length >= FAR;
        b->n_records++;
        b->n_sessions += r.record_type == XPL_IREE_RECORD_BEGIN;
        if (at - from < DONE_AT) continue;
        xpl_iree_done(b, b->bytes.ptr + from, (size_t)(at - from));
        from = at;
    }
    if (reason) note(&b->notes, at, reason);
    if (at < b->bytes.len) b->bytes.len = (size_t)at;
}

// What the header of a bundle that was made of rows says of these.
static void read_origin(xpl_bytes_t file, struct xpl_iree_bundle *b) {
    struct xpl_iree_origin o;
    if (b->header.header_length < XPL_IREE_FILE_HEADER + sizeof o ||
        memcmp(file.ptr + XPL_IREE_FILE_HEADER, XPL_IREE_ORIGIN_MARK,
               sizeof XPL_IREE_ORIGIN_MARK) != 0)
        return;
    memcpy(&o, file.ptr + XPL_IREE_FILE_HEADER, sizeof o);
    b->from_rows = true;
    b->notes = o.notes;
    for (size_t i = 0; i < XPL_IREE_NOTES_KEPT; i++)
        b->notes.kept[i].text[sizeof b->notes.kept[i].text - 1] = '\0';
}

xpl_status_t xpl_iree_open(xpl_bytes_t file, bool with_unfinished, struct xpl_iree_bundle *ret,
                           struct xpl_error *err) {
    return xpl_iree_open_mapped(file, with_unfinished, NULL, ret, err);
}

xpl_status_t xpl_iree_open_mapped(xpl_bytes_t file, bool with_unfinished,
                                  const struct xpl_iree_mapping *mapping,
                                  struct xpl_iree_bundle *ret, struct xpl_error *err) {
    struct xpl_iree_bundle *const b = ret;
    struct xpl_iree_record behind;
    struct xpl_iree_header header;
    XPL_TRY(read_file_header(file, &header, err));
    memset(b, 0, offsetof(struct xpl_iree_bundle, places));
    b->bytes = file, b->file_bytes = file.len, b->mapping = mapping, b->header = header;
    const uint64_t stated = header.file_length;
    b->never_finished = stated == 0;
    b->unfinished_behind =
        stated != 0 && stated < file.len && !read_record(b, stated, NULL, &behind) &&
        behind.record_type >= XPL_IREE_RECORD_BEGIN && behind.record_type <= XPL_IREE_RECORD_END;
    const bool whole =
        stated == 0 || stated > file.len || (with_unfinished && b->unfinished_behind);
    b->bytes = (xpl_bytes_t){file.ptr, whole ? file.len : (size_t)stated};
    read_origin(file, b);
    if (stated > file.len)
        note(&b->notes, file.len, "profile file length extends past file contents");
    find_end(b);
    return XPL_OK;
}
