/*
 * A worker's store: batches of LangGraph's operations on the items of the user who started the run,
 * or on those of a room.
 *
 * A batch is read first, then executed. If it needs vectors, for semantic search, the loop requests
 * them in between (search/embed.h).
 */
#include <string.h>

#include "app/defer.h"
#include "config/config.h"
#include "records/item_filter.h"
#include "records/participants.h"
#include "search/embed.h"
#include "search/item_service.h"
#include "store/store.h"
#include "worker/worker_internal.h"

enum { MAX_OPS = 10000 };

/* A batch in progress. As in LangGraph's own stores, its reads see the state before its puts. */
struct batch {
    struct hd_app *app;
    struct hd_rt_request *request;
    struct hd_item_service items;
    struct hd_hidden hidden;
    hd_json_val ops;
    struct hd_item_change *changes;
    size_t change_count;
    struct hd_embed_texts texts; /* of changes, then of queries */
    struct hd_embedding *embedding;
    const float *vectors; /* of all texts */
    size_t used;          /* vectors of earlier texts are assigned */
    int err;
};

/* ---- members of an operation ------------------------------------------ */

static hd_json_val op_member(hd_json_val op, const char *name)
{
    hd_json_val val = hd_json_get(op, hd_slice_cstr(name));

    return hd_json_is_null(val) ? NULL : val;
}

static int read_int(const struct batch *batch, hd_json_val op, const char *name, int64_t min,
                    int64_t *out)
{
    hd_json_val val = op_member(op, name);

    if (!val)
        return 0;
    if (!hd_json_whole(val, out) || *out < min || *out > INT32_MAX)
        return hd_error_set(batch->items.fault, HD_EINVAL, "%s: expected an integer of at least %d",
                            name, (int)min);
    return 0;
}

static int read_labels(const struct batch *batch, hd_json_val list, const char *what,
                       struct hd_item_namespace *out)
{
    return hd_item_namespace_parse(out, list, what, batch->items.arena, batch->items.fault);
}

static int read_place(const struct batch *batch, hd_json_val op, struct hd_item_place *out)
{
    struct hd_item_namespace labels;
    int err = read_labels(batch, op_member(op, "namespace"), "namespace", &labels);

    if (!err && labels.count == 0)
        err = hd_error_set(batch->items.fault, HD_EINVAL, "namespace: expected labels");
    return err ? err
               : hd_item_service_place(&batch->items, &labels, hd_json_string(op_member(op, "key")),
                                       out);
}

static bool refreshes(const struct batch *batch, hd_json_val op)
{
    hd_json_val val = op_member(op, "refresh_ttl");

    return val ? hd_json_is_true(val) : batch->items.app->config->ttl_refresh_on_read;
}

/* ---- putting ---------------------------------------------------------- */

static int render_item_value(const struct batch *batch, hd_json_val val, struct hd_slice *out)
{
    struct heddle_value hidden = {.type = hd_to_public(HD_S("json"))};
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX / 2);
    err = hd_json_write_val(&buf, val);
    if (!err)
        err = hd_arena_copy(batch->items.arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    if (err)
        return err;
    hidden.data = hd_to_public(*out);
    err = hd_hidden_hide(&batch->hidden, &hidden, batch->items.arena);
    *out = hd_from_public(hidden.data);
    return err;
}

/* Adds the texts of the value as stored, without secrets. */
static int add_texts(struct batch *batch, struct hd_item_change *change, hd_json_val index)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, change->value, batch->items.fault);

    if (!err)
        err = hd_item_service_texts(&batch->items, hd_json_root(&json), index, &batch->texts,
                                    &change->text_count);
    hd_json_fini(&json);
    return err;
}

static int read_put(struct batch *batch, hd_json_val op)
{
    struct hd_item_change *change = &batch->changes[batch->change_count];
    hd_json_val value = op_member(op, "value");
    int err = read_place(batch, op, &change->place);

    change->is_deletion = !value;
    if (!err && value && !hd_json_is_object(value))
        err = hd_error_set(batch->items.fault, HD_EINVAL, "value: expected an object, found %s",
                           hd_json_type_name(value));
    if (!err && value)
        err = hd_item_namespace_check_put(&change->place.labels, batch->items.fault);
    if (!err && value)
        err = hd_item_service_ttl(&batch->items, op_member(op, "ttl"), &change->ttl_us);
    if (!err && value)
        err = render_item_value(batch, value, &change->value);
    if (!err && value)
        err = add_texts(batch, change, op_member(op, "index"));
    batch->change_count += !err;
    return err;
}

/* ---- reading ---------------------------------------------------------- */

static int answer_get(struct batch *batch, hd_json_val op, struct hd_jw *jw)
{
    struct hd_item_place place;
    struct hd_item_rec item;
    int err = read_place(batch, op, &place);

    if (err)
        return err;
    err = hd_item_service_get(&batch->items, &place, refreshes(batch, op), &item);
    if (!err)
        hd_item_service_write(&batch->items, jw, &item, NULL);
    else if (err == HD_ENOTFOUND)
        hd_jw_null(jw);
    return err == HD_ENOTFOUND ? 0 : err;
}

/* The next `count` vectors; NULL: none. */
static const float *take_vectors(struct batch *batch, size_t count)
{
    size_t at = batch->used;

    if (!batch->vectors || count == 0)
        return NULL;
    batch->used += count;
    return batch->vectors + at * hd_embedder_dims(batch->app->embedder);
}

static int answer_search(struct batch *batch, hd_json_val op, struct hd_jw *jw)
{
    struct hd_item_search search = {.limit = 10, .filter = op_member(op, "filter")};
    struct hd_item_namespace labels;
    int err = read_labels(batch, op_member(op, "namespace_prefix"), "namespace_prefix", &labels);

    if (!err)
        err = hd_item_service_join(&batch->items, &labels, &search.prefix);
    if (!err)
        err = hd_filter_check(search.filter, batch->items.fault);
    if (!err)
        err = read_int(batch, op, "limit", 0, &search.limit);
    if (!err)
        err = read_int(batch, op, "offset", 0, &search.offset);
    if (err)
        return err;
    search.query = hd_json_string(op_member(op, "query"));
    search.refreshes = refreshes(batch, op);
    if (search.query.len > 0)
        search.vector = take_vectors(batch, 1);
    return hd_item_service_search(&batch->items, &search, jw);
}

static int read_match(const struct batch *batch, hd_json_val condition, struct hd_ns_match *out)
{
    struct hd_slice type = hd_json_string(hd_json_get(condition, HD_S("match_type")));

    out->is_suffix = hd_slice_eq(type, HD_S("suffix"));
    if (!out->is_suffix && !hd_slice_eq(type, HD_S("prefix")))
        return hd_error_set(batch->items.fault, HD_EINVAL,
                            "match_type: expected \"prefix\" or \"suffix\"");
    return read_labels(batch, hd_json_get(condition, HD_S("path")), "path", &out->labels);
}

static int answer_namespaces(struct batch *batch, hd_json_val op, struct hd_jw *jw)
{
    hd_json_val conditions = op_member(op, "match_conditions");
    struct hd_json_iter it = hd_json_iter(conditions);
    struct hd_ns_search search = {.limit = 100};
    struct hd_ns_match *matches =
        hd_arena_calloc(batch->items.arena, hd_json_size(conditions), sizeof(*matches));
    int err = matches ? 0 : HD_ENOMEM;

    while (!err && hd_json_next(&it))
        err = read_match(batch, it.val, &matches[search.match_count++]);
    if (!err)
        err = read_int(batch, op, "max_depth", 1, &search.max_depth);
    if (!err)
        err = read_int(batch, op, "limit", 0, &search.limit);
    if (!err)
        err = read_int(batch, op, "offset", 0, &search.offset);
    if (err)
        return err;
    search.matches = matches;
    return hd_item_service_namespaces(&batch->items, &search, jw);
}

/* ---- the batch -------------------------------------------------------- */

static bool is_op(hd_json_val op, const char *name)
{
    return hd_slice_eq(hd_json_string(hd_json_get(op, HD_S("op"))), hd_slice_cstr(name));
}

static int answer_one(struct batch *batch, hd_json_val op, struct hd_jw *jw)
{
    static const struct {
        const char *name;
        int (*fn)(struct batch *batch, hd_json_val op, struct hd_jw *jw);
    } kinds[] = {
        {"get", answer_get}, {"search", answer_search}, {"list_namespaces", answer_namespaces}};

    if (is_op(op, "put")) {
        hd_jw_null(jw);
        return 0;
    }
    for (size_t i = 0; i < HD_COUNT(kinds); i++) {
        if (is_op(op, kinds[i].name))
            return kinds[i].fn(batch, op, jw);
    }
    return hd_error_set(batch->items.fault, HD_EINVAL,
                        "op: expected get, put, search or list_namespaces");
}

/* Reads puts, then queries; their texts and vectors have this order. */
static int read_ops(struct batch *batch)
{
    struct hd_json_iter it = hd_json_iter(batch->ops);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        if (is_op(it.val, "put"))
            err = read_put(batch, it.val);
    }
    it = hd_json_iter(batch->ops);
    while (!err && batch->app->embedder && hd_json_next(&it)) {
        struct hd_slice query = hd_json_string(op_member(it.val, "query"));

        if (is_op(it.val, "search") && query.len > 0)
            err = hd_embed_texts_add(&batch->texts, query);
    }
    return err;
}

/*
 * Agents remember for the user who started the run. In a room with more than one person they
 * remember for the room: below labels in the compartment of its owner.
 */
static int find_memory(struct batch *batch)
{
    const struct hd_rt_scope *scope = batch->request->scope;
    struct hd_thread_rec thread;
    bool is_shared = false;
    int err;

    batch->items.principal = scope->actor.len > 0 ? scope->actor : scope->principal;
    if (scope->actor.len == 0 || scope->thread.len == 0)
        return 0;
    err = hd_thread_read(batch->app->store, scope->principal, scope->thread, batch->items.arena,
                         &thread, batch->items.fault);
    if (!err && thread.is_room)
        err = hd_participants_share(batch->app->store, scope->principal, scope->thread,
                                    scope->actor, &is_shared, batch->items.fault);
    if (err || !is_shared)
        return err == HD_ENOTFOUND ? 0 : err;
    batch->items.principal = scope->principal;
    return hd_item_room_memory(scope->thread, batch->items.arena, &batch->items.base);
}

static int read_batch(struct batch *batch)
{
    struct hd_rt_request *request = batch->request;
    const struct hd_rt_scope *scope = request->scope;
    int err;

    batch->items = (struct hd_item_service){
        .app = batch->app, .arena = request->arena, .fault = &request->fault};
    err = find_memory(batch);
    if (err)
        return err;
    batch->texts.arena = request->arena;
    batch->ops = hd_json_get(request->root, HD_S("ops"));
    if (!hd_json_is_array(batch->ops) || hd_json_size(batch->ops) > MAX_OPS)
        return hd_error_set(&request->fault, HD_EINVAL, "ops: expected a list of at most %d",
                            MAX_OPS);
    batch->changes =
        hd_arena_calloc(request->arena, hd_json_size(batch->ops), sizeof(*batch->changes));
    if (!batch->changes)
        return HD_ENOMEM;
    err = hd_hidden_init(&batch->hidden, scope->secrets, request->arena);
    return err ? err : read_ops(batch);
}

static int write_results(struct batch *batch)
{
    struct hd_json_iter it = hd_json_iter(batch->ops);
    struct hd_jw jw;
    int err = 0;

    hd_jw_init(&jw, &batch->request->head);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "results");
    while (!err && hd_json_next(&it))
        err = answer_one(batch, it.val, &jw);
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    return err ? err : hd_jw_finish(&jw);
}

static int carry_out(struct batch *batch)
{
    int err = 0;

    if (batch->embedding)
        err = hd_embedding_read(batch->embedding, &batch->vectors, batch->items.fault);
    if (err)
        return err;
    for (size_t i = 0; i < batch->change_count; i++)
        batch->changes[i].vectors = take_vectors(batch, batch->changes[i].text_count);
    err = write_results(batch);
    return err ? err : hd_item_service_change(&batch->items, batch->changes, batch->change_count);
}

int hd_worker_items(struct hd_worker_op *op)
{
    struct batch batch = {.app = op->app, .request = op->request};
    int err = read_batch(&batch);

    return err ? err : carry_out(&batch);
}

/* ---- with vectors ----------------------------------------------------- */

static void read_and_perhaps_carry_out(void *arg)
{
    struct batch *batch = arg;

    batch->err = read_batch(batch);
    if (!batch->err && batch->texts.count == 0)
        batch->err = carry_out(batch);
}

static void carry_out_now(void *arg)
{
    struct batch *batch = arg;

    batch->err = carry_out(batch);
}

static void end_batch(void *arg)
{
    struct batch *batch = arg;

    hd_embedding_free(batch->embedding);
    hd_worker_op_end(batch->request, batch->err);
    hd_rt_request_answer(batch->request);
}

static void fail_batch(struct batch *batch, int err)
{
    batch->err = err;
    end_batch(batch);
}

static void on_embedded(void *ctx, int err, const struct heddle_error *fault)
{
    struct batch *batch = ctx;

    if (err)
        batch->request->fault = *fault;
    else
        err = hd_defer_run(batch->app->defer, carry_out_now, end_batch, batch);
    if (err)
        fail_batch(batch, err);
}

static void after_reading(void *arg)
{
    struct batch *batch = arg;
    int err;

    if (batch->err || batch->texts.count == 0) {
        end_batch(batch);
        return;
    }
    err = hd_embed(batch->app->embedder, batch->texts.list, batch->texts.count, on_embedded, batch,
                   &batch->embedding);
    if (err)
        fail_batch(batch, err);
}

void hd_worker_items_start(struct hd_rt_request *request)
{
    struct batch *batch = hd_arena_calloc(request->arena, 1, sizeof(*batch));
    int err;

    if (!batch) {
        hd_worker_op_end(request, HD_ENOMEM);
        hd_rt_request_answer(request);
        return;
    }
    batch->app = request->ctx;
    batch->request = request;
    err = hd_defer_run(batch->app->defer, read_and_perhaps_carry_out, after_reading, batch);
    if (err)
        fail_batch(batch, err);
}
