/* heddle history: the checkpoints of a thread as a tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/thread_ns.h"
#include "heddle.h"

#define MAX_DEPTH 512 /* maximum depth of branches drawn */

struct checkpoint_item {
    char *id, *parent, *text;
    size_t child, sibling; /* index + 1; 0: none */
    bool is_child;
};

struct history {
    struct checkpoint_item *items; /* oldest first after loading */
    size_t count, cap;
};

static char *copy(struct heddle_bytes bytes)
{
    char *text = hd_malloc(bytes.len + 1);

    if (!text)
        return NULL;
    if (bytes.len > 0)
        memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    return text;
}

/* "step 3  loop  2026-01-31T12:34:56" */
static char *describe_checkpoint(const struct heddle_tuple *tuple)
{
    struct hd_json metadata = {NULL}, checkpoint = {NULL};
    struct hd_slice source, ts;
    int64_t step = 0;
    char *text = NULL;

    if (hd_json_parse(&metadata, hd_slice(tuple->metadata.data, tuple->metadata.len), NULL) != 0 ||
        hd_json_parse(&checkpoint, hd_slice(tuple->checkpoint.data, tuple->checkpoint.len), NULL) !=
            0)
        goto done;
    source = hd_json_string(hd_json_get(hd_json_root(&metadata), HD_S("source")));
    ts = hd_json_string(hd_json_get(hd_json_root(&checkpoint), HD_S("ts")));
    (void)hd_json_int(hd_json_get(hd_json_root(&metadata), HD_S("step")), &step);
    text = hd_malloc(128);
    if (text)
        (void)snprintf(text, 128, "step %-3lld %-6.*s %.*s", (long long)step, (int)source.len,
                       source.ptr, (int)(ts.len < 19 ? ts.len : 19), ts.ptr);
done:
    hd_json_fini(&metadata);
    hd_json_fini(&checkpoint);
    return text ? text : copy((struct heddle_bytes){"?", 1});
}

static int add_history_item(void *ctx, const struct heddle_tuple *tuple)
{
    struct history *history = ctx;
    struct checkpoint_item *item;

    if (hd_array_grow(history->items, history->count, history->cap) != 0)
        return HD_ENOMEM;
    item = &history->items[history->count++];
    *item = (struct checkpoint_item){
        copy(tuple->id), copy(tuple->parent), describe_checkpoint(tuple), 0, 0, false};
    return item->id && item->parent && item->text ? 0 : HD_ENOMEM;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct checkpoint_item *)a)->id, ((const struct checkpoint_item *)b)->id);
}

/* Children by age; a checkpoint without its parent is a root. */
static void link_items(struct history *history)
{
    qsort(history->items, history->count, sizeof(*history->items), by_id);
    for (size_t i = history->count; i-- > 0;) {
        struct checkpoint_item wanted = {.id = history->items[i].parent};
        struct checkpoint_item *parent =
            bsearch(&wanted, history->items, history->count, sizeof(*history->items), by_id);

        /* Ids increase; this prevents a cycle. */
        if (!parent || strcmp(parent->id, history->items[i].id) >= 0)
            continue;
        history->items[i].is_child = true;
        history->items[i].sibling = parent->child;
        parent->child = i + 1;
    }
}

/* A line per checkpoint; branches are indented. */
static void draw(const struct history *history, size_t index, int depth)
{
    while (index) {
        const struct checkpoint_item *item = &history->items[index - 1];

        (void)printf("%*s%s  %s\n", depth * 2, "", item->text, item->id);
        index = item->child;
        if (!index || !history->items[index - 1].sibling)
            continue;
        for (; index; index = history->items[index - 1].sibling) {
            (void)printf("%*s└ branch\n", depth * 2, "");
            draw(history, index, depth < MAX_DEPTH ? depth + 1 : depth);
        }
        return;
    }
}

static void free_history(struct history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        hd_free(history->items[i].id);
        hd_free(history->items[i].parent);
        hd_free(history->items[i].text);
    }
    hd_free(history->items);
}

static int show_history(const struct hd_cli_thread_args *at)
{
    struct history history = {NULL, 0, 0};
    struct heddle_error error = {0};
    int err = hd_cli_thread_scan(at, at->ns, add_history_item, &history, &error);

    if (!err && history.count == 0) {
        (void)fprintf(stderr, "heddle history: thread %s has no checkpoints in namespace \"%s\"\n",
                      at->thread, at->ns);
        err = HD_ENOTFOUND;
    } else if (err) {
        (void)fprintf(stderr, "heddle history: %s\n",
                      error.text[0] ? error.text : hd_error_text(err));
    }
    if (!err)
        link_items(&history);
    for (size_t i = 0; !err && i < history.count; i++) {
        if (!history.items[i].is_child)
            draw(&history, i + 1, 0);
    }
    free_history(&history);
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int history_run(int argc, char **argv)
{
    struct hd_cli_thread_args at = {.url = NULL};
    int status = 0;

    for (int i = 1; i < argc && status == 0; i++) {
        if (!hd_cli_thread_arg(&hd_command_history, &at, argc, argv, &i, &status))
            status = hd_usage_error(&hd_command_history, "unknown option %s", argv[i]);
    }
    if (status == 0 && !at.thread)
        status = hd_usage_error(&hd_command_history, "URL and THREAD are required");
    if (status != 0)
        return status;
    status = hd_cli_thread_open(&hd_command_history, &at);
    if (status == HD_EXIT_OK)
        status = show_history(&at);
    hd_cli_thread_close(&at);
    return status;
}

const struct hd_command hd_command_history = {
    .name = "history",
    .arguments = "URL THREAD [--ns NAMESPACE] [--principal P]",
    .summary = "show the checkpoints of a thread",
    .help =
        "Prints the checkpoints of a thread, oldest first: step, source, time and id.\n"
        "Branches are indented where the thread was forked.\n"
        "\n"
        "  --ns NAMESPACE   of one assistant or subgraph, such as child:9ec5acbc-… (default: the\n"
        "                   thread's only root namespace; with several, they are listed)\n"
        "  --principal P    the thread's owner on a server with authentication\n"
        "\n"
        "  heddle threads sqlite:agent.db\n"
        "  heddle history sqlite:agent.db my-thread\n",
    .run = history_run,
};
