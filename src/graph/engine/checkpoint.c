/* Reads and writes stored checkpoints (v4). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/list_tracker.h"
#include "graph/engine/save.h"
#include "graph/engine/writes.h"
#include "store/bytes.h"
#include "store/codec/canon.h"
#include "value/val.h"

static int load_versions(struct hd_checkpoint_state *live, hd_json_val json,
                         struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(json);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        size_t channel = hd_graph_find_channel(live->graph, it.key);
        struct hd_val *version;

        err = hd_val_from_json(it.val, &version, fault);
        if (err)
            break;
        if (channel != HD_GRAPH_END) {
            live->versions[channel] = version;
            continue;
        }
        live->other_versions = hd_val_with(
            live->other_versions ? live->other_versions : hd_val_object(), it.key, version);
        err = live->other_versions ? 0 : HD_ENOMEM;
    }
    return err;
}

static size_t find_row(const struct hd_graph *graph, struct hd_slice name)
{
    if (hd_slice_eq(name, HD_S("__input__")))
        return hd_versions_seen_input(graph);
    if (hd_slice_eq(name, HD_S("__interrupt__")))
        return hd_versions_seen_interrupt(graph);
    return hd_graph_find_node(graph, name);
}

static int load_row(struct hd_checkpoint_state *live, struct hd_versions_seen *seen,
                    hd_json_val json, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(json);
    int err = 0;

    seen->is_there = true;
    while (!err && hd_json_next(&it)) {
        size_t channel = hd_graph_find_channel(live->graph, it.key);
        struct hd_val *version;

        if (channel == HD_GRAPH_END)
            continue; /* the graph no longer has this channel */
        err = hd_val_from_json(it.val, &version, fault);
        if (!err)
            err = hd_versions_seen_put(seen, channel, version);
        if (!err)
            hd_val_unref(version);
    }
    return err;
}

static int load_seen(struct hd_checkpoint_state *live, hd_json_val json, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(json);
    int err = 0;

    while (!err && hd_json_next(&it)) {
        size_t row = find_row(live->graph, it.key);
        struct hd_val *other;

        if (row != HD_GRAPH_END) {
            err = load_row(live, &live->seen[row], it.val, fault);
            continue;
        }
        err = hd_val_from_json(it.val, &other, fault);
        if (err)
            break;
        live->other_seen =
            hd_val_with(live->other_seen ? live->other_seen : hd_val_object(), it.key, other);
        err = live->other_seen ? 0 : HD_ENOMEM;
    }
    return err;
}

static void load_updated(struct hd_checkpoint_state *live, hd_json_val json)
{
    struct hd_json_iter it = hd_json_iter(json);

    live->has_updated = hd_json_is_array(json);
    while (hd_json_next(&it)) {
        size_t channel = hd_graph_find_channel(live->graph, hd_json_string(it.val));

        if (channel != HD_GRAPH_END)
            live->updated[channel] = true;
    }
}

static int load_head(struct hd_checkpoint_state *live, struct hd_slice text,
                     struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val root;
    struct hd_slice ts;
    int err = hd_json_parse(&json, text, fault);

    if (err)
        return err;
    root = hd_json_root(&json);
    ts = hd_json_string(hd_json_get(root, HD_S("ts")));
    if (ts.len < sizeof(live->ts)) {
        memcpy(live->ts, ts.ptr, ts.len);
        live->ts[ts.len] = '\0';
    }
    err = load_versions(live, hd_json_get(root, HD_S("channel_versions")), fault);
    if (!err)
        err = load_seen(live, hd_json_get(root, HD_S("versions_seen")), fault);
    load_updated(live, hd_json_get(root, HD_S("updated_channels")));
    hd_json_fini(&json);
    return err;
}

/* Wraps a value that another serializer encoded in a record. */
static int load_opaque(const struct heddle_value *value, struct hd_val **out)
{
    struct hd_slice type = hd_from_public(value->type);
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_ENGINE_MAX_VALUE);
    err = hd_canon_base64(&text, hd_from_public(value->data));
    *out = NULL;
    if (!err && hd_slice_eq(type, HD_S("bytes")))
        *out = hd_val_with(hd_val_record(HD_KIND_BYTES), HD_S("v"),
                           hd_val_string(hd_buf_slice(&text)));
    else if (!err)
        *out = hd_val_with(
            hd_val_with(hd_val_record(HD_KIND_FOREIGN), HD_S("type"), hd_val_string(type)),
            HD_S("v"), hd_val_string(hd_buf_slice(&text)));
    hd_buf_fini(&text);
    return *out ? 0 : err ? err : HD_ENOMEM;
}

/*
 * The engine reads only the canonical encoding; `null` is Python's absent value. For a graph whose
 * code runs elsewhere, values in other encodings are loaded as records for display.
 */
static int load_value(const struct hd_graph *graph, const struct heddle_value *value,
                      struct hd_val **out, struct heddle_error *fault)
{
    struct hd_slice type = hd_from_public(value->type);

    if (hd_slice_eq(type, HD_S("hd1")))
        return hd_val_parse(hd_from_public(value->data), out, fault);
    if (hd_slice_eq(type, HD_S("null"))) {
        *out = hd_val_null();
        return 0;
    }
    if (graph->is_foreign)
        return load_opaque(value, out);
    return hd_error_set(
        fault, HD_EUNSUPPORTED,
        "channel %.*s is stored as %.*s, which only the program that wrote it can read",
        (int)value->channel.len, (const char *)value->channel.data, (int)type.len, type.ptr);
}

/* A value without data is a list that the loop has cached; the store did not return it. */
static int load_list(const struct hd_graph *graph, const struct heddle_value *value,
                     struct hd_list_tracker *tracker, struct hd_val **out,
                     struct heddle_error *fault)
{
    int err;

    if (!value->data.data && value->data.len > 0) {
        *out = hd_val_ref(tracker->list);
        return 0;
    }
    err = load_value(graph, value, out, fault);
    if (!err && hd_slice_eq(hd_from_public(value->type), HD_S("hd1"))) {
        err = hd_list_tracker_load(tracker, *out, hd_from_public(value->data));
        if (err)
            hd_val_unref(*out);
    }
    return err;
}

static int load_values(struct hd_checkpoint_state *live, struct hd_list_tracker *tracker,
                       const struct heddle_tuple *tuple, struct heddle_error *fault)
{
    for (size_t i = 0; i < tuple->value_count; i++) {
        const struct heddle_value *value = &tuple->values[i];
        size_t channel = hd_graph_find_channel(live->graph, hd_from_public(value->channel));
        struct hd_val *val;
        int err;

        if (channel == HD_GRAPH_END || !live->versions[channel] ||
            (live->skips_state && channel < live->graph->state_count))
            continue;
        err = tracker ? load_list(live->graph, value, &tracker[channel], &val, fault)
                      : load_value(live->graph, value, &val, fault);
        if (err)
            return err;
        /* JavaScript stores `undefined` for an empty channel. */
        if (hd_val_kind(val) != HD_KIND_UNDEFINED)
            err = hd_channel_restore(&live->channels[channel], val, fault);
        hd_val_unref(val);
        /* The channel types of a foreign graph are unknown: skip a value that does not fit. */
        if (err && !(err == HD_EINVAL && live->graph->is_foreign))
            return err;
    }
    return 0;
}

static int load_writes(const struct hd_checkpoint_state *live,
                       struct hd_pending_writes *pending_writes, const struct heddle_tuple *tuple,
                       struct heddle_error *fault)
{
    for (size_t i = 0; i < tuple->write_count; i++) {
        const struct heddle_write *stored = &tuple->writes[i];
        struct hd_write write = {.channel = 0};
        struct hd_slice name = hd_from_public(stored->value.channel);
        char task[HD_UUID_SIZE] = {0};
        int err;

        /* Ids of another length are not task ids of the engine. */
        if (stored->task_id.len != HD_UUID_LEN)
            continue;
        memcpy(task, stored->task_id.data, HD_UUID_LEN);
        err = load_value(live->graph, &stored->value, &write.val, fault);
        if (err)
            return err;
        write.channel = hd_write_channel(live->graph, name);
        if (write.channel == HD_W_OTHER)
            write.name = hd_val_string(name);
        err = hd_pending_writes_add(pending_writes, task, &write);
        hd_val_unref(write.val);
        hd_val_unref(write.name);
        if (err)
            return err;
        pending_writes->list[pending_writes->count - 1].row = i;
    }
    return 0;
}

int hd_checkpoint_state_load(struct hd_checkpoint_state *live,
                             struct hd_pending_writes *pending_writes,
                             struct hd_list_tracker *tracker, const struct heddle_tuple *tuple,
                             struct heddle_error *fault)
{
    struct hd_slice id = hd_from_public(tuple->id);
    int err;

    if (id.len != HD_UUID_LEN)
        return hd_error_set(fault, HD_EUNSUPPORTED, "checkpoint id %.*s is not a UUID",
                            (int)(id.len < 64 ? id.len : 64), id.ptr);
    memcpy(live->id, id.ptr, id.len);
    live->id[id.len] = '\0';
    live->ts[0] = '\0';
    err = load_head(live, hd_from_public(tuple->checkpoint), fault);
    if (!err)
        err = load_values(live, tracker, tuple, fault);
    if (!err && pending_writes)
        err = load_writes(live, pending_writes, tuple, fault);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static void put_versions(struct hd_jw *jw, const struct hd_checkpoint_state *live)
{
    hd_jw_object(jw);
    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (live->versions[i]) {
            hd_jw_key(jw, live->graph->channels[i].name);
            hd_val_put_rendered(jw, live->versions[i]);
        }
    }
    for (size_t i = 0; i < hd_val_count(live->other_versions); i++) {
        struct hd_val *key, *version = hd_val_member(live->other_versions, i, &key);

        hd_jw_key(jw, hd_val_get_string(key));
        hd_val_put_rendered(jw, version);
    }
    hd_jw_object_end(jw);
}

static struct hd_slice row_name(const struct hd_graph *graph, size_t row)
{
    if (row == hd_versions_seen_input(graph))
        return HD_S("__input__");
    if (row == hd_versions_seen_interrupt(graph))
        return HD_S("__interrupt__");
    return graph->nodes[row].name;
}

static void put_seen(struct hd_jw *jw, const struct hd_checkpoint_state *live)
{
    const struct hd_graph *graph = live->graph;

    hd_jw_object(jw);
    for (size_t row = 0; row < graph->node_count + 2; row++) {
        const struct hd_versions_seen *seen = &live->seen[row];

        if (!seen->is_there)
            continue;
        hd_jw_key(jw, row_name(graph, row));
        hd_jw_object(jw);
        for (size_t i = 0; i < seen->count; i++) {
            hd_jw_key(jw, graph->channels[seen->list[i].channel].name);
            hd_val_put_rendered(jw, seen->list[i].version);
        }
        hd_jw_object_end(jw);
    }
    for (size_t i = 0; i < hd_val_count(live->other_seen); i++) {
        struct hd_val *key, *other = hd_val_member(live->other_seen, i, &key);

        hd_jw_key(jw, hd_val_get_string(key));
        hd_val_put_rendered(jw, other);
    }
    hd_jw_object_end(jw);
}

static int by_name(const void *a, const void *b)
{
    const struct hd_slice *x = a, *y = b;

    return hd_slice_cmp(*x, *y);
}

/* Sorted by name, as Python writes it. */
static void put_updated(struct hd_jw *jw, const struct hd_checkpoint_state *live)
{
    struct hd_slice few[64], *names = few;
    size_t count = 0;

    if (!live->has_updated) {
        hd_jw_null(jw);
        return;
    }
    if (live->graph->channel_count > HD_COUNT(few))
        names = hd_malloc(live->graph->channel_count * sizeof(*names));
    if (!names) {
        jw->err = HD_ENOMEM;
        return;
    }
    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (live->updated[i])
            names[count++] = live->graph->channels[i].name;
    }
    qsort(names, count, sizeof(*names), by_name);
    hd_jw_array(jw);
    for (size_t i = 0; i < count; i++)
        hd_jw_string(jw, names[i]);
    hd_jw_array_end(jw);
    if (names != few)
        hd_free(names);
}

int hd_checkpoint_state_write(const struct hd_checkpoint_state *live, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_int(&jw, "v", HD_CHECKPOINT_V);
    hd_jw_put_string(&jw, "ts", hd_slice_cstr(live->ts));
    hd_jw_put_string(&jw, "id", hd_slice_cstr(live->id));
    hd_jw_key(&jw, HD_S("channel_versions"));
    put_versions(&jw, live);
    hd_jw_key(&jw, HD_S("versions_seen"));
    put_seen(&jw, live);
    hd_jw_key(&jw, HD_S("updated_channels"));
    put_updated(&jw, live);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}
