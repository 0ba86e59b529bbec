/*
 * An assistant's row is what it is now; each of its versions has a row with the same body. Changing
 * one adds a version; two concurrent changes conflict there.
 */
#include "records/record_internal.h"

/* ---- reading ---------------------------------------------------------- */

static int decode_body(struct hd_slice body, struct hd_arena *arena, struct hd_assistant_rec *out)
{
    struct hd_slice graph, name;
    const struct hd_member members[] = {{"graph_id", &graph},
                                        {"name", &name},
                                        {"description", &out->description},
                                        {"config", &out->config},
                                        {"context", &out->context},
                                        {"metadata", &out->metadata}};
    int err = hd_record_split(body, members, HD_COUNT(members));

    if (!err)
        err = hd_record_text(graph, arena, &out->graph_id);
    if (!err)
        err = hd_record_text(name, arena, &out->name);
    return err;
}

/* Borrows from the cells, as the other one. */
static int decode_assistant(const struct hd_cell *cells, struct hd_arena *arena,
                            struct hd_assistant_rec *out, struct hd_fault *fault)
{
    int err;

    *out = (struct hd_assistant_rec){
        .principal = cells[HD_ASSISTANTS_PRINCIPAL].bytes,
        .id = cells[HD_ASSISTANTS_ID].bytes,
        .version = cells[HD_ASSISTANTS_VERSION].number,
        .created_at = cells[HD_ASSISTANTS_CREATED].number,
        .updated_at = cells[HD_ASSISTANTS_UPDATED].number,
    };
    err = decode_body(cells[HD_ASSISTANTS_BODY].bytes, arena, out);
    return err == HD_ECORRUPT ? hd_record_damaged(HD_ASSISTANTS, out->id, fault) : err;
}

static int decode_version(const struct hd_cell *cells, struct hd_arena *arena,
                          struct hd_assistant_rec *out, struct hd_fault *fault)
{
    int err;

    *out = (struct hd_assistant_rec){
        .principal = cells[HD_ASSISTANT_VERSIONS_PRINCIPAL].bytes,
        .id = cells[HD_ASSISTANT_VERSIONS_ID].bytes,
        .version = cells[HD_ASSISTANT_VERSIONS_VERSION].number,
        .created_at = cells[HD_ASSISTANT_VERSIONS_CREATED].number,
        .updated_at = cells[HD_ASSISTANT_VERSIONS_CREATED].number,
    };
    err = decode_body(cells[HD_ASSISTANT_VERSIONS_BODY].bytes, arena, out);
    return err == HD_ECORRUPT ? hd_record_damaged(HD_ASSISTANT_VERSIONS, out->id, fault) : err;
}

int hd_assistant_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                      struct hd_arena *arena, struct hd_assistant_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_ASSISTANTS, key, HD_COUNT(key), arena, cells, fault);

    return err ? err : decode_assistant(cells, arena, out, fault);
}

int hd_assistant_read_version(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                              int64_t version, struct hd_arena *arena, struct hd_assistant_rec *out,
                              struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id),
                                  hd_cell_int(version)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_ASSISTANT_VERSIONS, key, HD_COUNT(key), arena, cells, fault);

    return err ? err : decode_version(cells, arena, out, fault);
}

static int on_last(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_ASSISTANT_VERSIONS_VERSION].number;
    return 1;
}

int hd_assistant_last_version(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                              int64_t *out, struct hd_fault *fault)
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

struct assistant_scan {
    enum hd_table_id table;
    hd_assistant_fn fn;
    void *arg;
};

static int on_assistant_row(void *arg, const struct hd_cell *cells, struct hd_arena *arena,
                            struct hd_fault *fault)
{
    const struct assistant_scan *scan = arg;
    struct hd_assistant_rec assistant;
    int err = scan->table == HD_ASSISTANTS ? decode_assistant(cells, arena, &assistant, fault)
                                           : decode_version(cells, arena, &assistant, fault);

    return err ? err : scan->fn(scan->arg, &assistant);
}

static int scan_assistants(struct heddle *store, struct hd_query query, hd_assistant_fn fn,
                           void *arg, struct hd_fault *fault)
{
    struct assistant_scan scan = {.table = query.table, .fn = fn, .arg = arg};

    query.index = HD_PRIMARY;
    return hd_record_scan(store, query, on_assistant_row, &scan, fault);
}

int hd_assistants_scan(struct heddle *store, struct hd_slice principal, hd_assistant_fn fn,
                       void *arg, struct hd_fault *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct hd_query query = {.table = HD_ASSISTANTS, .prefix = &prefix, .prefix_count = 1};

    return scan_assistants(store, query, fn, arg, fault);
}

int hd_assistant_versions_scan(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                               hd_assistant_fn fn, void *arg, struct hd_fault *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    struct hd_query query = {.table = HD_ASSISTANT_VERSIONS,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .is_reverse = true};

    return scan_assistants(store, query, fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

static int encode_assistant(const struct hd_assistant_rec *assistant, struct hd_arena *arena,
                            struct hd_slice *out)
{
    struct hd_record_writer writer;

    hd_record_begin(&writer);
    hd_record_put_text(&writer, "graph_id", assistant->graph_id);
    hd_record_put_text(&writer, "name", assistant->name);
    hd_record_put_json(&writer, "description", assistant->description);
    hd_record_put_json(&writer, "config", assistant->config);
    hd_record_put_json(&writer, "context", assistant->context);
    hd_record_put_json(&writer, "metadata", assistant->metadata);
    return hd_record_end(&writer, arena, out);
}

static int write_assistant(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant,
                           enum hd_op_kind kind, struct hd_slice body)
{
    const struct hd_cell row[] = {
        [HD_ASSISTANTS_PRINCIPAL] = hd_cell_bytes(assistant->principal),
        [HD_ASSISTANTS_ID] = hd_cell_bytes(assistant->id),
        [HD_ASSISTANTS_GRAPH] = hd_cell_bytes(assistant->graph_id),
        [HD_ASSISTANTS_CREATED] = hd_cell_int(assistant->created_at),
        [HD_ASSISTANTS_UPDATED] = hd_cell_int(assistant->updated_at),
        [HD_ASSISTANTS_VERSION] = hd_cell_int(assistant->version),
        [HD_ASSISTANTS_NAME] = hd_cell_bytes(assistant->name),
        [HD_ASSISTANTS_BODY] = hd_cell_bytes(body),
    };

    return hd_batch_row(batch, kind, HD_ASSISTANTS, row);
}

static int add_version(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant,
                       struct hd_slice body)
{
    const struct hd_cell row[] = {
        [HD_ASSISTANT_VERSIONS_PRINCIPAL] = hd_cell_bytes(assistant->principal),
        [HD_ASSISTANT_VERSIONS_ID] = hd_cell_bytes(assistant->id),
        [HD_ASSISTANT_VERSIONS_VERSION] = hd_cell_int(assistant->version),
        [HD_ASSISTANT_VERSIONS_CREATED] = hd_cell_int(assistant->updated_at),
        [HD_ASSISTANT_VERSIONS_BODY] = hd_cell_bytes(body),
    };

    return hd_batch_row(batch, HD_OP_ADD, HD_ASSISTANT_VERSIONS, row);
}

int hd_assistant_add(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant)
{
    struct hd_slice body;
    int err = encode_assistant(assistant, &batch->arena, &body);

    if (!err)
        err = write_assistant(batch, assistant, HD_OP_ADD, body);
    return err ? err : add_version(batch, assistant, body);
}

int hd_assistant_put(struct hd_batch_builder *batch, const struct hd_assistant_rec *assistant,
                     int64_t from, bool is_new_version)
{
    const struct hd_cell key[] = {hd_cell_bytes(assistant->principal),
                                  hd_cell_bytes(assistant->id)};
    struct hd_slice body;
    int err = encode_assistant(assistant, &batch->arena, &body);

    if (!err)
        err = hd_batch_expect(batch, HD_ASSISTANTS, key, HD_ASSISTANTS_VERSION, from);
    if (!err)
        err = write_assistant(batch, assistant, HD_OP_PUT, body);
    if (!err && is_new_version)
        err = add_version(batch, assistant, body);
    return err;
}

int hd_assistant_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                        struct hd_slice id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    int err = hd_batch_delete(batch, HD_ASSISTANTS, key, HD_COUNT(key));

    return err ? err : hd_batch_delete(batch, HD_ASSISTANT_VERSIONS, key, HD_COUNT(key));
}
