/*
 * One channel, driven from outside: channels_check.py runs the same operations
 * on LangGraph's channels and compares.
 *
 * Each line of the input is a list of cases' operations, in the canonical
 * encoding:
 *
 *   {"reducer":"add","initial":V,"accumulate":true,"names":[…],"ops":[OP,…]}
 *
 * OP is ["update",[V,…]] (a superstep), ["consume"], ["finish"] or ["save"] (to a
 * checkpoint and back into a new channel). The answer is one line, a list with
 * an object for each operation: `changed`, `error` [type, text], `value` and
 * `saved` when there is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/channel.h"

#define MAX_NAMES 8

static const struct {
    const char *name;
    enum hd_graph_reducer reducer;
} reducers[] = {
    {"last", HD_REDUCE_LAST},
    {"any", HD_REDUCE_ANY},
    {"ephemeral", HD_REDUCE_EPHEMERAL},
    {"untracked", HD_REDUCE_UNTRACKED},
    {"messages", HD_REDUCE_MESSAGES},
    {"add", HD_REDUCE_ADD},
    {"merge", HD_REDUCE_MERGE},
    {"max", HD_REDUCE_MAX},
    {"min", HD_REDUCE_MIN},
    {"and", HD_REDUCE_AND},
    {"or", HD_REDUCE_OR},
    {"topic", HD_REDUCE_TOPIC},
    {"trigger", HD_REDUCE_TRIGGER},
    {"trigger_after", HD_REDUCE_TRIGGER_AFTER},
    {"barrier", HD_REDUCE_BARRIER},
    {"barrier_after", HD_REDUCE_BARRIER_AFTER},
};

static void die(const char *why)
{
    fprintf(stderr, "channels: %s\n", why);
    exit(2);
}

struct driver {
    struct hd_graph graph;
    struct hd_graph_channel decl;
    struct hd_node nodes[MAX_NAMES];
    size_t sources[MAX_NAMES];
    struct hd_channel channel;
    struct hd_val *answers;
};

/* Borrows from `request`. */
static void set_up(struct driver *d, const struct hd_val *request)
{
    struct hd_slice reducer = hd_val_get_string(hd_val_get(request, HD_S("reducer")));
    const struct hd_val *names = hd_val_get(request, HD_S("names"));
    size_t i = 0;

    memset(d, 0, sizeof(*d));
    while (i < HD_COUNT(reducers) && !hd_slice_eq(reducer, hd_slice_cstr(reducers[i].name)))
        i++;
    if (i == HD_COUNT(reducers) || hd_val_count(names) > MAX_NAMES)
        die("no such channel");
    d->decl.name = HD_S("key");
    d->decl.reducer = reducers[i].reducer;
    d->decl.initial = hd_val_get(request, HD_S("initial"));
    d->decl.is_accumulating = hd_val_is_true(hd_val_get(request, HD_S("accumulate")));
    d->decl.sources = d->sources;
    d->decl.source_count = hd_val_count(names);
    for (i = 0; i < hd_val_count(names); i++) {
        d->sources[i] = i;
        d->nodes[i].name = hd_val_get_string(hd_val_at(names, i));
    }
    d->graph = (struct hd_graph){.channels = &d->decl, .channel_count = 1, .nodes = d->nodes};
    hd_channel_init(&d->channel, &d->graph, 0);
    d->answers = hd_val_list();
}

/* ---- operations ------------------------------------------------------- */

static void refuse(struct hd_val **answer, struct hd_refusal *refusal)
{
    struct hd_val *error = hd_val_append(hd_val_list(), hd_val_cstr(refusal->type));

    error = hd_val_append(error, hd_val_ref(refusal->text));
    *answer = hd_val_with(*answer, HD_S("error"), error);
    hd_refusal_fini(refusal);
}

/* What would come of it must be what then comes of it. */
static void check_peek(struct driver *d, struct hd_val *const *values, size_t count, int expected,
                       const struct hd_val *value)
{
    struct hd_val *seen = NULL;
    int err = hd_channel_peek(&d->channel, values, count, &seen, NULL);

    if (err != expected || (!err && !hd_val_equal(seen, value)))
        die("what was foreseen is not what came");
    hd_val_unref(seen);
}

static bool has_missing_ids(const struct hd_val *update)
{
    struct hd_val *list = NULL;
    bool is_changed = hd_messages_prepare(update, &list, NULL) == 0 && list != update;

    hd_val_unref(list);
    return is_changed;
}

static void update(struct driver *d, const struct hd_val *updates, struct hd_val **answer)
{
    size_t count = hd_val_count(updates);
    struct hd_val **values = calloc(count + 1, sizeof(struct hd_val *));
    struct hd_refusal refusal = {0};
    struct hd_channel before = {0};
    bool has_changed = false, is_random = false;
    struct hd_val *saved;
    int err;

    if (!values || hd_channel_checkpoint(&d->channel, &saved) != 0)
        die("no memory");
    for (size_t i = 0; i < count; i++) {
        values[i] = hd_val_at(updates, i);
        is_random |= d->decl.reducer == HD_REDUCE_MESSAGES && has_missing_ids(values[i]);
    }
    is_random |= d->decl.reducer == HD_REDUCE_UNTRACKED; /* it is not saved, so there is no copy */
    before = d->channel;
    hd_channel_init(&d->channel, &d->graph, 0);
    if (hd_channel_restore(&d->channel, saved, NULL) != 0)
        die("what was saved cannot be restored");
    struct hd_channel copy = d->channel;
    d->channel = before;
    if (!is_random)
        err = hd_channel_peek(&d->channel, values, count, &(struct hd_val *){NULL}, NULL) & 0;
    err = hd_channel_update(&d->channel, values, count, &has_changed, &refusal);
    if (err && err != HD_EINVAL)
        die(hd_error_text(err));
    if (!is_random) {
        struct hd_channel real = d->channel;

        d->channel = copy;
        check_peek(d, values, count, err, hd_channel_get(&real));
        copy = d->channel;
        d->channel = real;
    }
    hd_channel_fini(&copy);
    hd_val_unref(saved);
    free(values);
    *answer = hd_val_with(*answer, HD_S("changed"), hd_val_bool(has_changed && !err));
    if (err)
        refuse(answer, &refusal);
}
