#include "room/room_view.h"

/* ---- people ----------------------------------------------------------- */

static void put_person(struct hd_jw *jw, enum hd_room_sender kind, struct hd_slice id,
                       struct hd_slice name)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", hd_slice_cstr(hd_room_senders[kind]));
    hd_jw_put_string(jw, "id", id);
    hd_jw_put_string(jw, "name", name);
    hd_jw_object_end(jw);
}

void hd_room_view_person(struct hd_jw *jw, const struct hd_room_person *person)
{
    put_person(jw, person->kind, person->id, person->name);
}

void hd_room_view_sender(struct hd_jw *jw, const struct hd_room_message_rec *message)
{
    put_person(jw, message->kind, message->sender_id, message->sender_name);
}

/* ---- runs ------------------------------------------------------------- */

struct hd_room_view_run hd_room_view_run_of(const struct hd_room_run_rec *run,
                                            struct hd_slice status)
{
    return (struct hd_room_view_run){.run_id = run->run_id,
                                     .assistant_id = run->assistant_id,
                                     .trigger = run->trigger,
                                     .answer = run->answer,
                                     .status = status};
}

void hd_room_view_run(struct hd_jw *jw, const struct hd_room_view_run *run)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", run->run_id);
    hd_jw_put_string(jw, "assistant_id", run->assistant_id);
    hd_jw_put_string_or_null(jw, "trigger", run->trigger);
    hd_jw_put_string_or_null(jw, "answer", run->answer);
    hd_jw_put_string_or_null(jw, "status", run->status);
    hd_jw_object_end(jw);
}

/* In its trigger, whose id need not be repeated. */
static void put_triggered(struct hd_jw *jw, const struct hd_room_view_run *run)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", run->run_id);
    hd_jw_put_string(jw, "assistant_id", run->assistant_id);
    hd_jw_put_string_or_null(jw, "status", run->status);
    hd_jw_put_string_or_null(jw, "answer", run->answer);
    hd_jw_object_end(jw);
}

/* ---- messages --------------------------------------------------------- */

static void put_message_content(struct hd_jw *jw, const struct hd_room_content_rec *content)
{
    const struct hd_slice none = {NULL, 0};

    hd_jw_put_raw_or(jw, "content", content ? content->content : none, "null");
    hd_jw_put_raw_or(jw, "metadata", content ? content->metadata : none, "null");
}

void hd_room_view_message_members(struct hd_jw *jw, const struct hd_room_message_rec *message,
                                  const struct hd_room_content_rec *content,
                                  const struct hd_room_view_run *runs, size_t run_count)
{
    hd_jw_put_string(jw, "id", message->id);
    hd_jw_put_int(jw, "seq", message->seq);
    hd_jw_put_string(jw, "thread_id", message->thread_id);
    hd_jw_key(jw, HD_S("sender"));
    hd_room_view_sender(jw, message);
    put_message_content(jw, content);
    hd_jw_put_string_or_null(jw, "reply_to", message->reply_to);
    hd_jw_put_raw_or(jw, "mentions", message->mentions, "[]");
    hd_jw_put_int(jw, "version", message->version);
    hd_jw_put_string(jw, "state", hd_slice_cstr(hd_room_states[message->state]));
    hd_jw_put_string_or_null(jw, "replaced_by", message->replaced_by);
    hd_jw_put_string_or_null(jw, "replaces", message->replaces);
    hd_jw_put_string_or_null(jw, "run_id", message->run_id);
    hd_jw_put_string_or_null(jw, "checkpoint_id", message->checkpoint_id);
    hd_jw_put_raw_or(jw, "interrupts", message->interrupts, "null");
    hd_jw_put_raw_or(jw, "error", message->error, "null");
    hd_jw_put_raw_or(jw, "feedback", message->feedback, "null");
    hd_jw_put_timestamp(jw, "created_at", message->created_at);
    hd_jw_put_timestamp(jw, "updated_at",
                        message->updated_at ? message->updated_at : message->created_at);
    hd_jw_put_array(jw, "runs");
    for (size_t i = 0; i < run_count; i++)
        put_triggered(jw, &runs[i]);
    hd_jw_array_end(jw);
}

void hd_room_view_message(struct hd_jw *jw, const struct hd_room_message_rec *message,
                          const struct hd_room_content_rec *content,
                          const struct hd_room_view_run *runs, size_t run_count)
{
    hd_jw_object(jw);
    hd_room_view_message_members(jw, message, content, runs, run_count);
    hd_jw_object_end(jw);
}

/* ---- cascades --------------------------------------------------------- */

/* Without the value of a reply, which is in its message: a purge of that leaves no copy. */
static void put_plan_step(struct hd_jw *jw, hd_json_val step)
{
    struct hd_json_iter it = hd_json_iter(step);

    hd_jw_object(jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("resume")))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
    hd_jw_object_end(jw);
}

static void put_plan(struct hd_jw *jw, struct hd_slice plan)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = plan.len > 0 ? hd_json_parse(&json, plan, NULL) : 0;

    if (err && !jw->err)
        jw->err = err;
    hd_jw_put_array(jw, "plan");
    it = hd_json_iter(hd_json_root(&json));
    while (!err && hd_json_next(&it))
        put_plan_step(jw, it.val);
    hd_jw_array_end(jw);
    hd_json_fini(&json);
}

void hd_room_view_cascade(struct hd_jw *jw, const struct hd_cascade_rec *cascade)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "cascade_id", cascade->id);
    hd_jw_put_string(jw, "thread_id", cascade->thread_id);
    hd_jw_put_string(jw, "message_id", cascade->message_id);
    hd_jw_put_int(jw, "version", cascade->version);
    hd_jw_put_string(jw, "status", hd_slice_cstr(hd_cascade_statuses[cascade->status]));
    hd_jw_put_int(jw, "limit", cascade->limit);
    hd_jw_put_int(jw, "approved", cascade->approved);
    hd_jw_put_string_or_null(jw, "reason", cascade->reason);
    put_plan(jw, cascade->plan);
    hd_jw_put_timestamp(jw, "created_at", cascade->created_at);
    hd_jw_put_timestamp(jw, "updated_at",
                        cascade->updated_at ? cascade->updated_at : cascade->created_at);
    hd_jw_object_end(jw);
}

/* ---- rooms ------------------------------------------------------------ */

static void put_agents(struct hd_jw *jw, const struct hd_room_view *view)
{
    hd_jw_put_array(jw, "agents");
    for (size_t i = 0; i < view->agent_count; i++) {
        hd_jw_object(jw);
        hd_jw_put_string(jw, "assistant_id", view->agents[i].assistant_id);
        hd_jw_put_string(jw, "name", view->agents[i].name);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
}

static void put_settings(struct hd_jw *jw, const struct hd_room_rec *room)
{
    hd_jw_put_object(jw, "context");
    hd_jw_put_int(jw, "messages", room->context_messages);
    hd_jw_put_int(jw, "bytes", room->context_bytes);
    hd_jw_object_end(jw);
    hd_jw_put_object(jw, "cascade");
    hd_jw_put_int(jw, "limit", room->cascade_limit);
    hd_jw_object_end(jw);
    hd_jw_put_object(jw, "agents_ask");
    hd_jw_put_int(jw, "depth", room->ask_depth);
    hd_jw_put_int(jw, "runs", room->ask_runs);
    hd_jw_object_end(jw);
    hd_jw_put_string(jw, "answers", hd_slice_cstr(hd_room_answers_names[room->answers]));
    hd_jw_put_bool(jw, "presence", room->has_presence);
}

void hd_room_view_room(struct hd_jw *jw, const struct hd_room_view *view)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "thread_id", view->room->thread_id);
    hd_jw_put_string_or_null(jw, "default_assistant_id", view->room->default_assistant_id);
    put_agents(jw, view);
    put_settings(jw, view->room);
    hd_jw_put_int(jw, "last_seq", view->room->last_seq);
    hd_jw_put_array(jw, "people");
    for (size_t i = 0; i < view->people_count; i++)
        hd_room_view_person(jw, &view->people[i]);
    hd_jw_array_end(jw);
    hd_jw_key(jw, HD_S("me"));
    hd_room_view_person(jw, view->me);
    hd_jw_put_int(jw, "unread", view->unread);
    hd_jw_object_end(jw);
}

/* ---- events ----------------------------------------------------------- */

static void begin_event(struct hd_jw *jw, struct hd_buf *out, struct hd_slice key)
{
    hd_jw_init(jw, out);
    hd_jw_object(jw);
    hd_jw_key(jw, key);
}

static int end_event(struct hd_jw *jw)
{
    hd_jw_object_end(jw);
    return hd_jw_finish(jw);
}

int hd_room_view_message_event(struct hd_buf *out, const struct hd_room_message_rec *message,
                               const struct hd_room_content_rec *content,
                               const struct hd_room_view_run *runs, size_t run_count)
{
    struct hd_jw jw;

    begin_event(&jw, out, HD_S("message"));
    hd_room_view_message(&jw, message, content, runs, run_count);
    return end_event(&jw);
}

int hd_room_view_run_event(struct hd_buf *out, const struct hd_room_view_run *run)
{
    struct hd_jw jw;

    begin_event(&jw, out, HD_S("run"));
    hd_room_view_run(&jw, run);
    return end_event(&jw);
}

int hd_room_view_cascade_event(struct hd_buf *out, const struct hd_cascade_rec *cascade)
{
    struct hd_jw jw;

    begin_event(&jw, out, HD_S("cascade"));
    hd_room_view_cascade(&jw, cascade);
    return end_event(&jw);
}
