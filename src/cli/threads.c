/* heddle threads: lists the threads of a database. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "heddle.h"
#include "records/record.h"
#include "store/rows.h"
#include "store/store.h"

#define MAX_RECORD ((size_t)256 << 20)

struct thread_listing {
    struct heddle *store;
    const char *principal; /* NULL: threads of all principals */
    size_t count;
    struct hd_arena arena;
    struct heddle_error fault;
};

static bool is_listed_principal(const struct thread_listing *l, struct hd_slice principal)
{
    return !l->principal || hd_slice_eq(principal, hd_slice_cstr(l->principal));
}

/* `note` follows the other columns. */
static void print_thread(struct thread_listing *l, struct hd_slice principal, struct hd_slice id,
                         const char *status, int64_t updated_us, const char *note)
{
    char updated[33];

    hd_clock_format_iso(updated_us, updated);
    (void)printf("%-36.*s  %-11s  %.19s", (int)id.len, id.ptr, status, updated);
    if (principal.len > 0)
        (void)printf("  %.*s", (int)principal.len, principal.ptr);
    (void)fputs(note, stdout);
    (void)putchar('\n');
    l->count++;
}

static int on_record(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_listing *l = arg;

    if (is_listed_principal(l, thread->principal))
        print_thread(l, thread->principal, thread->id, hd_thread_status_name(thread->status),
                     thread->updated_at, thread->is_room ? "  room" : "");
    return 0;
}

/* A thread without a server's record: its checkpoints come from the library or `heddle run`. */
static int on_listed_thread(void *arg, size_t which, const struct hd_cell *cells)
{
    struct thread_listing *l = arg;
    struct heddle_thread thread = hd_store_thread_from_key(cells[HD_THREADS_ID].bytes);
    struct hd_slice principal = hd_from_public(thread.principal), id = hd_from_public(thread.id);
    struct hd_thread_rec record;
    int err;

    (void)which;
    if (cells[HD_THREADS_CREATED].number == 0 || !is_listed_principal(l, principal))
        return 0;
    hd_arena_reset(&l->arena);
    err = hd_thread_read(l->store, principal, id, &l->arena, &record, &l->fault);
    if (err != HD_ENOTFOUND)
        return err;
    l->fault = (struct heddle_error){0};
    print_thread(l, principal, id, "-", cells[HD_THREADS_UPDATED].number, "");
    return 0;
}

static int list_threads(struct thread_listing *l)
{
    const struct hd_query query = {
        .table = HD_THREADS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    int err = hd_threads_scan_all(l->store, on_record, l, &l->fault);

    if (!err)
        err = hd_rows_scan(l->store, query, on_listed_thread, l, &l->fault);
    if (err)
        (void)fprintf(stderr, "heddle threads: %s\n",
                      l->fault.code ? l->fault.text : hd_error_text(err));
    else if (l->count == 0)
        (void)fprintf(stderr, "no threads\n");
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int threads_run(int argc, char **argv)
{
    const struct hd_command *command = &hd_command_threads;
    struct hd_ops_options options = {.is_of_all = true};
    struct hd_ops ops;
    int status;

    for (int i = 1; i < argc; i++) {
        status = hd_ops_option(command, &options, argc, argv, &i);
        if (status == HD_EXIT_USAGE)
            return status;
        if (status == HD_OPS_TAKEN)
            continue;
        if (argv[i][0] == '-')
            return hd_usage_error(command, "unknown option %s", argv[i]);
        if (options.store)
            return hd_usage_error(command, "expected one URL");
        options.store = argv[i];
    }
    options.is_of_all = !options.principal && !options.subject;
    status = hd_ops_begin(command, &options, false, &ops);
    if (status == 0) {
        struct thread_listing l = {.store = ops.store,
                                   .principal = options.is_of_all ? NULL : ops.principal};

        hd_arena_init(&l.arena, MAX_RECORD);
        status = list_threads(&l);
        hd_arena_fini(&l.arena);
        hd_ops_end(&ops);
    }
    return status;
}

const struct hd_command hd_command_threads = {
    .name = "threads",
    .arguments = "[URL] [--config FILE] [--principal P | --subject ALIAS/SUBJECT]",
    .summary = "list the threads of a database",
    .help =
        "Prints a line for each thread: its id, status, time of the last change (UTC) and, on a\n"
        "server with authentication, its principal; `room` follows if people chat in it.\n"
        "Threads without a status were written by the library or `heddle run`. `heddle state`\n"
        "and `heddle history` show one of them.\n"
        "\n"
        "  URL                the database (default: sqlite:heddle.db, or as configured)\n"
        "  --config FILE      the server's configuration\n"
        "  --subject A/S      threads of this issuer's alias and subject\n"
        "  --principal P      threads of this principal\n"
        "\n"
        "  heddle threads sqlite:agent.db\n",
    .run = threads_run,
};
