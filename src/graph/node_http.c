/* `http`: asks a server. */
#include <string.h>

#include "graph/decl.h"
#include "graph/nodes.h"

#define MAX_HEADERS 64

struct http_header {
    struct hd_slice name;
    const struct hd_expr *value;
};

struct http_headers {
    struct http_header *list;
    size_t count;
};

struct http_spec {
    const struct hd_expr *url;
    struct hd_slice method;
    struct http_headers headers;
    const struct hd_expr *body;   /* NULL: none */
    const struct hd_expr *update; /* NULL: none; sees the response */
    const struct hd_expr *expect; /* NULL: a status from 200 to 299 */
};

static int read_url(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                    void *out)
{
    struct hd_slice text = hd_json_string(at->val);

    (void)field;
    if (!hd_json_is_string(at->val) && !hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "a URL");
    if (hd_json_is_string(at->val) && !hd_slice_starts(text, HD_S("http://")) &&
        !hd_slice_starts(text, HD_S("https://")) && !hd_slice_starts(text, HD_S("{{")))
        return hd_decl_fail(decl, at, "must begin with http:// or https://");
    return hd_decl_expr_in(decl, at, 0, out);
}

static int read_method(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                       void *out)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};
    struct hd_slice text = hd_json_string(at->val);

    (void)field;
    for (size_t i = 0; i < HD_COUNT(methods); i++) {
        if (hd_slice_eq(text, hd_slice_cstr(methods[i]))) {
            *(struct hd_slice *)out = hd_slice_cstr(methods[i]);
            return 0;
        }
    }
    return hd_decl_fail(decl, at, "must be GET, POST, PUT, PATCH, DELETE or HEAD");
}

/* RFC 9110's token. */
static bool is_token(struct hd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_alnum && !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return name.len > 0;
}

static int read_headers(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                        void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct http_headers headers = {0};
    int err = 0;

    (void)field;
    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object of names to values");
    if (size > MAX_HEADERS)
        return hd_decl_fail(decl, at, "has at most %d headers", MAX_HEADERS);
    headers.list = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(*headers.list));
    if (!headers.list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_at member = hd_at_key(at, it.key, it.val);
        struct http_header *header = &headers.list[headers.count++];

        if (!is_token(it.key))
            return hd_decl_fail(decl, &member, "is not the name of a header");
        err = hd_decl_copy(decl, it.key, &header->name);
        if (err == 0)
            err = hd_decl_expr_in(decl, &member, 0, &header->value);
    }
    *(struct http_headers *)out = headers;
    return err;
}

static const struct hd_field fields[] = {
    {"url", read_url, offsetof(struct http_spec, url), true, 0, 0, 0},
    {"method", read_method, offsetof(struct http_spec, method), false, 0, 0, 0},
    {"headers", read_headers, offsetof(struct http_spec, headers), false, 0, 0, 0},
    {"body", hd_read_expr, offsetof(struct http_spec, body), false, 0, 0, 0},
    {"update", hd_read_update, offsetof(struct http_spec, update), false, 0, 0, HD_PLACE(RESPONSE)},
    {"expect", hd_read_expr, offsetof(struct http_spec, expect), false, 0, 0, HD_PLACE(RESPONSE)},
};

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct http_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0 && !spec->method.ptr)
        spec->method = spec->body ? HD_S("POST") : HD_S("GET");
    return err;
}

const struct hd_node_kind hd_node_http = {
    .name = "http",
    .read = read,
};
