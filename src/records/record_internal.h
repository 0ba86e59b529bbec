/*
 * Shared by the files of records: bodies, and rows by the type of their record (record_fields.h).
 *
 * A body is a JSON object that Heddle wrote. Its members are read as text and not parsed: metadata
 * and inputs keep their bytes, and their content costs nothing.
 */
#ifndef HD_RECORDS_RECORD_INTERNAL_H
#define HD_RECORDS_RECORD_INTERNAL_H

#include "base/buf.h"
#include "base/json.h"
#include "records/record.h"
#include "records/record_fields.h"
#include "store/rows.h"

/* ---- bodies ----------------------------------------------------------- */

/* Reads the members of a body one by one; `at` never passes `end`. */
struct hd_member_reader {
    const char *at;
    const char *end;
    bool is_begun;
    int err; /* HD_ECORRUPT: the body is not an object */
};

static inline struct hd_member_reader hd_member_reader(struct hd_slice body)
{
    return (struct hd_member_reader){.at = body.ptr, .end = body.ptr + body.len};
}

/*
 * The next member, its name without the quotes. False at the end, or with reader->err. Checks no
 * more than it must to find the end of the value.
 */
HD_MUST_CHECK bool hd_member_next(struct hd_member_reader *reader, struct hd_slice *name,
                                  struct hd_slice *raw);

struct hd_member {
    const char *name;
    struct hd_slice *raw; /* set to the text of the value; empty without the member */
};

/* Sets these members of the object `body`, skips others. HD_ECORRUPT: it is not an object. */
HD_MUST_CHECK int hd_record_split(struct hd_slice body, const struct hd_member *members,
                                  size_t count);
/* The text of a JSON string: a part of `raw`, or in the arena. "" for empty. */
HD_MUST_CHECK int hd_record_text(struct hd_slice raw, struct hd_arena *arena, struct hd_slice *out);
/* A whole number; 0 for empty. */
HD_MUST_CHECK int hd_record_int(struct hd_slice raw, int64_t *out);

/* ---- rows ------------------------------------------------------------- */

/* Copies the bytes of a row into the arena. */
HD_MUST_CHECK int hd_record_keep(struct hd_arena *arena, enum hd_table_id table,
                                 const struct hd_cell *cells, struct hd_cell *out);
/* The first row of `query`, in the arena; HD_ENOTFOUND without a row. */
HD_MUST_CHECK int hd_record_first(struct heddle *store, struct hd_query query,
                                  struct hd_arena *arena, struct hd_cell cells[HD_MAX_COLUMNS],
                                  struct heddle_error *fault);

/* hd_record_first() of the row with this key. */
HD_MUST_CHECK int hd_record_get(struct heddle *store, enum hd_table_id table,
                                const struct hd_cell *key, unsigned key_count,
                                struct hd_arena *arena, struct hd_cell cells[HD_MAX_COLUMNS],
                                struct heddle_error *fault);

/* ---- records ---------------------------------------------------------- */

/* The record of the first row of `query`, whose table is set here; HD_ENOTFOUND without a row. */
HD_MUST_CHECK int hd_record_find(struct heddle *store, const struct hd_record_type *type,
                                 struct hd_query query, struct hd_arena *arena, void *out,
                                 struct heddle_error *fault);
/* The record with this key. */
HD_MUST_CHECK int hd_record_read(struct heddle *store, const struct hd_record_type *type,
                                 const struct hd_cell *key, unsigned key_count,
                                 struct hd_arena *arena, void *out, struct heddle_error *fault);
/*
 * hd_rows_scan() of all columns: type->call() with each record. `fn` points to a pointer to the
 * function. The record is valid during the call.
 */
HD_MUST_CHECK int hd_records_scan(struct heddle *store, const struct hd_record_type *type,
                                  struct hd_query query, const void *fn, void *arg,
                                  struct heddle_error *fault);

/*
 * The records of the first `most` rows (0: of all), whatever their number, in the arena: *out is an
 * array of the type's struct; NULL without a row.
 */
HD_MUST_CHECK int hd_records_list(struct heddle *store, const struct hd_record_type *type,
                                  struct hd_query query, size_t most, struct hd_arena *arena,
                                  void **out, size_t *count, struct heddle_error *fault);

/* Appends the row as it is. */
HD_MUST_CHECK int hd_record_write(struct hd_batch_builder *batch, const struct hd_record_type *type,
                                  const void *record, enum hd_op_kind kind);
/* A new row with revision 1; conflicts when the row exists. */
HD_MUST_CHECK int hd_record_add(struct hd_batch_builder *batch, const struct hd_record_type *type,
                                void *record);
/* The row with the next revision; conflicts unless the stored one has that of the record. */
HD_MUST_CHECK int hd_record_put(struct hd_batch_builder *batch, const struct hd_record_type *type,
                                void *record);
/* Deletes the row with the record's key. */
HD_MUST_CHECK int hd_record_delete(struct hd_batch_builder *batch,
                                   const struct hd_record_type *type, const void *record);

/* The thread of a row that hd_record_keep() has copied to the arena. */
HD_MUST_CHECK int hd_thread_decode(const struct hd_cell *cells, struct hd_arena *arena,
                                   struct hd_thread_rec *out, struct heddle_error *fault);

/* HD_ECORRUPT with a fault that names the record's table and id. */
int hd_record_damaged(enum hd_table_id table, struct hd_slice id, struct heddle_error *fault);

#endif
