/* The operations: the heddle.h call of each, on a thread of the store. */
#include "addon.h"

#include <string.h>

#include "base/error.h"

/* A page of a listing ends when its tuples exceed this size. */
#define PAGE_BYTES ((size_t)4 << 20)

static struct heddle_bytes text(const struct hd_js_op *op, unsigned at)
{
    return op->texts[at];
}

static struct heddle_thread thread_of(const struct hd_js_op *op)
{
    return (struct heddle_thread){.principal = text(op, 0), .id = text(op, 1)};
}

static struct heddle_key key_of(const struct hd_js_op *op)
{
    return (struct heddle_key){.thread = thread_of(op), .ns = text(op, 2), .id = text(op, 3)};
}

/* ---- writing ---------------------------------------------------------- */

/* texts: principal, thread, ns, id, parent, checkpoint, metadata, new versions */
static int start_put(struct hd_js_op *op)
{
    op->in.checkpoint = (struct heddle_checkpoint){
        .thread = thread_of(op),
        .ns = text(op, 2),
        .id = text(op, 3),
        .parent = text(op, 4),
        .checkpoint = text(op, 5),
        .metadata = text(op, 6),
        .new_versions = text(op, 7),
        .values = op->values,
        .value_count = op->item_count,
    };
    return heddle_put_async(op->store->core, &op->in.checkpoint, hd_js_op_done, op);
}

/* texts: principal, thread, ns, checkpoint, task, task path */
static int start_put_writes(struct hd_js_op *op)
{
    op->in.writes = (struct heddle_writes){
        .thread = thread_of(op),
        .ns = text(op, 2),
        .checkpoint_id = text(op, 3),
        .task_id = text(op, 4),
        .task_path = text(op, 5),
        .values = op->values,
        .value_count = op->item_count,
    };
    return heddle_put_writes_async(op->store->core, &op->in.writes, hd_js_op_done, op);
}

/* ---- reading ---------------------------------------------------------- */

/* texts: principal, thread, ns, id */
static int get(struct hd_js_op *op)
{
    struct heddle_key key = key_of(op);
    int err = heddle_get(op->store->core, &key, &op->out.tuple, &op->error);

    if (err != HD_ENOTFOUND)
        return err;
    op->out.tuple = NULL;
    return 0;
}

static void release_tuple(struct hd_js_op *op)
{
    heddle_tuple_free(op->out.tuple);
}

static const struct heddle_bytes *optional(const struct hd_js_op *op, unsigned at)
{
    return op->texts[at].data ? &op->texts[at] : NULL;
}

/* texts: principal, thread, ns, id, before, filter, non-null for headers only; number: limit */
static int list_open(struct hd_js_op *op)
{
    struct heddle_query query = {
        .principal = text(op, 0),
        .thread = optional(op, 1),
        .ns = optional(op, 2),
        .id = optional(op, 3),
        .before = optional(op, 4),
        .filter = text(op, 5),
        .limit = op->number,
        .flags = optional(op, 6) ? HEDDLE_LIST_HEADERS : 0,
    };
    struct heddle_list *core;
    int err = heddle_list_open(op->store->core, &query, &core, &op->error);

    if (err)
        return err;
    op->out.list = hd_js_list_create(op->store, core);
    if (op->out.list)
        return 0;
    heddle_list_close(core);
    return HD_ENOMEM;
}

static void release_list(struct hd_js_op *op)
{
    if (op->out.list)
        hd_js_list_drop(op->out.list);
}

/* Copies bytes into the arena; keeps the first failure in *err. */
static struct heddle_bytes keep(struct hd_arena *arena, struct heddle_bytes bytes, int *err)
{
    char *copy;

    if (*err || bytes.len == 0)
        return (struct heddle_bytes){"", 0};
    copy = hd_arena_alloc(arena, bytes.len);
    if (!copy) {
        *err = HD_ENOMEM;
        return (struct heddle_bytes){"", 0};
    }
    memcpy(copy, bytes.data, bytes.len);
    return (struct heddle_bytes){copy, bytes.len};
}

static struct heddle_value keep_value(struct hd_arena *arena, const struct heddle_value *value,
                                      int *err)
{
    return (struct heddle_value){
        .channel = keep(arena, value->channel, err),
        .type = keep(arena, value->type, err),
        .data = keep(arena, value->data, err),
    };
}

static const struct heddle_value *
keep_values(struct hd_arena *arena, const struct heddle_value *values, size_t count, int *err)
{
    struct heddle_value *copy = *err ? NULL : hd_arena_calloc(arena, count, sizeof(*copy));

    if (!copy)
        *err = HD_ENOMEM;
    for (size_t i = 0; !*err && i < count; i++)
        copy[i] = keep_value(arena, &values[i], err);
    return copy;
}

static const struct heddle_write *
keep_writes(struct hd_arena *arena, const struct heddle_write *writes, size_t count, int *err)
{
    struct heddle_write *copy = *err ? NULL : hd_arena_calloc(arena, count, sizeof(*copy));

    if (!copy)
        *err = HD_ENOMEM;
    for (size_t i = 0; !*err && i < count; i++) {
        copy[i].task_id = keep(arena, writes[i].task_id, err);
        copy[i].task_path = keep(arena, writes[i].task_path, err);
        copy[i].idx = writes[i].idx;
        copy[i].value = keep_value(arena, &writes[i].value, err);
    }
    return copy;
}

/* A listing's tuple is valid until the next one is fetched. */
static int keep_tuple(struct hd_arena *arena, const struct heddle_tuple *tuple,
                      struct heddle_tuple *out)
{
    int err = 0;

    *out = (struct heddle_tuple){
        .thread = {.principal = {"", 0}, .id = keep(arena, tuple->thread.id, &err)},
        .ns = keep(arena, tuple->ns, &err),
        .id = keep(arena, tuple->id, &err),
        .parent = keep(arena, tuple->parent, &err),
        .checkpoint = keep(arena, tuple->checkpoint, &err),
        .metadata = keep(arena, tuple->metadata, &err),
        .values = keep_values(arena, tuple->values, tuple->value_count, &err),
        .value_count = tuple->value_count,
        .writes = keep_writes(arena, tuple->writes, tuple->write_count, &err),
        .write_count = tuple->write_count,
        .sends = keep_writes(arena, tuple->sends, tuple->send_count, &err),
        .send_count = tuple->send_count,
    };
    return err;
}

/* number: maximum number of tuples */
static int list_next(struct hd_js_op *op)
{
    size_t most = op->number > 0 ? (size_t)op->number : 1;
    struct hd_js_page *page = &op->out.page;
    const struct heddle_tuple *tuple;
    size_t start = op->arena.used;
    int err = 0;

    /* Only this operation uses the list now; it may have been closed before, not meanwhile. */
    page->is_last = op->list->core == NULL;
    page->tuples = hd_arena_calloc(&op->arena, most, sizeof(*page->tuples));
    if (!page->tuples)
        return HD_ENOMEM;
    while (!err && !page->is_last && page->count < most && op->arena.used - start < PAGE_BYTES) {
        err = heddle_list_next(op->list->core, &tuple, &op->error);
        if (err == HD_ENOTFOUND) {
            page->is_last = true;
            err = 0;
        } else if (!err) {
            err = keep_tuple(&op->arena, tuple, &page->tuples[page->count++]);
        }
    }
    return err;
}

static int list_close(struct hd_js_op *op)
{
    heddle_list_close(hd_js_list_take(op->list));
    return 0;
}

/* texts: principal, thread, ns, id; items: channels */
static int delta_history(struct hd_js_op *op)
{
    struct heddle_key key = key_of(op);
    int err = heddle_delta_history(op->store->core, &key, op->items, op->item_count,
                                   &op->out.histories, &op->error);

    if (err != HD_ENOTFOUND)
        return err;
    op->out.histories = NULL;
    return 0;
}

static void release_histories(struct hd_js_op *op)
{
    heddle_histories_free(op->out.histories);
}

/* ---- threads and retention -------------------------------------------- */

/* texts: principal, after; number: limit */
static int threads(struct hd_js_op *op)
{
    return heddle_list_threads(op->store->core, text(op, 0), text(op, 1),
                               op->number > 0 ? (size_t)op->number : 1, &op->out.threads,
                               &op->error);
}

static void release_threads(struct hd_js_op *op)
{
    heddle_threads_free(op->out.threads);
}

/* texts: principal, thread */
static int usage(struct hd_js_op *op)
{
    struct heddle_thread thread = thread_of(op);

    return heddle_thread_usage(op->store->core, &thread, &op->out.usage, &op->error);
}

/* texts: principal, thread */
static int delete_thread(struct hd_js_op *op)
{
    struct heddle_thread thread = thread_of(op);

    return heddle_delete_thread(op->store->core, &thread, &op->error);
}

/* texts: principal; items: run ids */
static int delete_runs(struct hd_js_op *op)
{
    return heddle_delete_runs(op->store->core, text(op, 0), op->items, op->item_count, &op->error);
}

/* texts: principal, source, target */
static int copy_thread(struct hd_js_op *op)
{
    struct heddle_thread source = thread_of(op);
    struct heddle_thread target = {.principal = text(op, 0), .id = text(op, 2)};

    return heddle_copy_thread(op->store->core, &source, &target, &op->error);
}

/* texts: principal; items: thread ids; number: 0 keeps the latest, 1 deletes all */
static int prune(struct hd_js_op *op)
{
    struct heddle_thread *list = hd_arena_calloc(&op->arena, op->item_count, sizeof(*list));

    if (!list)
        return HD_ENOMEM;
    for (size_t i = 0; i < op->item_count; i++)
        list[i] = (struct heddle_thread){.principal = text(op, 0), .id = op->items[i]};
    return heddle_prune(op->store->core, list, op->item_count,
                        op->number == 1 ? HEDDLE_DELETE_ALL : HEDDLE_KEEP_LATEST, &op->error);
}

static int compact(struct hd_js_op *op)
{
    return heddle_compact(op->store->core, &op->error);
}

static int check(struct hd_js_op *op)
{
    return heddle_check(op->store->core, &op->error);
}

const struct hd_js_operation hd_js_operations[] = {
    {.name = "put", .text_count = 8, .items = HD_JS_VALUES, .start = start_put},
    {.name = "putWrites", .text_count = 6, .items = HD_JS_VALUES, .start = start_put_writes},
    {.name = "get",
     .text_count = 4,
     .work = get,
     .answer = hd_js_answer_tuple,
     .release = release_tuple},
    {.name = "listOpen",
     .text_count = 7,
     .work = list_open,
     .answer = hd_js_answer_list,
     .release = release_list},
    {.name = "listNext", .has_list = true, .work = list_next, .answer = hd_js_answer_page},
    {.name = "listClose", .has_list = true, .work = list_close},
    {.name = "deltaHistory",
     .text_count = 4,
     .items = HD_JS_TEXTS,
     .work = delta_history,
     .answer = hd_js_answer_histories,
     .release = release_histories},
    {.name = "threads",
     .text_count = 2,
     .work = threads,
     .answer = hd_js_answer_threads,
     .release = release_threads},
    {.name = "usage", .text_count = 2, .work = usage, .answer = hd_js_answer_usage},
    {.name = "deleteThread", .text_count = 2, .work = delete_thread},
    {.name = "deleteForRuns", .text_count = 1, .items = HD_JS_TEXTS, .work = delete_runs},
    {.name = "copyThread", .text_count = 3, .work = copy_thread},
    {.name = "prune", .text_count = 1, .items = HD_JS_TEXTS, .work = prune},
    {.name = "compact", .work = compact},
    {.name = "check", .work = check},
};

const size_t hd_js_operation_count = HD_COUNT(hd_js_operations);
