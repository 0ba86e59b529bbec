/* libFuzzer: any bytes as the output of another serializer, and as the structure of a graph. A
 * shown value is JSON; a parsed graph can be searched. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "graph/state/worker_graph.h"
#include "store/codec/serde_import.h"

#define LIMIT (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_shown(struct hd_slice type, struct hd_slice bytes)
{
    struct hd_json json;
    struct hd_buf out;
    struct hd_jw jw;

    hd_buf_init(&out, LIMIT);
    hd_jw_init(&jw, &out);
    if (hd_serde_put(&jw, type, bytes)) {
        require(hd_jw_finish(&jw) == 0, "not written");
        require(hd_json_parse(&json, hd_buf_slice(&out), NULL) == 0, "shown as what is not JSON");
        hd_json_fini(&json);
    } else {
        require(out.len == 0, "something was written");
    }
    hd_buf_fini(&out);
}

static void check_structure(struct hd_slice text)
{
    struct heddle_error fault = {0};
    struct hd_graph *graph;
    int err = hd_worker_graph_create(text, HD_IDS_PYTHON, &graph, &fault);

    require(err == 0 || fault.text[0] != '\0', "refused without a reason");
    if (err)
        return;
    require(graph->node_count > 0, "there is no start");
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].trigger_count; j++)
            require(graph->nodes[i].triggers[j] < graph->channel_count, "a channel is not there");
    }
    require(graph->start_channel < graph->channel_count, "no channel for input");
    require(graph->tasks_channel < graph->channel_count, "no channel for sends");
    hd_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice bytes = hd_slice(data, size);

    check_shown(HD_S("msgpack"), bytes);
    check_shown(HD_S("json"), bytes);
    check_structure(bytes);
    return 0;
}
