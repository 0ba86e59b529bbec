/* Delta channels: the writes that rebuild them. */
#include "tests/contract/store_cases.h"

/* A step whose channel d advances without a value, with one write on it by task `task`. */
static void step(struct fixture *f, const char *id, const char *parent, const char *task,
                 const char *data)
{
    char versions[64];
    struct put put = {.thread = "t", .id = id, .parent = parent, .versions = versions};
    struct writes batch = {.thread = "t", .id = id, .task = task};

    snprintf(versions, sizeof(versions), "{\"d\":\"%s\",\"e\":\"%s\"}", id, id);
    put.metadata = "{\"counters_since_delta_snapshot\":{\"d\":[1,1],\"e\":[0,1]}}";
    assert_ok(try_put(f->store, &put, NULL));
    batch.values[0] = (struct heddle_value){text("d"), text("j"), text(data)};
    assert_ok(try_writes(f->store, &batch, NULL));
}

/* The same, with a value for d: a snapshot. */
static void snapshot(struct fixture *f, const char *id, const char *parent, const char *task,
                     const char *data, const char *value)
{
    char versions[64];
    struct put put = {.thread = "t", .id = id, .parent = parent, .versions = versions};
    struct writes batch = {.thread = "t", .id = id, .task = task};

    snprintf(versions, sizeof(versions), "{\"d\":\"%s\",\"e\":\"%s\"}", id, id);
    put.values[0] = (struct heddle_value){text("d"), text("snap"), text(value)};
    assert_ok(try_put(f->store, &put, NULL));
    batch.values[0] = (struct heddle_value){text("d"), text("j"), text(data)};
    assert_ok(try_writes(f->store, &batch, NULL));
}

static void history_runs_back_to_the_first(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    step(f, "2", "1", "k", "b");
    step(f, "3", "2", "k", "c");
    assert_history(f->store, "t", "3", "d", " | k/0 d=j:a k/0 d=j:b");
    assert_history(f->store, "t", "", "d", " | k/0 d=j:a k/0 d=j:b");
    assert_history(f->store, "t", "2", "d", " | k/0 d=j:a");
    assert_history(f->store, "t", "1", "d", " |"); /* its own writes do not count */
    assert_history(f->store, "t", "3", "e", " |");
    assert_history(f->store, "t", "3", "unheard of", " |");
    assert_history(f->store, "t", "9", "d", " |");
    assert_history(f->store, "u", "", "d", " |");
}

static void history_stops_at_the_nearest_value(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    snapshot(f, "2", "1", "k", "b", "S2");
    step(f, "3", "2", "k", "c");
    step(f, "4", "3", "k", "d");
    assert_history(f->store, "t", "4", "d", " d=snap:S2 | k/0 d=j:b k/0 d=j:c");
    assert_history(f->store, "t", "3", "d", " d=snap:S2 | k/0 d=j:b");
    assert_history(f->store, "t", "2", "d", " | k/0 d=j:a"); /* not its own value */
    reopen(f);
    assert_history(f->store, "t", "4", "d", " d=snap:S2 | k/0 d=j:b k/0 d=j:c");
}

static void a_present_null_is_a_seed(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"d\":1}",
        .values = {VALUE("d", "null")});
    step(f, "2", "1", "k", "a");
    step(f, "3", "2", "k", "b");
    assert_history(f->store, "t", "3", "d", " d=json:null | k/0 d=j:a");
}

static void siblings_stay_out(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    step(f, "2", "1", "k", "left");
    step(f, "3", "1", "k", "right");
    step(f, "4", "2", "k", "x");
    step(f, "5", "3", "k", "y");
    assert_history(f->store, "t", "4", "d", " | k/0 d=j:a k/0 d=j:left");
    assert_history(f->store, "t", "5", "d", " | k/0 d=j:a k/0 d=j:right");
}

static void parents_may_sort_after_their_children(struct fixture *f)
{
    step(f, "5", "", "k", "a");
    step(f, "9", "5", "k", "b");
    step(f, "2", "9", "k", "c"); /* a slow clock */
    step(f, "7", "2", "k", "d");
    step(f, "1", "7", "k", "e");
    assert_history(f->store, "t", "1", "d", " | k/0 d=j:a k/0 d=j:b k/0 d=j:c k/0 d=j:d");
}

static void writes_come_in_order_of_task_and_number(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "1");
    WRITES(f->store, .thread = "t", .id = "1", .task = "b",
           .values = {VALUE("d", "3"), VALUE("x", "0"), VALUE("d", "4")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "a",
           .values = {VALUE("x", "0"), VALUE("d", "1"), VALUE("d", "2")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    assert_history(f->store, "t", "2", "d",
                   " | a/1 d=json:1 a/2 d=json:2 b/0 d=json:3 b/2 d=json:4");
}

static void channels_end_each_on_their_own(struct fixture *f)
{
    struct heddle_bytes channels[] = {text("e"), text("d"), text("none"), text("d")};
    struct heddle_key key = {thread_of("t"), text(""), text("4")};
    struct heddle_histories *histories;

    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"e\":1}", .values = {VALUE("e", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k",
           .values = {VALUE("d", "1"), VALUE("e", "2")});
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"d\":2,\"e\":2}",
        .values = {VALUE("d", "3")});
    WRITES(f->store, .thread = "t", .id = "2", .task = "k",
           .values = {VALUE("d", "4"), VALUE("e", "5")});
    PUT(f->store, .thread = "t", .id = "3", .parent = "2", .versions = "{\"d\":3,\"e\":2}");
    PUT(f->store, .thread = "t", .id = "4", .parent = "3", .versions = "{\"d\":3,\"e\":2}");
    assert_history(f->store, "t", "4", "d", " d=json:3 | k/0 d=json:4");
    assert_history(f->store, "t", "4", "e", " e=json:1 | k/1 e=json:2 k/1 e=json:5");
    /* All at once, in the requested order, also with a duplicate. */
    assert_ok(heddle_delta_history(f->store, &key, channels, 4, &histories, NULL));
    assert_int_equal(histories->channel_count, 4);
    assert_int_equal(histories->channels[0].write_count, 2);
    assert_int_equal(histories->channels[1].write_count, 1);
    assert_int_equal(histories->channels[2].write_count, 0);
    assert_null(histories->channels[2].seed);
    assert_int_equal(histories->channels[3].write_count, 1);
    assert_memory_equal(histories->channels[3].seed->data.data, "3", 1);
    heddle_histories_free(histories);
    assert_ok(heddle_delta_history(f->store, &key, NULL, 0, &histories, NULL));
    assert_int_equal(histories->channel_count, 0);
    heddle_histories_free(histories);
}

static void long_chains_and_long_values_are_read(struct fixture *f)
{
    enum { STEPS = 150 };
    struct heddle_bytes channel = text("d");
    struct heddle_key key = {thread_of("t"), text(""), text("")};
    struct heddle_histories *histories;
    char *big = long_json(3000, 9);

    snapshot(f, "000", "", "k", "\"first\"", big);
    for (int i = 1; i < STEPS; i++) {
        char id[16], parent[16];

        snprintf(id, sizeof(id), "%03d", i);
        snprintf(parent, sizeof(parent), "%03d", i - 1);
        step(f, id, parent, "k", big);
    }
    assert_ok(heddle_delta_history(f->store, &key, &channel, 1, &histories, NULL));
    assert_int_equal(histories->channels[0].write_count, STEPS - 1);
    assert_int_equal(histories->channels[0].seed->data.len, 3000);
    assert_memory_equal(histories->channels[0].seed->data.data, big, 3000);
    for (int i = 1; i < STEPS - 1; i++) {
        assert_int_equal(histories->channels[0].writes[i].value.data.len, 3000);
        assert_memory_equal(histories->channels[0].writes[i].value.data.data, big, 3000);
    }
    heddle_histories_free(histories);
    free(big);
}

static void a_circle_of_parents_ends(struct fixture *f)
{
    step(f, "1", "3", "k", "a");
    step(f, "2", "1", "k", "b");
    step(f, "3", "2", "k", "c");
    assert_history(f->store, "t", "3", "d", " | k/0 d=j:a k/0 d=j:b");
    step(f, "4", "4", "k", "x"); /* the value that a second put makes from the first one's result */
    assert_history(f->store, "t", "4", "d", " |");
}

/* Exit mode: a stub without parent and source, whose writes carry the step in the task's name. */
static void the_writes_of_a_stub_are_replayed(struct fixture *f)
{
    PUT(f->store, .thread = "t", .id = "0", .metadata = "{\"step\":-2}");
    WRITES(f->store, .thread = "t", .id = "0", .task = "00000002-b", .values = {VALUE("d", "2")});
    WRITES(f->store, .thread = "t", .id = "0", .task = "00000001-c", .values = {VALUE("d", "1")});
    WRITES(f->store, .thread = "t", .id = "0", .task = "00000010-a", .values = {VALUE("d", "3")});
    step(f, "1", "0", "k", "later");
    assert_history(f->store, "t", "1", "d",
                   " | 00000001-c/0 d=json:1 00000002-b/0 d=json:2 00000010-a/0 d=json:3");
}

static void other_namespaces_stay_out(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    WRITES(f->store, .thread = "t", .ns = "n", .id = "1", .task = "k", .values = {VALUE("d", "0")});
    PUT(f->store, .thread = "t", .ns = "n", .id = "2", .parent = "1");
    assert_text(render_history(f->store, "t", "n", "2", "d"), " |");
}

static void prune_one(struct fixture *f)
{
    struct heddle_thread t = thread_of("t");

    assert_ok(heddle_prune(f->store, &t, 1, HEDDLE_KEEP_LATEST, NULL));
}

static void prune_keeps_what_delta_channels_need(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    snapshot(f, "2", "1", "k", "b", "S2");
    step(f, "3", "2", "k", "c");
    step(f, "4", "3", "k", "d");
    prune_one(f);
    assert_list(f->store, "t//4 t//3 t//2 t//1"); /* e never had a value: back to the first */
    assert_history(f->store, "t", "4", "d", " d=snap:S2 | k/0 d=j:b k/0 d=j:c");
    PUT(f->store, .thread = "t", .id = "5", .parent = "4", .versions = "{\"d\":\"5\"}",
        .metadata = "{\"counters_since_delta_snapshot\":{\"d\":[1,1]}}");
    prune_one(f);
    assert_list(f->store, "t//5 t//4 t//3 t//2");
    assert_history(f->store, "t", "5", "d", " d=snap:S2 | k/0 d=j:b k/0 d=j:c k/0 d=j:d");
    /* Other channels' values do not stretch the chain. */
    PUT(f->store, .thread = "t", .id = "6", .parent = "5", .versions = "{\"x\":1}",
        .values = {VALUE("x", "1")});
    prune_one(f);
    assert_list(f->store, "t//6");
}

static void prune_needs_no_chain_for_a_value_that_is_there(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    snapshot(f, "2", "1", "k", "b", "S2");
    /* Not updated since: the version and so the value of 2 is still its own. */
    PUT(f->store, .thread = "t", .id = "3", .parent = "2", .versions = "{\"d\":\"2\"}",
        .changed = "{}", .metadata = "{\"counters_since_delta_snapshot\":{\"d\":[0,1]}}");
    assert_get(f->store, "t", "", "3", "3<2 d=snap:S2");
    prune_one(f);
    assert_list(f->store, "t//3");
    assert_get(f->store, "t", "", "3", "3<2 d=snap:S2");
}

static void prune_keeps_the_chain_of_the_newest_branch_only(struct fixture *f)
{
    step(f, "1", "", "k", "a");
    step(f, "2", "1", "k", "left");
    step(f, "3", "1", "k", "right");
    step(f, "4", "2", "k", "x");
    step(f, "5", "3", "k", "y");
    step(f, "0", "4", "k", "z"); /* newer than 4, and older than 5 all the same */
    prune_one(f);
    assert_list(f->store, "t//5 t//3 t//1");
    assert_history(f->store, "t", "5", "d", " | k/0 d=j:a k/0 d=j:right");
}

static void prune_follows_skewed_parents(struct fixture *f)
{
    step(f, "5", "", "k", "a");
    step(f, "2", "5", "k", "b");
    step(f, "1", "2", "k", "other");
    step(f, "7", "2", "k", "c");
    prune_one(f);
    assert_list(f->store, "t//7 t//2 t//5");
    assert_history(f->store, "t", "7", "d", " | k/0 d=j:a k/0 d=j:b");
}

static void prune_survives_a_circle_of_parents(struct fixture *f)
{
    step(f, "1", "3", "k", "a");
    step(f, "2", "1", "k", "b");
    step(f, "3", "2", "k", "c");
    step(f, "0", "3", "k", "d");
    prune_one(f);
    assert_list(f->store, "t//0 t//3 t//2 t//1");
}

const struct store_case delta_cases[] = {
    STORE_CASE(history_runs_back_to_the_first),
    STORE_CASE(history_stops_at_the_nearest_value),
    STORE_CASE(a_present_null_is_a_seed),
    STORE_CASE(siblings_stay_out),
    STORE_CASE(parents_may_sort_after_their_children),
    STORE_CASE(writes_come_in_order_of_task_and_number),
    STORE_CASE(channels_end_each_on_their_own),
    STORE_CASE(long_chains_and_long_values_are_read),
    STORE_CASE(a_circle_of_parents_ends),
    STORE_CASE(the_writes_of_a_stub_are_replayed),
    STORE_CASE(other_namespaces_stay_out),
    STORE_CASE(prune_keeps_what_delta_channels_need),
    STORE_CASE(prune_needs_no_chain_for_a_value_that_is_there),
    STORE_CASE(prune_keeps_the_chain_of_the_newest_branch_only),
    STORE_CASE(prune_follows_skewed_parents),
    STORE_CASE(prune_survives_a_circle_of_parents),
    {NULL, NULL},
};
