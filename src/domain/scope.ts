// What a credential may do.

export const scopes = ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"] as const;
/** Scopes of the specification, section 5. */
export type Scope = (typeof scopes)[number];

export const scopeMeanings: Record<Scope, string> = {
  "chat:read": "Read chat history.",
  "chat:write": "Create chat completions, completions and embeddings.",
  "models:read": "List available models.",
  "usage:read": "View usage statistics.",
  "keys:manage": "Manage API keys.",
};
