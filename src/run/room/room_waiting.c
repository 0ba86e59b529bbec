#include "run/room/room_waiting.h"

#include <string.h>

#include "app/defer.h"
#include "auth/identity.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/uuid.h"
#include "events/event_batch.h"
#include "records/participants.h"
#include "records/stream_modes.h"
#include "room/room_details.h"
#include "room/room_input.h"
#include "run/queue.h"
#include "run/room/room_chain.h"
#include "run/room/room_reminders.h"
#include "run/room/room_request.h"

#define MAX_MEMORY ((size_t)512 << 20)
#define MAX_EVENT ((size_t)64 << 20)
#define MAX_EVENTS 2   /* the message, and its run */
#define MAX_STEPS 1000 /* of one check */

/* Until the room is checked again. */
#define RETRY_S 2    /* after an error that may end itself */
#define HOLDER_S 5   /* another server has the thread */
#define LASTING_S 60 /* after other errors and refusals */

/* One check: its steps admit one run each, and pass over waits that cannot be admitted now. */
struct waiting_check {
    struct hd_app *app;
    struct hd_arena names; /* memory of `passed` */
    struct hd_room_wait passed[HD_ROOM_MAX_WAITS];
    size_t passed_count;
    int pause_s;           /* until the room is checked again; 0: it is not */
    struct hd_arena arena; /* of the step */
    char principal[HD_PRINCIPAL_SIZE];
    size_t principal_len;
    char thread_id[HD_UUID_SIZE];
    int steps;
    struct hd_room_wait wait; /* the next one; empty: none */
    int64_t event_seq;
    bool needs_numbers;
    struct hd_event_batch *events;
    struct hd_admission_group group;
    struct hd_room_rec room;
    struct hd_room_message_rec message;
    struct hd_room_details details;
    struct hd_room_chain chain;
    /* false: the run of an agent's message was deleted, or the person may not post any more */
    bool has_asker;
    struct hd_room_run *run; /* NULL: the message makes none */
    struct hd_admission *admission;
    int err;
    struct heddle_error fault;
};

static struct hd_slice check_principal(const struct waiting_check *check)
{
    return hd_slice(check->principal, check->principal_len);
}

static void free_check(struct waiting_check *check)
{
    hd_arena_fini(&check->names);
    hd_arena_fini(&check->arena);
    hd_free(check);
}

/* ---- the next wait (store thread) ------------------------------------- */

static bool was_passed(const struct waiting_check *check, const struct hd_room_wait *wait)
{
    for (size_t i = 0; i < check->passed_count; i++) {
        if (hd_slice_eq(check->passed[i].message_id, wait->message_id) &&
            hd_slice_eq(check->passed[i].assistant_id, wait->assistant_id))
            return true;
    }
    return false;
}

static int choose_wait(struct waiting_check *check)
{
    struct hd_room_wait *waits;
    size_t count;
    int err = hd_room_waits_read(&check->room, &check->arena, &waits, &count, &check->fault);

    for (size_t i = 0; !err && i < count && check->wait.message_id.len == 0; i++) {
        bool is_asking;

        if (was_passed(check, &waits[i]))
            continue;
        err = hd_room_is_asking(check->app->store, check->room.principal, check->room.thread_id,
                                waits[i].assistant_id, &is_asking, &check->fault);
        if (!err && !is_asking)
            check->wait = waits[i];
    }
    return err;
}

static void find_wait(void *arg)
{
    struct waiting_check *check = arg;
    struct heddle *store = check->app->store;
    struct hd_thread_rec thread;
    int err = hd_thread_read(store, check_principal(check), hd_slice_cstr(check->thread_id),
                             &check->arena, &thread, &check->fault);

    if (!err)
        err = hd_room_read(store, thread.principal, thread.id, &check->arena, &check->room,
                           &check->fault);
    if (!err)
        check->event_seq = thread.event_seq;
    check->err = err ? err : choose_wait(check);
}

/* ---- its run (store thread) ------------------------------------------- */

static const struct hd_room_agent *find_waiting_agent(const struct waiting_check *check,
                                                      const struct hd_room_agent *agents,
                                                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(agents[i].assistant_id, check->wait.assistant_id))
            return &agents[i];
    }
    return NULL;
}

static int is_room_shared(struct waiting_check *check, bool *out)
{
    const struct hd_room_rec *room = &check->room;

    return hd_participants_share(check->app->store, room->principal, room->thread_id,
                                 check->chain.asker, out, &check->fault);
}

static int make_waiting_run(struct waiting_check *check, const struct hd_thread_rec *thread,
                            const struct hd_room_agent *agent)
{
    struct hd_room_request_options options = {.app = check->app,
                                              .arena = &check->arena,
                                              .thread = thread,
                                              .room = &check->room,
                                              .trigger = {&check->message, &check->details.content},
                                              .assistant_id = agent->assistant_id,
                                              .actor = check->chain.asker};
    int err = is_room_shared(check, &options.is_shared);

    if (!hd_slice_eq(agent->actor, options.actor))
        options.lender = agent->actor;
    if (!err)
        err = hd_room_request_make(&options, &check->run, &check->fault);
    if (err)
        return err == HD_ENOTFOUND || err == HD_EINVAL ? 0 : err;
    check->run->rec.chain = check->chain.id;
    check->run->rec.depth = check->chain.depth;
    check->admission = &check->run->admission;
    return 0;
}

/* *has_message is false when the message was deleted. */
static int read_waiting_message(struct waiting_check *check, bool *has_message)
{
    const struct hd_room_rec *room = &check->room;
    const struct hd_room_item item = {&check->message, &check->details.content};
    int err =
        hd_room_message_read(check->app->store, room->principal, room->thread_id,
                             check->wait.message_id, &check->arena, &check->message, &check->fault);

    *has_message = false;
    if (!err)
        err = hd_room_details_read(check->app->store, &check->message, 1, &check->arena,
                                   &check->details, &check->fault);
    *has_message = !err && hd_room_input_has(&item);
    return err == HD_ENOTFOUND ? 0 : err;
}

/* HD_EBUSY: another check has admitted it, or the agent asks again. */
static int confirm_wait(struct waiting_check *check)
{
    struct hd_room_wait *waits;
    size_t count, i = 0;
    bool is_asking = false;
    int err = hd_room_waits_read(&check->room, &check->arena, &waits, &count, &check->fault);

    while (!err && i < count &&
           !(hd_slice_eq(waits[i].message_id, check->wait.message_id) &&
             hd_slice_eq(waits[i].assistant_id, check->wait.assistant_id)))
        i++;
    if (!err && i < count)
        err = hd_room_is_asking(check->app->store, check->room.principal, check->room.thread_id,
                                check->wait.assistant_id, &is_asking, &check->fault);
    return !err && (i == count || is_asking) ? HD_EBUSY : err;
}

static int prepare_waiting(void *ctx, struct hd_admission_group *group,
                           const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    struct waiting_check *check = ctx;
    struct hd_room_agent *agents = NULL;
    const struct hd_room_agent *agent;
    bool has_message = false;
    size_t count = 0;
    int err;

    hd_room_request_fini(check->run);
    check->run = NULL;
    check->event_seq = thread->event_seq;
    check->needs_numbers = !hd_event_batch_fits(check->events, thread);
    if (check->needs_numbers)
        return HD_EBUSY;
    err = hd_room_read(check->app->store, thread->principal, thread->id, &check->arena,
                       &check->room, fault);
    if (!err)
        err = confirm_wait(check);
    if (!err)
        err = read_waiting_message(check, &has_message);
    if (!err)
        err = hd_room_agents_read(&check->room, &check->arena, &agents, &count, fault);
    agent = err ? NULL : find_waiting_agent(check, agents, count);
    if (!err && has_message && check->has_asker && agent)
        err = make_waiting_run(check, thread, agent);
    if (!err)
        err = hd_room_wait_remove(&check->room, &check->wait, &check->arena);
    group->runs = &check->admission;
    group->count = !err && check->run ? 1 : 0;
    return err;
}

/* ---- the rows (store thread) ------------------------------------------ */

static int add_waiting_events(struct waiting_check *check)
{
    const struct hd_room_view_run view = hd_room_view_run_of(
        &check->run->rec, hd_slice_cstr(hd_run_state_name(check->run->admission.run.status)));
    size_t count = check->details.run_count;
    struct hd_room_view_run *views = hd_arena_calloc(&check->arena, count + 1, sizeof(*views));
    struct hd_buf data;
    int err = HD_ENOMEM;

    hd_buf_init(&data, MAX_EVENT);
    for (size_t i = 0; views && i < count; i++)
        views[i] = check->details.runs[i];
    if (views) {
        views[count] = view;
        err = hd_room_view_message_event(&data, &check->message, &check->details.content, views,
                                         count + 1);
    }
    if (!err)
        err = hd_event_batch_add(check->events, hd_slice(NULL, 0), HD_MODE_ROOM,
                                 HD_S("room/message"), hd_buf_slice(&data));
    hd_buf_reset(&data);
    if (!err)
        err = hd_room_view_run_event(&data, &view);
    if (!err)
        err = hd_event_batch_add(check->events, hd_slice(NULL, 0), HD_MODE_ROOM, HD_S("room/run"),
                                 hd_buf_slice(&data));
    hd_buf_fini(&data);
    return err;
}

static int extend_waiting(void *ctx, struct hd_batch_builder *batch, struct hd_thread_rec *thread,
                          struct heddle_error *fault)
{
    struct waiting_check *check = ctx;
    int err = hd_room_put(batch, &check->room);

    (void)fault;
    hd_event_batch_reset(check->events);
    if (!err && check->run)
        err = hd_room_request_put(batch, check->run, &check->arena);
    if (!err && check->run)
        err = add_waiting_events(check);
    return err ? err : hd_event_batch_put(check->events, batch, thread);
}

/* The asker is the actor, which the group has before it is prepared. */
static int find_asker(struct waiting_check *check)
{
    bool has_message;
    int err;

    check->message = (struct hd_room_message_rec){.seq = 0};
    check->chain = (struct hd_room_chain){.depth = 0};
    check->has_asker = false;
    err = read_waiting_message(check, &has_message);
    if (err || !has_message)
        return err;
    err =
        hd_room_chain_of(check->app, &check->message, &check->arena, &check->chain, &check->fault);
    if (!err)
        err = hd_participants_include(check->app->store, check->room.principal,
                                      check->room.thread_id, check->chain.asker, HD_ROLE_EDITOR,
                                      &check->has_asker, &check->fault);
    return err == HD_ENOTFOUND ? 0 : err;
}

static void admit_wait(void *arg)
{
    struct waiting_check *check = arg;

    check->err = find_asker(check);
    check->group = (struct hd_admission_group){.app = check->app,
                                               .arena = &check->arena,
                                               .principal = check_principal(check),
                                               .actor = check->chain.asker,
                                               .subject = check->chain.subject,
                                               .thread_id = hd_slice_cstr(check->thread_id),
                                               .prepare = prepare_waiting,
                                               .extend = extend_waiting,
                                               .ctx = check};
    if (!check->err)
        check->err = hd_admit_group(&check->group, &check->fault);
}

/* ---- steps (loop) ----------------------------------------------------- */

static void begin_step(struct waiting_check *check);

/* After several reasons for a pause the shortest one counts. */
static void pause_check(struct waiting_check *check, int pause_s)
{
    if (check->pause_s == 0 || pause_s < check->pause_s)
        check->pause_s = pause_s;
}

static void end_check(struct waiting_check *check)
{
    if (check->pause_s > 0 && !check->app->drained)
        hd_room_reminders_add(check->app->reminders, check_principal(check),
                              hd_slice_cstr(check->thread_id), check->pause_s);
    free_check(check);
}

static void end_check_with(struct waiting_check *check, int pause_s)
{
    pause_check(check, pause_s);
    end_check(check);
}

static void queue_waiting_run(struct waiting_check *check)
{
    const struct hd_admission *admission = &check->run->admission;
    int err = hd_queue_add(check->app->queue, &admission->run, admission->event_seq, false);

    if (err)
        hd_log(HD_LOG_ERROR, "run", "run %.*s waits for a restart: %s",
               (int)admission->run.run_id.len, admission->run.run_id.ptr, hd_error_text(err));
}

static int copy_wait(struct hd_arena *arena, const struct hd_room_wait *wait,
                     struct hd_room_wait *out)
{
    int err = hd_arena_copy(arena, wait->message_id, &out->message_id);

    return err ? err : hd_arena_copy(arena, wait->assistant_id, &out->assistant_id);
}

/* Goes on to the next wait; this one is tried again when the room is checked again. */
static void pass_wait(struct waiting_check *check)
{
    const char *text = check->fault.code ? check->fault.text : hd_error_text(check->err);

    if (check->passed_count == 0)
        hd_log(HD_LOG_WARN, "run", "a message of a room still waits: %s", text);
    pause_check(check, check->group.retry_s > 0 ? check->group.retry_s : LASTING_S);
    if (check->passed_count == HD_ROOM_MAX_WAITS ||
        copy_wait(&check->names, &check->wait, &check->passed[check->passed_count])) {
        end_check(check);
        return;
    }
    check->passed_count++;
    begin_step(check);
}

static void on_wait_admitted(void *arg)
{
    struct waiting_check *check = arg;
    bool has_holder = check->group.holder.len > 0;
    bool is_stored = !check->err && !check->group.refusal && !has_holder;

    hd_event_batch_end(check->events, is_stored);
    check->events = NULL;
    if (is_stored && check->run)
        queue_waiting_run(check);
    hd_room_request_fini(check->run);
    check->run = NULL;
    if (is_stored || check->needs_numbers)
        begin_step(check);
    else if (has_holder)
        end_check_with(check, HOLDER_S);
    else if (hd_error_is_transient(check->err))
        end_check_with(check, RETRY_S);
    else
        pass_wait(check);
}

static void begin_admission(struct waiting_check *check)
{
    check->events =
        hd_event_batch_begin(check->app->event_logs, check_principal(check),
                             hd_slice_cstr(check->thread_id), check->event_seq, MAX_EVENTS);
    if (!check->events) {
        end_check_with(check, RETRY_S);
        return;
    }
    if (hd_defer_run(check->app->defer, admit_wait, on_wait_admitted, check)) {
        hd_event_batch_end(check->events, false);
        end_check_with(check, RETRY_S);
    }
}

static void on_wait_found(void *arg)
{
    struct waiting_check *check = arg;

    if (check->err == HD_ENOTFOUND) /* the thread was deleted */
        free_check(check);
    else if (check->err)
        end_check_with(check, hd_error_is_transient(check->err) ? RETRY_S : LASTING_S);
    else if (check->wait.message_id.len == 0)
        end_check(check);
    else
        begin_admission(check);
}

static void begin_step(struct waiting_check *check)
{
    hd_arena_reset(&check->arena);
    check->fault = (struct heddle_error){0};
    check->wait = (struct hd_room_wait){.message_id = {NULL, 0}};
    check->needs_numbers = false;
    if (check->app->drained) /* the server stops: it begins no runs */
        free_check(check);
    else if (check->steps++ == MAX_STEPS ||
             hd_defer_run(check->app->defer, find_wait, on_wait_found, check))
        end_check_with(check, RETRY_S);
}

void hd_room_waiting_check(struct hd_app *app, struct hd_slice principal, struct hd_slice thread_id)
{
    struct waiting_check *check = hd_calloc(1, sizeof(*check));

    if (!check)
        return;
    hd_arena_init(&check->arena, MAX_MEMORY);
    hd_arena_init(&check->names, MAX_MEMORY);
    check->app = app;
    if (principal.len >= sizeof(check->principal) || thread_id.len >= sizeof(check->thread_id)) {
        free_check(check);
        return;
    }
    check->principal_len = principal.len;
    if (principal.len > 0)
        memcpy(check->principal, principal.ptr, principal.len);
    memcpy(check->thread_id, thread_id.ptr, thread_id.len);
    begin_step(check);
}
