/* Deletion: threads, runs, old checkpoints; the rows that must stay, and the freed space. */
#include "tests/contract/store_cases.h"

#include <sys/stat.h>

#include "store/batch.h"
#include "tests/contract/store_watch.h"

static void delete_thread(struct fixture *f, const char *thread)
{
    struct heddle_thread t = thread_of(thread);

    assert_ok(heddle_delete_thread(f->store, &t, NULL));
}

static void delete_run(struct fixture *f, const char *run)
{
    struct heddle_bytes id = text(run);

    assert_ok(heddle_delete_runs(f->store, text(""), &id, 1, NULL));
}

static void prune(struct fixture *f, const char *thread, enum heddle_prune strategy)
{
    struct heddle_thread t = thread_of(thread);

    assert_ok(heddle_prune(f->store, &t, 1, strategy, NULL));
}

static void assert_empty(struct fixture *f, const char *thread)
{
    struct heddle_usage usage = usage_of(f->store, thread);

    assert_int_equal(usage.checkpoints, 0);
    assert_int_equal(usage.writes, 0);
    assert_int_equal(usage.chunks, 0);
    assert_int_equal(usage.bytes, 0);
}

/* A put with one long value in channel a. */
static void put_long(struct fixture *f, const char *thread, const char *ns, const char *id,
                     const char *parent, unsigned seed, const char *metadata)
{
    char *big = long_json(4000, seed), versions[40];
    struct put put = {.thread = thread,
                      .ns = ns,
                      .id = id,
                      .parent = parent,
                      .versions = versions,
                      .metadata = metadata};

    snprintf(versions, sizeof(versions), "{\"a\":\"%s.%u\"}", id, seed);
    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_ok(try_put(f->store, &put, NULL));
    free(big);
}

static void assert_long(struct fixture *f, const char *thread, const char *ns, const char *id,
                        unsigned seed)
{
    char *big = long_json(4000, seed);
    struct heddle_tuple *tuple = must_get(f->store, thread, ns, id);
    const struct heddle_value *value = value_of(tuple, "a");

    assert_non_null(value);
    assert_int_equal(value->data.len, 4000);
    assert_memory_equal(value->data.data, big, 4000);
    heddle_tuple_free(tuple);
    free(big);
}

static void a_deleted_thread_is_gone(struct fixture *f)
{
    delete_thread(f, "t"); /* not there: nothing */
    put_long(f, "t", "", "1", "", 1, NULL);
    put_long(f, "t", "n", "1", "", 2, NULL);
    put_long(f, "u", "", "1", "", 1, NULL);
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .ns = "m", .id = "7", .task = "k", .values = {VALUE("a", "1")});
    delete_thread(f, "t");
    assert_get(f->store, "t", "", "", "none");
    assert_get(f->store, "t", "n", "", "none");
    assert_empty(f, "t");
    assert_text(render_threads(f->store, "", "", 10), "u");
    assert_long(f, "u", "", "1", 1);
    /* Nothing of it comes back with a new thread of that name. */
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":\"1.1\"}", .changed = "{}");
    PUT(f->store, .thread = "t", .ns = "m", .id = "7");
    assert_get(f->store, "t", "", "1", "1<");
    assert_get(f->store, "t", "m", "7", "7<");
    put_long(f, "t", "", "2", "1", 1, NULL);
    assert_long(f, "t", "", "2", 1);
}

static void deleting_leaves_other_principals_alone(struct fixture *f)
{
    struct heddle_thread p = {text("p"), text("t")};

    PUT(f->store, .thread = "t", .id = "1", .metadata = "{\"run_id\":\"r\"}");
    PUT(f->store, .principal = "p", .thread = "t", .id = "1", .metadata = "{\"run_id\":\"r\"}");
    PUT(f->store, .principal = "pp", .thread = "t", .id = "1", .metadata = "{\"run_id\":\"r\"}");
    PUT(f->store, .thread = "p", .id = "1", .metadata = "{\"run_id\":\"r\"}");
    assert_ok(heddle_delete_thread(f->store, &p, NULL));
    assert_list(f->store, "p//1 t//1");
    assert_query(f->store, "", .principal = text("p"));
    assert_query(f->store, "t//1", .principal = text("pp"));
    delete_run(f, "r");
    assert_list(f->store, "");
    assert_query(f->store, "t//1", .principal = text("pp"));
}

static void the_checkpoints_of_a_run_are_deleted(struct fixture *f)
{
    struct heddle_bytes runs[] = {text("r2"), text("none"), text("r2"), text("")};

    put_long(f, "t", "", "1", "", 1, "{\"run_id\":\"r1\"}");
    put_long(f, "t", "", "2", "1", 2, "{\"run_id\":\"r2\"}");
    put_long(f, "t", "n", "3", "", 3, "{\"run_id\":\"r2\"}");
    put_long(f, "u", "", "4", "", 4, "{\"run_id\":\"r2\"}");
    put_long(f, "u", "", "5", "4", 5, "{}");
    put_long(f, "u", "", "6", "", 6, "{\"run_id\":7}");
    WRITES(f->store, .thread = "t", .id = "2", .task = "k", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "1")});
    delete_run(f, "none");
    delete_run(f, "");
    delete_run(f, "7");
    assert_ok(heddle_delete_runs(f->store, text(""), NULL, 0, NULL));
    assert_list(f->store, "u//6 u//5 u//4 t/n/3 t//2 t//1");
    assert_ok(heddle_delete_runs(f->store, text(""), runs, 4, NULL));
    assert_list(f->store, "u//6 u//5 t//1");
    assert_long(f, "t", "", "1", 1);
    assert_long(f, "u", "", "5", 5);
    assert_int_equal(usage_of(f->store, "t").writes, 1);
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    assert_get(f->store, "t", "", "2", "2<1"); /* its writes went too */
}

static void a_child_keeps_what_it_took_from_a_deleted_parent(struct fixture *f)
{
    put_long(f, "t", "", "1", "", 1, "{\"run_id\":\"r1\"}");
    PUT(f->store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":\"1.1\"}",
        .changed = "{}", .metadata = "{\"run_id\":\"r2\"}");
    delete_run(f, "r1");
    assert_get(f->store, "t", "", "1", "none");
    assert_long(f, "t", "", "2", 1);
    delete_run(f, "r2");
    assert_int_equal(usage_of(f->store, "t").chunks, 0);
}

static void a_put_under_another_run_follows_it(struct fixture *f)
{
    put_long(f, "t", "", "1", "", 1, "{\"run_id\":\"r1\"}");
    put_long(f, "t", "", "1", "", 2, "{\"run_id\":\"r2\"}");
    delete_run(f, "r1");
    assert_long(f, "t", "", "1", 2);
    delete_run(f, "r2");
    assert_get(f->store, "t", "", "1", "none");
}

static void prune_keeps_the_latest_of_each_namespace(struct fixture *f)
{
    put_long(f, "t", "", "1", "", 1, NULL);
    put_long(f, "t", "", "2", "1", 2, NULL);
    put_long(f, "t", "", "3", "2", 3, NULL);
    put_long(f, "t", "n", "1", "", 4, NULL);
    put_long(f, "t", "n", "9", "1", 5, NULL);
    put_long(f, "t", "n|m", "0", "", 6, NULL);
    put_long(f, "u", "", "1", "", 7, NULL);
    put_long(f, "u", "", "2", "1", 8, NULL);
    WRITES(f->store, .thread = "t", .id = "3", .task = "k", .values = {VALUE("a", "1")});
    WRITES(f->store, .thread = "t", .id = "2", .task = "k", .values = {VALUE("a", "1")});
    prune(f, "t", HEDDLE_KEEP_LATEST);
    assert_list(f->store, "t/n/9 t//3 u//2 u//1 t/n|m/0");
    assert_long(f, "t", "", "3", 3);
    assert_long(f, "t", "n", "9", 5);
    assert_long(f, "t", "n|m", "0", 6);
    assert_int_equal(usage_of(f->store, "t").writes, 1);
    assert_int_equal(usage_of(f->store, "t").checkpoints, 3);
    prune(f, "t", HEDDLE_KEEP_LATEST); /* again: nothing more to do */
    assert_list(f->store, "t/n/9 t//3 u//2 u//1 t/n|m/0");
}

static void prune_takes_lists_of_threads(struct fixture *f)
{
    struct heddle_thread both[] = {thread_of("t"), thread_of("none"), thread_of("u")};

    for (int i = 0; i < 2; i++) {
        PUT(f->store, .thread = "t", .id = i ? "1" : "0");
        PUT(f->store, .thread = "u", .id = i ? "1" : "0");
        PUT(f->store, .thread = "v", .id = i ? "1" : "0");
    }
    assert_ok(heddle_prune(f->store, NULL, 0, HEDDLE_KEEP_LATEST, NULL));
    assert_ok(heddle_prune(f->store, both, 3, HEDDLE_KEEP_LATEST, NULL));
    assert_list(f->store, "t//1 u//1 v//1 v//0");
    assert_ok(heddle_prune(f->store, both, 3, HEDDLE_DELETE_ALL, NULL));
    assert_list(f->store, "v//1 v//0");
    assert_text(render_threads(f->store, "", "", 10), "v");
    assert_code(heddle_prune(f->store, both, 3, (enum heddle_prune)7, NULL), HEDDLE_EINVAL);
}

static void prune_gives_back_what_nothing_needs(struct fixture *f)
{
    int64_t before;

    for (unsigned i = 1; i <= 20; i++) {
        char id[16], parent[16];

        snprintf(id, sizeof(id), "%02u", i);
        snprintf(parent, sizeof(parent), "%02u", i - 1);
        put_long(f, "t", "", id, parent, i, NULL);
    }
    before = usage_of(f->store, "t").bytes;
    prune(f, "t", HEDDLE_KEEP_LATEST);
    assert_true(usage_of(f->store, "t").bytes < before / 10);
    assert_long(f, "t", "", "20", 20);
    /* And it works as before, including sharing. */
    put_long(f, "t", "", "21", "20", 20, NULL);
    assert_long(f, "t", "", "21", 20);
    assert_true(usage_of(f->store, "t").bytes < before / 10);
    put_long(f, "t", "", "22", "21", 3, NULL);
    assert_long(f, "t", "", "22", 3);
    reopen(f);
    put_long(f, "t", "", "23", "22", 4, NULL);
    assert_long(f, "t", "", "20", 20);
    assert_long(f, "t", "", "23", 4);
}

static void prune_keeps_values_that_are_only_carried(struct fixture *f)
{
    put_long(f, "t", "", "1", "", 1, NULL);
    for (unsigned i = 2; i <= 5; i++) {
        char id[16], parent[16];

        snprintf(id, sizeof(id), "%u", i);
        snprintf(parent, sizeof(parent), "%u", i - 1);
        PUT(f->store, .thread = "t", .id = id, .parent = parent, .versions = "{\"a\":\"1.1\"}",
            .changed = "{}");
    }
    prune(f, "t", HEDDLE_KEEP_LATEST);
    assert_list(f->store, "t//5");
    assert_long(f, "t", "", "5", 1);
}

static void prune_keeps_what_writes_need(struct fixture *f)
{
    char *big = long_json(4000, 9);
    struct writes batch = {.thread = "t", .id = "2", .task = "k"};
    char expected[4100];

    put_long(f, "t", "", "1", "", 9, NULL);
    batch.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    assert_ok(try_writes(f->store, &batch, NULL)); /* shares with 1 */
    PUT(f->store, .thread = "t", .id = "2", .parent = "1");
    prune(f, "t", HEDDLE_KEEP_LATEST);
    snprintf(expected, sizeof(expected), "2<1 | k/0 a=json:%s", big);
    assert_get(f->store, "t", "", "2", expected);
    /* Writes whose checkpoint has yet to come stay as well. */
    batch.id = "3";
    assert_ok(try_writes(f->store, &batch, NULL));
    prune(f, "t", HEDDLE_KEEP_LATEST);
    PUT(f->store, .thread = "t", .id = "3");
    snprintf(expected, sizeof(expected), "3< | k/0 a=json:%s", big);
    assert_get(f->store, "t", "", "3", expected);
    free(big);
}

static void everything_deleted_leaves_nothing(struct fixture *f)
{
    for (unsigned i = 1; i <= 30; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%02u", i);
        put_long(f, "t", i % 3 ? "" : "n", id, "", i, "{\"run_id\":\"r\"}");
    }
    delete_run(f, "r");
    assert_empty(f, "t");
    put_long(f, "t", "", "1", "", 1, NULL);
    assert_long(f, "t", "", "1", 1);
    prune(f, "t", HEDDLE_DELETE_ALL);
    assert_empty(f, "t");
    assert_text(render_threads(f->store, "", "", 10), "");
}

/* The file does not grow when as much is deleted as is written, and shrinks on request. */
static void freed_space_is_used_again(struct fixture *f)
{
    struct stat empty, once, often, compacted;
    char path[512];

    if (strcmp(f->base, "sqlite:") != 0)
        return;
    snprintf(path, sizeof(path), "%s", f->url + 7);
    reopen(f); /* the log goes into the file */
    assert_int_equal(stat(path, &empty), 0);
    for (int round = 0; round < 12; round++) {
        for (unsigned i = 1; i <= 60; i++) {
            char id[24];

            snprintf(id, sizeof(id), "%02d.%02u", round, i);
            put_long(f, "t", "", id, "", (unsigned)round * 100 + i, NULL);
        }
        if (round % 2)
            prune(f, "t", HEDDLE_KEEP_LATEST);
        else
            delete_thread(f, "t");
        reopen(f);
        if (round == 1)
            assert_int_equal(stat(path, &once), 0);
    }
    assert_int_equal(stat(path, &often), 0);
    assert_true(often.st_size < once.st_size * 3 / 2);
    delete_thread(f, "t");
    assert_ok(heddle_compact(f->store, NULL));
    assert_int_equal(stat(path, &compacted), 0);
    assert_true(compacted.st_size - empty.st_size < (once.st_size - empty.st_size) / 2);
}

static void prune_of_a_large_thread_is_complete(struct fixture *f)
{
    enum { COUNT = 1300 }; /* more than one batch of chunks and several pages of rows */
    char id[16], versions[40];
    struct put put = {.thread = "t", .id = id, .versions = versions};

    for (unsigned i = 0; i < COUNT; i++) {
        char *value = long_json(200, i);

        snprintf(id, sizeof(id), "%05u", i);
        snprintf(versions, sizeof(versions), "{\"a\":%u}", i);
        put.values[0] = (struct heddle_value){text("a"), text("json"), text(value)};
        assert_ok(try_put(f->store, &put, NULL));
        free(value);
    }
    assert_int_equal(usage_of(f->store, "t").chunks, COUNT);
    prune(f, "t", HEDDLE_KEEP_LATEST);
    assert_int_equal(usage_of(f->store, "t").checkpoints, 1);
    assert_int_equal(usage_of(f->store, "t").chunks, 1);
}

/* ---- others in the way ---- */

enum { LOSSES = 12 };

/* A second handle does something each time the first is at the same place, so many times. */
struct rival {
    struct fixture *f;
    struct heddle *store;
    struct watch watch, other;
    void (*act)(struct rival *rival);
    int left;
    unsigned acts;
};

static void rival_open(struct rival *rival, struct fixture *f, void (*act)(struct rival *),
                       int left)
{
    memset(rival, 0, sizeof(*rival));
    rival->f = f;
    rival->act = act;
    rival->left = left;
    watch_store(&rival->watch, f->store);
    rival->store = open_store(f->url);
    if (!is_shared(f->base))
        share_backend(&rival->other, &rival->watch, rival->store);
    ((struct hd_store *)f->store)->timeout_us = 600 * (int64_t)1000000; /* for slow machines */
}

static void rival_close(struct rival *rival)
{
    heddle_close(rival->store);
    ((struct hd_store *)rival->f->store)->backend = rival->watch.inner;
}

static void rival_act(struct rival *rival)
{
    if (rival->left == 0)
        return;
    rival->left--;
    rival->acts++;
    rival->act(rival);
}

static void before_apply(void *arg, const struct hd_batch *batch)
{
    (void)batch;
    rival_act(arg);
}

/* A look reads the row, then the chunks, then the epoch: in between the first two. */
static void before_read(void *arg)
{
    struct rival *rival = arg;

    rival_act(rival);
    rival->watch.pauses_at = atomic_load(&rival->watch.calls) + 3;
}

/* Puts the first checkpoint again, with another value: all readers must read again. */
static void replace_first(struct rival *rival)
{
    struct fixture other = *rival->f;

    other.store = rival->store;
    put_long(&other, "t", "", "1", "", 100 + rival->acts, NULL);
}

static void begin_anew(struct rival *rival)
{
    struct fixture other = *rival->f;

    other.store = rival->store;
    delete_thread(&other, "t");
    put_long(&other, "t", "", "1", "", 100 + rival->acts, NULL);
}

static void a_prune_that_loses_many_times_goes_on(struct fixture *f)
{
    struct rival rival;

    put_long(f, "t", "", "1", "", 1, NULL);
    put_long(f, "t", "", "2", "1", 2, NULL);
    rival_open(&rival, f, replace_first, LOSSES);
    rival.watch.on_apply = before_apply;
    rival.watch.on_apply_arg = &rival;
    prune(f, "t", HEDDLE_KEEP_LATEST);
    assert_int_equal(rival.left, 0);
    assert_list(f->store, "t//2");
    rival_close(&rival);
    assert_long(f, "t", "", "2", 2);
    put_long(f, "fresh", "", "2", "", 2, NULL);
    assert_int_equal(usage_of(f->store, "t").chunks, usage_of(f->store, "fresh").chunks);
}

static void a_put_that_loses_many_times_goes_on(struct fixture *f)
{
    struct rival rival;

    put_long(f, "t", "", "1", "", 1, NULL);
    rival_open(&rival, f, replace_first, LOSSES);
    rival.watch.on_apply = before_apply;
    rival.watch.on_apply_arg = &rival;
    put_long(f, "t", "", "2", "1", 2, NULL);
    assert_int_equal(rival.left, 0);
    rival_close(&rival);
    assert_long(f, "t", "", "2", 2);
    assert_long(f, "t", "", "1", 100 + LOSSES);
}

/* Deletes the thread, creates it again with the contents of the put, and deletes it again. */
static void come_and_go(struct rival *rival)
{
    struct fixture other = *rival->f;

    other.store = rival->store;
    if (rival->acts == 2)
        put_long(&other, "t", "", "1", "", 2, NULL);
    else
        delete_thread(&other, "t");
}

static void come_before_read(void *arg)
{
    rival_act(arg);
}

/* After its first attempt the put looks for the row, which is not there, and then for chunks. */
static void go_before_apply(void *arg, const struct hd_batch *batch)
{
    struct rival *rival = arg;

    (void)batch;
    rival_act(rival);
    rival->watch.pauses_at = rival->acts == 1 ? atomic_load(&rival->watch.calls) + 2 : 0;
}

static void a_thread_refers_to_nothing_of_one_that_came_and_went(struct fixture *f)
{
    struct rival rival;

    put_long(f, "t", "", "1", "", 1, NULL);
    rival_open(&rival, f, come_and_go, 3);
    rival.watch.on_apply = go_before_apply;
    rival.watch.on_apply_arg = &rival;
    rival.watch.pause = come_before_read;
    rival.watch.pause_arg = &rival;
    put_long(f, "t", "", "2", "", 2, NULL);
    assert_int_equal(rival.left, 0);
    rival_close(&rival);
    assert_list(f->store, "t//2");
    assert_long(f, "t", "", "2", 2);
}

static void a_value_that_is_taken_away_many_times_is_not_damaged(struct fixture *f)
{
    struct rival rival;

    put_long(f, "t", "", "1", "", 1, NULL);
    rival_open(&rival, f, begin_anew, LOSSES);
    rival.watch.pause = before_read;
    rival.watch.pause_arg = &rival;
    rival.watch.pauses_at = 2;
    heddle_tuple_free(must_get(f->store, "t", "", "1"));
    rival.watch.pauses_at = 0;
    rival_close(&rival);
    assert_int_equal(rival.left, 0);
    assert_long(f, "t", "", "1", 100 + LOSSES);
}

enum { LONG_LINE = 520 }; /* more than goes in one batch */

static void put_numbered(struct heddle *store, unsigned n)
{
    char id[8], parent[8];

    snprintf(id, sizeof(id), "%04u", n);
    snprintf(parent, sizeof(parent), "%04u", n - 1);
    PUT(store, .thread = "t", .id = id, .parent = n > 1 ? parent : "", .versions = "{\"a\":1}",
        .changed = n > 1 ? "{}" : NULL, .values = {VALUE("a", "1")});
}

static void go_on_with_line(struct rival *rival)
{
    if (rival->acts == 2)
        put_numbered(rival->store, LONG_LINE + 1);
}

/* Its owner is removed with the first batch; then another writer conflicts with the second. */
static void what_belongs_to_a_task_goes_although_others_write(struct fixture *f)
{
    const struct heddle_prune_options branches = {.strategy = HEDDLE_KEEP_BRANCHES};
    struct heddle_thread t = thread_of("t");
    struct rival rival;

    for (unsigned n = 1; n <= LONG_LINE; n++)
        put_numbered(f->store, n);
    PUT(f->store, .thread = "t", .ns = "sub:task", .id = "1", .versions = "{\"b\":1}",
        .metadata = "{\"parents\":{\"\":\"0510\"}}", .values = {VALUE("b", "1")});
    rival_open(&rival, f, go_on_with_line, 2);
    rival.watch.on_apply = before_apply;
    rival.watch.on_apply_arg = &rival;
    assert_ok(heddle_prune_with(f->store, &t, 1, &branches, NULL, NULL));
    assert_int_equal(rival.left, 0);
    rival_close(&rival);
    assert_list(f->store, "t//0521");
}

/* The next checkpoint, and no other. */
static void go_on_alone(struct rival *rival)
{
    struct fixture other = *rival->f;

    other.store = rival->store;
    PUT(other.store, .thread = "t", .id = "2", .parent = "1", .versions = "{\"a\":2}",
        .values = {VALUE("a", "2")});
    prune(&other, "t", HEDDLE_KEEP_LATEST);
}

static void let_rival_act(void *arg)
{
    rival_act(arg);
}

/* It is read in two steps, and goes between them: then it was not there, writes or not. */
static void a_checkpoint_that_goes_while_it_is_read_is_not_read_in_part(struct fixture *f)
{
    struct heddle_query all = {.limit = -1};
    struct heddle_list *list;
    const struct heddle_tuple *tuple;
    struct rival rival;

    for (int round = 0; round < 3; round++) {
        PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}",
            .values = {VALUE("a", "1")});
        WRITES(f->store, .thread = "t", .id = "1", .task = "k", .values = {VALUE("a", "2")});
        assert_ok(heddle_list_open(f->store, &all, &list, NULL));
        rival_open(&rival, f, go_on_alone, 1);
        rival.watch.pause = let_rival_act;
        rival.watch.pause_arg = &rival;
        rival.watch.pauses_at = 2;
        if (round == 0)
            assert_get(f->store, "t", "", "", "2<1 a=json:2");
        else if (round == 1)
            assert_get(f->store, "t", "", "1", "none");
        else
            assert_code(heddle_list_next(list, &tuple, NULL), HEDDLE_ENOTFOUND);
        assert_int_equal(rival.left, 0);
        rival_close(&rival);
        heddle_list_close(list);
        delete_thread(f, "t");
    }
}

static void whoever_loses_all_the_time_is_told_so(struct fixture *f)
{
    struct heddle_thread t = thread_of("t");
    struct heddle_error error = {0};
    struct rival rival;

    put_long(f, "t", "", "1", "", 1, NULL);
    put_long(f, "t", "", "2", "1", 2, NULL);
    rival_open(&rival, f, replace_first, -1);
    rival.watch.on_apply = before_apply;
    rival.watch.on_apply_arg = &rival;
    ((struct hd_store *)f->store)->timeout_us = 1000;
    assert_code(heddle_prune(f->store, &t, 1, HEDDLE_KEEP_LATEST, &error), HEDDLE_EBUSY);
    assert_non_null(strstr(error.text, "write conflicts continued"));
    rival_close(&rival);
    assert_long(f, "t", "", "2", 2);
}

/* Behind the store's back. */
static void lose_chunks(struct fixture *f, const char *thread_key)
{
    struct hd_backend *backend = ((struct hd_store *)f->store)->backend;
    struct hd_cell key = hd_cell_bytes(hd_slice(thread_key, strlen(thread_key)));
    struct hd_batch_builder builder;
    struct hd_batch batch;
    size_t failed;

    hd_batch_init(&builder);
    assert_ok(hd_batch_delete(&builder, HD_CHUNKS, &key, 1));
    batch = hd_batch_view(&builder);
    assert_ok(hd_backend_apply(backend, &batch, &failed, NULL));
    hd_batch_fini(&builder);
}

static void add_chunk(struct fixture *f, int64_t seq)
{
    struct hd_backend *backend = ((struct hd_store *)f->store)->backend;
    const struct hd_cell row[] = {
        [HD_CHUNKS_THREAD] = hd_cell_bytes(HD_S(":t")),
        [HD_CHUNKS_STREAM] = hd_cell_bytes(HD_S("a")),
        [HD_CHUNKS_SEQ] = hd_cell_int(seq),
        [HD_CHUNKS_HASH] = hd_cell_bytes(HD_S("0123456789abcdef")),
        [HD_CHUNKS_DATA] = hd_cell_bytes(HD_S("")),
    };
    const struct hd_op op = {.kind = HD_OP_ADD, .table = HD_CHUNKS, .cells = row};

    assert_ok(hd_backend_apply(backend, &(struct hd_batch){&op, 1}, NULL, NULL));
}

/* The greatest number, which has no successor: the put would not be found again. */
static void after_the_last_number_nothing_is_stored(struct fixture *f)
{
    char *big = long_json(4000, 2);
    struct put put = {.thread = "t", .id = "2", .versions = "{\"a\":2}"};

    put.values[0] = (struct heddle_value){text("a"), text("json"), text(big)};
    PUT(f->store, .thread = "t", .id = "1", .versions = "{\"a\":1}", .values = {VALUE("a", "1")});
    prune(f, "t", HEDDLE_KEEP_LATEST); /* nothing is remembered after that */
    add_chunk(f, INT64_MAX);
    assert_code(try_put(f->store, &put, NULL), HEDDLE_ECORRUPT);
    assert_list(f->store, "t//1");
    free(big);
}

static void what_is_missing_for_good_is_damaged(struct fixture *f)
{
    struct heddle_key key = {thread_of("t"), text(""), text("1")};
    struct heddle_bytes channel = text("a");
    struct heddle_histories *histories;
    struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    struct watch watch;

    put_long(f, "t", "", "1", "", 1, NULL);
    put_long(f, "t", "", "2", "1", 2, NULL);
    lose_chunks(f, ":t");
    watch_store(&watch, f->store);
    assert_code(heddle_get(f->store, &key, &tuple, &error), HEDDLE_ECORRUPT);
    assert_string_equal(error.text, "a stored value of thread ':t' is damaged");
    assert_int_equal(watch.calls, 12); /* four looks, and the epoch after each */
    key.id = text("2");
    assert_code(heddle_delta_history(f->store, &key, &channel, 1, &histories, &error),
                HEDDLE_ECORRUPT);
    assert_code(heddle_check(f->store, &error), HEDDLE_ECORRUPT);
    assert_non_null(strstr(error.text, "in thread ':t' is damaged"));
    ((struct hd_store *)f->store)->backend = watch.inner;
    delete_thread(f, "t");
}

const struct store_case retain_cases[] = {
    STORE_CASE(a_deleted_thread_is_gone),
    STORE_CASE(deleting_leaves_other_principals_alone),
    STORE_CASE(the_checkpoints_of_a_run_are_deleted),
    STORE_CASE(a_child_keeps_what_it_took_from_a_deleted_parent),
    STORE_CASE(a_put_under_another_run_follows_it),
    STORE_CASE(prune_keeps_the_latest_of_each_namespace),
    STORE_CASE(prune_takes_lists_of_threads),
    STORE_CASE(prune_gives_back_what_nothing_needs),
    STORE_CASE(prune_keeps_values_that_are_only_carried),
    STORE_CASE(prune_keeps_what_writes_need),
    STORE_CASE(everything_deleted_leaves_nothing),
    STORE_CASE(freed_space_is_used_again),
    STORE_CASE(prune_of_a_large_thread_is_complete),
    STORE_CASE(a_prune_that_loses_many_times_goes_on),
    STORE_CASE(a_put_that_loses_many_times_goes_on),
    STORE_CASE(a_thread_refers_to_nothing_of_one_that_came_and_went),
    STORE_CASE(a_value_that_is_taken_away_many_times_is_not_damaged),
    STORE_CASE(what_belongs_to_a_task_goes_although_others_write),
    STORE_CASE(a_checkpoint_that_goes_while_it_is_read_is_not_read_in_part),
    STORE_CASE(whoever_loses_all_the_time_is_told_so),
    STORE_CASE(after_the_last_number_nothing_is_stored),
    STORE_CASE(what_is_missing_for_good_is_damaged),
    {NULL, NULL},
};
