#include <heddle.h>

#include "config/ttl.h"
#include "records/record_internal.h"
#include "store/store.h"

#define US_PER_MINUTE 60e6

/* ---- how it is stored ------------------------------------------------- */

const char *const hd_thread_statuses[] = {[HD_THREAD_IDLE] = "idle",
                                          [HD_THREAD_BUSY] = "busy",
                                          [HD_THREAD_INTERRUPTED] = "interrupted",
                                          [HD_THREAD_ERROR] = "error",
                                          NULL};

#define REC struct hd_thread_rec

static const struct hd_record_field head_members[] = {
    {HD_RECORD_MEMBER("ns", TEXT, REC, head.ns)},
    {HD_RECORD_MEMBER("checkpoint_id", TEXT, REC, head.checkpoint_id)},
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, head.graph_id), .flags = HD_RECORD_MINOR},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, head.assistant_id), .flags = HD_RECORD_MINOR},
};

static const struct hd_record_field before_members[] = {
    {HD_RECORD_MEMBER("status", NAME, REC, status_before), .names = hd_thread_statuses},
    {HD_RECORD_MEMBER("ns", TEXT, REC, head_before.ns)},
    {HD_RECORD_MEMBER("checkpoint_id", TEXT, REC, head_before.checkpoint_id)},
    {HD_RECORD_MEMBER("graph_id", TEXT, REC, head_before.graph_id)},
    {HD_RECORD_MEMBER("assistant_id", TEXT, REC, head_before.assistant_id)},
};

static const struct hd_record_field thread_members[] = {
    {HD_RECORD_MEMBER("metadata", JSON, REC, metadata)},
    {HD_RECORD_MEMBER("config", JSON, REC, config)},
    {HD_RECORD_MEMBER("ttl", JSON, REC, ttl)},
    {HD_RECORD_MEMBER("head", OBJECT, REC, head), HD_RECORD_MEMBERS(head_members)},
    {HD_RECORD_MEMBER("heads", JSON, REC, heads)},
    {HD_RECORD_MEMBER("interrupts", JSON, REC, interrupts)},
    {HD_RECORD_MEMBER("error", JSON, REC, error)},
    {HD_RECORD_MEMBER("rest", OBJECT, REC, status_before), HD_RECORD_MEMBERS(before_members),
     .flags = HD_RECORD_IF, .other = offsetof(REC, has_before)},
    {HD_RECORD_MEMBER("run_order", INT, REC, run_order)},
    {HD_RECORD_MEMBER("last_run", TEXT, REC, last_run)},
    {HD_RECORD_MEMBER("is_room", WORD, REC, is_room), .names = hd_record_true},
};

static int call_thread_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_thread_fn *)fn)(arg, record);
}

static const struct hd_record_type thread_type = {
    .table = HD_THREAD_INFO,
    .size = sizeof(REC),
    .id = HD_THREAD_INFO_ID,
    .rev = HD_THREAD_INFO_REV,
    .columns =
        {
            [HD_THREAD_INFO_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_THREAD_INFO_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_THREAD_INFO_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_THREAD_INFO_STATUS] = {HD_RECORD_COLUMN(NAME, REC, status),
                                       .names = hd_thread_statuses},
            [HD_THREAD_INFO_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_THREAD_INFO_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_THREAD_INFO_STATE_UPDATED] = {HD_RECORD_COLUMN(INT, REC, state_updated_at)},
            [HD_THREAD_INFO_EXPIRES] = {HD_RECORD_COLUMN(INT, REC, expires_at)},
            [HD_THREAD_INFO_EVENT_SEQ] = {HD_RECORD_COLUMN(INT, REC, event_seq)},
            [HD_THREAD_INFO_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(thread_members),
    .unknown = offsetof(REC, unknown),
    .call = call_thread_fn,
};

const char *hd_thread_status_name(enum hd_thread_status status)
{
    return hd_thread_statuses[status];
}

bool hd_thread_status_find(struct hd_slice name, enum hd_thread_status *out)
{
    int value;
    bool is_found = hd_record_name_find(hd_thread_statuses, name, &value);

    if (is_found)
        *out = (enum hd_thread_status)value;
    return is_found;
}

bool hd_thread_head_is_set(const struct hd_head *head)
{
    return head->ns.len > 0 || head->graph_id.len > 0 || head->assistant_id.len > 0;
}

void hd_thread_init(struct hd_thread_rec *thread, struct hd_slice principal, struct hd_slice id)
{
    *thread = (struct hd_thread_rec){.principal = principal, .id = id};
}

int hd_thread_lane(struct hd_arena *arena, struct hd_slice principal, struct hd_slice id,
                   struct hd_slice *out)
{
    const struct heddle_thread thread = {hd_to_public(principal), hd_to_public(id)};

    return hd_store_thread_key(&thread, arena, out, NULL);
}

/* ---- reading ---------------------------------------------------------- */

int hd_thread_read(struct heddle *store, struct hd_slice principal, struct hd_slice id,
                   struct hd_arena *arena, struct hd_thread_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(id)};

    return hd_record_read(store, &thread_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_thread_decode(const struct hd_cell *cells, struct hd_arena *arena, struct hd_thread_rec *out,
                     struct heddle_error *fault)
{
    return hd_record_decode(&thread_type, cells, arena, out, fault);
}

static int scan_by_principal(struct heddle *store, int index, struct hd_slice principal,
                             bool is_newest_first, hd_thread_fn fn, void *arg,
                             struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    const struct hd_query query = {
        .index = index, .prefix = &prefix, .prefix_count = 1, .is_reverse = is_newest_first};

    return hd_records_scan(store, &thread_type, query, &fn, arg, fault);
}

int hd_threads_scan(struct heddle *store, struct hd_slice principal, bool is_newest_first,
                    hd_thread_fn fn, void *arg, struct heddle_error *fault)
{
    return scan_by_principal(store, HD_THREAD_INFO_BY_CREATED, principal, is_newest_first, fn, arg,
                             fault);
}

int hd_threads_scan_updated(struct heddle *store, struct hd_slice principal, bool is_newest_first,
                            hd_thread_fn fn, void *arg, struct heddle_error *fault)
{
    return scan_by_principal(store, HD_THREAD_INFO_BY_UPDATED, principal, is_newest_first, fn, arg,
                             fault);
}

int hd_threads_scan_all(struct heddle *store, hd_thread_fn fn, void *arg,
                        struct heddle_error *fault)
{
    const struct hd_query query = {.index = HD_PRIMARY};

    return hd_records_scan(store, &thread_type, query, &fn, arg, fault);
}

int hd_threads_expired(struct heddle *store, int64_t now, hd_thread_fn fn, void *arg,
                       struct heddle_error *fault)
{
    const struct hd_cell high = hd_cell_int(now + 1);
    const struct hd_query query = {.index = HD_THREAD_INFO_BY_EXPIRY, .high = &high};

    return hd_records_scan(store, &thread_type, query, &fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

int hd_thread_add(struct hd_batch_builder *batch, struct hd_thread_rec *thread)
{
    return hd_record_add(batch, &thread_type, thread);
}

int hd_thread_put(struct hd_batch_builder *batch, struct hd_thread_rec *thread)
{
    return hd_record_put(batch, &thread_type, thread);
}

void hd_thread_touch(struct hd_thread_rec *thread, int64_t now)
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
