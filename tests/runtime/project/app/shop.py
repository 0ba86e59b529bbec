"""An application beside the graphs: its own routes, one of the server's, streams, errors, a
lifespan."""

import asyncio
import contextlib

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel

told = {}


@contextlib.asynccontextmanager
async def lifespan(app):
    told["is_open"] = True
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/shop/items/{name}")
def item(name: str, q: str = ""):
    return {"name": name, "q": q, **told}


class Order(BaseModel):
    """A schema of the application with a name that the server might also use."""

    name: str


@app.put("/shop/orders")
def order(order: Order):
    return order


@app.post("/shop/count")
async def count(request: Request):
    return {"bytes": len(await request.body()), "header": request.headers["x-mine"]}


@app.get("/shop/headers")
def headers():
    response = PlainTextResponse("grüezi", status_code=418)
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    response.headers["x-mine"] = "caf\u00e9"
    return response


@app.get("/shop/typed")
def typed(type: str, name: str, is_streamed: bool = False):
    if is_streamed:
        return StreamingResponse(iter([b"x"]), headers={name: type})
    return Response("x", headers={name: type})


@app.get("/shop/empty", status_code=204)
def empty():
    return Response(status_code=204)


@app.get("/info")
def info():
    return {"name": "shop"}


@app.get("/shop/fail")
def fail():
    raise ValueError("a reason for the log")


@app.get("/shop/events")
async def events():
    async def go():
        for number in range(3):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.01)

    return StreamingResponse(go(), media_type="text/event-stream")


@app.get("/shop/large")
async def large():
    async def go():
        for number in range(400):
            yield bytes([number % 256]) * 65536

    return StreamingResponse(go())


@app.get("/shop/endless")
async def endless():
    async def go():
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0.01)
        finally:
            told["was_left"] = True

    return StreamingResponse(go())
