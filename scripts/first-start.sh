#!/bin/bash
# A first start as a stranger has it: the server comes up, the demo model streams an answer to its end, the server ends.
# Takes HEADRACE_DATA_DIR and HEADRACE_PORT; the workflow of docs/platforms.md runs it on other systems.
set -e -o pipefail
node bin/headrace.mjs serve > server.log 2>&1 &
server=$!
trap 'kill "$server" && wait "$server"; cat server.log' EXIT
for _ in $(seq 240); do
  curl -fsS "http://127.0.0.1:$HEADRACE_PORT/readyz" && break
  sleep 0.5
done 2> /dev/null
key=$(node -p 'JSON.parse(fs.readFileSync(process.env.HEADRACE_DATA_DIR + "/credentials.json")).api_key')
curl -fsSN "http://127.0.0.1:$HEADRACE_PORT/v1/chat/completions" \
  -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
  -d '{"model":"tiny-demo","stream":true,"temperature":0,"messages":[{"role":"user","content":"Who are you?"}]}' |
  tee answer.txt
grep -F 'data: [DONE]' answer.txt > /dev/null
