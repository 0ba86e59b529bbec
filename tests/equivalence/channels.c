/*
 * Runs operations on one channel; channels_check.py runs the same ones on LangGraph's channels and
 * compares.
 *
 * Each line of the input is a channel and its operations, in the canonical encoding:
 *
 *   {"reducer":"add","initial":V,"accumulate":true,"names":[…],"ops":[OP,…]}
 *
 * OP is ["update",[V,…]] (a superstep), ["consume"], ["finish"] or ["save"] (to a checkpoint and
 * back into a new channel). The output is one line, a list with an object for each operation:
 * `changed`, `error` [type, text], and, if they exist, `value` and `saved`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/engine/channel.h"

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

/* Messages without an id get a random one. */
static bool is_foreseeable(const struct driver *d, const struct hd_val *value)
{
    struct hd_val *ready = NULL;
    bool is_ready = hd_messages_prepare(value, &ready, NULL) != 0 || ready == value;

    hd_val_unref(ready);
    return is_ready || d->decl.reducer != HD_REDUCE_MESSAGES;
}

/* hd_channel_peek() must predict the result of the update. */
static int peek_and_update(struct driver *d, struct hd_val *const *values, size_t count,
                           bool *has_changed, struct hd_refusal *refusal)
{
    struct hd_val *before = hd_val_ref(d->channel.value), *foreseen = NULL;
    int peeked = hd_channel_peek(&d->channel, values, count, &foreseen, NULL);
    int err = hd_channel_update(&d->channel, values, count, has_changed, refusal);
    bool is_same = peeked == err && (err || hd_val_equal(foreseen, hd_channel_get(&d->channel)));

    for (size_t i = 0; i < count; i++)
        is_same |= !is_foreseeable(d, values[i]);
    is_same |= !is_foreseeable(d, before);
    hd_val_unref(before);
    hd_val_unref(foreseen);
    if (!is_same || (err && err != HD_EINVAL))
        die("what came is not what was foreseen");
    return err;
}

static void update(struct driver *d, const struct hd_val *updates, struct hd_val **answer)
{
    size_t count = hd_val_count(updates);
    struct hd_val **values = calloc(count + 1, sizeof(struct hd_val *));
    struct hd_refusal refusal = {0};
    bool has_changed = false;

    if (!values)
        die("no memory");
    for (size_t i = 0; i < count; i++)
        values[i] = hd_val_at(updates, i);
    if (peek_and_update(d, values, count, &has_changed, &refusal) != 0) {
        has_changed = false;
        refuse(answer, &refusal);
    }
    *answer = hd_val_with(*answer, HD_S("changed"), hd_val_bool(has_changed));
    free(values);
}

static void save(struct driver *d)
{
    struct hd_val *saved;

    if (hd_channel_checkpoint(&d->channel, &saved) != 0)
        die("no memory");
    hd_channel_fini(&d->channel);
    hd_channel_init(&d->channel, &d->graph, 0);
    if (hd_channel_restore(&d->channel, saved, NULL) != 0)
        die("what was saved cannot be restored");
    hd_val_unref(saved);
}

static void run(struct driver *d, const struct hd_val *op)
{
    struct hd_slice name = hd_val_get_string(hd_val_at(op, 0));
    struct hd_val *answer = hd_val_object(), *saved;

    if (hd_slice_eq(name, HD_S("update")))
        update(d, hd_val_at(op, 1), &answer);
    else if (hd_slice_eq(name, HD_S("consume")))
        answer = hd_val_with(answer, HD_S("changed"), hd_val_bool(hd_channel_consume(&d->channel)));
    else if (hd_slice_eq(name, HD_S("finish")))
        answer = hd_val_with(answer, HD_S("changed"), hd_val_bool(hd_channel_finish(&d->channel)));
    else
        save(d);
    if (hd_channel_get(&d->channel))
        answer = hd_val_with(answer, HD_S("value"), hd_val_ref(hd_channel_get(&d->channel)));
    if (hd_channel_checkpoint(&d->channel, &saved) != 0)
        die("no memory");
    if (saved)
        answer = hd_val_with(answer, HD_S("saved"), saved);
    d->answers = hd_val_append(d->answers, answer);
}

static void serve(const struct hd_val *request)
{
    const struct hd_val *ops = hd_val_get(request, HD_S("ops"));
    struct driver d;
    struct hd_buf out;

    set_up(&d, request);
    for (size_t i = 0; i < hd_val_count(ops); i++)
        run(&d, hd_val_at(ops, i));
    hd_buf_init(&out, SIZE_MAX / 2);
    if (!d.answers || hd_val_write(&out, d.answers) != 0)
        die("the answer cannot be written");
    printf("%.*s\n", (int)out.len, out.ptr);
    hd_buf_fini(&out);
    hd_channel_fini(&d.channel);
    hd_val_unref(d.answers);
}

int main(void)
{
    struct heddle_error fault = {0};
    struct hd_val *request;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        if (hd_val_parse(hd_slice(line, (size_t)len), &request, &fault) != 0)
            die(fault.text);
        serve(request);
        hd_val_unref(request);
    }
    free(line);
    return 0;
}
