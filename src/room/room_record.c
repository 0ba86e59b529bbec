#include "room/room.h"

#include "base/json.h"
#include "records/record_internal.h"

#define MAX_AGENTS_TEXT ((size_t)1 << 20)
#define MAX_MARKS_TEXT ((size_t)16 << 20)

const char *const hd_room_answers_names[] = {
    [HD_ROOM_ANSWERS_ASKER] = "asker", [HD_ROOM_ANSWERS_EDITORS] = "editors", NULL};

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_room_rec

static const struct hd_record_field room_members[] = {
    {HD_RECORD_MEMBER("default_assistant_id", TEXT, REC, default_assistant_id)},
    {HD_RECORD_MEMBER("agents", JSON, REC, agents)},
    {HD_RECORD_MEMBER("marks", JSON, REC, marks)},
    {HD_RECORD_MEMBER("waits", JSON, REC, waits)},
    {HD_RECORD_MEMBER("context_messages", INT, REC, context_messages)},
    {HD_RECORD_MEMBER("context_bytes", INT, REC, context_bytes)},
    {HD_RECORD_MEMBER("cascade_limit", INT, REC, cascade_limit)},
    {HD_RECORD_MEMBER("ask_depth", INT, REC, ask_depth)},
    {HD_RECORD_MEMBER("ask_runs", INT, REC, ask_runs)},
    {HD_RECORD_MEMBER("answers", NAME, REC, answers), .names = hd_room_answers_names},
    {HD_RECORD_MEMBER("presence", WORD, REC, has_presence), .names = hd_record_bool},
};

static int call_room_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_room_rec_fn *)fn)(arg, record);
}

static const struct hd_record_type room_type = {
    .table = HD_ROOM,
    .size = sizeof(REC),
    .id = HD_ROOM_THREAD,
    .rev = HD_ROOM_REV,
    .columns =
        {
            [HD_ROOM_PRINCIPAL] = {HD_RECORD_COLUMN(TEXT, REC, principal)},
            [HD_ROOM_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_ROOM_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_ROOM_LAST_SEQ] = {HD_RECORD_COLUMN(INT, REC, last_seq)},
            [HD_ROOM_CHANGES] = {HD_RECORD_COLUMN(INT, REC, changes)},
            [HD_ROOM_UPDATED] = {HD_RECORD_COLUMN(INT, REC, updated_at)},
            [HD_ROOM_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(room_members),
    .unknown = offsetof(REC, unknown),
    .call = call_room_fn,
};

void hd_room_init(struct hd_room_rec *room, struct hd_slice principal, struct hd_slice thread_id)
{
    *room = (struct hd_room_rec){.principal = principal,
                                 .thread_id = thread_id,
                                 .context_messages = 20,
                                 .context_bytes = 65536,
                                 .cascade_limit = 5,
                                 .ask_runs = 8,
                                 .answers = HD_ROOM_ANSWERS_ASKER,
                                 .has_presence = true};
}

int hd_room_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                 struct hd_arena *arena, struct hd_room_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};

    return hd_record_read(store, &room_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_rooms_scan(struct heddle *store, hd_room_rec_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_query query = {.index = HD_PRIMARY};

    return hd_records_scan(store, &room_type, query, &fn, arg, fault);
}

int hd_room_put(struct hd_batch_builder *batch, struct hd_room_rec *room)
{
    return room->rev == 0 ? hd_record_add(batch, &room_type, room)
                          : hd_record_put(batch, &room_type, room);
}

int hd_room_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                   struct hd_slice thread_id)
{
    static const enum hd_table_id tables[] = {HD_ROOM,      HD_ROOM_MESSAGES, HD_ROOM_CONTENTS,
                                              HD_ROOM_IDS,  HD_ROOM_RUNS,     HD_ROOM_CASCADES,
                                              HD_ROOM_READS};
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread_id)};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(tables); i++)
        err = hd_batch_delete(batch, tables[i], key, HD_COUNT(key));
    return err;
}

/* ---- agents ----------------------------------------------------------- */

static int read_agent(hd_json_val val, struct hd_arena *arena, struct hd_room_agent *out)
{
    int err = hd_arena_copy(arena, hd_json_string(hd_json_get(val, HD_S("assistant_id"))),
                            &out->assistant_id);

    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(val, HD_S("name"))), &out->name);
    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_get(val, HD_S("actor"))), &out->actor);
    if (!err && out->assistant_id.len == 0)
        err = HD_ECORRUPT;
    return err;
}

static int read_agents(hd_json_val list, struct hd_arena *arena, struct hd_room_agent **out,
                       size_t *count)
{
    struct hd_json_iter it = hd_json_iter(list);
    size_t size = hd_json_size(list), i = 0;
    struct hd_room_agent *agents = hd_arena_calloc(arena, size + 1, sizeof(*agents));
    int err = agents ? 0 : HD_ENOMEM;

    if (!err && !hd_json_is_array(list))
        err = HD_ECORRUPT;
    while (!err && hd_json_next(&it))
        err = read_agent(it.val, arena, &agents[i++]);
    if (err)
        return err;
    *out = agents;
    *count = size;
    return 0;
}

int hd_room_agents_read(const struct hd_room_rec *room, struct hd_arena *arena,
                        struct hd_room_agent **out, size_t *count, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err;

    *out = NULL;
    *count = 0;
    if (room->agents.len == 0)
        return 0;
    err = hd_json_parse(&json, room->agents, NULL);
    if (!err)
        err = read_agents(hd_json_root(&json), arena, out, count);
    hd_json_fini(&json);
    return err == HD_EINVAL || err == HD_ECORRUPT
               ? hd_record_damaged(HD_ROOM, room->thread_id, fault)
               : err;
}

int hd_room_agents_write(struct hd_room_rec *room, const struct hd_room_agent *agents, size_t count,
                         struct hd_arena *arena)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_AGENTS_TEXT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; i < count; i++) {
        hd_jw_object(&jw);
        hd_jw_put_string(&jw, "assistant_id", agents[i].assistant_id);
        hd_jw_put_string(&jw, "name", agents[i].name);
        hd_jw_put_string(&jw, "actor", agents[i].actor);
        hd_jw_object_end(&jw);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, arena, &room->agents);
}

/* ---- marks ------------------------------------------------------------ */

/* The two numbers of a mark; false: it has another form. */
static bool read_mark(hd_json_val val, struct hd_room_mark *out)
{
    int64_t *const numbers[] = {&out->seq, &out->changes};
    struct hd_json_iter it = hd_json_iter(val);
    bool is_valid = hd_json_is_array(val) && hd_json_size(val) == HD_COUNT(numbers);

    for (size_t i = 0; is_valid && hd_json_next(&it); i++)
        is_valid = hd_json_int(it.val, numbers[i]);
    return is_valid;
}

int hd_room_mark_get(const struct hd_room_rec *room, struct hd_slice ns, struct hd_room_mark *out,
                     struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val val;
    int err;

    *out = (struct hd_room_mark){0, 0};
    if (room->marks.len == 0)
        return 0;
    err = hd_json_parse(&json, room->marks, NULL);
    val = hd_json_get(hd_json_root(&json), ns);
    if (!err && val && !read_mark(val, out))
        err = HD_EINVAL;
    hd_json_fini(&json);
    return err == HD_EINVAL ? hd_record_damaged(HD_ROOM, room->thread_id, fault) : err;
}

static void put_marks(struct hd_jw *jw, hd_json_val marks, struct hd_slice ns,
                      struct hd_room_mark mark)
{
    struct hd_json_iter it = hd_json_iter(marks);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, ns))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_jw_key(jw, ns);
    hd_jw_array(jw);
    hd_jw_int(jw, mark.seq);
    hd_jw_int(jw, mark.changes);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

int hd_room_mark_set(struct hd_room_rec *room, struct hd_slice ns, struct hd_room_mark mark,
                     struct hd_arena *arena)
{
    struct hd_json json = {NULL};
    struct hd_buf buf;
    struct hd_jw jw;
    int err = room->marks.len > 0 ? hd_json_parse(&json, room->marks, NULL) : 0;

    if (err)
        return err == HD_EINVAL ? HD_ECORRUPT : err;
    hd_buf_init(&buf, MAX_MARKS_TEXT);
    hd_jw_init(&jw, &buf);
    put_marks(&jw, hd_json_root(&json), ns, mark);
    err = hd_jw_finish_in(&jw, arena, &room->marks);
    hd_json_fini(&json);
    return err;
}
