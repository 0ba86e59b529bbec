/*
 * State that a layer above the engine attaches to an engine and to its runs. The layer embeds these
 * structs in its own as the first member; the engine uses only the members below. An engine and a
 * run have at most one extension each. Everything runs on the engine's loop.
 */
#ifndef HD_GRAPH_ENGINE_EXTENSION_H
#define HD_GRAPH_ENGINE_EXTENSION_H

#include <stdbool.h>

struct hd_engine;

/* engine->extension: the layer sets it, and resets it before it frees the struct. */
struct hd_engine_extension {
    struct hd_engine *engine;
};

/* run->extension: the layer sets it while the run is active. */
struct hd_engine_run_extension {
    /* Called once, when the run has ended and before its on_done. */
    void (*free)(struct hd_engine_run_extension *extension);
    /* Called by hd_engine_run_hold() when the run is held or released. */
    void (*hold)(struct hd_engine_run_extension *extension, bool is_held);
};

#endif
