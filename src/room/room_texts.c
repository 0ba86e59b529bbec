#include "room/room_texts.h"

#include "room/room.h"

#define PAGE 50 /* contents of one read */

struct room_texts {
    struct hd_arena *arena;
    struct hd_room_message_rec *list; /* newest first */
    size_t count, most;
};

static bool is_shown_text(const struct hd_room_message_rec *message)
{
    return message->state != HD_ROOM_DELETED && message->replaced_by.len == 0;
}

static int on_text_message(void *arg, const struct hd_room_message_rec *message)
{
    struct room_texts *texts = arg;
    int err;

    if (!is_shown_text(message))
        return 0;
    if (texts->count == texts->most)
        return 1;
    err = hd_room_message_copy(texts->arena, message, &texts->list[texts->count]);
    texts->count += !err;
    return err;
}

/* The first message behind the newest ones, unless it is one of them. */
static int read_text_messages(struct heddle *store, struct hd_slice principal,
                              struct hd_slice thread_id, struct room_texts *texts,
                              struct heddle_error *fault)
{
    struct hd_room_message_query query = {
        .state = -1, .changed_after = -1, .is_newest_first = true};
    int err;

    texts->most = HD_ROOM_TEXTS_MOST;
    err = hd_room_messages_scan(store, principal, thread_id, &query, on_text_message, texts, fault);
    if (err || texts->count < texts->most)
        return err;
    query.is_newest_first = false;
    query.before = texts->list[texts->count - 1].seq;
    texts->most++;
    return hd_room_messages_scan(store, principal, thread_id, &query, on_text_message, texts,
                                 fault);
}

static void write_text(struct hd_jw *jw, const struct hd_room_message_rec *message,
                       const struct hd_room_content_rec *content)
{
    if (content->content.len == 0)
        return;
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", message->kind == HD_ROOM_AGENT ? HD_S("ai") : HD_S("human"));
    hd_jw_put_raw(jw, "content", content->content);
    hd_jw_object_end(jw);
}

/* From the end of the list, where the oldest are. */
static int write_texts(struct heddle *store, const struct room_texts *texts, struct hd_jw *jw,
                       struct heddle_error *fault)
{
    struct hd_room_content_rec contents[PAGE];
    size_t end = texts->count;
    int err = 0;

    while (!err && end > 0) {
        size_t first = end > PAGE ? end - PAGE : 0;

        err = hd_room_contents_read(store, texts->list + first, end - first, texts->arena, contents,
                                    fault);
        for (size_t i = end; !err && i > first; i--)
            write_text(jw, &texts->list[i - 1], &contents[i - 1 - first]);
        end = first;
    }
    return err;
}

int hd_room_texts_write(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                        struct hd_arena *arena, struct hd_jw *jw, struct heddle_error *fault)
{
    struct room_texts texts = {.arena = arena};
    int err;

    texts.list = hd_arena_calloc(arena, HD_ROOM_TEXTS_MOST + 1, sizeof(*texts.list));
    err = texts.list ? read_text_messages(store, principal, thread_id, &texts, fault) : HD_ENOMEM;
    if (err)
        return err;
    hd_jw_array(jw);
    err = write_texts(store, &texts, jw, fault);
    hd_jw_array_end(jw);
    return err;
}
