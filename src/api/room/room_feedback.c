/* Ratings of agents' messages, with a word: one of each person. */
#include "api/api.h"
#include "api/room/room_change.h"
#include "api/room/room_people.h"
#include "base/buf.h"
#include "base/clock.h"

#define MAX_FEEDBACK ((size_t)1 << 20) /* bytes of all ratings of a message */
#define MAX_COMMENT 4000               /* bytes */

static const char *const ratings[] = {"up", "down", NULL};

struct rating {
    struct hd_room_person person;
    int word; /* -1: none */
    struct hd_slice comment;
};

static int read_rating(struct hd_call *call, struct rating *out)
{
    int err;

    out->word = -1;
    err = hd_body_word(call, "rating", ratings, &out->word);
    if (!err)
        err = hd_body_string(call, "comment", &out->comment);
    if (!err && out->comment.len > MAX_COMMENT)
        err = hd_error_set(&call->fault, HD_EINVAL, "comment: longer than %d bytes", MAX_COMMENT);
    return err ? err : hd_room_people_me(call, &out->person);
}

static struct hd_step check_rated(struct hd_call *call, struct hd_room_change *change)
{
    const struct hd_room_message_rec *message = &change->message;

    if (message->kind == HD_ROOM_AGENT && message->state != HD_ROOM_DELETED)
        return HD_NEXT;
    return hd_call_refuse(call, 422, "only messages of agents can be rated");
}

static void put_rating(struct hd_jw *jw, const struct rating *rating)
{
    hd_jw_object(jw);
    hd_jw_key(jw, HD_S("person"));
    hd_room_view_person(jw, &rating->person);
    hd_jw_put_string_or_null(
        jw, "rating", rating->word < 0 ? hd_slice(NULL, 0) : hd_slice_cstr(ratings[rating->word]));
    hd_jw_put_string_or_null(jw, "comment", rating->comment);
    hd_jw_put_timestamp(jw, "created_at", hd_clock_now_us());
    hd_jw_object_end(jw);
}

static bool is_of_person(hd_json_val rating, const struct hd_room_person *person)
{
    hd_json_val id = hd_json_get(hd_json_get(rating, HD_S("person")), HD_S("id"));

    return hd_slice_eq(hd_json_string(id), person->id);
}

/* Replaces the person's rating in the list. Without rating and comment it is removed. */
static int apply_rating(struct hd_call *call, struct hd_room_change *change,
                        struct hd_batch_builder *batch)
{
    const struct rating *rating = change->ctx;
    bool is_set = rating->word >= 0 || rating->comment.len > 0;
    struct hd_json old = {NULL};
    struct hd_json_iter it;
    struct hd_buf buf;
    struct hd_jw jw;
    size_t count = 0;
    int err = change->message.feedback.len > 0
                  ? hd_json_parse(&old, change->message.feedback, &call->fault)
                  : 0;

    (void)batch;
    if (err)
        return err;
    hd_buf_init(&buf, MAX_FEEDBACK);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    it = hd_json_iter(hd_json_root(&old));
    while (hd_json_next(&it)) {
        if (is_of_person(it.val, &rating->person))
            continue;
        hd_jw_val(&jw, it.val);
        count++;
    }
    if (is_set)
        put_rating(&jw, rating);
    hd_jw_array_end(&jw);
    err = hd_jw_finish_in(&jw, call->arena, &change->message.feedback);
    if (count + is_set == 0)
        change->message.feedback = hd_slice(NULL, 0);
    hd_json_fini(&old);
    return err;
}

static void show_rated(struct hd_call *call, struct hd_room_change *change)
{
    hd_room_change_show_message(call, change);
    hd_jw_object_end(&call->jw);
}

static struct hd_step post_feedback(struct hd_call *call)
{
    struct hd_room_change *change = hd_arena_calloc(call->arena, 1, sizeof(*change));
    struct rating *rating = hd_arena_calloc(call->arena, 1, sizeof(*rating));
    int err = change && rating ? read_rating(call, rating) : HD_ENOMEM;

    if (err)
        return hd_step_fail(err);
    *change = (struct hd_room_change){.message_id = call->params[1],
                                      .check = check_rated,
                                      .apply = apply_rating,
                                      .show = show_rated,
                                      .ctx = rating};
    return hd_room_change_start(call, change);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}/feedback",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = post_feedback,
     .then = hd_room_change_then,
     .tag = "Rooms",
     .summary = "Rate a message of an agent",
     .body = "RoomFeedback",
     .answer = "RoomMessageChange"},
};

const struct hd_routes hd_routes_room_feedback = {routes, HD_COUNT(routes)};
