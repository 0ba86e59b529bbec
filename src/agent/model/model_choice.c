#include "agent/model/model_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "secret/secret.h"

#define MAX_TEXT 65536
#define MAX_TOKENS 1000000000.0

/* A provider, chosen by `name:model`. */
struct maker {
    const char *name;
    const struct hd_provider *provider;
    const char *key_names[2]; /* in the environment and in `apiKeys` */
    const char *url_names[2]; /* in the environment */
    const char *url;
};

static const struct maker makers[] = {
    {"openai",
     &hd_provider_openai,
     {"OPENAI_API_KEY", NULL},
     {"OPENAI_BASE_URL", "OPENAI_API_BASE"},
     "https://api.openai.com/v1"},
    {"anthropic",
     &hd_provider_anthropic,
     {"ANTHROPIC_API_KEY", NULL},
     {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"},
     "https://api.anthropic.com"},
    {"google",
     &hd_provider_gemini,
     {"GOOGLE_API_KEY", "GEMINI_API_KEY"},
     {"GOOGLE_BASE_URL", "GOOGLE_GEMINI_BASE_URL"},
     "https://generativelanguage.googleapis.com"},
    {"google_genai",
     &hd_provider_gemini,
     {"GOOGLE_API_KEY", "GEMINI_API_KEY"},
     {"GOOGLE_BASE_URL", "GOOGLE_GEMINI_BASE_URL"},
     "https://generativelanguage.googleapis.com"},
    {"custom", &hd_provider_openai, {"CUSTOM_API_KEY", NULL}, {NULL, NULL}, NULL},
    {"offline", &hd_provider_offline, {NULL, NULL}, {NULL, NULL}, NULL},
};

#define OPENAI (&makers[0])

/* ---- settings --------------------------------------------------------- */

static void add_layer(struct hd_settings *settings, const struct hd_val *layer)
{
    if (hd_val_is_object(layer) && settings->layer_count < HD_SETTINGS_MAX_LAYERS)
        settings->layers[settings->layer_count++] = layer;
}

void hd_settings_init(struct hd_settings *settings, const struct hd_val *given,
                      const struct hd_val *defaults)
{
    static const char *const copies[] = {"assistant", "assistant_config", "assistant_configurable"};

    *settings = (struct hd_settings){.defaults = defaults};
    add_layer(settings, given);
    for (size_t i = 0; i < HD_COUNT(copies); i++) {
        const struct hd_val *copy = hd_val_get(given, hd_slice_cstr(copies[i]));

        add_layer(settings, hd_val_get(copy, HD_S("configurable")));
        add_layer(settings, copy);
    }
}

static bool is_there(const struct hd_val *val)
{
    return !hd_val_is_null(val) && !(hd_val_is_string(val) && hd_val_get_string(val).len == 0);
}

/* From the request and the assistant only. */
static const struct hd_val *given(const struct hd_settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->layer_count; i++) {
        const struct hd_val *val = hd_val_get(settings->layers[i], hd_slice_cstr(name));

        if (is_there(val))
            return val;
    }
    return NULL;
}

const struct hd_val *hd_model_setting(const struct hd_settings *settings, const char *name)
{
    const struct hd_val *val = given(settings, name);

    if (!val)
        val = hd_val_get(settings->defaults, hd_slice_cstr(name));
    return is_there(val) ? val : NULL;
}

static const char *env(const struct hd_settings *settings, const char *name)
{
    const char *text = name ? settings->env(settings->env_ctx, name) : NULL;

    return text && text[0] ? text : NULL;
}

static struct hd_slice setting_text(const struct hd_val *val)
{
    return hd_val_get_string(val);
}

/* ---- errors ----------------------------------------------------------- */

static int fail_choice(struct hd_model_choice *choice, const char *type)
{
    choice->error_type = type;
    return HD_EINVAL;
}

static int fail_setting(struct hd_model_choice *choice, const char *name, const char *wanted)
{
    (void)hd_error_set(&choice->fault, HD_EINVAL, "%s must be %s", name, wanted);
    return fail_choice(choice, "ValueError");
}

/* ---- numbers ---------------------------------------------------------- */

static bool read_setting_number(const struct hd_val *val, double *out)
{
    char text[64], *end;

    if (hd_val_get_double(val, out))
        return isfinite(*out);
    if (!hd_val_is_string(val) || setting_text(val).len >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%s", setting_text(val).ptr);
    *out = strtod(text, &end);
    while (*end == ' ')
        end++;
    return end != text && *end == '\0' && isfinite(*out);
}

static int read_numbers(const struct hd_settings *settings, struct hd_model_choice *choice)
{
    const struct hd_val *temperature = hd_model_setting(settings, "temperature");
    const struct hd_val *max_tokens = hd_model_setting(settings, "max_tokens");
    double number;

    if (temperature) {
        if (!read_setting_number(temperature, &number) || number < 0 || number > 2)
            return fail_setting(choice, "temperature", "a number from 0 to 2");
        choice->has_temperature = true;
        choice->temperature = number;
    }
    if (max_tokens) {
        if (!read_setting_number(max_tokens, &number) || round(number) < 1 || number > MAX_TOKENS)
            return fail_setting(choice, "max_tokens", "a number of at least 1");
        choice->max_tokens = (int64_t)round(number);
    }
    return 0;
}

/* ---- keys ------------------------------------------------------------- */

static int set(struct hd_buf *out, struct hd_slice text)
{
    hd_buf_reset(out);
    return hd_buf_append_slice(out, text);
}

/* A setting, with its marker revealed. */
static int reveal(const struct hd_settings *settings, const struct hd_val *val,
                  struct hd_model_choice *choice)
{
    struct hd_val *shown = hd_secrets_reveal(val, settings->secrets);
    int err = shown ? 0 : HD_ENOMEM;

    if (!err && hd_val_is_string(shown)) {
        err = set(&choice->key, setting_text(shown));
    } else if (!err) {
        (void)hd_error_set(&choice->fault, HD_EINVAL,
                           "the key that this run was started with is no longer known; send it "
                           "again with the configuration");
        err = fail_choice(choice, "AuthenticationError");
    }
    hd_val_unref(shown);
    return err;
}

/* A key by its name in the environment: from the request, then (`from_env`) from the process. */
static int find_key(const struct hd_settings *settings, const char *name, bool from_env,
                    struct hd_model_choice *choice)
{
    const struct hd_val *val = NULL;

    for (size_t i = 0; name && i < settings->layer_count && !val; i++) {
        const struct hd_val *keys = hd_val_get(settings->layers[i], HD_S("apiKeys"));

        val = hd_val_get(keys, hd_slice_cstr(name));
        if (!is_there(val))
            val = NULL;
    }
    if (hd_val_is_string(val))
        return reveal(settings, val, choice);
    if (from_env && env(settings, name))
        return set(&choice->key, hd_slice_cstr(env(settings, name)));
    return 0;
}

/* ---- server ----------------------------------------------------------- */

static int set_url(struct hd_model_choice *choice, struct hd_slice url, const char *name)
{
    int err;

    while (url.len > 0 && url.ptr[url.len - 1] == '/')
        url.len--;
    for (size_t i = 0; i < url.len; i++) {
        if ((unsigned char)url.ptr[i] <= 0x20 || url.ptr[i] == 0x7f)
            return fail_setting(choice, name, "a URL");
    }
    if (!hd_slice_starts(url, HD_S("http://")) && !hd_slice_starts(url, HD_S("https://")))
        return fail_setting(choice, name, "a URL that begins with http:// or https://");
    err = set(&choice->base_url, url);
    return err == HD_ELIMIT ? fail_setting(choice, name, "a shorter URL") : err;
}

/* Splits off the provider's name; the whole text when there is none. */
static const struct maker *split_maker(struct hd_slice name, struct hd_slice *model)
{
    const char *colon = name.len ? memchr(name.ptr, ':', name.len) : NULL;
    struct hd_slice prefix = hd_slice(name.ptr, colon ? (size_t)(colon - name.ptr) : 0);

    *model = name;
    for (size_t i = 0; i < HD_COUNT(makers) && colon; i++) {
        if (hd_slice_eq(prefix, hd_slice_cstr(makers[i].name))) {
            *model = hd_slice(colon + 1, name.len - prefix.len - 1);
            return &makers[i];
        }
    }
    return NULL;
}

/* Sends the user's identity to a model router, or to a server that the request chose. */
static int set_identity(const struct hd_settings *settings, struct hd_model_choice *choice,
                        bool always)
{
    struct hd_slice org = setting_text(given(settings, "x-org-id"));
    struct hd_slice tier = setting_text(given(settings, "x-user-tier"));
    int err = 0;

    if (org.len == 0 && tier.len == 0 && !always)
        return 0;
    err = set(&choice->org, org);
    if (!err)
        err = set(&choice->tier, tier);
    return err ? err : set(&choice->graph, settings->graph);
}

static bool is_on(const char *text)
{
    return text && (strcasecmp(text, "1") == 0 || strcasecmp(text, "true") == 0 ||
                    strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0);
}

static const char *router_url(const struct hd_settings *settings)
{
    return is_on(env(settings, "SEMANTIC_ROUTER_ENABLED")) ? env(settings, "SEMANTIC_ROUTER_URL")
                                                           : NULL;
}

static int choose_router(const struct hd_settings *settings, struct hd_model_choice *choice)
{
    struct hd_slice model = setting_text(given(settings, "model_name_override"));
    const char *named = env(settings, "SEMANTIC_ROUTER_MODEL");
    int err;

    if (model.len > 0)
        (void)split_maker(model, &model);
    else
        model = hd_slice_cstr(named ? named : "MoM");
    choice->provider = &hd_provider_openai;
    err = set(&choice->model, model);
    if (!err)
        err = set_url(choice, hd_slice_cstr(router_url(settings)), "SEMANTIC_ROUTER_URL");
    if (!err)
        err = find_key(settings, "OPENAI_API_KEY", true, choice);
    return err ? err : set_identity(settings, choice, true);
}

/*
 * The key of a server that the request chose: from the request, or the environment's for such
 * servers.
 */
static int find_custom_key(const struct hd_settings *settings, struct hd_model_choice *choice)
{
    const struct hd_val *val = hd_model_setting(settings, "custom_api_key");
    int err;

    if (hd_val_is_string(val))
        return reveal(settings, val, choice);
    err = find_key(settings, "CUSTOM_API_KEY", true, choice);
    if (!err && choice->key.len == 0)
        err = find_key(settings, "OPENAI_API_KEY", false, choice);
    if (!err && choice->key.len == 0)
        err = set(&choice->key, HD_S("EMPTY"));
    return err;
}

static int choose_custom(const struct hd_settings *settings, struct hd_model_choice *choice,
                         struct hd_slice name)
{
    struct hd_slice model, custom = setting_text(hd_model_setting(settings, "custom_model_name"));
    const struct hd_val *over = given(settings, "model_name_override");
    const char *colon;
    int err;

    if (!over && custom.len > 0) {
        colon = memchr(custom.ptr, ':', custom.len);
        model = colon ? hd_slice(colon + 1, custom.len - (size_t)(colon + 1 - custom.ptr)) : custom;
    } else {
        (void)split_maker(name, &model);
    }
    if (model.len == 0)
        return fail_setting(choice, "custom_model_name", "the name of the model at base_url");
    choice->provider = &hd_provider_openai;
    err = set(&choice->model, model);
    choice->is_own_url = settings->are_fixed && !given(settings, "base_url");
    if (!err)
        err = set_url(choice, setting_text(hd_model_setting(settings, "base_url")), "base_url");
    if (!err)
        err = find_custom_key(settings, choice);
    return err ? err : set_identity(settings, choice, false);
}

static int fail_key(struct hd_model_choice *choice, const struct maker *maker)
{
    (void)hd_error_set(
        &choice->fault, HD_EINVAL,
        "no key for %s (model %.*s): set %s in the environment, or send it in apiKeys", maker->name,
        (int)(choice->model.len < 80 ? choice->model.len : 80), choice->model.ptr,
        maker->key_names[0]);
    return fail_choice(choice, "AuthenticationError");
}

static int choose_maker(const struct hd_settings *settings, struct hd_model_choice *choice,
                        const struct maker *maker)
{
    const char *url = NULL;
    int err = 0;

    choice->provider = maker->provider;
    if (!maker->url)
        return 0; /* no server needed */
    for (size_t i = 0; i < HD_COUNT(maker->url_names) && !url; i++)
        url = env(settings, maker->url_names[i]);
    err = set_url(choice, hd_slice_cstr(url ? url : maker->url), maker->url_names[0]);
    for (size_t i = 0; i < HD_COUNT(maker->key_names) && !err && choice->key.len == 0; i++)
        err = find_key(settings, maker->key_names[i], true, choice);
    if (!err && choice->key.len == 0 && !url)
        return fail_key(choice, maker);
    if (!err && choice->key.len == 0)
        err = set(&choice->key, HD_S("EMPTY"));
    if (!err && url && maker == OPENAI)
        err = set_identity(settings, choice, false);
    return err;
}

/* Whether a model or a key is configured anywhere. */
static bool is_configured(const struct hd_settings *settings)
{
    static const char *const names[] = {"model_name_override", "model_name",     "base_url",
                                        "custom_model_name",   "custom_api_key", "apiKeys"};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (given(settings, names[i]))
            return true;
    }
    for (size_t i = 0; i < HD_COUNT(makers); i++) {
        for (size_t k = 0; k < 2; k++) {
            if (env(settings, makers[i].key_names[k]) || env(settings, makers[i].url_names[k]))
                return true;
        }
    }
    return env(settings, "MODEL_NAME") || router_url(settings);
}

static int choose_model(const struct hd_settings *settings, struct hd_model_choice *choice)
{
    const struct hd_val *name = given(settings, "model_name_override");
    const struct maker *maker;
    struct hd_slice text, model;
    int err;

    if (!name)
        name = given(settings, "model_name");
    text = name ? setting_text(name) : hd_slice_cstr(env(settings, "MODEL_NAME"));
    if (text.len == 0)
        text = setting_text(hd_model_setting(settings, "model_name"));
    if (hd_model_setting(settings, "base_url"))
        return choose_custom(settings, choice, text);
    if (!name && given(settings, "custom_model_name"))
        text = setting_text(given(settings, "custom_model_name"));
    maker = split_maker(text, &model);
    if (!maker)
        maker = OPENAI;
    if (strcmp(maker->name, "custom") == 0)
        return fail_setting(choice, "base_url", "set: the model is a custom one");
    if (model.len == 0 && maker->url)
        return fail_setting(choice, "model_name", "set, such as \"openai:gpt-4o\"");
    err = set(&choice->model, model.len ? model : HD_S("offline"));
    return err ? err : choose_maker(settings, choice, maker);
}

int hd_model_choose(const struct hd_settings *settings, struct hd_model_choice *choice)
{
    struct hd_buf *const texts[] = {&choice->model, &choice->base_url, &choice->key,
                                    &choice->org,   &choice->tier,     &choice->graph};
    int err;

    *choice = (struct hd_model_choice){.is_own_url = true};
    for (size_t i = 0; i < HD_COUNT(texts); i++)
        hd_buf_init(texts[i], i == 1 ? 4096 : MAX_TEXT);
    err = read_numbers(settings, choice);
    if (err)
        return err;
    if (router_url(settings))
        err = choose_router(settings, choice);
    else if (is_configured(settings) || hd_model_setting(settings, "base_url"))
        err = choose_model(settings, choice);
    else {
        choice->provider = &hd_provider_offline;
        err = set(&choice->model, HD_S("offline"));
    }
    if (err == HD_ELIMIT)
        err = fail_setting(choice, "model_name and the keys", "shorter");
    return err;
}

void hd_model_choice_fini(struct hd_model_choice *choice)
{
    hd_buf_fini(&choice->model);
    hd_buf_fini(&choice->base_url);
    hd_buf_fini(&choice->key);
    hd_buf_fini(&choice->org);
    hd_buf_fini(&choice->tier);
    hd_buf_fini(&choice->graph);
}
