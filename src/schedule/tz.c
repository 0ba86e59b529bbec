/*
 * TZif files (RFC 9636). Version 1 has 32-bit times and no rule for the future, so only versions 2
 * and later are accepted; these repeat all data in 64 bits after a version 1 block, which is
 * skipped.
 */
#include "schedule/tz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "schedule/tz_internal.h"

#define SYSTEM_DIRECTORY "/usr/share/zoneinfo"
#define HEAD_SIZE 44
#define MAX_CHANGES 16384
#define MAX_TYPES 256
/* RFC 9636 limits offsets to 26 hours. */
#define MAX_OFFSET 93600
#define MAX_TIME (INT64_C(1) << 59)

struct hd_tz {
    int32_t first_offset; /* before the first change */
    bool has_rule;
    struct hd_tz_rule rule; /* after the last */
    size_t count;
    int64_t *at;      /* ascending */
    int32_t *offsets; /* from the change on */
};

/* ---- bytes ------------------------------------------------------------ */

struct head {
    uint32_t ut_count, std_count, leap_count, change_count, type_count, char_count;
    char version;
};

static uint32_t be32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int64_t be64(const char *bytes)
{
    return (int64_t)((uint64_t)be32(bytes) << 32 | be32(bytes + 4));
}

static bool take_head(struct hd_reader *r, struct head *head)
{
    struct hd_slice bytes;

    if (hd_read_bytes(r, HEAD_SIZE, &bytes) != 0 || memcmp(bytes.ptr, "TZif", 4) != 0)
        return false;
    *head = (struct head){
        .version = bytes.ptr[4],
        .ut_count = be32(bytes.ptr + 20),
        .std_count = be32(bytes.ptr + 24),
        .leap_count = be32(bytes.ptr + 28),
        .change_count = be32(bytes.ptr + 32),
        .type_count = be32(bytes.ptr + 36),
        .char_count = be32(bytes.ptr + 40),
    };
    return head->version >= '2' && head->change_count <= MAX_CHANGES &&
           head->type_count <= MAX_TYPES && head->ut_count <= MAX_TYPES &&
           head->std_count <= MAX_TYPES && head->char_count <= HD_TZ_MAX_FILE &&
           head->leap_count <= HD_TZ_MAX_FILE;
}

/* The size of the unused data after the changes and types. */
static size_t rest_size(const struct head *head, size_t time_size)
{
    return head->char_count + head->leap_count * (time_size + 4) + head->std_count + head->ut_count;
}

static bool skip_version_1(struct hd_reader *r)
{
    struct hd_slice skipped;
    struct head head;

    return take_head(r, &head) &&
           hd_read_bytes(
               r, (size_t)head.change_count * 5 + (size_t)head.type_count * 6 + rest_size(&head, 4),
               &skipped) == 0;
}

/* ---- parsing ---------------------------------------------------------- */

static bool read_offset(struct hd_slice types, size_t index, int32_t *out)
{
    if (index * 6 >= types.len)
        return false;
    *out = (int32_t)be32(types.ptr + index * 6);
    return *out > -MAX_OFFSET && *out < MAX_OFFSET;
}

static bool read_changes(struct hd_tz *tz, struct hd_slice times, struct hd_slice indexes,
                         struct hd_slice types)
{
    if (!read_offset(types, 0, &tz->first_offset))
        return false;
    for (size_t i = 0; i < tz->count; i++) {
        tz->at[i] = be64(times.ptr + i * 8);
        if (tz->at[i] < -MAX_TIME || tz->at[i] > MAX_TIME || (i > 0 && tz->at[i] <= tz->at[i - 1]))
            return false;
        if (!read_offset(types, (unsigned char)indexes.ptr[i], &tz->offsets[i]))
            return false;
    }
    return true;
}

static bool read_rule(struct hd_tz *tz, struct hd_reader *r)
{
    struct hd_slice text = hd_slice(r->pos, (size_t)(r->end - r->pos));

    if (text.len < 2 || text.ptr[0] != '\n' || text.ptr[text.len - 1] != '\n')
        return false;
    tz->has_rule = text.len > 2;
    return !tz->has_rule || hd_tz_rule_parse(&tz->rule, hd_slice(text.ptr + 1, text.len - 2)) == 0;
}

static struct hd_tz *create(size_t count)
{
    struct hd_tz *tz = hd_calloc(1, sizeof(*tz) + count * (sizeof(int64_t) + sizeof(int32_t)));

    if (!tz)
        return NULL;
    tz->count = count;
    tz->at = (int64_t *)(tz + 1);
    tz->offsets = (int32_t *)(tz->at + count);
    return tz;
}

int hd_tz_parse(struct hd_tz **out, struct hd_slice bytes, struct heddle_error *fault)
{
    struct hd_slice times, indexes, types, rest;
    struct hd_reader r = hd_reader(bytes);
    struct hd_tz *tz;
    struct head head;

    if (!skip_version_1(&r) || !take_head(&r, &head))
        return hd_error_set(fault, HD_ECORRUPT, "not a time zone file of version 2 or later");
    if (head.leap_count > 0)
        return hd_error_set(fault, HD_ECORRUPT, "a time zone file with leap seconds");
    if (hd_read_bytes(&r, (size_t)head.change_count * 8, &times) != 0 ||
        hd_read_bytes(&r, head.change_count, &indexes) != 0 ||
        hd_read_bytes(&r, (size_t)head.type_count * 6, &types) != 0 ||
        hd_read_bytes(&r, rest_size(&head, 8), &rest) != 0)
        return hd_error_set(fault, HD_ECORRUPT, "an incomplete time zone file");
    tz = create(head.change_count);
    if (!tz)
        return hd_error_set(fault, HD_ENOMEM, "out of memory while reading a time zone");
    if (!read_changes(tz, times, indexes, types) || !read_rule(tz, &r)) {
        hd_tz_close(tz);
        return hd_error_set(fault, HD_ECORRUPT, "a damaged time zone file");
    }
    *out = tz;
    return 0;
}

void hd_tz_close(struct hd_tz *tz)
{
    hd_free(tz);
}

/* ---- files ------------------------------------------------------------ */

/* Parts of letters, digits, "_", "+" and "-": cannot leave the directory or be a hidden file. */
static bool is_zone_name(struct hd_slice name)
{
    char last = '/';

    if (name.len == 0 || name.len > HD_TZ_MAX_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '+' || c == '-';

        if (!is_word && (c != '/' || last == '/'))
            return false;
        last = c;
    }
    return last != '/';
}

static bool has_zones(const char *directory)
{
    struct stat info;

    return stat(directory, &info) == 0 && S_ISDIR(info.st_mode);
}

static int read_zone_bytes(int fd, struct hd_buf *out)
{
    int err = 0;

    for (ssize_t got = 1; err == 0 && got > 0;) {
        err = hd_buf_reserve(out, 4096);
        if (err != 0)
            break;
        got = read(fd, out->ptr + out->len, 4096);
        if (got > 0)
            out->len += (size_t)got;
        else if (got < 0)
            err = errno == EINTR ? 0 : HD_EIO;
        got = got < 0 && err == 0 ? 1 : got;
    }
    return err;
}

/* Accepts only regular files: reading a pipe or a device could block. */
static int read_zone_file(const char *path, struct hd_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    int err;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? HD_EINVAL : HD_EIO;
    if (fstat(fd, &info) != 0)
        err = HD_EIO;
    else
        err = S_ISREG(info.st_mode) ? read_zone_bytes(fd, out) : HD_EINVAL;
    (void)close(fd);
    return err;
}

static int open_file(struct hd_tz **out, const char *directory, struct hd_slice name,
                     struct heddle_error *fault)
{
    char path[4096];
    struct hd_buf bytes;
    int err, len;

    len = snprintf(path, sizeof(path), "%s/%.*s", directory, (int)name.len, name.ptr);
    if (len < 0 || (size_t)len >= sizeof(path))
        return hd_error_set(fault, HD_EINVAL, "the path of the time zone files is too long");
    hd_buf_init(&bytes, HD_TZ_MAX_FILE + 4096);
    err = read_zone_file(path, &bytes);
    if (err == 0)
        err = hd_tz_parse(out, hd_buf_slice(&bytes), fault);
    hd_buf_fini(&bytes);
    if (err == HD_EINVAL && !has_zones(directory))
        return hd_error_set(fault, HD_ENOTFOUND,
                            "no time zone files in %s: install the package tzdata", directory);
    if (err == HD_EINVAL)
        return hd_error_set(fault, err, "\"%.*s\" is not a time zone such as \"Europe/Berlin\"",
                            HD_SHOW(name));
    return err == 0 ? 0 : hd_error_set(fault, err, "cannot read the time zone %.*s", HD_SHOW(name));
}

int hd_tz_open(struct hd_tz **out, const char *directory, struct hd_slice name,
               struct heddle_error *fault)
{
    if (name.len == 0 || hd_slice_eq(name, HD_S("UTC")) || hd_slice_eq(name, HD_S("Etc/UTC"))) {
        *out = NULL;
        return 0;
    }
    if (!is_zone_name(name))
        return hd_error_set(fault, HD_EINVAL,
                            "\"%.*s\" is not a time zone such as \"Europe/Berlin\"", HD_SHOW(name));
    return open_file(out, directory ? directory : SYSTEM_DIRECTORY, name, fault);
}

/* ---- lookup ----------------------------------------------------------- */

static int32_t offset_before(const struct hd_tz *tz, size_t index)
{
    return index > 0 ? tz->offsets[index - 1] : tz->first_offset;
}

/* The number of changes at or before that time. */
static size_t changes_until(const struct hd_tz *tz, int64_t seconds)
{
    size_t low = 0, high = tz->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (tz->at[middle] <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* After the last listed change the rule applies; the span still starts at that change. */
static struct hd_tz_span last_span(const struct hd_tz *tz, int64_t seconds)
{
    struct hd_tz_span span = {-HD_TZ_FOREVER, HD_TZ_FOREVER, tz->first_offset, tz->first_offset};

    if (tz->has_rule)
        span = hd_tz_rule_span(&tz->rule, seconds);
    else if (tz->count > 0)
        span.offset = tz->offsets[tz->count - 1];
    if (tz->count > 0 && span.begin <= tz->at[tz->count - 1]) {
        span.begin = tz->at[tz->count - 1];
        span.offset_before = offset_before(tz, tz->count - 1);
    }
    return span;
}

struct hd_tz_span hd_tz_span(const struct hd_tz *tz, int64_t seconds)
{
    size_t passed;

    if (!tz)
        return (struct hd_tz_span){-HD_TZ_FOREVER, HD_TZ_FOREVER, 0, 0};
    passed = changes_until(tz, seconds);
    if (passed == tz->count)
        return last_span(tz, seconds);
    return (struct hd_tz_span){
        .begin = passed > 0 ? tz->at[passed - 1] : -HD_TZ_FOREVER,
        .end = tz->at[passed],
        .offset = offset_before(tz, passed),
        .offset_before = offset_before(tz, passed > 0 ? passed - 1 : 0),
    };
}
