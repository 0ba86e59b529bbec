#include "cluster/server_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <heddle.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define MAX_LEASE_US INT64_C(3600000000)

/* ---- this process ----------------------------------------------------- */

/* The beginning of a file as a string; empty when it cannot be read. */
static void read_proc_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, size - 1);

    if (fd >= 0)
        (void)close(fd);
    out[len > 0 ? len : 0] = '\0';
}

/*
 * Start time of a process, field 22 of /proc/PID/stat; 0: unknown, -1: a zombie. The second field,
 * the name of the program, may contain spaces and parentheses, so fields are counted after its end.
 */
static int64_t start_of(int64_t pid)
{
    char path[64], text[1024];
    const char *field;

    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    read_proc_text(path, text, sizeof(text));
    field = strrchr(text, ')');
    if (field && field[1] == ' ' && (field[2] == 'Z' || field[2] == 'X'))
        return -1;
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoll(field + 1, NULL, 10) : 0;
}

void hd_server_identity_init(struct hd_server_identity *self)
{
    ssize_t len;

    memset(self, 0, sizeof(*self));
    if (gethostname(self->host, sizeof(self->host) - 1))
        self->host[0] = '\0';
    (void)snprintf(self->version, sizeof(self->version), "%s", HEDDLE_VERSION);
    read_proc_text("/proc/sys/kernel/random/boot_id", self->boot, sizeof(self->boot));
    self->boot[strcspn(self->boot, "\n")] = '\0';
    len = readlink("/proc/self/ns/pid", self->pid_ns, sizeof(self->pid_ns) - 1);
    self->pid_ns[len > 0 ? len : 0] = '\0';
    self->pid = getpid();
    self->pid_started = start_of(self->pid);
}

/* ---- as text ---------------------------------------------------------- */

static void put_identity_text(struct hd_jw *jw, const char *name, const char *text)
{
    hd_jw_put_string(jw, name, hd_slice_cstr(text));
}

int hd_server_identity_write(const struct hd_server_identity *identity, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    put_identity_text(&jw, "address", identity->address);
    put_identity_text(&jw, "host", identity->host);
    put_identity_text(&jw, "version", identity->version);
    put_identity_text(&jw, "boot", identity->boot);
    put_identity_text(&jw, "pid_ns", identity->pid_ns);
    hd_jw_put_int(&jw, "pid", identity->pid);
    hd_jw_put_int(&jw, "pid_started", identity->pid_started);
    if (identity->id[0]) {
        hd_jw_put_bool(&jw, "cluster", true);
        put_identity_text(&jw, "server", identity->id);
        hd_jw_put_int(&jw, "lease_us", identity->lease_us);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static void get_text(hd_json_val object, const char *name, char *out, size_t size)
{
    struct hd_slice text = hd_json_string(hd_json_get(object, hd_slice_cstr(name)));

    if (text.len > 0 && text.len < size && !memchr(text.ptr, '\0', text.len))
        memcpy(out, text.ptr, text.len);
}

void hd_server_identity_read(struct hd_slice json, struct hd_server_identity *out)
{
    struct hd_json doc;
    hd_json_val root;

    memset(out, 0, sizeof(*out));
    if (hd_json_parse(&doc, json, NULL))
        return;
    root = hd_json_root(&doc);
    get_text(root, "address", out->address, sizeof(out->address));
    get_text(root, "host", out->host, sizeof(out->host));
    get_text(root, "version", out->version, sizeof(out->version));
    get_text(root, "boot", out->boot, sizeof(out->boot));
    get_text(root, "pid_ns", out->pid_ns, sizeof(out->pid_ns));
    if (!hd_json_int(hd_json_get(root, HD_S("pid")), &out->pid))
        out->pid = 0;
    if (!hd_json_int(hd_json_get(root, HD_S("pid_started")), &out->pid_started))
        out->pid_started = 0;
    get_text(root, "server", out->id, sizeof(out->id));
    if (!hd_json_int(hd_json_get(root, HD_S("lease_us")), &out->lease_us) || out->lease_us < 0 ||
        out->lease_us > MAX_LEASE_US)
        out->lease_us = 0;
    hd_json_fini(&doc);
}

int64_t hd_server_identity_lease(const struct hd_server_identity *identity)
{
    return identity->lease_us > 0 ? identity->lease_us : HD_SERVER_IDENTITY_LEASE_US;
}

void hd_server_identity_describe(const struct hd_server_identity *identity, char *out, size_t size)
{
    char process[192] = "";

    if (identity->pid > 0)
        (void)snprintf(process, sizeof(process), "process %" PRId64 "%s%.64s", identity->pid,
                       identity->host[0] ? " on " : "", identity->host);
    if (identity->address[0])
        (void)snprintf(out, size, "the server at %.80s%s%s%s", identity->address,
                       process[0] ? " (" : "", process, process[0] ? ")" : "");
    else
        (void)snprintf(out, size, "another server%s%s%s", process[0] ? " (" : "", process,
                       process[0] ? ")" : "");
}

/* ---- others ----------------------------------------------------------- */

bool hd_server_identity_is_gone(const struct hd_server_identity *identity,
                                const struct hd_server_identity *self)
{
    int64_t started;

    if (!self->boot[0] || !self->pid_ns[0] || strcmp(identity->boot, self->boot) != 0 ||
        strcmp(identity->pid_ns, self->pid_ns) != 0 || identity->pid <= 0)
        return false;
    /* kill() also finds processes that /proc hides from this user. */
    if (kill((pid_t)identity->pid, 0) != 0 && errno == ESRCH)
        return true;
    started = start_of(identity->pid);
    return started && identity->pid_started && started != identity->pid_started;
}
