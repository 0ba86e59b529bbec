"""Two people and two agents in one room, with the generic client of the official Python SDK.

See README.md for the two programs that must run, and for the keys of the people.
"""

import asyncio
import os
import sys

from langgraph_sdk import get_client

URL = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:2024"


async def make_agent(client, name: str, task: str) -> str:
    config = {"configurable": {"model_name": "openai:mock", "system_prompt": f"You are a {task}."}}
    return (await client.assistants.create("agent", name=name, config=config))["assistant_id"]


async def post(client, room: str, content: str, **more) -> dict:
    """Posts a chat message and follows its runs until all have ended; returns the message."""
    posted = None
    path = f"{room}/messages/stream"
    async for part in client.http.stream(path, "POST", json={"content": content, **more}):
        if part.event == "room/message":
            posted = posted or part.data["message"]
    return posted


async def settled(client, cascades: str, cascade: dict) -> dict:
    while cascade["status"] == "running":
        await asyncio.sleep(0.1)
        cascade = await client.http.get(f"{cascades}/{cascade['cascade_id']}")
    return cascade


async def show(client, title: str, room: str) -> None:
    print(f"\n{title}")
    for message in await client.http.get(f"{room}/messages"):
        state = "" if message["state"] == "ok" else f" [{message['state']}]"
        print(f"  {message['seq']} {message['sender']['name']}{state}: {message['content']}")


async def main() -> None:
    ada = get_client(url=URL, api_key=os.environ["ADA_KEY"])
    ben = get_client(url=URL, api_key=os.environ["BEN_KEY"])
    thread = (await ada.threads.create())["thread_id"]
    room, cascades = f"/threads/{thread}/room", f"/threads/{thread}/cascades"

    # Ada shares her room with Ben, and adds two agents of hers that both may mention.
    invited = {"issuer": "key", "subject": "ben", "role": "editor"}
    await ada.http.post(f"/threads/{thread}/participants", json=invited)
    agents = [await make_agent(ada, "Planner", "planner"), await make_agent(ada, "Critic", "critic")]
    await ada.http.put(room, json={"agents": [{"assistant_id": each} for each in agents]})

    first = await post(ada, room, "@Planner three days in Lisbon, please")
    await post(ben, room, "@Critic is this a good plan?")
    await show(ben, "The chat, as Ben sees it:", room)

    # Ada edits her message. The plan comes first; then both answers are made again.
    edit = {"content": "@Planner three days in Porto, please"}
    path = f"{room}/messages/{first['id']}"
    plan = await ada.http.patch(path, json={**edit, "dry_run": True})
    print(f"\nThe edit makes {plan['possible']} answers again:", [step["why"] for step in plan["plan"]])
    edited = await ada.http.patch(path, json=edit)
    cascade = await settled(ada, cascades, edited["cascade"])
    print("The cascade is", cascade["status"])
    await show(ben, "The chat after the edit:", room)

    undone = await ada.http.post(f"{cascades}/{cascade['cascade_id']}", json={"action": "undo"})
    print("\nAfter the undo the cascade is", undone["status"])
    for assistant in agents:
        await ada.assistants.delete(assistant)


asyncio.run(main())
