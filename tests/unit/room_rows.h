/* A stored room of two people and an agent, for tests of what copies, moves and removes threads. */
#ifndef TESTS_UNIT_ROOM_ROWS_H
#define TESTS_UNIT_ROOM_ROWS_H

#include <heddle.h>

#include "records/record.h"
#include "room/room.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#define ROOM_OWNER HD_S("ada")
#define ROOM_GUEST HD_S("bob")
#define ROOM_THREAD HD_S("job")
#define ROOM_AGENT HD_S("a1")

/* Applies the batch in the lane of the room's thread, and ends it. */
static inline void room_apply(struct heddle *store, struct hd_batch_builder *batch)
{
    struct hd_batch view = hd_batch_view(batch);

    assert_err(hd_rows_apply(store, HD_S("ada:job"), &view, NULL, NULL), 0);
    hd_batch_fini(batch);
}

struct room_line {
    const char *id;
    enum hd_room_sender kind;
    struct hd_slice sender;
    enum hd_room_state state;
    const char *content; /* JSON; NULL: there is none */
    const char *reply_to;
    const char *run_id;
    const char *replaced_by;
};

/* The message with its id and content; `seq` is also the time of its creation, in seconds. */
static inline void room_add_line(struct hd_batch_builder *batch, int64_t seq,
                                 const struct room_line *line)
{
    /* Run r1 ends at c1. */
    const char checkpoint[] = {'c', line->run_id[0] ? line->run_id[1] : '0', '\0'};
    bool is_agent = line->kind == HD_ROOM_AGENT;
    const struct hd_room_message_rec message = {.principal = ROOM_OWNER,
                                                .thread_id = ROOM_THREAD,
                                                .seq = seq,
                                                .id = hd_slice_cstr(line->id),
                                                .state = line->state,
                                                .version = 1,
                                                .created_at = seq * 1000000,
                                                .sender = line->sender,
                                                .kind = line->kind,
                                                .sender_id = line->sender,
                                                .sender_name = line->sender,
                                                .reply_to = hd_slice_cstr(line->reply_to),
                                                .replaced_by = hd_slice_cstr(line->replaced_by),
                                                .run_id = hd_slice_cstr(line->run_id),
                                                .ns = hd_slice_cstr(is_agent ? "assistant:a1" : ""),
                                                .checkpoint_id =
                                                    hd_slice_cstr(is_agent ? checkpoint : "")};
    const struct hd_room_id_rec id = {.principal = ROOM_OWNER,
                                      .thread_id = ROOM_THREAD,
                                      .message_id = message.id,
                                      .seq = seq,
                                      .hash = HD_S("hash")};
    const struct hd_room_content_rec content = {.principal = ROOM_OWNER,
                                                .thread_id = ROOM_THREAD,
                                                .message_id = message.id,
                                                .version = 1,
                                                .created_at = message.created_at,
                                                .content = hd_slice_cstr(line->content)};

    assert_err(hd_room_message_add(batch, &message), 0);
    assert_err(hd_room_id_add(batch, &id), 0);
    if (content.content.len > 0)
        assert_err(hd_room_content_add(batch, &content), 0);
}

/*
 * Ada asks the agent in m1 and gets m2 from run r1; Bob writes m3, which mentions Ada; m4 was
 * deleted; m5 was edited by Ada, and m6 is the agent's answer from run r2. A cascade is running.
 */
static inline void room_fill(struct heddle *store, struct hd_arena *arena)
{
    const struct room_line lines[] = {
        {"m1", HD_ROOM_PERSON, ROOM_OWNER, HD_ROOM_OK, "\"@clerk one\"", "", "", ""},
        {"m2", HD_ROOM_AGENT, ROOM_AGENT, HD_ROOM_OK,
         "[{\"type\":\"text\",\"text\":\"two\"},{\"type\":\"text\",\"text\":\"too\"}]", "m1", "r1",
         ""},
        {"m3", HD_ROOM_PERSON, ROOM_GUEST, HD_ROOM_OK, "\"three @ada\"", "m2", "", ""},
        {"m4", HD_ROOM_PERSON, ROOM_GUEST, HD_ROOM_DELETED, "\"secret\"", "", "", ""},
        {"m5", HD_ROOM_PERSON, ROOM_OWNER, HD_ROOM_OK, "\"first\"", "", "", ""},
        {"m6", HD_ROOM_AGENT, ROOM_AGENT, HD_ROOM_OK, "\"six\"", "m5", "r2", ""},
    };
    const struct hd_room_agent agents[] = {{ROOM_AGENT, HD_S("clerk"), ROOM_OWNER},
                                           {HD_S("a2"), HD_S("guest"), ROOM_GUEST}};
    const struct hd_room_run_rec runs[] = {
        {ROOM_OWNER, ROOM_THREAD, HD_S("r1"), HD_S("m1"), 1, .answer = HD_S("m2"),
         .assistant_id = ROOM_AGENT, .ns = HD_S("assistant:a1"), .given = HD_S("[[\"m1\",1]]"),
         .head_after = HD_S("c1")},
        {ROOM_OWNER, ROOM_THREAD, HD_S("r2"), HD_S("m5"), 2, .answer = HD_S("m6"),
         .assistant_id = ROOM_AGENT, .ns = HD_S("assistant:a1"), .given = HD_S("[[\"m5\",2]]"),
         .head_before = HD_S("c1"), .head_after = HD_S("c2")}};
    const struct hd_room_content_rec edited = {.principal = ROOM_OWNER,
                                               .thread_id = ROOM_THREAD,
                                               .message_id = HD_S("m5"),
                                               .version = 2,
                                               .created_at = 7000000,
                                               .content = HD_S("\"five\""),
                                               .metadata = HD_S("{\"a\":1}")};
    const struct hd_room_read_rec reads[] = {
        {ROOM_OWNER, ROOM_THREAD, ROOM_OWNER, 6, 1, ROOM_OWNER, {NULL, 0}},
        {ROOM_OWNER, ROOM_THREAD, ROOM_GUEST, 3, 1, ROOM_GUEST, {NULL, 0}}};
    const struct hd_mention_rec mentions[] = {
        {ROOM_OWNER, 3000000, ROOM_OWNER, ROOM_THREAD, HD_S("m3"), 3},
        {ROOM_GUEST, 5000000, ROOM_OWNER, ROOM_THREAD, HD_S("m5"), 5}};
    struct hd_cascade_rec cascade = {.principal = ROOM_OWNER,
                                     .thread_id = ROOM_THREAD,
                                     .id = HD_S("k1"),
                                     .status = HD_CASCADE_RUNNING,
                                     .created_at = 7,
                                     .message_id = HD_S("m5"),
                                     .version = 2,
                                     .actor = ROOM_GUEST};
    const struct hd_room_wait wait = {HD_S("m5"), HD_S("a2")};
    struct hd_room_message_rec message;
    struct hd_thread_rec thread;
    struct hd_batch_builder batch;
    struct heddle_error fault = {0};
    struct hd_room_rec room;

    hd_batch_init(&batch);
    hd_thread_init(&thread, ROOM_OWNER, ROOM_THREAD);
    thread.created_at = 1;
    assert_err(hd_thread_add(&batch, &thread), 0);
    hd_room_init(&room, ROOM_OWNER, ROOM_THREAD);
    room.last_seq = HD_COUNT(lines);
    room.changes = 2;
    room.default_assistant_id = HD_S("a2");
    assert_err(hd_room_agents_write(&room, agents, HD_COUNT(agents), arena), 0);
    assert_err(hd_room_mark_set(&room, HD_S("assistant:a1"), (struct hd_room_mark){6, 2}, arena),
               0);
    assert_err(hd_room_wait_add(&room, &wait, arena), 0);
    assert_err(hd_room_put(&batch, &room), 0);
    for (size_t i = 0; i < HD_COUNT(lines); i++)
        room_add_line(&batch, (int64_t)i + 1, &lines[i]);
    for (size_t i = 0; i < HD_COUNT(runs); i++)
        assert_err(hd_room_run_put(&batch, &runs[i]), 0);
    for (size_t i = 0; i < HD_COUNT(reads); i++)
        assert_err(hd_room_read_put(&batch, &reads[i]), 0);
    for (size_t i = 0; i < HD_COUNT(mentions); i++)
        assert_err(hd_mention_add(&batch, &mentions[i]), 0);
    assert_err(hd_room_content_add(&batch, &edited), 0);
    assert_err(hd_cascade_put(&batch, &cascade), 0);
    room_apply(store, &batch);

    assert_err(
        hd_room_message_read(store, ROOM_OWNER, ROOM_THREAD, HD_S("m5"), arena, &message, &fault),
        0);
    message.version = 2;
    message.changed = 2;
    message.updated_at = 7000000;
    hd_batch_init(&batch);
    assert_err(hd_room_message_put(&batch, &message), 0);
    room_apply(store, &batch);
}

static inline int room_count_row(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    ++*(size_t *)arg;
    return 0;
}

/* The number of rows in a table, of all threads. */
static inline size_t room_count(struct heddle *store, enum hd_table_id table)
{
    const struct hd_query query = {.table = table, .index = HD_PRIMARY};
    struct heddle_error fault = {0};
    size_t count = 0;

    assert_err(hd_rows_scan(store, query, room_count_row, &count, &fault), 0);
    return count;
}

#endif
