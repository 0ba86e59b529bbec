/* The checkpoints that messages came from, for all ways to store a list and any cached results. */
#include "api/state/message_path.h"

#include <string.h>

#include "api/state/message_path_memory.h"
#include "base/buf.h"
#include "tests/unit/app_world.h"
#include "tests/unit/messages_help.h"

#define CHAT                                                                  \
    "{\"name\":\"chat\",\"state\":{\"messages\":{\"reducer\":\"messages\"}}," \
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{}}},"                     \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"__end__\"]]}"
#define ROOT "assistant:a"
#define MANY 40
#define SPACES \
    "                                                                 " /* longer than a literal */

struct chat {
    struct app_world *w;
    struct hd_api *api;
    struct hd_app_graph graph;
    struct hd_call call;
    char ids[MANY + 1]
            [CHECKPOINT_ID_SIZE]; /* of checkpoints; checkpoint number n has messages 0 to n / 2 */
    size_t count;
};

static void chat_init(struct chat *chat)
{
    struct hd_graph_error error;

    memset(chat, 0, sizeof(*chat));
    chat->w = world_open("memory:", NULL);
    chat->graph.id = HD_S("chat");
    if (hd_graph_read(HD_S(CHAT), &chat->graph.graph, &error))
        fail_msg("%s: %s", error.path, error.text);
    assert_err(hd_api_create(&chat->w->app, &chat->api, &chat->w->fault), 0);
    chat->call = (struct hd_call){.app = &chat->w->app, .api = chat->api, .arena = &chat->w->arena};
}

static void chat_fini(struct chat *chat)
{
    hd_api_destroy(chat->api);
    hd_graph_destroy(chat->graph.graph);
    world_close(chat->w);
}

/* Puts a checkpoint with the first `messages`, each of `size` bytes, with `gap` between them. */
static void put(struct chat *chat, size_t messages, int size, const char *gap)
{
    struct hd_buf text;

    hd_buf_init(&text, 1u << 24);
    for (size_t i = 0; i < messages; i++)
        assert_err(hd_buf_printf(&text,
                                 "%s{\"$\":\"message\",\"type\":\"human\",\"content\":\"%0*d\","
                                 "\"id\":\"m%zu\"}",
                                 i == 0 ? "[" : gap, size, 0, i),
                   0);
    assert_err(hd_buf_append_slice(&text, messages == 0 ? HD_S("[]") : HD_S("]")), 0);
    put_messages(chat->w->app.store, ROOT, chat->count, "hd1",
                 (struct heddle_bytes){text.ptr, text.len}, chat->ids[chat->count]);
    hd_buf_fini(&text);
    chat->count++;
}

/* Every second checkpoint adds a message. */
static void go_on(struct chat *chat, size_t count, int size, const char *gap)
{
    while (chat->count < count)
        put(chat, chat->count / 2 + 1, size, gap);
}

/* ---- locating --------------------------------------------------------- */

struct locating {
    struct chat *chat;
    const char *first[MANY]; /* the origin of each message; NULL: not found */
};

static int locate_all(struct chat *chat, struct hd_message_path *path, struct hd_json *json,
                      struct locating *out)
{
    struct hd_message_path_entry entries[MANY];
    struct hd_json_iter it;
    size_t count = 0;
    int err = hd_checkpoint_index_messages(&chat->call, &path->target,
                                           path->points[path->length - 1]->id, json);

    it = hd_json_iter(hd_json_get(hd_json_root(json), HD_S("messages")));
    for (; !err && hd_json_next(&it); count++)
        entries[count] =
            (struct hd_message_path_entry){.path = path, .message = it.val, .position = count};
    if (!err)
        err = hd_message_path_locate(&chat->call, entries, count);
    for (size_t i = 0; !err && i < count; i++) {
        for (size_t j = 0; j < chat->count; j++) {
            if (hd_slice_eq(entries[i].point->id, hd_slice_cstr(chat->ids[j])))
                out->first[entries[i].position] = chat->ids[j];
        }
    }
    return err;
}

static int locate(void *arg)
{
    struct locating *out = arg;
    struct chat *chat = out->chat;
    const struct hd_slice ns = HD_S(ROOT);
    struct hd_message_path path = {
        .target = {.thread = {.id = HD_S("t")}, .root = ns, .graph = &chat->graph}};
    struct hd_json json = {NULL};
    struct hd_checkpoint_index points;
    int err = hd_checkpoint_index_read(&chat->call, HD_S("t"), &ns, &points);

    memset(out->first, 0, sizeof(out->first));
    if (!err)
        err = hd_message_path_find(&points,
                                   hd_checkpoint_index_find(&points, ns, hd_slice(NULL, 0)), &path);
    if (!err)
        err = locate_all(chat, &path, &json, out);
    hd_json_fini(&json);
    hd_checkpoint_index_fini(&points);
    return err;
}

static void check_firsts(const struct locating *found)
{
    for (size_t i = 0; i < MANY; i++) {
        if (2 * i < found->chat->count)
            assert_string_equal(found->first[i], found->chat->ids[2 * i]);
        else
            assert_null(found->first[i]);
    }
}

/* Uses so many other places that this one is evicted. */
static void forget(struct chat *chat)
{
    struct hd_message_path_memory *memory = hd_api_message_path_memory(chat->api);
    char name[16];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", i);
        (void)hd_message_path_memory_enter(
            memory, &(struct hd_message_path_place){HD_S("p"), hd_slice_cstr(name), HD_S("")});
        hd_message_path_memory_leave(memory);
    }
}

/* Short messages share chunks, long ones have separate chunks. With a space between messages
 * hd_state_delta() reports states as unknown. */
static const struct {
    int size;
    const char *gap;
} kinds[] = {{1, ","}, {500, ","}, {1, ", "}, {500, ", "}, {500, "," SPACES}};

static void each_is_found_where_it_came(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(kinds); i++) {
        struct chat chat;
        struct locating found = {.chat = &chat};

        chat_init(&chat);
        for (size_t count = 1; count <= MANY; count += 13) {
            go_on(&chat, count, kinds[i].size, kinds[i].gap);
            for (int again = 0; again < 2; again++) {
                assert_err(locate(&found), 0);
                check_firsts(&found);
            }
            if (count > 20)
                forget(&chat);
        }
        assert_err(locate(&found), 0);
        check_firsts(&found);
        chat_fini(&chat);
    }
}

/* Some states are reported, others have to be read. */
static void both_ways_together(void **state)
{
    struct chat chat;
    struct locating found = {.chat = &chat};

    (void)state;
    chat_init(&chat);
    for (size_t i = 0; i < MANY; i++)
        go_on(&chat, i + 1, 500, i % 7 == 2 || i == 8 ? ", " : ",");
    assert_err(locate(&found), 0);
    check_firsts(&found);
    chat_fini(&chat);
}

/* Failing to cache a result is no error. */
static void memory_may_be_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(kinds); i++) {
        struct chat chat;
        struct locating found = {.chat = &chat};
        long asked = 0, failures = 0;

        chat_init(&chat);
        go_on(&chat, 9, kinds[i].size, kinds[i].gap);
        for (long n = 1; n == 1 || asked >= n - 1; n++) {
            int err;

            forget(&chat);
            (void)hd_alloc_fail_at(n, n % 2 == 0);
            err = locate(&found);
            asked = hd_alloc_fail_at(0, 0);
            if (!err)
                check_firsts(&found);
            else
                assert_err(err, HD_ENOMEM);
            failures += err != 0;
            chat.call.fault = (struct heddle_error){0};
        }
        assert_true(failures > 20);
        chat_fini(&chat);
    }
}

/* A point without its version would be read as one whose messages may have changed. */
static void points_are_whole_or_not_there(void **state)
{
    const struct hd_slice ns = HD_S(ROOT);
    struct chat chat;
    long asked = 0;

    (void)state;
    chat_init(&chat);
    go_on(&chat, 3, 1, ",");
    for (long n = 1; n == 1 || asked >= n - 1; n++) {
        struct hd_checkpoint_index points;
        int err;

        (void)hd_alloc_fail_at(n, 0);
        err = hd_checkpoint_index_read(&chat.call, HD_S("t"), &ns, &points);
        asked = hd_alloc_fail_at(0, 0);
        if (err)
            assert_err(err, HD_ENOMEM);
        else
            assert_int_equal(points.count, 3);
        for (size_t i = 0; !err && i < points.count; i++)
            assert_int_equal(points.list[i].messages_version.len, 1);
        hd_checkpoint_index_fini(&points);
        chat.call.fault = (struct heddle_error){0};
    }
    chat_fini(&chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_where_it_came),
        cmocka_unit_test(both_ways_together),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(points_are_whole_or_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
