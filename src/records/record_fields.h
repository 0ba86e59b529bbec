/*
 * Field tables: how the members of a record are stored in a row.
 *
 * A row has columns. One of them can be the body, a JSON object with all that no index needs. Each
 * record has one struct hd_record_type that lists both; decoding, encoding and copying follow it. A
 * new member of a body is one line in its table: rows without it read as 0 or empty, and 0 and
 * empty are not written, so the rows of earlier versions keep their bytes. A new column also needs
 * a new version of the schema (store/table.h).
 *
 * Members are written in the order of the table. Members of a body that the table does not list,
 * which a newer version wrote, are kept with the record and written after the others.
 */
#ifndef HD_RECORDS_RECORD_FIELDS_H
#define HD_RECORDS_RECORD_FIELDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/table.h"

/* How a field is stored: its type in C, then its form in a column and in a body. */
enum hd_record_kind {
    HD_RECORD_NONE, /* a column that is not in the record */
    HD_RECORD_TEXT, /* slice: bytes; a string, not written when empty */
    HD_RECORD_JSON, /* slice: a value as it is, byte for byte, not written when empty */
    HD_RECORD_INT,  /* int64_t, int, enum: a number; 0 is null in a nullable column, not written */
    HD_RECORD_NAME, /* enum: names[value], as bytes and as a string; a row without it is damaged */
    HD_RECORD_WORD, /* bool, enum: JSON names[value] in a body, not written when that is "" */
    HD_RECORD_OBJECT, /* a JSON object in a body; `members` are its members */
    HD_RECORD_BODY,   /* the column of the body */
    HD_RECORD_MEMORY  /* slice: not stored, but copied with the record */
};

enum {
    HD_RECORD_REQUIRED = 1, /* TEXT: a row in which it is empty is damaged */
    HD_RECORD_IF = 2,       /* written when the bool at `other` is true; reading it sets this */
    HD_RECORD_UNLESS = 4,   /* the same when it is false */
    HD_RECORD_ELSE = 8,     /* TEXT: when not written, it equals the slice at `other` */
    HD_RECORD_MINOR = 16    /* in an OBJECT: does not suffice to write the object */
};

struct hd_record_field {
    struct hd_slice name; /* in the body */
    enum hd_record_kind kind;
    unsigned flags;
    size_t offset, size;      /* in the struct of the record */
    size_t other;             /* an offset too */
    const char *const *names; /* ends with NULL */
    const struct hd_record_field *members;
    size_t member_count;
};

/* The beginning of an initializer; other parts of the field may follow. */
#define HD_RECORD_COLUMN(kind_, type_, member_)                    \
    .kind = HD_RECORD_##kind_, .offset = offsetof(type_, member_), \
    .size = sizeof(((type_ *)0)->member_)
#define HD_RECORD_MEMBER(name_, kind_, type_, member_) \
    .name = HD_S_INIT(name_), HD_RECORD_COLUMN(kind_, type_, member_)
#define HD_RECORD_MEMBERS(fields_) .members = (fields_), .member_count = HD_COUNT(fields_)

struct hd_record_type {
    enum hd_table_id table;
    size_t size;  /* of the struct */
    unsigned id;  /* the column that identifies the record in a fault */
    unsigned rev; /* the column of the revision, an int64_t; 0: none */
    struct hd_record_field columns[HD_MAX_COLUMNS];
    const struct hd_record_field *members; /* of the body, at most 32 */
    size_t member_count;
    size_t unknown; /* the offset of a slice for the other members of the body */
    /* Optional: checks a decoded record, sets members that are not in the table; HD_ECORRUPT. */
    int (*complete)(const struct hd_cell *cells, void *record);
    /* Calls the function at `fn`, which has the record's own type; for hd_records_scan(). */
    int (*call)(const void *fn, void *arg, const void *record);
};

/* The words of a bool that is not written when it is false. */
extern const char *const hd_record_true[];
/* The words of one that is always written. */
extern const char *const hd_record_bool[];

/*
 * Borrows from the cells; strings with escapes are in the arena. HD_ECORRUPT with a fault that
 * names the table and the id.
 */
HD_MUST_CHECK int hd_record_decode(const struct hd_record_type *type, const struct hd_cell *cells,
                                   struct hd_arena *arena, void *out, struct heddle_error *fault);
/* Sets the cells of all columns. They borrow from the record; the body is in the arena. */
HD_MUST_CHECK int hd_record_encode(const struct hd_record_type *type, const void *record,
                                   struct hd_arena *arena, struct hd_cell cells[HD_MAX_COLUMNS]);
/* Sets the cells of the key. They borrow from the record. */
void hd_record_key(const struct hd_record_type *type, const void *record,
                   struct hd_cell cells[HD_MAX_COLUMNS]);
/* Copies the record and everything it points to into the arena. */
HD_MUST_CHECK int hd_record_copy(const struct hd_record_type *type, struct hd_arena *arena,
                                 const void *record, void *out);

/* The value with this name; false: there is none, and *out is unchanged. */
bool hd_record_name_find(const char *const *names, struct hd_slice name, int *out);

#endif
