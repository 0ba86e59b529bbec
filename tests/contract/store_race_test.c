/*
 * Two handles on one database, as in two processes: each operation of the one runs in every gap of
 * each operation of the other.
 *
 * The store guarantees serial results: the results of both operations and everything that can be
 * read afterwards must match one of the two orders. And a handle that dies in any gap must leave
 * either nothing of its operation or all of it, and must not block others.
 *
 * Each attempt uses a separate principal, so they share one database.
 *
 *   HEDDLE_RACE_SECONDS   duration of each case (0.4): gaps are chosen at random
 *   HEDDLE_TEST_LONG=1    all of them, without a time limit
 *   HEDDLE_TEST_SEED      repeats a choice (printed when one fails)
 */
#include <stdio.h>
#include <time.h>

#include "store/lane.h"
#include "tests/contract/store_help.h"
#include "tests/contract/store_watch.h"

struct stage {
    struct fixture *f;
    struct heddle *a, *b; /* b is f->store when it can open its own database */
    struct watch watch_a, watch_b;
    char principal[24];
    unsigned seed, lot;
    double until;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct act {
    struct heddle *store;
    const char *principal;
    int code;
};

/* ---- data of the operations ---- */

static struct heddle_thread thread_in(const struct act *act, const char *id)
{
    return (struct heddle_thread){text(act->principal), text(id)};
}

/* [s1, …, sn], each s 400 bytes: separate chunks. */
static char *list_value(unsigned first, unsigned count)
{
    char *list = malloc(count * 401 + 2), *end = list;

    assert_non_null(list);
    *end++ = '[';
    for (unsigned i = 0; i < count; i++) {
        char *element = long_json(400, first + i);

        if (i)
            *end++ = ',';
        memcpy(end, element, 400);
        end += 400;
        free(element);
    }
    *end++ = ']';
    *end = '\0';
    return list;
}

/* Channel m is a list of `count` elements, b is carried on, c is short. */
static int put_step(struct act *act, const char *thread, const char *id, const char *parent,
                    unsigned count, const char *run)
{
    char versions[100], changed[60], metadata[60];
    char *list = list_value(1, count), *big = long_json(900, 77);
    struct put put = {.principal = act->principal,
                      .thread = thread,
                      .id = id,
                      .parent = parent,
                      .versions = versions,
                      .changed = changed,
                      .metadata = metadata};
    int code;

    snprintf(versions, sizeof(versions), "{\"m\":%u,\"b\":1,\"c\":%u}", count, count);
    snprintf(changed, sizeof(changed), "{\"m\":%u,\"c\":%u%s}", count, count,
             *parent ? "" : ",\"b\":1");
    snprintf(metadata, sizeof(metadata), "{\"run_id\":\"%s\"}", run);
    put.values[0] = (struct heddle_value){text("m"), text("json"), text(list)};
    put.values[1] = (struct heddle_value){text("b"), text("json"), text(big)};
    put.values[2] = (struct heddle_value)VALUE("c", "1");
    code = try_put(act->store, &put, NULL);
    free(list);
    free(big);
    return code;
}

static int put_writes(struct act *act, const char *thread, const char *id, const char *task,
                      const char *channel, unsigned seed)
{
    char *big = long_json(600, seed);
    struct writes batch = {
        .principal = act->principal, .thread = thread, .id = id, .task = task, .path = "p"};
    int code;

    batch.values[0] = (struct heddle_value){text(channel), text("json"), text(big)};
    batch.values[1] = (struct heddle_value)VALUE("short", "1");
    code = try_writes(act->store, &batch, NULL);
    free(big);
    return code;
}

/* Thread t: five checkpoints in a line, another namespace, writes; thread s: two. */
static void set_up(struct heddle *store, const char *principal)
{
    struct act act = {store, principal, 0};
    char *big = long_json(2000, 55);
    struct put put = {
        .principal = principal, .thread = "t", .ns = "n", .id = "1", .versions = "{\"m\":1}"};

    assert_ok(put_step(&act, "t", "1", "", 1, "r1"));
    assert_ok(put_step(&act, "t", "2", "1", 2, "r2"));
    assert_ok(put_step(&act, "t", "3", "2", 3, "r1"));
    assert_ok(put_writes(&act, "t", "3", "k", "m", 3));
    assert_ok(put_step(&act, "t", "4", "3", 4, "r2"));
    assert_ok(put_step(&act, "t", "5", "4", 5, "r1"));
    assert_ok(put_writes(&act, "t", "5", "k", "__resume__", 61));
    put.values[0] = (struct heddle_value){text("m"), text("json"), text(big)};
    assert_ok(try_put(store, &put, NULL));
    assert_ok(put_step(&act, "s", "1", "", 1, "r1"));
    assert_ok(put_step(&act, "s", "2", "1", 2, "r3"));
    free(big);
}

/* ---- the operations ---- */

static int put_next(struct act *act)
{
    return put_step(act, "t", "6", "5", 6, "r1");
}

static int put_next_of_skewed_clock(struct act *act)
{
    return put_step(act, "t", "0", "5", 6, "r1");
}

static int put_fork(struct act *act)
{
    return put_step(act, "t", "7", "2", 3, "r4");
}

/* Everything in it changes, the carried channel too. */
static int replace(struct act *act, const char *id, const char *parent, unsigned seed,
                   const char *run)
{
    char *big = long_json(1500, seed), metadata[60];
    struct put put = {.principal = act->principal,
                      .thread = "t",
                      .id = id,
                      .parent = parent,
                      .versions = "{\"m\":5,\"b\":1,\"c\":5}",
                      .metadata = metadata};
    int code;

    snprintf(metadata, sizeof(metadata), "{\"run_id\":\"%s\"}", run);
    put.values[0] = (struct heddle_value)VALUE("m", "[]");
    put.values[1] = (struct heddle_value){text("b"), text("json"), text(big)};
    code = try_put(act->store, &put, NULL);
    free(big);
    return code;
}

static int replace_latest(struct act *act)
{
    return replace(act, "5", "4", 91, "r1");
}

/* Continues run r2, which is deleted concurrently. */
static int replace_inner(struct act *act)
{
    return replace(act, "2", "1", 92, "r5");
}

static int replace_by_carrying(struct act *act)
{
    struct put put = {.principal = act->principal,
                      .thread = "t",
                      .id = "4",
                      .parent = "5",
                      .versions = "{\"b\":1,\"m\":5}",
                      .changed = "{}"};

    return try_put(act->store, &put, NULL);
}

static int write_one(struct act *act)
{
    return put_writes(act, "t", "5", "k2", "m", 3);
}

static int write_early(struct act *act)
{
    return put_writes(act, "t", "9", "k", "m", 8);
}

static int resume(struct act *act)
{
    return put_writes(act, "t", "5", "k", "__resume__", 62);
}

static int prune(struct act *act)
{
    struct heddle_thread t = thread_in(act, "t");

    return heddle_prune(act->store, &t, 1, HEDDLE_KEEP_LATEST, NULL);
}

static int delete_thread(struct act *act)
{
    struct heddle_thread t = thread_in(act, "t");

    return heddle_delete_thread(act->store, &t, NULL);
}

static int delete_runs(struct act *act)
{
    struct heddle_bytes runs[] = {text("r2"), text("r3")};

    return heddle_delete_runs(act->store, text(act->principal), runs, 2, NULL);
}

static int copy_from_to(struct act *act, const char *source, const char *target)
{
    struct heddle_thread from = thread_in(act, source), to = thread_in(act, target);

    return heddle_copy_thread(act->store, &from, &to, NULL);
}

static int copy(struct act *act)
{
    return copy_from_to(act, "t", "u");
}

static int copy_another(struct act *act)
{
    return copy_from_to(act, "s", "u");
}

static int put_into_copy(struct act *act)
{
    return put_step(act, "u", "1", "", 2, "r1");
}

static int write_into_copy(struct act *act)
{
    return put_writes(act, "u", "1", "k", "m", 3);
}

static int delete_copy(struct act *act)
{
    struct heddle_thread u = thread_in(act, "u");

    return heddle_delete_thread(act->store, &u, NULL);
}

static int prune_copy(struct act *act)
{
    struct heddle_thread u = thread_in(act, "u");

    return heddle_prune(act->store, &u, 1, HEDDLE_KEEP_LATEST, NULL);
}

static int delete_and_begin_again(struct act *act)
{
    int code = delete_thread(act);

    return code ? code : put_step(act, "t", "5", "", 5, "r1");
}

/* Large enough that its chunks do not fit into one batch. */
static int put_much(struct act *act)
{
    char *data = malloc(5 << 20);
    uint64_t x = 5;
    struct put put = {
        .principal = act->principal, .thread = "s", .id = "3", .versions = "{\"m\":3}"};
    int code;

    assert_non_null(data);
    for (size_t i = 0; i < 5 << 20; i += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(data + i, &(uint64_t){x ^ x >> 29}, 8);
    }
    put.values[0] = (struct heddle_value){text("m"), text("raw"), bytes(data, 5 << 20)};
    code = try_put(act->store, &put, NULL);
    free(data);
    return code;
}

struct op {
    const char *name;
    int (*run)(struct act *act);
    int (*prepare)(struct act *act); /* done before, by the same handle; may be NULL */
    /*
     * Prune selects checkpoints and deletes them in two steps. A fork from a selected one may come
     * in between: then more is kept than in either order.
     */
    bool may_keep_more;
    bool is_more_than_one; /* operations: others may come between */
};

static const struct op ops[] = {
    {.name = "put_next", .run = put_next},
    {.name = "put_next_of_skewed_clock", .run = put_next_of_skewed_clock},
    {.name = "put_fork", .run = put_fork, .may_keep_more = true},
    {.name = "replace_latest", .run = replace_latest},
    {.name = "replace_inner", .run = replace_inner, .may_keep_more = true},
    {.name = "replace_by_carrying", .run = replace_by_carrying, .may_keep_more = true},
    {.name = "write_one", .run = write_one},
    {.name = "write_early", .run = write_early},
    {.name = "resume", .run = resume},
    {.name = "prune", .run = prune},
    {.name = "delete_thread", .run = delete_thread},
    {.name = "delete_runs", .run = delete_runs},
    {.name = "copy", .run = copy},
    {.name = "copy_another", .run = copy_another},
    {.name = "put_into_copy", .run = put_into_copy},
    {.name = "write_into_copy", .run = write_into_copy},
    {.name = "delete_copy", .run = delete_copy},
    {.name = "prune_copy", .run = prune_copy},
    {.name = "delete_and_begin_again", .run = delete_and_begin_again, .is_more_than_one = true},
    {.name = "copy_much", .run = copy_another, .prepare = put_much},
};

enum { OPS = COUNT_OF(ops) };

/* ---- the visible state afterwards ---- */

static void dump_usage(FILE *out, struct heddle *store, const char *principal)
{
    static const char threads[][2] = {"s", "t", "u"};

    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        struct heddle_thread thread = {text(principal), text(threads[i])};
        struct heddle_usage usage;

        assert_ok(heddle_thread_usage(store, &thread, &usage, NULL));
        fprintf(out, "%s has %lld checkpoints, %lld writes\n", threads[i],
                (long long)usage.checkpoints, (long long)usage.writes);
    }
}

static void dump_value(FILE *out, const struct heddle_value *value)
{
    const unsigned char *c = value->data.data;
    uint64_t sum = value->data.len;

    for (size_t i = 0; i < value->data.len; i++)
        sum = (sum ^ c[i]) * 1099511628211u;
    fprintf(out, " %.*s:%zu:%08x", (int)value->channel.len, (const char *)value->channel.data,
            value->data.len, (unsigned)(sum >> 32));
}

static void dump_tuple(FILE *out, const struct heddle_tuple *tuple)
{
    fprintf(out, "%.*s/%.*s/%.*s<%.*s", (int)tuple->thread.id.len,
            (const char *)tuple->thread.id.data, (int)tuple->ns.len, (const char *)tuple->ns.data,
            (int)tuple->id.len, (const char *)tuple->id.data, (int)tuple->parent.len,
            (const char *)tuple->parent.data);
    for (size_t i = 0; i < tuple->value_count; i++)
        dump_value(out, &tuple->values[i]);
    for (size_t i = 0; i < tuple->write_count; i++) {
        fprintf(out, " | %.*s/%d", (int)tuple->writes[i].task_id.len,
                (const char *)tuple->writes[i].task_id.data, (int)tuple->writes[i].idx);
        dump_value(out, &tuple->writes[i].value);
    }
    fprintf(out, " %.*s %.*s\n", (int)tuple->metadata.len, (const char *)tuple->metadata.data,
            (int)tuple->checkpoint.len, (const char *)tuple->checkpoint.data);
}

/* Everything of a principal, a line for each checkpoint, values by their sums. */
static char *dump(struct heddle *store, const char *principal)
{
    struct heddle_query query = {.principal = text(principal), .limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    struct heddle_error error = {0};
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    int code;

    assert_non_null(out);
    assert_ok(heddle_list_open(store, &query, &list, NULL));
    while ((code = heddle_list_next(list, &tuple, &error)) == 0)
        dump_tuple(out, tuple);
    if (code != HEDDLE_ENOTFOUND)
        fprintf(out, "FAILED: %s\n", error.text);
    heddle_list_close(list);
    dump_usage(out, store, principal);
    fclose(out);
    return all;
}

static char *outcome(const struct stage *stage, const struct act *first, const struct act *second)
{
    char *all = dump(stage->b, stage->principal), *whole;

    if (asprintf(&whole, "%d %d\n%s", first->code, second->code, all) < 0)
        fail();
    free(all);
    return whole;
}

static bool all_lines_in(const char *lines, const char *one, const char *other)
{
    char line[600];

    while (*lines) {
        size_t len = strcspn(lines, "\n") + 1;

        snprintf(line, sizeof(line), "%.*s", (int)len, lines);
        if (strstr(line, " checkpoints, ") == NULL && !strstr(one, line) && !strstr(other, line))
            return false;
        lines += len;
    }
    return true;
}

/* ---- the stage ---- */

static void open_stage(struct stage *stage, struct fixture *f)
{
    const char *seconds = getenv("HEDDLE_RACE_SECONDS"), *seed = getenv("HEDDLE_TEST_SEED");

    memset(stage, 0, sizeof(*stage));
    stage->until = now() + (seconds ? strtod(seconds, NULL) : 0.4);
    stage->lot = stage->seed = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    stage->f = f;
    stage->a = f->store;
    watch_store(&stage->watch_a, stage->a);
    stage->b = open_store(f->url);
    if (is_shared(f->base))
        watch_store(&stage->watch_b, stage->b);
    else
        share_backend(&stage->watch_b, &stage->watch_a, stage->b);
}

/* Leaves f->store as it was opened, for the check that follows. */
static void close_stage(struct stage *stage)
{
    struct hd_store *a = (struct hd_store *)stage->a;

    heddle_close(stage->b);
    a->backend = stage->watch_a.inner;
}

static void new_principal(struct stage *stage)
{
    static unsigned number;

    snprintf(stage->principal, sizeof(stage->principal), "p%u", ++number);
    watch_reset(&stage->watch_a);
    watch_reset(&stage->watch_b);
}

static void prepare(const struct op *op, struct act *act)
{
    if (op->prepare)
        assert_ok(op->prepare(act));
}

/* `warm`: a has the threads cached, else b has. */
static void new_scene(struct stage *stage, const struct op *one, const struct op *other, bool warm,
                      struct act *a, struct act *b)
{
    new_principal(stage);
    *a = (struct act){stage->a, stage->principal, 0};
    *b = (struct act){stage->b, stage->principal, 0};
    set_up(warm ? stage->a : stage->b, stage->principal);
    prepare(one, warm ? a : b);
    prepare(other, warm ? a : b);
}

static char *run_in_order(struct stage *stage, const struct op *one, const struct op *other,
                          bool is_reversed)
{
    struct act a, b;

    new_scene(stage, one, other, true, &a, &b);
    if (is_reversed)
        b.code = other->run(&b);
    a.code = one->run(&a);
    if (!is_reversed)
        b.code = other->run(&b);
    return outcome(stage, &a, &b);
}

struct intruder {
    const struct op *op;
    struct act *act;
    bool has_run;
};

static void intrude(void *arg)
{
    struct intruder *intruder = arg;

    intruder->act->code = intruder->op->run(intruder->act);
    intruder->has_run = true;
}

/* In any case both continue: they write, read back, delete and leave nothing. */
static void carry_on(struct stage *stage)
{
    static const char *const threads[] = {"s", "t", "u"};
    struct act acts[] = {{stage->a, stage->principal, 0}, {stage->b, stage->principal, 0}};

    char *seen[2];

    for (int i = 0; i < 3; i++) {
        struct heddle_thread thread = thread_in(&acts[0], threads[i]);

        assert_ok(put_step(&acts[i % 2], threads[i], "8.0", "5", 6, "r9"));
        assert_ok(put_writes(&acts[(i + 1) % 2], threads[i], "8.0", "k", "m", 3));
        assert_ok(put_step(&acts[(i + 1) % 2], threads[i], "8.1", "8.0", 7, "r9"));
        assert_ok(heddle_prune(acts[i % 2].store, &thread, 1, HEDDLE_KEEP_LATEST, NULL));
    }
    for (int i = 0; i < 2; i++)
        seen[i] = dump(acts[i].store, stage->principal);
    assert_string_equal(seen[0], seen[1]);
    assert_null(strstr(seen[0], "FAILED"));
    free(seen[0]);
    free(seen[1]);
    for (int i = 0; i < 3; i++) {
        struct heddle_thread thread = thread_in(&acts[i % 2], threads[i]);
        struct heddle_usage usage;

        assert_ok(heddle_delete_thread(acts[i % 2].store, &thread, NULL));
        assert_ok(heddle_thread_usage(acts[0].store, &thread, &usage, NULL));
        assert_int_equal(usage.bytes, 0);
    }
}

static void judge(const struct stage *stage, const struct op *one, const struct op *other,
                  char *got, const char *ab, const char *ba, int gap, bool warm)
{
    bool is_right = strcmp(got, ab) == 0 || strcmp(got, ba) == 0;

    if (one->is_more_than_one || other->is_more_than_one)
        is_right = strstr(got, "FAILED") == NULL;
    if (!is_right && ((one->run == prune && other->may_keep_more) ||
                      (other->run == prune && one->may_keep_more)))
        is_right = all_lines_in(got, ab, ba);
    if (!is_right) {
        print_error(
            "seed %u, %s in gap %d of %s (%s):\n%s\none after the other:\n%s\nthe other way:\n%s\n",
            stage->seed, other->name, gap, one->name, warm ? "warm" : "cold", got, ab, ba);
        fail();
    }
    free(got);
}

static unsigned draw(struct stage *stage, unsigned count)
{
    stage->lot = stage->lot * 1103515245u + 12345u;
    return (stage->lot >> 16) % count;
}

/* Some of the gaps, fewer where a call takes longer. */
static bool is_chosen(struct stage *stage)
{
    unsigned percent = strcmp(stage->f->base, "memory:") == 0      ? 30
                       : strncmp(stage->f->base, "sqlite", 6) == 0 ? 10
                                                                   : 4;

    return getenv("HEDDLE_TEST_LONG") || draw(stage, 100) < percent;
}

static bool is_over(const struct stage *stage)
{
    return !getenv("HEDDLE_TEST_LONG") && now() > stage->until;
}

static void interleave(struct stage *stage, const struct op *one, const struct op *other)
{
    char *ab = NULL, *ba = NULL;

    for (int warm = 0; warm < 2; warm++) {
        struct intruder intruder = {.has_run = true};

        for (int gap = 1; intruder.has_run && !is_over(stage); gap++) {
            struct act a, b;

            if (gap < 100 && !is_chosen(stage)) {
                if (gap > 14)
                    break; /* without a run the number of gaps is unknown */
                continue;
            }
            if (!ab) {
                ab = run_in_order(stage, one, other, false);
                ba = run_in_order(stage, one, other, true);
                assert_null(strstr(ab, "FAILED"));
                assert_null(strstr(ba, "FAILED"));
            }
            new_scene(stage, one, other, warm, &a, &b);
            intruder = (struct intruder){other, &b, false};
            watch_reset(&stage->watch_a);
            stage->watch_a.pauses_at = gap;
            stage->watch_a.pause = intrude;
            stage->watch_a.pause_arg = &intruder;
            a.code = one->run(&a);
            if (!intruder.has_run)
                break;
            judge(stage, one, other, outcome(stage, &a, &b), ab, ba, gap, warm);
            carry_on(stage);
        }
    }
    free(ab);
    free(ba);
}

/* ---- the cases ---- */

/* Begins with any of them, so that all have their turn when there is not time for all. */
static void meet_all(struct fixture *f, const struct op *one)
{
    struct stage stage;
    unsigned first;

    open_stage(&stage, f);
    stage.lot += (unsigned)(one - ops) * 7919u;
    first = draw(&stage, OPS);
    for (unsigned i = 0; i < OPS && !is_over(&stage); i++) {
        const struct op *other = &ops[(first + i) % OPS];

        /* The large copy is slow, and matters only to operations on its target. */
        if (!other->prepare || strstr(one->name, "copy"))
            interleave(&stage, one, other);
    }
    close_stage(&stage);
}

#define MEETS(name, number)                                \
    static void name##_meets_everything(struct fixture *f) \
    {                                                      \
        meet_all(f, &ops[number]);                         \
    }
MEETS(put_next, 0)
MEETS(put_next_of_skewed_clock, 1)
MEETS(put_fork, 2)
MEETS(replace_latest, 3)
MEETS(replace_inner, 4)
MEETS(replace_by_carrying, 5)
MEETS(write_one, 6)
MEETS(write_early, 7)
MEETS(resume, 8)
MEETS(prune, 9)
MEETS(delete_thread, 10)
MEETS(delete_runs, 11)
MEETS(copy, 12)
MEETS(copy_another, 13)
MEETS(put_into_copy, 14)
MEETS(write_into_copy, 15)
MEETS(delete_copy, 16)
MEETS(prune_copy, 17)
MEETS(delete_and_begin_again, 18)
MEETS(copy_much, 19)

/* A handle dies before or after any of its calls. */
static void die_everywhere(struct stage *stage, const struct op *op)
{
    char *before, *after;
    struct act a, b;
    bool has_died = true;

    new_scene(stage, op, op, true, &a, &b);
    before = dump(stage->b, stage->principal);
    assert_ok(op->run(&b));
    after = dump(stage->b, stage->principal);
    for (int gap = 1; has_died; gap++) {
        char *got;

        new_scene(stage, op, op, gap % 2, &a, &b);
        watch_reset(&stage->watch_a);
        stage->watch_a.dies_at = gap;
        a.code = op->run(&a);
        has_died = atomic_load(&stage->watch_a.calls) >= gap;
        /* Its cache dies with it; here only the backend does. */
        stage->watch_a.dies_at = 0;
        got = dump(stage->b, stage->principal);
        if (strcmp(got, after) != 0 && (a.code == 0 || strcmp(got, before) != 0)) {
            print_error("%s died at call %d (%d) and left:\n%s\nbefore:\n%s\nafter:\n%s\n",
                        op->name, gap, a.code, got, before, after);
            fail();
        }
        free(got);
        carry_on(stage);
        while (has_died && gap < 60 && !is_chosen(stage))
            gap++;
    }
    free(before);
    free(after);
}

static void a_handle_that_dies_leaves_whole_things(struct fixture *f)
{
    struct stage stage;
    unsigned first;

    open_stage(&stage, f);
    stage.until += 1; /* there is only one case of these */
    first = draw(&stage, OPS);
    for (unsigned i = 0; i < OPS && !is_over(&stage); i++) {
        const struct op *op = &ops[(first + i) % OPS];

        /* Runs are deleted thread by thread. */
        if (!op->is_more_than_one && op->run != delete_runs)
            die_everywhere(&stage, op);
    }
    close_stage(&stage);
}

/* A prune dies when the old checkpoints are gone and the chunks are not. */
static void leave_a_collection(struct stage *stage, struct act *a)
{
    watch_reset(&stage->watch_a);
    for (int gap = 1; atomic_load(&stage->watch_a.applies) < 2; gap++) {
        watch_reset(&stage->watch_a);
        stage->watch_a.dies_at = gap;
        assert_int_not_equal(prune(a), 0);
    }
    watch_reset(&stage->watch_a);
}

/* After a collector died sharing pauses; any prune starts it again. */
static void sharing_goes_on_after_a_dead_collector(struct fixture *f)
{
    struct stage stage;
    struct act a, b;
    struct heddle_thread t;
    struct heddle_usage odd, even;

    open_stage(&stage, f);
    new_scene(&stage, &ops[9], &ops[9], true, &a, &b);
    t = thread_in(&a, "t");
    leave_a_collection(&stage, &a);
    assert_ok(put_step(&b, "t", "6", "5", 6, "r1"));
    assert_ok(put_step(&b, "t", "7", "6", 7, "r1"));
    assert_ok(prune(&b));
    assert_ok(heddle_thread_usage(stage.b, &t, &odd, NULL));
    assert_ok(put_step(&b, "t", "8", "7", 8, "r1"));
    assert_ok(put_step(&a, "t", "9", "8", 9, "r1"));
    assert_ok(heddle_thread_usage(stage.b, &t, &even, NULL));
    assert_int_equal(even.chunks, odd.chunks + 2); /* only the appended element */
    close_stage(&stage);
}

/* As if the state had been loaded half a minute ago. */
static void let_time_pass(struct heddle *store)
{
    struct hd_store *inner = (struct hd_store *)store;

    for (unsigned i = 0; i < inner->lane_count; i++) {
        struct hd_cached_thread *state = inner->lanes[i].cache.newest;

        for (; state; state = state->older)
            state->loaded_at -= (int64_t)31 * 1000000;
    }
}

/* Without a prune, a writer that has waited long enough ends the collection itself. */
static void a_writer_ends_a_collection_that_nobody_finishes(struct fixture *f)
{
    struct stage stage;
    struct act a, b;
    struct heddle_thread t;
    struct heddle_usage before, paused, after;

    open_stage(&stage, f);
    new_scene(&stage, &ops[9], &ops[9], true, &a, &b);
    t = thread_in(&a, "t");
    leave_a_collection(&stage, &a);
    assert_ok(heddle_thread_usage(stage.b, &t, &before, NULL));
    assert_int_equal(before.checkpoints, 2);
    assert_ok(put_step(&b, "t", "6", "5", 6, "r1"));
    assert_ok(heddle_thread_usage(stage.b, &t, &paused, NULL));
    assert_true(paused.chunks >= before.chunks + 6); /* nothing is shared during the pause */
    let_time_pass(stage.b);
    assert_ok(put_step(&b, "t", "7", "6", 7, "r1"));
    assert_ok(put_step(&b, "t", "8", "7", 8, "r1"));
    assert_ok(put_step(&a, "t", "9", "8", 9, "r1"));
    assert_ok(heddle_thread_usage(stage.b, &t, &after, NULL));
    assert_int_equal(after.chunks, paused.chunks + 3);
    carry_on(&stage);
    close_stage(&stage);
}

static void a_copy_left_half_done_is_not_seen(struct fixture *f)
{
    struct stage stage;
    struct act a, b;

    open_stage(&stage, f);
    for (int gap = 1; gap < 40 && !is_over(&stage); gap++) {
        struct heddle_threads *threads;
        char *expected, *got;

        new_scene(&stage, &ops[19], &ops[0], true, &a, &b);
        watch_reset(&stage.watch_a);
        stage.watch_a.dies_at = gap;
        if (ops[19].run(&a) == 0)
            break;
        watch_reset(&stage.watch_a);
        assert_ok(heddle_list_threads(stage.b, text(stage.principal), text(""), 9, &threads, NULL));
        assert_int_equal(threads->count, 2);
        heddle_threads_free(threads);
        /* The next caller creates it again. */
        assert_ok(ops[19].run(gap % 2 ? &b : &a));
        got = dump(stage.b, stage.principal);
        expected = strstr(got, "\ns/");
        assert_non_null(expected);
        assert_non_null(strstr(got, "u has 3 checkpoints"));
        free(got);
        carry_on(&stage);
    }
    close_stage(&stage);
}

/* ---- readers ---- */

static void reader_meets(struct stage *stage, const struct op *other)
{
    for (int gap = 1; gap < 12 && !is_over(stage); gap++) {
        struct act a, b;
        struct intruder intruder;
        struct heddle_key key;
        struct heddle_tuple *tuple = NULL;
        struct heddle_histories *histories;
        struct heddle_bytes channel = text("m");
        struct heddle_error error = {0};
        int code;

        if (!is_chosen(stage))
            continue;
        new_scene(stage, other, other, gap % 2, &a, &b);
        key = (struct heddle_key){thread_in(&a, "t"), text(""), text("")};
        intruder = (struct intruder){other, &b, false};
        watch_reset(&stage->watch_a);
        stage->watch_a.pauses_at = gap;
        stage->watch_a.pause = intrude;
        stage->watch_a.pause_arg = &intruder;
        code = heddle_get(stage->a, &key, &tuple, &error);
        if (code && code != HEDDLE_ENOTFOUND)
            fail_msg("get, %s in gap %d: %s", other->name, gap, error.text);
        heddle_tuple_free(tuple);
        code = heddle_delta_history(stage->a, &key, &channel, 1, &histories, &error);
        if (code)
            fail_msg("history, %s in gap %d: %s", other->name, gap, error.text);
        heddle_histories_free(histories);
        free(dump(stage->a, stage->principal));
        code = heddle_check(stage->a, &error);
        if (code)
            fail_msg("check, %s in gap %d: %s", other->name, gap, error.text);
        carry_on(stage);
    }
}

static void readers_never_see_damage(struct fixture *f)
{
    struct stage stage;
    unsigned first;

    open_stage(&stage, f);
    stage.until += 1;
    first = draw(&stage, OPS);
    for (unsigned i = 0; i < OPS && !is_over(&stage); i++) {
        if (ops[(first + i) % OPS].prepare == NULL)
            reader_meets(&stage, &ops[(first + i) % OPS]);
    }
    close_stage(&stage);
}

int main(void)
{
    static const struct store_case cases[] = {
        STORE_CASE(put_next_meets_everything),
        STORE_CASE(put_next_of_skewed_clock_meets_everything),
        STORE_CASE(put_fork_meets_everything),
        STORE_CASE(replace_latest_meets_everything),
        STORE_CASE(replace_inner_meets_everything),
        STORE_CASE(replace_by_carrying_meets_everything),
        STORE_CASE(write_one_meets_everything),
        STORE_CASE(write_early_meets_everything),
        STORE_CASE(resume_meets_everything),
        STORE_CASE(prune_meets_everything),
        STORE_CASE(delete_thread_meets_everything),
        STORE_CASE(delete_runs_meets_everything),
        STORE_CASE(copy_meets_everything),
        STORE_CASE(copy_another_meets_everything),
        STORE_CASE(put_into_copy_meets_everything),
        STORE_CASE(write_into_copy_meets_everything),
        STORE_CASE(delete_copy_meets_everything),
        STORE_CASE(prune_copy_meets_everything),
        STORE_CASE(delete_and_begin_again_meets_everything),
        STORE_CASE(copy_much_meets_everything),
        STORE_CASE(a_handle_that_dies_leaves_whole_things),
        STORE_CASE(sharing_goes_on_after_a_dead_collector),
        STORE_CASE(a_writer_ends_a_collection_that_nobody_finishes),
        STORE_CASE(a_copy_left_half_done_is_not_seen),
        STORE_CASE(readers_never_see_damage),
        {NULL, NULL},
    };
    static const struct store_case *const tables[] = {cases};

    return run_cases("race", tables, 1, "durability=relaxed&timeout=60");
}
