// The settings of a model server, for adding and for changing one.
import { Group, MultiSelect, NativeSelect, PasswordInput, Switch, TextInput } from "@mantine/core";
import type { ApiFailure } from "../../api/client.ts";
import type { Upstream } from "../../api/types.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";

interface UpstreamSettings {
  discover: boolean;
  local: boolean;
  environments: string[];
  timeoutSeconds: TypedNumber;
  idleSeconds: TypedNumber;
  /** Maximum number of concurrent requests; empty means that the limit is measured. */
  most: TypedNumber;
  api: Upstream["api"];
  /** The supported API formats; if empty, the gateway detects them by asking the model server. */
  apis: string[];
  /** The header that carries the API key; empty means the API's default header. */
  keyHeader: string;
  /** Query parameters as in an address, without the question mark. */
  query: string;
  cacheSalt: boolean;
  priority: boolean;
  /** The treatment of user and prompt ids that clients send: hashed, unchanged or removed. Empty means the default. */
  identifiers: string;
}

export const defaultSettings: UpstreamSettings = {
  discover: true,
  local: false,
  environments: ["live", "dev"],
  timeoutSeconds: 600,
  idleSeconds: 900,
  most: "",
  ...{ api: "openai", apis: [], keyHeader: "", query: "" },
  ...{ cacheSalt: false, priority: false, identifiers: "" },
};

export function settingsOf(upstream: Upstream): UpstreamSettings {
  const { max_concurrency: most } = upstream;
  return {
    ...{ discover: upstream.discover, local: upstream.local, environments: [...upstream.environments] },
    ...{ timeoutSeconds: upstream.timeout_seconds ?? "", idleSeconds: upstream.idle_seconds ?? "" },
    most: most ?? "",
    ...{ api: upstream.api, apis: upstream.names_apis ? [...upstream.apis] : [] },
    ...{ keyHeader: upstream.key_header ?? "", query: new URLSearchParams(upstream.query).toString() },
    ...{ cacheSalt: upstream.cache_salt, priority: upstream.priority, identifiers: upstream.identifiers ?? "" },
  };
}

/** Returns the settings of how the gateway talks to the server, which a test needs as well. */
export function speechToWire(settings: UpstreamSettings) {
  const { api, apis, keyHeader, query, cacheSalt, priority, identifiers } = settings;
  return {
    ...{ api, apis: apis.length === 0 ? null : (apis as Upstream["apis"]) },
    key_header: keyHeader === "" ? null : (keyHeader as NonNullable<Upstream["key_header"]>),
    query: Object.fromEntries(new URLSearchParams(query.trim())),
    ...{ cache_salt: cacheSalt, priority },
    identifiers: identifiers === "" ? null : (identifiers as NonNullable<Upstream["identifiers"]>),
  };
}

export function settingsToWire(settings: UpstreamSettings) {
  const { discover, local, environments, timeoutSeconds, idleSeconds, most } = settings;
  return {
    ...speechToWire(settings),
    ...{ discover, local, environments: environments as Upstream["environments"] },
    ...(timeoutSeconds === "" ? {} : { timeout_seconds: Number(timeoutSeconds) }),
    ...(idleSeconds === "" ? {} : { idle_seconds: Number(idleSeconds) }),
    max_concurrency: numberOf(most),
  };
}

export const fieldNames = [
  ...["name", "url", "api_key", "discover", "local", "environments"],
  ...["timeout_seconds", "idle_seconds", "max_concurrency"],
  ...["apis", "key_header", "query", "cache_salt", "priority", "identifiers", "api"],
];

interface ApiKeyFieldProps {
  description: string;
  value: string;
  disabled?: boolean;
  error: string | undefined;
  change(key: string): void;
}

export function ApiKeyField({ change, ...field }: ApiKeyFieldProps) {
  return (
    <PasswordInput
      label="API key"
      {...field}
      onChange={(event) => change(event.currentTarget.value)}
      autoComplete="off"
      visibilityToggleButtonProps={{ "aria-label": "Show the API key" }}
    />
  );
}

const apiChoices = [
  { value: "openai", label: "OpenAI-compatible" },
  { value: "messages", label: "Anthropic Messages" },
];

interface SpeechFieldsProps {
  settings: UpstreamSettings;
  error: ApiFailure | null;
  change(settings: UpstreamSettings): void;
}

export function ApiField({ settings, error, change }: SpeechFieldsProps) {
  return (
    <NativeSelect
      label="API"
      data={apiChoices}
      value={settings.api}
      onChange={(event) => change({ ...settings, api: event.currentTarget.value as Upstream["api"] })}
      error={problemOf(error, "api")}
    />
  );
}

const formatChoices = [
  { value: "chat", label: "Chat completions" },
  { value: "responses", label: "Responses" },
  { value: "messages", label: "Messages" },
];

const headerChoices = [
  { value: "", label: "Default" },
  { value: "authorization", label: "authorization, as a bearer token" },
  { value: "api-key", label: "api-key" },
  { value: "x-api-key", label: "x-api-key" },
];

function SpeechFields({ settings, error, change }: SpeechFieldsProps) {
  return (
    <>
      <MultiSelect
        label="Supported formats"
        description="Detected automatically if empty. Requests in other formats are translated."
        data={formatChoices}
        value={settings.apis}
        onChange={(apis) => change({ ...settings, apis })}
        error={problemOf(error, "apis")}
      />
      <Group grow align="start">
        <NativeSelect
          label="Header of the API key"
          data={headerChoices}
          value={settings.keyHeader}
          onChange={(event) => change({ ...settings, keyHeader: event.currentTarget.value })}
          error={problemOf(error, "key_header")}
        />
        <TextInput
          label="Query string for all requests"
          placeholder="api-version=preview"
          value={settings.query}
          onChange={(event) => change({ ...settings, query: event.currentTarget.value })}
          error={problemOf(error, "query")}
          autoComplete="off"
          spellCheck={false}
        />
      </Group>
      <IsolationFields {...{ settings, error, change }} />
    </>
  );
}

const identifierChoices = [
  { value: "", label: "Default: hashed, unless the server is local" },
  { value: "hashed", label: "Hashed" },
  { value: "as_sent", label: "Unchanged" },
  { value: "removed", label: "Removed" },
];

function IsolationFields({ settings, error, change }: SpeechFieldsProps) {
  return (
    <>
      <NativeSelect
        label="User and prompt ids"
        description="Ids that clients send to identify their users and related prompts."
        data={identifierChoices}
        value={settings.identifiers}
        onChange={(event) => change({ ...settings, identifiers: event.currentTarget.value })}
        error={problemOf(error, "identifiers")}
      />
      <Switch
        label="Separate cache for each account"
        description="For vLLM: requests get a cache_salt, so that accounts do not share cached prompts."
        checked={settings.cacheSalt}
        onChange={(event) => change({ ...settings, cacheSalt: event.currentTarget.checked })}
      />
      <Switch
        label="Send priority"
        description="For vLLM started with --scheduling-policy priority."
        checked={settings.priority}
        onChange={(event) => change({ ...settings, priority: event.currentTarget.checked })}
      />
    </>
  );
}

interface MoreFieldsProps {
  settings: UpstreamSettings;
  error: ApiFailure | null;
  /** True if the fields are expanded from the start. */
  shown?: boolean;
  change(settings: UpstreamSettings): void;
}

export function MoreFields({ settings, error, shown = false, change }: MoreFieldsProps) {
  const hasProblem = fieldNames.slice(3, -1).some((field) => problemOf(error, field) !== undefined);
  return (
    <MoreSettings {...{ shown, hasProblem }}>
      <Switch
        label="Serve all listed models"
        description="Off: only models with a deployment at this upstream are served. Set them in headrace.yaml or on the page Models."
        checked={settings.discover}
        onChange={(event) => change({ ...settings, discover: event.currentTarget.checked })}
      />
      <Switch
        label="Local server"
        description="Local-only keys may use this server. Turn this on only if the server sends nothing on to other systems."
        checked={settings.local}
        onChange={(event) => change({ ...settings, local: event.currentTarget.checked })}
      />
      <EnvironmentBoxes
        value={settings.environments}
        change={(environments) => change({ ...settings, environments })}
        error={problemOf(error, "environments")}
      />
      <WholeNumber
        label="Max concurrent requests"
        description="Further requests wait. Leave empty to measure it automatically."
        value={settings.most}
        onChange={(most) => change({ ...settings, most })}
        max={1_000_000}
        error={problemOf(error, "max_concurrency")}
      />
      <Group grow align="start">
        <WholeNumber
          label="Response timeout (s)"
          value={settings.timeoutSeconds}
          onChange={(timeoutSeconds) => change({ ...settings, timeoutSeconds })}
          max={86_400}
          required
          error={problemOf(error, "timeout_seconds")}
        />
        <WholeNumber
          label="Idle timeout (s)"
          value={settings.idleSeconds}
          onChange={(idleSeconds) => change({ ...settings, idleSeconds })}
          max={86_400}
          required
          error={problemOf(error, "idle_seconds")}
        />
      </Group>
      <SpeechFields {...{ settings, error, change }} />
    </MoreSettings>
  );
}
