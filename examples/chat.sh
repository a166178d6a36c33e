#!/bin/sh
# Lists the models, then streams a chat, with nothing but curl.
# Needs OPENAI_BASE_URL (ends in /v1) and OPENAI_API_KEY; an argument names the model.
set -eu

curl -fsS "$OPENAI_BASE_URL/models" -H "Authorization: Bearer $OPENAI_API_KEY"
printf '\n\n'

curl -fsSN "$OPENAI_BASE_URL/chat/completions" \
  -H "Authorization: Bearer $OPENAI_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{
    "model": "'"${1:-tiny-demo}"'",
    "temperature": 0,
    "stream": true,
    "messages": [{ "role": "user", "content": "Who are you?" }]
  }'
