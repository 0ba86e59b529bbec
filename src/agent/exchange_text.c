/* Texts about an exchange, without its secrets. */
#include "agent/exchange_internal.h"

#include <curl/curl.h>
#include <strings.h>

#include "base/error.h"
#include "net/outgoing.h"
#include "secret/secret.h"

#define MAX_WAIT_MS 60000
#define MIN_SECRET 3 /* shorter ones are not secrets, and would match everywhere */
#define MIN_HEADER 8 /* for headers whose name is not secret */

/* ---- headers ---------------------------------------------------------- */

static struct hd_slice trim_header(struct hd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) && text.ptr[text.len - 1])
        text.len--;
    while (text.len > 0 && (*text.ptr == ' ' || *text.ptr == '\t'))
        text = hd_slice(text.ptr + 1, text.len - 1);
    return text;
}

struct hd_slice hd_header_split(struct hd_slice line, struct hd_slice *value)
{
    const char *colon = line.len > 0 ? memchr(line.ptr, ':', line.len) : NULL;
    size_t len = colon ? (size_t)(colon - line.ptr) : 0;

    *value = colon ? trim_header(hd_slice(colon + 1, line.len - len - 1)) : hd_slice(NULL, 0);
    return hd_slice(line.ptr, len);
}

struct hd_slice hd_header_find(struct hd_slice headers, const char *name)
{
    struct hd_slice wanted = hd_slice_cstr(name);
    struct hd_slice found = {NULL, 0};

    while (headers.len > 0) {
        const char *feed = memchr(headers.ptr, '\n', headers.len);
        size_t len = feed ? (size_t)(feed - headers.ptr) + 1 : headers.len;
        struct hd_slice value;
        struct hd_slice is = hd_header_split(hd_slice(headers.ptr, len), &value);

        if (is.len == wanted.len && is.len > 0 && strncasecmp(is.ptr, wanted.ptr, is.len) == 0)
            found = value;
        headers = hd_slice(headers.ptr + len, headers.len - len);
    }
    return found;
}

/* -1: invalid. Long numbers mean a minute anyway. */
static int64_t read_retry_number(struct hd_slice text)
{
    int64_t number = 0;

    if (text.len == 0)
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        if (number < 1000000000)
            number = number * 10 + (text.ptr[i] - '0');
    }
    return number;
}

static int64_t until_date(struct hd_slice text, int64_t now_us)
{
    char room[64];
    time_t at;

    if (text.len == 0 || text.len >= sizeof(room))
        return -1;
    memcpy(room, text.ptr, text.len);
    room[text.len] = '\0';
    at = curl_getdate(room, NULL);
    if (at < 0)
        return -1;
    return (int64_t)at * 1000 > now_us / 1000 ? (int64_t)at * 1000 - now_us / 1000 : 0;
}

int64_t hd_retry_after_ms(struct hd_slice headers, int64_t now_us)
{
    int64_t ms = read_retry_number(hd_header_find(headers, "retry-after-ms"));
    struct hd_slice value = hd_header_find(headers, "retry-after");

    if (ms < 0 && read_retry_number(value) >= 0)
        ms = read_retry_number(value) * 1000;
    if (ms < 0)
        ms = until_date(value, now_us);
    return ms > MAX_WAIT_MS ? MAX_WAIT_MS : ms;
}

/* ---- secrets ---------------------------------------------------------- */

/* The longest one that matches: one may begin with another. */
static size_t secret_at(struct hd_slice text, const struct hd_slice *secrets, size_t count)
{
    size_t longest = 0;

    for (size_t i = 0; i < count; i++) {
        if (secrets[i].len >= MIN_SECRET && secrets[i].len > longest &&
            secrets[i].ptr[0] == text.ptr[0] && hd_slice_starts(text, secrets[i]))
            longest = secrets[i].len;
    }
    return longest;
}

int hd_mask(struct hd_buf *out, struct hd_slice text, const struct hd_slice *secrets, size_t count)
{
    size_t plain = 0; /* start of the text not yet copied */
    int err = 0;

    for (size_t pos = 0; pos < text.len && !err;) {
        size_t len = secret_at(hd_slice(text.ptr + pos, text.len - pos), secrets, count);

        if (len == 0) {
            pos++;
            continue;
        }
        err = hd_buf_append(out, text.ptr + plain, pos - plain);
        if (!err)
            err = hd_buf_append(out, "***", 3);
        pos += len;
        plain = pos;
    }
    if (!err && plain < text.len)
        err = hd_buf_append(out, text.ptr + plain, text.len - plain);
    return err;
}

/* "Bearer x": x alone is secret as well. */
static struct hd_slice bare(struct hd_slice value)
{
    const char *blank = value.len > 0 ? memchr(value.ptr, ' ', value.len) : NULL;

    if (!blank)
        return hd_slice(NULL, 0);
    return trim_header(hd_slice(blank, value.len - (size_t)(blank - value.ptr)));
}

int hd_agent_exchange_secrets(struct hd_agent_exchange *exchange)
{
    const struct hd_agent_exchange_options *options = &exchange->options;
    size_t max = options->secret_count + 2 * options->header_count;

    exchange->secrets = hd_arena_calloc(&exchange->arena, max + 1, sizeof(*exchange->secrets));
    if (!exchange->secrets)
        return HD_ENOMEM;
    for (size_t i = 0; i < options->secret_count; i++)
        exchange->secrets[exchange->secret_count++] = options->secrets[i];
    for (size_t i = 0; i < options->header_count; i++) {
        struct hd_slice value;
        struct hd_slice name = hd_header_split(hd_slice_cstr(options->headers[i]), &value);

        if (!hd_secret_is_name(name) && !(hd_secret_is_header(name) && value.len >= MIN_HEADER))
            continue;
        exchange->secrets[exchange->secret_count++] = value;
        exchange->secrets[exchange->secret_count++] = bare(value);
    }
    return 0;
}

/* ---- addresses -------------------------------------------------------- */

/* Scheme, host and port, normalized; false: out of memory, or invalid. */
static bool origin_text(CURLU *url, struct hd_arena *arena, struct hd_slice *out)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    char *got[3] = {NULL, NULL, NULL};
    bool is_fine = true;

    for (int i = 0; i < 3 && is_fine; i++)
        is_fine = curl_url_get(url, parts[i], &got[i], CURLU_DEFAULT_PORT) == CURLUE_OK;
    *out = hd_slice(NULL, 0);
    if (is_fine)
        *out = hd_slice_cstr(hd_arena_printf(arena, "%s %s %s", got[0], got[1], got[2]));
    for (int i = 0; i < 3; i++)
        curl_free(got[i]);
    return out->ptr != NULL;
}

/* Host names are case-insensitive. */
static bool is_same_origin(struct hd_slice a, struct hd_slice b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static const char *resolve(CURLU *url, const char *location, struct hd_arena *arena)
{
    struct hd_slice from, to, copy;
    char *text = NULL;
    int err = HD_EINVAL;

    if (!origin_text(url, arena, &from) ||
        curl_url_set(url, CURLUPART_URL, location, 0) != CURLUE_OK ||
        !origin_text(url, arena, &to) || !is_same_origin(from, to))
        return NULL;
    if (curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK)
        err = hd_arena_copy(arena, hd_slice_cstr(text), &copy);
    curl_free(text);
    return err ? NULL : copy.ptr;
}

const char *hd_redirect_within(const char *url, struct hd_slice location, struct hd_arena *arena)
{
    CURLU *parsed = curl_url();
    const char *found = NULL;

    if (parsed && location.len > 0 && !hd_arena_copy(arena, location, &location) &&
        curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK)
        found = resolve(parsed, location.ptr, arena);
    curl_url_cleanup(parsed);
    return found;
}

/* ---- errors ----------------------------------------------------------- */

/* Scheme, host and port only: the rest may contain keys. */
static struct hd_slice origin_of(const char *url, struct hd_slice *host)
{
    const char *begin = strstr(url, "://");
    size_t scheme = begin ? (size_t)(begin - url) + 3 : 0;
    size_t len = strcspn(url + scheme, "/?#");
    const char *at = memrchr(url + scheme, '@', len);

    if (!at) {
        *host = hd_slice(url + scheme, len);
        return hd_slice(url, scheme + len);
    }
    *host = hd_slice(at + 1, len - (size_t)(at + 1 - (url + scheme)));
    return *host;
}

static int describe_failure(struct hd_buf *out, const struct hd_agent_exchange *exchange,
                            const struct hd_client_response *response)
{
    const struct hd_agent_exchange_options *options = &exchange->options;
    struct hd_slice host, origin = origin_of(options->url, &host);
    const char *peer = options->peer ? options->peer : "other";
    int len = origin.len < 256 ? (int)origin.len : 256;
    int err;

#define WHO "the %s server at %.*s"
#define WHO_ARGS peer, len, origin.ptr
    if (exchange->is_redirected)
        return hd_buf_printf(out,
                             WHO " redirects to another address (status %ld), which is not "
                                 "followed",
                             WHO_ARGS, response->status);
    switch (response->failure) {
    case HD_CLIENT_URL:
        return hd_buf_printf(out, "the address of the %s server is not a valid http or https URL",
                             peer);
    case HD_CLIENT_RESOLVE:
        return hd_buf_printf(out, "could not resolve host %.*s of the %s server",
                             host.len < 256 ? (int)host.len : 256, host.ptr, peer);
    case HD_CLIENT_CONNECT:
        err = hd_buf_printf(out, "could not connect to " WHO, WHO_ARGS);
        if (!err && response->os_error)
            err = hd_buf_printf(out, ": %s", uv_strerror(-response->os_error));
        return err;
    case HD_CLIENT_CONNECT_TIME:
        return hd_buf_printf(out, "timed out connecting to " WHO, WHO_ARGS);
    case HD_CLIENT_TLS:
        return hd_buf_printf(out, "TLS with " WHO " failed: %s", WHO_ARGS, response->error);
    case HD_CLIENT_CLOSED:
        return hd_buf_printf(out, WHO " closed the connection without a response", WHO_ARGS);
    case HD_CLIENT_TIMEOUT:
        return hd_buf_printf(out, WHO " timed out after %lld ms", WHO_ARGS,
                             (long long)options->timeout_ms);
    case HD_CLIENT_IDLE:
        return hd_buf_printf(out, WHO " sent nothing for %lld ms", WHO_ARGS,
                             (long long)options->idle_ms);
    case HD_CLIENT_CUT:
        return hd_buf_printf(out, "the response of " WHO " was cut off", WHO_ARGS);
    case HD_CLIENT_STRANGE:
        return hd_buf_printf(out, WHO " sent a response that is not HTTP", WHO_ARGS);
    case HD_CLIENT_REFUSED:
        return hd_buf_printf(out, "the request to " WHO " was not sent: %s", WHO_ARGS,
                             HD_OUTGOING_REFUSAL);
    case HD_CLIENT_LARGE:
        return hd_buf_printf(out, "the response of " WHO " is larger than %zu bytes", WHO_ARGS,
                             options->max_body);
    default:
        return hd_buf_printf(out, "the exchange with " WHO " failed: %s", WHO_ARGS,
                             response->error ? response->error : "no response");
    }
#undef WHO
#undef WHO_ARGS
}

const char *hd_agent_exchange_error(struct hd_agent_exchange *exchange,
                                    const struct hd_client_response *response)
{
    struct hd_buf plain;
    int err;

    hd_buf_init(&plain, 4096);
    hd_buf_reset(&exchange->text);
    err = describe_failure(&plain, exchange, response);
    if (!err)
        err = hd_mask(&exchange->text, hd_buf_slice(&plain), exchange->secrets,
                      exchange->secret_count);
    if (!err)
        err = hd_buf_append_byte(&exchange->text, 0);
    hd_buf_fini(&plain);
    return err ? hd_error_text(err) : exchange->text.ptr;
}
