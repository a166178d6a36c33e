// Shapes of the HTTP API, written by scripts/generate.ts from the OpenAPI document: not to be edited.

export interface Shapes {
  Account?: Account;
  AccountDetails?: AccountDetails;
  AccountList?: AccountList;
  AccountOverview?: AccountOverview;
  AllRequestList?: AllRequestList;
  AllUsageReport?: AllUsageReport;
  AllUsageRow?: AllUsageRow;
  ApiKey?: ApiKey;
  ApiKeyDetails?: ApiKeyDetails;
  ApiKeyList?: ApiKeyList;
  App?: App;
  AppList?: AppList;
  AuditEvent?: AuditEvent;
  Authorization?: Authorization;
  AuthorizationDetails?: AuthorizationDetails;
  AuthorizationList?: AuthorizationList;
  Batch?: Batch;
  BrowserSession?: BrowserSession;
  ChangePasswordRequest?: ChangePasswordRequest;
  ChangedPassword?: ChangedPassword;
  ComparedModel?: ComparedModel;
  Comparison?: Comparison;
  ComparisonList?: ComparisonList;
  ConnectedPerson?: ConnectedPerson;
  CreateAccountKeyRequest?: CreateAccountKeyRequest;
  CreateAccountRequest?: CreateAccountRequest;
  CreateAppRequest?: CreateAppRequest;
  CreateInvitationRequest?: CreateInvitationRequest;
  CreateKeyRequest?: CreateKeyRequest;
  CreateLimitRequest?: CreateLimitRequest;
  CreateManagedModelRequest?: CreateManagedModelRequest;
  CreateMcpServerRequest?: CreateMcpServerRequest;
  CreateNodeJoinTokenRequest?: CreateNodeJoinTokenRequest;
  CreateOrganizationRequest?: CreateOrganizationRequest;
  CreateUpstreamRequest?: CreateUpstreamRequest;
  CreateWebhookRequest?: CreateWebhookRequest;
  CreatedApiKey?: CreatedApiKey;
  CreatedApp?: CreatedApp;
  CreatedInvitation?: CreatedInvitation;
  CreatedNodeJoinToken?: CreatedNodeJoinToken;
  DecideToolDefinition?: DecideToolDefinition;
  DeploymentStatus?: DeploymentStatus;
  EmbeddingList?: EmbeddingList;
  EndUserList?: EndUserList;
  EndedBrowserSessions?: EndedBrowserSessions;
  GrantLimitRequest?: GrantLimitRequest;
  GuardrailList?: GuardrailList;
  Invitation?: Invitation;
  KeyRotation?: KeyRotation;
  KeyRotationRequest?: KeyRotationRequest;
  LimitRequest?: LimitRequest;
  ListedPrice?: ListedPrice;
  ManagedModel?: ManagedModel;
  ManagedModelList?: ManagedModelList;
  McpServer?: McpServer;
  McpServerList?: McpServerList;
  McpServerTest?: McpServerTest;
  McpServerTestRequest?: McpServerTestRequest;
  Member?: Member;
  MemberDetails?: MemberDetails;
  MemberList?: MemberList;
  ModelList?: ModelList;
  ModelProcess?: ModelProcess;
  ModelProcessList?: ModelProcessList;
  ModelProcessOutput?: ModelProcessOutput;
  ModelStatus?: ModelStatus;
  ModelStatusList?: ModelStatusList;
  Node?: Node;
  NodeJoinToken?: NodeJoinToken;
  NodeList?: NodeList;
  NodeModel?: NodeModel;
  NoticeSettings?: NoticeSettings;
  Organization?: Organization;
  OrganizationDetails?: OrganizationDetails;
  Overview?: Overview;
  OverviewOfAllAccounts?: OverviewOfAllAccounts;
  Passkey?: Passkey;
  PasskeyCreationOptions?: PasskeyCreationOptions;
  PasskeyList?: PasskeyList;
  Person?: Person;
  PersonDetails?: PersonDetails;
  PriceList?: PriceList;
  PullOffer?: PullOffer;
  PullRequest?: PullRequest;
  PulledModel?: PulledModel;
  PulledModelList?: PulledModelList;
  Refusal?: Refusal;
  RefusalList?: RefusalList;
  Request?: Request;
  RequestDetail?: RequestDetail;
  RequestList?: RequestList;
  RequestOfAnyAccount?: RequestOfAnyAccount;
  RequestStep?: RequestStep;
  ResetLink?: ResetLink;
  RotatedApiKey?: RotatedApiKey;
  RotatedApp?: RotatedApp;
  RotationOfKey?: RotationOfKey;
  Session?: Session;
  SigningKey?: SigningKey;
  Statement?: Statement;
  StatementLine?: StatementLine;
  StatementOfAccounts?: StatementOfAccounts;
  StoredChatCompletion?: StoredChatCompletion;
  StoredChatMessage?: StoredChatMessage;
  System?: System;
  Tier?: Tier;
  TierList?: TierList;
  TierOverview?: TierOverview;
  TierOverviewList?: TierOverviewList;
  TierRequest?: TierRequest;
  ToolConnection?: ToolConnection;
  ToolConnectionBegun?: ToolConnectionBegun;
  ToolConnectionDeleted?: ToolConnectionDeleted;
  ToolConnectionList?: ToolConnectionList;
  ToolDefinition?: ToolDefinition;
  ToolDefinitionList?: ToolDefinitionList;
  UpdateAccountRequest?: UpdateAccountRequest;
  UpdateAppRequest?: UpdateAppRequest;
  UpdateKeyRequest?: UpdateKeyRequest;
  UpdateManagedModelRequest?: UpdateManagedModelRequest;
  UpdateMcpServerRequest?: UpdateMcpServerRequest;
  UpdateNodeRequest?: UpdateNodeRequest;
  UpdateOrganizationRequest?: UpdateOrganizationRequest;
  UpdateUpstreamRequest?: UpdateUpstreamRequest;
  UpdateWebhookRequest?: UpdateWebhookRequest;
  Upstream?: Upstream;
  UpstreamList?: UpstreamList;
  UpstreamTest?: UpstreamTest;
  Usage?: Usage;
  UsageReport?: UsageReport;
  UsageRow?: UsageRow;
  Webhook?: Webhook;
  WebhookAttempt?: WebhookAttempt;
  WebhookDelivery?: WebhookDelivery;
  WebhookDeliveryList?: WebhookDeliveryList;
  WebhookTest?: WebhookTest;
  WebhookWithSecret?: WebhookWithSecret;
}
export interface Account {
  object: "account";
  id: string;
  name: string;
  /**
   * A tier that no longer exists applies the limits of `free`.
   */
  tier: string;
  status: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_tokens: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_spend: (number | "unlimited") | null;
  /**
   * Quotas per window, replacing the tier's: a list, empty for none, or null for the tier's quotas. Per environment.
   */
  quotas:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * True to store chat completions of requests that do not set `store`.
   */
  store_chats: boolean;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * Id of the organization that the account belongs to, `org_…`.
   */
  organization: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface AccountDetails {
  object: "account";
  id: string;
  name: string;
  /**
   * A tier that no longer exists applies the limits of `free`.
   */
  tier: string;
  status: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_tokens: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_spend: (number | "unlimited") | null;
  /**
   * Quotas per window, replacing the tier's: a list, empty for none, or null for the tier's quotas. Per environment.
   */
  quotas:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * True to store chat completions of requests that do not set `store`.
   */
  store_chats: boolean;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * Id of the organization that the account belongs to, `org_…`.
   */
  organization: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Limits and usage of this calendar month (UTC). The limits combine the account's overrides with its tier.
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
         * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
         */
        reason:
          | "account_quota"
          | "key_quota"
          | "member_quota"
          | "app_quota"
          | "tag_quota"
          | "organization_quota"
          | "end_user_quota";
        /**
         * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
         */
        owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
        owner_id: string;
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Usage in this window, without running requests.
         */
        used: number;
        /**
         * Rest of `amount`. 0 if more was used.
         */
        left: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window: "calendar" | "rolling";
        /**
         * null: all models.
         */
        models: string[] | null;
        /**
         * null: requests with any tags.
         */
        tag: string | null;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop: boolean;
        /**
         * null: the window begins with the next use.
         */
        starts_at: number | null;
        resets_at: number | null;
        /**
         * People who can raise the quota, such as `an owner or admin of the account`.
         */
        ask: string;
      }[];
    }[];
  };
}
export interface AccountList {
  object: "list";
  data: Account[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface AccountOverview {
  object: "account";
  id: string;
  name: string;
  tier: string;
  /**
   * Environment of the credential. Limits and quota apply to this environment only.
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
     * The tightest limit that applies to this credential, including the key's own. null: no limit.
     */
    requests: {
      limit: number;
      remaining: number;
      /**
       * Seconds until the full limit is available again.
       */
      reset_seconds: number;
    } | null;
    /**
     * The tightest limit that applies to this credential, including the key's own. null: no limit.
     */
    tokens: {
      limit: number;
      remaining: number;
      /**
       * Seconds until the full limit is available again.
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
     * Owner of the usage in `used` if `limit` is null. With a limit it is the account's usage.
     */
    usage_of: "account" | "caller";
    tokens: {
      /**
       * null: no limit.
       */
      limit: number | null;
      /**
       * Usage since the period began, without running requests. With a limit it is the account's usage. Without one, a member without further rights sees their own usage.
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
       * Usage since the period began, without running requests. With a limit it is the account's usage. Without one, a member without further rights sees their own usage.
       */
      used: number;
    };
  };
  /**
   * Quotas per window that apply to this credential, with their usage. The account's quotas come first.
   */
  quotas: {
    /**
     * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
     */
    reason:
      | "account_quota"
      | "key_quota"
      | "member_quota"
      | "app_quota"
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota";
    /**
     * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
     */
    owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
    owner_id: string;
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Usage in this window, without running requests.
     */
    used: number;
    /**
     * Rest of `amount`. 0 if more was used.
     */
    left: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: requests with any tags.
     */
    tag: string | null;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop: boolean;
    /**
     * null: the window begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
    /**
     * People who can raise the quota, such as `an owner or admin of the account`.
     */
    ask: string;
  }[];
  /**
   * True to store chat completions of requests that do not set `store`.
   */
  store_chats: boolean;
}
export interface AllRequestList {
  object: "list";
  data: RequestOfAnyAccount[];
  /**
   * Send it as `cursor` to get the next page. null on the last page. Earlier pages may be empty.
   */
  next: string | null;
  /**
   * Unix seconds. Requests that began later than this have all been read. null on the last page.
   */
  searched_to: number | null;
  /**
   * Start of the stored requests in Unix seconds, if the requested time begins earlier.
   */
  kept_since?: number;
  /**
   * Names of the accounts, credentials and apps above, by id.
   */
  names: {
    [k: string]: string;
  };
}
export interface RequestOfAnyAccount {
  object: "request";
  /**
   * `x-request-id` of the answer.
   */
  id: string;
  /**
   * Start of the request in Unix seconds. For a refused request, the time of the refusal.
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
   * Requested model, or MCP server and tool (`github/search`). null if the request was refused before its body was read.
   */
  model: string | null;
  /**
   * Id of the credential: a key, a signed-in member (`mbr_…`) or the grant of an app (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app. null for none.
   */
  app: string | null;
  /**
   * null under the same condition as `model`.
   */
  stream: boolean | null;
  /**
   * Tags of the request. Always empty for a refused request.
   */
  tags: string[];
  /**
   * `cancelled`: the client disconnected. `interrupted`: the server's process ended first. `refused`: the request got an error before it began, so it is not part of the usage.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "refused";
  /**
   * `code` of the error that ended the request.
   */
  error_code: string | null;
  /**
   * HTTP status of the error. For a stream that had begun, the status that it would have had.
   */
  error_status: number | null;
  /**
   * Error message to the client of a refused request, without names that the client made up. Otherwise null.
   */
  error_message: string | null;
  prompt_tokens: number;
  /**
   * Prompt tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Prompt tokens written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Reasoning tokens of the answer, as far as the model server reports them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * True if the tokens are an estimate, because the model server reported none or implausible numbers.
   */
  estimated: boolean;
  /**
   * True if the reported usage was implausible. If the server reported more tokens than possible, these are the possible maximum. If it reported fewer than it delivered, these are `estimated`.
   */
  capped: boolean;
  /**
   * True if the answer came from the response cache, without a model.
   */
  from_cache: boolean;
  /**
   * Cost in USD. null if the model has no price or the request was refused.
   */
  cost: number | null;
  /**
   * Model server that answered. null if none did.
   */
  upstream: string | null;
  /**
   * Number of attempts at model servers.
   */
  attempts: number;
  /**
   * Milliseconds in the queue, before the request was sent.
   */
  queue_ms: number;
  /**
   * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
   */
  first_token_ms: number | null;
  /**
   * Total milliseconds until the end.
   */
  duration_ms: number;
  /**
   * Tokens per second of generation, after the first token. null if too little was streamed.
   */
  tokens_per_second: number | null;
  /**
   * Id of the account.
   */
  account: string;
  environment: "live" | "test" | "dev";
}
export interface AllUsageReport {
  object: "list";
  data: AllUsageRow[];
  /**
   * Send it as `cursor` to get the next page. null on the last page.
   */
  next: string | null;
  /**
   * Start of the stored hourly sums in Unix seconds, if hours were requested and the requested time begins earlier. Daily sums are stored permanently.
   */
  kept_since?: number;
  /**
   * Names of the accounts, organizations, credentials, people and apps above, by id.
   */
  names: {
    [k: string]: string;
  };
}
export interface AllUsageRow {
  /**
   * Start of the bucket in Unix seconds.
   */
  start: number;
  /**
   * End of the bucket in Unix seconds.
   */
  end: number;
  /**
   * Present if `group_by` has it.
   */
  model?: string;
  /**
   * Id of the credential, if `group_by` has it: a key, `key_…`, a signed-in member, `mbr_…`, or the grant of an app, `grt_…`.
   */
  key?: string;
  /**
   * Present if `group_by` has it.
   */
  environment?: string;
  /**
   * Id of the OAuth app, if `group_by` has it. null for none.
   */
  app?: string | null;
  /**
   * Tag, if `group_by` has it. null: requests without tags. A request with several tags is in the row of each, so these rows do not add up.
   */
  tag?: string | null;
  requests: number;
  prompt_tokens: number;
  /**
   * Prompt tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Prompt tokens written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Reasoning tokens of the answers, as far as model servers report them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * Cost in USD. Requests to models without a price are free.
   */
  cost: number;
  /**
   * Number of requests to models without a price, which `cost` does not include.
   */
  unpriced_requests: number;
  /**
   * Number of failed requests.
   */
  errors: number;
  /**
   * Mean milliseconds from a request to the first chunk of its answer, for answers streamed in several chunks. null: no such answers.
   */
  first_token_ms: number | null;
  /**
   * Mean generation speed over all streamed tokens, without the first token of each answer. null: no such tokens.
   */
  tokens_per_second: number | null;
  /**
   * Milliseconds within which 50, 95 and 99 % of the answers came: the first token of streams, and the end of all completed answers. They are computed from the counts, so they may be off by a part of a step. null: not stored for these groups or filters, or this time.
   */
  percentiles: {
    first_token_ms: {
      p50: number;
      p95: number;
      p99: number;
      /**
       * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
       */
      counts: {
        /**
         * The upper bound of the step in milliseconds. null: longer than all steps.
         */
        up_to_ms: number | null;
        answers: number;
      }[];
    } | null;
    total_ms: {
      p50: number;
      p95: number;
      p99: number;
      /**
       * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
       */
      counts: {
        /**
         * The upper bound of the step in milliseconds. null: longer than all steps.
         */
        up_to_ms: number | null;
        answers: number;
      }[];
    } | null;
  } | null;
  /**
   * Id of the account, if `group_by` has it.
   */
  account?: string;
  /**
   * Id of the organization that the account belongs to now, if `group_by` has it. null for none.
   */
  organization?: string | null;
  /**
   * Id of the person that the credential belongs to, if `group_by` has it. null for none.
   */
  person?: string | null;
  /**
   * Model server that answered, if `group_by` has it. null: none did.
   */
  upstream?: string | null;
  /**
   * Model server that answered and the requested model, as `upstream/model`, if `group_by` has it. null: none did.
   */
  deployment?: string | null;
  /**
   * Present if `group_by` has it.
   */
  outcome?: "completed" | "failed" | "cancelled" | "interrupted";
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
   * `active`: the key works. `suspended`: it is refused until it, or what it depends on, is resumed. A key ends at the latest when the key that created it ends.
   */
  status: "active" | "expired" | "revoked" | "suspended";
  /**
   * Id of the key or person that created it. null for keys that neither created, such as the first key.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * Time of revocation. After a rotation it may lie in the future: the key works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Model ids and patterns that the key may use. null: all models.
   */
  models: string[] | null;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.
   */
  never_leaves: boolean;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
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
   * `active`: the key works. `suspended`: it is refused until it, or what it depends on, is resumed. A key ends at the latest when the key that created it ends.
   */
  status: "active" | "expired" | "revoked" | "suspended";
  /**
   * Id of the key or person that created it. null for keys that neither created, such as the first key.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * Time of revocation. After a rotation it may lie in the future: the key works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Model ids and patterns that the key may use. null: all models.
   */
  models: string[] | null;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.
   */
  never_leaves: boolean;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
  /**
   * Usage of each of `quotas`.
   */
  quotas_used: {
    /**
     * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
     */
    reason:
      | "account_quota"
      | "key_quota"
      | "member_quota"
      | "app_quota"
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota";
    /**
     * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
     */
    owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
    owner_id: string;
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Usage in this window, without running requests.
     */
    used: number;
    /**
     * Rest of `amount`. 0 if more was used.
     */
    left: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: requests with any tags.
     */
    tag: string | null;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop: boolean;
    /**
     * null: the window begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
    /**
     * People who can raise the quota, such as `an owner or admin of the account`.
     */
    ask: string;
  }[];
}
export interface ApiKeyList {
  object: "list";
  data: ApiKey[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface App {
  object: "app";
  id: string;
  /**
   * The `id` under its name in OAuth.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * Scopes that the app may request.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * While an app is suspended, its tokens are refused.
   */
  status: "active" | "suspended";
  /**
   * Environment of the app's access tokens.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * Name of the account, shown on the consent page.
   */
  publisher: string;
  /**
   * Id of the person or key that registered the app.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Valid secrets, oldest first, at most two. Empty for a public app.
   */
  secrets: AppSecret[];
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
   * Time after which the secret stops working, after a rotation.
   */
  expires_at: number | null;
}
export interface AppList {
  object: "list";
  data: App[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
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
    | "key.rotation_set"
    | "key.rotation_due"
    | "key.suspended"
    | "key.resumed"
    | "token.issued"
    | "credential.refused"
    | "account.created"
    | "account.updated"
    | "account.end_users_changed"
    | "organization.created"
    | "organization.updated"
    | "organization.deleted"
    | "organization.account_added"
    | "organization.account_removed"
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
    | "replica.updated"
    | "documents.applied"
    | "cache.cleared"
    | "request.viewed"
    | "signing_key.created"
    | "signing_key.retired"
    | "audit.purged"
    | "person.created"
    | "person.updated"
    | "person.deleted"
    | "person.suspended"
    | "person.resumed"
    | "member.added"
    | "member.updated"
    | "member.removed"
    | "limit.requested"
    | "limit.granted"
    | "limit.refused"
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
    | "app.suspended"
    | "app.resumed"
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
   * `key`: the API key with this id, or an access token made from it. `person`: a signed-in person. `app`: an OAuth client. `operator`: a user with access to the data directory. `system`: the server itself. `anonymous`: an unknown caller, as at a failed sign-in.
   */
  actor: {
    type: "key" | "person" | "app" | "operator" | "system" | "anonymous";
    id?: string;
  };
  /**
   * Account that the event concerns. null: none or unknown.
   */
  account_id: string | null;
  /**
   * Changed object: the id of a key, account, member or similar, or a tier.
   */
  target_id: string | null;
  client_address: string | null;
  request_id: string | null;
  /**
   * Details of the change, or reason of a refusal. Never contains a secret.
   */
  detail: {
    [k: string]: unknown;
  };
}
export interface Authorization {
  object: "authorization";
  /**
   * App id and account id, separated by a colon.
   */
  id: string;
  app: {
    id: string;
    name: string;
    publisher: string;
    homepage_url: string | null;
  };
  /**
   * Account for which the app acts.
   */
  account: {
    id: string;
    name: string;
  };
  environment: "live" | "test" | "dev";
  /**
   * All scopes that you granted to the app.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * Quotas per window for the app's usage on your behalf, in each environment.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Time of the first grant that is still valid.
   */
  allowed_at: number;
  last_used_at: number | null;
}
export interface AuthorizationDetails {
  object: "authorization";
  /**
   * App id and account id, separated by a colon.
   */
  id: string;
  app: {
    id: string;
    name: string;
    publisher: string;
    homepage_url: string | null;
  };
  /**
   * Account for which the app acts.
   */
  account: {
    id: string;
    name: string;
  };
  environment: "live" | "test" | "dev";
  /**
   * All scopes that you granted to the app.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * Quotas per window for the app's usage on your behalf, in each environment.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Time of the first grant that is still valid.
   */
  allowed_at: number;
  last_used_at: number | null;
  /**
   * Usage of each of `quotas` in this environment.
   */
  quotas_used: {
    /**
     * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
     */
    reason:
      | "account_quota"
      | "key_quota"
      | "member_quota"
      | "app_quota"
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota";
    /**
     * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
     */
    owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
    owner_id: string;
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Usage in this window, without running requests.
     */
    used: number;
    /**
     * Rest of `amount`. 0 if more was used.
     */
    left: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: requests with any tags.
     */
    tag: string | null;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop: boolean;
    /**
     * null: the window begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
    /**
     * People who can raise the quota, such as `an owner or admin of the account`.
     */
    ask: string;
  }[];
}
export interface AuthorizationList {
  object: "list";
  data: Authorization[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface Batch {
  id: string;
  object: "batch";
  endpoint: string;
  /**
   * Model of the requests, if they all name the same one.
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
export interface BrowserSession {
  object: "browser_session";
  id: string;
  /**
   * True if this is the session of the request.
   */
  current: boolean;
  /**
   * Method by which the person signed in.
   */
  method: "password" | "passkey" | "sso" | "link";
  /**
   * Name of the browser.
   */
  user_agent: string;
  /**
   * Last address of the browser.
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
   * Latest end of the session. An unused session ends earlier.
   */
  expires_at: number;
}
export interface ChangePasswordRequest {
  /**
   * Current password. Omit it if you have none yet.
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
export interface ComparedModel {
  model: string;
  requests: number;
  /**
   * Number of failed requests. Figures about answers exclude them.
   */
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  /**
   * Cost in USD. null if a request had no price.
   */
  cost: number | null;
  /**
   * Time to the first token of streams in milliseconds: median and 95th percentile. null: nothing was measured.
   */
  first_token_ms: {
    p50: number | null;
    p95: number | null;
  };
  /**
   * Time to the end in milliseconds: median and 95th percentile. null: nothing was measured.
   */
  duration_ms: {
    p50: number | null;
    p95: number | null;
  };
  /**
   * Completion tokens per second of request time, without queueing.
   */
  tokens_per_second: number | null;
  /**
   * Mean number of completion tokens per answer.
   */
  answer_tokens: number | null;
}
export interface Comparison {
  object: "comparison";
  /**
   * `shadow`: figures of the requests that both models answered. `split`: figures of the requests that each model received.
   */
  kind: "shadow" | "split";
  /**
   * Share of the other model, as currently configured.
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
   * True if only the newest requests were read, because there are too many. Choose a shorter time.
   */
  partial: boolean;
}
export interface ComparisonList {
  object: "list";
  data: Comparison[];
}
export interface ConnectedPerson {
  object: "tool_connection.person";
  id: string;
  /**
   * Name of the MCP server.
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
export interface CreateAccountKeyRequest {
  /**
   * Purpose of the key, in printable characters.
   */
  name: string;
  /**
   * Scopes of the key, which may include `admin:manage`. Default: `chat:read chat:write models:read`.
   */
  scopes?:
    ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[] | null;
  expires_at?: number | null;
  /**
   * Seconds until the key expires. Alternative to `expires_at`.
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
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  never_leaves?: boolean | null;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
  /**
   * Keys of `dev` work only in development mode.
   */
  environment: "live" | "test" | "dev";
}
export interface CreateAccountRequest {
  /**
   * Display name, in printable characters.
   */
  name: string;
  /**
   * Name of a tier; `free` by default.
   */
  tier?: string | null;
  tools?: string[] | null;
}
export interface CreateAppRequest {
  /**
   * Name on the consent page, in printable characters. It must not look like the name of this server.
   */
  name: string;
  homepage_url?: string | null;
  /**
   * `confidential`: the app runs on a server and has a secret. `public`: the app runs on users' devices, without a secret. Default `confidential`.
   */
  type?: ("confidential" | "public") | null;
  redirect_uris?: string[] | null;
  /**
   * Scopes that the app may request. Default: `chat:write models:read`.
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use")[] | null;
  tools?: string[] | null;
  require_pkce?: boolean | null;
}
export interface CreateInvitationRequest {
  /**
   * E-mail address, compared without regard to case.
   */
  email: string;
  /**
   * Default `member`.
   */
  role?: "owner" | "admin" | "member";
}
export interface CreateKeyRequest {
  /**
   * Purpose of the key, in printable characters.
   */
  name: string;
  scopes?:
    ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[] | null;
  expires_at?: number | null;
  /**
   * Seconds until the key expires. Alternative to `expires_at`.
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
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  never_leaves?: boolean | null;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
}
export interface CreateLimitRequest {
  /**
   * Unit of the amount. `usd` is counted by the prices of the models.
   */
  unit: "requests" | "tokens" | "usd";
  /**
   * Length of the window: a named span, or seconds.
   */
  per: ("hour" | "5h" | "day" | "week" | "month") | number;
  /**
   * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
   */
  window?: "calendar" | "rolling";
  /**
   * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
   *
   * @minItems 1
   * @maxItems 32
   */
  models?: string[];
  /**
   * Count only requests with this tag. Default: all requests.
   */
  tag?: string;
  owner?: ("member" | "account") | null;
  /**
   * Amount that is wanted in addition. Missing: whoever decides chooses it.
   */
  amount?: number | null;
  /**
   * Reason for the people who decide, in one line.
   */
  reason: string;
}
export interface CreateManagedModelRequest {
  /**
   * Id that clients send, in printable ASCII characters without spaces: the id of a discovered model, or a new one.
   */
  id: string;
  /**
   * Owner label in the model list. null: the upstream's value.
   */
  owned_by?: string | null;
  /**
   * Capabilities of the model. Omitted capabilities are unknown, and the model server decides. null: the upstream's values.
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
     * Creates embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents for a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Detects harmful texts and images.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Converts text to speech.
     */
    speech?: boolean;
    /**
     * Transcribes or translates recordings.
     */
    transcription?: boolean;
    /**
     * Creates and edits images.
     */
    images?: boolean;
    /**
     * Holds a live conversation over a WebSocket, in audio or text.
     */
    realtime?: boolean;
    /**
     * Converts texts to tokens and back.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Context length in tokens, prompt and answer together. null: the upstream's value, else unlimited.
   */
  context_length?: number | null;
  /**
   * Environments whose keys may use the model. Without its own deployments, a model is limited to the environments of its upstreams. null: the environments of the upstreams, or `live`, `dev` for a model with deployments of its own.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Price of usage, for requests that begin after the change. null: the price of `price_of`, else usage is free.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     *
     * @maxItems 16
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  } | null;
  /**
   * A model in the price list, as `headrace prices` names it (`vendor/model`). Its price applies if `price` is null.
   */
  price_of?: string | null;
  /**
   * Deployments of the model. Requests are distributed by weight. null or empty: all upstreams and nodes that list this id, and the built-in engine if it has the model.
   */
  deployments?:
    | {
        /**
         * Name of an upstream or node, or `built-in` for the built-in engine.
         */
        upstream: string;
        /**
         * Id of the model at the upstream. Default: the public id.
         */
        model?: string | null;
        /**
         * Share of the requests, relative to the other deployments. Default 1.
         */
        weight?: number | null;
      }[]
    | null;
  /**
   * Fallback models, tried in this order if all deployments of this model fail or are busy. The answer names the model that answered, and is charged at its price.
   */
  fallbacks?: string[] | null;
  /**
   * Other names that clients can send, or prefixes ending in `*`: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model with that id has precedence, then the exact alias, then the longest prefix. No two models can have the same alias.
   */
  aliases?: string[] | null;
  /**
   * Policies for requests to the model. Omitted policies keep their values. null removes one policy, or all of them.
   */
  policies?: {
    /**
     * True if another deployment continues a stream that its upstream cut. The deployment must be able to continue the text exactly.
     */
    continuation?: boolean | null;
    /**
     * Deployments that are used only if the others would keep a request waiting, or under the conditions given here.
     */
    overflow?: {
      /**
       * Upstreams whose deployments of the model come last, the cheapest first.
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
         * The operator's costs for this upstream, with the keys of a model's `price`. The cheapest upstream comes first. Default: the price of `cost_of`, else the model's price.
         */
        cost?: {
          /**
           * USD per million tokens of the prompt.
           */
          input: number;
          /**
           * USD per million tokens of the prompt that were read from a cache. Default: `input`.
           */
          cached_input?: number;
          /**
           * USD per million tokens of the prompt that were written to a cache. Default: `input`.
           */
          cache_write?: number;
          /**
           * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
           */
          cache_write_1h?: number;
          /**
           * USD per million tokens of audio in the prompt. Default: `input`.
           */
          input_audio?: number;
          /**
           * USD per million tokens of images in the prompt. Default: `input`.
           */
          input_image?: number;
          /**
           * USD per million tokens of the answer.
           */
          output: number;
          /**
           * USD per million tokens of the reasoning. Default: `output`.
           */
          reasoning?: number;
          /**
           * USD per million tokens of audio in the answer. Default: `output`.
           */
          output_audio?: number;
          /**
           * USD per million tokens of images in the answer. Default: `output`.
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
           * USD for a second of audio that is transcribed.
           */
          second?: number;
          /**
           * USD for an image that is made.
           */
          image?: number;
          /**
           * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
           *
           * @maxItems 16
           */
          variants?: {
            /**
             * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
             */
            context_above?: number;
            /**
             * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
             */
            served?: string;
            /**
             * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
             */
            from?: string;
            /**
             * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
             *
             * @minItems 1
             * @maxItems 8
             */
            hours?: string[];
            /**
             * Condition: the request begins on one of these days of the week (UTC).
             *
             * @minItems 1
             * @maxItems 7
             */
            days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
            /**
             * Factor for all token rates under these conditions, including the rates of this variant.
             */
            factor?: number;
            /**
             * USD per million tokens of the prompt.
             */
            input?: number;
            /**
             * USD per million tokens of the prompt that were read from a cache. Default: `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache. Default: `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Default: `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Default: `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output?: number;
            /**
             * USD per million tokens of the reasoning. Default: `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Default: `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Default: `output`.
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
             * USD for a second of audio that is transcribed.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
          }[];
        } | null;
        /**
         * A model in the price list, as `headrace prices` names it. Its price is your cost if `cost` is not set.
         */
        cost_of?: string | null;
      }[];
      /**
       * Overflow if a request is expected to wait this long for the other deployments. Default: no overflow because of waiting.
       */
      after_seconds?: number | null;
      /**
       * Overflow if the prompt has more tokens than this. Default: no overflow because of length.
       */
      prompt_tokens_above?: number | null;
      /**
       * Parts of a day (UTC) in which these deployments are used like any other, such as `18:00-08:00`. Default: none.
       */
      hours?: string[] | null;
      /**
       * Maximum expected cost of one request there, in USD. Default: no limit.
       */
      most_usd_per_request?: number | null;
      /**
       * Maximum cost of all requests there. Default: no limit.
       */
      spend?: {
        /**
         * Maximum cost in each span, in USD.
         */
        usd: number;
        /**
         * Span of the calendar, in UTC. A week begins on Monday.
         */
        per: "hour" | "day" | "week" | "month";
      } | null;
    } | null;
    /**
     * Response cache, separate for each account.
     */
    cache?: {
      /**
       * The requests that use the cache: `deterministic` for requests with temperature 0 and those that ask for it, `asked` only for those that ask for it, or `all`. Default: `deterministic`.
       */
      requests?: ("deterministic" | "asked" | "all") | null;
      /**
       * Lifetime of a cached answer. Default: 3600.
       */
      ttl_seconds?: number | null;
      /**
       * Factor of the price that a cached answer costs. Default: 0.
       */
      price_factor?: number | null;
      /**
       * Semantic cache: requests with the same meaning share an answer. Default: only identical requests do.
       */
      semantic?: {
        /**
         * Id of the embedding model that compares requests.
         */
        model: string;
        /**
         * Minimum cosine similarity of two requests that share an answer.
         */
        threshold: number;
      } | null;
    } | null;
    /**
     * Names of `guardrails` that check requests and answers of the model, in this order.
     */
    guardrails?: string[] | null;
    /**
     * A second model that also receives a share of the requests. Clients never see its answers.
     */
    shadow?: {
      /**
       * Id of the second model.
       */
      model: string;
      /**
       * Share of the requests in percent, above 0.
       */
      percent: number;
    } | null;
    /**
     * Other models that answer a share of the requests. The model itself answers the rest.
     */
    split?:
      | {
          /**
           * Id of the model that answers this share.
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
 * Needs `url` or `node`. Programs on this machine can only be configured in headrace.yaml.
 */
export interface CreateMcpServerRequest {
  /**
   * Name of the server. It prefixes the tool names that clients see.
   */
  name: string;
  /**
   * URL of the server, for streamable HTTP.
   */
  url?: string;
  /**
   * A server in the configuration of a node. Alternative to `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node.
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
     * Id of a client that you registered there. null: the gateway uses its client metadata document or registers itself.
     */
    client_id?: string | null;
    /**
     * Stored encrypted and not shown again.
     */
    client_secret?: string | null;
    /**
     * Scopes to request from users. null: the scopes that the server requests.
     */
    scopes?: string[] | null;
  } | null;
  /**
   * True if keys with `never_leaves` may use the server, because it sends nothing on to other systems. If `url` changes to another server and this member is omitted, it becomes false.
   */
  local?: boolean;
  /**
   * Environments whose keys may use the server. null: all.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use the server. null: all.
   */
  accounts?: string[] | null;
  /**
   * Names of the tools that are offered, or prefixes ending in `*`. null: all.
   */
  tools?: string[] | null;
  /**
   * The tool and prompt definitions that clients get. `first`: the first version seen, while changes wait for an operator. `each`: only definitions that an operator approved. `all`: all definitions.
   */
  approval?: "first" | "each" | "all";
  /**
   * Sharing of connections to the server. `person`: a connection for each person. `all`: all users share connections.
   */
  sharing?: "person" | "all";
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  /**
   * Timeout of one call in seconds.
   */
  timeout_seconds?: number;
  /**
   * Maximum size of the result of a call, in bytes.
   */
  max_result_bytes?: number;
  /**
   * Maximum number of concurrent calls.
   */
  max_concurrency?: number;
  price_per_call?: number | null;
  enabled?: boolean;
}
export interface CreateNodeJoinTokenRequest {
  /**
   * Models that the node may serve without further approval. ["*"]: all that it announces. Default: none, an operator must approve them.
   */
  approved_models?: string[] | null;
  /**
   * Environments whose keys may use the node's models. Default: `live`, `dev`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Lifetime of the token in seconds. Default: 3600.
   */
  expires_in?: number | null;
}
export interface CreateOrganizationRequest {
  /**
   * Display name, in printable characters.
   */
  name: string;
  /**
   * Tokens per calendar month (UTC). For all accounts together. null: no limit.
   */
  monthly_tokens?: number | null;
  /**
   * USD per calendar month (UTC). For all accounts together. null: no limit.
   */
  monthly_spend?: number | null;
  quotas?:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
}
export interface CreateUpstreamRequest {
  /**
   * Name in logs and records: lower-case letters, digits, dots, underscores and hyphens.
   */
  name: string;
  /**
   * Base URL of the API, usually ending in `/v1`. With `api: messages` the `/v1` may be omitted.
   */
  url: string;
  /**
   * API key, sent in the header of `key_header`. It is stored encrypted and not shown again.
   */
  api_key?: string | null;
  /**
   * True to serve the models that the upstream lists. Default true.
   */
  discover?: boolean | null;
  local?: boolean | null;
  /**
   * Environments whose keys may use the upstream's discovered models. Default: `live`, `dev`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Seconds to wait for the first byte of an answer. Default 600.
   */
  timeout_seconds?: number | null;
  /**
   * Seconds without data after which a started answer fails. Default 900.
   */
  idle_seconds?: number | null;
  /**
   * Maximum number of concurrent requests. Further requests wait in the queue. null: measured automatically.
   */
  max_concurrency?: number | null;
  /**
   * API of the upstream: `messages` is Anthropic's. Default `openai`.
   */
  api?: ("openai" | "messages") | null;
  /**
   * Conversation formats that the upstream supports in full. Requests in other formats are translated. null: detected automatically.
   */
  apis?: ("chat" | "responses" | "messages")[] | null;
  /**
   * Header for the API key: `authorization` as a bearer token, or `api-key` for Azure. null: `authorization`, or `x-api-key` if `api` is `messages`.
   */
  key_header?: ("authorization" | "api-key" | "x-api-key") | null;
  query?: {
    [k: string]: string;
  } | null;
  cache_salt?: boolean | null;
  priority?: boolean | null;
  /**
   * The form in which the upstream gets `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id`: `hashed` with the account, `as_sent` or `removed`. null: `as_sent` if the upstream is local, else `hashed`.
   */
  identifiers?: ("hashed" | "as_sent" | "removed") | null;
}
export interface CreateWebhookRequest {
  /**
   * URL that receives the events: https, on the public internet, without credentials. Operators' webhooks may also use the hosts and networks of `webhook_networks`, over http as well.
   */
  url: string;
  format?: ("standard" | "slack" | "teams" | "pagerduty" | "alertmanager") | null;
  routing_key?: string | null;
  description?: string | null;
  events?:
    | (
        | "quota.threshold"
        | "key.unused"
        | "key.expiring"
        | "key.rotation_due"
        | "model.shutdown"
        | "errors.rate"
        | "upstream.down"
        | "upstream.up"
        | "upstream.failing"
        | "upstream.recovered"
        | "node.away"
        | "node.back"
        | "tool.changed"
        | "limit.requested"
        | "limit.decided"
        | "webhook.test"
      )[]
    | null;
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
   * `active`: the key works. `suspended`: it is refused until it, or what it depends on, is resumed. A key ends at the latest when the key that created it ends.
   */
  status: "active" | "expired" | "revoked" | "suspended";
  /**
   * Id of the key or person that created it. null for keys that neither created, such as the first key.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * Time of revocation. After a rotation it may lie in the future: the key works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Model ids and patterns that the key may use. null: all models.
   */
  models: string[] | null;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.
   */
  never_leaves: boolean;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
  /**
   * The API key. It is shown only in this response and is not stored.
   */
  key: string;
}
/**
 * The app, with `client_secret` if it is confidential.
 */
export interface CreatedApp {
  object: "app";
  id: string;
  /**
   * The `id` under its name in OAuth.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * Scopes that the app may request.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * While an app is suspended, its tokens are refused.
   */
  status: "active" | "suspended";
  /**
   * Environment of the app's access tokens.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * Name of the account, shown on the consent page.
   */
  publisher: string;
  /**
   * Id of the person or key that registered the app.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Valid secrets, oldest first, at most two. Empty for a public app.
   */
  secrets: AppSecret[];
  /**
   * The client secret. It is shown only in this response and is not stored.
   */
  client_secret?: string;
}
export interface CreatedInvitation {
  object: "invitation";
  id: string;
  email: string;
  /**
   * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
   */
  role: "owner" | "admin" | "member";
  /**
   * Id of the person or key that sent the invitation. null for the console.
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
   * Link that works once, for anyone who has it. It is shown only in this response and is not stored. null if it was mailed.
   */
  link: string | null;
  /**
   * True if the invitation was sent by mail. Otherwise pass the link on yourself.
   */
  mailed: boolean;
}
export interface CreatedNodeJoinToken {
  object: "node_join_token";
  id: string;
  /**
   * Last four characters of the token.
   */
  last4: string;
  status: "active" | "used" | "expired";
  /**
   * Ids of announced models that the node may serve. ["*"]: all models that it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * Environments whose keys may use the node's models.
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
   * Unix time in seconds. null if no node joined with the token.
   */
  used_at: number | null;
  /**
   * Id of the node that joined with the token.
   */
  node_id: string | null;
  /**
   * The token. It is shown only in this response.
   */
  token: string;
  /**
   * Public URL of the gateway, which the machine joins.
   */
  gateway_url: string;
}
export interface DecideToolDefinition {
  /**
   * Default: `tool`.
   */
  kind?: "tool" | "prompt" | "instructions";
  name: string;
  digest: string;
  decision: "approved" | "refused";
}
export interface DeploymentStatus {
  /**
   * Name of the model server.
   */
  upstream: string;
  /**
   * The built-in engine, an upstream that an operator added, a server found on this machine, or a machine that joined as a node.
   */
  kind: "built-in" | "configured" | "found" | "node";
  /**
   * Id of the model at the model server.
   */
  model: string;
  /**
   * `unreachable`: the server did not answer the last poll of its models. `failing`: it failed the last attempts of real requests. `cooling_down`: it failed recently, and is tried last. `draining`: it gets no new requests.
   */
  state: "ok" | "unreachable" | "failing" | "cooling_down" | "draining";
  /**
   * State of the model's process, if the process is started on demand. Otherwise null.
   */
  process:
    ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
  /**
   * Number of running requests. If one limit covers all models of the server, the requests of all its models.
   */
  running: number;
  /**
   * Number of requests that wait for a free slot, counted in the same way.
   */
  waiting: number;
  /**
   * Number of waiting requests by priority.
   */
  waiting_by_priority: {
    low: number;
    normal: number;
    high: number;
  };
  /**
   * Expected waiting time of a new request in milliseconds, by priority. 0: no wait. null: unknown, because no answer has been timed yet.
   */
  expected_wait_ms: {
    low: number | null;
    normal: number | null;
    high: number | null;
  };
  /**
   * Limit of concurrent requests, declared or measured so far. null before the first request.
   */
  concurrency: number | null;
  /**
   * Mean time to the first token of streamed answers in the last 15 minutes. null if there are none.
   */
  first_token_ms: number | null;
  /**
   * Mean speed of these answers after their first token.
   */
  tokens_per_second: number | null;
  /**
   * Times of the answers in the last 15 minutes: to the first token, null without streams, and to the end of all answers. null if there are none.
   */
  percentiles: {
    first_token_ms: {
      p50: number;
      p95: number;
      p99: number;
    } | null;
    /**
     * Milliseconds within which 50, 95 and 99 % of the answers came.
     */
    total_ms: {
      p50: number;
      p95: number;
      p99: number;
    };
  } | null;
  /**
   * The attempts of real requests. null for callers that are no operators, and without recent attempts.
   */
  attempts: AttemptHealth | null;
}
export interface AttemptHealth {
  /**
   * True after five failed attempts in a row, or failed attempts in a row for ten seconds. The next successful attempt ends it; at another replica, one that is more than 30 s newer than the failures.
   */
  failing: boolean;
  /**
   * Attempts of requests that ended in the last 120 s, on all replicas.
   */
  attempts: number;
  /**
   * Number of these attempts that failed through a fault of the server.
   */
  failed: number;
  window_seconds: number;
  /**
   * First failure since the last success. null if the last attempt succeeded.
   */
  since: number | null;
  /**
   * Last failed attempt. null if none failed recently.
   */
  last_failure: {
    cause:
      | "authentication"
      | "quota"
      | "rate_limit"
      | "overload"
      | "timeout"
      | "dns"
      | "tls"
      | "connection"
      | "not_http"
      | "not_found"
      | "no_answer"
      | "broke_off"
      | "server_error";
    /**
     * HTTP status. null without an HTTP answer.
     */
    status: number | null;
    /**
     * Known phrases of the server's message. null if it has none.
     */
    message: string | null;
    /**
     * Unix time in seconds.
     */
    at: number;
  } | null;
  /**
   * The figures and the last failure in words.
   */
  summary: string;
}
export interface EmbeddingList {
  /**
   * Id from the model server, or generated by the gateway.
   */
  id: string;
  object: "list";
  data: {
    object: "embedding";
    index: number;
    /**
     * A list of numbers, or little-endian float32 values in base64.
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
export interface EndUserList {
  object: "list";
  /**
   * Quotas of each end user without a budget of their own.
   */
  default_quotas:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * End users with a budget of their own.
   */
  data: EndUser[];
}
export interface EndUser {
  object: "end_user";
  /**
   * Id of the end user. An id that cannot be a tag is replaced by its hash.
   */
  id: string;
  /**
   * Quotas of this end user.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
}
export interface EndedBrowserSessions {
  object: "browser_session.deleted";
  /**
   * Number of sessions that ended.
   */
  deleted: number;
}
export interface GrantLimitRequest {
  /**
   * Amount that is added to the quota, in its unit.
   */
  amount: number;
  /**
   * Time after which the quota is as before, in seconds.
   */
  seconds: number;
}
export interface GuardrailList {
  object: "list";
  data: Guardrail[];
}
/**
 * A guardrail of headrace.yaml, without its address and credentials.
 */
export interface Guardrail {
  object: "guardrail";
  /**
   * Name for the `policies` of models.
   */
  name: string;
  kind: "patterns" | "secrets" | "judge" | "http";
  sides: ("request" | "answer")[];
  action: "block" | "mask" | "note";
}
export interface Invitation {
  object: "invitation";
  id: string;
  email: string;
  /**
   * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
   */
  role: "owner" | "admin" | "member";
  /**
   * Id of the person or key that sent the invitation. null for the console.
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
export interface KeyRotation {
  object: "key_rotation";
  /**
   * Days from the creation of a key until its rotation. null: never.
   */
  every_days: number | null;
  /**
   * Seconds from then on for which the old key still works.
   */
  overlap_seconds: number | null;
}
export interface KeyRotationRequest {
  /**
   * Days from the creation of a key until its rotation is due.
   */
  every_days: number;
  /**
   * Seconds from then on for which the old key still works. Default: 86400.
   */
  overlap_seconds?: number | null;
}
export interface LimitRequest {
  object: "limit_request";
  id: string;
  account_id: string;
  environment: "live" | "test" | "dev";
  /**
   * Owner of the quota: the member who asks, or the account of which they are an owner or admin.
   */
  owner: "member" | "account";
  person: {
    id: string;
    email: string;
    name: string;
  };
  /**
   * Unit of the amount. `usd` is counted by the prices of the models.
   */
  unit: "requests" | "tokens" | "usd";
  /**
   * Length of the window: a named span, or seconds.
   */
  per: ("hour" | "5h" | "day" | "week" | "month") | number;
  /**
   * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
   */
  window: "calendar" | "rolling";
  /**
   * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
   *
   * @minItems 1
   * @maxItems 32
   */
  models?: string[];
  /**
   * Count only requests with this tag. Default: all requests.
   */
  tag?: string;
  /**
   * Amount that is wanted in addition. null: whoever decides chooses it.
   */
  amount: number | null;
  reason: string;
  /**
   * `ended`: the time of the raise is over. A raise that was ended early is `refused`.
   */
  status: "open" | "granted" | "ended" | "refused";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  decision: {
    /**
     * Id of the person or key that decided.
     */
    by: string;
    /**
     * Unix time in seconds.
     */
    at: number;
    /**
     * Amount that is added. null: refused.
     */
    amount: number | null;
    until: number | null;
  } | null;
}
export interface ListedPrice {
  object: "listed_price";
  /**
   * `vendor/model`, the name for `price_of` of a model.
   */
  id: string;
  vendor: string;
  model: string;
  /**
   * Context length in tokens, prompt and answer together. null if the list does not have it.
   */
  context_length: number | null;
  price: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  };
}
export interface ManagedModel {
  object: "managed_model";
  id: string;
  /**
   * Source of the declaration. `file`: headrace.yaml, where alone it can be changed. `database`: this API. `upstream`: undeclared, offered as an upstream lists it.
   */
  source: "file" | "database" | "upstream";
  /**
   * True if the model is also declared by this API. That declaration has no effect while the file has the id.
   */
  overrides_database: boolean;
  /**
   * The share of deployments that are `ok`: all, some or none. `nowhere`: the model has no deployments, because no upstream lists it or the named upstreams are gone.
   */
  status: "ok" | "partly" | "down" | "nowhere";
  owned_by: string | null;
  /**
   * null if unknown.
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
     * Creates embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents for a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Detects harmful texts and images.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Converts text to speech.
     */
    speech?: boolean;
    /**
     * Transcribes or translates recordings.
     */
    transcription?: boolean;
    /**
     * Creates and edits images.
     */
    images?: boolean;
    /**
     * Holds a live conversation over a WebSocket, in audio or text.
     */
    realtime?: boolean;
    /**
     * Converts texts to tokens and back.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Context length in tokens, prompt and answer together. null if unknown.
   */
  context_length: number | null;
  /**
   * Date (UTC) on which the last deployment ends, as the upstreams announced it. null if they did not.
   */
  shutdown_date: string | null;
  /**
   * Environments whose keys may use the model.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * null: the model has no price. It is free, and quotas in USD do not count it.
   */
  price: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
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
     * `missing`: no upstream has this name any more. The other states are those of `GET /v1/model-status`.
     */
    state: "ok" | "unreachable" | "failing" | "cooling_down" | "draining" | "missing";
    /**
     * State of the model's process, if the process is started on demand. Otherwise null.
     */
    process:
      ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
    /**
     * True if the upstream listed the model when it was last reached. null: it was never reached. Some upstreams list fewer models than they serve.
     */
    listed: boolean | null;
    /**
     * State of the deployment as the attempts of real requests show it. null without recent attempts.
     */
    attempts: AttemptHealth | null;
  }[];
  fallbacks: string[];
  aliases: string[];
  /**
   * Cost of the overflow in the current span, over all replicas. null if `policies.overflow` has no `spend`.
   */
  overflow_spend: {
    per: "hour" | "day" | "week" | "month";
    /**
     * Cost in USD, including reservations for running requests.
     */
    spent: number;
    /**
     * USD.
     */
    limit: number;
    /**
     * End of the span. The next span begins at 0.
     */
    ends_at: number;
  } | null;
  /**
   * Declaration in the file or by this API. The members above combine it with what upstreams report.
   */
  settings: {
    /**
     * Owner label in the model list. null: the upstream's value.
     */
    owned_by: string | null;
    /**
     * Capabilities of the model. Omitted capabilities are unknown, and the model server decides. null: the upstream's values.
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
       * Creates embeddings.
       */
      embeddings?: boolean;
      /**
       * Ranks documents for a query, and scores texts.
       */
      rerank?: boolean;
      /**
       * Detects harmful texts and images.
       */
      moderation?: boolean;
      /**
       * Answers typed questions with probabilities.
       */
      decisions?: boolean;
      /**
       * Converts text to speech.
       */
      speech?: boolean;
      /**
       * Transcribes or translates recordings.
       */
      transcription?: boolean;
      /**
       * Creates and edits images.
       */
      images?: boolean;
      /**
       * Holds a live conversation over a WebSocket, in audio or text.
       */
      realtime?: boolean;
      /**
       * Converts texts to tokens and back.
       */
      tokenize?: boolean;
    } | null;
    /**
     * Context length in tokens, prompt and answer together. null: the upstream's value, else unlimited.
     */
    context_length: number | null;
    /**
     * Environments whose keys may use the model. Without its own deployments, a model is limited to the environments of its upstreams. null: the environments of the upstreams, or `live`, `dev` for a model with deployments of its own.
     */
    environments: ("live" | "test" | "dev")[] | null;
    /**
     * Price of usage, for requests that begin after the change. null: the price of `price_of`, else usage is free.
     */
    price: {
      /**
       * USD per million tokens of the prompt.
       */
      input: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
      /**
       * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
       *
       * @maxItems 16
       */
      variants?: {
        /**
         * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
         */
        context_above?: number;
        /**
         * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
         */
        served?: string;
        /**
         * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
         */
        from?: string;
        /**
         * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
         *
         * @minItems 1
         * @maxItems 8
         */
        hours?: string[];
        /**
         * Condition: the request begins on one of these days of the week (UTC).
         *
         * @minItems 1
         * @maxItems 7
         */
        days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
        /**
         * Factor for all token rates under these conditions, including the rates of this variant.
         */
        factor?: number;
        /**
         * USD per million tokens of the prompt.
         */
        input?: number;
        /**
         * USD per million tokens of the prompt that were read from a cache. Default: `input`.
         */
        cached_input?: number;
        /**
         * USD per million tokens of the prompt that were written to a cache. Default: `input`.
         */
        cache_write?: number;
        /**
         * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
         */
        cache_write_1h?: number;
        /**
         * USD per million tokens of audio in the prompt. Default: `input`.
         */
        input_audio?: number;
        /**
         * USD per million tokens of images in the prompt. Default: `input`.
         */
        input_image?: number;
        /**
         * USD per million tokens of the answer.
         */
        output?: number;
        /**
         * USD per million tokens of the reasoning. Default: `output`.
         */
        reasoning?: number;
        /**
         * USD per million tokens of audio in the answer. Default: `output`.
         */
        output_audio?: number;
        /**
         * USD per million tokens of images in the answer. Default: `output`.
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
         * USD for a second of audio that is transcribed.
         */
        second?: number;
        /**
         * USD for an image that is made.
         */
        image?: number;
      }[];
    } | null;
    /**
     * A model in the price list, as `headrace prices` names it (`vendor/model`). Its price applies if `price` is null.
     */
    price_of: string | null;
    /**
     * Deployments of the model. Requests are distributed by weight. null or empty: all upstreams and nodes that list this id, and the built-in engine if it has the model.
     */
    deployments:
      | {
          /**
           * Name of an upstream or node, or `built-in` for the built-in engine.
           */
          upstream: string;
          /**
           * Id of the model at the upstream. Default: the public id.
           */
          model?: string | null;
          /**
           * Share of the requests, relative to the other deployments. Default 1.
           */
          weight?: number | null;
        }[]
      | null;
    /**
     * Fallback models, tried in this order if all deployments of this model fail or are busy. The answer names the model that answered, and is charged at its price.
     */
    fallbacks: string[] | null;
    /**
     * Other names that clients can send, or prefixes ending in `*`: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model with that id has precedence, then the exact alias, then the longest prefix. No two models can have the same alias.
     */
    aliases: string[] | null;
    /**
     * Policies for requests to the model. Omitted policies keep their values. null removes one policy, or all of them.
     */
    policies: {
      /**
       * True if another deployment continues a stream that its upstream cut. The deployment must be able to continue the text exactly.
       */
      continuation?: boolean | null;
      /**
       * Deployments that are used only if the others would keep a request waiting, or under the conditions given here.
       */
      overflow?: {
        /**
         * Upstreams whose deployments of the model come last, the cheapest first.
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
           * The operator's costs for this upstream, with the keys of a model's `price`. The cheapest upstream comes first. Default: the price of `cost_of`, else the model's price.
           */
          cost?: {
            /**
             * USD per million tokens of the prompt.
             */
            input: number;
            /**
             * USD per million tokens of the prompt that were read from a cache. Default: `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache. Default: `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Default: `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Default: `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output: number;
            /**
             * USD per million tokens of the reasoning. Default: `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Default: `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Default: `output`.
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
             * USD for a second of audio that is transcribed.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
            /**
             * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
             *
             * @maxItems 16
             */
            variants?: {
              /**
               * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
               */
              context_above?: number;
              /**
               * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
               */
              served?: string;
              /**
               * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
               */
              from?: string;
              /**
               * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
               *
               * @minItems 1
               * @maxItems 8
               */
              hours?: string[];
              /**
               * Condition: the request begins on one of these days of the week (UTC).
               *
               * @minItems 1
               * @maxItems 7
               */
              days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
              /**
               * Factor for all token rates under these conditions, including the rates of this variant.
               */
              factor?: number;
              /**
               * USD per million tokens of the prompt.
               */
              input?: number;
              /**
               * USD per million tokens of the prompt that were read from a cache. Default: `input`.
               */
              cached_input?: number;
              /**
               * USD per million tokens of the prompt that were written to a cache. Default: `input`.
               */
              cache_write?: number;
              /**
               * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
               */
              cache_write_1h?: number;
              /**
               * USD per million tokens of audio in the prompt. Default: `input`.
               */
              input_audio?: number;
              /**
               * USD per million tokens of images in the prompt. Default: `input`.
               */
              input_image?: number;
              /**
               * USD per million tokens of the answer.
               */
              output?: number;
              /**
               * USD per million tokens of the reasoning. Default: `output`.
               */
              reasoning?: number;
              /**
               * USD per million tokens of audio in the answer. Default: `output`.
               */
              output_audio?: number;
              /**
               * USD per million tokens of images in the answer. Default: `output`.
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
               * USD for a second of audio that is transcribed.
               */
              second?: number;
              /**
               * USD for an image that is made.
               */
              image?: number;
            }[];
          } | null;
          /**
           * A model in the price list, as `headrace prices` names it. Its price is your cost if `cost` is not set.
           */
          cost_of?: string | null;
        }[];
        /**
         * Overflow if a request is expected to wait this long for the other deployments. Default: no overflow because of waiting.
         */
        after_seconds?: number | null;
        /**
         * Overflow if the prompt has more tokens than this. Default: no overflow because of length.
         */
        prompt_tokens_above?: number | null;
        /**
         * Parts of a day (UTC) in which these deployments are used like any other, such as `18:00-08:00`. Default: none.
         */
        hours?: string[] | null;
        /**
         * Maximum expected cost of one request there, in USD. Default: no limit.
         */
        most_usd_per_request?: number | null;
        /**
         * Maximum cost of all requests there. Default: no limit.
         */
        spend?: {
          /**
           * Maximum cost in each span, in USD.
           */
          usd: number;
          /**
           * Span of the calendar, in UTC. A week begins on Monday.
           */
          per: "hour" | "day" | "week" | "month";
        } | null;
      } | null;
      /**
       * Response cache, separate for each account.
       */
      cache?: {
        /**
         * The requests that use the cache: `deterministic` for requests with temperature 0 and those that ask for it, `asked` only for those that ask for it, or `all`. Default: `deterministic`.
         */
        requests?: ("deterministic" | "asked" | "all") | null;
        /**
         * Lifetime of a cached answer. Default: 3600.
         */
        ttl_seconds?: number | null;
        /**
         * Factor of the price that a cached answer costs. Default: 0.
         */
        price_factor?: number | null;
        /**
         * Semantic cache: requests with the same meaning share an answer. Default: only identical requests do.
         */
        semantic?: {
          /**
           * Id of the embedding model that compares requests.
           */
          model: string;
          /**
           * Minimum cosine similarity of two requests that share an answer.
           */
          threshold: number;
        } | null;
      } | null;
      /**
       * Names of `guardrails` that check requests and answers of the model, in this order.
       */
      guardrails?: string[] | null;
      /**
       * A second model that also receives a share of the requests. Clients never see its answers.
       */
      shadow?: {
        /**
         * Id of the second model.
         */
        model: string;
        /**
         * Share of the requests in percent, above 0.
         */
        percent: number;
      } | null;
      /**
       * Other models that answer a share of the requests. The model itself answers the rest.
       */
      split?:
        | {
            /**
             * Id of the model that answers this share.
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
   * Time of the declaration by this API. null if there is none.
   */
  created_at: number | null;
}
export interface ManagedModelList {
  object: "list";
  data: ManagedModel[];
}
export interface McpServer {
  object: "tool_server";
  name: string;
  title: string | null;
  description: string | null;
  /**
   * Source of the server. `database`: changed by this API. `file`: changed only in headrace.yaml.
   */
  source: "file" | "database";
  /**
   * True if a server with this name was also added by this API. It has no effect while the file has the name.
   */
  overrides_database: boolean;
  /**
   * Location of the server. `command`: a process on this machine.
   */
  place: "http" | "command" | "node";
  /**
   * null unless the server is reached over HTTP.
   */
  url: string | null;
  /**
   * Id of the node, and name of the server there.
   */
  node: {
    node: string;
    server: string;
  } | null;
  /**
   * Identity of requests to the server: none, the same headers for all users, or each person's own account.
   */
  credentials: "none" | "headers" | "person";
  /**
   * True if the headers were encrypted under a secret that is no longer accepted. The server is unavailable until you set them again.
   */
  credentials_unreadable: boolean;
  /**
   * Names of the headers. Their values are not shown.
   */
  header_names: string[];
  oauth: {
    issuer: string | null;
    client_id: string | null;
    has_client_secret: boolean;
    scopes: string[] | null;
  } | null;
  /**
   * True if keys with `never_leaves` may use the server, because it sends nothing on to other systems. If `url` changes to another server and this member is omitted, it becomes false.
   */
  local: boolean;
  /**
   * Environments whose keys may use the server. null: all.
   */
  environments: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use the server. null: all.
   */
  accounts: string[] | null;
  /**
   * Names of the tools that are offered, or prefixes ending in `*`. null: all.
   */
  tools: string[] | null;
  /**
   * The tool and prompt definitions that clients get. `first`: the first version seen, while changes wait for an operator. `each`: only definitions that an operator approved. `all`: all definitions.
   */
  approval: "first" | "each" | "all";
  /**
   * Sharing of connections to the server. `person`: a connection for each person. `all`: all users share connections.
   */
  sharing: "person" | "all";
  protocol_version: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  timeout_seconds: number;
  max_result_bytes: number;
  max_concurrency: number;
  /**
   * Price in USD of each call that was answered or that its caller abandoned. null: free.
   */
  price_per_call: number | null;
  enabled: boolean;
  /**
   * null: the server is configured in the file.
   */
  created_at: number | null;
  /**
   * Number of tools and prompts that wait for approval because they are new or changed.
   */
  waiting: number;
}
export interface McpServerList {
  object: "list";
  data: McpServer[];
}
export interface McpServerTest {
  object: "tool_server.test";
  ok: boolean;
  /**
   * Error message.
   */
  error: {
    code: string;
    message: string;
    detail: string | null;
  } | null;
  /**
   * Negotiated protocol revision.
   */
  revision: string | null;
  server: {
    name: string | null;
    title: string | null;
    version: string | null;
  } | null;
  instructions: string | null;
  /**
   * Capabilities that the server declares, such as `tools`.
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
   * Last lines that the process wrote to standard error.
   */
  output: string[];
  duration_ms: number;
}
export interface McpServerTestRequest {
  /**
   * Name of an existing server.
   */
  name?: string;
  /**
   * URL of a server that is not added yet.
   */
  url?: string;
  /**
   * A server in the configuration of a node. Alternative to `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node.
     */
    server: string;
  };
  /**
   * With `url`: headers for this test only.
   */
  headers?: {
    [k: string]: string;
  };
  /**
   * The only protocol revision to use in this test. null: the newest that the server supports. Default: the server's setting.
   */
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
}
export interface Member {
  object: "member";
  id: string;
  person_id: string;
  email: string;
  name: string;
  /**
   * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
   */
  role: "owner" | "admin" | "member";
  /**
   * Quotas per window, in each environment, for the person and for everything that they create as a member.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if a member sees the usage and requests of the whole account, but no prompts or answers. Owners and admins always do.
   */
  sees_all_usage: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Last use of this server in a browser. null: no recent use.
   */
  last_seen_at: number | null;
  usage?: PersonUsage;
}
/**
 * Usage in this account. Only in a list with `include=usage`.
 */
export interface PersonUsage {
  /**
   * Cost in USD since the start of this calendar month (UTC), in the environment of the request, of the person's logins, own keys and allowed apps.
   */
  spend: number;
  /**
   * Last use of the person's logins, own keys and allowed apps, in any environment. null: never.
   */
  last_used_at: number | null;
}
export interface MemberDetails {
  object: "member";
  id: string;
  person_id: string;
  email: string;
  name: string;
  /**
   * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
   */
  role: "owner" | "admin" | "member";
  /**
   * Quotas per window, in each environment, for the person and for everything that they create as a member.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if a member sees the usage and requests of the whole account, but no prompts or answers. Owners and admins always do.
   */
  sees_all_usage: boolean;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Last use of this server in a browser. null: no recent use.
   */
  last_seen_at: number | null;
  /**
   * Usage of each of `quotas` in the requested environment.
   */
  quotas_used: {
    /**
     * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
     */
    reason:
      | "account_quota"
      | "key_quota"
      | "member_quota"
      | "app_quota"
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota";
    /**
     * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
     */
    owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
    owner_id: string;
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Usage in this window, without running requests.
     */
    used: number;
    /**
     * Rest of `amount`. 0 if more was used.
     */
    left: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * null: all models.
     */
    models: string[] | null;
    /**
     * null: requests with any tags.
     */
    tag: string | null;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop: boolean;
    /**
     * null: the window begins with the next use.
     */
    starts_at: number | null;
    resets_at: number | null;
    /**
     * People who can raise the quota, such as `an owner or admin of the account`.
     */
    ask: string;
  }[];
}
export interface MemberList {
  object: "list";
  data: Member[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface ModelList {
  object: "list";
  data: Model[];
  /**
   * True if more entries follow. Always false without `anthropic-version`.
   */
  has_more: boolean;
  /**
   * Id of the first entry of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last entry of the page. null if the page is empty.
   */
  last_id: string | null;
  /**
   * For Codex: the first 500 models that can chat. Present if the request has `client_version`.
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
   * Omitted if unknown.
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
   * Context length in tokens, prompt and answer together. Omitted if unknown.
   */
  context_length?: number;
  /**
   * Date (UTC) on which the model ends, as its upstreams announced it. Omitted if they announced none.
   */
  shutdown_date?: string;
  /**
   * USD per million tokens. Omitted if the model has no price.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  };
  /**
   * For an alias: id of its model.
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
   * `context_length`, with Anthropic's name.
   */
  max_input_tokens?: number;
  /**
   * Maximum value of `max_tokens`: `context_length`.
   */
  max_tokens?: number;
}
export interface CodexModel {
  /**
   * Name to request.
   */
  slug: string;
  display_name: string;
  description: string | null;
  /**
   * Codex requests no effort unless the user chooses one.
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
   * Position in the list. Codex uses the first model unless the user chooses one.
   */
  priority: number;
  additional_speed_tiers: string[];
  service_tiers: string[];
  availability_nux: null;
  upgrade: null;
  /**
   * Prompt that Codex sends with each request.
   */
  base_instructions: string;
  include_skills_usage_instructions: true;
  /**
   * True if Codex may send `reasoning`.
   */
  supports_reasoning_summaries: true;
  supports_reasoning_summary_parameter: true;
  default_reasoning_summary: "none";
  support_verbosity: false;
  default_verbosity: null;
  /**
   * Codex patches files by a command, which every model can run.
   */
  apply_patch_tool_type: null;
  web_search_tool_type: "text";
  /**
   * Maximum size of a tool's output that Codex keeps.
   */
  truncation_policy: {
    mode: "tokens";
    limit: number;
  };
  supports_parallel_tool_calls: true;
  experimental_supported_tools: string[];
  input_modalities: ("text" | "image")[];
  /**
   * Context length in tokens. Omitted if unknown.
   */
  context_window?: number;
  max_context_window?: number;
  effective_context_window_percent: number;
  supports_search_tool: false;
  use_responses_lite: false;
}
export interface ModelProcess {
  object: "model_process";
  /**
   * Name of the command's upstream.
   */
  name: string;
  models: string[];
  /**
   * `waiting`: waiting for memory. `restarting`: the process ended and will be restarted soon. `failed`: the process ended too often or can never fit in memory, and requests are refused for some seconds.
   */
  state: "off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed";
  /**
   * Unix time in seconds.
   */
  since: number;
  /**
   * Reason for the last failure. null: no failure since the process was loaded.
   */
  failure: string | null;
  /**
   * True if the process is never stopped to free memory for others.
   */
  pinned: boolean;
  /**
   * Bytes that are or would be reserved for the process, by pool.
   */
  memory: {
    [k: string]: number;
  };
  /**
   * Number of running requests.
   */
  running: number;
  /**
   * Number of waiting requests.
   */
  waiting: number;
  /**
   * Accounts of the waiting requests.
   */
  waiting_by: {
    account_id: string;
    requests: number;
  }[];
  /**
   * While waiting for memory: the processes that must stop or free memory first.
   */
  behind: string[];
  /**
   * True if this process is the first to be stopped if memory is needed.
   */
  is_next: boolean;
  starts: number;
  /**
   * Number of times that the process was stopped or put to sleep to free memory for others.
   */
  evictions: number;
  failures: number;
  /**
   * Total loading time of all starts, in seconds.
   */
  load_seconds: number;
}
export interface ModelProcessList {
  object: "list";
  data: ModelProcess[];
  /**
   * Memory shared by the processes.
   */
  memory: {
    /**
     * `ram`, `gpu0`, `gpu1` and so on.
     */
    pool: string;
    total: number;
    /**
     * Reserved bytes.
     */
    used: number;
  }[];
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
export interface ModelStatus {
  object: "model_status";
  id: string;
  /**
   * Omitted if unknown.
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
   * Context length in tokens, prompt and answer together. Omitted if unknown.
   */
  context_length?: number;
  /**
   * Environments whose keys may use the model.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * USD per million tokens. null: the model has no price and is free.
   */
  price: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
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
export interface ModelStatusList {
  object: "list";
  data: ModelStatus[];
}
export interface Node {
  object: "node";
  id: string;
  /**
   * Name of the node in the list of upstreams and in usage records.
   */
  name: string;
  /**
   * `offline`: not connected. `draining`: gets no new requests, because an operator or the node asked for that. `pending`: none of the announced models is approved. Otherwise `online`.
   */
  status: "pending" | "online" | "offline" | "draining";
  /**
   * While true, the node finishes its requests and gets no new ones. Survives a restart.
   */
  draining: boolean;
  /**
   * Ids of announced models that the node may serve. ["*"]: all models that it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * Models that the node last announced.
   */
  announced_models: NodeModel[];
  /**
   * MCP servers that the node last announced. An MCP server of this gateway can refer to one of them.
   */
  tool_servers: {
    name: string;
    title: string | null;
    /**
     * `command`: a process on the node's machine.
     */
    kind: "http" | "command";
  }[];
  /**
   * Environments whose keys may use the node's models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Maximum number of concurrent requests. Further requests wait in the queue. null: the announced value, else measured automatically.
   */
  max_concurrency: number | null;
  /**
   * True if keys with `never_leaves` may use the node, because it sends nothing on to other systems.
   */
  local: boolean;
  /**
   * Number of running requests of this process.
   */
  running: number;
  /**
   * Number of requests that wait in this process for a free slot.
   */
  waiting: number;
  /**
   * Current limit of concurrent requests. null before the first request.
   */
  concurrency: number | null;
  /**
   * Headrace version of the node. null before its first connection.
   */
  version: string | null;
  /**
   * Address that the node connects from. null while it is not connected.
   */
  client_address: string | null;
  /**
   * Process of this gateway that holds the connection. null while the node is not connected.
   */
  replica_id: string | null;
  /**
   * Unix time in seconds. null while the node is not connected.
   */
  connected_at: number | null;
  /**
   * Unix time in seconds. null before the first connection.
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
   * Context length in tokens. null if the node does not announce it.
   */
  context: number | null;
  /**
   * Capabilities of the model. null or omitted if the node does not announce them.
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
   * True if the node may serve the model.
   */
  approved: boolean;
  /**
   * State of the model's process, if the node starts it on demand. Otherwise null.
   */
  process:
    ("off" | "waiting" | "loading" | "loaded" | "asleep" | "waking" | "stopping" | "restarting" | "failed") | null;
}
export interface NodeJoinToken {
  object: "node_join_token";
  id: string;
  /**
   * Last four characters of the token.
   */
  last4: string;
  status: "active" | "used" | "expired";
  /**
   * Ids of announced models that the node may serve. ["*"]: all models that it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models: string[];
  /**
   * Environments whose keys may use the node's models.
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
   * Unix time in seconds. null if no node joined with the token.
   */
  used_at: number | null;
  /**
   * Id of the node that joined with the token.
   */
  node_id: string | null;
}
export interface NodeList {
  object: "list";
  data: Node[];
}
export interface NoticeSettings {
  object: "notice_settings";
  /**
   * True if the person receives mail notifications.
   */
  mail: boolean;
  /**
   * True if this server can send mail.
   */
  mail_is_sent: boolean;
}
export interface Organization {
  object: "organization";
  id: string;
  name: string;
  /**
   * null: no limit.
   */
  monthly_tokens: number | null;
  /**
   * USD; null: no limit.
   */
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Number of its accounts.
   */
  accounts: number;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface OrganizationDetails {
  object: "organization";
  id: string;
  name: string;
  /**
   * null: no limit.
   */
  monthly_tokens: number | null;
  /**
   * USD; null: no limit.
   */
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Number of its accounts.
   */
  accounts: number;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Limits of the organization, and usage of its accounts in this calendar month (UTC).
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
         * Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.
         */
        reason:
          | "account_quota"
          | "key_quota"
          | "member_quota"
          | "app_quota"
          | "tag_quota"
          | "organization_quota"
          | "end_user_quota";
        /**
         * Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.
         */
        owner: "account" | "key" | "member" | "app" | "organization" | "end_user";
        owner_id: string;
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Usage in this window, without running requests.
         */
        used: number;
        /**
         * Rest of `amount`. 0 if more was used.
         */
        left: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window: "calendar" | "rolling";
        /**
         * null: all models.
         */
        models: string[] | null;
        /**
         * null: requests with any tags.
         */
        tag: string | null;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop: boolean;
        /**
         * null: the window begins with the next use.
         */
        starts_at: number | null;
        resets_at: number | null;
        /**
         * People who can raise the quota, such as `an owner or admin of the account`.
         */
        ask: string;
      }[];
    }[];
  };
}
export interface Overview {
  object: "overview";
  range: "24h" | "7d" | "30d";
  group_by: ("model" | "key" | "app") | null;
  usage: {
    /**
     * Start of the first step in Unix seconds. Steps are aligned to UTC.
     */
    start: number;
    /**
     * Length of a step in seconds. The last step is not over yet.
     */
    step: number;
    /**
     * Totals of all steps.
     */
    sum: {
      requests: number;
      total_tokens: number;
      /**
       * Cost in USD. Requests to models without a price are free.
       */
      cost: number;
      /**
       * Number of failed requests.
       */
      errors: number;
      /**
       * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, after the first token. null if too little was streamed.
       */
      tokens_per_second: number | null;
      /**
       * Milliseconds within which 50, 95 and 99 % of the answers came: the first token of streams, and the end of all completed answers. They are computed from the counts, so they may be off by a part of a step. null: not stored for these groups or filters, or this time.
       */
      percentiles: {
        first_token_ms: {
          p50: number;
          p95: number;
          p99: number;
          /**
           * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
           */
          counts: {
            /**
             * The upper bound of the step in milliseconds. null: longer than all steps.
             */
            up_to_ms: number | null;
            answers: number;
          }[];
        } | null;
        total_ms: {
          p50: number;
          p95: number;
          p99: number;
          /**
           * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
           */
          counts: {
            /**
             * The upper bound of the step in milliseconds. null: longer than all steps.
             */
            up_to_ms: number | null;
            answers: number;
          }[];
        } | null;
      } | null;
    };
    /**
     * Totals of the preceding time, of the same length as the time so far.
     */
    before: {
      requests: number;
      total_tokens: number;
      /**
       * Cost in USD. Requests to models without a price are free.
       */
      cost: number;
      /**
       * Number of failed requests.
       */
      errors: number;
      /**
       * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, after the first token. null if too little was streamed.
       */
      tokens_per_second: number | null;
    };
    /**
     * True if the account made no request in this environment within the last year, as far as the caller can see.
     */
    is_new: boolean;
    /**
     * The figures by step.
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
     * Groups that lead in at least one figure, those with the most requests first. Empty without `group_by`.
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
     * Leading groups of each figure, as indexes into `groups`: those with the highest value or, for a mean, those with the most measurements.
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
     * Number of groups, including groups that are not listed.
     */
    group_count: number;
  };
  /**
   * Requests refused by limits in this time, the most frequent reason first.
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
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota"
      | "capacity";
    requests: number;
    /**
     * Unix time in seconds.
     */
    last_at: number;
    /**
     * Credential with the most refused requests. null: too many credentials at once to tell them apart.
     */
    key: string | null;
    model: string | null;
  }[];
  /**
   * Last failed requests, of any time.
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
   * Names of the keys, members and apps above by id, as far as the caller may list them.
   */
  names: {
    [k: string]: string;
  };
  account: AccountOverview;
}
export interface OverviewOfAllAccounts {
  object: "overview";
  range: "24h" | "7d" | "30d";
  group_by: ("account" | "model" | "upstream" | "deployment" | "outcome") | null;
  usage: {
    /**
     * Start of the first step in Unix seconds. Steps are aligned to UTC.
     */
    start: number;
    /**
     * Length of a step in seconds. The last step is not over yet.
     */
    step: number;
    /**
     * Totals of all steps.
     */
    sum: {
      requests: number;
      total_tokens: number;
      /**
       * Cost in USD. Requests to models without a price are free.
       */
      cost: number;
      /**
       * Number of failed requests.
       */
      errors: number;
      /**
       * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, after the first token. null if too little was streamed.
       */
      tokens_per_second: number | null;
      /**
       * Milliseconds within which 50, 95 and 99 % of the answers came: the first token of streams, and the end of all completed answers. They are computed from the counts, so they may be off by a part of a step. null: not stored for these groups or filters, or this time.
       */
      percentiles: {
        first_token_ms: {
          p50: number;
          p95: number;
          p99: number;
          /**
           * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
           */
          counts: {
            /**
             * The upper bound of the step in milliseconds. null: longer than all steps.
             */
            up_to_ms: number | null;
            answers: number;
          }[];
        } | null;
        total_ms: {
          p50: number;
          p95: number;
          p99: number;
          /**
           * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
           */
          counts: {
            /**
             * The upper bound of the step in milliseconds. null: longer than all steps.
             */
            up_to_ms: number | null;
            answers: number;
          }[];
        } | null;
      } | null;
    };
    /**
     * Totals of the preceding time, of the same length as the time so far.
     */
    before: {
      requests: number;
      total_tokens: number;
      /**
       * Cost in USD. Requests to models without a price are free.
       */
      cost: number;
      /**
       * Number of failed requests.
       */
      errors: number;
      /**
       * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
       */
      first_token_ms: number | null;
      /**
       * Tokens per second of generation, after the first token. null if too little was streamed.
       */
      tokens_per_second: number | null;
    };
    /**
     * True if the account made no request in this environment within the last year, as far as the caller can see.
     */
    is_new: boolean;
    /**
     * The figures by step.
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
     * Groups that lead in at least one figure, those with the most requests first. Empty without `group_by`.
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
     * Leading groups of each figure, as indexes into `groups`: those with the highest value or, for a mean, those with the most measurements.
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
     * Number of groups, including groups that are not listed.
     */
    group_count: number;
  };
  /**
   * Requests refused by limits in this time, the most frequent reason first.
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
      | "tag_quota"
      | "organization_quota"
      | "end_user_quota"
      | "capacity";
    requests: number;
    /**
     * Unix time in seconds.
     */
    last_at: number;
    /**
     * Credential with the most refused requests. null: too many credentials at once to tell them apart.
     */
    key: string | null;
    model: string | null;
  }[];
  /**
   * Last failed requests, of any time.
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
   * Names of the accounts, credentials and apps above by id.
   */
  names: {
    [k: string]: string;
  };
}
export interface Passkey {
  object: "passkey";
  id: string;
  name: string;
  /**
   * True if the passkey is backed up or synced beyond one device.
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
export interface PasskeyList {
  object: "list";
  data: Passkey[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface Person {
  object: "person";
  id: string;
  email: string;
  name: string;
  /**
   * True if the person can operate the installation (`admin:manage`) while signed in to a browser.
   */
  is_operator: boolean;
  /**
   * Time when an operator suspended the person. null: the person is not suspended.
   */
  suspended_at: number | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  usage?: PersonUsage1;
}
/**
 * Usage in all accounts. Only in a list with `include=usage`.
 */
export interface PersonUsage1 {
  /**
   * Cost in USD since the start of this calendar month (UTC), in the environment of the request, of the person's logins, own keys and allowed apps.
   */
  spend: number;
  /**
   * Last use of the person's logins, own keys and allowed apps, in any environment. null: never.
   */
  last_used_at: number | null;
}
export interface PersonDetails {
  object: "person";
  id: string;
  email: string;
  name: string;
  /**
   * True if the person can operate the installation (`admin:manage`) while signed in to a browser.
   */
  is_operator: boolean;
  /**
   * Time when an operator suspended the person. null: the person is not suspended.
   */
  suspended_at: number | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  memberships: {
    id: string;
    account_id: string;
    account_name: string;
    /**
     * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
     */
    role: "owner" | "admin" | "member";
    /**
     * Unix time in seconds.
     */
    created_at: number;
  }[];
}
export interface PriceList {
  object: "list";
  data: ListedPrice[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
  /**
   * Package of the price list, with its version.
   */
  source: string;
  /**
   * Date of the prices.
   */
  date: string;
  vendors: {
    id: string;
    name: string;
    models: number;
  }[];
}
export interface PullOffer {
  object: "pull_offer";
  /**
   * Id under which the model is served.
   */
  id: string;
  /**
   * Path of the file in the repository.
   */
  file: string;
  quantization: string | null;
  bytes: number;
  /**
   * Bytes that are still to be downloaded.
   */
  missing_bytes: number;
  /**
   * Free bytes on the disk.
   */
  room_bytes: number;
  /**
   * Minimum memory of a model of this size. The context needs more.
   */
  least_memory_bytes: number;
  /**
   * The way to load the model with its minimum memory, as in `PulledModel`.
   */
  fit: "now" | "evicting" | "waiting" | "reduced" | "never";
  /**
   * True if the download has begun. false after a dry run.
   */
  started: boolean;
}
export interface PullRequest {
  /**
   * `hf:owner/repo`, or `hf:owner/repo:file` with a file name, a path or a quantization after the colon.
   */
  source: string;
  /**
   * Id under which the model is served. null: the file name in lower case.
   */
  name?: string | null;
  /**
   * true: report what would be downloaded, without downloading it. Default false.
   */
  dry_run?: boolean | null;
}
export interface PulledModel {
  object: "pulled_model";
  id: string;
  /**
   * Size of the model's files on disk.
   */
  bytes: number;
  /**
   * `incomplete`: a pull was interrupted, or a file is missing. The model is not served and can be pulled again.
   */
  state: "ready" | "incomplete";
  /**
   * Source of the model. null if only parts of its files are present.
   */
  source: string | null;
  pulled_at: number | null;
  /**
   * Omitted if unknown.
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
   * Context length in tokens. null if the file does not state it.
   */
  context_length: number | null;
  /**
   * Architecture named in the file, such as `qwen3`. null if the file cannot be read.
   */
  architecture: string | null;
  /**
   * Quantization of the weights, such as `Q4_K_M`. null if the file cannot be read.
   */
  quantization: string | null;
  /**
   * null likewise.
   */
  parameters: number | null;
  /**
   * Memory of the loaded model. null if the file cannot be read.
   */
  memory: MemoryNeed | null;
  /**
   * The way to load the model. `now`: immediately. `evicting`: after unloading idle models. `waiting`: after busy models have had their time. `reduced`: with a shorter context or fewer slots. `never`: it needs more memory than pinned models leave. null if it is loaded or its need is unknown.
   */
  fit: ("now" | "evicting" | "waiting" | "reduced" | "never") | null;
  /**
   * `failed`: loading failed. The server's log has the reason, and a later request tries again.
   */
  use: "unloaded" | "loading" | "loaded" | "failed";
  /**
   * Number of running and waiting requests of the model.
   */
  in_use: number;
}
/**
 * Required memory in bytes, estimated from the metadata of the file.
 */
export interface MemoryNeed {
  /**
   * Total of `weights`, `cache` and `compute`.
   */
  bytes: number;
  /**
   * Total with the shortest context with which the model can be loaded.
   */
  least_bytes: number;
  weights: number;
  /**
   * KV cache of all slots.
   */
  cache: number;
  /**
   * Batch buffers and the process itself.
   */
  compute: number;
  /**
   * Context of one slot in tokens, on which `bytes` is based.
   */
  context_length: number;
  /**
   * Number of slots on which `bytes` is based: requests computed at the same time.
   */
  parallel: number;
}
export interface PulledModelList {
  object: "list";
  data: PulledModel[];
  pulls: Pull[];
  memory: ModelMemory;
}
export interface Pull {
  object: "pull";
  id: string;
  source: string;
  /**
   * Bytes on the disk.
   */
  bytes: number;
  total_bytes: number;
  /**
   * Reason for the failure. null while the pull is running. Another request for the same model continues it.
   */
  failure: string | null;
}
/**
 * Memory available to models of this server.
 */
export interface ModelMemory {
  total_bytes: number;
  free_bytes: number;
  /**
   * Memory of models that are never unloaded for others.
   */
  pinned_bytes: number;
  /**
   * Memory of idle models that can be unloaded for others.
   */
  evictable_bytes: number;
  /**
   * Models with reserved memory, pulled or not.
   */
  held: {
    id: string;
    /**
     * Reserved for the model.
     */
    bytes: number;
    state: "loading" | "loaded" | "leaving" | "failed";
    /**
     * Number of running and waiting requests of the model.
     */
    in_use: number;
    /**
     * True if the model stays loaded even if others need memory.
     */
    pinned: boolean;
  }[];
}
export interface Refusal {
  object: "refusal";
  /**
   * Start of the hour in Unix seconds.
   */
  start: number;
  /**
   * Id of the credential, as in the usage by key. null together with `model`: too many at once to tell them apart.
   */
  key: string | null;
  /**
   * Id of the OAuth app. null for none.
   */
  app: string | null;
  model: string | null;
  /**
   * Reached limit: a rate limit of requests or tokens or a monthly quota, with its owner. `capacity`: no model server had a free slot in time.
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
    | "tag_quota"
    | "organization_quota"
    | "end_user_quota"
    | "capacity";
  requests: number;
  /**
   * Time of the last refusal in Unix seconds.
   */
  last_at: number;
}
export interface RefusalList {
  object: "list";
  data: Refusal[];
}
export interface Request {
  object: "request";
  /**
   * `x-request-id` of the answer.
   */
  id: string;
  /**
   * Start of the request in Unix seconds. For a refused request, the time of the refusal.
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
   * Requested model, or MCP server and tool (`github/search`). null if the request was refused before its body was read.
   */
  model: string | null;
  /**
   * Id of the credential: a key, a signed-in member (`mbr_…`) or the grant of an app (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app. null for none.
   */
  app: string | null;
  /**
   * null under the same condition as `model`.
   */
  stream: boolean | null;
  /**
   * Tags of the request. Always empty for a refused request.
   */
  tags: string[];
  /**
   * `cancelled`: the client disconnected. `interrupted`: the server's process ended first. `refused`: the request got an error before it began, so it is not part of the usage.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "refused";
  /**
   * `code` of the error that ended the request.
   */
  error_code: string | null;
  /**
   * HTTP status of the error. For a stream that had begun, the status that it would have had.
   */
  error_status: number | null;
  /**
   * Error message to the client of a refused request, without names that the client made up. Otherwise null.
   */
  error_message: string | null;
  prompt_tokens: number;
  /**
   * Prompt tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Prompt tokens written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Reasoning tokens of the answer, as far as the model server reports them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * True if the tokens are an estimate, because the model server reported none or implausible numbers.
   */
  estimated: boolean;
  /**
   * True if the reported usage was implausible. If the server reported more tokens than possible, these are the possible maximum. If it reported fewer than it delivered, these are `estimated`.
   */
  capped: boolean;
  /**
   * True if the answer came from the response cache, without a model.
   */
  from_cache: boolean;
  /**
   * Cost in USD. null if the model has no price or the request was refused.
   */
  cost: number | null;
  /**
   * Model server that answered. null if none did.
   */
  upstream: string | null;
  /**
   * Number of attempts at model servers.
   */
  attempts: number;
  /**
   * Milliseconds in the queue, before the request was sent.
   */
  queue_ms: number;
  /**
   * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
   */
  first_token_ms: number | null;
  /**
   * Total milliseconds until the end.
   */
  duration_ms: number;
  /**
   * Tokens per second of generation, after the first token. null if too little was streamed.
   */
  tokens_per_second: number | null;
}
export interface RequestDetail {
  object: "request";
  /**
   * `x-request-id` of the answer.
   */
  id: string;
  /**
   * Start of the request in Unix seconds. For a refused request, the time of the refusal.
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
   * Requested model, or MCP server and tool (`github/search`). null if the request was refused before its body was read.
   */
  model: string | null;
  /**
   * Id of the credential: a key, a signed-in member (`mbr_…`) or the grant of an app (`grt_…`).
   */
  key: string;
  /**
   * Id of the OAuth app. null for none.
   */
  app: string | null;
  /**
   * null under the same condition as `model`.
   */
  stream: boolean | null;
  /**
   * Tags of the request. Always empty for a refused request.
   */
  tags: string[];
  /**
   * `cancelled`: the client disconnected. `interrupted`: the server's process ended first. `refused`: the request got an error before it began, so it is not part of the usage.
   */
  outcome: "completed" | "failed" | "cancelled" | "interrupted" | "refused";
  /**
   * `code` of the error that ended the request.
   */
  error_code: string | null;
  /**
   * HTTP status of the error. For a stream that had begun, the status that it would have had.
   */
  error_status: number | null;
  /**
   * Error message to the client of a refused request, without names that the client made up. Otherwise null.
   */
  error_message: string | null;
  prompt_tokens: number;
  /**
   * Prompt tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Prompt tokens written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Reasoning tokens of the answer, as far as the model server reports them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * True if the tokens are an estimate, because the model server reported none or implausible numbers.
   */
  estimated: boolean;
  /**
   * True if the reported usage was implausible. If the server reported more tokens than possible, these are the possible maximum. If it reported fewer than it delivered, these are `estimated`.
   */
  capped: boolean;
  /**
   * True if the answer came from the response cache, without a model.
   */
  from_cache: boolean;
  /**
   * Cost in USD. null if the model has no price or the request was refused.
   */
  cost: number | null;
  /**
   * Model server that answered. null if none did.
   */
  upstream: string | null;
  /**
   * Number of attempts at model servers.
   */
  attempts: number;
  /**
   * Milliseconds in the queue, before the request was sent.
   */
  queue_ms: number;
  /**
   * Milliseconds from the request to the first chunk of its answer. null if the answer was not streamed or came in one chunk.
   */
  first_token_ms: number | null;
  /**
   * Total milliseconds until the end.
   */
  duration_ms: number;
  /**
   * Tokens per second of generation, after the first token. null if too little was streamed.
   */
  tokens_per_second: number | null;
  /**
   * Further usage that only some model servers report, and the bytes of a tool call. null if there is none.
   */
  usage_details: UsageDetails | null;
  /**
   * Attempts, oldest first. Empty if no model server was asked, and for failed requests from before trails existed. Of very many steps, the first and the last are stored, and the last has the number of omitted steps.
   */
  trail: RequestStep[];
  /**
   * Id of the stored chat completion of the request. null if none is stored or the caller may not read it.
   */
  chat: string | null;
  /**
   * Content of a tool call, if `tools.record` stores it. null if none is stored or the caller may not read it.
   */
  tool_content: {
    /**
     * Arguments of the tool as JSON, cut if they are long.
     */
    arguments: string;
    /**
     * Result of the tool as JSON, cut if it is long.
     */
    result: string;
  } | null;
}
export interface UsageDetails {
  /**
   * Tokens written to a cache for an hour.
   */
  cache_write_1h_tokens?: number;
  input_audio_tokens?: number;
  input_image_tokens?: number;
  output_audio_tokens?: number;
  output_image_tokens?: number;
  /**
   * Number of searches that the model server ran.
   */
  searches?: number;
  /**
   * Number of documents ranked or compared.
   */
  documents?: number;
  /**
   * Search units that the vendor bills for them.
   */
  search_units?: number;
  /**
   * Number of characters spoken.
   */
  characters?: number;
  /**
   * Whole seconds of audio input.
   */
  seconds?: number;
  /**
   * Number of generated images.
   */
  images?: number;
  /**
   * Bytes of the tool's arguments as JSON.
   */
  bytes_in?: number;
  /**
   * Bytes of the tool's result as JSON.
   */
  bytes_out?: number;
  /**
   * 1 if the tool marked its result as an error.
   */
  tool_errors?: number;
  /**
   * 1 if the answer came from the response cache. The tokens are those of the original answer.
   */
  replayed?: number;
  /**
   * Tier, speed and region that the server reported.
   */
  served?: string[];
  /**
   * USD that the vendor reports to charge the operator. Only for operators.
   */
  billed?: number;
}
export interface RequestStep {
  /**
   * Number of the model server within this trail, from 1. null if the step concerns no server.
   */
  server: number | null;
  /**
   * Tried model: the requested one or a fallback.
   */
  model: string;
  /**
   * `answered`: the server accepted the request. `refused`: it answered with an error. `timed_out`: it did not answer in time. `unreachable`: the connection failed. `broke_off`: the answer ended early or was unreadable. `no_room`: the server accepted the request, but the gateway or its node had no memory for more of the answer. `cancelled`: the client disconnected or the server stopped. `queue_full` and `queue_timeout`: no slot was free, so no server was asked. `resting`: not asked, after failures. `away`: not asked, because it is not connected or draining. `not_retried`: not asked, because too many requests for the model are retries already. `overflowed`: the model's overflow policy chose a server that normally comes last. `masked`, `blocked` and `noted`: a guardrail found something in the request or the answer. `over_quota`: not asked, because it costs more than the rest of a quota.
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
   * HTTP status of the server's answer, if it was an error.
   */
  status: number | null;
  /**
   * Milliseconds from the start of the request.
   */
  started_ms: number;
  /**
   * Milliseconds that the step took.
   */
  duration_ms: number;
  /**
   * Name of the model server. Only for operators, otherwise null.
   */
  upstream: string | null;
  /**
   * Id of the model at the server. Only for operators, otherwise null.
   */
  upstream_model: string | null;
  /**
   * Shortened error message of the server, or description of the fault, without credentials and without parts of the request. Only for operators, otherwise null.
   */
  reason: string | null;
  /**
   * Number of steps before this one that were not stored, because there were very many or the server's disk was full. Otherwise 0.
   */
  left_out: number;
}
export interface RequestList {
  object: "list";
  data: Request[];
  /**
   * Send it as `cursor` to get the next page. null on the last page. Earlier pages may be empty.
   */
  next: string | null;
  /**
   * Unix seconds. Requests that began later than this have all been read. null on the last page.
   */
  searched_to: number | null;
  /**
   * Start of the stored requests in Unix seconds, if the requested time begins earlier.
   */
  kept_since?: number;
}
export interface ResetLink {
  object: "reset_link";
  person_id: string;
  /**
   * Link to set a new password. It works once, for anyone who has it. It is shown only in this response and is not stored.
   */
  link: string;
  /**
   * Unix time in seconds.
   */
  expires_at: number;
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
   * `active`: the key works. `suspended`: it is refused until it, or what it depends on, is resumed. A key ends at the latest when the key that created it ends.
   */
  status: "active" | "expired" | "revoked" | "suspended";
  /**
   * Id of the key or person that created it. null for keys that neither created, such as the first key.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /**
   * Time of revocation. After a rotation it may lie in the future: the key works until then.
   */
  revoked_at: number | null;
  allowed_ips: string[];
  rate_limit: number | null;
  rate_limit_window: number | null;
  monthly_tokens: number | null;
  monthly_spend: number | null;
  /**
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Model ids and patterns that the key may use. null: all models.
   */
  models: string[] | null;
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.
   */
  never_leaves: boolean;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority: ("low" | "normal" | "high") | null;
  response_cache: ("on" | "off") | null;
  tags: string[];
  note: string | null;
  /**
   * The API key. It is shown only in this response and is not stored.
   */
  key: string;
  /**
   * Id of the rotated key.
   */
  replaces: string;
}
export interface RotatedApp {
  object: "app";
  id: string;
  /**
   * The `id` under its name in OAuth.
   */
  client_id: string;
  name: string;
  homepage_url: string | null;
  type: "confidential" | "public";
  redirect_uris: string[];
  /**
   * Scopes that the app may request.
   */
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Allowed tools, as `server` or `server/tool`. null: all tools that are offered.
   */
  tools: string[] | null;
  /**
   * While an app is suspended, its tokens are refused.
   */
  status: "active" | "suspended";
  /**
   * Environment of the app's access tokens.
   */
  environment: "live" | "test" | "dev";
  require_pkce: boolean;
  /**
   * Name of the account, shown on the consent page.
   */
  publisher: string;
  /**
   * Id of the person or key that registered the app.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Valid secrets, oldest first, at most two. Empty for a public app.
   */
  secrets: AppSecret[];
  /**
   * The client secret. It is shown only in this response and is not stored.
   */
  client_secret: string;
}
export interface RotationOfKey {
  object: "key_rotation";
  /**
   * Days from the creation of a key until its rotation. null: never.
   */
  every_days: number | null;
  /**
   * Seconds from then on for which the old key still works.
   */
  overlap_seconds: number | null;
  /**
   * `account`: the schedule of the account applies.
   */
  set_for: ("key" | "account") | null;
  /**
   * Unix time of the next rotation. null: none, or the key is ending.
   */
  next_at: number | null;
  /**
   * True if the successor can be fetched with `POST /v1/keys/{id}/rotate`.
   */
  is_due: boolean;
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
   * Account of the requests.
   */
  account: {
    id: string;
    name: string;
  };
  /**
   * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
   */
  role: "owner" | "admin" | "member";
  environment: "live" | "test" | "dev";
  scopes: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use" | "keys:manage" | "admin:manage")[];
  /**
   * Id of the browser session. null for a token of `headrace login`.
   */
  session_id: string | null;
  /**
   * Value to send as `X-CSRF-Token` with every request that changes data. Only for a browser session.
   */
  csrf_token: string | null;
  /**
   * True if the person has a password. A password change then requires it. null for a token of `headrace login`.
   */
  has_password: boolean | null;
  /**
   * All accounts of which the person is a member.
   */
  accounts: {
    id: string;
    name: string;
    /**
     * `member`: has their own keys, apps and chats. `admin`: manages all keys, apps and members of the account. `owner`: also manages owners and admins.
     */
    role: "owner" | "admin" | "member";
    status: "active" | "suspended";
    membership_id: string;
  }[];
}
export interface SigningKey {
  object: "signing_key";
  /**
   * `kid` of the tokens that the key signs.
   */
  id: string;
  /**
   * Published but not in use yet; in use; or kept only to verify earlier tokens.
   */
  state: "upcoming" | "signing" | "verifying";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Time at which the key begins to sign, as Unix time in seconds.
   */
  active_at: number;
  /**
   * Time until which the key is published. null for the newest key.
   */
  retires_at: number | null;
}
export interface Statement {
  object: "statement";
  /**
   * Month, such as 2026-09.
   */
  month: string;
  /**
   * Unix time in seconds.
   */
  start: number;
  /**
   * End in Unix seconds, not included. A request belongs to the month in which it began.
   */
  end: number;
  time_zone: "UTC";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * True if the month has ended. Requests that still run then are added when they end.
   */
  is_over: boolean;
  /**
   * URL of this server.
   */
  installation: string;
  environment: "live" | "test" | "dev";
  currency: "USD";
  /**
   * Start of the count of `unpriced_requests`, if the month begins earlier. null: they are counted for the whole month.
   */
  unpriced_since: number | null;
  account: {
    id: string;
    name: string;
  };
  /**
   * Part of the account's usage that the statement covers, such as a member's own. Empty: all of it.
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
   * True if lines overlap, because they are by tag. A request with several tags is in the line of each, but only once in `total`.
   */
  overlaps: boolean;
  /**
   * The most expensive first, 1000 at most. CSV has all.
   */
  lines: StatementLine[];
  /**
   * Sum of all lines that are not listed. null: all lines are listed.
   */
  others: {
    requests: number;
    /**
     * All input tokens, including cache reads and writes.
     */
    prompt_tokens: number;
    /**
     * Input tokens read from a cache.
     */
    cached_tokens: number;
    /**
     * Input tokens written to a cache.
     */
    cache_write_tokens: number;
    /**
     * Number of output tokens, including reasoning.
     */
    completion_tokens: number;
    /**
     * Reasoning tokens of the output, as far as model servers report them.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Number of failed requests.
     */
    errors: number;
    /**
     * Number of requests to models without a price. No cost includes them.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals. Lines and total add up exactly.
     */
    cost: string;
    /**
     * Number of these lines. null: too many to tell apart.
     */
    lines: number | null;
  } | null;
  total: {
    requests: number;
    /**
     * All input tokens, including cache reads and writes.
     */
    prompt_tokens: number;
    /**
     * Input tokens read from a cache.
     */
    cached_tokens: number;
    /**
     * Input tokens written to a cache.
     */
    cache_write_tokens: number;
    /**
     * Number of output tokens, including reasoning.
     */
    completion_tokens: number;
    /**
     * Reasoning tokens of the output, as far as model servers report them.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Number of failed requests.
     */
    errors: number;
    /**
     * Number of requests to models without a price. No cost includes them.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals. Lines and total add up exactly.
     */
    cost: string;
  };
}
export interface StatementLine {
  /**
   * Id of the credential, as in the usage by key, if `group_by` has it.
   */
  key?: string | null;
  /**
   * Name of the credential. null if the caller may not see it.
   */
  key_name?: string | null;
  /**
   * Id of the person. null for usage of the account's own keys.
   */
  person?: string | null;
  person_name?: string | null;
  model?: string | null;
  /**
   * Id of the OAuth app. null for none.
   */
  app?: string | null;
  app_name?: string | null;
  /**
   * null: requests without tags.
   */
  tag?: string | null;
  requests: number;
  /**
   * All input tokens, including cache reads and writes.
   */
  prompt_tokens: number;
  /**
   * Input tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Input tokens written to a cache.
   */
  cache_write_tokens: number;
  /**
   * Number of output tokens, including reasoning.
   */
  completion_tokens: number;
  /**
   * Reasoning tokens of the output, as far as model servers report them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * Number of failed requests.
   */
  errors: number;
  /**
   * Number of requests to models without a price. No cost includes them.
   */
  unpriced_requests: number;
  /**
   * USD with nine decimals. Lines and total add up exactly.
   */
  cost: string;
}
export interface StatementOfAccounts {
  object: "statement";
  /**
   * Month, such as 2026-09.
   */
  month: string;
  /**
   * Unix time in seconds.
   */
  start: number;
  /**
   * End in Unix seconds, not included. A request belongs to the month in which it began.
   */
  end: number;
  time_zone: "UTC";
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * True if the month has ended. Requests that still run then are added when they end.
   */
  is_over: boolean;
  /**
   * URL of this server.
   */
  installation: string;
  environment: "live" | "test" | "dev";
  currency: "USD";
  /**
   * Start of the count of `unpriced_requests`, if the month begins earlier. null: they are counted for the whole month.
   */
  unpriced_since: number | null;
  /**
   * Accounts with usage, in the order of their creation.
   */
  lines: {
    account: string;
    account_name: string;
    requests: number;
    /**
     * All input tokens, including cache reads and writes.
     */
    prompt_tokens: number;
    /**
     * Input tokens read from a cache.
     */
    cached_tokens: number;
    /**
     * Input tokens written to a cache.
     */
    cache_write_tokens: number;
    /**
     * Number of output tokens, including reasoning.
     */
    completion_tokens: number;
    /**
     * Reasoning tokens of the output, as far as model servers report them.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Number of failed requests.
     */
    errors: number;
    /**
     * Number of requests to models without a price. No cost includes them.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals. Lines and total add up exactly.
     */
    cost: string;
  }[];
  /**
   * Covers the accounts of this organization. null: all accounts of the server.
   */
  organization: {
    id: string;
    name: string;
  } | null;
  total: {
    requests: number;
    /**
     * All input tokens, including cache reads and writes.
     */
    prompt_tokens: number;
    /**
     * Input tokens read from a cache.
     */
    cached_tokens: number;
    /**
     * Input tokens written to a cache.
     */
    cache_write_tokens: number;
    /**
     * Number of output tokens, including reasoning.
     */
    completion_tokens: number;
    /**
     * Reasoning tokens of the output, as far as model servers report them.
     */
    reasoning_tokens: number;
    total_tokens: number;
    /**
     * Number of failed requests.
     */
    errors: number;
    /**
     * Number of requests to models without a price. No cost includes them.
     */
    unpriced_requests: number;
    /**
     * USD with nine decimals. Lines and total add up exactly.
     */
    cost: string;
  };
}
/**
 * The completion, its labels, and the parameters of its request without the messages.
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
   * `x-request-id` of the request that created the completion.
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
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /**
   * Present if the model server reported no usage, or less than it delivered. The figures are then estimated from the text.
   */
  estimated?: true;
  [k: string]: unknown;
}
export interface StoredChatMessage {
  id: string;
  role: string;
  /**
   * null if the request had an array of parts.
   */
  content: string | null;
  /**
   * Content parts. null if the content was a string.
   */
  content_parts:
    | {
        [k: string]: unknown;
      }[]
    | null;
  [k: string]: unknown;
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
     * Path of the file that was read at the start. null: no file.
     */
    file: string | null;
    /**
     * null: no change since the start.
     */
    last_reload: {
      /**
       * Unix time in seconds.
       */
      at: number;
      /**
       * `refused`: the previous configuration stays active.
       */
      result: "ok" | "refused";
      /**
       * Errors in the file.
       */
      error: string | null;
      /**
       * Changed keys that take effect after a restart.
       */
      needs_restart: string[];
    } | null;
  };
  /**
   * Secrets in files and in Vault that the configuration refers to, without their values.
   */
  external_secrets: {
    /**
     * The reference in the configuration: `file:PATH` or `vault:PATH#FIELD`.
     */
    name: string;
    /**
     * Seconds since the value in use was last confirmed.
     */
    age_seconds: number;
    /**
     * The reason why the secret cannot be read. Its last value stays in use.
     */
    failure: string | null;
  }[];
  /**
   * State of the receivers of audit events, requests and metrics, a few seconds old.
   */
  exports: {
    /**
     * `otlp`: the collector. `s3`: the object store.
     */
    receiver: string;
    /**
     * True for audit events and requests, false for metrics of this process.
     */
    records: boolean;
    /**
     * Number of records that the receiver lacks.
     */
    waiting: number;
    /**
     * Seconds for which the oldest of them has waited.
     */
    lag_seconds: number;
    /**
     * Time of the last accepted message. null: none yet.
     */
    last_sent_at: number | null;
    /**
     * Time of the first failure since the last success. null: no failure.
     */
    failing_since: number | null;
    /**
     * The reason why the last attempt failed.
     */
    failure: string | null;
  }[];
  memory: {
    /**
     * Resident memory of the gateway's process.
     */
    rss_bytes: number;
  };
  /**
   * Event-loop delay in the last minute: no request could be answered for this long.
   */
  event_loop: {
    mean_delay_ms: number;
    max_delay_ms: number;
  };
  database: {
    kind: "sqlite" | "postgres";
    /**
     * null if it cannot be read.
     */
    size_bytes: number | null;
    /**
     * Size of SQLite's write-ahead log.
     */
    wal_bytes: number | null;
    /**
     * `degraded`: the component works with restrictions.
     */
    state: "ok" | "degraded" | "starting" | "failed" | "draining";
  };
  /**
   * Store in which limits are counted for all replicas. null: in memory.
   */
  redis: {
    /**
     * `degraded`: the component works with restrictions.
     */
    state: "ok" | "degraded" | "starting" | "failed" | "draining";
  } | null;
  /**
   * Processes that share the database, oldest first. Times are from the database's clock.
   */
  replicas: Replica[];
  /**
   * Files of the ledger, with records that are not in the database yet.
   */
  spool: {
    /**
     * Size of the ledger's files.
     */
    bytes: number;
    /**
     * Number of ended requests whose usage is not in the database yet.
     */
    pending: number;
  };
  requests: {
    /**
     * Number of admitted requests for models that have not ended.
     */
    open: number;
    /**
     * Number of these requests that wait for a free slot at a model server.
     */
    waiting: number;
  };
  /**
   * Number of credentials in memory, and time since the database last confirmed them.
   */
  credentials: {
    cached: number;
    unconfirmed_ms: number;
  };
  /**
   * Progress of the rotation of the installation's secret, at most a minute old. null if it cannot be counted.
   */
  secret: {
    /**
     * Number of accepted secrets: more than one during a rotation.
     */
    accepted: number;
    /**
     * Number of keys that have not been used since the secret was replaced.
     */
    keys_under_old: number;
    /**
     * Number of keys that are refused because their secret is no longer accepted.
     */
    keys_under_dropped: number;
    app_secrets_under_old: number;
    app_secrets_under_dropped: number;
    /**
     * Number of signing keys and upstream keys. A start encrypts them with the new secret.
     */
    sealed_under_old: number;
    join_tokens_under_old: number;
  } | null;
  /**
   * Checks of `GET /readyz`.
   */
  checks: {
    /**
     * `degraded`: the component works with restrictions.
     */
    [k: string]: "ok" | "degraded" | "starting" | "failed" | "draining";
  };
}
export interface Replica {
  object: "replica";
  id: string;
  /**
   * URL at which other replicas reach the process.
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
   * True if this process answers the request.
   */
  current: boolean;
  /**
   * True if the replica reports that it is not ready, so that load balancers send it nothing new. It still answers requests.
   */
  draining: boolean;
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
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Environments in which the limits apply. The other environments have no limits.
   *
   * @maxItems 3
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Highest priority of requests of its accounts in all environments, and the default priority. Default: `normal`.
   */
  priority: "low" | "normal" | "high";
  /**
   * Source of its figures. Figures from `file` can only be changed in headrace.yaml.
   */
  source: "built-in" | "file" | "database";
  /**
   * Number of accounts with this tier.
   */
  accounts: number;
}
export interface TierList {
  object: "list";
  data: Tier[];
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
   * Quotas per window, in addition to the monthly quotas.
   */
  quotas: {
    /**
     * Unit of the amount. `usd` is counted by the prices of the models.
     */
    unit: "requests" | "tokens" | "usd";
    /**
     * Amount: a whole number of requests or tokens, or a number of USD.
     */
    amount: number;
    /**
     * Length of the window: a named span, or seconds.
     */
    per: ("hour" | "5h" | "day" | "week" | "month") | number;
    /**
     * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
     */
    window: "calendar" | "rolling";
    /**
     * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
     *
     * @minItems 1
     * @maxItems 32
     */
    models?: string[];
    /**
     * Count only requests with this tag. Default: all requests.
     */
    tag?: string;
    /**
     * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
     */
    hard_stop?: boolean;
  }[];
  /**
   * Environments in which the limits apply. The other environments have no limits.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Highest priority of requests of its accounts, in all environments.
   */
  priority: "low" | "normal" | "high";
  source: "built-in" | "file" | "database";
  /**
   * True if this is the tier of the account.
   */
  current: boolean;
}
export interface TierOverviewList {
  object: "list";
  data: TierOverview[];
}
/**
 * All figures of the tier. `null` means no limit, and so does an omitted optional member.
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
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * Environments in which the limits apply. The other environments have no limits. Default: `live`, `test`.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  priority?: ("low" | "normal" | "high") | null;
}
export interface ToolConnection {
  object: "tool_connection";
  /**
   * Name of the MCP server.
   */
  server: string;
  title: string | null;
  /**
   * `broken`: the connection no longer works until you connect the account again, and `broken_because` says why. `unused`: the server no longer exists or may not be used here, but the grant is kept until you end the connection.
   */
  state: "none" | "connected" | "broken" | "unused";
  /**
   * Authorization server that issued the tokens.
   */
  issuer: string | null;
  /**
   * Granted scopes.
   */
  scopes: string[];
  connected_at: number | null;
  last_used_at: number | null;
  broken_because: string | null;
}
export interface ToolConnectionBegun {
  object: "tool_connection.begun";
  /**
   * Name of the MCP server.
   */
  server: string;
  /**
   * URL to open in the browser. The browser must return within 15 minutes, in the same session.
   */
  url: string;
}
export interface ToolConnectionDeleted {
  object: "tool_connection.deleted";
  /**
   * Name of the MCP server.
   */
  server: string;
  deleted: true;
  /**
   * True if the authorization server confirmed the revocation of the tokens.
   */
  revoked: boolean;
}
export interface ToolConnectionList {
  object: "list";
  data: ToolConnection[];
}
export interface ToolDefinition {
  object: "tool_definition";
  /**
   * Kind and name, such as `tool/search_issues`.
   */
  id: string;
  server: string;
  kind: "tool" | "prompt" | "instructions";
  /**
   * Name at the server.
   */
  name: string;
  /**
   * `changed`: an approved definition has changed.
   */
  state: "approved" | "pending" | "changed" | "refused";
  /**
   * Digest of the current definition. Decisions refer to it.
   */
  digest: string;
  /**
   * Current definition.
   */
  definition: {
    [k: string]: unknown;
  };
  /**
   * Approved definition. null: it was never approved, or was refused since.
   */
  approved: {
    [k: string]: unknown;
  } | null;
  /**
   * Number of other approved versions. A server may describe a tool differently to each person.
   */
  approved_others: number;
  /**
   * Unix seconds.
   */
  seen_at: number;
  decided_at: number | null;
  /**
   * null if nobody decided, because the definition was present at first.
   */
  decided_by: string | null;
}
export interface ToolDefinitionList {
  object: "list";
  data: ToolDefinition[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
/**
 * Omitted members keep their values.
 */
export interface UpdateAccountRequest {
  /**
   * Display name, in printable characters.
   */
  name?: string;
  /**
   * Name of a tier.
   */
  tier?: string;
  /**
   * While an account is suspended, all its keys are refused.
   */
  status?: "active" | "suspended";
  /**
   * Tokens per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_tokens?: (number | "unlimited") | null;
  /**
   * USD per calendar month (UTC), replacing the tier's: a number, "unlimited" for no limit, or null for the tier's value. Per environment.
   */
  monthly_spend?: (number | "unlimited") | null;
  /**
   * Quotas per window, replacing the tier's: a list, empty for none, or null for the tier's quotas. Per environment.
   */
  quotas?:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  /**
   * True to store chat completions of requests that do not set `store`.
   */
  store_chats?: boolean;
  tools?: string[] | null;
}
/**
 * Omitted members keep their values. null clears a value.
 */
export interface UpdateAppRequest {
  /**
   * Name on the consent page, in printable characters. It must not look like the name of this server.
   */
  name?: string;
  homepage_url?: string | null;
  /**
   * Redirect URIs, compared byte by byte: https, http on 127.0.0.1, [::1] or localhost (any port), or a private scheme with a dot. May be empty for an app that only uses the device flow.
   *
   * @maxItems 20
   */
  redirect_uris?: string[];
  /**
   * Scopes that the app may request.
   *
   * @minItems 1
   * @maxItems 20
   */
  scopes?: ("chat:read" | "chat:write" | "models:read" | "usage:read" | "tools:use")[];
  tools?: string[] | null;
  /**
   * True if the app must use PKCE (S256). A public app always must.
   */
  require_pkce?: boolean;
}
/**
 * Omitted members keep their values. null clears a value.
 */
export interface UpdateKeyRequest {
  /**
   * Purpose of the key, in printable characters.
   */
  name?: string;
  /**
   * Scopes of the key. Default: those of `chat:read chat:write models:read` that its creator has.
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
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
  models?: string[] | null;
  tools?: string[] | null;
  /**
   * True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.
   */
  never_leaves?: boolean;
  /**
   * Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.
   */
  priority?: ("low" | "normal" | "high") | null;
  response_cache?: ("on" | "off") | null;
  tags?: string[] | null;
  note?: string | null;
}
/**
 * Omitted members keep their values. null removes a value.
 */
export interface UpdateManagedModelRequest {
  /**
   * Owner label in the model list. null: the upstream's value.
   */
  owned_by?: string | null;
  /**
   * Capabilities of the model. Omitted capabilities are unknown, and the model server decides. null: the upstream's values.
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
     * Creates embeddings.
     */
    embeddings?: boolean;
    /**
     * Ranks documents for a query, and scores texts.
     */
    rerank?: boolean;
    /**
     * Detects harmful texts and images.
     */
    moderation?: boolean;
    /**
     * Answers typed questions with probabilities.
     */
    decisions?: boolean;
    /**
     * Converts text to speech.
     */
    speech?: boolean;
    /**
     * Transcribes or translates recordings.
     */
    transcription?: boolean;
    /**
     * Creates and edits images.
     */
    images?: boolean;
    /**
     * Holds a live conversation over a WebSocket, in audio or text.
     */
    realtime?: boolean;
    /**
     * Converts texts to tokens and back.
     */
    tokenize?: boolean;
  } | null;
  /**
   * Context length in tokens, prompt and answer together. null: the upstream's value, else unlimited.
   */
  context_length?: number | null;
  /**
   * Environments whose keys may use the model. Without its own deployments, a model is limited to the environments of its upstreams. null: the environments of the upstreams, or `live`, `dev` for a model with deployments of its own.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Price of usage, for requests that begin after the change. null: the price of `price_of`, else usage is free.
   */
  price?: {
    /**
     * USD per million tokens of the prompt.
     */
    input: number;
    /**
     * USD per million tokens of the prompt that were read from a cache. Default: `input`.
     */
    cached_input?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache. Default: `input`.
     */
    cache_write?: number;
    /**
     * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
     */
    cache_write_1h?: number;
    /**
     * USD per million tokens of audio in the prompt. Default: `input`.
     */
    input_audio?: number;
    /**
     * USD per million tokens of images in the prompt. Default: `input`.
     */
    input_image?: number;
    /**
     * USD per million tokens of the answer.
     */
    output: number;
    /**
     * USD per million tokens of the reasoning. Default: `output`.
     */
    reasoning?: number;
    /**
     * USD per million tokens of audio in the answer. Default: `output`.
     */
    output_audio?: number;
    /**
     * USD per million tokens of images in the answer. Default: `output`.
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
     * USD for a second of audio that is transcribed.
     */
    second?: number;
    /**
     * USD for an image that is made.
     */
    image?: number;
    /**
     * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
     *
     * @maxItems 16
     */
    variants?: {
      /**
       * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
       */
      context_above?: number;
      /**
       * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
       */
      served?: string;
      /**
       * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
       */
      from?: string;
      /**
       * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
       *
       * @minItems 1
       * @maxItems 8
       */
      hours?: string[];
      /**
       * Condition: the request begins on one of these days of the week (UTC).
       *
       * @minItems 1
       * @maxItems 7
       */
      days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
      /**
       * Factor for all token rates under these conditions, including the rates of this variant.
       */
      factor?: number;
      /**
       * USD per million tokens of the prompt.
       */
      input?: number;
      /**
       * USD per million tokens of the prompt that were read from a cache. Default: `input`.
       */
      cached_input?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache. Default: `input`.
       */
      cache_write?: number;
      /**
       * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
       */
      cache_write_1h?: number;
      /**
       * USD per million tokens of audio in the prompt. Default: `input`.
       */
      input_audio?: number;
      /**
       * USD per million tokens of images in the prompt. Default: `input`.
       */
      input_image?: number;
      /**
       * USD per million tokens of the answer.
       */
      output?: number;
      /**
       * USD per million tokens of the reasoning. Default: `output`.
       */
      reasoning?: number;
      /**
       * USD per million tokens of audio in the answer. Default: `output`.
       */
      output_audio?: number;
      /**
       * USD per million tokens of images in the answer. Default: `output`.
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
       * USD for a second of audio that is transcribed.
       */
      second?: number;
      /**
       * USD for an image that is made.
       */
      image?: number;
    }[];
  } | null;
  /**
   * A model in the price list, as `headrace prices` names it (`vendor/model`). Its price applies if `price` is null.
   */
  price_of?: string | null;
  /**
   * Deployments of the model. Requests are distributed by weight. null or empty: all upstreams and nodes that list this id, and the built-in engine if it has the model.
   */
  deployments?:
    | {
        /**
         * Name of an upstream or node, or `built-in` for the built-in engine.
         */
        upstream: string;
        /**
         * Id of the model at the upstream. Default: the public id.
         */
        model?: string | null;
        /**
         * Share of the requests, relative to the other deployments. Default 1.
         */
        weight?: number | null;
      }[]
    | null;
  /**
   * Fallback models, tried in this order if all deployments of this model fail or are busy. The answer names the model that answered, and is charged at its price.
   */
  fallbacks?: string[] | null;
  /**
   * Other names that clients can send, or prefixes ending in `*`: 1 to 256 printable ASCII characters without spaces, and no * but at the end. A model with that id has precedence, then the exact alias, then the longest prefix. No two models can have the same alias.
   */
  aliases?: string[] | null;
  /**
   * Policies for requests to the model. Omitted policies keep their values. null removes one policy, or all of them.
   */
  policies?: {
    /**
     * True if another deployment continues a stream that its upstream cut. The deployment must be able to continue the text exactly.
     */
    continuation?: boolean | null;
    /**
     * Deployments that are used only if the others would keep a request waiting, or under the conditions given here.
     */
    overflow?: {
      /**
       * Upstreams whose deployments of the model come last, the cheapest first.
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
         * The operator's costs for this upstream, with the keys of a model's `price`. The cheapest upstream comes first. Default: the price of `cost_of`, else the model's price.
         */
        cost?: {
          /**
           * USD per million tokens of the prompt.
           */
          input: number;
          /**
           * USD per million tokens of the prompt that were read from a cache. Default: `input`.
           */
          cached_input?: number;
          /**
           * USD per million tokens of the prompt that were written to a cache. Default: `input`.
           */
          cache_write?: number;
          /**
           * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
           */
          cache_write_1h?: number;
          /**
           * USD per million tokens of audio in the prompt. Default: `input`.
           */
          input_audio?: number;
          /**
           * USD per million tokens of images in the prompt. Default: `input`.
           */
          input_image?: number;
          /**
           * USD per million tokens of the answer.
           */
          output: number;
          /**
           * USD per million tokens of the reasoning. Default: `output`.
           */
          reasoning?: number;
          /**
           * USD per million tokens of audio in the answer. Default: `output`.
           */
          output_audio?: number;
          /**
           * USD per million tokens of images in the answer. Default: `output`.
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
           * USD for a second of audio that is transcribed.
           */
          second?: number;
          /**
           * USD for an image that is made.
           */
          image?: number;
          /**
           * Rates that replace the base rates if all conditions of the variant apply. Later variants take precedence, and factors multiply. At most 16.
           *
           * @maxItems 16
           */
          variants?: {
            /**
             * Condition: the prompt has more tokens than this, including cached tokens. The rates then apply to all its tokens.
             */
            context_above?: number;
            /**
             * Condition: the model server reports that it served the request in this tier, speed or region, such as `flex`, `fast` or `us`.
             */
            served?: string;
            /**
             * Condition: the request begins at this time or later, such as `2026-12-01` or `2026-12-01T08:00:00Z`.
             */
            from?: string;
            /**
             * Condition: the request begins in one of these parts of a day (UTC), such as `01:00-04:00`.
             *
             * @minItems 1
             * @maxItems 8
             */
            hours?: string[];
            /**
             * Condition: the request begins on one of these days of the week (UTC).
             *
             * @minItems 1
             * @maxItems 7
             */
            days?: ("sun" | "mon" | "tue" | "wed" | "thu" | "fri" | "sat")[];
            /**
             * Factor for all token rates under these conditions, including the rates of this variant.
             */
            factor?: number;
            /**
             * USD per million tokens of the prompt.
             */
            input?: number;
            /**
             * USD per million tokens of the prompt that were read from a cache. Default: `input`.
             */
            cached_input?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache. Default: `input`.
             */
            cache_write?: number;
            /**
             * USD per million tokens of the prompt that were written to a cache for an hour. Default: `cache_write`.
             */
            cache_write_1h?: number;
            /**
             * USD per million tokens of audio in the prompt. Default: `input`.
             */
            input_audio?: number;
            /**
             * USD per million tokens of images in the prompt. Default: `input`.
             */
            input_image?: number;
            /**
             * USD per million tokens of the answer.
             */
            output?: number;
            /**
             * USD per million tokens of the reasoning. Default: `output`.
             */
            reasoning?: number;
            /**
             * USD per million tokens of audio in the answer. Default: `output`.
             */
            output_audio?: number;
            /**
             * USD per million tokens of images in the answer. Default: `output`.
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
             * USD for a second of audio that is transcribed.
             */
            second?: number;
            /**
             * USD for an image that is made.
             */
            image?: number;
          }[];
        } | null;
        /**
         * A model in the price list, as `headrace prices` names it. Its price is your cost if `cost` is not set.
         */
        cost_of?: string | null;
      }[];
      /**
       * Overflow if a request is expected to wait this long for the other deployments. Default: no overflow because of waiting.
       */
      after_seconds?: number | null;
      /**
       * Overflow if the prompt has more tokens than this. Default: no overflow because of length.
       */
      prompt_tokens_above?: number | null;
      /**
       * Parts of a day (UTC) in which these deployments are used like any other, such as `18:00-08:00`. Default: none.
       */
      hours?: string[] | null;
      /**
       * Maximum expected cost of one request there, in USD. Default: no limit.
       */
      most_usd_per_request?: number | null;
      /**
       * Maximum cost of all requests there. Default: no limit.
       */
      spend?: {
        /**
         * Maximum cost in each span, in USD.
         */
        usd: number;
        /**
         * Span of the calendar, in UTC. A week begins on Monday.
         */
        per: "hour" | "day" | "week" | "month";
      } | null;
    } | null;
    /**
     * Response cache, separate for each account.
     */
    cache?: {
      /**
       * The requests that use the cache: `deterministic` for requests with temperature 0 and those that ask for it, `asked` only for those that ask for it, or `all`. Default: `deterministic`.
       */
      requests?: ("deterministic" | "asked" | "all") | null;
      /**
       * Lifetime of a cached answer. Default: 3600.
       */
      ttl_seconds?: number | null;
      /**
       * Factor of the price that a cached answer costs. Default: 0.
       */
      price_factor?: number | null;
      /**
       * Semantic cache: requests with the same meaning share an answer. Default: only identical requests do.
       */
      semantic?: {
        /**
         * Id of the embedding model that compares requests.
         */
        model: string;
        /**
         * Minimum cosine similarity of two requests that share an answer.
         */
        threshold: number;
      } | null;
    } | null;
    /**
     * Names of `guardrails` that check requests and answers of the model, in this order.
     */
    guardrails?: string[] | null;
    /**
     * A second model that also receives a share of the requests. Clients never see its answers.
     */
    shadow?: {
      /**
       * Id of the second model.
       */
      model: string;
      /**
       * Share of the requests in percent, above 0.
       */
      percent: number;
    } | null;
    /**
     * Other models that answer a share of the requests. The model itself answers the rest.
     */
    split?:
      | {
          /**
           * Id of the model that answers this share.
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
 * Omitted members keep their values. null removes a value.
 */
export interface UpdateMcpServerRequest {
  /**
   * If the host, port or scheme changes and the server has headers, send `headers` as well.
   */
  url?: string;
  /**
   * A server in the configuration of a node. Alternative to `url`.
   */
  node?: {
    /**
     * Id or name of the node.
     */
    node: string;
    /**
     * Name of the server at the node.
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
     * Id of a client that you registered there. null: the gateway uses its client metadata document or registers itself.
     */
    client_id?: string | null;
    /**
     * Stored encrypted and not shown again.
     */
    client_secret?: string | null;
    /**
     * Scopes to request from users. null: the scopes that the server requests.
     */
    scopes?: string[] | null;
  } | null;
  /**
   * True if keys with `never_leaves` may use the server, because it sends nothing on to other systems. If `url` changes to another server and this member is omitted, it becomes false.
   */
  local?: boolean;
  /**
   * Environments whose keys may use the server. null: all.
   */
  environments?: ("live" | "test" | "dev")[] | null;
  /**
   * Accounts that may use the server. null: all.
   */
  accounts?: string[] | null;
  /**
   * Names of the tools that are offered, or prefixes ending in `*`. null: all.
   */
  tools?: string[] | null;
  /**
   * The tool and prompt definitions that clients get. `first`: the first version seen, while changes wait for an operator. `each`: only definitions that an operator approved. `all`: all definitions.
   */
  approval?: "first" | "each" | "all";
  /**
   * Sharing of connections to the server. `person`: a connection for each person. `all`: all users share connections.
   */
  sharing?: "person" | "all";
  protocol_version?: ("2026-07-28" | "2025-11-25" | "2025-06-18") | null;
  /**
   * Timeout of one call in seconds.
   */
  timeout_seconds?: number;
  /**
   * Maximum size of the result of a call, in bytes.
   */
  max_result_bytes?: number;
  /**
   * Maximum number of concurrent calls.
   */
  max_concurrency?: number;
  price_per_call?: number | null;
  enabled?: boolean;
}
/**
 * Omitted members keep their values.
 */
export interface UpdateNodeRequest {
  /**
   * Name in logs and records: lower-case letters, digits, dots, underscores and hyphens. No upstream may have the same name.
   */
  name?: string;
  /**
   * Ids of announced models that the node may serve. ["*"]: all models that it announces, now and later.
   *
   * @maxItems 200
   *
   * Items: Model ID to use; `GET /v1/models` lists them.
   */
  approved_models?: string[];
  /**
   * Environments whose keys may use the node's models.
   *
   * @minItems 1
   * @maxItems 3
   */
  environments?: ("live" | "test" | "dev")[];
  /**
   * Maximum number of concurrent requests. Further requests wait in the queue. null: the announced value, else measured automatically.
   */
  max_concurrency?: number | null;
  /**
   * True if keys with `never_leaves` may use the node, because it sends nothing on to other systems.
   */
  local?: boolean;
  /**
   * While true, the node finishes its requests and gets no new ones. Survives a restart.
   */
  draining?: boolean;
}
/**
 * Omitted members keep their values.
 */
export interface UpdateOrganizationRequest {
  /**
   * Display name, in printable characters.
   */
  name?: string;
  /**
   * Tokens per calendar month (UTC). For all accounts together. null: no limit.
   */
  monthly_tokens?: number | null;
  /**
   * USD per calendar month (UTC). For all accounts together. null: no limit.
   */
  monthly_spend?: number | null;
  quotas?:
    | {
        /**
         * Unit of the amount. `usd` is counted by the prices of the models.
         */
        unit: "requests" | "tokens" | "usd";
        /**
         * Amount: a whole number of requests or tokens, or a number of USD.
         */
        amount: number;
        /**
         * Length of the window: a named span, or seconds.
         */
        per: ("hour" | "5h" | "day" | "week" | "month") | number;
        /**
         * `calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.
         */
        window?: "calendar" | "rolling";
        /**
         * Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.
         *
         * @minItems 1
         * @maxItems 32
         */
        models?: string[];
        /**
         * Count only requests with this tag. Default: all requests.
         */
        tag?: string;
        /**
         * True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.
         */
        hard_stop?: boolean;
      }[]
    | null;
}
/**
 * Omitted members keep their values.
 */
export interface UpdateUpstreamRequest {
  /**
   * If the host, port or scheme changes and the upstream has a key, send `api_key` as well.
   */
  url?: string;
  /**
   * null removes the key.
   */
  api_key?: string | null;
  /**
   * True to serve the models that the upstream lists.
   */
  discover?: boolean;
  /**
   * If `url` changes to another server and this member is omitted, it becomes false.
   */
  local?: boolean;
  /**
   * Environments whose keys may use the upstream's discovered models.
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
   * Seconds without data after which a started answer fails.
   */
  idle_seconds?: number;
  /**
   * Maximum number of concurrent requests. Further requests wait in the queue. null: measured automatically.
   */
  max_concurrency?: number | null;
  /**
   * API of the upstream: `openai`, which most servers use, or `messages` for Anthropic's.
   */
  api?: "openai" | "messages";
  /**
   * Conversation formats that the upstream supports in full. Requests in other formats are translated. null: detected automatically.
   */
  apis?: ("chat" | "responses" | "messages")[] | null;
  /**
   * Header for the API key: `authorization` as a bearer token, or `api-key` for Azure. null: `authorization`, or `x-api-key` if `api` is `messages`.
   */
  key_header?: ("authorization" | "api-key" | "x-api-key") | null;
  query?: {
    [k: string]: string;
  } | null;
  cache_salt?: boolean | null;
  priority?: boolean | null;
  /**
   * The form in which the upstream gets `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id`: `hashed` with the account, `as_sent` or `removed`. null: `as_sent` if the upstream is local, else `hashed`.
   */
  identifiers?: ("hashed" | "as_sent" | "removed") | null;
  /**
   * While true, the upstream finishes its requests and gets no new ones. Allowed for every source. Survives a restart.
   */
  draining?: boolean;
}
/**
 * Omitted members keep their values. null clears a value.
 */
export interface UpdateWebhookRequest {
  /**
   * URL that receives the events: https, on the public internet, without credentials. Operators' webhooks may also use the hosts and networks of `webhook_networks`, over http as well.
   */
  url?: string;
  description?: string | null;
  events?:
    | (
        | "quota.threshold"
        | "key.unused"
        | "key.expiring"
        | "key.rotation_due"
        | "model.shutdown"
        | "errors.rate"
        | "upstream.down"
        | "upstream.up"
        | "upstream.failing"
        | "upstream.recovered"
        | "node.away"
        | "node.back"
        | "tool.changed"
        | "limit.requested"
        | "limit.decided"
        | "webhook.test"
      )[]
    | null;
  /**
   * True if events are delivered. While disabled, pending deliveries fail at their next attempt.
   */
  enabled?: boolean;
}
export interface Upstream {
  object: "upstream";
  name: string;
  /**
   * null for the built-in engine and for nodes.
   */
  url: string | null;
  /**
   * Source of the upstream. `database`: changed by this API. `file`: changed only in headrace.yaml.
   */
  source: "built-in" | "command" | "file" | "database" | "found" | "node";
  /**
   * True if an upstream with this name was also added by this API. It has no effect while the file has the name.
   */
  overrides_database: boolean;
  has_api_key: boolean;
  /**
   * True to serve the models that the upstream lists.
   */
  discover: boolean;
  /**
   * True if keys with `never_leaves` may use the upstream, because it sends nothing on to other systems. The built-in engine is local.
   */
  local: boolean;
  /**
   * Environments whose keys may use the upstream's discovered models.
   */
  environments: ("live" | "test" | "dev")[];
  /**
   * Seconds to wait for the first byte of an answer. null for the built-in engine and for nodes.
   */
  timeout_seconds: number | null;
  /**
   * Seconds without data after which a started answer fails. null for the built-in engine and for nodes.
   */
  idle_seconds: number | null;
  /**
   * Maximum number of concurrent requests. Further requests wait in the queue. null: measured automatically.
   */
  max_concurrency: number | null;
  /**
   * API of the upstream: `openai`, which most servers use, or `messages` for Anthropic's.
   */
  api: "openai" | "messages";
  /**
   * Conversation formats that the upstream supports, as configured or detected so far.
   */
  apis: ("chat" | "responses" | "messages")[];
  /**
   * True if `apis` is configured. Otherwise the formats are detected automatically.
   */
  names_apis: boolean;
  /**
   * Header for the API key: `authorization` as a bearer token, or `api-key` for Azure. null: `authorization`, or `x-api-key` if `api` is `messages`.
   */
  key_header: ("authorization" | "api-key" | "x-api-key") | null;
  /**
   * Query parameters added to every request, at most 20, such as `api-version` for Azure.
   */
  query: {
    [k: string]: string;
  };
  /**
   * For vLLM: send a `cache_salt` with each request, different for each account, so that accounts do not share cached prompts.
   */
  cache_salt: boolean;
  /**
   * For vLLM with `--scheduling-policy priority`: send a `priority` with each request.
   */
  priority: boolean;
  /**
   * The form in which the upstream gets `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id`: `hashed` with the account, `as_sent` or `removed`. null: `as_sent` if the upstream is local, else `hashed`.
   */
  identifiers: ("hashed" | "as_sent" | "removed") | null;
  /**
   * Result of the last poll, which runs every 30 s. `starting`: not polled yet. `draining` takes precedence over the others.
   */
  state: "ok" | "unreachable" | "draining" | "starting";
  /**
   * Circuit breaker after failed connections. `resting`: other deployments come first. `trying`: one request or probe is testing the upstream. `ready`: the next request or probe will test it.
   */
  health: "ok" | "resting" | "ready" | "trying";
  /**
   * Number of models that the upstream listed when it was last reached.
   */
  models: number;
  /**
   * Number of running requests.
   */
  running: number;
  /**
   * Number of requests that wait for a free slot.
   */
  waiting: number;
  /**
   * Current limit of concurrent requests. null before the first request.
   */
  concurrency: number | null;
  /**
   * Figures from the upstream's own metrics, for vLLM, SGLang and llama-server. null without recent figures.
   */
  load: {
    /**
     * Number of running requests of all clients.
     */
    running: number;
    /**
     * Number of requests in the upstream's own queue.
     */
    waiting: number;
    /**
     * Used share of the KV cache, 0 to 1.
     */
    cache_use: number | null;
    /**
     * Share of prompt tokens found in the prefix cache, 0 to 1.
     */
    cache_hits: number | null;
  } | null;
  /**
   * Reason why the upstream cannot be reached.
   */
  error: string | null;
  /**
   * State of the upstream as the attempts of real requests show it. null without recent attempts.
   */
  attempts: UpstreamAttemptHealth | null;
  /**
   * null for upstreams that were not added by this API.
   */
  created_at: number | null;
}
export interface UpstreamAttemptHealth {
  /**
   * True after five failed attempts in a row, or failed attempts in a row for ten seconds. The next successful attempt ends it; at another replica, one that is more than 30 s newer than the failures.
   */
  failing: boolean;
  /**
   * Attempts of requests that ended in the last 120 s, on all replicas.
   */
  attempts: number;
  /**
   * Number of these attempts that failed through a fault of the server.
   */
  failed: number;
  window_seconds: number;
  /**
   * First failure since the last success. null if the last attempt succeeded.
   */
  since: number | null;
  /**
   * Last failed attempt. null if none failed recently.
   */
  last_failure: {
    cause:
      | "authentication"
      | "quota"
      | "rate_limit"
      | "overload"
      | "timeout"
      | "dns"
      | "tls"
      | "connection"
      | "not_http"
      | "not_found"
      | "no_answer"
      | "broke_off"
      | "server_error";
    /**
     * HTTP status. null without an HTTP answer.
     */
    status: number | null;
    /**
     * Known phrases of the server's message. null if it has none.
     */
    message: string | null;
    /**
     * Unix time in seconds.
     */
    at: number;
  } | null;
  /**
   * The figures and the last failure in words.
   */
  summary: string;
  /**
   * Ids of the models that fail. Empty if the upstream fails as a whole, or not at all.
   */
  failing_models: string[];
}
export interface UpstreamList {
  object: "list";
  data: Upstream[];
}
export interface UpstreamTest {
  object: "upstream_test";
  ok: boolean;
  duration_ms: number;
  /**
   * Ids of the models, at most 1000.
   */
  models: string[];
  /**
   * Conversation formats that the upstream supports. Empty if it is not ok.
   */
  apis: ("chat" | "responses" | "messages")[];
  /**
   * Error message. null if the upstream is ok.
   */
  error: string | null;
}
export interface UsageReport {
  object: "list";
  data: UsageRow[];
  /**
   * Send it as `cursor` to get the next page. null on the last page.
   */
  next: string | null;
  /**
   * Start of the stored hourly sums in Unix seconds, if hours were requested and the requested time begins earlier. Daily sums are stored permanently.
   */
  kept_since?: number;
}
export interface UsageRow {
  /**
   * Start of the bucket in Unix seconds.
   */
  start: number;
  /**
   * End of the bucket in Unix seconds.
   */
  end: number;
  /**
   * Present if `group_by` has it.
   */
  model?: string;
  /**
   * Id of the credential, if `group_by` has it: a key, `key_…`, a signed-in member, `mbr_…`, or the grant of an app, `grt_…`.
   */
  key?: string;
  /**
   * Present if `group_by` has it.
   */
  environment?: string;
  /**
   * Id of the OAuth app, if `group_by` has it. null for none.
   */
  app?: string | null;
  /**
   * Tag, if `group_by` has it. null: requests without tags. A request with several tags is in the row of each, so these rows do not add up.
   */
  tag?: string | null;
  requests: number;
  prompt_tokens: number;
  /**
   * Prompt tokens read from a cache.
   */
  cached_tokens: number;
  /**
   * Prompt tokens written to a cache.
   */
  cache_write_tokens: number;
  completion_tokens: number;
  /**
   * Reasoning tokens of the answers, as far as model servers report them.
   */
  reasoning_tokens: number;
  total_tokens: number;
  /**
   * Cost in USD. Requests to models without a price are free.
   */
  cost: number;
  /**
   * Number of requests to models without a price, which `cost` does not include.
   */
  unpriced_requests: number;
  /**
   * Number of failed requests.
   */
  errors: number;
  /**
   * Mean milliseconds from a request to the first chunk of its answer, for answers streamed in several chunks. null: no such answers.
   */
  first_token_ms: number | null;
  /**
   * Mean generation speed over all streamed tokens, without the first token of each answer. null: no such tokens.
   */
  tokens_per_second: number | null;
  /**
   * Milliseconds within which 50, 95 and 99 % of the answers came: the first token of streams, and the end of all completed answers. They are computed from the counts, so they may be off by a part of a step. null: not stored for these groups or filters, or this time.
   */
  percentiles: {
    first_token_ms: {
      p50: number;
      p95: number;
      p99: number;
      /**
       * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
       */
      counts: {
        /**
         * The upper bound of the step in milliseconds. null: longer than all steps.
         */
        up_to_ms: number | null;
        answers: number;
      }[];
    } | null;
    total_ms: {
      p50: number;
      p95: number;
      p99: number;
      /**
       * Number of answers by time, in four steps for each power of ten, from 20 ms, without empty steps. Add the counts of several rows to get their percentiles.
       */
      counts: {
        /**
         * The upper bound of the step in milliseconds. null: longer than all steps.
         */
        up_to_ms: number | null;
        answers: number;
      }[];
    } | null;
  } | null;
}
export interface Webhook {
  object: "webhook";
  id: string;
  url: string;
  /**
   * Body that the receiver gets: `standard` (Standard Webhooks), `slack`, `teams` (a workflow of Microsoft Teams), `pagerduty` (Events API v2) or `alertmanager` (API v2). It cannot be changed.
   */
  format: "standard" | "slack" | "teams" | "pagerduty" | "alertmanager";
  description: string;
  /**
   * Empty: all.
   */
  events: (
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "key.rotation_due"
    | "model.shutdown"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "upstream.failing"
    | "upstream.recovered"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "limit.requested"
    | "limit.decided"
    | "webhook.test"
  )[];
  /**
   * Account whose events the webhook receives. null: operators' events.
   */
  environment: ("live" | "test" | "dev") | null;
  enabled: boolean;
  /**
   * `gone`: the receiver answered 410, so nothing is sent until the webhook is enabled again.
   */
  disabled_reason: "gone" | null;
  /**
   * Secrets that sign, newest last.
   */
  secrets: WebhookSecret[];
  /**
   * Id of the person or key that created the webhook.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
}
export interface WebhookSecret {
  last4: string;
  /**
   * Time until which the secret signs, after a rotation.
   */
  expires_at: number | null;
}
export interface WebhookAttempt {
  /**
   * Unix time in seconds.
   */
  at: number;
  /**
   * HTTP status of the answer. null: no answer.
   */
  status: number | null;
  /**
   * Reason for a missing answer: `timeout`, `not_connected`, `broke_off`, `no_http`, `name_not_found`, `address_not_public`, `not_https`, `disabled` and the like.
   */
  error: string | null;
  duration_ms: number;
}
export interface WebhookDelivery {
  object: "webhook_delivery";
  id: string;
  /**
   * `webhook-id` of all attempts.
   */
  event_id: string;
  type:
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "key.rotation_due"
    | "model.shutdown"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "upstream.failing"
    | "upstream.recovered"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "limit.requested"
    | "limit.decided"
    | "webhook.test";
  /**
   * `failed`: the delivery is not tried again.
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
export interface WebhookDeliveryList {
  object: "list";
  data: WebhookDelivery[];
  /**
   * Id of the first object of the page. null if the page is empty.
   */
  first_id: string | null;
  /**
   * Id of the last object of the page. Send it as `after` to get the next page.
   */
  last_id: string | null;
  /**
   * True if more objects follow.
   */
  has_more: boolean;
}
export interface WebhookTest {
  object: "webhook_test";
  /**
   * `event_id` of the delivery, which shows the result.
   */
  event_id: string;
}
export interface WebhookWithSecret {
  object: "webhook";
  id: string;
  url: string;
  /**
   * Body that the receiver gets: `standard` (Standard Webhooks), `slack`, `teams` (a workflow of Microsoft Teams), `pagerduty` (Events API v2) or `alertmanager` (API v2). It cannot be changed.
   */
  format: "standard" | "slack" | "teams" | "pagerduty" | "alertmanager";
  description: string;
  /**
   * Empty: all.
   */
  events: (
    | "quota.threshold"
    | "key.unused"
    | "key.expiring"
    | "key.rotation_due"
    | "model.shutdown"
    | "errors.rate"
    | "upstream.down"
    | "upstream.up"
    | "upstream.failing"
    | "upstream.recovered"
    | "node.away"
    | "node.back"
    | "tool.changed"
    | "limit.requested"
    | "limit.decided"
    | "webhook.test"
  )[];
  /**
   * Account whose events the webhook receives. null: operators' events.
   */
  environment: ("live" | "test" | "dev") | null;
  enabled: boolean;
  /**
   * `gone`: the receiver answered 410, so nothing is sent until the webhook is enabled again.
   */
  disabled_reason: "gone" | null;
  /**
   * Secrets that sign, newest last.
   */
  secrets: WebhookSecret[];
  /**
   * Id of the person or key that created the webhook.
   */
  created_by: string | null;
  /**
   * Unix time in seconds.
   */
  created_at: number;
  /**
   * Secret to verify signatures, `whsec_…`; for the format `pagerduty`, the routing key. It is shown only in this response.
   */
  secret: string;
}
