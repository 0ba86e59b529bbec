#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "room/room_input.h"
#include "run/room/room_answer_internal.h"

#define MAX_VALUES ((size_t)1 << 30)
#define MAX_MESSAGES ((size_t)1 << 24)

/* ---- states ----------------------------------------------------------- */

static struct hd_address address_of(struct hd_app *app, const struct hd_room_said_place *place)
{
    return (struct hd_address){.store = app->store,
                               .graph = hd_app_shape(hd_app_graph(app, place->graph_id)),
                               .principal = place->principal,
                               .thread = place->thread_id,
                               .root = place->ns,
                               .as_text = true,
                               .only = HD_S("messages")};
}

static int set_state_fault(int err, const struct hd_failure *failure, struct heddle_error *fault)
{
    return hd_error_set(fault, err, "%s", failure->text ? failure->text : hd_error_text(err));
}

int hd_room_answer_messages(struct hd_app *app, const struct hd_room_said_place *place,
                            struct hd_slice id, struct hd_json *json, hd_json_val *out,
                            struct heddle_error *fault)
{
    struct hd_address at = address_of(app, place);
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf buf;
    hd_json_val list;
    int err;

    at.checkpoint_id = id;
    hd_buf_init(&buf, MAX_VALUES);
    err = hd_state_values(&at, &buf, &failure);
    if (err)
        err = set_state_fault(err, &failure, fault);
    if (!err)
        err = hd_json_parse(json, hd_buf_slice(&buf), fault);
    list = hd_json_get(hd_json_root(json), HD_S("messages"));
    *out = hd_json_is_array(list) ? list : NULL;
    hd_failure_fini(&failure);
    hd_buf_fini(&buf);
    return err;
}

/* ---- one message ------------------------------------------------------ */

static struct hd_slice message_id_of(hd_json_val message)
{
    return hd_json_string(hd_json_get(message, HD_S("id")));
}

static bool is_ai(hd_json_val message)
{
    return hd_slice_eq(hd_json_string(hd_json_get(message, HD_S("type"))), HD_S("ai"));
}

static int write_content(hd_json_val message, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_val(&jw, hd_json_get(message, HD_S("content")));
    return hd_jw_finish(&jw);
}

/* ---- the search ------------------------------------------------------- */

struct said_search {
    struct hd_map before;   /* message ids to messages */
    size_t before_count;    /* of messages, also those without an id */
    hd_json_val given;      /* the messages of the run's input; or NULL */
    struct hd_buf text;     /* the content of a message */
    struct hd_buf old_text; /* of the same message before */
};

static int index_before(struct said_search *search, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    search->before_count = hd_json_size(list);
    while (!err && hd_json_next(&it)) {
        if (message_id_of(it.val).len > 0)
            err = hd_map_put(&search->before, message_id_of(it.val), it.val);
    }
    return err;
}

/* A message in search->text that the state before has, with the same content. */
static int was_there(struct said_search *search, hd_json_val message, size_t position, bool *out)
{
    hd_json_val old = hd_map_get(&search->before, message_id_of(message));
    int err;

    *out = message_id_of(message).len == 0 && position < search->before_count;
    if (!old)
        return 0;
    err = write_content(old, &search->old_text);
    *out = hd_slice_eq(hd_buf_slice(&search->text), hd_buf_slice(&search->old_text));
    return err;
}

/* A message in search->text that arrived in the input; in a state it may have got an id. */
static int was_given(struct said_search *search, hd_json_val message, bool *out)
{
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(search->given) ? search->given : NULL);
    int err = 0;

    *out = false;
    while (!err && !*out && hd_json_next(&it)) {
        if (message_id_of(it.val).len > 0) {
            *out = hd_slice_eq(message_id_of(it.val), message_id_of(message));
            continue;
        }
        if (!hd_json_get(it.val, HD_S("content")))
            continue;
        err = write_content(it.val, &search->old_text);
        *out = hd_slice_eq(hd_buf_slice(&search->text), hd_buf_slice(&search->old_text));
    }
    return err;
}

/* Sets *out to whether the run has said this message. */
static int is_own(struct said_search *search, hd_json_val message, size_t position, bool *out)
{
    bool is_old = false, is_given = false;
    int err = write_content(message, &search->text);

    *out = false;
    if (err || !hd_room_content_is_said(hd_buf_slice(&search->text)))
        return err;
    err = was_there(search, message, position, &is_old);
    if (!err && !is_old)
        err = was_given(search, message, &is_given);
    *out = !err && !is_old && !is_given;
    return err;
}

/* Backwards to the message at `first`: the last one counts. */
static int search_list(struct said_search *search, hd_json_val list, size_t first,
                       struct hd_arena *arena, struct hd_room_said *out)
{
    size_t count = hd_json_size(list);
    hd_json_val *all = hd_arena_calloc(arena, count + 1, sizeof(hd_json_val));
    struct hd_json_iter it = hd_json_iter(list);
    bool is_found = false;
    int err = all ? 0 : HD_ENOMEM;

    for (size_t i = 0; all && hd_json_next(&it); i++)
        all[i] = it.val;
    while (!err && !is_found && count > first) {
        hd_json_val message = all[--count];

        if (is_ai(message))
            err = is_own(search, message, count, &is_found);
        if (err || !is_found)
            continue;
        err = hd_room_content_said(hd_buf_slice(&search->text), arena, &out->content);
        if (!err)
            err = hd_arena_copy(arena, message_id_of(message), &out->source_id);
    }
    return err;
}

/* ---- among the added messages ----------------------------------------- */

struct said_added {
    struct said_search *search;
    struct hd_slice trigger;
    struct hd_arena *arena;
    struct hd_room_said *out;
    bool has_trigger; /* so all messages behind it are new */
};

static int on_added_messages(void *ctx, size_t which, hd_json_val list)
{
    struct said_added *added = ctx;
    struct hd_json_iter it = hd_json_iter(list);
    size_t first = 0;

    (void)which;
    while (list && !added->has_trigger && hd_json_next(&it)) {
        added->has_trigger = hd_slice_eq(message_id_of(it.val), added->trigger);
        first++;
    }
    return added->has_trigger ? search_list(added->search, list, first, added->arena, added->out)
                              : 0;
}

/* Without reading the whole conversation. *is_known: the result is certain. */
static int find_in_added(struct hd_app *app, struct said_search *search,
                         const struct hd_room_said_place *place, struct hd_arena *arena,
                         struct hd_room_said *out, bool *is_known, struct heddle_error *fault)
{
    const struct hd_address at = address_of(app, place);
    const struct hd_slice ids[] = {place->before, place->after};
    const struct hd_state_walk walk = {.ids = ids, .count = HD_COUNT(ids), .known = 1};
    struct said_added added = {
        .search = search, .trigger = place->trigger, .arena = arena, .out = out};
    struct hd_failure failure = {NULL, NULL};
    int err = 0;

    *is_known = false;
    if (place->trigger.len == 0 || place->before.len == 0)
        return 0;
    err = hd_state_delta(&at, &walk, on_added_messages, &added, &failure);
    if (err)
        err = set_state_fault(err, &failure, fault);
    hd_failure_fini(&failure);
    *is_known = added.has_trigger;
    return err;
}

/* ---- in the states before and after ----------------------------------- */

static int find_in_states(struct hd_app *app, struct said_search *search,
                          const struct hd_room_said_place *place, struct hd_arena *arena,
                          struct hd_room_said *out, struct heddle_error *fault)
{
    struct hd_json before_json = {NULL}, after_json = {NULL};
    hd_json_val before = NULL, after = NULL;
    int err = 0;

    if (place->before.len > 0)
        err = hd_room_answer_messages(app, place, place->before, &before_json, &before, fault);
    if (!err)
        err = hd_room_answer_messages(app, place, place->after, &after_json, &after, fault);
    if (!err && before)
        err = index_before(search, before);
    if (!err && after)
        err = search_list(search, after, 0, arena, out);
    hd_json_fini(&after_json);
    hd_json_fini(&before_json);
    return err;
}

static int find_said(struct hd_app *app, struct said_search *search,
                     const struct hd_room_said_place *place, struct hd_arena *arena,
                     struct hd_room_said *out, struct heddle_error *fault)
{
    bool is_known = false;
    int err = find_in_added(app, search, place, arena, out, &is_known, fault);

    return err || is_known ? err : find_in_states(app, search, place, arena, out, fault);
}

int hd_room_answer_find(struct hd_app *app, const struct hd_room_said_place *place,
                        struct hd_arena *arena, struct hd_room_said *out,
                        struct heddle_error *fault)
{
    struct hd_json kwargs = {NULL};
    struct said_search search = {.given = NULL};
    int err = 0;

    *out = (struct hd_room_said){.content = {NULL, 0}};
    if (!hd_app_graph(app, place->graph_id) || place->after.len == 0)
        return 0;
    hd_map_init(&search.before, MAX_MESSAGES);
    hd_buf_init(&search.text, MAX_VALUES);
    hd_buf_init(&search.old_text, MAX_VALUES);
    if (place->kwargs.len > 0)
        err = hd_json_parse(&kwargs, place->kwargs, fault);
    search.given = hd_json_get(hd_json_get(hd_json_root(&kwargs), HD_S("input")), HD_S("messages"));
    if (!err)
        err = find_said(app, &search, place, arena, out, fault);
    hd_json_fini(&kwargs);
    hd_buf_fini(&search.old_text);
    hd_buf_fini(&search.text);
    hd_map_fini(&search.before);
    return err;
}
