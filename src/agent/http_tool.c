#include "agent/http_tool.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "graph/node/idempotency_key.h"
#include "secret/secret.h"

#define MAX_URL ((size_t)64 << 10)
#define MAX_TEXT ((size_t)1 << 20)  /* of headers */
#define MAX_BODY ((size_t)16 << 20) /* of a request */
#define MAX_MS (INT64_C(24) * 60 * 60 * 1000)

static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};

/* ---- checking --------------------------------------------------------- */

static bool has_control(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
            return true;
    }
    return false;
}

/* The end of the host: at the path, or at the query. */
static size_t host_end(struct hd_slice url)
{
    size_t i = hd_slice_starts(url, HD_S("https://")) ? 8 : 7;

    while (i < url.len && url.ptr[i] != '/' && url.ptr[i] != '?')
        i++;
    return i;
}

static int check_url(const struct hd_val *val, struct heddle_error *fault)
{
    struct hd_slice url = hd_val_get_string(val);
    bool is_open = false;
    size_t host;

    if (!hd_slice_starts(url, HD_S("http://")) && !hd_slice_starts(url, HD_S("https://")))
        return hd_error_set(fault, HD_EINVAL, "\"url\" must begin with http:// or https://");
    if (has_control(url) || memchr(url.ptr, ' ', url.len) || memchr(url.ptr, '#', url.len))
        return hd_error_set(fault, HD_EINVAL,
                            "\"url\" must have no spaces, control characters or #");
    host = host_end(url);
    if (url.ptr[host - 1] == '/')
        return hd_error_set(fault, HD_EINVAL, "\"url\" has no host");
    for (size_t i = 0; i < url.len; i++) {
        bool is_brace = url.ptr[i] == '{' || url.ptr[i] == '}';

        if (is_brace && i < host)
            return hd_error_set(fault, HD_EINVAL, "\"url\" must have no {name} in its host");
        if (is_brace && is_open != (url.ptr[i] == '}'))
            return hd_error_set(fault, HD_EINVAL, "\"url\" has an unmatched brace");
        is_open = is_brace ? !is_open : is_open;
    }
    return is_open ? hd_error_set(fault, HD_EINVAL, "\"url\" has an unmatched brace") : 0;
}

static int check_headers(const struct hd_val *headers, struct heddle_error *fault)
{
    if (!hd_val_is_object(headers))
        return hd_error_set(fault, HD_EINVAL, "\"headers\" must be an object of names to texts");
    if (hd_val_count(headers) > HD_TOOL_HTTP_MAX_HEADERS)
        return hd_error_set(fault, HD_EINVAL, "a tool has at most %d headers",
                            HD_TOOL_HTTP_MAX_HEADERS);
    for (size_t i = 0; i < hd_val_count(headers); i++) {
        struct hd_val *key;
        const struct hd_val *val = hd_val_member(headers, i, &key);

        if (!hd_slice_is_token(hd_val_get_string(key)))
            return hd_error_set(fault, HD_EINVAL, "invalid header name in \"headers\"");
        /* null: not sent */
        if (!hd_val_is_null(val) && (!hd_val_is_string(val) || has_control(hd_val_get_string(val))))
            return hd_error_set(fault, HD_EINVAL, "header \"%.*s\" must be a line of text",
                                (int)hd_val_get_string(key).len, hd_val_get_string(key).ptr);
    }
    return 0;
}

static int check_method(const struct hd_val *val, struct heddle_error *fault)
{
    for (size_t i = 0; i < HD_COUNT(methods); i++) {
        if (hd_slice_eq(hd_val_get_string(val), hd_slice_cstr(methods[i])))
            return 0;
    }
    return hd_error_set(fault, HD_EINVAL,
                        "\"method\" must be GET, POST, PUT, PATCH, DELETE or HEAD");
}

static bool is_names(const struct hd_val *val)
{
    for (size_t i = 0; hd_val_is_list(val) && i < hd_val_count(val); i++) {
        if (!hd_val_is_string(hd_val_at(val, i)))
            return false;
    }
    return hd_val_is_list(val);
}

static int check_query(const struct hd_val *val, struct heddle_error *fault)
{
    if (is_names(val))
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"query\" must be a list of arguments");
}

static int check_body(const struct hd_val *val, struct heddle_error *fault)
{
    if (is_names(val) || hd_val_type(val) == HD_VAL_BOOL)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"body\" must be true or a list of arguments");
}

static int check_result(const struct hd_val *val, struct heddle_error *fault)
{
    struct hd_slice text = hd_val_get_string(val);

    if (hd_slice_eq(text, HD_S("text")) || hd_slice_eq(text, HD_S("json")) ||
        (hd_val_count(val) == 1 && hd_val_is_string(hd_val_get(val, HD_S("json")))))
        return 0;
    return hd_error_set(fault, HD_EINVAL,
                        "\"result\" must be \"text\", \"json\" or {\"json\": \"a.path\"}");
}

static int check_timeout(const struct hd_val *val, struct heddle_error *fault)
{
    int64_t ms;

    if (hd_val_get_int(val, &ms) && ms >= 1 && ms <= MAX_MS)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"timeout_ms\" must be from 1 to a day");
}

static int check_read_only(const struct hd_val *val, struct heddle_error *fault)
{
    if (hd_val_type(val) == HD_VAL_BOOL)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"read_only\" must be true or false");
}

static int check_name(const struct hd_val *val, struct heddle_error *fault)
{
    if (hd_val_get_string(val).len > 0)
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"name\" must be a string");
}

static int check_description(const struct hd_val *val, struct heddle_error *fault)
{
    if (hd_val_is_string(val))
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"description\" must be a string");
}

static int check_parameters(const struct hd_val *val, struct heddle_error *fault)
{
    if (hd_val_is_object(val))
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"parameters\" must be a JSON Schema");
}

static const struct {
    const char *name;
    int (*check)(const struct hd_val *val, struct heddle_error *fault);
    bool is_required;
} members[] = {
    {"name", check_name, true},
    {"description", check_description, false},
    {"parameters", check_parameters, false},
    {"url", check_url, true},
    {"method", check_method, false},
    {"headers", check_headers, false},
    {"query", check_query, false},
    {"body", check_body, false},
    {"result", check_result, false},
    {"timeout_ms", check_timeout, false},
    {"read_only", check_read_only, false},
};

int hd_tool_http_check(const struct hd_val *tool, struct heddle_error *fault)
{
    size_t known = 0;
    int err = 0;

    if (!hd_val_is_object(tool))
        return hd_error_set(fault, HD_EINVAL, "a tool must be an object, not %s",
                            hd_val_type_name(tool));
    for (size_t i = 0; i < HD_COUNT(members) && !err; i++) {
        const struct hd_val *val = hd_val_get(tool, hd_slice_cstr(members[i].name));

        known += val != NULL;
        if (members[i].is_required || !hd_val_is_null(val))
            err = members[i].check(val, fault);
    }
    for (size_t i = 0; i < hd_val_count(tool) && !err && known < hd_val_count(tool); i++) {
        struct hd_val *key;
        size_t j = 0;

        (void)hd_val_member(tool, i, &key);
        while (j < HD_COUNT(members) &&
               !hd_slice_eq(hd_val_get_string(key), hd_slice_cstr(members[j].name)))
            j++;
        if (j == HD_COUNT(members))
            err =
                hd_error_set(fault, HD_EINVAL, "unknown member \"%.*s\"",
                             hd_val_get_string(key).len > 80 ? 80 : (int)hd_val_get_string(key).len,
                             hd_val_get_string(key).ptr);
    }
    return err;
}

/* ---- the URL ---------------------------------------------------------- */

static int encode_val(struct hd_buf *out, const struct hd_val *val)
{
    struct hd_buf text;
    int err;

    if (hd_val_is_string(val))
        return hd_buf_append_escaped(out, hd_val_get_string(val));
    hd_buf_init(&text, MAX_URL);
    err = hd_val_write_text(&text, val);
    if (!err)
        err = hd_buf_append_escaped(out, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err;
}

static int fill_name(struct hd_buf *url, struct hd_slice name, const struct hd_val *args,
                     struct heddle_error *fault)
{
    const struct hd_val *val = hd_val_get(args, name);
    size_t before = url->len;
    int err;

    if (hd_val_is_null(val))
        return hd_error_set(fault, HD_EINVAL, "\"%.*s\" is required", (int)name.len, name.ptr);
    err = encode_val(url, val);
    if (!err && url->len == before)
        err = hd_error_set(fault, HD_EINVAL, "\"%.*s\" must not be empty", (int)name.len, name.ptr);
    return err;
}

/* The path's levels are fixed by the declaration: no argument may lead up. */
static bool has_dots(struct hd_slice url)
{
    size_t from = host_end(url), to;

    for (; from < url.len && url.ptr[from] == '/'; from = to) {
        struct hd_slice part;

        for (to = ++from; to < url.len && url.ptr[to] != '/' && url.ptr[to] != '?';)
            to++;
        part = hd_slice(url.ptr + from, to - from);
        if (hd_slice_eq(part, HD_S(".")) || hd_slice_eq(part, HD_S("..")))
            return true;
    }
    return false;
}

static int fill_path(struct hd_buf *out, struct hd_slice url, const struct hd_val *args,
                     struct heddle_error *fault)
{
    const char *pos = url.ptr, *end = url.ptr + url.len;
    int err = 0;

    while (pos < end && !err) {
        const char *brace = memchr(pos, '{', (size_t)(end - pos));
        const char *close = brace ? memchr(brace, '}', (size_t)(end - brace)) : NULL;

        err = hd_buf_append(out, pos, (size_t)((brace ? brace : end) - pos));
        pos = brace ? close + 1 : end;
        if (brace && !err)
            err = fill_name(out, hd_slice(brace + 1, (size_t)(close - brace - 1)), args, fault);
    }
    if (!err && has_dots(hd_buf_slice(out)))
        err = hd_error_set(fault, HD_EINVAL, "an argument must not be . or .. in a path");
    return err;
}

static bool is_in_path(struct hd_slice url, struct hd_slice name)
{
    for (size_t i = 0; i + name.len + 2 <= url.len; i++) {
        if (url.ptr[i] == '{' && url.ptr[i + 1 + name.len] == '}' &&
            hd_slice_eq(hd_slice(url.ptr + i + 1, name.len), name))
            return true;
    }
    return false;
}

static int add_pair(struct hd_buf *out, struct hd_slice name, const struct hd_val *val)
{
    char mark = out->len > 0 && memchr(out->ptr, '?', out->len) ? '&' : '?';
    int err = hd_buf_append_byte(out, (uint8_t)mark);

    if (!err)
        err = hd_buf_append_escaped(out, name);
    if (!err)
        err = hd_buf_append_byte(out, '=');
    return err ? err : encode_val(out, val);
}

/* Skips null; a list becomes several. */
static int add_query(struct hd_buf *out, struct hd_slice name, const struct hd_val *val)
{
    int err = 0;

    if (hd_val_is_null(val))
        return 0;
    if (!hd_val_is_list(val))
        return add_pair(out, name, val);
    for (size_t i = 0; i < hd_val_count(val) && !err; i++)
        err = add_pair(out, name, hd_val_at(val, i));
    return err;
}

/* ---- placement of arguments ------------------------------------------- */

static bool has_name(const struct hd_val *names, struct hd_slice name)
{
    for (size_t i = 0; hd_val_is_list(names) && i < hd_val_count(names); i++) {
        if (hd_slice_eq(hd_val_get_string(hd_val_at(names, i)), name))
            return true;
    }
    return false;
}

struct places {
    struct hd_slice url;
    const struct hd_val *query, *body;
    bool query_rest, body_rest; /* receives arguments without a declared place */
};

static bool sends_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

static struct places find_places(const struct hd_val *tool, const char *method)
{
    struct places places = {.url = hd_val_get_string(hd_val_get(tool, HD_S("url"))),
                            .query = hd_val_get(tool, HD_S("query")),
                            .body = hd_val_get(tool, HD_S("body"))};
    bool is_said = !hd_val_is_null(places.query) || !hd_val_is_null(places.body);

    places.body_rest = is_said ? hd_val_is_true(places.body) : sends_body(method);
    places.query_rest = !is_said && !sends_body(method);
    return places;
}

static int place_args(struct hd_tool_http_request *request, const struct places *places,
                      const struct hd_val *args, struct hd_val **body)
{
    int err = 0;

    for (size_t i = 0; i < hd_val_count(args) && !err; i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(args, i, &key);
        struct hd_slice name = hd_val_get_string(key);
        bool is_query = has_name(places->query, name), is_body = has_name(places->body, name);

        if (!is_query && !is_body && !is_in_path(places->url, name)) {
            is_query = places->query_rest;
            is_body = places->body_rest;
        }
        if (is_query)
            err = add_query(&request->url, name, val);
        if (is_body)
            *body = hd_val_with(*body, name, hd_val_ref(val));
    }
    return err || *body ? err : HD_ENOMEM;
}

static int fill_args(struct hd_tool_http_request *request, const struct hd_val *tool,
                     const struct hd_val *args, struct heddle_error *fault)
{
    struct places places = find_places(tool, request->method);
    struct hd_val *body = hd_val_object();
    int err = body ? fill_path(&request->url, places.url, args, fault) : HD_ENOMEM;

    if (!err)
        err = place_args(request, &places, args, &body);
    request->has_body = places.body_rest || hd_val_is_list(places.body);
    if (!err && request->has_body)
        err = hd_val_render(&request->body, body);
    if (!err)
        err = hd_buf_append_byte(&request->url, 0);
    hd_val_unref(body);
    return err;
}

/* ---- headers ---------------------------------------------------------- */

/* A marker may be part of a text: "Bearer heddle:secret:…". */
static int add_value(struct hd_tool_http_request *request, struct hd_slice text,
                     const struct hd_val *secrets, struct heddle_error *fault)
{
    struct hd_slice prefix = HD_S(HD_SECRET_PREFIX);
    int err = 0;

    while (text.len > 0 && !err) {
        size_t len = 1;

        if (hd_slice_starts(text, prefix)) {
            const struct hd_val *secret = hd_secrets_first(text, secrets, &len);

            if (!secret)
                return hd_error_set(fault, HD_EINVAL,
                                    "the credentials of this tool are no longer available");
            if (hd_val_is_string(secret) && has_control(hd_val_get_string(secret)))
                return hd_error_set(fault, HD_EINVAL, "the credentials of this tool are not text");
            if (request->secret_count < HD_TOOL_HTTP_MAX_HEADERS && hd_val_is_string(secret))
                request->secrets[request->secret_count++] = hd_val_get_string(secret);
            err = hd_val_write_text(&request->text, secret);
        } else {
            err = hd_buf_append_byte(&request->text, (uint8_t)text.ptr[0]);
        }
        text = hd_slice(text.ptr + len, text.len - len);
    }
    return err;
}

static int add_header(struct hd_tool_http_request *request, struct hd_slice name,
                      struct hd_slice value, const struct hd_val *secrets,
                      struct heddle_error *fault)
{
    int err = hd_buf_append_slice(&request->text, name);

    if (!err)
        err = hd_buf_append(&request->text, ": ", 2);
    if (!err)
        err = add_value(request, value, secrets, fault);
    request->header_count++;
    return err ? err : hd_buf_append_byte(&request->text, 0);
}

/* The text no longer moves. The values of headers with secret names are secret too. */
static void find_lines(struct hd_tool_http_request *request)
{
    const char *line = request->text.ptr;

    for (size_t i = 0; i < request->header_count; i++) {
        const char *colon = strchr(line, ':');

        request->headers[i] = line;
        if (hd_secret_is_name(hd_slice(line, (size_t)(colon - line))) && colon[2])
            request->secrets[request->secret_count++] = hd_slice_cstr(colon + 2);
        line += strlen(line) + 1;
    }
}

static int fill_headers(struct hd_tool_http_request *request, const struct hd_val *headers,
                        const struct hd_val *secrets, struct heddle_error *fault)
{
    bool has_type = false;
    int err = 0;

    for (size_t i = 0; i < hd_val_count(headers) && !err; i++) {
        struct hd_val *key;
        const struct hd_val *val = hd_val_member(headers, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        request->has_key = request->has_key || strcasecmp(name.ptr, HD_CALL_KEY_HEADER) == 0;
        if (hd_val_is_null(val))
            continue;
        has_type = has_type || strcasecmp(name.ptr, "content-type") == 0;
        err = add_header(request, name, hd_val_get_string(val), secrets, fault);
    }
    if (!err && request->has_body && !has_type)
        err = add_header(request, HD_S("Content-Type"), HD_S("application/json"), NULL, fault);
    if (!err)
        find_lines(request);
    return err;
}

/* ---- whole requests --------------------------------------------------- */

void hd_tool_http_request_init(struct hd_tool_http_request *request)
{
    memset(request, 0, sizeof(*request));
    hd_buf_init(&request->url, MAX_URL);
    hd_buf_init(&request->text, MAX_TEXT);
    hd_buf_init(&request->body, MAX_BODY);
}

void hd_tool_http_request_fini(struct hd_tool_http_request *request)
{
    hd_buf_fini(&request->url);
    hd_buf_fini(&request->text);
    hd_buf_fini(&request->body);
}

static const char *find_method(const struct hd_val *tool)
{
    struct hd_slice said = hd_val_get_string(hd_val_get(tool, HD_S("method")));
    const struct hd_val *body = hd_val_get(tool, HD_S("body"));

    for (size_t i = 0; i < HD_COUNT(methods); i++) {
        if (hd_slice_eq(said, hd_slice_cstr(methods[i])))
            return methods[i];
    }
    return hd_val_is_list(body) || hd_val_is_true(body) ? "POST" : "GET";
}

int hd_tool_http_request(struct hd_tool_http_request *request, const struct hd_val *tool,
                         const struct hd_val *args, const struct hd_val *secrets,
                         struct heddle_error *fault)
{
    int err;

    request->method = find_method(tool);
    err = fill_args(request, tool, args, fault);
    if (!err)
        err = fill_headers(request, hd_val_get(tool, HD_S("headers")), secrets, fault);
    if (err == HD_ELIMIT)
        err = hd_error_set(fault, HD_EINVAL, "the arguments are too large");
    return err;
}

/* ---- results ---------------------------------------------------------- */

static const struct hd_val *step(const struct hd_val *val, struct hd_slice name)
{
    size_t index = 0;

    if (!hd_val_is_list(val))
        return hd_val_get(val, name);
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9' || i > 9)
            return NULL;
        index = index * 10 + (size_t)(name.ptr[i] - '0');
    }
    return name.len > 0 ? hd_val_at(val, index) : NULL;
}

/* `a.0.b`; an empty path is the whole. */
static const struct hd_val *walk(const struct hd_val *val, struct hd_slice path)
{
    while (path.len > 0 && val) {
        const char *dot = memchr(path.ptr, '.', path.len);
        size_t len = dot ? (size_t)(dot - path.ptr) : path.len;

        val = step(val, hd_slice(path.ptr, len));
        path = hd_slice(path.ptr + len + (dot ? 1 : 0), path.len - len - (dot ? 1 : 0));
    }
    return val;
}

int hd_tool_http_result(const struct hd_val *tool, struct hd_slice body, struct hd_val **out,
                        struct heddle_error *fault)
{
    const struct hd_val *result = hd_val_get(tool, HD_S("result")), *found;
    struct hd_slice path = hd_val_get_string(hd_val_get(result, HD_S("json")));
    struct hd_val *json = NULL;
    int err;

    if (!hd_val_is_object(result) && !hd_slice_eq(hd_val_get_string(result), HD_S("json"))) {
        *out = hd_val_string(body);
        return *out ? 0 : HD_ENOMEM;
    }
    err = hd_val_parse_json(body, &json, NULL);
    if (err)
        return err == HD_ENOMEM ? err : hd_error_set(fault, HD_EINVAL, "the response is not JSON");
    found = walk(json, path);
    if (found)
        *out = hd_val_ref(found);
    else
        err = hd_error_set(fault, HD_EINVAL, "the response has no \"%.*s\"",
                           path.len > 100 ? 100 : (int)path.len, path.ptr);
    hd_val_unref(json);
    return err;
}
