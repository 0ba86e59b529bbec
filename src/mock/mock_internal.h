/* What the files of this folder share. */
#ifndef HD_MOCK_INTERNAL_H
#define HD_MOCK_INTERNAL_H

#include "base/arena.h"
#include "base/json.h"
#include "mock/mock.h"

/* ---- the script: script.c --------------------------------------------- */

enum hd_mock_cut { HD_CUT_WORDS, HD_CUT_CHARACTERS, HD_CUT_CHUNKS, HD_CUT_WHOLE };

struct hd_mock_pace {
    int64_t latency_ms; /* each -1 in a rule: as the script says */
    int64_t delay_ms;
    enum hd_mock_cut cut;
    int64_t size; /* characters of a piece, or number of chunks; 0: `cut` is not given */
};

enum hd_mock_calls { HD_CALLS_NONE, HD_CALLS_LISTED, HD_CALLS_ASKED, HD_CALLS_OFFERED };

struct hd_mock_rule {
    /* conditions; NULL or -1: none */
    hd_json_val contains, equals, role, user, system, model, tool;
    int64_t call;        /* that of the server, from 1 */
    int64_t results;     /* how many tool results */
    int has_results;     /* -1: any, 0: none, 1: some */
    int64_t times, used; /* how often it may be used; 0: any number */
    /* the reply */
    hd_json_val content, reasoning, finish_reason, error_message, error_type;
    enum hd_mock_calls calls;
    hd_json_val call_list;
    int64_t call_count; /* of HD_CALLS_OFFERED */
    int64_t status;     /* 200 when it is no error */
    int64_t retry_after;
    int64_t input_tokens, output_tokens; /* -1: counted */
    int64_t cut_after;
    bool hangs;
    struct hd_mock_pace pace;
};

struct hd_mock {
    struct hd_json json; /* what the rules refer to */
    struct hd_mock_rule *rules;
    size_t rule_count;
    struct hd_mock_pace pace;
    hd_json_val models;
    struct hd_slice key;
    int64_t calls;
};

/* ---- what is asked: ask.c --------------------------------------------- */

struct hd_mock_seen {
    enum hd_mock_form form;
    struct hd_arena arena;
    struct hd_json json;
    struct hd_slice model;
    struct hd_slice last, last_role; /* the last message; roles are OpenAI's */
    struct hd_slice user;            /* the last one of the user */
    struct hd_buf system;
    struct hd_buf results; /* of tools, since that one */
    size_t result_count;
    hd_json_val tools; /* as they were sent */
    bool is_stream;
    bool wants_usage;
    int64_t words; /* of all messages */
};

/* HD_EINVAL with what is wrong with the request. To be ended with fini in any case. */
HD_MUST_CHECK int hd_mock_see(struct hd_mock_seen *seen, const struct hd_mock_ask *ask,
                              struct hd_fault *fault);
void hd_mock_seen_fini(struct hd_mock_seen *seen);

/* Tool `index` that was offered: false after the last. The schema may be NULL. */
bool hd_mock_offered(const struct hd_mock_seen *seen, size_t index, struct hd_slice *name,
                     hd_json_val *schema);
int64_t hd_mock_words(struct hd_slice text);

/* ---- what is replied: pick.c ------------------------------------------ */

struct hd_mock_call {
    struct hd_slice id, name;
    struct hd_slice args; /* text of JSON, or of what should have been */
};

struct hd_mock_reply {
    const struct hd_mock_rule *rule;
    struct hd_mock_pace pace;
    struct hd_slice content, reasoning;
    struct hd_mock_call *calls;
    size_t call_count;
    struct hd_slice finish_reason; /* empty: the usual one */
    int64_t input_tokens, output_tokens;
};

/* The first rule that holds; its texts are in the arena of `seen`. HD_ENOTFOUND: none does. */
HD_MUST_CHECK int hd_mock_pick(struct hd_mock *mock, struct hd_mock_seen *seen,
                               struct hd_mock_reply *out);

/* The calls that the user's text asks for, and calls of what is offered: calls.c. */
HD_MUST_CHECK int hd_mock_calls_asked(struct hd_mock_seen *seen, struct hd_mock_reply *out);
HD_MUST_CHECK int hd_mock_calls_offered(struct hd_mock_seen *seen, int64_t count,
                                        struct hd_mock_reply *out);
HD_MUST_CHECK int hd_mock_call_id(struct hd_arena *arena, struct hd_slice *out);

/* ---- how it is written: answer.c, openai.c, anthropic.c, gemini.c ------ */

/* A writer of answers; keeps the first error. */
struct hd_mock_out {
    struct hd_mock_answer *answer;
    struct hd_jw jw; /* on the answer's text */
    size_t cap;
    int err;
};

/* What follows belongs to the next piece. */
void hd_mock_next_piece(struct hd_mock_out *out);
void hd_mock_raw(struct hd_mock_out *out, struct hd_slice text);
/* One event: `data: ` and what is written between the two; begin with the event's name or none. */
void hd_mock_event(struct hd_mock_out *out, struct hd_slice name);
void hd_mock_event_end(struct hd_mock_out *out);

/* Cuts the next piece off `text`; false when nothing is left. */
struct hd_mock_cutter {
    struct hd_slice rest;
    struct hd_mock_pace pace;
    size_t characters, done, pieces;
};
void hd_mock_cutter_init(struct hd_mock_cutter *cutter, struct hd_slice text,
                         const struct hd_mock_pace *pace);
bool hd_mock_cut_next(struct hd_mock_cutter *cutter, struct hd_slice *piece);

/* Write the whole answer, or the stream. */
void hd_mock_openai(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply);
void hd_mock_anthropic(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                       const struct hd_mock_reply *reply);
void hd_mock_gemini(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply);

/* The arguments of a call as JSON; what is none cannot be said in all forms, and is {} there. */
void hd_mock_args(struct hd_jw *jw, const struct hd_mock_call *call);

/* "key": "value" and "key": number, which answers are full of. */
static inline void hd_mock_text(struct hd_jw *jw, const char *key, struct hd_slice value)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_string(jw, value);
}
static inline void hd_mock_number(struct hd_jw *jw, const char *key, int64_t value)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    hd_jw_int(jw, value);
}

#endif
