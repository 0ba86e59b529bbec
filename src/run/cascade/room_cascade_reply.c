#include "run/cascade/room_cascade_reply.h"

#include "base/buf.h"
#include "base/clock.h"
#include "events/event_batch.h"
#include "records/stream_modes.h"
#include "room/room_view.h"

#define MAX_EVENT ((size_t)64 << 20)

static struct hd_cascade_entry *find_question(const struct hd_cascade_list *steps,
                                              struct hd_slice question)
{
    for (size_t i = 0; i < steps->count; i++) {
        struct hd_cascade_entry *entry = &steps->items[i];

        if (entry->state == HD_CASCADE_STEP_QUESTION && hd_slice_eq(entry->question, question))
            return entry;
    }
    return NULL;
}

int hd_room_cascade_reply_find(struct hd_app *app, const struct hd_room_message_rec *question,
                               struct hd_arena *arena, struct hd_room_cascade_reply *out,
                               struct heddle_error *fault)
{
    struct hd_room_run_rec run;
    int err = hd_room_run_read(app->store, question->principal, question->thread_id,
                               question->run_id, arena, &run, fault);

    *out = (struct hd_room_cascade_reply){.question = *question};
    if (err || run.cascade.len == 0)
        return err == HD_ENOTFOUND ? 0 : err;
    err = hd_cascade_read(app->store, question->principal, question->thread_id, run.cascade, arena,
                          &out->cascade, fault);
    if (!err)
        err = hd_cascade_steps_read(out->cascade.plan, arena, &out->steps, fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    out->step = find_question(&out->steps, question->id);
    out->is_needed = out->step != NULL;
    out->is_open =
        out->is_needed && out->step->reply.len == 0 &&
        (out->cascade.status == HD_CASCADE_WAITING || out->cascade.status == HD_CASCADE_RUNNING);
    return 0;
}

static int add_reply_event(struct hd_event_batch *events, const char *name, int err,
                           struct hd_buf *data)
{
    if (!err)
        err = hd_event_batch_add(events, hd_slice(NULL, 0), HD_MODE_ROOM, hd_slice_cstr(name),
                                 hd_buf_slice(data));
    hd_buf_fini(data);
    return err;
}

int hd_room_cascade_reply_put(struct hd_room_cascade_reply *reply, struct hd_slice message_id,
                              struct hd_slice resume, struct hd_room_rec *room,
                              struct hd_event_batch *events, struct hd_batch_builder *batch,
                              struct hd_arena *arena)
{
    struct hd_room_message_rec *question = &reply->question;
    struct hd_cascade_rec *cascade = &reply->cascade;
    struct hd_buf data;
    int err;

    reply->step->reply = message_id;
    reply->step->resume = resume;
    question->state = HD_ROOM_OK;
    question->changed = ++room->changes;
    question->updated_at = cascade->updated_at = hd_clock_now_us();
    cascade->status = HD_CASCADE_RUNNING;
    cascade->reason = hd_slice(NULL, 0);
    err = hd_cascade_steps_write(&reply->steps, arena, &cascade->plan);
    if (!err)
        err = hd_room_message_put(batch, question);
    if (!err)
        err = hd_cascade_put(batch, cascade);
    hd_buf_init(&data, MAX_EVENT);
    if (!err)
        err = hd_room_view_message_event(&data, question, NULL, NULL, 0);
    err = add_reply_event(events, "room/message", err, &data);
    hd_buf_init(&data, MAX_EVENT);
    if (!err)
        err = hd_room_view_cascade_event(&data, cascade);
    return add_reply_event(events, "room/cascade", err, &data);
}
