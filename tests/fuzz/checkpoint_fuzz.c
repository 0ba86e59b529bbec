/*
 * libFuzzer: arbitrary stored data. The input is a checkpoint with its metadata, values and writes,
 * as another program might have written them. It is put into a store and read by the engine, which
 * may refuse it but must not crash.
 *
 * Fields are separated by 0xff, a byte that is not in UTF-8: checkpoint, metadata, then for each
 * channel a value and a write.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <heddle.h>

#include "graph/engine/failure.h"
#include "graph/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 16, SEPARATOR = 0xff };

static const char declaration[] =
    "{\"name\":\"fuzz\",\"state\":{\"messages\":{\"reducer\":\"messages\"},\"last\":{},"
    "\"sum\":{\"reducer\":\"add\",\"type\":\"number\"},\"seen\":{\"reducer\":\"topic\","
    "\"accumulate\":true}},"
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"last\":1}},"
    "\"b\":{\"kind\":\"interrupt\",\"ask\":[\"?\"],\"update\":{\"last\":\"{{answers[0]}}\"}},"
    "\"c\":{\"kind\":\"set\",\"update\":{\"sum\":2}}},"
    "\"edges\":[[\"__start__\",\"a\"],[\"__start__\",\"b\"],{\"from\":[\"a\",\"b\"],\"to\":\"c\"}]"
    "}";

static const char *const channels[] = {
    "messages",    "last",       "sum",           "seen",       "__start__", "__pregel_tasks",
    "branch:to:a", "join:a+b:c", "__interrupt__", "__resume__", "__error__", "branch:to:b"};

static struct heddle_bytes text(const char *s)
{
    return (struct heddle_bytes){s, strlen(s)};
}

struct input {
    struct heddle_bytes fields[FIELDS];
    size_t count;
};

static struct input split(const uint8_t *data, size_t size)
{
    struct input in = {.count = 0};

    while (in.count < FIELDS) {
        const uint8_t *end = size ? memchr(data, SEPARATOR, size) : NULL;
        size_t len = end ? (size_t)(end - data) : size;

        in.fields[in.count++] = (struct heddle_bytes){data, len};
        if (!end)
            break;
        data = end + 1;
        size -= len + 1;
    }
    return in;
}

static int store_it(struct heddle *store, const struct input *in)
{
    struct heddle_value values[FIELDS], writes[FIELDS];
    size_t value_count = 0, write_count = 0;
    struct heddle_checkpoint put = {.thread.id = text("t"),
                                    .id = text("1f000000-0000-6000-8000-000000000000"),
                                    .checkpoint = in->fields[0],
                                    .metadata = in->count > 1 ? in->fields[1] : text("{}")};
    struct heddle_writes pending = {
        .thread.id = text("t"), .checkpoint_id = put.id, .task_id = text("task")};

    for (size_t i = 2; i < in->count; i++) {
        const char *channel = channels[(i / 2) % (sizeof(channels) / sizeof(channels[0]))];
        struct heddle_value value = {text(channel), text("hd1"), in->fields[i]};

        if (i % 2)
            writes[write_count++] = value;
        else
            values[value_count++] = value;
    }
    put.values = values;
    put.value_count = value_count;
    put.new_versions = text("{\"messages\":\"1\",\"last\":\"1\",\"sum\":\"1\",\"seen\":\"1\","
                            "\"__start__\":\"1\",\"__pregel_tasks\":\"1\",\"join:a+b:c\":\"1\"}");
    pending.values = writes;
    pending.value_count = write_count;
    return heddle_put(store, &put, NULL) ? -1 : heddle_put_writes(store, &pending, NULL);
}

static int look(void *ctx, const struct hd_val *state)
{
    (void)ctx;
    (void)state;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hd_graph *graph;
    struct input in = split(data, size);
    struct hd_failure failure = {0};
    struct hd_address at = {.thread = HD_S("t")};
    struct heddle *store;
    struct hd_val *state;

    if (!graph && hd_graph_read(HD_S(declaration), &graph, NULL) != 0)
        abort();
    if (heddle_open(&store, "memory:", NULL) != 0)
        abort();
    at.store = store;
    at.graph = graph;
    if (store_it(store, &in) == 0) {
        if (hd_state_get(&at, true, &state, &failure) == 0)
            hd_val_unref(state);
        hd_failure_fini(&failure);
        memset(&failure, 0, sizeof(failure));
        if (hd_state_history(&at, -1, HD_S(""), HD_S(""), look, NULL, &failure) != 0 &&
            !hd_failed(&failure))
            abort(); /* an error without a text */
        hd_failure_fini(&failure);
    }
    heddle_close(store);
    return 0;
}
