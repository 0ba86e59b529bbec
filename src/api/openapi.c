/*
 * GET /openapi.json, generated from the tables of endpoints, and GET /docs, a page that shows it.
 *
 * An endpoint names its parameters and schemas; their definitions are in the tables here and in
 * schemas.json. A test finds names without a definition.
 */
#include <heddle.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/custom.h"
#include "auth/digest.h"
#include "config/config.h"

extern const char hd_api_schemas[];
extern const size_t hd_api_schemas_len;
extern const char hd_docs_page[];
extern const size_t hd_docs_page_len;

#define BOOLEAN "{\"type\":\"boolean\"}"
#define STRING "{\"type\":\"string\"}"
#define UUID "{\"type\":\"string\",\"format\":\"uuid\"}"
#define STRINGS "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define TEXT "{\"type\":\"string\",\"minLength\":1}"
#define LABELS "{\"type\":\"string\",\"pattern\":\"^[^.]+(\\\\.[^.]+)*$\"}"
#define INTEGER "{\"type\":\"integer\",\"minimum\":0}"
#define TIME "{\"type\":\"string\",\"format\":\"date-time\"}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"

struct openapi_parameter {
    const char *key;  /* name in the tables of endpoints */
    const char *name; /* name in a request; NULL: the same */
    const char *schema;
    const char *description;
};

static const struct openapi_parameter in_path[] = {
    {"assistant_id", NULL, STRING,
     "The id of an assistant, or of a graph for its default assistant"},
    {"branch_id", NULL, STRING, "The id of a branch: that of its first checkpoint"},
    {"cascade_id", NULL, STRING, "The id of a cascade"},
    {"checkpoint_id", NULL, UUID, "The id of a checkpoint"},
    {"cron_id", NULL, UUID, "The id of a cron"},
    {"invitation_id", NULL, STRING, "The id of an invitation"},
    {"message_id", NULL, STRING, "The id of a chat message"},
    {"namespace", NULL, STRING, "The node of a subgraph; outer|inner for a nested one"},
    {"participant_id", NULL, STRING, "The id of a participant"},
    {"run_id", NULL, UUID, "The id of a run"},
    {"thread_id", NULL, UUID, "The id of a thread"},
};

static const struct openapi_parameter in_query[] = {
    {"action", NULL, "{\"type\":\"string\",\"enum\":[\"interrupt\",\"rollback\"]}",
     "interrupt keeps the checkpoints of the run, rollback deletes the run and them"},
    {"assistant_id", NULL, STRING, "The assistant or graph whose namespace is used"},
    {"before", NULL, STRING, "Only checkpoints before this one"},
    {"cancel_on_disconnect", NULL, BOOLEAN, "Cancel the run when this connection ends"},
    {"check_db", NULL, BOOLEAN, "Check the database, too"},
    {"checkpoint_id", NULL, STRING, "A checkpoint; by default the current head"},
    {"checkpoint_ns", NULL, STRING,
     "The namespace; by default that of the latest run. Empty: the empty root, if the thread uses "
     "it"},
    {"delete_threads", NULL, BOOLEAN, "Delete the threads of the assistant, too"},
    {"format", NULL, "{\"type\":\"string\",\"enum\":[\"prometheus\",\"json\"]}",
     "prometheus by default"},
    {"graph_format", "format", "{\"type\":\"string\",\"enum\":[\"json\",\"svg\"]}",
     "json by default; svg is a picture"},
    {"include", NULL, STRINGS, "Additional members to return: ttl, usage"},
    {"key", NULL, TEXT, "The key of an item"},
    {"limit", NULL, "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000}",
     "Maximum number of results"},
    {"max_depth", NULL, "{\"type\":\"integer\",\"minimum\":1,\"maximum\":64}",
     "Longer namespaces are cut to this number of labels"},
    {"mention_before", "before", TIME, "Only messages from before this time"},
    {"message_after", "after", INTEGER, "Only messages with greater numbers, oldest first"},
    {"message_before", "before", "{\"type\":\"integer\",\"minimum\":1}",
     "Only messages with smaller numbers"},
    {"message_order", "order", "{\"type\":\"string\",\"enum\":[\"asc\",\"desc\"]}",
     "Of the numbers in the response; asc by default"},
    {"message_state", "state",
     "{\"type\":\"string\","
     "\"enum\":[\"pending\",\"ok\",\"stopped\",\"error\",\"stale\",\"deleted\"]}",
     "Only messages in this state"},
    {"message_text", "text", STRING,
     "Only messages that contain this text, in upper or lower case"},
    {"namespace", NULL, LABELS, "Labels, joined by dots"},
    {"offset", NULL, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":2147483647}",
     "Number of results to skip"},
    {"prefix", NULL, LABELS, "Labels that a namespace begins with, joined by dots; * is any"},
    {"purge", NULL, BOOLEAN, "Remove all that the message left behind, too"},
    {"recurse", NULL, BOOLEAN, "Include nested subgraphs"},
    {"refresh_ttl", NULL, BOOLEAN, "Reading restarts the item's time to live"},
    {"select", NULL, STRINGS, "Members to return; all by default"},
    {"sender", NULL, STRING, "Only messages of the sender with this id"},
    {"state_select", "select", REF("StateSelect"),
     "Members of the states to return; values.<key> for a value"},
    {"status", NULL, REF("RunStatus"), "Only runs with this status"},
    {"stream_mode", NULL, "{\"type\":\"array\",\"items\":" REF("StreamMode") "}",
     "Events to stream; all by default"},
    {"subgraphs", NULL, BOOLEAN, "Include the states of tasks that run subgraphs"},
    {"suffix", NULL, LABELS, "Labels that a namespace ends with, joined by dots; * is any"},
    {"thread_stream_mode", "stream_mode",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\","
     "\"enum\":[\"run_modes\",\"lifecycle\",\"state_update\",\"room\"]}}",
     "Events to stream; run_modes by default"},
    {"wait", NULL, BOOLEAN, "Respond only when the run has ended"},
    {"xray", NULL, "{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"integer\",\"minimum\":0}]}",
     "Expand subgraphs: true, or the number of levels"},
};

static const struct {
    const char *name;
    const char *description;
} tags[] = {
    {"Assistants", "Graphs with their own configuration, in versions"},
    {"Threads", "Conversations: their states, histories and branches"},
    {"Participants", "The users and organisations a thread is shared with, and invitations"},
    {"Rooms", "Threads as chats of people and agents: messages, settings, mentions"},
    {"Runs", "Executions of an assistant on a thread"},
    {"Stateless runs", "Runs on a new thread each"},
    {"Crons", "Runs that start on a schedule"},
    {"Store", "Items shared across threads, by namespace and key"},
    {"System", "The server itself"},
};

/* ---- helpers ---------------------------------------------------------- */

static void put_openapi_text(struct hd_jw *jw, const char *key, const char *text)
{
    hd_jw_put_string(jw, key, hd_slice_cstr(text));
}

static void put_ref(struct hd_jw *jw, const char *kind, struct hd_slice name)
{
    char text[128];

    snprintf(text, sizeof(text), "#/components/%s/%.*s", kind, (int)name.len, name.ptr);
    hd_jw_object(jw);
    put_openapi_text(jw, "$ref", text);
    hd_jw_object_end(jw);
}

/* The name of a schema; a leading '[' means a list of it. */
static void put_schema(struct hd_jw *jw, struct hd_slice name)
{
    bool is_list = hd_slice_starts(name, HD_S("["));

    if (is_list) {
        hd_jw_object(jw);
        put_openapi_text(jw, "type", "array");
        hd_jw_key(jw, HD_S("items"));
    }
    put_ref(jw, "schemas", hd_slice(name.ptr + is_list, name.len - is_list));
    if (is_list)
        hd_jw_object_end(jw);
}

/* The next word of a text with spaces between them; empty after the last. */
static struct hd_slice next_word(const char **text)
{
    const char *start = *text + strspn(*text, " ");
    size_t len = strcspn(start, " ");

    *text = start + len;
    return hd_slice(start, len);
}

/* ---- parameters ------------------------------------------------------- */

/* True for required query parameters; all others are optional. */
static bool is_needed(struct hd_slice key)
{
    return hd_slice_eq(key, HD_S("key")) || hd_slice_eq(key, HD_S("namespace"));
}

static void put_parameter(struct hd_jw *jw, const struct openapi_parameter *list, size_t count,
                          struct hd_slice key, bool is_in_path)
{
    const struct openapi_parameter *found = NULL;

    for (size_t i = 0; !found && i < count; i++) {
        if (hd_slice_eq(key, hd_slice_cstr(list[i].key)))
            found = &list[i];
    }
    hd_jw_object(jw);
    hd_jw_put_string(jw, "name", found && found->name ? hd_slice_cstr(found->name) : key);
    put_openapi_text(jw, "in", is_in_path ? "path" : "query");
    hd_jw_put_bool(jw, "required", is_in_path || is_needed(key));
    if (found)
        put_openapi_text(jw, "description", found->description);
    hd_jw_put_raw(jw, "schema", hd_slice_cstr(found ? found->schema : "{}"));
    hd_jw_object_end(jw);
}

static void put_parameters(struct hd_jw *jw, const struct hd_endpoint *endpoint)
{
    const char *query = endpoint->query ? endpoint->query : "";
    const char *at = endpoint->pattern;
    struct hd_slice key;

    hd_jw_put_array(jw, "parameters");
    while ((at = strchr(at, '{'))) {
        size_t len = strcspn(++at, "*}");

        put_parameter(jw, in_path, HD_COUNT(in_path), hd_slice(at, len), true);
    }
    for (key = next_word(&query); key.len > 0; key = next_word(&query))
        put_parameter(jw, in_query, HD_COUNT(in_query), key, false);
    hd_jw_array_end(jw);
}

/* ---- bodies and responses --------------------------------------------- */

static void put_openapi_body(struct hd_jw *jw, const char *body)
{
    bool is_optional = body[0] == '?';

    hd_jw_put_object(jw, "requestBody");
    hd_jw_put_bool(jw, "required", !is_optional);
    hd_jw_put_object(jw, "content");
    hd_jw_put_object(jw, "application/json");
    hd_jw_key(jw, HD_S("schema"));
    put_schema(jw, hd_slice_cstr(body + is_optional));
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

/* The names of schemas, which are JSON, and media types, with spaces between them. */
static void put_openapi_content(struct hd_jw *jw, const char *answer)
{
    struct hd_slice word;

    hd_jw_put_object(jw, "content");
    for (word = next_word(&answer); word.len > 0; word = next_word(&answer)) {
        if (memchr(word.ptr, '/', word.len)) {
            hd_jw_key(jw, word);
            hd_jw_raw(jw, HD_S("{\"schema\":{}}"));
            continue;
        }
        hd_jw_put_object(jw, "application/json");
        hd_jw_key(jw, HD_S("schema"));
        put_schema(jw, word);
        hd_jw_object_end(jw);
    }
    hd_jw_object_end(jw);
}

static void put_answer(struct hd_jw *jw, int status, const struct hd_endpoint *endpoint)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", status);
    hd_jw_put_object(jw, text);
    put_openapi_text(jw, "description",
                     status == 204   ? "Done"
                     : status == 202 ? "Accepted"
                                     : "Success");
    if (endpoint->answer && status != 204)
        put_openapi_content(jw, endpoint->answer);
    hd_jw_object_end(jw);
}

static void put_answers(struct hd_jw *jw, const struct hd_endpoint *endpoint)
{
    static const char *const refusals[] = {"4XX", "5XX"};

    hd_jw_put_object(jw, "responses");
    put_answer(jw, endpoint->status ? endpoint->status : 200, endpoint);
    if (endpoint->also)
        put_answer(jw, endpoint->also, endpoint);
    for (size_t i = 0; i < HD_COUNT(refusals); i++) {
        hd_jw_key(jw, hd_slice_cstr(refusals[i]));
        put_ref(jw, "responses", HD_S("Refusal"));
    }
    hd_jw_object_end(jw);
}

/* ---- operations ------------------------------------------------------- */

/* get_threads_thread_id_state: unique, because methods and patterns together are. */
static void put_openapi_id(struct hd_jw *jw, const struct hd_endpoint *endpoint, const char *method)
{
    char id[160];
    size_t len = 0;

    for (const char *at = method; *at && len < sizeof(id) - 1; at++)
        id[len++] = *at;
    for (const char *at = endpoint->pattern; *at && len < sizeof(id) - 1; at++) {
        if (*at == '/')
            id[len++] = '_';
        else if (!strchr("{}*", *at))
            id[len++] = *at == '.' ? '_' : *at;
    }
    hd_jw_put_string(jw, "operationId", hd_slice(id, len));
}

static const char *const access_names[] = {
    [HD_ACCESS_UNSET] = "",        [HD_ACCESS_PUBLIC] = "public", [HD_ACCESS_USER] = "user",
    [HD_ACCESS_VIEWER] = "viewer", [HD_ACCESS_EDITOR] = "editor", [HD_ACCESS_OWNER] = "owner",
    [HD_ACCESS_ADMIN] = "admin",
};

static void put_access(struct hd_jw *jw, const struct hd_endpoint *endpoint, bool has_auth)
{
    put_openapi_text(jw, "x-heddle-access", access_names[endpoint->access]);
    if (!has_auth || endpoint->access == HD_ACCESS_PUBLIC)
        return;
    hd_jw_put_raw(jw, "security", HD_S("[{\"bearer\":[]},{\"apiKey\":[]}]"));
}

static void put_operation(struct hd_jw *jw, const struct hd_endpoint *endpoint, bool has_auth)
{
    char method[16] = "";

    for (size_t i = 0; i < sizeof(method) - 1 && hd_method_name(endpoint->method)[i]; i++)
        method[i] = (char)(hd_method_name(endpoint->method)[i] | 0x20);
    hd_jw_put_object(jw, method);
    put_openapi_id(jw, endpoint, method);
    hd_jw_put_array(jw, "tags");
    hd_jw_string(jw, hd_slice_cstr(endpoint->tag));
    hd_jw_array_end(jw);
    put_openapi_text(jw, "summary", endpoint->summary);
    put_access(jw, endpoint, has_auth);
    put_parameters(jw, endpoint);
    if (endpoint->body)
        put_openapi_body(jw, endpoint->body);
    put_answers(jw, endpoint);
    hd_jw_object_end(jw);
}

/* An endpoint without a tag is not documented. */
static bool is_shown(const struct hd_config *config, const struct hd_endpoint *endpoint)
{
    return endpoint->tag != NULL && hd_endpoint_is_on(config, endpoint);
}

static bool is_first_of_path(const struct hd_config *config, size_t index)
{
    const char *pattern = hd_endpoint_at(index)->pattern;

    for (size_t i = 0; i < index; i++) {
        if (is_shown(config, hd_endpoint_at(i)) && strcmp(hd_endpoint_at(i)->pattern, pattern) == 0)
            return false;
    }
    return is_shown(config, hd_endpoint_at(index));
}

static void put_path(struct hd_jw *jw, const struct hd_config *config, size_t index, bool has_auth)
{
    const char *pattern = hd_endpoint_at(index)->pattern;
    const struct hd_endpoint *endpoint;

    hd_jw_put_object(jw, pattern);
    for (size_t i = index; (endpoint = hd_endpoint_at(i)); i++) {
        if (is_shown(config, endpoint) && strcmp(endpoint->pattern, pattern) == 0)
            put_operation(jw, endpoint, has_auth);
    }
    hd_jw_object_end(jw);
}

/* ---- the document ----------------------------------------------------- */

static void put_openapi_head(struct hd_jw *jw)
{
    put_openapi_text(jw, "openapi", "3.1.0");
    hd_jw_put_object(jw, "info");
    put_openapi_text(jw, "title", "Heddle");
    put_openapi_text(jw, "version", HEDDLE_VERSION);
    put_openapi_text(
        jw, "description",
        "Stores, runs and branches agent conversations. Implements the LangGraph API.");
    hd_jw_object_end(jw);
    hd_jw_put_array(jw, "tags");
    for (size_t i = 0; i < HD_COUNT(tags); i++) {
        hd_jw_object(jw);
        put_openapi_text(jw, "name", tags[i].name);
        put_openapi_text(jw, "description", tags[i].description);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
}

static void put_openapi_members(struct hd_jw *jw, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(object);

    while (hd_json_next(&it)) {
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
}

/* The server's schemas and those of the project's application. */
static void put_schemas(struct hd_jw *jw, hd_json_val app)
{
    struct hd_slice own = hd_slice(hd_api_schemas, hd_api_schemas_len);
    struct hd_json json;

    if (!app || hd_json_parse(&json, own, NULL)) {
        hd_jw_raw(jw, own);
        return;
    }
    hd_jw_object(jw);
    put_openapi_members(jw, hd_json_root(&json));
    put_openapi_members(jw, hd_json_get(app, HD_S("schemas")));
    hd_jw_object_end(jw);
    hd_json_fini(&json);
}

static void put_components(struct hd_jw *jw, hd_json_val app, bool has_auth)
{
    hd_jw_put_object(jw, "components");
    hd_jw_key(jw, HD_S("schemas"));
    put_schemas(jw, app);
    hd_jw_put_raw(
        jw, "responses",
        HD_S("{\"Refusal\":{\"description\":\"The "
             "error\",\"content\":{\"application/json\":{\"schema\":" REF("Error") "}}}}"));
    if (has_auth)
        hd_jw_put_raw(jw, "securitySchemes",
                      HD_S("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"bearerFormat\":"
                           "\"JWT\"},\"apiKey\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":"
                           "\"x-api-key\"}}"));
    hd_jw_object_end(jw);
}

/* The start of the paths. */
static void put_servers(struct hd_jw *jw, const char *prefix)
{
    if (!*prefix)
        return;
    hd_jw_put_array(jw, "servers");
    hd_jw_object(jw);
    put_openapi_text(jw, "url", prefix);
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
}

/* `app`: paths and schemas of the project's application, whose paths win; NULL: none. */
static void put_document(struct hd_call *call, hd_json_val app)
{
    const struct hd_config *config = call->app->config;
    bool has_auth = call->app->auth_service != NULL;
    hd_json_val paths = hd_json_get(app, HD_S("paths"));
    struct hd_jw *jw = &call->jw;

    hd_jw_object(jw);
    put_openapi_head(jw);
    put_servers(jw, config->http_mount_prefix);
    hd_jw_put_object(jw, "paths");
    for (size_t i = 0; hd_endpoint_at(i); i++) {
        if (is_first_of_path(config, i) &&
            !hd_json_get(paths, hd_slice_cstr(hd_endpoint_at(i)->pattern)))
            put_path(jw, config, i, has_auth);
    }
    put_openapi_members(jw, paths);
    hd_jw_object_end(jw);
    put_components(jw, app, has_auth);
    hd_jw_object_end(jw);
}

static struct hd_step get_document(struct hd_call *call)
{
    struct hd_json json = {NULL};
    struct hd_slice text;
    int err = hd_custom_document(hd_api_custom(call->api), call->arena, &text);

    if (!err && text.len > 0)
        err = hd_json_parse(&json, text, &call->fault);
    if (!err)
        put_document(call, text.len > 0 ? hd_json_root(&json) : NULL);
    hd_json_fini(&json);
    return hd_step_done(err ? err : hd_jw_finish(&call->jw));
}

#define HASH_SIZE (HD_SHA256_LEN * 4 / 3 + 8)

/* The text between two tags of the page, as its policy hashes it; "" when the tags are missing. */
static void hash_between(const char *begin, const char *end, char out[HASH_SIZE])
{
    struct hd_slice page = hd_slice(hd_docs_page, hd_docs_page_len);
    const char *from = memmem(page.ptr, page.len, begin, strlen(begin));
    const char *to = memmem(page.ptr, page.len, end, strlen(end));
    unsigned char digest[HD_SHA256_LEN];

    out[0] = '\0';
    if (!from || !to)
        return;
    from += strlen(begin);
    if (hd_sha256(hd_slice(from, (size_t)(to - from)), digest) == 0)
        (void)EVP_EncodeBlock((unsigned char *)out, digest, sizeof(digest));
}

/*
 * The page connects to this server only, regardless of the document, and runs only its inline code.
 */
static struct hd_step get_page(struct hd_call *call)
{
    struct hd_exchange *ex = call->exchange;
    char script[HASH_SIZE], style[HASH_SIZE], policy[512];

    hash_between("<script>", "</script>", script);
    hash_between("<style>", "</style>", style);
    (void)snprintf(
        policy, sizeof(policy),
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src "
        "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        script, style);
    hd_answer_header(ex, HD_S("Content-Security-Policy"), hd_slice_cstr(policy));
    hd_answer_header(ex, HD_S("X-Frame-Options"), HD_S("DENY"));
    hd_answer_header(ex, HD_S("Referrer-Policy"), HD_S("no-referrer"));
    hd_answer_header(ex, HD_S("Cache-Control"), HD_S("no-cache"));
    hd_call_free(call);
    hd_answer_static(ex, 200, HD_TYPE_HTML, hd_slice(hd_docs_page, hd_docs_page_len));
    return HD_WAIT;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/openapi.json",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .work = get_document,
     .tag = "System",
     .summary = "Get this document",
     .answer = "Object"},
    {.method = HD_METHOD_GET,
     .pattern = "/docs",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_page,
     .tag = "System",
     .summary = "Get a page that shows this document",
     .answer = "text/html"},
};

const struct hd_routes hd_routes_openapi = {routes, HD_COUNT(routes)};
