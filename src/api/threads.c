/* Threads: create, read, change, copy. */
#include <heddle.h>

#include "api/request/access.h"
#include "api/api.h"
#include "api/request/authorize.h"
#include "api/owner.h"
#include "api/room/room_copies.h"
#include "api/state/checkpoint_target.h"
#include "api/state/supersteps.h"
#include "api/thread_view.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "run/run_commit.h"
#include "search/thread_texts.h"
#include "store/bytes.h"
#include "store/rows.h"

/* ---- time to live ----------------------------------------------------- */

/* As it is stored; empty: no expiry, or no value given. */
static int read_ttl(struct hd_call *call, bool *is_given, struct hd_slice *out)
{
    hd_json_val val = hd_body_get(call, "ttl");
    struct hd_ttl ttl;
    int err;

    *out = hd_slice(NULL, 0);
    *is_given = val != NULL;
    if (!val)
        return 0;
    err = hd_ttl_parse(call->app->config, val, &ttl, &call->fault);
    return err ? err : hd_ttl_write(&ttl, call->arena, out);
}

/* ---- create ----------------------------------------------------------- */

/* The body of a request for a new thread. */
struct thread_creation {
    struct hd_thread_rec thread;
    bool keeps; /* an existing thread is returned */
    struct hd_supersteps supersteps;
    struct hd_checkpoint_target target; /* of its first states */
    struct hd_supersteps_remote remote; /* for a graph whose code runs in workers */
};

static int choose_id(struct hd_call *call, struct hd_slice *id)
{
    struct hd_slice given = {NULL, 0};
    char *made;
    int err = hd_body_string(call, "thread_id", &given);

    if (err || given.len > 0)
        return err ? err : hd_call_uuid(call, "thread_id", given, id);
    made = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    if (!made)
        return HD_ENOMEM;
    hd_uuid_v7(made);
    *id = hd_slice(made, HD_UUID_LEN);
    return 0;
}

static int read_creation(struct hd_call *call, struct thread_creation *creation)
{
    static const char *const words[] = {"raise", "do_nothing", NULL};
    struct hd_thread_rec *thread = &creation->thread;
    int64_t now = hd_clock_now_us();
    struct hd_slice id;
    hd_json_val metadata;
    bool has_ttl = false;
    int word = 0;
    int err = choose_id(call, &id);

    if (err)
        return err;
    hd_thread_init(thread, call->principal, id);
    thread->created_at = thread->updated_at = thread->state_updated_at = now;
    err = hd_body_members(call, "metadata", &metadata);
    if (!err)
        err = hd_call_refuse_secrets(call, "metadata", metadata, false);
    if (!err)
        err = hd_call_text(call, metadata, &thread->metadata);
    if (!err)
        err = hd_owner_set(call, &thread->metadata);
    if (!err)
        err = hd_body_word(call, "if_exists", words, &word);
    if (!err)
        err = read_ttl(call, &has_ttl, &thread->ttl);
    if (!err && !has_ttl)
        err = hd_ttl_standard(call->app->config, call->arena, &thread->ttl);
    if (!err)
        err = hd_supersteps_read(call, &creation->supersteps);
    hd_thread_touch(thread, now);
    creation->keeps = word == 1;
    return err;
}

/* `room`: of the thread; NULL: it has none. */
static int add_thread(struct hd_call *call, struct hd_thread_rec *thread,
                      const struct hd_lines *lines, struct hd_room_copy *room)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err = hd_thread_lane(call->arena, thread->principal, thread->id, &lane);

    hd_batch_init(&batch);
    if (!err)
        err = hd_thread_add(&batch, thread);
    if (!err)
        err = hd_lines_put(&batch, lines);
    if (!err && room)
        err = hd_room_copies_write(call, room, thread, &batch);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
    if (!err)
        hd_thread_indexer_note(call->app->texts, thread->principal, thread->id);
    hd_batch_fini(&batch);
    return err;
}

/* A thread with this id exists. *is_free: it does not, or no longer, and can be created. */
static struct hd_step handle_existing(struct hd_call *call, struct thread_creation *creation,
                                      bool *is_free)
{
    struct hd_thread_rec thread;
    bool is_seen;
    int err = hd_thread_read(call->app->store, call->principal, creation->thread.id, call->arena,
                             &thread, &call->fault);

    *is_free = err == HD_ENOTFOUND;
    if (err)
        return *is_free ? HD_DONE : hd_step_fail(err);
    if (hd_thread_is_over(&thread, creation->thread.created_at)) {
        *is_free = true;
        return hd_step_done(hd_run_commit_delete_thread(call->app->store, call->principal,
                                                        thread.id, &call->fault));
    }
    err = hd_call_sees(call, HD_OF_THREADS, thread.metadata, &is_seen);
    if (err)
        return hd_step_fail(err);
    if (!creation->keeps || !is_seen)
        return hd_call_refuse(call, 409, "Thread already exists");
    return hd_step_done(hd_thread_view(call, &thread, hd_thread_view_all()));
}

/* A failed creation leaves no thread behind. */
static int undo(struct hd_call *call, const struct thread_creation *creation, int err)
{
    struct heddle_error fault = {0};

    if (hd_run_commit_delete_thread(call->app->store, call->principal, creation->thread.id, &fault))
        hd_error_set(&call->fault, err, "%s", fault.text);
    return err;
}

/* Applies the first states; for a graph in workers it only prepares the query. */
static int apply_supersteps(struct hd_call *call, struct thread_creation *creation)
{
    struct hd_checkpoint_target *target = &creation->target;
    struct hd_val *config = NULL;
    int err;

    *target = (struct hd_checkpoint_target){.thread = creation->thread};
    err = hd_checkpoint_target_of_thread(call, target);
    if (!err && !target->graph)
        err = hd_error_set(&call->fault, HD_EINVAL,
                           "supersteps: need metadata.graph_id, the name of a graph");
    if (!err && target->graph->is_remote)
        err = hd_supersteps_prepare(call, target, false, &creation->remote);
    else if (!err)
        err = hd_supersteps_apply(call, target, &creation->supersteps, &config);
    hd_val_unref(config);
    creation->thread = target->thread;
    return err ? undo(call, creation, err) : 0;
}

/* *exists: a thread with this id is in the way. */
static struct hd_step create_new(struct hd_call *call, struct thread_creation *creation,
                                 bool *exists)
{
    const struct hd_lines lines = {NULL, 0, 0};
    int err = add_thread(call, &creation->thread, &lines, NULL);

    *exists = err == HD_ECONFLICT;
    if (*exists)
        call->fault = (struct heddle_error){0};
    if (err)
        return *exists ? HD_DONE : hd_step_fail(err);
    if (creation->supersteps.count > 0)
        err = apply_supersteps(call, creation);
    if (!err && creation->remote.head.len > 0)
        return HD_NEXT;
    return hd_step_done(err ? err : hd_thread_view(call, &creation->thread, hd_thread_view_all()));
}

static struct hd_step create_thread(struct hd_call *call)
{
    struct thread_creation *creation = hd_arena_calloc(call->arena, 1, sizeof(*creation));
    struct hd_step step = hd_step_done(creation ? read_creation(call, creation) : HD_ENOMEM);
    bool exists, is_free = true;

    call->state = creation;
    /* Two attempts: an expired thread in the way was deleted by the first. */
    for (int i = 0; !step.err && is_free && i < 2; i++) {
        step = create_new(call, creation, &exists);
        if (!exists)
            break;
        step = handle_existing(call, creation, &is_free);
    }
    if (creation)
        hd_supersteps_fini(&creation->supersteps);
    return step;
}

/* ---- first states from a worker --------------------------------------- */

static struct hd_step thread_settle(struct hd_call *call)
{
    struct thread_creation *creation = call->state;
    struct hd_val *config = NULL;
    int err = hd_supersteps_settle(call, &creation->remote, &config);

    hd_val_unref(config);
    if (err)
        return hd_step_fail(undo(call, creation, err));
    return hd_step_done(hd_thread_view(call, &creation->target.thread, hd_thread_view_all()));
}

static struct hd_step thread_undo(struct hd_call *call)
{
    return hd_step_fail(undo(call, call->state, call->fault.code ? call->fault.code : HD_EIO));
}

static struct hd_step on_supersteps_error(struct hd_call *call, int err)
{
    if (!call->fault.code)
        hd_error_set(&call->fault, err, "%s", hd_error_text(err));
    return hd_call_visit(call, thread_undo, NULL);
}

static struct hd_step on_supersteps_stored(struct hd_call *call,
                                           const struct hd_rt_message *message)
{
    struct thread_creation *creation = call->state;
    int err = hd_supersteps_read_reply(call, message, &creation->remote);

    return err ? on_supersteps_error(call, err) : hd_call_visit(call, thread_settle, NULL);
}

static struct hd_step create_then(struct hd_call *call)
{
    struct thread_creation *creation = call->state;

    return hd_supersteps_query(call, &creation->remote, on_supersteps_stored, on_supersteps_error);
}

/* ---- get and change --------------------------------------------------- */

static struct hd_step get_thread(struct hd_call *call)
{
    unsigned members = hd_thread_view_all();
    struct hd_thread_rec thread;
    struct hd_slice *names;
    size_t count;
    int err =
        hd_params_list(&call->query, HD_S("include"), call->arena, &names, &count, &call->fault);

    if (!err)
        err = hd_call_thread(call, &thread);
    for (size_t i = 0; !err && i < count; i++)
        members |= hd_thread_view_member(names[i]);
    return hd_step_done(err ? err : hd_thread_view(call, &thread, members));
}

struct patch {
    hd_json_val metadata;
    bool has_ttl;
    struct hd_slice ttl;
};

static int apply_patch(struct hd_call *call, struct hd_thread_rec *thread, void *ctx)
{
    const struct patch *patch = ctx;
    int err = patch->metadata ? hd_owner_merge(call, patch->metadata, &thread->metadata) : 0;

    if (patch->has_ttl) {
        thread->ttl = patch->ttl;
        thread->expires_at = 0;
    }
    thread->updated_at = hd_clock_now_us();
    hd_thread_touch(thread, thread->updated_at);
    return err;
}

static bool wants_nothing_back(struct hd_call *call)
{
    struct hd_slice prefer = hd_request_value(hd_exchange_request(call->exchange), HD_S("prefer"));

    return hd_slice_eq_nocase(prefer, HD_S("return=minimal"));
}

static struct hd_step patch_thread(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct patch patch;
    int err = hd_body_members(call, "metadata", &patch.metadata);

    if (!err)
        err = hd_call_refuse_secrets(call, "metadata", patch.metadata, false);
    if (!err)
        err = read_ttl(call, &patch.has_ttl, &patch.ttl);
    if (!err && patch.has_ttl && call->role < HD_ROLE_OWNER)
        return hd_access_refuse(call, HD_ROLE_OWNER);
    if (!err)
        err = hd_call_thread(call, &thread);
    if (!err)
        err = hd_call_thread_change(call, &thread, apply_patch, &patch);
    if (err)
        return hd_step_fail(err);
    if (wants_nothing_back(call)) {
        call->status = 204;
        return HD_DONE;
    }
    return hd_step_done(hd_thread_view(call, &thread, hd_thread_view_all()));
}

/* ---- copy ------------------------------------------------------------- */

/*
 * Reads the interrupts of a line from the copied checkpoints. Remaining tasks without interrupts
 * belong to a run that the copy does not have; the line waits only if it did before that run.
 */
static int refresh_line(struct hd_call *call, const struct hd_thread_rec *thread,
                        struct hd_line_rec *line)
{
    bool was_interrupted = line->status == HD_THREAD_INTERRUPTED;
    struct hd_checkpoint_target target = {.thread = *thread};
    struct hd_standing standing = {0};
    int err = hd_checkpoint_target_of_root(call, &target, line->ns);

    if (!err)
        err = hd_checkpoint_target_standing(call, &target, hd_slice(NULL, 0), &standing);
    line->interrupts = standing.interrupts;
    line->status = standing.has_next && (was_interrupted || standing.interrupts.len > strlen("{}"))
                       ? HD_THREAD_INTERRUPTED
                       : HD_THREAD_IDLE;
    return err;
}

/* Adds the lines of the runs in flight: the first run of an agent has no line before its end. */
static int add_busy_lines(struct hd_call *call, const struct hd_thread_rec *source,
                          struct hd_lines *lines)
{
    struct hd_run_rec *runs = NULL;
    size_t count = 0;
    int err = hd_runs_active(call->app->store, source->principal, source->id, call->arena, &runs,
                             &count, &call->fault);

    for (size_t i = 0; !err && i < count; i++) {
        struct hd_line_rec *line;
        struct hd_slice ns;

        err = hd_run_line(&runs[i], call->arena, &ns, &call->fault);
        line = err ? NULL : hd_lines_change(lines, source, ns, call->arena);
        if (!err && !line)
            err = HD_ENOMEM;
        if (!err && line->assistant_id.len == 0)
            line->assistant_id = runs[i].assistant_id;
    }
    return err;
}

/*
 * The copy has the lines of the source, and no runs. The lines of a busy thread are read from the
 * copied checkpoints, since their records are those from before its runs.
 */
static int settle_copy(struct hd_call *call, const struct hd_thread_rec *source,
                       struct hd_thread_rec *thread, struct hd_lines *lines)
{
    bool was_busy = source->status == HD_THREAD_BUSY;
    int err = hd_lines_read(call->app->store, source, call->arena, lines, &call->fault);

    if (!err && was_busy)
        err = add_busy_lines(call, source, lines);
    for (size_t i = 0; !err && i < lines->count; i++) {
        struct hd_line_rec *line = &lines->list[i];

        line->principal = thread->principal;
        line->thread_id = thread->id;
        line->run_id = line->error = hd_slice(NULL, 0);
        line->is_changed = true;
        if (line->status == HD_THREAD_ERROR)
            line->status = HD_THREAD_IDLE;
        if (was_busy)
            err = refresh_line(call, thread, line);
    }
    return err ? err : hd_lines_settle(lines, thread, false, call->arena);
}

/* The same thread under a new id. The copy belongs to the caller, even when the original is shared
 * with it. */
static int make_copy(struct hd_call *call, struct hd_thread_rec *thread)
{
    char *id = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    int64_t now = hd_clock_now_us();

    if (!id)
        return HD_ENOMEM;
    hd_uuid_v7(id);
    thread->principal = call->actor;
    thread->id = hd_slice(id, HD_UUID_LEN);
    thread->has_before = false;
    thread->created_at = thread->updated_at = now;
    thread->expires_at = 0;
    hd_thread_touch(thread, now);
    thread->event_seq = 0;
    thread->error = hd_slice(NULL, 0);
    if (hd_call_is_stamped(call)) { /* a handler has set the metadata of the copy */
        int err = hd_call_text(call, hd_body_get(call, "metadata"), &thread->metadata);

        if (err)
            return err;
    }
    return hd_owner_set(call, &thread->metadata);
}

/* Checkpoints, lines and room. An incomplete copy is deleted. */
static int copy_rows(struct hd_call *call, const struct hd_thread_rec *source,
                     struct hd_thread_rec *target, struct hd_room_copy *room)
{
    const struct heddle_thread from = {hd_to_public(source->principal), hd_to_public(source->id)};
    const struct heddle_thread to = {hd_to_public(target->principal), hd_to_public(target->id)};
    struct heddle_error error = {0}, ignored = {0};
    struct hd_lines lines;
    int err = heddle_copy_thread(call->app->store, &from, &to, &error);

    if (err)
        return hd_error_set(&call->fault, err, "%s", error.text);
    call->principal = call->actor;
    err = settle_copy(call, source, target, &lines);
    if (!err)
        err = add_thread(call, target, &lines, room);
    /* Without a record the rest of a copy that cannot be deleted is not shown to clients. */
    if (err &&
        hd_run_commit_delete_thread(call->app->store, target->principal, target->id, &ignored))
        return err;
    return err;
}

static struct hd_step copy_thread(struct hd_call *call)
{
    struct hd_thread_rec source, target;
    struct hd_room_copy room = {.count = 0};
    int err = hd_call_thread(call, &source);

    if (err == HD_ENOTFOUND)
        return hd_call_refuse(call, 409, "%s", call->fault.text);
    if (err)
        return hd_step_fail(err);
    target = source;
    err = make_copy(call, &target);
    /* Before the checkpoints: the chat has no answer whose checkpoint the copy does not have. */
    if (!err && source.is_room)
        err = hd_room_copies_read(call, &source, 0, &room);
    if (!err)
        err = copy_rows(call, &source, &target, source.is_room ? &room : NULL);
    hd_room_copy_fini(&room);
    return hd_step_done(err ? err : hd_thread_view(call, &target, hd_thread_view_all()));
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_CREATE,
     .grows = true,
     .work = create_thread,
     .then = create_then,
     .tag = "Threads",
     .summary = "Create a thread",
     .body = "?ThreadCreate",
     .answer = "Thread"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_thread,
     .tag = "Threads",
     .summary = "Get a thread",
     .query = "include",
     .answer = "Thread"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}",
     .access = HD_ACCESS_EDITOR,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = patch_thread,
     .tag = "Threads",
     .summary = "Merge metadata into a thread's, set its time to live",
     .body = "ThreadPatch",
     .answer = "Thread"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/state",
     .access = HD_ACCESS_EDITOR,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = patch_thread,
     .tag = "Threads",
     .summary = "Merge metadata into a thread's",
     .body = "ThreadPatch",
     .answer = "Thread"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/copy",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .also_on = HD_ON_THREADS_CREATE,
     .grows = true,
     .work = copy_thread,
     .tag = "Threads",
     .summary = "Copy a thread with all its checkpoints",
     .body = "?Ignored",
     .answer = "Thread"},
};

const struct hd_routes hd_routes_threads = {routes, HD_COUNT(routes)};
