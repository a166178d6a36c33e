// The commented headrace.yaml of the reference page. A test loads it.

export const exampleFile = `# yaml-language-server: $schema=./headrace.schema.json

# The server. Flags and environment variables take precedence over these keys.
host: 0.0.0.0                          # other than loopback: needs mode: production
port: 7545                             # 0 picks a free port
mode: production
public_url: https://ai.example.com     # the address that clients use, without /v1
trusted_proxies: [10.0.0.0/8]          # proxies whose X-Forwarded-For is trusted
allowed_hosts: [devbox.example.com]    # development mode: further names of this machine
data_dir: /var/lib/headrace
backup_before_upgrade: true            # copy the SQLite database to backups/ before its schema changes
advertise_url: http://10.0.0.5:7545    # where other replicas reach this one
workers: 1                             # processes for requests; auto: one for each processor
lame_duck_seconds: 5                   # a stopping server accepts requests until load balancers notice
log_format: json                       # or text, for people
discover_local: false                  # do not look for model servers on this machine
webhook_loopback: false                # allow webhooks to this machine; development mode only
webhook_networks: [alertmanager.internal]  # private hosts and ranges for operators' webhooks

# The built-in engine.
engine:
  models:
    - ./models/qwen3-4b.gguf           # relative to this file
  context: 8192                        # tokens per request
  parallel: 4                          # requests computed at once
  threads: 1
  demo: false                          # no tiny demo model
  memory:                              # shared by all commands; default: most of the machine's
    ram: 24GB
    gpu: { 0: 22GB }
  files:                               # model files that another program runs
    - model: qwen3-vl-4b-q4_k_m        # id that headrace list shows
      engine: llama-server             # found on the PATH
      projector: ./models/mmproj.gguf  # for images
      draft: qwen3-0.6b-q8_0           # for speculative decoding
      arguments: --flash-attn on
  commands:                            # model servers that start when a request needs them
    - name: qwen3
      command: llama-server -m qwen3-8b.gguf --port \${PORT} -ngl 99
      models: [qwen3-8b]
      directory: ./models              # relative to this file
      env: { CUDA_VISIBLE_DEVICES: "0" }   # besides PATH, HOME and the like
      memory: { ram: 2GB, gpu: { 0: 8GB } }   # default: measured
      path: /v1
      api: openai
      apis: [chat]
      ready_path: /health              # default: /health, or the list of models
      ready_seconds: 120
      keep_seconds: 600                # idle time; null: until its memory is needed
      preload: true                    # start with the server
      pinned: false                    # true: never stop to make room
      group: large                     # only one command of a group runs
      parallel: 4                      # concurrent requests; default: measured
      timeout_seconds: 600
      idle_seconds: 900
    - name: vllm
      command: [vllm, serve, Qwen/Qwen3-32B, --port, "\${PORT}", --enable-sleep-mode]
      models: [Qwen/Qwen3-32B]
      env: { VLLM_SERVER_DEV_MODE: "1" }
      memory: { ram: 40GB, gpu: { 1: 44GB } }
      asleep_gpu: { 1: 2GB }           # GPU memory while it sleeps

# Model servers with an OpenAI-compatible API or Anthropic's.
upstreams:
  - name: ollama
    url: http://127.0.0.1:11434/v1     # all its models are served under their own ids
    local: true                        # keys with never_leaves may use it
  - name: cloud
    url: https://api.example.com/v1
    api_key: \${CLOUD_API_KEY}          # from the environment; an unset variable is an error
    discover: false                    # serve only what is under models
    timeout_seconds: \${CLOUD_TIMEOUT:-600}   # to the first byte
    idle_seconds: 900                  # between two bytes
    max_concurrency: 64                # concurrent requests; default: measured
    identifiers: hashed                # user ids and cache keys in requests; or as_sent, removed
    cache_salt: false                  # true for vLLM: separate its cache by account
    priority: false                    # true for vLLM with --scheduling-policy priority
    http_client: own                   # or fetch: Bun's client
  - name: claude
    url: https://api.anthropic.com/v1
    api: messages                      # Anthropic's API; default: openai
    api_key: \${ANTHROPIC_API_KEY}
  - name: azure
    url: https://example.openai.azure.com/openai/v1
    api_key: \${AZURE_API_KEY}
    key_header: api-key                # default: authorization, as a bearer token
    query: { api-version: preview }    # query parameters of every request
    apis: [chat, responses]            # conversation formats; default: detected

# Models with public ids, capabilities, prices and deployments.
models:
  - id: assistant
    capabilities: { chat: true, completion: false, embeddings: false }
    context: 32768                     # tokens, prompt and completion together
    environments: [live, test, dev]    # default: live and dev
    price: { input: 0.15, output: 0.6 }   # USD per million tokens
    owned_by: example
    fallbacks: [tiny-demo]             # models that answer if no deployment can
    aliases: ["claude-*", gpt-5]       # other ids that clients may send
    deployments:
      - upstream: cloud
        model: big-model-2             # the upstream's own id
        weight: 3                      # three requests of four
      - upstream: ollama
        model: llama3.1:8b
        weight: 1
    policies:                          # default: none
      continuation: true               # another deployment continues a cut stream
      overflow:                        # used only if the others keep a request waiting
        to:
          - upstream: cloud
            cost: { input: 0.1, output: 0.4 }   # the cheapest is used first
        after_seconds: 5               # expected wait for the others
        prompt_tokens_above: 30000
        hours: ["18:00-06:00"]         # UTC; used like any other deployment
        most_usd_per_request: 0.5
        spend: { usd: 50, per: day }   # maximum of all requests together
      cache:                           # response cache, separate for each account
        requests: deterministic        # temperature 0 or asked for; or asked, all
        ttl_seconds: 3600
        price_factor: 0                # a cached answer is free
      guardrails: [no-secrets, customer-numbers]
      shadow: { model: assistant-next, percent: 5 }   # also receives these; its answers are unseen
      split:                           # other models answer these
        - { model: assistant-next, percent: 10 }
  - id: assistant-next
    deployments:
      - upstream: ollama
        model: qwen3:8b

# Checks of requests and answers. Models name them in policies.
guardrails:
  - name: no-secrets
    kind: secrets                      # credentials and personal data
    action: mask                       # or block, or note
  - name: customer-numbers
    kind: patterns
    sides: [answer]                    # default: request and answer
    action: block
    patterns:
      - { name: customer-number, pattern: 'KD-[0-9]{8}' }
  - name: on-topic
    kind: judge                        # a model decides
    sides: [request]
    model: assistant-next
    policy: Nothing but questions about our products.
    timeout_seconds: 5
    otherwise: pass                    # if the judge fails; default: block
  - name: own-service
    kind: http
    action: note
    url: https://guard.example.com/check
    token: \${GUARD_TOKEN}              # as a bearer token

# The response cache.
cache:
  store: memory                        # or redis: HEADRACE_REDIS_URL
  max_bytes: 67108864
  max_answer_bytes: 1048576

# MCP servers. Clients use them at /mcp with the scope tools:use.
tools:
  record: none                         # content: store arguments and results, encrypted
  sampling_model: small                # for sampling requests without a usable model
  search_from: 40                      # above this number of tools, /mcp offers a search
  servers:
    - name: issues                     # its tools are named issues_…
      url: https://tools.example.com/mcp
      headers:
        authorization: Bearer \${ISSUES_TOKEN}
      tools: [search_*, get_issue]     # default: all
      approval: first                  # changes wait for an operator; or each, all
      timeout_seconds: 60
    - name: crm
      url: https://crm.example.com/mcp
      oauth:                           # each person connects their own account
        issuer: https://login.example.com # default: the one that the server names
        client_id: headrace            # default: metadata document or registration
        client_secret: \${CRM_CLIENT_SECRET}
        scopes: [contacts.read]        # default: those that the server asks for
    - name: files
      command: mcp-server-filesystem /srv/shared
      env: { LOG_LEVEL: info }         # besides PATH and the like
      sharing: all                     # one process for all; default: one for each person
      share: true                      # as a node, share it with the gateway
    - name: desk
      node: { node: workstation-1, server: files } # a server that the node shares

# Limits of accounts; null: no limit. free, pro and enterprise exist by default.
tiers:
  - name: free
    requests_per_minute: 10
    tokens_per_minute: 10000
    monthly_tokens: 1000000
    monthly_spend: 5                   # USD
  - name: enterprise
    requests_per_minute: 1000
    tokens_per_minute: null
    monthly_tokens: null
    monthly_spend: null
    environments: [live, test]         # default; add dev to limit it too
    priority: high                     # in queues; or low, normal

# Maximum sizes and waiting times of requests.
limits:
  body_bytes: 33554432
  messages: 2048
  depth: 64
  # refused_members: [service_tier]    # default: members that control a model server
  queue: 512                           # requests waiting for one upstream
  queue_seconds: 30
  form_bytes: 2147483648               # one form with files, such as a recording
  form_disk_bytes: 8589934592          # all forms together, in the data directory

# Tags of requests, besides the tags of their keys and of the header x-headrace-tags.
tags:
  metadata: [team, project]            # members of "metadata" become tags such as team:search
  user: false                          # true: the end user becomes the tag user:…
  most_a_day: 1000                     # new tags per account; further ones count as other

# Stored chats and responses. 0 days: nothing is stored.
stored_chats:
  retention_days: 30
  account_bytes: 10737418240           # characters per account, with responses and conversations

# Files that clients upload or that batches create.
files:
  s3:                                  # or directory: a path; default: files/ in data_dir
    endpoint: https://s3.example.com   # default: Amazon S3
    bucket: headrace-files
    region: eu-central-1
    access_key_id: \${S3_KEY_ID}
    secret_access_key: \${S3_KEY}
    prefix: headrace/
  max_bytes: 536870912                 # of one file
  account_bytes: 10737418240           # of all files of an account
  retention_days: 30

# Batches. They use only slots that no other request needs.
batches:
  max_requests: 50000                  # of one batch
  open_batches: 100                    # per account
  concurrency: 64                      # batch requests at once in each process
  unbounded_concurrency: 4             # at an upstream of unknown concurrency
  price_factor: 0.5                    # half of the token price

# The log. Errors, refused requests and slow requests are always logged.
logs:
  level: info                          # or warn, or error
  sample: 0.1                          # share of the successful requests
  slow_seconds: 60                     # slower requests are warnings

# OpenTelemetry traces. Without an endpoint there are none.
tracing:
  endpoint: http://127.0.0.1:4318      # OTLP over HTTP; /v1/traces is added
  headers:
    authorization: Bearer \${OTLP_TOKEN}
  protocol: http/json                  # or http/protobuf, for Phoenix
  service_name: headrace
  sample: 0.05                         # share of the requests that have no trace yet
  content: false                       # true: include prompts and answers

# Audit events, requests (figures, never content) and metrics for receivers outside.
export:
  records: [audit, requests]           # default
  otlp:
    endpoint: http://127.0.0.1:4318    # /v1/logs and /v1/metrics are added
    headers:
      authorization: Bearer \${OTLP_TOKEN}
    logs: true                         # default
    metrics: true                      # default
    metrics_seconds: 60
  s3:                                  # JSON lines
    endpoint: https://s3.example.com   # default: Amazon S3
    bucket: headrace-audit
    region: eu-central-1
    access_key_id: \${S3_KEY_ID}
    secret_access_key: \${S3_KEY}
    prefix: headrace/
    every_seconds: 60

# The audit log. true: refuse what cannot be recorded, and changes while the export of audit events fails.
audit:
  required: false
  max_lag_seconds: 300

# Days to keep records; null: permanently.
retention:
  requests_days: 400                   # single requests; usage totals are kept
  hourly_usage_days: null              # hourly usage; daily usage is kept
  refusals_days: 400
  audit_days: null

# Mail for invitations and password resets.
mail:
  url: smtps://headrace:\${SMTP_PASSWORD}@smtp.example.com   # smtp:// for STARTTLS
  from: Headrace <headrace@example.com>

# Sign-in at your own OpenID Connect provider; its redirect URI is https://ai.example.com/sso/callback.
sso:
  name: Example Inc                    # "Continue with Example Inc"
  issuer: https://login.example.com
  client_id: headrace
  client_secret: \${SSO_CLIENT_SECRET}
  scopes: [openid, email, profile]
  allowed_domains: [example.com]       # empty: invited people only
  account: acct_0199                   # the account that they join; default: the first
  role: member

# Clients that no account registered, such as most MCP clients.
oauth:
  registration: on                     # clients may register themselves
  client_documents: on                 # clients may identify themselves by a metadata document
  client_document_hosts: [claude.ai]   # default: any

# Web pages that may call the API; "*" allows every site.
cors:
  origins: [https://app.example.com]
`;
