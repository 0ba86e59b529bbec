/*
 * Everything a database holds, looked through for secrets: every table, every column, what is
 * packed unpacked. Blocks, reads page by page, and changes nothing.
 */
#ifndef HD_TRANSFER_SECRET_SCAN_H
#define HD_TRANSFER_SECRET_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "secret/secret_find.h"
#include "store/table.h"

struct heddle;

struct hd_secret_place {
    enum hd_table_id table;
    const struct hd_cell *cells; /* the row; its key identifies it */
    unsigned column;
    const struct hd_secret_finding *finding;
};

/* A negative answer ends the scan with it. */
typedef int (*hd_secret_place_fn)(void *ctx, const struct hd_secret_place *place);
/* Now and then, with the rows of the table that were read so far. */
typedef void (*hd_secret_progress_fn)(void *ctx, enum hd_table_id table, uint64_t rows);

struct hd_secret_scan {
    hd_secret_place_fn found;
    hd_secret_progress_fn progress; /* may be NULL */
    void *ctx;
    uint64_t rows[HD_TABLE_COUNT]; /* set: how many were read */
};

/* HD_ECORRUPT: a column cannot be unpacked. */
HD_MUST_CHECK int hd_secret_scan(struct heddle *store, struct hd_secret_scan *scan,
                                 struct heddle_error *fault);

#endif
