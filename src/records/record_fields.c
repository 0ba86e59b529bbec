#include "records/record_fields.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "records/record_internal.h"

/* A body is a row, and no database holds longer ones. */
#define MAX_BODY ((size_t)512 << 20)
#define MAX_MEMBERS 32

const char *const hd_record_true[] = {"", "true", NULL};
const char *const hd_record_bool[] = {"false", "true", NULL};

bool hd_record_name_find(const char *const *names, struct hd_slice name, int *out)
{
    for (int i = 0; names[i]; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(names[i]))) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* ---- members of the struct -------------------------------------------- */

static struct hd_slice *slice_at(void *record, size_t offset)
{
    return (struct hd_slice *)((char *)record + offset);
}

static const struct hd_slice *const_slice_at(const void *record, size_t offset)
{
    return (const struct hd_slice *)((const char *)record + offset);
}

static bool is_slice(const struct hd_record_field *field)
{
    return field->kind == HD_RECORD_TEXT || field->kind == HD_RECORD_JSON ||
           field->kind == HD_RECORD_MEMORY;
}

static bool bool_at(const void *record, size_t offset)
{
    return *(const bool *)((const char *)record + offset);
}

/* int64_t, or int, enum, or bool. */
static int64_t load_int(const struct hd_record_field *field, const void *record)
{
    const char *at = (const char *)record + field->offset;
    int64_t wide;
    int narrow;

    if (field->size == sizeof(bool))
        return *(const bool *)at;
    if (field->size == sizeof(narrow)) {
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

static void store_int(const struct hd_record_field *field, void *record, int64_t value)
{
    char *at = (char *)record + field->offset;
    int narrow = (int)value;

    if (field->size == sizeof(bool))
        *(bool *)at = value != 0;
    else if (field->size == sizeof(narrow))
        memcpy(at, &narrow, sizeof(narrow));
    else
        memcpy(at, &value, sizeof(value));
}

/* ---- decoding --------------------------------------------------------- */

static int decode_name(const struct hd_record_field *field, struct hd_slice name, void *record)
{
    int value;

    if (!hd_record_name_find(field->names, name, &value))
        return HD_ECORRUPT;
    store_int(field, record, value);
    return 0;
}

static int decode_int(const struct hd_record_field *field, struct hd_slice raw, void *record)
{
    int64_t number = 0;
    int err = hd_record_int(raw, &number);

    if (!err && field->size < sizeof(number) && (number < 0 || number > INT_MAX))
        err = HD_ECORRUPT;
    if (!err)
        store_int(field, record, number);
    return err;
}

/* An unknown word is read as the first. */
static void decode_word(const struct hd_record_field *field, struct hd_slice raw, void *record)
{
    int value = 0;

    (void)hd_record_name_find(field->names, raw, &value);
    store_int(field, record, value);
}

static int decode_members(const struct hd_record_field *fields, size_t count, struct hd_slice body,
                          struct hd_arena *arena, void *record, struct hd_slice *unknown);

static int decode_value(const struct hd_record_field *field, struct hd_slice raw,
                        struct hd_arena *arena, void *record)
{
    struct hd_slice name;
    int err;

    switch (field->kind) {
    case HD_RECORD_TEXT:
        return hd_record_text(raw, arena, slice_at(record, field->offset));
    case HD_RECORD_JSON:
        *slice_at(record, field->offset) = raw;
        return 0;
    case HD_RECORD_INT:
        return decode_int(field, raw, record);
    case HD_RECORD_NAME:
        err = hd_record_text(raw, arena, &name);
        return err ? err : decode_name(field, name, record);
    case HD_RECORD_WORD:
        decode_word(field, raw, record);
        return 0;
    case HD_RECORD_OBJECT:
        return decode_members(field->members, field->member_count, raw, arena, record, NULL);
    default:
        return 0;
    }
}

static int decode_member(const struct hd_record_field *field, struct hd_slice raw,
                         struct hd_arena *arena, void *record)
{
    if (field->flags & (HD_RECORD_IF | HD_RECORD_UNLESS))
        *(bool *)((char *)record + field->other) = (field->flags & HD_RECORD_IF) != 0;
    return decode_value(field, raw, arena, record);
}

/* After the body was read: sets the value of a field that is not in it, and checks it. */
static int complete_field(const struct hd_record_field *field, bool is_absent, void *record)
{
    struct hd_slice *text = slice_at(record, field->offset);

    if (field->kind == HD_RECORD_NAME)
        return is_absent ? HD_ECORRUPT : 0;
    if (field->kind != HD_RECORD_TEXT)
        return 0;
    if (is_absent && (field->flags & HD_RECORD_ELSE))
        *text = *slice_at(record, field->other);
    else if (!text->ptr)
        *text = hd_slice("", 0);
    return (field->flags & HD_RECORD_REQUIRED) && text->len == 0 ? HD_ECORRUPT : 0;
}

/* The index of the field; `count`: none. Begins at *next, since bodies have the order of tables. */
static size_t find_field(const struct hd_record_field *fields, size_t count, struct hd_slice name,
                         size_t *next)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = *next;

        *next = at + 1 < count ? at + 1 : 0;
        if (hd_slice_eq(name, fields[at].name) && fields[at].kind != HD_RECORD_MEMORY)
            return at;
    }
    return count;
}

/* Appends a member, as it is in the body, to those that are not listed; commas separate them. */
static int keep_unknown(struct hd_arena *arena, struct hd_slice name, struct hd_slice raw,
                        struct hd_slice *unknown)
{
    const char *begin = name.ptr - 1; /* the quote */
    struct hd_slice member = hd_slice(begin, (size_t)(raw.ptr + raw.len - begin));
    char *joined;

    if (unknown->len == 0) {
        *unknown = member;
        return 0;
    }
    joined = hd_arena_alloc(arena, unknown->len + 1 + member.len);
    if (!joined)
        return HD_ENOMEM;
    memcpy(joined, unknown->ptr, unknown->len);
    joined[unknown->len] = ',';
    memcpy(joined + unknown->len + 1, member.ptr, member.len);
    *unknown = hd_slice(joined, unknown->len + 1 + member.len);
    return 0;
}

/* `unknown` is NULL for an object in the body: it is written as a whole. */
static int decode_members(const struct hd_record_field *fields, size_t count, struct hd_slice body,
                          struct hd_arena *arena, void *record, struct hd_slice *unknown)
{
    struct hd_member_reader reader = hd_member_reader(body);
    struct hd_slice name, raw;
    uint32_t seen = 0;
    size_t next = 0;
    int err = 0;

    assert(count <= MAX_MEMBERS);
    while (!err && hd_member_next(&reader, &name, &raw)) {
        size_t at = find_field(fields, count, name, &next);

        if (at < count) {
            seen |= UINT32_C(1) << at;
            err = decode_member(&fields[at], raw, arena, record);
        } else if (unknown) {
            err = keep_unknown(arena, name, raw, unknown);
        }
    }
    if (!err)
        err = reader.err;
    for (size_t i = 0; !err && i < count; i++)
        err = complete_field(&fields[i], !(seen >> i & 1), record);
    return err;
}

static int decode_column(const struct hd_record_type *type, const struct hd_record_field *field,
                         const struct hd_cell *cell, struct hd_arena *arena, void *record)
{
    switch (field->kind) {
    case HD_RECORD_TEXT:
    case HD_RECORD_JSON:
        *slice_at(record, field->offset) = cell->bytes;
        return 0;
    case HD_RECORD_INT:
        store_int(field, record, cell->number);
        return 0;
    case HD_RECORD_NAME:
        return decode_name(field, cell->bytes, record);
    case HD_RECORD_BODY:
        return decode_members(type->members, type->member_count, cell->bytes, arena, record,
                              slice_at(record, type->unknown));
    default:
        return 0;
    }
}

int hd_record_decode(const struct hd_record_type *type, const struct hd_cell *cells,
                     struct hd_arena *arena, void *out, struct heddle_error *fault)
{
    unsigned count = hd_tables[type->table].column_count;
    int err = 0;

    memset(out, 0, type->size);
    for (unsigned i = 0; !err && i < count; i++)
        err = decode_column(type, &type->columns[i], &cells[i], arena, out);
    if (!err && type->complete)
        err = type->complete(cells, out);
    return err == HD_ECORRUPT ? hd_record_damaged(type->table, cells[type->id].bytes, fault) : err;
}

/* ---- encoding --------------------------------------------------------- */

static bool is_written(const struct hd_record_field *field, const void *record);

static bool has_major_member(const struct hd_record_field *object, const void *record)
{
    for (size_t i = 0; i < object->member_count; i++) {
        const struct hd_record_field *member = &object->members[i];

        if (!(member->flags & HD_RECORD_MINOR) && is_written(member, record))
            return true;
    }
    return false;
}

static bool is_written(const struct hd_record_field *field, const void *record)
{
    const struct hd_slice *slice = const_slice_at(record, field->offset);

    if ((field->flags & HD_RECORD_IF) && !bool_at(record, field->other))
        return false;
    if ((field->flags & HD_RECORD_UNLESS) && bool_at(record, field->other))
        return false;
    if ((field->flags & HD_RECORD_ELSE) &&
        hd_slice_eq(*slice, *const_slice_at(record, field->other)))
        return false;
    switch (field->kind) {
    case HD_RECORD_TEXT:
    case HD_RECORD_JSON:
        return slice->len > 0;
    case HD_RECORD_INT:
        return load_int(field, record) != 0;
    case HD_RECORD_NAME:
        return true;
    case HD_RECORD_WORD:
        return field->names[load_int(field, record)][0] != '\0';
    case HD_RECORD_OBJECT:
        return has_major_member(field, record);
    default:
        return false;
    }
}

static struct hd_slice stored_name(const struct hd_record_field *field, const void *record)
{
    return hd_slice_cstr(field->names[load_int(field, record)]);
}

/* `unknown` can be empty. */
static void encode_object(struct hd_jw *jw, const struct hd_record_field *fields, size_t count,
                          struct hd_slice unknown, const void *record)
{
    hd_jw_object(jw);
    for (size_t i = 0; i < count; i++) {
        const struct hd_record_field *field = &fields[i];

        if (!is_written(field, record))
            continue;
        hd_jw_key(jw, field->name);
        if (field->kind == HD_RECORD_TEXT)
            hd_jw_string(jw, *const_slice_at(record, field->offset));
        else if (field->kind == HD_RECORD_JSON)
            hd_jw_raw(jw, *const_slice_at(record, field->offset));
        else if (field->kind == HD_RECORD_INT)
            hd_jw_int(jw, load_int(field, record));
        else if (field->kind == HD_RECORD_NAME)
            hd_jw_string(jw, stored_name(field, record));
        else if (field->kind == HD_RECORD_WORD)
            hd_jw_raw(jw, stored_name(field, record));
        else
            encode_object(jw, field->members, field->member_count, HD_S(""), record);
    }
    if (unknown.len > 0)
        hd_jw_raw(jw, unknown);
    hd_jw_object_end(jw);
}

static int encode_body(const struct hd_record_type *type, const void *record,
                       struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_BODY);
    hd_jw_init(&jw, &buf);
    encode_object(&jw, type->members, type->member_count, *const_slice_at(record, type->unknown),
                  record);
    return hd_jw_finish_in(&jw, arena, out);
}

/* Every column but the body. */
static struct hd_cell make_cell(const struct hd_record_type *type, unsigned column,
                                const void *record)
{
    const struct hd_record_field *field = &type->columns[column];
    int64_t number;

    switch (field->kind) {
    case HD_RECORD_TEXT:
    case HD_RECORD_JSON:
        return hd_cell_bytes(*const_slice_at(record, field->offset));
    case HD_RECORD_INT:
        number = load_int(field, record);
        return number == 0 && hd_tables[type->table].columns[column].nullable ? hd_cell_null()
                                                                              : hd_cell_int(number);
    case HD_RECORD_NAME:
        return hd_cell_bytes(stored_name(field, record));
    default:
        return hd_cell_null();
    }
}

int hd_record_encode(const struct hd_record_type *type, const void *record, struct hd_arena *arena,
                     struct hd_cell cells[HD_MAX_COLUMNS])
{
    unsigned count = hd_tables[type->table].column_count;
    int err = 0;

    for (unsigned i = 0; !err && i < count; i++) {
        cells[i] = make_cell(type, i, record);
        if (type->columns[i].kind == HD_RECORD_BODY) {
            cells[i].kind = HD_CELL_BYTES;
            err = encode_body(type, record, arena, &cells[i].bytes);
        }
    }
    return err;
}

void hd_record_key(const struct hd_record_type *type, const void *record,
                   struct hd_cell cells[HD_MAX_COLUMNS])
{
    for (unsigned i = 0; i < hd_tables[type->table].key_count; i++)
        cells[i] = make_cell(type, i, record);
}

/* ---- copying ---------------------------------------------------------- */

static int copy_slices(const struct hd_record_field *fields, size_t count, struct hd_arena *arena,
                       const void *record, void *out)
{
    int err = 0;

    for (size_t i = 0; !err && i < count; i++) {
        const struct hd_record_field *field = &fields[i];

        if (is_slice(field))
            err = hd_arena_copy(arena, *const_slice_at(record, field->offset),
                                slice_at(out, field->offset));
        else if (field->kind == HD_RECORD_OBJECT)
            err = copy_slices(field->members, field->member_count, arena, record, out);
    }
    return err;
}

int hd_record_copy(const struct hd_record_type *type, struct hd_arena *arena, const void *record,
                   void *out)
{
    int err;

    memcpy(out, record, type->size);
    err = copy_slices(type->columns, hd_tables[type->table].column_count, arena, record, out);
    if (!err)
        err = copy_slices(type->members, type->member_count, arena, record, out);
    if (!err && type->unknown)
        err = hd_arena_copy(arena, *const_slice_at(record, type->unknown),
                            slice_at(out, type->unknown));
    return err;
}
