/* libFuzzer: the routing tree compared with the simplest matcher: each pattern in turn, segment by
 * segment. The first byte is the method. */
#include <stdint.h>
#include <stdlib.h>

#include "http/query.h"
#include "http/router.h"

static const struct hd_router_entry entries[] = {
    {HD_METHOD_GET, "/"},
    {HD_METHOD_GET, "/a"},
    {HD_METHOD_POST, "/a"},
    {HD_METHOD_GET, "/a/b"},
    {HD_METHOD_POST, "/a/{x}"},
    {HD_METHOD_GET, "/{x}/b"},
    {HD_METHOD_PUT, "/{x}/{y}"},
    {HD_METHOD_DELETE, "/a/{x}/c"},
    {HD_METHOD_DELETE, "/{x}/b/{y}"},
    {HD_METHOD_GET, "/a/b/{rest*}"},
    {HD_METHOD_PATCH, "/{rest*}"},
    {HD_METHOD_GET, "/aa/{x}/{y}/{z}"},
};

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

/* Up to the next slash; false at the end. */
static bool cut(struct hd_slice *path, struct hd_slice *segment)
{
    const char *slash = path->len ? memchr(path->ptr, '/', path->len) : NULL;

    if (!path->ptr)
        return false;
    *segment = hd_slice(path->ptr, slash ? (size_t)(slash - path->ptr) : path->len);
    *path = slash ? hd_slice(slash + 1, path->len - segment->len - 1) : hd_slice(NULL, 0);
    return true;
}

static bool segment_fits(struct hd_slice pattern, struct hd_slice segment, struct hd_arena *arena)
{
    if (pattern.len > 0 && pattern.ptr[0] == '{')
        return segment.len > 0;
    require(hd_percent_decode(segment, false, arena, &segment) == 0);
    return hd_slice_eq(pattern, segment);
}

static bool fits(const char *text, struct hd_slice path, struct hd_arena *arena)
{
    struct hd_slice pattern = hd_slice_cstr(text + 1), wanted, segment;

    if (pattern.len == 0)
        pattern.ptr = NULL;
    while (cut(&pattern, &wanted)) {
        if (!cut(&path, &segment))
            return false;
        if (wanted.len > 1 && wanted.ptr[wanted.len - 2] == '*')
            return segment.len > 0;
        if (!segment_fits(wanted, segment, arena))
            return false;
    }
    return !path.ptr;
}

static struct hd_slice strip(struct hd_slice path)
{
    while (path.len > 0 && path.ptr[0] == '/')
        path = hd_slice(path.ptr + 1, path.len - 1);
    if (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    return path.len > 0 ? path : hd_slice(NULL, 0);
}

static void check(const struct hd_match *match, enum hd_method method, struct hd_slice path,
                  struct hd_arena *arena)
{
    enum hd_method wanted = method == HD_METHOD_HEAD ? HD_METHOD_GET : method;
    bool has_path = false, has_both = false;

    for (size_t i = 0; i < HD_COUNT(entries); i++) {
        if (!fits(entries[i].pattern, strip(path), arena))
            continue;
        has_path = true;
        has_both |= entries[i].method == wanted;
    }
    require((match->kind == HD_MATCH_FOUND) == has_both);
    require((match->kind == HD_MATCH_NO_PATH) == !has_path);
    if (match->kind == HD_MATCH_FOUND) {
        require(entries[match->route].method == wanted);
        require(fits(entries[match->route].pattern, strip(path), arena));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hd_router *router;
    struct hd_match match;
    struct hd_arena arena;
    enum hd_method method;

    if (!router)
        require(hd_router_create(&router, entries, HD_COUNT(entries), NULL) == 0);
    if (size == 0 || size > 4096)
        return 0;
    method = (enum hd_method)(data[0] % (HD_METHOD_OPTIONS + 1));
    hd_arena_init(&arena, (size_t)1 << 20);
    require(hd_router_match(router, method, hd_slice(data + 1, size - 1), &arena, &match) == 0);
    if (match.kind != HD_MATCH_MALFORMED)
        check(&match, method, hd_slice(data + 1, size - 1), &arena);
    hd_arena_fini(&arena);
    return 0;
}
