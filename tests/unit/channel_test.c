/* Channels, step by step: values that are kept and updates that are refused. */
#include "graph/engine/channel.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"
#include "value/val_internal.h"

#define MANY 8

/* ---- a graph of one channel ------------------------------------------- */

struct one {
    struct hd_graph graph;
    struct hd_graph_channel decl;
    struct hd_node nodes[3];
    struct hd_channel channel;
    struct hd_refusal refusal;
};

static const size_t two_sources[] = {1, 2};

static void one_init(struct one *one, enum hd_graph_reducer reducer, const char *initial)
{
    memset(one, 0, sizeof(*one));
    one->nodes[0].name = HD_S("__start__");
    one->nodes[1].name = HD_S("a");
    one->nodes[2].name = HD_S("b");
    one->decl = (struct hd_graph_channel){
        .name = HD_S("k"), .reducer = reducer, .sources = two_sources, .source_count = 2};
    if (initial)
        assert_err(hd_val_parse(hd_slice_cstr(initial), &one->decl.initial, NULL), 0);
    one->graph = (struct hd_graph){
        .channels = &one->decl, .channel_count = 1, .nodes = one->nodes, .node_count = 3};
    hd_channel_init(&one->channel, &one->graph, 0);
}

static void one_fini(struct one *one)
{
    hd_channel_fini(&one->channel);
    hd_refusal_fini(&one->refusal);
    hd_val_unref(one->decl.initial);
}

/* Applies the elements of the list `updates` in one step. */
static int try_update(struct one *one, const char *updates, bool *has_changed)
{
    struct hd_val *list, *values[MANY];
    size_t count;
    int err;

    assert_err(hd_val_parse(hd_slice_cstr(updates), &list, NULL), 0);
    count = hd_val_count(list);
    assert_true(count <= MANY);
    for (size_t i = 0; i < count; i++)
        values[i] = hd_val_at(list, i);
    hd_refusal_fini(&one->refusal);
    err = hd_channel_update(&one->channel, values, count, has_changed, &one->refusal);
    hd_val_unref(list);
    return err;
}

static bool update(struct one *one, const char *updates)
{
    bool has_changed = false;

    if (try_update(one, updates, &has_changed) != 0)
        fail_msg("%s: %s", updates, hd_val_get_string(one->refusal.text).ptr);
    return has_changed;
}

static void assert_refused(struct one *one, const char *updates, const char *type, const char *text)
{
    bool has_changed;

    assert_err(try_update(one, updates, &has_changed), HD_EINVAL);
    assert_string_equal(one->refusal.type, type);
    assert_slice(hd_val_get_string(one->refusal.text), hd_slice_cstr(text));
}

static void check_is(const struct hd_val *val, const char *expected, const char *file, int line)
{
    struct hd_buf out;

    hd_buf_init(&out, 1 << 20);
    if (val)
        assert_err(hd_val_write(&out, val), 0);
    check_slice(val ? hd_buf_slice(&out) : HD_S("none"), hd_slice_cstr(expected), file, line);
    hd_buf_fini(&out);
}

#define assert_is(val, expected) check_is((val), (expected), __FILE__, __LINE__)
#define assert_value(one, expected) assert_is(hd_channel_get(&(one)->channel), (expected))

static void check_saved(struct one *one, const char *expected, const char *file, int line)
{
    struct hd_val *saved;

    assert_err(hd_channel_checkpoint(&one->channel, &saved), 0);
    check_is(saved, expected, file, line);
    hd_val_unref(saved);
}

#define assert_saved(one, expected) check_saved((one), (expected), __FILE__, __LINE__)

static int restore(struct one *one, const char *saved)
{
    struct hd_val *val = NULL;
    int err;

    if (saved)
        assert_err(hd_val_parse(hd_slice_cstr(saved), &val, NULL), 0);
    err = hd_channel_restore(&one->channel, val, NULL);
    hd_val_unref(val);
    return err;
}

/* ---- one value -------------------------------------------------------- */

static const char several[] =
    "At key 'k': Can receive only one value per step. Use an Annotated key to handle multiple "
    "values.\nFor troubleshooting, visit: https://docs.langchain.com/oss/python/langgraph/errors/"
    "INVALID_CONCURRENT_GRAPH_UPDATE";

static void last_takes_one_value_in_a_step(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_LAST, NULL);
    assert_value(&one, "none");
    assert_saved(&one, "none");
    assert_true(update(&one, "[1]"));
    assert_value(&one, "1");
    assert_false(update(&one, "[]"));
    assert_refused(&one, "[2,3]", "InvalidUpdateError", several);
    assert_value(&one, "1");
    assert_true(update(&one, "[null]"));
    assert_saved(&one, "null");
    assert_err(restore(&one, "[5]"), 0);
    assert_value(&one, "[5]");
    assert_err(restore(&one, NULL), 0);
    assert_value(&one, "none");
    one_fini(&one);
}

static void any_takes_the_last_and_forgets_it(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_ANY, NULL);
    assert_false(update(&one, "[]"));
    assert_true(update(&one, "[1,2]"));
    assert_value(&one, "2");
    assert_true(update(&one, "[]"));
    assert_value(&one, "none");
    one_fini(&one);
}

static void ephemeral_lasts_a_step(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_EPHEMERAL, NULL);
    assert_true(update(&one, "[1]"));
    assert_saved(&one, "1");
    assert_refused(
        &one, "[1,2]", "InvalidUpdateError",
        "At key 'k': EphemeralValue(guard=True) can receive only one value per step. Use "
        "guard=False if you want to store any one of multiple values.");
    assert_true(update(&one, "[]"));
    assert_false(update(&one, "[]"));
    assert_saved(&one, "none");
    one_fini(&one);
    one_init(&one, HD_REDUCE_TRIGGER, NULL);
    assert_true(update(&one, "[null,\"x\"]"));
    assert_value(&one, "\"x\"");
    one_fini(&one);
}

static void untracked_is_never_saved(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_UNTRACKED, NULL);
    assert_true(update(&one, "[1]"));
    assert_false(update(&one, "[]"));
    assert_value(&one, "1");
    assert_saved(&one, "none");
    assert_refused(
        &one, "[1,2]", "InvalidUpdateError",
        "At key 'k': UntrackedValue(guard=True) can receive only one value per step. Use "
        "guard=False if you want to store any one of multiple values.");
    assert_err(restore(&one, "7"), 0);
    assert_value(&one, "none");
    one_fini(&one);
}

/* ---- operators -------------------------------------------------------- */

static void operators_combine(void **state)
{
    static const struct {
        enum hd_graph_reducer reducer;
        const char *initial, *updates, *value;
    } cases[] = {
        {HD_REDUCE_ADD, "0", "[1,2.5]", "3.5"},
        {HD_REDUCE_ADD, "\"\"", "[\"a\",\"b\"]", "\"ab\""},
        {HD_REDUCE_ADD, "[]", "[[1],[],[2,3]]", "[1,2,3]"},
        {HD_REDUCE_ADD, "[1]", "[{\"$\":\"overwrite\",\"value\":[7]},[8]]", "[7]"},
        {HD_REDUCE_ADD, "[1]", "[[2],{\"__overwrite__\":[7]}]", "[7]"},
        {HD_REDUCE_ADD, "[1]", "[{\"type\":\"__overwrite__\",\"value\":null}]", "null"},
        {HD_REDUCE_MERGE, "{}", "[{\"a\":1},{\"b\":2},{\"a\":3}]", "{\"a\":3,\"b\":2}"},
        {HD_REDUCE_MERGE, "{\"a\":1}", "[{\"__overwrite__\":1,\"b\":2}]",
         "{\"a\":1,\"__overwrite__\":1,\"b\":2}"},
        {HD_REDUCE_MAX, "0", "[3,2,3.0]", "3"},
        {HD_REDUCE_MAX, "\"\"", "[\"b\",\"a\"]", "\"b\""},
        {HD_REDUCE_MIN, "0", "[3,-2,-1]", "-2"},
        {HD_REDUCE_MIN, "0", "[{\"$\":\"float\",\"v\":\"nan\"},-1]", "-1"},
        {HD_REDUCE_AND, "true", "[true,false]", "false"},
        {HD_REDUCE_OR, "false", "[true,false]", "true"},
        {HD_REDUCE_OR, "false", "[4,3]", "7"},
        {HD_REDUCE_OR, "{\"a\":1}", "[{\"b\":2},{\"a\":3}]", "{\"a\":3,\"b\":2}"},
        {HD_REDUCE_ADD, NULL, "[1,2]", "3"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct one one;

        one_init(&one, cases[i].reducer, cases[i].initial);
        assert_value(&one, cases[i].initial ? cases[i].initial : "none");
        assert_false(update(&one, "[]"));
        assert_true(update(&one, cases[i].updates));
        assert_value(&one, cases[i].value);
        assert_saved(&one, cases[i].value);
        one_fini(&one);
    }
}

static void operators_refuse_with_pythons_words(void **state)
{
    static const struct {
        enum hd_graph_reducer reducer;
        const char *initial, *updates, *type, *text;
    } cases[] = {
        {HD_REDUCE_ADD, "0", "[1,\"a\"]", "TypeError",
         "unsupported operand type(s) for +: 'int' and 'str'"},
        {HD_REDUCE_ADD, "{\"$\":\"int\",\"v\":\"9223372036854775807\"}", "[1]", "OverflowError",
         "the sum of two integers does not fit into 64 bits"},
        {HD_REDUCE_MERGE, "{}", "[[]]", "TypeError",
         "unsupported operand type(s) for |: 'dict' and 'list'"},
        {HD_REDUCE_MAX, "0", "[\"a\"]", "TypeError",
         "'>' not supported between instances of 'str' and 'int'"},
        {HD_REDUCE_MIN, "0", "[null]", "TypeError",
         "'<' not supported between instances of 'NoneType' and 'int'"},
        {HD_REDUCE_AND, "false", "[1.5]", "TypeError",
         "unsupported operand type(s) for &: 'bool' and 'float'"},
        {HD_REDUCE_ADD, "[]",
         "[[1],{\"$\":\"overwrite\",\"value\":[]},{\"$\":\"overwrite\",\"value\":[]}]",
         "InvalidUpdateError",
         "Can receive only one Overwrite value per super-step.\nFor troubleshooting, visit: "
         "https://docs.langchain.com/oss/python/langgraph/errors/INVALID_CONCURRENT_GRAPH_UPDATE"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct one one;

        one_init(&one, cases[i].reducer, cases[i].initial);
        assert_refused(&one, cases[i].updates, cases[i].type, cases[i].text);
        assert_value(&one, cases[i].initial);
        one_fini(&one);
    }
}

static void a_delta_snapshot_is_its_value(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_ADD, "[]");
    assert_err(restore(&one, "{\"$\":\"delta\",\"value\":[1]}"), 0);
    assert_value(&one, "[1]");
    one_fini(&one);
}

static void values_that_are_too_deep_are_refused(void **state)
{
    struct hd_val *deep = hd_val_int(1);
    struct hd_refusal refusal = {0};
    struct one one;
    bool has_changed;

    (void)state;
    for (int i = 0; i < HD_CHANNEL_MAX_DEPTH; i++)
        deep = hd_val_append(hd_val_list(), deep);
    one_init(&one, HD_REDUCE_LAST, NULL);
    assert_err(hd_channel_update(&one.channel, &deep, 1, &has_changed, &refusal), 0);
    deep = hd_val_append(hd_val_list(), deep);
    assert_err(hd_channel_update(&one.channel, &deep, 1, &has_changed, &refusal), HD_EINVAL);
    assert_string_equal(refusal.type, "ValueError");
    assert_int_equal(hd_val_depth(hd_channel_get(&one.channel)), HD_CHANNEL_MAX_DEPTH);
    hd_refusal_fini(&refusal);
    hd_val_unref(deep);
    one_fini(&one);
}

/* ---- topics, barriers, deferred channels ------------------------------ */

static void topics_are_flat_lists(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_TOPIC, NULL);
    assert_saved(&one, "[]");
    assert_true(update(&one, "[1,[2,3],[]]"));
    assert_value(&one, "[1,2,3]");
    assert_true(update(&one, "[4]"));
    assert_value(&one, "[4]");
    assert_true(update(&one, "[[]]"));
    assert_value(&one, "none");
    assert_saved(&one, "[]");
    assert_false(update(&one, "[]"));
    one.decl.is_accumulating = true;
    assert_true(update(&one, "[1]"));
    assert_false(update(&one, "[]"));
    assert_true(update(&one, "[[2]]"));
    assert_saved(&one, "[1,2]");
    assert_err(restore(&one, "3"), HD_EINVAL);
    assert_err(restore(&one, "[9]"), 0);
    assert_true(update(&one, "[8]"));
    assert_value(&one, "[9,8]");
    one_fini(&one);
}

static void barriers_wait_for_all_names(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_BARRIER, NULL);
    assert_saved(&one, "{\"$\":\"set\",\"items\":[]}");
    assert_true(update(&one, "[\"b\"]"));
    assert_false(update(&one, "[\"b\"]"));
    assert_value(&one, "none");
    assert_false(hd_channel_consume(&one.channel));
    assert_refused(&one, "[\"a\",\"c\"]", "InvalidUpdateError",
                   "At key 'k': Value c not in {'a', 'b'}");
    assert_saved(&one, "{\"$\":\"set\",\"items\":[\"b\"]}");
    assert_true(update(&one, "[\"a\"]"));
    assert_value(&one, "null");
    assert_false(hd_channel_finish(&one.channel));
    assert_true(hd_channel_consume(&one.channel));
    assert_saved(&one, "{\"$\":\"set\",\"items\":[]}");
    assert_err(restore(&one, "[\"a\"]"), 0); /* as JavaScript saves it */
    assert_true(update(&one, "[\"b\"]"));
    assert_value(&one, "null");
    assert_err(restore(&one, "{\"$\":\"set\",\"items\":[\"a\",\"gone\"]}"), 0);
    assert_value(&one, "none");
    assert_err(restore(&one, "\"a\""), HD_EINVAL);
    one_fini(&one);
}

static void deferred_triggers_wait_for_the_end(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_TRIGGER_AFTER, NULL);
    assert_false(hd_channel_finish(&one.channel));
    assert_saved(&one, "none");
    assert_true(update(&one, "[1,2]"));
    assert_value(&one, "none");
    assert_saved(&one, "[2,false]");
    assert_false(hd_channel_consume(&one.channel));
    assert_true(hd_channel_finish(&one.channel));
    assert_false(hd_channel_finish(&one.channel));
    assert_value(&one, "2");
    assert_saved(&one, "[2,true]");
    assert_true(hd_channel_consume(&one.channel));
    assert_value(&one, "none");
    assert_err(restore(&one, "[\"x\",true]"), 0);
    assert_value(&one, "\"x\"");
    assert_true(update(&one, "[\"y\"]"));
    assert_value(&one, "none");
    assert_err(restore(&one, "[\"x\",1]"), HD_EINVAL);
    assert_err(restore(&one, "7"), HD_EINVAL);
    one_fini(&one);
}

static void deferred_barriers_wait_for_the_end(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_BARRIER_AFTER, NULL);
    assert_true(update(&one, "[\"a\"]"));
    assert_false(hd_channel_finish(&one.channel));
    assert_true(update(&one, "[\"b\"]"));
    assert_value(&one, "none");
    assert_true(hd_channel_finish(&one.channel));
    assert_value(&one, "null");
    assert_saved(&one, "[{\"$\":\"set\",\"items\":[\"a\",\"b\"]},true]");
    assert_true(hd_channel_consume(&one.channel));
    assert_saved(&one, "[{\"$\":\"set\",\"items\":[]},false]");
    assert_err(restore(&one, "[{\"$\":\"set\",\"items\":[\"a\",\"b\"]},true]"), 0);
    assert_value(&one, "null");
    one_fini(&one);
}

/* ---- messages --------------------------------------------------------- */

#define HUMAN(id, text) \
    "{\"$\":\"message\",\"type\":\"human\",\"content\":\"" text "\",\"id\":\"" id "\"}"
#define AI(id, text) \
    "{\"$\":\"message\",\"type\":\"ai\",\"content\":\"" text "\",\"id\":\"" id "\"}"
#define REMOVE(id) "{\"$\":\"message\",\"type\":\"remove\",\"content\":\"\",\"id\":\"" id "\"}"

static void messages_are_added_replaced_and_removed(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_true(update(&one, "[[" HUMAN("1", "a") "]," AI("2", "b") "]"));
    assert_value(&one, "[" HUMAN("1", "a") "," AI("2", "b") "]");
    assert_true(update(&one, "[[" AI("1", "A") "," HUMAN("3", "c") "]]"));
    assert_value(&one, "[" AI("1", "A") "," AI("2", "b") "," HUMAN("3", "c") "]");
    assert_true(update(&one, "[[" REMOVE("2") "],[" HUMAN("2", "again") "]]"));
    assert_value(&one, "[" AI("1", "A") "," HUMAN("3", "c") "," HUMAN("2", "again") "]");
    assert_refused(&one, "[[" HUMAN("4", "d") "," REMOVE("nobody") "]]", "ValueError",
                   "Attempting to delete a message with an ID that doesn't exist ('nobody')");
    assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), 3);
    /* removed and added in one update: replaced at its position */
    assert_true(update(&one, "[[" REMOVE("3") "," HUMAN("3", "C") "]]"));
    assert_value(&one, "[" AI("1", "A") "," HUMAN("3", "C") "," HUMAN("2", "again") "]");
    assert_true(update(&one, "[[" HUMAN("5", "e") "," REMOVE("5") "]]"));
    assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), 3);
    assert_true(update(&one, "[[" HUMAN("6", "") "," REMOVE("__remove_all__") "," HUMAN(
                                 "7", "x") "]," AI("8", "y") "]"));
    assert_value(&one, "[" HUMAN("7", "x") "," AI("8", "y") "]");
    one_fini(&one);
}

static void messages_get_ids(void **state)
{
    struct hd_val *list, *id;
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_true(update(&one, "[\"hi\",[[\"ai\",\"yo\"]],{\"role\":\"user\",\"content\":\"x\"}]"));
    list = hd_channel_get(&one.channel);
    assert_int_equal(hd_val_count(list), 3);
    for (size_t i = 0; i < 3; i++) {
        id = hd_val_get(hd_val_at(list, i), HD_S("id"));
        assert_int_equal(hd_val_get_string(id).len, 36);
        assert_int_equal(hd_val_get_string(id).ptr[14], '4');
    }
    one_fini(&one);
}

static void chunks_become_messages(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_true(update(&one,
                       "[{\"$\":\"message\",\"type\":\"AIMessageChunk\",\"content\":\"t\","
                       "\"id\":\"1\",\"tool_call_chunks\":[{}],\"chunk_position\":\"last\"}]"));
    assert_value(&one, "[" AI("1", "t") "]");
    one_fini(&one);
}

static void other_values_than_messages_are_refused(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_refused(&one, "[[5]]", "NotImplementedError", "a message is an object, not a number");
    assert_refused(&one, "[[{\"content\":\"x\"}]]", "ValueError",
                   "a message needs a string \"type\" or \"role\"");
    assert_refused(&one, "[null]", "ValueError",
                   "Must specify non-null arguments for both 'left' and 'right'. Only received: "
                   "'right'.");
    assert_value(&one, "[]");
    one_fini(&one);
}

/* A list from a checkpoint or an overwrite need not be normalized by add_messages. */
static void the_list_may_come_from_elsewhere(void **state)
{
    struct hd_val *first;
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_err(restore(&one, "[{\"role\":\"user\",\"content\":\"x\"}," HUMAN("2", "b") "," HUMAN(
                                 "2", "c") "]"),
               0);
    assert_true(update(&one, "[" AI("2", "C") "]"));
    first = hd_val_at(hd_channel_get(&one.channel), 0);
    assert_int_equal(hd_val_kind(first), HD_KIND_MESSAGE);
    assert_int_equal(hd_val_get_string(hd_val_get(first, HD_S("id"))).len, 36);
    assert_is(hd_val_at(hd_channel_get(&one.channel), 1), HUMAN("2", "b"));
    assert_is(hd_val_at(hd_channel_get(&one.channel), 2), AI("2", "C"));
    assert_true(update(&one, "[" REMOVE("2") "]"));
    assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), 1);
    assert_true(update(&one, "[{\"__overwrite__\":\"solo\"}]"));
    assert_value(&one, "\"solo\"");
    assert_true(update(&one, "[" AI("9", "z") "]"));
    assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), 2);
    one_fini(&one);
}

/* A list that only grows keeps its buffer, despite views of it and dropped peeks. */
static void appending_to_a_long_list_costs_the_added_part(void **state)
{
    struct hd_val *message, *tried, *views[10] = {0};
    const struct hd_val_buffer *buffer;
    char id[16];
    struct one one;
    bool has_changed;
    size_t moved = 0;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        message = hd_val_message("human", hd_val_cstr("text"), id);
        buffer = ((struct hd_val_array *)one.channel.value)->buffer;
        hd_val_unref(views[i % 10]);
        views[i % 10] = hd_val_ref(hd_channel_get(&one.channel));
        assert_err(hd_channel_peek(&one.channel, &message, 1, &tried, NULL), 0);
        assert_int_equal(hd_val_count(tried), i + 1);
        assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), i);
        hd_val_unref(tried);
        assert_err(hd_channel_update(&one.channel, &message, 1, &has_changed, NULL), 0);
        moved += ((struct hd_val_array *)one.channel.value)->buffer != buffer;
        hd_val_unref(message);
    }
    assert_int_equal(hd_val_count(hd_channel_get(&one.channel)), 1000);
    assert_true(moved <= 1); /* the first allocation */
    for (size_t i = 0; i < 10; i++)
        hd_val_unref(views[i]);
    assert_true(update(&one, "[" AI("m500", "X") "]"));
    assert_is(hd_val_at(hd_channel_get(&one.channel), 500), AI("m500", "X"));
    one_fini(&one);
}

static void peeking_changes_nothing(void **state)
{
    static const char *const tries[] = {HUMAN("1", "other"), REMOVE("2"), REMOVE("__remove_all__"),
                                        HUMAN("3", "new")};
    struct hd_val *values[2], *out;
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_true(update(&one, "[" HUMAN("1", "a") "," HUMAN("2", "b") "]"));
    for (size_t i = 0; i < HD_COUNT(tries); i++) {
        for (size_t j = 0; j < HD_COUNT(tries); j++) {
            assert_err(hd_val_parse(hd_slice_cstr(tries[i]), &values[0], NULL), 0);
            assert_err(hd_val_parse(hd_slice_cstr(tries[j]), &values[1], NULL), 0);
            if (hd_channel_peek(&one.channel, values, 2, &out, NULL) == 0)
                hd_val_unref(out);
            hd_val_unref(values[0]);
            hd_val_unref(values[1]);
            assert_value(&one, "[" HUMAN("1", "a") "," HUMAN("2", "b") "]");
        }
    }
    assert_true(update(&one, "[" HUMAN("3", "c") "]"));
    assert_true(update(&one, "[[" REMOVE("1") "," AI("3", "C") "]]"));
    assert_value(&one, "[" HUMAN("2", "b") "," AI("3", "C") "]");
    one_fini(&one);
}

/* ---- no memory -------------------------------------------------------- */

static int step_through(void *arg)
{
    static const char *const updates[] = {
        "[[" HUMAN("1", "a") "],\"b\"]", "[[" AI("1", "A") "," REMOVE("1") "," AI("2", "x") "]]",
        "[[" REMOVE("__remove_all__") "]]", "[[" HUMAN("4", "d") "]]"};
    struct one *one = arg;
    struct hd_val *list = NULL, *values[MANY], *out = NULL;
    bool has_changed;
    int err = 0;

    err = hd_channel_restore(&one->channel, NULL, NULL);
    for (size_t i = 0; !err && i < HD_COUNT(updates); i++) {
        err = hd_val_parse(hd_slice_cstr(updates[i]), &list, NULL);
        for (size_t j = 0; !err && j < hd_val_count(list); j++)
            values[j] = hd_val_at(list, j);
        if (!err)
            err = hd_channel_peek(&one->channel, values, hd_val_count(list), &out, NULL);
        hd_val_unref(out);
        out = NULL;
        if (!err)
            err = hd_channel_update(&one->channel, values, hd_val_count(list), &has_changed, NULL);
        hd_val_unref(list);
        list = NULL;
    }
    if (!err)
        err = hd_channel_checkpoint(&one->channel, &out);
    hd_val_unref(out);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_MESSAGES, "[]");
    assert_true(check_every_allocation(step_through, &one) > 50);
    assert_value(&one, "[" HUMAN("4", "d") "]");
    one_fini(&one);
}

static int refuse_it(void *arg)
{
    struct one *one = arg;
    struct hd_val *values[] = {hd_val_bool(true), hd_val_null()};
    bool has_changed;
    int err;

    hd_refusal_fini(&one->refusal);
    err = hd_channel_update(&one->channel, values, 2, &has_changed, &one->refusal);
    return err == HD_EINVAL ? 0 : err;
}

static void refusing_may_fail(void **state)
{
    struct one one;

    (void)state;
    one_init(&one, HD_REDUCE_LAST, NULL);
    assert_true(check_every_allocation(refuse_it, &one) >= 1);
    one_fini(&one);
    one_init(&one, HD_REDUCE_BARRIER, NULL);
    assert_true(check_every_allocation(refuse_it, &one) >= 2);
    one_fini(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_takes_one_value_in_a_step),
        cmocka_unit_test(any_takes_the_last_and_forgets_it),
        cmocka_unit_test(ephemeral_lasts_a_step),
        cmocka_unit_test(untracked_is_never_saved),
        cmocka_unit_test(operators_combine),
        cmocka_unit_test(operators_refuse_with_pythons_words),
        cmocka_unit_test(a_delta_snapshot_is_its_value),
        cmocka_unit_test(values_that_are_too_deep_are_refused),
        cmocka_unit_test(topics_are_flat_lists),
        cmocka_unit_test(barriers_wait_for_all_names),
        cmocka_unit_test(deferred_triggers_wait_for_the_end),
        cmocka_unit_test(deferred_barriers_wait_for_the_end),
        cmocka_unit_test(messages_are_added_replaced_and_removed),
        cmocka_unit_test(messages_get_ids),
        cmocka_unit_test(chunks_become_messages),
        cmocka_unit_test(other_values_than_messages_are_refused),
        cmocka_unit_test(the_list_may_come_from_elsewhere),
        cmocka_unit_test(appending_to_a_long_list_costs_the_added_part),
        cmocka_unit_test(peeking_changes_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(refusing_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
