/* The heads that users chose: of a namespace the checkpoint at which its runs go on. */
#ifndef HD_RUN_HEADS_H
#define HD_RUN_HEADS_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

/* Changes the heads (JSON, see struct hd_thread_rec), in the arena; an empty id: none for `ns`. */
HD_MUST_CHECK int hd_heads_set(struct hd_arena *arena, struct hd_slice *heads, struct hd_slice ns,
                               struct hd_slice id);

#endif
