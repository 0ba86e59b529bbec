#include "graph/engine/channel.h"

#include <stdarg.h>
#include <stdint.h>

#include "graph/engine/channel_internal.h"

#define CONCURRENT_UPDATE                                                            \
    "\nFor troubleshooting, visit: https://docs.langchain.com/oss/python/langgraph/" \
    "errors/INVALID_CONCURRENT_GRAPH_UPDATE"

/* Operations of a channel kind. A missing one does nothing, unless a default is noted. */
struct hd_channel_ops {
    /* After an error the channel may be partly updated; the caller restores it. */
    int (*update)(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                  bool *has_changed, struct hd_refusal *refusal);
    /* Default of these two: the value. */
    struct hd_val *(*get)(const struct hd_channel *channel);
    int (*checkpoint)(const struct hd_channel *channel, struct hd_val **out);
    int (*restore)(struct hd_channel *channel, const struct hd_val *saved,
                   struct heddle_error *fault); /* default: sets the value */
    bool (*consume)(struct hd_channel *channel);
    bool (*finish)(struct hd_channel *channel);
};

struct channel_reducer {
    const struct hd_channel_ops *ops;
    hd_combine_fn combine; /* of operator_ops */
    const char *guarded;   /* ephemeral, untracked: the class that refuses several values */
};

static const struct channel_reducer *reducer_of(const struct hd_channel *channel);

/* ---- refusing --------------------------------------------------------- */

void hd_refusal_fini(struct hd_refusal *refusal)
{
    hd_val_unref(refusal->text);
    *refusal = (struct hd_refusal){0};
}

int hd_refuse(struct hd_refusal *refusal, const char *type, const char *fmt, ...)
{
    va_list args;

    if (!refusal || refusal->type)
        return HD_EINVAL;
    va_start(args, fmt);
    refusal->text = hd_val_vprintf(fmt, args);
    va_end(args);
    if (!refusal->text)
        return HD_ENOMEM;
    refusal->type = type;
    return HD_EINVAL;
}

static int key_len(const struct hd_channel *channel)
{
    return (int)channel->decl->name.len;
}

static const char *key_of(const struct hd_channel *channel)
{
    return channel->decl->name.ptr;
}

/* ---- one value -------------------------------------------------------- */

static void set_value(struct hd_channel *channel, const struct hd_val *value)
{
    struct hd_val *old = channel->value;

    channel->value = hd_val_ref(value);
    hd_val_unref(old);
}

static int update_last(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                       bool *has_changed, struct hd_refusal *refusal)
{
    if (count == 0)
        return 0;
    if (count > 1)
        return hd_refuse(refusal, "InvalidUpdateError",
                         "At key '%.*s': Can receive only one value per step. Use an Annotated key "
                         "to handle multiple values." CONCURRENT_UPDATE,
                         key_len(channel), key_of(channel));
    set_value(channel, values[0]);
    *has_changed = true;
    return 0;
}

/* Without a write the value is cleared. */
static int update_any(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                      bool *has_changed, struct hd_refusal *refusal)
{
    (void)refusal;
    *has_changed = count > 0 || channel->value;
    set_value(channel, count > 0 ? values[count - 1] : NULL);
    return 0;
}

static int refuse_several(const struct hd_channel *channel, struct hd_refusal *refusal)
{
    return hd_refuse(refusal, "InvalidUpdateError",
                     "At key '%.*s': %s(guard=True) can receive only one value per step. Use "
                     "guard=False if you want to store any one of multiple values.",
                     key_len(channel), key_of(channel), reducer_of(channel)->guarded);
}

static int update_ephemeral(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                            bool *has_changed, struct hd_refusal *refusal)
{
    if (count > 1 && reducer_of(channel)->guarded)
        return refuse_several(channel, refusal);
    return update_any(channel, values, count, has_changed, refusal);
}

static int update_untracked(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                            bool *has_changed, struct hd_refusal *refusal)
{
    if (count > 1)
        return refuse_several(channel, refusal);
    return update_last(channel, values, count, has_changed, refusal);
}

static int checkpoint_nothing(const struct hd_channel *channel, struct hd_val **out)
{
    (void)channel;
    *out = NULL;
    return 0;
}

static int restore_nothing(struct hd_channel *channel, const struct hd_val *saved,
                           struct heddle_error *fault)
{
    (void)channel;
    (void)saved;
    (void)fault;
    return 0;
}

/* ---- binary operators ------------------------------------------------- */

/* The value that replaces all others; NULL: the update is not an overwrite. */
static struct hd_val *overwriting(const struct hd_val *update)
{
    static const struct hd_slice mark = HD_S_INIT("__overwrite__");
    struct hd_val *value = hd_val_get(update, HD_S("value"));

    if (hd_val_kind(update) == HD_KIND_OVERWRITE)
        return value;
    if (!hd_val_is_object(update) || hd_val_kind(update) != HD_KIND_NONE)
        return NULL;
    if (hd_val_count(update) == 1 && hd_val_get(update, mark))
        return hd_val_get(update, mark);
    if (hd_slice_eq(hd_val_get_string(hd_val_get(update, HD_S("type"))), mark))
        return value;
    return NULL;
}

static int combine(struct hd_channel *channel, const struct hd_val *update,
                   struct hd_refusal *refusal)
{
    struct hd_val *left = channel->value;

    channel->value = NULL;
    return reducer_of(channel)->combine(channel, left, update, &channel->value, refusal);
}

static int update_operator(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                           bool *has_changed, struct hd_refusal *refusal)
{
    bool is_overwritten = false;
    size_t i = 0;
    int err = 0;

    *has_changed = count > 0;
    if (count > 0 && !channel->value)
        set_value(channel, values[i++]);
    for (; !err && i < count; i++) {
        const struct hd_val *instead = overwriting(values[i]);

        if (instead && is_overwritten)
            return hd_refuse(
                refusal, "InvalidUpdateError",
                "Can receive only one Overwrite value per super-step." CONCURRENT_UPDATE);
        if (instead)
            set_value(channel, instead);
        else if (!is_overwritten)
            err = combine(channel, values[i], refusal);
        is_overwritten |= instead != NULL;
    }
    return err;
}

/* A thread may have been written while the channel was a delta channel. */
static int restore_operator(struct hd_channel *channel, const struct hd_val *saved,
                            struct heddle_error *fault)
{
    (void)fault;
    if (hd_val_kind(saved) == HD_KIND_DELTA)
        saved = hd_val_get(saved, HD_S("value"));
    set_value(channel, saved);
    return 0;
}

/*
 * Every reducer accepts the first value unchanged. Further values need the graph's code, so they
 * are ignored here.
 */
static int update_opaque(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                         bool *has_changed, struct hd_refusal *refusal)
{
    (void)refusal;
    if (count == 0 || channel->value)
        return 0;
    set_value(channel, values[0]);
    *has_changed = true;
    return 0;
}

/* ---- topics ----------------------------------------------------------- */

static int add_to_topic(struct hd_channel *channel, const struct hd_val *update)
{
    struct hd_val *list = channel->value ? channel->value : hd_val_list();

    channel->value = hd_val_is_list(update) ? hd_val_extend(list, update)
                                            : hd_val_append(list, hd_val_ref(update));
    return channel->value ? 0 : HD_ENOMEM;
}

static int update_topic(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                        bool *has_changed, struct hd_refusal *refusal)
{
    size_t before;
    int err = 0;

    (void)refusal;
    if (!channel->decl->is_accumulating) {
        *has_changed = hd_val_count(channel->value) > 0;
        set_value(channel, NULL);
    }
    before = hd_val_count(channel->value);
    for (size_t i = 0; !err && i < count; i++)
        err = add_to_topic(channel, values[i]);
    *has_changed |= hd_val_count(channel->value) > before;
    return err;
}

static struct hd_val *get_topic(const struct hd_channel *channel)
{
    return hd_val_count(channel->value) > 0 ? channel->value : NULL;
}

static int checkpoint_topic(const struct hd_channel *channel, struct hd_val **out)
{
    *out = channel->value ? hd_val_ref(channel->value) : hd_val_list();
    return *out ? 0 : HD_ENOMEM;
}

static int refuse_saved(const struct hd_channel *channel, const struct hd_val *saved,
                        const char *wanted, struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL, "the checkpoint's value of channel '%.*s' is %s, not %s",
                        key_len(channel) < 100 ? key_len(channel) : 100, key_of(channel),
                        hd_val_type_name(saved), wanted);
}

static int restore_topic(struct hd_channel *channel, const struct hd_val *saved,
                         struct heddle_error *fault)
{
    if (!hd_val_is_list(saved))
        return refuse_saved(channel, saved, "a list", fault);
    set_value(channel, saved);
    return 0;
}

/* ---- barriers --------------------------------------------------------- */

static struct hd_slice awaited(const struct hd_channel *channel, size_t i)
{
    return channel->graph->nodes[channel->decl->sources[i]].name;
}

static bool is_awaited(const struct hd_channel *channel, const struct hd_val *name)
{
    size_t i = 0;

    while (i < channel->decl->source_count &&
           !hd_slice_eq(awaited(channel, i), hd_val_get_string(name)))
        i++;
    return hd_val_is_string(name) && i < channel->decl->source_count;
}

static bool is_seen(const struct hd_channel *channel, const struct hd_val *name)
{
    size_t count = hd_val_count(channel->value), i = 0;

    while (i < count && !hd_val_equal(hd_val_at(channel->value, i), name))
        i++;
    return i < count;
}

/* Compares sets: an old checkpoint may contain names that are no longer awaited. */
static bool is_full(const struct hd_channel *channel)
{
    size_t count = hd_val_count(channel->value), known = 0;

    for (size_t i = 0; i < count; i++)
        known += is_awaited(channel, hd_val_at(channel->value, i));
    return known == count && count == channel->decl->source_count;
}

static int refuse_stranger(const struct hd_channel *channel, const struct hd_val *name,
                           struct hd_refusal *refusal)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, SIZE_MAX / 2);
    err = hd_val_is_null(name) ? hd_buf_append_slice(&text, HD_S("None"))
                               : hd_val_write_text(&text, name);
    if (!err)
        err = hd_buf_append_slice(&text, HD_S(" not in {"));
    for (size_t i = 0; !err && i < channel->decl->source_count; i++)
        err = hd_buf_printf(&text, "%s'%.*s'", i ? ", " : "", (int)awaited(channel, i).len,
                            awaited(channel, i).ptr);
    if (!err)
        err = hd_refuse(refusal, "InvalidUpdateError", "At key '%.*s': Value %.*s}",
                        key_len(channel), key_of(channel), (int)text.len, text.ptr);
    hd_buf_fini(&text);
    return err;
}

static int update_barrier(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                          bool *has_changed, struct hd_refusal *refusal)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_awaited(channel, values[i]))
            return refuse_stranger(channel, values[i], refusal);
        if (is_seen(channel, values[i]))
            continue;
        if (add_to_topic(channel, values[i]))
            return HD_ENOMEM;
        *has_changed = true;
    }
    return 0;
}

/* A full barrier reads as null. */
static struct hd_val *get_barrier(const struct hd_channel *channel)
{
    return is_full(channel) ? hd_val_null() : NULL;
}

static int checkpoint_barrier(const struct hd_channel *channel, struct hd_val **out)
{
    *out = hd_val_set(channel->value ? hd_val_ref(channel->value) : hd_val_list());
    return *out ? 0 : HD_ENOMEM;
}

/* Python stores a set, JavaScript an array. */
static int restore_barrier(struct hd_channel *channel, const struct hd_val *saved,
                           struct heddle_error *fault)
{
    const struct hd_val *names = saved;

    if (hd_val_kind(saved) == HD_KIND_SET)
        names = hd_val_get(saved, HD_S("items"));
    if (!hd_val_is_list(names))
        return refuse_saved(channel, saved, "a set", fault);
    set_value(channel, names);
    return 0;
}

static bool consume_barrier(struct hd_channel *channel)
{
    if (!is_full(channel))
        return false;
    set_value(channel, NULL);
    return true;
}

/* ---- channels that wait for the end ----------------------------------- */

static int update_last_after(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                             bool *has_changed, struct hd_refusal *refusal)
{
    (void)refusal;
    if (count == 0)
        return 0;
    channel->is_finished = false;
    set_value(channel, values[count - 1]);
    *has_changed = true;
    return 0;
}

static struct hd_val *get_last_after(const struct hd_channel *channel)
{
    return channel->is_finished ? channel->value : NULL;
}

/* Makes [kept, is_finished]. Takes `kept`. */
static int pair_up(const struct hd_channel *channel, struct hd_val *kept, struct hd_val **out)
{
    *out = hd_val_append(hd_val_append(hd_val_list(), kept), hd_val_bool(channel->is_finished));
    return *out ? 0 : HD_ENOMEM;
}

static int checkpoint_last_after(const struct hd_channel *channel, struct hd_val **out)
{
    *out = NULL;
    return channel->value ? pair_up(channel, hd_val_ref(channel->value), out) : 0;
}

static int restore_pair(struct hd_channel *channel, const struct hd_val *saved,
                        const struct hd_val **kept, struct heddle_error *fault)
{
    if (hd_val_count(saved) != 2 || hd_val_type(hd_val_at(saved, 1)) != HD_VAL_BOOL)
        return refuse_saved(channel, saved, "a pair with a boolean", fault);
    channel->is_finished = hd_val_is_true(hd_val_at(saved, 1));
    *kept = hd_val_at(saved, 0);
    return 0;
}

static int restore_last_after(struct hd_channel *channel, const struct hd_val *saved,
                              struct heddle_error *fault)
{
    const struct hd_val *kept = NULL;
    int err = restore_pair(channel, saved, &kept, fault);

    if (!err)
        set_value(channel, kept);
    return err;
}

static bool consume_last_after(struct hd_channel *channel)
{
    if (!channel->is_finished)
        return false;
    channel->is_finished = false;
    set_value(channel, NULL);
    return true;
}

static bool finish_last_after(struct hd_channel *channel)
{
    if (channel->is_finished || !channel->value)
        return false;
    channel->is_finished = true;
    return true;
}

static struct hd_val *get_barrier_after(const struct hd_channel *channel)
{
    return channel->is_finished ? get_barrier(channel) : NULL;
}

static int checkpoint_barrier_after(const struct hd_channel *channel, struct hd_val **out)
{
    struct hd_val *names;
    int err = checkpoint_barrier(channel, &names);

    return err ? err : pair_up(channel, names, out);
}

static int restore_barrier_after(struct hd_channel *channel, const struct hd_val *saved,
                                 struct heddle_error *fault)
{
    const struct hd_val *kept = NULL;
    int err = restore_pair(channel, saved, &kept, fault);

    return err ? err : restore_barrier(channel, kept, fault);
}

static bool consume_barrier_after(struct hd_channel *channel)
{
    if (!channel->is_finished || !consume_barrier(channel))
        return false;
    channel->is_finished = false;
    return true;
}

static bool finish_barrier_after(struct hd_channel *channel)
{
    if (channel->is_finished || !is_full(channel))
        return false;
    channel->is_finished = true;
    return true;
}

/* ---- the table -------------------------------------------------------- */

static const struct hd_channel_ops last_ops = {.update = update_last};
static const struct hd_channel_ops any_ops = {.update = update_any};
static const struct hd_channel_ops ephemeral_ops = {.update = update_ephemeral};
static const struct hd_channel_ops untracked_ops = {
    .update = update_untracked, .checkpoint = checkpoint_nothing, .restore = restore_nothing};
static const struct hd_channel_ops operator_ops = {.update = update_operator,
                                                   .restore = restore_operator};
static const struct hd_channel_ops opaque_ops = {.update = update_opaque,
                                                 .restore = restore_operator};
static const struct hd_channel_ops topic_ops = {.update = update_topic,
                                                .get = get_topic,
                                                .checkpoint = checkpoint_topic,
                                                .restore = restore_topic};
static const struct hd_channel_ops last_after_ops = {.update = update_last_after,
                                                     .get = get_last_after,
                                                     .checkpoint = checkpoint_last_after,
                                                     .restore = restore_last_after,
                                                     .consume = consume_last_after,
                                                     .finish = finish_last_after};
static const struct hd_channel_ops barrier_ops = {.update = update_barrier,
                                                  .get = get_barrier,
                                                  .checkpoint = checkpoint_barrier,
                                                  .restore = restore_barrier,
                                                  .consume = consume_barrier};
static const struct hd_channel_ops barrier_after_ops = {.update = update_barrier,
                                                        .get = get_barrier_after,
                                                        .checkpoint = checkpoint_barrier_after,
                                                        .restore = restore_barrier_after,
                                                        .consume = consume_barrier_after,
                                                        .finish = finish_barrier_after};

static const struct channel_reducer reducers[] = {
    [HD_REDUCE_LAST] = {&last_ops, NULL, NULL},
    [HD_REDUCE_ANY] = {&any_ops, NULL, NULL},
    [HD_REDUCE_EPHEMERAL] = {&ephemeral_ops, NULL, "EphemeralValue"},
    [HD_REDUCE_UNTRACKED] = {&untracked_ops, NULL, "UntrackedValue"},
    [HD_REDUCE_MESSAGES] = {&operator_ops, hd_combine_messages, NULL},
    [HD_REDUCE_ADD] = {&operator_ops, hd_combine_add, NULL},
    [HD_REDUCE_MERGE] = {&operator_ops, hd_combine_merge, NULL},
    [HD_REDUCE_MAX] = {&operator_ops, hd_combine_max, NULL},
    [HD_REDUCE_MIN] = {&operator_ops, hd_combine_min, NULL},
    [HD_REDUCE_AND] = {&operator_ops, hd_combine_and, NULL},
    [HD_REDUCE_OR] = {&operator_ops, hd_combine_or, NULL},
    [HD_REDUCE_TOPIC] = {&topic_ops, NULL, NULL},
    [HD_REDUCE_TRIGGER] = {&ephemeral_ops, NULL, NULL},
    [HD_REDUCE_TRIGGER_AFTER] = {&last_after_ops, NULL, NULL},
    [HD_REDUCE_BARRIER] = {&barrier_ops, NULL, NULL},
    [HD_REDUCE_BARRIER_AFTER] = {&barrier_after_ops, NULL, NULL},
    [HD_REDUCE_OPAQUE] = {&opaque_ops, NULL, NULL},
};

static const struct channel_reducer *reducer_of(const struct hd_channel *channel)
{
    return &reducers[channel->decl->reducer];
}

/* ---- public functions ------------------------------------------------- */

void hd_channel_init(struct hd_channel *channel, const struct hd_graph *graph, size_t index)
{
    *channel = (struct hd_channel){.graph = graph, .decl = &graph->channels[index]};
    channel->value = hd_val_ref(channel->decl->initial);
}

void hd_channel_fini(struct hd_channel *channel)
{
    hd_val_unref(channel->value);
    hd_messages_destroy(channel->messages);
    *channel = (struct hd_channel){0};
}

struct hd_val *hd_channel_get(const struct hd_channel *channel)
{
    const struct hd_channel_ops *ops = reducer_of(channel)->ops;

    return ops->get ? ops->get(channel) : channel->value;
}

int hd_channel_checkpoint(const struct hd_channel *channel, struct hd_val **out)
{
    const struct hd_channel_ops *ops = reducer_of(channel)->ops;

    if (ops->checkpoint)
        return ops->checkpoint(channel, out);
    *out = hd_val_ref(channel->value);
    return 0;
}

int hd_channel_restore(struct hd_channel *channel, const struct hd_val *saved,
                       struct heddle_error *fault)
{
    const struct hd_channel_ops *ops = reducer_of(channel)->ops;

    channel->is_finished = false;
    set_value(channel, channel->decl->initial);
    if (!saved)
        return 0;
    if (ops->restore)
        return ops->restore(channel, saved, fault);
    set_value(channel, saved);
    return 0;
}

static int check_depth(const struct hd_channel *channel, struct hd_refusal *refusal)
{
    if (hd_val_depth(channel->value) <= HD_CHANNEL_MAX_DEPTH)
        return 0;
    return hd_refuse(refusal, "ValueError", "At key '%.*s': the value has more than %d levels",
                     key_len(channel), key_of(channel), HD_CHANNEL_MAX_DEPTH);
}

static int apply_values(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                        bool *has_changed, struct hd_refusal *refusal)
{
    int err;

    *has_changed = false;
    err = reducer_of(channel)->ops->update(channel, values, count, has_changed, refusal);
    return err ? err : check_depth(channel, refusal);
}

int hd_channel_update(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                      bool *has_changed, struct hd_refusal *refusal)
{
    struct hd_val *value = hd_val_ref(channel->value);
    bool is_finished = channel->is_finished;
    int err = apply_values(channel, values, count, has_changed, refusal);

    if (err) {
        set_value(channel, value);
        channel->is_finished = is_finished;
        hd_messages_rewind(channel->messages, value);
    } else {
        hd_messages_commit(channel->messages);
    }
    hd_val_unref(value);
    return err;
}

int hd_channel_peek(struct hd_channel *channel, struct hd_val *const *values, size_t count,
                    struct hd_val **out, struct hd_refusal *refusal)
{
    struct hd_channel copy = *channel;
    bool has_changed;
    int err;

    (void)hd_val_ref(copy.value);
    err = apply_values(&copy, values, count, &has_changed, refusal);
    if (!err)
        *out = hd_val_ref(hd_channel_get(&copy));
    hd_val_unref(copy.value);
    channel->messages = copy.messages;
    hd_messages_rewind(channel->messages, channel->value);
    return err;
}

bool hd_channel_consume(struct hd_channel *channel)
{
    const struct hd_channel_ops *ops = reducer_of(channel)->ops;

    return ops->consume && ops->consume(channel);
}

bool hd_channel_finish(struct hd_channel *channel)
{
    const struct hd_channel_ops *ops = reducer_of(channel)->ops;

    return ops->finish && ops->finish(channel);
}
