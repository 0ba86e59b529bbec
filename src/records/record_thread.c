#include <heddle.h>

#include "config/ttl.h"
#include "records/record_internal.h"
#include "store/store.h"

#define US_PER_MINUTE 60e6

static const char *const statuses[] = {[HD_THREAD_IDLE] = "idle",
                                       [HD_THREAD_BUSY] = "busy",
                                       [HD_THREAD_INTERRUPTED] = "interrupted",
                                       [HD_THREAD_ERROR] = "error"};

const char *hd_thread_status_name(enum hd_thread_status status)
{
    return statuses[status];
}

bool hd_thread_status_find(struct hd_slice name, enum hd_thread_status *out)
{
    for (size_t i = 0; i < HD_COUNT(statuses); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(statuses[i]))) {
            *out = (enum hd_thread_status)i;
            return true;
        }
    }
    return false;
}

void hd_thread_init(struct hd_thread_rec *thread, struct hd_slice principal, struct hd_slice id)
{
    *thread = (struct hd_thread_rec){.principal = principal, .id = id};
}

int hd_thread_lane(struct hd_arena *arena, struct hd_slice principal, struct hd_slice id,
                   struct hd_slice *out)
{
    const struct heddle_thread thread = {hd_to_public(principal), hd_to_public(id)};

    return hd_thread_key(&thread, arena, out, NULL);
}

/* ---- reading ---------------------------------------------------------- */

static int decode_head(struct hd_slice raw, struct hd_arena *arena, struct hd_head *head)
{
    struct hd_slice ns, checkpoint, graph, assistant;
    const struct hd_member members[] = {{"ns", &ns},
                                        {"checkpoint_id", &checkpoint},
                                        {"graph_id", &graph},
                                        {"assistant_id", &assistant}};
    int err;

    if (raw.len == 0)
        return 0;
    err = hd_record_split(raw, members, HD_COUNT(members));
    if (!err)
        err = hd_record_text(ns, arena, &head->ns);
    if (!err)
        err = hd_record_text(checkpoint, arena, &head->checkpoint_id);
    if (!err)
        err = hd_record_text(graph, arena, &head->graph_id);
    if (!err)
        err = hd_record_text(assistant, arena, &head->assistant_id);
    return err;
}

static int decode_rest(struct hd_slice raw, struct hd_arena *arena, struct hd_thread_rec *out)
{
    struct hd_slice status, name;
    const struct hd_member members[] = {{"status", &status}};
    int err;

    if (raw.len == 0)
        return 0;
    err = hd_record_split(raw, members, HD_COUNT(members));
    if (!err)
        err = hd_record_text(status, arena, &name);
    if (!err && !hd_thread_status_find(name, &out->rest))
        err = HD_ECORRUPT;
    out->has_rest = !err;
    return err ? err : decode_head(raw, arena, &out->rest_head);
}

/* Borrows from the cells. */
static int decode_thread(const struct hd_cell *cells, struct hd_arena *arena,
                         struct hd_thread_rec *out, struct hd_fault *fault)
{
    struct hd_slice head, rest, order, last_run;
    const struct hd_member members[] = {
        {"metadata", &out->metadata}, {"config", &out->config},
        {"ttl", &out->ttl},           {"head", &head},
        {"heads", &out->heads},       {"interrupts", &out->interrupts},
        {"error", &out->error},       {"rest", &rest},
        {"run_order", &order},        {"last_run", &last_run}};
    int err;

    *out = (struct hd_thread_rec){
        .principal = cells[HD_THREAD_INFO_PRINCIPAL].bytes,
        .id = cells[HD_THREAD_INFO_ID].bytes,
        .rev = cells[HD_THREAD_INFO_REV].number,
        .created_at = cells[HD_THREAD_INFO_CREATED].number,
        .updated_at = cells[HD_THREAD_INFO_UPDATED].number,
        .state_updated_at = cells[HD_THREAD_INFO_STATE_UPDATED].number,
        .expires_at = cells[HD_THREAD_INFO_EXPIRES].number,
        .event_seq = cells[HD_THREAD_INFO_EVENT_SEQ].number,
    };
    err = hd_record_split(cells[HD_THREAD_INFO_BODY].bytes, members, HD_COUNT(members));
    if (!err)
        err = decode_head(head, arena, &out->head);
    if (!err)
        err = decode_rest(rest, arena, out);
    if (!err && order.len > 0)
        err = hd_record_int(order, &out->run_order);
    if (!err && last_run.len > 0)
        err = hd_record_text(last_run, arena, &out->last_run);
    if (!err && !hd_thread_status_find(cells[HD_THREAD_INFO_STATUS].bytes, &out->status))
        err = HD_ECORRUPT;
    return err == HD_ECORRUPT ? hd_record_damaged(HD_THREAD_INFO, out->id, fault) : err;
}

int hd_thread_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                   struct hd_arena *arena, struct hd_thread_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_THREAD_INFO, key, HD_COUNT(key), arena, cells, fault);

    return err ? err : decode_thread(cells, arena, out, fault);
}

struct thread_scan {
    hd_thread_fn fn;
    void *arg;
};

static int on_thread_row(void *arg, const struct hd_cell *cells, struct hd_arena *arena,
                         struct hd_fault *fault)
{
    const struct thread_scan *scan = arg;
    struct hd_thread_rec thread;
    int err = decode_thread(cells, arena, &thread, fault);

    return err ? err : scan->fn(scan->arg, &thread);
}

static int scan_threads(struct heddle *store, struct hd_query query, hd_thread_fn fn, void *arg,
                        struct hd_fault *fault)
{
    struct thread_scan scan = {.fn = fn, .arg = arg};

    return hd_record_scan(store, query, on_thread_row, &scan, fault);
}

int hd_threads_scan(struct heddle *store, struct hd_slice principal, bool is_newest_first,
                    hd_thread_fn fn, void *arg, struct hd_fault *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct hd_query query = {.table = HD_THREAD_INFO,
                             .index = HD_THREAD_INFO_BY_CREATED,
                             .prefix = &prefix,
                             .prefix_count = 1,
                             .is_reverse = is_newest_first};

    return scan_threads(store, query, fn, arg, fault);
}

int hd_threads_scan_updated(struct heddle *store, struct hd_slice principal, bool is_newest_first,
                            hd_thread_fn fn, void *arg, struct hd_fault *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    struct hd_query query = {.table = HD_THREAD_INFO,
                             .index = HD_THREAD_INFO_BY_UPDATED,
                             .prefix = &prefix,
                             .prefix_count = 1,
                             .is_reverse = is_newest_first};

    return scan_threads(store, query, fn, arg, fault);
}

int hd_threads_scan_all(struct heddle *store, hd_thread_fn fn, void *arg, struct hd_fault *fault)
{
    struct hd_query query = {.table = HD_THREAD_INFO, .index = HD_PRIMARY};

    return scan_threads(store, query, fn, arg, fault);
}

int hd_threads_expired(struct heddle *store, int64_t now, hd_thread_fn fn, void *arg,
                       struct hd_fault *fault)
{
    const struct hd_cell high = hd_cell_int(now + 1);
    struct hd_query query = {
        .table = HD_THREAD_INFO, .index = HD_THREAD_INFO_BY_EXPIRY, .high = &high};

    return scan_threads(store, query, fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

static void put_head(struct hd_record_writer *writer, const struct hd_head *head)
{
    hd_record_put_text(writer, "ns", head->ns);
    hd_record_put_text(writer, "checkpoint_id", head->checkpoint_id);
    hd_record_put_text(writer, "graph_id", head->graph_id);
    hd_record_put_text(writer, "assistant_id", head->assistant_id);
}

static int encode_head(const struct hd_head *head, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_record_writer writer;

    *out = hd_slice(NULL, 0);
    if (head->ns.len == 0 && head->checkpoint_id.len == 0)
        return 0;
    hd_record_begin(&writer);
    put_head(&writer, head);
    return hd_record_end(&writer, arena, out);
}

static int encode_rest(const struct hd_thread_rec *thread, struct hd_arena *arena,
                       struct hd_slice *out)
{
    struct hd_record_writer writer;

    *out = hd_slice(NULL, 0);
    if (!thread->has_rest)
        return 0;
    hd_record_begin(&writer);
    hd_record_put_text(&writer, "status", hd_slice_cstr(statuses[thread->rest]));
    put_head(&writer, &thread->rest_head);
    return hd_record_end(&writer, arena, out);
}

static int encode_thread(const struct hd_thread_rec *thread, struct hd_arena *arena,
                         struct hd_slice *out)
{
    struct hd_record_writer writer;
    struct hd_slice head, rest;
    int err = encode_head(&thread->head, arena, &head);

    if (!err)
        err = encode_rest(thread, arena, &rest);
    if (err)
        return err;
    hd_record_begin(&writer);
    hd_record_put_json(&writer, "metadata", thread->metadata);
    hd_record_put_json(&writer, "config", thread->config);
    hd_record_put_json(&writer, "ttl", thread->ttl);
    hd_record_put_json(&writer, "head", head);
    hd_record_put_json(&writer, "heads", thread->heads);
    hd_record_put_json(&writer, "interrupts", thread->interrupts);
    hd_record_put_json(&writer, "error", thread->error);
    hd_record_put_json(&writer, "rest", rest);
    if (thread->run_order > 0)
        hd_record_put_int(&writer, "run_order", thread->run_order);
    if (thread->last_run.len > 0)
        hd_record_put_text(&writer, "last_run", thread->last_run);
    return hd_record_end(&writer, arena, out);
}

static int write_thread(struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                        enum hd_op_kind kind)
{
    struct hd_slice body;
    int err = encode_thread(thread, &batch->arena, &body);

    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_THREAD_INFO_PRINCIPAL] = hd_cell_bytes(thread->principal),
        [HD_THREAD_INFO_ID] = hd_cell_bytes(thread->id),
        [HD_THREAD_INFO_REV] = hd_cell_int(thread->rev + 1),
        [HD_THREAD_INFO_STATUS] = hd_cell_bytes(hd_slice_cstr(statuses[thread->status])),
        [HD_THREAD_INFO_CREATED] = hd_cell_int(thread->created_at),
        [HD_THREAD_INFO_UPDATED] = hd_cell_int(thread->updated_at),
        [HD_THREAD_INFO_STATE_UPDATED] = hd_cell_int(thread->state_updated_at),
        [HD_THREAD_INFO_EXPIRES] = hd_record_time(thread->expires_at),
        [HD_THREAD_INFO_EVENT_SEQ] = hd_cell_int(thread->event_seq),
        [HD_THREAD_INFO_BODY] = hd_cell_bytes(body),
    };

    thread->rev++;
    return hd_batch_row(batch, kind, HD_THREAD_INFO, row);
}

int hd_thread_add(struct hd_batch_builder *batch, struct hd_thread_rec *thread)
{
    thread->rev = 0;
    return write_thread(batch, thread, HD_OP_ADD);
}

int hd_thread_put(struct hd_batch_builder *batch, struct hd_thread_rec *thread)
{
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    int err = hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, thread->rev);

    return err ? err : write_thread(batch, thread, HD_OP_PUT);
}

void hd_ttl_touch(struct hd_thread_rec *thread, int64_t now)
{
    struct hd_ttl ttl = hd_ttl_read(thread->ttl);

    if (ttl.minutes <= 0)
        thread->expires_at = 0;
    else if (!ttl.is_fixed || thread->expires_at == 0)
        thread->expires_at = now + (int64_t)(ttl.minutes * US_PER_MINUTE);
}

bool hd_thread_is_over(const struct hd_thread_rec *thread, int64_t now)
{
    return thread->expires_at != 0 && thread->expires_at <= now &&
           thread->status != HD_THREAD_BUSY && hd_ttl_read(thread->ttl).strategy == HD_TTL_DELETE;
}
