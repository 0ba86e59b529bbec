/* Converts stored checkpoints for a runtime: to the form that its own saver would have read. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "graph/engine/ns.h"
#include "graph/state/runtime_migrate_tuple.h"
#include "graph/state/state_internal.h"
#include "graph/state/worker_graph.h"
#include "heddle.h"
#include "store/bytes.h"

#define MAX_VALUE ((size_t)256 << 20)

struct tuple_crossing {
    const struct hd_address *at;
    const struct heddle_tuple *tuple;
    struct hd_arena *arena;
    struct heddle_tuple *copy; /* NULL: no change needed so far */
    struct heddle_error *fault;
};

static struct heddle_tuple *copy_of(struct tuple_crossing *c)
{
    if (!c->copy)
        c->copy = hd_arena_alloc(c->arena, sizeof(*c->copy));
    else
        return c->copy;
    if (c->copy)
        *c->copy = *c->tuple;
    return c->copy;
}

/* ---- values of other runtimes ----------------------------------------- */

static const char *runtime_of(const struct hd_graph *graph)
{
    return graph->ids == HD_IDS_JS ? "js" : graph->is_foreign ? "python" : "";
}

static bool is_common(struct hd_slice type)
{
    static const char *const types[] = {"hd1", "null", "empty", "bytes", "bytearray"};

    for (size_t i = 0; i < HD_COUNT(types); i++) {
        if (hd_slice_eq(type, hd_slice_cstr(types[i])))
            return true;
    }
    return false;
}

/* Only a record begins with this text: quotes within strings are escaped. */
static bool has_foreign(struct hd_slice text, const char *own)
{
    static const char mark[] = "{\"$\":\"foreign\",\"type\":\"";
    const char *at = text.ptr, *end = text.ptr + text.len;

    while (at < end && (at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
        at += sizeof(mark) - 1;
        if ((size_t)(end - at) < strlen(own) || memcmp(at, own, strlen(own)) != 0)
            return true;
    }
    return false;
}

static int check_value(const struct tuple_crossing *c, const struct heddle_value *value)
{
    const char *own = c->at->graph->ids == HD_IDS_JS ? "json\"" : "msgpack\"";
    struct hd_slice type = hd_from_public(value->type);

    if (is_common(type) &&
        !(hd_slice_eq(type, HD_S("hd1")) && has_foreign(hd_from_public(value->data), own)))
        return 0;
    return hd_error_set(c->fault, HD_EUNSUPPORTED,
                        "channel '%.*s' has a value that only the runtime which wrote it can read",
                        (int)(value->channel.len < 100 ? value->channel.len : 100),
                        (const char *)value->channel.data);
}

static int check_values(const struct tuple_crossing *c)
{
    int err = 0;

    for (size_t i = 0; i < c->tuple->value_count && !err; i++)
        err = check_value(c, &c->tuple->values[i]);
    for (size_t i = 0; i < c->tuple->write_count && !err; i++)
        err = check_value(c, &c->tuple->writes[i].value);
    return err;
}

/* ---- values with another form in Python ------------------------------- */

static bool is_undefined(const struct heddle_value *value)
{
    return hd_slice_eq(hd_from_public(value->data), HD_S("{\"$\":\"undefined\"}"));
}

/* True for a join's names in JavaScript's form: an array, or [array, is_finished]. */
static bool is_array_of_join(const struct heddle_value *value)
{
    struct hd_slice text = hd_from_public(value->data);

    return hd_slice_starts(hd_from_public(value->channel), HD_S("join:")) &&
           hd_slice_eq(hd_from_public(value->type), HD_S("hd1")) && text.len > 1 &&
           text.ptr[0] == '[' && text.ptr[1] != '{';
}

static void put_set(struct hd_jw *jw, hd_json_val names)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "$", HD_S("set"));
    hd_jw_put_val(jw, "items", names);
    hd_jw_object_end(jw);
}

static int write_join(hd_json_val seen, struct hd_buf *out)
{
    struct hd_json_iter it = hd_json_iter(seen);
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    if (hd_json_next(&it) && hd_json_is_array(it.val)) {
        hd_jw_array(&jw);
        put_set(&jw, it.val);
        while (hd_json_next(&it))
            hd_jw_val(&jw, it.val);
        hd_jw_array_end(&jw);
    } else {
        put_set(&jw, seen);
    }
    return hd_jw_finish(&jw);
}

static int migrate_join(struct tuple_crossing *c, struct heddle_value *value)
{
    struct hd_json json;
    struct hd_slice text = {NULL, 0};
    struct hd_buf out;
    int err = hd_json_parse(&json, hd_from_public(value->data), c->fault);

    if (err)
        return err;
    hd_buf_init(&out, MAX_VALUE);
    err = write_join(hd_json_root(&json), &out);
    if (!err)
        err = hd_arena_copy(c->arena, hd_buf_slice(&out), &text);
    if (!err)
        value->data = hd_to_public(text);
    hd_buf_fini(&out);
    hd_json_fini(&json);
    return err;
}

/* Converts arrays to sets, and drops channels that are undefined in JavaScript. */
static int migrate_values(struct tuple_crossing *c)
{
    const struct heddle_tuple *tuple = c->tuple;
    struct heddle_value *values;
    size_t count = 0, odd = 0;
    int err = 0;

    for (size_t i = 0; i < tuple->value_count; i++)
        odd += is_undefined(&tuple->values[i]) || is_array_of_join(&tuple->values[i]);
    if (odd == 0)
        return 0;
    values = hd_arena_calloc(c->arena, tuple->value_count, sizeof(*values));
    if (!values || !copy_of(c))
        return HD_ENOMEM;
    for (size_t i = 0; i < tuple->value_count && !err; i++) {
        if (is_undefined(&tuple->values[i]))
            continue;
        values[count] = tuple->values[i];
        if (is_array_of_join(&values[count]))
            err = migrate_join(c, &values[count]);
        count++;
    }
    c->copy->values = values;
    c->copy->value_count = count;
    return err;
}

/* ---- writes ----------------------------------------------------------- */

static int by_task(const void *a, const void *b)
{
    const struct heddle_write *x = a, *y = b;
    int order = hd_slice_cmp(hd_from_public(x->task_id), hd_from_public(y->task_id));

    return order ? order : x->idx < y->idx ? -1 : x->idx > y->idx;
}

static int migrate_question(struct tuple_crossing *c, const struct hd_pending_write *pending_write,
                            struct heddle_write *write)
{
    struct hd_slice text = {NULL, 0};
    struct hd_buf out;
    int err;

    hd_buf_init(&out, MAX_VALUE);
    err = hd_val_write(&out, pending_write->write.val);
    if (!err)
        err = hd_arena_copy(c->arena, hd_buf_slice(&out), &text);
    if (!err) {
        write->value.data = hd_to_public(text);
        write->value.type = hd_to_public(HD_S("hd1"));
    }
    hd_buf_fini(&out);
    return err;
}

static int take_write(struct tuple_crossing *c, const struct hd_pending_write *pending_write,
                      struct heddle_write *write)
{
    struct hd_slice task = {NULL, 0};
    int err;

    *write = c->tuple->writes[pending_write->row];
    if (hd_slice_eq(hd_from_public(write->task_id), hd_slice_cstr(pending_write->task)))
        return 0;
    err = hd_arena_copy(c->arena, hd_slice_cstr(pending_write->task), &task);
    if (err)
        return err;
    write->task_id = hd_to_public(task);
    return pending_write->write.channel == HD_W_INTERRUPT
               ? migrate_question(c, pending_write, write)
               : 0;
}

static int take_writes(struct tuple_crossing *c, const struct hd_pending_writes *pending_writes)
{
    const struct heddle_tuple *tuple = c->tuple;
    struct heddle_write *writes = hd_arena_calloc(c->arena, tuple->write_count, sizeof(*writes));
    size_t count = 0;
    int err = writes && copy_of(c) ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < pending_writes->count && !err; i++)
        err = take_write(c, &pending_writes->list[i], &writes[count++]);
    /* Writes without a valid task id were not loaded: copy them. */
    for (size_t i = 0; i < tuple->write_count && !err; i++) {
        if (tuple->writes[i].task_id.len != HD_UUID_LEN)
            writes[count++] = tuple->writes[i];
    }
    if (err)
        return err;
    if (count > 1)
        qsort(writes, count, sizeof(*writes), by_task);
    c->copy->writes = writes;
    c->copy->write_count = count;
    return 0;
}

static int has_states(const void *ctx, struct hd_slice ns, bool *out)
{
    const struct hd_address *at = ctx;
    struct heddle_error error = {0};
    char *place = hd_ns_join(at->root, ns, NULL);
    struct heddle_bytes thread = hd_to_public(at->thread),
                        stored = hd_to_public(hd_slice_cstr(place ? place : ""));
    const struct heddle_query query = {.principal = hd_to_public(at->principal),
                                       .thread = &thread,
                                       .ns = &stored,
                                       .limit = 1,
                                       .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *found;
    struct heddle_list *list;
    int err = place ? heddle_list_open(at->store, &query, &list, &error) : HD_ENOMEM;

    if (!err) {
        err = heddle_list_next(list, &found, &error);
        *out = !err;
        err = err == HEDDLE_ENOTFOUND ? 0 : err;
        heddle_list_close(list);
    }
    hd_free(place);
    return err;
}

static bool has_changed(const struct hd_pending_writes *pending_writes,
                        const struct heddle_tuple *tuple)
{
    size_t known = 0;

    for (size_t i = 0; i < tuple->write_count; i++)
        known += tuple->writes[i].task_id.len == HD_UUID_LEN;
    if (pending_writes->count != known)
        return true;
    for (size_t i = 0; i < pending_writes->count; i++) {
        if (!hd_slice_eq(hd_from_public(tuple->writes[pending_writes->list[i].row].task_id),
                         hd_slice_cstr(pending_writes->list[i].task)))
            return true;
    }
    return false;
}

/* The tasks follow from the channel versions, so the values of the state are not loaded. */
static int migrate_found(struct tuple_crossing *c, struct hd_found *found,
                         const struct hd_val *metadata)
{
    const struct hd_runtime_migrate_rules rules = {
        .is_strict = true, .has_states = has_states, .ctx = c->at};
    int64_t step = -1;
    int err;

    found->live.skips_state = true;
    (void)hd_val_get_int(hd_val_get(metadata, HD_S("step")), &step);
    err = hd_checkpoint_state_load(&found->live, &found->pending_writes, NULL, c->tuple, c->fault);
    if (!err)
        err = hd_runtime_migrate_writes(&found->live, hd_slice_cstr(found->ns), step + 1,
                                        hd_runtime_migrate_writer(metadata), &rules,
                                        &found->pending_writes, c->fault);
    if (!err && has_changed(&found->pending_writes, c->tuple))
        err = take_writes(c, &found->pending_writes);
    return err;
}

/* A graph that a node calls by itself is unknown: its structure is derived from the checkpoint. */
static int migrate_writes(struct tuple_crossing *c, const struct hd_val *metadata)
{
    struct hd_address at = *c->at;
    struct hd_failure failure = {0};
    struct hd_graph *open;
    struct hd_found found;
    int err = hd_worker_graph_create(hd_slice("", 0), at.graph->ids, &open, c->fault);

    if (err)
        return err;
    if (at.ns.len > 0 && !hd_state_knows_ns(at.graph, at.ns))
        at.graph = open;
    err = hd_found_init(&found, &at, &failure);
    if (!err) {
        err = hd_found_fit(&found, c->tuple, &failure);
        if (!err)
            err = migrate_found(c, &found, metadata);
        hd_found_fini(&found);
    }
    if (err && failure.text)
        hd_error_set(c->fault, err, "%s", failure.text);
    hd_failure_fini(&failure);
    hd_graph_destroy(open);
    return err;
}

/* ---- all -------------------------------------------------------------- */

/* True if a task may belong to the other runtime. JavaScript's ids are UUIDs of version 5. */
static bool has_others(const struct heddle_tuple *tuple, enum hd_graph_ids reader)
{
    for (size_t i = 0; i < tuple->write_count; i++) {
        struct hd_slice id = hd_from_public(tuple->writes[i].task_id);

        if (id.len == HD_UUID_LEN && !hd_slice_eq(id, HD_S(HD_NULL_TASK)) &&
            (reader == HD_IDS_JS || id.ptr[14] == '5'))
            return true;
    }
    return false;
}

int hd_runtime_migrate_tuple(const struct hd_address *at, const struct heddle_tuple *tuple,
                             struct hd_arena *arena, const struct heddle_tuple **out,
                             struct heddle_error *fault)
{
    struct tuple_crossing c = {.at = at, .tuple = tuple, .arena = arena, .fault = fault};
    struct hd_slice reader = hd_slice_cstr(runtime_of(at->graph));
    struct hd_val *metadata = NULL;
    bool is_foreign;
    int err = hd_val_parse_json(hd_from_public(tuple->metadata), &metadata, fault);

    if (err)
        return err;
    is_foreign = !hd_slice_eq(hd_val_get_string(hd_val_get(metadata, HD_S("runtime"))), reader);
    if (is_foreign)
        err = check_values(&c);
    if (!err && at->graph->ids == HD_IDS_PYTHON)
        err = migrate_values(&c);
    if (!err && (has_others(tuple, at->graph->ids) ||
                 hd_runtime_migrate_writer(metadata) != at->graph->ids))
        err = migrate_writes(&c, metadata);
    hd_val_unref(metadata);
    *out = c.copy ? c.copy : tuple;
    return err;
}
