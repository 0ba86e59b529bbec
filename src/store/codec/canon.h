/*
 * The canonical value encoding `hd1` (docs/encoding.md) in C: validation, rendering for clients,
 * and writing.
 *
 * Canonical text is JSON in which an object whose first member is `$` is a record: a message, a
 * Send, bytes and so on. These functions keep no state: arguments are borrowed for the call, and
 * output is appended to the caller's buffer or writer.
 */
#ifndef HD_STORE_CODEC_CANON_H
#define HD_STORE_CODEC_CANON_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

/* ---- validating ------------------------------------------------------- */

/*
 * HD_EINVAL when it is not canonical text; `fault` then names the offending
 * member as a JSON pointer, such as /messages/0/tool_call_id. Or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_canon_validate(struct hd_slice text, struct heddle_error *fault);

/* The same for a parsed value. */
HD_MUST_CHECK int hd_canon_check(hd_json_val val, struct heddle_error *fault);

/* ---- rendering -------------------------------------------------------- */

/*
 * Writes the plain JSON that a client of the HTTP API sees: messages with all their members,
 * records as the values they represent. Accepts any JSON: a malformed record is written unchanged.
 * Errors are in the writer.
 */
void hd_canon_render_val(struct hd_jw *jw, hd_json_val val);

/* Parses and renders; HD_EINVAL when `text` is not JSON. Appends nothing on failure. */
HD_MUST_CHECK int hd_canon_render(struct hd_buf *out, struct hd_slice text,
                                  struct heddle_error *fault);

/* ---- writing ---------------------------------------------------------- */

/*
 * These return the first error, which the writer keeps as well; discard the output in that case.
 * HD_EINVAL has its cause in `fault`.
 */

/*
 * Plain JSON, such as the body of a request, as canonical text: an object with
 * a key `$` becomes a map, an integer beyond 2^53-1 an int record. Duplicate
 * names are HD_EINVAL.
 */
HD_MUST_CHECK int hd_canon_write_plain(struct hd_jw *jw, hd_json_val val,
                                       struct heddle_error *fault);

/* Parses plain JSON and writes it. Appends nothing on failure. */
HD_MUST_CHECK int hd_canon_from_json(struct hd_buf *out, struct hd_slice json,
                                     struct heddle_error *fault);

/*
 * A message record from plain JSON in any of the forms that clients send:
 *
 *   {"type":"human","content":…}                  LangChain's own
 *   {"role":"user","content":…}                   OpenAI's, tool_calls included
 *   {"lc":1,"type":"constructor","id":[…],"kwargs":{…}}   a serialized message object
 *   ["user", "text"]   and   "text"
 *
 * As in LangChain, members that messages do not have go to additional_kwargs.
 * Tool calls whose arguments are not JSON become invalid_tool_calls.
 */
HD_MUST_CHECK int hd_canon_write_message(struct hd_jw *jw, hd_json_val message,
                                         struct heddle_error *fault);

/*
 * A command record from the API's form: {"update":…,"resume":…,"goto":…} and
 * "graph", where goto is a node's name, {"node":…,"input":…} or a list of those.
 */
HD_MUST_CHECK int hd_canon_write_command(struct hd_jw *jw, hd_json_val command,
                                         struct heddle_error *fault);

/* Appends bytes in the form of bytes records: base64 with padding. */
HD_MUST_CHECK int hd_canon_base64(struct hd_buf *out, struct hd_slice bytes);

/* A member of a message as clients see it. */
struct hd_canon_view {
    struct hd_slice name;
    struct hd_slice fallback; /* JSON: its value when it is absent */
};

/*
 * The members that clients see in messages of this type, in LangChain's order, which differs from
 * the order in which they are written. NULL: unknown type.
 */
const struct hd_canon_view *hd_canon_views(struct hd_slice type, size_t *count);

/* `arg` and `value` are canonical text already. */
HD_MUST_CHECK int hd_canon_write_send(struct hd_jw *jw, struct hd_slice node, struct hd_slice arg);
HD_MUST_CHECK int hd_canon_write_interrupt(struct hd_jw *jw, struct hd_slice value,
                                           struct hd_slice id);

#endif
