/*
 * Elicitations of MCP servers in the middle of a call, as interrupts:
 *
 *   {"type": "mcp_input", "server", "tool", "message", "requests": {KEY: {"method", "params"}}}
 *
 * Everything that must survive until the reply (the server's opaque state, earlier replies) is in
 * the interrupt too: it is all that is stored while the run waits.
 */
#include <string.h>

#include "agent/mcp/mcp_proto.h"

static struct hd_slice question_text(const struct hd_val *object, const char *key)
{
    return hd_val_get_string(hd_val_get(object, hd_slice_cstr(key)));
}

const char *hd_mcp_ask_check(const struct hd_val *requests)
{
    for (size_t i = 0; i < hd_val_count(requests); i++) {
        const struct hd_val *request = hd_val_member(requests, i, NULL);
        struct hd_slice method = question_text(request, "method");

        if (!hd_slice_eq(method, HD_S("elicitation/create")))
            return method.len > 0 ? method.ptr : "an unknown kind of input";
    }
    return NULL;
}

static struct hd_val *join_messages(const struct hd_val *requests)
{
    struct hd_val *text = NULL;
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, (size_t)1 << 20);
    for (size_t i = 0; i < hd_val_count(requests) && !err; i++) {
        const struct hd_val *request = hd_val_member(requests, i, NULL);

        if (i > 0)
            err = hd_buf_append_byte(&buf, '\n');
        if (!err)
            err = hd_buf_append_slice(
                &buf, question_text(hd_val_get(request, HD_S("params")), "message"));
    }
    if (!err)
        text = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return text;
}

struct hd_val *hd_mcp_ask_question(struct hd_slice server, struct hd_slice tool,
                                   const struct hd_val *requests, const struct hd_val *state,
                                   const struct hd_val *earlier)
{
    struct hd_val *question = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("mcp_input"));

    question = hd_val_with(question, HD_S("server"), hd_val_string(server));
    question = hd_val_with(question, HD_S("tool"), hd_val_string(tool));
    question = hd_val_with(question, HD_S("message"), join_messages(requests));
    question = hd_val_with(question, HD_S("requests"), hd_val_ref(requests));
    if (state)
        question = hd_val_with(question, HD_S("request_state"), hd_val_ref(state));
    if (earlier)
        question = hd_val_with(question, HD_S("answered"), hd_val_ref(earlier));
    return question;
}

bool hd_mcp_ask_is_question(const struct hd_val *question, struct hd_slice server,
                            struct hd_slice tool)
{
    return hd_slice_eq(question_text(question, "type"), HD_S("mcp_input")) &&
           hd_slice_eq(question_text(question, "server"), server) &&
           hd_slice_eq(question_text(question, "tool"), tool) &&
           hd_val_is_object(hd_val_get(question, HD_S("requests")));
}

/* ---- replies ---------------------------------------------------------- */

static struct hd_val *make_response(const char *action, struct hd_val *content)
{
    struct hd_val *response = hd_val_with(hd_val_object(), HD_S("action"), hd_val_cstr(action));

    return content ? hd_val_with(response, HD_S("content"), content) : response;
}

/* Takes `content`; adds the form's defaults for missing fields. */
static struct hd_val *add_defaults(struct hd_val *content, const struct hd_val *request)
{
    const struct hd_val *schema =
        hd_val_get(hd_val_get(request, HD_S("params")), HD_S("requestedSchema"));
    const struct hd_val *properties = hd_val_get(schema, HD_S("properties"));

    if (!hd_val_is_object(properties))
        return content;
    for (size_t i = 0; i < hd_val_count(properties) && content; i++) {
        struct hd_val *key, *property = hd_val_member(properties, i, &key);
        const struct hd_val *value = hd_val_get(property, HD_S("default"));

        if (value && !hd_val_get(content, hd_val_get_string(key)))
            content = hd_val_with(content, hd_val_get_string(key), hd_val_ref(value));
    }
    return content;
}

static bool is_url(const struct hd_val *request)
{
    return hd_slice_eq(question_text(hd_val_get(request, HD_S("params")), "mode"), HD_S("url"));
}

/* Takes `content` (NULL: empty). A URL elicitation gets no content. */
static struct hd_val *accept(const struct hd_val *request, struct hd_val *content)
{
    if (is_url(request)) {
        hd_val_unref(content);
        return make_response("accept", NULL);
    }
    content = add_defaults(content ? content : hd_val_object(), request);
    return content ? make_response("accept", content) : NULL;
}

/* {"type": "accept" | "edit" | "response" | "ignore", "args"}, as chat clients send it. */
static struct hd_val *read_inbox(const struct hd_val *request, struct hd_slice type,
                                 const struct hd_val *args)
{
    const struct hd_val *inner = hd_val_get(args, HD_S("args"));

    if (hd_slice_eq(type, HD_S("ignore")) || hd_slice_eq(type, HD_S("reject")))
        return make_response("decline", NULL);
    if (hd_val_is_object(inner))
        args = inner;
    return accept(request, hd_val_is_object(args) ? hd_val_ref(args) : NULL);
}

static bool is_inbox(struct hd_slice type)
{
    return hd_slice_eq(type, HD_S("accept")) || hd_slice_eq(type, HD_S("edit")) ||
           hd_slice_eq(type, HD_S("response")) || hd_slice_eq(type, HD_S("ignore")) ||
           hd_slice_eq(type, HD_S("approve")) || hd_slice_eq(type, HD_S("reject"));
}

/* The reply to a form with one field may be its value alone. */
static struct hd_val *read_lone(const struct hd_val *request, const struct hd_val *answer)
{
    const struct hd_val *schema =
        hd_val_get(hd_val_get(request, HD_S("params")), HD_S("requestedSchema"));
    const struct hd_val *properties = hd_val_get(schema, HD_S("properties"));
    struct hd_val *key;

    if (hd_val_is_object(properties) && hd_val_count(properties) == 1) {
        (void)hd_val_member(properties, 0, &key);
        return accept(request,
                      hd_val_with(hd_val_object(), hd_val_get_string(key), hd_val_ref(answer)));
    }
    return hd_val_truth(answer) ? accept(request, NULL) : make_response("decline", NULL);
}

static struct hd_val *response_of(const struct hd_val *request, const struct hd_val *answer)
{
    struct hd_slice action = question_text(answer, "action"), type = question_text(answer, "type");
    const struct hd_val *content = hd_val_get(answer, HD_S("content"));

    if (hd_val_is_list(answer) && hd_val_count(answer) == 1)
        return response_of(request, hd_val_at(answer, 0));
    if (hd_val_is_null(answer))
        return make_response("cancel", NULL);
    if (hd_slice_eq(action, HD_S("accept")))
        return accept(request, hd_val_is_object(content) ? hd_val_ref(content) : NULL);
    if (hd_slice_eq(action, HD_S("decline")) || hd_slice_eq(action, HD_S("cancel")))
        return make_response(action.ptr, NULL);
    if (is_inbox(type))
        return read_inbox(request, type, hd_val_get(answer, HD_S("args")));
    if (hd_val_is_object(answer))
        return accept(request, hd_val_ref(answer));
    return read_lone(request, answer);
}

/* One request: the reply belongs to it. Several: each has a member. */
struct hd_val *hd_mcp_ask_responses(const struct hd_val *requests, const struct hd_val *answer)
{
    struct hd_val *responses = hd_val_object();
    size_t count = hd_val_count(requests);

    for (size_t i = 0; i < count && responses; i++) {
        struct hd_val *key, *request = hd_val_member(requests, i, &key);
        const struct hd_val *own = hd_val_get(answer, hd_val_get_string(key));

        if (!hd_val_is_object(own) && (count == 1 || !hd_val_is_object(answer)))
            own = answer;
        else if (count == 1 && !hd_val_get(own, HD_S("action")))
            own = answer;
        responses = hd_val_with(responses, hd_val_get_string(key), response_of(request, own));
    }
    return responses;
}

/* A form is complete when all required fields are present. */
static bool is_complete(const struct hd_val *request, const struct hd_val *content)
{
    const struct hd_val *schema =
        hd_val_get(hd_val_get(request, HD_S("params")), HD_S("requestedSchema"));
    const struct hd_val *required = hd_val_get(schema, HD_S("required"));

    for (size_t i = 0; i < hd_val_count(required); i++) {
        if (!hd_val_get(content, hd_val_get_string(hd_val_at(required, i))))
            return false;
    }
    return true;
}

struct hd_val *hd_mcp_ask_defaults(const struct hd_val *request)
{
    struct hd_val *content;

    if (is_url(request))
        return make_response("decline", NULL);
    content = add_defaults(hd_val_object(), request);
    if (!content)
        return NULL;
    if (is_complete(request, content))
        return make_response("accept", content);
    hd_val_unref(content);
    return make_response("decline", NULL);
}
