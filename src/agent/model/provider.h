/*
 * Model providers: their requests and responses. Pure: makes requests from values and parses
 * responses in pieces; nothing here sends anything.
 *
 * A struct hd_completion accumulates a response in any provider's protocol: text, thinking, tool
 * calls, usage and the finish reason. The content since the last call is a piece (an
 * AIMessageChunk); the whole is a message whose parts are those of the pieces.
 *
 * To add a provider: its file, and its line in the table of model_choice.c.
 */
#ifndef HD_AGENT_MODEL_PROVIDER_H
#define HD_AGENT_MODEL_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/model/sse_read.h"
#include "agent/toolset.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_CHAT_MAX_REQUEST ((size_t)64 << 20)
#define HD_COMPLETION_MAX_BYTES ((size_t)16 << 20)
#define HD_COMPLETION_MAX_PARTS 1024 /* of content, and as many calls */

/* ---- requests --------------------------------------------------------- */

struct hd_chat {
    struct hd_slice model;
    struct hd_slice base_url;       /* without a trailing slash */
    struct hd_slice key;            /* empty: none is sent */
    struct hd_slice system;         /* empty: none */
    const struct hd_val *messages;  /* from hd_chat_prepare() */
    const struct hd_toolset *tools; /* NULL: none */
    bool streams;
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not set */
};

struct hd_chat_request {
    struct hd_buf url;     /* ends with NUL */
    struct hd_buf headers; /* lines, each ends with NUL */
    struct hd_buf body;
    size_t header_count;
};

void hd_chat_request_init(struct hd_chat_request *request);
void hd_chat_request_fini(struct hd_chat_request *request);
/* Adds "name: value"; HD_EINVAL for an invalid value. */
HD_MUST_CHECK int hd_chat_header(struct hd_chat_request *request, const char *name,
                                 struct hd_slice value);

/*
 * Normalizes a conversation for a provider: messages of any form as records, each tool call
 * followed by its result (a placeholder if missing), results without a call removed. HD_EINVAL with
 * the reason.
 */
HD_MUST_CHECK int hd_chat_prepare(const struct hd_val *messages, struct hd_val **out,
                                  struct heddle_error *fault);
/*
 * Whether calls of the last AI message wait for results, and no other message follows: then the
 * model is not called.
 */
bool hd_chat_is_waiting(const struct hd_val *messages);
/*
 * Results for invalid calls of the last AI message that have none: tool messages with the status
 * "error". An empty list: none. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK struct hd_val *hd_chat_repairs(const struct hd_val *messages);

/* "human", "ai", "tool" … of a message record. */
struct hd_slice hd_chat_type(const struct hd_val *message);
bool hd_chat_is(const struct hd_val *message, const char *type);

/*
 * For providers whose roles must alternate: consecutive messages of one role become one turn. `put`
 * writes the content of message number `index` and returns the number of parts.
 */
struct hd_chat_turns {
    const char *key;   /* of the list of turns */
    const char *ai;    /* the model's role; the other one is "user" */
    const char *parts; /* of a turn */
    size_t (*put)(struct hd_jw *jw, const struct hd_val *messages, size_t index);
    void (*put_text)(struct hd_jw *jw, struct hd_slice text);
};
void hd_chat_put_turns(struct hd_jw *jw, const struct hd_chat_turns *form,
                       const struct hd_val *messages);

/* The calls of an AI message: number `index` of the valid ones, then of the others. */
struct hd_chat_call {
    struct hd_slice name, id;
    const struct hd_val *args; /* object; NULL: invalid */
    struct hd_slice raw;       /* if invalid: the model's text */
};
size_t hd_chat_call_count(const struct hd_val *message);
struct hd_chat_call hd_chat_call_at(const struct hd_val *message, size_t index);

/* ---- content ---------------------------------------------------------- */

enum hd_content_type {
    HD_CONTENT_TEXT,
    HD_CONTENT_DATA,     /* an image, a document, a sound: base64 in `data` */
    HD_CONTENT_URL,      /* the same, as a URL */
    HD_CONTENT_THINKING, /* with the provider's signature */
    HD_CONTENT_SKIPPED,  /* tool calls and the like, which are written elsewhere */
    HD_CONTENT_OTHER     /* provider-specific */
};

struct hd_content {
    enum hd_content_type type;
    struct hd_slice text; /* or the URL, or the data */
    struct hd_slice kind; /* "image", "file", "audio", "video" */
    struct hd_slice mime; /* may be empty */
    struct hd_slice name; /* of a file; may be empty */
    struct hd_slice detail, signature;
    const struct hd_val *raw; /* the block; NULL for plain text */
};

/* A content is a string (one block) or a list of blocks, in any of LangChain's forms. */
size_t hd_content_count(const struct hd_val *content);
struct hd_content hd_content_at(const struct hd_val *content, size_t index);
/* Appends the texts, one per line; names other content in brackets. */
HD_MUST_CHECK int hd_content_text(const struct hd_val *content, struct hd_buf *out);

/* ---- responses -------------------------------------------------------- */

struct hd_completion_part {
    bool is_thinking;
    bool is_redacted; /* its text is only for the provider */
    bool is_ended;    /* complete: more text begins a new part */
    struct hd_buf text, signature;
    size_t emitted, signature_emitted;
};

struct hd_completion_call {
    int64_t index; /* the provider's */
    struct hd_buf id, name, args, signature;
    size_t emitted; /* bytes of args emitted */
    bool is_emitted;
};

struct hd_usage {
    bool is_given;
    int64_t input, output, total;
    int64_t cache_read, cache_creation, reasoning; /* -1: unknown */
};

struct hd_completion {
    struct hd_completion_part *parts;
    size_t part_count, part_cap;
    struct hd_completion_call *calls;
    size_t call_count, call_cap;
    size_t size;             /* total bytes */
    struct hd_buf reasoning; /* separate from the content, as OpenAI-compatible servers send it */
    size_t reasoning_emitted;
    struct hd_buf model, finish;
    struct hd_usage usage;
    bool has_begun;         /* content was received */
    bool is_ended;          /* a finish reason or the end was received */
    bool is_done;           /* no more can come */
    const char *error_type; /* NULL: no error; else the name of an exception */
    struct hd_buf error;    /* ends with NUL */
};

void hd_completion_init(struct hd_completion *answer);
void hd_completion_fini(struct hd_completion *answer);

/* For providers. HD_ELIMIT when too large, HD_ENOMEM. */
HD_MUST_CHECK int hd_completion_text(struct hd_completion *answer, struct hd_slice text);
HD_MUST_CHECK int hd_completion_thinking(struct hd_completion *answer, struct hd_slice text,
                                         bool is_redacted);
HD_MUST_CHECK int hd_completion_signature(struct hd_completion *answer, struct hd_slice signature);
void hd_completion_end_part(struct hd_completion *answer);
HD_MUST_CHECK int hd_completion_reasoning(struct hd_completion *answer, struct hd_slice text);
/* `index` -1: the last one, unless the id differs. */
HD_MUST_CHECK int hd_completion_call(struct hd_completion *answer, int64_t index,
                                     struct hd_slice id, struct hd_slice name,
                                     struct hd_slice args);
/* The signature of the last call, which must exist. */
HD_MUST_CHECK int hd_completion_sign_call(struct hd_completion *answer, struct hd_slice signature);
HD_MUST_CHECK int hd_completion_set(struct hd_buf *what, struct hd_slice text);
/* Keeps the first error; returns HD_EINVAL. */
int hd_completion_fail(struct hd_completion *answer, const char *type, const char *fmt, ...)
    HD_PRINTF(3, 4);

/* The content since the last call, as a chunk with that id; *out NULL: none. */
HD_MUST_CHECK int hd_completion_piece(struct hd_completion *answer, const char *id,
                                      struct hd_val **out);
/* The last chunk: usage, metadata, and the end mark. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_completion_last(const struct hd_completion *answer,
                                                const char *provider, const char *id);
/*
 * The text so far of a stopped response, as a message with `"stopped": true` in its
 * response_metadata. Without calls and thinking: providers refuse incomplete ones in the next
 * request. *out NULL: no text yet.
 */
HD_MUST_CHECK int hd_completion_partial(struct hd_completion *answer, const char *provider,
                                        const char *id, struct hd_val **out);
/* The whole message. Calls whose arguments are not a JSON object are in `invalid_tool_calls`. */
HD_MUST_CHECK struct hd_val *hd_completion_message(const struct hd_completion *answer,
                                                   const char *provider, const char *id);
/* Whether it has neither text nor calls. */
bool hd_completion_is_empty(const struct hd_completion *answer);

/* ---- providers -------------------------------------------------------- */

struct hd_provider {
    const char *name;  /* in model names, and in `model_provider` */
    const char *model; /* name of its models in events */

    /* All three are NULL for the provider without a server. */
    int (*request)(const struct hd_chat *chat, struct hd_chat_request *out);
    /*
     * Reads one event of a stream, or the whole body without streaming. HD_EINVAL: invalid, see
     * answer->error; HD_ELIMIT, HD_ENOMEM.
     */
    int (*event)(struct hd_completion *answer, const struct hd_sse_event *event);
    int (*body)(struct hd_completion *answer, struct hd_slice body);
};

extern const struct hd_provider hd_provider_openai;
extern const struct hd_provider hd_provider_anthropic;
extern const struct hd_provider hd_provider_gemini;
extern const struct hd_provider hd_provider_offline;

/* provider_offline.c: the built-in model's response to these messages; *fails: it is an error. */
HD_MUST_CHECK int hd_offline_answer(const struct hd_val *messages, struct hd_buf *out, bool *fails);
/* Bytes of the next word of a text, with the space after it. */
size_t hd_offline_word(struct hd_slice text);

/* provider_schema.c: a JSON Schema in Gemini's subset. */
HD_MUST_CHECK struct hd_val *hd_schema_reduce(const struct hd_val *schema);

/*
 * Parses a JSON text that should be an object, for `read`. HD_EINVAL with an error in the answer
 * when it is not; else the result of `read`.
 */
HD_MUST_CHECK int hd_completion_read(struct hd_completion *answer, struct hd_slice text,
                                     int (*read)(struct hd_completion *answer, hd_json_val root));
/* The error in a body or event, if it has one: HD_EINVAL; else 0. */
HD_MUST_CHECK int hd_completion_check_error(struct hd_completion *answer, hd_json_val root);
/* A member of an object: a count, or a text; else `otherwise`, or "". */
int64_t hd_count_of(hd_json_val object, const char *key, int64_t otherwise);
struct hd_slice hd_text_of(hd_json_val object, const char *key);
/* Writes a member that is a number. */
void hd_put_number(struct hd_jw *jw, const char *key, double number);

#endif
