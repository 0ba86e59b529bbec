/* Task ids. They equal LangGraph's, so that each can continue the other's threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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
#include "graph/engine/task.h"
#include "value/val.h"

#define PULL "__pregel_pull"
#define PUSH "__pregel_push"

/* ---- triggers --------------------------------------------------------- */

bool hd_checkpoint_state_has_unseen(const struct hd_checkpoint_state *live,
                                    const struct hd_node *node, size_t channel)
{
    const struct hd_versions_seen *seen = &live->seen[node->index];

    if (!hd_channel_is_available(&live->channels[channel]))
        return false;
    return !seen->is_there ||
           hd_version_after(live->versions[channel], hd_versions_seen_get(seen, channel));
}

static int by_name(const void *a, const void *b)
{
    const struct hd_slice *x = a, *y = b;

    return hd_slice_cmp(*x, *y);
}

/* All triggers of a node, sorted by name; `few` is used when they fit. */
static struct hd_slice *sorted_triggers(const struct hd_graph *graph, const struct hd_node *node,
                                        struct hd_slice *few, size_t room)
{
    struct hd_slice *names = few;

    if (node->trigger_count > room)
        names = hd_malloc(node->trigger_count * sizeof(*names));
    if (!names)
        return NULL;
    for (size_t i = 0; i < node->trigger_count; i++)
        names[i] = graph->channels[node->triggers[i]].name;
    qsort(names, node->trigger_count, sizeof(*names), by_name);
    return names;
}

static int append_triggers(struct hd_buf *out, const struct hd_graph *graph,
                           const struct hd_node *node)
{
    struct hd_slice few[16];
    struct hd_slice *names = sorted_triggers(graph, node, few, HD_COUNT(few));
    int err = names ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < node->trigger_count && !err; i++)
        err = hd_buf_append_slice(out, names[i]);
    if (names != few)
        hd_free(names);
    return err;
}

struct hd_val *hd_task_triggers(const struct hd_task *task)
{
    struct hd_slice few[16];
    struct hd_slice *names;
    struct hd_val *list = hd_val_list();

    if (task->push != HD_PULL)
        return hd_val_append(list, hd_val_cstr(PUSH));
    names = sorted_triggers(task->graph, task->node, few, HD_COUNT(few));
    for (size_t i = 0; names && i < task->node->trigger_count; i++)
        list = hd_val_append(list, hd_val_string(names[i]));
    if (!names) {
        hd_val_unref(list);
        return NULL;
    }
    if (names != few)
        hd_free(names);
    return list;
}

/* ---- ids -------------------------------------------------------------- */

/* Python: a hash of the checkpoint id, namespace, step, node, and triggers or index of the send. */
static int python_id(const struct hd_task *task, const struct hd_checkpoint_state *live,
                     struct hd_slice ns, int64_t step, char out[HD_UUID_SIZE])
{
    struct hd_slice name = task->node->name;
    struct hd_buf text;
    uint8_t id[16], hash[16];
    XXH128_canonical_t canonical;
    int err = HD_EINVAL;

    hd_buf_init(&text, (size_t)1 << 20);
    if (hd_uuid_parse(hd_slice_cstr(live->id), id))
        err = hd_buf_append(&text, id, sizeof(id));
    if (!err && ns.len > 0)
        err = hd_buf_append_slice(&text, ns);
    if (!err && ns.len > 0)
        err = hd_buf_append_byte(&text, '|');
    if (!err)
        err = hd_buf_append_slice(&text, name);
    if (!err)
        err = hd_buf_append_int(&text, step);
    if (!err)
        err = hd_buf_append_slice(&text, name);
    if (!err)
        err = hd_buf_append_slice(&text, task->push == HD_PULL ? HD_S(PULL) : HD_S(PUSH));
    if (!err && task->push != HD_PULL)
        err = hd_buf_append_int(&text, (int64_t)task->push);
    if (!err && task->push == HD_PULL)
        err = append_triggers(&text, live->graph, task->node);
    if (!err) {
        XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.ptr, text.len));
        memcpy(hash, canonical.digest, sizeof(hash));
        hd_uuid_format(hash, out);
    }
    hd_buf_fini(&text);
    return err;
}

static void put_int(struct hd_jw *jw, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", (long long)number);
    hd_jw_string(jw, hd_slice_cstr(text));
}

static void put_trigger(struct hd_jw *jw, const struct hd_task *task, size_t trigger)
{
    const struct hd_node *node = task->node;

    hd_jw_array(jw);
    if (trigger < node->trigger_count)
        hd_jw_string(jw, task->graph->channels[node->triggers[trigger]].name);
    hd_jw_array_end(jw);
}

/* JavaScript: a UUIDv5 in the namespace of the checkpoint id, of the same fields as JSON. */
int hd_task_js_id(const struct hd_task *task, const struct hd_checkpoint_state *live,
                  struct hd_slice ns, int64_t step, size_t trigger, char out[HD_UUID_SIZE])
{
    struct hd_slice name = task->node->name;
    struct hd_buf place, text;
    struct hd_jw jw;
    uint8_t id[16];
    int err = hd_uuid_parse(hd_slice_cstr(live->id), id) ? 0 : HD_EINVAL;

    hd_buf_init(&place, (size_t)1 << 20);
    hd_buf_init(&text, (size_t)1 << 22);
    if (!err && ns.len > 0)
        err = hd_buf_printf(&place, "%.*s|", (int)ns.len, ns.ptr);
    if (!err)
        err = hd_buf_append_slice(&place, name);
    hd_jw_init(&jw, &text);
    hd_jw_array(&jw);
    hd_jw_string(&jw, hd_buf_slice(&place));
    put_int(&jw, step);
    hd_jw_string(&jw, name);
    hd_jw_string(&jw, task->push == HD_PULL ? HD_S(PULL) : HD_S(PUSH));
    if (task->push == HD_PULL)
        put_trigger(&jw, task, trigger);
    else
        put_int(&jw, (int64_t)task->push);
    hd_jw_array_end(&jw);
    if (!err)
        err = hd_jw_finish(&jw);
    if (!err)
        err = hd_uuid_v5(id, hd_buf_slice(&text), out);
    hd_buf_fini(&place);
    hd_buf_fini(&text);
    return err;
}

int hd_task_id(const struct hd_task *task, const struct hd_checkpoint_state *live,
               struct hd_slice ns, int64_t step, enum hd_graph_ids ids, char out[HD_UUID_SIZE])
{
    const struct hd_node *node = task->node;
    size_t trigger = 0;

    if (ids != HD_IDS_JS)
        return python_id(task, live, ns, step, out);
    while (trigger < node->trigger_count &&
           !hd_checkpoint_state_has_unseen(live, node, node->triggers[trigger]))
        trigger++;
    return hd_task_js_id(task, live, ns, step, trigger, out);
}
