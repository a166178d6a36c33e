// The rooms of the house, from the ground up, and what each may import. A new folder gets its line here first.
import type { Layers } from "./layers.ts";

const protocol = "a protocol knows nothing of what is said by it.";
const adapter = "an adapter knows the ports that it serves, not who uses them.";
const storing = [
  ...["base", "domain", "ledger", "limits"].map((name) => `src/${name}`),
  ...["backup", "files", "objects", "redis", "sql", "tables"].map((name) => `src/storage/${name}`),
];
const shown = [
  "@mantine/core",
  "@mantine/hooks",
  "@mantine/notifications",
  "@primer/octicons-react",
  "react",
  "wouter",
];

export const layers: Layers = {
  "src/base": {
    may: [],
    packages: ["node:buffer"],
    because: "what everything stands on stands on nothing: bytes, text, time, errors, what comes later.",
  },
  "src/installation": {
    may: ["bin"],
    packages: ["bun:ffi", "node:child_process", "node:fs", "node:os", "node:path", "node:url"],
    because: "where files are, on disk and in memory, does not depend on what is in them.",
  },
  "src/domain": {
    may: ["src/base"],
    because: "the nouns, rules and ports that all others share are without technology.",
  },
  "src/wire": {
    may: ["src/base", "src/domain", "src/features/<each>/model.ts"],
    packages: ["zod"],
    because: "the shapes of the API know nothing of who takes and gives them.",
  },
  "src/requests/dialects": {
    may: ["src/base", "src/domain", "src/wire"],
    packages: ["zod"],
    because: "a wire format does not depend on who asks, who answers and what is in between.",
  },
  "src/requests": {
    may: ["src/base", "src/domain", "src/multipart", "src/requests/dialects", "src/wire"],
    packages: ["node:buffer", "zod"],
    because: "it knows what a request says, and nothing of who sends it and who answers it.",
  },
  "src/multipart": {
    may: ["src/base", "src/domain"],
    packages: ["node:fs", "node:fs/promises", "node:path"],
    because: "how a form is read and kept does not depend on what is asked by it.",
  },
  "src/http1": { may: ["src/base"], packages: ["bun", "node:fs", "node:os"], because: protocol },
  "src/egress": {
    may: ["src/base", "src/http1"],
    packages: ["bun"],
    because: "what is asked of an address that somebody else chose does not decide whether it may be asked.",
  },
  "src/websocket": {
    may: ["src/base", "src/http1"],
    packages: ["bun", "node:buffer", "node:crypto", "node:tls"],
    because: protocol,
  },
  "src/workers": {
    may: ["src/base", "src/domain", "src/http1"],
    because:
      "the processes that share a port know how requests and limits get to the primary, not what is asked there.",
  },
  "src/prices": {
    may: ["src/base", "src/domain", "src/installation"],
    packages: ["node:fs"],
    because: "the price list is data that depends on nobody.",
  },
  "src/config/field.ts": {
    may: ["src/domain"],
    packages: ["zod"],
    because: "features describe their sections of the file with it.",
  },
  "src/features/<each>/model.ts": {
    may: ["src/base", "src/domain"],
    because: "all other files of its feature stand on it.",
  },
  "src/features/<each>/wire.ts": {
    may: ["src/base", "src/domain", "src/wire", "src/features/<each>/model.ts"],
    packages: ["zod"],
    because: "the shapes of the API know nothing of who takes and gives them.",
  },
  "src/features/<each>/config.ts": {
    may: ["src/base", "src/config/field.ts", "src/domain", "src/features/<each>/model.ts"],
    packages: ["zod"],
    because: "src/config reads it, so it stands below src/config.",
  },
  "src/features/<each>/command.ts": {
    may: ["src/base", "src/domain", "src/features/<each>/model.ts"],
    because: "src/cli reads it, so it stands below src/cli, without commander.",
  },
  "src/config": {
    may: [
      ...["src/base", "src/domain", "src/installation", "src/prices"],
      ...["src/features/<each>/config.ts", "src/features/<each>/model.ts"],
    ],
    packages: ["node:fs", "node:os", "node:path", "yaml", "zod"],
    because: "configuration is plain data.",
  },
  "src/logging": { may: ["src/base", "src/domain", "src/config"], because: adapter },
  "src/metrics": {
    may: ["src/base", "src/domain"],
    packages: ["node:fs"],
    because: "it counts what it is told; src/server gathers from the parts.",
  },
  "src/tracing": {
    may: ["src/base", "src/requests/dialects", "src/domain"],
    packages: ["@opentelemetry", "node:module"],
    because: adapter,
  },
  "src/exports": {
    may: ["src/base", "src/domain"],
    packages: ["node:crypto"],
    because: "what leaves, and when, does not depend on where it is stored.",
  },
  "src/mail": { may: ["src/base", "src/domain"], packages: ["nodemailer"], because: adapter },
  "src/processes": {
    may: ["src/base", "src/domain", "src/installation"],
    packages: ["bun", "node:*"],
    because: "how a command lives and ends does not depend on what it is for.",
  },
  "src/engines": {
    may: ["src/base", "src/domain", "src/http1", "src/websocket", "package.json"],
    packages: ["zod"],
    because: adapter,
  },
  "src/engines/memory": {
    may: ["src/base"],
    packages: ["node:*"],
    because: "what is set aside does not depend on who runs models.",
  },
  "src/engines/commands": {
    may: ["src/base", "src/domain", "src/engines", "src/engines/memory", "src/installation", "src/processes"],
    packages: ["node:*"],
    because: adapter,
  },
  "src/engines/llama": {
    may: [
      ...["src/base", "src/domain", "src/engines", "src/engines/memory", "src/installation", "package.json"],
      ...["src/engines/llama/gguf", "src/engines/llama/loading"],
    ],
    packages: ["node:*", "zod"],
    because: adapter,
  },
  "src/engines/llama/gguf": {
    may: ["src/domain"],
    packages: ["node:fs"],
    because: "what a file says of itself does not depend on who runs it.",
  },
  "src/engines/llama/loading": {
    may: ["src/base", "src/domain", "src/engines/llama", "src/engines/memory"],
    because: "when a model is in memory does not depend on what it is asked.",
  },
  "src/engines/llama/worker": {
    may: ["src/base", "src/domain", "src/engines/llama", "src/engines/llama/gguf", "src/installation"],
    packages: ["node:*", "node-llama-cpp", "zod"],
    because: "it is a process of its own, the only one with llama.cpp in it.",
  },
  "src/storage/sql": {
    may: ["src/base", "src/domain", "src/installation", "package.json"],
    packages: ["bun", "bun:sqlite", "node:*", "zod"],
    because: "the databases know nothing of what is in their tables but how they are made.",
  },
  "src/storage/files": {
    may: ["src/base", "src/domain"],
    packages: ["bun", "bun:sqlite", "node:*", "zod"],
    because: adapter,
  },
  "src/storage/redis": {
    may: ["src/base", "src/domain", "src/storage/sql"],
    packages: ["bun", "node:*"],
    because: adapter,
  },
  "src/storage/tables": {
    may: ["src/base", "src/domain", "src/storage/sql"],
    packages: ["bun", "bun:sqlite", "node:*", "zod"],
    because: adapter,
  },
  "src/storage/backup": {
    may: ["src/base", "src/domain", "src/storage/files", "src/storage/sql"],
    packages: ["bun", "bun:sqlite", "node:*", "zod"],
    because: "it copies whatever is there.",
  },
  "src/storage/objects": {
    may: ["src/base", "src/domain"],
    packages: ["bun", "node:*"],
    because: adapter,
  },
  "src/files": {
    may: ["src/base", "src/domain"],
    packages: ["node:crypto"],
    because: "what is kept of files does not depend on where it is.",
  },
  "src/limits": {
    may: ["src/base", "src/domain", "src/storage/redis", "src/storage/sql"],
    packages: ["node:*"],
    because: adapter,
  },
  "src/ledger": {
    may: ["src/base", "src/domain", "src/storage/files", "src/storage/sql", "src/storage/tables"],
    packages: ["bun", "bun:sqlite", "node:*", "zod"],
    because: adapter,
  },
  "src/policy": {
    may: ["src/base", "src/domain", "src/wire"],
    packages: ["jose", "node:crypto"],
    because: "what is allowed does not depend on transport, storage or engines.",
  },
  "src/accounts": {
    may: ["src/base", "src/domain", "src/policy", "src/wire"],
    packages: ["@simplewebauthn/server", "node:crypto", "openid-client"],
    because: "people and how they sign in do not depend on transport, storage or engines.",
  },
  "src/notifications": {
    may: ["src/base", "src/domain", "src/http1", "src/egress", "src/policy", "src/wire"],
    packages: ["standardwebhooks"],
    because: "what is told, and to whom, does not depend on storage, engines and how mail is sent.",
  },
  "src/workers/link": {
    may: ["src/base", "src/domain"],
    packages: ["bun", "bun:jsc", "node:fs", "node:path"],
    because: protocol,
  },
  "src/workers/primary": {
    may: ["src/base", "src/domain", "src/workers/link"],
    packages: ["bun", "node:fs", "node:path"],
    because: "it answers workers through ports.",
  },
  "src/workers/worker": {
    may: ["src/base", "src/domain", "src/workers/link"],
    because: "what it asks another process for serves ports of its own.",
  },
  "src/oauth": {
    may: ["src/base", "src/domain", "src/egress", "src/policy"],
    packages: ["node:crypto"],
    because: "the authorization server does not depend on transport, storage or engines.",
  },
  "src/inference": {
    may: [
      ...["base", "domain", "policy", "prices", "requests", "requests/dialects", "wire"].map((name) => `src/${name}`),
      "src/features/<each>/model.ts",
    ],
    because: "it reaches engines, stores and clients through ports; the price list is data.",
  },
  "src/batches": {
    may: ["base", "domain", "files", "inference", "policy", "requests", "requests/dialects", "wire"].map(
      (name) => `src/${name}`,
    ),
    packages: ["node:buffer", "node:crypto"],
    because: "a batch works on files and asks models, and no client waits for it.",
  },
  "src/responses": {
    may: ["base", "domain", "inference", "policy", "requests", "requests/dialects", "wire"].map(
      (name) => `src/${name}`,
    ),
    because: "what is kept of responses, and what runs in the background, outlives the request that began it.",
  },
  "src/features/feature.ts": {
    may: ["src/config", "src/inference", "src/metrics"],
    because: "a declaration names types alone.",
  },
  "src/features/<each>/*": {
    may: [
      ...["base", "domain", "inference", "metrics", "requests", "requests/dialects"].map((name) => `src/${name}`),
      ...["src/features/feature.ts", "src/features/<each>/model.ts"],
    ],
    because: "the work of a feature does not depend on who asks and who serves.",
  },
  "src/features/<each>/routes.ts": {
    may: [
      ...["base", "domain", "http", "wire"].map((name) => `src/${name}`),
      ...["*", "model.ts", "wire.ts"].map((name) => `src/features/<each>/${name}`),
    ],
    packages: ["zod"],
    because: "the endpoints of a feature are the face of its work, and src/http/routes.ts lists them.",
  },
  "src/features/*": {
    may: [
      ...["base", "config", "inference", "metrics"].map((name) => `src/${name}`),
      ...["src/features/feature.ts", "src/features/<each>/*"],
    ],
    because: "it opens the features by their declarations.",
  },
  "src/mcp/server": {
    may: ["src/base", "src/domain", "src/policy"],
    packages: ["@modelcontextprotocol/server", "node:async_hooks"],
    because: "what clients of tools see reaches servers, stores and models through ports.",
  },
  "src/mcp/connections": {
    may: ["src/base", "src/domain", "src/egress", "src/policy"],
    packages: ["@modelcontextprotocol/client", "node:crypto"],
    because: "accounts of people at servers are reached through ports, whoever asks with them.",
  },
  "src/mcp/registry": {
    may: ["src/base", "src/domain", "src/mcp/server", "src/policy", "src/wire"],
    because: "what is known of MCP servers does not depend on who uses them.",
  },
  "src/mcp/client": {
    may: ["src/base", "src/domain", "src/http1", "src/egress", "src/processes"],
    packages: ["@modelcontextprotocol/client", "node:*"],
    because: "how an MCP server is reached does not depend on who asks it for what.",
  },
  "src/mcp/accounting": {
    may: ["src/base", "src/domain", "src/inference", "src/policy", "src/requests"],
    because: "what a call costs, and who may make it, does not depend on how it gets to its server.",
  },
  "src/nodes": {
    may: ["base", "domain", "http1", "inference", "policy", "requests", "requests/dialects", "websocket", "wire"].map(
      (name) => `src/${name}`,
    ),
    packages: ["node:crypto", "zod"],
    because: "it reaches stores and engines through ports.",
  },
  "src/nodes/tunnel": {
    may: ["src/base", "src/domain", "src/nodes"],
    packages: ["node:buffer", "node:crypto"],
    because: protocol,
  },
  "src/http": {
    may: [
      ...[
        "accounts",
        "base",
        "batches",
        "domain",
        "multipart",
        "files",
        "http1",
        "inference",
        "installation",
        "mcp/connections",
        "mcp/server",
        "mcp/registry",
        "nodes",
        "nodes/tunnel",
        "notifications",
        "oauth",
        "policy",
        "prices",
        "requests",
        "requests/dialects",
        "responses",
        "websocket",
        "wire",
      ].map((name) => `src/${name}`),
    ],
    packages: ["@simplewebauthn/server", "node:*", "zod"],
    because: "the face of the program reaches adapters through ports.",
  },
  "src/http/routes.ts": {
    may: ["src/features/<each>/routes.ts", "src/http"],
    because: "it lists the makers of routes.",
  },
  "src/maintenance": {
    may: [
      ...storing,
      ...["accounts", "config", "inference", "installation", "policy", "wire"].map((name) => `src/${name}`),
      "package.json",
    ],
    packages: ["bun", "node:*"],
    because: "it works on what is stored, with or without a server.",
  },
  "src/server": {
    may: [
      ...storing,
      ...[
        "accounts",
        "batches",
        "config",
        "engines",
        "engines/commands",
        "engines/llama",
        "engines/llama/gguf",
        "engines/memory",
        "exports",
        "multipart",
        "features/*",
        "files",
        "http",
        "http1",
        "inference",
        "installation",
        "logging",
        "mail",
      ].map((name) => `src/${name}`),
      ...[
        "mcp/connections",
        "mcp/server",
        "mcp/client",
        "mcp/registry",
        "mcp/accounting",
        "metrics",
        "nodes",
        "notifications",
        "oauth",
        "egress",
        "policy",
        "prices",
        "responses",
        "tracing",
        "maintenance",
        "wire",
        "workers",
        "workers/primary",
        "workers/link",
        "workers/worker",
        "server/worker",
      ].map((name) => `src/${name}`),
      "package.json",
    ],
    packages: ["bun", "node:*"],
    because: "composition knows every adapter, and no command.",
  },
  "src/server/worker": {
    may: [
      "src/ledger",
      "src/storage/sql",
      ...[
        "base",
        "config",
        "domain",
        "engines",
        "http",
        "http1",
        "inference",
        "installation",
        "logging",
        "metrics",
        "notifications",
      ].map((name) => `src/${name}`),
      ...["policy", "requests", "server", "tracing", "workers", "workers/link", "workers/worker"].map(
        (name) => `src/${name}`,
      ),
    ],
    packages: ["bun", "node:path"],
    because: "a worker has what requests for models need, and no more: it stays small, and the rest has one place.",
  },
  "src/doctor": {
    may: [
      ...storing,
      ...[
        "accounts",
        "config",
        "engines",
        "engines/llama",
        "inference",
        "installation",
        "mail",
        "policy",
        "server",
        "maintenance",
      ].map((name) => `src/${name}`),
      "package.json",
    ],
    packages: ["node:*"],
    because: "it looks at adapters and files as they are, and at the server over HTTP.",
  },
  "src/doctor/clients": {
    may: ["src/base", "src/doctor", "src/wire"],
    packages: ["zod"],
    because: "what a test of the wire expects must not come from the server's own shapes.",
  },
  "src/cli": {
    may: [
      ...storing,
      ...[
        "config",
        "doctor",
        "doctor/clients",
        "features/<each>/command.ts",
        "engines",
        "engines/llama",
        "engines/llama/gguf",
        "installation",
        "prices",
        "logging",
        "nodes",
        "server",
        "maintenance",
        "wire",
      ].map((name) => `src/${name}`),
      "package.json",
    ],
    packages: ["@modelcontextprotocol/client", "commander", "jsonc-parser", "node:*", "zod"],
    because: "commands talk to the HTTP API or to local files; composition is not theirs.",
  },
  "src/main.ts": {
    may: [
      ...[
        "cli",
        "engines/commands",
        "engines/llama",
        "engines/llama/worker",
        "installation",
        "processes",
        "server/worker",
        "storage/sql",
      ].map((name) => `src/${name}`),
    ],
    because: "it starts a command, or a role.",
  },
  "web/api": {
    may: [],
    packages: ["@tanstack/react-query", "react"],
    because: "data know nothing of how they are shown, and the server by its public HTTP API alone.",
  },
  "web/parts": {
    may: ["web/api", "web/*"],
    packages: [...shown, "@tanstack/react-virtual", "uplot"],
    because: "parts are what pages are made of.",
  },
  "web/pages": {
    may: ["web/pages/<each>"],
    packages: ["react"],
    because: "it lists the pages.",
  },
  "web/pages/<each>": {
    may: ["web/api", "web/parts"],
    packages: [...shown, "@simplewebauthn/browser", "@tanstack/react-query"],
    because: "what several pages need is in web/parts or web/api.",
  },
  "web/shell": {
    may: ["web/api", "web/parts", "web/pages", "web/pages/<each>"],
    packages: [...shown, "@tanstack/react-query"],
    because: "it is the frame around the pages.",
  },
  "web/start": {
    may: ["web/*", "web/api", "web/parts", "web/shell"],
    packages: [...shown, "@tanstack/react-query", "react-dom"],
    because: "it starts the dashboard.",
  },
  "web/*": {
    may: ["web/start", "web/parts", "web/shell", "web/pages/<each>"],
    packages: ["@mantine/core", "@mantine/notifications", "uplot"],
    because: "it is the look of the dashboard, and its entry.",
  },
};

/** Who may read the time: the clock, commands that are over soon, and processes of their own. */
export const timeRooms = [
  "src/base/clock.ts",
  "src/cli",
  "src/doctor",
  "src/engines/llama/worker",
  "src/installation/executable.ts",
];

/** Who turns USD into nano-USD and back, computes prices, or has other costs than those in money. */
export const moneyRooms = [
  "src/base/money.ts",
  "src/policy/price.ts",
  "web/api/money.ts",
  // The cost of a place to run is work.
  "src/inference/routing/ranking.ts",
];

/** Files whose timers, sockets and processes belong to the server itself, or to a command that ends: there is one of each. */
export const housekeeping: readonly string[] = [
  "src/cli/login/login.ts",
  "src/cli/serve/watch-config.ts",
  "src/cli/serve/node-face.ts",
  "src/cli/serve/quiet.ts",
  "src/cli/serve/serve.ts",
  "src/cli/terminal/context.ts",
  "src/cli/terminal/progress.ts",
  "src/engines/llama/engine-install.ts",
  "src/engines/llama/inspect-model.ts",
  "src/engines/llama/npm-command.ts",
  "src/engines/llama/worker/server.ts",
  "src/engines/memory/gpus.ts",
  "src/exports/exporter.ts",
  "src/exports/otlp-metrics.ts",
  "src/inference/models/upstream-health.ts",
  "src/inference/routing/load-reader.ts",
  "src/inference/routing/overdue.ts",
  "src/inference/routing/routing-watcher.ts",
  "src/installation/executable.ts",
  "src/limits/shared/limits-link.ts",
  "src/notifications/watch/periodic-job.ts",
  "src/oauth/housekeeper.ts",
  "src/policy/credentials/revision-watcher.ts",
  "src/policy/credentials/signing-keys.ts",
  "src/policy/long-connections.ts",
  "src/policy/records/replicas.ts",
  "src/policy/records/retention.ts",
  "src/server/event-loop-delay.ts",
  "src/server/llama-server-files.ts",
  "src/server/serve.ts",
  "src/storage/redis/redis-connection.ts",
  "src/storage/sql/checkpointer.ts",
  "src/storage/sql/postgres-pool.ts",
  "src/storage/sql/quick-check.ts",
  "src/storage/tables/expiry-sweep.ts",
  "src/maintenance/backup.ts",
];
