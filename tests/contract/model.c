#include "tests/contract/model.h"

#define NAME(literal)                  \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

const struct heddle_bytes model_principals[PRINCIPALS] = {NAME(""), NAME("p")};
const struct heddle_bytes model_threads[THREADS_EACH] = {NAME(""), NAME("a"), NAME("a\0"),
                                                         NAME("\xff|:")};
const struct heddle_bytes model_namespaces[NAMESPACES] = {NAME(""), NAME("n"), NAME("n|m:\x01")};
const struct heddle_bytes model_ids[IDS] = {
    NAME("\0"), NAME("\x01"), NAME("0"), NAME("0\0"),   NAME("00"),   NAME("01"),   NAME("1"),
    NAME("10"), NAME("1:"),   NAME("2"), NAME("2\xff"), NAME("3"),    NAME("4"),    NAME("5"),
    NAME("6"),  NAME("9"),    NAME("a"), NAME("b|c"),   NAME("\x80"), NAME("\xff"),
};
const struct heddle_bytes model_tasks[TASKS] = {NAME(""), NAME("k"), NAME("k\0x"), NAME("\xff")};
const struct heddle_bytes model_paths[PATHS] = {NAME(""), NAME("~a"), NAME("~p, 1")};
const struct heddle_bytes model_runs[RUNS] = {NAME("r0"), NAME("r1"), NAME("r1x"), NAME("r2")};
const struct heddle_bytes model_channels[CHANNELS] = {
    NAME(""), NAME("__pregel_tasks"), NAME("b"), NAME("d"), NAME("m"), NAME("\xc3\xa9")};
const char *const model_channel_json[CHANNELS] = {"\"\"",  "\"__pregel_tasks\"", "\"b\"", "\"d\"",
                                                  "\"m\"", "\"\\u00e9\""};
const struct heddle_bytes model_specials[SPECIALS] = {NAME("__error__"), NAME("__scheduled__"),
                                                      NAME("__interrupt__"), NAME("__resume__")};

static void check_order(const struct heddle_bytes *names, int count)
{
    for (int i = 1; i < count; i++) {
        size_t shorter = names[i].len < names[i - 1].len ? names[i].len : names[i - 1].len;
        int order = memcmp(names[i - 1].data, names[i].data, shorter);

        assert_true(order < 0 || (order == 0 && names[i - 1].len < names[i].len));
    }
}

void check_names(void)
{
    check_order(model_threads, THREADS_EACH);
    check_order(model_namespaces, NAMESPACES);
    check_order(model_ids, IDS);
    check_order(model_tasks, TASKS);
    check_order(model_paths, PATHS);
    check_order(model_channels, CHANNELS);
}

/* ---- values ---- */

static void fill(char *out, uint32_t seed, size_t len, bool is_text)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;

    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        out[i] = is_text ? (char)('a' + (x >> 59) % 26) : (char)(x >> 56);
    }
}

static char *put_json(const struct recipe *recipe, char *end)
{
    *end++ = '[';
    for (unsigned i = 0; i < recipe->count; i++) {
        if (i)
            *end++ = ',';
        *end++ = '"';
        fill(end, recipe->seeds[i], recipe->lengths[i], true);
        end += recipe->lengths[i];
        *end++ = '"';
    }
    *end++ = ']';
    return end;
}

static char *put_msgpack(const struct recipe *recipe, char *end)
{
    *end++ = (char)0xdc;
    *end++ = (char)(recipe->count >> 8);
    *end++ = (char)recipe->count;
    for (unsigned i = 0; i < recipe->count; i++) {
        uint32_t len = recipe->lengths[i];

        *end++ = (char)0xdb;
        for (int shift = 24; shift >= 0; shift -= 8)
            *end++ = (char)(len >> shift);
        fill(end, recipe->seeds[i], len, true);
        end += len;
    }
    return end;
}

void data_make(struct data *data)
{
    static const char *const types[RECIPE_KINDS] = {"json", "hd1", "msgpack", "raw"};
    const struct recipe *recipe = &data->recipe;
    size_t room = 8;
    char *end;

    for (unsigned i = 0; i < recipe->count; i++)
        room += recipe->lengths[i] + 8;
    data->is_present = true;
    data->type = types[recipe->kind];
    data->bytes = end = malloc(room);
    assert_non_null(data->bytes);
    if (recipe->kind == JSON_LIST || recipe->kind == HD1_LIST)
        end = put_json(recipe, end);
    else if (recipe->kind == MSGPACK_LIST)
        end = put_msgpack(recipe, end);
    for (unsigned i = 0; recipe->kind == RAW_BYTES && i < recipe->count; i++) {
        fill(end, recipe->seeds[i], recipe->lengths[i], false);
        end += recipe->lengths[i];
    }
    data->len = (size_t)(end - data->bytes);
}

void data_clear(struct data *data)
{
    free(data->bytes);
    memset(data, 0, sizeof(*data));
}

void data_copy(struct data *to, const struct data *from)
{
    char *bytes = NULL;

    if (from->is_present) {
        bytes = malloc(from->len + 1);
        assert_non_null(bytes);
        memcpy(bytes, from->bytes, from->len);
    }
    free(to->bytes);
    *to = *from;
    to->bytes = bytes;
}

/* ---- places ---- */

static void clear_checkpoint(struct model_checkpoint *checkpoint)
{
    for (int c = 0; c < CHANNELS; c++)
        data_clear(&checkpoint->values[c]);
    memset(checkpoint, 0, sizeof(*checkpoint));
}

static void clear_writes(struct model_place *place)
{
    for (int t = 0; t < TASKS; t++) {
        for (int i = 0; i < SPECIALS + WRITES_MAX; i++)
            data_clear(&place->writes[t][i].value);
    }
}

static void copy_checkpoint(struct model_checkpoint *to, const struct model_checkpoint *from)
{
    clear_checkpoint(to);
    *to = *from;
    memset(to->values, 0, sizeof(to->values));
    for (int c = 0; c < CHANNELS; c++)
        data_copy(&to->values[c], &from->values[c]);
}

struct model *model_create(void)
{
    struct model *model = calloc(1, sizeof(*model));

    assert_non_null(model);
    return model;
}

void model_destroy(struct model *model)
{
    for (int t = 0; t < THREADS; t++)
        model_delete_thread(model, t);
    free(model);
}

/* ---- order ---- */

static bool is_own_ancestor(const struct model_place *places, int id)
{
    int at = id;

    for (int i = 0; i < IDS && places[at].checkpoint.is_present; i++) {
        at = places[at].checkpoint.parent;
        if (at == NONE || at == id)
            break;
    }
    return at == id && places[id].checkpoint.is_present && places[id].checkpoint.parent != NONE;
}

/* The list of src/store/order.h, its end first; returns its length. */
static int list_of(const struct model_place *places, int id, int list[IDS])
{
    int count = 0;

    for (int at = id; at != NONE;) {
        if (count == 0 || at > list[count - 1])
            list[count++] = at;
        if (!places[at].checkpoint.is_present || is_own_ancestor(places, at))
            break;
        at = places[at].checkpoint.parent;
    }
    return count;
}

bool model_is_newer(const struct model *model, int thread, int ns, int a, int b)
{
    const struct model_place *places = model->places[thread][ns];
    int of_a[IDS], of_b[IDS];
    int i = list_of(places, a, of_a), k = list_of(places, b, of_b);

    while (i > 0 && k > 0 && of_a[i - 1] == of_b[k - 1]) {
        i--;
        k--;
    }
    return i > 0 && (k == 0 || of_a[i - 1] > of_b[k - 1]);
}

int model_latest(const struct model *model, int thread, int ns)
{
    int latest = NONE;

    for (int id = 0; id < IDS; id++) {
        if (model->places[thread][ns][id].checkpoint.is_present &&
            (latest == NONE || model_is_newer(model, thread, ns, id, latest)))
            latest = id;
    }
    return latest;
}

/* ---- put ---- */

/* Takes the value from `from` if that names the channel at this version; it may be empty there. */
static bool carry(struct data *to, const struct model_checkpoint *from, int channel,
                  const char *version)
{
    if (!from->is_present || strcmp(from->versions[channel], version) != 0)
        return false;
    data_copy(to, &from->values[channel]);
    return true;
}

static void find_carried(const struct model *model, const struct model_put *put, int channel,
                         struct data *to)
{
    const struct model_place *places = model->places[put->thread][put->ns];
    const char *version = put->checkpoint.versions[channel];
    int parent = put->checkpoint.parent;

    if (parent != NONE && carry(to, &places[parent].checkpoint, channel, version))
        return;
    if (carry(to, &places[put->id].checkpoint, channel, version))
        return;
    for (int id = IDS - 1; id >= 0; id--) {
        if (carry(to, &places[id].checkpoint, channel, version))
            return;
    }
}

void model_put(struct model *model, const struct model_put *put)
{
    struct model_checkpoint made = put->checkpoint;

    memset(made.values, 0, sizeof(made.values));
    made.is_present = true;
    for (int c = 0; c < CHANNELS; c++) {
        if (made.versions[c][0] == '\0')
            continue;
        if (put->is_changed[c])
            data_copy(&made.values[c], &put->values[c]);
        else
            find_carried(model, put, c, &made.values[c]);
    }
    clear_checkpoint(&model->places[put->thread][put->ns][put->id].checkpoint);
    model->places[put->thread][put->ns][put->id].checkpoint = made;
    model->exists[put->thread] = true;
}

void model_put_writes(struct model *model, const struct model_batch *batch)
{
    struct model_place *place = &model->places[batch->thread][batch->ns][batch->id];

    for (int i = 0; i < batch->count; i++) {
        int channel = batch->writes[i].channel;
        int idx = channel >= CHANNELS ? -(channel - CHANNELS) - 1 : i;
        struct model_write *write = &place->writes[batch->task][SPECIALS + idx];

        if (idx >= 0 && write->value.is_present)
            continue;
        write->path = batch->path;
        write->channel = channel;
        data_copy(&write->value, &batch->writes[i].value);
    }
    if (batch->count)
        model->exists[batch->thread] = true;
}

/* ---- taking away ---- */

static void delete_checkpoint(struct model_place *place)
{
    clear_checkpoint(&place->checkpoint);
    clear_writes(place);
}

void model_delete_thread(struct model *model, int thread)
{
    for (int ns = 0; ns < NAMESPACES; ns++) {
        for (int id = 0; id < IDS; id++)
            delete_checkpoint(&model->places[thread][ns][id]);
    }
    model->exists[thread] = false;
}

void model_delete_runs(struct model *model, int principal, unsigned runs)
{
    for (int t = 0; t < THREADS; t++) {
        for (int ns = 0; ns < NAMESPACES; ns++) {
            for (int id = 0; id < IDS; id++) {
                struct model_place *place = &model->places[t][ns][id];

                if (t / THREADS_EACH == principal && place->checkpoint.is_present &&
                    place->checkpoint.run != NONE && runs >> place->checkpoint.run & 1)
                    delete_checkpoint(place);
            }
        }
    }
}

int model_copy(struct model *model, int source, int target)
{
    if (source == target)
        return HEDDLE_EEXISTS;
    if (!model->exists[source])
        return 0;
    if (model->exists[target])
        return HEDDLE_EEXISTS;
    model->exists[target] = true;
    for (int ns = 0; ns < NAMESPACES; ns++) {
        for (int id = 0; id < IDS; id++) {
            const struct model_place *from = &model->places[source][ns][id];
            struct model_place *to = &model->places[target][ns][id];

            copy_checkpoint(&to->checkpoint, &from->checkpoint);
            for (int t = 0; t < TASKS; t++) {
                for (int i = 0; i < SPECIALS + WRITES_MAX; i++) {
                    to->writes[t][i].path = from->writes[t][i].path;
                    to->writes[t][i].channel = from->writes[t][i].channel;
                    data_copy(&to->writes[t][i].value, &from->writes[t][i].value);
                }
            }
        }
    }
    return 0;
}

/* Marks the ancestors that `channel` of checkpoint `id` is rebuilt from. */
static void keep_chain(const struct model_place *places, int id, int channel, bool *is_kept)
{
    bool is_seen[IDS] = {false};
    int at = id;

    while (!places[at].checkpoint.values[channel].is_present) {
        is_seen[at] = true;
        at = places[at].checkpoint.parent;
        if (at == NONE || is_seen[at] || !places[at].checkpoint.is_present)
            return;
        is_kept[at] = true;
    }
}

void model_keep_latest(struct model *model, int thread)
{
    for (int ns = 0; ns < NAMESPACES; ns++) {
        struct model_place *places = model->places[thread][ns];
        int latest = model_latest(model, thread, ns);
        bool is_kept[IDS] = {false};

        if (latest == NONE)
            continue;
        is_kept[latest] = true;
        for (int c = 0; c < CHANNELS; c++) {
            if (places[latest].checkpoint.deltas >> c & 1)
                keep_chain(places, latest, c, is_kept);
        }
        for (int id = 0; id < IDS; id++) {
            if (places[id].checkpoint.is_present && !is_kept[id])
                delete_checkpoint(&places[id]);
        }
    }
}

/* ---- delta channels ---- */

/* The writes of one ancestor on the channel go before those found so far. */
static void add_writes(struct model_history *out, const struct model_place *place, int id,
                       int channel)
{
    int found = 0;

    for (int path = 0; path < PATHS; path++) {
        for (int task = 0; task < TASKS; task++) {
            for (int i = 0; i < SPECIALS + WRITES_MAX; i++) {
                const struct model_write *write = &place->writes[task][i];

                if (!write->value.is_present || write->channel != channel || write->path != path)
                    continue;
                memmove(&out->writes[found + 1], &out->writes[found],
                        (size_t)(out->count - found) * sizeof(out->writes[0]));
                out->writes[found].id = id;
                out->writes[found].task = task;
                out->writes[found].idx = i - SPECIALS;
                found++;
                out->count++;
            }
        }
    }
}

void model_history(const struct model *model, int thread, int ns, int id, int channel,
                   struct model_history *out)
{
    const struct model_place *places = model->places[thread][ns];
    bool is_seen[IDS] = {false};
    int at = id;

    memset(out, 0, sizeof(*out));
    if (id == NONE || !places[id].checkpoint.is_present)
        return;
    do {
        is_seen[at] = true;
        at = places[at].checkpoint.parent;
        if (at == NONE || is_seen[at] || !places[at].checkpoint.is_present)
            return;
        add_writes(out, &places[at], at, channel);
        if (places[at].checkpoint.values[channel].is_present)
            out->seed = &places[at].checkpoint.values[channel];
    } while (!out->seed);
}
