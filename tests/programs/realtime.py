"""Calls of OpenAI's SDK for Python beside conversations: a moderation, and a response over its realtime connection.

Usage: python realtime.py BASE_URL MODEL JUDGE, with the key in OPENAI_API_KEY. It prints what it was answered, as JSON.
"""

import asyncio
import json
import sys

from openai import AsyncOpenAI

base_url, model, judge = sys.argv[1:]


async def main():
    client = AsyncOpenAI(base_url=base_url, websocket_base_url=base_url.replace("http", "ws", 1))
    moderation = await client.moderations.create(model=judge, input="I want to hug them.")
    text = ""
    async with client.realtime.connect(model=model) as connection:
        await connection.session.update(session={"type": "realtime", "model": model})
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
        )
        await connection.response.create()
        async for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "error":
                raise RuntimeError(event.error.message)
            elif event.type == "response.done":
                usage = event.response.usage
                break
    told = {"flagged": moderation.results[0].flagged, "text": text, "total": usage.total_tokens}
    print(json.dumps(told))


asyncio.run(main())
