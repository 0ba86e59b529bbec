/*
 * The value that a custom auth handler receives for a request, and the merge of its changes into
 * the body; authorize.c sends the query. For store threads.
 */
#ifndef HD_API_REQUEST_AUTHORIZE_VALUE_H
#define HD_API_REQUEST_AUTHORIZE_VALUE_H

#include <stdbool.h>

#include "api/api.h"
#include "api/request/authorize.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"

#define HD_AUTHORIZE_MAX_VALUE ((size_t)256 << 20)

/* `members` are the members of the body in the value; "a=b": `a` of the value is `b` of the body.
 * All others are in an object named by `rest`, unless that is NULL. */
struct hd_authorize_event {
    const char *resource;
    const char *action;
    enum hd_resource of;
    const char *members;
    const char *rest;
    bool has_metadata; /* present even when not sent: handlers write into it */
    bool is_owned;     /* created records have an owner */
};

/* The event of a route; `on` is not HD_ON_NOTHING. From any thread. */
const struct hd_authorize_event *hd_authorize_event(enum hd_on on);

/* The parameters of the path as a JSON object, in the arena. */
HD_MUST_CHECK int hd_authorize_params(struct hd_call *call, struct hd_slice *out);
/* The value of a request with that body, or of one element of a list. */
HD_MUST_CHECK int hd_authorize_value(struct hd_call *call, const struct hd_authorize_event *event,
                                     hd_json_val body, struct hd_buf *out);
/* A copy has the metadata of the original. *is_there: the original exists. */
HD_MUST_CHECK int hd_authorize_value_of_copy(struct hd_call *call,
                                             const struct hd_authorize_event *event,
                                             struct hd_buf *out, bool *is_there);
/* The members of an item that filters match: {…value, namespace, key}. */
HD_MUST_CHECK int hd_authorize_value_of_item(struct hd_call *call, const struct hd_item_rec *item,
                                             struct hd_buf *out);

/* Writes the body with the handler's changes of the value. */
void hd_authorize_put_changed(struct hd_jw *jw, const struct hd_authorize_event *event,
                              hd_json_val body, hd_json_val changed);
/* True when the changed value has metadata that is stored unchanged. */
bool hd_authorize_stamps(const struct hd_authorize_event *event, hd_json_val changed);

#endif
