#include "api/request/graph_headers.h"

#include <string.h>

#include "config/config.h"

/* For tools that pass it on; like all secrets it stays in memory. */
static bool is_user_token(struct hd_slice name)
{
    return hd_slice_eq(name, HD_S("x-supabase-access-token"));
}

/* These are never passed to graphs, regardless of the configuration. */
static bool may_be_secret_header(struct hd_slice name)
{
    static const char *const parts[] = {"key",    "token",    "secret",           "auth", "cookie",
                                        "passwd", "password", "heddle-forwarded", NULL};

    for (size_t i = 0; parts[i]; i++) {
        if (memmem(name.ptr, name.len, parts[i], strlen(parts[i])))
            return true;
    }
    return false;
}

/* Stored headers are chosen by name, since other headers may hold anything. */
static bool is_listed_header(const struct hd_config_list *list, struct hd_slice name)
{
    for (size_t i = 0; i < list->count; i++) {
        struct hd_slice item = list->items[i], part = name;

        if (item.len > 0 && item.ptr[item.len - 1] == '*') {
            item.len--;
            part.len = part.len < item.len ? part.len : item.len;
        }
        if (hd_slice_eq_nocase(part, item))
            return true;
    }
    return false;
}

static bool is_for_graphs(const struct hd_config *config, struct hd_slice name, bool with_token)
{
    return is_listed_header(&config->headers_to_graphs, name) &&
           !is_listed_header(&config->headers_not_to_graphs, name) &&
           (is_user_token(name) ? with_token : !may_be_secret_header(name));
}

int hd_graph_headers_write(struct hd_call *call, bool with_token, struct hd_slice *out)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, (size_t)1 << 20);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct hd_header *header = &request->headers[i];

        if (!is_for_graphs(call->app->config, header->name, with_token))
            continue;
        hd_jw_key(&jw, header->name);
        hd_jw_string(&jw, header->value);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, call->arena, out);
}
