/* The requests of a scripted model. */
#include "cli/mock_log.h"

#include "base/alloc.h"
#include "base/json.h"

#define MAX_ENTRIES 1000
#define MAX_BYTES ((size_t)64 << 20)
#define MAX_TEXT ((size_t)40 << 20)

struct hd_cli_mock_entry {
    struct hd_cli_mock_entry *next;
    int64_t number, rule;
    int status;
    bool is_done, is_gone;
    size_t pieces;
    struct hd_buf text; /* members of the entry, as JSON without the braces */
};

/* Credential headers: logged without their values. */
static bool is_secret(struct hd_slice name)
{
    static const struct hd_slice names[] = {
        HD_S_INIT("authorization"),       HD_S_INIT("api-key"), HD_S_INIT("x-api-key"),
        HD_S_INIT("proxy-authorization"), HD_S_INIT("cookie"),  HD_S_INIT("x-goog-api-key"),
    };

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(names[i], name))
            return true;
    }
    return false;
}

static void write_headers(struct hd_jw *jw, const struct hd_http_request *request)
{
    hd_jw_put_object(jw, "headers");
    for (size_t i = 0; i < request->header_count; i++) {
        const struct hd_header *header = &request->headers[i];

        hd_jw_key(jw, header->name);
        hd_jw_string(jw, is_secret(header->name) ? HD_S("present") : header->value);
    }
    hd_jw_object_end(jw);
}

static int write_request(struct hd_buf *out, const struct hd_http_request *request)
{
    struct hd_json json = {0};
    bool is_json = !hd_json_parse(&json, request->body, NULL);
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "method", request->method_name);
    hd_jw_put_string(&jw, "path", request->path);
    write_headers(&jw, request);
    hd_jw_key(&jw, HD_S("body"));
    if (is_json)
        hd_jw_val(&jw, hd_json_root(&json));
    else
        hd_jw_string(&jw, request->body);
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    hd_json_fini(&json);
    return err;
}

static void drop_first(struct hd_cli_mock_log *log)
{
    struct hd_cli_mock_entry *entry = log->first;

    log->first = entry->next;
    if (!log->first)
        log->last = NULL;
    log->count--;
    log->bytes -= entry->text.len;
    hd_buf_fini(&entry->text);
    hd_free(entry);
}

static void append_log_entry(struct hd_cli_mock_log *log, struct hd_cli_mock_entry *entry)
{
    if (log->last)
        log->last->next = entry;
    else
        log->first = entry;
    log->last = entry;
    log->count++;
    log->bytes += entry->text.len;
    while (log->count > 1 && (log->count > MAX_ENTRIES || log->bytes > MAX_BYTES))
        drop_first(log);
}

int64_t hd_cli_mock_log_add(struct hd_cli_mock_log *log, const struct hd_http_request *request,
                            int status, int64_t rule)
{
    struct hd_cli_mock_entry *entry = hd_calloc(1, sizeof(*entry));

    if (!entry)
        return -1;
    hd_buf_init(&entry->text, MAX_TEXT);
    if (write_request(&entry->text, request)) {
        hd_buf_fini(&entry->text);
        hd_free(entry);
        return -1;
    }
    entry->number = log->next_number++;
    entry->status = status;
    entry->rule = rule;
    append_log_entry(log, entry);
    return entry->number;
}

void hd_cli_mock_log_end(struct hd_cli_mock_log *log, int64_t number, bool is_gone, size_t pieces)
{
    for (struct hd_cli_mock_entry *entry = log->first; entry; entry = entry->next) {
        if (entry->number != number)
            continue;
        entry->is_done = !is_gone;
        entry->is_gone = is_gone;
        entry->pieces = pieces;
        return;
    }
}

static void write_entry(struct hd_jw *jw, const struct hd_cli_mock_entry *entry)
{
    struct hd_slice members = hd_slice(entry->text.ptr + 1, entry->text.len - 2);

    hd_jw_object(jw);
    hd_jw_put_int(jw, "number", entry->number);
    hd_jw_put_int(jw, "status", entry->status);
    hd_jw_key(jw, HD_S("rule"));
    if (entry->rule >= 0)
        hd_jw_int(jw, entry->rule);
    else
        hd_jw_null(jw);
    hd_jw_put_bool(jw, "done", entry->is_done);
    hd_jw_put_bool(jw, "gone", entry->is_gone);
    hd_jw_put_int(jw, "pieces", (int64_t)entry->pieces);
    hd_jw_raw(jw, members);
    hd_jw_object_end(jw);
}

int hd_cli_mock_log_write(const struct hd_cli_mock_log *log, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_array(&jw);
    for (const struct hd_cli_mock_entry *entry = log->first; entry; entry = entry->next)
        write_entry(&jw, entry);
    hd_jw_array_end(&jw);
    return hd_jw_finish(&jw);
}

void hd_cli_mock_log_reset(struct hd_cli_mock_log *log)
{
    while (log->first)
        drop_first(log);
}
