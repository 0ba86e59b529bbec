"""Authentication and authorization of the server: auth.mts is the same in TypeScript."""

import json
from pathlib import Path

from langgraph_sdk import Auth

auth = Auth()
HERE = Path(__file__).parent
Refusal = Auth.exceptions.HTTPException


@auth.authenticate
async def authenticate(authorization: str | None, method: str, path: str) -> dict:
    with (HERE / "asked.log").open("a") as log:
        log.write(f"{method} {path}\n")
    if not authorization:
        raise Refusal(status_code=401, detail="who are you?", headers={"WWW-Authenticate": 'Custom realm="tests"'})
    token = authorization.removeprefix("Bearer ")
    if token == "broken":
        raise ValueError("nobody may read this")
    if token == "nameless":
        return {"identity": "", "permissions": []}
    user = json.loads((HERE / "users.json").read_text()).get(token)
    if user is None:
        raise Refusal(status_code=401, detail="nobody has this token")
    return user


def own(ctx) -> dict:
    return {"owner": ctx.user.identity}


@auth.on
async def everything(ctx, value):
    value.setdefault("metadata", {}).update(own(ctx))
    return own(ctx)


@auth.on.threads.delete
async def delete(ctx, value):
    if "threads:delete" not in ctx.permissions:
        raise Refusal(status_code=403, detail="you may not delete threads")
    return own(ctx)


@auth.on.threads.create_run
async def create_run(ctx, value):
    given = value["kwargs"].get("input") or {}
    if given.get("messages") == "forbidden":
        return False
    if given.get("messages") == "changed":
        given["messages"] = "what the handler says"
    value.setdefault("metadata", {}).update(own(ctx))
    return own(ctx)


@auth.on.assistants.read
async def read_assistants(ctx, value):
    return {"$or": [own(ctx), {"created_by": {"$eq": "system"}}]}


@auth.on.assistants.search
async def search_assistants(ctx, value):
    return {"$or": [own(ctx), {"created_by": {"$eq": "system"}}]}


@auth.on.store
async def items(ctx, value):
    value["namespace"] = [ctx.user.identity, *(value.get("namespace") or [])]


@auth.on.crons.delete
async def delete_cron(ctx, value):
    return {"owner": {"$what": 1}} if "bad filters" in ctx.permissions else own(ctx)
