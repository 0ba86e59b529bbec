/*
 * Rows of the table `servers`. A server that uses its store alone has the row of slot "". Servers
 * that share a store have a row each, whose slot is their id; the row of slot "" is then the
 * *mark* of the cluster: it has the token of the leader, and its counter changes as long as one of
 * them lives, so that a server that wants the store alone, also an older one, finds it in use.
 *
 * Each row has a random token, one for each start of a server, and a beat counter. Changes are
 * batches that expect both as they were read.
 */
#ifndef HD_CLUSTER_SERVER_ROW_H
#define HD_CLUSTER_SERVER_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/server_identity.h"
#include "store/batch.h"

struct heddle;

struct hd_server_row {
    char slot[HD_UUID_SIZE];
    int64_t token;
    int64_t beat;
    int64_t started_at; /* for people only: a time of the server's own clock */
    struct hd_server_identity identity;
};

/* Several servers may add their rows at the same time, before they notice that it is too many. */
#define HD_SERVER_ROWS_MAX (2 * HD_CLUSTER_MAX_SERVERS)

/* Of all slots, in their order: the row of slot "" is the first. */
struct hd_server_rows {
    struct hd_server_row items[HD_SERVER_ROWS_MAX];
    size_t count;
};

/* Rows beyond HD_SERVER_ROWS_MAX are left out. Blocks. */
HD_MUST_CHECK int hd_server_row_read_all(struct hd_backend *backend, struct hd_server_rows *out,
                                         struct heddle_error *fault);
/* The same through the store. */
HD_MUST_CHECK int hd_server_row_read_store(struct heddle *store, struct hd_server_rows *out,
                                           struct heddle_error *fault);

/* NULL: there is none. */
const struct hd_server_row *hd_server_row_find(const struct hd_server_rows *rows, const char *slot);
/* True for a row of servers that share the store, including their mark. */
static inline bool hd_server_row_is_shared(const struct hd_server_row *row)
{
    return row->identity.id[0] != '\0';
}

/* ---- changes: appended to a batch ------------------------------------- */

/* Writes the whole row; `kind`: HD_OP_ADD or HD_OP_PUT. */
HD_MUST_CHECK int hd_server_row_put(struct hd_batch_builder *batch, enum hd_op_kind kind,
                                    const struct hd_server_row *row);
/* Expects the token. `slot` and the rows below are borrowed until the batch is applied. */
HD_MUST_CHECK int hd_server_row_expect(struct hd_batch_builder *batch, const char *slot,
                                       int64_t token);
/* The same, and sets the counter. */
HD_MUST_CHECK int hd_server_row_beat(struct hd_batch_builder *batch, const char *slot,
                                     int64_t token, int64_t beat);
/* Expects token and counter as in `seen`. */
HD_MUST_CHECK int hd_server_row_expect_seen(struct hd_batch_builder *batch,
                                            const struct hd_server_row *seen);
HD_MUST_CHECK int hd_server_row_delete(struct hd_batch_builder *batch, const char *slot);

/* Applies and empties the batch. */
HD_MUST_CHECK int hd_server_row_apply(struct hd_backend *backend, struct hd_batch_builder *batch,
                                      struct heddle_error *fault);

#endif
