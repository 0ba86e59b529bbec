/* A worker's checkpointer: get, list, put, writes and history, on the thread of its call. */
#include <string.h>

#include "base/alloc.h"
#include "graph/engine/ns.h"
#include "records/thread_roots.h"
#include "store/list_append.h"
#include "store/store.h"
#include "worker/worker_internal.h"
#include "worker/worker_migrate.h"

enum { PAGE = 100 };                  /* checkpoints per response */
#define PAGE_BYTES ((size_t)64 << 20) /* a response that is longer ends */
#define MAX_CHANNELS ((size_t)1 << 16)

/* ---- shared ----------------------------------------------------------- */

static struct heddle_thread thread_of(const struct hd_worker_op *op)
{
    return (struct heddle_thread){hd_to_public(op->scope->principal),
                                  hd_to_public(op->scope->thread)};
}

/* Fails with the store's error message. */
static int set_store_fault(struct hd_worker_op *op, int err, const struct heddle_error *error)
{
    return err ? hd_error_set(&op->request->fault, err, "%s",
                              error->text[0] ? error->text : hd_error_text(err))
               : 0;
}

static int stored_ns(struct hd_worker_op *op, struct hd_slice ns, struct heddle_bytes *out)
{
    char *joined = hd_ns_join(op->scope->root, ns, NULL);
    struct hd_slice copy;
    int err = joined ? hd_arena_copy(op->in.arena, hd_slice_cstr(joined), &copy) : HD_ENOMEM;

    hd_free(joined);
    if (!err)
        *out = hd_to_public(copy);
    return err;
}

/* Reads the members `ns` and `id`. */
static int read_key(struct hd_worker_op *op, struct heddle_key *out)
{
    struct hd_slice ns, id;
    int err = hd_wire_string(&op->in, "ns", &ns);

    if (!err)
        err = hd_wire_string(&op->in, "id", &id);
    if (!err)
        err = stored_ns(op, ns, &out->ns);
    if (err)
        return err;
    out->thread = thread_of(op);
    out->id = hd_to_public(id);
    return 0;
}

static struct hd_slice relative(const struct hd_worker_op *op, struct heddle_bytes stored)
{
    struct hd_slice ns;

    return hd_ns_split(op->scope->root, hd_from_public(stored), &ns) ? ns : HD_S("");
}

static int finish_answer(struct hd_worker_op *op, struct hd_wire_out *out)
{
    int err = hd_jw_finish(&out->jw);

    if (err == HD_ELIMIT)
        return hd_error_set(&op->request->fault, err,
                            "the response has too many values for a frame");
    op->request->blobs = out->blobs;
    op->request->blob_count = out->count;
    return err;
}

/* ---- get -------------------------------------------------------------- */

static void free_tuple(void *arg)
{
    heddle_tuple_free(arg);
}

static int answer_tuple(struct hd_worker_op *op, const struct heddle_tuple *tuple)
{
    struct hd_wire_out out;
    int err = hd_wire_init(&out, &op->request->head, op->in.arena,
                           tuple ? hd_wire_tuple_blobs(tuple) : 0);

    if (err)
        return err;
    hd_jw_object(&out.jw);
    hd_jw_key(&out.jw, HD_S("tuple"));
    if (tuple)
        hd_wire_tuple(&out, tuple, relative(op, tuple->ns));
    else
        hd_jw_null(&out.jw);
    hd_jw_object_end(&out.jw);
    return finish_answer(op, &out);
}

int hd_worker_get(struct hd_worker_op *op)
{
    struct heddle_error error = {0};
    struct heddle_tuple *tuple = NULL;
    const struct heddle_tuple *shown;
    struct heddle_key key;
    int err = read_key(op, &key);

    if (err)
        return err;
    err = heddle_get(op->app->store, &key, &tuple, &error);
    if (err && err != HD_ENOTFOUND)
        return set_store_fault(op, err, &error);
    if (!tuple)
        return answer_tuple(op, NULL);
    op->request->free_blobs = free_tuple; /* the blobs borrow from it */
    op->request->free_arg = tuple;
    err = hd_worker_migrate_read(op->app, op->scope, relative(op, tuple->ns), tuple, op->in.arena,
                                 &shown, &op->request->fault);
    return err ? err : answer_tuple(op, shown);
}

/* ---- list ------------------------------------------------------------- */

/* Copies bytes that are valid only until heddle_list_next(). */
static int keep_bytes(struct hd_arena *arena, struct heddle_bytes *bytes)
{
    struct hd_slice copy;
    int err = hd_arena_copy(arena, hd_from_public(*bytes), &copy);

    if (!err)
        *bytes = hd_to_public(copy);
    return err;
}

static int keep_values(struct hd_arena *arena, struct heddle_tuple *tuple)
{
    struct heddle_value *values = hd_arena_calloc(arena, tuple->value_count, sizeof(*values));
    int err = values ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < tuple->value_count; i++) {
        values[i] = tuple->values[i];
        err = keep_bytes(arena, &values[i].data);
    }
    tuple->values = values;
    return err;
}

static int keep_writes(struct hd_arena *arena, const struct heddle_write **list, size_t count)
{
    struct heddle_write *writes = hd_arena_calloc(arena, count, sizeof(*writes));
    int err = writes ? 0 : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++) {
        writes[i] = (*list)[i];
        err = keep_bytes(arena, &writes[i].value.data);
    }
    *list = writes;
    return err;
}

/* Copies the bytes that become blobs; the rest is copied into the head. */
static int keep_tuple(struct hd_arena *arena, struct heddle_tuple *tuple)
{
    int err = keep_bytes(arena, &tuple->checkpoint);

    if (!err)
        err = keep_bytes(arena, &tuple->metadata);
    if (!err)
        err = keep_values(arena, tuple);
    if (!err)
        err = keep_writes(arena, &tuple->writes, tuple->write_count);
    if (!err)
        err = keep_writes(arena, &tuple->sends, tuple->send_count);
    return err;
}

struct checkpoint_listing {
    struct heddle_bytes thread, ns, id, before;
    struct heddle_query query;
    int64_t limit; /* negative: none */
};

static bool is_given(const struct hd_worker_op *op, const char *name)
{
    hd_json_val val = hd_json_get(op->in.head, hd_slice_cstr(name));

    return val && !hd_json_is_null(val);
}

static int read_optional(struct hd_worker_op *op, const char *name, struct heddle_bytes *bytes,
                         const struct heddle_bytes **out)
{
    struct hd_slice text;
    int err = hd_wire_string(&op->in, name, &text);

    *bytes = hd_to_public(text);
    *out = text.len ? bytes : NULL;
    return err;
}

static int read_limit(struct hd_worker_op *op, int64_t *out)
{
    hd_json_val val = hd_json_get(op->in.head, HD_S("limit"));

    *out = -1;
    if (!is_given(op, "limit"))
        return 0;
    if (!hd_json_whole(val, out) || *out < 0)
        return hd_error_set(&op->request->fault, HD_EINVAL, "limit: expected 0 or more");
    return 0;
}

static int read_filter(struct hd_worker_op *op, struct heddle_bytes *out)
{
    struct hd_slice text = HD_S("");
    int err = is_given(op, "filter") ? hd_wire_text(&op->in, "filter", &text) : 0;

    *out = hd_to_public(text);
    return err;
}

static int read_listing(struct hd_worker_op *op, struct checkpoint_listing *listing)
{
    struct heddle_query *query = &listing->query;
    struct hd_slice ns;
    int err = hd_wire_string(&op->in, "ns", &ns);

    *query = (struct heddle_query){.limit = -1};
    query->principal = thread_of(op).principal;
    listing->thread = thread_of(op).id;
    query->thread = &listing->thread;
    if (!err && is_given(op, "ns")) {
        err = stored_ns(op, ns, &listing->ns);
        query->ns = &listing->ns;
    }
    if (!err)
        err = read_optional(op, "id", &listing->id, &query->id);
    if (!err)
        err = read_optional(op, "before", &listing->before, &query->before);
    if (!err)
        err = read_filter(op, &query->filter);
    return err ? err : read_limit(op, &listing->limit);
}

/* True if another checkpoint fits into this response. The first always does. */
static bool has_room(const struct hd_wire_out *out, size_t shown, const struct heddle_tuple *next)
{
    return shown == 0 || (shown < PAGE && out->bytes < PAGE_BYTES &&
                          out->count + hd_wire_tuple_blobs(next) <= HD_WIRE_MAX_BLOBS);
}

/* Without a root in the namespaces, the metadata shows which ones are those of its subgraphs. */
static bool is_of_scope(const struct hd_worker_op *op, const struct heddle_tuple *tuple,
                        struct hd_slice *ns)
{
    const struct hd_lines none = {NULL, 0, 0};
    struct hd_json metadata = {NULL};
    bool is_inside;

    if (!hd_ns_split(op->scope->root, hd_from_public(tuple->ns), ns))
        return false;
    if (op->scope->root.len > 0 || ns->len == 0)
        return true;
    is_inside =
        !hd_json_parse(&metadata, hd_from_public(tuple->metadata), NULL) &&
        hd_root_is_below_empty(*ns, hd_json_get(hd_json_root(&metadata), HD_S("parents")), &none);
    hd_json_fini(&metadata);
    return is_inside;
}

static int show_list(struct hd_worker_op *op, struct checkpoint_listing *listing,
                     struct heddle_list *list, struct hd_wire_out *out, bool *more)
{
    const struct heddle_tuple *found;
    struct heddle_error error = {0};
    size_t shown = 0;
    int err = 0;

    while (!err && (listing->limit < 0 || shown < (size_t)listing->limit)) {
        struct heddle_tuple tuple;
        struct hd_slice ns;

        err = heddle_list_next(list, &found, &error);
        if (err)
            return err == HD_ENOTFOUND ? 0 : set_store_fault(op, err, &error);
        if (!is_of_scope(op, found, &ns))
            continue; /* of another agent */
        *more = !has_room(out, shown, found);
        if (*more)
            break;
        tuple = *found;
        err = keep_tuple(op->in.arena, &tuple);
        if (!err)
            hd_wire_tuple(out, &tuple, ns);
        shown++;
    }
    return err;
}

int hd_worker_list(struct hd_worker_op *op)
{
    struct heddle_list *list = NULL;
    struct heddle_error error = {0};
    struct checkpoint_listing listing;
    struct hd_wire_out out;
    bool more = false;
    int err = read_listing(op, &listing);

    if (!err)
        err = hd_wire_init(&out, &op->request->head, op->in.arena, HD_WIRE_MAX_BLOBS);
    if (err)
        return err;
    err = heddle_list_open(op->app->store, &listing.query, &list, &error);
    if (err)
        return set_store_fault(op, err, &error);
    hd_jw_object(&out.jw);
    hd_jw_put_array(&out.jw, "tuples");
    err = show_list(op, &listing, list, &out, &more);
    heddle_list_close(list);
    hd_jw_array_end(&out.jw);
    hd_jw_put_bool(&out.jw, "more", more);
    hd_jw_object_end(&out.jw);
    return err ? err : finish_answer(op, &out);
}

/* ---- put and writes --------------------------------------------------- */

/* HD_ENOTFOUND: the thread fence found no record, so the thread was deleted during the run. */
static int notify_stored(struct hd_worker_op *op, int err, const struct heddle_error *error)
{
    if (err == HD_ENOTFOUND)
        return hd_error_set(&op->request->fault, HD_ECLOSED, "the thread was deleted");
    return set_store_fault(op, err, error);
}

static int read_values(struct hd_worker_op *op, const struct hd_hidden *hidden,
                       struct heddle_value **out, size_t *count)
{
    int err = hd_wire_values(&op->in, out, count);

    for (size_t i = 0; !err && hidden->count > 0 && i < *count; i++)
        err = hd_hidden_hide(hidden, &(*out)[i], op->in.arena);
    return err;
}

static int read_checkpoint(struct hd_worker_op *op, struct hd_slice *checkpoint,
                           struct hd_slice *metadata, struct hd_slice *versions)
{
    int err = hd_wire_text(&op->in, "checkpoint", checkpoint);

    if (!err)
        err = hd_wire_text(&op->in, "metadata", metadata);
    if (!err)
        err = hd_wire_text(&op->in, "new_versions", versions);
    if (!err && checkpoint->len == 0)
        err = hd_error_set(&op->request->fault, HD_EINVAL, "checkpoint: missing");
    return err;
}

static int read_put(struct hd_worker_op *op, struct heddle_checkpoint *put)
{
    static const char *const names[] = {[HD_RT_PYTHON] = "python", [HD_RT_JS] = "js"};
    const struct hd_rt_scope *scope = op->scope;
    struct hd_slice checkpoint, metadata = {NULL, 0}, versions, parent;
    struct heddle_value *values = NULL;
    struct hd_hidden hidden;
    struct heddle_key key;
    int err = read_key(op, &key);

    if (!err)
        err = hd_wire_string(&op->in, "parent", &parent);
    if (!err)
        err = read_checkpoint(op, &checkpoint, &metadata, &versions);
    if (!err)
        err = hd_hidden_init(&hidden, scope->secrets, op->in.arena);
    if (!err)
        err = hd_hidden_metadata(&hidden, metadata, scope->metadata, names[op->request->language],
                                 op->in.arena, &metadata, &op->request->fault);
    if (!err)
        err = read_values(op, &hidden, &values, &put->value_count);
    if (err)
        return err;
    put->thread = key.thread;
    put->ns = key.ns;
    put->id = key.id;
    put->parent = hd_to_public(parent);
    put->checkpoint = hd_to_public(checkpoint);
    put->metadata = hd_to_public(metadata);
    put->new_versions = hd_to_public(versions);
    put->values = values;
    return 0;
}

static struct hd_guard scope_guard(const struct hd_worker_op *op)
{
    return (struct hd_guard){op->scope->guard, op->scope->token};
}

int hd_worker_put(struct hd_worker_op *op)
{
    const struct hd_put_extras extras = {.guard = scope_guard(op)};
    struct heddle_checkpoint put = {.value_count = 0};
    struct heddle_error error = {0};
    int err = read_put(op, &put);

    if (err)
        return err;
    err = hd_store_put(op->app->store, &put, &extras, &error);
    return notify_stored(op, err, &error);
}

int hd_worker_writes(struct hd_worker_op *op)
{
    struct heddle_writes writes = {.value_count = 0};
    struct heddle_error error = {0};
    struct heddle_value *values = NULL;
    struct hd_slice task, path;
    struct hd_hidden hidden;
    struct heddle_key key;
    int err = read_key(op, &key);

    if (!err)
        err = hd_wire_string(&op->in, "task_id", &task);
    if (!err)
        err = hd_wire_string(&op->in, "task_path", &path);
    if (!err)
        err = hd_hidden_init(&hidden, op->scope->secrets, op->in.arena);
    if (!err)
        err = read_values(op, &hidden, &values, &writes.value_count);
    if (err)
        return err;
    writes.thread = key.thread;
    writes.ns = key.ns;
    writes.checkpoint_id = key.id;
    writes.task_id = hd_to_public(task);
    writes.task_path = hd_to_public(path);
    writes.values = values;
    err = hd_store_put_writes(op->app->store, &writes, scope_guard(op), &error);
    return notify_stored(op, err, &error);
}

/* ---- history ---------------------------------------------------------- */

static int read_channels(struct hd_worker_op *op, struct heddle_bytes **out, size_t *count)
{
    hd_json_val list = hd_json_get(op->in.head, HD_S("channels"));
    struct hd_json_iter it = hd_json_iter(list);
    size_t i = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) > MAX_CHANNELS)
        return hd_error_set(&op->request->fault, HD_EINVAL,
                            "channels: expected a list of at most %zu", MAX_CHANNELS);
    *out = hd_arena_calloc(op->in.arena, hd_json_size(list), sizeof(**out));
    if (!*out)
        return HD_ENOMEM;
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            return hd_error_set(&op->request->fault, HD_EINVAL, "channels: expected strings");
        (*out)[i++] = hd_to_public(hd_json_string(it.val));
    }
    *count = i;
    return 0;
}

static void free_histories(void *arg)
{
    heddle_histories_free(arg);
}

static size_t count_blobs(const struct heddle_histories *histories)
{
    size_t count = histories->channel_count; /* seeds */

    for (size_t i = 0; i < histories->channel_count; i++)
        count += histories->channels[i].write_count;
    return count;
}

int hd_worker_history(struct hd_worker_op *op)
{
    struct heddle_histories *histories = NULL;
    struct heddle_bytes *channels = NULL;
    struct heddle_error error = {0};
    struct hd_wire_out out;
    struct heddle_key key;
    size_t count = 0;
    int err = read_key(op, &key);

    if (!err)
        err = read_channels(op, &channels, &count);
    if (err)
        return err;
    err = heddle_delta_history(op->app->store, &key, channels, count, &histories, &error);
    if (err)
        return set_store_fault(op, err, &error);
    op->request->free_blobs = free_histories;
    op->request->free_arg = histories;
    err = hd_wire_init(&out, &op->request->head, op->in.arena, count_blobs(histories));
    if (err)
        return err;
    hd_jw_object(&out.jw);
    hd_jw_key(&out.jw, HD_S("channels"));
    hd_wire_histories(&out, histories);
    hd_jw_object_end(&out.jw);
    return finish_answer(op, &out);
}
