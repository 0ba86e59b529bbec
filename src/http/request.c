#include "http/request.h"

#include "base/compiler.h"

static const char *const names[] = {
    [HD_METHOD_OTHER] = "",        [HD_METHOD_GET] = "GET",         [HD_METHOD_HEAD] = "HEAD",
    [HD_METHOD_POST] = "POST",     [HD_METHOD_PUT] = "PUT",         [HD_METHOD_PATCH] = "PATCH",
    [HD_METHOD_DELETE] = "DELETE", [HD_METHOD_OPTIONS] = "OPTIONS",
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool hd_slice_eq_nocase(struct hd_slice a, struct hd_slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

const char *hd_method_name(enum hd_method method)
{
    return (size_t)method < HD_COUNT(names) ? names[method] : "";
}

size_t hd_method_list(unsigned mask, char out[64])
{
    size_t len = 0;

    for (size_t i = HD_METHOD_GET; i < HD_COUNT(names); i++) {
        if (mask & (1u << i))
            len += (size_t)snprintf(out + len, 64 - len, "%s%s", len ? ", " : "", names[i]);
    }
    out[len] = '\0';
    return len;
}

bool hd_request_header(const struct hd_http_request *request, struct hd_slice name,
                       struct hd_slice *out)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (hd_slice_eq(request->headers[i].name, name)) {
            *out = request->headers[i].value;
            return true;
        }
    }
    return false;
}

struct hd_slice hd_request_value(const struct hd_http_request *request, struct hd_slice name)
{
    struct hd_slice value = hd_slice("", 0);

    (void)hd_request_header(request, name, &value);
    return value;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct hd_slice trim_value(struct hd_slice s)
{
    while (s.len > 0 && is_blank(s.ptr[0]))
        s = hd_slice(s.ptr + 1, s.len - 1);
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* Splits off the text before the first `mark`; all of it when there is none. */
static struct hd_slice cut(struct hd_slice *rest, char mark)
{
    const char *end = rest->len ? memchr(rest->ptr, mark, rest->len) : NULL;
    struct hd_slice part = *rest;

    if (!end) {
        *rest = hd_slice(NULL, 0);
        return trim_value(part);
    }
    part.len = (size_t)(end - part.ptr);
    *rest = hd_slice(end + 1, rest->len - part.len - 1);
    return trim_value(part);
}

bool hd_request_is_json(const struct hd_http_request *request)
{
    struct hd_slice type = hd_request_value(request, HD_S("content-type"));
    struct hd_slice name = trim_value(cut(&type, ';'));
    size_t skip = name.len > 5 ? name.len - 5 : 0;

    if (hd_slice_eq_nocase(name, HD_S("application/json")))
        return true;
    return name.len > 12 && hd_slice_eq_nocase(hd_slice(name.ptr, 12), HD_S("application/")) &&
           hd_slice_eq_nocase(hd_slice(name.ptr + skip, name.len - skip), HD_S("+json"));
}

/* "q=0", "q=0.", "q=0.000": not accepted. */
static bool is_refused(struct hd_slice parameters)
{
    while (parameters.len > 0) {
        struct hd_slice q = cut(&parameters, ';');

        if (q.len < 3 || lower(q.ptr[0]) != 'q' || q.ptr[1] != '=')
            continue;
        for (size_t i = 2; i < q.len; i++) {
            if (q.ptr[i] != '0' && q.ptr[i] != '.')
                return false;
        }
        return true;
    }
    return false;
}

/* An explicit gzip takes precedence over "*". */
bool hd_request_accepts_gzip(const struct hd_http_request *request)
{
    struct hd_slice rest = hd_request_value(request, HD_S("accept-encoding"));
    bool by_star = false;

    while (rest.len > 0) {
        struct hd_slice item = cut(&rest, ',');
        struct hd_slice coding = cut(&item, ';');

        if (hd_slice_eq_nocase(coding, HD_S("gzip")) || hd_slice_eq_nocase(coding, HD_S("x-gzip")))
            return !is_refused(item);
        if (hd_slice_eq(coding, HD_S("*")))
            by_star = !is_refused(item);
    }
    return by_star;
}
