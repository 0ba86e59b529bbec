/* `nodes`: their names, the members common to all kinds, and the table of kinds. */
#include <string.h>

#include "graph/decl/decl.h"
#include "graph/decl/nodes.h"

/* One row per kind of node; a kind is one file, node_<name>.c. */
static const struct hd_node_kind *const node_kinds[] = {
    &hd_node_set,   &hd_node_script,   &hd_node_interrupt, &hd_node_branch, &hd_node_fanout,
    &hd_node_sleep, &hd_node_subgraph, &hd_node_fail,      &hd_node_http,
};

/* ---- names ------------------------------------------------------------ */

static int name_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct hd_draft *draft = decl->draft;
    const char *channel;
    size_t trigger = 0;
    int err = hd_decl_check_name(decl, at, at->key, "node");

    if (err == 0 && hd_map_get(&draft->channel_map, at->key))
        err = hd_decl_fail(decl, at, "a node and a channel must not have the same name");
    if (err == 0)
        err = hd_decl_copy(decl, at->key, &node->name);
    if (err != 0)
        return err;
    channel =
        hd_arena_printf(&decl->hold->arena, "branch:to:%.*s", (int)node->name.len, node->name.ptr);
    err = hd_decl_add_channel(decl, channel, HD_REDUCE_TRIGGER, &trigger);
    if (err != 0)
        return err;
    draft->channels[trigger].node = node->index;
    node->triggers = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*node->triggers));
    if (!node->triggers)
        return HD_ENOMEM;
    node->triggers[node->trigger_count++] = trigger;
    return hd_map_put(&draft->node_map, node->name, node);
}

static int make_start(struct hd_decl *decl, struct hd_node *start)
{
    start->name = HD_S("__start__");
    start->triggers = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*start->triggers));
    if (!start->triggers)
        return HD_ENOMEM;
    start->triggers[start->trigger_count++] = decl->draft->graph->start_channel;
    return 0;
}

int hd_decl_name_nodes(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_draft *draft = decl->draft;
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t count = hd_json_size(at->val);
    int err;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object of nodes");
    if (count == 0)
        return hd_decl_fail(decl, at, "needs at least one node");
    decl->node_total += count;
    if (decl->node_total > HD_GRAPH_MAX_NODES)
        return hd_decl_fail(decl, at, "a declaration has at most %d nodes", HD_GRAPH_MAX_NODES);
    draft->nodes = hd_arena_calloc(&decl->hold->arena, count + 1, sizeof(*draft->nodes));
    if (!draft->nodes)
        return HD_ENOMEM;
    draft->graph->nodes = draft->nodes;
    draft->graph->node_count = 1;
    err = make_start(decl, &draft->nodes[HD_GRAPH_START]);
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);
        struct hd_node *node = &draft->nodes[draft->graph->node_count];

        node->index = draft->graph->node_count++;
        err = name_node(decl, &member, node);
    }
    return err;
}

int hd_decl_find_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice name,
                      bool end_too, size_t *out)
{
    struct hd_draft *draft = decl->draft;
    const struct hd_node *node = hd_map_get(&draft->node_map, name);
    struct hd_near near;

    if (node) {
        *out = node->index;
        return 0;
    }
    if (hd_slice_eq(name, HD_S("__end__")) && end_too) {
        *out = HD_GRAPH_END;
        return 0;
    }
    if (hd_slice_eq(name, HD_S("__start__")) || hd_slice_eq(name, HD_S("__end__")))
        return hd_decl_fail(decl, at, "must not be \"%.*s\"", HD_SHOW(name));
    hd_near_init(&near, name);
    for (size_t i = 1; i < draft->graph->node_count; i++)
        hd_near_try(&near, draft->nodes[i].name);
    return hd_decl_fail(decl, at, "unknown node \"%.*s\"%s", HD_SHOW(name), hd_near_text(&near));
}

int hd_decl_read_node(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out)
{
    (void)field;
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a node");
    return hd_decl_find_node(decl, at, hd_json_string(at->val), false, out);
}

/* ---- destinations of goto --------------------------------------------- */

int hd_decl_add_exit(struct hd_decl *decl, size_t index, bool is_send, struct hd_slice label)
{
    struct hd_node *node = decl->node;
    struct hd_target *exit;

    if (is_send)
        decl->draft->nodes[index].is_sent_to = true;
    for (size_t i = 0; i < node->exit_count; i++) {
        if (node->exits[i].node == index && hd_slice_eq(node->exits[i].label, label))
            return 0;
    }
    exit = hd_decl_memory_push(decl->hold, &node->exits, &node->exit_count, sizeof(*exit));
    if (!exit)
        return HD_ENOMEM;
    *exit = (struct hd_target){index, label, is_send};
    return 0;
}

/* State of a walk over the names that hd_expr_names() finds in a `goto`. */
struct goto_walk {
    struct hd_decl *decl;
    const struct hd_decl_at *at;
    size_t found;
};

static int add_outward(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_outward outward)
{
    struct hd_draft *draft = decl->draft;
    struct hd_outward *copy = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*copy));

    if (!copy)
        return HD_ENOMEM;
    *copy = outward;
    copy->path = hd_decl_path(decl, at);
    *draft->outward_end = copy;
    draft->outward_end = &copy->next;
    return copy->path ? 0 : HD_ENOMEM;
}

static int found_name(void *ctx, struct hd_slice name, bool is_send)
{
    struct goto_walk *walk = ctx;
    struct hd_decl *decl = walk->decl;
    size_t node = 0;
    int err;

    if (is_send && name.len == 0) {
        decl->draft->sends_anywhere = true;
        return 0;
    }
    walk->found++;
    if (decl->node->goes_to_parent)
        return add_outward(decl, walk->at, (struct hd_outward){.name = name, .is_send = is_send});
    err = hd_decl_find_node(decl, walk->at, name, !is_send, &node);
    return err == 0 ? hd_decl_add_exit(decl, node, is_send, HD_S("")) : err;
}

static bool is_name_or_list(const struct hd_val *val)
{
    if (!hd_val_is_list(val))
        return hd_val_is_string(val);
    for (size_t i = 0; i < hd_val_count(val); i++) {
        if (!hd_val_is_string(hd_val_at(val, i)))
            return false;
    }
    return hd_val_count(val) > 0;
}

int hd_decl_read_goto(struct hd_decl *decl, const struct hd_decl_at *at, unsigned places,
                      const struct hd_expr **out)
{
    struct goto_walk walk = {decl, at, 0};
    bool is_complete = true;
    int err = hd_decl_expr_in(decl, at, places, out);

    if (err == 0 && hd_expr_literal(*out) && !is_name_or_list(hd_expr_literal(*out)))
        return hd_decl_fail(decl, at, "must be a node, a list of nodes, or sends");
    if (err == 0)
        err = hd_expr_names(*out, found_name, &walk, &is_complete);
    if (err != 0)
        return err;
    if (decl->node->goes_to_parent) {
        decl->draft->goes_outward = decl->draft->goes_outward || !is_complete;
    } else {
        decl->node->goes_anywhere = !is_complete;
        decl->node->must_exit = is_complete && walk.found > 0;
    }
    return 0;
}

int hd_decl_read_outward(struct hd_decl *decl, const struct hd_decl_at *at,
                         const struct hd_expr **out)
{
    struct hd_slice key = {0};
    int err = hd_decl_expr_in(decl, at, 0, out);

    if (err == 0 && hd_expr_literal(*out) && !hd_val_is_object(hd_expr_literal(*out)))
        return hd_decl_fail_type(decl, at, "an object of channels to values");
    for (size_t i = 0; err == 0 && hd_expr_member(*out, i, &key); i++) {
        struct hd_decl_at member = hd_decl_at_key(at, key, at->val);

        err = add_outward(decl, &member, (struct hd_outward){.name = key, .is_channel = true});
    }
    return err;
}

/* ---- common members --------------------------------------------------- */

struct common {
    const struct hd_node_kind *kind;
    bool is_deferred;
    struct hd_slices tags, args;
    struct hd_decl_at input, metadata, retry, emit, on_error, destinations;
    int64_t timeout_ms;
};

static const struct hd_node_kind *const *more_kinds;
static size_t more_kind_count;

void hd_graph_add_node_kinds(const struct hd_node_kind *const *list, size_t count)
{
    more_kinds = list;
    more_kind_count = count;
}

static const struct hd_node_kind *kind_at(size_t index)
{
    return index < HD_COUNT(node_kinds) ? node_kinds[index]
                                        : more_kinds[index - HD_COUNT(node_kinds)];
}

static int read_kind(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_field *field, void *out)
{
    struct hd_slice name = hd_json_string(at->val);
    struct hd_near near;

    (void)field;
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a kind");
    hd_near_init(&near, name);
    for (size_t i = 0; i < HD_COUNT(node_kinds) + more_kind_count; i++) {
        const struct hd_node_kind *kind = kind_at(i);

        if (hd_slice_eq(name, hd_slice_cstr(kind->name))) {
            *(const struct hd_node_kind **)out = kind;
            return 0;
        }
        hd_near_try(&near, hd_slice_cstr(kind->name));
    }
    return hd_decl_fail(decl, at, "unknown kind \"%.*s\"%s", HD_SHOW(name), hd_near_text(&near));
}

static const struct hd_field common_fields[] = {
    {"kind", read_kind, offsetof(struct common, kind), true, 0, 0, 0},
    {"defer", hd_decl_read_bool, offsetof(struct common, is_deferred), false, 0, 0, 0},
    {"input", hd_decl_read_raw, offsetof(struct common, input), false, 0, 0, 0},
    {"args", hd_decl_read_names, offsetof(struct common, args), false, 0, HD_GRAPH_MAX_NAME, 0},
    {"tags", hd_decl_read_names, offsetof(struct common, tags), false, 0, 0, 0},
    {"metadata", hd_decl_read_raw, offsetof(struct common, metadata), false, 0, 0, 0},
    {"timeout_ms", hd_decl_read_int, offsetof(struct common, timeout_ms), false, 1,
     HD_GRAPH_MAX_WAIT_MS, 0},
    {"retry", hd_decl_read_raw, offsetof(struct common, retry), false, 0, 0, 0},
    {"emit", hd_decl_read_raw, offsetof(struct common, emit), false, 0, 0, 0},
    {"on_error", hd_decl_read_raw, offsetof(struct common, on_error), false, 0, 0, 0},
    {"destinations", hd_decl_read_raw, offsetof(struct common, destinations), false, 0, 0, 0},
};

const struct hd_fields hd_node_common = HD_FIELDS(common_fields, NULL);

int hd_decl_node_fields(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *list, size_t count, void *out)
{
    const struct hd_fields fields = {list, count, &hd_node_common};

    return hd_decl_fields(decl, at, &fields, out);
}

/* A list names the channels that the node reads. The subgraph kind reads any other form itself. */
static int read_input(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    static const struct hd_field field = {.name = "input"};
    struct hd_indexes reads = {0};
    int err;

    if (!hd_raw(at) || (node->kind == &hd_node_subgraph && !hd_json_is_array(at->val)))
        return 0;
    err = hd_decl_read_channels(decl, at, &field, &reads);
    node->reads = reads.list;
    node->read_count = reads.count;
    return err;
}

static int read_metadata(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;
    int err;

    if (!hd_raw(at))
        return 0;
    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object");
    err = hd_val_from_json(at->val, &val, &fault);
    if (err == HD_EINVAL)
        return hd_decl_fail(decl, at, "%s", fault.text);
    if (err == 0)
        err = hd_decl_memory_keep(decl->hold, val);
    if (err == 0)
        node->metadata = val;
    return err;
}

struct retry_spec {
    int64_t attempts, delay_ms, max_delay_ms;
    double backoff;
    struct hd_slices on;
};

static int read_backoff(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    double value;

    (void)field;
    if (!hd_json_is_number(at->val))
        return hd_decl_fail_type(decl, at, "a number");
    if (!hd_json_double(at->val, &value) || !(value >= 1 && value <= 100))
        return hd_decl_fail(decl, at, "must be from 1 to 100");
    *(double *)out = value;
    return 0;
}

static const struct hd_field retry_fields[] = {
    {"attempts", hd_decl_read_int, offsetof(struct retry_spec, attempts), true, 1, 100, 0},
    {"delay_ms", hd_decl_read_int, offsetof(struct retry_spec, delay_ms), false, 0,
     HD_GRAPH_MAX_WAIT_MS, 0},
    {"max_delay_ms", hd_decl_read_int, offsetof(struct retry_spec, max_delay_ms), false, 0,
     HD_GRAPH_MAX_WAIT_MS, 0},
    {"backoff", read_backoff, offsetof(struct retry_spec, backoff), false, 0, 0, 0},
    {"on", hd_decl_read_names, offsetof(struct retry_spec, on), false, 0, 0, 0},
};

/* The defaults are those of LangGraph. */
static int read_retry(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    static const struct hd_fields fields = HD_FIELDS(retry_fields, NULL);
    struct retry_spec spec = {.attempts = 1, .delay_ms = 500, .max_delay_ms = 128000, .backoff = 2};
    int err = hd_raw(at) ? hd_decl_fields(decl, at, &fields, &spec) : 0;

    node->retry = (struct hd_retry){
        .attempts = (int)spec.attempts,
        .delay_ms = spec.delay_ms,
        .max_delay_ms = spec.max_delay_ms,
        .backoff = spec.backoff,
        .on = spec.on.list,
        .on_count = spec.on.count,
    };
    return err;
}

static int read_emit(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    static const struct hd_field field = {.name = "emit"};
    struct hd_exprs exprs = {0};
    int err = hd_raw(at) ? hd_decl_read_exprs(decl, at, &field, &exprs) : 0;

    node->emit = exprs.list;
    node->emit_count = exprs.count;
    return err;
}

static int read_on_error(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    static const struct hd_field field = {.name = "on_error", .places = HD_PLACE(ERROR)};

    return hd_raw(at) ? hd_decl_read_update(decl, at, &field, &node->on_error) : 0;
}

/* ---- declared destinations -------------------------------------------- */

static int add_destination(struct hd_decl *decl, const struct hd_decl_at *at, hd_json_val name,
                           struct hd_slice label)
{
    struct hd_slice copy = {0};
    size_t node = 0;
    int err;

    if (name && !hd_json_is_string(name))
        return hd_decl_fail_type(decl, at, "the name of a node");
    err = hd_decl_find_node(decl, at, name ? hd_json_string(name) : at->key, true, &node);
    if (err == 0)
        err = hd_decl_copy(decl, label, &copy);
    return err == 0 ? hd_decl_add_exit(decl, node, false, copy) : err;
}

/* The possible targets of a `goto` that depends on the state: a list, or an object with labels. */
static int read_destinations(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 0;
    int err = 0;

    if (!hd_raw(at))
        return 0;
    if (!decl->node->goes_anywhere)
        return hd_decl_fail(decl, at,
                            "only a node whose \"goto\" is an expression has destinations");
    if (hd_json_size(at->val) == 0)
        return hd_decl_fail(decl, at, "must be a list of nodes, or an object of nodes to labels");
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at inner = it.is_object ? hd_decl_at_key(at, it.key, it.val)
                                               : hd_decl_at_index(at, index++, it.val);

        if (it.is_object && !hd_json_is_string(it.val))
            return hd_decl_fail_type(decl, &inner, "a label");
        err = add_destination(decl, &inner, it.is_object ? NULL : it.val,
                              it.is_object ? hd_json_string(it.val) : HD_S(""));
    }
    decl->node->goes_anywhere = false;
    return err;
}

/* ---- nodes ------------------------------------------------------------ */

static int set_common(struct hd_decl *decl, const struct common *common, struct hd_node *node)
{
    int err;

    node->kind = common->kind;
    node->is_deferred = common->is_deferred;
    node->tags = common->tags.list;
    node->tag_count = common->tags.count;
    node->args = common->args.list;
    node->arg_count = common->args.count;
    node->timeout_ms = common->timeout_ms;
    if (node->is_deferred)
        decl->draft->channels[node->triggers[0]].reducer = HD_REDUCE_TRIGGER_AFTER;
    err = read_input(decl, &common->input, node);
    if (err == 0)
        err = read_metadata(decl, &common->metadata, node);
    if (err == 0)
        err = read_retry(decl, &common->retry, node);
    if (err == 0)
        err = read_emit(decl, &common->emit, node);
    if (err == 0)
        err = read_on_error(decl, &common->on_error, node);
    return err;
}

/* Reads the common members first: the meaning of the others depends on them. */
static int read_common(struct hd_decl *decl, const struct hd_decl_at *at, struct common *common)
{
    int err = 0;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object");
    for (size_t i = 0; i < HD_COUNT(common_fields) && err == 0; i++) {
        const struct hd_field *field = &common_fields[i];
        struct hd_slice name = hd_slice_cstr(field->name);
        struct hd_decl_at member = hd_decl_at_key(at, name, hd_json_get(at->val, name));

        if (hd_raw(&member))
            err = field->read(decl, &member, field, (char *)common + field->offset);
        else if (field->is_required)
            err = hd_decl_fail(decl, at, "needs a member \"%s\"", field->name);
    }
    return err;
}

static int read_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct common common = {0};
    int err;

    decl->node = node;
    err = read_common(decl, at, &common);
    if (err == 0)
        err = set_common(decl, &common, node);
    if (err == 0)
        err = node->kind->read(decl, at, node);
    if (err == 0)
        err = read_destinations(decl, &common.destinations);
    decl->node = NULL;
    return err;
}

int hd_decl_read_nodes(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 1;
    int err = 0;

    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = read_node(decl, &member, &decl->draft->nodes[index++]);
    }
    return err;
}
