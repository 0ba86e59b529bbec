#include "records/record_internal.h"

/* ---- reading ---------------------------------------------------------- */

static bool is_true(struct hd_slice raw)
{
    return hd_slice_eq(raw, HD_S("true"));
}

static int decode_body(struct hd_slice body, struct hd_arena *arena, struct hd_cron_rec *out)
{
    struct hd_slice updated, end, enabled, keeps, schedule, zone, assistant, thread;
    const struct hd_member members[] = {{"updated_at", &updated},     {"end_at", &end},
                                        {"enabled", &enabled},        {"keeps_threads", &keeps},
                                        {"schedule", &schedule},      {"timezone", &zone},
                                        {"assistant_id", &assistant}, {"thread_id", &thread},
                                        {"metadata", &out->metadata}, {"payload", &out->payload}};
    int err = hd_record_split(body, members, HD_COUNT(members));

    if (!err)
        err = hd_record_int(updated, &out->updated_at);
    if (!err)
        err = hd_record_int(end, &out->end_at);
    if (!err)
        err = hd_record_text(schedule, arena, &out->schedule);
    if (!err)
        err = hd_record_text(zone, arena, &out->timezone);
    if (!err)
        err = hd_record_text(assistant, arena, &out->assistant_id);
    if (!err)
        err = hd_record_text(thread, arena, &out->thread_id);
    out->is_enabled = is_true(enabled);
    out->keeps_threads = is_true(keeps);
    return err;
}

/* Borrows from the cells. */
static int decode_cron(const struct hd_cell *cells, struct hd_arena *arena, struct hd_cron_rec *out,
                       struct hd_fault *fault)
{
    int err;

    *out = (struct hd_cron_rec){
        .principal = cells[HD_CRONS_PRINCIPAL].bytes,
        .id = cells[HD_CRONS_ID].bytes,
        .rev = cells[HD_CRONS_REV].number,
        .next_at = cells[HD_CRONS_NEXT].number,
        .created_at = cells[HD_CRONS_CREATED].number,
    };
    err = decode_body(cells[HD_CRONS_BODY].bytes, arena, out);
    return err == HD_ECORRUPT ? hd_record_damaged(HD_CRONS, out->id, fault) : err;
}

int hd_cron_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                 struct hd_arena *arena, struct hd_cron_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_CRONS, key, HD_COUNT(key), arena, cells, fault);

    return err ? err : decode_cron(cells, arena, out, fault);
}

struct cron_scan {
    hd_cron_fn fn;
    void *arg;
};

static int on_cron_row(void *arg, const struct hd_cell *cells, struct hd_arena *arena,
                       struct hd_fault *fault)
{
    const struct cron_scan *scan = arg;
    struct hd_cron_rec cron;
    int err = decode_cron(cells, arena, &cron, fault);

    return err ? err : scan->fn(scan->arg, &cron);
}

static int scan_crons(struct heddle *store, struct hd_query query, hd_cron_fn fn, void *arg,
                      struct hd_fault *fault)
{
    struct cron_scan scan = {.fn = fn, .arg = arg};

    return hd_record_scan(store, query, on_cron_row, &scan, fault);
}

int hd_crons_scan(struct heddle *store, struct hd_slice principal, hd_cron_fn fn, void *arg,
                  struct hd_fault *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct hd_query query = {
        .table = HD_CRONS, .index = HD_PRIMARY, .prefix = &prefix, .prefix_count = 1};

    return scan_crons(store, query, fn, arg, fault);
}

int hd_crons_due(struct heddle *store, int64_t before, hd_cron_fn fn, void *arg,
                 struct hd_fault *fault)
{
    const struct hd_cell high = hd_cell_int(before);
    struct hd_query query = {.table = HD_CRONS, .index = HD_CRONS_DUE, .high = &high};

    return scan_crons(store, query, fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

static int encode_cron(const struct hd_cron_rec *cron, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_record_writer writer;

    hd_record_begin(&writer);
    hd_record_put_text(&writer, "schedule", cron->schedule);
    hd_record_put_text(&writer, "timezone", cron->timezone);
    hd_record_put_json(&writer, "enabled", cron->is_enabled ? HD_S("true") : HD_S("false"));
    hd_record_put_json(&writer, "keeps_threads", cron->keeps_threads ? HD_S("true") : HD_S(""));
    hd_record_put_text(&writer, "assistant_id", cron->assistant_id);
    hd_record_put_text(&writer, "thread_id", cron->thread_id);
    hd_record_put_int(&writer, "updated_at", cron->updated_at);
    hd_record_put_int(&writer, "end_at", cron->end_at);
    hd_record_put_json(&writer, "metadata", cron->metadata);
    hd_record_put_json(&writer, "payload", cron->payload);
    return hd_record_end(&writer, arena, out);
}

static int write_cron(struct hd_batch_builder *batch, struct hd_cron_rec *cron,
                      enum hd_op_kind kind)
{
    struct hd_slice body;
    int err = encode_cron(cron, &batch->arena, &body);

    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_CRONS_PRINCIPAL] = hd_cell_bytes(cron->principal),
        [HD_CRONS_ID] = hd_cell_bytes(cron->id),
        [HD_CRONS_REV] = hd_cell_int(cron->rev + 1),
        [HD_CRONS_NEXT] = hd_record_time(cron->next_at),
        [HD_CRONS_CREATED] = hd_cell_int(cron->created_at),
        [HD_CRONS_BODY] = hd_cell_bytes(body),
    };

    cron->rev++;
    return hd_batch_row(batch, kind, HD_CRONS, row);
}

int hd_cron_add(struct hd_batch_builder *batch, struct hd_cron_rec *cron)
{
    cron->rev = 0;
    return write_cron(batch, cron, HD_OP_ADD);
}

int hd_cron_put(struct hd_batch_builder *batch, struct hd_cron_rec *cron)
{
    const struct hd_cell key[] = {hd_cell_bytes(cron->principal), hd_cell_bytes(cron->id)};
    int err = hd_batch_expect(batch, HD_CRONS, key, HD_CRONS_REV, cron->rev);

    return err ? err : write_cron(batch, cron, HD_OP_PUT);
}

int hd_cron_delete(struct hd_batch_builder *batch, struct hd_slice principal, struct hd_slice id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};

    return hd_batch_delete(batch, HD_CRONS, key, HD_COUNT(key));
}
