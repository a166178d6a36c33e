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
            | {
                type: string;
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
            | {
                type: string;
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
            | {
                type: string;
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
                | {
                    type: string;
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
            | {
                type: string;
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
                | {
                    type: string;
                    [k: string]: unknown;
                  }
              )[]
          )
        | null;
      name: string;
      [k: string]: unknown;
    }
  | {
      role: string;
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
                | {
                    type: string;
                    [k: string]: unknown;
                  }
              )[]
          )
        | null;
      name?: string | null;
      [k: string]: unknown;
    };
/**
 * A file, sent with a filename.
 */
export type FormFile = string;
/**
 * One message of the conversation.
 */
export type MessageParam =
  | {
      role: "user";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "image";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "document";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                title?: string | null;
                context?: string | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "search_result";
                source: string;
                title: string;
                content: {
                  type: "text";
                  text: string;
                  [k: string]: unknown;
                }[];
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "thinking";
                thinking: string;
                signature?: string | null;
                [k: string]: unknown;
              }
            | {
                type: "redacted_thinking";
                data: string;
                [k: string]: unknown;
              }
            | {
                type: "tool_use";
                id: string;
                name: string;
                input: {
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "tool_result";
                tool_use_id: string;
                content?:
                  | (
                      | string
                      | {
                          type: string;
                          [k: string]: unknown;
                        }[]
                    )
                  | null;
                is_error?: boolean | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: string;
                [k: string]: unknown;
              }
          )[];
      [k: string]: unknown;
    }
  | {
      role: "assistant";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "image";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "document";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                title?: string | null;
                context?: string | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "search_result";
                source: string;
                title: string;
                content: {
                  type: "text";
                  text: string;
                  [k: string]: unknown;
                }[];
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "thinking";
                thinking: string;
                signature?: string | null;
                [k: string]: unknown;
              }
            | {
                type: "redacted_thinking";
                data: string;
                [k: string]: unknown;
              }
            | {
                type: "tool_use";
                id: string;
                name: string;
                input: {
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "tool_result";
                tool_use_id: string;
                content?:
                  | (
                      | string
                      | {
                          type: string;
                          [k: string]: unknown;
                        }[]
                    )
                  | null;
                is_error?: boolean | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: string;
                [k: string]: unknown;
              }
          )[];
      [k: string]: unknown;
    }
  | {
      role: "system";
      content:
        | string
        | (
            | {
                type: "text";
                text: string;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "image";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "document";
                source: {
                  type: string;
                  [k: string]: unknown;
                };
                title?: string | null;
                context?: string | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "search_result";
                source: string;
                title: string;
                content: {
                  type: "text";
                  text: string;
                  [k: string]: unknown;
                }[];
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "thinking";
                thinking: string;
                signature?: string | null;
                [k: string]: unknown;
              }
            | {
                type: "redacted_thinking";
                data: string;
                [k: string]: unknown;
              }
            | {
                type: "tool_use";
                id: string;
                name: string;
                input: {
                  [k: string]: unknown;
                };
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: "tool_result";
                tool_use_id: string;
                content?:
                  | (
                      | string
                      | {
                          type: string;
                          [k: string]: unknown;
                        }[]
                    )
                  | null;
                is_error?: boolean | null;
                /**
                 * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                 */
                cache_control?: {
                  type: string;
                  [k: string]: unknown;
                } | null;
                [k: string]: unknown;
              }
            | {
                type: string;
                [k: string]: unknown;
              }
          )[];
      [k: string]: unknown;
    }
  | {
      role: string;
      content?:
        | (
            | string
            | (
                | {
                    type: "text";
                    text: string;
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "image";
                    source: {
                      type: string;
                      [k: string]: unknown;
                    };
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "document";
                    source: {
                      type: string;
                      [k: string]: unknown;
                    };
                    title?: string | null;
                    context?: string | null;
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "search_result";
                    source: string;
                    title: string;
                    content: {
                      type: "text";
                      text: string;
                      [k: string]: unknown;
                    }[];
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "thinking";
                    thinking: string;
                    signature?: string | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "redacted_thinking";
                    data: string;
                    [k: string]: unknown;
                  }
                | {
                    type: "tool_use";
                    id: string;
                    name: string;
                    input: {
                      [k: string]: unknown;
                    };
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: "tool_result";
                    tool_use_id: string;
                    content?:
                      | (
                          | string
                          | {
                              type: string;
                              [k: string]: unknown;
                            }[]
                        )
                      | null;
                    is_error?: boolean | null;
                    /**
                     * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
                     */
                    cache_control?: {
                      type: string;
                      [k: string]: unknown;
                    } | null;
                    [k: string]: unknown;
                  }
                | {
                    type: string;
                    [k: string]: unknown;
                  }
              )[]
          )
        | null;
      [k: string]: unknown;
    };

export interface Shapes {
  Error?: Error;
  AnthropicError?: AnthropicError;
  ChatCompletionRequest?: ChatCompletionRequest;
  ChatMessage?: ChatMessage;
  ChatCompletion?: ChatCompletion;
  Usage?: Usage;
  ChatCompletionChunk?: ChatCompletionChunk;
  CompletionRequest?: CompletionRequest;
  TextCompletion?: TextCompletion;
  EmbeddingRequest?: EmbeddingRequest;
  EmbeddingList?: EmbeddingList;
  RerankRequest?: RerankRequest;
  RerankResult?: RerankResult;
  ScoreRequest?: ScoreRequest;
  ScoreResult?: ScoreResult;
  ModerationRequest?: ModerationRequest;
  ModerationResult?: ModerationResult;
  DecisionRequest?: DecisionRequest;
  Decision?: Decision;
  SpeechRequest?: SpeechRequest;
  SpeechEvent?: SpeechEvent;
  TranscriptionRequest?: TranscriptionRequest;
  FormFile?: FormFile;
  Transcription?: Transcription;
  TranscriptionEvent?: TranscriptionEvent;
  TranslationRequest?: TranslationRequest;
  ImageRequest?: ImageRequest;
  Images?: Images;
  ImageEvent?: ImageEvent;
  ImageEditRequest?: ImageEditRequest;
  ImageVariationRequest?: ImageVariationRequest;
  TokenizeRequest?: TokenizeRequest;
  TokenizeResult?: TokenizeResult;
  DetokenizeRequest?: DetokenizeRequest;
  DetokenizeResult?: DetokenizeResult;
  CompactRequest?: CompactRequest;
  ResponseInputItem?: ResponseInputItem;
  Compaction?: Compaction;
  ResponseRequest?: ResponseRequest;
  ResponseTokenCount?: ResponseTokenCount;
  Response?: Response;
  ResponseEvent?: ResponseEvent;
  MessageCountRequest?: MessageCountRequest;
  MessageParam?: MessageParam;
  MessageTokenCount?: MessageTokenCount;
  MessageRequest?: MessageRequest;
  Message?: Message;
  MessageEvent?: MessageEvent;
  StoredChatCompletionList?: StoredChatCompletionList;
  StoredChatCompletion?: StoredChatCompletion;
  StoredChatUpdate?: StoredChatUpdate;
  DeletedChatCompletion?: DeletedChatCompletion;
  StoredChatMessageList?: StoredChatMessageList;
  StoredChatMessage?: StoredChatMessage;
  DeletedResponse?: DeletedResponse;
  ResponseItemList?: ResponseItemList;
  ResponseItem?: ResponseItem;
  ConversationRequest?: ConversationRequest;
  Conversation?: Conversation;
  ConversationUpdate?: ConversationUpdate;
  DeletedConversation?: DeletedConversation;
  ConversationItemsRequest?: ConversationItemsRequest;
  AddedConversationItems?: AddedConversationItems;
  ConversationItemList?: ConversationItemList;
  FileForm?: FileForm;
  File?: File;
  FileList?: FileList;
  DeletedFile?: DeletedFile;
  UploadRequest?: UploadRequest;
  Upload?: Upload;
  UploadPartForm?: UploadPartForm;
  UploadPart?: UploadPart;
  UploadCompletion?: UploadCompletion;
  BatchRequest?: BatchRequest;
  Batch?: Batch;
  BatchList?: BatchList;
  MessageBatchRequest?: MessageBatchRequest;
  MessageBatch?: MessageBatch;
  MessageBatchList?: MessageBatchList;
  DeletedMessageBatch?: DeletedMessageBatch;
  ModelList?: ModelList;
  Model?: Model;
  CodexModel?: CodexModel;
  ModelStatusList?: ModelStatusList;
  ModelStatus?: ModelStatus;
  DeploymentStatus?: DeploymentStatus;
  PriceList?: PriceList;
  ListedPrice?: ListedPrice;
  JsonRpcMessage?: JsonRpcMessage;
  McpError?: McpError;
  Overview?: Overview;
  AccountOverview?: AccountOverview;
  UsageReport?: UsageReport;
  UsageRow?: UsageRow;
  Statement?: Statement;
  StatementLine?: StatementLine;
  StatementOfAccounts?: StatementOfAccounts;
  RefusalList?: RefusalList;
  Refusal?: Refusal;
  RequestList?: RequestList;
  Request?: Request;
  RequestDetail?: RequestDetail;
  UsageDetails?: UsageDetails;
  RequestStep?: RequestStep;
  Limits?: Limits;
  TierOverviewList?: TierOverviewList;
  TierOverview?: TierOverview;
  CreateKeyRequest?: CreateKeyRequest;
  CreatedApiKey?: CreatedApiKey;
  ApiKeyList?: ApiKeyList;
  ApiKey?: ApiKey;
  ApiKeyDetails?: ApiKeyDetails;
  UpdateKeyRequest?: UpdateKeyRequest;
  RotateKeyRequest?: RotateKeyRequest;
  RotatedApiKey?: RotatedApiKey;
  CreateWebhookRequest?: CreateWebhookRequest;
  WebhookWithSecret?: WebhookWithSecret;
  WebhookSecret?: WebhookSecret;
  WebhookList?: WebhookList;
  Webhook?: Webhook;
  UpdateWebhookRequest?: UpdateWebhookRequest;
  DeletedWebhook?: DeletedWebhook;
  RotateWebhookSecretRequest?: RotateWebhookSecretRequest;
  WebhookTest?: WebhookTest;
  WebhookDeliveryList?: WebhookDeliveryList;
  WebhookDelivery?: WebhookDelivery;
  WebhookAttempt?: WebhookAttempt;
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
  OAuthRegistrationRequest?: OAuthRegistrationRequest;
  OAuthRegistration?: OAuthRegistration;
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
  AuthorizationDetails?: AuthorizationDetails;
  UpdateAuthorizationRequest?: UpdateAuthorizationRequest;
  DeletedAuthorization?: DeletedAuthorization;
  Session?: Session;
  UpdateSessionRequest?: UpdateSessionRequest;
  ChangePasswordRequest?: ChangePasswordRequest;
  ChangedPassword?: ChangedPassword;
  BrowserSessionList?: BrowserSessionList;
  BrowserSession?: BrowserSession;
  EndedBrowserSessions?: EndedBrowserSessions;
  EndedBrowserSession?: EndedBrowserSession;
  NoticeSettings?: NoticeSettings;
  UpdateNoticeSettingsRequest?: UpdateNoticeSettingsRequest;
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
  MemberDetails?: MemberDetails;
  UpdateMemberRequest?: UpdateMemberRequest;
  RemovedMember?: RemovedMember;
  InvitationList?: InvitationList;
  Invitation?: Invitation;
  CreateInvitationRequest?: CreateInvitationRequest;
  CreatedInvitation?: CreatedInvitation;
  DeletedInvitation?: DeletedInvitation;
  ToolConnectionList?: ToolConnectionList;
  ToolConnection?: ToolConnection;
  ConnectToolsRequest?: ConnectToolsRequest;
  ToolConnectionBegun?: ToolConnectionBegun;
  ToolConnectionDeleted?: ToolConnectionDeleted;
  ConnectedPersonList?: ConnectedPersonList;
  ConnectedPerson?: ConnectedPerson;
  ToolClientDocument?: ToolClientDocument;
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
  ManagedModelList?: ManagedModelList;
  ManagedModel?: ManagedModel;
  CreateManagedModelRequest?: CreateManagedModelRequest;
  UpdateManagedModelRequest?: UpdateManagedModelRequest;
  DeletedManagedModel?: DeletedManagedModel;
  GuardrailList?: GuardrailList;
  Guardrail?: Guardrail;
  McpServerList?: McpServerList;
  McpServer?: McpServer;
  CreateMcpServerRequest?: CreateMcpServerRequest;
  UpdateMcpServerRequest?: UpdateMcpServerRequest;
  DeletedMcpServer?: DeletedMcpServer;
  McpServerTestRequest?: McpServerTestRequest;
  McpServerTest?: McpServerTest;
  ToolDefinitionList?: ToolDefinitionList;
  ToolDefinition?: ToolDefinition;
  DecideToolDefinition?: DecideToolDefinition;
  ComparisonList?: ComparisonList;
  Comparison?: Comparison;
  ComparedModel?: ComparedModel;
  PulledModelList?: PulledModelList;
  PulledModel?: PulledModel;
  MemoryNeed?: MemoryNeed;
  Pull?: Pull;
  ModelMemory?: ModelMemory;
  PullRequest?: PullRequest;
  PullOffer?: PullOffer;
  DeletedPulledModel?: DeletedPulledModel;
  ClearedCache?: ClearedCache;
  ModelProcessList?: ModelProcessList;
  ModelProcess?: ModelProcess;
  ChangeModelProcessRequest?: ChangeModelProcessRequest;
  ModelProcessOutput?: ModelProcessOutput;
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
    /**
     * The field that is wrong, by its path in the request. Left out if no single field is wrong.
     */
    param?: string;
    code:
      | "invalid_request"
      | "invalid_api_key"
      | "token_expired"
      | "insufficient_scope"
      | "permission_denied"
      | "insufficient_quota"
      | "content_blocked"
      | "model_not_found"
      | "previous_response_not_found"
      | "not_found"
      | "method_not_allowed"
      | "request_too_large"
      | "unsupported_media_type"
      | "rate_limit_exceeded"
      | "internal_error"
      | "upstream_error"
      | "upstream_timeout"
      | "service_unavailable"
      | "context_length_exceeded"
      | "string_above_max_length"
      | "content_filter"
      | "content_policy_violation"
      | "invalid_prompt"
      | "unsupported_parameter"
      | "unsupported_value";
  };
  /**
   * The quota that refused the request, only with `insufficient_quota`.
   */
  quota?: {
    owner: "account" | "key" | "member" | "app";
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    limit: number;
    used: number;
    /**
     * Set aside for requests that are still running.
     */
    reserved: number;
    /**
     * The least that the request needs.
     */
    needed: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    starts_at: number | null;
    /**
     * null: none is in use, and waiting does not help.
     */
    resets_at: number | null;
  };
}
export interface AnthropicError {
  type: "error";
  error: {
    type:
      | "invalid_request_error"
      | "authentication_error"
      | "permission_error"
      | "not_found_error"
      | "request_too_large"
      | "rate_limit_error"
      | "timeout_error"
      | "overloaded_error"
      | "api_error";
    /**
     * Text for people.
     */
    message: string;
  };
  /**
   * The quota that refused the request, only with `insufficient_quota`.
   */
  quota?: {
    owner: "account" | "key" | "member" | "app";
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    limit: number;
    used: number;
    /**
     * Set aside for requests that are still running.
     */
    reserved: number;
    /**
     * The least that the request needs.
     */
    needed: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    starts_at: number | null;
    /**
     * null: none is in use, and waiting does not help.
     */
    resets_at: number | null;
  };
  request_id: string;
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
   * Nucleus sampling: the smallest set of tokens with this probability mass; with 0 the likeliest token.
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
   * Maximum tokens to generate. Default, and with -1: what is left of the model's context.
   */
  max_tokens?: (number | -1) | null;
  /**
   * Like `max_tokens`, and wins over it when both are sent.
   */
  max_completion_tokens?: (number | -1) | null;
  /**
   * Up to 16 strings at which generation stops; the stop string is not returned. An empty string is none.
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
   * How many answers are generated, where the model server knows it; the best `n` of them are returned.
   */
  best_of?: number | null;
  /**
   * Log-probabilities of the answer's tokens, where the model server has them; some take a number of them.
   */
  logprobs?: (boolean | number) | null;
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
   * Whether the model may (`auto`), must (`required`) or must not (`none`) call a function, or which one it must call. Others as the model server has them.
   */
  tool_choice?:
    | (
        | string
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
   * `text`, `json_object` or `json_schema`; others as the model server has them.
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
            json_schema?: {
              name: string;
              schema?: {
                [k: string]: unknown;
              };
              [k: string]: unknown;
            };
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * How much a reasoning model thinks, e.g. `low`; passed on.
   */
  reasoning_effort?: string | null;
  /**
   * Your own labels: kept with a stored completion, where they are at most 16 texts of at most 512 characters, with names of at most 64; else passed on as they are.
   */
  metadata?: {
    [k: string]: unknown;
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
   * Present when the model server did not report usage, or less than it delivered, and the figures are estimated from the text.
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
   * Nucleus sampling: the smallest set of tokens with this probability mass; with 0 the likeliest token.
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
  max_tokens?: (number | -1) | null;
  /**
   * Like `max_tokens`, and wins over it when both are sent.
   */
  max_completion_tokens?: (number | -1) | null;
  /**
   * Up to 16 strings at which generation stops; the stop string is not returned. An empty string is none.
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
   * Text, several texts, token ids, or objects that the model server knows, as for images.
   */
  input:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | number[]
    | number[][]
    | {
        [k: string]: unknown;
      };
  /**
   * `float` (default) or `base64`: little-endian float32, as the openai SDKs ask for. Others as the model server has them.
   */
  encoding_format?: string | null;
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
  /**
   * The model server's, or one of the gateway's.
   */
  id: string;
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
export interface RerankRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * A text, or an object that the model server knows.
   */
  query:
    | string
    | {
        [k: string]: unknown;
      };
  /**
   * The documents, each a text or an object that the model server knows.
   */
  documents:
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  /**
   * How many of the best are wanted. Default, and with 0: all.
   */
  top_n?: number | null;
  /**
   * Whether each result has its document, where the server can.
   */
  return_documents?: boolean | null;
  /**
   * Cuts longer documents, where the server can.
   */
  max_tokens_per_doc?: number | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  [k: string]: unknown;
}
export interface RerankResult {
  results: {
    /**
     * The place of the document in the request.
     */
    index: number;
    relevance_score: number;
    [k: string]: unknown;
  }[];
  model?: string;
  usage?: {
    prompt_tokens?: number;
    total_tokens?: number;
    [k: string]: unknown;
  };
  /**
   * Cohere's own account of what it bills.
   */
  meta?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface ScoreRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * One text, which is compared with each of `text_2`, or as many as those.
   */
  text_1?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  text_2?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  /**
   * The same by vLLM's newer name.
   */
  data_1?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  data_2?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  /**
   * Likewise, compared with `documents` or `items`.
   */
  queries?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  documents?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  /**
   * SGLang's name.
   */
  query?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  items?:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[]
    | {
        [k: string]: unknown;
      };
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  [k: string]: unknown;
}
export interface ScoreResult {
  data?: {
    index: number;
    score: number;
    [k: string]: unknown;
  }[];
  /**
   * SGLang's, in place of `data`.
   */
  scores?: unknown[];
  model?: string;
  usage?: {
    prompt_tokens?: number;
    total_tokens?: number;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface ModerationRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * A text, several, or parts of `text` and `image_url`.
   */
  input:
    | string
    | (
        | string
        | {
            [k: string]: unknown;
          }
      )[];
  [k: string]: unknown;
}
export interface ModerationResult {
  id?: string;
  model?: string;
  results: {
    flagged: boolean;
    /**
     * Whether each category applies.
     */
    categories: {
      [k: string]: unknown;
    };
    category_scores?: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
export interface DecisionRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * What the questions are about: a text, or messages, calls and their outputs.
   */
  input:
    | string
    | {
        [k: string]: unknown;
      }[];
  /**
   * Each a `predicate`, a `choice` or a `score`, with its `instructions`.
   *
   * @minItems 1
   * @maxItems 1024
   */
  questions: {
    type: string;
    name?: string;
    [k: string]: unknown;
  }[];
  /**
   * Your own id of the end user; passed on.
   */
  safety_identifier?: string | null;
  [k: string]: unknown;
}
export interface Decision {
  answers: {
    type: string;
    name?: string | null;
    [k: string]: unknown;
  }[];
  model: string;
  usage?: {
    input_tokens: number;
    output_tokens?: number;
    total_tokens?: number;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface SpeechRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * The text that is to be spoken.
   */
  input: string;
  /**
   * A voice of the model server.
   */
  voice?:
    | string
    | {
        [k: string]: unknown;
      };
  /**
   * How it is to be spoken, where the model knows that.
   */
  instructions?: string | null;
  /**
   * `mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`.
   */
  response_format?: string | null;
  speed?: number | null;
  /**
   * `sse`: a stream of events, with usage at its end. Default: the sound itself, as it is made.
   */
  stream_format?: ("audio" | "sse") | null;
  [k: string]: unknown;
}
export interface SpeechEvent {
  /**
   * `speech.audio.delta`, and `speech.audio.done` with `usage` at the end.
   */
  type: string;
  /**
   * Base64.
   */
  audio?: string;
  [k: string]: unknown;
}
export interface TranscriptionRequest {
  file: FormFile;
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * What came before, or words that are likely to come.
   */
  prompt?: string | null;
  temperature?: number | null;
  /**
   * ISO 639-1.
   */
  language?: string | null;
  /**
   * `json`, `text`, `srt`, `verbose_json`, `vtt` or `diarized_json`.
   */
  response_format?: string | null;
  /**
   * Whether the text is to come as it is heard.
   */
  stream?: boolean | null;
  timestamp_granularities?: string[] | null;
  include?: string[] | null;
  [k: string]: unknown;
}
export interface Transcription {
  text: string;
  /**
   * Seconds; with `verbose_json`.
   */
  duration?: number;
  /**
   * Its type is `tokens`, or `duration` with `seconds`, by how the model is counted.
   */
  usage?: {
    type: string;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface TranscriptionEvent {
  /**
   * `transcript.text.delta`, and `transcript.text.done` with `usage` at the end.
   */
  type: string;
  delta?: string;
  text?: string;
  [k: string]: unknown;
}
export interface TranslationRequest {
  file: FormFile;
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * What came before, or words that are likely to come.
   */
  prompt?: string | null;
  temperature?: number | null;
  /**
   * `json`, `text`, `srt`, `verbose_json` or `vtt`.
   */
  response_format?: string | null;
  [k: string]: unknown;
}
export interface ImageRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * How many images are wanted. Default: 1.
   */
  n?: number | null;
  size?: string | null;
  /**
   * `url` or `b64_json`, where the model knows both.
   */
  response_format?: string | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  /**
   * Whether images are to come as they are made.
   */
  stream?: boolean | null;
  /**
   * How many images on the way there are wanted.
   */
  partial_images?: number | null;
  /**
   * What is to be seen.
   */
  prompt: string;
  [k: string]: unknown;
}
export interface Images {
  /**
   * Unix seconds.
   */
  created?: number;
  data: {
    b64_json?: string;
    url?: string;
    [k: string]: unknown;
  }[];
  usage?: {
    input_tokens: number;
    output_tokens: number;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface ImageEvent {
  /**
   * `image_generation.partial_image` and `image_generation.completed`, or the same of `image_edit`.
   */
  type: string;
  b64_json?: string;
  [k: string]: unknown;
}
export interface ImageEditRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * How many images are wanted. Default: 1.
   */
  n?: number | null;
  size?: string | null;
  /**
   * `url` or `b64_json`, where the model knows both.
   */
  response_format?: string | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  /**
   * Whether images are to come as they are made.
   */
  stream?: boolean | null;
  /**
   * How many images on the way there are wanted.
   */
  partial_images?: number | null;
  /**
   * What is to be changed.
   */
  prompt: string;
  /**
   * One image or several; in JSON these are `images`.
   */
  image?: FormFile | FormFile[];
  /**
   * A file, sent with a filename.
   */
  mask?: string;
  /**
   * In JSON: objects with `image_url` or `file_id`.
   *
   * @maxItems 64
   */
  images?: {
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
export interface ImageVariationRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * How many images are wanted. Default: 1.
   */
  n?: number | null;
  size?: string | null;
  /**
   * `url` or `b64_json`, where the model knows both.
   */
  response_format?: string | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  image: FormFile;
  [k: string]: unknown;
}
export interface TokenizeRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * The text, by vLLM's name.
   */
  prompt?: string;
  /**
   * The text, by llama-server's name.
   */
  content?: string;
  /**
   * A conversation in place of a text, as the model's template makes a prompt of it, where the server can.
   *
   * @minItems 1
   */
  messages?: {
    role: string;
    [k: string]: unknown;
  }[];
  /**
   * Whether tokens for the beginning and the like are added. Default: of a `prompt`, but not of `content`.
   */
  add_special_tokens?: boolean | null;
  /**
   * The same by llama-server's name.
   */
  add_special?: boolean | null;
  /**
   * Whether, for messages, the beginning of the answer is among them. Default: yes.
   */
  add_generation_prompt?: boolean | null;
  /**
   * Whether vLLM tells the text of each token as well, as `token_strs`.
   */
  return_token_strs?: boolean | null;
  /**
   * Whether llama-server tells the text of each token, as objects in `tokens`.
   */
  with_pieces?: boolean | null;
  [k: string]: unknown;
}
export interface TokenizeResult {
  /**
   * Their ids; with `with_pieces` objects that have their texts as well, where the server tells them.
   */
  tokens: (
    | number
    | {
        id: number;
        [k: string]: unknown;
      }
  )[];
  /**
   * How many they are.
   */
  count: number;
  /**
   * Tokens that the model takes, where that is known.
   */
  max_model_len?: number;
  [k: string]: unknown;
}
export interface DetokenizeRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * Ids of tokens.
   *
   * @maxItems 1000000
   */
  tokens: number[];
  [k: string]: unknown;
}
export interface DetokenizeResult {
  /**
   * The text, by vLLM's name.
   */
  prompt: string;
  /**
   * The same by llama-server's name.
   */
  content: string;
  [k: string]: unknown;
}
export interface CompactRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  input?: (string | ResponseInputItem[]) | null;
  /**
   * A kept response whose conversation is made short.
   */
  previous_response_id?: string | null;
  /**
   * What the model is told first; it does not carry over to later responses.
   */
  instructions?: string | null;
  /**
   * Your own labels.
   */
  metadata?: {
    [k: string]: unknown;
  } | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  safety_identifier?: string | null;
  [k: string]: unknown;
}
/**
 * One item of the conversation: a message, a call of a tool, its output.
 */
export interface ResponseInputItem {
  type?: string | null;
  id?: string | null;
  role?: string | null;
  content?:
    | (
        | string
        | {
            type: string;
            text?: string | null;
            [k: string]: unknown;
          }[]
      )
    | null;
  call_id?: string | null;
  name?: string | null;
  arguments?: unknown;
  output?: unknown;
  [k: string]: unknown;
}
export interface Compaction {
  id: string;
  object: "response.compaction";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  output: {
    type?: string;
    [k: string]: unknown;
  }[];
  [k: string]: unknown;
}
export interface ResponseRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * A text, or the items of the conversation so far.
   */
  input: string | ResponseInputItem[];
  /**
   * What the model is told first; it does not carry over to later responses.
   */
  instructions?: string | null;
  /**
   * Maximum tokens to generate, thinking included.
   */
  max_output_tokens?: number | null;
  /**
   * Sampling temperature. Default 1.
   */
  temperature?: number | null;
  /**
   * Nucleus sampling: the smallest set of tokens with this probability mass.
   */
  top_p?: number | null;
  /**
   * How many likely tokens to show at each place.
   */
  top_logprobs?: number | null;
  /**
   * Tools that the model may call.
   */
  tools?:
    | {
        type: string;
        name?: string | null;
        description?: string | null;
        parameters?: {
          [k: string]: unknown;
        } | null;
        strict?: boolean | null;
        [k: string]: unknown;
      }[]
    | null;
  /**
   * Whether the model may (`auto`), must (`required`) or must not (`none`) call a tool, or which one.
   */
  tool_choice?:
    | (
        | string
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
   * The form of the answer: `text`, `json_object` or `json_schema`.
   */
  text?: {
    format?: {
      type: string;
      name?: string | null;
      schema?: {
        [k: string]: unknown;
      } | null;
      strict?: boolean | null;
      [k: string]: unknown;
    } | null;
    verbosity?: string | null;
    [k: string]: unknown;
  } | null;
  /**
   * How much a model thinks, and whether that is shown.
   */
  reasoning?: {
    effort?: string | null;
    summary?: string | null;
    [k: string]: unknown;
  } | null;
  /**
   * What the response has beside its usual members, such as `reasoning.encrypted_content`.
   */
  include?: string[] | null;
  /**
   * Whether the response is kept, to be gone on from and read later. Default true; the answer says whether it is.
   */
  store?: boolean | null;
  /**
   * A kept response that this one goes on from; not together with `conversation`.
   */
  previous_response_id?: string | null;
  /**
   * A conversation that this response goes on with: its items come before the input. Unless `store` is false, input and output are added to it.
   */
  conversation?:
    | (
        | string
        | {
            id: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Answer at once with a response that is `queued`, and work on it without its client. It is read by GET, also as a stream, and stopped by `/cancel`; not together with `store: false`.
   */
  background?: boolean | null;
  /**
   * Answer as Server-Sent Events. Default false.
   */
  stream?: boolean | null;
  /**
   * What happens to a conversation that is too long; it is refused, whatever is said.
   */
  truncation?: ("auto" | "disabled") | null;
  /**
   * Your own labels.
   */
  metadata?: {
    [k: string]: unknown;
  } | null;
  /**
   * Your own id of the end user; passed on.
   */
  user?: string | null;
  safety_identifier?: string | null;
  prompt_cache_key?: string | null;
  service_tier?: string | null;
  [k: string]: unknown;
}
export interface ResponseTokenCount {
  object: "response.input_tokens";
  input_tokens: number;
  /**
   * Present where no model server counted it.
   */
  estimated?: true;
  [k: string]: unknown;
}
export interface Response {
  id: string;
  object: "response";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
  model: string;
  output: {
    type: string;
    [k: string]: unknown;
  }[];
  error: {
    code: string;
    message: string;
    [k: string]: unknown;
  } | null;
  incomplete_details: {
    reason: string;
    [k: string]: unknown;
  } | null;
  usage?: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    [k: string]: unknown;
  } | null;
  [k: string]: unknown;
}
export interface ResponseEvent {
  type: string;
  [k: string]: unknown;
}
export interface MessageCountRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * The conversation so far.
   *
   * @minItems 1
   * @maxItems 100000
   */
  messages: MessageParam[];
  /**
   * What the model is told before the conversation.
   */
  system?:
    | (
        | string
        | {
            type: "text";
            text: string;
            /**
             * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
             */
            cache_control?: {
              type: string;
              [k: string]: unknown;
            } | null;
            [k: string]: unknown;
          }[]
      )
    | null;
  /**
   * Tools that the model may call.
   */
  tools?:
    | {
        /**
         * `custom`, which is the default, or a tool that Anthropic describes, such as `bash_20250124`.
         */
        type?: string | null;
        name?: string;
        description?: string | null;
        /**
         * JSON Schema of its input.
         */
        input_schema?: {
          [k: string]: unknown;
        };
        strict?: boolean | null;
        /**
         * Offered once a `tool_reference` in the conversation names it.
         */
        defer_loading?: boolean | null;
        /**
         * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
         */
        cache_control?: {
          type: string;
          [k: string]: unknown;
        } | null;
        [k: string]: unknown;
      }[]
    | null;
  /**
   * Whether the model may (`auto`), must (`any`) or must not (`none`) call a tool, or which one (`tool`).
   */
  tool_choice?:
    | (
        | {
            type: "auto";
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "any";
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "tool";
            name: string;
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "none";
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Whether and how much the model thinks before it answers.
   */
  thinking?:
    | (
        | {
            type: "enabled";
            /**
             * Tokens to think with, of those that `max_tokens` allows.
             */
            budget_tokens: number;
            /**
             * `summarized` or `omitted`.
             */
            display?: string | null;
            [k: string]: unknown;
          }
        | {
            type: "adaptive";
            /**
             * `summarized` or `omitted`.
             */
            display?: string | null;
            [k: string]: unknown;
          }
        | {
            type: "between_tools";
            [k: string]: unknown;
          }
        | {
            type: "disabled";
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  output_config?: {
    /**
     * `low`, `medium`, `high`, `xhigh` or `max`.
     */
    effort?: string | null;
    /**
     * `json_schema` and the schema that the answer follows.
     */
    format?:
      | (
          | {
              type: "json_schema";
              schema: {
                [k: string]: unknown;
              };
              [k: string]: unknown;
            }
          | {
              type: string;
              [k: string]: unknown;
            }
        )
      | null;
    [k: string]: unknown;
  } | null;
  /**
   * The older place of `output_config.format`.
   */
  output_format?:
    | (
        | {
            type: "json_schema";
            schema: {
              [k: string]: unknown;
            };
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
   */
  cache_control?: {
    type: string;
    [k: string]: unknown;
  } | null;
  /**
   * Not needed here, and means nothing.
   */
  max_tokens?: number | null;
  [k: string]: unknown;
}
export interface MessageTokenCount {
  input_tokens: number;
  /**
   * Present where no model server counted it.
   */
  estimated?: true;
  [k: string]: unknown;
}
export interface MessageRequest {
  /**
   * Model ID to use; `GET /v1/models` lists them.
   */
  model: string;
  /**
   * The conversation so far.
   *
   * @minItems 1
   * @maxItems 100000
   */
  messages: MessageParam[];
  /**
   * What the model is told before the conversation.
   */
  system?:
    | (
        | string
        | {
            type: "text";
            text: string;
            /**
             * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
             */
            cache_control?: {
              type: string;
              [k: string]: unknown;
            } | null;
            [k: string]: unknown;
          }[]
      )
    | null;
  /**
   * Tools that the model may call.
   */
  tools?:
    | {
        /**
         * `custom`, which is the default, or a tool that Anthropic describes, such as `bash_20250124`.
         */
        type?: string | null;
        name?: string;
        description?: string | null;
        /**
         * JSON Schema of its input.
         */
        input_schema?: {
          [k: string]: unknown;
        };
        strict?: boolean | null;
        /**
         * Offered once a `tool_reference` in the conversation names it.
         */
        defer_loading?: boolean | null;
        /**
         * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
         */
        cache_control?: {
          type: string;
          [k: string]: unknown;
        } | null;
        [k: string]: unknown;
      }[]
    | null;
  /**
   * Whether the model may (`auto`), must (`any`) or must not (`none`) call a tool, or which one (`tool`).
   */
  tool_choice?:
    | (
        | {
            type: "auto";
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "any";
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "tool";
            name: string;
            /**
             * Whether one answer holds at most one call.
             */
            disable_parallel_tool_use?: boolean | null;
            [k: string]: unknown;
          }
        | {
            type: "none";
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Whether and how much the model thinks before it answers.
   */
  thinking?:
    | (
        | {
            type: "enabled";
            /**
             * Tokens to think with, of those that `max_tokens` allows.
             */
            budget_tokens: number;
            /**
             * `summarized` or `omitted`.
             */
            display?: string | null;
            [k: string]: unknown;
          }
        | {
            type: "adaptive";
            /**
             * `summarized` or `omitted`.
             */
            display?: string | null;
            [k: string]: unknown;
          }
        | {
            type: "between_tools";
            [k: string]: unknown;
          }
        | {
            type: "disabled";
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  output_config?: {
    /**
     * `low`, `medium`, `high`, `xhigh` or `max`.
     */
    effort?: string | null;
    /**
     * `json_schema` and the schema that the answer follows.
     */
    format?:
      | (
          | {
              type: "json_schema";
              schema: {
                [k: string]: unknown;
              };
              [k: string]: unknown;
            }
          | {
              type: string;
              [k: string]: unknown;
            }
        )
      | null;
    [k: string]: unknown;
  } | null;
  /**
   * The older place of `output_config.format`.
   */
  output_format?:
    | (
        | {
            type: "json_schema";
            schema: {
              [k: string]: unknown;
            };
            [k: string]: unknown;
          }
        | {
            type: string;
            [k: string]: unknown;
          }
      )
    | null;
  /**
   * Anthropic's mark that the prompt up to here is worth keeping; nothing to model servers without such a cache.
   */
  cache_control?: {
    type: string;
    [k: string]: unknown;
  } | null;
  /**
   * Maximum tokens to generate, those of thinking included.
   */
  max_tokens: number;
  /**
   * Sampling temperature. Default 1.
   */
  temperature?: number | null;
  /**
   * Nucleus sampling: the smallest set of tokens with this mass.
   */
  top_p?: number | null;
  /**
   * Samples from so many of the likeliest tokens.
   */
  top_k?: number | null;
  /**
   * Strings at which generation stops; the string is told in `stop_sequence`, and not in the text.
   */
  stop_sequences?: string[] | null;
  /**
   * Answer as Server-Sent Events. Default false.
   */
  stream?: boolean | null;
  metadata?: {
    /**
     * Your own id of the end user; passed on.
     */
    user_id?: string | null;
    [k: string]: unknown;
  } | null;
  /**
   * `auto` or `standard_only`; nothing to other model servers.
   */
  service_tier?: string | null;
  [k: string]: unknown;
}
export interface Message {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  /**
   * Blocks: `text`, `thinking`, `tool_use` and others.
   */
  content: {
    type: string;
    [k: string]: unknown;
  }[];
  stop_reason:
    | (
        | "end_turn"
        | "max_tokens"
        | "stop_sequence"
        | "tool_use"
        | "pause_turn"
        | "refusal"
        | "model_context_window_exceeded"
      )
    | null;
  stop_sequence: string | null;
  usage: {
    /**
     * Tokens of the prompt, without those of the cache.
     */
    input_tokens: number;
    cache_creation_input_tokens: number | null;
    cache_read_input_tokens: number | null;
    /**
     * Tokens of the answer, those of thinking included.
     */
    output_tokens: number;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface MessageEvent {
  type: string;
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
export interface DeletedResponse {
  id: string;
  object: "response";
  deleted: true;
}
export interface ResponseItemList {
  object: "list";
  data: ResponseItem[];
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
 * A message, a call of a tool, its output, and so on.
 */
export interface ResponseItem {
  id: string;
  type: string;
  [k: string]: unknown;
}
export interface ConversationRequest {
  items?: ResponseInputItem[] | null;
  metadata?: {
    [k: string]: string;
  } | null;
}
export interface Conversation {
  id: string;
  object: "conversation";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  metadata: {
    [k: string]: string;
  };
}
export interface ConversationUpdate {
  /**
   * Replaces all labels; null removes them.
   */
  metadata: {
    [k: string]: string;
  } | null;
}
export interface DeletedConversation {
  id: string;
  object: "conversation.deleted";
  deleted: true;
}
export interface ConversationItemsRequest {
  /**
   * Up to 20 items, as the input of a response has them; more are added by further requests.
   *
   * @minItems 1
   * @maxItems 20
   */
  items: ResponseInputItem[];
}
export interface AddedConversationItems {
  object: "list";
  data: ResponseItem[];
  first_id: string;
  last_id: string;
  has_more: false;
}
export interface ConversationItemList {
  object: "list";
  data: ResponseItem[];
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
export interface FileForm {
  purpose: "assistants" | "batch" | "fine-tune" | "vision" | "user_data" | "evals";
  /**
   * The file; it may come before the other fields.
   */
  file: string;
  "expires_after[anchor]"?: "created_at";
  "expires_after[seconds]"?: number;
}
export interface File {
  id: string;
  object: "file";
  bytes: number;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  filename: string;
  purpose: string;
  status: "processed";
}
export interface FileList {
  object: "list";
  data: File[];
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
export interface DeletedFile {
  id: string;
  object: "file";
  deleted: true;
}
export interface UploadRequest {
  filename: string;
  purpose: "assistants" | "batch" | "fine-tune" | "vision" | "user_data" | "evals";
  bytes: number;
  mime_type: string;
  /**
   * When it is deleted. Left out: as the server keeps files, which is the most as well.
   */
  expires_after?: {
    anchor: "created_at";
    seconds: number;
  };
}
export interface Upload {
  id: string;
  object: "upload";
  bytes: number;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  filename: string;
  purpose: string;
  status: "pending" | "completed" | "cancelled" | "expired";
  file: File | null;
}
export interface UploadPartForm {
  /**
   * The bytes of the part.
   */
  data: string;
}
export interface UploadPart {
  id: string;
  object: "upload.part";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  upload_id: string;
}
export interface UploadCompletion {
  /**
   * The parts in the order in which they make the file.
   *
   * @minItems 1
   * @maxItems 1000
   */
  part_ids: string[];
  /**
   * MD5 of the whole file in hex digits; where it is another, nothing is completed.
   */
  md5?: string;
}
export interface BatchRequest {
  /**
   * A file with the purpose `batch`: one request in each line.
   */
  input_file_id: string;
  /**
   * The path of all of its requests, such as `/v1/chat/completions`.
   */
  endpoint: string;
  completion_window: "24h";
  metadata?: {
    [k: string]: string;
  } | null;
  /**
   * When it is deleted. Left out: as the server keeps files, which is the most as well.
   */
  output_expires_after?: {
    anchor: "created_at";
    seconds: number;
  };
}
export interface Batch {
  id: string;
  object: "batch";
  endpoint: string;
  /**
   * The model that its requests ask for, where that is one.
   */
  model: string | null;
  input_file_id: string;
  completion_window: "24h";
  status: "validating" | "failed" | "in_progress" | "finalizing" | "completed" | "expired" | "cancelling" | "cancelled";
  errors: {
    object: "list";
    data: {
      code: string;
      message: string;
      line: number | null;
      param: string | null;
    }[];
  } | null;
  output_file_id: string | null;
  error_file_id: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  in_progress_at: number | null;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
  finalizing_at: number | null;
  completed_at: number | null;
  failed_at: number | null;
  expired_at: number | null;
  cancelling_at: number | null;
  cancelled_at: number | null;
  request_counts: {
    total: number;
    completed: number;
    failed: number;
  };
  usage: {
    input_tokens: number;
    input_tokens_details: {
      cached_tokens: number;
    };
    output_tokens: number;
    output_tokens_details: {
      reasoning_tokens: number;
    };
    total_tokens: number;
  };
  metadata: {
    [k: string]: string;
  } | null;
}
export interface BatchList {
  object: "list";
  data: Batch[];
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
export interface MessageBatchRequest {
  /**
   * @minItems 1
   */
  requests: {
    custom_id: string;
    /**
     * A request as `/v1/messages` has it, without `stream`.
     */
    params: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  }[];
}
export interface MessageBatch {
  id: string;
  type: "message_batch";
  processing_status: "in_progress" | "canceling" | "ended";
  request_counts: {
    processing: number;
    succeeded: number;
    errored: number;
    canceled: number;
    expired: number;
  };
  /**
   * RFC 3339 time.
   */
  created_at: string;
  /**
   * RFC 3339 time.
   */
  expires_at: string;
  ended_at: string | null;
  cancel_initiated_at: string | null;
  archived_at: string | null;
  /**
   * Where the results are, once it has ended.
   */
  results_url: string | null;
}
export interface MessageBatchList {
  data: MessageBatch[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}
export interface DeletedMessageBatch {
  id: string;
  type: "message_batch_deleted";
}
export interface ModelList {
  object: "list";
  data: Model[];
  /**
   * Whether there are more beyond this page; without `anthropic-version` never.
   */
  has_more: boolean;
  /**
   * Id of the first entry here; null where there is none.
   */
  first_id: string | null;
  /**
   * Id of the last entry here; null where there is none.
   */
  last_id: string | null;
  /**
   * For Codex: what can chat, if `client_version` is there.
   */
  models?: CodexModel[];
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
    rerank?: boolean;
    moderation?: boolean;
    decisions?: boolean;
    speech?: boolean;
    transcription?: boolean;
    images?: boolean;
    realtime?: boolean;
    tokenize?: boolean;
  };
  /**
   * Tokens of prompt and answer together. Left out where nobody says.
   */
  context_length?: number;
  /**
   * USD per million tokens. Left out where it has none.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  };
  /**
   * Id of the model that serves it, where this is another name of that one.
   */
  alias_of?: string;
  type: "model";
  /**
   * The same as `id`.
   */
  display_name: string;
  /**
   * `created` as RFC 3339.
   */
  created_at: string;
  /**
   * `context_length`, as Anthropic's clients call it.
   */
  max_input_tokens?: number;
  /**
   * The most that `max_tokens` can be: `context_length`.
   */
  max_tokens?: number;
}
export interface CodexModel {
  /**
   * The name to ask for.
   */
  slug: string;
  display_name: string;
  description: string | null;
  /**
   * Codex asks for no effort unless somebody chooses one.
   */
  default_reasoning_level: null;
  supported_reasoning_levels: {
    effort: string;
    description: string;
  }[];
  shell_type: "shell_command";
  visibility: "list";
  supported_in_api: true;
  /**
   * The place in the list: Codex takes the first one where nobody chose.
   */
  priority: number;
  additional_speed_tiers: string[];
  service_tiers: string[];
  availability_nux: null;
  upgrade: null;
  /**
   * The prompt that Codex sends with each request.
   */
  base_instructions: string;
  include_skills_usage_instructions: true;
  /**
   * Whether `reasoning` may be sent.
   */
  supports_reasoning_summaries: true;
  supports_reasoning_summary_parameter: true;
  default_reasoning_summary: "none";
  support_verbosity: false;
  default_verbosity: null;
  /**
   * Files are patched by a command, which every model can run.
   */
  apply_patch_tool_type: null;
  web_search_tool_type: "text";
  /**
   * The most that Codex keeps of a tool's output.
   */
  truncation_policy: {
    mode: "tokens";
    limit: number;
  };
  supports_parallel_tool_calls: true;
  experimental_supported_tools: string[];
  input_modalities: ("text" | "image")[];
  /**
   * Tokens; left out where nobody says.
   */
  context_window?: number;
  max_context_window?: number;
  effective_context_window_percent: number;
  supports_search_tool: false;
  use_responses_lite: false;
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
    rerank?: boolean;
    moderation?: boolean;
    decisions?: boolean;
    speech?: boolean;
    transcription?: boolean;
    images?: boolean;
    realtime?: boolean;
    tokenize?: boolean;
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
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
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
   * The state of the process that serves it, where that is started for requests; else null.
   */
  process:
    ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
  /**
   * Requests that it works on; of all its models where it has one limit for all of them.
   */
  running: number;
  /**
   * Requests that wait for a place there, in the same way.
   */
  waiting: number;
  /**
   * Those of them with each priority.
   */
  waiting_by_priority: {
    low: number;
    normal: number;
    high: number;
  };
  /**
   * Milliseconds that a request of each priority would wait there if it came now; 0: not at all, null: nothing is known yet of how long answers take.
   */
  expected_wait_ms: {
    low: number | null;
    normal: number | null;
    high: number | null;
  };
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
export interface PriceList {
  object: "list";
  data: ListedPrice[];
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
  /**
   * The package that the prices are from, with its version.
   */
  source: string;
  /**
   * The day of which they are.
   */
  date: string;
  vendors: {
    id: string;
    name: string;
    models: number;
  }[];
}
export interface ListedPrice {
  object: "listed_price";
  /**
   * `vendor/model`, by which `price_of` of a model names it.
   */
  id: string;
  vendor: string;
  model: string;
  /**
   * Tokens of prompt and answer together; null where the list does not say.
   */
  context_length: number | null;
  price: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  };
}
export interface JsonRpcMessage {
  jsonrpc: "2.0";
  [k: string]: unknown;
}
export interface McpError {
  error: {
    message: string;
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface Overview {
  object: "overview";
  range: "24h" | "7d" | "30d";
  group_by: ("model" | "key" | "app") | null;
  usage: {
    /**
     * Start of the first step, Unix seconds; steps lie in UTC.
     */
    start: number;
    /**
     * Seconds of one step; the last one is not over yet.
     */
    step: number;
    /**
     * The figures of all steps together.
     */
    sum: {
      requests: number;
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
       * Milliseconds from the request to the first piece of its answer; null where that was not timed: it was not streamed, or came in one piece.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, those after the first; null where too little was streamed to tell.
       */
      tokens_per_second: number | null;
    };
    /**
     * The figures of the time before, as long as this one is by now.
     */
    before: {
      requests: number;
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
       * Milliseconds from the request to the first piece of its answer; null where that was not timed: it was not streamed, or came in one piece.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, those after the first; null where too little was streamed to tell.
       */
      tokens_per_second: number | null;
    };
    /**
     * The account, as far as the caller sees it, has never made a request in this environment, within the last year.
     */
    is_new: boolean;
    /**
     * By step.
     */
    total: {
      requests: number[];
      total_tokens: number[];
      cost: number[];
      errors: number[];
      first_token_ms: (number | null)[];
      tokens_per_second: (number | null)[];
    };
    /**
     * The groups that are first in something, the one with the most requests first; empty without `group_by`.
     */
    groups: {
      requests: number[];
      total_tokens: number[];
      cost: number[];
      errors: number[];
      first_token_ms: (number | null)[];
      tokens_per_second: (number | null)[];
      id: string | null;
    }[];
    /**
     * For each figure the places in `groups` of the first of them: those with the most of it or, where it is a mean, of which the most was measured.
     */
    ranking: {
      requests: number[];
      total_tokens: number[];
      cost: number[];
      errors: number[];
      first_token_ms: number[];
      tokens_per_second: number[];
    };
    /**
     * How many groups there are, those that are not listed included.
     */
    group_count: number;
  };
  /**
   * What limits refused in this time, the reason for which the most was first.
   */
  throttled: {
    reason:
      | "key_requests"
      | "key_tokens"
      | "account_requests"
      | "account_tokens"
      | "key_quota"
      | "account_quota"
      | "member_quota"
      | "app_quota"
      | "capacity";
    requests: number;
    /**
     * Unix time in seconds.
     */
    last_at: number;
    /**
     * Whose requests were refused most; null: too many at once to tell them apart.
     */
    key: string | null;
    model: string | null;
  }[];
  /**
   * The last requests that failed, whenever that was.
   */
  errors: {
    id: string;
    /**
     * Unix time in seconds.
     */
    at: number;
    model: string;
    key: string;
    error_code: string | null;
  }[];
  /**
   * The names of the keys, members and apps above, by id, as far as the caller may list them.
   */
  names: {
    [k: string]: string;
  };
  account: AccountOverview;
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
    /**
     * Whose usage `used` counts where `limit` is null; with a limit it is the account's.
     */
    usage_of: "account" | "caller";
    tokens: {
      /**
       * null: no limit.
       */
      limit: number | null;
      /**
       * Since the period began; requests still running are left out. Of the account where it has a limit, which holds for all of it; without one, a member who sees no more gets what the member used.
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
       * Since the period began; requests still running are left out. Of the account where it has a limit, which holds for all of it; without one, a member who sees no more gets what the member used.
       */
      used: number;
    };
  };
  /**
   * All quotas per window that hold for this credential, the account's first, with what was used of each.
   */
  quotas: {
    /**
     * Whose it is: of a key also that of a key that made it, of a login the member's.
     */
    owner: "account" | "key" | "member" | "app";
    owner_id: string;
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * In this window; requests still running are left out.
     */
    used: number;
    /**
     * What is left of `amount`; 0 where more was used.
     */
    left: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop: boolean;
    /**
     * null: it begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
  }[];
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
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
  /**
   * Where `group_by` has it; null: the requests that have none. One that has several is in the row of each, so these rows are no parts of a sum.
   */
  tag?: string | null;
  requests: number;
  prompt_tokens: number;
  /**
   * Tokens of the prompts that were read from a cache.
   */
  cached_tokens: number;
  /**
   * Tokens of the prompts that were written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Tokens of the answers that models thought, as far as their servers tell it.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * USD; requests to models without a price cost nothing.
   */
  cost: number;
  /**
   * Requests whose model had no price, which are not in `cost`.
   */
  unpriced_requests: number;
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
export interface Statement {
  object: "statement";
  /**
   * Such as 2026-09.
   */
  month: string;
  /**
   * Unix time in seconds.
   */
  start: number;
  /**
   * Unix seconds, not included. A request belongs to the month in which it began.
   */
  end: number;
  time_zone: "UTC";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Whether the month has ended; requests that still run then come in as they end.
   */
  is_over: boolean;
  /**
   * The address of this server.
   */
  installation: string;
  environment: "live" | "test" | "dev";
  currency: "USD";
  /**
   * Where a part of the month is before it: `unpriced_requests` are counted from then on. Null: in all of the month.
   */
  unpriced_since: number | null;
  account: {
    id: string;
    name: string;
  };
  /**
   * The part of the account's usage that it is of, a member's own for instance; empty: all of it.
   */
  of: {
    key?: string | null;
    key_name?: string | null;
    person?: string | null;
    person_name?: string | null;
    app?: string | null;
    app_name?: string | null;
    tag?: string | null;
  };
  group_by: ("key" | "person" | "model" | "app" | "tag")[];
  /**
   * Lines are by tag: a request with several tags is in the line of each, and counts once in `total`, which is what was used.
   */
  overlaps: boolean;
  /**
   * The most expensive first, 1000 at most. CSV has all.
   */
  lines: StatementLine[];
  /**
   * All lines that are not listed, as one; null: all are.
   */
  others: {
    requests: number;
    /**
     * All input, what was read from a cache and written to one included.
     */
    prompt_tokens: number;
    /**
     * A part of the input: read from a cache.
     */
    cached_tokens: number;
    /**
     * A part of the input: written to a cache.
     */
    cache_write_tokens: number;
    /**
     * All output, what models thought included.
     */
    completion_tokens: number;
    /**
     * A part of the output: what models thought, as far as their servers tell it.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Requests that failed.
     */
    errors: number;
    /**
     * Requests whose model had no price: they are in no cost.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals, to the last of which lines and total add up.
     */
    cost: string;
    /**
     * How many lines these are; null: too many to tell apart.
     */
    lines: number | null;
  } | null;
  total: {
    requests: number;
    /**
     * All input, what was read from a cache and written to one included.
     */
    prompt_tokens: number;
    /**
     * A part of the input: read from a cache.
     */
    cached_tokens: number;
    /**
     * A part of the input: written to a cache.
     */
    cache_write_tokens: number;
    /**
     * All output, what models thought included.
     */
    completion_tokens: number;
    /**
     * A part of the output: what models thought, as far as their servers tell it.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Requests that failed.
     */
    errors: number;
    /**
     * Requests whose model had no price: they are in no cost.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals, to the last of which lines and total add up.
     */
    cost: string;
  };
}
export interface StatementLine {
  /**
   * Id of the credential, as in the usage by key, where `group_by` has it.
   */
  key?: string | null;
  /**
   * What it is called; null where that is not for the caller to know.
   */
  key_name?: string | null;
  /**
   * Id of the person; null for what keys of the account used.
   */
  person?: string | null;
  person_name?: string | null;
  model?: string | null;
  /**
   * Id of the OAuth app; null for none.
   */
  app?: string | null;
  app_name?: string | null;
  /**
   * null: requests that have no tag.
   */
  tag?: string | null;
  requests: number;
  /**
   * All input, what was read from a cache and written to one included.
   */
  prompt_tokens: number;
  /**
   * A part of the input: read from a cache.
   */
  cached_tokens: number;
  /**
   * A part of the input: written to a cache.
   */
  cache_write_tokens: number;
  /**
   * All output, what models thought included.
   */
  completion_tokens: number;
  /**
   * A part of the output: what models thought, as far as their servers tell it.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * Requests that failed.
   */
  errors: number;
  /**
   * Requests whose model had no price: they are in no cost.
   */
  unpriced_requests: number;
  /**
   * USD with nine decimals, to the last of which lines and total add up.
   */
  cost: string;
}
export interface StatementOfAccounts {
  object: "statement";
  /**
   * Such as 2026-09.
   */
  month: string;
  /**
   * Unix time in seconds.
   */
  start: number;
  /**
   * Unix seconds, not included. A request belongs to the month in which it began.
   */
  end: number;
  time_zone: "UTC";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Whether the month has ended; requests that still run then come in as they end.
   */
  is_over: boolean;
  /**
   * The address of this server.
   */
  installation: string;
  environment: "live" | "test" | "dev";
  currency: "USD";
  /**
   * Where a part of the month is before it: `unpriced_requests` are counted from then on. Null: in all of the month.
   */
  unpriced_since: number | null;
  /**
   * Each account that used something, in the order in which accounts were made.
   */
  lines: {
    account: string;
    account_name: string;
    requests: number;
    /**
     * All input, what was read from a cache and written to one included.
     */
    prompt_tokens: number;
    /**
     * A part of the input: read from a cache.
     */
    cached_tokens: number;
    /**
     * A part of the input: written to a cache.
     */
    cache_write_tokens: number;
    /**
     * All output, what models thought included.
     */
    completion_tokens: number;
    /**
     * A part of the output: what models thought, as far as their servers tell it.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Requests that failed.
     */
    errors: number;
    /**
     * Requests whose model had no price: they are in no cost.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals, to the last of which lines and total add up.
     */
    cost: string;
  }[];
  total: {
    requests: number;
    /**
     * All input, what was read from a cache and written to one included.
     */
    prompt_tokens: number;
    /**
     * A part of the input: read from a cache.
     */
    cached_tokens: number;
    /**
     * A part of the input: written to a cache.
     */
    cache_write_tokens: number;
    /**
     * All output, what models thought included.
     */
    completion_tokens: number;
    /**
     * A part of the output: what models thought, as far as their servers tell it.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Requests that failed.
     */
    errors: number;
    /**
     * Requests whose model had no price: they are in no cost.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals, to the last of which lines and total add up.
     */
    cost: string;
  };
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
    | "key_requests"
    | "key_tokens"
    | "account_requests"
    | "account_tokens"
    | "key_quota"
    | "account_quota"
    | "member_quota"
    | "app_quota"
    | "capacity";
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
   * When it began, Unix seconds; of a refused one, when it was refused.
   */
  at: number;
  operation:
    | "chat"
    | "completion"
    | "embedding"
    | "response"
    | "message"
    | "rerank"
    | "score"
    | "moderation"
    | "decision"
    | "speech"
    | "transcription"
    | "translation"
    | "image"
    | "image_edit"
    | "image_variation"
    | "tokenize"
    | "detokenize"
    | "realtime"
    | "tool";
  /**
   * The model that was asked for, or the server and the tool (`github/search`); null where the request was refused before its body was read.
   */
  model: string | null;
  /**
   * Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app; null for none.
   */
  app: string | null;
  /**
   * null as for `model`.
   */
  stream: boolean | null;
  /**
   * What it is counted under; empty for a refused request, whatever it brought.
   */
  tags: string[];
  /**
   * cancelled: its client left; interrupted: the server's process ended before it did; refused: it was answered with an error before it began, so it is no part of the usage.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "refused";
  /**
   * `code` of the error that ended it.
   */
  error_code: string | null;
  /**
   * Status of that error; in a stream that had begun, what it would have been.
   */
  error_status: number | null;
  /**
   * What the client of a refused request was told, but for names that the client made up; else null.
   */
  error_message: string | null;
  prompt_tokens: number;
  /**
   * Tokens of the prompt that were read from a cache.
   */
  cached_tokens: number;
  /**
   * Tokens of the prompt that were written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Tokens of the answer that the model thought, as far as its server tells it.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * The tokens are an estimate: the model server did not tell, or was not believed.
   */
  estimated: boolean;
  /**
   * The model server was not believed: it told of more tokens than can have been, and these are the most, or of fewer than it delivered, and these are `estimated`.
   */
  capped: boolean;
  /**
   * The answer was one that was kept: no model was asked for it.
   */
  from_cache: boolean;
  /**
   * USD; null where the model has no price, and of a refused request.
   */
  cost: number | null;
  /**
   * Who answered; null where nobody did.
   */
  upstream: string | null;
  /**
   * How often a model server was asked.
   */
  attempts: number;
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
   * When it began, Unix seconds; of a refused one, when it was refused.
   */
  at: number;
  operation:
    | "chat"
    | "completion"
    | "embedding"
    | "response"
    | "message"
    | "rerank"
    | "score"
    | "moderation"
    | "decision"
    | "speech"
    | "transcription"
    | "translation"
    | "image"
    | "image_edit"
    | "image_variation"
    | "tokenize"
    | "detokenize"
    | "realtime"
    | "tool";
  /**
   * The model that was asked for, or the server and the tool (`github/search`); null where the request was refused before its body was read.
   */
  model: string | null;
  /**
   * Id of the credential: of a key, of a signed-in member (`mbr_…`), of what an app was allowed (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app; null for none.
   */
  app: string | null;
  /**
   * null as for `model`.
   */
  stream: boolean | null;
  /**
   * What it is counted under; empty for a refused request, whatever it brought.
   */
  tags: string[];
  /**
   * cancelled: its client left; interrupted: the server's process ended before it did; refused: it was answered with an error before it began, so it is no part of the usage.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "refused";
  /**
   * `code` of the error that ended it.
   */
  error_code: string | null;
  /**
   * Status of that error; in a stream that had begun, what it would have been.
   */
  error_status: number | null;
  /**
   * What the client of a refused request was told, but for names that the client made up; else null.
   */
  error_message: string | null;
  prompt_tokens: number;
  /**
   * Tokens of the prompt that were read from a cache.
   */
  cached_tokens: number;
  /**
   * Tokens of the prompt that were written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Tokens of the answer that the model thought, as far as its server tells it.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * The tokens are an estimate: the model server did not tell, or was not believed.
   */
  estimated: boolean;
  /**
   * The model server was not believed: it told of more tokens than can have been, and these are the most, or of fewer than it delivered, and these are `estimated`.
   */
  capped: boolean;
  /**
   * The answer was one that was kept: no model was asked for it.
   */
  from_cache: boolean;
  /**
   * USD; null where the model has no price, and of a refused request.
   */
  cost: number | null;
  /**
   * Who answered; null where nobody did.
   */
  upstream: string | null;
  /**
   * How often a model server was asked.
   */
  attempts: number;
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
   * What few model servers tell of their usage, and the bytes of a call of a tool; null where none was told.
   */
  usage_details: UsageDetails | null;
  /**
   * What was tried, oldest first. Empty where no model server was asked, and of requests that ended in failure before trails were kept. Of very many steps the first and the last are kept, and the last says how many are left out.
   */
  trail: RequestStep[];
  /**
   * Id of the stored chat completion that it made; null where none is kept, or for who may not read it.
   */
  chat: string | null;
  /**
   * What was said in a call of a tool, where `tools.record` keeps it; null likewise.
   */
  tool_content: {
    /**
     * JSON of what the tool was called with, cut where it is long.
     */
    arguments: string;
    /**
     * JSON of what it gave, likewise.
     */
    result: string;
  } | null;
}
export interface UsageDetails {
  /**
   * Tokens that were written to a cache for an hour.
   */
  cache_write_1h_tokens?: number;
  input_audio_tokens?: number;
  input_image_tokens?: number;
  output_audio_tokens?: number;
  output_image_tokens?: number;
  /**
   * Searches that the model server ran.
   */
  searches?: number;
  /**
   * Documents that were ranked or compared.
   */
  documents?: number;
  /**
   * Search units that its vendor counts for them.
   */
  search_units?: number;
  /**
   * Characters that were spoken.
   */
  characters?: number;
  /**
   * Whole seconds of sound that were listened to.
   */
  seconds?: number;
  /**
   * Images that were made.
   */
  images?: number;
  /**
   * Bytes of what a tool was called with, as JSON.
   */
  bytes_in?: number;
  /**
   * Bytes of what it gave, as JSON.
   */
  bytes_out?: number;
  /**
   * 1 where a tool said of its own result that it had failed.
   */
  tool_errors?: number;
  /**
   * 1 where the answer was one that was kept: the tokens are those of when it was made.
   */
  replayed?: number;
  /**
   * The tier, speed and region in which it says that it served.
   */
  served?: string[];
  /**
   * USD that the model's vendor says that it charges the operator; for operators.
   */
  billed?: number;
}
export interface RequestStep {
  /**
   * Which of the model servers of this trail, counted from 1; null where the step is about none.
   */
  server: number | null;
  /**
   * The model that was tried: the one that was asked for, or one that stands in for it.
   */
  model: string;
  /**
   * answered: it took the request; refused: it answered with an error; timed_out; unreachable: the connection failed; broke_off: its answer ended early or could not be read; no_room: it took the request, and the gateway, or its node, could hold no more of its answer; cancelled: the client left, or the server stopped, meanwhile; queue_full and queue_timeout: no place was free, so none was asked. Not asked either: resting, after failures; away, not connected or about to be taken out of service; not_retried, as too many requests for the model are second tries already; overflowed: by the policy of its model it went to a server that others come before; masked, blocked and noted: a guardrail found something in the request or in the answer; over_quota: not asked, as it costs more than a quota has left.
   */
  result:
    | "answered"
    | "refused"
    | "timed_out"
    | "unreachable"
    | "broke_off"
    | "no_room"
    | "cancelled"
    | "queue_full"
    | "queue_timeout"
    | "resting"
    | "away"
    | "not_retried"
    | "overflowed"
    | "masked"
    | "blocked"
    | "noted"
    | "over_quota";
  /**
   * HTTP status of its answer, where that was an error.
   */
  status: number | null;
  /**
   * Milliseconds from the start of the request.
   */
  started_ms: number;
  /**
   * Milliseconds that it took.
   */
  duration_ms: number;
  /**
   * Name of the model server; for operators, null for others.
   */
  upstream: string | null;
  /**
   * Its own id of the model; likewise.
   */
  upstream_model: string | null;
  /**
   * What it said, or what is known of the fault: cleaned of credentials and of what it repeats of the request, and cut; likewise.
   */
  reason: string | null;
  /**
   * How many steps before it are not kept: there were very many, or the server's disk was full. 0 otherwise.
   */
  left_out: number;
}
export interface Limits {
  object: "limits";
  /**
   * That of the credential.
   */
  environment: "live" | "test" | "dev";
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
  /**
   * All quotas that hold for this credential, those of the calendar month first: of the account, of the key, of what made it.
   */
  quotas: {
    /**
     * Whose it is: of a key also that of a key that made it, of a login the member's.
     */
    owner: "account" | "key" | "member" | "app";
    owner_id: string;
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * In this window; requests still running are left out.
     */
    used: number;
    /**
     * What is left of `amount`; 0 where more was used.
     */
    left: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop: boolean;
    /**
     * null: it begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
  }[];
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Where the limits hold; elsewhere there are none.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * The highest that requests of its accounts may have, in all environments.
   */
  priority: "low" | "normal" | "high";
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
  scopes?:
    ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[] | null;
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
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  never_leaves?: boolean | null;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Ids and patterns of the models that it may use; null: all.
   */
  models: string[] | null;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.
   */
  never_leaves: boolean;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Ids and patterns of the models that it may use; null: all.
   */
  models: string[] | null;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.
   */
  never_leaves: boolean;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
}
export interface ApiKeyDetails {
  object: "api_key";
  id: string;
  name: string;
  prefix: string;
  /**
   * The last four characters of the key.
   */
  last4: string;
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Ids and patterns of the models that it may use; null: all.
   */
  models: string[] | null;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.
   */
  never_leaves: boolean;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
  /**
   * What was used of each of `quotas`.
   */
  quotas_used: {
    /**
     * Whose it is: of a key also that of a key that made it, of a login the member's.
     */
    owner: "account" | "key" | "member" | "app";
    owner_id: string;
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * In this window; requests still running are left out.
     */
    used: number;
    /**
     * What is left of `amount`; 0 where more was used.
     */
    left: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop: boolean;
    /**
     * null: it begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
  }[];
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
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  expires_at?: number | null;
  allowed_ips?: string[] | null;
  rate_limit?: number | null;
  rate_limit_window?: number | null;
  monthly_tokens?: number | null;
  monthly_spend?: number | null;
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  /**
   * Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.
   */
  never_leaves?: boolean;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Ids and patterns of the models that it may use; null: all.
   */
  models: string[] | null;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.
   */
  never_leaves: boolean;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
  /**
   * The key itself. It is shown this once and not kept.
   */
  key: string;
  /**
   * Id of the old key.
   */
  replaces: string;
}
export interface CreateWebhookRequest {
  /**
   * Where events are posted to: https, on the public internet, without a user name in it.
   */
  url: string;
  description?: string | null;
  events?:
    | (
        | "quota.threshold"
        | "key.unused"
        | "key.expiring"
        | "errors.rate"
        | "upstream.down"
        | "upstream.up"
        | "node.away"
        | "node.back"
        | "tool.changed"
        | "webhook.test"
      )[]
    | null;
}
export interface WebhookWithSecret {
  object: "webhook";
  id: string;
  url: string;
  description: string;
  /**
   * Empty: all.
   */
  events: (
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "webhook.test"
  )[];
  /**
   * It gets events of this one; null: of the operators'.
   */
  environment: ("live" | "test" | "dev") | null;
  enabled: boolean;
  /**
   * `gone`: the receiver answered 410, so nothing more is sent until somebody enables it.
   */
  disabled_reason: "gone" | null;
  /**
   * Those that sign, the newest last.
   */
  secrets: WebhookSecret[];
  /**
   * Id of the person or key that made it.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * `whsec_…`, by which signatures are verified. It is shown this once.
   */
  secret: string;
}
export interface WebhookSecret {
  last4: string;
  /**
   * After a rotation: it signs until then.
   */
  expires_at: number | null;
}
export interface WebhookList {
  object: "list";
  data: Webhook[];
}
export interface Webhook {
  object: "webhook";
  id: string;
  url: string;
  description: string;
  /**
   * Empty: all.
   */
  events: (
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "webhook.test"
  )[];
  /**
   * It gets events of this one; null: of the operators'.
   */
  environment: ("live" | "test" | "dev") | null;
  enabled: boolean;
  /**
   * `gone`: the receiver answered 410, so nothing more is sent until somebody enables it.
   */
  disabled_reason: "gone" | null;
  /**
   * Those that sign, the newest last.
   */
  secrets: WebhookSecret[];
  /**
   * Id of the person or key that made it.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
/**
 * What is left out stays as it is; null clears.
 */
export interface UpdateWebhookRequest {
  /**
   * Where events are posted to: https, on the public internet, without a user name in it.
   */
  url?: string;
  description?: string | null;
  events?:
    | (
        | "quota.threshold"
        | "key.unused"
        | "key.expiring"
        | "errors.rate"
        | "upstream.down"
        | "upstream.up"
        | "node.away"
        | "node.back"
        | "tool.changed"
        | "webhook.test"
      )[]
    | null;
  /**
   * What waits for one that is disabled fails at its next attempt.
   */
  enabled?: boolean;
}
export interface DeletedWebhook {
  object: "webhook";
  id: string;
  deleted: true;
}
export interface RotateWebhookSecretRequest {
  /**
   * How long every delivery is signed with the old secret as well; 0: not at all. Default 86400.
   */
  overlap_seconds?: number | null;
}
export interface WebhookTest {
  object: "webhook_test";
  /**
   * The delivery with this `event_id` says what came of it.
   */
  event_id: string;
}
export interface WebhookDeliveryList {
  object: "list";
  data: WebhookDelivery[];
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
export interface WebhookDelivery {
  object: "webhook_delivery";
  id: string;
  /**
   * The `webhook-id` of all its attempts.
   */
  event_id: string;
  type:
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "webhook.test";
  /**
   * `failed`: it is not tried again.
   */
  state: "pending" | "delivered" | "failed";
  attempts: WebhookAttempt[];
  /**
   * Unix time in seconds.
   */
  created_at: number;
  next_attempt_at: number | null;
  ended_at: number | null;
}
export interface WebhookAttempt {
  /**
   * Unix time in seconds.
   */
  at: number;
  /**
   * The status of the answer; null: there was none.
   */
  status: number | null;
  /**
   * Why there was no answer: `timeout`, `not_connected`, `broke_off`, `no_http`, `name_not_found`, `address_not_public`, `not_https`, `disabled` and the like.
   */
  error: string | null;
  duration_ms: number;
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
   * The id of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * The secret of a confidential app that does not use HTTP Basic.
   */
  client_secret?: string;
  grant_type: "authorization_code" | "refresh_token" | "urn:ietf:params:oauth:grant-type:device_code";
  /**
   * For `authorization_code`.
   */
  code?: string;
  /**
   * The one of the authorization request; required where it was in there.
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
  /**
   * RFC 8707: where the access token is to work, the base URL of the API, or the address of `/mcp` or `/mcp/{server}`; may be repeated. At the token endpoint it narrows what was allowed.
   */
  resource?: string;
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
   * The scopes of the access token, separated by spaces.
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
   * The id of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * The secret of a confidential app that does not use HTTP Basic.
   */
  client_secret?: string;
  /**
   * Separated by spaces; default: all of the app's.
   */
  scope?: string;
  /**
   * RFC 8707: where the access token is to work, the base URL of the API, or the address of `/mcp` or `/mcp/{server}`; may be repeated. At the token endpoint it narrows what was allowed.
   */
  resource?: string;
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
   * The id of the app, where it is not in the `Authorization` header.
   */
  client_id?: string;
  /**
   * The secret of a confidential app that does not use HTTP Basic.
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
  aud?: string | string[];
  jti?: string;
}
export interface OAuthRegistrationRequest {
  /**
   * 1 to 20: https, http on 127.0.0.1, [::1] or localhost (any port), or a scheme of its own.
   */
  redirect_uris: string[];
  /**
   * Shown to people who are asked to allow it; at most 100 characters.
   */
  client_name?: string;
  /**
   * An https address, shown beside the name.
   */
  client_uri?: string;
  /**
   * `authorization_code` among them.
   */
  grant_types?: string[];
  /**
   * `code` among them.
   */
  response_types?: string[];
}
export interface OAuthRegistration {
  client_id: string;
  client_id_issued_at: number;
  client_name?: string;
  client_uri?: string;
  redirect_uris: string[];
  grant_types: string[];
  response_types: string[];
  token_endpoint_auth_method: "none";
  scope: string;
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
   * Shown to people who are asked to allow it; printable characters, and nothing that looks like the name of this server.
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
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use")[] | null;
  tools?: string[] | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
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
   * Shown to people who are asked to allow it; printable characters, and nothing that looks like the name of this server.
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
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use")[];
  tools?: string[] | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Quotas per window of what the app uses for you, in each environment.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * The first time that still counts.
   */
  allowed_at: number;
  last_used_at: number | null;
}
export interface AuthorizationDetails {
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Quotas per window of what the app uses for you, in each environment.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * The first time that still counts.
   */
  allowed_at: number;
  last_used_at: number | null;
  /**
   * What was used of each of `quotas` in this environment.
   */
  quotas_used: {
    /**
     * Whose it is: of a key also that of a key that made it, of a login the member's.
     */
    owner: "account" | "key" | "member" | "app";
    owner_id: string;
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * In this window; requests still running are left out.
     */
    used: number;
    /**
     * What is left of `amount`; 0 where more was used.
     */
    left: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop: boolean;
    /**
     * null: it begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
  }[];
}
/**
 * What is left out stays as it is; null clears.
 */
export interface UpdateAuthorizationRequest {
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  tools?: string[] | null;
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
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * The session of a browser; null for a token of `headrace login`.
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
   * What the browser called itself.
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
export interface NoticeSettings {
  object: "notice_settings";
  /**
   * Whether the person is told by mail.
   */
  mail: boolean;
  /**
   * Whether this server sends mail at all.
   */
  mail_is_sent: boolean;
}
export interface UpdateNoticeSettingsRequest {
  mail: boolean;
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
   * The id that came with the options.
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
   * Quotas per window, in each environment, of what the person does and makes as a member.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether a member sees the usage and requests of the whole account, never what was asked or answered. Owners and admins do in any case.
   */
  sees_all_usage: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * When a browser of theirs was last used here; null: not lately.
   */
  last_seen_at: number | null;
}
export interface MemberDetails {
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
   * Quotas per window, in each environment, of what the person does and makes as a member.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
  /**
   * Whether a member sees the usage and requests of the whole account, never what was asked or answered. Owners and admins do in any case.
   */
  sees_all_usage: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * When a browser of theirs was last used here; null: not lately.
   */
  last_seen_at: number | null;
  /**
   * What was used of each of `quotas` in the environment that is asked for.
   */
  quotas_used: {
    /**
     * Whose it is: of a key also that of a key that made it, of a login the member's.
     */
    owner: "account" | "key" | "member" | "app";
    owner_id: string;
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * In this window; requests still running are left out.
     */
    used: number;
    /**
     * What is left of `amount`; 0 where more was used.
     */
    left: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: whatever tags a request has.
     */
    tag: string | null;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop: boolean;
    /**
     * null: it begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
  }[];
}
/**
 * What is left out stays as it is; null clears the quotas, and the list of tools.
 */
export interface UpdateMemberRequest {
  /**
   * `member`: has keys, apps and chats of their own; `admin`: manages all of the account's; `owner`: its owners and admins as well.
   */
  role?: "owner" | "admin" | "member";
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  tools?: string[] | null;
  /**
   * Whether a member sees the usage and requests of the whole account, never what was asked or answered. Owners and admins do in any case.
   */
  sees_all_usage?: boolean;
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
export interface ToolConnectionList {
  object: "list";
  data: ToolConnection[];
}
export interface ToolConnection {
  object: "tool_connection";
  /**
   * The name of the MCP server.
   */
  server: string;
  title: string | null;
  /**
   * `broken`: it works no more until the account is connected again; `broken_because` says why. `unused`: the server is not there any more, or may not be used here; what was allowed there is kept until it is ended.
   */
  state: "none" | "connected" | "broken" | "unused";
  /**
   * The authorization server that gave the tokens.
   */
  issuer: string | null;
  /**
   * What was allowed there.
   */
  scopes: string[];
  connected_at: number | null;
  last_used_at: number | null;
  broken_because: string | null;
}
export interface ConnectToolsRequest {
  /**
   * The name of the MCP server.
   */
  server: string;
}
export interface ToolConnectionBegun {
  object: "tool_connection.begun";
  /**
   * The name of the MCP server.
   */
  server: string;
  /**
   * Where to send the browser now; it comes back within 15 minutes, in the same session.
   */
  url: string;
}
export interface ToolConnectionDeleted {
  object: "tool_connection.deleted";
  /**
   * The name of the MCP server.
   */
  server: string;
  deleted: true;
  /**
   * Whether the server's authorization server said that the tokens count no more.
   */
  revoked: boolean;
}
export interface ConnectedPersonList {
  object: "list";
  data: ConnectedPerson[];
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
export interface ConnectedPerson {
  object: "tool_connection.person";
  id: string;
  /**
   * The name of the MCP server.
   */
  server: string;
  person_id: string;
  account_id: string;
  state: "connected" | "broken";
  /**
   * Unix time in seconds.
   */
  connected_at: number;
  last_used_at: number | null;
}
export interface ToolClientDocument {
  client_id: string;
  client_name: string;
  client_uri: string;
  redirect_uris: string[];
  grant_types: string[];
  response_types: string[];
  token_endpoint_auth_method: "none";
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
    | "tool.decided"
    | "tool_server.created"
    | "tool_server.changed"
    | "tool_server.deleted"
    | "upstream.created"
    | "upstream.updated"
    | "upstream.deleted"
    | "model.created"
    | "model.updated"
    | "model.deleted"
    | "pulled_model.requested"
    | "pulled_model.deleted"
    | "model_process.changed"
    | "node.joined"
    | "node.updated"
    | "node.deleted"
    | "node.connected"
    | "node.disconnected"
    | "node_token.created"
    | "node_token.deleted"
    | "cache.cleared"
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
    | "grant.limited"
    | "grant.revoked"
    | "device.denied"
    | "device.approved"
    | "webhook.created"
    | "webhook.updated"
    | "webhook.secret_rotated"
    | "webhook.disabled"
    | "webhook.deleted"
    | "tool_connection.created"
    | "tool_connection.broken"
    | "tool_connection.deleted";
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
   * Quotas per window, in place of the tier's: a list, empty for none, or null for as the tier says. Per environment.
   */
  quotas:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
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
  tools?: string[] | null;
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
   * Quotas per window, in place of the tier's: a list, empty for none, or null for as the tier says. Per environment.
   */
  quotas:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats: boolean;
  /**
   * The tools that it may use, as `server` or `server/tool`; null: all that are offered.
   */
  tools: string[] | null;
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
      /**
       * Quotas per window.
       */
      windows: {
        /**
         * Whose it is: of a key also that of a key that made it, of a login the member's.
         */
        owner: "account" | "key" | "member" | "app";
        owner_id: string;
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * In this window; requests still running are left out.
         */
        used: number;
        /**
         * What is left of `amount`; 0 where more was used.
         */
        left: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window: "calendar" | "rolling";
        /**
         * null: all models.
         */
        models: string[] | null;
        /**
         * null: whatever tags a request has.
         */
        tag: string | null;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop: boolean;
        /**
         * null: it begins with the next use.
         */
        starts_at: number | null;
        resets_at: number | null;
      }[];
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
   * Quotas per window, in place of the tier's: a list, empty for none, or null for as the tier says. Per environment.
   */
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * Whether chat completions are stored where a request does not say.
   */
  store_chats?: boolean;
  tools?: string[] | null;
}
export interface CreateAccountKeyRequest {
  /**
   * What it is for; printable characters.
   */
  name: string;
  /**
   * What it may do, `admin:manage` included. Default: `chat:read chat:write models:read`.
   */
  scopes?:
    ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[] | null;
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
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  never_leaves?: boolean | null;
  /**
   * The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
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
   * Quotas per window, beside those of a calendar month.
   */
  quotas: {
    /**
     * `usd` by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Whole requests or tokens, or USD.
     */
    amount: number;
    /**
     * A span with a name, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
     */
    window: "calendar" | "rolling";
    /**
     * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Only requests that have this tag. Left out: whatever tags they have.
     */
    tag?: string;
    /**
     * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Where the limits hold; elsewhere there are none.
   *
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * The highest that requests of its accounts may have, in all environments, and the one of those that say none. Default: `normal`.
   */
  priority: "low" | "normal" | "high";
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
 * All of the tier: `null` is no limit, and so is what is left out of the members that may be left out.
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
  quotas?:
    | {
        /**
         * `usd` by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Whole requests or tokens, or USD.
         */
        amount: number;
        /**
         * A span with a name, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.
         */
        window?: "calendar" | "rolling";
        /**
         * Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Only requests that have this tag. Left out: whatever tags they have.
         */
        tag?: string;
        /**
         * Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * Where the limits hold; elsewhere there are none. Default: `live`, `test`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  priority?: ("low" | "normal" | "high") | null;
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
  source: "built-in" | "command" | "file" | "database" | "found" | "node";
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
   * Whether requests of keys with `never_leaves` may go there, as nothing that it is sent goes further. The built-in engine is local.
   */
  local: boolean;
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
   * The API that it speaks: `openai`, as most servers do, or `messages`, Anthropic's own.
   */
  api: "openai" | "messages";
  /**
   * Formats of conversations that it has, as far as is known now: as it was told, or as it was asked.
   */
  apis: ("chat" | "responses" | "messages")[];
  /**
   * Whether its settings name `apis`; else it is asked what it has.
   */
  names_apis: boolean;
  /**
   * Header that the key is sent in: `authorization` as a bearer token, `api-key` for Azure. null: `authorization`, or `x-api-key` where `api` is `messages`.
   */
  key_header: ("authorization" | "api-key" | "x-api-key") | null;
  /**
   * At most 20 parameters that the path of every request to it ends with, such as `api-version` of Azure.
   */
  query: {
    [k: string]: string;
  };
  /**
   * Whether each request has vLLM's `cache_salt`, another one for each account: no account finds in its cache what another asked.
   */
  cache_salt: boolean;
  /**
   * Whether each request has vLLM's `priority`, for a server with `--scheduling-policy priority`.
   */
  priority: boolean;
  /**
   * What `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` become: `hashed`, with the account, `as_sent` or `removed`. null: as sent where it is local, else hashed.
   */
  identifiers: ("hashed" | "as_sent" | "removed") | null;
  /**
   * What the last look found, every 30 s; `starting`: it was not asked yet. `draining` comes before the others.
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
   * Base URL of its API, nearly always ending in `/v1`, which may be left out where `api` is `messages`.
   */
  url: string;
  /**
   * Sent to it as `key_header` says. It is kept sealed and not shown again.
   */
  api_key?: string | null;
  /**
   * Whether to serve the models that it lists. Default true.
   */
  discover?: boolean | null;
  local?: boolean | null;
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
  /**
   * The API that it speaks: `messages` is Anthropic's own. Default `openai`.
   */
  api?: ("openai" | "messages") | null;
  /**
   * Formats of conversations that it has, each with all that its maker has in it; requests in the others are translated. null: it is asked what it has.
   */
  apis?: ("chat" | "responses" | "messages")[] | null;
  /**
   * Header that the key is sent in: `authorization` as a bearer token, `api-key` for Azure. null: `authorization`, or `x-api-key` where `api` is `messages`.
   */
  key_header?: ("authorization" | "api-key" | "x-api-key") | null;
  query?: {
    [k: string]: string;
  } | null;
  cache_salt?: boolean | null;
  priority?: boolean | null;
  /**
   * What `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` become: `hashed`, with the account, `as_sent` or `removed`. null: as sent where it is local, else hashed.
   */
  identifiers?: ("hashed" | "as_sent" | "removed") | null;
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
   * Becomes false where `url` moves to another server, unless it is there as well.
   */
  local?: boolean;
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
   * The API that it speaks: `openai`, as most servers do, or `messages`, Anthropic's own.
   */
  api?: "openai" | "messages";
  /**
   * Formats of conversations that it has, each with all that its maker has in it; requests in the others are translated. null: it is asked what it has.
   */
  apis?: ("chat" | "responses" | "messages")[] | null;
  /**
   * Header that the key is sent in: `authorization` as a bearer token, `api-key` for Azure. null: `authorization`, or `x-api-key` where `api` is `messages`.
   */
  key_header?: ("authorization" | "api-key" | "x-api-key") | null;
  query?: {
    [k: string]: string;
  } | null;
  cache_salt?: boolean | null;
  priority?: boolean | null;
  /**
   * What `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` become: `hashed`, with the account, `as_sent` or `removed`. null: as sent where it is local, else hashed.
   */
  identifiers?: ("hashed" | "as_sent" | "removed") | null;
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
   * The name of an upstream that there is; alone.
   */
  name?: string;
  /**
   * The address of a server to try; no stored key is sent to it.
   */
  url?: string;
  /**
   * Only with `url`, as are those that follow.
   */
  api_key?: string | null;
  /**
   * The API that it speaks: `messages` is Anthropic's own. Default `openai`.
   */
  api?: ("openai" | "messages") | null;
  /**
   * Formats of conversations that it has, each with all that its maker has in it; requests in the others are translated. null: it is asked what it has.
   */
  apis?: ("chat" | "responses" | "messages")[] | null;
  /**
   * Header that the key is sent in: `authorization` as a bearer token, `api-key` for Azure. null: `authorization`, or `x-api-key` where `api` is `messages`.
   */
  key_header?: ("authorization" | "api-key" | "x-api-key") | null;
  query?: {
    [k: string]: string;
  } | null;
  cache_salt?: boolean | null;
  priority?: boolean | null;
  /**
   * What `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` become: `hashed`, with the account, `as_sent` or `removed`. null: as sent where it is local, else hashed.
   */
  identifiers?: ("hashed" | "as_sent" | "removed") | null;
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
   * Formats of conversations that it has; none where it is not ok.
   */
  apis: ("chat" | "responses" | "messages")[];
  /**
   * What went wrong; null where it is ok.
   */
  error: string | null;
}
export interface ManagedModelList {
  object: "list";
  data: ManagedModel[];
}
export interface ManagedModel {
  object: "managed_model";
  id: string;
  /**
   * Who declares it. `file`: headrace.yaml, where alone it is changed; `database`: this API; `upstream`: nobody, it is offered as an upstream lists it.
   */
  source: "file" | "database" | "upstream";
  /**
   * Whether it was declared here as well, which does not count while the file has the id.
   */
  overrides_database: boolean;
  /**
   * How many of its deployments are `ok`: all, some or none of them; `nowhere`: it has none, as no upstream lists it, or those that it names are gone.
   */
  status: "ok" | "partly" | "down" | "nowhere";
  owned_by: string | null;
  /**
   * null where nobody says.
   */
  capabilities: {
    /**
     * Answers chat completions.
     */
    chat?: boolean;
    /**
     * Answers legacy completions.
     */
    completion?: boolean;
    /**
     * Makes embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents by a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Tells what in a text or an image is harmful.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Speaks a text.
     */
    speech?: boolean;
    /**
     * Writes down what is said in a recording, or its translation.
     */
    transcription?: boolean;
    /**
     * Makes images, and edits them.
     */
    images?: boolean;
    /**
     * Talks over a WebSocket, in audio or text, as it is said.
     */
    realtime?: boolean;
    /**
     * Tells the tokens of a text, and the text of tokens.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Tokens of prompt and answer together; null where nobody says.
   */
  context_length: number | null;
  /**
   * Environments whose keys may use it.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * null: it has none, costs nothing, and no quota of USD counts it.
   */
  price: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  } | null;
  deployments: {
    upstream: string;
    model: string;
    weight: number;
    /**
     * `missing`: there is no upstream of this name any more; the others as in `GET /v1/model-status`.
     */
    state: "ok" | "unreachable" | "cooling_down" | "draining" | "missing";
    /**
     * The state of the process that serves it, where that is started for requests; else null.
     */
    process:
      ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
    /**
     * Whether the upstream listed the model when it was last reached; null: it never was. Some list less than they serve.
     */
    listed: boolean | null;
  }[];
  fallbacks: string[];
  aliases: string[];
  /**
   * What its overflow has cost at all replicas in the span that is now; null where `policies.overflow` has no `spend`.
   */
  overflow_spend: {
    per: "hour" | "day" | "week" | "month";
    /**
     * USD, with what is set aside for requests that are under way.
     */
    spent: number;
    /**
     * USD.
     */
    limit: number;
    /**
     * When the span is over, and the next begins at 0.
     */
    ends_at: number;
  } | null;
  /**
   * What the file or this API says of it; the members above are what comes of that and of what upstreams tell.
   */
  settings: {
    /**
     * Owner label in the model list. null: as the upstream tells.
     */
    owned_by: string | null;
    /**
     * What it can do; what is left out is unknown, and its server decides. null: as the upstream tells.
     */
    capabilities: {
      /**
       * Answers chat completions.
       */
      chat?: boolean;
      /**
       * Answers legacy completions.
       */
      completion?: boolean;
      /**
       * Makes embeddings.
       */
      embeddings?: boolean;
      /**
       * Ranks documents by a query, and scores texts.
       */
      rerank?: boolean;
      /**
       * Tells what in a text or an image is harmful.
       */
      moderation?: boolean;
      /**
       * Answers typed questions with probabilities.
       */
      decisions?: boolean;
      /**
       * Speaks a text.
       */
      speech?: boolean;
      /**
       * Writes down what is said in a recording, or its translation.
       */
      transcription?: boolean;
      /**
       * Makes images, and edits them.
       */
      images?: boolean;
      /**
       * Talks over a WebSocket, in audio or text, as it is said.
       */
      realtime?: boolean;
      /**
       * Tells the tokens of a text, and the text of tokens.
       */
      tokenize?: boolean;
    } | null;
    /**
     * Tokens of prompt and answer together. null: as the upstream tells, else unbounded.
     */
    context_length: number | null;
    /**
     * Environments whose keys may use it; a model without deployments of its own is never offered to more than its upstreams allow. null: as those allow, and `live`, `dev` for a model with deployments of its own.
     */
    environments: ("live" | "test" | "dev")[] | null;
    /**
     * What usage costs, of requests that begin after the change. null: as `price_of` says, else nothing is charged.
     */
    price: {
      /**
       * USD per million tokens of the prompt.
       */
      input: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
      /**
       * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
       *
       * @maxItems 16
       */
      variants?: {
        /**
         * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
         */
        context_above?: number;
        /**
         * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
         */
        served?: string;
        /**
         * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
         */
        from?: string;
        /**
         * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
         *
         * @minItems 1
         * @maxItems 8
         */
        hours?: string[];
        /**
         * For requests that begin on these days of the week (UTC).
         *
         * @minItems 1
         * @maxItems 7
         */
        days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
        /**
         * What all rates for tokens are multiplied with then, those of this variant included.
         */
        factor?: number;
        /**
         * USD per million tokens of the prompt.
         */
        input?: number;
        /**
         * USD per million tokens of what of it was read from a cache. Left out: as `input`.
         */
        cached_input?: number;
        /**
         * USD per million tokens of what of it was written to a cache. Left out: as `input`.
         */
        cache_write?: number;
        /**
         * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
         */
        cache_write_1h?: number;
        /**
         * USD per million tokens of audio in the prompt. Left out: as `input`.
         */
        input_audio?: number;
        /**
         * USD per million tokens of images in the prompt. Left out: as `input`.
         */
        input_image?: number;
        /**
         * USD per million tokens of the answer.
         */
        output?: number;
        /**
         * USD per million tokens of what the model thought. Left out: as `output`.
         */
        reasoning?: number;
        /**
         * USD per million tokens of audio in the answer. Left out: as `output`.
         */
        output_audio?: number;
        /**
         * USD per million tokens of images in the answer. Left out: as `output`.
         */
        output_image?: number;
        /**
         * USD for a request.
         */
        request?: number;
        /**
         * USD for a search that the model server ran.
         */
        search?: number;
        /**
         * USD for a document that is ranked or compared.
         */
        document?: number;
        /**
         * USD for a query over up to 100 documents.
         */
        search_unit?: number;
        /**
         * USD for a character that is spoken.
         */
        character?: number;
        /**
         * USD for a second of sound that is listened to.
         */
        second?: number;
        /**
         * USD for an image that is made.
         */
        image?: number;
      }[];
    } | null;
    /**
     * A model of the price list, as `headrace prices` names it (`vendor/model`): its price, where `price` is null.
     */
    price_of: string | null;
    /**
     * Where it runs; requests are spread by weight. null or none: wherever a model of this id is found, at upstreams, nodes and the built-in engine.
     */
    deployments:
      | {
          /**
           * Name of an upstream or node, or `built-in` for the built-in engine.
           */
          upstream: string;
          /**
           * The upstream's own id of the model. Default: the id of this one.
           */
          model?: string | null;
          /**
           * Share of the requests, relative to the other deployments. Default 1.
           */
          weight?: number | null;
        }[]
      | null;
    /**
     * Models that answer in its place, the first that can, where none of its deployments answers or has room. The answer says which model it is, and is priced as that one.
     */
    fallbacks: string[] | null;
    /**
     * Other names by which clients may ask for it, or, with a `*` at the end, all names that begin so: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model of that id comes first, then the name itself, then the longest beginning. No two models have the same alias.
     */
    aliases: string[] | null;
    /**
     * What is done with its requests beyond that they are answered. Each that is left out of a change stays, and null takes one away, or all of them.
     */
    policies: {
      /**
       * Whether a stream that its server cuts goes on at another deployment, where the text can be continued exactly.
       */
      continuation?: boolean | null;
      /**
       * Deployments that are asked only where the others keep a request waiting, or as is said here.
       */
      overflow?: {
        /**
         * The upstreams whose deployments of the model come behind all others, the cheapest first.
         *
         * @minItems 1
         * @maxItems 16
         */
        to: {
          /**
           * Name of an upstream or node that has a deployment of the model.
           */
          upstream: string;
          /**
           * What its use costs you, by which the cheapest is asked first, in the keys of `price` of a model. Left out: as `cost_of` says, else as the model is priced.
           */
          cost?: {
            /**
             * USD per million tokens of the prompt.
             */
            input: number;
            /**
             * USD per million tokens of what of it was read from a cache. Left out: as `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of what of it was written to a cache. Left out: as `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Left out: as `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Left out: as `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output: number;
            /**
             * USD per million tokens of what the model thought. Left out: as `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Left out: as `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Left out: as `output`.
             */
            output_image?: number;
            /**
             * USD for a request.
             */
            request?: number;
            /**
             * USD for a search that the model server ran.
             */
            search?: number;
            /**
             * USD for a document that is ranked or compared.
             */
            document?: number;
            /**
             * USD for a query over up to 100 documents.
             */
            search_unit?: number;
            /**
             * USD for a character that is spoken.
             */
            character?: number;
            /**
             * USD for a second of sound that is listened to.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
            /**
             * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
             *
             * @maxItems 16
             */
            variants?: {
              /**
               * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
               */
              context_above?: number;
              /**
               * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
               */
              served?: string;
              /**
               * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
               */
              from?: string;
              /**
               * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
               *
               * @minItems 1
               * @maxItems 8
               */
              hours?: string[];
              /**
               * For requests that begin on these days of the week (UTC).
               *
               * @minItems 1
               * @maxItems 7
               */
              days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
              /**
               * What all rates for tokens are multiplied with then, those of this variant included.
               */
              factor?: number;
              /**
               * USD per million tokens of the prompt.
               */
              input?: number;
              /**
               * USD per million tokens of what of it was read from a cache. Left out: as `input`.
               */
              cached_input?: number;
              /**
               * USD per million tokens of what of it was written to a cache. Left out: as `input`.
               */
              cache_write?: number;
              /**
               * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
               */
              cache_write_1h?: number;
              /**
               * USD per million tokens of audio in the prompt. Left out: as `input`.
               */
              input_audio?: number;
              /**
               * USD per million tokens of images in the prompt. Left out: as `input`.
               */
              input_image?: number;
              /**
               * USD per million tokens of the answer.
               */
              output?: number;
              /**
               * USD per million tokens of what the model thought. Left out: as `output`.
               */
              reasoning?: number;
              /**
               * USD per million tokens of audio in the answer. Left out: as `output`.
               */
              output_audio?: number;
              /**
               * USD per million tokens of images in the answer. Left out: as `output`.
               */
              output_image?: number;
              /**
               * USD for a request.
               */
              request?: number;
              /**
               * USD for a search that the model server ran.
               */
              search?: number;
              /**
               * USD for a document that is ranked or compared.
               */
              document?: number;
              /**
               * USD for a query over up to 100 documents.
               */
              search_unit?: number;
              /**
               * USD for a character that is spoken.
               */
              character?: number;
              /**
               * USD for a second of sound that is listened to.
               */
              second?: number;
              /**
               * USD for an image that is made.
               */
              image?: number;
            }[];
          } | null;
          /**
           * A model of the price list, as `headrace prices` names it: what its use costs you where `cost` does not say it.
           */
          cost_of?: string | null;
        }[];
        /**
         * They are asked where the others are expected to keep a request waiting for this long. Left out: a wait is no reason.
         */
        after_seconds?: number | null;
        /**
         * They are asked for prompts of more tokens than this. Left out: the length of a prompt is no reason.
         */
        prompt_tokens_above?: number | null;
        /**
         * Parts of a day (UTC) at which they are asked as any other, such as `18:00-08:00`. Left out: none.
         */
        hours?: string[] | null;
        /**
         * The most that one request may be expected to cost there, in USD. Left out: any.
         */
        most_usd_per_request?: number | null;
        /**
         * What all requests together may cost there. Left out: any.
         */
        spend?: {
          /**
           * What may be spent in each span, in USD.
           */
          usd: number;
          /**
           * The span, by the calendar in UTC; a week begins on Monday.
           */
          per: "hour" | "day" | "week" | "month";
        } | null;
      } | null;
      /**
       * Answers that are kept, to be given again to the same account.
       */
      cache?: {
        /**
         * Which requests: `deterministic` for those of temperature 0 and those that ask for it, `asked` for those that ask for it alone, `all` for every one. Left out: `deterministic`.
         */
        requests?: ("deterministic" | "asked" | "all") | null;
        /**
         * How long an answer is kept. Left out: 3600.
         */
        ttl_seconds?: number | null;
        /**
         * The part of its price that an answer costs which is given again. Left out: 0.
         */
        price_factor?: number | null;
        /**
         * Whether requests that mean the same get the same answer. Left out: only the same request does.
         */
        semantic?: {
          /**
           * Id of the embedding model by which they are compared.
           */
          model: string;
          /**
           * Cosine similarity from which on two requests count as the same.
           */
          threshold: number;
        } | null;
      } | null;
      /**
       * Names of `guardrails` that look at its requests and answers, in this order.
       */
      guardrails?: string[] | null;
      /**
       * A second model that gets a share of its requests as well, its answers unseen.
       */
      shadow?: {
        /**
         * Id of the model that gets them as well.
         */
        model: string;
        /**
         * Share of the requests in percent, above 0.
         */
        percent: number;
      } | null;
      /**
       * Models that answer a share of its requests in its place. What is left stays with the model itself.
       */
      split?:
        | {
            /**
             * Id of the model that answers.
             */
            model: string;
            /**
             * Share of the requests in percent, above 0.
             */
            percent: number;
          }[]
        | null;
    } | null;
  } | null;
  /**
   * When it was declared here; null where it was not.
   */
  created_at: number | null;
}
export interface CreateManagedModelRequest {
  /**
   * The id clients send: printable ASCII characters without spaces. That of a found model, or a new one.
   */
  id: string;
  /**
   * Owner label in the model list. null: as the upstream tells.
   */
  owned_by?: string | null;
  /**
   * What it can do; what is left out is unknown, and its server decides. null: as the upstream tells.
   */
  capabilities?: {
    /**
     * Answers chat completions.
     */
    chat?: boolean;
    /**
     * Answers legacy completions.
     */
    completion?: boolean;
    /**
     * Makes embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents by a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Tells what in a text or an image is harmful.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Speaks a text.
     */
    speech?: boolean;
    /**
     * Writes down what is said in a recording, or its translation.
     */
    transcription?: boolean;
    /**
     * Makes images, and edits them.
     */
    images?: boolean;
    /**
     * Talks over a WebSocket, in audio or text, as it is said.
     */
    realtime?: boolean;
    /**
     * Tells the tokens of a text, and the text of tokens.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Tokens of prompt and answer together. null: as the upstream tells, else unbounded.
   */
  context_length?: number | null;
  /**
   * Environments whose keys may use it; a model without deployments of its own is never offered to more than its upstreams allow. null: as those allow, and `live`, `dev` for a model with deployments of its own.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * What usage costs, of requests that begin after the change. null: as `price_of` says, else nothing is charged.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     *
     * @maxItems 16
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  } | null;
  /**
   * A model of the price list, as `headrace prices` names it (`vendor/model`): its price, where `price` is null.
   */
  price_of?: string | null;
  /**
   * Where it runs; requests are spread by weight. null or none: wherever a model of this id is found, at upstreams, nodes and the built-in engine.
   */
  deployments?:
    | {
        /**
         * Name of an upstream or node, or `built-in` for the built-in engine.
         */
        upstream: string;
        /**
         * The upstream's own id of the model. Default: the id of this one.
         */
        model?: string | null;
        /**
         * Share of the requests, relative to the other deployments. Default 1.
         */
        weight?: number | null;
      }[]
    | null;
  /**
   * Models that answer in its place, the first that can, where none of its deployments answers or has room. The answer says which model it is, and is priced as that one.
   */
  fallbacks?: string[] | null;
  /**
   * Other names by which clients may ask for it, or, with a `*` at the end, all names that begin so: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model of that id comes first, then the name itself, then the longest beginning. No two models have the same alias.
   */
  aliases?: string[] | null;
  /**
   * What is done with its requests beyond that they are answered. Each that is left out of a change stays, and null takes one away, or all of them.
   */
  policies?: {
    /**
     * Whether a stream that its server cuts goes on at another deployment, where the text can be continued exactly.
     */
    continuation?: boolean | null;
    /**
     * Deployments that are asked only where the others keep a request waiting, or as is said here.
     */
    overflow?: {
      /**
       * The upstreams whose deployments of the model come behind all others, the cheapest first.
       *
       * @minItems 1
       * @maxItems 16
       */
      to: {
        /**
         * Name of an upstream or node that has a deployment of the model.
         */
        upstream: string;
        /**
         * What its use costs you, by which the cheapest is asked first, in the keys of `price` of a model. Left out: as `cost_of` says, else as the model is priced.
         */
        cost?: {
          /**
           * USD per million tokens of the prompt.
           */
          input: number;
          /**
           * USD per million tokens of what of it was read from a cache. Left out: as `input`.
           */
          cached_input?: number;
          /**
           * USD per million tokens of what of it was written to a cache. Left out: as `input`.
           */
          cache_write?: number;
          /**
           * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
           */
          cache_write_1h?: number;
          /**
           * USD per million tokens of audio in the prompt. Left out: as `input`.
           */
          input_audio?: number;
          /**
           * USD per million tokens of images in the prompt. Left out: as `input`.
           */
          input_image?: number;
          /**
           * USD per million tokens of the answer.
           */
          output: number;
          /**
           * USD per million tokens of what the model thought. Left out: as `output`.
           */
          reasoning?: number;
          /**
           * USD per million tokens of audio in the answer. Left out: as `output`.
           */
          output_audio?: number;
          /**
           * USD per million tokens of images in the answer. Left out: as `output`.
           */
          output_image?: number;
          /**
           * USD for a request.
           */
          request?: number;
          /**
           * USD for a search that the model server ran.
           */
          search?: number;
          /**
           * USD for a document that is ranked or compared.
           */
          document?: number;
          /**
           * USD for a query over up to 100 documents.
           */
          search_unit?: number;
          /**
           * USD for a character that is spoken.
           */
          character?: number;
          /**
           * USD for a second of sound that is listened to.
           */
          second?: number;
          /**
           * USD for an image that is made.
           */
          image?: number;
          /**
           * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
           *
           * @maxItems 16
           */
          variants?: {
            /**
             * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
             */
            context_above?: number;
            /**
             * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
             */
            served?: string;
            /**
             * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
             */
            from?: string;
            /**
             * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
             *
             * @minItems 1
             * @maxItems 8
             */
            hours?: string[];
            /**
             * For requests that begin on these days of the week (UTC).
             *
             * @minItems 1
             * @maxItems 7
             */
            days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
            /**
             * What all rates for tokens are multiplied with then, those of this variant included.
             */
            factor?: number;
            /**
             * USD per million tokens of the prompt.
             */
            input?: number;
            /**
             * USD per million tokens of what of it was read from a cache. Left out: as `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of what of it was written to a cache. Left out: as `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Left out: as `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Left out: as `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output?: number;
            /**
             * USD per million tokens of what the model thought. Left out: as `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Left out: as `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Left out: as `output`.
             */
            output_image?: number;
            /**
             * USD for a request.
             */
            request?: number;
            /**
             * USD for a search that the model server ran.
             */
            search?: number;
            /**
             * USD for a document that is ranked or compared.
             */
            document?: number;
            /**
             * USD for a query over up to 100 documents.
             */
            search_unit?: number;
            /**
             * USD for a character that is spoken.
             */
            character?: number;
            /**
             * USD for a second of sound that is listened to.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
          }[];
        } | null;
        /**
         * A model of the price list, as `headrace prices` names it: what its use costs you where `cost` does not say it.
         */
        cost_of?: string | null;
      }[];
      /**
       * They are asked where the others are expected to keep a request waiting for this long. Left out: a wait is no reason.
       */
      after_seconds?: number | null;
      /**
       * They are asked for prompts of more tokens than this. Left out: the length of a prompt is no reason.
       */
      prompt_tokens_above?: number | null;
      /**
       * Parts of a day (UTC) at which they are asked as any other, such as `18:00-08:00`. Left out: none.
       */
      hours?: string[] | null;
      /**
       * The most that one request may be expected to cost there, in USD. Left out: any.
       */
      most_usd_per_request?: number | null;
      /**
       * What all requests together may cost there. Left out: any.
       */
      spend?: {
        /**
         * What may be spent in each span, in USD.
         */
        usd: number;
        /**
         * The span, by the calendar in UTC; a week begins on Monday.
         */
        per: "hour" | "day" | "week" | "month";
      } | null;
    } | null;
    /**
     * Answers that are kept, to be given again to the same account.
     */
    cache?: {
      /**
       * Which requests: `deterministic` for those of temperature 0 and those that ask for it, `asked` for those that ask for it alone, `all` for every one. Left out: `deterministic`.
       */
      requests?: ("deterministic" | "asked" | "all") | null;
      /**
       * How long an answer is kept. Left out: 3600.
       */
      ttl_seconds?: number | null;
      /**
       * The part of its price that an answer costs which is given again. Left out: 0.
       */
      price_factor?: number | null;
      /**
       * Whether requests that mean the same get the same answer. Left out: only the same request does.
       */
      semantic?: {
        /**
         * Id of the embedding model by which they are compared.
         */
        model: string;
        /**
         * Cosine similarity from which on two requests count as the same.
         */
        threshold: number;
      } | null;
    } | null;
    /**
     * Names of `guardrails` that look at its requests and answers, in this order.
     */
    guardrails?: string[] | null;
    /**
     * A second model that gets a share of its requests as well, its answers unseen.
     */
    shadow?: {
      /**
       * Id of the model that gets them as well.
       */
      model: string;
      /**
       * Share of the requests in percent, above 0.
       */
      percent: number;
    } | null;
    /**
     * Models that answer a share of its requests in its place. What is left stays with the model itself.
     */
    split?:
      | {
          /**
           * Id of the model that answers.
           */
          model: string;
          /**
           * Share of the requests in percent, above 0.
           */
          percent: number;
        }[]
      | null;
  } | null;
}
/**
 * What is left out stays as it is; null takes away what was set.
 */
export interface UpdateManagedModelRequest {
  /**
   * Owner label in the model list. null: as the upstream tells.
   */
  owned_by?: string | null;
  /**
   * What it can do; what is left out is unknown, and its server decides. null: as the upstream tells.
   */
  capabilities?: {
    /**
     * Answers chat completions.
     */
    chat?: boolean;
    /**
     * Answers legacy completions.
     */
    completion?: boolean;
    /**
     * Makes embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents by a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Tells what in a text or an image is harmful.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Speaks a text.
     */
    speech?: boolean;
    /**
     * Writes down what is said in a recording, or its translation.
     */
    transcription?: boolean;
    /**
     * Makes images, and edits them.
     */
    images?: boolean;
    /**
     * Talks over a WebSocket, in audio or text, as it is said.
     */
    realtime?: boolean;
    /**
     * Tells the tokens of a text, and the text of tokens.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Tokens of prompt and answer together. null: as the upstream tells, else unbounded.
   */
  context_length?: number | null;
  /**
   * Environments whose keys may use it; a model without deployments of its own is never offered to more than its upstreams allow. null: as those allow, and `live`, `dev` for a model with deployments of its own.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * What usage costs, of requests that begin after the change. null: as `price_of` says, else nothing is charged.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of what of it was read from a cache. Left out: as `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of what of it was written to a cache. Left out: as `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Left out: as `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Left out: as `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of what the model thought. Left out: as `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Left out: as `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Left out: as `output`.
     */
    output_image?: number;
    /**
     * USD for a request.
     */
    request?: number;
    /**
     * USD for a search that the model server ran.
     */
    search?: number;
    /**
     * USD for a document that is ranked or compared.
     */
    document?: number;
    /**
     * USD for a query over up to 100 documents.
     */
    search_unit?: number;
    /**
     * USD for a character that is spoken.
     */
    character?: number;
    /**
     * USD for a second of sound that is listened to.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
     *
     * @maxItems 16
     */
    variants?: {
      /**
       * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
       */
      context_above?: number;
      /**
       * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * For requests that begin on these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * What all rates for tokens are multiplied with then, those of this variant included.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of what of it was read from a cache. Left out: as `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of what of it was written to a cache. Left out: as `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Left out: as `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Left out: as `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of what the model thought. Left out: as `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Left out: as `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Left out: as `output`.
       */
      output_image?: number;
      /**
       * USD for a request.
       */
      request?: number;
      /**
       * USD for a search that the model server ran.
       */
      search?: number;
      /**
       * USD for a document that is ranked or compared.
       */
      document?: number;
      /**
       * USD for a query over up to 100 documents.
       */
      search_unit?: number;
      /**
       * USD for a character that is spoken.
       */
      character?: number;
      /**
       * USD for a second of sound that is listened to.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  } | null;
  /**
   * A model of the price list, as `headrace prices` names it (`vendor/model`): its price, where `price` is null.
   */
  price_of?: string | null;
  /**
   * Where it runs; requests are spread by weight. null or none: wherever a model of this id is found, at upstreams, nodes and the built-in engine.
   */
  deployments?:
    | {
        /**
         * Name of an upstream or node, or `built-in` for the built-in engine.
         */
        upstream: string;
        /**
         * The upstream's own id of the model. Default: the id of this one.
         */
        model?: string | null;
        /**
         * Share of the requests, relative to the other deployments. Default 1.
         */
        weight?: number | null;
      }[]
    | null;
  /**
   * Models that answer in its place, the first that can, where none of its deployments answers or has room. The answer says which model it is, and is priced as that one.
   */
  fallbacks?: string[] | null;
  /**
   * Other names by which clients may ask for it, or, with a `*` at the end, all names that begin so: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model of that id comes first, then the name itself, then the longest beginning. No two models have the same alias.
   */
  aliases?: string[] | null;
  /**
   * What is done with its requests beyond that they are answered. Each that is left out of a change stays, and null takes one away, or all of them.
   */
  policies?: {
    /**
     * Whether a stream that its server cuts goes on at another deployment, where the text can be continued exactly.
     */
    continuation?: boolean | null;
    /**
     * Deployments that are asked only where the others keep a request waiting, or as is said here.
     */
    overflow?: {
      /**
       * The upstreams whose deployments of the model come behind all others, the cheapest first.
       *
       * @minItems 1
       * @maxItems 16
       */
      to: {
        /**
         * Name of an upstream or node that has a deployment of the model.
         */
        upstream: string;
        /**
         * What its use costs you, by which the cheapest is asked first, in the keys of `price` of a model. Left out: as `cost_of` says, else as the model is priced.
         */
        cost?: {
          /**
           * USD per million tokens of the prompt.
           */
          input: number;
          /**
           * USD per million tokens of what of it was read from a cache. Left out: as `input`.
           */
          cached_input?: number;
          /**
           * USD per million tokens of what of it was written to a cache. Left out: as `input`.
           */
          cache_write?: number;
          /**
           * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
           */
          cache_write_1h?: number;
          /**
           * USD per million tokens of audio in the prompt. Left out: as `input`.
           */
          input_audio?: number;
          /**
           * USD per million tokens of images in the prompt. Left out: as `input`.
           */
          input_image?: number;
          /**
           * USD per million tokens of the answer.
           */
          output: number;
          /**
           * USD per million tokens of what the model thought. Left out: as `output`.
           */
          reasoning?: number;
          /**
           * USD per million tokens of audio in the answer. Left out: as `output`.
           */
          output_audio?: number;
          /**
           * USD per million tokens of images in the answer. Left out: as `output`.
           */
          output_image?: number;
          /**
           * USD for a request.
           */
          request?: number;
          /**
           * USD for a search that the model server ran.
           */
          search?: number;
          /**
           * USD for a document that is ranked or compared.
           */
          document?: number;
          /**
           * USD for a query over up to 100 documents.
           */
          search_unit?: number;
          /**
           * USD for a character that is spoken.
           */
          character?: number;
          /**
           * USD for a second of sound that is listened to.
           */
          second?: number;
          /**
           * USD for an image that is made.
           */
          image?: number;
          /**
           * Rates that hold in place of the others where all of what one says applies; later ones win, and factors multiply. At most 16.
           *
           * @maxItems 16
           */
          variants?: {
            /**
             * For prompts of more tokens than this, those that were cached included: they are the rates of all of its tokens.
             */
            context_above?: number;
            /**
             * Where the model server says that it served in this tier, speed or region, such as `flex`, `fast` or `us`.
             */
            served?: string;
            /**
             * For requests that begin at this time or later: `2026-12-01` or `2026-12-01T08:00:00Z`.
             */
            from?: string;
            /**
             * For requests that begin in one of these parts of a day (UTC), such as `01:00-04:00`.
             *
             * @minItems 1
             * @maxItems 8
             */
            hours?: string[];
            /**
             * For requests that begin on these days of the week (UTC).
             *
             * @minItems 1
             * @maxItems 7
             */
            days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
            /**
             * What all rates for tokens are multiplied with then, those of this variant included.
             */
            factor?: number;
            /**
             * USD per million tokens of the prompt.
             */
            input?: number;
            /**
             * USD per million tokens of what of it was read from a cache. Left out: as `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of what of it was written to a cache. Left out: as `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of what of it was written to a cache for an hour. Left out: as `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Left out: as `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Left out: as `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output?: number;
            /**
             * USD per million tokens of what the model thought. Left out: as `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Left out: as `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Left out: as `output`.
             */
            output_image?: number;
            /**
             * USD for a request.
             */
            request?: number;
            /**
             * USD for a search that the model server ran.
             */
            search?: number;
            /**
             * USD for a document that is ranked or compared.
             */
            document?: number;
            /**
             * USD for a query over up to 100 documents.
             */
            search_unit?: number;
            /**
             * USD for a character that is spoken.
             */
            character?: number;
            /**
             * USD for a second of sound that is listened to.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
          }[];
        } | null;
        /**
         * A model of the price list, as `headrace prices` names it: what its use costs you where `cost` does not say it.
         */
        cost_of?: string | null;
      }[];
      /**
       * They are asked where the others are expected to keep a request waiting for this long. Left out: a wait is no reason.
       */
      after_seconds?: number | null;
      /**
       * They are asked for prompts of more tokens than this. Left out: the length of a prompt is no reason.
       */
      prompt_tokens_above?: number | null;
      /**
       * Parts of a day (UTC) at which they are asked as any other, such as `18:00-08:00`. Left out: none.
       */
      hours?: string[] | null;
      /**
       * The most that one request may be expected to cost there, in USD. Left out: any.
       */
      most_usd_per_request?: number | null;
      /**
       * What all requests together may cost there. Left out: any.
       */
      spend?: {
        /**
         * What may be spent in each span, in USD.
         */
        usd: number;
        /**
         * The span, by the calendar in UTC; a week begins on Monday.
         */
        per: "hour" | "day" | "week" | "month";
      } | null;
    } | null;
    /**
     * Answers that are kept, to be given again to the same account.
     */
    cache?: {
      /**
       * Which requests: `deterministic` for those of temperature 0 and those that ask for it, `asked` for those that ask for it alone, `all` for every one. Left out: `deterministic`.
       */
      requests?: ("deterministic" | "asked" | "all") | null;
      /**
       * How long an answer is kept. Left out: 3600.
       */
      ttl_seconds?: number | null;
      /**
       * The part of its price that an answer costs which is given again. Left out: 0.
       */
      price_factor?: number | null;
      /**
       * Whether requests that mean the same get the same answer. Left out: only the same request does.
       */
      semantic?: {
        /**
         * Id of the embedding model by which they are compared.
         */
        model: string;
        /**
         * Cosine similarity from which on two requests count as the same.
         */
        threshold: number;
      } | null;
    } | null;
    /**
     * Names of `guardrails` that look at its requests and answers, in this order.
     */
    guardrails?: string[] | null;
    /**
     * A second model that gets a share of its requests as well, its answers unseen.
     */
    shadow?: {
      /**
       * Id of the model that gets them as well.
       */
      model: string;
      /**
       * Share of the requests in percent, above 0.
       */
      percent: number;
    } | null;
    /**
     * Models that answer a share of its requests in its place. What is left stays with the model itself.
     */
    split?:
      | {
          /**
           * Id of the model that answers.
           */
          model: string;
          /**
           * Share of the requests in percent, above 0.
           */
          percent: number;
        }[]
      | null;
  } | null;
}
export interface DeletedManagedModel {
  object: "managed_model";
  id: string;
  deleted: true;
}
export interface GuardrailList {
  object: "list";
  data: Guardrail[];
}
/**
 * One of headrace.yaml, but for where it asks, and with what.
 */
export interface Guardrail {
  object: "guardrail";
  /**
   * By which `policies` of models name it.
   */
  name: string;
  kind: "patterns" | "secrets" | "judge" | "http";
  sides: ("request" | "answer")[];
  action: "block" | "mask" | "note";
}
export interface McpServerList {
  object: "list";
  data: McpServer[];
}
export interface McpServer {
  object: "tool_server";
  name: string;
  title: string | null;
  description: string | null;
  /**
   * Those of `database` are changed here, those of `file` in headrace.yaml alone.
   */
  source: "file" | "database";
  /**
   * Whether one of this name was added here as well, which does not count while the file has the name.
   */
  overrides_database: boolean;
  /**
   * Where it is; `command`: a process of this machine.
   */
  place: "http" | "command" | "node";
  /**
   * Null unless it is reached over HTTP.
   */
  url: string | null;
  /**
   * Id of the node, and the name there.
   */
  node: {
    node: string;
    server: string;
  } | null;
  /**
   * The identity by which it is asked: nobody, the same headers for all, or each person.
   */
  credentials: "none" | "headers" | "person";
  /**
   * Whether they were sealed under a secret that is not accepted any more: it is not used until they are given again.
   */
  credentials_unreadable: boolean;
  /**
   * Names of its headers; their values are not shown.
   */
  header_names: string[];
  oauth: {
    issuer: string | null;
    client_id: string | null;
    has_client_secret: boolean;
    scopes: string[] | null;
  } | null;
  /**
   * Whether keys with `never_leaves` may use it, as nothing that it is sent goes further. Becomes false where `url` moves to another server, unless it is there as well.
   */
  local: boolean;
  /**
   * Environments whose keys may use it; null: all.
   */
  environments: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use it; null: all.
   */
  accounts: string[] | null;
  /**
   * Names of tools that are offered at all, and beginnings of names with an asterisk; null: all.
   */
  tools: string[] | null;
  /**
   * What is offered of what it says: `first`: as it was when it was first seen, changes wait for an operator; `each`: nothing before an operator has approved it; `all`: whatever it says.
   */
  approval: "first" | "each" | "all";
  /**
   * Who shares a connection to it: nobody with anybody else, or all who use it.
   */
  sharing: "person" | "all";
  protocol_version: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  timeout_seconds: number;
  max_result_bytes: number;
  max_concurrency: number;
  /**
   * USD for each call that is answered, or that its caller left; null: nothing.
   */
  price_per_call: number | null;
  enabled: boolean;
  /**
   * null: it stands in the file.
   */
  created_at: number | null;
  /**
   * Tools and prompts that wait for approval: they are new, or say something else now.
   */
  waiting: number;
}
/**
 * `url` or `node` says where it is. Programs of this machine stand in headrace.yaml alone.
 */
export interface CreateMcpServerRequest {
  /**
   * Begins the names that clients see of its tools.
   */
  name: string;
  /**
   * Its address over streamable HTTP.
   */
  url?: string;
  /**
   * A server that a node has in its own configuration, in place of `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node, which offers it.
     */
    server: string;
  };
  title?: string | null;
  description?: string | null;
  headers?: {
    [k: string]: string;
  } | null;
  oauth?: {
    issuer?: string | null;
    /**
     * A client that you registered there. null: the gateway describes or registers itself.
     */
    client_id?: string | null;
    /**
     * Kept sealed and not shown again.
     */
    client_secret?: string | null;
    /**
     * Scopes that people are asked for. null: those that the server asks for.
     */
    scopes?: string[] | null;
  } | null;
  /**
   * Whether keys with `never_leaves` may use it, as nothing that it is sent goes further. Becomes false where `url` moves to another server, unless it is there as well.
   */
  local?: boolean;
  /**
   * Environments whose keys may use it; null: all.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use it; null: all.
   */
  accounts?: string[] | null;
  /**
   * Names of tools that are offered at all, and beginnings of names with an asterisk; null: all.
   */
  tools?: string[] | null;
  /**
   * What is offered of what it says: `first`: as it was when it was first seen, changes wait for an operator; `each`: nothing before an operator has approved it; `all`: whatever it says.
   */
  approval?: "first" | "each" | "all";
  /**
   * Who shares a connection to it: nobody with anybody else, or all who use it.
   */
  sharing?: "person" | "all";
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  /**
   * Seconds that one call may take.
   */
  timeout_seconds?: number;
  /**
   * Largest result of a call.
   */
  max_result_bytes?: number;
  /**
   * Calls at a time.
   */
  max_concurrency?: number;
  price_per_call?: number | null;
  enabled?: boolean;
}
/**
 * What is left out stays as it is; null takes it away.
 */
export interface UpdateMcpServerRequest {
  /**
   * At another host, port or scheme only with `headers`, where it has some.
   */
  url?: string;
  /**
   * A server that a node has in its own configuration, in place of `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node, which offers it.
     */
    server: string;
  };
  title?: string | null;
  description?: string | null;
  headers?: {
    [k: string]: string;
  } | null;
  oauth?: {
    issuer?: string | null;
    /**
     * A client that you registered there. null: the gateway describes or registers itself.
     */
    client_id?: string | null;
    /**
     * Kept sealed and not shown again.
     */
    client_secret?: string | null;
    /**
     * Scopes that people are asked for. null: those that the server asks for.
     */
    scopes?: string[] | null;
  } | null;
  /**
   * Whether keys with `never_leaves` may use it, as nothing that it is sent goes further. Becomes false where `url` moves to another server, unless it is there as well.
   */
  local?: boolean;
  /**
   * Environments whose keys may use it; null: all.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use it; null: all.
   */
  accounts?: string[] | null;
  /**
   * Names of tools that are offered at all, and beginnings of names with an asterisk; null: all.
   */
  tools?: string[] | null;
  /**
   * What is offered of what it says: `first`: as it was when it was first seen, changes wait for an operator; `each`: nothing before an operator has approved it; `all`: whatever it says.
   */
  approval?: "first" | "each" | "all";
  /**
   * Who shares a connection to it: nobody with anybody else, or all who use it.
   */
  sharing?: "person" | "all";
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  /**
   * Seconds that one call may take.
   */
  timeout_seconds?: number;
  /**
   * Largest result of a call.
   */
  max_result_bytes?: number;
  /**
   * Calls at a time.
   */
  max_concurrency?: number;
  price_per_call?: number | null;
  enabled?: boolean;
}
export interface DeletedMcpServer {
  object: "tool_server";
  name: string;
  deleted: true;
}
export interface McpServerTestRequest {
  /**
   * One that there is.
   */
  name?: string;
  /**
   * Any server, before it is added.
   */
  url?: string;
  /**
   * A server that a node has in its own configuration, in place of `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node, which offers it.
     */
    server: string;
  };
  /**
   * With `url`: they are sent with this test alone.
   */
  headers?: {
    [k: string]: string;
  };
  /**
   * The only revision to speak in this test; null: the newest that it knows. Left out: the server's own setting.
   */
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
}
export interface McpServerTest {
  object: "tool_server.test";
  ok: boolean;
  /**
   * What went wrong, in words.
   */
  error: {
    code: string;
    message: string;
    detail: string | null;
  } | null;
  /**
   * Revision of the protocol, as it was agreed.
   */
  revision: string | null;
  server: {
    name: string | null;
    title: string | null;
    version: string | null;
  } | null;
  instructions: string | null;
  /**
   * Names of what it says that it has, such as `tools`.
   */
  capabilities: string[];
  tools: {
    name: string;
    title: string | null;
    description: string | null;
    state: "approved" | "pending" | "changed" | "refused" | "new";
  }[];
  prompts: number;
  resources: number;
  /**
   * The last lines that its process wrote to standard error.
   */
  output: string[];
  duration_ms: number;
}
export interface ToolDefinitionList {
  object: "list";
  data: ToolDefinition[];
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
export interface ToolDefinition {
  object: "tool_definition";
  /**
   * Its kind and its name, such as `tool/search_issues`.
   */
  id: string;
  server: string;
  kind: "tool" | "prompt" | "instructions";
  /**
   * The server's own name of it.
   */
  name: string;
  /**
   * `changed`: it was approved, and says something else now.
   */
  state: "approved" | "pending" | "changed" | "refused";
  /**
   * The digest of what it says now, by which it is decided about.
   */
  digest: string;
  /**
   * What it says now.
   */
  definition: {
    [k: string]: unknown;
  };
  /**
   * What it said when it was approved; null: never, or that was refused since.
   */
  approved: {
    [k: string]: unknown;
  } | null;
  /**
   * How many other texts of it are approved: a server may describe it to each person in another way.
   */
  approved_others: number;
  /**
   * Unix seconds.
   */
  seen_at: number;
  decided_at: number | null;
  /**
   * Null where nobody decided: it was there at first.
   */
  decided_by: string | null;
}
export interface DecideToolDefinition {
  /**
   * Left out: `tool`.
   */
  kind?: "tool" | "prompt" | "instructions";
  name: string;
  digest: string;
  decision: "approved" | "refused";
}
export interface ComparisonList {
  object: "list";
  data: Comparison[];
}
export interface Comparison {
  object: "comparison";
  /**
   * `shadow`: of the requests that both answered. `split`: of those that each was given.
   */
  kind: "shadow" | "split";
  /**
   * The share of the other model, as it is configured now.
   */
  percent: number;
  /**
   * Unix time in seconds.
   */
  start: number;
  /**
   * Unix time in seconds.
   */
  end: number;
  own: ComparedModel;
  other: ComparedModel;
  /**
   * Whether only the newest were looked at, as there are very many: ask for less time.
   */
  partial: boolean;
}
export interface ComparedModel {
  model: string;
  requests: number;
  /**
   * Those that failed: they are in no figure of answers.
   */
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  /**
   * USD; null where a request had no price.
   */
  cost: number | null;
  /**
   * Time to the first token of streams, in milliseconds: of half of the answers, and of 95 of 100, no more; null: nothing was timed.
   */
  first_token_ms: {
    p50: number | null;
    p95: number | null;
  };
  /**
   * Time to the end, in milliseconds: of half of the answers, and of 95 of 100, no more; null: nothing was timed.
   */
  duration_ms: {
    p50: number | null;
    p95: number | null;
  };
  /**
   * Completion tokens by the time of their requests, without waits.
   */
  tokens_per_second: number | null;
  /**
   * Mean completion tokens of an answer.
   */
  answer_tokens: number | null;
}
export interface PulledModelList {
  object: "list";
  data: PulledModel[];
  pulls: Pull[];
  memory: ModelMemory;
}
export interface PulledModel {
  object: "pulled_model";
  id: string;
  /**
   * The size of its files on the disk.
   */
  bytes: number;
  /**
   * `incomplete`: a pull was interrupted, or a file is gone; it is not served, and can be pulled again.
   */
  state: "ready" | "incomplete";
  /**
   * Where it came from; null where only parts of it are here.
   */
  source: string | null;
  pulled_at: number | null;
  /**
   * Left out where nobody says.
   */
  capabilities?: {
    chat?: boolean;
    completion?: boolean;
    embeddings?: boolean;
    rerank?: boolean;
    moderation?: boolean;
    decisions?: boolean;
    speech?: boolean;
    transcription?: boolean;
    images?: boolean;
    realtime?: boolean;
    tokenize?: boolean;
  };
  /**
   * Tokens; null where the file does not say.
   */
  context_length: number | null;
  /**
   * Its name in the file, such as `qwen3`; null where it cannot be read.
   */
  architecture: string | null;
  /**
   * How its weights are stored, such as `Q4_K_M`; null likewise.
   */
  quantization: string | null;
  /**
   * null likewise.
   */
  parameters: number | null;
  /**
   * What it takes once it is loaded; null where the file cannot be read.
   */
  memory: MemoryNeed | null;
  /**
   * Whether it can be loaded. `now`; `evicting`: once idle models have left for it; `waiting`: once models that work have had their time; `reduced`: with a shorter context or fewer places; `never`: it needs more memory than there is beside models that are kept. null where it is loaded, or its need is not known.
   */
  fit: ("now" | "evicting" | "waiting" | "reduced" | "never") | null;
  /**
   * `failed`: it could not be loaded; the server's log says why, and a later request tries again.
   */
  use: "unloaded" | "loading" | "loaded" | "failed";
  /**
   * Requests that are with it, or wait for it.
   */
  in_use: number;
}
/**
 * Bytes of memory, estimated from what the file says of itself.
 */
export interface MemoryNeed {
  /**
   * All of it.
   */
  bytes: number;
  /**
   * With the shortest context that it is loaded with.
   */
  least_bytes: number;
  weights: number;
  /**
   * What attention keeps of the tokens of all places.
   */
  cache: number;
  /**
   * Buffers of a batch, and the process.
   */
  compute: number;
  /**
   * Tokens of one place for which `bytes` holds.
   */
  context_length: number;
  /**
   * Places for which `bytes` holds: requests that are computed at once.
   */
  parallel: number;
}
export interface Pull {
  object: "pull";
  id: string;
  source: string;
  /**
   * Those on the disk.
   */
  bytes: number;
  total_bytes: number;
  /**
   * Why it came to nothing; null while it goes on. Asked for again, it continues.
   */
  failure: string | null;
}
/**
 * Memory that models of this server may have.
 */
export interface ModelMemory {
  total_bytes: number;
  free_bytes: number;
  /**
   * Held by models that never leave for others.
   */
  pinned_bytes: number;
  /**
   * Held by models that are idle and would leave for another one.
   */
  evictable_bytes: number;
  /**
   * The models that memory is set aside for, pulled or not.
   */
  held: {
    id: string;
    /**
     * Set aside for it.
     */
    bytes: number;
    state: "loading" | "loaded" | "leaving" | "failed";
    /**
     * Requests that are with it, or wait for it.
     */
    in_use: number;
    /**
     * Kept, whoever else wants its memory.
     */
    pinned: boolean;
  }[];
}
export interface PullRequest {
  /**
   * `hf:owner/repo`, or `hf:owner/repo:file` with a file name, a path or a quantization behind the colon.
   */
  source: string;
  /**
   * Id to serve it under. null: the file's name in lower case.
   */
  name?: string | null;
  /**
   * true: only told what would be fetched. Default false.
   */
  dry_run?: boolean | null;
}
export interface PullOffer {
  object: "pull_offer";
  /**
   * The id under which it is served.
   */
  id: string;
  /**
   * Its path in the repository.
   */
  file: string;
  quantization: string | null;
  bytes: number;
  /**
   * Those that are not on the disk yet.
   */
  missing_bytes: number;
  /**
   * Those that the disk has room for.
   */
  room_bytes: number;
  /**
   * Memory that any model of this size takes; its context takes more.
   */
  least_memory_bytes: number;
  /**
   * Whether the least would fit, as with `PulledModel`.
   */
  fit: "now" | "evicting" | "waiting" | "reduced" | "never";
  /**
   * false after a dry run.
   */
  started: boolean;
}
export interface DeletedPulledModel {
  object: "pulled_model";
  id: string;
  bytes: number;
  deleted: true;
}
export interface ClearedCache {
  object: "cache";
  /**
   * null: of all accounts.
   */
  account: string | null;
  /**
   * null: of all models.
   */
  model: string | null;
  deleted: true;
}
export interface ModelProcessList {
  object: "list";
  data: ModelProcess[];
  /**
   * The memory that they share.
   */
  memory: {
    /**
     * `ram`, or `gpu0` and the like.
     */
    pool: string;
    total: number;
    /**
     * What is set aside, in bytes.
     */
    used: number;
  }[];
}
export interface ModelProcess {
  object: "model_process";
  /**
   * The upstream that it is.
   */
  name: string;
  models: string[];
  /**
   * `waiting`: for memory. `restarting`: it ended, and is tried again in a moment. `failed`: it ended too often or can never fit; requests are refused for some seconds.
   */
  state: "off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed";
  /**
   * Unix time in seconds.
   */
  since: number;
  /**
   * Why it failed last; null: it did not since it was loaded.
   */
  failure: string | null;
  /**
   * It is never stopped for others.
   */
  pinned: boolean;
  /**
   * Bytes by pool that are set aside for it, or would be.
   */
  memory: {
    [k: string]: number;
  };
  /**
   * Requests that it works on.
   */
  running: number;
  /**
   * Requests that wait for it.
   */
  waiting: number;
  /**
   * Whose those are.
   */
  waiting_by: {
    account_id: string;
    requests: number;
  }[];
  /**
   * While it waits for memory: the processes that have to end or to yield first.
   */
  behind: string[];
  /**
   * Whether it would be stopped first, were memory needed.
   */
  is_next: boolean;
  starts: number;
  /**
   * How often it was stopped or put to sleep for others.
   */
  evictions: number;
  failures: number;
  /**
   * Seconds that its loading took, of all starts together.
   */
  load_seconds: number;
}
export interface ChangeModelProcessRequest {
  /**
   * true: load it now, as soon as there is memory. false: stop it once nothing is in flight.
   */
  loaded?: boolean;
  /**
   * Until the server ends: true loads it, and keeps it from being stopped.
   */
  pinned?: boolean;
}
export interface ModelProcessOutput {
  object: "list";
  data: {
    number: number;
    /**
     * Unix time in seconds.
     */
    at: number;
    text: string;
  }[];
}
export interface NodeList {
  object: "list";
  data: Node[];
}
export interface Node {
  object: "node";
  id: string;
  /**
   * The name that it has among the upstreams and in usage records.
   */
  name: string;
  /**
   * `offline`: it is not connected. `draining`: it gets nothing new, because an operator or the node says so. `pending`: none of the models that it announces is approved. Else `online`.
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
   * MCP servers that it last said it offers; one here can be at one of these.
   */
  tool_servers: {
    name: string;
    title: string | null;
    /**
     * `command`: a process of that machine.
     */
    kind: "http" | "command";
  }[];
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
   * Whether requests of keys with `never_leaves` may go there, as nothing that it is sent goes further.
   */
  local: boolean;
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
   * The version of its Headrace; null before it was connected.
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
    rerank?: boolean;
    moderation?: boolean;
    decisions?: boolean;
    speech?: boolean;
    transcription?: boolean;
    images?: boolean;
    realtime?: boolean;
    tokenize?: boolean;
  } | null;
  /**
   * Whether it may serve it.
   */
  approved: boolean;
  /**
   * The state of the process that serves it, where the node starts that for requests; else null.
   */
  process:
    ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
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
   * Whether requests of keys with `never_leaves` may go there, as nothing that it is sent goes further.
   */
  local?: boolean;
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
     * The size of SQLite's write-ahead log.
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
     * The size of its files.
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
   * The checks of `GET /readyz`.
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
