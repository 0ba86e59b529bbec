#include "gate/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#define MAX_WAITING ((size_t)1 << 20) /* bytes between two turns of the loop */

struct hd_audit {
    uv_prepare_t prepare; /* writes before the loop waits */
    char *path;
    int file;
    struct hd_buf waiting; /* whole lines */
    size_t entries;        /* in it */
    uint64_t lost;
};

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Lines that cannot be written are lost: requests do not wait for the log. */
static void write_waiting(struct hd_audit *audit)
{
    size_t done = 0;

    while (done < audit->waiting.len) {
        ssize_t n = write(audit->file, audit->waiting.ptr + done, audit->waiting.len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (audit->lost == 0)
                hd_log(HD_LOG_ERROR, "audit", "%s: %s", audit->path, strerror(errno));
            audit->lost += audit->entries;
            break;
        }
        done += (size_t)n;
    }
    hd_buf_reset(&audit->waiting);
    audit->entries = 0;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct hd_audit *audit = prepare->data;

    if (audit->waiting.len > 0)
        write_waiting(audit);
    uv_prepare_stop(prepare);
}

int hd_audit_create(uv_loop_t *loop, const char *path, struct hd_audit **out,
                    struct heddle_error *fault)
{
    struct hd_audit *audit = hd_calloc(1, sizeof(*audit));
    size_t size = strlen(path) + 1;

    if (!audit)
        return HD_ENOMEM;
    audit->path = hd_malloc(size);
    if (!audit->path) {
        hd_free(audit);
        return HD_ENOMEM;
    }
    memcpy(audit->path, path, size);
    audit->file = open_file(path);
    if (audit->file < 0) {
        hd_error_set(fault, HD_EIO, "audit.file: %s: %s", path, strerror(errno));
        hd_free(audit->path);
        hd_free(audit);
        return HD_EIO;
    }
    hd_buf_init(&audit->waiting, MAX_WAITING);
    (void)uv_prepare_init(loop, &audit->prepare); /* never fails */
    audit->prepare.data = audit;
    *out = audit;
    return 0;
}

static void on_audit_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_audit_destroy(struct hd_audit *audit)
{
    if (!audit)
        return;
    write_waiting(audit);
    (void)close(audit->file);
    hd_buf_fini(&audit->waiting);
    hd_free(audit->path);
    uv_close((uv_handle_t *)&audit->prepare, on_audit_closed);
}

/* ---- entries ----------------------------------------------------------- */

static void put_audit_member(struct hd_jw *jw, const char *name, struct hd_slice value)
{
    if (value.len == 0)
        return;
    hd_jw_put_string(jw, name, value);
}

static const char *decision(int status)
{
    return status == 401 || status == 403 || status == 404 || status == 429 ? "deny" : "allow";
}

static void write_identity(struct hd_jw *jw, const struct hd_identity *identity)
{
    put_audit_member(jw, "principal", identity->principal);
    put_audit_member(jw, "issuer", identity->issuer);
    put_audit_member(jw, "subject", identity->subject);
    put_audit_member(jw, "key_id", identity->key_id);
}

static void write_objects(struct hd_jw *jw, const struct hd_audit_entry *entry)
{
    hd_jw_put_object(jw, "object");
    for (size_t i = 0; i < entry->object_count; i++) {
        hd_jw_key(jw, entry->objects[i].kind);
        hd_jw_string(jw, entry->objects[i].id);
    }
    hd_jw_object_end(jw);
}

static int write_entry(struct hd_buf *out, const struct hd_audit_entry *entry)
{
    struct hd_jw jw;
    char time[33];

    hd_clock_format_iso(hd_clock_now_us(), time);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    put_audit_member(&jw, "time", hd_slice_cstr(time));
    if (entry->identity)
        write_identity(&jw, entry->identity);
    put_audit_member(&jw, "act_for", entry->act_for);
    put_audit_member(&jw, "action", entry->action);
    if (entry->object_count > 0)
        write_objects(&jw, entry);
    put_audit_member(&jw, "owner", entry->owner);
    if (entry->role)
        put_audit_member(&jw, "role", hd_slice_cstr(entry->role));
    if (entry->status)
        hd_jw_put_int(&jw, "status", entry->status);
    put_audit_member(&jw, "decision", hd_slice_cstr(decision(entry->status)));
    put_audit_member(&jw, "request_id", entry->request_id);
    put_audit_member(&jw, "peer", entry->peer);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

void hd_audit_note(struct hd_audit *audit, const struct hd_audit_entry *entry)
{
    size_t len;

    if (!audit)
        return;
    len = audit->waiting.len;
    if (write_entry(&audit->waiting, entry) || hd_buf_append_byte(&audit->waiting, '\n')) {
        audit->waiting.len = len;
        audit->lost++;
        return;
    }
    audit->entries++;
    (void)uv_prepare_start(&audit->prepare, on_prepare); /* fails without a function only */
}

void hd_audit_reopen(struct hd_audit *audit)
{
    int file;

    if (!audit)
        return;
    write_waiting(audit);
    file = open_file(audit->path);
    if (file < 0) {
        hd_log(HD_LOG_ERROR, "audit", "%s: %s; the old file stays in use", audit->path,
               strerror(errno));
        return;
    }
    (void)close(audit->file);
    audit->file = file;
}

uint64_t hd_audit_lost(const struct hd_audit *audit)
{
    return audit ? audit->lost : 0;
}
