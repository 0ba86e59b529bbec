/* heddle doctor --secrets: prints a line per stored secret, without the secret. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/ops.h"
#include "heddle.h"
#include "store/url.h"
#include "transfer/secret_scan.h"

#define SHOWN 4     /* leading characters shown of a secret of at least */
#define MIN_LONG 16 /* this length */
#define MAX_KEY 100 /* bytes shown of a key column */
#define MAX_LINE 4096

struct doctor {
    uint64_t findings;
    bool has_progress; /* standard error is a terminal */
};

/* Appends printable characters unchanged and other bytes as dots. */
static int append_shown(struct hd_buf *line, struct hd_slice text, size_t limit)
{
    int err = 0;

    for (size_t i = 0; !err && i < text.len && i < limit; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        err = hd_buf_append_byte(line, c < ' ' || c == 127 ? '.' : c);
    }
    return !err && text.len > limit ? hd_buf_append_slice(line, HD_S("…")) : err;
}

/* `column=value`, of all columns of the key. A key that is a secret is not shown. */
static int append_key(struct hd_buf *line, const struct hd_secret_place *place)
{
    const struct hd_table *table = &hd_tables[place->table];
    int err = 0;

    for (unsigned i = 0; !err && i < table->key_count; i++) {
        const struct hd_cell *cell = &place->cells[i];

        err = hd_buf_printf(line, " %s=", table->columns[i].name);
        if (err)
            break;
        if (i == place->column)
            err = hd_buf_append_slice(line, HD_S("(here)"));
        else if (cell->kind == HD_CELL_INT)
            err = hd_buf_append_int(line, cell->number);
        else
            err = append_shown(line, cell->bytes, MAX_KEY);
    }
    return err;
}

static int append_secret(struct hd_buf *line, const struct hd_secret_finding *finding)
{
    struct hd_slice secret = finding->secret;
    int err =
        hd_buf_printf(line, ": %s%s, ", finding->kind, finding->is_within ? " in a text" : "");

    if (!err && secret.len >= MIN_LONG)
        err = append_shown(line, hd_slice(secret.ptr, SHOWN), SHOWN);
    return err ? err : hd_buf_printf(line, "*** (%zu bytes)\n", secret.len);
}

static int on_secret_found(void *ctx, const struct hd_secret_place *place)
{
    const struct hd_table *table = &hd_tables[place->table];
    struct doctor *doctor = ctx;
    struct hd_buf line;
    int err;

    doctor->findings++;
    hd_buf_init(&line, MAX_LINE);
    err = hd_buf_append_slice(&line, hd_slice_cstr(table->name));
    if (!err)
        err = append_key(&line, place);
    if (!err)
        err = hd_buf_printf(&line, ": %s", table->columns[place->column].name);
    if (!err && place->finding->place.len > 0)
        err = hd_buf_append_byte(&line, '.');
    if (!err)
        err = append_shown(&line, place->finding->place, MAX_LINE / 4);
    if (!err)
        err = append_secret(&line, place->finding);
    if (!err && !hd_cli_write_out(hd_buf_slice(&line)))
        err = HD_EIO;
    hd_buf_fini(&line);
    return err;
}

static void on_scan_progress(void *ctx, enum hd_table_id table, uint64_t rows)
{
    (void)ctx;
    (void)fprintf(stderr, "\r%-20s %llu rows ", hd_tables[table].name, (unsigned long long)rows);
}

/* Prints how much was read, to show what "nothing found" covers. */
static void summarise(const struct hd_secret_scan *scan, const struct doctor *doctor,
                      const char *url)
{
    char shown[512];
    uint64_t rows = 0;

    hd_url_show(url, shown, sizeof(shown));
    printf("scanned %s:", shown);
    for (int i = 0; i < HD_TABLE_COUNT; i++) {
        printf("%s %s %llu", i > 0 ? "," : "", hd_tables[i].name,
               (unsigned long long)scan->rows[i]);
        rows += scan->rows[i];
    }
    printf("\n%d tables, %llu rows, %llu %s\n", HD_TABLE_COUNT, (unsigned long long)rows,
           (unsigned long long)doctor->findings, doctor->findings == 1 ? "finding" : "findings");
}

int hd_doctor_secrets(const char *url)
{
    struct doctor doctor = {.has_progress = isatty(STDERR_FILENO)};
    struct hd_secret_scan scan = {.found = on_secret_found,
                                  .progress = doctor.has_progress ? on_scan_progress : NULL,
                                  .ctx = &doctor};
    struct heddle_error fault = {0};
    struct heddle *store;
    int err;

    if (!hd_ops_open(&hd_command_doctor, url, false, &store))
        return HD_EXIT_FAILED;
    err = hd_secret_scan(store, &scan, &fault);
    heddle_close(store);
    if (doctor.has_progress)
        (void)fprintf(stderr, "\r%40s\r", "");
    if (err)
        (void)fprintf(stderr, "heddle doctor: the scan ended early: %s\n",
                      fault.code ? fault.text : hd_error_text(err));
    summarise(&scan, &doctor, url);
    return err || doctor.findings > 0 ? HD_EXIT_FAILED : HD_EXIT_OK;
}
