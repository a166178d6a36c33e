// The settings with which clients use this server, written by scripts/generate.ts from src/cli/connect/clients.ts: not to be edited.

export interface AgentClient {
  id: string;
  name: string;
  /** The path of the client's configuration file. null: the client reads only variables. */
  file: string | null;
  text: string | null;
  environment: readonly (readonly [name: string, value: string])[];
  start: string;
}

/** In braces: `root_url`, the address without `/v1`; `model`; `key`. In `text` they stand within the quotes of a string. */
export const agentClients: readonly AgentClient[] = [
  {"id":"codex","name":"Codex","file":"~/.codex/config.toml","text":"model = \"{model}\"\nmodel_provider = \"headrace\"\n\n[model_providers.headrace]\nname = \"Headrace\"\nbase_url = \"{root_url}/v1\"\nenv_key = \"HEADRACE_API_KEY\"\nwire_api = \"responses\"","environment":[["HEADRACE_API_KEY","{key}"]],"start":"codex"},
  {"id":"claude","name":"Claude Code","file":"~/.claude/settings.json","text":"{\n  \"env\": {\n    \"ANTHROPIC_BASE_URL\": \"{root_url}\",\n    \"ANTHROPIC_AUTH_TOKEN\": \"{key}\",\n    \"ANTHROPIC_MODEL\": \"{model}\",\n    \"ANTHROPIC_DEFAULT_OPUS_MODEL\": \"{model}\",\n    \"ANTHROPIC_DEFAULT_SONNET_MODEL\": \"{model}\",\n    \"ANTHROPIC_DEFAULT_HAIKU_MODEL\": \"{model}\"\n  }\n}","environment":[],"start":"claude"},
  {"id":"opencode","name":"opencode","file":"~/.config/opencode/opencode.json","text":"{\n  \"model\": \"headrace/{model}\",\n  \"provider\": {\n    \"headrace\": {\n      \"npm\": \"@ai-sdk/openai-compatible\",\n      \"name\": \"Headrace\",\n      \"options\": {\n        \"baseURL\": \"{root_url}/v1\",\n        \"apiKey\": \"{env:HEADRACE_API_KEY}\"\n      },\n      \"models\": {\n        \"{model}\": {\n          \"name\": \"{model}\"\n        }\n      }\n    }\n  }\n}","environment":[["HEADRACE_API_KEY","{key}"]],"start":"opencode"},
  {"id":"openai","name":"OpenAI SDKs","file":null,"text":null,"environment":[["OPENAI_BASE_URL","{root_url}/v1"],["OPENAI_API_KEY","{key}"]],"start":"your program"},
  {"id":"anthropic","name":"Anthropic SDKs","file":null,"text":null,"environment":[["ANTHROPIC_BASE_URL","{root_url}"],["ANTHROPIC_API_KEY","{key}"]],"start":"your program"},
];
