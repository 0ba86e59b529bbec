/* Opens and closes the parts of a server (app/app.h). */
#ifndef HD_SERVER_OPEN_H
#define HD_SERVER_OPEN_H

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"

/*
 * Opens the configured store and all parts of the server. Set `loop`, `config` and the graphs
 * before. Unfinished runs continue.
 */
HD_MUST_CHECK int hd_server_open(struct hd_app *app, struct heddle_error *fault);
/* This server is about to stop: the others do the work of servers that are gone. */
void hd_server_retire(struct hd_app *app);
/*
 * For shutdown: starts no new work, stops runs so that the next process continues them, and
 * delivers webhooks within the configured time. Calls `done` later, when all work has ended.
 */
void hd_server_drain(struct hd_app *app, void (*done)(void *ctx), void *ctx);
/* No work may be pending. The loop must run until its handles are closed; then close the store. */
void hd_server_close(struct hd_app *app);
void hd_server_close_store(struct hd_app *app);

#endif
