/* libFuzzer: any JSON as a configuration. Taking removes everything that looks like a secret,
 * revealing restores it, and a second take finds nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secret/secret.h"
#include "secret/secret_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Findings are inside the text. */
static int on_finding(void *ctx, const struct hd_secret_finding *finding)
{
    const struct hd_slice *text = ctx;

    require(finding->kind && finding->secret.len > 0, "a finding of nothing");
    if (finding->from)
        require(finding->from >= text->ptr &&
                    finding->secret.ptr + finding->secret.len <= text->ptr + text->len,
                "a finding outside of the text");
    return 0;
}

/* No secret is left: the search by name and text finds only markers. */
static void look(const struct hd_val *val, bool is_named)
{
    struct hd_slice text = hd_val_get_string(val);

    if (text.len > 0 && !hd_secret_is_marker(text))
        require(!is_named && !hd_secret_is_text(text), "a secret is left");
    for (size_t i = 0; hd_val_is_list(val) && i < hd_val_count(val); i++)
        look(hd_val_at(val, i), is_named);
    for (size_t i = 0; hd_val_is_object(val) && i < hd_val_count(val); i++) {
        struct hd_val *key, *member = hd_val_member(val, i, &key);

        look(member, is_named || hd_secret_is_name(hd_val_get_string(key)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size);
    struct hd_val *config, *plain, *taken, *secrets = NULL, *back;
    struct hd_buf path;

    hd_secret_is_name(text);
    hd_secret_is_text(text);
    require(hd_secret_find(text, on_finding, &text) == 0, "a search that failed");
    require(hd_secret_find_pieces(text, on_finding, &text) == 0, "a search that failed");
    require(hd_secret_find_headers(text, on_finding, &text) == 0, "a search that failed");
    if (hd_val_parse_json(text, &config, NULL))
        return 0;
    plain = hd_secrets_reveal(config, NULL); /* removes markers of the input */
    hd_val_unref(config);
    require(plain != NULL, "no plain value");
    taken = hd_secrets_take(hd_val_ref(plain), &secrets);
    require(taken != NULL, "nothing was taken");
    look(taken, false);
    hd_buf_init(&path, 4096);
    require(hd_secrets_find(plain, true, &path) == (secrets != NULL), "find and take differ");
    back = hd_secrets_reveal(taken, secrets);
    require(back && hd_val_equal(back, plain), "what was taken does not come back");
    hd_buf_fini(&path);
    hd_val_unref(back);
    hd_val_unref(taken);
    hd_val_unref(plain);
    hd_val_unref(secrets);
    return 0;
}
