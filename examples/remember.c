/* Stores one turn of a conversation and reads it back. cc examples/remember.c -o remember
 * $(pkg-config --cflags --libs heddle) && ./remember */
#include <heddle.h>
#include <stdio.h>

#define B(text)                  \
    {                            \
        (text), sizeof(text) - 1 \
    }

int main(void)
{
    struct heddle_error error;
    struct heddle *store;
    struct heddle_tuple *tuple;
    struct heddle_value messages = {B("messages"), B("json"), B("[\"Hello\",\"Hi there\"]")};
    struct heddle_checkpoint checkpoint = {
        .thread = {.id = B("thread-1")},
        .id = B("0001"),
        .checkpoint = B("{\"v\":4,\"id\":\"0001\",\"channel_versions\":{\"messages\":\"1\"}}"),
        .metadata = B("{\"source\":\"loop\",\"step\":0}"),
        .new_versions = B("{\"messages\":\"1\"}"),
        .values = &messages,
        .value_count = 1,
    };
    struct heddle_key latest = {.thread = checkpoint.thread};

    if (heddle_open(&store, "sqlite:remember.db", &error) ||
        heddle_put(store, &checkpoint, &error) || heddle_get(store, &latest, &tuple, &error)) {
        fprintf(stderr, "remember: %s\n", error.text);
        return 1;
    }
    printf("%.*s = %.*s\n", (int)tuple->values[0].channel.len,
           (const char *)tuple->values[0].channel.data, (int)tuple->values[0].data.len,
           (const char *)tuple->values[0].data.data);
    heddle_tuple_free(tuple);
    heddle_close(store);
    return 0;
}
