/*
 * An assistant has a row with its current version, and a row for each version with the same body.
 * A change adds a version; of two concurrent changes one conflicts there.
 */
#include "records/record_internal.h"

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_assistant_rec

static const struct hd_record_field assistant_members[] = {
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, graph_id)},
    {HD_RECORD_MEMBER("name", TEXT, REC, name)},
    {HD_RECORD_MEMBER("description", JSON, REC, description)},
    {HD_RECORD_MEMBER("config", JSON, REC, config)},
    {HD_RECORD_MEMBER("context", JSON, REC, context)},
    {HD_RECORD_MEMBER("metadata", JSON, REC, metadata)},
};

static int call_assistant_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_assistant_fn *)fn)(arg, record);
}

static const struct hd_record_type assistant_type = {
    .table = HD_ASSISTANTS,
    .size = sizeof(REC),
    .id = HD_ASSISTANTS_ID,
    .columns =
        {
            [HD_ASSISTANTS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ASSISTANTS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_ASSISTANTS_GRAPH] = {HD_RECORD_COLUMN(TEXT, REC, graph_id)},
            [HD_ASSISTANTS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ASSISTANTS_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_ASSISTANTS_VERSION] = {HD_RECORD_COLUMN(INT, REC, version)},
            [HD_ASSISTANTS_NAME] = {HD_RECORD_COLUMN(TEXT, REC, name)},
            [HD_ASSISTANTS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(assistant_members),
    .unknown = offsetof(REC, unknown),
    .call = call_assistant_fn,
};

static int complete_version(const struct hd_cell *cells, void *record)
{
    struct hd_assistant_rec *assistant = record;

    (void)cells;
    assistant->created_at = assistant->updated_at;
    return 0;
}

static const struct hd_record_type version_type = {
    .table = HD_ASSISTANT_VERSIONS,
    .size = sizeof(REC),
    .id = HD_ASSISTANT_VERSIONS_ID,
    .columns =
        {
            [HD_ASSISTANT_VERSIONS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ASSISTANT_VERSIONS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_ASSISTANT_VERSIONS_VERSION] = {HD_RECORD_COLUMN(INT, REC, version)},
            [HD_ASSISTANT_VERSIONS_CREATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_ASSISTANT_VERSIONS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(assistant_members),
    .unknown = offsetof(REC, unknown),
    .complete = complete_version,
    .call = call_assistant_fn,
};

/* ---- reading ---------------------------------------------------------- */

int hd_assistant_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                      struct hd_arena *arena, struct hd_assistant_rec *out,
                      struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};

    return hd_record_read(store, &assistant_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_assistant_read_version(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                              int64_t version, struct hd_arena *arena, struct hd_assistant_rec *out,
                              struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id),
                                  hd_cell_int(version)};

    return hd_record_read(store, &version_type, key, HD_COUNT(key), arena, out, fault);
}

static int on_last(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_ASSISTANT_VERSIONS_VERSION].number;
    return 1;
}

int hd_assistant_last_version(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                              int64_t *out, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    struct hd_query query = {.table = HD_ASSISTANT_VERSIONS,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .is_reverse = true,
                             .limit = 1};

    *out = 0;
    return hd_rows_read(store, &query, 1, on_last, out, fault);
}

int hd_assistants_scan(struct heddle *store, struct hd_slice principal, hd_assistant_fn fn,
                       void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    const struct hd_query query = {.index = HD_PRIMARY, .prefix = &prefix, .prefix_count = 1};

    return hd_records_scan(store, &assistant_type, query, &fn, arg, fault);
}

int hd_assistant_versions_scan(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                               hd_assistant_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    const struct hd_query query = {.index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .is_reverse = true};

    return hd_records_scan(store, &version_type, query, &fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

int hd_assistant_add(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant)
{
    int err = hd_record_write(batch, &assistant_type, assistant, HD_OP_ADD);

    return err ? err : hd_record_write(batch, &version_type, assistant, HD_OP_ADD);
}

int hd_assistant_put(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant,
                     int64_t from, bool is_new_version)
{
    const struct hd_cell key[] = {hd_cell_bytes(assistant->principal),
                                  hd_cell_bytes(assistant->id)};
    int err = hd_batch_expect(batch, HD_ASSISTANTS, key, HD_ASSISTANTS_VERSION, from);

    if (!err)
        err = hd_record_write(batch, &assistant_type, assistant, HD_OP_PUT);
    if (!err && is_new_version)
        err = hd_record_write(batch, &version_type, assistant, HD_OP_ADD);
    return err;
}

int hd_assistant_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                        struct hd_slice id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    int err = hd_batch_delete(batch, HD_ASSISTANTS, key, HD_COUNT(key));

    return err ? err : hd_batch_delete(batch, HD_ASSISTANT_VERSIONS, key, HD_COUNT(key));
}
