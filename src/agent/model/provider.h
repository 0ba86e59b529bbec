/*
 * Providers of models: how each is asked, and how its answer is read. Pure: requests are
 * made of values, answers are fed in pieces; nothing here sends anything.
 *
 * An answer is put together in a struct hd_answer, whatever the provider's protocol: text,
 * what the model thought, calls of tools, usage and why it ended. What came since the last look is
 * a piece (an AIMessageChunk); all of it is a message whose parts are those of the pieces.
 *
 * A new provider: its file, and its line in the table of model_choice.c.
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
#define HD_ANSWER_MAX_BYTES ((size_t)16 << 20)
#define HD_ANSWER_MAX_PARTS 1024 /* of content, and as many calls */

/* ---- questions -------------------------------------------------------- */

struct hd_chat {
    struct hd_slice model;
    struct hd_slice base_url;       /* without a slash at the end */
    struct hd_slice key;            /* empty: none is sent */
    struct hd_slice system;         /* empty: none */
    const struct hd_val *messages;  /* of hd_chat_prepare() */
    const struct hd_toolset *tools; /* NULL: none */
    bool streams;
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not said */
};

struct hd_chat_request {
    struct hd_buf url;     /* ends with NUL */
    struct hd_buf headers; /* lines, each ends with NUL */
    struct hd_buf body;
    size_t header_count;
};

void hd_chat_request_init(struct hd_chat_request *request);
void hd_chat_request_fini(struct hd_chat_request *request);
/* Adds "name: value"; a value that no header can have is HD_EINVAL. */
HD_MUST_CHECK int hd_chat_header(struct hd_chat_request *request, const char *name,
                                 struct hd_slice value);

/*
 * What a provider can be sent of a conversation: messages of any form as records, each call of a
 * tool followed by its answer (a placeholder where there is none), answers to nothing left
 * out. HD_EINVAL with the reason.
 */
HD_MUST_CHECK int hd_chat_prepare(const struct hd_val *messages, struct hd_val **out,
                                  struct hd_fault *fault);
/*
 * Whether calls of the last AI message wait for answers, and nobody has said anything else since:
 * then the model is not asked.
 */
bool hd_chat_is_waiting(const struct hd_val *messages);
/*
 * Answers to calls of the last AI message that are not valid, and that nobody has answered: tool
 * messages with the status "error". An empty list: there are none. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK struct hd_val *hd_chat_repairs(const struct hd_val *messages);

/* "human", "ai", "tool" … of a message record. */
struct hd_slice hd_chat_type(const struct hd_val *message);
bool hd_chat_is(const struct hd_val *message, const char *type);

/*
 * Where roles have to alternate: messages of one role that follow each other become one turn.
 * `put` writes what is in message number `index` and says how many parts that were.
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

/* The calls of an AI message: number `index` of those that are valid, then of the others. */
struct hd_chat_call {
    struct hd_slice name, id;
    const struct hd_val *args; /* object; NULL: they are no JSON object */
    struct hd_slice raw;       /* then: what the model wrote */
};
size_t hd_chat_call_count(const struct hd_val *message);
struct hd_chat_call hd_chat_call_at(const struct hd_val *message, size_t index);

/* ---- content ---------------------------------------------------------- */

enum hd_content_type {
    HD_CONTENT_TEXT,
    HD_CONTENT_DATA,     /* an image, a document, a sound: base64 in `data` */
    HD_CONTENT_URL,      /* the same, where it can be had */
    HD_CONTENT_THINKING, /* with the provider's signature */
    HD_CONTENT_SKIPPED,  /* calls of tools and the like, which are said elsewhere */
    HD_CONTENT_OTHER     /* only its maker knows */
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
/* Appends the texts, a line for each; what is not text is named in brackets. */
HD_MUST_CHECK int hd_content_text(const struct hd_val *content, struct hd_buf *out);

/* ---- answers ---------------------------------------------------------- */

struct hd_answer_part {
    bool is_thinking;
    bool is_redacted; /* its text is for the provider alone */
    bool is_ended;    /* what follows is another one */
    struct hd_buf text, signature;
    size_t told, signature_told;
};

struct hd_answer_call {
    int64_t index; /* the provider's */
    struct hd_buf id, name, args, signature;
    size_t told; /* bytes of args */
    bool is_told;
};

struct hd_usage {
    bool is_given;
    int64_t input, output, total;
    int64_t cache_read, cache_creation, reasoning; /* -1: not said */
};

struct hd_answer {
    struct hd_answer_part *parts;
    size_t part_count, part_cap;
    struct hd_answer_call *calls;
    size_t call_count, call_cap;
    size_t size;             /* bytes of all that it has */
    struct hd_buf reasoning; /* as OpenAI-compatible servers send it: beside the content */
    size_t reasoning_told;
    struct hd_buf model, finish;
    struct hd_usage usage;
    bool has_begun;         /* something of an answer was there */
    bool is_ended;          /* the provider has said why it ended, or that it did */
    bool is_done;           /* nothing more can come */
    const char *error_type; /* NULL: none; else the name of an exception */
    struct hd_buf error;    /* ends with NUL */
};

void hd_answer_init(struct hd_answer *answer);
void hd_answer_fini(struct hd_answer *answer);

/* For providers. HD_ELIMIT when it becomes too much, HD_ENOMEM. */
HD_MUST_CHECK int hd_answer_text(struct hd_answer *answer, struct hd_slice text);
HD_MUST_CHECK int hd_answer_thinking(struct hd_answer *answer, struct hd_slice text,
                                     bool is_redacted);
HD_MUST_CHECK int hd_answer_signature(struct hd_answer *answer, struct hd_slice signature);
void hd_answer_end_part(struct hd_answer *answer);
HD_MUST_CHECK int hd_answer_reasoning(struct hd_answer *answer, struct hd_slice text);
/* `index` -1: the last one, unless the id is another. */
HD_MUST_CHECK int hd_answer_call(struct hd_answer *answer, int64_t index, struct hd_slice id,
                                 struct hd_slice name, struct hd_slice args);
/* The signature of the last call, of which there is one. */
HD_MUST_CHECK int hd_answer_sign_call(struct hd_answer *answer, struct hd_slice signature);
HD_MUST_CHECK int hd_answer_set(struct hd_buf *what, struct hd_slice text);
/* Keeps the first error; returns HD_EINVAL. */
int hd_answer_fail(struct hd_answer *answer, const char *type, const char *fmt, ...)
    HD_PRINTF(3, 4);

/* What came since the last call, as a chunk with that id; *out NULL: nothing. */
HD_MUST_CHECK int hd_answer_piece(struct hd_answer *answer, const char *id, struct hd_val **out);
/* The last chunk: usage, metadata, and that it is the last. NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_answer_last(const struct hd_answer *answer, const char *provider,
                                            const char *id);
/*
 * The text so far of an answer that is stopped, as a message with `"stopped": true` in its
 * response_metadata. Without calls and thoughts: a provider refuses halves of them in the next
 * request. *out NULL: there is no text yet.
 */
HD_MUST_CHECK int hd_answer_partial(struct hd_answer *answer, const char *provider, const char *id,
                                    struct hd_val **out);
/* All of it. Calls whose arguments are no JSON object are in `invalid_tool_calls`. */
HD_MUST_CHECK struct hd_val *hd_answer_message(const struct hd_answer *answer, const char *provider,
                                               const char *id);
/* Whether there is nothing in it: no text, no call. */
bool hd_answer_is_empty(const struct hd_answer *answer);

/* ---- providers -------------------------------------------------------- */

struct hd_provider {
    const char *name;  /* as models are chosen by, and in `model_provider` */
    const char *model; /* what events call its models */

    /* All three are NULL for the provider that needs no server. */
    int (*request)(const struct hd_chat *chat, struct hd_chat_request *out);
    /*
     * One event of a stream, or the whole body of an answer without one. HD_EINVAL: it is no
     * answer, see answer->error; HD_ELIMIT, HD_ENOMEM.
     */
    int (*event)(struct hd_answer *answer, const struct hd_sse_event *event);
    int (*body)(struct hd_answer *answer, struct hd_slice body);
};

extern const struct hd_provider hd_provider_openai;
extern const struct hd_provider hd_provider_anthropic;
extern const struct hd_provider hd_provider_gemini;
extern const struct hd_provider hd_provider_offline;

/* provider_offline.c: what the built-in model says to these messages; *fails: it fails with it. */
HD_MUST_CHECK int hd_offline_answer(const struct hd_val *messages, struct hd_buf *out, bool *fails);
/* Bytes of the next word of a text, with the space after it. */
size_t hd_offline_word(struct hd_slice text);

/* provider_schema.c: a JSON Schema as Gemini takes it. */
HD_MUST_CHECK struct hd_val *hd_schema_reduce(const struct hd_val *schema);

/*
 * A JSON text that should be an object, for `read`. HD_EINVAL with a clear error in the answer
 * when it is none; else what `read` returns.
 */
HD_MUST_CHECK int hd_answer_read(struct hd_answer *answer, struct hd_slice text,
                                 int (*read)(struct hd_answer *answer, hd_json_val root));
/* The error in a body or event, if it has one: HD_EINVAL; else 0. */
HD_MUST_CHECK int hd_answer_check_error(struct hd_answer *answer, hd_json_val root);
/* A member of an object: a number that counts something, or a text; else `otherwise`, or "". */
int64_t hd_count_of(hd_json_val object, const char *key, int64_t otherwise);
struct hd_slice hd_text_of(hd_json_val object, const char *key);
/* Writes a member. */
void hd_put_string(struct hd_jw *jw, const char *key, struct hd_slice text);
void hd_put_number(struct hd_jw *jw, const char *key, double number);

#endif
