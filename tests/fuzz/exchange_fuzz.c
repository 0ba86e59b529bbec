/* libFuzzer: headers of other servers, and texts that may contain secrets. The first byte is the
 * length of the secret that follows it; the rest is the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/exchange_internal.h"
#include "base/compiler.h"

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static bool is_inside(struct hd_slice part, struct hd_slice all)
{
    return !part.ptr || (part.ptr >= all.ptr && part.ptr + part.len <= all.ptr + all.len);
}

static void check_headers(struct hd_slice text)
{
    static const char *const names[] = {"retry-after", "location", "a", ""};
    int64_t ms = hd_retry_after_ms(text, INT64_C(1445412480) * 1000000);

    require(ms >= -1 && ms <= 60000);
    for (size_t i = 0; i < HD_COUNT(names); i++)
        require(is_inside(hd_header_find(text, names[i]), text));
}

/* No occurrence of the secret remains, regardless of the text around it. */
static void check_mask(struct hd_slice secret, struct hd_slice text)
{
    struct hd_buf out;

    hd_buf_init(&out, SIZE_MAX / 4);
    require(hd_mask(&out, text, &secret, 1) == 0);
    if (secret.len >= 3 && !memchr(secret.ptr, '*', secret.len))
        require(out.len == 0 || !memmem(out.ptr, out.len, secret.ptr, secret.len));
    if (secret.len < 3)
        require(hd_slice_eq(hd_buf_slice(&out), text));
    hd_buf_fini(&out);
}

/* A redirect stays on the same host, or is refused. */
static void check_redirect(struct hd_slice location)
{
    struct hd_arena arena;
    const char *to;

    if (location.len > 0 && memchr(location.ptr, 0, location.len))
        return;
    hd_arena_init(&arena, (size_t)1 << 22);
    to = hd_redirect_within("http://host.example:8080/a/b?c", location, &arena);
    if (to) {
        const char *host = strstr(to, "://");
        const char *at;
        size_t len;

        require(host != NULL);
        host += 3;
        len = strcspn(host, "/?#");
        at = memrchr(host, '@', len);
        if (at) {
            len -= (size_t)(at + 1 - host);
            host = at + 1;
        }
        require(len == 17 && strncasecmp(host, "host.example:8080", 17) == 0);
    }
    hd_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size > 0 ? data[0] % 16 : 0;
    struct hd_slice secret, text;

    if (size < len + 1)
        return 0;
    secret = hd_slice(data + 1, len);
    text = hd_slice(data + 1 + len, size - 1 - len);
    check_headers(text);
    check_mask(secret, text);
    check_redirect(text);
    return 0;
}
