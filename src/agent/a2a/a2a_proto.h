/*
 * A2A wire format: cards, requests and responses of both versions (0.3 and 1.0). Pure.
 *
 * Requests use the version and binding of the agent's card. Responses are parsed by their form: a
 * `kind` (0.3) or the enclosing member (1.0) gives the type; both names of states and roles are
 * accepted.
 */
#ifndef HD_AGENT_A2A_A2A_PROTO_H
#define HD_AGENT_A2A_A2A_PROTO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_A2A_MAX_CARD ((size_t)1 << 20)
#define HD_A2A_MAX_URL 4096
#define HD_A2A_MAX_ID 1024
#define HD_A2A_MAX_ANSWER ((size_t)8 << 20) /* total size of a task's responses */
#define HD_A2A_MAX_ARTIFACTS 256

enum hd_a2a_dialect { HD_A2A_ANY, HD_A2A_0_3, HD_A2A_1_0 };
enum hd_a2a_binding { HD_A2A_JSONRPC, HD_A2A_HTTP_JSON };

/* ---- cards: a2a_card.c ------------------------------------------------ */

struct hd_a2a_card {
    char *name;
    char *description; /* with its skills */
    char *url;         /* target of requests */
    char *tenant;      /* empty: none */
    enum hd_a2a_dialect dialect;
    enum hd_a2a_binding binding;
    bool streams;
};

/*
 * Picks the card's first supported interface, in the wanted version. HD_EINVAL with the reason: not
 * a card, or no supported interface.
 */
HD_MUST_CHECK int hd_a2a_card_read(struct hd_slice text, enum hd_a2a_dialect wanted,
                                   struct hd_a2a_card *out, struct heddle_error *fault);
void hd_a2a_card_fini(struct hd_a2a_card *card);

/* Appends the URL of the card of the agent at `url`, and a NUL. */
HD_MUST_CHECK int hd_a2a_card_url(struct hd_slice url, struct hd_buf *out);
/* http or https, with a host, without spaces and control characters. */
bool hd_a2a_is_url(struct hd_slice url);
/* Scheme, host and port of two such URLs are the same. */
bool hd_a2a_same_origin(struct hd_slice a, struct hd_slice b);

/* ---- requests: a2a_request.c ------------------------------------------- */

enum hd_a2a_op { HD_A2A_SEND, HD_A2A_STREAM, HD_A2A_GET, HD_A2A_CANCEL };

struct hd_a2a_operation {
    enum hd_a2a_op op;
    struct hd_slice task_id;    /* empty: none (SEND and STREAM: a new task) */
    struct hd_slice context_id; /* SEND, STREAM; empty: the agent creates one */
    struct hd_slice message_id;
    struct hd_slice key;       /* SEND, STREAM: goes into the message's metadata */
    struct hd_slice text;      /* the content: */
    const struct hd_val *data; /* or this, if not NULL */
};

struct hd_a2a_request {
    const char *method;
    const char *version; /* of the header A2A-Version */
    struct hd_buf url;   /* ends with a NUL */
    struct hd_buf body;  /* empty: none */
};

/* HD_ELIMIT: too large. */
HD_MUST_CHECK int hd_a2a_request_make(const struct hd_a2a_card *card,
                                      const struct hd_a2a_operation *operation,
                                      struct hd_a2a_request *out);
void hd_a2a_request_fini(struct hd_a2a_request *request);

/* ---- responses: a2a_answer.c, a2a_parts.c ----------------------------- */

enum hd_a2a_state {
    HD_A2A_UNKNOWN,
    HD_A2A_SUBMITTED,
    HD_A2A_WORKING,
    HD_A2A_COMPLETED,
    HD_A2A_FAILED,
    HD_A2A_CANCELED,
    HD_A2A_REJECTED,
    HD_A2A_INPUT_REQUIRED,
    HD_A2A_AUTH_REQUIRED
};

/* "working", "input-required" … */
const char *hd_a2a_state_name(enum hd_a2a_state state);
enum hd_a2a_state hd_a2a_state_read(struct hd_slice name);
/* Whether the state is final. */
bool hd_a2a_state_ends(enum hd_a2a_state state);
/* Whether the task waits for input. */
bool hd_a2a_state_asks(enum hd_a2a_state state);

/*
 * Parts in one form: {"type": "text", "text"}, {"type": "data", "data"},
 * {"type": "file", "name", "mime_type", "uri" or "base64"}.
 */
HD_MUST_CHECK int hd_a2a_parts_read(hd_json_val parts, struct hd_val **out,
                                    struct heddle_error *fault);
/* Appends their text for a model, with a line break before each but the first. */
HD_MUST_CHECK int hd_a2a_parts_text(struct hd_buf *out, const struct hd_val *parts);

struct hd_a2a_artifact {
    struct hd_val *about; /* object: artifact_id, name, description */
    struct hd_val *parts; /* list */
    struct hd_buf tail;   /* growing text after the parts */
};

/* The current state of a task, or the message received as response. */
struct hd_a2a_answer {
    bool is_message;
    bool is_final; /* the agent streams no more */
    enum hd_a2a_state state;
    struct hd_val *task_id, *context_id; /* strings; NULL: unknown */
    struct hd_val *message; /* parts of the response's or the status's message; or NULL */
    struct hd_buf heard;    /* status texts sent while working */
    struct hd_a2a_artifact *artifacts;
    size_t artifact_count;
    size_t bytes; /* read so far */
};

enum hd_a2a_kind { HD_A2A_TASK, HD_A2A_MESSAGE, HD_A2A_STATUS, HD_A2A_ARTIFACT };

/* Changes from one response or event; borrowed from it, or owned. */
struct hd_a2a_progress {
    enum hd_a2a_kind kind;
    struct hd_val *parts;    /* list, owned; NULL: none */
    struct hd_val *artifact; /* its name or id, borrowed; NULL: none */
};

void hd_a2a_answer_init(struct hd_a2a_answer *answer);
void hd_a2a_answer_fini(struct hd_a2a_answer *answer);
/*
 * Reads the body of a response or the data of an event. HD_EIO: the agent reports an error, which
 * is in `fault`; HD_EINVAL: invalid; HD_ELIMIT.
 */
HD_MUST_CHECK int hd_a2a_answer_read(struct hd_a2a_answer *answer, struct hd_slice text,
                                     struct hd_a2a_progress *progress, struct heddle_error *fault);

/* The whole result, as text; NULL: HD_ENOMEM or too large. */
HD_MUST_CHECK struct hd_val *hd_a2a_answer_content(struct hd_a2a_answer *answer);
/* The message of the status (or the response) as text, which may be empty. */
HD_MUST_CHECK struct hd_val *hd_a2a_answer_said(const struct hd_a2a_answer *answer);
/*
 * An object {"task_id", "context_id", "state", "artifacts": [{"artifact_id", "name", "description",
 * "parts"}]}; for a message {"context_id", "parts"}.
 */
HD_MUST_CHECK struct hd_val *hd_a2a_answer_artifact(struct hd_a2a_answer *answer);

/* The text of an error body, of JSON-RPC or of the HTTP binding; false: none. */
bool hd_a2a_error_read(hd_json_val body, struct heddle_error *fault);

#endif
