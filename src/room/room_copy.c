#include "room/room_copy.h"

#include <heddle.h>
#include <string.h>

#include "records/record.h"
#include "store/rows.h"

#define MAX_MESSAGES ((size_t)1 << 24)
#define MAX_PAGE ((size_t)256 << 20)
#define PAGE 100 /* messages, with their contents, or runs of one batch */

/* ---- the messages of the source --------------------------------------- */

struct copy_reading {
    struct heddle *store;
    struct hd_room_copy *copy;
    struct hd_arena *arena;
    struct heddle_error *fault;
    size_t cap;
    int64_t last_seq; /* later messages are ignored */
    int64_t up_to;
    int64_t *places; /* of the messages: the seq, or the place of the replaced message */
};

static int grow_messages(struct copy_reading *r)
{
    struct hd_room_copy *copy = r->copy;
    size_t cap = r->cap ? r->cap * 2 : 64;
    struct hd_room_message_rec *messages = hd_arena_calloc(r->arena, cap, sizeof(*messages));
    int64_t *places = hd_arena_calloc(r->arena, cap, sizeof(*places));

    if (!messages || !places)
        return HD_ENOMEM;
    if (copy->count > 0) {
        memcpy(messages, copy->messages, copy->count * sizeof(*messages));
        memcpy(places, r->places, copy->count * sizeof(*places));
    }
    copy->messages = messages;
    r->places = places;
    r->cap = cap;
    return 0;
}

/* Values of the map of ids: the index of a message, never NULL. */
static void *index_value(size_t index)
{
    return (void *)(uintptr_t)(index + 1);
}

/* SIZE_MAX: the copy has no message with this id. */
static size_t index_of_id(const struct hd_room_copy *copy, struct hd_slice id)
{
    return (size_t)(uintptr_t)hd_map_get(&copy->ids, id) - 1;
}

/* A cascade's question has no line. The copy has no cascade that a reply could continue. */
static int close_cascade_question(const struct copy_reading *r, struct hd_room_message_rec *message)
{
    struct hd_room_run_rec run;
    int err;

    if (message->state != HD_ROOM_PENDING || message->ns.len > 0)
        return 0;
    err = hd_room_run_read(r->store, message->principal, message->thread_id, message->run_id,
                           r->arena, &run, r->fault);
    if (!err && run.cascade.len > 0)
        message->state = HD_ROOM_STALE;
    return err == HD_ENOTFOUND ? 0 : err;
}

static int on_source_message(void *arg, const struct hd_room_message_rec *message)
{
    struct copy_reading *r = arg;
    struct hd_room_copy *copy = r->copy;
    size_t at = copy->count, replaced = index_of_id(copy, message->replaces);
    int err = 0;

    if (message->seq > r->last_seq)
        return 1;
    if (copy->count == r->cap)
        err = grow_messages(r);
    if (!err)
        err = hd_room_message_copy(r->arena, message, &copy->messages[at]);
    if (!err)
        err = close_cascade_question(r, &copy->messages[at]);
    if (!err)
        err = hd_map_put(&copy->ids, copy->messages[at].id, index_value(at));
    if (err)
        return err;
    r->places[at] = replaced != SIZE_MAX ? r->places[replaced] : message->seq;
    copy->count++;
    return 0;
}

static bool is_in_branch(const struct copy_reading *r, size_t i)
{
    const struct hd_room_message_rec *message = &r->copy->messages[i];

    return r->places[i] <= r->up_to && message->state != HD_ROOM_DELETED &&
           (message->state != HD_ROOM_STALE || message->replaced_by.len == 0);
}

/* Leaves out what is not in the branch, which ends at the place of its last message. */
static int cut_branch(struct copy_reading *r)
{
    struct hd_room_copy *copy = r->copy;
    size_t kept = 0;
    int err = 0;

    for (size_t i = 0; i < copy->count; i++) {
        if (copy->messages[i].seq == r->up_to) {
            r->up_to = r->places[i];
            break;
        }
    }

    for (size_t i = 0; i < copy->count; i++) {
        if (is_in_branch(r, i)) {
            r->places[kept] = r->places[i];
            copy->messages[kept++] = copy->messages[i];
        } else {
            (void)hd_map_remove(&copy->ids, copy->messages[i].id);
        }
    }
    copy->count = kept;
    for (size_t i = 0; !err && i < kept; i++)
        err = hd_map_put(&copy->ids, copy->messages[i].id, index_value(i));
    return err;
}

/* References to messages that the copy does not have. */
static void forget_missing(struct hd_room_copy *copy)
{
    for (size_t i = 0; i < copy->count; i++) {
        struct hd_slice *ids[] = {&copy->messages[i].reply_to, &copy->messages[i].replaces,
                                  &copy->messages[i].replaced_by};

        for (size_t k = 0; k < HD_COUNT(ids); k++) {
            if (index_of_id(copy, *ids[k]) == SIZE_MAX)
                *ids[k] = hd_slice(NULL, 0);
        }
    }
}

/* ---- heads ------------------------------------------------------------ */

static bool has_checkpoint(const struct hd_room_message_rec *message)
{
    return message->kind == HD_ROOM_AGENT && message->checkpoint_id.len > 0;
}

/* In the order of the chat, where a regenerated answer is at the place of the first one. */
static size_t next_newest(const struct copy_reading *r, const bool *is_seen)
{
    size_t newest = SIZE_MAX;

    for (size_t i = 0; i < r->copy->count; i++) {
        if (!is_seen[i] && has_checkpoint(&r->copy->messages[i]) &&
            (newest == SIZE_MAX || r->places[i] >= r->places[newest]))
            newest = i;
    }
    return newest;
}

/* Marks all answers of a line as seen. */
static void see_line(const struct hd_room_copy *copy, struct hd_slice ns, bool *is_seen)
{
    for (size_t i = 0; i < copy->count; i++)
        is_seen[i] |= hd_slice_eq(copy->messages[i].ns, ns);
}

static int add_copy_head(struct copy_reading *r, size_t *cap, size_t at)
{
    struct hd_room_copy *copy = r->copy;

    if (copy->head_count == *cap) {
        const struct hd_room_message_rec **grown;

        *cap = *cap ? *cap * 2 : 8;
        grown = hd_arena_calloc(r->arena, *cap, sizeof(*grown));
        if (!grown)
            return HD_ENOMEM;
        if (copy->head_count > 0)
            memcpy(grown, copy->heads, copy->head_count * sizeof(*grown));
        copy->heads = grown;
    }
    copy->heads[copy->head_count++] = &copy->messages[at];
    return 0;
}

static int find_copy_heads(struct copy_reading *r)
{
    bool *is_seen = hd_arena_calloc(r->arena, r->copy->count + 1, sizeof(*is_seen));
    size_t at, cap = 0;
    int err = is_seen ? 0 : HD_ENOMEM;

    while (!err && (at = next_newest(r, is_seen)) != SIZE_MAX) {
        err = add_copy_head(r, &cap, at);
        see_line(r->copy, r->copy->messages[at].ns, is_seen);
    }
    return err;
}

/*
 * The line was given everything up to the trigger of its last run. Changes since then are not
 * known: the next run gets every changed message in its current version.
 */
static int mark_lines(struct hd_room_copy *copy, struct hd_arena *arena)
{
    int err = 0;

    copy->room.marks = hd_slice(NULL, 0);
    for (size_t i = 0; !err && i < copy->head_count; i++) {
        const struct hd_room_message_rec *answer = copy->heads[i];
        size_t trigger = index_of_id(copy, answer->reply_to);
        struct hd_room_mark mark = {answer->seq, 0};

        if (trigger != SIZE_MAX)
            mark.seq = copy->messages[trigger].seq;
        err = hd_room_mark_set(&copy->room, answer->ns, mark, arena);
    }
    return err;
}

static int make_branch(struct copy_reading *r)
{
    int err = cut_branch(r);

    if (!err)
        err = find_copy_heads(r);
    if (!err)
        err = mark_lines(r->copy, r->arena);
    r->copy->room.last_seq = r->copy->count ? r->copy->messages[r->copy->count - 1].seq : 0;
    return err;
}

int hd_room_copy_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread_id,
                      int64_t up_to, struct hd_arena *arena, struct hd_room_copy *out,
                      struct heddle_error *fault)
{
    const struct hd_room_message_query all = {.state = -1, .changed_after = -1};
    struct copy_reading r = {
        .store = store, .copy = out, .arena = arena, .fault = fault, .up_to = up_to};
    int err;

    *out = (struct hd_room_copy){.count = 0};
    hd_map_init(&out->ids, MAX_MESSAGES);
    err = hd_room_read(store, principal, thread_id, arena, &out->room, fault);
    r.last_seq = err ? 0 : out->room.last_seq;
    out->room.waits = hd_slice(NULL, 0); /* they would act as the people of the source */
    if (!err)
        err =
            hd_room_messages_scan(store, principal, thread_id, &all, on_source_message, &r, fault);
    if (!err && up_to > 0)
        err = make_branch(&r);
    if (!err)
        forget_missing(out);
    return err;
}

void hd_room_copy_fini(struct hd_room_copy *copy)
{
    hd_map_fini(&copy->ids);
}

/* ---- writing ---------------------------------------------------------- */

struct copy_writing {
    struct heddle *store;
    struct hd_room_copy *copy;
    struct hd_slice principal, thread_id; /* of the copy */
    struct hd_slice lane;
    struct hd_arena arena; /* of one batch */
    struct hd_batch_builder batch;
    struct heddle_error *fault;
};

static int flush_copy(struct copy_writing *w)
{
    const struct hd_batch view = hd_batch_view(&w->batch);
    int err = view.count > 0 ? hd_rows_apply(w->store, w->lane, &view, NULL, w->fault) : 0;

    hd_batch_reset(&w->batch);
    hd_arena_reset(&w->arena);
    return err;
}

static int write_message(struct copy_writing *w, const struct hd_room_message_rec *source,
                         const struct hd_room_content_rec *content)
{
    struct hd_room_message_rec message = *source;
    struct hd_room_content_rec copied = *content;
    const struct hd_room_id_rec id = {.principal = w->principal,
                                      .thread_id = w->thread_id,
                                      .message_id = message.id,
                                      .seq = message.seq};
    int err;

    message.principal = copied.principal = w->principal;
    message.thread_id = copied.thread_id = w->thread_id;
    message.feedback = hd_slice(NULL, 0);
    err = hd_room_message_add(&w->batch, &message);
    if (!err)
        err = hd_room_id_add(&w->batch, &id);
    if (!err && copied.content.len > 0 && message.state != HD_ROOM_DELETED)
        err = hd_room_content_add(&w->batch, &copied);
    return err;
}

static int write_messages(struct copy_writing *w)
{
    const struct hd_room_copy *copy = w->copy;
    struct hd_room_content_rec contents[PAGE];
    int err = 0;

    for (size_t first = 0; !err && first < copy->count; first += PAGE) {
        size_t count = copy->count - first < PAGE ? copy->count - first : PAGE;

        err = hd_room_contents_read(w->store, copy->messages + first, count, &w->arena, contents,
                                    w->fault);
        for (size_t i = 0; !err && i < count; i++)
            err = write_message(w, &copy->messages[first + i], &contents[i]);
        if (!err)
            err = flush_copy(w);
    }
    return err;
}

static bool is_copied_run(const struct hd_room_copy *copy, const struct hd_room_run_rec *run)
{
    return index_of_id(copy, run->answer) != SIZE_MAX &&
           (run->trigger.len == 0 || index_of_id(copy, run->trigger) != SIZE_MAX);
}

/* The runs whose answers are in the copy. */
static int write_runs(struct copy_writing *w, struct hd_arena *arena)
{
    struct hd_room_run_rec *runs = NULL;
    size_t count = 0;
    int err = hd_room_runs_read(w->store, w->copy->room.principal, w->copy->room.thread_id,
                                hd_slice(NULL, 0), arena, &runs, &count, w->fault);

    for (size_t i = 0; !err && i < count; i++) {
        if (!is_copied_run(w->copy, &runs[i]))
            continue;
        runs[i].principal = w->principal;
        runs[i].thread_id = w->thread_id;
        runs[i].cascade = runs[i].replaces = hd_slice(NULL, 0);
        err = hd_room_run_put(&w->batch, &runs[i]);
        if (!err && w->batch.count >= PAGE)
            err = flush_copy(w);
    }
    return err ? err : flush_copy(w);
}

int hd_room_copy_write(struct heddle *store, struct hd_room_copy *copy, struct hd_slice principal,
                       struct hd_slice thread_id, struct hd_batch_builder *last,
                       struct heddle_error *fault)
{
    struct copy_writing w = {.store = store,
                             .copy = copy,
                             .principal = principal,
                             .thread_id = thread_id,
                             .fault = fault};
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_PAGE);
    hd_arena_init(&w.arena, MAX_PAGE);
    hd_batch_init(&w.batch);
    err = hd_thread_lane(&arena, principal, thread_id, &w.lane);
    if (!err)
        err = write_messages(&w);
    if (!err)
        err = write_runs(&w, &arena);
    if (!err) {
        copy->room.principal = principal;
        copy->room.thread_id = thread_id;
        copy->room.rev = 0;
        err = hd_room_put(last, &copy->room);
    }
    hd_batch_fini(&w.batch);
    hd_arena_fini(&w.arena);
    hd_arena_fini(&arena);
    return err;
}
