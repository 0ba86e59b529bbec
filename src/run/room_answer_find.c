#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "graph/engine/failure.h"
#include "graph/state/state.h"
#include "room/room_input.h"
#include "run/room_answer_internal.h"

#define MAX_VALUES ((size_t)1 << 30)
#define MAX_MESSAGES ((size_t)1 << 24)

/* ---- states ----------------------------------------------------------- */

int hd_room_answer_messages(struct hd_app *app, const struct hd_room_said_place *place,
                            struct hd_slice id, struct hd_json *json, hd_json_val *out,
                            struct heddle_error *fault)
{
    const struct hd_address at = {.store = app->store,
                                  .graph = hd_app_shape(hd_app_graph(app, place->graph_id)),
                                  .principal = place->principal,
                                  .thread = place->thread_id,
                                  .root = place->ns,
                                  .checkpoint_id = id,
                                  .as_text = true,
                                  .only = HD_S("messages")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf buf;
    hd_json_val list;
    int err;

    hd_buf_init(&buf, MAX_VALUES);
    err = hd_state_values(&at, &buf, &failure);
    if (err)
        hd_error_set(fault, err, "%s", failure.text ? failure.text : hd_error_text(err));
    if (!err)
        err = hd_json_parse(json, hd_buf_slice(&buf), fault);
    list = hd_json_get(hd_json_root(json), HD_S("messages"));
    *out = hd_json_is_array(list) ? list : NULL;
    hd_failure_fini(&failure);
    hd_buf_fini(&buf);
    return err;
}

/* ---- one message ------------------------------------------------------ */

static struct hd_slice id_of(hd_json_val message)
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
        if (id_of(it.val).len > 0)
            err = hd_map_put(&search->before, id_of(it.val), it.val);
    }
    return err;
}

/* A message in search->text that the state before has, with the same content. */
static int was_there(struct said_search *search, hd_json_val message, size_t position, bool *out)
{
    hd_json_val old = hd_map_get(&search->before, id_of(message));
    int err;

    *out = id_of(message).len == 0 && position < search->before_count;
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
        if (id_of(it.val).len > 0) {
            *out = hd_slice_eq(id_of(it.val), id_of(message));
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

/* Backwards: the last one counts. */
static int search_list(struct said_search *search, hd_json_val list, struct hd_arena *arena,
                       struct hd_room_said *out)
{
    size_t count = hd_json_size(list);
    hd_json_val *all = hd_arena_calloc(arena, count + 1, sizeof(hd_json_val));
    struct hd_json_iter it = hd_json_iter(list);
    bool is_found = false;
    int err = all ? 0 : HD_ENOMEM;

    for (size_t i = 0; all && hd_json_next(&it); i++)
        all[i] = it.val;
    while (!err && !is_found && count > 0) {
        hd_json_val message = all[--count];

        if (is_ai(message))
            err = is_own(search, message, count, &is_found);
        if (err || !is_found)
            continue;
        err = hd_room_content_said(hd_buf_slice(&search->text), arena, &out->content);
        if (!err)
            err = hd_arena_copy(arena, id_of(message), &out->source_id);
    }
    return err;
}

static int find_said(struct said_search *search, const struct hd_room_said_place *place,
                     hd_json_val before, hd_json_val after, struct hd_arena *arena,
                     struct hd_room_said *out, struct heddle_error *fault)
{
    struct hd_json kwargs = {NULL};
    int err = before ? index_before(search, before) : 0;

    if (!err && place->kwargs.len > 0)
        err = hd_json_parse(&kwargs, place->kwargs, fault);
    search->given =
        hd_json_get(hd_json_get(hd_json_root(&kwargs), HD_S("input")), HD_S("messages"));
    if (!err && after)
        err = search_list(search, after, arena, out);
    hd_json_fini(&kwargs);
    return err;
}

int hd_room_answer_find(struct hd_app *app, const struct hd_room_said_place *place,
                        struct hd_arena *arena, struct hd_room_said *out,
                        struct heddle_error *fault)
{
    struct hd_json before_json = {NULL}, after_json = {NULL};
    hd_json_val before = NULL, after = NULL;
    struct said_search search = {.given = NULL};
    int err = 0;

    *out = (struct hd_room_said){.content = {NULL, 0}};
    if (!hd_app_graph(app, place->graph_id) || place->after.len == 0)
        return 0;
    hd_map_init(&search.before, MAX_MESSAGES);
    hd_buf_init(&search.text, MAX_VALUES);
    hd_buf_init(&search.old_text, MAX_VALUES);
    if (place->before.len > 0)
        err = hd_room_answer_messages(app, place, place->before, &before_json, &before, fault);
    if (!err)
        err = hd_room_answer_messages(app, place, place->after, &after_json, &after, fault);
    if (!err)
        err = find_said(&search, place, before, after, arena, out, fault);
    hd_buf_fini(&search.old_text);
    hd_buf_fini(&search.text);
    hd_map_fini(&search.before);
    hd_json_fini(&after_json);
    hd_json_fini(&before_json);
    return err;
}
