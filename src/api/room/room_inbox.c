/* What concerns the caller in rooms: the read mark of a room, and mentions across all rooms. */
#include <string.h>

#include "api/api.h"
#include "api/request/access.h"
#include "api/room/room_find.h"
#include "api/room/room_people.h"
#include "api/room/room_presence.h"
#include "base/clock.h"
#include "base/iso_time.h"
#include "room/room_details.h"
#include "store/rows.h"

#define MENTIONS_MOST 100
#define MENTIONS_USUAL 20
#define MAX_CONTENTS ((size_t)1 << 30) /* bytes */

/* ---- the read mark ---------------------------------------------------- */

struct reading {
    struct hd_call *call;
    struct hd_room_person me;
    int64_t wanted;
    struct hd_thread_rec thread;
    struct hd_room_read_rec mark;
    bool has_presence; /* the room's setting */
    bool has_moved;
};

static int store_mark(struct reading *reading, struct heddle_error *fault)
{
    const struct hd_thread_rec *thread = &reading->thread;
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(reading->call->arena, thread->principal, thread->id, &lane);

    hd_batch_init(&batch);
    /* The creation time distinguishes a thread from a later one with the same id. */
    if (!err)
        err = hd_batch_expect(&batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED,
                              thread->created_at);
    if (!err)
        err = hd_room_read_put(&batch, &reading->mark);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(reading->call->app->store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The mark moves forward only, up to the last message. */
static int mark_once(void *arg, struct heddle_error *fault)
{
    struct reading *reading = arg;
    struct hd_call *call = reading->call;
    struct hd_room_rec room;
    int64_t seq;
    int err = hd_room_find(call, &reading->thread, &room);

    if (!err)
        err = hd_room_read_mark(call->app->store, room.principal, room.thread_id, reading->me.key,
                                call->arena, &reading->mark, fault);
    if (err)
        return err;
    reading->has_presence = room.has_presence;
    seq = reading->wanted < room.last_seq ? reading->wanted : room.last_seq;
    reading->has_moved = seq > reading->mark.seq;
    if (!reading->has_moved)
        return 0;
    reading->mark.seq = seq;
    reading->mark.updated_at = hd_clock_now_us();
    reading->mark.reader_id = reading->me.id;
    return store_mark(reading, fault);
}

static int read_wanted(struct hd_call *call, int64_t *out)
{
    int err = hd_body_int(call, "seq", 0, INT64_MAX, out);

    if (!err && !hd_body_get(call, "seq"))
        err = hd_error_set(&call->fault, HD_EINVAL, "seq: expected the number of a message");
    return err;
}

static struct hd_step put_read(struct hd_call *call)
{
    struct reading *reading = hd_arena_calloc(call->arena, 1, sizeof(*reading));
    int64_t unread = 0;
    int err = reading ? read_wanted(call, &reading->wanted) : HD_ENOMEM;

    if (!err)
        err = hd_room_people_me(call, &reading->me);
    if (err)
        return hd_step_fail(err);
    call->state = reading;
    reading->call = call;
    err = hd_rows_change(call->app->store, mark_once, reading, &call->fault);
    if (!err)
        err = hd_room_find_unread(call, &reading->thread, &unread);
    if (err)
        return hd_step_fail(err);
    hd_jw_object(&call->jw);
    hd_jw_put_int(&call->jw, "seq", reading->mark.seq);
    hd_jw_put_int(&call->jw, "unread", unread);
    hd_jw_object_end(&call->jw);
    return HD_NEXT;
}

static struct hd_step put_read_then(struct hd_call *call)
{
    const struct reading *reading = call->state;
    struct hd_room_presences *presences = hd_api_room_presences(call->api);
    const struct hd_thread_rec *thread = &reading->thread;

    hd_room_presence_switch(presences, thread->principal, thread->id, reading->has_presence);
    if (reading->has_moved)
        hd_room_presence_read(presences, thread->principal, thread->id, &reading->me,
                              reading->mark.seq);
    return HD_DONE;
}

/* ---- mentions --------------------------------------------------------- */

/* A page of the inbox, without what the caller may not see any more. */
struct inbox {
    struct hd_call *call;
    int64_t before;
    size_t limit;
    struct hd_mention_rec *mentions;
    struct hd_room_message_rec *messages;
    size_t count;
    /* The thread of the previous mention, and whether the caller sees it. */
    struct hd_slice owner, thread_id;
    bool is_seen;
};

static int read_before(struct hd_call *call, int64_t *out)
{
    struct hd_slice text;

    *out = 0;
    if (!hd_params_get(&call->query, HD_S("before"), &text))
        return 0;
    return hd_iso_parse(text, out) && *out > 0
               ? 0
               : hd_error_set(&call->fault, HD_EINVAL, "before: expected a time (ISO 8601)");
}

/* A participation may have ended since; threads of the same owner and id are looked up once. */
static int check_seen(struct inbox *inbox, const struct hd_mention_rec *mention)
{
    struct hd_slice owner;
    enum hd_role role;
    int err;

    if (hd_slice_eq(inbox->thread_id, mention->thread_id) &&
        hd_slice_eq(inbox->owner, mention->principal))
        return 0;
    err = hd_access_find(inbox->call, mention->thread_id, &owner, &role);
    inbox->thread_id = mention->thread_id;
    inbox->owner = mention->principal;
    inbox->is_seen = !err && hd_slice_eq(owner, mention->principal);
    return err;
}

/* Adds the visible mentions of a page; deleted messages have no mentions. */
static int add_mentions(struct inbox *inbox, const struct hd_mention_rec *mentions, size_t count)
{
    struct hd_call *call = inbox->call;
    struct hd_room_message_rec *messages =
        hd_arena_calloc(call->arena, count + 1, sizeof(*messages));
    int err = messages ? hd_mention_messages_read(call->app->store, mentions, count, call->arena,
                                                  messages, &call->fault)
                       : HD_ENOMEM;

    for (size_t i = 0; !err && i < count && inbox->count < inbox->limit; i++) {
        if (messages[i].seq == 0 || messages[i].state == HD_ROOM_DELETED)
            continue;
        err = check_seen(inbox, &mentions[i]);
        if (err || !inbox->is_seen)
            continue;
        inbox->mentions[inbox->count] = mentions[i];
        inbox->messages[inbox->count++] = messages[i];
    }
    return err;
}

static int fill_inbox(struct inbox *inbox)
{
    struct hd_call *call = inbox->call;
    size_t count = inbox->limit;
    int err = 0;

    inbox->mentions = hd_arena_calloc(call->arena, inbox->limit, sizeof(*inbox->mentions));
    inbox->messages = hd_arena_calloc(call->arena, inbox->limit, sizeof(*inbox->messages));
    if (!inbox->mentions || !inbox->messages)
        return HD_ENOMEM;
    while (!err && inbox->count < inbox->limit && count == inbox->limit) {
        struct hd_mention_rec *found = NULL;

        err = hd_mentions_read(call->app->store, hd_room_find_me(call), inbox->before, inbox->limit,
                               call->arena, &found, &count, &call->fault);
        if (!err && count > 0)
            inbox->before = found[count - 1].created_at;
        if (!err)
            err = add_mentions(inbox, found, count);
    }
    return err;
}

static int show_mention(struct inbox *inbox, size_t number, const struct hd_room_details *details)
{
    struct hd_jw *jw = &inbox->call->jw;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "thread_id", inbox->mentions[number].thread_id);
    hd_jw_put_timestamp(jw, "created_at", inbox->mentions[number].created_at);
    hd_jw_key(jw, HD_S("message"));
    hd_room_details_view(jw, &inbox->messages[number], details);
    hd_jw_object_end(jw);
    inbox->call->budget.shown += !jw->err;
    return jw->err;
}

static int show_inbox(struct inbox *inbox)
{
    struct hd_call *call = inbox->call;
    struct hd_room_details *details;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_CONTENTS);
    details = hd_arena_calloc(&arena, inbox->count + 1, sizeof(*details));
    err = details ? hd_room_details_read(call->app->store, inbox->messages, inbox->count, &arena,
                                         details, &call->fault)
                  : HD_ENOMEM;
    hd_jw_array(&call->jw);
    for (size_t i = 0; !err && i < inbox->count; i++)
        err = show_mention(inbox, i, &details[i]);
    hd_jw_array_end(&call->jw);
    hd_arena_fini(&arena);
    return err;
}

static struct hd_step list_mentions(struct hd_call *call)
{
    struct inbox inbox = {.call = call};
    int64_t limit;
    int err = hd_params_int(&call->query, HD_S("limit"), 1, MENTIONS_MOST, MENTIONS_USUAL, &limit,
                            &call->fault);

    if (!err)
        err = read_before(call, &inbox.before);
    if (err)
        return hd_step_fail(err);
    inbox.limit = (size_t)limit;
    err = fill_inbox(&inbox);
    return hd_step_done(err ? err : show_inbox(&inbox));
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_PUT,
     .pattern = "/threads/{thread_id}/room/read",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_READ,
     .work = put_read,
     .then = put_read_then,
     .tag = "Rooms",
     .summary = "Mark the messages up to a number as read by the caller",
     .body = "RoomRead",
     .answer = "RoomReadMark"},
    {.method = HD_METHOD_GET,
     .pattern = "/mentions",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_SEARCH,
     .work = list_mentions,
     .tag = "Rooms",
     .summary = "List the messages that mention the caller, newest first",
     .query = "limit mention_before",
     .answer = "[RoomMention"},
};

const struct hd_routes hd_routes_room_inbox = {routes, HD_COUNT(routes)};
