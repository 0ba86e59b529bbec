#include <string.h>

#include "records/record_internal.h"
#include "room/room.h"

#define PAGE 256 /* messages of one read, at most */

const char *const hd_room_states[] = {[HD_ROOM_PENDING] = "pending",
                                      [HD_ROOM_OK] = "ok",
                                      [HD_ROOM_STOPPED] = "stopped",
                                      [HD_ROOM_ERROR] = "error",
                                      [HD_ROOM_STALE] = "stale",
                                      [HD_ROOM_DELETED] = "deleted",
                                      NULL};

const char *const hd_room_senders[] = {
    [HD_ROOM_PERSON] = "person", [HD_ROOM_AGENT] = "agent", [HD_ROOM_SERVICE] = "service", NULL};

/* ---- how they are stored ---------------------------------------------- */

#define REC struct hd_room_message_rec

static const struct hd_record_field message_members[] = {
    {HD_RECORD_MEMBER("kind", NAME, REC, kind), .names = hd_room_senders},
    {HD_RECORD_MEMBER("sender_id", TEXT, REC, sender_id)},
    {HD_RECORD_MEMBER("sender_name", TEXT, REC, sender_name)},
    {HD_RECORD_MEMBER("reply_to", TEXT, REC, reply_to)},
    {HD_RECORD_MEMBER("mentions", JSON, REC, mentions)},
    {HD_RECORD_MEMBER("replaced_by", TEXT, REC, replaced_by)},
    {HD_RECORD_MEMBER("replaces", TEXT, REC, replaces)},
    {HD_RECORD_MEMBER("run_id", TEXT, REC, run_id)},
    {HD_RECORD_MEMBER("checkpoint_id", TEXT, REC, checkpoint_id)},
    {HD_RECORD_MEMBER("ns", TEXT, REC, ns)},
    {HD_RECORD_MEMBER("source_id", TEXT, REC, source_id)},
    {HD_RECORD_MEMBER("interrupts", JSON, REC, interrupts)},
    {HD_RECORD_MEMBER("error", JSON, REC, error)},
    {HD_RECORD_MEMBER("feedback", JSON, REC, feedback)},
    {HD_RECORD_MEMBER("updated_at", INT, REC, updated_at)},
};

static int call_message_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_room_message_fn *)fn)(arg, record);
}

static const struct hd_record_type message_type = {
    .table = HD_ROOM_MESSAGES,
    .size = sizeof(REC),
    .id = HD_ROOM_MESSAGES_ID,
    .columns =
        {
            [HD_ROOM_MESSAGES_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_MESSAGES_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_MESSAGES_SEQ] = {HD_RECORD_COLUMN(INT, REC, seq)},
            [HD_ROOM_MESSAGES_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_ROOM_MESSAGES_STATE] = {HD_RECORD_COLUMN(NAME, REC, state),
                                        .names = hd_room_states},
            [HD_ROOM_MESSAGES_VERSION] = {HD_RECORD_COLUMN(INT, REC, version)},
            [HD_ROOM_MESSAGES_CHANGED] = {HD_RECORD_COLUMN(INT, REC, changed)},
            [HD_ROOM_MESSAGES_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_MESSAGES_SENDER] = {HD_RECORD_COLUMN(TEXT, REC, sender)},
            [HD_ROOM_MESSAGES_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(message_members),
    .unknown = offsetof(REC, unknown),
    .call = call_message_fn,
};

#undef REC
#define REC struct hd_room_content_rec

static const struct hd_record_field content_members[] = {
    {HD_RECORD_MEMBER("metadata", JSON, REC, metadata)},
};

static const struct hd_record_type content_type = {
    .table = HD_ROOM_CONTENTS,
    .size = sizeof(REC),
    .id = HD_ROOM_CONTENTS_MESSAGE,
    .columns =
        {
            [HD_ROOM_CONTENTS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_CONTENTS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_CONTENTS_MESSAGE] = {HD_RECORD_COLUMN(TEXT, REC, message_id)},
            [HD_ROOM_CONTENTS_VERSION] = {HD_RECORD_COLUMN(INT, REC, version)},
            [HD_ROOM_CONTENTS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_ROOM_CONTENTS_CONTENT] = {HD_RECORD_COLUMN(JSON, REC, content)},
            [HD_ROOM_CONTENTS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(content_members),
    .unknown = offsetof(REC, unknown),
};

#undef REC
#define REC struct hd_room_id_rec

static const struct hd_record_type id_type = {
    .table = HD_ROOM_IDS,
    .size = sizeof(REC),
    .id = HD_ROOM_IDS_MESSAGE,
    .columns =
        {
            [HD_ROOM_IDS_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_IDS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_IDS_MESSAGE] = {HD_RECORD_COLUMN(TEXT, REC, message_id)},
            [HD_ROOM_IDS_SEQ] = {HD_RECORD_COLUMN(INT, REC, seq)},
            [HD_ROOM_IDS_HASH] = {HD_RECORD_COLUMN(TEXT, REC, hash)},
        },
};

/* ---- one message ------------------------------------------------------ */

int hd_room_message_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                         struct hd_slice id, struct hd_arena *arena,
                         struct hd_room_message_rec *out, struct heddle_error *fault)
{
    struct hd_room_id_rec found;
    int err = hd_room_id_read(store, principal, thread_id, id, arena, &found, fault);

    if (!err && found.seq == 0)
        err = HD_ENOTFOUND;
    if (!err) {
        const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                      hd_cell_int(found.seq)};

        err = hd_record_read(store, &message_type, key, HD_COUNT(key), arena, out, fault);
    }
    return err;
}

int hd_room_message_copy(struct hd_arena *arena, const struct hd_room_message_rec *message,
                         struct hd_room_message_rec *out)
{
    return hd_record_copy(&message_type, arena, message, out);
}

int hd_room_message_add(struct hd_batch_builder *batch, const struct hd_room_message_rec *message)
{
    return hd_record_write(batch, &message_type, message, HD_OP_ADD);
}

int hd_room_message_put(struct hd_batch_builder *batch, const struct hd_room_message_rec *message)
{
    return hd_record_write(batch, &message_type, message, HD_OP_PUT);
}

/* ---- lists ------------------------------------------------------------ */

struct message_scan {
    const struct hd_room_message_query *wanted;
    hd_room_message_fn fn;
    void *arg;
    size_t found;
};

static bool is_wanted_message(const struct hd_room_message_query *wanted,
                              const struct hd_room_message_rec *message)
{
    return message->seq > wanted->after && (wanted->before <= 0 || message->seq < wanted->before) &&
           (wanted->sender.len == 0 || hd_slice_eq(message->sender, wanted->sender)) &&
           (wanted->state < 0 || (int)message->state == wanted->state);
}

static int on_listed_message(void *arg, const struct hd_room_message_rec *message)
{
    struct message_scan *scan = arg;
    int result;

    if (!is_wanted_message(scan->wanted, message))
        return 0;
    result = scan->fn(scan->arg, message);
    return result ? result : ++scan->found == scan->wanted->limit;
}

/* The index with the fewest rows: its prefix follows the two cells of the thread. */
static unsigned choose_index(const struct hd_room_message_query *wanted, struct hd_query *query,
                             struct hd_cell *prefix)
{
    query->index = HD_PRIMARY;
    if (wanted->changed_after >= 0) {
        query->index = HD_ROOM_MESSAGES_BY_CHANGE;
    } else if (wanted->sender.len > 0) {
        query->index = HD_ROOM_MESSAGES_BY_SENDER;
        *prefix = hd_cell_bytes(wanted->sender);
        return 1;
    } else if (wanted->state >= 0) {
        query->index = HD_ROOM_MESSAGES_BY_STATE;
        *prefix = hd_cell_bytes(hd_slice_cstr(hd_room_states[wanted->state]));
        return 1;
    }
    return 0;
}

int hd_room_messages_scan(struct heddle *store, struct hd_slice principal,
                          struct hd_slice thread_id, const struct hd_room_message_query *query,
                          hd_room_message_fn fn, void *arg, struct heddle_error *fault)
{
    const hd_room_message_fn on_each = on_listed_message;
    struct message_scan scan = {.wanted = query, .fn = fn, .arg = arg};
    bool is_by_change = query->changed_after >= 0;
    struct hd_cell prefix[3] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    struct hd_cell low = hd_cell_int((is_by_change ? query->changed_after : query->after) + 1);
    struct hd_cell high = hd_cell_int(query->before);
    struct hd_query rows = {.prefix = prefix,
                            .low = &low,
                            .high = !is_by_change && query->before > 0 ? &high : NULL,
                            .is_reverse = query->is_newest_first};

    if (query->limit > 0 && query->limit < PAGE)
        rows.limit = query->limit;
    rows.prefix_count = 2 + choose_index(query, &rows, &prefix[2]);
    return hd_records_scan(store, &message_type, rows, &on_each, &scan, fault);
}

static int count_messages(struct heddle *store, const struct hd_cell *prefix, unsigned prefix_count,
                          int index, int64_t after, int64_t *out, struct heddle_error *fault)
{
    const struct hd_cell low = hd_cell_int(after + 1);
    const struct hd_query query = {.table = HD_ROOM_MESSAGES,
                                   .index = index,
                                   .prefix = prefix,
                                   .prefix_count = prefix_count,
                                   .low = &low};

    return hd_rows_count(store, query, out, fault);
}

int hd_room_messages_count(struct heddle *store, struct hd_slice principal,
                           struct hd_slice thread_id, struct hd_slice reader, int64_t after,
                           int64_t *out, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                     hd_cell_bytes(reader)};
    int64_t all = 0, own = 0;
    int err = count_messages(store, prefix, 2, HD_PRIMARY, after, &all, fault);

    if (!err && all > 0)
        err = count_messages(store, prefix, 3, HD_ROOM_MESSAGES_BY_SENDER, after, &own, fault);
    if (!err)
        *out = all - own;
    return err;
}

/* ---- the messages of mentions ----------------------------------------- */

struct mention_reading {
    struct hd_arena *arena;
    struct hd_room_message_rec *out;
    struct heddle_error *fault;
};

static int on_mentioning(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct mention_reading *reading = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = hd_record_keep(reading->arena, HD_ROOM_MESSAGES, cells, kept);

    return err ? err
               : hd_record_decode(&message_type, kept, reading->arena, &reading->out[which],
                                  reading->fault);
}

int hd_mention_messages_read(struct heddle *store, const struct hd_mention_rec *mentions,
                             size_t count, struct hd_arena *arena, struct hd_room_message_rec *out,
                             struct heddle_error *fault)
{
    struct mention_reading reading = {arena, out, fault};
    struct hd_cell(*keys)[3] = hd_arena_calloc(arena, count + 1, sizeof(*keys));
    struct hd_query *queries = hd_arena_calloc(arena, count + 1, sizeof(*queries));

    if (!keys || !queries)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct hd_room_message_rec){.seq = 0};
        keys[i][0] = hd_cell_bytes(mentions[i].principal);
        keys[i][1] = hd_cell_bytes(mentions[i].thread_id);
        keys[i][2] = hd_cell_int(mentions[i].seq);
        queries[i] = (struct hd_query){.table = HD_ROOM_MESSAGES,
                                       .index = HD_PRIMARY,
                                       .prefix = keys[i],
                                       .prefix_count = HD_COUNT(keys[i]),
                                       .limit = 1,
                                       .columns = HD_ALL_COLUMNS,
                                       .is_independent = i == 0};
    }
    return count > 0 ? hd_rows_read(store, queries, count, on_mentioning, &reading, fault) : 0;
}

/* ---- contents --------------------------------------------------------- */

int hd_room_content_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                         struct hd_slice message_id, int64_t version, struct hd_arena *arena,
                         struct hd_room_content_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(message_id), hd_cell_int(version)};

    return hd_record_read(store, &content_type, key, HD_COUNT(key), arena, out, fault);
}

struct contents_reading {
    struct hd_arena *arena;
    struct hd_room_content_rec *out;
    struct heddle_error *fault;
};

static int on_content(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct contents_reading *reading = arg;
    struct hd_cell kept[HD_MAX_COLUMNS];
    int err = hd_record_keep(reading->arena, HD_ROOM_CONTENTS, cells, kept);

    return err ? err
               : hd_record_decode(&content_type, kept, reading->arena, &reading->out[which],
                                  reading->fault);
}

int hd_room_contents_read(struct heddle *store, const struct hd_room_message_rec *messages,
                          size_t count, struct hd_arena *arena, struct hd_room_content_rec *out,
                          struct heddle_error *fault)
{
    struct contents_reading reading = {arena, out, fault};
    struct hd_cell(*keys)[4] = hd_arena_calloc(arena, count + 1, sizeof(*keys));
    struct hd_query *queries = hd_arena_calloc(arena, count + 1, sizeof(*queries));

    if (!keys || !queries)
        return HD_ENOMEM;
    if (count == 0)
        return 0;
    memset(out, 0, count * sizeof(*out));
    for (size_t i = 0; i < count; i++) {
        keys[i][0] = hd_cell_bytes(messages[i].principal);
        keys[i][1] = hd_cell_bytes(messages[i].thread_id);
        keys[i][2] = hd_cell_bytes(messages[i].id);
        keys[i][3] = hd_cell_int(messages[i].version);
        queries[i] = (struct hd_query){.table = HD_ROOM_CONTENTS,
                                       .index = HD_PRIMARY,
                                       .prefix = keys[i],
                                       .prefix_count = HD_COUNT(keys[i]),
                                       .limit = 1,
                                       .columns = HD_ALL_COLUMNS};
    }
    queries[0].is_independent = true;
    return hd_rows_read(store, queries, count, on_content, &reading, fault);
}

int hd_room_versions_read(struct heddle *store, struct hd_slice principal,
                          struct hd_slice thread_id, struct hd_slice message_id,
                          struct hd_arena *arena, struct hd_room_content_rec **out, size_t *count,
                          struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                     hd_cell_bytes(message_id)};
    const struct hd_query query = {
        .index = HD_PRIMARY, .prefix = prefix, .prefix_count = HD_COUNT(prefix)};
    void *versions = NULL;
    int err = hd_records_list(store, &content_type, query, 0, arena, &versions, count, fault);

    if (!err)
        *out = versions;
    return err;
}

int hd_room_content_add(struct hd_batch_builder *batch, const struct hd_room_content_rec *content)
{
    return hd_record_write(batch, &content_type, content, HD_OP_PUT);
}

int hd_room_contents_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                            struct hd_slice thread_id, struct hd_slice message_id)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(message_id)};

    return hd_batch_delete(batch, HD_ROOM_CONTENTS, key, HD_COUNT(key));
}

/* ---- ids -------------------------------------------------------------- */

int hd_room_id_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                    struct hd_slice message_id, struct hd_arena *arena, struct hd_room_id_rec *out,
                    struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(message_id)};

    return hd_record_read(store, &id_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_room_id_add(struct hd_batch_builder *batch, const struct hd_room_id_rec *id)
{
    return hd_record_write(batch, &id_type, id, HD_OP_ADD);
}

int hd_room_id_put(struct hd_batch_builder *batch, const struct hd_room_id_rec *id)
{
    return hd_record_write(batch, &id_type, id, HD_OP_PUT);
}

int hd_room_id_delete(struct hd_batch_builder *batch, const struct hd_room_id_rec *id)
{
    return hd_record_delete(batch, &id_type, id);
}
