/*
 * Tools, and the sources they come from.
 *
 * A `tools` node has sources: `{"mcp": VALUE}`, `{"http": VALUE}` … The kind of source
 * says what its value means. Values are evaluated in each run; a source with the same kind
 * and value is opened once in a run, by whoever needs its tools first (the model node that
 * offers them, or the tools node that calls one), and closed when the run is over.
 *
 * A new kind of source: its file, and its line in the table of source.c.
 */
#ifndef HD_AGENT_TOOL_H
#define HD_AGENT_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_TOOL_MAX_NAME 64   /* what providers accept */
#define HD_TOOL_MAX_TOOLS 512 /* of one node */

struct hd_run;
struct hd_source;
struct hd_task;
struct hd_tool_call;

struct hd_tool {
    struct hd_slice name;            /* as its source calls it */
    struct hd_slice description;     /* may be empty */
    const struct hd_val *parameters; /* JSON Schema of the arguments, an object */
    bool is_client;                  /* whoever started the run answers, with a tool message */
    int64_t timeout_ms;              /* of a call; 0: the node's; below 0: none */
    struct hd_source *source;        /* set by hd_source_add() */
    void *own;                       /* the source's */
};

struct hd_source_kind {
    const char *name;

    /*
     * Whether the value can be meant: at reading, when it has no expressions, and before it is
     * opened. null is a source without tools and does not come here. HD_EINVAL with the reason.
     */
    int (*check)(const struct hd_val *value, struct hd_fault *fault);

    /* Adds its tools, then calls hd_source_ready(), now or later. An error: nothing was begun. */
    int (*open)(struct hd_source *source);
    /* Stops what is under way and frees what is its own; no call is at work. */
    void (*close)(struct hd_source *source);

    /*
     * Begins a call. It ends with hd_tool_done(), hd_tool_error() or hd_tool_ask(), now or later.
     * An error: nothing was begun.
     */
    int (*call)(struct hd_tool_call *call);
    /* Stops it, on the other side too where that can be said; nothing is reported any more. */
    void (*cancel)(struct hd_tool_call *call);

    int64_t open_ms; /* after this an opening is a problem, and what comes later is lost; 0: 30 s */
};

struct hd_source {
    const struct hd_source_kind *kind;
    struct hd_val *value; /* evaluated; markers of secrets (secret/secret.h) are still in it */
    struct hd_run *run;
    void *own; /* the kind's */
    /* source.c's own below */
    struct hd_tool **tools;
    size_t tool_count, tool_cap;
    bool is_open; /* close() must be called */
    bool is_ready;
    bool is_told;             /* the problem */
    char *problem;            /* why it has no tools; NULL: it is fine */
    struct uv_timer_s *timer; /* limits the opening */
    struct hd_source *next;
};

/* Copies what the tool points to but `own`. Nothing is added to a source that is ready. */
HD_MUST_CHECK int hd_source_add(struct hd_source *source, const struct hd_tool *tool);
/*
 * All tools are there; with a problem (without secrets), those of it that could be had: the agent
 * goes on with the others, and the problem is told as a `custom` event and in the log.
 */
void hd_source_ready(struct hd_source *source, const char *problem);

/* One call at work. */
struct hd_tool_call {
    struct hd_task *task;
    const struct hd_tool *tool;
    const struct hd_val *args; /* object */
    struct hd_slice id;
    void *own; /* the source's */
    /* node_tools.c's own below */
    void *node;
};

/* Takes. `content` is a string or a list of content blocks; `artifact` may be NULL. */
void hd_tool_done(struct hd_tool_call *call, struct hd_val *content, struct hd_val *artifact);
/* The model sees the text and may try something else. No secrets in it. */
void hd_tool_error(struct hd_tool_call *call, const char *fmt, ...) HD_PRINTF(2, 3);
/*
 * Asks whoever runs the graph: the run is interrupted with `question` (taken). When it is resumed
 * the call begins anew, with the answer in hd_tool_answer().
 */
void hd_tool_ask(struct hd_tool_call *call, struct hd_val *question);
/* The last answer, borrowed, or NULL; and the question that it answers. */
const struct hd_val *hd_tool_answer(const struct hd_tool_call *call);
const struct hd_val *hd_tool_question(const struct hd_tool_call *call);

#endif
