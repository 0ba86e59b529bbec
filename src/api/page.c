/*
 * GET /, what is below /assets, and /icon.svg.
 *
 * Files are sent compressed, as they are embedded. For the few clients that do not accept gzip they
 * are unpacked once, and cached.
 */
#include "api/page.h"

#include <string.h>

#include "api/api.h"
#include "base/alloc.h"
#include "http/gzip.h"

#define INDEX HD_S("/index.html")
#define ASSETS HD_S("/assets/")
#define YEAR "max-age=31536000"
#define MAX_PATH_LEN 256

/* The page loads everything from this server, has no inline scripts, and cannot be framed. */
#define POLICY                                                                              \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " \
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "            \
    "frame-ancestors 'none'"

struct hd_site {
    struct hd_buf *plain; /* by the number of the file; empty: not requested yet */
};

/* ---- tags ------------------------------------------------------------- */

static struct hd_slice without_weak(struct hd_slice tag)
{
    return hd_slice_starts(tag, HD_S("W/")) ? hd_slice(tag.ptr + 2, tag.len - 2) : tag;
}

/* The next of `"a", W/"b"`; empty at the end. Quoted tags may contain commas. */
static struct hd_slice next_tag(struct hd_slice *list)
{
    const char *at = list->ptr, *end = list->ptr + list->len, *from;

    while (at < end && (*at == ' ' || *at == '\t' || *at == ','))
        at++;
    from = at;
    if (end - at > 2 && at[0] == 'W' && at[1] == '/')
        at += 2;
    if (at < end && *at == '"') {
        const char *quote = memchr(at + 1, '"', (size_t)(end - at - 1));

        at = quote ? quote + 1 : end;
    } else {
        while (at < end && *at != ',')
            at++;
    }
    *list = hd_slice(at, (size_t)(end - at));
    return hd_slice(from, (size_t)(at - from));
}

bool hd_etag_matches(struct hd_slice list, struct hd_slice etag)
{
    struct hd_slice tag;

    if (list.len == 0)
        return false;
    for (tag = next_tag(&list); tag.len > 0; tag = next_tag(&list)) {
        if (hd_slice_eq(tag, HD_S("*")) || hd_slice_eq(without_weak(tag), without_weak(etag)))
            return true;
    }
    return false;
}

/* ---- files ------------------------------------------------------------ */

static const struct hd_page_file *find_file(struct hd_slice path)
{
    for (size_t i = 0; i < hd_page_files_count; i++) {
        if (hd_slice_eq(hd_slice_cstr(hd_page_files[i].path), path))
            return &hd_page_files[i];
    }
    return NULL;
}

static int unpack(struct hd_site *site, const struct hd_page_file *file, struct hd_slice *out)
{
    struct hd_buf *plain = &site->plain[file - hd_page_files];
    int err = 0;

    if (plain->len == 0 && file->len > 0) {
        hd_buf_fini(plain);
        hd_buf_init(plain, file->len);
        err = hd_gunzip(hd_slice(file->packed, file->packed_len), plain);
    }
    *out = hd_buf_slice(plain);
    return err;
}

static void send_headers(struct hd_exchange *ex, const struct hd_page_file *file)
{
    hd_answer_header(ex, HD_S("Cache-Control"),
                     file->is_immutable ? HD_S("public, " YEAR ", immutable") : HD_S("no-cache"));
    hd_answer_header(ex, HD_S("ETag"), hd_slice_cstr(file->etag));
    hd_answer_header(ex, HD_S("Vary"), HD_S("accept-encoding"));
    hd_answer_header(ex, HD_S("Content-Security-Policy"), HD_S(POLICY));
    hd_answer_header(ex, HD_S("Cross-Origin-Opener-Policy"), HD_S("same-origin"));
    hd_answer_header(ex, HD_S("Referrer-Policy"), HD_S("no-referrer"));
    hd_answer_header(ex, HD_S("X-Frame-Options"), HD_S("DENY"));
}

static struct hd_step send_file(struct hd_call *call, const struct hd_page_file *file)
{
    struct hd_site *site = hd_api_site(call->api);
    struct hd_exchange *ex = call->exchange;
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_slice known = hd_request_value(request, HD_S("if-none-match"));
    struct hd_slice body = hd_slice(file->packed, file->packed_len);
    bool is_known = hd_etag_matches(known, hd_slice_cstr(file->etag));
    bool is_packed = hd_request_accepts_gzip(request);
    int err = !is_known && !is_packed ? unpack(site, file, &body) : 0;

    if (err)
        return hd_step_fail(err);
    hd_call_free(call);
    send_headers(ex, file);
    if (is_known) {
        hd_answer_empty(ex, 304);
        return HD_WAIT;
    }
    if (is_packed)
        hd_answer_header(ex, HD_S("Content-Encoding"), HD_S("gzip"));
    hd_answer_static(ex, 200, hd_slice_cstr(file->type), body);
    return HD_WAIT;
}

static struct hd_step send_or_refuse(struct hd_call *call, struct hd_slice path)
{
    const struct hd_page_file *file = find_file(path);

    return file ? send_file(call, file) : hd_call_refuse(call, 404, "Not Found");
}

/* ---- routes ----------------------------------------------------------- */

/*
 * Below a prefix /agents is not the root of the page's addresses. The root is sent as a relative
 * path, because a proxy may have removed more of the path.
 */
static struct hd_step redirect(struct hd_call *call, struct hd_slice path)
{
    const char *slash = memrchr(path.ptr, '/', path.len);
    size_t at = slash ? (size_t)(slash - path.ptr) + 1 : 0;
    const char *where =
        hd_arena_printf(call->arena, "./%.*s/", (int)(path.len - at), path.ptr + at);

    if (!where)
        return hd_step_fail(HD_ENOMEM);
    hd_call_header(call, HD_S("Location"), hd_slice_cstr(where));
    call->status = 308;
    return HD_DONE;
}

static struct hd_step get_index(struct hd_call *call)
{
    struct hd_slice path = hd_exchange_request(call->exchange)->path;

    if (path.len > 0 && path.ptr[path.len - 1] != '/')
        return redirect(call, path);
    return send_or_refuse(call, INDEX);
}

static struct hd_step get_asset(struct hd_call *call)
{
    struct hd_slice name = call->params[0];
    char path[MAX_PATH_LEN];

    if (name.len + ASSETS.len > sizeof(path))
        name.len = 0; /* no file has this name */
    memcpy(path, ASSETS.ptr, ASSETS.len);
    if (name.len > 0)
        memcpy(path + ASSETS.len, name.ptr, name.len);
    return send_or_refuse(call, hd_slice(path, ASSETS.len + name.len));
}

static struct hd_step get_icon(struct hd_call *call)
{
    return send_or_refuse(call, HD_S("/icon.svg"));
}

bool hd_page_is(struct hd_slice path)
{
    return hd_slice_eq(path, HD_S("/")) || hd_slice_eq(path, HD_S("/icon.svg")) ||
           hd_slice_starts(path, ASSETS);
}

/* ---- public functions ------------------------------------------------- */

int hd_site_create(struct hd_site **out)
{
    struct hd_site *site = hd_calloc(1, sizeof(*site));

    if (!site)
        return HD_ENOMEM;
    site->plain = hd_calloc(hd_page_files_count, sizeof(*site->plain));
    if (!site->plain) {
        hd_free(site);
        return HD_ENOMEM;
    }
    *out = site;
    return 0;
}

void hd_site_destroy(struct hd_site *site)
{
    if (!site)
        return;
    for (size_t i = 0; i < hd_page_files_count; i++)
        hd_buf_fini(&site->plain[i]);
    hd_free(site->plain);
    hd_free(site);
}

/* Without tags: /openapi.json omits files. */
static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_index},
    {.method = HD_METHOD_GET,
     .pattern = "/assets/{path*}",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_asset},
    {.method = HD_METHOD_GET,
     .pattern = "/icon.svg",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_icon},
};

const struct hd_routes hd_routes_page = {routes, HD_COUNT(routes)};
