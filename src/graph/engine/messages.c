/*
 * add_messages: adds messages, replaces messages with the same id in place, and removes messages
 * for which a `remove` message is written.
 *
 * An index from ids to positions makes the cost of an update proportional to its size. The index
 * has every message of `base`, the channel's list before the current update, and of `list`, the
 * result so far. It may also have entries from discarded lists of a peek, so each position is
 * checked against the list. Rewinding to `base` is therefore free.
 *
 * The index is created when it pays off: the first few messages are searched from the end of the
 * list.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/uuid.h"
#include "graph/engine/channel_internal.h"

#define MAX_MESSAGES ((size_t)1 << 30)
#define NOWHERE SIZE_MAX
#define FEW 4

struct hd_messages {
    bool has_places;
    size_t looked;        /* messages searched for so far */
    struct hd_map places; /* id to position + 1 */
    struct hd_val *base;  /* NULL: none */
    struct hd_val *list;  /* NULL: the index must be rebuilt */
};

void hd_messages_destroy(struct hd_messages *messages)
{
    if (!messages)
        return;
    hd_map_fini(&messages->places);
    hd_val_unref(messages->base);
    hd_val_unref(messages->list);
    hd_free(messages);
}

static void set_list(struct hd_val **which, const struct hd_val *list)
{
    struct hd_val *old = *which;

    *which = hd_val_ref(list);
    hd_val_unref(old);
}

void hd_messages_commit(struct hd_messages *messages)
{
    if (messages)
        set_list(&messages->base, messages->list);
}

void hd_messages_rewind(struct hd_messages *messages, const struct hd_val *value)
{
    if (messages)
        set_list(&messages->list, value == messages->base ? value : NULL);
}

/* ---- one message ------------------------------------------------------ */

/* NULL: no id. */
static struct hd_val *id_of(const struct hd_val *message)
{
    struct hd_val *id = hd_val_get(message, HD_S("id"));

    return hd_val_is_null(id) ? NULL : id;
}

/* The bytes of an id. Those of an id that is not a valid string are practically unique. */
static struct hd_slice id_bytes(const struct hd_val *message)
{
    struct hd_val *id = id_of(message);

    return hd_val_get_string(hd_val_is_string(id) ? id : hd_val_get(id, HD_S("v")));
}

static bool is_removal(const struct hd_val *message)
{
    return hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("type"))), HD_S("remove"));
}

/* The type of the complete message for a chunk; NULL: not a chunk. */
static const char *whole_type(const struct hd_val *message)
{
    static const char *const types[][2] = {
        {"AIMessageChunk", "ai"},         {"HumanMessageChunk", "human"},
        {"SystemMessageChunk", "system"}, {"ToolMessageChunk", "tool"},
        {"ChatMessageChunk", "chat"},     {"FunctionMessageChunk", "function"},
    };
    struct hd_slice type = hd_val_get_string(hd_val_get(message, HD_S("type")));

    for (size_t i = 0; i < HD_COUNT(types); i++) {
        if (hd_slice_eq(type, hd_slice_cstr(types[i][0])))
            return types[i][1];
    }
    return NULL;
}

static bool is_ready(const struct hd_val *val)
{
    return hd_val_kind(val) == HD_KIND_MESSAGE && id_of(val) && !whole_type(val);
}

/* Takes the message. */
static struct hd_val *make_whole(struct hd_val *message)
{
    const char *type = whole_type(message);

    if (!type)
        return message;
    message = hd_val_with(message, HD_S("type"), hd_val_cstr(type));
    message = hd_val_without(message, HD_S("tool_call_chunks"));
    return hd_val_without(message, HD_S("chunk_position"));
}

static struct hd_val *give_id(struct hd_val *message)
{
    char id[HD_UUID_SIZE];

    if (!message || id_of(message))
        return message;
    hd_uuid_v4(id);
    return hd_val_with(message, HD_S("id"), hd_val_string(hd_slice(id, HD_UUID_LEN)));
}

static int refuse_form(const struct hd_val *val, const struct heddle_error *fault,
                       struct hd_refusal *refusal)
{
    bool has_form = hd_val_is_object(val) || hd_val_is_list(val);

    return hd_refuse(refusal, has_form ? "ValueError" : "NotImplementedError", "%s", fault->text);
}

/* Converts any accepted form of a message to a message with an id. */
static int make_ready(const struct hd_val *val, struct hd_val **out, struct hd_refusal *refusal)
{
    struct heddle_error fault = {0};
    struct hd_val *message;
    int err = hd_val_to_message(val, &message, &fault);

    if (err == HD_EINVAL || err == HD_ELIMIT)
        return refuse_form(val, &fault, refusal);
    if (err)
        return err;
    message = give_id(make_whole(message));
    if (message)
        *out = message;
    return message ? 0 : HD_ENOMEM;
}

/* ---- lists of messages ------------------------------------------------ */

static bool are_ready(const struct hd_val *list)
{
    size_t count = hd_val_count(list), i = 0;

    while (i < count && is_ready(hd_val_at(list, i)))
        i++;
    return hd_val_is_list(list) && i == count;
}

/* A value that is not a list is one message. *out is `val` itself if nothing changes. */
int hd_messages_prepare(const struct hd_val *val, struct hd_val **out, struct hd_refusal *refusal)
{
    size_t count = hd_val_is_list(val) ? hd_val_count(val) : 1;
    struct hd_val *list, *message;
    int err = 0;

    if (are_ready(val)) {
        *out = hd_val_ref(val);
        return 0;
    }
    list = hd_val_list();
    for (size_t i = 0; !err && list && i < count; i++) {
        err = make_ready(hd_val_is_list(val) ? hd_val_at(val, i) : val, &message, refusal);
        if (!err)
            list = hd_val_append(list, message);
    }
    if (!err && !list)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(list);
    else
        *out = list;
    return err;
}

/* ---- the index -------------------------------------------------------- */

static int note_place(struct hd_messages *messages, const struct hd_val *message, size_t place)
{
    return hd_map_put(&messages->places, id_bytes(message), (void *)(uintptr_t)(place + 1));
}

/* The position of the message with this id in the list, or NOWHERE. */
static size_t find_place(const struct hd_messages *messages, const struct hd_val *list,
                         struct hd_slice id)
{
    size_t place = hd_val_count(list);

    if (messages->has_places)
        place = (size_t)(uintptr_t)hd_map_get(&messages->places, id);
    for (; place > 0; place--) {
        const struct hd_val *message = hd_val_at(list, place - 1);

        if (message && hd_slice_eq(id_bytes(message), id))
            return place - 1;
        if (messages->has_places)
            break;
    }
    return NOWHERE;
}

/* Resets the index for a new list. */
static void restart(struct hd_messages *messages, const struct hd_val *list)
{
    hd_map_fini(&messages->places);
    hd_map_init(&messages->places, MAX_MESSAGES);
    messages->has_places = false;
    messages->looked = 0;
    set_list(&messages->base, list);
    set_list(&messages->list, list);
}

/* Call before searching for `more` messages: builds the index when it pays off. */
static int expect(struct hd_messages *messages, const struct hd_val *list, size_t more)
{
    size_t count = hd_val_count(list);
    int err = 0;

    messages->looked += more;
    if (messages->has_places || messages->looked <= FEW)
        return 0;
    for (size_t i = 0; !err && i < count; i++)
        err = note_place(messages, hd_val_at(list, i), i);
    messages->has_places = !err;
    return err;
}

/* Makes *left, which it may replace, a list of messages that the index covers. */
static int open_left(struct hd_channel *channel, struct hd_val **left, struct hd_refusal *refusal)
{
    struct hd_messages *messages = channel->messages;
    struct hd_val *ready;
    int err;

    if (!messages) {
        messages = channel->messages = hd_calloc(1, sizeof(*messages));
        if (!messages)
            return HD_ENOMEM;
        hd_map_init(&messages->places, MAX_MESSAGES);
    }
    if (messages->list == *left && messages->places.count <= 2 * hd_val_count(*left) + 64)
        return 0;
    err = hd_messages_prepare(*left, &ready, refusal);
    if (err)
        return err;
    hd_val_unref(*left);
    *left = ready;
    restart(messages, ready);
    return 0;
}

/* ---- merging ---------------------------------------------------------- */

struct merging {
    struct hd_messages *messages;
    struct hd_val *list;    /* the result so far */
    struct hd_val *removed; /* object: ids to remove; NULL: none */
};

static int remove_later(struct merging *m, const struct hd_val *message)
{
    if (!m->removed)
        m->removed = hd_val_object();
    m->removed = hd_val_with(m->removed, id_bytes(message), hd_val_null());
    return m->removed ? 0 : HD_ENOMEM;
}

static int merge_known(struct merging *m, const struct hd_val *message, size_t place)
{
    if (is_removal(message))
        return remove_later(m, message);
    if (m->removed)
        m->removed = hd_val_without(m->removed, id_bytes(message));
    m->list = hd_val_replace(m->list, place, hd_val_ref(message));
    return m->list ? 0 : HD_ENOMEM;
}

static int merge_new(struct merging *m, const struct hd_val *message, struct hd_refusal *refusal)
{
    struct hd_slice id = id_bytes(message);
    size_t place = hd_val_count(m->list);

    if (is_removal(message))
        return hd_refuse(refusal, "ValueError",
                         "Attempting to delete a message with an ID that doesn't exist ('%.*s')",
                         (int)id.len, id.ptr);
    m->list = hd_val_append(m->list, hd_val_ref(message));
    if (!m->list)
        return HD_ENOMEM;
    return m->messages->has_places ? note_place(m->messages, message, place) : 0;
}

static struct hd_val *without_removed(const struct merging *m)
{
    size_t count = hd_val_count(m->list);
    struct hd_val *left = hd_val_list();

    for (size_t i = 0; left && i < count; i++) {
        struct hd_val *message = hd_val_at(m->list, i);

        if (!hd_val_get(m->removed, id_bytes(message)))
            left = hd_val_append(left, hd_val_ref(message));
    }
    return left;
}

/*
 * Takes `left`, a list that the index covers. The index covers *out too, or messages->list is NULL.
 */
static int merge(struct hd_messages *messages, struct hd_val *left, const struct hd_val *right,
                 struct hd_val **out, struct hd_refusal *refusal)
{
    struct merging m = {.messages = messages, .list = left};
    size_t count = hd_val_count(right);
    struct hd_val *rest;
    int err = expect(messages, left, count);

    for (size_t i = 0; !err && i < count; i++) {
        const struct hd_val *message = hd_val_at(right, i);
        size_t place = find_place(messages, m.list, id_bytes(message));

        err = place == NOWHERE ? merge_new(&m, message, refusal) : merge_known(&m, message, place);
    }
    if (!err && hd_val_count(m.removed) > 0) {
        rest = without_removed(&m);
        hd_val_unref(m.list);
        m.list = rest;
        err = rest ? 0 : HD_ENOMEM;
        set_list(&messages->list, NULL);
    } else if (!err) {
        set_list(&messages->list, m.list);
    }
    hd_val_unref(m.removed);
    if (err)
        hd_val_unref(m.list);
    else
        *out = m.list;
    return err;
}

/* The messages after the last "remove all"; NULL: the update has no "remove all". */
static int after_removal(const struct hd_val *right, struct hd_val **out)
{
    size_t count = hd_val_count(right), i = count;

    *out = NULL;
    while (i > 0 && !(is_removal(hd_val_at(right, i - 1)) &&
                      hd_slice_eq(id_bytes(hd_val_at(right, i - 1)), HD_S("__remove_all__"))))
        i--;
    if (i == 0)
        return 0;
    *out = hd_val_slice(right, i, count);
    return *out ? 0 : HD_ENOMEM;
}

static int merge_update(struct hd_channel *channel, struct hd_val **left,
                        const struct hd_val *right, struct hd_val **out, struct hd_refusal *refusal)
{
    struct hd_val *rest;
    int err = open_left(channel, left, refusal);

    if (!err)
        err = after_removal(right, &rest);
    if (err)
        return err;
    if (rest) {
        set_list(&channel->messages->list, NULL);
        *out = rest;
        return 0;
    }
    err = merge(channel->messages, *left, right, out, refusal);
    *left = NULL;
    return err;
}

int hd_combine_messages(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                        struct hd_val **out, struct hd_refusal *refusal)
{
    struct hd_val *update = NULL;
    int err = 0;

    if (hd_val_is_null(left) || hd_val_is_null(right))
        err = hd_refuse(refusal, "ValueError",
                        "Must specify non-null arguments for both 'left' and 'right'. Only "
                        "received: '%s'.",
                        hd_val_truth(left) ? "left" : "right");
    if (!err)
        err = hd_messages_prepare(right, &update, refusal);
    if (!err)
        err = merge_update(channel, &left, update, out, refusal);
    hd_val_unref(left);
    hd_val_unref(update);
    return err;
}
