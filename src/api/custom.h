/* The project's own web application (http.app): requests that match no route of the server go to a
 * worker, and so do requests that match a route of the application. Loop. */
#ifndef HD_API_CUSTOM_H
#define HD_API_CUSTOM_H

#include <stdbool.h>

#include "api/api.h"

struct hd_custom;

/* *out is NULL without an application. */
HD_MUST_CHECK int hd_custom_create(struct hd_app *app, struct hd_custom **out);
void hd_custom_destroy(struct hd_custom *custom);

/* The application declares this path, so it has precedence over a route of the server. */
bool hd_custom_has(const struct hd_custom *custom, struct hd_slice path);
/*
 * The same for a path of the chat page; every declared route of the application has precedence over
 * it.
 */
bool hd_custom_has_page(const struct hd_custom *custom, struct hd_slice path);
/* Makes the application the route of the call, which is authenticated if so configured. */
struct hd_step hd_custom_take(struct hd_call *call);
/*
 * HD_STAGE_APPLICATION, for routes of the chat page: the application may serve the path without
 * declaring it. HD_NEXT when the application answers 404, is unreachable, or requires
 * authentication.
 */
bool hd_custom_may_serve(const struct hd_call *call);
struct hd_step hd_custom_try(struct hd_call *call);

/*
 * The paths and schemas of the application for /openapi.json, {"paths": {…}, "schemas": {…}}, in
 * the arena; empty: none. From any thread.
 */
HD_MUST_CHECK int hd_custom_document(struct hd_custom *custom, struct hd_arena *arena,
                                     struct hd_slice *out);

/*
 * True when a request for a route of the server passes the application's middleware first; `wrap`
 * then makes the application the route of the call. The application sends the request back as the
 * inner request (gate/worker_access.h), which reaches its route.
 */
bool hd_custom_wraps(const struct hd_call *call);
/* `is_public`: the route needs no credentials. */
struct hd_step hd_custom_wrap(struct hd_call *call, bool is_public);

/* Patterns of any framework: "/files/{path:path}", "/users/:id", a "*" at the end. Pure. */
bool hd_custom_matches(struct hd_slice pattern, struct hd_slice path);

#endif
