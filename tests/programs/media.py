"""Asks for sound and images with OpenAI's SDK for Python: media.py <base URL> <model> <a WAV file>; prints what came as JSON."""

import json
import sys
from pathlib import Path

from openai import BadRequestError, OpenAI

base_url, model, wav = sys.argv[1:]
client = OpenAI(base_url=base_url, max_retries=0)
seen = {}

with client.audio.speech.with_streaming_response.create(model=model, voice="alloy", input="The mill runs.") as speech:
    seen["speech"] = [speech.headers["content-type"], sum(len(piece) for piece in speech.iter_bytes())]

with open(wav, "rb") as file:
    heard = client.audio.transcriptions.create(
        model=model, file=file, language="en", temperature=0.2, timestamp_granularities=["word", "segment"]
    )
seen["transcription"] = heard.text
seen["stream"] = [event.type for event in client.audio.transcriptions.create(model=model, file=Path(wav), stream=True)]
seen["text"] = client.audio.transcriptions.create(model=model, file=Path(wav), response_format="text")
seen["verbose"] = client.audio.transcriptions.create(model=model, file=Path(wav), response_format="verbose_json").duration
seen["translation"] = client.audio.translations.create(model=model, file=Path(wav)).text

seen["image"] = len(client.images.generate(model=model, prompt="A mill", n=2).data)
seen["events"] = [event.type for event in client.images.generate(model=model, prompt="A mill", stream=True)]
seen["edit"] = len(client.images.edit(model=model, prompt="Snow", image=[("a.png", b"png"), ("b.png", b"other")]).data)
seen["variation"] = len(client.images.create_variation(model=model, image=("a.png", b"png")).data)

try:
    client.audio.transcriptions.create(model=model, file=("empty.wav", b""))
except BadRequestError as error:
    seen["error"] = [error.status_code, error.code, error.param]

print(json.dumps(seen))
