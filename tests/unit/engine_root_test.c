/* Graphs stored below a root namespace behave as without a root, and are isolated from each
 * other. */
#include "base/json.h"
#include "graph/engine/ns.h"
#include "tests/unit/engine_world.h"

#define ROOT "assistant:x"

static struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

static struct hd_slice slice(struct heddle_bytes bytes)
{
    return hd_slice(bytes.data, bytes.len);
}

/* ---- names ------------------------------------------------------------ */

static void names_are_joined_and_split(void **unused)
{
    static const struct {
        const char *root, *ns, *stored;
    } cases[] = {
        {"", "", ""},
        {"", "sub:1", "sub:1"},
        {"", "sub:1|deep:2", "sub:1|deep:2"},
        {ROOT, "", ROOT},
        {ROOT, "sub:1", ROOT "|sub:1"},
        {ROOT, "sub:1|deep:2", ROOT "|sub:1|deep:2"},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_slice root = hd_slice_cstr(cases[i].root), back;
        char *relative, *stored = hd_ns_join(root, hd_slice_cstr(cases[i].ns), &relative);

        assert_string_equal(stored, cases[i].stored);
        assert_string_equal(relative, cases[i].ns);
        assert_true(hd_ns_split(root, hd_slice_cstr(stored), &back));
        assert_true(hd_slice_eq(back, hd_slice_cstr(cases[i].ns)));
        hd_free(stored);
    }
}

static void namespaces_outside_the_root_are_not_split(void **unused)
{
    static const char *const stored[] = {"",      "assistant:",  "assistant:xy", (ROOT "|"),
                                         "sub:1", (ROOT ":sub"), ("sub:1|" ROOT)};
    struct hd_slice ns;

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(stored); i++)
        assert_false(hd_ns_split(HD_S(ROOT), hd_slice_cstr(stored[i]), &ns));
    assert_true(hd_ns_is_root(HD_S("")));
    assert_true(hd_ns_is_root(HD_S(ROOT)));
    assert_false(hd_ns_is_root(HD_S(ROOT "|sub:1")));
}

static void parents_show_the_subgraphs_of_the_empty_root(void **unused)
{
    static const struct {
        const char *stored, *parents;
        bool is_below;
    } cases[] = {{"", "{}", false},
                 {"", "{\"\":\"1\"}", false},
                 {"a:1", "{}", false},
                 {"a:1", "null", false},
                 {"a:1", "{\"\":\"1\"}", true},
                 {"a:1|b:2", "{\"\":\"1\"}", false}, /* the root is a:1 */
                 {"a:1|b:2", "{\"\":\"1\",\"a:1\":\"2\"}", true}};

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = {NULL};

        assert_int_equal(hd_json_parse(&json, hd_slice_cstr(cases[i].parents), NULL), 0);
        assert_int_equal(hd_ns_is_below_empty(hd_slice_cstr(cases[i].stored), hd_json_root(&json)),
                         cases[i].is_below);
        hd_json_fini(&json);
    }
    assert_false(hd_ns_is_below_empty(HD_S("a:1"), NULL));
}

static void a_root_cannot_be_below_another(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_address at = {.graph = graph, .thread = HD_S("t"), .root = HD_S(ROOT "|sub")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    w.root = ROOT "|sub";
    at.store = w.store;
    assert_int_equal(start(&w, graph, NULL, NULL), HD_EINVAL);
    assert_int_equal(hd_state_get(&at, false, &state, &failure), HD_EINVAL);
    assert_string_equal(failure.type, "ValueError");
    hd_failure_fini(&failure);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* ---- the same thread without the root --------------------------------- */

static void copy_checkpoint(struct world *w, const struct heddle_tuple *tuple, const char *thread,
                            struct hd_slice ns)
{
    struct heddle_checkpoint put = {.thread = {.id = bytes(thread)},
                                    .ns = {ns.ptr, ns.len},
                                    .id = tuple->id,
                                    .parent = tuple->parent,
                                    .checkpoint = tuple->checkpoint,
                                    .metadata = tuple->metadata,
                                    .values = tuple->values,
                                    .value_count = tuple->value_count};
    struct hd_json json;
    struct hd_buf versions;

    hd_buf_init(&versions, 100000);
    assert_int_equal(hd_json_parse(&json, slice(tuple->checkpoint), NULL), 0);
    assert_int_equal(
        hd_json_write_val(&versions, hd_json_get(hd_json_root(&json), HD_S("channel_versions"))),
        0);
    put.new_versions = (struct heddle_bytes){versions.ptr, versions.len};
    assert_int_equal(heddle_put(w->store, &put, NULL), 0);
    hd_json_fini(&json);
    hd_buf_fini(&versions);
    for (size_t i = 0; i < tuple->write_count;) {
        struct heddle_value values[16];
        struct heddle_writes writes = {.thread = put.thread,
                                       .ns = put.ns,
                                       .checkpoint_id = tuple->id,
                                       .task_id = tuple->writes[i].task_id,
                                       .task_path = tuple->writes[i].task_path,
                                       .values = values};

        for (; i < tuple->write_count && writes.value_count < HD_COUNT(values) &&
               hd_slice_eq(slice(tuple->writes[i].task_id), slice(writes.task_id));
             i++)
            values[writes.value_count++] = tuple->writes[i].value;
        assert_int_equal(heddle_put_writes(w->store, &writes, NULL), 0);
    }
}

/* Copies thread "t" to another one without the root; all its namespaces must be below the root. */
static size_t copy_without_root(struct world *w, const char *thread)
{
    struct heddle_bytes from = bytes("t");
    struct heddle_query query = {.thread = &from, .limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    size_t count = 0;

    assert_int_equal(heddle_list_open(w->store, &query, &list, NULL), 0);
    while (heddle_list_next(list, &tuple, NULL) == 0) {
        struct hd_slice ns;

        assert_true(hd_ns_split(HD_S(ROOT), slice(tuple->ns), &ns));
        copy_checkpoint(w, tuple, thread, ns);
        count++;
    }
    heddle_list_close(list);
    return count;
}

/* The state as text, without the thread's name. */
static char *text_of(const struct hd_val *state, const char *thread)
{
    struct hd_buf text;
    char quoted[64], *at;

    hd_buf_init(&text, 1000000);
    assert_int_equal(hd_val_write(&text, state), 0);
    assert_int_equal(hd_buf_append_byte(&text, 0), 0);
    snprintf(quoted, sizeof(quoted), "\"thread_id\":\"%s\"", thread);
    while ((at = strstr(text.ptr, quoted)))
        memset(at, ' ', strlen(quoted));
    return hd_buf_take(&text, NULL);
}

static int add_state(void *ctx, const struct hd_val *state)
{
    struct hd_val **all = ctx;

    *all = hd_val_append(*all, hd_val_ref(state));
    return *all ? 0 : HD_ENOMEM;
}

static struct hd_val *history_of(struct world *w, const struct hd_graph *graph, const char *ns)
{
    struct hd_address at = {.store = w->store,
                            .graph = graph,
                            .thread = slice_or(w->thread, "t"),
                            .root = slice_or(w->root, ""),
                            .ns = hd_slice_cstr(ns)};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *all = hd_val_list();

    assert_int_equal(hd_state_history(&at, -1, HD_S(""), HD_S(""), add_state, &all, &failure), 0);
    return all;
}

static void assert_same(const struct hd_val *rooted, const struct hd_val *plain)
{
    char *a = text_of(rooted, "t"), *b = text_of(plain, "u");

    assert_string_equal(a, b);
    hd_free(a);
    hd_free(b);
}

/* States, histories, tasks and interrupts of thread t with the root equal those of u without. */
static void compare(struct world *w, const struct hd_graph *graph)
{
    struct hd_val *rooted, *plain;
    const struct hd_val *task;
    char ns[128] = "";

    w->thread = "t", w->root = ROOT;
    rooted = state_of(w, graph);
    w->thread = "u", w->root = NULL;
    plain = state_of(w, graph);
    assert_same(rooted, plain);
    task = hd_val_at(hd_val_get(plain, HD_S("tasks")), 0);
    if (task)
        snprintf(ns, sizeof(ns), "sub:%s", hd_val_get_string(hd_val_get(task, HD_S("id"))).ptr);
    hd_val_unref(rooted);
    hd_val_unref(plain);
    for (int inner = 0; inner < 1 + (ns[0] != '\0'); inner++) {
        w->thread = "t", w->root = ROOT;
        rooted = history_of(w, graph, inner ? ns : "");
        w->thread = "u", w->root = NULL;
        plain = history_of(w, graph, inner ? ns : "");
        assert_true(hd_val_count(rooted) > 1);
        assert_same(rooted, plain);
        hd_val_unref(rooted);
        hd_val_unref(plain);
    }
}

static void a_root_changes_nothing_but_the_place(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct world w;

    (void)unused;
    for (int direct = 0; direct < 2; direct++) {
        open_world(&w, direct);
        w.root = ROOT;
        run(&w, graph, "{\"log\":[\"in\"]}", NULL);
        assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
        assert_int_equal(copy_without_root(&w, "u"), 5);
        compare(&w, graph);
        /* Both threads resume, with the root and without it. */
        for (int plain = 0; plain < 2; plain++) {
            struct hd_val *state;

            w.thread = plain ? "u" : "t", w.root = plain ? NULL : ROOT;
            run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":\"yes\"}");
            assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
            state = state_of(&w, graph);
            assert_member(state, "values", "{\"log\":[\"in\",\"yes\"]}");
            hd_val_unref(state);
        }
        close_world(&w);
    }
    hd_graph_destroy(graph);
}

/* ---- several roots on a thread ---------------------------------------- */

static void roots_do_not_see_each_other(void **unused)
{
    static const char *const roots[] = {NULL, "assistant:x", "assistant:y", "sub"};
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_val *state;
    struct world w;
    char text[64];

    (void)unused;
    open_world(&w, true);
    for (size_t i = 0; i < HD_COUNT(roots); i++) {
        w.root = roots[i];
        state = state_of(&w, graph);
        assert_member(state, "values", "{}");
        hd_val_unref(state);
        snprintf(text, sizeof(text), "{\"log\":[\"in %zu\"]}", i);
        run(&w, graph, text, NULL);
        assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
    }
    for (size_t i = 0; i < HD_COUNT(roots); i++) {
        struct hd_val *history;

        w.root = roots[i];
        state = state_of(&w, graph);
        snprintf(text, sizeof(text), "{\"log\":[\"in %zu\"]}", i);
        assert_member(state, "values", text);
        assert_int_equal(hd_val_count(hd_val_get(state, HD_S("interrupts"))), 1);
        hd_val_unref(state);
        history = history_of(&w, graph, "");
        assert_int_equal(hd_val_count(history), 2);
        hd_val_unref(history);
    }
    /* A resume value reaches one root only. */
    w.root = roots[1];
    run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":\"yes\"}");
    w.root = roots[2];
    state = state_of(&w, graph);
    assert_int_equal(hd_val_count(hd_val_get(state, HD_S("interrupts"))), 1);
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void an_update_stays_below_its_root(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_val *values = json("{\"log\":[\"new\"]}"), *config, *state;
    struct hd_update update = {.values = values, .as_node = HD_S("b")};
    struct hd_superstep step = {&update, 1};
    struct hd_failure failure = {NULL, NULL};
    struct hd_address at = {.graph = graph, .thread = HD_S("t"), .root = HD_S(ROOT)};
    struct world w;

    (void)unused;
    open_world(&w, true);
    at.store = w.store;
    w.root = ROOT;
    run(&w, graph, "{\"log\":[]}", NULL);
    assert_int_equal(hd_state_update(&at, &step, 1, NULL, &config, &failure), 0);
    assert_member(config, "checkpoint_ns", "\"\"");
    hd_val_unref(config);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"a\",\"b\",\"new\"]}");
    hd_val_unref(state);
    w.root = NULL;
    state = state_of(&w, graph);
    assert_member(state, "values", "{}");
    hd_val_unref(state);
    hd_val_unref(values);
    close_world(&w);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_joined_and_split),
        cmocka_unit_test(namespaces_outside_the_root_are_not_split),
        cmocka_unit_test(parents_show_the_subgraphs_of_the_empty_root),
        cmocka_unit_test(a_root_cannot_be_below_another),
        cmocka_unit_test(a_root_changes_nothing_but_the_place),
        cmocka_unit_test(roots_do_not_see_each_other),
        cmocka_unit_test(an_update_stays_below_its_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
