/* Shared by the files of this folder. */
#ifndef HD_MOCK_INTERNAL_H
#define HD_MOCK_INTERNAL_H

#include "base/arena.h"
#include "base/json.h"
#include "mock/mock.h"

/* ---- the script: script.c --------------------------------------------- */

enum hd_mock_cut { HD_CUT_WORDS, HD_CUT_CHARACTERS, HD_CUT_CHUNKS, HD_CUT_WHOLE };

struct hd_mock_pace {
    int64_t latency_ms; /* -1 in a rule: the script's default */
    int64_t delay_ms;
    enum hd_mock_cut cut;
    int64_t size; /* characters of a piece, or number of chunks; 0: `cut` is absent */
};

enum hd_mock_calls { HD_CALLS_NONE, HD_CALLS_LISTED, HD_CALLS_ASKED, HD_CALLS_OFFERED };

struct hd_mock_rule {
    /* conditions; NULL or -1: none */
    hd_json_val contains, equals, role, user, system, model, tool;
    int64_t call;        /* number of the request to this server, from 1 */
    int64_t results;     /* number of tool results */
    int has_results;     /* -1: any, 0: none, 1: some */
    int64_t times, used; /* maximum uses, and uses; 0: no limit */
    /* the reply */
    hd_json_val content, reasoning, finish_reason, error_message, error_type;
    enum hd_mock_calls calls;
    hd_json_val call_list;
    int64_t call_count; /* of HD_CALLS_OFFERED */
    int64_t status;     /* 200: no error */
    int64_t retry_after;
    int64_t input_tokens, output_tokens; /* -1: counted */
    int64_t cut_after;
    bool hangs;
    struct hd_mock_pace pace;
};

struct hd_mock {
    struct hd_json json; /* the document that the rules refer to */
    struct hd_mock_rule *rules;
    size_t rule_count;
    struct hd_mock_pace pace;
    hd_json_val models;
    struct hd_slice key;
    int64_t calls;
};

/* ---- request: ask.c --------------------------------------------------- */

struct hd_mock_seen {
    enum hd_mock_form form;
    struct hd_arena arena;
    struct hd_json json;
    struct hd_slice model;
    struct hd_slice last, last_role; /* the last message; OpenAI's role names */
    struct hd_slice user;            /* the last user message */
    struct hd_buf system;
    struct hd_buf results; /* tool results after `user` */
    size_t result_count;
    hd_json_val tools; /* as received */
    bool is_stream;
    bool wants_usage;
    int64_t words; /* of all messages */
};

/* HD_EINVAL with the reason if the request is invalid. Call fini in any case. */
HD_MUST_CHECK int hd_mock_see(struct hd_mock_seen *seen, const struct hd_mock_ask *ask,
                              struct heddle_error *fault);
void hd_mock_seen_fini(struct hd_mock_seen *seen);

/* Offered tool number `index`; false after the last. The schema may be NULL. */
bool hd_mock_offered(const struct hd_mock_seen *seen, size_t index, struct hd_slice *name,
                     hd_json_val *schema);
int64_t hd_mock_words(struct hd_slice text);

/* ---- reply: pick.c ---------------------------------------------------- */

struct hd_mock_call {
    struct hd_slice id, name;
    struct hd_slice args; /* JSON text, or deliberately invalid text */
};

struct hd_mock_reply {
    const struct hd_mock_rule *rule;
    struct hd_mock_pace pace;
    struct hd_slice content, reasoning;
    struct hd_mock_call *calls;
    size_t call_count;
    struct hd_slice finish_reason; /* empty: the default */
    int64_t input_tokens, output_tokens;
};

/*
 * Picks the first matching rule; texts are in the arena of `seen`. HD_ENOTFOUND: no rule matches.
 */
HD_MUST_CHECK int hd_mock_pick(struct hd_mock *mock, struct hd_mock_seen *seen,
                               struct hd_mock_reply *out);

/* Calls requested by the user's text, and calls of offered tools: calls.c. */
HD_MUST_CHECK int hd_mock_calls_asked(struct hd_mock_seen *seen, struct hd_mock_reply *out);
HD_MUST_CHECK int hd_mock_calls_offered(struct hd_mock_seen *seen, int64_t count,
                                        struct hd_mock_reply *out);
HD_MUST_CHECK int hd_mock_call_id(struct hd_arena *arena, struct hd_slice *out);

/* ---- response formats: answer.c, openai.c, anthropic.c, gemini.c ------ */

/* Writes a response; keeps the first error. */
struct hd_mock_out {
    struct hd_mock_answer *answer;
    struct hd_jw jw; /* on the answer's text */
    size_t cap;
    int err;
};

/* Ends the current piece. */
void hd_mock_next_piece(struct hd_mock_out *out);
void hd_mock_raw(struct hd_mock_out *out, struct hd_slice text);
/*
 * One SSE event: `data: ` and the text written between begin and end; begin takes the event's name
 * or an empty one.
 */
void hd_mock_event(struct hd_mock_out *out, struct hd_slice name);
void hd_mock_event_end(struct hd_mock_out *out);

/* Takes the next piece of `text`; false when nothing is left. */
struct hd_mock_cutter {
    struct hd_slice rest;
    struct hd_mock_pace pace;
    size_t characters, done, pieces;
};
void hd_mock_cutter_init(struct hd_mock_cutter *cutter, struct hd_slice text,
                         const struct hd_mock_pace *pace);
bool hd_mock_cut_next(struct hd_mock_cutter *cutter, struct hd_slice *piece);

/* Write the whole response, or the stream. */
void hd_mock_openai(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply);
void hd_mock_anthropic(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                       const struct hd_mock_reply *reply);
void hd_mock_gemini(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply);

/*
 * The arguments of a call as JSON; {} when they are not valid JSON, since not all APIs can send
 * that.
 */
void hd_mock_args(struct hd_jw *jw, const struct hd_mock_call *call);

#endif
