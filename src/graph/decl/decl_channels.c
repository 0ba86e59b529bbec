/* `state`: the channels that a graph declares, and those that it creates itself. */
#include <string.h>

#include "graph/decl/decl.h"
#include "graph/decl/decl_expr.h"

/* ---- declarable reducers and types ------------------------------------ */

#define TYPE(name) (1u << HD_TYPE_##name)

struct named_reducer {
    const char *name;
    enum hd_graph_reducer value;
    unsigned types; /* the types it supports; 0: any, and `type` is optional */
};

static const struct named_reducer reducers[] = {
    {"last", HD_REDUCE_LAST, 0},
    {"any", HD_REDUCE_ANY, 0},
    {"ephemeral", HD_REDUCE_EPHEMERAL, 0},
    {"untracked", HD_REDUCE_UNTRACKED, 0},
    {"messages", HD_REDUCE_MESSAGES, TYPE(LIST)},
    {"add", HD_REDUCE_ADD, TYPE(STRING) | TYPE(NUMBER) | TYPE(LIST)},
    {"merge", HD_REDUCE_MERGE, TYPE(OBJECT)},
    {"max", HD_REDUCE_MAX, TYPE(STRING) | TYPE(NUMBER)},
    {"min", HD_REDUCE_MIN, TYPE(STRING) | TYPE(NUMBER)},
    {"and", HD_REDUCE_AND, TYPE(BOOLEAN)},
    {"or", HD_REDUCE_OR, TYPE(BOOLEAN)},
    {"topic", HD_REDUCE_TOPIC, TYPE(LIST)},
};

static const char *const made_reducers[] = {
    [HD_REDUCE_TRIGGER] = "trigger", [HD_REDUCE_TRIGGER_AFTER] = "trigger after",
    [HD_REDUCE_BARRIER] = "barrier", [HD_REDUCE_BARRIER_AFTER] = "barrier after",
    [HD_REDUCE_OPAQUE] = "opaque",
};

static const char *const types[] = {
    [HD_TYPE_ANY] = "any",         [HD_TYPE_STRING] = "string", [HD_TYPE_NUMBER] = "number",
    [HD_TYPE_BOOLEAN] = "boolean", [HD_TYPE_LIST] = "list",     [HD_TYPE_OBJECT] = "object",
};

const char *hd_graph_reducer_name(enum hd_graph_reducer reducer)
{
    for (size_t i = 0; i < HD_COUNT(reducers); i++) {
        if (reducers[i].value == reducer)
            return reducers[i].name;
    }
    return made_reducers[reducer];
}

/* ---- one channel ------------------------------------------------------ */

struct channel_spec {
    const struct named_reducer *reducer;
    enum hd_graph_type type;
    bool has_type;
    bool is_accumulating;
    struct hd_decl_at type_at, default_at, accumulate_at;
    struct hd_slice title, description;
};

static int read_reducer(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    struct hd_slice name = hd_json_string(at->val);
    struct hd_near near;

    (void)field;
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a reducer");
    hd_near_init(&near, name);
    for (size_t i = 0; i < HD_COUNT(reducers); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(reducers[i].name))) {
            *(const struct named_reducer **)out = &reducers[i];
            return 0;
        }
        hd_near_try(&near, hd_slice_cstr(reducers[i].name));
    }
    return hd_decl_fail(decl, at, "unknown reducer \"%.*s\"%s", HD_SHOW(name), hd_near_text(&near));
}

static int read_type(struct hd_decl *decl, struct channel_spec *spec)
{
    struct hd_slice name = hd_json_string(spec->type_at.val);
    struct hd_near near;

    if (!hd_raw(&spec->type_at))
        return 0;
    if (!hd_json_is_string(spec->type_at.val))
        return hd_decl_fail_type(decl, &spec->type_at, "the name of a type");
    hd_near_init(&near, name);
    for (size_t i = 0; i < HD_COUNT(types); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(types[i]))) {
            spec->type = (enum hd_graph_type)i;
            spec->has_type = true;
            return 0;
        }
        hd_near_try(&near, hd_slice_cstr(types[i]));
    }
    return hd_decl_fail(decl, &spec->type_at, "unknown type \"%.*s\"%s", HD_SHOW(name),
                        hd_near_text(&near));
}

/* A reducer that supports one type implies it; one that supports several needs a "type". */
static int check_type(struct hd_decl *decl, const struct hd_decl_at *at, struct channel_spec *spec)
{
    unsigned allowed = spec->reducer->types;

    if (allowed == 0)
        return 0;
    if (!spec->has_type && (allowed & (allowed - 1)) != 0)
        return hd_decl_fail(decl, at, "reducer \"%s\" needs a \"type\"", spec->reducer->name);
    for (size_t i = 0; i < HD_COUNT(types) && !spec->has_type; i++) {
        if (allowed == 1u << i)
            spec->type = (enum hd_graph_type)i;
    }
    if ((allowed & (1u << spec->type)) == 0)
        return hd_decl_fail(decl, &spec->type_at, "reducer \"%s\" does not work on type \"%s\"",
                            spec->reducer->name, types[spec->type]);
    return 0;
}

static bool is_of_type(hd_json_val val, enum hd_graph_type type)
{
    switch (type) {
    case HD_TYPE_STRING:
        return hd_json_is_string(val);
    case HD_TYPE_NUMBER:
        return hd_json_is_number(val);
    case HD_TYPE_BOOLEAN:
        return hd_json_is_bool(val);
    case HD_TYPE_LIST:
        return hd_json_is_array(val);
    case HD_TYPE_OBJECT:
        return hd_json_is_object(val);
    case HD_TYPE_ANY:
        break;
    }
    return true;
}

/* ---- initial values --------------------------------------------------- */

static struct hd_val *empty_value(enum hd_graph_type type)
{
    switch (type) {
    case HD_TYPE_STRING:
        return hd_val_cstr("");
    case HD_TYPE_NUMBER:
        return hd_val_int(0);
    case HD_TYPE_BOOLEAN:
        return hd_val_bool(false);
    case HD_TYPE_LIST:
        return hd_val_list();
    case HD_TYPE_OBJECT:
        return hd_val_object();
    case HD_TYPE_ANY:
        break;
    }
    return hd_val_null();
}

/* Accepts messages in every form that add_messages takes. */
static int convert_messages(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_val *list,
                            struct hd_val **out)
{
    struct hd_val *messages = hd_val_list();
    int err = 0;

    for (size_t i = 0; i < hd_val_count(list) && err == 0; i++) {
        struct heddle_error fault = {0};
        struct hd_val *message = NULL;

        err = hd_val_to_message(hd_val_at(list, i), &message, &fault);
        if (err == HD_EINVAL) {
            struct hd_decl_at element = hd_decl_at_index(at, i, at->val);

            err = hd_decl_fail(decl, &element, "%s", fault.text);
        }
        if (err == 0)
            messages = hd_val_append(messages, message);
    }
    hd_val_unref(list);
    if (err == 0 && !messages)
        err = HD_ENOMEM;
    if (err != 0)
        hd_val_unref(messages);
    else
        *out = messages;
    return err;
}

static int read_default(struct hd_decl *decl, const struct channel_spec *spec, struct hd_val **out)
{
    const struct hd_decl_at *at = &spec->default_at;
    struct heddle_error fault = {0};
    int err;

    if (!is_of_type(at->val, spec->type))
        return hd_decl_fail(decl, at, "must be of the channel's type, %s, not %s",
                            types[spec->type], hd_json_type_name(at->val));
    if (hd_decl_has_record(at->val))
        err = hd_val_from_canon(at->val, out, &fault);
    else
        err = hd_val_from_json(at->val, out, &fault);
    if (err == HD_EINVAL)
        return hd_decl_fail(decl, at, "%s", fault.text);
    if (err == 0 && spec->reducer->value == HD_REDUCE_MESSAGES)
        err = convert_messages(decl, at, *out, out);
    return err;
}

static int set_initial(struct hd_decl *decl, const struct channel_spec *spec,
                       struct hd_graph_channel *channel)
{
    struct hd_val *initial = NULL;
    int err = 0;

    if (hd_raw(&spec->default_at))
        err = read_default(decl, spec, &initial);
    else if (spec->reducer->types != 0 && spec->reducer->value != HD_REDUCE_TOPIC)
        initial = empty_value(spec->type);
    else
        return 0;
    if (err == 0)
        err = hd_decl_memory_keep(decl->hold, initial);
    if (err == 0)
        channel->initial = initial;
    return err;
}

static const struct hd_field channel_fields[] = {
    {"reducer", read_reducer, offsetof(struct channel_spec, reducer), false, 0, 0, 0},
    {"type", hd_decl_read_raw, offsetof(struct channel_spec, type_at), false, 0, 0, 0},
    {"default", hd_decl_read_raw, offsetof(struct channel_spec, default_at), false, 0, 0, 0},
    {"accumulate", hd_decl_read_raw, offsetof(struct channel_spec, accumulate_at), false, 0, 0, 0},
    {"title", hd_decl_read_text, offsetof(struct channel_spec, title), false, 0, 0, 0},
    {"description", hd_decl_read_text, offsetof(struct channel_spec, description), false, 0, 0, 0},
};

static int check_combination(struct hd_decl *decl, const struct channel_spec *spec)
{
    bool is_topic = spec->reducer->value == HD_REDUCE_TOPIC;

    if (hd_raw(&spec->accumulate_at) && !is_topic)
        return hd_decl_fail(decl, &spec->accumulate_at, "only a topic accumulates");
    if (hd_raw(&spec->accumulate_at) && !hd_json_is_bool(spec->accumulate_at.val))
        return hd_decl_fail_type(decl, &spec->accumulate_at, "true or false");
    if (hd_raw(&spec->default_at) && (is_topic || spec->reducer->value == HD_REDUCE_EPHEMERAL))
        return hd_decl_fail(decl, &spec->default_at, "a channel with reducer \"%s\" has no default",
                            spec->reducer->name);
    return 0;
}

static int read_channel(struct hd_decl *decl, const struct hd_decl_at *at,
                        struct hd_graph_channel *channel)
{
    static const struct hd_fields fields = HD_FIELDS(channel_fields, NULL);
    struct channel_spec spec = {.reducer = &reducers[0]};
    int err = hd_decl_fields(decl, at, &fields, &spec);

    if (err == 0)
        err = read_type(decl, &spec);
    if (err == 0)
        err = check_type(decl, at, &spec);
    if (err == 0)
        err = check_combination(decl, &spec);
    if (err != 0)
        return err;
    channel->reducer = spec.reducer->value;
    channel->type = spec.type;
    channel->title = spec.title;
    channel->description = spec.description;
    channel->is_accumulating = hd_json_is_true(spec.accumulate_at.val);
    channel->node = HD_GRAPH_END;
    return set_initial(decl, &spec, channel);
}

/* ---- the state -------------------------------------------------------- */

static int add_state_channel(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_draft *draft = decl->draft;
    struct hd_graph_channel *channel = &draft->channels[draft->graph->channel_count];
    int err = hd_decl_check_name(decl, at, at->key, "channel");

    if (err == 0)
        err = hd_decl_copy(decl, at->key, &channel->name);
    if (err == 0)
        err = read_channel(decl, at, channel);
    if (err == 0)
        err = hd_map_put(&draft->channel_map, channel->name, channel);
    if (err == 0)
        draft->graph->channel_count++;
    return err;
}

int hd_decl_read_state(struct hd_decl *decl, const struct hd_decl_at *at, size_t more)
{
    struct hd_draft *draft = decl->draft;
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t count = hd_json_size(at->val);
    int err = 0;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object of channels");
    if (count == 0)
        return hd_decl_fail(decl, at, "needs at least one channel");
    decl->channel_total += count;
    if (decl->channel_total > HD_GRAPH_MAX_CHANNELS)
        return hd_decl_fail(decl, at, "a declaration has at most %d channels",
                            HD_GRAPH_MAX_CHANNELS);
    draft->channels = hd_arena_calloc(&decl->hold->arena, count + more, sizeof(*draft->channels));
    if (!draft->channels)
        return HD_ENOMEM;
    draft->graph->channels = draft->channels;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = add_state_channel(decl, &member);
    }
    draft->graph->state_count = draft->graph->channel_count;
    return err;
}

int hd_decl_add_channel(struct hd_decl *decl, const char *name, enum hd_graph_reducer reducer,
                        size_t *out)
{
    struct hd_graph *graph = decl->draft->graph;
    struct hd_graph_channel *channel = &decl->draft->channels[graph->channel_count];

    *out = graph->channel_count++;
    *channel = (struct hd_graph_channel){.reducer = reducer, .node = HD_GRAPH_END};
    return name ? hd_decl_copy(decl, hd_slice_cstr(name), &channel->name) : HD_ENOMEM;
}

int hd_decl_find_channel(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice name,
                         size_t *out)
{
    struct hd_draft *draft = decl->draft;
    struct hd_graph_channel *channel = hd_map_get(&draft->channel_map, name);
    struct hd_near near;

    if (channel) {
        *out = (size_t)(channel - draft->channels);
        return 0;
    }
    hd_near_init(&near, name);
    for (size_t i = 0; i < draft->graph->state_count; i++)
        hd_near_try(&near, draft->channels[i].name);
    return hd_decl_fail(decl, at, "unknown channel \"%.*s\"%s", HD_SHOW(name), hd_near_text(&near));
}

static bool has_index(const size_t *list, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == index)
            return true;
    }
    return false;
}

int hd_decl_read_channels(struct hd_decl *decl, const struct hd_decl_at *at,
                          const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val), count = 0;
    struct hd_slice name = {0};
    size_t *list;
    int err = 0;

    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of channels");
    list = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(*list));
    if (!list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, count, it.val);

        err = hd_decl_read_string(decl, &element, field, &name);
        if (err == 0)
            err = hd_decl_find_channel(decl, &element, name, &list[count]);
        if (err == 0 && has_index(list, count, list[count]))
            err = hd_decl_fail(decl, &element, "channel \"%.*s\" is a duplicate", HD_SHOW(name));
        count++;
    }
    *(struct hd_indexes *)out = (struct hd_indexes){list, count};
    return err;
}
