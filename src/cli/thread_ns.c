#include "cli/thread_ns.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "heddle.h"

#define MAX_SHOWN 50 /* namespaces that are printed */

struct namespaces {
    char **items;
    size_t count, cap;
};

/* ---- arguments -------------------------------------------------------- */

bool hd_cli_thread_arg(const struct hd_command *command, struct hd_cli_thread_args *args, int argc,
                       char **argv, int *index, int *status)
{
    const char *arg = argv[*index];

    if (hd_option_value(argc, argv, index, "--ns", &args->ns)) {
        if (!args->ns)
            *status = hd_usage_error(command, "--ns needs a value");
        return true;
    }
    if (hd_option_value(argc, argv, index, "--principal", &args->principal)) {
        if (!args->principal)
            *status = hd_usage_error(command, "--principal needs a value");
        return true;
    }
    if (arg[0] == '-')
        return false;
    if (!args->url)
        args->url = arg;
    else if (!args->thread)
        args->thread = arg;
    else
        *status = hd_usage_error(command, "unexpected argument %s", arg);
    return true;
}

/* ---- the namespaces of a thread --------------------------------------- */

static int add_namespace(void *ctx, const struct heddle_tuple *tuple)
{
    struct namespaces *all = ctx;
    struct heddle_bytes ns = tuple->ns;
    char *copy;

    for (size_t i = 0; i < all->count; i++) {
        if (strlen(all->items[i]) == ns.len && memcmp(all->items[i], ns.data, ns.len) == 0)
            return 0;
    }
    if (hd_array_grow(all->items, all->count, all->cap) != 0)
        return HD_ENOMEM;
    copy = hd_malloc(ns.len + 1);
    if (!copy)
        return HD_ENOMEM;
    if (ns.len > 0)
        memcpy(copy, ns.data, ns.len);
    copy[ns.len] = '\0';
    all->items[all->count++] = copy;
    return 0;
}

int hd_cli_thread_scan(const struct hd_cli_thread_args *args, const char *ns, hd_thread_tuple_fn fn,
                       void *ctx, struct heddle_error *error)
{
    struct heddle_bytes thread = {args->thread, strlen(args->thread)};
    struct heddle_bytes space = {ns, ns ? strlen(ns) : 0};
    struct heddle_query query = {.principal = {args->principal, strlen(args->principal)},
                                 .thread = &thread,
                                 .ns = ns ? &space : NULL,
                                 .limit = -1,
                                 .flags = HEDDLE_LIST_HEADERS};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int err = heddle_list_open(args->store, &query, &list, error);

    if (err)
        return err;
    while (!err) {
        err = heddle_list_next(list, &tuple, error);
        if (!err)
            err = fn(ctx, tuple);
    }
    heddle_list_close(list);
    return err == HEDDLE_ENOTFOUND ? 0 : err;
}

static void free_namespaces(struct namespaces *all)
{
    for (size_t i = 0; i < all->count; i++)
        hd_free(all->items[i]);
    hd_free(all->items);
}

/* ---- choosing --------------------------------------------------------- */

/* A graph's own namespace: "" or, in a server's thread, assistant:<id>. Others are subgraphs'. */
static bool is_root(const char *ns)
{
    return *ns == '\0' || (strncmp(ns, "assistant:", 10) == 0 && !strchr(ns, '|'));
}

/* The index of the only root, or of the only namespace; all->count: there are several. */
static size_t only_one(const struct namespaces *all)
{
    size_t found = 0, roots = 0;

    for (size_t i = 0; i < all->count; i++) {
        if (is_root(all->items[i])) {
            found = i;
            roots++;
        }
    }
    return roots == 1 || all->count == 1 ? found : all->count;
}

static void print_namespaces(const struct namespaces *all, size_t except)
{
    for (size_t i = 0; i < all->count && i < MAX_SHOWN; i++) {
        if (i != except)
            (void)fprintf(stderr, "  --ns \"%s\"\n", all->items[i]);
    }
    if (all->count > MAX_SHOWN)
        (void)fprintf(stderr, "  and %zu more\n", all->count - MAX_SHOWN);
}

static int choose_namespace(const struct hd_command *command, struct hd_cli_thread_args *args,
                            struct namespaces *all)
{
    size_t only = only_one(all);

    if (all->count == 0) {
        (void)fprintf(stderr, "heddle %s: thread %s has no checkpoints%s\n", command->name,
                      args->thread, *args->principal ? "" : "; heddle threads URL lists threads");
        return HD_EXIT_FAILED;
    }
    if (only == all->count) {
        (void)fprintf(stderr, "heddle %s: thread %s has %zu namespaces; choose one:\n",
                      command->name, args->thread, all->count);
        print_namespaces(all, only);
        return HD_EXIT_FAILED;
    }
    if (all->count > 1) {
        (void)fprintf(stderr, "namespace \"%s\"; the thread also has:\n", all->items[only]);
        print_namespaces(all, only);
    }
    args->chosen_ns = all->items[only];
    all->items[only] = NULL;
    return HD_EXIT_OK;
}

int hd_cli_thread_open(const struct hd_command *command, struct hd_cli_thread_args *args)
{
    struct namespaces all = {NULL, 0, 0};
    struct heddle_error error = {0};
    int err, status = HD_EXIT_FAILED;

    if (!args->principal)
        args->principal = "";
    if (!hd_ops_open(command, args->url, false, &args->store)) {
        args->store = NULL;
        return HD_EXIT_FAILED;
    }
    if (args->ns)
        return HD_EXIT_OK;
    err = hd_cli_thread_scan(args, NULL, add_namespace, &all, &error);
    if (err)
        (void)fprintf(stderr, "heddle %s: %s\n", command->name,
                      error.text[0] ? error.text : heddle_error_text(err));
    else
        status = choose_namespace(command, args, &all);
    args->ns = args->chosen_ns;
    free_namespaces(&all);
    return status;
}

void hd_cli_thread_close(struct hd_cli_thread_args *args)
{
    hd_free(args->chosen_ns);
    heddle_close(args->store);
}
