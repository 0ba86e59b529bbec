#include "gate/auth_worker.h"

#include <string.h>

#include "app/app.h"
#include "auth/config.h"
#include "auth/digest.h"
#include "auth/issuer.h"
#include "auth/token_cache.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/project.h"
#include "gate/auth_service.h"
#include "records/run_user.h"

#define ANSWER_US INT64_C(30000000)   /* a handler may take so long */
#define PATIENCE_US INT64_C(15000000) /* a worker may be starting */
#define MAX_PENDING 4096              /* authentications in workers */
#define MAX_WITHDRAWN 10000
#define MAX_HANDLERS 256
#define MAX_HEAD ((size_t)1 << 20)
#define MAX_USER ((size_t)64 << 10)
#define LOG_US 1000000

/* One that the worker has, under the name that is looked for: "threads.create", "threads", "*". */
struct handler {
    struct hd_slice key;
    struct hd_slice name;
};

struct hd_auth_worker {
    struct hd_app *app;
    struct hd_auth_service *auth_service;
    const struct hd_auth *auth;
    const struct hd_auth_config *config;
    enum hd_rt_language language;
    struct hd_token_cache cache;
    struct hd_map withdrawn; /* fingerprints */
    size_t pending_count;    /* authentications in workers */
    int64_t logged_at;

    bool is_ready;   /* a worker has reported its handlers */
    bool has_failed; /* the code could not be loaded */
    struct handler handlers[MAX_HANDLERS];
    size_t handler_count;
    struct hd_arena arena; /* of the handlers */
};

static const struct hd_auth_refusal unavailable = {
    503, HD_S_INIT("credentials cannot be verified at the moment"), NULL};
static const struct hd_auth_refusal broken = {
    500, HD_S_INIT("the project's authentication handler failed"), NULL};

/* ---- handlers --------------------------------------------------------- */

/* "threads:create" and "threads.create", "threads.*" and "threads" are the same. */
static int normalise(struct hd_arena *arena, struct hd_slice name, struct hd_slice *out)
{
    char *text = hd_arena_alloc(arena, name.len);
    size_t len = name.len;

    if (!text)
        return HD_ENOMEM;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(name.ptr[i] == ':' ? '.' : name.ptr[i]);
    if (len > 2 && memcmp(text + len - 2, ".*", 2) == 0)
        len -= 2;
    *out = hd_slice(text, len);
    return 0;
}

static int read_handlers(struct hd_auth_worker *worker, hd_json_val list)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    hd_arena_reset(&worker->arena);
    worker->handler_count = 0;
    if (!hd_json_is_array(list))
        return HD_EINVAL;
    while (!err && hd_json_next(&it)) {
        struct handler *handler = &worker->handlers[worker->handler_count];

        /* A handler that is skipped would permit requests that it refuses. */
        if (!hd_json_is_string(it.val) || worker->handler_count == MAX_HANDLERS)
            return HD_EINVAL;
        err = hd_arena_copy(&worker->arena, hd_json_string(it.val), &handler->name);
        if (!err)
            err = normalise(&worker->arena, handler->name, &handler->key);
        worker->handler_count += !err;
    }
    return err;
}

static void log_failure(hd_json_val error)
{
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    struct hd_slice text = hd_json_string(hd_json_get(error, HD_S("message")));

    hd_log(HD_LOG_ERROR, "auth", "auth.path cannot be used, all requests are refused: %.*s: %.*s",
           (int)(type.len < 64 ? type.len : 64), type.ptr, (int)(text.len < 400 ? text.len : 400),
           text.ptr);
}

/* Results of the previous version of the code are dropped. */
static void forget_all(struct hd_auth_worker *worker)
{
    hd_token_cache_fini(&worker->cache);
    hd_token_cache_init(&worker->cache, worker->config->cache_size);
}

static void on_auth_worker_ready(void *ctx, enum hd_rt_language language, struct hd_slice head)
{
    struct hd_auth_worker *worker = ctx;
    struct hd_json json = {NULL};
    hd_json_val auth;
    int err;

    if (language != worker->language)
        return;
    err = hd_json_parse(&json, head, NULL);
    auth = hd_json_get(hd_json_root(&json), HD_S("auth"));
    worker->has_failed = err || !auth || hd_json_get(auth, HD_S("error"));
    if (!worker->has_failed && read_handlers(worker, hd_json_get(auth, HD_S("handlers"))))
        worker->has_failed = true;
    if (worker->has_failed)
        log_failure(hd_json_get(auth, HD_S("error")));
    worker->is_ready = true;
    forget_all(worker);
    hd_json_fini(&json);
}

static const struct handler *find_handler(const struct hd_auth_worker *worker, const char *resource,
                                          const char *dot, const char *action)
{
    char key[96];
    int len = snprintf(key, sizeof(key), "%s%s%s", resource, dot, action);

    for (size_t i = 0; len > 0 && i < worker->handler_count; i++) {
        if (hd_slice_eq(worker->handlers[i].key, hd_slice_cstr(key)))
            return &worker->handlers[i];
    }
    return NULL;
}

struct hd_slice hd_auth_worker_handler(const struct hd_auth_worker *worker, const char *resource,
                                       const char *action)
{
    const struct handler *handler = find_handler(worker, resource, ".", action);

    if (!handler)
        handler = find_handler(worker, resource, "", "");
    if (!handler)
        handler = find_handler(worker, "*", ".", action);
    if (!handler)
        handler = find_handler(worker, "*", "", "");
    return handler ? handler->name : hd_slice(NULL, 0);
}

/* ---- answers ---------------------------------------------------------- */

/* Without its message, which may have what was sent in it. */
static void log_error(struct hd_auth_worker *worker, const char *op, hd_json_val error)
{
    int64_t now = hd_clock_now_us(), line = 0;
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    struct hd_slice file = hd_json_string(hd_json_get(error, HD_S("file")));

    if (now >= worker->logged_at && now - worker->logged_at < LOG_US)
        return;
    worker->logged_at = now;
    if (!hd_json_int(hd_json_get(error, HD_S("line")), &line))
        line = 0;
    hd_log(HD_LOG_WARN, "auth", "%s failed: %.*s (%.*s:%lld)", op,
           (int)(type.len < 64 ? type.len : 64), type.ptr, (int)(file.len < 200 ? file.len : 200),
           file.ptr, (long long)line);
}

/* An exception that names a status is an answer; any other is a mistake in the code. */
static struct hd_auth_refusal read_refusal(struct hd_auth_worker *worker, const char *op,
                                           int otherwise, hd_json_val error)
{
    struct hd_auth_refusal refusal = broken;
    hd_json_val status = hd_json_get(error, HD_S("status"));
    struct hd_slice type = hd_json_string(hd_json_get(error, HD_S("type")));
    int64_t number = 0;

    if (!hd_json_int(status, &number))
        number = hd_slice_eq(type, HD_S("AssertionError")) ? otherwise : 0;
    if (number < 400 || number > 599) {
        log_error(worker, op, error);
        return refusal;
    }
    refusal.status = (int)number;
    refusal.detail = hd_json_string(hd_json_get(error, HD_S("message")));
    refusal.headers = hd_json_get(error, HD_S("headers"));
    if (!hd_json_is_object(refusal.headers))
        refusal.headers = NULL;
    return refusal;
}

/* ---- authenticate ---------------------------------------------------- */

struct authentication {
    struct hd_auth_worker *worker;
    hd_auth_identity_fn fn;
    void *ctx;
    unsigned char fingerprint[HD_SHA256_LEN];
    bool has_credential; /* one of the headers that are a credential was sent */
    struct hd_identity *identity;
};

static struct hd_slice fingerprint_of(const struct authentication *pending)
{
    return hd_slice(pending->fingerprint, sizeof(pending->fingerprint));
}

static void end_authentication(struct authentication *pending,
                               const struct hd_auth_refusal *refusal)
{
    const struct hd_auth_outcome outcome = {.identity = refusal ? NULL : pending->identity,
                                            .refusal = refusal};

    pending->worker->pending_count--;
    pending->fn(pending->ctx, &outcome);
    hd_identity_unref(pending->identity);
    hd_free(pending);
}

static void withdraw(struct authentication *pending)
{
    struct hd_auth_worker *worker = pending->worker;

    if (!pending->has_credential)
        return;
    if (worker->withdrawn.count >= MAX_WITHDRAWN) {
        hd_map_fini(&worker->withdrawn);
        hd_map_init(&worker->withdrawn, MAX_WITHDRAWN);
    }
    hd_token_cache_forget(&worker->cache, fingerprint_of(pending));
    if (hd_map_put(&worker->withdrawn, fingerprint_of(pending), worker))
        hd_log(HD_LOG_WARN, "auth", "streams opened with a revoked credential are still open");
}

bool hd_auth_worker_is_withdrawn(const struct hd_auth_worker *worker, struct hd_slice fingerprint)
{
    return fingerprint.len > 0 && hd_map_get(&worker->withdrawn, fingerprint);
}

static void on_settled(void *ctx, int err)
{
    struct authentication *pending = ctx;
    struct hd_auth_worker *worker = pending->worker;
    int64_t ttl = worker->config->code_cache_us;

    if (err) {
        end_authentication(pending, &unavailable);
        return;
    }
    if (hd_auth_key_count(worker->auth) > 1 && ttl > HD_AUTH_RECHECK_US)
        ttl = HD_AUTH_RECHECK_US;
    if (pending->has_credential) {
        (void)hd_map_remove(&worker->withdrawn, fingerprint_of(pending));
        if (ttl > 0 && worker->config->cache_size > 0)
            hd_token_cache_put(&worker->cache, pending->identity, hd_clock_now_us() + ttl);
    }
    end_authentication(pending, NULL);
}

/*
 * The members that LangGraph's server sets for every user, then the others that the code returned.
 */
static int write_user(struct hd_buf *out, hd_json_val user)
{
    static const char *const names[] = {"identity", "is_authenticated", "display_name",
                                        "permissions"};
    struct hd_json_iter it = hd_json_iter(user);
    hd_json_val identity = hd_json_get(user, HD_S("identity"));
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        hd_json_val val = hd_json_get(user, hd_slice_cstr(names[i]));

        hd_jw_key(&jw, hd_slice_cstr(names[i]));
        if (val && !hd_json_is_null(val))
            hd_jw_val(&jw, val);
        else if (i == 1)
            hd_jw_bool(&jw, true);
        else if (i == 2)
            hd_jw_val(&jw, identity);
        else
            hd_jw_raw(&jw, HD_S("[]"));
    }
    while (hd_json_next(&it)) {
        bool is_known = false;

        for (size_t i = 0; i < HD_COUNT(names); i++)
            is_known = is_known || hd_slice_eq(it.key, hd_slice_cstr(names[i]));
        if (is_known)
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static bool is_subject(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
            return false;
    }
    return text.len > 0 && text.len <= HD_MAX_SUBJECT;
}

static int fill_identity(struct authentication *pending, hd_json_val user)
{
    const struct hd_principal_key *key = hd_auth_key(pending->worker->auth, 0);
    struct hd_identity *identity = pending->identity;
    struct hd_slice subject = hd_json_string(hd_json_get(user, HD_S("identity")));
    char principal[HD_PRINCIPAL_SIZE];
    struct hd_buf text;
    int err = is_subject(subject) ? 0 : HD_EINVAL;

    hd_buf_init(&text, MAX_USER);
    identity->issuer = HD_S(HD_CODE_ALIAS);
    if (!err)
        err = hd_auth_principal_derive(key, HD_PRINCIPAL_PERSON, identity->issuer, subject,
                                       principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, hd_slice_cstr(principal), &identity->principal);
    if (!err)
        err = hd_arena_copy(&identity->arena, subject, &identity->subject);
    if (!err && pending->has_credential)
        err = hd_arena_copy(&identity->arena, fingerprint_of(pending), &identity->fingerprint);
    if (!err)
        err = write_user(&text, user);
    if (!err)
        err = hd_arena_copy(&identity->arena, hd_buf_slice(&text), &identity->user);
    hd_buf_fini(&text);
    return err;
}

static void admit(struct authentication *pending, hd_json_val user)
{
    int err;

    pending->identity = hd_identity_new();
    err = pending->identity ? fill_identity(pending, user) : HD_ENOMEM;
    if (!err)
        err = hd_auth_service_settle(pending->worker->auth_service, pending->identity, on_settled,
                                     pending);
    if (err == HD_READY)
        on_settled(pending, 0);
    if (err >= 0)
        return;
    if (err == HD_EINVAL || err == HD_ELIMIT)
        hd_log(HD_LOG_WARN, "auth",
               "authenticate: needs an `identity` of 1 to %d bytes without control characters, and "
               "no more than %d KiB in all",
               HD_MAX_SUBJECT, (int)(MAX_USER >> 10));
    end_authentication(pending, err == HD_EINVAL || err == HD_ELIMIT ? &broken : &unavailable);
}

static void on_authenticated(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct authentication *pending = ctx;
    struct hd_auth_refusal refusal = unavailable;
    struct hd_json json = {NULL};

    if (end != HD_RT_ANSWERED && end != HD_RT_REFUSED) {
        hd_log(HD_LOG_WARN, "auth", "authenticate: %s",
               end == HD_RT_LATE ? "no response in time" : "no worker");
        end_authentication(pending, &refusal);
        return;
    }
    if (hd_json_parse(&json, message->head, NULL)) {
        end_authentication(pending, &broken);
    } else if (end == HD_RT_ANSWERED) {
        admit(pending, hd_json_get(hd_json_root(&json), HD_S("user")));
    } else {
        refusal = read_refusal(pending->worker, "authenticate", 401, hd_json_root(&json));
        if (refusal.status == 401 || refusal.status == 403)
            withdraw(pending);
        end_authentication(pending, &refusal);
    }
    hd_json_fini(&json);
}

/* All lines of that header, since the code sees all of them and any may decide. */
static int add_lines(struct hd_buf *out, const struct hd_http_request *request,
                     struct hd_slice name, bool *is_there)
{
    uint64_t end = 0;
    int err = 0;

    for (size_t i = 0; !err && i < request->header_count; i++) {
        struct hd_slice value = request->headers[i].value;
        uint64_t mark = value.len + 1;

        if (!hd_slice_eq(request->headers[i].name, name))
            continue;
        *is_there = true;
        err = hd_buf_append(out, &mark, sizeof(mark));
        if (!err)
            err = hd_buf_append_slice(out, value);
    }
    return err ? err : hd_buf_append(out, &end, sizeof(end));
}

/* True for header names whose values may identify a user. */
static bool may_decide(struct hd_slice name)
{
    static const char *const words[] = {"auth",    "token",  "key",    "secret",  "session", "cred",
                                        "jwt",     "user",   "tenant", "account", "ident",   "org-",
                                        "subject", "signat", "assert", "team"};

    if (hd_slice_eq(name, HD_S("user-agent")) || hd_slice_eq(name, HD_S("idempotency-key")))
        return false;
    for (size_t i = 0; i < HD_COUNT(words); i++) {
        if (memmem(name.ptr, name.len, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

/* Without configured headers, every header that may identify a user is part of the key. */
static int add_others(struct hd_buf *out, const struct hd_http_request *request)
{
    int err = 0;

    for (size_t i = 0; !err && i < request->header_count; i++) {
        struct hd_slice name = request->headers[i].name;
        uint64_t mark = name.len;
        bool ignored = false;

        if (!may_decide(name))
            continue;
        err = hd_buf_append(out, &mark, sizeof(mark));
        if (!err)
            err = hd_buf_append_slice(out, name);
        if (!err)
            err = add_lines(out, request, name, &ignored);
    }
    return err;
}

/* All that are there, by name and length, so that none can be taken for another. */
static int read_credential(struct authentication *pending, const struct hd_http_request *request)
{
    const struct hd_auth_config *config = pending->worker->config;
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, MAX_HEAD);
    for (size_t i = 0; !err && i < config->cache_key_count; i++)
        err = add_lines(&buf, request, config->cache_keys[i], &pending->has_credential);
    if (!err && !config->has_cache_keys)
        err = add_others(&buf, request);
    if (!err)
        err = hd_sha256(hd_buf_slice(&buf), pending->fingerprint);
    hd_buf_fini_secret(&buf);
    return err;
}

/* Lines of one name are one, as HTTP has it. */
static void put_headers(struct hd_jw *jw, const struct hd_http_request *request,
                        struct hd_buf *joined)
{
    hd_jw_object(jw);
    for (size_t i = 0; i < request->header_count; i++) {
        struct hd_slice name = request->headers[i].name;
        bool is_first = true;

        for (size_t n = 0; n < i; n++)
            is_first = is_first && !hd_slice_eq(request->headers[n].name, name);
        if (!is_first)
            continue;
        hd_buf_reset(joined);
        for (size_t n = i; !jw->err && n < request->header_count; n++) {
            if (!hd_slice_eq(request->headers[n].name, name))
                continue;
            if (n > i)
                jw->err = hd_buf_append_slice(
                    joined, hd_slice_eq(name, HD_S("cookie")) ? HD_S("; ") : HD_S(", "));
            if (!jw->err)
                jw->err = hd_buf_append_slice(joined, request->headers[n].value);
        }
        hd_jw_key(jw, name);
        hd_jw_string(jw, hd_buf_slice(joined));
    }
    hd_jw_object_end(jw);
}

static int write_request(struct hd_buf *out, const struct hd_http_request *request,
                         struct hd_slice path_params)
{
    struct hd_buf joined;
    struct hd_jw jw;
    int err;

    hd_buf_init(&joined, MAX_HEAD);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", HD_S("authenticate"));
    hd_jw_put_string(&jw, "method", request->method_name);
    hd_jw_put_string(&jw, "path", request->path);
    hd_jw_put_string(&jw, "query", request->query);
    hd_jw_put_raw(&jw, "path_params", path_params);
    hd_jw_key(&jw, HD_S("headers"));
    put_headers(&jw, request, &joined);
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    hd_buf_fini_secret(&joined);
    return err;
}

static int call(struct hd_auth_worker *worker, struct hd_slice head, const struct hd_slice *blob,
                void (*on_end)(void *, enum hd_rt_end, const struct hd_rt_message *), void *ctx)
{
    const struct hd_rt_call_options options = {.language = worker->language,
                                               .head = head,
                                               .blobs = blob,
                                               .blob_count = blob ? 1 : 0,
                                               .timeout_us = ANSWER_US,
                                               .patience_us = PATIENCE_US,
                                               .on_end = on_end,
                                               .ctx = ctx};
    struct hd_rt_call *ignored;

    return worker->app->runtime ? hd_runtime_call(worker->app->runtime, &options, &ignored)
                                : HD_ECLOSED;
}

static int send_request(struct authentication *pending, const struct hd_http_request *request,
                        struct hd_slice path_params)
{
    struct hd_buf head;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    err = write_request(&head, request, path_params);
    if (!err)
        err = call(pending->worker, hd_buf_slice(&head), NULL, on_authenticated, pending);
    hd_buf_fini_secret(&head);
    return err;
}

/* A reference to the cached identity; NULL: none. */
static struct hd_identity *find_cached(const struct authentication *pending)
{
    struct hd_auth_worker *worker = pending->worker;
    struct hd_identity *known =
        pending->has_credential
            ? hd_token_cache_get(&worker->cache, fingerprint_of(pending), hd_clock_now_us())
            : NULL;

    return known ? hd_identity_ref(known) : NULL;
}

int hd_auth_worker_authenticate(struct hd_auth_worker *worker,
                                const struct hd_http_request *request, struct hd_slice path_params,
                                hd_auth_identity_fn fn, void *ctx, struct hd_auth_outcome *out)
{
    const bool is_full = worker->pending_count >= MAX_PENDING;
    struct hd_identity *known = NULL;
    struct authentication *pending;
    int err;

    if (is_full || (worker->is_ready && worker->has_failed)) {
        *out = (struct hd_auth_outcome){.refusal = is_full ? &unavailable : &broken};
        return HD_READY;
    }
    pending = hd_calloc(1, sizeof(*pending));
    if (!pending)
        return HD_ENOMEM;
    *pending = (struct authentication){.worker = worker, .fn = fn, .ctx = ctx};
    err = read_credential(pending, request);
    if (!err)
        known = find_cached(pending);
    if (!err && !known)
        err = send_request(pending, request, path_params);
    if (!err && !known) {
        worker->pending_count++;
        return 0;
    }
    hd_free(pending);
    if (err)
        return err;
    *out = (struct hd_auth_outcome){.identity = known};
    return HD_READY;
}

/* ---- authorize -------------------------------------------------------- */

struct question {
    struct hd_auth_worker *worker;
    hd_auth_decision_fn fn;
    void *ctx;
};

static struct question *make_question(struct hd_auth_worker *worker, hd_auth_decision_fn fn,
                                      void *ctx)
{
    struct question *question = hd_calloc(1, sizeof(*question));

    if (question)
        *question = (struct question){worker, fn, ctx};
    return question;
}

static void end_question(struct question *question, const struct hd_rt_message *answer,
                         const struct hd_auth_refusal *refusal)
{
    question->fn(question->ctx, answer, refusal);
    hd_free(question);
}

static void on_there(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct question *question = ctx;
    const struct hd_auth_worker *worker = question->worker;
    const struct hd_rt_message nothing = {.head = HD_S_INIT("{}")};

    (void)message;
    if (end == HD_RT_ANSWERED && worker->is_ready)
        end_question(question, worker->has_failed ? NULL : &nothing,
                     worker->has_failed ? &broken : NULL);
    else
        end_question(question, NULL, &unavailable);
}

int hd_auth_worker_await(struct hd_auth_worker *worker, hd_auth_decision_fn fn, void *ctx,
                         const struct hd_auth_refusal **out)
{
    struct question *question;
    int err;

    if (worker->is_ready) {
        *out = worker->has_failed ? &broken : NULL;
        return HD_READY;
    }
    question = make_question(worker, fn, ctx);
    if (!question)
        return HD_ENOMEM;
    /* A worker replies once it is ready, after it has reported its handlers. */
    err = call(worker, HD_S("{\"op\":\"ping\"}"), NULL, on_there, question);
    if (err)
        hd_free(question);
    return err;
}

static void on_answered(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct question *question = ctx;
    struct hd_auth_refusal refusal;
    struct hd_json json = {NULL};

    if (end == HD_RT_ANSWERED) {
        end_question(question, message, NULL);
        return;
    }
    if (end != HD_RT_REFUSED || hd_json_parse(&json, message->head, NULL)) {
        hd_log(HD_LOG_WARN, "auth", "authorize: %s",
               end == HD_RT_LATE ? "no response in time" : "no worker");
        end_question(question, NULL, &unavailable);
        return;
    }
    refusal = read_refusal(question->worker, "authorize", 403, hd_json_root(&json));
    end_question(question, NULL, &refusal);
    hd_json_fini(&json);
}

static int write_question(struct hd_buf *out, const struct hd_auth_action *question)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", HD_S("authorize"));
    hd_jw_put_string(&jw, "resource", hd_slice_cstr(question->resource));
    hd_jw_put_string(&jw, "action", hd_slice_cstr(question->action));
    hd_jw_put_string(&jw, "handler", question->handler);
    hd_jw_key(&jw, HD_S("user"));
    hd_user_put(&jw, question->identity);
    hd_jw_put_raw(&jw, "value", HD_S("{\"$blob\":0}"));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

int hd_auth_worker_authorize(struct hd_auth_worker *worker, const struct hd_auth_action *question,
                             hd_auth_decision_fn fn, void *ctx)
{
    struct question *pending = make_question(worker, fn, ctx);
    struct hd_buf head;
    int err;

    if (!pending)
        return HD_ENOMEM;
    hd_buf_init(&head, MAX_HEAD);
    err = write_question(&head, question);
    if (!err)
        err = call(worker, hd_buf_slice(&head), &question->value, on_answered, pending);
    if (err)
        hd_free(pending);
    hd_buf_fini(&head);
    return err;
}

/* ---- the whole -------------------------------------------------------- */

int hd_auth_worker_create(struct hd_app *app, struct hd_auth_service *auth_service,
                          const struct hd_auth *auth, struct hd_auth_worker **out)
{
    struct hd_auth_worker *worker = hd_calloc(1, sizeof(*worker));
    struct hd_project_code code = {.language = HD_RT_PYTHON};
    int err;

    if (!worker)
        return HD_ENOMEM;
    worker->app = app;
    worker->auth_service = auth_service;
    worker->auth = auth;
    worker->config = hd_auth_settings(auth);
    if (hd_project_part(app->config, HD_PROJECT_AUTH, &code))
        worker->language = code.language;
    hd_arena_init(&worker->arena, MAX_HEAD);
    hd_map_init(&worker->withdrawn, MAX_WITHDRAWN);
    hd_token_cache_init(&worker->cache, worker->config->cache_size);
    err = hd_app_on_ready(app, on_auth_worker_ready, worker);
    if (err) {
        hd_auth_worker_destroy(worker);
        return err;
    }
    *out = worker;
    return 0;
}

void hd_auth_worker_destroy(struct hd_auth_worker *worker)
{
    if (!worker)
        return;
    hd_token_cache_fini(&worker->cache);
    hd_map_fini(&worker->withdrawn);
    hd_arena_fini(&worker->arena);
    hd_free(worker);
}
