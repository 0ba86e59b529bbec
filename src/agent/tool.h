/*
 * Tools, and their sources.
 *
 * A `tools` node has sources: `{"mcp": VALUE}`, `{"http": VALUE}` … The kind of source defines the
 * meaning of its value. Values are evaluated in each run; a source with the same kind and value is
 * opened once per run, by the first node that needs its tools (the model node that offers them, or
 * the tools node that calls one), and closed when the run is over.
 *
 * To add a kind of source: its file, and its line in the table of source.c.
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

#define HD_TOOL_MAX_NAME 64   /* the providers' limit */
#define HD_TOOL_MAX_TOOLS 512 /* of one node */

struct hd_engine_run;
struct hd_tool_source;
struct hd_task;
struct hd_tool_call;

struct hd_tool {
    struct hd_slice name;            /* the source's name for it */
    struct hd_slice description;     /* may be empty */
    const struct hd_val *parameters; /* JSON Schema of the arguments, an object */
    bool is_client;                  /* the client runs it and replies with a tool message */
    bool is_read_only;               /* its calls have no effects; its messages are marked */
    int64_t timeout_ms;              /* of a call; 0: the node's; below 0: none */
    struct hd_tool_source *source;   /* set by hd_source_add() */
    void *own;                       /* the source's */
};

struct hd_source_kind {
    const char *name;

    /*
     * Checks the value: when the graph is read, if it has no expressions, and before opening. Not
     * called for null, a source without tools. HD_EINVAL with the reason.
     */
    int (*check)(const struct hd_val *value, struct heddle_error *fault);

    /*
     * Adds its tools, then calls hd_source_ready(), also before it returns: waiting tasks continue
     * later. On error, nothing was started.
     */
    int (*open)(struct hd_tool_source *source);
    /* Stops pending operations and frees its data; no call is running. */
    void (*close)(struct hd_tool_source *source);

    /*
     * Starts a call. It ends with hd_tool_done(), hd_tool_error() or hd_tool_ask(), also before
     * this returns: the task then ends afterwards. On error, nothing was started.
     */
    int (*call)(struct hd_tool_call *call);
    /* Stops it, also at the server if the protocol allows; no callbacks follow. */
    void (*cancel)(struct hd_tool_call *call);

    int64_t open_ms; /* timeout of opening; tools added later are ignored; 0: 30 s */
};

struct hd_tool_source {
    const struct hd_source_kind *kind;
    struct hd_val *value; /* evaluated; still has markers of secrets (secret/secret.h) */
    struct hd_engine_run *run;
    void *own; /* the kind's */
    /* the members below belong to source.c */
    struct hd_tool **tools;
    size_t tool_count, tool_cap;
    bool is_open; /* close() must be called */
    bool is_ready;
    bool is_reported;         /* the problem was reported */
    char *problem;            /* why it has no tools; NULL: none */
    struct uv_timer_s *timer; /* limits the opening */
    struct hd_tool_source *next;
};

/* Copies everything the tool points to except `own`. Ignored for a source that is ready. */
HD_MUST_CHECK int hd_source_add(struct hd_tool_source *source, const struct hd_tool *tool);
/*
 * All tools are added; with a problem (without secrets), those that are available: the agent
 * continues with them, and the problem is reported as a `custom` event and in the log.
 */
void hd_source_ready(struct hd_tool_source *source, const char *problem);

/* One running call. */
struct hd_tool_call {
    struct hd_task *task;
    const struct hd_tool *tool;
    const struct hd_val *args; /* object */
    struct hd_slice id;
    void *own; /* the source's */
    /* the members below belong to node_tools.c */
    void *node;
};

/* Takes. `content` is a string or a list of content blocks; `artifact` may be NULL. */
void hd_tool_done(struct hd_tool_call *call, struct hd_val *content, struct hd_val *artifact);
/* The model sees the text and may retry differently. No secrets in it. */
void hd_tool_error(struct hd_tool_call *call, const char *fmt, ...) HD_PRINTF(2, 3);
/*
 * Interrupts the run with `question` (taken). When it is resumed the call restarts, with the reply
 * in hd_tool_answer().
 */
void hd_tool_ask(struct hd_tool_call *call, struct hd_val *question);
/* The last reply, borrowed, or NULL; and its interrupt. */
const struct hd_val *hd_tool_answer(const struct hd_tool_call *call);
const struct hd_val *hd_tool_question(const struct hd_tool_call *call);

#endif
