/* hd_state_delta() reports the same origin of a list's elements as reading every state does. */
#include "base/uuid.h"
#include "graph/engine/writes.h"
#include "graph/state/worker_graph.h"
#include "tests/unit/check.h"
#include "tests/unit/engine_world.h"

#define TALK                                                                 \
    "{\"name\":\"talk\",\"state\":{\"messages\":{\"reducer\":\"messages\"}," \
    "\"notes\":{\"reducer\":\"topic\",\"accumulate\":true},\"kept\":{}},"    \
    "\"nodes\":{\"reply\":{\"kind\":\"set\",\"update\":{\"notes\":\"n\","    \
    "\"messages\":[{\"type\":\"ai\",\"content\":\"yes\"}]}}},"               \
    "\"edges\":[[\"__start__\",\"reply\"],[\"reply\",\"__end__\"]]}"
#define SAID \
    "{\"messages\":[{\"$\":\"message\",\"type\":\"human\",\"content\":\"%s\",\"id\":\"%d\"}]}"
#define GONE \
    "{\"messages\":[{\"$\":\"message\",\"type\":\"remove\",\"content\":\"\",\"id\":\"1\"}]}"
#define CHANGED \
    "{\"messages\":[{\"$\":\"message\",\"type\":\"human\",\"content\":\"else\",\"id\":\"3\"}]}"
#define MAX_STATES 64
#define NEVER SIZE_MAX

struct talk {
    struct world w;
    struct hd_graph *graph;
    char names[MAX_STATES][HD_UUID_SIZE];
    struct hd_slice ids[MAX_STATES]; /* the oldest first */
    size_t count;
    struct hd_json states[MAX_STATES];
};

static struct hd_address address(struct talk *talk)
{
    return (struct hd_address){.store = talk->w.store,
                               .graph = talk->graph,
                               .thread = HD_S("t"),
                               .root = HD_S("assistant:a"),
                               .only = HD_S("messages")};
}

/* ---- all states, read one by one -------------------------------------- */

static int on_state(void *ctx, const struct hd_val *state)
{
    struct talk *talk = ctx;
    struct hd_slice id =
        hd_val_get_string(hd_val_get(hd_val_get(state, HD_S("config")), HD_S("checkpoint_id")));

    assert_in_range(talk->count, 0, MAX_STATES - 1);
    memcpy(talk->names[talk->count++], id.ptr, id.len);
    return 0;
}

static void read_states(struct talk *talk)
{
    struct hd_address at = address(talk);
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf text;

    talk->count = 0;
    assert_err(
        hd_state_history(&at, -1, hd_slice("", 0), hd_slice("", 0), on_state, talk, &failure), 0);
    hd_buf_init(&text, 1000000);
    for (size_t i = 0; i < talk->count; i++) {
        talk->ids[i] = hd_slice_cstr(talk->names[talk->count - 1 - i]);
        at.checkpoint_id = talk->ids[i];
        hd_buf_reset(&text);
        assert_err(hd_state_values(&at, &text, &failure), 0);
        assert_err(hd_json_parse(&talk->states[i], hd_buf_slice(&text), NULL), 0);
    }
    hd_buf_fini(&text);
}

static hd_json_val list_of(const struct talk *talk, size_t at)
{
    return hd_json_get(hd_json_root(&talk->states[at]), HD_S("messages"));
}

static bool has(hd_json_val list, struct hd_slice id)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        if (hd_slice_eq(hd_json_string(hd_json_get(it.val, HD_S("id"))), id))
            return true;
    }
    return false;
}

/* ---- reported elements ------------------------------------------------ */

struct told {
    struct hd_slice id; /* the searched message */
    size_t first;
    size_t unknown[MAX_STATES], unknown_count;
};

static int on_news(void *ctx, size_t which, hd_json_val list)
{
    struct told *told = ctx;

    if (!list)
        told->unknown[told->unknown_count++] = which;
    else if (told->first == NEVER && has(list, told->id))
        told->first = which;
    return 0;
}

static void look_for(struct talk *talk, struct hd_slice channel, size_t known, struct told *told)
{
    const struct hd_state_walk walk = {.ids = talk->ids, .count = talk->count, .known = known};
    struct hd_address at = address(talk);
    struct hd_failure failure = {NULL, NULL};

    told->first = NEVER;
    told->unknown_count = 0;
    at.only = channel;
    assert_err(hd_state_delta(&at, &walk, on_news, told, &failure), 0);
}

/* Checks the first state of every message that any state has. */
static void check_firsts(struct talk *talk, size_t unknown)
{
    for (size_t i = 0; i < talk->count; i++) {
        struct hd_json_iter it = hd_json_iter(list_of(talk, i));

        while (hd_json_next(&it)) {
            struct told told = {.id = hd_json_string(hd_json_get(it.val, HD_S("id")))};
            size_t first = 0;

            look_for(talk, HD_S("messages"), 0, &told);
            assert_int_equal(told.unknown_count, unknown);
            while (!has(list_of(talk, first), told.id))
                first++;
            for (size_t j = 0; j < told.unknown_count; j++) {
                if (told.unknown[j] < told.first && has(list_of(talk, told.unknown[j]), told.id))
                    told.first = told.unknown[j];
            }
            assert_int_equal(told.first, first);
        }
    }
}

/* ---- a conversation --------------------------------------------------- */

static void say(struct talk *talk, int number, const char *content)
{
    char input[1000];

    snprintf(input, sizeof(input), SAID, content, number);
    run(&talk->w, talk->graph, input, NULL);
    assert_int_equal(talk->w.status, HD_ENGINE_RUN_DONE);
}

static void write_by_hand(struct talk *talk, const char *text)
{
    struct hd_address at = address(talk);
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *values, *config;

    values = json(text);
    assert_err(
        hd_state_update(&at,
                        &(struct hd_superstep){
                            &(struct hd_update){.values = values, .as_node = HD_S("reply")}, 1},
                        1, NULL, &config, &failure),
        0);
    hd_val_unref(values);
    hd_val_unref(config);
}

static struct talk *talk_create(void)
{
    struct talk *talk = calloc(1, sizeof(*talk));
    char longer[400];

    assert_non_null(talk);
    open_world(&talk->w, true);
    talk->w.root = "assistant:a";
    talk->graph = read_graph(TALK);
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (int i = 0; i < 5; i++)
        say(talk, i, i % 2 ? longer : "short");
    write_by_hand(talk, GONE);
    write_by_hand(talk, CHANGED);
    say(talk, 6, "short");
    say(talk, 1, longer); /* added again after its removal */
    read_states(talk);
    return talk;
}

static void talk_destroy(struct talk *talk)
{
    for (size_t i = 0; i < talk->count; i++)
        hd_json_fini(&talk->states[i]);
    hd_graph_destroy(talk->graph);
    close_world(&talk->w);
    free(talk);
}

static void messages_are_reported_at_their_origin(void **state)
{
    struct talk *talk = talk_create();
    struct told told = {.id = HD_S("4")};

    (void)state;
    assert_true(talk->count > 20);
    /* The first state has no list. */
    check_firsts(talk, 1);
    look_for(talk, HD_S("messages"), talk->count, &told);
    assert_true(told.first == NEVER && told.unknown_count == 0);
    talk_destroy(talk);
}

/* A write without a task is shown as part of its checkpoint's state. */
static void writes_of_no_task_are_looked_at(void **state)
{
    struct talk *talk = talk_create();
    struct heddle_value value = {{"messages", 8}, {"hd1", 3}, {NULL, 0}};
    struct heddle_writes writes = {.thread = {.id = {"t", 1}},
                                   .ns = {"assistant:a", 11},
                                   .task_id = {HD_NULL_TASK, HD_UUID_LEN},
                                   .values = &value,
                                   .value_count = 1};
    const char *list = "[{\"$\":\"message\",\"type\":\"human\",\"content\":\"w\",\"id\":\"6\"}]";

    (void)state;
    value.data = (struct heddle_bytes){list, strlen(list)};
    writes.checkpoint_id = (struct heddle_bytes){talk->ids[5].ptr, talk->ids[5].len};
    assert_err(heddle_put_writes(talk->w.store, &writes, NULL), 0);
    for (size_t i = 0; i < talk->count; i++)
        hd_json_fini(&talk->states[i]);
    read_states(talk);
    assert_true(has(list_of(talk, 5), HD_S("6")));
    assert_false(has(list_of(talk, 6), HD_S("6")));
    check_firsts(talk, 2);
    talk_destroy(talk);
}

static void values_that_are_not_shown_as_stored_are_not_reported(void **state)
{
    static const char *const channels[] = {"notes", "kept", "other"};
    struct talk *talk = talk_create();
    struct hd_failure failure = {NULL, NULL};
    struct told told = {.id = HD_S("0")};
    struct hd_graph *native;
    struct hd_address at;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(channels); i++) {
        look_for(talk, hd_slice_cstr(channels[i]), 2, &told);
        assert_int_equal(told.unknown_count, talk->count - 2);
        assert_int_equal(told.unknown[0], 2);
    }
    native = talk->graph;
    /* A worker graph whose structure is unknown. */
    assert_err(hd_worker_graph_create(hd_slice("", 0), HD_IDS_PYTHON, &talk->graph, NULL), 0);
    look_for(talk, HD_S("messages"), 0, &told);
    assert_int_equal(told.unknown_count, talk->count);
    hd_graph_destroy(talk->graph);
    talk->graph = native;
    at = address(talk);
    at.ns = HD_S("nothing:1");
    assert_err(hd_state_delta(&at, &(struct hd_state_walk){0}, on_news, &told, &failure),
               HD_EINVAL);
    hd_failure_fini(&failure);
    talk_destroy(talk);
}

/* ---- no memory -------------------------------------------------------- */

static int count_news(void *ctx, size_t which, hd_json_val list)
{
    (void)which;
    (void)list;
    ++*(size_t *)ctx;
    return 0;
}

static int tell_all(void *arg)
{
    struct talk *talk = arg;
    const struct hd_state_walk walk = {.ids = talk->ids, .count = talk->count};
    struct hd_address at = address(talk);
    struct hd_failure failure = {NULL, NULL};
    size_t count = 0;
    int err = hd_state_delta(&at, &walk, count_news, &count, &failure);

    hd_failure_fini(&failure);
    return err;
}

static void memory_may_be_short(void **state)
{
    struct talk *talk = talk_create();

    (void)state;
    assert_true(check_every_allocation(tell_all, talk) > 10);
    talk_destroy(talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_reported_at_their_origin),
        cmocka_unit_test(writes_of_no_task_are_looked_at),
        cmocka_unit_test(values_that_are_not_shown_as_stored_are_not_reported),
        cmocka_unit_test(memory_may_be_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
