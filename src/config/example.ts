// The commented headrace.yaml of the reference page; a test loads it.

export const exampleFile = `# yaml-language-server: $schema=./headrace.schema.json

# How the server runs. Flags and environment variables come before these.
host: 0.0.0.0                          # anything but loopback needs mode: production
port: 7545                             # 0 picks a free port
mode: production
public_url: https://ai.example.com     # as clients reach it; /v1 is added
trusted_proxies: [10.0.0.0/8]          # whose X-Forwarded-For is believed
allowed_hosts: [devbox.example.com]    # in development, further names of this machine
data_dir: /var/lib/headrace
backup_before_upgrade: true            # a copy in backups/ before the schema of SQLite changes
advertise_url: http://10.0.0.5:7545    # where other replicas reach this one
workers: 1                             # or auto: processes for requests, as many as there are processors
lame_duck_seconds: 5                   # when it stops: answers on until load balancers have heard of it
log_format: json                       # or text, for people
discover_local: false                  # do not look for model servers on this machine
webhook_loopback: false                # let webhooks post to this machine; development alone

# The built-in engine.
engine:
  models:
    - ./models/qwen3-4b.gguf           # relative to this file
  context: 8192                        # tokens per request
  parallel: 4                          # requests computed at once
  threads: 1
  demo: false                          # no tiny demo model
  memory:                              # what commands share; left out: most of what the machine has
    ram: 24GB
    gpu: { 0: 22GB }
  files:                               # files that another program runs than the engine itself
    - model: qwen3-vl-4b-q4_k_m        # as headrace list shows it
      engine: llama-server             # found on the PATH
      projector: ./models/mmproj.gguf  # to read images
      draft: qwen3-0.6b-q8_0           # guesses ahead
      arguments: --flash-attn on
  commands:                            # model servers that are started for requests
    - name: qwen3
      command: llama-server -m qwen3-8b.gguf --port \${PORT} -ngl 99
      models: [qwen3-8b]
      directory: ./models              # relative to this file
      env: { CUDA_VISIBLE_DEVICES: "0" }   # beside PATH, HOME and the like
      memory: { ram: 2GB, gpu: { 0: 8GB } }   # left out: measured
      path: /v1
      api: openai
      apis: [chat]
      ready_path: /health              # left out: /health, or the list of models
      ready_seconds: 120
      keep_seconds: 600                # null: until its memory is needed
      preload: true                    # started with the server
      pinned: false                    # true: never stopped for others
      group: large                     # one of them at a time
      parallel: 4                      # requests at once; left out: measured
      timeout_seconds: 600
      idle_seconds: 900
    - name: vllm
      command: [vllm, serve, Qwen/Qwen3-32B, --port, "\${PORT}", --enable-sleep-mode]
      models: [Qwen/Qwen3-32B]
      env: { VLLM_SERVER_DEV_MODE: "1" }
      memory: { ram: 40GB, gpu: { 1: 44GB } }
      asleep_gpu: { 1: 2GB }           # sleeps in place of being stopped

# Servers whose models are served: with an OpenAI-compatible API, or Anthropic's.
upstreams:
  - name: ollama
    url: http://127.0.0.1:11434/v1     # discovered: all its models are served under their own ids
    local: true                        # keys with never_leaves may use it
  - name: cloud
    url: https://api.example.com/v1
    api_key: \${CLOUD_API_KEY}          # from the environment; an unset variable is an error
    discover: false                    # serve only what is under models
    timeout_seconds: \${CLOUD_TIMEOUT:-600}   # to the first byte
    idle_seconds: 900                  # between two bytes
    max_concurrency: 64                # requests at once; left out: measured
    identifiers: hashed                # ids of users and prompts in requests: or as_sent, removed
    cache_salt: false                  # true for vLLM: a part of its cache for each account
    priority: false                    # true for vLLM with --scheduling-policy priority
    http_client: own                   # or fetch, that of Bun
  - name: claude
    url: https://api.anthropic.com/v1
    api: messages                      # Anthropic's own API; left out: openai
    api_key: \${ANTHROPIC_API_KEY}
  - name: azure
    url: https://example.openai.azure.com/openai/v1
    api_key: \${AZURE_API_KEY}
    key_header: api-key                # left out: authorization, as a bearer token
    query: { api-version: preview }    # what the path of every request ends with
    apis: [chat, responses]            # formats that it has; left out: it is asked

# Public ids with capabilities, prices and the places where they run.
models:
  - id: assistant
    capabilities: { chat: true, completion: false, embeddings: false }
    context: 32768                     # tokens, prompt and completion together
    environments: [live, test, dev]    # without test unless named
    price: { input: 0.15, output: 0.6 }   # USD per million tokens
    owned_by: example
    fallbacks: [tiny-demo]             # answers where none of its deployments does
    aliases: ["claude-*", gpt-5]       # names that clients insist on
    deployments:
      - upstream: cloud
        model: big-model-2             # the upstream's own id
        weight: 3                      # three requests of four
      - upstream: ollama
        model: llama3.1:8b
        weight: 1
    policies:                          # beyond that requests are answered; left out: nothing
      continuation: true               # a stream that its server cuts goes on at another deployment
      overflow:                        # asked only where the others keep a request waiting
        to:
          - upstream: cloud
            cost: { input: 0.1, output: 0.4 }   # the cheapest is asked first
        after_seconds: 5               # where the others are expected to take longer
        prompt_tokens_above: 30000
        hours: ["18:00-06:00"]         # UTC: as any other deployment
        most_usd_per_request: 0.5
        spend: { usd: 50, per: day }   # of all requests together
      cache:                           # answers that are given again to the same account
        requests: deterministic        # temperature 0, or asked for; or asked, or all
        ttl_seconds: 3600
        price_factor: 0                # the part of its price that it costs again
      guardrails: [no-secrets, customer-numbers]
      shadow: { model: assistant-next, percent: 5 }   # gets these as well, its answers unseen
      split:                           # answers these in its place
        - { model: assistant-next, percent: 10 }
  - id: assistant-next
    deployments:
      - upstream: ollama
        model: qwen3:8b

# What looks at requests before a model gets them, and at answers before their client does; models name it.
guardrails:
  - name: no-secrets
    kind: secrets                      # credentials and personal data
    action: mask                       # or block, or note
  - name: customer-numbers
    kind: patterns
    sides: [answer]                    # left out: request and answer
    action: block
    patterns:
      - { name: customer-number, pattern: 'KD-[0-9]{8}' }
  - name: on-topic
    kind: judge                        # a model that is asked
    sides: [request]
    model: assistant-next
    policy: Nothing but questions about our products.
    timeout_seconds: 5
    otherwise: pass                    # where it does not answer; left out: block
  - name: own-service
    kind: http
    action: note
    url: https://guard.example.com/check
    token: \${GUARD_TOKEN}              # as a bearer token

# Where answers that are given again are kept.
cache:
  store: memory                        # or redis, that of HEADRACE_REDIS_URL
  max_bytes: 67108864
  max_answer_bytes: 1048576

# MCP servers, which clients get at /mcp with the scope tools:use.
tools:
  record: none                         # or content: what was said in calls is kept, sealed, as stored chats are
  sampling_model: small                # for servers that ask a model and name none that is there
  search_from: 40                      # with more tools, a search is offered in their place
  servers:
    - name: issues                     # its tools are issues_…
      url: https://tools.example.com/mcp
      headers:
        authorization: Bearer \${ISSUES_TOKEN}
      tools: [search_*, get_issue]     # left out: all of them
      approval: first                  # changes wait for an operator; or each, or all
      timeout_seconds: 60
    - name: crm
      url: https://crm.example.com/mcp
      oauth:                           # each person connects an account of their own there
        issuer: https://login.example.com # left out: the authorization server that it names
        client_id: headrace            # left out: the gateway describes or registers itself
        client_secret: \${CRM_CLIENT_SECRET}
        scopes: [contacts.read]        # left out: those that it asks for
    - name: files
      command: mcp-server-filesystem /srv/shared
      env: { LOG_LEVEL: info }         # nothing else of this server's environment
      sharing: all                     # one process for everybody; left out: one for each person
      share: true                      # the gateway that this machine is a node of may offer it as well
    - name: desk
      node: { node: workstation-1, server: files } # what that node shares

# What accounts may use; null means no limit. free, pro and enterprise exist without being named here.
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
    environments: [live, test]         # add dev to have limits there as well
    priority: high                     # their requests are first where requests wait: low, normal or high

# What one request may be, and how long it may wait, at most.
limits:
  body_bytes: 33554432
  messages: 2048
  depth: 64
  # refused_members: [service_tier]    # members of bodies; left out: those that rule a model server
  queue: 512                           # requests waiting for one upstream
  queue_seconds: 30
  form_bytes: 2147483648               # a form with files, such as a recording
  form_disk_bytes: 8589934592          # all of them together, in the data directory

# What requests are counted under beside the tags of their keys and those of the header x-headrace-tags.
tags:
  metadata: [team, project]            # members of "metadata", as team:search
  user: false                          # true: the end user that a request names, as user:…
  most_a_day: 1000                     # of one account; further ones count as other

# Chat completions with store: true; 0 days: nothing is kept.
stored_chats:
  retention_days: 30
  account_bytes: 10737418240           # of an account, with its responses and conversations

# Files that clients upload, and that batches make.
files:
  s3:                                  # or directory: a path; left out: files/ in data_dir
    endpoint: https://s3.example.com   # left out: Amazon's
    bucket: headrace-files
    region: eu-central-1
    access_key_id: \${S3_KEY_ID}
    secret_access_key: \${S3_KEY}
    prefix: headrace/
  max_bytes: 536870912                 # of one file
  account_bytes: 10737418240           # of all files of an account
  retention_days: 30

# Batches of requests, which take only places that nobody else wants.
batches:
  max_requests: 50000                  # of one batch
  open_batches: 100                    # of one account
  concurrency: 64                      # requests under way in each process
  unbounded_concurrency: 4             # at a server that does not say how many it takes
  price_factor: 0.5                    # half of the price of tokens

# Which lines are written to the log. Errors, refusals and slow requests always are.
logs:
  level: info                          # or warn, or error
  sample: 0.1                          # of the requests that went well
  slow_seconds: 60                     # from here on a request is a warning

# Traces by OpenTelemetry; without an endpoint there are none.
tracing:
  endpoint: http://127.0.0.1:4318      # OTLP over HTTP; /v1/traces is added
  headers:
    authorization: Bearer \${OTLP_TOKEN}
  service_name: headrace
  sample: 0.05                         # of the requests that are no part of a trace yet
  content: false                       # true: prompts and answers as well

# How long records are kept, in days; null: for good.
retention:
  requests_days: 400                   # single requests; sums of usage stay
  hourly_usage_days: null              # sums by hour; those by day stay
  refusals_days: 400
  audit_days: null

# How invitations and password resets are sent.
mail:
  url: smtps://headrace:\${SMTP_PASSWORD}@smtp.example.com   # smtp:// for STARTTLS; no part of it is ever shown
  from: Headrace <headrace@example.com>

# Sign-in at your own OpenID Connect provider; its redirect URI is https://ai.example.com/sso/callback.
sso:
  name: Example Inc                    # "Continue with Example Inc"
  issuer: https://login.example.com
  client_id: headrace
  client_secret: \${SSO_CLIENT_SECRET}
  scopes: [openid, email, profile]
  allowed_domains: [example.com]       # none: only who was invited
  account: acct_0199                   # that they join; left out: the first
  role: member

# Clients that no account registered, as those of tools are mostly.
oauth:
  registration: on                     # they may register by themselves
  client_documents: on                 # or be known by the address of a document that describes them
  client_document_hosts: [claude.ai]   # left out: any

# Web pages that may call the API; "*" allows every site.
cors:
  origins: [https://app.example.com]
`;
