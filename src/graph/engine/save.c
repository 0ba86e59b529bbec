/*
 * The engine's store calls.
 *
 * The checkpoints and writes of a loop are stored in the order in which it made them. The calls of
 * all runs in one iteration of the uv loop are submitted together and share a commit. A loop ends
 * only when all its calls are done.
 *
 * A direct store is called on the loop. Other stores run on their own threads; finished calls
 * return through one list and one uv_async for all runs.
 */
#include "graph/engine/save.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/failure.h"
#include "graph/engine/list_cache.h"
#include "graph/engine/list_tracker.h"
#include "graph/engine/loop.h"
#include "graph/engine/origin.h"
#include "graph/engine/patience.h"
#include "graph/engine/run.h"
#include "graph/engine/writes.h"
#include "net/http_client.h"
#include "store/bytes.h"
#include "store/order.h"
#include "value/val.h"

enum save_kind { LOAD, PUT, WRITES };
enum { MAX_SPARE = 64, MAX_SPARE_BYTES = 1 << 14 };
#define MAX_ID_BYTES ((size_t)1 << 16) /* memory to read a thread key and an id */

/* One store call. Owns all memory that the store may still read. */
struct hd_save {
    struct hd_save *next;
    struct hd_engine *engine;
    struct hd_loop *loop;
    enum save_kind kind;
    struct hd_packed packed;
    struct hd_buf checkpoint, metadata, ids;
    struct hd_put_extras extras;
    struct heddle_checkpoint put;
    struct heddle_writes writes;
    int code;
    struct heddle_error error;

    /* LOAD */
    struct hd_store_retry retry;
    hd_loaded_fn loaded;
    char id[HD_UUID_SIZE];
    char before[HD_UUID_SIZE];
    struct hd_known *known; /* the cached lists of the loop */
    size_t known_count;
    struct hd_load load;
};

static void destroy_save(struct hd_save *save)
{
    hd_buf_fini(&save->packed.text);
    hd_buf_fini(&save->checkpoint);
    hd_buf_fini(&save->metadata);
    hd_buf_fini(&save->ids);
    hd_free(save);
}

/* Keeps some calls and their buffers for reuse. */
static void free_save(struct hd_save *save)
{
    struct hd_engine *engine = save->engine;
    struct hd_buf text = save->packed.text;
    struct hd_save kept = {
        .checkpoint = save->checkpoint, .metadata = save->metadata, .ids = save->ids};

    save->packed.text = (struct hd_buf){.ptr = NULL};
    hd_packed_fini(&save->packed);
    hd_free(save->known);
    *save = kept;
    save->packed.text = text;
    if (engine->spare_count == MAX_SPARE ||
        text.cap + kept.checkpoint.cap + kept.metadata.cap + kept.ids.cap > MAX_SPARE_BYTES) {
        destroy_save(save);
        return;
    }
    hd_buf_reset(&save->packed.text);
    hd_buf_reset(&save->checkpoint);
    hd_buf_reset(&save->metadata);
    hd_buf_reset(&save->ids);
    save->next = engine->spare;
    engine->spare = save;
    engine->spare_count++;
}

static struct hd_save *create_save(void)
{
    struct hd_save *save = hd_calloc(1, sizeof(*save));

    if (!save)
        return NULL;
    hd_buf_init(&save->packed.text, HD_ENGINE_MAX_VALUE);
    hd_buf_init(&save->checkpoint, HD_ENGINE_MAX_VALUE);
    hd_buf_init(&save->metadata, HD_ENGINE_MAX_VALUE);
    hd_buf_init(&save->ids, (size_t)1 << 20);
    return save;
}

static struct hd_save *new_save(struct hd_loop *loop, enum save_kind kind)
{
    struct hd_engine *engine = loop->run->engine;
    struct hd_save *save = engine->spare ? engine->spare : create_save();

    if (!save)
        return NULL;
    if (save == engine->spare) {
        engine->spare = save->next;
        engine->spare_count--;
    }
    save->next = NULL;
    save->engine = engine;
    save->loop = loop;
    save->kind = kind;
    return save;
}

static struct heddle_thread thread_of(const struct hd_loop *loop)
{
    return (struct heddle_thread){hd_to_public(loop->run->options.principal),
                                  hd_to_public(loop->run->options.thread)};
}

/* ---- encoding --------------------------------------------------------- */

/*
 * Stores offsets, because the buffer may move while it grows; resolve_offsets() makes pointers of
 * them.
 */
static int pack(struct hd_packed *packed, size_t index, struct hd_slice channel,
                const struct hd_val *val)
{
    size_t start = packed->text.len;
    int err = hd_val_write(&packed->text, val);

    packed->values[index] =
        (struct heddle_value){hd_to_public(channel),
                              hd_to_public(HD_S("hd1")),
                              {(const void *)(uintptr_t)start, packed->text.len - start}};
    return err;
}

static void resolve_offsets(struct hd_packed *packed)
{
    for (size_t i = 0; i < packed->value_count; i++) {
        struct heddle_bytes *data = &packed->values[i].data;

        if (!packed->growths || !packed->growths[i])
            data->data = packed->text.ptr + (uintptr_t)data->data;
    }
}

static int pack_channel(struct hd_packed *packed, const struct hd_checkpoint_state *live,
                        size_t channel, struct hd_list_tracker *tracker)
{
    struct hd_slice name = live->graph->channels[channel].name;
    struct hd_growth *growth = NULL;
    struct hd_val *val = NULL;
    int err = hd_channel_checkpoint(&live->channels[channel], &val);

    if (!err && val && tracker)
        err = hd_list_tracker_save(&tracker[channel], val, &growth);
    if (!err && growth) {
        packed->values[packed->value_count] = (struct heddle_value){
            hd_to_public(name), hd_to_public(HD_S("hd1")), {NULL, growth->size}};
        packed->growths[packed->value_count++] = growth;
    } else if (!err && val) {
        err = pack(packed, packed->value_count, name, val);
        packed->value_count += !err;
    }
    hd_val_unref(val);
    return err;
}

static bool has_changed(const struct hd_checkpoint_state *live, struct hd_val *const *previous,
                        size_t channel)
{
    return hd_version_after(live->versions[channel], previous ? previous[channel] : NULL);
}

static int outline(struct hd_packed *packed, const struct hd_checkpoint_state *live,
                   struct hd_val *const *previous)
{
    size_t count = 0, most = live->graph->channel_count + hd_val_count(live->other_versions);
    struct hd_slice *names = hd_malloc(most * (sizeof(*names) + sizeof(bool)));
    bool *changed;

    if (!names)
        return HD_ENOMEM;
    changed = (bool *)(names + most);
    packed->outline_memory = names;
    packed->other_versions = hd_val_ref(live->other_versions);
    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (!live->versions[i])
            continue;
        names[count] = live->graph->channels[i].name;
        changed[count++] = has_changed(live, previous, i);
    }
    for (size_t i = 0; i < hd_val_count(packed->other_versions); i++) {
        struct hd_val *key;

        (void)hd_val_member(packed->other_versions, i, &key);
        names[count] = hd_val_get_string(key);
        changed[count++] = false;
    }
    packed->outline = (struct hd_outline){
        .v = HD_CHECKPOINT_V, .channels = names, .has_changed = changed, .channel_count = count};
    return 0;
}

static int write_versions(const struct hd_checkpoint_state *live, struct hd_val *const *previous,
                          struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (!has_changed(live, previous, i))
            continue;
        hd_jw_key(&jw, live->graph->channels[i].name);
        hd_val_put_rendered(&jw, live->versions[i]);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_save_pack_values(struct hd_packed *packed, const struct hd_checkpoint_state *live,
                        struct hd_val *const *previous, struct hd_list_tracker *tracker,
                        struct hd_buf *new_versions)
{
    int err = new_versions ? write_versions(live, previous, new_versions)
                           : outline(packed, live, previous);

    packed->values = hd_calloc(live->graph->channel_count, sizeof(*packed->values));
    packed->growths = hd_calloc(live->graph->channel_count, sizeof(struct hd_growth *));
    if (!packed->values || !packed->growths)
        return HD_ENOMEM;
    for (size_t i = 0; i < live->graph->channel_count && !err; i++) {
        if (has_changed(live, previous, i))
            err = pack_channel(packed, live, i, tracker);
    }
    resolve_offsets(packed);
    return err;
}

int hd_save_pack_writes(struct hd_packed *packed, const struct hd_graph *graph,
                        const struct hd_write *list, size_t count)
{
    int err = 0;

    packed->values = hd_calloc(count ? count : 1, sizeof(*packed->values));
    if (!packed->values)
        return HD_ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        if (list[i].channel == HD_W_OTHER)
            continue; /* the graph has no such channel */
        err = pack(packed, packed->value_count, hd_write_name(graph, &list[i]), list[i].val);
        packed->value_count += !err;
    }
    resolve_offsets(packed);
    return err;
}

void hd_packed_fini(struct hd_packed *packed)
{
    for (size_t i = 0; packed->growths && i < packed->value_count; i++)
        hd_growth_destroy(packed->growths[i]);
    hd_buf_fini(&packed->text);
    hd_free(packed->values);
    hd_free(packed->growths);
    hd_free(packed->outline_memory);
    hd_val_unref(packed->other_versions);
    *packed = (struct hd_packed){.values = NULL};
}

/* ---- completion ------------------------------------------------------- */

static void done(void *arg, int code, const struct heddle_error *error)
{
    struct hd_save *save = arg;
    struct hd_engine *engine = save->engine;

    save->code = code;
    if (error)
        save->error = *error;
    uv_mutex_lock(&engine->lock);
    save->next = engine->finished;
    engine->finished = save;
    uv_mutex_unlock(&engine->lock);
    uv_async_send(&engine->async);
}

static void note_failure(struct hd_loop *loop, const struct hd_save *save)
{
    struct heddle_error fault = {.code = save->code};

    if (!save->code)
        return;
    snprintf(fault.text, sizeof(fault.text), "%s",
             save->error.text[0] ? save->error.text : heddle_error_text(save->code));
    hd_failure_code(&loop->save_failure, save->code, &fault);
}

/* Runs on the loop when the call is done. */
static void finished(struct hd_save *save)
{
    struct hd_loop *loop = save->loop;

    loop->saving--;
    if (save->kind == LOAD) {
        hd_loaded_fn loaded = save->loaded;
        char text[sizeof(save->error.text)];
        int code = save->code;

        snprintf(text, sizeof(text), "%s", save->error.text);
        loop->load = save->load;
        free_save(save);
        loaded(loop, code, text);
        return;
    }
    note_failure(loop, save);
    free_save(save);
    hd_loop_saved(loop);
}

static void undo_begin(struct hd_engine *engine)
{
    if (--engine->in_flight == 0)
        uv_unref((uv_handle_t *)&engine->async);
}

static void on_async(uv_async_t *async)
{
    struct hd_engine *engine = async->data;
    struct hd_save *list, *turned = NULL;

    uv_mutex_lock(&engine->lock);
    list = engine->finished;
    engine->finished = NULL;
    uv_mutex_unlock(&engine->lock);
    while (list) {
        struct hd_save *next = list->next;

        list->next = turned;
        turned = list;
        list = next;
    }
    while (turned) {
        struct hd_save *next = turned->next;

        if (turned->kind != LOAD ||
            !hd_patience_wait(engine->patience, &turned->retry, turned->code)) {
            undo_begin(engine);
            finished(turned);
        }
        turned = next;
    }
}

static void begin_store_call(struct hd_engine *engine)
{
    if (engine->in_flight++ == 0)
        uv_ref((uv_handle_t *)&engine->async);
}

/* ---- loading ---------------------------------------------------------- */

static int newest_before(struct hd_save *save)
{
    struct hd_loop *loop = save->loop;
    struct heddle_thread thread = thread_of(loop);
    struct heddle_bytes ns = hd_to_public(hd_loop_place(loop));
    struct heddle_bytes before = hd_to_public(hd_slice_cstr(save->before));
    struct heddle_query query = {.principal = thread.principal,
                                 .thread = &thread.id,
                                 .ns = &ns,
                                 .before = &before,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    struct heddle_list *list;
    const struct heddle_tuple *found;
    int code = heddle_list_open(save->engine->store, &query, &list, &save->error);

    if (code)
        return code;
    code = heddle_list_next(list, &found, &save->error);
    if (!code)
        code =
            hd_store_get_unknown(save->engine->store, &(struct heddle_key){thread, ns, found->id},
                                 save->known, save->known_count, &save->load.tuple, &save->error);
    heddle_list_close(list);
    return code;
}

/* Sets is_superseded if the thread has a newer checkpoint than the requested one. */
static int look_for_newer(struct hd_save *save)
{
    struct heddle_thread thread = thread_of(save->loop);
    struct heddle_bytes ns = hd_to_public(hd_loop_place(save->loop));
    struct heddle_query query = {.principal = thread.principal,
                                 .thread = &thread.id,
                                 .ns = &ns,
                                 .limit = 1,
                                 .flags = HEDDLE_LIST_HEADERS};
    struct heddle_list *list;
    const struct heddle_tuple *found;
    int code = heddle_list_open(save->engine->store, &query, &list, &save->error);

    if (code)
        return code;
    code = heddle_list_next(list, &found, &save->error);
    if (!code)
        save->load.is_superseded =
            !hd_slice_eq(hd_slice(found->id.data, found->id.len), hd_slice_cstr(save->id));
    heddle_list_close(list);
    return code;
}

/* Finds the id that new checkpoints must sort after if they do not follow the latest one. */
static int find_greatest(struct hd_save *save)
{
    struct heddle_thread thread = thread_of(save->loop);
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_slice id;
    int err;

    hd_arena_init(&arena, MAX_ID_BYTES);
    err = hd_greatest_id(save->engine->store, &thread, hd_loop_place(save->loop), &arena, &id,
                         &fault);
    if (!err)
        hd_floor_raise(save->load.greatest, id);
    else
        snprintf(save->error.text, sizeof(save->error.text), "%s", fault.text);
    hd_arena_fini(&arena);
    return err;
}

static void load_checkpoint(struct hd_save *save)
{
    struct heddle_key key = {thread_of(save->loop), hd_to_public(hd_loop_place(save->loop)),
                             hd_to_public(hd_slice_cstr(save->id))};

    if (save->before[0])
        save->code = newest_before(save);
    else
        save->code = hd_store_get_unknown(save->engine->store, &key, save->known, save->known_count,
                                          &save->load.tuple, &save->error);
    if (!save->code && save->id[0])
        save->code = look_for_newer(save);
    if (!save->code && (save->id[0] || save->before[0]))
        save->code = find_greatest(save);
    if (save->code == HEDDLE_ENOTFOUND)
        save->code = 0;
}

static void load_elsewhere(void *arg)
{
    struct hd_save *save = arg;
    struct heddle_error error;

    load_checkpoint(save);
    error = save->error;
    done(save, save->code, &error);
}

/* Retries after the store was unavailable. */
static void load_again(void *arg)
{
    struct hd_save *save = arg;
    int code;

    heddle_tuple_free(save->load.tuple);
    save->load = (struct hd_load){.tuple = NULL};
    save->error = (struct heddle_error){0};
    code = heddle_defer(save->engine->store, load_elsewhere, save);
    if (code) {
        save->code = code;
        undo_begin(save->engine);
        finished(save);
    }
}

/* Takes the lists that an earlier run cached: the store omits those that are still current. */
static int list_cache(struct hd_save *save)
{
    struct hd_loop *loop = save->loop;
    struct hd_list_cache_key key = hd_loop_list_cache_key(loop);

    if (!hd_loop_caches_lists(loop))
        return 0;
    hd_list_cache_take(save->engine->list_cache, &key, loop->graph, loop->tracker);
    for (size_t i = 0; i < loop->graph->channel_count; i++) {
        struct hd_known *known;

        if (!loop->tracker[i].listing)
            continue;
        if (!save->known)
            save->known = hd_calloc(loop->graph->channel_count, sizeof(*save->known));
        if (!save->known)
            return HD_ENOMEM;
        known = &save->known[save->known_count];
        known->channel = hd_to_public(loop->graph->channels[i].name);
        known->type = hd_to_public(HD_S("hd1"));
        save->known_count +=
            hd_listing_is(loop->tracker[i].listing, &known->size, &known->checksum);
    }
    return 0;
}

/* Loads from a direct store. */
static int load_now(struct hd_save *save, struct heddle_error *fault)
{
    int code;

    load_checkpoint(save);
    code = save->code;
    if (code)
        snprintf(fault->text, sizeof(fault->text), "%s", save->error.text);
    save->loop->load = save->load;
    free_save(save);
    return code ? code : HD_READY;
}

int hd_load_start(struct hd_loop *loop, struct hd_slice id, struct hd_slice before, hd_loaded_fn fn,
                  struct heddle_error *fault)
{
    struct hd_save *save = new_save(loop, LOAD);
    int code;

    if (!save)
        return HD_ENOMEM;
    snprintf(save->id, sizeof(save->id), "%.*s", (int)id.len, id.ptr ? id.ptr : "");
    snprintf(save->before, sizeof(save->before), "%.*s", (int)before.len,
             before.ptr ? before.ptr : "");
    save->loaded = fn;
    save->retry = (struct hd_store_retry){.again = load_again, .arg = save};
    code = list_cache(save);
    if (code) {
        free_save(save);
        return code;
    }
    if (save->engine->is_direct)
        return load_now(save, fault);
    loop->saving++;
    begin_store_call(save->engine);
    code = heddle_defer(save->engine->store, load_elsewhere, save);
    if (code) {
        undo_begin(save->engine);
        loop->saving--;
        free_save(save);
    }
    return code;
}

/* ---- storing ---------------------------------------------------------- */

/* For a direct store: the call is done when it returns. */
static void store_now(struct hd_save *save)
{
    if (save->kind == PUT)
        save->code = hd_store_put(save->engine->store, &save->put, &save->extras, &save->error);
    else
        save->code = hd_store_put_writes(save->engine->store, &save->writes,
                                         save->loop->run->options.guard, &save->error);
    note_failure(save->loop, save);
    free_save(save);
}

/* Runs before the loop polls: submits all calls of this iteration together. */
static void on_prepare(uv_prepare_t *sender)
{
    struct hd_engine *engine = sender->data;

    uv_prepare_stop(sender);
    hd_store_queue_go(engine->store);
}

/* Once the call is queued, another thread may finish it before this function returns. */
static void call_store(struct hd_save *save)
{
    struct hd_engine *engine = save->engine;
    struct hd_loop *loop = save->loop;
    struct heddle_error error = {0};
    int code;

    begin_store_call(engine);
    loop->saving++;
    if (save->kind == PUT)
        code = hd_store_queue_put(engine->store, &save->put, &save->extras, done, save, &error);
    else
        code = hd_store_queue_writes(engine->store, &save->writes, loop->run->options.guard, done,
                                     save, &error);
    uv_prepare_start(&engine->sender, on_prepare);
    if (!code)
        return;
    save->code = code;
    save->error = error;
    undo_begin(engine);
    loop->saving--;
    note_failure(loop, save);
    free_save(save);
}

/* Appends the run_id to the empty `ids`, at its start. Sets only the length of *run_id. */
static int write_metadata(const struct hd_loop *loop, struct hd_buf *out, struct hd_buf *ids,
                          struct hd_slice *run_id)
{
    const struct hd_val *more = loop->run->options.metadata;
    struct hd_val *all = hd_val_ref(loop->metadata);
    int err;

    for (size_t i = 0; i < hd_val_count(more) && all; i++) {
        struct hd_val *key, *val = hd_val_member(more, i, &key);
        enum hd_val_type type = hd_val_type(val);

        if (hd_val_get(all, hd_val_get_string(key)) ||
            (type != HD_VAL_STRING && type != HD_VAL_INT && type != HD_VAL_BOOL &&
             type != HD_VAL_FLOAT))
            continue;
        all = hd_val_with_key(all, hd_val_ref(key), hd_val_ref(val));
    }
    *run_id = hd_val_get_string(hd_val_get(all, HD_S("run_id")));
    err = all ? hd_val_render(out, all) : HD_ENOMEM;
    if (!err) /* without a pointer: the buffer may move */
        err = hd_buf_append_slice(ids, *run_id);
    run_id->ptr = NULL;
    hd_val_unref(all);
    return err;
}

static int append_id(struct hd_buf *out, const char *id, size_t *offset)
{
    *offset = out->len;
    return hd_buf_append(out, id, strlen(id) + 1);
}

static int fill_put(struct hd_save *save)
{
    struct hd_loop *loop = save->loop;
    struct hd_slice run_id;
    size_t id, parent;
    int err = hd_checkpoint_state_write(&loop->live, &save->checkpoint);

    if (!err)
        err = write_metadata(loop, &save->metadata, &save->ids, &run_id);
    if (!err)
        err = hd_save_pack_values(&save->packed, &loop->live, loop->saved_versions, loop->tracker,
                                  NULL);
    if (!err)
        err = append_id(&save->ids, loop->live.id, &id);
    if (!err)
        err = append_id(&save->ids, loop->saved_id, &parent);
    if (err)
        return err;
    save->packed.outline.run_id = hd_slice(save->ids.ptr, run_id.len);
    save->extras =
        (struct hd_put_extras){(const struct hd_growth *const *)save->packed.growths,
                               &save->packed.outline, &loop->chain, loop->run->options.guard};
    save->put =
        (struct heddle_checkpoint){.thread = thread_of(loop),
                                   .ns = hd_to_public(hd_loop_place(loop)),
                                   .id = hd_to_public(hd_slice_cstr(save->ids.ptr + id)),
                                   .parent = hd_to_public(hd_slice_cstr(save->ids.ptr + parent)),
                                   .checkpoint = hd_to_public(hd_buf_slice(&save->checkpoint)),
                                   .metadata = hd_to_public(hd_buf_slice(&save->metadata)),
                                   .values = save->packed.values,
                                   .value_count = save->packed.value_count};
    return 0;
}

int hd_save_checkpoint(struct hd_loop *loop)
{
    struct hd_save *save = new_save(loop, PUT);
    int err = save ? fill_put(save) : HD_ENOMEM;

    if (err) {
        if (save)
            free_save(save);
        return err;
    }
    for (size_t i = 0; i < loop->graph->channel_count; i++) {
        hd_val_unref(loop->saved_versions[i]);
        loop->saved_versions[i] = hd_val_ref(loop->live.versions[i]);
    }
    if (save->engine->is_direct)
        store_now(save);
    else if (hd_failed(&loop->save_failure))
        free_save(save); /* its parent was not stored */
    else
        call_store(save);
    return 0;
}

static bool is_at_origin(const struct hd_loop *loop)
{
    return hd_slice_eq(hd_slice(loop->origin->id.data, loop->origin->id.len),
                       hd_slice_cstr(loop->live.id));
}

static int fill_writes(struct hd_save *save, const char *task, const char *path,
                       const struct hd_write *list, size_t count)
{
    struct hd_loop *loop = save->loop;
    size_t id, task_id, task_path;
    int err = hd_save_pack_writes(&save->packed, loop->graph, list, count);

    if (loop->origin && is_at_origin(loop))
        loop->origin->is_touched = true;
    if (!err)
        err = append_id(&save->ids, loop->live.id, &id);
    if (!err)
        err = append_id(&save->ids, task, &task_id);
    if (!err)
        err = append_id(&save->ids, path, &task_path);
    if (err)
        return err;
    save->writes =
        (struct heddle_writes){.thread = thread_of(loop),
                               .ns = hd_to_public(hd_loop_place(loop)),
                               .checkpoint_id = hd_to_public(hd_slice_cstr(save->ids.ptr + id)),
                               .task_id = hd_to_public(hd_slice_cstr(save->ids.ptr + task_id)),
                               .task_path = hd_to_public(hd_slice_cstr(save->ids.ptr + task_path)),
                               .values = save->packed.values,
                               .value_count = save->packed.value_count};
    return 0;
}

int hd_save_writes(struct hd_loop *loop, const char *task, const char *path,
                   const struct hd_write *list, size_t count)
{
    struct hd_save *save = new_save(loop, WRITES);
    int err = save ? fill_writes(save, task, path, list, count) : HD_ENOMEM;

    if (err) {
        if (save)
            free_save(save);
        return err;
    }
    if (save->engine->is_direct)
        store_now(save);
    else
        call_store(save);
    return 0;
}

/* ---- the engine ------------------------------------------------------- */

int hd_engine_create(struct heddle *store, uv_loop_t *loop, bool is_direct, struct hd_engine **out)
{
    struct hd_engine *engine = hd_calloc(1, sizeof(*engine));

    if (!engine)
        return HD_ENOMEM;
    engine->store = store;
    engine->uv = loop;
    engine->is_direct = is_direct;
    engine->list_cache = hd_list_cache_create(HD_ENGINE_LIST_CACHE);
    if (!engine->list_cache || uv_mutex_init(&engine->lock) != 0)
        goto free_engine;
    if (uv_async_init(loop, &engine->async, on_async) != 0)
        goto destroy_lock;
    uv_prepare_init(loop, &engine->sender); /* cannot fail */
    engine->async.data = engine->sender.data = engine;
    engine->open_handles = 2;
    uv_unref((uv_handle_t *)&engine->async);
    uv_unref((uv_handle_t *)&engine->sender); /* calls in flight reference `async` */
    *out = engine;
    return 0;

destroy_lock:
    uv_mutex_destroy(&engine->lock);
free_engine:
    hd_list_cache_destroy(engine->list_cache);
    hd_free(engine);
    return HD_EIO;
}

static void on_close(uv_handle_t *handle)
{
    struct hd_engine *engine = handle->data;

    if (--engine->open_handles > 0)
        return;
    uv_mutex_destroy(&engine->lock);
    hd_list_cache_destroy(engine->list_cache);
    for (struct hd_save *save = engine->spare, *next; save; save = next) {
        next = save->next;
        destroy_save(save);
    }
    hd_free(engine);
}

struct hd_client *hd_engine_http(struct hd_engine *engine)
{
    struct hd_client *http = engine->http;

    if (!http && hd_client_create(engine->uv, &http))
        return NULL;
    engine->http = http;
    hd_client_freeze(http, engine->is_suspended);
    hd_client_set_outgoing(http, engine->outgoing);
    return http;
}

void hd_engine_set_patience(struct hd_engine *engine, struct hd_patience *patience)
{
    engine->patience = patience;
}

void hd_engine_suspend(struct hd_engine *engine, bool is_suspended)
{
    engine->is_suspended = is_suspended;
    if (engine->http)
        hd_client_freeze(engine->http, is_suspended);
    while (!is_suspended && engine->parked)
        hd_loop_leave_park(engine->parked);
}

void hd_engine_set_outgoing(struct hd_engine *engine, const struct hd_outgoing *outgoing)
{
    engine->outgoing = outgoing;
}

void hd_engine_destroy(struct hd_engine *engine)
{
    if (!engine)
        return;
    hd_client_destroy(engine->http);
    uv_close((uv_handle_t *)&engine->async, on_close);
    uv_close((uv_handle_t *)&engine->sender, on_close);
}
