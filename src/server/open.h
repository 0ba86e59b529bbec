/* Opens and closes the parts of a server (app/app.h). */
#ifndef HD_SERVER_OPEN_H
#define HD_SERVER_OPEN_H

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"

/*
 * Opens the store that the configuration names and everything on it; `loop`,
 * `config` and the graphs must be set before. What was in flight goes on.
 */
HD_MUST_CHECK int hd_app_open(struct hd_app *app, struct hd_fault *fault);
/*
 * For the end of the process: starts nothing more, stops runs so that the next process goes on
 * with them, and delivers what webhooks it can within the configured time. `done`, later,
 * when all is quiet.
 */
void hd_app_drain(struct hd_app *app, void (*done)(void *ctx), void *ctx);
/* Nothing may be at work. The loop must run until its handles are closed; the store last. */
void hd_app_close(struct hd_app *app);
void hd_app_close_store(struct hd_app *app);

#endif
