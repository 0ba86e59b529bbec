/*
 * The project's own web application (http.app): what no route of the server takes goes to a worker,
 * and so does what the application has routes for. Loop.
 */
#ifndef HD_API_CUSTOM_H
#define HD_API_CUSTOM_H

#include <stdbool.h>

#include "api/api.h"

struct hd_custom;

/* *out is NULL when there is no such application. */
HD_MUST_CHECK int hd_custom_create(struct hd_app *app, struct hd_custom **out);
void hd_custom_destroy(struct hd_custom *custom);

/* The application said that it has this path, so it comes before a route of the server. */
bool hd_custom_has(const struct hd_custom *custom, struct hd_slice path);
/*
 * The same of a path of the chat page, which any route that the application says it has comes
 * before.
 */
bool hd_custom_has_page(const struct hd_custom *custom, struct hd_slice path);
/* Owns the call: asks who it is when it must, and answers what the application answers. */
void hd_custom_take(struct hd_custom *custom, struct hd_call *call, struct hd_slice path);
/*
 * Owns the call, whose route is the chat page's: the application may have it without saying so.
 * What it does not know, `otherwise` goes on with, and so it does when the application cannot
 * be asked, or not by anybody.
 */
void hd_custom_try(struct hd_custom *custom, struct hd_call *call, struct hd_slice path,
                   void (*otherwise)(struct hd_call *call));

/*
 * The paths and schemas of the application for /openapi.json, {"paths": {…}, "schemas": {…}}, in
 * the arena; empty: none. From any thread.
 */
HD_MUST_CHECK int hd_custom_document(struct hd_custom *custom, struct hd_arena *arena,
                                     struct hd_slice *out);

/*
 * Whether a request for a route of the server goes through the middleware of the application
 * first, and then `wrap` owns the call. The application comes back with the request, which is the
 * inner one then (gate/worker_access.h) and goes to its route.
 */
bool hd_custom_wraps(const struct hd_custom *custom, const struct hd_call *call,
                     struct hd_slice path);
/* `is_public`: the route needs no credentials. */
void hd_custom_wrap(struct hd_custom *custom, struct hd_call *call, struct hd_slice path,
                    bool is_public);

/* Patterns of any framework: "/files/{path:path}", "/users/:id", a "*" at the end. Pure. */
bool hd_custom_matches(struct hd_slice pattern, struct hd_slice path);

#endif
