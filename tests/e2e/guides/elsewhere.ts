// Blocks that are not run with the others, by how they begin, each with the reason. One that is there no more fails the test.
const needsGpu = "asks the hub for a model of some hundred megabytes, or needs a GPU";
const starts = "starts a server that stays: program-start.test.ts and start-again.test.ts do";
const shown = "is what a program prints";
const scale = "needs PostgreSQL and Redis: postgres.test.ts, replicas.test.ts and migrate.test.ts have them";
const system = "speaks to systemd, Docker or Kubernetes; deploy.test.ts reads their files, and backup.test.ts restores";
const nodes = "needs a second machine: nodes-cli.test.ts joins one, approves it and lets it leave";
const agents = "is typed to agents: tests/e2e/mcp runs them";
const bench = "measures for minutes; `npm run bench` is the developer's";

export const elsewhere: Readonly<Record<string, string>> = {
  "README.md: npm start": starts,
  "README.md: Headrace 0.1.0, for this machine only (development mode)":
    "is what a start prints: program-start.test.ts compares it",
  "README.md: npx headrace serve --model ./qwen3.gguf": needsGpu,
  "README.md: npx headrace serve --mode production": starts,
  "docs/backup.md: headrace restore /mnt/backups": system,
  "docs/backup.md: $ systemctl stop headrace": system,
  "docs/backup.md: 17 3 * * *": "is a line of cron",
  "docs/benchmark.md: npm run bench": bench,
  "docs/routing.md: bun bench/affinity.ts": bench,
  "docs/agents.md: $ npx headrace connect codex": "asks a question at a terminal: cli-connect.test.ts answers it",
  "docs/command-line.md: ln -s": "changes the PATH of the machine",
  "docs/command-line.md: Records": shown,
  "docs/command-line.md: $ headrace chat": "is a conversation at a terminal: cli-terminal.test.ts has one",
  "docs/declared-state.md: # headrace.d/shop.yaml": "is read by a test of its own, with the other documents",
  "docs/declared-state.md: kind: key": "is read by a test of its own, with the other documents",
  "docs/declared-state.md: export HEADRACE_API_KEY=": "asks at a terminal: declared-state.test.ts answers",
  "docs/keys.md: monthly_tokens: must be": shown,
  "docs/keys.md: headrace keys schedule": "acts for a person who has logged in: key-rotation.test.ts has the requests",
  "docs/export.md: requests/dt=": "is the name of an object: export.test.ts reads such objects",
  "docs/limits.md: This request needs": shown,
  "docs/limits.md: $ npx headrace limits request":
    "acts for a person who has logged in: limit-requests.test.ts has the requests",
  "docs/limits.md: $ headrace limits requests": "decides the request of a person: limit-requests.test.ts has one",
  "docs/limits.md: headrace end-users": "needs a key with keys:manage: end-users.test.ts has one",
  "docs/limits.md: HEADRACE_DATABASE_URL=": scale,
  "docs/models.md: $ headrace list": needsGpu,
  "docs/nodes.md: headrace node": nodes,
  "docs/nodes.md: headrace nodes": nodes,
  "docs/observability.md: POST /v1/chat/completions": shown,
  "docs/tools.md: claude mcp add": agents,
  "docs/tools.md: codex mcp add": agents,
  "docs/operating.md: CREATE ROLE": scale,
  "docs/operating.md: export HEADRACE_DATABASE_URL": scale,
  "docs/operating.md: $ HEADRACE_DATABASE_URL=": scale,
  "docs/operating.md: headrace doctor": system,
  "docs/operating.md: headrace replicas drain": "needs several replicas: operator-questions.test.ts drains one",
  "docs/operating.md: headrace organizations":
    "needs one account of that name, other blocks make several: organizations.test.ts has one",
  "docs/operating.md: headrace people suspend":
    "stops those whom other blocks need: cli-admin.test.ts runs the commands",
  "docs/operating.md: $ headrace secret rotate": "is for a server that was stopped: secret-rotation.test.ts stops one",
  "docs/prices.md: x-headrace-usage:": shown,
  "docs/questions.md: export HEADRACE_BASE_URL":
    "reads a key from a terminal: operator-questions.test.ts runs the page's commands",
  "docs/scaling.md: HEADRACE_DATABASE_URL=": scale,
  "docs/scaling.md: createdb": scale,
  "docs/scaling.md: Table": shown,
  "docs/scaling.md: npm run release -- image": "makes the image: image.test.ts makes and runs it",
  "docs/scaling.md: docker run": system,
  "docs/scaling.md: # values.yaml": "is for the chart: helm.test.ts renders it with these values",
  "docs/scaling.md: kubectl create": system,
  "docs/questions.md: [Service]": system,
  "docs/secrets.md: upstreams:": "reads files and Vault: external-secrets.test.ts has both",
  "docs/secrets.md: HEADRACE_SECRET_FILE=": starts,
  "docs/secrets.md: [Service]": system,
  "docs/sign-in.md: Create your sign-in": shown,
  "docs/sign-in.md: $ npx headrace members": "acts for a person who has logged in: login.test.ts is one",
  "docs/sign-in.md: $ npx headrace login": "waits for a person at a browser: login.test.ts is one",
  "docs/media.md: curl http://127.0.0.1:7545/v1/audio": "needs a model that hears: media.test.ts has a server of one",
  "docs/realtime.md: import OpenAI": "needs a server with realtime: tests/e2e/agents/realtime.test.ts has one",
  "docs/split-and-shadow.md: headrace models compare": "needs a model with a shadow: split-and-shadow.test.ts has one",
  "docs/tasks.md: curl http://127.0.0.1:7545/v1/rerank": "needs a model that ranks: tasks.test.ts has a server of one",
  "docs/upgrading.md: systemctl stop headrace": system,
  "docs/upgrading.md: The database has schema": shown,
};
