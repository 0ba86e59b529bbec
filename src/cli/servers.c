/* heddle servers: lists the servers that use a database. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/ops.h"
#include "cluster/observation.h"
#include "cluster/server_row.h"
#include "heddle.h"
#include "server/store_lock_file.h"
#include "store/rows.h"

#define LOOK_US INT64_C(100000)
#define MAX_OUTPUT ((size_t)1 << 20)

struct server_listing {
    struct heddle *store;
    struct hd_server_identity self; /* of this process: to find others of this host */
    struct hd_server_rows rows;
    struct hd_observation observation;
    struct heddle_error fault;
};

/* ---- observation ------------------------------------------------------- */

/* A server renews its row at least this often. */
static int64_t beat_of(const struct hd_server_row *row)
{
    int64_t beat = hd_server_identity_lease(&row->identity) / 5;

    return beat > 2000000 ? 2000000 : beat;
}

static const char *server_state(const struct server_listing *l, const struct hd_server_row *row)
{
    if (hd_server_identity_is_gone(&row->identity, &l->self))
        return "ended";
    return hd_observation_has_changed(&l->observation, row->slot) ? "alive" : "silent";
}

/* Two missed beats suffice to call a server silent. */
static bool is_decided(const struct server_listing *l, int64_t waited_us)
{
    for (size_t i = 0; i < l->rows.count; i++) {
        const struct hd_server_row *row = &l->rows.items[i];

        if (strcmp(server_state(l, row), "silent") == 0 && waited_us < 2 * beat_of(row) + LOOK_US)
            return false;
    }
    return true;
}

/* The clocks of other machines show no age of a beat, so the next ones are awaited. */
static int observe_servers(struct server_listing *l)
{
    int64_t started = hd_clock_boot_us();

    hd_observation_init(&l->observation, HD_SERVER_IDENTITY_LEASE_US);
    for (;;) {
        int64_t began = hd_clock_boot_us();
        int err = hd_server_row_read_store(l->store, &l->rows, &l->fault);

        if (err)
            return err;
        hd_observation_begin(&l->observation, began, hd_clock_boot_us());
        for (size_t i = 0; i < l->rows.count; i++)
            hd_observation_note(&l->observation, l->rows.items[i].slot, l->rows.items[i].token,
                                l->rows.items[i].beat);
        hd_observation_end(&l->observation);
        if (is_decided(l, hd_clock_boot_us() - started))
            return 0;
        hd_clock_sleep_us(LOOK_US);
    }
}

/* A file is locked by the kernel and has no rows: the lock stands for one. */
static int read_file_holder(struct server_listing *l, const char *file)
{
    struct hd_server_row *row = &l->rows.items[0];
    int err = hd_store_lock_file_holder(file, &row->identity, &l->fault);

    if (!err) {
        l->rows.count = 1;
        hd_observation_note(&l->observation, "", 0, 0);
        hd_observation_note(&l->observation, "", 0, 1);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

/* ---- output ------------------------------------------------------------ */

static const char *server_role(const struct server_listing *l, const struct hd_server_row *row)
{
    if (!row->slot[0])
        return "alone";
    return l->rows.items[0].slot[0] == '\0' && l->rows.items[0].token == row->token ? "leader"
                                                                                    : "member";
}

/* The mark of servers that share the database is not a server. */
static bool is_server(const struct hd_server_row *row)
{
    return row->slot[0] || !hd_server_row_is_shared(row);
}

static void print_servers(const struct server_listing *l)
{
    size_t count = 0;

    for (size_t i = 0; i < l->rows.count; i++) {
        const struct hd_server_row *row = &l->rows.items[i];
        const struct hd_server_identity *server = &row->identity;

        if (!is_server(row))
            continue;
        count++;
        (void)printf("%-8.8s  %-6s  %-6s  %s  %s  process %" PRId64 " on %s\n",
                     row->slot[0] ? row->slot : "-", server_role(l, row), server_state(l, row),
                     server->address[0] ? server->address : "-", server->version, server->pid,
                     server->host);
    }
    if (count == 0)
        (void)fprintf(stderr, "no servers\n");
}

static void write_server(struct hd_jw *jw, const struct server_listing *l,
                         const struct hd_server_row *row)
{
    const struct hd_server_identity *server = &row->identity;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", hd_slice_cstr(row->slot));
    hd_jw_put_string(jw, "role", hd_slice_cstr(server_role(l, row)));
    hd_jw_put_string(jw, "state", hd_slice_cstr(server_state(l, row)));
    hd_jw_put_string(jw, "address", hd_slice_cstr(server->address));
    hd_jw_put_string(jw, "version", hd_slice_cstr(server->version));
    hd_jw_put_string(jw, "host", hd_slice_cstr(server->host));
    hd_jw_put_int(jw, "pid", server->pid);
    hd_jw_put_int(jw, "lease_seconds", hd_server_identity_lease(server) / 1000000);
    hd_jw_object_end(jw);
}

static int print_json(const struct server_listing *l)
{
    struct hd_buf out;
    struct hd_jw jw;
    int err;

    hd_buf_init(&out, MAX_OUTPUT);
    hd_jw_init(&jw, &out);
    hd_jw_array(&jw);
    for (size_t i = 0; i < l->rows.count; i++) {
        if (is_server(&l->rows.items[i]))
            write_server(&jw, l, &l->rows.items[i]);
    }
    hd_jw_array_end(&jw);
    err = hd_jw_finish(&jw);
    if (!err)
        err = hd_buf_printf(&out, "\n");
    if (!err && !hd_cli_write_out(hd_buf_slice(&out)))
        err = HD_EIO;
    hd_buf_fini(&out);
    return err;
}

/* ---- command ----------------------------------------------------------- */

static int list_servers(struct heddle *store, bool is_json)
{
    struct server_listing *l = hd_calloc(1, sizeof(*l));
    const char *file = hd_rows_file(store);
    int err = l ? 0 : HD_ENOMEM;

    if (!err) {
        l->store = store;
        hd_server_identity_init(&l->self);
        err = file ? read_file_holder(l, file) : observe_servers(l);
    }
    if (!err && is_json)
        err = print_json(l);
    else if (!err)
        print_servers(l);
    if (err)
        (void)fprintf(stderr, "heddle servers: %s\n",
                      l && l->fault.code ? l->fault.text : hd_error_text(err));
    hd_free(l);
    return err ? HD_EXIT_FAILED : HD_EXIT_OK;
}

static int servers_run(int argc, char **argv)
{
    const struct hd_command *command = &hd_command_servers;
    struct hd_ops_options options = {.is_of_all = true};
    bool is_json = false;
    struct hd_ops ops;
    int status;

    for (int i = 1; i < argc; i++) {
        status = hd_ops_option(command, &options, argc, argv, &i);
        if (status == HD_EXIT_USAGE)
            return status;
        if (status == HD_OPS_TAKEN)
            continue;
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (argv[i][0] == '-')
            return hd_usage_error(command, "unknown option %s", argv[i]);
        else if (options.store)
            return hd_usage_error(command, "expected one URL");
        else
            options.store = argv[i];
    }
    if (options.principal || options.subject)
        return hd_usage_error(command, "servers belong to no principal");
    status = hd_ops_begin(command, &options, false, &ops);
    if (status == 0) {
        status = list_servers(ops.store, is_json);
        hd_ops_end(&ops);
    }
    return status;
}

const struct hd_command hd_command_servers = {
    .name = "servers",
    .arguments = "[URL] [--config FILE] [--json]",
    .summary = "list the servers that use a database",
    .help = "Prints a line for each server: its id, role, state, address, version and process.\n"
            "The role is `alone`, or for servers that share the database (docs/configuration.md)\n"
            "`leader` or `member`. The state is `alive` when the server renewed its lease while\n"
            "the command watched, at most about four seconds; `silent` when it did not;\n"
            "`ended` when it was a process of this host that no longer exists.\n"
            "\n"
            "  URL                the database (default: sqlite:heddle.db, or as configured)\n"
            "  --config FILE      the server's configuration\n"
            "  --json             an array of objects\n"
            "\n"
            "  heddle servers postgresql://heddle@db/heddle\n",
    .run = servers_run,
};
