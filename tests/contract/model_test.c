/*
 * Long random sequences of operations, on the store and on the model; every
 * answer must be the same.
 *
 *   HEDDLE_TEST_SEED     repeats a sequence (printed when one fails)
 *   HEDDLE_MODEL_STEPS   one sequence of so many steps: lower it to the step that
 *                        failed, then look for less
 *   HEDDLE_MODEL_SECONDS each case takes so long, instead of TOTAL_STEPS
 */
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "tests/contract/model.h"
#include "tests/contract/store_watch.h"

enum { JSON_MAX = 2000, TOTAL_STEPS = 2400 };

struct world {
    struct fixture *f;
    struct model *model;
    struct heddle *handles[2];
    int handle_count;
    struct watch watches[2];
    uint64_t random;
    unsigned seed;
    long step;
    const char *doing;
};

/* ---- chance ---- */

static unsigned pick(struct world *w, unsigned count)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((w->random >> 33) % count);
}

static bool chance(struct world *w, unsigned percent)
{
    return pick(w, 100) < percent;
}

static struct heddle *any_handle(struct world *w)
{
    return w->handles[pick(w, (unsigned)w->handle_count)];
}

#define WRONG(w, ...)                                                                   \
    do {                                                                                \
        print_error("seed %u, step %ld, %s: ", (w)->seed, (w)->step, (w)->doing);       \
        print_error(__VA_ARGS__);                                                       \
        print_error("\nagain: HEDDLE_TEST_SEED=%u HEDDLE_MODEL_STEPS=%ld\n", (w)->seed, \
                    (w)->step);                                                         \
        fail();                                                                         \
    } while (0)

static void expect(struct world *w, int code, int expected, const struct heddle_error *error)
{
    if (code != expected)
        WRONG(w, "answered %d (%s), not %d", code, error->text, expected);
}

/* ---- names ---- */

static struct heddle_thread thread_name(int thread)
{
    return (struct heddle_thread){model_principals[thread / THREADS_EACH],
                                  model_threads[thread % THREADS_EACH]};
}

static struct heddle_bytes id_name(int id)
{
    return id == NONE ? bytes("", 0) : model_ids[id];
}

static struct heddle_bytes channel_name(int channel)
{
    return channel < CHANNELS ? model_channels[channel] : model_specials[channel - CHANNELS];
}

static bool same(struct heddle_bytes a, struct heddle_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ---- values ---- */

static uint32_t any_length(struct world *w)
{
    static const uint32_t lengths[] = {0, 1, 10, 60, 126, 130, 300, 300, 500, 1000, 3000, 20000};

    return lengths[pick(w, chance(w, 97) ? COUNT_OF(lengths) - 1 : COUNT_OF(lengths))] + pick(w, 4);
}

static void insert_element(struct world *w, struct recipe *recipe, unsigned at)
{
    if (recipe->count == ELEMENTS_MAX)
        return;
    memmove(recipe->seeds + at + 1, recipe->seeds + at,
            (recipe->count - at) * sizeof(recipe->seeds[0]));
    memmove(recipe->lengths + at + 1, recipe->lengths + at,
            (recipe->count - at) * sizeof(recipe->lengths[0]));
    recipe->seeds[at] = pick(w, 40); /* few: the same content comes again */
    recipe->lengths[at] = any_length(w);
    recipe->count++;
}

static void remove_element(struct recipe *recipe, unsigned at)
{
    recipe->count--;
    memmove(recipe->seeds + at, recipe->seeds + at + 1,
            (recipe->count - at) * sizeof(recipe->seeds[0]));
    memmove(recipe->lengths + at, recipe->lengths + at + 1,
            (recipe->count - at) * sizeof(recipe->lengths[0]));
}

/* Mostly appends; also edits in the middle, cuts, and changes of the serializer. */
static void change_recipe(struct world *w, struct recipe *recipe)
{
    unsigned kind = pick(w, 20);

    if (kind < 12)
        insert_element(w, recipe, recipe->count);
    else if (kind < 14)
        insert_element(w, recipe, pick(w, recipe->count + 1));
    else if (kind < 16 && recipe->count)
        recipe->seeds[pick(w, recipe->count)] = pick(w, 40);
    else if (kind < 17 && recipe->count)
        remove_element(recipe, pick(w, recipe->count));
    else if (kind < 18)
        recipe->count = pick(w, recipe->count + 1);
    else if (kind < 19)
        recipe->kind = pick(w, RECIPE_KINDS);
    else
        *recipe = (struct recipe){.kind = pick(w, RECIPE_KINDS)};
}

static void any_data(struct world *w, struct data *data, const struct data *from)
{
    unsigned changes = 1 + (chance(w, 15) ? pick(w, 30) : 0);

    memset(data, 0, sizeof(*data));
    if (from && from->is_present && chance(w, 85))
        data->recipe = from->recipe;
    else
        data->recipe.kind = pick(w, RECIPE_KINDS);
    for (unsigned i = 0; i < changes; i++)
        change_recipe(w, &data->recipe);
    if (chance(w, 1)) /* a long one, about 100 kB */
        insert_element(w, &data->recipe, 0), data->recipe.lengths[0] = 100000;
    data_make(data);
}

static struct heddle_value value_with(int channel, const struct data *data)
{
    return (struct heddle_value){channel_name(channel), text(data->type),
                                 bytes(data->bytes, data->len)};
}

/* ---- puts ---- */

static void any_version(struct world *w, char version[VERSION_SIZE])
{
    static const char *const few[] = {"1",   "2",     "3",     "4",       "1.0",
                                      "2e0", "\"1\"", "\"2\"", "\"2.0\"", "\"\""};

    if (chance(w, 60))
        snprintf(version, VERSION_SIZE, "%s", few[pick(w, COUNT_OF(few))]);
    else
        snprintf(version, VERSION_SIZE, "\"%032u.0.%u\"", pick(w, 9), pick(w, 1u << 30));
}

static int any_present(struct world *w, int thread, int ns)
{
    int present[IDS], count = 0;

    for (int id = 0; id < IDS; id++) {
        if (w->model->places[thread][ns][id].checkpoint.is_present)
            present[count++] = id;
    }
    return count ? present[pick(w, (unsigned)count)] : NONE;
}

static void any_versions(struct world *w, struct model_put *put)
{
    const struct model_checkpoint *parent =
        put->checkpoint.parent == NONE
            ? NULL
            : &w->model->places[put->thread][put->ns][put->checkpoint.parent].checkpoint;

    for (int c = 0; c < CHANNELS; c++) {
        char *version = put->checkpoint.versions[c];

        if (parent && parent->is_present)
            snprintf(version, VERSION_SIZE, "%s", parent->versions[c]);
        if (chance(w, 40)) {
            any_version(w, version);
            put->is_changed[c] = chance(w, 85);
        } else if (chance(w, 5)) {
            version[0] = '\0';
        }
        if (chance(w, put->is_changed[c] ? 85 : 3))
            any_data(w, &put->values[c], parent ? &parent->values[c] : NULL);
    }
}

static void any_put(struct world *w, struct model_put *put)
{
    struct model_checkpoint *checkpoint = &put->checkpoint;

    memset(put, 0, sizeof(*put));
    put->thread = (int)pick(w, THREADS);
    put->ns = chance(w, 60) ? 0 : (int)pick(w, NAMESPACES);
    put->id = (int)pick(w, IDS);
    checkpoint->parent = chance(w, 75)   ? any_present(w, put->thread, put->ns)
                         : chance(w, 50) ? NONE
                                         : (int)pick(w, IDS);
    checkpoint->run = chance(w, 70) ? (int)pick(w, RUNS) : NONE;
    checkpoint->v = (int[]){4, 4, 4, 3, 1}[pick(w, 5)];
    checkpoint->mark = pick(w, 4);
    if (chance(w, 50))
        checkpoint->deltas = 1u << DELTA_CHANNEL | (chance(w, 20) ? 1u << LIST_CHANNEL : 0);
    any_versions(w, put);
}

/* {"channel":version,…} of all channels, or of those that changed. */
static void write_versions(const struct model_put *put, bool only_changed, char *out, size_t size)
{
    size_t len = 0;

    len += (size_t)snprintf(out, size, "{");
    for (int c = 0; c < CHANNELS; c++) {
        const char *version = put->checkpoint.versions[c];

        if (version[0] == '\0' || (only_changed && !put->is_changed[c]))
            continue;
        len += (size_t)snprintf(out + len, size - len, "%s%s:%s", len > 1 ? "," : "",
                                model_channel_json[c], version);
    }
    snprintf(out + len, size - len, "}");
}

static void write_metadata(const struct model_checkpoint *checkpoint, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "{\"mark\":%u", checkpoint->mark);

    if (checkpoint->run != NONE)
        len += (size_t)snprintf(out + len, size - len, ",\"run_id\":\"%s\"",
                                (const char *)model_runs[checkpoint->run].data);
    if (checkpoint->deltas)
        len += (size_t)snprintf(out + len, size - len,
                                ",\"counters_since_delta_snapshot\":{\"d\":[1,2]%s}",
                                checkpoint->deltas >> LIST_CHANNEL & 1 ? ",\"m\":[0,1]" : "");
    snprintf(out + len, size - len, "}");
}

static void write_json(const struct model_checkpoint *checkpoint, char *out, size_t size)
{
    struct model_put all = {.checkpoint = *checkpoint};
    char versions[JSON_MAX - 100];

    write_versions(&all, false, versions, sizeof(versions));
    snprintf(out, size, "{\"v\":%d,\"channel_versions\":%s,\"mark\":%u}", checkpoint->v, versions,
             checkpoint->mark);
}

static void do_put(struct world *w)
{
    struct model_put put;
    struct heddle_value values[CHANNELS];
    struct heddle_error error = {0};
    char json[JSON_MAX], metadata[JSON_MAX], changed[JSON_MAX];
    size_t count = 0;

    any_put(w, &put);
    write_json(&put.checkpoint, json, sizeof(json));
    write_metadata(&put.checkpoint, metadata, sizeof(metadata));
    write_versions(&put, true, changed, sizeof(changed));
    for (int c = CHANNELS - 1; c >= 0; c--) {
        if (put.values[c].is_present)
            values[count++] = value_with(c, &put.values[c]);
    }
    expect(w,
           heddle_put(any_handle(w),
                      &(struct heddle_checkpoint){.thread = thread_name(put.thread),
                                                  .ns = model_namespaces[put.ns],
                                                  .id = model_ids[put.id],
                                                  .parent = id_name(put.checkpoint.parent),
                                                  .checkpoint = text(json),
                                                  .metadata = text(metadata),
                                                  .new_versions = text(changed),
                                                  .values = values,
                                                  .value_count = count},
                      &error),
           0, &error);
    model_put(w->model, &put);
    for (int c = 0; c < CHANNELS; c++)
        data_clear(&put.values[c]);
}

static void do_put_writes(struct world *w)
{
    struct model_batch batch = {.thread = (int)pick(w, THREADS),
                                .ns = chance(w, 60) ? 0 : (int)pick(w, NAMESPACES),
                                .task = (int)pick(w, TASKS),
                                .path = (int)pick(w, PATHS),
                                .count = (int)pick(w, WRITES_MAX + 1)};
    struct heddle_value values[WRITES_MAX];
    struct heddle_error error = {0};
    int present = any_present(w, batch.thread, batch.ns);

    batch.id = present != NONE && chance(w, 80) ? present : (int)pick(w, IDS);
    for (int i = 0; i < batch.count; i++) {
        struct model_write *write = &batch.writes[i];
        const struct data *from;

        write->channel = (int)pick(w, chance(w, 70) ? CHANNELS : CHANNELS + SPECIALS);
        if (chance(w, 40))
            write->channel = chance(w, 75) ? DELTA_CHANNEL : SENDS_CHANNEL;
        /* Tasks write the value of the next checkpoint, or a piece of it. */
        from = &w->model->places[batch.thread][batch.ns][batch.id]
                    .checkpoint.values[write->channel % CHANNELS];
        any_data(w, &write->value, from);
        values[i] = value_with(write->channel, &write->value);
    }
    expect(w,
           heddle_put_writes(any_handle(w),
                             &(struct heddle_writes){.thread = thread_name(batch.thread),
                                                     .ns = model_namespaces[batch.ns],
                                                     .checkpoint_id = model_ids[batch.id],
                                                     .task_id = model_tasks[batch.task],
                                                     .task_path = model_paths[batch.path],
                                                     .values = values,
                                                     .value_count = (size_t)batch.count},
                             &error),
           0, &error);
    model_put_writes(w->model, &batch);
    for (int i = 0; i < batch.count; i++)
        data_clear(&batch.writes[i].value);
}

/* ---- reading ---- */

static void compare_value(struct world *w, const struct heddle_value *got, int channel,
                          const struct data *expected)
{
    if (!same(got->channel, channel_name(channel)) || !same(got->type, text(expected->type)) ||
        !same(got->data, bytes(expected->bytes, expected->len)))
        WRONG(w, "channel '%.*s' (%.*s, %zu bytes) is not '%.*s' (%s, %zu bytes)",
              (int)got->channel.len, (const char *)got->channel.data, (int)got->type.len,
              (const char *)got->type.data, got->data.len, (int)channel_name(channel).len,
              (const char *)channel_name(channel).data, expected->type, expected->len);
}

static void compare_write(struct world *w, const struct heddle_write *got,
                          const struct model_write *expected, int task, int idx)
{
    if (!same(got->task_id, model_tasks[task]) || got->idx != idx ||
        !same(got->task_path, model_paths[expected->path]))
        WRONG(w, "a write has index %d, not %d, or another task", (int)got->idx, idx);
    compare_value(w, &got->value, expected->channel, &expected->value);
}

/* The writes of a place, all of them or those on one channel. */
static void compare_writes(struct world *w, const struct heddle_write *got, size_t count,
                           const struct model_place *place, int only)
{
    size_t n = 0;

    for (int task = 0; task < TASKS; task++) {
        for (int i = 0; i < SPECIALS + WRITES_MAX; i++) {
            const struct model_write *expected = &place->writes[task][i];

            if (!expected->value.is_present || (only != NONE && expected->channel != only))
                continue;
            if (n == count)
                WRONG(w, "only %zu writes", count);
            compare_write(w, &got[n++], expected, task, i - SPECIALS);
        }
    }
    if (n != count)
        WRONG(w, "%zu writes, not %zu", count, n);
}

static void compare_tuple(struct world *w, const struct heddle_tuple *got, int thread, int ns,
                          int id, bool is_header)
{
    const struct model_place *place = &w->model->places[thread][ns][id];
    const struct model_checkpoint *expected = &place->checkpoint;
    char json[JSON_MAX];
    size_t n = 0;

    if (!same(got->thread.principal, thread_name(thread).principal) ||
        !same(got->thread.id, thread_name(thread).id) || !same(got->ns, model_namespaces[ns]) ||
        !same(got->id, model_ids[id]) || !same(got->parent, id_name(expected->parent)))
        WRONG(w, "another checkpoint than %d/%d/%d, or its parent", thread, ns, id);
    write_json(expected, json, sizeof(json));
    if (!same(got->checkpoint, text(json)))
        WRONG(w, "checkpoint is %.*s, not %s", (int)got->checkpoint.len,
              (const char *)got->checkpoint.data, json);
    write_metadata(expected, json, sizeof(json));
    if (!same(got->metadata, text(json)))
        WRONG(w, "metadata is %.*s, not %s", (int)got->metadata.len,
              (const char *)got->metadata.data, json);
    for (int c = 0; !is_header && c < CHANNELS; c++) {
        if (!expected->values[c].is_present)
            continue;
        if (n == got->value_count)
            WRONG(w, "only %zu values", n);
        compare_value(w, &got->values[n++], c, &expected->values[c]);
    }
    if (n != got->value_count)
        WRONG(w, "%zu values, not %zu", got->value_count, n);
    if (is_header && got->write_count)
        WRONG(w, "a header with writes");
    if (!is_header)
        compare_writes(w, got->writes, got->write_count, place, NONE);
    if (!is_header && expected->v < 4 && expected->parent != NONE)
        compare_writes(w, got->sends, got->send_count,
                       &w->model->places[thread][ns][expected->parent], SENDS_CHANNEL);
    else if (got->send_count)
        WRONG(w, "sends where there are none");
}

static void compare_get(struct world *w, struct heddle *store, int thread, int ns, int id)
{
    struct heddle_key key = {thread_name(thread), model_namespaces[ns], id_name(id)};
    int found = id == NONE ? model_latest(w->model, thread, ns) : id;
    struct heddle_error error = {0};
    struct heddle_tuple *tuple;
    bool is_there = found != NONE && w->model->places[thread][ns][found].checkpoint.is_present;

    expect(w, heddle_get(store, &key, &tuple, &error), is_there ? 0 : HEDDLE_ENOTFOUND, &error);
    if (!is_there)
        return;
    compare_tuple(w, tuple, thread, ns, found, false);
    heddle_tuple_free(tuple);
}

static void do_get(struct world *w)
{
    int thread = (int)pick(w, THREADS), ns = (int)pick(w, NAMESPACES);
    int id = chance(w, 40) ? NONE : chance(w, 70) ? any_present(w, thread, ns) : (int)pick(w, IDS);

    compare_get(w, any_handle(w), thread, ns, id);
}

/* True when the query selects this checkpoint. */
struct wanted {
    int principal, thread, ns, id, before, mark; /* NONE: any */
};

/* Within one namespace the order counts, elsewhere the ids. */
static bool is_before(const struct world *w, const struct wanted *q, int thread, int ns, int id)
{
    if (q->before != NONE && q->thread != NONE && q->ns != NONE && q->id == NONE)
        return model_is_newer(w->model, thread, ns, q->before, id);
    return q->before == NONE || id < q->before;
}

static bool is_wanted(const struct world *w, const struct wanted *q, int thread, int ns, int id)
{
    const struct model_checkpoint *c = &w->model->places[thread][ns][id].checkpoint;

    return c->is_present && thread / THREADS_EACH == q->principal &&
           (q->thread == NONE || thread == q->thread) && (q->ns == NONE || ns == q->ns) &&
           (q->id == NONE || id == q->id) && is_before(w, q, thread, ns, id) &&
           (q->mark == NONE || c->mark == (unsigned)q->mark);
}

/* The checkpoint at the position of `place`: as new as that is by its id. */
static int at_place(const struct world *w, const struct wanted *q, int thread, int ns, int place)
{
    int newer_ids = 0;

    for (int id = place + 1; id < IDS; id++)
        newer_ids += is_wanted(w, q, thread, ns, id);
    for (int id = 0; id < IDS; id++) {
        int newer = 0;

        for (int other = 0; other < IDS && is_wanted(w, q, thread, ns, id); other++)
            newer += is_wanted(w, q, thread, ns, other) &&
                     model_is_newer(w->model, thread, ns, other, id);
        if (is_wanted(w, q, thread, ns, id) && newer == newer_ids)
            return id;
    }
    return NONE;
}

static void compare_list(struct world *w, struct heddle_list *list, const struct wanted *q,
                         int64_t limit, bool is_header)
{
    struct heddle_error error = {0};
    const struct heddle_tuple *tuple;

    for (int place = IDS - 1; place >= 0; place--) {
        for (int thread = 0; thread < THREADS; thread++) {
            for (int ns = 0; ns < NAMESPACES; ns++) {
                if (!is_wanted(w, q, thread, ns, place) || limit == 0)
                    continue;
                expect(w, heddle_list_next(list, &tuple, &error), 0, &error);
                compare_tuple(w, tuple, thread, ns, at_place(w, q, thread, ns, place), is_header);
                limit--;
            }
        }
    }
    expect(w, heddle_list_next(list, &tuple, &error), HEDDLE_ENOTFOUND, &error);
}

static void do_list(struct world *w)
{
    struct wanted q = {.principal = (int)pick(w, PRINCIPALS)};
    struct heddle_query query = {.principal = model_principals[q.principal]};
    struct heddle_bytes thread_id;
    struct heddle_error error = {0};
    struct heddle_list *list;
    char filter[32];

    q.thread = chance(w, 60) ? q.principal * THREADS_EACH + (int)pick(w, THREADS_EACH) : NONE;
    q.ns = chance(w, 50) ? (int)pick(w, NAMESPACES) : NONE;
    q.id = chance(w, 10) ? (int)pick(w, IDS) : NONE;
    q.before = chance(w, 30) ? (int)pick(w, IDS) : NONE;
    q.mark = chance(w, 30) ? (int)pick(w, 4) : NONE;
    if (q.thread != NONE) {
        thread_id = model_threads[q.thread % THREADS_EACH];
        query.thread = &thread_id;
    }
    query.ns = q.ns != NONE ? &model_namespaces[q.ns] : NULL;
    query.id = q.id != NONE ? &model_ids[q.id] : NULL;
    query.before = q.before != NONE ? &model_ids[q.before] : NULL;
    if (q.mark != NONE) {
        snprintf(filter, sizeof(filter), "{\"mark\":%d}", q.mark);
        query.filter = text(filter);
    }
    query.limit = chance(w, 50) ? -1 : (int64_t)pick(w, 6);
    query.flags = chance(w, 30) ? HEDDLE_LIST_HEADERS : 0;
    expect(w, heddle_list_open(any_handle(w), &query, &list, &error), 0, &error);
    compare_list(w, list, &q, query.limit, query.flags != 0);
    heddle_list_close(list);
}

static void do_history(struct world *w)
{
    static struct model_history expected;
    int thread = (int)pick(w, THREADS), ns = (int)pick(w, NAMESPACES);
    int id = chance(w, 50) ? NONE : (int)pick(w, IDS);
    struct heddle_key key = {thread_name(thread), model_namespaces[ns], id_name(id)};
    struct heddle_bytes channels[2];
    int numbers[2];
    struct heddle_histories *histories;
    struct heddle_error error = {0};

    for (int i = 0; i < 2; i++) {
        numbers[i] = chance(w, 60) ? DELTA_CHANNEL : (int)pick(w, CHANNELS);
        channels[i] = model_channels[numbers[i]];
    }
    expect(w, heddle_delta_history(any_handle(w), &key, channels, 2, &histories, &error), 0,
           &error);
    for (int i = 0; i < 2; i++) {
        const struct heddle_history *got = &histories->channels[i];

        model_history(w->model, thread, ns, id == NONE ? model_latest(w->model, thread, ns) : id,
                      numbers[i], &expected);
        if (!got->seed != !expected.seed || got->write_count != (size_t)expected.count)
            WRONG(w, "a history with %zu writes, not %d, or another seed", got->write_count,
                  expected.count);
        if (got->seed)
            compare_value(w, got->seed, numbers[i], expected.seed);
        for (int n = 0; n < expected.count; n++) {
            int task = expected.writes[n].task, idx = expected.writes[n].idx;

            compare_write(
                w, &got->writes[n],
                &w->model->places[thread][ns][expected.writes[n].id].writes[task][idx + SPECIALS],
                task, idx);
        }
    }
    heddle_histories_free(histories);
}

static void compare_threads(struct world *w, struct heddle *store)
{
    for (int p = 0; p < PRINCIPALS; p++) {
        struct heddle_threads *threads;
        struct heddle_error error = {0};
        size_t n = 0;

        expect(w,
               heddle_list_threads(store, model_principals[p], bytes("", 0), 100, &threads, &error),
               0, &error);
        for (int t = p * THREADS_EACH; t < (p + 1) * THREADS_EACH; t++) {
            if (!w->model->exists[t])
                continue;
            if (n == threads->count || !same(threads->threads[n++].thread.id, thread_name(t).id))
                WRONG(w, "the list of threads lacks number %d", t);
        }
        if (n != threads->count)
            WRONG(w, "%zu threads, not %zu", threads->count, n);
        heddle_threads_free(threads);
    }
}

static void compare_usage(struct world *w, struct heddle *store, int thread)
{
    struct heddle_thread name = thread_name(thread);
    struct heddle_usage usage;
    struct heddle_error error = {0};
    int checkpoints = 0, writes = 0;

    expect(w, heddle_thread_usage(store, &name, &usage, &error), 0, &error);
    for (int ns = 0; ns < NAMESPACES; ns++) {
        for (int id = 0; id < IDS; id++) {
            const struct model_place *place = &w->model->places[thread][ns][id];

            checkpoints += place->checkpoint.is_present;
            for (int i = 0; i < TASKS * (SPECIALS + WRITES_MAX); i++)
                writes += place->writes[i / (SPECIALS + WRITES_MAX)][i % (SPECIALS + WRITES_MAX)]
                              .value.is_present;
        }
    }
    if (usage.checkpoints != checkpoints || usage.writes != writes)
        WRONG(w, "usage says %lld checkpoints and %lld writes, not %d and %d",
              (long long)usage.checkpoints, (long long)usage.writes, checkpoints, writes);
    if (!w->model->exists[thread] && usage.bytes)
        WRONG(w, "a thread that is not there uses %lld bytes", (long long)usage.bytes);
}

static void compare_everything(struct world *w)
{
    struct heddle *store = any_handle(w);
    struct heddle_error error = {0};

    for (int thread = 0; thread < THREADS; thread++) {
        for (int ns = 0; ns < NAMESPACES; ns++) {
            for (int id = NONE; id < IDS; id++)
                compare_get(w, store, thread, ns, id);
        }
        compare_usage(w, store, thread);
    }
    compare_threads(w, store);
    expect(w, heddle_check(store, &error), 0, &error);
}

/* ---- taking away ---- */

static void do_delete_thread(struct world *w)
{
    int thread = (int)pick(w, THREADS);
    struct heddle_thread name = thread_name(thread);
    struct heddle_error error = {0};

    if (chance(w, 50))
        expect(w, heddle_delete_thread(any_handle(w), &name, &error), 0, &error);
    else
        expect(w, heddle_prune(any_handle(w), &name, 1, HEDDLE_DELETE_ALL, &error), 0, &error);
    model_delete_thread(w->model, thread);
}

static void do_delete_runs(struct world *w)
{
    int principal = (int)pick(w, PRINCIPALS);
    unsigned mask = 1u << pick(w, RUNS) | (chance(w, 30) ? 1u << pick(w, RUNS) : 0);
    struct heddle_bytes runs[RUNS];
    struct heddle_error error = {0};
    size_t count = 0;

    for (int r = 0; r < RUNS; r++) {
        if (mask >> r & 1)
            runs[count++] = model_runs[r];
    }
    expect(w, heddle_delete_runs(any_handle(w), model_principals[principal], runs, count, &error),
           0, &error);
    model_delete_runs(w->model, principal, mask);
}

static void do_copy(struct world *w)
{
    int source = (int)pick(w, THREADS), target = (int)pick(w, THREADS);
    struct heddle_thread from = thread_name(source), to = thread_name(target);
    struct heddle_error error = {0};

    if (chance(w, 60)) {
        expect(w, heddle_delete_thread(any_handle(w), &to, &error), 0, &error);
        model_delete_thread(w->model, target);
    }
    expect(w, heddle_copy_thread(any_handle(w), &from, &to, &error),
           model_copy(w->model, source, target), &error);
}

static void do_prune(struct world *w)
{
    int thread = (int)pick(w, THREADS);
    struct heddle_thread name = thread_name(thread);
    struct heddle_error error = {0};

    expect(w, heddle_prune(any_handle(w), &name, 1, HEDDLE_KEEP_LATEST, &error), 0, &error);
    model_keep_latest(w->model, thread);
}

/* ---- handles ---- */

static void open_handles(struct world *w)
{
    w->handles[0] = w->f->store;
    if (w->handle_count < 2)
        return;
    w->handles[1] = open_store(w->f->url);
    if (!is_shared(w->f->base)) {
        watch_store(&w->watches[0], w->handles[0]);
        share_backend(&w->watches[1], &w->watches[0], w->handles[1]);
    }
}

static void close_handles(struct world *w)
{
    if (w->handle_count < 2)
        return;
    heddle_close(w->handles[1]);
    if (!is_shared(w->f->base))
        ((struct hd_store *)w->handles[0])->backend = w->watches[0].inner;
}

static void do_reopen(struct world *w)
{
    if (!is_shared(w->f->base))
        return;
    if (w->handle_count == 2 && chance(w, 50)) { /* one of them goes, the other stays */
        heddle_close(w->handles[1]);
        w->handles[1] = open_store(w->f->url);
        return;
    }
    close_handles(w);
    reopen(w->f);
    open_handles(w);
}

/* ---- the walk ---- */

static const struct {
    const char *name;
    void (*run)(struct world *w);
    unsigned weight; /* of 1000 */
} steps[] = {
    {"put", do_put, 480},
    {"put_writes", do_put_writes, 200},
    {"get", do_get, 120},
    {"list", do_list, 60},
    {"history", do_history, 60},
    {"prune", do_prune, 20},
    {"delete_runs", do_delete_runs, 12},
    {"delete_thread", do_delete_thread, 12},
    {"copy", do_copy, 20},
    {"reopen", do_reopen, 4},
    {"everything", compare_everything, 2},
};

static void take_step(struct world *w)
{
    unsigned lot = pick(w, 990);
    size_t i = 0;

    while (lot >= steps[i].weight)
        lot -= steps[i++].weight;
    w->step++;
    w->doing = steps[i].name;
    steps[i].run(w);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long setting(const char *name, long otherwise)
{
    const char *value = getenv(name);

    return value ? strtol(value, NULL, 10) : otherwise;
}

static void delete_all(struct world *w)
{
    w->doing = "the end";
    for (int thread = 0; thread < THREADS; thread++) {
        struct heddle_thread name = thread_name(thread);
        struct heddle_error error = {0};

        expect(w, heddle_delete_thread(any_handle(w), &name, &error), 0, &error);
        model_delete_thread(w->model, thread);
    }
    compare_everything(w);
}

/* One sequence; ends with everything deleted and nothing left. */
static void walk(struct world *w, double until, long most)
{
    w->model = model_create();
    w->random = w->seed;
    w->step = 0;
    for (int i = 0; i < 8; i++)
        pick(w, 2);
    while (w->step < most && now() < until)
        take_step(w);
    w->doing = "the end";
    compare_everything(w);
    delete_all(w);
    model_destroy(w->model);
}

/* Short walks begin anew more often, long ones go deeper. */
static long walk_many(struct world *w, double until, long most)
{
    long total = 0;

    for (; total < most && now() < until; w->seed++) {
        long length = w->seed % 4 ? 300 : 3000;

        walk(w, until, length < most - total ? length : most - total);
        total += w->step;
    }
    return total;
}

static void run_model(struct fixture *f, int handle_count)
{
    struct world w = {.f = f, .handle_count = handle_count};
    long total = setting("HEDDLE_MODEL_STEPS", 0);
    long seconds = setting("HEDDLE_MODEL_SECONDS", 0);

    check_names();
    w.seed = (unsigned)setting("HEDDLE_TEST_SEED", (long)time(NULL) * 7919 % 1000000007);
    open_handles(&w);
    if (total)
        walk(&w, 1e18, total);
    else
        total = walk_many(&w, seconds ? now() + (double)seconds : 1e18,
                          seconds ? LONG_MAX : TOTAL_STEPS);
    print_message("# %s: %ld steps, seeds up to %u\n", kind_of(f->base), total, w.seed);
    close_handles(&w);
}

static void one_handle_answers_as_the_model(struct fixture *f)
{
    run_model(f, 1);
}

static void two_handles_answer_as_the_model(struct fixture *f)
{
    run_model(f, 2);
}

int main(void)
{
    static const struct store_case cases[] = {
        STORE_CASE(one_handle_answers_as_the_model),
        STORE_CASE(two_handles_answer_as_the_model),
        {NULL, NULL},
    };
    static const struct store_case *const tables[] = {cases};

    return run_cases("model", tables, 1, "durability=relaxed&timeout=60");
}
