/* Messages that wait until a question of their agent was answered. */
#include "base/json.h"
#include "records/record_internal.h"
#include "room/room.h"

#define MAX_WAITS_TEXT ((size_t)1 << 20)

static bool is_same_wait(const struct hd_room_wait *a, const struct hd_room_wait *b)
{
    return hd_slice_eq(a->message_id, b->message_id) &&
           hd_slice_eq(a->assistant_id, b->assistant_id);
}

static int read_wait(hd_json_val pair, struct hd_arena *arena, struct hd_room_wait *out)
{
    struct hd_slice *const parts[] = {&out->message_id, &out->assistant_id};
    struct hd_json_iter it = hd_json_iter(pair);
    int err = hd_json_is_array(pair) && hd_json_size(pair) == HD_COUNT(parts) ? 0 : HD_ECORRUPT;

    for (size_t i = 0; !err && hd_json_next(&it); i++)
        err = hd_arena_copy(arena, hd_json_string(it.val), parts[i]);
    return err;
}

static int read_waits(hd_json_val list, struct hd_arena *arena, struct hd_room_wait **out,
                      size_t *count)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = hd_json_is_array(list) ? 0 : HD_ECORRUPT;

    *count = 0;
    *out = hd_arena_calloc(arena, hd_json_size(list) + 1, sizeof(**out));
    if (!*out)
        return HD_ENOMEM;
    while (!err && hd_json_next(&it))
        err = read_wait(it.val, arena, &(*out)[(*count)++]);
    return err;
}

int hd_room_waits_read(const struct hd_room_rec *room, struct hd_arena *arena,
                       struct hd_room_wait **out, size_t *count, struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err;

    *out = NULL;
    *count = 0;
    if (room->waits.len == 0)
        return 0;
    err = hd_json_parse(&json, room->waits, NULL);
    if (!err)
        err = read_waits(hd_json_root(&json), arena, out, count);
    hd_json_fini(&json);
    return err == HD_EINVAL || err == HD_ECORRUPT
               ? hd_record_damaged(HD_ROOM, room->thread_id, fault)
               : err;
}

static int write_waits(struct hd_room_rec *room, const struct hd_room_wait *waits, size_t count,
                       struct hd_arena *arena)
{
    struct hd_buf buf;
    struct hd_jw jw;

    room->waits = hd_slice(NULL, 0);
    if (count == 0)
        return 0;
    hd_buf_init(&buf, MAX_WAITS_TEXT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    for (size_t i = 0; i < count; i++) {
        hd_jw_array(&jw);
        hd_jw_string(&jw, waits[i].message_id);
        hd_jw_string(&jw, waits[i].assistant_id);
        hd_jw_array_end(&jw);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, arena, &room->waits);
}

int hd_room_wait_add(struct hd_room_rec *room, const struct hd_room_wait *wait,
                     struct hd_arena *arena)
{
    struct hd_room_wait *waits, all[HD_ROOM_MAX_WAITS];
    size_t count;
    int err = hd_room_waits_read(room, arena, &waits, &count, NULL);

    if (err)
        return err;
    if (count >= HD_ROOM_MAX_WAITS)
        return HD_ELIMIT;
    for (size_t i = 0; i < count; i++)
        all[i] = waits[i];
    all[count] = *wait;
    return write_waits(room, all, count + 1, arena);
}

int hd_room_wait_remove(struct hd_room_rec *room, const struct hd_room_wait *wait,
                        struct hd_arena *arena)
{
    struct hd_room_wait *waits;
    size_t count, kept = 0;
    int err = hd_room_waits_read(room, arena, &waits, &count, NULL);

    for (size_t i = 0; !err && i < count; i++) {
        if (!is_same_wait(&waits[i], wait))
            waits[kept++] = waits[i];
    }
    return err ? err : write_waits(room, waits, kept, arena);
}

/* ---- questions -------------------------------------------------------- */

struct question_search {
    struct hd_slice assistant_id;
    bool is_found;
};

static int on_open_question(void *arg, const struct hd_room_message_rec *message)
{
    struct question_search *search = arg;

    search->is_found =
        message->kind == HD_ROOM_AGENT && hd_slice_eq(message->sender, search->assistant_id);
    return search->is_found;
}

int hd_room_is_asking(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                      struct hd_slice assistant_id, bool *out, struct heddle_error *fault)
{
    static const struct hd_room_message_query query = {.state = HD_ROOM_PENDING,
                                                       .changed_after = -1};
    struct question_search search = {.assistant_id = assistant_id};
    int err = hd_room_messages_scan(store, principal, thread_id, &query, on_open_question, &search,
                                    fault);

    *out = search.is_found;
    return err;
}
