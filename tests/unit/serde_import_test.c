/* Worker graphs: their states as LangGraph shows them, and values as its serializers write them
 * (tests/data/foreign). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "graph/engine/failure.h"
#include "graph/engine/runtime_migrate.h"
#include "graph/engine/writes.h"
#include "graph/state/runtime_migrate_tuple.h"
#include "graph/state/state.h"
#include "graph/state/worker_graph.h"
#include "heddle.h"
#include "store/codec/canon.h"
#include "store/codec/serde_import.h"

#define MAX_FILE ((size_t)8 << 20)

/* ---- files ------------------------------------------------------------ */

static struct hd_json read_file(const char *name)
{
    const char *dir = getenv("HD_TEST_DATA");
    struct heddle_error fault = {0};
    struct hd_json json;
    struct hd_buf text;
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/foreign/%s", dir ? dir : "tests/data", name);
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    hd_buf_init(&text, MAX_FILE);
    assert_int_equal(hd_buf_reserve(&text, MAX_FILE / 2), 0);
    text.len = fread(text.ptr, 1, MAX_FILE / 2, file);
    fclose(file);
    if (hd_json_parse(&json, hd_buf_slice(&text), &fault))
        fail_msg("%s: %s", path, fault.text);
    hd_buf_fini(&text);
    return json;
}

static hd_json_val get(hd_json_val object, const char *name)
{
    return hd_json_get(object, hd_slice_cstr(name));
}

static struct hd_slice text_of(hd_json_val object, const char *name)
{
    return hd_json_string(get(object, name));
}

static hd_json_val element(hd_json_val list, size_t index)
{
    struct hd_json_iter it = hd_json_iter(list);

    for (size_t i = 0; i <= index; i++)
        assert_true(hd_json_next(&it));
    return it.val;
}

/* A decoder for the tests only: the files were not written by Heddle. */
static size_t decode(struct hd_slice base64, unsigned char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, held = 0;
    size_t len = 0;

    for (size_t i = 0; i < base64.len && base64.ptr[i] != '='; i++) {
        bits = (bits << 6 | (unsigned)(strchr(digits, base64.ptr[i]) - digits)) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[len++] = (unsigned char)(bits >> held);
        }
    }
    return len;
}

static void assert_same(struct hd_slice name, const char *what, struct hd_slice got,
                        hd_json_val expected)
{
    struct hd_json json;
    struct hd_buf text;

    assert_int_equal(hd_json_parse(&json, got, NULL), 0);
    if (!hd_json_equal(hd_json_root(&json), expected)) {
        hd_buf_init(&text, MAX_FILE);
        assert_int_equal(hd_json_write_val(&text, expected), 0);
        fprintf(stderr, "%.*s, %s\ngot:      %.*s\nexpected: %.*s\n", (int)name.len, name.ptr, what,
                (int)got.len, got.ptr, (int)text.len, text.ptr);
        hd_buf_fini(&text);
        hd_json_fini(&json);
        fail();
    }
    hd_json_fini(&json);
}

/* ---- values ----------------------------------------------------------- */

static void values_are_shown(const char *file)
{
    struct hd_json json = read_file(file);
    struct hd_json_iter it = hd_json_iter(hd_json_root(&json));
    size_t count = 0;

    for (; hd_json_next(&it); count++) {
        struct hd_slice base64 = text_of(it.val, "data");
        unsigned char *bytes = hd_malloc(base64.len + 1);
        struct hd_buf out;
        struct hd_jw jw;

        assert_non_null(bytes);
        hd_buf_init(&out, MAX_FILE);
        hd_jw_init(&jw, &out);
        if (!hd_serde_put(&jw, text_of(it.val, "type"),
                          hd_slice((char *)bytes, decode(base64, bytes))))
            fail_msg("%s is not shown", text_of(it.val, "name").ptr);
        assert_int_equal(hd_jw_finish(&jw), 0);
        assert_same(text_of(it.val, "name"), "shown", hd_buf_slice(&out), get(it.val, "shown"));
        hd_buf_fini(&out);
        hd_free(bytes);
    }
    assert_true(count >= 8);
    hd_json_fini(&json);
}

static void values_of_python_are_shown(void **unused)
{
    (void)unused;
    values_are_shown("values.json");
}

static void values_of_javascript_are_shown(void **unused)
{
    (void)unused;
    values_are_shown("values-js.json");
}

/* Truncated values are refused; those with a flipped bit are refused or shown as valid JSON. */
static void damaged_values_are_refused(void **unused)
{
    struct hd_json json = read_file("values.json");
    struct hd_json_iter it = hd_json_iter(hd_json_root(&json));

    (void)unused;
    while (hd_json_next(&it)) {
        struct hd_slice base64 = text_of(it.val, "data");
        unsigned char bytes[4096];
        size_t len;

        if (base64.len > sizeof(bytes))
            continue;
        len = decode(base64, bytes);
        for (size_t i = 0; i < len; i++) {
            unsigned char kept = bytes[i];
            struct hd_buf out;

            hd_buf_init(&out, MAX_FILE);
            assert_int_equal(hd_serde_msgpack(&out, hd_slice((char *)bytes, i), 0), HD_EINVAL);
            assert_int_equal(out.len, 0);
            for (int change = 1; change < 256; change <<= 1) {
                bytes[i] = (unsigned char)(kept ^ change);
                out.len = 0;
                if (hd_serde_msgpack(&out, hd_slice((char *)bytes, len), 0) == 0) {
                    struct hd_json shown;

                    if (hd_json_parse(&shown, hd_buf_slice(&out), NULL))
                        fail_msg("no JSON: %.*s", (int)out.len, out.ptr);
                    hd_json_fini(&shown);
                }
            }
            bytes[i] = kept;
            hd_buf_fini(&out);
        }
    }
    hd_json_fini(&json);
}

static void deep_values_are_refused(void **unused)
{
    char deep[4096];
    struct hd_buf out;

    (void)unused;
    hd_buf_init(&out, MAX_FILE);
    memset(deep, 0x91, sizeof(deep));
    assert_int_equal(hd_serde_msgpack(&out, hd_slice(deep, sizeof(deep)), 0), HD_EINVAL);
    assert_int_equal(hd_serde_json(&out, HD_S("{"), 0), HD_EINVAL);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
}

/* ---- stored values ---------------------------------------------------- */

static struct heddle_bytes bytes_of(struct hd_slice s)
{
    return (struct heddle_bytes){s.ptr, s.len};
}

struct values {
    struct heddle_value *list;
    size_t count;
    unsigned char *bytes;
};

static struct values read_values(hd_json_val list)
{
    struct values values = {hd_calloc(hd_json_size(list) + 1, sizeof(struct heddle_value)), 0,
                            hd_malloc(MAX_FILE)};
    struct hd_json_iter it = hd_json_iter(list);
    unsigned char *at = values.bytes;

    assert_non_null(values.list);
    assert_non_null(values.bytes);
    while (hd_json_next(&it)) {
        size_t len = decode(hd_json_string(element(it.val, 2)), at);

        values.list[values.count++] =
            (struct heddle_value){.channel = bytes_of(hd_json_string(element(it.val, 0))),
                                  .type = bytes_of(hd_json_string(element(it.val, 1))),
                                  .data = {at, len}};
        at += len;
    }
    return values;
}

static void free_values(struct values *values)
{
    hd_free(values->list);
    hd_free(values->bytes);
}

static void append(struct hd_buf *out, hd_json_val val)
{
    out->len = 0;
    assert_int_equal(hd_json_write_val(out, val), 0);
}

static void put_checkpoint(struct heddle *store, hd_json_val put)
{
    struct values values = read_values(get(put, "values"));
    struct heddle_error error = {0};
    struct hd_buf checkpoint, metadata, versions;
    struct heddle_checkpoint record;

    hd_buf_init(&checkpoint, MAX_FILE);
    hd_buf_init(&metadata, MAX_FILE);
    hd_buf_init(&versions, MAX_FILE);
    append(&checkpoint, get(put, "checkpoint"));
    append(&metadata, get(put, "metadata"));
    append(&versions, get(put, "new_versions"));
    record = (struct heddle_checkpoint){.thread = {bytes_of(HD_S("")), bytes_of(HD_S("t"))},
                                        .ns = bytes_of(text_of(put, "ns")),
                                        .id = bytes_of(text_of(put, "id")),
                                        .parent = bytes_of(text_of(put, "parent")),
                                        .checkpoint = bytes_of(hd_buf_slice(&checkpoint)),
                                        .metadata = bytes_of(hd_buf_slice(&metadata)),
                                        .new_versions = bytes_of(hd_buf_slice(&versions)),
                                        .values = values.list,
                                        .value_count = values.count};
    if (heddle_put(store, &record, &error))
        fail_msg("put: %s", error.text);
    hd_buf_fini(&checkpoint);
    hd_buf_fini(&metadata);
    hd_buf_fini(&versions);
    free_values(&values);
}

static void put_writes(struct heddle *store, hd_json_val put)
{
    struct values values = read_values(get(put, "writes"));
    struct heddle_error error = {0};
    struct heddle_writes writes = {.thread = {bytes_of(HD_S("")), bytes_of(HD_S("t"))},
                                   .ns = bytes_of(text_of(put, "ns")),
                                   .checkpoint_id = bytes_of(text_of(put, "id")),
                                   .task_id = bytes_of(text_of(put, "task")),
                                   .task_path = bytes_of(text_of(put, "path")),
                                   .values = values.list,
                                   .value_count = values.count};

    if (heddle_put_writes(store, &writes, &error))
        fail_msg("put_writes: %s", error.text);
    free_values(&values);
}

static void put_all(struct heddle *store, hd_json_val puts)
{
    struct hd_json_iter it = hd_json_iter(puts);

    while (hd_json_next(&it)) {
        if (get(it.val, "checkpoint"))
            put_checkpoint(store, it.val);
        else
            put_writes(store, it.val);
    }
}

/* ---- states ----------------------------------------------------------- */

static struct hd_graph *graph_of(hd_json_val subject)
{
    struct heddle_error fault = {0};
    struct hd_graph *graph;
    struct hd_buf text;

    hd_buf_init(&text, MAX_FILE);
    append(&text, get(subject, "structure"));
    if (hd_worker_graph_create(hd_buf_slice(&text),
                               hd_slice_eq(text_of(subject, "ids"), HD_S("js")) ? HD_IDS_JS
                                                                                : HD_IDS_PYTHON,
                               &graph, &fault))
        fail_msg("%s: %s", text_of(subject, "name").ptr, fault.text);
    hd_buf_fini(&text);
    return graph;
}

static struct hd_address address(struct heddle *store, const struct hd_graph *graph,
                                 hd_json_val wanted)
{
    return (struct hd_address){.store = store,
                               .graph = graph,
                               .principal = HD_S(""),
                               .thread = HD_S("t"),
                               .ns = text_of(wanted, "ns"),
                               .checkpoint_id = text_of(wanted, "id")};
}

static struct hd_val *state_of(const struct hd_address *at, bool subgraphs, const char *name)
{
    struct hd_failure failure = {0};
    struct hd_val *state;

    if (hd_state_get(at, subgraphs, &state, &failure))
        fail_msg("%s: %s", name, failure.text);
    hd_failure_fini(&failure);
    return state;
}

static void check_state(struct heddle *store, const struct hd_graph *graph, hd_json_val subject,
                        hd_json_val wanted)
{
    struct hd_slice name = text_of(subject, "name");
    struct hd_address at = address(store, graph, wanted);
    struct hd_failure failure = {0};
    struct hd_buf out;

    hd_buf_init(&out, MAX_FILE);
    for (int as_text = 0; as_text < 2; as_text++) {
        struct hd_val *state;

        at.as_text = as_text;
        state = state_of(&at, hd_json_is_true(get(wanted, "subgraphs")), name.ptr);
        out.len = 0;
        assert_int_equal(hd_state_render(&out, state, HD_S("t"), HD_S("")), 0);
        assert_same(name, at.checkpoint_id.len ? "a past state" : "state", hd_buf_slice(&out),
                    get(wanted, "state"));
        hd_val_unref(state);
    }
    out.len = 0;
    assert_int_equal(hd_state_values(&at, &out, &failure), 0);
    assert_same(name, "values", hd_buf_slice(&out), get(get(wanted, "state"), "values"));
    hd_buf_fini(&out);
}

static int count_state(void *ctx, const struct hd_val *state)
{
    assert_non_null(hd_val_get(state, HD_S("values")));
    (*(size_t *)ctx)++;
    return 0;
}

/* When only the checkpoint describes the graph. */
static void check_open(struct heddle *store, const struct hd_graph *graph, hd_json_val subject,
                       hd_json_val wanted)
{
    struct hd_address at = address(store, graph, wanted);
    struct hd_val *state = state_of(&at, false, "open");
    size_t count = 0;
    struct hd_failure failure = {0};
    struct hd_buf out;

    hd_buf_init(&out, MAX_FILE);
    assert_int_equal(hd_val_render(&out, hd_val_get(state, HD_S("next"))), 0);
    assert_same(text_of(subject, "name"), "next, open", hd_buf_slice(&out),
                get(get(wanted, "state"), "next"));
    hd_buf_fini(&out);
    hd_val_unref(state);
    assert_int_equal(hd_state_history(&at, -1, HD_S(""), HD_S(""), count_state, &count, &failure),
                     0);
    assert_true(count >= 1);
}

static void check_subject(hd_json_val subject)
{
    struct hd_json_iter step = hd_json_iter(get(subject, "steps"));
    struct hd_graph *graph = graph_of(subject), *open;
    struct heddle_error error = {0};
    struct heddle *store;

    assert_int_equal(heddle_open(&store, "memory:", &error), 0);
    assert_int_equal(hd_worker_graph_create(HD_S("null"), graph->ids, &open, NULL), 0);
    while (hd_json_next(&step)) {
        struct hd_json_iter it = hd_json_iter(get(step.val, "states"));

        put_all(store, get(step.val, "puts"));
        while (hd_json_next(&it)) {
            check_state(store, graph, subject, it.val);
            if (!hd_json_is_true(get(subject, "is_closed")) &&
                !hd_json_is_true(get(it.val, "subgraphs")))
                check_open(store, open, subject, it.val);
        }
    }
    heddle_close(store);
    hd_graph_destroy(graph);
    hd_graph_destroy(open);
}

static void check_states(const char *file)
{
    struct hd_json json = read_file(file);
    struct hd_json_iter it = hd_json_iter(hd_json_root(&json));

    assert_true(hd_json_size(hd_json_root(&json)) >= 10);
    while (hd_json_next(&it))
        check_subject(it.val);
    hd_json_fini(&json);
}

static void states_of_python(void **unused)
{
    (void)unused;
    check_states("python.json");
}

static void states_of_javascript(void **unused)
{
    (void)unused;
    check_states("js.json");
}

/* ---- migration between runtimes --------------------------------------- */

static hd_json_val find_subject(const struct hd_json *json, const char *name)
{
    struct hd_json_iter it = hd_json_iter(hd_json_root(json));

    while (hd_json_next(&it)) {
        if (hd_slice_eq(text_of(it.val, "name"), hd_slice_cstr(name)))
            return it.val;
    }
    fail_msg("there is no '%s'", name);
    return NULL;
}

/* Compares the contents of a thread, ignoring ids. */
static void check_carried(struct heddle *store, const struct hd_graph *graph, struct hd_slice name,
                          hd_json_val wanted)
{
    static const char *const same[] = {"next", "values"};
    struct hd_address at = address(store, graph, wanted);
    struct hd_val *state = state_of(&at, false, name.ptr);
    const struct hd_val *tasks = hd_val_get(state, HD_S("tasks"));
    struct hd_json_iter it = hd_json_iter(get(get(wanted, "state"), "tasks"));
    struct hd_buf out;

    hd_buf_init(&out, MAX_FILE);
    for (size_t i = 0; i < HD_COUNT(same); i++) {
        out.len = 0;
        assert_int_equal(hd_val_render(&out, hd_val_get(state, hd_slice_cstr(same[i]))), 0);
        assert_same(name, same[i], hd_buf_slice(&out), get(get(wanted, "state"), same[i]));
    }
    for (size_t i = 0; hd_json_next(&it); i++) {
        const struct hd_val *asked = hd_val_get(hd_val_at(tasks, i), HD_S("interrupts"));

        assert_true(hd_slice_eq(hd_val_get_string(hd_val_get(hd_val_at(tasks, i), HD_S("name"))),
                                text_of(it.val, "name")));
        assert_int_equal(hd_val_count(asked), hd_json_size(get(it.val, "interrupts")));
    }
    hd_buf_fini(&out);
    hd_val_unref(state);
}

/* The ids it reads are those in its own state. */
static void check_read(struct heddle *store, const struct hd_graph *graph)
{
    const struct heddle_key key = {
        {bytes_of(HD_S("")), bytes_of(HD_S("t"))}, bytes_of(HD_S("")), bytes_of(HD_S(""))};
    struct hd_address at = address(store, graph, NULL);
    struct hd_val *state = state_of(&at, false, "crossing");
    const struct hd_val *tasks = hd_val_get(state, HD_S("tasks"));
    const struct heddle_tuple *shown;
    struct heddle_error error = {0};
    struct heddle_error fault = {0};
    struct heddle_tuple *tuple;
    struct hd_arena arena;
    size_t known = 0;

    hd_arena_init(&arena, MAX_FILE);
    assert_int_equal(heddle_get(store, &key, &tuple, &error), 0);
    if (hd_runtime_migrate_tuple(&at, tuple, &arena, &shown, &fault))
        fail_msg("%s", fault.text);
    for (size_t i = 0; i < shown->write_count; i++) {
        struct hd_slice id = hd_slice(shown->writes[i].task_id.data, shown->writes[i].task_id.len);

        for (size_t j = 0; j < hd_val_count(tasks); j++)
            known +=
                hd_slice_eq(hd_val_get_string(hd_val_get(hd_val_at(tasks, j), HD_S("id"))), id);
        known += hd_slice_eq(id, HD_S(HD_NULL_TASK));
    }
    assert_int_equal(known, shown->write_count);
    heddle_tuple_free(tuple);
    hd_arena_fini(&arena);
    hd_val_unref(state);
}

/* Threads written in one runtime, read with the same graph in the other. */
static void check_crossing(const char *from, const char *to, const char *name)
{
    struct hd_json written = read_file(from), other = read_file(to);
    hd_json_val subject = find_subject(&written, name);
    struct hd_graph *graph = graph_of(find_subject(&other, name));
    struct hd_json_iter step = hd_json_iter(get(subject, "steps"));
    struct heddle_error error = {0};
    struct heddle *store;

    assert_int_equal(heddle_open(&store, "memory:", &error), 0);
    while (hd_json_next(&step)) {
        put_all(store, get(step.val, "puts"));
        check_carried(store, graph, text_of(subject, "name"), element(get(step.val, "states"), 0));
        check_read(store, graph);
    }
    heddle_close(store);
    hd_graph_destroy(graph);
    hd_json_fini(&written);
    hd_json_fini(&other);
}

static void threads_change_the_runtime(void **unused)
{
    static const char *const names[] = {"chat", "breakpoint", "two questions"};

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        check_crossing("js.json", "python.json", names[i]);
        check_crossing("python.json", "js.json", names[i]);
    }
}

/* Interrupted work in a subgraph cannot change the runtime. */
static void work_in_subgraphs_is_refused(void **unused)
{
    struct hd_json written = read_file("js.json"), other = read_file("python.json");
    struct hd_graph *graph = graph_of(find_subject(&other, "nested"));
    struct hd_address at;
    const struct heddle_key key = {
        {bytes_of(HD_S("")), bytes_of(HD_S("t"))}, bytes_of(HD_S("")), bytes_of(HD_S(""))};
    const struct heddle_tuple *shown;
    struct heddle_error error = {0};
    struct heddle_error fault = {0};
    struct heddle_tuple *tuple;
    struct heddle *store;
    struct hd_arena arena;

    (void)unused;
    hd_arena_init(&arena, MAX_FILE);
    assert_int_equal(heddle_open(&store, "memory:", &error), 0);
    put_all(store, get(element(get(find_subject(&written, "nested"), "steps"), 0), "puts"));
    at = address(store, graph, NULL);
    assert_int_equal(heddle_get(store, &key, &tuple, &error), 0);
    assert_int_equal(hd_runtime_migrate_tuple(&at, tuple, &arena, &shown, &fault), HD_EUNSUPPORTED);
    assert_non_null(strstr(fault.text, "subgraph"));
    heddle_tuple_free(tuple);
    heddle_close(store);
    hd_arena_fini(&arena);
    hd_graph_destroy(graph);
    hd_json_fini(&written);
    hd_json_fini(&other);
}

/* ---- structures ------------------------------------------------------- */

static void bad_structures_are_refused(void **unused)
{
    static const struct {
        const char *text;
        int err;
        const char *says;
    } cases[] = {
        {"[]", HD_EINVAL, "not an object"},
        {"{\"channels\":[]}", HD_EINVAL, "channels"},
        {"{\"channels\":{\"a\":\"LastValue\"},\"stream_channels\":\"b\"}", HD_EINVAL, "'b'"},
        {"{\"channels\":{},\"nodes\":{\"n\":{\"triggers\":[\"branch:to:n\"]}}}", HD_EINVAL,
         "'branch:to:n'"},
        {"{\"channels\":", HD_EINVAL, ""},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_graph *graph;

        assert_int_equal(
            hd_worker_graph_create(hd_slice_cstr(cases[i].text), HD_IDS_PYTHON, &graph, &fault),
            cases[i].err);
        if (!strstr(fault.text, cases[i].says))
            fail_msg("'%s' does not say %s", fault.text, cases[i].says);
    }
}

static void endless_structures_are_refused(void **unused)
{
    struct heddle_error fault = {0};
    struct hd_graph *graph;
    struct hd_buf text;

    (void)unused;
    hd_buf_init(&text, MAX_FILE);
    for (int i = 0; i < 40; i++)
        assert_int_equal(hd_buf_append_slice(&text, HD_S("{\"nodes\":{\"n\":{\"subgraph\":")), 0);
    assert_int_equal(hd_buf_append_slice(&text, HD_S("null")), 0);
    for (int i = 0; i < 40; i++)
        assert_int_equal(hd_buf_append_slice(&text, HD_S("}}}")), 0);
    assert_int_equal(hd_worker_graph_create(hd_buf_slice(&text), HD_IDS_JS, &graph, &fault),
                     HD_ELIMIT);
    hd_buf_fini(&text);
}

/* The graph's code is in a worker. */
static void it_cannot_be_updated_here(void **unused)
{
    struct hd_update update = {.values = hd_val_null()};
    struct hd_superstep step = {&update, 1};
    struct hd_failure failure = {0};
    struct hd_address at = {.principal = HD_S(""), .thread = HD_S("t")};
    struct hd_graph *graph;
    struct hd_val *out;

    (void)unused;
    assert_int_equal(hd_worker_graph_create(HD_S(""), HD_IDS_PYTHON, &graph, NULL), 0);
    at.graph = graph;
    assert_int_equal(hd_state_update(&at, &step, 1, NULL, &out, &failure), HD_EUNSUPPORTED);
    assert_non_null(strstr(failure.text, "worker"));
    hd_failure_fini(&failure);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_python_are_shown),
        cmocka_unit_test(values_of_javascript_are_shown),
        cmocka_unit_test(states_of_javascript),
        cmocka_unit_test(damaged_values_are_refused),
        cmocka_unit_test(deep_values_are_refused),
        cmocka_unit_test(states_of_python),
        cmocka_unit_test(bad_structures_are_refused),
        cmocka_unit_test(endless_structures_are_refused),
        cmocka_unit_test(it_cannot_be_updated_here),
        cmocka_unit_test(threads_change_the_runtime),
        cmocka_unit_test(work_in_subgraphs_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
