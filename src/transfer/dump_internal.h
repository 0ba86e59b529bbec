/* Shared by the files of transfer/dump.h: the encodings within rows. Pure functions. */
#ifndef HD_TRANSFER_DUMP_INTERNAL_H
#define HD_TRANSFER_DUMP_INTERNAL_H

#include "base/json.h"
#include "transfer/dump.h"

/* The tables of a thread, and of a principal, in their order: HD_TABLE_COUNT after the last. */
extern const enum hd_table_id hd_dump_thread_tables[];
extern const enum hd_table_id hd_dump_principal_tables[];

/* `{"text": …}` or `{"base64": …}`; `may_be_json`: or `{"json": …}`. */
void hd_dump_write_bytes(struct hd_jw *jw, struct hd_slice bytes, bool may_be_json,
                         struct hd_arena *arena);
/* `raw` is the text of the value, for what is JSON in it; empty: there must be none. */
HD_MUST_CHECK int hd_dump_read_bytes(hd_json_val val, struct hd_slice raw, struct hd_arena *arena,
                                     struct hd_slice *out);

/*
 * The readable form of what is stored, appended as a JSON value. HD_ECORRUPT, with incomplete
 * output, when it cannot be read; the writer then uses base64, as when reading does not return the
 * same bytes.
 */
HD_MUST_CHECK int hd_dump_write_ref(struct hd_buf *out, struct hd_slice ref, struct hd_slice own,
                                    struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_write_body(struct hd_buf *out, struct hd_slice body,
                                     struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_write_page(struct hd_buf *out, struct hd_slice page,
                                     struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_write_exchange(struct hd_buf *out, struct hd_slice exchange,
                                         struct hd_arena *arena);

/* And back. HD_EINVAL when it is not one. */
HD_MUST_CHECK int hd_dump_read_ref(struct hd_buf *out, hd_json_val val, struct hd_slice own,
                                   struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_read_body(struct hd_buf *out, hd_json_val val, struct hd_slice raw,
                                    struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_read_page(struct hd_buf *out, hd_json_val val, struct hd_arena *arena);
HD_MUST_CHECK int hd_dump_read_exchange(struct hd_buf *out, hd_json_val val,
                                        struct hd_arena *arena);

#endif
