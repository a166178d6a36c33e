// The clients that can be connected: their settings, the file or variable for the settings, and the vendor's
// documentation of both.

/** The server, key and model that a client is connected to. */
export interface Target {
  /** The address of the API, which ends in `/v1`. */
  baseUrl: string;
  model: string;
  key: string;
  /** The model's context length in tokens, if known. */
  context: number | undefined;
}

/** A value in a client's configuration. `path` is the names that lead to it, from the top level on. */
export interface Setting {
  path: readonly string[];
  value: unknown;
}

/** The MCP endpoint that a client is connected to. */
export interface ToolsTarget {
  /** The address of the endpoint that has all tools. */
  url: string;
  /** True if the client sends the key from its environment. Otherwise the client signs its user in. */
  sendsKey: boolean;
}

export interface ClientFile<To = Target> {
  format: "toml" | "json";
  /** The folder below the user's home, unless the variable names another folder. */
  folder: readonly string[];
  /** The environment variable that overrides the folder. If names follow, they are appended to the variable's value. */
  otherFolder: readonly [variable: string, ...below: string[]] | undefined;
  /** Possible file names. The first name that exists is used, or else the first name. */
  names: readonly [string, ...string[]];
  settings(target: To): readonly Setting[];
}

export interface ClientTools {
  file: ClientFile<ToolsTarget>;
  /** The command that signs the user in. */
  signIn: string;
}

export interface Client {
  id: string;
  name: string;
  /** The client's executable, by which it is found on a machine. Undefined if the client is a library. */
  program: string | undefined;
  file: ClientFile | undefined;
  /** Describes how MCP servers are set for this client. Undefined if its users name MCP servers only in code. */
  tools: ClientTools | undefined;
  /** Returns the environment variables that the client reads. */
  environment(target: Target): Readonly<Record<string, string>>;
  /** The next step of the user, such as the command to run. */
  start: string;
}

/** A client's configuration names this variable instead of the key, so that no file contains the key. */
export const keyVariable = "HEADRACE_API_KEY";
const name = "Headrace";
const id = "headrace";

const codexFile = {
  format: "toml",
  folder: [".codex"],
  otherFolder: ["CODEX_HOME"],
  names: ["config.toml"],
} as const;

/**
 * developers.openai.com/codex/config-reference: `model_providers` and `mcp_servers`. "responses" is the only protocol
 * left for providers.
 */
const codex: Client = {
  id: "codex",
  name: "Codex",
  program: "codex",
  tools: {
    file: {
      ...codexFile,
      settings: ({ url, sendsKey }) => [
        { path: ["mcp_servers", id], value: { url, ...(sendsKey && { bearer_token_env_var: keyVariable }) } },
      ],
    },
    signIn: `codex mcp login ${id}`,
  },
  file: {
    ...codexFile,
    settings: ({ baseUrl, model, context }) => [
      { path: ["model"], value: model },
      { path: ["model_provider"], value: id },
      // Codex knows the context length only for OpenAI's models.
      ...(context === undefined ? [] : [{ path: ["model_context_window"], value: context }]),
      {
        path: ["model_providers", id],
        value: { name, base_url: baseUrl, env_key: keyVariable, wire_api: "responses" },
      },
    ],
  },
  environment: ({ key }) => ({ [keyVariable]: key }),
  start: "codex",
};

/**
 * code.claude.com/docs/en/llm-gateway-connect: the address has no `/v1`, the token is sent as a Bearer, and background
 * work uses the model of `HAIKU`. code.claude.com/docs/en/mcp: the user's own servers are in another file.
 */
const claude: Client = {
  id: "claude",
  name: "Claude Code",
  program: "claude",
  tools: {
    file: {
      format: "json",
      folder: [],
      otherFolder: ["CLAUDE_CONFIG_DIR"],
      names: [".claude.json"],
      settings: ({ url, sendsKey }) => [
        {
          path: ["mcpServers", id],
          value: {
            ...{ type: "http", url },
            ...(sendsKey && { headers: { Authorization: `Bearer \${${keyVariable}}` } }),
          },
        },
      ],
    },
    signIn: `claude mcp login ${id}`,
  },
  file: {
    format: "json",
    folder: [".claude"],
    otherFolder: ["CLAUDE_CONFIG_DIR"],
    names: ["settings.json"],
    settings: (target) =>
      Object.entries(claudeVariables(target)).map(([one, value]) => ({ path: ["env", one], value })),
  },
  environment: () => ({}),
  start: "claude",
};

function claudeVariables({ baseUrl, model, key, context }: Target): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ""),
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    // Claude Code assumes a context of a million tokens for an unknown model, and would compact a conversation too
    // late.
    ...(context === undefined ? {} : { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(context) }),
  };
}

const opencodeFile = {
  format: "json",
  folder: [".config", "opencode"],
  otherFolder: ["XDG_CONFIG_HOME", "opencode"],
  names: ["opencode.json", "opencode.jsonc"],
} as const;

/**
 * opencode.ai/docs/providers, "Custom provider", opencode.ai/docs/config, "Variables", and
 * opencode.ai/docs/mcp-servers.
 */
const opencode: Client = {
  id: "opencode",
  name: "opencode",
  program: "opencode",
  tools: {
    file: {
      ...opencodeFile,
      settings: ({ url, sendsKey }) => [
        {
          path: ["mcp", id],
          value: {
            ...{ type: "remote", url, enabled: true },
            ...(sendsKey && { oauth: false, headers: { Authorization: `Bearer {env:${keyVariable}}` } }),
          },
        },
      ],
    },
    signIn: `opencode mcp auth ${id}`,
  },
  file: {
    ...opencodeFile,
    settings: ({ baseUrl, model, context }) => [
      { path: ["model"], value: `${id}/${model}` },
      {
        path: ["provider", id],
        value: {
          ...{ npm: "@ai-sdk/openai-compatible", name, options: { baseURL: baseUrl, apiKey: `{env:${keyVariable}}` } },
          models: { [model]: { name: model, ...(context === undefined ? {} : { limit: limitOf(context) }) } },
        },
      },
    ],
  },
  environment: ({ key }) => ({ [keyVariable]: key }),
  start: "opencode",
};

/** OpenCode requires both limits. An answer is seldom longer than a quarter of the context. */
function limitOf(context: number) {
  return { context, output: Math.min(32_000, Math.floor(context / 4)) };
}

/**
 * github.com/openai/openai-node and openai-python read these variables themselves, and so do programs built on them.
 */
const openai: Client = {
  id: "openai",
  name: "OpenAI SDKs",
  program: undefined,
  tools: undefined,
  file: undefined,
  environment: ({ baseUrl, key }) => ({ OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: key }),
  start: "your program",
};

/** github.com/anthropics/anthropic-sdk-typescript and -python read these variables themselves. */
const anthropic: Client = {
  id: "anthropic",
  name: "Anthropic SDKs",
  program: undefined,
  tools: undefined,
  file: undefined,
  environment: ({ baseUrl, key }) => ({ ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ""), ANTHROPIC_API_KEY: key }),
  start: "your program",
};

export const clients: readonly Client[] = [codex, claude, opencode, openai, anthropic];
