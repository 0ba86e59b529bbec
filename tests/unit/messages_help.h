/* Checkpoints with a list of messages in the thread `t`, each the child of the one before it. */
#ifndef TESTS_UNIT_MESSAGES_HELP_H
#define TESTS_UNIT_MESSAGES_HELP_H

#include <heddle.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

enum { CHECKPOINT_ID_SIZE = 24 };

static inline struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

/* The first has number 0. Without data it has no list. Writes the checkpoint's id to `id`. */
static inline void put_messages(struct heddle *store, const char *ns, size_t number,
                                const char *type, struct heddle_bytes data,
                                char id[CHECKPOINT_ID_SIZE])
{
    char parent[CHECKPOINT_ID_SIZE] = "", row[64], changed[32];
    struct heddle_value value = {bytes("messages"), bytes(type), data};
    struct heddle_checkpoint cp = {.thread = {.id = bytes("t")},
                                   .ns = bytes(ns),
                                   .metadata = bytes("{\"source\":\"loop\"}"),
                                   .values = &value,
                                   .value_count = data.data != NULL};

    snprintf(id, CHECKPOINT_ID_SIZE, "%06zu", number);
    if (number > 0)
        snprintf(parent, sizeof(parent), "%06zu", number - 1);
    snprintf(row, sizeof(row), "{\"v\":4,\"channel_versions\":{\"messages\":%zu}}", number + 1);
    snprintf(changed, sizeof(changed), "{\"messages\":%zu}", number + 1);
    cp.id = bytes(id);
    cp.parent = bytes(parent);
    cp.checkpoint = bytes(row);
    cp.new_versions = bytes(changed);
    assert_err(heddle_put(store, &cp, NULL), 0);
}

#endif
