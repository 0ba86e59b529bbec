/*
 * The elements that checkpoints added to a list: after any operation an element is reported first
 * where it first occurred, and reporting costs only the new elements.
 */
#include "store/list_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "store/batch.h"
#include "store/rows.h"
#include "tests/unit/check.h"
#include "tests/unit/messages_help.h"

#define TASK "00000000-0000-0000-0000-000000000000"
#define STEPS 120
#define HUGE 1300000 /* more than a chunk may have */
#define ELEMENTS 400 /* more elements than any test makes */
#define NEVER SIZE_MAX

/* ---- a thread --------------------------------------------------------- */

struct line {
    struct heddle *store;
    char path[256];
    unsigned seed;
    int made;            /* elements */
    int list[ELEMENTS];  /* indices of the list's current elements */
    int sizes[ELEMENTS]; /* of all made elements */
    size_t count, puts;
    char names[STEPS * 8][CHECKPOINT_ID_SIZE]; /* of the checkpoints */
    struct hd_slice ids[STEPS * 8];
    size_t firsts[ELEMENTS]; /* the first checkpoint with the element */
};

/* `url` NULL: a separate SQLite file. */
static struct line *line_create(const char *url, unsigned seed)
{
    const char *tmp = getenv("TMPDIR");
    struct line *line = calloc(1, sizeof(*line));
    char own[320];

    assert_non_null(line);
    line->seed = seed * 2654435761u + 1;
    snprintf(line->path, sizeof(line->path), "%s/trail-%d-%u.db", tmp ? tmp : "/tmp", (int)getpid(),
             seed);
    snprintf(own, sizeof(own), "sqlite:%s?durability=relaxed", line->path);
    assert_err(heddle_open(&line->store, url ? url : own, NULL), 0);
    for (size_t i = 0; i < ELEMENTS; i++)
        line->firsts[i] = NEVER;
    return line;
}

static void line_destroy(struct line *line)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[300];

    heddle_close(line->store);
    for (size_t i = 0; i < HD_COUNT(suffixes); i++) {
        snprintf(path, sizeof(path), "%s%s", line->path, suffixes[i]);
        (void)remove(path);
    }
    free(line);
}

static unsigned any(struct line *line, unsigned below)
{
    line->seed = line->seed * 1664525u + 1013904223u;
    return (line->seed >> 8) % below;
}

/* The same content for the same size: values cut by content share their chunks. */
static void write_element(struct hd_buf *out, int which, int size)
{
    static char content[HUGE];

    if (!content[0]) {
        for (unsigned i = 0; i < sizeof(content); i++)
            content[i] = (char)('a' + i * 2654435761u % 26);
    }
    assert_err(
        hd_buf_append_slice(out, HD_S("{\"$\":\"message\",\"type\":\"human\",\"content\":\"")), 0);
    assert_err(hd_buf_append(out, content, (size_t)size), 0);
    assert_err(hd_buf_printf(out, "\",\"id\":\"%d\"}", which), 0);
}

static void put_value(struct line *line, const char *type, struct heddle_bytes data)
{
    char *name = line->names[line->puts];

    put_messages(line->store, "n", line->puts, type, data, name);
    line->ids[line->puts++] = hd_slice_cstr(name);
}

static void put_list(struct line *line)
{
    struct hd_buf text;

    hd_buf_init(&text, (size_t)1 << 30);
    for (size_t i = 0; i < line->count; i++) {
        int which = line->list[i];

        assert_err(hd_buf_append_byte(&text, i == 0 ? '[' : ','), 0);
        write_element(&text, which, line->sizes[which]);
        if (line->firsts[which] == NEVER)
            line->firsts[which] = line->puts;
    }
    if (line->count == 0)
        assert_err(hd_buf_append_byte(&text, '['), 0);
    assert_err(hd_buf_append_byte(&text, ']'), 0);
    put_value(line, "hd1", (struct heddle_bytes){text.ptr, text.len});
    hd_buf_fini(&text);
}

static void add(struct line *line, int size)
{
    line->sizes[line->made] = size;
    line->list[line->count++] = line->made++;
}

static void take_out(struct line *line, size_t at)
{
    memmove(&line->list[at], &line->list[at + 1], (--line->count - at) * sizeof(line->list[0]));
}

/* ---- reported elements ------------------------------------------------ */

struct told {
    const struct line *line;
    size_t firsts[ELEMENTS];
    size_t opaque[STEPS * 8];
    size_t opaque_count, size, calls, last;
};

static int on_news(void *arg, size_t which, const struct hd_slice *elements)
{
    struct told *told = arg;
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_buf list;

    assert_true(told->calls++ == 0 || which > told->last);
    told->last = which;
    if (!elements) {
        told->opaque[told->opaque_count++] = which;
        return 0;
    }
    told->size += elements->len;
    hd_buf_init(&list, (size_t)1 << 30);
    assert_err(hd_buf_append_byte(&list, '['), 0);
    assert_err(hd_buf_append_slice(&list, *elements), 0);
    assert_err(hd_buf_append_byte(&list, ']'), 0);
    assert_err(hd_json_parse(&json, hd_buf_slice(&list), NULL), 0);
    it = hd_json_iter(hd_json_root(&json));
    while (hd_json_next(&it)) {
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));
        long element = strtol(id.ptr, NULL, 10);

        assert_in_range(element, 0, ELEMENTS - 1);
        if (told->firsts[element] == NEVER)
            told->firsts[element] = which;
    }
    hd_json_fini(&json);
    hd_buf_fini(&list);
    return 0;
}

static struct hd_list_history trail_of(const struct line *line, size_t known)
{
    return (struct hd_list_history){.thread = {.id = bytes("t")},
                                    .ns = HD_S("n"),
                                    .channel = HD_S("messages"),
                                    .task = HD_S(TASK),
                                    .ids = line->ids,
                                    .count = line->puts,
                                    .known = known};
}

/* The caller frees it. */
static struct told *walk(const struct line *line, size_t known)
{
    const struct hd_list_history history = trail_of(line, known);
    struct told *told = calloc(1, sizeof(*told));

    assert_non_null(told);
    told->line = line;
    for (size_t i = 0; i < ELEMENTS; i++)
        told->firsts[i] = NEVER;
    assert_err(hd_list_history_walk(line->store, &history, on_news, told, NULL), 0);
    return told;
}

/* Elements of a known checkpoint may be reported as well, at a later one. */
static void check(const struct line *line, size_t known)
{
    struct told *told = walk(line, known);

    assert_int_equal(told->opaque_count, 0);
    for (size_t i = 0; i < (size_t)line->made; i++) {
        if (line->firsts[i] == NEVER)
            assert_int_equal(told->firsts[i], NEVER);
        else if (line->firsts[i] >= known)
            assert_int_equal(told->firsts[i], line->firsts[i]);
    }
    free(told);
}

/* ---- lists ------------------------------------------------------------ */

static void change(struct line *line)
{
    static const int sizes[] = {1, 20, 60, 250, 300, 2000, 5000};
    unsigned kind = any(line, 40);

    if (kind == 0)
        line->count = 0;
    else if (kind < 4 && line->count > 0)
        take_out(line, 0);
    else if (kind < 8 && line->count > 0)
        take_out(line, any(line, (unsigned)line->count));
    else if (kind < 10 && line->count > 0)
        line->sizes[line->list[any(line, (unsigned)line->count)]] = sizes[any(line, 7)];
    else if (kind < 12 && line->made > 0 && line->count == 0)
        line->list[line->count++] = (int)any(line, (unsigned)line->made); /* the element is added
                                                                           * again */
    else
        add(line, kind == 12 && line->made % 3 == 0 ? HUGE : sizes[any(line, 7)]);
    if (kind > 30)
        add(line, sizes[any(line, 3)]);
}

static void elements_are_reported_where_they_were_added(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct line *line = line_create(seed % 2 ? NULL : "memory:", seed);

        for (int i = 0; i < STEPS; i++) {
            change(line);
            put_list(line);
        }
        check(line, 0);
        check(line, 1);
        check(line, line->puts / 2);
        check(line, line->puts);
        line_destroy(line);
    }
}

/* Elements that are cut share the chunks in their middle. */
static void long_elements_are_reported_whole(void **state)
{
    struct line *line = line_create("memory:", 1);
    struct told *told;

    (void)state;
    for (int i = 0; i < 4; i++) {
        add(line, HUGE);
        put_list(line);
        add(line, 300);
        put_list(line);
        add(line, 10);
        put_list(line);
    }
    check(line, 0);
    check(line, 5);
    /* The chunks are read only for the checkpoint that adds the element. */
    told = walk(line, 0);
    assert_true(told->size < 5 * (HUGE + 100000));
    free(told);
    line_destroy(line);
}

static void a_list_that_grows_is_read_once(void **state)
{
    static const int sizes[] = {10, 400};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(sizes); i++) {
        struct line *line = line_create("memory:", 1);
        struct told *told;
        uint64_t reads;

        for (int j = 0; j < 390; j++) {
            add(line, sizes[i]);
            put_list(line);
        }
        reads = hd_rows_counts(line->store).reads;
        told = walk(line, 0);
        /* Short elements share a chunk, which changes with each added element. */
        assert_true(told->size < (size_t)390 * (sizes[i] < 256 ? 5000 : 500));
        assert_true(hd_rows_counts(line->store).reads - reads <= 4 * 390);
        check(line, 0);
        free(told);
        line_destroy(line);
    }
}

/* ---- values that are not lists ---------------------------------------- */

static void put_text(struct line *line, const char *type, const char *text)
{
    put_value(line, type, bytes(text));
}

static void put_write(struct line *line, const char *task, const char *channel)
{
    struct heddle_value value = {bytes(channel), bytes("hd1"), bytes("[]")};
    struct heddle_writes writes = {.thread = {.id = bytes("t")},
                                   .ns = bytes("n"),
                                   .checkpoint_id = bytes(line->names[line->puts - 1]),
                                   .task_id = bytes(task),
                                   .values = &value,
                                   .value_count = 1};

    assert_err(heddle_put_writes(line->store, &writes, NULL), 0);
}

static void other_values_are_not_reported(void **state)
{
    static const char *const element = "{\"$\":\"message\",\"type\":\"human\",\"content\":\"%0*d\","
                                       "\"id\":\"%d\"}";
    char one[600], text[1300];
    static const size_t opaque[] = {1, 2, 3, 4, 5, 6, 10, 11};
    struct line *line = line_create("memory:", 1);
    struct told *told;

    (void)state;
    snprintf(one, sizeof(one), element, 400, 0, 7);
    put_text(line, "hd1", "[{\"id\":\"3\"}]"); /* 0: short values are stored inline */
    put_value(line, "hd1", (struct heddle_bytes){NULL, 0});
    put_text(line, "hd1", "{\"id\":\"4\"}");
    put_text(line, "hd1", one);
    snprintf(text, sizeof(text), "[%s]", one);
    put_text(line, "json", text);
    snprintf(text, sizeof(text), "{\"$\":\"delta\",\"value\":[%s]}", one);
    put_text(line, "hd1", text);
    snprintf(text, sizeof(text), "[%s, %s]", one, one);
    put_text(line, "hd1", text);
    put_text(line, "hd1", "[]"); /* 7 */
    put_text(line, "hd1", "[{\"id\":\"5\"}]");
    put_write(line, TASK, "other");
    put_write(line, "11111111-0000-0000-0000-000000000000", "messages");
    snprintf(text, sizeof(text), "[%s]", one); /* 9: first reported here */
    put_text(line, "hd1", text);
    put_text(line, "hd1", text);
    put_write(line, TASK, "messages");
    line->ids[line->puts++] = HD_S("none");
    told = walk(line, 0);
    assert_int_equal(told->opaque_count, HD_COUNT(opaque));
    assert_memory_equal(told->opaque, opaque, sizeof(opaque));
    assert_int_equal(told->firsts[3], 0);
    assert_int_equal(told->firsts[4], NEVER);
    assert_int_equal(told->firsts[5], 8);
    assert_int_equal(told->firsts[7], 9);
    free(told);
    line_destroy(line);
}

/* A prune deletes chunks concurrently: a state with a missing chunk is reported as unknown. */
static void a_missing_chunk_is_not_reported(void **state)
{
    struct line *line = line_create("memory:", 1);
    struct told *told;
    struct hd_batch_builder batch;
    struct hd_cell cells[] = {hd_cell_bytes(HD_S(":t")), hd_cell_bytes(HD_S("messages")),
                              hd_cell_int(2)};
    struct hd_batch view;

    (void)state;
    for (int i = 0; i < 4; i++) {
        add(line, 400);
        put_list(line);
    }
    hd_batch_init(&batch);
    assert_err(hd_batch_delete(&batch, HD_CHUNKS, cells, 3), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(line->store, HD_S(":t"), &view, NULL, NULL), 0);
    hd_batch_fini(&batch);
    told = walk(line, 0);
    assert_int_equal(told->opaque_count, 1);
    assert_int_equal(told->opaque[0], 1);
    assert_int_equal(told->firsts[0], 0);
    assert_int_equal(told->firsts[2], 2);
    free(told);
    line_destroy(line);
}

/* ---- ends ------------------------------------------------------------- */

static int stop(void *arg, size_t which, const struct hd_slice *elements)
{
    size_t *calls = arg;

    (void)elements;
    ++*calls;
    return which == 2 ? HD_ECLOSED : 0;
}

static int count_calls(void *arg, size_t which, const struct hd_slice *elements)
{
    size_t *calls = arg;

    (void)which;
    (void)elements;
    ++*calls;
    return 0;
}

static int walk_all(void *arg)
{
    const struct line *line = arg;
    const struct hd_list_history history = trail_of(line, 0);
    size_t calls = 0;

    return hd_list_history_walk(line->store, &history, count_calls, &calls, NULL);
}

static void errors_end_it(void **state)
{
    struct line *line = line_create("memory:", 3);
    struct hd_list_history history;
    struct heddle_error fault = {0};
    size_t calls = 0;

    (void)state;
    for (int i = 0; i < 36; i++) {
        add(line, i == 34 ? HUGE : 100 + 10 * i);
        put_list(line);
    }
    history = trail_of(line, 0);
    assert_err(hd_list_history_walk(line->store, &history, stop, &calls, NULL), HD_ECLOSED);
    assert_int_equal(calls, 3);
    history.count = 0;
    assert_err(hd_list_history_walk(line->store, &history, stop, &calls, NULL), 0);
    assert_int_equal(calls, 3);
    history.thread.principal = bytes("a:b");
    assert_err(hd_list_history_walk(line->store, &history, stop, &calls, &fault), HD_EINVAL);
    assert_true(check_every_allocation(walk_all, line) > 20);
    line_destroy(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_reported_where_they_were_added),
        cmocka_unit_test(long_elements_are_reported_whole),
        cmocka_unit_test(a_list_that_grows_is_read_once),
        cmocka_unit_test(other_values_are_not_reported),
        cmocka_unit_test(a_missing_chunk_is_not_reported),
        cmocka_unit_test(errors_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
