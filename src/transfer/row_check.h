/*
 * Checks that every row of a database can be decoded: JSON parses, packed columns unpack, pages of
 * events and recorded exchanges read to their end. Rows have no checksums (values do, see
 * heddle_check()), so a changed byte that leaves a row well formed is not found.
 */
#ifndef HD_TRANSFER_ROW_CHECK_H
#define HD_TRANSFER_ROW_CHECK_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct heddle;

/* HD_ECORRUPT with the first row that cannot be decoded in `fault`; *rows: how many were read. */
HD_MUST_CHECK int hd_row_check(struct heddle *store, uint64_t *rows, struct heddle_error *fault);

#endif
