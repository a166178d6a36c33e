// The settings of a model server that are asked for when it is added and when it is changed.
import { Group, PasswordInput, Switch } from "@mantine/core";
import type { ApiFailure } from "../../api/client.ts";
import type { Upstream } from "../../api/types.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";

interface UpstreamSettings {
  discover: boolean;
  environments: string[];
  timeoutSeconds: TypedNumber;
  idleSeconds: TypedNumber;
  /** Empty: measured. */
  most: TypedNumber;
}

export const usualSettings: UpstreamSettings = {
  discover: true,
  environments: ["live", "dev"],
  timeoutSeconds: 600,
  idleSeconds: 900,
  most: "",
};

export function settingsOf(upstream: Upstream): UpstreamSettings {
  const { max_concurrency: most } = upstream;
  return {
    ...{ discover: upstream.discover, environments: [...upstream.environments] },
    ...{ timeoutSeconds: upstream.timeout_seconds ?? "", idleSeconds: upstream.idle_seconds ?? "" },
    most: most ?? "",
  };
}

export function settingsToWire({ discover, environments, timeoutSeconds, idleSeconds, most }: UpstreamSettings) {
  return {
    ...{ discover, environments: environments as Upstream["environments"] },
    ...(timeoutSeconds === "" ? {} : { timeout_seconds: Number(timeoutSeconds) }),
    ...(idleSeconds === "" ? {} : { idle_seconds: Number(idleSeconds) }),
    max_concurrency: numberOf(most),
  };
}

export const fieldNames = [
  ...["name", "url", "api_key", "discover", "environments"],
  ...["timeout_seconds", "idle_seconds", "max_concurrency"],
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

interface MoreFieldsProps {
  settings: UpstreamSettings;
  error: ApiFailure | null;
  /** Whether they are shown from the start. */
  shown?: boolean;
  change(settings: UpstreamSettings): void;
}

export function MoreFields({ settings, error, shown = false, change }: MoreFieldsProps) {
  const hasProblem = fieldNames.slice(3).some((field) => problemOf(error, field) !== undefined);
  return (
    <MoreSettings {...{ shown, hasProblem }}>
      <Switch
        label="Serve the models that it lists"
        description="Otherwise only those that are declared with a place there, in headrace.yaml or on the page Models."
        checked={settings.discover}
        onChange={(event) => change({ ...settings, discover: event.currentTarget.checked })}
      />
      <EnvironmentBoxes
        value={settings.environments}
        change={(environments) => change({ ...settings, environments })}
        error={problemOf(error, "environments")}
      />
      <WholeNumber
        label="Most requests at once"
        description="Empty: as many as it turns out to bear. More wait in the queue."
        value={settings.most}
        onChange={(most) => change({ ...settings, most })}
        max={1_000_000}
        error={problemOf(error, "max_concurrency")}
      />
      <Group grow align="start">
        <WholeNumber
          label="Seconds to wait for an answer"
          value={settings.timeoutSeconds}
          onChange={(timeoutSeconds) => change({ ...settings, timeoutSeconds })}
          max={86_400}
          required
          error={problemOf(error, "timeout_seconds")}
        />
        <WholeNumber
          label="Seconds it may be silent"
          value={settings.idleSeconds}
          onChange={(idleSeconds) => change({ ...settings, idleSeconds })}
          max={86_400}
          required
          error={problemOf(error, "idle_seconds")}
        />
      </Group>
    </MoreSettings>
  );
}
