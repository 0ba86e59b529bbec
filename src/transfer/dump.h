/*
 * Threads as text: what `heddle export` writes and `heddle import` reads.
 *
 * JSON lines (docs/operations.md). The first is a header, the last has the number of rows; a line
 * `{"thread": …}` begins a thread; all others are rows, `{"table": …, "row": {…}}`:
 *
 *   {"heddle": "export", "version": 1, …}
 *   {"table": "items", "row": {"namespace": "a", "key": "b", …, "value": {"json": {…}}}}
 *   {"thread": "0198…"}
 *   {"table": "checkpoints", "row": {…}}
 *   {"end": 2}
 *
 * Rows are those of the tables, unpacked, without the principal and the thread's id: a thread may
 * come back as another's. As the sender or reader of chat messages the principal is empty. Values
 * stay in the pieces they are stored in, so a long conversation does not grow. Readable contents
 * stay readable: `{"json": …}` is JSON as it was, `{"text": "…"}` text, `{"base64": "…"}` (with -
 * and _) anything else. Everything comes back byte for byte.
 *
 *   dump_value.c  values, events, exchanges      dump_read.c   lines to rows (pure)
 *   dump_write.c  rows to lines (pure)           export.c import.c
 */
#ifndef HD_TRANSFER_DUMP_H
#define HD_TRANSFER_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/table.h"

struct heddle;

#define HD_DUMP_VERSION 1
#define HD_DUMP_MAX_LINE ((size_t)512 << 20)

/* The form of a column in a dump. */
enum hd_dump_column {
    HD_DUMP_LEFT_OUT, /* the principal, the thread, what is made anew */
    HD_DUMP_INT,
    HD_DUMP_TEXT,
    HD_DUMP_BYTES,   /* `{"json"|"text"|"base64": …}` */
    HD_DUMP_BODY,    /* of a checkpoint */
    HD_DUMP_REF,     /* of a write */
    HD_DUMP_PAGE,    /* of events */
    HD_DUMP_EXCHANGE /* with another server */
};

/* HD_DUMP_LEFT_OUT for all columns of a table that is not written at all. */
enum hd_dump_column hd_dump_column(enum hd_table_id table, unsigned column);
/* True if the stored column is packed; the cells here are not. */
bool hd_dump_is_packed(enum hd_table_id table, unsigned column);
/* True if the column is the principal of a person, who may be the owner: empty in a dump then. */
bool hd_dump_is_person(enum hd_table_id table, unsigned column);

/* ---- lines (pure) ------------------------------------------------------ */

enum hd_dump_kind { HD_DUMP_HEADER, HD_DUMP_THREAD, HD_DUMP_ROW, HD_DUMP_END };

struct hd_dump_line {
    enum hd_dump_kind kind;
    int64_t version;                      /* of the header */
    struct hd_slice thread;               /* its id */
    enum hd_table_id table;               /* of a row */
    struct hd_cell cells[HD_MAX_COLUMNS]; /* unpacked; what is left out is null */
    int64_t rows;                         /* at the end */
};

/* HD_EINVAL: `fault` has the reason. The result points into the arena. */
HD_MUST_CHECK int hd_dump_read(struct hd_slice line, struct hd_arena *arena,
                               struct hd_dump_line *out, struct heddle_error *fault);
/* Appends a row with its newline; `cells` are unpacked. HD_ECORRUPT: they are of other types. */
HD_MUST_CHECK int hd_dump_write_row(struct hd_buf *out, enum hd_table_id table,
                                    const struct hd_cell *cells, struct hd_arena *arena);

/* ---- export ----------------------------------------------------------- */

struct hd_export {
    struct heddle *store;
    struct hd_slice principal;
    FILE *out;
    uint64_t threads, rows; /* set: what was written */
};

/* HD_ENOTFOUND: there is no such thread. HD_EBUSY: it lost something meanwhile. */
HD_MUST_CHECK int hd_export_thread(struct hd_export *export, struct hd_slice thread,
                                   struct heddle_error *fault);
/* Everything that belongs to the principal. */
HD_MUST_CHECK int hd_export_all(struct hd_export *export, struct heddle_error *fault);

/* ---- import ----------------------------------------------------------- */

struct hd_import {
    struct heddle *store;
    struct hd_slice principal;
    FILE *in; /* one that can be read twice */
    bool replaces;
    uint64_t threads, rows; /* set: what was brought in */
    uint64_t ended_runs;    /* set: they were active and cannot continue here */
    uint64_t line;          /* set: where the error is; 0: in no line */
};

/*
 * Reads everything first, and changes nothing when it is not good. Then brings it in; what was
 * brought in is taken away again when it cannot be finished. HD_EEXISTS: something of it is there.
 */
HD_MUST_CHECK int hd_import(struct hd_import *import, struct heddle_error *fault);

#endif
