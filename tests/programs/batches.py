"""Keeps files and runs a batch with OpenAI's SDK for Python: batches.py <base URL> <model>; prints what came as JSON."""

import json
import sys
import time

from openai import NotFoundError, OpenAI

base_url, model = sys.argv[1:]
client = OpenAI(base_url=base_url, max_retries=0)
seen = {}

lines = [
    {
        "custom_id": f"line-{n}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": model, "messages": [{"role": "user", "content": f"question {n}"}]},
    }
    for n in range(3)
]
content = "\n".join(json.dumps(line) for line in lines).encode()
file = client.files.create(file=("lines.jsonl", content), purpose="batch")
seen["file"] = [file.filename, file.bytes == len(content), file.purpose, file.status]
seen["listed"] = [one.id == file.id for one in client.files.list(purpose="batch", limit=1)]
seen["content"] = client.files.content(file.id).read() == content

upload = client.uploads.upload_file_chunked(
    file=content, filename="parts.jsonl", bytes=len(content), mime_type="application/jsonl", purpose="batch", part_size=100
)
seen["upload"] = [upload.status, client.files.content(upload.file.id).read() == content]
seen["deleted"] = client.files.delete(upload.file.id).deleted
try:
    client.files.retrieve(upload.file.id)
except NotFoundError as error:
    seen["gone"] = error.status_code

batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"topic": "python"}
)
deadline = time.monotonic() + 30
while batch.status not in ("completed", "failed", "expired", "cancelled") and time.monotonic() < deadline:
    time.sleep(0.05)
    batch = client.batches.retrieve(batch.id)
seen["batch"] = [batch.status, batch.request_counts.completed, batch.metadata["topic"]]
output = client.files.content(batch.output_file_id).text.splitlines()
answers = {line["custom_id"]: line["response"]["body"] for line in map(json.loads, output)}
seen["answers"] = {name: body["choices"][0]["message"]["content"] for name, body in answers.items()}
seen["batches"] = [one.id == batch.id for one in client.batches.list(limit=1)]

print(json.dumps(seen))
