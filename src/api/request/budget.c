#include "api/request/budget.h"

#include "api/api.h"
#include "config/config.h"

enum { RETRY_SECONDS = 1 };

/* Answers up to this size are not counted unless values were read for them. */
#define SMALL_ANSWER ((uint64_t)64 << 10)

static struct hd_budget *budget_of(struct hd_allowance *allowance)
{
    return (struct hd_budget *)((char *)allowance - offsetof(struct hd_budget, allowance));
}

static bool hold(const struct hd_call *call, uint64_t bytes)
{
    struct hd_answers *answers = hd_api_answers(call->api);
    uint64_t before = atomic_fetch_add_explicit(&answers->held, bytes, memory_order_relaxed);

    if (before + bytes <= call->app->config->answer_memory)
        return true;
    atomic_fetch_sub_explicit(&answers->held, bytes, memory_order_relaxed);
    return false;
}

static int budget_take(struct hd_allowance *allowance, uint64_t bytes)
{
    struct hd_budget *budget = budget_of(allowance);
    uint64_t most = budget->call->app->config->max_answer;

    if (bytes > most || allowance->taken > most - bytes) {
        budget->is_over = true;
        return HD_ELIMIT;
    }
    if (!hold(budget->call, bytes)) {
        budget->is_busy = true;
        return HD_EBUSY;
    }
    allowance->taken += bytes;
    return 0;
}

static void budget_give(struct hd_allowance *allowance, uint64_t bytes)
{
    struct hd_answers *answers = hd_api_answers(budget_of(allowance)->call->api);

    atomic_fetch_sub_explicit(&answers->held, bytes, memory_order_relaxed);
    allowance->taken -= bytes;
}

/* The response was sent or dropped. */
static void on_budget_end(void *ctx)
{
    struct hd_call *call = ctx;

    budget_give(&call->budget.allowance, call->budget.allowance.taken);
}

void hd_budget_init(struct hd_call *call)
{
    call->budget.call = call;
    call->budget.allowance.take = budget_take;
    call->budget.allowance.give = budget_give;
    hd_exchange_at_end(call->exchange, on_budget_end, call);
}

static void give_back(struct hd_call *call, uint64_t taken)
{
    struct hd_allowance *allowance = &call->budget.allowance;

    if (allowance->taken > taken)
        budget_give(allowance, allowance->taken - taken);
}

/* From now on only the bytes of the response itself count. False: they exceed the limit of all
 * responses. */
static bool count_answer(struct hd_call *call)
{
    struct hd_allowance *allowance = &call->budget.allowance;
    uint64_t bytes = call->out.len;

    if (bytes <= SMALL_ANSWER)
        bytes = 0;
    give_back(call, bytes);
    if (bytes > allowance->taken && !hold(call, bytes - allowance->taken))
        return false;
    allowance->taken = bytes;
    return true;
}

static struct hd_step refuse_busy(struct hd_call *call)
{
    hd_call_header_int(call, HD_S("Retry-After"), RETRY_SECONDS);
    return hd_call_refuse(call, 503, "no memory is left for large responses (answer_memory)");
}

/* 422 and not 413: the official JavaScript client would repeat the request. */
static struct hd_step refuse_size(struct hd_call *call)
{
    const struct hd_budget *budget = &call->budget;
    size_t most = call->app->config->max_answer;
    size_t fits = budget->allowance.fits > budget->shown ? budget->allowance.fits : budget->shown;

    if (fits > 0)
        return hd_call_refuse(
            call, 422, "the response would be larger than %zu bytes (max_answer); limit=%zu fits",
            most, fits);
    return hd_call_refuse(call, 422, "the response would be larger than %zu bytes (max_answer)",
                          most);
}

struct hd_step hd_budget_settle(struct hd_call *call, struct hd_step step)
{
    const struct hd_budget *budget = &call->budget;
    bool is_error = step.kind == HD_STEP_ERROR;
    bool is_full = is_error ? step.err == HD_EBUSY && budget->is_busy : !count_answer(call);
    /* The buffer of the response is limited to max_answer, even when no values are read. */
    bool is_over = is_error && step.err == HD_ELIMIT && (budget->is_over || !call->route->grows);

    if (is_error || is_full)
        give_back(call, 0);
    if (is_full)
        return refuse_busy(call);
    return is_over ? refuse_size(call) : step;
}
