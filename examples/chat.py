"""Streams a chat and makes an embedding with the openai package (pip install openai).

Needs OPENAI_BASE_URL (ends in /v1) and OPENAI_API_KEY; an argument names the model.
"""

import sys

from openai import APIStatusError, OpenAI

model = sys.argv[1] if len(sys.argv) > 1 else "tiny-demo"
client = OpenAI()  # reads both variables

try:
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Who are you?"}],
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        elif chunk.usage:
            print(f"\n[{chunk.usage.total_tokens} tokens]")

    vector = client.embeddings.create(model=model, input="A gateway for models.").data[0].embedding
    print(f"[embedding of {len(vector)} numbers]")
except APIStatusError as error:
    # The message names the field and what is allowed; the id finds the request in the server's log.
    sys.exit(f"{error} (request {error.request_id})")
