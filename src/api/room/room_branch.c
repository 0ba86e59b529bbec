/*
 * POST /threads/{thread_id}/room/branch: continues a room in a new thread of the caller.
 *
 * The record of the new thread is stored first, because it reserves the id. What fails later
 * deletes it again.
 */
#include <heddle.h>
#include <string.h>

#include "api/api.h"
#include "api/owner.h"
#include "api/request/authorize.h"
#include "api/room/room_copies.h"
#include "api/room/room_find.h"
#include "api/state/checkpoint_target.h"
#include "api/thread_view.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "records/thread_heads.h"
#include "run/run_commit.h"
#include "search/thread_texts.h"
#include "store/prune.h"
#include "store/rows.h"

#define MAX_METADATA ((size_t)16 << 20)

struct room_branching {
    struct hd_thread_rec source;
    struct hd_room_message_rec message; /* the last of the branch */
    struct hd_thread_rec target;
    struct hd_room_copy room;
    struct hd_lines lines; /* of the target */
};

/* ---- the request ------------------------------------------------------ */

static int choose_branch_id(struct hd_call *call, struct hd_slice *out)
{
    struct hd_slice given = {NULL, 0};
    char *made;
    int err = hd_body_string(call, "thread_id", &given);

    if (err || given.len > 0)
        return err ? err : hd_call_uuid(call, "thread_id", given, out);
    made = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    if (!made)
        return HD_ENOMEM;
    hd_uuid_v7(made);
    *out = hd_slice(made, HD_UUID_LEN);
    return 0;
}

/* Adds `branched_from` to what a project's handler has set. */
static int write_origin(struct hd_call *call, const struct room_branching *b, struct hd_slice *out)
{
    struct hd_buf buf;
    struct hd_jw jw;
    struct hd_json json = {NULL};
    int err = hd_call_is_stamped(call) ? hd_call_text(call, hd_body_get(call, "metadata"), out) : 0;

    hd_buf_init(&buf, MAX_METADATA);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    hd_jw_put_object(&jw, "branched_from");
    hd_jw_put_string(&jw, "thread_id", b->source.id);
    hd_jw_put_string(&jw, "message_id", b->message.id);
    hd_jw_object_end(&jw);
    hd_jw_object_end(&jw);
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&buf), &call->fault);
    if (!err)
        err = hd_call_merge(call, hd_json_root(&json), out);
    hd_json_fini(&json);
    hd_buf_fini(&buf);
    return err;
}

static int read_branch(struct hd_call *call, struct room_branching *b)
{
    struct hd_thread_rec *target = &b->target;
    int64_t now = hd_clock_now_us();
    struct hd_slice id, message_id = {NULL, 0};
    int err = hd_call_thread(call, &b->source);

    if (!err)
        err = hd_body_string(call, "message_id", &message_id);
    if (!err && message_id.len == 0)
        err = hd_error_set(&call->fault, HD_EINVAL, "message_id: expected the id of a message");
    if (!err)
        err = choose_branch_id(call, &id);
    if (!err)
        err = hd_room_find_message(call, &b->source, message_id, &b->message);
    if (err)
        return err;
    hd_thread_init(target, call->actor, id);
    target->created_at = target->updated_at = target->state_updated_at = now;
    err = write_origin(call, b, &target->metadata);
    if (!err)
        err = hd_owner_set(call, &target->metadata);
    if (!err)
        err = hd_ttl_standard(call->app->config, call->arena, &target->ttl);
    hd_thread_touch(target, now);
    return err;
}

/* ---- the new thread --------------------------------------------------- */

static int apply_branch(struct hd_call *call, const struct room_branching *b, int err,
                        struct hd_batch_builder *batch)
{
    const struct hd_batch view = hd_batch_view(batch);
    struct hd_slice lane = {NULL, 0};

    if (!err)
        err = hd_thread_lane(call->arena, b->target.principal, b->target.id, &lane);
    if (!err)
        err = hd_rows_apply(call->app->store, lane, &view, NULL, &call->fault);
    hd_batch_fini(batch);
    return err;
}

/* HD_ECONFLICT: the thread exists. */
static int reserve_thread(struct hd_call *call, struct room_branching *b)
{
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    return apply_branch(call, b, hd_thread_add(&batch, &b->target), &batch);
}

/* Deletes the reservation only: checkpoints under this id are not ours. */
static int release_thread(struct hd_call *call, const struct room_branching *b)
{
    const struct hd_cell key[] = {hd_cell_bytes(b->target.principal), hd_cell_bytes(b->target.id)};
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_batch_expect(&batch, HD_THREAD_INFO, key, HD_THREAD_INFO_REV, b->target.rev);
    if (!err)
        err = hd_batch_delete(&batch, HD_THREAD_INFO, key, HD_COUNT(key));
    return apply_branch(call, b, err, &batch);
}

/* ---- checkpoints ------------------------------------------------------ */

/* Checkpoints may have been pruned: such a line begins anew, and is given the chat again. */
static int drop_pruned_heads(struct hd_call *call, struct room_branching *b)
{
    struct hd_room_copy *room = &b->room;
    size_t kept = 0;
    int err = 0;

    for (size_t i = 0; !err && i < room->head_count; i++) {
        const struct hd_room_message_rec *answer = room->heads[i];

        err = hd_thread_heads_check(call->app->store, b->source.principal, b->source.id, answer->ns,
                                    answer->checkpoint_id, &call->fault);
        if (!err)
            room->heads[kept++] = answer;
        else if (err == HD_ENOTFOUND)
            err =
                hd_room_mark_set(&room->room, answer->ns, (struct hd_room_mark){0, 0}, call->arena);
    }
    room->head_count = kept;
    return err;
}

/* Each line up to its head then, and nothing else. */
static int cut_checkpoints(struct hd_call *call, const struct room_branching *b)
{
    const struct hd_room_copy *room = &b->room;
    struct hd_key *heads = hd_arena_calloc(call->arena, room->head_count + 1, sizeof(*heads));
    const struct hd_prune_options keep = {
        .keeps_paths = true, .heads = heads, .head_count = room->head_count};
    struct hd_slice lane;
    int err = heads ? 0 : HD_ENOMEM;

    if (!err)
        err = hd_thread_lane(call->arena, b->target.principal, b->target.id, &lane);
    for (size_t i = 0; !err && i < room->head_count; i++)
        heads[i] = (struct hd_key){
            .thread = lane, .ns = room->heads[i]->ns, .id = room->heads[i]->checkpoint_id};
    return err ? err : hd_prune_thread(hd_store_of(call->app->store), lane, &keep, &call->fault);
}

static int copy_checkpoints(struct hd_call *call, const struct room_branching *b)
{
    const struct heddle_thread from = {hd_to_public(b->source.principal),
                                       hd_to_public(b->source.id)};
    const struct heddle_thread to = {hd_to_public(b->target.principal), hd_to_public(b->target.id)};
    struct heddle_error error = {0};
    int err;

    if (b->room.head_count == 0)
        return 0;
    err = heddle_copy_thread(call->app->store, &from, &to, &error);
    return err ? hd_error_set(&call->fault, err, "%s", error.text) : cut_checkpoints(call, b);
}

/* ---- lines ------------------------------------------------------------ */

static int settle_line(struct hd_call *call, struct room_branching *b,
                       const struct hd_room_message_rec *answer, const struct hd_line_rec *source)
{
    struct hd_checkpoint_target target = {.thread = b->target};
    struct hd_standing standing = {0};
    struct hd_line_rec *line;
    int err = hd_checkpoint_target_of_root(call, &target, answer->ns);

    if (!err)
        err = hd_checkpoint_target_standing(call, &target, answer->checkpoint_id, &standing);
    if (!err)
        err = hd_checkpoint_target_settle(call, &target, answer->checkpoint_id, &standing,
                                          &b->target, &b->lines);
    line = err ? NULL : hd_lines_change(&b->lines, &b->target, answer->ns, call->arena);
    if (!err && !line)
        err = HD_ENOMEM;
    if (err)
        return err;
    line->assistant_id = answer->sender;
    if (source)
        line->graph_id = source->graph_id;
    return 0;
}

/* The head of the thread is that of the newest answer. */
static int settle_lines(struct hd_call *call, struct room_branching *b)
{
    const struct hd_room_copy *room = &b->room;
    struct hd_lines sources;
    int err = hd_lines_read(call->app->store, &b->source, call->arena, &sources, &call->fault);

    for (size_t i = 0; !err && i < room->head_count; i++) {
        const struct hd_room_message_rec *answer = room->heads[i];
        const struct hd_line_rec *source = hd_lines_find(&sources, answer->ns);

        if (i == 0)
            b->target.head = (struct hd_head){.ns = answer->ns,
                                              .checkpoint_id = answer->checkpoint_id,
                                              .graph_id = source ? source->graph_id : HD_S(""),
                                              .assistant_id = answer->sender};
        err = settle_line(call, b, answer, source);
    }
    return err ? err : hd_lines_settle(&b->lines, &b->target, false, call->arena);
}

/* ---- all of it -------------------------------------------------------- */

static int store_branch(struct hd_call *call, struct room_branching *b)
{
    struct hd_batch_builder batch;
    int err = settle_lines(call, b);

    hd_batch_init(&batch);
    b->target.is_room = true;
    if (!err)
        err = hd_thread_put(&batch, &b->target);
    if (!err)
        err = hd_lines_put(&batch, &b->lines);
    if (!err)
        err = hd_room_copies_write(call, &b->room, &b->target, &batch);
    return apply_branch(call, b, err, &batch);
}

/* HD_ECONFLICT: the thread exists. An incomplete branch is deleted. */
static int fill_branch(struct hd_call *call, struct room_branching *b)
{
    struct heddle_error ignored = {0};
    int err = reserve_thread(call, b), undone;

    if (err)
        return err;
    err = copy_checkpoints(call, b);
    if (err == HD_EEXISTS) {
        err = release_thread(call, b);
        return err ? err : HD_ECONFLICT;
    }
    call->principal = call->actor;
    if (!err)
        err = store_branch(call, b);
    if (!err) {
        hd_thread_indexer_note(call->app->texts, b->target.principal, b->target.id);
        return 0;
    }
    undone =
        hd_run_commit_delete_thread(call->app->store, b->target.principal, b->target.id, &ignored);
    return undone && !call->fault.code ? hd_error_set(&call->fault, undone, "%s", ignored.text)
                                       : err;
}

static struct hd_step branch_room(struct hd_call *call)
{
    struct room_branching b = {.lines = {NULL, 0, 0}};
    int err = read_branch(call, &b);

    if (!err)
        err = hd_room_copies_read(call, &b.source, b.message.seq, &b.room);
    if (!err)
        err = drop_pruned_heads(call, &b);
    if (!err)
        err = fill_branch(call, &b);
    hd_room_copy_fini(&b.room);
    if (err == HD_ECONFLICT) {
        call->fault = (struct heddle_error){0};
        return hd_call_refuse(call, 409, "Thread already exists");
    }
    if (err)
        return hd_step_fail(err);
    call->status = 201;
    return hd_step_done(hd_thread_view(call, &b.target, hd_thread_view_all()));
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/branch",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .also_on = HD_ON_THREADS_CREATE,
     .grows = true,
     .work = branch_room,
     .tag = "Rooms",
     .summary = "Continue the chat from a message in a new thread of the caller",
     .body = "RoomBranch",
     .answer = "Thread",
     .status = 201},
};

const struct hd_routes hd_routes_room_branch = {routes, HD_COUNT(routes)};
