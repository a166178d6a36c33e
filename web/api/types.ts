// Shapes of the HTTP API, written by scripts/generate.ts from the OpenAPI document: not to be edited.

/**
 * One message of the conversation.
 */
export type ChatMessage =
  | {
      role: "system";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                [k: string]: unknown;
              }
            | {
                type: "image_url";
                image_url: {
                  url: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "input_audio";
                input_audio: {
                  data: string;
                  format: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "file";
                file: {
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "refusal";
                refusal: string;
                [k: string]: unknown;
              }
          )[];
      name?: string | null;
      [k: string]: unknown;
    }
  | {
      role: "developer";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                [k: string]: unknown;
              }
            | {
                type: "image_url";
                image_url: {
                  url: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "input_audio";
                input_audio: {
                  data: string;
                  format: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "file";
                file: {
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "refusal";
                refusal: string;
                [k: string]: unknown;
              }
          )[];
      name?: string | null;
      [k: string]: unknown;
    }
  | {
      role: "user";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                [k: string]: unknown;
              }
            | {
                type: "image_url";
                image_url: {
                  url: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "input_audio";
                input_audio: {
                  data: string;
                  format: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "file";
                file: {
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "refusal";
                refusal: string;
                [k: string]: unknown;
              }
          )[];
      name?: string | null;
      [k: string]: unknown;
    }
  | {
      role: "assistant";
      content?:
        | (
            | string
            | (
                | {
                    type: "text";
                    text: string;
                    [k: string]: unknown;
                  }
                | {
                    type: "image_url";
                    image_url: {
                      url: string;
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "input_audio";
                    input_audio: {
                      data: string;
                      format: string;
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "file";
                    file: {
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "refusal";
                    refusal: string;
                    [k: string]: unknown;
                  }
              )[]
          )
        | null;
      name?: string | null;
      tool_calls?:
        | {
            id: string;
            type: string;
            function?: {
              name: string;
              arguments: string;
              [k: string]: unknown;
            };
            [k: string]: unknown;
          }[]
        | null;
      [k: string]: unknown;
    }
  | {
      role: "tool";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                [k: string]: unknown;
              }
            | {
                type: "image_url";
                image_url: {
                  url: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "input_audio";
                input_audio: {
                  data: string;
                  format: string;
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "file";
                file: {
                  [k: string]: unknown;
                };
                [k: string]: unknown;
              }
            | {
                type: "refusal";
                refusal: string;
                [k: string]: unknown;
              }
          )[];
      tool_call_id: string;
      [k: string]: unknown;
    }
  | {
      role: "function";
      content:
        | (
            | string
            | (
                | {
                    type: "text";
                    text: string;
                    [k: string]: unknown;
                  }
                | {
                    type: "image_url";
                    image_url: {
                      url: string;
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "input_audio";
                    input_audio: {
                      data: string;
                      format: string;
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "file";
                    file: {
                      [k: string]: unknown;
                    };
                    [k: string]: unknown;
                  }
                | {
                    type: "refusal";
                    refusal: string;
                    [k: string]: unknown;
                  }
              )[]
          )
        | null;
      name: string;
      [k: string]: unknown;
    };

export interface Shapes {
  Error?: Error;
  ChatCompletionRequest?: ChatCompletionRequest;
  ChatMessage?: ChatMessage;
  ChatCompletion?: ChatCompletion;
  Usage?: Usage;
  ChatCompletionChunk?: ChatCompletionChunk;
  CompletionRequest?: CompletionRequest;
  TextCompletion?: TextCompletion;
  EmbeddingRequest?: EmbeddingRequest;
  EmbeddingList?: EmbeddingList;
  StoredChatCompletionList?: StoredChatCompletionList;
  StoredChatCompletion?: StoredChatCompletion;
  StoredChatUpdate?: StoredChatUpdate;
  DeletedChatCompletion?: DeletedChatCompletion;
  StoredChatMessageList?: StoredChatMessageList;
  StoredChatMessage?: StoredChatMessage;
  ModelList?: ModelList;
  Model?: Model;
  ModelStatusList?: ModelStatusList;
  ModelStatus?: ModelStatus;
  DeploymentStatus?: DeploymentStatus;
  UsageReport?: UsageReport;
  UsageRow?: UsageRow;
  RefusalList?: RefusalList;
  Refusal?: Refusal;
  RequestList?: RequestList;
  Request?: Request;
  RequestDetail?: RequestDetail;
  AccountOverview?: AccountOverview;
  TierOverviewList?: TierOverviewList;
  TierOverview?: TierOverview;
  CreateKeyRequest?: CreateKeyRequest;
  CreatedApiKey?: CreatedApiKey;
  ApiKeyList?: ApiKeyList;
  ApiKey?: ApiKey;
  UpdateKeyRequest?: UpdateKeyRequest;
  RotateKeyRequest?: RotateKeyRequest;
  RotatedApiKey?: RotatedApiKey;
  TokenRequest?: TokenRequest;
  AccessToken?: AccessToken;
  JsonWebKeySet?: JsonWebKeySet;
  OAuthTokenRequest?: OAuthTokenRequest;
  OAuthTokens?: OAuthTokens;
  OAuthError?: OAuthError;
  OAuthDeviceRequest?: OAuthDeviceRequest;
  OAuthDeviceAuthorization?: OAuthDeviceAuthorization;
  OAuthTokenReference?: OAuthTokenReference;
  OAuthIntrospection?: OAuthIntrospection;
  AuthorizationServerMetadata?: AuthorizationServerMetadata;
  ProtectedResourceMetadata?: ProtectedResourceMetadata;
  CreateAppRequest?: CreateAppRequest;
  CreatedApp?: CreatedApp;
  AppSecret?: AppSecret;
  AppList?: AppList;
  App?: App;
  UpdateAppRequest?: UpdateAppRequest;
  DeletedApp?: DeletedApp;
  RotateAppSecretRequest?: RotateAppSecretRequest;
  RotatedApp?: RotatedApp;
  AuthorizationList?: AuthorizationList;
  Authorization?: Authorization;
  DeletedAuthorization?: DeletedAuthorization;
  Session?: Session;
  UpdateSessionRequest?: UpdateSessionRequest;
  ChangePasswordRequest?: ChangePasswordRequest;
  ChangedPassword?: ChangedPassword;
  BrowserSessionList?: BrowserSessionList;
  BrowserSession?: BrowserSession;
  EndedBrowserSessions?: EndedBrowserSessions;
  EndedBrowserSession?: EndedBrowserSession;
  PasskeyList?: PasskeyList;
  Passkey?: Passkey;
  PasskeyCreationOptions?: PasskeyCreationOptions;
  AddPasskeyRequest?: AddPasskeyRequest;
  UpdatePasskeyRequest?: UpdatePasskeyRequest;
  DeletedPasskey?: DeletedPasskey;
  PasskeySignInOptions?: PasskeySignInOptions;
  PasskeySignInRequest?: PasskeySignInRequest;
  PasskeySignedIn?: PasskeySignedIn;
  MemberList?: MemberList;
  Member?: Member;
  UpdateMemberRequest?: UpdateMemberRequest;
  RemovedMember?: RemovedMember;
  InvitationList?: InvitationList;
  Invitation?: Invitation;
  CreateInvitationRequest?: CreateInvitationRequest;
  CreatedInvitation?: CreatedInvitation;
  DeletedInvitation?: DeletedInvitation;
  AuditEventList?: AuditEventList;
  AuditEvent?: AuditEvent;
  AccountList?: AccountList;
  Account?: Account;
  CreateAccountRequest?: CreateAccountRequest;
  AccountDetails?: AccountDetails;
  UpdateAccountRequest?: UpdateAccountRequest;
  CreateAccountKeyRequest?: CreateAccountKeyRequest;
  TierList?: TierList;
  Tier?: Tier;
  TierRequest?: TierRequest;
  DeletedTier?: DeletedTier;
  UpstreamList?: UpstreamList;
  Upstream?: Upstream;
  CreateUpstreamRequest?: CreateUpstreamRequest;
  UpdateUpstreamRequest?: UpdateUpstreamRequest;
  DeletedUpstream?: DeletedUpstream;
  UpstreamTestRequest?: UpstreamTestRequest;
  UpstreamTest?: UpstreamTest;
  NodeList?: NodeList;
  Node?: Node;
  NodeModel?: NodeModel;
  UpdateNodeRequest?: UpdateNodeRequest;
  DeletedNode?: DeletedNode;
  CreateNodeJoinTokenRequest?: CreateNodeJoinTokenRequest;
  CreatedNodeJoinToken?: CreatedNodeJoinToken;
  NodeJoinTokenList?: NodeJoinTokenList;
  NodeJoinToken?: NodeJoinToken;
  DeletedNodeJoinToken?: DeletedNodeJoinToken;
  SigningKeyList?: SigningKeyList;
  SigningKey?: SigningKey;
  RotateSigningKeyRequest?: RotateSigningKeyRequest;
  PersonList?: PersonList;
  Person?: Person;
  PersonDetails?: PersonDetails;
  UpdatePersonRequest?: UpdatePersonRequest;
  DeletedPerson?: DeletedPerson;
  ResetLink?: ResetLink;
  System?: System;
  JoinRequest?: JoinRequest;
  JoinedNode?: JoinedNode;
  Health?: Health;
  Readiness?: Readiness;
}
export interface Error {
  error: {
    /**
     * Text for people.
     */
    message: string;
    type:
      | "invalid_request_error"
      | "authentication_error"
      | "permission_error"
      | "insufficient_quota"
      | "rate_limit_error"
      | "api_error"
      | "overloaded_error";
    code:
      | "invalid_request"
      | "invalid_api_key"
      | "token_expired"
      | "insufficient_scope"
      | "permission_denied"
      | "insufficient_quota"
      | "model_not_found"
      | "not_found"
      | "method_not_allowed"
      | "request_too_large"
      | "unsupported_media_type"
      | "rate_limit_exceeded"
      | "internal_error"
      | "upstream_error"
      | "upstream_timeout"
      | "service_unavailable";
  };
}
export interface ChatCompletionRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * The conversation so far.
   *
   * @minItems 1
   */
  messages: ChatMessage[];
  /**
   * Sampling temperature. Default 1.
   */
  temperature?: number | null;
  /**
   * Nucleus sampling: the smallest set of tokens with this probability mass.
   */
  top_p?: number | null;
  /**
   * Penalises tokens by how often they occurred.
   */
  frequency_penalty?: number | null;
  /**
   * Penalises tokens that occurred at all.
   */
  presence_penalty?: number | null;
  /**
   * Maximum tokens to generate. Default: what is left of the model's context.
   */
  max_tokens?: number | null;
  /**
   * Up to 16 strings at which generation stops; the stop string is not returned.
   */
  stop?: (string | string[]) | null;
  /**
   * The same seed and parameters give the same answer where the model server can.
   */
  seed?: number | null;
  /**
   * How many choices to generate. Default 1.
   */
  n?: number | null;
  /**
   * Token id to bias, -100 (never) to 100 (always).
   */
  logit_bias?: {
    [k: string]: number;
  } | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  /**
   * Answer as Server-Sent Events. Default false.
   */
  stream?: boolean | null;
  stream_options?: {
    /**
     * Adds one last chunk with `choices: []` and the usage of the whole request.
     */
    include_usage?: boolean | null;
    [k: string]: unknown;
  } | null;
  /**
   * Like `max_tokens`, and wins over it when both are sent.
   */
  max_completion_tokens?: number | null;
  /**
   * Log-probabilities of the answer's tokens, where the model server has them.
   */
  logprobs?: boolean | null;
  /**
   * How many likely tokens to show at each place; with `logprobs`.
   */
  top_logprobs?: number | null;
  /**
   * Functions that the model may call.
   */
  tools?:
    | {
        type: string;
        function?: {
          name: string;
          description?: string | null;
          parameters?: {
            [k: string]: unknown;
          } | null;
          [k: string]: unknown;
        };
        [k: string]: unknown;
      }[]
    | null;
  /**
   * Whether the model may, must or must not call a function, or which one it must call.
   */
  tool_choice?:
    | (
        | ("none" | "auto" | "required")
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Whether one answer may hold several calls.
   */
  parallel_tool_calls?: boolean | null;
  /**
   * `text`, `json_object` or `json_schema`.
   */
  response_format?:
    | (
        | {
            type: "text";
            [k: string]: unknown;
          }
        | {
            type: "json_object";
            [k: string]: unknown;
          }
        | {
            type: "json_schema";
            json_schema: {
              name: string;
              schema?: {
                [k: string]: unknown;
              };
              [k: string]: unknown;
            };
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * How much a reasoning model thinks, e.g. `low`; passed on.
   */
  reasoning_effort?: string | null;
  /**
   * Your own labels: kept with a stored completion, else passed on.
   */
  metadata?: {
    [k: string]: string;
  } | null;
  /**
   * Whether the gateway keeps the completion, for `GET /v1/chat/completions`. Default: as the account says.
   */
  store?: boolean | null;
  [k: string]: unknown;
}
export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  /**
   * Unix time in seconds.
   */
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: "assistant";
      content: string | null;
      [k: string]: unknown;
    };
    finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "function_call";
    [k: string]: unknown;
  }[];
  usage: Usage;
  [k: string]: unknown;
}
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /**
   * Present when the model server did not report usage and the figures are estimated from the text.
   */
  estimated?: true;
  [k: string]: unknown;
}
export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  /**
   * Unix time in seconds.
   */
  created: number;
  model: string;
  choices: {
    index: number;
    delta: {
      role?: "assistant";
      content?: string | null;
      [k: string]: unknown;
    };
    finish_reason: ("stop" | "length" | "tool_calls" | "content_filter" | "function_call") | null;
    [k: string]: unknown;
  }[];
  usage?: Usage | null;
  [k: string]: unknown;
}
export interface CompletionRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * Text, several texts, or token ids.
   */
  prompt: string | string[] | number[] | number[][];
  /**
   * Sampling temperature. Default 1.
   */
  temperature?: number | null;
  /**
   * Nucleus sampling: the smallest set of tokens with this probability mass.
   */
  top_p?: number | null;
  /**
   * Penalises tokens by how often they occurred.
   */
  frequency_penalty?: number | null;
  /**
   * Penalises tokens that occurred at all.
   */
  presence_penalty?: number | null;
  /**
   * Maximum tokens to generate; 0 with `echo` only returns the prompt. The default is the model server's, often 16.
   */
  max_tokens?: number | null;
  /**
   * Up to 16 strings at which generation stops; the stop string is not returned.
   */
  stop?: (string | string[]) | null;
  /**
   * The same seed and parameters give the same answer where the model server can.
   */
  seed?: number | null;
  /**
   * How many choices to generate. Default 1.
   */
  n?: number | null;
  /**
   * Token id to bias, -100 (never) to 100 (always).
   */
  logit_bias?: {
    [k: string]: number;
  } | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  /**
   * Answer as Server-Sent Events. Default false.
   */
  stream?: boolean | null;
  stream_options?: {
    /**
     * Adds one last chunk with `choices: []` and the usage of the whole request.
     */
    include_usage?: boolean | null;
    [k: string]: unknown;
  } | null;
  /**
   * Text that follows the inserted completion, where the model supports it.
   */
  suffix?: string | null;
  /**
   * Return the prompt before the completion.
   */
  echo?: boolean | null;
  /**
   * Generate this many and return the best `n`, where the model server can.
   */
  best_of?: number | null;
  /**
   * Log-probabilities of this many likely tokens, where the model server has them.
   */
  logprobs?: number | null;
  [k: string]: unknown;
}
export interface TextCompletion {
  id: string;
  object: "text_completion";
  /**
   * Unix time in seconds.
   */
  created: number;
  model: string;
  choices: {
    index: number;
    text: string;
    finish_reason: ("stop" | "length" | "content_filter") | null;
    [k: string]: unknown;
  }[];
  usage?: Usage | null;
  [k: string]: unknown;
}
export interface EmbeddingRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * Text, several texts, or token ids.
   */
  input: string | string[] | number[] | number[][];
  /**
   * `float` (default) or `base64`: little-endian float32, as the openai SDKs ask for.
   */
  encoding_format?: ("float" | "base64") | null;
  /**
   * Shorter vectors, where the model supports it.
   */
  dimensions?: number | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  [k: string]: unknown;
}
export interface EmbeddingList {
  object: "list";
  data: {
    object: "embedding";
    index: number;
    /**
     * Numbers, or base64 of little-endian float32.
     */
    embedding: number[] | string;
    [k: string]: unknown;
  }[];
  model: string;
  usage: {
    prompt_tokens: number;
    total_tokens: number;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface StoredChatCompletionList {
  object: "list";
  data: StoredChatCompletion[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
/**
 * The completion, its labels, and the parameters of its request but for the messages.
 */
export interface StoredChatCompletion {
  id: string;
  object: "chat.completion";
  /**
   * Unix time in seconds.
   */
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: "assistant";
      content: string | null;
      [k: string]: unknown;
    };
    finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "function_call";
    [k: string]: unknown;
  }[];
  usage: Usage;
  /**
   * The `x-request-id` of the request that made it.
   */
  request_id: string;
  metadata: {
    [k: string]: string;
  };
  /**
   * `user` of the request.
   */
  input_user?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  seed?: number | null;
  tools?:
    | {
        [k: string]: unknown;
      }[]
    | null;
  tool_choice?:
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )
    | null;
  response_format?: {
    [k: string]: unknown;
  } | null;
  [k: string]: unknown;
}
export interface StoredChatUpdate {
  /**
   * Replaces all labels; null removes them.
   */
  metadata: {
    [k: string]: string;
  } | null;
}
export interface DeletedChatCompletion {
  id: string;
  object: "chat.completion.deleted";
  deleted: true;
}
export interface StoredChatMessageList {
  object: "list";
  data: StoredChatMessage[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface StoredChatMessage {
  id: string;
  role: string;
  /**
   * null where the request had an array of parts.
   */
  content: string | null;
  /**
   * The parts; null where the content was one text.
   */
  content_parts:
    | {
        [k: string]: unknown;
      }[]
    | null;
  [k: string]: unknown;
}
export interface ModelList {
  object: "list";
  data: Model[];
}
export interface Model {
  id: string;
  object: "model";
  /**
   * Unix time in seconds.
   */
  created: number;
  owned_by: string;
  /**
   * Left out where nobody says.
   */
  capabilities?: {
    chat?: boolean;
    completion?: boolean;
    embeddings?: boolean;
  };
  /**
   * Tokens of prompt and answer together. Left out where nobody says.
   */
  context_length?: number;
}
export interface ModelStatusList {
  object: "list";
  data: ModelStatus[];
}
export interface ModelStatus {
  object: "model_status";
  id: string;
  /**
   * Left out where nobody says.
   */
  capabilities?: {
    chat?: boolean;
    completion?: boolean;
    embeddings?: boolean;
  };
  /**
   * Tokens of prompt and answer together. Left out where nobody says.
   */
  context_length?: number;
  /**
   * Environments whose keys may use it.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * USD per million tokens; null: it has none, and costs nothing.
   */
  price: {
    input: number;
    output: number;
  } | null;
  deployments: DeploymentStatus[];
}
export interface DeploymentStatus {
  /**
   * Name of the model server.
   */
  upstream: string;
  /**
   * The engine of this server itself, one that an operator added, one that was found on this machine, or a machine that joined as a node.
   */
  kind: "built-in" | "configured" | "found" | "node";
  /**
   * The model server's own id of the model.
   */
  model: string;
  /**
   * `unreachable`: it did not answer when it was last asked for its models; `cooling_down`: it failed a moment ago, and is tried last; `draining`: it gets no new requests.
   */
  state: "ok" | "unreachable" | "cooling_down" | "draining";
  /**
   * Requests that it works on; of all its models where it has one limit for all of them.
   */
  running: number;
  /**
   * Requests that wait for a place there, in the same way.
   */
  waiting: number;
  /**
   * How many it takes at once: declared, or measured so far. Null before its first request.
   */
  concurrency: number | null;
  /**
   * Mean time to the first token of streamed answers of the last 15 minutes; null where there are none.
   */
  first_token_ms: number | null;
  /**
   * Mean speed of these answers once they had begun.
   */
  tokens_per_second: number | null;
}
export interface UsageReport {
  object: "list";
  data: UsageRow[];
  /**
   * Give it as `cursor` to get the next page; null on the last one.
   */
  next: string | null;
  /**
   * By the hour, where a part of the time that was asked for is before it: sums by hour are kept from then on, Unix seconds; those by day for good.
   */
  kept_since?: number;
}
export interface UsageRow {
  /**
   * Start of the bucket, Unix seconds.
   */
  start: number;
  /**
   * End of the bucket, Unix seconds.
   */
  end: number;
  /**
   * Where `group_by` has it.
   */
  model?: string;
  /**
   * Id of the credential, where `group_by` has it: of the key, `key_…`; of a member who was signed in, `mbr_…`; of what a member allowed an app, `grt_…`.
   */
  key?: string;
  /**
   * Where `group_by` has it.
   */
  environment?: string;
  /**
   * Id of the OAuth app, null for none, where `group_by` has it.
   */
  app?: string | null;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /**
   * USD; requests to models without a price cost nothing.
   */
  cost: number;
  /**
   * Requests that failed.
   */
  errors: number;
  /**
   * Mean of the milliseconds from a request to the first piece of its answer, of those that were streamed in more than one; null: none.
   */
  first_token_ms: number | null;
  /**
   * Mean of the speed of generation over all tokens that were streamed, the first of each answer left out; null: none.
   */
  tokens_per_second: number | null;
}
export interface RefusalList {
  object: "list";
  data: Refusal[];
}
export interface Refusal {
  object: "refusal";
  /**
   * Start of the hour, Unix seconds.
   */
  start: number;
  /**
   * Id of the credential, as in the usage by key. Null with `model`: too many at once to tell them apart.
   */
  key: string | null;
  /**
   * Id of the OAuth app; null for none.
   */
  app: string | null;
  model: string | null;
  /**
   * Whose rate limit of requests or tokens, or whose monthly quota, was reached; `capacity`: no model server had a place in time.
   */
  reason:
    "key_requests" | "key_tokens" | "account_requests" | "account_tokens" | "key_quota" | "account_quota" | "capacity";
  requests: number;
  /**
   * Time of the last one, Unix seconds.
   */
  last_at: number;
}
export interface RequestList {
  object: "list";
  data: Request[];
  /**
   * Give it as `cursor` to get the next page; null on the last one. A page may be empty before that.
   */
  next: string | null;
  /**
   * All that began later than this, Unix seconds, was looked through; null on the last page.
   */
  searched_to: number | null;
  /**
   * Where a part of the time that was asked for is before it: requests from then on are kept, Unix seconds.
   */
  kept_since?: number;
}
export interface Request {
  object: "request";
  /**
   * The `x-request-id` of its answer.
   */
  id: string;
  /**
   * When it began, Unix seconds.
   */
  at: number;
  operation: "chat" | "completion" | "embedding";
  model: string;
  /**
   * Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app; null for none.
   */
  app: string | null;
  stream: boolean;
  /**
   * cancelled: its client left; interrupted: the server's process ended before it did.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted";
  /**
   * `code` of the error that ended it.
   */
  error_code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /**
   * The tokens are an estimate: the model server did not tell.
   */
  estimated: boolean;
  /**
   * The model server told of more tokens than can have been; these are the most.
   */
  capped: boolean;
  /**
   * USD; null where the model has no price.
   */
  cost: number | null;
  /**
   * Who answered; null where nobody did.
   */
  upstream: string | null;
  /**
   * Milliseconds of waiting for a place, before it was sent.
   */
  queue_ms: number;
  /**
   * Milliseconds from the request to the first piece of its answer; null where that was not timed: it was not streamed, or came in one piece.
   */
  first_token_ms: number | null;
  /**
   * Milliseconds until its end, all of them.
   */
  duration_ms: number;
  /**
   * Tokens per second of generation, those after the first; null where too little was streamed to tell.
   */
  tokens_per_second: number | null;
}
export interface RequestDetail {
  object: "request";
  /**
   * The `x-request-id` of its answer.
   */
  id: string;
  /**
   * When it began, Unix seconds.
   */
  at: number;
  operation: "chat" | "completion" | "embedding";
  model: string;
  /**
   * Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app; null for none.
   */
  app: string | null;
  stream: boolean;
  /**
   * cancelled: its client left; interrupted: the server's process ended before it did.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted";
  /**
   * `code` of the error that ended it.
   */
  error_code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /**
   * The tokens are an estimate: the model server did not tell.
   */
  estimated: boolean;
  /**
   * The model server told of more tokens than can have been; these are the most.
   */
  capped: boolean;
  /**
   * USD; null where the model has no price.
   */
  cost: number | null;
  /**
   * Who answered; null where nobody did.
   */
  upstream: string | null;
  /**
   * Milliseconds of waiting for a place, before it was sent.
   */
  queue_ms: number;
  /**
   * Milliseconds from the request to the first piece of its answer; null where that was not timed: it was not streamed, or came in one piece.
   */
  first_token_ms: number | null;
  /**
   * Milliseconds until its end, all of them.
   */
  duration_ms: number;
  /**
   * Tokens per second of generation, those after the first; null where too little was streamed to tell.
   */
  tokens_per_second: number | null;
  /**
   * Id of the stored chat completion that it made; null where none is kept, or for who may not read it.
   */
  chat: string | null;
}
export interface AccountOverview {
  object: "account";
  id: string;
  name: string;
  tier: string;
  /**
   * That of the credential; limits and quota are for it alone.
   */
  environment: "live" | "test" | "dev";
  limits: {
    /**
     * null: no limit.
     */
    requests_per_minute: number | null;
    /**
     * null: no limit.
     */
    tokens_per_minute: number | null;
  };
  rate: {
    /**
     * The tightest of the limits that hold for this credential, the key's own included; null: none.
     */
    requests: {
      limit: number;
      remaining: number;
      /**
       * Until all of it is there again.
       */
      reset_seconds: number;
    } | null;
    /**
     * The tightest of the limits that hold for this credential, the key's own included; null: none.
     */
    tokens: {
      limit: number;
      remaining: number;
      /**
       * Until all of it is there again.
       */
      reset_seconds: number;
    } | null;
  };
  quota: {
    /**
     * Unix time in seconds.
     */
    period_start: number;
    /**
     * Unix time in seconds.
     */
    period_end: number;
    tokens: {
      /**
       * null: no limit.
       */
      limit: number | null;
      /**
       * Since the period began; requests still running are left out.
       */
      used: number;
    };
    /**
     * USD.
     */
    spend: {
      /**
       * null: no limit.
       */
      limit: number | null;
      /**
       * Since the period began; requests still running are left out.
       */
      used: number;
    };
  };
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
}
export interface TierOverviewList {
  object: "list";
  data: TierOverview[];
}
export interface TierOverview {
  object: "tier";
  name: string;
  /**
   * null: no limit.
   */
  requests_per_minute: number | null;
  /**
   * null: no limit.
   */
  tokens_per_minute: number | null;
  /**
   * null: no limit.
   */
  monthly_tokens: number | null;
  /**
   * USD; null: no limit.
   */
  monthly_spend: number | null;
  /**
   * Where the limits hold; elsewhere there are none.
   */
  environments: ("live" | "test" | "dev")[];
  source: "built-in" | "file" | "database";
  /**
   * Whether it is the account's own.
   */
  current: boolean;
}
export interface CreateKeyRequest {
  /**
   * What it is for; printable characters.
   */
  name: string;
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[] | null;
  expires_at?: number | null;
  /**
   * Seconds until it expires, in place of `expires_at`.
   */
  expires_in?: number | null;
  allowed_ips?: string[] | null;
  rate_limit?: number | null;
  rate_limit_window?: number | null;
  monthly_tokens?: number | null;
  monthly_spend?: number | null;
}
export interface CreatedApiKey {
  object: "api_key";
  id: string;
  name: string;
  prefix: string;
  /**
   * The last four characters of the key.
   */
  last4: string;
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * Whether it works. A key ends at the latest with the key that made it.
   */
  status: "active" | "expired" | "revoked";
  /**
   * Id of the key or person that made it; null for those that neither did, such as the first.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * In the future after a rotation: it works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * The key itself. It is shown this once and not kept.
   */
  key: string;
}
export interface ApiKeyList {
  object: "list";
  data: ApiKey[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface ApiKey {
  object: "api_key";
  id: string;
  name: string;
  prefix: string;
  /**
   * The last four characters of the key.
   */
  last4: string;
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * Whether it works. A key ends at the latest with the key that made it.
   */
  status: "active" | "expired" | "revoked";
  /**
   * Id of the key or person that made it; null for those that neither did, such as the first.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * In the future after a rotation: it works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
}
/**
 * What is left out stays as it is; null clears.
 */
export interface UpdateKeyRequest {
  /**
   * What it is for; printable characters.
   */
  name?: string;
  /**
   * What it may do. Default: `chat:read chat:write models:read`, as far as the maker may.
   *
   * @minItems 1
   * @maxItems 20
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  expires_at?: number | null;
  allowed_ips?: string[] | null;
  rate_limit?: number | null;
  rate_limit_window?: number | null;
  monthly_tokens?: number | null;
  monthly_spend?: number | null;
}
export interface RotateKeyRequest {
  /**
   * How long the old key goes on working; 0: not at all. Default 86400.
   */
  overlap_seconds?: number | null;
}
export interface RotatedApiKey {
  object: "api_key";
  id: string;
  name: string;
  prefix: string;
  /**
   * The last four characters of the key.
   */
  last4: string;
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * Whether it works. A key ends at the latest with the key that made it.
   */
  status: "active" | "expired" | "revoked";
  /**
   * Id of the key or person that made it; null for those that neither did, such as the first.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * In the future after a rotation: it works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * The key itself. It is shown this once and not kept.
   */
  key: string;
  /**
   * Id of the old key.
   */
  replaces: string;
}
export interface TokenRequest {
  /**
   * The API key to exchange.
   */
  api_key: string;
  /**
   * Seconds that the token should live. Default 3600. Never longer than the key.
   */
  expires_in?: number | null;
  /**
   * Scopes of the token, separated by spaces; each must be one of the key's. Default: all of the key's, except `admin:manage`, which has to be named.
   */
  scope?: string | null;
}
export interface AccessToken {
  /**
   * A JWT (RFC 9068), to be sent as `Authorization: Bearer`.
   */
  access_token: string;
  token_type: "Bearer";
  /**
   * Seconds that the token lives; less than asked for where the key ends sooner.
   */
  expires_in: number;
  /**
   * Its scopes, separated by spaces.
   */
  scope: string;
}
export interface JsonWebKeySet {
  keys: {
    kty: string;
    crv: string;
    x: string;
    y: string;
    kid: string;
    use: "sig";
    alg: "ES256";
  }[];
}
export interface OAuthTokenRequest {
  /**
   * Of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * Of a confidential app that does not use HTTP Basic.
   */
  client_secret?: string;
  grant_type: "authorization_code" | "refresh_token" | "urn:ietf:params:oauth:grant-type:device_code";
  /**
   * For `authorization_code`.
   */
  code?: string;
  /**
   * As in the authorization request; required where it was in there.
   */
  redirect_uri?: string;
  /**
   * For the `code_challenge` of the authorization request.
   */
  code_verifier?: string;
  /**
   * For `refresh_token`.
   */
  refresh_token?: string;
  /**
   * For `refresh_token`: fewer scopes for this access token.
   */
  scope?: string;
  /**
   * For devices.
   */
  device_code?: string;
}
export interface OAuthTokens {
  /**
   * A JWT (RFC 9068), to be sent as `Authorization: Bearer`.
   */
  access_token: string;
  token_type: "Bearer";
  /**
   * Seconds that the access token lives.
   */
  expires_in: number;
  refresh_token: string;
  /**
   * Of the access token, separated by spaces.
   */
  scope: string;
}
export interface OAuthError {
  /**
   * A code of RFC 6749 or 8628.
   */
  error: string;
  error_description: string;
}
export interface OAuthDeviceRequest {
  /**
   * Of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * Of a confidential app that does not use HTTP Basic.
   */
  client_secret?: string;
  /**
   * Separated by spaces; default: all of the app's.
   */
  scope?: string;
}
export interface OAuthDeviceAuthorization {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  expires_in: number;
  interval: number;
}
export interface OAuthTokenReference {
  /**
   * Of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * Of a confidential app that does not use HTTP Basic.
   */
  client_secret?: string;
  token: string;
  /**
   * Not needed.
   */
  token_type_hint?: string;
}
export interface OAuthIntrospection {
  active: boolean;
  scope?: string;
  client_id?: string;
  /**
   * The person who allowed it.
   */
  sub?: string;
  iss?: string;
  exp?: number;
  iat?: number;
  token_type?: string;
  aud?: string;
  jti?: string;
}
export interface AuthorizationServerMetadata {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  [k: string]: unknown;
}
export interface ProtectedResourceMetadata {
  resource: string;
  authorization_servers: string[];
  [k: string]: unknown;
}
export interface CreateAppRequest {
  /**
   * Shown to people who are asked to allow it; printable characters.
   */
  name: string;
  homepage_url?: string | null;
  /**
   * `confidential`: runs on a server and keeps a secret. `public`: on people's devices, without one. Default `confidential`.
   */
  type?: ("confidential" | "public") | null;
  redirect_uris?: string[] | null;
  /**
   * The most it may ask for. Default: `chat:write models:read`.
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read")[] | null;
  require_pkce?: boolean | null;
}
/**
 * With `client_secret` where the app is confidential.
 */
export interface CreatedApp {
  object: "app";
  id: string;
  /**
   * The same as `id`, under the name that OAuth has for it.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * The most it may ask for.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * In which its access tokens work.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * The account's name, shown to people who are asked to allow the app.
   */
  publisher: string;
  /**
   * Id of the person or key that registered it.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Those that work, oldest first, two at most; none of a public app.
   */
  secrets: AppSecret[];
  /**
   * The secret itself. It is shown this once and not kept.
   */
  client_secret?: string;
}
export interface AppSecret {
  id: string;
  /**
   * The last four characters of the secret.
   */
  last4: string;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * After a rotation: it works until then.
   */
  expires_at: number | null;
}
export interface AppList {
  object: "list";
  data: App[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface App {
  object: "app";
  id: string;
  /**
   * The same as `id`, under the name that OAuth has for it.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * The most it may ask for.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * In which its access tokens work.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * The account's name, shown to people who are asked to allow the app.
   */
  publisher: string;
  /**
   * Id of the person or key that registered it.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Those that work, oldest first, two at most; none of a public app.
   */
  secrets: AppSecret[];
}
/**
 * What is left out stays as it is; null clears.
 */
export interface UpdateAppRequest {
  /**
   * Shown to people who are asked to allow it; printable characters.
   */
  name?: string;
  homepage_url?: string | null;
  /**
   * Where people are sent back to, compared byte by byte: https, http on 127.0.0.1, [::1] or localhost (any port), or an app's own scheme with a dot in it. May be empty for an app that only uses the device flow.
   *
   * @maxItems 20
   */
  redirect_uris?: string[];
  /**
   * The most it may ask for.
   *
   * @minItems 1
   * @maxItems 20
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read")[];
  /**
   * Whether it has to use PKCE (S256). A public app always has to.
   */
  require_pkce?: boolean;
}
export interface DeletedApp {
  object: "app";
  id: string;
  deleted: true;
}
export interface RotateAppSecretRequest {
  /**
   * How long the old secret goes on working; 0: not at all. Default 86400.
   */
  overlap_seconds?: number | null;
}
export interface RotatedApp {
  object: "app";
  id: string;
  /**
   * The same as `id`, under the name that OAuth has for it.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * The most it may ask for.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * In which its access tokens work.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * The account's name, shown to people who are asked to allow the app.
   */
  publisher: string;
  /**
   * Id of the person or key that registered it.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Those that work, oldest first, two at most; none of a public app.
   */
  secrets: AppSecret[];
  /**
   * The secret itself. It is shown this once and not kept.
   */
  client_secret: string;
}
export interface AuthorizationList {
  object: "list";
  data: Authorization[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Authorization {
  object: "authorization";
  /**
   * The app's id and the account's, with a colon between.
   */
  id: string;
  app: {
    id: string;
    name: string;
    publisher: string;
    homepage_url: string | null;
  };
  /**
   * The account that the app acts for.
   */
  account: {
    id: string;
    name: string;
  };
  environment: "live" | "test" | "dev";
  /**
   * What it may do, all that was allowed together.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * Of the first time that still counts.
   */
  allowed_at: number;
  last_used_at: number | null;
}
export interface DeletedAuthorization {
  object: "authorization";
  id: string;
  deleted: true;
}
export interface Session {
  object: "session";
  person: {
    id: string;
    email: string;
    name: string;
    is_operator: boolean;
  };
  /**
   * The account that requests are for.
   */
  account: {
    id: string;
    name: string;
  };
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role: "owner" | "admin" | "member";
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[];
  /**
   * Of a browser; null for a token of `headrace login`.
   */
  session_id: string | null;
  /**
   * To be sent as `X-CSRF-Token` with everything that changes something; only for a browser's session.
   */
  csrf_token: string | null;
  /**
   * Whether the person has one, which changing it asks for; null for a token of `headrace login`.
   */
  has_password: boolean | null;
  /**
   * All that the person is a member of.
   */
  accounts: {
    id: string;
    name: string;
    /**
     * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
     */
    role: "owner" | "admin" | "member";
    status: "active" | "suspended";
    membership_id: string;
  }[];
}
/**
 * What is left out stays as it is.
 */
export interface UpdateSessionRequest {
  /**
   * The account to look at from now on, one of `accounts`. Only in a browser's session.
   */
  account_id?: string;
  /**
   * Another name of the person.
   */
  name?: string;
}
export interface ChangePasswordRequest {
  /**
   * Left out by whoever has none yet.
   */
  current_password?: string | null;
  /**
   * 12 to 256 characters.
   */
  new_password: string;
}
export interface ChangedPassword {
  object: "password";
  changed: true;
}
export interface BrowserSessionList {
  object: "list";
  data: BrowserSession[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface BrowserSession {
  object: "browser_session";
  id: string;
  /**
   * Whether the request itself comes from it.
   */
  current: boolean;
  /**
   * How the person signed in.
   */
  method: "password" | "passkey" | "sso" | "link";
  /**
   * As the browser named itself.
   */
  user_agent: string;
  /**
   * Where it was last seen from.
   */
  client_address: string;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  last_seen_at: number;
  /**
   * Whatever is done in it; unused, it ends sooner.
   */
  expires_at: number;
}
export interface EndedBrowserSessions {
  object: "browser_session.deleted";
  /**
   * How many ended.
   */
  deleted: number;
}
export interface EndedBrowserSession {
  object: "browser_session";
  id: string;
  deleted: true;
}
export interface PasskeyList {
  object: "list";
  data: Passkey[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Passkey {
  object: "passkey";
  id: string;
  name: string;
  /**
   * Whether it is kept beyond one device.
   */
  backed_up: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  last_used_at: number | null;
}
/**
 * `PublicKeyCredentialCreationOptionsJSON`.
 */
export interface PasskeyCreationOptions {
  challenge: string;
  [k: string]: unknown;
}
export interface AddPasskeyRequest {
  /**
   * What it is called, in one line.
   */
  name: string;
  /**
   * What `navigator.credentials.create()` gave, as JSON.
   */
  response: {
    /**
     * base64url, as the browser gives it.
     */
    id: string;
    /**
     * base64url, as the browser gives it.
     */
    rawId: string;
    type: "public-key";
    clientExtensionResults: {
      [k: string]: unknown;
    };
    authenticatorAttachment?: string | null;
    response: {
      /**
       * base64url, as the browser gives it.
       */
      clientDataJSON: string;
      /**
       * base64url, as the browser gives it.
       */
      attestationObject: string;
      transports?: string[] | null;
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
}
export interface UpdatePasskeyRequest {
  /**
   * What it is called, in one line.
   */
  name: string;
}
export interface DeletedPasskey {
  object: "passkey.deleted";
  id: string;
  deleted: true;
}
export interface PasskeySignInOptions {
  challenge_id: string;
  /**
   * `PublicKeyCredentialRequestOptionsJSON`.
   */
  options: {
    challenge: string;
    [k: string]: unknown;
  };
}
export interface PasskeySignInRequest {
  /**
   * As it came with the options.
   */
  challenge_id: string;
  /**
   * What `navigator.credentials.get()` gave, as JSON.
   */
  response: {
    /**
     * base64url, as the browser gives it.
     */
    id: string;
    /**
     * base64url, as the browser gives it.
     */
    rawId: string;
    type: "public-key";
    clientExtensionResults: {
      [k: string]: unknown;
    };
    authenticatorAttachment?: string | null;
    response: {
      /**
       * base64url, as the browser gives it.
       */
      clientDataJSON: string;
      /**
       * base64url, as the browser gives it.
       */
      authenticatorData: string;
      /**
       * base64url, as the browser gives it.
       */
      signature: string;
      userHandle?: string | null;
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  /**
   * A path of this server to go on to.
   */
  next?: string | null;
}
export interface PasskeySignedIn {
  /**
   * The path to go on to.
   */
  next: string;
}
export interface MemberList {
  object: "list";
  data: Member[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Member {
  object: "member";
  id: string;
  person_id: string;
  email: string;
  name: string;
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role: "owner" | "admin" | "member";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * When a browser of theirs was last used here; null: not lately.
   */
  last_seen_at: number | null;
}
export interface UpdateMemberRequest {
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role: "owner" | "admin" | "member";
}
export interface RemovedMember {
  object: "member";
  id: string;
  deleted: true;
}
export interface InvitationList {
  object: "list";
  data: Invitation[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Invitation {
  object: "invitation";
  id: string;
  email: string;
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role: "owner" | "admin" | "member";
  /**
   * Id of the person or key that invited; null for the console.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
}
export interface CreateInvitationRequest {
  /**
   * E-mail address. Case does not matter.
   */
  email: string;
  /**
   * Default `member`.
   */
  role?: "owner" | "admin" | "member";
}
export interface CreatedInvitation {
  object: "invitation";
  id: string;
  email: string;
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role: "owner" | "admin" | "member";
  /**
   * Id of the person or key that invited; null for the console.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  /**
   * Works once, for whoever has it. It is shown this once and not kept; null where it was mailed.
   */
  link: string | null;
  /**
   * Whether it was sent by mail; otherwise hand the link over yourself.
   */
  mailed: boolean;
}
export interface DeletedInvitation {
  object: "invitation";
  id: string;
  deleted: true;
}
export interface AuditEventList {
  object: "list";
  data: AuditEvent[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface AuditEvent {
  object: "audit_event";
  id: string;
  /**
   * Unix time in seconds.
   */
  at: number;
  action:
    | "key.created"
    | "key.updated"
    | "key.revoked"
    | "key.rotated"
    | "token.issued"
    | "credential.refused"
    | "account.created"
    | "account.updated"
    | "tier.changed"
    | "tier.deleted"
    | "upstream.created"
    | "upstream.updated"
    | "upstream.deleted"
    | "node.joined"
    | "node.updated"
    | "node.deleted"
    | "node.connected"
    | "node.disconnected"
    | "node_token.created"
    | "node_token.deleted"
    | "signing_key.created"
    | "signing_key.retired"
    | "audit.purged"
    | "person.created"
    | "person.updated"
    | "person.deleted"
    | "member.added"
    | "member.updated"
    | "member.removed"
    | "invitation.created"
    | "invitation.deleted"
    | "setup_link.created"
    | "password_reset.created"
    | "password.changed"
    | "session.started"
    | "session.ended"
    | "sign_in.failed"
    | "passkey.added"
    | "passkey.removed"
    | "identity.linked"
    | "app.created"
    | "app.updated"
    | "app.secret_rotated"
    | "app.deleted"
    | "grant.created"
    | "grant.refreshed"
    | "grant.replayed"
    | "grant.revoked"
    | "device.denied"
    | "device.approved";
  /**
   * `key`: the API key with this id, or a token made from it; `person`: somebody signed in; `app`: an OAuth client; `operator`: whoever has the data directory; `system`: the server itself; `anonymous`: nobody known, as at a failed sign-in.
   */
  actor: {
    type: "key" | "person" | "app" | "operator" | "system" | "anonymous";
    id?: string;
  };
  /**
   * The account that it concerns; null: none, or not known.
   */
  account_id: string | null;
  /**
   * What was changed: the id of a key, account, member or the like, or a tier.
   */
  target_id: string | null;
  client_address: string | null;
  request_id: string | null;
  /**
   * What changed, or why something was refused; never a secret.
   */
  detail: {
    [k: string]: unknown;
  };
}
export interface AccountList {
  object: "list";
  data: Account[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Account {
  object: "account";
  id: string;
  name: string;
  /**
   * One that no longer exists limits like `free`.
   */
  tier: string;
  status: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_tokens: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_spend: (number | "unlimited") | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface CreateAccountRequest {
  /**
   * For people; printable characters.
   */
  name: string;
  /**
   * Name of a tier; `free` by default.
   */
  tier?: string | null;
}
export interface AccountDetails {
  object: "account";
  id: string;
  name: string;
  /**
   * One that no longer exists limits like `free`.
   */
  tier: string;
  status: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_tokens: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_spend: (number | "unlimited") | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * This calendar month (UTC): what holds, override and tier taken together, and what was used.
   */
  quota: {
    /**
     * Unix time in seconds.
     */
    period_start: number;
    /**
     * Unix time in seconds.
     */
    period_end: number;
    environments: {
      environment: "live" | "test" | "dev";
      tokens: {
        /**
         * null: no limit.
         */
        limit: number | null;
        used: number;
      };
      /**
       * USD.
       */
      spend: {
        /**
         * null: no limit.
         */
        limit: number | null;
        used: number;
      };
    }[];
  };
}
/**
 * What is left out stays as it is.
 */
export interface UpdateAccountRequest {
  /**
   * For people; printable characters.
   */
  name?: string;
  /**
   * Name of a tier.
   */
  tier?: string;
  /**
   * While an account is suspended, all of its keys are refused.
   */
  status?: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_tokens?: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), in place of the tier's: a number, "unlimited" for no limit, or null for as the tier says. Per environment.
   */
  monthly_spend?: (number | "unlimited") | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats?: boolean;
}
export interface CreateAccountKeyRequest {
  /**
   * What it is for; printable characters.
   */
  name: string;
  /**
   * What it may do, `admin:manage` included. Default: `chat:read chat:write models:read`.
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "keys:manage" | "admin:manage")[] | null;
  expires_at?: number | null;
  /**
   * Seconds until it expires, in place of `expires_at`.
   */
  expires_in?: number | null;
  allowed_ips?: string[] | null;
  rate_limit?: number | null;
  rate_limit_window?: number | null;
  monthly_tokens?: number | null;
  monthly_spend?: number | null;
  /**
   * Keys of `dev` work in development mode alone.
   */
  environment: "live" | "test" | "dev";
}
export interface TierList {
  object: "list";
  data: Tier[];
}
export interface Tier {
  object: "tier";
  name: string;
  /**
   * null: no limit.
   */
  requests_per_minute: number | null;
  /**
   * null: no limit.
   */
  tokens_per_minute: number | null;
  /**
   * null: no limit.
   */
  monthly_tokens: number | null;
  /**
   * USD; null: no limit.
   */
  monthly_spend: number | null;
  /**
   * Where the limits hold; elsewhere there are none.
   *
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Where its figures come from; those of `file` are changed in headrace.yaml alone.
   */
  source: "built-in" | "file" | "database";
  /**
   * How many accounts have it.
   */
  accounts: number;
}
/**
 * All of the tier: what is left out has its default, which is no limit.
 */
export interface TierRequest {
  /**
   * null: no limit. Per account and environment.
   */
  requests_per_minute: number | null;
  /**
   * null: no limit. Per account and environment.
   */
  tokens_per_minute: number | null;
  monthly_tokens?: number | null;
  monthly_spend?: number | null;
  /**
   * Where the limits hold; elsewhere there are none. Default: `live`, `test`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
}
export interface DeletedTier {
  object: "tier";
  name: string;
  deleted: true;
}
export interface UpstreamList {
  object: "list";
  data: Upstream[];
}
export interface Upstream {
  object: "upstream";
  name: string;
  /**
   * null for the built-in engine and for nodes.
   */
  url: string | null;
  /**
   * Where it comes from. Those of `database` are changed here, those of `file` in headrace.yaml alone.
   */
  source: "built-in" | "file" | "database" | "found" | "node";
  /**
   * Whether one of this name was added here as well, which does not count while the file has the name.
   */
  overrides_database: boolean;
  has_api_key: boolean;
  /**
   * Whether the models that it lists are served.
   */
  discover: boolean;
  /**
   * Environments whose keys may use its discovered models.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Seconds to wait for the first byte of an answer. null for the built-in engine and for nodes.
   */
  timeout_seconds: number | null;
  /**
   * Seconds for which a begun answer may be silent. null for the built-in engine and for nodes.
   */
  idle_seconds: number | null;
  /**
   * Most requests at once; more wait in the queue. null: measured.
   */
  max_concurrency: number | null;
  /**
   * As of the last look, every 30 s; `starting`: it was not asked yet. `draining` comes before the others.
   */
  state: "ok" | "unreachable" | "draining" | "starting";
  /**
   * `resting`: it could not be reached a moment ago, and other deployments come first; `trying`: its rest is over, and one request or probe finds out; `ready`: the next one will.
   */
  health: "ok" | "resting" | "ready" | "trying";
  /**
   * How many models it listed when it was last reached.
   */
  models: number;
  /**
   * Requests that it works on.
   */
  running: number;
  /**
   * Requests that wait for a place.
   */
  waiting: number;
  /**
   * How many it takes at once now; null where nothing was sent to it yet.
   */
  concurrency: number | null;
  /**
   * What it says itself in its metrics, as vLLM, SGLang and llama-server do; null where nothing lately.
   */
  load: {
    /**
     * Requests that it works on, whoever sent them.
     */
    running: number;
    /**
     * Requests that wait inside of it.
     */
    waiting: number;
    /**
     * Part of its memory for prompts that is taken, 0 to 1.
     */
    cache_use: number | null;
    /**
     * Part of the prompt tokens that it found there, 0 to 1.
     */
    cache_hits: number | null;
  } | null;
  /**
   * Why it cannot be reached.
   */
  error: string | null;
  /**
   * null for those that were not added here.
   */
  created_at: number | null;
}
export interface CreateUpstreamRequest {
  /**
   * For logs and records: lower-case letters, digits, dots, underscores and hyphens.
   */
  name: string;
  /**
   * Base URL of its OpenAI-compatible API, nearly always ending in `/v1`.
   */
  url: string;
  /**
   * Sent to it as a bearer token. It is kept sealed and not shown again.
   */
  api_key?: string | null;
  /**
   * Whether to serve the models that it lists. Default true.
   */
  discover?: boolean | null;
  /**
   * Environments whose keys may use its discovered models. Default: `live`, `dev`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Seconds to wait for the first byte of an answer. Default 600.
   */
  timeout_seconds?: number | null;
  /**
   * Seconds for which a begun answer may be silent. Default 900.
   */
  idle_seconds?: number | null;
  /**
   * Most requests at once; more wait in the queue. null: measured.
   */
  max_concurrency?: number | null;
}
/**
 * What is left out stays as it is.
 */
export interface UpdateUpstreamRequest {
  /**
   * At another host, port or scheme only with `api_key`, if it has one.
   */
  url?: string;
  /**
   * null removes it.
   */
  api_key?: string | null;
  /**
   * Whether the models that it lists are served.
   */
  discover?: boolean;
  /**
   * Environments whose keys may use its discovered models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments?: ("live" | "test" | "dev")[];
  /**
   * Seconds to wait for the first byte of an answer.
   */
  timeout_seconds?: number;
  /**
   * Seconds for which a begun answer may be silent.
   */
  idle_seconds?: number;
  /**
   * Most requests at once; more wait in the queue. null: measured.
   */
  max_concurrency?: number | null;
  /**
   * While true, it finishes what it has and gets nothing new. For every source; kept over a restart.
   */
  draining?: boolean;
}
export interface DeletedUpstream {
  object: "upstream";
  name: string;
  deleted: true;
}
/**
 * Either `name` or `url`.
 */
export interface UpstreamTestRequest {
  /**
   * Of an upstream that there is; alone.
   */
  name?: string;
  /**
   * Of a server to try; no stored key is sent to it.
   */
  url?: string;
  /**
   * Only with `url`.
   */
  api_key?: string | null;
}
export interface UpstreamTest {
  object: "upstream_test";
  ok: boolean;
  duration_ms: number;
  /**
   * Ids of its models, at most 1000.
   */
  models: string[];
  /**
   * What went wrong; null where it is ok.
   */
  error: string | null;
}
export interface NodeList {
  object: "list";
  data: Node[];
}
export interface Node {
  object: "node";
  id: string;
  /**
   * As it stands among the upstreams and in usage records.
   */
  name: string;
  /**
   * `offline`: it is not connected. `draining`: it gets nothing new, because an operator or the node says so. `pending`: nothing that it announces is approved. Else `online`.
   */
  status: "pending" | "online" | "offline" | "draining";
  /**
   * While true, it finishes what it has and gets nothing new. Kept over a restart.
   */
  draining: boolean;
  /**
   * Ids of models that it may serve, of those that it announces; ["*"] for whatever it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * What it last said that it serves.
   */
  announced_models: NodeModel[];
  /**
   * Environments whose keys may use its models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Most requests at once; more wait in the queue. null: as it announces, else measured.
   */
  max_concurrency: number | null;
  /**
   * Requests that it works on for this process.
   */
  running: number;
  /**
   * Requests that wait here for a place.
   */
  waiting: number;
  /**
   * How many it takes at once now; null where nothing was sent to it yet.
   */
  concurrency: number | null;
  /**
   * Of its Headrace; null before it was connected.
   */
  version: string | null;
  /**
   * Where it connects from; null while it is not connected.
   */
  client_address: string | null;
  /**
   * Which process of this gateway holds its connection; null while it is not connected.
   */
  replica_id: string | null;
  /**
   * Unix time in seconds; null while it is not connected.
   */
  connected_at: number | null;
  /**
   * Unix time in seconds; null before it was connected.
   */
  last_seen_at: number | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface NodeModel {
  id: string;
  /**
   * Tokens; null where it does not say.
   */
  context: number | null;
  /**
   * What it can do; null, or left out, where it does not say.
   */
  capabilities: {
    chat?: boolean;
    completion?: boolean;
    embeddings?: boolean;
  } | null;
  /**
   * Whether it may serve it.
   */
  approved: boolean;
}
/**
 * What is left out stays as it is.
 */
export interface UpdateNodeRequest {
  /**
   * For logs and records: lower-case letters, digits, dots, underscores and hyphens; no upstream's.
   */
  name?: string;
  /**
   * Ids of models that it may serve, of those that it announces; ["*"] for whatever it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models?: string[];
  /**
   * Environments whose keys may use its models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments?: ("live" | "test" | "dev")[];
  /**
   * Most requests at once; more wait in the queue. null: as it announces, else measured.
   */
  max_concurrency?: number | null;
  /**
   * While true, it finishes what it has and gets nothing new. Kept over a restart.
   */
  draining?: boolean;
}
export interface DeletedNode {
  object: "node";
  id: string;
  deleted: true;
}
export interface CreateNodeJoinTokenRequest {
  /**
   * What the node that joins may serve at once; ["*"] for all that it announces. Default: nothing before an operator approved it.
   */
  approved_models?: string[] | null;
  /**
   * Environments whose keys may use its models. Default: `live`, `dev`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Seconds for which it lets a machine in. Default 3600.
   */
  expires_in?: number | null;
}
export interface CreatedNodeJoinToken {
  object: "node_join_token";
  id: string;
  /**
   * Its last four characters.
   */
  last4: string;
  status: "active" | "used" | "expired";
  /**
   * Ids of models that it may serve, of those that it announces; ["*"] for whatever it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * Environments whose keys may use its models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  /**
   * Unix time in seconds; null where nobody joined with it.
   */
  used_at: number | null;
  /**
   * The node that joined with it.
   */
  node_id: string | null;
  /**
   * The token itself, shown in this answer alone.
   */
  token: string;
  /**
   * What the gateway calls itself: where the machine joins.
   */
  gateway_url: string;
}
export interface NodeJoinTokenList {
  object: "list";
  data: NodeJoinToken[];
}
export interface NodeJoinToken {
  object: "node_join_token";
  id: string;
  /**
   * Its last four characters.
   */
  last4: string;
  status: "active" | "used" | "expired";
  /**
   * Ids of models that it may serve, of those that it announces; ["*"] for whatever it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * Environments whose keys may use its models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  /**
   * Unix time in seconds; null where nobody joined with it.
   */
  used_at: number | null;
  /**
   * The node that joined with it.
   */
  node_id: string | null;
}
export interface DeletedNodeJoinToken {
  object: "node_join_token";
  id: string;
  deleted: true;
}
export interface SigningKeyList {
  object: "list";
  data: SigningKey[];
}
export interface SigningKey {
  object: "signing_key";
  /**
   * `kid` of the tokens that it signs.
   */
  id: string;
  /**
   * Published and not used yet; in use; or there only for tokens that it signed before.
   */
  state: "upcoming" | "signing" | "verifying";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * When it begins to sign, Unix time in seconds.
   */
  active_at: number;
  /**
   * When it is no longer published; null for the newest.
   */
  retires_at: number | null;
}
export interface RotateSigningKeyRequest {
  /**
   * Whether tokens that were signed before are refused from now on.
   */
  revoke?: boolean | null;
}
export interface PersonList {
  object: "list";
  data: Person[];
  /**
   * Id of the first object here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last object here; give it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * Whether there are more after these.
   */
  has_more: boolean;
}
export interface Person {
  object: "person";
  id: string;
  email: string;
  name: string;
  /**
   * May operate the installation, `admin:manage`, while signed in at a browser.
   */
  is_operator: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface PersonDetails {
  object: "person";
  id: string;
  email: string;
  name: string;
  /**
   * May operate the installation, `admin:manage`, while signed in at a browser.
   */
  is_operator: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  memberships: {
    id: string;
    account_id: string;
    account_name: string;
    /**
     * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
     */
    role: "owner" | "admin" | "member";
    /**
     * Unix time in seconds.
     */
    created_at: number;
  }[];
}
export interface UpdatePersonRequest {
  is_operator: boolean;
}
export interface DeletedPerson {
  object: "person";
  id: string;
  deleted: true;
}
export interface ResetLink {
  object: "reset_link";
  person_id: string;
  /**
   * Lets whoever has it set another password, once. It is shown this once and not kept.
   */
  link: string;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
}
export interface System {
  object: "system";
  version: string;
  mode: "development" | "production";
  /**
   * Unix time in seconds.
   */
  started_at: number;
  configuration: {
    /**
     * Read at the start; null: there was none.
     */
    file: string | null;
    /**
     * null: it has not changed since the start.
     */
    last_reload: {
      /**
       * Unix time in seconds.
       */
      at: number;
      /**
       * `refused`: the configuration from before goes on.
       */
      result: "ok" | "refused";
      /**
       * What is wrong with the file.
       */
      error: string | null;
      /**
       * Keys that changed and hold after a restart.
       */
      needs_restart: string[];
    } | null;
  };
  memory: {
    /**
     * Resident memory of the gateway's process.
     */
    rss_bytes: number;
  };
  /**
   * How late timers were in the last minute: for so long, nothing could be answered.
   */
  event_loop: {
    mean_delay_ms: number;
    max_delay_ms: number;
  };
  database: {
    kind: "sqlite" | "postgres";
    /**
     * null where it cannot be asked.
     */
    size_bytes: number | null;
    /**
     * Of SQLite's write-ahead log.
     */
    wal_bytes: number | null;
    /**
     * `degraded`: it works, though not as it should.
     */
    state: "ok" | "degraded" | "starting" | "failed" | "draining";
  };
  /**
   * Where limits are counted for all replicas; null: in memory.
   */
  redis: {
    /**
     * `degraded`: it works, though not as it should.
     */
    state: "ok" | "degraded" | "starting" | "failed" | "draining";
  } | null;
  /**
   * The processes that share the database, oldest first. Times are by the database's clock.
   */
  replicas: {
    id: string;
    /**
     * Where other replicas reach it.
     */
    advertise_url: string | null;
    version: string;
    /**
     * Unix time in seconds.
     */
    started_at: number;
    /**
     * Unix time in seconds.
     */
    seen_at: number;
    /**
     * Whether it is the one that answers.
     */
    current: boolean;
  }[];
  /**
   * Where the ledger keeps what the database does not have yet.
   */
  spool: {
    /**
     * Of its files.
     */
    bytes: number;
    /**
     * Ended requests whose usage is not in the database yet.
     */
    pending: number;
  };
  requests: {
    /**
     * Requests for models that were admitted and have not ended.
     */
    open: number;
    /**
     * Those of them that wait for a place at a model server.
     */
    waiting: number;
  };
  /**
   * How many are in memory, and the time since the database last said that they hold.
   */
  credentials: {
    cached: number;
    unconfirmed_ms: number;
  };
  /**
   * How far the installation's secret is replaced, at most a minute ago; null where it cannot be counted.
   */
  secret: {
    /**
     * Secrets that are accepted: more than one while one is replaced.
     */
    accepted: number;
    /**
     * Keys that have not been used since the secret was replaced.
     */
    keys_under_old: number;
    /**
     * Keys that are refused, as their secret is no longer accepted.
     */
    keys_under_dropped: number;
    app_secrets_under_old: number;
    app_secrets_under_dropped: number;
    /**
     * Signing keys and keys of upstreams; a start seals them anew.
     */
    sealed_under_old: number;
    join_tokens_under_old: number;
  } | null;
  /**
   * As in `GET /readyz`.
   */
  checks: {
    /**
     * `degraded`: it works, though not as it should.
     */
    [k: string]: "ok" | "degraded" | "starting" | "failed" | "draining";
  };
}
export interface JoinRequest {
  /**
   * A join token, from POST /v1/admin/node-tokens.
   */
  token: string;
  /**
   * For logs and records: lower-case letters, digits, dots, underscores and hyphens.
   */
  name: string;
  /**
   * Its Ed25519 public key: 32 bytes as base64url, without padding. The private key stays with it.
   */
  public_key: string;
}
export interface JoinedNode {
  object: "node";
  id: string;
  name: string;
  /**
   * Ids of models that it may serve, of those that it announces; ["*"] for whatever it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * What the gateway calls itself: the node proves who it is to this one alone.
   */
  gateway_url: string;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface Health {
  status: "ok";
}
export interface Readiness {
  /**
   * `degraded`: it takes requests, and something that it can do without for a while fails: Redis, or for at most five minutes the database.
   */
  status: "ready" | "degraded" | "not_ready";
  checks: {
    /**
     * `degraded`: it works, though not as it should.
     */
    [k: string]: "ok" | "degraded" | "starting" | "failed" | "draining";
  };
}
